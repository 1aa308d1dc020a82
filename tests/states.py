#!/usr/bin/env python3
"""states.py - values that a network keeps from call to call.

Three networks as people run them on streams: a keyword network of a GRU, a
temporal convolution with its last frames in a buffer, a decoder block with a
cache of keys and values. Each is written twice: as one call with states, and
unrolled, all calls in one network. `eval` over the calls, also as native code,
and the listings that `verify` and `simulate` run must have the unrolled one's
values; a state lies where it lay, in active memory where it fits there.
"""
import array
import json
import os
import struct
import sys

import scratch
from checked import BAD, check, ramp, run
from truthlib import npy_write
from write_onnx import Net

FOLDER = scratch.folder("amphora-states-")
CALLS = 5


def path_of(name):
    return os.path.join(FOLDER, name)


def numbers_of(path):
    with open(path, "rb") as file:
        data = file.read()
    start = 10 + struct.unpack("<H", data[8:10])[0]
    return array.array("f", data[start:])


class Weights:
    """The same constants in both forms, made once in each network."""

    def __init__(self, net):
        self.net, self.known = net, {}

    def get(self, name, shape, numbers):
        if name not in self.known:
            self.known[name] = self.net.floats(shape, numbers)
        return self.known[name]


# ---- the networks: one step, from an input and states to a result and states

def gru_step(net, w, x, states):
    """Gates of one matrix product each, as exports of a cell have them."""
    (h,) = states
    n_in, n = 10, 16

    def gate(name, inner):
        a = net.node("MatMul", [x, w.get(f"w{name}", [n_in, n],
                                         ramp(n_in * n, 0.31, 0.5))])
        b = net.node("MatMul", [inner, w.get(f"u{name}", [n, n],
                                             ramp(n * n, 0.17, 0.4))])
        both = net.node("Add", [a, b])
        return net.node("Add", [both, w.get(f"b{name}", [n],
                                            ramp(n, 0.43, 0.2))])

    z = net.node("Sigmoid", [gate("z", h)])
    r = net.node("Sigmoid", [gate("r", h)])
    new = net.node("Tanh", [gate("n", net.node("Mul", [r, h]))])
    less = net.node("Sub", [h, new])
    h = net.node("Add", [new, net.node("Mul", [z, less])])
    y = net.node("MatMul", [h, w.get("head", [n, 4], ramp(n * 4, 0.29))])
    return y, [h]


def tcn_step(net, w, x, states):
    """Two dilated convolutions, each with the frames before in a buffer."""
    kept, c = [], 6
    for i, (state, dilation) in enumerate(zip(states, (1, 2))):
        frames = 2 * dilation
        line = net.node("Concat", [state, x], axis=2)
        kernel = w.get(f"k{i}", [c, c, 3], ramp(c * c * 3, 0.37, 0.4))
        x = net.node("Relu", [net.node("Conv", [line, kernel],
                                       dilations=[dilation])])
        kept.append(net.node("Slice", [line, net.whole(1),
                                       net.whole(frames + 1), net.whole(2)]))
    return x, kept


def decoder_step(net, w, x, states):
    """Attention to the last 8 tokens, with a cache of each head's keys and
    values; then a feed-forward layer."""
    keys, values = states
    d, heads, length = 16, 2, 8
    each = d // heads

    def linear(name, at, k, n):
        return net.node("MatMul", [at, w.get(name, [k, n],
                                             ramp(k * n, 0.31, 0.5))])

    def by_head(at):
        at = net.node("Reshape", [at, net.whole(1, 1, heads, each)])
        return net.node("Transpose", [at], perm=[0, 2, 1, 3])

    q, k, v = (by_head(linear(f"w{i}", x, d, d)) for i in "qkv")
    kept = []
    for cache, new in ((keys, k), (values, v)):
        both = net.node("Concat", [cache, new], axis=2)
        kept.append(net.node("Slice", [both, net.whole(1),
                                       net.whole(length + 1), net.whole(2)]))
    turned = net.node("Transpose", [kept[0]], perm=[0, 1, 3, 2])
    scores = net.node("Mul", [net.node("MatMul", [q, turned]),
                              w.get("scale", [], [each ** -0.5])])
    share = net.node("Softmax", [scores], axis=3)
    y = net.node("Transpose", [net.node("MatMul", [share, kept[1]])],
                 perm=[0, 2, 1, 3])
    y = net.node("Reshape", [y, net.whole(1, 1, d)])
    y = net.node("Add", [x, linear("wo", y, d, d)])
    inner = net.node("Relu", [linear("w1", y, d, 2 * d)])
    return net.node("Add", [y, linear("w2", inner, 2 * d, d)]), kept


