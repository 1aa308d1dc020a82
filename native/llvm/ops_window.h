/* ops_window.h - windows that slide over volumes. */
#ifndef NATIVE_LLVM_OPS_WINDOW_H
#define NATIVE_LLVM_OPS_WINDOW_H

#include "native/llvm/ops.h"

enum { ROWS, COLS }; /* index of an axis */

/* One axis of a window. */
typedef struct Window {
    uint32_t kernel, stride, dilation, pad, pad_end;
} Window;

/* Names of the attributes of a window. Pools have no dilation: that name is
 * never found. */
typedef struct WindowNames {
    const char *kernel, *stride, *pad, *pad_end, *dilation;
} WindowNames;
#define window_plain                                                           \
    ((WindowNames){"kernel", "stride", "pad", "pad_end", "dilation"})
#define window_pool                                                            \
    ((WindowNames){"pool_kernel", "pool_stride", "pool_pad", "pool_pad_end",   \
                   "pool_dilation"})

void window_read(const Kernel *k, const WindowNames *names, Window out[2]);

/* Places `from`.. `to` (of `out`) of a window whose tap lies inside `in`. */
typedef struct Range {
    Val from, to;
} Range;
Range window_range(Code *c, const Window *w, Val tap, uint32_t in,
                   uint32_t out);
/* Taps that lie inside `in` of the window at place `at`. */
Range window_taps(Code *c, const Window *w, Val at, uint32_t in);
/* Where tap `tap` of the window at place `at` lies. */
Val window_place(Code *c, const Window *w, Val at, Val tap);
/* Of a transposed convolution: the element of `in` whose tap makes the result
 * at place `at`, and whether there is one. */
typedef struct Source {
    Val is, at;
} Source;
Source window_source(Code *c, const Window *w, Val at, Val tap, uint32_t in);
/* 0 <= at < size */
Val is_inside(Code *c, Val at, uint32_t size);

typedef struct Conv {
    Window w[2];
    uint32_t images, groups;
    Extent in, out; /* of an image */
} Conv;
/* False if shapes, constants and attributes do not fit. */
bool conv_read(const Kernel *k, Conv *v, bool transposed);

/* One channel of the output, of one image. */
typedef struct Channel {
    Val image, in_first; /* the input's first channel of the group, in all */
    Val out;             /* in the image */
    Val out_all;         /* in all images */
    Val group, member;   /* out = group * members + member */
} Channel;

typedef struct ConvLoops {
    Loop image, group, member;
    Channel at;
} ConvLoops;
/* Loops over all channels of the output. */
void conv_open(const Emit *e, const Conv *v, ConvLoops *loops);
void conv_close(const Emit *e, ConvLoops *loops);

/* ---- pools ---- */

typedef struct Pool {
    Window w[2];
    bool average, count_pad;
    Extent in, out;
} Pool;
/* fused: of a pool behind a convolution, whose results are `in`. */
void pool_read(const Kernel *k, bool fused, const Extent *in, Pool *p);
bool pool_fits(const Pool *p);

/* What a window covers along one axis: elements, and with the padding. */
typedef struct Cover {
    Val from, to, padded;
} Cover;
Cover window_cover(Code *c, const Window *w, Val at, uint32_t in);
/* Elements by which a sum is divided: at least 1. An index. */
Val pool_divisor(Code *c, const Pool *p, const Cover at[2]);

/* Element (row, column) of the pool's input; `context` is the maker's. */
typedef Val PoolElement(const Emit *e, const void *context, Val row,
                        Val column);
Val pool_value(const Emit *e, const Pool *p, Val row, Val column,
               PoolElement *element, const void *context);

/* A convolution and a pool behind it, at one of its channels. */
typedef struct ConvPool {
    Conv v;
    Pool p;
    Channel at;
} ConvPool;
bool conv_pool_read(const Kernel *k, ConvPool *both);
/* All results, each by itself; `result` is given `both`, at its channel. */
void emit_results(const Emit *e, ConvPool *both, PoolElement *result);

/* batch x n numbers by a matrix of m x n. */
typedef struct Product {
    uint64_t batch, n, m;
} Product;
bool product_read(const Kernel *k, Product *p);

OpCheck check_conv, check_pool, check_conv_pool, check_fc;
OpEmit emit_fc;
/* Of a channel; 0 where the kernel has none. */
Val emit_bias(const Emit *e, Val channel);

/* Convolutions on channel blocks, with packed weights, of floats and of codes:
 * ops_blocks.c, ops_quads.c. */
void emit_conv_blocks(const Emit *e, const Conv *v);
void emit_depthwise_blocks(const Emit *e, const Conv *v);
void emit_conv_quads(const Emit *e, const Conv *v);
void emit_depthwise_codes(const Emit *e, const Conv *v);

#endif
