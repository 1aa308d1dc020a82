"""networks.py - random networks: chains and graphs of volumes, tensors of any
rank, quantised layers; odd sizes, taps, several inputs and outputs."""
from . import graphs

CHANNELS = (1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 17, 24, 31, 32, 33, 48, 64, 97)
SIDES = (1, 2, 3, 5, 6, 7, 8, 9, 11, 12, 13, 14, 16, 17, 20, 24, 28, 31)
MOST_WORK = 3_000_000
MOST_ELEMENTS = 40_000
ACTS = ("relu", "relu6", "leaky", "prelu", "sigmoid", "tanh", "clip")
SMOOTH = ("elu", "selu", "celu", "softplus", "softsign", "hard_sigmoid",
          "hard_swish", "silu", "gelu", "gelu_tanh", "mish", "abs", "neg",
          "erf", "sin", "cos", "atan", "asinh")
STEPS = ("floor", "ceil", "round", "trunc", "sign", "not", "threshold",
         "shrink", "to_f16", "to_bf16")  # of what is the same to the last bit
CODED_ACTS = ("relu", "relu6", "clip")
REDUCTIONS = ("mean", "sum", "max", "min", "l1", "l2", "squares",
              "log_sum_exp")
COMPARED = ("equal", "less", "less_equal", "greater", "greater_equal", "and",
            "or", "xor")


def activation(dice, names, share=0.5):
    """Attributes of a fused activation, or none."""
    if dice.random() > share:
        return {}
    return act_of(dice, dice.choice(names))


def act_of(dice, name):
    a = {"act": name}
    if name in ("leaky", "elu", "celu", "threshold", "shrink",
                "hard_sigmoid"):
        a["alpha"] = dice.choice((0.1, 0.25, 0.5))
    if name == "clip":
        a.update(lo=dice.choice((-1, -0.25, 0)), hi=dice.choice((0.5, 1, 6)))
    if name == "selu":
        a.update(alpha=1.6732632, hi=1.050701)
    if name == "hard_sigmoid":
        a["lo"] = 0.5
    return a


