#!/usr/bin/env python3
"""specials.py - numbers that are none, and those without end.

Every activation, maxima, minima and pools of NaN, infinities, both zeros and a
few others, by the reference, by the simulator and as native code: `verify` finds
no difference, and what is computed of NaN is NaN, but for what asks a question.

usage: specials.py [AMPHORA]
"""
import json
import math
import os
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from farm import checks  # noqa: E402

AMPHORA = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/amphora")
INF, NAN = math.inf, math.nan
NUMBERS = [NAN, INF, -INF, -0.0, 0.0, 1.5, -1.5, 100.0, -100.0, 1e-40, -1e-40,
           6.0, -6.0, 0.5, -0.5, 2.5]
SHAPE = [1, 1, 4, 4]
ANSWERS = ("not", "threshold")  # 1 or 0; 0 for what is not large enough
MACHINES = ("null", "ring-npu")  # one has engines for maxima


def acts():
    with open("base/acts.def", encoding="utf-8") as file:
        names = [line.split(",")[1].strip(" )\n") for line in file
                 if line.startswith("ACT(")]
    return [name for name in names if name not in ("none", "prelu")]


def node(op, name, reads, shape, **attributes):
    return {"op": op, "name": name, "reads": reads,
            "writes": [{"name": name, "shape": shape}],
            "attributes": attributes}


def network():
    """x holds all NUMBERS, y the same in another order."""
    nodes = [node("input", "x", [], SHAPE), node("input", "y", [], SHAPE)]
    nodes += [node("act", name, ["x"], SHAPE, act=name, alpha=0.25, lo=-1, hi=1)
              for name in acts()]
    nodes += [node("eltwise", kind + "imum", ["x", "y"], SHAPE, kind=kind)
              for kind in ("max", "min")]
    nodes += [node("eltwise", "turned_" + kind, ["y", "x"], SHAPE, kind=kind)
              for kind in ("max", "min")]
    nodes += [node("pool", "pool", ["x"], [1, 1, 3, 3], kind="max",
                   kernel=[2, 2])]
    nodes += [node("reduce", "reduced_" + kind, ["x"], [1, 1, 4, 1], kind=kind,
                   axes=8) for kind in ("max", "min")]
    return {"amphora": 1, "constants": [], "nodes": nodes,
            "outputs": [n["name"] for n in nodes[2:]]}


def write_npy(path, values):
    head = (f"{{'descr': '<f4', 'fortran_order': False, "
            f"'shape': {tuple(SHAPE)}, }}")
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) +
                   head.encode() + struct.pack(f"<{len(values)}f", *values))


def run(folder, *words):
    return subprocess.run([AMPHORA, *words, "--input", "x.npy", "--input",
                           "y.npy"], cwd=folder, capture_output=True, text=True,
                          check=False)


def verified(folder):
    for machine in MACHINES:
        for host in ("interpret", "native"):
            done = run(folder, "verify", "net.json", "-t", machine, "--host",
                       host)
            assert done.returncode == 0, (machine, host, done.stdout,
                                          done.stderr)


def kept(folder, names):
    """NaN stays, wherever it is one of the operands."""
    done = run(folder, "eval", "net.json", "-o", "values")
    assert done.returncode == 0, done.stderr
    for name in names:
        _, values = checks.npy(os.path.join(folder, "values", name + ".npy"))
        assert math.isnan(values[0]) != (name in ANSWERS), (name, values)
        if name.endswith("imum") or name.startswith("turned"):
            assert math.isnan(values[-1]), (name, values)


def main():
    made = network()
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "net.json"), "w",
                  encoding="ascii") as file:
            json.dump(made, file)
        write_npy(os.path.join(folder, "x.npy"), NUMBERS)
        write_npy(os.path.join(folder, "y.npy"), NUMBERS[::-1])
        verified(folder)
        kept(folder, made["outputs"])
    print(f"{len(made['outputs'])} layers of special numbers")


if __name__ == "__main__":
    main()
