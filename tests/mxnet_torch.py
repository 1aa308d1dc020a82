"""mxnet_torch.py - an interpreter of MXNet's symbols on torch, op by op.

Numerics are torch's; what each operator means is written down here from
MXNet's documentation, apart from amphora's reader. Weights that are not given
are drawn in the shapes that the operators ask for. Attributes are strings.
"""
import ast
import json

import numpy
import torch
import torch.nn.functional as F

from truthlib import count, draw


class Strange(Exception):
    """An operator or a setting that is not known here."""


class Node:
    def __init__(self, json_node):
        self.op, self.name = json_node["op"], json_node["name"]
        self.inputs = [tuple(i[:2]) for i in json_node["inputs"]]
        self.attrs = {}
        for key in ("param", "attr", "attrs"):
            self.attrs.update(json_node.get(key) or {})

    def get(self, key, default):
        text = self.attrs.get(key, default)
        if isinstance(text, str) and text in ("true", "false"):
            return text == "true"
        try:
            return ast.literal_eval(text) if isinstance(text, str) else text
        except (ValueError, SyntaxError):
            return text


class Interpreter:
    def __init__(self, path, seed):
        with open(path) as file:
            symbol = json.load(file)
        self.nodes = [Node(n) for n in symbol["nodes"]]
        self.heads = [tuple(h[:2]) for h in symbol["heads"]]
        self.seed, self.weights = seed, {}  # name: (shape, bytes)

    def weight(self, at, node, i, suffix, shape, low, high):
        """Input i of a node, which older files leave out."""
        name = self.nodes[node.inputs[i][0]].name if i < len(node.inputs) \
            else f"{node.name}_{suffix}"
        kind = "aux" if suffix.startswith("moving") else "arg"
        key = f"{kind}:{name}"
        if key not in self.weights:
            self.weights[key] = (list(shape), draw(
                f"{self.seed}/{name}", count(shape), low, high))
        return torch.from_numpy(numpy.frombuffer(
            self.weights[key][1], "<f4").copy()).reshape(shape)

    def run(self, inputs):
        """inputs: name: array. The values of all heads."""
        needed, queue = set(), [h[0] for h in self.heads]
        while queue:
            at = queue.pop()
            if at not in needed:
                needed.add(at)
                queue += [i for i, _ in self.nodes[at].inputs]
        values = {}
        for at in sorted(needed):
            node = self.nodes[at]
            if node.op == "null":
                if node.name in inputs:
                    values[at, 0] = torch.from_numpy(inputs[node.name])
                continue
            if node.op not in OPS:
                raise Strange(node.op)
            args = [values.get(i) for i in node.inputs]
            out = OPS[node.op](self, node, *args[:LIMIT.get(node.op)])
            for i, value in enumerate(out if isinstance(out, tuple)
                                      else (out,)):
                values[at, i] = value
        return [values[head].numpy() for head in self.heads]


# ---- operators: the interpreter, the node, its inputs ----

def pair(node, key, default):
    value = node.get(key, default)
    return tuple(value) or default


def convolution(run, node, x, *_):
    kernel = pair(node, "kernel", None)
    filters, groups = node.get("num_filter", 0), node.get("num_group", 1)
    channels = x.shape[1] // groups
    most = (6 / (channels * count(kernel))) ** 0.5
    w = run.weight(None, node, 1, "weight", [filters, channels, *kernel],
                   -most, most)
    b = None if node.get("no_bias", False) else \
        run.weight(None, node, 2, "bias", [filters], -.3, .3)
    return F.conv2d(x, w, b, pair(node, "stride", (1, 1)),
                    pair(node, "pad", (0, 0)),
                    pair(node, "dilate", (1, 1)), groups)


