#!/usr/bin/env python3
"""formats.py - real networks of every format but Caffe and ONNX, through the
door.

  reads      each file of ../shared/data reads, or is refused with the message
             that stands in the table (docs/formats.md has it, too)
  round trip written as JSON and read back, it is the same graph
  same       one network from two formats gives the same fused graph: operators,
             shapes and windows, node for node

Skips where ../shared/data is absent.
"""
import os
import re
import subprocess
import sys
import tempfile

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
DATA = "../shared/data/"
READS = [
    ("mxnet/cifar_resnet20_v1-symbol.json", "data=1x3x32x32"),
    ("mxnet/resnet-152-symbol.json", "data=1x3x224x224"),
    ("mxnet/save_000800-symbol.json", "data=1x784"),
    ("tensorflow/t2o_regression_frozen.pb", "X=1"),
    ("tensorflow/tfjs_mobilenet_v2_graph.json", None),
    ("tensorflow/tfjs_tiny_graph.json", None),
    ("tflite/hello_world_float.tflite", None),
    ("tflite/hello_world_int8.tflite", None),
    ("tflite/kws_ref_model.tflite", None),
    ("tflite/pad0.tflite", None),
    ("tflite/person_detect.tflite", None),
    ("tflite/pretrainedResnet_quant.tflite", None),
    ("keras/keras310_mobilenet_v2_96.json", None),
    ("keras/keras310_vgg16_64.json", None),
    ("keras/mlcommons_pretrainedResnet_keras2.4.json", None),
]
REFUSED = [
    ("tensorflow/tfjs_times_three_saved_model.pb",
     'variables has no "v/.ATTRIBUTES/VARIABLE_VALUE"'),
    ("keras/kerasjs_Conv2D.json", "not a network in a known format"),
    ("mxnet/legacy_ndarray.v0", "read the symbol's JSON with --weights"),
]
# Two files, the shape they get, and how many nodes at the end may differ. The
# two MobileNetV2 have different widths (0.35 and 0.5) and heads, so channels
# are not compared; "scale" is what one of them does to pixels first.
SAME = [
    ("keras/mlcommons_pretrainedResnet_keras2.4.json",
     "tflite/pretrainedResnet_quant.tflite", "1x3x32x32", 0),
    ("keras/keras310_mobilenet_v2_96.json",
     "tensorflow/tfjs_mobilenet_v2_graph.json", "1x3x224x224", 3),
]
KEPT = re.compile(r"(groups|kernel|stride|dilation|pad|pad_end|act|kind)=")


def show(path, *options):
    done = subprocess.run([AMPHORA, "show", path, *options],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False)
    return done.returncode, done.stderr.decode(errors="replace")


def shape_options(shape):
    return ["--shape", shape] if shape else []


def graph(text):
    """The last graph of a dump, without places and its name."""
    lines = text[text.rfind("\ngraph ") + 1:].split("\n")[1:]
    return [re.sub(r' at="[^"]*":\d+:\d+', "", line) for line in lines
            if re.match(r"[a-z_]+ [\"0-9]", line)]


def fused(path, shape):
    """(operator, shape, windows) of each node behind the passes."""
    code, text = show(path, "--shape", shape, "--dump", "all")
    nodes = []
    for line in graph(text) if code == 0 else []:
        words = line.split()
        made = re.search(r'writes="[^"]*":(\S+)', line)
        if made and words[0] != "const":
            nodes.append((words[0], made.group(1).split(":")[0],
                          *[w for w in words if KEPT.match(w)]))
    return nodes


def check_round_trip(path, shape, folder):
    options = shape_options(shape)
    written = os.path.join(folder, "net.json")
    code, text = show(path, *options, "--dump", "graph")
    if code:
        return f"not read: {text}"
    code, message = show(path, *options, "--emit", "json", "-o", written)
    if code:
        return f"not written: {message}"
    code, back = show(written, "--dump", "graph")
    if code or graph(back) != graph(text):
        return "another graph comes back from JSON " + back[:300]
    return None


def check_refused(path, message):
    code, text = show(path)
    if code != 1 or message not in text:
        return f"exit code {code}, and says {text!r}"
    return None


def without_channels(node):
    operator, shape, *rest = node
    return (operator, shape.split("x")[2:],
            *[word for word in rest if not word.startswith("groups=")])


def check_same(one, other, shape, head):
    graphs = [[node for node in fused(DATA + path, shape)
               if node[0] != "scale"] for path in (one, other)]
    if not graphs[0] or not graphs[1]:
        return "one of them is not read"
    if head:
        graphs = [[without_channels(node) for node in g] for g in graphs]
        graphs = [g[:len(min(graphs, key=len)) - head] for g in graphs]
    if graphs[0] != graphs[1]:
        pair = next((p for p in zip(*graphs) if p[0] != p[1]), None)
        return f"differs from {other}: {pair}"
    return None


def main():
    if not os.path.exists(DATA + "mxnet"):
        print("skipped: no ../shared/data")
        return 0
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        results = [(p, check_round_trip(DATA + p, shape, folder))
                   for p, shape in READS]
    results += [(p, check_refused(DATA + p, what)) for p, what in REFUSED]
    results += [(row[0], check_same(*row)) for row in SAME]
    for path, message in REFUSED:
        print(f"{path} is refused: ...{message}...")
    for path, wrong in results:
        if wrong:
            print(f"{path}: {wrong}")
            failed += 1
    print(f"{len(results) - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
