#!/usr/bin/env python3
"""never_worse.py - what the plan is chosen for does not rise in a larger active
memory, with more bandwidth, or with a wider array.

That is cycles on the machines of BY_TIME, bytes over DDR on others. SIZES are
sweeps of memory, SECOND of a second one, FASTER those over three octaves on both
sides of what the machine has. Without --long a few of the smallest sweeps. The
sweeps of many more values and networks are those of bench/sweep.py.
"""
import concurrent.futures
import os
import sys
import tempfile

sys.path.insert(0, "bench")
import networks  # noqa: E402
import residency  # noqa: E402
import sweep  # noqa: E402
import tool  # noqa: E402

KIB = 1 << 10
BY_TIME = {"xdnn-v2-28", "xdnn-v2-56", "xdnn-v3-96", "ring-npu", "line-npu",
           "stage-npu", "tile-npu"}
SIZES = {  # in KiB, and how many of them fit
    ("tiny", "xdnn-v2-28"): (range(4, 49), 41),
    ("tiny", "xdnn-v2-56"): (range(8, 97, 2), 41),
    ("squeezenet", "xdnn-v2-28"): (range(256, 3201, 128), 24),
    ("googlenet", "xdnn-v2-28"): (range(512, 3073, 512), 6),
    ("googlenet", "xdnn-v3-96"): (range(512, 1665, 128), 10),
    ("squeezenet", "xdnn-v3-96"): (range(512, 4609, 512), 9),
    ("residual", "xdnn-v2-28"): ([248, 424, 512, 600], 4),
    ("inception-v3", "xdnn-v3-96"): (range(2304, 4097, 512), 4),
    ("densenet-cell", "xdnn-v3-96"): (range(320, 1345, 64), 17),
    ("tiny", "ring-npu"): (range(2, 25), 23),
    ("googlenet", "ring-npu"): (range(61, 290, 19), 13),
    ("tiny", "line-npu"): (range(6, 60, 3), 18),
    ("residual", "line-npu"): ([220, 256, 600], 3),
    ("squeezenet", "ring-npu"): (range(26, 250, 32), 7),
    ("residual", "ring-npu"): ([7.25, 7.75, 9, 30, 137, 245], 6),
    ("densenet-cell", "line-npu"): (range(64, 1089, 64), 17),
    ("squeezenet", "line-npu"): (range(100, 901, 100), 9),
    ("googlenet", "line-npu"): ([210, 408, 549, 624, 701, 944], 6),
    # in 361,872 bytes layers begin to roll, slowly
    ("vgg-e-stem", "line-npu"): ([340, 361872 / KIB], 2),
    ("googlenet", "tile-npu"): (range(64, 577, 128), 5),
    ("squeezenet", "tile-npu"): (range(64, 1665, 400), 5),
    ("vgg16", "tile-npu"): ([288, 512, 1024], 3),
    ("u-net", "tile-npu"): ([288, 712, 2048], 3),
    ("residual", "tile-npu"): ([64, 340, 450, 512], 4),
    ("tiny", "stage-npu"): (range(2, 65, 2), 32),
    ("densenet-cell", "stage-npu"): (range(48, 1100, 80), 14),
    ("squeezenet", "stage-npu"): (range(100, 2000, 190), 10),
    # from the least bytes in which it fits
    ("micro/resnet8", "stage-npu"): (
        [size / KIB for size in range(3200, 3650, 64)], 7),
    ("separable", "stage-npu"): (
        [size / KIB for size in (34512, 34816, 34858, 36669, 45056)], 4),
    ("narrowing", "xdnn-v2-28"): (
        [size / KIB for size in (11712, 11776, 11840, 12032)], 3),
    ("narrowing", "ring-npu"): (
        [size / KIB for size in (3664, 3680, 3744, 3936)], 3),
    ("narrowing", "line-npu"): (
        [size / KIB for size in (8032, 8048, 8056, 8064, 8112)], 4),
    # the least size is no whole number of granules
    ("summed", "ring-npu"): (
        [size / KIB for size in (2967, 2968, 2972, 2976, 2992)], 4),
    ("separable", "line-npu"): (
        [size / KIB for size in (72959, 72960, 72964, 72976, 73024)], 4),
    # operands of a sum fill two partitions; more does not divide by three
    ("summed", "xdnn-v3-96"): (
        [484128 / KIB + more / KIB for more in (-64, 0, 8, 64, 96, 192, 288)],
        6),
    ("grouped", "xdnn-v3-96"): ([47, 48, 60, 72, 96, 144, 192], 6),
    # planned for less, operands of a sum come to lie apart in 373,248 bytes
    ("decoder", "xdnn-v3-96"): (
        [size / KIB for size in (311040, 373248, 383616, 497664)], 4),
    ("tiny", residency.MACHINE): (range(1, 25), 24),
    ("squeezenet", residency.MACHINE): (range(64, 833, 48), 17),
}
SECOND = {  # bytes of the memory beside the first one, of template
    "googlenet": (range(512 * KIB, 1409 * KIB, 128 * KIB), 8),
    "squeezenet": ([3, *range(128 * KIB, 577 * KIB, 64 * KIB)], 9),
}
FASTER = [  # with so many KiB; all fit
    ("tiny", "xdnn-v2-28", 12),
    ("squeezenet", "ring-npu", 248),
    ("squeezenet", "line-npu", 994),
    ("squeezenet", "stage-npu", 8192),
    ("squeezenet", "tile-npu", 512),
    ("mobilenet-v2", "xdnn-v3-96", 4096),
]
GENERATED = {"residual", "u-net"}  # by bench/networks.py
# Results of the host lie in `inputs`, which holds them all, but not twice.
HOSTED = [[tool.am(size << 10), "memories.inputs.size=208KiB"]
          for size in range(4, 65, 6)]
