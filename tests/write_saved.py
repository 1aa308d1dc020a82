"""write_saved.py - TensorFlow SavedModels from Python, for the tests.

In: a Graph of write_tf.py. Out: the same network as Keras 2 saves it: weights
are variables in a bundle, the layers a function that a function calls, which
the signature's node calls; and a function that restores the variables. Needs
nothing but Python.
"""
import os
import struct

from truthlib import field
from write_tf import FLOAT, Shape, Type, number, value_bytes

POLYNOMIAL, MAGIC = 0x82F63B78, 0xdb4775248b80fb57
STRING = 7
# What an operator calls its results, where that is not one "output".
RESULTS = {"FusedBatchNormV3": ["y", "batch_mean", "batch_variance",
                                "reserve_space_1", "reserve_space_2",
                                "reserve_space_3"],
           "AddV2": ["z"], "Relu": ["activations"], "MatMul": ["product"],
           "ReadVariableOp": ["value"], "RestoreV2": ["tensors"],
           "VarHandleOp": ["resource"]}


class Func(str):
    """A function as an attribute."""


# ---- the table of variables ----

def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (POLYNOMIAL if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return (crc >> 15 | crc << 17) + 0xa282ead8 & 0xFFFFFFFF


def block(entries, every=2):
    """Keys with what they share with the key before, from places to start."""
    out, starts, before = b"", [], b""
    for i, (key, value) in enumerate(entries):
        shared = 0
        if i % every:
            shared = len(os.path.commonprefix([before, key]))
        else:
            starts.append(len(out))
        out += varint(shared) + varint(len(key) - shared) + \
            varint(len(value)) + key[shared:] + value
        before = key
    return out + struct.pack(f"<{len(starts) + 1}I", *starts, len(starts))


def table(entries, in_block=3):
    out, index = b"", []

    def add(data):
        nonlocal out
        place = varint(len(out)) + varint(len(data))
        out += data + b"\0" + struct.pack("<I", masked_crc(data + b"\0"))
        return place

    for i in range(0, len(entries), in_block):
        some = entries[i:i + in_block]
        index.append((some[-1][0], add(block(some))))
    places = add(block([])) + add(block(index))
    return out + places.ljust(40, b"\0") + struct.pack("<Q", MAGIC)


def write_bundle(path, values, shards=2):
    """{key: (shape, float32 bytes)}; the shards take turns."""
    data = [b""] * shards
    entries = [(b"", field(1, shards))]
    for i, (key, (shape, values_of)) in enumerate(sorted(values.items())):
        shard = i % shards
        dims = b"".join(field(2, field(1, dim)) for dim in shape)
        entries.append((key.encode(), field(1, FLOAT) + field(2, dims) + (
            field(3, shard) if shard else b"") + field(4, len(data[shard])) +
            field(5, len(values_of)) +
            b"\x35" + struct.pack("<I", masked_crc(values_of))))
        data[shard] += values_of
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".index", "wb") as file:
        file.write(table(entries))
    for i, part in enumerate(data):
        with open(f"{path}.data-{i:05}-of-{shards:05}", "wb") as file:
            file.write(part)


# ---- the file ----

def attr_bytes(value):
    return field(10, field(1, value)) if isinstance(value, Func) \
        else value_bytes(value)


def node_bytes(name, op, inputs=(), **attributes):
    out = field(1, name) + field(2, op)
    out += b"".join(field(3, i) for i in inputs)
    for key, value in attributes.items():
        out += field(5, field(1, key) + field(2, attr_bytes(value)))
    return out


def function(name, args, nodes, results):
    """results: {name: where it is}."""
    signature = field(1, name)
    signature += b"".join(field(2, field(1, arg)) for arg in args)
    signature += b"".join(field(3, field(1, key)) for key in results)
    return field(1, signature) + b"".join(field(3, n) for n in nodes) + \
        b"".join(field(4, field(1, key) + field(2, value))
                 for key, value in results.items())


def texts(values):
    """A Const of strings, as an AttrValue's bytes."""
    return field(8, number(1, STRING) +
                 field(2, field(2, number(1, len(values)))) +
                 b"".join(field(8, v) for v in values))


def text_const(name, values):
    return field(1, name) + field(2, "Const") + \
        field(5, field(1, "value") + field(2, texts(values)))