def deconvolution(run, node, x, *_):
    kernel = pair(node, "kernel", None)
    filters, groups = node.get("num_filter", 0), node.get("num_group", 1)
    w = run.weight(None, node, 1, "weight",
                   [x.shape[1], filters // groups, *kernel], -.3, .3)
    b = None if node.get("no_bias", True) else \
        run.weight(None, node, 2, "bias", [filters], -.3, .3)
    return F.conv_transpose2d(x, w, b, pair(node, "stride", (1, 1)),
                              pair(node, "pad", (0, 0)),
                              pair(node, "adj", (0, 0)), groups)


def fully_connected(run, node, x, *_):
    hidden = node.get("num_hidden", 0)
    rows = x.reshape(x.shape[0], -1) if node.get("flatten", True) else x
    most = (3 / rows.shape[-1]) ** 0.5
    w = run.weight(None, node, 1, "weight", [hidden, rows.shape[-1]],
                   -most, most)
    b = None if node.get("no_bias", False) else \
        run.weight(None, node, 2, "bias", [hidden], -.3, .3)
    return F.linear(rows, w, b)


def batch_norm(run, node, x, *_):
    n = x.shape[node.get("axis", 1)]
    gamma, beta, mean, var = (
        run.weight(None, node, i + 1, name, [n], *bounds) for i, (name, bounds)
        in enumerate((("gamma", (.7, 1.3)), ("beta", (-.2, .2)),
                      ("moving_mean", (-.2, .2)), ("moving_var", (.5, 1.5)))))
    if node.get("fix_gamma", True):
        gamma = torch.ones_like(gamma)
    last = x.movedim(node.get("axis", 1), 1)
    out = F.batch_norm(last, mean, var, gamma, beta, False, 0,
                       node.get("eps", 1e-3))
    return out.movedim(1, node.get("axis", 1))


def activation(run, node, x):
    return {"relu": F.relu, "sigmoid": torch.sigmoid, "tanh": torch.tanh,
            "softrelu": F.softplus,
            "softsign": F.softsign}[node.get("act_type", None)](x)


def leaky(run, node, x, *_):
    kind, slope = node.get("act_type", "leaky"), node.get("slope", 0.25)
    if kind == "prelu":
        return F.prelu(x, run.weight(None, node, 1, "gamma", [x.shape[1]],
                                     .1, .4))
    return {"leaky": lambda: F.leaky_relu(x, slope),
            "elu": lambda: F.elu(x, slope), "selu": lambda: F.selu(x),
            "gelu": lambda: F.gelu(x)}[kind]()


def pooling(run, node, x):
    kind = node.get("pool_type", "max")
    if node.get("global_pool", False):
        return x.amax((2, 3), True) if kind == "max" else x.mean((2, 3), True)
    kernel = pair(node, "kernel", None)
    stride, pad = pair(node, "stride", (1, 1)), pair(node, "pad", (0, 0))
    full = node.get("pooling_convention", "valid") == "full"
    if kind == "max":
        return F.max_pool2d(x, kernel, stride, pad, ceil_mode=full)
    return F.avg_pool2d(x, kernel, stride, pad, ceil_mode=full,
                        count_include_pad=node.get("count_include_pad", True))


def lrn(run, node, x):
    return F.local_response_norm(x, node.get("nsize", 5),
                                 node.get("alpha", 1e-4),
                                 node.get("beta", 0.75), node.get("knorm", 2))


def pad(run, node, x):
    width = node.get("pad_width", ())
    amounts = [width[i + k] for i in range(len(width) - 2, -1, -2)
               for k in (0, 1)]
    return F.pad(x, amounts, value=node.get("constant_value", 0))


def upsampling(run, node, x):
    return x.repeat_interleave(node.get("scale", 1), 2) \
        .repeat_interleave(node.get("scale", 1), 3)


def softmax_output(run, node, x, *_):
    if node.get("multi_output", False):
        return F.softmax(x, 1)
    if node.get("preserve_shape", False):
        return F.softmax(x, -1)
    return F.softmax(x.reshape(x.shape[0], -1), -1).reshape(x.shape)


def softmax_activation(run, node, x):
    if node.get("mode", "instance") == "channel":
        return F.softmax(x, 1)
    return F.softmax(x.reshape(x.shape[0], -1), -1).reshape(x.shape)


def reshape(run, node, x):
    shape, out, at = node.get("shape", ()), [], 0
    for want in shape:
        if want in (0, -1) or want > 0:
            out.append(x.shape[at] if want == 0 else want)
            at += 1
        elif want == -2:
            out += list(x.shape[at:])
            at = x.dim()
        elif want == -3:
            out.append(x.shape[at] * x.shape[at + 1])
            at += 2
        else:
            raise Strange(f"reshape to {shape}")
    return x.reshape(out)


def slice_axis(run, node, x):
    axis = node.get("axis", 0)
    where = [slice(None)] * x.dim()
    where[axis] = slice(node.get("begin", 0), node.get("end", None))
    return x[tuple(where)]


def split(run, node, x):
    parts = torch.chunk(x, node.get("num_outputs", 1), node.get("axis", 1))
    if node.get("squeeze_axis", False):
        parts = [p.squeeze(node.get("axis", 1)) for p in parts]
    return tuple(parts)


def reduce(how):
    def run_reduce(run, node, x):
        axis = node.get("axis", None)
        axis = (axis,) if isinstance(axis, int) else axis
        axis = axis or tuple(range(x.dim()))
        if node.get("exclude", False):
            axis = tuple(i for i in range(x.dim()) if i not in axis)
        out = how(x, axis, node.get("keepdims", False))
        return out if out.dim() else out.reshape(1)
    return run_reduce


def scalar(how):
    return lambda run, node, x: how(x, float(node.get("scalar", 0)))


def unary(how):
    return lambda run, node, x, *_: how(x)


def binary(how):
    return lambda run, node, x, y: how(x, y)


def total(run, node, *xs):
    return sum(xs[1:], xs[0])


OPS = {
    "Convolution": convolution, "Deconvolution": deconvolution,
    "FullyConnected": fully_connected, "BatchNorm": batch_norm,
    "Activation": activation, "LeakyReLU": leaky, "Pooling": pooling,
    "LRN": lrn, "Pad": pad, "pad": pad, "UpSampling": upsampling,
    "SoftmaxOutput": softmax_output, "Softmax": softmax_output,
    "SoftmaxActivation": softmax_activation,
    "softmax": lambda run, node, x: F.softmax(x, node.get("axis", -1)),
    "Reshape": reshape, "reshape": reshape,
    "Flatten": unary(lambda x: x.reshape(x.shape[0], -1)),
    "transpose": lambda run, node, x: x.permute(node.get("axes", ())),
    "slice_axis": slice_axis, "SliceChannel": split, "split": split,
    "Concat": lambda run, node, *xs: torch.cat(xs, node.get("dim", 1)),
    "mean": reduce(torch.mean), "sum": reduce(torch.sum),
    "max": reduce(torch.amax), "min": reduce(torch.amin),
    "clip": lambda run, node, x: x.clip(node.get("a_min", 0),
                                        node.get("a_max", 0)),
    "_mul_scalar": scalar(lambda x, s: x * s),
    "_plus_scalar": scalar(lambda x, s: x + s),
    "_minus_scalar": scalar(lambda x, s: x - s),
    "_rminus_scalar": scalar(lambda x, s: s - x),
    "_div_scalar": scalar(lambda x, s: x / s),
    "_power_scalar": scalar(lambda x, s: x ** s),
    "_maximum_scalar": scalar(lambda x, s: x.clip(min=s)),
    "_minimum_scalar": scalar(lambda x, s: x.clip(max=s)),
    "elemwise_add": binary(torch.add), "_Plus": binary(torch.add),
    "broadcast_add": binary(torch.add), "elemwise_sub": binary(torch.sub),
    "broadcast_sub": binary(torch.sub), "elemwise_mul": binary(torch.mul),
    "broadcast_mul": binary(torch.mul), "elemwise_div": binary(torch.div),
    "broadcast_div": binary(torch.div),
    "broadcast_maximum": binary(torch.maximum),
    "broadcast_minimum": binary(torch.minimum),
    "add_n": total, "ElementWiseSum": total,
    "relu": unary(F.relu), "sigmoid": unary(torch.sigmoid),
    "tanh": unary(torch.tanh), "exp": unary(torch.exp),
    "log": unary(torch.log), "sqrt": unary(torch.sqrt),
    "abs": unary(torch.abs), "negative": unary(torch.neg),
    "square": unary(torch.square), "Dropout": unary(lambda x: x),
    "identity": unary(lambda x: x), "_copy": unary(lambda x: x),
    "BlockGrad": unary(lambda x: x), "Cast": unary(lambda x: x),
    "LinearRegressionOutput": unary(lambda x: x),
    "LogisticRegressionOutput": unary(torch.sigmoid),
    "expand_dims": lambda run, node, x: x.unsqueeze(node.get("axis", 0)),
}
# Labels of losses, and weights, are not read as tensors.
LIMIT = {"SoftmaxOutput": 1, "Softmax": 1, "LinearRegressionOutput": 1,
         "LogisticRegressionOutput": 1}
