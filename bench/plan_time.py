#!/usr/bin/env python3
"""plan_time.py - how long the planner takes with too little memory.

    python3 bench/plan_time.py [--machine M]... [--digests FILE] [NETWORK...]

Networks x machines x active memory of 100, 75, 50, 25, 12 % of the peak (what
a plan with 1 GiB takes). Two times a cell, in milliseconds: of the processor,
for the whole of `compile`, which others at work hardly change; and by the
clock, for the planner alone, as --json counts it. What does not fit is refused
with its reason and a size that would do, which takes time, too: "no fit".
Worst first. --digests writes a line a cell with a digest of the listing, or of
the refusal: two trees whose files are equal plan the same.
"""
import argparse
import hashlib
import json
import subprocess
import tempfile

import residency
import tool

MACHINES = ["xdnn-v2-28", "xdnn-v2-56", "xdnn-v3-96", "ring-npu", "line-npu",
            "tile-npu", residency.MACHINE]
PARTS = (1.0, 0.75, 0.5, 0.25, 0.12)
EXAMPLES = ["vgg16", "yolov2-608", "squeezenet", "vgg-e-stem"]
MOST = 120  # seconds by the clock


def compiled(path, machine, size, folder):
    """The run, and what it took of the processor."""
    before = 1000 * tool.cpu_seconds()
    try:
        done = subprocess.run(
            [tool.AMPHORA, "compile", path, "-t", machine, "-o", folder,
             "--json", "--set", f"memories.am.size={size}"],
            capture_output=True, text=True, timeout=MOST)
    except subprocess.TimeoutExpired:
        done = None
    return done, 1000 * tool.cpu_seconds() - before


def cell(path, machine, size, folder):
    """Milliseconds, both ways; a word; a digest."""
    done, ms = compiled(path, machine, size, folder)
    if not done:
        return ms, None, "too long", "-"
    if done.returncode:
        text = done.stderr.replace(folder, "")
        word, clock = "no fit" if done.returncode == 3 else "error", None
    else:
        report = json.loads(done.stdout)
        word, clock = "", report["ms"]["alloc"]
        with open(report["listing"], encoding="utf-8") as listing:
            text = listing.read()
    return ms, clock, word, hashlib.sha256(text.encode()).hexdigest()[:16]


def peak_of(path, machine, folder):
    done, _ = compiled(path, machine, 1 << 30, folder)
    fits = done and not done.returncode
    return json.loads(done.stdout)["am_bound_bytes"] if fits else 0


def cells(paths, machines, folder):
    for path in paths:
        for machine in machines:
            peak = peak_of(path, machine, folder)
            for part in PARTS if peak else ():
                size = max(int(peak * part) // 1024, 1) * 1024
                yield (tool.name_of(path), tool.name_of(machine), part,
                       *cell(path, machine, size, folder))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--machine", action="append")
    parser.add_argument("--digests")
    parser.add_argument("networks", nargs="*")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths = args.networks or [
            residency.network_file(name, folder)
            for name in residency.NETWORKS] + [
            tool.example(name) for name in EXAMPLES]
        rows = list(cells(paths, args.machine or MACHINES, folder))
    if args.digests:
        with open(args.digests, "w", encoding="utf-8") as out:
            for name, machine, part, _, _, _, digest in rows:
                print(f"{name:24} {machine:12} {part:4.0%} {digest}", file=out)
    print(f"{'network':24} {'machine':12} {'part':>4} {'cpu ms':>8} "
          f"{'plan ms':>8}")
    for name, machine, part, ms, clock, word, _ in sorted(
            rows, key=lambda r: -r[3]):
        clock = f"{clock:8.1f}" if clock is not None else f"{'-':>8}"
        print(f"{name:24} {machine:12} {part:4.0%} {ms:8.1f} {clock} {word}"
              .rstrip())


if __name__ == "__main__":
    main()
