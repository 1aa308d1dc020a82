"""write_tflite.py - TensorFlow Lite models from Python, for the tests.

A FlatBuffer is written front to back: each table behind its vtable, what it
refers to behind itself. A Model is tensors (with their shapes), buffers of
constants and operators in order. Needs nothing but Python.
"""
import struct

from truthlib import count, draw

FLOAT, HALF, INT32, UINT8, INT8 = 0, 1, 2, 3, 9
SAME, VALID = 0, 1
NONE, RELU, RELU_N1_TO_1, RELU6 = 0, 1, 2, 3
# Operator: its number, and the number and fields of its options.
OPERATORS = {
    "ADD": (0, 11, "b"), "AVERAGE_POOL_2D": (1, 5, "biiiib"),
    "CONCATENATION": (2, 10, "ib"), "CONV_2D": (3, 1, "biibii"),
    "DEPTHWISE_CONV_2D": (4, 2, "biiibii"), "DEPTH_TO_SPACE": (5, 94, "i"),
    "DEQUANTIZE": (6, 38, ""), "FLOOR": (8, 0, ""),
    "FULLY_CONNECTED": (9, 8, "bbb"), "L2_NORMALIZATION": (11, 12, "b"),
    "LOCAL_RESPONSE_NORMALIZATION": (13, 13, "ifff"),
    "LOGISTIC": (14, 0, ""), "MAX_POOL_2D": (17, 5, "biiiib"),
    "MUL": (18, 21, "b"), "RELU": (19, 0, ""), "RELU_N1_TO_1": (20, 0, ""),
    "RELU6": (21, 0, ""), "RESHAPE": (22, 17, ""),
    "RESIZE_BILINEAR": (23, 15, "__bb"), "SOFTMAX": (25, 9, "f"),
    "SPACE_TO_DEPTH": (26, 19, "i"), "TANH": (28, 0, ""),
    "PAD": (34, 22, ""), "BATCH_TO_SPACE_ND": (37, 24, ""),
    "SPACE_TO_BATCH_ND": (38, 25, ""), "TRANSPOSE": (39, 26, ""),
    "MEAN": (40, 27, "b"), "SUB": (41, 28, "b"), "DIV": (42, 29, "b"),
    "SQUEEZE": (43, 30, ""), "STRIDED_SLICE": (45, 32, "iiiii"),
    "EXP": (47, 33, ""), "SPLIT": (49, 35, "i"), "PRELU": (54, 0, ""),
    "MAXIMUM": (55, 39, ""), "MINIMUM": (57, 39, ""), "NEG": (59, 42, ""),
    "PADV2": (60, 43, ""), "SLICE": (65, 48, ""),
    "TRANSPOSE_CONV": (67, 49, "bii"), "EXPAND_DIMS": (70, 52, ""),
    "LOG": (73, 0, ""), "SUM": (74, 27, "b"), "SQRT": (75, 0, ""),
    "RSQRT": (76, 0, ""), "POW": (78, 56, ""), "REDUCE_MAX": (82, 27, "b"),
    "PACK": (83, 59, "ii"), "UNPACK": (88, 64, "ii"),
    "REDUCE_MIN": (89, 27, "b"), "SQUARE": (92, 66, ""),
    "RESIZE_NEAREST_NEIGHBOR": (97, 74, "bb"), "LEAKY_RELU": (98, 75, "f"),
    "SQUARED_DIFFERENCE": (99, 76, ""), "MIRROR_PAD": (100, 77, "b"),
    "ABS": (101, 78, ""), "SPLIT_V": (102, 79, "i"), "CEIL": (104, 0, ""),
    "ELU": (111, 0, ""), "QUANTIZE": (114, 89, ""), "ROUND": (116, 0, ""),
    "HARD_SWISH": (117, 91, ""),
    "SVDF": (27, 6, "ib"), "GATHER": (36, 23, "ii"),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (44, 71, "bffb"),
    "TOPK_V2": (48, 34, ""), "LOG_SOFTMAX": (50, 36, ""),
    "CAST": (53, 37, "bb"), "ARG_MAX": (56, 40, "b"), "LESS": (58, 41, ""),
    "GREATER": (61, 44, ""), "GREATER_EQUAL": (62, 45, ""),
    "LESS_EQUAL": (63, 46, ""), "SELECT": (64, 47, ""), "TILE": (69, 51, ""),
    "EQUAL": (71, 53, ""), "NOT_EQUAL": (72, 54, ""),
    "ARG_MIN": (79, 57, "b"), "REDUCE_PROD": (81, 27, "b"),
    "LOGICAL_OR": (84, 60, ""), "LOGICAL_AND": (86, 62, ""),
    "LOGICAL_NOT": (87, 63, ""), "FLOOR_DIV": (90, 65, ""),
    "FLOOR_MOD": (95, 72, ""), "GATHER_ND": (107, 83, ""),
    "SELECT_V2": (123, 98, ""), "BATCH_MATMUL": (126, 101, "bb"),
    "CUMSUM": (128, 102, "bb"),
    "EMBEDDING_LOOKUP": (7, 0, ""), "L2_POOL_2D": (12, 5, "biiiib"),
    "SHAPE": (77, 55, "b"), "ONE_HOT": (85, 61, "i"),
    "ZEROS_LIKE": (93, 67, ""), "FILL": (94, 68, ""), "RANGE": (96, 73, ""),
    "REVERSE_V2": (105, 81, ""), "ADD_N": (106, 82, ""),
    "RANK": (110, 86, ""), "SCATTER_ND": (122, 97, ""),
    "DENSIFY": (124, 99, ""),
}


