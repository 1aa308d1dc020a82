#!/usr/bin/env python3
"""staged.py - weights in active memory: plans verified by value, bytes and
cycles as the plan says, and the size that is named where nothing fits.

In much memory each weight is loaded once, and what moves is what must; in
little memory layers run by slices of output channels, and by stripes.
Transposed convolutions store their weights by input channels: one has as many
of these as of outputs, so that no size tells which. A convolution and a pool in
one instruction have one block of weights, and its rows are those of the pool.
A concat that is the output is stored member by member, each when it is made.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, "bench")
import networks  # noqa: E402

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
MACHINE = "stage-npu"
FUSED = "tests/sched/data/stage-fused.yaml"
# network, bytes of active memory, whether just what must moves
CASES = (("tiny", 8 << 20, True), ("tiny", 8192, True),
         ("micro/resnet8", 8 << 20, True), ("micro/resnet8", 65536, None),
         ("micro/resnet8", 24576, None), ("micro/ds-cnn", 49152, None),
         ("densenet-cell", 131072, None), ("squeezenet", 2 << 20, True))
TRANSPOSED, SLOW = "transposed", "u-net, slow DDR"  # below
MEMBERS = "concat at the end"
CASES += ((TRANSPOSED, 8 << 20, True), (TRANSPOSED, 32768, True),
          (TRANSPOSED, 16384, None), (SLOW, 40960, None))
POOLED = (("squeezenet", 8 << 20, True), ("squeezenet", 65536, None),
          ("googlenet", 204800, None))  # on FUSED
# network, bytes of active memory, images, whether each weight is loaded once
IMAGES = (("tiny", 8 << 20, 3, True), ("micro/ds-cnn", 8 << 20, 2, False),
          ("micro/resnet8", 131072, 3, False), ("squeezenet", 4 << 20, 2, False))
# a concat of three layers at the end: bytes of active memory, and the share of
# the cycles in which the DMA is at work
STORED = ((1 << 20, 0.98), (786432, 0.95), (262144, 0.9))
REFUSED = ((TRANSPOSED, 12288), ("micro/resnet8", 2048), ("squeezenet", 16384))


def source(channels, size):
    return ('layer { name: "x" type: "Input" top: "x" input_param { shape { '
            f"dim: 1 dim: {channels} dim: {size} dim: {size} }} }} }}")


def layer(kind, bottom, name, channels, kernel, *more):
    more = " ".join(more)
    return (f'layer {{ name: "{name}" type: "{kind}" bottom: "{bottom}" '
            f'top: "{name}" convolution_param {{ num_output: {channels} '
            f"kernel_size: {kernel} {more} }} }}")


def transposed():
    """Down and up again, with skips: by stripes where kernel is stride."""
    return "\n".join((
        source(8, 16),
        layer("Convolution", "x", "a", 32, 3, "pad: 1"),
        layer("Convolution", "a", "down", 64, 2, "stride: 2"),
        'layer { name: "relu" type: "ReLU" bottom: "down" top: "down" }',
        layer("Deconvolution", "down", "square", 64, 3, "pad: 1"),
        layer("Deconvolution", "square", "up", 32, 4, "stride: 2", "pad: 1"),
        'layer { name: "both" type: "Concat" bottom: "a" bottom: "up" '
        'top: "both" }',
        layer("Convolution", "both", "b", 32, 3, "pad: 1"),
        layer("Deconvolution", "b", "wide", 12, 2, "stride: 2", "bias_term: false")))


def members():
    """Three layers, one behind the other, whose concat is the output."""
    return "\n".join((
        source(32, 64),
        layer("Convolution", "x", "a", 64, 3, "pad: 1"),
        layer("Convolution", "a", "b", 64, 3, "pad: 1"),
        layer("Convolution", "b", "c", 64, 3, "pad: 1"),
        'layer { name: "all" type: "Concat" bottom: "a" bottom: "b" '
        'bottom: "c" top: "all" }'))


def u_net():
    """Of an image of 64 x 64: rows of rings go to DDR by bands."""
    text = networks.u_net(4).text()
    return text.replace("dim: 256 dim: 256", "dim: 64 dim: 64")


OWN = {TRANSPOSED: (transposed(), []), MEMBERS: (members(), []),
       SLOW: (u_net(), ["--set", "memories.ddr.bandwidth=4GB/s"])}


def run(command, network, size, *more, machine=MACHINE):
    text, sets = OWN.get(network, (None, []))
    source = "-" if text else f"examples/{network}.prototxt"
    return subprocess.run(
        [AMPHORA, command, source, "-t", machine, *sets,
         "--set", f"memories.am.size={size}", *more], input=text,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, text=True)


def wrong_with(network, size, least, machine=MACHINE):
    """What is wrong, or None."""
    done = run("verify", network, size, "--json", machine=machine)
    if done.returncode:
        return done.stderr.strip().split("\n", maxsplit=1)[0]
    sim = json.loads(done.stdout)
    moved = sim["ddr_read_bytes"] + sim["ddr_written_bytes"]
    if not sim["ok"] or sim["am_peak_bytes"] > size:
        return "not verified"
    if moved != sim["ddr_moved_bytes"]:
        return f"moves {moved} bytes, planned {sim['ddr_moved_bytes']}"
    if sim["cycles"] != sim["plan_cycles"]:
        return f"takes {sim['cycles']} cycles, planned {sim['plan_cycles']}"
    if moved < sim["ddr_bound_bytes"]:
        return "less than the bound"
    if least and moved != sim["ddr_compulsory_bytes"]:
        return f"moves {moved} bytes"
    if explained_transfers(network, size, machine) != sim["transfer_cycles"]:
        return "explains other cycles of transfers"
    return None


def explained_transfers(network, size, machine):
    with tempfile.TemporaryDirectory() as folder:
        said = run("compile", network, size, "-o", folder, "--explain",
                   machine=machine).stdout
    named = re.search(r"of volumes ([\d,]+), of weights ([\d,]+)", said)
    return named and sum(int(n.replace(",", "")) for n in named.groups())


def late_wrong(size, share):
    """No member's store waits until all are made."""
    wrong = wrong_with(MEMBERS, size, False)
    if wrong:
        return wrong
    sim = json.loads(run("verify", MEMBERS, size, "--json").stdout)
    moves = sim["transfer_cycles"] / sim["cycles"]
    return None if moves >= share else f"the DMA is at work {moves:.1%} of it"


