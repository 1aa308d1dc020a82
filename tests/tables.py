#!/usr/bin/env python3
"""tables.py - activations on codes of 8 bits, by tables of 256 codes.

  exact     each activation: every code of the table as Python's math has it,
            by both rules of rounding, by the evaluator, native code, and the
            listing of vision-npu, whose image has the table
  gates     a network of silu, hard swish and gates by channel, quantised for
            vision-npu, runs there without a layer of the host; its constants
            hold the tables
"""
import array
import json
import math
import os
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gemmini_nets import Net  # noqa: E402
from truthlib import npy_write  # noqa: E402

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
MACHINE = "vision-npu"
passed = failed = 0


def check(what, good, detail=""):
    global passed, failed
    passed += bool(good)
    failed += not good
    if not good:
        print("FAILED", what, detail)


def run(*arguments):
    done = subprocess.run([AMPHORA, *map(str, arguments)], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return (done.returncode, done.stdout.decode(errors="replace"),
            done.stderr.decode(errors="replace"))


# ---- each activation ----

def logistic(x):
    return 1 / (1 + math.exp(-x))


def softplus(x):
    return math.log1p(math.exp(x))


def between(x, lo, hi):
    return min(max(x, lo), hi)


ACTS = {
    "sigmoid": logistic, "tanh": math.tanh, "softplus": softplus,
    "silu": lambda x: x * logistic(x),
    "mish": lambda x: x * math.tanh(softplus(x)),
    "gelu": lambda x: x * math.erfc(-x / math.sqrt(2)) / 2,
    "gelu_tanh": lambda x: x / 2 * (1 + math.tanh(
        math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))),
    "hard_swish": lambda x: x * between(x + 3, 0, 6) / 6,
    "hard_sigmoid": lambda x: between(x / 6 + 0.5, 0, 1),
    "elu": lambda x: x if x > 0 else math.expm1(x),
}
NUMBERS = {"hard_sigmoid": {"alpha": [1 / 6], "lo": [0.5]},
           "elu": {"alpha": [1.0]}}


def may_be(value, scale, zero):
    """Codes of a number, both where it is as good as halfway."""
    real = value / scale
    near = 1e-5 * max(1, abs(real))
    codes = {math.floor(real + 0.5 + d) + zero for d in (-near, near)}
    return {min(max(code, -128), 127) for code in codes}


def single(kind, rounding):
    net = Net(f"{kind}-{rounding}")
    x = net.input(1, 16, 16, scale=0.047, zero=9)
    scale, zero = 0.0241, -101
    out = net.node("act", "y", [x[0]], x[1], scale,
                   {"act": kind, **NUMBERS.get(kind, {})}, zero=zero)
    for node in net.nodes:
        node["writes"][0]["quant"]["round"] = rounding
    want = [may_be(ACTS[kind](0.047 * (code - 9)), scale, zero)
            for code in range(-128, 128)]
    return net, out, want


def check_exact(folder):
    npy_write(f"{folder}/x.npy", [1, 1, 16, 16], array.array(
        "f", [0.047 * (code - 9) for code in range(-128, 128)]).tobytes())
    for kind in ACTS:
        for rounding in ("up", "even"):
            net, out, want = single(kind, rounding)
            path = net.write(folder, out)
            for how in ([], ["--native"]):
                _, _, errors = run("eval", path, "--input", f"{folder}/x.npy",
                                   "-o", f"{folder}/{net.name}", *how)
                with open(f"{folder}/{net.name}/y.npy", "rb") as file:
                    got = array.array("b", file.read()[-256:]).tolist()
                wrong = [c for c, (g, w) in enumerate(zip(got, want))
                         if g not in w]
                check(f"{kind} {rounding} {how}", not wrong and
                      len(set(got)) > 25, (wrong, errors))
            code, text, errors = run("verify", path, "-t", MACHINE, "--json")
            report = json.loads(text) if text else {}
            check(f"{kind} {rounding}: {MACHINE}", code == 0 and
                  report["max_code_error"] == 0 and
                  report["quantised_layers_compared"] == 1 and
                  not report["host_layers"], text[:300] + errors)
            run("compile", path, "-t", MACHINE, "-o", f"{folder}/out")
            with open(f"{folder}/out/{net.name}.json", encoding="utf-8") as file:
                quant = json.load(file)["amphora"]["image"]["quants"][0]
            check(f"{kind} {rounding}: table", quant["rule"] == "table" and
                  all(g in w for g, w in zip(quant["table"], want)), quant)


# ---- a network ----

