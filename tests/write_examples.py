#!/usr/bin/env python3
"""write_examples.py - the networks with weights in examples/small.

Two in ONNX, two in TFLite, one of these in int8; small, with drawn weights, of
our own making; and samples for them, smooth pictures that are drawn, too. With
--check says whether they are what this writes.
"""
import math
import os
import random
import struct
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests"))
import same  # noqa: E402
import write_int8  # noqa: E402
from write_same import Onnx, TfLite  # noqa: E402

FOLDER = os.path.join(ROOT, "examples", "small")
PIXELS = 32
SAMPLES = 32


def write_samples(path):
    """uint8 of [samples, 3, 32, 32]: two waves a channel."""
    drawn = random.Random(1)
    data = bytearray()
    for _ in range(SAMPLES * 3):
        a, b, c, d, e, f = (drawn.random() for _ in range(6))
        data += bytes(
            int(127.5 + 63 * math.sin(6 * a * y / 31 + 9 * b * x / 31 + 6 * c) +
                63 * math.cos(9 * d * y / 31 - 6 * e * x / 31 + 6 * f))
            for y in range(PIXELS) for x in range(PIXELS))
    head = ("{'descr': '|u1', 'fortran_order': False, 'shape': "
            f"({SAMPLES}, 3, {PIXELS}, {PIXELS}), }}").ljust(117) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) +
                   head.encode() + data)


def write_all(folder):
    same.SIZE = PIXELS
    for name, maker, build in (
            ("resnet-18.onnx", Onnx, same.resnet_18),
            ("mobilenet-v2.onnx", Onnx, same.mobilenet_v2),
            ("mobilenet-v2.tflite", TfLite, same.mobilenet_v2)):
        builder = same.Builder(maker())
        build(builder)
        builder.to.write(os.path.join(folder, name))
    write_samples(os.path.join(folder, "samples.npy"))
    model = write_int8.make(write_int8.residual)
    model.part(model.ends[-1])(os.path.join(folder, "residual-int8.tflite"))


def main():
    if "--check" not in sys.argv:
        os.makedirs(FOLDER, exist_ok=True)
        write_all(FOLDER)
        return 0
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        write_all(folder)
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name), "rb") as made, \
                    open(os.path.join(FOLDER, name), "rb") as kept:
                if made.read() != kept.read():
                    wrong += 1
                    print(f"examples/small/{name} is not what "
                          "tests/write_examples.py writes")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
