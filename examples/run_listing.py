#!/usr/bin/env python3
"""run_listing.py - computes what a listing computes: docs/listing.md.

A simulator to begin with: it knows the operations of small networks on real
numbers and on codes, no machine, and nothing but the files that
`amphora compile --materialise` writes. Every value goes through the memories,
at the addresses of the records.

usage: run_listing.py NET.json < INPUT, numbers in the order channels, rows,
columns; prints the last result. `amphora simulate -o` writes the same.
"""
import json
import math
import os
import struct
import sys

from read_listing import addresses, load

LETTER = {"float32": "f", "int8": "b", "uint8": "B", "int16": "h", "int32": "i"}
WINDOW = ["kernel.w", "kernel.h", "stride.w", "stride.h", "pad.w", "pad.h"]


class Machine:
    """Memories as maps from addresses to values, and the constants."""
    def __init__(self, path):
        self.listing = load(path)
        self.memory = {m["name"]: {} for m in self.listing["memories"]}
        image = self.listing["image"]
        self.host = {h["name"]: h["kind"] for h in image["hosts"]}
        self.act = {a["layer"]: a["kind"] for a in image["acts"]}
        with open(path[:-len("json")] + "data.json", encoding="utf-8") as file:
            manifest = json.load(file)
        self.rule = {r["layer"]: r for r in manifest["layers"]}
        with open(os.path.join(os.path.dirname(path), manifest["file"]), "rb") as file:
            data = file.read()
        self.shape = {c["layer"]: c["shape"] for c in manifest["constants"]
                      if c["role"] == "weight"}
        self.area = {r["layer"]: o["rows"] * o["columns"]
                     for r in self.listing["records"] for o in r["operands"]
                     if (r["operation"], o["role"]) == ("fc", "in")}
        self.constant = {
            (c["layer"], c["role"]): struct.unpack_from(
                f"<{math.prod(c['shape'])}{LETTER[c['type']]}", data, c["offset"])
            for c in manifest["constants"]}

    def get(self, operand):
        memory = self.memory[operand["memory"]]
        return [memory[address] for address in addresses(operand)]

    def put(self, operand, values):
        memory = self.memory[operand["memory"]]
        memory.update(zip(addresses(operand), values))

    def scaled(self, layer, k, x):
        """A sum as codes of the result: halves up, docs/quantisation.md."""
        shift = self.constant[layer, "shift"][k]
        factor = self.constant[layer, "multiplier"][k]
        return (x * factor + (1 << shift >> 1)) >> shift

    def finished(self, layer, values):
        """With the zero and the bounds, or the activation of real numbers."""
        rule = self.rule.get(layer)
        if rule and rule["rule"] != "reals":
            return [min(max(v + rule["zero_out"], rule["least"]), rule["most"])
                    for v in values]
        return [max(v, 0) for v in values] if self.act.get(layer) == "relu" else values


def windows(fields, a, out):
    """Of each pixel of the result, tap by tap, its place in a channel of the
    operand, or None outside."""
    kw, kh, sw, sh, pw, ph = (fields.get(f, 0) for f in WINDOW)
    dw, dh = fields.get("dilation.w", 1), fields.get("dilation.h", 1)
    for row in range(out["rows"]):
        for column in range(out["columns"]):
            taps = [(row * sh - ph + i * dh, column * sw - pw + k * dw)
                    for i in range(kh) for k in range(kw)]
            yield [y * a["columns"] + x if 0 <= y < a["rows"] and 0 <= x < a["columns"]
                   else None for y, x in taps]


def tap_range(weights, area):
    first = weights.get("first_tap", 0)
    return first, weights.get("last_tap", area - 1) + 1


