"""checks.py - what must hold of a network on a machine, by amphora's commands.

Each check is a function of a Point that raises Wrong; CHECKS names them. They
share what was compiled already: the first is `plan`.
"""
import array
import ast
import json
import os
import re
import resource
import subprocess
import time

from . import graphs, onnx

AMPHORA = os.path.abspath(os.environ.get("AMPHORA", "build/amphora"))
CPU_SECONDS = 10
WALL_SECONDS = 300      # of a machine that others use as well
BYTES = 2 << 30
LIMITED = "FARM_NO_LIMITS" not in os.environ  # sanitizers need more memory
TOLERANCE = 1e-3
OCTAVE = 4  # sizes of the grid on which plans are made


class Wrong(Exception):
    """What does not hold: a kind, and what was seen."""

    def __init__(self, kind, text):
        super().__init__(f"{kind}: {text}")
        self.kind, self.text = kind, text

    def signature(self):
        """The same of two failures of one origin, as far as one can tell."""
        text = re.sub(r"'[^']*'|\"[^\"]*\"|\([^)]*\)", "*", self.text)
        text = re.sub(r"after \d+ seconds", "for long", text)
        text = re.sub(r"\bn\d+\w*|\S+\.(json|yaml|cmd|onnx)\S*", "*", text)
        return self.kind, re.sub(r"-?[\d.,]*\d(e[-+]\d+)?\w*", "N", text)[:90]


class Run:
    """What a command did."""

    def __init__(self, command, code, out, err, seconds):
        self.command, self.code = command, code
        self.out, self.err, self.seconds = out, err, seconds

    def json(self):
        return json.loads(self.out)


def limit(process):
    """From outside: a function in the child would have Python fork all of
    itself for each command."""
    for what, most in ((resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1)),
                       (resource.RLIMIT_AS, (BYTES, BYTES)),
                       (resource.RLIMIT_CORE, (0, 0))):
        try:
            resource.prlimit(process.pid, what, most)
        except ProcessLookupError:  # so soon done
            return


class Point:
    """A network and a machine as files in a folder, and how to compile."""

    def __init__(self, folder, name, options=(), farm=None):
        self.folder, self.name = folder, name
        self.options, self.farm = list(options), farm or {}
        self.sets = []          # that made it fit
        self.compiled = None    # JSON of compile
        self.verified = None    # JSON of verify
        self.listing = None

    @property
    def net(self):
        return self.name + ".json"

    def run(self, *arguments, may=(0,)):
        """An amphora command; Wrong where it exits otherwise than it may."""
        command = [AMPHORA, *arguments]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with subprocess.Popen(
                command, cwd=self.folder, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True, errors="replace",
                stdin=subprocess.DEVNULL) as done:
            if LIMITED:
                limit(done)
            try:
                out, err = done.communicate(timeout=WALL_SECONDS)
            except subprocess.TimeoutExpired:
                done.kill()
                raise Wrong("endless", f"{arguments[0]} after "
                            f"{WALL_SECONDS} seconds") from None
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = (after.ru_utime + after.ru_stime - before.ru_utime
                - before.ru_stime)
        run = Run(command, done.returncode, out, err, used)
        self.judge(run, arguments[0], may)
        return run

    @staticmethod
    def judge(run, what, may):
        said = run.err.strip().split("\n")[0][:300]
        if run.code in (-24, -9):
            raise Wrong("endless", f"{what} after {CPU_SECONDS} seconds")
        if run.code < 0 or run.code not in (0, 1, 3):
            raise Wrong("crash", f"{what} exits with {run.code}: {said}")
        if run.code not in may:
            raise Wrong("refused", f"{what} exits with {run.code}: {said}")
        if run.code == 1 and run.out[:1] != "{" and not re.search(
                r"\S+: error: ", run.err):
            raise Wrong("refused", f"{what} without a place: {said}")

    def target(self):
        return ["-t", self.name + ".yaml", *self.options, *self.sets]


# ---- compiling ----

ADVICE = re.compile(r"--set (\S+)=(\S+) would do(?:; (\S+) would not)?")


def plan(point):
    """Compiled; where it does not fit, with what would do. False: the machine
    or the network is refused with a reason."""
    point.run("check", point.name + ".yaml", may=(0, 1))
    run = compile_to(point, "out", may=(0, 1, 3))
    if run.code == 1:
        if re.search(r"\.yaml:\d+:\d+: error: ", run.err):
            return False
        raise Wrong("refused", "compile: " + run.err.split("\n")[0][:300])
    if run.code == 3:
        advice(point, run)
        if not point.sets:
            return False
        run = compile_to(point, "out")
    point.compiled = run.json()
    if point.compiled["rejected"]:
        raise Wrong("illegal", f"{point.compiled['rejected']} better plans "
                    "were found illegal")
    point.listing = os.path.join(point.name + ".out", point.name + ".cmd")
    return True


