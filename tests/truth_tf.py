#!/usr/bin/env python3
"""truth_tf.py - TensorFlow graphs against tfjs and OpenCV's dnn module.

Small graphs, one for a few operators each, are made here with drawn numbers;
so are whole ones (--long): the MobileNetV2 of ../shared/data with seeded
weights, tf2onnx' regression, and those of truth_nets.py. tfjs and OpenCV read
them, and amphora does, as frozen GraphDef and as tfjs' JSON. Compared are all
outputs, of the reference evaluation and of the simulated listing for
xdnn-v3-96, to 1e-4 of the largest value.

tfjs' values of the small graphs are recorded in tests/truth/tf-*.values and
compared in every run. --long computes everything anew and fails where tfjs no
longer says what was recorded; --record writes it. OpenCV is asked where it
takes the graph.
usage: truth_tf.py [--long | --record] [NAME...]
"""
import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from foreign import (TFJS, compare_foreign, install_npm,  # noqa: E402
                     one_by_one, opencv, tfjs)
from truthlib import Refused, Table, asked, run_jobs  # noqa: E402
from write_tf import FLOAT, INT32, Graph, Ints, Type, read_tfjs  # noqa: E402

DATA = "../shared/data/tensorflow/"
NHWC, NCHW = "NHWC", "NCHW"


def windows(values, layout=NHWC):
    """Height and width as numbers for each axis."""
    return Ints([1, *values, 1] if layout == NHWC else [1, 1, *values])


def conv(g, x, shape, strides=(1, 1), padding="SAME", layout=NHWC, **more):
    fan = (3 / (shape[0] * shape[1] * shape[2])) ** 0.5
    w = g.drawn(-fan, fan, *shape)
    more.setdefault("dilations", windows((1, 1), layout))
    return g.node("Conv2D", x, w, strides=windows(strides, layout),
                  padding=padding, data_format=layout, **more)


def convolutions(g):
    x = g.input(1, 11, 14, 4)
    for strides, padding in (((1, 1), "SAME"), ((2, 2), "SAME"),
                             ((2, 3), "VALID"), ((3, 3), "SAME")):
        g.ends.append(conv(g, x, (3, 3, 4, 6), strides, padding))
    g.ends.append(conv(g, x, (5, 2, 4, 3), (2, 2)))
    g.ends.append(conv(g, x, (1, 1, 4, 5), (2, 2)))
    g.ends.append(conv(g, x, (3, 3, 4, 2), dilations=windows((2, 2))))
    y = conv(g, x, (3, 3, 4, 6), padding="VALID")
    g.end("BiasAdd", y, g.drawn(-1, 1, 6), data_format=NHWC)


def explicit(g):
    x = g.input(1, 11, 14, 4)
    g.ends.append(conv(g, x, (3, 3, 4, 3), (2, 2), "EXPLICIT",
                       explicit_paddings=Ints([0, 0, 1, 2, 0, 1, 0, 0])))


def depthwise(g):
    x = g.input(1, 12, 9, 5)
    for many, strides, padding in ((1, (1, 1), "SAME"), (1, (2, 2), "SAME"),
                                   (1, (2, 2), "VALID"), (3, (1, 1), "SAME"),
                                   (2, (2, 2), "VALID")):
        g.end("DepthwiseConv2dNative", x, g.drawn(-1, 1, 3, 3, 5, many),
              dilations=windows((1, 1)), strides=windows(strides), padding=padding, data_format=NHWC)
    g.end("DepthwiseConv2dNative", x, g.drawn(-1, 1, 3, 3, 5, 1),
          strides=windows((1, 1)), padding="SAME", data_format=NHWC,
          dilations=windows((2, 2)))


def statistics(g, n):
    return [g.drawn(low, high, n) for low, high in
            ((0.7, 1.3), (-0.2, 0.2), (-0.2, 0.2), (0.5, 1.5))]


