#!/usr/bin/env python3
"""mutants.py - whether the tests notice small mistakes in the sources.

Makes mutants of the core rooms (tests/mutate.py), by a seed, and runs for each
the tests that run its function, the cheapest first, until one fails. Works in a
copy of the tree, which is built once: a function has its mutants beside it, and
AMPHORA_MUTANT in the environment says which of all is meant.

  not counted  what does not compile, and what compiles to the same bytes
               (-O2, no debug information)
  killed       a test fails, or takes several times its processor time or memory
  survived     every test that runs the function passes; those that were read,
               and why they stay, are in tests/mutants_read.txt

Three rounds, each for those that the ones before left: unit programs, the
scripts of tests/all.py that take less than --most seconds, and the unit
programs with sanitizers. All results are lines of JSON in WORK/results.jsonl,
written as they come; a second run with the same folder goes on from there, and
runs of the survivors only tests that were not run or have changed since.

usage: mutants.py [options]
  --work FOLDER    folder for the copy and the results (else a temporary one)
  --count N        mutants, with those that compile to the same; else 200
  --seed TEXT      other mutants
  --rounds NAMES   of unit,script,asan; else all
  --jobs N         mutants at a time; else 1
  --most SECONDS   of processors that a test may take; else 120
  --names NAMES    of tests: these alone
  --tests N        of a round, for each mutant; else all
  --only TEXT      only mutants with this in their place, as PATH:LINE:
  --list           only print survivors of the folder: place, change, reason
Closes with a table by room and the score; exits 1 if it is less than 90 %.
Without an option it tests itself, on a tree of one room; ./test does that, and
./test --long runs it with --long, which is the campaign as it stands here.
"""
import argparse
import collections
import concurrent.futures
import glob
import hashlib
import json
import math
import os
import re
import resource
import shlex
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

# Rooms of the core, and their shares of the mutants.
SHARES = {"hwspec": 14, "graph": 8, "passes": 11, "sched": 6, "pack": 11,
          "geometry": 5, "plan": 7, "alloc": 18, "codegen": 8, "sim": 12}
# How often an operator is taken, beside the others.
WEIGHT = {"order": 0.1, "constant": 0.6, "statement": 0.6, "result": 0.6,
          "bits": 2, "extreme": 2}
# Scripts that look at the text of the sources, build on their own, or are this.
SKIPPED = {"lint", "library", "llvm", "mutants", "layout_mutants"}
# What scripts are told, to end at the first difference; in parts, each a test
# of its own, for a mutant is often seen by the first.
FIGURES = 20
FIRST = {"farm": [["--first"]],
         "figures": [["--first", "--share", f"{k}/{FIGURES}"]
                     for k in range(FIGURES)]}

# Of a test on a mutant: processor seconds and real ones, over those that it
# takes by itself, and bytes of memory.
CPU_FACTOR, CPU_MORE = 4, 3
WALL_FACTOR, WALL_MORE = 60, 120
MEMORY = 4 << 30
FILE_BYTES = 1 << 30

Test = collections.namedtuple("Test", "name kind command digest")
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
        start, wait, verdict = time.monotonic(), 0.01, None
        while verdict is None:
            pid, status, used = os.wait4(process.pid, os.WNOHANG)
            if pid:
                process.returncode = os.waitstatus_to_exitcode(status)
                verdict = "failed" if process.returncode else "passed"
                break
            time.sleep(wait)
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
    return Run(verdict, used.ru_utime + used.ru_stime)


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


def refresh(source, copy, texts):
    """Makes `copy` hold the files of `source`, with `texts` in place of some;
    those that are the same keep their time. Build folders in it stay."""
    wanted = {path for path in tracked(source)
              if os.path.isfile(os.path.join(source, path))}
    for path in wanted:
        old, new = os.path.join(copy, path), os.path.join(source, path)
        content = texts[path].encode() if path in texts else read_bytes(new)
        if os.path.exists(old) and read_bytes(old) == content:
            continue
        os.makedirs(os.path.dirname(old), exist_ok=True)
        with open(old, "wb") as file:
            file.write(content)
        shutil.copymode(new, old)
    for at, folders, names in os.walk(copy):
        folders[:] = [f for f in folders if not f.startswith("build")]
        for name in names:
            path = os.path.join(at, name)
            if os.path.relpath(path, copy) not in wanted:
                os.remove(path)


