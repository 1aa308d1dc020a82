#!/usr/bin/env python3
"""truth_odd.py - writes tests/truth/*.onnx: small models of operators whose
details runtimes read differently. Each output of a model is one operator on
the same input; truth_onnx.py --record adds what onnxruntime says.

usage: truth_odd.py DIR      (python3-onnx)
"""
import os
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

RANDOM = numpy.random.RandomState(1234)


class Model:
    """Operators on one input `x`; each is an output."""

    def __init__(self, *shape):
        self.shape, self.nodes, self.constants = shape, [], []
        self.ends = []

    def constant(self, values, kind="float32"):
        name = f"c{len(self.constants)}"
        self.constants.append(
            numpy_helper.from_array(numpy.asarray(values, kind), name))
        return name

    def weights(self, *shape):
        bound = (3 / max(1, numpy.prod(shape[1:]))) ** 0.5
        return self.constant(RANDOM.uniform(-bound, bound, shape))

    def node(self, op, *inputs, outputs=1, **attributes):
        """An operator; its output's name (names)."""
        names = [f"{op}_{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names,
                                           **attributes))
        return names[0] if outputs == 1 else names

    def end(self, *arguments, **attributes):
        name = self.node(*arguments, **attributes)
        self.ends += [name] if isinstance(name, str) else name

    def save(self, path, opset):
        infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
                 for name in self.ends]
        inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT,
                                                self.shape)]
        name = os.path.basename(path)[:-5]
        graph = helper.make_graph(self.nodes, name, inputs, infos,
                                  self.constants)
        model = helper.make_model(
            graph, ir_version=7 if opset < 18 else 10,
            opset_imports=[helper.make_opsetid("", opset)])
        onnx.save(model, path)


def conv_padding():
    m = Model(1, 4, 11, 14)
    w, b = m.weights(6, 4, 3, 3), m.weights(6)
    for pad in ("SAME_UPPER", "SAME_LOWER", "VALID"):
        m.end("Conv", "x", w, b, auto_pad=pad, strides=[2, 2])
    m.end("Conv", "x", w, pads=[0, 1, 2, 0], strides=[2, 1])
    m.end("Conv", "x", w, b, pads=[2, 2, 2, 2], dilations=[2, 2])
    m.end("Conv", "x", m.weights(8, 2, 2, 2), group=2, strides=[2, 3],
          auto_pad="SAME_LOWER")
    m.end("Conv", "x", m.weights(4, 1, 5, 1), group=4, pads=[2, 0, 2, 0])
    padded = m.node("Pad", "x", m.constant([0, 0, 1, 0, 0, 0, 2, 3], "int64"))
    m.end("Conv", padded, w, strides=[2, 2])
    return m


def deconv():
    m = Model(1, 4, 5, 6)
    w, b = m.weights(4, 3, 4, 4), m.weights(3)
    m.end("ConvTranspose", "x", w, b, strides=[2, 2], pads=[1, 1, 1, 1])
    m.end("ConvTranspose", "x", w, b, strides=[3, 3],
          output_padding=[1, 2])
    m.end("ConvTranspose", "x", w, strides=[2, 2], pads=[0, 1, 1, 2])
    m.end("ConvTranspose", "x", m.weights(4, 2, 3, 3), group=2)
    m.end("ConvTranspose", "x", w, auto_pad="SAME_UPPER", strides=[2, 2])
    return m


def pools():
    m = Model(1, 3, 14, 15)
    for op, options in (("MaxPool", {}), ("AveragePool", {}),
                        ("AveragePool", {"count_include_pad": 1})):
        for up in (0, 1):
            m.end(op, "x", kernel_shape=[3, 3], strides=[2, 2],
                  pads=[1, 1, 1, 1], ceil_mode=up, **options)
        m.end(op, "x", kernel_shape=[3, 2], strides=[2, 2], pads=[0, 0, 1, 1],
              **options)
        m.end(op, "x", kernel_shape=[2, 5], strides=[3, 2],
              auto_pad="SAME_LOWER", **options)
    m.end("GlobalMaxPool", "x")
    m.end("GlobalAveragePool", "x")
    return m