def norms(g):
    x = g.input(1, 5, 6, 7)
    for op, eps in (("FusedBatchNorm", 0.25), ("FusedBatchNormV2", 1e-3),
                    ("FusedBatchNormV3", 0.01)):
        g.end(op, x, *statistics(g, 7), epsilon=eps, is_training=False,
              data_format=NHWC, U=Type(FLOAT))
    g.end("FusedBatchNormV3", conv(g, x, (3, 3, 7, 7)), *statistics(g, 7),
          epsilon=1e-3, is_training=False, data_format=NHWC, U=Type(FLOAT))


def fused(g):
    x = g.input(1, 7, 8, 4)
    kinds = (["BiasAdd"], ["BiasAdd", "Relu"], ["BiasAdd", "Relu6"],
             ["BiasAdd", "Elu"], ["BiasAdd", "LeakyRelu"])
    for ops in kinds:
        more = {"leakyrelu_alpha": 0.3} if "LeakyRelu" in ops else {}
        g.end("_FusedConv2D", x, g.drawn(-.4, .4, 3, 3, 4, 5),
              g.drawn(-1, 1, 5), strides=windows((2, 2)), padding="SAME",
              data_format=NHWC, fused_ops=ops, num_args=1,
              dilations=windows((1, 1)), **more)
    g.end("FusedDepthwiseConv2dNative", x, g.drawn(-1, 1, 3, 3, 4, 1),
          g.drawn(-1, 1, 4), strides=windows((1, 1)), padding="SAME",
          data_format=NHWC, fused_ops=["BiasAdd", "Relu6"], num_args=1,
          dilations=windows((1, 1)))


def fused_norm(g):
    x = g.input(1, 7, 8, 4)
    for ops in (["FusedBatchNorm"], ["FusedBatchNorm", "Relu"]):
        g.end("_FusedConv2D", x, g.drawn(-.4, .4, 3, 3, 4, 5),
              *statistics(g, 5), strides=windows((1, 1)), padding="SAME",
              data_format=NHWC, fused_ops=ops, num_args=4, epsilon=0.1,
              dilations=windows((1, 1)))


def pads(g):
    x = g.input(1, 9, 10, 3)
    y = g.node("Pad", x, g.const(INT32, [4, 2], pairs(0, 0, 1, 2, 0, 3, 0, 0)))
    g.ends.append(conv(g, y, (3, 3, 3, 4), (2, 2), "VALID"))
    z = g.node("Pad", x, g.const(INT32, [4, 2], pairs(0, 0, 1, 1, 1, 1, 0, 0)))
    g.end("MaxPool", z, ksize=windows((3, 3)), strides=windows((2, 2)),
          padding="VALID", data_format=NHWC)


def pads_other(g):
    x = g.input(1, 5, 6, 3)
    one = g.const(INT32, [4, 2], pairs(0, 0, 2, 1, 0, 3, 0, 0))
    g.end("PadV2", x, one, g.float(1.5))
    for mode in ("REFLECT", "SYMMETRIC"):
        g.end("MirrorPad", x, one, mode=mode)
    g.end("Pad", x, g.const(INT32, [4, 2], pairs(0, 0, 0, 0, 0, 0, 1, 2)))


def pairs(*values):
    return b"".join(value.to_bytes(4, "little") for value in values)


def pools(g):
    x = g.input(1, 10, 13, 3)
    for op in ("MaxPool", "AvgPool"):
        for size, step, padding in (((2, 2), (2, 2), "VALID"),
                                    ((3, 3), (2, 2), "SAME"),
                                    ((3, 3), (1, 1), "SAME"),
                                    ((3, 2), (2, 3), "VALID"),
                                    ((2, 2), (3, 3), "SAME")):
            g.end(op, x, ksize=windows(size), strides=windows(step),
                  padding=padding, data_format=NHWC)


def concats(g):
    x = g.input(1, 5, 6, 4)
    x, y = conv(g, x, (3, 3, 4, 4)), conv(g, x, (1, 1, 4, 4))
    for axis in (-1, 3, 1, 2, -2):
        g.end("ConcatV2", x, y, x, g.int(axis), N=3)
    g.end("Concat", g.int(3), x, y, N=2)
    flat = g.node("Reshape", x, g.ints(1, 120))
    g.end("ConcatV2", flat, flat, g.int(1), N=2)


