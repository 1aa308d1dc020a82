#!/usr/bin/env python3
"""bundle.py - networks as bundles, linked into C programs written from the
header alone, against the reference evaluation.

Each row is a network and a target. The program reads inputs as raw values, runs
the bundle twice on a workspace full of no-numbers, with guards around it, and
writes the outputs; they must equal those of `amphora eval`: floats nearly,
codes of quantised networks bit for bit. A bundle for several images runs for each number of them, with the guard where the header
says that the workspace for so many ends; each must give what the most give. An
object file must need no symbol of any library; on a target with flash it must
fit into that and have no variables. Of a machine with a host, the instructions
of its layers must name the object's functions.

usage: bundle.py [--long] [AMPHORA [TARGET]]
"""
import array
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from write_int8 import NETWORKS, grouped, make  # noqa: E402

PROGRAM = r"""
#include "{file}.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifndef RUNS
#define RUNS 2
#endif
enum {{ GUARD = 64, MOST = {most} }};
static signed char *room;
{arrays}
{load}
static char *at(size_t offset) {{
    return (char *)room + GUARD + offset;
}}
static int try(size_t n, size_t bytes) {{
    memset(room, 0xff, (size_t){net}_WORKSPACE_BYTES + 2 * GUARD);
    {net}_io io = {{{fields}}};
    (void)at;
    {weights}
    for (int i = 0; i < RUNS; i++) {{
        {before}
        if ({net}_run(&io, room + GUARD))
            return 2;
        {after}
    }}
    for (size_t i = 0; i < GUARD; i++)
        if (room[i] != -1 || room[GUARD + bytes + i] != -1)
            return 3;
    return n == 0;
}}
int main(int argc, char **argv) {{
    size_t align = {net}_WORKSPACE_ALIGN > GUARD ? {net}_WORKSPACE_ALIGN : GUARD;
    size_t whole = (size_t){net}_WORKSPACE_BYTES + 2 * GUARD + align;
    room = aligned_alloc(align, whole / align * align);
    FILE *file = fopen(argv[1], "rb");
    {read}
    fclose(file);
    for (size_t n = MOST; n > 0; n--) {{
        int wrong = try(n, {bytes});
        if (wrong)
            return wrong;
        {same}
    }}
    file = fopen(argv[2], "wb");
    {write}
    free(room);
    return fclose(file) || argc != 3;
}}
"""

HERE = (["cc", "-fsanitize=address,undefined"], [])
ARM64 = (["aarch64-linux-gnu-gcc", "-static"], ["qemu-aarch64-static"])
RISCV = (["riscv64-linux-gnu-gcc", "-static"], ["qemu-riscv64-static"])
MIPS = (["mips-linux-gnu-gcc", "-static"], ["qemu-mips-static"])
# Two minutes are enough.
MIPS_ONCE = (MIPS[0] + ["-DRUNS=1"], MIPS[1])
RISCV_ONCE = (RISCV[0] + ["-DRUNS=1"], RISCV[1])
ARMV7 = (["arm-linux-gnueabihf-gcc", "-static"], ["qemu-arm-static"])
S390X = (["s390x-linux-gnu-gcc", "-static"], ["qemu-s390x-static"])
# An object for a microcontroller is linked with a system for larger ones.
ARM = (["arm-linux-gnueabihf-gcc", "-static", "-mthumb"], ["qemu-arm-static"])

# What a target becomes: with the constants in a file of their own; with them in
# the workspace; with a second memory that what lies between layers prefers.
APART = """extends: {target}
machine: {{name: apart}}
native: {{weights_file: true}}
"""
PLACED = """extends: {target}
machine: {{name: placed}}
bundle: {{constants: [workspace]}}
"""
FAST = """extends: {target}
machine: {{name: fast}}
memories:
  workspace: {{cost: 1}}
  fast: {{role: active, size: 16KiB, align: 64, layout: blocks,
         base: 0x80000000}}
bundle: {{inputs: [workspace], activations: [fast, workspace]}}
"""
# Each layer's result over its operand where that can be; constants in pieces.
TIGHT = """extends: {target}
machine: {{name: tight}}
memories:
  cartridge: {{role: constants, size: 1GiB, align: 4, layout: rows,
              load: callback, piece: 1KiB}}
engines: {{core: {{overlap: [depthwise, pool, sum]}}}}
"""
TILES = """extends: {target}
machine: {{name: tiles}}
engines: {{core: {{overlap: [depthwise, pool, pointwise, sum]}}}}
"""
FAR_TILES = """extends: {target}
machine: {{name: far_tiles}}
memories:
  cartridge: {{role: constants, size: 1GiB, align: 4, layout: rows,
              load: callback}}
engines: {{core: {{overlap: [depthwise, pool, pointwise, sum]}}}}
"""

