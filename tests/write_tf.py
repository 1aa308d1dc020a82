"""write_tf.py - TensorFlow graphs from Python, for the tests.

A Graph is a list of nodes in whatever order they are added. It is written as
what TensorFlow freezes (GraphDef, binary), or as what tfjs reads: the same in
proto3's JSON, constants in a file beside it. Needs nothing but Python.
"""
import base64
import json
import os
import struct

from truthlib import count, draw, field

FLOAT, INT32, BOOL = 1, 3, 10
DTYPE = {FLOAT: "float32", INT32: "int32", BOOL: "bool"}


class Ints(list):
    """A list of whole numbers as an attribute."""


class Type(int):
    """A type as an attribute."""


class Shape(list):
    """A shape as an attribute; -1: open."""


class Tensor:
    def __init__(self, dtype, shape, data):
        self.dtype, self.shape, self.data = dtype, shape, data


def number(tag, value):
    return field(tag, int(value) & (1 << 64) - 1)


def shape_bytes(shape):
    return b"".join(field(2, number(1, dim)) for dim in shape)


def tensor_values(tensor):
    """A single number stands in a field of its type, as TensorFlow does."""
    if tensor.shape:
        return field(4, tensor.data)
    if tensor.dtype == FLOAT:
        return b"\x2d" + tensor.data
    whole = int.from_bytes(tensor.data, "little", signed=True)
    return number(7 if tensor.dtype == INT32 else 11, whole)


def value_bytes(value):
    """One AttrValue."""
    if isinstance(value, Tensor):
        return field(8, number(1, value.dtype) +
                     field(2, shape_bytes(value.shape)) +
                     tensor_values(value))
    if isinstance(value, Shape):
        return field(7, shape_bytes(value))
    if isinstance(value, Type):
        return number(6, value)
    if isinstance(value, bool):
        return number(5, value)
    if isinstance(value, int):
        return number(3, value)
    if isinstance(value, float):
        return b"\x25" + struct.pack("<f", value)
    if isinstance(value, str):
        return field(2, value)
    if isinstance(value, Ints):
        return field(1, b"".join(number(3, v) for v in value))
    return field(1, b"".join(field(2, v) for v in value))


def text(word):
    return base64.b64encode(word.encode()).decode()


def shape_json(shape):
    return {"dim": [{"size": str(dim)} for dim in shape]}


def value_json(value):
    if isinstance(value, Tensor):
        return {"tensor": {"dtype": f"DT_{DTYPE[value.dtype].upper()}"
                           .replace("FLOAT32", "FLOAT"),
                           "tensorShape": shape_json(value.shape)}}
    if isinstance(value, Shape):
        return {"shape": shape_json(value)}
    if isinstance(value, Type):
        return {"type": {FLOAT: "DT_FLOAT", INT32: "DT_INT32",
                         BOOL: "DT_BOOL"}[value]}
    if isinstance(value, bool):
        return {"b": value}
    if isinstance(value, int):
        return {"i": str(value)}
    if isinstance(value, float):
        return {"f": value}
    if isinstance(value, str):
        return {"s": text(value)}
    if isinstance(value, Ints):
        return {"list": {"i": [str(v) for v in value]}}
    return {"list": {"s": [text(v) for v in value]}}


NUMBER = {f"DT_{name.upper()}".replace("FLOAT32", "FLOAT"): number
          for number, name in DTYPE.items()}


def read_value(value):
    """A value as tfjs' JSON has it; tensors are elsewhere."""
    (kind, inner), = value.items()
    if kind == "list":
        if "s" in inner:
            return [base64.b64decode(v).decode() for v in inner["s"]]
        return Ints(int(v) for v in inner.get("i", []))
    if kind == "shape":
        return Shape(int(dim["size"]) for dim in inner.get("dim", []))
    return {"s": lambda v: base64.b64decode(v).decode(), "i": int,
            "f": float, "b": bool, "type": lambda v: Type(NUMBER[v]),
            "tensor": lambda v: None}[kind](inner)


def read_tfjs(path):
    """The graph of a model.json, with drawn weights."""
    with open(path) as file:
        model = json.load(file)
    g = Graph(os.path.basename(path).split(".")[0])
    shapes = {w["name"]: w["shape"] for group in model["weightsManifest"]
              for w in group["weights"]}
    for node in model["modelTopology"]["node"]:
        name, inputs = node["name"], node.get("input", [])
        if node["op"] == "Const":
            shape = shapes[name]
            fan = count(shape[:2] if "depthwise" in name else shape[:-1])
            most = (6 / fan) ** 0.5 if len(shape) > 1 else 0.2
            low = 0.5 if not shape else -most
            g.drawn(low, 1.5 if not shape else most, *shape, name=name)
        else:
            g.nodes.append((name, node["op"], inputs,
                            {key: read_value(value) for key, value
                             in node.get("attr", {}).items()}))
    read = {i.split(":")[0].lstrip("^") for n in g.nodes for i in n[2]}
    g.ends = [n[0] for n in g.nodes if n[0] not in read]
    return g


