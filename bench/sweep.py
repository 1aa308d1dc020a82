#!/usr/bin/env python3
"""sweep.py - does more active memory ever cost bytes, or a fit?

    python3 bench/sweep.py [MACHINE] [SIZES] [NETWORK...]

Ten networks x 50 sizes, evenly from an eighth of the peak to the peak: what
the plan moves over DDR must never rise with the size, and what fits into less
must fit into more. One line a network; exits 1 if something rises.
"""
import sys
import tempfile

import residency
import tool

EXAMPLES = ["squeezenet", "vgg16", "yolov2-608", "densenet-cell"]
GENERATED = ["nasnet-imagenet", "darts-imagenet", "u-net"]
PUBLISHED = ["resnet-50", "googlenet", "mobilenet-v2"]


def moved(path, machine, size, folder):
    plan = tool.compiled(path, machine, folder, tool.am(size))
    return plan and (plan["ddr_moved_bytes"], plan["am_bound_bytes"])


def sweep(path, machine, sizes, folder):
    peak = moved(path, machine, tool.ENDLESS, folder)[1]
    rises, least, slowest = [], None, 0
    for i in range(sizes):
        size = peak // 8 + (peak - peak // 8) * i // (sizes - 1)
        size = size // 1024 * 1024
        found = moved(path, machine, size, folder)
        if least is not None and (found is None or found[0] > least):
            rises.append((size, found and found[0], least))
        elif found:
            least = found[0]
    print(f"{tool.name_of(path):24} {len(rises)} of {sizes} rise", *rises[:3], flush=True)
    return len(rises)


def main():
    machine = sys.argv[1] if len(sys.argv) > 1 else residency.MACHINE
    sizes = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    with tempfile.TemporaryDirectory() as folder:
        paths = sys.argv[3:] or [
            residency.network_file(name, folder)
            for name in PUBLISHED + GENERATED] + [
            tool.example(name) for name in EXAMPLES]
        rises = sum(sweep(path, machine, sizes, folder) for path in paths)
    print(f"{rises} rises")
    sys.exit(1 if rises else 0)


if __name__ == "__main__":
    main()
