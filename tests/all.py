#!/usr/bin/env python3
"""all.py - runs the tests of the tree and counts.

Needs the folders build (gcc) and build-asan (clang, sanitizers), which ./test
makes. A test is a cmocka program (tests/ROOM/test_*.c, in both builds) or a
script tests/NAME.py, whose first lines say what it tests; `--list` prints
them. Says of each how long it took, and the seconds of processors that it
took, which are the same however busy the machine is. Closes with the names of
those that failed and `N passed, N failed`; exits 1 if any failed.
"""
import argparse
import ast
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile
import time

JOBS = os.cpu_count() or 1
# Scripts that are no tests: tests run them, or people do to write files.
PARTS = ("all", "kmodel_nets", "mutants_test", "truth_armnn", "truth_export",
         "truth_odd", "truth_opencv", "write_examples")
# Tests whose own lines are worth reading when they pass.
TOLD = ("e2e", "onnx_testdata", "recorded", "mutate_listing")


def unit_tests(build):
    """(name, command) of the cmocka programs in a build folder."""
    names = [n for n in sorted(os.listdir(build))
             if "_test_" in n and os.access(os.path.join(build, n), os.X_OK)
             and os.path.isfile(os.path.join(build, n))]
    return [(f"{build}: {n}", [os.path.join(build, n)]) for n in names]


def is_script(path):
    """Whether a file is run, and not only imported."""
    with open(path, encoding="utf-8") as file:
        return re.search(r"^(if __name__|sys\.exit\(|main\(\))", file.read(),
                         re.MULTILINE) is not None


def script_names():
    """The scripts of this folder that are tests, in order of their names."""
    names = [n[:-3] for n in sorted(os.listdir("tests")) if n.endswith(".py")]
    return [n for n in names
            if n not in PARTS and is_script(os.path.join("tests", n + ".py"))]


def script_says(name):
    """The first paragraph of what a script says of itself."""
    with open(os.path.join("tests", name + ".py"), encoding="utf-8") as file:
        said = ast.get_docstring(ast.parse(file.read()))
    return " ".join(said.split("\n\n")[0].split())


def scripts(long):
    """(name, command) of the test scripts."""
    flag = ["--long"] if long else []
    return [(n, [sys.executable, os.path.join("tests", n + ".py")] + flag)
            for n in script_names()]


def run(test):
    name, command = test
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch, \
            tempfile.TemporaryFile() as output:
        with subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL,
                              env=dict(os.environ, TMPDIR=scratch)) as test:
            _, status, used = os.wait4(test.pid, 0)
            test.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode(errors="replace")
    return name, test.returncode, text, (time.monotonic() - start,
                                         used.ru_utime + used.ru_stime)


def chosen(tests, names):
    """The tests of these names (all, if there are none)."""
    unknown = set(names) - {name for name, _ in tests}
    if unknown:
        sys.exit(f"no test is called {', '.join(sorted(unknown))}; "
                 "--list prints the names")
    return [t for t in tests if not names or t[0] in names]


def report(name, good, output, seconds, used):
    """One line of a test, and its own lines where they are worth reading."""
    print(f"{'ok  ' if good else 'FAIL'} {name} ({seconds:.1f} s, "
          f"{used:.1f} of processors)")
    if not good or name.startswith("truth") or name in TOLD:
        for line in output.rstrip().split("\n"):
            print("    " + line)
    sys.stdout.flush()


def options():
    parser = argparse.ArgumentParser(
        prog="./test", description="Builds amphora and runs its tests.")
    parser.add_argument("names", metavar="NAME", nargs="*",
                        help="run these alone, as --list prints them")
    parser.add_argument("--long", action="store_true",
                        help="the campaigns that take longer, too")
    parser.add_argument("--list", action="store_true",
                        help="print what the tests are")
    return parser.parse_args()


def main():
    asked = options()
    if asked.list:
        for name in script_names():
            print(script_says(name))
        return 0
    if asked.long:
        os.environ["TEST_LONG"] = "1"  # tests/effort.h
    # Two tests run at once; OpenBLAS' own threads would wait by turning round.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    # Programs of a few seconds come last, so that both processors end together.
    tests = chosen(scripts(asked.long) + unit_tests("build-asan")
                   + unit_tests("build"), asked.names)
    failed = []
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        for name, code, output, spent in pool.map(run, tests):
            report(name, code == 0, output, *spent)
            if code:
                failed.append(name)
    if failed:
        print("failed: " + ", ".join(failed))
    print(f"{len(tests) - len(failed)} passed, {len(failed)} failed")
    return len(failed) > 0


if __name__ == "__main__":
    sys.exit(main())
