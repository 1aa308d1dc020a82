#!/usr/bin/env python3
"""relaxed.py - what only relaxes a problem never makes its height worse.

A problem whose least height equals its live peak only in a perfect packing
(rectangles cut from one), which the search finds. The same with gaps in lives,
or with pairs that may share bytes, must not come out higher, nor be called
infeasible within that height. Nor must one in which some rectangles are cut in
two once more, along time, where the second may lie in place of the first for
the step in which both are alive: that needs each pair welded.
"""
import json
import os
import random
import subprocess
import sys
import tempfile

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
HEIGHT, STEPS, CUTS = 4096, 60, 90


def cut(seed):
    """Rectangles (first, end, low, high) that fill HEIGHT x STEPS."""
    draw = random.Random(seed)
    parts = [(0, STEPS, 0, HEIGHT)]
    for _ in range(CUTS):
        part = max(parts, key=lambda p: (p[1] - p[0]) * (p[3] - p[2])
                   * draw.random())
        first, end, low, high = part
        parts.remove(part)
        if draw.random() < 0.5 and end - first > 3:
            at = draw.randint(first + 1, end - 1)
            parts += [(first, at, low, high), (at, end, low, high)]
        elif high - low > 16:
            at = draw.randint(low + 1, high - 1)
            parts += [(first, end, low, at), (first, end, at, high)]
        else:
            parts.append(part)
    return parts


def in_place(draw, i, part):
    """Two rows, or one."""
    first, end, low, high = part
    if end - first < 4 or draw.random() < 0.7:
        return [f"{i},{first},{end},{high - low},,"]
    at = draw.randint(first + 1, end - 2)
    relation = draw.choice((f"same:{i}", f"share:{i}", f"below:{i}@0"))
    return [f"{i},{first},{at + 1},{high - low},,",
            f"{i}b,{at},{end},{high - low},,{relation}"]


def rows_of(parts, seed, kind):
    draw = random.Random(seed)
    if kind == "in place":
        for i, part in enumerate(parts):
            yield from in_place(draw, i, part)
        return
    for i, (first, end, low, high) in enumerate(parts):
        gap = relation = ""
        if kind == "gaps" and end - first > 2 and draw.random() < 0.3:
            at = draw.randint(first + 1, end - 2)
            gap = f"{at}-{draw.randint(at + 1, end - 1)}"
        if kind == "share" and i and draw.random() < 0.05:
            relation = f"share:{draw.randrange(i)}"
        yield f"{i},{first},{end},{high - low},{gap},{relation}"


def height(path, parts, seed, kind, *options):
    with open(path, "w", encoding="utf-8") as file:
        file.write("id,lower,upper,size,gaps,relations\n")
        file.writelines(row + "\n" for row in rows_of(parts, seed, kind))
    done = subprocess.run([AMPHORA, "pack", path, "--json", "--budget",
                           "100000", *options], stdout=subprocess.PIPE,
                          check=False)
    found = json.loads(done.stdout)["height"]
    return found if found is not None else sys.maxsize


def main():
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "p.csv")
        for seed in range(4):
            parts = cut(seed)
            plain = height(path, parts, seed, "plain")
            for kind in ("gaps", "share", "in place"):
                least = height(path, parts, seed, kind)
                within = height(path, parts, seed, kind, "--capacity",
                                str(plain))
                if least > plain or within > plain:
                    wrong += 1
                    print(f"seed {seed}: plain {plain}, with {kind} {least}, "
                          f"within that height {within}")
    print(f"12 relaxed problems, {wrong} worse than without")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
