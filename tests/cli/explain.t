# Why each volume is where it is, in one line each: kept, away for some steps, by
# stripes, in the channels of a concat, by tiles of the machine.
--- run amphora compile SHARE/examples/tiny.prototxt -t xdnn-v2-28 --set memories.am.size=24KiB --explain
--- exit 0
--- stdout
...
image (3x16x16): in active memory, step 1; loaded from inputs
conv1 (16x16x16, layers conv1, conv1/bn, conv1/scale and conv1/relu): in active memory, steps 1 to 2; does not move
pool1 (16x8x8): in active memory, steps 2 to 4; does not move
left (16x8x8, layers left and left/relu): channels 0 to 15 of both, in active memory, step 3, away in steps 4 to 7: all that is alive in step 6 takes 32,768 of 24,576 bytes; stored to ddr
right (16x8x8, layers right and right/relu): channels 16 to 31 of both, in active memory, step 4, away in steps 5 to 7: all that is alive in step 6 takes 32,768 of 24,576 bytes; stored to ddr
both (32x8x8): never whole: steps 6 to 7 run by stripes, with at most 5 of its 8 rows at a time; whole it takes 16,384 of 24,576 bytes, all that is alive in step 6 takes 32,768; 18 rows loaded from ddr, of 8: some again
mix (32x8x8): never whole: steps 6 to 7 run by stripes, with at most 4 of its 8 rows at a time; whole it takes 16,384 of 24,576 bytes, all that is alive in step 6 takes 32,768; does not move
sum (32x8x8, layers sum and sum/relu): steps 6 to 7 run by stripes, with at most 4 of its 8 rows at a time; whole, all that is alive in step 6 takes 32,768 of 24,576 bytes; in active memory, step 8; stored to ddr; loaded from ddr
average (32x1x1): in active memory, step 8; stored to outputs, for the host, which runs classes
classes (10x1x1): outside: for the host alone; does not move
probability (10x1x1): outside: for the host alone; does not move
...
--- run amphora compile SHARE/examples/densenet-cell.prototxt -t xdnn-v2-28 --set memories.am.size=640KiB --explain
--- exit 0
--- stdout
...
names: X__bridge is a copy of X in a concat, where X itself cannot be written
image (64x28x28): in active memory, steps 1 to 4; loaded from inputs
l1/norm1 (64x28x28, layers l1/norm1, l1/norm1/scale and l1/norm1/relu): in active memory, steps 1 to 2; does not move
l1/norm2 (128x28x28, layers l1/1x1, l1/norm2, l1/norm2/scale and l1/norm2/relu): in active memory, steps 2 to 3; does not move
l1/3x3 (32x28x28): channels 64 to 95 of l1/out, in active memory, steps 3 to 18; does not move
image__bridge (64x28x28): channels 0 to 63 of l1/out, in active memory, steps 4 to 18; does not move
l1/out (96x28x28): channels 0 to 95 of l2/out, in active memory, steps 3 to 6; does not move
l2/norm1 (96x28x28, layers l2/norm1, l2/norm1/scale and l2/norm1/relu): in active memory, steps 6 to 7; does not move
l2/norm2 (128x28x28, layers l2/1x1, l2/norm2, l2/norm2/scale and l2/norm2/relu): in active memory, steps 7 to 8; does not move
l2/3x3 (32x28x28): channels 96 to 127 of l2/out, in active memory, steps 8 to 18; does not move
l2/out (128x28x28): channels 0 to 127 of l3/out, in active memory, steps 3 to 10; steps 10 to 12 run by stripes, with at most 24 of its 28 rows at a time; whole, all that is alive in step 11 takes 688,128 of 655,360 bytes; does not move
l3/norm1 (128x28x28, layers l3/norm1, l3/norm1/scale and l3/norm1/relu): never whole: steps 10 to 12 run by stripes, with at most 24 of its 28 rows at a time, 2 rows computed again; whole it takes 229,376 of 655,360 bytes, all that is alive in step 11 takes 688,128; does not move
l3/norm2 (128x28x28, layers l3/1x1, l3/norm2, l3/norm2/scale and l3/norm2/relu): never whole: steps 10 to 12 run by stripes, with at most 24 of its 28 rows at a time, 2 rows computed again; whole it takes 229,376 of 655,360 bytes, all that is alive in step 11 takes 688,128; does not move
l3/3x3 (32x28x28): channels 128 to 159 of l3/out, in active memory, steps 12 to 18; steps 10 to 12 run by stripes, with at most 23 of its 28 rows at a time; whole, all that is alive in step 11 takes 688,128 of 655,360 bytes; stored to ddr; loaded from ddr
l3/out (160x28x28): channels 0 to 159 of l4/out, in active memory, steps 3 to 14; steps 14 to 16 run by stripes, with at most 15 of its 28 rows at a time; whole, all that is alive in step 15 takes 802,816 of 655,360 bytes; does not move
l4/norm1 (160x28x28, layers l4/norm1, l4/norm1/scale and l4/norm1/relu): never whole: steps 14 to 16 run by stripes, with at most 15 of its 28 rows at a time, 2 rows computed again; whole it takes 286,720 of 655,360 bytes, all that is alive in step 15 takes 802,816; does not move
l4/norm2 (128x28x28, layers l4/1x1, l4/norm2, l4/norm2/scale and l4/norm2/relu): never whole: steps 14 to 16 run by stripes, with at most 15 of its 28 rows at a time, 2 rows computed again; whole it takes 229,376 of 655,360 bytes, all that is alive in step 15 takes 802,816; does not move
l4/3x3 (32x28x28): channels 160 to 191 of l4/out, in active memory, steps 16 to 18; steps 14 to 16 run by stripes, with at most 14 of its 28 rows at a time; whole, all that is alive in step 15 takes 802,816 of 655,360 bytes; stored to ddr; loaded from ddr
l4/out (192x28x28): in active memory, steps 3 to 18; steps 18 to 20 run by stripes, with at most 12 of its 28 rows at a time: of the plans that were tried the best; does not move
t/norm (192x28x28, layers t/norm, t/norm/scale and t/norm/relu): never whole: steps 18 to 20 run by stripes, with at most 12 of its 28 rows at a time; whole it takes 344,064 of 655,360 bytes: of the plans that were tried the best; does not move
t/1x1 (96x28x28): never whole: steps 18 to 20 run by stripes, with at most 12 of its 28 rows at a time; whole it takes 172,032 of 655,360 bytes: of the plans that were tried the best; does not move
t/pool (96x14x14): never whole: steps 18 to 20 run by stripes, with at most 6 of its 14 rows at a time; whole it takes 86,016 of 655,360 bytes: of the plans that were tried the best; stored to outputs
...
--- run amphora compile SHARE/examples/tiny.prototxt -t tile-npu --set memories.am.size=6KiB --explain
--- exit 0
--- stdout
...
image (3x16x16): in active memory, step 1; loaded from inputs
conv1 (16x16x16, layers conv1, conv1/bn, conv1/scale and conv1/relu): outside: tiles of it pass through active memory; whole it takes 4,096 of 6,144 bytes: of the plans that were tried the best; made in ddr by tiles of 16 channels x 4 x 8 pixels, from 3 input channels at a time; a tile of pixels stays for all channels; read by tiles
pool1 (16x8x8): in active memory, steps 3 to 4, away in step 2: of the plans that were tried the best; made in ddr by tiles of 4 x 8 pixels; loaded from ddr
left (16x8x8, layers left and left/relu): channels 0 to 15 of both, in active memory, steps 3 to 7; made by tiles of 16 channels x 8 x 2 pixels, from 16 input channels at a time; a tile of pixels stays for all channels; does not move
right (16x8x8, layers right and right/relu): channels 16 to 31 of both, in active memory, steps 4 to 7; made by tiles of 4 channels x 8 x 1 pixels, from 16 input channels at a time; a tile of weights stays for all pixels; does not move
both (32x8x8): in active memory, steps 3 to 7; does not move
mix (32x8x8): in active memory, step 7, away in step 6: of the plans that were tried the best; made in ddr by tiles of 4 channels x 2 x 8 pixels, from 32 input channels at a time; a tile of weights stays for all pixels; loaded from ddr
sum (32x8x8, layers sum and sum/relu): in active memory, steps 7 to 8, in the place of mix; does not move
average (32x1x1): in active memory, step 8; stored to outputs, for the host, which runs classes
classes (10x1x1): outside: for the host alone; does not move
probability (10x1x1): outside: for the host alone; does not move
...
--- run amphora compile SHARE/examples/tiny.prototxt -t xdnn-v3-96 --set memories.am.size=16KiB --explain
--- exit 0
--- stdout
...
image (3x16x16): outside: tiles of it pass through active memory; whole it takes 24,576 of 16,384 bytes; 1,440 bytes read by tiles, of 768: some again
pool1 (16x8x8, layers pool1, conv1, conv1/bn, conv1/scale and conv1/relu): in active memory, steps 2 to 3, away in step 1: all that is alive in step 1 takes 30,720 of 16,384 bytes; made in ddr by tiles of 1 x 8 pixels; loaded from ddr
left (16x8x8, layers left and left/relu): channels 0 to 15 of both, in active memory, steps 2 to 6; does not move
...
--- run amphora compile SHARE/examples/tiny.prototxt -t ring-npu --set memories.am.size=3KiB --explain
--- exit 0
--- stdout
...
image (3x16x16): never whole: steps 1 to 2 roll, with a ring of 9 of its 16 rows; whole it takes 768 of 3,072 bytes, all that is alive in step 2 takes 5,120; loaded from inputs
conv1 (16x16x16, layers conv1, conv1/bn, conv1/scale and conv1/relu): never whole: steps 1 to 2 roll, with a ring of 8 of its 16 rows; whole it takes 4,096 of 3,072 bytes; does not move
pool1 (16x8x8): never whole: steps 1 to 2 and steps 3 to 7 roll, with rings of at most 5 of its 8 rows; whole it takes 1,024 of 3,072 bytes, all that is alive in step 2 takes 5,120; stored to ddr; loaded from ddr
left (16x8x8, layers left and left/relu): channels 0 to 15 of both, never whole: steps 3 to 7 roll, with a ring of 5 of its 8 rows; whole it takes 1,024 of 3,072 bytes, all that is alive in step 6 takes 4,096; does not move
right (16x8x8, layers right and right/relu): channels 16 to 31 of both, never whole: steps 3 to 7 roll, with a ring of 5 of its 8 rows; whole it takes 1,024 of 3,072 bytes, all that is alive in step 6 takes 4,096; does not move
both (32x8x8): never whole: steps 3 to 7 roll, with a ring of 5 of its 8 rows; whole it takes 2,048 of 3,072 bytes, all that is alive in step 6 takes 4,096; does not move
mix (32x8x8): never whole: steps 3 to 7 roll, with a ring of 4 of its 8 rows; whole it takes 2,048 of 3,072 bytes, all that is alive in step 6 takes 4,096; does not move
sum (32x8x8, layers sum and sum/relu): steps 3 to 7 roll, with a ring of 4 of its 8 rows; whole, all that is alive in step 6 takes 4,096 of 3,072 bytes; in active memory, step 8; stored to ddr; loaded from ddr
average (32x1x1): in active memory, step 8; stored to outputs, for the host, which runs classes
classes (10x1x1): outside: for the host alone; does not move
probability (10x1x1): outside: for the host alone; does not move
...
--- run amphora compile SHARE/examples/tiny.prototxt -t ring-npu --set memories.am.size=2KiB --explain
--- exit 0
--- stdout
tiny on ring-npu: 60 instructions, 2 layers of the host
host    classes (fc): no engine of ring-npu runs fc
host    probability (softmax): no engine of ring-npu runs softmax
AM      1,920 of 2,048 bytes, live peak 1,920 (planner greedy_by_size, proved)
DDR     3,072 bytes for spilled and tiled volumes
        6,944 bytes moved; compulsory 800, bound 800 (no listing with these layers on the host moves less)
        layer by layer no plan in this order moves less than 8,992
