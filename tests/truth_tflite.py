#!/usr/bin/env python3
"""truth_tflite.py - TensorFlow Lite files of floats against TensorFlow Lite
itself (as WebAssembly, of tfjs-tflite) and Arm NN's reference.

Small models, one for a few operators each, are made here with drawn numbers.
Compared are all outputs, of the reference evaluation and of the simulated
listing for xdnn-v3-96, to 1e-4 of the largest value. The WebAssembly's values
are recorded in tests/truth/tflite-*.values and compared in every run; --long
computes them anew, asks Arm NN too, and reads the float files of ../shared/data.
usage: truth_tflite.py [--long | --record] [NAME...]
"""
import os
import shutil
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from foreign import (ARM_NN, TFLITE, TFLITE_WASM,  # noqa: E402
                     compare_foreign, install_npm, one_by_one, tflite)
from truthlib import Table, asked, run_jobs  # noqa: E402
from write_tflite import (FLOAT, INT32, NONE, RELU, RELU6, RELU_N1_TO_1, SAME,  # noqa: E402
                          VALID, Model)

DATA = "../shared/data/tflite/"


def windows(size, kernel, step, padding, dilation=1):
    extent = (kernel - 1) * dilation + 1
    return -(-size // step) if padding == SAME else (size - extent) // step + 1


def image(h, w, c, kernel, step, padding, dilation=(1, 1)):
    return [1, windows(h, kernel[0], step[0], padding, dilation[0]),
            windows(w, kernel[1], step[1], padding, dilation[1]), c]


def convolutions(m):
    x = m.input(1, 9, 10, 4)
    for kernel, step, padding, act, dilation in (
            ((3, 3), (1, 1), SAME, NONE, (1, 1)),
            ((3, 3), (2, 2), SAME, RELU, (1, 1)),
            ((3, 2), (2, 1), VALID, RELU6, (1, 1)),
            ((1, 1), (2, 2), SAME, RELU_N1_TO_1, (1, 1)),
            ((3, 3), (1, 1), SAME, NONE, (2, 2)),
            ((3, 3), (1, 1), VALID, NONE, (2, 1))):
        m.end("CONV_2D", [x, m.drawn(-.3, .3, 5, *kernel, 4),
                          m.drawn(-.5, .5, 5)],
              image(9, 10, 5, kernel, step, padding, dilation), padding,
              step[1], step[0], act, dilation[1], dilation[0])


def depthwise(m):
    x = m.input(1, 9, 10, 4)
    for many, step, padding, act in ((1, 1, SAME, NONE), (1, 2, SAME, RELU6),
                                     (2, 1, VALID, RELU), (3, 2, SAME, NONE)):
        m.end("DEPTHWISE_CONV_2D",
              [x, m.drawn(-.5, .5, 1, 3, 3, 4 * many),
               m.drawn(-.5, .5, 4 * many)],
              image(9, 10, 4 * many, (3, 3), (step, step), padding), padding,
              step, step, many, act, 1, 1)


def pools(m):
    x = m.input(1, 9, 10, 4)
    for kind in ("MAX_POOL_2D", "AVERAGE_POOL_2D"):
        for kernel, step, padding, act in (((2, 2), 2, VALID, NONE),
                                           ((3, 3), 2, SAME, NONE),
                                           ((3, 2), 1, SAME, RELU)):
            m.end(kind, [x], image(9, 10, 4, kernel, (step, step), padding),
                  padding, step, step, kernel[1], kernel[0], act)


def products(m):
    x = m.input(1, 3, 4, 5)
    flat = m.op("RESHAPE", [x, m.ints(1, 60)], [1, 60])
    y = m.op("FULLY_CONNECTED", [flat, m.drawn(-.3, .3, 7, 60),
                                 m.drawn(-1, 1, 7)], [1, 7], RELU, 0, 0)
    m.end("FULLY_CONNECTED", [y, m.drawn(-.5, .5, 3, 7), -1], [1, 3], NONE, 0,
          0)
    m.end("SOFTMAX", [flat], [1, 60], 1.0)
    m.end("SOFTMAX", [x], [1, 3, 4, 5], 1.5)


def activations(m):
    x = m.input(1, 4, 5, 3)
    five = m.const([1], struct.pack("<f", 5))
    y = m.op("MUL", [x, five], [1, 4, 5, 3], NONE)
    for kind in ("RELU", "RELU6", "RELU_N1_TO_1", "LOGISTIC", "TANH", "EXP",
                 "NEG", "ABS", "FLOOR", "CEIL", "ROUND", "ELU", "HARD_SWISH",
                 "SQUARE"):
        m.end(kind, [y], [1, 4, 5, 3])
    m.end("LEAKY_RELU", [y], [1, 4, 5, 3], 0.3)
    m.end("PRELU", [y, m.drawn(.1, .4, 1, 1, 3)], [1, 4, 5, 3])
    z = m.op("ABS", [y], [1, 4, 5, 3])
    half = m.const([1], struct.pack("<f", .5))
    z = m.op("ADD", [z, half], [1, 4, 5, 3], NONE)
    for kind in ("LOG", "SQRT", "RSQRT"):
        m.end(kind, [z], [1, 4, 5, 3])


def elements(m):
    x = m.input(1, 4, 5, 3)
    y = m.op("EXP", [x], [1, 4, 5, 3])
    for kind in ("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM"):
        more = [] if kind[0] == "M" and kind != "MUL" else [RELU]
        m.end(kind, [x, y], [1, 4, 5, 3], *more)
        m.end(kind, [y, m.drawn(.5, 1.5, 3)], [1, 4, 5, 3], *more)
        m.end(kind, [m.drawn(.5, 1.5, 1), y], [1, 4, 5, 3], *more)
        m.end(kind, [y, m.drawn(.5, 1.5, 1, 4, 5, 3)], [1, 4, 5, 3], *more)
    m.end("SQUARED_DIFFERENCE", [x, y], [1, 4, 5, 3])
    m.end("POW", [y, m.drawn(1, 2, 1)], [1, 4, 5, 3])
    mean = m.op("MEAN", [y, m.ints(1, 2)], [1, 1, 1, 3], 1)
    m.end("MUL", [y, mean], [1, 4, 5, 3], NONE)


def reductions(m):
    x = m.input(1, 4, 5, 3)
    for kind in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"):
        m.end(kind, [x, m.ints(1, 2)], [1, 1, 1, 3], 1)
        m.end(kind, [x, m.ints(1, 2)], [1, 3], 0)
        m.end(kind, [x, m.ints(3)], [1, 4, 5, 1], 1)
    m.end("L2_NORMALIZATION", [x], [1, 4, 5, 3], NONE)
    m.end("LOCAL_RESPONSE_NORMALIZATION", [x], [1, 4, 5, 3], 2, 1.5, 0.3,
          0.75)


def joins(m):
    x = m.input(1, 4, 6, 8)
    y = m.op("EXP", [x], [1, 4, 6, 8])
    m.end("CONCATENATION", [x, y], [1, 4, 6, 16], 3, NONE)
    m.end("CONCATENATION", [x, y], [1, 8, 6, 8], 1, NONE)
    m.end("CONCATENATION", [x, y], [1, 4, 12, 8], -2, NONE)
    parts = m.op("SPLIT", [m.ints(3, shape=[]), x], [[1, 4, 6, 4]] * 2, 2)
    m.end("SUB", parts, [1, 4, 6, 4], NONE)
    parts = m.op("SPLIT_V", [x, m.ints(2, 6), m.ints(3, shape=[])],
                 [[1, 4, 6, 2], [1, 4, 6, 6]], 2)
    m.end("CONCATENATION", parts[::-1], [1, 4, 6, 8], 3, NONE)
    flat = m.op("RESHAPE", [x, m.ints(24, 8)], [24, 8])
    both = m.op("PACK", [flat, flat], [2, 24, 8], 2, 0)
    m.end("ABS", [both], [2, 24, 8])
    rows = m.op("UNPACK", [m.op("RESHAPE", [x, m.ints(2, 96)], [2, 96])],
                [[96], [96]], 2, 0)
    m.end("MAXIMUM", rows, [96])


def shapes(m):
    x = m.input(1, 4, 6, 8)
    m.end("RESHAPE", [x, m.ints(1, 6, 4, 8)], [1, 6, 4, 8])
    m.end("TRANSPOSE", [x, m.ints(0, 2, 1, 3)], [1, 6, 4, 8])
    m.end("TRANSPOSE", [x, m.ints(0, 3, 1, 2)], [1, 8, 4, 6])
    m.end("SLICE", [x, m.ints(0, 1, 2, 3), m.ints(1, 2, -1, 4)], [1, 2, 4, 4])
    m.end("STRIDED_SLICE", [x, m.ints(0, 1, 0, -5), m.ints(1, 3, 6, -1),
                            m.ints(1, 1, 1, 1)], [1, 2, 6, 4], 1, 1, 0, 0, 0)
    m.end("STRIDED_SLICE", [x, m.ints(0, 0, 5, 0), m.ints(1, 4, 0, 8),
                            m.ints(1, 2, -2, 3)], [1, 2, 3, 3], 0, 0, 0, 0, 0)
    m.end("PAD", [x, m.ints(0, 0, 1, 2, 0, 3, 0, 0, shape=[4, 2])],
          [1, 7, 9, 8])
    m.end("PAD", [x, m.ints(0, 0, 0, 0, 0, 0, 1, 2, shape=[4, 2])],
          [1, 4, 6, 11])
    m.end("PADV2", [x, m.ints(0, 0, 1, 2, 0, 3, 0, 0, shape=[4, 2]),
                    m.const([1], struct.pack("<f", 1.5))], [1, 7, 9, 8])
    for mode in (0, 1):
        m.end("MIRROR_PAD", [x, m.ints(0, 0, 1, 2, 0, 3, 0, 0, shape=[4, 2])],
              [1, 7, 9, 8], mode)
    m.end("SPACE_TO_DEPTH", [x], [1, 2, 3, 32], 2)
    m.end("DEPTH_TO_SPACE", [x], [1, 8, 12, 2], 2)


def resizes(m):
    x = m.input(1, 5, 6, 3)
    for h, w in ((10, 12), (8, 9), (3, 4)):
        for align, half in ((0, 0), (1, 0), (0, 1)):
            m.end("RESIZE_BILINEAR", [x, m.ints(h, w)], [1, h, w, 3], align,
                  half)
            m.end("RESIZE_NEAREST_NEIGHBOR", [x, m.ints(h, w)], [1, h, w, 3],
                  align, half)


def transposed(m):
    x = m.input(1, 5, 6, 4)
    for size, padding in (((10, 12), SAME), ((11, 13), VALID)):
        m.end("TRANSPOSE_CONV", [m.ints(1, *size, 3),
                                 m.drawn(-.3, .3, 3, 3, 3, 4), x],
              [1, *size, 3], padding, 2, 2)


def batches(m):
    """A dilated convolution as older converters write it."""
    x = m.input(1, 8, 10, 4)
    y = m.op("SPACE_TO_BATCH_ND", [x, m.ints(2, 2),
                                   m.ints(2, 2, 2, 2, shape=[2, 2])],
             [4, 6, 7, 4])
    y = m.op("CONV_2D", [y, m.drawn(-.3, .3, 5, 3, 3, 4), m.drawn(-1, 1, 5)],
             [4, 4, 5, 5], VALID, 1, 1, NONE, 1, 1)
    m.end("BATCH_TO_SPACE_ND", [y, m.ints(2, 2),
                                m.ints(0, 0, 0, 0, shape=[2, 2])],
          [1, 8, 10, 5])


def picks(m):
    """Indices that are data: whole numbers made of the input."""
    x = m.input(1, 4, 6, 8)
    flat = m.op("RESHAPE", [x, m.ints(24, 8)], [24, 8])
    best = m.op("ARG_MAX", [x, m.ints(3, shape=[])], [1, 4, 6], INT32,
                kinds=[INT32])
    least = m.op("ARG_MIN", [flat, m.ints(0, shape=[])], [8], INT32,
                 kinds=[INT32])
    m.end("CAST", [best], [1, 4, 6], INT32, FLOAT)
    m.end("GATHER", [flat, least], [8, 8], 0, 0)
    inside = m.op("ARG_MAX", [flat, m.ints(1, shape=[])], [24], INT32,
                  kinds=[INT32])
    m.end("GATHER", [flat, inside], [24, 24], 1, 0)
    m.end("GATHER", [x, m.ints(5, 0, 3)], [1, 4, 3, 8], 2, 0)
    rows = m.op("PACK", [least, least], [8, 2], 2, 1, kinds=[INT32])
    m.end("GATHER_ND", [m.op("TILE", [flat, m.ints(1, 3)], [24, 24]), rows],
          [8])
    m.end("GATHER_ND", [x, m.ints(0, 1, 2, 0, 3, 5, shape=[2, 3])], [2, 8])
    values, at = m.op("TOPK_V2", [flat, m.ints(3, shape=[])],
                      [[24, 3], [24, 3]], kinds=[FLOAT, INT32])
    m.ends.append(values)
    m.end("CAST", [at], [24, 3], INT32, FLOAT)
    m.end("TILE", [x, m.ints(1, 2, 1, 3)], [1, 8, 6, 24])


def choices(m):
    BOOL = 6
    x = m.input(1, 4, 6, 8)
    y = m.op("EXP", [x], [1, 4, 6, 8])
    zero = m.op("SUB", [x, x], [1, 4, 6, 8], NONE)
    less = m.op("LESS", [x, zero], [1, 4, 6, 8], kinds=[BOOL])
    for kind in ("LESS", "GREATER", "LESS_EQUAL", "GREATER_EQUAL", "EQUAL",
                 "NOT_EQUAL"):
        one = m.op(kind, [x, m.drawn(-.5, .5, 8)], [1, 4, 6, 8], kinds=[BOOL])
        m.end("SELECT", [one, x, y], [1, 4, 6, 8])
        for both in ("LOGICAL_OR", "LOGICAL_AND"):
            two = m.op(both, [one, less], [1, 4, 6, 8], kinds=[BOOL])
            m.end("SELECT_V2", [two, x, y], [1, 4, 6, 8])
    no = m.op("LOGICAL_NOT", [less], [1, 4, 6, 8], kinds=[BOOL])
    m.end("SELECT", [no, x, y], [1, 4, 6, 8])
    m.end("FLOOR_DIV", [y, m.drawn(.2, .9, 1)], [1, 4, 6, 8])
    m.end("FLOOR_MOD", [x, m.drawn(.2, .9, 1)], [1, 4, 6, 8])
    m.end("REDUCE_PROD", [y, m.ints(1, 2)], [1, 8], 0)
    m.end("LOG_SOFTMAX", [m.op("RESHAPE", [x, m.ints(24, 8)], [24, 8])],
          [24, 8])
    m.end("CUMSUM", [x, m.ints(3, shape=[])], [1, 4, 6, 8], 0, 0)
    m.end("CUMSUM", [x, m.ints(1, shape=[])], [1, 4, 6, 8], 1, 1)
    m.end("BATCH_MATMUL", [x, y], [1, 4, 6, 6], 0, 1)


def recurrent(m):
    x = m.input(1, 7, 5)
    TANH = 4
    for units in (6, 3):
        part = [m.drawn(-.6, .6, units, 5) for _ in range(4)]
        part += [m.drawn(-.6, .6, units, units) for _ in range(4)]
        part += [-1] * 3 + [m.drawn(-.5, .5, units) for _ in range(4)]
        part += [-1, -1, m.variable(1, units), m.variable(1, units)]
        m.end("UNIDIRECTIONAL_SEQUENCE_LSTM", [x, *part, -1, -1, -1, -1],
              [1, 7, units], TANH, 0.0, 0.0, 0)


def cells(m):
    """LSTM with clipped cells; with peepholes, and without a gate for inputs."""
    x = m.input(1, 7, 5)
    TANH, units = 4, 6
    for peepholes, one_less in ((False, False), (True, False), (True, True)):
        part = [m.drawn(-.9, .9, units, 5) for _ in range(4)]
        part += [m.drawn(-.9, .9, units, units) for _ in range(4)]
        part += [m.drawn(-.9, .9, units) if peepholes else -1
                 for _ in range(3)]
        part += [m.drawn(-.2, .8, units) for _ in range(4)]
        part += [-1, -1, m.variable(1, units), m.variable(1, units)]
        for i in (0, 4, 8, 11) if one_less else ():
            part[i] = -1
        m.end("UNIDIRECTIONAL_SEQUENCE_LSTM", [x, *part, -1, -1, -1, -1],
              [1, 7, units], TANH, 0.4, 0.0, 0)


def weights(m):
    """Numbers of 16 bits, and matrices of which the file has some elements."""
    x = m.input(1, 6, 7, 4)
    y = m.op("CONV_2D", [x, m.halves(-.4, .4, 5, 3, 3, 4),
                         m.halves(-.5, .5, 5)], [1, 6, 7, 5], SAME, 1, 1, NONE,
             1, 1)
    m.end("DEPTHWISE_CONV_2D", [y, m.halves(-.5, .5, 1, 3, 3, 5),
                                m.halves(-.5, .5, 5)], [1, 6, 7, 5], SAME, 1, 1,
          1, NONE, 1, 1)
    m.end("PRELU", [y, m.halves(.1, .9, 1, 1, 5)], [1, 6, 7, 5])
    flat = m.op("RESHAPE", [y, m.ints(1, 210)], [1, 210])
    m.end("FULLY_CONNECTED", [flat, m.halves(-.3, .3, 7, 210), -1], [1, 7],
          NONE, 0, 0)
    m.end("FULLY_CONNECTED", [flat, m.sparse(-.3, .3, 6, 210), -1], [1, 6],
          NONE, 0, 0)


def numbers(m):
    """What a model computes of shapes and constants."""
    x = m.input(1, 4, 6, 8)
    shape = m.op("SHAPE", [x], [4], INT32, kinds=[INT32])
    rows = m.op("STRIDED_SLICE", [shape, m.ints(1), m.ints(2), m.ints(1)], [],
                0, 0, 0, 0, 1, kinds=[INT32])
    less = m.op("SUB", [rows, m.ints(1, shape=[])], [], NONE, kinds=[INT32])
    to = m.op("PACK", [less, m.ints(-1, shape=[])], [2], 2, 0, kinds=[INT32])
    m.end("RESHAPE", [m.op("SLICE", [x, m.ints(0, 0, 0, 0), m.ints(1, 3, 6, 8)],
                           [1, 3, 6, 8]), to], [3, 48])
    line = m.op("RANGE", [m.ints(0, shape=[]), m.ints(8, shape=[]),
                          m.ints(2, shape=[])], [4], kinds=[INT32])
    real = m.op("CAST", [line], [4], INT32, FLOAT)
    m.end("MUL", [m.op("SLICE", [x, m.ints(0, 0, 0, 4), m.ints(1, 4, 6, 4)],
                       [1, 4, 6, 4]), real], [1, 4, 6, 4], NONE)
    full = m.op("FILL", [shape, m.const([], struct.pack("<f", .25))],
                [1, 4, 6, 8])
    m.end("ADD_N", [x, full, m.op("ZEROS_LIKE", [x], [1, 4, 6, 8])],
          [1, 4, 6, 8])
    m.end("REVERSE_V2", [x, m.ints(3)], [1, 4, 6, 8])
    m.end("L2_POOL_2D", [x], [1, 2, 3, 8], VALID, 2, 2, 2, 2, NONE)
    best = m.op("ARG_MAX", [x, m.ints(3, shape=[])], [1, 4, 6], INT32,
                kinds=[INT32])
    m.end("ONE_HOT", [best, m.ints(8, shape=[]),
                      m.const([], struct.pack("<f", 2)),
                      m.const([], struct.pack("<f", -1))], [1, 4, 6, 8], -1)
    flat = m.op("RESHAPE", [x, m.ints(24, 8)], [24, 8])
    m.end("EMBEDDING_LOOKUP", [m.ints(5, 0, 23), flat], [3, 8])
    m.end("SCATTER_ND", [m.ints(*range(47, -1, -2), shape=[24, 1]), flat,
                         m.ints(50, 8)], [50, 8])


MODELS = {f.__name__: f for f in (
    convolutions, depthwise, pools, products, activations, elements,
    reductions, joins, shapes, resizes, transposed, batches, picks, choices,
    recurrent, cells, weights, numbers)}
WHOLE = ["hello_world_float"]


# Arm NN 20.08 does not look at align_corners and half_pixel_centers of nearest
# neighbours, and pads a transposed convolution on the other side.
ARM_NN_WRONG = {"resizes": [20, 24, 32, 36], "transposed": [3]}


def runtimes(name=None, m=None):
    arm_nn = tflite(ARM_NN)
    if m:  # it knows fewer operators: output by output
        arm_nn = one_by_one(lambda _: tflite(ARM_NN), [
            ("tflite", m.part(end), end) for end in m.ends],
            ARM_NN_WRONG.get(name, ()))
    return [("tflite", tflite(TFLITE_WASM)), ("Arm NN", arm_nn)]


def check(table, name, record, long):
    m = Model(name)
    MODELS[name](m)
    compare_foreign(table, "tflite-" + name, [("tflite", m.write)],
                    runtimes(name, m), f"tests/truth/tflite-{name}.values",
                    record=record, long=long)


def whole(table, name):
    path = f"{DATA}{name}.tflite"
    if os.path.exists(path):
        compare_foreign(table, name, [
            ("tflite", lambda copy: shutil.copy(path, copy))], runtimes())


def main():
    record, long, wanted = asked()
    if long:
        install_npm(TFLITE)
    table = Table("tflite and Arm NN" if long else "tflite's recorded values")
    jobs = [(name, check, (name, record, long)) for name in MODELS]
    jobs += [(name, whole, (name,)) for name in WHOLE] if long else []
    run_jobs(table, jobs, wanted)
    return table.close()


if __name__ == "__main__":
    sys.exit(main())
