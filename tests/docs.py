#!/usr/bin/env python3
"""docs.py - the documents show what the commands print today.

In README.md and docs/*.md a line `    $ COMMAND` is run by a shell, where the
repository's folders are, and what it prints must be the lines below it, as far
as they go: `...` stands for any number of lines. What stands behind a line
`    # NAME.yaml` is that file. Commands on ../shared need that folder. The lines `    build/amphora
...` without a $ must run, too, with exit code 0, where they name files and
machines and no NET or TARGET; these only with --long.

usage: docs.py [--long] [FILE...]
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PLACEHOLDER = re.compile(r"\b(NET|TARGET|DIR|PATH|FILE|HWSPEC|LISTING)\b")
NOT_FOUND = 127


def blocks(path):
    """(line, command, expected lines or None) of a document."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    at = 0
    while at < len(lines):
        match = re.match(r"    (\$ )?((?:build/amphora|python3|\./test) .*)",
                         lines[at])
        first, at = at + 1, at + 1
        if not match:
            continue
        command = match.group(2)
        while command.endswith("\\"):
            command = command[:-1] + lines[at].strip()
            at += 1
        shown = []
        while match.group(1) and at < len(lines) and \
                re.match(r"    (?!\$ )\S|      ", lines[at]):
            shown.append(lines[at][4:])
            at += 1
        yield first, command, shown if match.group(1) else None


def write_files(path, folder):
    """Files that the document shows, in their folder."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for name, body in re.findall(r"^    # ([\w-]+\.yaml)\n((?:    .*\n)+)", text,
                                 re.M):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(re.sub(r"^    ", "", body, flags=re.M))


def line_pattern(line):
    """Times differ: all of a line of milliseconds, else a column of them."""
    if line == "...":
        return r"(?:.*\n)*?"
    times = r"[0-9]+\.[0-9]" if line.startswith("ms ") else \
        r"(?<=  )[0-9]+\.[0-9](?=  |$)"
    parts = re.split(times, line)
    return r"\s*[0-9.]+".join(re.escape(p.rstrip() if i + 1 < len(parts)
                                         else p)
                              for i, p in enumerate(parts)) + r"\n"


def pattern(shown):
    return "".join(map(line_pattern, shown))


SEEN = {}  # what commands printed that several documents show


def run(command, folder):
    """Exit code and output; run once where it reads and writes no files of the
    document's own."""
    if re.search(r"(^|\s)(out|\./)|\.yaml|;|\|", command):
        return started(command, folder)
    if command not in SEEN:
        SEEN[command] = started(command, folder)
    return SEEN[command]


def started(command, folder):
    done = subprocess.run(["sh", "-c", command], cwd=folder, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    return done.returncode, done.stdout.decode(errors="replace")


def first_wrong(shown, printed):
    """The first line that the output does not have there."""
    for n in range(1, len(shown) + 1):
        if not re.match(pattern(shown[:n]), printed):
            return shown[n - 1]
    return "what follows the last line"


def check(path, folder, long):
    """Problems of a document, and how many commands were run."""
    problems, n = [], 0
    write_files(path, folder)
    for line, command, shown in blocks(path):
        if "../shared" in command and \
                not os.path.exists(os.path.join(folder, "../shared")):
            continue
        if shown is None and (not long or PLACEHOLDER.search(command) or
                              not command.startswith("build/amphora")):
            continue
        n += 1
        code, printed = run(command, folder)
        where = f"{os.path.relpath(path, ROOT)}:{line}: {command}"
        if shown is None:
            if code:
                problems.append(f"{where}\n  exit {code}: {printed[:400]}")
        elif code == NOT_FOUND:
            problems.append(f"{where}\n  {printed}")
        elif shown and not re.fullmatch(pattern(shown), printed):
            problems.append(f"{where}\n  not printed: "
                            f"{first_wrong(shown, printed)}")
    return problems, n


def main():
    files = [os.path.abspath(a) for a in sys.argv[1:] if a[0] != "-"] or \
        [os.path.join(ROOT, "README.md")] + \
        sorted(glob.glob(os.path.join(ROOT, "docs", "*.md")))
    problems, n = [], 0
    with tempfile.TemporaryDirectory() as top:
        folder = os.path.join(top, "tree")
        os.mkdir(folder)
        shared = os.path.join(ROOT, "../shared")
        if os.path.exists(shared):
            os.symlink(os.path.realpath(shared), os.path.join(top, "shared"))
        for name in ("build", "examples", "bench", "tests", "hwspec",
                     "include", "docs"):
            os.symlink(os.path.join(ROOT, name), os.path.join(folder, name))
        for path in files:
            found, run_here = check(path, folder, "--long" in sys.argv)
            problems += found
            n += run_here
    print("\n".join(problems + [f"{n} commands, {len(problems)} print "
                                "something else"]))
    return bool(problems) or not n


if __name__ == "__main__":
    sys.exit(main())