def reductions(g):
    x = g.input(1, 5, 6, 4)
    for keep in (True, False):
        g.end("Mean", x, g.ints(1, 2), keep_dims=keep)
        g.end("Max", x, g.ints(2, 1), keep_dims=keep)
    g.end("Sum", x, g.ints(-1), keep_dims=True)
    g.end("Min", x, g.ints(3), keep_dims=True)
    g.end("Mean", x, g.ints(1), keep_dims=True)
    g.end("Prod", x, g.ints(2), keep_dims=True)


def dropout(g):
    """As v1's layers freeze it: both sides, one of which never runs."""
    x = g.input(1, 4, 4, 3)
    y = g.node("Relu", x)
    training = g.bool(False)
    switch = g.node("Switch", y, training)
    mask = g.node("Mul", switch + ":1", g.float(2))
    keep = g.node("Identity", switch)
    merge = g.node("Merge", keep, mask, N=2)
    g.ends.append(conv(g, merge, (3, 3, 3, 4)))
    g.end("StopGradient", g.node("Exp", merge))


def resizes(g):
    x = g.input(1, 5, 6, 3)
    for op in ("ResizeNearestNeighbor", "ResizeBilinear"):
        for size in ((10, 12), (8, 9), (3, 4)):
            for way in ({}, {"align_corners": True},
                        {"half_pixel_centers": True}):
                g.end(op, x, g.ints(*size),
                      **{"align_corners": False,
                         "half_pixel_centers": False, **way})


def activations(g):
    x = g.input(1, 4, 5, 3)
    y = g.node("Mul", x, g.float(5))
    for op in ("Relu", "Relu6", "Elu", "Selu", "Sigmoid", "Tanh", "Softplus",
               "Exp", "Neg", "Abs", "Erf", "Floor", "Square"):
        g.end(op, y)
    g.end("LeakyRelu", y, alpha=0.3)
    positive = g.node("AddV2", g.node("Abs", y), g.float(0.5))
    for op in ("Log", "Sqrt", "Rsqrt"):
        g.end(op, positive)


def softsign(g):
    x = g.input(1, 4, 5, 3)
    g.end("Softsign", g.node("Mul", x, g.float(5)))


def elements(g):
    x = g.input(1, 4, 5, 3)
    y = g.node("Exp", x)
    for op in ("Add", "AddV2", "Sub", "Mul", "RealDiv", "Maximum", "Minimum",
               "Pow"):
        a, b = (y, x) if op == "Pow" else (x, y)
        g.end(op, a, b)
        g.end(op, y, g.float(1.5))
        g.end(op, g.float(2.5), y)
        if op != "Pow":
            g.end(op, y, g.drawn(0.5, 1.5, 3))
            g.end(op, g.drawn(0.5, 1.5, 1, 1, 1, 3), y)
            g.end(op, y, g.drawn(0.5, 1.5, 4, 1, 3))
            g.end(op, y, g.drawn(0.5, 1.5, 1, 4, 5, 3))
    g.end("AddN", x, y, x, N=3)
    g.end("SquaredDifference", x, y)
    g.end("Mul", y, g.node("Mean", y, g.ints(1, 2), keep_dims=True))


