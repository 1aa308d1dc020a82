"""truthlib.py - what truth_caffe.py and truth_onnx.py have in common.

Seeded numbers, .npy files, protobuf fields, amphora's answer to --expect, and
the table. Needs nothing but Python, so that recorded values can be checked
where no other runtime is installed.
"""
import array
import fcntl
import json
import os
import random
import subprocess
import struct
import sys
import tempfile
import zlib

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
MACHINE = "xdnn-v3-96"
TOLERANCE = 1e-4
EXPORTED = "out/truth"  # whatever is fetched or made for --long
PYTHON = "/usr/bin/python3"  # Debian's, which has Debian's modules
FEW = 1 << 20  # numbers; for more of them numpy is worth its start


def prepare_long():
    """Other runtimes for --long: Debian's packages and Debian's Python. One
    script at a time, since two are started together."""
    os.makedirs(EXPORTED, exist_ok=True)
    with open(EXPORTED + "/.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run(["sh", "-c", ". tools/setup.sh; "
                        "install_packages $long_packages; install_node"], check=True)
    if os.path.realpath(sys.executable) != os.path.realpath(PYTHON):
        os.execv(PYTHON, [PYTHON, *sys.argv])


def asked():
    """(record, long, wanted names) of the command line; for --long and
    --record other runtimes are made ready."""
    record = "--record" in sys.argv[1:]
    long = record or "--long" in sys.argv[1:]
    wanted = [a for a in sys.argv[1:] if not a.startswith("-")]
    if long:
        prepare_long()
    return record, long, wanted


def draw(name, n, low, high):
    """n float32 values in [low, high) as bytes; they depend on name alone."""
    seed = zlib.crc32(name.encode())
    if n <= FEW:
        number = random.Random(seed).random
        return array.array(
            "f", [low + (high - low) * number() for _ in range(n)]).tobytes()
    import numpy
    values = numpy.random.RandomState(seed).random_sample(n)
    return (low + (high - low) * values).astype("<f4").tobytes()


def count(shape):
    n = 1
    for dim in shape:
        n *= dim
    return n


# ---- .npy of float32 ----

def npy_write(path, shape, data):
    dims = "".join(f"{dim}," for dim in shape)
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({dims}), }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)))
        file.write(head.encode() + data)


# ---- protobuf, for what is written by hand ----

def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, value):
    """One field: bytes, text, or a whole number."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value & (1 << 64) - 1)
    if isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


# ---- amphora ----

class Refused(Exception):
    """amphora did not take the network; the text says why."""


def amphora(*arguments):
    """(exit code, what it printed as JSON)."""
    done = subprocess.run([AMPHORA, *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    errors = done.stderr.decode(errors="replace").strip()
    try:
        return done.returncode, json.loads(done.stdout)
    except ValueError:
        raise Refused(f"exit {done.returncode}: {errors}") from None


def graph_of(path, *options):
    with scratch() as folder:
        file = folder + "/net.json"
        done = subprocess.run(
            [AMPHORA, "show", path, "--emit", "json", "-o", file, *options],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if not os.path.exists(file):
            raise Refused(done.stdout.decode(errors="replace"))
        with open(file) as written:
            return json.load(written)


def outline(path, *options):
    """Layers, and (name, shape) of each input and output."""
    code, report = amphora("show", path, "--json", *options)
    if code or "inputs" not in report:
        raise Refused("; ".join(m["text"] for m in report.get("messages", [])))
    ends = [[(end["name"], [int(d) for d in end["shape"].split("x") if
                            d.isdigit()]) for end in report[kind]]
            for kind in ("inputs", "outputs")]
    return report["layers"], *ends


def verify(path, inputs, expected, *options):
    """The report of `verify`: reference evaluation and simulated listing
    against values in .npy files."""
    arguments = ["verify", path, "-t", MACHINE, "--json"]
    for file in inputs:
        arguments += ["--input", file]
    for file in expected:
        arguments += ["--expect", file]
    _, report = amphora(*arguments, *options)
    if "expect_error_reference" not in report:
        raise Refused("; ".join(m["text"] for m in report.get("messages", []))
                      or json.dumps(report))
    return report


def with_record(path, sizes, values, record):
    """Recorded values, which those just computed must equal to a rounding."""
    if record:
        with open(path, "wb") as file:
            file.write(b"".join(values))
    with open(path, "rb") as file:
        data = file.read()
    if len(data) != 4 * sum(sizes):
        raise Refused(f"{path}: {len(data) // 4} values, not {sum(sizes)}")
    then = array.array("f", data)
    now = array.array("f", b"".join(values) if values else data)
    if any(abs(a - b) > 1e-5 * max(1, abs(b)) for a, b in zip(now, then)):
        raise Refused(f"no longer what is recorded in {path}")
    ends = [sum(sizes[:i + 1]) for i in range(len(sizes))]
    return [then[end - n:end].tobytes() for n, end in zip(sizes, ends)]


# ---- the table ----

class Table:
    """One line a network; counts those that disagree."""

    def __init__(self, other):
        self.rows = self.bad = 0
        print(f"{'network':34} {'nodes':>5} {'values':>8} "
              f"{'reference':>9} {'listing':>9} {'ms':>6}   against {other}",
              flush=True)

    def add(self, name, nodes, values, report):
        reference = report["expect_error_reference"]
        listing = report["expect_error_listing"]
        self.rows += 1
        agree = (max(reference, listing) <= TOLERANCE and
                 not report["first_mismatch"] and not report["violations"])
        self.bad += not agree
        print(f"{name:34} {nodes:5} {values:8} {reference:9.1e} "
              f"{listing:9.1e} {sum(report['ms'].values()):6.0f}"
              f"{'' if agree else '   DISAGREES'}", flush=True)

    def fail(self, name, why):
        self.rows += 1
        self.bad += 1
        print(f"{name:34} FAILED {why}", flush=True)

    def skip(self, name, why):
        print(f"{name:34} skipped: {why}", flush=True)

    def close(self):
        print(f"{self.rows - self.bad} of {self.rows} agree", flush=True)
        return self.bad > 0


def run_jobs(table, jobs, wanted):
    """Calls run(table, *arguments) of each (name, run, arguments), or of those
    that are wanted; what is refused is a row that fails."""
    for name, run, arguments in jobs:
        if wanted and name not in wanted:
            continue
        try:
            run(table, *arguments)
        except Refused as error:
            table.fail(name, error)



def scratch():
    """A folder that is removed when the returned object goes."""
    return tempfile.TemporaryDirectory(prefix="amphora-truth-")
