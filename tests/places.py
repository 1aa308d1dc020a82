#!/usr/bin/env python3
"""places.py - a machine whose operands have their own memories.

vta-pynq reads inputs from `inp`, weights from `wgt`, and writes to `acc`, where
its vector unit works. Networks are verified by value; in the listing every
operand lies where its engine takes it, as read here from the text and the
description alone; and a listing that says otherwise is refused. The same machine
with channels innermost, and rows that name the volume that an operand is part
of, writes the members of concats in place; a listing that names another part is
refused.
"""
import os
import re
import subprocess
import sys
import tempfile

from listed import wrong_machines

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
MACHINE = "hwspec/targets/vta-pynq.yaml"
# network, settings
CASES = (("tiny", ()), ("micro/resnet8", ()), ("micro/ds-cnn", ()),
         ("squeezenet", ()),
         ("mobilenet-v2", ("memories.acc.size=512KiB",)))
IDS = {"inp": "2", "acc": "3"}
NVDLA = "hwspec/targets/nvdla-small.yaml"
# Of nvdla-small: convolutions read `cbuf`; the units behind them have a buffer
# each, from which all stores come.
NVDLA_CASES = ("tiny", "micro/resnet8", "micro/ds-cnn", "squeezenet")
NVDLA_READS, NVDLA_MAKES = {"2", "3", "7"}, {"3", "7"}
ROOM = ("memories.acc.size=4MiB", "memories.inp.size=1MiB",
        "memories.wgt.size=1MiB")
# of the strided machine: network, settings, concats that are none in place
STRIDED = (("tiny", (), 0), ("densenet-cell", ROOM, 0),
           ("densenet-cell", ("memories.inp.size=128KiB",
                              "memories.acc.size=512KiB"), 0),
           ("squeezenet", ROOM, 0))


def run(*args):
    return subprocess.run([AMPHORA, *args], capture_output=True, text=True,
                          timeout=600)


def settings(list_):
    return [word for one in list_ for word in ("--set", one)]


def network(name):
    for ext in (".prototxt", ".json"):
        if os.path.exists(f"examples/{name}{ext}"):
            return f"examples/{name}{ext}"
    raise SystemExit(f"places.py: no network {name}")


def verified(name, sets, machine=MACHINE):
    done = run("verify", network(name), "-t", machine, *settings(sets))
    if done.returncode or "0 violations" not in done.stdout:
        return [f"{name}: {done.stdout}{done.stderr}"]
    return []


def tokens(listing):
    """Instructions as maps, by the names of their templates."""
    names = {}
    for line in listing.splitlines():
        words = line.split()
        if words[:2] == ["#", "template"]:
            names[words[2]] = words[3:]
        elif words and words[0] in names:
            yield words, names[words[0]]


def compile_to(folder, name, sets, machine=MACHINE):
    done = run("compile", network(name), "-t", machine, *settings(sets), "-o",
               folder)
    assert done.returncode == 0, done.stderr
    base = os.path.basename(name)
    return os.path.join(folder, base + ".cmd"), os.path.join(
        folder, base + ".json")


def misplaced(cmd):
    """Loads whose target no layer of that memory could read: of rows that say
    their memory, the ids are those of `inp` and `acc`."""
    wrong, seen = [], set()
    for words, names in tokens(open(cmd).read()):
        row = dict(zip(names, words))
        if words[0] == "LOAD":
            seen.add(row["to"])
            if row["to"] not in IDS.values():
                wrong.append(" ".join(words))
        if words[0] == "STORE" and row["from"] != IDS["acc"]:
            wrong.append(" ".join(words))
    if IDS["inp"] not in seen:
        wrong.append(f"{cmd}: nothing is loaded into inp")
    return wrong


def misplaced_nvdla(folder):
    """The same of nvdla-small: what each layer reads was loaded where its unit
    reads, and what is stored was made there."""
    wrong = []
    for name in NVDLA_CASES[:3]:
        cmd, _ = compile_to(folder, name, (), NVDLA)
        for words, names in tokens(open(cmd).read()):
            row = dict(zip(names, words))
            if words[0] == "LOAD" and row["to"] not in NVDLA_READS:
                wrong.append(" ".join(words))
            if words[0] == "STORE" and row["from"] not in NVDLA_MAKES:
                wrong.append(" ".join(words))
        text = open(cmd).read()
        bad = re.sub(r"(?m)^(LOAD \S+ \S+) 2 ", r"\1 7 ", text, count=1)
        open(cmd, "w").write(bad)
        done = run("simulate", cmd, "-t", NVDLA)
        if bad == text or done.returncode == 0:
            wrong.append(f"{name}: a load into `plane` passes for one into cbuf")
    return wrong


