"""write_onnx.py - small ONNX models, written byte by byte for tests."""
import struct

from truthlib import field

FLOAT, INT64, BOOL = 1, 7, 9


def real(number, value):
    return bytes([number << 3 | 5]) + struct.pack("<f", value)


def attribute(name, value):
    """An attribute: a number, a word, a list of words or of whole numbers, a
    graph (Net), or, as ("ref", name), one of the function that the node stands
    in."""
    head = field(1, name)
    if isinstance(value, tuple):
        return field(5, head + field(21, value[1]) + field(20, 1))
    if isinstance(value, Net):
        return field(5, head + field(6, value.graph()) + field(20, 5))
    if isinstance(value, float):
        return field(5, head + real(2, value) + field(20, 1))
    if isinstance(value, str):
        return field(5, head + field(4, value) + field(20, 3))
    if isinstance(value, int):
        return field(5, head + field(3, value) + field(20, 2))
    words = bool(value) and isinstance(value[0], str)
    return field(5, head + b"".join(field(9 if words else 8, i)
                                    for i in value) +
                 field(20, 8 if words else 7))


def value_info(name, shape, kind=FLOAT):
    dims = b"".join(field(1, field(1, d)) for d in shape)
    return field(1, name) + field(2, field(1, field(1, kind) +
                                           field(2, dims)))


class Net:
    """A graph; the names of values are those of their nodes."""

    def __init__(self, inputs=(), name="net"):
        self.name, self.body, self.made = name, b"", 0
        self.tail, self.functions = b"", b""
        for i, shape in inputs:
            self.tail += field(11, value_info(i, shape))

    def node(self, op, reads, out=None, domain="", outs=None, **attributes):
        self.made += 1
        outs = outs or [out or f"{op.lower()}{self.made}"]
        node = b"".join(field(1, r) for r in reads)
        node += b"".join(field(2, o) for o in outs)
        node += field(3, outs[0]) + field(4, op)
        for key, value in attributes.items():
            node += attribute(key, value)
        if domain:
            node += field(7, domain)
        self.body += field(1, node)
        return outs[0]

    def tensor(self, shape, data, kind, name=None):
        self.made += 1
        name = name or f"k{self.made}"
        dims = b"".join(field(1, d) for d in shape)
        self.body += field(5, dims + field(2, kind) + field(8, name) +
                           field(9, data))
        return name

    def floats(self, shape, numbers, name=None):
        return self.tensor(shape, struct.pack(f"<{len(numbers)}f", *numbers),
                           FLOAT, name)

    def whole(self, *numbers):
        return self.tensor([len(numbers)],
                           struct.pack(f"<{len(numbers)}q", *numbers), INT64)

    def scalar(self, number):
        return self.tensor([], struct.pack("<q", number), INT64)

    def truth(self, yes):
        return self.tensor([], bytes([yes]), BOOL)

    def told(self, name, shape):
        self.tail += field(13, value_info(name, shape))

    def output(self, name, shape=()):
        self.tail += field(12, value_info(name, shape))

    def graph(self):
        return self.body + field(2, self.name) + self.tail

    def function(self, domain, name, reads, outs, attributes=(), defaults=()):
        """A Net whose nodes are the function's body; add it when it is whole
        by `end_function`."""
        inner = Net(name=name)
        inner.head = field(1, name) + field(10, domain)
        inner.head += b"".join(field(4, r) for r in reads)
        inner.head += b"".join(field(5, o) for o in outs)
        inner.head += b"".join(field(6, a) for a in attributes)
        for key, value in defaults:
            inner.head += field(11, attribute(key, value)[2:])
        return inner

    def end_function(self, inner):
        body = inner.head
        # the nodes alone, as field 7
        at, data = 0, inner.body
        while at < len(data):
            start = at + 1
            size = shift = 0
            while True:
                byte = data[start]
                size |= (byte & 127) << shift
                shift += 7
                start += 1
                if byte < 128:
                    break
            body += field(7, data[start:start + size])
            at = start + size
        self.functions += field(25, body)

    def write(self, path, opset=17):
        model = field(1, 8) + field(7, self.graph()) + self.functions
        model += field(8, field(2, opset))
        with open(path, "wb") as file:
            file.write(model)
        return path
