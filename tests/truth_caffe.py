#!/usr/bin/env python3
"""truth_caffe.py - Caffe networks against OpenCV's dnn module.

Weights and one input are drawn with a seed and written as .caffemodel and
.npy; OpenCV and amphora both read them. Compared are the logits (a softmax at
the end is cut off: with random weights it saturates and would hide anything)
and blobs on the way, which a Split layer makes outputs.

  tests/truth/*.prototxt   odd layers, one a file; their values by OpenCV are
                           recorded beside them and compared in every run
  examples/, ../shared/data/caffe   whole networks, with --long only

--long needs python3-opencv, computes everything anew, and fails where OpenCV
no longer says what was recorded; --record writes it. Exits 1 if a value is
off by more than 1e-4 of the largest of its blob, in the reference evaluation
or in the simulated listing for xdnn-v3-96.

Where OpenCV 4.6.0 itself differs from Caffe: docs/truth.md.
"""
import array
import glob
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from truthlib import (Refused, Table, count, draw, field,  # noqa: E402
                      graph_of, npy_write, prepare_long, scratch, verify,
                      with_record)

ODD = "tests/truth"
NETWORKS = ["examples", "../shared/data/caffe"]
# Not networks, or not for OpenCV.
LEFT_OUT = {"bad_mlsuite_goog_template": "a template, no network",
            "lenet_train_test": "for training: reads a database"}
TAPS = 8
ENDS = ("Softmax", "SoftmaxWithLoss", "SOFTMAX", "SOFTMAX_LOSS", "Accuracy")
FACTOR = 4.0  # of BatchNorm: Caffe stores sums and their weight


# ---- the text of a network ----

class Layer:
    def __init__(self, text):
        bare = re.sub(r'"[^"]*"', lambda m: m.group().replace("{", ""),
                      re.sub(r"#.*", "", text))
        self.text = text
        flat, depth = [], 0
        for part in re.split(r"([{}])", bare[bare.index("{") + 1:]):
            depth += {"{": 1, "}": -1}.get(part, 0)
            flat.append(part if depth == 0 else " ")
        head = "".join(flat)
        self.name = self.values(head, "name")[0]
        self.type = self.values(head, "type")[0]
        self.bottoms = self.values(head, "bottom")
        self.tops = self.values(head, "top")

    def for_opencv(self):
        """The text, with what OpenCV takes for a layer of this meaning: its
        Axpy multiplies the third bottom where the type's authors say the
        second."""
        if self.type != "Axpy":
            return self.text
        last = iter(reversed(self.bottoms[1:]))
        kept = re.compile(r'(bottom\s*:\s*)"([^"]*)"')
        return kept.sub(lambda m: m.group() if m.group(2) == self.bottoms[0]
                        else f'{m.group(1)}"{next(last)}"', self.text)

    @staticmethod
    def values(text, key):
        return [a or b for a, b in re.findall(
            r"\b" + key + r"\s*:\s*(?:[\"']([^\"']*)[\"']|(\w+))", text)]


def split_layers(text):
    """The text before the first layer, and the layers."""
    starts = [m.start() for m in re.finditer(r"(?m)^\s*layers?\s*{", text)]
    ends = starts[1:] + [len(text)]
    return text[:starts[0]], [Layer(text[a:b]) for a, b in zip(starts, ends)]


def cut(layers):
    """Layers without the softmax, and whatever else only follows logits."""
    return [layer for layer in layers if layer.type not in ENDS]


