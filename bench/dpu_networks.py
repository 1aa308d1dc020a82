"""dpu_networks.py - networks whose rates on Vitis DPUs are published.

Each function builds one network, as its paper or the library that it was
trained with has it, with the tool that writes the examples. bench/dpu.py
writes them to a temporary folder. Batch normalisation is left out: it is
folded.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))), "examples"))
import generate  # noqa: E402  (needs the path above)
from generate import Net  # noqa: E402
import rate_networks  # noqa: E402


class Line(Net):
    """A Net whose convolutions keep the size, stride apart, and get names."""

    def __init__(self, name, about, c, h, w):
        super().__init__(name, about, c, h, w)
        self.n = 0

    def named(self, kind):
        self.n += 1
        return f"{kind}{self.n}"

    def c(self, n, kernel=1, stride=1, at=None, act=True, group=1, pad=None):
        pad = rate_networks.same(kernel) if pad is None else pad
        self.conv(self.named("conv"), n, kernel, stride, pad, group, at=at)
        return self.relu() if act else self.at

    def p(self, kind, kernel, stride=1, pad=0, at=None):
        return self.pool(self.named("pool"), kind, kernel, stride, pad, at)

    def plus(self, a, b, act=True):
        self.add(self.named("add"), a, b)
        return self.relu() if act else self.at

    def cat(self, parts):
        return self.concat(self.named("cat"), parts)

    def active(self, at):
        """Normalisation and ReLU that no convolution is in front of: one
        filter a channel."""
        name = self.named("scale")
        self.layer(name, "Scale", [at], name,
                   "scale_param { bias_term: true }")
        return self.relu()

    def head(self, classes):
        self.global_pool("global")
        self.fc("classes", classes)
        return self


# ---- residual networks ----

def slim_v1(name, blocks):
    """The stride is that of the last unit of a stage, in its 3x3."""
    net = Line(name, ["ResNet v1 as TF-slim has it."], 3, 224, 224)
    net.c(64, 7, 2)
    at = net.p("MAX", 3, 2)
    for stage, n in enumerate(blocks):
        width = 64 << stage
        for unit in range(n):
            stride = 2 if unit == n - 1 and stage < 3 else 1
            short = at
            if unit == 0:
                short = net.c(4 * width, 1, stride, at=at, act=False)
            elif stride == 2:
                short = net.p("MAX", 1, 2, at=at)
            net.c(width, at=at)
            net.c(width, 3, stride)
            at = net.plus(net.c(4 * width, act=False), short)
    return net.head(1000)


def resnet_v2_101():
    net = Line("resnet-v2-101", ["ResNet v2 as TF-slim has it, at 299."],
               3, 299, 299)
    net.c(64, 7, 2, act=False)
    at = net.p("MAX", 3, 2)
    for stage, n in enumerate((3, 4, 23, 3)):
        width = 64 << stage
        for unit in range(n):
            stride = 2 if unit == n - 1 and stage < 3 else 1
            active, short = net.active(at), at
            if unit == 0:
                short = net.c(4 * width, 1, stride, at=active, act=False)
            elif stride == 2:
                short = net.p("MAX", 1, 2, at=at)
            net.c(width, at=active)
            net.c(width, 3, stride)
            at = net.plus(net.c(4 * width, act=False), short, act=False)
    net.active(at)
    return net.head(1001)


def basic_blocks(net, at, rows):
    """(blocks, width, stride of the first)."""
    for i, (n, width, stride) in enumerate(rows):
        for block in range(n):
            first, short = block == 0, at
            s = stride if first else 1
            if first and (i or stride > 1):
                short = net.c(width, 1, s, at=at, act=False)
            net.c(width, 3, s, at=at)
            at = net.plus(net.c(width, 3, act=False), short)
    return at


def resnet18(name, classes, h, w):
    net = Line(name, ["He et al. 2016, table 1."], 3, h, w)
    net.c(64, 7, 2)
    basic_blocks(net, net.p("MAX", 3, 2),
                 [(2, 64, 1), (2, 128, 2), (2, 256, 2), (2, 512, 2)])
    return net.head(classes)


def ssd_resnet34():
    net = Line("ssd-resnet34", ["SSD on ResNet-34 of MLPerf, 1200 x 1200: the",
                                "third stage has no stride."], 3, 1200, 1200)
    net.c(64, 7, 2)
    at = basic_blocks(net, net.p("MAX", 3, 2),
                      [(3, 64, 1), (4, 128, 2), (6, 256, 1)])
    read = [at]
    for middle, n, pad in ((256, 512, 1), (256, 512, 1), (128, 256, 1),
                           (128, 256, 0), (128, 256, 0)):
        net.c(middle)
        read.append(net.c(n, 3, 2, pad=pad))
    for at, boxes, stride in zip(read, (4, 6, 6, 6, 4, 4), (3, 3, 2, 2, 2, 2)):
        for n in (4, 81):
            net.c(boxes * n, 3, stride, at=at, act=False)
    return net


# ---- inception ----

def inception_resnet_v2():
    net = Line("inception-resnet-v2", ["Szegedy et al. 2016, as TF-slim has it."],
               3, 299, 299)
    row, column = (1, 7), (7, 1)
    net.c(32, 3, 2, pad=0)
    net.c(32, 3, pad=0)
    net.c(64, 3)
    net.p("MAX", 3, 2)
    net.c(80)
    net.c(192, 3, pad=0)
    at = net.p("MAX", 3, 2)

    def lines(at, rows):
        for n, kernel in rows:
            at = net.c(n, kernel, at=at)
        return at

    def blocks(n, at, width, branches, last_act=True):
        for k in range(n):
            mixed = net.cat([lines(at, rows) for rows in branches])
            made = net.c(width, at=mixed, act=False)
            at = net.plus(at, made, act=last_act or k + 1 < n)
        return at

    parts = [lines(at, [(96, 1)]), lines(at, [(48, 1), (64, 5)]),
             lines(at, [(64, 1), (96, 3), (96, 3)])]
    parts.append(net.c(64, at=net.p("AVE", 3, 1, 1, at=at)))
    at = blocks(10, net.cat(parts), 320,
                [[(32, 1)], [(32, 1), (32, 3)], [(32, 1), (48, 3), (64, 3)]])
    parts = [net.c(384, 3, 2, at=at, pad=0),
             net.c(384, 3, 2, at=lines(at, [(256, 1), (256, 3)]), pad=0),
             net.p("MAX", 3, 2, at=at)]
    at = blocks(20, net.cat(parts), 1088,
                [[(192, 1)], [(128, 1), (160, row), (192, column)]])
    parts = [net.c(384, 3, 2, at=lines(at, [(256, 1)]), pad=0),
             net.c(288, 3, 2, at=lines(at, [(256, 1)]), pad=0),
             net.c(320, 3, 2, at=lines(at, [(256, 1), (288, 3)]), pad=0),
             net.p("MAX", 3, 2, at=at)]
    at = blocks(10, net.cat(parts), 2080,
                [[(192, 1)], [(192, 1), (224, (1, 3)), (256, (3, 1))]],
                last_act=False)
    net.c(1536, at=at)
    return net.head(1001)


def inception_v2_slim():
    """The stem's 7 x 7 is one filter a channel, eight times."""
    net = Net("inception-v2-slim", ["Inception with batch normalisation, as",
                                    "TF-slim has it."], 3, 224, 224)
    net.conv("stem/dw", 24, 7, 2, 3, group=3)
    rate_networks.conv(net, "stem/pw", 64, 1)
    net.pool("stem/pool1", "MAX", 3, 2)
    rate_networks.conv(net, "stem/1x1", 64, 1)
    rate_networks.conv(net, "stem/3x3", 192, 3, pad=1)
    net.pool("stem/pool2", "MAX", 3, 2)
    for name, n1, r3, n3, rd, nd, kind, proj in (
            ("3b", 64, 64, 64, 64, 96, "AVE", 32),
            ("3c", 64, 64, 96, 64, 96, "AVE", 64),
            ("4a", 0, 128, 160, 64, 96, "MAX", 0),
            ("4b", 224, 64, 96, 96, 128, "AVE", 128),
            ("4c", 192, 96, 128, 96, 128, "AVE", 128),
            ("4d", 160, 128, 160, 128, 160, "AVE", 96),
            ("4e", 96, 128, 192, 160, 192, "AVE", 96),
            ("5a", 0, 128, 192, 192, 256, "MAX", 0),
            ("5b", 352, 192, 320, 160, 224, "AVE", 128),
            ("5c", 352, 192, 320, 192, 224, "MAX", 128)):
        stride = 1 if n1 else 2
        branches = [[(n1, 1)]] if n1 else []
        branches += [[(r3, 1), (n3, 3, stride, 1)],
                     [(rd, 1), (nd, 3), (nd, 3, stride, 1)]]
        if n1:
            rate_networks.module(net, name, branches, (kind, 1, proj))
            continue
        at = net.at
        parts = [rate_networks.chain(net, at, f"{name}/{i}_", rows)
                 for i, rows in enumerate(branches)]
        parts.append(net.pool(name + "/pool", "MAX", 3, 2, at=at))
        net.concat(name + "/out", parts)
    net.global_pool("global")
    net.fc("classes", 1001)
    return net


