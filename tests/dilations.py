#!/usr/bin/env python3
"""dilations.py - convolutions dilated beyond what the engine of vision-npu takes.

Of one axis, as in WaveNet, of both, as in DeepLab, alike or not, padded unevenly
and not at all, depthwise, with an activation, with sizes that are no multiples
of the phases; and paddings that no window takes in. No layer is left to the
host, and the simulated listing has the values of the reference evaluation; a
dilation without few phases stays there.
"""
import os
import sys

import scratch
from checked import BAD, check, ramp, run_json
from write_onnx import Net

FOLDER = scratch.folder("amphora-dilations-")
MACHINE = "vision-npu"


def conv(shape, kernel, dilations, pads, out=5, group=1, act="Relu"):
    """One layer of [c, sizes...] and what follows it."""
    net = Net([("x", [1, *shape])])
    wide = [out, shape[0] // group, *kernel]
    count = 1
    for n in wide:
        count *= n
    at = net.node("Conv", ["x", net.floats(wide, ramp(count, 0.317, 0.5)),
                           net.floats([out], ramp(out, 0.431))],
                  dilations=dilations, pads=pads, group=group)
    net.node(act, [at], "y")
    net.output("y")
    return net


def padded():
    """Zeros around that an average counts, and that others see."""
    net = Net([("x", [1, 4, 11, 13])])
    at = net.node("Pad", ["x", net.whole(0, 0, 2, 1, 0, 0, 3, 1)])
    net.node("AveragePool", [at], "mean", kernel_shape=[3, 3], strides=[1, 1])
    net.node("Sigmoid", [at], "y")
    net.output("mean")
    net.output("y")
    return net


ENGINES = {
    "zeros around": padded(),
    "a line, causal": conv([3, 150], [2], [64], [64, 0]),
    "a line, not padded": conv([3, 100], [3], [32], [0, 0]),
    "a plane": conv([4, 33, 37], [3, 3], [24, 24], [24, 24, 24, 24]),
    "a plane, of 36": conv([4, 40, 41], [3, 3], [36, 36], [36, 36, 36, 36]),
    "columns alone": conv([4, 9, 60], [1, 3], [1, 20], [0, 20, 0, 20]),
    "rows more than columns": conv([4, 50, 21], [3, 3], [18, 2],
                                   [18, 2, 18, 2]),
    "depthwise": conv([6, 30, 30], [3, 3], [18, 18], [18, 18, 18, 18], 6, 6),
    "unevenly padded": conv([4, 44, 39], [3, 3], [18, 17], [5, 17, 9, 3]),
    "a sigmoid behind": conv([3, 90], [3], [24], [24, 24], act="Sigmoid"),
}
ENGINES |= {
    "taps in the padding": conv([4, 9, 12], [3, 3], [24, 24],
                                [24, 24, 24, 24]),
    "some taps in the padding": conv([4, 30, 40], [5, 3], [18, 18],
                                     [36, 18, 36, 18]),
    # a volume of which a row and what it reads fit, but not its phases
    "zeros between": conv([48, 100, 120], [3, 3], [18, 18], [18, 18, 18, 18],
                          4),
}
HOST = {
    "many phases": conv([2, 300], [2], [131], [131, 0]),
    "too large": conv([60, 260, 250], [3, 3], [96, 96], [96, 96, 96, 96], 4),
}


def main():
    path = os.path.join(FOLDER, "net.onnx")
    for name, net in [*ENGINES.items(), *HOST.items()]:
        net.write(path)
        status, made = run_json("verify", path, "-t", MACHINE, "--tolerance", "1e-5")
        check(name, status == 0 and not made.get("violations"),
              f"exit {status}, {made}")
        _, made = run_json("compile", path, "-t", MACHINE, "-o", FOLDER)
        host = [h["kind"] for h in made.get("host_layers", ["none made"])]
        check(f"{name}: where it runs",
              "conv" in host if name in HOST else not host, f"{host}")
    print(f"{len(BAD)} wrong")
    return 1 if BAD else 0


if __name__ == "__main__":
    sys.exit(main())