UNFUSED = {"_FusedConv2D": "Conv2D", "_FusedMatMul": "MatMul",
           "FusedDepthwiseConv2dNative": "DepthwiseConv2dNative"}
STEPS = {"FusedBatchNorm": {"is_training": False}}


class Graph:
    def __init__(self, name="net"):
        self.name = name
        self.nodes = []  # (name, op, inputs, attributes)
        self.ends = []

    def node(self, op, *inputs, name=None, **attributes):
        name = name or f"{op.strip('_')}_{len(self.nodes)}"
        attributes.setdefault("T", Type(FLOAT))
        self.nodes.append((name, op, list(inputs), attributes))
        return name

    def end(self, op, *inputs, **attributes):
        """A node that is an output."""
        self.ends.append(self.node(op, *inputs, **attributes))
        return self.ends[-1]

    def input(self, *shape, name="x"):
        self.nodes.append((name, "Placeholder", [],
                           {"dtype": Type(FLOAT), "shape": Shape(shape)}))
        return name

    def const(self, dtype, shape, data, name=None):
        name = name or f"const_{len(self.nodes)}"
        self.nodes.append((name, "Const", [],
                           {"dtype": Type(dtype),
                            "value": Tensor(dtype, list(shape), data)}))
        return name

    def ints(self, *values):
        """One dimension."""
        return self.const(INT32, [len(values)],
                          struct.pack(f"<{len(values)}i", *values))

    def int(self, value):
        return self.const(INT32, [], struct.pack("<i", value))

    def bool(self, value):
        return self.const(BOOL, [], bytes([value]))

    def float(self, value):
        return self.const(FLOAT, [], struct.pack("<f", value))

    def drawn(self, low, high, *shape, name=None):
        """Numbers that depend on the network's and the node's name."""
        key = f"{self.name}/{name or len(self.nodes)}"
        return self.const(FLOAT, shape, draw(key, count(shape), low, high),
                          name)

    def outputs(self):
        """In the order of the file."""
        return [node[0] for node in self.nodes if node[0] in self.ends]

    def part(self, end):
        """What one output needs."""
        nodes = {node[0]: node for node in self.nodes}
        needed, queue = set(), [end]
        while queue:
            name = queue.pop().split(":")[0]
            if name not in needed:
                needed.add(name)
                queue += nodes[name][2]
        part = Graph(self.name)
        part.nodes = [node for node in self.nodes if node[0] in needed]
        part.ends = [end]
        return part

    def unfused(self):
        """The same with a node for each of what grappler has fused."""
        plain = Graph(self.name)
        plain.ends = self.ends
        for name, op, inputs, attributes in self.nodes:
            if "fused_ops" not in attributes:
                plain.nodes.append((name, op, inputs, attributes))
                continue
            kept = dict(attributes)
            ops, at = kept.pop("fused_ops"), name + "/product"
            kept["alpha"] = kept.pop("leakyrelu_alpha", 0.2)
            plain.nodes.append((at, UNFUSED[op], inputs[:2], kept))
            for i, step in enumerate(ops):
                last = name if step == ops[-1] else f"{name}/{i}"
                more = inputs[2:] if step in ("BiasAdd", "FusedBatchNorm") \
                    else []
                plain.nodes.append((last, step, [at, *more],
                                    {**kept, **STEPS.get(step, {})}))
                at = last
        return plain

    # ---- files ----

    def write_pb(self, path):
        """A frozen GraphDef."""
        with open(path, "wb") as file:
            for name, op, inputs, attributes in self.nodes:
                node = field(1, name) + field(2, op)
                node += b"".join(field(3, i) for i in inputs)
                for key, value in attributes.items():
                    node += field(5, field(1, key) +
                                  field(2, value_bytes(value)))
                file.write(field(1, node))

    def write_tfjs(self, path):
        """NAME.json, and NAME.bin beside it."""
        consts = [(name, attributes["value"]) for name, op, _, attributes
                  in self.nodes if op == "Const"]
        nodes = [{"name": name, "op": op, "input": inputs,
                  "attr": {k: value_json(v) for k, v in attributes.items()}}
                 for name, op, inputs, attributes in self.nodes]
        weights = [{"name": name, "shape": value.shape,
                    "dtype": DTYPE[value.dtype]} for name, value in consts]
        values = path[:-len("json")] + "bin"
        model = {"format": "graph-model", "modelTopology":
                 {"node": nodes, "versions": {"producer": 27}},
                 "weightsManifest": [{"paths": [os.path.basename(values)],
                                      "weights": weights}]}
        with open(path, "w") as file:
            json.dump(model, file)
        with open(values, "wb") as file:
            file.write(b"".join(value.data for _, value in consts))
