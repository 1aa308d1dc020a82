#!/usr/bin/env python3
"""package.py - the Debian packages, installed in a root that has nothing else.

--long only: tools/package.sh builds them, debootstrap makes a root (kept in
out/package-root, or where PACKAGE_ROOT says), apt installs them there
with what they depend on, and no compiler or source tree is at hand. Then: a
network is compiled, verified and reported on; LLVM's module is found; manual,
schemas and completions are in place; the Python package works. A program is
built with find_package(amphora) against what was installed. Needs root.
"""
import glob
import os
import shutil
import subprocess
import sys
import tempfile

TREE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OUT = os.path.join(TREE, "out")
ROOT = os.environ.get("PACKAGE_ROOT", os.path.join(OUT, "package-root"))
MIRROR = "http://deb.debian.org/debian"
SMOKE = """set -eu
cd /tmp
amphora --version
e=/usr/share/amphora/examples
amphora compile $e/tiny.prototxt -t xdnn-v2-28 -o out --report page.html
test -s page.html && grep -q 'id="data"' page.html
amphora simulate out/tiny.cmd -t xdnn-v2-28 | grep -q ' 0 violations'
amphora verify $e/small/residual-int8.tflite -t k210
amphora compile $e/tiny.prototxt -t cpu-x86-64 --emit bundle -o out
test -s out/tiny.o
amphora explore $e/tiny.prototxt -t xdnn-v2-28 \\
    --vary memories.am.size=64K,1M -o sweep && test -s sweep/index.html
for f in share/man/man1/amphora.1 share/man/man1/amphora-compile.1 \\
    share/amphora/schema/hwspec.schema.json share/doc/amphora/LICENSE \\
    share/bash-completion/completions/amphora include/amphora/amphora.h \\
    lib/cmake/amphora/amphora-config.cmake share/doc/amphora/docs/listing.md; do
    test -s /usr/$f || { echo "no /usr/$f"; exit 1; }
done
python3 - <<'P'
import amphora
plan = amphora.compile("/usr/share/amphora/examples/tiny.prototxt", "xdnn-v2-28")
assert plan.verify() and plan.volumes
assert amphora.run("check", "xdnn-v2-28")
print(plan)
P
"""
PROGRAM = r"""
#include <amphora/amphora.h>
#include <stdio.h>
int main(void) { puts(amphora_version()); return 0; }
"""
PROJECT = """cmake_minimum_required(VERSION 3.18)
project(user C)
find_package(amphora REQUIRED)
add_executable(user user.c)
target_link_libraries(user amphora::amphora)
"""


def run(*command, **more):
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)[:200]}\n{done.stdout[-3000:]}")
    return done.stdout


def in_root(script):
    return run("chroot", ROOT, "/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:"
               "/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", "sh", "-c",
               script)


def packages():
    """The program's and Python's, which holds no code of a machine."""
    for old in glob.glob(os.path.join(OUT, "*amphora_*.deb")):
        os.remove(old)
    run("sh", os.path.join(TREE, "tools", "package.sh"), OUT)
    found = sorted(glob.glob(os.path.join(OUT, "*amphora_*.deb")))
    held = [run("dpkg-deb", "-c", path) for path in found]
    if len(found) != 2 or "dist-packages" in held[0] or ".so" in held[1]:
        raise SystemExit(f"packages: {found}")
    return found


def use_from_cmake():
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("user.c", PROGRAM), ("CMakeLists.txt", PROJECT)):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        run("cmake", "-S", folder, "-B", folder, "-DCMAKE_PREFIX_PATH=" +
            os.path.join(ROOT, "usr"), "-DCMAKE_EXE_LINKER_FLAGS="
            "-Wl,--allow-shlib-undefined")
        run("cmake", "--build", folder)
        shutil.copy(os.path.join(folder, "user"),
                    os.path.join(ROOT, "tmp", "user"))
    said = in_root("/tmp/user")
    if not said.startswith("amphora "):
        raise SystemExit(said)


def main():
    if "--long" not in sys.argv:
        print("not run: --long builds the package and installs it in a root")
        return 0
    run("sh", "-c", ". tools/setup.sh && install_packages debootstrap file",
        cwd=TREE)
    debs = packages()
    if not os.path.isdir(os.path.join(ROOT, "usr", "bin")):
        run("debootstrap", "--variant=minbase", "bookworm", ROOT, MIRROR)
    names = [os.path.basename(deb) for deb in debs]
    for deb in debs:
        shutil.copy(deb, os.path.join(ROOT, "tmp"))
    in_root("apt-get update -qq && apt-get install -y -qq "
            "--no-install-recommends --reinstall " +
            " ".join("/tmp/" + name for name in names))
    for tool in ("gcc", "clang", "cmake"):
        if os.path.exists(os.path.join(ROOT, "usr", "bin", tool)):
            raise SystemExit(f"the root has {tool}: it is not clean")
    print(in_root(SMOKE))
    use_from_cmake()
    print(f"{', '.join(names)}: installed and used in a clean root")
    return 0


if __name__ == "__main__":
    sys.exit(main())
