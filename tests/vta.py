#!/usr/bin/env python3
"""vta.py - networks as 128-bit words of VTA, run by what its hwspec says.

Networks with scales of powers of two become words; read back and run, they give
every code of the reference. disasm and asm of the words give the same bytes.
Bits are compared with words that are put together here, from the fields that
VTA's public header lists. Tokens are replayed; without any one of them something
is wrong. Needs the folder build.
"""
import json
import math
import os
import subprocess
import sys
import tempfile

import gemmini_nets

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
AMPHORA = os.environ.get("AMPHORA", os.path.join(ROOT, "build", "amphora"))
MACHINE = ["-t", "vta-words"]


class Net(gemmini_nets.Net):
    """Scales are powers of two."""

    def node(self, op, name, reads, shape, scale, attributes=None,
             constants=None, zero=0):
        scale = 2.0 ** math.ceil(math.log2(scale))
        return super().node(op, name, reads, shape, scale, attributes,
                            constants, zero)

    def weights(self, shape, scale, bias=True):
        constants, most = super().weights(shape, scale, bias)
        for name in constants:
            const = self.consts[constants[name]]
            unit = 2.0 ** -6 * (scale if name == "bias" else 1)
            const["mul0"] = [unit] * len(const["mul0"])
        return constants, most * 2.0 ** -6 / 0.02


def chain(net):
    """Strides, windows, blocks that are not full, tiles of all kinds."""
    at = net.input(3, 40, 36)
    at = net.conv("c1", at, 24, 3, 2, 1, "relu")
    at = net.conv("c2", at, 40, 3, 1, 1)
    at = net.conv("c3", at, 33, 1, 1, 0, "relu", bias=False)
    at = net.conv("c4", at, 20, 5, 1, 4, d=2)
    return net.fc("f", net.conv("c5", at, 70, 3, 2, 0, kw=1), 37)


def sums(net):
    """Operands of several scales, more than lies in the memory of sums."""
    at = net.input(20, 30, 40)
    a = net.conv("a", at, 20, 1)
    b = net.conv("b", at, 20, 3, 1, 1, "relu")
    at = net.add("sum", a, b, "relu")
    return net.add("again", at, net.conv("d", at, 20, 1, scale=4.0), scale=8.0)


def pools(net):
    """Windows that reach beyond the image, of codes of both signs."""
    at = net.max_pool("p", net.input(20, 61, 90), 3, 2, 1)
    return net.max_pool("q", net.conv("c", at, 40, 1), 2, 2)


def beside(net):
    """Members of a concat whose blocks others begin in are the host's."""
    at = net.input(16, 8, 9)
    a = net.conv("a", at, 12, 1, scale=0.5)
    b = net.conv("b", at, 12, 3, 1, 1, scale=0.5)
    return net.conv("c", net.concat("cat", b, a), 20, 1)


NETS = {
    "pools": pools,
    "sums": sums,
    "chain": chain,
    "image": lambda n: n.conv("c", n.input(3, 96, 128), 64, 7, 2, 3, "relu"),
    "deep": lambda n: n.conv("c", n.input(272, 14, 14), 288, 3, 1, 1, "relu"),
    "groups": lambda n: n.conv("c", n.input(32, 9, 9), 32, 3, 1, 1, groups=2),
    "wide": lambda n: n.conv("c", n.input(16, 12, 300), 16, 3, 1, 1),
}


def amphora(*words):
    return subprocess.run([AMPHORA, *words], capture_output=True, text=True,
                          check=False)


# Less of each memory, so that tiles are smaller.
SMALL = [word for name, size in (("inp", 4096), ("acc", 8192), ("wgt", 16384),
                                 ("uop", 1024))
         for word in ("--set", f"memories.{name}.size={size}")]


def verify(path, *more):
    """What is wrong; the codes that were compared."""
    run = amphora("verify", path, *MACHINE, *more)
    if run.returncode:
        return run.stderr.strip() + run.stdout.strip(), run.stdout
    if " 0 of the host" not in run.stdout:
        return "a layer is the host's: " + run.stdout, run.stdout
    return "", run.stdout


