# What a bundle keeps where: tables, the problem for pack, why something does not
# fit, what a hwspec may not say.
--- file far.yaml
extends: n64
machine: {name: far}
memories:
  cartridge: {piece: 4KiB}
--- file bad.yaml
extends: n64
machine: {name: bad}
memories:
  workspace: {load: callback}
  inputs: {piece: 4}
bundle: {inputs: [cartridge], activations: outside, scratch: [workspace, workspace], planner: 3, more: 1}
engines: {core: {overlap: [conv]}}
--- run amphora compile SHARE/examples/tiny.prototxt -t ./far.yaml --emit problem --explain
--- exit 0
--- stdout
tiny on far: 11 instructions, 0 layers of the host
pool    workspace: 21,248 of 4,063,232 bytes
bundle  21,248 bytes for 13 buffers, bound 21,248 (planner greedy_by_size, proved)
        51,200 bytes of constants, loaded when they are needed
share   engines compute 100.0 % of 864,576 products
buffer                       pool               from      bytes  calls
image                        workspace         16384       3072  0 to 1
probability                  workspace             0         48  10 to 12
conv1                        workspace             0      16384  1 to 2
conv1                        workspace         19456       1792  1 to 1
pool1                        workspace         16384       4096  2 to 4
left                         workspace             0       8192  3 to 7
left                         workspace          8192       1088  3 to 3
right                        workspace          8192       4096  4 to 4
mix                          workspace          8192       8192  6 to 8
mix                          workspace         16384       3520  6 to 6
average                      workspace          1344        128  8 to 9
classes                      workspace          1472         48  9 to 10
classes                      workspace             0       1344  9 to 9
layer: bytes                     activation        runtime         sum |         weight         bias        scale         sum |              MAC
most, or all                      20480 100%      4096 100%      24576 |      50112 100%     360 100%       0   0%      50472 |       864576 100%
conv1                             19456  95%      1792  44%      21248 |       1728   3%      64  18%       0   0%       1792 |       110592  13%
pool1                             20480 100%         0   0%      20480 |          0   0%       0   0%       0   0%          0 |            0   0%
left                              12288  60%      1088  27%      13376 |       1024   2%      64  18%       0   0%       1088 |        16384   2%
right                             12288  60%      4096 100%      16384 |       9216  18%      64  18%       0   0%       9280 |       147456  17%
mix                               16384  80%      3520  86%      19904 |      36864  74%     128  36%       0   0%      36992 |       589824  68%
sum                               16384  80%         0   0%      16384 |          0   0%       0   0%       0   0%          0 |            0   0%
average                            8320  41%         0   0%       8320 |          0   0%       0   0%       0   0%          0 |            0   0%
classes                             176   1%      1344  33%       1520 |       1280   3%      40  11%       0   0%       1320 |          320   0%
probability                          96   0%         0   0%         96 |          0   0%       0   0%       0   0%          0 |            0   0%
weights 7 layers had none: seeded ones
wrote   ./tiny.cmd
wrote   ./tiny.json
wrote   ./tiny.weights
wrote   ./tiny.csv
ms      hwspec <ms> read <ms> passes <ms> schedule <ms> alloc <ms> codegen <ms> write <ms> native <ms>, all <ms>
--- stderr
--- run amphora pack tiny.csv --planner first_fit
--- exit 0
--- stdout
planner                       height           bound                      nodes  ms
first_fit                     21,248          21,248  the least               0  <ms>
--- stderr
--- run amphora compile SHARE/examples/tiny.prototxt -t ./far.yaml --emit bundle --io separate --most-images 3 --json
--- exit 0
--- stdout
{"network":"tiny","machine":"far","instructions":11,"records":11,"am_bytes":20480,"am_packed_bytes":20480,"am_live_bytes":20480,"am_bound_bytes":20480,"am_proved":true,"planner":"greedy_by_size","am_capacity_bytes":4063232,"bundle":{"pools":{"workspace":52672},"buffers":11,"bound":52672,"proved":true,"planner":"exact","constants":51200},"ddr_moved_bytes":3112,"ddr_bound_bytes":3112,"ddr_order_bound_bytes":3112,"ddr_apart_bound_bytes":3112,"ddr_once_bound_bytes":3112,"ddr_layers_bound_bytes":3112,"computed_again_bytes":0,"products":864576,"two_levels":false,"cost":{"memory":20480,"cycles":0,"bytes":53224,"instructions":11},"planned_for_bytes":0,"front":[{"memory":20480,"cycles":0,"bytes":53224,"instructions":11,"chosen":true}],"effort":{"configurations":<ms>,"packings":<ms>,"steps":<ms>,"budget":<ms>},"rejected":0,"order":{"order":"file","peak_bytes":20480,"steps":10,"cycles":872468},"seeded_layers":7,"host_layers":[],"engine_products":864576,"host_products":0,"host_cycles":0,"total_cycles":0,"host_bytes":0,"round_trips":0,"changes":[],"listing":"./tiny.cmd","json":"./tiny.json","weights":"./tiny.weights","object":"./tiny.o","header":"./tiny.h","constants":"./tiny.bin","ms":{"hwspec":<ms>,"read":<ms>,"passes":<ms>,"schedule":<ms>,"alloc":<ms>,"codegen":<ms>,"write":<ms>,"native":<ms>}}
--- stderr
--- run amphora compile SHARE/examples/tiny.prototxt -t ./far.yaml --emit bundle --set memories.workspace.size=16KiB
--- exit 3
--- stdout
--- stderr
./far.yaml:1:1: error: does not fit: the bundle of tiny needs 19904 bytes of workspace, which has 16384
    extends: n64
    ^
