#!/usr/bin/env python3
"""rates.py - the cycle model against published rates of one machine.

Compiles and simulates each network of the table for xdnn-v3-96 and compares
clock / cycles with the images a second of one engine that its maker published
for latency and throughput mode (facts/xdnn.md 4). One hwspec, no constant of a
network. Layers of the host take no time in either number.

Then what replication buys, off against best. The gains of facts/two-level.md 3
are those of a machine in which nothing but the array takes time: they compare
with the cycles of the array alone. Beside them stands the gain in cycles of the
whole network, in which weights, ports, sums and pools take as long as before;
and the active memory that each takes.

    bench/rates.py [-t HWSPEC] [--set PATH=VALUE]...

Needs build/amphora, or $AMPHORA.
"""
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "bench"))
from rate_networks import NETWORKS  # noqa: E402  (needs the path above)

AMPHORA = os.environ.get("AMPHORA", os.path.join(ROOT, "build/amphora"))
RATES = [  # name, file, images a second: latency, throughput (None: not said)
    ("inception_v1", "googlenet", 802.95, 962),
    ("inception_v2", "inception-v2", 608.31, 696),
    ("inception_v3", "inception-v3", 224.39, 232),
    ("inception_v4", "inception-v4", 121.73, 124),
    ("resnet50_v1", "resnet50", 287.04, 307),
    ("resnet50_v2", "resnet50-v2", 264.73, 280),
    ("squeezenet", "squeezenet-1.0", 1056.3, 1697),
    ("vgg16", "vgg16", 101.73, 119),
    ("yolov2-608", "yolov2-relu", 31.47, 31.5),
    ("yolov2_prelu", "yolov2-608", 27.32, None)]
# Of YOLOv2's convolutions one is larger than the weight cache. The maker's
# compiler split it, ours leaves it to the host: here the cache holds it, so
# that its work counts.
LARGER_CACHE = ["engines.conv.limits.taps=..11520"]
UNKNOWN = ("inception_v2_ssd (34.97): neither its input's size nor its heads "
           "were published")
# What the machine would gain by replication if nothing but the array took
# time (facts/two-level.md 3).
GAINS = {"inception_v1": 3.07, "inception_v2": 1.93, "inception_v3": 1.37,
         "inception_v4": 1.26, "resnet50_v1": 1.88, "vgg16": 1.41}


def without_lrn(text):
    """The published GoogLeNet has no LRN layers: they would need the host."""
    blocks, renamed = text.split("layer {"), {}
    kept = [blocks[0]]
    for block in blocks[1:]:
        top = block.split('top: "')[1].split('"')[0]
        bottoms = block.split('bottom: "')[1:]
        if '"LRN"' in block:
            renamed[top] = bottoms[0].split('"')[0]
            continue
        for old, new in renamed.items():
            block = block.replace('bottom: "%s"' % old, 'bottom: "%s"' % new)
        kept.append(block)
    return "layer {".join(kept)


def network_file(name, folder):
    path = os.path.join(folder, name + ".prototxt")
    if name in NETWORKS:
        text = NETWORKS[name]().text()
    elif name == "yolov2-relu":
        with open(network_file("yolov2-608", folder), encoding="ascii") as file:
            text = file.read().replace("  relu_param { negative_slope: 0.1 }\n",
                                       "")
    else:
        with open(os.path.join(ROOT, "examples", name + ".prototxt"),
                  encoding="ascii") as file:
            text = without_lrn(file.read())
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    return path


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        sys.exit(" ".join(command) + ": exit %d" % done.returncode)
    return done.stdout


def measure(path, replication, options, folder, mode="latency"):
    name = os.path.basename(path)[:-len(".prototxt")]
    run([AMPHORA, "compile", path, "-o", folder, "--mode", mode,
         "--replication", replication] + options)
    return json.loads(run([AMPHORA, "simulate", f"{folder}/{name}.json",
                           "--memory-only", "--json"] + options))


def table_of_rates(results, clock, mode):
    print(f"{mode + ' mode':14}{'published':>10}{'predicted':>10}{'error':>8}"
          f"{'cycles':>12}")
    errors = []
    for name, file, *published in RATES:
        rate = published[mode == "throughput"]
        if not rate:
            continue
        cycles = results[file, mode]["cycles_an_image"]
        errors.append(clock / cycles / rate - 1)
        print(f"{name:14}{rate:10.2f}{clock / cycles:10.2f}{errors[-1]:8.1%}"
              f"{cycles:12,}")
    mean = sum(map(abs, errors)) / len(errors)
    worst = max(errors, key=abs)
    print(f"mean absolute error {mean:.1%}, worst {worst:+.1%}\n")


def table_of_gains(results):
    """Array: cycles of the engine of convolutions were it bound by nothing
    else; ahead: with the block for first layers, cycles an image."""
    print(f"{'off / best':14}{'array':>7}{'facts':>7}{'whole':>7}{'ahead':>7}"
          f"{'off':>12}"
          f"{'safe':>12}{'best':>12}{'AM off':>12}{'AM best':>12}")
    for name, file, *_ in RATES:
        if name not in GAINS:
            continue
        off, safe, best = (results[file, r] for r in ("off", "latency", "best"))
        ahead = results[file, "throughput"]
        array = off["array_cycles"] / best["array_cycles"]
        print(f"{name:14}{array:7.2f}{GAINS[name]:7.2f}"
              f"{off['cycles'] / best['cycles']:7.2f}"
              f"{off['cycles'] / ahead['cycles_an_image']:7.2f}"
              f"{off['cycles']:12,}{safe['cycles']:12,}{best['cycles']:12,}"
              f"{off['am_peak_bytes']:12,}{best['am_peak_bytes']:12,}")


def main():
    options = sys.argv[1:]
    if "-t" not in options:
        options += ["-t", "xdnn-v3-96"]
    for setting in LARGER_CACHE:
        options += ["--set", setting]
    results = {}
    runs = [("latency", "safe", "latency"), ("throughput", "safe",
            "throughput"), ("off", "off", "latency"), ("best", "best",
            "latency")]
    with tempfile.TemporaryDirectory() as folder:
        for name, file, *_ in RATES:
            path = network_file(file, folder)
            for label, replication, mode in runs:
                if label in ("off", "best") and name not in GAINS:
                    continue
                results[file, label] = measure(path, replication, options,
                                               folder, mode)
    table_of_rates(results, 700e6, "latency")
    table_of_rates(results, 700e6, "throughput")
    print(f"not compared: {UNKNOWN}\n")
    table_of_gains(results)


if __name__ == "__main__":
    main()