# Machines that are not shipped.
OTHER = """extends: {{target}}
machine: {{{{name: {name}}}}}
layouts: {{{{blocks: {{{{axes: [c/4, h, w, c%4]}}}}}}}}
engines: {{{{core: {{{{part_align: 4}}}}}}}}
native: {{{{triple: {triple}, cpu: {cpu}, features: "{features}"}}}}
"""
OTHER_ARM = OTHER.format(name="cortex-a9", cpu="cortex-a9", features="+neon",
                         triple="armv7-unknown-linux-gnueabihf")
OTHER_Z = OTHER.format(name="z13", cpu="z13", features="",
                       triple="s390x-unknown-linux-gnu")

# network, target, compiler and runner, what the target becomes, options
ROWS = [
    ("examples/tiny.prototxt", "cpu-x86-64", HERE, None, ""),
    ("examples/densenet-cell.prototxt", "cpu-x86-64", HERE, None, ""),
    ("examples/tiny.prototxt", "cpu-x86-64", HERE, APART, ""),
    ("examples/tiny.prototxt", "cpu-x86-64", HERE, PLACED,
     "--io shared --most-images 2"),
    ("examples/tiny.prototxt", "cpu-x86-64", HERE, FAST, ""),
    ("examples/tiny.prototxt", "cpu-x86-64", HERE, TIGHT, "--most-images 5"),
    ("examples/micro/ds-cnn.prototxt", "cpu-x86-64", HERE, TIGHT,
     "--io shared --most-images 3"),
    ("examples/micro/ds-cnn.prototxt", "cpu-riscv64", RISCV, TIGHT, ""),
    ("examples/micro/ds-cnn.prototxt", "cpu-x86-64", HERE, TILES, ""),
    ("examples/micro/ds-cnn.prototxt", "cpu-riscv64", RISCV, FAR_TILES, ""),
    ("examples/micro/resnet8.prototxt", "cpu-x86-64", HERE, FAR_TILES,
     "--most-images 2"),
]
# Outputs that are read again, or lie under a depthwise convolution; two inputs;
# residuals, concats and channels that fill no block; names that C does not have,
# or has already, and outputs that are inputs or constants.
ROWS += [(f"tests/bundle/{name}.json", "cpu-x86-64", HERE, changed, options)
         for name, changed, options in [
             ("mid", TILES, ""), ("mid", FAR_TILES, "--io shared"),
             ("two", TIGHT, "--io shared --most-images 2"),
             ("chain", TILES, "--io shared"), ("chain", FAR_TILES, ""),
             ("ends", None, "--most-images 2"), ("ends", FAR_TILES, ""),
             ("ends", PLACED, "--io shared")]]