def read_bytes(path):
    with open(path, "rb") as file:
        return file.read()


# A kind of build of our own, without debug information or warnings.
OPTIONS = ["-DCMAKE_BUILD_TYPE=Mutants", "-DCMAKE_C_FLAGS_MUTANTS=-O2 -w"]


class Tree:
    """A copy with builds in which all mutants are, and single files made by
    themselves."""

    def __init__(self, work, source):
        self.source, self.work = source, work
        self.folder = os.path.join(work, "tree")
        self.texts = {}
        for path in sorted(tracked(source)):
            if path.endswith(".c") and path.split("/")[0] in SHARES:
                self.texts[path] = read_bytes(
                    os.path.join(source, path)).decode()
        beside = os.path.join(os.path.dirname(source), "shared")
        link = os.path.join(work, "shared")
        if os.path.exists(beside) and not os.path.exists(link):
            os.symlink(os.path.realpath(beside), link)
        if not os.path.exists(self.folder):
            refresh(source, self.folder, {})
        self.configure("build", *OPTIONS)
        self.commands = self.compilers()
        self.originals = {}

    def configure(self, name, *options):
        if os.path.exists(os.path.join(self.folder, name, "build.ninja")):
            return
        command = ["cmake", "-S", ".", "-B", name, "-G", "Ninja", *options]
        done = subprocess.run(command, cwd=self.folder, capture_output=True,
                              text=True, check=False)
        if done.returncode:
            sys.exit(done.stdout + done.stderr)

    def build(self, name):
        done = subprocess.run(["ninja", "-C", name, "-j", "2"], text=True,
                              cwd=self.folder, capture_output=True, check=False)
        if done.returncode:
            sys.exit(done.stdout[-4000:])

    def compilers(self):
        """Of each room, the command that compiles a file of it."""
        listed = subprocess.run(["ninja", "-C", "build", "-t", "compdb"],
                                cwd=self.folder, capture_output=True, text=True,
                                check=True).stdout
        found = {}
        for entry in json.loads(listed[listed.index("["):]):
            file = os.path.realpath(os.path.join(entry["directory"],
                                                 entry["file"]))
            room = os.path.relpath(file, os.path.realpath(self.folder))
            room = room.split("/")[0]
            if f"/{room}.dir/{room}/" in entry.get("output", ""):
                words = shlex.split(entry["command"])
                while words and "ccache" in words[0]:
                    del words[0]
                found[room] = [w for w in words if w != "-MD"]
        return found

    def compile(self, path, text, *options):
        """A source by itself, with what its room is compiled with: whether
        that works, and the bytes."""
        command = list(self.commands[path.split("/")[0]])
        with tempfile.TemporaryDirectory(dir=self.work) as folder:
            file = os.path.join(folder, os.path.basename(path))
            made = os.path.join(folder, "made.o")
            with open(file, "w", encoding="utf-8") as out:
                out.write(text)
            for flag in ("-o", "-c", "-MF", "-MT"):
                if flag in command:
                    at = command.index(flag)
                    del command[at:at + 2]
            command += ["-frandom-seed=1", *options, "-o", made, "-c",
                        os.path.basename(path)]
            command += ["-iquote", os.path.join(self.folder,
                                                os.path.dirname(path))]
            done = subprocess.run(command, cwd=folder, capture_output=True,
                                  check=False)
            good = done.returncode == 0
            return good, read_bytes(made) if os.path.exists(made) else b""

    def valid(self, mutant):
        """Whether a mutant compiles without the warnings that are errors."""
        text = mutate.apply(self.texts[mutant.path], mutant)
        return self.compile(mutant.path, text, "-fsyntax-only", "-Wall",
                            "-Wextra", "-Werror")[0]

    def same(self, mutant):
        """Whether a mutant compiles to the same bytes as the source."""
        path, text = mutant.path, self.texts[mutant.path]
        if path not in self.originals:
            self.originals[path] = self.compile(path, text)[1]
        good, made = self.compile(path, mutate.apply(text, mutant))
        return good and made == self.originals[path]

    def plant(self, chosen):
        """Builds the tree with these mutants; the number of each by its id."""
        number = {mutant.id: i for i, mutant in enumerate(chosen)}
        of = collections.defaultdict(list)
        for mutant in chosen:
            of[mutant.path].append(mutant)
        refresh(self.source, self.folder, {
            path: mutate.with_all(path, self.texts[path], mutants, number)
            for path, mutants in of.items()})
        self.build("build")
        return number

    def run(self, command, mutant, cpu=0.0, factor=CPU_FACTOR, more=CPU_MORE,
            **environment):
        with tempfile.TemporaryDirectory(dir=self.work) as scratch:
            environment = dict(os.environ, TMPDIR=scratch,
                               OPENBLAS_NUM_THREADS="1",
                               AMPHORA_MUTANT=str(mutant), **environment)
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
        for own in glob.glob(f"tests/{room}/**/{name}.c", recursive=True):
            yield Test(program, "unit", command, digest_of(read_by(own)))


