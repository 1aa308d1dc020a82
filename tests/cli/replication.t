# Ways to store a volume, by a file; what cannot be.
--- file net.prototxt
name: "net"
layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 dim: 64 dim: 8 dim: 8 } } }
layer { name: "a" type: "Convolution" bottom: "x" top: "a" convolution_param { num_output: 64 kernel_size: 1 } }
layer { name: "b" type: "Convolution" bottom: "a" top: "b" convolution_param { num_output: 64 kernel_size: 3 pad: 1 } }
layer { name: "c" type: "Eltwise" bottom: "b" bottom: "b" top: "c" }
--- run printf 'a\t0\t2\t2\t48\n' > two; amphora compile net.prototxt -t xdnn-v3-96 --replication two > /dev/null && grep -o 'XNConv b .* 64 1 1 . . . [0-9]*' net.cmd
--- exit 0
--- stdout
XNConv b 3 3 1 1 1 1 1 1 16 26 2 0 0 1 0x0 8 8 64 0x80 8 8 64 1 1 0 2 2 48
--- run amphora verify net.prototxt -t xdnn-v3-96 --replication two > /dev/null && echo verified
--- exit 0
--- stdout
verified
--- run printf 'a\t0\t1\t4\t24\nb\t0\t2\t3\t32\nd\t0\t1\t1\t1\na 1\n' > bad; amphora compile net.prototxt -t xdnn-v3-96 --replication bad
--- exit 1
--- stdout
--- stderr
bad:1:1: error: xdnn-v3-96 has no way 0 1 4 24 for 64 channels; there are:
bad:1:1: note: 1 0 0 0
bad:1:1: note: 0 2 2 48
bad:1:1: note: 0 2 3 32
bad:2:1: error: the output of b cannot be replicated: something else than convolutions and pools reads it
bad:3:1: error: no layer is called d
bad:4:1: error: a line is: layer, full sections, replicated ones, copies, width
--- run amphora compile net.prototxt -t xdnn-v3-96 --replication most
--- exit 1
--- stdout
--- stderr
amphora: error: --replication takes off, safe, best or a file, not most
--- run amphora verify net.prototxt -t xdnn-v3-96 --replication best > /dev/null && echo verified
--- exit 0
--- stdout
verified
--- file scaled.prototxt
name: "scaled"
layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 dim: 3 dim: 32 dim: 32 } } }
layer { name: "s" type: "Scale" bottom: "x" top: "s" scale_param { bias_term: true } }
layer { name: "a" type: "Convolution" bottom: "s" top: "a" convolution_param { num_output: 32 kernel_size: 3 stride: 2 pad: 1 } }
--- run amphora verify scaled.prototxt -t xdnn-v3-96 --set memories.am.size=150KiB > /dev/null && echo in place, without copies
--- exit 0
--- stdout
in place, without copies
