#!/usr/bin/env python3
"""orders.py - orders of real networks, through the command line.

  published  the peaks of facts/two-level.md 1.2 and 1.5, reached and proved
  slides     the seed compiler's example: its figures, and ours
  randwire   random graphs, all proved (100 of them with --long)
  sizes      2,000 layers; a wide network that cannot be proved, told politely
  tight      memories of exactly the peak that was found hold everything
  model      the peak that was searched for is that of the plan
  plans      every order and objective on examples/ compiles and verifies

Exits 1 if something is not so.
"""
import json
import os
import subprocess
import sys
import tempfile

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
PACKED = "tests/sched/data/packed-16.yaml"
PUBLISHED = [
    ("nasnet-cifar", 2621440, 2031616), ("nasnet-imagenet", 5171840, 4474080),
    ("amoebanet-cifar", 1622016, 1474560),
    ("amoebanet-imagenet", 5121664, 4465664),
    ("darts-cifar", 2064384, 1622016), ("darts-imagenet", 5347456, 4616192),
    ("pnasnet", 19217408, 17059840), ("randwire:1", 3669120, 3424512),
    ("randwire:2", 5625984, 3913728), ("randwire:3", 5381376, 4647552)]
HAND_DESIGNED = ["googlenet", "resnet50", "mobilenet-v2", "squeezenet", "vgg16",
                 "inception-v3", "densenet-cell"]
MACHINES = ["xdnn-v2-28", "xdnn-v3-96", "math-engine", "darius-32", PACKED]
WAYS = [["--order", "file"], ["--order", "best"], ["--order", "dfs"],
        ["--order", "random"], ["--order", "enumerate"],
        ["--side-by-side", "peak"], ["--side-by-side", "steps"],
        ["--side-by-side", "time"]]

failures = []


def expect(good, text):
    if not good:
        failures.append(text)
        print("FAILED " + text)


def run(command, path, *options):
    done = subprocess.run([AMPHORA, command, path, "--json", *options],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False)
    try:
        return json.loads(done.stdout)
    except ValueError:
        expect(False, f"{command} {path} {' '.join(options)}: "
               + done.stderr.decode(errors="replace")[:300])
        return None


def orders(path, *options):
    found = run("show", path, "--orders", *options)
    return {row["order"]: row for row in found["orders"]} if found else None


def make(folder, name):
    path = os.path.join(folder, name.replace(":", "-") + ".prototxt")
    with open(path, "wb") as file:
        subprocess.run([sys.executable, "bench/networks.py", name],
                       stdout=file, check=True)
    return path


def published(folder):
    print(f"{'network':20} {'file':>12} {'best':>12} {'states':>8} {'ms':>8}")
    for name, file_peak, best_peak in PUBLISHED:
        rows = orders(make(folder, name))
        best = rows["best"]
        expect(rows["file"]["peak_bytes"] == file_peak, name + ": file")
        expect(best["peak_bytes"] == best_peak and best["proved"], name)
        expect(best["states"] < 100000, f"{name}: {best}")
        print(f"{name:20} {file_peak:12,} {best['peak_bytes']:12,} "
              f"{best['states']:8} {best['ms']:8.1f}")


def slides(folder):
    path = make(folder, "inception-3b")
    for objective, peak, steps in ((None, 903168, 7), ("peak", 903168, 7),
                                   ("steps", 953344, 6)):
        more = ["--side-by-side", objective] if objective else []
        best = orders(path, "-t", PACKED, *more)["best"]
        expect((best["peak_bytes"], best["steps"]) == (peak, steps),
               f"inception-3b {objective}: {best}")
    seed = orders(path, "-t", PACKED)["enumerate"]
    expect((seed["orders"], seed["seed_peak_bytes"], seed["seed_steps"]) ==
           (120, 1505280, 7), f"inception-3b: {seed}")


