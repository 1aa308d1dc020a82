#!/usr/bin/env python3
"""overlap.py - how much of the transfers hides behind the engines.

    python3 bench/overlap.py [-m MACHINE]... [-b SHARE]... [-s BYTES]... [-p]
                             [-n IMAGES] [-o OBJECTIVE] [NETWORK...]

Networks x machines x active memory of 75, 50, 25 % of what a plan without
spills takes; -s BYTES: of these. Plans are those of `--objective time`, or -o.
`time` are simulated cycles, `dma` the sum of all transfers (tiles that
instructions fetch themselves included), `work` the sum of what all engines are
busy (array, ports and weights). Were everything overlapped, the larger of the
two were the time: `ratio` is time over that. `plain` is the same
with `tiling.overlap=false`, where the machine has that key (with -p).

Where one of the sums is more than STARVED times the other, one side starves:
there is nothing to hide, or nothing to hide it behind, and ratio comes close
to 1 by itself. On the shipped machines it is mostly the transfers that are
few. So -b SHARE gives DDR the bandwidth with which `dma` would be SHARE of
`work` if each byte took its time: -b 0.5 is balanced, -b 1 leaves no slack.
With -n, `images` is the ratio of a listing of so many images, one behind the
other (`compile --images`): the first one's loads and the last one's stores,
which nothing can hide, weigh the less the more there are.
On stage-npu, of the class of SoMa's edge machine, weights move over the same
wires; where they come late in the network, active memory bounds how much of
them can be there before the work that they could hide behind is over.
Means are over all rows, and over those where neither starves.
Layers of the host take no time here, but everything waits for them; what lies
in front of one cannot overlap what lies behind it, but on stage-npu. `alloc` is
the planner's time.
"""
import argparse
import collections
import tempfile

import residency
import tool

PARTS = (0.75, 0.50, 0.25)
STARVED = 3
MACHINES = ["xdnn-v2-28", "xdnn-v2-56", "ring-npu", "template", "xdnn-v3-96",
            "stage-npu"]
EXAMPLES = ["vgg16", "yolov2-608"]
SIZE = {"template": "memories.fast.size"}  # what shrinks, if not am
# its tiles take fractions of active memory: a plan with too much of it is none
SIZES = {"xdnn-v3-96": [6 << 20, 4 << 20, 3 << 20],
         "tile-npu": [1 << 20, 512 << 10, 256 << 10],
         "stage-npu": [8 << 20]}
# machines that hold few instructions: enough for several images
LIMITED = ("xdnn-v2-28", "xdnn-v2-56", "xdnn-v3-96")
LIMITLESS = ["limits.instructions=1000000"]
OBJECTIVE = ["time"]  # of plans: -o
Counted = collections.namedtuple("Counted", "machine ratio starves images")
MEMORIES = ("ddr", "inputs", "outputs")
BANDWIDTH = {"xdnn-v2-28": 17.28e9, "xdnn-v2-56": 17.28e9, "ring-npu": 1.6e9,
             "line-npu": 1.6e9, "tile-npu": 8e9, "stage-npu": 16e9, "template": 3.2e9,
             "xdnn-v3-96": 17.28e9}  # as they have it


def simulate(network, machine, size, folder, *sets, images=1):
    path = SIZE.get(machine, "memories.am.size")
    sim = tool.counted(network, machine, folder, f"{path}={size}", *sets,
                       images=images, objective=OBJECTIVE[0])
    if sim:
        sim["dma"], sim["work"] = sim["transfer_cycles"], sim["busy_cycles"]
        sim["ratio"] = sim["cycles"] / max(sim["dma"], sim["work"])
    return sim


def sizes_of(network, machine, folder):
    if machine in SIZES:
        return SIZES[machine]
    full = simulate(network, machine, tool.ENDLESS, folder)
    return [int(full["plan"]["am_bound_bytes"] * part) // 1024 * 1024
            for part in PARTS] if full else []


def bandwidth_for(share, sim, machine):
    """Settings with which the transfers take that share of the work."""
    bytes_a_second = BANDWIDTH[machine] * sim["dma"] / (share * sim["work"])
    return [f"memories.{memory}.bandwidth={bytes_a_second / 1e6:.3f}MB/s"
            for memory in MEMORIES]


def rows(network, machine, folder, shares=(), plainly=False, images=1):
    """Prints them; a Counted of each."""
    name = tool.name_of(network)[:20]
    for size in sizes_of(network, machine, folder):
        own = simulate(network, machine, size, folder)
        if not own:
            continue
        for share in shares or [None]:
            sets = bandwidth_for(share, own, machine) if share else []
            sim = simulate(network, machine, size, folder, *sets)
            if not sim:
                continue
            plain = plainly and simulate(network, machine, size, folder, *sets,
                                          "tiling.overlap=false")
            more = LIMITLESS if machine in LIMITED else []
            several = images > 1 and simulate(network, machine, size, folder,
                                              *sets, *more, images=images)
            yield print_row(name, machine, size, sim, plain, several)


def print_row(name, machine, size, sim, plain, several):
    dma, work = sim["dma"], sim["work"]
    starves = max(dma, work) > STARVED * min(dma, work)
    print(f"{name:20} {tool.name_of(machine):11} {size:9} "
          f"{sim['cycles']:11} {dma:11} {work:11} {sim['ratio']:6.3f} "
          f"{plain['ratio'] if plain else 0:6.3f} "
          f"{several['ratio'] if several else 0:6.3f} "
          f"{'starves' if starves else '':7} {len(sim['host_layers']):3} host "
          f"{sim['plan']['ms']['alloc']:6.0f} ms", flush=True)
    return Counted(machine, sim["ratio"], starves,
                   several["ratio"] if several else None)


def mean(ratios):
    return (f"{sum(ratios) / len(ratios):.3f} (worst {max(ratios):.3f}) of "
            f"{len(ratios)} rows" if ratios else "of no row")


def of_images(counted):
    return [c.images for c in counted if c.images]


def heading():
    print(f"{'network':20} {'machine':11} {'AM':>9} {'time':>11} {'dma':>11} "
          f"{'work':>11} {'ratio':>6} {'plain':>6} {'images':>6}")


def means(machines, counted, several=False):
    for machine in machines + [None]:
        of = [c for c in counted if machine in (None, c.machine)]
        both = [c for c in of if not c.starves]
        print(f"{machine or 'all'}: mean {mean([c.ratio for c in of])}; where "
              f"neither starves {mean([c.ratio for c in both])}")
        if several:
            print(f"    several images: mean {mean(of_images(of))}; where "
                  f"neither starves {mean(of_images(both))}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-m", action="append")
    parser.add_argument("-b", action="append", type=float)
    parser.add_argument("-p", action="store_true")
    parser.add_argument("-o", default="time")
    parser.add_argument("-s", action="append", type=int)
    parser.add_argument("-n", type=int, default=1)
    parser.add_argument("network", nargs="*")
    args = parser.parse_args()
    OBJECTIVE[0] = args.o
    counted = []
    heading()
    with tempfile.TemporaryDirectory() as folder:
        networks = args.network or [
            residency.network_file(name, folder)
            for name in residency.NETWORKS] + [
            tool.example(name) for name in EXAMPLES]
        for machine in args.m or MACHINES:
            if args.s:
                SIZES[machine] = args.s
            for network in networks:
                counted += rows(network, machine, folder, args.b, args.p,
                                args.n)
    means(args.m or MACHINES, counted, args.n > 1)


if __name__ == "__main__":
    main()
