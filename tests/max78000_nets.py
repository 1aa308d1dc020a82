#!/usr/bin/env python3
"""max78000_nets.py - networks that were placed by hand, placed by amphora.

Each recorded network in ../shared/data/max78000 is written as a graph on codes
without any placement. What `compile` makes of it must run to the codes of the
reference, in no more cycles than the hand's, up to no higher byte of an
instance; results of layers, where nothing is averaged, must be the recorded
ones. Without recorded networks: small ones of our own, with sums, concats,
strides, groups and one dimension.
"""
import json
import os
import random
import re
import subprocess
import sys
import tempfile

from max78000 import AMPHORA, DATA, npy

# bytes of an instance: the least that the maps by hand allow
BOUND = {"mnist": 4160, "mnist-extrasmall": 4160, "fashionmnist": 4160,
         "cifar-10": 8192, "cifar10-hwc": 5120, "kws20_v3": 2048,
         "speechcom": 16384, "autoencoder": 72, "dotprod": 36,
         "cifar100-residual-random": 16384, "cats-dogs": 32768,
         "faceid": 32768, "camvid_unet": 32768}
LONG = ("camvid_unet", "faceid")
UNIT = 2.0 ** -7


class Net:
    """A graph on codes, all volumes on one scale, a power of two."""

    def __init__(self, shape):
        self.nodes, self.constants, self.data = [], [], b""
        self.shape, self.scale = {}, {}
        self.add("input", "image", [], shape)

    def add(self, kind, name, reads, shape, scale=UNIT, **more):
        """Appends a node; the name of its result."""
        self.shape[name], self.scale[name] = shape, scale
        self.nodes.append({"op": kind, "name": name, "reads": reads,
                           "writes": [{"name": name, "shape": shape,
                                       "quant": {"type": "int8",
                                                 "scale": scale,
                                                 "zero": 0}}], **more})
        return name

    def constant(self, kind, shape, data, scale):
        """Number of a constant of codes."""
        self.constants.append({"kind": kind, "shape": shape,
                               "offset": len(self.data),
                               "mul0": [scale] * shape[0]})
        self.data += data
        self.data += b"\0" * (-len(self.data) % 8)
        return len(self.constants) - 1

    def weights(self, shape, codes, bias, shift, out_axis=0, scales=None):
        """Constants of a layer that shifts by so much."""
        into, out = scales or (UNIT, UNIT)
        scale = 2.0 ** (shift - 7) * out / into
        self.constants.append({"kind": "i8", "shape": shape,
                               "offset": len(self.data),
                               ("mul1" if out_axis else "mul0"):
                               [scale] * shape[out_axis]})
        self.data += bytes(c % 256 for c in codes)
        self.data += b"\0" * (-len(self.data) % 8)
        roles = {"weight": len(self.constants) - 1}
        if bias is not None:
            data = b"".join((128 * b).to_bytes(4, "little", signed=True)
                            for b in bias)
            roles["bias"] = self.constant("i32", [len(bias)], data,
                                          into * scale)
        return roles

    def write(self, folder):
        """Path of the graph."""
        with open(os.path.join(folder, "net.bin"), "wb") as file:
            file.write(self.data)
        path = os.path.join(folder, "net.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"amphora": 1, "name": "net", "weights": "net.bin",
                       "constants": self.constants, "nodes": self.nodes,
                       "outputs": [self.nodes[-1]["writes"][0]["name"]]},
                      file)
        return path


