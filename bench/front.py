#!/usr/bin/env python3
"""front.py - are the plans that are taken the best of those that are found?

    python3 bench/front.py [--base BINARY] [--cache FILE] [-m MACHINE]...
                           [-n NETWORK]... [-o OBJECTIVE]... [--effort N]

Six networks x six machines x two sizes of active memory, less what fits
nowhere. Each is compiled once for each objective. Bytes are those over DDR,
weights included, as the simulator counts them by running the listing; cycles
likewise. A plan is *beaten* if another one that was found for that size (its
own front, or what another objective got) takes fewer cycles and no more bytes,
or fewer bytes and no more cycles.

--base names another binary, of a version before objectives, that every plan is
compared with; --cache keeps its figures. A row gives the ratios to it: of the
objective's own measure, the geometric mean and the worst cell. Balanced is
compared by (cycles^3 x bytes) ^ 1/4. CPU seconds are those of the whole compile
command. Exits 1 if a plan is beaten.
"""
import argparse
import json
import os
import sys
import tempfile

import networks
import residency
import tool

KIB = 1 << 10
MACHINES = {"xdnn-v2-28": (768, 1536), "xdnn-v3-96": (640, 1024),
            "tile-npu": (200, 512), "stage-npu": (200, 512),
            "ring-npu": (64, 120), "line-npu": (120, 340)}
CAFFE = {"googlenet": ("bvlc_googlenet_deploy", "googlenet"),
         "resnet-50": ("ResNet-50-deploy", "resnet50"),
         "squeezenet": ("squeezenet_v1.1_deploy", "squeezenet"),
         "mobilenet-v2": ("mobilenet_v2_deploy", "mobilenet-v2"),
         "densenet": ("deploy_densenet121", "densenet-cell")}
LOADS_WEIGHTS = {"stage-npu"}  # which are among the bytes over DDR
OBJECTIVES = ("time", "bytes", "balanced")


def three_results():
    """Three levels down and up again, with a result of each level up."""
    net = networks.Net("three-results", 3, 128)
    x, skips = net.input, []
    for width in (16, 32, 64):
        x = networks.conv_relu(net, x, width, 2)
        skips.append(x)
        x = net.pool(x, "MAX", 2, 2, pad=0)
    x = networks.conv_relu(net, x, 128, 2)
    for width in (64, 32, 16):
        x = net.concat([skips.pop(), net.deconv(x, width)])
        x = networks.conv_relu(net, x, width, 2)
        net.conv(x, 4, 1)
    return net


def network_file(name, folder):
    if name in CAFFE:
        published, example = CAFFE[name]
        path = os.path.join(residency.DATA, published + ".prototxt")
        return path if os.path.exists(path) else tool.example(example)
    path = os.path.join(folder, name + ".prototxt")
    with open(path, "w", encoding="utf-8") as out:
        out.write(three_results().text())
    return path


def bytes_of(sim, machine):
    own = 0 if machine in LOADS_WEIGHTS else sim["weights_read_bytes"]
    return sim["ddr_read_bytes"] + sim["ddr_written_bytes"] + own


def measured(binary, network, machine, size, folder, *options):
    """The plan's figures; None where it does not fit."""
    tool.AMPHORA = binary
    sets = tool.flags([tool.am(size)])
    before = tool.cpu_seconds()
    done = tool.run("compile", network, "-t", machine, "-o", folder, "--json",
                    *sets, *options)
    cpu = tool.cpu_seconds() - before
    if done.returncode == tool.DOES_NOT_FIT:
        return None
    if done.returncode:
        sys.exit(done.stderr)
    plan = json.loads(done.stdout)
    sim = tool.simulated(plan, machine, tool.am(size))
    return {"cycles": sim["cycles_an_image"], "bytes": bytes_of(sim, machine),
            "maps": sim["moved"], "instructions": plan["instructions"],
            "cpu": cpu, "alloc_ms": plan["ms"]["alloc"],
            "front": plan.get("front", []),
            "dropped": plan.get("rejected", 0)}


def cost(objective, plan):
    """As what is taken is compared; of one dimension."""
    if objective == "time":
        return plan["cycles"]
    if objective == "bytes":
        return plan["bytes"]
    return (plan["cycles"] ** 3 * plan["bytes"]) ** 0.25


