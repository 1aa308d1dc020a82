#!/usr/bin/env python3
"""imports.py - descriptions of DPUs by Vitis AI become machines.

A description written here, as small as can be: its hwspec is right, networks
are verified on it, and what is wrong in a description is said at its place.
The eight shipped machines of the family are what is imported from descriptions
written here; where the 28 public ones are at hand, each is imported, those of
the same sizes give the same machines, and networks are verified on some.

usage: imports.py [--write]   --write: the shipped machines anew
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
TARGETS = "hwspec/targets"
# Rows and channels at a time, of the machines that are shipped.
FAMILY = {"b512": (4, 8), "b800": (4, 10), "b1024": (8, 8), "b1152": (4, 12),
          "b1600": (8, 10), "b2304": (8, 12), "b3136": (8, 14),
          "b4096": (8, 16)}

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


def family(name, rows, deep):
    """A machine of the family: two groups of feature banks, weights, biases;
    engines for convolutions, sums, and all that goes by channel."""
    text = f'name: "DPUCZDX8G_{name.upper()}"\n'
    first = 0
    for group, kind, n, wide in (("VB0", "Virtual", rows, deep),
                                 ("VB1", "Virtual", rows, deep),
                                 ("CONVW", "Param", deep, deep),
                                 ("DWCONVW", "Param", 1, deep),
                                 ("BIAS", "Param", 1, deep)):
        text += (f'bank_group {{ name: "{group}" type: "{kind}" '
                 f"base_id: {first} bank_num: {n} bank_width: {wide} "
                 "bank_depth: 2048 }\n")
        first += n
    places = "".join(f'{side}_bank: "VB{k}" ' for side in ("input", "output")
                     for k in (0, 1))
    for engine, words, kinds, acts in (
            ("conv", f"input_channel_parallel: {deep} "
             f"output_channel_parallel: {deep} pixel_parallel: {rows} "
             f"channel_augmentation {{ channel_num: {2 * deep} }} "
             'conv_limit { kernel_size: "1-16" stride: "1-8" }', (),
             ("relu", "leaky_relu", "relu_six")),
            ("eltwise", f"channel_parallel: {deep} pixel_parallel: {rows // 2}",
             ("elew_type: add", "elew_type: mult"), ("relu",)),
            ("alu", f"channel_parallel: {deep} pixel_parallel: {rows // 2} "
             'alu_limit { kernel_size: "1-256" stride: "1-256" }',
             tuple(f"alu_type: {kind}" for kind in (
                 "dwconv", "avg_pool", "max_pool", "prelu", "hsigmoid")),
             ("relu", "relu_six"))):
        allowed = " ".join(f"nonlinear_type: {act}" for act in acts)
        text += (f"{engine}_engine {{ {words} {places}{' '.join(kinds)} "
                 f"nonlinear {{ {allowed} }} }}\n")
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


def shipped(folder, write):
    """The eight of the family, as they are shipped."""
    wrong = []
    for name, sizes in FAMILY.items():
        path = os.path.join(folder, f"dpuczdx8g-{name}.prototxt")
        with open(path, "w", encoding="utf-8") as file:
            file.write(family(name, *sizes))
        machine, bad = imported(folder, path)
        wrong += bad
        target = f"{TARGETS}/dpuczdx8g-{name}.yaml"
        text = open(machine, encoding="utf-8").read() if machine else ""
        if write and text:
            with open(target, "w", encoding="utf-8") as file:
                file.write(text)
        with open(target, encoding="utf-8") as file:
            if file.read() != text:
                wrong.append(f"{target} is not what is imported: --write")
    return wrong


def plain(path):
    """A machine without its name and comments."""
    with open(path, encoding="utf-8") as file:
        return [line for line in file
                if not line.startswith("#") and "name: " not in line]


def same_as_shipped(machine, path):
    """A public description of ISA1 is the shipped machine of its size."""
    ours = os.path.basename(path).lower().replace(".prototxt", "")
    target = f"{TARGETS}/{ours.replace('_isa1_', '-')}.yaml"
    if "_isa1_" in ours and plain(machine) != plain(target):
        return [f"{path} gives another machine than {target}"]
    return []


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
    write = "--write" in sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "ours.prototxt")
        with open(path, "w", encoding="utf-8") as file:
            file.write(description())
        machine, wrong = imported(folder, path)
        for name in NETWORKS[:2] if machine else ():
            wrong += verified(machine, name)
        wrong += refused(folder) + shipped(folder, write)
        for path in public:
            machine, bad = imported(folder, path)
            wrong += bad or same_as_shipped(machine, path)
            if machine and any(f"_{one}." in path for one in SOME):
                for name in NETWORKS:
                    wrong += verified(machine, name)
    for one in wrong:
        print(one)
    print(f"imports.py: {1 + len(FAMILY) + len(public)} descriptions, {len(BAD)} bad ones, "
          f"{len(wrong)} wrong")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
