#!/usr/bin/env python3
"""cycles.py - what the cycle model promises, on networks of examples/.

  recorded   listings that the field's compiler wrote for V3 are never faster
             than ours of the same network, both simulated (skips where
             ../shared/data is absent)
  more       more bandwidth and a wider array never cost cycles; nor does more
             active memory, which never moves more bytes either. On V3, whose
             tiles grow with its memory, fewer bytes may take SPILLED more
             cycles
  best       --replication best takes no more cycles than safe, safe no more
             than off
  ahead      --mode throughput takes no more cycles an image than latency, and
             its listing computes what the network computes

    tests/cycles.py [--long]
"""
import json
import os
import subprocess
import sys
import tempfile

from recorded import without_lrn

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
DATA = "../shared/data"
RECORDED = [  # listing, network, without its LRN layers
    ("resnet50_8bit_repl_pipe_xdnnv3.cmds", "ResNet-50-deploy.prototxt"),
    ("googlenet_v1_8b_autoAllOpt.json", "bvlc_googlenet_deploy.prototxt"),
    ("googlenet_v1_8b_autoOnlyReplicationOptimization.cmds",
     "bvlc_googlenet_deploy.prototxt")]
AM = "memories.am.size"
SPILLED = 0.07
CONV = "engines.conv.unroll."
SWEEPS = [  # what grows, from less to more
    (AM, ["1MiB", "2MiB", "2304KiB", "3MiB", "3584KiB", "4MiB", "4608KiB",
          "6MiB", "9MiB", "10MiB", "16MiB"]),
    (CONV + "out_c", ["16", "32", "64"]),
    (CONV + "in_c", ["96", "128", "192"]),
    ("memories.inputs.bandwidth", ["2GB/s", "8GB/s", "17.28GB/s", "40GB/s"]),
    ("weight_cache.bandwidth", ["4GB/s", "17.28GB/s", "80GB/s"]),
    ("memories.am.bandwidth", ["10GB/s", "28.8GB/s", "80GB/s"])]


def run(*arguments):
    done = subprocess.run([AMPHORA, *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def cycles_of_listing(path):
    code, out, err = run("simulate", path, "-t", "xdnn-v3-96", "--memory-only",
                         "--json")
    assert code == 0, err
    return json.loads(out)["cycles"]


def check_recorded(folder):
    if not os.path.isdir(DATA):
        return []
    wrong = []
    for listing, network in RECORDED:
        path = f"{folder}/net.prototxt"
        with open(f"{DATA}/caffe/{network}", encoding="utf-8") as file:
            text = without_lrn(file.read())
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        code, _, err = run("compile", path, "-t", "xdnn-v3-96", "-o", folder)
        assert code == 0, err
        theirs = cycles_of_listing(f"{DATA}/listings/{listing}")
        ours = cycles_of_listing(f"{folder}/net.json")
        print(f"{listing}: {theirs:,} cycles, ours {ours:,}")
        if ours > theirs:
            wrong.append(f"{listing} is faster than ours")
    return wrong


def points(network, path, values):
    code, out, err = run("explore", network, "-t", "xdnn-v3-96", "--vary",
                         f"{path}={','.join(values)}", "--json")
    assert code == 0, err
    return json.loads(out)["points"]


def rises(before, point, path):
    """What rises though it must not, from one point to the next."""
    fewer = path == AM and point["ddr_bytes"] < before["ddr_bytes"]
    most = before["cycles"] * (1 + fewer * SPILLED)
    found = ["cycles"] if point["cycles"] > most else []
    if path == AM and point["ddr_bytes"] > before["ddr_bytes"]:
        found.append("ddr_bytes")
    return found


def check_falling(network, path, values):
    """Messages where a point is worse than the one before it."""
    wrong, before = [], None
    for point in points(network, path, values):
        if point["status"] != "fits":
            continue
        for what in rises(before, point, path) if before else []:
            wrong.append(f'{network}: {what} rises from {before["name"]}, '
                         f'{before["cycles"]:,} cycles and '
                         f'{before["ddr_bytes"]:,} bytes, to {point["name"]}, '
                         f'{point["cycles"]:,} and {point["ddr_bytes"]:,}')
        before = point
    return wrong


def check_ahead(network):
    code, out, err = run("verify", network, "-t", "xdnn-v3-96", "--mode",
                         "throughput", "--json")
    return [] if code == 0 and json.loads(out)["ok"] else [network + err]


def main():
    networks = ["squeezenet"]
    if "--long" in sys.argv[1:]:
        networks += ["googlenet", "resnet50", "inception-v3",
                     "mobilenet-v2", "vgg16", "yolov2-608"]
    with tempfile.TemporaryDirectory() as folder:
        wrong = check_recorded(folder)
    for name in networks:
        network = f"examples/{name}.prototxt"
        for path, values in SWEEPS:
            wrong += check_falling(network, path, values)
        wrong += check_falling(network, "replication", ["off", "safe", "best"])
        wrong += check_falling(network, "mode", ["latency", "throughput"])
    wrong += check_ahead("examples/squeezenet.prototxt")
    print(f"{len(networks)} networks, {len(SWEEPS) + 2} sweeps of each, "
          f"{len(wrong)} failures")
    print("\n".join(wrong))
    return len(wrong) > 0


if __name__ == "__main__":
    sys.exit(main())
