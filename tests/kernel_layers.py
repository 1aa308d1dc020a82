"""kernel_layers.py - single layers of random shapes, for tests/kernels.py.

A layer is a node of a graph in JSON (docs/graph-json.md) with inputs of its
own. Each function of FLOATS and CODES draws one of its kind: attributes and
shapes that fit together, small enough that loops are unrolled, odd enough that
vectors have a rest. A function may give None: then these numbers have no
result.
"""
import struct

# Of the first five, results are numbers.
KINDS = ("add", "mul", "max", "min", "sub", "div", "pow", "prelu", "mod",
         "fmod", "equal", "less", "less_equal", "greater", "greater_equal",
         "and", "or", "xor")
ACTS = ("relu", "relu6", "leaky", "prelu", "sigmoid", "tanh", "clip", "elu",
        "selu", "celu", "softplus", "softsign", "hard_sigmoid", "hard_swish",
        "silu", "gelu", "gelu_tanh", "mish", "threshold", "shrink", "abs",
        "neg", "exp", "log", "sqrt", "reciprocal", "erf", "sin", "cos", "tan",
        "asin", "acos", "atan", "sinh", "cosh", "asinh", "atanh", "floor",
        "ceil", "round", "trunc", "sign", "not", "to_f16", "to_bf16")
FUSED = (None, None, "relu", "relu6", "leaky", "prelu", "sigmoid", "tanh",
         "clip")
BOUNDS = (None, "relu", "relu6")
REDUCTIONS = ("mean", "sum", "max", "min", "prod", "l1", "l2", "squares",
              "log_sum_exp", "argmax", "argmax_last", "argmin", "argmin_last")
WORK = 150_000  # products of a layer at most


class Layer:
    """op, attributes, shapes of the inputs and of the result; constants by
    role: (kind, shape, values); quants: of inputs and result, if codes."""

    def __init__(self, op, attributes, inputs, shape, **more):
        self.op, self.attributes = op, attributes
        self.inputs, self.shape = inputs, shape
        self.constants = more.get("constants", {})
        self.quants = more.get("quants")
        self.no_bias = more.get("no_bias", False)


def product(numbers):
    out = 1
    for n in numbers:
        out *= n
    return out


def channels(r):
    return r.choice((1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 24, 32, 33))


def volume(r, most=20):
    most = min(most, r.choice((4, 8, 20)))
    return [r.choice((1, 1, 1, 2)), channels(r), r.randint(1, most),
            r.randint(1, most)]


def pair(r, *weights):
    """Both axes from the list, where what comes often stands often."""
    return [r.choice(weights), r.choice(weights)]


def activation(r, names):
    name = r.choice(names)
    if not name:
        return {}
    return {"act": name, "alpha": [0.3], "hi": [0.6],
            "lo": [0.1 if name in ("shrink", "hard_sigmoid") else -0.4]}


# ---- windows ----

def window(r):
    kernel = pair(r, 1, 2, 3, 3, 4, 5)
    return {"kernel": kernel, "stride": pair(r, 1, 1, 2, 3),
            "dilation": pair(r, 1, 1, 1, 2, 3),
            "pad": [r.randint(0, k) for k in kernel],
            "pad_end": [r.randint(0, k) for k in kernel]}


def narrow(r):
    """What leaves loops that can be unrolled, and no branch in them: a window
    without padding on few and short rows."""
    shape = [1, r.choice((1, 2, 3, 4, 8)), r.randint(2, 9), r.randint(2, 9)]
    return shape, dict(window(r), dilation=[1, 1], pad=[0, 0], pad_end=[0, 0])


def grouped(r, attributes, c):
    """Groups and output channels: one group, whole ones, depthwise."""
    groups = r.choice([1, 1, c, c, *(g for g in range(2, c) if c % g == 0)])
    each = r.randint(1, 3) if groups == c else r.choice((1, 2, 7, 8, 16, 20))
    if groups == c and r.random() < 0.6:
        each = 1
    return dict(attributes, groups=[groups], out_c=[groups * each])