def norms():
    m = Model(1, 7, 6, 5)
    m.end("LRN", "x", size=3, alpha=2.5, beta=0.5, bias=2.0)
    m.end("LRN", "x", size=5, alpha=1.0)
    seven = [m.constant(RANDOM.uniform(0.5, 1.5, 7)) for _ in range(4)]
    m.end("BatchNormalization", "x", *seven, epsilon=0.25)
    m.end("InstanceNormalization", "x", *seven[:2], epsilon=0.01)
    m.end("Softmax", "x", axis=1)
    m.end("Softmax", "x", axis=3)
    m.end("ReduceMean", "x", axes=[2, 3], keepdims=0)
    return m


def activations():
    m = Model(1, 4, 5, 6)
    y = m.node("Mul", "x", m.constant(5))
    m.end("Clip", y, m.constant(0), m.constant(6))
    m.end("Clip", y, "", m.constant(1.5))
    m.end("HardSigmoid", y, alpha=0.3, beta=0.4)
    m.end("HardSwish", y)
    m.end("LeakyRelu", y, alpha=0.2)
    m.end("PRelu", y, m.constant(RANDOM.uniform(0.1, 0.4, (4, 1, 1))))
    m.end("Mul", y, m.node("Sigmoid", y))
    m.end("Elu", y, alpha=0.7)
    erf = m.node("Erf", m.node("Div", y, m.constant(2 ** 0.5)))
    half = m.node("Mul", y, m.node("Add", erf, m.constant(1)))
    m.end("Mul", half, m.constant(0.5))
    m.end("Sqrt", m.node("Pow", y, m.constant(2)))
    return m


def resizes():
    m = Model(1, 3, 5, 6)
    for mode, where in (("nearest", "asymmetric"), ("linear", "half_pixel"),
                        ("linear", "align_corners"), ("linear", "asymmetric"),
                        ("linear", "pytorch_half_pixel")):
        # align_corners: of a length that is no whole number onnxruntime
        # takes the whole part, ONNX's own test data do not.
        for scale in ([1, 1, 2, 2], [1, 1, 1.4, 3.0], [1, 1, 0.6, 0.5]):
            # Roundings of nearest differ only where a coordinate is a half.
            options = {"nearest_mode": "floor"} if mode == "nearest" else {}
            m.end("Resize", "x", "", m.constant(scale), mode=mode,
                  coordinate_transformation_mode=where, **options)
    m.end("Resize", "x", "", "", m.constant([1, 3, 8, 9], "int64"),
          mode="nearest", nearest_mode="round_prefer_floor",
          coordinate_transformation_mode="half_pixel")
    return m


def shapes():
    m = Model(1, 8, 4, 6)
    m.end("DepthToSpace", "x", blocksize=2, mode="DCR")
    m.end("DepthToSpace", "x", blocksize=2, mode="CRD")
    m.end("SpaceToDepth", "x", blocksize=2)
    m.end("Split", "x", m.constant([1, 4, 3], "int64"), outputs=3, axis=1)
    ints = [m.constant(v, "int64") for v in ([1, -2], [9, -5], [2, 3],
                                             [2, -1])]
    m.end("Slice", "x", *ints)
    for mode in ("constant", "reflect", "edge"):
        extra = [m.constant(1.5)] if mode == "constant" else []
        m.end("Pad", "x", m.constant([0, 0, 1, 2, 0, 0, 3, 1], "int64"),
              *extra, mode=mode)
    m.end("Transpose", "x", perm=[0, 2, 3, 1])
    shuffled = m.node("Transpose",
                      m.node("Reshape", "x",
                             m.constant([0, 2, 4, 4, -1], "int64")),
                      perm=[0, 2, 1, 3, 4])
    m.end("Reshape", shuffled, m.constant([1, 8, 4, 6], "int64"))
    return m


