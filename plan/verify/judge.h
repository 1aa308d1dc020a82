/* judge.h - a plan while it is replayed, for the files of the judge.
 *
 * Each check gives NULL, or a sentence on what is wrong.
 */
#ifndef PLAN_VERIFY_JUDGE_H
#define PLAN_VERIFY_JUDGE_H

#include "base/vec.h"
#include "hwspec/insn.h"
#include "plan/verify/memory_state.h"

/* How far a node is: channels [from, channels) of columns behind `cols` of rows
 * behind `rows`, of all channels, or of those up to `end` if these come first.
 */
typedef struct Turn {
    uint32_t rows, cols, channels, from, end;
    uint32_t last_rows, last_cols; /* of the last run */
    uint32_t left, right; /* columns that the strip at work adds; 0: all */
} Turn;

typedef VEC(uint32_t) Numbers;

typedef struct Judge {
    Arena *arena;
    const Plan *plan;
    const Graph *g;
    const HwSpec *spec;
    Areas *areas;
    Turn *turn;               /* by node: what is computed so far */
    Numbers weights, biases;  /* blocks that are there, from 1 */
    VEC(const Action *) left; /* that leave sums, and nobody has gone on yet */
    const Action *action;
    uint32_t step; /* of the action before */
} Judge;

/* `what`: is wrong with the placement, in this action. */
const char *judge_says(Judge *j, const Placement *p, const char *what);

static inline bool on_engine(const Action *a) {
    return a->kind == ACTION_RUN || a->kind == ACTION_COPY;
}

/* Whether both hold the same elements of volumes that are alike. */
static inline bool placement_same(const Placement *a, const Placement *b) {
    return a->memory == b->memory && a->offset == b->offset &&
           volumes_same(&a->whole, &b->whole) && a->part_c == b->part_c &&
           a->n_c == b->n_c && a->row == b->row && a->rows == b->rows &&
           a->col == b->col && a->cols == b->cols && a->ring == b->ring;
}

/* What the action moves, or computes; all that a placement holds. */
static inline Part made_by(const Action *a) {
    return (Part){a->row, a->rows, a->col, a->cols};
}
static inline Part all_of(const Placement *p) {
    return (Part){p->row, p->rows, p->col, p->cols};
}
static inline HwRole role_of(const Judge *j, uint32_t placement) {
    return j->spec->memory[j->plan->placement[placement].memory].role;
}

typedef const char *Check(Judge *j, const Action *a);

/* ---- placements.c ---- */

/* Each placement by itself. */
const char *judge_placements(Judge *j);
/* What the host gives and takes lies in one place of each memory. */
const char *judge_host_side(Judge *j);

/* ---- moves.c ---- */

/* The part must be there. */
const char *judge_read(Judge *j, uint32_t placement, Part part);
/* It is there from now on; what lay there is not. */
const char *judge_write(Judge *j, uint32_t placement, Part part);
/* Weights in these bytes are gone. */
void judge_drop_weights(Judge *j, Range bytes);
Check judge_move, judge_copy;

/* ---- constants.c: what a run reads is there; what is loaded ---- */

Check judge_weights, judge_bias;
Check judge_loads_weights, judge_loads_bias;

/* ---- sums.c ---- */

/* What the run goes on with is there, and lies where it may. *stays: it leaves
 * sums, and makes no result. */
const char *judge_sums(Judge *j, const Action *a, bool *stays);
/* Sums in these bytes are gone. */
void judge_drop_sums(Judge *j, uint32_t memory, Range bytes);

/* ---- turns.c ---- */

/* The run, or concat, is the next part of its node. */
Check judge_turn;

/* ---- ends.c ---- */

/* What the host has written before the first action. */
void judge_inputs(Judge *j);
/* What must be computed, and outside, behind the last. */
const char *judge_end(Judge *j);

/* ---- side by side ---- */

/* input_rows.c: whether the rows, columns and padding that a run reads give
 * those that it makes. */
const char *judge_rows(Judge *j, const Action *a);

/* side_by_side.c: what an action writes, it reads only in the same place. */
const char *judge_in_place(Judge *j, const Action *a);
/* What one action writes, no other of its step touches; engines run beside
 * those that the machine lets them. `end`: of all actions. */
const char *judge_step(Judge *j, const Action *a, const Action *end);

#endif
