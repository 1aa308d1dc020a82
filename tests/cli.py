#!/usr/bin/env python3
"""cli.py - commands with their exact output.

Each tests/cli/NAME.t is one case:

    # what it shows
    --- file net.prototxt        (any number of files, made in a fresh folder)
    ...text...
    --- run amphora verify net.prototxt -t xdnn-v2-28
    --- exit 1
    --- stdout
    ...exact text; a line `...` stands for any number of lines; `<ms>` in a
    line for any number...
    --- stderr
    ...

Several runs may follow each other. SHARE in a command stands for the source
folder. `cli.py -u` rewrites the expectations with what was seen (keeping cases
that already match): read the difference before committing it. Names of cases
may follow as arguments.
"""
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
AMPHORA = os.path.abspath(
    os.environ.get("AMPHORA", os.path.join(ROOT, "build/amphora")))


def parse(path):
    """[(kind, argument, text)] in order; the head comment is kind ''."""
    parts = [["", "", ""]]
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.startswith("--- "):
                kind, _, argument = line[4:].rstrip("\n").partition(" ")
                parts.append([kind, argument, ""])
            else:
                parts[-1][2] += line
    return parts


def pattern(text):
    """Expected text as a regular expression."""
    lines = []
    for line in text.splitlines():
        if line == "...":
            lines.append(r"(?:.*\n)*?")
        else:
            escaped = re.escape(line)
            lines.append(escaped.replace("<ms>", r"[0-9.,e+-]+") + "\n")
    return "".join(lines)


def clean(output):
    text = output.decode(errors="replace").replace(ROOT, "SHARE")
    return text if text.endswith("\n") or not text else text + "\n"


def execute(command, folder):
    command = command.replace("SHARE", ROOT)
    path = os.path.dirname(AMPHORA) + os.pathsep + os.environ["PATH"]
    done = subprocess.run(["sh", "-c", command], cwd=folder,
                          env={**os.environ, "PATH": path},
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    return done.returncode, clean(done.stdout), clean(done.stderr)


def check(path, update):
    parts, problems, seen = parse(path), [], {}
    with tempfile.TemporaryDirectory() as folder:
        for part in parts:
            kind, argument, text = part
            if kind == "file":
                with open(os.path.join(folder, argument), "w",
                          encoding="utf-8") as file:
                    file.write(text)
            elif kind == "run":
                code, out, err = execute(argument, folder)
                seen = {"exit": str(code), "stdout": out, "stderr": err}
            elif kind == "exit" and argument != seen["exit"]:
                problems.append(f"exit {seen['exit']}, expected {argument}\n"
                                + seen["stderr"])
                part[1] = seen["exit"]
            elif kind in ("stdout", "stderr") and \
                    not re.fullmatch(pattern(text), seen[kind]):
                problems.append(f"{kind}:\n{seen[kind]}expected:\n{text}")
                part[2] = seen[kind]
    if problems and update:
        with open(path, "w", encoding="utf-8") as file:
            for kind, argument, text in parts:
                head = f"--- {kind} {argument}".rstrip() + "\n" if kind else ""
                file.write(head + text)
    return problems


def main():
    names = [a for a in sys.argv[1:] if not a.startswith("-")]
    update = "-u" in sys.argv[1:]
    folder = os.path.join(ROOT, "tests/cli")
    cases = sorted(n for n in os.listdir(folder) if n.endswith(".t"))
    bad = 0
    for case in cases:
        if names and case[:-2] not in names:
            continue
        problems = check(os.path.join(folder, case), update)
        bad += bool(problems)
        print(f"{'FAIL' if problems else 'ok  '} {case}")
        for problem in problems:
            print("    " + problem.replace("\n", "\n    "))
    print(f"{len(cases)} cases, {bad} failures")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
