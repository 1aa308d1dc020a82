#!/usr/bin/env python3
"""truth_opencv.py - one model through OpenCV's dnn module, in a process of its
own, since some graphs crash it.
usage: truth_opencv.py READER FILES OUT NAMES [NAME DIMS FILE]...
READER: as in cv2.dnn.readNetFromREADER; FILES and NAMES (of outputs): with
commas between; "" asks for the last. For each input its name, dims (of N x C x
H x W, as OpenCV has images whatever the file says) and raw float32 values.
Writes OUT.0, OUT.1... in the same raw form and prints one line of JSON."""
import json
import sys

import cv2
import numpy


def main():
    reader, files, out, names, *inputs = sys.argv[1:]
    net = getattr(cv2.dnn, "readNetFrom" + reader)(*files.split(","))
    net.setPreferableBackend(cv2.dnn.DNN_BACKEND_OPENCV)
    net.enableFusion(False)
    for i in range(0, len(inputs), 3):
        shape = [int(dim) for dim in inputs[i + 1].split("x")]
        net.setInput(numpy.fromfile(inputs[i + 2], "<f4").reshape(shape),
                     inputs[i])
    values = net.forward(names.split(",")) if names else [net.forward()]
    for i, value in enumerate(values):
        numpy.ascontiguousarray(value, "<f4").tofile(f"{out}.{i}")
    print(json.dumps({"dims": [list(value.shape) for value in values]}))


if __name__ == "__main__":
    main()
