#!/usr/bin/env python3
"""quant.py - quantised networks of ONNX, against codes that onnxruntime gave.

In ../shared/data/quant (see SOURCE.txt there) each network is given as pairs of
QuantizeLinear and DequantizeLinear and as QLinear operators, with the codes of
every quantised tensor for three inputs. Each tensor is made an output of the
network, and `eval` must give the same codes: those of the recorded integer run
where there is one, else of the run that takes operators literally.
usage: quant.py [--verbose] [NAME...]
"""
import json
import os
import struct
import subprocess
import sys
import tempfile
import zipfile
import zlib
from pathlib import Path

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
DATA = Path("../shared/data/quant")
# Codes that may be off by one: what the file sums in floats is summed here in
# another order; a bias that stays float is rounded to the unit of the products.
ONE_OFF = 1e-6


# ---- files ----

def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def as_varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def fields(data):
    """(number, wire type, start, end of the value, end) of a message."""
    at = 0
    while at < len(data):
        start = at
        key, at = varint(data, at)
        if key & 7 == 0:
            _, end = varint(data, at)
        elif key & 7 == 2:
            size, at = varint(data, at)
            end = at + size
        else:
            end = at + (8 if key & 7 == 1 else 4)
        yield key >> 3, key & 7, start, at, end
        at = end


def message(number, data):
    return as_varint(number << 3 | 2) + as_varint(len(data)) + data


def with_outputs(model, names):
    """The model, with these values as outputs behind its own."""
    out = b""
    for number, _, start, at, end in fields(model):
        if number == 7:  # the graph; 12: its outputs
            more = b"".join(message(12, message(1, name.encode()))
                            for name in names)
            out += message(7, model[at:end] + more)
        else:
            out += model[start:end]
    return out


KINDS = {"|i1": ("b", 1), "|u1": ("B", 1), "<i2": ("h", 2), "<f4": ("f", 4),
         "<i4": ("i", 4), "<u2": ("H", 2)}


def read_npy(data):
    size = struct.unpack("<H", data[8:10])[0]
    header = data[10:10 + size].decode()
    kind, width = KINDS[header.split("'descr': '")[1].split("'")[0]]
    body = data[10 + size:]
    return struct.unpack(f"<{len(body) // width}{kind}", body)


# ---- comparing ----

class Counts:
    def __init__(self):
        self.tensors = self.codes = self.one = self.more = 0
        self.first = ""

    def add(self, name, ours, theirs):
        self.tensors += 1
        self.codes += len(theirs)
        if len(ours) != len(theirs):
            self.more += len(theirs)
            self.first = self.first or f"{name} has {len(ours)} elements"
            return
        if ours == theirs:
            return
        apart = [abs(a - b) for a, b in zip(ours, theirs)]
        self.one += sum(0 < a <= 1 for a in apart)
        self.more += sum(a > 1 for a in apart)
        self.first = self.first or f"{name} {sum(a > 0 for a in apart)}"

    def good(self, share=ONE_OFF):
        return self.more == 0 and self.one <= share * self.codes

    def text(self):
        if not self.one and not self.more:
            return f"{self.tensors} tensors, all {self.codes:,} codes equal"
        return (f"{self.tensors} tensors, of {self.codes:,} codes {self.one} "
                f"off by one, {self.more} by more; first {self.first}")


def evaluate(folder, model, inputs):
    command = [AMPHORA, "eval", str(model), "-o", str(folder)]
    for path in inputs:
        command += ["--input", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[:400])


def compare_run(model, npz, entries, inputs, codes):
    """`codes`: tensor -> its entry of the archive."""
    counts = Counts()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        changed = folder / "model.onnx"
        changed.write_bytes(with_outputs(model.read_bytes(), list(codes)))
        paths = []
        for k, entry in enumerate(inputs):
            paths.append(folder / f"in{k}.npy")
            paths[-1].write_bytes(npz.read(entry))
        evaluate(folder, changed, paths)
        for name, entry in codes.items():
            ours = read_npy((folder / f"{name}.npy").read_bytes())
            counts.add(name, ours, read_npy(npz.read(entry)))
    return counts


def compare(folder, form, reference):
    """One form of a network on its three inputs."""
    total = Counts()
    with zipfile.ZipFile(folder / "values.npz") as npz:
        entries = [name for name in npz.namelist()]
        for k in range(3):
            begin = f"{reference}.{k}."
            codes = {e[len(begin):-4]: e for e in entries
                     if e.startswith(begin) and e.endswith("_q.npy")}
            inputs = [e for e in entries if e.startswith(f"in{k}.")]
            if not codes:
                continue
            got = compare_run(folder / f"{form}.onnx", npz, entries, inputs,
                              codes)
            total.tensors += got.tensors
            total.codes += got.codes
            total.one += got.one
            total.more += got.more
            total.first = total.first or got.first
    return total


def main():
    names = [a for a in sys.argv[1:] if not a.startswith("-")]
    good = checks = 0
    for folder in sorted((DATA / "small").iterdir()):
        if names and folder.name not in names:
            continue
        for form in ("qdq", "qlinear"):
            if not (folder / f"{form}.onnx").exists():
                continue
            with zipfile.ZipFile(folder / "values.npz") as npz:
                refs = {e.split(".")[0] for e in npz.namelist()}
            for ref in ("qlinear", "qdq"):
                if ref not in refs:
                    continue
                checks += 1
                try:
                    counts = compare(folder, form, ref)
                except RuntimeError as error:
                    print(f"{folder.name:34} {form:8} {ref:8} {error}")
                    continue
                good += counts.good()
                print(f"{folder.name:34} {form:8} {ref:8} "
                      f"{'ok' if counts.good() else 'BAD'} {counts.text()}")
    print(f"{good} of {checks}")


main()
