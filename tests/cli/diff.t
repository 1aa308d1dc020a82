# Two machines side by side: the keys that differ, what networks cost on both,
# and where they part; layouts are shown, as all that is short; a second machine
# that is missing or wrong says so.
--- file wide.yaml
extends: xdnn-v2-28
machine: {name: wide}
memories: {am: {size: 6MiB}}
engines: {conv: {unroll: {out_w: 14}}}
--- run amphora diff xdnn-v2-28 ./wide.yaml SHARE/examples/tiny.prototxt
--- exit 0
--- stdout
a: xdnn-v2-28
b: ./wide.yaml

keys that differ: 3
  machine.name: xdnn-v2-28 -> wide
  memories.am.size: 4MiB -> 6MiB
  engines.conv.unroll.out_w: 28 -> 14

SHARE/examples/tiny.prototxt
  ms                        0.040            0.041     1.03
  cycles                   20,114           20,731     1.03
  AM peak bytes            32,768           32,768     1.00
  DDR bytes                 1,600            1,600     1.00
  weight bytes             24,416           24,416     1.00
  instructions                  9                9     1.00
  host cycles              10,098           10,098     1.00
  where they part most, in us:
    conv1                                 1.2              2.5     2.00
--- run amphora diff xdnn-v2-28 xdnn-v2-28
--- exit 0
--- stdout
a: xdnn-v2-28
b: xdnn-v2-28

keys that differ: 0
--- run amphora diff xdnn-v2-28
--- exit 2
--- stdout
--- run amphora diff xdnn-v2-28 ./wide.yaml SHARE/examples/tiny.prototxt --set memories.am.size=1KiB
--- exit 3
--- stdout
a: xdnn-v2-28
b: ./wide.yaml

keys that differ: 2
  machine.name: xdnn-v2-28 -> wide
  engines.conv.unroll.out_w: 28 -> 14

SHARE/examples/tiny.prototxt
  xdnn-v2-28: does not fit: step 6 (mix) needs 8,192 bytes of am, which has 1,024: 7,168 short
  ./wide.yaml: does not fit: step 6 (mix) needs 8,192 bytes of am, which has 1,024: 7,168 short
--- run amphora diff xdnn-v2-28 ./wide.yaml missing.onnx
--- exit 1
--- run amphora diff xdnn-v2-28 xdnn-v2-56
--- exit 0
--- stdout
...
  layouts.am.axes: [{c: {round: 2}}, h, w/28, {w%28: {round: 32}}] -> [{c: {round: 2}}, h, w/56, {w%56: {round: 64}}]
...
