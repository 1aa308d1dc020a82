/* nest.h - loops over tiles of channels, too, as nest.c and nest_time.c see
 * them; private to alloc. */
#ifndef ALLOC_NEST_H
#define ALLOC_NEST_H

#include "alloc/work.h"

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

typedef struct Loops {
    const HwSpec *spec;
    const HwEngine *engine;
    const HwMemory *from, *to; /* NULL: operands stay in active memory */
    const ConvAttr *conv;
    const HwTileStyle *style;
    Volume in, out;
    uint64_t taps, element, align;
    double byte_cycles; /* that a byte over DDR counts as much as */
    bool bytes_alone;   /* it counts more than any */
    bool by_channel;    /* depthwise: a tile has as many input channels */
} Loops;

/* Sizes of tiles, and how many there are. */
typedef struct Sizes {
    const Cut *rows, *cols;
    uint32_t c, in_c;
} Sizes;

/* nest_time.c: cycles as the simulator counts them, ports and slopes aside.
 * `stay`: weights do, not pixels. */
uint64_t nest_cycles(const Loops *l, const Sizes *s, bool stay);
/* No more than these, and soon found; for all sizes. */
uint64_t nest_least_cycles(const Loops *l, const Sizes *s);
uint64_t nest_ideal_cycles(const Loops *l);

#endif
