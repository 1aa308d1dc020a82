#!/usr/bin/env python3
"""farm.py - random networks on random machines; the next mistakes, found here.

Each point is a network (tests/farm/networks.py) and a machine (machines.py); all
of tests/farm/checks.py must hold: the listing computes what the network does, as
verify says and when what was written is run again; where nothing fits, the size
that would do does; figures are what is counted; the same bytes each time;
commands end with a known code in bounded time and memory. What fails is made
smaller (shrink.py) and written to out/farm as a pair of files. Those that were
repaired are in tests/farm/cases, and replayed first; one whose JSON says `open`
is known to fail, and told where it does not.

usage: farm.py [--points N] [--seed S] [--only KIND] [--point K] [--long]
               [--minutes M] [--jobs J] [--keep FOLDER] [--out FOLDER] [--first]
               [CASE.json...]
--long: 5,000 points of a seed from the clock. --point: that one alone.
--keep: where the files of the points stay. --first: ends with the first one
that is wrong, as it is.
"""
import argparse
import collections
import concurrent.futures
import os
import random
import shutil
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from farm import (checks, graphs, machines, networks, shrink,  # noqa: E402
                  variety)

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "farm")
CASES = os.path.join(HERE, "cases")
SHORT = 4  # seconds that are endless, too, but with --long
POINTS, LONG_POINTS, SEED = 70, 5000, 1
ORDERS = ((), ("--order", "best"), ("--order", "random"), ("--order", "dfs"))
OPTIONS = ((), (), (), ("--replication", "off"), ("--replication", "best"),
           ("--planner", "greedy_by_size"), ("--planner", "hill_climb"),
           ("--planner", "first_fit"), ("--planner", "exact"),
           ("--mode", "throughput"), ("--images", "2"), ("--seed", "7"),
           ("--order", "best", "--objective", "bytes"),
           ("--order", "best", "--objective", "time"))
PAGES = (("compile", "--explain"), ("compile", "--explain"),
         ("compile", "--dump", "all"), ("compile", "--print-passes"),
         ("compile", "--report", "page.html"), ("show",),
         ("compile", "--trace", "trace.json"), ("show", "--orders"),
         ("compile", "--emit", "problem"))


def prepared(folder):
    """A folder for files of points."""
    points = os.path.join(folder, "points")
    os.makedirs(points, exist_ok=True)
    shutil.copy(os.path.join(HERE, "full.yaml"), folder)
    graphs.write_weights(points)
    return points


def made(seed, k):
    """Network, machine, options, and what else the farm decides."""
    dice = random.Random(f"{seed}/{k}")
    net = networks.network(dice)
    machine = machines.machine(dice, net)
    more = random.Random(f"{seed}/{k}/varied")
    net, machine = variety.varied(more, net, machine)
    options = list(dice.choice(ORDERS if dice.random() < 0.3 else OPTIONS))
    farm = {"data": net["data"], "further": checks.further_of(f"p{k}")}
    if dice.random() < 0.04:
        farm["native"] = True
    if net["data"] == "file" and dice.random() < 0.7:
        farm["onnx"] = True
    if dice.random() < 0.2:
        farm["pages"] = [list(dice.choice(PAGES))]
    return net, machine, options, farm


def written(folder, name, net, machine, farm):
    for suffix, text in ((".json", graphs.as_json(net, farm)),
                         (".yaml", machines.as_yaml(machine))):
        with open(os.path.join(folder, name + suffix), "w",
                  encoding="ascii") as file:
            file.write(text)


def swept(folder, name):
    for found in os.listdir(folder):
        if found.startswith(name + "."):
            path = os.path.join(folder, found)
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)


def one(seed, k, folder, only, keep):
    """(point, Wrong or None, compiled, what is silent)"""
    net, machine, options, farm = made(seed, k)
    name = f"p{k}"
    written(folder, name, net, machine, farm)
    point = checks.Point(folder, name, options, farm)
    wrong, compiled = checks.judge(point, only)
    if not keep:
        swept(folder, name)
    return (k, (wrong.kind, wrong.text) if wrong else None, compiled,
            point.farm.get("silent"))


# ---- what fails becomes small ----

def smaller(seed, k, kind, text, folder, out):
    """The path of a pair of files, as small as it gets."""
    net, machine, options, farm = made(seed, k)
    signature = checks.Wrong(kind, text).signature()
    name = f"s{k}"
    checks.CPU_SECONDS = min(SHORT, checks.CPU_SECONDS)

    def judged(a, b, how):
        swept(folder, name)
        written(folder, name, a, b, farm)
        wrong, _ = checks.judge(checks.Point(folder, name, how, dict(farm)))
        return wrong

    def fails(a, b, how=None):
        wrong = judged(a, b, options if how is None else how)
        return wrong is not None and wrong.signature() == signature
    if fails(net, machine, []):
        options = []
    net, machine = shrink.shrunk(net, machine, fails)
    last = judged(net, machine, options)
    swept(folder, name)
    farm = {key: value for key, value in farm.items()
            if (key, value) != ("data", "seeded")}
    farm["data"] = net["data"]
    farm["from"] = f"--seed {seed} --point {k}"
    if options:
        farm["options"] = options
    base = f"{kind}-{seed}-{k}"
    os.makedirs(out, exist_ok=True)
    written(out, base, net, machine, farm)
    return os.path.join(out, base), str(last)


