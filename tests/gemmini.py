#!/usr/bin/env python3
"""gemmini.py - programs of Gemmini, run by the templates of its hwspec.

Programs are written here as words: a convolution of 3 x 3 in tiles by the loop
instruction, a product by elementary instructions, both beside sums computed
here; with a pool; one where the two roundings differ. Words come back from the
text that disasm prints. What lies outside of memories, tiles that are too
large, steps and templates that are wrong are errors at their place. Networks
become words that give every code of the reference. Where the recorded programs are at hand: main memory afterwards is equal in every byte,
and the bytes moved are as many.
"""
import glob
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

from gemmini_nets import Net, networks, one, repeated

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
AMPHORA = os.environ.get("AMPHORA", os.path.join(ROOT, "build/amphora"))
RECORDED = os.path.join(ROOT, "../shared/data/gemmini")
MACHINE = os.path.join(ROOT, "hwspec/targets/gemmini-16.yaml")
FAILED = []


def check(holds, what):
    if not holds:
        FAILED.append(what)
        print("FAILED", what)


def run(*args):
    return subprocess.run([AMPHORA, *args], capture_output=True, text=True)


def fields(*parts):
    """(value, lowest bit) pairs as one number."""
    return sum(value << at for value, at in parts)


def word(funct, a=0, b=0):
    return f"{funct:3} {a:016x} {b:016x}\n"


def scale_bits(scale):
    return struct.unpack("<I", struct.pack("<f", scale))[0]


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def scaled(x, scale, relu):
    y = round(f32(f32(x) * f32(scale)))
    return max(0 if relu else -128, min(127, y))


def simulate(folder, words, image, *more):
    path = os.path.join(folder, "p.words")
    with open(path, "w", encoding="utf-8") as file:
        file.write(words)
    with open(os.path.join(folder, "before.bin"), "wb") as file:
        file.write(image)
    done = run("simulate", path, "-t", MACHINE, "--input",
               os.path.join(folder, "before.bin"), "-o", folder, *more)
    after = b""
    if os.path.exists(os.path.join(folder, "main.bin")):
        with open(os.path.join(folder, "main.bin"), "rb") as file:
            after = file.read()
    return done, after


H = W = 6
IC, OC = 5, 19
IN, WEIGHTS, BIAS, OUT = 256, 512, 1536, 2048


def loop_conv(scale, tiles, bias=BIAS, pixels=0, height=None):
    """3 x 3, padding 1, in `tiles` of rows."""
    words = word(0, 2 | 1 << 2, fields((OC, 0), (scale_bits(scale), 32)))
    words += word(0, fields((1, 2), (1, 16), (scale_bits(1), 32)), 1 << 48)
    rows = height or H // tiles
    for y in range(0, rows * tiles, rows):
        top, bottom = int(y == 0), int(y + rows >= H)
        words += word(16, fields((1, 0), (H, 16), (IC, 32), (OC, 48)),
                      fields((H, 0), (H, 16), (W, 32), (1, 48), (1, 56)))
        words += word(17, fields((1, 8), (1, 16), (W, 32), (3, 48)),
                      fields((OC, 0), (W, 16), (rows, 32), (1, 48)))
        words += word(18, fields((1, 0), (IC, 16), (3, 32), (3, 48)),
                      fields((W, 0), (bottom, 24), (top, 32), (1, 48)))
        words += word(19, fields((1, 0), (rows, 48)),
                      fields((W, 0), (OC, 16), (OC, 32), (IC, 48)))
        words += word(20, WEIGHTS, OUT + y * W * OC)
        words += word(21, bias, IN + max(0, y - 1) * W * IC)
        words += word(15, pixels << 8, 1 | 1 << 3)
    return words


def network():
    """An image with input, weights and bias, and what the output must be."""
    image = bytearray(4096)
    rng = random.Random(7)
    value = lambda at: struct.unpack_from("b", image, at)[0]
    for at in range(IN, WEIGHTS + 9 * IC * OC):
        image[at] = rng.randrange(256)
    for o in range(OC):
        struct.pack_into("<i", image, BIAS + 4 * o, rng.randrange(-999, 999))
    sums = {}
    for y in range(H):
        for x in range(W):
            for o in range(OC):
                total = struct.unpack_from("<i", image, BIAS + 4 * o)[0]
                for i in range(9):
                    row, col = y + i // 3 - 1, x + i % 3 - 1
                    if 0 <= row < H and 0 <= col < W:
                        total += sum(
                            value(IN + (row * W + col) * IC + c) *
                            value(WEIGHTS + (i * IC + c) * OC + o)
                            for c in range(IC))
                sums[(y * W + x) * OC + o] = total
    return image, sums


