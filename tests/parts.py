#!/usr/bin/env python3
"""parts.py - listings of more instructions than the machine holds.

They are cut into parts that it holds, at steps; the parts one behind the other
are the listing, which verifies. The plan within the limit is taken where there
is one; where not even a step fits, or on machines with queues, it is refused.
"""
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
AMPHORA = os.path.join(ROOT, "build", "amphora")
# network, machine, settings: parts
CASES = (
    ("tiny", "xdnn-v2-28", ["limits.instructions=4"], 3),
    ("tiny", "xdnn-v2-28", ["limits.instructions=10"], 1),
    ("squeezenet", "xdnn-v2-28",
     ["limits.instructions=60", "memories.am.size=512KiB"], 2),
    ("densenet-cell", "xdnn-v3-96", ["limits.instructions=12"], 2),
)


def amphora(command, network, machine, sets, *more):
    flags = [word for one in sets for word in ("--set", one)]
    return subprocess.run(
        [AMPHORA, command, os.path.join(ROOT, f"examples/{network}.prototxt"),
         "-t", machine, *flags, *more], capture_output=True, text=True,
        check=False)


def lines_of(path):
    with open(path, encoding="utf-8") as file:
        return [line for line in file.read().splitlines()
                if not line.startswith("# template")]


def wrong_with(network, machine, sets, folder):
    """(how many parts, what is wrong or None)"""
    done = amphora("compile", network, machine, sets, "--json", "-o", folder)
    if done.returncode:
        return 0, done.stderr
    limit = int(sets[0].split("=")[1])
    n = json.loads(done.stdout).get("parts", 1)
    name = f"{folder}/{json.loads(done.stdout)['network']}"
    whole = lines_of(f"{name}.cmd")
    parts = [lines_of(f"{name}.{i + 1}.cmd") for i in range(n)] if n > 1 \
        else [whole]
    with open(f"{name}.json", encoding="utf-8") as file:
        first = json.load(file)["amphora"].get("parts", [0])
    if sum(parts, []) != whole or \
            first != [sum(map(len, parts[:i])) for i in range(n)]:
        return n, "the parts are not the listing"
    if any(sum(not line.startswith("#") for line in part) > limit
           for part in parts):
        return n, "a part is too long"
    steps = [[line.removeprefix("# ").split()[0] for line in part]
             for part in parts]
    if any(a[-1] == b[0] for a, b in zip(steps, steps[1:])):
        return n, "a step is cut"
    done = amphora("verify", network, machine, sets)
    return n, done.stderr + done.stdout if done.returncode else None


def main():
    bad = 0
    for network, machine, sets, expected in CASES:
        with tempfile.TemporaryDirectory() as folder:
            n, wrong = wrong_with(network, machine, sets, folder)
        least = n >= expected if expected > 1 else n == 1
        bad += bool(wrong) or not least
        print(f"{network} on {machine} {' '.join(sets)}: {n} parts"
              f"{f', {wrong}' if wrong else ''}")
    refused = amphora("compile", "tiny", "stage-npu", ["limits.instructions=3"])
    print(f"a queue of 3: exit {refused.returncode}")
    return bad or refused.returncode != 3


if __name__ == "__main__":
    sys.exit(main())
