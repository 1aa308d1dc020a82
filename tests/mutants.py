#!/usr/bin/env python3
"""mutants.py - whether the tests notice small mistakes in the sources.

Makes mutants of the core rooms (tests/mutate.py), by a seed, and runs for each
the tests that run its line, the cheapest first, until one fails. Works in a
copy of the tree; the checkout is only read.

  not counted  what does not compile, and what compiles to the same bytes
               (-O2, no debug information)
  killed       a test fails, or takes several times its processor time or memory
  survived     every test that runs the line passes; those that were read, and
               why they stay, are in tests/mutants_read.txt

Three rounds, each for those that the ones before left: unit programs, the
scripts of tests/all.py that take less than --most seconds, and the unit
programs with sanitizers. Those that notice most of what reaches them (STRONG)
come first. Which lines a test runs is measured once, by a build with
--coverage; of the strong ones it is taken to be all. All results are lines of
JSON in WORK/results.jsonl, written as they come; a second run with the same
folder goes on from there, and runs of the survivors only tests that were not
run or have changed since.

usage: mutants.py [options]
  --work FOLDER    folder for the copy and the results (else a temporary one)
  --count N        mutants that count; else 200
  --seed TEXT      other mutants
  --rounds NAMES   of unit,script,asan; else all
  --most SECONDS   of processors that a script may take; else 120
  --scripts NAMES  these alone
  --only TEXT      only mutants with this in their place, as PATH:LINE:
  --list           only print survivors of the folder: place, change, reason
Closes with a table by room and the score; exits 1 if it is less than 90 %.
Without an option it tests itself, on a tree of one room; ./test does that, and
./test --long runs it with --long, which is the campaign as it stands here.
"""
import argparse
import collections
import fnmatch
import glob
import hashlib
import json
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import all as suite  # noqa: E402
import mutate  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SCORE = 90  # per cent that must be killed

# Parts of the core: name, share of the mutants, files. A file belongs to the
# first part that has it.
PARTS = (
    ("verifier", 10, ("plan/verify/*.c", "plan/verify*.c", "pack/verify*.c")),
    ("hwspec", 20, ("hwspec/layout*.c", "hwspec/rows*.c", "hwspec/insn*.c",
                    "hwspec/address.c", "hwspec/cost.c", "hwspec/lines.c",
                    "hwspec/waits.c")),
    ("geometry", 8, ("geometry/*.c",)),
    ("planner", 24, ("alloc/*.c", "pack/*.c", "plan/*.c")),
    ("codegen", 10, ("codegen/*.c",)),
    ("sim", 16, ("sim/*.c",)),
    ("legal", 6, ("passes/legal*.c", "passes/*/legal*.c")),
    ("graph", 8, ("graph/eval*.c", "graph/*/eval*.c", "graph/quant*.c",
                  "graph/shape*.c")),
)
# How often an operator is taken, beside the others.
WEIGHT = {"order": 0.1, "constant": 0.6, "statement": 0.6, "result": 0.6,
          "bits": 2, "extreme": 2}
# Scripts that look at the text of the sources, build on their own, or are this.
SKIPPED = {"lint", "library", "llvm", "mutants", "layout_mutants"}
# Scripts that run most of the core and end at the first difference.
STRONG = {"figures": ["--first"], "farm": ["--first"]}

# Of a test on a mutant: processor seconds and real ones, over those that it
# takes by itself, and bytes of memory.
CPU_FACTOR, CPU_MORE = 4, 3
WALL_FACTOR, WALL_MORE = 60, 120
MEMORY = 4 << 30
FILE_BYTES = 1 << 30

# `needs`: what ninja makes for it in the folder `build`.
Test = collections.namedtuple("Test", "name kind command build needs digest")
Run = collections.namedtuple("Run", "verdict cpu")


# ---- Commands with limits

def group_use(group):
    """Processor seconds and resident bytes of a process group."""
    ticks, pages = 0, 0
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group:
            ticks += sum(map(int, fields[11:15]))
            pages += int(fields[21])
    return (ticks / os.sysconf("SC_CLK_TCK"),
            pages * os.sysconf("SC_PAGE_SIZE"))


