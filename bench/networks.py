#!/usr/bin/env python3
"""networks.py - networks whose order matters, from their published parameters.

    python3 bench/networks.py nasnet-cifar > nasnet.prototxt
    python3 bench/networks.py randwire:7 > randwire.prototxt
    python3 bench/networks.py --list

Cells: NASNet-A (Zoph et al. 2018, figure 4), AmoebaNet-A (Real et al. 2019,
figure 5), PNASNet-5 (Liu et al. 2018, figure 1), DARTS V2 (Liu et al. 2019,
figures 4 and 5); sizes and stacking as HMCOS measures them (DAC 2022): a stem
of 32 filters, cells that squeeze both inputs to their width, a separable
convolution twice with a ReLU before each. RandWire: three random graphs
WS(32, 4, 0.75) (Xie et al. 2019), 78 channels in the first. Batch
normalisation is folded; where it stands behind a concat it is a Scale.
"""
import os
import random
import sys


class Net:
    """Lines of a prototxt; blobs are (name, channels, size)."""

    def __init__(self, name, channels, size):
        self.lines = [f'name: "{name}"']
        self.count = 0
        self.input = self.another_input(channels, size)

    def another_input(self, channels, size):
        return self._layer(
            "Input", [], channels, size,
            f"input_param {{ shape {{ dim: 1 dim: {channels} dim: {size} "
            f"dim: {size} }} }}")

    def _layer(self, kind, bottoms, channels, size, param=""):
        name = f"{kind.lower()}{self.count}"
        self.count += 1
        wires = " ".join(f'bottom: "{b[0]}"' for b in bottoms)
        self.lines.append(f'layer {{ name: "{name}" type: "{kind}" {wires} '
                          f'top: "{name}" {param} }}')
        return name, channels, size

    def relu(self, x):
        return self._layer("ReLU", [x], x[1], x[2])

    def conv(self, x, filters, kernel, stride=1, group=1):
        kh, kw = kernel if isinstance(kernel, tuple) else (kernel, kernel)
        return self._layer(
            "Convolution", [x], filters, -(-x[2] // stride),
            f"convolution_param {{ num_output: {filters} kernel_h: {kh} "
            f"kernel_w: {kw} pad_h: {kh // 2} pad_w: {kw // 2} "
            f"stride: {stride} group: {group} bias_term: false }}")

    def deconv(self, x, filters):
        return self._layer(
            "Deconvolution", [x], filters, 2 * x[2],
            f"convolution_param {{ num_output: {filters} kernel_size: 2 "
            "stride: 2 bias_term: false }")

    def upsample(self, x):
        return self._layer("Upsample", [x], x[1], 2 * x[2],
                           "upsample_param { scale: 2 }")

    def pool(self, x, kind, kernel, stride=1, pad=None):
        pad = kernel // 2 if pad is None else pad
        return self._layer(
            "Pooling", [x], x[1], (x[2] + 2 * pad - kernel) // stride + 1,
            f"pooling_param {{ pool: {kind} kernel_size: {kernel} "
            f"pad: {pad} stride: {stride} round_mode: FLOOR }}")

    def global_pool(self, x, kind):
        return self._layer("Pooling", [x], x[1], 1,
                           f"pooling_param {{ pool: {kind} "
                           "global_pooling: true }")

    def scale(self, x):
        return self._layer("Scale", [x], x[1], x[2],
                           "scale_param { bias_term: true }")

    def add(self, *xs):
        return self._layer("Eltwise", xs, xs[0][1], xs[0][2],
                           "eltwise_param { operation: SUM }")

    def concat(self, xs):
        return self._layer("Concat", xs, sum(x[1] for x in xs), xs[0][2])

    def head(self, x, classes):
        x = self.global_pool(x, "AVE")
        return self._layer("InnerProduct", [x], classes, 1,
                           f"inner_product_param {{ num_output: {classes} }}")

    def text(self):
        return "\n".join(self.lines) + "\n"


# ---- networks of cells ----

def built(build, folder):
    """The path of a small network that `build` adds layers to."""
    net = Net(build.__name__, 3, 40)
    build(net)
    path = os.path.join(folder, build.__name__ + ".prototxt")
    with open(path, "w", encoding="ascii") as file:
        file.write(net.text())
    return path


def separable(net, x, filters, kernel, stride):
    for step in (stride, 1):
        x = net.relu(x)
        x = net.conv(x, x[1], kernel, step, group=x[1])
        x = net.conv(x, filters, 1)
    return x


def dilated(net, x, filters, kernel, stride):
    x = net.relu(x)
    x = net.conv(x, x[1], kernel, stride, group=x[1])
    return net.conv(x, filters, 1)


def two_lines(net, x, filters, stride):
    x = net.conv(x, filters, (1, 7), stride)
    return net.conv(x, filters, (7, 1))


OPERATORS = {
    "id": lambda net, x, f, s: x,
    "sep3": lambda net, x, f, s: separable(net, x, f, 3, s),
    "sep5": lambda net, x, f, s: separable(net, x, f, 5, s),
    "sep7": lambda net, x, f, s: separable(net, x, f, 7, s),
    "dil3": lambda net, x, f, s: dilated(net, x, f, 3, s),
    "lines7": two_lines,
    "avg1": lambda net, x, f, s: net.pool(x, "AVE", 1, s),
    "avg3": lambda net, x, f, s: net.pool(x, "AVE", 3, s),
    "max3": lambda net, x, f, s: net.pool(x, "MAX", 3, s),
}

# A cell: sums of two operators, each on a cell's input (0: the one before the
# last, 1: the last) or an earlier sum (2...); then which are concatenated.
NASNET = (([("sep5", 1), ("sep3", 0)], [("sep5", 0), ("sep3", 0)],
           [("avg3", 1), ("id", 0)], [("avg3", 0), ("avg3", 0)],
           [("sep3", 1), ("id", 1)]), (0, 2, 3, 4, 5, 6))
NASNET_REDUCE = (([("sep5", 1), ("sep7", 0)], [("max3", 1), ("sep5", 0)],
                  [("avg3", 1), ("sep5", 0)], [("id", 3), ("avg3", 2)],
                  [("sep3", 2), ("max3", 1)]), (3, 4, 5, 6))
AMOEBA = (([("avg3", 0), ("max3", 0)], [("id", 0), ("avg3", 1)],
           [("sep5", 2), ("sep3", 1)], [("sep3", 2), ("id", 1)],
           [("avg3", 4), ("sep3", 0)]), (3, 5, 6))
AMOEBA_REDUCE = (([("avg3", 0), ("sep3", 1)], [("max3", 1), ("max3", 0)],
                  [("max3", 0), ("sep7", 2)], [("sep7", 0), ("avg3", 1)],
                  [("sep3", 3), ("lines7", 0)]), (4, 5, 6))
PNAS = (([("sep5", 0), ("max3", 0)], [("sep7", 1), ("max3", 1)],
         [("sep5", 1), ("sep3", 1)], [("sep3", 4), ("max3", 1)],
         [("sep3", 0), ("avg1", 1)]), (2, 3, 4, 5, 6))
DARTS = (([("sep3", 0), ("sep3", 1)], [("sep3", 0), ("sep3", 1)],
          [("sep3", 1), ("id", 0)], [("id", 0), ("dil3", 2)]), (2, 3, 4, 5))
DARTS_REDUCE = (([("max3", 0), ("max3", 1)], [("id", 2), ("max3", 1)],
                 [("max3", 0), ("id", 2)], [("id", 2), ("max3", 1)]),
                (2, 3, 4, 5))


def squeeze(net, x, filters):
    return net.conv(net.relu(x), filters, 1)


def fit(net, x, size, filters):
    """The input before the last, at the size and width of the last."""
    if x[2] == size:
        return squeeze(net, x, filters)
    x = net.relu(x)
    even = net.conv(net.pool(x, "AVE", 1, 2), filters // 2, 1)
    # The same, a pixel further: by a volume with one more row and column.
    moved = net.pool(net.pool(x, "AVE", 2, 1, pad=1), "AVE", 2, 2, pad=0)
    odd = net.conv(moved, filters // 2, 1)
    return net.scale(net.concat([even, odd]))


def cell(net, before, last, filters, plan, reduce):
    last = squeeze(net, last, filters)
    before = last if before is None else fit(net, before, last[2], filters)
    blob = [before, last]
    sums, joined = plan
    for pair in sums:
        sides = [OPERATORS[op](net, blob[at], filters,
                               2 if reduce and at < 2 else 1)
                 for op, at in pair]
        blob.append(net.add(*sides))
    return net.concat([blob[i] for i in joined])


def cells(name, normal, reduce, imagenet, stack, width):
    net = Net(name, 3, 224 if imagenet else 32)
    last, before = net.conv(net.input, 32, 3, 2 if imagenet else 1), None
    kinds = "N" * stack + "R" + "N" * stack + "R" + "N" * stack
    if imagenet:
        kinds = "RR" + kinds
    for kind in kinds:
        width *= 2 if kind == "R" else 1
        made = cell(net, before, last, int(width),
                    reduce if kind == "R" else normal, kind == "R")
        before, last = last, made
    net.head(net.relu(last), 1000 if imagenet else 100)
    return net


# ---- random graphs ----

def small_world(n, k, p, dice):
    """Edges of WS(n, k, p): a ring in which each node knows its k nearest, and
    each edge is moved to another end with probability p."""
    knows = [{(i + j) % n for j in range(-k // 2, k // 2 + 1)} - {i}
             for i in range(n)]
    for i in range(n):
        for j in range(1, k // 2 + 1):
            if dice.random() < p:
                other = dice.choice([x for x in range(n)
                                     if x != i and x not in knows[i]])
                old = (i + j) % n
                knows[i] ^= {old, other} if old in knows[i] else {other}
                knows[old].discard(i)
                knows[other].add(i)
    return sorted((i, j) for i in range(n) for j in knows[i] if i < j)


def random_stage(net, x, filters, dice):
    n = 32
    edges = small_world(n, 4, 0.75, dice)
    made = []
    for i in range(n):
        reads = [made[a] for a, b in edges if b == i]
        at = net.add(*reads) if len(reads) > 1 else (reads or [x])[0]
        at = net.relu(at)
        at = net.conv(at, at[1], 3, 1 if reads else 2, group=at[1])
        made.append(net.conv(at, filters, 1))
    ends = [made[i] for i in range(n) if all(a != i for a, _ in edges)]
    return net.add(*ends) if len(ends) > 1 else ends[0]


def randwire(seed, width=78):
    dice = random.Random(seed)
    net = Net(f"randwire-{seed}", 3, 224)
    x = net.relu(net.conv(net.input, width // 2, 3, 2))
    x = net.conv(x, width, 3, 2)
    for times in (1, 2, 4):
        x = random_stage(net, x, width * times, dice)
    net.head(net.conv(x, 1280, 1), 1000)
    return net


# ---- others ----

def inception_3b():
    """One module of the seed compiler's slides: the two 1x1 reductions merged,
    counted with 32 channels as there."""
    net = Net("inception-3b", 256, 28)
    x = net.input
    reduce = net.conv(x, 32, 1)
    pool = net.pool(x, "MAX", 3)
    net.concat([net.conv(x, 128, 1), net.conv(reduce, 192, 3),
                net.conv(reduce, 96, 5), net.conv(pool, 64, 1)])
    return net


def resnet_18():
    net = Net("resnet-18", 3, 224)
    x = net.pool(net.relu(net.conv(net.input, 64, 7, 2)), "MAX", 3, 2)
    for width in (64, 128, 256, 512):
        for block in range(2):
            stride = 2 if width > 64 and block == 0 else 1
            y = net.relu(net.conv(x, width, 3, stride))
            y = net.conv(y, width, 3)
            if stride == 2:
                x = net.conv(x, width, 1, 2)
            x = net.relu(net.add(x, y))
    net.head(x, 1000)
    return net


def residual(blocks=24):
    """More steps than small networks have: three stages of so many blocks."""
    net = Net("residual", 3, 56)
    x = net.relu(net.conv(net.input, 32, 3))
    for width in (32, 64, 128):
        for block in range(blocks):
            y = net.relu(net.conv(x, width // 2, 1))
            y = net.conv(y, width, 3)
            x = net.relu(net.add(x, y))
        if width < 128:
            x = net.relu(net.conv(x, 2 * width, 3, 2))
    return net


def conv_relu(net, x, filters, times=1):
    for _ in range(times):
        x = net.relu(net.conv(x, filters, 3))
    return x


def u_net(width=64):
    """Ronneberger et al. 2015, with padding, of an image of 256 x 256."""
    net = Net("u-net", 3, 256)
    x, skips = net.input, []
    for depth in range(4):
        x = conv_relu(net, x, width << depth, 2)
        skips.append(x)
        x = net.pool(x, "MAX", 2, 2, pad=0)
    x = conv_relu(net, x, width << 4, 2)
    for depth in reversed(range(4)):
        x = net.concat([skips[depth], net.deconv(x, width << depth)])
        x = conv_relu(net, x, width << depth, 2)
    net.conv(x, 2, 1)
    return net


def u_net_plus_plus(widths=(16, 24, 32, 48)):
    """Zhou et al. 2018, small: each level reads all results of its size
    before it."""
    net = Net("u-net-plus-plus", 3, 64)
    x, n = net.input, len(widths)
    level = []
    for depth, width in enumerate(widths):
        x = net.pool(x, "MAX", 2, 2, pad=0) if depth else x
        x = conv_relu(net, x, width, 2)
        level.append([x])
    for reach in range(1, n):
        for depth in range(n - reach):
            below = net.upsample(level[depth + 1][reach - 1])
            x = net.concat(level[depth][:reach] + [below])
            level[depth].append(conv_relu(net, x, widths[depth], 2))
    net.conv(level[0][-1], 2, 1)
    return net


def segnet():
    """Badrinarayanan et al. 2015, of about as many pixels as there, with
    nearest neighbours for its unpooling."""
    net = Net("segnet", 3, 416)
    plan = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
    x = net.input
    for width, times in plan:
        x = conv_relu(net, x, width, times)
        x = net.pool(x, "MAX", 2, 2, pad=0)
    for depth in reversed(range(5)):
        width, times = plan[depth]
        x = conv_relu(net, net.upsample(x), width, times - 1)
        x = conv_relu(net, x, plan[depth - 1][0] if depth else 12)
    return net


def wide(branches=60):
    """So many orders that no proof is in reach."""
    dice = random.Random(1)
    net = Net("wide", 8, 16)
    made = []
    for _ in range(branches):
        x = net.input
        for _ in range(3):
            x = net.conv(x, dice.randrange(1, 64), 3)
        made.append(x)
    layer = made
    for _ in range(3):
        layer = [net.conv(net.concat(dice.sample(layer, 3)),
                          dice.randrange(1, 64), 1)
                 for _ in range(branches)]
    net.concat(layer)
    return net


def long(cells_of_each=14):
    """About 2,000 operators."""
    return cells("nasnet-long", NASNET, NASNET_REDUCE, False, cells_of_each,
                 32)


NETWORKS = {
    "nasnet-cifar":
        lambda: cells("nasnet", NASNET, NASNET_REDUCE, False, 6, 32),
    "nasnet-imagenet":
        lambda: cells("nasnet", NASNET, NASNET_REDUCE, True, 4, 11),
    "amoebanet-cifar":
        lambda: cells("amoebanet", AMOEBA, AMOEBA_REDUCE, False, 6, 36),
    "amoebanet-imagenet":
        lambda: cells("amoebanet", AMOEBA, AMOEBA_REDUCE, True, 4, 12.5),
    "darts-cifar":
        lambda: cells("darts", DARTS, DARTS_REDUCE, False, 6, 36),
    "darts-imagenet":
        lambda: cells("darts", DARTS, DARTS_REDUCE, True, 4, 12),
    "pnasnet": lambda: cells("pnasnet", PNAS, PNAS, True, 3, 54),
    "inception-3b": inception_3b,
    "resnet-18": resnet_18,
    "residual": residual,
    "u-net": u_net,
    "u-net-plus-plus": u_net_plus_plus,
    "segnet": segnet,
    "long": long,
    "wide": wide,
}


def network(name):
    if name.startswith("randwire:"):
        return randwire(int(name.split(":")[1]))
    return NETWORKS[name]()


def main():
    name = sys.argv[1] if len(sys.argv) == 2 else ""
    if name == "--list":
        print("\n".join(list(NETWORKS) + ["randwire:SEED"]))
    elif name in NETWORKS or name.startswith("randwire:"):
        sys.stdout.write(network(name).text())
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
