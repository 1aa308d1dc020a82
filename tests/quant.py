#!/usr/bin/env python3
"""quant.py - quantised networks of ONNX, against codes that onnxruntime gave.

First a small network that is made here, with the codes that integers and
float32 in Python give; it needs no other files. Then those of
../shared/data/quant, where there are any (see SOURCE.txt there): 18 networks as
pairs of QuantizeLinear and DequantizeLinear and as QLinear operators, a public
MobileNetV2, and operators by themselves. Each tensor whose codes are recorded is
made an output of the network, and `eval` must give the same codes; on machines
the listing must give those that the machine's rule of rounding makes.
usage: quant.py [--long] [NAME...]
"""
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import zipfile
import zlib
from fractions import Fraction
from pathlib import Path

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
DATA = Path("../shared/data/quant")
MACHINES = ("ring-npu", "stage-npu")
SHORT = ("concat3_scales", "pow2_residual_s8", "torch_fx_residual_pc")
# So many codes may differ: a float bias is rounded to the unit of the products
# (as onnxruntime does too, when it optimises), and onnxruntime's resizing of
# codes is in integers of its own.
KNOWN = {("qat_weights_in_graph_float_bias", "qdq"): 389,
         ("fpn_resize", "qlinear"): 96}


# ---- protobuf ----

def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def as_varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def fields(data):
    """(number, start, where the value begins, end) of each field."""
    at = 0
    while at < len(data):
        start = at
        key, at = varint(data, at)
        if key & 7 == 0:
            _, end = varint(data, at)
        elif key & 7 == 2:
            size, at = varint(data, at)
            end = at + size
        else:
            end = at + (8 if key & 7 == 1 else 4)
        yield key >> 3, start, at, end
        at = end


def number(field, value):
    return as_varint(field << 3) + as_varint(value)


def message(field, data):
    data = data.encode() if isinstance(data, str) else data
    return as_varint(field << 3 | 2) + as_varint(len(data)) + data


def with_outputs(model, names):
    """The model, with these values as outputs behind its own."""
    out = b""
    for field, start, at, end in fields(model):
        if field == 7:  # the graph; 12: its outputs
            more = b"".join(message(12, message(1, name)) for name in names)
            out += message(7, model[at:end] + more)
        else:
            out += model[start:end]
    return out


# ---- arrays ----

KINDS = {"|i1": ("b", 1), "|u1": ("B", 1), "<i2": ("h", 2), "<f4": ("f", 4),
         "<i4": ("i", 4), "<u2": ("H", 2)}


def read_npy(data):
    size = struct.unpack("<H", data[8:10])[0]
    header = data[10:10 + size].decode()
    kind, width = KINDS[header.split("'descr': '")[1].split("'")[0]]
    body = data[10 + size:]
    return struct.unpack(f"<{len(body) // width}{kind}", body)


def write_npy(path, shape, values):
    header = (f"{{'descr': '<f4', 'fortran_order': False, 'shape': "
              f"({', '.join(map(str, shape))},)}}").ljust(117) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) +
                     header.encode() + struct.pack(f"<{len(values)}f", *values))


# ---- running ----

def run(*command):
    return subprocess.run([AMPHORA, *map(str, command)], capture_output=True,
                          text=True, timeout=600)


def evaluate(folder, model, inputs):
    given = [word for path in inputs for word in ("--input", path)]
    done = run("eval", model, "-o", folder, *given)
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[:300])


class Counts:
    """How far codes are apart."""

    def __init__(self):
        self.tensors = self.codes = self.one = self.more = 0
        self.first = ""

    def add(self, name, ours, theirs):
        self.tensors += 1
        self.codes += len(theirs)
        if ours == theirs:
            return
        self.first = self.first or name
        if len(ours) != len(theirs):
            self.more += len(theirs)
            return
        apart = [abs(a - b) for a, b in zip(ours, theirs, strict=True)]
        self.one += sum(0 < a <= 1 for a in apart)
        self.more += sum(a > 1 for a in apart)

    def text(self):
        if not self.one and not self.more:
            return f"{self.tensors} tensors, all {self.codes:,} codes equal"
        return (f"{self.tensors} tensors, of {self.codes:,} codes {self.one} "
                f"off by one, {self.more} by more; first {self.first}")


