#!/usr/bin/env python3
"""rings.py - the least active memory in which a network moves nothing but its
input and output, on a machine whose operands may lie in rings of rows.

The figures on ring-npu are those of rolling line buffers without recompute: the
sums of k rows of each layer's volume, residuals as delayed rows, and whole
volumes between groups. line-npu, with columns within these, runs VGG-E's first
five convolutions in what Alwani et al. (MICRO 2016) need, 362 KB: lines of 349,440
bytes and narrow tiles. With 16 bytes less something is moved or does not fit.
Some are also verified by value; --long: all of the least. An image that is three
times as wide as high is rolled along its columns, too.
"""
import json
import os
import subprocess
import sys
import tempfile

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
LEAST = (("mobilenet-v2", "ring-npu", 145376), ("vgg16", "ring-npu", 503776),
         ("vgg-e-stem", "line-npu", 361872))
# between sizes far apart in bytes that move: network, machine, bytes, most
BETWEEN = (("squeezenet", "line-npu", 831120, 797964),)
# None of these sizes is refused: smaller ones are enough.
PERSON = ("micro/person-detect", "line-npu", range(11228, 11268, 8))
WIDE_SIZES = range(74984, 75012, 8)
# network, machine, bytes
VERIFIED = (("mobilenet-v2", "ring-npu", 145376),
            ("vgg-e-stem", "line-npu", 480000),
            ("googlenet", "line-npu", 262144),
            ("densenet-cell", "line-npu", 32768))
LONG = (("vgg-e-stem", "line-npu", 361872),
        ("mobilenet-v2", "line-npu", 262144),
        ("resnet50", "line-npu", 430080))


def wide(folder):
    """A name for seven convolutions and two pools over 40 x 120 pixels."""
    lines = ["input: 'x' input_shape { dim: 1 dim: 3 dim: 40 dim: 120 }"]
    last = "x"
    for name, kind in (("c1", 64), ("c2", 64), ("p1", 0), ("c3", 128),
                       ("c4", 128), ("p2", 0), ("c5", 64), ("c6", 64),
                       ("sum", "c5"), ("c7", 32)):
        wires = f"name: '{name}' top: '{name}' bottom: '{last}'"
        if isinstance(kind, str):
            lines.append(f"layer {{ type: 'Eltwise' {wires} "
                         f"bottom: '{kind}' }}")
        elif kind:
            lines.append(f"layer {{ type: 'Convolution' {wires} "
                         "convolution_param { kernel_size: 3 pad: 1 "
                         f"num_output: {kind} }} }}")
        else:
            lines.append(f"layer {{ type: 'Pooling' {wires} pooling_param {{ "
                         "pool: MAX kernel_size: 2 stride: 2 } }")
        last = name
    path = os.path.join(folder, "wide")
    with open(path + ".prototxt", "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
    return path


def run(command, network, machine, size, *more):
    done = subprocess.run(
        [AMPHORA, command, os.path.join("examples", network + ".prototxt"),
         "-t", machine, "--json", "--set", f"memories.am.size={size}",
         "--objective", "bytes", "--set", "tiling.weights_stay=true", *more],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


def moved(network, machine, size, folder):
    plan = run("compile", network, machine, size, "-o", folder)
    return plan and (plan["ddr_moved_bytes"]
                     - plan["ddr_bound_bytes"])


def main():
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for network, machine, least in LEAST:
            there, below = (moved(network, machine, s, folder)
                            for s in (least, least - 16))
            print(f"{network}, {machine}: {least} bytes move {there} more than "
                  f"the compulsory ones, {least - 16} bytes {below}")
            bad += there != 0 or below == 0
        for network, machine, size, most in BETWEEN:
            plan = run("compile", network, machine, size, "-o", folder)
            print(f"{network}, {machine}: {size} bytes move "
                  f"{plan['ddr_moved_bytes']}, {most} at most")
            bad += plan["ddr_moved_bytes"] > most
        for network, machine, sizes in (PERSON, (wide(folder), "line-npu",
                                                 WIDE_SIZES)):
            for size in sizes:
                if not run("compile", network, machine, size, "-o", folder):
                    print(f"{network}, {machine}: {size} bytes are refused")
                    bad += 1
        for network, machine, size in (
                VERIFIED + ((wide(folder), "line-npu", 80000),) +
                (LONG if "--long" in sys.argv[1:] else ())):
            result = run("verify", network, machine, size)
            ok = result and result["ok"] and result["am_peak_bytes"] <= size
            print(f"{os.path.basename(network)}, {machine}, {size} bytes: "
                  f"{'verified' if ok else 'wrong'}")
            bad += not ok
    return 1 if bad else 0


sys.exit(main())
