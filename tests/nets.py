#!/usr/bin/env python3
"""nets.py - networks as people bring them: what cannot be compiled is compiled
around.

Small ONNX models, written here, with what exports have: operators that nobody
knows, functions of the model, If, constants that are computed, heads to cut off.
Values are checked against those that this script computes.
"""
import os
import struct
import sys

import scratch
from checked import BAD, check, ramp, run
from truthlib import npy_write
from write_onnx import Net

FOLDER = scratch.folder("amphora-nets-")


def path_of(name):
    return os.path.join(FOLDER, name)


def npy(name, shape, numbers):
    npy_write(path_of(name), shape, struct.pack(f"<{len(numbers)}f", *numbers))
    return path_of(name)


def expects(name, net, given, expected, *options):
    """`eval` of the model makes these values of its only output."""
    path = net.write(path_of(name + ".onnx"))
    arguments = ["eval", path, *options]
    for i, (shape, numbers) in enumerate(given):
        arguments += ["--input", npy(f"{name}_{i}.npy", shape, numbers)]
    arguments += ["--expect", npy(f"{name}_out.npy", *expected)]
    code, said = run(*arguments)
    check(name, code == 0, said)
    return path


def verifies(name, path, machine, *options):
    code, said = run("verify", path, "-t", machine, *options)
    check(f"{name} on {machine}", code == 0, said)
    return said


# ---- operators that are not known ----

def unknown_operator():
    net = Net([("x", [1, 2, 4, 4])])
    kernel = net.floats([3, 2, 1, 1], [1, 2, 3, 4, 5, 6])
    a = net.node("Conv", ["x", kernel], "a")
    net.node("Mystery", [a], "m", domain="com.example", size=3)
    net.node("Relu", ["m"], "y")
    net.output("y")
    path = net.write(path_of("unknown.onnx"))
    code, said = run("show", path)
    check("an unknown operator without a shape is refused",
          code == 1 and "--shape m=1x" in said and "com.example.Mystery" in said,
          said)
    code, said = run("eval", path, "--shape", "m=1x3x2x2")
    check("... and read with one, with a warning",
          code == 0 and "made up: --fix m=FILE.npy" in said, said)
    fix = npy("m.npy", [1, 3, 2, 2], [i - 5.5 for i in range(12)])
    said = verifies("the call", path, "ring-npu", "--shape", "m=1x3x2x2",
                    "--fix", "m=" + fix)
    check("... its values are given", "made up" not in said, said)
    out = npy("y.npy", [1, 3, 2, 2], [max(0, i - 5.5) for i in range(12)])
    code, said = run("verify", path, "-t", "ring-npu", "--shape", "m=1x3x2x2",
                     "--fix", "m=" + fix, "--expect", out)
    check("... and reach the result", code == 0, said)
    net.told("m", [1, 3, 2, 2])
    path = net.write(path_of("told.onnx"))
    code, said = run("compile", path, "-t", "ring-npu", "-o", FOLDER)
    check("a shape in value_info will do", code == 0 and "(call)" in said, said)
    with open(path_of("told.cmd"), encoding="utf-8") as file:
        text = file.read()
    check("the call has its place in the listing", "m" in text, text)
    if "without LLVM" in run("compile", path, "-t", "ring-npu", "-o", FOLDER,
                             "--emit", "host")[1]:
        return
    with open(path_of("told.host.h"), encoding="utf-8") as file:
        text = file.read()
    check("... and in the header",
          "com.example.Mystery" in text and "yours to write" in text and
          "void told_m(const float *in0, float *out0);" in text, text)


# ---- parts of models ----

def cuts():
    net = Net([("x", [1, 2, 4, 4])])
    kernel = net.floats([2, 2, 1, 1], [1, 0, 0, 1])
    a = net.node("Conv", ["x", kernel], "a")
    b = net.node("Relu", [a], "b")
    net.node("NonMaxSuppression", [b, b], "n")
    net.output("n")
    net.told("b", [1, 2, 4, 4])
    path = net.write(path_of("cut.onnx"))
    code, said = run("show", path)
    check("a head is refused", code == 1, said)
    said = verifies("--outputs", path, "ring-npu", "--outputs", "b")
    said = verifies("--inputs", path, "ring-npu", "--inputs", "a", "--shape",
                    "a=1x2x4x4", "--outputs", "b")
    code, said = run("show", path, "--outputs", "nobody")
    check("an output that nobody makes", code == 1 and "nobody" in said, said)
    said = verifies("a part of a Caffe network", "examples/tiny.prototxt",
                    "ring-npu", "--inputs", "pool1", "--outputs", "mix,both")
    code, said = run("show", path, "--inputs", "a", "--outputs", "b")
    check("an input of no shape", code == 1 and "--shape a=1x" in said, said)


