#!/usr/bin/env python3
"""xla_trace.py - XLA's buffer assignment as a problem for `amphora pack`.

    xla_trace.py module.buffer_assignment.pbtxt [TRACE] > problem.csv

Reads the text form of BufferAssignmentProto (--xla_dump_hlo_as_text with
protos): logical buffers with sizes, and the events of heap simulator trace
number TRACE (0). A buffer lives from its ALLOC to its FREE; SHARE_WITH makes it
the one that it shares with.
"""
import re
import sys

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}:]|[^\s{}:]+')
KINDS = {"ALLOC": 0, "FREE": 1, "SHARE_WITH": 2}


def parse(text):
    """Text protobuf as {field: [values]}."""
    tokens = TOKEN.findall(re.sub(r"(?m)^\s*#.*$", "", text))
    at = 0

    def message():
        nonlocal at
        fields = {}
        while at < len(tokens) and tokens[at] != "}":
            name = tokens[at]
            at += 1
            if at < len(tokens) and tokens[at] == ":":
                at += 1
            if at >= len(tokens):
                sys.exit(f"'{name}' has no value")
            if tokens[at] == "{":
                at += 1
                value = message()
                if at >= len(tokens):
                    sys.exit(f"'{name}' is not closed")
            else:
                value = tokens[at].strip('"')
            at += 1
            fields.setdefault(name, []).append(value)
        return fields

    fields = message()
    if at < len(tokens):
        sys.exit("a bracket closes what was not opened")
    return fields


def kind_of(event):
    kind = event.get("kind", ["ALLOC"])[0]
    return KINDS[kind] if kind in KINDS else int(kind)


def buffers(proto, trace):
    """(id, first, end, size) in the order of births."""
    size = {b.get("id", ["0"])[0]: int(b.get("size", ["0"])[0])
            for b in proto.get("logical_buffers", [])}
    born, dies, same = {}, {}, {}
    events = proto["heap_simulator_traces"][trace].get("events", [])
    for step, event in enumerate(events):
        buffer = event.get("buffer_id", ["0"])[0]
        if kind_of(event) == 0:
            born[buffer] = step
        elif kind_of(event) == 2:
            other = event.get("share_with_canonical_id", ["0"])[0]
            same[buffer] = same.get(other, other)
        else:
            owner = same.get(buffer, buffer)
            dies[owner] = max(step, dies.get(owner, 0))
    unknown = [b for b in born if b not in size]
    if unknown:
        sys.exit(f"the size of buffer {unknown[0]} is not told")
    return [(b, first, dies.get(b, len(events)), size[b])
            for b, first in born.items()]


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        proto = parse(file.read())
    trace = int(sys.argv[2]) if len(sys.argv) == 3 else 0
    if trace >= len(proto.get("heap_simulator_traces", [])):
        sys.exit(f"there is no heap simulator trace {trace}")
    print("id,lower,upper,size")
    for row in buffers(proto, trace):
        print(*row, sep=",")


if __name__ == "__main__":
    main()
