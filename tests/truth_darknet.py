#!/usr/bin/env python3
"""truth_darknet.py - Darknet's networks against OpenCV's dnn.

Each network is a .cfg, below or (with --long) of Debian's package darknet; its
.weights are drawn here. Without arguments amphora's reference evaluation and
simulated listing are compared with what OpenCV computed when the values in
tests/truth were recorded; --long asks OpenCV again, --record writes the values
anew. Names limit it to these networks.
usage: tests/truth_darknet.py [--long | --record] [NAME...]
"""
import os
import struct
import sys

from foreign import compare_foreign, opencv
from truthlib import Table, asked, draw, run_jobs, scratch

CFGS = "/usr/share/darknet/cfg/"
# Darknet's own, and the side of the image: multiples of 32, to be quick. Not
# its resnet50: OpenCV refuses shortcuts between shapes that differ.
WHOLE = {"darknet19": 224, "darknet53": 224, "densenet201": 224,
         "yolov2-voc": 416, "yolov2-tiny": 416,
         "yolov3-tiny": 416, "yolov3-spp": 320, "yolov3": 320}
DETECTORS = ("yolo", "region", "detection")
# What stands behind the logits; softmax of drawn weights hides all else.
BEHIND = ("softmax", "cost", "dropout")
YOLO = "[yolo]\nmask=0,1,2\nanchors=1,2, 3,4, 5,6\nclasses=1\nnum=3\n"


def conv(filters, size=1, activation="linear", norm=0, **more):
    text = f"[convolutional]\nfilters={filters}\nsize={size}\npad=1\n" \
           f"stride={more.pop('stride', 1)}\nactivation={activation}\n"
    text += "batch_normalize=1\n" if norm else ""
    return text + "".join(f"{key}={value}\n" for key, value in more.items())


def section(name, **options):
    return f"[{name}]\n" + "".join(f"{key}={value}\n"
                                   for key, value in options.items())


def shortcut(layer, activation="linear"):
    return section("shortcut", **{"from": layer}, activation=activation)


def image(side=14, channels=3):
    return section("net", width=side, height=side + 2, channels=channels)


# Name: the file.
MODELS = {
    "convolutions": image() + conv(8, 3, "leaky", 1) +
    conv(12, 3, "relu", stride=2) + conv(8, 5, "leaky", 1, groups=4) +
    conv(8, 3, "leaky", groups=8) + conv(6) + conv(6, 3, norm=1),
    "activations": image() + "".join(
        conv(6, 1, name, i % 2) for i, name in enumerate(
            ("leaky", "relu", "logistic", "mish", "swish", "linear"))),
    "pools": image(15) + conv(4, 3, "leaky") +
    section("maxpool", size=2, stride=1) +
    section("maxpool", size=2, stride=2) +
    section("maxpool", size=3, stride=2) + conv(5, 1, "leaky"),
    "pyramid": image() + conv(6, 3, "leaky", 1) +
    section("maxpool", size=5, stride=1) + section("route", layers=-2) +
    section("maxpool", size=9, stride=1) + section("route", layers=-4) +
    section("maxpool", size=13, stride=1) +
    section("route", layers="-1,-3,-5,-6") + conv(7),
    "residual": image() + conv(8, 3, "leaky", 1, stride=2) +
    conv(4, 1, "leaky", 1) + conv(8, 3, "leaky", 1) + shortcut(-3) +
    conv(8, 3, "linear", 1) + shortcut(-2, "leaky") + conv(9, 3, "mish", 1) +
    conv(8, 1) + shortcut("-3"),
    "passthrough": image() + conv(8, 3, "leaky", 1) +
    section("maxpool", size=2, stride=2) + conv(12, 3, "leaky", 1) +
    section("route", layers=-3) + conv(4, 1, "leaky", 1) +
    section("reorg", stride=2) + section("route", layers="-1,-4") +
    conv(6, 3),
    "detectors": image(16) + conv(16, 3, "leaky", 1) +
    section("route", layers=-1, groups=2, group_id=1) +
    conv(8, 3, "leaky", 1) + conv(8, 3, "leaky", 1) +
    section("route", layers="-1,-2") + conv(16, 1, "leaky", 1) +
    section("maxpool", size=2, stride=2) + conv(18) + YOLO +
    section("route", layers=-3) + section("upsample", stride=2) +
    section("route", layers="-1,0") + conv(18, 3) + YOLO,
    "squeeze": image() + conv(8, 3, "swish", 1) + section("avgpool") +
    conv(4, 1, "swish") + conv(8, 1, "logistic") +
    section("scale_channels", **{"from": -4}) + conv(8, 3, "leaky", 1) +
    conv(8, 1, "logistic") + section("sam", **{"from": -2}) +
    conv(6, 1, "linear", 1) + section("dropout", probability=".2") +
    conv(5, 3),
    "classifier": image() + conv(12, 3, "leaky", 1, stride=2) +
    section("avgpool") + section("connected", output=9, activation="linear") +
    section("softmax", groups=1),
}


