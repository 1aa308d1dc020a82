#!/usr/bin/env python3
"""layout_mutants.py - a mistake in hwspec/layout.c shows in what verify says.

Each line of MUTANTS changes one thing there: an extent taken from the wrong
place, padding, a stride, a granule, an offset that is off by one. amphora is
linked again with that file alone, and runs points of tests/layouts.py and of
shipped machines: at least one must fail (a violation, a wrong value, or the
judge's internal error); without --long, of every fifth mutant. The simulator and the judge, which take their
addresses from hwspec/address.c, are thus no part of the mistake.
"""
import os
import shlex
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
BUILD = "build"
SOURCE = "hwspec/layout.c"
MUTANTS = (
    ("clip is forgotten", "if (axis->clip && !copies)", "if (false)"),
    ("all inner parts are clipped", "if (axis->clip && !copies)",
     "if (!copies)"),
    ("one section too few", "c - 1).index + 1;", "c - 1).index;"),
    ("outer parts are rounded down", "extent = ceil_div(size, axis->split);",
     "extent = size / axis->split;"),
    ("no padding", "if (axis->round == 1)", "if (true)"),
    ("padding is one more", "ceil_div(extent, axis->round)",
     "(extent / axis->round + 1)"),
    ("a stride is that of the axis outside",
     "s->stride[i] = s->bytes;\n        s->bytes = times(s->bytes, "
     "s->extent[i]);",
     "s->bytes = times(s->bytes, s->extent[i]);\n"
     "        s->stride[i] = s->bytes;"),
    ("inner and outer parts are swapped", "axis->inner ? s.place : s.index",
     "axis->inner ? s.index : s.place"),
    ("parts begin a granule later",
     "index_at(layout, whole, &layout->axis[0], c) * s.stride[0]",
     "(index_at(layout, whole, &layout->axis[0], c) + 1) * s.stride[0]"),
    ("any part is a volume", "if (all.stride[i] != own.stride[i])",
     "if (false)"),
    ("the extent is of rows", "{volume->c, volume->h, volume->w}",
     "{volume->c, volume->w, volume->h}"),
)
# network (None: of layouts.py's known cases), machine, bytes of active memory
SHIPPED = (("tiny", "xdnn-v2-28", 60000), ("tiny", "xdnn-v3-96", 100000),
           ("squeezenet", "xdnn-v3-96", 0))


def commands():
    """What compiles layout.c, what joins the rooms into the library, and what
    links amphora."""
    done = subprocess.run(["ninja", "-C", BUILD, "-t", "commands", "amphora"],
                          stdout=subprocess.PIPE, text=True, check=True)
    lines = done.stdout.splitlines()
    return (next(line for line in lines if line.endswith(SOURCE)),
            next(line for line in lines if " -r -o amphora.o " in line),
            lines[-1])


def linked(text, folder):
    """Another amphora, with this text in place of layout.c."""
    compiles, joins, links = map(shlex.split, commands())
    source, made = (os.path.join(folder, n) for n in ("layout.c", "layout.o"))
    with open(source, "w", encoding="ascii") as file:
        file.write(text)
    words = [w for w in compiles if w != "-Werror"] + ["-w"]
    words[words.index("-c") + 1] = source
    words[words.index("-o") + 1] = made
    words[words.index("-MF") + 1] = os.path.join(folder, "layout.d")
    subprocess.run(words, cwd=BUILD, check=True)
    binary = os.path.join(folder, "amphora")
    words = [w for w in links if w not in (":", "&&")]
    words[words.index("-o") + 1] = binary
    # the rooms themselves, as names of theirs are local in the library
    at = words.index("libamphora.a")
    rooms = joins[joins.index("amphora.o") + 1:]
    rooms = rooms[:rooms.index("&&")]
    words[at:at + 1] = [made] + [
        "-Wl," + w if w.startswith("--") else w for w in rooms]
    subprocess.run(words, cwd=BUILD, check=True)
    return binary


def noticed(binary, folder):
    """The first point that fails; None."""
    os.environ["AMPHORA"] = binary
    script = (
        "import sys; sys.path.insert(0, 'tests'); import layouts\n"
        "for case in layouts.KNOWN + layouts.MUTANT_POINTS:\n"
        "    what = layouts.wrong(*layouts.point_of(case, sys.argv[1]))\n"
        "    if what:\n"
        "        print(case, what)\n"
        "        break\n")
    done = subprocess.run([sys.executable, "-c", script, folder], cwd=ROOT,
                          stdout=subprocess.PIPE, text=True, check=True)
    if done.stdout:
        return done.stdout.strip()[:150]
    for network, machine, size in SHIPPED:
        limit = ["--set", f"memories.am.size={size}"] if size else []
        done = subprocess.run(
            [binary, "verify", f"examples/{network}.prototxt", "-t", machine,
             "--host", "interpret", *limit], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, check=False)
        if done.returncode not in (0, 3):
            return f"{network} on {machine}: exit code {done.returncode}"
    return None


def main():
    os.chdir(ROOT)
    with open(SOURCE, encoding="ascii") as file:
        text = file.read()
    bad = 0
    chosen = MUTANTS if "--long" in sys.argv[1:] else MUTANTS[::5]
    for name, old, new in (("as it is", "", ""),) + chosen:
        if text.count(old) < 1:
            print(f"{name}: not there any more")
            bad += 1
            continue
        with tempfile.TemporaryDirectory() as folder:
            seen = noticed(linked(text.replace(old, new, 1) if old else text,
                                  folder), folder)
        print(f"{name}: {seen or 'not noticed'}", flush=True)
        bad += bool(seen) == (name == "as it is")
    print(f"{len(chosen)} mutants, {bad} not as they should be")
    return 1 if bad else 0


sys.exit(main())
