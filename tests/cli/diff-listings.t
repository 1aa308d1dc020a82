# Two listings of one network side by side: in less memory the volumes between
# the layers go out and come back.
--- file net.prototxt
name: "net"
input: "data"
input_shape { dim: 1 dim: 16 dim: 64 dim: 64 }
layer { name: "a" type: "Convolution" bottom: "data" top: "a"
  convolution_param { num_output: 32 kernel_size: 3 pad: 1 } }
layer { name: "b" type: "Convolution" bottom: "a" top: "b"
  convolution_param { num_output: 32 kernel_size: 3 pad: 1 } }
layer { name: "c" type: "Eltwise" bottom: "a" bottom: "b" top: "c" }
--- run amphora compile net.prototxt -t xdnn-v2-28 --set memories.am.size=2MiB -o roomy
--- exit 0
--- stdout
...
--- stderr
--- run amphora compile net.prototxt -t xdnn-v2-28 --set memories.am.size=256KiB -o small
--- exit 0
--- stdout
...
--- stderr
--- run amphora diff roomy/net.cmd small/net.cmd -t xdnn-v2-28
--- exit 0
--- stdout
a: roomy/net.cmd
b: small/net.cmd

  ms                        0.300            0.296     0.99
  cycles                  150,028          147,793     0.99
  AM peak bytes           786,432          245,952     0.31
  DDR bytes               393,216          450,560     1.15
  weight bytes             27,648          221,184     8.00
  instructions                  5               48     9.60
  host cycles                   0                0     1.00
  where they part most, in us:
    a                                    79.0            113.9     1.44
    load                                 15.2             21.8     1.44
    c                                    17.6             17.6     1.00
    store                                30.3             30.4     1.00
    b                                   158.0            158.0     1.00
  where they part most, in bytes:
    load                              131,072          188,416     1.44
--- stderr
--- run amphora diff roomy/net.cmd small/net.cmd small/net.cmd -t xdnn-v2-28
--- exit 2
--- stdout
--- stderr
amphora: error: diff: with --target, two listings are needed
--- run amphora diff roomy/net.cmd gone.cmd -t xdnn-v2-28
--- exit 1
--- stdout
--- stderr
gone.cmd: error: cannot open: No such file or directory
