#!/usr/bin/env python3
"""couples.py - layers that pass their results to the next by slabs of channels.

In less memory than the result between takes, whole, with what else its reader
touches, nothing moves that need not, and nothing is computed twice. A sum that
writes over what the convolution before it reads is no couple. Verified by
value.
"""
import os
import sys
import tempfile

sys.path.insert(0, "bench")
import networks  # noqa: E402
import tool  # noqa: E402

ROWS = os.path.join("bench", "rows.yaml")


def pooled(net):
    x = networks.conv_relu(net, net.input, 96)
    networks.conv_relu(net, net.pool(x, "MAX", 3, 2, pad=0), 16, 1)


def over_operand(net):
    x = networks.conv_relu(net, net.input, 64, 1)
    networks.conv_relu(net, net.add(x, net.conv(x, 64, 3)), 16, 1)


def gathered(net):
    """A couple reads a concat that is dissolved in little memory."""
    x = net.pool(networks.conv_relu(net, net.input, 32), "MAX", 3, 2, pad=0)
    parts = [x]
    for _ in range(3):
        parts.append(networks.conv_relu(net, parts[-1], 16))
    x = net.conv(net.concat(parts), 48, 1)
    net.conv(net.pool(x, "MAX", 3, 2, pad=0), 16, 1)


def pools(net):
    """One pool behind another, beside what waits."""
    x = networks.conv_relu(net, net.input, 64)
    y = net.pool(net.pool(x, "MAX", 3, 1), "AVE", 2, 2, pad=0)
    z = net.pool(x, "MAX", 2, 2, pad=0)
    net.conv(net.add(networks.conv_relu(net, y, 64, 1), z), 16, 1)


def scaled(net):
    """What each channel is made from has weights of its own."""
    x = net.conv(net.input, 48, 3)
    y = net.conv(net.relu(x), 48, 3, 2, group=48)
    z = net.pool(net.scale(x), "MAX", 2, 2, pad=0)
    net.conv(net.add(networks.conv_relu(net, y, 48, 1), z), 16, 1)


def pyramid(net):
    """Upsampling is added to what is finer."""
    x = networks.conv_relu(net, net.input, 32)
    y = networks.conv_relu(net, net.pool(x, "MAX", 2, 2, pad=0), 32, 1)
    net.conv(net.add(x, net.upsample(y)), 16, 3)


# network, machine, bytes of active memory: most bytes over DDR
TABLE = {
    (pooled, "xdnn-v2-28", 393216): 21152,
    (pooled, ROWS, 131072): 10576,
    (over_operand, "xdnn-v2-28", 393216): 66560,
    (over_operand, ROWS, 87381): 34720,
    (gathered, ROWS, 44500): 10176,
    (pools, "xdnn-v2-28", 500000): 22400,
    (pools, ROWS, 150000): 11200,
    (scaled, ROWS, 120000): 11200,
    (pyramid, ROWS, 76800): 30400,
    ("resnet50", "xdnn-v2-28", 3 << 20): 305152,
    ("resnet50", ROWS, 1354752): 152576,
}


def network_file(network, folder):
    if isinstance(network, str):
        return tool.example(network)
    return networks.built(network, folder)


def main():
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for (network, machine, size), most in TABLE.items():
            path = network_file(network, folder)
            report = tool.verified(path, machine, tool.am(size))
            moved = report["ddr_read_bytes"] + report["ddr_written_bytes"]
            right = (report["ok"] and moved <= most
                     and report["am_peak_bytes"] <= size)
            print(f"{tool.name_of(path)}, {os.path.basename(machine)}, {size} "
                  f"bytes: {moved} over DDR{'' if right else ', wrong'}")
            bad += not right
    return 1 if bad else 0


sys.exit(main())
