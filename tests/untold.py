#!/usr/bin/env python3
"""untold.py - machines whose instructions lack a token.

Leaves out one token of a shipped machine at a time. Either `check` refuses the
machine, at the row's line, or what is compiled for it is right: what an
instruction cannot tell runs on the host. Without --long every EACH-th token.

usage: untold.py [--long] [AMPHORA]
"""
import os
import re
import subprocess
import sys
import tempfile

WORDS = [word for word in sys.argv[1:] if word != "--long"]
LONG = "--long" in sys.argv[1:]
AMPHORA = os.path.abspath(WORDS[0] if WORDS else "build/amphora")
TARGETS = os.path.join("hwspec", "targets")
MACHINES = ("ring-npu", "tile-npu", "template", "xdnn-v2-28", "xdnn-v3-96",
            "math-engine", "darius-32")
NETWORKS = ("tiny", "densenet-cell")
EACH, SMALL = 7, 6000
ODD = """input: "x" input_shape { dim: 1 dim: 4 dim: 16 dim: 10 }
layer { name: "a" type: "Convolution" bottom: "x" top: "a" convolution_param {
  num_output: 8 kernel_h: 3 kernel_w: 5 pad_h: 1 pad_w: 2 stride_h: 2 } }
layer { name: "b" type: "Convolution" bottom: "a" top: "b" convolution_param {
  num_output: 8 group: 8 kernel_size: 3 pad: 1 } }
layer { name: "e" type: "Eltwise" bottom: "a" bottom: "b" top: "e" }
layer { name: "u" type: "Deconvolution" bottom: "e" top: "u" convolution_param {
  num_output: 8 group: 8 kernel_size: 2 stride: 2 bias_term: false
  weight_filler { type: "constant" value: 1 } } }
layer { name: "p" type: "Pooling" bottom: "u" top: "p" pooling_param {
  pool: MAX kernel_h: 2 kernel_w: 3 stride_h: 1 stride_w: 2 } }
layer { name: "g" type: "Pooling" bottom: "p" top: "g" pooling_param {
  pool: AVE global_pooling: true } }
"""


def run(*words):
    return subprocess.run([AMPHORA, *words], capture_output=True, text=True,
                          check=False)


def without(body, name):
    """The rows, and the lists of tokens, without the token."""
    lines = []
    for line in body.split("\n"):
        if re.search(rf"field: {name}\b", line):
            continue
        if not re.match(rf"  {name}:", line) and "field: " not in line:
            line = re.sub(rf"(?<=[\[ ]){name}(?=[\],\s]|$),? ?", "", line)
            line = re.sub(r", *\]", "]", line)
        lines.append(line)
    return "\n".join(lines)


def variants():
    """(machine, token, text)"""
    for machine in MACHINES:
        with open(os.path.join(TARGETS, machine + ".yaml"),
                  encoding="utf-8") as file:
            text = file.read()
        at = text.index("\nfields:")
        head, body = text[:at], text[at:]
        fields = body[:body.index("\ninstructions:")]
        for name in re.findall(r"^  (\w+):(?! *\[)", fields, re.M):
            changed = without(body, name)
            if changed != body:
                yield machine, name, head + changed


def sizes(text):
    """Settings for all of active memory, and for little."""
    found = re.search(r"^  (am|fast):", text, re.M)
    return ([], ["--set", f"memories.{found[1]}.size={SMALL}"])


def judge(path, text, networks):
    """What is wrong with the machine, or None, and whether it was refused."""
    done = run("check", path)
    if done.returncode:
        line = re.search(r"\.yaml:\d+:\d+: error: ", done.stderr)
        return (None if done.returncode == 1 and line else done.stderr), True
    for network in networks:
        for setting in sizes(text):
            done = run("verify", network, "-t", path, "--host", "interpret",
                       *setting)
            if done.returncode not in (0, 3):
                return f"{network} {setting}: {done.stdout}{done.stderr}", False
    return None, False


def main():
    bad = refused = n = 0
    with tempfile.TemporaryDirectory() as folder:
        odd = os.path.join(folder, "odd.prototxt")
        with open(odd, "w", encoding="ascii") as file:
            file.write(ODD)
        networks = [odd] + [os.path.join("examples", name + ".prototxt")
                            for name in NETWORKS]
        for i, (machine, name, text) in enumerate(variants()):
            if i % EACH and not LONG:
                continue
            path = os.path.join(folder, machine + ".yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            wrong, was_refused = judge(path, text, networks)
            n, refused = n + 1, refused + was_refused
            if wrong:
                print(f"{machine} without {name}: {wrong[:400]}")
                bad += 1
    print(f"{n} machines, {refused} refused, {bad} wrong")
    return bad > 0 or refused == 0


if __name__ == "__main__":
    sys.exit(main())
