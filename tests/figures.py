#!/usr/bin/env python3
"""figures.py - what small networks cost on every machine, as recorded.

Compiles networks of tests/mutate_listing.py and tests/cases for every shipped
machine, in several sizes of memory and with several options, and random ones on
random machines (tests/figures), and simulates the listings. Then DAMAGED plans
are made of each by changing one thing (tests/plan/damage.c), and judged: those
that the judge accepts must be right by the simulator.

Each case is a line of tests/figures.txt: instructions, cycles and bytes over DDR
by the simulator, the peak of active memory; digests of the listing and of
everything else that `simulate --json` says; how many of the damaged plans were
accepted, and a digest of what was said against the others. A case that differs
is printed, the old line and the new one; if only the first digest changed, it is
another order, address or field.

Without --long plans of every third case are damaged.

  --write   makes the file anew, and those of the programs that keep such
            records (tests/recorded.h). A change of the planner, of a layout, of
            the cost model or of a row may change lines; see to it that no
            figure grows for no reason
  --first   stops at the first difference
  --share K/N   every Nth case from the Kth, with --first

Exits 1 if any line differs.
"""
import concurrent.futures
import glob
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import zlib

import mutate_listing

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
PLAN_DAMAGE = os.path.join(os.path.dirname(AMPHORA), "plan_damage")
KEEPERS = ("driver_test_judged", "driver_test_recorded", "hwspec_test_damaged",
           "pack_test_recorded", "sched_test_recorded")
DAMAGED = 8
EVERY = "--write" in sys.argv[1:] or "--long" in sys.argv[1:]
UNTRIED = "not damaged here"
RECORDED = "tests/figures.txt"
RANDOM = "tests/figures"
# Options that machines with active memory are asked for, on networks of theirs.
OPTIONS = (
    "--objective bytes", "--objective time", "--images 3", "--order best",
    "--order best --side-by-side time", "--replication best",
    "--replication off", "--mode throughput", "--effort 0", "--batch 2")
DEEP = "tests/figures/deep.prototxt"  # groups of layers, spills, rows by rows
DEEP_AM = {  # memory and two sizes of it, in KiB
    "xdnn-v3-96": ("am", 112, 160), "xdnn-v2-28": ("am", 40, 72),
    "xdnn-v2-56": ("am", 64, 112), "ring-npu": ("am", 8, 20),
    "line-npu": ("am", 16, 36), "stage-npu": ("am", 16, 28),
    "darius-32": ("am", 48, 80), "darius-64": ("am", 64, 128),
    "template": ("fast", 2, 12), "math-engine": ("am", 32, 52),
    "tile-npu": ("am", 8, 14)}
# Of the host's time no plan decides: it is left out of the digest.
SHARES = ("ms", "engine_products", "host_products", "host_cycles",
          "total_cycles", "host_bytes", "round_trips", "changes")
RANDOM_OPTIONS = ("", "--objective bytes", "--order best", "--images 2")


def cases(folder):
    """(name, network's path, target, list of options)"""
    networks = {name: mutate_listing.network_file(folder, name)
                for name in mutate_listing.NETWORKS}
    found = []
    for machine, name, setting, path in mutate_listing.cases(folder):
        found.append((f"{name} {machine}", path, machine,
                      ["--set", setting] if setting else []))
        if setting:  # each option on one of the networks
            found += [(f"{name} {machine}", path, machine,
                       ["--set", setting] + option.split())
                      for i, option in enumerate(OPTIONS)
                      if (len(machine) + i) % 2 == (name == "all")]
    for path in sorted(glob.glob("tests/cases/*.*")):
        name = os.path.basename(path)
        if not name.endswith(".yaml"):
            found += [(f"{name} {machine}", path, machine, ["--set", setting])
                      for machine, setting in sorted(mutate_listing.AM.items())]
    found += [("tiny", "examples/tiny.prototxt", "xdnn-v3-96",
               ["--set", "limits.instructions=8"])]  # just as many as it has
    for machine, (memory, *sizes) in DEEP_AM.items():
        found += [(f"deep {machine}", DEEP, machine,
                   ["--set", f"memories.{memory}.size={size}KiB"])
                  for size in sizes]
    for path in sorted(glob.glob(RANDOM + "/*.json")):
        name, target = os.path.basename(path)[:-5], path[:-4] + "yaml"
        found += [(name, path, target, option.split())
                  for option in RANDOM_OPTIONS]
    for path in sorted(glob.glob("tests/cases/*.*")):
        name = os.path.basename(path)
        if not name.endswith(".yaml"):
            found += [(name, path, "tests/cases/two-active.yaml", [])]
    return [(" ".join([name] + options), path, target, options)
            for name, path, target, options in found]
