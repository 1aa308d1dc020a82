"""mutants_test.py - tests mutate.py and mutants.py.

The operators on one text, and a campaign on a tree of one room: a function that
is tested well, one whose test asks too little, one that only a script tests, one
whose mistake only a sanitizer sees, one that no test runs.
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
set(CMAKE_C_COMPILER_WORKS 1)  # not tried, to save time
set(CMAKE_C_ABI_COMPILED 1)
project(small C)
add_library(hwspec STATIC hwspec/layout.c)
if(SANITIZE)
  target_compile_options(hwspec PRIVATE -fsanitize=bounds -fno-sanitize-recover)
  target_link_options(hwspec PUBLIC -fsanitize=bounds)
endif()
add_executable(hwspec_test_layout tests/hwspec/test_layout.c)
add_executable(amphora driver/main.c)
add_custom_target(amphora-native)
add_custom_target(plan_damage)
target_link_libraries(hwspec_test_layout hwspec)
target_link_libraries(amphora hwspec)
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
int scripted(int a);
int scripted(int a) {
    return a == 7;
}
int bounded(int n);
int room[8];
int bounded(int n) {
    for (int i = 0; i < n; i++)
        if (room[i] == 12345)
            return 1;
    return 0;
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
int bounded(int n);
int main(void) {
    return tested(3) != 6 || tested(0) != 0 || half_tested(5, 4) != 0 ||
           bounded(8) != 0;
}
""",
    "driver/main.c": """\
int scripted(int a);
int main(void) {
    return !scripted(7);
}
""",
    "tests/cli.py": """\
import os, subprocess, sys
sys.exit(subprocess.call([os.environ.get("AMPHORA", "build/amphora")]))
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
    ("tested", "+ while (a >= 0)"): "survived",  # adds 0
    ("tested", "+ sum -= a--;"): "killed",
    ("half_tested", "+ return a <= most && a != 7;"): "survived",
    ("half_tested", "+ return a < most || a != 7;"): "killed",
    ("half_tested", "+ return a < most && a == 7;"): "survived",
    ("scripted", "+ return a != 7;"): "killed",
    ("bounded", "+ for (int i = 0; i <= n; i++)"): "killed",
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
    options = mutants.parse(["--count", "1000", *arguments])
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        score = mutants.campaign(work, tree, options)
    return score, said.getvalue()


def check_verdicts(records):
    verdicts = {record["change"][1]: record["verdict"] for record in records}
    by = {record["change"][1]: record["by"] for record in records}
    bad = []
    for (_, change), wanted in VERDICTS.items():
        if verdicts.get(change[2:]) != wanted:
            bad.append(f"{change}: {verdicts.get(change[2:])}, not {wanted}")
    if by.get("return a != 7;") != "cli: failed":
        bad.append("the script does not kill its mutant")
    if by.get("for (int i = 0; i <= n; i++)") != \
            "asan hwspec_test_layout: failed":
        bad.append("the sanitizer does not kill its mutant")
    for record in records:
        if record["change"][1] == "{}" and "sum +=" in record["change"][0] and \
                record["by"] != "hwspec_test_layout: cpu":
            bad.append(f"endless: {record}")
        if "untested" not in record["change"][0] and record["line"] > 26 and \
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
    records = list({r["id"]: r for r in read_records(work)}.values())
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
    return bad + check_again(tree, work)


def check_again(tree, work):
    """A second run finds all done; with a better test, survivors are run."""
    os.chdir(tree)
    n = len(read_records(work))
    run_campaign(work, tree, "--rounds", "unit")
    bad = [] if len(read_records(work)) == n else ["done once more"]
    path = os.path.join(tree, "tests/hwspec/test_layout.c")
    with open(path, "w", encoding="utf-8") as file:
        file.write(TREE["tests/hwspec/test_layout.c"].replace(
            "half_tested(5, 4) != 0", "half_tested(4, 4) != 0 || "
            "!half_tested(3, 4)"))
    run_campaign(work, tree, "--rounds", "unit")
    more = read_records(work)[n:]
    killed = {r["change"][1] for r in more if r["verdict"] == "killed"}
    if not killed >= {"return a <= most && a != 7;",
                      "return a < most && a == 7;"}:
        bad.append(f"the better test kills {more}")
    return bad


def main():
    bad = check_operators()
    mutants.CPU_MORE = 0.5
    every = mutate.sites  # fewer of them do here
    mutate.sites = lambda *file: [m for m in every(*file) if m.operator in (
        "relation", "logic", "sum", "bits", "statement")]
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
