#!/usr/bin/env python3
"""figures.py - what small networks cost on every machine, as recorded.

Compiles networks of tests/mutate_listing.py and tests/cases for every shipped
machine, in several sizes of memory and with several options, and random ones on
random machines (tests/figures), and simulates the listings. Each case is a line of tests/figures.txt: the exit
code, the instructions, cycles and bytes over DDR of the simulator, the peak of
active memory, and digests of the listing and of everything else that `simulate
--json` says. A case that differs from its line is printed, the old line and the
new one; a digest alone that changed means another order, address or field.

  --write   makes the file anew. A change of the planner, of a layout, of the
            cost model or of a row may change lines; see to it that no figure
            grows for no reason

Exits 1 if any line differs.
"""
import concurrent.futures
import glob
import hashlib
import json
import os
import subprocess
import sys
import tempfile

import mutate_listing

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
RECORDED = "tests/figures.txt"
RANDOM = "tests/figures"
# Options that machines with active memory are asked for, on networks of theirs.
OPTIONS = (
    "--objective bytes", "--objective time", "--images 3", "--order best",
    "--order best --side-by-side time", "--replication best",
    "--replication off", "--mode throughput", "--effort 0", "--batch 2")
RANDOM_OPTIONS = ("", "--objective bytes", "--order best", "--images 2")


def cases(folder):
    """(name, network's path, target, list of options)"""
    networks = {name: mutate_listing.network_file(folder, name)
                for name in mutate_listing.NETWORKS}
    found = []
    for machine, name, setting, path in mutate_listing.cases(folder):
        found.append((f"{name} {machine}", path, machine,
                      ["--set", setting] if setting else []))
        if setting:
            found += [(f"{name} {machine}", path, machine,
                       ["--set", setting] + option.split())
                      for option in OPTIONS]
    for path in sorted(glob.glob("tests/cases/*.*")):
        name = os.path.basename(path)
        if not name.endswith(".yaml"):
            found += [(f"{name} {machine}", path, machine, ["--set", setting])
                      for machine, setting in sorted(mutate_listing.AM.items())]
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


def digest(data):
    return hashlib.sha256(data).hexdigest()[:12]


def target_options(target, options):
    """Those that `simulate` takes, too."""
    taken = ["-t", target]
    if "--set" in options:
        at = options.index("--set")
        taken += options[at:at + 2]
    return taken


def line_of(case, folder, number):
    name, path, target, options = case
    out = f"{folder}/{number}"
    done = subprocess.run(
        [AMPHORA, "compile", path, "-t", target, "-o", out, *options],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    if done.returncode:
        return f"{name}: exit {done.returncode}"
    listing = glob.glob(out + "/*.cmd")[0]
    done = subprocess.run(
        [AMPHORA, "simulate", listing, "--memory-only", "--json",
         *target_options(target, options)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    if done.returncode not in (0, 1):
        return f"{name}: simulate exits {done.returncode}"
    said = json.loads(done.stdout)
    said.pop("ms", None)
    with open(listing, "rb") as file:
        text = file.read()
    rest = json.dumps(said, sort_keys=True).encode()
    moved = said["ddr_read_bytes"] + said["ddr_written_bytes"]
    return (f"{name}: {said['instructions']} instructions, {said['cycles']} "
            f"cycles, {moved} bytes, peak {said['am_peak_bytes']}, "
            f"{said['violations']} violations, {digest(text)} {digest(rest)}")


def figures():
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        every = cases(folder)
        return list(pool.map(lambda pair: line_of(pair[1], folder, pair[0]),
                             enumerate(every)))


def main():
    lines = figures()
    if "--write" in sys.argv[1:]:
        with open(RECORDED, "w", encoding="utf-8") as file:
            file.write("".join(line + "\n" for line in lines))
        return 0
    with open(RECORDED, encoding="utf-8") as file:
        recorded = file.read().splitlines()
    old, new = set(recorded), set(lines)
    print("\n".join([f"- {line}" for line in recorded if line not in new] +
                    [f"+ {line}" for line in lines if line not in old]))
    changed = len(new - old) + len(old - new)
    print(f"{len(lines)} cases, {changed} lines differ")
    return bool(changed or not lines)


if __name__ == "__main__":
    sys.exit(main())
