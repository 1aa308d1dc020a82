#!/usr/bin/env python3
"""falsify.py - listings below the bounds that `compile` prints: there are none.

Random small networks on bench/rows.yaml, in as little memory as is interesting.
falsify_search.py looks for plans of fewer bytes than a bound says, under what
the bound's name says: any plan (ddr_bound_bytes), none that computes a row twice
(once), layer by layer in the file's order (layers). What it finds becomes a
listing by hand: each row somewhere, windows put together by copies of a channel
of a row, which `simulate` runs: no violation, the same values, as many bytes. A
plan below a bound fails, verified or not.
So that nothing is found because nothing can be: below the bound for plans that
put no rows together (apart), which these do, listings must be found, and verify;
so must one that is written by hand (../shared/data/repro/wn2-hand.cmd).

usage: falsify.py [--long] [--seed N]
"""
import filecmp
import glob
import json
import os
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(__file__))
from falsify_search import KINDS, Net, Search  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
AMPHORA = os.path.join(ROOT, "build", "amphora")
MACHINE = os.path.join(ROOT, "bench", "rows.yaml")
REPRO = os.path.join(ROOT, "..", "shared", "data", "repro")
QUICK, LONG = (128, 3000), (4000, 30000)  # networks, states of a search
CHAINS = 8  # one in so many networks is a chain
PARTS = (0.25, 0.35, 0.5, 0.7)  # of what everything takes


# ---- networks ----

