"""write_int8.py - quantised TensorFlow Lite models from Python, for the tests.

Each network of NETWORKS is a function that adds layers to a Quantised; codes
and scales are drawn by its name. Needs nothing but Python.
"""
import random
import struct
import zlib

from truthlib import count
from write_tflite import (FLOAT, INT8, INT32, NONE, RELU, RELU6, SAME, UINT8,
                          VALID, Model, Table, Vector)

INT64, INT16 = 4, 7
LETTER = {INT8: "b", UINT8: "B", INT16: "h", INT32: "i", INT64: "q"}
LIMITS = {INT8: (-128, 127), UINT8: (0, 255), INT16: (-32768, 32767)}
REAL = (FLOAT, 0, 0)
X = (INT8, 0.05, 3)       # what most layers read...
Y = (INT8, 0.07, -11)     # ...and write
UNIT = (INT8, 1 / 256, -128)  # probabilities


def quantisation(scales, zeros, axis=0):
    return Table(f2=Vector("f", scales), f3=Vector("q", zeros),
                 f6=("i", axis))


class Quantised(Model):
    """A quantisation is (type, scale, zero)."""

    def __init__(self, name):
        super().__init__(name)
        self.random = random.Random(zlib.crc32(name.encode()))
        self.quant = REAL  # of tensors that are made now

    def tensor(self, shape, name=None, kind=FLOAT, buffer=0, quants=None):
        if quants is None and self.quant is not REAL:
            kind, scale, zero = self.quant
            quants = quantisation([scale], [zero])
        return super().tensor(shape, name, kind, buffer, quants)

    def input(self, *shape, quant=X, name=None):
        self.quant = quant
        out = super().input(*shape, name=name or f"x{len(self.inputs)}")
        self.quant = REAL
        return out

    def stored(self, kind, shape, values, scales, zero=0, axis=0):
        packed = struct.pack(f"<{len(values)}{LETTER[kind]}", *values)
        self.buffers.append(Table(f0=Vector("B", packed)))
        return self.tensor(shape, None, kind, len(self.buffers) - 1,
                           quantisation(scales, [zero] * len(scales), axis))

    def constant(self, shape, quant):
        """An operand that the network brings along."""
        kind, scale, zero = quant
        values = [self.random.randint(*LIMITS[kind])
                  for _ in range(count(shape))]
        return self.stored(kind, shape, values, [scale], zero)

    def weights(self, shape, axis, quant=X, kind=INT8, zero=0):
        """Weights, with a scale for each index of the axis (None: one for
        all), and their bias, of 64 bits for int16; quant: of the input."""
        n = shape[axis or 0]
        scales = [self.random.uniform(0.002, 0.01)
                  for _ in range(1 if axis is None else n)]
        low = max(LIMITS[kind][0], -127)
        values = [self.random.randint(low, LIMITS[kind][1])
                  for _ in range(count(shape))]
        bias = [self.random.randint(-3000, 3000) for _ in range(n)]
        return [self.stored(kind, shape, values, scales, zero, axis or 0),
                self.stored(INT64 if quant[0] == INT16 else INT32, [n], bias,
                            [s * quant[1] for s in scales])]

    def op(self, kind, inputs, shape, quant, *options):
        self.quant = quant
        out = super().op(kind, inputs, shape, *options)
        self.quant = REAL
        return out


# ---- one layer after another, each an output ----

def convolutions(m):
    x = m.input(1, 9, 10, 4)
    for kernel, shape, padding, step, act in (
            ((3, 3), (9, 10), SAME, (1, 1), NONE),
            ((3, 3), (5, 5), SAME, (2, 2), RELU),
            ((3, 2), (4, 9), VALID, (2, 1), RELU6),
            ((1, 1), (9, 10), SAME, (1, 1), NONE)):
        m.end("CONV_2D", [x, *m.weights([6, *kernel, 4], 0)],
              [1, *shape, 6], Y, padding, step[1], step[0], act, 1, 1)
    m.end("CONV_2D", [x, *m.weights([3, 3, 3, 4], 0)], [1, 5, 6, 3], Y,
          VALID, 1, 1, NONE, 2, 2)