# ---- what a file says, and what OpenCV calls it ----

def sections(text):
    """(kind, options) of each section."""
    found = []
    for line in text.splitlines():
        line = line.split("#")[0].strip()
        if line.startswith("["):
            found.append((line[1:-1], {}))
        elif line:
            key, value = line.split("=", 1)
            found[-1][1][key.strip()] = value.strip()
    return found


def written(parts):
    return "".join(section(kind, **options) for kind, options in parts)


def own_name(number, kind, options):
    """OpenCV's name of what a layer makes."""
    act = options.get("activation", "linear")
    if act != "linear":
        return f"{act}_{number + 1}"
    if options.get("batch_normalize") == "1":
        return f"bn_{number}"
    return {"convolutional": "conv", "connected": "fullyConnected"}.get(
        kind, kind) + f"_{number}"


def ends(parts):
    """OpenCV's names of what goes into detectors, or of the last layer."""
    layers = [(i, *part) for i, part in enumerate(parts[1:])]
    before = [layers[i - 1] for i, kind, _ in layers if kind in DETECTORS]
    if layers[-1][1] not in DETECTORS:
        before.append(layers[-1])
    return [own_name(*layer) for layer in before]


# ---- weights ----

def drawn(name, inputs, outputs, norm, gain):
    """As they stand in the file: biases, statistics, kernels."""
    reach = (3 * gain / inputs) ** .5
    data = draw(name + " bias", outputs, -.2, .2)
    if norm:
        data += draw(name + " scale", outputs, .7, 1.3)
        data += draw(name + " mean", outputs, -.2, .2)
        data += draw(name + " var", outputs, .7, 1.3)
    return data + draw(name + " kernel", inputs * outputs, -reach, reach)


def weights(name, parts):
    channels, data = [], struct.pack("<3iq", 0, 2, 5, 0)
    last = int(parts[0][1].get("channels", 3))
    for i, (kind, options) in enumerate(parts[1:]):
        number = lambda key, other: int(options.get(key, other))
        if kind in ("convolutional", "connected"):
            fan = last // number("groups", 1) * number("size", 1) ** 2
            last = number("filters", number("output", 1))
            gain = 1 if options["activation"] in ("linear", "logistic") else 2
            data += drawn(f"{name} {i}", fan, last,
                          number("batch_normalize", 0), gain)
        elif kind == "route":
            last = sum(channels[int(n) + (i if int(n) < 0 else 0)]
                       for n in options["layers"].split(","))
            last //= number("groups", 1)
        elif kind == "reorg":
            last *= number("stride", 1) ** 2
        elif kind == "scale_channels":
            last = channels[i + int(options["from"])]
        channels.append(last)
    return data


# ---- the comparison ----

def dnn(names):
    """The only input has no name that amphora could know."""
    ask = opencv("Darknet", ["cfg", "weights"], names)
    return lambda folder, files, inputs: ask(
        folder, files, [("", *value) for _, *value in inputs])


def check(table, name, parts, record, long, whole):
    def put(data):
        def write(path):
            with open(path, "wb") as file:
                file.write(data)
        return write
    with scratch() as folder:
        data = weights(name, parts)
        put(data)(folder + "/drawn.weights")
        compare_foreign(
            table, "darknet-" + name,
            [("cfg", put(written(parts).encode())), ("weights", put(data))],
            [("OpenCV", dnn(ends(parts)))],
            None if whole else f"tests/truth/darknet-{name}.values",
            record=record, long=long,
            options=["--weights", folder + "/drawn.weights"],
            machine=["--set", "memories.am.size=64MiB"] if whole else ())


def whole_parts(name, side):
    with open(CFGS + name + ".cfg", encoding="utf-8") as file:
        parts = sections(file.read())
    parts[0] = ("net", {"width": side, "height": side, "channels": 3})
    while parts[-1][0] in BEHIND:
        parts.pop()
    return parts


def main():
    record, long, wanted = asked()
    table = Table("OpenCV" if long else "OpenCV's recorded values")
    jobs = [(name, check, (name, sections(text), record, long, False))
            for name, text in MODELS.items()]
    if long and os.path.isdir(CFGS):
        jobs += [(name, check, (name, whole_parts(name, side), False, long,
                                True)) for name, side in WHOLE.items()]
    else:
        table.skip("whole networks", f"with --long only, from {CFGS}")
    run_jobs(table, jobs, wanted)
    return table.close()


if __name__ == "__main__":
    sys.exit(main())