# Copies into concats pass through active memory once a plan is finished.
PASSED = [[tool.am(size), "machine.element=2"] for size in (33000, 50000, 66000)]
UNNAMED = ("squeezenet", "xdnn-v2-28", 1385)  # without the keys `planned_*`
LONG = "--long" in sys.argv[1:]
VALUES = {"bandwidths": 10 if LONG else 5, "widths": 7 if LONG else 4}
SAMPLE = {("tiny", "xdnn-v2-28"), ("tiny", "ring-npu"), ("tiny", "line-npu"),
          ("tiny", "stage-npu"), ("grouped", "xdnn-v3-96"),
          ("tiny", residency.MACHINE)}


def sweeps(network, machine, size, what, folder=None):
    vary = {"bandwidths": sweep.bandwidths, "widths": sweep.widths}[what]
    settings = [[tool.am(size * KIB)] + one
                for one in vary(machine, VALUES[what])]
    path = unnamed(machine, folder) if folder else machine
    return what, path, network, settings, VALUES[what]


def unnamed(machine, folder):
    """The machine as somebody writes it who names nothing to plan for."""
    path = os.path.join(folder, "unnamed.yaml")
    with open(os.path.join(tool.ROOT, f"hwspec/targets/{machine}.yaml"),
              encoding="utf-8") as shipped, \
            open(path, "w", encoding="utf-8") as own:
        own.writelines(line for line in shipped if "planned_" not in line)
    return path


def upsampled():
    """Layers of the host between convolutions."""
    net = networks.Net("upsampled", 16, 32)
    x = net.pool(net.conv(net.input, 32, 3), "MAX", 2, 2, pad=0)
    x = net.conv(net.upsample(net.conv(x, 64, 3)), 32, 3)
    net.conv(net.upsample(x), 8, 3)
    return net.text()


def narrowing():
    """What is found for the least size that any of it fits in is found for
    that size, not for one near it."""
    net = networks.Net("narrowing", 24, 40)
    x = net.conv(net.conv(net.input, 20, 3), 12, 3)
    net.conv(net.conv(x, 12, 3), 3, 5)
    return net.text()


def separable():
    """Wider and narrower again, with a result from the middle: what fits in the
    least memory of all would move fewer bytes than what more gets."""
    net = networks.Net("separable", 3, 80)
    last, middle, wide = net.conv(net.input, 32, 3, 2), None, 32
    for filters, stride, kernel in ((48, 1, 3), (64, 2, 5), (64, 1, 3),
                                    (96, 2, 7), (96, 1, 3), (160, 2, 3),
                                    (160, 1, 5)):
        x = net.relu(net.conv(last, 3 * wide, 1))
        x = net.relu(net.conv(x, 3 * wide, kernel, stride, group=3 * wide))
        x = net.conv(x, filters, 1)
        last = net.add(last, x) if (filters, stride) == (wide, 1) else x
        middle, wide = last if filters == 64 else middle, filters
    net.head(last, 100)
    net.conv(middle, 10, 1)
    return net.text().replace("dim: 80 dim: 80", "dim: 80 dim: 64")


def summed():
    """Everything stays, or nothing fits."""
    net = networks.Net("summed", 4, 41)
    a = net.conv(net.input, 20, 3)
    net.conv(net.add(a, net.conv(net.another_input(6, 41), 20, 3)), 24, 3, 2)
    return net.text()


