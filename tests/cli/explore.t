# Sweeps: what is refused, points that do not fit, marks.
--- run amphora explore SHARE/examples/tiny.prototxt -t xdnn-v3-96 --vary memories.amx.size=1M,2M
--- exit 1
--- stdout
--- stderr
--set memories.amx.size=2MiB: error: nothing is called `memories.amx`; did you mean `am`? there are: am, ddr, inputs, outputs
--- run amphora explore SHARE/examples/tiny.prototxt -t xdnn-v3-96 --vary memories.am.size=5:1:1
--- exit 1
--- stdout
--- stderr
amphora: error: --vary memories.am.size=5:1:1: values are a,b,c or lo:hi:step
--- run amphora explore SHARE/examples/tiny.prototxt --vary replication=off
--- exit 2
--- run amphora explore SHARE/examples/tiny.prototxt -t null --shard 3/2
--- exit 1
--- stdout
--- stderr
amphora: error: --shard takes i/n with 1 <= i <= n, not 3/2
--- run amphora explore SHARE/examples/tiny.prototxt -t xdnn-v3-96 --vary memories.am.size=96,4K,32K,64K
--- exit 0
--- stdout
 point         cycles     AM bytes    DDR bytes
     0              -            -            -  tiny xdnn-v3-96 memories.am.size=96
       does not fit: step 6 (sum) needs 12,288 bytes of am, which has 96: 12,192 short
     1              -            -            -  tiny xdnn-v3-96 memories.am.size=4KiB
       does not fit: step 6 (sum) needs 12,288 bytes of am, which has 4,096: 8,192 short
     2         16,114       24,576        3,040  tiny xdnn-v3-96 memories.am.size=32KiB  [front AM]
     3         16,082       31,392        1,088  tiny xdnn-v3-96 memories.am.size=64KiB  [front AM]  [front DDR]  [enough AM]
4 points, 2 fit
--- stderr
