#!/usr/bin/env python3
"""containers.py - files of real machines are read and written by hwspecs alone.

  given    25 descriptions (JSON and weights) become text, `asm` makes the bytes
           of the given kmodel
  files    each of these, and 8 of the vendor's: disasm, asm: the same bytes
  dpu      a program of a Vitis DPU, 1,076 instructions, by a description of its
           words: disasm, asm, the same bytes
  damage   every bit of the twelve words of a layer: noticed, or read as another
           value of a meaning that a file may choose

The files are those of ../shared/data; without them nothing is tested here
(tests/hwspec/test_program.c stands alone). Needs the folder build.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SHARED = os.path.join(ROOT, "..", "shared", "data")
DATA = os.path.join(SHARED, "k210")
PROGRAM = os.path.join(SHARED, "dpu", "resnet_v2_101_tf.mc")
DPU = os.path.join(ROOT, "hwspec/targets/dpuczdx8g-isa0.yaml")

MEMORY = {"constants": "constants", "main": "main", "kpu": "am"}
POOLS = {  # kind, kernel, stride, phase
    "bypass": ("none", 1, 1, 0), "max2s2": ("max", 2, 2, 0),
    "mean2s2": ("mean", 2, 2, 0), "max4s4": ("max", 4, 4, 0),
    "mean4s4": ("mean", 4, 4, 0), "lefttop2s2": ("sample", 2, 2, 0),
    "righttop2s2": ("sample", 2, 2, 1), "lefttop4s4": ("sample", 4, 4, 0),
    "mean2s1": ("mean", 2, 1, 0), "max2s1": ("max", 2, 1, 0)}
# Meanings that a file may choose freely: another bit is another file. The last
# ones are said where they are not what out2.on implies.
FREE = {"in.addr", "out.addr", "in.pad", "zero.w", "zero.x", "zero.xw",
        "zero.shift_w", "zero.shift_x", "out2.on", "pool", "pool.kernel.w",
        "pool.stride.w", "pool.phase", "pool.edge",
        "out2.memory", "out2.type", "out2.size"}


def operand(name, range_):
    memory, kind, start, size = range_
    return (f"{name}.memory={MEMORY[memory]} {name}.type={kind} "
            f"{name}.start={start} {name}.size={size}")


def vector(name, values):
    return f"  {name}[]= " + " ".join(str(v) for v in values)


def layer(node, weights):
    pool, kernel, stride, phase = POOLS[node["pool"]]
    w, h, c = node["in"]
    words = [
        f"KPU batch={node['batches']} depthwise={int(node['depthwise'])}",
        f"in.addr={node['src_row']} out.addr={node['dst_row']}",
        f"in.w={w} in.h={h} in.c={c} out.c={node['out'][2]}",
        f"kernel.w={node['kernel']} pool={pool} pool.kernel.w={kernel}",
        f"pool.stride.w={stride} pool.phase={phase}",
        f"in.pad={node['pad_value']} zero.x={node['arg_x']}",
        f"zero.w={node['arg_w']} zero.xw={node['arg_add']}",
        f"zero.shift_x={node['shr_x']} zero.shift_w={node['shr_w']}"]
    if node["main"]:
        words += ["out2.on=1", operand("out2", node["main"])]
    at, n = node["weights"]
    lines = [" ".join(words)]
    for k, name in enumerate(["mul", "shift", "add"]):
        lines.append(vector("bn." + name, [row[k] for row in node["bn"]]))
    for k, name in enumerate(["start", "mul", "shift", "add"]):
        lines.append(vector("act." + name, [row[k] for row in node["act"]]))
    lines.append(f"  weights[]= x{weights[at:at + n].hex()}")
    return lines


def shape(name, values):
    return " ".join(f"{name}.{axis}={v}" for axis, v in zip("nchw", values))


def move(row, node):
    return (f"{row} {operand('in', node['input'])} "
            f"{operand('out', node['output'])}")


def host(node):
    """The lines of a node that is not a layer."""
    op = node["op"]
    if op == "kpu_upload":
        return [move("UPLOAD", node) + " " + shape("in", node["shape"])]
    if op in ("quantize", "dequantize"):
        row = op.upper().replace("IZE", "ISE")
        return [f"{move(row, node)} code.zero={node['zero_point']} "
                f"code.scale={node['scale']!r}"]
    if op == "transpose":
        return [move("TRANSPOSE", node) + " " + shape("in", node["shape"]),
                vector("perm", node["perm"])]
    if op == "softmax":
        return [f"{move('SOFTMAX', node)} inner={node['inner']} "
                f"outer={node['outer']} beta={node['beta']!r}"]
    if op == "pad":
        sides = " ".join(f"before.{axis}={before} after.{axis}={after}"
                         for axis, (before, after) in
                         zip("nchw", node["paddings"]))
        return [f"{move('PAD', node)} {shape('in', node['shape'])} {sides} "
                f"value.type=1 value={node['value']}"]
    if op == "concat":
        parts = node["inputs"]
        return [f"CONCAT {operand('out', node['output'])} "
                f"inner={node['inner']} outer={node['outer']} "
                f"parts={len(parts)}",
                vector("part.memory", [MEMORY[part[0]] for part in parts]),
                vector("part.type", [part[1] for part in parts]),
                vector("part.start", [part[2] for part in parts]),
                vector("part.size", [part[3] for part in parts]),
                vector("part.extent", node["dims"])]
    raise KeyError(op)


def described(name):
    """The text of a description."""
    with open(f"{DATA}/{name}.json", encoding="utf-8") as file:
        whole = json.load(file)
    with open(f"{DATA}/{name}.weights.bin", "rb") as file:
        weights = file.read()
    model = whole["model"]
    ins = [i["range"] for i in model["inputs"]]
    lines = [f"kmodel main.bytes={model['main_mem']} inputs={len(ins)} "
             f"outputs={len(model['outputs'])}"]
    for prefix, ranges in (("input", ins), ("output", model["outputs"])):
        for k, of in enumerate(["memory", "type", "start", "size"]):
            values = [MEMORY[r[k]] if k == 0 else r[k] for r in ranges]
            lines.append(vector(f"{prefix}.{of}", values))
    for k, axis in enumerate("nchw"):
        lines.append(vector(f"input.{axis}",
                            [i["shape"][k] for i in model["inputs"]]))
    for node in whole["nodes"]:
        lines += layer(node, weights) if node["op"] == "kpu_conv2d" \
            else host(node)
    return "\n".join(lines) + "\n"


class Failed(Exception):
    """A test's; the text says what."""


