#!/usr/bin/env python3
"""products.py - matrix products, however their operands lie, on engines.

Adjacency times nodes, a constant on either side, one for each head, products
over tokens (attention between channels), linear attention, all pairs of points.
On vision-npu no product is left to the host, and the simulated listing has the
values of the reference evaluation.
"""
import os
import sys

import scratch
from checked import BAD, check, ramp, run_json
from write_onnx import Net

FOLDER = scratch.folder("amphora-products-")
MACHINE = "vision-npu"


def end(net, at):
    net.node("Relu", [at], "y")
    net.output("y")
    return net


def linear(net, at, k, n):
    return net.node("MatMul", [at, net.floats([k, n], ramp(k * n, 0.317))])


def graph_layer():
    """Nodes' values, and which nodes they have beside them, both inputs."""
    net = Net([("x", [20, 6]), ("beside", [20, 20])])
    at = linear(net, "x", 6, 8)
    at = net.node("Relu", [net.node("MatMul", ["beside", at])])
    return end(net, net.node("MatMul", ["beside", linear(net, at, 8, 4)]))


def fixed_graph():
    net = Net([("x", [20, 6])])
    beside = net.floats([20, 20], ramp(400, 0.173))
    at = net.node("MatMul", [beside, "x"])
    return end(net, linear(net, at, 6, 8))


def heads_of(net, at, heads, tokens, each):
    at = net.node("Reshape", [at, net.whole(1, tokens, heads, each)])
    return net.node("Transpose", [at], perm=[0, 2, 1, 3])


def fixed_by_head(shape):
    """Queries of each head times constants, of the head or of all."""
    net = Net([("x", [1, 10, 12])])
    q = heads_of(net, linear(net, "x", 12, 12), 3, 10, 4)
    count = shape[0] * shape[1] * shape[2] * shape[3]
    return end(net, net.node("MatMul", [q, net.floats(shape, ramp(count))]))


def between_channels():
    """XCiT: scores between the channels of a head are sums over tokens."""
    net = Net([("x", [1, 10, 12])])
    q, k, v = (heads_of(net, linear(net, "x", 12, 12), 3, 10, 4)
               for _ in range(3))
    turned = [net.node("Transpose", [t], perm=[0, 1, 3, 2]) for t in (q, v)]
    scores = net.node("MatMul", [turned[0], k])
    return end(net, net.node("MatMul", [scores, turned[1]]))


def linear_attention():
    net = Net([("x", [1, 12, 4, 4])])
    at = net.node("Conv", ["x", net.floats([24, 12, 1, 1], ramp(288))])
    at = net.node("Reshape", [at, net.whole(1, 2, 12, 16)])
    at = net.node("Transpose", [at], perm=[0, 1, 3, 2])
    q, k, v = (net.node("Slice", [at, net.whole(i), net.whole(i + 4),
                                  net.whole(3)]) for i in (0, 4, 8))
    k = net.node("Transpose", [k], perm=[0, 1, 3, 2])
    return end(net, net.node("MatMul", [q, net.node("MatMul", [k, v])]))


def all_pairs():
    """How far each of some points is from each other."""
    net = Net([("x", [1, 3, 15])])
    turned = net.node("Transpose", ["x"], perm=[0, 2, 1])
    return end(net, net.node("MatMul", [turned, "x"]))


def between_channels_weighed():
    """... with a softmax of the scores, whose rows lie along pixels."""
    net = Net([("x", [1, 10, 12])])
    q, k, v = (heads_of(net, linear(net, "x", 12, 12), 3, 10, 4)
               for _ in range(3))
    turned = [net.node("Transpose", [t], perm=[0, 1, 3, 2]) for t in (q, v)]
    scores = net.node("MatMul", [turned[0], k])
    scores = net.node("Softmax", [scores], axis=-1)
    return end(net, net.node("MatMul", [scores, turned[1]]))


def frames():
    """Channels and rows of each column are what a frame's product is of, as
    networks of speech have it."""
    net = Net([("x", [1, 3, 5, 11])])
    at = net.node("Transpose", ["x"], perm=[0, 3, 1, 2])
    at = net.node("Reshape", [at, net.whole(1, 11, 15)])
    return end(net, linear(net, at, 15, 8))


def patches():
    """Squares of an image as tokens, and back."""
    net = Net([("x", [1, 1, 12, 8])])
    at = net.node("Reshape", ["x", net.whole(1, 1, 3, 4, 2, 4)])
    at = net.node("Transpose", [at], perm=[0, 2, 4, 3, 5, 1])
    at = net.node("Reshape", [at, net.whole(1, 6, 16)])
    at = net.node("Reshape", [linear(net, at, 16, 16),
                              net.whole(1, 3, 2, 4, 4, 1)])
    at = net.node("Transpose", [at], perm=[0, 5, 1, 3, 2, 4])
    return end(net, net.node("Reshape", [at, net.whole(1, 1, 12, 8)]))


def cell():
    """A GRU's step as exports of a cell have it, parts of whose gates are
    columns."""
    net = Net([("x", [1, 10]), ("h", [1, 8])])
    net.node("Split", [linear(net, "x", 10, 24)], axis=1,
             outs=["xr", "xz", "xn"])
    net.node("Split", [linear(net, "h", 8, 24)], axis=1,
             outs=["hr", "hz", "hn"])
    r, z = (net.node("Sigmoid", [net.node("Add", ["x" + k, "h" + k])])
            for k in "rz")
    a = net.node("Add", ["xn", net.node("Mul", [r, "hn"])])
    a = net.node("Tanh", [a])
    rest = net.node("Mul", [z, net.node("Sub", ["h", a])])
    return end(net, net.node("Add", [a, rest]))


def gated(shape, axis):
    """One half says what of the other goes on, of an input of any axes."""
    net = Net([("x", shape)])
    net.node("Split", ["x"], outs=["a", "b"], axis=axis)
    at = net.node("Mul", ["a", net.node("Sigmoid", ["b"])])
    wide = shape[-1] // (2 if axis == len(shape) - 1 else 1)
    return end(net, linear(net, at, wide, 7))


NETS = {
    "a graph": graph_layer(),
    "a fixed graph": fixed_graph(),
    "constants of each head": fixed_by_head([1, 3, 4, 7]),
    "constants of all heads": fixed_by_head([1, 1, 4, 7]),
    "between channels": between_channels(),
    "between channels, weighed": between_channels_weighed(),
    "frames": frames(),
    "patches": patches(),
    "linear attention": linear_attention(),
    "all pairs": all_pairs(),
    "a cell": cell(),
    "gated, one row": gated([1, 24], 1),
    "gated columns": gated([6, 24], 1),
    "gated rows": gated([12, 10], 0),
    "gated channels of tokens": gated([1, 5, 24], 2),
    "gated tokens": gated([1, 12, 10], 1),
    "gated, of two": gated([2, 3, 5, 24], 3),
}


def main():
    path = os.path.join(FOLDER, "net.onnx")
    for name, net in NETS.items():
        net.write(path)
        status, made = run_json("verify", path, "-t", MACHINE, "--tolerance", "1e-5")
        check(name, status == 0 and not made.get("violations"),
              f"exit {status}, {made}")
        _, made = run_json("compile", path, "-t", MACHINE, "-o", FOLDER)
        check(f"{name}: no layer of the host",
              made.get("engine_products", 0) and not made["host_layers"],
              f"{made.get('host_layers')}")
    print(f"{len(BAD)} wrong")
    return 1 if BAD else 0


if __name__ == "__main__":
    sys.exit(main())
