#!/usr/bin/env python3
"""api.py - libamphora and the Python package say what the command says.

Plans, listings, values and messages of the library against those of
build/amphora; two sessions in two threads; a C program that is compiled against
the header.
"""
import json
import os
import re
import struct
import subprocess
import sys
import sysconfig
import tempfile
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
os.chdir(ROOT)
os.environ.setdefault("AMPHORA_LIBRARY",
                      os.path.join(ROOT, "build", "libamphora.so.1"))
sys.path.insert(0, os.path.join(ROOT, "python"))
import amphora  # noqa: E402

TINY = "examples/tiny.prototxt"
C_PROGRAM = r"""
#include <amphora/amphora.h>
#include <stdio.h>
static int watch(void *context, double share, uint64_t cycles) {
    (void)cycles;
    *(int *)context += 1;
    return share >= 0;
}
int main(void) {
    amphora_session *s = amphora_session_new();
    const char *set[] = {"memories.am.size=2MiB", NULL};
    amphora_options o = {.settings = set, .objective = "bytes"};
    amphora_plan *p = amphora_compile(s, "examples/tiny.prototxt",
                                      "xdnn-v2-28", &o);
    if (!p || amphora_message_count(s))
        return 1;
    printf("%s", amphora_listing_text(p));
    int right = amphora_verify(s, p);
    amphora_plan_free(p);
    if (amphora_compile(s, "missing.onnx", "xdnn-v2-28", NULL) ||
        amphora_message_count(s) != 1)
        return 2;
    amphora_messages_clear(s);
    int calls = 0;
    amphora_session_watch(s, watch, &calls);
    if (amphora_compile(s, "examples/tiny.prototxt", "xdnn-v2-28", NULL) ||
        calls != 1 || amphora_message_count(s) != 1)
        return 4;
    amphora_messages_clear(s);
    int left = amphora_message_count(s);
    amphora_session_free(s);
    return right == 1 && left == 0 ? 0 : 3;
}
"""


