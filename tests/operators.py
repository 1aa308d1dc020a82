#!/usr/bin/env python3
"""operators.py - what vision-npu's vector engine runs beside the array.

Small ONNX models with the blocks of networks of after 2018. Each is verified by
value, has no layer of the host, and its instructions are those expected.
"""
import math
import os
import subprocess
import sys

import nets
from nets import FOLDER, check, path_of, ramp, run, share_of, verifies
from write_onnx import Net

MACHINE = "vision-npu"


def mnemonics(path, *options):
    """Of the listing, in order, without what moves."""
    name = os.path.splitext(os.path.basename(path))[0]
    code, said = run("compile", path, "-t", MACHINE, "-o", FOLDER, *options)
    if code:
        return said
    with open(path_of(name + ".cmd"), encoding="utf-8") as file:
        lines = [line.split() for line in file if line.strip()]
    words = [w for line in lines if line[0] != "#"
             for w in line if w.isupper() and w.isalpha()]
    return [w for w in words if w not in ("LD", "ST", "CAT")]


def runs(name, net, expected, *options, opset=17):
    path = net.write(path_of(name.replace(" ", "-") + ".onnx"), opset)
    judged(name, path, expected, *options)
    return path


def judged(name, path, expected, *options):
    verifies(name, path, MACHINE, *options)
    _, kinds = share_of(path, MACHINE, *options)
    check(f"... {name} has no layer of the host", not kinds, str(kinds))
    found = mnemonics(path, *options)
    check(f"... {name} is {' '.join(expected)}", found == expected, str(found))


def conv(net, x, k, out, **attributes):
    weight = net.floats([out, k, 1, 1], [v / k for v in ramp(k * out)])
    return net.node("Conv", [x, weight], **attributes)


def gated(first):
    """Squeeze-and-excitation; the gate as the first operand or the second."""
    net = Net([("x", [1, 8, 6, 5])])
    x = conv(net, "x", 8, 8)
    x = net.node("Mul", [x, net.node("Sigmoid", [x])])
    mean = net.node("ReduceMean", [x], axes=[2, 3], keepdims=1)
    gate = net.node("HardSigmoid", [conv(net, mean, 8, 8)], alpha=1 / 6)
    y = net.node("Mul", [gate, x] if first else [x, gate])
    net.node("HardSwish", [conv(net, y, 8, 4)], "y")
    net.output("y")
    return net


def shifts():
    net = Net([("x", [1, 8, 4, 4])])
    x = conv(net, "x", 8, 8)
    most = net.node("ReduceMax", [x], axes=[2, 3], keepdims=1)
    net.node("Add", [most, x], "y")
    net.output("y")
    runs("a sum by channel", net, ["CONV", "MAXP", "ADDC"])


