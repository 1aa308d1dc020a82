#!/usr/bin/env python3
"""imports.py - descriptions of DPUs by Vitis AI become machines.

A description written here, as small as can be: its hwspec is right, networks
are verified on it, and what is wrong in a description is said at its place.
Where the 28 public ones are at hand, each is imported, and networks are verified
on some.
"""
import glob
import os
import subprocess
import sys
import tempfile

AMPHORA = os.path.abspath(os.environ.get("AMPHORA", "build/amphora"))
PUBLIC = "../shared/data/dpu/*.prototxt"
NETWORKS = ("tiny", "micro/resnet8", "mobilenet-v2")
SOME = ("ISA0_B512_MIN", "ISA1_B1600", "ISA1_B4096")

BANKS = """bank_group {{ name: "{name}" type: "{kind}" base_id: {id}
  bank_num: {n} bank_width: 6 bank_depth: {depth} }}
"""
ENGINE = """{name} {{ {more} pixel_parallel: 2
  input_bank: "VB0" input_bank: "VB1" output_bank: "VB0" output_bank: "VB1"
  nonlinear {{ nonlinear_type: relu }} }}
"""


def description():
    text = 'name: "OURS_B144" type: "DPU"\n'
    for name, kind, id_, n, depth in (("VB0", "Virtual", 0, 2, 4096),
                                      ("VB1", "Virtual", 2, 2, 4096),
                                      ("CONVW", "Param", 4, 6, 2048),
                                      ("BIAS", "Param", 10, 1, 64)):
        text += BANKS.format(name=name, kind=kind, id=id_, n=n, depth=depth)
    text += ENGINE.format(
        name="conv_engine",
        more="input_channel_parallel: 6 output_channel_parallel: 6 "
        'conv_limit { kernel_size: "1-7" stride: "1-4" }')
    text += ENGINE.format(name="eltwise_engine",
                          more="channel_parallel: 6 elew_type: add")
    text += ENGINE.format(
        name="pool_engine",
        more="channel_parallel: 6 pool_type: max pool_type: avg "
        'pool_type: max_reduce max_limit { kernel_size: "1-8" stride: "1-8" } '
        'avg_limit { kernel_size: "2-8" stride: "1-8" }')
    return text


BAD = (
    ("relu", "swish", "`swish` is no nonlinear_type that is known"),
    ('"1-7"', '"7-1"', "`7-1` is not a range such as 1-16"),
    ("bank_num: 2", "bank_num: 3", "3 banks of 6 bytes hold no 2 rows of 6"),
    ("elew_type: add", "elew_type: xor", "`xor` is no elew_type"),
    ("conv_engine", "dw_engine", "has `name` and `conv_engine`"),
    ("bank_depth: 4096", "", "`bank_depth` is missing"),
    ("{", "", "error"),
)


def run(*args):
    return subprocess.run([AMPHORA, *args], capture_output=True, text=True,
                          timeout=600)


def imported(folder, path):
    out = os.path.join(folder, "machine.yaml")
    done = run("import", path, "-o", out)
    if done.returncode or not os.path.exists(out):
        return None, [f"{path}: {done.stdout}{done.stderr}"]
    return out, []


def verified(machine, name):
    done = run("verify", f"examples/{name}.prototxt", "-t", machine)
    if done.returncode or "0 violations" not in done.stdout:
        return [f"{name} on {machine}: {done.stdout}{done.stderr}"]
    return []


def refused(folder):
    wrong = []
    for old, new, message in BAD:
        path = os.path.join(folder, "bad.prototxt")
        assert old in description()
        with open(path, "w", encoding="utf-8") as file:
            file.write(description().replace(old, new, 1))
        done = run("import", path, "-o", os.path.join(folder, "bad.yaml"))
        if done.returncode != 1 or message not in done.stderr or (
                "bad.prototxt:" not in done.stderr):
            wrong.append(f"{new!r}: {done.stdout}{done.stderr}")
        if os.path.exists(os.path.join(folder, "bad.yaml")):
            wrong.append(f"{new!r}: a machine was written")
    return wrong


def main():
    public = sorted(glob.glob(PUBLIC))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "ours.prototxt")
        with open(path, "w", encoding="utf-8") as file:
            file.write(description())
        machine, wrong = imported(folder, path)
        for name in NETWORKS[:2] if machine else ():
            wrong += verified(machine, name)
        wrong += refused(folder)
        for path in public:
            machine, bad = imported(folder, path)
            wrong += bad
            if machine and any(f"_{one}." in path for one in SOME):
                for name in NETWORKS:
                    wrong += verified(machine, name)
    for one in wrong:
        print(one)
    print(f"imports.py: {1 + len(public)} descriptions, {len(BAD)} bad ones, "
          f"{len(wrong)} wrong")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
