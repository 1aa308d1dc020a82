/* waits.c - which actions must keep their order; see waits.h.
 *
 * Input: a plan's actions, one behind the other. Output: for each of them those
 * that must be done before it begins: transfers, or what transfers must wait
 * for, with which it conflicts, at most WINDOW in front of it. Method: what one
 * of them waits for is done before that, and so needs neither be compared nor
 * be waited for; likewise what lies behind a layer that is done, as layers keep
 * their order. Invariant: an action that waits for all of its `before` waits
 * for all with which it conflicts.
 */
#include "alloc/waits.h"

typedef struct Finding {
    const Action *action;
    Accesses *access;
    Near *done; /* by action: what is done when it begins */
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

/* The first from d on that is not in it; NONE. */
static uint32_t near_missing(const Near *near, uint32_t d) {
    uint32_t word = d / 64;
    if (word >= WINDOW / 64)
        return NONE;
    uint64_t bits = ~near->bit[word] >> d % 64 << d % 64;
    while (!bits && ++word < WINDOW / 64)
        bits = ~near->bit[word];
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
    return (is_move(&f->action[i]) || is_move(&f->action[k])) &&
           accesses_conflict(&f->access[i], &f->access[k]);
}

static void find_for(Finding *f, uint32_t i) {
    Near *done = &f->done[i];
    for (uint32_t d = near_missing(done, 0); d < i;
         d = near_missing(done, d + 1)) {
        uint32_t k = i - d - 1;
        if (!must_wait(f, i, k))
            continue;
        near_add(&f->found.before[i], d);
        near_add(&f->found.after[k], d);
        follow(f, i, k);
    }
}

Waits waits_find(Arena *arena, const Plan *plan, const Action *action,
                 uint32_t n) {
    Arena *scratch = arena_new("waits");
    Finding f = {.action = action,
                 .access = ARENA_ARRAY(scratch, Accesses, n + 1),
                 .done = ARENA_ARRAY(scratch, Near, n + 1),
                 .found = {ARENA_ARRAY(arena, Near, n + 1),
                           ARENA_ARRAY(arena, Near, n + 1)}};
    uint32_t layer = NONE;
    for (uint32_t i = 0; i < n; i++) {
        f.access[i] = accesses_of(scratch, plan, &action[i]);
        if (is_layer(&action[i]) && layer != NONE)
            follow(&f, i, layer);
        if (is_layer(&action[i]))
            layer = i;
        find_for(&f, i);
    }
    arena_free(scratch);
    return f.found;
}