def read_by(path, seen=()):
    """A test's source, and the files of tests/ that it names, headers and
    what these name."""
    with open(path, encoding="utf-8") as file:
        named = re.findall(r'"(tests/[\w./-]+)"', file.read())
    for name in {path, *named} - {*seen}:
        seen = {*seen, name}
        if name.endswith(".h") and os.path.isfile(name):
            seen |= read_by(name, seen)
    return seen


def sanitized(test):
    """A unit program with sanitizers."""
    return test._replace(name="asan " + test.name, kind="asan",
                         command=["build-asan/" + test.name])


def script_tests(only):
    files = [path for folder in ("tests", "bench")
             for path in glob.glob(f"{folder}/*.py")]
    shared = digest_of(files + glob.glob("tests/cli/*"))
    for name, command in suite.scripts(False):
        if name not in SKIPPED and name in (only or [name]):
            for how in FIRST.get(name, [[]]):
                yield Test(" ".join([name] + how[2:]).replace("/", " of "),
                           "script", command + how, shared)


class Reached:
    """Costs of tests and the functions that they run; kept in WORK/reached."""

    def __init__(self, tree, work, chosen, most):
        self.tree, self.most = tree, most
        self.folder = os.path.join(work, "reached")
        os.makedirs(self.folder, exist_ok=True)
        text = "".join(sorted(m.id for m in chosen)) + \
            "".join(tree.texts[path] for path in sorted(tree.texts))
        self.digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        self.cost, self.ran = {}, {}

    def measure(self, test):
        """Cost of a test without mutants, and the numbers of those it runs."""
        at = os.path.join(self.tree.work, f"numbers-{test.name}")
        open(at, "w", encoding="utf-8").close()
        run = self.tree.run(test.command, -2, more=self.most,
                            AMPHORA_REACHED=at)
        with open(at, encoding="utf-8") as file:
            numbers = sorted(set(map(int, file.read().split())))
        os.remove(at)
        return {"verdict": run.verdict, "cost": max(run.cpu, 0.01),
                "numbers": numbers}

    def take(self, test):
        """Whether a test is of use; measures it where that was not done."""
        path = os.path.join(self.folder,
                            f"{test.name}-{test.digest}-{self.digest}.json")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                found = json.load(file)
        else:
            found = self.measure(test)
            with open(path, "w", encoding="utf-8") as file:
                json.dump(found, file)
            say(f"{test.name}: {found['cost']:.1f} s, {found['verdict']}")
        self.cost[test.name] = found["cost"]
        self.ran[test.name] = set(found["numbers"])
        return found["verdict"] == "passed" and found["cost"] <= self.most


# ---- The campaign

def say(text):
    print(text, flush=True)


def ranked(tree, seed, only):
    """Of each room, its mutants in the order that they are taken in."""
    found = {name: [] for name in SHARES}
    for path, text in tree.texts.items():
        room = path.split("/")[0]
        for m in mutate.sites(path, text) if room in tree.commands else ():
            if only in f"{m.path}:{m.line}:":
                draw = int(mutate.digest(seed, m.id)[:12], 16) + 1
                key = -math.log(draw / 16 ** 12) / WEIGHT.get(m.operator, 1)
                found[room].append((key, m.id, m))
    return {name: [m for _, _, m in sorted(items)]
            for name, items in found.items()}