# Of a listing's JSON what tests/listing.py compares with the simulator.
NEUTRAL = re.compile(
    rb'\n\t\t"(?:format|version|clock_hz|element|issue|memories|engines)":.*'
    rb'|\n\t\t"records":.*(?:\n, \{.*)*')


def digest(data):
    return hashlib.sha256(data).hexdigest()[:12]


def target_options(target, options):
    """Those that `simulate` takes, too."""
    taken = ["-t", target]
    if "--set" in options:
        at = options.index("--set")
        taken += options[at:at + 2]
    return taken


def said_of(program, *arguments):
    """Exit code and output."""
    done = subprocess.run([program, *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=False)
    return done.returncode, done.stdout.decode()


def damage_tried(name):
    """Whether a case's plan is damaged: by its name, as all are for --long."""
    return EVERY or zlib.crc32(name.encode()) % 3 == 0


def comparable(line):
    """A line, less what is said of damaged plans where none are made."""
    if damage_tried(line.partition(": ")[0]):
        return line
    return "; ".join(line.split("; ")[:2] + [UNTRIED])


def damaged(path, target, options, name):
    """What the judge says of damaged plans; which ones, goes by the name."""
    if not damage_tried(name):
        return UNTRIED
    if "throughput" in options:  # two images at once, of which a plan knows one
        return "not damaged"
    code, said = said_of(PLAN_DAMAGE, path, "-t", target, *options,
                         "--seed", str(zlib.crc32(name.encode())), str(DAMAGED))
    lines = said.splitlines()
    if code or not lines:
        return f"WRONG: plan_damage exits {code}: {'; '.join(lines)}"
    return lines[-1].partition(", ")[2]


def line_of(case, folder, number):
    name, path, target, options = case
    out = f"{folder}/{number}"
    code, _ = said_of(AMPHORA, "compile", path, "-t", target, "-o", out,
                      *options)
    if code:
        return f"{name}: WRONG: exit {code}"
    listing = glob.glob(out + "/*.cmd")[0]
    code, said = said_of(AMPHORA, "simulate", listing, "--memory-only",
                         "--json", *target_options(target, options))
    if code:
        return f"{name}: WRONG: simulate exits {code}"
    said = json.loads(said)
    for key in SHARES:
        said.pop(key, None)
    said["engines"]["host"]["cycles"] = 0
    text = b""
    files = [listing, listing[:-4] + ".json"]
    if target == "template":  # whose rows have bits
        files.append(out + "/listing.bin")
        said_of(AMPHORA, "asm", listing, *target_options(target, options),
                "-o", files[-1])
    for written in files:
        with open(written, "rb") as file:
            text += NEUTRAL.sub(b"", file.read())
    rest = json.dumps(said, sort_keys=True).encode()
    moved = said["ddr_read_bytes"] + said["ddr_written_bytes"]
    return (f"{name}: {said['instructions']} instructions, {said['cycles']} "
            f"cycles, {moved} bytes, peak {said['am_peak_bytes']}; "
            f"{digest(text)} {digest(rest)}; "
            f"{damaged(path, target, options, name)}")


def figures(last=lambda line: False, share=slice(None)):
    """Lines of all cases or of a share, or up to one that is the last."""
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(line_of, case, folder, number)
                for number, case in enumerate(cases(folder)[share])]
        lines = []
        for job in jobs:
            lines.append(job.result())
            if last(lines[-1]):
                pool.shutdown(cancel_futures=True)
                break
        return lines


def write(lines):
    with open(RECORDED, "w", encoding="utf-8") as file:
        file.write("".join(line + "\n" for line in lines))
    for name in KEEPERS:
        program = os.path.join(os.path.dirname(AMPHORA), name)
        subprocess.run([program, "--write"], check=True)
    wrong = [line for line in lines if "WRONG" in line]
    print("\n".join(wrong))
    return bool(wrong)


def share_of(arguments):
    if "--share" not in arguments:
        return slice(None)
    first, step = arguments[arguments.index("--share") + 1].split("/")
    return slice(int(first), None, int(step))


def main():
    if "--write" in sys.argv[1:]:
        return write(figures())
    with open(RECORDED, encoding="utf-8") as file:
        recorded = [comparable(line) for line in file.read().splitlines()]
    old = set(recorded)
    if "--first" in sys.argv[1:]:
        lines = figures(lambda line: line not in old, share_of(sys.argv))
        print(lines[-1])
        return lines[-1] not in old
    lines = figures()
    new = set(lines)
    print("\n".join([f"- {line}" for line in recorded if line not in new] +
                    [f"+ {line}" for line in lines if line not in old]))
    changed = len(new - old) + len(old - new)
    print(f"{len(lines)} cases, {changed} lines differ")
    wrong = any("WRONG" in line for line in lines)
    return bool(changed or wrong or not lines)


if __name__ == "__main__":
    sys.exit(main())
