#!/usr/bin/env python3
"""pages.py - the pages of reports and sweeps, worked with in headless Chromium.

Selection in all pictures, zoom, keys, sorting, searching, brushing, means,
comparisons, CSV; three widths, dark and light, contrast; a report of 5,000
instructions and a sweep of 2,000 points. Chromium is Debian's; playwright-core
is fetched by npm into out/pages. With --long both are installed where missing;
without it the test needs them, and says where it has not run. What a report
costs is measured in any case: at most twice the compile.

--shots FOLDER keeps screenshots.
"""
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile

from accumulators import OUTER

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
AMPHORA = os.environ.get("AMPHORA", os.path.join(ROOT, "build", "amphora"))
MODULES = os.environ.get("PAGES_NODE", os.path.join(ROOT, "out", "pages"))
POINTS = 2000
os.chdir(ROOT)


def run(*command):
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}")
    return done.stdout


def user_seconds(*command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(*command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime


def report(folder, name, network, machine, *more):
    path = os.path.join(folder, name + ".html")
    run(AMPHORA, "compile", network, "-t", machine, "-o", folder, "--report",
        path, *more)
    return path


def memories(folder):
    """Each memory on chip has its picture: those of volumes, weights, biases and
    sums."""
    outer = os.path.join(folder, "outer.yaml")
    with open(outer, "w", encoding="utf-8") as file:
        file.write(OUTER)
    path = report(folder, "memories", "examples/tiny.prototxt", outer)
    with open(path, encoding="utf-8") as file:
        data = json.loads(re.search(r'id="data"[^>]*>(.*?)</script>',
                                    file.read(), re.S).group(1))
    titles = {m["name"]: m["title"] for m in data["memories"]}
    wanted = {"inp": "Active memory", "acc": "Active memory",
              "wgt": "Memory of weights", "bias": "Memory of biases",
              "outer": "Memory of sums"}
    if titles != wanted:
        raise SystemExit(f"memories of a page: {titles}")
    for memory in data["memories"]:
        ends = [v[5] for v in data["volumes"] if v[3] == memory["id"]]
        used = ends or memory["name"] == "inp"
        if not used or max(ends, default=0) > memory["size"]:
            raise SystemExit(f"{memory}: volumes end at {ends}")


def costs(folder):
    """The least of three of each, since others use the processor."""
    command = [AMPHORA, "compile", "examples/yolov2-608.prototxt", "-t",
               "xdnn-v2-28", "-o", folder]
    page = os.path.join(folder, "cost.html")
    plain = min(user_seconds(*command) for _ in range(3))
    both = min(user_seconds(*command, "--report", page) for _ in range(3))
    print(f"YOLOv2: compile {plain:.3f} s, with a report {both:.3f} s")
    if both > 2 * plain:
        raise SystemExit("a report costs more than twice the compile")


def pieces(folder):
    """What comes in pieces is one node, in front of what reads it."""
    path = report(folder, "pieces", "examples/vgg-e-stem.prototxt",
                  "xdnn-v2-28", "--set", "memories.am.size=256KiB")
    with open(path, encoding="utf-8") as file:
        data = re.search(r"<script[^>]*json[^>]*>(.*?)</script>", file.read(),
                         re.DOTALL).group(1)
    seen, nodes = set(), json.loads(data)["layers"]
    for node in nodes:
        if (node["type"], node["name"]) in seen:
            raise SystemExit(f"two nodes for {node['name']}")
        seen.add((node["type"], node["name"]))
        for bottom in node["bottoms"]:
            if all(bottom != name for _, name in seen):
                raise SystemExit(f"{node['name']} has no {bottom} before it")
    if nodes[0]["name"] != "image" or len(nodes) > 20:
        raise SystemExit(f"{len(nodes)} nodes, the first {nodes[0]['name']}")


def many_points(folder):
    """2,000 points out of few: their figures are made up, the lines are not."""
    out = os.path.join(folder, "few")
    run(AMPHORA, "explore", "examples/tiny.prototxt",
        "examples/squeezenet.prototxt", "-t", "xdnn-v2-28", "-t", "xdnn-v3-96",
        "--vary", "memories.am.size=" + ",".join(f"{n}KiB" for n in range(1000, 1500)),
        "--shard", "1/500", "-o", out)
    with open(os.path.join(out, "points.jsonl"), encoding="utf-8") as file:
        some = [json.loads(line) for line in file]
    lines = []
    for i in range(POINTS):
        point = dict(some[i * len(some) // POINTS])
        size = f"{1000 + i % 500}KiB"
        point["name"] = point["name"].replace("1000KiB", size)
        point["settings"] = {"memories.am.size": size}
        point["point"] = i
        if point["status"] == "fits":
            change = 1 + (i * 7919 % 997) / 997
            point["cycles"] = int(point["cycles"] * change)
            point["ms"] *= change
            point["am_peak_bytes"] += i * 104729 % 500000
        lines.append(json.dumps(point))
    path = os.path.join(folder, "many.jsonl")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    sweep = os.path.join(folder, "sweep")
    run(AMPHORA, "explore", "--merge", path, "-o", sweep, "--reports", "none")
    return os.path.join(sweep, "index.html")


def has_tools(long):
    if long:
        run("sh", "-c", ". tools/setup.sh && install_packages $page_packages && "
            "install_node")
        if not os.path.isdir(os.path.join(MODULES, "node_modules")):
            os.makedirs(MODULES, exist_ok=True)
            run("npm", "install", "--silent", "--prefix", MODULES,
                "playwright-core@1.65.1")
    return (shutil.which("chromium") and shutil.which("node") and
            os.path.isdir(os.path.join(MODULES, "node_modules",
                                       "playwright-core")))


def main():
    shots = None
    if "--shots" in sys.argv:
        shots = os.path.abspath(sys.argv[sys.argv.index("--shots") + 1])
        os.makedirs(shots, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        memories(folder)
        costs(folder)
        pieces(folder)
        if not has_tools("--long" in sys.argv):
            print("2 passed, 0 failed; not in a browser: --long installs one")
            return 0
        pages = [report(folder, "report", "examples/googlenet.prototxt",
                        "xdnn-v2-28", "--set", "memories.am.size=2MiB"),
                 report(folder, "large", "examples/yolov2-608.prototxt",
                        "dpuczdx8g-b4096"),
                 many_points(folder)]
        done = subprocess.run(
            ["node", os.path.join(ROOT, "tests", "pages.mjs"),
             shutil.which("chromium"), *pages] + ([shots] if shots else []),
            check=False, cwd=MODULES)
        return done.returncode


if __name__ == "__main__":
    sys.exit(main())
