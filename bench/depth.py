#!/usr/bin/env python3
"""depth.py - what depth-first groups save.

    python3 bench/depth.py [MACHINE] [NETWORK...]

Networks x active memory of a half, a quarter, an eighth of the peak: bytes over
DDR of our plan, counted by running the listing, beside the least that any plan
can move which completes each layer before the next begins, and beside the
compulsory ones. A quotient below 1 is what no plan layer by layer reaches.
"""
import sys
import tempfile

import residency
import tool

NETWORKS = ["resnet-50", "mobilenet-v2", "googlenet", "densenet-121", "u-net",
            "segnet"]
EXAMPLES = ["vgg16", "vgg-e-stem"]


def show(path, machine, folder):
    whole = tool.compiled(path, machine, folder, tool.am(tool.ENDLESS))
    for part in (2, 4, 8):
        size = whole["am_bound_bytes"] // part // 64 * 64
        ours = tool.counted(path, machine, folder, tool.am(size))
        print(f"{tool.name_of(path):28} {size:>10}", end=" ")
        if not ours:
            print(" does not fit")
            continue
        plan = ours["plan"]
        layers = plan["ddr_layers_bound_bytes"]
        print(f"{ours['moved']:>11} {layers:>11} "
              f"{plan['ddr_bound_bytes']:>10} "
              f"{ours['moved'] / layers:6.2f}", flush=True)


def main():
    machine = sys.argv[1] if len(sys.argv) > 1 else residency.MACHINE
    print(f"{'network':28} {'AM':>10} {'ours':>11} {'by layers':>11} "
          f"{'compulsory':>10} {'quot.':>6}")
    with tempfile.TemporaryDirectory() as folder:
        paths = sys.argv[2:] or [
            residency.network_file(name, folder) for name in NETWORKS] + [
            tool.example(name) for name in EXAMPLES]
        for path in paths:
            show(path, machine, folder)


if __name__ == "__main__":
    main()