def shuffle(net, x, c, groups, rows, cols):
    apart = net.whole(1, groups, c // groups, rows, cols)
    whole = net.whole(1, c, rows, cols)
    y = net.node("Transpose", [net.node("Reshape", [x, apart])],
                 perm=[0, 2, 1, 3, 4])
    return net.node("Reshape", [y, whole])


def shuffled():
    net = Net([("x", [1, 12, 4, 3])])
    x = conv(net, "x", 12, 12)
    x = shuffle(net, x, 12, 2, 4, 3)
    outs = net.node("Split", [x], outs=["left", "right"], axis=1)
    check("a split", outs == "left")
    y = net.node("Concat", ["left", conv(net, "right", 6, 6)], axis=1)
    y = shuffle(net, y, 12, 3, 4, 3)
    conv(net, y, 12, 4)
    net.node("Relu", ["conv" + str(net.made)], "y")
    net.output("y")
    runs("shuffle and split", net,
         ["CONV", "CONV", "CONV", "GATHER", "CONV"])


def resized():
    """Nearest neighbour by whole factors, as necks of detectors have it."""
    net = Net([("x", [1, 3, 4, 4])])
    y = net.node("Resize", [conv(net, "x", 3, 6), "",
                            net.floats([4], [1, 1, 2, 3])], mode="nearest",
                 coordinate_transformation_mode="asymmetric",
                 nearest_mode="floor")
    net.node("Conv", [y, net.floats([4, 6, 1, 1], ramp(24))], "y")
    net.output("y")
    runs("a resize", net, ["CONV", "UP", "CONV"])


def example():
    path = "examples/gated-shuffle.json"
    verifies("the example", path, MACHINE)
    _, kinds = share_of(path, MACHINE)
    check("... the example has no layer of the host", not kinds, str(kinds))


def activations():
    for op, attributes in (("HardSwish", {}), ("Mish", {}), ("Elu", {}),
                           ("Softplus", {}), ("Gelu", {}), ("Tanh", {}),
                           ("Sigmoid", {}),
                           ("HardSigmoid", {"alpha": 0.25, "beta": 0.375})):
        net = Net([("x", [1, 3, 4, 4])])
        net.node(op, [conv(net, "x", 3, 6)], "y", **attributes)
        net.output("y")
        runs(op + " behind a convolution", net, ["CONV"], opset=20)
    net = Net([("x", [1, 3, 4, 4])])
    net.node("HardSwish", ["x"], "y")
    net.output("y")
    runs("HardSwish by itself", net, ["ACT"])


# Of each pixel the channels, in groups; of each group of channels the planes.
NORMS = ("norm axis=1 axes=1 eps=1e-05",
         "norm axis=1 axes=1 groups=3 rms=1 eps=1e-06",
         "softmax axis=1 groups=4", "norm axis=1 groups=2 eps=1e-06",
         "norm axis=2 eps=0.001")


# Attention of three heads in shifted windows, constants, pixels, other axes.
TOKENS = """graph "tokens"
input "q" writes="q":1x12x6x4
input "k" writes="k":1x12x6x4
input "v" writes="v":1x6x6x4
scale "q0" reads="q" writes="q0":1x12x6x4
mix "s" reads="q0","k" writes="s":1x18x6x4 groups=3 windows=2,2 shift=1,1
softmax "p" reads="s" writes="p":1x18x6x4 axis=1 groups=3
mix "o" reads="p","v" writes="o":1x6x6x4 over_pixels=1 groups=3 windows=2,2 shift=1,1
offset "b" reads="o" writes="b":1x6x6x4 period=3,2,4
pixels "g" reads="b" writes="g":1x6x5x3 plane=5,3
transpose "t" reads="g" writes="t":1x5x3x6 perm=0,2,3,1
reshape "r" reads="t" writes="r":1x3x10x3 shape=1,3,10,3
reduce "m" reads="r" writes="m":1x1x10x3 kind=KIND axes=2
output "m"
"""


def tokens():
    for kind, last in (("mean", "RMEAN"), ("sum", "RSUM"), ("max", "RMAX")):
        path = path_of("tokens-" + kind + ".graph")
        with open(path, "w", encoding="utf-8") as file:
            file.write(TOKENS.replace("KIND", kind))
        judged("tokens " + kind, path,
               ["SCALE", "MMC", "SOFTMAX", "MMP", "ADDK", "PIXELS", "TURN",
                "SHAPE", last])
    verifies("tokens on the host", path, "ring-npu")


# The same by one layer: keys, and behind them values.
ATTENDS = """graph "attends"
input "q" writes="q":1x12x6x4
input "kv" writes="kv":1x18x6x4
mix "a" reads="q","kv" writes="a":1x6x6x4 attends=1 groups=3 WINDOWS
output "a"
"""


def attends():
    for name, where in (("windows", "windows=2,2 shift=1,1"),
                        ("all", "windows=1,1 shift=0,0")):
        path = path_of("attends-" + name + ".graph")
        with open(path, "w", encoding="utf-8") as file:
            file.write(ATTENDS.replace("WINDOWS", where))
        judged("attention to " + name, path, ["ATTN"])
        verifies("... on the host", path, "ring-npu")


def block(late, mask=None):
    """A block of ViT-Ti: no memory holds the scores of 197 x 197 pixels."""
    net = Net([("x", [1, 197, 192])])
    z = attention(net, layer_norm(net, "x", 192, False), 1, 197, 192, 3, mask,
                  late)
    y = net.node("Add", ["x", z])
    z = net.node("Gelu", [linear(net, layer_norm(net, y, 192, False), 192,
                                 768)])
    net.node("Add", [y, linear(net, z, 768, 192)], "y")
    net.output("y")
    path = net.write(path_of("vit-block.onnx"), 20)
    if not mask:
        verifies("a block of ViT-Ti", path, MACHINE)
        found = mnemonics(path)
        check("... attends", "ATTN" in found and "SOFTMAX" not in found,
              str(found))
    if late:
        return
    # 116,427 bytes are the scores alone, 75,648 keys and values
    small = ["--set", f"memories.am.size={90000 if mask else 76000}"]
    verifies("... by blocks of rows, or heads", path, MACHINE, *small)
    found = mnemonics(path, *small)
    last = "SOFTMAX" if mask else "ATTN"
    check("... they are several", found.count(last) > 2, str(found))


def heads():
    """The block between volumes, in a sixth of what it takes layer by layer."""
    net = Net([("image", [1, 192, 197, 1])])
    x = net.node("Reshape", ["image", net.whole(1, 192, 197)])
    x = net.node("Transpose", [x], perm=[0, 2, 1])
    y = net.node("Add", [x, attention(net, layer_norm(net, x, 192, False), 1,
                                      197, 192, 3, None, False)])
    z = net.node("Gelu", [linear(net, layer_norm(net, y, 192, False), 192,
                                 768)])
    y = net.node("Add", [y, linear(net, z, 768, 192)])
    y = net.node("Transpose", [y], perm=[0, 2, 1])
    net.node("Reshape", [y, net.whole(1, 192, 197, 1)], "y")
    net.output("y")
    path = net.write(path_of("vit-heads.onnx"), 20)
    small = ["--set", "memories.am.size=38304"]
    verifies("a block of ViT-Ti in 38,304 bytes", path, MACHINE, *small)
    check("... head by head", mnemonics(path, *small).count("ATTN") > 2)


def crossed():
    """Keys and values of another plane, as decoders and diffusion have them."""
    net = Net([("x", [1, 12, 4, 5]), ("words", [1, 3, 8])])
    y = net.node("Reshape", [conv(net, "x", 12, 12), net.whole(1, 12, 20)])
    y = linear(net, net.node("Transpose", [y], perm=[0, 2, 1]), 12, 12)

    def heads(x, tokens, perm):
        x = net.node("Reshape", [x, net.whole(1, tokens, 3, 4)])
        return net.node("Transpose", [x], perm=perm)
    k = heads(linear(net, "words", 8, 12), 3, [0, 2, 3, 1])
    v = heads(linear(net, "words", 8, 12), 3, [0, 2, 1, 3])
    y = net.node("MatMul", [heads(y, 20, [0, 2, 1, 3]), k])
    y = net.node("Add", [y, net.floats([1, 1, 20, 3], ramp(60))])
    y = net.node("MatMul", [net.node("Softmax", [y], axis=-1), v])
    y = net.node("Transpose", [y], perm=[0, 1, 3, 2])
    y = net.node("Reshape", [y, net.whole(1, 12, 4, 5)])
    net.node("Conv", [y, net.floats([4, 12, 1, 1], ramp(48))], "y")
    net.output("y")
    runs("attention to another plane", net,
         ["CONV", "CONV", "SHAPE", "TURN", "CONV", "CONV", "MMC", "ADDK",
          "SOFTMAX", "MMP", "CONV"])


def chain(name, shape, layers):
    """A file in the form in which --dump prints graphs."""
    path, size = path_of(name + ".graph"), "x".join(map(str, shape))
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'graph "{name}"\ninput "n0" writes="n0":{size}\n')
        for i, layer in enumerate(layers):
            op, _, attributes = layer.partition(" ")
            file.write(f'{op} "n{i + 1}" reads="n{i}" '
                       f'writes="n{i + 1}":{size} {attributes}\n')
        file.write(f'output "n{len(layers)}"\n')
    return path