def in_own_group():
    os.setsid()
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run_limited(command, folder, environment, most_cpu, most_wall):
    """How a command ended: passed, failed, or by which limit."""
    with subprocess.Popen(command, cwd=folder, env=environment,
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL,
                          preexec_fn=in_own_group) as process:
        start, wait, verdict, cpu = time.monotonic(), 0.02, None, 0.0
        while verdict is None:
            try:
                process.wait(wait)
                verdict = "failed" if process.returncode else "passed"
            except subprocess.TimeoutExpired:
                wait = min(wait * 1.5, 0.5)
                cpu, memory = group_use(process.pid)
                if cpu > most_cpu:
                    verdict = "cpu"
                elif memory > MEMORY:
                    verdict = "memory"
                elif time.monotonic() - start > most_wall:
                    verdict = "wall"
        try:  # what is left of the group, also of one that has ended
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        process.wait()
    return Run(verdict, cpu)


# ---- The copy of the tree

def digest_of(paths):
    total = hashlib.sha256()
    for path in sorted(paths):
        if os.path.isfile(path):
            total.update(path.encode() + b"\0")
            with open(path, "rb") as file:
                total.update(file.read())
    return total.hexdigest()[:16]


def tracked(tree):
    """Paths of the files of a tree: what is in git or could be, else all."""
    command = ["git", "ls-files", "-co", "--exclude-standard"]
    found = subprocess.run(command, cwd=tree, capture_output=True, text=True)
    if found.returncode == 0 and found.stdout:
        return found.stdout.splitlines()
    return [os.path.relpath(os.path.join(at, name), tree)
            for at, _, names in os.walk(tree) for name in names]


def refresh(source, copy):
    """Makes `copy` hold the files of `source`; those that are the same keep
    their time. Build folders in it stay."""
    wanted = {path for path in tracked(source)
              if os.path.isfile(os.path.join(source, path))}
    for path in wanted:
        old, new = os.path.join(copy, path), os.path.join(source, path)
        with open(new, "rb") as file:
            content = file.read()
        if os.path.exists(old):
            with open(old, "rb") as file:
                if file.read() == content:
                    continue
        os.makedirs(os.path.dirname(old), exist_ok=True)
        shutil.copyfile(new, old)
        shutil.copymode(new, old)
    for at, folders, names in os.walk(copy):
        folders[:] = [f for f in folders if not f.startswith("build")]
        for name in names:
            path = os.path.join(at, name)
            if os.path.relpath(path, copy) not in wanted:
                os.remove(path)


def with_flags(flags):
    """A kind of build of our own: none has debug information, so that what
    compiles to the same is the same."""
    return ["-DCMAKE_BUILD_TYPE=Mutants", f"-DCMAKE_C_FLAGS_MUTANTS={flags}"]