NETS = {
    "gru": (gru_step, [1, 10], [[1, 16]]),
    "tcn": (tcn_step, [1, 6, 1], [[1, 6, 2], [1, 6, 4]]),
    "decoder": (decoder_step, [1, 1, 16], [[1, 2, 8, 8], [1, 2, 8, 8]]),
}


def count(shape):
    n = 1
    for dim in shape:
        n *= dim
    return n


def one_call(name):
    step, shape, states = NETS[name]
    net = Net([("x", shape)] + [(f"past{i}", s) for i, s in enumerate(states)],
              name)
    y, kept = step(net, Weights(net), "x",
                   [f"past{i}" for i in range(len(states))])
    net.node("Identity", [y], "y")
    net.output("y")
    for i, state in enumerate(kept):
        net.node("Identity", [state], f"present{i}")
        net.output(f"present{i}")
    return net.write(path_of(name + ".onnx"))


def unrolled(name, starts):
    step, shape, states = NETS[name]
    net = Net([(f"x{i}", shape) for i in range(CALLS)], name)
    weights = Weights(net)
    kept = [net.floats(s, v) for s, v in zip(states, starts)]
    for i in range(CALLS):
        y, kept = step(net, weights, f"x{i}", kept)
        net.node("Identity", [y], f"y{i}")
        net.output(f"y{i}")
    return net.write(path_of(name + "_unrolled.onnx"))


def expected(name, given, starts):
    """The values of y in all calls, by the network of all calls."""
    path, each = unrolled(name, starts), len(given) // CALLS
    shape = NETS[name][1]
    arguments = ["eval", path, "-o", path_of(name + "_out")]
    for i in range(CALLS):
        part = given[i * each:(i + 1) * each]
        npy_write(path_of(f"x{i}.npy"), shape, struct.pack(f"<{each}f", *part))
        arguments += ["--input", path_of(f"x{i}.npy")]
    code, said = run(*arguments)
    check(f"{name}: unrolled", code == 0, said)
    y = array.array("f")
    for i in range(CALLS):
        y += numbers_of(path_of(f"{name}_out/y{i}.npy"))
    return y


def write_all(path, shape, numbers):
    npy_write(path, shape, struct.pack(f"<{len(numbers)}f", *numbers))
    return path


def try_network(name, machines, start):
    step, shape, states = NETS[name]
    path = one_call(name)
    given = ramp(CALLS * count(shape), 0.41)
    starts = [ramp(count(s), 0.23) if start else [0] * count(s)
              for s in states]
    y = expected(name, given, starts)
    if BAD:
        return
    x = write_all(path_of(name + "_x.npy"), [CALLS] + shape, given)
    want = write_all(path_of(name + "_y.npy"), [len(y)], y)
    common = ["--calls", str(CALLS), "--input", x, "--expect", want]
    for i, s in enumerate(states):
        file = write_all(path_of(f"{name}_start{i}.npy"), s, starts[i])
        common += ["--state", f"past{i}=present{i}" +
                   ("," + file if start else "")]
    words = f"{name}, {'given' if start else 'zero'} start"
    code, said = run("eval", path, *common)
    check(f"{words}: eval", code == 0, said)
    code, said = run("eval", path, *common, "--native")
    if "was built without" not in said:
        check(f"{words}: native", code == 0, said)
    for machine in machines:
        code, said = run("verify", path, "-t", machine, *common)
        check(f"{words}: {machine}", code == 0, said)


def regions(path):
    with open(path, encoding="utf-8") as file:
        image = json.load(file)["amphora"]["image"]
    return ({r["name"]: r for r in image["inputs"]},
            {r["name"]: r for r in image["outputs"]})