def norms():
    path = chain("norms", [1, 12, 6, 5], NORMS)
    expected = ["LNORM", "RNORM", "SOFTMAX", "GNORM", "GNORM"]
    judged("norms", path, expected)
    small = ["--set", "memories.am.size=720"]
    verifies("norms in just what two volumes take", path, MACHINE, *small)
    verifies("norms on the host", path, "ring-npu")


def over_channels():
    """Softmax over channels, whole and by rows."""
    net = Net([("x", [1, 3, 6, 5])])
    y = net.node("Softmax", [conv(net, "x", 3, 8)], axis=1)
    net.node("Conv", [y, net.floats([4, 8, 1, 1], ramp(32))], "y")
    net.output("y")
    runs("a softmax over channels", net, ["CONV", "SOFTMAX", "CONV"])
    path = path_of("a-softmax-over-channels.onnx")
    verifies("... by rows", path, MACHINE, "--set", "memories.am.size=200")
    net = Net([("x", [1, 3, 6, 5])])
    y = net.node("GlobalAveragePool", [conv(net, "x", 3, 8)])
    y = net.node("Gemm", [net.node("Flatten", [y]),
                          net.floats([8, 5], ramp(40))])
    net.node("Softmax", [y], "y", axis=1)
    net.output("y")
    runs("a softmax at the end", net, ["CONV", "AVGP", "FC", "SOFTMAX"])


