#!/usr/bin/env python3
"""library.py - the planners as others get them: installed, found by pkg-config.

Builds the library in a folder of its own, installs it into another, compiles
examples/planner.c against that and nothing of this tree, and runs it; the same
with a program in C++, if there is a compiler for that.
"""
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
EXPECTED = """buffer 0 at byte 0
buffer 1 at byte 12
buffer 2 at byte 0
height 16, the least possible
"""

# Two members of a concat: one offset places all three.
CPP = r"""
#include <pack/pack.h>
#include <cstdio>

int main() {
    Arena *arena = arena_new("c++");
    Buffer *buf = ARENA_ARRAY(arena, Buffer, 3);
    for (int i = 0; i < 3; i++) {
        buf[i].first = i == 0 ? 2 : i - 1;
        buf[i].end = i == 0 ? 4 : 2;
        buf[i].bytes[0] = i == 0 ? 8 : 4;
        buf[i].pin_pool = -1;
        buf[i].hint = PACK_NO_HINT;
    }
    Relation relation[2] = {{REL_INSIDE, 1, 0, 0}, {REL_INSIDE, 2, 0, 4}};
    PackProblem problem = {};
    problem.n_pools = 1;
    problem.pool[0].size = 8;
    problem.pool[0].align = 1;
    problem.n_bufs = 3;
    problem.buf = buf;
    problem.n_relations = 2;
    problem.relation = relation;
    PackResult result;
    const char *used;
    pack_memory(arena, &problem, "auto", true, &result, &used);
    std::printf("%d %d\n", (int)result.offset[2], (int)result.proved);
    arena_free(arena);
}
"""
CPP_EXPECTED = "4 1\n"


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


def run_cpp(folder, flags):
    source, program = (os.path.join(folder, n) for n in ("x.cpp", "x"))
    with open(source, "w", encoding="utf-8") as file:
        file.write(CPP)
    run("c++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-o", program,
        source, *flags)
    return run(program)


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
        plus = run_cpp(folder, flags) if shutil.which("c++") else CPP_EXPECTED
    if plus != CPP_EXPECTED:
        print(f"in C++ it printed\n{plus}expected\n{CPP_EXPECTED}")
        return True
    if output != EXPECTED:
        print(f"it printed\n{output}expected\n{EXPECTED}")
    return output != EXPECTED


if __name__ == "__main__":
    sys.exit(main())
