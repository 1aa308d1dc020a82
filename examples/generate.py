#!/usr/bin/env python3
"""Writes the example networks in this folder, except tiny.prototxt.

    python3 examples/generate.py           writes the files
    python3 examples/generate.py --check   says whether they are what it writes

Each function builds one network from the tables of the paper that it names.
"""
import os
import sys


class Net:
    """Lines of a prototxt, and the blob that the next layer reads."""

    def __init__(self, name, about, c, h, w):
        self.lines = ["# " + line if line else "#" for line in about]
        self.lines += ["", 'name: "%s"' % name]
        self.layer("image", "Input", [], "image",
                   "input_param { shape { dim: 1 dim: %d dim: %d dim: %d } }"
                   % (c, h, w))

    def layer(self, name, kind, bottoms, top, param=None):
        self.lines.append("layer {")
        self.lines.append('  name: "%s" type: "%s"' % (name, kind))
        wires = ['bottom: "%s"' % b for b in bottoms] + ['top: "%s"' % top]
        line = "  " + wires[0]
        for wire in wires[1:]:
            if len(line) + 1 + len(wire) > 78:
                self.lines.append(line)
                line = "  " + wire
            else:
                line += " " + wire
        self.lines.append(line)
        if param:
            self.lines.append("  " + param)
        self.lines.append("}")
        self.at = top
        return top

    def section(self, title):
        self.lines += ["", "# " + title]

    def conv(self, name, n, kernel, stride=1, pad=0, group=1, bias=True,
             at=None):
        param = "num_output: %d" % n
        if isinstance(kernel, tuple):
            param += " kernel_h: %d kernel_w: %d" % kernel
        else:
            param += " kernel_size: %d" % kernel
        if stride != 1:
            param += " stride: %d" % stride
        if isinstance(pad, tuple):
            param += " pad_h: %d pad_w: %d" % pad
        elif pad:
            param += " pad: %d" % pad
        if group != 1:
            param += " group: %d" % group
        if not bias:
            param += " bias_term: false"
        return self.layer(name, "Convolution", [at or self.at], name,
                          "convolution_param { %s }" % param)

    def relu(self, kind="ReLU", param=None):
        return self.layer(self.at + "/relu", kind, [self.at], self.at, param)

    def norm(self, eps=None):
        """Batch normalisation in the field: statistics, then scale."""
        param = "batch_norm_param { eps: %s }" % eps if eps else None
        self.layer(self.at + "/bn", "BatchNorm", [self.at], self.at, param)
        return self.layer(self.at + "/scale", "Scale", [self.at], self.at,
                          "scale_param { bias_term: true }")

    def conv_relu(self, *args, **kwargs):
        self.conv(*args, **kwargs)
        return self.relu()

    def conv_norm(self, *args, **kwargs):
        self.conv(*args, bias=False, **kwargs)
        return self.norm()

    def conv_norm_relu(self, *args, **kwargs):
        self.conv_norm(*args, **kwargs)
        return self.relu()

    def pool(self, name, kind, kernel, stride=1, pad=0, at=None):
        param = "pool: %s kernel_size: %d" % (kind, kernel)
        if stride != 1:
            param += " stride: %d" % stride
        if pad:
            param += " pad: %d" % pad
        return self.layer(name, "Pooling", [at or self.at], name,
                          "pooling_param { %s }" % param)

    def global_pool(self, name):
        return self.layer(name, "Pooling", [self.at], name,
                          "pooling_param { pool: AVE global_pooling: true }")

    def lrn(self, name):
        return self.layer(name, "LRN", [self.at], name,
                          "lrn_param { local_size: 5 alpha: 0.0001 "
                          "beta: 0.75 }")

    def concat(self, name, parts):
        return self.layer(name, "Concat", parts, name)

    def add(self, name, a, b):
        return self.layer(name, "Eltwise", [a, b], name)

    def dropout(self):
        return self.layer(self.at + "/dropout", "Dropout", [self.at], self.at)

    def fc(self, name, n):
        return self.layer(name, "InnerProduct", [self.at], name,
                          "inner_product_param { num_output: %d }" % n)

    def softmax(self):
        return self.layer("probability", "Softmax", [self.at], "probability")

    def text(self):
        return "\n".join(self.lines) + "\n"