def linear(net, x, k, n):
    weight = net.floats([k, n], [v / k for v in ramp(k * n)])
    bias = net.floats([n], ramp(n))
    return net.node("Add", [net.node("MatMul", [x, weight]), bias])


def layer_norm(net, x, c, parts):
    """Whole, or as files before opset 17 have it."""
    scale, bias = net.floats([c], [1 + v for v in ramp(c)]), net.floats(
        [c], ramp(c))
    if not parts:
        return net.node("LayerNormalization", [x, scale, bias], axis=-1,
                        epsilon=1e-6)
    y = net.node("Sub", [x, net.node("ReduceMean", [x], axes=[-1],
                                     keepdims=1)])
    mean = net.node("ReduceMean", [net.node("Mul", [y, y])], axes=[-1],
                    keepdims=1)
    root = net.node("Sqrt", [net.node("Add", [mean, net.floats([], [1e-6])])])
    y = net.node("Mul", [net.node("Div", [y, root]), scale])
    return net.node("Add", [y, bias])


def attention(net, x, batch, tokens, c, heads, bias=None, late=False):
    """Over [batch, tokens, c], as exports have it; queries are scaled, or scores.
    """
    d = c // heads
    y = net.node("Reshape", [linear(net, x, c, 3 * c),
                             net.whole(batch, tokens, 3, heads, d)])
    y = net.node("Transpose", [y], perm=[2, 0, 3, 1, 4])
    q, k, v = (net.node("Gather", [y, net.scalar(i)], axis=0)
               for i in range(3))
    k = net.node("Transpose", [k], perm=[0, 1, 3, 2])
    if not late:
        q = net.node("Mul", [q, net.floats([], [d**-0.5])])
    y = net.node("MatMul", [q, k])
    if late:
        y = net.node("Mul", [y, net.floats([], [d**-0.5])])
    if bias:
        y = net.node("Add", [y, net.floats(bias, ramp(math.prod(bias)))])
    y = net.node("MatMul", [net.node("Softmax", [y], axis=-1), v])
    y = net.node("Reshape", [net.node("Transpose", [y], perm=[0, 2, 1, 3]),
                             net.whole(batch, tokens, c)])
    return linear(net, y, c, c)


