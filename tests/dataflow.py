#!/usr/bin/env python3
"""dataflow.py - arrays that fill, drain and preload: `engines.*.cycles`.

The two arrays of docs/hwspec.md. By hand, of every instruction of the array:
the cycles that the expression says. The planner's clock is the simulator's.
Expressions that cannot be are errors at their place. Needs the folder build.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
AMPHORA = os.environ.get("AMPHORA", os.path.join(ROOT, "build", "amphora"))
SETUP = 16
NET = os.path.join(ROOT, "examples", "squeezenet.prototxt")
MACHINE = """extends: stage-npu
machine: {{name: systolic}}
memories: {{am: {{size: 1MiB}}}}
engines:
  array:
    unroll: {{out_c: 16, in_c: {in_c}, out_w: {out_w}}}
    setup: {setup}
    cycles: "{cycles}"
"""
WRONG = {
    "out.c * 2 - out.h": "may be below 0",
    "ceil(out.c, out.n)": "out.n",
    "out.w / (out.h - 1)": "0",
    "out.c +": "",
}
TOKENS = ("op t layer dst dst_c dst_h dst_w dst_row dst_ring src src_c src_h "
          "src_w src_row src_ring kw kh").split()


def up(a, b):
    return -(-a // b)


def weights_stay(c, h, w, steps):
    return up(c, 16) * steps * (16 + h * w) + 30


def sums_stay(c, h, w, steps):
    return up(c, 16) * h * up(w, 16) * (steps + 30)


def manual():
    """Both, as the manual has them."""
    with open(os.path.join(ROOT, "docs", "hwspec.md"), encoding="utf-8") as f:
        found = re.findall(r'^    cycles: "(.*)"$', f.read(), flags=re.M)
    return [(found[0], 16, 1, weights_stay), (found[1], 1, 16, sums_stay)]


def run(folder, command, case, *more):
    cycles, in_c, out_w = case[:3]
    path = os.path.join(folder, "systolic.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(MACHINE.format(setup=SETUP, cycles=cycles, in_c=in_c,
                                  out_w=out_w))
    machine = [path] if command == "check" else ["-t", path]
    return subprocess.run([AMPHORA, command, *more, *machine],
                          capture_output=True, text=True, check=False)


def by_hand(line, case):
    """Of a row of the listing."""
    word = dict(zip(TOKENS, line.split()))
    c, h, w, src_c, kw, kh = (int(word[key]) for key in (
        "dst_c", "dst_h", "dst_w", "src_c", "kw", "kh"))
    return SETUP + case[3](c, h, w, up(src_c, case[1]) * kw * kh)


def check(folder, case):
    made = run(folder, "verify", case, NET, "--json")
    if made.returncode:
        return made.stderr[:300]
    report = json.loads(made.stdout)
    if report["violations"] or report["cycles"] != report["plan_cycles"]:
        return f"{report['cycles']} cycles, {report['plan_cycles']} planned"
    run(folder, "compile", case, NET, "-o", folder)
    with open(os.path.join(folder, "squeezenet.cmd"), encoding="utf-8") as file:
        lines = [line for line in file if line.startswith("CONV ")]
    want = sum(by_hand(line, case) for line in lines)
    engine = report["engines"]["array"]
    print(f"{case[0]}: {engine['cycles']:,} cycles, {len(lines)} rows")
    if engine["instructions"] != len(lines) or engine["cycles"] != want:
        return f"{engine}, by hand {want} of {len(lines)}"
    return ""


def main():
    with tempfile.TemporaryDirectory() as folder:
        bad = [check(folder, case) for case in manual()]
        for cycles, said in WRONG.items():
            checked = run(folder, "check", (cycles, 16, 1))
            if (not checked.returncode or said not in checked.stderr
                    or "systolic.yaml:8:" not in checked.stderr):
                bad.append(f"{cycles}: {checked.stderr[:200]}")
    bad = [text for text in bad if text]
    print("\n".join(bad + [f"dataflow: {len(bad)} wrong"]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