def images_wrong(network, size, images, least):
    """Less moves than for each image alone, in no more time."""
    one, all_of = (json.loads(run("verify", network, size, "--json", "--images",
                                  str(n)).stdout) for n in (1, images))
    alone, moved = (sim["ddr_read_bytes"] + sim["ddr_written_bytes"]
                    for sim in (one, all_of))
    if not all_of["ok"]:
        return "not verified"
    if moved != all_of["ddr_moved_bytes"]:
        return f"moves {moved} bytes, planned {all_of['ddr_moved_bytes']}"
    if moved >= images * alone or all_of["cycles"] > images * one["cycles"]:
        return f"moves {moved} bytes, {alone} alone"
    return f"moves {moved}" if least and moved != all_of[
        "ddr_compulsory_bytes"] else None


def refusal_wrong(network, size):
    with tempfile.TemporaryDirectory() as folder:
        done = run("compile", network, size, "-o", folder)
    named = re.search(r"am\.size=(\w+) would do; (\w+) would not", done.stderr)
    if done.returncode != 3 or not named:
        return f"exit {done.returncode}"
    codes = [run("verify", network, size).returncode for size in named.groups()]
    return None if codes == [0, 3] else f"{named[0]}: {codes}"


def main():
    bad = 0
    for network, size, least in CASES:
        wrong = wrong_with(network, size, least)
        print(f"{network}, {size} bytes: {wrong or 'verified'}")
        bad += bool(wrong)
    for network, size, least in POOLED:
        wrong = wrong_with(network, size, least, FUSED)
        print(f"{network} with fused pools, {size} bytes: {wrong or 'verified'}")
        bad += bool(wrong)
    for size, share in STORED:
        wrong = late_wrong(size, share)
        print(f"{MEMBERS}, {size} bytes: {wrong or 'verified, stored early'}")
        bad += bool(wrong)
    for network, size, images, least in IMAGES:
        wrong = images_wrong(network, size, images, least)
        print(f"{images} images of {network}, {size} bytes: "
              f"{wrong or 'verified, weights shared'}")
        bad += bool(wrong)
    for network, size in REFUSED:
        wrong = refusal_wrong(network, size)
        print(f"{network}, {size} bytes: {wrong or 'refused, and why'}")
        bad += bool(wrong)
    sys.exit(bad > 0)


main()
