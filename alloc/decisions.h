/* decisions.h - what is chosen while one plan is made; private.
 *
 * A *alias class* is a set of tensors that share one buffer: one tensor, a
 * chain of results in place, or a concat with its members. Its *uses* are the
 * steps at which some node needs it; between two uses it stays in active
 * memory, or is evicted. A *residency interval* is a run of uses over which it
 * stays. A node's *mode* is how it runs: whole, by tiles, or in a *cascade* of
 * nodes that run depth first, by stripes. A *problem* is what planners are
 * asked: a *buffer* for each residency interval, row tile, tile and bounce
 * buffer; its *owner* tells which.
 *
 * Time has two phases a step: 2 s while nodes run, 2 s + 1 behind them.
 */
#ifndef ALLOC_DECISIONS_H
#define ALLOC_DECISIONS_H

#include "alloc/config.h"
#include "alloc/facts.h"

typedef struct Use {
    uint32_t step;
    uint32_t memories; /* bit (1 << memory): what its engines can reach */
    bool whole;        /* some node needs it resident */
    bool stream;       /* some node reads or writes it by tiles */
    bool by_rows;      /* these read rows, which an engine can copy from what
                        * is resident: the alias class may stay */
    uint32_t behind;   /* concat: channels up to the last that is touched later
                        * than this */
    bool lands;        /* some node writes a member of a concat by parts, which
                        * are loaded into it behind the step */
    bool spilled;      /* evicted between this touch and the next whole one, */
    uint32_t retained; /* but for channels [0, keeps) of its volume, or as many
                        * at its end: Alias class.retains_end */
} Use;

typedef struct AliasClass {
    TensorId root; /* the tensor whose volume encloses the others */
    bool dead;     /* dissolved into other alias classes */
    bool concat;
    bool kept;         /* a state that stays from call to call */
    bool as_filled;    /* concat: takes only what its members so far do, in
                        * buffers that move together, one behind the other; */
    bool as_needed;    /* ... and only up to the last that is needed later */
    bool retains_end;  /* of its volume the last channels stay over gaps */
    uint32_t complete; /* concat: step at which all members are written */
    uint32_t n_tensors, n_uses;
    TensorId *tensor; /* root first */
    Use *use;
    uint64_t bytes[PACK_MAX_POOLS]; /* 0: does not fit there */
} AliasClass;

/* Steps [first, end) that run depth first: all of them for each stripe of
 * `rows` rows of the last result. */
typedef struct Cascade {
    uint32_t first, end, rows;
    bool rolls; /* by rolling_rows.c: nothing twice; `rows` are then those of
                 * the highest result at a time */
    bool stays; /* rolls: what others need stays in active memory */
    bool ahead; /* rolls: what it loads comes one run of its last node
                 * before it is needed */
    bool late;  /* rolls: what it stores leaves one run later */
    bool full;  /* rolls: nodes add as many rows as their engines make at once,
                 * or a multiple of that */
    uint32_t
        cols; /* rolls: by rolling_columns.c, with so many columns of the widest
               * result at a time, 1: as few as can be; 0: by rings */
    uint32_t strips;   /* cols: so many strips of columns, one behind the other,
                        * by   line_strips.c; 0: one */
    uint32_t n_shared; /* by stripes: what is loaded for several nodes */
    const TensorId *shared;
} Cascade;
static inline uint32_t cascade_length(const Cascade *g) {
    return g->end - g->first;
}

/* A value: what one plan is made of. */
typedef struct Decisions {
    const Facts *f;
    const Config *config; /* by which the rest is chosen */
    Mode *mode;           /* by node */
    uint32_t *alias_of;   /* by tensor; NONE */
    bool *dissolved; /* by concat: its members are alias classes of their own */
    TensorId *over;  /* by tensor: the operand whose place it takes */
    VEC(AliasClass) alias;
    VEC(Cascade) cascade;
    uint32_t
        *bounce_rows; /* by tensor: rows that a bounce buffer takes at a time */
} Decisions;

/* The cascade that the node is part of, or NULL. */
static inline const Cascade *cascade_of(const Decisions *d, NodeId node) {
    const Mode *mode = &d->mode[node.i];
    return mode->kind == MODE_CASCADE ? &d->cascade.at[mode->cascade] : NULL;
}

/* Whether a byte of weights counts as one of a tensor. */
static inline bool weights_count(const Decisions *d) {
    return d->config->lambda_weight || d->f->spec->tiling.rows.weights_move;
}

/* Of `bytes`, what weights leave that have to lie beside what steps
 * [first, end) work on, a layer's at a time. */
static inline uint64_t beside_weights(const Decisions *d, uint32_t first,
                                      uint32_t end, uint64_t bytes) {
    const Schedule *schedule = d->f->schedule;
    uint64_t most = 0;
    for (uint32_t i = first; d->config->aims.blocks && i < end; i++)
        for (uint32_t k = 0; k < schedule->step[i].n; k++) {
            NodeId id = schedule->step[i].slot[k].node;
            uint64_t own = d->config->aims.blocks[id.i];
            most = own > most ? own : most;
        }
    return most < bytes ? bytes - most : 0;
}

#endif
