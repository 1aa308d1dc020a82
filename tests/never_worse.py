#!/usr/bin/env python3
"""never_worse.py - neither bytes nor cycles rise in a larger active memory,
with more bandwidth, or with a wider array.

SIZES are sweeps on machines where plans are weighed by both (alloc/ladder.c),
FASTER those over three octaves on both sides of what the machine has; no rise
at all is allowed above what any smaller value costs. The sweeps of many more
values and networks are those of bench/sweep.py.
"""
import concurrent.futures
import sys
import tempfile

sys.path.insert(0, "bench")
import sweep  # noqa: E402
import tool  # noqa: E402

KIB = 1 << 10
SIZES = {  # in KiB, and how many of them fit
    ("tiny", "xdnn-v2-28"): (range(4, 49), 41),
    ("tiny", "xdnn-v2-56"): (range(8, 97, 2), 41),
    ("squeezenet", "xdnn-v2-28"): (range(256, 3201, 128), 24),
    ("googlenet", "xdnn-v2-28"): (range(512, 3073, 512), 6),
}
FASTER = [  # with so many KiB; all fit
    ("tiny", "xdnn-v2-28", 12),
    ("squeezenet", "ring-npu", 248),
    ("squeezenet", "line-npu", 994),
    ("mobilenet-v2", "tile-npu", 512),
    ("mobilenet-v2", "xdnn-v3-96", 4096),
]
VALUES = 7


def cases():
    """(what, machine, network, settings, how many of them fit)"""
    for (network, machine), (sizes, fits) in SIZES.items():
        yield ("sizes", machine, network,
               [[tool.am(size * KIB)] for size in sizes], fits)
    for network, machine, size in FASTER:
        for what, vary in (("bandwidths", sweep.bandwidths),
                           ("widths", sweep.widths)):
            yield (what, machine, network,
                   [[tool.am(size * KIB)] + one
                    for one in vary(machine, VALUES)], VALUES)


def complaints(what, found, fits):
    for key in ("bytes", "cycles"):
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
        for what, machine, network, settings, fits in cases():
            found = sweep.points(pool, tool.example(network), machine,
                                 settings, folder)
            name = f"{network:12} {machine:11} {len(settings):2} {what}"
            wrong += complaints(name, found, fits)
            ends = [p for p in found if p]
            print(f"{name}: {ends[0].bytes:,} to {ends[-1].bytes:,} bytes, "
                  f"{ends[0].cycles:,} to {ends[-1].cycles:,} cycles")
    print(*wrong, sep="\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