def compile_to(point, suffix, *more, net=None, may=(0,)):
    return point.run("compile", net or point.net, *point.target(), *more,
                     "-o", f"{point.name}.{suffix}", "--json", may=may)


def advice(point, refused):
    """What is said of a size is true; the point goes on with one that would
    do."""
    if "no plan was found that is legal" in refused.err:
        raise Wrong("illegal", "it fits, and no plan is legal")
    found = ADVICE.findall(refused.err)
    if not found and " limit" not in refused.err and not re.search(
            r"instructions|backing|one piece|would (not )?do", refused.err):
        point.farm["silent"] = refused.err.split("\n")[0]
    first = None
    for key, good, bad in found:
        point.sets = ["--set", f"{key}={bad}"] if bad else []
        if bad and compile_to(point, "less", may=(0, 3)).code != 3:
            raise Wrong("advice", f"{bad} would not do, it says, and does")
        point.sets = ["--set", f"{key}={good}"]
        if compile_to(point, "more", may=(0, 1, 3)).code:
            raise Wrong("advice", f"{good} would do, it says, and does not")
        first = first or point.sets
    point.sets = first or []


# ---- running ----

def verify(point, *more):
    """What verify says, judged right."""
    run = point.run("verify", point.net, *point.target(), *more, "--json",
                    may=(0, 1))
    try:
        said = run.json()
    except ValueError:
        raise Wrong("values", run.err.split("\n")[0][:300]) from None
    if said.get("messages"):
        raise Wrong("values", said["messages"][0]["text"])
    if run.code or not said["ok"]:
        listed = said.get("violation_list", [])
        raise Wrong("values", listed[0]["text"] if listed and
                    isinstance(listed[0], dict) else str(listed[:1] or [
                        said.get("max_rel_error"), said.get("max_code_error"),
                        said.get("first_mismatch")]))
    return said


def values(point):
    """The listing computes what the network computes."""
    point.verified = verify(point, "--host", "interpret")


def native(point):
    """... also where the host's layers are machine code."""
    if point.farm.get("native"):
        try:
            verify(point, "--host", "native")
        except Wrong as wrong:
            raise Wrong("native", wrong.text) from None


FIGURES = ("am_peak_bytes", "ddr_read_bytes", "ddr_written_bytes", "cycles",
           "busy_cycles", "transfer_cycles", "instructions", "violations",
           "weights_read_bytes")


def replay(point):
    """The listing that was written, as text and as JSON, runs as verify said,
    and leaves what the reference computes."""
    out = point.name + ".values"
    for listing in point.listing, point.listing[:-3] + "json":
        if not os.path.exists(os.path.join(point.folder, listing)):
            raise Wrong("replay", f"no {listing}")
        run = point.run("simulate", listing, *target_only(point), "--json",
                        "--host", "interpret", "-o", out, may=(0, 1))
        try:
            said = run.json()
        except ValueError:
            raise Wrong("replay", run.err.split("\n")[0][:300]) from None
        if not said["ok"]:
            raise Wrong("replay", str(said["violation_list"][:1]))
        for figure in FIGURES if point.verified else ():
            if said[figure] != point.verified[figure]:
                raise Wrong("figures", f"{figure} is {said[figure]} in "
                            f"simulate, {point.verified[figure]} in verify")
        needed = point.verified and point.verified["ddr_compulsory_bytes"]
        if needed and said["ddr_compulsory_bytes"] < needed:
            raise Wrong("figures", f"{needed} bytes compulsory, of which the "
                        f"listing moves {said['ddr_compulsory_bytes']}")
    if seeded(point):
        same_outputs(point, out)


def target_only(point):
    """Of the options those that a listing needs as well."""
    return [*machine_only(point), *seed_only(point)]


def machine_only(point):
    return ["-t", point.name + ".yaml", *point.sets]


def seed_only(point):
    at = (point.options.index("--seed") if "--seed" in point.options
          else len(point.options))
    return point.options[at:at + 2]


def seeded(point):
    """Whether reference and listing are given the same inputs."""
    return not any(word in point.options for word in ("--images", "--batch"))


