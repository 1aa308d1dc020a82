"""graphs.py - networks as Python values: shapes, and amphora's JSON.

A network is {"nodes": [...], "outputs": [...]}; a node has `op`, `name`,
`reads`, `attributes` as docs/graph-json.md has them, and writes one tensor of
its own name. Inputs and constants have `shape`; `quant` stands for a quantised
result; `data` of a network says where constants come from: "seeded", or "file",
values in weights.bin, as formats without seeds need them. Shapes are inferred
here, by code of its own.
"""
import array
import json
import math
import os
import random
import zlib

AREA = 1 << 17      # floats, then codes, then biases of quantised layers
FLOATS, CODES, BIASES, POSITIVE = 0, 4 * AREA, 5 * AREA, 5 * AREA + 16384
SHIFTS = 512        # constants begin at one of so many places
BIAS_MOST = 2000


class Misfit(Exception):
    """A layer does not fit its inputs."""


def need(condition, why):
    if not condition:
        raise Misfit(why)


def count(shape):
    return math.prod(shape)


# ---- shapes ----

def windows(node, shape, of=""):
    a = node["attributes"]
    if a.get(of + "global"):
        return [1, 1]
    out = []
    for i in range(2):
        kernel, stride = a[of + "kernel"][i], a.get(of + "stride", [1, 1])[i]
        first = a.get(of + "pad", [0, 0])[i]
        dilation = 1 if is_pool(node, of) else a.get("dilation", [1, 1])[i]
        reach = shape[2 + i] + first + a.get(of + "pad_end", [0, 0])[i]
        up = stride - 1 if is_pool(node, of) and a.get(of + "ceil") else 0
        extent = dilation * (kernel - 1) + 1
        need(extent <= reach + up, "window")
        size = (reach + up - extent) // stride + 1
        if up and (size - 1) * stride >= shape[2 + i] + first:
            size -= 1
        need(size > 0, "window")
        if is_pool(node, of):
            need(max(first, a.get(of + "pad_end", [0, 0])[i]) < kernel, "pad")
        out.append(size)
    return out


def is_pool(node, of):
    return node["op"] == "pool" or of == "pool_"


def conv(node, shapes):
    shape, a = shapes[0], node["attributes"]
    need(len(shape) == 4, "rank")
    groups = a.get("groups", 1)
    need(shape[1] % groups == 0 and a["out_c"] % groups == 0, "groups")
    return [shape[0], a["out_c"], *windows(node, shape)]


def conv_pool(node, shapes):
    middle = conv(node, shapes)
    return middle[:2] + windows(node, middle, "pool_")


def deconv(node, shapes):
    shape, a = shapes[0], node["attributes"]
    need(len(shape) == 4, "rank")
    groups = a.get("groups", 1)
    need(shape[1] % groups == 0 and a["out_c"] % groups == 0, "groups")
    sides = []
    for i in range(2):
        whole = (a.get("stride", [1, 1])[i] * (shape[2 + i] - 1)
                 + a.get("dilation", [1, 1])[i] * (a["kernel"][i] - 1) + 1)
        cut = a.get("pad", [0, 0])[i] + a.get("pad_end", [0, 0])[i]
        need(whole > cut, "pads")
        sides.append(whole - cut)
    return [shape[0], a["out_c"], *sides]


def volume(node, shapes):
    need(len(shapes[0]) == 4, "rank")
    return list(shapes[0])


def pool(node, shapes):
    return volume(node, shapes)[:2] + windows(node, shapes[0])


def broadcast(_, shapes):
    out = list(shapes[0])
    for shape in shapes[1:]:
        need(len(shape) == len(out), "rank")
        for i, dim in enumerate(shape):
            need(dim == out[i] or 1 in (dim, out[i]), "shapes")
            out[i] = max(out[i], dim)
    return out


def concat(node, shapes):
    axis, out = node["attributes"].get("axis", 0), list(shapes[0])
    need(axis < len(out), "axis")
    for shape in shapes[1:]:
        need(len(shape) == len(out), "rank")
        need(all(a == b for i, (a, b) in enumerate(zip(shape, out))
                 if i != axis), "beside the axis")
        out[axis] += shape[axis]
    return out


def cut(node, shapes):
    a, out = node["attributes"], list(shapes[0])
    axis, begin = a.get("axis", 0), a.get("begin", 0)
    need(axis < len(out) and begin < a["end"] <= out[axis], "slice")
    out[axis] = a["end"] - begin
    return out


def softmax(node, shapes):
    need(node["attributes"].get("axis", 0) < len(shapes[0]), "axis")
    return list(shapes[0])


