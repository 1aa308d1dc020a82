#!/usr/bin/env python3
"""fuzz.py - damaged input of every kind: no crash, no hang, no odd exit code.

Readers, in process (tests/fuzz/targets.c): every file of tests/fuzz/corpus, and
as many damaged forms of them as CHANGES says, under the sanitizers. Then a few
damaged files through the whole program, where an exit code outside 0..3, a
sanitizer's report or a time-out is a failure. Inputs that fail stay in out/fuzz.

  --long        libFuzzer for MINUTES of a processor on each target, from the
                corpus and what it found before (out/fuzz/corpus), and more
                files through the program
  --minutes N   instead of MINUTES
  --minimise    what libFuzzer found becomes the corpus: the smallest files that
                reach what all reach, up to KEPT bytes a target; files called
                found-* and seed-* stay
  TARGET...     these alone
"""
import argparse
import concurrent.futures
import os
import random
import shutil
import subprocess
import sys
import tempfile

AMPHORA = os.path.abspath(os.environ.get("AMPHORA", "build-asan/amphora"))
REPLAY = "build-asan/fuzz"
LIBFUZZER = "build-fuzz/fuzz"
CORPUS, GROWN = "tests/fuzz/corpus", "out/fuzz/corpus"
CHANGES = 20  # of each file of the corpus
MINUTES = 30
KEPT = 8 << 10
TIMEOUT = 600  # only a hang takes so long, however busy the machine
LIMITS = ["-timeout=300", "-rss_limit_mb=1500", "-max_len=16384"]


# ---- readers ----

def targets():
    return sorted(os.listdir(CORPUS))


def replay(target):
    """What went wrong, or None."""
    done = subprocess.run([REPLAY, target, str(CHANGES), f"{CORPUS}/{target}"],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          check=False)
    return done.returncode and done.stderr.decode(errors="replace")[-2000:]


def build_libfuzzer():
    """False: this clang has no libFuzzer."""
    made = [["cmake", "-S", ".", "-B", "build-fuzz", "-G", "Ninja",
             "-DFUZZ=ON", "-DCMAKE_C_COMPILER=clang"],
            ["cmake", "--build", "build-fuzz", "--target", "fuzz"]]
    return all(subprocess.run(command, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL,
                              check=False).returncode == 0 for command in made)


