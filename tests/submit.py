#!/usr/bin/env python3
"""submit.py - shards of a sweep by GNU parallel, and by Slurm where there is one.

Points are those of the sweep in one go, whatever happens to shards: one is
killed and submitted again, one runs twice at once, one is done before. Without
GNU parallel the same is done by a shell loop over submit.sh's shards.
"""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
AMPHORA = os.environ.get("AMPHORA", os.path.join(ROOT, "build", "amphora"))
os.chdir(ROOT)
SWEEP = ["explore", "examples/tiny.prototxt", "-t", "xdnn-v2-28", "-t",
         "xdnn-v3-96", "--vary", "memories.am.size=64K:640K:32K"]
FILES = ("points.jsonl", "points.csv")
SHARDS = 5


def read(folder, name):
    with open(os.path.join(folder, name), "rb") as file:
        return file.read()


def same(what, folder, whole):
    for name in FILES:
        if read(folder, name) != read(whole, name):
            raise SystemExit(f"{what}: {name} is not that of one run")


def run(*command, check=True):
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if check and done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}")
    return done


def prepared(folder):
    """What `--submit` writes, with a `parallel` that runs nothing."""
    bin_folder = folder + ".bin"
    os.makedirs(bin_folder)
    fake = os.path.join(bin_folder, "parallel")
    with open(fake, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\ncat >/dev/null\n")
    os.chmod(fake, 0o755)
    path = os.environ["PATH"]
    os.environ["PATH"] = bin_folder + ":" + path
    done = run(AMPHORA, *SWEEP, "-o", folder, "--submit", "parallel",
               "--shards", str(SHARDS), check=False)
    os.environ["PATH"] = path
    if done.returncode != 1 or "is not done" not in done.stdout:
        raise SystemExit(f"merged without shards: {done.stdout}")
    return ["sh", os.path.join(folder, "submit.sh")]


def hardships(folder):
    submit = prepared(folder)
    part = [folder, str(SHARDS)]
    # killed in the middle: the next one goes on
    victim = subprocess.Popen([*submit, "shard", *part, "1"],
                              start_new_session=True)
    for _ in range(400):
        lines = sum(len(open(os.path.join(path, "points.jsonl"), "rb").readlines())
                    for path, _, files in os.walk(os.path.join(folder, "shards"))
                    if "points.jsonl" in files)
        if lines or victim.poll() is not None:
            break
        time.sleep(.005)
    if victim.poll() is None:
        os.killpg(victim.pid, signal.SIGKILL)
    victim.wait()
    # two of the same at once
    twice = [subprocess.Popen([*submit, "shard", *part, "2"]) for _ in range(2)]
    if any(p.wait() for p in twice):
        raise SystemExit("a shard that runs twice fails")
    said = run(*submit, "progress", *part).stdout
    if f"of {SHARDS} shards" not in said or "points" not in said:
        raise SystemExit(said)
    for i in range(1, SHARDS + 1):
        run(*submit, "shard", *part, str(i))
    run(*submit, "shard", *part, "3")
    run(*submit, "merge", *part)


def by_slurm(folder):
    run(AMPHORA, *SWEEP, "-o", folder, "--submit", "slurm", "--shards",
        str(SHARDS))
    for _ in range(600):
        if os.path.exists(os.path.join(folder, "points.csv")):
            return
        time.sleep(.5)
    raise SystemExit(f"Slurm: nothing in {folder}: {os.listdir(folder)}")


def main():
    ways = ["killed, twice, again"]
    with tempfile.TemporaryDirectory() as top:
        whole = os.path.join(top, "whole")
        run(AMPHORA, *SWEEP, "-o", whole, "--reports", "none")
        hard = os.path.join(top, "it's hard")
        hardships(hard)
        same("shards one by one", hard, whole)
        if shutil.which("parallel"):
            folder = os.path.join(top, "parallel")
            run(AMPHORA, *SWEEP, "-o", folder, "--submit", "parallel",
                "--shards", str(SHARDS))
            same("parallel", folder, whole)
            ways.append("GNU parallel")
        if shutil.which("sbatch") and not run("sinfo", check=False).returncode:
            folder = os.path.join(top, "slurm")
            by_slurm(folder)
            same("Slurm", folder, whole)
            ways.append("Slurm")
    print("the points of one run: " + ", ".join(ways))
    return 0


if __name__ == "__main__":
    sys.exit(main())