LONG = [
    ("examples/googlenet.prototxt", "cpu-x86-64", HERE, None, ""),
    ("examples/resnet50.prototxt", "cpu-x86-64", HERE, None, ""),
    ("examples/mobilenet-v2.prototxt", "cpu-x86-64", HERE, None, ""),
    ("examples/mobilenet-v2.prototxt", "cpu-x86-64", HERE, TIGHT,
     "--most-images 2"),
    ("examples/mobilenet-v2.prototxt", "cpu-x86-64", HERE, TILES, ""),
    ("examples/resnet50.prototxt", "cpu-x86-64", HERE, TILES, ""),
    ("examples/micro/resnet8.prototxt", "cpu-riscv64", RISCV, TILES, ""),
    ("examples/micro/person-detect.prototxt", "cortex-m4", ARM, TILES,
     "--io shared"),
    ("examples/inception-v3.prototxt", "cpu-x86-64", HERE, None, ""),
    ("examples/tiny.prototxt", "cortex-m4", ARM, None, ""),
    ("examples/micro/resnet8.prototxt", "cortex-m4", ARM, None, ""),
    ("examples/micro/ds-cnn.prototxt", "cortex-m4", ARM, None, ""),
    ("examples/micro/person-detect.prototxt", "cortex-m4", ARM, None, ""),
    ("examples/micro/person-detect.prototxt", "cortex-m4", ARM, TIGHT,
     "--io shared"),
    ("examples/tiny.prototxt", "cpu-aarch64", ARM64, None, ""),
    ("examples/tiny.prototxt", "cpu-riscv64", RISCV, None, ""),
    ("examples/tiny.prototxt", "n64", MIPS, None, ""),
    ("examples/tiny.prototxt", "n64", MIPS, None,
     "--io separate --most-images 3"),
    ("examples/micro/resnet18.prototxt", "n64", MIPS_ONCE, None, ""),
    ("examples/googlenet.prototxt", "cpu-aarch64", ARM64, None, ""),
    ("examples/googlenet.prototxt", "cpu-riscv64", RISCV_ONCE, None, ""),
]
# Trained networks, and small ones of write_int8.py.
DATA = "../shared/data/tflite"
TRAINED = ["person_detect", "kws_ref_model", "pretrainedResnet_quant",
           "hello_world_int8"]
ROWS += [
    ("examples/micro/resnet8.prototxt", "cpu-x86-64", HERE, None, ""),
    (f"{DATA}/kws_ref_model.tflite", "cpu-x86-64", HERE, None, ""),
    (f"{DATA}/pretrainedResnet_quant.tflite", "cpu-x86-64", HERE, TILES, ""),
    (f"{DATA}/kws_ref_model.tflite", "cpu-riscv64", RISCV, TILES, ""),
    ("int8:inverted", "cpu-x86-64", HERE, None, "--io shared"),
    ("int8:grouped", "cpu-x86-64", HERE, None, ""),
    ("int8:residual", "cpu-x86-64", HERE, TIGHT, "--most-images 3"),
]
LONG += [(network, "cpu-aarch64", how, machine, "")
         for network in ("examples/tiny.prototxt", "int8:residual",
                         "int8:pools", "int8:functions")
         for how, machine in [(ARMV7, OTHER_ARM), (S390X, OTHER_Z)]]
LONG += [(f"tests/bundle/{name}.json", target, how, changed,
          f"{io} {more}".strip())
         for name in ("mid", "two", "chain")
         for target, how in [("cpu-x86-64", HERE), ("cpu-riscv64", RISCV)]
         for changed in (TIGHT, TILES, FAR_TILES, PLACED)
         for io in ("", "--io shared")
         for more in ("", "--most-images 3 --planner hill_climb")]
LONG += [(f"{DATA}/{name}.tflite", target, how, None, "") for name in TRAINED
         for target, how in [("cpu-x86-64", HERE), ("cortex-m4", ARM),
                             ("n64", MIPS)]]
LONG += [(f"int8:{build.__name__}", target, how, None, "")
         for build in NETWORKS
         for target, how in [("cpu-x86-64", HERE), ("cortex-m4", ARM)]]
# Halves to even, on codes of onnxruntime's.
EVEN = "../shared/data/quant/small"
ROWS += [(f"{EVEN}/pow2_residual_s8/qdq.onnx", "cpu-x86-64", HERE, None, ""),
         (f"{EVEN}/concat3_scales/qlinear.onnx", "cpu-riscv64", RISCV, None,
          ""),
         ("tests/quant/halves.json", "cpu-x86-64", HERE, None, "")]
# Codes in the room of floats, weights of 9 bits less their zero.
ROWS += [("tests/bundle/codes.json", "cpu-x86-64", HERE, None, "")]
LONG += [("tests/bundle/codes.json", "cpu-aarch64", how, machine, "")
         for how, machine in [(ARMV7, OTHER_ARM), (S390X, OTHER_Z)]]