def upsample(node, shapes):
    n, c, h, w = volume(node, shapes)
    factor = node["attributes"]["factor"]
    return [n, c, h * factor[0], w * factor[1]]


def pads(node, shapes):
    a, out = node["attributes"], volume(node, shapes)
    for i in range(2):
        out[2 + i] += a.get("before", [0, 0])[i] + a.get("behind", [0, 0])[i]
    return out


def reshape(node, shapes):
    shape = node["attributes"]["shape"]
    need(count(shape) == count(shapes[0]), "count")
    return list(shape)


def matmul(_, shapes):
    a, b = shapes
    need(len(a) == len(b) >= 2 and a[-1] == b[-2], "product")
    head = broadcast(None, [a[:-2] + [1], b[:-2] + [1]])[:-1]
    return head + [a[-2], b[-1]]


def transpose(node, shapes):
    perm = node["attributes"]["perm"]
    need(sorted(perm) == list(range(len(shapes[0]))), "perm")
    return [shapes[0][i] for i in perm]


def reduce(node, shapes):
    axes = node["attributes"].get("axes", 0)
    need(axes >> len(shapes[0]) == 0, "axes")
    return [1 if axes >> i & 1 else dim for i, dim in enumerate(shapes[0])]


def gather(node, shapes):
    a, out = node["attributes"], list(shapes[0])
    need(a.get("axis", 0) < len(out), "axis")
    out[a.get("axis", 0)] = a["n"]
    return out


def norm(node, shapes):
    need(node["attributes"].get("axis", 0) < len(shapes[0]), "axis")
    return list(shapes[0])


def given(node, _):
    return list(node["shape"])


def same(_, shapes):
    return list(shapes[0])


def inner(node, shapes):
    return [shapes[0][0], node["attributes"]["out"]]


SHAPE = {"input": given, "conv": conv, "deconv": deconv, "pool": pool,
         "conv_pool": conv_pool, "fc": inner, "bn": volume, "scale": volume,
         "act": same, "eltwise": broadcast, "concat": concat, "slice": cut,
         "lrn": volume, "softmax": softmax, "upsample": upsample, "pad": pads,
         "reshape": reshape, "constant": given, "matmul": matmul,
         "transpose": transpose, "reduce": reduce, "gather": gather,
         "norm": norm, "identity": same}


def shapes_of(net):
    """Shape of each tensor by name; Misfit where a layer does not fit."""
    shapes = {}
    for node in net["nodes"]:
        shapes[node["name"]] = SHAPE[node["op"]](
            node, [shapes[name] for name in node["reads"]])
        need(min(shapes[node["name"]]) > 0, "empty")
    return shapes


def work(net, shapes):
    """Products that the network takes, roughly."""
    total = 0
    for node in net["nodes"]:
        shape, a = shapes[node["name"]], node.get("attributes", {})
        fan = 1
        if node["op"] in ("conv", "conv_pool", "deconv"):
            fan = (shapes[node["reads"][0]][1] // a.get("groups", 1)
                   * math.prod(a["kernel"]))
        elif node["op"] in ("fc", "matmul"):
            fan = count(shapes[node["reads"][0]]) // shape[0]
        elif node["op"] == "pool" and not a.get("global"):
            fan = math.prod(a["kernel"])
        total += count(shape) * fan
    return total


# ---- constants ----

