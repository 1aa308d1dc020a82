"""machines.py - random machines, as Python values and as YAML.

Each extends a shipped one with some keys changed, or full.yaml, which has
instructions and nothing else.
"""
import json
import re

from . import graphs

OPS = ("conv", "conv_grouped", "conv_depthwise", "deconv", "conv_pool_max",
       "conv_pool_avg", "pool_max", "pool_avg", "add", "mul", "max", "scale",
       "act", "upsample", "fc")
SUMMED = ("conv", "conv_depthwise")
ACTS = ("relu", "relu6", "leaky", "prelu", "sigmoid", "tanh", "clip")
# Of shipped machines: active memories, others, engines with what they run,
# activations that instructions can tell.
XDNN = {"conv": ("conv",), "pool": ("pool_max", "pool_avg"),
        "eltwise": ("add", "scale"), "upsample": ("upsample",)}
NPU = {"array": ("conv", "conv_depthwise"),
       "vector": ("pool_max", "pool_avg", "add", "scale", "upsample")}
SHIPPED = {
    "ring-npu": (("am",), NPU, 10),
    "line-npu": (("am",), NPU, 7),
    "stage-npu": (("am",), NPU, 10),
    "tile-npu": (("am",), NPU, 9),
    "xdnn-v2-28": (("am",), XDNN, 9),
    "xdnn-v2-56": (("am",), XDNN, 3),
    "xdnn-v3-96": (("am",), XDNN, 9),
    "math-engine": (("am",), {k: XDNN[k] for k in ("conv", "pool",
                                                   "eltwise")}, 3),
    "template": (("fast", "bulk"),
                 {"array": NPU["array"], "post": NPU["vector"]}, 8),
    "darius-32": (None, {}, 1),
    "darius-64": (None, {}, 1),
    "cpu-x86-64": (("workspace",), {}, 2),
    "cortex-m4": (("workspace",), {}, 1),
}
SCRATCH = 32  # of about a hundred
UNTILED = ("null", "cpu-x86-64", "cortex-m4")
SOFTWARE = ("ring-npu", "line-npu", "stage-npu", "xdnn-v2-28", "xdnn-v2-56",
            "math-engine", "template")
MOVED = ("ddr", "inputs", "outputs")


# ---- YAML ----

def scalar(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str) and not re.fullmatch(
            r"[A-Za-z0-9.+-][A-Za-z0-9_./%+ -]*", value):
        return json.dumps(value)
    return str(value)