def same_outputs(point, out):
    """Outputs as .npy are those of `eval`, by a comparison of our own."""
    want = point.name + ".eval"
    point.run("eval", point.net, "-o", want, *seed_only(point))
    folder = os.path.join(point.folder, want)
    names = sorted(n for n in os.listdir(folder) if n.endswith(".npy"))
    for name in names:
        path = os.path.join(point.folder, out, name)
        if not os.path.exists(path):
            raise Wrong("replay", f"simulate writes no {name}")
        far = distance(npy(os.path.join(folder, name)), npy(path))
        if far > TOLERANCE:
            raise Wrong("replay", f"{name} is {far:.3g} off")


def npy(path):
    """(shape, numbers)"""
    with open(path, "rb") as file:
        data = file.read()
    size = int.from_bytes(data[8:10], "little")
    head = ast.literal_eval(data[10:10 + size].decode())
    letter = {"<f4": "f", "|i1": "b", "|u1": "B", "<i2": "h", "<f8": "d",
              "<i4": "i"}[head["descr"]]
    return head["shape"], array.array(letter, data[10 + size:])


def distance(a, b):
    """The largest difference, in units of the largest number."""
    if a[0] != b[0]:
        return float("inf")
    most = max((abs(x) for x in a[1] if x == x), default=0)
    if most == float("inf"):
        most = 1
    far = 0
    for x, y in zip(a[1], b[1]):
        if x != y and not (x != x and y != y):
            gap = abs(x - y)
            far = max(far, float("inf") if gap != gap else gap)
    return far / max(most, 1e-3)


def figures(point):
    """What compile counts is what the simulator counts."""
    v, c = point.verified, point.compiled
    moved = v["ddr_read_bytes"] + v["ddr_written_bytes"]
    cycles = (v["cycles_an_image"] if "--mode" in point.options
              else -(-v["cycles"] // cores(point)))
    pairs = (("moved", c.get("ddr_moved_bytes"), moved),
             ("moved, by verify", v.get("ddr_moved_bytes"), moved),
             ("cycles", c["cost"]["cycles"], cycles))
    for name, told, counted in pairs:
        if told not in (None, counted):
            raise Wrong("figures", f"{name}: {told} planned, {counted} "
                        "counted")
    bound = max(v.get(f"ddr_{kind}bound_bytes", 0)
                for kind in ("", "order_", "apart_"))
    if bound > moved:
        raise Wrong("bound", f"{bound} at least, {moved} moved")
    if v["am_peak_bytes"] > v["am_capacity_bytes"]:
        raise Wrong("figures", "more memory than there is")


def cores(point):
    """How many there are, each on an image of its own."""
    found = re.search(r"(?m)^cores: .*\bcount: (\d+)",
                      content(point, point.name + ".yaml").decode())
    return int(found[1]) if found else 1


def binary(point):
    """Encoded and decoded, twice. The bytes tell the lines of the text, so
    the second time these stay, too."""
    bits, text = point.name + ".bin", point.name + ".dis.cmd"
    target = machine_only(point)
    point.run("asm", point.listing, *target, "-o", bits)
    point.run("disasm", bits, *target, "-o", text)
    if bare(point, point.listing) != bare(point, text):
        raise Wrong("binary", "disasm gives another text")
    point.run("asm", text, *target, "-o", bits)
    point.run("disasm", bits, *target, "-o", text + "2")
    point.run("asm", text + "2", *target, "-o", bits + "2")
    if content(point, text) != content(point, text + "2"):
        raise Wrong("binary", "disasm gives another text the second time")
    if content(point, bits) != content(point, bits + "2"):
        raise Wrong("binary", "asm of what disasm gives: other bytes")


def content(point, path):
    with open(os.path.join(point.folder, path), "rb") as file:
        return file.read()


def bare(point, path):
    """The instructions, without comments."""
    lines = content(point, path).decode().split("\n")
    return [line.split(" #")[0].rstrip() for line in lines
            if line and not line.startswith("#")]


def same(point):
    """Once more, on one processor and in another folder: the same bytes."""
    others = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(others)})
    try:
        compile_to(point, "again")
    finally:
        os.sched_setaffinity(0, others)
    first = point.name + ".out"
    for name in sorted(os.listdir(os.path.join(point.folder, first))):
        a = content(point, os.path.join(first, name))
        b = content(point, os.path.join(point.name + ".again", name))
        if a.replace(b".out/", b".again/") != b:
            raise Wrong("same", f"another {name.split('.')[-1]}")


def further_of(name):
    """How many sizes down the second one is."""
    return 1 + sum(map(ord, name)) % 8