def roles(node, shapes):
    """(role, shape) of the constants that an operator has."""
    a, op = node.get("attributes", {}), node["op"]
    into = shapes[node["reads"][0]] if node["reads"] else None
    out = shapes[node["name"]]
    if op in ("conv", "conv_pool"):
        yield "weight", [a["out_c"], into[1] // a.get("groups", 1),
                         *a["kernel"]]
    elif op == "deconv":
        yield "weight", [into[1], a["out_c"] // a.get("groups", 1),
                         *a["kernel"]]
    elif op == "fc":
        yield "weight", [a["out"], count(into) // into[0]]
    if op in ("conv", "conv_pool", "deconv", "fc") and not node.get("no_bias"):
        yield "bias", [out[1]]
    if op == "bn":
        yield "mean", [out[1]]
        yield "var", [out[1]]
    if op == "scale":
        yield "scale", [out[1]]
        yield "bias", [out[1]]
    if op == "constant":
        yield "values", out
    if a.get("act") == "prelu":
        yield "slope", [out[1]]


def place(node, role, most):
    """Where in an area a constant begins, in elements."""
    return zlib.crc32(f"{node['name']} {role}".encode()) % SHIFTS % most


def codes(node, role, shape, quants):
    """Weights of a quantised layer, or its bias."""
    first = quants.get(node["reads"][0], {"scale": 1})["scale"]
    n = shape[0]
    dice = random.Random(f"{node['name']} scales")
    fan = max(1, node.get("fan", 16))
    scales = [round(dice.uniform(.5, 2) / 100 / fan ** .5, 6)
              for _ in range(n)]
    if role == "weight":
        if node["op"] == "fc":
            scales = [scales[0]] * n
        return {"kind": "i8", "shape": shape,
                "offset": CODES + place(node, role, SHIFTS), "mul0": scales}
    if node["op"] == "fc":
        scales = [scales[0]] * n
    return {"kind": "i32", "shape": shape,
            "offset": BIASES + 4 * place(node, role, SHIFTS),
            "mul0": [scale * first for scale in scales]}


def constants_of(net, shapes):
    """What constants of the JSON form there are, and which nodes have."""
    made, by_node = [], {}
    quants = {n["name"]: n["quant"] for n in net["nodes"] if n.get("quant")}
    for node in net["nodes"]:
        mine = {}
        for role, shape in roles(node, shapes):
            coded = (node.get("quant") and node["op"] in ("conv", "fc")
                     and role in ("weight", "bias"))
            if coded:
                constant = codes(node, role, shape, quants)
            elif net.get("data") == "file":
                area = POSITIVE if role == "var" else FLOATS
                constant = {"kind": "f32", "shape": shape,
                            "offset": area + 4 * place(node, role, SHIFTS)}
            else:
                continue
            mine[role] = len(made)
            made.append(constant)
        by_node[node["name"]] = mine
    return made, by_node


def weights():
    """What weights.bin holds: floats, codes, biases, positive floats."""
    dice = random.Random(0)
    floats = array.array("h", dice.randbytes(2 * AREA))
    out = array.array("f", [v / 65536 for v in floats]).tobytes()
    out += bytes(b if b != 128 else 129 for b in dice.randbytes(AREA))
    out += array.array("i", [dice.randint(-BIAS_MOST, BIAS_MOST)
                             for _ in range(4096)]).tobytes()
    return out + array.array("f", [dice.uniform(.5, 1.5)
                                   for _ in range(4096)]).tobytes()


def fits_weights(net, shapes):
    return all(count(shape) + SHIFTS <= (4096 if role != "weight" and
                                         role != "values" else AREA)
               for node in net["nodes"] for role, shape in roles(node, shapes))


# ---- the JSON form ----

def as_json(net, farm=None):
    """The network's text, a node a line; `farm`: for our own cases."""
    shapes = shapes_of(net)
    made, by_node = constants_of(net, shapes)
    lines = []
    for node in net["nodes"]:
        out = {"name": node["name"], "shape": shapes[node["name"]]}
        if node.get("quant"):
            out["quant"] = node["quant"]
        text = {"op": node["op"], "name": node["name"],
                "reads": node["reads"], "writes": [out]}
        attributes = dict(node.get("attributes", {}))
        if node["op"] == "constant":
            attributes["shape"] = node["shape"]
        if attributes:
            text["attributes"] = attributes
        if by_node[node["name"]]:
            text["constants"] = by_node[node["name"]]
        if node.get("no_bias"):
            text["no_bias"] = True
        if node["op"] == "conv_pool":
            text["conv_name"] = node["name"] + "_conv"
        lines.append(json.dumps(text))
    head = '{"amphora": 1,'
    if farm is not None:
        head += f' "farm": {json.dumps(farm)},'
    if made:
        head += ' "weights": "weights.bin",'
    return (f'{head} "constants": {json.dumps(made)},\n "nodes": [\n  '
            + ",\n  ".join(lines)
            + f'\n ],\n "outputs": {json.dumps(net["outputs"])}}}\n')


def from_json(text):
    """(network, what the farm said of it)."""
    read = json.loads(text)
    farm = read.get("farm", {})
    nodes = []
    for node in read["nodes"]:
        out = node["writes"][0]
        mine = {"op": node["op"], "name": node["name"],
                "reads": node.get("reads", []),
                "attributes": node.get("attributes", {})}
        if node["op"] in ("input", "constant"):
            mine["shape"] = out["shape"]
        if "quant" in out:
            mine["quant"] = out["quant"]
        if node.get("no_bias"):
            mine["no_bias"] = True
        nodes.append(mine)
    return {"nodes": nodes, "outputs": read["outputs"],
            "data": farm.get("data", "seeded")}, farm


def write_weights(folder):
    path = os.path.join(folder, "weights.bin")
    with open(path, "wb") as file:
        file.write(weights())
