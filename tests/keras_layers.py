#!/usr/bin/env python3
"""keras_layers.py - Keras' layers of transformers against sums written here.

Small models with drawn weights, in the three forms of write_keras.py where h5py
is there: norms over the last axes, attention of one sequence to another and to
what came before, layers that see each step by itself. `eval` must give what
plain Python computes.
"""
import json
import math
import os
import struct
import subprocess
import sys
import tempfile

from truthlib import draw, npy_write
from write_keras import Model

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
BAD = []


def numbers(name, n, low=-1, high=1):
    return list(struct.unpack(f"<{n}f", draw(name, n, low, high)))


def matrix(values, columns):
    return [values[i:i + columns] for i in range(0, len(values), columns)]


def product(a, b, bias=None):
    return [[sum(x * y for x, y in zip(row, column)) +
             (bias[k] if bias else 0) for k, column in enumerate(zip(*b))]
            for row in a]


def softmax(row):
    most = max(row)
    e = [math.exp(x - most) for x in row]
    return [x / sum(e) for x in e]


def norm(row, gamma, beta, eps, mean=True):
    m = sum(row) / len(row) if mean else 0
    var = sum((x - m) ** 2 for x in row) / len(row)
    return [(x - m) / math.sqrt(var + eps) * g + b
            for x, g, b in zip(row, gamma, beta)]


class Case:
    """A model, and the values of its weights by layer and name."""

    def __init__(self, name):
        self.m, self.weights, self.arguments = Model(name), {}, {}
        self.inputs = []

    def input(self, rows, columns, name):
        self.inputs.append((rows, columns, name))
        return self.m.input(rows, columns, name=name)

    def layer(self, kind, *reads, shapes=(), name, arguments=None, **config):
        weights = []
        for key, shape in shapes:
            n = math.prod(shape)
            values = numbers(f"{name}/{key}", n, -.7, .7)
            self.weights[name, key] = values
            weights.append((key, shape, struct.pack(f"<{n}f", *values)))
        if arguments:
            self.arguments[name] = arguments
        return self.m.layer(kind, *reads, weights=weights, name=name, **config)

    def write(self, folder):
        path = os.path.join(folder, self.m.name + ".json")
        self.m.write_tfjs(path)
        with open(path, encoding="utf-8") as file:
            model = json.load(file)
        layers = model["modelTopology"]["model_config"]["config"]["layers"]
        for layer in layers:
            if layer["name"] in self.arguments:
                layer["inbound_nodes"][0][0][3] = self.arguments[layer["name"]]
        with open(path, "w", encoding="utf-8") as file:
            json.dump(model, file)
        return path

    def judge(self, expected, shape):
        with tempfile.TemporaryDirectory() as folder:
            paths = [self.write(folder)]
            command = ["eval"]
            for rows, columns, name in self.inputs:
                values = numbers(name, rows * columns)
                path = os.path.join(folder, name + ".npy")
                npy_write(path, [1, rows, columns],
                          struct.pack(f"<{len(values)}f", *values))
                command += ["--input", path]
            flat = [x for row in expected for x in row]
            path = os.path.join(folder, "expected.npy")
            npy_write(path, shape, struct.pack(f"<{len(flat)}f", *flat))
            for model in paths:
                done = subprocess.run(
                    [AMPHORA, *command[:1], model, *command[1:], "--expect",
                     path], stdin=subprocess.DEVNULL, capture_output=True,
                    text=True, check=False)
                ok = done.returncode == 0
                print("ok   " if ok else "WRONG", self.m.name,
                      "" if ok else done.stdout + done.stderr)
                if not ok:
                    BAD.append(self.m.name)


def norms(kind, mean):
    case = Case(kind.lower())
    x = case.input(5, 8, "x")
    shapes = [("gamma", [8]), ("beta", [8])] if mean else [("scale", [8])]
    case.m.ends.append(case.layer(kind, x, shapes=shapes, name="norm",
                                  axis=[-1] if mean else -1, epsilon=1e-3))
    gamma = case.weights["norm", shapes[0][0]]
    beta = case.weights["norm", "beta"] if mean else [0] * 8
    rows = matrix(numbers("x", 40), 8)
    case.judge([norm(row, gamma, beta, 1e-3, mean) for row in rows], [1, 5, 8])


def attention(name, causal, across):
    heads, size, wide, c = 3, 4, 5, 6
    case = Case(name)
    x = case.input(5, c, "x")
    y = case.input(7, c, "y") if across else None
    shapes = []
    for part, n in (("query", size), ("key", size), ("value", wide)):
        shapes += [(f"{part}/kernel", [c, heads, n]),
                   (f"{part}/bias", [heads, n])]
    shapes += [("attention_output/kernel", [heads, wide, c]),
               ("attention_output/bias", [c])]
    value = [y or x, 0, 0]
    case.m.ends.append(case.layer(
        "MultiHeadAttention", x, shapes=shapes, name="mha", num_heads=heads,
        key_dim=size, value_dim=wide, use_bias=True,
        arguments={"value": value, "use_causal_mask": causal}))

    def part(key, rows, n):
        kernel = matrix(case.weights["mha", key + "/kernel"], heads * n)
        made = product(rows, kernel, case.weights["mha", key + "/bias"])
        return [[row[h * n:h * n + n] for row in made] for h in range(heads)]

    rows = matrix(numbers("x", 5 * c), c)
    others = matrix(numbers("y", 7 * c), c) if across else rows
    q, k = part("query", rows, size), part("key", others, size)
    v = part("value", others, wide)
    out = [[] for _ in rows]
    for h in range(heads):
        scores = product(q[h], [list(z) for z in zip(*k[h])])
        for i, row in enumerate(scores):
            row = [s / math.sqrt(size) if j <= i or not causal else -1e9
                   for j, s in enumerate(row)]
            out[i] += product([softmax(row)], v[h])[0]
    kernel = matrix(case.weights["mha", "attention_output/kernel"], c)
    case.judge(product(out, kernel,
                       case.weights["mha", "attention_output/bias"]),
               [1, 5, c])


def each_step():
    case = Case("each step")
    x = case.input(5, 6, "x")
    case.m.ends.append(case.layer(
        "TimeDistributed", x, shapes=[("kernel", [6, 4]), ("bias", [4])],
        name="steps", layer={"class_name": "Dense", "config": {
            "name": "dense", "units": 4, "activation": "relu",
            "use_bias": True}}))
    made = product(matrix(numbers("x", 30), 6),
                   matrix(case.weights["steps", "kernel"], 4),
                   case.weights["steps", "bias"])
    case.judge([[max(v, 0) for v in row] for row in made], [1, 5, 4])


def main():
    norms("LayerNormalization", True)
    norms("RMSNormalization", False)
    attention("self-attention", False, False)
    attention("attention to what came before", True, False)
    attention("attention to another sequence", False, True)
    each_step()
    print(f"{len(BAD)} wrong")
    return len(BAD) > 0


if __name__ == "__main__":
    sys.exit(main())