LONG += [(f"{EVEN}/{name}/{form}.onnx", target, how, None, "")
         for name in ("pow2_residual_s8", "dw_relu6_u8s8_pc", "deconv",
                      "squeeze_excite", "avgpool_gap_gemm")
         for form in ("qdq", "qlinear")
         for target, how in [("cpu-x86-64", HERE), ("cortex-m4", ARM),
                             ("n64", MIPS)]]
# Where this computer can run them: dot products of bytes.
VNNI = """extends: {target}
machine: {{name: vnni}}
native: {{features: "+avx512vnni"}}
"""
try:
    with open("/proc/cpuinfo", encoding="utf-8") as cpus:
        if "avx512_vnni" in cpus.read():
            LONG += [(network, "cpu-x86-64-v4", HERE, VNNI, "") for network in
                     ("int8:grouped", "int8:convolutions",
                      "int8:bytes_without_sign", f"{DATA}/person_detect.tflite",
                      f"{DATA}/pretrainedResnet_quant.tflite")]
except OSError:
    pass
# Bytes for code and constants.
FLASH = {"cortex-m4": 1 << 20}
# What the linker itself brings along.
LINKERS = {"_GLOBAL_OFFSET_TABLE_", "_gp_disp"}


# In C -> in an array, and in .npy
LETTER = {"float": ("f", "<f4"), "int8_t": ("b", "|i1"),
          "uint8_t": ("B", "|u1"), "int16_t": ("h", "<i2")}


def npy_values(path, kind):
    """Values of a .npy of the kind."""
    with open(path, "rb") as file:
        data = file.read()
    size, = struct.unpack("<H", data[8:10])
    values = array.array(LETTER[kind][0])
    values.frombytes(data[10 + size:])
    return values


