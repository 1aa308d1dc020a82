/* mode.h - how a node runs; private. */
#ifndef ALLOC_MODE_H
#define ALLOC_MODE_H

#include "plan/plan.h"

typedef enum ModeKind {
    MODE_WHOLE,
    MODE_ROW_TILES,
    MODE_HARDWARE,
    MODE_CASCADE,  /* by stripes, with the nodes of its cascade */
    MODE_AHEAD,    /* whole, its input through buffers of the engine */
    MODE_PRODUCER, /* by channel tiles, which the node of the next step */
    MODE_CONSUMER, /* ... uses up: channel_pairs.c */
    MODE_KINDS
} ModeKind;

enum { MAX_OPERANDS = 17 };

/* How a node runs. */
typedef struct Mode {
    ModeKind kind;
    bool streams_in, streams_out;
    uint32_t
        stays;  /* channel tiles: operands that are whole all the same: bits */
    bool early; /* channel tiles that were tried before row tiles */
    uint32_t rows;     /* row tiles: rows of the output */
    uint32_t channels; /* row tiles: channel tiles of so many, of all rows; 0:
                        * none. fused pairs: of these */
    uint32_t cols;     /* row tiles: boxes of so many columns, of `rows` rows
                        * and `channels` channels; 0: none */
    uint32_t in_channels; /* boxes: input channels that are added up at a time;
                           * 0: all */
    bool channels_outer;  /* boxes: all of some channels, then the next ones */
    uint32_t rank;        /* hardware: which of mode_style's rows */
    int32_t style;
    uint32_t tile_w, tile_h;
    Nest nest;
    Repl repl;        /* of input tiles */
    uint32_t cascade; /* in Decisions */
    bool doubled;     /* row tiles, stripes: two sets of buffers take turns */
} Mode;

static inline bool mode_streams(const Mode *mode, uint32_t k) {
    return mode->streams_in && !(mode->stays >> k & 1);
}

#endif
