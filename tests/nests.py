#!/usr/bin/env python3
"""nests.py - no tile of channels is cheaper than the plan's, by the simulator.

A convolution alone on a small tile-npu: its instruction is written again with
every size that cuts its axes into nearly equal pieces, both orders of loops,
and all input channels or as many as fit. All of them run in one listing, and
each is timed there. With the objective bytes none moves fewer bytes than the
plan's, nor takes much fewer cycles with as many. Balanced, what the
plan has is never worse in both than tiles of half the memory.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
ALIGN, SUM = 16, 4
LITTLE = 1.01
ROOM = {"am_to_am": 4, "ddr_to_am": 2, "am_to_ddr": 2, "ddr_to_ddr": 1}
ARRAY = [f"engines.array.unroll.{axis}=4" for axis in ("out_c", "in_c")]
LAYERS = [  # channels, size, channels made, kernel, stride, padding, groups
    (6, 9, 10, 3, 1, 1, 1), (16, 8, 12, 1, 1, 0, 1), (9, 10, 7, 3, 2, 1, 1),
    (8, 9, 8, 3, 1, 1, 8), (5, 11, 8, 1, 2, 0, 1)]
SIZES = [512, 768, 1024, 1536, 2048, 4096]
NETWORK = """name: "one"
layer {{ name: "x" type: "Input" top: "x"
  input_param {{ shape {{ dim: 1 dim: {0} dim: {1} dim: {1} }} }} }}
layer {{ name: "a" type: "Convolution" bottom: "x" top: "a"
  convolution_param {{ num_output: {2} kernel_size: {3} stride: {4} pad: {5}
    group: {6} }} }}
