#!/usr/bin/env python3
"""resnet18.py - the activations of ResNet-18 as TVM sees them: resnet18.csv.

224 x 224, fp32, batch 1. Each call of a fused operator is a step: convolution
with bias, sum and ReLU in one; pooling; the classifier. The network's input and
output are the caller's. A convolution has a scratch buffer: of 1,344 bytes in
TVM's discussion, as the figure of its greedy_by_size tells, which is one of
these on top of three volumes of 802,816 bytes and one of 3,211,264 less one.
"""
SCRATCH = 1344


def volume(channels, side):
    return channels * side * side * 4


def calls():
    """(name, operands, bytes of the result, scratch), in TVM's order."""
    yield "conv1", ["input"], volume(64, 112), True
    yield "pool1", ["conv1"], volume(64, 56), False
    last, side = "pool1", 56
    for stage, channels in enumerate((64, 128, 256, 512)):
        for block in range(2):
            name, before = f"s{stage + 1}b{block + 1}", last
            if stage and not block:
                side //= 2
                last = name + "_down"
                yield last, [before], volume(channels, side), True
            yield name + "_1", [before], volume(channels, side), True
            yield (name + "_2", [name + "_1", last], volume(channels, side),
                   True)
            last = name + "_2"
    yield "pool2", [last], volume(512, 1), False
    yield "flat", ["pool2"], volume(512, 1), False


def main():
    made, rows = {}, []
    steps = list(calls())
    steps.append(("fc", ["flat"], 0, False))
    for step, (name, operands, size, scratch) in enumerate(steps):
        for operand in operands:
            if operand in made:
                made[operand][2] = step + 1
        if size:
            made[name] = [name, step, step + 1, size]
            rows.append(made[name])
        if scratch:
            rows.append([name + "_scratch", step, step + 1, SCRATCH])
    print("id,lower,upper,size")
    for row in rows:
        print(",".join(map(str, row)))


if __name__ == "__main__":
    main()
