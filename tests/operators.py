#!/usr/bin/env python3
"""operators.py - what vision-npu's vector engine runs beside the array.

Small ONNX models with the blocks of networks of after 2018. Each is verified by
value, has no layer of the host, and its instructions are those expected.
"""
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
         ["CONV", "GATHER", "GATHER", "CONV", "GATHER", "CONV"])


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


def refused():
    for op in ("gather", "mul_channels", "matmul_pixels", "reshape"):
        code, said = run("compile", "examples/tiny.prototxt", "-t", MACHINE,
                         "-o", FOLDER, "--set", f"tiling.ops.0={op}")
        check(f"{op} is not cut into rows",
              code == 1 and f"`{op}` runs on whole volumes only" in said, said)


def main():
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
    refused()
    print(f"{len(nets.BAD)} wrong")
    return len(nets.BAD) > 0


if __name__ == "__main__":
    CODE = main()
    subprocess.run(["rm", "-rf", FOLDER], check=False)
    sys.exit(CODE)