def shapes(g):
    x = g.input(1, 4, 6, 8)
    g.end("Reshape", x, g.ints(1, 6, 4, 8))
    g.end("Reshape", x, g.ints(-1, 192))
    g.end("Reshape", x, g.ints(1, 24, 8))
    g.end("Squeeze", g.node("Mean", x, g.ints(1, 2), keep_dims=True),
          squeeze_dims=Ints([1, 2]))
    flat = g.node("Reshape", x, g.ints(24, 8))
    g.end("ExpandDims", g.node("Relu", flat), g.int(0))
    g.end("Transpose", x, g.ints(0, 2, 1, 3))
    g.end("Transpose", x, g.ints(0, 3, 1, 2))
    g.end("Slice", x, g.ints(0, 1, 2, 3), g.ints(1, 2, -1, 4))
    g.end("StridedSlice", x, g.ints(0, 1, 0, -5), g.ints(1, 3, 6, -1),
          g.ints(1, 1, 1, 1), begin_mask=1, end_mask=1, shrink_axis_mask=0,
          ellipsis_mask=0, new_axis_mask=0)
    g.end("StridedSlice", x, g.ints(0, 1), g.ints(1, 3), g.ints(1, 1),
          begin_mask=1, end_mask=1, shrink_axis_mask=0, ellipsis_mask=0,
          new_axis_mask=0)
    parts = g.node("Split", g.int(3), x, num_split=2)
    g.end("ConcatV2", parts + ":1", parts, g.int(3), N=2)
    g.end("DepthToSpace", x, block_size=2, data_format=NHWC)


def parts(g):
    x = g.input(1, 4, 6, 8)
    masks = {"begin_mask": 0, "end_mask": 0, "shrink_axis_mask": 0,
             "ellipsis_mask": 0, "new_axis_mask": 0}
    g.end("StridedSlice", x, g.ints(0, 0, 5, 0), g.ints(1, 4, 0, 8),
          g.ints(1, 2, -2, 3), **masks)
    g.end("StridedSlice", x, g.ints(0, 2), g.ints(0, 5), g.ints(1, 1),
          **{**masks, "ellipsis_mask": 1})
    y, z = g.node("Relu", x), g.node("Reshape", x, g.ints(4, 48))
    g.end("Pack", y, x, axis=0, N=2)
    rows = g.node("Unpack", z, num=4, axis=0)
    g.end("Sub", rows + ":1", rows + ":3")
    split = g.node("SplitV", x, g.ints(3, -1), g.int(3), num_split=2)
    g.end("ConcatV2", split + ":1", split, g.int(3), N=2)


def batches(g):
    """A dilated convolution as older graphs write it."""
    x = g.input(1, 8, 10, 4)
    two = g.const(INT32, [2, 2], pairs(2, 2, 2, 2))
    none = g.const(INT32, [2, 2], pairs(0, 0, 0, 0))
    y = g.node("SpaceToBatchND", x, g.ints(2, 2), two)
    y = conv(g, y, (3, 3, 4, 5), padding="VALID")
    g.end("BatchToSpaceND", g.node("Relu", y), g.ints(2, 2), none)


def shapes_asked(g):
    """A shape that the graph computes: [batch, -1]."""
    x = g.input(1, 4, 6, 8)
    shape = g.node("Shape", x, out_type=Type(3))
    batch = g.node("StridedSlice", shape, g.ints(0), g.ints(1), g.ints(1),
                   begin_mask=0, end_mask=0, shrink_axis_mask=1,
                   ellipsis_mask=0, new_axis_mask=0, T=Type(3))
    pack = g.node("Pack", batch, g.int(-1), N=2, axis=0, T=Type(3))
    g.end("Reshape", g.node("Relu", x), pack)


def products(g):
    x = g.input(1, 8)
    w = g.drawn(-1, 1, 8, 5)
    g.end("BiasAdd", g.node("MatMul", x, w, transpose_a=False,
                            transpose_b=False), g.drawn(-1, 1, 5))
    g.end("MatMul", x, g.drawn(-1, 1, 5, 8), transpose_a=False,
          transpose_b=True)
    rows = g.node("Reshape", x, g.ints(2, 4))
    for a, b in ((False, False), (False, True), (True, False), (True, True)):
        g.end("MatMul", rows, g.node("Reshape", x, g.ints(
            *((2, 4) if a != b else (4, 2)))), transpose_a=a, transpose_b=b)
    g.end("Softmax", g.node("MatMul", x, w, transpose_a=False,
                            transpose_b=False))
    many = g.node("Reshape", x, g.ints(1, 2, 2, 2))
    g.end("BatchMatMulV2", many, many, adj_x=False, adj_y=True)
    g.end("_FusedMatMul", x, w, g.drawn(-1, 1, 5), transpose_a=False,
          transpose_b=False, fused_ops=["BiasAdd", "Relu"], num_args=1)


