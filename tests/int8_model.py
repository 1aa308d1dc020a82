"""int8_model.py - an integer model of quantised TensorFlow Lite networks.

In: a .tflite file and codes of its inputs. Out: the codes of every tensor, by
the rules of docs/quantisation.md, written down a second time, from the file's
bytes on: channels last, Python's integers, no amphora. Layers that the rules
leave to real numbers are computed in doubles and rounded to float32 where they
say so. Needs nothing but Python.
"""
import math
import struct
from operator import mul

LETTER = {0: "f", 2: "i", 3: "B", 4: "q", 6: "?", 7: "h", 9: "b"}
LIMITS = {"b": (-128, 127), "B": (0, 255), "h": (-32768, 32767)}


# ---- the file ----

class Flat:
    """Tables of a FlatBuffer by the numbers of their fields."""

    def __init__(self, data):
        self.data = data

    def number(self, letter, at):
        return struct.unpack_from("<" + letter, self.data, at)[0]

    def field(self, table, i):
        head = table - self.number("i", table)
        if 4 + 2 * i >= self.number("H", head):
            return 0
        at = self.number("H", head + 4 + 2 * i)
        return table + at if at else 0

    def scalar(self, table, i, letter, missing=0):
        at = self.field(table, i) if table else 0
        return self.number(letter, at) if at else missing

    def refer(self, table, i):
        at = self.field(table, i) if table else 0
        return at + self.number("I", at) if at else 0

    def numbers(self, table, i, letter):
        at = self.refer(table, i)
        if not at:
            return []
        n = self.number("I", at)
        return list(struct.unpack_from(f"<{n}{letter}", self.data, at + 4))

    def tables(self, table, i):
        at = self.refer(table, i)
        places = range(at + 4, at + 4 + 4 * self.number("I", at), 4) \
            if at else ()
        return [place + self.number("I", place) for place in places]


class Tensor:
    def __init__(self, flat, table, buffers):
        self.shape = flat.numbers(table, 0, "i")
        self.letter = LETTER.get(flat.scalar(table, 1, "b"), "")
        name = flat.numbers(table, 3, "c")
        self.name = b"".join(name).decode()
        quant = flat.refer(table, 4)
        self.scales = flat.numbers(quant, 2, "f") if quant else []
        self.zeros = flat.numbers(quant, 3, "q") if quant else []
        # The place of an axis that the tensor does not have, else 0.
        axis = flat.scalar(quant, 6, "i")
        self.wrong_axis = flat.field(quant, 6) \
            if axis >= len(self.shape) > 0 else 0
        self.real = self.letter not in LIMITS or not self.scales
        data = bytes(flat.numbers(buffers[flat.scalar(table, 2, "I")], 0, "B"))
        size = struct.calcsize(self.letter) if self.letter else 1
        self.data = list(struct.unpack(
            f"<{len(data) // size}{self.letter}", data)) if data else None

    @property
    def scale(self):
        return self.scales[0]

    @property
    def zero(self):
        return self.zeros[0] if self.zeros else 0


class Operator:
    def __init__(self, flat, table, codes):
        self.code = codes[flat.scalar(table, 0, "I")]
        self.inputs = flat.numbers(table, 1, "i")
        self.outputs = flat.numbers(table, 2, "i")
        self.flat, self.options = flat, flat.refer(table, 4)

    def option(self, i, letter, missing=0):
        return self.flat.scalar(self.options, i, letter, missing)


class File:
    def __init__(self, path):
        with open(path, "rb") as file:
            flat = Flat(file.read())
        root = flat.number("I", 0)
        graph = flat.tables(root, 2)[0]
        codes = [max(flat.scalar(code, 0, "b"), flat.scalar(code, 3, "i"))
                 for code in flat.tables(root, 1)]
        buffers = flat.tables(root, 4)
        self.tensors = [Tensor(flat, t, buffers)
                        for t in flat.tables(graph, 0)]
        self.inputs = flat.numbers(graph, 1, "i")
        self.outputs = flat.numbers(graph, 2, "i")
        self.outputs_at = flat.refer(graph, 2)
        self.operators = [Operator(flat, op, codes)
                          for op in flat.tables(graph, 3)]
        self.data = flat.data

    def write_with_output(self, path, tensor):
        """The same network with one tensor as its only output. Biases of
        person_detect have scales along an axis 3, which runtimes refuse."""
        data = bytearray(self.data)
        for place in (t.wrong_axis for t in self.tensors if t.wrong_axis):
            struct.pack_into("<i", data, place, 0)
        struct.pack_into("<Ii", data, self.outputs_at, 1, tensor)
        with open(path, "wb") as file:
            file.write(data)


# ---- rounding ----

