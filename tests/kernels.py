#!/usr/bin/env python3
"""kernels.py - kernels of native code, of random shapes, on each processor.

Draws layers (tests/kernel_layers.py) side by side in networks, compiles these
as native code and compares each result with the reference evaluation: floats to
1e-5 of the largest of the result, codes exactly. On each processor in these
forms:
  blocks  a bundle for the shipped machine, whose activations lie in blocks of
          channels
  rows    a bundle whose activations lie as in files
  host    layers of a host (--emit host): floats only
  verify  what `verify` calls for these: on the processor "this", with all that
          this computer's can do
What this computer cannot run goes through an emulator. Closes with a row for
each processor: kernels that ran, and wrong ones; for each wrong one there is
the command that makes it again.

Without --long: a few layers, on this processor and on one that is emulated, if
there is an emulator. With it: COUNT layers and shares of it on all, whose
emulators and compilers are installed by name (tools/setup.sh). tests/llvm.py
runs it with each LLVM.

usage: kernels.py [--long] [--seed N] [--count N] [--family NAME] [--only N]
                  [--cpu NAME] [--form NAME] [AMPHORA]
"""
import argparse
import array
import concurrent.futures
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import bundle  # noqa: E402
from kernel_layers import (  # noqa: E402
    CODES, FLOATS, FOUND, Graph, draw_layer, product)

TOLERANCE = 1e-5
EACH = 12  # layers of a network
FEW = 24

FORMS = ("blocks", "rows", "host", "verify")
MACHINE = """extends: {shipped}
machine: {{name: kernels}}
memories: {{workspace: {{size: 256MiB}}}}
"""
# All but one operator are the host's.
HOST = """extends: "null"
machine: {name: kernels}
engines: {all: {runs: [upsample]}}
"""
ROWS = """layouts: {blocks: {axes: [c, h, w]}}
engines: {core: {part_align: 1}}
"""
FOURS = """layouts: {blocks: {axes: [c/4, h, w, c%4]}}
engines: {core: {part_align: 4}}
"""


class Cpu:
    """shipped: the machine that is extended, whose `native` is repeated here
    for the machine whose host this is; blocks: its layout, if that is another;
    flags: what /proc/cpuinfo says of one that can run it; None: never this
    computer."""

    def __init__(self, shipped, native, flags=None, blocks="", tools=None):
        self.shipped, self.native = shipped, f"native: {{{native}}}\n"
        self.flags, self.blocks = flags, blocks
        self.forms = FORMS[:3]
        self.compiler, self.runner = tools or (["cc"], [])

    def is_here(self):
        if self.flags is None:
            return False
        try:
            with open("/proc/cpuinfo", encoding="utf-8") as file:
                return self.flags <= set(file.read().split())
        except OSError:
            return False

    def can_run(self):
        if self.flags is not None:
            return self.is_here()
        return all(map(shutil.which, (self.compiler[0], self.runner[0])))

    def machine(self, form):
        if form == "host":
            return HOST + self.native
        layout = ROWS if form == "rows" else self.blocks
        return MACHINE.format(shipped=self.shipped) + self.native + layout


X86 = "triple: x86_64-unknown-linux-gnu, cpu: "
CPUS = {
    "x86-64": Cpu("cpu-x86-64", X86 + 'x86-64, features: ""', {"lm"}, FOURS),
    "x86-64-v3": Cpu("cpu-x86-64", X86 + 'x86-64, features: "+avx2,+fma"',
                     {"avx2", "fma"}),
    "x86-64-v4": Cpu("cpu-x86-64-v4",
                     X86 + 'x86-64-v4, features: "", lanes: 16',
                     {"avx512f", "avx512bw", "avx512vl", "avx512dq"}),
    "aarch64": Cpu("cpu-aarch64", "triple: aarch64-unknown-linux-gnu, "
                   'cpu: generic, features: "+neon"', tools=bundle.ARM64),
    "riscv64": Cpu("cpu-riscv64", "triple: riscv64-unknown-linux-gnu, "
                   'cpu: generic-rv64, features: "+m,+a,+f,+d,+c"',
                   tools=bundle.RISCV),
    "cortex-m4": Cpu("cortex-m4", "triple: thumbv7em-none-eabihf, cpu: "
                     'cortex-m4, features: "", weights: 64MiB',
                     tools=bundle.ARM),
}


