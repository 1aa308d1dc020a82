#!/usr/bin/env python3
"""submit.py - shards of a sweep by GNU parallel, and by Slurm where there is one.

Points are those of the sweep in one go, whatever happens to shards: one is
killed and submitted again, one runs twice at once, one is done before. Without
GNU parallel the same is done by a shell loop over submit.sh's shards. With
--long Debian's Slurm is installed and started on this machine alone: a task
that runs is requeued, one is cancelled and all are submitted again.
"""
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
AMPHORA = os.environ.get("AMPHORA", os.path.join(ROOT, "build", "amphora"))
os.chdir(ROOT)
SWEEP = ["explore", "examples/tiny.prototxt", "-t", "xdnn-v2-28", "-t",
         "xdnn-v3-96", "--vary", "memories.am.size=64K:640K:32K"]
LARGE = SWEEP[:-1] + ["memories.am.size=64K:4M:8K"]  # seconds a shard
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


SLURM = """ClusterName=one
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""
DAEMONS = ("slurmd", "slurmctld", "munged")


class Cluster:
    """Slurm on one node, with files and ports of its own."""

    def __init__(self, folder):
        self.folder = folder
        for name in ("state", "spool"):
            os.makedirs(os.path.join(folder, name))
        os.chmod(folder, 0o755)
        key = os.path.join(folder, "munge.key")
        with open(key, "wb") as file:
            file.write(os.urandom(1024))
        os.chmod(key, 0o400)
        taken = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
        ports = [s.getsockname()[1] for s in taken]
        for s in taken:
            s.close()
        self.file = os.path.join(folder, "slurm.conf")
        with open(self.file, "w", encoding="utf-8") as file:
            file.write(SLURM.format(host=socket.gethostname(), ports=ports,
                                    folder=folder))

    def __enter__(self):
        munge = {"key-file": "munge.key", "socket": "munge.sock",
                 "pid-file": "munged.pid", "log-file": "munged.log",
                 "seed-file": "munge.seed"}
        run("munged", "--force", *(f"--{option}={self.folder}/{name}"
                                   for option, name in munge.items()))
        os.environ["SLURM_CONF"] = self.file
        run("slurmctld", "-f", self.file)
        run("slurmd", "-f", self.file)
        wait("the node", lambda: "idle" in run("sinfo", check=False).stdout)
        return self

    def __exit__(self, *_):
        run("scancel", "--user=root", check=False)
        for name in DAEMONS:
            path = os.path.join(self.folder, name + ".pid")
            if not os.path.exists(path):
                continue
            with open(path, encoding="utf-8") as file:
                process = int(file.read())
            os.kill(process, signal.SIGTERM)
            wait(name, lambda p=process: not os.path.exists(f"/proc/{p}"))
        del os.environ["SLURM_CONF"]


def wait(what, holds, seconds=300):
    for _ in range(seconds * 5):
        if holds():
            return
        time.sleep(.2)
    raise SystemExit(f"Slurm: waited for {what}: {run('squeue').stdout}")


def submitted(folder):
    """The numbers of the array job and of the one that merges."""
    said = run(AMPHORA, *LARGE, "-o", folder, "--submit", "slurm", "--shards",
               str(SHARDS)).stdout
    return [word.rstrip(":") for word in said.split()
            if word.rstrip(":").isdigit()][0:3:2]


def tasks_in(state):
    return run("squeue", "-h", "-r", "-t", state, "-o", "%A_%K").stdout.split()


def by_slurm(folder):
    """One task is requeued while it runs, one is cancelled: nothing is merged;
    submitted again, all is there."""
    array, merge = submitted(folder)
    wait("two tasks", lambda: len(tasks_in("R")) == 2)
    names = run("squeue", "-h", "-r", "-t", "R", "-o", "%F_%K").stdout.split()
    run("scontrol", "requeue", names[0])
    run("scancel", names[1])
    wait("the first submission", lambda: not run("squeue", "-h").stdout.strip())
    if os.path.exists(os.path.join(folder, "points.csv")):
        raise SystemExit("Slurm: merged although a shard was cancelled")
    done = run("sh", os.path.join(folder, "submit.sh"), "progress", folder,
               str(SHARDS)).stdout
    if f"{SHARDS - 1} of {SHARDS} shards" not in done:
        raise SystemExit(f"Slurm, jobs {array} and {merge}: {done}")
    submitted(folder)
    wait("the second submission",
         lambda: os.path.exists(os.path.join(folder, "points.csv")))
    wait("the end", lambda: not run("squeue", "-h").stdout.strip())


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
        if "--long" in sys.argv:
            run("sh", "-c", ". tools/setup.sh && install_packages "
                "$cluster_packages")
            large = os.path.join(top, "large")
            run(AMPHORA, *LARGE, "-o", large, "--reports", "none")
            folder = os.path.join(top, "it's slurm")
            with Cluster(os.path.join(top, "cluster")):
                by_slurm(folder)
            same("Slurm", folder, large)
            ways.append("Slurm: requeued, cancelled, submitted again")
    print("the points of one run: " + ", ".join(ways))
    return 0


if __name__ == "__main__":
    sys.exit(main())