def tap(layers):
    """Split layers behind some blobs that are read later, evenly chosen."""
    made = [layer.tops[0] for layer in layers if layer.bottoms]
    read = {bottom for layer in layers for bottom in layer.bottoms}
    inner = [blob for blob in dict.fromkeys(made) if blob in read]
    step = max(1, -(-len(inner) // TAPS))
    return [f'layer {{ name: "tap_{i}" type: "Split" bottom: "{blob}" '
            f'top: "tap_{i}" }}\n' for i, blob in enumerate(inner[::step])]


# ---- weights ----

def blob(shape, data):
    dims = b"".join(field(1, dim) for dim in shape)
    return field(7, field(7, dims) + field(5, data))


def constants(graph, node, layer):
    """Shapes of a node's constants by role."""
    if "channel_shared: true" in layer.text:
        return {"slope": [1]}
    return {role: graph["constants"][i]["shape"]
            for role, i in node.get("constants", {}).items()}


def rectified(graph):
    """Nodes behind which, past normalisations, an activation follows."""
    readers = {}
    for node in graph["nodes"]:
        for tensor in node["reads"]:
            readers.setdefault(tensor, []).append(node)
    found = set()
    for node in graph["nodes"]:
        end = node
        while end["op"] in ("conv", "deconv", "fc", "bn", "scale"):
            next_ones = readers.get(end["writes"][0]["name"], [])
            if len(next_ones) != 1:
                break
            end = next_ones[0]
        if end["op"] == "act":
            found.add(node["name"])
    return found


def spread(role, shape, gain):
    """Bounds that keep activations at their size: ReLU6 on values far beyond
    6, say, would leave few digits of them."""
    if role == "weight":
        bound = (3 * gain / max(1, count(shape[1:]))) ** 0.5
        return -bound, bound
    return {"var": (0.7, 1.5), "scale": (0.7, 1.3),
            "slope": (0.1, 0.4)}.get(role, (-0.2, 0.2))


def blobs(graph, node, layer, gain):
    """All blobs of a layer as fields. The batch normalisation's are stored
    as Caffe does: multiplied by the third."""
    out = b""
    shapes = constants(graph, node, layer)
    for role in ("weight", "mean", "var", "scale", "slope", "bias"):
        if role not in shapes:
            continue
        low, high = spread(role, shapes[role], gain)
        if role in ("mean", "var"):
            low, high = low * FACTOR, high * FACTOR
        name = f"{graph['name']}/{layer.name}/{role}"
        out += blob(shapes[role], draw(name, count(shapes[role]), low, high))
    if "mean" in shapes:
        out += blob([1], array.array("f", [FACTOR]).tobytes())
    return out


def write_model(path, graph, layers):
    """A NetParameter with all layers and their blobs."""
    nodes = {node["name"]: node for node in graph["nodes"]}
    doubled = rectified(graph)  # half of what a ReLU gets is lost
    with open(path, "wb") as file:
        for layer in layers:
            node = nodes.get(layer.name, {})
            gain = 2 if layer.name in doubled else 1
            file.write(field(100, field(1, layer.name) +
                             field(2, layer.type) +
                             blobs(graph, node, layer, gain)))


# ---- one network ----

def opencv_values(model, inputs, names):
    """Values by OpenCV of each named blob, in order, as bytes."""
    import cv2
    import numpy
    net = cv2.dnn.readNetFromCaffe(*model)
    net.setPreferableBackend(cv2.dnn.DNN_BACKEND_OPENCV)
    net.enableFusion(False)
    for name, shape, data in inputs:
        net.setInput(numpy.frombuffer(data, "<f4").reshape(shape), name)
    return [numpy.ascontiguousarray(value, "<f4").tobytes()
            for value in net.forward(names)]


class Case:
    """The files of one comparison in a folder."""

    def __init__(self, folder, text, layers):
        self.text, self.weights = folder + "/net.prototxt", folder + "/w.model"
        self.foreign = folder + "/opencv.prototxt"
        with open(self.text, "w") as file:
            file.write(text + "".join(layer.text for layer in layers))
        with open(self.foreign, "w") as file:
            file.write(text + "".join(l.for_opencv() for l in layers))
        graph = graph_of(self.text)
        write_model(self.weights, graph, layers)
        self.nodes = len(graph["nodes"])
        shapes = {w["name"]: w["shape"] for n in graph["nodes"]
                  for w in n["writes"]}
        self.makers = {top: layer.name for layer in layers
                       for top in layer.tops}
        self.outputs = [(name, shapes[name]) for name in graph["outputs"]]
        self.inputs = []
        self.files = []
        for node in graph["nodes"]:
            if node["op"] == "input":
                self.add_input(folder, node["writes"][0])

    def add_input(self, folder, tensor):
        shape, name = tensor["shape"], tensor["name"]
        data = draw("input " + name, count(shape), -1, 1)
        self.files.append(f"{folder}/input{len(self.files)}.npy")
        self.inputs.append((name, shape, data))
        npy_write(self.files[-1], shape, data)

    def truth(self):
        return opencv_values((self.foreign, self.weights), self.inputs,
                             [self.makers[name] for name, _ in self.outputs])

    def compare(self, folder, values):
        expected = []
        for (name, shape), data in zip(self.outputs, values):
            if len(data) != 4 * count(shape):
                raise Refused(f"{name} is {shape}, but OpenCV has "
                              f"{len(data) // 4} values")
            expected.append(f"{folder}/expected{len(expected)}.npy")
            npy_write(expected[-1], shape, data)
        return verify(self.text, self.files, expected,
                      "--weights", self.weights)

    def n_values(self):
        return sum(count(shape) for _, shape in self.outputs)


def check(table, name, path, recorded=None, record=False, long=False):
    """One network as it is, and for whole ones once more with taps."""
    with open(path) as file:
        text, layers = split_layers(file.read())
    layers = cut(layers) if not recorded else layers
    variants = [(name, [])]
    if not recorded:
        variants.append((name + ", inner", [Layer(t) for t in tap(layers)]))
    for title, taps in variants:
        with scratch() as folder:
            case = Case(folder, text, layers + taps)
            values = case.truth() if long else None
            if recorded:
                sizes = [count(shape) for _, shape in case.outputs]
                values = with_record(recorded, sizes, values, record)
            table.add(title, case.nodes, case.n_values(),
                      case.compare(folder, values))


def guarded(table, name, *arguments, **options):
    try:
        check(table, name, *arguments, **options)
    except Refused as error:
        table.fail(name, error)
    except Exception as error:  # cv2.error, which is there with cv2 only
        if type(error).__name__ != "error":
            raise
        table.skip(name, "OpenCV: " + " ".join(str(error).split())[:150])


def main():
    long = "--long" in sys.argv[1:] or "--record" in sys.argv[1:]
    record = "--record" in sys.argv[1:]
    wanted = [a for a in sys.argv[1:] if not a.startswith("-")]
    if long:
        prepare_long()
    table = Table("OpenCV" if long else "OpenCV 4.6.0's recorded values")
    for path in sorted(glob.glob(ODD + "/*.prototxt")):
        name = os.path.splitext(os.path.basename(path))[0]
        if not wanted or name in wanted:
            guarded(table, name, path, recorded=path[:-9] + ".values",
                    record=record, long=long)
    if not long:
        table.skip("whole networks", "with --long only")
        return table.close()
    for path in [p for folder in NETWORKS
                 for p in sorted(glob.glob(folder + "/*.prototxt"))]:
        name = os.path.splitext(os.path.basename(path))[0]
        if wanted and name not in wanted:
            continue
        if name in LEFT_OUT:
            table.skip(name, LEFT_OUT[name])
        else:
            guarded(table, name, path, long=True)
    return table.close()


if __name__ == "__main__":
    sys.exit(main())
