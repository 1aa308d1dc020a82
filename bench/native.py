#!/usr/bin/env python3
"""native.py - bundles against onnxruntime and against plain loops in C.

For each network: our bundle, onnxruntime on one thread, and its convolutions
alone as seven nested loops compiled by clang -O3 for this processor, which is
all that such a program would need most of its time for. The three take turns;
times are medians of the processor's, of one core, in milliseconds. Networks are
those that tests/truth_onnx.py --long exports (torchvision's), 1x3x224x224.

    bench/native.py [-t TARGET] [--folder out/truth] [--turns N] [NETWORK...]
    bench/native.py --codes [--turns N] [NETWORK.tflite...]

With --codes, of quantised networks: bundles with AVX2, AVX-512, and its VNNI,
and the loops on bytes with sums of 32 bits.

Needs build/amphora, or $AMPHORA, node and onnxruntime-node (FOLDER/npm).
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
AMPHORA = os.environ.get("AMPHORA", os.path.join(ROOT, "build/amphora"))
NETWORKS = ["resnet18", "resnet50", "mobilenet_v2"]
DATA = os.path.join(ROOT, "../shared/data/tflite")
QUANTISED = [f"{DATA}/{name}.tflite" for name in (
    "person_detect", "kws_ref_model", "pretrainedResnet_quant")]
# Columns of --codes: target and settings.
VECTORS = [("cpu-x86-64", []), ("cpu-x86-64-v4", []),
           ("cpu-x86-64-v4", ["--set", "native.features=+avx512vnni"])]
RUNS = 5  # a turn

TIMER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}
"""
OURS = TIMER + r"""
#include "%(file)s.h"
int main(int argc, char **argv) {
    float *in = malloc(4 * 3 * 224 * 224), *out = malloc(1 << 20);
    int times = %(times)d;
    void *room = aligned_alloc(64, (%(net)s_WORKSPACE_BYTES + 63) / 64 * 64);
    %(net)s_io io = {(void *)in, (void *)out};
    for (int i = 0; i < 3 * 224 * 224; i++)
        in[i] = 0.5f;
    for (int i = 0; i < atoi(argv[1]) + 2; i++) {
        double start = now();
        for (int k = 0; k < times; k++)
            %(net)s_run(&io, room);
        if (i > 1)
            printf("%%g\n", (now() - start) / times);
    }
    return argc != 2;
}
"""
NAIVE = TIMER + r"""
enum { MOST = 1 << 24 };
%(value)s in[MOST], out[MOST], weight[MOST]; /* anyone might change them */
%(layers)s
int main(int argc, char **argv) {
    for (int i = 0; i < atoi(argv[1]); i++) {
        double start = now();
        %(calls)s
        printf("%%g\n", now() - start);
    }
    return argc != 2 || out[argc] > 100;
}
"""
LAYER = r"""
static void conv%(i)d(void) {
    for (int o = 0; o < %(out_c)d; o++)
        for (int y = 0; y < %(h)d; y++)
            for (int x = 0; x < %(w)d; x++) {
                %(sum)s sum = 0;
                for (int c = 0; c < %(fan)d; c++)
                    for (int i = 0; i < %(kh)d; i++)
                        for (int j = 0; j < %(kw)d; j++) {
                            int row = y * %(sh)d + i - %(ph)d;
                            int column = x * %(sw)d + j - %(pw)d;
                            if (row < 0 || row >= %(in_h)d || column < 0 ||
                                column >= %(in_w)d)
                                continue;
                            int at = o / %(members)d * %(fan)d + c;
                            sum += in[(at * %(in_h)d + row) * %(in_w)d +
                                      column] *
                                   weight[((o * %(fan)d + c) * %(kh)d + i) *
                                          %(kw)d + j];
                        }
                out[(o * %(h)d + y) * %(w)d + x] = %(result)s;
            }
}
"""


def run(command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True,
                          stderr=subprocess.DEVNULL).stdout.decode()


def numbers(command):
    return [float(line) for line in run(command).split()]


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def build_ours(folder, model, target, settings=(), times=1):
    run([AMPHORA, "compile", model, "-t", target, "--emit", "bundle", "-o",
         folder, *settings])
    name = os.path.splitext(os.path.basename(model))[0]
    net = re.sub(r"\W", "_", name)
    write(f"{folder}/ours.c", OURS % {"file": name, "net": net,
                                      "times": times})
    run(["cc", "-O2", "-o", f"{folder}/ours", f"{folder}/ours.c",
         f"{folder}/{name}.o"])
    with open(f"{folder}/{name}.h", encoding="utf-8") as file:
        return int(re.search(r"WORKSPACE_BYTES (\d+)", file.read())[1])


