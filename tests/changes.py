#!/usr/bin/env python3
"""changes.py - what `share` says that an operator of an engine would save.

Of vision-npu one operator is taken away, so that the host has its layers. What
is said of them, their time and their transfers, is compared with the cycles that
the whole machine takes less: within a quarter, and within two fifths for pools,
whose own time on an engine, which nobody knows before there is one, is long.
usage: changes.py [AMPHORA]
"""
import json
import os
import re
import subprocess
import sys

import nets
from nets import FOLDER, check, path_of, ramp, run
from write_onnx import Net

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MACHINE = os.path.join(ROOT, "hwspec", "targets", "vision-npu.yaml")


def without(op):
    """The machine whose engines do not run `op`."""
    with open(MACHINE, encoding="utf-8") as file:
        text = file.read()
    text = re.sub(rf"(?<=[\[ ]){op}(,\s*|(?=\]))", "", text)
    path = path_of(f"no-{op.replace('_', '-')}.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def conv(net, x, k, out):
    weight = net.floats([out, k, 1, 1], [v / k for v in ramp(k * out)])
    return net.node("Conv", [x, weight])


def gated():
    net = Net([("x", [1, 16, 24, 24])])
    x = conv(net, "x", 16, 32)
    for _ in range(3):
        mean = net.node("GlobalAveragePool", [x])
        gate = net.node("HardSigmoid", [conv(net, mean, 32, 32)])
        x = conv(net, net.node("Mul", [x, gate]), 32, 32)
    net.node("Relu", [x], "y")
    net.output("y")
    return net


def pooled():
    net = Net([("x", [1, 16, 24, 24])])
    x = conv(net, "x", 16, 32)
    for _ in range(3):
        x = net.node("MaxPool", [x], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        x = conv(net, x, 32, 32)
    net.node("Relu", [x], "y")
    net.output("y")
    return net


def summed():
    """Layers of the host behind each other, whose operands two of them read."""
    net = Net([("x", [1, 16, 24, 24])])
    x = conv(net, "x", 16, 32)
    for _ in range(2):
        y = conv(net, x, 32, 32)
        z = net.node("Add", [x, y])
        x = conv(net, net.node("Add", [z, y]), 32, 32)
    net.node("Relu", [x], "y")
    net.output("y")
    return net


def busy():
    """Stores hide behind convolutions by channel, for which the array is slow."""
    net = Net([("x", [1, 64, 28, 28])])
    x = conv(net, "x", 64, 64)
    for _ in range(3):
        weight = net.floats([64, 1, 5, 5], [v / 25 for v in ramp(64 * 25)])
        x = net.node("Conv", [x, weight], group=64, pads=[2, 2, 2, 2])
        mean = net.node("GlobalAveragePool", [x])
        gate = net.node("HardSigmoid", [conv(net, mean, 64, 64)])
        x = conv(net, net.node("Mul", [x, gate]), 64, 64)
    net.node("Relu", [x], "y")
    net.output("y")
    return net


def summary(path, machine):
    code, said = run("compile", path, "-t", machine, "-o", FOLDER, "--json")
    return json.loads(said) if code == 0 else check("compiles", False, said)


def saves(name, net, op, within=0.25):
    path = net.write(path_of(name + ".onnx"), 17)
    ours, poorer = summary(path, MACHINE), summary(path, without(op))
    check(f"{name}: the host has layers without {op}",
          not ours["host_layers"] and len(poorer["changes"]) == 1,
          str(poorer["changes"]))
    change = poorer["changes"][0]
    said = change["cycles"] + change["transfer_cycles"]
    true = poorer["total_cycles"] - ours["total_cycles"]
    check(f"... and {op} on an engine saves {true}, as is said, {said}",
          change["transfer_cycles"] > 0 and abs(said - true) <= true * within)


def main():
    saves("gated", gated(), "mul_channels")
    saves("busy", busy(), "mul_channels")
    saves("pooled", pooled(), "pool_max", 0.4)
    saves("summed", summed(), "add")
    print(f"{len(nets.BAD)} wrong")
    return len(nets.BAD) > 0


if __name__ == "__main__":
    CODE = main()
    subprocess.run(["rm", "-rf", FOLDER], check=False)
    sys.exit(CODE)
