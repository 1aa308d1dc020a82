"""onnx.py - a network of graphs.py as an ONNX file, as far as its operators are
ONNX's: what amphora reads of it must compute the same."""
import os
import struct
import sys

from . import graphs

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from truthlib import field  # noqa: E402

OPSET = 13
ACTS = {"relu": "Relu", "leaky": "LeakyRelu", "sigmoid": "Sigmoid",
        "tanh": "Tanh", "elu": "Elu", "celu": "Celu", "softplus": "Softplus",
        "softsign": "Softsign", "hard_sigmoid": "HardSigmoid",
        "hard_swish": "HardSwish", "mish": "Mish", "abs": "Abs", "neg": "Neg",
        "erf": "Erf", "sin": "Sin", "cos": "Cos", "atan": "Atan",
        "asinh": "Asinh", "floor": "Floor", "ceil": "Ceil", "round": "Round",
        "sign": "Sign", "threshold": "ThresholdedRelu"}
BOUNDS = {"relu6": (0, 6)}
ELTS = {"add": "Add", "mul": "Mul", "max": "Max", "min": "Min", "sub": "Sub"}
REDUCED = {"mean": "ReduceMean", "max": "ReduceMax", "min": "ReduceMin",
           "l1": "ReduceL1", "l2": "ReduceL2", "squares": "ReduceSumSquare",
           "log_sum_exp": "ReduceLogSumExp"}
FLOAT, INT64 = 1, 7


class Unknown(Exception):
    """ONNX has no such operator, or this file does not write it."""


class Writer:
    def __init__(self, net):
        self.net, self.body, self.made = net, b"", 0
        self.shapes = graphs.shapes_of(net)
        self.constants, self.by_node = graphs.constants_of(net, self.shapes)
        self.blob = graphs.weights()

    def node(self, op, reads, out, **attributes):
        node = b"".join(field(1, r) for r in reads) + field(2, out)
        node += field(3, out) + field(4, op)
        for key, v in attributes.items():
            if isinstance(v, float):
                inner = b"\x15" + struct.pack("<f", v) + field(20, 1)
            elif isinstance(v, str):
                inner = field(4, v) + field(20, 3)
            elif isinstance(v, int):
                inner = field(3, v) + field(20, 2)
            else:
                inner = b"".join(field(8, i) for i in v) + field(20, 7)
            node += field(5, field(1, key) + inner)
        self.body += field(1, node)
        return out

    def tensor(self, shape, data, kind):
        self.made += 1
        name = f"k{self.made}"
        dims = b"".join(field(1, d) for d in shape)
        self.body += field(5, dims + field(2, kind) + field(8, name) +
                           field(9, data))
        return name

    def floats(self, *numbers, shape=None):
        return self.tensor([len(numbers)] if shape is None else shape,
                           struct.pack(f"<{len(numbers)}f", *numbers), FLOAT)

    def whole(self, *numbers):
        return self.tensor([len(numbers)],
                           struct.pack(f"<{len(numbers)}q", *numbers), INT64)

    def constant(self, node, role, shape=None):
        index = self.by_node[node["name"]][role]
        made = self.constants[index]
        if made["kind"] != "f32":
            raise Unknown(made["kind"])
        at = made["offset"]
        data = self.blob[at:at + 4 * graphs.count(made["shape"])]
        return self.tensor(shape or made["shape"], data, FLOAT)

    def value(self, number, name):
        dims = b"".join(field(1, field(1, d)) for d in self.shapes[name])
        self.body += field(number, field(1, name) + field(2, field(
            1, field(1, FLOAT) + field(2, dims))))

    def act(self, node, x, out):
        a = node["attributes"]
        kind = a["act"]
        if kind in BOUNDS or kind == "clip":
            low, high = BOUNDS.get(kind) or (a["lo"], a["hi"])
            return self.node("Clip", [x, self.floats(low, shape=[]),
                                      self.floats(high, shape=[])], out)
        if kind == "prelu":
            rank = len(self.shapes[node["name"]])
            slope = self.constant(node, "slope", [
                self.shapes[node["name"]][1]] + [1] * (rank - 2))
            return self.node("PRelu", [x, slope], out)
        if kind not in ACTS:
            raise Unknown(kind)
        more = {}
        if kind in ("leaky", "elu", "celu", "threshold", "hard_sigmoid"):
            more["alpha"] = float(a["alpha"])
        if kind == "hard_sigmoid":
            more["beta"] = float(a["lo"])
        return self.node(ACTS[kind], [x], out, **more)


def window(a, of=""):
    out = {"kernel_shape": a[of + "kernel"],
           "strides": a.get(of + "stride", [1, 1])}
    out["pads"] = a.get(of + "pad", [0, 0]) + a.get(of + "pad_end", [0, 0])
    return out


def conv(w, node, reads, out):
    a = node["attributes"]
    reads = reads + [w.constant(node, "weight")]
    if not node.get("no_bias"):
        reads.append(w.constant(node, "bias"))
    w.node("Conv" if node["op"] == "conv" else "ConvTranspose", reads, out,
           group=a.get("groups", 1), dilations=a.get("dilation", [1, 1]),
           **window(a))


