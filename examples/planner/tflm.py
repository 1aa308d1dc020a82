#!/usr/bin/env python3
"""tflm.py - where TensorFlow Lite Micro puts tensors, decided beforehand.

    tflm.py model.tflite planned.tflite

Writes a copy of the model with metadata "OfflineMemoryAllocation", which TFLite
Micro reads: an offset in the arena for each tensor of subgraph 0, -1 for those
that need none (constants) or that it places itself (variables). Prints the
bytes that these take. The model itself is not touched: what is new goes in front
of the old bytes. Needs python/amphora_planner.
"""
import struct
import sys

import amphora_planner

NAME = b"OfflineMemoryAllocation"
ALIGNMENT = 16  # of TFLite Micro's arena
SIZES = {0: 4, 1: 2, 2: 4, 3: 1, 4: 8, 6: 1, 7: 2, 8: 8, 9: 1, 10: 8, 11: 16,
         12: 8, 15: 4, 16: 2}
MODEL_FIELDS = 8
OPERATOR_CODES, SUBGRAPHS, DESCRIPTION, BUFFERS, METADATA_BUFFER, METADATA, \
    SIGNATURES = 1, 2, 3, 4, 5, 6, 7


class Table:
    """A table of a flatbuffer, by number of field."""

    def __init__(self, data, at):
        self.data, self.at = data, at

    def read(self, form, at):
        return struct.unpack_from("<" + form, self.data, at)[0]

    def place(self, field):
        """Where the field lies; 0: absent."""
        vtable = self.at - self.read("i", self.at)
        if 4 + 2 * field >= self.read("H", vtable):
            return 0
        offset = self.read("H", vtable + 4 + 2 * field)
        return offset and self.at + offset

    def number(self, field, form):
        at = self.place(field)
        return self.read(form, at) if at else 0

    def target(self, field):
        """Where what the field points to lies; 0: absent."""
        at = self.place(field)
        return at and at + self.read("I", at)

    def numbers(self, field):
        at = self.target(field)
        n = self.read("I", at) if at else 0
        return list(struct.unpack_from(f"<{n}i", self.data, at + 4 if n else 0))

    def tables(self, field):
        at = self.target(field)
        n = self.read("I", at) if at else 0
        return [Table(self.data, k + self.read("I", k))
                for k in range(at + 4, at + 4 + 4 * n, 4)]

    def text(self, field):
        at = self.target(field)
        return self.data[at + 4:at + 4 + self.read("I", at)] if at else b""


def root(data):
    if data[4:8] != b"TFL3":
        sys.exit("not a TFLite model")
    return Table(data, struct.unpack_from("<I", data)[0])


def tensor_bytes(tensor):
    """In the arena."""
    count = 1
    for length in tensor.numbers(0):
        count *= max(length, 1)
    kind = tensor.number(1, "b")
    if kind not in SIZES:
        sys.exit(f"a tensor of type {kind} has no size in the arena")
    return count * SIZES[kind]


def lives(model, graph):
    """{tensor: (first operator, last operator + 1)} of what is computed."""
    tensors, buffers = graph.tables(0), model.tables(BUFFERS)
    operators = graph.tables(3)
    span = {}

    def touch(tensor, step):
        if tensor < 0 or tensors[tensor].number(5, "B"):  # none, a variable
            return
        if buffers[tensors[tensor].number(2, "I")].target(0):  # a constant
            return
        first, end = span.get(tensor, (step, step + 1))
        span[tensor] = min(first, step), max(end, step + 1)

    for tensor in graph.numbers(1):
        touch(tensor, 0)
    for step, operator in enumerate(operators):
        for tensor in operator.numbers(1) + operator.numbers(2):
            touch(tensor, step)
    for tensor in graph.numbers(2):
        touch(tensor, max(len(operators) - 1, 0))
    return span


