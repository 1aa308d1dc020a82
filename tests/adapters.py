#!/usr/bin/env python3
"""adapters.py - examples/planner: the planner as TFLite Micro, ExecuTorch, TVM
and XLA have it.

Plans are judged here: no two tensors alive together share a byte. The .tflite
is read back by a reader of this file's own and by amphora, which must see the
same network. ExecuTorch and TVM are not installed: objects with the fields that
their algorithms are given stand in for theirs.
"""
import importlib.util
import itertools
import os
import random
import struct
import subprocess
import sys
import tempfile
import types

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
AMPHORA = os.environ.get("AMPHORA", os.path.join(ROOT, "build/amphora"))
os.environ.setdefault("AMPHORA_PLANNER_LIBRARY", os.path.join(
    os.path.dirname(os.path.abspath(AMPHORA)), "libamphora-planner.so.1"))
sys.path.insert(0, os.path.join(ROOT, "python"))


def load(name):
    path = os.path.join(ROOT, "examples/planner", name + ".py")
    spec = importlib.util.spec_from_file_location("adapter_" + name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def expect(fine, what):
    if not fine:
        sys.exit(f"wrong: {what}")


def apart(rows, what):
    """Rows (first, end, offset, size)."""
    for a, b in itertools.combinations(rows, 2):
        alive = a[0] < b[1] and b[0] < a[1]
        expect(not alive or a[2] + a[3] <= b[2] or b[2] + b[3] <= a[2],
               f"{what}: {a} and {b} collide")


# ---- TFLite Micro ----

def metadata(data):
    """{name: (where its bytes begin, bytes)}, read step by step."""
    def at(form, where):
        return struct.unpack_from("<" + form, data, where)[0]

    def field(table, number):
        vtable = table - at("i", table)
        off = at("H", vtable + 4 + 2 * number) \
            if 4 + 2 * number < at("H", vtable) else 0
        return off and table + off

    def follow(where):
        return where + at("I", where)

    model = at("I", 0)
    entries, buffers = (follow(field(model, n)) for n in (6, 4))
    found = {}
    for i in range(at("I", entries)):
        entry = follow(entries + 4 + 4 * i)
        name = follow(field(entry, 0))
        text = data[name + 4:name + 4 + at("I", name)].decode()
        buffer = follow(buffers + 4 + 4 * at("I", field(entry, 1)))
        held = field(buffer, 0)
        if held:
            held = follow(held)
            found[text] = held + 4, data[held + 4:held + 4 + at("I", held)]
    return found


def outputs(path, folder):
    """What the network computes of seeded inputs."""
    out = os.path.join(folder, os.path.basename(path) + ".out")
    subprocess.run([AMPHORA, "eval", path, "-o", out], check=True,
                   stdout=subprocess.DEVNULL)
    found = {}
    for name in sorted(os.listdir(out)):
        with open(os.path.join(out, name), "rb") as file:
            found[name] = file.read()
    return found


def check_tflm(folder):
    tflm = load("tflm")
    source = os.path.join(ROOT, "examples/small/residual-int8.tflite")
    out = os.path.join(folder, "planned.tflite")
    again = os.path.join(folder, "again.tflite")
    for one, other in ((source, out), (out, again)):
        subprocess.run([sys.executable, tflm.__file__, one, other], check=True,
                       env={**os.environ, "PYTHONPATH": sys.path[0]},
                       stdout=subprocess.DEVNULL)
    with open(source, "rb") as file:
        before = file.read()
    with open(out, "rb") as file:
        data = file.read()
    expect(data.endswith(before), "the model itself is not touched")
    place, held = metadata(data)["OfflineMemoryAllocation"]
    expect(place % 16 == 0, "the plan lies at a multiple of 16")
    words = struct.unpack(f"<{len(held) // 4}i", held)
    model = tflm.root(before)
    graph = model.tables(tflm.SUBGRAPHS)[0]
    tensors, span = graph.tables(0), tflm.lives(model, graph)
    expect(words[:3] == (1, 0, len(tensors)) and
           len(words) == 3 + len(tensors), f"heading {words[:3]}")
    rows = [(*span[t], words[3 + t], tflm.tensor_bytes(tensors[t]))
            for t in span]
    expect(len(rows) > 3 and all(r[2] >= 0 and r[2] % 16 == 0 for r in rows),
           "all that is computed has an aligned place")
    expect(all(words[3 + t] == -1 for t in range(len(tensors))
               if t not in span), "constants have none")
    apart(rows, "tflm")
    with open(again, "rb") as file:
        twice = metadata(file.read())["OfflineMemoryAllocation"][1]
    expect(twice == held, "planning anew replaces the plan by the same")
    computed = outputs(source, folder)
    expect(computed and computed == outputs(out, folder),
           "amphora reads the same network")


# ---- ExecuTorch ----

class Spec:
    def __init__(self, draw):
        first = draw.randrange(30)
        self.lifetime = [first, first + draw.randrange(6)]
        self.bytes = draw.randint(1, 5000)
        self.mem_id = draw.choice((None, None, 1, 2))
        self.allocated_memory = self.bytes

    def realign(self, alignment):
        self.allocated_memory = -(-self.bytes // alignment) * alignment


def check_executorch():
    plan = load("executorch").plan
    result_type = type("Result", (), {"__init__": lambda self, d, b: (
        setattr(self, "spec_dict", d), setattr(self, "bufsizes", b)) and None})
    place_type = type("Place", (), {"__init__": lambda self, m, o, a: (
        setattr(self, "mem_id", m), setattr(self, "mem_offset", a)) and None})
    draw = random.Random(1)
    specs = {Spec(draw) for _ in range(60)}
    module = types.SimpleNamespace(input_mem_buffer_sizes=[0, 100])
    result = plan(16, specs, module, None, 64, (result_type, place_type))
    expect(set(result.spec_dict) == specs, "each spec has a place")
    for mem_id in (1, 2):
        rows = [(s.lifetime[0], s.lifetime[1] + 1, p.mem_offset,
                 s.allocated_memory)
                for s, p in result.spec_dict.items() if p.mem_id == mem_id]
        apart(rows, "executorch")
        top = max(r[2] + r[3] for r in rows)
        expect(result.bufsizes[mem_id] == top + 64, "buffer and padding")
        expect(all(r[2] % 16 == 0 for r in rows), "aligned")
        peak = max(sum(r[3] for r in rows if r[0] <= t < r[1])
                   for t in range(40))
        start = 112 if mem_id == 1 else 0
        expect(min(r[2] for r in rows) == start and top == start + peak,
               f"buffer {mem_id}: {top} and not the live peak {peak}")


# ---- TVM ----

def check_usmp():
    plan = load("usmp").plan
    draw = random.Random(2)
    sram = types.SimpleNamespace(pool_name="sram", size_hint_bytes=8000)
    dram = types.SimpleNamespace(pool_name="dram", size_hint_bytes=-1)

    class Info:
        pass

    infos = []
    for _ in range(40):
        info = Info()
        info.size_bytes, info.alignment = draw.randint(1, 4000), 16
        info.pool_candidates, info.conflicts = [sram, dram], []
        for other in infos:
            if draw.random() < 0.4:
                info.conflicts.append(other)
                other.conflicts.append(info)
        infos.append(info)

    def pair(pool, offset):
        return pool, offset

    result = plan(infos, 0, pair, seconds=2.0)
    expect(len(result) == len(infos), "each buffer has a place")
    for info, (pool, offset) in result.items():
        expect(offset % 16 == 0, "aligned")
        expect(pool is dram or offset + info.size_bytes <= 8000, "within sram")
        for other in info.conflicts:
            where, at = result[other]
            expect(where is not pool or offset + info.size_bytes <= at or
                   at + other.size_bytes <= offset, "usmp: a collision")
    used = {pool.pool_name for pool, _ in result.values()}
    expect(used == {"sram", "dram"}, f"pools {used}")
    for info in infos:
        info.pool_candidates = [sram]
    try:
        plan(infos, 0, pair, seconds=2.0)
        expect(False, "they do not fit into sram alone")
    except MemoryError:
        pass


# ---- XLA ----

TRACE = """
logical_buffers { id: 0 size: 64 }
logical_buffers { id: 1 size: 16 defined_at { instruction_name: "a } b" } }
logical_buffers { id: 2 size: 32 }
logical_buffers { id: 3 size: 64 }
heap_simulator_traces {
  events { buffer_id: 0 }
  events { kind: ALLOC buffer_id: 1 }
  events { kind: SHARE_WITH buffer_id: 3 share_with_canonical_id: 0 }
  events { kind: FREE buffer_id: 1 }
  events { buffer_id: 2 }
  events { kind: FREE buffer_id: 0 }
  events { kind: FREE buffer_id: 3 }
}
"""


def check_xla(folder):
    path = os.path.join(folder, "trace.pbtxt")
    with open(path, "w", encoding="utf-8") as file:
        file.write(TRACE)
    done = subprocess.run(
        [sys.executable, load("xla_trace").__file__, path],
        stdout=subprocess.PIPE, check=True)
    expect(done.stdout == b"id,lower,upper,size\n0,0,6,64\n1,1,3,16\n"
           b"2,4,7,32\n", done.stdout.decode())
    packed = subprocess.run([AMPHORA, "pack", "-"], input=done.stdout,
                            stdout=subprocess.PIPE, check=True)
    expect(b" 96 " in packed.stdout, packed.stdout.decode())


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_tflm(folder)
        check_executorch()
        check_usmp()
        check_xla(folder)


if __name__ == "__main__":
    main()