class Header:
    """What NET.h says."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.text = text
        self.net = re.search(r"^int (\w+)_run\(", text, re.M).group(1)
        found = re.search(r"_MOST_IMAGES (\d+)", text)
        self.most = int(found.group(1)) if found else 1
        # (is it an input, name, elements, is it in the workspace, type)
        self.members = []
        for what, name, kind, shape in re.findall(
                r"^/\* (Input|Output) (\w+), (\w+) ([0-9x]+)[,;]", text, re.M):
            self.members.append((what == "Input", name, elements(shape), True,
                                 kind))
        for const, kind, name, shape in re.findall(
                r"^    (const )?(\w+) \*(\w+); /\* ([0-9x]+)(?:;.*)? \*/$",
                text, re.M):
            self.members.append((bool(const), name, elements(shape), False,
                                 kind))
        self.pools = re.findall(r"^    void \*(\w+); /\* a pool", text, re.M)

    def has(self, pattern):
        return re.search(pattern, self.text) is not None

    def place(self, name):
        """Where image i of a member in the workspace is, as C."""
        macro = f"{self.net}_AT_{name}"
        if self.most == 1:
            return f"at({macro})"
        return f"at({macro}(n) + i * {macro}_IMAGE)"


def elements(shape):
    count = 1
    for dim in shape.split("x"):
        count *= int(dim)
    return count


LOAD = """static FILE *bin;
static int load(size_t offset, size_t bytes, void *to) {{
    return fseek(bin, (long)offset, SEEK_SET) ||
           fread(to, 1, bytes, bin) != bytes;
}}"""
READ_BIN = """FILE *bin = fopen("{path}", "rb");
    if (fread({to}, 1, {net}_WEIGHTS_BYTES, bin) != {net}_WEIGHTS_BYTES)
        return 4;
    fclose(bin);"""


def program(file, header, path):
    """The C program; path: of the file of the constants."""
    net, most = header.net, header.most
    loaded = header.has(r"_load\)\(")
    apart = header.has(r"const void \*\w+_weights;")
    placed = header.has(r"_WEIGHTS \d")

    def each(text, is_input=None, inside=None):
        return "\n    ".join(
            text.format(name=name, n=n, place=header.place(name), kind=kind)
            for i, name, n, at, kind in header.members
            if is_input in (None, i) and inside in (None, at))

    copies = "for (size_t i = 0; i < n; i++)\n" \
             "            memcpy({}, sizeof *{{name}} * {{n}});"
    into = copies.format("{place}, {name} + i * {n}")
    out = copies.format("{name} + i * {n}, {place}")
    same = "if (n == MOST) memcpy(most_{name}, {name}, sizeof {name});\n" \
           "        if (memcmp(most_{name}, {name}, sizeof *{name} * {n} * n))" \
           " return 5;"
    arrays = [each("static {kind} {name}[{n} * MOST];"),
              each("static {kind} most_{name}[{n} * MOST];", False)]
    arrays += [f"static _Alignas(64) char {pool}[{net}_{pool.upper()}_BYTES];"
               for pool in header.pools]
    values = [name for _, name, _, at, _ in header.members if not at]
    values += ["bin"] * apart + ["load"] * loaded + header.pools
    values += ["n"] * (most > 1)
    weights = ""
    if apart:
        arrays.append(f"static _Alignas(64) char bin[{net}_WEIGHTS_BYTES];")
        weights = READ_BIN.replace("FILE *bin", "FILE *file").replace(
            ", bin)", ", file)").replace("fclose(bin)", "fclose(file)").format(
                path=path, to="bin", net=net)
    if placed:
        weights = READ_BIN.format(path=path, to=f"at({net}_WEIGHTS)", net=net)
    if loaded:
        weights = f"bin = bin ? bin : fopen(\"{path}\", \"rb\");"
    return PROGRAM.format(
        file=file, net=net, most=most, arrays="\n".join(arrays),
        load=LOAD.format() if loaded else "",
        fields=", ".join(values) or "0", weights=weights,
        before=each(into, True, True), after=each(out, False, True),
        bytes=f"{net}_WORKSPACE(n)" if most > 1 else f"{net}_WORKSPACE_BYTES",
        same=each(same, False),
        read=each("if (fread({name}, 1, sizeof {name}, file) != "
                  "sizeof {name}) return 4;", True),
        write=each("fwrite({name}, 1, sizeof {name}, file);", False))


def run(command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=True, **more)


def undefined(folder, net):
    """Symbols that the object needs."""
    text = run(["nm", "-u", f"{folder}/{net}.o"]).stdout.decode()
    return {line.split()[-1] for line in text.splitlines()} - LINKERS


def misfit(folder, net, target):
    """What the object has too much of; None: nothing."""
    if target not in FLASH:
        return None
    text = run(["size", f"{folder}/{net}.o"]).stdout.decode()
    code, data, bss = map(int, text.splitlines()[1].split()[:3])
    if data or bss:
        return f"the object has {data + bss} bytes of variables"
    if code > FLASH[target]:
        return f"the object has {code} bytes for {FLASH[target]} of flash"
    return None


def seeded(count, first, kind):
    """Values in [-1, 1), or codes, of a small generator."""
    state, values = first, array.array(LETTER[kind][0])
    bits, least = 8 * values.itemsize, 0 if kind[0] == "u" else -1
    for _ in range(count):
        state = (state * 1103515245 + 12345) & 0x7fffffff
        values.append(state / 0x40000000 - 1 if kind == "float" else
                      (state >> (31 - bits)) + (least << (bits - 1)))
    return values


def write_npy(path, values, kind):
    text = f"{{'descr': '{LETTER[kind][1]}', 'fortran_order': False, " \
           f"'shape': ({len(values)},), }}"
    text = text.ljust(117) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) +
                   text.encode() + values.tobytes())


def inputs_of(header, folder, runner):
    """Writes all images of all inputs; the options that give each image's."""
    images = [[] for _ in range(header.most)]
    with open(f"{folder}/in.raw", "wb") as file:
        for k, (is_input, _, n, _, kind) in enumerate(header.members):
            if not is_input:
                continue
            for i, arguments in enumerate(images):
                values = seeded(n, 100 * i + k + 1, kind)
                path = f"{folder}/in{k}-{i}.npy"
                file.write(swapped(values, runner))
                write_npy(path, values, kind)
                arguments += ["--input", path]
    return images