# ---- constants that are computed ----

def constants():
    net = Net([("x", [1, 2, 1, 2])])
    weight = net.floats([2, 2, 1, 1], [-3, 1, 2, 9])
    low, high = net.floats([], [-1]), net.floats([], [2])
    net.node("Conv", ["x", net.node("Tanh", [net.node(
        "Clip", [weight, low, high])])], "y")
    net.output("y")
    tanh = [-0.76159415, 0.76159415, 0.96402758, 0.96402758]
    expects("weights by Clip and Tanh", net, [([1, 2, 1, 2], [1, 2, 3, 4])],
            ([1, 2, 1, 2], [tanh[0] + 3 * tanh[1], 2 * tanh[0] + 4 * tanh[1],
                            tanh[2] + 3 * tanh[3], 2 * tanh[2] + 4 * tanh[3]]))
    net = Net([("x", [1, 3])])
    rows = net.floats([3, 2], [3, 0, 0, 4, 3, 4])
    norm = net.node("ReduceL2", [rows], axes=[1], keepdims=1)
    net.node("Gemm", ["x", net.node("Div", [rows, norm])], "y")
    net.output("y")
    expects("weights by ReduceL2", net, [([1, 3], [1, 2, 5])],
            ([1, 2], [1 + 3, 2 + 4]))
    net = Net([("x", [1, 1, 2, 2])])
    net.node("Pad", ["x", "p"], "y", mode="constant")
    net.output("y")
    net.tail += Net([("p", [8])]).tail
    path = net.write(path_of("pads.onnx"))
    code, said = run("show", path)
    check("an input that must be a constant",
          code == 1 and "--fix p=FILE.npy makes it one" in said, said)
    pads = npy("p.npy", [8], [0, 0, 1, 1, 0, 0, 1, 1])
    code, said = run("eval", path, "--fix", "p=" + pads)
    check("... is one by --fix", code == 0, said)


def branches():
    for yes in (0, 1):
        net = Net([("x", [1, 4])])
        then, other = Net(name="then"), Net(name="else")
        then.node("Mul", ["x", then.floats([], [2], "two")], "t")
        then.output("t")
        other.node("Neg", ["x"], "e")
        other.output("e")
        net.node("If", [net.truth(yes)], "r", then_branch=then,
                 else_branch=other)
        net.node("Identity", ["r"], "y")
        net.output("y")
        expects(f"If of a constant, {yes}", net, [([1, 4], [1, 2, 3, 4])],
                ([1, 4], [2, 4, 6, 8] if yes else [-1, -2, -3, -4]))


def functions():
    net = Net([("x", [1, 4])])
    inner = net.function("own", "Half", ["a"], ["b"], ["alpha"])
    inner.node("LeakyRelu", ["a"], "c", alpha=("ref", "alpha"))
    inner.node("Add", ["c", "c"], "b")
    net.end_function(inner)
    outer = net.function("own", "Twice", ["a"], ["b"])
    outer.node("Half", ["a"], "c", domain="own", alpha=0.5)
    outer.node("Half", ["c"], "b", domain="own", alpha=0.25)
    net.end_function(outer)
    net.node("Twice", ["x"], "y", domain="own")
    net.output("y")
    expects("functions of the model", net, [([1, 4], [-4, 4, 1, -1])],
            ([1, 4], [-2, 16, 4, -0.5]))
    net = Net([("x", [1, 4])])
    inner = net.function("own", "Self", ["a"], ["b"])
    inner.node("Self", ["a"], "b", domain="own")
    net.end_function(inner)
    net.node("Self", ["x"], "y", domain="own")
    net.output("y")
    code, said = run("show", net.write(path_of("self.onnx")))
    check("a function that calls itself ends",
          code == 1 and "nest more than" in said, said)


