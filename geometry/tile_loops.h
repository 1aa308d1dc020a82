/* tile_loops.h - a convolution as loops over tiles of rows, columns, output and
 * input channels: sizes, places, bytes and cycles of the tiles. */
#ifndef GEOMETRY_TILE_LOOPS_H
#define GEOMETRY_TILE_LOOPS_H

#include "geometry/geometry.h"

/* Tiles of an axis one behind the other that are alike: pixels of the input and
 * of the output. */
typedef struct CutRun {
    uint32_t in, out, n;
} CutRun;

/* One axis of the output cut into tiles. */
typedef struct Cut {
    uint32_t tile, n;
    uint32_t most; /* pixels of the input behind the largest tile */
    uint64_t sum;  /* and behind all of them together */
    uint32_t n_runs;
    const CutRun *run;
} Cut;

enum {
    NEST_CUTS = 96, /* of an axis, at most */
    NEST_TILES = 1 << 16,
    NEST_MEMO_BITS = 12
};

/* Cycles of a tile, by what it is: tile_loops_cycles.c. */
typedef struct NestMemo {
    uint64_t key, cycles;
} NestMemo;

typedef struct Loops {
    const HwSpec *spec;
    const HwEngine *engine;
    const HwMemory *from, *to; /* NULL: operands stay in active memory */
    const ConvAttr *conv;
    const HwTileStyle *style;
    Volume in, out;
    uint64_t taps, element, align;
    double wire;        /* cycles that a byte over DDR takes */
    double byte_cycles; /* that it counts as much as */
    bool bytes_alone;   /* it counts more than any */
    bool by_channel;    /* depthwise: a tile has as many input channels */
    NestMemo *memo; /* 1 << NEST_MEMO_BITS of them, of these loops; or NULL */
} Loops;

/* Sizes of tiles, and how many there are. */
typedef struct Sizes {
    const Cut *rows, *cols;
    uint32_t c, in_c;
} Sizes;

/* ---- tile_loops.c ---- */

/* `input`: the memory that the input comes from. */
Loops loops_make(const HwSpec *spec, const Graph *g, const Node *node,
                 const Legal *legal, const HwTileStyle *style, int32_t input);
/* What loops over tiles of that size cost; `timed`: cycles, too. */
NestCost loops_cost(const Loops *l, uint32_t tile_h, uint32_t tile_w,
                    const Nest *nest, bool timed);

/* ---- tile_loops_bytes.c ---- */

Cut nest_cut(Arena *arena, const ConvAttr *conv, uint32_t axis, uint32_t in,
             uint32_t out, uint32_t tile);
/* The sizes into which `size` falls in 1, 2, 3... nearly equal pieces, the
 * largest first, then 1 in any case; how many. */
uint32_t nest_sizes(uint32_t size, uint32_t tile[NEST_CUTS]);
/* How many tiles there are. */
uint64_t nest_tiles(const Loops *l, const Sizes *s);
/* Where they lie; returns the byte behind them. */
uint64_t nest_lay(const Loops *l, const Sizes *s, Nest *nest);
/* Bytes of a tile of sums, of all weights. */
uint64_t nest_sums(const Loops *l, const Sizes *s);
uint64_t nest_weights(const Loops *l);
/* Pixels of all input channels that are read, and times that all weights are.
 */
uint64_t nest_input_reads(const Loops *l, const Sizes *s, bool stay);
uint64_t nest_weight_reads(const Loops *l, const Sizes *s, bool stay);
/* Bytes that come from outside. */
uint64_t nest_moved(const Loops *l, const Sizes *s, bool stay);

/* tile_loops_cycles.c: cycles as the simulator counts them, ports and slopes
 * aside. `stay`: weights do, not pixels. */
uint64_t nest_cycles(const Loops *l, const Sizes *s, bool stay);
/* No more than these, and soon found; for all sizes. */
uint64_t nest_least_cycles(const Loops *l, const Sizes *s);
uint64_t nest_ideal_cycles(const Loops *l);
/* Cycles of the engine alone with all tiles of so many channels. */
uint64_t nest_busy_cycles(const Loops *l, uint32_t c, uint32_t in_c);

#endif
