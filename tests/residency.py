#!/usr/bin/env python3
"""residency.py - bytes over DDR where memory is short, beside LRU's.

Networks of bench/networks.py at 90, 75, 50 and 25 % of their peak, on
bench/rows.yaml: no cell moves more than LRU, which pays for no buffers, but
moves a concat as one volume, as it lies; the simulator counts ours, and finds
nothing wrong. Without --long two of them.
"""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "bench"))
import policies  # noqa: E402
import residency  # noqa: E402
import tool  # noqa: E402
import traffic  # noqa: E402

QUICK = ["u-net", "segnet"]
LONG = ["nasnet-imagenet", "darts-imagenet"]


def main():
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in QUICK + (LONG if "--long" in sys.argv[1:] else []):
            path = residency.network_file(name, folder)
            trace = policies.Trace(path, residency.MACHINE, folder, 1,
                                   whole=True)
            for part in traffic.PARTS:
                size = int(trace.peak * part) // 1024 * 1024
                lru = policies.policy(trace, size, False)
                sim = tool.counted(path, residency.MACHINE, folder,
                                   tool.am(size))
                print(f"{name} at {part:.0%}: {sim['extra']:,} bytes, "
                      f"LRU {lru:,}")
                bad += sim["extra"] > lru
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