def read(path):
    with open(path, "rb") as file:
        return file.read()


class Tester:
    def __init__(self, amphora, folder, machine="k210"):
        self.amphora, self.folder = amphora, folder
        self.machine = machine

    def run(self, command, path, out):
        done = subprocess.run(
            [self.amphora, command, path, "-t", self.machine, "-o", out],
            capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            raise Failed(f"{command} {path}: exit {done.returncode}: "
                         f"{done.stderr[:400]}")
        return done.stderr if done.returncode else None

    def assemble(self, text):
        source, out = f"{self.folder}/a.txt", f"{self.folder}/a.kmodel"
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        error = self.run("asm", source, out)
        if error:
            raise Failed(f"asm: {error[:600]}")
        return read(out)

    def disassemble(self, data):
        """The text, or the error."""
        source, out = f"{self.folder}/d.kmodel", f"{self.folder}/d.txt"
        with open(source, "wb") as file:
            file.write(data)
        error = self.run("disasm", source, out)
        return (None, error) if error else (read(out).decode(), None)

    def round_trip(self, data):
        text, error = self.disassemble(data)
        if error:
            raise Failed(f"disasm: {error[:600]}")
        if self.assemble(text) != data:
            raise Failed("asm makes other bytes of what disasm printed")
        return text


def check_given(tester):
    names = sorted(n[:-5] for n in os.listdir(DATA)
                   if re.fullmatch(r"r\d+\.json", n))
    for name in names:
        if tester.assemble(described(name)) != read(f"{DATA}/{name}.kmodel"):
            raise Failed(f"{name}: other bytes than given")
    return f"{len(names)} descriptions: the bytes given"


def check_files(tester):
    paths = [os.path.join(folder, n) for folder in (DATA, DATA + "/vendor")
             for n in sorted(os.listdir(folder)) if n.endswith(".kmodel")]
    nodes = 0
    for path in paths:
        try:
            text = tester.round_trip(read(path))
        except Failed as why:
            raise Failed(f"{path}: {why}") from why
        nodes += len(re.findall(r"^[A-Z]", text, re.M))
    return f"{len(paths)} files of {nodes} nodes: disasm, asm, the same bytes"


def check_dpu(tester):
    """The file is JSON, a line a subgraph, with the words in hexadecimal."""
    with open(PROGRAM, encoding="utf-8") as file:
        code = [json.loads(line)["mc_code_sstr.str()"] for line in file]
    dpu = Tester(tester.amphora, tester.folder, DPU)
    text = dpu.round_trip(bytes.fromhex(code[0]))
    rows = [row for row in re.findall(r"^([a-z]+) ?", text, re.M)
            if row != "mc"]
    counts = {row: rows.count(row) for row in sorted(set(rows))}
    if counts != {"conv": 63, "convinit": 2, "end": 1, "load": 1006,
                  "save": 4}:
        raise Failed(f"other instructions: {counts}")
    return f"{len(rows)} instructions of a DPU: disasm, asm, the same bytes"


def meanings(text):
    return dict(re.findall(r"(\S+)=(\S+)", text))


def check_damage(tester):
    """The first layer of r02: 104 + 8 bytes of header and table, then a range
    and two numbers, then its words."""
    data = read(f"{DATA}/r02.kmodel")
    words, noticed, chosen = 112 + 24, 0, set()
    whole = meanings(tester.disassemble(data)[0].split("KPU")[1])
    for bit in range(12 * 64):
        damaged = bytearray(data)
        damaged[words + bit // 8] ^= 1 << bit % 8
        text, error = tester.disassemble(bytes(damaged))
        place = f"bit {bit % 64} of word {bit // 64}"
        if error:
            noticed += 1
            if "byte " not in error:
                raise Failed(f"{place}: no place in {error}")
            continue
        other = meanings(text.split("KPU")[1])
        changed = {k for k in whole.keys() | other.keys()
                   if whole.get(k) != other.get(k)}
        if not changed or changed - FREE:
            raise Failed(f"{place}: {changed or 'nothing'} changed, unnoticed")
        if tester.assemble(text) != bytes(damaged):
            raise Failed(f"{place}: it does not come back")
        chosen |= changed
    return (f"768 bits of a layer: {noticed} noticed, the others are "
            f"{', '.join(sorted(chosen))}")


def main():
    if not os.path.isdir(DATA):
        print("no ../shared/data: nothing is tested")
        return
    with tempfile.TemporaryDirectory() as folder:
        tester = Tester(os.path.abspath(
            os.environ.get("AMPHORA", "build/amphora")), folder)
        for check in (check_given, check_files, check_dpu, check_damage):
            try:
                print(f"ok    {check(tester)}")
            except Failed as why:
                print(f"FAIL  {check.__name__}: {why}")
                sys.exit(1)


if __name__ == "__main__":
    main()