def conv_size(a, shape):
    return [(shape[2 + i] + a["pad"][i] + a["pad_end"][i] -
             a["dilation"][i] * (a["kernel"][i] - 1) - 1) // a["stride"][i] + 1
            for i in (0, 1)]


def deconv_size(a, shape):
    return [a["stride"][i] * (shape[2 + i] - 1) + 1 - a["pad"][i] -
            a["pad_end"][i] + a["dilation"][i] * (a["kernel"][i] - 1)
            for i in (0, 1)]


def convolution(r, op, acts):
    shape, a = narrow(r)
    if r.random() < 0.3:
        shape, a = volume(r, 12 if op == "deconv" else 20), window(r)
    a = grouped(r, a, shape[1])
    size = (deconv_size if op == "deconv" else conv_size)(a, shape)
    if min(size) < 1:
        return None
    out = [shape[0], *a["out_c"], *size]
    made = shape if op == "deconv" else out
    work = product(made) * product(a["kernel"]) * \
        (out if op == "deconv" else shape)[1] // a["groups"][0]
    if work > WORK:
        return None
    a.update(activation(r, acts))
    return Layer(op, a, [shape], out, no_bias=r.random() < 0.3)


def conv(r):
    return convolution(r, "conv", FUSED)


def deconv(r):
    return convolution(r, "deconv", FUSED)


def pool_window(r):
    kernel = pair(r, 1, 2, 2, 3, 3, 4, 5)
    return {"kind": r.choice(("max", "avg")), "kernel": kernel,
            "stride": pair(r, 1, 2, 2, 3), "ceil": [r.randint(0, 1)],
            "count_pad": [r.randint(0, 1)],
            "pad": [r.randrange(k) for k in kernel],
            "pad_end": [r.randrange(k) for k in kernel]}


def pool_size(a, shape):
    size = []
    for i in (0, 1):
        padded = shape[2 + i] + a["pad"][i] + a["pad_end"][i]
        stride = a["stride"][i]
        reach = padded + (stride - 1 if a["ceil"][0] else 0)
        n = (reach - a["kernel"][i]) // stride + 1
        if a["ceil"][0] and (n - 1) * stride >= shape[2 + i] + a["pad"][i]:
            n -= 1
        size.append(n)
    return size


def pool(r):
    shape = volume(r)
    a = pool_window(r)
    if r.random() < 0.1:
        a.update({"global": [1]})
        return Layer("pool", a, [shape], shape[:2] + [1, 1])
    size = pool_size(a, shape)
    if min(size) < 1:
        return None
    return Layer("pool", a, [shape], shape[:2] + size)


def fc(r):
    shape = [r.choice((1, 1, 2, 3)), r.randint(1, 300)]
    if r.random() < 0.3:
        shape = volume(r, 5)
    out = r.randint(1, 40)
    return Layer("fc", dict(activation(r, FUSED), out=[out]), [shape],
                 [shape[0], out])


# ---- element by element ----

def act(r):
    shape = volume(r)
    return Layer("act", activation(r, ACTS), [shape], shape)


def bn(r):
    shape = volume(r)
    return Layer("bn", {"eps": [0.001]}, [shape], shape)


def scale(r):
    shape = volume(r)
    return Layer("scale", activation(r, FUSED), [shape], shape)


def identity(r):
    shape = volume(r)
    return Layer("identity", {}, [shape], shape)


def eltwise(r):
    shape, kind = volume(r), r.choice(KINDS + ("add", "mul", "max") * 3)
    inputs = [list(shape) for _ in range(r.choice((2, 2, 2, 3)))]
    if r.random() < 0.4:
        for axis in range(4):
            if r.random() < 0.4:
                inputs[1][axis] = 1
    a = {"kind": kind}
    if kind == "add" and r.random() < 0.3:
        a["coeff"] = [r.choice((1, -2, 0.5)) for _ in inputs]
    if kind in KINDS[:5]:
        a.update(activation(r, FUSED[:4]))
    return Layer("eltwise", a, inputs, shape)


