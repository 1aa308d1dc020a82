#!/usr/bin/env python3
"""tokens.py - instructions in queues that tokens alone order.

A program of a Vitis DPU is written here as text: weights through a ring of four
slots, a convolution each, two results saved at a time. Its bytes come back, its
words are those of the encoding as known, and its tokens are replayed: each token
that is left out is noticed, as a race, a deadlock or a token too many. What a
description says wrongly of its queues is an error at its place. Where the
recorded program is at hand, the same with it: 63, 47 and 4 tokens.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
MACHINE = "hwspec/targets/dpuczdx8g-isa0.yaml"
FAMILY = "hwspec/targets/dpuczdx8g.yaml"  # which it extends
RECORDED = "../shared/data/dpu/resnet_v2_101_tf.mc"
TOKENS = {("load", "conv"): 63, ("conv", "load"): 47, ("conv", "save"): 4}
LOAD, SAVE, CONV = 1, 2, 4
GROUPS, SLOTS = 6, 4  # of 16 output channels; that weights have


def row(name, **meanings):
    return name + "".join(f" {k.replace('_', '.')}={v}"
                          for k, v in meanings.items())


def load(waits, frees, bank, addr, channels, ddr, base):
    return row("load", waits=waits, frees=frees, bank_addr=addr, bank_id=bank,
               port=0, ddr_jump=channels, pad_index=0, pad_end=0, pad_start=0,
               channels=channels, mode=0, length=1, bank_jump=max(1, channels // 16),
               ddr_addr=ddr, ddr_base=base)


def program():
    """64 to 96 channels of one pixel."""
    rows = [load(LOAD, LOAD, 33, 0, 96, 6144, 0),
            row("convinit", waits=CONV, frees=CONV, src_jump=4, shift_cut=8,
                act_kind=0, src_jump_end=0, shift_bias=5, stride_out=0,
                dst_jump=6, offset_in=0, rows_valid=1, kernel_h=1,
                stride_h=1, dst_jump_end=0, offset_out=0, kernel_w=1,
                stride_w=1),
            load(LOAD, LOAD, 0, 0, 64, 0, 2)]
    for group in range(GROUPS):
        slot = 4 * (group % SLOTS)
        for channel in range(16):
            waits = LOAD + (CONV if group >= SLOTS and not channel else 0)
            frees = LOAD + (CONV if channel == 15 else 0)
            rows.append(load(waits, frees, 16 + channel, slot, 64,
                             64 * (16 * group + channel), 0))
        frees = CONV + (LOAD if group + SLOTS < GROUPS else 0) + (
            SAVE if group % 2 else 0)
        rows.append(row(
            "conv", waits=CONV + LOAD, frees=frees, src_addr=0, pad_top=0,
            pad_left=0, dst_addr=group, pad_bottom=0, pad_right=0, src_groups=4,
            weight_addr=slot, src_bank=0, length=1, bias_addr=group,
            dst_bank=8, src_addr1=0, src_addr2=0, src_addr3=0,
            channel_offset=0))
        if group % 2:
            rows.append(row("save", waits=SAVE + CONV, frees=SAVE,
                            bank_addr=group - 1, bank_id=8, port=0,
                            ddr_jump=1, channels=32, mode=0, length=1,
                            bank_jump=2, ddr_addr=16 * (group - 1),
                            ddr_base=3))
    return rows + [row("end", waits=SAVE, frees=SAVE)]


# Word and place: as the encoding has them.
WORDS = {0: 0x01121000, 4: 0x94402003, 8: 0x01100000, 11: 0x40000000}


def run(*args):
    return subprocess.run([AMPHORA, *args], capture_output=True, text=True,
                          timeout=300)


def replay(folder, rows):
    path = os.path.join(folder, "program.txt")
    with open(path, "w", encoding="ascii") as file:
        file.write("\n".join(["mc", *rows]) + "\n")
    done = run("simulate", path, "-t", MACHINE, "--json")
    if not done.stdout:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def round_trip(folder, rows):
    text, made = (os.path.join(folder, name) for name in ("p.txt", "p.mc"))
    with open(text, "w", encoding="ascii") as file:
        file.write("\n".join(["mc", *rows]) + "\n")
    run("asm", text, "-t", MACHINE, "-o", made)
    with open(made, "rb") as file:
        data = file.read()
    run("disasm", made, "-t", MACHINE, "-o", text)
    run("asm", text, "-t", MACHINE, "-o", made)
    with open(made, "rb") as file:
        same = file.read() == data
    wrong = [] if same else ["other bytes come back"]
    for at, word in WORDS.items():
        found = int.from_bytes(data[4 * at:4 * at + 4], "little")
        if found != word:
            wrong.append(f"word {at} is {found:08x}, {word:08x} expected")
    return wrong


def damages(rows):
    """The program without one token, or with one more."""
    for i, text in enumerate(rows):
        for key in ("waits", "frees"):
            mask = int(re.findall(rf"{key}=(\d+)", text)[0])
            own = {"load": LOAD, "convinit": CONV, "conv": CONV, "save": SAVE,
                   "end": SAVE}[text.split()[0]]
            for bit in (LOAD, SAVE, CONV):
                if bit == own:
                    continue
                other = re.sub(rf"{key}=\d+", f"{key}={mask ^ bit}", text)
                yield f"row {i}, {key} {mask ^ bit}", [
                    *rows[:i], other, *rows[i + 1:]]


def tokens_of(result):
    return {(t["from"], t["to"]): t["n"] for t in result["tokens"]}


BAD = (
    ("queues: [load, save, conv, misc]", "queues: [load]", "2 to 8 queues"),
    ("waits: waits, tells", "waits: wait, tells", "unknown meaning wait"),
    ("queue: save\n    reads", "queue: store\n    reads",
     "`store` is none of `issue.queues`"),
    ("body: [end], queue: save", "body: [end]", "end has no `queue`"),
    ("{at: biasw * 4096 + bias.addr}", "{size: 1}", "`at` is missing"),
    ("count: rows.valid, step: 4096}]\n    does:\n      - require: src",
     "count: rows.valid}]\n    does:\n      - require: src", "`step` is missing"),
)


def refused(folder):
    text, wrong = open(FAMILY, encoding="utf-8").read(), []
    for old, new, message in BAD:
        assert old in text, old
        path = os.path.join(folder, "bad.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(old, new, 1))
        done = run("check", path)
        if done.returncode != 1 or message not in done.stderr:
            wrong.append(f"{new!r}: {done.stderr}")
    return wrong


def recorded(folder):
    with open(RECORDED, encoding="utf-8") as file:
        code = [json.loads(line)["mc_code_sstr.str()"] for line in file]
    path = os.path.join(folder, "recorded.mc")
    with open(path, "wb") as file:
        file.write(bytes.fromhex(code[0]))
    result = json.loads(run("simulate", path, "-t", MACHINE, "--json").stdout)
    if result["n_faults"] or tokens_of(result) != TOKENS:
        return [f"the recorded program: {result}"]
    return []


def main():
    rows = program()
    with tempfile.TemporaryDirectory() as folder:
        result = replay(folder, rows)
        wrong = [] if not result["n_faults"] and tokens_of(result) == {
            ("load", "conv"): 6, ("conv", "load"): 2, ("conv", "save"): 3
        } else [f"{result}"]
        wrong += round_trip(folder, rows) + refused(folder)
        changed = 0
        for what, other in damages(rows):
            changed += 1
            if not replay(folder, other)["n_faults"]:
                wrong.append(f"{what}: not noticed")
        if os.path.exists(RECORDED):
            wrong += recorded(folder)
    for one in wrong:
        print(one)
    print(f"tokens.py: {len(rows)} instructions, {changed} changed tokens, "
          f"{len(BAD)} bad descriptions, {len(wrong)} wrong")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
