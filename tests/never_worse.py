#!/usr/bin/env python3
"""never_worse.py - in a larger active memory neither bytes nor cycles rise.

Sweeps of sizes on machines where plans are weighed by both (alloc/ladder.c);
no rise at all is allowed above what any smaller size costs. The sweeps of many
more sizes and networks are those of bench/sweep.py.
"""
import concurrent.futures
import sys
import tempfile

sys.path.insert(0, "bench")
import sweep  # noqa: E402
import tool  # noqa: E402

KIB = 1 << 10
SWEEPS = {  # sizes in KiB, and how many of them fit
    ("tiny", "xdnn-v2-28"): (range(4, 49), 41),
    ("tiny", "xdnn-v2-56"): (range(8, 97, 2), 41),
    ("squeezenet", "xdnn-v2-28"): (range(256, 3201, 128), 24),
    ("googlenet", "xdnn-v2-28"): (range(512, 3073, 512), 6),
}


def main():
    wrong = []
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(sweep.JOBS) as pool:
        for (network, machine), (sizes, least) in SWEEPS.items():
            settings = [[tool.am(size * KIB)] for size in sizes]
            found = sweep.points(pool, tool.example(network), machine,
                                 settings, folder)
            fits = [p for p in found if p]
            what = f"{network:12} {machine:11}"
            for key in ("bytes", "cycles"):
                rise = sweep.rises(found, key)
                if rise.n:
                    wrong.append(f"{what} {key} rise by {rise.most:.2%}")
            if len(fits) != least or sweep.lost(found):
                wrong.append(f"{what} fits {len(fits)} times")
            print(f"{what} {len(fits)} sizes, {fits[0].bytes:,} to "
                  f"{fits[-1].bytes:,} bytes")
    print(*wrong, sep="\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
