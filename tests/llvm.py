#!/usr/bin/env python3
"""llvm.py - every version of LLVM that Debian has makes code that passes the
tests of native code.

Installs llvm-14-dev to llvm-19-dev, as far as there are such packages. For each
llvm-config-N: builds amphora with it in a folder of its own (cmake
-DLLVM_CONFIG=...), then runs the programs of tests/native, tests/bundle.py and,
with seed N, the campaign of tests/kernels.py. Without --long nothing is done.

usage: llvm.py [--long]
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

NUMBERS = range(14, 20)
BUILT = ("amphora", "amphora-native", "native_test_ops", "native_test_math")


def versions():
    """(number, path of llvm-config)"""
    found = {}
    for folder in os.environ["PATH"].split(":"):
        for path in glob.glob(f"{folder}/llvm-config-*"):
            number = re.fullmatch(r".*-(\d+)", path)
            if number and int(number[1]) in NUMBERS:
                found[int(number[1])] = path
    return sorted(found.items())


def install():
    known = run("apt-cache", "search", "--names-only", r"^llvm-[0-9]+-dev$")
    names = [f"llvm-{number}-dev" for number in NUMBERS
             if f"llvm-{number}-dev " in known]
    run("sh", "-c", f". tools/setup.sh; install_packages {' '.join(names)}")


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=True).stdout.decode()


def check(number, path, folder):
    """What is said of bundles and of kernels on each processor."""
    run("cmake", "-S", ".", "-B", folder, "-G", "Ninja",
        f"-DLLVM_CONFIG={path}")
    run("ninja", "-C", folder, *BUILT)
    for name in BUILT[2:]:
        run(f"{folder}/{name}")
    amphora = f"{folder}/amphora"
    bundles = run(sys.executable, "tests/bundle.py", amphora).splitlines()[-1]
    return bundles + "\n" + run(sys.executable, "tests/kernels.py", "--long",
                                "--seed", str(number), amphora)


def main():
    if "--long" not in sys.argv[1:]:
        return 0
    failed = 0
    install()
    for number, path in versions():
        with tempfile.TemporaryDirectory() as folder:
            try:
                print(f"LLVM {number}: {check(number, path, folder)}", flush=True)
            except subprocess.CalledProcessError as error:
                failed += 1
                print(f"LLVM {number}: {error}\n{error.output.decode()}")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