def transformer():
    """Patches, a token that the network brings along, a block, a head."""
    for parts in (False, True):
        net = Net([("x", [1, 3, 12, 8])])
        y = net.node("Conv", ["x", net.floats([12, 3, 4, 4],
                                              [v / 9 for v in ramp(576)])],
                     strides=[4, 4])
        y = net.node("Reshape", [y, net.whole(1, 12, 6)])
        y = net.node("Transpose", [y], perm=[0, 2, 1])
        y = net.node("Concat", [net.floats([1, 1, 12], ramp(12)), y], axis=1)
        y = net.node("Add", [y, net.floats([1, 7, 12], ramp(84))])
        z = attention(net, layer_norm(net, y, 12, parts), 1, 7, 12, 3)
        y = net.node("Add", [y, z])
        z = net.node("Relu", [linear(net, layer_norm(net, y, 12, parts), 12,
                                     24)])
        y = net.node("Add", [y, linear(net, z, 24, 12)])
        y = net.node("Gather", [layer_norm(net, y, 12, parts),
                                net.scalar(0)], axis=1)
        net.node("Gemm", [y, net.floats([12, 5], ramp(60))], "y")
        net.output("y")
        end = ["LNORM", "SCALE", "CONV", "CONV", "MMC", "SOFTMAX", "CONV",
               "MMP", "CONV", "ADD", "LNORM", "CONV", "CONV", "ADD"]
        runs("a transformer" + " in parts" * parts, net,
             ["CONV", "PIXELS", "ADDK", "ADDK"] + end +
             ["LNORM", "SCALE", "PIXELS", "FC"])


def roll(net, x, h, w, by):
    """Rows and columns from `by` on, then those before."""
    for axis, n in ((1, h), (2, w)):
        ends = (by % n, n), (0, by % n)
        parts = [net.node("Slice", [x, net.whole(a), net.whole(b),
                                    net.whole(axis)]) for a, b in ends]
        x = net.node("Concat", parts, axis=axis)
    return x


def windows(net, x, shape, perm, out):
    y = net.node("Transpose", [net.node("Reshape", [x, net.whole(*shape)])],
                 perm=perm)
    return net.node("Reshape", [y, net.whole(*out)])


def shifted_windows():
    """Attention in windows that wrap; then every second pixel, four times."""
    net = Net([("x", [1, 3, 4, 6])])
    y = net.node("Transpose", [conv(net, "x", 3, 8)], perm=[0, 2, 3, 1])
    z = roll(net, y, 4, 6, 1)
    z = windows(net, z, [1, 2, 2, 2, 3, 8], [0, 1, 3, 2, 4, 5], [4, 6, 8])
    z = attention(net, z, 4, 6, 8, 2, [4, 2, 6, 6])
    z = windows(net, z, [1, 2, 2, 2, 3, 8], [0, 1, 3, 2, 4, 5], [1, 4, 6, 8])
    y = net.node("Add", [y, roll(net, z, 4, 6, -1)])
    some = [net.node("Slice", [y, net.whole(i, j), net.whole(4, 6),
                               net.whole(1, 2), net.whole(2, 2)])
            for j in range(2) for i in range(2)]
    y = linear(net, net.node("Concat", some, axis=-1), 32, 16)
    net.node("ReduceMean", [y], "y", axes=[1, 2], keepdims=1)
    net.output("y")
    runs("shifted windows", net,
         ["CONV", "CONV", "CONV", "MMC", "ADDK", "SOFTMAX", "CONV", "MMP",
          "CONV", "ADD", "PIXELS", "PIXELS", "PIXELS", "PIXELS", "CONV",
          "AVGP"])


def over_time():
    """Convolutions over a line, causal; a mean over time."""
    net = Net([("x", [1, 4, 12])])
    y, c = "x", 4
    for dilation in (1, 2):
        y = net.node("Pad", [y, net.whole(0, 0, 2 * dilation, 0, 0, 0)])
        weight = net.floats([8, c, 3], [v / 9 for v in ramp(24 * c)])
        y = net.node("Relu", [net.node("Conv", [y, weight],
                                       dilations=[dilation])])
        c = 8
    y = net.node("ReduceMean", [y], axes=[2], keepdims=0)
    net.node("Gemm", [y, net.floats([8, 5], ramp(40))], "y")
    net.output("y")
    runs("convolutions over time", net, ["CONV", "CONV", "AVGP", "FC"])