def objective(point):
    """No worse a plan than smaller sizes of the grid have, the next one and one
    further down, by what is asked for."""
    key, size = active(point)
    if not size or (by_place(point) and asked(point) != "bytes"):
        return
    below = grid_below(size)
    further = below
    for _ in range(point.farm.get("further", further_of(point.name))):
        further = grid_below(further)
    have = cost(point, point.compiled)
    for small in sorted({below, further} - {0}):
        point.sets = ["--set", f"{key}={small}"]
        run = compile_to(point, "below", may=(0, 1, 3))
        least = have if run.code or by_host(run.json()) > by_host(
            point.compiled) else cost(point, run.json())
        if have > least:
            raise Wrong("objective", f"{have} in {size} bytes, {least} in "
                        f"{small}")


def active(point):
    """(key, bytes) of the size of the one active memory, or two of None."""
    with open(os.path.join(point.folder, point.name + ".yaml"),
              encoding="ascii") as file:
        found = [line for line in file if "role: active" in line
                 or re.match(r"  (am|fast|bulk):", line)]
    size = re.match(r"  (\w+): .*\bsize: (\d+)", found[0]) if found else None
    if len(found) > 1 or not size:
        return None, None
    key = f"memories.{size[1]}.size"
    told = re.fullmatch(re.escape(key) + r"=(\d+)(\D*)", point.sets[-1] if
                        point.sets else f"{key}={size[2]}")
    units = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20}
    return key, int(told[1]) * units[told[2]] if told else None


def by_place(point):
    """Whether cycles depend on where volumes lie in a memory of this size, or
    on how large its buffers are."""
    text = content(point, point.name + ".yaml").decode()
    return re.search(r"partitions|buffers: \d|extends: (xdnn|math)", text)


def asked(point):
    words = point.options
    return (words[words.index("--objective") + 1]
            if "--objective" in words else "balanced")


def grid_below(size):
    """The largest size of the grid that is smaller."""
    if size <= OCTAVE:
        return 0
    power = 1 << ((size - 1).bit_length() - 1)
    return max(power * i // OCTAVE for i in range(OCTAVE, 2 * OCTAVE)
               if power * i // OCTAVE < size)


def by_host(made):
    """How many layers cost nothing that is counted here."""
    return len(made["host_layers"])


def cost(point, made):
    """By the point's objective, of which less is better: listings that the
    machine holds at once come first."""
    cycles, moved = made["cost"]["cycles"], made["cost"]["bytes"]
    return made.get("parts", 1) > 1, {"time": cycles, "bytes": moved}.get(
        asked(point), cycles ** 3 * moved)


def formats(point):
    """As an ONNX file: the same outputs, and a listing that is right."""
    if not point.farm.get("onnx"):
        return
    with open(os.path.join(point.folder, point.net),
              encoding="ascii") as file:
        net, _ = graphs.from_json(file.read())
    try:
        made = onnx.model(net)
    except onnx.Unknown:
        return
    path = os.path.join(point.folder, point.name + ".onnx")
    with open(path, "wb") as file:
        file.write(made)
    want, have = point.name + ".eval", point.name + ".onnx.eval"
    point.run("eval", point.net, "-o", want)
    point.run("eval", point.name + ".onnx", "-o", have)
    for name in net["outputs"]:
        a, b = (npy(os.path.join(point.folder, folder, name + ".npy"))
                for folder in (want, have))
        far = distance(a, b)
        if far > TOLERANCE:
            raise Wrong("onnx", f"{name} is {far:.3g} off")
    run = point.run("verify", point.name + ".onnx", *point.target(), "--json",
                    "--host", "interpret", may=(0, 1, 3))
    if run.code == 1:
        raise Wrong("onnx", "verify is wrong")


def pages(point):
    """Commands that tell of a network or a plan; they must not fail."""
    for words in point.farm.get("pages", ()):
        command, *more = words
        if "--emit" in more and "--images" in point.options:
            continue  # of listings alone
        if command == "compile":
            compile_to(point, "page", *more,
                       may=(0, 1) if "--emit" in more else (0,))
        else:
            point.run(command, point.net, *point.target(), *more)


CHECKS = {"values": values, "native": native, "figures": figures,
          "replay": replay, "binary": binary, "same": same,
          "formats": formats, "pages": pages, "objective": objective}


def judge(point, only=None):
    """(a Wrong, or None; whether the point was compiled)"""
    try:
        if not plan(point):
            return None, False
        for name, check in CHECKS.items():
            if name == "values" or only in (None, name):
                if name != "values" or only not in ("same", "binary", "pages"):
                    check(point)
    except Wrong as wrong:
        return wrong, True
    return None, True


def elapsed(start):
    return time.monotonic() - start
