#!/usr/bin/env python3
"""listing.py - records of a listing say what the simulator sees.

Compiles networks for machines of all kinds, reads NET.json with
examples/read_listing.py alone, and compares with `simulate --accesses`, which
takes addresses from the instructions: every byte that an instruction writes or
reads, its cycles, the bytes over DDR, and that it starts when what it waits for
has ended. The same with examples/read_listing.c. What --materialise writes is
read back, and examples/run_listing.py computes from it what `simulate` does; the
schema holds for all of it.

usage: listing.py [--long]
"""
import csv
import json
import os
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
AMPHORA = os.path.join(ROOT, "build", "amphora")
sys.path.insert(0, os.path.join(ROOT, "examples"))
import read_listing  # noqa: E402

CASES = [
    ("tiny", "xdnn-v2-28"), ("tiny", "xdnn-v2-28 --set memories.am.size=20KiB"),
    ("tiny", "xdnn-v3-96"), ("tiny", "ring-npu"), ("tiny", "tile-npu"),
    ("tiny", "stage-npu"), ("tiny", "vta-pynq"), ("tiny", "dpuczdx8g"),
    ("tiny", "line-npu"), ("tiny", "math-engine"), ("tiny", "darius-32"),
    ("densenet-cell", "xdnn-v2-56"), ("densenet-cell", "stage-npu"),
    ("tiny", "ring-npu --set memories.am.size=6KiB"),
    ("tiny", "stage-npu --images 2"),
]
LONG = [
    ("squeezenet", "xdnn-v3-96"), ("squeezenet", "stage-npu"),
    ("googlenet", "xdnn-v2-28 --set memories.am.size=1MiB"),
    ("squeezenet", "dpuczdx8g"),
    ("mobilenet-v2", "ring-npu --objective bytes --set "
                     "memories.am.size=145376"),
]


def amphora(*arguments):
    done = subprocess.run([AMPHORA, *arguments], cwd=ROOT, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def traced(path):
    """By instruction: cycles, and the bytes read and written by memory."""
    found = {}
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if not row["instruction"]:
                continue
            item = found.setdefault(int(row["instruction"]), {
                "cycles": (int(row["cycle"]), int(row["until"])), "bytes": {}})
            key = row["access"], row["memory"]
            touched = item["bytes"].setdefault(key, set())
            for i in range(int(row["ranges"])):
                at = i * int(row["step"])
                touched.update(range(int(row["from"]) + at,
                                     int(row["to"]) + at))
    return found


def said(record, elements):
    """The bytes read and written by memory that a record tells of."""
    found = {}
    for operand in record["operands"]:
        writes = operand["role"] == "out" or \
            record["operation"] in ("load_weights", "load_bias")
        touched = found.setdefault(
            ("write" if writes else "read", operand["memory"]), set())
        element = elements[operand["memory"]]
        for at in read_listing.addresses(operand):
            touched.update(range(at, at + element))
    return found


def compare(record, elements, trace):
    """What differs; tiles lie in active memory beside their operands, and
    pools stop reading at their last window."""
    told = said(record, elements)
    touched = trace["bytes"] if trace else {}
    for key, there in told.items():
        seen = touched.get(key, set())
        if seen - there and "tile" not in record:
            yield f"{key}: {len(seen - there)} bytes are not told of"
        if there - seen and not ("pool" in record["operation"] and
                                 key[0] == "read"):
            yield f"{key}: {len(there - seen)} bytes are not touched"
    for key in touched.keys() - told.keys():
        if "tile" not in record:
            yield f"{key}: not told of"
    planned = record.get("planned")
    if trace and planned and trace["cycles"] != (
            planned["start"], planned["start"] + planned["cycles"]):
        yield f"cycles {trace['cycles']}, planned {planned}"


def check_waits(records):
    """It starts when those have ended."""
    ends = {}
    for record in records:
        planned = record.get("planned")
        for other in record["waits_for"]:
            if other >= record["instruction"]:
                yield record["instruction"], "waits for a later one"
            if planned and ends.get(other, 0) > planned["start"]:
                yield (record["instruction"],
                       f"starts at {planned['start']}, but waits for {other} "
                       f"until {ends[other]}")
        if planned:
            ends[record["instruction"]] = planned["start"] + planned["cycles"]


# ---- the schema: as much of it as this one uses ----

KINDS = {"object": dict, "array": list, "string": str, "integer": int,
         "number": (int, float), "boolean": bool}


def is_kind(value, kinds):
    kinds = kinds if isinstance(kinds, list) else [kinds]
    return any(isinstance(value, KINDS[k]) and
               isinstance(value, bool) == (k == "boolean") for k in kinds)


def violations(value, schema, where="$"):
    """Where a value is not as the schema says."""
    if "type" in schema and not is_kind(value, schema["type"]):
        yield f"{where}: not {schema['type']}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where}: {value!r} is none of {schema['enum']}"
    if "const" in schema and value != schema["const"]:
        yield f"{where}: {value!r} is not {schema['const']!r}"
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= \
                schema.get("maxItems", 1 << 60):
            yield f"{where}: {len(value)} items"
        for i, item in enumerate(value):
            yield from violations(item, schema.get("items", {}),
                                  f"{where}[{i}]")
    if isinstance(value, dict):
        known = schema.get("properties", {})
        more = schema.get("additionalProperties", True)
        for key in schema.get("required", []):
            if key not in value:
                yield f"{where}: no {key}"
        for key, item in value.items():
            if key not in known and more is False:
                yield f"{where}: {key} is not known"
            yield from violations(
                item, known.get(key, more if isinstance(more, dict) else {}),
                f"{where}.{key}")


def check_schema(path):
    with open(os.path.join(ROOT, "docs", "listing.schema.json"),
              encoding="utf-8") as file:
        schema = json.load(file)
    with open(path, encoding="utf-8") as file:
        listing = json.load(file)
    yield from violations(listing, schema)
    record = listing["amphora"]["records"][0]
    record["operands"][0]["colour"] = record.pop("step")
    if len(list(violations(listing, schema))) != 2:
        yield "the schema lets a damaged record pass"


# ---- the reader in C ----

def sums(records):
    """The lines that examples/read_listing.c prints of operands."""
    for record in records:
        for o in record["operands"]:
            yield (f"{record['instruction']} {record['operation']} {o['role']} "
                   f"{o['memory']} {o['address']} "
                   f"{sum(read_listing.addresses(o))}")


def reader_in_c(folder):
    program = os.path.join(folder, "read_listing")
    flags = subprocess.run(["pkg-config", "--cflags-only-I", "libcjson"],
                           check=False, stdout=subprocess.PIPE).stdout.decode()
    # the header says <cjson/cJSON.h>
    flags = [f.replace("/cjson", "") for f in flags.split()]
    subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-Wall", "-Wextra",
                    "-Werror", *flags, "-I", os.path.join(ROOT, "include"),
                    os.path.join(ROOT, "examples", "read_listing.c"),
                    "-o", program, "-lcjson"], check=True)
    return program


