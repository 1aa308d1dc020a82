#!/usr/bin/env python3
"""quantise.py - networks of real numbers become networks on codes.

  own      a small network of ours: what is written reads back, computes nearly
           what the real one does, is the same with any number of threads,
           follows its options, and runs on a machine
  given    scales of a quantizer.json in place of samples
  samples  the same samples as .npy files, a stack, .npz, raw, .pb and pictures
           give the same network
  refused  no samples, damaged ones, those of another size
  warned   few samples, tensors that are always zero, NaN
  trained  keyword spotting, ResNet-8, LeNet of ../shared/data, where it is:
           agreement with the network of real numbers, SQNR
  ort      (--long) what is written as ONNX, in onnxruntime, gives the outputs
           of the same network here on all samples
  tflite   (--long) what is written as TensorFlow Lite, in its WebAssembly, gives
           the codes of the same network here under its rule of rounding

    tests/quantise.py [--long]
"""
import array
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from truthlib import EXPORTED, field, npy_write, prepare_long  # noqa: E402

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
DATA = "../shared/data/quant/accuracy"
HERE = os.path.dirname(os.path.abspath(__file__))
SHAPE = (1, 3, 12, 12)
N = 24
MEAN, FACTOR = 83, 0.5847029089927673  # of the samples of keyword spotting
passed = failed = 0


def check(what, good, detail=""):
    global passed, failed
    passed += bool(good)
    failed += not good
    if not good:
        print("FAILED", what, detail)


def run(*arguments):
    done = subprocess.run([AMPHORA, *map(str, arguments)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False)
    return (done.returncode, done.stdout.decode(errors="replace"),
            done.stderr.decode(errors="replace"))


def quantise(net, samples, out, *options):
    code, text, errors = run("quantise", net, "--calibrate", samples, "-o", out,
                             "--json", *options)
    check(f"quantise {net} {options}", code == 0, errors)
    return json.loads(text) if code == 0 else None


# ---- a network of ours ----

def node(op, name, reads, shape, attributes=None, constants=None):
    row = {"op": op, "name": name, "reads": reads,
           "writes": [{"name": name, "shape": shape}]}
    if attributes:
        row["attributes"] = attributes
    if constants:
        row["constants"] = constants
    return row


def conv(name, reads, shape, kernel, groups=1, act="relu", constants=None):
    pad = kernel // 2
    return node("conv", name, [reads], shape,
                {"out_c": [shape[1]], "groups": [groups],
                 "kernel": [kernel, kernel], "stride": [1, 1],
                 "dilation": [1, 1], "pad": [pad, pad], "pad_end": [pad, pad],
                 **({} if act == "none" else {"act": act})}, constants)


def write_network(path, shape=SHAPE):
    """Convolutions of three kinds, a sum, an activation that is no bound, a
    concat, pools, an inner product and a softmax."""
    rng = random.Random(5)
    constants, rows = [], bytearray()

    def constant(dims, spread, mean=0.0):
        n = 1
        for dim in dims:
            n *= dim
        while len(rows) % 64:
            rows.append(0)
        constants.append({"kind": "f32", "shape": dims, "offset": len(rows)})
        values = [mean + spread * rng.gauss(0, 1) for _ in range(n)]
        rows.extend(array.array("f", values).tobytes())
        return len(constants) - 1

    size = list(shape[2:])
    weights = lambda dims, spread: {"weight": constant(dims, spread),  # noqa
                                    "bias": constant(dims[:1], 0.1)}
    nodes = [
        node("input", "image", [], list(shape)),
        conv("first", "image", [1, 8] + size, 3,
             constants=weights([8, 3, 3, 3], 0.3 / 200)),
        conv("depth", "first", [1, 8] + size, 3, groups=8, act="relu6",
             constants=weights([8, 1, 3, 3], 0.3)),
        conv("point", "depth", [1, 8] + size, 1, act="none",
             constants=weights([8, 8, 1, 1], 0.4)),
        node("eltwise", "sum", ["first", "point"], [1, 8] + size,
             {"kind": "add", "act": "relu"}),
        conv("gate", "sum", [1, 4] + size, 1, act="sigmoid",
             constants=weights([4, 8, 1, 1], 0.4)),
        node("concat", "both", ["sum", "gate", "point"], [1, 20] + size,
             {"axis": [1]}),
        node("pool", "half", ["both"], [1, 20, size[0] // 2, size[1] // 2],
             {"kind": "max", "kernel": [3, 3], "stride": [2, 2],
              "pad": [1, 1], "pad_end": [1, 1]}),
        node("pool", "mean", ["half"], [1, 20, 1, 1],
             {"kind": "avg", "global": [1],
              "kernel": [size[0] // 2, size[1] // 2], "stride": [1, 1]}),
        node("fc", "score", ["mean"], [1, 5], {"out": [5]},
             weights([5, 20], 0.8)),
        node("softmax", "answer", ["score"], [1, 5], {"axis": [1]})]
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"amphora": 1, "name": "own", "weights": "own.bin",
                   "constants": constants, "nodes": nodes,
                   "outputs": ["answer"]}, file)
    with open(os.path.join(os.path.dirname(path), "own.bin"), "wb") as file:
        file.write(rows)


def draw(seed, n=SHAPE[1] * SHAPE[2] * SHAPE[3]):
    """Bytes of a picture, as whole numbers."""
    rng = random.Random(seed)
    base = [rng.randrange(256) for _ in range(SHAPE[1])]
    return [min(255, max(0, base[i % SHAPE[1]] + rng.randrange(-60, 60)))
            for i in range(n)]


def planes(pixels):
    """[h, w, c] to [c, h, w]."""
    return [pixels[i * SHAPE[1] + c] for c in range(SHAPE[1])
            for i in range(SHAPE[2] * SHAPE[3])]


def floats(values):
    return array.array("f", values).tobytes()


def npy_bytes(dims, kind, data):
    text = "".join(f"{dim}," for dim in dims)
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': ({text}), }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + \
        head.encode() + data


def png(width, height, rgb):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + \
            struct.pack(">I", zlib.crc32(kind + data))
    lines = b"".join(b"\0" + bytes(rgb[y * width * 3:(y + 1) * width * 3])
                     for y in range(height))
    return (b"\x89PNG\r\n\x1a\n" +
            chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0,
                                       0)) +
            chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))