def flattened(g):
    """A matrix behind an image: its rows count height, width, channel."""
    x = g.input(1, 4, 5, 3)
    flat = g.node("Reshape", g.node("Relu", x), g.ints(-1, 60))
    y = g.node("MatMul", flat, g.drawn(-1, 1, 60, 7), transpose_a=False,
               transpose_b=False)
    g.end("Add", y, g.drawn(-1, 1, 7))


def lrn(g):
    x = g.input(1, 4, 5, 9)
    g.end("LRN", x, depth_radius=2, bias=1.5, alpha=0.3, beta=0.75)
    g.end("LRN", x, depth_radius=4, bias=1.0, alpha=1.0, beta=0.5)


def transposed(g):
    x = g.input(1, 5, 6, 4)
    for size, steps, padding in (((10, 12), (2, 2), "SAME"),
                                 ((9, 11), (2, 2), "SAME"),
                                 ((11, 13), (2, 2), "VALID")):
        g.end("Conv2DBackpropInput", g.ints(1, *size, 3),
              g.drawn(-.3, .3, 3, 3, 3, 4), x, strides=windows(steps),
              padding=padding, data_format=NHWC)


def nchw(g):
    x = g.input(1, 4, 9, 10)
    y = conv(g, x, (3, 3, 4, 6), (2, 2), layout=NCHW)
    y = g.node("BiasAdd", y, g.drawn(-1, 1, 6), data_format=NCHW)
    y = g.node("FusedBatchNormV3", y, *statistics(g, 6), epsilon=1e-3,
               is_training=False, data_format=NCHW, U=Type(FLOAT))
    z = g.node("Relu", y)
    y = conv(g, z, (3, 3, 6, 6), layout=NCHW)
    y = g.node("ConcatV2", y, z, g.int(1), N=2)
    g.end("MaxPool", y, ksize=windows((3, 3), NCHW), padding="SAME",
          strides=windows((2, 2), NCHW), data_format=NCHW)


def indices(g):
    """What picks by index, repeats and compares."""
    x = g.input(1, 4, 6, 8)
    flat = g.node("Reshape", x, g.ints(24, 8))
    best = g.node("ArgMax", x, g.int(3), output_type=Type(INT32))
    g.end("Cast", best, SrcT=Type(INT32), DstT=Type(FLOAT))
    least = g.node("ArgMin", flat, g.int(0), output_type=Type(INT32))
    g.end("GatherV2", flat, least, g.int(0))
    few = g.node("ArgMax", flat, g.int(1), output_type=Type(INT32))
    g.end("GatherNd", flat, g.node("Pack", few, few, axis=1, T=Type(INT32),
                                   N=2))
    top = g.node("TopKV2", flat, g.int(3))
    g.end("Identity", top)
    g.end("Cast", top + ":1", SrcT=Type(INT32), DstT=Type(FLOAT))
    g.end("Tile", x, g.ints(1, 2, 1, 3))
    g.end("ReverseV2", x, g.ints(2))
    g.end("Cumsum", x, g.int(1), exclusive=True, reverse=True)
    g.end("LogSoftmax", flat)
    g.end("Prelu", x, g.drawn(-.5, .9, 8))
    one = g.node("GreaterEqual", x, g.drawn(-.5, .5, 8))
    no = g.node("LogicalNot", one)
    g.end("Select", one, x, g.node("Exp", x))
    g.end("SelectV2", g.node("LogicalOr", no, g.node("Less", x, g.float(.1))),
          x, g.node("Sin", x))
    g.end("FloorMod", x, g.float(.3))
    g.end("Round", g.node("Mul", x, g.float(3.3)))
    shape = g.node("Shape", x)
    rest = g.node("FloorMod", g.node("GatherV2", shape, g.int(2), g.int(0),
                                     T=Type(INT32)), g.int(4), T=Type(INT32))
    g.end("Mul", x, g.node("Cast", rest, SrcT=Type(INT32), DstT=Type(FLOAT)))
    wide = g.node("Fill", g.ints(6, 8), g.float(.5))
    g.end("Add", x, wide)


