#!/usr/bin/env python3
"""stages.py - from prototxt to listing, milliseconds by stage.

Runs `amphora compile --json` a number of times on each row and prints the
median of every stage. These machines are noisy: compare rows of one run.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
ROWS = [("examples/googlenet.prototxt", "xdnn-v2-28"),
        ("examples/googlenet.prototxt", "xdnn-v3-96"),
        ("examples/resnet50.prototxt", "xdnn-v2-28"),
        ("examples/resnet50.prototxt", "xdnn-v3-96"),
        ("examples/yolov2-608.prototxt", "xdnn-v2-56"),
        ("examples/yolov2-608.prototxt", "xdnn-v3-96")]
STAGES = ["hwspec", "read", "passes", "schedule", "alloc", "codegen", "write"]


def measure(network, machine, times, folder):
    runs = []
    for _ in range(times):
        done = subprocess.run([AMPHORA, "compile", network, "-t", machine,
                               "-o", folder, "--json"], check=True,
                              stdout=subprocess.PIPE)
        runs.append(json.loads(done.stdout)["ms"])
    return [statistics.median(r.get(s, 0) for r in runs) for s in STAGES]


def main():
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 11
    print(f"{'network':24} {'machine':12} "
          + " ".join(f"{s:>8}" for s in STAGES) + f" {'all':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for network, machine in ROWS:
            ms = measure(network, machine, times, folder)
            print(f"{os.path.basename(network)[:24]:24} {machine:12} "
                  + " ".join(f"{m:8.2f}" for m in ms) + f" {sum(ms):8.2f}")


if __name__ == "__main__":
    main()