def flow(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {flow(v)}"
                               for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    return scalar(value)


def as_yaml(machine):
    """Two levels as blocks, the rest on one line each."""
    lines = []
    for key, value in machine.items():
        if not isinstance(value, dict) or len(flow(value)) < 60:
            lines.append(f"{key}: {flow(value)}")
            continue
        lines.append(f"{key}:")
        lines += [f"  {k}: {flow(v)}" for k, v in value.items()]
    return "\n".join(lines) + "\n"


# ---- parts of a machine ----

def maybe(dice, share, out, key, *values):
    if dice.random() < share:
        out[key] = dice.choice(values)


def split(dice, dim):
    n = dice.choice((2, 3, 4, 8, 8, 16, 28, 32, 96) if dim == "c"
                    else (2, 3, 4, 8, 16, 28))
    inner = f"{dim}%{n}"
    how = {}
    maybe(dice, 0.25, how, "clip", True)
    maybe(dice, 0.2, how, "round", 2, 3, 4, 8, 16, 32)
    return f"{dim}/{n}", {inner: how} if how else inner


def layout(dice, element):
    """Axes from the outside in, each dimension once."""
    c, inner_c = split(dice, "c")
    w, inner_w = split(dice, "w")
    h, inner_h = split(dice, "h")
    axes = dice.choice((
        ["c", "h", "w"], ["c", "h", "w"], ["c", "h", "w"],
        ["c", "h", w, inner_w], [c, "h", "w", inner_c],
        [c, "h", "w", inner_c], ["h", "w", "c"], ["h", "c", "w"],
        [c, "h", w, inner_w, inner_c], ["h", w, c, inner_w, inner_c],
        [c, h, "w", inner_h, inner_c], ["c", h, "w", inner_h],
        [c, "h", inner_c, "w"]))
    out = {"axes": [
        {a: {"round": dice.choice((2, 3, 4, 8, 16))}}
        if isinstance(a, str) and len(a) == 1 and dice.random() < 0.15 else a
        for a in axes]}
    maybe(dice, 0.1, out, "element", 1, 2, 4)
    if axes == ["c", "h", "w"] and dice.random() < 0.1:
        e = out.get("element", element)
        out.update(word=64 * e, axes=["c/8", "h", "w/fit", "w%fit", "c%8"])
    return out


def timing(dice, memory):
    """Of a memory outside, or a port."""
    maybe(dice, 0.3, memory, "burst", 1, 16, 32, 64, 96, 256)
    maybe(dice, 0.3, memory, "bandwidth", "0.1GB/s", "1GB/s", "3.2GB/s",
          "16GB/s")
    maybe(dice, 0.3, memory, "latency", "1ns", "77ns", "200ns", "5us")
    maybe(dice, 0.15, memory, "row_setup", "3ns", "40ns")


def limits(dice):
    out = {}
    maybe(dice, 0.1, out, "kernel.w", "1..3", "1..5", [1, 3])
    maybe(dice, 0.1, out, "kernel.h", "1..3", "2..")
    maybe(dice, 0.1, out, "stride.w", [1], [1, 2], "1..2")
    maybe(dice, 0.1, out, "stride.h", [1, 2])
    maybe(dice, 0.1, out, "pad.w", "0..1")
    maybe(dice, 0.05, out, "pad.uneven", [0])
    maybe(dice, 0.05, out, "pad.not_same", [0])
    maybe(dice, 0.1, out, "dilation.w", [1], [1, 2])
    maybe(dice, 0.1, out, "in.c", "2..", "1..64")
    maybe(dice, 0.1, out, "out.c", "..33", "..16", "..1024")
    maybe(dice, 0.1, out, "in.w", "2..", "..31")
    maybe(dice, 0.05, out, "out.h", "..17")
    maybe(dice, 0.1, out, "taps", "..147", "..9792")
    return out


def unroll(dice):
    return {axis: dice.choice((1, 3, 7, 8, 16, 32))
            for axis in ("out_c", "in_c", "kernel", "out_h", "out_w")
            if dice.random() < 0.35}


def engine_keys(dice, engine, beside):
    maybe(dice, 0.25, engine, "part_align", 1, 2, 4, 8, 16, 96)
    maybe(dice, 0.3, engine, "in_place", True, False)
    maybe(dice, 0.2, engine, "divisor", "kernel", "valid")
    maybe(dice, 0.2, engine, "setup", 0, 1, 20, 1000)
    maybe(dice, 0.2, engine, "efficiency", 0.5, 0.77, 1)
    maybe(dice, 0.1, engine, "slope_cycles", 2)
    maybe(dice, 0.1, engine, "clock", "100MHz", "1GHz")
    if dice.random() < 0.4:
        engine["unroll"] = unroll(dice)
    if dice.random() < 0.4:
        engine["limits"] = limits(dice)
    if beside and dice.random() < 0.2:
        engine["beside"] = [dice.choice(beside)]


# ---- how much memory ----

def working_set(net, element):
    """Bytes of the operands of the largest layer."""
    shapes = graphs.shapes_of(net)
    sizes = [0]
    for node in net["nodes"]:
        names = {*node["reads"], node["name"]}
        sizes.append(sum(graphs.count(shapes[n]) for n in names))
    return max(sizes) * element


def active_size(dice, net, element, align):
    """From far too little to enough for all."""
    most = working_set(net, element)
    size = int(most * dice.choice((0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1, 1.5, 3)))
    size = max(size, align, 64)
    return size if dice.random() < 0.4 else size // align * align


# ---- machines that extend shipped ones ----

def aligned(dice, unit, element):
    return unit * element * dice.choice((1, 2, 4, 7, 16, 64, 97))


def shipped_memories(dice, base, names, net, element):
    unit = {"xdnn-v3-96": 96, "template": 16}.get(base, 1)
    memories = {}
    for name in names:
        mine = {}
        align = 64
        if base != "math-engine" and dice.random() < 0.3:
            align = mine["align"] = aligned(dice, unit, element)
        mine["size"] = active_size(dice, net, element, align)
        if base in ("xdnn-v2-28", "ring-npu", "stage-npu") or (
                dice.random() < 0.2 and base != "math-engine"):
            maybe(dice, 0.25, mine, "partitions", 1, 2, 3, 7)
        if dice.random() < 0.1:
            mine["ports"] = {"read": dice.choice((1, 2)),
                             "write": dice.choice((1, 2))}
        maybe(dice, 0.1, mine, "bandwidth", "1GB/s", "28GB/s")
        memories[name] = mine
    for name in MOVED if base not in UNTILED else ():
        mine = {}
        timing(dice, mine)
        maybe(dice, 0.2, mine, "align", 4 * element, 16 * element,
              64 * element, 200 * element)
        if mine:
            memories[name] = mine
    return memories


def shipped_tiling(dice, base, engines):
    tiling = {}
    if base in SOFTWARE:
        if base in ("ring-npu", "line-npu", "stage-npu"):
            maybe(dice, 0.2, tiling, "rings", False)
            if tiling.get("rings") is False and base == "line-npu":
                tiling["lines"] = False
        if base == "stage-npu":
            maybe(dice, 0.4, tiling, "queue", 1, 2, 7, 64)
        elif dice.random() < 0.3:
            tiling["overlap"] = dice.random() < 0.5
        if dice.random() < 0.1:
            ops = [op for runs in engines.values() for op in runs]
            tiling["ops"] = [op for op in ops if dice.random() < 0.7] or ops
    if base in SOFTWARE:
        maybe(dice, 0.15, tiling, "weights_move", True)
    if base == "tile-npu":
        maybe(dice, 0.15, tiling, "always", ["conv"])
    return tiling


def shipped(dice, net, base):
    active, engines, _ = SHIPPED[base]
    machine = {"extends": base, "machine": {"name": "m"}}
    if active is None:
        return machine
    element = {"xdnn-v2-28": 2, "xdnn-v2-56": 2, "math-engine": 2,
               "line-npu": 4, "cpu-x86-64": 4, "cortex-m4": 4}.get(base, 1)
    if base not in UNTILED and dice.random() < 0.2:
        element = machine["machine"]["element"] = dice.choice((1, 2, 4))
    if base in UNTILED:
        return machine
    machine["memories"] = shipped_memories(dice, base, active, net, element)
    if dice.random() < 0.25 and base not in ("xdnn-v3-96", "math-engine"):
        name = {"xdnn-v2-28": "am", "xdnn-v2-56": "am",
                "template": dice.choice(("deep", "flat", "plain"))}.get(
                    base, "plain")
        machine["layouts"] = {name: layout(dice, element)}
    changed = {}
    for name in engines:
        if dice.random() < 0.5:
            mine = {}
            engine_keys(dice, mine, [other for other in engines
                                     if other != name])
            if mine:
                changed[name] = mine
    if changed:
        machine["engines"] = changed
    tiling = shipped_tiling(dice, base, engines)
    if tiling:
        machine["tiling"] = tiling
    return machine


# ---- machines from scratch ----

def scratch_memories(dice, net, element, layouts):
    names = list(layouts)
    active = ["a0", "a1", "a2"][:dice.choice((1, 1, 1, 2, 2, 3))]
    memories = {}
    base = 0
    for i, name in enumerate(active):
        kind = dice.choice(names)
        unit = dice.choice((1, 1, 1, 16, 64)) * element
        e = layouts[kind].get("element", element)
        align = unit * e * dice.choice((1, 1, 2, 3, 8))
        mine = {"role": "active", "layout": kind, "id": i,
                "size": max(active_size(dice, net, e, align), align)}
        if unit > 1:
            mine["unit"] = unit
        if dice.random() < 0.7 or unit > 1:
            mine["align"] = align
        if dice.random() < 0.3:
            mine["base"] = base
        base += mine["size"] // unit + dice.choice((0, 100))
        if len(active) == 1:
            maybe(dice, 0.15, mine, "buffers", 2, 3, 4)
        maybe(dice, 0.2, mine, "partitions", 2, 3)
        if dice.random() < 0.3:
            mine["ports"] = {"read": dice.choice((1, 2)),
                             "write": dice.choice((1, 2))}
        maybe(dice, 0.1, mine, "bandwidth", "1GB/s", "28GB/s")
        memories[name] = mine
    for i, (name, role) in enumerate((("ddr", "backing"), ("inputs", "input"),
                                      ("outputs", "output"))):
        if name == "ddr" and dice.random() < 0.1:
            continue
        kind = dice.choice(names)
        e = layouts[kind].get("element", element)
        memories[name] = {"role": role, "layout": kind, "id": 8 + i,
                          "size": "64MiB", "align": e * dice.choice(
                              (1, 4, 16, 64, 200))}
        timing(dice, memories[name])
    return active, memories


def scratch_engines(dice, active, memories):
    """The operators dealt to one to four engines; some to none, or to two."""
    names = [f"e{i}" for i in range(dice.choice((1, 2, 2, 3, 4)))]
    runs = {name: [] for name in names}
    for op in OPS:
        if dice.random() < (0.9 if op in ("conv", "pool_max", "add") else 0.6):
            runs[dice.choice(names)].append(op)
    runs = {name: ops for name, ops in runs.items() if ops}
    if not runs:
        runs = {"e0": ["conv", "add"]}
    engines = {}
    for name, ops in runs.items():
        engine = {"runs": ops}
        if dice.random() < 0.8:
            engine["activations"] = [a for a in ACTS if dice.random() < 0.6]
        if len(active) > 1 and dice.random() < 0.2:
            engine["memories"] = [dice.choice(active)]
        engine_keys(dice, engine, [other for other in runs if other != name])
        engines[name] = engine
    if dice.random() < 0.03:
        engines["cpu"] = {"runs": ["layer"]}
    return engines


def software(dice, ops, fields):
    tiling = {"kind": "software", "ops": [op for op in ops
                                          if dice.random() < 0.85] or ops}
    way = dice.choice(("steps", "overlap", "queue", "staged"))
    if way == "overlap":
        tiling["overlap"] = True
    if way in ("queue", "staged"):
        tiling["queue"] = dice.choice((1, 2, 7, 64, 1024))
    if way == "staged":
        tiling["weights_from"] = "ddr"
        fields["weights_more"] = ["wt", "wt_first"]
    rings = dice.random() < 0.5
    lines = rings and dice.random() < 0.4
    if rings:
        tiling["rings"] = True
        for p in "srd":
            fields[f"{p}_more"] = [f"{p}_row", f"{p}_ring"]
        fields["s_lines"], fields["d_lines"] = ["s_ring"], ["d_ring"]
    if lines:
        tiling["lines"] = True
        line = ("col", "pitch", "band", "keep", "span", "shift")
        for p in "srd":
            fields[f"{p}_more"] = fields[f"{p}_more"] + [
                f"{p}_{what}" for what in line]
        for p in "sd":
            fields[f"{p}_lines"] = [f"{p}_{what}" for what in
                                    ("ring",) + line[2:]]
        fields["columns"] = ["left", "right"]
    maybe(dice, 0.2, tiling, "weights_move", True)
    return tiling


def style(dice, ops, first):
    """Where tiles come from and go to."""
    places = dice.choice((("ddr", "ddr"), ("ddr", first), (first, "ddr"),
                          (first, first)))
    out = {"from": places[0], "to": places[1]}
    summed = [op for op in ops if op in SUMMED]
    if summed and dice.random() < 0.5:
        out.update(ops=summed, sums=dice.choice((1, 2, 4)),
                   reserved=dice.choice(("1/4", "1/2", "1/1")))
        return out
    part = dice.choice((("1/2", "1/2", "1/1"), ("1/4", "1/4", "1/2"),
                        ("1/6", "1/6", "1/3")))
    out.update(ops=[op for op in ops if dice.random() < 0.7] or ops,
               buffers=[0, part[0]], buffer_size=part[1])
    if dice.random() < 0.5:
        out["reserved"] = part[2]
    maybe(dice, 0.2, out, "multiple_w", 2, 8)
    return out


def hardware(dice, ops, first, memories, engines, fields):
    styles = [style(dice, ops, first) for _ in range(dice.choice((1, 2, 3)))]
    tiling = {"kind": "hardware", "styles": styles}
    reached = [op for op in ops if any(op in s["ops"] for s in styles)]
    for engine in engines.values():
        engine["memories"] = list(memories)
    if reached and dice.random() < 0.25:
        tiling["always"] = [op for op in reached if dice.random() < 0.5]
        if not tiling["always"]:
            del tiling["always"]
    fields["tile_more"] = ["tiled", "tw", "th", "b0", "b1", "tile_to", "tc",
                           "tk", "stay", "w0", "w1", "s0"]
    if dice.random() < 0.3:
        fields["waits"] = ["after_load", "after_store", "after_conv",
                           "after_pool", "after_eltwise", "after_upsample"]
    return tiling


def replicated(dice, layouts, memories, active):
    """Copies of partial sections, where some layout has such."""
    for name in active:
        axes = layouts[memories[name]["layout"]]["axes"]
        found = [a for a in axes if isinstance(a, str) and a.startswith("c/")]
        if found and found[0] != "c/fit":
            n = int(found[0][2:])
            ways = [{"units": u, "width": n // u} for u in (2, 3, 4)
                    if n // u]
            out = {"section": n, "memories": [name],
                   "stored": ways[:dice.choice((1, 2))]}
            if dice.random() < 0.5:
                out["on_the_fly"] = ways
            return out
    return None


def constants(dice, layouts, memories, fields):
    """Memories of weights and of biases that are loaded."""
    for role in ("weights", "bias"):
        if dice.random() < 0.6:
            kind = dice.choice(list(layouts))
            memories[role] = {"role": role, "layout": kind,
                              "id": len(memories) + 12, "align": 64,
                              "size": dice.choice(("4KiB", "16KiB", "256KiB"))}
    if "bias" in memories:
        fields["bias_more"] = ["bias_at"]


def scratch(dice, net):
    element = dice.choice((1, 1, 2, 4))
    machine = {"extends": "../full.yaml", "machine": {"name": "m"}}
    if element > 1:
        machine["machine"]["element"] = element
    layouts = {f"l{i}": layout(dice, element)
               for i in range(dice.choice((1, 1, 2, 3)))}
    active, memories = scratch_memories(dice, net, element, layouts)
    engines = scratch_engines(dice, active, memories)
    ops = [op for op in OPS if any(op in e["runs"] for e in engines.values())]
    fields, kind = {}, dice.choice(("software",) * 5 + ("hardware",) * 3
                                   + ("none",))
    machine.update(layouts=layouts, memories=memories, engines=engines)
    if not ops or "ddr" not in memories:
        kind = "none"
    if kind == "software":
        machine["tiling"] = software(dice, ops, fields)
        if "weights_from" in machine["tiling"] and dice.random() < 0.5:
            constants(dice, layouts, memories, fields)
    elif kind == "hardware":
        machine["tiling"] = hardware(dice, ops, active[0], memories, engines,
                                     fields)
    if fields:
        machine["fields"] = fields
    copies = dice.random() < 0.3 and replicated(dice, layouts, memories,
                                                active)
    if copies:
        machine["replication"] = copies
    return machine


def common(dice, machine):
    """What any machine may have."""
    if dice.random() < 0.08:
        machine["weight_cache"] = {"pingpong": 8, "full_rate": 16,
                                   "half_rate": dice.choice((32, 512)),
                                   "bandwidth": "4GB/s"}
    if dice.random() < 0.08:
        machine["limits"] = {"instructions": dice.choice((20, 40, 100, 4096))}
    if dice.random() < 0.25:
        machine["rewrites"] = {key: dice.random() < 0.5 for key in (
            "conv_1x1_stride2", "pool_around_concat", "expand_groups")}
    if dice.random() < 0.08:
        machine["listing"] = {"input_shares_step": dice.random() < 0.5}
        maybe(dice, 0.5, machine["listing"], "input_step", 0, 2)
    return machine


def machine(dice, net):
    names = [*SHIPPED, None]
    base = dice.choices(names, [row[2] for row in SHIPPED.values()]
                        + [SCRATCH])[0]
    if base is None:
        return common(dice, scratch(dice, net))
    made = shipped(dice, net, base)
    return common(dice, made) if base not in UNTILED else made