def check_c(program, path, records):
    done = subprocess.run([program, path], check=False, stdout=subprocess.PIPE)
    said = done.stdout.decode().splitlines()
    wanted = list(sums(records))
    if done.returncode or said[:-1] != wanted:
        yield f"read_listing.c: exit {done.returncode}, " \
              f"{sum(a != b for a, b in zip(said, wanted))} lines differ"


# ---- constants ----

def values(manifest, folder, layer, role):
    """A constant's values by the manifest, and what it says of it."""
    for item in manifest["constants"]:
        if (item["layer"], item["role"]) == (layer, role):
            letter = {"float32": "f", "int8": "b", "uint8": "B", "int16": "h",
                      "int32": "i"}[item["type"]]
            with open(os.path.join(folder, manifest["file"]), "rb") as file:
                file.seek(item["offset"])
                data = file.read(item["bytes"])
            return struct.unpack(f"<{len(data) // struct.calcsize(letter)}"
                                 f"{letter}", data), item
    raise KeyError((layer, role))


def compiled_with_data(network, target, folder):
    code, _, errors = amphora("compile", network, "-t", target, "-o", folder,
                              "--materialise")
    if code:
        raise RuntimeError(errors)
    name = os.path.splitext(os.path.basename(network))[0]
    with open(os.path.join(folder, name + ".data.json"),
              encoding="utf-8") as file:
        return name, json.load(file)


def check_seeded(folder):
    """A convolution of seeded weights: computed from the bytes alone, it gives
    what the simulator gives."""
    net = os.path.join(folder, "one.prototxt")
    with open(net, "w", encoding="utf-8") as file:
        file.write(
            'name: "one"\nlayer { name: "x" type: "Input" top: "x" input_param '
            '{ shape { dim: 1 dim: 3 dim: 5 dim: 5 } } }\n'
            'layer { name: "c" type: "Convolution" bottom: "x" top: "c" '
            'convolution_param { num_output: 4 kernel_size: 3 } }\n')
    image = [(i * 37 % 19 - 9) / 8 for i in range(75)]
    with open(os.path.join(folder, "x.npy"), "wb") as file:
        head = ("{'descr': '<f4', 'fortran_order': False, "
                "'shape': (1, 3, 5, 5)}").ljust(117) + "\n"
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) +
                   head.encode() + struct.pack("<75f", *image))
    _, manifest = compiled_with_data(net, "xdnn-v2-28", folder)
    weight, _ = values(manifest, folder, "c", "weight")
    bias, _ = values(manifest, folder, "c", "bias")
    out = os.path.join(folder, "out")
    amphora("simulate", os.path.join(folder, "one.json"), "-t", "xdnn-v2-28",
            "--input", os.path.join(folder, "x.npy"), "-o", out)
    with open(os.path.join(out, os.listdir(out)[0]), "rb") as file:
        data = file.read()
    got = struct.unpack("<36f", data[-144:])
    for k in range(4):
        for y in range(3):
            for x in range(3):
                want = bias[k] + sum(
                    image[c * 25 + (y + i) * 5 + x + j] *
                    weight[((k * 3 + c) * 3 + i) * 3 + j]
                    for c in range(3) for i in range(3) for j in range(3))
                if abs(want - got[k * 9 + y * 3 + x]) > 1e-5:
                    yield f"channel {k} at {y}, {x}: {want}, simulated " \
                          f"{got[k * 9 + y * 3 + x]}"