# ---- FlatBuffers ----

class Vector:
    """Numbers: one of struct's letters; or tables, or bytes."""

    def __init__(self, letter, items):
        self.letter, self.items = letter, items


class Table:
    """Fields by number: (letter, number), or what is referred to."""

    def __init__(self, **fields):
        self.fields = {int(key[1:]): value for key, value in fields.items()
                       if value is not None}


class Writer:
    def __init__(self):
        self.out = bytearray(b"\0\0\0\0TFL3")
        self.later = []

    def pad(self, to, extra=0):
        while (len(self.out) + extra) % to:
            self.out.append(0)

    def refer(self, at, item):
        """An offset at `at` to the item, which is written behind."""
        self.later.append((at, item))

    def table(self, table):
        size, places = 4, {}
        for number, value in table.fields.items():
            width = struct.calcsize("<" + value[0]) \
                if isinstance(value, tuple) else 4
            size += -size % width
            places[number] = size
            size += width
        numbers = max(table.fields, default=-1) + 1
        vtable = struct.pack(f"<HH{numbers}H", 4 + 2 * numbers, size, *(
            places.get(i, 0) for i in range(numbers)))
        self.pad(8, len(vtable))
        at = len(self.out) + len(vtable)
        self.out += vtable + struct.pack("<i", len(vtable)) + \
            bytes(size - 4)
        for number, value in table.fields.items():
            place = at + places[number]
            if isinstance(value, tuple):
                struct.pack_into("<" + value[0], self.out, place, value[1])
            else:
                self.refer(place, value)
        return at

    def vector(self, vector):
        if vector.letter == "B":
            self.pad(16, 4)
        self.pad(8 if vector.letter == "q" else 4,
                 4 if vector.letter == "q" else 0)
        at = len(self.out)
        self.out += struct.pack("<I", len(vector.items))
        if vector.letter == "B":
            self.out += vector.items
        elif vector.letter == "T":
            start = len(self.out)
            self.out += bytes(4 * len(vector.items))
            for i, item in enumerate(vector.items):
                self.refer(start + 4 * i, item)
        else:
            self.out += struct.pack(
                f"<{len(vector.items)}{vector.letter}", *vector.items)
        return at

    def string(self, text):
        self.pad(4)
        at = len(self.out)
        self.out += struct.pack("<I", len(text)) + text.encode() + b"\0"
        return at

    def write(self, root):
        self.refer(0, root)
        while self.later:
            place, item = self.later.pop(0)
            at = self.table(item) if isinstance(item, Table) else \
                self.vector(item) if isinstance(item, Vector) else \
                self.string(item)
            struct.pack_into("<I", self.out, place, at - place)
        self.pad(16)
        return bytes(self.out)


# ---- models ----