def jpeg(scans):
    """A gray progressive file of 64 blocks; scans behind the first are of one
    run of blocks without terms."""
    def part(mark, data):
        return bytes([0xff, mark]) + struct.pack(">H", len(data) + 2) + data
    return (b"\xff\xd8" + part(0xdb, b"\0" + bytes([1] * 64)) +
            part(0xc2, struct.pack(">BHHB", 8, 64, 64, 1) + b"\1\x11\0") +
            part(0xc4, b"\0\1" + bytes(15) + b"\0") +
            part(0xc4, b"\x10\1" + bytes(15) + b"\x60") +
            part(0xda, bytes([1, 1, 0, 0, 0, 0])) + bytes(8) +
            (part(0xda, bytes([1, 1, 0, 1, 63, 0])) + b"\1") * (scans - 1) +
            b"\xff\xd9")


def save(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def load(path):
    with open(path, "rb") as file:
        return file.read()


def write_samples(folder):
    """The same samples in all forms: folders or files by name."""
    stack = b""
    for i in range(N):
        pixels = draw(i)
        stack += bytes(pixels)
        chw = planes(pixels)
        npy = f"{folder}/npy/{i:02}.npy"
        os.makedirs(os.path.dirname(npy), exist_ok=True)
        npy_write(npy, SHAPE, floats(chw))
        save(f"{folder}/raw/{i:02}.raw", floats(chw))
        save(f"{folder}/png/{i:02}.png", png(SHAPE[3], SHAPE[2], pixels))
        tensor = b"".join(field(1, d) for d in SHAPE) + field(2, 1) + \
            field(9, floats(chw))
        save(f"{folder}/pb/test_data_set_{i:02}/input_0.pb", tensor)
    dims = (N, SHAPE[2], SHAPE[3], SHAPE[1])
    save(f"{folder}/stack.npy", npy_bytes(dims, "|u1", stack))
    with zipfile.ZipFile(f"{folder}/all.npz", "w",
                         zipfile.ZIP_DEFLATED) as file:
        file.writestr("image.npy", npy_bytes(dims, "|u1", stack))
        file.writestr("labels.npy", npy_bytes((N,), "|u1", bytes(N)))
    return [folder + "/" + name for name in
            ("npy", "raw", "png", "pb", "stack.npy", "all.npz")]


# ---- checks ----

def files_of(folder):
    return {name: load(f"{folder}/{name}") for name in os.listdir(folder)}


def check_own(folder, net, samples):
    report = quantise(net, samples, f"{folder}/a", "--jobs", "1")
    quantise(net, samples, f"{folder}/b", "--jobs", "5")
    made = files_of(f"{folder}/a")
    check("threads", made == files_of(f"{folder}/b"))
    check("sqnr", report["held_back"]["sqnr_db"] > 25, report["held_back"])
    check("same answers",
          report["held_back"]["same_top1"] == report["held_back"]["samples"])
    graph = json.loads(made["own.json"])
    quants = {w["name"]: w.get("quant") for n in graph["nodes"]
              for w in n["writes"]}
    check("all on codes", all(quants.values()), quants)
    check("a softmax ends at 255/256",
          quants["answer"]["scale"] == 1 / 256 and
          quants["answer"]["zero"] == -128, quants["answer"])
    check("a concat and its members are one",
          quants["both"] == quants["sum"] == quants["half"], quants)
    page = made["own.html"].decode()
    check("a page", page.count("<svg") == len(quants) and
          "equalise" in page and page.count("on real numbers") >= 8)
    names = [t["tensor"] for t in report["tensors"]]
    check("rows of the report", sorted(names) == sorted(quants), names)
    check("errors by layer", all(t["sqnr_alone_db"] >= 15 and
                                 0.98 < t["cosine"] <= 1.000001
                                 for t in report["tensors"]),
          report["tensors"])
    check("histograms", all(sum(t["histogram"]) > 0 and
                            1 < t["codes_used"] <= 256
                            for t in report["tensors"]))
    quantise(net, samples, f"{folder}/up", "--rounding", "up")
    for machine in ("ring-npu", "stage-npu", "xdnn-v2-28"):
        code, out, err = run("verify", f"{folder}/up/own.json", "-t", machine)
        check(f"verify on {machine}",
              code == 0 and "all equal bit for bit" in out, out + err)
    values = {}
    for form in ("json", "tflite"):
        code, _, err = run("eval", f"{folder}/up/own.{form}", "--input",
                           f"{samples}/03.npy", "-o", f"{folder}/{form}")
        found = [f for f in os.listdir(f"{folder}/{form}")
                 if f.endswith(".real.npy")] if code == 0 else []
        values[form] = load(f"{folder}/{form}/{found[0]}") if found else err
    check("the TensorFlow Lite form computes the same",
          isinstance(values["json"], bytes) and
          values["json"] == values["tflite"], values)
    code, out, err = run("show", f"{folder}/a/own.onnx", "--json")
    check("the ONNX form is read", code == 0, err)
    code, _, err = run("quantise", f"{folder}/a/own.json", "--calibrate",
                       samples, "-o", f"{folder}/c")
    check("codes are not quantised again",
          code == 1 and "on codes already" in err, err)


def check_options(folder, net, samples):
    def quants(*options):
        out = f"{folder}/options"
        report = quantise(net, samples, out, "--repair", "none", *options)
        graph = json.loads(load(f"{out}/own.json"))
        return ({w["name"]: w.get("quant") for n in graph["nodes"]
                 for w in n["writes"]}, graph, report)

    plain, _, base = quants("--method", "minmax")
    for method in ("percentile", "mse", "kl"):
        found, _, report = quants("--method", method)
        check(f"{method} chooses other ranges", found != plain)
        check(f"{method}: SQNR", report["held_back"]["sqnr_db"] >
              base["held_back"]["sqnr_db"] - 25, report["held_back"])
    found, graph, _ = quants("--scales", "pow2", "--per", "tensor",
                             "--zeros", "none")
    scales = [q["scale"] for q in found.values()]
    scales += [s for c in graph["constants"] for s in c.get("mul0", [])]
    check("powers of two", all(struct.pack(">d", s)[2:] == bytes(6)
                               for s in scales), scales)
    listed = json.loads(load(f"{folder}/options/quantizer.json"))["network"]
    check("quantizer.json", [r["name"] for r in listed] == [
        "first", "depth", "point", "gate", "score"] and all(
            16384 <= s <= 32767 and
            abs(s / 2 ** k / (r["sf_layer_in"] * p / r["sf_layer_out"]) - 1)
            < 1e-4 for r in listed for s, k, p in zip(
                r["scale"], r["postscale_shift"], r["sf_params"])), listed)
    check("no zero points", all(q["zero"] == 0 for q in found.values()), found)
    check("one scale a layer", all(len(set(c["mul0"])) == 1
                                   for c in graph["constants"]
                                   if "mul0" in c and c["kind"] == "i8"))
    found, _, _ = quants("--type", "uint8")
    check("uint8", all(q["type"] == "uint8" for q in found.values()), found)
    _, graph, _ = quants("--bits", "first=4", "--bits", "score=8/16")
    found = {n["name"]: n for n in graph["nodes"]}
    data = load(f"{folder}/options/own.bin")
    c = graph["constants"][found["first"]["constants"]["weight"]]
    codes = array.array("b", data[c["offset"]:c["offset"] + 216])
    check("weights of 4 bits", -7 == min(codes) or max(codes) == 7, codes)
    check("and no more", min(codes) >= -7 and max(codes) <= 7, codes)
    check("a result of 16 bits",
          found["score"]["writes"][0]["quant"]["type"] == "int16")
    found, _, report = quants("--repair", "keep", "--keep", "2")
    wide = [n for n, q in found.items() if q["type"] == "int16"]
    kept = [t for t in report["repairs"] if t["repair"] == "keep"][0]
    check("layers kept in 16 bits", 1 <= len(wide) and kept["kept"] and
          kept["after_db"] > kept["before_db"], (wide, kept))
    check("no machine", "machine" not in report)
    found, _, report = quants("-t", "k210")
    check("a machine's codes", report["rounding"] == "up" and
          all(q["type"] == "uint8" for q in found.values()), found)
    code, _, err = run("quantise", net, "--calibrate", samples, "-t", "k210",
                       "--type", "int8")
    check("what a machine has not", code == 1 and "k210 has `type: uint8` (`arithmetic`)" in err, err)
    check_machine(net, samples, quants)
    found, _, _ = quants("--bits", "real", "--bits", "first=8")
    check("layers on real numbers", found["score"] is None and
          found["first"] is not None, found)
    for wrong in (["--bits", "none=8"], ["--bits", "first=3"],
                  ["--repair", "magic"], ["--mean", "1,,2"],
                  ["--percentile", "20"]):
        code, _, err = run("quantise", net, "--calibrate", samples, *wrong)
        check(f"refused: {wrong}", code in (1, 2) and "error" in err, err)


def is_power(scale):
    return struct.pack(">d", scale)[2:] == bytes(6) and \
        struct.pack(">d", scale)[1] & 15 == 0


def check_machine(net, samples, quants):
    """A DPU shifts: powers of two around 0, one scale a layer."""
    found, graph, report = quants("-t", "dpuczdx8g-b4096")
    weights = [c["mul0"] for c in graph["constants"] if "mul0" in c]
    check("a DPU's scales", weights and
          all(is_power(q["scale"]) for q in found.values()) and
          all(is_power(s) for mul in weights for s in mul), found)
    check("a DPU's codes", all(q["zero"] == 0 and q["type"] == "int8"
                               for q in found.values()), found)
    check("a DPU's weights", all(len(set(mul)) == 1 for mul in weights))
    told = ("samples", "sqnr_db", "same_top1")
    check("judged as the machine rounds",
          report["machine"]["rounding"] == "up" and
          all(report["machine"][k] == report["held_back"][k] for k in told),
          report["machine"])
    _, _, report = quants("-t", "dpuczdx8g-b4096", "--rounding", "even",
                          "--test", samples)
    check("which is another rule than the file's",
          report["rounding"] == "even" and report["machine"]["rounding"] == "up"
          and report["machine"]["samples"] == N and
          report["machine"]["sqnr_db"] != report["test"]["sqnr_db"], report)
    _, _, report = quants("-t", "gemmini-16")
    check("a machine that rounds to even, but for sums",
          report["machine"]["rounding"] == "terms" and
          report["rounding"] == "even")
    found, _, _ = quants("-t", "nvdla-small")
    check("NVDLA: any scales, no zero points",
          all(q["zero"] == 0 for q in found.values()) and
          not all(is_power(q["scale"]) for q in found.values()), found)
    for option, word, key in (("scales", "any", "scales: pow2"),
                              ("zeros", "any", "zero_points: none"),
                              ("per", "channel", "weights_per: tensor"),
                              ("type", "uint8", "type: int8")):
        code, _, err = run("quantise", net, "--calibrate", samples, "-t",
                           "dpuczdx8g-b4096", f"--{option}", word)
        check(f"--{option} {word} on a DPU", code == 1 and
              f"has `{key}` (`numbers`)" in err and
              "dpuczdx8g.yaml:" in err, err)
    code, _, err = run("quantise", net, "--calibrate", samples, "-t",
                       "dpuczdx8g-b4096", "--bits", "16")
    check("--bits 16 on a DPU",
          code == 1 and "`numbers.weight_bits`" in err, err)
    code, _, err = run("quantise", net, "--calibrate", samples, "-t", "null",
                       "--repair", "none")
    check("a machine that does not say",
          code == 0 and "does not say what numbers" in err, err)
    code, _, err = run("check", "k210", "--set", "numbers.scales=pow2")
    check("numbers beside an arithmetic", code == 1 and
          "engine kpu has an `arithmetic`" in err, err)
    code, _, err = run("check", "vta-pynq", "--set", "numbers.scales=two")
    check("no such scales", code == 1 and
          "`two` is not one of: any, pow2" in err, err)


def check_given(folder, net, samples):
    """A quantizer.json in place of samples."""
    source, out = f"{folder}/given-from", f"{folder}/given"
    quantise(net, samples, source, "--zeros", "none", "--repair", "none")
    told = json.loads(load(f"{source}/quantizer.json"))
    code, text, err = run("quantise", net, "--quantizer",
                          f"{source}/quantizer.json", "-o", out)
    check("quantizer.json is read", code == 0 and "by quantizer.json" in text,
          err)
    graph = json.loads(load(f"{out}/own.json"))
    quants = {n["name"]: n["writes"][0].get("quant") for n in graph["nodes"]}
    check("its scales", all(
        abs(quants[r["name"]]["scale"] / r["sf_layer_out"] - 1) < 1e-6
        for r in told["network"] if r["name"] != "gate"), quants)
    check("what it does not say", quants["answer"] is None, quants)
    again = json.loads(load(f"{out}/quantizer.json"))
    factors = [[(r["name"], r["scale"], r["postscale_shift"])
                for r in rows["network"]] for rows in (told, again)]
    check("its factors", factors[0] == factors[1], factors)
    code, text, err = run("verify", f"{out}/own.json", "-t", "xdnn-v3-96")
    check("on xDNN", code == 0 and "all equal bit for bit" in text, text + err)
    code, text, err = run("quantise", net, "--quantizer",
                          f"{source}/quantizer.json", "--calibrate", samples,
                          "-o", out, "--json")
    report = json.loads(text or "{}")
    check("measured on samples", code == 0 and
          report["held_back"]["samples"] == N and
          report["held_back"]["sqnr_db"] > 20 and report["tensors"], err)
    first = told["network"][0]
    for key, value, says in (
            ("sf_layer_out", -1, "above 0"), ("sf_params", [1], "length"),
            ("sf_params", ["x"] * 8, "no such number"),
            ("name", 3, "name is missing"), ("bw_params", 99, "2 to 16"),
            ("name", "depth_", "no layer of 1 names")):
        changed = dict(first, **{key: value})
        save(f"{out}/bad.json", json.dumps(
            {"network": [changed] + told["network"][1:]}).encode())
        code, _, err = run("quantise", net, "--quantizer", f"{out}/bad.json")
        check(f"{key} {value}", says in err and code == ("names" not in says),
              err)
    save(f"{out}/bad.json", b'{"network": 3}')
    for options, says in (
            (["--quantizer", f"{out}/bad.json"], "list of layers"),
            (["--quantizer", f"{source}/quantizer.json", "--method", "kl"],
             "says all"),
            (["--quantizer", f"{source}/quantizer.json", "-t",
              "dpuczdx8g-b512"], "is not what dpuczdx8g-b512 has")):
        code, _, err = run("quantise", net, *options)
        check(f"refused: {options}", code in (1, 2) and says in err, err)
    caffe = "../shared/data/caffe/bvlc_googlenet_deploy.prototxt"
    path = DATA + "/../xfdnn/googlenet_quantizer.json"
    if os.path.isfile(path) and os.path.isfile(caffe):
        run("quantise", caffe, "--quantizer", path, "-o", f"{folder}/googlenet")
        rows = [{r["name"]: [s / 2 ** k for s, k in zip(
            r["scale"], r["postscale_shift"])] for r in json.loads(
                load(name))["network"]} for name in
            (path, f"{folder}/googlenet/quantizer.json")]
        n = sum(map(len, rows[0].values()))
        check("GoogLeNet of xfDNN: its 7,280 factors",
              n == 7280 and rows[0] == rows[1], n)


def check_samples(folder, net, forms):
    made = []
    for i, form in enumerate(forms):
        quantise(net, form, f"{folder}/form{i}", "--repair", "none")
        made.append(load(f"{folder}/form{i}/own.json"))
    check("all forms of samples give the same",
          all(one == made[0] for one in made),
          [one == made[0] for one in made])
    shifted = quantise(net, forms[0], f"{folder}/scaled", "--repair", "none",
                       "--mean", "10,20,30", "--scale", "0.5")
    image = [t for t in shifted["tensors"] if t["layer"] == "image"][0]
    check("mean and scale", image["seen"][1] <= 122.5 and
          image["seen"][0] >= -15, image["seen"])
    some = quantise(net, forms[-1] + ":image@4-9", f"{folder}/some",
                    "--repair", "none")
    check("a slice", some["samples"] == 6, some)
    big = f"{folder}/big"
    for i in range(20):
        save(f"{big}/{i:02}.png", png(37, 20, draw(i, 37 * 20 * 3)))
    for how in ("crop", "fit", "stretch"):
        report = quantise(net, big, f"{folder}/sizes", "--repair", "none",
                          "--resize", how)
        image = [t for t in report["tensors"] if t["layer"] == "image"][0]
        check(f"pictures of another size, {how}",
              0 <= image["seen"][0] < image["seen"][1] <= 255, image)


def check_refused(folder, net):
    bad = f"{folder}/bad"
    cases = {"short.npy": npy_bytes((7,), "|u1", bytes(7)),
             "cut.png": png(12, 12, draw(1))[:60],
             "cut.npz": b"PK\x03\x04 nothing", "cut.jpg": b"\xff\xd8\xff\xe0",
             "pixels.jpg": jpeg(1)[:-4], "scans.jpg": jpeg(101),
             "odd.raw": bytes(13)}
    for name, data in cases.items():
        save(f"{bad}/{name}", data)
        code, _, err = run("quantise", net, "--calibrate", f"{bad}/{name}")
        check(f"refused: {name}", code == 1 and name in err, err)
    save(f"{bad}/hundred.jpg", jpeg(100))
    code, _, err = run("quantise", net, "--calibrate", f"{bad}/hundred.jpg",
                       "--repair", "none", "-o", f"{folder}/hundred")
    check("a JPEG of 100 scans", code == 0, err)
    code, _, err = run("quantise", net)
    check("refused: no samples", code == 2 and "--calibrate" in err, err)
    os.makedirs(f"{folder}/empty")
    code, _, err = run("quantise", net, "--calibrate", f"{folder}/empty")
    check("refused: an empty folder", code == 1 and "no samples" in err, err)
    code, _, err = run("quantise", net, "--calibrate", f"{folder}/nowhere")
    check("refused: nothing there", code == 1 and "no such" in err, err)


def check_warned(folder, net):
    n = SHAPE[1] * SHAPE[2] * SHAPE[3]
    zero, nan, none = (f"{folder}/{k}" for k in ("zero", "nan", "none"))
    for i in range(3):
        save(f"{zero}/{i}.raw", floats([0] * n))
        save(f"{nan}/{i}.raw", floats([float("nan")] + planes(draw(i))[1:]))
    _, _, err = run("quantise", net, "--calibrate", zero)
    check("warned: few samples", "3 samples" in err, err)
    check("warned: always zero", "zero on all samples" in err, err)
    _, _, err = run("quantise", net, "--calibrate", nan)
    check("warned: NaN", "no numbers" in err, err)
    save(f"{none}/0.raw", floats([float("nan")] * n))
    code, _, err = run("quantise", net, "--calibrate", none, "-o",
                       f"{folder}/none.out")
    check("refused: nothing but NaN", code == 1 and
          'input "image" is no number on any sample' in err and
          not os.path.exists(f"{folder}/none.out"), err)


# ---- trained networks ----

KWS = [f"{DATA}/kws/samples.npz:codes@0-99", "--test",
       f"{DATA}/kws/samples.npz:codes@100-499", "--mean", MEAN, "--scale",
       FACTOR]
RESNET = [f"{DATA}/resnet8/calibration.npz:images", "--test",
          f"{DATA}/resnet8/samples.npz:images"]
LENET = [f"{DATA}/lenet/samples.npz:images@0-99", "--test",
         f"{DATA}/lenet/samples.npz:images@100-599"]
POW2 = ["--scales", "pow2", "--per", "tensor", "--zeros", "none"]
# network, samples, options, least agreement in %, least dB, quick
TRAINED = [
    ("kws/kws_float", KWS, [], 99.4, 32, True),
    ("kws/kws_float", KWS, ["--method", "kl", "--repair", "none"], 97.5, 21,
     True),
    ("kws/kws_float", KWS, POW2, 97.5, 22, False),
    ("kws/kws_float_unequal", KWS, ["--per", "tensor"], 98, 24, False),
    ("kws/kws_float_unequal", KWS, POW2, 96, 18, False),
    ("resnet8/resnet8_float", RESNET, [], 98.9, 28.5, False),
    ("resnet8/resnet8_float", RESNET, ["--repair", "all"], 99, 28.5, False),
    ("resnet8/resnet8_float", RESNET, POW2, 97.5, 22, False),
    ("lenet/lenet", LENET, [], 100, 41, True)]


def check_trained(folder, long):
    for name, samples, options, agreement, least, quick in TRAINED:
        if not (quick or long):
            continue
        report = quantise(f"{DATA}/{name}.onnx", samples[0],
                          f"{folder}/{name}{len(options)}", *samples[1:],
                          *options)
        test = report["test"]
        same = 100 * test["same_top1"] / test["samples"]
        words = " ".join(map(str, options))
        print(f"{name} {words}: {same:.2f} % of {test['samples']} as on real "
              f"numbers, {test['sqnr_db']:.2f} dB, right "
              f"{test['right_codes']}, on real numbers {test['right_real']}")
        check(f"{name} {words}: agreement", same >= agreement, same)
        check(f"{name} {words}: SQNR", test["sqnr_db"] >= least, test)
        check(f"{name} {words}: right answers", test["right_codes"] >=
              test["right_real"] - 0.02 * test["samples"], test)


def npz_values(path, name):
    with zipfile.ZipFile(path) as file:
        data = file.read(name + ".npy")
    return data[10 + struct.unpack("<H", data[8:10])[0]:]


def check_ort(folder):
    """Outputs of all samples by onnxruntime and by us."""
    from truth_onnx import install
    npm = os.path.abspath(EXPORTED + "/npm")
    install(npm)
    codes = array.array("b", npz_values(f"{DATA}/kws/samples.npz", "codes"))
    images = npz_values(f"{DATA}/resnet8/samples.npz", "images")
    for name, dims, values, n in (
            ("kws/kws_float", "1x49x10x1",
             [(c - MEAN) * FACTOR for c in codes[:490 * 100]], 100),
            ("resnet8/resnet8_float", "1x32x32x3", list(images[:3072 * 60]),
             60)):
        stem = name.split("/")[1]
        out = f"{folder}/{name}0"
        raw = floats(values)
        save(f"{folder}/ort.in", raw)
        subprocess.run(["node", HERE + "/ort_samples.mjs", npm,
                        f"{out}/{stem}.onnx", dims, f"{folder}/ort.in",
                        f"{folder}/ort.out", "all"], check=True)
        theirs = load(f"{folder}/ort.out")
        size, each = len(raw) // n, len(theirs) // n
        same = 0
        for i in range(n):
            npy_write(f"{folder}/one.npy", [int(d) for d in dims.split("x")],
                      raw[i * size:(i + 1) * size])
            run("eval", f"{out}/{stem}.json", "--input", f"{folder}/one.npy",
                "-o", f"{folder}/one")
            real = [f for f in os.listdir(f"{folder}/one")
                    if f.endswith(".real.npy")]
            ours = load(f"{folder}/one/{real[0]}")[-each:]
            same += ours == theirs[i * each:(i + 1) * each]
        print(f"{name}: {same} of {n} samples equal in onnxruntime")
        check(f"{name}: onnxruntime gives our codes", same == n, same)


def check_tflite(folder):
    """Codes of samples by TensorFlow Lite and by us; of ResNet-8 two of 200
    differ behind its softmax."""
    import numpy
    from foreign import NPM, TFLITE, install_npm
    install_npm(TFLITE)
    kws = numpy.load(f"{DATA}/kws/samples.npz")["codes"][:120].astype("f4")
    lenet = numpy.load(f"{DATA}/lenet/samples.npz")["images"][:120]
    images = numpy.load(f"{DATA}/resnet8/samples.npz")["images"][:20]
    for name, samples, values, dims, least in (
            ("kws/kws_float", KWS, (kws[100:] - numpy.float32(MEAN)) *
             numpy.float32(FACTOR), (1, 49, 10, 1), 240),
            ("lenet/lenet", LENET, lenet[100:], (1, 28, 28, 1), 200),
            ("resnet8/resnet8_float", RESNET, images, (1, 32, 32, 3), 190)):
        stem = name.split("/")[1]
        out = f"{folder}/tflite-{stem}"
        if not quantise(f"{DATA}/{name}.onnx", samples[0], out, *samples[1:],
                        "--rounding", "up", "--repair", "adaround,bias"):
            continue
        with open(f"{out}/{stem}.json", encoding="utf-8") as file:
            first = json.load(file)["nodes"][0]["writes"][0]
        quant = first.get("quant", first)
        same = codes = 0
        for i in range(20):
            value = values[i].astype("f4").reshape(first["shape"])
            numpy.save(f"{folder}/one.npy", value)
            run("eval", f"{out}/{stem}.json", "--input", f"{folder}/one.npy",
                "-o", f"{folder}/ours")
            npy = [f for f in os.listdir(f"{folder}/ours")
                   if not f.endswith(".real.npy")]
            ours = numpy.load(f"{folder}/ours/{npy[0]}").ravel()
            code = numpy.rint(value.reshape(dims) /
                              numpy.float32(quant["scale"])) + quant["zero"]
            numpy.clip(code, -128, 127).astype("i1").tofile(f"{folder}/raw")
            subprocess.run(["node", HERE + "/truth_tflite.mjs", NPM,
                            f"{out}/{stem}.tflite", f"{folder}/theirs", "input",
                            "x".join(map(str, dims)), f"{folder}/raw"],
                           check=True, stdout=subprocess.DEVNULL)
            theirs = numpy.fromfile(f"{folder}/theirs.0", "i1")
            same += int((theirs == ours).sum())
            codes += theirs.size
            shutil.rmtree(f"{folder}/ours")
        print(f"{name}: {same} of {codes} codes equal in TensorFlow Lite")
        check(f"{name}: TensorFlow Lite gives our codes", same >= least, same)


def main():
    long = "--long" in sys.argv[1:]
    if long:
        prepare_long()
    with tempfile.TemporaryDirectory() as folder:
        net = f"{folder}/own.json"
        write_network(net)
        forms = write_samples(f"{folder}/samples")
        check_own(folder, net, forms[0])
        check_options(folder, net, forms[0])
        check_given(folder, net, forms[0])
        check_samples(folder, net, forms)
        check_refused(folder, net)
        check_warned(folder, net)
        if os.path.isdir(DATA):
            check_trained(folder, long)
            if long:
                check_ort(folder)
                check_tflite(folder)
    print(f"quantise: {passed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