def damaged(folder):
    """A load that puts the input where no convolution reads it."""
    cmd, _ = compile_to(folder, "tiny", ())
    text = open(cmd).read()
    bad = re.sub(r"(?m)^(LOAD \S+ \S+) 2 ", r"\1 3 ", text, count=1)
    assert bad != text
    open(cmd, "w").write(bad)
    done = run("simulate", cmd, "-t", MACHINE)
    if done.returncode == 0 or "violation" not in done.stdout + done.stderr:
        return [f"a load into acc passes: {done.stdout}{done.stderr}"]
    return []


def unplaceable(folder):
    """Descriptions that cannot be: each with its message."""
    text = open(MACHINE).read()
    old = "operands: {in: [inp], weights: [wgt], bias: [bias], sums: [acc], out: [acc]}"
    cases = ((old, old.replace("in: [inp]", "in: [wgt]"),
              "needs an active memory for its operand `in`"),
             (old, "operands: {tables: [inp]}", "unknown key `tables`"),
             ("  weights_from: dram\n", "", "nothing loads `wgt`"),
             ("weights_from: dram", "weights_from: wgt",
              "`wgt` is of role weights"))
    return wrong_machines(run, folder, [(text, *case) for case in cases])


def strided(folder):
    """A description with channels innermost, whose rows tell parts."""
    text = open(MACHINE).read()
    text = text.replace("[c/16, h, w, c%16]", "[h, w, c/16, c%16]")
    text = text.replace("    unroll:", "    part_align: 16\n    unroll:")
    parts = ""
    for token, operand in (("s", "in"), ("q", "in2"), ("d", "out")):
        parts += (f"  {token}p: {operand}.part.on\n"
                  f"  {token}p_from: {operand}.part.start\n"
                  f"  {token}p_of: {operand}.part.c\n")
    text = text.replace("  source: [", parts + "  source: [sp, sp_from, sp_of, ")
    text = text.replace("  dest: [", "  dest: [dp, dp_from, dp_of, ")
    text = text.replace("src2 src2_row", "src2 src2_row qp qp_from qp_of")
    for move in ("LOAD", "STORE"):
        text = text.replace(f"{move} t from to",
                            f"{move} t from to dp dp_from dp_of sp sp_from sp_of")
    text = text.replace("CAT t layer", "CAT t layer dp dp_from dp_of")
    path = os.path.join(folder, "strided.yaml")
    open(path, "w").write(text)
    return path


def in_place(folder):
    wrong, machine = [], strided(folder)
    for name, sets, others in STRIDED:
        done = run("verify", network(name), "-t", machine, *settings(sets))
        hosts = len(re.findall(r"\(concat\)", done.stdout))
        if done.returncode or "0 violations" not in done.stdout or (
                hosts != others):
            wrong.append(f"{name}, strided: {done.stdout}{done.stderr}")
    done = run("compile", network("densenet-cell"), "-t", machine,
               *settings(ROOM), "-o", folder)
    assert done.returncode == 0, done.stderr
    cmd = os.path.join(folder, "densenet-cell.cmd")
    text = open(cmd).read()
    bad = text.replace(" 1 64 192 ", " 1 80 192 ", 1)
    assert bad != text
    open(cmd, "w").write(bad)
    done = run("simulate", cmd, "-t", machine)
    if done.returncode == 0:
        wrong.append("a part that begins elsewhere passes")
    return wrong


def main():
    wrong = []
    for name, sets in CASES:
        wrong += verified(name, sets)
    for name in NVDLA_CASES:
        wrong += verified(name, (), NVDLA)
    with tempfile.TemporaryDirectory() as folder:
        for name, sets in CASES[:3]:
            wrong += misplaced(compile_to(folder, name, sets)[0])
        wrong += misplaced_nvdla(folder)
        wrong += damaged(folder) + unplaceable(folder) + in_place(folder)
    for one in wrong:
        print(one)
    print(f"places.py: {len(CASES) + len(STRIDED)} networks on three memories, "
          f"{len(NVDLA_CASES)} on four, "
          f"{len(wrong)} wrong")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
