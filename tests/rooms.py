#!/usr/bin/env python3
"""rooms.py - what each room of the built tree uses stands before it.

Reads the symbols of the objects in the folder build (nm). The rooms are those
of CMakeLists.txt in its order; those inside alloc/ and frontends/ are in the
order of ARCHITECTURE.md's tables, where the room's own files, its door, come
last. codegen, native, sim and report use nothing of alloc. In the rooms of
LAYERED no file uses, through whatever others, one that uses it. No two files
define one symbol, or the order of linking would decide between them. Prints
each use that runs against this, each cycle, and each such symbol.
"""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OBJECTS = os.path.join(ROOT, "build", "CMakeFiles")
BLIND_TO_ALLOC = ("codegen", "native", "sim", "report")
DIVIDED = ("frontends", "alloc")
LAYERED = ("frontends", "geometry", "codegen", "sim")


def rooms():
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
        return re.findall(r"^room\((\w+)", file.read(), re.M)


def inner_rooms(room):
    """Rows of the table of the rooms inside a room."""
    with open(os.path.join(ROOT, "ARCHITECTURE.md"), encoding="utf-8") as file:
        text = file.read()
    table = text[text.index(f"\n`{room}/` has rooms"):]
    rows = re.match(r".*?\n((?:\|.*\n)+)", table, re.S).group(1)
    return re.findall(r"^\| `(\w+)` \|", rows, re.M)


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


def symbols(paths):
    """By object, names that it defines for others, and names that it uses."""
    printed = subprocess.run(["nm", "--print-file-name", *paths], text=True,
                             stdout=subprocess.PIPE, check=True).stdout
    found = {path: (set(), set()) for path in paths}
    for line in printed.splitlines():
        path, _, rest = line.partition(":")
        words = rest.split()
        if len(words) == 3 and words[1] in "TDRB":
            found[path][0].add(words[2])
        elif len(words) == 2 and words[0] == "U":
            found[path][1].add(words[1])
    return found


def place(source, order, inner):
    """Where a source stands: its room, and its inner room where there are."""
    parts = source.split("/")
    room = order.index(parts[0])
    if parts[0] not in DIVIDED:
        return room, 0
    rows = inner[parts[0]]
    return room, rows.index(parts[1]) if len(parts) > 2 else len(rows)


def find_cycle(uses):
    """Files of which each uses the next, and the last the first; or nothing."""
    done, path = set(), []

    def visit(source):
        if source in path:
            return path[path.index(source):]
        if source in done:
            return []
        path.append(source)
        for other in sorted(uses[source]):
            found = visit(other)
            if found:
                return found
        done.add(path.pop())
        return []

    for source in sorted(uses):
        found = visit(source)
        if found:
            return found
    return []


def count_cycles(made, used):
    bad = 0
    for room in LAYERED:
        inside = {s for s in used if s.split("/")[0] == room}
        uses = {s: {made[n] for n in used[s] if n in made} & inside - {s}
                for s in inside}
        found = find_cycle(uses)
        if found:
            print("a cycle: " + " -> ".join(found + found[:1]))
        bad += bool(found)
    return bad


def main():
    order = rooms()
    inner = {room: inner_rooms(room) for room in DIVIDED}
    made, used = {}, {}
    bad = 0
    found = [row for room in order for row in objects(room)]
    named = symbols([path for _, path in found]) if found else {}
    for source, path in found:
        defines, uses = named[path]
        for name in sorted(defines & made.keys()):
            print(f"{name}: in {made[name]} and in {source}")
            bad += 1
        made.update(dict.fromkeys(defines, source))
        used[source] = uses
    for source, names in sorted(used.items()):
        for name in sorted(names & made.keys()):
            maker = made[name]
            blind = source.split("/")[0] in BLIND_TO_ALLOC and \
                maker.startswith("alloc/")
            if blind or place(maker, order, inner) > place(source, order,
                                                           inner):
                print(f"{source} uses {name} of {maker}")
                bad += 1
    cycles = count_cycles(made, used)
    print(f"{len(used)} files, {len(made)} symbols, {bad} used upward, "
          f"{cycles} cycles")
    return bad + cycles > 0 or not used


sys.exit(main())
