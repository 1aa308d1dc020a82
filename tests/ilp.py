#!/usr/bin/env python3
"""ilp.py - the least heights of `exact` against an integer program.

Random problems with alignments, pins, gaps and relations, handed to coinor-cbc
as they stand in textbooks: an offset for each buffer, and for each pair that
conflicts a bit for each way in which the two may lie, one of which must be.
Offsets are bounded by the height that `exact` found, so the program has a
solution if that one is right, and none that is lower if the proof is.
--long: more and larger ones. Skips where there is no cbc.
"""
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
PLANNER = os.environ.get("PLANNER", "exact")


def problem(n, seed):
    """Rows (first, end, size, alignment, gap or None, pin or None, relation
    (kind, other row, bytes) or None)."""
    draw = random.Random(seed)
    rows = []
    for i in range(n):
        first = draw.randrange(8)
        end = first + draw.randint(1, 6)
        gap = relation = None
        if seed % 4 < 2 and end - first > 2 and draw.random() < 0.3:
            gap = (first + 1, draw.randint(first + 2, end - 1))
        alignment = draw.choice((1, 1, 4, 6, 8)) if seed % 2 else 1
        if seed % 4 > 1 and i and draw.random() < 0.4:
            relation = (draw.choice(("share", "same", "below")),
                        draw.randrange(i), draw.randint(-3, 12))
        rows.append((first, end, draw.randint(5, 30), alignment, gap, None,
                     relation))
    if seed % 3 == 2:
        first, end, size, *_ = rows[0]
        rows[0] = (first, end, size, 1, None, draw.randint(0, 20), None)
    return rows


def steps(row):
    first, end, gap = row[0], row[1], row[4]
    return {t for t in range(first, end)
            if not gap or not gap[0] <= t < gap[1]}


def write_csv(path, rows):
    with open(path, "w", encoding="utf-8") as file:
        file.write("id,lower,upper,size,alignment,gaps,offset,relations\n")
        for i, row in enumerate(rows):
            first, end, size, alignment, gap, pin, relation = row
            gaps = f"{gap[0]}-{gap[1]}" if gap else ""
            words = ""
            if relation:
                kind, other, by = relation
                words = f"{kind}:{other}" + (f"@{by}" if kind == "below" else "")
            file.write(f"{i},{first},{end},{size},{alignment},{gaps},"
                       f"{'' if pin is None else pin},{words}\n")


def ways(rows, i, j):
    """In which rows i and j may lie: each a list of (one, other, bytes), one
    begins at least so many bytes above the other. None: anyhow."""
    relation = rows[i][6]
    kind, other, by = relation or (None, None, 0)
    if other != j:
        kind = None
    if kind == "share":
        return None
    gap = min(by, rows[i][2]) if kind == "below" else rows[i][2]
    each = [[(j, i, gap)], [(i, j, rows[j][2])]]
    if kind == "same":
        each.append([(i, j, 0), (j, i, 0)])
    return each


def write_lp(path, rows, most):
    below, bits, bounds, units = [], [], [], []
    for i, row in enumerate(rows):
        size, alignment, pin = row[2], row[3], row[5]
        below.append(f"h - o{i} >= {size}")
        bounds.append(f"o{i} = {pin}" if pin is not None
                      else f"0 <= o{i} <= {most - size}")
        if alignment > 1:
            below.append(f"o{i} - {alignment} k{i} = 0")
        units.append(f"k{i}" if alignment > 1 else f"o{i}")
        for j in range(i):
            each = ways(rows, i, j)
            if not steps(row) & steps(rows[j]) or each is None:
                continue
            names = [f"b{i}_{j}_{w}" for w in range(len(each))]
            bits += names
            below.append(" + ".join(names) + " >= 1")
            for name, way in zip(names, each):
                for one, other, by in way:
                    below.append(f"o{one} - o{other} - {2 * most} {name} >= "
                                 f"{by - 2 * most}")
    with open(path, "w", encoding="utf-8") as file:
        file.write("Minimize\n h\nSubject To\n")
        file.writelines(f" c{k}: {line}\n" for k, line in enumerate(below))
        file.write("Bounds\n" + "".join(f" {line}\n" for line in bounds))
        file.write("General\n" + "".join(f" {name}\n" for name in units))
        file.write("Binary\n" + "".join(f" {name}\n" for name in bits))
        file.write("End\n")


def exact(path):
    done = subprocess.run([AMPHORA, "pack", path, "--planner", PLANNER,
                           "--json"], stdout=subprocess.PIPE, check=False)
    return json.loads(done.stdout)


def integer_program(path, answer):
    """The least height; None if cbc stops at its limit of time."""
    subprocess.run(["cbc", path, "sec", "20", "solve", "solu", answer],
                   stdout=subprocess.DEVNULL, check=True)
    with open(answer, encoding="utf-8") as file:
        status = file.readline()
    found = re.match(r"Optimal - objective value\s+([\d.]+)", status)
    if not found:
        return None if status.startswith("Stopped") else status.strip()
    return round(float(found.group(1)))


def main():
    if not shutil.which("cbc"):
        print("skipped: no cbc (package coinor-cbc)")
        return 0
    long = "--long" in sys.argv[1:]
    sizes = (6, 8, 10) if long else (6, 8)
    compared = above = wrong = undecided = 0
    with tempfile.TemporaryDirectory() as folder:
        csv, lp, answer = (os.path.join(folder, name)
                           for name in ("p.csv", "p.lp", "p.out"))
        for n in sizes:
            for seed in range(60 if long else 6):
                rows = problem(n, seed)
                write_csv(csv, rows)
                ours = exact(csv)
                write_lp(lp, rows, ours["height"])
                least = integer_program(lp, answer)
                compared += 1
                live = max(sum(row[2] for row in rows if t in steps(row))
                           for t in range(20))
                above += ours["height"] > live
                undecided += least is None
                if not ours["proved"] or least not in (None, ours["height"]):
                    wrong += 1
                    print(f"{n} buffers, seed {seed}: {ours['height']}, "
                          f"cbc {least}")
    print(f"{compared} problems, {above} of them above the live peak, "
          f"{undecided} not decided by cbc, {wrong} differences")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