def convolutions(folder, model, how):
    """One function each, as C."""
    run([AMPHORA, "show", model, "--emit", "json", "-o", f"{folder}/net.json"])
    with open(f"{folder}/net.json", encoding="utf-8") as file:
        nodes = json.load(file)["nodes"]
    shapes = {t["name"]: t["shape"] for n in nodes for t in n["writes"]}
    for i, node in enumerate(n for n in nodes if n["op"] == "conv"):
        a, of = node["attributes"], shapes[node["reads"][0]]
        to, groups = node["writes"][0]["shape"], a["groups"][0]
        yield LAYER % {
            **how, "i": i, "out_c": to[1], "h": to[2], "w": to[3],
            "fan": of[1] // groups, "members": to[1] // groups,
            "in_h": of[2], "in_w": of[3], "kh": a["kernel"][0],
            "kw": a["kernel"][1], "sh": a["stride"][0], "sw": a["stride"][1],
            "ph": a["pad"][0], "pw": a["pad"][1]}


FLOATS = {"value": "float", "sum": "float", "result": "sum"}
CODES = {"value": "signed char", "sum": "int",
         "result": "(signed char)(sum >> 8)"}


def build_naive(folder, model, how):
    layers = list(convolutions(folder, model, how))
    calls = "\n        ".join(f"conv{i}();" for i in range(len(layers)))
    write(f"{folder}/naive.c", NAIVE % {**how, "layers": "".join(layers),
                                        "calls": calls})
    run(["clang", "-O3", "-march=native", "-o", f"{folder}/naive",
         f"{folder}/naive.c"])


def measure(folder, model, npm, turns):
    ort = ["node", os.path.join(ROOT, "bench/native_ort.mjs"), npm, model]
    times = {"ours": [], "ort": [], "naive": []}
    for _ in range(turns):
        times["ours"] += numbers([f"{folder}/ours", str(RUNS)])
        times["ort"] += numbers(ort + [str(RUNS)])
        times["naive"] += numbers([f"{folder}/naive", "1"])
    return {name: statistics.median(values) for name, values in times.items()}


def measure_codes(model, turns):
    """Medians of bundles, then of the loops."""
    times = [[] for _ in range(len(VECTORS) + 1)]
    with tempfile.TemporaryDirectory() as folder:
        for i, (target, settings) in enumerate(VECTORS):
            own = f"{folder}/{i}"
            os.mkdir(own)
            build_ours(own, model, target, settings, 20)
        build_naive(folder, model, CODES)
        for _ in range(turns):
            for i in range(len(VECTORS)):
                times[i] += numbers([f"{folder}/{i}/ours", str(RUNS)])
            times[-1] += numbers([f"{folder}/naive", str(RUNS)])
    return [statistics.median(t) for t in times]


def print_codes(models, turns):
    print(f"{'network':24} {'avx2':>8} {'avx512':>8} {'vnni':>8} "
          f"{'naive':>8} {'x naive':>8}   "
          f"(ms; load {os.getloadavg()[0]:.1f})")
    for model in models:
        t = measure_codes(model, turns)
        name = os.path.splitext(os.path.basename(model))[0]
        print(f"{name:24} " + " ".join(f"{x:8.3f}" for x in t) +
              f" {t[-1] / t[0]:8.1f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("networks", nargs="*")
    parser.add_argument("-t", "--target", default="cpu-x86-64-v4")
    parser.add_argument("--folder", default=os.path.join(ROOT, "out/truth"))
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--codes", action="store_true")
    options = parser.parse_args()
    if options.codes:
        print_codes(options.networks or QUANTISED, options.turns)
        return
    print(f"{'network':14} {'bundle':>8} {'ort':>8} {'naive':>8} "
          f"{'of ort':>7} {'x naive':>8} {'workspace':>10}   "
          f"(ms; {options.target}; load {os.getloadavg()[0]:.1f})")
    for network in options.networks or NETWORKS:
        model = f"{options.folder}/{network}.onnx"
        with tempfile.TemporaryDirectory() as folder:
            workspace = build_ours(folder, model, options.target)
            build_naive(folder, model, FLOATS)
            t = measure(folder, model, f"{options.folder}/npm", options.turns)
        print(f"{network:14} {t['ours']:8.1f} {t['ort']:8.1f} "
              f"{t['naive']:8.1f} {t['ort'] / t['ours']:7.2f} "
              f"{t['naive'] / t['ours']:8.1f} {workspace:10}", flush=True)


if __name__ == "__main__":
    main()
