/* recompute_memo.c - what cascades by stripes cost, found once.
 *
 * Input: a cascade. Output: as recompute.c counts it.
 * Costs depend on the cascade and its rows alone, not on the bytes that are
 * planned with, but where a buffer is larger than all of these or does not end
 * aligned in them: so they are kept for all Works of one plan, in a list for
 * each first step and a few lengths and heights.
 */
#include "alloc/cascade/cascade.h"
#include "alloc/geometry/tensor_bytes.h"

enum { LOOKS = STRIPES_ALL + 1 };

typedef struct Known {
    struct Known *next;
    uint32_t length, rows;
    bool shares;
    bool is[LOOKS], can[LOOKS];
    CascadeCost cost[LOOKS];
    const Stripe *most;
} Known;

struct StripeCosts {
    Arena *arena;
    Known **of;       /* by first step and slot_of */
    StripesFit **fit; /* by first step, then by length and shares */
};

enum { SLOTS = 256 };

StripeCosts *stripe_costs_new(Arena *arena, uint32_t n_steps) {
    StripeCosts *costs = ARENA_NEW(arena, StripeCosts);
    size_t n = (size_t)(n_steps + 1) * SLOTS;
    *costs = (StripeCosts){arena, ARENA_ARRAY(arena, Known *, n),
                           ARENA_ARRAY(arena, StripesFit *, n_steps + 1)};
    return costs;
}

static size_t slot_of(const Cascade *g) {
    enum { STRIDE = 37 };
    return (STRIDE * (size_t)(cascade_length(g)) + g->rows) % SLOTS;
}

StripesFit *stripes_fit(const Facts *f, const Cascade *g, uint32_t longest) {
    StripeCosts *costs = f->memo->stripes;
    StripesFit **fit = &costs->fit[g->first];
    if (!*fit)
        *fit = ARENA_ARRAY(costs->arena, StripesFit, 2 * (longest + 1));
    return &(*fit)[2 * (cascade_length(g)) + (g->n_shared > 0)];
}

static Known *known_of(const Facts *f, const Cascade *g) {
    StripeCosts *costs = f->memo->stripes;
    uint32_t length = cascade_length(g);
    bool shares = g->n_shared;
    Known **first = &costs->of[(size_t)g->first * SLOTS + slot_of(g)];
    for (Known **at = first, *known; (known = *at); at = &known->next)
        if (known->length == length && known->rows == g->rows &&
            known->shares == shares) {
            *at = known->next; /* to the front: it is asked for again soon */
            known->next = *first;
            return *first = known;
        }
    Known *known = ARENA_NEW(costs->arena, Known);
    *known = (Known){
        .next = *first, .length = length, .rows = g->rows, .shares = shares};
    return *first = known;
}

/* Whether the peak would be another with this memory. */
static bool depends_on_size(const Facts *f, uint64_t largest) {
    Pool pool = pool_of(&f->spec->memory[0]);
    return largest <= pool.size && round_up(largest, pool.align) > pool.size;
}

bool cascade_cost(const Facts *f, const Cascade *g, StripesLook look,
                  CascadeCost *cost) {
    if (f->spec->n_active > 1 || f->spec->memory[0].buffers)
        return cascade_measure(f, g, look, true, cost);
    Known *known = known_of(f, g);
    if (!known->is[look])
        known->can[look] =
            cascade_measure(f, g, look, false, &known->cost[look]);
    known->is[look] = true;
    *cost = known->cost[look];
    if (known->can[look] && depends_on_size(f, cost->largest))
        return cascade_measure(f, g, look, true, cost);
    if (cost->largest > pool_of(&f->spec->memory[0]).size)
        cost->peak = UINT64_MAX;
    return known->can[look];
}

const Stripe *cascade_highest(const Facts *f, const Cascade *g) {
    Known *known = known_of(f, g);
    if (!known->most)
        known->most = stripes_highest(f, g, f->memo->stripes->arena);
    return known->most;
}
