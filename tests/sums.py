#!/usr/bin/env python3
"""sums.py - sums that instructions leave for others where the result will lie.

vta-pynq with memories so small that weights and volumes come by blocks of input
channels: networks are verified by value, on real numbers and on codes. Listings
whose sums are not those of the channels before are refused: each token that says
where they begin and end is changed, a block of weights is that of other
channels, another instruction writes over them, biases are not there. Descriptions that cannot be have
messages; what `examples/run_listing.py` computes is what `simulate` computes.
"""
import os
import re
import subprocess
import sys
import tempfile

from listed import with_tokens, wrong_listings, wrong_machines

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
MACHINE = "hwspec/targets/vta-pynq.yaml"
SMALL = ("memories.inp.size=1KiB", "memories.wgt.size=2304",
         "memories.acc.size=16KiB")
# network, settings, instructions that leave sums, at least
CASES = (("tiny.prototxt", SMALL, 4), ("micro/resnet8.prototxt", SMALL, 40),
         ("micro/ds-cnn.prototxt", SMALL, 0),
         ("densenet-cell.prototxt", ("memories.inp.size=1KiB",
                                     "memories.bias.size=64"), 900),
         ("densenet-cell.prototxt", ("memories.wgt.size=4KiB",), 80))


def run(*args):
    return subprocess.run([AMPHORA, *args], capture_output=True, text=True,
                          timeout=600)


def settings(list_):
    return [word for one in list_ for word in ("--set", one)]


def rows(text):
    """Lines of GEMM with the numbers of their tokens by name."""
    names = re.search(r"(?m)^# template GEMM (.*)$", text)[1].split()
    for line in text.splitlines():
        words = line.split()
        if words and words[0] == "GEMM":
            yield line, dict(zip(names, words))


def compiled(folder, network, sets):
    done = run("compile", f"examples/{network}", "-t", MACHINE,
               *settings(sets), "-o", folder)
    assert done.returncode == 0, done.stderr
    name = os.path.basename(network).split(".")[0]
    return os.path.join(folder, name + ".cmd")


def verified(folder, network, sets, least):
    done = run("verify", f"examples/{network}", "-t", MACHINE, *settings(sets))
    text = open(compiled(folder, network, sets)).read()
    left = sum(row["end"] == "0" for _, row in rows(text))
    if done.returncode or "0 violations" not in done.stdout or (
            "no values" in done.stdout or left < least):
        return [f"{network}: {left} leave sums: {done.stdout}{done.stderr}"]
    return []


def quantised(folder):
    net = os.path.join(folder, "resnet-18.onnx")
    done = run("quantise", "examples/small/resnet-18.onnx", "--calibrate",
               "examples/small/samples.npy@0-3", "--mean", "128", "--scale",
               "0.0078125", "-t", MACHINE, "-o", folder)
    assert done.returncode == 0, done.stderr
    done = run("verify", net, "-t", MACHINE, *settings(SMALL))
    if done.returncode or "all equal bit for bit" not in done.stdout:
        return [f"codes: {done.stdout}{done.stderr}"]
    return []


def damaged(folder):
    """Each change of one line, and what is wrong then."""
    cmd = compiled(folder, "densenet-cell.prototxt", ("memories.wgt.size=4KiB",))
    text = open(cmd).read()
    names = re.search(r"(?m)^# template GEMM (.*)$", text)[1].split()
    goes = [(line, row) for line, row in rows(text) if row["begin"] == "0"]
    first = next(line for line, row in rows(text)
                 if row["begin"] == "1" and row["end"] == "0")
    last = next(line for line, row in goes if row["end"] == "1")
    second = goes[0][0]
    cases = ((first, with_tokens(first, names, begin="0"), "not there"),
             (first, with_tokens(first, names, end="1"), "sums end with"),
             (second, with_tokens(second, names, begin="1"), "sums begin"),
             (last, with_tokens(last, names, end="0"), "sums stay"),
             (second, with_tokens(second, names, wt_in="0"), "something else"),
             (second, with_tokens(second, names, dst="0x10"), "not there"),
             (second, with_tokens(second, names, dst_h="6"), "not there"),
             (second, first + "\n" + second, None),
             (second, "", "not there"))
    bias = re.search(r"(?m)^BIASES.*$", text)[0]
    cases += ((bias, "", "biases"),
              (bias, bias.replace(" 0x7c0 ", " 0x7c1 "), "biases"))
    return wrong_listings(run, cmd, ("-t", MACHINE, *settings(
        ("memories.wgt.size=4KiB",))), cases)


def unplaceable(folder):
    text = open(MACHINE).read()
    old = "operands: {in: [inp], weights: [wgt], bias: [bias], sums: [acc], out: [acc]}"
    assert old in text
    cases = ((old, old.replace("[wgt]", "[inp]"), "are loaded into `wgt`"),
             (old, old.replace("sums: [acc]", "sums: [inp]"),
              "leaves sums in `inp`, but no results"),
             (old, old.replace("sums: [acc], out: [acc]",
                               "sums: [inp], out: [inp]"),
              "sums take 4 bytes, an element of `inp` 1"),
             (old, old.replace("bias: [bias]", "bias: [wgt]"),
              "biases of engine `gemm` are loaded into `bias`"),
             ("    for: load_bias\n", "    for: softmax\n",
              "no instruction is for `load_bias`"),
             ("act bias bias_at weights", "act bias weights",
              "does not tell `bias.addr`"),
             (" weights begin end", " weights begin", "does not tell `sums.last`"),
             ("wt_last wt_in wt_taps", "wt_last wt_taps",
              "does not tell `weights.in`"))
    return wrong_machines(run, folder, [(text, *case) for case in cases])


def main():
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        for network, sets, least in CASES:
            wrong += verified(folder, network, sets, least)
        wrong += quantised(folder) + damaged(folder) + unplaceable(folder)
    for one in wrong:
        print(one)
    print(f"sums.py: {len(CASES) + 1} networks, {len(wrong)} wrong")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
