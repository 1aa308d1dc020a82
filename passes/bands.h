/* bands.h - the inside of the pass `bands`.
 *
 * A region is a run of nodes in the order of the graph with one tensor that
 * comes in and one that goes out, each of whose results has the rows of its
 * operands at their stride. It runs in bands: some rows of what goes out, from
 * the rows of what comes in that these need, whatever lies between. A band is
 * computed as a volume of its own: rows at its ends are padded where they
 * should not be, so they are made wrong; it is wide enough that nobody needs
 * those, and they are cut off. Columns go as rows do.
 */
#ifndef PASSES_BANDS_H
#define PASSES_BANDS_H

#include "passes/insert.h"
#include "passes/passes_int.h"

enum {
    BANDS_MOST = 32,       /* of a region */
    BANDS_MOST_NODES = 64, /* in a region */
};

typedef struct Region {
    uint32_t first, last; /* nodes */
    TensorId in, out;
    int axis;             /* 0: rows, 1: columns */
    uint32_t step;        /* bands of `in` begin at its multiples */
    uint32_t each, bands; /* rows of `out`; so many times */
    uint64_t cost;
} Region;

/* Rows of a tensor, in a band: those that are needed, and those it has. */
typedef struct Rows {
    uint32_t need, need_end, begin, end;
    uint32_t over, under; /* rows of what comes in for one of its: over/under */
} Rows;

typedef struct Bands {
    Graph *g;
    const PassContext *context;
    const HwMemory *memory;
    const HwEngine *engine; /* that convolves */
    uint32_t n;             /* nodes before the pass */
    uint32_t *last;         /* by tensor: its last reader; NONE: an output */
    uint32_t *pool;         /* by tensor: the pool in its convolution; NONE */
    bool *hot;              /* by node: it needs bands */
    Rows *rows;             /* by tensor: of the band in hand */
} Bands;

/* ---- bands_rows.c ---- */

/* Whether the node makes rows from rows: sets what it reads for row `y`. */
bool bands_windows(const Graph *g, const Node *node, int axis);
/* Strides of the region's tensors into `b->rows`, and `r->step`; false if its
 * paths do not agree. */
bool bands_steps(const Bands *b, Region *r);
/* Rows of all its tensors for rows [begin, end) of what goes out. False if some
 * node would not get what it needs, or no engine takes the extents. */
bool bands_rows(const Bands *b, const Region *r, uint32_t begin, uint32_t end);
/* Most bytes of active memory at one of its nodes, by `b->rows`. */
uint64_t bands_peak(const Bands *b, const Region *r);
/* Bytes of active memory while the node runs whole. */
uint64_t bands_whole(const Bands *b, const Node *node);

/* ---- bands_build.c ---- */

void bands_build(Bands *b, Insertions *insertions, const Region *r);

#endif