def decoder():
    """Down and up again by transposed convolutions."""
    net = networks.Net("decoder", 3, 36)
    a = net.conv(net.input, 10, 3)
    b = net.conv(a, 20, 3, 2)
    c = net.conv(net.conv(b, 40, 3, 2), 40, 3)
    d = net.conv(net.concat([net.deconv(c, 20), b]), 24, 3)
    net.deconv(net.conv(net.add(net.deconv(d, 10), a), 4, 1), 4)
    return net.text()


def grouped():
    """Residual blocks with grouped convolutions, ever narrower: in little memory
    every volume leaves once, most of them for no reason."""
    net = networks.Net("grouped", 3, 64)
    last = net.conv(net.input, 24, 3, 2)
    for filters, blocks in ((32, 1), (56, 2), (104, 3)):
        for block in range(blocks):
            stride = 1 if block else 2
            x = net.relu(net.conv(last, filters, 1))
            x = net.relu(net.conv(x, filters, 3, stride, group=filters // 8))
            x = net.conv(x, filters, 1)
            skip = last if block else net.conv(last, filters, 1, stride)
            last = net.relu(net.add(x, skip))
    net.head(last, 10)
    return net.text()


def joined():
    """What the host scales up, beside what it was scaled down from."""
    net = networks.Net("joined", 3, 64)
    a = net.conv(net.conv(net.input, 16, 3), 32, 3, 2)
    b = net.conv(net.conv(a, 64, 3, 2), 64, 3)
    c = net.conv(net.conv(b, 128, 3, 2), 128, 1)
    y = net.conv(net.concat([net.upsample(net.conv(c, 64, 1)), b]), 64, 3)
    z = net.conv(net.concat([net.upsample(net.conv(y, 32, 1)), a]), 32, 3)
    for x in (c, y, z):
        net.conv(x, 24, 1)
    return net.text()


OWN = {text.__name__: text for text in (upsampled, narrowing, separable, summed,
                                        decoder, grouped, joined)}


def network_file(name, folder):
    if name in OWN:
        path = os.path.join(folder, f"{name}.prototxt")
        with open(path, "w", encoding="utf-8") as out:
            out.write(OWN[name]())
        return path
    if name in GENERATED:
        return residency.generated(name, folder)
    return tool.example(name)


def looked_at(sizes, fits):
    """Of a range every third without --long, from the largest down; and how
    many of these fit."""
    if LONG or not isinstance(sizes, range):
        return sizes, fits
    return sizes[::-3][::-1], (fits + 2) // 3


def cases(folder):
    """(what, machine, network, settings, how many of them fit)"""
    for (network, machine), sized in SIZES.items():
        if LONG or (network, machine) in SAMPLE:
            sizes, fits = looked_at(*sized)
            yield ("sizes", machine, network,
                   [[tool.am(int(size * KIB))] for size in sizes], fits)
    yield "sizes", "tile-npu", "joined", PASSED, len(PASSED)
    for network, machine, size in FASTER:
        if LONG or (network, machine) in SAMPLE:
            for what in VALUES:
                yield sweeps(network, machine, size, what)
    if not LONG:
        return
    yield "sizes", "tile-npu", "upsampled", HOSTED, len(HOSTED)
    for network, (sizes, fits) in SECOND.items():
        yield ("sizes", "template", network,
               [[f"memories.bulk.size={size}"] for size in sizes], fits)
    yield sweeps(*UNNAMED, "bandwidths", folder)


def complaints(what, found, fits, key):
    rise = sweep.rises(found, key)
    if rise.n:
        yield f"{what}: {key} rise by {rise.most:.2%}"
    fit = len(found) - found.count(None)
    if fit != fits or sweep.lost(found):
        yield f"{what}: {fit} fit"


def main():
    wrong = []
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(sweep.JOBS) as pool:
        for what, machine, network, settings, fits in cases(folder):
            found = sweep.points(pool, network_file(network, folder), machine,
                                 settings, folder)
            by_time = what != "sizes" or machine in BY_TIME
            name = f"{network:13} {tool.name_of(machine):11} {len(settings):2} {what}"
            wrong += complaints(name, found, fits,
                                "cycles" if by_time else "bytes")
            ends = [p for p in found if p]
            print(f"{name}: {ends[0].bytes:,} to {ends[-1].bytes:,} bytes, "
                  f"{ends[0].cycles:,} to {ends[-1].cycles:,} cycles")
    print(*wrong, sep="\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