def node(op, name, reads, shape, attributes=None):
    return {"op": op, "name": name, "reads": reads,
            "writes": [{"name": name, "shape": shape}],
            **({"attributes": attributes} if attributes else {})}


def conv(name, reads, out_c, size, kernel=1, groups=1):
    pad = kernel // 2
    return node("conv", name, [reads], [1, out_c, size, size],
                {"out_c": [out_c], "groups": [groups],
                 "kernel": [kernel] * 2, "stride": [1, 1], "dilation": [1, 1],
                 "pad": [pad] * 2, "pad_end": [pad] * 2})


def act(kind, name, reads, c, size):
    return node("act", name, [reads], [1, c, size, size],
                {"act": kind, **NUMBERS.get(kind, {})})


def write_network(folder):
    """Two blocks with gates by channel, as MobileNetV3 and EfficientNet have."""
    nodes = [node("input", "image", [], [1, 3, 14, 14]),
             conv("stem", "image", 8, 14, 3),
             act("hard_swish", "stem/act", "stem", 8, 14)]
    last = "stem/act"
    for name, kind, gate in (("a", "silu", "sigmoid"),
                             ("b", "hard_swish", "hard_sigmoid")):
        nodes += [
            conv(f"{name}/depth", last, 8, 14, 3, 8),
            act(kind, f"{name}/act", f"{name}/depth", 8, 14),
            node("pool", f"{name}/mean", [f"{name}/act"], [1, 8, 1, 1],
                 {"kind": "avg", "global": [1]}),
            conv(f"{name}/less", f"{name}/mean", 4, 1),
            act(kind, f"{name}/less/act", f"{name}/less", 4, 1),
            conv(f"{name}/more", f"{name}/less/act", 8, 1),
            act(gate, f"{name}/gate", f"{name}/more", 8, 1),
            node("eltwise", f"{name}/gated", [f"{name}/gate", f"{name}/act"],
                 [1, 8, 14, 14], {"kind": "mul"}),
            conv(f"{name}/point", f"{name}/gated", 8, 14),
            node("eltwise", f"{name}/sum", [f"{name}/point", last],
                 [1, 8, 14, 14], {"kind": "add"})]
        last = f"{name}/sum"
    path = f"{folder}/gates.json"
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"amphora": 1, "name": "gates", "constants": [],
                   "nodes": nodes, "outputs": [last]}, file)
    rng = random.Random(3)
    os.mkdir(f"{folder}/samples")
    for i in range(24):
        image = array.array("f", [rng.gauss(0, 1) for _ in range(588)])
        npy_write(f"{folder}/samples/{i:02}.npy", [1, 3, 14, 14],
                  image.tobytes())
    return path


def check_gates(folder):
    code, _, errors = run("quantise", write_network(folder), "--calibrate",
                          f"{folder}/samples", "-t", MACHINE, "-o",
                          f"{folder}/gates")
    check("quantise", code == 0, errors)
    path = f"{folder}/gates/gates.json"
    code, text, errors = run("verify", path, "-t", MACHINE, "--json")
    report = json.loads(text) if text else {}
    check("gates: every code, on engines", code == 0 and
          report["max_code_error"] == 0 and not report["host_layers"] and
          report["quantised_layers_compared"] > 20, text[:300] + errors)
    code, text, errors = run("verify", f"{folder}/gates/gates.onnx", "-t",
                             MACHINE, "--json")
    report = json.loads(text) if text else {}
    check("gates as ONNX: the same layers", code == 0 and
          report["max_code_error"] == 0 and
          {row["kind"] for row in report["host_layers"]} == {"identity"},
          text[:600] + errors)
    results = []
    for form in ("json", "onnx"):
        run("eval", f"{folder}/gates/gates.{form}", "--input",
            f"{folder}/samples/03.npy", "-o", f"{folder}/{form}")
        names = sorted(os.listdir(f"{folder}/{form}"), key=lambda n: -len(n))
        with open(f"{folder}/{form}/{names[0]}", "rb") as file:
            results.append(file.read()[-4 * 8 * 14 * 14:])
    check("gates as ONNX: the same numbers", results[0] == results[1])
    run("compile", path, "-t", MACHINE, "--materialise", "-o",
        f"{folder}/data")
    with open(f"{folder}/data/gates.data.json", encoding="utf-8") as file:
        rows = [row for row in json.load(file)["constants"]
                if row["role"] == "table"]
    check("tables among the constants", len(rows) == 7 and
          all(row["type"] == "int16" and row["bytes"] == 512 for row in rows),
          rows)


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_exact(folder)
        check_gates(folder)
    print(f"tables: {passed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
