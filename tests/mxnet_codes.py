#!/usr/bin/env python3
"""mxnet_codes.py - quantised symbols of MXNet, as quantize_model writes them.

A network of all quantised operators: its codes by the integers that the file
states, in Python, against `eval`; listings of two machines; what is refused.
"""
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from truthlib import npy_write  # noqa: E402
from write_mxnet import Symbol, write_params  # noqa: E402

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
SIZE = 8
failed = []


def check(what, good, detail=""):
    if not good:
        failed.append(what)
        print("FAILED", what, detail)


def run(*arguments):
    done = subprocess.run([AMPHORA, *map(str, arguments)], capture_output=True,
                          text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def single(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def scale(lo, hi, unsigned=False):
    return single((hi - lo) / 255 if unsigned else
                  max(abs(lo), abs(hi)) / 127)


class Model:
    """A symbol, its parameters, and codes of each tensor in Python."""

    def __init__(self, rng):
        self.rng, self.s, self.arrays = rng, Symbol(), []

    def codes(self, name, shape, limit):
        n = 1
        for dim in shape:
            n *= dim
        code = [self.rng.randrange(-127, 128) for _ in range(n)]
        self.arrays.append((f"arg:{name}", shape,
                            struct.pack(f"{n}b", *code), 5))
        for end, value in (("_min", -limit), ("_max", limit)):
            self.arrays.append((f"arg:{name}{end}", (1,),
                                struct.pack("<f", value)))
        refs = [self.s.add("null", name + end, [], {})
                for end in ("", "_min", "_max")]
        return code, refs, scale(-single(limit), single(limit))

    def op(self, kind, name, tensors, **attributes):
        """An operator on tensors, each with its range behind all of them."""
        tensors = [t if isinstance(t, list) else
                   [(t[0], 0), (t[0], 1), (t[0], 2)] for t in tensors]
        inputs = [t[0] for t in tensors] + [r for t in tensors for r in t[1:]]
        return self.s.add("_contrib_" + kind, name, inputs, attributes)


def near(sum_, factor, lo=-128, hi=127):
    value = sum_ * factor
    if abs(value - round(value)) > 0.499:  # a tie, near enough
        return None
    return max(lo, min(hi, round(value)))


def convolve(x, weight, bias, out_c, in_c, unit):
    """3 x 3, padded by 1; biases in the unit of the products."""
    result = []
    for o in range(out_c):
        for y in range(SIZE):
            for z in range(SIZE):
                total = round(bias[0][o] * bias[1] / unit)
                for c in range(in_c):
                    for k in range(9):
                        row, column = y + k // 3 - 1, z + k % 3 - 1
                        if 0 <= row < SIZE and 0 <= column < SIZE:
                            total += weight[(o * in_c + c) * 9 + k] * \
                                x[(c * SIZE + row) * SIZE + column]
                result.append(total)
    return result


def build(rng, folder):
    """(inputs as numbers, expected codes by name of tensor)"""
    m = Model(rng)
    data = m.s.input(1, 3, SIZE, SIZE)
    real = [single(rng.uniform(-1.2, 1.2)) for _ in range(3 * SIZE * SIZE)]
    first = m.s.add("_contrib_quantize_v2", "data_quantize", [data],
                    {"out_type": "int8", "min_calib_range": -1.0,
                     "max_calib_range": 1.0})
    s0 = scale(-1, 1)
    x = [max(-128, min(127, round(v / s0))) for v in real]
    w, w_refs, ws = m.codes("conv_weight_quantize", (4, 3, 3, 3), 0.5)
    b, b_refs, bs = m.codes("conv_bias_quantize", (4,), 0.3)
    conv = m.op("quantized_conv", "quantized_conv", [first, w_refs, b_refs],
                kernel=(3, 3), pad=(1, 1), num_filter=4, no_bias=False)
    down = m.op("requantize", "requantize_conv", [conv], out_type="int8",
                min_calib_range=-3.0, max_calib_range=2.5)
    s1 = scale(-3, 2.5)
    sums = convolve(x, w, (b, bs), 4, 3, s0 * ws)
    y = [near(v, s0 * ws / s1) for v in sums]
    act = m.op("quantized_act", "quantized_relu", [down], act_type="relu")
    relu = [None if v is None else max(0, v) for v in y]
    pool = m.op("quantized_pooling", "quantized_pool", [act], kernel=(2, 2),
                stride=(2, 2), pool_type="max")
    half = SIZE // 2
    most = []
    for c in range(4):
        for row in range(half):
            for column in range(half):
                at = [relu[(c * SIZE + 2 * row + k // 2) * SIZE + 2 * column +
                           k % 2] for k in range(4)]
                most.append(None if None in at else max(at))
    joined = m.op("quantized_concat", "quantized_concat", [pool, pool], dim=1,
                  num_args=2)
    add = m.op("quantized_elemwise_add", "quantized_add", [joined, joined],
               min_calib_range=-4.1, max_calib_range=4.1)
    s2 = scale(-4.1, 4.1)
    total = [None if v is None else near(2 * v, s1 / s2) for v in most + most]
    flat = m.op("quantized_flatten", "quantized_flatten", [add])
    fw, fw_refs, fs = m.codes("fc_weight_quantize", (5, 8 * half * half), 0.2)
    dense = m.op("quantized_fully_connected", "quantized_fc", [flat, fw_refs],
                 num_hidden=5, no_bias=True)
    last = m.op("requantize", "requantize_fc", [dense], min_calib_range=-6.0,
                max_calib_range=6.0)
    s3 = scale(-6, 6)
    m.s.heads.append(m.op("dequantize", "fc_dequantize", [last]))
    m.s.write_json(f"{folder}/net-symbol.json")
    write_params(f"{folder}/net.params", m.arrays)
    npy_write(f"{folder}/in.npy", (1, 3, SIZE, SIZE),
              struct.pack(f"<{len(real)}f", *real))
    if None in total:
        return None
    scores = [sum(a * c for a, c in zip(total, fw[i * len(total):]))
              for i in range(5)]
    return [near(v, s2 * fs / s3) for v in scores], s3


def values(path, kind):
    with open(path, "rb") as file:
        data = file.read()
    data = data[10 + struct.unpack("<H", data[8:10])[0]:]
    return struct.unpack(f"<{len(data) // struct.calcsize(kind)}{kind}", data)


def check_network(folder, build, layers):
    made, seed = None, 0
    while seed < 90 and (made is None or not made[0] or None in made[0]):
        made, seed = build(random.Random(seed), folder), seed + 1
    net = (f"{folder}/net-symbol.json", "--weights", f"{folder}/net.params")
    code, text = run("eval", *net, "--input", f"{folder}/in.npy", "-o",
                     f"{folder}/out")
    check("eval", code == 0, text)
    if code:
        return
    found = values(f"{folder}/out/" + sorted(os.listdir(f"{folder}/out"))[0],
                   "f")
    codes = [round(v / made[1]) for v in found]
    check("codes of the result", codes == made[0] and len(set(codes)) > 2,
          (codes, made[0]))
    code, text = run("show", *net, "--emit", "json", "-o", f"{folder}/g.json")
    with open(f"{folder}/g.json", encoding="utf-8") as file:
        nodes = json.load(file)["nodes"]
    kinds = [n["op"] for n in nodes if n["op"] not in ("input", "reshape")]
    check("one layer each", kinds == layers, kinds)
    # What oneDNN adds before it rounds, "conv1", stays numbers.
    check("on codes", all(n["writes"][0].get("quant") for n in nodes[1:-1]
                          if n["writes"][0]["name"] != "conv1"),
          [n["writes"] for n in nodes])
    for machine in ("ring-npu", "stage-npu"):
        code, text = run("verify", *net, "-t", machine)
        check(machine, code == 0 and "all equal bit for bit" in text, text)


def channel_codes(weight, rows, top=127.5):
    """As oneDNN: codes by row, and what a code is worth."""
    row = len(weight) // rows
    code, unit = [], []
    for r in range(rows):
        values = weight[r * row:][:row]
        factor = single(top / max(abs(v) for v in values))
        code += [max(-128, min(127, round(single(v * factor))))
                 for v in values]
        unit.append(1 / factor)
    return code, unit


def fused_convolve(x, unit, weight, bias):
    """Real sums of x, C channels of codes; as many results."""
    n = len(bias)
    code, each = channel_codes(weight, n)
    sums = convolve(x, code, ([0] * n, 1), n, len(x) // SIZE // SIZE, 1)
    area = SIZE * SIZE
    return [(s + round(bias[i // area] / (unit * each[i // area]))) *
            unit * each[i // area] for i, s in enumerate(sums)]


def fused(outer, op, name, inputs, build, **attributes):
    """A node that holds what `build` makes of its variables."""
    inner = Symbol()
    inner.heads.append(build(inner, [inner.add("null", f"{name}_in{i}", [], {})
                                     for i in range(len(inputs))]))
    made = outer.add(op, name, inputs, attributes)
    outer.inside[made[0]] = inner
    return made


def build_fused(rng, folder):
    """conv + norm + relu, conv + sum + relu, an inner product to numbers."""
    m = Model(rng)
    count = 3

    def numbers(name, shape, low, high):
        n = 1
        for dim in shape:
            n *= dim
        value = [single(rng.uniform(low, high)) for _ in range(n)]
        m.arrays.append((f"arg:{name}", shape, struct.pack(f"<{n}f", *value)))
        return value, m.s.add("null", name, [], {})

    real = [single(rng.uniform(-1, 1)) for _ in range(3 * SIZE * SIZE)]
    x = m.s.add("_contrib_quantize_v2", "q", [m.s.input(1, 3, SIZE, SIZE)],
                {"out_type": "auto", "min_calib_range": -0.9,
                 "max_calib_range": 0.8})
    unit = single(single(0.9) / 127.5)
    codes = [max(-128, min(127, round(v / unit))) for v in real]
    w, w_ref = numbers("w0", (3, 3, 3, 3), -0.4, 0.4)
    parts = [numbers(f"bn_{kind}", (count,), low, high) for kind, low, high in
             (("gamma", .5, 2), ("beta", -.5, .5), ("moving_mean", -1, 1),
              ("moving_var", .2, 2))]

    def first(s, v):
        conv = s.add("Convolution", "conv0", v[:2],
                     {"kernel": (3, 3), "pad": (1, 1), "num_filter": 3,
                      "no_bias": True})
        norm = s.add("BatchNorm", "bn0", [conv, *v[2:6]],
                     {"fix_gamma": False, "eps": 1e-3})
        return s.add("Activation", "relu0", [norm], {"act_type": "relu"})

    conv0 = fused(m.s, "_sg_mkldnn_conv", "sg0",
                  [x, w_ref, *(p[1] for p in parts)], first, quantized="true",
                  with_bn="true", with_relu="true", min_calib_range=0.0,
                  max_calib_range=2.3)
    node = m.s.nodes[conv0[0]]
    node[2].extend([(x[0], 1), (x[0], 2)])
    gamma, beta, mean, var = (p[0] for p in parts)
    alpha = [single(g / (v + 1e-3) ** .5) for g, v in zip(gamma, var)]
    folded = [single(v * alpha[i // 27]) for i, v in enumerate(w)]
    bias = [single(b - single(a * c)) for a, b, c in zip(alpha, beta, mean)]
    unit0 = single(single(2.3) / 255.5)
    relu0 = [near(max(v, 0), 1 / unit0, 0, 255)
             for v in fused_convolve(codes, unit, folded, bias)]

    w1, w1_ref = numbers("w1", (3, 3, 3, 3), -0.3, 0.3)
    b1, b1_ref = numbers("b1", (count,), -0.3, 0.3)

    def second(s, v):
        conv = s.add("Convolution", "conv1", v[:3],
                     {"kernel": (3, 3), "pad": (1, 1), "num_filter": 3,
                      "no_bias": False})
        total = s.add("elemwise_add", "add1", [conv, v[3]], {})
        return s.add("Activation", "relu1", [total], {"act_type": "relu"})

    conv1 = fused(m.s, "_sg_onednn_conv", "sg1",
                  [conv0, w1_ref, b1_ref, conv0], second, quantized="True",
                  with_sum="True", with_postsum_act="True",
                  min_calib_range=0.0, max_calib_range=3.7)
    m.s.nodes[conv1[0]][2].extend([(conv0[0], k) for k in (1, 2, 1, 2)])
    unit1 = single(single(3.7) / 255.5)
    if None in relu0:
        return None, unit1
    sums = fused_convolve(relu0, unit0, w1, b1)
    relu1 = [near(max(s + r * unit0, 0), 1 / unit1, 0, 255)
             for s, r in zip(sums, relu0)]

    fw, fw_refs, fs = m.codes("fc_weight_quantize", (4, len(relu1)), 0.2)
    fs = single(single(0.2) / 127.5)

    def third(s, v):
        return s.add("FullyConnected", "fc2", v,
                     {"num_hidden": 4, "no_bias": True})

    last = fused(m.s, "_sg_mkldnn_fully_connected", "sg2",
                 [conv1, fw_refs[0]], third, quantized="True",
                 min_calib_range=-9.0, max_calib_range=9.0)
    m.s.nodes[last[0]][2].extend([(conv1[0], 1), (conv1[0], 2), *fw_refs[1:]])
    m.s.heads.append(m.s.add("_contrib_dequantize", "y",
                             [(last[0], k) for k in range(3)], {}))
    m.s.write_json(f"{folder}/net-symbol.json")
    write_params(f"{folder}/net.params", m.arrays)
    npy_write(f"{folder}/in.npy", (1, 3, SIZE, SIZE),
              struct.pack(f"<{len(real)}f", *real))
    unit2 = single(single(9.0) / 127.5)
    if None in relu1:
        return None, unit2
    return [near(sum(a * c for a, c in zip(relu1, fw[i * len(relu1):])),
                 unit1 * fs / unit2) for i in range(4)], unit2


def check_kinds(folder):
    """uint8 by its range, an average, a product, a norm, aliases."""
    for lo, kind, op, attributes in (
            (0.0, "uint8", "pooling", {"pool_type": "avg", "kernel": (2, 2),
                                       "stride": (2, 2)}),
            (-1.0, "int8", "reshape", {"shape": (0, -1)}),
            (-1.0, "int8", "transpose", {"axes": (0, 2, 3, 1)})):
        s = Symbol()
        first = s.add("_npx_quantize_v2", "q", [s.input(1, 4, 6, 6)],
                      {"out_type": "auto", "min_calib_range": lo,
                       "max_calib_range": 1.5})
        refs = [(first[0], k) for k in range(3)]
        last = s.add("_contrib_quantized_" + op, "x", refs, attributes)
        s.heads.append(s.add("_contrib_dequantize", "y",
                             [(last[0], k) for k in range(3)], {}))
        s.write_json(f"{folder}/kind.json")
        code, text = run("show", f"{folder}/kind.json", "--dump", "graph")
        check(f"{op} on {kind}", code == 0 and text.count(kind) >= 2 and
              "without --weights" in text, text)


def check_refused(folder):
    for name, op, attributes, says in (
            ("range", "_contrib_quantize_v2", {"out_type": "int8"},
             "at run time"),
            ("none", "_contrib_quantize_v2",
             {"min_calib_range": 2, "max_calib_range": 1}, "its range is none"),
            ("pair", "_contrib_quantized_pooling", {"kernel": (2, 2)},
             "reads no codes"),
            ("fused", "_sg_mkldnn_conv", {}, "has no graph inside"),
            ("below 0", "_contrib_quantize_v2",
             {"out_type": "uint8", "min_calib_range": -1,
              "max_calib_range": 1}, "uint8 has no codes for its range")):
        s = Symbol()
        s.heads.append(s.add(op, "x", [s.input(1, 3, 4, 4)], attributes))
        s.write_json(f"{folder}/bad.json")
        code, text = run("show", f"{folder}/bad.json")
        check(f"refused: {name}", code == 1 and says in text, text)


def main():
    with tempfile.TemporaryDirectory() as folder:
        for name, how, layers in (
                ("plain", build, ["identity", "conv", "act", "pool", "concat",
                                  "eltwise", "fc", "identity"]),
                ("fused", build_fused, ["identity", "conv", "conv", "eltwise",
                                        "fc", "identity"])):
            os.mkdir(f"{folder}/{name}")
            check_network(f"{folder}/{name}", how, layers)
        check_kinds(folder)
        check_refused(folder)
    print(f"mxnet_codes: {len(failed)} failed")
    return len(failed) > 0


if __name__ == "__main__":
    sys.exit(main())
