"""variety.py - what networks.py and machines.py do not make, or hardly ever.

Networks: long and thin volumes, wide windows, concats of concats, channels that
are cut, shuffled and put together again, inputs that are outputs, everything an
output. Machines: axes in any order, instructions that tell of what volume any
operand is a part, memories for each operand, memories of weights, odd
alignments, clocks and numbers, narrow limits. Dice of their own leave the other
points of a seed what they are.
"""
from . import graphs, machines, networks

SHARE = 0.5     # of points that vary
LONG = (40, 63, 64, 65, 97, 127, 129, 200, 257)
MANY = (96, 100, 128, 129, 144, 192, 255, 256, 300)


# ---- networks ----

def wide_window(b, x):
    """Kernels, strides and dilations larger than usual, one side each."""
    dice, (h, w) = b.dice, b.shapes[x][2:]
    kernel = [min(side, dice.choice((1, 2, 4, 5, 7, 11))) for side in (h, w)]
    stride = [dice.choice((1, 2, 3, 4, 5, 7)) for _ in kernel]
    dilation = [dice.choice((1, 1, 2, 4)) for _ in kernel]
    pad, end = ([dice.randrange(k) for k in kernel] for _ in range(2))
    return b.add("conv", [x], out_c=dice.choice(networks.CHANNELS),
                 kernel=kernel, stride=stride, dilation=dilation, pad=pad,
                 pad_end=end, groups=1, **b.act())


def deep(b, x):
    """Many channels."""
    y = b.add("conv", [x], out_c=b.dice.choice(MANY), kernel=[1, 1], **b.act())
    return b.add("conv", [y], out_c=b.dice.choice(networks.CHANNELS),
                 kernel=[1, 1], **b.act())


def cut_up(b, x):
    """Channels cut at one place, perhaps worked on, and put together, perhaps
    the other way round."""
    n = b.shapes[x][1]
    graphs.need(n > 1, "channels")
    at = b.dice.randrange(1, n)
    parts = [b.add("slice", [x], axis=1, begin=0, end=at),
             b.add("slice", [x], axis=1, begin=at, end=n)]
    if b.dice.random() < 0.5:
        parts[0] = b.add("conv", [parts[0]], kernel=[1, 1],
                         out_c=b.dice.choice(networks.CHANNELS), **b.act())
    if b.dice.random() < 0.5:
        parts.reverse()
    return b.add("concat", parts, axis=1)


def nested(b, x):
    """Concats in concats, whose members others read, too."""
    dice = b.dice
    same = {"kernel": [3, 3], "pad": [1, 1], "pad_end": [1, 1]}

    def member():
        kind = dice.random()
        if kind < 0.15:
            return x
        if kind < 0.35:
            return b.add("pool", [x], kind="max", **same)
        return b.add("conv", [x], out_c=dice.choice(networks.CHANNELS),
                     **(same if dice.random() < 0.5 else {"kernel": [1, 1]}),
                     **b.act())
    y = b.add("concat", [member() for _ in range(dice.choice((2, 2, 3)))],
              axis=1)
    for _ in range(dice.choice((1, 1, 2))):
        parts = [y, member()] + ([member()] if dice.random() < 0.3 else [])
        if dice.random() < 0.5:
            parts.reverse()
        if dice.random() < 0.3:
            b.add("conv", [y], out_c=dice.choice((1, 4, 16)), kernel=[1, 1])
        y = b.add("concat", parts, axis=1)
    return y


def dense(b, x):
    """Each layer's result beside all before it."""
    for _ in range(b.dice.choice((2, 3, 4))):
        y = b.add("conv", [x], out_c=b.dice.choice((1, 3, 8, 12, 16)),
                  kernel=[3, 3], pad=[1, 1], pad_end=[1, 1], **b.act())
        x = b.add("concat", [x, y], axis=1)
    return x


def sides(b, x):
    """A concat along rows or columns."""
    axis = b.dice.choice((2, 3))
    return b.add("concat", [x, b.dice.choice(b.alike(x))], axis=axis)


