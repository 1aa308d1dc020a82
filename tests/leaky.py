#!/usr/bin/env python3
"""leaky.py - leaky ReLUs on codes: sums below 0 have a scale of their own.

  exact     a convolution, a transposed one and an inner product, in Python's
            fractions: every code, by both rules of rounding, by the evaluator,
            native code, and the listing of ring-npu
  machines  a network that is quantised for a machine whose engines know leaky
            ReLUs runs there whole, for another with its activations apart; what
            has one scale refuses layers of two
  written   its ONNX reads back as the same layers, with the same codes
"""
import array
import json
import os
import random
import subprocess
import sys
import tempfile
from fractions import Fraction

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gemmini_nets import Net  # noqa: E402
from truthlib import npy_write  # noqa: E402

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
SLOPE = 0.1
ENGINES = ("vision-npu", "tile-npu", "ring-npu", "dpuczdx8g-b4096")
STRAIGHT = ("nvdla-small", "vta-pynq", "gemmini-16", "vta-words")
passed = failed = 0


def check(what, good, detail=""):
    global passed, failed
    passed += bool(good)
    failed += not good
    if not good:
        print("FAILED", what, detail)


def run(*arguments):
    done = subprocess.run([AMPHORA, *map(str, arguments)], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return (done.returncode, done.stdout.decode(errors="replace"),
            done.stderr.decode(errors="replace"))


def codes_of(path):
    with open(path, "rb") as file:
        data = file.read()
    return list(array.array("b", data[10 + int.from_bytes(data[8:10],
                                                          "little"):]))


# ---- one layer, exactly ----

def bent(net):
    """The last layer gets a leaky ReLU."""
    net.nodes[-1]["attributes"].update(act="leaky", alpha=[SLOPE], lo=[0],
                                       hi=[0])


def single(kind, rounding):
    net = Net(f"{kind}-{rounding}", seed=11)
    x = net.input(6, 5, 7)
    if kind == "fc":
        out = net.fc("y", x, 19)
    else:
        out = net.conv("y", x, 9, 3, 1, 1)
    if kind == "deconv":  # of stride 1 and padding 1: the kernel turned around
        node, weight = net.nodes[-1], net.nodes[-1]["constants"]["weight"]
        node["op"] = "deconv"
        const = net.consts[weight]
        const["shape"] = [6, 9, 3, 3]
        const["mul1"] = [const.pop("mul0")[0]] * 9
    bent(net)
    for node in net.nodes:
        node["writes"][0]["quant"]["round"] = rounding
    return net, out


def value_of(net, index):
    const = net.consts[index]
    n = 1
    for extent in const["shape"]:
        n *= extent
    letter = {"i8": "b", "i32": "i"}[const["kind"]]
    size = array.array(letter).itemsize
    data = net.data[const["offset"]:const["offset"] + n * size]
    return array.array(letter, bytes(data)).tolist()


def sums_of(kind, net, image):
    """[channel][pixel] sums of products of codes, in whole numbers."""
    constants = net.nodes[-1]["constants"]
    weight = value_of(net, constants["weight"])
    bias = value_of(net, constants["bias"])
    if kind == "fc":
        return [[b + sum(w * x for w, x in zip(weight[o * 210:], image))]
                for o, b in enumerate(bias)]

    def tap(o, c, ky, kx):
        if kind == "conv":
            return weight[((o * 6 + c) * 3 + ky) * 3 + kx]
        return weight[((c * 9 + o) * 3 + 2 - ky) * 3 + 2 - kx]

    def pixel(c, y, x):
        inside = 0 <= y < 5 and 0 <= x < 7
        return image[(c * 5 + y) * 7 + x] if inside else 0
    return [[bias[o] + sum(tap(o, c, ky, kx) * pixel(c, y + ky - 1, x + kx - 1)
                           for c in range(6) for ky in range(3)
                           for kx in range(3))
             for y in range(5) for x in range(7)] for o in range(9)]


def codes_may_be(total, scale):
    """The nearest code, both where it is within 1e-5 of halfway."""
    real = total * scale * (Fraction(SLOPE) if total < 0 else 1)
    near = Fraction(1, 100000)
    both = {(real + Fraction(1, 2) + d).__floor__() for d in (-near, near)}
    return {min(max(code, -128), 127) for code in both}


def check_exact(folder):
    for kind in ("conv", "deconv", "fc"):
        for rounding in ("up", "even"):
            net, out = single(kind, rounding)
            path = net.write(folder, out)
            rng = random.Random(2)
            image = [rng.randint(-128, 127) for _ in range(210)]
            unit = Fraction(net.nodes[0]["writes"][0]["quant"]["scale"])
            npy_write(f"{folder}/x.npy", [1, 6, 5, 7],
                      array.array("f", [float(unit * c) for c in image])
                      .tobytes())
            scale = unit * Fraction(0.02) / Fraction(out[2])
            sums = [t for row in sums_of(kind, net, image) for t in row]
            want = [codes_may_be(total, scale) for total in sums]
            for how in ([], ["--native"]):
                code, _, errors = run("eval", path, "--input",
                                      f"{folder}/x.npy", "-o",
                                      f"{folder}/{kind}{rounding}", *how)
                got = codes_of(f"{folder}/{kind}{rounding}/y.npy")
                wrong = sum(g not in w for g, w in zip(got, want))
                check(f"{kind} {rounding} {how}", code == 0 and not wrong and
                      len(got) == len(want), (wrong, errors))
            below = sum(total < 0 for total in sums)
            check(f"{kind}: both sides of 0", 0 < below < len(sums), below)
            code, text, errors = run("verify", path, "-t", "ring-npu", "--json")
            check(f"{kind} {rounding}: ring-npu", code == 0 and
                  json.loads(text)["max_code_error"] == 0, text + errors)


# ---- a network ----

LAYERS = "".join(f"""
[convolutional]
batch_normalize={bn}
filters={n}
size={k}
stride={s}
pad=1
activation=leaky
{'''
[maxpool]
size=2
stride=2
''' if pool else ''}""" for bn, n, k, s, pool in (
    (1, 16, 3, 1, 1), (1, 24, 3, 1, 0), (0, 12, 1, 1, 0), (0, 20, 3, 2, 0)))


def write_network(folder):
    with open(f"{folder}/bent.cfg", "w", encoding="utf-8") as file:
        file.write("[net]\nbatch=1\nwidth=20\nheight=20\nchannels=3\n" + LAYERS)
    rng = random.Random(3)
    os.mkdir(f"{folder}/samples")
    for i in range(24):
        image = array.array("f", [rng.gauss(0, 1) for _ in range(1200)])
        npy_write(f"{folder}/samples/{i:02}.npy", [1, 3, 20, 20],
                  image.tobytes())
    return f"{folder}/bent.cfg"


def quantised(folder, net, machine):
    out = f"{folder}/{machine}"
    code, _, errors = run("quantise", net, "--calibrate", f"{folder}/samples",
                          "-t", machine, "--repair", "bias", "-o", out)
    check(f"quantise -t {machine}", code == 0, errors)
    return f"{out}/bent.json"


def host_layers(report):
    host = report["host_layers"]
    return host if isinstance(host, int) else len(host)


def acts_of(path):
    with open(path, encoding="utf-8") as file:
        return [node for node in json.load(file)["nodes"]
                if node["op"] == "act"]


def check_machines(folder, net):
    for machine in ENGINES:
        path = quantised(folder, net, machine)
        code, text, errors = run("verify", path, "-t", machine, "--json")
        report = json.loads(text) if code == 0 else {}
        check(f"{machine}: every code, on engines", code == 0 and
              report["max_code_error"] == 0 and host_layers(report) == 0 and
              report["quantised_layers_compared"] > 4, text[:300] + errors)
    for machine in STRAIGHT:
        path = quantised(folder, net, machine)
        code, text, errors = run("verify", path, "-t", machine, "--json")
        report = json.loads(text) if code == 0 else {}
        wrong = report.get("max_code_error", report.get("codes_wrong"))
        check(f"{machine}: activations alone on the host", code == 0 and
              wrong == 0 and len(acts_of(path)) == 4 and
              host_layers(report) <= 5, text[:300] + errors)
    bent_net = f"{folder}/ring-npu/bent.json"
    for machine in ("gemmini-16", "vta-words"):
        code, text, errors = run("verify", bent_net, "-t", machine, "--json")
        check(f"{machine}: no layer of words with two scales", code == 0 and
              json.loads(text)["codes_wrong"] == 0 and
              host_layers(json.loads(text)) == 4, text[:300] + errors)
    code, _, errors = run("quantise", net, "--calibrate", f"{folder}/samples",
                          "--scales", "pow2", "--zeros", "none", "--per",
                          "tensor", "-o", f"{folder}/pow2")
    check("quantise to powers of two", code == 0, errors)
    code, _, errors = run("compile", f"{folder}/pow2/bent.json", "-t",
                          "max78000", "--emit", "yaml", "-o", f"{folder}/m")
    check("max78000 refuses", code == 1 and
          "the only activation is ReLU" in errors, errors)


def check_written(folder):
    real = []
    for form in ("json", "onnx"):
        out = f"{folder}/{form}"
        run("eval", f"{folder}/ring-npu/bent.{form}", "--input",
            f"{folder}/samples/03.npy", "-o", out)
        names = sorted(os.listdir(out), key=lambda name: -len(name))
        with open(f"{out}/{names[0]}", "rb") as file:
            real.append(file.read()[-4 * 500:])  # 20 x 5 x 5 numbers
    check("onnx: the same numbers", real[0] == real[1] and
          len(set(real[0])) > 20)
    code, text, _ = run("verify", f"{folder}/ring-npu/bent.onnx", "-t",
                        "ring-npu", "--json")
    check("onnx: convolutions on engines", code == 0 and
          not [row for row in json.loads(text)["host_layers"]
               if row["kind"] != "identity"], text[:300])


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_exact(folder)
        net = write_network(folder)
        check_machines(folder, net)
        check_written(folder)
    print(f"leaky: {passed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
