# Files of a machine: text, bytes, text; damage, and what rows say of it.
--- file net.txt
kmodel main.bytes=64 inputs=1 outputs=1
  input.memory[]= am
  input.type[]= u8
  input.start[]= 0
  input.size[]= 256
  input.n[]= 1
  input.c[]= 1
  input.h[]= 4
  input.w[]= 4
  output.memory[]= main
  output.type[]= f32
  output.start[]= 0
  output.size[]= 64
KPU in.addr=0 out.addr=4 in.w=4 in.h=4 in.c=1 out.c=2 kernel.w=1 pool=max pool.kernel.w=2 zero.w=-3 zero.x=-100 out2.on=1 bn.gap=0 act.gap=0 weights.gap=0
  bn.mul[]= 300 -200
  bn.add[]= 5 -6
  bn.shift[]= 8 15
  act.start[]= -34359738368 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
  act.mul[]= 0 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1
  act.shift[]= 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
  act.add[]= 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
  weights[]= x0102
DEQUANTISE in.memory=main in.type=u8 in.start=0 in.size=8 out.memory=main out.type=f32 out.start=8 out.size=32 code.zero=3 code.scale=1.5
CONCAT out.memory=main out.type=u8 out.start=0 out.size=8 inner=2 outer=1 parts=1
  part.memory[]= main
  part.type[]= u8
  part.start[]= 8
  part.size[]= 8
  part.extent[]= 1
--- run amphora asm net.txt -t k210 -o net.kmodel && amphora disasm net.kmodel -t k210 >again.txt && amphora asm again.txt -t k210 -o again.kmodel && cmp net.kmodel again.kmodel && cat again.txt
--- exit 0
--- stdout
wrote   net.kmodel: 3 nodes, 488 bytes
wrote   again.kmodel: 3 nodes, 488 bytes
# kmodel, a file of k210: amphora asm makes its bytes
kmodel main.bytes=64 inputs=1 outputs=1
  input.memory[]= am
  input.type[]= u8
  input.start[]= 0
  input.size[]= 256
  input.n[]= 1
  input.c[]= 1
  input.h[]= 4
  input.w[]= 4
  output.memory[]= main
  output.type[]= f32
  output.start[]= 0
  output.size[]= 64
KPU in.addr=0 out.addr=4 in.c=1 out.c=2 kernel.w=1 in.w=4 in.h=4 pool=max
    pool.kernel.w=2 bn.gap=0 weights.gap=0 act.gap=0 zero.w=-3 zero.x=-100
    out2.on=1
  bn.mul[]= 300 -200
  bn.add[]= 5 -6
  bn.shift[]= 8 15
  act.shift[]= x00000000000000000000000000000000
  act.mul[]= 0 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1
  act.start[]= -34359738368 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
  act.add[]= x00000000000000000000000000000000
  weights[]= 1 2
DEQUANTISE in.memory=main in.type=u8 in.start=0 in.size=8 out.memory=main
    out.type=f32 out.start=8 out.size=32 code.zero=3 code.scale=1.5
CONCAT out.memory=main out.type=u8 out.start=0 out.size=8 inner=2 outer=1
    parts=1
  part.memory[]= main
  part.type[]= u8
  part.start[]= 8
  part.size[]= 8
  part.extent[]= 1
--- stderr
--- run printf '\003' | dd of=net.kmodel bs=1 seek=168 conv=notrunc status=none; amphora disasm net.kmodel -t k210
--- exit 1
--- stdout
--- stderr
net.kmodel: byte 168: error: kernel_type is 3: kernels has 0, 1
net.kmodel: byte 200: error: wb_channel_switch_addr is 2, 4 expected: out.step.c
net.kmodel: byte 226: error: channel_byte_num is 3, (4 * 4 - 1) % 65536 = 15 expected: (out.w * out.h - 1) % 65536
net.kmodel: byte 228: error: dma_total_byte is 7, 4 * 4 * 2 - 1 = 31 expected: out.w * out.h * out.c - 1
--- run head -c 300 again.kmodel >cut.kmodel; amphora disasm cut.kmodel -t k210
--- exit 1
--- stdout
--- stderr
cut.kmodel: byte 112: error: node 0 has 288 bytes, the file has 195 more
--- run sed 's/out.c=2/out.c=3 kernal.w=1/' net.txt >bad.txt; amphora asm bad.txt -t k210
--- exit 1
--- stdout
--- stderr
bad.txt:14:55: error: KPU has no kernal.w: kernel.w?
    KPU in.addr=0 out.addr=4 in.w=4 in.h=4 in.c=1 out.c=3 kernal.w=1 kernel.w=1 pool=max pool.kernel.w=2 zero.w=-3 zero.x=-100 out2.on=1 bn.gap=0 act.gap=0 weights.gap=0
                                                          ^
--- run sed 's/out.c=2/out.c=3/' net.txt >bad.txt; amphora asm bad.txt -t k210
--- exit 1
--- stdout
--- stderr
bad.txt:14:1: error: KPU: bn.mul has 2 values, 3 expected
    KPU in.addr=0 out.addr=4 in.w=4 in.h=4 in.c=1 out.c=3 kernel.w=1 pool=max pool.kernel.w=2 zero.w=-3 zero.x=-100 out2.on=1 bn.gap=0 act.gap=0 weights.gap=0
    ^
bad.txt:14:1: error: KPU: bn.add has 2 values, 3 expected
    KPU in.addr=0 out.addr=4 in.w=4 in.h=4 in.c=1 out.c=3 kernel.w=1 pool=max pool.kernel.w=2 zero.w=-3 zero.x=-100 out2.on=1 bn.gap=0 act.gap=0 weights.gap=0
    ^
bad.txt:14:1: error: KPU: bn.shift has 2 values, 3 expected
    KPU in.addr=0 out.addr=4 in.w=4 in.h=4 in.c=1 out.c=3 kernel.w=1 pool=max pool.kernel.w=2 zero.w=-3 zero.x=-100 out2.on=1 bn.gap=0 act.gap=0 weights.gap=0
    ^
bad.txt:14:1: error: KPU: weights has 2 values, 3 expected
    KPU in.addr=0 out.addr=4 in.w=4 in.h=4 in.c=1 out.c=3 kernel.w=1 pool=max pool.kernel.w=2 zero.w=-3 zero.x=-100 out2.on=1 bn.gap=0 act.gap=0 weights.gap=0
    ^
--- run amphora check k210 --explain | grep -A 10 '^KPU'
--- exit 0
--- stdout
KPU: 51 fields: 33 read, 13 derived, 5 constant
  u32                              read from out2.memory; out2.memory: 0..2
  u32                              read from out2.type; out2.type: 0..1
  u32                              read from out2.start; out2.start: 0..4294967295
  u32                              read from out2.size; out2.size: 0..4294967295
  u32                              read from batch; batch: 1..65535
  u32                              is 0
  w0.3                             read from depthwise; depthwise: 0..1
  w1.0..14    image_src_addr       read from in.addr; in.addr: 0..32767
  w1.32..46   image_dst_addr       read from out.addr; out.addr: 0..32767
  w2.0..9     i_ch_num             read from in.c - 1; in.c: 1..1024
--- stderr
--- run amphora compile SHARE/examples/tiny.prototxt -t SHARE/tests/hwspec/data/slice.yaml
--- exit 1
--- stdout
--- stderr
SHARE/tests/hwspec/data/slice.yaml:4:1: error: slice: a file needs a container, and memories of the roles active, backing and constants
    machine: {name: slice, clock: 100MHz, element: 1}
    ^
