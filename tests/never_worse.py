#!/usr/bin/env python3
"""never_worse.py - in a larger active memory neither bytes nor cycles rise.

Sweeps of sizes on machines where plans are weighed by both (alloc/ladder.c);
no rise at all is allowed from one size to the next. The sweeps of many more
sizes and networks are those of bench/more_memory.py.
"""
import sys

sys.path.insert(0, "bench")
import more_memory  # noqa: E402
import tool  # noqa: E402

SWEEPS = {  # sizes, and how many of them fit
    ("tiny", "xdnn-v2-28"): ("4K:48K:1K", 41),
    ("tiny", "xdnn-v2-56"): ("8K:96K:2K", 41),
    ("squeezenet", "xdnn-v2-28"): ("256K:3200K:128K", 24),
    ("googlenet", "xdnn-v2-28"): ("512K:3M:512K", 6),
}


def main():
    wrong = []
    for (network, machine), (sizes, least) in SWEEPS.items():
        found = more_memory.points(tool.example(network), machine, sizes)
        for key in ("ddr_bytes", "cycles"):
            worst = max(more_memory.rises(found, key), default=0)
            if worst:
                wrong.append(f"{network} {machine}: {key} rise by {worst:.2%}")
        print(f"{network:12} {machine:11} {len(found)} sizes, "
              f"{found[0]['ddr_bytes']:,} to {found[-1]['ddr_bytes']:,} bytes")
        if len(found) < least:
            wrong.append(f"{network} {machine}: fits only {len(found)} times")
    print(*wrong, sep="\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
