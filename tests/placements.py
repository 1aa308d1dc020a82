#!/usr/bin/env python3
"""placements.py - no plan wastes active memory, or it is proved that it must;
and ResNet-18's figures of TVM's discussion.

Compiles every network of examples/ for every shipped machine. What each plan
needs in active memory (before volumes are moved apart to save time) is the
bound, proved: nothing can be lower; or the pair is in OPEN, with the most that
it may be above the bound, and why.
ResNet-18 (examples/placement): what TVM's greedy_by_size and hill_climb came
to on its buffers, and that the latter is the least.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TARGETS = ("xdnn-v2-28", "xdnn-v2-56", "xdnn-v3-96", "math-engine",
           "darius-32", "darius-64", "template", "null")
SLOW = {"yolov2-608.prototxt"}  # with --long
# Two memories of different layouts: the sum of both heights is hard to bound.
OPEN = {("inception-v3.prototxt", "template"): 1.05,
        ("mobilenet-v2.prototxt", "template"): 1.003,
        ("resnet50.prototxt", "template"): 1.12}


def compile_for(network, target, folder):
    done = subprocess.run(
        [os.path.join(ROOT, "build/amphora"), "compile", network, "-t", target,
         "--json", "-o", folder], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


def judge(network, target, plan):
    """A sentence, or None where all is well."""
    name = os.path.basename(network)
    if plan is None:
        return f"{name} on {target}: does not compile"
    packed, bound = plan["am_packed_bytes"], plan["am_bound_bytes"]
    limit = OPEN.get((name, target))
    if limit and not plan["am_proved"]:
        return None if packed <= limit * bound else \
            f"{name} on {target}: {packed} is {packed / bound:.3f} x {bound}"
    if plan["am_proved"] and packed == bound:
        return None
    return f"{name} on {target}: {packed}, bound {bound}, not proved"


def pack(*options):
    path = os.path.join(ROOT, "examples/placement/resnet18.csv")
    done = subprocess.run(
        [os.path.join(ROOT, "build/amphora"), "pack", path, "--json",
         *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        check=False)
    return json.loads(done.stdout)


def resnet18():
    """What is wrong: sentences."""
    wrong, height = [], {"stack_by_size": 4818240, "hill_climb": 4014080,
                         "exact": 4014080, "stack_by_conflicts": 5621056}
    rows = {row["planner"]: row for row in pack("--planner", "all")["planners"]}
    for name, least in height.items():
        if rows[name]["height"] != least:
            wrong.append(f"resnet18, {name}: {rows[name]['height']}")
    if not rows["exact"]["proved"]:
        wrong.append("resnet18: not proved")
    conflict = pack("--capacity", "4014079").get("conflict", {})
    if conflict != {"buffers": ["conv1", "pool1"],
                    "bound": 3211264 + 802816, "irreducible": True}:
        wrong.append(f"resnet18: {conflict}")
    path = os.path.join(ROOT, "examples/placement/resnet18")
    made = subprocess.run([sys.executable, path + ".py"],
                          stdout=subprocess.PIPE, check=True).stdout
    with open(path + ".csv", "rb") as file:
        if file.read() != made:
            wrong.append("resnet18.csv is not what resnet18.py makes")
    return wrong


def main():
    long = "--long" in sys.argv[1:]
    networks = [n for n in sorted(glob.glob(ROOT + "/examples/*.prototxt"))
                if long or os.path.basename(n) not in SLOW]
    wrong, n, least = [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for network in networks:
            for target in TARGETS:
                plan = compile_for(network, target, folder)
                trouble = judge(network, target, plan)
                n += 1
                least += bool(plan and plan["am_proved"])
                if trouble:
                    wrong.append(trouble)
    wrong += resnet18()
    for trouble in wrong:
        print(trouble)
    print(f"{n} plans, {least} proved to be the least, {len(wrong)} wrong")
    return len(wrong) > 0


if __name__ == "__main__":
    sys.exit(main())