def randwire(folder, count):
    times = []
    for seed in range(4, 4 + count):
        best = orders(make(folder, f"randwire:{seed}"))["best"]
        expect(best["proved"] and best["states"] < 200000,
               f"randwire:{seed}: {best}")
        times.append(best["ms"])
    times.sort()
    print(f"{count} random graphs: median {times[count // 2]:.1f} ms, worst "
          f"{times[-1]:.1f} ms")


def sizes(folder):
    best = orders(make(folder, "long"))["best"]
    expect(best["proved"] and best["steps"] > 1900, f"long: {best}")
    best = orders(make(folder, "wide"))["best"]
    expect(not best["proved"] and 0 < best["bound_bytes"] < best["peak_bytes"],
           f"wide: {best}")
    print(f"wide: {best['peak_bytes']:,}, at least {best['bound_bytes']:,}, "
          f"{best['ms']:.0f} ms")


def hand_designed(names):
    for name in names:
        path = f"examples/{name}.prototxt"
        for machine in MACHINES:
            best = orders(path, "-t", machine)["best"]
            expect(best["proved"] and best["states"] < 1000,
                   f"{name} on {machine}: {best}")


def plans(folder, names, machines):
    paths = [f"examples/{name}.prototxt" for name in names]
    paths.append(make(folder, "inception-3b"))
    for path in paths:
        for machine in machines:
            for way in WAYS:
                report = run("verify", path, "-t", machine, *way)
                expect(report and report["ok"],
                       f"{path} on {machine} with {' '.join(way)}")


def tight(folder):
    """Memories of exactly the peak that was found hold everything."""
    fp32 = ["--set", "machine.element=4", "--set", "memories.am.align=4"]
    rows = [(make(folder, "inception-3b"), PACKED, ["--order", "best"], 903168),
            (make(folder, "inception-3b"), PACKED, ["--side-by-side", "steps"],
             953344),
            (make(folder, "resnet-18"), PACKED, ["--order", "best"] + fp32,
             2408448),
            ("examples/inception-v3.prototxt", "xdnn-v2-56",
             ["--order", "best"], 5419008),
            ("examples/densenet-cell.prototxt", "xdnn-v2-28",
             ["--order", "best"], 802816)]
    for path, machine, way, size in rows:
        way = way + ["--set", f"memories.am.size={size}"]
        report = run("verify", path, "-t", machine, *way)
        expect(report and report["ok"] and report["am_peak_bytes"] <= size,
               f"{path} in {size:,} bytes")
        plan = run("compile", path, "-t", machine, "-o", folder, *way)
        expect(plan and not plan["two_levels"] and plan["am_bound_bytes"] ==
               plan["order"]["peak_bytes"] == size,
               f"{path} in {size:,} bytes: {plan}")


def model(folder, names, machines):
    """Where no concat lends its bytes, the model's peak is the plan's."""
    for name in names:
        for machine in machines:
            for order in ("file", "best", "random"):
                plan = run("compile", f"examples/{name}.prototxt", "-t",
                           machine, "-o", folder, "--order", order,
                           "--replication", "off", "--set",
                           "memories.am.size=256MiB")
                expect(plan and plan["am_bound_bytes"] ==
                       plan["order"]["peak_bytes"],
                       f"{name} on {machine}, {order}: {plan}")


def main():
    more = "--long" in sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        published(folder)
        slides(folder)
        randwire(folder, 100 if more else 3)
        sizes(folder)
        hand_designed(HAND_DESIGNED if more else HAND_DESIGNED[:3])
        tight(folder)
        model(folder, ["mobilenet-v2"] + ["resnet50", "vgg16"] * more,
              MACHINES if more else MACHINES[:2])
        plans(folder, ["tiny"] + ["squeezenet", "googlenet"] * more,
              MACHINES if more else ["xdnn-v3-96", PACKED])
    print(f"{len(failures)} failed")
    return len(failures) > 0


if __name__ == "__main__":
    sys.exit(main())
