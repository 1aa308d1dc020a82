"""mutants_test.py - tests mutate.py and mutants.py.

The operators on one text, and a campaign on a tree of one room: a function that
is tested well, one whose test asks too little, one that no test runs.
"""
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile

import mutants
import mutate

TEXT = """\
/* a < b */
#define LESS(a, b) ((a) < (b))
static const int table[2] = {1, 2};
static bool judge(const Run *run, int a, uint32_t b) {
    int room[4], *p = &room[0];
    assert(a < 3);
    if (!run && a >= 2) /* 1 + 1 */
        warn(run, "a < b", b);
    for (int i = 0; i < a; i++)
        p[a] += larger(b * 2, smaller(a, b));
    return a == 7;
}
static uint32_t twice(uint32_t a) {
    return a % 3;
}
static uint32_t larger(int a, int b) { return b; }
static uint32_t smaller(int a, int b) { return b; }
"""
# (line, operator, what it becomes), of all of the first two functions.
WANTED = {
    (5, "constant", "int room[4], *p = &room[1];"),
    (7, "negation", "if (run && a >= 2) /* 1 + 1 */"),
    (7, "logic", "if (!run || a >= 2) /* 1 + 1 */"),
    (7, "relation", "if (!run && a > 2) /* 1 + 1 */"),
    (8, "statement", "{}"),
    (9, "constant", "for (int i = 1; i < a; i++)"),
    (9, "relation", "for (int i = 0; i <= a; i++)"),
    (10, "statement", "{}"),
    (10, "sum", "p[a] -= larger(b * 2, smaller(a, b));"),
    (10, "product", "p[a] += larger(b / 2, smaller(a, b));"),
    (10, "order", "p[a] += larger(smaller(a, b), b * 2);"),
    (10, "order", "p[a] += larger(b * 2, smaller(b, a));"),
    (10, "extreme", "p[a] += smaller(b * 2, smaller(a, b));"),
    (10, "extreme", "p[a] += larger(b * 2, larger(a, b));"),
    (11, "relation", "return a != 7;"),
    (11, "result", "return !(a == 7);"),
    (14, "product", "return a * 3;"),
    (14, "result", "return (a % 3) + 1;"),
}
# One more or one less, as chance has it.
EITHER = {7, 10, 11, 14}

TREE = {
    "CMakeLists.txt": """\
cmake_minimum_required(VERSION 3.18)
project(small C)
add_library(hwspec STATIC hwspec/layout.c)
target_compile_options(hwspec PRIVATE -Werror=implicit-function-declaration)
add_executable(hwspec_test_layout tests/hwspec/test_layout.c)
target_link_libraries(hwspec_test_layout hwspec)
""",
    "hwspec/layout.c": """\
int tested(int a);
int tested(int a) {
    int sum = 0;
    while (a > 0)
        sum += a--;
    return sum;
}
int half_tested(int a, int most);
int half_tested(int a, int most) {
    return a < most && a != 7;
}
unsigned untested(unsigned a);
unsigned untested(unsigned a) {
    unsigned same = a;
    same = same | a;
    return a - 1;
}
""",
    "tests/hwspec/test_layout.c": """\
int tested(int a);
int half_tested(int a, int most);
int main(void) {
    return tested(3) != 6 || tested(0) != 0 || half_tested(5, 4) != 0;
}
""",
    "tests/mutants_read.txt": """\
# Notes.
layout.c
- return a < most && a != 7;
+ return a <= most && a != 7;
equivalent: not at all,
but this is a test
""",
}
VERDICTS = {
    ("tested", "+ int sum = 1;"): "killed",
    ("tested", "+ while (a >= 0)"): "survived",  # adds 0
    ("tested", "+ sum -= a--;"): "killed",
    ("tested", "+ return (sum) + 1;"): "killed",
    ("half_tested", "+ return a <= most && a != 7;"): "survived",
    ("half_tested", "+ return a < most || a != 7;"): "killed",
    ("half_tested", "+ return a < most && a == 7;"): "survived",
    ("untested", "+ return a + 1;"): "survived",
    ("untested", "+ same = same & a;"): "equivalent",
    ("untested", "+ {}"): "equivalent",
}


