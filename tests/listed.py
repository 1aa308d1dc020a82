"""listed.py - what tests of written machines ask of their listings.

Each takes `run`, which runs amphora with arguments and returns what it did, and
returns what is wrong, a line each.
"""
import os
import subprocess
import sys

from int8 import npy_read, npy_write


def with_tokens(line, names, **values):
    """The line of a listing with other tokens, by the names of its template."""
    words = line.split(" ")
    for name, value in values.items():
        words[names.index(name)] = value
    return " ".join(words)


def wrong_listings(run, cmd, options, cases):
    """Changes of a listing (old line, new text, message), each by itself, that are
    not refused so; no message: that may be right."""
    with open(cmd, encoding="utf-8") as file:
        text = file.read()
    wrong = []
    for old, new, message in cases:
        with open(cmd, "w", encoding="utf-8") as file:
            file.write(text.replace(old, new, 1))
        done = run("simulate", cmd, *options)
        said = done.stdout + done.stderr
        if message and (done.returncode == 0 or message not in said):
            wrong.append(f"{new!r}: no `{message}`: {said[:600]}")
    return wrong


def wrong_machines(run, folder, cases):
    """Changes of descriptions (text, old, new, message) that are not refused so."""
    wrong = []
    for text, old, new, message in cases:
        path = os.path.join(folder, "bad.yaml")
        assert old in text, old
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(old, new, 1))
        done = run("check", path)
        if done.returncode != 1 or message not in done.stderr:
            wrong.append(f"{new!r}: no `{message}`: {done.stderr}")
    return wrong


def wrong_values(run, name, options, shape, output):
    """Whether examples/run_listing.py computes of NAME.json what `simulate` does;
    `output`: a file of its."""
    n = 1
    for size in shape:
        n *= size
    values = [(i * 73 % 251 - 125) / 64 for i in range(n)]
    npy_write(name + ".npy", shape, "f", values)
    out = name + ".computed"
    done = run("simulate", name + ".json", *options, "--input", name + ".npy", "-o", out)
    assert done.returncode == 0, done.stdout + done.stderr
    theirs = npy_read(os.path.join(out, output))
    done = subprocess.run([sys.executable, "examples/run_listing.py", name + ".json"],
                          input=" ".join(map(str, values)), capture_output=True,
                          text=True, timeout=600, check=False)
    mine = [float(v) for v in done.stdout.split()]
    near = len(mine) == len(theirs) and max(
        abs(a - b) for a, b in zip(mine, theirs)) < 1e-5
    return [] if near else [f"run_listing: {mine}, {theirs} {done.stderr[-400:]}"]