class Builder:
    """A network in the making; methods add a layer, or raise Misfit."""

    def __init__(self, dice, coded=False):
        self.dice, self.coded = dice, coded
        self.net = {"nodes": [], "outputs": [], "data": "seeded"}
        self.shapes, self.exact = {}, set()

    def add(self, op, reads=(), given=None, **attributes):
        node = {"op": op, "name": f"n{len(self.net['nodes'])}",
                "reads": list(reads), "attributes": attributes}
        if given:
            node["shape"] = given
        if attributes.pop("no_bias", False):
            node["no_bias"] = True
        if self.coded:
            node["quant"] = self.quant(op, reads)
        shape = graphs.SHAPE[op](node, [self.shapes[r] for r in reads])
        graphs.need(0 < graphs.count(shape) <= MOST_ELEMENTS, "elements")
        self.shapes[node["name"]] = shape
        self.net["nodes"].append(node)
        if (graphs.work(self.net, self.shapes) > MOST_WORK or
                not graphs.fits_weights(self.net, self.shapes)):
            del self.shapes[self.net["nodes"].pop()["name"]]
            raise graphs.Misfit("work")
        if op in ("input", "constant", "reshape", "transpose", "slice",
                  "concat", "identity", "pad") and all(
                      r in self.exact for r in reads):
            self.exact.add(node["name"])
        return node["name"]

    def quant(self, op, reads):
        """How a result is quantised; what only moves as its operand."""
        kept = {n["name"]: n["quant"] for n in self.net["nodes"]}
        moves = ("reshape", "transpose", "slice", "pad", "upsample",
                 "identity", "concat")
        if reads and (op in moves or self.dice.random() < 0.5):
            return kept[reads[0]]
        return {"type": "int8",
                "scale": self.dice.choice((0.02, 0.05, 0.0235, 6 / 255)),
                "zero": self.dice.choice((-128, -11, 0, 3, 40))}

    def act(self):
        return activation(self.dice, CODED_ACTS if self.coded else ACTS)

    def input(self, shape):
        return self.add("input", given=shape)

    # ---- layers of volumes ----

    def window(self, x, most=5):
        """Kernel, stride, pads that fit, both axes for themselves."""
        dice, (h, w) = self.dice, self.shapes[x][2:]
        square = dice.random() < 0.7
        kernel = [min(side, dice.choice((1, 2, 3, 3, most)))
                  for side in (h, w)]
        if square:
            kernel = [min(kernel)] * 2
        stride = [dice.choice((1, 1, 1, 2, 3)) for _ in kernel]
        if square:
            stride = [stride[0]] * 2
        same = dice.random() < 0.6
        pad = [(k - 1) // 2 if same else dice.randrange(k) for k in kernel]
        end = pad if dice.random() < 0.8 else [
            dice.randrange(k) for k in kernel]
        return {"kernel": kernel, "stride": stride, "pad": pad,
                "pad_end": list(end)}

    def conv(self, x, groups=1, **more):
        w = self.window(x)
        if self.dice.random() < 0.15:
            w["dilation"] = [self.dice.choice((1, 2, 3)) for _ in range(2)]
        out = more.pop("out_c", None) or self.dice.choice(CHANNELS)
        no_bias = self.dice.random() < 0.2
        return self.add("conv", [x], out_c=out, groups=groups, **w,
                        no_bias=no_bias, **self.act(), **more)

    def depthwise(self, x):
        c = self.shapes[x][1]
        times = self.dice.choice((1, 1, 1, 2))
        return self.conv(x, groups=c, out_c=c * times)

    def grouped(self, x):
        c = self.shapes[x][1]
        groups = self.dice.choice([g for g in range(2, c + 1) if c % g == 0]
                                  or [1])
        return self.conv(x, groups=groups,
                         out_c=groups * self.dice.choice((1, 2, 3, 8)))

    def deconv(self, x):
        dice = self.dice
        stride = [dice.choice((1, 2, 2, 3)) for _ in range(2)]
        kernel = [dice.choice((s, s + 1, 2 * s, 3)) for s in stride]
        pad = [dice.randrange((k + 1) // 2) for k in kernel]
        c = self.shapes[x][1]
        groups = c if dice.random() < 0.2 else 1
        out = c if groups > 1 else dice.choice(CHANNELS)
        return self.add("deconv", [x], out_c=out, groups=groups,
                        kernel=kernel, stride=stride, pad=pad,
                        pad_end=[max(0, p - dice.choice((0, 0, 1)))
                                 for p in pad], **self.act())

    def pooling(self):
        dice = self.dice
        kind = dice.choice(("max", "avg"))
        flags = {"ceil": int(dice.random() < 0.4)}
        if kind == "avg":
            flags["count_pad"] = int(dice.random() < 0.5)
        return {"kind": kind, **flags}

    def pool(self, x):
        if self.dice.random() < 0.15:
            return self.add("pool", [x], kind=self.dice.choice(("max", "avg")),
                            **{"global": 1})
        w = self.window(x, 4)
        if self.dice.random() < 0.5:
            w["stride"] = [self.dice.choice((2, 2, 3))] * 2
        return self.add("pool", [x], **self.pooling(), **w)

    def conv_pool(self, x):
        w = self.window(x)
        a = {"out_c": self.dice.choice(CHANNELS), **w, **self.act()}
        for key, value in self.pooling().items():
            a["pool_" + key] = value
        a.update(pool_kernel=[2, 2], pool_stride=[2, 2], pool_pad=[0, 0],
                 pool_pad_end=[0, 0])
        return self.add("conv_pool", [x], **a)

    def alike(self, x):
        return [y for y, shape in self.shapes.items()
                if shape == self.shapes[x]]

    def eltwise(self, x):
        kind = self.dice.choice(("add",) * 5 + ("mul", "max", "min", "sub"))
        others = self.alike(x)
        if self.coded:
            kind = self.dice.choice(("add", "mul", "max"))
            others = [y for y in others if y != x] or others
        n = 1 if kind == "sub" or self.coded else self.dice.choice((1, 1, 2))
        more = {}
        if kind == "add" and not self.coded and self.dice.random() < 0.15:
            more["coeff"] = [self.dice.choice((-1, 0.5, 1, 2))
                             for _ in range(n + 1)]
        return self.add("eltwise",
                        [x] + [self.dice.choice(others) for _ in range(n)],
                        kind=kind, **more, **self.act())

    def gate(self, x):
        """Each channel times one number, as squeeze and excitation."""
        s = self.add("pool", [x], kind="avg", **{"global": 1})
        s = self.add("conv", [s], out_c=self.shapes[x][1], kernel=[1, 1],
                     act="sigmoid")
        return self.add("eltwise", [x, s], kind="mul")

    def residual(self, x):
        c = self.shapes[x][1]
        y = self.add("conv", [x], out_c=self.dice.choice(CHANNELS),
                     kernel=[1, 1], **self.act())
        y = self.add("conv", [y], out_c=c, kernel=[3, 3], pad=[1, 1],
                     pad_end=[1, 1])
        return self.add("eltwise", [x, y], kind="add", **self.act())

    def concat(self, x):
        h, w = self.shapes[x][2:]
        others = [y for y, shape in self.shapes.items() if len(shape) == 4 and
                  shape[0] == self.shapes[x][0] and shape[2:] == [h, w]]
        n = self.dice.choice((1, 1, 2, 3))
        members = [x] + [self.dice.choice(others) for _ in range(n)]
        if self.dice.random() < 0.8:
            members = list(dict.fromkeys(members))
        self.dice.shuffle(members)
        return self.add("concat", members, axis=1)

    def branches(self, x):
        """Some convolutions and pools of one volume, side by side."""
        same = {"kernel": [3, 3], "pad": [1, 1], "pad_end": [1, 1]}
        parts = []
        for _ in range(self.dice.choice((2, 2, 3, 4))):
            if self.dice.random() < 0.25:
                parts.append(self.add("pool", [x], **self.pooling(), **same))
            else:
                window = same if self.dice.random() < 0.6 else {
                    "kernel": [1, 1]}
                parts.append(self.add(
                    "conv", [x], out_c=self.dice.choice(CHANNELS), **window,
                    **self.act()))
        return self.add("concat", parts, axis=1)

    def upsample(self, x):
        return self.add("upsample", [x], factor=[
            self.dice.choice((1, 2, 2, 3)) for _ in range(2)])

    def function(self, x):
        names = CODED_ACTS if self.coded else (
            STEPS + ACTS if x in self.exact else ACTS + SMOOTH)
        return self.add("act", [x], **act_of(self.dice,
                                             self.dice.choice(names)))

    def norm_or_scale(self, x):
        if self.coded:
            raise graphs.Misfit("floats")
        if self.dice.random() < 0.5:
            y = self.add("bn", [x], eps=1e-3)
            return self.add("scale", [y], **self.act())
        return self.add("scale", [x], **self.act())

    def lrn(self, x):
        if self.dice.random() < 0.3:
            return self.add("lrn", [x], within_channel=1, size=3,
                            alpha=1e-2, beta=0.75, k=1)
        return self.add("lrn", [x], size=self.dice.choice((1, 3, 5)),
                        alpha=1e-2, beta=0.75, k=self.dice.choice((1, 2)))

    def pad(self, x):
        side = self.dice.randrange
        value = 0 if self.coded else self.dice.choice((0, 0, 1.5))
        return self.add("pad", [x], before=[side(3), side(3)],
                        behind=[side(3), side(3)], value=value)

    # ---- layers of any tensor ----

    def inner(self, x):
        return self.add("fc", [x], out=self.dice.choice(CHANNELS),
                        **self.act())

    def softmax(self, x):
        return self.add("softmax", [x],
                        axis=self.dice.randrange(len(self.shapes[x])))

    def slice(self, x):
        axis = self.dice.randrange(1, max(2, len(self.shapes[x])))
        graphs.need(axis < len(self.shapes[x]), "axis")
        n = self.shapes[x][axis]
        begin = self.dice.randrange(n)
        return self.add("slice", [x], axis=axis, begin=begin,
                        end=self.dice.randint(begin + 1, n))

    def reshape(self, x):
        n, *rest = self.shapes[x]
        flat = graphs.count(rest)
        sides = [d for d in range(1, flat + 1) if flat % d == 0]
        a = self.dice.choice(sides)
        b = self.dice.choice([d for d in sides if flat // a % d == 0])
        return self.add("reshape", [x], shape=self.dice.choice((
            [n, flat], [n, a, b, flat // a // b], [n, a, flat // a])))

    def transpose(self, x):
        perm = list(range(len(self.shapes[x])))
        self.dice.shuffle(perm)
        return self.add("transpose", [x], perm=perm)

    def reduce(self, x):
        rank = len(self.shapes[x])
        kind = self.dice.choice(REDUCTIONS)
        if x in self.exact and self.dice.random() < 0.3:
            return self.add("reduce", [x], axes=1 << self.dice.randrange(rank),
                            kind=self.dice.choice(("argmax", "argmin",
                                                   "argmax_last")))
        axes = self.dice.randrange(1, 1 << rank) & ~1 or 2
        return self.add("reduce", [x], kind=kind, axes=axes)

    def matmul(self, x):
        shape = self.shapes[x]
        graphs.need(len(shape) >= 2, "rank")
        turned = list(range(len(shape) - 2)) + [len(shape) - 1,
                                                len(shape) - 2]
        return self.add("matmul", [x, self.add("transpose", [x],
                                               perm=turned)])

    def norm(self, x):
        return self.add("norm", [x], eps=1e-3,
                        axis=self.dice.randrange(len(self.shapes[x])))

    def compare(self, x):
        graphs.need(x in self.exact, "exact")
        others = [y for y in self.alike(x) if y in self.exact]
        return self.add("eltwise", [x, self.dice.choice(others)],
                        kind=self.dice.choice(COMPARED))

    def stretched(self, x):
        """A sum of two whose shapes differ."""
        shape = [d if self.dice.random() < 0.6 else 1
                 for d in self.shapes[x]]
        y = self.add("constant", given=shape)
        return self.add("eltwise", [x, y],
                        kind=self.dice.choice(("add", "mul")))

    def identity(self, x):
        return self.add("identity", [x])


VOLUMES = {Builder.conv: 22, Builder.depthwise: 7, Builder.grouped: 4,
           Builder.deconv: 5, Builder.pool: 10, Builder.eltwise: 9,
           Builder.concat: 9, Builder.branches: 5, Builder.residual: 5,
           Builder.upsample: 5, Builder.function: 5,
           Builder.norm_or_scale: 5, Builder.slice: 2, Builder.pad: 2,
           Builder.lrn: 1, Builder.gate: 2, Builder.conv_pool: 2,
           Builder.identity: 1, Builder.inner: 1, Builder.reduce: 1}
TENSORS = {Builder.inner: 5, Builder.softmax: 3, Builder.slice: 3,
           Builder.reshape: 5, Builder.transpose: 4, Builder.reduce: 4,
           Builder.matmul: 2, Builder.norm: 2, Builder.compare: 1,
           Builder.stretched: 3, Builder.function: 4, Builder.eltwise: 3,
           Builder.identity: 1}
CODED = {Builder.conv: 15, Builder.depthwise: 5, Builder.pool: 5,
         Builder.eltwise: 5, Builder.concat: 4, Builder.function: 3,
         Builder.upsample: 2, Builder.reshape: 1, Builder.inner: 2,
         Builder.slice: 1, Builder.pad: 1, Builder.branches: 2,
         Builder.transpose: 1, Builder.softmax: 1, Builder.identity: 1}


def first_shape(dice, coded, batch):
    flat = dice.random()
    h, w = dice.choice(SIDES), dice.choice(SIDES)
    if dice.random() < 0.5:
        h = w
    if flat < 0.12:
        h = 1
    elif flat < 0.2:
        w = 1
    shape = [batch, dice.choice(CHANNELS[2:13]), h, w]
    while graphs.count(shape) > MOST_ELEMENTS:
        shape[1] = (shape[1] + 1) // 2
    return shape


def further_input(b, dice, batch):
    """Of a shape that another tensor has, or of its own."""
    known = [s for s in b.shapes.values() if len(s) == 4]
    shape = (list(dice.choice(known)) if dice.random() < 0.7
             else first_shape(dice, b.coded, batch))
    return b.input(shape)


def step(b, dice, table, x):
    """One more layer behind x, or behind something else."""
    if len(b.shapes[x]) != 4 and table is not CODED:
        table = TENSORS
    kind = dice.choices(list(table), list(table.values()))[0]
    if len(b.shapes[x]) != 4 and kind not in TENSORS:
        return x
    try:
        return kind(b, x)
    except (graphs.Misfit, IndexError):
        return x


def ends(b, dice):
    """What nobody reads, and taps."""
    read = {r for node in b.net["nodes"] for r in node["reads"]}
    made = [n["name"] for n in b.net["nodes"]
            if n["op"] not in ("input", "constant")]
    loose = [name for name in made if name not in read]
    taps = [name for name in made if name in read and dice.random() < 0.08]
    return (loose + taps)[:8] if dice.random() < 0.9 else loose[-1:] + taps[:1]


def used(net):
    """Without what no output needs."""
    wanted = set(net["outputs"])
    for node in reversed(net["nodes"]):
        if node["name"] in wanted:
            wanted.update(node["reads"])
    net["nodes"] = [n for n in net["nodes"] if n["name"] in wanted]
    return net


def network(dice):
    coded = dice.random() < 0.15
    table = CODED if coded else TENSORS if dice.random() < 0.1 else VOLUMES
    batch = 2 if dice.random() < 0.03 else 1
    b = Builder(dice, coded)
    made = [b.input(first_shape(dice, coded, batch))]
    layers = dice.choice((1, 2, 3, 3, 4, 5, 6, 7, 8, 10, 12, 16))
    for _ in range(layers):
        if dice.random() < 0.08:
            try:
                made.append(further_input(b, dice, batch))
            except graphs.Misfit:
                pass  # too large
        x = made[-1] if dice.random() < 0.75 else dice.choice(made)
        made.append(step(b, dice, table, x))
    if not any(n["op"] not in ("input", "constant") for n in b.net["nodes"]):
        b.add("act", [made[0]], act="relu")
    b.net["outputs"] = ends(b, dice)
    if dice.random() < 0.3:
        b.net["data"] = "file"
    return used(b.net)
