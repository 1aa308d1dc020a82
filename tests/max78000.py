#!/usr/bin/env python3
"""max78000.py - descriptions of networks for MAX78000 through its memories.

On a network of two layers of our own, computed here; and, where they are, on
the recorded networks in ../shared/data/max78000 (results, cycles, columns,
registers) and their changed placements.
"""
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import zlib

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
AMPHORA = os.path.join(ROOT, "build", "amphora")
DATA = os.path.join(ROOT, "..", "shared", "data", "max78000")
SMALL = """arch: small
dataset: none
layers:
  - {processors: 0x3, out_offset: 0x2000, operation: conv2d, pad: 1,
     activate: ReLU, output_processors: 0xf0}
  - {processors: 0xf0, out_offset: 0, operation: conv2d, kernel_size: 1x1,
     pad: 0, max_pool: 2, pool_stride: 2}
"""
ILLEGAL = (
    ("out_offset: 0x2000", "out_offset: 0x2002", "not a multiple of 4"),
    ("processors: 0xf0, out", "processors: 0xf00, out", "holds nothing"),
    ("processors: 0x3,", "processors: 0x7,", "take 2 processors"),
    ("out_offset: 0x2000", "out_offset: 0x7ff0", "which has 32768"),
    ("out_offset: 0,", "output_processors: 0xe0, out_offset: 0x2000,",
     "lies over"),
    ("activate: ReLU", "write_gap: 1", "holds nothing"),
    ("pad: 1,", "pad: 3,", "not within 0 to 2"),
    ("max_pool", "most_pool", "is not known"),
    ("max_pool: 2", "max_pool: 2, avg_pool: 2", "not both"),
    ("pad: 1,", "pad: 1, stride: 2,", "no strided convolution"),
    ("pad: 1,", "pad: 1, groups: 2,", "no groups"),
    ("pad: 1,", "pad: 1, sequence: 1,", "place in the list"),
    ("pad: 1,", "pad: 1, output_shift: 16,", "is -15 to 15"),
    ("pad: 1,", "pad: 1, quantization: 4,", "says weight_bits 8"),
    ("operation: conv2d, pad: 1", "operation: linear, pad: 1",
     "have a pad"),
    ("pad: 1,", "pad: 1, operands: 2,", "have operands"),
    ("pad: 1,", "pad: 1, pool_first: false,", "the result of two operands"),
    ("pad: 1,", "pad: 1, activation: Abs,", "says this already"),
    ("pad: 1,", "pad: 1, kernel_size: 3,", "of conv2d, else a number"),
    ("pad: 1,", "pad: 1, name: Stop,", "the name is taken"),
    ("pad: 1,", "pad: 0, streaming: true,", "that streams has a pad"),
    ("processors: 0x3,", "processors: 0x300000, streaming: true,",
     "comes through processors"),
    ("pool_stride: 2}", "pool_stride: 2}\n  - {processors: 0x7, operation: "
     "passthrough, output_processors: 0x70000}", "as many processors as"),
    ("dataset", "unload: []\ndataset", "is not known, or not read"),
    ("dataset", "output_map: 0x1f\ndataset", "take 3 processors"),
)


def npy(path, values, shape, kind=("|i1", "b")):
    """Writes codes as .npy."""
    head = str({"descr": kind[0], "fortran_order": False, "shape": shape})
    head = head.ljust(117) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) +
                   head.encode() +
                   struct.pack(f"<{len(values)}{kind[1]}", *values))


def simulate(yaml, weights, data, *more, machine="max78000"):
    """(exit code, parsed JSON or None, stderr)"""
    done = subprocess.run(
        [AMPHORA, "simulate", yaml, "-t", machine, "--weights", weights,
         "--input", data, "--json", *more], capture_output=True, text=True,
        check=False)
    return (done.returncode,
            json.loads(done.stdout) if done.stdout[:1] == "{" else None,
            done.stdout + done.stderr)


def code(total, shift):
    """floor(0.5 + total * 2^shift / 128), saturated."""
    down = 7 - shift
    return max(-128, min(127, (total + (1 << (down - 1))) >> down))


def expected(data, first, bias, second):
    """Codes of both layers of SMALL."""
    def at(c, y, x):
        return data[c * 16 + y * 4 + x] if 0 <= y < 4 and 0 <= x < 4 else 0
    one = [[[max(0, code(128 * bias[o] + sum(
        at(c, y + i - 1, x + k - 1) * first[((o * 2 + c) * 3 + i) * 3 + k]
        for c in range(2) for i in range(3) for k in range(3)), -1))
             for x in range(4)] for y in range(4)] for o in range(4)]
    two = [code(sum(max(one[c][2 * y + i][2 * x + k] for i in range(2)
                        for k in range(2)) * second[o * 4 + c]
                    for c in range(4)), 0)
           for o in range(3) for y in range(2) for x in range(2)]
    return [v for plane in one for row in plane for v in row], two


