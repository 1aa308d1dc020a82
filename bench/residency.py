#!/usr/bin/env python3
"""residency.py - nine networks with too little memory.

    python3 bench/residency.py [--maps] [-t MACHINE] [NETWORK...]

Networks x active memory of 90, 75, 50, 25 % of the peak, on bench/rows.yaml:
one byte an element, no padding, row planks in software. Bytes of feature maps
over DDR beyond the compulsory ones (what is read of the image once, what is
written of results once), and of weights beyond those that are read once where
nothing is short; --maps: of feature maps alone, as if engines held all weights.
Ours is counted by the simulator, with tile buffers and alignment; the policies
of policies.py move the same volumes in the same order, read each weight once,
and are charged nothing of buffers. Networks come from ../shared/data, else
from examples/; those that nobody publishes as a file from bench/networks.py.
PUBLISHED are the figures of ../shared/facts/two-level.md 2.3, of peaks that are
not always ours: its concats are copies, and its U-Net and SegNet other ones.
-t xdnn-v2-28: the same networks on another machine, of two bytes an element,
against the policies alone; peaks are those of its volumes.
"""
import os
import subprocess
import sys
import tempfile

import tool
import traffic

MACHINE = os.path.join(tool.ROOT, "bench", "rows.yaml")
DATA = os.path.join(tool.ROOT, "..", "shared", "data", "caffe")
NETWORKS = {
    "resnet-50": ("ResNet-50-deploy", "resnet50"),
    "u-net": None,
    "densenet-121": ("deploy_densenet121", "densenet-cell"),
    "googlenet": ("bvlc_googlenet_deploy", "googlenet"),
    "inception-v3": ("deploy_inception-v3", "inception-v3"),
    "mobilenet-v2": ("mobilenet_v2_deploy", "mobilenet-v2"),
    "nasnet-imagenet": None,
    "darts-imagenet": None,
    "segnet": None,
}
# MB at 90, 75, 50, 25 % by LRU and by the linear program of rows, and bytes an
# element: the cells of NASNet and DARTS are those of floats
PUBLISHED = {
    "resnet-50": ((4.82, 4.82, 8.83, 20.9), (1.20, 3.01, 6.12, 14.8), 1),
    "u-net": ((16.8, 16.8, 33.6, 73.4), (3.36, 8.39, 16.8, 46.1), 1),
    "densenet-121": ((1.66, 3.12, 14.3, 25.6), (0.33, 1.04, 3.95, 14.3), 1),
    "googlenet": ((2.01, 2.81, 4.06, 8.06), (0.20, 0.60, 2.11, 5.00), 1),
    "inception-v3": ((2.77, 3.45, 6.56, 15.5), (0.41, 1.04, 2.82, 9.09), 1),
    "mobilenet-v2": ((3.01, 2.41, 5.07, 9.78), (0.30, 0.75, 2.06, 6.80), 1),
    "nasnet-imagenet": ((5.42, 6.52, 32.7, 95.5), (1.56, 4.66, 12.2, 43.9), 4),
    "darts-imagenet": ((2.41, 6.82, 24.2, 57.7), (1.07, 3.48, 10.2, 30.5), 4),
    "segnet": ((32, 32, 72, 100), (6.4, 16, 32, 64), 1),
}
LRU, ROWS = 0, 1


def network_file(name, folder):
    if NETWORKS.get(name):
        published, example = NETWORKS[name]
        path = os.path.join(DATA, published + ".prototxt")
        return path if os.path.exists(path) else tool.example(example)
    return generated(name, folder)


def generated(name, folder):
    path = os.path.join(folder, name + ".prototxt")
    generator = os.path.join(tool.ROOT, "bench", "networks.py")
    with open(path, "w", encoding="utf-8") as out:
        subprocess.run([sys.executable, generator, name], stdout=out,
                       check=True)
    return path


def against_published(names, rows, column):
    """Ours / the published figure of that column, row by row."""
    cells = [PUBLISHED[name][column][i] * 1e6 / PUBLISHED[name][2]
             for name in names for i in range(len(traffic.PARTS))]
    return [row.ours / cell for row, cell in zip(rows, cells)
            if row.ours is not None]


def main():
    arguments = sys.argv[1:]
    machine, weights = MACHINE, True
    if arguments[:1] == ["--maps"]:
        weights, arguments = False, arguments[1:]
    if arguments[:1] == ["-t"]:
        machine, arguments = arguments[1], arguments[2:]
    with tempfile.TemporaryDirectory() as folder:
        names = arguments or list(NETWORKS)
        paths = [network_file(name, folder) for name in names]
        if machine != MACHINE:
            traffic.table(paths, machine, folder, weights=weights)
            return
        rows = traffic.table(paths, machine, folder, 1, weights)
        for text, column in (("LRU", LRU), ("program of rows", ROWS)):
            found = against_published(names, rows, column)
            print(f"geometric mean of ours / the published {text}: "
                  f"{tool.geometric_mean(found):.3f} over {len(found)} rows, "
                  f"{sum(x > 1 for x in found)} above 1")


if __name__ == "__main__":
    main()
