#!/usr/bin/env python3
"""scale.py - does planning take time in proportion to a network's length?

    python3 bench/scale.py [-m MACHINE]... [-k KIND]... [-l LAYERS]...
                           [--effort N] [--limit SECONDS]

Networks of four kinds, of about 100, 1,000 and 3,000 layers, on every shipped
machine with active memory: its own, and 3/5 of what the plan of the shortest
takes ("tight"). CPU milliseconds a layer, of the whole compile command, and
how many times those of the shortest they are. What does not fit is refused,
which takes time, too ("no"). Exits 1 if some are more than 3 times.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import networks
import tool

MACHINES = ("xdnn-v2-28", "xdnn-v2-56", "xdnn-v3-96", "tile-npu", "ring-npu",
            "line-npu", "stage-npu", "darius-32", "darius-64", "math-engine",
            "vta-pynq", "template", "n64", "null")
LAYERS = (100, 1000, 3000)
MOST = 3  # times the CPU a layer of the shortest


def chain(net, x, until):
    while net.count < until:
        x = net.relu(net.conv(x, 32, 3))


def residual(net, x, until):
    x = net.conv(x, 32, 1)
    while net.count < until:
        y = net.relu(net.conv(x, 32, 3))
        x = net.relu(net.add(x, net.conv(y, 32, 3)))


def dense(net, x, until):
    """Blocks of six layers, each of which reads all before it in its block."""
    while net.count < until:
        x = net.conv(x, 32, 1)
        for _ in range(6):
            y = net.conv(net.relu(net.conv(net.relu(x), 32, 1)), 8, 3)
            x = net.concat([x, y])


def cells(net, x, until):
    """Each cell reads the two before it, and joins five sums (NASNet-A)."""
    last, x = x, net.conv(x, 32, 1)
    last = net.conv(last, 32, 1)
    while net.count < until:
        a, b = net.conv(net.relu(last), 8, 1), net.conv(net.relu(x), 8, 1)
        sep = networks.separable
        sums = [net.add(sep(net, b, 8, 3, 1), b),
                net.add(sep(net, a, 8, 3, 1), sep(net, b, 8, 5, 1)),
                net.add(net.pool(b, "AVE", 3), a),
                net.add(net.pool(a, "AVE", 3), net.pool(a, "AVE", 3)),
                net.add(sep(net, a, 8, 5, 1), sep(net, a, 8, 3, 1))]
        last, x = x, net.concat(sums)


KINDS = {"chain": chain, "residual": residual, "dense": dense, "cells": cells}


def written(kind, layers, folder):
    net = networks.Net(f"{kind}-{layers}", 16, 56)
    KINDS[kind](net, net.input, layers)
    path = os.path.join(folder, f"{kind}-{layers}.prototxt")
    with open(path, "w", encoding="ascii") as out:
        out.write(net.text())
    return path, net.count


def compiled(path, machine, sets, args, folder):
    """(exit code, CPU seconds, standard output); code None: it took too long,
    of CPU, as others may be at work."""
    before = tool.cpu_seconds()
    done = subprocess.run(
        ["prlimit", f"--cpu={args.limit}", tool.AMPHORA, "compile", path,
         "-t", machine, "-o", folder, "--json", "--effort", str(args.effort),
         *sets],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    code = None if done.returncode < 0 else done.returncode
    if code not in (None, 0, tool.DOES_NOT_FIT):
        sys.exit(f"{path} on {machine}: {done.stderr}")
    return code, tool.cpu_seconds() - before, done.stdout


def tight(plan):
    """Settings for 3/5 of the memory that a plan takes."""
    used = tool.json.loads(plan)["am_bytes"]
    return tool.flags([tool.am(used * 3 // 5 // 64 * 64)])


def row(kind, machine, sets, args, folder):
    """Whether CPU a layer stays below MOST times that of the shortest."""
    first, text, good, shortest = None, "", True, ""
    for layers in args.layers:
        path, n = written(kind, layers, folder)
        code, cpu, out = compiled(path, machine, sets, args, folder)
        each = 1000 * cpu / n
        first, shortest = first or each, shortest or out
        good &= code is not None and each <= MOST * first
        text += f"{each:9.2f} {each / first:5.1f}"
        text += {None: " endless", 0: "        "}.get(code, " no     ")
    print(f"{machine:12} {kind:9} {'tight' if sets else 'own':6}{text}"
          f"{'' if good else ' SLOW'}", flush=True)
    return good, shortest


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-m", dest="machines", action="append")
    parser.add_argument("-k", dest="kinds", action="append")
    parser.add_argument("-l", dest="layers", action="append", type=int)
    parser.add_argument("--effort", type=int, default=1)
    parser.add_argument("--limit", type=int, default=120)
    args = parser.parse_args()
    args.layers = args.layers or LAYERS
    good = True
    with tempfile.TemporaryDirectory() as folder:
        for machine in args.machines or MACHINES:
            for kind in args.kinds or KINDS:
                own, plan = row(kind, machine, [], args, folder)
                good &= own
                if plan:
                    good &= row(kind, machine, tight(plan), args, folder)[0]
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
