#!/usr/bin/env python3
"""residency.py - bytes over DDR where memory is short, beside LRU's.

Networks of bench/networks.py at 90, 75, 50 and 25 % of their peak, on
bench/rows.yaml: no cell moves more than LRU, which pays for no buffers, nor
for the place of a concat, with and without the weights that are read again;
the simulator counts ours, and finds nothing wrong. Without --long one of them.
Nothing moves where concats of which members are read late keep no place for
what is not needed any more.
LRU with members of concats by themselves, which bench/residency.py divides by,
has the figures of ../shared/facts/two-level.md 2.3 where peaks are the same.
"""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "bench"))
import policies  # noqa: E402
import residency  # noqa: E402
import tool  # noqa: E402
import traffic  # noqa: E402

QUICK = ["u-net"]
LONG = ["segnet", "nasnet-imagenet", "darts-imagenet", "amoebanet-imagenet",
        "pnasnet"]
# Volumes of one size in memory that they fill to the last byte: parts of them
# stay, but few placements hold these.
TIGHT, TIGHT_PARTS = ["nasnet-cifar"], (0.90, 0.75)
LONG_TIGHT = ["darts-cifar"]
KEPT = [("u-net-plus-plus", 550000)]  # bytes
# MB at 90, 75, 50 % of the peak; None: another peak there
FIGURES = {"resnet-50": (4.82, 4.82, None), "inception-v3": (2.77, 3.45, 6.56),
           "mobilenet-v2": (3.01, 2.41, 5.07)}


def other_figures(folder):
    """How many of LRU's are not those of the table, which is of networks as
    they were published."""
    bad = 0
    for name, figures in FIGURES.items():
        path = residency.network_file(name, folder)
        if not path.startswith(residency.DATA):
            print(f"{name}: no {residency.DATA}")
            continue
        trace = policies.Trace(path, residency.MACHINE, folder, 1)
        for part, figure in zip(traffic.PARTS, figures):
            size = int(trace.peak * part) // 1024 * 1024
            lru = policies.policy(trace, size, False)
            print(f"{name} at {part:.0%}: LRU {lru:,}, published {figure} MB")
            bad += figure is not None and round(lru / 1e6, 2) != figure
    return bad


def moves(name, size, folder):
    """Whether anything moves that need not."""
    path = residency.network_file(name, folder)
    sim = tool.counted(path, residency.MACHINE, folder, tool.am(size))
    print(f"{name} in {size:,} bytes: {sim['extra']:,} bytes")
    return sim["extra"] > 0


def worse_than_lru(name, parts, folder):
    """At how many of these parts of the peak more moves than LRU does."""
    path = residency.network_file(name, folder)
    trace = policies.Trace(path, residency.MACHINE, folder, 1)
    weights = traffic.weights_once(path, residency.MACHINE, folder)
    bad = 0
    for part in parts:
        size = int(trace.peak * part) // 1024 * 1024
        lru = policies.policy(trace, size, False)
        for once in (None, weights):
            row = traffic.Row(path, residency.MACHINE, part, (trace, trace),
                              folder, once)
            print(f"{name} at {part:.0%}: {row.ours:,} bytes"
                  f"{'' if once is None else ' with weights'}, LRU {lru:,}")
            bad += row.ours > lru
    return bad


def main():
    with tempfile.TemporaryDirectory() as folder:
        bad = other_figures(folder)
        bad += sum(moves(name, size, folder) for name, size in KEPT)
        long = "--long" in sys.argv[1:]
        for name in TIGHT + (LONG_TIGHT if long else []):
            bad += worse_than_lru(name, TIGHT_PARTS, folder)
        for name in QUICK + (LONG if long else []):
            bad += worse_than_lru(name, traffic.PARTS, folder)
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
