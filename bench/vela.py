#!/usr/bin/env python3
"""vela.py - quantised networks under a cap on fast memory, beside Arm's Vela.

    python3 bench/vela.py

Vela: versions 3.10 and 5.1 for Ethos-U65-256, memory mode Dedicated_Sram, the
DRAM bytes of its own summary (an estimator): feature maps, and weights, which
it compresses (resnet8: 77,360 bytes to 74,592) and buffers in fast memory
(../shared/facts/peers.md 4.1). Ours: ring-npu with the same cap, counted by
running the listing, every layer verified by value: feature maps, and weights at
one byte each, as often as an instruction reads them - nothing is compressed,
and none stay in active memory from one instruction to the next. The machines
are not the same; the caps and the networks are. MobileNetV2 is our own
description of it.
`ours`: maps + weights with tiling.weights_move, so that plans are compared by
both. `maps alone`: feature maps without it, when they are all that counts, as
on machines that have their weights elsewhere; `least` is then the smallest cap
at which only input and output move.
"""
import json
import os
import subprocess
import sys
import tempfile

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
DATA = "../shared/data/tflite"
# network, file, {cap in KiB: DRAM bytes of Vela 3.10 and 5.1}
TABLE = (
    ("resnet8", f"{DATA}/pretrainedResnet_quant.tflite",
     {16: (323706, 391728), 24: (324602, 386928), 32: (226282, 291552),
      40: (185706, 271088), 48: (193882, 197360), 64: (83290, 140400)}),
    ("kws", f"{DATA}/kws_ref_model.tflite",
     {16: (105340, 167448), 24: (34940, 73584)}),
    ("person_detect", f"{DATA}/person_detect.tflite",
     {32: (324530, 496896), 40: (271282, 559360), 48: (339298, 543360),
      96: (244122, 399168)}),
    ("mobilenet_v2", "examples/mobilenet-v2.prototxt",
     {64: (15549614, 23374384), 128: (12620290, 20245040),
      256: (6080194, 10656624), 384: (5218690, 12620160),
      512: (5615170, 10318992), 1024: (5038694, 5436032),
      2048: (3633766, 4031104)}),
)


def verify(path, size, weights_move):
    done = subprocess.run(
        [AMPHORA, "verify", path, "-t", "ring-npu", "--json",
         "--set", f"memories.am.size={size}",
         "--set", f"tiling.weights_move={weights_move}"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        return None
    return json.loads(done.stdout)


def moved(path, size, folder):
    """Bytes beyond the compulsory ones of a plan; None if it does not fit."""
    done = subprocess.run(
        [AMPHORA, "compile", path, "-t", "ring-npu", "--json", "-o", folder,
         "--set", f"memories.am.size={size}"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        return None
    plan = json.loads(done.stdout)
    return plan["ddr_moved_bytes"] - plan["ddr_plan_compulsory_bytes"]


def least(path):
    low, high = 0, 1 << 22
    folder = tempfile.mkdtemp()
    while high - low > 16:
        middle = (low + high) // 32 * 16
        if moved(path, middle, folder) == 0:
            high = middle
        else:
            low = middle
    return high


def main():
    print("network        KiB  Vela 3.10   Vela 5.1       ours  "
          "    maps +   weights  maps alone")
    for name, path, caps in TABLE:
        if not os.path.exists(path):
            continue
        for cap, vela in caps.items():
            all_, alone = (verify(path, cap * 1024, move)
                           for move in ("true", "false"))
            if not all_ or not all_["ok"] or not alone["ok"]:
                print(f"{name:13} {cap:4}  does not fit, or is wrong")
                continue
            maps = all_["ddr_read_bytes"] + all_["ddr_written_bytes"]
            weights = all_["weights_read_bytes"]
            alone = alone["ddr_read_bytes"] + alone["ddr_written_bytes"]
            print(f"{name:13} {cap:4} {vela[0]:10,} {vela[1]:10,} "
                  f"{maps + weights:10,}  {maps:9,} {weights:9,}  "
                  f"{alone:10,}")
        print(f"{name:13} least {least(path):,} bytes")


sys.exit(main())
