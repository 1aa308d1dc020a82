#!/usr/bin/env python3
"""listing.py - records of a listing say what the simulator sees.

Compiles networks for machines of all kinds, reads NET.json with
examples/read_listing.py alone, and compares with `simulate --accesses`, which
takes addresses from the instructions: every byte that an instruction writes or
reads, its cycles, the bytes over DDR, and that it starts when what it waits for
has ended. The same with examples/read_listing.c. What --materialise writes is
read back, and the schema holds for all of it.

usage: listing.py [--long]
"""
import csv
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
AMPHORA = os.path.join(ROOT, "build", "amphora")
sys.path.insert(0, os.path.join(ROOT, "examples"))
import read_listing  # noqa: E402

CASES = [
    ("tiny", "xdnn-v2-28"), ("tiny", "xdnn-v2-28 --set memories.am.size=20KiB"),
    ("tiny", "xdnn-v3-96"), ("tiny", "ring-npu"), ("tiny", "tile-npu"),
    ("tiny", "stage-npu"), ("tiny", "vta-pynq"), ("tiny", "dpuczdx8g"),
    ("tiny", "line-npu"), ("tiny", "math-engine"), ("tiny", "darius-32"),
    ("densenet-cell", "xdnn-v2-56"), ("densenet-cell", "stage-npu"),
    ("tiny", "ring-npu --set memories.am.size=6KiB"),
    ("tiny", "stage-npu --images 2"),
]
LONG = [
    ("squeezenet", "xdnn-v3-96"), ("squeezenet", "stage-npu"),
    ("googlenet", "xdnn-v2-28 --set memories.am.size=1MiB"),
    ("squeezenet", "dpuczdx8g"),
    ("mobilenet-v2", "ring-npu --objective bytes --set "
                     "memories.am.size=145376"),
]


def amphora(*arguments):
    done = subprocess.run([AMPHORA, *arguments], cwd=ROOT, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def traced(path):
    """By instruction: cycles, and the bytes read and written by memory."""
    found = {}
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if not row["instruction"]:
                continue
            item = found.setdefault(int(row["instruction"]), {
                "cycles": (int(row["cycle"]), int(row["until"])), "bytes": {}})
            key = row["access"], row["memory"]
            touched = item["bytes"].setdefault(key, set())
            for i in range(int(row["ranges"])):
                at = i * int(row["step"])
                touched.update(range(int(row["from"]) + at,
                                     int(row["to"]) + at))
    return found


def said(record, elements):
    """The bytes read and written by memory that a record tells of."""
    found = {}
    for operand in record["operands"]:
        writes = operand["role"] == "out" or \
            record["operation"] == "load_weights"
        touched = found.setdefault(
            ("write" if writes else "read", operand["memory"]), set())
        element = elements[operand["memory"]]
        for at in read_listing.addresses(operand):
            touched.update(range(at, at + element))
    return found


def compare(record, elements, trace):
    """What differs; tiles lie in active memory beside their operands, and
    pools stop reading at their last window."""
    told = said(record, elements)
    touched = trace["bytes"] if trace else {}
    for key, there in told.items():
        seen = touched.get(key, set())
        if seen - there and "tile" not in record:
            yield f"{key}: {len(seen - there)} bytes are not told of"
        if there - seen and not ("pool" in record["operation"] and
                                 key[0] == "read"):
            yield f"{key}: {len(there - seen)} bytes are not touched"
    for key in touched.keys() - told.keys():
        if "tile" not in record:
            yield f"{key}: not told of"
    planned = record.get("planned")
    if trace and planned and trace["cycles"] != (
            planned["start"], planned["start"] + planned["cycles"]):
        yield f"cycles {trace['cycles']}, planned {planned}"


def check_waits(records):
    """It starts when those have ended."""
    ends = {}
    for record in records:
        planned = record.get("planned")
        for other in record["waits_for"]:
            if other >= record["instruction"]:
                yield record["instruction"], "waits for a later one"
            if planned and ends.get(other, 0) > planned["start"]:
                yield (record["instruction"],
                       f"starts at {planned['start']}, but waits for {other} "
                       f"until {ends[other]}")
        if planned:
            ends[record["instruction"]] = planned["start"] + planned["cycles"]


def check_case(network, machine, folder):
    """Problems of one listing."""
    target, *more = machine.split()
    settings = [m for i, m in enumerate(more)
                if m == "--set" or more[i - 1] == "--set"]
    net = os.path.join("examples", network + ".prototxt")
    code, _, errors = amphora("compile", net, "-t", target, *more, "-o", folder)
    if code:
        yield f"compile: exit {code}: {errors.strip()[:200]}"
        return
    path = os.path.join(folder, network + ".json")
    trace_path = os.path.join(folder, "accesses.csv")
    code, out, errors = amphora("simulate", path, "-t", target, *settings,
                                "--memory-only", "--json", "--accesses",
                                trace_path)
    if code:
        yield f"simulate: exit {code}: {errors.strip()[:200]}"
        return
    sim = json.loads(out)
    listing = read_listing.load(path)
    elements = {m["name"]: m["element"] for m in listing["memories"]}
    trace = traced(trace_path)
    records = listing["records"]
    if len(records) != len(listing["instructions"]):
        yield "not a record for each instruction"
    for record in records:
        for problem in compare(record, elements,
                               trace.get(record["instruction"])):
            yield f"{record['instruction']} {record['layer']}: {problem}"
    for where, problem in check_waits(records):
        yield f"{where}: {problem}"
    planned = [r["planned"] for r in records if "planned" in r]
    end = max((p["start"] + p["cycles"] for p in planned), default=0)
    if end != sim["cycles"]:
        yield f"{end} cycles, simulated {sim['cycles']}"


def main():
    cases = CASES + (LONG if "--long" in sys.argv[1:] else [])
    failed = 0
    for network, machine in cases:
        with tempfile.TemporaryDirectory() as folder:
            problems = list(check_case(network, machine, folder))
        for problem in problems[:5]:
            print(f"{network} on {machine}: {problem}")
        failed += bool(problems)
    print(f"{len(cases) - failed} listings as simulated, {failed} not")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
