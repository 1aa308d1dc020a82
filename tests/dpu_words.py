#!/usr/bin/env python3
"""dpu_words.py - networks as instruction words of Vitis DPUs.

Networks on codes by powers of two become words by the plan of their listing. Read
back and run by what their rows do, the words give every code of the reference
where the plan puts it, tile by tile; their tokens are replayed. disasm and asm
give the same bytes. What a word must be is put together here, from fields as they
are known; where the recorded program of a layer of 2,048 inputs and 1,001 results
is at hand, all its words but those that say how a volume of one pixel lies are
among those that are made for such a layer.

usage: dpu_words.py [--long]   --long: larger networks, all eight machines
"""
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

import vta

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
AMPHORA = os.environ.get("AMPHORA", os.path.join(ROOT, "build", "amphora"))
RECORDED = os.path.join(ROOT, "../shared/data/dpu/resnet_v2_101_tf.mc")
FAMILY = ["dpuczdx8g-" + size for size in ("b512", "b800", "b1024", "b1152",
                                           "b1600", "b2304", "b3136", "b4096")]


class Net(vta.Net):
    """Biases are numbers of 8 bits, all of a layer shifted alike."""

    def weights(self, shape, scale, bias=True):
        draw, self.codes = self.codes, lambda n, most: (
            [32 * code for code in draw(n, 127)] if most > 127 else
            draw(n, most))
        try:
            return super().weights(shape, scale, bias)
        finally:
            self.codes = draw


def beside(net):
    """Members of a concat in place, pools, one filter a channel."""
    at = net.conv("c", net.input(16, 21, 19), 32, 3, 1, 1)
    at = net.conv("d", at, 32, 3, 2, 1, "relu", groups=32)
    a = net.max_pool("p", net.conv("a", at, 16, 1, scale=1.0), 3, 1, 1)
    b = net.conv("b", at, 48, 3, 1, 1, scale=1.0)
    return net.conv("e", net.concat("ab", a, b), 11, 1)


def rings(net):
    """More than active memory: rows in rings, some of the weights again."""
    at = net.conv("c", net.input(3, 176, 176), 64, 3, 2, 1, "relu")
    at = net.conv("d", at, 64, 3, 1, 1, "relu")
    at = net.conv("e", at, 64, 3, 1, 1)
    return net.conv("f", net.max_pool("p", at, 3, 2, 1), 32, 1)


NETS = {"chain": vta.chain, "sums": vta.sums, "beside": beside, "rings": rings,
        "image": lambda n: n.conv("c", n.input(3, 96, 128), 64, 7, 2, 3, "relu"),
        "deep": lambda n: n.conv("c", n.input(272, 14, 14), 288, 3, 1, 1)}
LONG = {"wide": lambda n: n.conv("c", n.input(16, 64, 300), 64, 3, 1, 1),
        "high": lambda n: n.max_pool("p", n.input(32, 40, 30), 25, 5),
        "groups": lambda n: n.conv("c", n.input(32, 9, 9), 32, 3, 1, 1, groups=2)}


def amphora(*words):
    return subprocess.run([AMPHORA, *words], capture_output=True, text=True,
                          check=False)


def verified(path, machine):
    """What is wrong with the words of a network, and what was compared."""
    run = amphora("verify", path, "-t", machine, "--emit", "words", "--json")
    if not run.stdout:
        return run.stderr, 0
    result = json.loads(run.stdout)
    right = result["ok"] and not result["codes_wrong"] and \
        not result["token_faults"] and result["codes"] > 0
    return "" if right else run.stdout, result["codes"]


def compiled(path, machine, folder):
    name = os.path.basename(path)[:-5]
    run = amphora("compile", path, "-t", machine, "--emit", "words", "-o",
                  folder)
    if run.returncode:
        raise SystemExit(run.stderr)
    return os.path.join(folder, name + ".mc")


def again(path, machine, folder):
    """Whether disasm and asm give the bytes once more, and a run by itself
    what a run by verify gives."""
    words = compiled(path, machine, folder)
    text, made = words + ".txt", words + ".again"
    for command in (["disasm", words, "-o", text], ["asm", text, "-o", made],
                    ["simulate", words],
                    ["simulate", words, "--input",
                     words[:-3] + ".before.bin"]):
        run = amphora(*command, "-t", machine)
        if run.returncode:
            return run.stderr.strip()
    with open(words, "rb") as a, open(made, "rb") as b:
        return "" if a.read() == b.read() else "asm gives other words"


