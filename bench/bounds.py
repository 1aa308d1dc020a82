#!/usr/bin/env python3
"""bounds.py - bytes over DDR beside the lower bounds that are known.

    python3 bench/bounds.py [MACHINE [NETWORK...]]

Networks x active memory of 90, 75, 50, 25 % of the peak: bytes that the listing
moves, counted by running it; the bound for any listing (`any`), for plans in
this order (`order`), for plans that put no rows together in active memory
(`apart`), for plans in any order that compute nothing twice (`once`), for plans
layer by layer (`layers`). again: bytes of results that the plan computes
more than once; half of what it falls short of `once` it must compute again, at
least. `over`: moved by the highest bound that holds for the plan; 1.00 is the
best there is. Exits 1 where a plan moves less than a bound that holds for it.
"""
import sys
import tempfile

import residency
import tool
import traffic

KINDS = ("", "order_", "apart_", "once_", "layers_")


def show(path, machine, folder, over):
    """Prints the rows of a network; whether all bounds hold."""
    whole = tool.compiled(path, machine, folder, tool.am(tool.ENDLESS))
    good = True
    for part in traffic.PARTS:
        size = int(whole["am_bound_bytes"] * part) // 1024 * 1024
        ours = tool.counted(path, machine, folder, tool.am(size))
        print(f"{tool.name_of(path):22} {size:>10} {part:4.0%}", end=" ")
        if not ours:
            print("does not fit")
            continue
        plan, moved = ours["plan"], ours["moved"]
        bound = [plan[f"ddr_{kind}bound_bytes"] for kind in KINDS]
        least, order, apart, once, _ = bound
        again = plan["computed_again_bytes"]
        best = max([least, order, apart] + ([] if again else [once]))
        good &= moved >= best and moved + 2 * again >= once
        over.append((moved / best, best > least))
        print(f"{moved:>11} " + " ".join(f"{b:>11}" for b in bound) +
              f" {again:>10} {over[-1][0]:7.2f}", flush=True)
    return good


def main():
    machine = sys.argv[1] if len(sys.argv) > 1 else residency.MACHINE
    print(f"{'network':22} {'AM':>10} {'part':>4} {'moved':>11} "
          f"{'any':>11} {'order':>11} {'apart':>11} {'once':>11} "
          f"{'layers':>11} {'again':>10} {'over':>7}")
    good, over = True, []
    with tempfile.TemporaryDirectory() as folder:
        for path in sys.argv[2:] or [residency.network_file(name, folder)
                                     for name in residency.NETWORKS]:
            good &= show(path, machine, folder, over)
    if over:
        ratios = [ratio for ratio, _ in over]
        print(f"geometric mean of moved / bound: "
              f"{tool.geometric_mean(ratios):.2f} over {len(over)} rows, "
              f"{sum(more for _, more in over)} of them with more than what is "
              f"compulsory")
    return not good


if __name__ == "__main__":
    sys.exit(main())
