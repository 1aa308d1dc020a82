# A token without effect is declared so, listed, and may say anything; any other
# may not. What others fill in later is a placeholder everywhere, or nowhere.
--- file net.prototxt
name: "unread"
input: "data"
input_shape { dim: 1 dim: 4 dim: 6 dim: 6 }
layer { name: "c" type: "Convolution" bottom: "data" top: "c"
  convolution_param { num_output: 8 kernel_size: 3 pad: 1 } }
layer { name: "d" type: "Convolution" bottom: "c" top: "d"
  convolution_param { num_output: 8 kernel_size: 1 } }
--- file loose.yaml
extends: "null"
machine: {name: loose}
fields:
  spare: {is: 3}
  fixed: {is: 5}
  put: {is: 7, later: true}
instructions:
  CONV: {text: step CONV name operands filter spare fixed put, unread: [spare]}
--- file spare.cmd
1 LOAD 0 4096 6 6 4 0 5 1
2 CONV c 4096 6 6 4 0 6 6 8 3 3 1 1 1 1 1 1 1 0 1 99 5 7
3 CONV d 0 6 6 8 1152 6 6 8 1 1 1 1 0 0 1 1 1 0 1 -1 5 7
--- file put.cmd
1 LOAD 0 4096 6 6 4 0 5 1
2 CONV c 4096 6 6 4 0 6 6 8 3 3 1 1 1 1 1 1 1 0 1 3 5 70
3 CONV d 0 6 6 8 1152 6 6 8 1 1 1 1 0 0 1 1 1 0 1 3 5 71
--- file wrong.cmd
1 LOAD 0 4096 6 6 4 0 5 1
2 CONV c 4096 6 6 4 0 6 6 8 3 3 1 1 1 1 1 1 1 0 2 3 6 7
1 CONV d 0 6 6 8 1152 6 6 8 1 1 1 1 0 0 2 1 4 0 1 3 5 8
--- file bad.yaml
extends: "null"
machine: {name: bad}
fields:
  odd: {from: kernel.w, later: true}
instructions:
  CONV: {text: step CONV name operands filter, unread: [nothing]}
--- run amphora check ./loose.yaml --unread
--- exit 0
--- stdout
unread  CONV: spare
later   CONV: put
--- stderr
--- run amphora check null --unread
--- exit 0
--- stdout
unread  none: every token of null is executed, or follows from others
--- stderr
--- run amphora check ./bad.yaml
--- exit 1
--- stdout
--- stderr
./bad.yaml:4:32: error: `odd` has no `is`
      odd: {from: kernel.w, later: true}
                                   ^
./bad.yaml:6:57: error: `nothing` is no token of the texts of CONV
      CONV: {text: step CONV name operands filter, unread: [nothing]}
                                                            ^
--- run amphora verify net.prototxt -t ./loose.yaml
--- exit 0
--- stdout
net on loose: the listing computes what the network computes
values  2 layers and tiles compared, largest relative error <ms>
plan    2,304 bytes of AM, live peak 2,304 (planner greedy_by_size, proved)
AM      2,304 of 1,099,511,627,776 bytes touched
DDR     576 bytes read, 1,152 written; compulsory 1,728
time    12,672 cycles (0.013 ms at 1000 MHz), 4 instructions
memory  0 violations
bound   1,728 bytes over DDR: no listing moves less
share   engines compute 100.0 % of 12,672 products
weights 2 layers had none: seeded ones
ms      hwspec <ms> read <ms> passes <ms> schedule <ms> alloc <ms> codegen <ms> simulate <ms> reference <ms>
--- stderr
--- run amphora simulate spare.cmd -t ./loose.yaml
--- exit 0
--- stdout
AM      4,672 of 1,099,511,627,776 bytes touched
DDR     576 bytes read, 0 written; compulsory 576
time    12,672 cycles (0.013 ms at 1000 MHz), 3 instructions
note    input 0 assumed: 4x6x6 at 0x0 in inputs
memory  0 violations
share   engines compute 100.0 % of 12,672 products
--- stderr
--- run amphora simulate put.cmd -t ./loose.yaml
--- exit 0
--- stdout
AM      4,672 of 1,099,511,627,776 bytes touched
DDR     576 bytes read, 0 written; compulsory 576
time    12,672 cycles (0.013 ms at 1000 MHz), 3 instructions
note    input 0 assumed: 4x6x6 at 0x0 in inputs
memory  0 violations
share   engines compute 100.0 % of 12,672 products
--- stderr
--- run amphora simulate wrong.cmd -t ./loose.yaml
--- exit 1
--- stdout
AM      4,672 of 1,099,511,627,776 bytes touched
DDR     576 bytes read, 0 written; compulsory 576
time    10,944 cycles (0.011 ms at 1000 MHz), 3 instructions
note    input 0 assumed: 4x6x6 at 0x0 in inputs
memory  5 violations
  wrong.cmd:2: c: bias is 2, neither 0 nor 1
  wrong.cmd:2: c: fixed is 6, and must be 5
  wrong.cmd:3: d: put and the like are numbers here, placeholders in instructions before this one
  wrong.cmd:3: d: groups is 4, and must be 1
  wrong.cmd:3: d: its step, 1, lies before step 2
share   engines compute 100.0 % of 10,944 products
--- stderr
--- run amphora simulate wrong.cmd -t ./loose.yaml --lax
--- exit 0
--- stdout
AM      4,672 of 1,099,511,627,776 bytes touched
DDR     576 bytes read, 0 written; compulsory 576
time    10,944 cycles (0.011 ms at 1000 MHz), 3 instructions
note    input 0 assumed: 4x6x6 at 0x0 in inputs
memory  0 violations
share   engines compute 100.0 % of 10,944 products
--- stderr