def depthwise(m):
    x = m.input(1, 8, 7, 6)
    for kernel, shape, padding, step, act in (
            ((3, 3), (8, 7), SAME, (1, 1), NONE),
            ((3, 3), (4, 4), SAME, (2, 2), RELU6),
            ((5, 5), (4, 3), VALID, (1, 1), RELU)):
        m.end("DEPTHWISE_CONV_2D", [x, *m.weights([1, *kernel, 6], 3)],
              [1, *shape, 6], Y, padding, step[1], step[0], 1, act, 1, 1)
    m.end("DEPTHWISE_CONV_2D", [x, *m.weights([1, 3, 3, 12], 3)],
          [1, 8, 7, 12], Y, SAME, 1, 1, 2, NONE, 1, 1)


def products(m):
    x = m.input(1, 40)
    m.end("FULLY_CONNECTED", [x, *m.weights([11, 40], None)], [1, 11], Y,
          NONE, 0, 0)
    m.end("FULLY_CONNECTED", [x, *m.weights([7, 40], None)], [1, 7], Y, RELU,
          0, 0)


def bytes_without_sign(m):
    """As networks of 2018 are: one scale, weights with a zero."""
    quant = (UINT8, 0.04, 121)
    x = m.input(1, 7, 7, 3, quant=quant)
    out = (UINT8, 0.06, 100)
    m.end("CONV_2D", [x, *m.weights([5, 3, 3, 3], None, quant, UINT8, 130)],
          [1, 7, 7, 5], out, SAME, 1, 1, RELU6, 1, 1)
    m.end("DEPTHWISE_CONV_2D",
          [x, *m.weights([1, 3, 3, 3], None, quant, UINT8, 119)[:1]],
          [1, 7, 7, 3], out, SAME, 1, 1, 1, NONE, 1, 1)
    m.end("AVERAGE_POOL_2D", [x], [1, 3, 3, 3], quant, VALID, 2, 2, 2, 2, NONE)
    m.end("MAX_POOL_2D", [x], [1, 3, 3, 3], quant, VALID, 2, 2, 2, 2, NONE)


def wide(m):
    """16 bits, whose sums have more than 32."""
    quant, out = (INT16, 1 / 4096, 0), (INT16, 1 / 512, 0)
    x = m.input(1, 5, 6, 80, quant=quant)
    m.end("CONV_2D", [x, *m.weights([4, 3, 3, 80], 0, quant)], [1, 5, 6, 4],
          out, SAME, 1, 1, NONE, 1, 1)
    m.end("DEPTHWISE_CONV_2D", [x, *m.weights([1, 3, 3, 80], 3, quant)],
          [1, 5, 6, 80], out, SAME, 1, 1, 1, RELU, 1, 1)
    y = m.input(1, 600, quant=quant)
    m.end("FULLY_CONNECTED", [y, *m.weights([9, 600], None, quant)], [1, 9],
          out, NONE, 0, 0)


def sums(m):
    a, b = m.input(1, 6, 5, 4), m.input(1, 6, 5, 4, quant=(INT8, 0.013, 40))
    shape = [1, 6, 5, 4]
    for kind in "ADD", "SUB", "MUL":
        m.end(kind, [a, b], shape, Y, NONE)
        m.end(kind, [a, b], shape, Y, RELU)
        m.end(kind, [a, a], shape, (INT8, 0.3, 0), NONE)
    m.end("ADD", [a, m.constant([4], (INT8, 0.02, 5))], shape, Y, NONE)
    m.end("MUL", [a, m.constant([1, 1, 1, 4], (INT8, 0.02, 0))], shape, Y,
          NONE)
    same = m.input(1, 6, 5, 4)
    m.end("MAXIMUM", [a, same], shape, X)
    m.end("MINIMUM", [a, same], shape, X)


