#!/usr/bin/env python3
"""traffic.py - bytes over DDR when active memory is too small.

    python3 bench/traffic.py [MACHINE] [NETWORK...]

Networks x active memory of 90, 75, 50, 25 % of the peak (what a plan without
DDR takes). Ours is counted by the simulator, beyond the compulsory bytes
(inputs, outputs, what the host reads and writes). Two policies that keep or
evict whole volumes are run here on the same order of layers, on the same
volumes:
  lru     evicts what was used longest ago
  belady  evicts what is used again furthest in the future (Belady, 1966)
A volume that is evicted, needed again and not outside yet is written; what is
read and not there is loaded. Of a layer whose own volumes do not fit together
some pass by as a stream, once, without halo: no buffers are charged for that.
Ours pays for halos and buffers.
The last line is the anchor: YOLOv2-608 with ReLU on xdnn-v2-56.
"""
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
PARTS = (0.90, 0.75, 0.50, 0.25)
FLOOR = 0.01  # ratios below count as this in the mean: 0 has no logarithm
PLACED = re.compile(r"p(\d+) \S+ (\S+) rows \S+ of (\d+)x(\d+)x(\d+)\b.*? at "
                    r"\S+ bytes (\d+) buffer (\d+)")
NEVER = 1 << 60
RECORDED = 96.9e6 + 96.3e6  # bytes; ../shared/facts/xdnn.md 4


def run(*args):
    return subprocess.run([AMPHORA, *args], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)


class Trace:
    """Volumes and the layers that use them, from a plan without DDR."""

    def __init__(self, network, machine, folder, element=2):
        done = run("compile", network, "-t", machine, "-o", folder, "--json",
                   "--set", "memories.am.size=1GiB", "--dump", "plan")
        if done.returncode:
            sys.exit(done.stderr)
        self.peak = json.loads(done.stdout)["am_bound_bytes"]
        place, self.size, self.moved, self.inputs = {}, {}, {}, set()
        self.layers = []
        for line in done.stderr.splitlines():
            found = PLACED.match(line)
            if found:
                p, memory = found[1], found[2]
                c, h, w, size, buffer = map(int, found.groups()[2:])
                place[p] = buffer if memory == "am" else None
                if memory == "am":
                    self.size[buffer] = size
                    self.moved[buffer] = c * h * w * element
                continue
            words = line.split()
            if len(words) < 3 or words[1] not in ("load", "run"):
                continue
            used = [place[p[1:]] for p in words if re.fullmatch(r"p\d+", p)]
            used = [b for b in used if b is not None]
            if words[1] == "load":
                self.inputs.update(used)
            else:
                self.layers.append((set(used[:-1]), used[-1]))


class Policy:
    """Whole volumes, kept or evicted. `furthest`: evicts what is used again
    last (Belady), else what was used longest ago."""

    def __init__(self, trace, capacity, furthest):
        self.trace, self.capacity, self.furthest = trace, capacity, furthest
        self.extra, self.inside, self.last = 0, set(), {}
        self.outside, self.read = set(trace.inputs), set()
        self.uses = {}
        for i, (reads, made) in enumerate(trace.layers):
            for b in reads | {made}:
                self.uses.setdefault(b, []).append(i)

    def following(self, b, i):
        return next((u for u in self.uses[b] if u > i), NEVER)

    def leave(self, b, i):
        """Before layer i."""
        self.inside.discard(b)
        if b not in self.outside and self.following(b, i - 1) != NEVER:
            self.extra += self.trace.moved[b]
            self.outside.add(b)

    def load(self, b):
        """Into active memory, or through it; an input's first time is
        compulsory."""
        if b not in self.trace.inputs or b in self.read:
            self.extra += self.trace.moved[b]
        self.read.add(b)

    def room_for(self, b, keep, i):
        size = self.trace.size
        while sum(size[v] for v in self.inside) + size[b] > self.capacity:
            spare = sorted(self.inside - keep)
            if not spare:
                return False
            self.leave(max(spare, key=lambda v: self.following(v, i))
                       if self.furthest
                       else min(spare, key=lambda v: self.last.get(v, i)), i)
        self.inside.add(b)
        return True

    def over_another(self, i, reads, made):
        """A result in place may as well take the place of an operand that is
        there and not needed again."""
        for b in sorted(self.inside & reads):
            if (self.following(b, i) == NEVER
                    and self.trace.size[b] == self.trace.size[made]):
                self.inside.discard(b)
                self.inside.add(made)
                return

    def layer(self, i, reads, made):
        missing = [b for b in sorted(reads) if b not in self.inside]
        for b in missing:
            self.load(b)
            self.room_for(b, reads | {made}, i)
        if made in reads and made not in self.inside:
            self.over_another(i, reads, made)
        if made not in self.inside and not self.room_for(
                made, reads | {made}, i):
            # operands make way for the result: they pass by as a stream
            was = self.inside & reads
            fits = self.room_for(made, {made}, i)
            for b in was - self.inside:
                self.load(b)
            if not fits and self.following(made, i) != NEVER:
                self.extra += self.trace.moved[made]
                self.outside.add(made)
        if made in self.inside:
            self.outside.discard(made)
        for b in reads | {made}:
            self.last[b] = i
        self.inside = {b for b in self.inside
                       if self.following(b, i) != NEVER}


