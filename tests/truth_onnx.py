#!/usr/bin/env python3
"""truth_onnx.py - ONNX networks against onnxruntime.

One input is drawn with a seed; onnxruntime-node and amphora both read the
model and the input. Compared are all outputs, of the reference evaluation and
of the simulated listing for xdnn-v3-96, to 1e-4 of the largest value.

  tests/truth/*.onnx     small models of odd operators; onnxruntime's values
                         are recorded beside them and compared in every run
  out/truth/*.onnx       what truth_export.py writes: torchvision's networks,
                         and the light models with seeded weights (--long)
  ../shared/data/onnx    light models and text files (--long)

--long installs onnxruntime-node under out/truth, exports what is missing, and
fails where onnxruntime no longer says what was recorded; --record writes it.
usage: truth_onnx.py [--long | --record] [NAME...]
"""
import array
import glob
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from truthlib import (EXPORTED, PYTHON, Refused, Table,  # noqa: E402
                      count, draw, npy_write, outline, prepare_long, scratch,
                      verify, with_record)

HERE = os.path.dirname(os.path.abspath(__file__))
ODD = "tests/truth"
LIGHT = "../shared/data/onnx"
PACKAGE = "onnxruntime-node@1.30.0"
# Room for a few of the host's volumes only: they must share it.
OPTIONS = {"onnx-activations14": ["--set", "memories.inputs.size=8KiB"]}


class Unknown(Exception):
    """onnxruntime does not take the model; the text says why."""


def install(folder):
    """onnxruntime-node; its own script would fetch what is not needed."""
    if os.path.isdir(folder + "/node_modules/onnxruntime-node"):
        return
    os.makedirs(folder, exist_ok=True)
    environment = dict(os.environ, ONNXRUNTIME_NODE_INSTALL="skip")
    subprocess.run(["npm", "install", "--silent", "--prefix", folder, PACKAGE],
                   env=environment, check=True)


def foreign_values(folder, model, inputs):
    """onnxruntime's outputs as bytes, in the model's order."""
    arguments = ["node", HERE + "/truth_ort.mjs", EXPORTED + "/npm", model,
                 folder + "/ort"]
    for i, (shape, data) in enumerate(inputs):
        path = f"{folder}/raw{i}"
        with open(path, "wb") as file:
            file.write(data)
        arguments += ["x".join(map(str, shape)), path]
    done = subprocess.run(arguments, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.decode().splitlines()
                 if "Error" in line] or ["no reason given"]
        raise Unknown(lines[0][:150])
    values = []
    for i in range(len(json.loads(done.stdout)["dims"])):
        with open(f"{folder}/ort.{i}", "rb") as file:
            values.append(file.read())
    return values


def compare(table, name, path, model, recorded=None, record=False, long=True):
    """amphora on `path`, onnxruntime on `model`: the same network."""
    layers, ins, outs = outline(path)
    inputs = [(shape, draw("input " + name, count(shape), -1, 1))
              for name, shape in ins]
    outputs = [shape for _, shape in outs]
    sizes = [count(shape) for shape in outputs]
    with scratch() as folder:
        values = foreign_values(folder, model, inputs) if long else None
        if recorded:
            values = with_record(recorded, sizes, values, record)
        if [len(value) // 4 for value in values] != sizes:
            raise Refused(f"{sizes} values, but onnxruntime has "
                          f"{[len(value) // 4 for value in values]}")
        files = []
        for kind, tensors in (("in", inputs), ("out", zip(outputs, values))):
            for i, (shape, data) in enumerate(tensors):
                files.append(f"{folder}/{kind}{i}.npy")
                npy_write(files[-1], shape, data)
        report = verify(path, files[:len(inputs)], files[len(inputs):],
                        *OPTIONS.get(name, []))
        table.add(name, layers, sum(sizes), report)


def guarded(table, name, *arguments, **options):
    try:
        compare(table, name, *arguments, **options)
    except Refused as error:
        table.fail(name, error)
    except Unknown as error:
        table.skip(name, error)


def to_binary(path, model):
    """A model as text into one that onnxruntime reads."""
    code = ("import sys, onnx; from google.protobuf import text_format as t; "
            "m = t.Parse(open(sys.argv[1]).read(), onnx.ModelProto()); "
            "onnx.save(m, sys.argv[2])")
    done = subprocess.run([PYTHON, "-c", code, path, model],
                          stderr=subprocess.PIPE, check=False)
    if done.returncode:
        raise Unknown(done.stderr.decode().strip().splitlines()[-1][:150])


def text_model(table, name, path):
    with scratch() as folder:
        try:
            to_binary(path, folder + "/m.onnx")
        except Unknown as error:
            table.skip(name, error)
            return
        guarded(table, name, path, folder + "/m.onnx")


def stem(path):
    return os.path.splitext(os.path.basename(path))[0]


def main():
    record = "--record" in sys.argv[1:]
    long = record or "--long" in sys.argv[1:]
    wanted = [a for a in sys.argv[1:] if not a.startswith("-")]
    chosen = (lambda path: stem(path) in wanted) if wanted else lambda _: True
    if long:
        prepare_long()
        install(EXPORTED + "/npm")
    table = Table(PACKAGE if long else PACKAGE + "'s recorded values")
    for path in filter(chosen, sorted(glob.glob(ODD + "/*.onnx"))):
        guarded(table, stem(path), path, path, path[:-5] + ".values",
                record=record, long=long)
    if not long:
        table.skip("whole networks", "with --long only")
        return table.close()
    subprocess.run([PYTHON, HERE + "/truth_export.py", EXPORTED, *wanted],
                   check=True, stdout=subprocess.DEVNULL)
    for path in filter(chosen, sorted(glob.glob(EXPORTED + "/*.onnx"))):
        guarded(table, stem(path), path, path)
    for path in filter(chosen, sorted(glob.glob(LIGHT + "/*.onnx"))):
        guarded(table, stem(path), path, path)
    for path in filter(chosen, sorted(glob.glob(LIGHT + "/*.onnxtxt"))):
        text_model(table, stem(path), path)
    return table.close()


if __name__ == "__main__":
    sys.exit(main())
