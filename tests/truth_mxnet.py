#!/usr/bin/env python3
"""truth_mxnet.py - MXNet's symbols against torch, operator by operator.

No MXNet can be installed; mxnet_torch.py interprets the symbols on torch's
operators. The small ones are made here, with drawn weights in all layouts of
.params and all ages of the JSON; torch's values are recorded in
tests/truth/mxnet-*.values and compared in every run. --long computes them
anew, and compares the symbols of ../shared/data with drawn weights.
usage: truth_mxnet.py [--long | --record] [NAME...]
"""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from truthlib import (Refused, Table, count, draw, npy_write,  # noqa: E402
                      asked, outline, run_jobs, scratch, verify, with_record)
from write_mxnet import Symbol, write_params  # noqa: E402

DATA = "../shared/data/mxnet/"


def convolutions(s):
    x = s.input(1, 4, 9, 10)
    for more in ({"kernel": (3, 3), "no_bias": False},
                 {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1),
                  "no_bias": True},
                 {"kernel": (3, 2), "stride": (1, 2), "pad": (0, 1)},
                 {"kernel": (3, 3), "dilate": (2, 2), "pad": (2, 2)},
                 {"kernel": (3, 3), "num_group": 2, "pad": (1, 1)}):
        s.end("Convolution", x, **{"num_filter": 6, "no_bias": False, **more})
    s.end("Convolution", x, num_filter=4, num_group=4, kernel=(3, 3),
          pad=(1, 1), no_bias=True)


def deconvolutions(s):
    x = s.input(1, 4, 5, 6)
    for more in ({"kernel": (4, 4), "stride": (2, 2), "pad": (1, 1)},
                 {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1),
                  "adj": (1, 1)},
                 {"kernel": (2, 2), "stride": (2, 2), "no_bias": False},
                 {"kernel": (4, 4), "stride": (2, 2), "pad": (1, 1),
                  "num_group": 2}):
        s.end("Deconvolution", x, num_filter=4, **more)


def norms(s):
    x = s.input(1, 5, 6, 7)
    s.end("BatchNorm", x)
    s.end("BatchNorm", x, fix_gamma=False)
    s.end("BatchNorm", x, fix_gamma="False", eps=1e-2, use_global_stats=True)
    s.end("BatchNorm", s.node("Convolution", x, num_filter=3, kernel=(1, 1),
                              no_bias=True), fix_gamma=True, eps=2e-5)
    s.end("BatchNorm", x, axis=3, fix_gamma=False)
    s.end("LRN", x, nsize=3, alpha=0.5, beta=0.6, knorm=1.5)


def pools(s):
    x = s.input(1, 3, 10, 13)
    for kind in ("max", "avg"):
        for more in ({"kernel": (2, 2), "stride": (2, 2)},
                     {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1)},
                     {"kernel": (3, 3), "stride": (2, 2),
                      "pooling_convention": "full"},
                     {"kernel": (3, 2), "stride": (3, 1)},
                     {"kernel": (3, 3), "pad": (1, 1)}):
            s.end("Pooling", x, pool_type=kind, **more)
        s.end("Pooling", x, pool_type=kind, global_pool=True, kernel=(7, 7))
    s.end("Pooling", x, pool_type="avg", kernel=(3, 3), stride=(2, 2),
          pad=(1, 1), count_include_pad=False)


def activations(s):
    x = s.node("_mul_scalar", s.input(1, 3, 4, 5), scalar=5)
    for kind in ("relu", "sigmoid", "tanh", "softrelu", "softsign"):
        s.end("Activation", x, act_type=kind)
    for kind in ("leaky", "elu", "selu", "gelu"):
        s.end("LeakyReLU", x, act_type=kind, slope=0.3)
    s.end("LeakyReLU", x, act_type="leaky")
    s.end("LeakyReLU", x, act_type="prelu", weights=("gamma",))
    s.end("clip", x, a_min=0, a_max=6)
    s.end("clip", x, a_min=-1.5, a_max=2)
    for op in ("relu", "sigmoid", "tanh", "exp", "abs", "negative", "square"):
        s.end(op, x)
    positive = s.node("_plus_scalar", s.node("abs", x), scalar=0.5)
    for op in ("log", "sqrt"):
        s.end(op, positive)
    s.end("_power_scalar", positive, scalar=1.5)


def elements(s):
    x = s.input(1, 3, 4, 5)
    y = s.node("exp", x)
    for op in ("elemwise_add", "elemwise_sub", "elemwise_mul", "elemwise_div",
               "_Plus", "broadcast_maximum", "broadcast_minimum"):
        s.end(op, x, y)
    mean = s.node("mean", y, axis=(2, 3), keepdims=True)
    for op in ("broadcast_add", "broadcast_sub", "broadcast_mul",
               "broadcast_div"):
        s.end(op, x, mean)
    for op in ("_mul_scalar", "_plus_scalar", "_minus_scalar",
               "_rminus_scalar", "_div_scalar", "_maximum_scalar",
               "_minimum_scalar"):
        s.end(op, x, scalar=0.4)
    s.end("add_n", x, y, x)
    s.end("ElementWiseSum", x, y)


