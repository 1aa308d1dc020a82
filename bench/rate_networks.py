"""rate_networks.py - networks of published rates that examples/ does not have.

Each function builds one network from the tables of the paper that it names,
with the tool that writes the examples. bench/rates.py writes them to a
temporary folder.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))), "examples"))
from generate import Net  # noqa: E402  (needs the path above)


def conv(net, name, n, kernel, stride=1, pad=0, at=None):
    net.conv_norm(name, n, kernel, stride=stride, pad=pad, at=at)
    return net.relu()


def same(kernel):
    """Padding that keeps the size."""
    if isinstance(kernel, tuple):
        return tuple(k // 2 for k in kernel)
    return kernel // 2


def chain(net, at, prefix, rows):
    """Convolutions behind each other: (outputs, kernel[, stride, pad])."""
    for i, row in enumerate(rows):
        n, kernel = row[:2]
        stride, pad = row[2:] if len(row) > 2 else (1, same(kernel))
        at = conv(net, "%s%d" % (prefix, i), n, kernel, stride, pad, at)
    return at


def module(net, name, branches, pool=None):
    """A concat of branches, and of a pool: (kind, stride, outputs or None)."""
    at = net.at
    parts = [chain(net, at, "%s/%d_" % (name, i), rows)
             for i, rows in enumerate(branches)]
    if pool:
        kind, stride, n = pool
        net.pool(name + "/pool", kind, 3, stride, pad=1 if stride == 1 else 0,
                 at=at)
        parts.append(conv(net, name + "/proj", n, 1) if n else net.at)
    return net.concat(name + "/out", parts)


def classifier(net):
    net.section("Classifier.")
    net.global_pool("pool")
    net.fc("classes", 1000)
    net.softmax()
    return net


def inception_v2_body(net, size):
    """Up to the last module; the outputs of all modules by their names."""
    size = (size + 1) // 2 // 4  # behind the stem
    conv(net, "stem/7x7", 64, 7, 2, 3)
    net.pool("stem/pool1", "MAX", 3, 2)
    conv(net, "stem/1x1", 64, 1)
    conv(net, "stem/3x3", 192, 3, pad=1)
    net.pool("stem/pool2", "MAX", 3, 2)
    table = [  # 1x1, 3x3 reduce, 3x3, double reduce, double; pool, projection
        ("3a", 64, 64, 64, 64, 96, "AVE", 32),
        ("3b", 64, 64, 96, 64, 96, "AVE", 64),
        ("3c", 0, 128, 160, 64, 96, "MAX", 0),
        ("4a", 224, 64, 96, 96, 128, "AVE", 128),
        ("4b", 192, 96, 128, 96, 128, "AVE", 128),
        ("4c", 160, 128, 160, 128, 160, "AVE", 128),
        ("4d", 96, 128, 192, 160, 192, "AVE", 128),
        ("4e", 0, 128, 192, 192, 256, "MAX", 0),
        ("5a", 352, 192, 320, 160, 224, "AVE", 128),
        ("5b", 352, 192, 320, 192, 224, "MAX", 128)]
    made = {}
    for name, n1, r3, n3, rd, nd, kind, proj in table:
        last = (2, 1) if not n1 else (1, 1)
        branches = [[(n1, 1)]] if n1 else []
        branches += [[(r3, 1), (n3, 3) + last],
                     [(rd, 1), (nd, 3), (nd, 3) + last]]
        if n1:
            made[name] = module(net, name, branches, (kind, 1, proj))
            continue
        at = net.at  # stride 2: the pool makes as many as the convolutions
        parts = [chain(net, at, "%s/%d_" % (name, i), rows)
                 for i, rows in enumerate(branches)]
        parts.append(net.pool(name + "/pool", "MAX", 3, 2, pad=size % 2, at=at))
        size = -(-size // 2)
        made[name] = net.concat(name + "/out", parts)
    return made


def inception_v2():
    net = Net("inception-v2", [
        "Inception with batch normalisation.",
        'Ioffe, Szegedy, "Batch normalization", 2015, figure 5.'], 3, 224, 224)
    inception_v2_body(net, 224)
    return classifier(net)


def inception_v2_ssd(size, classes=19):
    """Boxes are read off the last modules of two sizes and off four smaller
    volumes behind them, as the public detectors on this backbone have it."""
    net = Net("inception-v2-ssd-%d" % size, [
        'Liu et al., "SSD: single shot multibox detector", 2016, on Inception',
        "with batch normalisation."], 3, size, size)
    made = inception_v2_body(net, size)
    read = [made["4d"], made["5b"]]
    for i, n in enumerate((512, 256, 256, 128)):
        conv(net, "extra%d/1x1" % i, n // 2, 1)
        read.append(conv(net, "extra%d/3x3" % i, n, 3, 2, 1))
    for i, at in enumerate(read):
        boxes = 6 if i else 3
        for kind, n in (("place", 4), ("class", classes)):
            net.conv("%s%d" % (kind, i), boxes * n, 3, pad=1, at=at)
    return net


def inception_v4():
    net = Net("inception-v4", [
        'Szegedy et al., "Inception-v4, Inception-ResNet and the impact of',
        'residual connections on learning", 2016, figures 3 to 9.'],
        3, 299, 299)
    conv(net, "stem/1", 32, 3, 2)
    conv(net, "stem/2", 32, 3)
    conv(net, "stem/3", 64, 3, pad=1)
    module(net, "stem/a", [[(96, 3, 2, 0)]], ("MAX", 2, None))
    module(net, "stem/b", [[(64, 1), (96, 3, 1, 0)],
                           [(64, 1), (64, (7, 1)), (64, (1, 7)),
                            (96, 3, 1, 0)]])
    module(net, "stem/c", [[(192, 3, 2, 0)]], ("MAX", 2, None))
    for i in range(4):
        module(net, "a%d" % i, [[(96, 1)], [(64, 1), (96, 3)],
                                [(64, 1), (96, 3), (96, 3)]], ("AVE", 1, 96))
    module(net, "ra", [[(384, 3, 2, 0)],
                       [(192, 1), (224, 3), (256, 3, 2, 0)]],
           ("MAX", 2, None))
    row, column = (1, 7), (7, 1)
    for i in range(7):
        module(net, "b%d" % i, [
            [(384, 1)], [(192, 1), (224, row), (256, column)],
            [(192, 1), (192, row), (224, column), (224, row), (256, column)]],
            ("AVE", 1, 128))
    module(net, "rb", [[(192, 1), (192, 3, 2, 0)],
                       [(256, 1), (256, row), (320, column), (320, 3, 2, 0)]],
           ("MAX", 2, None))
    row, column = (1, 3), (3, 1)
    for i in range(3):
        at, p = net.at, "c%d/" % i
        parts = [conv(net, p + "1x1", 256, 1, at=at)]
        for name, rows in (("a", [(384, 1)]),
                           ("b", [(384, 1), (448, row), (512, column)])):
            middle = chain(net, at, p + name, rows)
            for kernel in (row, column):
                parts.append(conv(net, "%s%s_%dx%d" % ((p, name) + kernel),
                                  256, kernel, pad=same(kernel), at=middle))
        net.pool(p + "pool", "AVE", 3, pad=1, at=at)
        parts.append(conv(net, p + "proj", 256, 1))
        net.concat(p + "out", parts)
    return classifier(net)


def resnet50_v2():
    net = Net("resnet50-v2", [
        'He, Zhang, Ren, Sun, "Identity mappings in deep residual networks",',
        "2016: normalisation and activation in front of each convolution, the",
        "stride in the 3x3 one."], 3, 224, 224)

    def norm_relu(name, at):
        net.layer(name, "BatchNorm", [at], name)
        net.layer(name + "/scale", "Scale", [name], name,
                  "scale_param { bias_term: true }")
        return net.layer(name + "/relu", "ReLU", [name], name)

    net.conv("conv1", 64, 7, stride=2, pad=3)
    net.pool("pool1", "MAX", 3, 2)
    at = net.at
    for stage, (blocks, width) in enumerate(
            [(3, 64), (4, 128), (6, 256), (3, 512)], 2):
        for block in range(1, blocks + 1):
            p, first = "s%db%d/" % (stage, block), block == 1
            stride = 2 if first and stage > 2 else 1
            active = norm_relu(p + "active", at)
            conv(net, p + "reduce", width, 1, at=active)
            conv(net, p + "3x3", width, 3, stride, 1)
            main = net.conv(p + "expand", 4 * width, 1)
            if first:
                at = net.conv(p + "shortcut", 4 * width, 1, stride=stride,
                              at=active)
            at = net.add(p + "out", at, main)
    norm_relu("last", at)
    return classifier(net)


def squeezenet_v1_0():
    net = Net("squeezenet-1.0", [
        'Iandola et al., "SqueezeNet: AlexNet-level accuracy with 50x fewer',
        'parameters and <0.5MB model size", 2016, table 1.'], 3, 227, 227)
    net.conv_relu("conv1", 96, 7, stride=2)
    net.pool("pool1", "MAX", 3, 2)
    for number, (squeeze, expand) in enumerate(
            [(16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192),
             (64, 256), (64, 256)], 2):
        p = "fire%d/" % number
        at = net.conv_relu(p + "squeeze", squeeze, 1)
        parts = [net.conv_relu(p + "expand1", expand, 1),
                 net.conv_relu(p + "expand3", expand, 3, pad=1, at=at)]
        net.concat(p + "out", parts)
        if number in (4, 8):
            net.pool("pool%d" % number, "MAX", 3, 2)
    net.conv_relu("classes", 1000, 1)
    net.global_pool("pool10")
    net.softmax()
    return net


NETWORKS = {"inception-v2": inception_v2, "inception-v4": inception_v4,
            "resnet50-v2": resnet50_v2, "squeezenet-1.0": squeezenet_v1_0,
            "inception-v2-ssd-300": lambda: inception_v2_ssd(300),
            "inception-v2-ssd-512": lambda: inception_v2_ssd(512)}