all     22,009 cycles with the host's (0.055 ms): engines have 63.4 % of the time
host    0.020 ms for 2 layers, 392 bytes; engines wait for it 0 times
share   engines compute 99.9 % of 864,576 products
        fc on an engine, not the host: 1 layer, 0.010 ms there, 0.000 of transfers for them, 0.0 % of products (no engine of ring-npu runs fc)
        softmax on an engine, not the host: 1 layer, 0.010 ms there, 0.000 of transfers for them, 0.0 % of products (no engine of ring-npu runs softmax)
image (3x16x16): never whole: steps 1 to 2 roll, with a ring of 6 of its 16 rows; whole it takes 768 of 2,048 bytes, all that is alive in step 2 takes 5,120; loaded from inputs
conv1 (16x16x16, layers conv1, conv1/bn, conv1/scale and conv1/relu): never whole: steps 1 to 2 roll, with a ring of 4 of its 16 rows; whole it takes 4,096 of 2,048 bytes; does not move
pool1 (16x8x8): never whole: steps 1 to 2 and steps 3 to 7 roll, with rings of at most 3 of its 8 rows; whole it takes 1,024 of 2,048 bytes, all that is alive in step 2 takes 5,120; stored to ddr; loaded from ddr
left (16x8x8, layers left and left/relu): channels 0 to 15 of both, never whole: steps 3 to 7 roll, with a ring of 4 of its 8 rows; whole it takes 1,024 of 2,048 bytes, all that is alive in step 6 takes 4,096; does not move
right (16x8x8, layers right and right/relu): channels 16 to 31 of both, never whole: steps 3 to 7 roll, with a ring of 4 of its 8 rows; whole it takes 1,024 of 2,048 bytes, all that is alive in step 6 takes 4,096; does not move
both (32x8x8): never whole: steps 3 to 7 roll, with a ring of 4 of its 8 rows; whole it takes 2,048 of 2,048 bytes, all that is alive in step 6 takes 4,096; does not move
mix (32x8x8): never whole: steps 3 to 7 roll, with a ring of 2 of its 8 rows; whole it takes 2,048 of 2,048 bytes, all that is alive in step 6 takes 4,096; does not move
sum (32x8x8, layers sum and sum/relu): never whole: steps 3 to 7 roll and step 8 runs by channels, with a ring of 2 of its 8 rows, and at most 16 of its 32 channels at a time; whole it takes 2,048 of 2,048 bytes, all that is alive in step 6 takes 4,096; stored to ddr; loaded from ddr
average (32x1x1): never whole: step 8 runs by channels, with at most 16 of its 32 channels at a time; whole it takes 32 of 2,048 bytes, all that is alive in step 8 takes 2,080; stored to outputs, for the host, which runs classes
classes (10x1x1): outside: for the host alone; does not move
probability (10x1x1): outside: for the host alone; does not move
bytes: 6,944 moved; compulsory 800, bound 800 (no listing with these layers on the host moves less)
time: 13,968 cycles; transfers take 4,952, of which 2,420 pass while layers run
  316 cycles: store of sum, behind sum, before average
  316 cycles: load of sum, behind the store of sum, before average
  316 cycles: load of sum, between two parts of average
  188 cycles: store of pool1, behind pool1, before left
  188 cycles: load of pool1, behind the store of pool1, before left
  3 times 188 cycles: load of pool1, between two parts of right
  180 cycles: store of sum, behind sum, before mix
  172 cycles: load of pool1, behind the store of pool1, before right
  and 3 shorter ones
