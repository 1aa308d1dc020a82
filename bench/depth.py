#!/usr/bin/env python3
"""depth.py - what depth-first groups save.

    python3 bench/depth.py [MACHINE] [NETWORK...]

Networks x active memory of a half, a quarter, an eighth of the peak: bytes over
DDR of our plan, counted by the simulator's rules, beside the least that any plan
can move which completes each layer before the next begins, and beside the
compulsory ones. A quotient below 1 is what no plan layer by layer reaches.
"""
import json
import os
import sys
import tempfile

import residency
import traffic

NETWORKS = ["resnet-50", "mobilenet-v2", "googlenet", "densenet-121", "u-net",
            "segnet"]
EXAMPLES = ["vgg16", "vgg-e-stem"]


def plan(path, machine, size, folder):
    done = traffic.run("compile", path, "-t", machine, "-o", folder, "--json",
                       "--set", f"memories.am.size={size}")
    return json.loads(done.stdout) if done.returncode == 0 else None


def show(path, machine, folder):
    whole = plan(path, machine, 1 << 30, folder)
    for part in (2, 4, 8):
        size = whole["am_bound_bytes"] // part // 64 * 64
        ours = plan(path, machine, size, folder)
        if not ours:
            print(f"{os.path.basename(path):28} {size:>10}  does not fit")
            continue
        moved, layers = ours["ddr_moved_bytes"], ours["ddr_layers_bound_bytes"]
        print(f"{os.path.basename(path):28} {size:>10} {moved:>11} "
              f"{layers:>11} {ours['ddr_plan_compulsory_bytes']:>10} "
              f"{moved / layers:6.2f}", flush=True)


def main():
    machine = sys.argv[1] if len(sys.argv) > 1 else residency.MACHINE
    print(f"{'network':28} {'AM':>10} {'ours':>11} {'by layers':>11} "
          f"{'compulsory':>10} {'quot.':>6}")
    with tempfile.TemporaryDirectory() as folder:
        paths = sys.argv[2:] or [
            residency.network_file(name, folder) for name in NETWORKS] + [
            f"examples/{name}.prototxt" for name in EXAMPLES]
        for path in paths:
            show(path, machine, folder)


if __name__ == "__main__":
    main()