def npy(path, form, shape, numbers):
    with open(path, "wb") as file:
        head = (f"{{'descr': '{form}', 'fortran_order': False, "
                f"'shape': {shape}}}").ljust(117) + "\n"
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) +
                   head.encode() +
                   struct.pack(f"<{len(numbers)}{'f' if 'f' in form else 'b'}",
                               *numbers))


def check_computing(folder, network, machine, form, shape, result, near):
    """examples/run_listing.py computes what `simulate` computes."""
    numbers = [i * 73 % 251 - 125 for i in range(shape[1] * shape[2] * shape[3])]
    if "f" in form:
        numbers = [v / 64 for v in numbers]
    npy(os.path.join(folder, "in.npy"), form, shape, numbers)
    name, _ = compiled_with_data(network, machine, folder)
    path = os.path.join(folder, name + ".json")
    out = os.path.join(folder, "computed")
    code, _, errors = amphora("simulate", path, "-t", machine, "--input",
                              os.path.join(folder, "in.npy"), "-o", out)
    if code:
        yield f"{name}: {errors}"
        return
    with open(os.path.join(out, result + ".npy"), "rb") as file:
        data = file.read()
    done = subprocess.run([sys.executable, "examples/run_listing.py", path],
                          cwd=ROOT, check=False, stdout=subprocess.PIPE,
                          input=" ".join(map(str, numbers)).encode())
    mine = [float(v) for v in done.stdout.split()]
    size = 4 if "f" in form else 1
    theirs = struct.unpack(f"<{len(mine)}{'f' if size == 4 else 'b'}",
                           data[len(data) - size * len(mine):])
    if not mine or max(abs(a - b) for a, b in zip(mine, theirs)) > near:
        yield f"{name} on {machine}: {mine}, simulated {list(theirs)}"


def check_examples():
    """examples/small is what tests/write_examples.py writes."""
    done = subprocess.run([sys.executable, "tests/write_examples.py",
                           "--check"], cwd=ROOT, check=False,
                          stdout=subprocess.PIPE)
    yield from done.stdout.decode().splitlines()


def check_case(network, machine, folder, program):
    """Problems of one listing."""
    target, *more = machine.split()
    settings = [m for i, m in enumerate(more)
                if m == "--set" or more[i - 1] == "--set"]
    net = os.path.join("examples", network + ".prototxt")
    code, _, errors = amphora("compile", net, "-t", target, *more, "-o", folder)
    if code:
        yield f"compile: exit {code}: {errors.strip()[:200]}"
        return
    path = os.path.join(folder, network + ".json")
    trace_path = os.path.join(folder, "accesses.csv")
    code, out, errors = amphora("simulate", path, "-t", target, *settings,
                                "--memory-only", "--json", "--accesses",
                                trace_path)
    if code:
        yield f"simulate: exit {code}: {errors.strip()[:200]}"
        return
    sim = json.loads(out)
    listing = read_listing.load(path)
    elements = {m["name"]: m["element"] for m in listing["memories"]}
    trace = traced(trace_path)
    records = listing["records"]
    if len(records) != len(listing["instructions"]):
        yield "not a record for each instruction"
    for record in records:
        for problem in compare(record, elements,
                               trace.get(record["instruction"])):
            yield f"{record['instruction']} {record['layer']}: {problem}"
    for where, problem in check_waits(records):
        yield f"{where}: {problem}"
    yield from check_schema(path)
    yield from check_c(program, path, records)
    planned = [r["planned"] for r in records if "planned" in r]
    end = max((p["start"] + p["cycles"] for p in planned), default=0)
    if end != sim["cycles"]:
        yield f"{end} cycles, simulated {sim['cycles']}"


def main():
    cases = CASES + (LONG if "--long" in sys.argv[1:] else [])
    failed = 0
    with tempfile.TemporaryDirectory() as top:
        program = reader_in_c(top)
        for network, machine in cases:
            with tempfile.TemporaryDirectory() as folder:
                problems = list(check_case(network, machine, folder, program))
            for problem in problems[:5]:
                print(f"{network} on {machine}: {problem}")
            failed += bool(problems)
        for problem in (*check_seeded(top), *check_examples(),
                        *check_computing(top, "examples/tiny.prototxt",
                                         "xdnn-v2-28", "<f4", (1, 3, 16, 16),
                                         "probability", 1e-5),
                        *check_computing(
                            top, "examples/small/residual-int8.tflite",
                            "stage-npu", "|i1", (1, 3, 12, 12), "t15", 0)):
            print(problem)
            failed += 1
    print(f"{len(cases) - failed} listings as simulated, {failed} not")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