def block(constant, weights, shape, each):
    """Of [out][in][tap] those of some output channels, of some input ones, and
    of some taps, `each` of a channel."""
    taps = math.prod(shape[1:])
    first, end = tap_range(weights, each)
    at = weights.get("first_input", 0)
    inputs = range(at, at + weights["taps"] // (end - first))
    channels = range(weights["first_channel"],
                     weights["first_channel"] + weights["channels"])
    return [v for c in channels for i in inputs
            for v in constant[c * taps + i * each + first:c * taps + i * each + end]]


def products(m, record, fields, a, out, weights):
    """Convolutions of one group, and inner products: results, or sums that the
    next record goes on with."""
    layer, part = record["layer"], record.get("sums", {"first": True, "last": True})
    rule = m.rule.get(layer)
    zero = rule["zero_in"][0] if rule else 0
    x = [v - zero for v in m.get(a)]
    size, n = a["rows"] * a["columns"], out["channels"]
    w = m.get(weights) if weights else m.constant[layer, "weight"]
    first = weights["first_channel"] if weights else 0
    bias = m.constant.get((layer, "bias")) if part["first"] else None
    bias = bias[first:] if bias else [0] * n
    places = list(windows(fields, a, out)) if fields.get("kernel.w") else [range(size)]
    if weights:
        first_tap, end = tap_range(weights, len(places[0]))
        places = [taps[first_tap:end] for taps in places]
    taps, results = len(w) // n, []
    columns = [[x[c * size + p] if p is not None else 0
                for c in range(a["channels"]) for p in pixel] for pixel in places]
    for k in range(n):
        row = w[k * taps:(k + 1) * taps]
        results += [bias[k] + sum(map(lambda u, v: u * v, row, c)) for c in columns]
    if not part["first"]:
        results = [sum(both) for both in zip(m.get(out), results)]
    if not part["last"]:
        return results
    each = len(columns)
    if rule:
        results = [m.scaled(layer, first + i // each, s) for i, s in enumerate(results)]
    return m.finished(layer, results)


def pools(m, layer, fields, a, out, divisor):
    x, size, results = m.get(a), a["rows"] * a["columns"], []
    for c in range(out["channels"]):
        for pixel in windows(fields, a, out):
            seen = [x[c * size + p] for p in pixel if p is not None]
            n, s = len(seen if divisor == "valid" else pixel), sum(seen)
            mean = s / n if layer not in m.rule else \
                (abs(s) * 2 + n) // (2 * n) * (1 if s > 0 else -1)
            results.append(mean if divisor else max(seen))
    return results


def sums(m, layer, a, b):
    rule = m.rule.get(layer)
    if not rule:
        return [u + v for u, v in zip(m.get(a), m.get(b))]
    both = ([m.scaled(layer, k, (v - rule["zero_in"][k]) << rule["left"])
             for v in m.get(operand)] for k, operand in enumerate((a, b)))
    return [m.scaled(layer, 2, u + v) for u, v in zip(*both)]


def softmax(m, a, out):
    """Over channels of one pixel, on real numbers."""
    power = [math.exp(a.get("scale", 1) * v) for v in m.get(a)]
    real = [p / sum(power) for p in power]
    if out["type"] == "real":
        return real
    least, most = (0, 255) if out["type"] == "uint8" else (-128, 127)
    return [min(max(math.floor(r / out["scale"] + .5) + out["zero"], least), most)
            for r in real]


def run(m, record):
    operand = {o["role"]: o for o in record["operands"]}
    layer, fields = record["layer"], record.get("fields", {})
    a, b, out, weights = (operand.get(r) for r in ("in", "in2", "out", "weights"))
    kept = operand.get("sums") or out
    what = m.host[layer] if record["operation"] == "host" else record["operation"]
    if what == "load_weights":
        source = record["constants"]
        shape = m.shape[source]
        each = m.area.get(source, 1) if len(shape) == 2 else math.prod(shape[2:])
        m.put(weights, block(m.constant[source, "weight"], weights, shape, each))
    elif what in ("load", "store"):
        m.put(out, m.get(a))
    elif what in ("conv", "fc"):
        m.put(out or kept, products(m, record, fields, a, kept, weights))
    elif what in ("pool_max", "pool_avg"):
        values = pools(m, layer, fields, a, out, record.get("divisor"))
        m.put(out, m.finished(layer, values))
    elif what == "add":
        m.put(out, m.finished(layer, sums(m, layer, a, b)))
    elif what == "softmax":
        m.put(out, softmax(m, a, out))
    elif what not in ("concat", "load_bias"):  # biases are constants, too
        sys.exit(f"{layer}: {what} is left to you")
    return out


def main():
    m = Machine(sys.argv[1])
    records = m.listing["records"]
    first = next(o for o in records[0]["operands"] if o["role"] == "in")
    values = [float(v) if first["type"] == "real" else int(v)
              for v in sys.stdin.read().split()]
    # all rows, of which the first load may bring some
    rows = len(values) // (first["channels"] * first["columns"])
    m.put(dict(first, rows=rows), values)
    last = [out for out in (run(m, r) for r in records) if out][-1]
    print(*m.get(last))


if __name__ == "__main__":
    main()
