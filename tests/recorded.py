#!/usr/bin/env python3
"""recorded.py - our listings against those that the field's compiler wrote.

GoogLeNet and ResNet-50 on V2-28: the same instructions with the same fields,
addresses and the order of independent instructions aside, in the same 4 MiB.
The recorded GoogLeNet is the variant without LRN layers, so ours is compiled
without them; the layers of the host behind the last pool are ours alone and
are not compared. Skips where ../shared/data is absent.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
DATA = "../shared/data"
PAIRS = [("bvlc_googlenet_deploy.prototxt", "googlenet_v1_28.json"),
         ("ResNet-50-deploy.prototxt", "resnet50_28.json")]
ADDRESSES = {"inaddr", "outaddr", "inaddrA", "inaddrB", "uram_dest",
             "uram_src", "start", "end"}


def recorded(path):
    with open(path, encoding="utf-8") as file:
        network = json.load(file)["network"]
    return [layer["xdnn_instr"] for layer in network]


def without_lrn(text):
    """The prototxt with each LRN layer cut out and its readers joined."""
    blocks = re.split(r"(?m)^(?=layer\b)", text)
    renamed = {}
    for block in blocks:
        if re.search(r'type:\s*"LRN"', block):
            top = re.search(r'top:\s*"(.*?)"', block).group(1)
            renamed[top] = re.search(r'bottom:\s*"(.*?)"', block).group(1)
    kept = [b for b in blocks if not re.search(r'type:\s*"LRN"', b)]
    return re.sub(r'bottom:\s*"(.*?)"',
                  lambda m: f'bottom: "{renamed.get(m[1], m[1])}"',
                  "".join(kept))


def ours(path, folder):
    with open(path, encoding="utf-8") as file:
        text = without_lrn(file.read())
    with open(f"{folder}/net.prototxt", "w", encoding="utf-8") as file:
        file.write(text)
    subprocess.run([AMPHORA, "compile", f"{folder}/net.prototxt", "-t",
                    "xdnn-v2-28", "-o", folder], check=True,
                   stdout=subprocess.DEVNULL)
    with open(f"{folder}/net.cmd", encoding="utf-8") as file:
        return file.read().splitlines()


def normal(line):
    """Tokens without id and addresses; None for lines to pass over."""
    commented = line.startswith("#")
    tokens = line.lstrip("# ").split()
    if len(tokens) < 3 or not tokens[0].isdigit():
        return None
    if commented and tokens[1] != "XNConcat":
        return None
    tokens = tokens[1:] if commented else line.split("#")[0].split()[1:]
    if tokens[0] in ("XNGather", "XNScatter"):
        return tuple([tokens[0]] + tokens[3:])
    return tuple("ADDR" if t.startswith("0x") else t for t in tokens)


def main():
    if not os.path.isdir(DATA):
        print("skipped: ../shared/data is absent")
        return 0
    bad = 0
    for network, listing in PAIRS:
        with tempfile.TemporaryDirectory() as folder:
            mine = ours(f"{DATA}/caffe/{network}", folder)
        theirs = recorded(f"{DATA}/listings/{listing}")
        a = sorted(filter(None, map(normal, mine)))
        b = sorted(filter(None, map(normal, theirs)))
        missing = [x for x in b if x not in a]
        extra = [x for x in a if x not in b]
        print(f"{network}: {len(a)} of ours, {len(b)} recorded, "
              f"{len(missing)} missing, {len(extra)} extra")
        for x in missing:
            print("  missing", " ".join(x))
        for x in extra:
            print("  extra  ", " ".join(x))
        bad += bool(missing or extra or len(a) != len(b))
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
