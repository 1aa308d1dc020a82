#!/usr/bin/env python3
"""int8.py - quantised networks against an integer model, bit for bit.

Every tensor of every network, small ones of write_int8.py and the trained ones
of ../shared/data: amphora's reference evaluation gives the codes that
int8_model.py gives, and the listing for several machines gives the reference's.
usage: int8.py [NAME...]
"""
import array
import glob
import os
import random
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import int8_model as model  # noqa: E402
from truthlib import AMPHORA, scratch  # noqa: E402
from write_int8 import NETWORKS, make, write_ends  # noqa: E402

DATA = "../shared/data/tflite/"
TRAINED = ("hello_world_int8", "kws_ref_model", "person_detect",
           "pretrainedResnet_quant", "pad0")
MACHINES = ("xdnn-v3-96", "xdnn-v2-28", "template")
KIND = {"b": "|i1", "B": "|u1", "h": "<i2", "f": "<f4"}
# Its two passes over the image round in floats, in an order of their own.
REAL_ORDER = {23}


# ---- .npy ----

def npy_write(path, shape, letter, values):
    dims = "".join(f"{dim}," for dim in shape)
    head = f"{{'descr': '{KIND[letter]}', 'fortran_order': False, " \
           f"'shape': ({dims}), }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) +
                   head.encode() + array.array(letter, values).tobytes())


def npy_read(path):
    with open(path, "rb") as file:
        data = file.read()
    start = 10 + struct.unpack_from("<H", data, 8)[0]
    letter = next(k for k, v in KIND.items() if v.encode() in data[:start])
    return list(array.array(letter, data[start:]))


# ---- orders of axes ----

def to_graph(shape, values):
    """From N, H, W, C to N, C, H, W; other ranks as they are."""
    if len(shape) != 4:
        return shape, values
    n, h, w, c = shape
    return [n, c, h, w], [values[((i * h + y) * w + x) * c + k]
                          for i in range(n) for k in range(c)
                          for y in range(h) for x in range(w)]


def draw(name, tensor):
    """Codes, or real numbers in [-1, 1)."""
    source, n = random.Random(name), 1
    for dim in tensor.shape:
        n *= dim
    if tensor.real:
        return [model.f32(source.uniform(-1, 1)) for _ in range(n)]
    return [source.randint(*model.LIMITS[tensor.letter]) for _ in range(n)]


# ---- amphora ----

class Failed(Exception):
    """The text says what amphora did."""


def write_inputs(file, inputs, folder):
    options = []
    for i, (t, values) in enumerate(zip(file.inputs, inputs)):
        tensor = file.tensors[t]
        path = f"{folder}/in{i}.npy"
        shape, values = to_graph(tensor.shape, values)
        npy_write(path, shape, tensor.letter, values)
        options += ["--input", path]
    return options


def amphora(*command):
    done = subprocess.run([AMPHORA, *command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    text = done.stdout.decode(errors="replace")
    if done.returncode:
        raise Failed(f"{' '.join(command)}: {text}")
    return text


def evaluate(path, options, folder):
    """What `eval` writes for a network of one output, in the graph's order."""
    for old in glob.glob(f"{folder}/out/*"):
        os.remove(old)
    amphora("eval", path, *options, "-o", f"{folder}/out")
    found = [name for name in os.listdir(f"{folder}/out")
             if not name.endswith(".real.npy")]
    return npy_read(f"{folder}/out/{found[0]}")


# ---- comparing ----

def check_tensors(name, path, folder):
    """Each operator's output, as the network's only one."""
    file = model.File(path)
    inputs = [draw(f"{name}/{i}", file.tensors[t])
              for i, t in enumerate(file.inputs)]
    options = write_inputs(file, inputs, folder)
    if {op.code for op in file.operators} & REAL_ORDER:
        return "        not compared: it is left to real numbers"
    values, compared = model.run(file, inputs), 0
    for op in file.operators:
        made = op.outputs[0]
        cut = f"{folder}/cut.tflite"
        file.write_with_output(cut, made)
        got = evaluate(cut, options, folder)
        _, want = to_graph(file.tensors[made].shape, values[made])
        if got != want:
            at = next(i for i, pair in enumerate(zip(got, want))
                      if pair[0] != pair[1])
            raise Failed(f"{file.tensors[made].name}, element {at}: {got[at]},"
                         f" the model says {want[at]}")
        compared += len(want)
    return f"{compared:8} codes equal"


def check_machines(path):
    for machine in MACHINES:
        text = amphora("verify", path, "-t", machine)
        if "off by" in text:
            raise Failed(text)
    return f"{len(MACHINES):8} machines compute the same"


def checks(folder):
    """(name, check, its arguments)."""
    for build in NETWORKS:
        for name, path in write_ends(build, folder):
            yield name, check_tensors, name, path, folder
        path = f"{folder}/{build.__name__}.tflite"
        make(build).write(path)
        yield build.__name__, check_machines, path
    for name in TRAINED:
        path = DATA + name + ".tflite"
        if os.path.exists(path):
            yield name, check_tensors, name, path, folder
            yield name, check_machines, path


def main():
    wanted = [a for a in sys.argv[1:] if not a.startswith("-")]
    bad = count = 0
    with scratch() as folder:
        for name, check, *arguments in checks(folder):
            if wanted and not any(name.startswith(w) for w in wanted):
                continue
            try:
                print(f"{name:28} {check(*arguments)}", flush=True)
            except Failed as error:
                bad += 1
                print(f"{name:28} FAILED {error}", flush=True)
            count += 1
    print(f"{count - bad} of {count} checks hold")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
