#!/usr/bin/env python3
"""mutate_listing.py - no token of a listing can be changed unseen.

Listings of small networks on every shipped machine, some in so little memory
that volumes move and layers are cut, are changed one token at a time, and by
leaving out and swapping instructions (tests/sim/mutants.c says how), and
simulated. Each mutant must be noticed, by the parser, a violation, other values,
another time or other bytes, or be proved to be the same program:

  unread         the hwspec says that the token has no effect
  label          a step's number: in order, without conflict among those of a
                 step, and as long; a name that stands for no constants, or the
                 number of a tile
  one window     strides where there is one window, dilation of one tap
  no race        waits, places of tiles, orders: by the replay nothing meets, and
                 takes as long
  note           what moves no data was left out
  unread pixels  a size, or padding, with the same pixels read
  one tile       the order of loops of which one has a single turn, or in which
                 nothing stays; as many tiles of an operator without windows
  whole ring     a ring with room for all rows, from the first on
  needless       of an instruction without which all outputs are the same

Prints the score by machine. Survivors go to FILE, and are printed. Exits 1 if
there are any.

    tests/mutate_listing.py [--long] [--out FILE]

Without --long up to MOST mutants of each listing are tried.
"""
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile

BUILD = os.environ.get("BUILD", "build")
AMPHORA = os.environ.get("AMPHORA", f"{BUILD}/amphora")
MUTANTS = f"{BUILD}/sim_mutants"
TARGETS = "hwspec/targets"
MOST = 16  # mutants of a listing, without --long
AM = {  # active memory that takes volumes apart
    "xdnn-v3-96": "memories.am.size=48KiB",
    "xdnn-v2-28": "memories.am.size=48KiB",
    "xdnn-v2-56": "memories.am.size=80KiB",
    "tile-npu": "memories.am.size=8KiB", "ring-npu": "memories.am.size=8KiB",
    "line-npu": "memories.am.size=24KiB",
    "stage-npu": "memories.am.size=16KiB",
    "darius-32": "memories.am.size=64KiB",
    "darius-64": "memories.am.size=96KiB",
    "template": "memories.fast.size=8KiB",
    "math-engine": "memories.am.size=64KiB"}
OTHER_AM = {  # where that gives a listing of hundreds of instructions
    ("line-npu", "parts"): "memories.am.size=40KiB",
    ("stage-npu", "parts"): "memories.am.size=28KiB"}


def convolution(name, bottom, **how):
    fields = " ".join(f"{key}: {value}" for key, value in how.items())
    return (f'layer {{ name: "{name}" type: "Convolution" bottom: "{bottom}" '
            f'top: "{name}" convolution_param {{ {fields} }} }}')


def pool(name, bottom, kind, **how):
    fields = " ".join(f"{key}: {value}" for key, value in how.items())
    return (f'layer {{ name: "{name}" type: "Pooling" bottom: "{bottom}" '
            f'top: "{name}" pooling_param {{ pool: {kind} {fields} }} }}')


def layer(name, kind, bottoms, more="", top=None):
    reads = " ".join(f'bottom: "{b}"' for b in bottoms)
    return (f'layer {{ name: "{name}" type: "{kind}" {reads} '
            f'top: "{top or name}" {more} }}')


def inputs(c, h, w):
    return [f'input: "data" input_shape {{ dim: 1 dim: {c} dim: {h} dim: {w} }}']


# All that engines run, in one network: convolutions of all kinds, pools alone
# and behind them, a concat, sums, a scale, upsampling.
NETWORKS = {
    "all": inputs(3, 20, 18) + [
        convolution("c1", "data", num_output=16, kernel_size=3, pad=1),
        layer("r1", "ReLU", ["c1"], top="c1"),
        pool("p1", "c1", "MAX", kernel_size=2, stride=2),
        convolution("a", "p1", num_output=24, kernel_size=1),
        convolution("b", "p1", num_output=40, kernel_h=3, kernel_w=5, pad_h=1,
                    pad_w=2, bias_term="false"),
        layer("rb", "ReLU", ["b"], top="b"),
        pool("pool", "p1", "AVE", kernel_size=3, stride=1, pad=1),
        layer("cat", "Concat", ["a", "b"]),
        convolution("mix", "cat", num_output=64, kernel_size=3, pad=2,
                    dilation=2),
        layer("sum", "Eltwise", ["cat", "mix"]),
        layer("rs", "ReLU", ["sum"], top="sum"),
        pool("mp", "sum", "MAX", kernel_size=3, stride=2, pad=1),
        layer("sc", "Scale", ["mp"], "scale_param { bias_term: true }"),
        layer("up", "Upsample", ["sc"], "upsample_param { scale: 2 }"),
        convolution("dw", "up", num_output=64, group=64, kernel_size=3, pad=1),
        layer("de", "Deconvolution", ["dw"],
              "convolution_param { num_output: 8 kernel_size: 2 stride: 2 }"),
        convolution("p2", "pool", num_output=8, kernel_size=3, stride=2, pad=1),
        pool("ap", "de", "AVE", global_pooling="true"),
        layer("fc", "InnerProduct", ["ap"],
              "inner_product_param { num_output: 10 }"),
        layer("sm", "Softmax", ["fc"])],
    # Members of a concat of full sections; what leads to it is read twice; a
    # convolution with a pool behind it from active memory.
    "parts": inputs(96, 12, 10) + [
        convolution("x", "data", num_output=96, kernel_size=1),
        convolution("y", "x", num_output=96, kernel_size=3, pad=1),
        pool("m", "x", "MAX", kernel_size=3, stride=1, pad=1),
        layer("cat", "Concat", ["y", "m"]),
        convolution("z", "cat", num_output=192, kernel_size=1),
        layer("sum", "Eltwise", ["z", "cat"]),
        convolution("f", "sum", num_output=40, kernel_size=3, pad=1),
        layer("rf", "PReLU", ["f"], top="f"),
        pool("fp", "f", "MAX", kernel_size=2, stride=2),
        convolution("g", "fp", num_output=32, kernel_size=3, stride=2),
        convolution("h", "g", num_output=32, kernel_size=1),
        layer("mul", "Eltwise", ["g", "h"],
              "eltwise_param { operation: PROD }"),
        layer("twice", "Eltwise", ["mul", "mul"])],
}


