#!/usr/bin/env python3
"""rates.py - the cycle model against published rates of one machine.

Compiles and simulates each network of the table for xdnn-v3-96 and compares
clock / cycles with the images a second of one engine that its maker published
for latency and throughput mode (facts/xdnn.md 4). One hwspec, no constant of a
network. Layers of the host take no time in either number.

Then what replication buys, off against best. The gains of facts/two-level.md 3
are those of a machine in which nothing but the array takes time and memory has
no end: `bare` is such a machine, ours but for BARE. Beside them stand the gains
of the machine as it is, in cycles of its array and of the whole network, with
the first layer ahead, and the active memory that each takes; and what the time
of the whole network is made of, with copies.

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
# The eleventh rate: neither the size of its image nor its heads were published.
# With the heads that are usual on this backbone it is predicted at SSD's sizes.
UNKNOWN_NAME, UNKNOWN_RATE = "inception_v2_ssd", 34.97
UNKNOWN = ["inception-v2-ssd-300", "inception-v2-ssd-512"]
BARE = ["memories.am.size=36MiB"] + [
    place + ".bandwidth=1000000GB/s" for place in (
        "memories.am", "memories.ddr", "memories.inputs", "memories.outputs",
        "weight_cache")]
# What replication gains where nothing but the array takes time
# (facts/two-level.md 3).
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
         "--replication", replication, "--trace", folder + "/trace.json"] +
        options)
    result = json.loads(run([AMPHORA, "simulate", f"{folder}/{name}.json",
                             "--memory-only", "--json"] + options))
    with open(folder + "/trace.json", encoding="utf-8") as file:
        result["events"] = [event["args"] for event
                            in json.load(file)["traceEvents"]
                            if event["ph"] == "X" and event["tid"] == 0]
    return result


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
    print(f"{'off / best':14}{'facts':>7}{'bare':>7}{'array':>7}{'whole':>7}"
          f"{'ahead':>7}{'off':>12}{'safe':>12}{'best':>12}{'AM off':>12}"
          f"{'AM best':>12}")
    for name, file, *_ in RATES:
        if name not in GAINS:
            continue
        off, safe, best = (results[file, r] for r in ("off", "latency", "best"))
        bare = [results[file, r]["array_cycles"]
                for r in ("bare off", "bare best")]
        ahead = results[file, "throughput"]
        print(f"{name:14}{GAINS[name]:7.2f}{bare[0] / bare[1]:7.2f}"
              f"{off['array_cycles'] / best['array_cycles']:7.2f}"
              f"{off['cycles'] / best['cycles']:7.2f}"
              f"{off['cycles'] / ahead['cycles_an_image']:7.2f}"
              f"{off['cycles']:12,}{safe['cycles']:12,}{best['cycles']:12,}"
              f"{off['am_peak_bytes']:12,}{best['am_peak_bytes']:12,}")
    print()


def table_of_time(results):
    """Array: what the engine of convolutions would take were it bound by
    nothing else; then how much longer it is held up, and by what; the rest:
    other engines while it is idle."""
    columns = ("weights", "ports", "transfer")
    print(f"{'best, cycles':14}{'array':>12}" +
          "".join(f"{'+ ' + c:>12}" for c in columns) + f"{'+ others':>12}"
          f"{'whole':>12}")
    for name, file, *_ in RATES:
        if name not in GAINS:
            continue
        best = results[file, "best"]
        events = best["events"]
        held = [sum(e["cycles"] - e["array"] for e in events
                    if e["bound_by"] == c) for c in columns]
        array = best["array_cycles"] + sum(
            e["cycles"] - e["array"] for e in events
            if e["bound_by"] == "array")
        others = best["cycles"] - array - sum(held)
        print(f"{name:14}" + "".join(
            f"{n:12,}" for n in [array] + held + [others, best["cycles"]]))


def table_of_unknown(options, folder):
    for file in UNKNOWN:
        cycles = measure(network_file(file, folder), "safe", options,
                         folder)["cycles"]
        print(f"{file:22}{700e6 / cycles:8.2f} images/s, of no published size; "
              f"{UNKNOWN_NAME} as published: {UNKNOWN_RATE}")
    print()


def main():
    options = sys.argv[1:]
    if "-t" not in options:
        options += ["-t", "xdnn-v3-96"]
    for setting in LARGER_CACHE:
        options += ["--set", setting]
    results = {}
    bare = [word for setting in BARE for word in ("--set", setting)]
    runs = [  # label, replication, mode, more options
        ("latency", "safe", "latency", []),
        ("throughput", "safe", "throughput", []),
        ("off", "off", "latency", []), ("best", "best", "latency", []),
        ("bare off", "off", "latency", bare),
        ("bare best", "best", "latency", bare)]
    with tempfile.TemporaryDirectory() as folder:
        for name, file, *_ in RATES:
            path = network_file(file, folder)
            for label, replication, mode, more in runs:
                if replication != "safe" and name not in GAINS:
                    continue
                results[file, label] = measure(path, replication,
                                               options + more, folder, mode)
        table_of_rates(results, 700e6, "latency")
        table_of_unknown(options, folder)
    table_of_rates(results, 700e6, "throughput")
    table_of_gains(results)
    table_of_time(results)


if __name__ == "__main__":
    main()