def command(*arguments):
    done = subprocess.run(["build/amphora", *arguments], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def check(good, what):
    if not good:
        raise AssertionError(what)


def test_version():
    check(amphora.version() + "\n" == command("--version")[1], "version")


def test_manual():
    """A page for each command, and completions that shells can read."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["sh", "tools/manual.sh", "build/amphora", folder],
                       check=True)
        names = os.listdir(folder)
        help_text = command("--help")[1]
        pages = [n[8:-2] for n in names if n.startswith("amphora-")]
        check(len(pages) >= 11, pages)
        for page in pages:
            check(f"  {page} " in help_text, page)
            for option in ("--json", "--help"):
                with open(os.path.join(folder, f"amphora-{page}.1"),
                          encoding="utf-8") as file:
                    check(option.replace("-", "\\-") in file.read(),
                          (page, option))
        subprocess.run(["bash", "-n", os.path.join(folder, "amphora.bash")],
                       check=True)


def test_meant():
    """Wrong words are told with the right ones."""
    for arguments, meant in (
            (["compile", TINY, "--raport", "x"], "did you mean --report?"),
            (["compile", TINY, "--vary", "x"], "it is one of explore"),
            (["compille", TINY], "did you mean compile"),
            (["compile", TINY, "-t", "xdnn-v2-82"], "did you mean `xdnn-v2-28`"),
            (["compile", "xdnn-v2-28", "-t", TINY],
             "network and machine are swapped"),
            (["check", "xdnn-v2-28", "--set", "memories.am.sise=1"],
             "did you mean `size`?")):
        code, _, errors = command(*arguments)
        check(code in (1, 2) and meant in errors, (arguments, errors))


def test_plan():
    plan = amphora.compile(TINY, "xdnn-v2-28")
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = os.path.join(folder, "a"), os.path.join(folder, "b")
        plan.write(ours)
        said = json.loads(command("compile", TINY, "-t", "xdnn-v2-28", "-o",
                                  theirs, "--json")[1])
        for name in ("tiny.cmd", "tiny.json", "tiny.weights"):
            with open(os.path.join(ours, name), "rb") as a, \
                    open(os.path.join(theirs, name), "rb") as b:
                check(a.read() == b.read(), name)
    check(plan.cost == said["cost"], "cost")
    check(plan.report["am_bytes"] == said["am_bytes"], "am_bytes")
    check(plan.verify(), "verify")
    check([v["tensor"] for v in plan.volumes].count("conv1") == 1, "volumes")
    check(len(plan.listing) == said["records"], "records")
    check(plan.listing[1]["text"] in plan.text, "text")
    check(plan.svg().startswith("<svg"), "svg")


def test_values():
    image = [(i * 29 % 17 - 8) / 8 for i in range(3 * 16 * 16)]
    plan = amphora.compile(amphora.Network(TINY), amphora.Machine(
        "xdnn-v2-28", {"memories.am.size": "1MiB"}), objective="bytes")
    said = plan.simulate([image])
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.npy")
        head = ("{'descr': '<f4', 'fortran_order': False, "
                "'shape': (1, 3, 16, 16)}").ljust(117) + "\n"
        with open(path, "wb") as file:
            file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) +
                       head.encode() + struct.pack("<768f", *image))
        command("eval", TINY, "--input", path, "-o", folder)
        with open(os.path.join(folder, "probability.npy"), "rb") as file:
            wanted = struct.unpack("<10f", file.read()[-40:])
    got = said["outputs"]["probability"]
    check(said["ok"] and len(got) == 10, "simulate")
    check(max(abs(a - b) for a, b in zip(got, wanted)) < 1e-5, "values")


def test_recompute():
    """More products, fewer bytes, as `--recompute` has it."""
    machine = amphora.Machine("line-npu", {"memories.am.size": "128KiB",
                                           "tiling.weights_stay": "true"})
    plans = [amphora.compile("examples/vgg-e-stem.prototxt", machine,
                             objective="bytes", recompute=times)
             for times in (1, 1.1)]
    said = [plan.report for plan in plans]
    check(said[1]["ddr_moved_bytes"] < said[0]["ddr_moved_bytes"], "bytes")
    check(said[0]["products"] < said[1]["products"] <=
          1.1 * said[0]["products"], "products")
    try:
        amphora.compile(TINY, machine, recompute=0.5)
    except amphora.Error as error:
        check("--recompute" in str(error), error)
    else:
        check(False, "fewer products than the network's")


def test_errors():
    for arguments in ((TINY, "./no-such.yaml"), ("no-such.onnx", "null"),
                      (TINY, amphora.Machine("xdnn-v2-28",
                                             {"memories.am.sise": 1}))):
        try:
            amphora.compile(*arguments)
        except amphora.Error as error:
            check(error.messages[0].kind == "error", error)
        else:
            check(False, arguments)
    rows = amphora.explore([TINY], "xdnn-v2-28",
                           {"memories.am.size": ["512", "64KiB", "1MiB"]})
    check("error" in rows[0] and "fit" in rows[0]["error"], rows[0])
    check(rows[2]["cycles"] <= rows[1]["cycles"], rows)


def test_watch():
    """A search says how far it is, and ends when it is told to."""
    seen = []

    def watch(share, cycles):
        seen.append((share, cycles))

    machine = amphora.Machine("xdnn-v2-28", {"memories.am.size": "96KiB"})
    squeeze = "examples/squeezenet.prototxt"
    plain = amphora.compile(squeeze, machine)
    check(amphora.compile(squeeze, machine, watch=watch).text == plain.text,
          "the same plan")
    check(len(seen) > 2 and all(0 <= a[0] <= b[0] <= 1 for a, b in
                                zip(seen, seen[1:])) and
          seen[-1] == (1, plain.cost["cycles"]), seen)
    stopped = []

    def stop(share, cycles):
        stopped.append(share)
        return True

    try:
        amphora.compile(squeeze, machine, watch=stop)
    except amphora.Error as error:
        check("cancelled" in str(error), error)
    else:
        check(False, "not cancelled")
    check(len(stopped) == 1, stopped)


COMMANDS = (
    ("check", "xdnn-v2-28"),
    ("show", TINY, "-t", "xdnn-v2-28"),
    ("show", TINY, "-t", "xdnn-v2-28", "--orders"),
    ("eval", TINY),
    ("verify", TINY, "-t", "xdnn-v2-28"),
    ("verify", "examples/small/residual-int8.tflite", "-t", "k210"),
    ("compile", TINY, "-t", "xdnn-v2-28", "--front"),
    ("simulate", "LISTING", "-t", "xdnn-v2-28"),
    ("diff", "xdnn-v2-28", "xdnn-v2-56", TINY),
    ("pack", "examples/placement/example.csv"),
    ("explore", TINY, "-t", "xdnn-v2-28", "--vary",
     "memories.am.size=64K,1M"),
    ("explore", TINY, "-t", "xdnn-v2-28", "--vary",
     "memories.am.size=32K:256K:32K", "--goal", "ms <= 1", "--minimise",
     "am_capacity_bytes"),
    # what fails says why, and how
    ("compile", TINY, "-t", "xdnn-v2-28", "--set", "memories.am.size=512"),
    ("check", "no-such.yaml"), ("compille", TINY), ("show", TINY, "--raport"),
)


def without_times(value):
    """What the clock says is different each time."""
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items()
                if k not in ("ms", "seconds")}
    if isinstance(value, list):
        return [without_times(v) for v in value]
    return value


def test_commands():
    """Each command inside a program: the same object, exit code and messages
    as from the program, and nothing on stdout."""
    script = ("import json, sys, amphora\n"
              "from amphora import _library\n"
              "session = _library.Session()\n"
              "said = session.run(sys.argv[1:])\n"
              "print(json.dumps([said, [m.text for m in session.messages()]]))")
    with tempfile.TemporaryDirectory() as folder:
        out = ["-o", folder]
        command("compile", TINY, "-t", "xdnn-v2-28", *out)
        for words in COMMANDS:
            words = [os.path.join(folder, "tiny.json") if w == "LISTING" else w
                     for w in words]
            words += out if words[0] == "compile" else []
            code, printed, errors = command(*words, "--json")
            done = subprocess.run(
                [sys.executable, "-c", script, *words], check=True,
                stdout=subprocess.PIPE, text=True,
                env={**os.environ, "PYTHONPATH": "python"})
            said, messages = json.loads(done.stdout)
            check((said is None) == (not printed), words)
            if said:
                check(without_times(json.loads(said)) ==
                      without_times(json.loads(printed)), words)
            for text in messages:
                check(text.split("\n", maxsplit=1)[0] in errors,
                      (words, text, errors))
            check(bool(code) <= bool(messages or said), words)


def test_one_way_in():
    """The program has no function but the library's, and the library's are
    those of its header."""
    def symbols(path, *options):
        done = subprocess.run(["nm", *options, path], check=True, text=True,
                              stdout=subprocess.PIPE)
        return {line.split()[-1] for line in done.stdout.splitlines()
                if line and not line.endswith(":")}

    with open("include/amphora/amphora.h", encoding="utf-8") as file:
        declared = set(re.findall(r"AMPHORA_API[^;]*?\b(amphora_\w+)\(", re.sub(
            r"/\*.*?\*/", "", file.read(), flags=re.S)))
    for path, option in (("build/libamphora.a", "-g"),
                         ("build/libamphora.so.1", "-D")):
        check(symbols(path, option, "--defined-only") == declared,
              (path, symbols(path, option, "--defined-only") ^ declared))
    own = symbols("build/CMakeFiles/amphora.dir/driver/main.c.o", "-u")
    check("amphora_command" in own and not own - declared - {
        "mallopt", "signal", "__sysv_signal", "_GLOBAL_OFFSET_TABLE_",
        "stdout", "stderr", "fwrite", "fflush"}, own)
    used = {s.split("@")[0] for s in symbols("build/libamphora.so.1", "-D",
                                             "--undefined-only")}
    # stderr and exit: of threads that work without a guard (base/guard.h)
    check(not used & {"printf", "puts", "putchar", "stdout", "perror", "abort"},
          used)
    with open("driver/main.c", encoding="utf-8") as file:
        check(re.findall(r'#include (["<].*?[">])', file.read()) ==
              ["<amphora/amphora.h>", "<signal.h>", "<stdio.h>",
               "<malloc.h>"], "main.c")


def test_no_memory():
    """What has no memory says so; the program and its sessions go on."""
    script = ("import amphora, resource\n"
              "amphora.compile('examples/tiny.prototxt', 'xdnn-v2-28')\n"
              "used = int(open('/proc/self/statm').read().split()[0]) * 4096\n"
              "limit = resource.getrlimit(resource.RLIMIT_AS)\n"
              "resource.setrlimit(resource.RLIMIT_AS, (used + (4 << 20),"
              " limit[1]))\n"
              "try:\n"
              "    amphora.compile('examples/yolov2-608.prototxt',"
              " 'xdnn-v2-28')\n"
              "except amphora.Error as error:\n"
              "    print(error)\n"
              "resource.setrlimit(resource.RLIMIT_AS, limit)\n"
              "print(amphora.compile('examples/tiny.prototxt', 'xdnn-v2-28')"
              ".text, end='')\n")
    done = subprocess.run([sys.executable, "-c", script], check=True,
                          stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "PYTHONPATH": "python"})
    first, rest = done.stdout.split("\n", maxsplit=1)
    check("out of memory: " in first, first)
    check(rest == amphora.compile(TINY, "xdnn-v2-28").text, rest[:200])


def test_explore():
    sizes = {"memories.am.size": ["64KiB", "1MiB"]}
    rows = amphora.explore([TINY], "xdnn-v2-28", sizes, objective="time")
    for row, size in zip(rows, sizes["memories.am.size"]):
        plan = amphora.compile(TINY, amphora.Machine(
            "xdnn-v2-28", {"memories.am.size": size}), objective="time")
        check(row["memories.am.size"] == size, row)
        check(row["cycles"] == plan.simulate()["total_cycles"], row)
    found = amphora.search([TINY], "xdnn-v2-28", {
        "memories.am.size": ["32K:256K:32K"]}, "ms <= 1",
        minimise="am_capacity_bytes")
    check("best" in found and found["tried"] < found["points"], found)
    check(amphora.run("check", "xdnn-v2-28"), "check")
    try:
        amphora.run("check", "no-such.yaml")
    except amphora.Error as error:
        check("no-such" in str(error), error)
    else:
        check(False, "no error")


def test_threads():
    made = {}

    def work(machine):
        made[machine] = amphora.compile(TINY, machine).text

    machines = ("xdnn-v2-28", "stage-npu", "tile-npu", "ring-npu")
    threads = [threading.Thread(target=work, args=(m,)) for m in machines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for machine in machines:
        check(made[machine] == amphora.compile(TINY, machine).text, machine)


def test_c():
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "use.c")
        program = os.path.join(folder, "use")
        with open(source, "w", encoding="utf-8") as file:
            file.write(C_PROGRAM)
        subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-Wall",
                        "-Wextra", "-Wpedantic", "-Werror", "-Iinclude",
                        source, "-o", program,
                        "build/libamphora.so.1",
                        "-Wl,-rpath," + os.path.join(ROOT, "build")],
                       check=True)
        done = subprocess.run([program], check=False, stdout=subprocess.PIPE)
        command("compile", TINY, "-t", "xdnn-v2-28", "--set",
                "memories.am.size=2MiB", "--objective", "bytes", "-o", folder)
        with open(os.path.join(folder, "tiny.cmd"), "rb") as file:
            check(done.stdout == file.read(), "listing of the C program")
        check(done.returncode == 0, done.returncode)


def wheel_in(folder, *more):
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-index", "-w", folder,
         "python/", *more], check=False, stderr=subprocess.PIPE, text=True)
    made = os.listdir(folder)
    return done.returncode, done.stderr, made


def test_wheel():
    """With libraries it is for this platform alone, and works by itself."""
    if subprocess.run([sys.executable, "-m", "pip", "--version"], check=False,
                      capture_output=True).returncode:
        return  # Debian's python3 without python3-pip
    with tempfile.TemporaryDirectory() as folder:
        code, errors, made = wheel_in(folder)
        check(code == 0 and len(made) == 1, errors)
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        check(made[0].endswith(f"-py3-none-{platform}.whl"), made)
        place = os.path.join(folder, "place")
        subprocess.run([sys.executable, "-m", "pip", "install", "-q",
                        "--no-index", "--target", place,
                        os.path.join(folder, made[0])], check=True)
        script = ("import amphora, amphora_planner, sys\n"
                  "assert amphora.__file__.startswith(sys.argv[1])\n"
                  "print(amphora.compile(sys.argv[2], 'xdnn-v2-28').text,"
                  " end='')\n"
                  "amphora_planner.place([0, 1], [2, 3], [8, 4], capacity=16)")
        environment = {**os.environ, "PYTHONPATH": place}
        del environment["AMPHORA_LIBRARY"]
        done = subprocess.run([sys.executable, "-c", script, place,
                               os.path.abspath(TINY)], check=True, cwd=folder,
                              env=environment, stdout=subprocess.PIPE, text=True)
        check(done.stdout == amphora.compile(TINY, "xdnn-v2-28").text, "wheel")
    with tempfile.TemporaryDirectory() as folder:
        code, errors, made = wheel_in(folder, "--config-settings",
                                      f"libraries={folder}")
        check(code and not made and "libamphora.so.1" in errors, errors)


def main():
    failed = 0
    tests = [(n, f) for n, f in sorted(globals().items())
             if n.startswith("test_")]
    for name, test in tests:
        try:
            test()
        except Exception as error:  # pylint: disable=broad-except
            failed += 1
            print(f"FAIL {name}: {type(error).__name__}: {error}")
    print(f"{len(tests) - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
