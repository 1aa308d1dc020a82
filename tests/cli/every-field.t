# A machine whose every row writes every field of windows, and one token that is
# a pool's kernel for one row and a convolution's for another: what an operation
# does not have is written as 1, or 0, and does no harm.
--- file net.prototxt
name: "fields"
input: "data"
input_shape { dim: 1 dim: 6 dim: 20 dim: 20 }
layer { name: "c" type: "Convolution" bottom: "data" top: "c"
  convolution_param { num_output: 8 kernel_size: 3 pad: 2 dilation: 2 } }
layer { name: "r6" type: "ReLU6" bottom: "c" top: "c" }
layer { name: "dw" type: "Convolution" bottom: "c" top: "dw"
  convolution_param { num_output: 8 group: 8 kernel_size: 3 pad: 1 } }
layer { name: "p" type: "Pooling" bottom: "dw" top: "p"
  pooling_param { pool: MAX kernel_size: 3 stride: 2 pad: 1 } }
layer { name: "a" type: "Pooling" bottom: "p" top: "a"
  pooling_param { pool: AVE kernel_size: 3 stride: 1 pad: 1 } }
layer { name: "s" type: "Eltwise" bottom: "p" bottom: "a" top: "s" }
layer { name: "m" type: "Eltwise" bottom: "s" bottom: "a" top: "m"
  eltwise_param { operation: PROD } }
layer { name: "x" type: "Eltwise" bottom: "m" bottom: "p" top: "x"
  eltwise_param { operation: MAX } }
layer { name: "sc" type: "Scale" bottom: "x" top: "sc"
  scale_param { bias_term: true } }
layer { name: "t" type: "TanH" bottom: "sc" top: "t" }
layer { name: "tt" type: "Sigmoid" bottom: "t" top: "tt" }
layer { name: "d" type: "Deconvolution" bottom: "tt" top: "d"
  convolution_param { num_output: 4 kernel_size: 2 stride: 2 } }
layer { name: "fc" type: "InnerProduct" bottom: "d" top: "fc"
  inner_product_param { num_output: 10 } }
--- file every.yaml
extends: "null"
machine: {name: every}
fields:
  pkw: {from: [pool.kernel.w, kernel.w]}
  pkh: {from: [pool.kernel.h, kernel.h]}
  psw: pool.stride.w
  psh: pool.stride.h
  ppw: {from: pool.pad.w, bias: 2}
  pph: {from: pool.pad.h, bias: 2}
  all: [operands, window, dw, dh, groups, pkw, pkh, psw, psh, ppw, pph, global,
        fw, fh, act, bias]
instructions:
  CONV:    {text: step CONV name all}
  GROUPED: {text: step GROUPED name all}
  DEPTH:   {text: step DEPTH name all}
  DECONV:  {text: step DECONV name all}
  FC:      {text: step FC name all}
  MAXPOOL: {text: step MAXPOOL name all}
  AVGPOOL: {text: step AVGPOOL name all}
  ADD:     {text: step ADD name all src2}
  MUL:     {text: step MUL name all src2}
  MAX:     {text: step MAX name all src2}
  SCALE:   {text: step SCALE name all}
  ACT:     {text: step ACT name all}
  UP:      {text: step UP name all}
--- run amphora verify net.prototxt -t ./every.yaml
--- exit 0
--- stdout
net on every: the listing computes what the network computes
values  11 layers and tiles compared, largest relative error <ms>
plan    25,600 bytes of AM, live peak 25,600 (planner greedy_by_size, proved)
AM      25,600 of 1,099,511,627,776 bytes touched
DDR     9,600 bytes read, 40 written; compulsory 9,640
time    305,176 cycles (0.305 ms at 1000 MHz), 13 instructions
memory  0 violations
bound   9,640 bytes over DDR: no listing moves less
share   engines compute 100.0 % of 236,448 products
weights 5 layers had none: seeded ones
ms      hwspec <ms> read <ms> passes <ms> schedule <ms> alloc <ms> codegen <ms> simulate <ms> reference <ms>
--- stderr
--- run amphora compile net.prototxt -t ./every.yaml -o out
--- exit 0
--- stdout
net on every: 13 instructions, 0 layers of the host
AM      25,600 of 1,099,511,627,776 bytes, live peak 25,600 (planner greedy_by_size, proved)
DDR     0 bytes for volumes: everything stays in AM
        9,640 bytes moved; compulsory 9,640, bound 9,640 (no listing moves less)
share   engines compute 100.0 % of 236,448 products
weights 5 layers had none: seeded ones
wrote   out/net.cmd
wrote   out/net.json
ms      hwspec <ms> read <ms> passes <ms> schedule <ms> alloc <ms> codegen <ms> write <ms>, all <ms>
--- stderr
--- run tail -n 13 out/net.cmd
--- exit 0
--- stdout
1 LOAD 0 12800 20 20 6 0 19 1 # data_blob
2 CONV c 12800 20 20 6 0 20 20 8 3 3 1 1 2 2 2 2 1 3 3 1 1 2 2 0 1 1 2 1 # am_to_am
3 DEPTH dw 0 20 20 8 12800 20 20 8 3 3 1 1 1 1 1 1 8 3 3 1 1 2 2 0 1 1 0 1 # am_to_am
4 MAXPOOL p 12800 20 20 8 0 11 11 8 3 3 2 2 1 1 1 1 1 3 3 1 1 2 2 0 1 1 0 0 # am_to_am
5 AVGPOOL a 0 11 11 8 7744 11 11 8 3 3 1 1 1 1 1 1 1 3 3 1 1 2 2 0 1 1 0 0 # am_to_am
6 ADD s 0 11 11 8 3872 11 11 8 1 1 1 1 0 0 1 1 1 1 1 1 1 2 2 0 1 1 0 0 7744 # am_to_am
7 MUL m 7744 11 11 8 7744 11 11 8 1 1 1 1 0 0 1 1 1 1 1 1 1 2 2 0 1 1 0 0 3872 # am_to_am
8 MAX x 7744 11 11 8 7744 11 11 8 1 1 1 1 0 0 1 1 1 1 1 1 1 2 2 0 1 1 0 0 0 # am_to_am
9 SCALE sc 7744 11 11 8 7744 11 11 8 1 1 1 1 0 0 1 1 1 1 1 1 1 2 2 0 1 1 6 1 # am_to_am
10 ACT tt 7744 11 11 8 7744 11 11 8 1 1 1 1 0 0 1 1 1 1 1 1 1 2 2 0 1 1 5 0 # am_to_am
11 DECONV d 7744 11 11 8 0 22 22 4 2 2 2 2 0 0 1 1 1 2 2 1 1 2 2 0 1 1 0 1 # am_to_am
12 FC fc 0 22 22 4 7744 1 1 10 22 22 1 1 0 0 1 1 1 22 22 1 1 2 2 0 1 1 0 1 # am_to_am
13 STORE 7744 0 1 1 10 0 0 1 # Output fc
--- stderr