def refused():
    for op in ("gather", "mul_channels", "reshape"):
        code, said = run("compile", "examples/tiny.prototxt", "-t", MACHINE,
                         "-o", FOLDER, "--set", f"tiling.ops.0={op}")
        check(f"{op} is not cut into rows",
              code == 1 and f"`{op}` runs on whole volumes only" in said, said)


def turned():
    """Tokens, that a machine turns row by row: less than they take fits."""
    net = Net([("x", [1, 96, 32])])
    weight = net.floats([32, 64], [v / 9 for v in ramp(32 * 64)])
    back = net.floats([64, 32], [v / 9 for v in ramp(64 * 32)])
    y = net.node("Relu", [net.node("MatMul", ["x", weight])])
    net.node("MatMul", [y, back], "y")
    net.output("y")
    # The result is turned in two parts, the store of one beside the other.
    runs("tokens", net, ["TURN", "CONV", "CONV", "TURN", "TURN"])
    path = path_of("tokens.onnx")
    code, said = run("verify", path, "-t", MACHINE, "--set",
                     "memories.am.size=1KiB")
    check("tokens in a third of their bytes", code == 0, said)


def heads_of(net, x, tokens, heads, d):
    """Inner products of tokens, [heads, tokens, d]."""
    weight = net.floats([heads * d, heads * d],
                        [v / 9 for v in ramp(heads * d * heads * d)])
    y = net.node("MatMul", [x, weight])
    y = net.node("Reshape", [y, net.whole(1, tokens, heads, d)])
    return net.node("Transpose", [y], perm=[0, 2, 1, 3])


def from_heads(net, y, tokens, wide):
    y = net.node("Transpose", [y], perm=[0, 2, 1, 3])
    y = net.node("Reshape", [y, net.whole(1, tokens, wide)])
    weight = net.floats([wide, 4], [v / 9 for v in ramp(wide * 4)])
    net.node("MatMul", [y, weight], "y")
    net.output("y")


def on_engines(name, net):
    """Whatever the instructions: engines run all of it, with the values."""
    path = net.write(path_of(name.replace(" ", "-") + ".onnx"), 17)
    verifies(name, path, MACHINE)
    _, kinds = share_of(path, MACHINE)
    check(f"... {name} has no layer of the host", not kinds, str(kinds))


def reduced(op, axis):
    net = Net([("x", [1, 12, 24])])
    h = net.node("Sigmoid", [heads_of(net, "x", 12, 3, 8)])
    over = {"axes": [axis], "keepdims": 1}
    reads = [h, net.whole(axis)] if op == "ReduceSum" else [h]
    if op == "ReduceSum":
        del over["axes"]
    least = net.node(op, reads, **over)
    least = net.node("Clip", [least, net.floats([], [1e-3])])
    from_heads(net, net.node("Div", [h, least]), 12, 24)
    on_engines(f"{op} over axis {axis} of heads", net)


def reductions():
    for op in ("ReduceSum", "ReduceL2", "ReduceMean", "ReduceMax", "ReduceMin",
               "ReduceL1", "ReduceSumSquare"):
        for axis in (2, 3):
            reduced(op, axis)
    net = Net([("x", [1, 6, 5, 4])])
    mean = net.node("GlobalAveragePool", ["x"])
    parts = [net.node("Reshape", [conv(net, mean, 6, 24), net.whole(1, 1, 24)])
             for _ in range(2)]
    both = net.node("Concat", parts, axis=0)
    net.node("ReduceMean", [both], "y", axes=[0], keepdims=0)
    net.output("y")
    on_engines("the mean of two results", net)


def spread():
    """Numbers by channel times numbers by pixel: neither has all."""
    net = Net([("x", [1, 8, 6, 5])])
    mean = net.node("GlobalAveragePool", ["x"])
    gate = conv(net, "x", 8, 1)
    y = net.node("Mul", [conv(net, mean, 8, 8), gate])
    net.node("Relu", [conv(net, y, 8, 8)], "y")
    net.output("y")
    on_engines("channels times pixels", net)