"""


def run(*arguments):
    done = subprocess.run([AMPHORA, *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def pieces(size, tile):
    return -(-size // tile)


def sizes_of(size):
    return sorted({pieces(size, n) for n in range(1, size + 1)}, reverse=True)


def pixels(layer, at, n):
    """Pixels along an axis that windows [at, at + n) read."""
    _, size, _, kernel, stride, pad, _ = layer
    return len({x for i in range(at, at + n) for k in range(kernel)
                if 0 <= (x := i * stride + k - pad) < size})


def read_along(layer, out, tile):
    return [pixels(layer, at, min(tile, out - at))
            for at in range(0, out, tile)]


class Nest:
    """One size: bytes that it reads, and where its tiles lie."""

    def __init__(self, layer, out, streams, size):
        self.tile = self.th, self.tw, self.tc, self.tk, self.stay = size
        rows = read_along(layer, out, self.th)
        cols = read_along(layer, out, self.tw)
        taps, groups = layer[3] ** 2, layer[6] > 1
        n_c = pieces(layer[2], self.tc)
        n_in = 1 if groups else pieces(layer[0], self.tk)
        spots = len(rows) * len(cols)
        depth = 1 if groups else self.tk
        weights = taps * layer[2] * (1 if groups else layer[0])
        several = spots * n_in > 1 or (groups and n_c > 1)
        self.end = 0
        self.at = [self.lay(max(rows) * max(cols) * self.tk * streams, several),
                   self.lay(taps * self.tc * depth, n_c * n_in > 1),
                   self.lay(SUM * self.th * self.tw * self.tc, False)]
        again = not groups and (n_in > 1 or (self.stay and spots > 1))
        times = spots if n_in > 1 or (not self.stay and n_c > 1) else 1
        self.bytes = weights * times + streams * (
            sum(rows) * sum(cols) * layer[0] * (n_c if again else 1))

    def lay(self, count, several):
        step = pieces(count, ALIGN) * ALIGN
        at = (self.end, self.end + step * several)
        self.end += step * (1 + several)
        return at

    def fields(self):
        (b0, b1), (w0, w1), (s0, _) = self.at
        return {"th": self.th, "tw": self.tw, "tc": self.tc, "tk": self.tk,
                "stay": int(self.stay), "b0": hex(b0), "b1": hex(b1),
                "w0": hex(w0), "w1": hex(w1), "s0": hex(s0)}


def nests(layer, out, streams, room):
    """All that fit; of input channels all, or else as many as fit."""
    for th in sizes_of(out):
        for tw in sizes_of(out):
            for tc in sizes_of(layer[2]):
                for stay in (False, True):
                    depths = [tc] if layer[6] > 1 else sizes_of(layer[0])
                    fit = [n for tk in depths if (n := Nest(
                        layer, out, streams, (th, tw, tc, tk, stay))
                        ).end <= room]
                    whole = bool(fit) and fit[0].tk == depths[0]
                    yield from fit[:1 + whole]


def timed(nest_list, path, lines, row, names, sets, folder):
    """(bytes, cycles) of each."""
    text = [line for line in lines if not re.match(r"(CONV|ST)", line)]
    for step, nest in enumerate(nest_list, len(text) + 1):
        fields = dict(zip(names, row)) | nest.fields() | {"t": step}
        text.append(" ".join([row[0]] + [str(fields[n]) for n in names[1:]]))
    edited, trace = path + ".all.cmd", os.path.join(folder, "trace.json")
    with open(edited, "w", encoding="utf-8") as out:
        out.write("\n".join(text) + "\n")
    sim = run("simulate", edited, "-t", "tile-npu", "--memory-only", "--json",
              "--trace", trace, *sets)
    assert sim["violations"] == 0, sim["violation_list"]
    with open(trace, encoding="utf-8") as found:
        cycles = [e["args"]["cycles"] for e in json.load(found)["traceEvents"]
                  if e["ph"] == "X" and e["name"] == "a"]
    assert len(cycles) == len(nest_list)
    return [(n.bytes, c) for c, n in zip(cycles, nest_list)]


def check(layer, size, alone, folder):
    """How many sizes there were; bytes and cycles of the plan."""
    network = os.path.join(folder, "one.prototxt")
    with open(network, "w", encoding="utf-8") as out:
        out.write(NETWORK.format(*layer))
    sets = [w for s in ARRAY + [f"memories.am.size={size}"]
            for w in ("--set", s)]
    objective = "bytes" if alone else "balanced"
    plan = run("compile", network, "-t", "tile-npu", "-o", folder, "--json",
               "--objective", objective, "--effort", "0", *sets)
    with open(plan["listing"], encoding="utf-8") as text:
        lines = text.read().split("\n")
    line = next(one for one in lines if re.match(r"CONVD? ", one))
    row, style = line.split(" # ")[0].split(), line.split(" # ")[1]
    names = next(one for one in lines
                 if one.startswith(f"# template {row[0]} ")).split()[3:]
    fields = dict(zip(names, row))
    out = int(fields["dst_h"])
    ours = [int(fields[n]) for n in ("th", "tw", "tc", "tk", "stay")]
    room = min([size // ROOM[style]] +  # or less, where volumes lie lower
               [int(fields[at], 0) for at, lies in
                zip(("src", "dst"), style.split("_to_")) if lies == "am"])
    found = list(nests(layer, out, style.startswith("ddr"), room))
    costs = timed(found, plan["listing"], lines, row, names, sets, folder)
    sim = run("simulate", plan["listing"], "-t", "tile-npu", "--memory-only",
              "--json", *sets)
    moved = sim["ddr_read_bytes"] + sim["ddr_written_bytes"]
    cost = moved, moved + sim["weights_read_bytes"], sim["cycles"]
    made = sim["ddr_written_bytes"]
    if alone:
        mine = next((c for c, n in zip(costs, found) if list(n.tile) == ours),
                    (cost[1] - made, cost[2]))
        best = min(costs)
        assert mine[0] <= best[0], (layer, size, ours, mine, best)
        assert mine[0] < best[0] or mine[1] <= LITTLE * best[1], (
            layer, size, ours, mine, best)
    if not alone and style == "ddr_to_ddr":
        half = [c for c, n in zip(costs, found) if 2 * n.end <= room]
        assert not any(b + made < cost[1] and c < cost[2] for b, c in half), (
            layer, size, ours, cost)
    return len(found), cost


def sweep(layer, alone, folder):
    """Over SIZES; how many sizes of tiles there were."""
    found = [check(layer, size, alone, folder) for size in SIZES]
    costs = [cost for _, cost in found]
    for less, more in zip(costs, costs[1:]):
        assert not alone or more[1] <= less[1], (layer, costs)
    return sum(n for n, _ in found)


def main():
    with tempfile.TemporaryDirectory() as folder:
        count = sum(sweep(layer, alone, folder) for layer in LAYERS
                    for alone in (False, True))
    print(f"{count} sizes of tiles for {len(LAYERS)} layers, none better")
    return 0


if __name__ == "__main__":
    sys.exit(main())
