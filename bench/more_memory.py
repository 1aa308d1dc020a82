#!/usr/bin/env python3
"""more_memory.py - does more active memory ever cost bytes or cycles?

    bench/more_memory.py [MACHINE [LO:HI:STEP [NETWORK...]]]

One sweep of sizes for each network: at how many steps from one size to the
next the simulated bytes over DDR rise, at how many the cycles, and by how much
at most. Needs build/amphora, or $AMPHORA.
"""
import json
import sys

import tool

SWEEPS = {"xdnn-v2-28": "512K:8M:160K", "xdnn-v2-56": "1M:8M:160K",
          "xdnn-v3-96": "1M:16M:320K"}
NETWORKS = ["googlenet", "resnet50", "squeezenet", "inception-v3",
            "mobilenet-v2", "vgg16"]


def points(network, machine, sizes):
    done = tool.run("explore", network, "-t", machine, "--vary",
                    tool.am(sizes), "--json")
    if done.returncode:
        sys.exit(done.stderr)
    return [p for p in json.loads(done.stdout)["points"]
            if p["status"] == "fits"]


def rises(found, key):
    """By how much it rises, step by step, where it does."""
    return [b[key] / a[key] - 1 for a, b in zip(found, found[1:])
            if b[key] > a[key]]


def main():
    machines = sys.argv[1:2] or list(SWEEPS)
    networks = sys.argv[3:] or [tool.example(n) for n in NETWORKS]
    print(f"{'machine':12}{'network':16}{'steps':>6}{'bytes':>7}{'most':>8}"
          f"{'cycles':>7}{'most':>8}")
    for machine in machines:
        sizes = sys.argv[2] if len(sys.argv) > 2 else SWEEPS[machine]
        for network in networks:
            found = points(network, machine, sizes)
            bytes_, cycles = (rises(found, k) for k in ("ddr_bytes", "cycles"))
            print(f"{machine:12}{tool.name_of(network):16}{len(found) - 1:6}{len(bytes_):7}"
                  f"{max(bytes_, default=0):8.1%}{len(cycles):7}"
                  f"{max(cycles, default=0):8.1%}", flush=True)


if __name__ == "__main__":
    main()
