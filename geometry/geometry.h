/* geometry.h - Graph + HwSpec, one node -> the part of its operand that a part
 * of its result is made from, and what loops over tiles read, take and move.
 *
 * Pure functions: they know no plan. Spans are pixels along an axis (0 rows, 1
 * columns); sizes are bytes where they say so, else elements.
 */
#ifndef GEOMETRY_GEOMETRY_H
#define GEOMETRY_GEOMETRY_H

#include "pack/pack.h"
#include "passes/legal.h"

/* C x H x W of a tensor. */
static inline Volume plan_volume(const Graph *g, TensorId tensor) {
    Volume v = {0};
    shape_chw(&graph_tensor(g, tensor)->shape, &v.c, &v.h, &v.w);
    return v;
}

/* ---- window.c: rows and columns ---- */

typedef struct Rows {
    uint32_t in_row, in_rows, pad_top, pool_pad_top;
} Rows;
Rows rows_needed(const Graph *g, NodeId node, uint32_t row, uint32_t rows);
/* The same along an axis: 0 rows, 1 columns. */
Rows axis_needed(const Graph *g, NodeId node, uint32_t axis, uint32_t at,
                 uint32_t n);
/* For all of the node's result: those that no window reads, too. */
Rows axis_whole(const Graph *g, NodeId node, uint32_t axis);
/* Columns as an instruction is told: for all of them, all. */
Rows columns_needed(const Graph *g, NodeId node, uint32_t col, uint32_t cols);
/* Of a convolution with its pool: how many are in front of the pool. */
uint32_t axis_before_pool(const Graph *g, NodeId node, uint32_t axis,
                          uint32_t at, uint32_t n);
/* Along an axis, parts of the node's result are multiples of this, as is where
 * they begin. */
uint32_t node_quantum(const Graph *g, NodeId node, uint32_t axis);
/* Whether each pixel that a transposed convolution reads makes pixels of its
 * own, as in upsampling. */
bool deconv_spreads(const Node *node);
/* Pixels of the input that hardware tiles of the output read. */
uint64_t tiles_read(const Graph *g, const Node *node, uint32_t tile_w,
                    uint32_t tile_h);
/* Pixels along an axis that a span of the output needs of the input, and of
 * what lies in front of a fused pool. */
void tile_needs(const Graph *g, NodeId node, uint32_t axis, uint32_t at,
                uint32_t n, uint32_t *in, uint32_t *made);
/* Pixels of the input, along an axis, behind `n` pixels of the output. */
uint32_t tile_extent(const Graph *g, const Node *node, uint32_t axis,
                     uint32_t n);

/* ---- products.c ---- */

/* Elements of a row, of all channels. */
uint64_t row_elements(const Graph *g, TensorId tensor);
/* Products that a row of the node's result takes; elements of what has none. */
uint64_t row_work(const Graph *g, const Node *node);
/* Weights of an output channel. */
uint32_t weight_taps(const Graph *g, const Node *node);
/* Weights of an output and an input channel: taps of the kernel, or pixels. */
uint32_t kernel_area(const Graph *g, const Node *node);
/* ... of a row of these. */
uint32_t kernel_width(const Graph *g, const Node *node);
/* Seconds that bytes take from or to backing memory, bursts and latency aside;
 * 0 if nobody knows. */
double bytes_seconds(const HwSpec *spec, double bytes);
/* The memory as a pool; volumes start with a buffer, and aligned, where it has
 * buffers. */
Pool pool_of(const HwMemory *memory);

/* ---- tile_loops.c: loops over tiles of channels, too ---- */

/* A byte of a tile over DDR counts as often as this the cycles that it takes:
 * fewer bytes are worth some time, but not any. */
enum { TILE_BYTE_PRICE = 150 };

/* Hardware tiles of channels, too */
typedef struct Nest {
    uint32_t c, in_c; /* channels of a tile; 0: it has all, and is no nest */
    bool weights_stay;
    uint64_t input[2], weights[2], sums; /* bytes in active memory */
    uint64_t over; /* 0, or the bytes of tiles that are too many */
} Nest;
/* Bytes of the input and of weights that the loops read from outside, and
 * their cycles. */
typedef struct NestCost {
    uint64_t input, weights, cycles;
} NestCost;
/* Of a convolution whose tiles come from backing memory; cycles are 0. */
NestCost nest_reads(const HwSpec *spec, const Graph *g, const Node *node,
                    const Legal *legal, int32_t style, uint32_t tile_h,
                    uint32_t tile_w, const Nest *nest);

#endif
