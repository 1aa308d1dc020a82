#!/usr/bin/env python3
"""lint.py - what the compilers do not check about the tree.

  includes   a room includes itself, base, and the public headers of rooms that
             CMakeLists.txt links it with; some of these only the door may see;
             sim and codegen's listing reach no graph by any way
  headers    each compiles alone: those that no file of a room includes first,
             as whose first line the build compiles them
  memory     malloc and its family stand in base/arena.c only
  lengths    of files, functions and lines
  machines   no C outside tests/ and bench/ names one
  programs   git holds none, and no file above TRACKED_BYTES

Prints each finding as file:line: text; exits 1 if there are any. Runs in any
folder, with the standard library and a C compiler ($CC, else cc).
"""
import collections
import concurrent.futures
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FILE_LINES, LINE_COLUMNS = 900, 80
FUNCTION_LINES, TEST_LINES = 70, 100
TRACKED_BYTES = 1 << 20

# What other rooms may include of a room (.def files come with their header).
PUBLIC = {
    "hwspec/address.h", "hwspec/cost.h", "hwspec/hwspec.h", "hwspec/insn.h", "hwspec/layout.h",
    "hwspec/lines.h", "hwspec/program.h", "hwspec/template.h", "hwspec/emit.h",
    "hwspec/fields.def", "hwspec/limits.def", "hwspec/ops.def",
    "routines/routine.h", "routines/routines.def",
    "graph/graph.h", "graph/halfway.h", "graph/quant.h", "graph/op_traits.h", "graph/ops.def",
    "graph/elts.def",
    "frontends/frontend.h", "frontends/import.h", "frontends/samples.h",
    "quantise/quantise.h", "passes/legal.h", "passes/pass.h", "sched/sched.h", "filegen/filegen.h", "lanes/lanes.h",
    "wordgen/wordgen.h", "wordgen/writer.h",
    "hwspec/expr/expr.h",
    "pack/pack.h", "pack/csv.h", "pack/flippable.h", "pack/memo.h",
    "pack/packers.h", "geometry/geometry.h", "geometry/tile_loops.h",
    "plan/plan.h", "plan/access.h", "plan/cost.h", "plan/issue_queue.h",
    "plan/objective.h", "plan/placements.h",
    "alloc/alloc.h", "alloc/search/replication.h",
    "codegen/listing.h", "codegen/codegen.h", "codegen/words.h", "sim/sim.h", "sim/program.h", "sim/does.h",
    "native/native.h", "native/program.h", "native/maker.h",
    "report/moves.h", "report/points.h", "report/page.h", "report/quantised.h",
    "report/accounts.h",
}
DOOR = "driver"
DOOR_ONLY = {"frontends/frontend.h", "frontends/import.h", "frontends/samples.h",
             "passes/pass.h", "codegen/codegen.h", "codegen/words.h",
             "filegen/filegen.h", "lanes/lanes.h", "wordgen/wordgen.h"}
# A listing is a value without code behind it as far as sim is concerned.
UNLINKED = {("sim", "codegen/listing.h")}
# Rooms that a judge of listings must not learn anything from.
BLIND = re.compile(r"(sim/.*|codegen/listing.*)\.[ch]$")
UNSEEN = {"graph", "frontends", "passes", "sched", "geometry", "plan",
          "alloc"}

ALLOCATORS = re.compile(
    r"\b(malloc|calloc|realloc|reallocarray|aligned_alloc|posix_memalign|free|"
    r"strdup|strndup|asprintf|vasprintf)\s*\(")
# Names that have a machine in them by accident: files of facts that are cited,
# and keys of the JSON that recorded listings are written in.
NO_MACHINES = re.compile(r"facts/[a-z-]+\.md|\bxdnn_(?:instr|kv|list)\b")
TOKEN = re.compile(
    r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)
INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*\"([^\"]+)\"", re.M)
# What stands before all else that a file includes.
FIRST = re.compile(r"\A(?:\s|/\*.*?\*/)*#[ \t]*include[ \t]*\"([^\"]+)\"", re.S)
BRACE = re.compile(r"\)\s*\{|[{}]")