# ---- moves ----

def concat(r):
    shape, axis = volume(r, 9), r.randint(1, 3)
    parts = [r.randint(1, 17 if axis == 1 else 9)
             for _ in range(r.randint(2, 4))]
    inputs = [shape[:axis] + [n] + shape[axis + 1:] for n in parts]
    return Layer("concat", {"axis": [axis]}, inputs,
                 shape[:axis] + [sum(parts)] + shape[axis + 1:])


def part(r):
    shape, axis = volume(r), r.randint(1, 3)
    begin = r.randrange(shape[axis])
    end = r.randint(begin + 1, shape[axis])
    return Layer("slice", {"axis": [axis], "begin": [begin], "end": [end]},
                 [shape], shape[:axis] + [end - begin] + shape[axis + 1:])


def pad(r):
    shape = volume(r, 12)
    before, behind = pair(r, 0, 1, 2, 3), pair(r, 0, 1, 2, 5)
    return Layer("pad", {"before": before, "behind": behind, "value": [-0.5]},
                 [shape], shape[:2] + [shape[2 + i] + before[i] + behind[i]
                                       for i in (0, 1)])


def upsample(r):
    shape, factor = volume(r, 9), pair(r, 1, 2, 2, 3, 4)
    return Layer("upsample", {"factor": factor}, [shape],
                 shape[:2] + [shape[2] * factor[0], shape[3] * factor[1]])


def transpose(r):
    shape = volume(r, 9)[-r.choice((3, 4, 4)):]
    perm = r.sample(range(len(shape)), len(shape))
    return Layer("transpose", {"perm": perm}, [shape],
                 [shape[i] for i in perm])


def reshape(r):
    shape = volume(r, 9)
    out = r.choice(([shape[0], product(shape[1:])],
                    [shape[0] * shape[1], shape[2] * shape[3]],
                    [shape[0], shape[2], shape[1], shape[3]]))
    return Layer("reshape", {"shape": out}, [shape], out)


def gather(r):
    """Also what linear interpolation becomes."""
    shape, axis = volume(r, 9), r.randint(1, 3)
    n, taps = r.randint(1, 12), r.choice((1, 1, 2, 4))
    index = [r.randrange(shape[axis]) for _ in range(n * taps)]
    by = [1.0 if taps == 1 else r.uniform(0, 1) for _ in index]
    return Layer("gather", {"axis": [axis], "n": [n], "taps": [taps]},
                 [shape], shape[:axis] + [n] + shape[axis + 1:],
                 constants={"index": ("f32", [n, taps], index),
                            "values": ("f32", [n, taps], by)})


# ---- sums ----

def matmul(r):
    m, k, n = r.randint(1, 20), r.randint(1, 20), r.randint(1, 20)
    outer = [r.randint(1, 4) for _ in range(r.randint(0, 2))]
    one = [1 if r.random() < 0.2 else d for d in outer]
    return Layer("matmul", activation(r, FUSED[:5]),
                 [outer + [m, k], one + [k, n]], outer + [m, n])


def reduce(r):
    shape, axes = volume(r, 9), r.randint(1, 15)
    return Layer("reduce", {"kind": r.choice(REDUCTIONS), "axes": [axes]},
                 [shape], [1 if axes >> i & 1 else shape[i] for i in range(4)])


def norm(r):
    shape = volume(r, 12)
    return Layer("norm", {"axis": [r.randint(1, 3)], "eps": [0.001]},
                 [shape], shape)


def softmax(r):
    shape = volume(r, 12)[:r.choice((2, 4, 4))]
    return Layer("softmax", {"axis": [r.randrange(1, len(shape))]}, [shape],
                 shape)