# ---- mobile networks ----

def eights(n):
    """To the next multiple of 8, at least 0.9 of it."""
    near = max(8, int(n + 4) // 8 * 8)
    return near + 8 if near < 0.9 * n else near


def mobilenet_v1_body(net, wide):
    """The outputs of its blocks."""
    net.c(eights(32 * wide), 3, 2)
    channels, made = eights(32 * wide), []
    for n, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2),
                      *[(512, 1)] * 5, (1024, 2), (1024, 1)):
        net.c(channels, 3, stride, group=channels)
        channels = eights(n * wide)
        made.append(net.c(channels))
    return made


def mobilenet_v1(name, wide, size):
    net = Line(name, ["Howard et al. 2017, table 1."], 3, size, size)
    mobilenet_v1_body(net, wide)
    return net.head(1001)


def ssd_mobilenet_v1():
    net = Line("ssd-mobilenet-v1", ["SSD on MobileNetV1, 300 x 300."],
               3, 300, 300)
    made = mobilenet_v1_body(net, 1)
    read = [made[10], made[12]]
    for n in (512, 256, 256, 128):
        net.c(n // 2)
        read.append(net.c(n, 3, 2))
    for i, at in enumerate(read):
        for n in (4, 91):
            net.c((6 if i else 3) * n, at=at, act=False)
    return net


def mobilenet_edge(wide):
    net = Line("mobilenet-edge", ["MobileNet for the Edge TPU: the first blocks",
                                  "expand by whole convolutions."], 3, 224, 224)
    net.c(eights(32 * wide), 3, 2)
    channels = eights(16 * wide)
    at = net.c(channels, act=False)
    for fused, n, expand, kernel, stride, times in (
            (1, 32, 8, 3, 2, 1), (1, 32, 4, 3, 1, 3), (1, 48, 8, 3, 2, 1),
            (1, 48, 4, 3, 1, 3), (0, 96, 8, 3, 2, 1), (0, 96, 4, 3, 1, 3),
            (0, 96, 8, 3, 1, 1), (0, 96, 4, 3, 1, 3), (0, 160, 8, 5, 2, 1),
            (0, 160, 4, 5, 1, 3), (0, 192, 8, 3, 1, 1)):
        for _ in range(times):
            middle, last = expand * channels, at
            if fused:
                net.c(middle, kernel, stride, at=at)
            else:
                net.c(middle, at=at)
                net.c(middle, kernel, stride, group=middle)
            at = net.c(eights(n * wide), act=False)
            if expand == 4:
                at = net.plus(last, at, act=False)
            channels = eights(n * wide)
    net.c(1280)
    return net.head(1001)


# ---- detectors of Darknet ----

def residual(net, at, n, first, second):
    for _ in range(n):
        net.c(first, at=at)
        at = net.plus(at, net.c(second, 3), act=False)
    return at


def up(net, at):
    name = net.named("up")
    return net.layer(name, "Upsample", [at], name,
                     "upsample_param { scale: 2 }")


def yolov3():
    net = Line("yolov3", ["Redmon and Farhadi 2018, table 1."], 3, 416, 416)
    net.c(32, 3)
    read = []
    for n, width in ((1, 64), (2, 128), (8, 256), (8, 512), (4, 1024)):
        at = residual(net, net.c(width, 3, 2), n, width // 2, width)
        read.append(at)
    for k, width in enumerate((1024, 512, 256)):
        if k:
            at = net.cat([up(net, net.c(width // 2, at=at)), read[4 - k]])
        for _ in range(2):
            net.c(width // 2, at=at)
            at = net.c(width, 3)
        at = net.c(width // 2)
        net.c(width, 3)
        net.c(255, act=False)
    return net


def five(net, at, width):
    for n, kernel in ((width, 1), (2 * width, 3), (width, 1), (2 * width, 3),
                      (width, 1)):
        at = net.c(n, kernel, at=at)
    return at


def yolov4():
    net = Line("yolov4", ["Bochkovskiy et al. 2020, at 512."], 3, 512, 512)
    at, read = net.c(32, 3), []
    for n, width in ((1, 64), (2, 128), (8, 256), (8, 512), (4, 1024)):
        down = net.c(width, 3, 2, at=at)
        half = width if width == 64 else width // 2
        aside = net.c(half, at=down)
        at = net.c(half, at=down)
        at = residual(net, at, n, 32 if width == 64 else half, half)
        at = net.c(width, at=net.cat([net.c(half, at=at), aside]))
        read.append(at)
    for n, kernel in ((512, 1), (1024, 3), (512, 1)):
        at = net.c(n, kernel, at=at)
    at = net.cat([net.p("MAX", k, 1, k // 2, at=at) for k in (13, 9, 5)] + [at])
    for n, kernel in ((512, 1), (1024, 3), (512, 1)):
        at = net.c(n, kernel, at=at)
    path = [at]
    for k, width in ((3, 256), (2, 128)):
        above = up(net, net.c(width, at=path[-1]))
        path.append(five(net, net.cat([net.c(width, at=read[k]), above]), width))
    at = path[2]
    for k, width in ((0, 256), (1, 512), (2, 1024)):
        if k:
            at = five(net, net.cat([net.c(width // 2, 3, 2, at=at),
                                    path[2 - k]]), width // 2)
        net.c(width, 3, at=at)
        net.c(255, act=False)
    return net


def vgg19():
    net = Line("vgg19", ["Simonyan and Zisserman 2015, table 1, E."],
               3, 224, 224)
    for n, width in ((2, 64), (2, 128), (4, 256), (4, 512), (4, 512)):
        for _ in range(n):
            net.c(width, 3)
        net.p("MAX", 2, 2)
    for n in (4096, 4096):
        net.fc(net.named("fc"), n)
        net.relu()
    net.fc("classes", 1000)
    return net


def squeezenet():
    """The example's, at 224 as in the zoo."""
    net = generate.squeezenet()
    net.lines = [line.replace("dim: 227", "dim: 224") for line in net.lines]
    return net


NETWORKS = {
    "resnet_v1_50_tf": lambda: slim_v1("resnet-v1-50", (3, 4, 6, 3)),
    "resnet_v1_152_tf": lambda: slim_v1("resnet-v1-152", (3, 8, 36, 3)),
    "chen_color_resnet18_pt": lambda: resnet18("resnet18", 15, 224, 224),
    "vgg_19_tf": vgg19,
    "Inception_v3_tf2": generate.inception_v3,
    "Inception_v4_tf": rate_networks.inception_v4,
    "SqueezeNet_pt": squeezenet,
    "mobilenet_1_0_224_tf2": lambda: mobilenet_v1("mobilenet-v1", 1, 224),
    "mobilenet_v2_1_0_224_tf": generate.mobilenet_v2,
    "yolov3_coco_tf2": yolov3,
    "resnet50_tf2": generate.resnet50,
    "resnet_v2_101_tf": resnet_v2_101,
    "Inception_resnet_v2_tf": inception_resnet_v2,
    "inception_v2_tf": inception_v2_slim,
    "mobilenet_v1_0_5_160_tf": lambda: mobilenet_v1("mobilenet-v1-half", .5,
                                                    160),
    "mobilenet_edge_0_75_tf": lambda: mobilenet_edge(.75),
    "ssd_mobilenet_v1_coco_tf": ssd_mobilenet_v1,
    "personreid-res18_pt": lambda: resnet18("reid-resnet18", 512, 176, 80),
    "mlperf_ssd_resnet34_tf": ssd_resnet34,
    "yolov4_512_tf": yolov4,
}
