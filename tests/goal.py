#!/usr/bin/env python3
"""goal.py - searches of machines find what the whole grid has, by fewer compiles.

Each goal is searched, and its grid is swept and judged here. The best aim must
be the same, where it is a time as long as no machine was left that the noise
could make better; the points that were compiled are counted. What the next
better machine misses must be missed in the grid, too. Plans are chosen for what
the goal asks. --long: a grid of 2,000 points (85 s of processor).
"""
import json
import math
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
AMPHORA = os.environ.get("AMPHORA", os.path.join(ROOT, "build", "amphora"))
os.chdir(ROOT)
TINY, SQUEEZE = "examples/tiny.prototxt", "examples/squeezenet.prototxt"
NOISE = .04  # by which more memory may be slower
MACHINE = """extends: %s
machine: {name: priced}
costs:
  bram: {memories: {am: 1/4608}, base: 12}
  dsp: {lanes: {conv: 1}}
  uj: {products: {conv: 0.9e-6}, ddr: 20e-6, cycles: 1e-5}
"""


def amphora(*arguments):
    done = subprocess.run([AMPHORA, *arguments], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True)
    return done.returncode, done.stdout, done.stderr


class Grid:
    """All points of a sweep, by machine and network."""

    def __init__(self, machine, networks, varies, objective):
        self.objective = objective
        path, _, values = varies[-1].partition("=")
        self.last = f"{path}={values.split(',')[-1]}"
        self.arguments = [*networks, "-t", machine, "--objective", objective]
        for vary in varies:
            self.arguments += ["--vary", vary]
        code, out, errors = amphora("explore", *self.arguments, "--json")
        assert code == 0, errors
        self.machines = {}
        for point in json.loads(out)["points"]:
            key = json.dumps([point["target"], point["settings"]])
            network = os.path.splitext(os.path.basename(point["network"]))[0]
            self.machines.setdefault(key, {})[network] = point
        self.points = sum(len(m) for m in self.machines.values())

    @staticmethod
    def value(machine, figure):
        name, _, network = figure.rstrip(")").partition("(")
        cost = name.removeprefix("cost.") if name.startswith("cost.") else None

        def of(point):
            return point["costs"][cost] if cost else point[name]
        if network:
            return of(machine[network])
        values = [of(point) for point in machine.values()]
        return math.exp(sum(math.log(v) for v in values) / len(values))

    def best(self, limits, aim, maximise):
        """The aim of the best machine; None where there is none."""
        values = []
        for machine in self.machines.values():
            if any(p["status"] != "fits" for p in machine.values()):
                continue
            if all(self.value(machine, f) <= v for f, v in limits):
                values.append(self.value(machine, aim))
        if not values:
            return None
        return max(values) if maximise else min(values)


def search(grid, limits, aim, maximise=False, more=()):
    goal = ", ".join(f"{f} <= {v}" for f, v in limits)
    code, out, errors = amphora(
        "explore", *grid.arguments, "--goal", goal,
        "--maximise" if maximise else "--minimise", aim, "--json", *more)
    if code not in (0, 3):
        raise AssertionError(f"{goal}: exit {code}: {errors}")
    return code, json.loads(out)


def check_search(grid, limits, aim, maximise=False, most=1.0, near=1e-9):
    wanted = grid.best(limits, aim, maximise)
    code, said = search(grid, limits, aim, maximise)
    got = said["best"]["aim"] if "best" in said else None
    near = near if said["near"] else 1e-9
    same = wanted == got if wanted is None or got is None else \
        abs(got - wanted) <= near * abs(wanted)
    assert same and (code == 0) == (got is not None), \
        f"{limits} {aim}: {got}, the grid has {wanted}"
    share = said["tried"] / grid.points
    assert share <= most, f"{limits} {aim}: {said['tried']} of {grid.points}"
    assert said["objective"] == grid.objective, said
    if "next" in said and aim in ("cost.bram", "am_capacity_bytes"):
        # of machines of one cost the one with most of all else
        assert said["next"]["machine"].endswith(grid.last) or \
            "replication" in grid.last, (said, grid.last)
    if "next" in said and said["next"]["limits"]:
        assert any(x["value"] > x["limit"] for x in said["next"]["limits"]), said
    return said["tried"]


def between(grid, figure, share):
    """A limit that some machines meet."""
    values = sorted(grid.value(m, figure) for m in grid.machines.values()
                    if all(p["status"] == "fits" for p in m.values()))
    return values[int(share * (len(values) - 1))]


