/* dependences.c - which actions must keep their order; see dependences.h.
 *
 * Input: a plan's actions, one behind the other. Output: for each of them those
 * that must be done before it begins: transfers, or what transfers must wait
 * for, with which it conflicts, at most WINDOW in front of it. Method: what one
 * of them waits for is done before that, and so needs neither be compared nor
 * be waited for; likewise what lies behind a layer that is done, as layers keep
 * their order. Invariant: an action that waits for all of its `before` waits
 * for all with which it conflicts.
 */
#include "alloc/overlap/dependences.h"

#include <string.h>

/* Of an action's accesses, close together: most pairs are told apart by it. */
typedef struct Span {
    Reach active, outside;
} Span;

typedef struct Finding {
    const Action *action;
    Accesses *access;
    Span *span;
    Near all, moves; /* in front of the action that is looked at */
    Near *done;      /* by action: what is done when it begins */
    Waits found;
} Finding;

static void near_add(Near *near, uint32_t d) {
    near->bit[d / 64] |= UINT64_C(1) << d % 64;
}

/* What is near to another that is itself `by` further on. */
static void near_join(Near *to, const Near *from, uint32_t by) {
    uint32_t words = by / 64, bits = by % 64;
    for (uint32_t i = WINDOW / 64; i-- > words;) {
        uint64_t moved = from->bit[i - words] << bits;
        if (bits && i > words)
            moved |= from->bit[i - words - 1] >> (64 - bits);
        to->bit[i] |= moved;
    }
}

/* The first from d on that is in `of`, but not in it; NONE. */
static uint32_t near_missing(const Near *near, const Near *of, uint32_t d) {
    uint32_t word = d / 64;
    if (word >= WINDOW / 64)
        return NONE;
    uint64_t bits = (of->bit[word] & ~near->bit[word]) >> d % 64 << d % 64;
    while (!bits && ++word < WINDOW / 64)
        bits = of->bit[word] & ~near->bit[word];
    return bits ? word * 64 + (uint32_t)__builtin_ctzll(bits) : NONE;
}

/* Action i begins behind k, or, if both are layers, no sooner. */
static void follow(Finding *f, uint32_t i, uint32_t k) {
    uint32_t by = i - k;
    if (by > WINDOW)
        return;
    near_add(&f->done[i], by - 1);
    near_join(&f->done[i], &f->done[k], by);
}

static bool must_wait(const Finding *f, uint32_t i, uint32_t k) {
    const Span *a = &f->span[i], *b = &f->span[k];
    return (reaches_meet(a->active, b->active) ||
            reaches_meet(a->outside, b->outside)) &&
           accesses_meet(&f->access[i], &f->access[k]);
}

/* Two that are no moves need not be compared. */
static void find_for(Finding *f, uint32_t i) {
    const Near *of = is_move(&f->action[i]) ? &f->all : &f->moves;
    Near *done = &f->done[i];
    for (uint32_t d = near_missing(done, of, 0); d < i;
         d = near_missing(done, of, d + 1)) {
        uint32_t k = i - d - 1;
        if (!must_wait(f, i, k))
            continue;
        near_add(&f->found.before[i], d);
        near_add(&f->found.after[k], d);
        follow(f, i, k);
    }
}

static void find_spans(Finding *f, Arena *arena, const Plan *plan, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        f->access[i] = accesses_of(arena, plan, &f->action[i]);
        f->span[i] = (Span){f->access[i].active, f->access[i].outside};
    }
}

/* Goes on to the action behind i. */
static void pass(Finding *f, uint32_t i) {
    Near moves = {{0}};
    near_join(&moves, &f->moves, 1);
    if (is_move(&f->action[i]))
        near_add(&moves, 0);
    f->moves = moves;
}

Waits waits_find(Arena *arena, const Plan *plan, const Action *action,
                 uint32_t n) {
    Arena *scratch = arena_new("waits");
    Finding f = {.action = action,
                 .access = ARENA_ARRAY(scratch, Accesses, n + 1),
                 .span = ARENA_ARRAY(scratch, Span, n + 1),
                 .done = ARENA_ARRAY(scratch, Near, n + 1),
                 .found = {ARENA_ARRAY(arena, Near, n + 1),
                           ARENA_ARRAY(arena, Near, n + 1)}};
    uint32_t layer = NONE;
    memset(&f.all, 0xff, sizeof f.all);
    find_spans(&f, scratch, plan, n);
    for (uint32_t i = 0; i < n; i++) {
        if (is_layer(&action[i]) && layer != NONE)
            follow(&f, i, layer);
        if (is_layer(&action[i]))
            layer = i;
        find_for(&f, i);
        pass(&f, i);
    }
    arena_free(scratch);
    return f.found;
}
