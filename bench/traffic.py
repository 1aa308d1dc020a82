#!/usr/bin/env python3
"""traffic.py - bytes over DDR when active memory is too small.

    python3 bench/traffic.py [MACHINE] [NETWORK...]

Networks x active memory of 90, 75, 50, 25 % of the peak (what a plan without
DDR takes). Ours is counted by the simulator, beyond the compulsory bytes
(inputs, outputs, what the host reads and writes), and pays for halos, buffers
and alignment; s are CPU seconds of the compiler, start to end. lru and belady (policies.py) pay for none of these, and not for
the place of a concat. The last lines are the anchor: YOLOv2-608 on xdnn-v2-56.
"""
import os
import re
import sys
import tempfile

import policies
import tool

PARTS = (0.90, 0.75, 0.50, 0.25)
RECORDED = 96.9e6 + 96.3e6  # bytes; ../shared/facts/xdnn.md 4
RECORDED_MOVES = (47, 47)  # gathers, scatters
READ = "tiling.weights_stay=false"  # each run reads its weights
YOLO = ("xdnn-v2-56", "6MiB")


class Row:
    """A network with so much of its peak: bytes beyond the compulsory ones of
    both policies and of ours (None: no fit), and of lru where a concat is one
    volume."""

    def __init__(self, network, machine, part, traces, folder, once=None):
        """once: bytes of weights, where these count, too: beyond these."""
        self.network, self.part = network, part
        trace, whole = traces
        self.size = int(trace.peak * part) // 1024 * 1024
        self.lru = policies.policy(trace, self.size, False)
        self.belady = policies.policy(trace, self.size, True)
        self.lru_whole = policies.policy(whole, self.size, False)
        sets = [] if once is None else [READ]
        sim = tool.counted(network, machine, folder, tool.am(self.size), *sets)
        self.ours = sim and sim["extra"]
        if sim:
            if once is not None:
                self.ours += sim["weights_read_bytes"] - once
            self.seconds = sim["plan"]["cpu_seconds"]

    def __str__(self):
        text = (f"{tool.name_of(self.network):22} {self.size:10} "
                f"{self.part:4.0%} {self.lru:10} {self.belady:10} ")
        if self.ours is None:
            return text + "    no fit"
        return (text + f"{self.ours:10} {quotient(self.ours, self.lru):>6} "
                f"{quotient(self.ours, self.belady):>6} {self.seconds:5.2f}")


def quotient(ours, other):
    return f"{ours / other:.3f}" if other else "0" if not ours else "-"


def ratios(rows, other):
    """Ours / other(row) of the rows in which there is something to divide by.
    Where others move nothing, ours counts against 1 byte of theirs."""
    return [r.ours / max(other(r), 1) for r in rows
            if r.ours is not None and (other(r) or r.ours)]


def weights_once(network, machine, folder):
    """Bytes of weights that are read where nothing is short."""
    return tool.counted(network, machine, folder, tool.am(tool.ENDLESS),
                        READ)["weights_read_bytes"]


def table(networks, machine, folder, element=2, weights=False):
    """Prints it; the rows. weights: bytes that are read of them again count."""
    print(f"{'network':22} {'AM':>10} {'part':>4} {'lru':>10} {'belady':>10} "
          f"{'ours':>10} {'/lru':>6} {'/bel.':>6} {'s':>5}")
    rows = []
    for network in networks:
        traces = [policies.Trace(network, machine, folder, element, whole)
                  for whole in (False, True)]
        once = weights_once(network, machine, folder) if weights else None
        for part in PARTS:
            rows.append(Row(network, machine, part, traces, folder, once))
            print(rows[-1], flush=True)
    means(rows)
    return rows


def means(rows):
    for name, other in (("lru", lambda r: r.lru),
                        ("belady", lambda r: r.belady),
                        ("lru with concats as one volume each",
                         lambda r: r.lru_whole)):
        found = ratios(rows, other)
        print(f"geometric mean of ours / {name}: "
              f"{tool.geometric_mean(found):.3f} over {len(found)} rows, "
              f"{sum(x > 1 for x in found)} above 1")


def yolo(folder, relu):
    """The run; with ReLU, as the recorded listing has it, or as published."""
    path = tool.example("yolov2-608")
    if relu:
        with open(path, encoding="utf-8") as text:
            plain = re.sub(r"relu_param\s*{[^}]*}", "", text.read())
        path = os.path.join(folder, "yolov2-608-relu.prototxt")
        with open(path, "w", encoding="utf-8") as out:
            out.write(plain)
    sim = tool.counted(path, YOLO[0], folder, tool.am(YOLO[1]))
    ops = [row["op"] for row in tool.listing_rows(sim["plan"]["listing"])]
    sim["moves"] = ops.count("XNGather"), ops.count("XNScatter")
    return sim


def main():
    machine = sys.argv[1] if len(sys.argv) > 1 else "xdnn-v2-56"
    names = ("resnet50", "googlenet", "inception-v3", "mobilenet-v2",
             "squeezenet", "vgg16", "densenet-cell", "yolov2-608")
    networks = sys.argv[2:] or [tool.example(n) for n in names]
    with tempfile.TemporaryDirectory() as folder:
        table(networks, machine, folder)
        for relu in (True, False):
            sim = yolo(folder, relu)
            print(f"yolov2-608 {'with ReLU' if relu else 'as published'}, "
                  f"{' '.join(YOLO)}: {sim['moved'] / 2**20:.1f} MiB in "
                  f"{sim['moves'][0]} gathers, {sim['moves'][1]} scatters "
                  f"({sim['ddr_compulsory_bytes'] / 2**20:.1f} compulsory); "
                  f"recorded {RECORDED / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
