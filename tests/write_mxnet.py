"""write_mxnet.py - MXNet symbols from Python, and .params in every layout.

A Symbol is a list of nodes, each behind its inputs; attributes are written as
strings, as MXNet does. Ages of the JSON: "attrs" with three numbers an input,
"attr", and "param" with two.
"""
import json
import struct

MAGIC = {1: 0xF993FAC8, 2: 0xF993FAC9, 3: 0xF993FACA}
# What layers read beside their first input.
WEIGHTS = {"Convolution": ("weight", "bias"),
           "Deconvolution": ("weight", "bias"),
           "FullyConnected": ("weight", "bias"),
           "BatchNorm": ("gamma", "beta", "moving_mean", "moving_var")}


class Symbol:
    def __init__(self):
        self.nodes = []  # (op, name, inputs as (node, output), attributes)
        self.heads = []
        self.inside = {}  # by node, the Symbol that it holds

    def add(self, op, name, inputs, attributes):
        self.nodes.append((op, name, inputs,
                           {k: str(v) for k, v in attributes.items()}))
        return len(self.nodes) - 1, 0

    def input(self, *shape, name="data"):
        return self.add("null", name, [], {"__shape__": tuple(shape)})

    def node(self, op, *inputs, name=None, weights=(), **attributes):
        """`weights`: variables behind the inputs, by default those of the
        layer; their names begin with its own."""
        name = name or f"{op.strip('_').lower()}{len(self.nodes)}"
        suffixes = weights or WEIGHTS.get(op, ())
        no_bias = str(attributes.get("no_bias", op == "Deconvolution"))
        inputs = list(inputs)
        for suffix in suffixes:
            if suffix != "bias" or no_bias == "False":
                inputs.append(self.add("null", f"{name}_{suffix}", [], {}))
        return self.add(op, name, inputs, attributes)

    def end(self, *arguments, **attributes):
        self.heads.append(self.node(*arguments, **attributes))
        return self.heads[-1]

    def model(self, age="attrs"):
        width = 2 if age == "param" else 3
        nodes = []
        for i, (op, name, inputs, attributes) in enumerate(self.nodes):
            node = {"op": op, "name": name,
                    "inputs": [[*i, 0][:width] for i in inputs]}
            if age == "param":
                node["backward_source_id"] = -1
            if attributes or age == "param":
                node[age] = attributes
            if i in self.inside:
                node["subgraphs"] = [self.inside[i].model(age)]
            nodes.append(node)
        return {"nodes": nodes, "arg_nodes":
                [i for i, n in enumerate(self.nodes) if n[0] == "null"],
                "heads": [[*head, 0][:width] for head in self.heads]}

    def write_json(self, path, age="attrs"):
        with open(path, "w") as file:
            json.dump(self.model(age), file)


def write_params(path, arrays, version=2):
    """arrays: (name, shape, bytes of float32, or of int8 where a 5 is behind
    them); names as "arg:x"."""
    parts = [struct.pack("<3Q", 0x112, 0, len(arrays))]
    for _, shape, data, *kind in arrays:
        if version:
            parts.append(struct.pack("<I", MAGIC[version]))
        if version > 1:
            parts.append(struct.pack("<i", 0))
        wide = "q" if version else "I"
        parts.append(struct.pack(f"<I{len(shape)}{wide}", len(shape), *shape))
        parts += [struct.pack("<3i", 1, 0, *(kind or [0])), data]
    parts.append(struct.pack("<Q", len(arrays)))
    for name, *_ in arrays:
        parts.append(struct.pack("<Q", len(name)) + name.encode())
    with open(path, "wb") as file:
        file.writelines(parts)
