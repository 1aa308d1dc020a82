#!/usr/bin/env python3
"""styles.py - hardware tiles: which operands pass, and what must move at least.

Random small networks of convolutions, pools, sums and concats on a small
tile-npu, in many sizes of active memory, by each objective: no plan moves less
than its bound, and each is right by value. A chain of residual blocks stays
near its bound where a block's shortcut does not fit beside the widest layer:
the shortcut, or what is added to it, leaves once, and nothing else passes.
"""
import json
import os
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, "bench")
import networks  # noqa: E402

AMPHORA = os.environ.get("AMPHORA", "build/amphora")
SEEDS, SIZES = range(8), (1536, 2560, 4096, 8192)
NEAR = 1.3
DEEP = ((24, 16 << 10), (24, 24 << 10), (24, 32 << 10))  # size, bytes


def run(network, size, *more):
    return subprocess.run(
        [AMPHORA, "verify", network, "-t", "tile-npu", "--json", "--set",
         f"memories.am.size={size}", *more], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, check=False, text=True)


def written(net, folder):
    path = os.path.join(folder, "net.prototxt")
    with open(path, "w", encoding="ascii") as file:
        file.write(net.text())
    return path


def random_network(seed, folder):
    dice = random.Random(seed)
    net = networks.Net(f"random-{seed}", dice.choice((2, 5)), 12)
    made = [net.input]
    for _ in range(dice.randrange(4, 9)):
        x, what = dice.choice(made[-3:]), dice.randrange(4)
        if what == 0 and len(made) > 2:
            x = net.add(net.conv(x, 8, 1), net.conv(made[-1], 8, 3))
        elif what == 1 and len(made) > 2:
            x = net.concat([net.conv(x, 4, 1), net.conv(made[-1], 6, 3)])
        elif what == 2:
            x = net.pool(x, "MAX", 3)
        else:
            x = net.relu(net.conv(x, dice.choice((4, 8, 16)), 3))
        made.append(x)
    return written(net, folder)


def residual_network(size, folder):
    net = networks.Net("residual", 3, size)
    x = net.conv(net.input, 32, 1)
    for _ in range(4):
        y = net.relu(net.conv(x, 8, 1))
        y = net.relu(net.conv(y, 8, 3))
        x = net.relu(net.add(x, net.conv(y, 32, 1)))
    net.global_pool(x, "AVE")
    return written(net, folder)


def check_bound(plan):
    moved, least = plan["ddr_moved_bytes"], plan["ddr_order_bound_bytes"]
    assert moved >= least, (plan["network"], moved, least)


def check_random(folder):
    plans = above = 0
    for seed in SEEDS:
        network = random_network(seed, folder)
        for size in SIZES:
            for objective in ("bytes", "time"):
                done = run(network, size, "--objective", objective)
                if done.returncode == 3:
                    continue
                assert done.returncode == 0, done.stdout + done.stderr
                plan = json.loads(done.stdout)
                check_bound(plan)
                plans += 1
                above += plan["ddr_order_bound_bytes"] > \
                    plan["ddr_bound_bytes"]
    assert plans > 40 and above > 15, (plans, above)
    return plans


def check_near(folder):
    for size, bytes_ in DEEP:
        done = run(residual_network(size, folder), bytes_, "--objective",
                   "bytes")
        assert done.returncode == 0, done.stdout + done.stderr
        plan = json.loads(done.stdout)
        check_bound(plan)
        ratio = plan["ddr_moved_bytes"] / plan["ddr_order_bound_bytes"]
        assert ratio <= NEAR, (bytes_, ratio)


def main():
    with tempfile.TemporaryDirectory() as folder:
        plans = check_random(folder)
        check_near(folder)
    print(f"styles: {plans} plans above their bounds, {len(DEEP)} near them")


if __name__ == "__main__":
    main()
