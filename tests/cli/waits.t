# What an instruction waits for: the pool and the convolution b read the same
# volume and write their own, and their engines run side by side, so that none
# waits for the other; the upsampling waits for both, as its engine runs beside
# none, though it touches nothing of theirs. Loads and stores are two units: who
# needs what was loaded does not wait for stores.
--- file net.prototxt
name: "waits"
input: "data"
input_shape { dim: 1 dim: 96 dim: 8 dim: 8 }
layer { name: "a" type: "Convolution" bottom: "data" top: "a"
  convolution_param { num_output: 96 kernel_size: 1 } }
layer { name: "p" type: "Pooling" bottom: "a" top: "p"
  pooling_param { pool: MAX kernel_size: 3 stride: 1 pad: 1 } }
layer { name: "b" type: "Convolution" bottom: "a" top: "b"
  convolution_param { num_output: 96 kernel_size: 1 } }
layer { name: "u" type: "Upsample" bottom: "a" top: "u"
  upsample_param { scale: 2 } }
layer { name: "s" type: "Eltwise" bottom: "p" bottom: "b" top: "s" }
--- run amphora verify net.prototxt -t xdnn-v3-96
--- exit 0
--- stdout
net on xdnn-v3-96: the listing computes what the network computes
values  5 layers and tiles compared, largest relative error <ms>
plan    3,151,872 bytes of AM, packed 43,008, live peak 43,008 (planner greedy_by_size, proved)
AM      3,151,872 of 9,437,184 bytes touched
DDR     6,144 bytes read, 30,720 written; compulsory 36,864
time    7,321 cycles (0.010 ms at 700 MHz), 8 instructions
memory  0 violations
bound   36,864 bytes over DDR: no listing moves less
share   engines compute 100.0 % of 1,179,648 products
weights 2 layers had none: seeded ones
floats  were compared, which elements of 1 byte cannot be: for codes, amphora quantise net.prototxt --calibrate DIR -t xdnn-v3-96
ms      hwspec <ms> read <ms> passes <ms> schedule <ms> alloc <ms> codegen <ms> simulate <ms> reference <ms>
--- stderr
--- run amphora compile net.prototxt -t xdnn-v3-96 -o out
--- exit 0
--- stdout
net on xdnn-v3-96: 8 instructions, 0 layers of the host
AM      3,151,872 of 9,437,184 bytes, packed 43,008, live peak 43,008 (planner greedy_by_size, proved)
DDR     0 bytes for volumes: everything stays in AM
        36,864 bytes moved; compulsory 36,864, bound 36,864 (no listing moves less)
share   engines compute 100.0 % of 1,179,648 products
order   --order best has 30,720 bytes alive at the worst step, not 43,008: the least of all orders
weights 2 layers had none: seeded ones
wrote   out/net.cmd
wrote   out/net.json
ms      hwspec <ms> read <ms> passes <ms> schedule <ms> alloc <ms> codegen <ms> write <ms>, all <ms>
--- stderr
--- run grep -v template out/net.cmd
--- exit 0
--- stdout
1 XNGather 0x0 0x0 8 8 96 0 1 1 0 7 1 1 0 0 0 1 # data_blob
2 XNConv a 1 1 1 1 0 0 1 1 16 26 2 0 0 1 0x0 8 8 96 0x100 8 8 96 1 1 1 0 0 0 1 0 0 0 0 0 0 0 0 0 0 1 0 1 0 0 0 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0 # am_to_am
3 XNMaxPool p 3 3 1 1 1 1 0x100 8 8 96 0x8000 8 8 1 1 1 0 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0 1 1 0 0 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0 # am_to_am
4 XNConv b 1 1 1 1 0 0 1 1 16 26 2 0 0 1 0x100 8 8 96 0x180 8 8 96 1 1 1 0 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0 1 0 0 0 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0 # am_to_am
5 XNUpsample u 2 2 0x100 8 8 96 0x0 16 16 NearestNeighbor 1 1 1 0 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0 1 1 0 1 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0 # am_to_am
6 XNScatter 0x0 0x0 16 16 96 0 1 1 0 15 1 1 0 0 0 1 # Output u
7 XNEltwise s 1 0 0 0 0x8000 0x180 8 8 96 0x8000 1 1 1 0 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1 0 1 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 # am_to_am
8 XNScatter 0x8000 0x18000 8 8 96 0 1 1 0 7 1 1 0 0 0 1 # Output s
--- stderr
