#!/usr/bin/env python3
"""steps.py - recurrent layers whose steps engines run.

LSTM, GRU (reset before and after the products) and RNN, forwards, backwards and
both, with states, of several images, alone and one behind the other. On
vision-npu none is left to the host, and the simulated listing has the values of
the reference evaluation, which runs such a layer as one routine; on a machine
without the operators, or with lengths or too many steps, the host has them.
"""
import os
import sys

import scratch
from checked import BAD, check, ramp, run_json
from write_onnx import Net

FOLDER = scratch.folder("amphora-steps-")
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
TOLERANCE = 1e-5


def layer(net, kind, x, inputs, units, ways=1, bias=True, lengths="", state=(),
          **attributes):
    """The name of its first result, [steps, ways, images, units]."""
    wide = GATES[kind] * units
    reads = [x,
             net.floats([ways, wide, inputs],
                        ramp(ways * wide * inputs, 0.317, 0.6)),
             net.floats([ways, wide, units],
                        ramp(ways * wide * units, 0.173, 0.5)),
             net.floats([ways, 2 * wide], ramp(2 * ways * wide, 0.431, 0.4))
             if bias else "", lengths, *state]
    while not reads[-1]:
        reads.pop()
    return net.node(kind, reads, hidden_size=units, **attributes)


def one(kind, steps=5, images=1, inputs=6, units=8, ways=1, states=0,
        bias=True, **attributes):
    """One layer, whose states, if it has any, are inputs of the network."""
    given = [("x", [steps, images, inputs])]
    given += [(f"s{i}", [ways, images, units]) for i in range(states)]
    net = Net(given)
    y = layer(net, kind, "x", inputs, units, ways, bias,
              state=[f"s{i}" for i in range(states)], **attributes)
    net.node("Relu", [y], "y")
    net.output("y")
    return net


def results(ways=1, **attributes):
    """All three results of an LSTM, each of which the network gives."""
    net = Net([("x", [4, 2, 6])])
    w = [net.floats([ways, 32, 6], ramp(ways * 192, 0.317, 0.6)),
         net.floats([ways, 32, 8], ramp(ways * 256, 0.173, 0.5))]
    net.node("LSTM", ["x", *w], outs=["all", "h", "c"], hidden_size=8,
             **attributes)
    for name in ("all", "h", "c"):
        net.output(name)
    return net


def stacked():
    """Two of both directions, then a product for each step, as readers of text
    have them."""
    net, at, wide = Net([("x", [6, 1, 10])]), "x", 10
    for units in (8, 5):
        at = layer(net, "LSTM", at, wide, units, 2, direction="bidirectional")
        at = net.node("Transpose", [at], perm=[0, 2, 1, 3])
        at = net.node("Reshape", [at, net.whole(6, 1, 2 * units)])
        wide = 2 * units
    net.node("MatMul", [at, net.floats([wide, 7], ramp(wide * 7))], "y")
    net.output("y")
    return net


ENGINES = {
    "rnn": one("RNN"),
    "rnn of relu": one("RNN", activations=["Relu"]),
    "gru": one("GRU"),
    "gru, reset after": one("GRU", linear_before_reset=1),
    "gru of a state": one("GRU", states=1, linear_before_reset=1),
    "gru without bias": one("GRU", bias=False, linear_before_reset=1),
    "lstm": one("LSTM"),
    "lstm backwards": one("LSTM", direction="reverse"),
    "lstm both ways": one("LSTM", ways=2, direction="bidirectional"),
    "lstm of states": one("LSTM", states=2, images=3),
    "lstm, hard": one("LSTM", activations=["HardSigmoid", "Tanh", "Tanh"]),
    "lstm of one step": one("LSTM", steps=1),
    "lstm, three results": results(),
    "lstm both ways, three results": results(2, direction="bidirectional"),
    "two both ways": stacked(),
    "clipped": one("LSTM", clip=0.5),
}
HOST = {
    "of many steps": one("LSTM", steps=200, inputs=2, units=2),
}


def routines(name, net, machine):
    """How many layers of the host are routines, and whether all is well."""
    path = os.path.join(FOLDER, "net.onnx")
    net.write(path)
    status, made = run_json("verify", path, "-t", machine, "--tolerance",
                       str(TOLERANCE))
    check(f"{name} on {machine}", status == 0 and not made.get("violations"),
          f"exit {status}, {made}")
    _, made = run_json("compile", path, "-t", machine, "-o", FOLDER)
    return sum(h["kind"] == "routine" for h in made.get("host_layers", ()))


def results_share():
    """Steps are computed once, however many results are read."""
    path = os.path.join(FOLDER, "net.onnx")
    for ways in (1, 2):
        way = {"direction": "bidirectional"} if ways == 2 else {}
        products = []
        for net in (results(ways, **way),
                    one("LSTM", 4, 2, ways=ways, bias=False, **way)):
            net.write(path)
            _, made = run_json("compile", path, "-t", "vision-npu", "-o", FOLDER)
            products.append(made.get("engine_products"))
        check(f"three results of {ways}, products of one",
              products[0] and products[0] == products[1], str(products))


def main():
    results_share()
    for name, net in ENGINES.items():
        n = routines(name, net, "vision-npu")
        check(f"{name}: no routine", n == 0, f"{n} of them")
    for name, net in HOST.items():
        n = routines(name, net, "vision-npu")
        check(f"{name}: a routine", n == 1, f"{n} of them")
    n = routines("lstm", ENGINES["lstm"], "xdnn-v3-96")
    check("without the operators: a routine", n == 1, f"{n} of them")
    print(f"{len(BAD)} wrong")
    return 1 if BAD else 0


if __name__ == "__main__":
    sys.exit(main())