def googlenet():
    net = Net("googlenet", [
        "GoogLeNet (Inception v1), without its auxiliary classifiers.",
        'Szegedy et al., "Going deeper with convolutions", 2014, table 1.',
        "224x224 image, 1000 classes, 7.0 million parameters."], 3, 224, 224)
    net.section("Stem: 224 -> 28.")
    net.conv_relu("stem/7x7", 64, 7, stride=2, pad=3)
    net.pool("stem/pool1", "MAX", 3, 2)
    net.lrn("stem/lrn1")
    net.conv_relu("stem/1x1", 64, 1)
    net.conv_relu("stem/3x3", 192, 3, pad=1)
    net.lrn("stem/lrn2")
    net.pool("stem/pool2", "MAX", 3, 2)
    table = {  # 1x1, 3x3 reduce, 3x3, 5x5 reduce, 5x5, pool projection
        "3a": (64, 96, 128, 16, 32, 32), "3b": (128, 128, 192, 32, 96, 64),
        "4a": (192, 96, 208, 16, 48, 64), "4b": (160, 112, 224, 24, 64, 64),
        "4c": (128, 128, 256, 24, 64, 64), "4d": (112, 144, 288, 32, 64, 64),
        "4e": (256, 160, 320, 32, 128, 128),
        "5a": (256, 160, 320, 32, 128, 128),
        "5b": (384, 192, 384, 48, 128, 128)}
    for cell, (n1, r3, n3, r5, n5, proj) in table.items():
        net.section("Inception %s: %d channels." % (cell, n1 + n3 + n5 + proj))
        at, p = net.at, "i%s/" % cell
        parts = [net.conv_relu(p + "1x1", n1, 1)]
        net.conv_relu(p + "3x3_reduce", r3, 1, at=at)
        parts.append(net.conv_relu(p + "3x3", n3, 3, pad=1))
        net.conv_relu(p + "5x5_reduce", r5, 1, at=at)
        parts.append(net.conv_relu(p + "5x5", n5, 5, pad=2))
        net.pool(p + "pool", "MAX", 3, pad=1, at=at)
        parts.append(net.conv_relu(p + "pool_proj", proj, 1))
        net.concat(p + "out", parts)
        if cell in ("3b", "4e"):
            net.pool("pool_" + cell, "MAX", 3, 2)
    net.section("Classifier.")
    net.pool("pool_5b", "AVE", 7)
    net.dropout()
    net.fc("classes", 1000)
    net.softmax()
    return net


def resnet50():
    net = Net("resnet50", [
        "ResNet-50, the stride in the first 1x1 convolution of a stage.",
        'He, Zhang, Ren, Sun, "Deep residual learning for image recognition",',
        "2015, table 1.",
        "224x224 image, 1000 classes, 25.6 million parameters."], 3, 224, 224)
    net.section("Stem: 224 -> 56.")
    net.conv_norm_relu("conv1", 64, 7, stride=2, pad=3)
    net.pool("pool1", "MAX", 3, 2)
    for stage, (blocks, width) in enumerate(
            [(3, 64), (4, 128), (6, 256), (3, 512)], 2):
        for block in range(1, blocks + 1):
            net.section("Stage %d, block %d." % (stage, block))
            at, p = net.at, "s%db%d/" % (stage, block)
            first = block == 1
            stride = 2 if first and stage > 2 else 1
            net.conv_norm_relu(p + "reduce", width, 1, stride=stride)
            net.conv_norm_relu(p + "3x3", width, 3, pad=1)
            main = net.conv_norm(p + "expand", 4 * width, 1)
            if first:
                at = net.conv_norm(p + "shortcut", 4 * width, 1, stride=stride,
                                   at=at)
            net.add(p + "out", at, main)
            net.relu()
    net.section("Classifier.")
    net.pool("pool5", "AVE", 7)
    net.fc("classes", 1000)
    net.softmax()
    return net


