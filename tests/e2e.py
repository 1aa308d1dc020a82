#!/usr/bin/env python3
"""e2e.py - networks x machines: compiled, simulated, compared.

Each row is one `amphora verify --json`. Networks: examples/ and, where
../shared/data/caffe is present, the real files in it; the smallest on each
machine, the others on one. --long adds the big ones, and all machines; without
it YOLOv2's images are a quarter as wide and as high. Exits 1 if a row
is not `ok`, or moves less than a bound says.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
DATA = "../shared/data/caffe"
MACHINES = ["xdnn-v2-28", "xdnn-v2-56", "xdnn-v3-96", "math-engine",
            "darius-32", "darius-64", "ring-npu", "line-npu", "tile-npu"]
TEMPLATE = ("tiny", "squeezenet", "mobilenet-v2", "inception-v3")
BIG = ("vgg16", "yolov2", "inception-v3", "densenet121", "SE-ResNet")
REFUSED = ("bad_", "train_test")


def networks(long):
    files = sorted(glob.glob("examples/*.prototxt"))
    files += sorted(glob.glob(DATA + "/*.prototxt"))
    for path in files:
        name = os.path.basename(path)
        if any(r in name for r in REFUSED):
            continue
        if long or not any(b in name for b in BIG):
            yield path


def machines_of(path, i, long):
    """All, or one of the three that most networks fit: another for each."""
    if long or "tiny" in path:
        return MACHINES
    return MACHINES[i % 3:i % 3 + 1]


def quarter(path, folder):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    small = os.path.join(folder, "yolov2-152.prototxt")
    with open(small, "w", encoding="utf-8") as file:
        file.write(text.replace("dim: 608 dim: 608", "dim: 152 dim: 152"))
    return small


def rows(long, folder):
    for i, path in enumerate(networks(long)):
        for machine in machines_of(path, i, long):
            yield path, machine, []
    large = "examples/yolov2-608.prototxt"
    if long:
        yield large, "xdnn-v2-56", []
    yield (quarter(large, folder), "xdnn-v2-56",
           ["--set", "memories.am.size=1MiB"])
    for name in TEMPLATE if long else TEMPLATE[:2]:
        yield f"examples/{name}.prototxt", "template", []
    yield "examples/tiny.prototxt", "null", []
    for size in ("1MiB", "256KiB") if long else ("256KiB",):
        for machine in MACHINES:
            yield ("examples/tiny.prototxt", machine,
                   ["--set", f"memories.am.size={size}"])


def verify(path, machine, extra):
    done = subprocess.run(
        [AMPHORA, "verify", path, "-t", machine, "--json"] + extra,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    try:
        return done.returncode, json.loads(done.stdout), ""
    except ValueError:
        return done.returncode, None, done.stderr.decode(errors="replace")


def bounds_hold(report):
    """A result that is computed again spares a store and a load at most."""
    least, order, apart, once, layers = (
        report[f"ddr_{kind}bound_bytes"]
        for kind in ("", "order_", "apart_", "once_", "layers_"))
    moved, again = report["ddr_moved_bytes"], report["computed_again_bytes"]
    return (least <= min(order, apart, once) and max(order, once) <= layers and
            max(order, apart) <= moved and once <= moved + 2 * again)


def main(folder):
    bad = n = 0
    print(f"{'network':28} {'machine':12} {'error':>8} {'host':>4} "
          f"{'AM peak':>10} {'DDR read':>11} {'DDR written':>11} {'ms':>6}")
    for path, machine, extra in rows("--long" in sys.argv[1:], folder):
        code, report, errors = verify(path, machine, extra)
        n += 1
        name = os.path.basename(path)[:28]
        if not report:
            bad += 1
            print(f"{name:28} {machine:12} exit {code}: {errors.strip()}")
            continue
        bad += not (report["ok"] and bounds_hold(report))
        print(f"{name:28} {machine:12} {report['max_rel_error']:8.1e} "
              f"{len(report['host_layers']):4} {report['am_peak_bytes']:10} "
              f"{report['ddr_read_bytes']:11} {report['ddr_written_bytes']:11} "
              f"{sum(report['ms'].values()):6.0f}"
              f"{'' if bounds_hold(report) else '  BELOW A BOUND'}"
              f"{'' if report['ok'] else '  NOT OK ' + json.dumps(report['first_mismatch']) + ' ' + json.dumps(report['violation_list'][:2])}")
        sys.stdout.flush()
    print(f"{n - bad} of {n} verified")
    return bad > 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        CODE = main(temporary)
    sys.exit(CODE)
