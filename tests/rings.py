#!/usr/bin/env python3
"""rings.py - the least active memory in which a network moves nothing but its
input and output, on a machine whose operands may lie in rings of rows.

The figures are those of rolling line buffers without recompute: the sums of
k rows of each layer's volume, residuals as delayed rows, and whole volumes
between groups. With 16 bytes less something is moved or does not fit.
mobilenet-v2 is also verified by value.
"""
import json
import os
import subprocess
import sys
import tempfile

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
LEAST = {"mobilenet-v2": 145376, "vgg16": 503776}


def run(command, network, size, *more):
    done = subprocess.run(
        [AMPHORA, command, f"examples/{network}.prototxt", "-t", "ring-npu",
         "--json", "--set", f"memories.am.size={size}", *more],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


def moved(network, size, folder):
    plan = run("compile", network, size, "-o", folder)
    return plan and (plan["ddr_moved_bytes"]
                     - plan["ddr_plan_compulsory_bytes"])


def main():
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for network, least in LEAST.items():
            there, below = (moved(network, s, folder)
                            for s in (least, least - 16))
            print(f"{network}: {least} bytes move {there} more than the "
                  f"compulsory ones, {least - 16} bytes {below}")
            bad += there != 0 or below == 0
    network = "mobilenet-v2"
    result = run("verify", network, LEAST[network])
    ok = result and result["ok"] and result["am_peak_bytes"] <= LEAST[network]
    print(f"{network}: {'verified' if ok else 'wrong'}")
    return 1 if bad or not ok else 0


sys.exit(main())
