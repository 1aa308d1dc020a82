#!/usr/bin/env python3
"""rooms.py - what each room of the built tree uses stands before it.

Reads the symbols of the objects in the folder build (nm). The rooms are those
of CMakeLists.txt in its order; those inside alloc/ are in the order of
ARCHITECTURE.md, where alloc's own files, its door, come last. codegen, native,
sim and report use nothing of alloc. Prints each use that runs against this.
"""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OBJECTS = os.path.join(ROOT, "build", "CMakeFiles")
BLIND_TO_ALLOC = ("codegen", "native", "sim", "report")


def rooms():
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
        return re.findall(r"^room\((\w+)", file.read(), re.M)


def inner_rooms():
    """Rows of the table of alloc's rooms."""
    with open(os.path.join(ROOT, "ARCHITECTURE.md"), encoding="utf-8") as file:
        text = file.read()
    table = text[text.index("Its rooms, in the order"):text.index("## How a network")]
    return re.findall(r"^\| `(\w+)` \|", table, re.M)


def objects(room):
    """(source, object) of a room."""
    top = os.path.join(OBJECTS, room + ".dir")
    for at, _, names in os.walk(top):
        for name in names:
            path = os.path.join(at, name)
            source = os.path.relpath(path, top)[:-len(".o")]
            if name.endswith(".c.o") and \
                    os.path.exists(os.path.join(ROOT, source)):
                yield source, path


def symbols(path):
    """Names that an object defines for others, and names that it uses."""
    printed = subprocess.run(["nm", path], stdout=subprocess.PIPE, text=True,
                             check=True).stdout
    words = [line.split() for line in printed.splitlines()]
    return ({w[2] for w in words if len(w) == 3 and w[1] in "TDRB"},
            {w[1] for w in words if len(w) == 2 and w[0] == "U"})


def place(source, order, inner):
    """Where a source stands: its room, and inside alloc its inner room."""
    parts = source.split("/")
    room = order.index(parts[0])
    if parts[0] != "alloc":
        return room, 0
    return room, inner.index(parts[1]) if len(parts) > 2 else len(inner)


def main():
    order, inner = rooms(), inner_rooms()
    made, used = {}, {}
    for room in order:
        for source, path in objects(room):
            defines, uses = symbols(path)
            made.update(dict.fromkeys(defines, source))
            used[source] = uses
    bad = 0
    for source, names in sorted(used.items()):
        for name in sorted(names & made.keys()):
            maker = made[name]
            blind = source.split("/")[0] in BLIND_TO_ALLOC and \
                maker.startswith("alloc/")
            if blind or place(maker, order, inner) > place(source, order,
                                                           inner):
                print(f"{source} uses {name} of {maker}")
                bad += 1
    print(f"{len(used)} files, {len(made)} symbols, {bad} used upward")
    return bad > 0 or not used


sys.exit(main())
