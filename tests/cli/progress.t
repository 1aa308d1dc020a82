# --progress tells of each size that is searched, in lines that are the same
# everywhere; a run that is not watched is silent.
--- file net.prototxt
input: "data" input_dim: 1 input_dim: 16 input_dim: 64 input_dim: 64
layer { name: "a" type: "Convolution" bottom: "data" top: "a"
  convolution_param { num_output: 16 kernel_size: 3 pad: 1 } }
layer { name: "b" type: "Convolution" bottom: "a" top: "b"
  convolution_param { num_output: 16 kernel_size: 3 pad: 1 } }
--- run amphora compile net.prototxt -t xdnn-v2-28 --set memories.am.size=96KiB --progress
--- exit 0
--- stdout
net on xdnn-v2-28: <ms> instructions, 0 layers of the host
...
--- stderr
<ms> configurations, <ms> of 3,600,000 steps: best <ms> cycles, <ms> bytes
<ms> configurations, <ms> of 3,600,000 steps: best <ms> cycles, <ms> bytes
...
--- run amphora compile net.prototxt -t xdnn-v2-28 --set memories.am.size=96KiB --effort 3
--- exit 0
--- stdout
net on xdnn-v2-28: <ms> instructions, 0 layers of the host
...
--- stderr