Finding = collections.namedtuple("Finding", "path line text")


class Source:
    """One C file: as it is, and with comments and literals blanked out."""

    def __init__(self, path):
        self.path = path
        self.room = path.split("/")[0]
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            self.text = file.read()
        self.code = TOKEN.sub(self._blank, self.text)
        self.includes = [(m.group(1), self.line_of(m.start(1)))
                         for m in INCLUDE.finditer(self.text)]

    @staticmethod
    def _blank(match):
        return re.sub(r"[^\n]", " ", match.group())

    def line_of(self, offset):
        return self.text.count("\n", 0, offset) + 1

    def find(self, pattern, text):
        return [(m.group(), self.line_of(m.start()))
                for m in pattern.finditer(text)]


def read_rooms():
    """The rooms in order, each with all it is linked with, from CMake."""
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
        rows = re.findall(r"^room\(([^)]*)\)", file.read(), re.M)
    linked = {}
    for row in rows:
        name, *libraries = row.split()
        linked[name] = {name}
        for library in libraries:
            linked[name] |= linked.get(library, set())
    linked[DOOR] = set(linked) | {DOOR}
    return linked


def read_sources(folders):
    sources = []
    for folder in folders:
        for at, _, names in os.walk(os.path.join(ROOT, folder)):
            sources += [os.path.relpath(os.path.join(at, name), ROOT)
                        for name in names if name.endswith((".c", ".h", ".def"))]
    return [Source(path) for path in sorted(sources)]


def judge_include(source, path, linked):
    """Why `source` may not include `path`; None if it may."""
    room = path.split("/")[0]
    if room not in linked or "/" not in path:
        return f'"{path}" is not named from the root'
    if room in (source.room, "base"):
        return None
    if path not in PUBLIC:
        return f'"{path}" is inside another room'
    if path in DOOR_ONLY and source.room != DOOR:
        return f'"{path}" is for the door only'
    if room not in linked[source.room] and \
            (source.room, path) not in UNLINKED:
        return f"{source.room} is not linked with {room}"
    return None


def check_includes(sources, linked):
    for source in sources:
        for path, line in source.includes:
            why = judge_include(source, path, linked)
            if why:
                yield Finding(source.path, line, why)


def reach(source, by_path):
    """Paths that a file includes, directly or not."""
    seen, todo = set(), [path for path, _ in source.includes]
    while todo:
        path = todo.pop()
        if path not in seen:
            seen.add(path)
            todo += [p for p, _ in by_path[path].includes] \
                if path in by_path else []
    return seen


def check_blind(sources):
    by_path = {source.path: source for source in sources}
    for source in sources:
        if BLIND.match(source.path):
            for path in sorted(reach(source, by_path)):
                if path.split("/")[0] in UNSEEN:
                    yield Finding(source.path, 1, f'it can see "{path}"')


def output_of(command):
    """What a command prints; nothing where it fails or is not there."""
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, check=True,
                              stderr=subprocess.DEVNULL).stdout.decode().split()
    except (OSError, subprocess.CalledProcessError):
        return []


def library_flags():
    flags = output_of(["pkg-config", "--cflags", "yaml-0.1", "libcjson",
                       "openblas"])
    return flags + ["-isystem" + folder for folder in
                    output_of(["llvm-config", "--includedir"])]


def compile_alone(source, flags):
    command = os.environ.get("CC", "cc").split() + flags + [
        "-std=c11", "-D_POSIX_C_SOURCE=200809L", "-I.", "-Iinclude", "-fsyntax-only",
        "-x", "c", source.path]
    done = subprocess.run(command, cwd=ROOT, stderr=subprocess.PIPE,
                          check=False)
    if done.returncode:
        first = done.stderr.decode(errors="replace").strip().split("\n")[-1]
        for line in done.stderr.decode(errors="replace").split("\n"):
            if "error:" in line:
                first = line
                break
        return Finding(source.path, 1, "does not compile alone: " + first)
    return None


