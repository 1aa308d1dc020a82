#!/usr/bin/env python3
"""bounds.py - bytes over DDR beside the lower bounds that are known.

    python3 bench/bounds.py [MACHINE [NETWORK...]]

Networks x active memory of 90, 75, 50, 25 % of the peak: bytes that the listing
moves, counted by running it; what is compulsory; the bound for any plan in this
order (`any`), for plans in any order that compute nothing twice (`once`), for
plans layer by layer (`layers`). again: bytes of results that the plan computes
more than once; half of what it falls short of `once` it must compute again, at
least. `over`: moved by the highest bound that holds for the plan; 1.00 is the
best there is. Exits 1 where a plan moves less than a bound that holds for it.
"""
import sys
import tempfile

import residency
import tool
import traffic


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
        least, once, layers = (plan[f"ddr_{k}bound_bytes"]
                               for k in ("", "once_", "layers_"))
        again = plan["computed_again_bytes"]
        best = least if again else max(least, once)
        good &= moved >= best and moved + 2 * again >= once
        over.append((moved / best, best > plan["ddr_plan_compulsory_bytes"]))
        print(f"{moved:>11} {plan['ddr_plan_compulsory_bytes']:>11} "
              f"{least:>11} {once:>11} {layers:>11} {again:>10} "
              f"{over[-1][0]:7.2f}", flush=True)
    return good


def main():
    machine = sys.argv[1] if len(sys.argv) > 1 else residency.MACHINE
    print(f"{'network':22} {'AM':>10} {'part':>4} {'moved':>11} "
          f"{'compulsory':>11} {'any':>11} {'once':>11} {'layers':>11} "
          f"{'again':>10} {'over':>7}")
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