def test_loop(folder):
    image, sums = network()
    wanted = bytes(scaled(sums[i], 0.01, True) & 255 for i in range(H * W * OC))
    for tiles, pixels in ((1, 0), (2, 1), (3, 3)):
        done, after = simulate(folder, loop_conv(0.01, tiles, pixels=pixels),
                               image, "--set", "let.carry=0")
        check(done.returncode == 0, f"{tiles} tiles: {done.stderr}")
        check(after[OUT:OUT + len(wanted)] == wanted, f"values, {tiles} tiles")
        check(after[:OUT] == image[:OUT], "operands stay as they are")
    path = os.path.join(folder, "p.words")
    text, again = path + ".txt", path + ".again"
    check(run("disasm", path, "-t", MACHINE, "-o", text).returncode == 0,
          "disasm")
    check(run("asm", text, "-t", MACHINE, "-o", again).returncode == 0, "asm")
    with open(path, "rb") as one, open(again, "rb") as two:
        check(one.read() == two.read(), "words come back")


def test_rounding(folder):
    """1552 / 97 in floats is just below 16: the public model says 17."""
    words = word(0, 2, fields((16, 0), (scale_bits(1 / 97), 32)))
    words += word(0, fields((1, 0), (1 << 4, 16), (scale_bits(1), 32)), 64)
    words += word(2, 64, fields((1 << 31, 0), (1, 32), (1, 48)))
    words += word(3, 128, fields((1 << 31, 0), (1, 32), (1, 48)))
    image = bytearray(256)
    struct.pack_into("<i", image, 64, 1552)
    for carry, result in ((1, 17), (0, 16)):
        done, after = simulate(folder, words, image, "--set",
                               f"let.carry={carry}")
        check(done.returncode == 0 and after[128] == result,
              f"carry {carry}: {done.stderr}")


def test_refused(folder):
    image, _ = network()
    cases = (
        (loop_conv(0.01, 1, height=200), "c.need <= acc.half"),
        (loop_conv(0.01, 1), "lie outside of main"),
        ("  0 12\n", "3 numbers of 64 bits are needed"),
        ("  0 1" + 16 * "0" + " 0\n", "3 numbers of 64 bits are needed"),
        ("  0 0 +1\n", "3 numbers of 64 bits are needed"),
        (word(99), "error"))
    for words, message in cases:
        short = image[:OUT + 10] if "outside" in message else image
        done, _ = simulate(folder, words, short)
        check(done.returncode != 0 and message in done.stderr,
              f"{message}: {done.stderr[:200]}")
    with open(MACHINE, encoding="utf-8") as file:
        machine = file.read()
    for old, new, message in (
            ("- require: norm.command >= 5", "- run: STORE", "run itself"),
            ("- require: norm.command >= 5", "- run: NOBODY", "no template"),
            ("- require: norm.command >= 5", "- walk: 1", "no step"),
            ("- require: norm.command >= 5", "- set: {none: 1}",
             "cannot be set"),
            ("from: {memory: sp, type: s8, at: (row + blk * 16) * 16",
             "from: {memory: attic, type: s8, at: (row + blk * 16) * 16",
             "no memory `attic`")):
        check(old in machine, old)
        path = os.path.join(folder, "bad.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(machine.replace(old, new, 1))
        done = run("disasm", os.path.join(folder, "p.words"), "-t", path)
        check(done.returncode != 0 and message in done.stderr and
              "bad.yaml:" in done.stderr, f"{new}: {done.stderr[:200]}")


EXACT = ("--set", "let.carry=0")


def test_compiled(folder):
    """Every code of every layer; no layer is left to the host."""
    for name, write in networks().items():
        done = run("verify", write(folder), "-t", MACHINE, "--json", *EXACT)
        check(done.returncode == 0, f"{name}: {done.stderr or done.stdout}")
        if done.returncode:
            continue
        made = json.loads(done.stdout)
        check(made["ok"] and made["codes"] and not made["codes_wrong"] and
              made["lists"] == 1 and not made["host_layers"],
              f"{name}: {made}")


def test_sizes(folder):
    """Loops use half of each memory, however large these are."""
    paths = [write(folder) for write in networks().values()]
    for path in paths[::3]:
        for sp, acc in (("16KiB", "64KiB"), ("64KiB", "4KiB"),
                        ("4KiB", "8KiB"), ("1MiB", "256KiB")):
            done = run("verify", path, "-t", MACHINE, "--json", *EXACT,
                       "--set", f"memories.sp.size={sp}",
                       "--set", f"memories.acc.size={acc}")
            made = json.loads(done.stdout) if done.stdout else {}
            check(made.get("ok") and not made["codes_wrong"] or
                  "no layer becomes words" in str(made.get("messages")),
                  f"{path} {sp} {acc}: {made} {done.stderr}")


def test_unsigned(folder):
    """Codes of uint8 around 128 lie as int8; a ReLU by itself is the sums'."""
    net = Net("unsigned")
    made = net.conv("c", net.input(5, 9, 9), 19, 3, 1, 1)
    path = net.write(folder, net.node("act", "r", ["c"], *made[1:],
                                      {"act": "relu"}))
    with open(path, encoding="utf-8") as file:
        text = file.read().replace('"int8"', '"uint8"')
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace('"zero": 0', '"zero": 128'))
    done = run("verify", path, "-t", MACHINE, "--json", *EXACT)
    told = json.loads(done.stdout) if done.stdout else {"ok": False}
    check(told["ok"] and told["layers"] == told["engine_layers"] == 1 and
          told["codes"] == 19 * 81, f"{told} {done.stderr}")


