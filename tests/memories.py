#!/usr/bin/env python3
"""memories.py - several memories and cores, units that move at the same time.

The machine of docs/hwspec.md: two channels of DDR for volumes, a flash and the
second channel for weights. Against the same with one channel: the same values,
fewer cycles, and no wires that do everything. The planner's clock is the
simulator's. Bytes add up, each memory holds what it has room for, and what
lies or moves wrong is refused: a listing that loads weights from elsewhere, a
unit that is missing, wires that nothing has.

Cores: each runs the plan of a machine that has its part alone, and all of them
make that many images meanwhile; parts that are too small are refused.

Weights whose channels have no address are said to be the reason where nothing
fits beside them. Needs the folder build.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
AMPHORA = os.environ.get("AMPHORA", os.path.join(ROOT, "build", "amphora"))
ONE = """extends: stage-npu
machine: {name: one-channel}
memories:
  am: {size: 256KiB}
  ddr: {bandwidth: 4GB/s}
  inputs: {bandwidth: 4GB/s}
  outputs: {bandwidth: 4GB/s}
"""
NETS = {"squeezenet.prototxt": "1MiB", "googlenet.prototxt": "512KiB"}
# What is changed in the machine, and what is said of it.
WRONG = {
    "moves: [load, store], memories: [ddr, inputs]":
        ("moves: [load], memories: [ddr, inputs]",
         "no unit of `dma` has `store` for memory `ddr`"),
    "memories: [flash]": ("memories: [am]", "which lie outside"),
    "moves: [load_weights]": ("moves: [conv]", "`conv` is the work of an "
                              "engine"),
    "channel: ddr1": ("channel: am", "which has none of its own"),
    "align: 16": ("align: 64", "it needs the layout and the alignment of "
                  "`ddr`"),
    "wt_in wt_first": ("wt_first", "does not tell `weights.memory`"),
    "weights_from: [": ("queue: 0, weights_from: [", "queue"),
    "[flash, ddr1]": ("[am, ddr1]", "`am` is of role active"),
}


def machine():
    """The example of the manual."""
    with open(os.path.join(ROOT, "docs", "hwspec.md"), encoding="utf-8") as f:
        text = f.read()
    found = re.search(r"\n((?:    [^\n]*\n)*    machine: \{name: two-channels\}"
                      r"\n(?:    [^\n]*\n)*)", text)
    return re.sub("^    ", "", found.group(1), flags=re.M)


def amphora(*words):
    return subprocess.run([AMPHORA, *words], capture_output=True, text=True,
                          check=False)


def verify(net, path, size, *more):
    run = amphora("verify", os.path.join(ROOT, "examples", net), "-t", path,
                  "--set", f"memories.am.size={size}", "--json", *more)
    return json.loads(run.stdout) if run.returncode == 0 else run.stderr


def check(net, size, two, one):
    wide, narrow = verify(net, two, size), verify(net, one, size)
    if isinstance(wide, str) or isinstance(narrow, str):
        return f"{net}: {wide}{narrow}"[:300]
    bad = []
    if not wide["ok"] or wide["violations"]:
        bad.append("wrong")
    if wide["plan_cycles"] != wide["cycles"]:
        bad.append(f"planned {wide['plan_cycles']}, run {wide['cycles']}")
    if wide["cycles"] >= narrow["cycles"]:
        bad.append(f"{wide['cycles']} cycles, {narrow['cycles']} by one")
    memories = wide["memories"]
    if sum(m["read"] for m in memories.values()) != wide["ddr_read_bytes"]:
        bad.append("bytes do not add up")
    for name in ("ddr1", "flash"):
        if not memories[name]["read"]:
            bad.append(f"{name} does nothing")
    if any(m["cycles"] > wide["cycles"] for m in memories.values()):
        bad.append("wires are at work at the same time as themselves")
    print(f"{net} in {size}: {wide['cycles']:,} cycles, {narrow['cycles']:,} "
          f"by one channel")
    return f"{net}: " + ", ".join(bad) if bad else ""


def check_room(path):
    """A flash of 64 KiB holds no more, and the rest is elsewhere."""
    small = verify("squeezenet.prototxt", path, "1MiB", "--set",
                   "memories.flash.size=64KiB")
    if isinstance(small, str):
        return small
    loaded = small["memories"]["flash"]["read"]
    if not small["ok"] or not 0 < loaded:
        return f"{loaded} bytes of flash"
    none = verify("squeezenet.prototxt", path, "1MiB", "--set",
                  "memories.flash.size=64KiB", "--set",
                  "memories.ddr1.size=100000")
    said = "weights take 1,231,552 bytes of ddr1 and flash, which have 165,536"
    return "" if said in none else f"weights without room: {none}"[:300]


def check_listing(path, folder):
    """Weights that come from where none lie."""
    net = os.path.join(ROOT, "examples", "squeezenet.prototxt")
    run = amphora("compile", net, "-t", path, "--set",
                  "memories.am.size=1MiB", "-o", folder)
    listing = os.path.join(folder, "squeezenet.cmd")
    if run.returncode or not os.path.exists(listing):
        return run.stderr + str(os.listdir(folder))
    with open(listing, encoding="utf-8") as file:
        text = file.read()
    changed = re.sub(r"^(LDW \S+ \S+ \S+) 10 ", r"\1 2 ", text, count=1,
                     flags=re.M)
    with open(listing, "w", encoding="utf-8") as file:
        file.write(changed)
    run = amphora("simulate", listing, "-t", path, "--set",
                  "memories.am.size=1MiB")
    said = "loads weights from memory 2, where none lie"
    if changed == text or said not in run.stdout:
        return "a listing with wrong weights: " + run.stdout[:300]
    return ""


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def check_cores(folder):
    four = write(folder, "four.yaml", ONE + "cores: {count: 4}\n")
    part = write(folder, "part.yaml", ONE.replace("4GB/s", "1GB/s"))
    reports = [verify("squeezenet.prototxt", path, "1MiB")
               for path in (four, part)]
    if any(isinstance(report, str) for report in reports):
        return f"cores: {reports}"[:300]
    many, one = reports
    bad = []
    for key in ("cycles", "ddr_read_bytes", "am_bytes", "plan_cycles"):
        if many[key] != one[key]:
            bad.append(f"{key} {many[key]}, of one core {one[key]}")
    if many["cycles_an_image"] != (one["cycles"] + 3) // 4:
        bad.append(f"{many['cycles_an_image']} cycles an image")
    run = amphora("compile", os.path.join(ROOT, "examples",
                                          "squeezenet.prototxt"),
                  "-t", four, "-o", folder)
    with open(os.path.join(folder, "squeezenet.json"),
              encoding="utf-8") as file:
        told = json.load(file)["amphora"].get("cores")
    if run.returncode or told["count"] != 4 or told["parts"]["ddr"] != 2 ** 28:
        bad.append(f"the listing tells {told}")
    tiny = os.path.join(ROOT, "examples", "tiny.prototxt")
    two = amphora("verify", tiny, "-t", four, "--images", "2")
    times = json.loads(amphora("verify", tiny, "-t", four, "--images", "2",
                               "--json").stdout)
    if ("2, one behind the other on each core" not in two.stdout or
            "steady" in two.stdout or
            4 * times["steady_cycles"] > times["cycles"]):
        bad.append(f"two images on each: {two.stdout[:400]}")
    for cores, said in (("{count: 2000}", "more than 1024 cores"),
                        ("{count: 0}", "four.yaml:"),
                        ("{count: 1000, share: [am, ddr, inputs, outputs]}",
                         "does not fit")):
        path = write(folder, "four.yaml", ONE + f"cores: {cores}\n")
        refused = verify("squeezenet.prototxt", path, "1MiB")
        if not isinstance(refused, str) or said not in refused:
            bad.append(f"{cores}: {refused}"[:300])
    return "cores: " + ", ".join(bad) if bad else ""


def check_advice(folder):
    inside = ONE + "layouts: {plain: {axes: [h, w, c]}}\n"
    path = write(folder, "inside.yaml", inside)
    said = verify("squeezenet.prototxt", path, "64KiB")
    good = isinstance(said, str) and "weights of a layer are loaded whole" in said
    return "" if good else f"advice: {said}"[:400]


def check_wrong(text, folder):
    bad = []
    for old, (new, said) in WRONG.items():
        path = write(folder, "wrong.yaml", text.replace(old, new, 1))
        run = amphora("check", path)
        if (text.count(old) < 1 or run.returncode == 0
                or said not in run.stderr or "wrong.yaml:" not in run.stderr):
            bad.append(f"{new}: {run.stderr[:200]}")
    return "\n".join(bad)


def main():
    bad = []
    with tempfile.TemporaryDirectory() as folder:
        two = write(folder, "two.yaml", machine())
        one = write(folder, "one.yaml", ONE)
        bad += [check(net, size, two, one) for net, size in NETS.items()]
        bad += [check_room(two), check_listing(two, folder),
                check_cores(folder), check_advice(folder),
                check_wrong(machine(), folder)]
    bad = [text for text in bad if text]
    print("\n".join(bad + [f"memories: {len(bad)} wrong"]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
