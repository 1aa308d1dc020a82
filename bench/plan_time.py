#!/usr/bin/env python3
"""plan_time.py - how long the planner takes with too little memory.

    python3 bench/plan_time.py [--all] [--machine M]... [--digests FILE]
                               [NETWORK...]

Networks x machines x active memory: 100, 75, 50, 25, 12, 6 % of the peak (what
a plan with 1 GiB takes), the least that the refusal of a kilobyte names, and
what it says would not do; where tiles take fractions of active memory, and the
peak tells nothing, SIZES. Two times a cell, in milliseconds: of the processor,
for the whole of `compile`, which others at work hardly change; and by the
clock, for the planner alone, as --json counts it. What does not fit is refused
with its reason and a size that would do, which takes time, too: "no fit".
Machines that load and store beside their engines are also planned for with so
little bandwidth that all transfers take half as long as all engines ("slow"):
then there is most to hide. Without --all a short list: the networks and sizes
that take longest, on the machines where time is weighed against bytes.
Worst first. --digests writes a line a cell: bytes over DDR, simulated cycles,
and a digest of the listing, or of the refusal: two trees whose files are equal
plan the same.
"""
import argparse
import collections
import hashlib
import json
import re
import subprocess
import tempfile

import overlap
import residency
import tool

MACHINES = ["xdnn-v2-28", "xdnn-v2-56", "xdnn-v3-96", "ring-npu", "line-npu",
            "tile-npu", residency.MACHINE, "template"]
PARTS = (1.0, 0.75, 0.5, 0.25, 0.12, 0.06)
SHORT_MACHINES = ["xdnn-v2-28", "xdnn-v2-56", "xdnn-v3-96", "template"]
SHORT_NETWORKS = ["resnet-50", "u-net", "googlenet", "inception-v3",
                  "nasnet-imagenet", "darts-imagenet"]
SHORT_EXAMPLES = ["yolov2-608"]
SHORT_PARTS = (0.5, 0.12)
SLOW = 0.5  # transfers / work
EXAMPLES = ["vgg16", "yolov2-608", "squeezenet", "densenet-cell", "vgg-e-stem"]
KIB = 1 << 10
SIZES = {"tile-npu": [128 * KIB, 256 * KIB, 512 * KIB, 1024 * KIB, 2048 * KIB],
         "xdnn-v3-96": [mib * 1024 * KIB for mib in (1, 2, 3, 4, 6)]}
OTHER_NAMES = {"template": "fast"}  # of the first active memory
MOST = 120  # seconds by the clock
UNITS = {"": 1, "KiB": KIB, "MiB": 1024 * KIB}
Cell = collections.namedtuple(
    "Cell", "network machine part size ms clock word digest slow")


def am(machine, size):
    return f"memories.{OTHER_NAMES.get(machine, 'am')}.size={size}"


def sets_of(machine, size, slow):
    return tool.flags([am(machine, size), *slow])


def slowed(path, machine, size, folder):
    """Settings with which DDR is slow; none where that is not asked."""
    if machine not in SHORT_MACHINES:
        return []
    own = overlap.simulate(path, machine, size, folder)
    return overlap.bandwidth_for(SLOW, own, machine) if own else []


def compiled(path, machine, size, folder, slow=()):
    """The run, and what it took of the processor."""
    before = 1000 * tool.cpu_seconds()
    try:
        done = subprocess.run(
            [tool.AMPHORA, "compile", path, "-t", machine, "-o", folder,
             "--json", *sets_of(machine, size, slow)],
            capture_output=True, text=True, timeout=MOST)
    except subprocess.TimeoutExpired:
        done = None
    return done, 1000 * tool.cpu_seconds() - before


def costs(report, machine, size, slow):
    """Of a plan: bytes over DDR, simulated cycles."""
    done = tool.run("simulate", report["listing"], "-t", machine, "--json",
                    "--memory-only", *sets_of(machine, size, slow))
    sim = json.loads(done.stdout)
    return f"{report['ddr_moved_bytes']} {sim['cycles']}"


def cell(path, machine, part, size, folder, digests, slow=()):
    done, ms = compiled(path, machine, size, folder, slow)
    clock, word, digest = None, "", "-"
    if not done:
        word = "too long"
    elif done.returncode:
        word = "no fit" if done.returncode == 3 else "error"
        text, cost = done.stderr.replace(folder, ""), "- -"
    else:
        report = json.loads(done.stdout)
        clock = report["ms"]["alloc"]
        cost = costs(report, machine, size, slow) if digests else ""
        with open(report["listing"], encoding="utf-8") as listing:
            text = listing.read()
    if done:
        digest = f"{cost} {hashlib.sha256(text.encode()).hexdigest()[:16]}"
    return Cell(tool.name_of(path), tool.name_of(machine), part, size, ms,
                clock, word, digest, "slow" if slow else "")


def peak_of(path, machine, folder):
    done, _ = compiled(path, machine, 1 << 30, folder)
    fits = done and not done.returncode
    return json.loads(done.stdout)["am_bound_bytes"] if fits else 0


def sizes(path, machine, folder, parts):
    """With their names."""
    fixed = SIZES.get(machine)
    peak = 0 if fixed else peak_of(path, machine, folder)
    for size in fixed or ():
        yield f"{size // KIB}K", size
    for part in parts if peak else ():
        yield f"{part:.0%}", max(int(peak * part) // KIB, 1) * KIB
    done, _ = compiled(path, machine, KIB, folder) if peak or fixed else (None, 0)
    said = done and re.search(r"size=(\d+)([KM]iB|) would do"
                              r"(?:; (\d+)([KM]iB|) would not)?", done.stderr)
    for name, n in (("least", 1), ("below", 3)):
        if said and said[n]:
            yield name, int(said[n]) * UNITS[said[n + 1]]


def cells(args, folder):
    paths = args.networks or [
        residency.network_file(name, folder)
        for name in (residency.NETWORKS if args.all else SHORT_NETWORKS)] + [
        tool.example(name)
        for name in (EXAMPLES if args.all else SHORT_EXAMPLES)]
    machines = args.machine or (MACHINES if args.all else SHORT_MACHINES)
    parts = PARTS if args.all or args.networks else SHORT_PARTS
    for path in paths:
        for machine in machines:
            for part, size in sizes(path, machine, folder, parts):
                yield cell(path, machine, part, size, folder,
                           bool(args.digests))
                slow = slowed(path, machine, size, folder)
                if slow:
                    yield cell(path, machine, part, size, folder,
                               bool(args.digests), slow)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--machine", action="append")
    parser.add_argument("--digests")
    parser.add_argument("networks", nargs="*")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = list(cells(args, folder))
    if args.digests:
        with open(args.digests, "w", encoding="utf-8") as out:
            for c in found:
                print(f"{c.network:24} {c.machine:12} {c.part:>6} {c.size:9} "
                      f"{c.slow:4} {c.digest}", file=out)
    print(f"{'network':24} {'machine':12} {'part':>6} {'bytes':>9} "
          f"DDR  {'cpu ms':>8} {'plan ms':>8}")
    for c in sorted(found, key=lambda c: -c.ms):
        clock = f"{c.clock:8.1f}" if c.clock is not None else f"{'-':>8}"
        print(f"{c.network:24} {c.machine:12} {c.part:>6} {c.size:9} "
              f"{c.slow:4} {c.ms:8.1f} {clock} {c.word}".rstrip())


if __name__ == "__main__":
    main()