def lrn(r):
    shape = volume(r, 12)
    return Layer("lrn", {"within_channel": [r.randint(0, 1)],
                         "size": [r.choice((1, 3, 5, 7))], "alpha": [0.5],
                         "beta": [r.choice((0.5, 0.6, 0.75, 1))], "k": [1]},
                 [shape], shape)


FLOATS = (conv,) * 8 + (deconv,) * 12 + (pool,) * 4 + (
    fc, act, act, bn, scale, identity, eltwise, eltwise, concat, part, pad,
    upsample, transpose, reshape, gather, matmul, matmul, reduce, reduce, norm,
    softmax, lrn)


def plain(op, shape, out_c, kernel, stride, behind=0):
    a = {"kernel": kernel, "stride": stride, "dilation": [1, 1], "pad": [0, 0],
         "pad_end": [behind, behind], "groups": [1], "out_c": [out_c]}
    size = (deconv_size if op == "deconv" else conv_size)(a, shape)
    return Layer(op, a, [shape], [shape[0], out_c, *size])


# What was wrong once: by LLVM's vectors, then by the judge of plans.
FOUND = (plain("deconv", [1, 1, 5, 5], 1, [4, 4], [1, 1]),
         plain("deconv", [1, 3, 4, 2], 7, [4, 4], [3, 3]),
         plain("deconv", [1, 3, 8, 4], 7, [1, 5], [1, 1]),
         plain("deconv", [1, 16, 5, 5], 16, [4, 4], [1, 1]),
         plain("deconv", [1, 3, 4, 5], 6, [3, 3], [2, 2], behind=1))


# ---- codes ----

LIMITS = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767)}