def test_repeated(folder):
    """A sum with a line that is repeated is no sum of two volumes."""
    path = one("repeated", (20, 6, 6), repeated)(folder)
    done = run("verify", path, "-t", MACHINE, "--json", *EXACT)
    told = json.loads(done.stdout) if done.stdout else {"ok": False}
    check(told["ok"] and told["engine_layers"] == 1, f"{told} {done.stderr}")


def test_host_between(folder):
    """The host means windows; words before and behind it are two lists."""
    net = Net("between")
    first = net.conv("c", net.input(9, 12, 12), 16, 3, 1, 1, "relu")
    means = net.node("pool", "m", [first[0]], [1, 16, 6, 6], first[2],
                     {"kind": "avg", "kernel": [2, 2], "stride": [2, 2]})
    path = net.write(folder, net.conv("d", means, 20, 3))
    done = run("verify", path, "-t", MACHINE, "--json", *EXACT)
    made = json.loads(done.stdout) if done.stdout else done.stderr
    check(done.returncode == 0 and made["lists"] == 2 and
          made["host_layers"] == 1 and made["layers_compared"] == 2,
          f"a layer of the host: {made}")
    done = run("compile", path, "-t", MACHINE, "-o", folder + "/out")
    check("between.1.words" in done.stdout and
          "host    m (pool): " in done.stdout, done.stdout + done.stderr)


def test_cycles(folder):
    """16 rows of 16 pixels, 16 to 16 channels: a cycle a row of the input and
    of the weights; then the bias, rows of ones and two rows of digits."""
    net = Net("even")
    path = net.write(folder, net.conv("c", net.input(16, 16, 16), 16))
    done = run("verify", path, "-t", MACHINE, "--json", *EXACT)
    made = json.loads(done.stdout)
    loads = 256 + 16 + 256 + 2
    check(made["cycles"] == loads, f"{made['cycles']} cycles, not {loads}")


class Biased(Net):
    """Biases of up to `most`."""
    most = 3000

    def codes(self, n, most):
        return super().codes(n, self.most if most == 3000 else most)


def test_matrix(folder):
    """Products of matrices by every order of tiles; biases of many digits."""
    for name, size, out_c, most in (
            ("many", (64, 40, 40), 256, 3000), ("wide", (16, 30, 30), 512, 90),
            ("long", (4096, 6, 6), 48, 16129), ("heavy", (32, 10, 10), 40,
                                                 2000000),
            ("odd", (37, 9, 11), 53, 16130)):
        net = Biased(name)
        net.most = most
        x = net.input(*size)
        path = net.write(folder, net.conv("c", x, out_c,
                                          scale=max(0.02, most * 1e-5)))
        done = run("verify", path, "-t", MACHINE, "--json", *EXACT)
        made = json.loads(done.stdout)
        check(made["codes_wrong"] == 0 and made["host_layers"] == 0 and
              made["codes"] == out_c * size[1] * size[2], done.stdout)
        done = run("compile", path, "-t", MACHINE, "--emit", "words",
                   "--explain", "-o", folder)
        check("MATRIX" in done.stdout, f"{name}: {done.stdout}")
        once = size[0] * size[1] * size[2] + out_c * size[0]
        check(made["read"] < 3 * once or most > 20000,
              f"{name} reads {made['read']}")


