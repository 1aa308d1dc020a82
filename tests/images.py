#!/usr/bin/env python3
"""images.py - several images one behind the other (--images).

  values   every image of a listing is verified by value, moves as many bytes
           as one alone, or fewer weights, and takes no more cycles; weights
           are written once
  inputs   each image has its own: a listing of two, simulated, gives for each
           the outputs that a listing of one gives for its input
  limits   the instructions that a machine holds are those of all images
  refused  what cannot be with several images, and memories that hold none

    tests/images.py [--long]
"""
import json
import os
import struct
import subprocess
import sys
import tempfile

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
N = 3
UNLIMITED = "limits.instructions=100000"
POINTS = [  # network, machine, settings
    ("tiny", "xdnn-v2-28", ["memories.am.size=24KiB"]),
    ("googlenet", "xdnn-v2-28", ["memories.am.size=1MiB", UNLIMITED]),
    ("densenet-cell", "ring-npu", ["memories.am.size=100KiB"]),
    ("tiny", "ring-npu", []),
    ("densenet-cell", "xdnn-v3-96", []),
    ("densenet-cell", "tile-npu", []),
    ("tiny", "line-npu", []),
    ("tiny", "stage-npu", ["memories.am.size=6KiB"]),
    ("tiny", "math-engine", []),
    ("densenet-cell", "stage-npu", []),
    ("tiny", "vta-pynq", []),  # biases are loaded as well
    ("tiny", "template", [])]
STAGED = {"stage-npu", "vta-pynq"}  # an image reads weights that the one before has left
LONG = [("resnet50", "xdnn-v2-28", ["memories.am.size=2MiB", UNLIMITED]),
        ("mobilenet-v2", "ring-npu", ["memories.am.size=145376"]),
        ("inception-v3", "xdnn-v2-56", []), ("squeezenet", "xdnn-v3-96", [])]


def run(*arguments):
    done = subprocess.run([AMPHORA, *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, text=True)
    return done.returncode, done.stdout, done.stderr


def flags(network, machine, settings, images):
    sets = [word for one in settings for word in ("--set", one)]
    return [f"examples/{network}.prototxt", "-t", machine, *sets, "--images",
            str(images)]


def verified(network, machine, settings, images):
    code, out, err = run("verify", "--json",
                         *flags(network, machine, settings, images))
    assert code == 0, (network, machine, out, err)
    return json.loads(out)


def compiled_cost(network, machine, settings):
    """Of all images, as `compile` tells it."""
    with tempfile.TemporaryDirectory() as folder:
        code, out, err = run("compile", "--json", "-o", folder,
                             *flags(network, machine, settings, N))
    assert code == 0, err
    return json.loads(out)["cost"]


def check_values(points):
    for network, machine, settings in points:
        one = verified(network, machine, settings, 1)
        all_ = verified(network, machine, settings, N)
        assert all_["images"] == N
        assert all_["layers_without_values"] == 0
        assert all_["layers_compared"] > (N - 1) * one["layers_compared"]
        assert all_["ddr_written_bytes"] == N * one["ddr_written_bytes"]
        for key in ("ddr_read_bytes", "ddr_compulsory_bytes"):
            fewer = machine in STAGED and all_[key] < N * one[key]
            assert fewer or all_[key] == N * one[key], (network, machine, key)
        assert all_["cycles"] <= N * one["cycles"], (network, machine)
        assert all_["steady_cycles"] <= one["cycles"], (network, machine)
        assert all_["cycles_an_image"] == -(-all_["cycles"] // N)
        cost = compiled_cost(network, machine, settings)
        assert cost["cycles"] == all_["cycles"], (network, machine, cost)
        assert cost["memory"] == all_["am_bytes"], (network, machine, cost)


def check_weights(folder):
    sizes = []
    for images in (1, N):
        code, _, err = run("compile", "-o", folder,
                           *flags("densenet-cell", "xdnn-v2-28", [], images))
        assert code == 0, err
        sizes.append(os.path.getsize(
            os.path.join(folder, "densenet-cell.weights")))
    assert sizes[0] == sizes[1] > 0, sizes


def write_npy(path, values):
    head = (f"{{'descr': '<f4', 'fortran_order': False, "
            f"'shape': ({len(values)},), }}")
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) +
                   head.encode() + struct.pack(f"<{len(values)}f", *values))


def outputs(folder, images, inputs):
    """Bytes of each image's output."""
    code, _, err = run("compile", "-o", folder,
                       *flags("tiny", "xdnn-v2-28", [], images))
    assert code == 0, err
    out = os.path.join(folder, f"out{images}")
    given = [word for path in inputs for word in ("--input", path)]
    code, text, err = run("simulate", os.path.join(folder, "tiny.json"), "-t",
                          "xdnn-v2-28", "-o", out, *given)
    assert code == 0, text + err
    found = []
    for name in ["probability"] + [f"probability@{k}"
                                   for k in range(2, images + 1)]:
        with open(os.path.join(out, name + ".npy"), "rb") as file:
            found.append(file.read())
    return found


def check_inputs(folder):
    paths = []
    for k in range(2):
        paths.append(os.path.join(folder, f"input{k}.npy"))
        write_npy(paths[k], [((i * (7 + k)) % 23 - 11) / 11
                             for i in range(3 * 16 * 16)])
    alone = [outputs(folder, 1, [path])[0] for path in paths]
    assert alone[0] != alone[1]
    assert outputs(folder, 2, paths) == alone


def check_limits():
    point = ("googlenet", "xdnn-v2-28", ["limits.instructions=300"])
    assert verified(*point, 3)["instructions"] <= 300


def check_refused(folder):
    for more, code, text in [
            (["--mode", "throughput"], 2, "--mode throughput"),
            (["--emit", "bundle"], 2, "--most-images"),
            (["--set", "memories.inputs.size=20KiB"], 3,
             "need 25,344 bytes of inputs")]:
        point = flags("tiny", "xdnn-v2-28", [], N)
        got, _, err = run("compile", "-o", folder, *point, *more)
        assert got == code and text in err, (more, got, err)
    got, _, err = run("compile", "-o", folder,
                      *flags("tiny", "xdnn-v2-28", [], 257))
    assert got == 2 and "at most 256" in err


def main():
    points = POINTS + (LONG if "--long" in sys.argv[1:] else [])
    check_values(points)
    with tempfile.TemporaryDirectory() as folder:
        check_weights(folder)
        check_inputs(folder)
        check_refused(folder)
    check_limits()
    print(f"{len(points)} networks of {N} images verified")


if __name__ == "__main__":
    main()
