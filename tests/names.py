#!/usr/bin/env python3
"""names.py - what a model may do by the names and the sizes that it gives.

Names of a network, its layers and its tensors with control characters, escape
sequences of terminals, and characters that turn the direction of writing: none
of them is in anything that a command prints or writes, in any of its forms.
Data of an ONNX model behind links: read where it stays in the model's folder,
refused where it does not. Values that memory has no room for: refused before
any is taken. Layers with names that end as those of tiles have their own
weights, where they are cut and where not.
"""
import os
import re
import resource
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from truthlib import field  # noqa: E402

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
EVIL = "a\x1b[31mb\x07\x7f\x9b\u202ec\u2066\u200f\u2028d"
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f"
                 "\u2028-\u202e\u2066-\u2069]")
BIG = """layer { name: "data" type: "Input" top: "data"
  input_param { shape { dim: 1 dim: 16 dim: 8192 dim: 8192 } } }
layer { name: "r" type: "ReLU" bottom: "data" top: "r" }
"""
TILES = """name: "tiles"
input: "data" input_shape { dim: 1 dim: 8 dim: 20 dim: 20 }
""" + "".join(
    f"""layer {{ name: "{name}" type: "{kind}" bottom: "{bottom}" top: "{name}"
  {more} }}
""" for name, kind, bottom, more in (
        ("x", "Convolution", "data", "convolution_param { num_output: 16 "
         "kernel_size: 3 pad: 1 }"),
        ("x#1", "Convolution", "x", "convolution_param { num_output: 16 "
         "kernel_size: 3 pad: 1 }"),
        ("x#0", "Pooling", "x#1", "pooling_param { pool: MAX kernel_size: 2 "
         "stride: 2 }"),
        ("x#0#0", "InnerProduct", "x#0", "inner_product_param "
         "{ num_output: 10 }")))
CUT = (("stage-npu", "20KiB"), ("line-npu", "6KiB"), ("ring-npu", "6KiB"),
       ("xdnn-v2-28", "12KiB"), ("tile-npu", "6KiB"), ("null", "1MiB"))


def run(*words, room=None):
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (room, room))
    done = subprocess.run([AMPHORA, *words], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False,
                          preexec_fn=limit if room else None)
    return done.returncode, done.stdout + done.stderr


def written(folder, name, data):
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())
    return path


def octal(name):
    return "".join(f"\\{b:03o}" for b in name.encode())


def evil_network():
    e = octal(EVIL)
    return (f'name: "{e}" layer {{ name: "{e}0" type: "Input" top: "{e}0" '
            "input_param { shape { dim: 1 dim: 4 dim: 8 dim: 8 } } }\n"
            f'layer {{ name: "{e}1" type: "Convolution" bottom: "{e}0" '
            f'top: "{e}1" convolution_param {{ num_output: 4 kernel_size: 3 '
            "pad: 1 } }\n"
            f'layer {{ name: "{e}2" type: "Softmax" bottom: "{e}1" '
            f'top: "{e}2" }}\n')


def raw_in(data):
    """Where a character stands that must not."""
    text = data.decode("utf-8", errors="replace")
    found = RAW.search(text)
    return repr(text[max(0, found.start() - 30):found.end() + 10]) \
        if found else "\ufffd" in text and "no UTF-8"


def check_names(folder):
    path = written(folder, f"{EVIL}.prototxt", evil_network())
    out = os.path.join(folder, "out")
    os.makedirs(out)
    commands = [
        ("show", path), ("show", path, "--order", "best"),
        ("show", path, "--emit", "json"),
        ("show", path, "--order", "best", "-o", os.path.join(out, "o.svg")),
        ("verify", path, "-t", "ring-npu"),
        ("verify", path, "-t", "ring-npu", "--json"),
        ("verify", path, "-t", "ring-npu", "--set", "memories.am.size=300"),
        ("verify", path, "-t", "ring-npu", "--set", "memories.am.size=3"),
        ("compile", path, "-t", "ring-npu", "-o", out, "--explain"),
        ("compile", path, "-t", "ring-npu", "-o", out, "--json",
         "--log-rules", "--report", os.path.join(out, "page.html"),
         "--trace", os.path.join(out, "trace.json")),
        ("compile", path, "-t", "ring-npu", "-o", out, "--dump", "all"),
        ("compile", path, "-t", "cpu-x86-64", "-o", out),
        ("compile", path, "-t", "ring-npu", "-o", out, "--emit", "host"),
        ("compile", written(folder, "broken.prototxt", evil_network().replace(
            "pad: 1", "pad: x")), "-t", "ring-npu", "-o", out),
    ]
    commands.append(("explore", path, "-t", "ring-npu", "--vary",
                     "memories.am.size=64KiB,128KiB", "-o", out, "--reports",
                     "none"))
    for words in (("no" + EVIL,), ("show", "--no" + EVIL), ("show", path, EVIL)):
        code, said = run(*words)
        if code != 2 or raw_in(said):
            yield f"{words}: exit code {code}: {said[:200]}"
    codes = set()
    for words in commands:
        code, said = run(*words)
        codes.add(code)
        if code == 2:
            yield f"{words[2:]}: {said[:200]}"
        if raw_in(said):
            yield f"{words[0]} {words[2:]}: {raw_in(said)}"
    if codes != {0, 1, 3}:
        yield f"exit codes {codes}"
    listing = ""
    for name in sorted(os.listdir(out)):
        with open(os.path.join(out, name), "rb") as file:
            data = file.read()
        if name.endswith((".cmd", ".json", ".html", ".h", ".svg", ".csv")):
            listing = os.path.join(out, name) if name.endswith(".cmd") \
                else listing
            if raw_in(data):
                yield f"{name!a}: {raw_in(data)}"
    for words in (("simulate", listing, "-t", "ring-npu"),
                  ("disasm", listing, "-t", "ring-npu")):
        if raw_in(run(*words)[1]):
            yield f"{words[0]}: {raw_in(run(*words)[1])}"


