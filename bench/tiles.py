#!/usr/bin/env python3
"""tiles.py - tiling of single layers, beside a bound on what they must move.

    python3 bench/tiles.py [--am KIB...] [--all] [--count] [--default]
                           [NETWORK...]

Each convolution (of one group) of a network is a network of its own here: its
input and weights lie in DDR, its result goes there, and all tiles - inputs,
weights, 4-byte partial sums, doubled where the next one comes meanwhile - share
the active memory of tile-npu, 8 bits an element. Ours is what the simulator
counts by running the emitted listing: inputs, weights and outputs over DDR.
`verify` also compares the values with the reference; with --count nothing
does, which is faster.
The bound is one of bytes alone, however long they take, so layers are planned
with --objective bytes; with --default as a user gets them, who would not
wait twice as long for a twentieth of the bytes.
bound: the larger of what must move in any case (pixels that a kernel touches,
weights, outputs, each once) and 2 MACs / sqrt(R S) + outputs, R the reuse by
the kernel (at least 1) and S the bytes of active memory (Chen et al., HPCA
2020; asymptotic: it may exceed what can be done where a layer nearly fits; our
two buffers of a kind and 4-byte sums are not in it). Layers are summed before
dividing; `worst` is the layer farthest from its bound, with the bytes by which
it exceeds that. MAC/B: products for each byte that moved.
../shared/facts/two-level.md 2.4 has the figures to reach: at 512 KiB 1.10 for
VGG16, 1.02 for the others.
"""
import argparse
import json
import math
import os
import sys
import tempfile
import time

import tool

NETWORKS = ("vgg16", "resnet50", "googlenet", "inception-v3")


def graph_of(network, folder):
    path = os.path.join(folder, "graph.json")
    done = tool.run("show", network, "--emit", "json", "-o", path)
    if done.returncode:
        sys.exit(done.stderr)
    with open(path, encoding="utf-8") as text:
        return json.load(text)


def layers(graph):
    """(input, node) of each convolution of one group; how many others."""
    shape, found, others = {}, [], 0
    for node in graph["nodes"]:
        for made in node["writes"]:
            shape[made["name"]] = made["shape"]
        if node["op"] == "conv" and node["attributes"]["groups"] == [1]:
            found.append((shape[node["reads"][0]], node))
        elif node["op"] in ("conv", "deconv"):
            others += 1
    return found, others


def touched(size, out, kernel, stride, dilation, pad):
    """Pixels along an axis that some window reads."""
    return len({x for at in range(out) for k in range(kernel)
                if 0 <= (x := at * stride - pad + k * dilation) < size})


def bound(shape, node, memory):
    a = node["attributes"]
    out = node["writes"][0]["shape"]
    pixels = [touched(shape[2 + i], out[2 + i], a["kernel"][i],
                      a["stride"][i], a["dilation"][i], a["pad"][i])
              for i in (0, 1)]
    taps = a["kernel"][0] * a["kernel"][1]
    weights, made = taps * shape[1] * out[1], math.prod(out)
    macs = weights * out[2] * out[3]
    reuse = max(1, taps / (a["stride"][0] * a["stride"][1]))
    once = shape[1] * pixels[0] * pixels[1] + weights + made
    return max(once, 2 * macs / math.sqrt(reuse * memory) + made), macs


def alone(graph, shape, node):
    """The network of one convolution; its constants are the seeded ones."""
    constants, own = [], dict(node["constants"])
    for role, index in own.items():
        own[role] = len(constants)
        constants.append(graph["constants"][index])
    layer = dict(node, constants=own, reads=["x"])
    image = {"op": "input", "name": "x", "reads": [],
             "writes": [{"name": "x", "shape": shape}]}
    return {"amphora": 1, "name": "layer", "constants": constants,
            "nodes": [image, layer], "outputs": [node["writes"][0]["name"]]}


def key(shape, node):
    return json.dumps([shape, node["writes"][0]["shape"], node["attributes"]])


def moved(network, folder, memory, values, alone):
    """Bytes over DDR of the network of one layer; seconds of its planning;
    cycles."""
    path = os.path.join(folder, "layer.json")
    with open(path, "w", encoding="utf-8") as text:
        json.dump(network, text)
    sets = [tool.am(memory)]
    objective = "bytes" if alone else None
    if values:
        run = tool.verified(path, "tile-npu", *sets, objective=objective)
        planning = run and run["ms"]["alloc"]
    else:
        run = tool.counted(path, "tile-npu", folder, *sets,
                           objective=objective)
        planning = run and run["plan"]["ms"]["alloc"]
    if not run:
        sys.exit(f"{network['nodes'][1]['name']} does not fit")
    return (run["ddr_read_bytes"] + run["ddr_written_bytes"] +
            run["weights_read_bytes"]), planning / 1000, run["cycles"]


def heading():
    print(f"{'network':14} {'KiB':>5} {'conv':>4} {'moved':>12} {'bound':>14} "
          f"{'ratio':>6} {'MAC/B':>6} {'cycles':>12} {'s':>5}  worst")


def row(network, memory, folder, each=False, values=True, by_bytes=True):
    """Prints it; ours / bound."""
    graph = graph_of(network, folder)
    found, others = layers(graph)
    known, sums, planning, worst = {}, [0, 0, 0, 0], 0, (0, 0, "")
    for shape, node in found:
        least, macs = bound(shape, node, memory)
        same = key(shape, node)
        if same not in known:
            known[same] = moved(alone(graph, shape, node), folder, memory,
                                values, by_bytes)
            planning += known[same][1]
        ours = known[same][0]
        sums = [s + x for s, x in zip(sums, (ours, least, macs,
                                                known[same][2]))]
        worst = max(worst, (ours / least, ours - least, node["name"]))
        if each:
            print(f"  {node['name']:30} {ours:12,} {least:14,.0f} "
                  f"{ours / least:6.3f}")
    print(f"{tool.name_of(network):14} {memory // 1024:5} {len(found):4} {sums[0]:12,} "
          f"{sums[1]:14,.0f} {sums[0] / sums[1]:6.3f} {sums[2] / sums[0]:6.0f} "
          f"{sums[3]:12,} {planning:5.2f}  {worst[0]:.3f} {worst[2]}, {worst[1]:,.0f} bytes"
          + (f"; {others} of several groups left out" if others else ""))
    return sums[0] / sums[1]


def main():
    ask = argparse.ArgumentParser()
    ask.add_argument("--am", type=int, nargs="+", default=[512])
    ask.add_argument("--all", action="store_true", help="each layer, too")
    ask.add_argument("--count", action="store_true", help="compare no values")
    ask.add_argument("--default", action="store_true",
                     help="weigh time against bytes")
    ask.add_argument("network", nargs="*")
    asked = ask.parse_args()
    start = time.time()
    heading()
    with tempfile.TemporaryDirectory() as folder:
        for am in asked.am:
            for network in asked.network or [tool.example(n)
                                             for n in NETWORKS]:
                row(network, am * 1024, folder, asked.all, not asked.count,
                    not asked.default)
    print(f"every layer {'counted' if asked.count else 'verified by value'}; "
          f"{time.time() - start:.0f} s in all")


if __name__ == "__main__":
    main()
