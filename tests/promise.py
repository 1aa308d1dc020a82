#!/usr/bin/env python3
"""promise.py - for the objective chosen, a larger memory gets no worse plan.

A command looks at its memory's own size and at those of the grid (quarters of
octaves) below it, as many as its effort says. What it takes is never worse, by
its objective, than what the same command takes for a smaller size of the grid,
unless that was made for a size below those that it has looked at. Sizes are
those of the grid and some between them; each case has one objective, all three
with --long. Where all of a network of some length stays, and nothing but its
first load and last store is waited for, the first plan is the answer.
"""
import concurrent.futures
import itertools
import os
import sys
import tempfile

sys.path.insert(0, "bench")
import scale  # noqa: E402
import tool  # noqa: E402

KIB = 1 << 10
OCTAVE, LOOKS = 4, 4  # sizes of the grid; how many are looked at by default
# In KiB.
SIZES = {
    ("tiny", "xdnn-v2-28"): [12, 14, 16, 18, 20, 24, 28, 32],
    ("squeezenet", "xdnn-v2-28"): [512, 640, 700, 768, 896, 1024],
    ("densenet-cell", "xdnn-v3-96"): [320, 384, 448, 512, 600, 640],
    ("squeezenet", "tile-npu"): [192, 224, 256, 300, 320, 384],
    ("tiny", "ring-npu"): [4, 5, 6, 7, 8, 9, 10],
    ("squeezenet", "ring-npu"): [80, 96, 110, 112, 128],
    ("tiny", "line-npu"): [10, 12, 14, 15, 16, 20],
    ("tiny", "stage-npu"): [8, 10, 12, 13, 14, 16, 20],
    ("densenet-cell", "stage-npu"): [48, 56, 64, 80],
    ("squeezenet", "stage-npu"): [192, 224, 250, 256, 320],
}
# More of the objective is allowed where partitions of a memory of another size
# lie elsewhere, so that operands may be read one behind the other; and where
# plans that differ in places alone are timed once.
LITTLE = {"xdnn-v2-28": 0.005, "xdnn-v3-96": 0.005,
          "ring-npu": 0.001, "line-npu": 0.001}
STAGED = {"stage-npu"}  # tensors are planned for a part of the memory
OBJECTIVES = ("balanced", "time", "bytes")
FITS = {"chain": ("xdnn-v2-28", "ring-npu", "template", "vision-npu"),
        "residual": ("xdnn-v2-28", "template", "vision-npu")}


def grid_below(size):
    """The largest size of the grid that is smaller."""
    power = 1 << ((size - 1).bit_length() - 1)
    return max(power * i // OCTAVE for i in range(OCTAVE, 2 * OCTAVE)
               if power * i // OCTAVE < size)


def looked_at(size):
    sizes = [size]
    for _ in range(LOOKS - 1):
        sizes.append(grid_below(sizes[-1]))
    return sizes


def cost(objective, plan):
    cycles, moved = plan["cost"]["cycles"], plan["cost"]["bytes"]
    if objective == "time":
        return cycles
    return moved if objective == "bytes" else (cycles ** 3 * moved) ** 0.25


def worse(machine, objective, plans):
    """Of each size and those below it that it has to be as good as."""
    allowed = LITTLE.get(machine, 0)
    for size, small in itertools.permutations(plans, 2):
        made_for = plans[small]["planned_for_bytes"] or small
        if machine in STAGED:
            made_for = small
        if small not in looked_at(size) or made_for < looked_at(size)[-1]:
            continue
        more = cost(objective, plans[size]) / cost(objective, plans[small]) - 1
        if more > allowed:
            yield f"{size} bytes cost {more:.3%} more than {small}"


def compiled(args):
    network, machine, size, objective, folder = args
    folder = os.path.join(folder, f"{network}-{machine}-{size}-{objective}")
    done = tool.run("compile", tool.example(network), "-t", machine, "--json",
                    "-o", folder, "--objective", objective,
                    *tool.flags([tool.am(size)]))
    if done.returncode:
        sys.exit(f"{network} {machine} {size}: {done.stderr}")
    return tool.json.loads(done.stdout)


def slow(folder):
    """Networks of 50 layers and more that are searched though they fit."""
    for kind, machines in FITS.items():
        path, _ = scale.written(kind, 100, folder)
        for machine in machines:
            plan = tool.json.loads(tool.run(
                "compile", path, "-t", machine, "--json", "-o", folder).stdout)
            tried = plan["effort"]["configurations"]
            if tried > 1 or plan["ddr_moved_bytes"] > plan["ddr_bound_bytes"]:
                yield f"{kind} {machine}: {tried} configurations tried"


def main():
    wrong, checked = [], 0
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(2) as pool:
        for i, ((network, machine), sizes) in enumerate(SIZES.items()):
            own = OBJECTIVES if "--long" in sys.argv[1:] else [
                OBJECTIVES[i % len(OBJECTIVES)]]
            for objective in own:
                at = [size * KIB for size in sizes]
                plans = dict(zip(at, pool.map(compiled, [
                    (network, machine, size, objective, folder)
                    for size in at])))
                wrong += [f"{network} {machine} {objective}: {what}"
                          for what in worse(machine, objective, plans)]
                checked += len(plans)
        wrong += slow(folder)
    print(f"{checked} plans", *wrong, sep="\n")
    sys.exit(1 if wrong or not checked else 0)


if __name__ == "__main__":
    main()
