"""foreign.py - runtimes of others on networks that the tests write, and the
comparison of amphora with them.

A runtime is a function (folder, files, inputs) -> values: `files` by suffix;
inputs are (name, shape, bytes) of float32 in the order of the file; values are
bytes of each output in the order of the graph, N x C x H x W. It raises Unknown
for a model that it does not take.
"""
import json
import os
import subprocess

from truthlib import (EXPORTED, PYTHON, Refused, count, draw, npy_write, outline,
                      scratch, verify, with_record)

HERE = os.path.dirname(os.path.abspath(__file__))
NPM = EXPORTED + "/npm"
TFJS = "@tensorflow/tfjs@4.22.0"
TFLITE = "@tensorflow/tfjs-tflite@0.0.1-alpha.10"


class Unknown(Exception):
    """The runtime does not take the model; the text says why."""


def install_npm(*packages):
    """Packages of npm that are not there yet."""
    wanted = [p for p in packages if not os.path.isdir(
        f"{NPM}/node_modules/{p[:p.rindex('@')]}")]
    if wanted:
        os.makedirs(NPM, exist_ok=True)
        subprocess.run(["npm", "install", "--silent", "--ignore-scripts",
                        "--prefix", NPM, *wanted], check=True)


# ---- orders of axes ----

def turn(shape, data, perm):
    """Shape and bytes with the axes in another order."""
    import numpy
    values = numpy.frombuffer(data, "<f4").reshape(shape).transpose(perm)
    return list(values.shape), numpy.ascontiguousarray(values).tobytes()


def to_file(layout, shape, data):
    if layout == "NHWC" and len(shape) == 4:
        return turn(shape, data, (0, 2, 3, 1))
    return shape, data


def to_graph(layout, shape, data):
    if layout == "NHWC" and len(shape) == 4:
        return turn(shape, data, (0, 3, 1, 2))
    return shape, data


# ---- runtimes ----

def first_error(text):
    lines = [line for line in text.splitlines()
             if line.split(":")[0].endswith(("Error", "error"))]
    return (lines or ["it crashed"])[0].strip()[:150]


def ask_script(command, folder, inputs):
    """A script beside this file on (name, dims, bytes) of each input; what
    comes out as (dims, type, bytes), all in the order of the file."""
    for i, (name, shape, data) in enumerate(inputs):
        path = f"{folder}/raw{i}"
        with open(path, "wb") as file:
            file.write(data)
        command = [*command, name, "x".join(map(str, shape)), path]
    done = subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, timeout=600)
    if done.returncode:
        raise Unknown(first_error(done.stderr.decode()))
    report, values = json.loads(done.stdout.splitlines()[-1]), []
    for i, dims in enumerate(report["dims"]):
        with open(f"{folder}/foreign.{i}", "rb") as file:
            kind = report.get("types", ["float32"] * (i + 1))[i]
            values.append((dims, kind, file.read()))
    return values


def script(command, folder, arguments, inputs, layout):
    """The same on float32 in the order of the graph."""
    turned = [(name, *to_file(layout, shape, data))
              for name, shape, data in inputs]
    return [to_graph(layout, dims, data)[1] for dims, _, data in
            ask_script([*command, *arguments], folder, turned)]


def tfjs(names=(), layout="NHWC"):
    def run(folder, files, inputs):
        return script(["node", HERE + "/truth_tfjs.mjs", NPM], folder,
                      [files["model.json"], folder + "/foreign",
                       ",".join(names)], inputs, layout)
    return run


def opencv(reader, suffixes, names=()):
    def run(folder, files, inputs):
        return script([PYTHON, HERE + "/truth_opencv.py"], folder,
                      [reader, ",".join(files[s] for s in suffixes),
                       folder + "/foreign", ",".join(names)], inputs, "NCHW")
    return run


# Two runtimes for TensorFlow Lite, as commands that take inputs behind them;
# ask_script(TFLITE_WASM + [path, folder + "/foreign"], folder, inputs) gives
# raw outputs of any type.
TFLITE_WASM = ["node", HERE + "/truth_tflite.mjs", NPM]
ARM_NN = [PYTHON, HERE + "/truth_armnn.py"]


