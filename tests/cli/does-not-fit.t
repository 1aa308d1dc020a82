# Exit code 3, which step, which volumes, how many bytes short, what would do.
--- run amphora compile SHARE/examples/googlenet.prototxt -t xdnn-v2-28 --set memories.am.size=1KiB
--- exit 3
--- stdout
--- stderr
SHARE/examples/googlenet.prototxt:55:1: error: does not fit: step 7 (stem/pool2) needs 86,016 bytes of am, which has 1,024: 84,992 short
    layer {
    ^
SHARE/examples/googlenet.prototxt:50:1: note: stem/lrn2 (192x56x56, 3 of its rows): 73,728 bytes
    layer {
    ^
SHARE/examples/googlenet.prototxt:55:1: note: stem/pool2 (192x28x28, 1 of its rows): 12,288 bytes
    layer {
    ^
SHARE/examples/googlenet.prototxt:55:1: note: no stripe of stem/pool2 fits: the lowest, 1 of its 28 rows, takes 86,016 bytes
    layer {
    ^
amphora: note: --set memories.am.size=86080 would do; 85824 would not
--- run ls
--- exit 0
--- stdout
--- run amphora compile SHARE/examples/googlenet.prototxt -t xdnn-v2-28 --set memories.am.size=0
--- exit 1
--- stdout
--- stderr
--set memories.am.size=0: error: a memory of `0` bytes holds nothing
--- run amphora compile SHARE/examples/googlenet.prototxt -t xdnn-v3-96 --set memories.am.size=64KiB
--- exit 3
--- stdout
--- stderr
SHARE/examples/googlenet.prototxt:22:1: error: does not fit: step 1 (stem/pool1) needs 82,368 bytes of am, which has 65,536: 16,832 short
    layer {
    ^
SHARE/examples/googlenet.prototxt:22:1: note: no tile of stem/pool1 fits: the smallest, 1 of its 56 rows, 8 of its 56 columns, reads 41,184 bytes; a buffer for one has 32,736
    layer {
    ^
amphora: note: --set memories.am.size=82368 would do; 82272 would not
--- run amphora compile SHARE/examples/mobilenet-v2.prototxt -t tile-npu --set memories.am.size=64
--- exit 3
--- stdout
--- stderr
SHARE/examples/mobilenet-v2.prototxt:958:1: error: does not fit: step 63 (pool) needs 2,064 bytes of am, which has 64: 2,000 short
    layer {
    ^
SHARE/examples/mobilenet-v2.prototxt:958:1: note: pool (1280x1x1): 1,280 bytes
    layer {
    ^
SHARE/examples/mobilenet-v2.prototxt:940:1: note: head (1280x7x7, 16 of its channels): 784 bytes
    layer {
    ^
SHARE/examples/mobilenet-v2.prototxt:958:1: note: no part of pool fits: the smallest, 16 of its 1280 channels, takes 2,064 bytes with its whole result
    layer {
    ^
amphora: note: --set memories.am.size=2064 would do; 2048 would not
--- run amphora compile SHARE/examples/inception-v3.prototxt -t tile-npu --set memories.am.size=16368
--- exit 3
--- stdout
--- stderr
SHARE/examples/inception-v3.prototxt:1667:1: error: does not fit: step 107 (c1/out) needs 16,384 bytes of am, which has 16,368: 16 short
    layer {
    ^
SHARE/examples/inception-v3.prototxt:1667:1: note: c1/out (2048x8x8, 1 of its rows on their way out): 16,384 bytes
    layer {
    ^
amphora: note: --set memories.am.size=16384 would do; 16368 would not
--- run amphora compile SHARE/examples/squeezenet.prototxt -t stage-npu --set memories.am.size=16KiB
--- exit 3
--- stdout
--- stderr
SHARE/examples/squeezenet.prototxt:24:1: error: does not fit: step 2 (pool1) needs 25,280 bytes of am, which has 7,152 beside 9,232 for weights of fire8/expand3
    layer {
    ^
SHARE/examples/squeezenet.prototxt:15:1: note: conv1 (64x113x113, 3 of its rows): 21,696 bytes
    layer {
    ^
SHARE/examples/squeezenet.prototxt:24:1: note: pool1 (64x56x56, 1 of its rows): 3,584 bytes
    layer {
    ^
SHARE/examples/squeezenet.prototxt:24:1: note: no stripe of pool1 fits: the lowest, 1 of its 56 rows, takes 25,280 bytes
    layer {
    ^
amphora: note: --set memories.am.size=25600 would do; 25584 would not
--- run amphora compile SHARE/examples/squeezenet.prototxt -t vta-pynq --set memories.wgt.size=1KiB
--- exit 3
--- stdout
--- stderr
SHARE/hwspec/targets/vta-pynq.yaml:20:3: error: does not fit: the fewest weights of fire2/expand3 that can be loaded take 2,304 bytes of wgt, which has 1,024
      wgt: {role: weights, size: 256KiB, unit: 256, id: 1, layout: blocks}
      ^
amphora: note: they are those of 16 output channels, 144 bytes each
SHARE/hwspec/targets/vta-pynq.yaml:54:3: note: rows of conv and load_weights that told `weights.tap.first` and `weights.tap.last` would load those of some of its 9 taps
      gemm:
      ^
amphora: note: --set memories.wgt.size=2304 would do
--- run amphora compile SHARE/examples/resnet50.prototxt -t xdnn-v2-28 --set memories.am.size=256KiB
--- exit 0
--- stdout
resnet50 on xdnn-v2-28: 2,192 instructions, 2 layers of the host
...
parts   2 (.1.cmd and so on), each loaded when the one before has ended; xdnn-v2-28 holds 1536 instructions, and loading them is not counted
...
--- stderr
