#!/usr/bin/env python3
"""rates.py - the cycle model against published rates of one machine.

Compiles and simulates each network of the table for xdnn-v3-96 and compares
clock / cycles with the images a second of one engine that its maker published
for latency mode (facts/xdnn.md 4). One hwspec, no constant of a network.
Layers of the host take no time in either number. Then replication off against
safe: cycles, gain, and the active memory that each takes.

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
RATES = [  # name, file, published images a second
    ("inception_v1", "googlenet", 802.95),
    ("inception_v2", "inception-v2", 608.31),
    ("inception_v3", "inception-v3", 224.39),
    ("inception_v4", "inception-v4", 121.73),
    ("resnet50_v1", "resnet50", 287.04),
    ("resnet50_v2", "resnet50-v2", 264.73),
    ("squeezenet", "squeezenet-1.0", 1056.3),
    ("vgg16", "vgg16", 101.73),
    ("yolov2-608", "yolov2-relu", 31.47),
    ("yolov2_prelu", "yolov2-608", 27.32)]
# Of YOLOv2's convolutions one is larger than the weight cache. The maker's
# compiler split it, ours leaves it to the host: here the cache holds it, so
# that its work counts.
LARGER_CACHE = ["engines.conv.limits.taps=..11520"]
UNKNOWN = "inception_v2_ssd (34.97): its layers were never published"
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


def measure(path, replication, options, folder):
    name = os.path.basename(path)[:-len(".prototxt")]
    run([AMPHORA, "compile", path, "-o", folder, "--replication",
         replication] + options)
    return json.loads(run([AMPHORA, "simulate", f"{folder}/{name}.json",
                           "--memory-only", "--json"] + options))


def table_of_rates(results, clock):
    print(f"{'network':14}{'published':>10}{'predicted':>10}{'error':>8}"
          f"{'cycles':>12}")
    errors = []
    for name, file, published in RATES:
        cycles = results[file, "safe"]["cycles"]
        rate = clock / cycles
        errors.append(rate / published - 1)
        print(f"{name:14}{published:10.2f}{rate:10.2f}{errors[-1]:8.1%}"
              f"{cycles:12,}")
    mean = sum(map(abs, errors)) / len(errors)
    worst = max(errors, key=abs)
    print(f"mean absolute error {mean:.1%}, worst {worst:+.1%}; "
          f"not compared: {UNKNOWN}")


def table_of_gains(results):
    print(f"\n{'network':14}{'off':>12}{'safe':>12}{'gain':>7}{'ideal':>7}"
          f"{'AM off':>12}{'AM safe':>12}")
    for name, file, _ in RATES:
        if name not in GAINS:
            continue
        off, safe = results[file, "off"], results[file, "safe"]
        print(f"{name:14}{off['cycles']:12,}{safe['cycles']:12,}"
              f"{off['cycles'] / safe['cycles']:7.2f}{GAINS[name]:7.2f}"
              f"{off['am_peak_bytes']:12,}{safe['am_peak_bytes']:12,}")


def main():
    options = sys.argv[1:]
    if "-t" not in options:
        options += ["-t", "xdnn-v3-96"]
    for setting in LARGER_CACHE:
        options += ["--set", setting]
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for file in dict.fromkeys(file for _, file, _ in RATES):
            path = network_file(file, folder)
            for replication in ("off", "safe"):
                results[file, replication] = measure(path, replication,
                                                     options, folder)
    if os.environ.get("DETAIL"):
        for key, r in results.items():
            print(key, {k: v["cycles"] for k, v in r["engines"].items()},
                  r["violations"])
    table_of_rates(results, 700e6)
    table_of_gains(results)


if __name__ == "__main__":
    main()