class Tree:
    """A copy with builds: build and build-asan as the tests want them, and one
    that counts lines."""

    def __init__(self, work, source):
        self.folder = os.path.join(work, "tree")
        self.scratch = os.path.join(work, "scratch")
        os.makedirs(self.folder, exist_ok=True)
        refresh(source, self.folder)
        beside = os.path.join(os.path.dirname(source), "shared")
        link = os.path.join(work, "shared")
        if os.path.exists(beside) and not os.path.exists(link):
            os.symlink(os.path.realpath(beside), link)
        self.sources = {}
        for path in sorted(tracked(source)):
            if path.endswith((".c", ".h", ".def")) and \
                    not path.startswith(("tests/", "bench/")):
                self.sources[path] = os.path.join(self.folder, path)
        self.digest = digest_of(self.sources.values())
        self.configure("build", *with_flags("-O2"))
        self.objects, self.originals = {}, {}

    def configure(self, name, *options):
        if os.path.exists(os.path.join(self.folder, name, "build.ninja")):
            return
        command = ["cmake", "-S", ".", "-B", name, "-G", "Ninja", *options]
        done = subprocess.run(command, cwd=self.folder, capture_output=True,
                              text=True, check=False)
        if done.returncode:
            sys.exit(done.stdout + done.stderr)

    def build(self, name, targets=()):
        """Whether ninja made these targets."""
        command = ["ninja", "-C", name, "-j", "1", *targets]
        return subprocess.run(command, cwd=self.folder, capture_output=True,
                              check=False).returncode == 0

    def text(self, path):
        with open(os.path.join(self.folder, path), encoding="utf-8") as file:
            return file.read()

    def write(self, path, text):
        with open(os.path.join(self.folder, path), "w",
                  encoding="utf-8") as file:
            file.write(text)

    def object_of(self, path):
        """The object file of a source, in build/; None if it has none."""
        if not self.objects:
            listed = subprocess.run(
                ["ninja", "-C", "build", "-t", "targets", "all"],
                cwd=self.folder, capture_output=True, text=True, check=True)
            for line in listed.stdout.splitlines():
                name = line.split(": ")[0]
                if name.endswith(".c.o"):
                    room = name.split("/")[1]
                    source = name.split(".dir/", 1)[1][:-2]
                    if source.split("/")[0] + ".dir" == room:
                        self.objects[source] = name
        return self.objects.get(path)

    def object_bytes(self, path):
        with open(os.path.join(self.folder, "build", self.object_of(path)),
                  "rb") as file:
            return file.read()

    def original_bytes(self, path):
        """Of a source that is as it was; the object may be a mutant's."""
        if path not in self.originals:
            self.build("build", [self.object_of(path)])
            self.originals[path] = self.object_bytes(path)
        return self.originals[path]

    def run(self, command, cpu=0.0, factor=CPU_FACTOR, more=CPU_MORE,
            **environment):
        shutil.rmtree(self.scratch, ignore_errors=True)
        os.makedirs(self.scratch)
        environment = dict(os.environ, TMPDIR=self.scratch, **environment)
        return run_limited(command, self.folder, environment,
                           factor * cpu + more,
                           WALL_FACTOR * cpu + WALL_MORE + more)


# ---- Tests, what they cost and which lines they run

def unit_tests():
    """The unit programs of the tree that is the current folder. Some may be
    left in it of sources that are gone."""
    for _, command in suite.unit_tests("build"):
        program = command[0].split("/")[1]
        room, _, name = program.partition("_")
        files = glob.glob(f"tests/{room}/**", recursive=True)
        if not any(file.endswith(f"/{name}.c") for file in files):
            continue
        yield Test(program, "unit", command, "build", (program,),
                   digest_of(files + glob.glob("tests/*.h")))


def sanitized(test):
    """A unit program with sanitizers."""
    return test._replace(name="asan " + test.name, kind="asan",
                         command=["build-asan/" + test.name],
                         build="build-asan")


def script_tests(only):
    files = [path for folder in ("tests", "bench")
             for path in glob.glob(f"{folder}/*.py")]
    shared = digest_of(files + glob.glob("tests/cli/*"))
    for name, command in suite.scripts(False):
        if name not in SKIPPED and name in (only or [name]):
            yield Test(name, "script", command + STRONG.get(name, []), "build",
                       ("amphora", "amphora-native", "plan_damage"), shared)


def lines_run(tree):
    """Of each source, the lines that have code and those that were run, from
    what the last program left in build-coverage."""
    folder = os.path.join(tree.folder, "build-coverage")
    data = [path for path in glob.glob(folder + "/CMakeFiles/**/*.gcda",
                                       recursive=True)
            if ".dir/tests/" not in path]
    wanted = {os.path.realpath(p): name for name, p in tree.sources.items()}
    found = {}
    for i in range(0, len(data), 50):
        output = subprocess.run(
            ["gcov", "--json-format", "--stdout", *data[i:i + 50]],
            cwd=folder, capture_output=True, text=True, check=True).stdout
        for line in output.splitlines():
            for entry in json.loads(line)["files"]:
                path = os.path.realpath(os.path.join(folder, entry["file"]))
                if path in wanted:
                    add_lines(found, wanted[path], entry["lines"])
    forget_runs(tree)
    return found


