#!/usr/bin/env python3
"""explore.py - sweeps that are spread, killed, resumed and merged.

The same files come out whatever the number of processes; a sweep that was
killed half-way and resumed, and shards that were merged, give them too. Points
that differ in the size of a memory, which share what their plans found out, are
each what they are alone.
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
NET = "examples/squeezenet.prototxt"
SWEEP = [NET, "-t", "xdnn-v3-96", "--vary", "memories.am.size=512K:6M:768K",
         "--vary", "replication=off,safe"]
FILES = ("points.jsonl", "points.csv", "index.html")
problems = []


def explore(*arguments, code=0):
    done = subprocess.run([AMPHORA, "explore", *arguments],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, check=False)
    if done.returncode != code:
        problems.append("explore %s: exit %d\n%s" % (
            " ".join(arguments), done.returncode, done.stderr.decode()))
    return done


def read(folder, name):
    with open(os.path.join(folder, name), "rb") as file:
        return file.read()


def same(what, a, b):
    for name in FILES:
        if read(a, name) != read(b, name):
            problems.append(f"{what}: {name} differs")


def linked(folder):
    """Rows lead to reports that are there, and to nothing else."""
    links = set(re.findall(r'"report":"(.*?)"',
                           read(folder, "index.html").decode()))
    there = {f"reports/{name}"
             for name in os.listdir(os.path.join(folder, "reports"))}
    if not links or links != there:
        problems.append(f"{len(links)} links, {len(there)} reports")


def killed(folder):
    """A run killed behind its first points; the lines that it has left."""
    run = subprocess.Popen([AMPHORA, "explore", *SWEEP, "--jobs", "2",
                            "-o", folder], stdout=subprocess.DEVNULL,
                           start_new_session=True)
    path = os.path.join(folder, "points.jsonl")
    for _ in range(3000):
        if os.path.exists(path) and os.path.getsize(path) > 2000:
            break
        time.sleep(0.01)
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    with open(path, "ab") as file:
        file.write(b'{"point":3,"na')  # what a full disk or a crash leaves
    return path


SIZES = {"xdnn-v2-28": ("448KiB", "640KiB", "1MiB", "1280KiB"),
         "ring-npu": ("96KiB", "112KiB", "128KiB")}


def sizes(target, values):
    done = explore(NET, "-t", target, "--jobs", "1", "--json", "--vary",
                   "memories.am.size=" + ",".join(values))
    points = json.loads(done.stdout)["points"]
    for point in points:
        del point["point"]
    return points


def alone():
    """Points that share and points alone; how many, and how many fit."""
    n = fit = 0
    for target, values in SIZES.items():
        together = sizes(target, values)
        for value, point in zip(values, together):
            if sizes(target, [value]) != [point]:
                problems.append(f"{target} with {value} is not as alone")
            n += 1
            fit += point["status"] == "fits"
    if fit < n // 2:
        problems.append(f"only {fit} of {n} sizes fit")
    return n


def main():
    shared = alone()
    with tempfile.TemporaryDirectory() as top:
        def at(name):
            return os.path.join(top, name)
        explore(*SWEEP, "--jobs", "1", "-o", at("one"))
        explore(*SWEEP, "--jobs", "3", "-o", at("three"))
        same("3 processes", at("one"), at("three"))
        linked(at("one"))
        path = killed(at("killed"))
        left = read(at("killed"), "points.jsonl").count(b"\n")
        whole = read(at("one"), "points.jsonl").count(b"\n")
        if not 0 < left < whole:
            problems.append(f"killed with {left} of {whole} points")
        explore(*SWEEP, "--resume", path, "-o", at("killed"))
        same("killed and resumed", at("one"), at("killed"))
        shards = []
        for i in (1, 2, 3):
            explore(*SWEEP, "--shard", f"{i}/3", "-o", at(f"s{i}"))
            shards.append(at(f"s{i}/points.jsonl"))
        explore("--merge", *shards, "-o", at("merged"))
        same("merged", at("one"), at("merged"))
        done = explore(NET, "-t", "xdnn-v2-28", "--resume", path, code=1)
        if b"of another sweep or network" not in done.stderr:
            problems.append("resumed with another sweep")
    print("\n".join(problems) if problems else
          f"{whole} points: alike by 1 and 3 processes, killed behind {left} "
          f"and resumed, in 3 shards; {shared} sizes as alone")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
