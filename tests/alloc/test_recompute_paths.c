/* test_recompute_paths.c - chains of convolutions against an exhaustive search
 * of plans that may make any rows again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "alloc/bound/bound.h"
#include "alloc/search/search.h"
#include "tests/alloc/case.h"
#include "tests/effort.h"

enum { LINKS = 3, ROWS = 4, SPANS = 10, COSTS = 128, SLOTS = 1 << 21 };

static const uint8_t span_at[SPANS] = {0, 1, 2, 3, 0, 1, 2, 0, 1, 0};
static const uint8_t span_end[SPANS] = {1, 2, 3, 4, 2, 3, 4, 3, 4, 4};

typedef struct Chain {
    uint32_t n, row[LINKS], kernel[LINKS], capacity;
    Arena *arena;
    VEC(uint64_t) queue[COSTS]; /* states, by cost */
    uint64_t *seen;
    uint32_t n_seen;
} Chain;

/* A state: which spans of which tensor are in active memory, and which rows of
 * which one are outside. */
static uint64_t inside_bit(uint32_t link, uint32_t span) {
    return UINT64_C(1) << (link * SPANS + span);
}

static uint64_t outside_bit(uint32_t link, uint32_t row) {
    return UINT64_C(1) << (LINKS * SPANS + link * ROWS + row);
}

static uint32_t inside_bytes(const Chain *c, uint64_t state) {
    uint32_t sum = 0;
    for (uint32_t l = 0; l < LINKS; l++)
        for (uint32_t s = 0; s < SPANS; s++)
            if (state & inside_bit(l, s))
                sum += c->row[l] * (uint32_t)(span_end[s] - span_at[s]);
    return sum;
}

/* What lies in another span as well is of no use. */
static uint64_t without_twins(uint64_t state) {
    for (uint32_t l = 0; l < LINKS; l++)
        for (uint32_t s = 0; s < SPANS; s++)
            for (uint32_t t = 0; t < SPANS; t++)
                if (s != t && span_at[t] <= span_at[s] &&
                    span_end[s] <= span_end[t] && state & inside_bit(l, t))
                    state &= ~inside_bit(l, s);
    return state;
}

static void reach_state(Chain *c, uint64_t state, uint32_t cost) {
    if (cost < COSTS && inside_bytes(c, state) <= c->capacity)
        vec_push(c->arena, &c->queue[cost], without_twins(state));
}

/* False if it was there already. */
static bool see(Chain *c, uint64_t state) {
    uint64_t at = rng_bits(state, 0) % SLOTS;
    while (c->seen[at] && c->seen[at] != state + 1)
        at = (at + 1) % SLOTS;
    bool is_new = !c->seen[at];
    c->seen[at] = state + 1;
    c->n_seen += is_new;
    assert_true(c->n_seen < SLOTS / 4 * 3);
    return is_new;
}

static bool all_outside(uint64_t state, uint32_t link, uint32_t span) {
    for (uint32_t r = span_at[span]; r < span_end[span]; r++)
        if (!(state & outside_bit(link, r)))
            return false;
    return true;
}

/* Whether rows that the span is made from lie in one of those inside. */
static bool can_run(const Chain *c, uint64_t state, uint32_t link,
                    uint32_t span) {
    uint32_t halo = c->kernel[link] / 2;
    uint32_t at = span_at[span] > halo ? span_at[span] - halo : 0;
    uint32_t end = span_end[span] + halo < ROWS ? span_end[span] + halo : ROWS;
    for (uint32_t s = 0; s < SPANS; s++)
        if (state & inside_bit(link - 1, s) && span_at[s] <= at &&
            span_end[s] >= end)
            return true;
    return false;
}

/* Rows of a result are made one channel after the other, each of them stored
 * as soon as it is there. */
static void pass(Chain *c, uint64_t state, uint32_t link, uint32_t span,
                 uint32_t cost) {
    uint32_t rows = span_end[span] - (uint32_t)span_at[span];
    if (!can_run(c, state, link, span) ||
        inside_bytes(c, state) + rows > c->capacity)
        return;
    for (uint32_t r = span_at[span]; r < span_end[span]; r++) {
        cost += state & outside_bit(link, r) ? 0 : c->row[link];
        state |= outside_bit(link, r);
    }
    reach_state(c, state, cost);
}