def report(found, seed, folder, out, jobs):
    """Shrinks one of each kind, and says how to see it again."""
    groups = collections.defaultdict(list)
    for k, wrong in found:
        groups[checks.Wrong(*wrong).signature()].append((k, wrong))
    with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
        running = {pool.submit(smaller, seed, same[0][0], *same[0][1], folder,
                               out): same for same in groups.values()}
        for done in concurrent.futures.as_completed(running):
            same = running[done]
            k, wrong = same[0]
            print(f"WRONG {wrong[0]}: {wrong[1]}\n  {len(same)} points, the "
                  f"first: python3 tests/farm.py --seed {seed} --point {k} "
                  "--keep out/farm")
            try:
                path, last = done.result()
                print(f"  smaller: {path}.json, .yaml: {last}", flush=True)
            except Exception as error:  # a mistake of the farm's own
                print(f"  not made smaller: {error!r}", flush=True)


# ---- cases ----

def replayed(path, folder):
    """(name, what is wrong, what is open)"""
    name = os.path.basename(path)[:-len(".json")]
    with open(path, encoding="ascii") as file:
        text = file.read()
    net, farm = graphs.from_json(text)
    graphs.shapes_of(net)
    shutil.copy(path, folder)
    shutil.copy(path[:-len("json")] + "yaml", folder)
    point = checks.Point(folder, name, farm.get("options", []), farm)
    wrong, _ = checks.judge(point)
    return name, wrong and str(wrong), farm.get("open")


def cases(paths, folder, jobs):
    """How many do not hold."""
    bad = still = 0
    with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
        for name, wrong, is_open in pool.map(replayed, paths,
                                             [folder] * len(paths)):
            if is_open and not wrong:
                print(f"case {name} holds: `open` can go ({is_open})")
            elif is_open:
                still += 1
            elif wrong:
                bad += 1
                print(f"WRONG case {name}: {wrong}")
    print(f"{len(paths)} cases, {bad} wrong, {still} open")
    return bad


# ---- points ----

def points(which, seed, folder, options):
    """(points that failed, counts)"""
    counts, found = collections.Counter(), []
    end = time.monotonic() + 60 * options.minutes if options.minutes else None
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        batch = (10 if options.first else 50) * options.jobs
        for first in range(0, len(which), batch):
            if end and time.monotonic() > end or options.first and found:
                break
            running = [pool.submit(one, seed, k, folder, options.only,
                                   options.keep)
                       for k in which[first:first + batch]]
            for done in running:
                k, wrong, compiled, silent = done.result()
                counts["points"] += 1
                counts["compiled"] += compiled
                counts["refused"] += not compiled
                counts["silent"] += bool(silent)
                if wrong:
                    counts["wrong"] += 1
                    found.append((k, wrong))
                    print(f"point {k}: {wrong[0]}: {wrong[1][:200]}",
                          flush=True)
    return found, counts


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--points", type=int)
    parser.add_argument("--seed")
    parser.add_argument("--only", choices=list(checks.CHECKS))
    parser.add_argument("--point", type=int)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--first", action="store_true")
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep")
    parser.add_argument("--out", default=os.path.join("out", "farm"))
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args()
    if options.seed is None:
        options.seed = int(time.time()) if options.long else SEED
    if options.points is None:
        options.points = LONG_POINTS if options.long else POINTS
    return options


def main():
    options = parsed()
    which = list(range(options.points))
    if not options.long:
        checks.CPU_SECONDS = SHORT
    if options.point is not None:
        which = [options.point]
    paths = options.cases or sorted(
        os.path.join(CASES, name) for name in os.listdir(CASES)
        if name.endswith(".json"))
    with tempfile.TemporaryDirectory() as temporary:
        folder = prepared(options.keep or temporary)
        bad = 0
        if options.point is None:
            bad = cases(paths, folder, options.jobs)
        if options.cases or bad and options.first:
            return bad > 0
        print(f"seed {options.seed}", flush=True)
        found, counts = points(which, options.seed, folder, options)
        if found and not options.first:
            report(found, options.seed, folder, options.out, options.jobs)
        print(", ".join(f"{counts[name]} {name}" for name in (
            "points", "compiled", "refused", "silent", "wrong")))
    return bad > 0 or counts["wrong"] > 0


if __name__ == "__main__":
    sys.exit(main())