def quant(r, kind):
    low, high = LIMITS[kind]
    width = 256 if kind == "int16" else 1
    return {"type": kind, "scale": r.uniform(0.02, 0.1) / width,
            "zero": 0 if kind == "int16" else r.randint(low // 4, high // 2)}


def any_kind(r):
    return r.choice(("int8", "int8", "int8", "uint8", "int16"))


def same_quant(r, layer):
    """Of a layer that moves codes."""
    if layer:
        layer.quants = [quant(r, any_kind(r))] * (len(layer.inputs) + 1)
        if r.random() < 0.3:
            layer.quants[-1] = quant(r, layer.quants[0]["type"])
    return layer


def weighed(r, layer):
    """Weights of 8 bits, a scale for each output channel; biases in the unit
    of the products."""
    if not layer:
        return None
    kind = any_kind(r)
    a, c = layer.attributes, layer.inputs[0][1]
    if layer.op == "fc":
        n, m = a["out"][0], product(layer.inputs[0][1:])
        shape, axis = [n, m], 0
    elif layer.op == "deconv":
        n = a["out_c"][0]
        shape, axis = [c, n // a["groups"][0], *a["kernel"]], 1
    else:
        n = a["out_c"][0]
        shape, axis = [n, c // a["groups"][0], *a["kernel"]], 0
    layer.quants = [quant(r, kind), quant(r, kind)]
    each = [r.uniform(0.002, 0.01) for _ in range(shape[axis])]
    values = [r.randint(-127, 127) for _ in range(product(shape))]
    layer.constants = {"weight": ("i8", shape, values, f"mul{axis}", each)}
    per = n // shape[axis]
    unit = [s * layer.quants[0]["scale"] for s in each] * per
    layer.no_bias = r.random() < 0.3
    if not layer.no_bias:
        layer.constants["bias"] = (
            "i32", [n], [r.randint(-3000, 3000) for _ in range(n)], "mul0",
            unit)
    return layer


def codes_conv(r):
    return weighed(r, convolution(r, "conv", BOUNDS))


def codes_deconv(r):
    """Those of several groups are no sums (docs/quantisation.md)."""
    layer = convolution(r, "deconv", BOUNDS)
    if not layer or layer.attributes["groups"] != [1]:
        return None
    return weighed(r, layer)


def codes_reals(r):
    """Weights are no codes, so that sums are of real numbers; any groups."""
    layer = convolution(r, r.choice(("conv", "deconv")), FUSED)
    if layer:
        layer.quants = [quant(r, r.choice(("int8", "uint8")))
                        for _ in range(2)]
    return layer


def codes_fc(r):
    layer = fc(r)
    for key in ("act", "alpha", "lo", "hi"):
        layer.attributes.pop(key, None)
    return weighed(r, layer)


def codes_sum(r):
    layer = eltwise(r)
    layer.inputs = layer.inputs[:2]
    layer.attributes = {"kind": r.choice(("add", "sub", "mul"))}
    kind = any_kind(r)
    layer.quants = [quant(r, kind) for _ in range(3)]
    return layer


def codes_bound(r):
    layer = eltwise(r)
    layer.inputs = layer.inputs[:2]
    layer.attributes = {"kind": r.choice(("max", "min"))}
    layer.quants = [quant(r, any_kind(r))] * 3
    return layer


def codes_mean(r):
    shape, axes = volume(r, 9), r.choice((4, 8, 12))
    kind = any_kind(r)
    return Layer("reduce", {"kind": "mean", "axes": [axes]}, [shape],
                 [1 if axes >> i & 1 else shape[i] for i in range(4)],
                 quants=[quant(r, kind), quant(r, kind)])


def moved(draw):
    def layer(r):
        return same_quant(r, draw(r))
    layer.__name__ = "codes_" + draw.__name__
    return layer


CODES = (codes_conv, codes_conv, codes_conv, codes_conv, codes_deconv,
         codes_deconv, codes_reals, codes_reals, codes_fc, codes_sum, codes_sum,
         codes_bound, codes_mean) + tuple(
    moved(draw) for draw in (pool, pool, pool, concat, part, pad, upsample,
                             transpose, reshape, identity))


# ---- a network of them ----

def draw_layer(r, draw):
    layer = None
    while not layer:
        layer = draw(r)
    return layer


class Graph:
    """Layers side by side, each with inputs of its own, as JSON and a file of
    constants."""

    def __init__(self):
        self.nodes, self.constants, self.outputs = [], [], []
        self.values = bytearray()

    def constant(self, kind, shape, values, *factors):
        self.values += bytes(-len(self.values) % 64)
        row = {"kind": kind, "shape": shape, "offset": len(self.values)}
        if factors:
            row[factors[0]] = factors[1]
        letter = {"f32": "f", "i8": "b", "i32": "i"}[kind]
        self.values += struct.pack(f"<{len(values)}{letter}", *values)
        self.constants.append(row)
        return len(self.constants) - 1

    def tensor(self, name, shape, quant_of):
        row = {"name": name, "shape": shape}
        if quant_of:
            row["quant"] = quant_of
        return row

    def add(self, layer, number):
        name = f"{layer.op}{number}"
        quants = layer.quants or [None] * (len(layer.inputs) + 1)
        reads = []
        for i, shape in enumerate(layer.inputs):
            reads.append(f"x{number}_{i}")
            self.nodes.append({"op": "input", "name": reads[-1], "reads": [],
                               "writes": [self.tensor(reads[-1], shape,
                                                      quants[i])]})
        node = {"op": layer.op, "name": name, "reads": reads,
                "writes": [self.tensor(name, layer.shape, quants[-1])],
                "attributes": layer.attributes}
        if layer.no_bias:
            node["no_bias"] = True
        if layer.constants:
            node["constants"] = {role: self.constant(*row) for role, row in
                                 layer.constants.items()}
        self.nodes.append(node)
        self.outputs.append(name)

    def json(self, name):
        return {"amphora": 1, "name": name, "weights": name + ".bin",
                "constants": self.constants, "nodes": self.nodes,
                "outputs": self.outputs}
