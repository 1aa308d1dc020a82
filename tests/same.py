#!/usr/bin/env python3
"""same.py - the same network in several formats is the same graph.

MobileNetV2 and ResNet-18, narrow and small but whole, are written as ONNX,
Caffe, TensorFlow, Keras, TensorFlow Lite and MXNet files with the same weights.
Each must give the same fused graph, node for node: operators, shapes, windows,
activations, and which node reads which, names apart; and the same values. Written
as amphora's JSON and read back it is that graph with those values, exactly.
Files of ../shared/data with one network in two formats: tests/formats.py.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from truthlib import AMPHORA, amphora, draw, npy_write  # noqa: E402
from write_same import FORMATS, Weights  # noqa: E402

SIZE, CLASSES = 97, 10


class Builder:
    """Layers with their weights, for whatever format."""

    def __init__(self, to):
        self.to = to

    def conv(self, x, name, channels, out, size, stride=1, act=None):
        """channels: of the input; 0: one group a channel."""
        w = Weights(name, out, channels or 1, size)
        return self.to.conv(x, name, w, stride, 1 if channels else out, act)

    def classes(self, x, channels):
        return self.to.classes(x, Weights("fc", CLASSES, channels, 1))


def mobilenet_v2(b):
    """Sandler et al. 2018, table 2, an eighth of its width."""
    x = b.conv(b.to.input(3, SIZE), "stem", 3, 8, 3, 2, "relu6")
    channels, n = 8, 0
    for expand, out, times, stride in (
            (1, 8, 1, 1), (6, 8, 2, 2), (6, 8, 3, 2), (6, 8, 4, 2),
            (6, 16, 3, 1), (6, 24, 3, 2), (6, 40, 1, 1)):
        for i in range(times):
            n += 1
            inner, before, name = channels * expand, x, f"block{n}"
            if expand > 1:
                x = b.conv(x, name + "_expand", channels, inner, 1, 1,
                           "relu6")
            x = b.conv(x, name + "_depth", 0, inner, 3,
                       stride if i == 0 else 1, "relu6")
            x = b.conv(x, name + "_project", inner, out, 1)
            if i > 0:
                x = b.to.add(before, x, name + "_add", None)
            channels = out
    x = b.conv(x, "head", channels, 160, 1, 1, "relu6")
    b.classes(x, 160)


def resnet_18(b):
    """He et al. 2015, an eighth of its width."""
    x = b.conv(b.to.input(3, SIZE), "stem", 3, 8, 7, 2, "relu")
    x, channels = b.to.pool(x, "pool", 3, 2), 8
    for stage, out in enumerate((8, 16, 32, 64)):
        for i in range(2):
            name, stride = f"stage{stage}_{i}", 2 if stage and not i else 1
            short = x
            if stride > 1:
                short = b.conv(x, name + "_short", channels, out, 1, stride)
            x = b.conv(x, name + "_a", channels, out, 3, stride, "relu")
            x = b.conv(x, name + "_b", out, out, 3)
            x = b.to.add(short, x, name + "_add", "relu")
            channels = out
    b.classes(x, channels)


NETWORKS = {"MobileNetV2": mobilenet_v2, "ResNet-18": resnet_18}
# What a node of a dump is, beside its name and what it reads and writes.
KEPT = re.compile(r"(groups|kernel|stride|dilation|pad|pad_end|act|kind|out|"
                  r"global|ceil|count_pad|alpha|lo|hi|axis)=")


def fused(arguments):
    """The graph behind the passes: (operator, shape, attributes, numbers of
    the nodes that it reads) by node; nodes that make constants left out."""
    done = subprocess.run([AMPHORA, "show", *arguments, "--dump", "all"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False)
    text = done.stderr.decode()
    if done.returncode:
        raise ValueError(text)
    numbers, nodes = {}, []
    for line in text[text.rfind("\ngraph ") + 1:].split("\n")[1:]:
        made = re.search(r'writes="([^"]*)":(\S+)', line)
        if not made or line.startswith("const"):
            continue
        numbers[made.group(1)] = len(nodes)
        reads = re.search(r'reads=((?:"[^"]*",?)*)', line)
        read = [numbers[name] for name in
                re.findall(r'"([^"]*)"', reads.group(1) if reads else "")]
        words = [w for w in line.split() if KEPT.match(w)]
        nodes.append((line.split()[0], made.group(2), tuple(words),
                      tuple(sorted(read))))
    return nodes


def canonical(nodes):
    """Nodes in an order that depends on the graph alone: each by what it is
    and what it reads, sorted. Branches may stand in either order."""
    marks = []
    for operator, shape, words, reads in nodes:
        marks.append((operator, shape, words,
                      tuple(sorted(repr(marks[i]) for i in reads))))
        marks[-1] = (*marks[-1][:3], hash(marks[-1]))
    return sorted(map(repr, marks))


def values(arguments, folder, expected=None):
    """The error against values of another format, or those values."""
    image = folder + "/image.npy"
    npy_write(image, [1, 3, SIZE, SIZE],
              draw("image", 3 * SIZE * SIZE, -1, 1))
    command = ["eval", *arguments, "--input", image, "--json"]
    if expected:
        _, report = amphora(*command, "--expect", expected)
        return report.get("max_rel_error", 1.0)
    made = tempfile.mkdtemp(dir=folder)
    amphora(*command, "-o", made)
    return glob.glob(made + "/*.npy")[0]


def own_form(files, folder):
    """The same as amphora's own JSON, with its values beside it."""
    path = folder + "/own.json"
    subprocess.run([AMPHORA, "show", *files, "--emit", "json", "-o", path],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   check=True)
    return [path]


def compare(network, folder):
    """Lines about formats that differ from the first."""
    first = None
    for name, maker in FORMATS.items():
        to = maker()
        NETWORKS[network](Builder(to))
        files = to.write(f"{folder}/net.{to.suffix}")
        graph = fused(files)
        if first is None:
            first, expected = graph, values(files, folder)
            print(f"{network}: {len(graph)} nodes", flush=True)
            continue
        if canonical(graph) != canonical(first):
            pair = next((p for p in zip(first, graph) if p[0] != p[1]),
                        (len(first), len(graph)))
            yield f"{network} in {name} is another graph: {pair}"
            continue
        error = values(files, folder, expected)
        again = own_form(files, folder)
        if fused(again) != graph or values(again, folder, values(
                files, folder)) > 0:
            yield f"{network} in {name} comes back from JSON as another graph"
        print(f"  {name:12} the same nodes, values to {error:.1e}")
        if error > 1e-5:
            yield f"{network} in {name} has other values: {error:.1e}"


def main():
    failed = []
    for network in NETWORKS:
        with tempfile.TemporaryDirectory() as folder:
            failed += compare(network, folder)
    print("\n".join(failed) or "all the same")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
