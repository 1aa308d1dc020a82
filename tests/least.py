#!/usr/bin/env python3
"""least.py - is it true what is said where nothing fits?

Networks on machines with 8 KiB of active memory: the size that "would do" must
do, and the one that "would not" must be refused with exit code 3.
"""
import os
import re
import subprocess
import sys
import tempfile

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
MACHINES = ("ring-npu", "line-npu", "xdnn-v2-28", "xdnn-v3-96")
NETWORKS = ("densenet-cell", "vgg-e-stem", "squeezenet")
LONG = ("mobilenet-v2", "resnet50", "googlenet", "inception-v3", "vgg16",
        "yolov2-608")


def plan(network, machine, size, folder):
    return subprocess.run(
        [AMPHORA, "compile", f"examples/{network}.prototxt", "-t", machine,
         "--set", f"memories.am.size={size}", "-o", folder],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        check=False)


def main():
    bad = 0
    names = NETWORKS + (LONG if "--long" in sys.argv[1:] else ())
    with tempfile.TemporaryDirectory() as folder:
        for machine in MACHINES:
            for name in names:
                short = plan(name, machine, "8KiB", folder)
                said = re.search(r"size=(\S+) would do; (\S+) would not",
                                 short.stderr)
                codes = said and [plan(name, machine, size, folder).returncode
                                  for size in said.groups()]
                print(f"{name}, {machine}: {said and said.group(0)}: {codes}")
                bad += short.returncode != 3 or codes != [0, 3]
    return 1 if bad else 0


sys.exit(main())
