# compile, asm, disasm and simulate: the same instructions in every form.
--- run amphora compile SHARE/examples/tiny.prototxt -t xdnn-v3-96 -o out >/dev/null && ls out
--- exit 0
--- stdout
tiny.cmd
tiny.json
tiny.weights
--- run amphora asm out/tiny.cmd -t xdnn-v3-96 -o tiny.bin && amphora disasm tiny.bin -t xdnn-v3-96 | cmp - out/tiny.cmd
--- exit 0
--- stdout
wrote   tiny.bin: 10 instructions, 3447 bytes
--- stderr
--- run amphora simulate out/tiny.cmd -t xdnn-v3-96
--- exit 0
--- stdout
AM      3,151,872 of 9,437,184 bytes touched
DDR     960 bytes read, 32 written; compulsory 800
time    1,991 cycles (0.003 ms at 700 MHz), 7 instructions
note    input image: values are seeded
memory  0 violations
all     16,061 cycles with the host's (0.023 ms): engines have 12.3 % of the time
host    0.020 ms for 2 layers, 392 bytes; engines wait for it 0 times
share   engines compute 99.9 % of 864,576 products
        fc on an engine, not the host: 1 layer, 0.010 ms there, 0.000 of transfers for them, 0.0 % of products (no engine of xdnn-v3-96 runs fc)
        softmax on an engine, not the host: 1 layer, 0.010 ms there, 0.000 of transfers for them, 0.0 % of products (no engine of xdnn-v3-96 runs softmax)
--- stderr
--- run amphora simulate out/tiny.cmd -t xdnn-v3-96 >a && amphora simulate out/tiny.json -t xdnn-v3-96 >b && cmp a b
--- exit 0
--- stdout
--- stderr
--- run grep -v '^# template' out/tiny.cmd
--- exit 0
--- stdout
1 XNMaxPoolPipelined pool1 2 2 2 2 0 0 0x0 16 16 3 0x71c7 8 8 1 1 0 1 12 8 0 1 3 32 0 0 0 0 0 0 0 0 0 1 0 0 0 0 0 1 0 1 1 0 1 0 8 3 1 0 14563 65536 conv1 3 3 1 1 1 1 1 1 1 0 1 16 16 16 8 # ddr_to_am
2 XNConv left 1 1 1 1 0 0 1 1 16 26 2 1 0 1 0x71c7 8 8 16 0x8000 8 8 16 1 1 0 1 3 32 1 0 0 0 1 1 0 0 0 0 32 0 0 1 0 0 0 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0 # am_to_am
3 XNConv right 3 3 1 1 1 1 1 1 16 26 2 1 0 1 0x71c7 8 8 16 0x8000 8 8 16 1 1 0 1 3 32 1 0 0 0 1 1 0 0 0 16 32 0 0 1 0 0 0 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0 # am_to_am
# 4 XNConcat both  0x8000 0x8040 6144 1 0 0 0 MUTE CODE
5 XNConv mix 3 3 1 1 1 1 1 1 16 26 2 0 0 1 0x8000 8 8 32 0x40 8 8 32 1 1 1 0 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0 1 0 0 0 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0 # am_to_am
6 XNEltwise sum 1 0 1 0 0x8000 0x40 8 8 32 0x40 1 1 1 0 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0 1 0 1 0 1 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 # am_to_am
7 XNAvgPool average 8 8 1 1 0 0 0x40 8 8 32 0x0 1 1 1 1 1 0 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 1 1 0 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0 # am_to_am
8 XNScatter 0x0 0x0 1 1 32 0 1 1 0 0 1 1 0 0 0 1 # average_blob
# 9 XNHost classes fc # no engine of xdnn-v3-96 runs fc
# 10 XNHost probability softmax # no engine of xdnn-v3-96 runs softmax
