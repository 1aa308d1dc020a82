/* tensor_history.h - what a plan does with each tensor, for those who tell it.
 */
#ifndef PLAN_REPORT_TENSOR_HISTORY_H
#define PLAN_REPORT_TENSOR_HISTORY_H

#include "base/vec.h"
#include "plan/plan.h"

/* How much of a tensor moves between active memory and another one. */
typedef struct Moved {
    uint64_t elements;
    bool cut_c, cut_h, cut_w; /* some move lacks channels, rows, columns */
} Moved;

/* It is whole in active memory in steps [first, end). */
typedef struct Abode {
    uint32_t first, end;
    uint32_t kept;  /* channels that have been there since the one before: */
    bool kept_last; /* the last ones, not the first */
    uint32_t loaded[2]; /* channels from and to which any came then */
    uint32_t placement; /* one of its place */
} Abode;

/* Steps [first, end) that take turns, part by part. */
typedef struct Together {
    uint32_t first, end;
    bool rolls;
    bool slabs; /* one step, by channels */
} Together;

typedef struct Story {
    VEC(Abode) abode;
    VEC(Together) part;        /* where no more than a part of it is there */
    uint32_t made, read, used; /* steps: the first that makes it, the first and
                                * the last that read it; NONE */
    uint64_t bytes;            /* whole, in active memory; 0: it never is */
    uint32_t rows;             /* most rows of a part, */
    uint32_t slice;         /* or made and read at a time where it is whole; 0:
                             * all */
    uint32_t channels;      /* most channels of a slab, or 0 */
    uint32_t ring;          /* rows of the ring that it passes through, */
    uint64_t line;          /* or pixels of the line buffer; else 0 */
    uint64_t again;         /* rows that are computed twice */
    Moved *loaded, *stored; /* by memory; NULL: nothing */
    bool tiled;             /* read or written by tiles of the machine, */
    uint64_t fetched;       /* which read so many bytes of it */
    const Action *tile;     /* that makes it so */
    NodeId host;            /* of the host, the first that reads it; NO_NODE */
    uint32_t host_memory;   /* from there */
    bool by_host;           /* made */
    TensorId over;          /* whose place it takes; NO_TENSOR */
    TensorId inside;        /* lies in the volume of this concat, */
    uint32_t channel;       /* from here on */
    bool placed;
} Story;

/* By tensor. */
Story *plan_stories(Arena *arena, const Plan *plan);

#endif
