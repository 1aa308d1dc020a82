#!/usr/bin/env python3
"""workspace.py - bytes that bundles need, beside what others need of the same
networks.

For each network, in floats, inputs and outputs aside: the workspace of a bundle
without overlaps, with them, and with inputs and outputs among the rest (cpu-
riscv64: plain rows, no padding); its bound, and what `pack` finds for the same
buffers. Others: what onnx2c's C has as variables (its buffers are unions), what
TVM's planners print (unfused layers), what TinyEngine's scheduler prints for the
quantised network, times four. `-` was not measured. Sources: for onnx2c and
TinyEngine, runs of theirs on the networks of MLPerf Tiny and tflite-micro, which
examples/micro follow; for TVM, the table that its users published of ResNet-18.

    bench/workspace.py [--markdown]
"""
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
AMPHORA = os.environ.get("AMPHORA", os.path.join(ROOT, "build/amphora"))

# network, onnx2c, TVM hill climb, TinyEngine in KiB of int8
NETWORKS = [
    ("micro/resnet8", 196608, None, 48.0),
    ("micro/ds-cnn", 64000, None, None),
    ("micro/person-detect", 294912, None, 54.0),
    ("micro/resnet18", None, 4014080, None),
    ("mobilenet-v2", 11600000, None, 1372.0),
]
OVERLAP = """extends: cpu-riscv64
machine: {name: overlap}
engines: {core: {overlap: [depthwise, pool]}}
"""


def run(*command):
    done = subprocess.run([AMPHORA, *command, "--json"], check=True,
                          stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def measure(network, folder):
    """Bytes of the bundles, and what `pack` finds for the last."""
    with open(f"{folder}/overlap.yaml", "w", encoding="utf-8") as file:
        file.write(OVERLAP)
    path = f"{ROOT}/examples/{network}.prototxt"
    row = []
    for machine, io in (("cpu-riscv64", "separate"),
                        (f"{folder}/overlap.yaml", "separate"),
                        (f"{folder}/overlap.yaml", "shared")):
        result = run("compile", path, "-t", machine, "--emit", "problem",
                     "--io", io, "-o", folder)
        bundle = result["bundle"]
        row.append(bundle["pools"]["workspace"])
    packed = run("pack", result["problem"])
    assert packed["height"] >= row[-1], "pack finds less than the bundle needs"
    return row + [bundle["bound"], packed["height"]]


def main():
    mark = "| " if "--markdown" in sys.argv else ""
    heads = ["network", "bundle", "overlaps", "shared", "bound", "pack",
             "onnx2c", "TVM", "TinyEngine"]
    print(mark + " | ".join(heads) if mark else
          f"{heads[0]:22}" + "".join(f"{h:>12}" for h in heads[1:]))
    if mark:
        print("|---" * len(heads) + "|")
    with tempfile.TemporaryDirectory() as folder:
        for network, onnx2c, tvm, tiny in NETWORKS:
            row = measure(network, folder)
            row += [onnx2c, tvm, tiny and int(tiny * 1024 * 4)]
            cells = [f"{v:,}" if v else "-" for v in row]
            print(mark + " | ".join([network] + cells) if mark else
                  f"{network:22}" + "".join(f"{c:>12}" for c in cells))


if __name__ == "__main__":
    main()
