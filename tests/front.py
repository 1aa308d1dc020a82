#!/usr/bin/env python3
"""front.py - the plan that is taken is not beaten by one that was found.

SqueezeNet on six machines, by each objective, as bench/front.py runs it: no
plan of its own front, or of another objective, takes fewer cycles and no more
bytes, or fewer bytes and no more cycles; and by its objective it is not above
those of the others. With --long a second network and size.
"""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "bench"))
import front  # noqa: E402
import tool  # noqa: E402

NOISE = 1.002  # partitions lie elsewhere in a smaller memory (docs/tuning.md)


def wrong_in(cell, plans):
    """Says how often a plan of {objective: plan} is not the best."""
    wrong = 0
    for objective, plan in plans.items():
        for other in plan["front"] + list(plans.values()):
            if front.beats(other, plan):
                print(f"{cell} {objective}: {plan['cycles']:,} cycles, "
                      f"{plan['bytes']:,} bytes are beaten by "
                      f"{other['cycles']:,}, {other['bytes']:,}")
                wrong += 1
        least = min(front.cost(objective, p) for p in plans.values())
        if front.cost(objective, plan) > NOISE * least:
            print(f"{cell}: {objective} {front.cost(objective, plan):,.0f}, "
                  f"{least:,.0f} by another objective")
            wrong += 1
    return wrong


def main():
    long = "--long" in sys.argv[1:]
    wrong = cells = 0
    with tempfile.TemporaryDirectory() as folder:
        for machine, sizes in front.MACHINES.items():
            for name in ("squeezenet", "mobilenet-v2")[:1 + long]:
                for size in sizes[:1 + long]:
                    where = (front.network_file(name, folder), machine,
                             size * front.KIB, folder)
                    plans = {o: front.measured(tool.AMPHORA, *where,
                                               "--front", "--objective", o)
                             for o in front.OBJECTIVES}
                    if None in plans.values():
                        continue
                    cells += 1
                    wrong += wrong_in(f"{name} {machine} {size}", plans)
    print(f"{cells} networks on machines, {wrong} wrong")
    return wrong > 0 or cells < 6


if __name__ == "__main__":
    sys.exit(main())
