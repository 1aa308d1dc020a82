#!/usr/bin/env python3
"""hostile.py - files made to harm a reader, of every format.

Each must end in the message that stands beside it (exit code 1), or be read,
within 30 seconds of a processor and 400 MB, by the build with sanitizers where
there is one. With --long, files that repeat one thing must take no more than
LINEAR times as long where they are eight times as large.
Damage at random: tests/fuzz.py; HDF5 and zip archives: test_keras.c.
"""
import os
import resource
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from truthlib import field  # noqa: E402
from write_mxnet import Symbol  # noqa: E402
from write_tf import FLOAT, Graph, Ints  # noqa: E402
from write_tflite import Model  # noqa: E402

BUILDS = ("build-asan/amphora", "build/amphora")
AMPHORA = next((path for path in BUILDS if os.path.exists(path)), BUILDS[1])
SECONDS, MEGABYTES = 30, 400
DEEP = 1_000_000
LINEAR, LEAST_SECONDS = 14, 0.1  # the latter: what is measured, not noise


def limit():
    """Time that a process takes itself: a busy machine changes nothing."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


def run(path, *options):
    """Exit code, what it said, its peak in MB."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    command = "check" if path.endswith("yaml") else "show"
    done = subprocess.run([AMPHORA, command, path, *options],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          preexec_fn=limit, check=False)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return (done.returncode, done.stderr.decode(errors="replace"),
            peak / 1024 if peak > before else 0)


# ---- the files: a name, bytes, and what is said ----

def json_deep(head):
    """A document that begins as the format's and nests a million deep."""
    return (head + "[" * DEEP + "]" * DEEP + "}").encode()


def tflite_file(change):
    model = Model()
    x = model.input(1, 4, 4, 3)
    model.end("CONV_2D", [x, model.drawn(-1, 1, 2, 3, 3, 3),
                          model.drawn(-1, 1, 2)], [1, 4, 4, 2], 0, 1, 1, 0, 1,
              1)
    with tempfile.NamedTemporaryFile() as file:
        model.write(file.name)
        data = bytearray(open(file.name, "rb").read())
    change(data)
    return bytes(data)


def put(at, value):
    return lambda data: struct.pack_into("<I", data, at, value)


def root_cycle(data):
    """Every offset of the root table leads to the root table."""
    root, = struct.unpack_from("<I", data, 0)
    for at in range(root + 4, root + 24, 4):
        struct.pack_into("<i", data, at, root - at & 0x7fffffff)


def graph_def(build):
    g = Graph()
    build(g)
    with tempfile.NamedTemporaryFile() as file:
        g.write_pb(file.name)
        return open(file.name, "rb").read()


def huge_const(g):
    """A few bytes that say: a gigabyte of zeros."""
    x = g.input(1, 4, 4, 3)
    w = g.const(FLOAT, [512, 512, 512, 2], b"\0\0\0\0")
    g.node("Conv2D", x, w, strides=Ints([1, 1, 1, 1]), padding="SAME")


def long_chain(g):
    x = g.input(1, 2, 2, 1)
    for _ in range(20000):
        x = g.node("Relu", x)


def waits_for_itself(g):
    g.input(1, 2, 2, 1)
    g.node("AddV2", "x", "b", name="a")
    g.node("AddV2", "x", "a", name="b")


# ---- one thing, again and again: text of item i of so many ----

def repeated(size, head, item, tail, backwards=False):
    """About `size` bytes; `tail` may hold {last}, the index of the last item."""
    items, n = [], 0
    while n < size:
        items.append(item.replace("{i}", str(len(items) + 1)).replace(
            "{before}", str(len(items))))
        n += len(items[-1])
    if backwards:
        items.reverse()
    last = str(len(items))
    return (head + "".join(items) + tail.replace("{last}", last)).encode()


KERAS = ('{"class_name":"Functional","config":{"name":"m","layers":[{"class_name":'
         '"InputLayer","name":"l0","config":{"name":"l0","batch_input_shape":'
         '[null,2,2,2]},"inbound_nodes":[]}',
         ',{"class_name":"ReLU","name":"l{i}","config":{"name":"l{i}"},'
         '"inbound_nodes":[[["l{before}",0,0,{}]]]}',
         '],"input_layers":[["l0",0,0]],"output_layers":[["l{last}",0,0]]}}')
CAFFE = 'input:"l0" input_shape{dim:1 dim:2 dim:4 dim:4}\n'
REPEATED = [  # name, head, item, tail, whether backwards
    ("chain.json", *KERAS),
    ("reversed.json", *KERAS, True),
    ("calls.json", KERAS[0] + ',{"class_name":"ReLU","name":"r","config":'
     '{"name":"r"},"inbound_nodes":[[["l0",0,0,{}]]',
     ',[["r",{before},0,{}]]',
     ']}],"input_layers":[["l0",0,0]],"output_layers":[["r",{last},0]]}}'),
    ("symbol.json", '{"nodes":[{"op":"null","name":"x","attrs":{"__shape__":'
     '"(1, 2, 4, 4)"},"inputs":[]}',
     ',{"op":"Activation","name":"a{i}","attrs":{"act_type":"relu"},'
     '"inputs":[[{before},0,0]]}',
     '],"arg_nodes":[0],"heads":[[{last},0,0]]}'),
    ("chain.prototxt", CAFFE, 'layer{name:"l{i}" type:"ReLU" bottom:"l{before}"'
     ' top:"l{i}"}\n', ""),
    ("ends.prototxt", CAFFE, 'layer{name:"l{i}" type:"ReLU" bottom:"l0"'
     ' top:"l{i}"}\n', ""),
    ("chain.cfg", "[net]\nwidth=8\nheight=8\nchannels=1\n",
     "[maxpool]\nsize=1\nstride=1\n", ""),
    ("keys.yaml", "machine: {name: x}\n", "k{i}: 1\n", ""),
    ("list.yaml", "machine: [", "a, ", "]\n"),
    ("lines.yaml", "machine: >\n", "  a\n", ""),
    ("deep.yaml", "machine: ", "[", ""),
    ("tags.yaml", "", "%TAG !a{i}! tag:x\n", "---\na: 1\n"),
]