def tflite(command):
    def run(folder, files, inputs):
        return script(command, folder, [files["tflite"], folder + "/foreign"],
                      inputs, "NHWC")
    return run


def one_by_one(run, parts, wrong=()):
    """A runtime asked for each output by itself: parts are (suffix, function
    that writes a file with what that output needs, its name or number). None stands for
    an output that it does not take, or that it is known to get wrong."""
    def run_parts(folder, files, inputs):
        values = []
        why = Unknown("all of it is known to be wrong")
        for suffix, write, name in parts:
            if name in wrong:
                values.append(None)
                continue
            path = f"{folder}/part.{suffix}" if "." not in suffix else \
                f"{folder}/part-{suffix}"
            write(path)
            try:
                values += run([name])(folder, {**files, suffix: path}, inputs)
            except Unknown as error:
                values.append(None)
                why = error
        if not any(values):
            raise why
        return values
    return run_parts


# ---- amphora against them ----

def ask(run, folder, files, inputs, sizes):
    values = run(folder, files, inputs)
    found = [size if value is None else len(value) // 4
             for value, size in zip(values, sizes)]
    if found != sizes:
        raise Unknown(f"{found} values, not {sizes}")
    return values


class Case:
    """The files of one network in a folder, and its drawn inputs."""

    def __init__(self, folder, name, files, options, machine):
        self.folder, self.name, self.files = folder, name, files
        self.options = [*options, *machine]
        self.first = next(iter(files.values()))
        self.layers, ins, outs = outline(self.first, *options)
        self.inputs = [(end, shape, draw(f"input {name}/{end}", count(shape),
                                         -1, 1)) for end, shape in ins]
        self.outputs = [shape for _, shape in outs]
        self.sizes = [count(shape) for shape in self.outputs]

    def write(self, kind, tensors):
        paths = []
        for i, (shape, data) in enumerate(tensors):
            paths.append(f"{self.folder}/{kind}{i}.npy")
            npy_write(paths[-1], shape, data)
        return paths

    def compare(self, table, title, path, values):
        report = verify(path, self.write("in", [t[1:] for t in self.inputs]),
                        self.write("out", zip(self.outputs, values)),
                        *self.options)
        table.add(title, self.layers, sum(self.sizes), report)

    def all_files(self, table, title, values):
        for path in self.files.values():
            if os.path.exists(path) and not path.endswith(".weights"):
                self.compare(table, f"{title} {os.path.splitext(path)[1]}",
                             path, values)

    def foreign(self, table, runtimes, recorded=None, record=False):
        """Each runtime's values. The first that has all is the one whose
        values are recorded and which all files are compared with; of the
        others the outputs that they have."""
        first = None
        for title, run in runtimes:
            try:
                values = ask(run, self.folder, self.files, self.inputs,
                             self.sizes)
            except Unknown as error:
                table.skip(f"{self.name} ({title})", error)
                continue
            took = sum(value is not None for value in values)
            if took < len(values):
                title += f", {took} of {len(values)}"
                if first is None:
                    raise Refused(f"no runtime takes all of it; {title}")
                values = [value or other
                          for value, other in zip(values, first)]
            if first is None:
                first = values
                if recorded:
                    with_record(recorded, self.sizes, values, record)
                self.all_files(table, f"{self.name} ({title})", values)
            else:
                self.compare(table, f"{self.name} ({title})", self.first,
                             values)
        if first is None:
            raise Refused("no runtime takes it")


def compare_foreign(table, name, files, runtimes, recorded=None, record=False,
                    long=True, options=(), machine=()):
    """files: (suffix, function that writes a path); the first is read for
    the network's outline. Options are for reading it, and for the machine."""
    with scratch() as folder:
        paths = {}
        for suffix, write in files:
            paths[suffix] = f"{folder}/{suffix}" if "." in suffix else \
                f"{folder}/net.{suffix}"
            write(paths[suffix])
        case = Case(folder, name, paths, options, machine)
        if long:
            case.foreign(table, runtimes, recorded, record)
        else:
            case.all_files(table, name,
                           with_record(recorded, case.sizes, None, False))