def in_windows(net, x, c, n, side):
    """Windows of an image [1, c, n * side, n * side] as a batch."""
    y = net.node("Reshape", [x, net.whole(1, c, n, side, n, side)])
    y = net.node("Transpose", [y], perm=[0, 2, 4, 1, 3, 5])
    return net.node("Reshape", [y, net.whole(n * n, c, side, side)])


def windows_of_a_batch(stride):
    """Convolutions over windows see zeros beyond their borders."""
    net = Net([("x", [1, 8, 8, 8])])
    y = in_windows(net, conv(net, "x", 8, 8), 8, 2, 4)
    weight = net.floats([8, 1, 3, 3], [v / 9 for v in ramp(72)])
    y = net.node("Conv", [y, weight], group=8, pads=[1, 1, 1, 1],
                 strides=[stride, stride])
    y = net.node("Relu", [conv(net, y, 8, 8)])
    side = 4 // stride
    y = net.node("Reshape", [y, net.whole(1, 2, 2, 8, side, side)])
    y = net.node("Transpose", [y], perm=[0, 3, 1, 4, 2, 5])
    y = net.node("Reshape", [y, net.whole(1, 8, 2 * side, 2 * side)])
    net.node("Relu", [conv(net, y, 8, 4)], "y")
    net.output("y")
    on_engines(f"convolutions of windows by {stride}", net)


def shared_queries():
    """Attention whose queries are the same in all windows."""
    net = Net([("x", [1, 8, 8, 8]), ("q", [1, 8, 4, 4])])
    y = in_windows(net, conv(net, "x", 8, 8), 8, 2, 4)
    k = net.node("Reshape", [y, net.whole(4, 2, 4, 16)])
    q = net.node("Tile", [conv(net, "q", 8, 8), net.whole(4, 1, 1, 1)])
    q = net.node("Transpose", [net.node("Reshape",
                                        [q, net.whole(4, 2, 4, 16)])],
                 perm=[0, 1, 3, 2])
    v = net.node("Transpose", [k], perm=[0, 1, 3, 2])
    y = net.node("Softmax", [net.node("MatMul", [q, k])], axis=3)
    y = net.node("MatMul", [y, v])
    y = net.node("Reshape", [net.node("Transpose", [y], perm=[0, 1, 3, 2]),
                             net.whole(4, 8, 4, 4)])
    y = net.node("Reshape", [y, net.whole(1, 2, 2, 8, 4, 4)])
    y = net.node("Transpose", [y], perm=[0, 3, 1, 4, 2, 5])
    y = net.node("Reshape", [y, net.whole(1, 8, 8, 8)])
    net.node("Relu", [conv(net, y, 8, 4)], "y")
    net.output("y")
    on_engines("queries that windows share", net)


def pooled_parts():
    """The largest of several windows, pixel by pixel; too large for active
    memory it is the host's."""
    net = Net([("x", [1, 8, 8, 8])])
    y = net.node("Reshape", [conv(net, "x", 8, 8), net.whole(1, 8, 4, 2, 8)])
    y = net.node("ReduceMax", [y], axes=[2], keepdims=0)
    y = net.node("Reshape", [y, net.whole(1, 8, 2, 8)])
    net.node("Relu", [conv(net, y, 8, 4)], "y")
    net.output("y")
    on_engines("the largest of four parts", net)
    path = path_of("the-largest-of-four-parts.onnx")
    code, said = run("verify", path, "-t", MACHINE, "--set",
                     "memories.am.size=520")
    check("... in 520 bytes", code == 0, said)