def check(amphora, row, folder):
    network, target, (compiler, runner), changed, options = row
    machine = target
    if network.startswith("int8:"):
        network = write_small(network[5:], folder)
    if changed:
        machine = f"{folder}/machine.yaml"
        with open(machine, "w", encoding="utf-8") as file:
            file.write(changed.format(target=target))
    run([amphora, "compile", network, "-t", machine, "--emit", "bundle", "-o",
         folder] + options.split())
    net = next(n[:-2] for n in os.listdir(folder) if n.endswith(".h"))
    needs = undefined(folder, net)
    if needs:
        return f"the object needs {needs}"
    wrong = misfit(folder, net, target)
    if wrong:
        return wrong
    header = Header(f"{folder}/{net}.h")
    with open(f"{folder}/main.c", "w", encoding="utf-8") as file:
        file.write(program(net, header, f"{folder}/{net}.bin"))
    if target == "cortex-m4":
        run(["arm-linux-gnueabihf-objcopy", "--remove-section",
             ".ARM.attributes", f"{folder}/{net}.o"])
    run(compiler + ["-O1", "-Wall", "-Werror", "-o", f"{folder}/main",
                    f"{folder}/main.c", f"{folder}/{net}.o"])
    images = inputs_of(header, folder, runner)
    run(runner + [f"{folder}/main", f"{folder}/in.raw", f"{folder}/out.raw"])
    for i, arguments in enumerate(images):
        run([amphora, "eval", network, "-o", f"{folder}/want{i}"] + arguments)
    return compare(folder, header, runner)


def write_small(name, folder):
    """A network of write_int8.py."""
    build = next(b for b in (*NETWORKS, grouped) if b.__name__ == name)
    path = f"{folder}/{name}.tflite"
    make(build).write(path)
    return path


def swapped(values, runner):
    """Values as the machine has them in memory."""
    copy = array.array(values.typecode, values)
    if re.search("mips|s390x", " ".join(runner)):
        copy.byteswap()
    return copy.tobytes()


def compare(folder, header, runner):
    worst = 0.0
    files = {re.sub(r"\W", "_", file[:-4]): file
             for file in os.listdir(f"{folder}/want0")}
    with open(f"{folder}/out.raw", "rb") as file:
        for is_input, name, n, _, kind in header.members:
            for i in range(header.most if not is_input else 0):
                raw = array.array(LETTER[kind][0])
                got = array.array(LETTER[kind][0])
                raw.frombytes(file.read(n * raw.itemsize))
                got.frombytes(swapped(raw, runner))
                own = name if name in files else re.sub(r"_\d$", "", name)
                want = npy_values(f"{folder}/want{i}/{files[own]}", kind)
                if kind != "float" and got != want:
                    wrong = sum(a != b for a, b in zip(got, want))
                    return f"{wrong} of {n} codes of {name} differ"
                scale = max(abs(x) for x in want) or 1
                for a, b in zip(got, want):
                    error = abs(a - b) / scale
                    worst = max(worst, error if error == error else 1e300)
    return None if worst < 1e-5 else f"largest relative error {worst:.3g}"


def check_native(amphora, network, folder):
    """eval --native gives what eval gives."""
    if network.startswith("int8:"):
        network = write_small(network[5:], folder)
    run([amphora, "eval", network, "-o", f"{folder}/want"])
    run([amphora, "eval", network, "--native", "-o", f"{folder}/got"])
    for name in os.listdir(f"{folder}/want"):
        real = network.endswith(".prototxt") or ".real." in name
        want, got = (npy_values(f"{folder}/{side}/{name}",
                                "float" if real else "int8_t")
                     for side in ("want", "got"))
        scale = max(abs(x) for x in want) if real else 0
        if any(abs(a - b) > 1e-5 * scale for a, b in zip(got, want)):
            return f"{name} differs"
    return None


def check_host(amphora, folder):
    """What is wrong with the code for a host and the listing that calls it."""
    run([amphora, "compile", "examples/tiny.prototxt", "-t", "math-engine",
         "--emit", "host", "-o", folder])
    text = run(["nm", f"{folder}/tiny.host.o"]).stdout.decode()
    defined = re.findall(r" T (\w+)$", text, re.M)
    for name, before in ("tiny.cmd", "^"), ("tiny.json", '"xdnn_instr":\t"'):
        with open(f"{folder}/{name}", encoding="utf-8") as file:
            called = re.findall(before + r"# \d+ XNHost \w+ \w+ # (\w+): ",
                                file.read(), re.M)
        if not called or sorted(called) != sorted(defined):
            return f"{name} calls {called}, the object has {defined}"
    return None


