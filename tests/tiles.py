#!/usr/bin/env python3
"""tiles.py - single layers against the bound of bench/tiles.py at 512 KiB.

Every convolution of two networks alone, four with --long, planned for the fewest bytes
(--objective bytes), its listing run and verified by value; the sums over a
network stay within the figures of the field.
"""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "bench"))
import tiles  # noqa: E402

MOST = {"vgg16": 1.10, "googlenet": 1.02}
LONG = {"resnet50": 1.02, "inception-v3": 1.02}  # kernels of 1 x 7 and 7 x 1, too


def main():
    bad = 0
    networks = {**MOST, **(LONG if "--long" in sys.argv[1:] else {})}
    with tempfile.TemporaryDirectory() as folder:
        for name, most in networks.items():
            network = f"examples/{name}.prototxt"
            if tiles.row(network, 512 * 1024, folder) > most:
                print(f"{name}: more than {most} of the bound")
                bad += 1
    return bad


if __name__ == "__main__":
    sys.exit(main())
