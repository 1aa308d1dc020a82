#!/usr/bin/env python3
"""workspace.py - bytes that bundles need, beside what others need of the same
networks.

For each network, inputs and outputs aside: the workspace of a bundle without
overlaps; with rows over rows (depthwise, pool); with all overlaps, its bound,
and what `pack` finds for the same buffers; and all overlaps with inputs and
outputs among the rest. Machine: cpu-riscv64, whose rows are plain and unpadded.

Others: what onnx2c's C has as variables (its buffers are unions), what TVM's
hill climb prints (layers unfused), TFLM's arena, what TinyEngine's scheduler
prints (its im2col buffers not counted); `-` was not measured, `fails` cannot be.
Sources: for TVM, the table that a user published of ResNet-18; for the others,
runs of theirs on the networks of MLPerf Tiny and tflite-micro, which are read
here where ../shared has them, and which examples/micro follow.

    bench/workspace.py [--markdown]
"""
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
AMPHORA = os.environ.get("AMPHORA", os.path.join(ROOT, "build/amphora"))

DATA = os.path.join(ROOT, "../shared/data/tflite")
# network, onnx2c, TVM hill climb, TFLM and TinyEngine
NETWORKS = [
    ("micro/resnet8", 196608, None, None, None),
    ("micro/ds-cnn", 64000, None, None, None),
    ("micro/person-detect", 294912, None, None, None),
    ("micro/resnet18", None, 4014080, None, None),
    ("mobilenet-v2", 11600000, None, None, None),
    ("pretrainedResnet_quant", None, None, 49152, 49152),
    ("kws_ref_model", None, None, 16000, "fails"),
    ("person_detect", None, None, 55296, 55296),
]
MACHINE = """extends: cpu-riscv64
machine: {name: overlap}
engines: {core: {overlap: [%s]}}
"""
ROWS = "depthwise, pool"
ALL = ROWS + ", pointwise, sum"


def run(*command):
    done = subprocess.run([AMPHORA, *command, "--json"], check=True,
                          stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def path_of(network):
    codes = f"{DATA}/{network}.tflite"
    return codes if "/" not in network and os.path.exists(codes) else \
        f"{ROOT}/examples/{network}.prototxt"


def measure(network, folder):
    """Bytes of the bundles, and what `pack` finds for the third."""
    path, row = path_of(network), []
    for overlap, io in (("", "separate"), (ROWS, "separate"),
                        (ALL, "separate"), (ALL, "shared")):
        with open(f"{folder}/machine.yaml", "w", encoding="utf-8") as file:
            file.write(MACHINE % overlap)
        result = run("compile", path, "-t", f"{folder}/machine.yaml", "--emit",
                     "problem", "--io", io, "-o", folder)
        row.append(result["bundle"]["pools"]["workspace"])
        if overlap == ALL and io == "separate":
            packed = run("pack", result["problem"])["height"]
            assert packed >= row[-1], f"{network}: pack finds {packed}"
            row += [result["bundle"]["bound"], packed]
    return row


def main():
    mark = "| " if "--markdown" in sys.argv else ""
    heads = ["network", "plain", "rows", "all", "bound", "pack", "shared",
             "onnx2c", "TVM", "TFLM", "TinyEngine"]
    end = " |" if mark else ""
    print(mark + " | ".join(heads) + end if mark else
          f"{heads[0]:23}" + "".join(f"{h:>11}" for h in heads[1:]))
    if mark:
        print("|---" * len(heads) + "|")
    with tempfile.TemporaryDirectory() as folder:
        for network, *others in NETWORKS:
            if not os.path.exists(path_of(network)):
                continue
            cells = [f"{v:,}" if isinstance(v, int) else v or "-"
                     for v in measure(network, folder) + others]
            print(mark + " | ".join([network] + cells) + end if mark else
                  f"{network:23}" + "".join(f"{c:>11}" for c in cells))


if __name__ == "__main__":
    main()
