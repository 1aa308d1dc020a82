/* phases.h - when buffers are alive, turn by turn; private to alloc.
 *
 * Phases: two for each step, while its nodes run and behind them; of row tiles
 * and stripes the steps of some turns, one behind the other, which stand for
 * all: the first, those that alternate in the middle, the last.
 */
#ifndef ALLOC_LIVE_PHASES_H
#define ALLOC_LIVE_PHASES_H

#include "alloc/decisions.h"
#include "alloc/live/live.h"

/* Steps [first, end) that run by turns: a cascade by stripes, or a node by
 * row tiles. A block is one turn's phases; which blocks there are, and which
 * follow on which, is the same for all with so many turns and sets. */
typedef struct Turning {
    uint32_t first, end;
    uint32_t n;     /* turns */
    uint32_t phase; /* of the first block */
    bool doubled;   /* as in Mode */
    /* what is loaded lives so many phases before its use, what is stored
     * behind it */
    uint32_t early, late;
} Turning;

typedef struct Lives {
    Arena *arena;
    const Facts *f;
    const Decisions *d;
    const Buffers *buffers;
    uint32_t n, words;     /* phases; words of 64 of them */
    uint64_t *cost, *live; /* by phase: cycles of its layers; bytes */
    uint64_t *alive;       /* by buffer: words of phases */
    uint32_t *phase_of;    /* by time of the problem */
    VEC(Turning) turning;
    uint32_t *turning_of; /* by step; NONE */
} Lives;

/* Whether the node runs by turns; ->phase is not filled. */
bool turning_at(const Decisions *d, NodeId id, Turning *out);

/* As alias classes and modes have it; time: cycles by step. */
Lives *lives_make(Arena *arena, const Decisions *d, const Buffers *buffers,
                  const uint64_t *time);
static inline bool lives_has(const Lives *l, uint32_t buf, uint32_t phase) {
    return l->alive[(size_t)buf * l->words + phase / 64] >> phase % 64 & 1;
}
/* The buffer is alive then, or not. */
void lives_set(Lives *l, uint32_t buf, uint32_t phase, bool alive);
Lives *lives_copy(const Lives *l);
/* Its first and last phase. */
Steps lives_span(const Lives *l, uint32_t buf);
/* Whether it is alive in any of these phases. */
bool lives_in(const Lives *l, uint32_t buf, Steps phases);
/* The problem's buffer with its life in these phases. */
Buffer lives_buf(const Lives *l, uint32_t buf, Steps phases);
/* Other `early` and `late` for the buffers of a turning. */
void lives_turn(Lives *l, uint32_t turning, uint32_t early, uint32_t late);
/* Phases of the step, or of all steps and turns that it is one of. */
Steps lives_phases(const Lives *l, uint32_t step);

#endif
