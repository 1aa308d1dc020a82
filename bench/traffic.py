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
read and not there is loaded. A layer whose own volumes do not fit together
passes them over DDR once each, as tiles without halo would: no buffers are
charged to it, nothing is evicted for it. Ours pays for halos and buffers.
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


def policy(trace, capacity, furthest):
    """Bytes beyond the compulsory ones."""
    uses = {}
    for i, (reads, made) in enumerate(trace.layers):
        for b in reads | {made}:
            uses.setdefault(b, []).append(i)
    last, inside, outside, extra, seen = {}, set(), set(trace.inputs), 0, set()

    def following(b, i):
        return next((u for u in uses[b] if u > i), NEVER)

    def leave(b, i):
        nonlocal extra
        inside.discard(b)
        if b not in outside and following(b, i - 1) != NEVER:
            extra += trace.moved[b]
            outside.add(b)

    for i, (reads, made) in enumerate(trace.layers):
        all_of = reads | {made}
        if sum(trace.size[b] for b in all_of) > capacity:
            for b in reads:
                if b in inside:
                    leave(b, i)
                if b not in trace.inputs or b in seen:
                    extra += trace.moved[b]
                seen.add(b)
            inside.discard(made)
            if following(made, i) != NEVER:
                extra += trace.moved[made]
            outside.add(made)
            continue
        for b in sorted(all_of - inside):
            while (sum(trace.size[v] for v in inside) + trace.size[b]
                   > capacity):
                spare = sorted(inside - all_of)
                leave(max(spare, key=lambda v: following(v, i)) if furthest
                      else min(spare, key=lambda v: last[v]), i)
            inside.add(b)
            if b in reads or (b in outside and b not in trace.inputs):
                if b not in trace.inputs or b in seen:
                    extra += trace.moved[b]
            seen.add(b)
        outside.discard(made)
        for b in all_of:
            last[b] = i
        for b in [b for b in inside if following(b, i) == NEVER]:
            inside.discard(b)
    return extra


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


def table(networks, machine, folder):
    against = {"lru": [], "belady": []}
    print(f"{'network':22} {'AM':>10} {'part':>4} {'lru':>10} {'belady':>10} "
          f"{'ours':>10} {'/lru':>6} {'/bel.':>6} {'s':>5}")
    for network in networks:
        trace = Trace(network, machine, folder)
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
