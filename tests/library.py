#!/usr/bin/env python3
"""library.py - the planners as others get them: installed, found by pkg-config.

Builds the library in a folder of its own, installs it into another, compiles
examples/planner.c against that and nothing of this tree, as C and as C++20, and
runs it; then what is hard (tests/pack/api/hard.c), the Python package and the
Rust crate, where there is cargo. Looks at the symbols of both libraries.
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


def check_symbols(prefix):
    """Nothing else to be seen, and nothing that ends a program or prints."""
    shared = os.path.join(prefix, "lib/libamphora-planner.so.1")
    archive = os.path.join(prefix, "lib/libamphora-planner.a")
    for command in (("nm", "-D", "--defined-only", shared),
                    ("nm", "-g", "--defined-only", archive)):
        names = [line.split()[2] for line in run(*command).splitlines()
                 if len(line.split()) == 3]
        bad = [n for n in names if not n.startswith("amphora_planner_")]
        if bad or not names:
            sys.exit(f"{' '.join(command)}: {bad}")
    wanted = {line.split()[-1].split("@")[0]
              for line in run("nm", "-D", "-u", shared).splitlines()}
    bad = wanted & {"exit", "abort", "printf", "fprintf", "puts", "signal",
                    "raise", "__assert_fail", "_exit"}
    if bad:
        sys.exit(f"the library uses {sorted(bad)}")


def compile_and_run(folder, compiler, source, flags, env):
    program = os.path.join(folder, "program")
    run(*compiler, "-Wall", "-Wextra", "-Werror", "-o", program, source, *flags)
    return run(program, env=env)


def check_python(prefix):
    code = ("import amphora_planner as p\n"
            "r = p.place([0, 1, 3], [2, 4, 5], [8, 4, 12], capacity=16)\n"
            "assert r.height == 16 and r.proved, r.height\n"
            "for kind, capacity in (('Infeasible', 15),):\n"
            "    try:\n"
            "        p.place([0, 1, 3], [2, 4, 5], [8, 4, 12], capacity)\n"
            "        raise SystemExit('15 bytes')\n"
            "    except getattr(p, kind):\n"
            "        pass\n"
            "assert 'portfolio' in p.planners()\n"
            "pairs = p.place(None, None, [8, 4, 2],\n"
            "                conflicts=[(0, 1), (1, 2)])\n"
            "assert pairs.height == 12 and pairs.proved\n"
            "streams = p.place([(0, 0), (0, 1), (3, 4)],\n"
            "                  [(3, 0), (2, 4), (5, 5)], [8, 4, 2])\n"
            "assert streams.height == 12 and streams.proved\n"
            "below = p.place([0, 0], [2, 2], [8, 8],\n"
            "                relations=[('below', 0, 1, 3)])\n"
            "assert below.height == 11, below.height\n"
            "hints = p.place([0, 0], [2, 2], [8, 8], hints=[8, None])\n"
            "assert hints.offsets == [8, 0], hints.offsets\n"
            "top = p.place([0, 0], [2, 2], [8, 8], alignments=[6, 6],\n"
            "              planner='bottles')\n"
            "assert top.height < 40, top.height\n"
            "import amphora_planner.minimalloc as mm\n"
            "def three(capacity, **others):\n"
            "    rows = (0, 2, 8), (1, 4, 4), (3, 5, 12)\n"
            "    return mm.Problem([mm.Buffer(str(n), mm.Lifespan(a, b), n,\n"
            "                                 **others)\n"
            "                       for a, b, n in rows], capacity)\n"
            "solver = mm.Solver(mm.SolverParams(timeout=5))\n"
            "assert solver.solve(three(15)) is None\n"
            "assert solver.solve(three(16)).height == 16\n"
            "gaps = [mm.Gap(mm.Lifespan(1, 3))]\n"
            "low = mm.Solver(mm.SolverParams(minimize_capacity=True)).solve(\n"
            "    mm.Problem([mm.Buffer('a', mm.Lifespan(0, 4), 8, gaps=gaps),\n"
            "                mm.Buffer('b', mm.Lifespan(1, 3), 6, offset=0)],\n"
            "               100))\n"
            "assert low.offsets == [0, 0] and low.height == 8, low\n"
            "def wrong(seconds, height):\n"
            "    raise KeyError\n"
            "for error, call in (\n"
            "        (KeyError, {'progress': wrong}),\n"
            "        (TypeError, {'alignments': [1.5, 1]}),\n"
            "        (ValueError, {'capacity': -1})):\n"
            "    try:\n"
            "        p.place([0, 0], [2, 2], [8, 8], **call)\n"
            "        raise SystemExit(f'no {error}')\n"
            "    except error:\n"
            "        pass\n")
    library = os.path.join(prefix, "lib/libamphora-planner.so.1")
    run(sys.executable, "-c", code, env={
        **os.environ, "PYTHONPATH": os.path.join(ROOT, "python"),
        "AMPHORA_PLANNER_LIBRARY": library})


def check_rust(folder, prefix):
    if shutil.which("cargo"):
        run("cargo", "test", "-q", "--offline",
            cwd=os.path.join(ROOT, "rust/amphora-planner"),
            env={**os.environ,
                 "CARGO_TARGET_DIR": os.path.join(folder, "cargo"),
                 "AMPHORA_PLANNER_LIB": os.path.join(prefix, "lib")})


def main():
    wrong = False
    with tempfile.TemporaryDirectory() as folder:
        prefix = os.path.join(folder, "to")
        install(os.path.join(folder, "build"), prefix)
        check_symbols(prefix)
        lib = os.path.join(prefix, "lib")
        env = {**os.environ, "LD_LIBRARY_PATH": lib,
               "PKG_CONFIG_PATH": os.path.join(lib, "pkgconfig")}
        flags = run("pkg-config", "--cflags", "--libs", "amphora-planner",
                    env=env).split()
        example = os.path.join(ROOT, "examples/planner.c")
        hard = os.path.join(ROOT, "tests/pack/api/hard.c")
        strange = os.path.join(ROOT, "tests/pack/api/strange.c")
        runs = [(["cc", "-std=c11"], example, EXPECTED),
                (["cc", "-std=c11", "-pthread"], hard, ""),
                (["cc", "-std=c11", "-pthread"], strange, "")]
        if shutil.which("c++"):
            runs.append((["c++", "-std=c++20", "-x", "c++"], example,
                         EXPECTED))
        for compiler, source, expected in runs:
            output = compile_and_run(folder, compiler, source, flags, env)
            if output != expected:
                wrong = True
                print(f"{compiler} {source} printed\n{output}expected\n"
                      f"{expected}")
        check_python(prefix)
        check_rust(folder, prefix)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