def manual_blocks():
    """Commands, files and programs of docs/bundle.md, in order."""
    with open("docs/bundle.md", encoding="utf-8") as file:
        text = file.read()
    for block in re.split(r"\n\n(?=    (?:[$]|#include|# ))", text)[1:]:
        lines = re.match(r"(?:(?:    .*)?\n)+", block + "\n").group(0)
        yield "".join(line[4:] + "\n" for line in lines.rstrip().split("\n"))


def check_manual(amphora, folder):
    """What is wrong with the commands and programs of docs/bundle.md."""
    ran = 0
    for block in manual_blocks():
        if block.startswith("# "):
            name, _, body = block[2:].partition("\n")
            with open(f"{folder}/{name}", "w", encoding="utf-8") as file:
                file.write(body)
        elif block.startswith("$ amphora"):
            for line in block.strip().split("\n"):
                line = line.replace("examples/", os.getcwd() + "/examples/")
                run([os.path.abspath(amphora)] + line.split()[2:], cwd=folder)
        else:
            net = re.search(r'#include "(\w+)[.]h"', block).group(1)
            with open(f"{folder}/main.c", "w", encoding="utf-8") as file:
                file.write(block)
            run(HERE[0] + ["-Wall", "-Wextra", "-Werror", "-o", "main",
                           "main.c", f"{net}.o"], cwd=folder)
            run(["./main"], cwd=folder)
            ran += 1
    return None if ran == 7 else f"{ran} programs ran"


def check_table(amphora, folder):
    """Does docs/bundle.md have the table of bench/workspace.py, and what the
    planners make of ResNet-18?"""
    with open("docs/bundle.md", encoding="utf-8") as file:
        said = file.read()
    environment = dict(os.environ, AMPHORA=os.path.abspath(amphora))
    rows = run([sys.executable, "bench/workspace.py", "--markdown"],
               env=environment).stdout.decode().strip().split("\n")
    run([amphora, "compile", "examples/micro/resnet18.prototxt", "-t", "n64",
         "--emit", "problem", "-o", folder])
    packed = run([amphora, "pack", f"{folder}/resnet18.csv", "--planner", "all",
                  "--json"]).stdout
    height = {row["planner"]: row["height"]
              for row in json.loads(packed)["planners"]}
    rows += [f"| `{name}` | {height.get(name, 0):,} |"
             for name in re.findall(r"^\| `(\w+)` \| [0-9,]+ \|$", said, re.M)]
    missing = [row for row in rows if row not in said]
    return missing or None


def attempt(name, function, *arguments):
    """Prints how a check in a folder of its own went; true where it failed."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            wrong = function(*arguments, folder)
        except subprocess.CalledProcessError as error:
            wrong = f"{error} {error.stderr.decode(errors='replace')}"
    print(f"{'FAIL' if wrong else 'ok  '} {name} {wrong or ''}")
    return wrong is not None


def changed_name(row):
    """The machine, and what it becomes."""
    found = re.search(r"name: (\w+)", row[3] or "")
    return f"{row[1]} ({found.group(1)})" if found else row[1]


def main():
    arguments = [a for a in sys.argv[1:] if a != "--long"]
    amphora = arguments[0] if arguments else "build/amphora"
    rows = ROWS + (LONG if "--long" in sys.argv else [])
    if len(arguments) > 1:
        rows = [row for row in ROWS + LONG if row[1] == arguments[1]]
    rows = [row for row in rows
            if row[0].startswith("int8:") or os.path.exists(row[0])]
    rows = [row for row in rows if shutil.which(row[2][0][0])]
    failed = attempt("layers of a host", check_host, amphora)
    for network in "examples/tiny.prototxt", "int8:inverted", "int8:pools":
        failed += attempt(f"eval --native {network}", check_native, amphora,
                          network)
    failed += attempt("docs/bundle.md", check_manual, amphora)
    failed += attempt("docs/bundle.md: table", check_table, amphora)
    for row in rows:
        name = " ".join(filter(None, [row[0], changed_name(row), row[4]]))
        failed += attempt(name, check, amphora, row)
    print(f"{len(rows)} bundles and a host, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
