#!/usr/bin/env python3
"""fuzz.py - damaged input of every kind: no crash, no hang, no odd exit code.

Takes good files (examples, targets, listings made from them), cuts and flips
them at seeded places, and runs the sanitized amphora on each. An exit code
outside 0..3, a sanitizer's report or a time-out is a failure; the input is
then kept in out/fuzz/. --long runs 20 times as many.
"""
import concurrent.futures
import os
import random
import subprocess
import sys
import tempfile

AMPHORA = os.path.abspath(os.environ.get("AMPHORA", "build-asan/amphora"))
TIMEOUT = 600  # only a hang takes so long, however busy the machine


def damage(rng, data):
    """One of: cut, bit flips, a byte run repeated, a run removed, a token of
    the file put elsewhere."""
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
    subprocess.run([AMPHORA, "compile", "examples/tiny.prototxt", "-t",
                    "xdnn-v2-28", "-o", folder], check=True,
                   stdout=subprocess.DEVNULL)
    subprocess.run([AMPHORA, "asm", folder + "/tiny.cmd", "-t", "xdnn-v2-28",
                    "-o", folder + "/tiny.bin"], check=True,
                   stdout=subprocess.DEVNULL)
    net = read("examples/tiny.prototxt")
    onnx = [(".onnx", read(f"tests/truth/onnx-{name}.onnx"),
             ["verify", "FILE", "-t", "xdnn-v3-96", "--set",
              "limits.instructions=99"])
            for name in ("conv-padding", "pools", "pools19", "resizes19",
                         "attention", "newer18", "newer21", "shapes",
                         "products")]
    return onnx + [
        (".prototxt", net, ["verify", "FILE", "-t", "xdnn-v3-96"]),
        (".prototxt", net, ["compile", "FILE", "-t", "math-engine", "-o",
                            folder]),
        (".yaml", read("hwspec/targets/xdnn-v2-28.yaml"), ["check", "FILE"]),
        (".yaml", read("hwspec/targets/xdnn-v3-96.yaml"),
         ["compile", "examples/tiny.prototxt", "-t", "FILE", "-o", folder]),
        (".yaml", read("hwspec/targets/template.yaml"),
         ["compile", "examples/tiny.prototxt", "-t", "FILE", "-o", folder]),
        (".cmd", read(folder + "/tiny.cmd"),
         ["simulate", "FILE", "-t", "xdnn-v2-28"]),
        (".json", read(folder + "/tiny.json"),
         ["simulate", "FILE", "-t", "xdnn-v2-28"]),
        (".bin", read(folder + "/tiny.bin"),
         ["disasm", "FILE", "-t", "xdnn-v2-28"]),
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


def main():
    long = "--long" in sys.argv[1:]
    count = 800 if long else 40
    rng = random.Random(20)
    with tempfile.TemporaryDirectory() as folder:
        cases = []
        for k, (suffix, data, command) in enumerate(seeds(folder)):
            for i in range(count):
                cases.append((f"case-{k}-{i}{suffix}", damage(rng, data),
                              command, folder))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            bad = [b for b in pool.map(run, cases) if b]
    for text in bad:
        print(text)
    print(f"{len(cases)} damaged inputs, {len(bad)} failures")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
