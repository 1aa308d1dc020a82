#!/usr/bin/env python3
"""vela.py - quantised networks under a cap on fast memory, beside Arm's Vela.

    python3 bench/vela.py [--count]

Vela: versions 3.10 and 5.1 for Ethos-U65-256, memory mode Dedicated_Sram, the
DRAM bytes of its own summary (an estimator): feature maps, and weights, which
it compresses (resnet8: 77,360 bytes to 74,592) and buffers in fast memory
(../shared/facts/peers.md 4.1). Ours: ring-npu with the same cap, counted by
running the listing, every layer verified by value: feature maps, and weights at
one byte each, as often as an instruction reads them - nothing is compressed,
and none stay in active memory from one instruction to the next. The machines
are not the same; the caps and the networks are. MobileNetV2 is our own
description of it.
`ours`: maps + weights without tiling.weights_stay, so that plans are compared by
both. `maps alone`: feature maps without it, when they are all that counts, as
on machines that have their weights elsewhere; `least` is then the smallest cap
at which only input and output move.
"""
import argparse
import os
import sys
import tempfile

import tool

DATA = os.path.join(tool.ROOT, "..", "shared", "data", "tflite")
MACHINE = "ring-npu"
# network, file, {cap in KiB: DRAM bytes of Vela 3.10 and 5.1}
TABLE = (
    ("resnet8", os.path.join(DATA, "pretrainedResnet_quant.tflite"),
     {16: (323706, 391728), 24: (324602, 386928), 32: (226282, 291552),
      40: (185706, 271088), 48: (193882, 197360), 64: (83290, 140400)}),
    ("kws", os.path.join(DATA, "kws_ref_model.tflite"),
     {16: (105340, 167448), 24: (34940, 73584)}),
    ("person_detect", os.path.join(DATA, "person_detect.tflite"),
     {32: (324530, 496896), 40: (271282, 559360), 48: (339298, 543360),
      96: (244122, 399168)}),
    ("mobilenet_v2", tool.example("mobilenet-v2"),
     {64: (15549614, 23374384), 128: (12620290, 20245040),
      256: (6080194, 10656624), 384: (5218690, 12620160),
      512: (5615170, 10318992), 1024: (5038694, 5436032),
      2048: (3633766, 4031104)}),
)


# KiB of fast memory at least, whole networks in it (../shared/facts/peers.md 3)
LEAST = {"resnet8": 35.00, "kws": 15.62, "person_detect": 30.00,
         "mobilenet_v2": 353.50}
STEP = 16  # bytes, to which the least memory is found


def bytes_over_ddr(path, size, weights_stay, folder, values):
    """Of feature maps, of weights; None where it does not fit."""
    sets = [tool.am(size), f"tiling.weights_stay={weights_stay}"]
    run = (tool.verified(path, MACHINE, *sets, objective="bytes") if values
           else tool.counted(path, MACHINE, folder, *sets, objective="bytes"))
    return run and (run["ddr_read_bytes"] + run["ddr_written_bytes"],
                    run["weights_read_bytes"])


def least(path, folder, good, *sets):
    """The least active memory, to STEP bytes, whose plan is good; its run."""
    low, high = 0, 1 << 22
    while high - low > STEP:
        middle = (low + high) // (2 * STEP) * STEP
        plan = tool.compiled(path, MACHINE, folder, tool.am(middle), *sets,
                             objective="bytes")
        if plan and good(plan):
            high = middle
        else:
            low = middle
    return high, tool.counted(path, MACHINE, folder, tool.am(high), *sets,
                              objective="bytes")


def nothing_extra(plan):
    return plan["ddr_moved_bytes"] == plan["ddr_bound_bytes"]


def rows(name, path, caps, folder, values):
    """Prints those of a network; (cap, Vela's least, ours or None)."""
    for cap, vela in caps.items():
        both, alone = (bytes_over_ddr(path, cap * 1024, move, folder, values)
                       for move in ("false", "true"))
        if not both or not alone:
            print(f"{name:13} {cap:4}  does not fit")
            yield cap, min(vela), None
            continue
        print(f"{name:13} {cap:4} {vela[0]:10,} {vela[1]:10,} "
              f"{sum(both):10,}  {both[0]:9,} {both[1]:9,}  "
              f"{alone[0]:10,}", flush=True)
        yield cap, min(vela), sum(both)


def heading():
    print("network        KiB  Vela 3.10   Vela 5.1       ours  "
          "    maps +   weights  maps alone")


def main():
    ask = argparse.ArgumentParser()
    ask.add_argument("--count", action="store_true", help="compare no values")
    count = ask.parse_args().count
    heading()
    with tempfile.TemporaryDirectory() as folder:
        for name, path, caps in TABLE:
            if os.path.exists(path):
                for _ in rows(name, path, caps, folder, not count):
                    pass
                size, run = least(path, folder, nothing_extra)
                print(f"{name:13} least {size:,} bytes, Vela "
                      f"{LEAST[name] * 1024:,.0f}; weights read "
                      f"{run['weights_read_bytes']:,}")


if __name__ == "__main__":
    sys.exit(main())
