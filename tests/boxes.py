#!/usr/bin/env python3
"""boxes.py - layers of which not one stripe of rows fits, by boxes.

Networks of wide maps, strides, dilations, dilated and even kernels, depthwise
layers, pools, sums and concats, in memories of a few kilobytes: each is
verified by value, and its listing must move some columns of maps, or some
channels of rows. Where not even the smallest box fits, or the fewest weights
that can be loaded, the network is refused, with what these take.
"""
import json
import os
import subprocess
import sys
import tempfile

AMPHORA = os.environ.get("AMPHORA", "build/amphora")


def layer(name, kind, bottoms, param=""):
    wires = " ".join(f'bottom: "{b}"' for b in bottoms)
    return (f'layer {{ name: "{name}" type: "{kind}" {wires} top: "{name}" '
            f"{param} }}")


def conv(name, bottom, filters, kernel, more=""):
    return layer(name, "Convolution", [bottom],
                 f"convolution_param {{ num_output: {filters} "
                 f"kernel_size: {kernel} {more} }}")


def network(width):
    shape = f"input_param {{ shape {{ dim: 1 dim: 5 dim: 13 dim: {width} }} }}"
    return "\n".join((
        'name: "wide"', layer("data", "Input", [], shape),
        conv("first", "data", 32, 3, "pad: 1"),
        layer("relu", "ReLU", ["first"]),
        conv("down", "relu", 40, 3, "pad: 1 stride: 2"),
        conv("far", "down", 40, 3, "pad: 2 dilation: 2"),
        layer("sum", "Eltwise", ["down", "far"]),
        conv("each", "sum", 40, 3, "pad: 1 group: 40"),
        layer("pool", "Pooling", ["each"],
              "pooling_param { pool: MAX kernel_size: 3 stride: 2 }"),
        conv("left", "pool", 24, 1), conv("right", "pool", 16, 2),
        conv("wider", "pool", 24, 2),
        layer("both", "Concat", ["right", "wider"]),
        layer("mean", "Pooling", ["both"],
              "pooling_param { pool: AVE kernel_size: 2 stride: 1 }"),
        conv("deep", "both", 24, 3, "pad: 1")))


# Machine, sizes of memories, the least width of the network's maps.
CASES = (
    ("vta-pynq", ("inp=4KiB", "acc=8KiB", "wgt=32KiB"), 200),
    ("vta-pynq", ("inp=2KiB", "acc=4KiB", "wgt=16KiB"), 61),
    ("nvdla-small", ("cbuf=4KiB", "point=4KiB", "plane=3KiB",
                     "kernels=9KiB"), 200),
    ("dpuczdx8g-b512", ("vb0=4KiB", "vb1=4KiB", "convw=8KiB"), 131),
    ("dpuczdx8g-b4096", ("vb0=16KiB", "vb1=16KiB", "convw=16KiB"), 200),
)


def run(*args):
    return subprocess.run([AMPHORA, *args], capture_output=True, text=True,
                          check=False)


def moved_in_part(listing):
    """Moves of some columns in a listing, by its tokens `left` and `right`."""
    with open(listing, encoding="utf-8") as file:
        text = file.read()
    n = 0
    for line in text.splitlines():
        words = line.split("#")[0].split()
        if words and words[0] in ("LOAD", "SAVE", "STORE"):
            n += int(words[-2]) > 0
    return n


def check(case, folder):
    machine, sizes, width = case
    path = os.path.join(folder, "wide.prototxt")
    with open(path, "w", encoding="ascii") as file:
        file.write(network(width))
    sets = [word for size in sizes
            for word in ("--set", "memories." + size.replace("=", ".size="))]
    done = run("verify", path, "-t", machine, "--json", *sets)
    if done.returncode:
        return f"verify: exit {done.returncode}: {done.stderr[:400]}"
    done = run("compile", path, "-t", machine, "--json", "-o", folder, *sets)
    listing = json.loads(done.stdout)["listing"]
    if not moved_in_part(listing):
        return "no transfer begins behind column 0"
    return ""