def fuzz(target, minutes):
    grown = f"{GROWN}/{target}"
    os.makedirs(grown, exist_ok=True)
    done = subprocess.run(
        [LIBFUZZER, target, f"-max_total_time={int(minutes * 60)}", *LIMITS,
         f"-artifact_prefix=out/fuzz/{target}-", grown, f"{CORPUS}/{target}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    return done.returncode and done.stderr.decode(errors="replace")[-2000:]


def minimise(target):
    """Smallest first, up to KEPT bytes."""
    corpus, grown = f"{CORPUS}/{target}", f"{GROWN}/{target}"
    with tempfile.TemporaryDirectory() as merged:
        subprocess.run([LIBFUZZER, target, "-merge=1", *LIMITS, merged, corpus,
                        grown], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=True)
        for name in os.listdir(corpus):
            if not name.startswith(("found-", "seed-")):
                os.unlink(f"{corpus}/{name}")
        left = KEPT
        for name in sorted(os.listdir(merged), key=lambda name: (
                os.path.getsize(f"{merged}/{name}"), name)):
            left -= os.path.getsize(f"{merged}/{name}")
            if left < 0:
                break
            if not name.startswith(("found-", "seed-")):
                shutil.copy(f"{merged}/{name}", f"{corpus}/{name[:12]}")


# ---- the whole program ----

def damage(rng, data):
    """One of: cut, bit flips, a byte run repeated, a run removed, a token of
    the file put elsewhere, a number put in."""
    data = bytearray(data)
    kind = rng.randrange(6)
    at = rng.randrange(len(data))
    if kind == 0:
        return bytes(data[:at])
    if kind == 1:
        for _ in range(rng.randrange(1, 8)):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif kind == 2:
        end = min(len(data), at + rng.randrange(1, 64))
        data[at:at] = data[at:end] * rng.randrange(1, 9)
    elif kind == 3:
        del data[at:at + rng.randrange(1, 64)]
    elif kind == 4:
        other = rng.randrange(len(data))
        data[at:at + 8] = data[other:other + 8]
    else:
        number = rng.choice([b"0", b"-1", b"4294967296", b"99999999999999999",
                             b"1e999", b"2147483647", b"0x", b"nan"])
        data[at:at] = number
    return bytes(data)


def seeds(folder):
    """(suffix, good bytes, command with FILE)."""
    def read(path):
        with open(path, "rb") as file:
            return file.read()
    net = "examples/tiny.prototxt"
    subprocess.run([AMPHORA, "compile", net, "-t", "xdnn-v2-28", "-o", folder],
                   check=True, stdout=subprocess.DEVNULL)
    return [
        (".onnx", read(f"tests/truth/onnx-{name}.onnx"),
         ["verify", "FILE", "-t", "xdnn-v3-96", "--set",
          "limits.instructions=99"]) for name in ("conv-padding", "pools")] + [
        (".prototxt", read(net), ["verify", "FILE", "-t", "math-engine"]),
        (".yaml", read("hwspec/targets/xdnn-v3-96.yaml"),
         ["compile", net, "-t", "FILE", "-o", folder]),
        (".yaml", read("hwspec/targets/template.yaml"),
         ["compile", net, "-t", "FILE", "-o", folder]),
        (".cmd", read(folder + "/tiny.cmd"),
         ["simulate", "FILE", "-t", "xdnn-v2-28"]),
    ]


def run(case):
    name, data, command, folder = case
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        file.write(data)
    command = [AMPHORA] + [path if c == "FILE" else c for c in command]
    try:
        done = subprocess.run(command, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, timeout=TIMEOUT,
                              check=False, stdin=subprocess.DEVNULL)
        text = done.stderr.decode(errors="replace")
        bad = done.returncode not in (0, 1, 2, 3) or "Sanitizer" in text or \
            "runtime error" in text
        why = f"exit {done.returncode}: {text[:600]}"
    except subprocess.TimeoutExpired:
        bad, why = True, f"no answer in {TIMEOUT} s"
    if bad:
        os.makedirs("out/fuzz", exist_ok=True)
        kept = os.path.join("out/fuzz", name)
        with open(kept, "wb") as file:
            file.write(data)
        return f"{' '.join(command)}\n  input kept in {kept}\n  {why}"
    os.unlink(path)
    return None


def program(pool, count):
    """(cases, what went wrong with each that failed)."""
    rng = random.Random(20)
    with tempfile.TemporaryDirectory() as folder:
        cases = [(f"case-{k}-{i}{suffix}", damage(rng, data), command, folder)
                 for k, (suffix, data, command) in enumerate(seeds(folder))
                 for i in range(count)]
        return len(cases), [b for b in pool.map(run, cases) if b]


def readers(pool, names, job):
    bad = 0
    for target, why in zip(names, pool.map(job, names)):
        bad += bool(why)
        if why:
            print(f"{target}: {why}")
    print(f"{len(names)} targets, {bad} with failures")
    return bad


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("--long", action="store_true")
    parse.add_argument("--minutes", type=float, default=MINUTES)
    parse.add_argument("--minimise", action="store_true")
    parse.add_argument("target", nargs="*")
    asked = parse.parse_args()
    names = asked.target or targets()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        if (asked.long or asked.minimise) and not build_libfuzzer():
            print("no libFuzzer here")
            return 1
        if asked.minimise:
            return len(list(pool.map(minimise, names))) == 0
        bad = readers(pool, names, replay)
        if asked.long:
            bad += readers(pool, names, lambda t: fuzz(t, asked.minutes))
        if not asked.target:
            n, wrong = program(pool, 300 if asked.long else 3)
            print("\n".join(wrong + [f"{n} damaged files through the program, "
                                     f"{len(wrong)} failures"]))
            bad += len(wrong)
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
