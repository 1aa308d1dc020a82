#!/usr/bin/env python3
"""least.py - is it true what is said where nothing fits?

Networks on machines with 8 KiB of active memory: the size that "would do" must
do, and the one that "would not" must be refused with exit code 3; no step needs
more than would do, nor does its smallest stripe or slab (but for stripes where
line buffers take less, as it then says). With little
backing memory, what fits must fit with more active memory, too, and nobody hears
of the plans for which it was too little.
"""
import os
import re
import subprocess
import sys
import tempfile

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
MACHINES = ("ring-npu", "line-npu", "xdnn-v2-28", "xdnn-v3-96",
            os.path.join("bench", "rows.yaml"))
NETWORKS = ("densenet-cell", "vgg-e-stem", "squeezenet")
LONG = ("mobilenet-v2", "resnet50", "googlenet", "inception-v3", "vgg16",
        "yolov2-608")


# network, machine, KiB of backing memory, sizes of active memory
BACKING = (("densenet-cell", "xdnn-v2-28", 384, (96, 160, 256, 448)),
           ("densenet-cell", "ring-npu", 192, (8, 16, 24, 32, 96)),
           ("tiny", "xdnn-v2-28", 32, (6, 8, 16, 24, 32)))


def plan(network, machine, size, folder, *sets):
    return subprocess.run(
        [AMPHORA, "compile", f"examples/{network}.prototxt", "-t", machine,
         "--set", f"memories.am.size={size}", *sets, "-o", folder],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        check=False)


def size_of(text):
    return int(text.removesuffix("KiB")) * (1024 if "KiB" in text else 1)


def needs(said):
    """The most bytes of those that a step, or a part of it, is said to take."""
    found = re.findall(r"needs ([\d,]+) bytes|fits: .* takes ([\d,]+) bytes",
                       said)
    return max((int(a.replace(",", "") or b.replace(",", ""))
                for a, b in found), default=0)


def backing(folder):
    """Tables that are wrong."""
    bad = 0
    for name, machine, ddr, sizes in BACKING:
        runs = [plan(name, machine, f"{size}KiB", folder, "--set",
                     f"memories.ddr.size={ddr}KiB") for size in sizes]
        codes = [run.returncode for run in runs]
        loud = [run.stderr for run in runs
                if run.returncode == 0 and "error" in run.stderr]
        print(f"{name}, {machine}, {ddr} KiB behind {sizes}: {codes}", *loud)
        bad += bool(loud) or codes != sorted(codes, reverse=True)
    return bad


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
                if (said and "line buffers can" not in short.stderr
                        and needs(short.stderr) > size_of(said.group(1))):
                    print(f"{needs(short.stderr)} are needed, it says")
                    bad += 1
        bad += backing(folder)
    return 1 if bad else 0


sys.exit(main())
