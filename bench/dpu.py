#!/usr/bin/env python3
"""dpu.py - a price list for Vitis DPUs against published frames per second.

    python3 bench/dpu.py [--listings] [--only NAME] [--markdown]

The rates are those of the vendor's model zoo, release 2.5: boards KV260 (one
core, 300 MHz) and ZCU104 (two), each core a B4096. Twenty networks are judged.
Constants are fitted on ten rows of KV260 (marked *); for ZCU104 the bandwidth
alone is fitted, on the same ten.

Two ways to count:
  walk      this file's own walk over the layers, with a simple rule for what
            stays on chip. It needs no plan, so all networks are judged by it.
  listing   cycles of `amphora simulate` for the listing that `amphora compile`
            writes for dpuczdx8g-b4096 with the bandwidth fitted to the walk,
            plus cycles for each convolution, fitted anew on the ten rows of
            KV260 (--listings; minutes). A layer of several filters a channel
            runs as a dense one in our listings, on the boards channel by
            channel: so it is counted as by the walk. A network that is
            refused, or takes longer than LIMIT, has a row that says so, and a
            line below the table with the compiler's first error.

Exits 1 if either misses 5 % in the mean or 15 % at worst on KV260, or 7 and
20 % on ZCU104.
"""
import csv
import json
import math
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "bench"))
import dpu_networks  # noqa: E402  (needs the path above)

AMPHORA = os.environ.get("AMPHORA", os.path.join(ROOT, "build", "amphora"))
RATES = os.path.join(ROOT, "../shared/data/dpu/zoo-2.5-fps.csv")
MACHINE = "dpuczdx8g-b4096"
# Rows and channels at a time, rows of what goes by channel, bytes on chip.
PIXELS, DEEP, SIDE, ON_CHIP = 8, 16, 4, 512 << 10
CLOCK = 300e6
LIMIT = 300  # seconds for a network's listing, and for its simulation
FITTED = ("resnet_v1_50_tf", "resnet_v1_152_tf", "chen_color_resnet18_pt",
          "vgg_19_tf", "Inception_v3_tf2", "Inception_v4_tf", "SqueezeNet_pt",
          "mobilenet_1_0_224_tf2", "mobilenet_v2_1_0_224_tf",
          "yolov3_coco_tf2")
BOARDS = {"KV260": (1, .05, .15), "ZCU104": (2, .07, .20)}
# Published operations that count a multiplication and its sum as one.
MACS = {"SqueezeNet_pt", "mobilenet_edge_0_75_tf"}
ADMITTED = .03  # of the published operations
LEFT_OUT = (
    ("efficientnet-b0_tf2, efficientNet-edgetpu-M_tf",
     "swish and gates, whose layers are not public to 3 % of the operations"),
    ("vehicle_type_resnet18_pt", "the network of chen_color_resnet18_pt again"),
    ("ENet, fadnet, mobilenet_v2_cityscapes, movenet, multi_task_v3, "
     "ofa_depthwise_res50, pointpainting, pointpillars, salsanext_v2, "
     "SemanticFPN, ssd_resnet_50_fpn, SESR_S, face-quality, centerpoint",
     "bound by the processor, not by the DPU"),
    ("ofa_*, *_pruned, drunet, facereid-large, FairMot, HardNet_MSeg, "
     "textmountain, bcc, ssr, SA_gate, refinedet, ultrafast, "
     "person-orientation", "pruned, or of a structure that is not public"))