def test_words(folder):
    """The files of compile, run as they are: an address that is wrong shows."""
    path = networks()["odd"](folder)
    done = run("compile", path, "-t", MACHINE, "--emit", "words", "-o", folder)
    check(done.returncode == 0, done.stderr)
    with open(os.path.join(folder, "odd.words"), encoding="utf-8") as file:
        words = file.read()
    with open(os.path.join(folder, "odd.before.bin"), "rb") as file:
        image = bytearray(file.read())
    with open(os.path.join(folder, "odd.map.json"), encoding="utf-8") as file:
        where = json.load(file)
    given, made = where["inputs"][0], where["outputs"][0]
    for at in range(given["address"], given["address"] + 5 * 36):
        image[at] = (at * 37) & 255
    end = made["address"] + 19 * 36
    check(made["c"] == {"size": 19, "step": 1} and
          made["w"] == {"size": 6, "step": 19} and end <= where["bytes"],
          f"where the result lies: {made}")
    done, after = simulate(folder, words, image, *EXACT)
    check(done.returncode == 0 and
          len(set(after[made["address"]:end])) > 20, done.stderr)
    changed = words.replace(f"{given['address']:016x}",
                            f"{given['address'] + 1:016x}")
    done, other = simulate(folder, changed, image, *EXACT)
    check(changed != words and other != after, "another address of the input")


def test_not_emitted(folder):
    """What no way takes is the host's, with the reason; wrong ways."""
    net = Net("zero")
    out = net.conv("c", net.input(4, 5, 5, zero=3), 8, 3)
    done = run("compile", net.write(folder, out), "-t", MACHINE, "-o", folder)
    check(done.returncode != 0 and "no layer becomes words" in done.stderr and
          '"c" (conv): ' in done.stderr, f"a zero point: {done.stderr}")
    with open(MACHINE, encoding="utf-8") as file:
        machine = file.read()
    path = networks()["odd"](folder)
    for old, new, message in (
            ("for: conv_depthwise\n      requires", "for: knit\n      requires",
             "no operation"),
            ("limits:\n        - a.need + b.need <= sp.half",
             "limits:\n        - a.need + b.need", "a condition is needed"),
            ("- emit: LOOP_CONV_1", "- emit: LOOP_CONV_0", "no instruction"),
            ("t.oc: {most: out.c, step: 16}", "t.oc: {most: 0, step: 16}",
             "below 1"),
            ("t.oc: {most: out.c, step: 16}", "none: {most: 1}",
             "cannot be set"),
            ("value: \"weights[o, i, if(transposed, kernel.h - 1 - ky, ky), "
             "if(transposed, kernel.w - 1 - kx, kx)]\"", "value: 300",
             "300 is no number of 8 bits"),
            ("- c.need <= acc.half\n", "- c.need <= 0\n",
             "no layer becomes words")):
        check(old in machine, old)
        bad = os.path.join(folder, "bad.yaml")
        with open(bad, "w", encoding="utf-8") as file:
            file.write(machine.replace(old, new, 1))
        done = run("compile", path, "-t", bad, "-o", folder)
        check(done.returncode != 0 and message in done.stderr,
              f"{new}: {done.stderr[:300]}")


def test_recorded(folder):
    equal = 0
    for case in sorted(glob.glob(os.path.join(RECORDED, "[0-9]*"))):
        with open(os.path.join(case, "words.txt"), encoding="utf-8") as file:
            words = file.read()
        with open(os.path.join(case, "before.bin"), "rb") as file:
            image = file.read()
        with open(os.path.join(case, "after.bin"), "rb") as file:
            wanted = file.read()
        with open(os.path.join(case, "case.json"), encoding="utf-8") as file:
            facts = json.load(file)
        done, after = simulate(folder, words, image, "--json")
        name = os.path.basename(case)
        check(done.returncode == 0, f"{name}: {done.stderr}")
        check(after == wanted, f"{name}: main memory")
        moved = json.loads(done.stdout)["memories"]["main"]
        check(moved == {"read": facts["model_dram_bytes_read"],
                        "written": facts["model_dram_bytes_written"]},
              f"{name}: bytes {moved}")
        equal += after == wanted
    if equal:
        print(f"{equal} recorded programs equal in every byte")


def main():
    tests = (test_loop, test_rounding, test_refused, test_compiled, test_sizes,
             test_unsigned, test_repeated, test_host_between, test_cycles,
             test_matrix, test_words, test_not_emitted, test_recorded)
    for test in tests:
        with tempfile.TemporaryDirectory() as folder:
            test(folder)
    print(f"{len(tests)} tests, {len(FAILED)} failed")
    return 1 if FAILED else 0


if __name__ == "__main__":
    sys.exit(main())