def cut_tokens(path, machine, folder):
    """Without any one token something is wrong."""
    words = compiled(path, machine, folder)
    with open(words, "rb") as file:
        data = file.read()
    length = {0: 5, 4: 5, 9: 4, 8: 5, 1: 6, 2: 5, 13: 3, 14: 3, 7: 1}
    own = {0: 1, 4: 2, 9: 4, 8: 4, 1: 8, 2: 8, 13: 8, 14: 8, 7: 2}
    at, tried, wrong = 0, 0, []
    while at < len(data):
        word = int.from_bytes(data[at:at + 4], "little")
        code = word >> 28
        for field in (24, 20):
            for bit in range(4):
                if 1 << bit == own[code] or not word >> field + bit & 1:
                    continue
                tried += 1
                cut = data[:at] + (word ^ 1 << field + bit).to_bytes(
                    4, "little") + data[at + 4:]
                with open(words + ".cut.mc", "wb") as file:
                    file.write(cut)
                if not amphora("simulate", words + ".cut.mc", "-t",
                               machine).returncode:
                    wrong.append(f"word {at // 4}: right without token {bit}")
        at += 4 * length[code]
    return wrong, tried


def rows_of(path, machine):
    """Instructions of a file: row, fields."""
    run = amphora("disasm", path, "-t", machine)
    text = re.sub(r"\n +", " ", run.stdout)
    rows = [line.split() for line in text.splitlines()
            if line and line[0] not in "#" and line != "mc"]
    return [(row[0], dict(part.split("=") for part in row[1:])) for row in rows]


# Of a layer of one pixel: fields that say nothing there. The result lies in the
# other group of banks there, behind the operand here.
SAYS_NOTHING = {"convinit": ("dst.jump",), "save": ("bank.jump",)}
RESULT = {"conv": ("dst.bank", "dst.addr"), "save": ("bank.id", "bank.addr")}


def told(rows):
    """How often each instruction stands there."""
    count = collections.Counter()
    first = next(fields for name, fields in rows if name == "conv")
    bank, addr = first["dst.bank"], int(first["dst.addr"])
    for name, fields in rows:
        if name in RESULT and fields[RESULT[name][0]] == bank:
            where = RESULT[name]
            fields = {**fields, where[0]: "result",
                      where[1]: int(fields[where[1]]) - addr}
        key = (name, *sorted((k, v) for k, v in fields.items()
                             if k not in SAYS_NOTHING.get(name, ())))
        if name != "convinit" or not count[key]:  # theirs says it twice
            count[key] += 1
    return count


def golden(folder):
    """The recorded layer, made anew: scales such that sums are shifted by 8,
    biases by 5."""
    net = Net("golden")
    at = net.input(2048, 1, 1, scale=2.0 ** -4)
    constants, _ = net.weights([1001, 2048], at[2])
    net.consts[constants["bias"]]["mul0"][:] = [2.0 ** -10] * 1001
    out = net.node("fc", "logits", ["x"], [1, 1001], 2.0 ** -2,
                   {"out": [1001]}, constants)
    machine = "dpuczdx8g-isa0"
    words = compiled(net.write(folder, out), machine, folder)
    with open(RECORDED, encoding="utf-8") as file:
        code = [json.loads(line)["mc_code_sstr.str()"] for line in file]
    recorded = os.path.join(folder, "recorded.mc")
    with open(recorded, "wb") as file:
        file.write(bytes.fromhex(code[0]))
    ours, theirs = (told(rows_of(path, machine)) for path in (words, recorded))
    return [f"{n} more {'recorded' if side is theirs else 'made'}: {row}"
            for side, other in ((ours, theirs), (theirs, ours))
            for row, n in (side - other).items()]


def main():
    long = "--long" in sys.argv[1:]
    nets = {**NETS, **(LONG if long else {})}
    machines = FAMILY if long else ("dpuczdx8g-b512", "dpuczdx8g-b4096")
    wrong, codes = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for name, make in nets.items():
            net = Net(name)
            path = net.write(folder, make(net))
            for machine in machines:
                bad, n = verified(path, machine)
                codes += n
                wrong += [f"{name} on {machine}: {bad}"] if bad else []
            bad = again(path, "dpuczdx8g-b4096", folder)
            wrong += [f"{name}: {bad}"] if bad else []
        bad, tried = cut_tokens(os.path.join(folder, "beside.json"),
                                "dpuczdx8g-b4096", folder)
        wrong += bad
        if os.path.exists(RECORDED):
            wrong += golden(folder)
    for one in wrong:
        print(one)
    print(f"dpu_words.py: {len(nets)} networks on {len(machines)} machines, "
          f"{codes} codes, {tried} tokens cut, {len(wrong)} wrong")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
