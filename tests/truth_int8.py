#!/usr/bin/env python3
"""truth_int8.py - quantised TensorFlow Lite files against TensorFlow Lite itself
(as WebAssembly, of tfjs-tflite) and Arm NN's reference.

Layer by layer: each output of the small networks of write_int8.py, and of the
trained ones of ../shared/data each operator on the codes that the runtime itself
gave it. Counted are codes that are equal, that are off by one, and by more. What
is compared of trained networks is int8_model.py, which tests/int8.py shows to be
amphora bit for bit. The WebAssembly's codes are recorded in
tests/truth/int8-*.values and compared in every run; --long computes them anew
and asks Arm NN too.
usage: truth_int8.py [--long | --record] [NAME...]
"""
import os
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import int8_model as model  # noqa: E402
from foreign import (ARM_NN, TFLITE, TFLITE_WASM, Unknown,  # noqa: E402
                     ask_script, install_npm)
from int8 import (DATA, TRAINED, Failed, draw, evaluate,  # noqa: E402
                  to_graph, write_inputs)
from truthlib import asked, scratch  # noqa: E402
from write_int8 import NETWORKS, write_ends  # noqa: E402

RECORDED = "tests/truth/int8-"
WASM, ARM = "tflite", "Arm NN"
COMMAND = {WASM: TFLITE_WASM, ARM: ARM_NN}


class Counts:
    """How far codes are apart."""

    def __init__(self):
        self.equal = self.one = self.more = self.most = 0

    def add(self, ours, theirs):
        for a, b in zip(ours, theirs, strict=True):
            apart = abs(a - b)
            self.equal += apart == 0
            self.one += apart == 1
            self.more += apart > 1
            self.most = max(self.most, apart)

    def join(self, other):
        self.equal += other.equal
        self.one += other.one
        self.more += other.more
        self.most = max(self.most, other.most)


class Report:
    def __init__(self):
        self.bad = 0
        print(f"{'network':24} {'against':8} {'layers':>6} {'equal':>8} "
              f"{'off by 1':>8} {'more':>6}", flush=True)

    def add(self, name, runtime, layers, counts, judge):
        wrong = counts.more > 0
        self.bad += wrong and judge
        note = f"   up to {counts.most}" if wrong else ""
        print(f"{name:24} {runtime:8} {layers:6} {counts.equal:8} "
              f"{counts.one:8} {counts.more:6}{note}", flush=True)

    def skip(self, name, runtime, why):
        print(f"{name:24} {runtime:8} skipped: {why}", flush=True)

    def fail(self, name, why):
        self.bad += 1
        print(f"{name:24} FAILED {why}", flush=True)


# ---- runtimes ----

def ask(runtime, folder, path, file, inputs):
    """Codes of the only output, in the order of the file."""
    given = []
    for t, values in zip(file.inputs, inputs):
        tensor = file.tensors[t]
        given.append((tensor.name, tensor.shape, struct.pack(
            f"<{len(values)}{tensor.letter}", *values)))
    _, kind, data = ask_script([*COMMAND[runtime], path, folder + "/foreign"],
                               folder, given)[0]
    letter = {"float32": "f", "int8": "b", "uint8": "B", "int16": "h"}[kind]
    return list(struct.unpack(
        f"<{len(data) // struct.calcsize(letter)}{letter}", data))


# ---- small networks ----

def record_path(name):
    return f"{RECORDED}{name}.values"


def read_record(name, ends):
    """Codes of each output, as the WebAssembly gave them."""
    values = []
    with open(record_path(name), "rb") as file:
        data = file.read()
    at = 0
    for _, path in ends:
        tensor = end_of(model.File(path))
        n = 1
        for dim in tensor.shape:
            n *= dim
        form = f"<{n}{tensor.letter}"
        values.append(list(struct.unpack_from(form, data, at)))
        at += struct.calcsize(form)
    if at != len(data):
        raise Failed(f"{record_path(name)} has {len(data)} bytes, not {at}")
    return values


def write_record(name, ends, values):
    with open(record_path(name), "wb") as file:
        for (_, path), codes in zip(ends, values):
            letter = end_of(model.File(path)).letter
            file.write(struct.pack(f"<{len(codes)}{letter}", *codes))


def end_of(file):
    return file.tensors[file.outputs[0]]


def drawn_inputs(name, file):
    return [draw(f"{name}/{i}", file.tensors[t])
            for i, t in enumerate(file.inputs)]


def compare_ends(report, name, runtime, ends, theirs, folder):
    total, layers = Counts(), 0
    for (end, path), codes in zip(ends, theirs):
        if codes is None:
            continue
        file = model.File(path)
        options = write_inputs(file, drawn_inputs(end, file), folder)
        ours = evaluate(path, options, folder)
        _, codes = to_graph(end_of(file).shape, codes)
        counts = Counts()
        if end_of(file).real:
            wrong = [a for a, b in zip(ours, codes) if abs(a - b) > 1e-6]
            counts.equal, counts.more = len(ours) - len(wrong), len(wrong)
        else:
            counts.add(ours, codes)
        if counts.more:
            print(f"    {end}: {counts.more} of {len(ours)} codes are more "
                  f"than one off")
        total.join(counts)
        layers += 1
    report.add(name, runtime, layers, total, runtime == WASM)


def ask_ends(runtime, ends, folder):
    values = []
    for end, path in ends:
        file = model.File(path)
        try:
            values.append(ask(runtime, folder, path, file,
                              drawn_inputs(end, file)))
        except Unknown as error:
            print(f"    {end}: {runtime} does not take it: {error}")
            values.append(None)
    return values


def small(report, build, folder, record, long):
    name = build.__name__
    ends = list(write_ends(build, folder))
    if long:
        theirs = ask_ends(WASM, ends, folder)
        if record:
            write_record(name, ends, theirs)
        elif theirs != read_record(name, ends):
            report.fail(name, "no longer what is recorded")
    else:
        theirs = read_record(name, ends)
    compare_ends(report, name, WASM, ends, theirs, folder)
    if long:
        compare_ends(report, name, ARM, ends, ask_ends(ARM, ends, folder),
                     folder)


# ---- trained networks ----

def trained(report, name, runtime, folder):
    """Each operator on what the runtime says of the one before it."""
    file = model.File(DATA + name + ".tflite")
    inputs = drawn_inputs(name, file)
    values = model.constants(file)
    values.update(zip(file.inputs, inputs))
    total = Counts()
    for op in file.operators:
        made, cut = op.outputs[0], f"{folder}/cut.tflite"
        file.write_with_output(cut, made)
        theirs = ask(runtime, folder, cut, file, inputs)
        total.add(model.step(file, op, values), theirs)
        values[made] = theirs
    report.add(name, runtime, len(file.operators), total, runtime == WASM)


def main():
    record, long, wanted = asked()
    if long:
        install_npm(TFLITE)
    report = Report()
    with scratch() as folder:
        for build in NETWORKS:
            if wanted and build.__name__ not in wanted:
                continue
            try:
                small(report, build, folder, record, long)
            except Failed as error:
                report.fail(build.__name__, error)
        for name in TRAINED if long else ():
            if (wanted and name not in wanted) or \
                    not os.path.exists(DATA + name + ".tflite"):
                continue
            for runtime in COMMAND:
                try:
                    trained(report, name, runtime, folder)
                except Unknown as error:
                    report.skip(name, runtime, error)
    return report.bad > 0


if __name__ == "__main__":
    sys.exit(main())