def reversed_order(g):
    norms(g)
    g.nodes.reverse()


# Name: maker; the file's layout is NHWC unless the name says otherwise.
MODELS = {f.__name__.replace("_", "-"): f for f in (
    convolutions, explicit, depthwise, norms, fused, fused_norm, pads,
    pads_other, pools, concats, reductions, dropout, resizes, activations,
    softsign, elements, shapes, parts, batches,
    shapes_asked, products, flattened, lrn,
    transposed, nchw, indices, reversed_order)}


# tfjs' CPU backend has no channels first, and no softsign.
OPENCV_FIRST = ("nchw", "softsign")
# OpenCV pads dilated windows as if they were not, and mirrors in one way only.
OPENCV_WRONG = {"convolutions": ["Conv2D_14"],
                "depthwise": ["DepthwiseConv2dNative_12"],
                "pads-other": ["MirrorPad_5"]}
# It takes images apart as if the file's were N x C x H x W, and has few
# functions of constants and products.
NOT_OPENCV = ("shapes", "shapes-asked", "flattened", "elements", "products",
              "parts", "indices")


def runtimes(name, g):
    layout = "NCHW" if name == "nchw" else "NHWC"
    ends, plain = g.outputs(), g.unfused()
    cv = one_by_one(lambda _: opencv("Tensorflow", ["pb"]),
                    [("pb", plain.part(end).write_pb, end) for end in ends],
                    OPENCV_WRONG.get(name, ()))
    if name == "fused-norm":  # tfjs does not take it as it is
        return [("tfjs, unfused", one_by_one(
            lambda names: tfjs(names, layout),
            [("model.json", plain.part(end).write_tfjs, end)
             for end in ends])), ("OpenCV", cv)]
    found = [("tfjs", tfjs(ends, layout))]
    found += [("OpenCV", cv)] if name not in NOT_OPENCV else []
    return found[::-1] if name in OPENCV_FIRST else found


def check(table, name, record, long):
    g = Graph(name)
    MODELS[name](g)
    compare_foreign(table, "tf-" + name,
                    [("pb", g.write_pb), ("model.json", g.write_tfjs)],
                    runtimes(name, g), f"tests/truth/tf-{name}.values",
                    record=record, long=long)


def whole(table, wanted):
    """Graphs of others, with their own weights or drawn ones. MobileNetV2
    scales pixels before its first convolution, in twice the memory."""
    name, path = "mobilenet_v2", DATA + "tfjs_mobilenet_v2_graph.json"
    if os.path.exists(path) and (not wanted or name in wanted):
        g = read_tfjs(path)
        plain, ends = g.unfused(), g.outputs()
        cv = one_by_one(lambda _: opencv("Tensorflow", ["pb"]),
                        [("pb", plain.write_pb, ends[0])])
        compare_foreign(table, name,
                        [("pb", g.write_pb), ("model.json", g.write_tfjs)],
                        [("tfjs", tfjs(ends)), ("OpenCV", cv)],
                        machine=["--set", "memories.am.size=16MiB"])
    name, path = "regression", DATA + "t2o_regression_frozen.pb"
    if os.path.exists(path) and (not wanted or name in wanted):
        compare_foreign(
            table, name, [("pb", lambda copy: shutil.copy(path, copy))],
            [("OpenCV", opencv("Tensorflow", ["pb"]))],
            options=["--shape", "X=1x1"])


def main():
    record, long, wanted = asked()
    if long:
        install_npm(TFJS)
    table = Table("tfjs and OpenCV" if long else "tfjs' recorded values")
    run_jobs(table, [(name, check, (name, record, long)) for name in MODELS],
             wanted)
    if long:
        try:
            whole(table, wanted)
        except Refused as error:
            table.fail("whole networks", error)
    else:
        table.skip("whole networks", "with --long only")
    return table.close()


if __name__ == "__main__":
    sys.exit(main())