def one_batch():
    """Windows and heads that a file has as one axis."""
    net = Net([("x", [1, 8, 8, 8])])
    part = []
    for _ in range(3):
        y = in_windows(net, conv(net, "x", 8, 8), 8, 2, 4)
        y = net.node("Reshape", [y, net.whole(4, 2, 4, 16)])
        y = net.node("Transpose", [y], perm=[0, 1, 3, 2])
        part.append(net.node("Reshape", [y, net.whole(8, 16, 4)]))
    keys = net.node("Transpose", [part[1]], perm=[0, 2, 1])
    y = net.node("Softmax", [net.node("MatMul", [part[0], keys])], axis=2)
    y = net.node("MatMul", [y, part[2]])
    y = net.node("Reshape", [y, net.whole(4, 2, 16, 4)])
    y = net.node("Transpose", [y], perm=[0, 1, 3, 2])
    y = net.node("Reshape", [y, net.whole(1, 2, 2, 8, 4, 4)])
    y = net.node("Transpose", [y], perm=[0, 3, 1, 4, 2, 5])
    y = net.node("Reshape", [y, net.whole(1, 8, 8, 8)])
    net.node("Relu", [conv(net, y, 8, 4)], "y")
    net.output("y")
    on_engines("windows and heads as one axis", net)


def split_attention():
    """Two branches, weighed channel by channel: an axis that volumes lack."""
    net = Net([("x", [1, 8, 6, 5])])
    branch = [net.node("Reshape", [conv(net, "x", 8, 8),
                                   net.whole(1, 1, 8, 6, 5)])
              for _ in range(2)]
    both = net.node("Concat", branch, axis=1)
    mean = net.node("GlobalAveragePool", ["x"])
    gate = net.node("Reshape", [conv(net, mean, 8, 16),
                                net.whole(1, 2, 8, 1, 1)])
    y = net.node("Mul", [both, net.node("Softmax", [gate], axis=1)])
    y = net.node("ReduceSum", [y, net.whole(1)], keepdims=0)
    net.node("Relu", [conv(net, y, 8, 4)], "y")
    net.output("y")
    on_engines("split attention", net)


def standardised():
    """Weights that a batch norm in training mode standardises."""
    net = Net([("x", [1, 8, 6, 5])])
    weight = net.floats([8, 8, 3, 3], [v / 9 for v in ramp(576)])
    line = net.node("Reshape", [weight, net.whole(1, 8, 72)])
    few = [net.floats([8], [v for v in ramp(8)]) for _ in range(4)]
    line = net.node("BatchNormalization", [line, *few], training_mode=1,
                    outs=["line", "mean", "var"])
    weight = net.node("Reshape", [line, net.whole(8, 8, 3, 3)])
    y = net.node("Conv", ["x", weight], pads=[1, 1, 1, 1])
    net.node("Relu", [y], "y")
    net.output("y")
    on_engines("standardised weights", net)


def padded_heads():
    """A channel of ones behind those of each head: sums of weights."""
    net = Net([("x", [1, 12, 24])])
    h = heads_of(net, "x", 12, 3, 8)
    y = net.node("Pad", [h, net.whole(0, 0, 0, 0, 0, 0, 0, 1),
                         net.floats([], [1.0])])
    from_heads(net, y, 12, 27)
    on_engines("padded heads", net)


def main():
    reductions()
    spread()
    padded_heads()
    windows_of_a_batch(1)
    windows_of_a_batch(2)
    shared_queries()
    pooled_parts()
    one_batch()
    split_attention()
    standardised()
    turned()
    fused = ["CONV", "AVGP", "CONV", "MULC", "CONV"]
    runs("a gated block", gated(False), fused)
    runs("a gate as first operand", gated(True), fused)
    runs("a gated block in little memory", gated(False), fused, "--set",
         "memories.am.size=528")
    shifts()
    shuffled()
    resized()
    example()
    activations()
    over_channels()
    norms()
    tokens()
    attends()
    transformer()
    block(False)
    block(True)
    block(False, [1, 1, 197, 197])
    heads()
    crossed()
    shifted_windows()
    over_time()
    refused()
    print(f"{len(nets.BAD)} wrong")
    return len(nets.BAD) > 0


if __name__ == "__main__":
    CODE = main()
    subprocess.run(["rm", "-rf", FOLDER], check=False)
    sys.exit(CODE)