/* The span leaves, or rows of it are stored. */
static void leave(Chain *c, uint64_t state, uint32_t link, uint32_t span,
                  uint32_t cost) {
    reach_state(c, state & ~inside_bit(link, span), cost);
    for (uint32_t r = span_at[span]; r < span_end[span]; r++)
        if (!(state & outside_bit(link, r)))
            reach_state(c, state | outside_bit(link, r), cost + c->row[link]);
}

static void enter(Chain *c, uint64_t state, uint32_t link, uint32_t span,
                  uint32_t cost) {
    uint64_t there = state | inside_bit(link, span);
    uint32_t rows = span_end[span] - (uint32_t)span_at[span];
    if (link && can_run(c, state, link, span))
        reach_state(c, there, cost);
    if (all_outside(state, link, span))
        reach_state(c, there, cost + rows * c->row[link]);
}

static void go_on(Chain *c, uint64_t state, uint32_t cost) {
    for (uint32_t l = 1; l < c->n; l++)
        for (uint32_t s = 0; s < SPANS; s++)
            pass(c, state, l, s, cost);
    for (uint32_t l = 0; l + 1 < c->n; l++)
        for (uint32_t s = 0; s < SPANS; s++)
            if (state & inside_bit(l, s))
                leave(c, state, l, s, cost);
            else
                enter(c, state, l, s, cost);
}

/* Fewest bytes that move; COSTS if there is no way. */
static uint32_t search(Chain *c) {
    uint64_t start = 0;
    c->seen = ARENA_ARRAY(c->arena, uint64_t, SLOTS);
    for (uint32_t r = 0; r < ROWS; r++)
        start |= outside_bit(0, r);
    reach_state(c, start, 0);
    for (uint32_t cost = 0; cost < COSTS; cost++)
        for (uint32_t i = 0; i < c->queue[cost].n; i++) {
            uint64_t state = c->queue[cost].at[i];
            if (all_outside(state, c->n - 1, SPANS - 1))
                return cost;
            if (see(c, state))
                go_on(c, state, cost);
        }
    return COSTS;
}

static void chain_make(Case *c, uint64_t seed, uint32_t n, Chain *chain) {
    RandomNet r = {.g = c->g, .diag = c->diag, .seed = seed};
    chain->n = n;
    chain->row[0] = 2 + net_draw(&r, 4);
    TensorId x = net_input(c->g, chain->row[0], ROWS, 1);
    for (uint32_t l = 1; l < n; l++) {
        uint32_t k = net_draw(&r, 4) ? 3 : 1;
        chain->kernel[l] = k;
        chain->row[l] = 2 + net_draw(&r, 4);
        x = net_conv(c->g, c->diag, arena_printf(c->arena, "n%u", l), x,
                     chain->row[l], k, 1, 1, k / 2);
    }
    graph_mark_output(c->g, x);
}

typedef struct Count {
    uint32_t compared, equal, more;
} Count;

static void hold(uint64_t seed, uint32_t n, uint32_t am, Count *count) {
    Case c = case_new(am);
    Chain chain = {.capacity = am, .arena = c.arena};
    chain_make(&c, seed, n, &chain);
    PlanOptions options = {.planner = "auto"};
    Plan plan = {0};
    const Schedule *schedule =
        sched_run(c.arena, c.diag, &c.toy->spec, c.g, "file");
    const Attempt *a =
        attempt_new(c.arena, schedule, &c.toy->spec, &options, NULL, NULL);
    bound_make(&a->d, &plan);
    double bound = (double)plan.ddr_bound[PLAN_BOUND_ANY] + paths_bound(&a->d);
    uint32_t least = search(&chain);
    assert_true(bound <= least);
    count->compared += least < COSTS;
    count->equal += bound >= least;
    count->more += least < COSTS && paths_bound(&a->d) > 0;
    arena_free(c.arena);
}

static void none_moves_less(void **state) {
    (void)state;
    Count count = {0};
    for (uint64_t seed = 1; seed <= cases_up_to(40, 20, 8); seed++)
        for (uint32_t am = 7; am <= 13; am++)
            hold(seed, 3, am, &count);
    print_message("%u chains, %u bounds are what is least, %u more than what "
                  "is compulsory\n",
                  count.compared, count.equal, count.more);
    assert_true(count.compared > cases_of(20, 8) &&
                count.more > cases_of(5, 2));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(none_moves_less)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
