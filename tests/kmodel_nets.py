#!/usr/bin/env python3
"""kmodel_nets.py - quantised networks of ours in amphora's own JSON.

    tests/kmodel_nets.py DIR [NAME...]    writes NAME.json and NAME.bin

Weights are random codes of int8 with a scale for each channel, chosen so that
results use their range; all volumes behind a ReLU have one quantisation, so
that concats are of codes. --list names the networks.
"""
import json
import os
import random
import struct
import sys

SCALE, SPREAD = 0.05, 40  # of codes; how far they spread, in codes
RELU, PLAIN = -128, 0     # zeros
IMAGE = 148               # of any codes, from -128 on
WEIGHTS = 73.6            # spread of codes that are equally likely


class Net:
    def __init__(self, name, c, h, w):
        self.name, self.rng = name, random.Random(name)
        self.nodes, self.constants, self.blob = [], [], bytearray()
        self.outputs, self.shape, self.zero = [], {}, {}
        self.add("input", "image", [], [1, c, h, w], RELU)

    def add(self, op, name, reads, shape, zero, attributes=None, constants=None,
            scale=SCALE):
        node = {"op": op, "name": name, "reads": reads, "writes": [
            {"name": name, "shape": shape,
             "quant": {"type": "int8", "scale": scale, "zero": zero}}]}
        if attributes:
            node["attributes"] = attributes
        if constants:
            node["constants"] = constants
        self.nodes.append(node)
        self.shape[name], self.zero[name] = shape, zero
        return name

    def constant(self, kind, shape, data, **more):
        self.constants.append({"kind": kind, "shape": shape,
                               "offset": len(self.blob), **more})
        self.blob += data
        self.blob += bytes(-len(self.blob) % 8)
        return len(self.constants) - 1

    def weights(self, reads, out, shape):
        """Weights and biases of a sum over all but the first axis."""
        taps = 1
        for n in shape[1:]:
            taps *= n
        spread = SPREAD * (0.71 if self.zero[reads] == RELU else 1)
        spread = IMAGE if reads == "image" else spread
        unit = SPREAD / (taps ** 0.5 * spread * WEIGHTS)
        scales = [unit * (0.6 + 0.8 * self.rng.random()) for _ in range(out)]
        bias = [self.rng.randint(-SPREAD, SPREAD) for _ in range(out)]
        codes = [round(b / s) for b, s in zip(bias, scales)]
        return {
            "weight": self.constant(
                "i8", shape, bytes(b % 255 + 1 & 255 for b in
                                   self.rng.randbytes(out * taps))
                if out * taps < 1 << 16 else self.rng.randbytes(out * taps),
                mul0=scales),
            "bias": self.constant(
                "i32", [out], struct.pack(f"<{out}i", *codes),
                mul0=[SCALE * s for s in scales])}

    def conv(self, name, reads, out, kernel=3, stride=1, act="relu", depth=False,
             same=True):
        _, c, h, w = self.shape[reads]
        out = c if depth else out
        pad, end, size = [], [], []
        for n in (h, w):
            total = max((-(-n // stride) - 1) * stride + kernel - n, 0)
            before = total // 2 if same else (kernel - 1) // 2
            after = total - before if same else (kernel - 1) // 2
            pad.append(before)
            end.append(after)
            size.append((n + before + after - kernel) // stride + 1)
        attributes = {"out_c": [out], "groups": [c if depth else 1],
                      "kernel": [kernel] * 2, "stride": [stride] * 2,
                      "dilation": [1, 1], "pad": pad, "pad_end": end}
        if act != "none":
            attributes["act"] = act
        each = 1 if depth else c
        constants = self.weights(reads, out, [out, each, kernel, kernel])
        return self.add("conv", name, [reads], [1, out, *size],
                        PLAIN if act == "none" else RELU, attributes, constants)

    def leaky(self, name, reads):
        return self.add("act", name, [reads], self.shape[reads], -100,
                        {"act": "leaky", "alpha": [0.1]})

    def pool(self, name, reads, kernel=2, stride=2):
        _, c, h, w = self.shape[reads]
        end = kernel - 1 if stride == 1 else (1 if kernel == 3 else 0)
        size = [(n + end - kernel) // stride + 1 for n in (h, w)]
        return self.add("pool", name, [reads], [1, c, *size], self.zero[reads],
                        {"kind": "max", "kernel": [kernel] * 2,
                         "stride": [stride] * 2, "pad": [0, 0],
                         "pad_end": [end] * 2})

    def mean(self, name, reads):
        return self.add("pool", name, [reads], [1, self.shape[reads][1], 1, 1],
                        self.zero[reads], {"kind": "avg", "global": [1]})

    def sum(self, name, a, b):
        return self.add("eltwise", name, [a, b], self.shape[a], PLAIN,
                        {"kind": "add"})

    def concat(self, name, reads, axis=1):
        shape = list(self.shape[reads[0]])
        shape[axis] = sum(self.shape[r][axis] for r in reads)
        return self.add("concat", name, reads, shape, self.zero[reads[0]],
                        {"axis": [axis]})

    def upsample(self, name, reads):
        _, c, h, w = self.shape[reads]
        return self.add("upsample", name, [reads], [1, c, 2 * h, 2 * w],
                        self.zero[reads], {"factor": [2, 2]})

    def rows(self, name, reads, each):
        """What is found at each place, as rows of `each` numbers."""
        _, c, h, w = self.shape[reads]
        at = self.add("transpose", name + "_hwc", [reads], [1, h, w, c],
                      self.zero[reads], {"perm": [0, 2, 3, 1]})
        shape = [1, h * w * c // each, each]
        return self.add("reshape", name, [at], shape, self.zero[reads],
                        {"shape": shape})

    def softmax(self, name, reads):
        return self.add("softmax", name, [reads], self.shape[reads], -128,
                        {"axis": [len(self.shape[reads]) - 1]}, scale=1 / 256)

    def classes(self, reads, out):
        at = self.mean("mean", reads)
        flat = self.add("reshape", "flat", [at], [1, self.shape[at][1]],
                        self.zero[at], {"shape": [1, self.shape[at][1]]})
        at = self.add("fc", "fc", [flat], [1, out], PLAIN, {"out": [out]},
                      self.weights(flat, out, [out, self.shape[flat][1]]))
        self.outputs.append(self.softmax("classes", at))

    def write(self, folder):
        for node in self.nodes:
            for tensor in node["writes"]:
                tensor["shape"] = list(tensor["shape"])
        graph = {"amphora": 1, "name": self.name, "weights": self.name + ".bin",
                 "constants": self.constants, "nodes": self.nodes,
                 "outputs": self.outputs}
        path = os.path.join(folder, self.name + ".json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(graph, file)
        with open(os.path.join(folder, self.name + ".bin"), "wb") as file:
            file.write(self.blob)
        return path


def width(n, by):
    return max(8, int(n * by + 4) // 8 * 8)


def mobilenet_v1(name, side, by, classes=1000, same=True):
    net = Net(name, 3, side, side)
    at = net.conv("stem", "image", width(32, by), 3, 2, "relu6", same=same)
    rows = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1),
            (512, 1), (512, 1), (512, 1), (512, 1), (1024, 2), (1024, 1))
    for i, (out, stride) in enumerate(rows):
        at = net.conv(f"depth{i}", at, 0, 3, stride, "relu6", True, same)
        at = net.conv(f"point{i}", at, width(out, by), 1, act="relu6")
    net.classes(at, classes)
    return net


def mobilenet_v2(name, side, by, classes=1000, same=True):
    net = Net(name, 3, side, side)
    at = net.conv("stem", "image", width(32, by), 3, 2, "relu6", same=same)
    rows = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
            (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    k = 0
    for grow, out, repeat, stride in rows:
        for i in range(repeat):
            back, wide = at, at
            if grow > 1:
                wide = net.conv(f"grow{k}", at, net.shape[at][1] * grow, 1,
                                act="relu6")
            at = net.conv(f"depth{k}", wide, 0, 3, stride if i == 0 else 1,
                          "relu6", True, same)
            at = net.conv(f"point{k}", at, width(out, by), 1, act="none")
            if i:
                at = net.sum(f"sum{k}", back, at)
            k += 1
    at = net.conv("last", at, width(1280, min(by, 0.8)), 1, act="relu6")
    net.classes(at, classes)
    return net


def leaky_conv(net, name, reads, out, kernel=3):
    at = net.conv(name, reads, out, kernel, act="none")
    return net.leaky(name + "_leaky", at)


def tiny_yolo_v2(name, w, h, by):
    net = Net(name, 3, h, w)
    at = "image"
    for i, out in enumerate((16, 32, 64, 128, 256, 512)):
        at = leaky_conv(net, f"conv{i}", at, width(out, by))
        at = net.pool(f"pool{i}", at, 2, 2 if i < 5 else 1)
    at = leaky_conv(net, "conv6", at, width(1024, by))
    at = leaky_conv(net, "conv7", at, width(512, by))
    net.outputs.append(net.conv("boxes", at, 125, 1, act="none"))
    return net


def tiny_yolo_v3(name, w, h, by):
    net = Net(name, 3, h, w)
    at = "image"
    for i, out in enumerate((16, 32, 64, 128, 256)):
        at = leaky_conv(net, f"conv{i}", at, width(out, by))
        route = at
        at = net.pool(f"pool{i}", at)
    at = leaky_conv(net, "conv5", at, width(512, by))
    at = net.pool("pool5", at, 2, 1)
    at = leaky_conv(net, "conv6", at, width(1024, by))
    low = leaky_conv(net, "conv7", at, width(256, by), 1)
    at = leaky_conv(net, "conv8", low, width(512, by))
    net.outputs.append(net.conv("large", at, 75, 1, act="none"))
    at = net.upsample("up", leaky_conv(net, "conv9", low, width(128, by), 1))
    at = net.concat("both", [at, route])
    at = leaky_conv(net, "conv10", at, width(256, by))
    net.outputs.append(net.conv("small", at, 75, 1, act="none"))
    return net


def face_detector(name, w, h, wide):
    """A backbone of depthwise layers, heads for places of three sizes."""
    net = Net(name, 3, h, w)
    at = net.conv("stem", "image", wide, 3, 2, same=False)
    rows = ((2, 1), (2, 2), (2, 1), (4, 2), (4, 1), (4, 1), (8, 2), (8, 1),
            (16, 2), (16, 1))
    scores, boxes = [], []
    for i, (out, stride) in enumerate(rows):
        at = net.conv(f"depth{i}", at, 0, 3, stride, depth=True, same=False)
        at = net.conv(f"point{i}", at, out * wide, 1)
        if i in (6, 8, 9) or i == 4:
            for what, each, rows_of in (("score", 2, scores), ("box", 4, boxes)):
                head = net.conv(f"{what}{i}_depth", at, 0, 3, depth=True)
                head = net.conv(f"{what}{i}_out", head, 2 * each, 1, act="none")
                rows_of.append(net.rows(f"{what}{i}", head, each))
    net.outputs.append(net.softmax("scores", net.concat("all", scores)))
    net.outputs.append(net.concat("boxes", boxes))
    return net


def squeezenet(name, side):
    net = Net(name, 3, side, side)
    at = net.pool("pool0", net.conv("stem", "image", 64, 3, 2), 3, 2)
    rows = ((16, 64), (16, 64), None, (32, 128), (32, 128), None, (48, 192),
            (48, 192), (64, 256), (64, 256))
    for i, row in enumerate(rows):
        if not row:
            at = net.pool(f"pool{i}", at, 3, 2)
            continue
        at = net.conv(f"squeeze{i}", at, row[0], 1)
        at = net.concat(f"fire{i}", [net.conv(f"one{i}", at, row[1], 1),
                                     net.conv(f"three{i}", at, row[1], 3)])
    at = net.mean("mean", net.conv("last", at, 1000, 1))
    flat = net.add("reshape", "flat", [at], [1, 1000], RELU,
                   {"shape": [1, 1000]})
    net.outputs.append(net.softmax("classes", flat))
    return net


def ds_cnn(name):
    net = Net(name, 1, 49, 10)
    at = net.conv("stem", "image", 64, 3, 2)
    for i in range(4):
        at = net.conv(f"depth{i}", at, 0, 3, depth=True)
        at = net.conv(f"point{i}", at, 64, 1)
    net.classes(at, 12)
    return net


def skip(name):
    """A volume that waits while others need the memory."""
    net = Net(name, 3, 240, 320)
    first = net.conv("first", "image", 8)
    at = net.conv("wide", first, 16)
    at = net.conv("narrow", at, 8, act="none")
    at = net.sum("sum", first, at)
    net.outputs.append(net.conv("last", at, 4, 1, act="none"))
    return net


def wide(name, side, c):
    """Maps of which no two lie in active memory together."""
    net = Net(name, 3, side, side)
    at = net.conv("first", "image", c)
    at = net.conv("second", at, c)
    at = net.conv("depth", at, 0, depth=True)
    at = net.conv("half", at, 2 * c, 3, 2)
    at = net.conv("narrow", at, c, 1)
    net.outputs.append(net.conv("last", at, 4, 1, act="none"))
    return net


def vgg(name, side, rows):
    """Rows: output channels of the convolutions before each pool."""
    net = Net(name, 3, side, side)
    at = "image"
    for i, row in enumerate(rows):
        for k, out in enumerate(row):
            at = net.conv(f"conv{i}_{k}", at, out)
        at = net.pool(f"pool{i}", at)
    net.classes(at, 100)
    return net


def darknet(name, w, h, c):
    """Sums of large volumes; strides with rows on both sides."""
    net = Net(name, 3, h, w)
    at = net.conv("first", "image", c)
    for i in range(4):
        c *= 2
        at = net.conv(f"down{i}", at, c, 3, 2, same=False)
        wide_one = net.conv(f"wide{i}", net.conv(f"thin{i}", at, c // 2, 1), c,
                            act="none")
        at = net.sum(f"sum{i}", at, wide_one)
    net.outputs.append(net.conv("last", at, 16, 1, act="none"))
    return net


def unet(name, side, c):
    """Down and up again, with all rows of the first map waiting."""
    net = Net(name, 3, side, side)
    kept, at = [], "image"
    for i in range(3):
        at = net.conv(f"down{i}", at, c << i)
        kept.append(at)
        at = net.pool(f"pool{i}", at)
    at = net.conv("middle", at, c << 3)
    for i in reversed(range(3)):
        at = net.upsample(f"up{i}", net.conv(f"thin{i}", at, c << i, 1))
        at = net.conv(f"both{i}", net.concat(f"join{i}", [kept[i], at]), c << i)
    net.outputs.append(net.conv("mask", at, 4, 1, act="none"))
    return net


def dense(name):
    """Concats in concats, of which layers read each."""
    net = Net(name, 3, 24, 40)
    at = net.conv("first", "image", 8)
    for i in range(4):
        at = net.concat(f"join{i}", [at, net.conv(f"grown{i}", at, 4)])
    net.outputs.append(net.conv("last", at, 6, 1, act="none"))
    return net


NETS = {
    "mobilenet_v1_025_128": lambda n: mobilenet_v1(n, 128, 0.25),
    "mobilenet_v1_050_160": lambda n: mobilenet_v1(n, 160, 0.5),
    "mobilenet_v1_075_224": lambda n: mobilenet_v1(n, 224, 0.75, same=False),
    "mobilenet_v2_035_96": lambda n: mobilenet_v2(n, 96, 0.35, 100),
    "mobilenet_v2_050_160": lambda n: mobilenet_v2(n, 160, 0.5),
    "mobilenet_v2_100_224": lambda n: mobilenet_v2(n, 224, 1, same=False),
    "tiny_yolo_v2_224": lambda n: tiny_yolo_v2(n, 224, 224, 0.5),
    "tiny_yolo_v2_320": lambda n: tiny_yolo_v2(n, 320, 224, 0.5),
    "tiny_yolo_v3_224": lambda n: tiny_yolo_v3(n, 224, 224, 0.5),
    "face_320": lambda n: face_detector(n, 320, 256, 16),
    "face_160": lambda n: face_detector(n, 160, 128, 8),
    "squeezenet_224": lambda n: squeezenet(n, 224),
    "ds_cnn": ds_cnn,
    "skip_320": skip,
    "dense": dense,
    "wide_320": lambda n: wide(n, 320, 32),
    "vgg_224": lambda n: vgg(n, 224, ((64, 64), (128, 128), (128, 128),
                                      (128, 128), (128,))),
    "tiny_yolo_v2_416": lambda n: tiny_yolo_v2(n, 416, 416, 0.5),
    "tiny_yolo_v3_416": lambda n: tiny_yolo_v3(n, 416, 416, 0.5),
    "darknet_320": lambda n: darknet(n, 320, 320, 16),
    "unet_256": lambda n: unet(n, 256, 16),
    "mobilenet_v1_050_320": lambda n: mobilenet_v1(n, 320, 0.5, 100),
    "face_640": lambda n: face_detector(n, 640, 480, 8),
}


def write(folder, name):
    """The path of the network's file."""
    return NETS[name](name).write(folder)


def main():
    if "--list" in sys.argv:
        print("\n".join(NETS))
        return 0
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    os.makedirs(sys.argv[1], exist_ok=True)
    for name in sys.argv[2:] or NETS:
        print(write(sys.argv[1], name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
