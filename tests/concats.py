#!/usr/bin/env python3
"""concats.py - one plan for a network, however its concats are written.

A dense network of two blocks with sums beside it, in ten forms: concats that
hold each other, concats that list all features so far, halves of both, each
concat once for each reader; sums with operands changed about or twice;
reshapes twice, and of reshapes. On four machines, each short of memory, all
have equal bytes, cycles and instructions, which are those of the first. And
DenseNet-121 as torchvision exports it costs what its Caffe form does, on the
first machine, with --long on each. Where each of 100 layers reads all before
it, which is more channels than an engine takes, nothing moves that need not.

  --scale  CPU seconds of concats of all prefixes of a chain, 100 to 1,000
"""
import json
import os
import resource
import subprocess
import sys
import tempfile

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
MACHINES = {"xdnn-v2-28": 56, "tile-npu": 24, "stage-npu": 28, "line-npu": 24}


class Net:
    """Lines of a prototxt; tensors are names."""

    def __init__(self, channels, size):
        self.lines, self.n = [], 0
        self.input = self.layer("Input", [], "input_param { shape { dim: 1 "
                                f"dim: {channels} dim: {size} dim: {size} }} }}")

    def layer(self, kind, inputs, param="", name=None):
        self.n += 1
        name = name or f"{kind.lower()}{self.n}"
        wires = " ".join(f'bottom: "{x}"' for x in inputs)
        self.lines.append(f'layer {{ name: "{name}" type: "{kind}" {wires} '
                          f'top: "{name}" {param} }}')
        return name

    def conv(self, x, filters, kernel, stride=1, name=None):
        return self.layer("Convolution", [x], "convolution_param { num_output: "
                          f"{filters} kernel_size: {kernel} pad: {kernel // 2} "
                          f"stride: {stride} bias_term: false }}", name)

    def norm(self, x):
        """As most files have it, before a convolution."""
        x = self.layer("BatchNorm", [x], "batch_norm_param "
                       "{ use_global_stats: true }")
        return self.layer("ReLU", [self.layer("Scale", [x], "scale_param "
                                              "{ bias_term: true }")])

    def pool(self, x):
        return self.layer("Pooling", [x], "pooling_param { pool: AVE "
                          "kernel_size: 2 stride: 2 }")

    def write(self, path):
        with open(path, "w", encoding="ascii") as out:
            out.write("\n".join(self.lines) + "\n")


# ---- ways of writing the concat of a block's features so far ----

def held(net, features, whole):
    """The one so far and the newest."""
    return net.layer("Concat", [whole, features[-1]])


def flat(net, features, _):
    return net.layer("Concat", features)


def halves(net, features, _):
    """Two concats of their own in one."""
    if len(features) < 3:
        return net.layer("Concat", features)
    mid = len(features) // 2
    first = net.layer("Concat", features[:mid]) if mid > 1 else features[0]
    return net.layer("Concat", [first, net.layer("Concat", features[mid:])])


def deep(net, features, _):
    """From the last feature on: a concat of one within another."""
    whole = features[-1]
    for x in reversed(features[:-1]):
        whole = net.layer("Concat", [x, net.layer("Concat", [whole])])
    return whole


def mixed(net, features, whole):
    """By turns as in one file and as in the other."""
    return (held if len(features) % 2 else flat)(net, features, whole)


# ---- ways of writing a sum, and a reshape ----

def add(net, a, b):
    return net.layer("Eltwise", [a, b], "eltwise_param { operation: SUM }")


def once(net, a, b):
    """For two readers."""
    x = add(net, a, b)
    return x, x


def turned(net, a, b):
    return once(net, b, a)


def twice(net, a, b):
    return add(net, a, b), add(net, b, a)


def classes(net, x):
    return net.layer("InnerProduct", [x],
                     "inner_product_param { num_output: 10 }")


def reshaped(net, x, *shapes):
    for shape in shapes:
        dims = " ".join(f"dim: {d}" for d in shape)
        x = net.layer("Reshape", [x], f"reshape_param {{ shape {{ {dims} }} }}")
    return x


def dense(path, concat=held, total=once, shapes=((0, -1),), each=False):
    """Two blocks of six, each with a sum behind it; `each`: every reader has a
    concat of its own."""
    net = Net(3, 32)
    x = net.conv(net.input, 16, 3, name="stem")
    for block in range(2):
        features, whole = [x], x
        for i in range(6):
            name = f"b{block}_{i}"
            y = net.conv(net.norm(whole), 16, 1, name=name + "a")
            features.append(net.conv(net.norm(y), 8, 3, name=name + "b"))
            whole = concat(net, features, whole)
        other = flat(net, features, whole) if each else whole
        y = net.conv(net.norm(whole), 32, 1, name=f"t{block}")
        z = net.conv(net.norm(other), 32, 1, name=f"s{block}")
        y, z = total(net, y, z)
        x = add(net, net.pool(y), net.pool(net.conv(z, 32, 3, name=f"u{block}")))
    classes(net, reshaped(net, x, *shapes))
    net.write(path)


