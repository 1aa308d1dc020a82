#!/usr/bin/env python3
"""placement.py - planners on placement problems: heights, proofs, milliseconds.

    bench/placement.py [-p PLANNER,...] [-c BYTES] [FILE.csv ...]
    bench/placement.py -g PERCENT -c BYTES FILE.csv ...
    bench/placement.py -f FAMILY,... [-n SIZE,...] [-s SEEDS]

Without files: those of ../shared/data/placement where it is there, then perfect
packings, whose least height is known by construction. -f: problems of the
families in placement_problems.py (`perfect`, `many`: those of them). -c asks
only for a placement within so many bytes, as MiniMalloc does. -g first cuts a gap
into the lives of so many in a hundred buffers, drawn with seed 1. The planner
`all` prints a row for each. Times are of the planner alone, on this machine.

Problems that others were measured on carry what was seen of them (ANCHORS).
MiniMalloc's eleven are benchmarks/challenging of google/minimalloc; four of
them are in ../shared/data/placement, the rest are named on the command line.
"""
import argparse
import csv
import glob
import itertools
import json
import os
import random
import subprocess
import tempfile

import placement_problems

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
SHARED = "../shared/data/placement/*.csv"

# CPU seconds on two shared cores (medians of three; ../shared/facts/
# allocation.md): MiniMalloc 9f5cf81 within 1048576 bytes, omnimalloc's
# portfolio down to the live peak. Neither found D or J near their peaks:
# omnimalloc after 60 s 1.0685 and 1.0528 times the peak, not proved.
ANCHORS = {
    "A": (13.1, "2.4 s"), "B": (10.5, "2.5 s"), "C": (1.8, "0.09 s"),
    "D": (9.2, "1.0685 in 60 s"), "E": (8.6, "4.6 s"), "F": (11.5, "1.6 s"),
    "G": (2.1, "0.33 s"), "H": (3.0, "1.2 s"), "I": (6.8, "0.88 s"),
    "J": (2.9, "1.0528 in 60 s"), "K": (1.2, "0.29 s")}
TRACES = {"idealloc_resnet50": (0.7, "5.6 s")}


def anchor(path, capacity):
    """What others took for the same question; empty if nobody was asked."""
    name = os.path.basename(path).removesuffix(".csv")
    letter = name.removesuffix(".1048576")
    seconds = TRACES.get(name) or (ANCHORS.get(letter)
                                   if letter != name else None)
    if not seconds:
        return ""
    return f"MiniMalloc {seconds[0]} s" if capacity \
        else f"omnimalloc {seconds[1]}"


def write_problems(folder, families, sizes, seeds):
    for family in families:
        for n in sizes:
            for seed in range(seeds):
                path = os.path.join(folder, f"{family}-{n}-{seed}.csv")
                placement_problems.write(
                    path, placement_problems.FAMILIES[family](n, seed))
                yield path


def cut_gaps(folder, path, percent):
    """A copy in which some buffers are free in the middle third of their lives,
    one step at least."""
    draw = random.Random(1)
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    able = [r for r in rows if int(r["upper"]) - int(r["lower"]) > 2]
    wanted = min(len(able), -(-len(rows) * percent // 100))
    chosen = {id(r) for r in draw.sample(able, wanted)}
    out = os.path.join(folder, os.path.basename(path))
    with open(out, "w", encoding="utf-8") as file:
        file.write("id,lower,upper,size,gaps\n")
        for r in rows:
            first, end = int(r["lower"]), int(r["upper"])
            third = max(1, (end - first) // 3)
            gap = f"{first + third}-{first + 2 * third}"
            file.write(f"{r['id']},{first},{end},{r['size']},"
                       f"{gap if id(r) in chosen else ''}\n")
    return out


def measure(path, planner, capacity, budget):
    command = [AMPHORA, "pack", path, "--planner", planner, "--json"]
    if capacity:
        command += ["--capacity", str(capacity)]
    if budget:
        command += ["--budget", str(budget)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    # behind it, where nothing was found: what was said, as another object
    report = json.loads(done.stdout)
    for row in report.get("planners", [report]):
        height = row["height"] or 0
        print(f"{os.path.basename(path)[:24]:24} {report['buffers']:7} "
              f"{row['planner']:19} {row['bound']:12} {height:12} "
              f"{height / max(row['bound'], 1):7.4f} "
              f"{'proved' if row['proved'] else '':6} "
              f"{row['ms']:10.1f} {row['nodes']:10}  "
              f"{anchor(path, capacity)}".rstrip(), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-p", default="greedy_by_size,exact")
    parser.add_argument("-c", type=int, default=0)
    parser.add_argument("-b", type=int, default=0)
    parser.add_argument("-f", default="")
    parser.add_argument("-g", type=int)
    parser.add_argument("-n", default="50,200,500,1000")
    parser.add_argument("-s", type=int, default=3)
    parser.add_argument("files", nargs="*")
    args = parser.parse_args()
    print(f"{'problem':24} {'buffers':>7} {'planner':19} {'bound':>12} "
          f"{'height':>12} {'ratio':>7} {'':6} {'ms':>10} {'nodes':>10}  others")
    with tempfile.TemporaryDirectory() as folder:
        families = {"": placement_problems.PERFECT,
                    "perfect": placement_problems.PERFECT,
                    "many": placement_problems.MANY
                    }.get(args.f, args.f.split(","))
        made = write_problems(folder, families,
                              [int(n) for n in args.n.split(",")], args.s)
        known = [] if args.f else sorted(glob.glob(SHARED))
        paths = args.files or itertools.chain(known, made)
        for path in paths:
            if args.g is not None:
                path = cut_gaps(folder, path, args.g)
            for planner in args.p.split(","):
                measure(path, planner, args.c, args.b)


if __name__ == "__main__":
    main()