class Model:
    def __init__(self, name="net"):
        self.name = name
        self.tensors, self.shapes = [], []
        self.buffers = [Table()]
        self.codes, self.operators = {}, []
        self.inputs, self.ends = [], []

    def tensor(self, shape, name=None, kind=FLOAT, buffer=0,
               quantisation=None):
        name = name or f"t{len(self.tensors)}"
        self.tensors.append(Table(
            f0=Vector("i", shape), f1=("b", kind), f2=("I", buffer), f3=name,
            f4=quantisation))
        self.shapes.append(list(shape))
        return len(self.tensors) - 1

    def input(self, *shape, name="x"):
        self.inputs.append(self.tensor(shape, name))
        return self.inputs[-1]

    def const(self, shape, data, kind=FLOAT):
        self.buffers.append(Table(f0=Vector("B", data)))
        return self.tensor(shape, None, kind, len(self.buffers) - 1)

    def ints(self, *values, shape=None):
        return self.const([len(values)] if shape is None else shape,
                          struct.pack(f"<{len(values)}i", *values), INT32)

    def drawn(self, low, high, *shape):
        key = f"{self.name}/{len(self.tensors)}"
        return self.const(shape, draw(key, count(shape), low, high))

    def halves(self, low, high, *shape):
        """Drawn numbers of 16 bits, made numbers of 32."""
        key = f"{self.name}/{len(self.tensors)}"
        n = count(shape)
        values = struct.unpack(f"<{n}f", draw(key, n, low, high))
        part = self.const(shape, struct.pack(f"<{n}e", *values), HALF)
        return self.op("DEQUANTIZE", [part], shape)

    def sparse(self, low, high, rows, columns, kind=FLOAT):
        """A matrix of which every row lacks some elements, made whole."""
        key = f"{self.name}/{len(self.tensors)}"
        n = rows * columns
        values = struct.unpack(f"<{n}f", draw(key, n, low, high))
        kept = [[c for c in range(columns) if (r * 7 + c * 5) % 3 == 0]
                for r in range(rows)]
        data = [values[r * columns + c] for r in range(rows) for c in kept[r]]
        segments = [sum(map(len, kept[:r])) for r in range(rows + 1)]
        part = self.const([rows, columns], struct.pack(
            f"<{len(data)}{'e' if kind == HALF else 'f'}", *data), kind)
        self.tensors[part].fields[6] = Table(
            f0=Vector("i", [0, 1]),
            f2=Vector("T", [
                Table(f0=("b", 0), f1=("i", rows)),
                Table(f0=("b", 1), f2=("B", 1), f4=("B", 2),
                      f3=Table(f0=Vector("i", segments)),
                      f5=Table(f0=Vector("H", sum(kept, [])))),
            ]))
        return self.op("DENSIFY", [part], [rows, columns], kinds=[kind])

    def variable(self, *shape):
        """What a call keeps for the next."""
        index = self.tensor(shape)
        self.tensors[index].fields[5] = ("b", 1)
        return index

    def op(self, kind, inputs, shape, *options, kinds=None):
        """The output, or for a list of shapes the outputs. `options`: values
        of the operator's fields, in order."""
        number, union, letters = OPERATORS[kind]
        many = bool(shape) and isinstance(shape[0], (list, tuple))
        outs = [self.tensor(s, kind=(kinds or [FLOAT] * 9)[i])
                for i, s in enumerate(shape if many else [shape])]
        fields = {f"f{i}": (letter, value) for i, (letter, value) in
                  enumerate(zip(letters, options)) if letter != "_"}
        index = self.codes.setdefault(number, len(self.codes))
        self.operators.append(Table(
            f0=("I", index), f1=Vector("i", inputs), f2=Vector("i", outs),
            f3=("B", union), f4=Table(**fields) if union else None))
        return outs if many else outs[0]

    def end(self, *arguments):
        out = self.op(*arguments)
        self.ends += out if isinstance(out, list) else [out]
        return out

    def part(self, end):
        """A function that writes what one output needs."""
        needed, kept = {end}, []
        for operator in reversed(self.operators):
            if needed & set(operator.fields[2].items):
                needed |= set(operator.fields[1].items)
                kept.insert(0, operator)
        return lambda path: self.write(path, kept, [end])

    def write(self, path, operators=None, ends=None):
        operators, ends = operators or self.operators, ends or self.ends
        codes = [Table(f0=("b", min(code, 127)), f2=("i", 1), f3=("i", code))
                 for code in self.codes]
        graph = Table(f0=Vector("T", self.tensors),
                      f1=Vector("i", self.inputs), f2=Vector("i", ends),
                      f3=Vector("T", operators), f4="main")
        model = Table(f0=("I", 3), f1=Vector("T", codes),
                      f2=Vector("T", [graph]), f3="amphora's tests",
                      f4=Vector("T", self.buffers))
        with open(path, "wb") as file:
            file.write(Writer().write(model))
