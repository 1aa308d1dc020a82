#!/usr/bin/env python3
"""explained.py - does --explain add up?

Networks on machines with less active memory than they would take: of each volume
the lines say what is loaded, stored, read or made outside by tiles, which must be
what the simulator counts of it by running the listing; all of them together, and
the line of bytes, the bytes that cross. Every volume that is not in active memory
from its making to its last reader has a reason, and names that passes made up are
explained.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
DATA = "../shared/data"
# network, machine, bytes of an element, KiB of active memory
CELLS = (("examples/squeezenet.prototxt", "xdnn-v2-28", 2, (300, 700)),
         ("examples/squeezenet.prototxt", "xdnn-v3-96", 1, (250, 700)),
         ("examples/squeezenet.prototxt", "tile-npu", 1, (40, 200)),
         ("examples/squeezenet.prototxt", "ring-npu", 1, (40, 120)),
         ("examples/squeezenet.prototxt", "stage-npu", 1, (100, 800)),
         ("examples/densenet-cell.prototxt", "xdnn-v2-56", 2, (300, 600)),
         # 120,000 bytes; what is there is not loaded: alloc/lower/redundant_moves.c
         ("tests/alloc/data/up-and-down.prototxt", "xdnn-v2-28", 2,
          (117.1875, 181.75)),
         ("examples/yolov2-608.prototxt", "xdnn-v2-56", 2, (3072,)),
         (f"{DATA}/caffe/bvlc_googlenet_deploy.prototxt", "xdnn-v2-56", 2,
          (1500,)),
         (f"{DATA}/caffe/mobilenet_v1_deploy.prototxt", "ring-npu", 1, (64,)),
         (f"{DATA}/onnx/light_bvlc_alexnet.onnx", "xdnn-v3-96", 1, (200,)))

LINE = re.compile(r"(.*) \((\d+)x(\d+)x(\d+)(?:, layers? [^)]*)?\): (.*)")
MOVED = re.compile(
    r"(?:([\d,]+) (rows|channels|elements|bytes) )?"
    r"(stored to|loaded from|read by tiles)(?: (?!twice)[a-z]\w*)?"
    r"(?:| (twice)| ([\d,]+) times|, of ([\d,]+)(: some again)?)"
    r"(?:, (?:also )?for the host, which runs .*|, where the host leaves it)?")
KEPT = re.compile(
    r"(channels \d+ to \d+ of [^,]*, )?in active memory, steps? [\d to]+"
    r"(, in the place of [^,;]+)?(, by slices of at most \d+ of its rows)?"
    r"(; (does not move|loaded from inputs[^;]*|stored to outputs[^;]*"
    r"|made by tiles[^;]*"
    r"|a tile of[^;]*))*")
REASON = re.compile(r"all that is alive|are in use|that were tried|is one for"
                    r"|for the host alone")
SIZE = re.compile(r"whole it takes ([\d,]+) of ([\d,]+) bytes")


def number(text):
    return int(text.replace(",", ""))


def amphora(command, path, machine, kib, *more):
    run = subprocess.run(
        [AMPHORA, command, path, "-t", machine, "--json", "--set",
         f"memories.am.size={int(kib * 1024)}", *more],
        stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(run.stdout)


def part_bytes(part, shape, element):
    """What a part of a line says: bytes stored, and loaded."""
    match = MOVED.fullmatch(part)
    channels, rows, columns = shape
    whole = channels * rows * columns * element
    if re.match("made in ", part):
        return whole, 0
    if not match:
        return 0, 0
    count, what, way, twice, times, of, again = match.groups()
    said = whole * (2 if twice else number(times) if times else 1)
    if count:
        all_ = {"rows": rows, "channels": channels, "bytes": whole,
                "elements": whole // element}[what]
        assert number(of) == all_ and bool(again) == (number(count) > all_)
        said = number(count) * (whole // all_)
    return (said, 0) if way == "stored to" else (0, said)


def has_reason(text):
    size = SIZE.search(text)
    return (KEPT.fullmatch(text) or REASON.search(text) or
            (size and number(size[1]) > number(size[2])))


def read_lines(text, element):
    """By volume: bytes stored and loaded. Lines of those without a reason."""
    said, silent, names = {}, [], ""
    for line in text.split("\nbytes: ")[0].splitlines():
        weights = re.match(r"weights: ([\d,]+) bytes loaded", line)
        if weights:
            said["weights"] = (0, number(weights[1]))
            continue
        if line.startswith(("weights of ", "names: ", "plan: ")):
            names += line
            continue
        name, *shape, rest = LINE.fullmatch(line).groups()
        pairs = [part_bytes(part, [int(n) for n in shape], element)
                 for part in rest.split("; ")]
        said[name] = tuple(sum(column) for column in zip(*pairs))
        made_up = re.search("__[a-z]+", name)
        if not has_reason(rest) or (made_up and made_up[0] not in names):
            silent.append(line)
    return said, silent


def differences(said, moves):
    """Volumes of which the simulator counts something else. Tiles, and weights,
    of a layer are counted by layer: they are in the sum alone."""
    by_tiles = any("tiles_of" in m for m in moves)
    counted = {re.sub("^Output |_blob$", "", m["volume"]):
               (m["written_bytes"], m["read_bytes"]) for m in moves
               if re.search("^Output |_blob$", m.get("volume", ""))}
    for name, pair in said.items():
        if pair != counted.get(name, (0, 0)) and \
                not by_tiles and name != "weights":
            yield f"{name}: {pair}, counted {counted.get(name)}"
    everything = sum(m["written_bytes"] + m["read_bytes"] for m in moves)
    if sum(sum(pair) for pair in said.values()) != everything:
        yield f"all: not {everything:,}"


def cell(network, machine, element, kib, folder):
    plan = amphora("compile", network, machine, kib, "--explain", "-o", folder)
    sim = amphora("simulate", plan["json"], machine, kib, "--memory-only")
    said, silent = read_lines(plan["volumes"], element)
    bad = list(differences(said, sim["moves"])) + silent
    moved = sim["ddr_read_bytes"] + sim["ddr_written_bytes"]
    if f"bytes: {moved:,} moved; compulsory " not in plan["volumes"]:
        bad.append(f"bytes: {moved:,} are counted")
    print(f"{os.path.basename(network)} {machine} {kib} KiB: {len(said)} lines, "
          f"{moved:,} bytes{' wrong:' if bad else ''}")
    for text in bad:
        print(f"    {text}")
    return len(bad)


def main():
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for network, machine, element, sizes in CELLS:
            if not os.path.exists(network):
                print(f"{network}: not there")
                continue
            for kib in sizes:
                bad += cell(network, machine, element, kib, folder)
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