def small(path):
    """A layer that has no room is the host's."""
    wrong, _ = verify(path, *SMALL)
    hosted = "a layer is the host's" in wrong or "no layer becomes" in wrong
    return "" if hosted else wrong


def again(path, folder):
    """Whether disasm and asm give the words once more."""
    name = os.path.basename(path)[:-5]
    words = os.path.join(folder, name + ".words")
    text, made = words + ".txt", words + ".again"
    for words_of in (["compile", path, *MACHINE, "--emit", "words", "-o",
                      folder],
                     ["disasm", words, *MACHINE, "-o", text],
                     ["asm", text, *MACHINE, "-o", made]):
        run = amphora(*words_of)
        if run.returncode:
            return run.stderr.strip()
    with open(words, encoding="utf-8") as a, open(made, encoding="utf-8") as b:
        return "" if a.read() == b.read() else "asm gives other words"


def words_of(folder, name):
    with open(os.path.join(folder, name + ".words"), encoding="utf-8") as file:
        return [tuple(int(part, 16) for part in line.split()) for line in file]


def fields(*parts):
    """(value, bits) pairs from bit 0 on as one number."""
    number = at = 0
    for value, bits in parts:
        assert 0 <= value < 1 << bits
        number |= value << at
        at += bits
    return number


def bits(folder):
    """The first words of `wide`, tiles of 4 rows, as VTA's public header has
    fields. Tokens: from and to the queue before, behind: 1, 2, 4, 8."""
    words = words_of(folder, "wide")
    place = [word >> 26 & (1 << 32) - 1 for word, _ in words]
    pads = ((1, 4), (0, 4), (1, 4), (1, 4))
    want = {
        0: (fields((0, 3), (4, 4), (0, 3), (0, 16), (place[0], 32)),
            fields((1, 16), (10, 16), (10, 16), (0, 16))),
        1: (fields((0, 3), (0, 4), (3, 3), (0, 16), (place[1], 32)),
            fields((4 * 300, 16), (1, 16), (0, 16), (0, 16))),
        2: (fields((0, 3), (2, 4), (2, 3), (0, 16), (place[2], 32)),
            fields((4 + 1, 16), (300, 16), (300, 16), *pads)),
        3: (fields((0, 3), (8, 4), (1, 3), (0, 16), (place[3], 32)),
            fields((1, 16), (9, 16), (9, 16), (0, 16))),
        4: (fields((2, 3), (5, 4), (0, 1), (1, 13), (10, 14), (4, 14),
                   (300, 14)),
            fields((300, 11), (1, 11), (302, 11), (1, 11), (0, 10), (0, 10)))}
    bad = [i for i, word in want.items() if words[i] != word]
    for i in bad:
        print("wide: word", i, [f"{part:016x}" for part in words[i]],
              [f"{part:016x}" for part in want[i]])
    return len(bad)


def replay(path):
    run = amphora("simulate", path, *MACHINE)
    return run.returncode == 0 and ", 0 faults" in run.stdout


def tokens(folder):
    """Tokens order all; without any one of them they do not."""
    path = os.path.join(folder, "sums.words")
    bad = not replay(path)
    words = words_of(folder, "sums")
    told = [i for i, (word, _) in enumerate(words) if word >> 5 & 3]
    for i in told:
        with open(os.path.join(folder, "cut.words"), "w",
                  encoding="utf-8") as file:
            for k, (a, b) in enumerate(words):
                a = a & ~(3 << 5) if k == i else a
                file.write(f"{a:016x} {b:016x}\n")
        if replay(os.path.join(folder, "cut.words")):
            print(f"sums: right without the token of instruction {i}")
            bad += 1
    print(f"tokens: {len(told)} instructions that tell")
    return bad


def main():
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, make in NETS.items():
            net = Net(name)
            path = net.write(folder, make(net))
            wrong, text = verify(path)
            wrong = wrong or again(path, folder) or small(path)
            bad += bool(wrong)
            print(f"{name}: {wrong or text.strip().splitlines()[-1]}")
        net = Net("beside")
        wrong = small(net.write(folder, beside(net)))
        if wrong:
            print(wrong)
        bad += bits(folder) + tokens(folder) + bool(wrong)
    print(f"{len(NETS)} networks, {bad} wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