def forget_runs(tree):
    for path in glob.glob(tree.folder + "/build-coverage/**/*.gcda",
                          recursive=True):
        os.remove(path)


def add_lines(found, path, lines):
    code, ran = found.setdefault(path, ([], []))
    code += [line["line_number"] for line in lines]
    ran += [line["line_number"] for line in lines if line["count"]]


class Coverage:
    """Costs of tests and the lines that they run; kept in WORK/coverage."""

    def __init__(self, tree, work, most):
        self.tree, self.most = tree, most
        self.folder = os.path.join(work, "coverage")
        os.makedirs(self.folder, exist_ok=True)
        self.built = False
        self.code = collections.defaultdict(set)
        self.ran = {}  # of a test: of a path: lines
        self.cost = {}

    def build(self):
        if not self.built:
            say("building with --coverage")
            self.tree.configure("build-coverage", *with_flags(
                "-O1 -Wno-maybe-uninitialized --coverage"))
            if not self.tree.build("build-coverage"):
                sys.exit("the tree does not build with --coverage")
            forget_runs(self.tree)
        self.built = True

    def measure(self, test):
        """Cost of a test in build, and its lines; None if it is not taken."""
        if test.kind == "asan":
            self.tree.build(test.build, test.needs)
        start = children_cpu()
        run = self.tree.run(test.command, 0, more=self.most)
        cost = max(children_cpu() - start, 0.01)
        if run.verdict != "passed" or test.kind == "asan" or \
                test.name in STRONG:
            return {"verdict": run.verdict, "cost": cost, "lines": {}}
        self.build()
        program = os.path.join(self.tree.folder, "build-coverage")
        command = [os.path.join(program, test.name)] \
            if test.kind == "unit" else test.command
        run = self.tree.run(command, cost, factor=20, more=60,
                            AMPHORA=os.path.join(program, "amphora"))
        return {"verdict": run.verdict, "cost": cost,
                "lines": lines_run(self.tree)}

    def take(self, test):
        """Whether a test is of use; measures it where that was not done."""
        path = os.path.join(
            self.folder, f"{test.name}-{test.digest}-{self.tree.digest}.json")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                found = json.load(file)
        else:
            found = self.measure(test)
            with open(path, "w", encoding="utf-8") as file:
                json.dump(found, file)
            say(f"{test.name}: {found['cost']:.1f} s, {found['verdict']}")
        if found["verdict"] != "passed":
            return False
        self.cost[test.name] = found["cost"]
        if test.kind == "asan":  # the same lines as without
            self.ran[test.name] = self.ran[test.needs[0]]
            return True
        self.ran[test.name] = {}
        for source, (code, ran) in found["lines"].items():
            self.code[source].update(code)
            self.ran[test.name][source] = set(ran)
        return True

    def runs(self, test, mutant):
        """Whether a test runs the line of a mutant: the line itself, or the
        last one with code before it, since a statement can be of several."""
        if test.name in STRONG:
            return True
        line = mutant.line
        code = self.code[mutant.path]
        while line > 0 and line not in code:
            line -= 1
        return line in self.ran[test.name].get(mutant.path, ())


def children_cpu():
    use = resource.getrusage(resource.RUSAGE_CHILDREN)
    return use.ru_utime + use.ru_stime


# ---- The campaign

def say(text):
    print(text, flush=True)


def part_of(path):
    for name, _, patterns in PARTS:
        if any(fnmatch.fnmatch(path, pattern) for pattern in patterns):
            return name
    return None


