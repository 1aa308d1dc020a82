/* cascade.h - cascades of layers that run depth first; private.
 *
 * By stripes that compute rows again, by rings of rows, or by lines of rows and
 * columns, which compute nothing twice.
 */
#ifndef ALLOC_CASCADE_CASCADE_H
#define ALLOC_CASCADE_CASCADE_H

#include "alloc/tile/tile.h"

/* ---- recompute.c: cascades that run depth first ---- */

/* What one node does for one stripe. */
typedef struct Stripe {
    uint32_t row, rows; /* of its result */
    Rows need;          /* of its operands */
    uint32_t copies;    /* bits: operands that are made in the cascade, or
                         * shared, with more rows than these: they are copied */
    uint32_t shift;     /* rows above the lowest copy of the result */
} Stripe;
typedef struct CascadeCost {
    uint64_t peak;    /* bytes of active memory */
    uint64_t moved;   /* bytes over DDR */
    uint64_t work;    /* products, those computed again included */
    uint64_t largest; /* bytes of a buffer; 0: not known */
    uint64_t instructions;
} CascadeCost;
/* Kinds of layers without which cascades may move less: bits. */
enum { KIND_SPREADS = 1, KIND_CONCAT = 2, KIND_END = 4 };
uint32_t cascade_kind(const Facts *f, NodeId id);
static inline bool in_cascade(const Decisions *d, NodeId id) {
    return d->mode[id.i].kind == MODE_CASCADE;
}
/* Whether a cascade may contain the step. */
bool cascade_may_hold(const Decisions *d, uint32_t step);
/* Whether one may begin with it: with a concat it would but load the parts of
 * what lies outside together. */
bool cascade_may_begin(const Decisions *d, uint32_t step);
NodeId cascade_node(const Facts *f, const Cascade *g, uint32_t i);
/* Index of the node of the cascade that makes the tensor; NONE. */
uint32_t cascade_maker(const Facts *f, const Cascade *g, TensorId t);
/* The nodes of the cascade that read a tensor, in turn: after each
 * cascade_readers_next that is true, `i` is the index of one. */
typedef struct CascadeReaders {
    const Facts *f;
    const Cascade *g;
    TensorId t;
    uint32_t at, i;
} CascadeReaders;
CascadeReaders cascade_readers(const Facts *f, const Cascade *g, TensorId t);
bool cascade_readers_next(CascadeReaders *r);
/* Whether it must be in backing memory for what is outside the cascade: nodes
 * that read it or a concat that it is part of, or one that is not complete. */
bool cascade_leaves(const Facts *f, const Cascade *g, TensorId t);
/* Whether somebody outside the cascade needs what it makes. */
bool cascade_stores(const Facts *f, const Cascade *g, TensorId t);
/* Active memories that all of the cascade's nodes that touch it reach: bits. */
uint32_t cascade_reach(const Facts *f, const Cascade *g, TensorId t);
/* The last step of the cascade that reads it, or makes it. */
uint32_t cascade_last_use(const Facts *f, const Cascade *g, TensorId t);
uint32_t cascade_stripes(const Facts *f, const Cascade *g);
/* Rows of one stripe, by what is held (cascade_held); false if it cannot be
 * computed. */
bool stripe_make(const Facts *f, const Cascade *g, uint32_t index,
                 Stripe *stripe);
/* Most rows of any stripe, by what is held; in `arena`. */
const Stripe *stripes_highest(const Facts *f, const Cascade *g, Arena *arena);
/* Of which stripes the cost is found. */
typedef enum StripesLook {
    STRIPES_MIDDLE, /* one in the middle: the peak alone */
    STRIPES_THREE,  /* the first, one in the middle, the last: exact where those
                     * between are alike */
    STRIPES_ALL
} StripesLook;
/* False if one of these cannot be computed. Not `sized`: in one linear memory
 * of any size. */
bool cascade_measure(const Facts *f, const Cascade *g, StripesLook look,
                     bool sized, CascadeCost *cost);
/* Bytes by pool of the result of a node of the cascade: its most rows, and what
 * a copy of its last rows reaches over. */
void stripe_bytes(const Facts *f, TensorId result, const Stripe *most,
                  uint64_t bytes[PACK_MAX_POOLS]);