def crc(values):
    """CRC-32 of codes, as the report prints it."""
    return f"{zlib.crc32(struct.pack(f'{len(values)}b', *values)):08x}"


def check_small():
    """Problems with a network of our own."""
    def numbers(n, seed):
        return [(i * 37 + seed) % 201 - 100 for i in range(n)]
    data, first, bias, second = (numbers(32, 3), numbers(72, 5),
                                 numbers(4, 7), numbers(12, 9))
    wrong = []
    with tempfile.TemporaryDirectory() as at:
        paths = [os.path.join(at, name) for name in
                 ("net.yaml", "layers.json", "in.npy")]
        npy(paths[2], data, (2, 4, 4))
        npy(os.path.join(at, "weights.npy"), first + bias + second, (88,))
        with open(paths[1], "w", encoding="utf-8") as file:
            json.dump({"layers": [
                {"weights": {"offset": 0, "shape": [4, 2, 3, 3]},
                 "bias": {"offset": 72, "shape": [4]}, "total_shift": -1},
                {"weights": {"offset": 76, "shape": [3, 4, 1, 1]}}]}, file)
        for old, new, reason in ILLEGAL + (("", "", None),):
            with open(paths[0], "w", encoding="utf-8") as file:
                file.write(SMALL.replace(old, new, 1) if old else SMALL)
            status, found, text = simulate(*paths)
            if reason:
                if status == 0 or reason not in text:
                    wrong.append(f"{new}: {status} {text[:200]}")
                continue
            if status or [one["crc32"] for one in found["layers"]] != \
                    [crc(v) for v in expected(data, first, bias, second)]:
                wrong.append(f"small: {status} {text[:400]}")
        wrong += check_shift(paths, found)
        wrong += check_codes(paths, data, first + bias + second)
    return wrong


def check_codes(paths, data, weights):
    """Problems with numbers that are no codes of 8 bits."""
    wrong = []
    stored = os.path.join(os.path.dirname(paths[0]), "weights.npy")
    for path, values, shape, kind in (
            (paths[2], [300] + data[1:], (2, 4, 4), ("<i2", "h")),
            (stored, [float("nan")] + weights[1:], (88,), ("<f4", "f")),
            (stored, [0.5] + weights[1:], (88,), ("<f4", "f"))):
        npy(path, values, shape, kind)
        status, _, text = simulate(*paths)
        if status != 1 or "is no code of 8 bits" not in text:
            wrong.append(f"{values[0]}: {status} {text[:200]}")
        npy(path, data if path == paths[2] else weights, shape)
    return wrong


def check_shift(paths, found):
    """Problems with keys that are honoured: output_shift, output_map."""
    wrong = []
    for text, same in (("stride: 1, output_shift: -1", True),
                       ("output_shift: -2", False)):
        with open(paths[0], "w", encoding="utf-8") as file:
            file.write("output_map: 0x7\n" +
                       SMALL.replace("pad: 1", f"pad: 1, {text}", 1))
        status, other, said = simulate(*paths)
        if status or (other["layers"] == found["layers"]) != same:
            wrong.append(f"{text}: {status} {said[:200]}")
    return wrong


def check_machine():
    """Problems with what `check` says of the section `lanes`."""
    wrong = []
    with open(os.path.join(ROOT, "hwspec", "targets", "max78000.yaml"),
              encoding="utf-8") as file:
        text = file.read()
    with tempfile.TemporaryDirectory() as at:
        path = os.path.join(at, "machine.yaml")
        for old, new, says in (
                ("startup: 1", "startup: 1", "instances of 32,768 bytes"),
                ("startup: 1", "startup: 1\n  startop: 2", "`startop`"),
                ("P * ow * S", "P * oow * S", "machine.yaml:"),
                ("  length: length", "", "length")):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace(old, new, 1))
            done = subprocess.run([AMPHORA, "check", path],
                                  capture_output=True, text=True, check=False)
            if (done.returncode == 0) != (old == new) or \
                    says not in done.stdout + done.stderr:
                wrong.append(f"check {new}: {done.returncode} {done.stderr}")
    return wrong


