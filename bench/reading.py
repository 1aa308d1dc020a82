#!/usr/bin/env python3
"""reading.py - what it costs to read a large ONNX file.

Writes models of SIZE MB (default 240), all weights, each with another way to
store and use them, and runs `amphora show --json` on each. Prints the median
milliseconds of reading and the most memory that was resident; `beyond` is that
less what the same model with small weights takes. With `amphora show` nothing
needs a weight's value, so no page of weights should be touched.

usage: reading.py [SIZE] [RUNS]
"""
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
FLOAT, FLOAT16 = 1, 10


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def whole(number, value):
    return varint(number << 3) + varint(value)


def part(number, *data):
    """A field of text or of a message's parts."""
    data = [d.encode() if isinstance(d, str) else d for d in data]
    return varint(number << 3 | 2) + varint(sum(map(len, data))) \
        + b"".join(data)


def value_info(name, dims):
    shape = [part(1, whole(1, d)) for d in dims]
    return part(1, name) + part(2, part(1, whole(1, FLOAT),
                                        part(2, *shape)))


def node(kind, inputs, output, **attributes):
    fields = [part(1, i) for i in inputs] + [part(2, output), part(4, kind)]
    for name, value in attributes.items():
        if isinstance(value, list):
            fields.append(part(5, part(1, name), *[whole(8, v) for v in value],
                               whole(20, 7)))
        else:
            fields.append(part(5, part(1, name), whole(3, value),
                               whole(20, 2)))
    return part(1, *fields)


class Model:
    """One model; weights lie in the file or, `apart`, in a second one."""

    def __init__(self, path, apart=False, kind=FLOAT):
        self.path, self.apart, self.kind = path, apart, kind
        self.nodes, self.weights, self.at = [], [], 0

    def weight(self, name, *dims):
        size = 2 if self.kind == FLOAT16 else 4
        for d in dims:
            size *= d
        head = b"".join(whole(1, d) for d in dims) + whole(2, self.kind) \
            + part(8, name)
        if self.apart:
            pairs = {"location": os.path.basename(self.path) + ".data",
                     "offset": str(self.at), "length": str(size)}
            head += b"".join(part(13, part(1, k), part(2, v))
                             for k, v in pairs.items()) + whole(14, 1)
            self.weights.append((head, size))
        else:
            head += varint(9 << 3 | 2) + varint(size)
            self.weights.append((varint(5 << 3 | 2)
                                 + varint(len(head) + size) + head, size))
        self.at += size

    def write(self, in_dims, out_dims):
        nodes = b"".join(self.nodes) + part(2, "g")
        ends = part(11, value_info("x", in_dims)) \
            + part(12, value_info("y", out_dims))
        inside = [part(5, h) if self.apart else h for h, _ in self.weights]
        data = 0 if self.apart else self.at
        total = len(nodes) + len(ends) + data + sum(map(len, inside))
        with open(self.path, "wb") as file:
            file.write(whole(1, 8) + part(8, part(1, ""), whole(2, 13))
                       + varint(7 << 3 | 2) + varint(total) + nodes)
            for head, (_, size) in zip(inside, self.weights):
                file.write(head)
                if not self.apart:
                    write_values(file, size)
            file.write(ends)
        if self.apart:
            with open(self.path + ".data", "wb") as file:
                for _, size in self.weights:
                    write_values(file, size)


def write_values(file, size):
    """Bytes that are small numbers as float32 and as float16."""
    block = bytes.fromhex("0a2e0a3c") * 16384
    for at in range(0, size, len(block)):
        file.write(block[:size - at])


def dense(path, size, *, op="Gemm", turned=True, shuffle=False, apart=False,
          kind=FLOAT):
    """Layers of K x K; `turned`: stored [outputs, inputs]."""
    bytes_each = 2 if kind == FLOAT16 else 4
    layers = 4
    k = int((size / layers / bytes_each) ** 0.5)
    model = Model(path, apart, kind)
    for i in range(layers):
        model.weight(f"w{i}", k, k)
        name, source = f"w{i}", f"t{i - 1}" if i else "x"
        result = f"t{i}" if i < layers - 1 else "y"
        if shuffle:
            model.nodes.append(node("Transpose", [name], f"{name}t",
                                    perm=[1, 0]))
            name += "t"
        if kind == FLOAT16:
            model.nodes.append(node("Cast", [name], f"{name}c", to=FLOAT))
            name += "c"
        extra = {"transB": int(turned)} if op == "Gemm" else {}
        model.nodes.append(node(op, [source, name], result, **extra))
    model.write([1, k], [1, k])


def convolutions(path, size, apart=False):
    """Layers of 3x3 over C channels."""
    layers = 60
    c = int((size / layers / 36) ** 0.5)
    model = Model(path, apart)
    for i in range(layers):
        model.weight(f"w{i}", c, c, 3, 3)
        model.nodes.append(
            node("Conv", [f"t{i - 1}" if i else "x", f"w{i}"],
                 f"t{i}" if i < layers - 1 else "y", pads=[1, 1, 1, 1]))
    model.write([1, c, 8, 8], [1, c, 8, 8])


WAYS = [
    ("Gemm, transB=1", dense, {}),
    ("Gemm, transB=0", dense, {"turned": False}),
    ("MatMul", dense, {"op": "MatMul"}),
    ("Transpose, Gemm transB=1", dense, {"shuffle": True}),
    ("Gemm transB=0, external data", dense, {"turned": False, "apart": True}),
    ("60 Conv 3x3", convolutions, {}),
    ("60 Conv 3x3, external data", convolutions, {"apart": True}),
    ("float16, Cast, MatMul", dense, {"op": "MatMul", "kind": FLOAT16}),
]


def run(path):
    """Milliseconds of reading, and KB resident at most."""
    process = subprocess.Popen([AMPHORA, "show", path, "--json"],
                               stdout=subprocess.PIPE)
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    if status:
        sys.exit(f"{path}: exit status {status}")
    return json.loads(text)["ms"]["read"], usage.ru_maxrss


def main():
    size = float(sys.argv[1]) * 1e6 if len(sys.argv) > 1 else 240e6
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    # A child's count begins with what its parent has.
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"this script itself: {own / 1024:.1f} MB")
    print(f"{'weights':32} {'file MB':>8} {'read ms':>8} {'MB':>7} "
          f"{'beyond':>7}")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "net.onnx")
        for name, make, options in WAYS:
            make(path, size / 1000, **options)
            small = run(path)[1]
            make(path, size, **options)
            seen = [run(path) for _ in range(runs)]
            most = max(kb for _, kb in seen)
            files = [os.path.join(folder, f) for f in os.listdir(folder)]
            mb = sum(map(os.path.getsize, files)) / 1e6
            print(f"{name:32} {mb:8.1f} "
                  f"{statistics.median(ms for ms, _ in seen):8.2f} "
                  f"{most / 1024:7.1f} {(most - small) / 1024:7.1f}",
                  flush=True)
            for file in files:
                os.unlink(file)


if __name__ == "__main__":
    main()