/* ---- shared_inputs.c: what several nodes of a cascade read from outside */

/* Those are loaded once a stripe. */
void cascade_share(const Facts *f, Cascade *g);
/* How many tensors a stripe holds: results of its nodes, then what is shared.
 */
uint32_t cascade_held(const Cascade *g);
/* Which of them the tensor is; NONE: each reader loads its own rows. */
uint32_t cascade_holder(const Facts *f, const Cascade *g, TensorId t);
/* The first node that reads what is shared; of how much node i is that. */
uint32_t shared_first(const Facts *f, const Cascade *g, uint32_t s);
uint32_t shared_by(const Facts *f, const Cascade *g, uint32_t i);

/* ---- concat.c: concats in cascades ---- */

/* Whether a cascade may contain the concat: parts of it, and of those around
 * it, have places of their own in backing memory. */
bool concat_may_join(const Facts *f, NodeId concat);
/* Whether no node of the cascade reads the tensor but its node i. */
bool cascade_only_reader(const Facts *f, const Cascade *g, TensorId t,
                         uint32_t i);
/* The node in whose row tile that of node i lies, from channel *c on: a concat,
 * or i itself. */
uint32_t cascade_row_tile(const Facts *f, const Cascade *g, uint32_t i,
                          uint32_t *c);
/* Whether the cascade makes the tensor in the row tile of a concat. */
bool cascade_joins(const Facts *f, const Cascade *g, TensorId t);
/* The first node that writes into the row tile of node i. */
uint32_t row_tile_first(const Facts *f, const Cascade *g, uint32_t i);
/* Rows of node i's result are multiples of this, as is where they begin. */
uint32_t cascade_quantum(const Facts *f, const Cascade *g, uint32_t i);
/* Whether all operands of a concat can lie in its row tile of so many rows. */
bool row_tile_parts_start(const Facts *f, const Cascade *g, uint32_t i,
                          uint32_t rows);

/* ---- recompute_memo.c: the same, found once ---- */

StripeCosts *stripe_costs_new(Arena *arena, uint32_t n_steps);
bool cascade_cost(const Facts *f, const Cascade *g, StripesLook look,
                  CascadeCost *cost);
const Stripe *cascade_highest(const Facts *f, const Cascade *g);
/* What cascade_dp.c found last for a cascade of at most `longest` steps: its
 * rows, 0 if none fit, and their cost. */
typedef struct StripesFit {
    uint64_t budget, size; /* that was for these; of the first memory */
    bool is, exact;
    uint32_t rows;
    CascadeCost cost;
} StripesFit;
StripesFit *stripes_fit(const Facts *f, const Cascade *g, uint32_t longest);

/* ---- dataflow.c: who reads whom, and from where on, found once ---- */

/* The first node of a step. */
struct FlowStep {
    NodeId node;
    uint32_t n_makers, n_readers;
    const uint32_t *maker;  /* by operand: steps; NONE: no step makes it */
    const uint32_t *reader; /* steps that read its result; NONE: none does */
    uint32_t size[2], quantum[2]; /* rows, columns of its result */
    uint32_t turn; /* rows: the quantum, times what the engine makes at once */
    uint32_t n_first[2];
    const uint32_t *first[2]; /* flow_first, as far as it is known */
};
FlowStep *flow_new(Arena *arena, const Schedule *schedule);
/* The same as flow_first, and remembers it. */
uint32_t flow_ask(const Facts *f, FlowStep *s, uint32_t axis, uint32_t at);
/* The first row, or column, of its operands that the one at `at` of its result
 * needs: axis_needed. */
static inline uint32_t flow_first(const Facts *f, FlowStep *s, uint32_t axis,
                                  uint32_t at) {
    return at < s->n_first[axis] ? s->first[axis][at]
                                 : flow_ask(f, s, axis, at);
}

/* ---- rolling_rows.c: cascades that compute nothing twice ---- */