def shapes(s):
    x = s.input(1, 6, 4, 8)
    s.end("Concat", x, s.node("exp", x), dim=1)
    s.end("Concat", x, s.node("exp", x), dim=2)
    s.end("Flatten", x)
    s.end("Reshape", x, shape=(0, -1))
    s.end("Reshape", x, shape=(0, 3, 8, 8))
    s.end("Reshape", x, shape=(0, -1, 4))
    s.end("Reshape", x, shape=(0, -3, 0))
    s.end("Reshape", x, shape=(-2,))
    s.end("transpose", x, axes=(0, 2, 3, 1))
    s.end("slice_axis", x, axis=1, begin=1, end=4)
    s.end("slice_axis", x, axis=3, begin=-3, end="None")
    node, _ = s.node("SliceChannel", x, num_outputs=3, axis=1)
    s.heads += [(node, 2), (node, 0)]
    s.end("Pad", x, mode="constant", constant_value=1.5,
          pad_width=(0, 0, 0, 0, 1, 2, 0, 3))
    s.end("UpSampling", x, scale=2, sample_type="nearest", num_args=1)
    for op in ("mean", "sum", "max"):
        s.end(op, x, axis=(2, 3), keepdims=True)
        s.end(op, x, axis=1)
    s.end("mean", x, axis=(0, 1), exclude=True)
    s.end("Dropout", x, p=0.5)
    s.end("expand_dims", s.node("Flatten", x), axis=1)


def heads(s):
    x = s.input(1, 6, 4, 5)
    flat = s.node("FullyConnected", x, num_hidden=7, no_bias=False)
    s.end("SoftmaxOutput", flat, weights=("label",))
    s.end("softmax", x, axis=1)
    s.end("softmax", flat)
    s.end("SoftmaxActivation", x, mode="channel")
    s.end("SoftmaxOutput", x, multi_output=True, weights=("label",))
    s.end("FullyConnected", s.node("Flatten", x), num_hidden=3, no_bias=True)
    s.end("LinearRegressionOutput", flat, weights=("label",))
    rows = s.node("Reshape", x, shape=(0, 6, 20))
    s.end("FullyConnected", rows, num_hidden=3, no_bias=False, flatten=False)


MODELS = {f.__name__: f for f in (
    convolutions, deconvolutions, norms, pools, activations, elements, shapes,
    heads)}
# Whole symbols, and the shape of their data.
# (an image of 224 x 224 normalised by itself takes twice the machine's memory)
MACHINE = ["--set", "memories.am.size=16MiB"]
WHOLE = [("cifar_resnet20_v1-symbol.json", [1, 3, 32, 32]),
         ("resnet-152-symbol.json", [1, 3, 224, 224]),
         ("save_000800-symbol.json", [1, 784])]


def reads(path, weights, shape, folder, table, title, record=None,
          force=False, values=None):
    """amphora on a symbol and its weights against values in order."""
    options = ["--weights", weights, "--shape",
               "data=" + "x".join(map(str, shape))]
    layers, _, outs = outline(path, *options)
    sizes = [count(shape) for _, shape in outs]
    if values and [len(v) // 4 for v in values] != sizes:
        raise Refused(f"{sizes} values, but torch has "
                      f"{[len(v) // 4 for v in values]}")
    if record:
        values = with_record(record, sizes, values, force)
    npy_write(folder + "/in.npy", shape,
              draw("input data", count(shape), -1, 1))
    files = []
    for i, ((_, dims), value) in enumerate(zip(outs, values)):
        files.append(f"{folder}/out{i}.npy")
        npy_write(files[-1], dims, value)
    table.add(title, layers, sum(sizes),
              verify(path, [folder + "/in.npy"], files, *options, *MACHINE))


def interpret(path, name, shape):
    """Values of the heads, and the weights that were drawn for them."""
    import numpy
    from mxnet_torch import Interpreter
    run = Interpreter(path, name)
    data = numpy.frombuffer(draw("input data", count(shape), -1, 1), "<f4")
    values = run.run({"data": data.reshape(shape).copy()})
    return ([numpy.ascontiguousarray(v, "<f4").tobytes() for v in values],
            [(key, *value) for key, value in run.weights.items()])


def weights_of(name):
    return f"tests/truth/mxnet-{name}.params"


def small(table, name, record, long):
    """Every age of the JSON with its layout of .params."""
    s = Symbol()
    MODELS[name](s)
    shape = eval(s.nodes[0][3]["__shape__"])
    recorded = f"tests/truth/mxnet-{name}.values"
    with scratch() as folder:
        ages = [("attrs", 2), ("attr", 1), ("param", 0), ("attrs", 3)]
        for age, version in ages if long else ages[:1]:
            path = f"{folder}/{age}-symbol.json"
            s.write_json(path, age)
            values, params = None, weights_of(name)
            if long:
                values, arrays = interpret(path, name, shape)
                params = f"{folder}/{age}.params"
                write_params(params, arrays, version)
            if record and age == "attrs" and version == 2:
                write_params(weights_of(name), arrays, version)
            reads(path, params, shape, folder, table,
                  f"mxnet-{name} {age} V{version}", recorded,
                  record and age == "attrs", values)


def write_logits(path, target):
    """Without the softmax at the end, which saturates with drawn weights."""
    with open(path) as file:
        symbol = json.load(file)
    for i, head in enumerate(symbol["heads"]):
        node = symbol["nodes"][head[0]]
        if "oftmax" in node["op"]:
            symbol["heads"][i] = node["inputs"][0]
    with open(target, "w") as file:
        json.dump(symbol, file)


def whole(table, file, shape):
    with scratch() as folder:
        path, params = f"{folder}/{file}", folder + "/w.params"
        write_logits(DATA + file, path)
        values, arrays = interpret(path, file, shape)
        write_params(params, arrays)
        reads(path, params, shape, folder, table, file, values=values)


def main():
    record, long, wanted = asked()
    table = Table("torch" if long else "torch's recorded values")
    jobs = [(name, small, (name, record, long)) for name in MODELS]
    if long and os.path.exists(DATA):
        jobs += [(file, whole, (file, shape)) for file, shape in WHOLE]
    run_jobs(table, jobs, wanted)
    return table.close()


if __name__ == "__main__":
    sys.exit(main())