def f32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def scaled(value, real):
    """value * real to the nearest whole number, halves up, with `real` as a
    factor of 31 bits."""
    fraction, exponent = math.frexp(real)
    factor = math.floor(fraction * 2 ** 31 + 0.5)
    if factor == 2 ** 31:
        factor, exponent = 2 ** 30, exponent + 1
    shift = 31 - exponent
    return (value * factor + (1 << shift - 1)) >> shift


def mean(total, n):
    """Halves away from 0."""
    size = (abs(total) + n // 2) // n
    return size if total >= 0 else -size


def to_code(tensor, real):
    low, high = LIMITS[tensor.letter]
    code = math.floor(real / tensor.scale + 0.5) + tensor.zero
    return max(low, min(high, code))


def to_real(tensor, code):
    return f32(tensor.scale * (code - tensor.zero))


def bounds(tensor, act):
    """Codes of results: act is 0, or 1 relu, 2 relu_n1_to_1, 3 relu6."""
    low, high = LIMITS[tensor.letter]
    real = {0: (None, None), 1: (0, None), 2: (-1, 1), 3: (0, 6)}[act]
    return (low if real[0] is None else to_code(tensor, real[0]),
            high if real[1] is None else to_code(tensor, real[1]))


def finish(tensor, act, values):
    low, high = bounds(tensor, act)
    return [max(low, min(high, v + tensor.zero)) for v in values]


# ---- windows ----

def axis(size, kernel, step, dilation, valid):
    """(windows, padding before them)."""
    reach = (kernel - 1) * dilation + 1
    if valid:
        return (size - reach) // step + 1, 0
    n = -(-size // step)
    return n, max((n - 1) * step + reach - size, 0) // 2


def windows(shape, kernel, step, dilation, valid):
    """For each window, in order, where its taps are: (y, x) or None."""
    h, w = shape[1:3]
    rows, top = axis(h, kernel[0], step[0], dilation[0], valid)
    columns, left = axis(w, kernel[1], step[1], dilation[1], valid)
    for i in range(rows):
        for j in range(columns):
            places = []
            for ky in range(kernel[0]):
                for kx in range(kernel[1]):
                    y = i * step[0] - top + ky * dilation[0]
                    x = j * step[1] - left + kx * dilation[1]
                    inside = 0 <= y < h and 0 <= x < w
                    places.append((y, x) if inside else None)
            yield places


class Layer:
    """An operator with its tensors, and values of those that it reads."""

    def __init__(self, file, op, values):
        self.op = op
        self.ins = [file.tensors[i] if i >= 0 else None for i in op.inputs]
        self.values = [values.get(i) for i in op.inputs]
        self.out = file.tensors[op.outputs[0]]

    def has(self, i):
        return i < len(self.ins) and self.ins[i] is not None

    def whole(self, i):
        return [v - self.ins[i].zero for v in self.values[i]]

    def reals(self, i):
        if self.ins[i].real:
            return self.values[i]
        return [to_real(self.ins[i], v) for v in self.values[i]]

    def round(self, reals):
        if self.out.real:
            return reals
        return [to_code(self.out, v) for v in reals]

    def factor(self, channel):
        scales = self.ins[1].scales
        return self.ins[0].scale * scales[channel if len(scales) > 1 else 0] \
            / self.out.scale


# ---- layers ----

def conv(layer, depthwise):
    op, (x, w) = layer.op, layer.ins[:2]
    act, first = (4, 5) if depthwise else (3, 4)
    step = [op.option(2, "i", 1), op.option(1, "i", 1)]
    dilation = [op.option(first + 1, "i", 1), op.option(first, "i", 1)]
    codes, weights = layer.whole(0), layer.whole(1)
    bias = layer.values[2] if layer.has(2) else None
    taps, channels = w.shape[1] * w.shape[2], x.shape[3]
    n = w.shape[3] if depthwise else w.shape[0]
    rows = [weights[o::n] if depthwise else
            weights[o * taps * channels:(o + 1) * taps * channels]
            for o in range(n)]
    each = n // channels if depthwise else 0
    sums = []
    for places in windows(x.shape, w.shape[1:3], step, dilation,
                          op.option(0, "b") == 1):
        seen = []
        for place in places:
            at = place and (place[0] * x.shape[2] + place[1]) * channels
            seen += [0] * channels if place is None \
                else codes[at:at + channels]
        for o in range(n):
            part = seen[o // each::channels] if depthwise else seen
            total = sum(map(mul, part, rows[o])) + (bias[o] if bias else 0)
            sums.append(scaled(total, layer.factor(o)))
    return finish(layer.out, op.option(act, "b"), sums)


def transpose_conv(layer):
    """Reads shape, weights, image, bias."""
    layer.ins = [layer.ins[i] for i in (2, 1, 3) if layer.has(i)]
    layer.values = [layer.values[i] for i in (2, 1, 3)
                    if i < len(layer.values)]
    op, (x, w) = layer.op, layer.ins[:2]
    _, h, wide, n = layer.out.shape
    kh, kw, channels = w.shape[1:4]
    step = [op.option(2, "i", 1), op.option(1, "i", 1)]
    valid = op.option(0, "b") == 1
    _, top = axis(h, kh, step[0], 1, valid)
    _, left = axis(wide, kw, step[1], 1, valid)
    codes, weights = layer.whole(0), layer.whole(1)
    bias = layer.values[2] if layer.has(2) else [0] * n
    sums = [b for _ in range(h * wide) for b in bias]
    for y in range(x.shape[1]):
        for col in range(x.shape[2]):
            at = (y * x.shape[2] + col) * channels
            seen = codes[at:at + channels]
            for ky in range(kh):
                for kx in range(kw):
                    to = (y * step[0] - top + ky, col * step[1] - left + kx)
                    if not (0 <= to[0] < h and 0 <= to[1] < wide):
                        continue
                    for o in range(n):
                        k = ((o * kh + ky) * kw + kx) * channels
                        sums[(to[0] * wide + to[1]) * n + o] += sum(
                            map(mul, seen, weights[k:k + channels]))
    return finish(layer.out, 0, [scaled(total, layer.factor(i % n))
                                 for i, total in enumerate(sums)])


def product(layer):
    n, size = layer.ins[1].shape
    codes, weights = layer.whole(0), layer.whole(1)
    bias = layer.values[2] if layer.has(2) else [0] * n
    sums = []
    for row in range(len(codes) // size):
        seen = codes[row * size:(row + 1) * size]
        for o in range(n):
            total = sum(map(mul, seen, weights[o * size:(o + 1) * size]))
            sums.append(scaled(total + bias[o], layer.factor(o)))
    return finish(layer.out, layer.op.option(0, "b"), sums)


def pool(layer, average):
    op, x = layer.op, layer.ins[0]
    step = [op.option(2, "i", 1), op.option(1, "i", 1)]
    kernel = [op.option(4, "i", 1), op.option(3, "i", 1)]
    results, channels = [], x.shape[3]
    for places in windows(x.shape, kernel, step, (1, 1),
                          op.option(0, "b") == 1):
        at = [(y * x.shape[2] + col) * channels
              for y, col in (p for p in places if p)]
        for c in range(channels):
            seen = [layer.values[0][a + c] for a in at]
            results.append(mean(sum(seen), len(seen)) if average
                           else max(seen))
    low, high = bounds(layer.out, op.option(5, "b"))
    return [max(low, min(high, v)) for v in results]


def means(layer):
    x, out = layer.ins[0], layer.out
    gone = {a % len(x.shape) for a in layer.values[1]}
    sums = {}
    for i, code in enumerate(layer.whole(0)):
        key = []
        for a in reversed(range(len(x.shape))):
            key.append(0 if a in gone else i % x.shape[a])
            i //= x.shape[a]
        sums.setdefault(tuple(reversed(key)), []).append(code)
    same = (x.scale, x.zero) == (out.scale, out.zero)
    return finish(out, 0, [
        mean(sum(v) if same else scaled(sum(v), x.scale / out.scale), len(v))
        for _, v in sorted(sums.items())])


def spread(shape, values, to):
    """Broadcast, by axes from the right."""
    shape = [1] * (len(to) - len(shape)) + shape
    out = []
    for i in range(math.prod(to)):
        at, stride = 0, 1
        for size, wide in zip(reversed(shape), reversed(to)):
            at += (i % wide if size > 1 else 0) * stride
            stride *= size
            i //= wide
        out.append(values[at])
    return out


def two(layer, kind):
    shape, out = layer.out.shape, layer.out
    a, b = (spread(layer.ins[i].shape, layer.whole(i), shape) for i in (0, 1))
    first, second = layer.ins[0].scale, layer.ins[1].scale
    act = layer.op.option(0, "b")
    if kind == "mul":
        return finish(out, act, [
            scaled(x * y, first * second / out.scale) for x, y in zip(a, b)])
    unit, left = 2 * max(first, second), 20
    sign = -1 if kind == "sub" else 1
    return finish(out, act, [
        scaled(scaled(x << left, first / unit) +
               sign * scaled(y << left, second / unit),
               unit / (2 ** left * out.scale)) for x, y in zip(a, b)])


def rescaled(layer, act=0):
    x, out = layer.ins[0], layer.out
    if x.real or out.real:
        return layer.round(layer.reals(0))
    codes = layer.whole(0)
    if (x.letter, x.scale, x.zero) != (out.letter, out.scale, out.zero):
        codes = [scaled(v, x.scale / out.scale) for v in codes]
    return finish(out, act, codes)


def softmax(layer):
    n, results = layer.out.shape[-1], []
    reals = layer.reals(0)
    for at in range(0, len(reals), n):
        line = reals[at:at + n]
        powers = [math.exp(v - max(line)) for v in line]
        total = 0.0
        for power in powers:
            total += power
        results += [f32(power / total) for power in powers]
    return layer.round(results)


def function(layer, value):
    return layer.round([f32(value(v)) for v in layer.reals(0)])


def prelu(layer):
    slope = spread(layer.ins[1].shape, layer.reals(1), layer.out.shape)
    return layer.round([v if v >= 0 else f32(v * s)
                        for v, s in zip(layer.reals(0), slope)])


# ---- codes that move ----

def picked(layer, place):
    """Element of the output at an index, from place(index) of the input."""
    shape, source, out = layer.out.shape, layer.ins[0].shape, []
    for i in range(math.prod(shape)):
        index = []
        for size in reversed(shape):
            index.append(i % size)
            i //= size
        at = 0
        for size, k in zip(source, place(index[::-1])):
            at = at * size + k
        out.append(layer.values[0][at])
    return out


def transpose(layer):
    perm = layer.values[1]
    inverse = [perm.index(a) for a in range(len(perm))]
    return picked(layer, lambda index: [index[a] for a in inverse])


def strided_slice(layer):
    begin, step = layer.values[1], layer.values[3]
    return picked(layer, lambda index: [
        b + k * s for b, k, s in zip(begin, index, step)])


def nearest(layer):
    to, source = layer.out.shape, layer.ins[0].shape
    return picked(layer, lambda index: [
        index[0], index[1] * source[1] // to[1],
        index[2] * source[2] // to[2], index[3]])


def space_to_depth(layer):
    block, channels = layer.op.option(0, "i"), layer.ins[0].shape[3]
    return picked(layer, lambda index: [
        index[0], index[1] * block + index[3] // channels // block,
        index[2] * block + index[3] // channels % block,
        index[3] % channels])


def pad(layer):
    source, amount, out = layer.ins[0].shape, layer.values[1], []
    for y in range(layer.out.shape[1]):
        for x in range(layer.out.shape[2]):
            place = (y - amount[2], x - amount[4])
            inside = 0 <= place[0] < source[1] and 0 <= place[1] < source[2]
            at = (place[0] * source[2] + place[1]) * source[3]
            out += layer.values[0][at:at + source[3]] if inside \
                else [layer.ins[0].zero] * source[3]
    return out


def concat(layer):
    """Along the last axis, in one quantisation."""
    parts = [(t.shape[-1], v) for t, v in zip(layer.ins, layer.values)]
    n = len(parts[0][1]) // parts[0][0]
    return [code for i in range(n) for size, v in parts
            for code in v[i * size:(i + 1) * size]]


def each(layer, choose):
    return [choose(pair) for pair in zip(*layer.values)]


RULES = {
    0: lambda layer: two(layer, "add"),
    1: lambda layer: pool(layer, True),
    2: concat,
    3: lambda layer: conv(layer, False),
    4: lambda layer: conv(layer, True),
    6: rescaled,
    9: product,
    14: lambda layer: function(layer, lambda x: 1 / (1 + math.exp(-x))),
    17: lambda layer: pool(layer, False),
    18: lambda layer: two(layer, "mul"),
    19: lambda layer: rescaled(layer, 1),
    21: lambda layer: rescaled(layer, 3),
    22: rescaled,
    25: softmax,
    26: space_to_depth,
    28: lambda layer: function(layer, math.tanh),
    34: pad,
    39: transpose,
    40: means,
    41: lambda layer: two(layer, "sub"),
    45: strided_slice,
    54: prelu,
    55: lambda layer: each(layer, max),
    57: lambda layer: each(layer, min),
    67: transpose_conv,
    97: nearest,
    98: lambda layer: function(layer, lambda x: x if x > 0 else
                               layer.op.option(0, "f") * x),
    114: rescaled,
    117: lambda layer: function(layer, lambda x: x * max(
        0, min(1, x / 6 + 0.5))),
}


def constants(file):
    return {i: t.data for i, t in enumerate(file.tensors)
            if t.data is not None}


def step(file, op, values):
    """Codes of the operator's output; values: of what it reads."""
    return RULES[op.code](Layer(file, op, values))


def run(file, inputs):
    """Values of every tensor, by its number."""
    values = constants(file)
    values.update(zip(file.inputs, inputs))
    for op in file.operators:
        values[op.outputs[0]] = step(file, op, values)
    return values