def check_weights(folder):
    """Weights that have no room, of a layer that has stripes: they pass once."""
    path = os.path.join(folder, "heavy.prototxt")
    shape = "input_param { shape { dim: 1 dim: 64 dim: 16 dim: 64 } }"
    with open(path, "w", encoding="ascii") as file:
        file.write("\n".join(('name: "heavy"', layer("data", "Input", [], shape),
                              conv("heavy", "data", 256, 3, "pad: 1"))))
    done = run("verify", path, "-t", "vta-pynq", "--json",
               "--set", "memories.wgt.size=32KiB")
    if done.returncode:
        return f"verify: exit {done.returncode}: {done.stderr[:400]}"
    read = json.loads(done.stdout)["weights_read_bytes"]
    once = 256 * (9 * 64 + 4)  # with a bias of 4 bytes each
    return "" if read == once else f"{read} bytes of weights, {once} are there"


def check_hidden(folder):
    """Weights and maps that have no room: transfers of boxes hide."""
    path = os.path.join(folder, "deep.prototxt")
    shape = "input_param { shape { dim: 1 dim: 256 dim: 64 dim: 64 } }"
    with open(path, "w", encoding="ascii") as file:
        file.write("\n".join(('name: "deep"', layer("data", "Input", [], shape),
                              conv("a", "data", 256, 3, "pad: 1"),
                              conv("b", "a", 256, 3, "pad: 1"))))
    done = run("compile", path, "-t", "dpuczdx8g-b4096", "-o", folder, "--json")
    if done.returncode:
        return f"compile: exit {done.returncode}: {done.stderr[:400]}"
    done = run("simulate", json.loads(done.stdout)["listing"], "-t",
               "dpuczdx8g-b4096", "--memory-only", "--json")
    found = json.loads(done.stdout)
    busy = found["engines"]["conv"]["cycles"]
    return "" if found["cycles"] <= 1.02 * busy else \
        f"{found['cycles']} cycles, of which the engine computes {busy}"


# Weights and volumes in one memory, KiB: at most so many bytes and cycles.
SHARED = ((160, 1600000, 405000), (192, 1050000, 370000))


def check_shared(size, most_bytes, most_cycles, folder):
    """Each layer has as much room for weights as it needs, the rest is for
    volumes: most for one layer is little for another."""
    path = os.path.join(folder, "shared.prototxt")
    shape = "input_param { shape { dim: 1 dim: 256 dim: 24 dim: 24 } }"
    with open(path, "w", encoding="ascii") as file:
        file.write("\n".join(('name: "shared"',
                              layer("data", "Input", [], shape),
                              conv("one", "data", 256, 3, "pad: 1"),
                              conv("two", "one", 16, 1))))
    done = run("verify", path, "-t", "stage-npu", "--json",
               "--set", f"memories.am.size={size}KiB",
               "--set", "engines.array.unroll.out_c=8")
    if done.returncode:
        return f"verify: exit {done.returncode}: {done.stderr[:400]}"
    said = json.loads(done.stdout)
    moved, cycles = said["ddr_moved_bytes"], said["cycles"]
    ok = moved <= most_bytes and cycles <= most_cycles
    return "" if ok else f"{moved} bytes, {cycles} cycles"


# Sizes that are too small, and what is said of them.
REFUSED = (
    ("inp=256", "the smallest part of far, 1 of its 7 rows, 1 of its 31 "
     "columns and 16 of its 40 channels, takes 464 bytes with what it reads"),
    ("wgt=2KiB", "the fewest weights of down that can be loaded take 2,304 bytes "
     "of wgt, which has 2,048"),
)


def check_refusal(size, said, folder):
    path = os.path.join(folder, "wide.prototxt")
    with open(path, "w", encoding="ascii") as file:
        file.write(network(61))
    done = run("compile", path, "-t", "vta-pynq", "-o", folder,
               "--set", "memories." + size.replace("=", ".size="))
    if done.returncode != 3 or said not in done.stderr:
        return f"exit {done.returncode}: {done.stderr[:600]}"
    return ""


def main():
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            wrong = check(case, folder)
            if wrong:
                print(f"{case[0]} {' '.join(case[1])}: {wrong}")
                bad += 1
        for more in (check_weights, check_hidden):
            wrong = more(folder)
            if wrong:
                print(f"{more.__name__}: {wrong}")
                bad += 1
        for size, most_bytes, most_cycles in SHARED:
            wrong = check_shared(size, most_bytes, most_cycles, folder)
            if wrong:
                print(f"shared, {size} KiB: {wrong}")
                bad += 1
        for size, said in REFUSED:
            wrong = check_refusal(size, said, folder)
            if wrong:
                print(f"{size}: {wrong}")
                bad += 1
    n = len(CASES) + 2 + len(SHARED) + len(REFUSED)
    print(f"{n - bad} of {n} as they should be")
    return bad


if __name__ == "__main__":
    sys.exit(main())