def check_operators():
    found = mutate.sites("hwspec/x.c", TEXT)
    made = {(m.line, m.operator, mutate.change_of(TEXT, m)[1])
            for m in found if m.line <= 15}
    sure = {m for m in made if m[1] != "constant" or m[0] not in EITHER}
    bad = [f"not made: {m}" for m in sorted(WANTED - sure)]
    bad += [f"made: {m}" for m in sorted(sure - WANTED)]
    if len(made - sure) != len(EITHER):
        bad.append(f"constants: {sorted(made - sure)}")
    if len({m.id for m in found}) != len(found):
        bad.append("two mutants have one id")
    below = mutate.sites("other/x.c", "\n\n" + TEXT)
    if {m.id for m in found} - {m.id for m in below if m.operator != "constant"
                                } - {m.id for m in found
                                     if m.operator == "constant"}:
        bad.append("ids depend on lines or folders")
    return bad


def write_tree(folder):
    for path, text in TREE.items():
        path = os.path.join(folder, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def run_campaign(work, tree, *arguments):
    options = mutants.parse(["--count", "1000", "--rounds", "unit",
                             *arguments])
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        score = mutants.campaign(work, tree, options)
    return score, said.getvalue()


def check_verdicts(records):
    verdicts = {record["change"][1]: record["verdict"] for record in records}
    bad = []
    for (_, change), wanted in VERDICTS.items():
        if verdicts.get(change[2:]) != wanted:
            bad.append(f"{change}: {verdicts.get(change[2:])}, not {wanted}")
    for record in records:
        if record["change"][1] == "{}" and "sum +=" in record["change"][0] and \
                record["by"] != "hwspec_test_layout: cpu":
            bad.append(f"endless: {record}")
        if "untested" not in record["change"][0] and record["line"] > 12 and \
                record["ran"]:
            bad.append(f"ran though no test runs the line: {record}")
    return bad


def read_records(work):
    with open(os.path.join(work, "results.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def check_campaign(folder):
    tree, work = os.path.join(folder, "small"), os.path.join(folder, "work")
    write_tree(tree)
    score, said = run_campaign(work, tree)
    records = read_records(work)
    bad = check_verdicts(records)
    counted = [r for r in records if r["verdict"] in ("killed", "survived")]
    killed = sum(r["verdict"] == "killed" for r in counted)
    if abs(score - 100 * killed / (len(counted) - 1)) > 0.01:
        bad.append(f"score {score}: {killed} of {len(counted)}, 1 equivalent")
    if "equivalent: not at all, but this is a test" not in said:
        bad.append("what was read is not shown")
    with open(os.path.join(tree, "hwspec/layout.c"), encoding="utf-8") as file:
        if file.read() != TREE["hwspec/layout.c"]:
            bad.append("the tree was changed")
    return bad + check_again(tree, work, records)


def check_again(tree, work, records):
    """A second run finds all done; with a better test, survivors are run."""
    os.chdir(tree)
    run_campaign(work, tree)
    bad = [] if read_records(work) == records else ["done once more"]
    path = os.path.join(tree, "tests/hwspec/test_layout.c")
    with open(path, "w", encoding="utf-8") as file:
        file.write(TREE["tests/hwspec/test_layout.c"].replace(
            "half_tested(5, 4) != 0", "half_tested(4, 4) != 0 || "
            "!half_tested(3, 4)"))
    run_campaign(work, tree)
    more = read_records(work)[len(records):]
    killed = {r["change"][1] for r in more if r["verdict"] == "killed"}
    if not killed >= {"return a <= most && a != 7;",
                      "return a < most && a == 7;"}:
        bad.append(f"the better test kills {more}")
    return bad


def main():
    bad = check_operators()
    mutants.CPU_MORE = 1
    with tempfile.TemporaryDirectory() as folder:
        here = os.getcwd()
        bad += check_campaign(folder)
        os.chdir(here)
    for line in bad:
        print(line)
    print(f"mutants: {'failed' if bad else 'passed'}")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