class Saved:
    """The parts of a SavedModel; a test may change them before it is
    written."""

    def __init__(self, graph):
        self.graph = graph
        ops = {name: op for name, op, _, _ in graph.nodes}
        self.inputs = [n for n in graph.nodes if n[1] == "Placeholder"]
        self.values = {}  # by variable
        self.body = []
        for name, op, inputs, attributes in graph.nodes:
            if op == "Placeholder":
                continue
            if op == "Const" and attributes["dtype"] == FLOAT:
                tensor = attributes["value"]
                self.values[name] = (tensor.shape, tensor.data)
                self.body.append(node_bytes(name, "ReadVariableOp",
                                            [f"{name}_resource"]))
                continue
            self.body.append(node_bytes(
                name, op, [self.inner(i, ops) for i in inputs], **attributes))
        self.results = {f"identity_{i}": self.inner(end, ops)
                        for i, end in enumerate(graph.outputs())}
        self.key = {name: f"layer-{i}/{name}/.ATTRIBUTES/VARIABLE_VALUE"
                    for i, name in enumerate(self.values)}

    @staticmethod
    def inner(text, ops):
        """node:3 of a graph as node:name:0 of a function."""
        name, _, i = text.partition(":")
        op = ops[name]
        if op == "Placeholder":
            return f"{name}_arg"
        names = RESULTS.get("ReadVariableOp" if op == "Const" else op)
        if op == "Const" and not name.startswith("const_"):
            names = RESULTS["ReadVariableOp"]
        i = int(i or 0)
        return f"{name}:{names[i]}:0" if names else f"{name}:output:{i}"

    def arguments(self):
        return [f"{n[0]}_arg" for n in self.inputs] + \
            [f"{name}_resource" for name in self.values]

    def functions(self):
        args = self.arguments()
        call = node_bytes("PartitionedCall", "PartitionedCall",
                          args + ["^nothing"], f=Func("layers"))
        outer = {key: f"PartitionedCall:output:{i}"
                 for i, key in enumerate(self.results)}
        keys = [self.key[name] for name in self.values]
        restore = [text_const("keys", keys),
                   text_const("slices", [""] * len(keys)),
                   node_bytes("all", "RestoreV2", [
                       "file", "keys:output:0", "slices:output:0"])]
        for i, name in enumerate(self.values):
            restore += [
                node_bytes(f"Identity_{i}", "Identity", [f"all:tensors:{i}"]),
                node_bytes(f"Assign_{i}", "AssignVariableOp",
                           [f"{name}_to", f"Identity_{i}:output:0"])]
        return [function("layers", args, self.body, self.results),
                function("wrapper", args, [
                    node_bytes("nothing", "NoOp"), call], outer),
                function("restore", ["file"] + [f"{n}_to" for n in self.values],
                         restore, {"done": "file"})]

    def main(self):
        names = [n[0] for n in self.inputs]
        nodes = [node_bytes(name, op, inputs, **attributes)
                 for name, op, inputs, attributes in self.inputs]
        nodes += [node_bytes(name, "VarHandleOp", dtype=Type(FLOAT),
                             shape=Shape(shape))
                  for name, (shape, _) in self.values.items()]
        return nodes + [
            node_bytes("StatefulPartitionedCall", "StatefulPartitionedCall",
                       names + list(self.values), f=Func("wrapper")),
            node_bytes("prefix", "Placeholder", dtype=Type(STRING)),
            node_bytes("StatefulPartitionedCall_1", "StatefulPartitionedCall",
                       ["prefix"] + list(self.values), f=Func("restore"))]

    def signatures(self):
        ends = b"".join(
            field(1, field(1, n[0]) + field(2, field(1, n[0] + ":0")))
            for n in self.inputs)
        ends += b"".join(
            field(2, field(1, key) + field(
                2, field(1, f"StatefulPartitionedCall:{i}")))
            for i, key in enumerate(self.results))
        return [("__saved_model_init_op", b""), ("serving_default", ends)]

    def write(self, folder, functions=None):
        os.makedirs(folder, exist_ok=True)
        library = b"".join(field(1, f) for f in functions or self.functions())
        ops = b"".join(
            field(1, field(1, op) + b"".join(field(3, field(1, name))
                                             for name in names))
            for op, names in RESULTS.items())
        meta = field(1, field(2, ops) + field(4, "serve"))
        meta += field(2, b"".join(field(1, n) for n in self.main()) +
                      field(2, library))
        meta += field(3, field(1, "prefix:0") +
                      field(3, "StatefulPartitionedCall_1"))
        for key, signature in self.signatures():
            meta += field(5, field(1, key) + field(2, signature))
        with open(os.path.join(folder, "saved_model.pb"), "wb") as file:
            file.write(field(1, 1) + field(2, meta))
        write_bundle(os.path.join(folder, "variables/variables"),
                     {self.key[name]: value
                      for name, value in self.values.items()})