def densenet(path, concat):
    """DenseNet-121, Huang et al. 2017."""
    net = Net(3, 224)
    x = net.conv(net.input, 64, 7, 2, "stem")
    whole, channels = net.layer("Pooling", [net.norm(x)], "pooling_param { pool: "
                                "MAX kernel_size: 3 stride: 2 }"), 64
    for block, layers in enumerate((6, 12, 24, 16)):
        if block:
            channels //= 2
            whole = net.pool(net.conv(net.norm(whole), channels, 1))
        features = [whole]
        for _ in range(layers):
            y = net.conv(net.norm(whole), 128, 1)
            features.append(net.conv(net.norm(y), 32, 3))
            whole = concat(net, features, whole)
            channels += 32
    classes(net, net.layer("Pooling", [net.norm(whole)], "pooling_param { pool: "
                           "AVE global_pooling: true }"))
    net.write(path)


def prefixes(path, layers):
    """Each layer reads all before it; all are the result."""
    net = Net(16, 16)
    features = [net.conv(net.input, 8, 3)]
    for _ in range(layers):
        x = net.layer("Concat", features)
        features.append(net.conv(x, 8, 3))
    net.layer("Concat", features)
    net.write(path)


FORMS = {
    "held": {},
    "flat": {"concat": flat},
    "halves": {"concat": halves},
    "deep": {"concat": deep},
    "mixed": {"concat": mixed},
    "each": {"each": True},
    "flat, each": {"concat": flat, "each": True},
    "sums turned": {"total": turned},
    "sums twice": {"total": twice},
    "reshapes": {"concat": flat,
                 "shapes": ((0, -1), (0, 32, -1), (0, 0, -1), (0, -1))},
}


def planned(path, machine, folder, *options):
    """The plan, and the CPU seconds that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([AMPHORA, "compile", path, "-t", machine, "-o",
                           folder, "--json", *options],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    plan = (json.loads(done.stdout) if done.returncode == 0
            else {"cost": done.stderr})
    return plan, after.ru_utime - before.ru_utime


def compiled(path, machine, folder, *options):
    """What the plan costs but for memory, and the CPU seconds that it took."""
    plan, cpu = planned(path, machine, folder, *options)
    if isinstance(plan["cost"], dict):
        plan["cost"].pop("memory")
    return plan["cost"], cpu


def equal(machine, what, path, first, folder, *options):
    """Whether the plan costs what the first does, which is then known."""
    own, _ = compiled(path, machine, folder, *options)
    if own == (first or own):
        return own, True
    print(f"{machine} {what}: {own}, {first} expected")
    return first, False


def is_whole(machine, folder):
    """Concats of all prefixes move what any plan does."""
    path = os.path.join(folder, "prefixes.prototxt")
    prefixes(path, 100)
    plan, _ = planned(path, machine, folder)
    if plan.get("ddr_moved_bytes", 1) == plan.get("ddr_bound_bytes", 0):
        return True
    print(f"{machine} prefixes: {plan}")
    return False


def scale(folder):
    path = os.path.join(folder, "prefixes.prototxt")
    for layers in (100, 300, 1000):
        prefixes(path, layers)
        for machine in MACHINES:
            cost, cpu = compiled(path, machine, folder)
            print(f"{layers:5} {machine:12} {cpu:6.2f} s {cost}", flush=True)


def main():
    right = []
    with tempfile.TemporaryDirectory() as folder:
        if "--scale" in sys.argv:
            scale(folder)
            return
        path = os.path.join(folder, "dense.prototxt")
        for machine, size in MACHINES.items():
            first = None
            for form, how in FORMS.items():
                dense(path, **how)
                first, ok = equal(machine, form, path, first, folder, "--set",
                                  f"memories.am.size={size}KiB")
                right.append(ok)
            if machine != next(iter(MACHINES)) and "--long" not in sys.argv:
                continue
            first = None
            for form in (held, flat):
                densenet(path, form)
                first, ok = equal(machine, "DenseNet-121", path, first, folder)
                right.append(ok)
        right.append(is_whole("xdnn-v2-28", folder))
    print(f"{len(right)} plans, {right.count(False)} wrong")
    sys.exit(0 if all(right) else 1)


if __name__ == "__main__":
    main()
