#!/usr/bin/env python3
"""placement.py - planners on placement problems: heights, proofs, milliseconds.

    bench/placement.py [-p PLANNER,...] [-c BYTES] [FILE.csv ...]

Without files: those of ../shared/data/placement where it is there, then perfect
packings, cut from a rectangle by seeded cuts, whose least height is known by
construction. -c asks only for a placement within so many bytes. The planner
`all` prints a row for each. Times are of the planner alone, on this machine.
"""
import argparse
import glob
import json
import os
import random
import subprocess
import tempfile

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
SHARED = "../shared/data/placement/*.csv"
SIZES = (50, 100, 200, 400)


def cut_rectangle(n, seed, steps=1000, height=1 << 20):
    """n rectangles [first, end) x bytes that fill steps x height."""
    draw = random.Random(seed)
    rects = [(0, steps, 0, height)]
    while len(rects) < n:
        at = max(draw.sample(range(len(rects)), min(3, len(rects))),
                 key=lambda i: (rects[i][1] - rects[i][0])
                 * (rects[i][3] - rects[i][2]))
        first, end, low, high = rects[at]
        if draw.random() < 0.5 and end - first > 1:
            cut = draw.randrange(first + 1, end)
            rects[at] = (first, cut, low, high)
            rects.append((cut, end, low, high))
        elif high - low > 1:
            cut = draw.randrange(low + 1, high)
            rects[at] = (first, end, low, cut)
            rects.append((first, end, cut, high))
    draw.shuffle(rects)
    return rects


def write_packings(folder):
    for n in SIZES:
        for seed in range(3):
            path = os.path.join(folder, f"cut-{n}-{seed}.csv")
            with open(path, "w", encoding="utf-8") as file:
                file.write("id,lower,upper,size\n")
                for i, (first, end, low, high) in \
                        enumerate(cut_rectangle(n, seed)):
                    file.write(f"{i},{first},{end},{high - low}\n")
            yield path


def measure(path, planner, capacity, budget):
    command = [AMPHORA, "pack", path, "--planner", planner, "--json"]
    if capacity:
        command += ["--capacity", str(capacity)]
    if budget:
        command += ["--budget", str(budget)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    report = json.loads(done.stdout)
    for row in report.get("planners", [report]):
        height = row["height"] or 0
        print(f"{os.path.basename(path)[:24]:24} {report['buffers']:7} "
              f"{row['planner']:19} {row['bound']:12} {height:12} "
              f"{height / max(row['bound'], 1):7.4f} "
              f"{'proved' if row['proved'] else '':6} "
              f"{row['ms']:10.1f} {row['nodes']:10}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-p", default="greedy_by_size,exact")
    parser.add_argument("-c", type=int, default=0)
    parser.add_argument("-b", type=int, default=0)
    parser.add_argument("files", nargs="*")
    args = parser.parse_args()
    print(f"{'problem':24} {'buffers':>7} {'planner':19} {'bound':>12} "
          f"{'height':>12} {'ratio':>7} {'':6} {'ms':>10} {'nodes':>10}")
    with tempfile.TemporaryDirectory() as folder:
        paths = args.files or \
            sorted(glob.glob(SHARED)) + list(write_packings(folder))
        for path in paths:
            for planner in args.p.split(","):
                measure(path, planner, args.c, args.b)


if __name__ == "__main__":
    main()
