#!/usr/bin/env python3
"""weights.py - plans that count weights among what moves.

MobileNetV2 on ring-npu for the fewest bytes, counted by the simulator: bytes of
volumes and weights together never rise with active memory, are never more than
where weights stay and volumes alone count, and stay below what Vela says of its
own plan under the same cap (bench/vela.py, where every layer is verified, too).
On stage-npu, which loads weights beside volumes, all that moves is at most what
STAGED says.
"""
import json
import os
import subprocess
import sys
import tempfile

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
# KiB of active memory: DRAM bytes of Vela 3.10
VELA = {64: 15549614, 128: 12620290, 256: 6080194, 384: 5218690, 512: 5615170,
        1024: 5038694, 2048: 3633766}
STAGED = {64: 9200000, 128: 4600000, 256: 3650000, 384: 3630000}


def run(*args, machine="ring-npu"):
    done = subprocess.run([AMPHORA, *args, "-t", machine, "--json"],
                          stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def moved(cap, stay, folder):
    size = ["--set", f"memories.am.size={cap}KiB"]
    plan = run("compile", "examples/mobilenet-v2.prototxt", "-o", folder,
               "--set", f"tiling.weights_stay={stay}", "--objective", "bytes",
               *size)
    r = run("simulate", plan["listing"], "--memory-only", *size)
    if r["violations"]:
        sys.exit(f"{cap} KiB: {r['violation_list']}")
    return (r["ddr_read_bytes"] + r["ddr_written_bytes"]
            + r["weights_read_bytes"])


def staged(cap, most, folder):
    """Whether all that moves is at most that."""
    size = ["--set", f"memories.am.size={cap}KiB"]
    plan = run("compile", "examples/mobilenet-v2.prototxt", "-o", folder,
               "--objective", "bytes", *size, machine="stage-npu")
    r = run("simulate", plan["listing"], "--memory-only", *size,
            machine="stage-npu")
    ours = r["ddr_read_bytes"] + r["ddr_written_bytes"]
    print(f"{cap:5} KiB, staged: {ours:10,} bytes, at most {most:10,}")
    return not r["violations"] and ours <= most


def main():
    bad, before = 0, None
    with tempfile.TemporaryDirectory() as folder:
        for cap, vela in VELA.items():
            ours, alone = (moved(cap, c, folder) for c in ("false", "true"))
            print(f"{cap:5} KiB: {ours:10,} bytes, {alone:10,} if volumes "
                  f"alone count, Vela {vela:10,}")
            bad += ours > alone or ours >= vela
            bad += before is not None and ours > before
            before = ours
        for cap, most in STAGED.items():
            bad += not staged(cap, most, folder)
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
