#!/usr/bin/env python3
"""onnx_testdata.py - ONNX's own test models (Debian: libonnx-testdata) against
the outputs that come with them.

Each model goes through the reader and the reference evaluation, and one of
SAMPLE (each with --long) that can be compiled for xdnn-v3-96, by engine or host,
through its simulated listing too. Prints `supported N, agree N, refused M` with the reasons, and
what could not be simulated. Fails if a supported model disagrees, if fewer
than LEAST are supported, or if the tool crashes. Other ONNX files, where they
are here, are verified on the machine.

usage: onnx_testdata.py [AMPHORA] [-v] [--long] [NAME...]

Inputs of operators that need constants (weights, axes) are inputs of these
models: where one is refused for that, all but the first are fixed, then all.
The package stores bfloat16 elements as uint16: they are read as what they are.
"""
import collections
import concurrent.futures
import glob
import json
import os
import re
import subprocess
import sys
import zlib

import scratch

DATA = "/usr/share/libonnx-testdata/data"
OTHERS = "../shared/data/onnx"
MACHINE = "xdnn-v3-96"
LEAST = 946
SAMPLE = 16
HALF, BRAIN = 1e-3, 8e-3  # float16 and bfloat16: 10 and 7 bits of fraction
SECONDS = 600  # only a hang takes so long, however busy the machine
TEMPORARY = scratch.folder()


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
        self.halves = self.brains = False  # float16, bfloat16
        for number, value in fields(graph):
            if number == 1:
                self.ops.add(dict(fields(value))[4].decode())
            elif number == 5:
                given.add(dict(fields(value))[8])
            elif number == 11:
                inputs.append(dict(fields(value))[1])
            if number in (11, 12):
                self.halves |= self.element(value) == 10
                self.brains |= self.element(value) == 16
        self.inputs = [i.decode() for i in inputs if i not in given]

    def repaired(self, file):
        """The tensor, with bfloat16 where it says uint16."""
        if not self.brains:
            return file
        with open(file, "rb") as source:
            data = source.read()
        if dict(fields(data)).get(2) != 4:
            return file
        at = data.index(b"\x10\x04")
        path = os.path.join(TEMPORARY, file.strip("/").replace("/", "_"))
        with open(path, "wb") as target:
            target.write(data[:at] + b"\x10\x10" + data[at + 2:])
        return path

    @staticmethod
    def element(value):
        kind = dict(fields(dict(fields(value)).get(2, b""))).get(1, b"")
        return dict(fields(kind)).get(1)

    def files(self, data_set, what):
        found = glob.glob(os.path.join(data_set, what + "_*.pb"))
        found.sort(key=lambda f: int(re.findall(r"\d+", f)[-1]))
        return [self.repaired(f) for f in found]

    def commands(self, first_fixed):
        """Arguments of eval and verify, one list a data set."""
        for data_set in sorted(glob.glob(self.folder + "/test_data_set_*")):
            arguments = ["--json", "--tolerance",
                         str(BRAIN if self.brains else HALF if self.halves
                             else 1e-4)]
            names = self.inputs
            for i, file in enumerate(self.files(data_set, "input")):
                if i < len(names) and i >= first_fixed:
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


def judge(amphora, model, simulated):
    """(verdict, reason): refused, WRONG, agree, or simulated."""
    for first_fixed in (sys.maxsize, 1, 0):
        verdict = judge_way(amphora, model, first_fixed, simulated)
        if verdict[0] != "refused" or "must be" not in verdict[1]:
            break
    return verdict


def judge_way(amphora, model, first_fixed, simulated):
    verdict = ("refused", "no data")
    for arguments in model.commands(first_fixed):
        why = ""
        if simulated:
            code, result, error = run(amphora, "verify", model, arguments, "-t",
                                      MACHINE)
            if code == 0 and "a function of yours" not in error:
                verdict = ("simulated", "")
                continue
            why = error or json.dumps(result.get("first_mismatch"))
        code, result, error = run(amphora, "eval", model, arguments)
        if "a function of yours" in error:
            return "refused", "operators that become calls"
        if code == 0 and not simulated:
            verdict = ("agree", "")
            continue
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
            if reason:
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


def other_files(amphora):
    """How many of the other ONNX files that are here fail on the machine."""
    failed = 0
    files = sorted(glob.glob(OTHERS + "/*.onnx*"))
    for path in files:
        done = subprocess.run([amphora, "verify", path, "-t", MACHINE],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, check=False)
        if done.returncode:
            failed += 1
            print(f"WRONG {path}: {done.stdout.decode(errors='replace')}")
    if files:
        print(f"{len(files)} other files, {failed} failed")
    return failed


def main():
    arguments = sys.argv[1:]
    verbose, long = "-v" in arguments, "--long" in arguments
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
        found = pool.map(lambda m: judge(
            amphora, m, long or arguments
            or zlib.crc32(m.name.encode()) % SAMPLE == 0), models)
        verdicts = dict(zip((m.name for m in models), found))
    supported, wrong = report(verdicts, verbose)
    if arguments:
        return wrong > 0
    return wrong > 0 or other_files(amphora) > 0 or supported < LEAST


if __name__ == "__main__":
    sys.exit(main())