def ranked(tree, seed, only):
    """Of each part, its mutants in the order that they are taken in."""
    found = {name: [] for name, _, _ in PARTS}
    for path in tree.sources:
        part = part_of(path)
        if not part or not path.endswith(".c") or not tree.object_of(path):
            continue
        for m in mutate.sites(path, tree.text(path)):
            if only in f"{m.path}:{m.line}:":
                draw = int(mutate.digest(seed, m.id)[:12], 16) + 1
                key = -math.log(draw / 16 ** 12) / WEIGHT.get(m.operator, 1)
                found[part].append((key, m.id, m))
    return {name: [m for _, _, m in sorted(items)]
            for name, items in found.items()}


def quotas(count):
    """Mutants of each part; they add up to `count`."""
    left, shares, result = count, sum(share for _, share, _ in PARTS), {}
    for name, share, _ in PARTS:
        result[name] = round(left * share / shares)
        left, shares = left - result[name], shares - share
    return result


class Results:
    """The last line of each mutant counts."""

    def __init__(self, work):
        self.path = os.path.join(work, "results.jsonl")
        self.of = {}
        if os.path.exists(self.path):
            with open(self.path, encoding="utf-8") as file:
                for line in file:
                    record = json.loads(line)
                    self.of[record["id"]] = record

    def add(self, record):
        self.of[record["id"]] = record
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