def network_file(folder, name):
    path = f"{folder}/{name}.prototxt"
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join([f'name: "{name}"'] + NETWORKS[name]) + "\n")
    return path


def listed_machines():
    """Shipped machines whose networks become listings."""
    names = sorted(name[:-5] for name in os.listdir(TARGETS)
                   if name.endswith(".yaml"))
    says = {name: json.loads(subprocess.check_output(
        [AMPHORA, "check", name, "--json"])) for name in names}
    return [name for name in names if says[name]["compiles"] == "listing"]


def cases(folder):
    """(machine, label, setting, network's path)"""
    machines = listed_machines()
    found = []
    for name in NETWORKS:
        path = network_file(folder, name)
        for machine in machines:
            found.append((machine, name, None, path))
            if machine in AM:
                setting = OTHER_AM.get((machine, name), AM[machine])
                found.append((machine, name, setting, path))
    return found


def run(case, folder, number, most):
    """(machine, label, counts by fate, lines of survivors, error)"""
    machine, name, setting, path = case
    label = f"{name} on {machine}" + (f", {setting}" if setting else "")
    out = f"{folder}/{number}"
    options = ["--set", setting] if setting else []
    done = subprocess.run([AMPHORA, "compile", path, "-t", machine, "-o", out]
                          + options, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    if done.returncode == 3:
        return machine, label, {}, [], None
    if done.returncode:
        return machine, label, {}, [], done.stderr.decode()
    target = machine + (f",{setting}" if setting else "")
    done = subprocess.run([MUTANTS, target, f"{out}/{name}.cmd", str(most),
                           str(number)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    lines = done.stdout.decode().splitlines()
    counts = {key.strip(): int(value) for key, value in
              re.findall(r"([a-z ]+)=(\d+)", lines[-1] if lines else "")}
    bad = None if counts and done.returncode in (0, 1) else "\n".join(lines)
    return machine, label, counts, lines[:-1] if counts else [], bad


NOTICED = ("parser", "violation", "values", "time or bytes")


def table(totals):
    print(f"{'machine':14} {'mutants':>8} {'noticed':>8} {'same':>6} "
          f"{'alive':>6}  parser, violation, values, time or bytes; proofs")
    for machine, counts in sorted(totals.items()):
        alive = counts.get("survive", 0)
        noticed = sum(counts.get(key, 0) for key in NOTICED)
        proofs = {key: n for key, n in counts.items()
                  if n and key not in NOTICED and key != "survive"}
        print(f"{machine:14} {sum(counts.values()):8} {noticed:8} "
              f"{sum(proofs.values()):6} {alive:6}  "
              + ", ".join(str(counts.get(key, 0)) for key in NOTICED) + "; "
              + ", ".join(f"{key} {n}" for key, n in proofs.items()))


def main():
    most = 0 if "--long" in sys.argv[1:] else MOST
    totals, survivors, errors = {}, [], []
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool_:
        jobs = [pool_.submit(run, case, folder, i, most)
                for i, case in enumerate(cases(folder))]
        for job in jobs:
            machine, label, counts, lines, error = job.result()
            total = totals.setdefault(machine, {})
            for key, value in counts.items():
                total[key] = total.get(key, 0) + value
            survivors += [f"{label}: {line}" for line in lines]
            errors += [f"{label}: {error}"] if error else []
    table(totals)
    print("\n".join(survivors + errors))
    if "--out" in sys.argv[1:]:
        at = sys.argv[sys.argv.index("--out") + 1]
        with open(at, "w", encoding="utf-8") as file:
            file.write("".join(line + "\n" for line in survivors))
    tried = sum(sum(counts.values()) for counts in totals.values())
    print(f"{tried} mutants, {len(survivors)} survive, "
          f"{len(errors)} errors")
    return bool(survivors or errors) or not tried


if __name__ == "__main__":
    sys.exit(main())
