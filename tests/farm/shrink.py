"""shrink.py - smaller networks and machines that fail in the same way.

Greedy: each change that makes a network or a machine smaller is kept if the
failure stays, until none does.
"""
import copy
import time

from . import graphs

TRIALS = 400
SECONDS = 150
SIMPLER = {"kernel": [1, 1], "stride": [1, 1], "dilation": [1, 1],
           "pad": [0, 0], "pad_end": [0, 0], "groups": 1, "ceil": 0,
           "count_pad": 0, "pool_ceil": 0, "pool_count_pad": 0,
           "factor": [1, 1], "before": [0, 0], "behind": [0, 0], "value": 0}
DROPPED = ("act", "coeff", "alpha", "lo", "hi")


def trimmed(net):
    """Without what no output needs."""
    wanted = set(net["outputs"])
    for node in reversed(net["nodes"]):
        if node["name"] in wanted:
            wanted.update(node["reads"])
    net["nodes"] = [n for n in net["nodes"] if n["name"] in wanted]
    return net


def smaller_networks(net):
    """One change each."""
    yield from fewer_outputs(net)
    yield from fewer_nodes(net)
    yield from smaller_shapes(net)
    yield from simpler_layers(net)


def changed(net, k, change):
    out = copy.deepcopy(net)
    change(out["nodes"][k])
    return trimmed(out)


def fewer_outputs(net):
    for name in net["outputs"] if len(net["outputs"]) > 1 else ():
        out = copy.deepcopy(net)
        out["outputs"] = [n for n in net["outputs"] if n != name]
        yield trimmed(out)
    for name in [r for n in net["nodes"] for r in n["reads"]]:
        out = copy.deepcopy(net)
        out["outputs"] = [name]
        yield trimmed(out)


def renamed(net, old, new):
    for node in net["nodes"]:
        node["reads"] = [new if r == old else r for r in node["reads"]]
    net["outputs"] = list(dict.fromkeys(
        new if n == old else n for n in net["outputs"]))


def fewer_nodes(net):
    """A layer becomes an input, goes, or loses an operand."""
    try:
        shapes = graphs.shapes_of(net)
    except graphs.Misfit:
        return
    kinds = {n["name"]: n["op"] for n in net["nodes"]}
    for k, node in reversed(list(enumerate(net["nodes"]))):
        if node["op"] in ("input", "constant"):
            continue

        def as_input(n, shape=shapes[node["name"]]):
            n.update(op="input", reads=[], attributes={}, shape=shape)
            n.pop("no_bias", None)
        if node["name"] not in net["outputs"]:
            yield changed(net, k, as_input)
        for other in node["reads"]:
            if node["name"] in net["outputs"] and kinds[other] in (
                    "input", "constant"):
                continue
            out = copy.deepcopy(net)
            del out["nodes"][k]
            renamed(out, node["name"], other)
            yield trimmed(out)
        for i in range(len(node["reads"]) if len(node["reads"]) > 1 else 0):
            def without(n, i=i):
                del n["reads"][i]
                n["attributes"].pop("coeff", None)
            if node["op"] != "eltwise" or len(node["reads"]) > 2:
                yield changed(net, k, without)


def less(number):
    return sorted({1, number // 4, number // 2, number - 1} -
                  {0, number}) if number > 1 else []


def smaller_shapes(net):
    for k, node in enumerate(net["nodes"]):
        for i in range(len(node.get("shape", ()))):
            for size in less(node["shape"][i]):
                def set_shape(n, i=i, size=size):
                    n["shape"] = list(n["shape"])
                    n["shape"][i] = size
                yield changed(net, k, set_shape)
        for key in ("out_c", "out"):
            for size in less(node["attributes"].get(key, 0)):
                def set_size(n, key=key, size=size):
                    n["attributes"][key] = size
                yield changed(net, k, set_size)
        if len(node.get("shape", ())) == 4 and node["shape"][1] > 1:
            yield all_channels(net, node["shape"][1], node["shape"][1] // 2)
    counts = {n["attributes"].get("out_c") for n in net["nodes"]} - {None}
    for number in counts:
        for size in less(number):
            yield all_channels(net, number, size)
    for old, new in ((2, 1), (4, 2), (8, 4), (9, 7), (16, 8), (32, 16)):
        yield all_sides(net, old, new)


def all_channels(net, old, new):
    """Wherever so many channels are told."""
    out = copy.deepcopy(net)
    for node in out["nodes"]:
        if len(node.get("shape", ())) == 4 and node["shape"][1] == old:
            node["shape"] = [node["shape"][0], new, *node["shape"][2:]]
        for key in "out_c", "groups", "out":
            if node["attributes"].get(key) == old:
                node["attributes"][key] = new
    return trimmed(out)


def all_sides(net, old, new):
    out = copy.deepcopy(net)
    for node in out["nodes"]:
        if len(node.get("shape", ())) == 4:
            node["shape"] = node["shape"][:2] + [
                new if side >= old else side for side in node["shape"][2:]]
    return trimmed(out)


def simpler_layers(net):
    for k, node in enumerate(net["nodes"]):
        a = node["attributes"]
        for key in DROPPED:
            if key in a and not (key == "act" and node["op"] == "act"):
                yield changed(net, k, lambda n, key=key: n["attributes"].pop(
                    key))
        for key, value in SIMPLER.items():
            if key in a and a[key] != value:
                def simple(n, key=key, value=value):
                    n["attributes"][key] = value
                yield changed(net, k, simple)
        if "kernel" in a and (a.get("pad"), a.get("kernel")) != (
                [0, 0], [1, 1]):
            yield changed(net, k, lambda n: n["attributes"].update(
                {key: SIMPLER[key] for key in ("kernel", "pad", "pad_end")}))
        if not node.get("no_bias") and node["op"] in ("conv", "deconv"):
            yield changed(net, k, lambda n: n.update(no_bias=True))
        if node.get("quant"):
            out = copy.deepcopy(net)
            for n in out["nodes"]:
                n.pop("quant", None)
            yield out
    if net.get("data") != "seeded":
        yield {**net, "data": "seeded"}


def paths(value, path=()):
    """Of all keys and items, the outer ones first."""
    items = (value.items() if isinstance(value, dict) else
             enumerate(value) if isinstance(value, list) else ())
    for key, inner in list(items):
        yield path + (key,)
        yield from paths(inner, path + (key,))


def smaller_machines(machine):
    for path in sorted(paths(machine), key=len):
        out = copy.deepcopy(machine)
        inner = out
        for key in path[:-1]:
            inner = inner[key]
        del inner[path[-1]]
        if path[0] not in ("extends",) and path != ("machine", "name"):
            yield out


def shrunk(net, machine, fails):
    """The smallest that still fails; fails(net, machine) says whether."""
    trials, end = [TRIALS], time.monotonic() + SECONDS

    def tried(a, b):
        trials[0] = 0 if time.monotonic() > end else trials[0] - 1
        try:
            graphs.shapes_of(a)
        except (graphs.Misfit, KeyError, IndexError, TypeError, ValueError):
            return False
        return trials[0] > 0 and fails(a, b)
    while trials[0] > 0:
        now = (net, machine)
        net = improved(net, smaller_networks, lambda n, m=machine:
                       tried(n, m))
        machine = improved(machine, smaller_machines, lambda m, n=net:
                           tried(n, m))
        if (net, machine) == now:
            break
    return net, machine


def improved(value, smaller, fails):
    """Takes each change that works at once, and goes on from there."""
    found = True
    while found:
        found = False
        for candidate in smaller(value):
            if candidate != value and fails(candidate):
                value, found = candidate, True
                break
    return value