def pools(m):
    x = m.input(1, 8, 9, 5)
    for kernel, step, shape, padding, act in (
            ((2, 2), (2, 2), (4, 4), VALID, NONE),
            ((3, 3), (1, 1), (8, 9), SAME, NONE),
            ((2, 3), (2, 1), (4, 9), SAME, RELU),
            ((8, 9), (1, 1), (1, 1), VALID, NONE)):
        for kind in "AVERAGE_POOL_2D", "MAX_POOL_2D":
            m.end(kind, [x], [1, *shape, 5], X, padding, step[1], step[0],
                  kernel[1], kernel[0], act)
    m.end("MEAN", [x, m.ints(1, 2)], [1, 1, 1, 5], X, 1)
    m.end("MEAN", [x, m.ints(1, 2)], [1, 5], Y, 0)


def functions(m):
    x = m.input(1, 4, 4, 16, quant=(INT8, 0.06, -7))
    shape = [1, 4, 4, 16]
    m.end("LOGISTIC", [x], shape, UNIT)
    m.end("TANH", [x], shape, (INT8, 1 / 128, 0))
    m.end("RELU", [x], shape, (INT8, 0.03, -128))
    m.end("RELU6", [x], shape, (INT8, 6 / 255, -128))
    m.end("HARD_SWISH", [x], shape, (INT8, 0.05, -100))
    m.end("LEAKY_RELU", [x], shape, Y, 0.1)
    m.end("SOFTMAX", [x], shape, UNIT, 1.0)
    m.end("PRELU", [x, m.constant([1, 1, 16], (INT8, 0.01, 0))], shape, Y)


def moves(m):
    x, y = m.input(1, 6, 4, 3), m.input(1, 6, 4, 3)
    m.end("RESHAPE", [x, m.ints(1, 72)], [1, 72], X)
    m.end("PAD", [x, m.ints(0, 0, 1, 2, 2, 0, 0, 0, shape=[4, 2])],
          [1, 9, 6, 3], X)
    m.end("CONCATENATION", [x, y], [1, 6, 4, 6], X, 3, NONE)
    m.end("TRANSPOSE", [x, m.ints(0, 2, 1, 3)], [1, 4, 6, 3], X)
    m.end("STRIDED_SLICE",
          [x, m.ints(0, 1, 0, 0), m.ints(1, 5, 4, 3), m.ints(1, 1, 1, 1)],
          [1, 4, 4, 3], X, 0, 0, 0, 0, 0)
    m.end("RESIZE_NEAREST_NEIGHBOR", [x, m.ints(12, 8)], [1, 12, 8, 3], X, 0,
          0)
    m.end("SPACE_TO_DEPTH", [x], [1, 3, 2, 12], X, 2)


def resizes(m):
    x = m.input(1, 5, 4, 3)
    m.end("RESIZE_BILINEAR", [x, m.ints(10, 8)], [1, 10, 8, 3], X, 0, 0)
    m.end("RESIZE_BILINEAR", [x, m.ints(7, 9)], [1, 7, 9, 3], X, 0, 1)


def scales(m):
    x = m.input(1, 5, 5, 4)
    f = m.input(1, 5, 5, 4, quant=REAL)
    shape = [1, 5, 5, 4]
    m.end("QUANTIZE", [x], shape, Y)
    m.end("QUANTIZE", [x], shape, (UINT8, 0.05, 131))
    m.end("QUANTIZE", [f], shape, (INT8, 0.009, 4))
    m.end("DEQUANTIZE", [x], shape, REAL)


def transposed(m):
    x = m.input(1, 4, 5, 3)
    w, b = m.weights([6, 3, 3, 3], 0)
    m.end("TRANSPOSE_CONV", [m.ints(1, 8, 10, 6), w, x, b], [1, 8, 10, 6], Y,
          SAME, 2, 2)


# ---- whole networks ----

