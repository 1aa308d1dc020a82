/* mode.h - how a node runs; private. */
#ifndef ALLOC_MODE_H
#define ALLOC_MODE_H

#include "plan/plan.h"

typedef enum ModeKind {
    MODE_WHOLE,
    MODE_PLANKS,
    MODE_HARDWARE,
    MODE_GROUP, /* by stripes, with the nodes of its group */
    MODE_AHEAD, /* whole, its input through buffers of the engine */
    MODE_GIVES, /* by slabs, which the node of the next step */
    MODE_TAKES, /* ... uses up: channel_pairs.c */
    MODE_KINDS
} ModeKind;

enum { MAX_OPERANDS = 17 };

/* How a node runs. */
typedef struct Mode {
    ModeKind kind;
    bool streams_in, streams_out;
    uint32_t stays;    /* slabs: operands that are whole all the same: bits */
    bool early;        /* slabs that were tried before planks */
    uint32_t rows;     /* planks: rows of the output */
    uint32_t channels; /* planks: slabs of so many, of all rows; 0: none.
                        * couples: of these */
    uint32_t rank;     /* hardware: which of mode_style's rows */
    int32_t style;
    uint32_t tile_w, tile_h;
    Nest nest;
    Repl repl;          /* of input tiles */
    uint32_t group;     /* in Decisions */
    bool doubled;       /* planks, stripes: two sets of buffers take turns */
} Mode;

static inline bool mode_streams(const Mode *mode, uint32_t k) {
    return mode->streams_in && !(mode->stays >> k & 1);
}

#endif
