#!/usr/bin/env python3
"""residency.py - the table of issue 6: nine networks with too little memory.

    python3 bench/residency.py [NETWORK...]

Networks x active memory of 90, 75, 50, 25 % of the peak, on bench/rows.yaml:
one byte an element, no padding, row planks in software. Bytes of feature maps
over DDR beyond the compulsory ones (what is read of the image once, what is
written of results once). Ours is counted by the simulator, with tile buffers
and alignment; the policies of traffic.py move the same volumes in the same
order and are charged no buffers. Networks come from ../shared/data, else from
examples/; those that nobody publishes as a file from bench/networks.py.
"""
import os
import subprocess
import sys
import tempfile

import traffic

MACHINE = os.path.join(os.path.dirname(__file__), "rows.yaml")
DATA = os.path.join("..", "shared", "data", "caffe")
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


def network_file(name, folder):
    if NETWORKS.get(name):
        published, example = NETWORKS[name]
        path = os.path.join(DATA, published + ".prototxt")
        return (path if os.path.exists(path)
                else os.path.join("examples", example + ".prototxt"))
    path = os.path.join(folder, name + ".prototxt")
    generator = os.path.join(os.path.dirname(__file__), "networks.py")
    with open(path, "w", encoding="utf-8") as out:
        subprocess.run([sys.executable, generator, name], stdout=out,
                       check=True)
    return path


def main():
    with tempfile.TemporaryDirectory() as folder:
        paths = [network_file(name, folder)
                 for name in sys.argv[1:] or NETWORKS]
        traffic.table(paths, MACHINE, folder, 1)


if __name__ == "__main__":
    main()