def readings(source):
    """Of (file name, old line, new line): what was found when it was read."""
    path, found = os.path.join(source, "tests", "mutants_read.txt"), {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            for entry in file.read().split("\n\n"):
                lines = [line for line in entry.split("\n")
                         if not line.startswith("#")]
                if len(lines) >= 4:
                    key = (lines[0], lines[1][2:], lines[2][2:])
                    found[key] = " ".join(lines[3:]).strip()
    return found


def reading_of(record, read):
    name = record["path"].rsplit("/", 1)[-1]
    return read.get((name, *record["change"]))


class Campaign:
    def __init__(self, work, source, options):
        self.tree = Tree(work, source)
        if not self.tree.build("build"):
            sys.exit("the tree does not build")
        self.results = Results(work)
        self.coverage = Coverage(self.tree, work, options.most)
        self.parts = ranked(self.tree, options.seed, options.only)
        self.quota = quotas(options.count)
        self.scripts = options.scripts
        self.chosen = []

    def taken(self, tests):
        """Those that are of use, the strong and the cheap ones first."""
        return sorted((t for t in tests if self.coverage.take(t)),
                      key=lambda t: (t.name not in STRONG,
                                     self.coverage.cost[t.name], t.name))

    def sanitized(self, tests):
        """The unit programs that run lines of survivors, with sanitizers."""
        left = [m for m, _ in self.chosen
                if self.results.of[m.id]["verdict"] == "survived"]
        return self.taken(
            sanitized(t) for t in tests if t.kind == "unit" and
            any(self.coverage.runs(t, m) for m in left))

    def compiled(self, mutant, original):
        """Writes a mutant: invalid, equivalent, or None if it counts."""
        before = self.tree.original_bytes(mutant.path)
        self.tree.write(mutant.path, mutate.apply(original, mutant))
        if not self.tree.build("build", [self.tree.object_of(mutant.path)]):
            return "invalid"
        if self.tree.object_bytes(mutant.path) == before:
            return "equivalent"
        return None

    def examine(self, mutant, tests, part):
        """Runs what has not been run of a mutant; its record."""
        old = self.results.of.get(mutant.id)
        ran = dict(old["ran"]) if old else {}
        due = [t for t in tests if ran.get(t.name) != t.digest and
               self.coverage.runs(t, mutant)]
        if old and (old["verdict"] != "survived" or not due):
            return old
        original = self.tree.text(mutant.path)
        start = children_cpu()
        try:
            verdict = self.compiled(mutant, original)
            by = None
            for test in due if verdict is None else ():
                self.tree.build(test.build, test.needs)
                run = self.tree.run(test.command,
                                    self.coverage.cost[test.name])
                if run.verdict != "passed":
                    verdict, by = "killed", f"{test.name}: {run.verdict}"
                    break
                ran[test.name] = test.digest
        finally:
            self.tree.write(mutant.path, original)
        record = {"id": mutant.id, "path": mutant.path, "line": mutant.line,
                  "part": part, "operator": mutant.operator,
                  "change": mutate.change_of(original, mutant),
                  "verdict": verdict or "survived", "by": by, "ran": ran,
                  "cpu": round(children_cpu() - start, 1)}
        self.results.add(record)
        say(describe(record))
        return record

    def choose(self, tests):
        """Takes mutants of each part until its quota is there."""
        for part, mutants in self.parts.items():
            counted = 0
            for mutant in mutants:
                if counted == self.quota[part]:
                    break
                record = self.examine(mutant, tests, part)
                if record["verdict"] in ("killed", "survived"):
                    counted += 1
                    self.chosen.append((mutant, part))

    def run(self, rounds):
        os.chdir(self.tree.folder)
        tests = self.taken(unit_tests())
        say(f"{len(tests)} unit programs")
        self.choose(tests if "unit" in rounds else [])
        if "script" in rounds:
            self.continue_with(self.taken(script_tests(self.scripts)))
        if "asan" in rounds:
            self.tree.configure("build-asan", "-DSANITIZE=ON",
                                "-DCMAKE_C_COMPILER=clang")
            self.continue_with(self.sanitized(tests))
        return [self.results.of[m.id] for m, _ in self.chosen]

    def continue_with(self, tests):
        say(f"{len(tests)} more tests")
        for mutant, part in self.chosen:
            self.examine(mutant, tests, part)


def describe(record):
    old, new = record["change"]
    text = f"{record['verdict']}: {record['path']}:{record['line']}: " \
        f"{record['operator']}"
    if record["by"]:
        return f"{text} ({record['by']})"
    if record["verdict"] != "survived":
        return text
    return f"{text}, {len(record['ran'])} tests\n  - {old}\n  + {new}"


def print_survivors(records, read):
    for record in records:
        if record["verdict"] == "survived":
            say(describe(record))
            say("  " + (reading_of(record, read) or "NOT READ"))


def print_table(records, read):
    """By part, and the score: per cent killed of those that were not read and
    found equivalent."""
    rows = collections.defaultdict(collections.Counter)
    for record in records:
        column = record["verdict"]
        if column == "survived":
            reason = reading_of(record, read) or "unread"
            column = "equivalent" if reason.startswith("equivalent") \
                else "survived" if reason != "unread" else "unread"
        for row in (record["part"], "all"):
            rows[row][column] += 1
    say(f"{'part':10} killed equivalent survived unread")
    for name in [name for name, _, _ in PARTS] + ["all"]:
        c = rows[name]
        say(f"{name:10} {c['killed']:6} {c['equivalent']:10} "
            f"{c['survived']:8} {c['unread']:6}")
    c = rows["all"]
    score = 100 * c["killed"] / max(sum(c.values()) - c["equivalent"], 1)
    say(f"{score:.1f} % of {sum(c.values()) - c['equivalent']} mutants killed")
    return score


def campaign(work, source, options):
    read = readings(source)
    if options.list:
        records = list(Results(work).of.values())
    else:
        os.makedirs(work, exist_ok=True)
        records = Campaign(work, source, options).run(options.rounds)
    print_survivors(records, read)
    return print_table([r for r in records
                        if r["verdict"] in ("killed", "survived")], read)


def parse(arguments):
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--work")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--rounds", default="unit,script,asan",
                        type=lambda text: text.split(","))
    parser.add_argument("--most", type=float, default=120)
    parser.add_argument("--scripts", default="",
                        type=lambda text: text.split(",") if text else [])
    parser.add_argument("--only", default="")
    return parser.parse_args(arguments)


def main():
    options = parse(sys.argv[1:])
    if len(sys.argv) == 1:
        import mutants_test
        return mutants_test.main()
    if options.work:
        return campaign(os.path.abspath(options.work), ROOT, options) < SCORE
    with tempfile.TemporaryDirectory() as work:
        return campaign(work, ROOT, options) < SCORE


if __name__ == "__main__":
    sys.exit(main())
