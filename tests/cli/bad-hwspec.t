# Mistakes in a machine's description: all at once, each at its place. Of a list
# with a mistake the rest is taken: what hangs on that is no mistake as well.
--- file odd.yaml
extends: xdnn-v2-28
memories:
  am: {size: 4QiB, alignment: 64}
engines:
  conv:
    limits: {kernel.w: 14..1}
    colour: red
--- file twice.yaml
extends: xdnn-v2-28
machine: {name: a, clock: 10MHz}
memories:
  am: {size: 1MiB, size: 2MiB, align: 3xyz}
--- file unclear.yaml
extends: stage-npu
engines:
  vector:
    runs: [pool_max, avgpool, add, scale]
    activations: {add: [relu], pool_avg: [relu]}
fields: {wt: weights.adr}
--- run amphora check odd.yaml
--- exit 1
--- stdout
--- stderr
odd.yaml:3:14: error: `4QiB` is not a whole number of bytes (4096, 512KiB, 4.5MiB, 1GB)
      am: {size: 4QiB, alignment: 64}
                 ^
odd.yaml:6:24: error: the range `14..1` is empty: 14 is above 1
        limits: {kernel.w: 14..1}
                           ^
odd.yaml:3:20: error: unknown key `alignment`; did you mean `align`?
      am: {size: 4QiB, alignment: 64}
                       ^
odd.yaml:7:5: error: unknown key `colour`
        colour: red
        ^
--- run amphora check twice.yaml
--- exit 1
--- stdout
--- stderr
twice.yaml:4:20: error: the key `size` is there twice
      am: {size: 1MiB, size: 2MiB, align: 3xyz}
                       ^
twice.yaml:4:8: note: the first is here
      am: {size: 1MiB, size: 2MiB, align: 3xyz}
           ^
twice.yaml:4:39: error: `3xyz` is not a whole number of bytes (4096, 512KiB, 4.5MiB, 1GB)
      am: {size: 1MiB, size: 2MiB, align: 3xyz}
                                          ^
--- run amphora check math-engine --set memories.am.sise=1MiB
--- exit 1
--- stdout
--- stderr
--set memories.am.sise=1MiB: error: nothing is called `memories.am.sise`; did you mean `size`? there are: role, size, buffers, unit, align, partitions, ports, layout; also base, id, bandwidth, latency, row_setup, burst, cost, load, piece, channel
--- run amphora check unclear.yaml
--- exit 1
--- stdout
--- stderr
unclear.yaml:4:22: error: `avgpool` is not one of: conv, conv_grouped, conv_depthwise, deconv, conv_pool_max, conv_pool_avg, pool_max, pool_avg, add, mul, add_channels, mul_channels, max, scale, act, upsample, gather, fc, softmax, layernorm, rmsnorm, group_norm, matmul_channels, matmul_pixels, attention, add_constants, mul_constants, gather_pixels, transpose, reshape, reduce_mean, reduce_sum, reduce_max, layer, concat, load, store, load_weights, load_bias, host
        runs: [pool_max, avgpool, add, scale]
                         ^
unclear.yaml:6:14: error: `weights.adr` is no meaning of a field; did you mean `weights.addr`? docs/hwspec.md has all
    fields: {wt: weights.adr}
                 ^
