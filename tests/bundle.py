#!/usr/bin/env python3
"""bundle.py - networks as bundles, linked into C programs written from the
header alone, against the reference evaluation.

Each row is a network and a target. The program reads the input as raw floats,
runs the bundle twice on a workspace full of no-numbers, with guards around it,
and writes the outputs; they must equal those of `amphora eval`. An object file
must need no symbol of any library; on a target with flash it must fit into that
and have no variables. Of a machine with a host, the instructions of its layers
must name the object's functions.

usage: bundle.py [--long] [AMPHORA [TARGET]]
"""
import array
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

PROGRAM = r"""
#include "{file}.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
{arrays}
int main(int argc, char **argv) {{
    enum {{ GUARD = 64 }};
    size_t n = (size_t){net}_WORKSPACE_BYTES;
    size_t whole = (n + 2 * GUARD + {net}_WORKSPACE_ALIGN + 63) / 64 * 64;
    signed char *room = aligned_alloc({net}_WORKSPACE_ALIGN > 64
                               ? {net}_WORKSPACE_ALIGN : 64, whole);
    memset(room, 0xff, whole);
    FILE *file = fopen(argv[1], "rb");
    {read}
    fclose(file);
    {weights}
    {net}_io io = {{{fields}}};
    for (int i = 0; i < 2; i++)
        if ({net}_run(&io, room + GUARD))
            return 2;
    for (size_t i = 0; i < GUARD; i++)
        if (room[i] != -1 || room[GUARD + n + i] != -1)
            return 3;
    file = fopen(argv[2], "wb");
    {write}
    return fclose(file) || argc != 3;
}}
"""

HERE = (["cc"], [])
ARM64 = (["aarch64-linux-gnu-gcc", "-static"], ["qemu-aarch64-static"])
RISCV = (["riscv64-linux-gnu-gcc", "-static"], ["qemu-riscv64-static"])
MIPS = (["mips-linux-gnu-gcc", "-static"], ["qemu-mips-static"])
# An object for a microcontroller is linked with a system for larger ones.
ARM = (["arm-linux-gnueabihf-gcc", "-static", "-mthumb"], ["qemu-arm-static"])

# What a target becomes with the constants in a file of their own.
APART = """extends: {target}
machine: {{name: apart}}
native: {{weights_file: true}}
"""

# network, target, compiler and runner, what the target becomes
ROWS = [
    ("examples/tiny.prototxt", "cpu-x86-64", HERE, None),
    ("examples/densenet-cell.prototxt", "cpu-x86-64", HERE, None),
    ("examples/tiny.prototxt", "cpu-x86-64", HERE, APART),
]
LONG = [
    ("examples/googlenet.prototxt", "cpu-x86-64", HERE, None),
    ("examples/resnet50.prototxt", "cpu-x86-64", HERE, None),
    ("examples/mobilenet-v2.prototxt", "cpu-x86-64", HERE, None),
    ("examples/inception-v3.prototxt", "cpu-x86-64", HERE, None),
    ("examples/tiny.prototxt", "cortex-m4", ARM, None),
    ("examples/micro/resnet8.prototxt", "cortex-m4", ARM, None),
    ("examples/micro/ds-cnn.prototxt", "cortex-m4", ARM, None),
    ("examples/micro/person-detect.prototxt", "cortex-m4", ARM, None),
    ("examples/tiny.prototxt", "cpu-aarch64", ARM64, None),
    ("examples/tiny.prototxt", "cpu-riscv64", RISCV, None),
    ("examples/tiny.prototxt", "n64", MIPS, None),
    ("examples/tiny.prototxt", "n64", MIPS, APART),
    ("examples/googlenet.prototxt", "cpu-aarch64", ARM64, None),
]
# Bytes for code and constants.
FLASH = {"cortex-m4": 1 << 20}
# What the linker itself brings along.
LINKERS = {"_GLOBAL_OFFSET_TABLE_", "_gp_disp"}


def floats(path):
    """Values and shape of a .npy of floats."""
    with open(path, "rb") as file:
        data = file.read()
    size, = struct.unpack("<H", data[8:10])
    values = array.array("f")
    values.frombytes(data[10 + size:])
    return values


def fields(header):
    """(declaration, name, elements) of the members of the io structure."""
    with open(header, encoding="utf-8") as file:
        text = file.read()
    found = re.findall(r"^    (const )?float \*(\w+); /\* ([0-9x]+) \*/$",
                       text, re.M)
    result = []
    for const, name, shape in found:
        count = 1
        for dim in shape.split("x"):
            count *= int(dim)
        result.append((bool(const), name, count))
    return result


WEIGHTS = """static _Alignas(64) char bin[{net}_WEIGHTS_BYTES];
    file = fopen("{path}", "rb");
    if (fread(bin, 1, sizeof bin, file) != sizeof bin) return 4;
    fclose(file);"""


