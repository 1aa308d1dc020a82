#!/usr/bin/env python3
"""library.py - the planners as others get them: installed, found by pkg-config.

Builds the library in a folder of its own, installs it into another, compiles
examples/planner.c against that and nothing of this tree, and runs it.
"""
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
EXPECTED = """buffer 0 at byte 0
buffer 1 at byte 12
buffer 2 at byte 0
height 16, the least possible
"""


def run(*command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False, **options)
    output = done.stdout.decode(errors="replace")
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{output}")
    return output


def install(build, prefix):
    """Only what the library needs: the rest of the tree is not built."""
    run("cmake", "-G", "Ninja", "-S", ROOT, "-B", build,
        f"-DCMAKE_INSTALL_PREFIX={prefix}")
    run("cmake", "--build", build, "--target", "amphora-planner", "-j", "2")
    run("cmake", "-DCMAKE_INSTALL_COMPONENT=planner", "-P",
        os.path.join(build, "cmake_install.cmake"))


def main():
    with tempfile.TemporaryDirectory() as folder:
        prefix, program = (os.path.join(folder, n) for n in ("to", "example"))
        install(os.path.join(folder, "build"), prefix)
        env = {**os.environ,
               "PKG_CONFIG_PATH": os.path.join(prefix, "lib/pkgconfig")}
        flags = run("pkg-config", "--cflags", "--libs", "amphora-planner",
                    env=env).split()
        run("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-o", program,
            os.path.join(ROOT, "examples/planner.c"), *flags)
        output = run(program)
    if output != EXPECTED:
        print(f"it printed\n{output}expected\n{EXPECTED}")
    return output != EXPECTED


if __name__ == "__main__":
    sys.exit(main())