weights 7 layers had none: seeded ones
wrote   ./tiny.cmd
wrote   ./tiny.json
wrote   ./tiny.weights
ms      hwspec <ms> read <ms> passes <ms> schedule <ms> alloc <ms> codegen <ms> write <ms>, all <ms>
--- run amphora compile SHARE/examples/tiny.prototxt -t xdnn-v2-28 --set memories.am.size=24KiB --images 2 --explain
--- exit 0
--- stdout
...
both@2 (32x8x8): never whole: steps 16 to 17 run by stripes, with at most 5 of its 8 rows at a time; whole it takes 16,384 of 24,576 bytes, all that is alive in step 16 takes 32,768; 18 rows loaded from ddr, of 8: some again
...
--- run amphora compile SHARE/examples/tiny.prototxt -t stage-npu --set memories.am.size=12KiB --explain
--- exit 0
--- stdout
tiny on stage-npu: 17 instructions, 1 layer of the host
host    probability (softmax): no engine of stage-npu runs softmax
AM      5,120 of 12,288 bytes, live peak 5,120 (planner greedy_by_size, proved)
        volumes alone; beside them at most 6,048 bytes of weights wait or are read, up to byte 9,440 of am
DDR     0 bytes for volumes: everything stays in AM
        13,306 bytes moved; compulsory 13,306, bound 13,306 (no listing with these layers on the host moves less)