def onnx_model(location):
    """Relu of the product of an input and a tensor of data elsewhere."""
    def value(name):
        dims = b"".join(field(1, field(1, 4)) for _ in range(4))
        kind = field(1, field(1, 1) + field(2, dims))
        return field(1, name) + field(2, kind)
    entry = field(1, b"location") + field(2, location.encode())
    tensor = (b"".join(field(1, 4) for _ in range(4)) + field(2, 1)
              + field(8, b"w") + field(13, entry) + field(14, 1))
    node = field(1, b"x") + field(1, b"w") + field(2, b"y") + field(4, b"Conv")
    graph = (field(1, node) + field(2, b"g") + field(5, tensor)
             + field(11, value(b"x")) + field(12, value(b"y")))
    return field(1, 8) + field(7, graph) + field(8, field(2, 13))


def check_links(folder):
    outside = written(folder, "outside.bin", bytes(4 ** 4 * 4))
    model = os.path.join(folder, "model")
    os.makedirs(os.path.join(model, "below"))
    written(model, "w.bin", bytes(4 ** 4 * 4))
    os.symlink("../w.bin", os.path.join(model, "below", "in"))
    os.symlink(outside, os.path.join(model, "out"))
    os.symlink("..", os.path.join(model, "up"))
    for location, inside in (("w.bin", True), ("below/in", True),
                             ("out", False), ("up/outside.bin", False),
                             ("../outside.bin", False), (outside, False)):
        path = written(model, "m.onnx", onnx_model(location))
        said = run("show", path)[1].decode(errors="replace")
        refused = "its data lies outside the model's folder" in said
        if refused == inside or not refused and "its data" in said:
            yield f"data in {location}: {said[:300]}"
        if refused and not re.search(r'm\.onnx: byte \d+: error: tensor "w"',
                                     said):
            yield f"data in {location}, not located: {said[:300]}"


def check_room(folder):
    path = written(folder, "big.prototxt", BIG)
    code, said = run("verify", path, "-t", "null", room=3 << 30)
    if code != 3 or b"does not fit: verifying big takes at least" not in said:
        yield f"4 GiB tensors: exit code {code}: {said[:300]}"
    code, said = run("eval", path, room=3 << 30)
    if code != 3 or b"does not fit: evaluating big takes at least" not in said:
        yield f"eval of 4 GiB tensors: exit code {code}: {said[:300]}"
    code, said = run("compile", path, "-t", "null", "-o", folder)
    if code:
        yield f"compile of 4 GiB tensors: exit code {code}: {said[:300]}"
    code, said = run("simulate", os.path.join(folder, "big.cmd"), "-t", "null",
                     room=3 << 30)
    if code != 3 or b"does not fit: simulating big takes at least" not in said:
        yield f"simulate of 4 GiB tensors: exit code {code}: {said[:300]}"


def check_tiles(folder):
    path = written(folder, "tiles.prototxt", TILES)
    for machine, size in CUT:
        code, said = run("verify", path, "-t", machine, "--set",
                         f"memories.am.size={size}")
        if code:
            yield f"tiles, {machine}, {size}: {said.decode()}"


def main():
    bad = 0
    for check in (check_names, check_links, check_room, check_tiles):
        with tempfile.TemporaryDirectory() as folder:
            for what in check(folder):
                print(f"{check.__name__}: {what}")
                bad += 1
    print(f"{bad} wrong")
    return 1 if bad else 0


sys.exit(main())