def products():
    m = Model(3, 8)
    m.end("Gemm", "x", m.weights(8, 5), m.weights(5), alpha=0.5, beta=2.0)
    m.end("Gemm", "x", m.weights(5, 8), m.constant([[0.1], [0.2], [0.3]]),
          transB=1)
    m.end("Gemm", "x", m.weights(3, 4), transA=1)
    m.end("MatMul", "x", m.weights(8, 6))
    m.end("MatMul", m.node("Reshape", "x", m.constant([2, 3, 4], "int64")),
          m.weights(4, 5))
    return m


def resizes19():
    """Operator set 18's policies, axes and antialiasing, 19's symmetry."""
    m = Model(1, 3, 9, 14)
    for policy in ("stretch", "not_larger", "not_smaller"):
        for where in ("half_pixel", "asymmetric"):  # align_corners: see above
            for size in ([6, 7], [13, 31]):
                m.end("Resize", "x", "", "", m.constant(size, "int64"),
                      mode="linear", axes=[2, 3],
                      keep_aspect_ratio_policy=policy,
                      coordinate_transformation_mode=where)
        m.end("Resize", "x", "", "", m.constant([20, 12], "int64"),
              mode="nearest", nearest_mode="floor", axes=[3, 2],
              keep_aspect_ratio_policy=policy,
              coordinate_transformation_mode="asymmetric")
    for mode in ("linear", "cubic"):
        for scale in ([0.6, 0.3], [1.7, 0.5]):
            for outside in (0, 1):
                m.end("Resize", "x", "", m.constant(scale), mode=mode,
                      antialias=1, axes=[2, 3], exclude_outside=outside)
    m.end("Resize", "x", "", "", m.constant([4, 5], "int64"), mode="linear",
          antialias=1, axes=[2, 3])
    m.end("Resize", "x", "", m.constant([1.3, 0.8]), mode="linear",
          axes=[2, 3], coordinate_transformation_mode="half_pixel_symmetric")
    return m


def resizes10():
    """The first Resize rounds down when an axis grows, up when it shrinks;
    with these scales, in float32."""
    m = Model(1, 2, 9, 13)
    for mode in ("nearest", "linear"):
        for scale in ([0.6, 0.7], [0.3, 1.2], [1.7, 0.4], [2.2, 0.8]):
            m.end("Resize", "x", m.constant([1, 1, *scale]), mode=mode)
    return m


