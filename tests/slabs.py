#!/usr/bin/env python3
"""slabs.py - layers that run by some of their channels at a time.

A pool over a whole image needs all rows for its only one. The least memory that
is said to do does, and is what the table LEAST says; the next smaller does not;
verified by value in it, and in half as much more. PASSED: what comes from the
host, or goes there, passes by slabs, no row of it twice, and what engines need
stays.
"""
import os
import re
import sys
import tempfile

sys.path.insert(0, "bench")
import networks  # noqa: E402
import tool  # noqa: E402

ROWS = os.path.join("bench", "rows.yaml")


def classifier(net):
    """The result leaves for the host."""
    x = net.conv(net.conv(net.input, 16, 3), 201, 1)
    net.global_pool(x, "AVE")


def excited(net):
    """The operand is read again, the result by an engine."""
    x = net.relu(net.conv(net.input, 64, 3))
    y = net.conv(net.global_pool(x, "AVE"), 64, 1)
    net.add(y, net.global_pool(net.conv(x, 64, 3), "MAX"))


def joined(net):
    """Results that are members of a concat."""
    x, y = net.conv(net.input, 48, 3), net.conv(net.input, 80, 1)
    both = [net.global_pool(x, "MAX"), net.global_pool(y, "AVE")]
    net.conv(net.concat(both), 8, 1)


def halved(net):
    """Two rows each way; slabs have both, so the layer is not cut by rows to
    hide its loads."""
    x = net.conv(net.input, 32, 3)
    net.conv(net.pool(x, "AVE", 20, 20, pad=0), 8, 1)
    net.add(x, net.conv(x, 32, 3))


# machine: bytes of active memory that each network takes at least
LEAST = {
    "xdnn-v2-28": {classifier: 27904, excited: 32768,
                   joined: 10752, halved: 16384},
    "ring-npu": {classifier: 25616, excited: 25616,
                 joined: 25616, halved: 6416},
    "tile-npu": {classifier: 25801, excited: 25664,
                 joined: 25680, halved: 6528},
    "line-npu": {classifier: 25616, excited: 25616,
                 joined: 25616, halved: 10752},
    ROWS: {classifier: 1920, excited: 8960,
           joined: 1640, halved: 5120},
}


def by_host(net, x):
    return net._layer("LRN", [x], x[1], x[2], "lrn_param { local_size: 5 }")


def pooled(net):
    x = by_host(net, net.conv(net.input, 48, 3))
    by_host(net, net.conv(net.pool(x, "MAX", 3, 2, pad=0), 96, 3))


def summed(net):
    x = net.conv(net.input, 32, 3)
    net.conv(net.add(by_host(net, net.conv(x, 32, 3)), x), 16, 1)


def filtered(net):
    x = by_host(net, net.conv(net.input, 48, 3))
    net.conv(net.conv(x, 48, 3, 2, group=48), 8, 1)


# network, bytes of active memory of ROWS: bytes over DDR, volumes by channels
PASSED = {
    (pooled, 24000): (193056, 3),
    (pooled, 80000): (193056, 2),
    (summed, 64000): (132800, 3),
    (filtered, 24000): (161600, 2),
    (filtered, 80000): (161600, 2),
}


def size_of(text):
    units = {"KiB": 1 << 10, "MiB": 1 << 20}
    return (int(text[:-3]) * units[text[-3:]] if text[-3:] in units
            else int(text))


def least(path, machine, folder):
    """Bytes that are said to do; None where it fits, or that fits what is said
    not to."""
    done = tool.run("compile", path, "-t", machine, "-o", folder, "--set",
                    tool.am(1024))
    said = re.search(r"size=(\w+) would do; (\w+) would not", done.stderr)
    if done.returncode != tool.DOES_NOT_FIT or not said:
        return None
    if tool.verified(path, machine, tool.am(said[2])):
        return None
    return size_of(said[1])


def wrong(path, machine, bytes_, folder):
    """What is wrong, or None."""
    found = least(path, machine, folder)
    if found != bytes_:
        return f"said to take {found}, not {bytes_}"
    for size in (bytes_, bytes_ * 3 // 2):
        report = tool.verified(path, machine, tool.am(size))
        if not report["ok"] or report["am_peak_bytes"] > size:
            return f"wrong with {size}"
    return None


def passed(path, size, folder):
    """Bytes over DDR, and how many volumes run by channels; None if wrong."""
    report = tool.verified(path, ROWS, tool.am(size))
    done = tool.run("compile", path, "-t", ROWS, "-o", folder, "--explain",
                    "--set", tool.am(size), *tool.objective_of(ROWS))
    if not report["ok"] or report["am_peak_bytes"] > size:
        return None
    return (report["ddr_read_bytes"] + report["ddr_written_bytes"],
            done.stdout.count("by channels"))


def main():
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for (build, size), expected in PASSED.items():
            found = passed(networks.built(build, folder), size, folder)
            print(f"{build.__name__}, {size} bytes: {found}"
                  f"{'' if found == expected else f', not {expected}'}")
            bad += found != expected
        for machine, table in LEAST.items():
            for build, bytes_ in table.items():
                path = networks.built(build, folder)
                what = wrong(path, machine, bytes_, folder)
                print(f"{build.__name__}, {machine}: {what or bytes_}")
                bad += what is not None
    return 1 if bad else 0


sys.exit(main())