/* Rows of a tensor that only a cascade needs. */
typedef struct Ring {
    TensorId tensor;
    uint32_t maker; /* index in the cascade; NONE: it is loaded row by row */
    uint32_t rows;
    uint32_t loaded; /* rows that are behind or in it */
    uint32_t over;   /* the ring whose rows its own replace; NONE */
    uint32_t under;  /* the mirror */
    uint32_t inside; /* the ring of the concat that it is part of; NONE */
    uint32_t root;   /* the first of those that share its place, */
    uint32_t place;  /* and the one whose buffer it is */
    uint32_t buf;    /* counted from the cascade's first */
} Ring;
typedef struct Rings {
    VEC(Ring) at;
    uint32_t n_loaded; /* the first of them are loaded */
    uint32_t *made;    /* by node of the cascade: ring of its result, or NONE */
} Rings;
/* Node i of a cascade adds rows to its result. */
typedef struct Roll {
    uint32_t i, row, rows;
    Rows need; /* of its operands */
} Roll;
/* done: rows by node before that. */
typedef void RollVisitor(void *context, const Roll *roll, const uint32_t *done);
/* Rows of the node's operand, where others of it are read so. */
Rows operand_rows(const Facts *f, NodeId id, TensorId t, Rows need);
/* Whether the tensor, made or read by the cascade, is whole in active memory.
 */
bool cascade_keeps(const Decisions *d, const Cascade *g, TensorId t);
/* Of its highest result: what `rows` can be. */
uint32_t cascade_height(const Facts *f, const Cascade *g);
/* Rows that node i then adds at a time. */
uint32_t roll_chunk(const Facts *f, const Cascade *g, uint32_t i);
/* The same of all nodes. */
uint32_t *roll_chunks(const Facts *f, const Cascade *g);
/* All that the cascade's nodes do, in order; false if rows cannot be computed.
 */
bool cascade_roll(const Facts *f, const Cascade *g, RollVisitor *visit,
                  void *context);
/* The ring that it is part of, from channel *c on; itself. */
uint32_t ring_whole(const Facts *f, const Rings *rings, uint32_t i,
                    uint32_t *c);
/* Whether a node that reads the ring's tensor, from outside, lacks rows: from
 * *row on to ring->loaded, which is raised. */
bool ring_load(const Facts *f, const Cascade *g, Ring *ring, const Roll *roll,
               const uint32_t *done, uint32_t *row);
/* The cascade's rings, in a fixed order; false if rows cannot be computed. */
bool rings_make(const Decisions *d, const Cascade *g, Rings *rings);
/* Those it has, not how many rows: `rows` of the cascade are not asked. */
void rings_list(const Decisions *d, const Cascade *g, Rings *rings);
/* Rows of listed ones until the last result has `rows`. */
bool rings_until(const Facts *f, const Cascade *g, uint32_t rows, Rings *rings);
/* Elements of the node's weights. */
uint64_t node_weights(const Facts *f, NodeId id);

/* What a cascade with rings costs, if a few runs of its last node are like all
 * the others. */
typedef struct RollCost {
    uint64_t bytes;   /* of its rings; UINT64_MAX: it cannot be computed */
    uint64_t moved;   /* bytes over DDR */
    uint64_t weights; /* elements read, again with each run of a node */
    uint64_t once;    /* the same, were each read once */
    uint64_t again;   /* products that are computed once more */
    uint64_t wasted;  /* cycles of engines that make fewer rows than they can */
} RollCost;
/* Elements of weights that it reads, if those that there is room for stay while
 * it runs (Config.aside). */
uint64_t roll_weights(const Decisions *d, const RollCost *cost);
/* The most rows at a time of those that are tried, with which the rings take at
 * most `bytes`; 0 if there are none. */
uint32_t roll_rows(const Decisions *d, Cascade g, uint64_t bytes,
                   RollCost *cost);
/* Whether roll_rows finds any, and then what they cost at least. */
bool roll_fits(const Decisions *d, Cascade g, uint64_t bytes, RollCost *least);
/* Looks at all runs; false if that changes what roll_rows knows of the cascade.
 */
bool roll_confirm(const Decisions *d, const Cascade *g);
RollCosts *roll_costs_new(Arena *arena, uint32_t n_steps);

/* The same of columns, with line buffers; `strips` of the cascade stay. */
uint32_t roll_columns(const Decisions *d, Cascade g, uint64_t bytes,
                      RollCost *cost);
/* Of a cascade that was chosen, rings_make, found once. */
const Rings *cascade_rings(const Decisions *d, const Cascade *g);

#endif
