/* infeasible_subset.c - buffers that cannot fit together, none of them
 * needless.
 *
 * Input: a problem. Output: an irreducible infeasible subset, the
 * term of linear programming, found by its deletion filter (Chinneck and
 * Dravnieks, 1991): leave each buffer out in turn, and for good if the rest
 * still does not fit. The search is the oracle; a buffer about which it cannot
 * decide within its budget stays, and the set is then not proved irreducible.
 *
 * Two shortcuts keep the questions few. If the buffers alive at one step are
 * too large together, only they are looked at, and sums decide. The smallest
 * buffers are asked about first, so that the set that remains is one of few and
 * large ones, which is also what a reader wants to see.
 */
#include "pack/free_list.h"
#include "pack/pack.h"

#include "base/order.h"

#include <stdlib.h>
#include <string.h>

enum { QUESTION_STEPS = 200000 };

typedef struct Filter {
    const PackProblem *problem;
    Buffer *kept;    /* the buffers of the question */
    uint32_t *index; /* by buffer: its number in the question */
    Relation *relation;
    bool *in; /* by buffer: may be needed */
    uint64_t bound;
} Filter;

/* Does the subset not fit? PLAN_FAILS: nobody knows. */
static PackStatus ask(Filter *f) {
    Arena *scratch = arena_new("irreducible");
    PackProblem question = *f->problem;
    question.buf = f->kept;
    question.n_bufs = 0;
    question.any_fit = true;
    if (!question.budget)
        question.budget = QUESTION_STEPS;
    for (uint32_t b = 0; b < f->problem->n_bufs; b++) {
        f->index[b] = question.n_bufs;
        if (f->in[b])
            f->kept[question.n_bufs++] = f->problem->buf[b];
    }
    question.relation = f->relation;
    question.n_relations = 0;
    for (uint32_t i = 0; i < f->problem->n_relations; i++) {
        Relation r = f->problem->relation[i];
        if (!f->in[r.a] || !f->in[r.b])
            continue;
        r.a = f->index[r.a];
        r.b = f->index[r.b];
        f->relation[question.n_relations++] = r;
    }
    PackResult result;
    const char *used;
    pack_memory(scratch, &question, "exact", false, &result, &used);
    if (result.status == PACK_INFEASIBLE)
        f->bound = result.bound;
    arena_free(scratch);
    return result.status;
}

/* Where one step is overfull, the others do not matter. */
static void keep_overfull_step(Arena *arena, Filter *f) {
    uint32_t step;
    if (pack_live_peak(arena, f->problem, &step) <= f->problem->pool[0].size)
        return;
    for (uint32_t b = 0; b < f->problem->n_bufs; b++) {
        const Buffer *buf = &f->problem->buf[b];
        f->in[b] = buf->first <= step && step < buf->end;
    }
}

typedef struct Key {
    uint64_t bytes;
    uint32_t buf;
} Key;

static int smallest_first(const void *a, const void *b) {
    const Key *x = a, *y = b;
    return order_by(ORDER_UP(x->bytes, y->bytes), ORDER_UP(x->buf, y->buf));
}

/* False if some question had no answer. */
static bool leave_out(Arena *arena, Filter *f) {
    uint32_t n = f->problem->n_bufs;
    bool sure = true;
    Key *key = ARENA_ARRAY(arena, Key, n);
    for (uint32_t b = 0; b < n; b++)
        key[b] = (Key){buf_bytes(f->problem, b), b};
    qsort(key, n, sizeof *key, smallest_first);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t b = key[i].buf;
        if (!f->in[b])
            continue;
        f->in[b] = false;
        PackStatus rest = pack_late(f->problem) ? PACK_FAILS : ask(f);
        f->in[b] = rest != PACK_INFEASIBLE;
        sure &= rest != PACK_FAILS;
    }
    return sure;
}

void pack_irreducible(Arena *arena, const PackProblem *problem,
                      PackConflict *conflict) {
    uint32_t n = problem->n_bufs;
    uint32_t *list = ARENA_ARRAY(arena, uint32_t, n);
    Filter f = {.problem = problem,
                .kept = ARENA_ARRAY(arena, Buffer, n),
                .index = ARENA_ARRAY(arena, uint32_t, n),
                .relation = ARENA_ARRAY(arena, Relation, problem->n_relations),
                .in = ARENA_ARRAY(arena, bool, n)};
    *conflict = (PackConflict){.buf = list};
    memset(f.in, true, n);
    if (problem->n_pools == 1)
        keep_overfull_step(arena, &f);
    if (ask(&f) != PACK_INFEASIBLE)
        return;
    conflict->infeasible = true;
    conflict->irreducible = leave_out(arena, &f);
    conflict->bound = f.bound;
    for (uint32_t b = 0; b < n; b++)
        if (f.in[b])
            list[conflict->n++] = b;
}