def plan(data, seconds=0.0):
    """(offset of each tensor or -1, bytes in all)."""
    model = root(data)
    graph = model.tables(SUBGRAPHS)[0]
    span, tensors = lives(model, graph), graph.tables(0)
    who = sorted(span)
    sizes = [-(-tensor_bytes(tensors[t]) // ALIGNMENT) * ALIGNMENT
             for t in who]
    found = amphora_planner.place(
        [span[t][0] for t in who], [span[t][1] for t in who], sizes,
        alignments=[ALIGNMENT] * len(who), seconds=seconds)
    offsets = [-1] * len(tensors)
    for tensor, offset in zip(who, found.offsets):
        offsets[tensor] = offset
    return offsets, found.height


def with_metadata(data, offsets):
    """The model with the plan; one that it had is replaced."""
    model = root(data)
    if any(buffer.number(1, "Q") for buffer in model.tables(BUFFERS)):
        sys.exit("weights outside of the flatbuffer are not moved")
    buffers = [t.at for t in model.tables(BUFFERS)]
    others = [t.at for t in model.tables(METADATA) if t.text(0) != NAME]
    at = {}  # of what is new, by name
    end = 8

    def lay(name, size, align=4):
        nonlocal end
        end = -(-end // align) * align
        at[name] = end
        end += size

    lay("vtable", 4 + 2 * MODEL_FIELDS)
    lay("model", 4 + 4 * MODEL_FIELDS)
    lay("buffers", 4 + 4 * (len(buffers) + 1))
    lay("metadata", 4 + 4 * (len(others) + 1))
    lay("entry vtable", 8)
    lay("entry", 12)
    lay("name", 4 + len(NAME) + 1)
    lay("buffer vtable", 6)
    lay("buffer", 8)
    lay("before", 12, 16)  # what the plan holds begins at a multiple of 16
    lay("plan", 16 + 4 * len(offsets))
    lay("old", 0, 16)
    new, old = bytearray(at["old"]), at["old"]

    def put(where, form, *values):
        struct.pack_into("<" + form, new, where, *values)

    def point(where, to):
        put(where, "I", to - where)

    put(0, "I4s", at["model"], b"TFL3")
    target = {BUFFERS: at["buffers"], METADATA: at["metadata"]}
    for field in (OPERATOR_CODES, SUBGRAPHS, DESCRIPTION, METADATA_BUFFER,
                  SIGNATURES):
        if model.target(field):
            target[field] = old + model.target(field)
    put(at["vtable"], "HH", 4 + 2 * MODEL_FIELDS, 4 + 4 * MODEL_FIELDS)
    put(at["model"], "i", at["model"] - at["vtable"])
    put(at["vtable"] + 4, "H", 4)
    put(at["model"] + 4, "I", model.number(0, "I"))
    for field, to in target.items():
        put(at["vtable"] + 4 + 2 * field, "H", 4 + 4 * field)
        point(at["model"] + 4 + 4 * field, to)
    for name, before, own in (("buffers", buffers, "buffer"),
                              ("metadata", others, "entry")):
        put(at[name], "I", len(before) + 1)
        for i, to in enumerate([old + b for b in before] + [at[own]]):
            point(at[name] + 4 + 4 * i, to)
    put(at["entry vtable"], "HHHH", 8, 12, 4, 8)
    put(at["entry"], "i", at["entry"] - at["entry vtable"])
    point(at["entry"] + 4, at["name"])
    put(at["entry"] + 8, "I", len(buffers))
    put(at["name"], f"I{len(NAME)}s", len(NAME), NAME)
    put(at["buffer vtable"], "HHH", 6, 8, 4)
    put(at["buffer"], "i", at["buffer"] - at["buffer vtable"])
    point(at["buffer"] + 4, at["plan"])
    # version, subgraph, number of offsets, the offsets
    put(at["plan"], f"I3i{len(offsets)}i", 12 + 4 * len(offsets), 1, 0,
        len(offsets), *offsets)
    return bytes(new) + data


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], "rb") as file:
        data = file.read()
    offsets, height = plan(data)
    with open(sys.argv[2], "wb") as file:
        file.write(with_metadata(data, offsets))
    print(f"{height} bytes for {sum(o >= 0 for o in offsets)} of "
          f"{len(offsets)} tensors")


if __name__ == "__main__":
    main()