./far.yaml:1:1: note: image: 3072 bytes
    extends: n64
    ^
./far.yaml:1:1: note: conv1: 16384 bytes
    extends: n64
    ^
amphora: note: --set memories.workspace.size=20KiB would do
--- run amphora compile SHARE/examples/tiny.prototxt -t ./far.yaml --emit bundle --set memories.cartridge.size=16KiB
--- exit 3
--- stdout
--- stderr
./far.yaml:1:1: error: does not fit: the constants take 51200 bytes, far has 16384
    extends: n64
    ^
--- run amphora compile SHARE/examples/tiny.prototxt -t ./far.yaml --io shared
--- exit 2
--- stdout
--- stderr
amphora: error: --io is about bundles: --emit bundle
--- run amphora compile SHARE/examples/tiny.prototxt -t ./far.yaml --emit bundle --most-images 5000
--- exit 2
--- stdout
--- stderr
amphora: error: --most-images: at most 4096
--- run amphora check bad.yaml
--- exit 1
--- stdout
--- stderr
bad.yaml:4:21: error: only constants are loaded on demand
      workspace: {load: callback}
                        ^
bad.yaml:5:19: error: only constants are loaded on demand
      inputs: {piece: 4}
                      ^
bad.yaml:7:28: error: `conv` is not one of: depthwise, pool, pointwise, sum
    engines: {core: {overlap: [conv]}}
                               ^
bad.yaml:6:18: error: buffers lie in active memories only
    bundle: {inputs: [cartridge], activations: outside, scratch: [workspace, workspace], planner: 3, more: 1}
                     ^
bad.yaml:6:44: error: a list is expected here, not a single value
    bundle: {inputs: [cartridge], activations: outside, scratch: [workspace, workspace], planner: 3, more: 1}
                                               ^
bad.yaml:6:74: error: `workspace` stands here a second time
    bundle: {inputs: [cartridge], activations: outside, scratch: [workspace, workspace], planner: 3, more: 1}
                                                                             ^
bad.yaml:6:98: error: unknown key `more`
    bundle: {inputs: [cartridge], activations: outside, scratch: [workspace, workspace], planner: 3, more: 1}
                                                                                                     ^
--- file odd.yaml
extends: n64
machine: {name: odd}
bundle: {planner: tallest}
--- run amphora compile SHARE/examples/tiny.prototxt -t ./odd.yaml --emit problem
--- exit 1
--- stdout
--- stderr
./odd.yaml:1:1: error: no planner is called 'tallest'
    extends: n64
    ^
--- file other.yaml
extends: cpu-x86-64
machine: {name: other}
memories:
  workspace: {cost: 1}
  weights: {role: active, size: 4KiB, align: 64, layout: blocks, base: 0x20000000}
bundle: {constants: [weights], activations: [workspace]}
--- run amphora compile SHARE/examples/tiny.prototxt -t ./other.yaml --emit bundle
--- exit 3
--- stdout
--- stderr
./other.yaml:1:1: error: does not fit: the bundle of tiny needs 50496 bytes of weights, which has 4096
    extends: cpu-x86-64
    ^
./other.yaml:1:1: note: constants: 50496 bytes
    extends: cpu-x86-64
    ^
amphora: note: --set memories.weights.size=50KiB would do
--- run amphora compile SHARE/examples/tiny.prototxt -t ./other.yaml --emit bundle --set memories.workspace.size=4KiB
--- exit 3
--- stdout
--- stderr
./other.yaml:1:1: error: does not fit: the bundle of tiny needs more of several memories than other has
    extends: cpu-x86-64
    ^
./other.yaml:1:1: note: constants: 50496 bytes
    extends: cpu-x86-64
    ^
--- run amphora compile SHARE/examples/tiny.prototxt -t cpu-x86-64 --emit bundle --set native.cpu=x86-63
--- exit 1
--- stdout
--- stderr
amphora: error: native code for x86_64-unknown-linux-gnu: 'x86-63' is not a recognized processor for this target
--- run amphora compile SHARE/examples/tiny.prototxt -t cpu-aarch64 --emit bundle --set native.features=+neon,+neno
--- exit 1
--- stdout
--- stderr
amphora: error: native code for aarch64-unknown-linux-gnu: '+neno' is not a recognized feature for this target