def residual(m):
    """A block of ResNet, a head, and a skip in another scale."""
    x = m.input(1, 12, 12, 3)
    a = m.op("CONV_2D", [x, *m.weights([8, 3, 3, 3], 0)], [1, 12, 12, 8],
             (INT8, 0.08, -128), SAME, 1, 1, RELU, 1, 1)
    b = m.op("CONV_2D", [a, *m.weights([8, 3, 3, 8], 0, (INT8, 0.08, 0))],
             [1, 12, 12, 8], (INT8, 0.2, 9), SAME, 1, 1, NONE, 1, 1)
    c = m.op("ADD", [a, b], [1, 12, 12, 8], (INT8, 0.15, -128), RELU)
    d = m.op("MAX_POOL_2D", [c], [1, 6, 6, 8], (INT8, 0.15, -128), VALID, 2,
             2, 2, 2, NONE)
    e = m.op("AVERAGE_POOL_2D", [d], [1, 1, 1, 8], (INT8, 0.15, -128), VALID,
             1, 1, 6, 6, NONE)
    f = m.op("RESHAPE", [e, m.ints(1, 8)], [1, 8], (INT8, 0.15, -128))
    g = m.op("FULLY_CONNECTED",
             [f, *m.weights([5, 8], None, (INT8, 0.15, 0))], [1, 5],
             (INT8, 0.12, 11), NONE, 0, 0)
    m.end("SOFTMAX", [g], [1, 5], UNIT, 1.0)


def inverted(m):
    """A block of MobileNetV2: expand, depthwise, project, add; two paths that
    are joined behind it."""
    quant, six = (INT8, 0.05, 3), (INT8, 6 / 255, -128)
    x = m.input(1, 10, 10, 8)
    a = m.op("CONV_2D", [x, *m.weights([24, 1, 1, 8], 0)], [1, 10, 10, 24],
             six, SAME, 1, 1, RELU6, 1, 1)
    b = m.op("PAD", [a, m.ints(0, 0, 0, 1, 0, 1, 0, 0, shape=[4, 2])],
             [1, 11, 11, 24], six)
    c = m.op("DEPTHWISE_CONV_2D", [b, *m.weights([1, 3, 3, 24], 3, six)],
             [1, 5, 5, 24], six, VALID, 2, 2, 1, RELU6, 1, 1)
    d = m.op("CONV_2D", [c, *m.weights([8, 1, 1, 24], 0, six)],
             [1, 5, 5, 8], quant, SAME, 1, 1, NONE, 1, 1)
    e = m.op("MAX_POOL_2D", [x], [1, 5, 5, 8], quant, VALID, 2, 2, 2, 2,
             NONE)
    f = m.op("ADD", [d, e], [1, 5, 5, 8], Y, NONE)
    g = m.op("CONV_2D", [f, *m.weights([16, 1, 1, 8], 0, Y)], [1, 5, 5, 16],
             Y, SAME, 1, 1, NONE, 1, 1)
    m.end("CONCATENATION", [f, g], [1, 5, 5, 24], Y, 3, NONE)


def grouped(m):
    """Groups of whole blocks of channels, and of less than one."""
    x = m.input(1, 9, 10, 24)
    m.end("CONV_2D", [x, *m.weights([24, 3, 3, 4], 0)], [1, 9, 10, 24], Y,
          SAME, 1, 1, RELU, 1, 1)
    m.end("CONV_2D", [x, *m.weights([18, 3, 3, 4], 0)], [1, 5, 5, 18], Y,
          SAME, 2, 2, NONE, 1, 1)
    y = m.input(1, 5, 6, 16)
    m.end("CONV_2D", [y, *m.weights([32, 3, 1, 8], 0)], [1, 5, 6, 32], Y,
          SAME, 1, 1, NONE, 1, 1)


NETWORKS = (convolutions, depthwise, products, bytes_without_sign, wide, sums,
            pools, functions, moves, resizes, scales, transposed, residual,
            inverted)


def make(build):
    model = Quantised(build.__name__)
    build(model)
    return model


def write_ends(build, folder):
    """A file for each output of the network, with the operators and inputs
    that it needs: (name, path)."""
    model = make(build)
    inputs = model.inputs
    for i, end in enumerate(model.ends):
        needed = {end}
        for operator in reversed(model.operators):
            if needed & set(operator.fields[2].items):
                needed |= set(operator.fields[1].items)
        model.inputs = [tensor for tensor in inputs if tensor in needed]
        path = f"{folder}/{build.__name__}.{i}.tflite"
        model.part(end)(path)
        yield f"{build.__name__}.{i}", path