all     12,713 cycles with the host's (0.013 ms): engines have 21.2 % of the time
host    0.010 ms for 1 layer, 20 bytes; engines wait for it 0 times
share   engines compute 100.0 % of 864,576 products
        softmax on an engine, not the host: 1 layer, 0.010 ms there, 0.000 of transfers for them, 0.0 % of products (no engine of stage-npu runs softmax)
image (3x16x16): in active memory, step 1; loaded from inputs
conv1 (16x16x16, layers conv1, conv1/bn, conv1/scale and conv1/relu): in active memory, steps 1 to 2; does not move
pool1 (16x8x8): in active memory, steps 2 to 4; does not move
left (16x8x8, layers left and left/relu): channels 0 to 15 of both, in active memory, steps 3 to 7; does not move
right (16x8x8, layers right and right/relu): channels 16 to 31 of both, in active memory, steps 4 to 7; does not move
both (32x8x8): in active memory, steps 3 to 7; does not move
mix (32x8x8): in active memory, steps 6 to 7; does not move
sum (32x8x8, layers sum and sum/relu): in active memory, steps 7 to 8, in the place of mix; does not move
average (32x1x1): in active memory, steps 8 to 9; does not move
classes (10x1x1): in active memory, step 9; stored to outputs, for the host, which runs probability
probability (10x1x1): outside: for the host alone; does not move
weights of conv1 (432 bytes, 16 channels): one block; its engine waits 276 cycles for them
weights of left (256 bytes, 16 channels): one block; there 748 cycles before they are read
weights of right (2,304 bytes, 16 channels): one block; there 535 cycles before they are read
weights of mix (9,216 bytes, 32 channels): 2 blocks of at most 21 channels, 6,048 bytes, as volumes of step 6 leave 8,192 bytes; its engine waits 776 cycles for them
weights of classes (320 bytes, 10 channels): one block; there 200 cycles before they are read
weights: 12,528 bytes loaded in 6 blocks, of 12,528
plan: one for 10,240 of 12,288 bytes: nothing that was tried with more is better, and no better than what more yet would get
bytes: 13,306 moved; compulsory 13,306, bound 13,306 (no listing with these layers on the host moves less)
time: 2,707 cycles; layers take 1,553, and beside them transfers of volumes 250, of weights 1,385
weights 7 layers had none: seeded ones
wrote   ./tiny.cmd
wrote   ./tiny.json
wrote   ./tiny.weights
ms      hwspec <ms> read <ms> passes <ms> schedule <ms> alloc <ms> codegen <ms> write <ms>, all <ms>
