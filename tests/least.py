#!/usr/bin/env python3
"""least.py - is it true what is said where nothing fits?

Networks on machines with 64 bytes of active memory: the size that "would do" must
do, and the one that "would not" must be refused with exit code 3; no step needs
more than would do, nor does its smallest stripe or slab. With little backing
memory, what fits must fit with more active memory, too, and nobody hears of the
plans for which it was too little. Where weights lie in active memory, small
networks of several kinds fit in no size below the one that is named, and in each
above it, which never costs cycles. Where addresses are multiples of 48,
memories need not be: the size that would do is the least to the byte.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, "bench")
import networks  # noqa: E402
import tool  # noqa: E402

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
MACHINES = ("ring-npu", "line-npu", "tile-npu", "xdnn-v2-28", "xdnn-v3-96",
            os.path.join("bench", "rows.yaml"))
NETWORKS = ("densenet-cell", "vgg-e-stem", "squeezenet")
LONG = "--long" in sys.argv[1:]
LARGE = ("mobilenet-v2", "resnet50", "googlenet", "inception-v3", "vgg16",
        "yolov2-608")


def hourglass(net):
    """Down to odd sizes and up again, with skips."""
    x, skips = net.input, []
    for filters in (8, 16, 24):
        x = net.relu(net.conv(x, filters, 3))
        skips.append(x)
        x = net.pool(x, "MAX", 2, 2, pad=0)
    for skip in reversed(skips):
        x = net.concat([net.upsample(x), skip])
        x = net.relu(net.conv(x, skip[1], 3))
    net.conv(x, 3, 1)


def pyramid(net):
    """Averages of larger and larger windows, beside each other."""
    x = net.relu(net.conv(net.input, 12, 3))
    parts = [x]
    for times in (1, 2, 3):
        part = net.pool(x, "AVE", 2 ** times, 2 ** times, pad=0)
        part = net.conv(part, 5, 1)
        for _ in range(times):
            part = net.upsample(part)
        parts.append(part)
    net.conv(net.concat(parts), 7, 3)


def several_inputs(net):
    """A sum of two, and a smaller one."""
    a, b = net.another_input(24, 40), net.another_input(24, 20)
    x = net.add(net.conv(net.input, 24, 3), net.conv(a, 24, 5))
    x = net.concat([x, net.upsample(net.conv(b, 24, 3))])
    net.head(net.conv(x, 48, 3, 2), 10)


def concat_at_output(net):
    x = net.conv(net.input, 32, 3)
    net.concat([net.conv(x, 32, 1), net.conv(net.conv(x, 32, 1), 64, 3),
                net.conv(net.conv(x, 16, 1), 32, 5)])


def resnext(net):
    x = net.conv(net.input, 32, 3, 2)
    for filters, stride in ((64, 1), (128, 2), (256, 2)):
        y = net.conv(net.conv(x, filters // 2, 1), filters // 2, 3, stride, 8)
        x = net.add(net.conv(y, filters, 1), net.conv(x, filters, 1, stride))
    net.head(x, 10)


# network, machine, KiB of backing memory, sizes of active memory
BACKING = (("densenet-cell", "xdnn-v2-28", 384, (96, 160, 256, 448)),
           ("densenet-cell", "ring-npu", 192, (8, 16, 24, 32, 96)),
           ("tiny", "xdnn-v2-28", 32, (6, 8, 16, 24, 32)))


def plan(network, machine, size, folder, *sets):
    return subprocess.run(
        [AMPHORA, "compile", network, "-t", machine,
         "--set", f"memories.am.size={size}", *sets, "-o", folder],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


def size_of(text):
    return int(text.removesuffix("KiB")) * (1024 if "KiB" in text else 1)


def needs(said):
    """The most bytes of those that a step, or a part of it, is said to take."""
    found = re.findall(r"needs ([\d,]+) bytes|fits: .* takes ([\d,]+) bytes",
                       said)
    return max((int(a.replace(",", "") or b.replace(",", ""))
                for a, b in found), default=0)


def backing(folder):
    """Tables that are wrong."""
    bad = 0
    for name, machine, ddr, sizes in BACKING:
        runs = [plan(tool.example(name), machine, f"{size}KiB", folder, "--set",
                     f"memories.ddr.size={ddr}KiB") for size in sizes]
        codes = [run.returncode for run in runs]
        loud = [run.stderr for run in runs
                if run.returncode == 0 and "error" in run.stderr]
        print(f"{name}, {machine}, {ddr} KiB behind {sizes}: {codes}", *loud)
        bad += bool(loud) or codes != sorted(codes, reverse=True)
    return bad


def is_true(path, machine, folder):
    """Whether what is said of a memory that is too small is."""
    short = plan(path, machine, "64", folder)
    said = re.search(r"size=(\S+) would do; (\S+) would not", short.stderr)
    codes = said and [plan(path, machine, size, folder).returncode
                      for size in said.groups()]
    needed = needs(short.stderr)
    print(f"{os.path.basename(path)}, {machine}: {said and said.group(0)}: "
          f"{codes}; {needed} are needed, it says")
    return (short.returncode == 3 and codes == [0, 3]
            and needed <= size_of(said.group(1)))


def staged_wrong(path, folder):
    """What is wrong on a machine where weights lie beside volumes, or None."""
    def at(size):
        return plan(path, "stage-npu", size // 16 * 16, folder, "--json")
    said = re.search(r"size=(\S+) would do; (\S+) would not", at(64).stderr)
    least, below = map(size_of, said.groups())
    fits = [size for size in (least - least // 8, least - least // 16, below)
            if at(size).returncode != 3]
    if fits:
        return f"{least} is named, {fits} fit"
    sizes = [least + 16 * k for k in range(3 if LONG else 2)]
    for size in sizes + [least + least * k // 64
                         for k in range(1, 13, 1 if LONG else 5)]:
        run = at(size)
        if run.returncode:
            return f"{least} is named, {size} does not fit"
    return None


ODD = """extends: ring-npu
machine: {name: odd-ring, element: 2}
memories: {am: {align: 48}}
"""


def to_the_byte(path, folder):
    """Whether nothing fits in a little less than what would do."""
    machine = os.path.join(folder, "odd-ring.yaml")
    with open(machine, "w", encoding="utf-8") as out:
        out.write(ODD)
    said = re.search(r"size=(\S+) would do;",
                     plan(path, machine, 64, folder).stderr)
    least = size_of(said.group(1))
    codes = [plan(path, machine, least - less, folder).returncode
             for less in (0, 1, 8, 16, 32)]
    print(f"{os.path.basename(path)}, odd-ring: {said.group(0)} {codes}")
    return codes == [0, 3, 3, 3, 3]


def between_sizes(folder):
    """GoogLeNet has a plan beside its weights in 30,864 bytes, between the sizes
    that are looked at first, the next of which is 32,768."""
    path = tool.example("googlenet")
    said = re.search(r"size=(\S+) would do;",
                     plan(path, "stage-npu", 4096, folder).stderr)
    least = size_of(said.group(1))
    code = plan(path, "stage-npu", least, folder).returncode
    print(f"googlenet, stage-npu: {said.group(0)} {code}")
    return least <= 30864 and code == 0


def main():
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        paths = [tool.example(name) for name in NETWORKS]
        paths += [networks.built(build, folder)
                  for build in (hourglass, pyramid)]
        paths += [tool.example(name) for name in LARGE if LONG]
        for i, machine in enumerate(MACHINES):
            for path in paths if LONG else (paths[(0, 1, 3, 4)[i % 4]],):
                bad += not is_true(path, machine, folder)
        bad += backing(folder)
        for build in (hourglass, pyramid, several_inputs,
                      concat_at_output)[:4 if LONG else 2]:
            bad += not to_the_byte(networks.built(build, folder), folder)
        bad += not between_sizes(folder)
        paths = [tool.example("micro/ds-cnn")] if LONG else []
        paths += [networks.built(build, folder)
                  for build in (several_inputs, concat_at_output)]
        paths += [networks.built(resnext, folder)] if LONG else []
        for path in paths:
            wrong = staged_wrong(path, folder)
            print(f"{os.path.basename(path)}, stage-npu: {wrong or 'true'}")
            bad += bool(wrong)
    return 1 if bad else 0


sys.exit(main())