def beats(a, b):
    return (a["cycles"] <= b["cycles"] and a["bytes"] <= b["bytes"] and
            (a["cycles"] < b["cycles"] or a["bytes"] < b["bytes"]))


def cached(path):
    if path and os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    return {}


class Table:
    """Ratios by machine and objective."""

    def __init__(self):
        self.ratio, self.cpu = {}, {}
        self.cells = self.beaten = self.dropped = 0
        self.slowest = (0, "")

    def add(self, machine, objective, cell, plan, base, others):
        self.cells += 1
        self.dropped += plan["dropped"]
        beaten = [p for p in others + plan["front"] if beats(p, plan)]
        self.beaten += bool(beaten)
        self.slowest = max(self.slowest, (plan["cpu"], f"{cell} {objective}"))
        line = (f"{cell} {objective:8} {plan['cycles']:13,} {plan['bytes']:14,}"
                f" {plan['maps']:12,} {plan['instructions']:7} "
                f"{plan['cpu']:6.2f} s")
        if base:
            ratio = cost(objective, plan) / cost(objective, base)
            self.ratio.setdefault((machine, objective), []).append(ratio)
            self.cpu.setdefault((machine, objective), []).append(
                (plan["cpu"], base["cpu"]))
            line += (f"  {ratio:.3f} (cycles "
                     f"{plan['cycles'] / base['cycles']:.3f} bytes "
                     f"{plan['bytes'] / base['bytes']:.3f})")
        print(line + (" BEATEN" if beaten else ""), flush=True)

    def row(self, name, ratios, cpu):
        print(f"{name:24} {len(ratios):3} {tool.geometric_mean(ratios):.3f} "
              f"{max(ratios):.3f}  {sum(own for own, _ in cpu):7.1f} "
              f"{sum(base for _, base in cpu):7.1f}")

    def show(self):
        print(f"{'':24} {'n':>3} {'mean':5} {'worst':5}  {'CPU s':>7} "
              f"{'base':>7}")
        for objective in OBJECTIVES:
            rows = {k: v for k, v in self.ratio.items() if k[1] == objective}
            for key, ratios in rows.items():
                self.row(f"{key[0]} {objective}", ratios, self.cpu[key])
            if rows:
                self.row(f"all {objective}", sum(rows.values(), []),
                         sum((self.cpu[k] for k in rows), []))
        print(f"{self.cells} plans, {self.beaten} beaten, {self.dropped} "
              f"dropped as illegal, slowest {self.slowest[0]:.2f} s: "
              f"{self.slowest[1]}")


def base_of(args, cache, key, *cell):
    if args.base and key not in cache:
        cache[key] = measured(args.base, *cell)
        if args.cache:
            with open(args.cache, "w", encoding="utf-8") as file:
                json.dump(cache, file)
    return cache.get(key)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--base")
    parser.add_argument("--base-only", action="store_true")
    parser.add_argument("--cache")
    parser.add_argument("--effort", default="1")
    parser.add_argument("-m", dest="machines", action="append")
    parser.add_argument("-n", dest="networks", action="append")
    parser.add_argument("-o", dest="objectives", action="append")
    return parser.parse_args()


def main():
    args, table, own = arguments(), Table(), tool.AMPHORA
    cache = cached(args.cache)
    with tempfile.TemporaryDirectory() as folder:
        for machine in args.machines or MACHINES:
            for name in args.networks or [*CAFFE, "three-results"]:
                for size in MACHINES[machine]:
                    where = (network_file(name, folder), machine, size * KIB,
                             folder)
                    cell = f"{name:13} {machine:10} {size:5}"
                    base = base_of(args, cache, cell, *where)
                    if args.base_only:
                        continue
                    plans = {o: measured(own, *where, "--objective", o,
                                         "--effort", args.effort)
                             for o in args.objectives or OBJECTIVES}
                    if None in plans.values():
                        print(f"{cell} does not fit"
                              f"{', but did before' if base else ''}")
                        continue
                    for objective, plan in plans.items():
                        table.add(machine, objective, cell, plan, base,
                                  list(plans.values()))
    table.show()
    sys.exit(1 if table.beaten else 0)


if __name__ == "__main__":
    main()
