#!/usr/bin/env python3
"""taps.py - weights of some taps of a kernel, and sums that go on with the next.

vta-pynq whose rows tell `weights.tap.first` and `weights.tap.last`: networks are
verified by value with memories of weights that hold one tap of 16 x 16 channels,
some of a row, a row, two; kernels of several shapes, strides and dilations, some
taps of which read nothing but padding. Changed listings are refused, as are
descriptions of which only some rows tell taps. What `examples/run_listing.py`
computes is what `simulate` computes. Without taps the refusal names the bytes of
all, with them those of one.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

from listed import with_tokens, wrong_listings, wrong_machines, wrong_values

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
ONE = 256  # bytes of one tap
TAPS = """extends: vta-pynq
machine: {name: taps}
fields:
  tap: weights.tap.first
  tap_last: weights.tap.last
  taps: [tap, tap_last]
instructions:
  DENSE: {text: DENSE t layer dest source act bias bias_at weights taps begin end}
  GEMM: {text: GEMM t layer dest source window act bias bias_at weights taps begin end}
  WEIGHTS: {text: WEIGHTS t layer wt wt_first wt_last wt_in taps wt_taps}
"""
# name, kernel, strides, pads, dilations: h, w
CONVS = (("square", (3, 3), (1, 1), (1, 1), 1), ("tall", (5, 1), (1, 1), (2, 0), 1),
         ("flat", (1, 7), (1, 1), (0, 3), 1), ("apart", (3, 3), (1, 1), (2, 2), 2),
         ("half", (3, 3), (2, 2), (1, 1), 1), ("far", (7, 7), (1, 1), (3, 3), 1))
# network, bytes for weights, instructions that leave sums, at least
CASES = (("examples/tiny.prototxt", ONE, 20), ("examples/tiny.prototxt", 2 * ONE, 20),
         ("examples/micro/resnet8.prototxt", ONE, 150),
         ("examples/micro/resnet8.prototxt", 1024, 100),
         ("kernels", ONE, 100), ("kernels", 3 * ONE, 50), ("kernels", 5 * ONE, 30),
         ("kernels", 14 * ONE, 10))


def run(*args):
    return subprocess.run([AMPHORA, *args], capture_output=True, text=True, timeout=600)


def kernels():
    """Layers of 20 channels; the last convolution sees a single row, and an inner
    product of five pixels reads it."""
    text = 'name: "kernels"\ninput: "x"\ninput_dim: [1, 20, 5, 9]\n'
    top = "x"
    for name, kernel, stride, pad, dilation in CONVS + (("row",) + CONVS[0][1:],):
        if name == "row":
            text += (f'layer {{ name: "low" type: "Pooling" bottom: "{top}" top: "low" '
                     "pooling_param { pool: MAX kernel_h: 3 kernel_w: 1 stride_h: 3 "
                     "stride_w: 1 } }\n")
            top = "low"
        text += (f'layer {{ name: "{name}" type: "Convolution" bottom: "{top}" '
                 f'top: "{name}" convolution_param {{ num_output: 20 '
                 f"kernel_h: {kernel[0]} kernel_w: {kernel[1]} stride_h: {stride[0]} "
                 f"stride_w: {stride[1]} pad_h: {pad[0]} pad_w: {pad[1]} "
                 f"dilation: {dilation} }} }}\n")
        top = name
    for top, name in (("row", "whole"), ("whole", "last")):
        text += (f'layer {{ name: "{name}" type: "InnerProduct" bottom: "{top}" '
                 f'top: "{name}" inner_product_param {{ num_output: 40 }} }}\n')
    return text


def sets(weights):
    return ["--set", f"memories.wgt.size={weights}"]


def compiled(folder, network, weights, *more):
    done = run("compile", network, "-t", f"{folder}/taps.yaml", *sets(weights), "-o",
               folder, *more)
    assert done.returncode == 0, done.stderr
    return os.path.join(folder, os.path.basename(network).split(".")[0])


def records(name):
    return json.load(open(name + ".json"))["amphora"]["records"]


def verified(folder, network, weights, least):
    done = run("verify", network, "-t", f"{folder}/taps.yaml", *sets(weights))
    if done.returncode or "0 violations" not in done.stdout or (
            "no values" in done.stdout):
        return [f"{network} {weights}: {done.stdout}{done.stderr}"]
    wrong, seen = [], 0
    for r in records(compiled(folder, network, weights)):
        taps = [o for o in r["operands"] if o["role"] == "weights"]
        seen += "sums" in r and not r["sums"]["last"]
        if any(o["bytes"] > weights for o in taps):
            wrong.append(f"{network}: {r['instruction']} has {taps}")
    return wrong if seen >= least else wrong + [f"{network}: {seen} leave sums"]


def codes(folder):
    done = run("quantise", "examples/small/resnet-18.onnx", "--calibrate",
               "examples/small/samples.npy@0-3", "--mean", "128", "--scale",
               "0.0078125", "-t", f"{folder}/taps.yaml", "-o", folder)
    assert done.returncode == 0, done.stderr
    done = run("verify", f"{folder}/resnet-18.onnx", "-t", f"{folder}/taps.yaml",
               *sets(2 * ONE))
    good = done.returncode == 0 and "all equal bit for bit" in done.stdout
    return [] if good else [f"codes: {done.stdout}{done.stderr}"]


def damaged(folder):
    cmd = compiled(folder, "examples/micro/resnet8.prototxt", ONE) + ".cmd"
    text = open(cmd).read()
    lines = {}
    for row in ("GEMM", "WEIGHTS"):
        names = re.search(f"(?m)^# template {row} (.*)$", text)[1].split()
        lines[row] = [(line, names) for line in re.findall(f"(?m)^{row} .*$", text)]

    def pick(row, **values):
        return next((line, names) for line, names in lines[row] if all(
            line.split(" ")[names.index(n)] == v for n, v in values.items()))
    first, last = pick("GEMM", tap="0", kw="3"), pick("GEMM", tap="8", kw="3")
    middle = pick("GEMM", tap="3", tap_last="3", kw="3")
    load = pick("WEIGHTS", tap="3", tap_last="3")
    cases = ((first, {"tap": "1", "tap_last": "1"}, "sums begin with tap 1"),
             (last, {"tap_last": "9"}, "weights.tap.last is 9, not in 8..8"),
             (middle, {"tap": "2", "tap_last": "3"}, "neither rows of its kernel"),
             (middle, {"tap": "4", "tap_last": "4"}, "are not there"),
             (middle, {"end": "1"}, "sums end with tap 3 of 9"),
             (middle, {"begin": "1", "bias": "0"}, "sums begin with tap 3"),
             (load, {"tap": "4", "tap_last": "4"}, "hold something else"),
             (load, {"tap_last": "4"}, "hold something else"),
             (load, {"tap_last": "4", "wt_taps": "32"}, "more than there are"),
             (load, {"tap": "9", "tap_last": "9"}, "weights of taps 9 to 9"))
    return wrong_listings(run, cmd, ("-t", f"{folder}/taps.yaml", *sets(ONE)), [
        (line, with_tokens(line, names, **values), message)
        for (line, names), values, message in cases])


def described(folder):
    cases = ((TAPS, "window act bias bias_at weights taps",
              "window act bias bias_at weights", "GEMM does not tell `weights.tap.first`"),
             (TAPS, "wt_in taps wt_taps", "wt_in tap wt_taps",
              "WEIGHTS does not tell `weights.tap.last`"))
    wrong = wrong_machines(run, folder, cases)
    network = "examples/micro/resnet8.prototxt"
    for machine, bytes_ in (("vta-pynq", 9 * ONE), (f"{folder}/taps.yaml", ONE)):
        done = run("compile", network, "-t", machine, *sets(ONE - 16), "-o", folder)
        if done.returncode == 0 or f"take {bytes_:,} bytes of wgt" not in done.stderr:
            wrong.append(f"{machine}: {done.stderr}")
    return wrong


def computed(folder, network, shape):
    name = compiled(folder, network, 2 * ONE, "--materialise")
    last = "last.npy" if network.endswith("kernels.prototxt") else "probability.npy"
    return wrong_values(run, name, ("-t", f"{folder}/taps.yaml", *sets(2 * ONE)), shape,
                        last)


def main():
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        open(os.path.join(folder, "taps.yaml"), "w").write(TAPS)
        open(os.path.join(folder, "kernels.prototxt"), "w").write(kernels())
        for network, weights, least in CASES:
            path = network if "/" in network else f"{folder}/{network}.prototxt"
            wrong += verified(folder, path, weights, least)
        wrong += codes(folder) + damaged(folder) + described(folder)
        wrong += computed(folder, "examples/tiny.prototxt", (1, 3, 16, 16))
        wrong += computed(folder, f"{folder}/kernels.prototxt", (1, 20, 5, 9))
    for one in wrong:
        print(one)
    print(f"taps.py: {len(CASES)} networks, {len(wrong)} wrong")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