def policy(trace, capacity, furthest):
    """Bytes beyond the compulsory ones."""
    p = Policy(trace, capacity, furthest)
    for i, (reads, made) in enumerate(trace.layers):
        p.layer(i, reads, made)
    return p.extra


def ours(network, machine, size, folder):
    start = time.time()
    done = run("compile", network, "-t", machine, "-o", folder, "--json",
               "--set", f"memories.am.size={size}")
    if done.returncode:
        return None
    seconds = time.time() - start
    report = json.loads(done.stdout)
    done = run("simulate", report["listing"], "-t", machine, "--json",
               "--memory-only", "--set", f"memories.am.size={size}")
    sim = json.loads(done.stdout)
    if sim["violations"]:
        sys.exit(f"{network} {machine} {size}: {sim['violation_list']}")
    sim["seconds"] = seconds
    sim["total"] = sim["ddr_read_bytes"] + sim["ddr_written_bytes"]
    if sim["total"] != report["ddr_moved_bytes"]:
        sys.exit(f"{network} {machine} {size}: the plan says "
                 f"{report['ddr_moved_bytes']} bytes, simulated {sim['total']}")
    sim["extra"] = sim["total"] - sim["ddr_compulsory_bytes"]
    return sim


def mean(ratios):
    if not ratios:
        return float("nan")
    return math.exp(sum(math.log(max(r, FLOOR)) for r in ratios) / len(ratios))


def table(networks, machine, folder, element=2):
    against = {"lru": [], "belady": []}
    print(f"{'network':22} {'AM':>10} {'part':>4} {'lru':>10} {'belady':>10} "
          f"{'ours':>10} {'/lru':>6} {'/bel.':>6} {'s':>5}")
    for network in networks:
        trace = Trace(network, machine, folder, element)
        name = os.path.basename(network).rsplit(".", 1)[0]
        for part in PARTS:
            size = int(trace.peak * part) // 1024 * 1024
            lru = policy(trace, size, False)
            belady = policy(trace, size, True)
            sim = ours(network, machine, size, folder)
            if not sim:
                print(f"{name:22} {size:10} {part:4.0%} {lru:10} {belady:10} "
                      f"{'no fit':>10}")
                continue
            row = []
            for key, bytes_ in (("lru", lru), ("belady", belady)):
                ratio = sim["extra"] / bytes_ if bytes_ else math.nan
                row.append(ratio)
                if bytes_:
                    against[key].append(ratio)
            print(f"{name:22} {size:10} {part:4.0%} {lru:10} {belady:10} "
                  f"{sim['extra']:10} {row[0]:6.3f} {row[1]:6.3f} "
                  f"{sim['seconds']:5.2f}")
    for key, ratios in against.items():
        print(f"geometric mean of ours / {key}: {mean(ratios):.3f} over "
              f"{len(ratios)} rows")


def anchor(folder):
    text = open("examples/yolov2-608.prototxt").read()
    path = os.path.join(folder, "yolov2-608-relu.prototxt")
    with open(path, "w") as out:
        out.write(re.sub(r"relu_param\s*{[^}]*}", "", text))
    sim = ours(path, "xdnn-v2-56", "6MiB", folder)
    print(f"yolov2-608 with ReLU, xdnn-v2-56: {sim['total'] / 2**20:.1f} MiB "
          f"({sim['ddr_compulsory_bytes'] / 2**20:.1f} compulsory), recorded "
          f"{RECORDED / 2**20:.1f} MiB")


def main():
    machine = sys.argv[1] if len(sys.argv) > 1 else "xdnn-v2-56"
    names = ("resnet50", "googlenet", "inception-v3", "mobilenet-v2",
             "squeezenet", "vgg16", "densenet-cell", "yolov2-608")
    networks = sys.argv[2:] or [f"examples/{n}.prototxt" for n in names]
    with tempfile.TemporaryDirectory() as folder:
        table(networks, machine, folder)
        anchor(folder)


if __name__ == "__main__":
    main()
