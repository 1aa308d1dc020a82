# What no layer of a machine of lanes computes at the end is left to a processor by --outputs.
--- run amphora quantise SHARE/examples/micro/resnet8.prototxt --calibrate SHARE/examples/small/samples.npy --mean 128 --scale 0.0078125 -t max78000 --repair none -o q
--- exit 0
--- stdout
...
--- run amphora compile q/resnet8.json -t max78000 --set lanes.average=half_away --emit yaml -o out
--- exit 1
--- stderr
SHARE/examples/micro/resnet8.prototxt:180:1: error: layer "probability" (softmax): no layer of this machine: only convolutions, inner products, pools, sums, concats and ReLU; --outputs classes leaves it to a processor
--- run amphora compile q/resnet8.json -t max78000 --set lanes.average=half_away --outputs classes --emit yaml -o out
--- exit 0
--- stdout
...
wrote   out/resnet8.yaml, layers.json, weights.npy, input.npy: 13 layers