def shuffled(b, x):
    """Channels in groups change places."""
    n, c, h, w = b.shapes[x]
    g = b.dice.choice([g for g in range(1, c + 1) if c % g == 0])
    y = b.add("reshape", [x], shape=[n, g, c // g, h * w])
    y = b.add("transpose", [y], perm=[0, 2, 1, 3])
    return b.add("reshape", [y], shape=[n, c, h, w])


def up_and_down(b, x):
    """A path down, one up, and what was there before beside it."""
    h, w = b.shapes[x][2:]
    graphs.need(h % 2 == 0 and w % 2 == 0, "even")
    y = b.add("pool", [x], kind=b.dice.choice(("max", "avg")), kernel=[2, 2],
              stride=[2, 2])
    y = b.add("conv", [y], out_c=b.dice.choice(networks.CHANNELS),
              kernel=[3, 3], pad=[1, 1], pad_end=[1, 1], **b.act())
    if b.dice.random() < 0.5:
        y = b.add("upsample", [y], factor=[2, 2])
    else:
        y = b.add("deconv", [y], out_c=b.dice.choice(networks.CHANNELS),
                  groups=1, kernel=[2, 2], stride=[2, 2])
    return b.add("concat", [y, x], axis=1)


def twice(b, x):
    """The same layer of the same volume, and their sum."""
    c = b.dice.choice(networks.CHANNELS)
    ys = [b.add("conv", [x], out_c=c, kernel=[1, 1], **b.act())
          for _ in range(2)]
    return b.add("eltwise", ys, kind="add", **b.act())


VARIED = {wide_window: 4, deep: 2, cut_up: 3, nested: 5, dense: 3, sides: 1,
          shuffled: 1, up_and_down: 3, twice: 1}


def vary_network(dice, net):
    """Further layers behind some, or another first volume."""
    b = networks.Builder(dice)
    if dice.random() < 0.3:
        c = dice.choice(networks.CHANNELS)
        shape = [1, c, 1, dice.choice(LONG)] if dice.random() < 0.5 else [
            1, c, dice.choice(LONG), dice.choice((1, 2, 3))]
        made = [b.input(shape)]
    elif any(node.get("quant") for node in net["nodes"]):
        return net
    else:
        b.net, b.shapes = net, graphs.shapes_of(net)
        made = [name for name, s in b.shapes.items() if len(s) == 4]
        b.net["nodes"] = renumbered(net)
        b.shapes = graphs.shapes_of(b.net)
        made = [name for name, s in b.shapes.items() if len(s) == 4]
    for _ in range(dice.choice((1, 1, 2, 3, 5))):
        try:
            x = dice.choice(made[-3:])
            graphs.need(len(b.shapes[x]) == 4, "rank")
            table = VARIED if dice.random() < 0.7 else networks.VOLUMES
            kind = dice.choices(list(table), list(table.values()))[0]
            made.append(kind(b, x))
        except (graphs.Misfit, IndexError):
            pass  # another would not fit either
    b.net["outputs"] = list(dict.fromkeys(
        [o for o in b.net["outputs"] if o in b.shapes]
        + networks.ends(b, dice)))
    return networks.used(odd_ends(dice, b))


def renumbered(net):
    """With names as a Builder gives them."""
    name = {n["name"]: f"n{i}" for i, n in enumerate(net["nodes"])}
    for node in net["nodes"]:
        node["name"] = name[node["name"]]
        node["reads"] = [name[r] for r in node["reads"]]
    net["outputs"] = [name[o] for o in net["outputs"]]
    return net["nodes"]


def odd_ends(dice, b):
    nodes = b.net["nodes"]
    made = [n["name"] for n in nodes if n["op"] not in ("input", "constant")]
    inputs = [n["name"] for n in nodes if n["op"] == "input"]
    if not made:
        made = [b.add("act", inputs[:1], act="relu")]
    if dice.random() < 0.1:
        b.net["outputs"] = made
    if dice.random() < 0.05:
        b.net["outputs"] = b.net["outputs"] + [dice.choice(inputs)]
    b.net["outputs"] = b.net["outputs"] or made[-1:]
    return b.net


# ---- machines ----

def any_order(dice, element):
    """Axes in any order, parts of a split outside in."""
    axes = []
    for dim in "chw":
        if dice.random() < (0.5 if dim == "c" else 0.2):
            axes.append(list(machines.split(dice, dim)))
        else:
            axes.append([dim])
    out = []
    while axes:
        k = dice.randrange(len(axes))
        out.append(axes[k].pop(0))
        axes = [rest for rest in axes if rest]
    made = {"axes": out}
    machines.maybe(dice, 0.1, made, "element", 1, 2, 4)
    return made


def narrow(dice):
    """Limits with odd lower ends."""
    out = {}
    machines.maybe(dice, 0.2, out, "in.c", "3..", "2..100", "4..4095")
    machines.maybe(dice, 0.2, out, "out.c", "2..", "4..512", "..64")
    machines.maybe(dice, 0.15, out, "in.h", "2..", "3..", "..64")
    machines.maybe(dice, 0.15, out, "out.h", "2..", "4..", "..64")
    machines.maybe(dice, 0.15, out, "in.w", "3..", "4..", "..300")
    machines.maybe(dice, 0.15, out, "out.w", "2..", "4..")
    machines.maybe(dice, 0.1, out, "pad.h", "0..1", "0..2")
    machines.maybe(dice, 0.1, out, "factor.w", [2], [1, 2])
    machines.maybe(dice, 0.1, out, "factor.h", [1, 2, 4])
    return out


PARTS = {"s_parts": ["q_on", "q_start", "q_c"],
         "r_parts": ["o_on", "o_start", "o_c"],
         "d_parts": ["p_on", "p_start", "p_c"]}
COPIES = {"s_parts": "q", "r_parts": "o", "d_parts": "p"}  # of such volumes


def with_copies():
    return {key: tokens + [f"{COPIES[key]}_{what}" for what in (
        "full", "sections", "units", "width")]
            for key, tokens in PARTS.items()}


def vary_scratch(dice, machine):
    """Of machines made from full.yaml."""
    element = machine["machine"].get("element", 1)
    for name in machine["layouts"]:
        if dice.random() < 0.25 and "replication" not in machine:
            machine["layouts"][name] = any_order(dice, element)
    if dice.random() < 0.3:
        machine.setdefault("fields", {}).update(
            with_copies() if "replication" in machine else PARTS)
    memories = machine["memories"]
    active = [n for n, m in memories.items() if m["role"] == "active"]
    hardware = machine.get("tiling", {}).get("kind") == "hardware"
    if len(active) > 1 and not hardware and dice.random() < 0.4:
        for engine in machine["engines"].values():
            if "layer" not in engine["runs"]:
                engine.pop("memories", None)
                engine["operands"] = {
                    key: dice.sample(active, dice.choice((1, 1, 2)))
                    for key in ("in", "out")}
    if "weights_from" in machine.get("tiling", {}) and dice.random() < 0.4:
        first = memories[active[0]]
        memories["wgt"] = {"role": "weights", "layout": first["layout"],
                           "id": 7, "size": dice.choice((64, 512, 4096,
                                                         65536)) * 16}
        if "unit" in first:
            memories["wgt"]["unit"] = first["unit"]
    if dice.random() < 0.2:
        order = list(memories)
        dice.shuffle(order)
        machine["memories"] = {n: memories[n] for n in sorted(
            order, key=lambda n: (n in active, ), reverse=False)}


def vary_any(dice, machine):
    if dice.random() < 0.15:
        machine["machine"]["clock"] = dice.choice(
            ("1MHz", "333MHz", "1.7GHz", "32768Hz"))
    for name, memory in machine.get("memories", {}).items():
        e = machine["machine"].get("element", 1)
        if dice.random() < 0.1:
            memory["bandwidth"] = dice.choice(("0.37GB/s", "7MB/s", "123GB/s"))
        unit = memory.get("unit", e)
        if dice.random() < 0.1 and name not in ("am",):
            memory["align"] = unit * e * dice.choice((1, 3, 5, 7, 24, 100))
    for engine in machine.get("engines", {}).values():
        if dice.random() < 0.15:
            engine["limits"] = narrow(dice)
    if dice.random() < 0.1:
        machine["limits"] = {"instructions": dice.choice((3, 10, 33, 1000))}


def varied(dice, net, machine):
    """Perhaps another network, perhaps another machine."""
    if dice.random() >= SHARE:
        return net, machine
    try:
        net = vary_network(dice, net)
    except graphs.Misfit:
        pass  # the first volume was too large
    if machine.get("extends") == "../full.yaml":
        vary_scratch(dice, machine)
    if "memories" in machine or "engines" in machine:
        vary_any(dice, machine)
    return net, machine