def program(file, net, members, weights):
    """The C program; weights: the file of the constants, if there is one."""
    def each(wanted, text):
        return "\n    ".join(text.format(name=name, n=n)
                             for const, name, n in members if const == wanted)
    return PROGRAM.format(
        file=file, net=net,
        fields=", ".join([name for _, name, _ in members] +
                         ["bin"] * bool(weights)),
        weights=WEIGHTS.format(net=net, path=weights) if weights else "",
        arrays="\n".join(f"static float {name}[{n}];"
                         for _, name, n in members),
        read=each(True, "if (fread({name}, 4, {n}, file) != {n}) return 4;"),
        write=each(False, "fwrite({name}, 4, {n}, file);"))


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


def seeded(count, first):
    """Values in [-1, 1) of a small generator."""
    state, values = first, array.array("f")
    for _ in range(count):
        state = (state * 1103515245 + 12345) & 0x7fffffff
        values.append(state / 0x40000000 - 1)
    return values


def write_npy(path, values):
    text = f"{{'descr': '<f4', 'fortran_order': False, " \
           f"'shape': ({len(values)},), }}"
    text = text.ljust(117) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) +
                   text.encode() + values.tobytes())


def check(amphora, row, folder):
    network, target, (compiler, runner), changed = row
    machine = target
    if changed:
        machine = f"{folder}/machine.yaml"
        with open(machine, "w", encoding="utf-8") as file:
            file.write(changed.format(target=target))
    run([amphora, "compile", network, "-t", machine, "--emit", "bundle", "-o",
         folder])
    net = next(n[:-2] for n in os.listdir(folder) if n.endswith(".h"))
    needs = undefined(folder, net)
    if needs:
        return f"the object needs {needs}"
    wrong = misfit(folder, net, target)
    if wrong:
        return wrong
    members = fields(f"{folder}/{net}.h")
    with open(f"{folder}/main.c", "w", encoding="utf-8") as file:
        weights = f"{folder}/{net}.bin"
        file.write(program(net, re.sub(r"\W", "_", net), members,
                           os.path.exists(weights) and weights))
    if target == "cortex-m4":
        run(["arm-linux-gnueabihf-objcopy", "--remove-section",
             ".ARM.attributes", f"{folder}/{net}.o"])
    run(compiler + ["-O1", "-Wall", "-o", f"{folder}/main", f"{folder}/main.c",
                    f"{folder}/{net}.o"])
    inputs = [seeded(n, i + 1) for i, (const, _, n) in enumerate(members)
              if const]
    arguments = []
    with open(f"{folder}/in.raw", "wb") as file:
        for i, values in enumerate(inputs):
            file.write(swapped(values, runner))
            write_npy(f"{folder}/in{i}.npy", values)
            arguments += ["--input", f"{folder}/in{i}.npy"]
    run(runner + [f"{folder}/main", f"{folder}/in.raw", f"{folder}/out.raw"])
    run([amphora, "eval", network, "-o", f"{folder}/want"] + arguments)
    return compare(folder, members, runner)


def swapped(values, runner):
    """Floats as the machine has them in memory."""
    copy = array.array("f", values)
    if "mips" in " ".join(runner):
        copy.byteswap()
    return copy.tobytes()


def compare(folder, members, runner):
    raw, got = array.array("f"), array.array("f")
    with open(f"{folder}/out.raw", "rb") as file:
        raw.frombytes(file.read())
    got.frombytes(swapped(raw, runner))
    at, worst = 0, 0.0
    for const, name, n in members:
        if const:
            continue
        want = floats(f"{folder}/want/{name}.npy")
        scale = max(abs(x) for x in want) or 1
        for a, b in zip(got[at:at + n], want):
            error = abs(a - b) / scale
            worst = max(worst, error if error == error else 1e300)
        at += n
    return None if worst < 1e-5 else f"largest relative error {worst:.3g}"


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


def attempt(name, function, *arguments):
    """Prints how a check in a folder of its own went; true where it failed."""
    folder = tempfile.mkdtemp()
    try:
        wrong = function(*arguments, folder)
    except subprocess.CalledProcessError as error:
        wrong = f"{error} {error.stderr.decode(errors='replace')}"
    shutil.rmtree(folder)
    print(f"{'FAIL' if wrong else 'ok  '} {name} {wrong or ''}")
    return wrong is not None


def main():
    arguments = [a for a in sys.argv[1:] if a != "--long"]
    amphora = arguments[0] if arguments else "build/amphora"
    rows = ROWS + (LONG if "--long" in sys.argv else [])
    if len(arguments) > 1:
        rows = [row for row in ROWS + LONG if row[1] == arguments[1]]
    failed = attempt("layers of a host", check_host, amphora)
    for row in rows:
        failed += attempt(f"{row[0]} {row[1]}", check, amphora, row)
    print(f"{len(rows)} bundles and a host, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