class ThisCpu:
    """The one that this runs on, as LLVM knows it."""

    forms = FORMS[3:]

    def is_here(self):
        return True

    can_run = is_here

    def machine(self, _):
        return HOST


CPUS["this"] = ThisCpu()


class Family:
    """Kinds of layers, the forms that they run in, and how many of a
    campaign's COUNT they are: one of `share`; 0: the kinds are layers, and all
    of them."""

    def __init__(self, kinds, forms, share):
        self.kinds, self.forms, self.share = kinds, forms, share


FAMILIES = {
    "found": Family(FOUND, FORMS, 0),
    "floats": Family(FLOATS, FORMS, 1),
    "codes": Family(CODES, FORMS[:2], 2),
}


# ---- networks ----

def layers_of(options, family):
    """(number, layer) of those that were asked for; each depends on the seed
    and its own number alone."""
    kinds, share = FAMILIES[family].kinds, FAMILIES[family].share
    n = -(-options.count // share) if share else len(kinds)
    for i in range(n) if options.only is None else [options.only]:
        r = random.Random(f"{options.seed} {family} {i}")
        yield i, draw_layer(r, r.choice(kinds)) if share else kinds[i]


def write_network(layers, folder, name):
    graph = Graph()
    for number, layer in layers:
        graph.add(layer, number)
    with open(f"{folder}/{name}.bin", "wb") as file:
        file.write(graph.values)
    path = f"{folder}/{name}.json"
    with open(path, "w", encoding="utf-8") as file:
        json.dump(graph.json(name), file)
    return path


def networks(options, folder):
    """(family, path); in its folder will be `want`, the reference's results."""
    for family in FAMILIES:
        if options.family not in (None, family):
            continue
        layers = list(layers_of(options, family))
        for at in range(0, len(layers), EACH):
            own = f"{folder}/{family}{at}"
            os.mkdir(own)
            yield family, write_network(layers[at:at + EACH], own,
                                        f"{family}{at}")


# ---- bundles and functions of a host, as programs ----

def values_of(name, n, kind):
    return bundle.seeded(n, zlib.crc32(name.encode()) & 0x7fffffff, kind)


def write_inputs(path, members):
    """members: (is it an input, name, elements, _, kind)"""
    with open(path, "wb") as file:
        for is_input, name, n, _, kind in members:
            if is_input:
                file.write(values_of(name, n, kind).tobytes())


def write_bundle(net, folder):
    """The program that runs a bundle; its inputs and outputs."""
    header = bundle.Header(f"{folder}/{net}.h")
    with open(f"{folder}/main.c", "w", encoding="utf-8") as file:
        file.write(bundle.program(net, header, f"{folder}/{net}.bin"))
    return header.members


HOST_MAIN = """#include "{net}.host.h"
#include <stdio.h>
{arrays}
int main(int argc, char **argv) {{
    FILE *file = fopen(argv[1], "rb");
    {read}
    fclose(file);
    {calls}
    file = fopen(argv[2], "wb");
    {write}
    return fclose(file) || argc != 3;
}}
"""


def write_host(net, folder):
    """The program that calls each function of a host's layer once."""
    with open(f"{folder}/{net}.host.h", encoding="utf-8") as file:
        text = file.read()
    members, calls = [], []
    for comment, call in re.findall(
            r"/\* (Layer [^/]*) \*/\nvoid (\w+)\(", text):
        operands = re.findall(r"(in|out)\d+: (\w+), ([0-9x]+)", comment)
        members += [(way == "in", name, bundle.elements(shape), True, "float")
                    for way, name, shape in operands]
        calls.append(f"{call}({', '.join(name for _, name, _ in operands)});")
    members = list(dict.fromkeys(members))
    move = "if (f{0}({1}, 1, sizeof {1}, file) != sizeof {1}) return 4;"
    with open(f"{folder}/main.c", "w", encoding="utf-8") as file:
        file.write(HOST_MAIN.format(
            net=net, calls="\n    ".join(calls),
            arrays="\n".join(f"static float {name}[{n}];"
                             for _, name, n, _, _ in members),
            read="\n    ".join(move.format("read", name) for is_input, name,
                               *_ in members if is_input),
            write="\n    ".join(move.format("write", name) for is_input, name,
                                *_ in members if not is_input)))
    return members


def run_program(amphora, network, cpu, form, folder):
    """Inputs and outputs; values of the latter are in out.raw."""
    emit = "host" if form == "host" else "bundle"
    bundle.run([amphora, "compile", network, "-t", f"{folder}/machine.yaml",
                "--emit", emit, "-o", folder])
    net = os.path.basename(network)[:-len(".json")]
    members = (write_host if emit == "host" else write_bundle)(net, folder)
    objects = f"{folder}/{net}{'.host' * (emit == 'host')}.o"
    if "-mthumb" in cpu.compiler:
        bundle.run(["arm-linux-gnueabihf-objcopy", "--remove-section",
                    ".ARM.attributes", objects])
    bundle.run(cpu.compiler + ["-o", f"{folder}/main", f"{folder}/main.c",
                               objects])
    write_inputs(f"{folder}/in.raw", members)
    bundle.run(cpu.runner + [f"{folder}/main", f"{folder}/in.raw",
                             f"{folder}/out.raw"])
    return members


# ---- values ----

def read_tensors(network):
    """(nodes, {name: (elements, kind)}) of the file."""
    with open(network, encoding="utf-8") as file:
        nodes = json.load(file)["nodes"]
    tensors = {}
    for node in nodes:
        row = node["writes"][0]
        kind = row.get("quant", {"type": "float"})["type"]
        tensors[row["name"]] = (product(row["shape"]), kind if kind == "float"
                                else kind + "_t")
    return nodes, tensors


def evaluate(amphora, network, into, *more):
    """All results of the network, as files in the folder."""
    folder = os.path.dirname(network)
    nodes, tensors = read_tensors(network)
    arguments = []
    for name in (node["name"] for node in nodes if node["op"] == "input"):
        path = f"{folder}/{name}.npy"
        if not os.path.exists(path):
            bundle.write_npy(path, values_of(name, *tensors[name]),
                             tensors[name][1])
        arguments += ["--input", path]
    bundle.run([amphora, "eval", network, "-o", into, *more, *arguments])
    return nodes, tensors


def difference(got, want, kind):
    if got == want:
        return None
    if kind != "float":
        wrong = sum(a != b for a, b in zip(got, want))
        return f"{wrong} of {len(want)} codes differ"
    finite = [abs(x) for x in want if x - x == 0]
    scale = max(finite, default=0) or 1
    worst = 0.0
    for a, b in zip(got, want):
        if a == b or (a != a and b != b):
            continue
        error = abs(a - b) / scale
        worst = max(worst, error if error == error else 1e300)
    return None if worst < TOLERANCE else f"largest relative error {worst:.3g}"


def compare_raw(members, path, want):
    """{name of a layer: what is wrong with it, or None}"""
    found = {}
    with open(path, "rb") as file:
        for is_input, name, n, _, kind in members:
            if is_input:
                continue
            got = array.array(bundle.LETTER[kind][0])
            got.frombytes(file.read(n * got.itemsize))
            found[name] = difference(
                got, bundle.npy_values(f"{want}/{name}.npy", kind), kind)
    return found


def verify(amphora, network, folder):
    """The same of the functions that `verify` calls for layers of a host, made
    for this very processor; it names the first that is wrong."""
    nodes, _ = read_tensors(network)
    found = dict.fromkeys(node["name"] for node in nodes
                          if node["op"] != "input")
    result = subprocess.run(
        [amphora, "verify", network, "-t", f"{folder}/machine.yaml"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    said = result.stdout.decode()
    wrong = re.search(r"first to differ: (\w+) (.*)", said)
    if wrong:
        found[wrong[1]] = wrong[2]
    elif result.returncode:
        result.check_returncode()
    return found


# ---- all of them ----

def run_network(amphora, network, cpu, form):
    """{name of a layer: what is wrong with it, or None}, or of the whole."""
    want = os.path.dirname(network) + "/want"
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/machine.yaml", "w", encoding="utf-8") as file:
            file.write(cpu.machine(form))
        try:
            if form == "verify":
                return verify(amphora, network, folder)
            members = run_program(amphora, network, cpu, form, folder)
            return compare_raw(members, f"{folder}/out.raw", want)
        except subprocess.CalledProcessError as error:
            said = error.stderr.decode(errors="replace").strip()
            return {"": f"{said}\n    {error}"}


def command(options, family, layer, cpu, form):
    """What makes it again: one layer, or all of a network that did not run."""
    number = re.sub(r"^\D+", "", layer)
    one = f" --only {number}" if number else ""
    return f"python3 tests/kernels.py --seed {options.seed} " \
        f"--count {options.count} --family {family}{one} --cpu {cpu} " \
        f"--form {form} {options.amphora}"


def run_cpu(options, paths, name):
    """(kernels that ran, wrong ones) on a processor."""
    ran = wrong = 0
    cpu = CPUS[name]
    for family, path in paths:
        for form in FAMILIES[family].forms:
            if options.form not in (None, form) or form not in cpu.forms:
                continue
            found = run_network(options.amphora, path, cpu, form)
            ran += len(found)
            for layer, what in found.items():
                if what:
                    wrong += 1
                    print(f"WRONG {layer} on {name}, {form}: {what}\n    "
                          + command(options, family, layer, name, form),
                          flush=True)
    return ran, wrong


def chosen(options):
    """Names of the processors to run on."""
    if options.cpu:
        return [options.cpu]
    if options.long:
        bundle.run(["sh", "-c", ". tools/setup.sh; "
                    "install_packages $emulator_packages"])
    names = [name for name, cpu in CPUS.items() if cpu.can_run()]
    if options.long:
        for name in CPUS:
            if name not in names:
                print(f"{name}: nothing here runs it")
        return names
    here = [name for name in names if CPUS[name].is_here()]
    return here[-2:] + [n for n in names if n not in here][:1]


def asked():
    parser = argparse.ArgumentParser(usage=__doc__[__doc__.index("usage: ")
                                                   + len("usage: "):])
    parser.add_argument("amphora", nargs="?", default="build/amphora")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    for name in "--count", "--only":
        parser.add_argument(name, type=int)
    parser.add_argument("--cpu", choices=CPUS)
    parser.add_argument("--form", choices=FORMS)
    parser.add_argument("--family", choices=FAMILIES)
    options = parser.parse_args()
    if options.count is None:
        options.count = 300 if options.long else FEW
    return options


def main():
    try:
        return campaign(asked())
    except subprocess.CalledProcessError as error:
        print(error.stderr.decode(errors="replace"), error)
        return 1


def campaign(options):
    """1 if a kernel is wrong."""
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        paths = list(networks(options, folder))
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(lambda row: evaluate(
                options.amphora, row[1],
                os.path.dirname(row[1]) + "/want"), paths))
            names = chosen(options)
            for name, (ran, wrong) in zip(names, pool.map(
                    lambda n: run_cpu(options, paths, n), names)):
                failed += wrong
                print(f"{name}: {ran} kernels, {wrong} wrong, seed "
                      f"{options.seed}", flush=True)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