def ceil(a, b):
    return -(-a // b)


# ---- networks ----

class Layer:
    """kind; blobs; sizes (c, h, w) of the first input and of the result."""

    def __init__(self, kind, bottoms, top, source, made, param):
        self.kind, self.bottoms, self.top = kind, bottoms, top
        self.source, self.made, self.param = source, made, param


def numbers(text):
    param = {k: int(v) for k, v in re.findall(r"(\w+): (\d+)", text)}
    param["pool"] = (re.findall(r"pool: (\w+)", text) or [""])[0]
    for axis in "hw":
        for what in ("kernel", "pad"):
            one = "kernel_size" if what == "kernel" else "pad"
            param.setdefault(f"{what}_{axis}",
                             param.get(one, 0 if what == "pad" else 1))
    param["global"] = "global_pooling: true" in text
    return param


def size_behind(kind, shape, param, sizes):
    c, h, w = shape
    stride = param.get("stride", 1)
    if kind == "Convolution":
        return (param["num_output"],
                *((n + 2 * param["pad_" + a] - param["kernel_" + a]) // stride
                  + 1 for a, n in (("h", h), ("w", w))))
    if kind == "Pooling" and param["global"]:
        return c, 1, 1
    if kind == "Pooling":
        return (c, *(ceil(n + 2 * param["pad_" + a] - param["kernel_" + a],
                          stride) + 1 for a, n in (("h", h), ("w", w))))
    if kind == "InnerProduct":
        return param["num_output"], 1, 1
    if kind == "Concat":
        return sum(size[0] for size in sizes), h, w
    if kind == "Upsample":
        return c, 2 * h, 2 * w
    return shape


def layers_of(net):
    """Layers that compute, and the network's input."""
    sizes, layers = {}, []
    for text in re.findall(r"layer \{\n(.*?)\n\}", net.text(), re.S):
        kind = re.findall(r'type: "(\w+)"', text)[0]
        bottoms = re.findall(r'bottom: "([^"]+)"', text)
        top = re.findall(r'top: "([^"]+)"', text)[0]
        if kind == "Input":
            sizes[top] = tuple(int(n) for n in re.findall(r"dim: (\d+)", text))[1:]
            start = top
            continue
        param = numbers(text)
        source = sizes[bottoms[0]]
        made = size_behind(kind, source, param, [sizes[b] for b in bottoms])
        sizes[top] = made
        if bottoms == [top] or kind in ("Softmax", "Dropout"):
            continue
        layers.append(Layer(kind, bottoms, top, source, made, param))
    return layers, start, sizes


def groups(layer):
    return layer.param.get("group", 1)


def products(layer):
    c, h, w = layer.made
    if layer.kind == "Convolution":
        return (c * h * w * layer.source[0] // groups(layer) *
                layer.param["kernel_h"] * layer.param["kernel_w"])
    if layer.kind == "InnerProduct":
        return c * math.prod(layer.source)
    return 0


# ---- what a layer takes ----

def is_dense(layer):
    return (layer.kind == "InnerProduct" or
            layer.kind == "Convolution" and groups(layer) == 1)


def cycles(layer, first):
    """Of the engines."""
    c, h, w = layer.made
    p = layer.param
    if layer.kind == "Convolution" and groups(layer) == 1:
        deep = ceil(layer.source[0], DEEP) * p["kernel_h"] * p["kernel_w"]
        if first:  # several taps side by side
            deep = ceil(layer.source[0] * p["kernel_w"], DEEP) * p["kernel_h"]
        return ceil(h, PIXELS) * w * deep * ceil(c, DEEP)
    if layer.kind == "Convolution":
        return (ceil(h, SIDE) * w * ceil(layer.source[0], DEEP) *
                (c // layer.source[0]) * p["kernel_h"] * p["kernel_w"])
    if layer.kind == "InnerProduct":
        return ceil(layer.source[0], DEEP) * layer.source[1] * \
            layer.source[2] * ceil(c, DEEP)
    if layer.kind == "Pooling":
        taps = p["kernel_h"] * p["kernel_w"]
        if p["global"]:
            taps = layer.source[1] * layer.source[2]
        return ceil(h, SIDE) * w * ceil(c, DEEP) * taps
    if layer.kind == "Eltwise":
        return 4 * ceil(h, 4) * w * ceil(c, DEEP)
    if layer.kind == "Scale":
        return ceil(h, SIDE) * w * ceil(c, DEEP)
    return 0


def weight_bytes(layer):
    if layer.kind == "InnerProduct":
        taps, source = layer.source[1] * layer.source[2], layer.source[0]
    elif layer.kind == "Convolution":
        taps = layer.param["kernel_h"] * layer.param["kernel_w"]
        source = layer.source[0]
        if groups(layer) > 1:
            return taps * ceil(layer.made[0], DEEP) * DEEP
    else:
        return 0
    return taps * ceil(source, DEEP) * DEEP * ceil(layer.made[0], DEEP) * DEEP


# ---- the walk ----

def fused(layers):
    """Lists of layers that are done as one: a convolution and the sum that it
    alone feeds last, or the max pool that alone reads it."""
    uses = {}
    for layer in layers:
        for bottom in layer.bottoms:
            uses.setdefault(bottom, []).append(layer)
    made = {layer.top: i for i, layer in enumerate(layers)}
    steps, step_of = [], {}
    for layer in layers:
        last = max(layer.bottoms, key=lambda b: made.get(b, -1))
        into = step_of.get(last)
        joins = layer.kind == "Eltwise" or (
            layer.kind == "Pooling" and layer.param["pool"] == "MAX" and
            not layer.param["global"])
        if (joins and into is not None and len(uses[last]) == 1 and
                is_dense(steps[into][-1])):
            steps[into].append(layer)
            step_of[layer.top] = into
        else:
            step_of[layer.top] = len(steps)
            steps.append([layer])
    return steps


class Walk:
    """What stays on chip; bytes of features that pass."""

    def __init__(self, net):
        self.layers, self.start, self.sizes = layers_of(net)
        self.parts = {}
        for layer in self.layers:
            if layer.kind == "Concat":
                self.parts[layer.top] = [
                    part for b in layer.bottoms for part in self.blobs(b)]
        self.steps = [s for s in fused(self.layers) if s[0].kind != "Concat"]
        self.used = {}
        for i, step in enumerate(self.steps):
            for blob in self.reads(step):
                self.used.setdefault(blob, []).append(i)
        read = {b for layer in self.layers for b in layer.bottoms}
        for layer in self.layers:
            if layer.top not in read:
                for blob in self.blobs(layer.top):
                    self.used.setdefault(blob, []).append(len(self.steps))
        self.on_chip, self.outside = set(), {self.start}
        self.moved = 0

    def blobs(self, name):
        return self.parts.get(name, [name])

    def reads(self, step):
        inside = {layer.top for layer in step}
        return sorted({blob for layer in step for b in layer.bottoms
                       if b not in inside for blob in self.blobs(b)})

    def padded(self, blob):
        c, h, w = self.sizes[blob]
        return ceil(h, PIXELS) * PIXELS * w * ceil(c, DEEP) * DEEP

    def store(self, blob):
        if blob not in self.outside:
            self.moved += math.prod(self.sizes[blob])
            self.outside.add(blob)

    def next_use(self, blob, at):
        return min((i for i in self.used.get(blob, ()) if i > at),
                   default=1 << 30)

    def make_room(self, needed, at):
        room = ON_CHIP - sum(self.padded(b) for b in needed)
        others = [b for b in self.on_chip if b not in needed and
                  self.next_use(b, at) < 1 << 30]
        others.sort(key=lambda b: (self.next_use(b, at), b))
        for blob in others:
            room -= self.padded(blob)
            if room < 0:
                self.store(blob)
        kept, room = set(), ON_CHIP - sum(self.padded(b) for b in needed)
        for blob in others:
            room -= self.padded(blob)
            if room >= 0:
                kept.add(blob)
        self.on_chip = kept

    def step(self, at):
        """Bytes of features that move there."""
        step, before = self.steps[at], self.moved
        reads, made = self.reads(step), step[-1].top
        for blob in reads:
            if blob not in self.on_chip:
                self.moved += math.prod(self.sizes[blob])
        if sum(self.padded(b) for b in {*reads, made}) <= ON_CHIP:
            self.make_room({*reads, made}, at)
            self.on_chip |= {made, *reads}
        else:
            for blob in self.on_chip:
                if self.next_use(blob, at) < 1 << 30:
                    self.store(blob)
            self.on_chip = set()
            self.store(made)
        if len(self.steps) in self.used.get(made, ()):
            self.store(made)
        return self.moved - before


def walked(net):
    """Of each step: cycles of the engines, bytes, whether it is a convolution
    with weights of its own."""
    walk = Walk(net)
    rows = []
    for at, step in enumerate(walk.steps):
        busy = sum(cycles(layer, walk.start in layer.bottoms)
                   for layer in step)
        moved = walk.step(at) + sum(weight_bytes(layer) for layer in step)
        rows.append((busy, moved, any(is_dense(layer) for layer in step)))
    return rows


def frames(rows, wide, each, cores):
    time = sum(max(busy, moved / wide) + (each if dense else 0)
               for busy, moved, dense in rows)
    return cores * CLOCK / time


def convs(rows):
    return sum(dense for _, _, dense in rows)


def fit(rows, published, cores, each=None):
    """Bytes a cycle, and cycles for each convolution, with the least squared
    errors of logarithms; by a grid that closes in."""
    names = [name for name in FITTED if name in rows]

    def error(wide, own):
        return sum(math.log(frames(rows[n], wide, own, cores) / published[n])
                   ** 2 for n in names)

    low, high, own_low, own_high = 8.0, 40.0, 0.0, 12000.0
    for _ in range(6):
        wides = [low + (high - low) * i / 16 for i in range(17)]
        owns = [each] if each is not None else [
            own_low + (own_high - own_low) * i / 16 for i in range(17)]
        wide, own = min(((w, o) for w in wides for o in owns),
                        key=lambda pair: error(*pair))
        step, own_step = (high - low) / 8, (own_high - own_low) / 8
        low, high = wide - step, wide + step
        own_low, own_high = max(0, own - own_step), own + own_step
    return wide, own


# ---- listings ----

class NoListing(Exception):
    """A word for the table, and the reason."""


def said_by(command):
    """A command's result; one that takes too long ends with NoListing."""
    try:
        return subprocess.run(command, capture_output=True, text=True,
                              timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        raise NoListing("too slow", f"{command[1]} took over {LIMIT} s") \
            from None


def first_error(text):
    errors = [line for line in text.splitlines() if "error: " in line]
    return errors[0].partition("error: ")[2] if errors else "no error told"


def listing_cycles(net, wide, folder):
    """Cycles of a network's listing; NoListing where it has none."""
    path = os.path.join(folder, "net.prototxt")
    with open(path, "w", encoding="ascii") as file:
        file.write(net.text())
    sets = []
    for memory in ("ddr", "inputs", "outputs"):
        sets += ["--set", f"memories.{memory}.bandwidth={wide * 0.3:.3f}GB/s"]
    done = said_by([AMPHORA, "compile", path, "-t", MACHINE, "-o", folder,
                    "--json", *sets])
    if done.returncode:
        raise NoListing("refused", first_error(done.stderr))
    plan = json.loads(done.stdout)
    done = said_by([AMPHORA, "simulate", plan["listing"], "-t", MACHINE,
                    "--json", "--memory-only", *sets])
    run = json.loads(done.stdout)
    if run["violations"]:
        sys.exit(f"{plan['network']}: {done.stderr}")
    return run["cycles"]


def filters_a_channel(net):
    """Cycles of the layers of several filters a channel."""
    return sum(cycles(layer, False) for layer in layers_of(net)[0]
               if 1 < groups(layer) < layer.made[0])


def listed_cycles(nets, wide):
    """Cycles by network, and (word, reason) of those without a listing."""
    listed, without = {}, {}
    for name, net in nets.items():
        with tempfile.TemporaryDirectory() as folder:
            try:
                listed[name] = (listing_cycles(net, wide, folder) +
                                filters_a_channel(net))
            except NoListing as error:
                without[name] = error.args
                print(f"  {name}: {error.args[0]}", file=sys.stderr)
                continue
        print(f"  {name}: {listed[name]} cycles", file=sys.stderr)
    return listed, without


def listings(nets, rows, rates, constants):
    """Frames a second by board and network, cycles for each convolution, and
    (word, reason) of networks without listings."""
    found, without, each = {}, {}, None
    for board, (cores, _, _) in BOARDS.items():
        took, lacking = listed_cycles(nets, constants[board][0])
        without.update(lacking)
        whole = {name: [(n, 0, False)] + [(0, 0, True)] * convs(rows[name])
                 for name, n in took.items()}
        fps = {name: rates[board, name][0] for name in whole}
        if each is None:
            _, each = fit(whole, fps, cores)
        found[board] = {name: frames(whole[name], 1, each, cores)
                        for name in whole}
    return found, each, without


# ---- tables ----

def published_rates():
    rates = {}
    with open(RATES, encoding="utf-8") as file:
        for row in csv.reader(file):
            if row[0] in BOARDS:
                rates[row[0], row[2]] = (float(row[5]), row[3])
    return rates


def published_products(name, label):
    text = re.findall(r"_([\d.]+)([GM])$", label)[0]
    number = float(text[0]) * (1e9 if text[1] == "G" else 1e6)
    return number if name in MACS else number / 2


def judge(what, rates, board, found, mean, worst):
    """Whether the errors are too large."""
    error = {n: abs(rates[board, n][0] / found[n] - 1) for n in found}
    for label, names in (("", set(found)), (", fitted", set(FITTED)),
                         (", others", set(found) - set(FITTED))):
        sizes = [error[n] for n in names if n in found]
        if sizes:
            print(f"{what}{label}: {len(sizes)} networks, mean "
                  f"{100 * sum(sizes) / len(sizes):.1f} %, worst "
                  f"{100 * max(sizes):.1f} %")
    sizes = list(error.values())
    return sum(sizes) / len(sizes) > mean or max(sizes) > worst


def main():
    if not os.path.exists(RATES):
        print("no ../shared/data: nothing is judged")
        return 0
    only = sys.argv[sys.argv.index("--only") + 1] if "--only" in sys.argv else ""
    rates = published_rates()
    nets = {name: make() for name, make in dpu_networks.NETWORKS.items()
            if only in name}
    rows = {name: walked(net) for name, net in nets.items()}
    for name, net in nets.items():
        own = sum(products(layer) for layer in layers_of(net)[0])
        theirs = published_products(name, rates["KV260", name][1])
        if abs(own / theirs - 1) > ADMITTED:
            print(f"{name}: {own / 1e9:.3f} G products, {theirs / 1e9:.3f} "
                  "published: it is another network")
    constants, found, each = {}, {}, None
    for board, (cores, _, _) in BOARDS.items():
        fps = {name: rates[board, name][0] for name in nets}
        wide, own = fit(rows, fps, cores, each)
        each = own if each is None else each
        constants[board] = wide, own
        found[board] = {name: frames(rows[name], wide, own, cores)
                        for name in nets}
    listed, own, without = listings(nets, rows, rates, constants) \
        if "--listings" in sys.argv else ({}, 0, {})
    print("constants: " + ", ".join(
        f"{board} {wide:.2f} B/cycle ({wide * .3:.2f} GB/s)"
        for board, (wide, _) in constants.items()) +
        f", {each:.0f} cycles for each convolution" +
        (f" of the walk, {own:.0f} of listings" if listed else ""))
    ways = {"walk": found, **({"listing": listed} if listed else {})}
    head = [f"{board} | " + " | ".join(f"{way} | error" for way in ways)
            for board in BOARDS]
    print("| network | " + " | ".join(head) + " |\n|" +
          "---|" * (1 + len(BOARDS) * (1 + 2 * len(ways))))
    for name in nets:
        cells = [name + (" *" if name in FITTED else "")]
        for board in BOARDS:
            fps = rates[board, name][0]
            cells.append(f"{fps:g}")
            for way in ways.values():
                rate = way[board].get(name)
                cells += [f"{rate:.4g}", f"{100 * (fps / rate - 1):+.1f} %"] \
                    if rate else [without[name][0], "-"]
        print("| " + " | ".join(cells) + " |")
    print("(error = published / ours - 1)")
    for name, (word, reason) in without.items():
        print(f"{name}: {word}: {reason}")
    bad = False
    for board, (_, mean, worst) in BOARDS.items():
        for way, rate in ways.items():
            bad |= judge(f"{board} {way}", rates, board, rate[board], mean,
                         worst)
    for names, why in LEFT_OUT:
        print(f"left out: {names}: {why}")
    return bad


if __name__ == "__main__":
    sys.exit(main())