def pooled(net, name, layer, line):
    """The volume behind the layer's pool."""
    pool, stride = layer["pool"], layer["pool_stride"]
    if pool == [1, 1]:
        return name
    kernel = [1, pool[0]] if line else pool
    size = [net.shape[name][0], net.shape[name][1]]
    if line:
        size += [1, (net.shape[name][3] - pool[0]) // stride[0] + 1]
        stride = [1, stride[0]]
    else:
        size += [(net.shape[name][2 + k] - pool[k]) // stride[k] + 1
                 for k in (0, 1)]
    return net.add("pool", name + f"p{len(net.nodes)}", [name], size,
                   attributes={"kind": "avg" if layer["pool_average"]
                               else "max",
                               "kernel": kernel, "stride": stride})


def joined(net, reads, layer):
    """The volume that a layer reads: a sum or concat of others."""
    if len(reads) == 1:
        return reads[0]
    shape = list(net.shape[reads[0]])
    if layer["eltwise"] != "none":
        return net.add("eltwise", f"e{len(net.nodes)}", reads, shape,
                       attributes={"kind": layer["eltwise"]})
    shape[1] = sum(net.shape[r][1] for r in reads)
    return net.add("concat", f"c{len(net.nodes)}", reads, shape,
                   attributes={"axis": [1]})


def weighted(net, name, layer, numbers, line):
    """The layer with weights itself."""
    offset, shape = layer["weights"]["offset"], layer["weights"]["shape"]
    count = 1
    for size in shape:
        count *= size
    codes = list(numbers[offset:offset + count])
    bias = None
    if layer.get("bias"):
        at = layer["bias"]["offset"]
        bias = numbers[at:at + layer["bias"]["shape"][0]]
    shift, out = layer["total_shift"], layer["out_channels"]
    label = f"l{layer['layer']}"
    relu = {"act": "relu"} if layer["activation"] == "ReLU" else {}
    if layer["operator"] == "linear":
        return net.add("fc", label, [name], [1, out],
                       constants=net.weights([out, count // out], codes, bias,
                                             shift),
                       attributes={"out": [out], **relu})
    kernel, pad = layer["kernel"], layer["pad"]
    rows, columns = layer["out_dim"]
    if line:
        kernel, pad = [1, kernel[0]], [0, pad[0]]
        rows, columns = 1, rows
    dims = [out, shape[1]] + kernel
    back = layer["operator"] == "convtranspose2d"
    if back:  # as it was before it was flipped and swapped
        into = shape[1]
        codes = [codes[(o * into + i) * 9 + 8 - k] for i in range(into)
                 for o in range(out) for k in range(9)]
        dims = [into, out] + kernel
    ends = [0, 0] if back else pad
    return net.add("deconv" if back else "conv", label, [name],
                   [1, out, rows, columns],
                   constants=net.weights(dims, codes, bias, shift,
                                         1 if back else 0),
                   attributes={"out_c": [out], "groups": [1],
                               "kernel": kernel, "dilation": [1, 1],
                               "stride": [2, 2] if back else [1, 1],
                               "pad": pad, "pad_end": ends, **relu})


def graph_of(truth, numbers):
    """A recorded network as a graph."""
    first = truth["layers"][0]
    line = all(layer["in_dim"][1] == 1 for layer in truth["layers"])
    height, columns = first["in_dim"]
    shape = [1, first["in_channels"], height, columns]
    if first["flatten"]:
        shape[1] = first["weights"]["shape"][1] // (height * columns)
    net = Net([1, shape[1], 1, height] if line else shape)
    made = []
    for i, layer in enumerate(truth["layers"]):
        sources = layer["in_sequences"]
        sources = [i - 1] if sources is None else sources
        reads = [made[s] if s >= 0 else "image" for s in
                 (sources if isinstance(sources, list) else [sources])]
        copies = layer["operator"] in ("none", "passthrough")
        if len(reads) > 1 and layer["eltwise"] != "none" and \
                layer["pool_first"]:
            reads = [pooled(net, r, layer, line) for r in reads]
            name = joined(net, reads, layer)
        else:
            name = pooled(net, joined(net, reads, layer), layer, line)
        made.append(name if copies else
                    weighted(net, name, layer, numbers, line))
    return net


def run(*arguments):
    """(exit code, what is printed)"""
    done = subprocess.run([AMPHORA, *arguments], capture_output=True,
                          text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def place(net, folder, given=None, *more):
    """(facts, None) or (None, what is wrong)"""
    out = os.path.join(folder, "out")
    status, text = run("compile", net.write(folder), "-t", "max78000",
                       "--emit", "yaml", "-o", out,
                       *(("--input", given) if given else ()), *more)
    found = re.search(r"memory +(\d+) .*\ncycles +(\d+)", text)
    if status or not found or " 0 wrong" not in text:
        return None, f"{status} {text[:600]}"
    status, said = run("simulate", os.path.join(out, "net.yaml"), "-t",
                       "max78000", "--weights",
                       os.path.join(out, "layers.json"), "--input",
                       os.path.join(out, "input.npy"), "--json", *more)
    if status:
        return None, f"simulate: {said[:600]}"
    with open(os.path.join(out, "net.yaml"), encoding="utf-8") as file:
        return {"bytes": int(found[1]), "cycles": int(found[2]),
                "layers": json.loads(said)["layers"],
                "yaml": file.read()}, None


def codes_of(path):
    """Codes of an .npy of bytes."""
    with open(path, "rb") as file:
        return [b - 256 if b > 127 else b for b in file.read()[128:]]


class Maker:
    """Random networks of all that is taken."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.line = self.random.random() < 0.25
        side = self.random.randrange(6, 14)
        self.net = Net([1, self.random.choice((1, 3, 4, 8)),
                        1 if self.line else side, side])

    def name(self):
        """A new one."""
        return f"t{len(self.net.nodes)}"

    def conv(self, at, out=None, same=False):
        """A convolution behind `at`."""
        net, rng = self.net, self.random
        _, into, rows, columns = net.shape[at]
        taps = rng.choice((1, 3))
        pad = taps // 2 if same else rng.randrange(0, taps // 2 + 1)
        stride = 1 if same or min(columns, rows + 9 * self.line) < 5 else \
            rng.choice((1, 1, 2))
        groups = rng.choice((1, 1, into)) if out is None else 1
        out = out or (into * 2 if groups > 1 else
                      rng.choice((4, 8, 12, 20, 68)))
        if columns < 3 or (rows < 3 and not self.line):
            taps, pad = 1, 0
        kernel = [1 if self.line else taps, taps]
        pads = [0 if self.line else pad, pad]
        dilation = rng.choice((1, 2)) if self.line and taps == 3 and \
            columns > 6 and not pad else 1
        size = [((rows, columns)[k] + 2 * pads[k] -
                 (kernel[k] - 1) * dilation - 1) // stride + 1
                for k in (0, 1)]
        scale = UNIT * 2.0 ** rng.choice((0, 0, 0, 1, -1))
        count = out * (into // groups) * kernel[0] * kernel[1]
        most = rng.choice((1, 2, 8, 128, 128))
        roles = net.weights(
            [out, into // groups] + kernel,
            [rng.randrange(-most, most) for _ in range(count)],
            [rng.randrange(-128, 128) for _ in range(out)]
            if rng.random() < 0.7 else None, rng.choice((-3, -2, -1)),
            scales=(net.scale[at], scale))
        none = {} if "bias" in roles else {"no_bias": [True]}
        return net.add("conv", self.name(), [at], [1, out] + size,
                       scale=scale, constants=roles,
                       attributes={"out_c": [out], "groups": [groups],
                                   "kernel": kernel, "pad": pads,
                                   "pad_end": pads, "stride": [stride] * 2,
                                   "dilation": [dilation] * 2,
                                   "act": rng.choice(("relu", "none"))},
                       **none)

    def pool(self, at):
        """The greatest of four, or of two."""
        shape = self.net.shape[at]
        if shape[3] < 2 or (shape[2] < 2 and not self.line):
            return at
        kernel = [1 if self.line else 2, 2]
        return self.net.add(
            "pool", self.name(), [at],
            shape[:2] + [shape[2] if self.line else shape[2] // 2,
                         shape[3] // 2], scale=self.net.scale[at],
            attributes={"kind": "max", "kernel": kernel, "stride": kernel})

    def blend(self, at):
        """A residual sum or difference, or a concat."""
        net, rng = self.net, self.random
        one = self.conv(at, out=rng.choice((4, 8, 16, 32)), same=True)
        other = self.conv(one, out=net.shape[one][1], same=True)
        kind, shape = rng.choice(("add", "sub", "concat")), net.shape[one]
        if kind == "concat":
            if net.scale[one] != net.scale[other]:
                return other
            return net.add("concat", self.name(), [one, other],
                           [1, 2 * shape[1]] + shape[2:],
                           scale=net.scale[one], attributes={"axis": [1]})
        scale = max(net.scale[one], net.scale[other])
        act = rng.choice(("relu", "none"))
        return net.add("eltwise", self.name(), [one, other], shape,
                       scale=scale, attributes={"kind": kind, "act": act})

    def network(self):
        """Some of all of these, and an inner product."""
        net, rng = self.net, self.random
        at = self.conv("image")
        for _ in range(rng.randrange(2, 5)):
            at = rng.choice((self.conv, self.pool, self.blend,
                             self.blend))(at)
        shape = net.shape[at]
        count = 5 * shape[1] * shape[2] * shape[3]
        roles = net.weights([5, count // 5],
                            [rng.randrange(-128, 128) for _ in range(count)],
                            None, -4, scales=(net.scale[at], UNIT))
        net.add("fc", self.name(), [at], [1, 5], constants=roles,
                attributes={"out": [5]}, no_bias=[True])
        return net


def check_own(seed):
    """Problems with a random network: it runs to the reference's codes."""
    with tempfile.TemporaryDirectory() as folder:
        _, wrong = place(Maker(seed).network(), folder)
    return [f"seed {seed}: {wrong}"] if wrong else []


def check_narrow():
    """Problems with 13 layers whose weights fit in 4 bits, not in 8."""
    rng, net, at = random.Random(1), Net([1, 64, 2, 2]), "image"
    for k in range(13):
        codes = [rng.randrange(-8, 8) for _ in range(64 * 64 * 9)]
        at = net.add("conv", f"t{k}", [at], [1, 64, 2, 2],
                     constants=net.weights([64, 64, 3, 3], codes, None, -1),
                     attributes={"out_c": [64], "groups": [1],
                                 "kernel": [3, 3], "pad": [1, 1],
                                 "pad_end": [1, 1], "stride": [1, 1],
                                 "dilation": [1, 1]}, no_bias=[True])
    with tempfile.TemporaryDirectory() as folder:
        found, wrong = place(net, folder)
    if not wrong and found["yaml"].count("quantization: 4") != 13:
        wrong = found["yaml"]
    return [f"narrow: {wrong}"] if wrong else []


def check_recorded(name, report):
    """Problems with our own placement of a recorded network."""
    at = os.path.join(DATA, name)
    with open(os.path.join(at, "layers.json"), encoding="utf-8") as file:
        truth = json.load(file)
    numbers = codes_of(os.path.join(at, "weights.npy"))
    averages = any(x["pool_average"] and x["pool"] != [1, 1]
                   for x in truth["layers"])
    more = ["--set", "lanes.average=half_away"] if averages else []
    with tempfile.TemporaryDirectory() as folder:
        net = graph_of(truth, numbers)
        given = os.path.join(folder, "image.npy")
        npy(given, codes_of(os.path.join(at, "input.npy")),
            tuple(net.shape["image"]))
        found, wrong = place(net, folder, given, *more)
    if wrong:
        return [f"{name}: {wrong}"]
    report.append((name, found["bytes"], BOUND[name], truth["highest"]
                   if isinstance(truth["highest"], int) else 0,
                   found["cycles"], truth["total_cycles"]))
    problems = []
    if found["bytes"] > BOUND[name]:
        problems.append(f"{name}: {found['bytes']} bytes, not {BOUND[name]}")
    if found["cycles"] > truth["total_cycles"]:
        problems.append(f"{name}: {found['cycles']} cycles, the hand's "
                        f"{truth['total_cycles']}")
    ours = {x["crc32"] for x in found["layers"]}
    for layer in truth["layers"]:
        if not averages and layer["output_width"] == 8 and \
                layer["operator"] not in ("none", "passthrough") and \
                layer["out"]["crc32"] not in ours:
            problems.append(f"{name}: nothing has layer {layer['layer']}'s "
                            "result")
    return problems


def main():
    wrong, report = [], []
    names = [n for n in BOUND if os.path.isdir(os.path.join(DATA, n)) and
             ("--long" in sys.argv or n not in LONG)]
    only = [a for a in sys.argv[1:] if a in BOUND]
    for name in only or names:
        wrong += check_recorded(name, report)
    seeds = 40 if "--long" in sys.argv else 12
    wrong += [] if only else check_narrow()
    for seed in [] if only else range(seeds):
        wrong += check_own(seed)
    for row in report:
        print("%-26s %6d bytes (bound %5d, hand %5d) %8d cycles (hand %8d)"
              % row)
    for text in wrong:
        print(text)
    print(f"{len(report)} networks placed, {len(wrong)} problems")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
