#!/usr/bin/env python3
"""reading_formats.py - what it costs to read a large file of each format.

Writes a network of SIZE MB (default 100) in each: four convolutions of one
pixel, all weights. Runs `amphora show --json` on it. Prints the median
milliseconds of reading, and the most memory that was resident less what a
thousandth of the network takes. ONNX and its ways: bench/reading.py.

usage: reading_formats.py [SIZE] [RUNS]        (Keras' own files: python3-h5py)
"""
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "tests"))
from truthlib import AMPHORA, field  # noqa: E402
from write_keras import Model as KerasModel  # noqa: E402
from write_mxnet import Symbol, write_params  # noqa: E402
from write_tf import FLOAT, Graph, Ints  # noqa: E402
from write_tflite import NONE, SAME, Model as LiteModel  # noqa: E402

LAYERS = 4


def values(n):
    return (struct.pack("<f", 1 / 64) * (1 << 14) * (n >> 14) +
            struct.pack("<f", 1 / 64) * (n & (1 << 14) - 1))


def tensorflow(folder, c, form):
    g = Graph()
    x = g.input(1, 4, 4, c)
    for _ in range(LAYERS):
        x = g.node("Conv2D", x, g.const(FLOAT, [1, 1, c, c], values(c * c)),
                   strides=Ints([1, 1, 1, 1]), padding="SAME")
    path = folder + {"pb": "/net.pb", "tfjs": "/net.json"}[form]
    (g.write_pb if form == "pb" else g.write_tfjs)(path)
    return [path]


def keras(folder, c, form):
    m = KerasModel()
    x = m.input(4, 4, c)
    for i in range(LAYERS):
        x = m.layer("Conv2D", x, name=f"c{i}", filters=c, kernel_size=[1, 1],
                    use_bias=False, weights=[("kernel", [1, 1, c, c],
                                              values(c * c))])
    m.ends = [x]
    path = folder + "/net." + form
    {"h5": m.write_h5, "keras": m.write_keras}[form](path)
    return [path]


def lite(folder, c):
    m = LiteModel()
    x = m.input(1, 4, 4, c)
    for i in range(LAYERS):
        arguments = ["CONV_2D", [x, m.const([c, 1, 1, c], values(c * c)), -1],
                     [1, 4, 4, c], SAME, 1, 1, NONE, 1, 1]
        x = (m.end if i == LAYERS - 1 else m.op)(*arguments)
    m.write(folder + "/net.tflite")
    return [folder + "/net.tflite"]


def mxnet(folder, c):
    s, arrays = Symbol(), []
    x = s.input(1, c, 4, 4)
    for i in range(LAYERS):
        x = s.node("Convolution", x, name=f"c{i}", num_filter=c,
                   kernel=(1, 1), no_bias=True)
        arrays.append((f"arg:c{i}_weight", [c, c, 1, 1], values(c * c)))
    s.heads = [x]
    s.write_json(folder + "/net.json")
    write_params(folder + "/net.params", arrays)
    return [folder + "/net.json", "--weights", folder + "/net.params"]


def caffe(folder, c):
    text = ('layer { name: "x" type: "Input" top: "x" input_param { shape { '
            f"dim: 1 dim: {c} dim: 4 dim: 4 }} }} }}\n")
    model, shape = b"", b"".join(field(1, d) for d in (c, c, 1, 1))
    for i in range(LAYERS):
        text += (f'layer {{ name: "c{i}" type: "Convolution" bottom: '
                 f'"{f"c{i - 1}" if i else "x"}" top: "c{i}" '
                 f"convolution_param {{ num_output: {c} kernel_size: 1 "
                 "bias_term: false } }\n")
        model += field(100, field(1, f"c{i}") + field(2, "Convolution") +
                       field(7, field(7, shape) + field(5, values(c * c))))
    for name, data in (("prototxt", text.encode()), ("caffemodel", model)):
        with open(f"{folder}/net.{name}", "wb") as file:
            file.write(data)
    return [folder + "/net.prototxt", "--weights", folder + "/net.caffemodel"]


def darknet(folder, c):
    with open(folder + "/net.cfg", "w") as file:
        file.write(f"[net]\nwidth=4\nheight=4\nchannels={c}\n" +
                   f"[convolutional]\nfilters={c}\nsize=1\nstride=1\n"
                   "activation=linear\n" * LAYERS)
    with open(folder + "/net.weights", "wb") as file:
        file.write(struct.pack("<3iq", 0, 2, 0, 0) +
                   values(c * c + c) * LAYERS)
    return [folder + "/net.cfg", "--weights", folder + "/net.weights"]


def own(folder, c):
    network = mxnet(folder, c)
    subprocess.run([AMPHORA, "show", *network, "--emit", "json", "-o",
                    folder + "/own.json"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for path in network[0], network[2]:
        os.unlink(path)
    return [folder + "/own.json"]


FORMATS = [("TensorFlow .pb", tensorflow, ["pb"]),
           ("TensorFlow, tfjs", tensorflow, ["tfjs"]),
           ("TensorFlow Lite .tflite", lite, []),
           ("Keras .h5", keras, ["h5"]), ("Keras .keras", keras, ["keras"]),
           ("MXNet .params", mxnet, []), ("Caffe .caffemodel", caffe, []),
           ("Darknet .weights", darknet, []), ("amphora JSON", own, [])]


def run(arguments):
    """Milliseconds of reading, and MB resident at most, by a fresh process:
    a child's count begins with what its parent has."""
    code = ("import os,subprocess,sys;"
            "p=subprocess.Popen(sys.argv[1:],stdout=subprocess.PIPE);"
            "t=p.stdout.read();_,s,u=os.wait4(p.pid,0);"
            "print(u.ru_maxrss);sys.stdout.write(t.decode());sys.exit(s!=0)")
    done = subprocess.run(
        [sys.executable, "-c", code, AMPHORA, "show", *arguments, "--json"],
        stdout=subprocess.PIPE, check=True)
    most, text = done.stdout.decode().split("\n", 1)
    return json.loads(text)["ms"]["read"], int(most) / 1024


def main():
    size = float(sys.argv[1]) * 1e6 if len(sys.argv) > 1 else 100e6
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    print(f"{'format':24} {'file MB':>8} {'read ms':>8} {'MB beyond':>10}")
    for name, make, options in FORMATS:
        channels = [int((s / 4 / LAYERS) ** 0.5) for s in (size / 1000, size)]
        with tempfile.TemporaryDirectory() as folder:
            small = run(make(folder, channels[0], *options))[1]
        with tempfile.TemporaryDirectory() as folder:
            try:
                arguments = make(folder, channels[1], *options)
            except ImportError as error:
                print(f"{name:24} skipped: {error}")
                continue
            mb = sum(os.path.getsize(os.path.join(folder, f))
                     for f in os.listdir(folder)) / 1e6
            seen = [run(arguments) for _ in range(runs)]
        print(f"{name:24} {mb:8.1f} "
              f"{statistics.median(ms for ms, _ in seen):8.2f} "
              f"{max(most for _, most in seen) - small:10.1f}", flush=True)


if __name__ == "__main__":
    main()