def check_headers(rooms, tests):
    flags = library_flags()
    built = {first.group(1) for first in
             (FIRST.search(s.text) for s in rooms if s.path.endswith(".c"))
             if first}
    headers = [s for s in rooms + tests
               if s.path.endswith(".h") and s.path not in built]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda s: compile_alone(s, flags), headers)
        yield from (finding for finding in results if finding)


def check_memory(sources):
    for source in sources:
        if source.path == "base/arena.c":
            continue
        for call, line in source.find(ALLOCATORS, source.code):
            yield Finding(source.path, line,
                          f"{call.rstrip('( ')} is for base/arena.c only")


def functions(source):
    """(line of the opening brace, lines) of every function body."""
    directive = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
    code = directive.sub(lambda m: re.sub(r"[^\n]", " ", m.group()),
                         source.code)
    depth, start = 0, None
    for match in BRACE.finditer(code):
        if match.group() != "}":
            if depth == 0 and match.group() != "{":
                start = match.end() - 1
            depth += 1
        else:
            depth -= 1
            if depth == 0 and start is not None:
                yield (code.count("\n", 0, start) + 1,
                       code.count("\n", start, match.start()) + 1)
                start = None


def check_lengths(sources):
    for source in sources:
        lines = source.text.split("\n")
        if len(lines) - 1 > FILE_LINES:
            yield Finding(source.path, FILE_LINES + 1,
                          f"{len(lines) - 1} lines; {FILE_LINES} at most")
        most = TEST_LINES if source.room in ("tests", "bench") \
            else FUNCTION_LINES
        for line, length in functions(source):
            if length > most:
                yield Finding(source.path, line, f"a function of {length} "
                              f"lines; {most} at most")
        if source.path.endswith(".def"):
            continue
        for number, line in enumerate(lines, 1):
            a_string = line.lstrip(" {").startswith('"')
            if len(line) > LINE_COLUMNS and not a_string:
                yield Finding(source.path, number, f"{len(line)} columns; "
                              f"{LINE_COLUMNS} at most")


def machine_names():
    """Shipped targets by file name (those of one word, such as null and
    template, are no names), families."""
    stems = [os.path.splitext(name)[0] for name in
             os.listdir(os.path.join(ROOT, "hwspec/targets")) if "-" in name]
    return sorted(stems) + ["xdnn", "darius", "math-engine"]


def check_machines(sources):
    """Names of machines, however they are joined, and mnemonics."""
    stems = machine_names()
    joined = [stem.replace("-", "") for stem in stems]
    names = re.compile("(?i:" + "|".join(stem.replace("-", "[-_ ]?")
                                         for stem in stems)
                       + r")|\bXN[A-Z]\w*")
    for source in sources:
        squashed = re.sub("[-_ ]", "", source.text)
        lowered = squashed.lower()
        if "XN" not in squashed and not any(n in lowered for n in joined):
            continue
        text = NO_MACHINES.sub(lambda m: " " * len(m.group()), source.text)
        for name, line in source.find(names, text):
            yield Finding(source.path, line, f"`{name}` is a machine's name")


def check_programs():
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    for path in os.fsdecode(done.stdout).split("\0"):
        whole = os.path.join(ROOT, path)
        if not path or not os.path.isfile(whole):
            continue
        with open(whole, "rb") as file:
            if file.read(4) == b"\x7fELF":
                yield Finding(path, 1, "a program: git is not for these")
        if os.path.getsize(whole) > TRACKED_BYTES:
            yield Finding(path, 1, f"more than {TRACKED_BYTES} bytes")


def main():
    linked = read_rooms()
    rooms = read_sources(linked)
    tests = read_sources(["tests", "bench"])
    findings = set()
    findings.update(check_includes(rooms, linked))
    findings.update(check_blind(rooms))
    findings.update(check_headers(rooms, tests))
    findings.update(check_memory(rooms))
    findings.update(check_lengths(rooms + tests))
    findings.update(check_machines(rooms))
    findings.update(check_programs())
    for finding in sorted(findings):
        print(f"{finding.path}:{finding.line}: {finding.text}")
    return len(findings) > 0


if __name__ == "__main__":
    sys.exit(main())