NETWORK = """name: "net"
layer { name: "data" type: "Input" top: "data"
  input_param { shape { dim: 1 dim: 3 dim: 10 dim: 10 } } }
layer { name: "c1" type: "Convolution" bottom: "data" top: "c1"
  convolution_param { num_output: 6 kernel_size: 3 pad: 1 } }
layer { name: "r1" type: "ReLU" bottom: "c1" top: "c1" }
layer { name: "p1" type: "Pooling" bottom: "c1" top: "p1"
  pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "c2" type: "Convolution" bottom: "p1" top: "c2"
  convolution_param { num_output: 70 kernel_size: 1 } }
layer { name: "c3" type: "Convolution" bottom: "c2" top: "c3"
  convolution_param { num_output: 5 kernel_size: 3 } }
layer { name: "fc" type: "InnerProduct" bottom: "c3" top: "fc"
  inner_product_param { num_output: 7 } }
"""
COMPLIES = ("--scales", "pow2", "--zeros", "none", "--per", "tensor")


def quantised(at, text, *options):
    """Folder with a network of codes, made of text."""
    net, samples = os.path.join(at, "net.prototxt"), os.path.join(at, "s.npy")
    with open(net, "w", encoding="utf-8") as file:
        file.write(text)
    npy(samples, [(i * 37 + i // 7) % 201 - 100 for i in range(1200)],
        (4, 3, 10, 10))
    subprocess.run([AMPHORA, "quantise", net, "--calibrate", samples, "-o",
                    os.path.join(at, "q"), *options], capture_output=True,
                   check=False)
    return os.path.join(at, "q")


def lower(at, form):
    """(exit code, what is printed) of a network in another form."""
    done = subprocess.run(
        [AMPHORA, "compile", os.path.join(at, "q", "net." + form), "-t",
         "max78000", "--emit", "yaml", "-o", os.path.join(at, form)],
        capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def check_lowered():
    """Problems with networks on codes: their descriptions run to the codes of
    the network with the machine's biases; others are refused."""
    wrong = []
    with tempfile.TemporaryDirectory() as at:
        quantised(at, NETWORK, *COMPLIES)
        results = []
        for form in ("json", "onnx"):
            status, text = lower(at, form)
            if status or " 7 codes, 0 wrong" not in text or \
                    "4 layers" not in text:
                wrong.append(f"lowered {form}: {status} {text}")
                continue
            out = os.path.join(at, form)
            status, found, text = simulate(
                *(os.path.join(out, name) for name in
                  ("net.yaml", "layers.json", "input.npy")))
            if status:
                wrong.append(f"lowered {form}: {text[:300]}")
            else:
                with open(os.path.join(out, "weights.npy"), "rb") as file:
                    results.append((file.read(), len(found["layers"])))
        if len(results) == 2 and results[0] != results[1]:
            wrong.append("lowered: weights of JSON and ONNX differ")
        for path, status, says in (
                (os.path.join(at, "q", "net.json"), 0, "7 codes, 0 wrong"),
                (os.path.join(at, "net.prototxt"), 1, "makes a network of"),
                (os.path.join(at, "json", "net.yaml"), 1, "simulate runs it")):
            done = subprocess.run([AMPHORA, "verify", path, "-t", "max78000"],
                                  capture_output=True, text=True, check=False)
            if done.returncode != status or \
                    says not in done.stdout + done.stderr:
                wrong.append(f"verify {path}: {done.stdout + done.stderr}")
        status, _, text = simulate(os.path.join(at, "q", "net.json"),
                                   "x.json", "x.npy")
        if status == 0 or "YAML description" not in text:
            wrong.append(f"foreign: {status} {text}")
    for old, new, options, says in (
            ("", "", (), "power of two: amphora quantise"),
            ("pad: 1", "pad: 1 stride: 2", COMPLIES, "are rounded down"),
            ("kernel_size: 1 ", "kernel_size: 2 ", COMPLIES, "1x1, 3x3"),
            ("MAX", "AVE", COMPLIES, "pool")):
        with tempfile.TemporaryDirectory() as at:
            quantised(at, NETWORK.replace(old, new, 1), *options)
            status, text = lower(at, "json")
            if status != 1 or says not in text:
                wrong.append(f"lowered {new}: {status} {text}")
    return wrong


def registers(lines):
    """(layer, quadrant, register) -> value, of those that are compared."""
    rows = [line.split() for line in lines if line[0] != "#"]
    return {tuple(r[:3]): r[3:] for r in rows}


def check_recorded(name):
    """Problems with a recorded network."""
    at = os.path.join(DATA, name)
    more = ["--set", "lanes.overlap=true"] if "unet" in name else []
    status, found, text = simulate(
        *(os.path.join(at, file) for file in
          ("network.yaml", "layers.json", "input.npy")), *more)
    if status:
        return [f"{name}: {text[:300]}"]
    with open(os.path.join(at, "layers.json"), encoding="utf-8") as file:
        truth = json.load(file)
    wrong = [f"{name} layer {i}: {got['crc32']}, {got['cycles']} cycles"
             for i, (got, want) in enumerate(zip(found["layers"],
                                                 truth["layers"]))
             if got["crc32"] != want["out"]["crc32"] or
             got["cycles"] != want["cycles"]]
    with open(os.path.join(at, "registers.txt"), encoding="utf-8") as file:
        want = registers(file)
    got = registers(found["registers"])
    wrong += [f"{name} register {key}: {got.get(key)} not {want.get(key)}"
              for key in sorted(set(want) | set(got))
              if got.get(key) != want.get(key)][:5]
    return wrong


def check_larger(name):
    """Problems with a network for MAX78002: results and columns; of cycles and
    registers nothing is said."""
    at = os.path.join(DATA, name)
    files = [os.path.join(at, file) for file in
             ("network.yaml", "layers.json", "input.npy")]
    status, found, text = simulate(*files, machine="max78002")
    if status:
        return [f"{name}: {text[:300]}"]
    with open(files[1], encoding="utf-8") as file:
        truth = json.load(file)
    wrong = [f"{name} layer {i}: {got}"
             for i, (got, want) in enumerate(zip(found["layers"],
                                                 truth["layers"]))
             if "out" in want and got["crc32"] != want["out"]["crc32"] or
             {"offset": got["column"], "length": got["columns"]} !=
             {key: want["weight_columns"][key] for key in ("offset", "length")}]
    if "cycles" in found or found["registers"] or \
            found["high"] != truth["highest"]:
        wrong.append(f"{name}: {found['high']} bytes")
    with tempfile.TemporaryDirectory() as out:
        command = [AMPHORA, "compile", files[0], "-t", "max78002", "--weights",
                   files[1], "--input", files[2], "-o", out, "--emit"]
        done = subprocess.run([*command, "yaml"], capture_output=True,
                              text=True, check=False)
        placed = os.path.join(out, "network-placed.yaml")
        status, again, text = simulate(placed, *files[1:], machine="max78002")
        if done.returncode or "cycles" in done.stdout or status or \
                again["high"] > found["high"] or \
                again["layers"][-1]["crc32"] != found["layers"][-1]["crc32"]:
            wrong.append(f"{name} placed: {done.stdout}{done.stderr}{text}")
        done = subprocess.run([*command, "c"], capture_output=True, text=True,
                              check=False)
        if done.returncode != 1 or "not stated" not in done.stderr:
            wrong.append(f"{name} as C: {done.returncode} {done.stderr}")
    return wrong


# Most bytes of an instance with offsets of our own, where that is the bound.
BOUND = {"mnist": 4160, "cifar-10": 8192, "kws20_v3": 2048, "dotprod": 36,
         "autoencoder": 72, "mnist-extrasmall": 4160, "speechcom": 16384,
         "fashionmnist": 4160, "cifar10-hwc": 5120}


# As C; all of them with --long.
SOURCES = ("cats-dogs", "mnist-extrasmall", "speechcom")


def check_placed(name):
    """Problems with our offsets: read again, equal results and cycles."""
    at = os.path.join(DATA, name)
    weights, data = (os.path.join(at, file) for file in
                     ("layers.json", "input.npy"))
    with open(weights, encoding="utf-8") as file:
        truth = json.load(file)
    with tempfile.TemporaryDirectory() as out:
        subprocess.run([AMPHORA, "compile", os.path.join(at, "network.yaml"),
                        "-t", "max78000", "--weights", weights, "--input",
                        data, "--emit", "yaml", "-o", out],
                       capture_output=True, check=False)
        status, found, text = simulate(
            os.path.join(out, "network-placed.yaml"), weights, data)
    if status:
        return [f"{name} placed: {text[:300]}"]
    fine = found["cycles"] == truth["total_cycles"] and \
        found["high"] <= BOUND[name] and \
        found["layers"][-1]["crc32"] == truth["layers"][-1]["out"]["crc32"]
    return [] if fine else [f"{name} placed: {found['high']} bytes, "
                            f"{found['cycles']} cycles"]


def runs_of(text, name):
    """Runs of words by instance, their offsets left out, as they follow."""
    words = [int(w, 16) for w in re.findall(
        r"0x[0-9a-f]+", text[text.index(name):].split("}")[0])]
    runs, i = [], 0
    while words[i]:
        count = words[i + 2]
        runs.append((words[i] >> 15, words[i + 1],
                     words[i + 3:i + 3 + count]))
        i += 3 + count
    return runs


def is_answer(found, want):
    """Is it the recorded known answer, which ends behind 8192 words?"""
    if sum(len(words) for _, _, words in want) <= 8192:
        return sorted(found) == sorted(want)
    found = {bank: (mask, words) for bank, mask, words in found}
    return all(bank in found and found[bank][0] == mask and
               found[bank][1][:len(words)] == words
               for bank, mask, words in want)


def check_source(name):
    """Problems with the C of a recorded network: it compiles, and has the
    weights, the input and the known answer."""
    at = os.path.join(DATA, name)
    weights, data = (os.path.join(at, file) for file in
                     ("layers.json", "input.npy"))
    with tempfile.TemporaryDirectory() as out:
        done = subprocess.run(
            [AMPHORA, "compile", os.path.join(at, "network.yaml"), "-t",
             "max78000", "--weights", weights, "--input", data, "--emit", "c",
             "-o", out], capture_output=True, text=True, check=False)
        path = os.path.join(out, "network-placed.c")
        if done.returncode:
            return [f"{name} as C: {done.stderr[:300]}"]
        built = subprocess.run(["cc", "-fsyntax-only", "-Wall", "-Werror",
                                path], capture_output=True, text=True,
                               check=False)
        with open(path, encoding="utf-8") as file:
            text = file.read()
    with open(os.path.join(at, "known_answer.h"), encoding="utf-8") as file:
        want = runs_of(file.read(), "SAMPLE_OUTPUT")
    wrong = [] if not built.returncode else [f"{name} as C: {built.stderr}"]
    if not is_answer(runs_of(text, "known_answer"), want):
        wrong.append(f"{name} as C: another known answer")
    with open(os.path.join(at, "weights.npy"), "rb") as file:
        codes = [b - 256 if b > 127 else b for b in file.read()[128:]]
    with open(weights, encoding="utf-8") as file:
        layers = [(i, x) for i, x in enumerate(json.load(file)["layers"])
                  if x.get("weights")]
    for i, layer in layers:
        for key, array in (("weights", "weights"), ("bias", "biases")):
            if not layer.get(key):
                continue
            count = 1
            for size in layer[key]["shape"]:
                count *= size
            begin = layer[key]["offset"]
            found = text[text.index(f"{array}_{i}[]"):].split("{")[1]
            if [int(v) for v in found.split("}")[0].split(",")[:-1]] != \
                    codes[begin:begin + count]:
                wrong.append(f"{name} as C: {array} of layer {i}")
    return wrong


def check_changed():
    """Problems with changed placements: refused unless the result is right and
    the tool saw nothing to warn of."""
    wrong = []
    with open(os.path.join(DATA, "placements", "verdicts.json"),
              encoding="utf-8") as file:
        verdicts = json.load(file)
    for one in verdicts:
        at = os.path.join(DATA, one["network"])
        status, _, text = simulate(
            os.path.join(DATA, "placements", one["case"] + ".yaml"),
            os.path.join(at, "layers.json"), os.path.join(at, "input.npy"))
        legal = one["accepted"] and one["warnings"] == 0 and \
            "not a multiple" not in one["change"]
        if legal != (status == 0):
            wrong.append(f"{one['case']}: {status} {text[:200]}")
    return wrong


def main():
    wrong = check_small() + check_machine() + check_lowered()
    names = [] if not os.path.isdir(DATA) else [
        name for name in sorted(os.listdir(DATA))
        if os.path.exists(os.path.join(DATA, name, "network.yaml"))]
    larger = [name for name in names if "78002" in name]
    names = [name for name in names if name not in larger]
    if "--long" not in sys.argv:
        names = [n for n in names if n not in ("camvid_unet", "faceid")]
    for name in names:
        wrong += check_recorded(name)
        wrong += check_placed(name) if name in BOUND else []
        wrong += check_source(name) if name in SOURCES or \
            "--long" in sys.argv else []
    for name in larger:
        wrong += check_larger(name)
    if names:
        wrong += check_changed()
    for text in wrong:
        print(text)
    print(f"{len(names + larger)} recorded networks, {len(wrong)} problems")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
