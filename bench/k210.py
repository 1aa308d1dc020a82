#!/usr/bin/env python3
"""k210.py - the K210's prices against timings that others published.

  T1  22 layers of a face detector of 320 x 240 (nncase issue 77), by k210's own
      prices; they were fitted to these 22
  T2  ten layers of 3 x 3, 128 to 128 channels (bbs.sipeed.com, topic 691), with
      weights of 16 bits at 300 MHz: by bench/k210-3x3.yaml, whose constants are
      of that table

Layers are written as the text of a file and given to `amphora simulate`, which
tells the time of each node. Exits 1 if T1 is off by more than 3 % in the mean,
or a point of T2 by more than 5 %.
"""
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
AMPHORA = os.environ.get("AMPHORA", os.path.join(ROOT, "build", "amphora"))
MEAN_T1, WORST_T2 = 0.03, 0.05

# width, height, channels, kernel, depthwise, output channels, pool, ms
T1 = ((320, 240, 3, 3, 0, 16, 2, 0.206), (160, 120, 16, 3, 1, 16, 1, 0.039),
      (160, 120, 16, 1, 0, 32, 2, 0.514), (80, 60, 32, 3, 1, 32, 1, 0.029),
      (80, 60, 32, 1, 0, 64, 1, 0.680), (80, 60, 64, 3, 1, 64, 1, 0.053),
      (80, 60, 64, 1, 0, 64, 2, 1.328), (40, 30, 64, 3, 1, 64, 1, 0.020),
      (40, 30, 64, 1, 0, 128, 1, 0.704), (40, 30, 128, 3, 1, 128, 1, 0.034),
      (40, 30, 128, 1, 0, 128, 2, 1.385), (20, 15, 128, 3, 1, 128, 1, 0.016),
      (20, 15, 128, 1, 0, 256, 1, 0.781), (20, 15, 256, 3, 1, 256, 1, 0.025),
      (20, 15, 256, 1, 0, 256, 1, 1.522), (20, 15, 256, 3, 1, 256, 1, 0.026),
      (20, 15, 256, 1, 0, 256, 1, 1.521), (20, 15, 256, 3, 1, 256, 1, 0.026),
      (20, 15, 256, 1, 0, 256, 1, 1.521), (20, 15, 256, 3, 1, 256, 1, 0.026),
      (20, 15, 256, 1, 0, 256, 1, 1.521), (20, 15, 256, 3, 1, 256, 1, 0.025))
T2 = tuple((w, h, 128, 3, 0, 128, 1, ms) for w, h, ms in (
    (4, 4, 0.339), (16, 4, 0.339), (16, 16, 0.417), (32, 16, 0.692),
    (32, 32, 1.138), (64, 32, 2.125), (64, 64, 3.891), (128, 64, 7.709),
    (128, 128, 14.778), (256, 256, 57.756)))

# Beyond active memory: nothing is computed, only the times are told.
NOWHERE = 32767


def node(layer):
    w, h, c, kernel, depthwise, out, pool, _ = layer
    weights = kernel * kernel * out * (1 if depthwise else c)
    kind = "max" if pool == 2 else "none"
    return "\n".join([
        f"KPU batch=1 depthwise={depthwise} in.addr={NOWHERE} out.addr=0",
        f"    in.w={w} in.h={h} in.c={c} out.c={out} kernel.w={kernel}",
        f"    pool={kind} pool.kernel.w={pool} pool.stride.w={pool}",
        "    pool.phase=0 in.pad=0 zero.x=0 zero.w=0 zero.xw=0",
        "  bn.mul[]= " + "0 " * out, "  bn.add[]= " + "0 " * out,
        "  bn.shift[]= " + "0 " * out, "  act.shift[]= " + "0 " * 16,
        "  act.mul[]= " + "0 " * 16, "  act.start[]= " + "0 " * 16,
        "  act.add[]= " + "0 " * 16, "  weights[]= x" + "00" * weights])


def times(target, layers, folder):
    """Milliseconds of each layer."""
    path = os.path.join(folder, "layers.txt")
    with open(path, "w", encoding="ascii") as file:
        file.write("kmodel main.bytes=0 inputs=0 outputs=0\n")
        file.write("\n".join(node(layer) for layer in layers) + "\n")
    run = subprocess.run([AMPHORA, "simulate", path, "-t", target, "--json"],
                         capture_output=True, text=True, check=False)
    report = json.loads(run.stdout)
    if "nodes" not in report:
        sys.exit(run.stderr)
    return [1e3 * n["seconds"] for n in report["nodes"]]


def table(name, target, layers, folder):
    """Prints the rows; the mean and the worst relative error."""
    found = times(target, layers, folder)
    errors = []
    print(f"{name}: {'layer':24} {'measured':>9} {'ours':>9}  error")
    for layer, ours in zip(layers, found):
        w, h, c, kernel, depthwise, out, pool, measured = layer
        shape = f"{w}x{h}x{c} {'d' * depthwise}{kernel}x{kernel}>{out}" + \
            (" max2s2" if pool == 2 else "")
        errors.append(ours / measured - 1)
        print(f"    {shape:24} {measured:9.3f} {ours:9.3f} {errors[-1]:+6.1%}")
    mean = sum(abs(e) for e in errors) / len(errors)
    worst = max(abs(e) for e in errors)
    total = sum(layer[-1] for layer in layers)
    print(f"    mean {mean:.1%}, worst {worst:.1%}; sum {sum(found):.3f} ms of "
          f"{total:.3f}\n")
    return mean, worst


def main():
    with tempfile.TemporaryDirectory() as folder:
        mean, _ = table("T1", "k210", T1, folder)
        base = os.path.join(ROOT, "bench", "k210-3x3.yaml")
        _, worst = table("T2", base, T2, folder)
    return 1 if mean > MEAN_T1 or worst > WORST_T2 else 0


if __name__ == "__main__":
    sys.exit(main())
