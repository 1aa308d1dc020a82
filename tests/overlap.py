#!/usr/bin/env python3
"""overlap.py - loads and stores in the steps of layers.

  worth    with `tiling.overlap` a network moves as many bytes as without, and
           never takes more cycles; with some, in the sum, it takes fewer
  hidden   simulated time over the larger of all transfers and all work, where
           layers run by slices of rows, and layers of the host move up; and
           the values are right
  clock    the plan's own cycles are those that are simulated
  races    a load that is put into the step of the layer that needs it, or a
           store into that of the layer that makes it, is refused

    tests/overlap.py [--long]
"""
import json
import os
import re
import subprocess
import sys
import tempfile

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
AM = "memories.am.size="
POINTS = [  # network, machine, size of active memory
    ("googlenet", "xdnn-v2-28", "1MiB"),
    ("squeezenet", "xdnn-v2-56", "2MiB"),
    ("densenet-cell", "xdnn-v2-28", "1MiB"),
    ("mobilenet-v2", "ring-npu", "150KiB"),
    ("googlenet", "line-npu", "256KiB"),
    ("tiny", "xdnn-v2-28", "24KiB")]
HIDDEN = [  # network, machine, size, at most
    ("googlenet", "ring-npu", "768KiB", 1.01),
    ("mobilenet-v2", "ring-npu", "256KiB", 1.01),
    ("densenet-cell", "ring-npu", "100KiB", 1.02)]
SLOW = [  # the same where transfers take half of the work; bandwidth in MB/s
    ("googlenet", "ring-npu", "768KiB", 91, 1.08),
    ("densenet-cell", "ring-npu", "100KiB", 30, 1.08)]
LONG_HIDDEN = [("inception-v3", "ring-npu", "506KiB", 1.02)]
LONG = [("resnet50", "xdnn-v2-28", "1MiB"), ("yolov2-608", "xdnn-v2-56", "6MiB"), ("vgg16", "xdnn-v2-28", "3MiB"),
        ("inception-v3", "xdnn-v2-28", "2MiB"),
        ("googlenet", "ring-npu", "200KiB"),
        ("resnet50", "template", "")]


