# Several images one behind the other, in one listing.
--- file net.prototxt
name: "net"
layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 dim: 4 dim: 8 dim: 8 } } }
layer { name: "a" type: "Convolution" bottom: "x" top: "a" convolution_param { num_output: 8 kernel_size: 3 pad: 1 } }
layer { name: "b" type: "Convolution" bottom: "a" top: "b" convolution_param { num_output: 8 kernel_size: 1 } }
layer { name: "p" type: "Softmax" bottom: "b" top: "p" }
--- run amphora compile net.prototxt -t xdnn-v2-28 --images 2 && grep -v '^#' net.cmd
--- exit 0
--- stdout
net on xdnn-v2-28: 8 instructions, 2 layers of the host
host    p (softmax): no engine of xdnn-v2-28 runs softmax
images  2, one behind the other; names of the second end in @2, and so on
AM      10,240 of 4,194,304 bytes, packed 8,192, live peak 8,192 (planner greedy_by_size, proved)
DDR     0 bytes for volumes: everything stays in AM
        3,072 bytes moved; compulsory 3,072, bound 3,072 (no listing with these layers on the host moves less)
all     11,640 cycles with the host's (0.023 ms): engines have 9.6 % of the time
host    0.021 ms for 2 layers, 4,096 bytes; engines wait for it 1 time
share   engines compute 100.0 % of 45,056 products
        softmax on an engine, not the host: 2 layers, 0.021 ms there, 0.000 of transfers for them, 0.0 % of products (no engine of xdnn-v2-28 runs softmax)
weights 2 layers had none: seeded ones
wrote   ./net.cmd
wrote   ./net.json
...
2 XNGather 0x1000 0x0 8 8 4 0 1 1 0 7 0 1 # x_blob
1 XNConv a 3 3 1 1 1 1 1 1 16 26 2 0 1 0x1000 8 8 4 0x0 8 8 8 0 # am_to_am
1 XNGather 0x2000 0x800 8 8 4 0 1 1 0 7 0 1 # x@2_blob
2 XNConv b 1 1 1 1 0 0 1 1 16 26 2 0 1 0x0 8 8 8 0x1000 8 8 8 0 # am_to_am
3 XNConv a@2 3 3 1 1 1 1 1 1 16 26 2 0 1 0x2000 8 8 4 0x0 8 8 8 0 # am_to_am
3 XNScatter 0x1000 0x0 8 8 8 0 1 1 0 7 0 1 # b_blob
5 XNConv b@2 1 1 1 1 0 0 1 1 16 26 2 0 1 0x0 8 8 8 0x1000 8 8 8 0 # am_to_am
6 XNScatter 0x1000 0x1000 8 8 8 0 1 1 0 7 0 1 # b@2_blob
--- stderr
--- run grep -o '"@*[xp]@2"' net.json | sort | uniq -c
--- exit 0
--- stdout
     14 "p@2"
      8 "x@2"
--- stderr
--- run amphora verify net.prototxt -t xdnn-v2-28 --images 2
--- exit 0
--- stdout
net on xdnn-v2-28: the listing computes what the network computes
values  6 layers and tiles compared, largest relative error <ms>
plan    10,240 bytes of AM, packed 8,192, live peak 8,192 (planner greedy_by_size, proved)
AM      10,240 of 4,194,304 bytes touched
DDR     1,024 bytes read, 2,048 written; compulsory 3,072
time    1,128 cycles (0.002 ms at 500 MHz), 8 instructions
memory  0 violations
images  2, one behind the other: 564 cycles an image, 504 from the first to the last
bound   3,072 bytes over DDR: no listing with these layers on the host moves less
all     11,640 cycles with the host's (0.023 ms): engines have 9.6 % of the time
host    0.021 ms for 2 layers, 4,096 bytes; engines wait for it 1 time
share   engines compute 100.0 % of 45,056 products
        softmax on an engine, not the host: 2 layers, 0.021 ms there, 0.000 of transfers for them, 0.0 % of products (no engine of xdnn-v2-28 runs softmax)
native  code for 2 layers
weights 2 layers had none: seeded ones
...
--- stderr
--- run amphora compile net.prototxt -t xdnn-v2-28 --images 2 --mode throughput
--- exit 2
--- stdout
--- stderr
amphora: error: --images: --mode throughput is for the listing of one image
--- run amphora compile net.prototxt -t xdnn-v2-28 --images 4 --set memories.outputs.size=6KiB
--- exit 3
--- stdout
--- stderr
amphora: error: does not fit: 4 images need 16,384 bytes of outputs, which has 6,144
--- run amphora compile net.prototxt -t xdnn-v2-28 --images none
--- exit 2
--- stdout
--- stderr
amphora: error: compile: --images takes N, not none
amphora: note: amphora compile --help lists the options
