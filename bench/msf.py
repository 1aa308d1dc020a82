#!/usr/bin/env python3
"""msf.py - memory against products, beside msf-CNN's published points.

    python3 bench/msf.py [-m MACHINE]... [--verify] [NETWORK...]

Networks of msf-CNN (NeurIPS 2025; ../shared/data/msf), int8: the least active
memory in which all maps stay on chip, for a limit on products, as a multiple of
the network's (`--recompute`). No map but the result can leave: backing memory
has 16 bytes. Theirs are the memory of all maps for a limit on products, weights
elsewhere, the image streamed: the same question. `image`: bytes that are read
of it, with halos, as a multiple of it; `weights`: bytes of weights that
instructions read, as a multiple of all weights; theirs reads both again for
each patch as well, and does not say how often.
For each of their points: whether there is a plan in less memory with no more
products.
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
SETS = ("machine.element=1", "tiling.weights_stay=true",
        "memories.ddr.size=16")


class Case:
    def __init__(self, name, machine, folder):
        self.path = os.path.join(DATA, f"{name}.prototxt")
        self.machine, self.folder = machine, folder

    def sets(self, size):
        return (*SETS, tool.am(size))

    def plan(self, size, factor):
        """The plan with at most so many products; None."""
        return tool.compiled(self.path, self.machine, self.folder,
                             *self.sets(size), objective="bytes",
                             more=("--recompute", str(factor)))

    def least(self, factor, high):
        """The least memory in which there is one, to 16 bytes, and the plan;
        `high` is enough."""
        low, best = 0, self.plan(high, factor)
        while best and high - low > 16:
            size = (low + high) // 2 // 16 * 16
            plan = self.plan(size, factor)
            low, high, best = (low, size, plan) if plan else (size, high, best)
        return high, best

    def weights(self, size, factor):
        """Bytes of weights that are read, those of all layers; whether values
        are right."""
        run = tool.verified(self.path, self.machine, *self.sets(size),
                            objective="bytes",
                            more=("--recompute", str(factor)))
        return run["weights_read_bytes"]


def factor_of(plan):
    return plan["products"] / plan["engine_products"]


def line(name, machine, size, plan, read):
    image = plan["ddr_moved_bytes"] - plan["ddr_bound_bytes"]
    print(f"{name} on {machine}: {size:,} bytes, products x "
          f"{factor_of(plan):.2f}, {plan['instructions']:,} instructions, "
          f"image again {image:,} bytes, weights read {read:,}", flush=True)


def show(name, machine, folder, verify):
    """How many of their points are not below."""
    case = Case(name, machine, folder)
    found, above = [], 0
    for factor in (1.0, max(f for _, f in PUBLISHED[name])):
        size, plan = case.least(factor, found[-1][0] if found else 1 << 20)
        read = (case.weights(size, factor) if verify else
                tool.simulated(plan, machine,
                               *case.sets(size))["weights_read_bytes"])
        line(name, machine, size, plan, read)
        found.append((size, factor_of(plan)))
    for theirs, factor in PUBLISHED[name]:
        there = any(size < theirs and own <= factor for size, own in found)
        plan = None if there else case.plan(theirs - 1, factor)
        if plan:
            found.append((theirs - 1, factor_of(plan)))
        best = min(size for size, own in found if own <= factor)
        above += best >= theirs
        print(f"    msf-CNN {theirs:>8,} x {factor:.2f}: "
              f"{'below' if best < theirs else 'ABOVE'}, {best:,}", flush=True)
    return above


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-m", "--machine", action="append")
    parser.add_argument("--verify", action="store_true", help="by value")
    parser.add_argument("networks", nargs="*", default=list(PUBLISHED))
    args = parser.parse_args()
    above = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in args.networks:
            for machine in args.machine or MACHINES:
                above += show(name, machine, folder, args.verify)
    return above > 0


if __name__ == "__main__":
    sys.exit(main())
