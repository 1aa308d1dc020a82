#!/usr/bin/env python3
"""saved_model.py - SavedModels of TensorFlow.

A network is written as frozen GraphDef and as SavedModel (write_saved.py):
both compute the same values, the folder stands for the file, names are those
of the functions, and a plan for a machine is verified. What is damaged or
missing in one is said in words that name it.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from write_saved import Func, Saved, function, node_bytes  # noqa: E402
from write_tf import Graph, Ints  # noqa: E402

AMPHORA = os.environ.get("AMPHORA", "build/amphora")


def run(*arguments):
    done = subprocess.run([AMPHORA, *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout.decode(errors="replace")


def network():
    """Results of several names, a split, a constant that stays one."""
    g = Graph("saved")
    x = g.input(1, 9, 9, 3)
    y = g.node("Conv2D", x, g.drawn(-1, 1, 3, 3, 3, 8, name="kernel"),
               name="first/Conv2D", strides=Ints([1, 2, 2, 1]),
               padding="SAME", data_format="NHWC")
    y = g.node("FusedBatchNormV3", y, g.drawn(.5, 1, 8, name="gamma"),
               g.drawn(-1, 1, 8, name="beta"), g.drawn(-1, 1, 8, name="mean"),
               g.drawn(.5, 1, 8, name="variance"), is_training=False,
               epsilon=0.001, data_format="NHWC")
    y = g.node("Relu", y, name="first/Relu")
    split = g.node("Split", g.int(3), y, num_split=2)
    y = g.node("AddV2", split + ":0", split + ":1")
    y = g.node("Reshape", y, g.ints(1, 100))
    g.end("MatMul", y, g.drawn(-.1, .1, 100, 5, name="dense"))
    return g


def values(path, folder):
    code, text = run("eval", path, "-o", folder)
    if code:
        return text
    found = {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as file:
            found[len(found)] = file.read()
    return found


def same(work):
    g, saved = network(), os.path.join(work, "saved")
    frozen = os.path.join(work, "frozen.pb")
    Saved(g).write(saved)
    g.write_pb(frozen)
    a, b = (values(p, os.path.join(work, f"out{i}"))
            for i, p in enumerate((frozen, saved)))
    yield "values", isinstance(a, dict) and len(a) > 0 and a == b, (a, b)
    code, text = run("show", saved + "/")
    yield "name", text.startswith("saved: "), text
    json = os.path.join(work, "saved.json")
    code, text = run("show", saved + "/saved_model.pb", "--emit", "json",
                     "-o", json)
    with open(json) as file:
        text = file.read()
    yield "layers", "first/Conv2D" in text and "Partitioned" not in text, text
    code, text = run("verify", saved, "-t", "vision-npu")
    yield "verify", code == 0 and "0 violations" in text, text


def change(path, old, new):
    with open(path, "rb") as file:
        data = file.read()
    assert old in data, (path, old)
    with open(path, "wb") as file:
        file.write(data.replace(old, new))


def cut(path, n):
    with open(path, "r+b") as file:
        file.truncate(os.path.getsize(path) - n)


def endless(saved):
    """A function that calls itself."""
    loop = function("layers", saved.arguments(), [
        node_bytes("again", "PartitionedCall", saved.arguments(),
                   f=Func("layers"))], {"identity_0": "again:output:0"})
    return [loop] + saved.functions()[1:]


def returning(saved):
    """Functions twice in each, 40 deep: more calls than any file needs."""
    args = saved.arguments()
    some = [function("layers", args, [
        node_bytes("a", "f0", args), node_bytes("b", "f0", args),
        node_bytes("sum", "AddV2", ["a:r:0", "b:r:0"])],
        {"identity_0": "sum:z:0"})]
    for i in range(40):
        some.append(function(f"f{i}", args, [
            node_bytes("a", f"f{i + 1}", args),
            node_bytes("b", f"f{i + 1}", args),
            node_bytes("sum", "AddV2", ["a:r:0", "b:r:0"])],
            {"r": "sum:z:0"}))
    some.append(function("f40", args, [], {"r": args[0]}))
    return some + saved.functions()[1:]


INDEX, DATA = "variables/variables.index", "variables/variables.data-0000"
BROKEN = [  # what is done to it, and what is said
    (lambda d: change(d + INDEX, b"kernel", b"kerbel"),
     "variables.index: .*error: a block is damaged"),
    (lambda d: cut(d + INDEX, 1), "error: not a table of variables"),
    (lambda d: os.remove(d + DATA + "1-of-00002"), "data-00001-of-00002"),
    (lambda d: cut(d + DATA + "0-of-00002", 4), "ends behind the end"),
    (lambda d: shutil.rmtree(d + "variables"),
     'a variable without values: .*variables has no "layer-'),
    (lambda d: change(d + "saved_model.pb", b"layer-0/k", b"layer-9/k"),
     'has no "layer-9/kernel'),
    (lambda d: change(d + "saved_model.pb", b"identity_0", b"identity_1"),
     None),
    (lambda d: change(d + "saved_model.pb", b"first/Conv2D:output:0",
                      b"worst/Conv2D:output:0"),
     r'"worst/Conv2D:output:0" is read, but does not exist in function layers'),
    (lambda d: change(d + "saved_model.pb", b"first/Conv2D", b"variance:val"),
     "its mean has shape"),  # a normalisation of a variable
    (lambda d: change(d + "saved_model.pb", b"serving_default",
                      b"__saved_model_i"), None),
]


def broken(work):
    saved = Saved(network())
    for i, (damage, said) in enumerate(BROKEN):
        folder = os.path.join(work, f"broken{i}/")
        saved.write(folder)
        damage(folder)
        code, text = run("show", folder)
        if said:
            yield f"broken {i}", code == 1 and re.search(said, text), text
        else:
            yield f"broken {i}", code == 0, text
    for name, functions in (("endless", endless), ("returning", returning)):
        folder = os.path.join(work, name)
        saved.write(folder, functions(saved))
        code, text = run("show", folder)
        yield name, code == 1 and "functions call functions" in text, text
    code, text = run("show", work)
    yield "folder", code == 1 and "Is a directory" in text, text


def main():
    failed = n = 0
    with tempfile.TemporaryDirectory() as work:
        for name, good, text in (*same(work), *broken(work)):
            n += 1
            if not good:
                failed += 1
                print(f"FAIL {name}: {text}")
    print(f"saved_model: {n - failed} of {n} right")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
