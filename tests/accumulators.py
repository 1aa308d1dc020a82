#!/usr/bin/env python3
"""accumulators.py - sums in a memory of their own, on two written machines.

`outer` has 4 x 64 rows of 16 accumulators in two halves that instructions name
(`sums.addr`), and operands in rings of rows; `inner` an array of int8 that holds
4,096 sums inside. Networks are verified by value with memories so small that
layers pass by output channels, rows, columns and input channels, and each operand
of the listings is looked up by hand: in which memory, within it, in which half.
Changed listings are refused, as are descriptions that cannot be.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

from listed import with_tokens, wrong_listings, wrong_machines, wrong_values

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
OUTER = """extends: vta-pynq
machine: {name: outer-sums}
memories:
  acc: {layout: blocks, unit: 16, size: 64KiB}
  outer: {role: sums, size: 16KiB, unit: 64, buffers: 2, id: 9, layout: sums}
engines:
  gemm: {operands: {in: [acc], out: [acc], sums: [outer]}}
  alu: {operands: {in: [acc], out: [acc]}}
tiling: {rings: true}
fields:
  src_ring: in.ring
  src2_ring: in2.ring
  dst_ring: out.ring
  at: {from: sums.addr, as: hex}
  source: [src, src_c, src_h, src_w, src_row, src_ring]
  dest: [dst, dst_c, dst_h, dst_w, dst_row, dst_ring]
instructions:
  GEMM: {text: GEMM t layer dest source window act bias bias_at weights begin end at}
  DENSE: {text: DENSE t layer dest source act bias bias_at weights begin end at}
  ALU: {text: ALU t layer sum act dest source src2 src2_row src2_ring}
  LOAD: {text: LOAD t from to dst dst_ring src src_c src_h src_w first last left right}
  STORE: {text: STORE t from to dst src src_ring src_c src_h src_w first last left right}
"""
INNER = """extends: vta-pynq
machine: {name: inner-sums}
memories:
  acc: {layout: blocks, unit: 16, size: 32KiB}
  inner: {role: sums, size: 16KiB, id: 9, layout: sums}
engines:
  gemm: {operands: {in: [inp], out: [acc], sums: [inner]}}
"""
# Weights lie beside volumes: in bytes that a result takes once it is made of sums.
BESIDE = """extends: stage-npu
machine: {name: beside-sums}
layouts:
  accumulators: {element: 4, axes: [c, h, w]}
memories:
  am: {size: 12KiB}
  beside: {role: sums, size: 16KiB, id: 9, layout: accumulators}
engines:
  array: {operands: {sums: [beside]}}
fields:
  wt_in: weights.in
  at: {from: sums.addr, as: hex}
  begin: sums.first
  end: sums.last
instructions:
  CONV: {text: CONV t layer dest source window act bias wt wt_first wt_in at begin end}
  CONVD: {text: CONVD t layer dest source window act bias wt wt_first at}
  DECONV: {text: DECONV t layer dest source window act bias wt wt_first at}
  FC: {text: FC t layer dest source act bias wt wt_first wt_in at begin end}
  LDW: {text: LDW t layer wt wt_first wt_last wt_in wt_taps}
