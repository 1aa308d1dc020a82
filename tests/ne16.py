#!/usr/bin/env python3
"""ne16.py - small networks as register writes of NE16.

Convolutions of 3 x 3 and 1 x 1, of stride 2, depthwise ones, inner products:
every code is the reference's, from the words as they are read back; words of
`asm` from the text of `disasm` are the same. What steps of templates make of
shifts and of numbers without a sign is what is written here.
"""
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
AMPHORA = os.environ.get("AMPHORA", os.path.join(ROOT, "build/amphora"))
MACHINE = "ne16"


class Net:
    """Volumes are codes of uint8, all on one scale."""

    def __init__(self, name, c, h, w, seed=1):
        self.name, self.nodes, self.consts = name, [], []
        self.data, self.rng = bytearray(), random.Random(seed)
        self.at = ("x", [1, c, h, w])
        self.add("input", [], {}, {}, self.at[1], "uint8")

    def add(self, op, reads, attributes, constants, shape, kind):
        """A node whose result is the volume that comes next."""
        name = f"{op}{len(self.nodes)}" if self.nodes else "x"
        node = {"op": op, "name": name, "reads": reads, "writes": [
            {"name": name, "shape": shape,
             "quant": {"type": kind, "scale": 2.0 ** -7, "zero": 0}}]}
        if attributes:
            node["attributes"] = attributes
        if constants:
            node["constants"] = constants
        self.nodes.append(node)
        self.at = (name, shape)

    def const(self, kind, shape, codes, size, scale):
        """Number of a constant."""
        self.data += bytes(-len(self.data) % 8)
        self.consts.append({"kind": kind, "shape": shape,
                            "offset": len(self.data),
                            "mul0": [scale] * shape[0]})
        for code in codes:
            self.data += code.to_bytes(size, "little", signed=True)
        return len(self.consts) - 1

    def layer(self, op, shape, attributes, out, relu):
        """A layer with weights that shifts by so much that codes vary."""
        taps = 1
        for extent in shape[1:]:
            taps *= extent
        shift = (taps - 1).bit_length() // 2 + 6
        codes = [self.rng.randint(-128, 127) for _ in range(shape[0] * taps)]
        bias = [self.rng.randint(-4000, 4000) for _ in range(shape[0])]
        scale = 2.0 ** -shift
        constants = {"weight": self.const("i8", shape, codes, 1, scale),
                     "bias": self.const("i32", shape[:1], bias, 4,
                                        scale * 2.0 ** -7)}
        if relu:
            attributes["act"] = "relu"
        self.add(op, [self.at[0]], attributes, constants, out,
                 "uint8" if relu else "int8")

    def conv(self, out_c, k, stride=1, pad=0, groups=1, relu=True):
        """A convolution of the last volume."""
        _, c, h, w = self.at[1]
        size = [(extent + 2 * pad - k) // stride + 1 for extent in (h, w)]
        self.layer("conv", [out_c, c // groups, k, k],
                   {"out_c": [out_c], "groups": [groups], "kernel": [k, k],
                    "stride": [stride] * 2, "dilation": [1, 1],
                    "pad": [pad] * 2, "pad_end": [pad] * 2},
                   [1, out_c, *size], relu)
        return self

    def fc(self, out):
        """Signed results of an inner product."""
        taps = 1
        for extent in self.at[1][1:]:
            taps *= extent
        self.layer("fc", [out, taps], {"out": [out]}, [1, out], False)
        return self

    def write(self, folder):
        """Path of the network."""
        with open(os.path.join(folder, self.name + ".bin"), "wb") as file:
            file.write(self.data)
        path = os.path.join(folder, self.name + ".json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"amphora": 1, "name": self.name,
                       "weights": self.name + ".bin",
                       "constants": self.consts, "nodes": self.nodes,
                       "outputs": [self.at[0]]}, file)
        return path


def networks():
    """Small ones: each kind alone, with rests of all blocks, and a chain."""
    yield Net("full", 20, 7, 8).conv(40, 3, pad=1)
    yield Net("point", 35, 5, 4).conv(33, 1)
    yield Net("valid", 3, 9, 9).conv(16, 3)
    yield Net("wide", 4, 6, 6).conv(7, 3, pad=2)
    yield Net("deep", 19, 8, 7).conv(19, 3, pad=1, groups=19)
    yield Net("half", 5, 9, 8).conv(34, 3, 2, 1)
    yield Net("deephalf", 16, 11, 10).conv(16, 3, 2, 1, groups=16)
    yield Net("signed", 8, 4, 4).conv(9, 3, pad=1, relu=False)
    yield Net("product", 24, 3, 3).fc(10)
    chain = Net("chain", 3, 22, 21).conv(16, 3, 2, 1)
    for out in (24, 32):
        chain.conv(chain.at[1][1], 3, pad=1, groups=chain.at[1][1])
        chain.conv(out, 1)
    yield chain.conv(32, 3, 2, 1).conv(16, 3).conv(12, 1).conv(8, 3, relu=False)


def run(*arguments):
    """(exit code, what is printed)"""
    done = subprocess.run([AMPHORA, *arguments], capture_output=True,
                          text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def check(net):
    """Problems with one network."""
    with tempfile.TemporaryDirectory() as folder:
        path = net.write(folder)
        status, text = run("verify", path, "-t", MACHINE, "--json")
        told = json.loads(text.splitlines()[0]) if text[:1] == "{" else \
            {"ok": False}
        if status or not told["ok"] or told["host_layers"]:
            return [f"{net.name}: {text[:500]}"]
        status, text = run("compile", path, "-t", MACHINE, "--emit", "words",
                           "-o", folder)
        words = os.path.join(folder, net.name + ".registers")
        if status or run("disasm", words, "-t", MACHINE, "-o",
                         words + ".txt")[0] or \
                run("asm", words + ".txt", "-t", MACHINE, "-o",
                    words + ".again")[0]:
            return [f"{net.name}: {text[:500]}"]
        with open(words, "rb") as one, open(words + ".again", "rb") as two:
            same = one.read() == two.read()
    print(f"{net.name}: {told['codes']} codes, {told['instructions']} jobs")
    return [] if same else [f"{net.name}: asm makes other words"]


ROUNDS = """machine: {name: rounds, clock: 1MHz, element: 1}
layouts: {hwc: {axes: [h, w, c]}}
memories:
  main: {role: backing, size: 1KiB, layout: hwc}
  am: {role: active, size: 1KiB, layout: hwc}
  in: {role: input, size: 1KiB, layout: hwc}
  out: {role: output, size: 1KiB, layout: hwc}
engines: {e: {runs: [conv]}}
words: {size: 1 x 8, GO: {bits: {w0.0..7: 1}}}
instructions:
  GO:
    for: conv
    body: [GO]
    does:
      - copy: {rows: 1, columns: 8, shift: 1, round: ROUND, bits: 8, from: {memory: main, type: s16, at: 0}, to: {memory: main, type: u8, at: 16}}
container: {name: go, items: [{each: nodes, do: [body]}]}
"""


def check_rounds():
    """Problems with what a shift makes of halves, and with numbers of u8."""
    numbers = (-3, -1, 1, 3, 5, 254, 509, 1000)
    wanted = {"half_even": (0, 0, 0, 2, 2, 127, 254, 255),
              "half_up": (0, 0, 1, 2, 3, 127, 255, 255),
              "floor": (0, 0, 0, 1, 2, 127, 254, 255), "up": None}
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, name) for name in
                 ("rounds.yaml", "p.go", "before.bin")]
        with open(paths[1], "wb") as file:
            file.write(bytes([1]))
        with open(paths[2], "wb") as file:
            file.write(struct.pack("<8h", *numbers) + bytes(8))
        for name, codes in wanted.items():
            with open(paths[0], "w", encoding="utf-8") as file:
                file.write(ROUNDS.replace("ROUND", name))
            status, text = run("simulate", paths[1], "-t", paths[0],
                               "--input", paths[2], "-o", folder)
            if codes is None or status:
                wrong += [] if codes is None and "half_up" in text else [text]
                continue
            with open(os.path.join(folder, "main.bin"), "rb") as file:
                made = tuple(file.read()[16:24])
            if made != codes:
                wrong.append(f"{name}: {made}")
    return wrong


def main():
    """All networks."""
    wrong, count = check_rounds(), 0
    for net in networks():
        wrong += check(net)
        count += 1
    for text in wrong:
        print(text)
    print(f"{count} networks, {len(wrong)} wrong")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
