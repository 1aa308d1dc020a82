"""gemmini_nets.py - small networks of int8 codes around 0, as amphora's JSON.

Weights are drawn; scales are such that results use their range.
"""
import json
import os
import random
import struct


class Net:
    """Layers in order; a tensor is (name, shape, scale)."""

    def __init__(self, name, seed=1):
        self.name, self.nodes, self.consts = name, [], []
        self.data = bytearray()
        self.rng = random.Random(seed)

    def codes(self, n, most):
        return [self.rng.randint(-most, most) for _ in range(n)]

    def const(self, kind, shape, values, scale):
        letter = {"i8": "b", "i32": "i"}[kind]
        self.data += bytes(-len(self.data) % 4)
        self.consts.append({"kind": kind, "shape": shape,
                            "offset": len(self.data),
                            "mul0": [scale] * shape[0]})
        self.data += struct.pack(f"<{len(values)}{letter}", *values)
        return len(self.consts) - 1

    def node(self, op, name, reads, shape, scale, attributes=None,
             constants=None, zero=0):
        node = {"op": op, "name": name, "reads": reads,
                "writes": [{"name": name, "shape": shape,
                            "quant": {"type": "int8", "scale": scale,
                                      "zero": zero, "round": "even"}}]}
        if attributes:
            node["attributes"] = attributes
        if constants:
            node["constants"] = constants
            node["no_bias"] = "bias" not in constants
        self.nodes.append(node)
        return name, shape, scale

    def input(self, c, h, w, scale=0.05, zero=0):
        return self.node("input", "x", [], [1, c, h, w], scale, zero=zero)

    def weights(self, shape, scale, bias=True):
        """Constants, and how large a sum of products is."""
        fan = 1
        for extent in shape[1:]:
            fan *= extent
        out = {"weight": self.const("i8", shape,
                                    self.codes(shape[0] * fan, 127), 0.02)}
        if bias:
            out["bias"] = self.const("i32", shape[:1],
                                     self.codes(shape[0], 3000), scale * 0.02)
        return out, 0.02 * scale * 82 * fan ** 0.5

    def conv(self, name, x, out_c, k=1, s=1, p=0, act=None, groups=1, d=1,
             kw=None, bias=True, scale=None):
        source, (_, c, h, w), unit = x
        kernel, spread = (k, kw or k), []
        for extent, window in zip((h, w), kernel):
            spread.append((extent + 2 * p - d * (window - 1) - 1) // s + 1)
        constants, most = self.weights([out_c, c // groups, *kernel], unit,
                                       bias)
        attributes = {"out_c": [out_c], "groups": [groups], "kernel": kernel,
                      "stride": [s, s], "dilation": [d, d], "pad": [p, p],
                      "pad_end": [p, p]}
        if act:
            attributes["act"] = act
        return self.node("conv", name, [source], [1, out_c, *spread],
                         scale or most, attributes, constants)

    def deconv(self, name, x, out_c, k, s, p, act=None):
        """Transposed; weights by input channels, one scale an output's."""
        source, (_, c, h, w), unit = x
        size = [(extent - 1) * s + k - 2 * p for extent in (h, w)]
        constants, most = self.weights([c, out_c, k, k], unit, False)
        self.consts[-1]["mul1"] = [self.consts[-1].pop("mul0")[0]] * out_c
        constants["bias"] = self.const("i32", [out_c],
                                       self.codes(out_c, 3000), unit * 0.02)
        attributes = {"out_c": [out_c], "groups": [1], "kernel": [k, k],
                      "stride": [s, s], "dilation": [1, 1], "pad": [p, p],
                      "pad_end": [p, p]}
        if act:
            attributes["act"] = act
        return self.node("deconv", name, [source], [1, out_c, *size], most,
                         attributes, constants)

    def max_pool(self, name, x, k, s, p=0):
        source, (_, c, h, w), unit = x
        size = [(extent + 2 * p - k) // s + 1 for extent in (h, w)]
        return self.node("pool", name, [source], [1, c, *size], unit,
                         {"kind": "max", "kernel": [k, k], "stride": [s, s],
                          "pad": [p, p], "pad_end": [p, p]})

    def mean(self, name, x):
        source, (_, c, _, _), unit = x
        return self.node("pool", name, [source], [1, c, 1, 1], unit / 2,
                         {"kind": "avg", "global": [1]})

    def fc(self, name, x, out):
        source, shape, unit = x
        taps = 1
        for extent in shape[1:]:
            taps *= extent
        constants, most = self.weights([out, taps], unit)
        return self.node("fc", name, [source], [1, out], most,
                         {"out": [out]}, constants)

    def add(self, name, a, b, act=None, scale=None):
        attributes = {"kind": "add"}
        if act:
            attributes["act"] = act
        return self.node("eltwise", name, [a[0], b[0]], a[1],
                         scale or (a[2] + b[2]) * 0.8, attributes)

    def concat(self, name, *parts):
        shape = list(parts[0][1])
        shape[1] = sum(part[1][1] for part in parts)
        return self.node("concat", name, [part[0] for part in parts], shape,
                         parts[0][2], {"axis": [1]})

    def write(self, folder, *outputs):
        with open(os.path.join(folder, self.name + ".bin"), "wb") as file:
            file.write(self.data)
        path = os.path.join(folder, self.name + ".json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"amphora": 1, "name": self.name,
                       "weights": self.name + ".bin",
                       "constants": self.consts, "nodes": self.nodes,
                       "outputs": [name for name, _, _ in outputs]}, file)
        return path


def one(name, size, layer):
    """A network of an input and what `layer` makes of it."""
    net = Net(name)
    out = layer(net, net.input(*size))
    return lambda folder: net.write(folder, out)


def networks():
    """Names and what writes them."""
    def layer(name, size, make):
        return name, one(name, size, make)
    return dict((
        layer("odd", (5, 6, 6), lambda n, x: n.conv("c", x, 19, 3, 1, 1, "relu")),
        layer("wide", (64, 28, 28), lambda n, x: n.conv("c", x, 64, 3, 1, 1)),
        layer("point", (32, 28, 28), lambda n, x: n.conv("c", x, 64, 1, 2, 0, bias=False)),
        layer("stride", (32, 29, 27), lambda n, x: n.conv("c", x, 40, 3, 2, 1)),
        layer("apart", (24, 19, 17), lambda n, x: n.conv("c", x, 40, 3, 1, 2, d=2)),
        layer("rows", (8, 12, 9), lambda n, x: n.conv("c", x, 20, 5, 1, 2, kw=3)),
        layer("deep", (512, 7, 7), lambda n, x: n.conv("c", x, 96, 3, 1, 1, "relu")),
        layer("split", (2048, 7, 7), lambda n, x: n.conv("c", x, 64, 1)),
        layer("image", (3, 64, 64), lambda n, x: n.conv("c", x, 64, 7, 2, 3, "relu")),
        layer("depth", (20, 40, 40), lambda n, x: n.conv("c", x, 20, 3, 2, 1, "relu", groups=20)),
        layer("flat", (64, 3, 3), lambda n, x: n.fc("f", x, 100)),
        layer("beside", (16, 10, 10), beside),
        layer("pooled", (3, 40, 44), lambda n, x: n.max_pool("p", n.conv("c", x, 24, 5, 1, 2, "relu"), 3, 2, 1)),
        layer("alone", (16, 16, 16), lambda n, x: n.max_pool("p", x, 2, 2)),
        layer("apool", (40, 21, 21), lambda n, x: n.max_pool("p", n.conv("c", x, 40, 1), 2, 2)),
        layer("up", (32, 33, 31), lambda n, x: n.deconv("d", x, 40, 4, 2, 1, "relu")),
        layer("up3", (19, 9, 20), lambda n, x: n.deconv("d", x, 7, 3, 2, 0)),
        layer("turned", (5, 12, 17), lambda n, x: n.deconv("d", x, 20, 5, 1, 1)),
        layer("mean", (100, 7, 7), lambda n, x: n.mean("g", n.conv("c", x, 100, 1))),
        layer("sum", (50, 14, 14), lambda n, x: n.add("a", n.conv("c", x, 50, 1), n.conv("d", x, 50, 3, 1, 1), "relu"))))


def repeated(net, x):
    """A sum of lines with one that is repeated, which is the host's."""
    a = net.fc("a", x, 24)
    rows = net.node("reshape", "rows", [a[0]], [1, 6, 4], a[2],
                    {"shape": [1, 6, 4]})
    number = net.const("i8", [1, 1, 4], net.codes(4, 100), a[2])
    row = net.node("constant", "row", [], [1, 1, 4], a[2],
                   {"shape": [1, 1, 4]}, {"values": number})
    net.nodes[-1].pop("no_bias")
    return net.add("s", rows, row)


def beside(net, x):
    """A concat in place, behind which a convolution reads all, one a part."""
    a = net.conv("a", x, 13, 3, 1, 1, scale=0.5)
    b = net.conv("b", x, 9, 1, scale=0.5)
    return net.conv("d", net.concat("ab", a, b), 11, 3, 1, 1)
