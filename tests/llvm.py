#!/usr/bin/env python3
"""llvm.py - every version of LLVM that is installed makes code that passes the
tests of native code.

For each llvm-config-N: builds amphora with it in a folder of its own (cmake
-DLLVM_CONFIG=...), then runs the programs of tests/native and tests/bundle.py.
Without --long nothing is done.

usage: llvm.py [--long]
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

BUILT = ("amphora", "amphora-native", "native_test_ops", "native_test_math")


def versions():
    """(number, path of llvm-config)"""
    found = {}
    for folder in os.environ["PATH"].split(":"):
        for path in glob.glob(f"{folder}/llvm-config-*"):
            number = re.fullmatch(r".*-(\d+)", path)
            if number and int(number[1]) >= 14:
                found[int(number[1])] = path
    return sorted(found.items())


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=True).stdout.decode()


def check(path, folder):
    run("cmake", "-S", ".", "-B", folder, "-G", "Ninja",
        f"-DLLVM_CONFIG={path}")
    run("ninja", "-C", folder, *BUILT)
    for name in BUILT[2:]:
        run(f"{folder}/{name}")
    return run(sys.executable, "tests/bundle.py",
               f"{folder}/amphora").splitlines()[-1]


def main():
    if "--long" not in sys.argv[1:]:
        return 0
    failed = 0
    for number, path in versions():
        with tempfile.TemporaryDirectory() as folder:
            try:
                print(f"LLVM {number}: {check(path, folder)}", flush=True)
            except subprocess.CalledProcessError as error:
                failed += 1
                print(f"LLVM {number}: {error}\n{error.output.decode()}")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