def random_net(rng):
    """Two to four layers, some with two readers, some wide."""
    net = Net()
    net.add((rng.randint(1, 3), rng.choice((4, 5, 6)), rng.randint(2, 4)))
    for _ in range(rng.randint(2, 4)):
        last = len(net.shape) - 1
        o = last if rng.random() < 0.8 else rng.randint(0, last)
        c, h, w = net.shape[o]
        alike = [t for t, s in enumerate(net.shape)
                 if t != o and s == net.shape[o]]
        kind = rng.random()
        if alike and kind < 0.4:
            net.add((c, h, w), ("add", 1, 1, 0, [o, rng.choice(alike)]))
        elif h % 2 == 0 and w % 2 == 0 and h > 2 and kind < 0.5:
            net.add((c, h // 2, w // 2), ("pool", 2, 2, 0, [o]))
        elif h > 2 and kind < 0.55:
            net.add((c, (h + 1) // 2, (w + 1) // 2), ("conv", 1, 2, 0, [o]))
        else:
            k = rng.choice((1, 3, 3, 3))
            net.add((rng.choice((c, 1, 2, 5, 6)), h, w),
                    ("conv", k, 1, k // 2, [o]))
    return net.finish()


def chain(rng):
    """A wide result among narrow ones, and the memory for some of its rows."""
    net = Net()
    h, w, wide = rng.randint(10, 16), rng.randint(1, 2), rng.randint(8, 16)
    net.add((2, h, w))
    for c in [wide] + [2] * rng.randint(3, 6):
        net.add((c, h, w), ("conv", 3, 1, 1, [len(net.shape) - 1]))
    return net.finish(), w * rng.choice((5, 6)) * wide + 30


def prototxt(net):
    name = [f"t{i}" for i in range(len(net.shape))]
    lines = ['name: "net"', 'layer { name: "t0" type: "Input" top: "t0" '
             'input_param { shape { dim: 1 dim: %d dim: %d dim: %d } } }'
             % net.shape[0]]
    for t, layer in enumerate(net.layer):
        if not layer:
            continue
        op, k, s, p, operands = layer
        kind, more = {
            "conv": ("Convolution", "convolution_param { num_output: %d "
                     "kernel_size: %d stride: %d pad: %d }"
                     % (net.shape[t][0], k, s, p)),
            "pool": ("Pooling", "pooling_param { pool: MAX kernel_size: %d "
                     "stride: %d }" % (k, s)),
            "add": ("Eltwise", "")}[op]
        below = " ".join(f'bottom: "{name[o]}"' for o in operands)
        lines.append(f'layer {{ name: "{name[t]}" type: "{kind}" {below} '
                     f'top: "{name[t]}" {more} }}')
    return "\n".join(lines) + "\n"


# ---- amphora ----

def amphora(*args):
    done = subprocess.run([AMPHORA, *args], capture_output=True, text=True,
                          timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


def machine_of(memory):
    return ["-t", MACHINE, "--set", f"memories.am.size={memory}"]


def compiled(path, memory, folder):
    code, out, err = amphora("compile", path, *machine_of(memory), "--json",
                             "--objective", "bytes", "-o", folder)
    if code not in (0, 3):
        raise RuntimeError(f"{path} in {memory}: {code} {err}")
    return json.loads(out) if code == 0 else None


def simulated(listing, memory, folder):
    code, out, err = amphora("simulate", listing, *machine_of(memory), "--json",
                             "-o", folder)
    return json.loads(out) if out else {"code": code, "error": err}


# ---- listings by hand ----

class Hand:
    """A listing from the steps of a search. Rows lie in blocks of [c, w];
    `place` by row."""

    def __init__(self, net, memory, made, image):
        self.net, self.memory = net, memory
        self.lines, self.place, self.outputs = [], {}, {}
        self.spill, end = {}, 0
        for o in image["outputs"]:
            self.outputs[int(o["name"][1:])] = o["offset"]
        for t, (c, h, w) in enumerate(net.shape):
            self.spill[t], end = end, end + c * h * w
        self.template, self.row = {}, {}
        for line in made:
            word = line.split()
            if line.startswith("# template"):
                self.template[word[2]] = word[3:]
            elif not line.startswith("#"):
                what = word[1]
                self.row.setdefault((what, word[2].split("#")[0]), word)
        self.n = 0

    def emit(self, op, **fields):
        names = self.template[op]
        base = next((word for (what, of), word in self.row.items()
                     if what == op and of == fields.get("of")), None)
        values = []
        for i, name in enumerate(names):
            if name == "id":
                values.append(str(self.n + 1))
            elif name == "XNOp":
                values.append(op)
            else:
                values.append(str(fields.get(name, base[i] if base else 0)))
        self.n += 1
        self.lines.append(" ".join(values) + " # by hand")

    def copy(self, at, to, n=1):
        self.emit("XNMaxPool", name=f"copy{self.n}", kernel_w=1, kernel_h=1,
                  strides_w=1, strides_h=1, paddings_w=0, paddings_h=0,
                  inaddr=hex(at), insize_w=n, insize_h=1, inchan=1,
                  outaddr=hex(to), outsize_w=n, outsize_h=1)

    def slide(self, at, end, row):
        """A block to the front, by channels of a row; where it overlaps itself,
        by way of the end of memory."""
        c, _, w = self.net.shape[self.net.rows[row][0]]
        far = self.memory - w
        last = max(self.place[r] + self.net.size[r] for r in self.place)
        for k in range(c):
            if at - end >= w:
                self.copy(at + k * w, end + k * w, w)
            elif far >= last:
                self.copy(at + k * w, far, w)
                self.copy(far, end + k * w, w)
            else:
                raise RuntimeError("no room to move blocks")

    def compact(self):
        """All blocks to the front; returns where they end."""
        end = 0
        for row in sorted(self.place, key=self.place.get):
            if self.place[row] != end:
                self.slide(self.place[row], end, row)
                self.place[row] = end
            end += self.net.size[row]
        return end

    def room(self, size):
        """A hole, if need be behind all blocks."""
        end = 0
        for row in sorted(self.place, key=self.place.get):
            if self.place[row] - end >= size:
                return end
            end = self.place[row] + self.net.size[row]
        if end + size > self.memory:
            end = self.compact()
        if end + size > self.memory:
            raise RuntimeError(f"{end} + {size} bytes in {self.memory}")
        return end

    def window(self, rows, at):
        """Rows side by side in all channels; their address."""
        if len(rows) == 1:
            return self.place[rows[0]], at
        c, _, w = self.net.shape[self.net.rows[rows[0]][0]]
        for i, row in enumerate(rows):
            for k in range(c):
                self.copy(self.place[row] + k * w,
                          at + (k * len(rows) + i) * w, w)
        return at, at + c * len(rows) * w

    def make(self, row, over=None):
        net, (t, y) = self.net, self.net.rows[row]
        op, k, s, p, operands = net.layer[t]
        c, _, w = net.shape[t]
        windows = net.needs[row]
        size = 0 if over is not None else net.size[row]
        extra = sum(net.size[r] for x in windows for r in x if len(x) > 1)
        at = self.room(size + extra)
        out = self.place[over] if over is not None else at
        ins = []
        at += size
        for rows in windows:
            address, at = self.window(rows, at)
            ins.append(address)
        self.layer(t, y, op, ins, out, len(windows[0]))
        if over is not None:
            del self.place[over]
        self.place[row] = out

    def layer(self, t, y, op, ins, out, rows):
        _, k, s, p, operands = self.net.layer[t]
        c, _, w = self.net.shape[t]
        in_c, _, in_w = self.net.shape[operands[0]]
        top = max(0, p - y * s)
        sizes = {"insize_w": in_w, "insize_h": rows, "inchan": in_c,
                 "outaddr": hex(out), "of": f"t{t}", "name": f"t{t}#{y}"}
        if op == "conv":
            self.emit("XNConv", inaddr=hex(ins[0]), padding_h=top,
                      outsize_w=w, outsize_h=1, outchan=c, **sizes)
        elif op == "pool":
            self.emit("XNMaxPool", inaddr=hex(ins[0]), outsize_w=w,
                      outsize_h=1, **sizes)
        else:
            self.emit("XNEltwise", inaddrA=hex(ins[0]), inaddrB=hex(ins[1]),
                      **sizes)

    def move(self, kind, row):
        t, y = self.net.rows[row]
        c, h, w = self.net.shape[t]
        if kind == "load":
            self.place[row] = at = self.room(self.net.size[row])
            self.emit("XNGather", uram_dest=hex(at),
                      ddr_src=hex(0 if t == 0 else self.spill[t]), insize_w=w,
                      insize_h=h, inchan=c, b1=1, c1=1, start_row=y, end_row=y,
                      srcAddrReadFromImgQ=int(t == 0))
            return
        out = t in self.outputs
        self.emit("XNScatter", uram_src=hex(self.place[row]),
                  ddr_dest=hex(self.outputs[t] if out else self.spill[t]),
                  outsize_w=w, outsize_h=h, outchan=c, b1=1, c1=1, start_row=y,
                  end_row=y, destAddrReadFromImgQ=int(out))

    def write(self, steps):
        for kind, row, gone, over, held in steps:
            for dropped in gone:
                del self.place[dropped]
            if kind in ("load", "store"):
                self.move(kind, row)
            else:
                self.make(row, over)
            for dropped in [r for r in self.place if not held >> r & 1]:
                del self.place[dropped]
        return self.lines


def outputs_same(one, other):
    names = [os.path.basename(f) for f in glob.glob(f"{one}/*.npy")]
    return bool(names) and not any(filecmp.cmpfiles(one, other, names,
                                                    shallow=False)[1:])


def run_by_hand(lines, made, name, memory, folder):
    """What is wrong with the listing, if it is run as the one that amphora made
    is: else the bytes that it moves."""
    hand = os.path.join(folder, "hand")
    os.makedirs(hand, exist_ok=True)
    with open(f"{folder}/{name}.json", encoding="utf-8") as file:
        beside = json.load(file)
    beside["network"] = beside["amphora"]["image"]["layers"] = []  # the table
    beside["amphora"]["instructions"] = lines
    with open(f"{hand}/{name}.json", "w", encoding="utf-8") as file:
        json.dump(beside, file)
    with open(f"{hand}/{name}.cmd", "w", encoding="utf-8") as file:
        file.write("\n".join([l for l in made if l.startswith("#")] + lines)
                   + "\n")
    simulated(f"{folder}/{name}.cmd", memory, f"{folder}/one")
    sim = simulated(f"{hand}/{name}.cmd", memory, f"{folder}/other")
    if sim.get("violations") != 0:
        return str(sim.get("violation_list", sim))[:400]
    if not outputs_same(f"{folder}/one", f"{folder}/other"):
        return "other values"
    return sim["ddr_read_bytes"] + sim["ddr_written_bytes"]


def made_by_hand(net, steps, memory, folder):
    with open(f"{folder}/net.cmd", encoding="utf-8") as file:
        made = file.read().splitlines()
    with open(f"{folder}/net.json", encoding="utf-8") as file:
        image = json.load(file)["amphora"]["image"]
    try:
        lines = Hand(net, memory, made, image).write(steps)
    except RuntimeError as error:
        return str(error)
    return run_by_hand(lines, made, "net", memory, folder)


# ---- the test ----

class Tally:
    def __init__(self):
        self.n = {"searches": 0, "with more than any": 0, "cut off": 0, "with more apart": 0,
                  "verified below apart": 0}
        self.bad = []

    def count(self, what):
        self.n[what] += 1


def attack(net, path, memory, folder, most, tally):
    plan = compiled(path, memory, folder)
    if not plan:
        return
    least = plan["ddr_bound_bytes"]
    for kind in KINDS:
        bound = plan[f"ddr_{kind}bound_bytes"]
        if kind and bound == least:
            continue  # the same as for any
        tally.count("searches")
        tally.n["with more than any"] += bool(kind)
        search = Search(net, memory, kind, bound, most if kind else most // 10)
        found = search.run()
        tally.n["cut off"] += not search.exhausted
        if found:
            tally.bad.append(
                f"{kind or 'any'}: bound {bound} in {memory} bytes, found "
                f"{found[0]}, by hand "
                f"{made_by_hand(net, found[1], memory, folder)}\n"
                f"{prototxt(net)}")
    apart = plan["ddr_apart_bound_bytes"]
    tally.n["with more apart"] += apart > least
    found = apart > least and Search(net, memory, "once_", apart, most).run()
    if found:
        moved = made_by_hand(net, found[1], memory, folder)
        if moved == found[0]:
            tally.count("verified below apart")
        else:
            tally.bad.append(f"by hand: {moved}, not {found[0]}, in {memory} "
                             f"bytes\n{prototxt(net)}")


def random_nets(seed, n, most, folder, tally):
    path = os.path.join(folder, "net.prototxt")
    for i in range(n):
        rng = random.Random(seed * 100003 + i)
        net = random_net(rng)
        memory = int(sum(net.size) * rng.choice(PARTS))
        if i % CHAINS == 0:
            net, memory = chain(rng)
        with open(path, "w", encoding="utf-8") as file:
            file.write(prototxt(net))
        attack(net, path, memory, folder, most, tally)


def by_hand(folder):
    """The listing that was written by hand, if it is here; what is wrong."""
    memory, name = 24576, "wn2"
    path = os.path.join(REPRO, f"{name}.prototxt")
    if not os.path.exists(path):
        return None
    plan = compiled(path, memory, folder)
    with open(f"{folder}/{name}.cmd", encoding="utf-8") as file:
        made = file.read().splitlines()
    with open(os.path.join(REPRO, f"{name}-hand.cmd"), encoding="utf-8") as file:
        lines = [l for l in file.read().splitlines() if not l.startswith("#")]
    moved = run_by_hand(lines, made, name, memory, folder)
    print(f"{name}-hand: {moved} bytes, bound {plan['ddr_bound_bytes']}, "
          f"apart {plan['ddr_apart_bound_bytes']}")
    return None if moved == plan["ddr_bound_bytes"] else \
        f"{name}-hand.cmd: {moved}"


def main():
    args = sys.argv[1:]
    seed = int(args[args.index("--seed") + 1]) if "--seed" in args else 1
    n, most = LONG if "--long" in args else QUICK
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        random_nets(seed, n, most, folder, tally)
        wrong = by_hand(folder)
    print(", ".join(f"{count} {what}" for what, count in tally.n.items()))
    for text in tally.bad + [wrong] * bool(wrong):
        print(text)
    return bool(tally.bad or wrong or not tally.n["verified below apart"])


if __name__ == "__main__":
    sys.exit(main())