def fortran():
    net = Net([("x", [2, 3])])
    net.node("Relu", ["x"], "y")
    net.output("y")
    path = net.write(path_of("fortran.onnx"))
    head = "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(path_of("f.npy"), "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) +
                   head.encode() + struct.pack("<6f", 1, 4, 2, 5, 3, 6))
    code, said = run("eval", path, "--input", path_of("f.npy"), "--expect",
                     npy("c.npy", [2, 3], [1, 2, 3, 4, 5, 6]))
    check(".npy in Fortran's order", code == 0, said)


# ---- what exports write, as what engines run ----

def gelu(net, x):
    erf = net.node("Erf", [net.node("Div", [x, net.floats([], [2 ** 0.5])])])
    twice = net.node("Mul", [x, net.node("Add", [erf, net.floats([], [1])])])
    return net.node("Mul", [twice, net.floats([], [0.5])])


def linear(net, x, k, out):
    weight = net.floats([k, out], [v / k for v in ramp(k * out)])
    y = net.node("MatMul", [x, weight])
    return net.node("Add", [net.floats([out], ramp(out, 0.21)), y])


def layer_norm(net, x, k):
    """As torch exports it below opset 17."""
    less = net.node("Sub", [x, net.node("ReduceMean", [x], axes=[-1])])
    two, eps = net.floats([], [2]), net.floats([], [1e-5])
    square = net.node("ReduceMean", [net.node("Pow", [less, two])], axes=[-1])
    root = net.node("Sqrt", [net.node("Add", [square, eps])])
    y = net.node("Div", [less, root])
    y = net.node("Mul", [y, net.floats([k], ramp(k, 0.11))])
    return net.node("Add", [y, net.floats([k], ramp(k, 0.23))])


def share_of(path, machine, *options):
    """(percent of products on engines, layers of the host by kind)"""
    import json
    code, said = run("compile", path, "-t", machine, "-o", FOLDER, "--json",
                     *options)
    if code:
        return 0, {said: 1}
    found = json.loads(said)
    mine, host = found["engine_products"], found["host_products"]
    kinds = {}
    for layer in found["host_layers"]:
        kinds[layer["kind"]] = kinds.get(layer["kind"], 0) + 1
    return 100 * mine / max(1, mine + host), kinds


def tokens():
    """The block of a ConvNeXt: depthwise, norm, and two Linear over pixels."""
    net = Net([("x", [1, 8, 6, 5])])
    kernel = net.floats([8, 1, 3, 3], ramp(72))
    x = net.node("Conv", ["x", kernel], pads=[1, 1, 1, 1], group=8)
    y = net.node("Transpose", [x], perm=[0, 2, 3, 1])
    y = layer_norm(net, y, 8)
    y = linear(net, gelu(net, linear(net, y, 8, 32)), 32, 8)
    y = net.node("Transpose", [y], perm=[0, 3, 1, 2])
    net.node("Add", ["x", y], "y")
    net.output("y")
    path = net.write(path_of("tokens.onnx"))
    verifies("a block of ConvNeXt", path, "ring-npu")
    share, kinds = share_of(path, "ring-npu")
    check("... all products on the engine", share == 100 and "fc" not in kinds,
          f"{share} {kinds}")
    check("... the norm is one layer of the host, and GELU",
          kinds == {"norm": 1, "act": 1}, str(kinds))
    net = Net([("x", [1, 7, 12])])
    y = layer_norm(net, "x", 12)
    y = linear(net, gelu(net, linear(net, y, 12, 40)), 40, 12)
    net.node("Add", ["x", y], "y")
    net.output("y")
    path = net.write(path_of("mlp.onnx"))
    verifies("the MLP of a transformer", path, "ring-npu")
    share, kinds = share_of(path, "ring-npu")
    check("... all products on the engine", share == 100 and "fc" not in kinds,
          f"{share} {kinds}")
    check("... one transposition in, one out", kinds.get("transpose") == 2,
          str(kinds))


def main():
    tokens()
    unknown_operator()
    cuts()
    constants()
    branches()
    functions()
    fortran()
    print(f"{len(BAD)} wrong")
    return len(BAD) > 0


if __name__ == "__main__":
    CODE = main()
    sys.exit(CODE)
