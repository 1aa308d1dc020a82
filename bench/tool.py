"""tool.py - how the benches run amphora, and what they ask of every answer.

A plan is what `compile --json` says of it; a run is what `simulate --json`
counts by running the plan's listing, without values. Bytes that are printed are
those of runs. AMPHORA names another binary than build/amphora.
"""
import json
import math
import os
import resource
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
AMPHORA = os.environ.get("AMPHORA", os.path.join(ROOT, "build/amphora"))
DOES_NOT_FIT = 3
BYTES_ALONE = {"rows.yaml"}
ENDLESS = 1 << 30  # bytes of active memory in which nothing is short


def run(*args):
    return subprocess.run([AMPHORA, *args], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False)


def example(name):
    return os.path.join(ROOT, "examples", name + ".prototxt")


def name_of(path):
    return os.path.basename(path).rsplit(".", 1)[0]


def objective_of(machine, objective=None):
    """Machines of the benches whose bytes alone are asked for."""
    if not objective and os.path.basename(machine) in BYTES_ALONE:
        objective = "bytes"
    return ["--objective", objective] if objective else []


def flags(sets):
    return [word for one in sets for word in ("--set", one)]


def am(size):
    return f"memories.am.size={size}"


def cpu_seconds():
    """Of all children so far: what waits for other programs does not count."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def compiled(network, machine, folder, *sets, images=1, objective=None,
             more=()):
    """The plan, with the CPU seconds that it took in all; None where it does
    not fit."""
    before = cpu_seconds()
    done = run("compile", network, "-t", machine, "-o", folder, "--json",
               "--images", str(images), *flags(sets),
               *objective_of(machine, objective), *more)
    if done.returncode == DOES_NOT_FIT:
        return None
    if done.returncode:
        sys.exit(done.stderr)
    plan = json.loads(done.stdout)
    plan["cpu_seconds"] = cpu_seconds() - before
    return plan


def simulated(plan, machine, *sets):
    """The run of a plan's listing, with the bytes over DDR in it. Ends the
    program where the listing is wrong, or moves other than the plan says."""
    done = run("simulate", plan["listing"], "-t", machine, "--json",
               "--memory-only", *flags(sets))
    what = f"{plan['network']} {machine} {' '.join(sets)}"
    if not done.stdout:
        sys.exit(f"{what}: {done.stderr}")
    sim = json.loads(done.stdout)
    if sim["violations"]:
        sys.exit(f"{what}: {sim['violation_list']}")
    sim["plan"] = plan
    sim["moved"] = sim["ddr_read_bytes"] + sim["ddr_written_bytes"]
    if sim["moved"] != plan["ddr_moved_bytes"]:
        sys.exit(f"{what}: the plan says {plan['ddr_moved_bytes']} bytes, "
                 f"simulated {sim['moved']}")
    sim["extra"] = sim["moved"] - sim["ddr_compulsory_bytes"]
    return sim


def counted(network, machine, folder, *sets, images=1, objective=None):
    """The run of the network's plan; None where it does not fit."""
    plan = compiled(network, machine, folder, *sets, images=images,
                    objective=objective)
    return plan and simulated(plan, machine, *sets)


def verified(network, machine, *sets, objective=None, more=()):
    """What `verify --json` says; None where it does not fit. Ends the program
    where a value is wrong."""
    done = run("verify", network, "-t", machine, "--json", *flags(sets),
               *objective_of(machine, objective), *more)
    if done.returncode == DOES_NOT_FIT:
        return None
    if done.returncode:
        sys.exit(f"{network} {machine} {sets}: {done.stderr}{done.stdout}")
    return json.loads(done.stdout)


def listing_rows(path):
    """Instructions of a text listing: {name of a field: text}, with the
    mnemonic as `op`."""
    fields, rows = {}, []
    with open(path, encoding="utf-8") as text:
        for line in text:
            words = line.split(" # ")[0].split()
            if line.startswith("# template "):
                fields[words[2]] = words[3:]
            elif words and not line.startswith("#"):
                # the mnemonic is the first word, or follows a number
                op = words[0] if words[0] in fields else words[1]
                of = [f for f in fields.get(op, []) if f not in ("op", "XNOp")]
                rest = [w for i, w in enumerate(words)
                        if i != words.index(op)]
                rows.append({"op": op, **dict(zip(of, rest))})
    return rows


def geometric_mean(ratios, floor=0.01):
    """Ratios below the floor count as that: 0 has no logarithm."""
    if not ratios:
        return math.nan
    return math.exp(sum(math.log(max(r, floor)) for r in ratios) / len(ratios))
