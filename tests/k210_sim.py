#!/usr/bin/env python3
"""k210_sim.py - recorded files of a real machine, run by our simulator.

Each file of ../shared/data/k210 (where present) is simulated with its recorded
input: the checksum of every node and every output must be those that the
machine's own simulator wrote, without a fault. Outputs behind an exponential,
which follows the C library, may differ by 1e-6. With half_even in place of
half_even_outward at least 12 of the 25 small files must come out differently: a
judge that cannot see this sees nothing. --all prints each file.
"""
import glob
import json
import math
import os
import re
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DATA = os.path.join(ROOT, "..", "shared", "data", "k210")
AMPHORA = os.environ.get("AMPHORA", os.path.join(ROOT, "build", "amphora"))
TRACE = re.compile(r"^(\d+) .* crc32 ([0-9a-f]{8})$")
OTHER_ROUNDING = "arithmetic.u8.requantise.1.round=half_even"
TOLERANCE = 1e-6
SPOILED = 12  # files that another rounding changes, at least
LIBRARY = {"0xb", "0xe"}  # nodes that call the C library's exponential


def traced(path):
    """Node -> checksum, as recorded."""
    with open(path, encoding="ascii") as file:
        rows = [TRACE.match(line.strip()) for line in file if line.strip()]
    return {int(row.group(1)): int(row.group(2), 16) for row in rows}


def simulate(base, folder, *more):
    """The report, or None with what was said."""
    run = subprocess.run(
        [AMPHORA, "simulate", base + ".kmodel", "-t", "k210", "--input",
         base + ".in.bin", "-o", folder, "--json", *more],
        capture_output=True, text=True, check=False)
    try:
        return json.loads(run.stdout), ""
    except json.JSONDecodeError:
        return None, run.stderr


def differs(ours, theirs):
    """The largest difference of two outputs; 0 where the bytes are equal."""
    if ours == theirs:
        return 0
    if len(ours) != len(theirs) or len(ours) % 4:
        return math.inf
    count = len(ours) // 4
    pairs = zip(struct.unpack(f"<{count}f", ours),
                struct.unpack(f"<{count}f", theirs))
    return max(abs(a - b) for a, b in pairs)


def outputs_differ(base, folder):
    worst = 0
    for path in sorted(glob.glob(base + ".out*.bin")):
        with open(path, "rb") as file:
            theirs = file.read()
        name = path.rsplit(".", 2)[1]
        with open(os.path.join(folder, name + ".bin"), "rb") as file:
            worst = max(worst, differs(file.read(), theirs))
    return worst


def calls_library(base):
    """Nodes from the first that calls the C library's functions on."""
    with open(base + ".trace", encoding="ascii") as file:
        lines = file.read().splitlines()
    for i, line in enumerate(lines):
        op = re.search(r" op (0x[0-9a-f]+)", line)
        if op and op.group(1) in LIBRARY:
            return i
    return len(lines)


def judge(base, *more):
    """Nodes compared, nodes with another checksum, what is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        report, said = simulate(base, folder, *more)
        if report is None or "nodes" not in report:
            return 0, [], said.strip() or "no report"
        wanted, nodes = traced(base + ".trace"), report["nodes"]
        bad = [i for i, crc in wanted.items()
               if i >= len(nodes) or nodes[i]["crc32"] != crc]
        wrong = "; ".join(report["faults"][:2])
        if len(wanted) != len(nodes):
            wrong += f" {len(nodes)} nodes, {len(wanted)} recorded"
        if any(i < calls_library(base) for i in bad):
            wrong += f" nodes {bad[:6]} have another checksum"
        worst = outputs_differ(base, folder)
        if worst > TOLERANCE:
            wrong += f" outputs differ by {worst:.3g}"
        return len(wanted), bad, wrong


def main():
    small = sorted(glob.glob(os.path.join(DATA, "*.kmodel")))
    large = sorted(glob.glob(os.path.join(DATA, "vendor", "*.kmodel")))
    if not small:
        print("no recorded files: nothing to compare")
        return 0
    wrong = count = off = spoiled = 0
    for path in small + large:
        nodes, bad, what = judge(path[:-7])
        count, off, wrong = count + nodes, off + len(bad), wrong + bool(what)
        if what or "--all" in sys.argv:
            print(f"{os.path.basename(path)}: {nodes} nodes {what}")
    for path in small:
        spoiled += bool(judge(path[:-7], "--set", OTHER_ROUNDING)[2])
    print(f"{len(small + large)} files, {count} nodes, {off} with another "
          f"checksum, {wrong} files wrong; another rounding changes {spoiled} "
          f"of {len(small)}")
    return 1 if wrong or spoiled < SPOILED else 0


if __name__ == "__main__":
    sys.exit(main())