def pools19():
    """Taps that lie apart (averages: 19), ceil_mode, powers."""
    m = Model(1, 3, 14, 15)
    for op, options in (("MaxPool", {}), ("AveragePool", {}),
                        ("AveragePool", {"count_include_pad": 1})):
        for up in (0, 1):
            m.end(op, "x", kernel_shape=[3, 2], strides=[2, 3],
                  pads=[1, 1, 1, 1], dilations=[2, 3], ceil_mode=up, **options)
            m.end(op, "x", kernel_shape=[2, 2], strides=[3, 2],
                  dilations=[1, 4], ceil_mode=up, **options)
    for p in (1, 2, 3):
        m.end("LpPool", "x", p=p, kernel_shape=[3, 2], strides=[2, 2],
              pads=[1, 0, 1, 1])
        m.end("GlobalLpPool", "x", p=p)
    m.end("LpPool", "x", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
    for p in (1, 2):
        m.end("LpNormalization", "x", axis=1, p=p)
    return m


def newer18():
    """Lists that became inputs in 18, parts that are uneven."""
    m = Model(1, 8, 5, 6)
    plane = m.constant([2, 3], "int64")
    for op in ("Mean", "Max", "Min", "Sum", "SumSquare", "L1", "L2", "Prod",
               "LogSumExp"):
        m.end("Reduce" + op, "x", plane, keepdims=0)
    m.end("ReduceMean", "x", "", noop_with_empty_axes=1)
    m.end("Split", "x", outputs=3, axis=1, num_outputs=3)
    m.end("Pad", "x", m.constant([1, 2, 3, 1], "int64"), m.constant(0.5),
          m.constant([3, -2], "int64"))
    m.end("Pad", "x", m.constant([1, 2], "int64"), "",
          m.constant([2], "int64"), mode="reflect")
    m.end("Mish", "x")
    two = [m.constant(RANDOM.uniform(0.5, 1.5, 2)) for _ in range(2)]
    m.end("GroupNormalization", "x", *two, num_groups=2)
    six = [m.constant(RANDOM.uniform(0.5, 1.5, 6)) for _ in range(2)]
    m.end("LayerNormalization", "x", *six)
    m.end("Mod", "x", m.constant(0.3), fmod=1)
    m.end("Reshape", "x", m.constant([1, 0, -1], "int64"))
    half = m.node("Cast", "x", to=TensorProto.FLOAT16)
    m.end("Cast", half, to=TensorProto.FLOAT)
    return m


def attention():
    """What exported transformers have besides layers of CNNs."""
    m = Model(2, 3, 4, 5)
    w = m.weights(6, 5)
    m.end("Einsum", "x", w, equation="bhid,od->bhio")
    m.end("Einsum", "x", "x", equation="bhid,bhjd->bhij")
    m.end("Einsum", "x", "x", equation="b h i d, b h i e -> b h d e")
    m.end("Einsum", "x", m.weights(3, 7), equation="bhid,hk->dk")
    m.end("Einsum", "x", equation="bhid->dbi")
    m.end("Einsum", "x", m.weights(4), equation="abij,i")
    m.end("Trilu", "x", m.constant(1, "int64"))
    m.end("Trilu", "x", m.constant(-1, "int64"), upper=0)
    mask = m.node("ScatterND", m.node("Expand", m.constant([[-1]]),
                                      m.constant([4, 4], "int64")),
                  m.constant([[0, 1], [-1, 2]], "int64"), m.constant([2, 3]))
    m.end("MatMul", m.node("Trilu", mask), "x")
    kept = m.constant(True, "bool")
    m.end("Dropout", "x", m.constant(0), kept)
    return m


def newer21():
    m = Model(2, 8, 4, 6)
    m.end("Gelu", "x")
    m.end("Gelu", "x", approximate="tanh")
    eight = [m.constant(RANDOM.uniform(0.5, 1.5, 8)) for _ in range(2)]
    m.end("GroupNormalization", "x", *eight, num_groups=4)
    m.end("HardSwish", "x")
    scale = m.constant(RANDOM.uniform(0.01, 0.03, (2, 4, 4, 6)))
    whole = m.node("QuantizeLinear", "x", scale, axis=1, block_size=2,
                   output_dtype=TensorProto.INT8)
    m.end("DequantizeLinear", whole, scale, axis=1, block_size=2)
    eight = m.constant(RANDOM.uniform(1e-4, 1e-3, 8))
    wide = m.node("QuantizeLinear", "x", eight, m.constant([7] * 8, "int16"))
    m.end("DequantizeLinear", wide, eight, m.constant([7] * 8, "int16"))
    m.end("ConstantOfShape", m.node("Shape", "x", start=1, end=3))
    return m


MODELS = {"conv-padding": (conv_padding, 13), "deconv": (deconv, 13),
          "pools": (pools, 13), "norms": (norms, 13),
          "activations14": (activations, 14), "resizes": (resizes, 13),
          "resizes10": (resizes10, 10),
          "shapes": (shapes, 13), "products": (products, 13),
          "resizes19": (resizes19, 19), "pools19": (pools19, 19),
          "newer18": (newer18, 18),
          "attention": (attention, 14), "newer21": (newer21, 21)}


def main():
    for name, (make, opset) in MODELS.items():
        make().save(os.path.join(sys.argv[1], f"onnx-{name}.onnx"), opset)


if __name__ == "__main__":
    main()