def run(*arguments):
    done = subprocess.run([AMPHORA, *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, text=True)
    return done.returncode, done.stdout, done.stderr


def measure(network, machine, sets, folder):
    code, out, err = run("compile", f"examples/{network}.prototxt", "-t",
                         machine, "-o", folder, "--json", "--explain",
                         "--objective", "time", "--effort", "2", *sets)
    assert code == 0, err
    plan = json.loads(out)
    assert "overlap=false" in str(sets) or "time: " in plan["volumes"]
    code, out, err = run("simulate", plan["listing"], "-t", machine, "--json",
                         "--memory-only", *sets)
    assert code == 0, out + err
    return plan, json.loads(out)


def moved(sim):
    return sim["ddr_read_bytes"] + sim["ddr_written_bytes"]


def check_point(network, machine, size, folder):
    sets = ["--set", AM + size] if size else []
    plan, sim = measure(network, machine, sets, folder)
    _, plain = measure(network, machine,
                       sets + ["--set", "tiling.overlap=false"], folder)
    print(f"{network:14} {machine:11} {size:8} {plain['cycles']:11,} cycles, "
          f"{sim['cycles']:11,} with overlap")
    wrong = []
    # which plan is taken depends on the cycles that transfers take
    if sim["cycles"] > plain["cycles"] and moved(sim) >= moved(plain):
        wrong.append(f"{network} {machine} {size}: worse with overlap")
    if plan["plan_cycles"] != sim["cycles"]:
        wrong.append(f"{network} {machine} {size}: planned "
                     f"{plan['plan_cycles']:,}, simulated {sim['cycles']:,}")
    return wrong, plain["cycles"] - sim["cycles"]


def slow(megabytes):
    """For good: plans are chosen for it."""
    return [word for memory in ("ddr", "inputs", "outputs")
            for word in ("--set",
                         f"memories.{memory}.bandwidth={megabytes}MB/s")]


def check_hidden(network, machine, size, most, folder, sets=()):
    sets = ["--set", AM + size, *sets]
    _, sim = measure(network, machine, sets, folder)
    ratio = sim["cycles"] / max(sim["transfer_cycles"], sim["busy_cycles"])
    print(f"{network:14} {machine:11} {size:8} time over the larger of "
          f"transfers and work: {ratio:.3f}")
    wrong = []
    if ratio > most:
        wrong.append(f"{network} {machine} {size}: {ratio:.3f}, not {most}")
    code, out, err = run("verify", f"examples/{network}.prototxt", "-t",
                         machine, *sets)
    if code:
        wrong.append(f"{network} {machine} {size}: {out + err}")
    return wrong


def check_rolled(folder):
    """By time, all layers roll finely, so that the image comes beside most of
    them."""
    sets = ["--set", AM + "512KiB", *slow(20)]
    cycles = {}
    for objective in ("bytes", "time"):
        code, out, err = run("compile", "examples/mobilenet-v2.prototxt", "-t",
                             "ring-npu", "-o", folder, "--json", "--objective",
                             objective, *sets)
        assert code == 0, out + err
        cycles[objective] = json.loads(out)["plan_cycles"]
    print(f"mobilenet-v2 ring-npu: {cycles['time']:,} cycles by time, "
          f"{cycles['bytes']:,} by bytes")
    return [] if cycles["time"] < 0.8 * cycles["bytes"] else [
        f"mobilenet-v2 ring-npu: by time {cycles['time']:,} cycles"]


def check_races(folder):
    """Every move of a small listing, put where it must not be."""
    sets = ["--set", AM + "24KiB", "--set", "tiling.overlap=false"]
    measure("tiny", "xdnn-v2-28", sets, folder)
    with open(f"{folder}/tiny.json", encoding="utf-8") as file:
        json.load(file)
    with open(f"{folder}/tiny.cmd", encoding="utf-8") as file:
        lines = file.read().split("\n")
    code = [i for i, line in enumerate(lines) if re.match(r"\d+ XN", line)]
    wrong, tried = [], 0
    for k, i in enumerate(code):
        load = "XNGather" in lines[i]
        if not load and "XNScatter" not in lines[i]:
            continue
        at = k + 1 if load else k - 1
        other = lines[code[at]] if 0 <= at < len(code) else "XNGather"
        if "XNGather" in other or "XNScatter" in other:
            continue
        moved_there = list(lines)
        step = other.split(" ", 1)[0]
        moved_there[i] = step + " " + lines[i].split(" ", 1)[1]
        path = f"{folder}/race.cmd"
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(moved_there))
        status, out, _ = run("simulate", path, "-t", "xdnn-v2-28",
                             "--memory-only", *sets)
        tried += 1
        if status != 1 or "in the same step" not in out:
            wrong.append(f"not refused in step {step}: {lines[i]}")
    print(f"{tried} moves in steps of layers that conflict with them")
    return wrong if tried else ["no move was tried"]


def main():
    wrong, saved = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for point in POINTS + (LONG if "--long" in sys.argv[1:] else []):
            messages, cycles = check_point(*point, folder)
            wrong += messages
            saved += cycles
        for point in HIDDEN + (LONG_HIDDEN if "--long" in sys.argv else []):
            wrong += check_hidden(*point, folder)
        for network, machine, size, bandwidth, most in SLOW:
            wrong += check_hidden(network, machine, size, most, folder,
                                  slow(bandwidth))
        wrong += check_rolled(folder)
        wrong += check_races(folder)
    if not saved:
        wrong.append("no cycle was saved")
    print("\n".join(wrong + [f"{len(wrong)} failures"]))
    return len(wrong) > 0


if __name__ == "__main__":
    sys.exit(main())
