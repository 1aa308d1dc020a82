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

/* Places `from`.. `to` (of `out`) of a window whose tap lies inside `in`. */
typedef struct Range {
    Val from, to;
} Range;
Range window_range(Code *c, const Window *w, Val tap, uint32_t in,
                   uint32_t out);
/* Where tap `tap` of the window at place `at` lies. */
Val window_place(Code *c, const Window *w, Val at, Val tap);
/* 0 <= at < size */
Val is_inside(Code *c, Val at, uint32_t size);

typedef struct Conv {
    Window w[2];
    uint32_t images, groups;
    Extent in, out; /* of an image */
} Conv;
/* False if shapes, constants and attributes do not fit. */
bool conv_read(const Kernel *k, Conv *v, bool transposed);

/* Convolutions on channel blocks, with packed weights: ops_blocks.c. */
void emit_conv_blocks(const Emit *e, const Conv *v);
void emit_depthwise_blocks(const Emit *e, const Conv *v);

#endif
