#!/usr/bin/env python3
"""depth.py - layers that spread pixels in depth-first groups.

Small networks that shrink and grow again, by upsampling and by transposed
convolutions, with far less active memory than their volumes take: verified by
value, and no more bytes over DDR than the table says (layer by layer they move
several times as many).
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
# machine, active memory, bytes over DDR
ROOM = ((ROWS, 200000, 138240), (ROWS, 60000, 180864), (ROWS, 20000, 253824),
        ("ring-npu", 20000, 147456), ("line-npu", 60000, 626688))


def hourglass(grow):
    net = networks.Net("hourglass", 3, 96)
    x, widths = net.input, (8, 16, 32)
    for width in widths:
        x = networks.conv_relu(net, x, width, 2)
        x = net.pool(x, "MAX", 2, 2, pad=0)
    for depth in reversed(range(3)):
        x = grow(net, x, widths[depth])
        x = networks.conv_relu(net, x, widths[depth])
        x = networks.conv_relu(net, x, widths[depth - 1] if depth else 12)
    return net.text()


GROWN = {
    "upsample": lambda net, x, width: net.upsample(x),
    "deconv": lambda net, x, width: net.deconv(x, width),
}


def verify(path, machine, size):
    done = subprocess.run(
        [AMPHORA, "verify", path, "-t", machine, "--json", "--set",
         f"memories.am.size={size}"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else {}


def main():
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, grow in GROWN.items():
            path = os.path.join(folder, name + ".prototxt")
            with open(path, "w", encoding="ascii") as file:
                file.write(hourglass(grow))
            for machine, size, most in ROOM:
                if name == "deconv" and machine != ROWS:
                    continue
                found = verify(path, machine, size)
                moved = (found.get("ddr_read_bytes", 0)
                         + found.get("ddr_written_bytes", 0))
                ok = bool(found.get("ok")) and 0 < moved <= most
                print(f"{name}, {os.path.basename(machine)}, {size} bytes: "
                      f"{moved} over DDR{'' if ok else ', wrong'}")
                bad += not ok
    return 1 if bad else 0


sys.exit(main())
