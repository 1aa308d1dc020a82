#!/usr/bin/env python3
"""onnx_testdata.py - ONNX's own test models (Debian: libonnx-testdata) against
the outputs that come with them.

Each model goes through the reader and the reference evaluation, and where it
can be compiled for xdnn-v3-96, by engine or host, through its simulated
listing too. Prints `supported N, agree N, refused M` with the reasons, and
what could not be simulated. Fails if a supported model disagrees, if fewer
than LEAST are supported, or if the tool crashes.

usage: onnx_testdata.py [AMPHORA] [-v] [NAME...]

Inputs of operators that need constants (weights, axes) are inputs of these
models: where one is refused for that, all but the first are fixed.
"""
import collections
import concurrent.futures
import glob
import json
import os
import re
import subprocess
import sys

DATA = "/usr/share/libonnx-testdata/data"
MACHINE = "xdnn-v3-96"
LEAST = 330
HALVES = 2e-3  # float16 and bfloat16 have 10 and 7 bits of fraction
SECONDS = 60


def fields(data):
    """(number, value) of a protobuf message; bytes where it is a length."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        key = varint()
        kind = key & 7
        if kind == 0:
            yield key >> 3, varint()
        elif kind == 2:
            size = varint()
            yield key >> 3, data[at:at + size]
            at += size
        else:
            at += 4 if kind == 5 else 8
            yield key >> 3, None


class Model:
    """One folder of the package."""

    def __init__(self, folder):
        self.folder = folder
        self.name = os.path.relpath(folder, DATA)
        self.path = os.path.join(folder, "model.onnx")
        with open(self.path, "rb") as file:
            graph = dict(fields(file.read()))[7]
        self.ops, inputs, given = set(), [], set()
        self.halves = False
        for number, value in fields(graph):
            if number == 1:
                self.ops.add(dict(fields(value))[4].decode())
            elif number == 5:
                given.add(dict(fields(value))[8])
            elif number == 11:
                inputs.append(dict(fields(value))[1])
            if number in (11, 12):
                self.halves |= self.element(value) in (10, 16)
        self.inputs = [i.decode() for i in inputs if i not in given]

    @staticmethod
    def element(value):
        kind = dict(fields(dict(fields(value)).get(2, b""))).get(1, b"")
        return dict(fields(kind)).get(1)

    def files(self, data_set, what):
        found = glob.glob(os.path.join(data_set, what + "_*.pb"))
        return sorted(found, key=lambda f: int(re.findall(r"\d+", f)[-1]))

    def commands(self, amphora, fixed):
        """Arguments of eval and verify, one list a data set."""
        for data_set in sorted(glob.glob(self.folder + "/test_data_set_*")):
            arguments = ["--json", "--tolerance",
                         str(HALVES if self.halves else 1e-4)]
            names = self.inputs
            for i, file in enumerate(self.files(data_set, "input")):
                if fixed and i > 0 and i < len(names):
                    arguments += ["--fix", f"{names[i]}={file}"]
                else:
                    arguments += ["--input", file]
            for file in self.files(data_set, "output"):
                arguments += ["--expect", file]
            yield arguments


def run(amphora, command, model, arguments, *more):
    """(exit code, JSON object, first error)."""
    done = subprocess.run([amphora, command, model.path, *arguments, *more],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, timeout=SECONDS,
                          check=False,
                          env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})
    error = done.stderr.decode(errors="replace").strip().split("\n")[0]
    error = error.replace(model.path + ": ", "")
    try:
        result = json.loads(done.stdout)
    except ValueError:
        result = {}
    return done.returncode, result, error


def judge(amphora, model):
    """(verdict, reason): refused, WRONG, agree, or simulated."""
    for fixed in (False, True):
        verdict = judge_way(amphora, model, fixed)
        if verdict[0] != "refused" or "must be" not in verdict[1]:
            break
    return verdict


def judge_way(amphora, model, fixed):
    verdict = ("refused", "no data")
    for arguments in model.commands(amphora, fixed):
        code, result, error = run(amphora, "verify", model, arguments, "-t",
                                  MACHINE)
        if code == 0:
            verdict = ("simulated", "")
            continue
        why = error or json.dumps(result.get("first_mismatch"))
        code, result, error = run(amphora, "eval", model, arguments)
        if code == 0:
            return "agree", why
        if code not in (1, 3):
            return "WRONG", f"exit code {code}: {error}"
        if "max_rel_error" in result:
            return "WRONG", f"relative error {result['max_rel_error']:.3g}"
        return "refused", error
    return verdict


def short(reason):
    """A reason without what is particular to a model."""
    reason = re.sub(r'layer "[^"]*" ', "", reason)
    return re.sub(r"^(byte \d+: )?(error: )?", "", reason)[:90]


def report(verdicts, verbose):
    kinds = collections.defaultdict(list)
    for name, (kind, reason) in sorted(verdicts.items()):
        kinds[kind].append((name, reason))
    for kind in ("refused", "agree"):
        if kind == "agree" and kinds[kind]:
            print("not simulated:")
        reasons = collections.defaultdict(list)
        for name, reason in kinds[kind]:
            reasons[short(reason)].append(name)
        for reason, names in sorted(reasons.items(),
                                    key=lambda r: (-len(r[1]), r[0])):
            print(f"  {len(names):3} {reason}")
            if verbose:
                print("        " + " ".join(names))
    for name, reason in kinds["WRONG"]:
        print(f"WRONG {name}: {reason}")
    agree = len(kinds["agree"]) + len(kinds["simulated"])
    supported = agree + len(kinds["WRONG"])
    print(f"supported {supported}, agree {agree}, refused "
          f"{len(kinds['refused'])}; simulated on {MACHINE} "
          f"{len(kinds['simulated'])}")
    return supported, len(kinds["WRONG"])


def main():
    arguments = sys.argv[1:]
    verbose = "-v" in arguments
    arguments = [a for a in arguments if not a.startswith("-")]
    amphora = arguments.pop(0) if arguments else "build/amphora"
    if not os.path.isdir(DATA):
        print("skipped: libonnx-testdata is not installed")
        return 0
    models = [Model(os.path.dirname(f)) for f in
              sorted(glob.glob(DATA + "/*/*/model.onnx"))]
    if arguments:
        models = [m for m in models if any(a in m.name for a in arguments)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        found = pool.map(lambda m: judge(amphora, m), models)
        verdicts = dict(zip((m.name for m in models), found))
    supported, wrong = report(verdicts, verbose)
    return wrong > 0 or (not arguments and supported < LEAST)


if __name__ == "__main__":
    sys.exit(main())
