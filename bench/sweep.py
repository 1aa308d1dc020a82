#!/usr/bin/env python3
"""sweep.py - does more of a machine ever cost a fit, or the objective?

    python3 bench/sweep.py [-v am|bandwidth|width] [-n N] [-m MACHINE]...
                           [-p PART]... [NETWORK...]

Networks x machines, each with N values of what varies, from little to much:
  am         bytes of active memory: the least in which anything fits, as the
             refusal of a smaller one says, and NEAR granules above it; then
             evenly to what a plan without spills takes, or to MOST where tiles
             take fractions of that
  bandwidth  of DDR, and of weights where they come over it: three octaves on
             both sides of the machine's own, in equal ratios
  width      output and input channels that the array takes at once: the same,
             in whole channels; with N of 7 doublings, else what may leave
             channels over
The last two with PARTS of the active memory in which nothing is spilled, or of
MOST. Each row says how many values fit, and at how many it fits no longer
("lost"); at how many the cost by which plans are taken, simulated bytes over DDR,
and cycles are more than at some smaller value, and the most that they are more;
and the seconds by the clock of the slowest plan. Promised is the cost, of sizes
of active memory, against smaller sizes of the grid (tests/promise.py): bytes or
cycles alone may rise, and with another bandwidth or array each machine gets the
plan that is best for it. Exits 1 if a fit is lost. Two compilers run at a time.
"""
import argparse
import collections
import concurrent.futures
import re
import sys
import tempfile

import overlap
import residency
import tool

PUBLISHED = ["resnet-50", "googlenet", "mobilenet-v2"]
GENERATED = ["nasnet-imagenet", "darts-imagenet", "u-net"]
EXAMPLES = ["squeezenet", "vgg16", "yolov2-608", "densenet-cell"]
MACHINES = ["xdnn-v2-28", "xdnn-v2-56", "xdnn-v3-96", "ring-npu", "line-npu",
            "tile-npu", "stage-npu", residency.MACHINE]
VALUES = {"am": 50, "bandwidth": 19, "width": 7}
PARTS = (0.75, 0.5, 0.25)
MOST = {"xdnn-v3-96": 16 << 20, "tile-npu": 2 << 20}
NEAR = (0, 1, 2, 5, 12)
WEIGHTS_OVER_DDR = {"tile-npu"}
WIDTHS = {  # as the machines have them
    "xdnn-v2-28": {"conv.unroll.out_c": 32},
    "xdnn-v2-56": {"conv.unroll.out_c": 32},
    "xdnn-v3-96": {"conv.unroll.out_c": 32},
    "ring-npu": {"array.unroll.out_c": 16, "array.unroll.in_c": 8},
    "line-npu": {"array.unroll.out_c": 16, "array.unroll.in_c": 8},
    "tile-npu": {"array.unroll.out_c": 32, "array.unroll.in_c": 32},
    "stage-npu": {"array.unroll.out_c": 64, "array.unroll.in_c": 32},
}
OCTAVES = 3
JOBS = 2
TOO_LITTLE = 64  # bytes of active memory
Point = collections.namedtuple("Point", "cost bytes cycles seconds")
Rise = collections.namedtuple("Rise", "n most")


def networks_in(folder):
    return [residency.network_file(name, folder)
            for name in PUBLISHED + GENERATED] + [
        tool.example(name) for name in EXAMPLES]


# ---- settings ----