def yolov2():
    net = Net("yolov2-608", [
        "YOLOv2 at 608x608 for the 80 classes of COCO: Darknet-19 without its",
        "classifier, three convolutions, and a passthrough of fine features.",
        'Redmon, Farhadi, "YOLO9000: better, faster, stronger", 2016, table 6',
        "and section 2. Output: 5 boxes of 85 values for each of 19x19 cells.",
        "",
        "The paper's passthrough stacks 2x2 neighbours into channels (reorg).",
        "Caffe has no such layer: here a 2x2 convolution of stride 2 takes",
        "64x38x38 to 256x19x19. With a single 1 in each of its kernels it is",
        "the paper's operation, the order of channels aside."], 3, 608, 608)

    def block(name, n, kernel, at=None):
        net.conv_norm(name, n, kernel, pad=kernel // 2, at=at)
        return net.relu(param="relu_param { negative_slope: 0.1 }")

    stages = [
        [(32, 3)],
        [(64, 3)],
        [(128, 3), (64, 1), (128, 3)],
        [(256, 3), (128, 1), (256, 3)],
        [(512, 3), (256, 1), (512, 3), (256, 1), (512, 3)],
        [(1024, 3), (512, 1), (1024, 3), (512, 1), (1024, 3)]]
    size, fine = 608, None
    for stage, convs in enumerate(stages, 1):
        net.section("Darknet-19, stage %d: %dx%d." % (stage, size, size))
        for i, (n, kernel) in enumerate(convs, 1):
            block("s%d/conv%d" % (stage, i), n, kernel)
        if stage < len(stages):
            fine = net.at
            size //= 2
            net.pool("s%d/pool" % stage, "MAX", 2, 2)
    net.section("Detector.")
    block("d/conv1", 1024, 3)
    coarse = block("d/conv2", 1024, 3)
    block("d/fine", 64, 1, at=fine)
    net.conv("d/passthrough", 256, 2, stride=2, bias=False)
    net.concat("d/both", [net.at, coarse])
    block("d/conv3", 1024, 3)
    net.conv("boxes", 425, 1)
    return net


def mobilenet_v2():
    net = Net("mobilenet-v2", [
        "MobileNetV2, width 1.",
        'Sandler et al., "MobileNetV2: inverted residuals and linear',
        'bottlenecks", 2018, table 2.',
        "224x224 image, 1000 classes, 3.5 million parameters."], 3, 224, 224)

    def relu6():
        return net.relu("ReLU6")

    net.section("Stem: 224 -> 112.")
    net.conv_norm("stem", 32, 3, stride=2, pad=1)
    relu6()
    channels, number = 32, 0
    for t, c, n, s in [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2),
                       (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
                       (6, 320, 1, 1)]:
        for i in range(n):
            number += 1
            net.section("Bottleneck %d: %d -> %d channels, expansion %d."
                        % (number, channels, c, t))
            at, p, stride = net.at, "b%d/" % number, s if i == 0 else 1
            wide = channels * t
            if t > 1:
                net.conv_norm(p + "expand", wide, 1)
                relu6()
            net.conv_norm(p + "depthwise", wide, 3, stride=stride, pad=1,
                          group=wide)
            relu6()
            net.conv_norm(p + "project", c, 1)
            if stride == 1 and channels == c:
                net.add(p + "out", at, net.at)
            channels = c
    net.section("Classifier.")
    net.conv_norm("head", 1280, 1)
    relu6()
    net.global_pool("pool")
    net.fc("classes", 1000)
    net.softmax()
    return net


def squeezenet():
    net = Net("squeezenet", [
        "SqueezeNet 1.1.",
        'Iandola et al., "SqueezeNet: AlexNet-level accuracy with 50x fewer',
        'parameters and <0.5MB model size", 2016, in the variant 1.1 that its',
        "authors published in the same year (pools earlier, 2.4 times less",
        "work). 227x227 image, 1000 classes, 1.24 million parameters."],
        3, 227, 227)
    net.section("Stem.")
    net.conv_relu("conv1", 64, 3, stride=2)
    net.pool("pool1", "MAX", 3, 2)
    for number, (squeeze, expand) in enumerate(
            [(16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192),
             (64, 256), (64, 256)], 2):
        net.section("Fire %d: squeeze to %d, expand to 2 x %d."
                    % (number, squeeze, expand))
        p = "fire%d/" % number
        at = net.conv_relu(p + "squeeze", squeeze, 1)
        parts = [net.conv_relu(p + "expand1", expand, 1),
                 net.conv_relu(p + "expand3", expand, 3, pad=1, at=at)]
        net.concat(p + "out", parts)
        if number in (3, 5):
            net.pool("pool%d" % number, "MAX", 3, 2)
    net.section("Classifier.")
    net.dropout()
    net.conv_relu("classes", 1000, 1)
    net.global_pool("pool10")
    net.softmax()
    return net


def vgg16():
    net = Net("vgg16", [
        "VGG-16.",
        'Simonyan, Zisserman, "Very deep convolutional networks for',
        'large-scale image recognition", 2014, table 1, column D.',
        "224x224 image, 1000 classes, 138 million parameters."], 3, 224, 224)
    for stage, (convs, n) in enumerate(
            [(2, 64), (2, 128), (3, 256), (3, 512), (3, 512)], 1):
        net.section("Stage %d." % stage)
        for i in range(1, convs + 1):
            net.conv_relu("s%d/conv%d" % (stage, i), n, 3, pad=1)
        net.pool("s%d/pool" % stage, "MAX", 2, 2)
    net.section("Classifier.")
    for name in ("fc1", "fc2"):
        net.fc(name, 4096)
        net.relu()
        net.dropout()
    net.fc("classes", 1000)
    net.softmax()
    return net


def vgg_e_stem():
    net = Net("vgg-e-stem", [
        "The first five convolutions of VGG-19, with the pools between them.",
        'Simonyan, Zisserman, "Very deep convolutional networks for',
        'large-scale image recognition", 2014, table 1, column E: what Alwani',
        'et al. fuse in "Fused-layer CNN accelerators", MICRO 2016.'],
        3, 224, 224)
    for stage, (convs, n) in enumerate([(2, 64), (2, 128), (1, 256)], 1):
        net.section("Stage %d." % stage)
        for i in range(1, convs + 1):
            net.conv_relu("s%d/conv%d" % (stage, i), n, 3, pad=1)
        if stage < 3:
            net.pool("s%d/pool" % stage, "MAX", 2, 2)
    return net


def densenet_cell():
    net = Net("densenet-cell", [
        "A dense block of four layers and a transition, growth rate 32, as in",
        'Huang et al., "Densely connected convolutional networks", 2017,',
        "section 3 (DenseNet-BC). Every layer reads all layers before it, so",
        "the block's volumes live long: a small network that is hard to keep",
        "in a small memory. Input: the 64x28x28 features before the block."],
        64, 28, 28)
    growth, channels = 32, 64

    def norm_relu(name):
        net.layer(name, "BatchNorm", [net.at], name)
        net.layer(name + "/scale", "Scale", [name], name,
                  "scale_param { bias_term: true }")
        net.layer(name + "/relu", "ReLU", [name], name)

    for i in range(1, 5):
        net.section("Dense layer %d: %d -> %d channels."
                    % (i, channels, channels + growth))
        at, p = net.at, "l%d/" % i
        norm_relu(p + "norm1")
        net.conv(p + "1x1", 4 * growth, 1, bias=False)
        norm_relu(p + "norm2")
        new = net.conv(p + "3x3", growth, 3, pad=1, bias=False)
        net.concat(p + "out", [at, new])
        channels += growth
    net.section("Transition: half the channels, half the size.")
    norm_relu("t/norm")
    net.conv("t/1x1", channels // 2, 1, bias=False)
    net.pool("t/pool", "AVE", 2, 2)
    return net


def inception_v3():
    net = Net("inception-v3", [
        "Inception v3, without its auxiliary classifier.",
        'Szegedy et al., "Rethinking the Inception architecture for computer',
        'vision", 2015, table 1 and figures 5 to 7.',
        "299x299 image, 1000 classes, 23.8 million parameters."], 3, 299, 299)

    def conv(name, n, kernel, stride=1, pad=0, at=None):
        net.conv_norm(name, n, kernel, stride=stride, pad=pad, at=at)
        return net.relu()

    def chain(at, rows):
        for name, n, kernel, stride, pad in rows:
            at = conv(name, n, kernel, stride, pad, at)
        return at

    net.section("Stem: 299 -> 35.")
    conv("stem/conv1", 32, 3, stride=2)
    conv("stem/conv2", 32, 3)
    conv("stem/conv3", 64, 3, pad=1)
    net.pool("stem/pool1", "MAX", 3, 2)
    conv("stem/conv4", 80, 1)
    conv("stem/conv5", 192, 3)
    net.pool("stem/pool2", "MAX", 3, 2)
    for i, proj in enumerate((32, 64, 64), 1):
        net.section("35x35, module %d." % i)
        at, p = net.at, "a%d/" % i
        parts = [conv(p + "1x1", 64, 1, at=at),
                 chain(at, [(p + "5x5_reduce", 48, 1, 1, 0),
                            (p + "5x5", 64, 5, 1, 2)]),
                 chain(at, [(p + "3x3_reduce", 64, 1, 1, 0),
                            (p + "3x3_1", 96, 3, 1, 1),
                            (p + "3x3_2", 96, 3, 1, 1)])]
        net.pool(p + "pool", "AVE", 3, pad=1, at=at)
        parts.append(conv(p + "pool_proj", proj, 1))
        net.concat(p + "out", parts)
    net.section("35 -> 17.")
    at = net.at
    parts = [conv("ra/3x3", 384, 3, stride=2, at=at),
             chain(at, [("ra/double_reduce", 64, 1, 1, 0),
                        ("ra/double_1", 96, 3, 1, 1),
                        ("ra/double_2", 96, 3, 2, 0)])]
    parts.append(net.pool("ra/pool", "MAX", 3, 2, at=at))
    net.concat("ra/out", parts)
    row, column = (1, 7), (7, 1)
    pads = {row: (0, 3), column: (3, 0)}
    for i, n in enumerate((128, 160, 160, 192), 1):
        net.section("17x17, module %d: 7x7 as 1x7 and 7x1." % i)
        at, p = net.at, "b%d/" % i
        parts = [conv(p + "1x1", 192, 1, at=at),
                 chain(at, [(p + "7x7_reduce", n, 1, 1, 0),
                            (p + "7x7_1", n, row, 1, pads[row]),
                            (p + "7x7_2", 192, column, 1, pads[column])]),
                 chain(at, [(p + "double_reduce", n, 1, 1, 0),
                            (p + "double_1", n, column, 1, pads[column]),
                            (p + "double_2", n, row, 1, pads[row]),
                            (p + "double_3", n, column, 1, pads[column]),
                            (p + "double_4", 192, row, 1, pads[row])])]
        net.pool(p + "pool", "AVE", 3, pad=1, at=at)
        parts.append(conv(p + "pool_proj", 192, 1))
        net.concat(p + "out", parts)
    net.section("17 -> 8.")
    at = net.at
    parts = [chain(at, [("rb/3x3_reduce", 192, 1, 1, 0),
                        ("rb/3x3", 320, 3, 2, 0)]),
             chain(at, [("rb/7x7_reduce", 192, 1, 1, 0),
                        ("rb/7x7_1", 192, row, 1, pads[row]),
                        ("rb/7x7_2", 192, column, 1, pads[column]),
                        ("rb/7x7_3", 192, 3, 2, 0)])]
    parts.append(net.pool("rb/pool", "MAX", 3, 2, at=at))
    net.concat("rb/out", parts)
    row, column = (1, 3), (3, 1)
    pads = {row: (0, 1), column: (1, 0)}
    for i in (1, 2):
        net.section("8x8, module %d: 1x3 and 3x1 side by side." % i)
        at, p = net.at, "c%d/" % i
        parts = [conv(p + "1x1", 320, 1, at=at)]
        for name, first in (
                ("3x3", [(p + "3x3_reduce", 384, 1, 1, 0)]),
                ("double", [(p + "double_reduce", 448, 1, 1, 0),
                            (p + "double_1", 384, 3, 1, 1)])):
            middle = chain(at, first)
            parts.append(conv(p + name + "_row", 384, row, pad=pads[row],
                              at=middle))
            parts.append(conv(p + name + "_column", 384, column,
                              pad=pads[column], at=middle))
        net.pool(p + "pool", "AVE", 3, pad=1, at=at)
        parts.append(conv(p + "pool_proj", 192, 1))
        net.concat(p + "out", parts)
    net.section("Classifier.")
    net.global_pool("pool")
    net.dropout()
    net.fc("classes", 1000)
    net.softmax()
    return net


def resnet18():
    net = Net("resnet18", [
        "ResNet-18.",
        'He, Zhang, Ren, Sun, "Deep residual learning for image recognition",',
        "2015, table 1.",
        "224x224 image, 1000 classes, 11.7 million parameters."], 3, 224, 224)
    net.section("Stem: 224 -> 56.")
    net.conv_norm_relu("conv1", 64, 7, stride=2, pad=3)
    net.pool("pool1", "MAX", 3, 2)
    for stage, width in enumerate([64, 128, 256, 512], 2):
        for block in range(1, 3):
            net.section("Stage %d, block %d." % (stage, block))
            at, p = net.at, "s%db%d/" % (stage, block)
            smaller = block == 1 and stage > 2
            stride = 2 if smaller else 1
            net.conv_norm_relu(p + "conv1", width, 3, stride=stride, pad=1)
            main = net.conv_norm(p + "conv2", width, 3, pad=1)
            if smaller:
                at = net.conv_norm(p + "shortcut", width, 1, stride=stride,
                                   at=at)
            net.add(p + "out", at, main)
            net.relu()
    net.section("Classifier.")
    net.pool("pool5", "AVE", 7)
    net.fc("classes", 1000)
    net.softmax()
    return net


def resnet8():
    net = Net("resnet8", [
        "ResNet-8, of the kind of MLPerf Tiny's image classifier.",
        'Banbury et al., "MLPerf Tiny benchmark", 2021. One residual block a',
        "stage; shortcuts that change the shape are 1x1 convolutions.",
        "32x32 image, 10 classes, 78 thousand parameters."], 3, 32, 32)
    net.section("Stem.")
    net.conv_norm_relu("conv1", 16, 3, pad=1)
    for stage, width in enumerate((16, 32, 64), 1):
        net.section("Block %d: %d channels." % (stage, width))
        at, p, stride = net.at, "b%d/" % stage, 2 if stage > 1 else 1
        net.conv_norm_relu(p + "conv1", width, 3, stride=stride, pad=1)
        main = net.conv_norm(p + "conv2", width, 3, pad=1)
        if stage > 1:
            at = net.conv(p + "shortcut", width, 1, stride=stride, at=at)
        net.add(p + "out", at, main)
        net.relu()
    net.section("Classifier.")
    net.global_pool("pool")
    net.fc("classes", 10)
    net.softmax()
    return net


def ds_cnn():
    net = Net("ds-cnn", [
        "DS-CNN, small: keywords in a second of sound.",
        'Zhang, Suda, Lai, Chandra, "Hello edge: keyword spotting on',
        'microcontrollers", 2017: the small one.',
        "49 frames of 10 cepstral coefficients, 12 words, 23 thousand",
        "parameters."], 1, 49, 10)
    net.section("Stem: 49x10 -> 25x5.")
    net.conv_norm("conv1", 64, (10, 4), stride=2, pad=(5, 1))
    net.relu()
    for i in range(1, 5):
        net.section("Separable convolution %d." % i)
        net.conv_norm_relu("s%d/depthwise" % i, 64, 3, pad=1, group=64)
        net.conv_norm_relu("s%d/pointwise" % i, 64, 1)
    net.section("Classifier.")
    net.global_pool("pool")
    net.fc("words", 12)
    net.softmax()
    return net


def person_detect():
    net = Net("person-detect", [
        "MobileNetV1, width 0.25, as a detector of persons.",
        'Howard et al., "MobileNets: efficient convolutional neural networks',
        'for mobile vision applications", 2017, table 1; image and classes of',
        'Chowdhery et al., "Visual wake words dataset", 2019.',
        "96x96 grey image, 2 classes, 0.21 million parameters."], 1, 96, 96)
    net.section("Stem: 96 -> 48.")
    net.conv_norm("stem", 8, 3, stride=2, pad=1)
    net.relu("ReLU6")
    channels = 8
    for i, (n, stride) in enumerate(
            [(16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2)] +
            [(128, 1)] * 5 + [(256, 2), (256, 1)], 1):
        net.section("Separable convolution %d: %d -> %d channels."
                    % (i, channels, n))
        net.conv_norm("s%d/depthwise" % i, channels, 3, stride=stride, pad=1,
                      group=channels)
        net.relu("ReLU6")
        net.conv_norm("s%d/pointwise" % i, n, 1)
        net.relu("ReLU6")
        channels = n
    net.section("Classifier.")
    net.global_pool("pool")
    net.fc("classes", 2)
    net.softmax()
    return net


FILES = {
    "googlenet": googlenet, "resnet50": resnet50, "yolov2-608": yolov2,
    "mobilenet-v2": mobilenet_v2, "squeezenet": squeezenet, "vgg16": vgg16,
    "vgg-e-stem": vgg_e_stem,
    "densenet-cell": densenet_cell, "inception-v3": inception_v3,
    "micro/resnet18": resnet18, "micro/resnet8": resnet8, "micro/ds-cnn": ds_cnn,
    "micro/person-detect": person_detect}


def main():
    folder = os.path.dirname(os.path.abspath(__file__))
    check, wrong = "--check" in sys.argv[1:], []
    for name, function in FILES.items():
        path, text = os.path.join(folder, name + ".prototxt"), function().text()
        if check:
            with open(path, encoding="ascii") as file:
                if file.read() != text:
                    wrong.append(path)
        else:
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
    for path in wrong:
        print(path + ": not what generate.py writes", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
