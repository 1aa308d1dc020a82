#!/usr/bin/env python3
"""budget.py - small cases that once had no end, no legal plan, or wrong advice.

  verified  compiles, and computes what the network computes
  bounded   searches that went on without end: compiled or refused within some
            seconds of a processor, the same bytes each time
  advised   refused; what "would do" is compiled at that size, what "would not"
            is refused there
  silent    no size would do, and none is named

--long compiles random settings of these networks as well, SEED or 1 first.
"""
import os
import random
import re
import resource
import subprocess
import sys
import tempfile

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
CASES = os.path.join(os.path.dirname(__file__), "cases")
SECONDS, LONG = 10, 600  # of a processor, sanitizers and all; of a clock
VERIFIED = (
    ("slabs.prototxt", "stage-npu", "tiling.rings=false",
     "memories.am.size=1505"),
    ("depthwise.prototxt", "stage-npu", "tiling.rings=false",
     "memories.am.size=9000"),
    ("depthwise.prototxt", "stage-npu", "tiling.rings=false",
     "memories.am.size=4096"),
)
BOUNDED = (
    ("pad-concat.json", "stage-npu", "memories.am.size=896"),
    ("pad-concat.json", "stage-npu", "memories.am.size=896",
     "memories.am.partitions=7", "tiling.queue=64",
     "memories.ddr.bandwidth=0.1GB/s", "memories.outputs.burst=32"),
    ("fork.prototxt", "two-active.yaml"),
    ("branches.prototxt", "two-active.yaml"),
    ("../../examples/mobilenet-v2.prototxt", "nvdla-small",
     "memories.dram.size=32MiB"),
)
ADVISED = (
    ("branches.prototxt", "stage-npu", 
     "memories.am.size=40"),
    ("branches.prototxt", "stage-npu", "memories.am.size=188"),
    ("slabs.prototxt", "stage-npu", "tiling.rings=false",
     "memories.am.size=281"),
    ("depthwise.prototxt", "stage-npu", "limits.instructions=12",
     "memories.am.size=173"),
    ("depthwise.prototxt", "stage-npu", "limits.instructions=12",
     "memories.am.size=33344"),
    ("depthwise.prototxt", "tile-npu", "memories.am.size=40"),
)
SILENT = (
    ("fork.prototxt", "stage-npu", "limits.instructions=3"),
)
ADVICE = re.compile(r"--set memories\.(\w+)\.size=(\w+) would do"
                    r"(?:; (\w+) would not)?")
SWITCHES = {
    "tiling.rings": ("false", "true"), "tiling.queue": (1, 2, 7, 1024),
    "memories.am.align": (1, 2, 4, 16, 64, 192),
    "memories.am.partitions": (1, 2, 3, 7), "machine.element": (1, 2, 4),
    "memories.ddr.bandwidth": ("0.1GB/s", "7GB/s"),
    "limits.instructions": (5, 12, 40),
}


def path_of(name):
    path = os.path.join(CASES, name)
    return path if os.path.exists(path) else name


def run(command, case, folder):
    """Exit code, stderr, seconds of a processor."""
    network, machine, *settings = case
    line = [AMPHORA, command, path_of(network), "-t", path_of(machine)]
    line += ["-o", folder] if command == "compile" else []
    for setting in settings:
        line += ["--set", setting]
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run(line, capture_output=True, text=True,
                          timeout=LONG)
    after = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    return done.returncode, done.stderr, after - before


def verified(case, folder):
    code, said, _ = run("verify", case, folder)
    return code and f"exit {code}: {said[:200]}"


def listing(folder):
    for name in sorted(os.listdir(folder)):
        if name.endswith(".cmd"):
            with open(os.path.join(folder, name), "rb") as file:
                return file.read()
    return b""


def bounded(case, folder):
    made = set()
    for _ in range(2):
        code, said, seconds = run("compile", case, folder)
        if code not in (0, 3):
            return f"exit {code}: {said[:200]}"
        if seconds > SECONDS:
            return f"{seconds:.1f} s"
        made.add((code, said, listing(folder)))
    return len(made) > 1 and "another plan the second time"


def wrong_sizes(case, said, folder):
    """`would do` does, `would not` does not."""
    found = ADVICE.search(said)
    for size, codes in zip(found.groups()[1:], ((0,), (3,))):
        setting = f"memories.{found[1]}.size={size}"
        code = size and run("compile", (*case, setting), folder)[0]
        if size and code not in codes:
            return f"{setting}: exit {code} where {found[0]}"
    return ""


def advised(case, folder):
    code, said, _ = run("compile", case, folder)
    if code != 3:
        return f"exit {code}, where it is refused"
    if not ADVICE.search(said):
        return f"no size that would do: {said[:200]}"
    return wrong_sizes(case, said, folder)


def silent(case, folder):
    code, said, _ = run("compile", case, folder)
    wrong = code != 3 or "would do" in said
    return wrong and f"exit {code}: {said[:200]}"


def setting_of(dice):
    names = dice.sample(sorted(SWITCHES), dice.randrange(5))
    return [f"{name}={dice.choice(SWITCHES[name])}" for name in names]


def random_case(dice, folder):
    network = dice.choice(sorted(set(c[0] for c in VERIFIED + BOUNDED)))
    size = int(2 ** (5 + 11 * dice.random()))
    case = (network, "stage-npu", *setting_of(dice),
            f"memories.am.size={size}")
    code, said, seconds = run("compile", case, folder)
    wrong = code not in (0, 1, 3) and f"exit {code}: {said[:200]}"
    if not wrong and seconds > SECONDS:
        wrong = f"{seconds:.1f} s"
    if not wrong and code == 3 and ADVICE.search(said):
        wrong = wrong_sizes(case, said, folder)
    return case, wrong


def main():
    wrong, n = 0, 0
    checks = [(check, case) for check, cases in (
        (verified, VERIFIED), (bounded, BOUNDED), (advised, ADVISED),
        (silent, SILENT))
        for case in cases]
    with tempfile.TemporaryDirectory() as folder:
        for check, case in checks:
            n += 1
            fault = check(case, folder)
            wrong += bool(fault)
            print(("FAIL" if fault else "ok  "), check.__name__,
                  " ".join(case), fault or "")
        seed = int(os.environ.get("SEED", "1"))
        for i in range(2000 if "--long" in sys.argv else 0):
            n += 1
            case, fault = random_case(random.Random(seed + i), folder)
            wrong += bool(fault)
            if fault:
                print("FAIL", f"seed {seed + i}", " ".join(case), fault)
    print(f"{n - wrong} right, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