class Report:
    def __init__(self):
        self.good = self.all = 0

    def add(self, name, what, good, text):
        self.all += 1
        self.good += bool(good)
        print(f"{'ok  ' if good else 'FAIL'} {name:34} {what:10} {text}",
              flush=True)


# ---- a network of our own ----

def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def even(x):
    return round(x)  # Python's, halves to even


class Tensor:
    """Codes of [channels][height][width] with their scale and zero."""

    def __init__(self, codes, size, scale, zero):
        self.codes, self.size, self.scale, self.zero = codes, size, scale, zero


def cut(code, low=0):
    return max(low, min(255, code))


def quantise(values, size, scale, zero):
    return Tensor([cut(even(f32(f32(v) / scale)) + zero) for v in values], size,
                  scale, zero)


def conv(x, weight, scales, bias, pad, scale, zero, relu):
    ins, h, w = x.size
    kernel = 2 * pad + 1
    out = []
    for o, taps in enumerate(weight):
        factor = f32(f32(x.scale * scales[o]) / scale)
        for y in range(h):
            for c in range(w):
                total = bias[o]
                for i in range(ins):
                    for ky in range(kernel):
                        for kx in range(kernel):
                            r, s = y + ky - pad, c + kx - pad
                            if 0 <= r < h and 0 <= s < w:
                                code = x.codes[(i * h + r) * w + s] - x.zero
                                total += code * taps[(i * kernel + ky) * kernel
                                                     + kx]
                code = even(f32(f32(total) * factor)) + zero
                out.append(cut(code, zero if relu else 0))
    return Tensor(out, (len(weight), h, w), scale, zero)


