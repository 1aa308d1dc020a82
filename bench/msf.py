#!/usr/bin/env python3
"""msf.py - memory against products, beside msf-CNN's published points.

    python3 bench/msf.py [-m MACHINE]... [--verify] [NETWORK...]

Networks of msf-CNN (NeurIPS 2025; ../shared/data/msf), int8: the least active
memory in which nothing but the image and the result moves, and the products
that the plan computes, as a multiple of the network's. Theirs are the memory of
all maps for a limit on products, weights elsewhere, the image streamed: the
same question. `weights`: bytes of weights that instructions read, as a multiple
of all weights, of plans that roll row by row; theirs reads them once for each
patch as well, and does not say.
For each of their points ours with no more products: below it or not.
"""
import argparse
import os
import sys
import tempfile

import tool

DATA = os.path.join(tool.ROOT, "..", "shared", "data", "msf")
MACHINES = ("line-npu", "ring-npu")
# network: (bytes, products as a multiple of the network's), by their limits
PUBLISHED = {
    "mbv2": ((181440, 1.00), (83065, 1.02), (67905, 1.10), (21288, 1.30),
             (15340, 1.38), (13926, 1.56), (7887, 1.68)),
    "vww5": ((89600, 1.00), (38576, 1.02), (32792, 1.04), (26128, 1.11),
             (17760, 1.30), (13376, 1.35), (12000, 1.96)),
    "m320": ((247808, 1.00), (190096, 1.04), (156672, 1.37), (94184, 1.45),
             (62880, 2.02), (42643, 2.69)),
}
SETS = ("machine.element=1", "tiling.weights_stay=true")


def plan_in(path, machine, size, folder):
    """The plan, if nothing moves but what must; None."""
    plan = tool.compiled(path, machine, folder, *SETS, tool.am(size),
                         objective="bytes")
    return plan if plan and plan["ddr_moved_bytes"] == plan["ddr_bound_bytes"] \
        else None


def least(path, machine, folder):
    """The least memory in which there is one, to 16 bytes, and the plan."""
    low, high, best = 0, tool.ENDLESS, None
    while high - low > 16:
        size = (low + high) // 2 // 16 * 16
        plan = plan_in(path, machine, size, folder)
        low, high, best = (low, size, plan) if plan else (size, high, best)
    return high, best


def show(name, machine, folder, verify):
    path = os.path.join(DATA, f"{name}.prototxt")
    size, plan = least(path, machine, folder)
    run = tool.counted(path, machine, folder, *SETS, tool.am(size),
                       objective="bytes")
    good = not verify or tool.verified(path, machine, *SETS, tool.am(size),
                                       objective="bytes")
    again = plan["computed_again_bytes"]
    print(f"{name} on {machine}: {size:,} bytes, products x "
          f"{'1.00' if not again else 'more'}, {plan['instructions']} "
          f"instructions, weights read {run['weights_read_bytes']:,}"
          f"{'' if good else '  WRONG'}")
    for theirs, factor in PUBLISHED[name]:
        print(f"    msf-CNN {theirs:>8,} x {factor:.2f}: "
              f"{'below' if size < theirs else 'ABOVE'} ({size / theirs:.2f})")
    sys.stdout.flush()
    return good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-m", "--machine", action="append")
    parser.add_argument("--verify", action="store_true", help="by value")
    parser.add_argument("networks", nargs="*", default=list(PUBLISHED))
    args = parser.parse_args()
    good = True
    with tempfile.TemporaryDirectory() as folder:
        for name in args.networks:
            for machine in args.machine or MACHINES:
                good &= show(name, machine, folder, args.verify)
    return not good


if __name__ == "__main__":
    sys.exit(main())