def listings():
    """Where states lie; what `simulate` makes of a listing by itself."""
    path, calls = path_of("decoder.onnx"), ["--calls", str(CALLS)]
    x = path_of("decoder_x.npy")
    for i, (options, memory) in enumerate(
            (([], "am"), (["--set", "memories.am.size=464"], "inputs"))):
        out = path_of(f"listing{i}")
        code, said = run("compile", path, "-t", "vision-npu", "--state",
                         "auto", "-o", out, *options)
        check(f"decoder in {memory}: compile", code == 0, said)
        if code:
            continue
        inputs, outputs = regions(f"{out}/decoder.json")
        where = [r["memory"] for n, r in inputs.items() if "past" in n]
        check(f"decoder: its states lie in {memory}", where == [memory] * 2,
              str(where))
        same = [inputs[f"past{k}"]["offset"] ==
                outputs[f"present{k}"]["offset"] for k in range(2)]
        check("... and their next values where they do",
              memory != "am" or all(same), str(inputs))
        code, said = run("simulate", f"{out}/decoder.json", "-t", "vision-npu",
                         *calls, "--input", x, "-o", out, *options)
        check("... simulate", code == 0, said)
        got = numbers_of(f"{out}/y.npy")
        want = numbers_of(path_of("decoder_y.npy"))[-len(got):]
        check("... has the values of the last call",
              max(abs(a - b) for a, b in zip(got, want)) < 1e-4,
              f"{got} {want}")


def on_engines():
    """The cell's gates: no layer of the host, its state in active memory."""
    out = path_of("gru")
    code, said = run("compile", path_of("gru.onnx"), "-t", "vision-npu",
                     "--state", "auto", "--json", "-o", out)
    check("gru: compile", code == 0, said)
    if code == 0:
        found = json.loads(said)
        check("gru: no layer of the host", found["host_layers"] == [], said)
        check("gru: only its ends move", found["ddr_moved_bytes"] == 14, said)


def cache_of_codes():
    """A cache of codes that grows at one end, as quantised decoders have it:
    one head after the other in what comes in."""
    quant = {"type": "int8", "scale": 2.0 ** -7, "zero": 0}
    nodes = []

    def add(op, name, reads, dims, **attributes):
        nodes.append({"op": op, "name": name, "reads": reads, "writes": [
            {"name": name, "shape": dims, "quant": quant}],
            **({"attributes": attributes} if attributes else {})})

    add("input", "x", [], [1, 1, 64])
    add("input", "past", [], [1, 4, 32, 16])
    add("reshape", "heads", ["x"], [1, 1, 4, 16], shape=[1, 1, 4, 16])
    add("transpose", "new", ["heads"], [1, 4, 1, 16], perm=[0, 2, 1, 3])
    add("concat", "both", ["past", "new"], [1, 4, 33, 16], axis=[2])
    add("slice", "present", ["both"], [1, 4, 32, 16], axis=[2], begin=[1],
        end=[33])
    for name, end, state in (("whole", "both", ()),
                             ("kept", "present", ("--state", "past=present"))):
        path = path_of(f"codes_{name}.json")
        some = [n for n in nodes if end == "present" or n["op"] != "slice"]
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"amphora": 1, "name": name, "constants": [],
                       "nodes": some, "outputs": [end]}, file)
        code, said = run("verify", path, "-t", "vision-npu", *state)
        check(f"cache of codes, {name}: verify",
              code == 0 and "all equal bit for bit" in said, said)
        check(f"cache of codes, {name}: no layer of the host",
              " on an engine, not the host" not in said, said)


def words():
    """Offers, errors, the JSON of a graph."""
    path = path_of("decoder.onnx")
    code, said = run("eval", path)
    check("states are offered", code == 0 and "--state auto" in said, said)
    for setting, why in (("past0=nothing", "no output is called"),
                         ("nothing=present0", "no input is called"),
                         ("past0=y", "a state keeps its shape")):
        code, said = run("eval", path, "--state", setting)
        check(f"--state {setting}", code == 1 and why in said, said)
    code, said = run("show", path, "--state", "auto", "--emit", "json", "-o",
                     path_of("decoder.json"))
    check("JSON", code == 0, said)
    code, said = run("eval", path_of("decoder.json"), "--calls",
                     str(CALLS), "--input", path_of("decoder_x.npy"),
                     "--expect", path_of("decoder_y.npy"))
    check("... read again has the same states", code == 0, said)
    code, said = run("verify", path, "-t", "vision-npu", "--state", "auto",
                     "--images", "2")
    check("--images", code == 2 and "states" in said, said)


def main():
    for name in NETS:
        for start in (False, True):
            try_network(name, ["vision-npu", "ring-npu", "xdnn-v3-96"], start)
        try_network(name, ["stage-npu", "tile-npu", "cpu-x86-64"], False)
    listings()
    on_engines()
    cache_of_codes()
    words()
    sys.exit(1 if BAD else 0)


if __name__ == "__main__":
    main()
