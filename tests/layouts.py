#!/usr/bin/env python3
"""layouts.py - random networks on machines whose volumes lie otherwise.

Each point is a network of small_memories.py, a machine, a layout for each of
its memories, and a size of active memory between the least and all that the
network takes. Layouts have channels in sections or whole, outermost or not,
rows and columns in parts, clipped or not, rounded or not. Every listing
computes what the network computes, without a violation: exit code 0, or 3 where
nothing fits. First the cases in which channels of a short section were taken
for a volume of their own. --long has many more; --seed N runs one point and
says what it is.
"""
import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "bench"))
import small_memories  # noqa: E402
import networks  # noqa: E402

MACHINES = ("ring-npu", "line-npu", "stage-npu", "tile-npu", "math-engine",
            "xdnn-v2-28")
CLIPPED = "[c/8, h, w, {c%8: {clip: true}}]"
# channels, size, layout, machine, bytes of active memory
KNOWN = tuple(
    (channels, 16, CLIPPED.replace("8", split), machine, size)
    for channels, split in ((12, "8"), (15, "4"), (20, "16"))
    for machine in ("ring-npu", "stage-npu", "tile-npu")
    for size in (2000, 3000, 4600))
MUTANT_POINTS = (3, 8, 11, 14, 60, 65, 67, 80, 109)  # seeds, see layout_mutants.py
SHORT, LONG = 30, 4000


def axis(dice, name, inner):
    extra = []
    if inner and dice.random() < 0.6:
        extra.append("clip: true")
    if dice.random() < 0.3:
        extra.append(f"round: {dice.choice((2, 3, 4, 8))}")
    return f"{{{name}: {{{', '.join(extra)}}}}}" if extra else name


def layout(dice):
    axes = []
    for name, odds in (("c", 0.7), ("h", 0.15), ("w", 0.3)):
        if dice.random() >= odds:
            axes.append(axis(dice, name, False))
            continue
        split = dice.choice((2, 3, 4, 5, 8, 16))
        axes += [axis(dice, f"{name}/{split}", False),
                 axis(dice, f"{name}%{split}", True)]
    dice.shuffle(axes)
    if dice.random() < 0.8:
        axes.sort(key=lambda a: not a.lstrip("{").startswith(("c/", "c:"))
                  and a != "c")
    return "[" + ", ".join(axes) + "]"


def machine(dice, base):
    """A hwspec that lays volumes out by one layout, or by two."""
    inside = layout(dice)
    outside = layout(dice) if dice.random() < 0.5 else inside
    memories = {"am": "near", "ddr": "far", "inputs": "far", "outputs": "far"}
    lines = [f"extends: {base}", "memories:"]
    lines += [f"  {memory}: {{layout: {name}}}"
              for memory, name in memories.items()]
    return "\n".join(lines + [
        "layouts:", f"  near: {{axes: {inside}}}",
        f"  far: {{axes: {outside}}}", ""])


def written(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    return path


def wrong(network, target, size):
    """What is wrong, or None; None, too, where nothing fits."""
    code, report, said = small_memories.verify(network, target, size)
    if code in (0, 3):
        return None if code or report["ok"] else "not verified"
    return f"exit code {code}: {said.strip()[:300]}"


def random_point(seed, folder):
    dice = random.Random(seed)
    base = dice.choice(MACHINES)
    network = written(os.path.join(folder, "net.prototxt"),
                      small_memories.network(seed))
    target = written(os.path.join(folder, "machine.yaml"), machine(dice, base))
    most = small_memories.verify(network, target, 1 << 25)[1]
    if not most:
        return network, target, 1 << 25
    return network, target, int(most["am_live_bytes"] ** dice.uniform(0.7, 1))


def known_point(case, folder):
    channels, size, axes, base, limit = case
    net = networks.Net("known", channels, size)
    x = net.conv(net.conv(net.input, channels, 3), channels, 3)
    net.concat([net.pool(x, "MAX", 2, 2, pad=0),
                net.conv(x, channels, 3, 2)])
    network = written(os.path.join(folder, "net.prototxt"), net.text())
    target = written(os.path.join(folder, "machine.yaml"),
                     f"extends: {base}\nmemories:\n" + "".join(
                         f"  {m}: {{layout: all}}\n"
                         for m in ("am", "ddr", "inputs", "outputs"))
                     + f"layouts:\n  all: {{axes: {axes}}}\n")
    return network, target, limit


def point_of(case, folder):
    """Of a known case, or a seed."""
    return (random_point if isinstance(case, int) else known_point)(case,
                                                                    folder)


def points(arguments, folder):
    if "--seed" in arguments:
        seed = int(arguments[arguments.index("--seed") + 1])
        point = random_point(seed, folder)
        for path in point[:2]:
            with open(path, encoding="ascii") as file:
                print(file.read())
        print(point[2], "bytes")
        yield f"seed {seed}", point
        return
    for case in KNOWN:
        yield str(case), known_point(case, folder)
    first = 0
    if "--from" in arguments:
        first = int(arguments[arguments.index("--from") + 1])
    for seed in range(first, first + (LONG if "--long" in arguments else SHORT)):
        yield f"seed {seed}", random_point(seed, folder)


def main():
    count = bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, point in points(sys.argv[1:], folder):
            what = wrong(*point)
            count += 1
            if what:
                print(f"{name}: {what}", flush=True)
                bad += 1
    print(f"{count} points, {bad} wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