def quotas(count):
    """Mutants of each room; they add up to `count`."""
    left, shares, result = count, sum(SHARES.values()), {}
    for name, share in SHARES.items():
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
        say(describe(record))
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
        self.tree, self.options = Tree(work, source), options
        self.results = Results(work)
        self.chosen = self.choose(ranked(self.tree, options.seed, options.only))
        say(f"building with {len(self.chosen)} mutants")
        self.number = self.tree.plant(self.chosen)
        self.reached = Reached(self.tree, work, self.chosen, options.most)

    def choose(self, rooms):
        """Takes mutants of each room that compile, until its quota is there."""
        chosen, quota = [], quotas(self.options.count)
        for room, mutants in rooms.items():
            for mutant in mutants:
                if quota[room] and self.compiles(mutant):
                    quota[room] -= 1
                    chosen.append(mutant)
        return chosen

    def compiles(self, mutant):
        old = self.results.of.get(mutant.id)
        if old:
            return old["verdict"] != "invalid"
        if self.tree.valid(mutant):
            return True
        self.record(mutant, "invalid", None, {})
        return False

    def record(self, mutant, verdict, by, ran):
        change = mutate.change_of(self.tree.texts[mutant.path], mutant)
        self.results.add({
            "id": mutant.id, "path": mutant.path, "line": mutant.line,
            "part": mutant.path.split("/")[0], "operator": mutant.operator,
            "change": change, "verdict": verdict, "by": by, "ran": ran})

    def taken(self, tests):
        """Those that are of use, the cheap ones first."""
        tests = [t for t in self.parallel(
            lambda t: t if self.reached.take(t) else None, tests) if t]
        say(f"{len(tests)} tests")
        return sorted(tests, key=lambda t: (self.reached.cost[t.name], t.name))

    def parallel(self, call, items):
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            return list(pool.map(call, items))

    def examine(self, mutant, tests):
        """Runs what has not been run of a mutant."""
        old = self.results.of.get(mutant.id)
        ran = dict(old["ran"]) if old else {}
        number = self.number[mutant.id]
        due = [t for t in tests if ran.get(t.name) != t.digest and
               number in self.reached.ran[t.name]]
        if old and (old["verdict"] != "survived" or not due):
            return
        verdict, by = "survived", None
        for test in due[:self.options.tests]:
            run = self.tree.run(test.command, number,
                                self.reached.cost[test.name])
            if run.verdict != "passed":
                verdict, by = "killed", f"{test.name}: {run.verdict}"
                break
            ran[test.name] = test.digest
        if not old and verdict == "survived" and self.tree.same(mutant):
            verdict = "equivalent"
        self.record(mutant, verdict, by, ran)

    def round(self, tests):
        tests = self.taken(tests)
        self.parallel(lambda mutant: self.examine(mutant, tests), self.mixed())

    def mixed(self):
        """The mutants with those of all rooms side by side, so that what is
        told early is told of all."""
        of = collections.defaultdict(list)
        for mutant in self.chosen:
            of[mutant.path.split("/")[0]].append(mutant)
        return [m for _, m in sorted(
            (i / len(own), m) for own in of.values()
            for i, m in enumerate(own))]

    def run(self, rounds):
        os.chdir(self.tree.folder)
        only = self.options.names
        units = [t for t in unit_tests() if t.name in (only or [t.name])]
        if "unit" in rounds:
            self.round(units)
        if "script" in rounds:
            self.round(script_tests(only))
        if "asan" in rounds:
            self.tree.configure("build-asan", "-DSANITIZE=ON",
                                "-DCMAKE_C_COMPILER=clang", *OPTIONS)
            self.tree.build("build-asan")
            self.round(map(sanitized, units))
        return [self.results.of[m.id] for m in self.chosen
                if m.id in self.results.of]


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
    for name in [*SHARES, "all"]:
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
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--tests", type=int)
    parser.add_argument("--most", type=float, default=120)
    parser.add_argument("--names", default="",
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