def pool(x):
    c, h, w = x.size
    out = [max(x.codes[(k * h + 2 * y + a) * w + 2 * s + b]
               for a in (0, 1) for b in (0, 1))
           for k in range(c) for y in range(h // 2) for s in range(w // 2)]
    return Tensor(out, (c, h // 2, w // 2), x.scale, x.zero)


def fma(a, b, c):
    """Of floats; exact, but for the last step."""
    return f32(float(Fraction(a) * Fraction(b) + Fraction(c)))


def add(a, b, scale, zero):
    by_a, by_b = f32(f32(a.scale) / scale), f32(f32(b.scale) / scale)
    start = f32(zero - fma(by_a, a.zero, f32(by_b * b.zero)))
    out = [cut(even(f32(f32(start + f32(by_a * p)) + f32(by_b * q))))
           for p, q in zip(a.codes, b.codes, strict=True)]
    return Tensor(out, a.size, scale, zero)


def mean(x, scale, zero):
    c, h, w = x.size
    factor = f32(x.scale / f32(scale * (h * w)))
    out = []
    for k in range(c):
        total = sum(x.codes[k * h * w:(k + 1) * h * w]) - x.zero * h * w
        out.append(cut(even(f32(total * factor)) + zero))
    return Tensor(out, (c, 1, 1), scale, zero)


FLOAT, U8, I8, I32 = 1, 2, 3, 6
PACK = {FLOAT: "f", U8: "B", I8: "b", I32: "i"}


class Model:
    """A network in both forms; scales are powers of two, so halves are
    common."""

    def __init__(self, form):
        self.form, self.nodes, self.tensors = form, b"", b""
        self.known = set()

    def constant(self, name, kind, values, dims=()):
        if name not in self.known:
            self.known.add(name)
            raw = struct.pack(f"<{len(values)}{PACK[kind]}", *values)
            self.tensors += message(
                5, b"".join(number(1, d) for d in dims) + number(2, kind) +
                message(8, name) + message(9, raw))
        return name

    def scale(self, name, t):
        return [self.constant(f"{name}_s", FLOAT, [t.scale]),
                self.constant(f"{name}_z", U8, [t.zero])]

    def node(self, op, reads, writes, domain="", **attributes):
        body = b"".join(message(1, name) for name in reads)
        body += message(2, writes) + message(3, writes) + message(4, op)
        for name, value in attributes.items():
            one = message(1, name)
            if isinstance(value, int):
                one += number(3, value) + number(20, 2)
            else:
                one += b"".join(number(8, v) for v in value) + number(20, 7)
            body += message(5, one)
        if domain:
            body += message(7, domain)
        self.nodes += message(1, body)

    def numbers(self, name, t):
        """DequantizeLinear, one for each reader."""
        out = f"{name}_dq{len(self.nodes)}"
        self.node("DequantizeLinear", [f"{name}_q", *self.scale(name, t)], out)
        return out

    def rounds(self, name, t, what):
        self.node("QuantizeLinear", [what, *self.scale(name, t)], f"{name}_q")

    def conv(self, name, t, x, source, weight, scales, bias, relu, **window):
        ins, kernel = source.size[0], window["kernel_shape"]
        outs = len(weight)
        w = self.constant(f"{name}_w", I8, sum(weight, []),
                          [outs, ins, *kernel])
        ws = self.constant(f"{name}_ws", FLOAT, scales, [outs])
        wz = self.constant(f"{name}_wz", I8, [0] * outs, [outs])
        b = self.constant(f"{name}_b", I32, bias, [outs])
        if self.form == "qlinear":
            self.node("QLinearConv",
                      [f"{x}_q", *self.scale(x, source), w, ws, wz,
                       *self.scale(name, t), b], f"{name}_q", **window)
            return
        bs = self.constant(f"{name}_bs", FLOAT,
                           [source.scale * s for s in scales], [outs])
        self.node("DequantizeLinear", [w, ws, wz], f"{name}_wf", axis=0)
        self.node("DequantizeLinear", [b, bs], f"{name}_bf", axis=0)
        self.node("Conv", [self.numbers(x, source), f"{name}_wf",
                           f"{name}_bf"], f"{name}_f", **window)
        if relu:
            self.node("Relu", [f"{name}_f"], f"{name}_r")
        self.rounds(name, t, f"{name}_r" if relu else f"{name}_f")

    def bytes(self):
        def value(name, dims):
            shape = b"".join(message(1, number(1, d)) for d in dims)
            return message(1, name) + message(2, message(
                1, number(1, FLOAT) + message(2, shape)))
        graph = self.nodes + message(2, "own") + self.tensors
        graph += message(11, value("x", (1, 3, 12, 12)))
        graph += message(12, value("y", (1, 5, 1, 1)))
        return (number(1, 7) + message(7, graph) +
                message(8, number(2, 13)) +
                message(8, message(1, "com.microsoft") + number(2, 1)))


def own_network(form, values):
    """The model's bytes, and the tensors that it should give."""
    draw = random.Random(24)
    m = Model(form)
    x = quantise(values, (3, 12, 12), 2 ** -6, 128)
    weight = [[draw.randint(-90, 90) for _ in range(27)] for _ in range(5)]
    scales = [2.0 ** -draw.choice((7, 8, 9)) for _ in range(5)]
    bias = [draw.randint(-900, 900) for _ in range(5)]
    a = conv(x, weight, scales, bias, 1, 2 ** -5, 0, True)
    p = pool(a)
    weight1 = [[draw.randint(-60, 60) for _ in range(5)] for _ in range(5)]
    scales1 = [2.0 ** -draw.choice((6, 7)) for _ in range(5)]
    bias1 = [draw.randint(-90, 90) for _ in range(5)]
    b = conv(p, weight1, scales1, bias1, 0, 2 ** -4, 77, False)
    s = add(p, b, 2 ** -3, 60)
    y = mean(s, 2 ** -4, 30)
    m.rounds("x", x, "x")
    m.conv("a", a, "x", x, weight, scales, bias, True, kernel_shape=[3, 3],
           pads=[1, 1, 1, 1])
    window = {"kernel_shape": [2, 2], "strides": [2, 2]}
    if form == "qlinear":
        m.node("MaxPool", ["a_q"], "p_q", **window)
    else:
        m.node("MaxPool", [m.numbers("a", a)], "p_f", **window)
        m.rounds("p", p, "p_f")
    m.conv("b", b, "p", p, weight1, scales1, bias1, False,
           kernel_shape=[1, 1])
    if form == "qlinear":
        m.node("QLinearAdd", ["p_q", *m.scale("p", p), "b_q",
                              *m.scale("b", b), *m.scale("s", s)], "s_q",
               "com.microsoft")
        m.node("QLinearGlobalAveragePool",
               ["s_q", *m.scale("s", s), *m.scale("y", y)], "y_q",
               "com.microsoft")
    else:
        m.node("Add", [m.numbers("p", p), m.numbers("b", b)], "s_f")
        m.rounds("s", s, "s_f")
        m.node("GlobalAveragePool", [m.numbers("s", s)], "y_f")
        m.rounds("y", y, "y_f")
    m.node("DequantizeLinear", ["y_q", *m.scale("y", y)], "y")
    return m.bytes(), {"x_q": x, "a_q": a, "p_q": p, "b_q": b, "s_q": s,
                       "y_q": y}


def verify_own(report, form, model, given):
    for machine in MACHINES:
        for rule in ("up", "even"):
            done = run("verify", model, "-t", machine, "--input", given,
                       "--set", f"machine.rounding={rule}", "--json")
            told = json.loads(done.stdout) if done.stdout else {"ok": False}
            rounds = told.get("rounding", {"differ": 0})
            # up to the machine: even, and there is nothing to tell
            good = told["ok"] and (rounds["differ"] > 0) == (rule == "up")
            report.add(f"own, {machine}", form,
                       good, f"{rule}: {rounds['differ']} codes differ from "
                       f"the network's rule, the listing's none")


def check_own(report):
    draw = random.Random(12)
    values = [draw.randint(-256, 256) / 128 for _ in range(3 * 12 * 12)]
    for form in ("qdq", "qlinear"):
        data, tensors = own_network(form, values)
        counts = Counts()
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            given = folder / "x.npy"
            write_npy(given, (1, 3, 12, 12), values)
            (folder / "own.onnx").write_bytes(data)
            (folder / "all.onnx").write_bytes(with_outputs(data, tensors))
            evaluate(folder, folder / "all.onnx", [given])
            for name, t in tensors.items():
                counts.add(name,
                           read_npy((folder / f"{name}.npy").read_bytes()),
                           tuple(t.codes))
            report.add("own", form, not counts.one + counts.more,
                       counts.text())
            verify_own(report, form, folder / "own.onnx", given)


# ---- recorded codes ----

def compare_run(counts, model, npz, inputs, codes):
    """`codes`: tensor -> its entry of the archive."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        changed = folder / "model.onnx"
        changed.write_bytes(with_outputs(model.read_bytes(), codes))
        paths = []
        for k, entry in enumerate(inputs):
            paths.append(folder / f"in{k}.npy")
            paths[-1].write_bytes(npz.read(entry))
        evaluate(folder, changed, paths)
        for name, entry in codes.items():
            ours = read_npy((folder / f"{name}.npy").read_bytes())
            counts.add(name, ours, read_npy(npz.read(entry)))


def recorded(form, entries, k):
    """Of input k: the codes of the integer run, of the literal one where there
    is none, and what else the runtimes gave of the file itself."""
    last = {"y": e for e in (f"{form}.{k}.y.npy", f"torch{k}.y.npy")
            if e in entries}
    for run_of in ("qlinear", "qdq"):
        begin = f"{run_of}.{k}."
        codes = {e[len(begin):-4]: e for e in entries
                 if e.startswith(begin) and e.endswith("_q.npy")}
        if form == "qdq":  # bounds are no tensors of their own
            codes = {n: e for n, e in codes.items()
                     if not n.endswith("_pre_q")}
        if codes:
            return codes, last if run_of == form else {}
    return {}, last


def check_small(report, names, whole):
    for folder in sorted((DATA / "small").iterdir()):
        if names and folder.name not in names:
            continue
        for form in ("qdq", "qlinear"):
            model = folder / f"{form}.onnx"
            if not model.exists():
                continue
            counts = Counts()
            with zipfile.ZipFile(folder / "values.npz") as npz:
                entries = npz.namelist()
                if folder.name == "fpn_resize" and form == "qdq":
                    entries = [e for e in entries
                               if not e.startswith("qlinear")]
                for k in range(3):
                    inputs = [e for e in entries if e.startswith(f"in{k}.")]
                    codes, last = recorded(form, entries, k)
                    compare_run(counts, model, npz, inputs, codes | last)
            good = counts.one + counts.more <= KNOWN.get((folder.name, form), 0)
            report.add(folder.name, form, good, counts.text())
            if whole or folder.name in SHORT:
                check_machines(report, folder.name, form, model)


def check_machines(report, name, form, model, machines=MACHINES):
    for machine in machines:
        done = run("verify", model, "-t", machine, "--json")
        if not done.stdout:
            report.add(name, form, False, done.stderr[:200])
            continue
        told = json.loads(done.stdout)
        report.add(f"{name}, {machine}", form,
                   told["ok"] and told["max_code_error"] == 0,
                   f"{told['quantised_layers_compared']} layers and tiles on "
                   f"codes, all equal")


def check_operators(report):
    for model in sorted((DATA / "integer").glob("*.onnx")):
        counts = Counts()
        with zipfile.ZipFile(model.with_suffix(".npz")) as npz:
            for k in range(2):
                begin = f"out{k}."
                codes = {e[len(begin):-4]: e for e in npz.namelist()
                         if e.startswith(begin)}
                if model.stem.startswith("block"):  # sums of floats
                    codes = {}
                    with tempfile.TemporaryDirectory() as folder:
                        folder = Path(folder)
                        paths = {}
                        for e in ("in0.x.npy", "out0.y.npy"):
                            paths[e] = folder / e
                            paths[e].write_bytes(npz.read(e))
                        done = run("eval", model, "--input",
                                   paths["in0.x.npy"], "--expect",
                                   paths["out0.y.npy"])
                        counts.add("y", (done.returncode,), (0,))
                    break
                if codes:
                    compare_run(counts, model, npz, [f"in{k}.x.npy"], codes)
        report.add(model.stem, "operators", not counts.one + counts.more,
                   counts.text())


def check_mobilenet(report, whole):
    folder = DATA / "mobilenet_v2_quant"
    model = folder / "model.onnx"
    counts = Counts()
    crcs = json.loads((folder / "codes_crc.json").read_text())
    names = [key[2:] for key in crcs if key.startswith("0.")]
    with zipfile.ZipFile(folder / "values.npz") as npz, \
            tempfile.TemporaryDirectory() as where:
        where = Path(where)
        (where / "all.onnx").write_bytes(
            with_outputs(model.read_bytes(), names))
        for k in range(3 if whole else 1):
            (where / "in.npy").write_bytes(npz.read(f"in{k}.input.npy"))
            evaluate(where, where / "all.onnx", [where / "in.npy"])
            for name in names:
                data = (where / f"{name}.npy").read_bytes()
                body = data[10 + struct.unpack("<H", data[8:10])[0]:]
                counts.tensors += 1
                counts.codes += len(body)
                if zlib.crc32(body) != crcs[f"{k}.{name}"][0]:
                    counts.more += 1
                    counts.first = counts.first or name
    report.add("mobilenet_v2_quant", "qlinear", not counts.more,
               counts.text())
    with tempfile.TemporaryDirectory() as where:
        done = run("compile", model, "-t", "ring-npu", "--json", "-o", where)
    told = json.loads(done.stdout or "{}")
    report.add("mobilenet_v2_quant, share of ring-npu", "qlinear",
               told.get("host_products") == 0, "all products on engines")
    if whole:
        check_machines(report, "mobilenet_v2_quant", "qlinear", model)


def main():
    names = [a for a in sys.argv[1:] if not a.startswith("-")]
    whole = "--long" in sys.argv
    report = Report()
    if not names:
        check_own(report)
    if DATA.exists():
        check_small(report, names, whole)
        if not names:
            check_operators(report)
            check_mobilenet(report, whole)
    else:
        print(f"skipped: there is no {DATA}")
    print(f"{report.good} of {report.all}")
    return report.good != report.all


if __name__ == "__main__":
    sys.exit(main())
