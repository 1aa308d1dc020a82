#!/usr/bin/env python3
"""small_memories.py - random networks in less active memory than they take.

Branches, concats, sums, strides, dilations, depthwise and transposed layers,
pools over whole images, of odd sizes, on every machine with two levels: exit
code 0 and verified by value, within the cap, with the bytes that the plan
counted and no fewer than its bounds; or exit code 3, and then a size that would
do is named and does, the one that would not does not. Sizes go from a byte, over
those that are no whole granules, to all that a hwspec may say; what is none is
bad input, exit code 1. --long has many more of them. Beside them a dense block,
whose concats begin sections of channels that they fill later.
"""
import json
import os
import random
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "bench"))
import networks  # noqa: E402

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
MACHINES = ("xdnn-v2-28", "xdnn-v2-56", "xdnn-v3-96", "ring-npu", "line-npu",
            "tile-npu", os.path.join("bench", "rows.yaml"))
BESIDE = {"template": ("fast", "bulk")}  # all of a size; else `am`
NO_SIZES = ("0", "-1", "-5KiB", "1e6", "16EiB", "300000GiB",
            "18446744073709551615", "18446744073709551616")
DENSE = os.path.join(os.path.dirname(__file__), "..", "examples",
                     "densenet-cell.prototxt")
TINY = DENSE.replace("densenet-cell", "tiny")
CHANNELS = (3, 4, 5, 7, 8, 15, 16, 17, 24, 31, 32, 33, 48, 64)


def layer(net, dice, x):
    kind = dice.randrange(9)
    width = dice.choice(CHANNELS)
    if kind == 0 and x[2] > 6:
        return net.pool(x, dice.choice(("MAX", "AVE")), 2, 2, pad=0)
    if kind == 8:
        return net.global_pool(x, dice.choice(("MAX", "AVE")))
    if kind == 1:
        return net.relu(net.conv(x, x[1], dice.choice((3, 5)), group=x[1]))
    if kind == 2 and x[2] < 32:
        return net.upsample(x)
    if kind == 3 and x[2] < 32:
        return net.deconv(x, width)
    if kind == 4 and x[2] > 6:
        return net.relu(net.conv(x, width, 3, dice.choice((2, 3))))
    return net.relu(net.conv(x, width, dice.choice((1, 3, 3, 5))))


def network(seed):
    dice = random.Random(seed)
    net = networks.Net(f"small-{seed}", dice.choice((3, 4, 16)),
                       dice.choice((13, 24, 31, 48)))
    made = [net.input]
    for _ in range(dice.randrange(4, 20)):
        x = made[-1] if dice.random() < 0.7 else dice.choice(made)
        same = [y for y in made if y[2] == x[2] and y[0] != x[0]]
        equal = [y for y in same if y[1] == x[1]]
        way = dice.random()
        if way < 0.15 and equal:
            made.append(net.add(x, dice.choice(equal)))
        elif way < 0.3 and same and x[1] < 200:
            made.append(net.concat([x, dice.choice(same)]))
        else:
            made.append(layer(net, dice, x))
    return net.text()


def verify(path, machine, size):
    sets = [word for memory in BESIDE.get(machine, ("am",))
            for word in ("--set", f"memories.{memory}.size={size}")]
    done = subprocess.run(
        [AMPHORA, "verify", path, "-t", machine, "--json", "--host",
         "interpret", *sets],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    report = json.loads(done.stdout) if done.returncode == 0 else {}
    return done.returncode, report, done.stderr


def wrong(path, machine, size):
    """What is wrong, or None."""
    code, report, said = verify(path, machine, size)
    if code == 3:
        sizes = re.search(r"size=(\w+) would do(?:; (\w+) would not)?", said)
        told = sizes.groups()[:1 if machine in BESIDE else 2] if sizes else ()
        codes = [verify(path, machine, s)[0] for s in told if s]
        return None if codes in ([0], [0, 3]) else f"{sizes}: {codes}"
    if code:
        return f"exit code {code}"
    moved = report["ddr_read_bytes"] + report["ddr_written_bytes"]
    checks = {"not verified": report["ok"],
              "beyond the cap": report["am_peak_bytes"] <= size * len(
                  BESIDE.get(machine, "1")),
              "other bytes than planned": report["ddr_moved_bytes"] == moved,
              "less than the bound": all(
                  report[f"ddr_{kind}bound_bytes"] <= moved
                  for kind in ("", "order_", "apart_"))}
    return ", ".join(what for what, holds in checks.items() if not holds)


def written(folder, name, text):
    path = os.path.join(folder, f"{name}.prototxt")
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    return path


def stem(folder):
    net = networks.Net("stem", 3, 128)
    net.conv(net.input, 32, 3, 2)
    return written(folder, "stem", net.text())


def section(folder):
    """A concat whose members lie in one section of channels."""
    net = networks.Net("section", 16, 24)
    net.concat([net.conv(net.input, 16, 3), net.input])
    return written(folder, "section", net.text())


def odd_sizes(count, folder):
    """Of any number of bytes."""
    for seed in range(count):
        dice = random.Random(seed)
        path = written(folder, f"odd-{seed}", network(1000 + seed))
        machine = (MACHINES + ("template",))[seed % (len(MACHINES) + 1)]
        most = verify(path, machine, 1 << 26)[1]["am_live_bytes"]
        yield path, machine, int(most ** dice.random())
        yield path, machine, dice.randrange(1, most)
    for machine in MACHINES:
        yield TINY, machine, 1
        yield TINY, machine, 1 << 48


def accepted():
    """What is no size, but is taken for one."""
    return [f"{size}: {code}" for size in NO_SIZES
            for code in [verify(TINY, "xdnn-v2-28", size)[0]] if code != 1]


def cases(count, folder):
    """Network, machine, bytes of active memory."""
    for seed in range(count):
        path = written(folder, seed, network(seed))
        machine = MACHINES[seed % len(MACHINES)]
        peak = verify(path, machine, 1 << 26)[1]["am_live_bytes"]
        for part in (0.05, 0.3, 0.7):
            yield path, machine, max(64, int(peak * part) // 64 * 64)
    for size in (262080, 377472, 393216):
        yield DENSE, "xdnn-v3-96", size
    yield TINY, "line-npu", 5518  # no whole unit of alignment
    yield stem(folder), "tile-npu", 64  # single pixels: 131,072 tiles
    yield section(folder), "xdnn-v3-96", 80000
    yield from odd_sizes(count, folder)


def main():
    count = 400 if "--long" in sys.argv[1:] else 4
    no_sizes = accepted()
    print(*no_sizes, sep="\n", end="")
    bad, plans = len(no_sizes), 0
    with tempfile.TemporaryDirectory() as folder:
        for path, machine, size in cases(count, folder):
            what = wrong(path, machine, size)
            plans += 1
            bad += bool(what)
            if what:
                print(f"{os.path.basename(path)} on {machine}, {size} bytes: "
                      f"{what}")
    print(f"{plans} plans, {bad} wrong")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
