#!/usr/bin/env python3
"""results.py - random graphs with several results, where memory is short.

    python3 bench/results.py [-n GRAPHS] [--seed N] [--operators N] [--verify]

Graphs of convolutions (1x1, 3x3) and sums over volumes of one size, with 1 to 5
results, of which some are taps: convolutions to few channels of what others
read as well. Each at 90, 75, 50 and 25 % of its peak, on bench/rows.yaml. Bytes
over DDR beyond the compulsory ones beside LRU and Belady (policies.py), and
beside the same graph with its results summed into one: that may move no less
than ours but for the bytes of the results. --verify runs each listing by value.
"""
import argparse
import os
import random
import sys
import tempfile

import networks
import policies
import residency
import tool
import traffic

SIZE, WIDTH, TAP = 64, 16, 4


def body(net, rng, operators):
    """Volumes that nobody reads, and those that others read as well."""
    made, read = [net.conv(net.input, WIDTH, 3)], set()
    while len(made) < operators:
        near = made[-6:]
        x = rng.choice(near)
        if len(near) > 1 and rng.random() < 0.35:
            pair = rng.sample(near, 2)
            made.append(net.add(*pair))
            read.update(pair)
        else:
            made.append(net.conv(x, WIDTH, rng.choice((1, 3, 3))))
            read.add(x)
    return [x for x in made if x not in read], [x for x in made if x in read]


def graph(seed, operators, joined):
    """The network and the bytes of its results."""
    rng = random.Random(seed)
    net = networks.Net(f"results-{seed}", 3, SIZE)
    loose, inner = body(net, rng, operators)
    n = rng.randint(1, 5)
    while len(loose) > n:
        loose.append(net.add(loose.pop(0), loose.pop(0)))
    taps = sorted(rng.sample(inner, min(n - len(loose), len(inner))))
    results = loose + [net.conv(t, TAP, 1) for t in taps]
    if joined:
        results = [net.conv(x, TAP, 1) if x[1] != TAP else x for x in results]
        while len(results) > 1:
            results.append(net.add(results.pop(0), results.pop(0)))
    return net, sum(x[1] * x[2] * x[2] for x in results)


def written(seed, operators, joined, folder):
    net, size = graph(seed, operators, joined)
    path = os.path.join(folder, f"results-{seed}{'-one' * joined}.prototxt")
    with open(path, "w", encoding="ascii") as out:
        out.write(net.text())
    return path, size


class Sums:
    def __init__(self):
        self.rows, self.ratios = 0, []
        self.above = {"LRU": 0, "Belady": 0, "one result": 0, "no fit": 0}

    def add(self, ours, lru, belady, one):
        self.rows += 1
        if ours is None:
            self.above["no fit"] += 1
            return
        if lru or ours:
            self.ratios.append(ours / max(lru, 1))
        self.above["LRU"] += ours > lru
        self.above["Belady"] += ours > belady
        self.above["one result"] += one is not None and ours > one

    def mean(self):
        return sum(self.ratios) / max(len(self.ratios), 1)

    def __str__(self):
        above = ", ".join(f"{n} {what}" for what, n in self.above.items())
        return (f"{self.rows} rows, mean of ours / LRU {self.mean():.4f}, worst "
                f"{max(self.ratios, default=0):.3f}; above: {above}")


def one_graph(seed, operators, folder, sums, verify=False):
    machine = residency.MACHINE
    path, size = written(seed, operators, False, folder)
    single, _ = written(seed, operators, True, folder)
    trace = policies.Trace(path, machine, folder, 1)
    for part in traffic.PARTS:
        cap = int(trace.peak * part) // 1024 * 1024
        lru, belady = (policies.policy(trace, cap, f) for f in (False, True))
        sim = tool.counted(path, machine, folder, tool.am(cap))
        other = tool.counted(single, machine, folder, tool.am(cap))
        ours = sim and sim["extra"]
        one = other and other["extra"] + size
        if verify and sim:
            tool.verified(path, machine, tool.am(cap))
        sums.add(ours, lru, belady, one)
        if ours is None or ours > 0.1 * lru or (one and ours > one):
            print(f"seed {seed} {part:.0%} of {trace.peak}: ours {ours}, LRU "
                  f"{lru}, Belady {belady}, one result {one}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-n", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--operators", type=int, default=14)
    parser.add_argument("--verify", action="store_true")
    args, sums = parser.parse_args(), Sums()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(args.seed, args.seed + args.n):
            one_graph(seed, args.operators, folder, sums, args.verify)
    print(sums)
    return any(sums.above.values())


if __name__ == "__main__":
    sys.exit(main())