def objectives(machine):
    """What plans are chosen for, where nothing is said."""
    for goal, aim, wanted in (
            ("ms <= 9", "am_capacity_bytes", "time"),
            ("ddr_bytes <= 1e9", "am_capacity_bytes", "bytes"),
            ("ddr_bytes <= 1e9", "cycles", "time"),
            ("", "am_capacity_bytes", "balanced")):
        code, out, errors = amphora(
            "explore", TINY, "-t", machine, "--vary",
            "memories.am.size=64K,128K", "--goal", goal, "--minimise", aim,
            "--json")
        assert code == 0 and json.loads(out)["objective"] == wanted, (out, errors)


def nearest(machine):
    """Where no machine meets the goal, what the nearest one misses."""
    arguments = ["explore", TINY, "-t", machine, "--vary",
                 "memories.am.size=16K,32K,64K", "--goal",
                 "ms <= 1e-6, cost.bram <= 1000", "--minimise", "cost.bram"]
    code, out, _ = amphora(*arguments, "--json")
    said = json.loads(out)["nearest"]
    assert code == 3 and any(x["value"] > x["limit"] for x in said["limits"]), out
    code, out, _ = amphora(*arguments)
    assert code == 3 and f"nearest {said['machine']} would miss ms, " in out, out
    arguments[5] = "memories.am.size=1K,2K"
    code, out, _ = amphora(*arguments)
    assert code == 3 and ": tiny does not fit: step " in out, out


def mistakes(machine):
    for arguments, meant in (
            (["--goal", "ms <= 2", "--minimise", "cost.bran"], "cost.bram"),
            (["--goal", "ms(tyni) <= 2", "--minimise", "ms"], "tiny"),
            (["--goal", "ms < 2", "--minimise", "ms"], "no limit"),
            (["--goal", "ms <= x", "--minimise", "ms"], "no number"),
            (["--goal", "ms <= 2"], "--minimise"),
            (["--minimise", "ms"], "--goal"),
            (["--goal", "ms(tiny <= 2", "--minimise", "ms"], "no figure")):
        code, _, errors = amphora("explore", TINY, "-t", machine, *arguments)
        assert code in (1, 2) and meant in errors, (arguments, code, errors)
    code, _, errors = amphora("explore", TINY, "-t", "xdnn-v2-28", "--goal",
                              "ms <= 2", "--minimise", "cost.bram")
    assert code == 2 and "has no `costs`" in errors, errors
    code, out, _ = amphora("explore", TINY, "-t", machine, "--vary",
                           "memories.am.size=64K,128K,256K,512K", "--goal",
                           "ms <= 1000", "--minimise", "am_capacity_bytes",
                           "--most-points", "1")
    assert code in (0, 3) and "--most-points" in out, out


def main():
    long = "--long" in sys.argv
    with tempfile.TemporaryDirectory() as folder:
        machine = os.path.join(folder, "priced.yaml")
        with open(machine, "w", encoding="utf-8") as file:
            file.write(MACHINE % "xdnn-v2-28")
        mistakes(machine)
        nearest(machine)
        objectives(machine)
        sizes = "memories.am.size=" + ",".join(
            f"{n}KiB" for n in range(32, 32 + 16 * (100 if long else 24), 16))
        rates = "memories.ddr.bandwidth=" + ",".join(
            f"{n}GB/s" for n in range(2, 22 if long else 10))
        tried = points = 0
        grids = [(Grid(machine, [TINY], [sizes, rates], "time"), "tiny", .1),
                 (Grid(machine, [TINY, SQUEEZE], [
                     "memories.am.size=512K:4M:512K", "replication=off,safe"],
                       "time"), "squeezenet", .8)]
        for grid, network, most in grids:
            for share in (.3, .6):
                limit = between(grid, f"ms({network})", share)
                tried += check_search(grid, [(f"ms({network})", limit)],
                                      "cost.bram", most=most)
                tried += check_search(
                    grid, [("cost.bram", between(grid, "cost.bram", share))],
                    "ms", most=most, near=NOISE)
                tried += check_search(
                    grid, [(f"ms({network})", limit), ("cost.dsp", 1e6)],
                    "am_capacity_bytes", most=most)
                points += 3 * grid.points
            tried += check_search(grid, [(f"ms({network})", 1e-9)],
                                  "cost.bram", most=most)
            points += grid.points
            print(f"{network}: a grid of {grid.points} points", flush=True)
        # no fact helps: the whole grid, which is a small one
        grid = Grid(machine, [TINY], ["memories.ddr.bandwidth=2GB/s,4GB/s,8GB/s",
                                      "memories.am.size=32K:256K:32K"], "time")
        check_search(grid, [], "cost.uj")
        check_search(grid, [("cost.uj", between(grid, "cost.uj", .5))],
                     "am_peak_bytes", maximise=True)
        print(f"{tried} of {points} points compiled")
    return 0


if __name__ == "__main__":
    sys.exit(main())
