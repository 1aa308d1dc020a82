#!/usr/bin/env python3
"""patience.py - how long `pack` searches, by the clock or in steps.

A problem whose least height takes the search minutes: with --seconds it ends
soon after them, with a placement; with --budget two runs write the same bytes;
whether neither a placement nor a proof was found, the note names both.
"""
import json
import os
import random
import subprocess
import sys
import tempfile
import time

import relaxed

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
SECONDS = 0.5
PATIENT = 20  # the machine may be busy
relaxed.CUTS = 500


def write(path, seed, kind):
    """Rectangles cut from one, in which no byte may be wasted, and more."""
    draw = random.Random(seed)
    with open(path, "w", encoding="utf-8") as file:
        file.write("id,lower,upper,size,gaps,relations,alignment\n")
        for row in relaxed.rows_of(relaxed.cut(seed), seed, kind):
            align = draw.choice((1, 3, 8)) if kind == "align" else 1
            file.write(f"{row},{align}\n")


def pack(path, *options):
    start = time.monotonic()
    done = subprocess.run([AMPHORA, "pack", path, "--json", *options],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    found = json.loads(done.stdout)  # one object, and nothing else
    return found, found.get("advice", ""), time.monotonic() - start


def check_seconds(path, kind):
    write(path, 1, kind)
    found, _, took = pack(path, "--seconds", str(SECONDS))
    fine = found["fits"] and found["height"] >= found["bound"]
    if not fine or took > PATIENT:
        print(f"{kind}: --seconds {SECONDS} took {took:.1f} s: {found}")
    if not found["proved"] and took < SECONDS:
        print(f"{kind}: gave up after {took:.2f} s")
        fine = False
    return fine and took <= PATIENT


def check_budget(path, folder):
    write(path, 2, "plain")
    texts = []
    for k in range(2):
        out = os.path.join(folder, f"o{k}.csv")
        pack(path, "--budget", "3000", "-o", out)
        with open(out, encoding="utf-8") as file:
            texts.append(file.read())
    if texts[0] != texts[1]:
        print("--budget 3000: two placements")
    return texts[0] == texts[1]


def check_words(path):
    write(path, 3, "plain")
    found, told, _ = pack(path, "--budget", "20", "--capacity",
                          str(relaxed.HEIGHT))
    fine = (found["outcome"] == "undecided" and "--seconds" in told
            and "--budget" in told)
    if not fine:
        print(f"undecided: {found}\n{told}")
    return fine


def main():
    fine = True
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "p.csv")
        for kind in ("plain", "gaps", "share", "align"):
            fine &= check_seconds(path, kind)
        fine &= check_budget(path, folder)
        fine &= check_words(path)
    return not fine


if __name__ == "__main__":
    sys.exit(main())