def grows(row, folder):
    """What is wrong with how long files of 1 and 8 MB take, or None."""
    name, seconds = row[0], []
    for megabytes in (1, 8):
        path = os.path.join(folder, name)
        with open(path, "wb") as file:
            file.write(repeated(megabytes << 20, *row[1:]))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([BUILDS[1], "check" if name.endswith("yaml") else "show",
                        path], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, preexec_fn=limit,
                       check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime
                       - before.ru_stime)
    small, large = seconds
    if large <= LINEAR * max(small, LEAST_SECONDS):
        return None
    return f"{name}: {small:.1f} s for 1 MB, {large:.1f} s for 8 MB"


def params(dims, version=0xF993FAC9, count=1):
    shape = struct.pack(f"<I{len(dims)}q", len(dims), *dims)
    return struct.pack("<3QIi", 0x112, 0, count, version, 0) + shape + \
        struct.pack("<3i", 1, 0, 0) + bytes(64)


NEGATIVE = b"\xff" * 9 + b"\x01"  # -1 as a length
FILES = [
    ("deep.json", json_deep('{"nodes": [], "heads": '), "nested too deep"),
    ("deep-tf.json", json_deep('{"node": [{"name": '), "nested too deep"),
    ("deep-keras.json", json_deep('{"class_name": "Model", "config": '),
     "nested too deep"),
    ("deep-own.json", json_deep('{"amphora": 1, "graph": '),
     "nested too deep"),
    ("open.json", b'{"heads": 1, "nodes": [' + b'{"op": ' * 100000, "nested too deep"),
    ("root.tflite", tflite_file(put(0, 0xfffffff0)), "damaged"),
    ("vtable.tflite", tflite_file(lambda data: put(
        struct.unpack_from("<I", data, 0)[0], 0x7fffffff)(data)), "damaged"),
    ("cycle.tflite", tflite_file(root_cycle), ""),
    ("short.tflite", tflite_file(lambda data: data.__delitem__(
        slice(40, None))), "damaged"),
    ("negative.pb", b"\x0a" + NEGATIVE + b"abc", ""),
    ("negative.onnx", b"\x08\x07\x3a" + NEGATIVE, ""),
    ("negative.caffemodel", b"\xa2\x06" + NEGATIVE, ""),
    ("nested.pb", field(1, field(1, "a") + field(2, "Const") + field(
        5, field(1, "value") + field(2, b"\x43" * 200000))), ""),
    ("huge.pb", graph_def(huge_const), "has 4 bytes"),
    ("cycle.pb", graph_def(waits_for_itself), "waits for itself"),
    ("chain.pb", graph_def(long_chain), None),
    ("many.cfg", b"[net]\nwidth=8\nheight=8\nchannels=1\n" +
     b"[convolutional]\nfilters=1\n" * 4000, None),
    ("reversed.json", repeated(2 << 20, *KERAS, True), None),
    ("ends.prototxt", repeated(2 << 20, *REPEATED[5][1:]), None),
    ("tags.yaml", repeated(1 << 20, *REPEATED[-1][1:]), "not allowed here"),
    ("large.cfg", b"[net]\nwidth=2147483647\nheight=2147483647\nchannels=3\n"
     b"[convolutional]\nfilters=2147483647\nsize=2147483647\n", "too large"),
]
PARAMS = [
    ("2^40", params([1 << 40]), "too large"),
    ("2^20 each", params([1 << 20] * 4), "too large"),
    ("negative", params([-1, 3]), "too large"),
    ("rank 2^31", params([]).replace(struct.pack("<I", 0), struct.pack(
        "<I", 1 << 31), 1), ""),
    ("many arrays", params([2, 2], count=1 << 60), "ends too early"),
    ("other rank", struct.pack("<3Q2I", 0x112, 0, 1, 1 << 30, 7),
     "too many dimensions"),
]


def judge(name, result, want):
    code, said, peak = result
    if peak > MEGABYTES and AMPHORA == BUILDS[1]:
        return f"{name}: {peak:.0f} MB"
    if want is None and code == 0:
        return None
    if want is not None and code == 1 and want in said and "error" in said:
        return None
    return f"{name}: exit code {code}, says {said[:300]!r}"


def main():
    wrong, n = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for name, data, want in FILES:
            path = os.path.join(folder, name)
            with open(path, "wb") as file:
                file.write(data)
            wrong.append(judge(name, run(path), want))
            n += 1
        symbol, path = Symbol(), folder + "/net.json"
        symbol.end("Convolution", symbol.input(1, 3, 4, 4), num_filter=2,
                   kernel=(1, 1), no_bias=True)
        symbol.write_json(path)
        for name, data, want in PARAMS:
            weights = folder + "/net.params"
            with open(weights, "wb") as file:
                file.write(data)
            wrong.append(judge(".params: " + name,
                               run(path, "--weights", weights), want))
            n += 1
        for row in REPEATED if "--long" in sys.argv[1:] else ():
            wrong.append(grows(row, folder))
            n += 1
    wrong = [line for line in wrong if line]
    print("\n".join(wrong + [f"{n - len(wrong)} of {n} end well"]))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