def spread(low, high, n):
    """Whole KiB, evenly."""
    return [low + (high - low) * i // (n - 1) >> 10 << 10 for i in range(n)]


def most(network, machine, folder):
    """Bytes above which more active memory buys little, or nothing."""
    if machine in MOST:
        return MOST[machine]
    plan = tool.compiled(network, machine, folder, tool.am(tool.ENDLESS))
    if not plan:
        sys.exit(f"{network} does not fit on {machine} at all")
    return plan["am_bound_bytes"]


def size_of(text):
    number, unit = re.fullmatch(r"(\d+)(\w*)", text).groups()
    return int(number) << {"": 0, "KiB": 10, "MiB": 20, "GiB": 30}[unit]


def least(network, machine, folder):
    """The fewest bytes that do, and by how many more than those that do not."""
    done = tool.run("compile", network, "-t", machine, "-o", folder,
                    *tool.flags([tool.am(TOO_LITTLE)]))
    said = re.search(r"size=(\S+) would do; (\S+) would not", done.stderr)
    if not said:
        sys.exit(f"{network} on {machine}, {TOO_LITTLE} bytes: {done.stderr}")
    do, do_not = map(size_of, said.groups())
    return do, do - do_not


def memories(network, machine, folder, n):
    """So many sizes of active memory."""
    low, granule = least(network, machine, folder)
    near = [low + granule * k for k in NEAR]
    top = max(most(network, machine, folder), near[-1] + 1024)
    if n <= len(NEAR) + 1:
        return near[:n - 1] + [top]
    return near + spread(near[-1] + 1024, top, n - len(NEAR))


def scales(n):
    return [2 ** (OCTAVES * (2 * i / (n - 1) - 1)) for i in range(n)]


def bandwidths(machine, n):
    own = overlap.BANDWIDTH.get(machine, overlap.BANDWIDTH["xdnn-v2-56"])
    paths = [f"memories.{m}.bandwidth" for m in overlap.MEMORIES]
    if machine in WEIGHTS_OVER_DDR:
        paths.append("weight_cache.bandwidth")
    return [[f"{path}={own * scale / 1e6:.3f}MB/s" for path in paths]
            for scale in scales(n)]


def widths(machine, n):
    own = WIDTHS.get(machine, WIDTHS["xdnn-v2-56"])
    return [[f"engines.{path}={max(1, round(lanes * scale))}"
             for path, lanes in own.items()] for scale in scales(n)]


def settings_of(args, network, machine, folder):
    """(what is said of them, lists of settings) of each row."""
    n = args.n or VALUES[args.vary]
    if args.vary == "am":
        return [("", [[tool.am(size)] for size in
                      memories(network, machine, folder, n)])]
    vary = bandwidths if args.vary == "bandwidth" else widths
    top = most(network, machine, folder)
    return [(f"{top * part / 1024:.0f}K",
             [[tool.am(int(top * part) >> 10 << 10)] + one
              for one in vary(machine, n)]) for part in args.part or PARTS]


# ---- points ----

def point(network, machine, sets, folder):
    """None where it does not fit."""
    with tempfile.TemporaryDirectory(dir=folder) as own:
        sim = tool.counted(network, machine, own, *sets)
    cost = sim and sim["plan"]["cost"]
    return sim and Point((cost["cycles"] ** 3 * cost["bytes"]) ** 0.25,
                         sim["moved"], sim["cycles"],
                         sim["plan"]["ms"]["alloc"] / 1000)


def points(pool, network, machine, settings, folder):
    """Of settings from little to much, in their order."""
    jobs = [pool.submit(point, network, machine, sets, folder)
            for sets in settings]
    return [job.result() for job in jobs]


def rises(found, key):
    """Where a point costs more than one before it."""
    least, more = None, []
    for value in (getattr(p, key) for p in found if p):
        if least is not None and value > least:
            more.append(value / least - 1 if least else 1)
        least = value if least is None else min(least, value)
    return Rise(len(more), max(more, default=0))


def lost(found):
    """How many do not fit, though one before them did."""
    first = next((i for i, p in enumerate(found) if p), len(found))
    return found[first:].count(None)


# ---- the table ----

def row(network, machine, text, found):
    """Prints it; whether a fit was lost."""
    fits = [p for p in found if p]
    told = "".join(f"{rise.n:6} {rise.most:7.2%} " for rise in (
        rises(found, key) for key in ("cost", "bytes", "cycles")))
    slowest = max((p.seconds for p in fits), default=0)
    print(f"{tool.name_of(network)[:22]:22} {tool.name_of(machine):10} "
          f"{text:>7} {len(fits):4} {lost(found):4} {told}{slowest:6.2f}",
          flush=True)
    return bool(lost(found))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-v", "--vary", choices=list(VALUES), default="am")
    parser.add_argument("-n", type=int)
    parser.add_argument("-m", "--machine", action="append")
    parser.add_argument("-p", "--part", type=float, action="append")
    parser.add_argument("networks", nargs="*")
    args = parser.parse_args()
    print(f"{'network':22} {'machine':10} {'AM':>7} {'fits':>4} {'lost':>4} "
          f"{'cost':>6} {'most':>7} {'bytes':>6} {'most':>7} "
          f"{'cycles':>6} {'most':>7} {'s':>6}")
    n = bad = 0
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        for machine in args.machine or MACHINES:
            for network in args.networks or networks_in(folder):
                for text, settings in settings_of(args, network, machine,
                                                  folder):
                    found = points(pool, network, machine, settings, folder)
                    bad += row(network, machine, text, found)
                    n += 1
    print(f"{bad} of {n} rows lose a fit")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
