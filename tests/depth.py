#!/usr/bin/env python3
"""depth.py - layers that spread pixels, and concats, in depth-first groups.

Small networks that shrink and grow again, by upsampling and by transposed
convolutions, and networks of concats, with far less active memory than their
volumes take: verified by value, and no more bytes over DDR than the table says
(layer by layer they move several times as many).
"""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, "bench")
import networks  # noqa: E402

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
ROWS = os.path.join("bench", "rows.yaml")
def upsample(net, x, _):
    return net.upsample(x)


def deconv(net, x, width):
    return net.deconv(x, width)


def hourglass(net, grow):
    x, widths = net.input, (8, 16, 32)
    for width in widths:
        x = networks.conv_relu(net, x, width, 2)
        x = net.pool(x, "MAX", 2, 2, pad=0)
    for depth in reversed(range(3)):
        x = grow(net, x, widths[depth])
        x = networks.conv_relu(net, x, widths[depth])
        x = networks.conv_relu(net, x, widths[depth - 1] if depth else 12)
    return x


def conv(net, x, filters, kernel=3):
    return net.relu(net.conv(x, filters, kernel))


def fires(net):
    """Modules of SqueezeNet: one concat of two, each read by nobody else."""
    x = conv(net, net.input, 16)
    for width in (8, 8, 16):
        x = conv(net, x, width, 1)
        x = net.concat([conv(net, x, 2 * width, 1), conv(net, x, 2 * width)])
    return conv(net, x, 8, 1)


def inceptions(net):
    x = conv(net, net.input, 24)
    for width in (8, 12):
        third = conv(net, x, width // 2, 1)
        fifth = conv(net, x, width // 4, 1)
        pooled = net.pool(x, "MAX", 3, 1)
        x = net.concat([conv(net, x, width, 1),
                        conv(net, third, width),
                        conv(net, fifth, width // 2, 5),
                        conv(net, pooled, width // 2, 1)])
    return net.pool(x, "MAX", 2, 2, pad=0)


def dense(net):
    """Concats of concats: what is read as well is copied."""
    x = conv(net, net.input, 8)
    for _ in range(4):
        x = net.concat([x, conv(net, net.scale(x), 8)])
    return conv(net, x, 8, 1)


def decoder(net, grow):
    """U-Net: the way around is longer than the operand behind it is high."""
    skips, x = [], net.input
    for width in (8, 16):
        x = networks.conv_relu(net, networks.conv_relu(net, x, width), width)
        skips.append(x)
        x = net.pool(x, "MAX", 2, 2, pad=0)
    x = networks.conv_relu(net, x, 24)
    for skip in reversed(skips):
        x = net.concat([skip, grow(net, x, skip[1])])
        x = networks.conv_relu(net, x, skip[1])
    return x


def spread_only(net):
    """Planks of pairs of rows, of which four do not make all."""
    net.deconv(net.pool(net.input, "MAX", 7, 7, pad=0), 64)


# network: machine, active memory, most bytes over DDR
TABLE = {
    ("hourglass by upsampling", lambda net: hourglass(net, upsample)): (
        (ROWS, 200000, 138240), (ROWS, 60000, 180864), (ROWS, 20000, 253824),
        ("ring-npu", 20000, 147456), ("line-npu", 60000, 626688),
        ("xdnn-v2-28", 200000, 327168)),
    ("hourglass by deconvolution", lambda net: hourglass(net, deconv)): (
        (ROWS, 200000, 138240), (ROWS, 60000, 180864), (ROWS, 20000, 253824)),
    ("fire modules", fires): (
        (ROWS, 100000, 122112), (ROWS, 20000, 574848),
        ("xdnn-v2-28", 200000, 262656), ("ring-npu", 20000, 248832)),
    ("inception modules", inceptions): (
        (ROWS, 100000, 176256), (ROWS, 30000, 1427328),
        ("xdnn-v2-28", 200000, 5925888), ("ring-npu", 30000, 552960)),
    ("dense block", dense): (
        (ROWS, 100000, 133056), (ROWS, 40000, 369216),
        ("ring-npu", 20000, 912384)),
    ("u-net by upsampling", lambda net: decoder(net, upsample)): (
        (ROWS, 100000, 141696), (ROWS, 40000, 417408),
        ("ring-npu", 30000, 285696)),
    ("one deconvolution", spread_only): (
        ("xdnn-v2-28", 53248, 87542), ("xdnn-v2-28", 102400, 87542)),
    ("u-net by deconvolution", lambda net: decoder(net, deconv)): (
        (ROWS, 100000, 133632), (ROWS, 40000, 378240),
        ("xdnn-v2-28", 300000, 874752), ("xdnn-v2-56", 300000, 267264)),
}


def weights_apart(machine):
    """What the table says is of volumes alone."""
    rolls = machine in ("ring-npu", "line-npu")
    return ["--set", "tiling.weights_stay=true"] if rolls else []


def verify(path, machine, size):
    done = subprocess.run(
        [AMPHORA, "verify", path, "-t", machine, "--json", "--set",
         f"memories.am.size={size}", "--objective", "bytes",
         *weights_apart(machine)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else {}


def main():
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for (name, build), room in TABLE.items():
            net = networks.Net("depth", 3, 96)
            build(net)
            path = os.path.join(folder, "depth.prototxt")
            with open(path, "w", encoding="ascii") as file:
                file.write(net.text())
            for machine, size, most in room:
                found = verify(path, machine, size)
                moved = (found.get("ddr_read_bytes", 0)
                         + found.get("ddr_written_bytes", 0))
                ok = bool(found.get("ok")) and 0 < moved <= most
                print(f"{name}, {os.path.basename(machine)}, {size} bytes: "
                      f"{moved} over DDR{'' if ok else ', wrong'}")
                bad += not ok
    return 1 if bad else 0


sys.exit(main())