def pool(w, node, reads, out):
    a = node["attributes"]
    kind = {"max": "MaxPool", "avg": "AveragePool"}[a["kind"]]
    if a.get("global"):
        w.node("Global" + kind, reads, out)
        return
    more = {"count_include_pad": a.get("count_pad", 0)} if (
        a["kind"] == "avg") else {}
    w.node(kind, reads, out, ceil_mode=a.get("ceil", 0), **window(a), **more)


def inner(w, node, reads, out):
    flat = w.node("Flatten", reads, out + "_flat", axis=1)
    w.node("Gemm", [flat, w.constant(node, "weight"),
                    w.constant(node, "bias")], out, transB=1)


def normal(w, node, reads, out):
    channels = w.shapes[out][1]
    one, zero = w.floats(*[1] * channels), w.floats(*[0] * channels)
    w.node("BatchNormalization", reads + [
        one, zero, w.constant(node, "mean"), w.constant(node, "var")], out,
           epsilon=float(node["attributes"]["eps"]))


def scale(w, node, reads, out):
    shape = [1, w.shapes[out][1], 1, 1]
    x = w.node("Mul", reads + [w.constant(node, "scale", shape)], out + "_ax")
    w.node("Add", [x, w.constant(node, "bias", shape)], out)


def eltwise(w, node, reads, out):
    a = node["attributes"]
    if a["kind"] not in ELTS or "coeff" in a:
        raise Unknown(a["kind"])
    for k, other in enumerate(reads[1:-1]):
        reads = [w.node(ELTS[a["kind"]], [reads[0], other], f"{out}_{k}"),
                 *reads[1:]]
    w.node(ELTS[a["kind"]], [reads[0], reads[-1]], out)


def cut(w, node, reads, out):
    a = node["attributes"]
    w.node("Slice", reads + [w.whole(a.get("begin", 0)), w.whole(a["end"]),
                             w.whole(a.get("axis", 0))], out)


def lrn(w, node, reads, out):
    a = node["attributes"]
    if a.get("within_channel"):
        raise Unknown("within a channel")
    w.node("LRN", reads, out, size=a["size"], alpha=float(a["alpha"]),
           beta=float(a["beta"]), bias=float(a["k"]))


def upsample(w, node, reads, out):
    factor = node["attributes"]["factor"]
    w.node("Resize", reads + ["", w.floats(1, 1, *factor)], out,
           mode="nearest", nearest_mode="floor",
           coordinate_transformation_mode="asymmetric")


def pads(w, node, reads, out):
    a = node["attributes"]
    w.node("Pad", reads + [
        w.whole(0, 0, *a.get("before", [0, 0]), 0, 0,
                *a.get("behind", [0, 0])),
        w.floats(a.get("value", 0), shape=[])], out)


def reshape(w, node, reads, out):
    w.node("Reshape", reads + [w.whole(*node["attributes"]["shape"])], out)


def reduce(w, node, reads, out):
    a = node["attributes"]
    axes = [i for i in range(8) if a.get("axes", 0) >> i & 1]
    if a["kind"] == "sum":
        w.node("ReduceSum", reads + [w.whole(*axes)], out, keepdims=1)
    elif a["kind"] in REDUCED and axes:
        w.node(REDUCED[a["kind"]], reads, out, axes=axes, keepdims=1)
    else:
        raise Unknown(a["kind"])


def plain(op, *names):
    """Of a node whose attributes have the same names."""
    def write(w, node, reads, out):
        w.node(op, reads, out, **{name: node["attributes"].get(name, 0)
                                  for name in names})
    return write


LAYERS = {"conv": conv, "deconv": conv, "pool": pool, "fc": inner,
          "bn": normal, "scale": scale, "eltwise": eltwise,
          "concat": plain("Concat", "axis"), "slice": cut, "lrn": lrn,
          "softmax": plain("Softmax", "axis"), "upsample": upsample,
          "pad": pads, "reshape": reshape,
          "transpose": plain("Transpose", "perm"), "reduce": reduce,
          "matmul": plain("MatMul"), "identity": plain("Identity")}


def model(net):
    """The file's bytes; Unknown where it cannot be said in ONNX."""
    if net.get("data") != "file":
        raise Unknown("weights without a file")
    w = Writer(net)
    for node in net["nodes"]:
        if node["op"] == "input":
            w.value(11, node["name"])
            continue
        if node.get("quant"):
            raise Unknown("codes")
        acts = node["attributes"].get("act") and node["op"] != "act"
        out = node["name"] + "_sum" if acts else node["name"]
        w.shapes[out] = w.shapes[node["name"]]
        if node["op"] == "act":
            w.act(node, node["reads"][0], out)
        elif node["op"] in LAYERS:
            LAYERS[node["op"]](w, node, node["reads"], out)
        else:
            raise Unknown(node["op"])
        if acts:
            w.act(node, out, node["name"])
    for name in net["outputs"]:
        w.value(12, name)
    return field(1, 8) + field(7, w.body + field(2, "farm")) + field(
        8, field(1, "") + field(2, OPSET))
