#!/usr/bin/env python3
"""overlap.py - how much of the transfers hides behind the engines.

    python3 bench/overlap.py [-m MACHINE]... [NETWORK...]

Networks x machines x active memory of 75, 50, 25 % of what a plan without
spills takes. `time` are simulated cycles, `dma` the sum of all transfers
(tiles that instructions fetch themselves included), `work` the sum of what all
engines are busy (array, ports and weights). Were everything overlapped, the
larger of the two were the time: `ratio` is time over that.

Where one of the sums is more than STARVED times the other, one side starves:
there is nothing to hide, or nothing to hide it behind, and ratio comes close
to 1 by itself. Such rows are printed and marked, and left out of the mean.
Layers of the host take no time here, but everything waits for them; what lies
in front of one cannot overlap what lies behind it.
"""
import argparse
import json
import os
import tempfile

import residency
import traffic

PARTS = (0.75, 0.50, 0.25)
STARVED = 3
MACHINES = ["xdnn-v2-28", "xdnn-v2-56", "xdnn-v3-96", "ring-npu", "template"]
EXAMPLES = ["vgg16", "yolov2-608"]


def memory_of(machine):
    """The path of what shrinks: the first active memory's size."""
    return ("memories.fast.size" if machine == "template"
            else "memories.am.size")


def simulate(network, machine, size, folder):
    setting = ["--set", f"{memory_of(machine)}={size}"]
    done = traffic.run("compile", network, "-t", machine, "-o", folder,
                       "--json", *setting)
    if done.returncode:
        return None
    report = json.loads(done.stdout)
    done = traffic.run("simulate", report["listing"], "-t", machine, "--json",
                       "--memory-only", *setting)
    sim = json.loads(done.stdout)
    if sim["violations"]:
        print("violations:", sim["violation_list"][:1])
        return None
    sim["peak"] = report["am_bound_bytes"]
    sim["alloc_ms"] = report.get("ms", {}).get("alloc", 0)
    return sim


def sizes_of(network, machine, folder):
    full = simulate(network, machine, 1 << 30, folder)
    return [int(full["peak"] * part) // 1024 * 1024
            for part in PARTS] if full else []


def rows(network, machine, folder, counted, everything):
    name = os.path.basename(network).rsplit(".", 1)[0][:20]
    for size in sizes_of(network, machine, folder):
        sim = simulate(network, machine, size, folder)
        if not sim:
            print(f"{name:20} {os.path.basename(machine):11} {size:9} no fit",
                  flush=True)
            continue
        dma, work = sim["transfer_cycles"], sim["busy_cycles"]
        ratio = sim["cycles"] / max(dma, work)
        everything.append(ratio)
        starves = max(dma, work) > STARVED * min(dma, work)
        if not starves:
            counted.setdefault(machine, []).append(ratio)
        print(f"{name:20} {os.path.basename(machine):11} {size:9} "
              f"{sim['cycles']:11} {dma:11} {work:11} {ratio:6.3f} "
              f"{'starves' if starves else '       '} "
              f"{len(sim['host_layers']):3} host {sim['alloc_ms']:7.0f} ms",
              flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-m", action="append")
    parser.add_argument("network", nargs="*")
    args = parser.parse_args()
    counted, everything = {}, []
    print(f"{'network':20} {'machine':11} {'AM':>9} {'time':>11} {'dma':>11} "
          f"{'work':>11} {'ratio':>6}")
    with tempfile.TemporaryDirectory() as folder:
        networks = args.network or [
            residency.network_file(name, folder)
            for name in residency.NETWORKS] + [
            f"examples/{name}.prototxt" for name in EXAMPLES]
        for machine in args.m or MACHINES:
            for network in networks:
                rows(network, machine, folder, counted, everything)
    for machine, ratios in {**counted, "*": everything}.items():
        print(f"{machine}: mean {sum(ratios) / len(ratios):.3f}, worst "
              f"{max(ratios):.3f} of {len(ratios)} rows where neither starves")
    ratios = [r for of in counted.values() for r in of]
    if ratios:
        print(f"all: mean {sum(ratios) / len(ratios):.3f} of {len(ratios)}")


if __name__ == "__main__":
    main()