"""
# machine, network, sizes of memories, instructions that leave sums, at least
CASES = (("outer", "tiny.prototxt", {}, 0),
         ("outer", "micro/resnet8.prototxt", {}, 0),
         ("outer", "micro/resnet8.prototxt", {"outer": 4096, "wgt": 2304}, 40),
         ("outer", "micro/resnet8.prototxt", {"outer": 512}, 0),
         ("outer", "densenet-cell.prototxt", {"outer": 4096, "wgt": 4096}, 40),
         ("beside", "densenet-cell.prototxt", {}, 20),
         ("inner", "tiny.prototxt", {"inner": 1024}, 0),
         ("inner", "micro/ds-cnn.prototxt", {}, 0),
         ("inner", "micro/resnet8.prototxt",
          {"inner": 1024, "wgt": 2304, "inp": 2048}, 40))


def run(*args):
    return subprocess.run([AMPHORA, *args], capture_output=True, text=True,
                          timeout=600)


def sets(sizes):
    return [w for m, size in sizes.items() for w in ("--set", f"memories.{m}.size={size}")]


def compiled(folder, machine, network, sizes):
    done = run("compile", f"examples/{network}", "-t", f"{folder}/{machine}.yaml",
               *sets(sizes), "-o", folder)
    assert done.returncode == 0, done.stderr
    return os.path.join(folder, os.path.basename(network).split(".")[0])


def ends(o):
    """Bytes of the operand: the first, and behind the last."""
    counts = (o["channels"], o.get("rows", 1), o.get("columns", 1))
    stride = o.get("strides") or [0, 0, 0]
    return o["address"], o["address"] + sum(s * (n - 1) for s, n in zip(stride, counts))


def looked_up(listing, places):
    """Operands that do not lie where the machine says."""
    memory = {m["name"]: m for m in listing["memories"]}
    for r in listing["records"]:
        for o in r["operands"]:
            first, last = ends(o)
            m = memory[o["memory"]]
            if o["memory"] not in places.get((r["engine"], o["role"]), memory) or (
                    last >= m["bytes"]):
                yield f"{r['instruction']}: {o['role']} in {o['memory']} at {last}"
            if o["role"] == "sums" and o["memory"] == "outer" and (
                    first // (m["bytes"] // 2) != last // (m["bytes"] // 2)):
                yield f"{r['instruction']}: sums in both halves"
        roles = {o["role"] for o in r["operands"]}
        if r["engine"] == "gemm" and ("sums" not in roles or
                                      r["sums"]["last"] != ("out" in roles)):
            yield f"{r['instruction']}: operands {roles}"


def verified(folder, machine, network, sizes, least):
    done = run("verify", f"examples/{network}", "-t", f"{folder}/{machine}.yaml",
               "--json", *sets(sizes))
    told = json.loads(done.stdout or "{}")
    if done.returncode or told["violations"]:
        return [f"{machine} {network} {sizes}: {done.stdout}{done.stderr}"]
    moved = told["ddr_read_bytes"] + told["ddr_written_bytes"]
    if moved != told["ddr_moved_bytes"]:
        return [f"{machine} {network} {sizes}: {moved} bytes moved, "
                f"{told['ddr_moved_bytes']} planned"]
    listing = json.load(open(
        compiled(folder, machine, network, sizes) + ".json"))["amphora"]
    places = {("array", "sums"): ["beside"], ("gemm", "sums"): [machine], ("gemm", "out"): ["acc"],
              ("gemm", "in"): ["acc" if machine == "outer" else "inp"],
              ("gemm", "weights"): ["wgt"], ("gemm", "bias"): ["bias"],
              ("alu", "in"): ["acc"], ("alu", "out"): ["acc"]}
    wrong = list(looked_up(listing, places))
    left = sum(not r["sums"]["last"] for r in listing["records"] if "sums" in r)
    if left < least:
        wrong.append(f"{left} leave sums")
    return [f"{machine} {network} {sizes}: {w}" for w in wrong[:3]]


def damaged(folder):
    sizes = {"outer": 4096, "wgt": 2304}
    cmd = compiled(folder, "outer", "micro/resnet8.prototxt", sizes) + ".cmd"
    text = open(cmd).read()
    names = re.search(r"(?m)^# template GEMM (.*)$", text)[1].split()
    lines = [(line, dict(zip(names, line.split(" "))))
             for line in text.splitlines() if line.startswith("GEMM ")]
    goes = next(line for line, row in lines if row["begin"] == "0")
    first = next(line for line, row in lines if row["end"] == "0")
    whole = next(line for line, row in lines if row["begin"] == row["end"] == "1")

    def told(line, **values):
        return with_tokens(line, names, **values)
    other = "0x20" if dict(zip(names, goes.split(" ")))["at"] == "0x0" else "0x0"
    cases = ((goes, told(goes, at=other), "not there"),
             (goes, told(goes, dst_row="9"), "not there"),
             (first, "", "not there"),
             (first, first + "\n" + told(whole, at=dict(
                 zip(names, first.split(" ")))["at"]), "something else"),
             (whole, told(whole, at="0x1f"), "cross the end of a buffer"),
             (whole, told(whole, at="0x3f"), "more than the memory has"))
    return wrong_listings(run, cmd, ("-t", f"{folder}/outer.yaml", *sets(sizes)), cases)


def unplaceable(folder):
    cases = ((OUTER, "sums: [outer]", "sums: [acc, outer]", "but no results"),
             (OUTER, "sums: [outer]", "sums: [acc]", "an element of `acc` 1"),
             (OUTER, "layout: sums}", "layout: blocks}", "an element of `outer` 1"),
             (OUTER, "out: [acc], sums: [outer]", "out: [acc], sums: [wgt]",
              "no engine keeps its sums in `outer`"),
             (OUTER, "weights begin end at}\n  DENSE", "weights begin end}\n  DENSE",
              "GEMM does not tell `sums.addr`"),
             (INNER, "role: sums, size", "role: sums, buffers: 2, size",
              "GEMM does not tell `sums.addr`"),
             (INNER, "{role: sums, size: 16KiB,", "{role: bias, buffers: 2, size: 16KiB,",
              "can have buffers"))
    return wrong_machines(run, folder, cases)


def refused(folder):
    """What is too small is named, and what would do; the size does."""
    cases = (("inner", "inner", 32, "sums of conv1 that one instruction can have take "
              "64 bytes of inner", 64),
             ("outer", "bias", 16, "the fewest biases of conv1 that can be loaded take "
              "64 bytes of bias", 64),
             ("inner", "wgt", 256, "the fewest weights of b1/conv1 that can be loaded "
              "take 2,304 bytes of wgt", 2304),
             ("inner", "wgt", 256, "would load those of some of its 9 taps", 2304))
    wrong = []
    for machine, memory, size, message, enough in cases:
        done = run("compile", "examples/micro/resnet8.prototxt", "-t",
                   f"{folder}/{machine}.yaml", *sets({memory: size}), "-o", folder)
        advice = f"--set memories.{memory}.size={enough} would do"
        if done.returncode != 3 or message not in done.stderr or (
                advice not in done.stderr):
            wrong.append(f"{memory}: no `{message}`, `{advice}`: {done.stderr}")
        wrong += verified(folder, machine, "micro/resnet8.prototxt",
                          {memory: enough}, 0)
    return wrong


def explained(folder):
    done = run("compile", "examples/micro/resnet8.prototxt", "-t",
               f"{folder}/outer.yaml", *sets({"outer": 4096, "wgt": 2304}),
               "--explain", "-o", folder)
    wanted = ("sums: at most 2,048 of 2,048 bytes of a buffer of outer, 16x1x32 of conv1",
              "16 of 32 input channels, 2,304 bytes, as wgt has 2,304 bytes")
    return [f"no {w}: {done.stdout}" for w in wanted if w not in done.stdout]


def limited(folder):
    """Limits that the file lacks can be set; without a sum nothing is cut."""
    taps = ("--set", "engines.array.limits.taps=..64")
    done = run("compile", "examples/micro/resnet8.prototxt", "-t", "stage-npu", *taps,
               "-o", folder)
    wrong = [] if done.returncode == 0 and "taps 144" not in done.stdout else [
        f"limits: {done.stdout}{done.stderr}"]
    path = os.path.join(folder, "no-add.yaml")
    open(path, "w").write("extends: stage-npu\nmachine: {name: no-add}\nengines:\n"
                          "  vector: {runs: [pool_max, pool_avg, scale, upsample]}\n")
    done = run("compile", "examples/micro/resnet8.prototxt", "-t", path, *taps, "-o",
               folder)
    message = ("taps 144 is outside 0..64 of engine array; it would be a sum of layers "
               "of some input channels, but no engine runs add")
    return wrong if message in done.stdout else wrong + [f"no add: {done.stdout}"]


def computed(folder):
    """examples/run_listing.py goes on with sums where the listing says."""
    sizes = sets({"wgt": 2304, "inner": 65536})
    machine, name = f"{folder}/inner.yaml", os.path.join(folder, "tiny")
    done = run("compile", "examples/tiny.prototxt", "-t", machine, *sizes,
               "--materialise", "-o", folder)
    assert done.returncode == 0, done.stderr
    records = json.load(open(name + ".json"))["amphora"]["records"]
    left = sum(not r["sums"]["last"] for r in records if "sums" in r)
    wrong = [] if left else ["run_listing: nobody leaves sums"]
    return wrong + wrong_values(run, name, ("-t", machine, *sizes), (1, 3, 16, 16),
                                "probability.npy")


def main():
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("outer", OUTER), ("inner", INNER), ("beside", BESIDE)):
            open(os.path.join(folder, name + ".yaml"), "w").write(text)
        for case in CASES:
            wrong += verified(folder, *case)
        wrong += damaged(folder) + unplaceable(folder) + computed(folder)
        wrong += refused(folder) + explained(folder) + limited(folder)
    for one in wrong:
        print(one)
    print(f"accumulators.py: {len(CASES)} networks, {len(wrong)} wrong")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
