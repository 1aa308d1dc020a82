/* test_bound.c - no plan moves less than what is said that it must. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "alloc/bound/bound.h"
#include "alloc/search/search.h"
#include "tests/alloc/case.h"
#include "tests/effort.h"

/* Branches of one tensor that meet in a wide concat, again and again. */
static Graph *fans(Arena *arena, Diag *diag, uint64_t seed) {
    RandomNet r = {.g = graph_new(arena, "fans"), .diag = diag, .seed = seed};
    TensorId x = net_input(r.g, 1 + net_draw(&r, 6), 8, 8);
    for (uint32_t fan = 0, n = 0; fan < 2; fan++) {
        TensorId member[8];
        uint32_t wide = 3 + net_draw(&r, 6);
        for (uint32_t i = 0; i < wide; i++) {
            uint32_t k = 1 + 2 * net_draw(&r, 2);
            TensorId in = i && !net_draw(&r, 3) ? member[i - 1] : x;
            member[i] = net_conv(r.g, diag, arena_printf(arena, "n%u", n++), in,
                                 1 + net_draw(&r, 8), k, 1, 1, k / 2);
            if (!net_draw(&r, 8))
                graph_mark_output(r.g, member[i]);
        }
        x = net_concat(r.g, diag, arena_printf(arena, "n%u", n++), wide,
                       member);
        x = net_conv(r.g, diag, arena_printf(arena, "n%u", n++), x,
                     1 + net_draw(&r, 8), 1, 1, 1, 0);
    }
    graph_mark_output(r.g, x);
    return r.g;
}

/* It shrinks and grows again, with sums of what there was before. */
static Graph *hourglass(Arena *arena, Diag *diag, uint64_t seed) {
    enum { LEVELS = 3 };
    RandomNet r = {.g = graph_new(arena, "glass"), .diag = diag, .seed = seed};
    TensorId x = net_input(r.g, 1 + net_draw(&r, 3), 32, 32), skip[LEVELS];
    uint32_t wide = 2 + net_draw(&r, 3);
    for (uint32_t i = 0; i < LEVELS; i++) {
        skip[i] = net_conv(r.g, diag, arena_printf(arena, "down%u", i), x, wide,
                           3, 1, 1, 1);
        x = net_pool(r.g, diag, arena_printf(arena, "pool%u", i), skip[i], 2, 2,
                     0);
    }
    for (uint32_t i = LEVELS; i-- > 0;) {
        x = net_conv(r.g, diag, arena_printf(arena, "conv%u", i), x, wide, 3, 1,
                     1, 1);
        x = net_upsample(r.g, diag, arena_printf(arena, "up%u", i), x, 2);
        x = net_add(r.g, diag, arena_printf(arena, "sum%u", i), x, skip[i]);
    }
    graph_mark_output(r.g, x);
    return r.g;
}

typedef const Plan *Planning(Arena *, Diag *, const HwSpec *, const Graph *,
                             bool *);

typedef struct Count {
    uint32_t found, more;
} Count;

typedef Graph *Building(Arena *, Diag *, uint64_t seed);

static Graph *any_net(Arena *arena, Diag *diag, uint64_t seed) {
    return net_random(arena, diag, seed, 12, 33);
}

/* Plans of the network for several sizes of a machine; NULL: the toy. */
static void hold(const char *machine, Planning *planning, uint64_t seed,
                 Building *build, uint64_t step, Count *count) {
    for (uint64_t size = step; size <= 20 * step; size += 2 * step) {
        Arena *arena = arena_new("bounds");
        Diag *diag = diag_new(arena);
        bool does_not_fit;
        const HwSpec *spec =
            machine ? net_machine(arena, diag, machine, net_size(arena, size))
                    : &toy_new(arena, size, 1)->spec;
        const Graph *g = build(arena, diag, seed);
        const Plan *plan = planning(arena, diag, spec, g, &does_not_fit);
        if (plan) {
            const uint64_t *bound = plan->ddr_bound;
            uint64_t once = bound[PLAN_BOUND_ONCE];
            for (uint32_t i = 0; i < PLAN_BOUNDS; i++)
                assert_true(bound[PLAN_BOUND_ANY] <= bound[i]);
            assert_true(once <= bound[PLAN_BOUND_LAYERS]);
            assert_true(bound[PLAN_BOUND_ORDER] <= bound[PLAN_BOUND_LAYERS]);
            assert_true(bound[PLAN_BOUND_ORDER] <= plan->ddr_moved);
            assert_true(bound[PLAN_BOUND_APART] <= plan->ddr_moved);
            assert_true(once <= plan->ddr_moved + 2 * plan->ddr_again);
            if (planning == net_plan_layers)
                assert_true(bound[PLAN_BOUND_LAYERS] <= plan->ddr_moved);
            count->found++;
            for (uint32_t i = 1; i < PLAN_BOUND_LAYERS; i++)
                if (bound[i] > bound[PLAN_BOUND_ANY]) {
                    count->more++;
                    break;
                }
        }
        arena_free(arena);
    }
}

/* Members of a concat leave one by one, once each. */
static void layers_hold(void **state) {
    (void)state;
    Count count = {0};
    for (uint64_t seed = 1; seed <= cases_of(60, 20); seed++)
        hold(NULL, net_plan_layers, seed, fans, 200, &count);
    for (uint64_t seed = 1; seed <= cases_of(20, 4); seed++)
        hold(NULL, net_plan_layers, seed, any_net, 4000, &count);
    assert_true(count.found > 100);
}

/* Where an instruction runs a layer, all plans are layer by layer. */
static void hardware_holds(void **state) {
    (void)state;
    Count count = {0};
    for (uint64_t seed = 1; seed <= cases_of(3, 1); seed++)
        hold("tile-npu", net_plan_only, seed, fans, 256, &count);
    hold("xdnn-v3-96", net_plan_only, 1, any_net, 65536, &count);
    print_message("%u plans, %u with more than what is compulsory\n",
                  count.found, count.more);
    assert_true(count.more > cases_of(5, 2));
}

/* Where rows roll, or stripes run in cascades. */
static void rolling_holds(void **state) {
    (void)state;
    Count count = {0};
    for (uint64_t seed = 1; seed <= cases_of(3, 1); seed++) {
        hold("ring-npu", net_plan_only, seed, any_net, 2048, &count);
        hold(NULL, net_plan_only, seed, fans, 150, &count);
        hold(NULL, net_plan_only, seed, hourglass, 300, &count);
        hold("ring-npu", net_plan_only, seed, hourglass, 256, &count);
        hold(NULL, net_plan_only, seed, any_net, 3000, &count);
    }
    print_message("%u plans, %u with more than what is compulsory\n",
                  count.found, count.more);
    assert_true(count.found > cases_of(50, 15));
    assert_true(count.more > cases_of(5, 2));
}

/* Rows that no window meets need not be loaded. */
static void not_all_enters(void **state) {
    (void)state;
    Case c = case_new(1 << 16);
    TensorId x = net_input(c.g, 2, 9, 9);
    graph_mark_output(c.g, net_pool(c.g, c.diag, "half", x, 1, 4, 0));
    assert_int_equal(case_plan(&c)->ddr_bound[PLAN_BOUND_ANY],
                     2 * 3 * 3 + 2 * 3 * 3);
    arena_free(c.arena);
}

/* ---- brute force ---- */

/* All ways to make the rows of a network, each once: where a row is, as a
 * digit. */
typedef enum Where { NOT_YET, INSIDE, TWICE, OUTSIDE, GONE, WHERES } Where;
enum { MOST_ROWS = 9, COSTS = 256 };

typedef struct Row {
    uint32_t bytes;
    uint32_t from; /* rows that it is made from: bits; 0: it is loaded */
    bool result;
} Row;

typedef struct Sweep {
    uint32_t n, capacity;
    Row row[MOST_ROWS];
    Arena *arena;
    VEC(uint32_t) queue[COSTS]; /* states, by cost */
    uint8_t *seen;
} Sweep;

static void reach_state(Sweep *s, const uint8_t *where, uint32_t cost) {
    uint32_t code = 0, inside = 0;
    for (uint32_t r = s->n; r-- > 0;) {
        code = code * WHERES + where[r];
        bool in = where[r] == INSIDE || where[r] == TWICE;
        inside += in ? s->row[r].bytes : 0;
    }
    if (inside > s->capacity || cost >= COSTS || s->seen[code])
        return;
    vec_push(s->arena, &s->queue[cost], code);
}

/* A result may take the place of what it is made from. */
static void make_row(Sweep *s, uint8_t *where, uint32_t r, uint32_t cost) {
    uint32_t from = s->row[r].from;
    for (uint32_t i = 0; i < s->n; i++)
        if (from >> i & 1 && where[i] != INSIDE && where[i] != TWICE)
            return;
    where[r] = INSIDE;
    reach_state(s, where, cost);
    for (uint32_t i = 0; i < s->n; i++) {
        uint8_t was = where[i];
        if (!(from >> i & 1))
            continue;
        where[i] = was == INSIDE ? GONE : OUTSIDE;
        reach_state(s, where, cost);
        where[i] = was;
    }
    where[r] = NOT_YET;
}

static void go_on(Sweep *s, uint8_t *where, uint32_t cost) {
    for (uint32_t r = 0; r < s->n; r++) {
        uint8_t was = where[r];
        if (was == NOT_YET && s->row[r].from) {
            make_row(s, where, r, cost);
            continue;
        }
        if (was == INSIDE) {
            where[r] = GONE;
            reach_state(s, where, cost);
        }
        where[r] = was == INSIDE ? TWICE : was == TWICE ? OUTSIDE : TWICE;
        if (was != NOT_YET && was != GONE)
            reach_state(s, where, cost + (was == TWICE ? 0 : s->row[r].bytes));
        where[r] = was;
    }
}

/* Fewest bytes that move; COSTS if there is no way. */
static uint32_t search(Sweep *s) {
    uint32_t states = 1, found = COSTS;
    uint8_t where[MOST_ROWS] = {0};
    for (uint32_t r = 0; r < s->n; r++) {
        states *= WHERES;
        where[r] = s->row[r].from ? NOT_YET : OUTSIDE;
    }
    s->seen = ARENA_ARRAY(s->arena, uint8_t, states);
    reach_state(s, where, 0);
    for (uint32_t cost = 0; cost < COSTS && found == COSTS; cost++)
        for (uint32_t i = 0; i < s->queue[cost].n && found == COSTS; i++) {
            uint32_t code = s->queue[cost].at[i], left = code;
            bool done = true;
            for (uint32_t r = 0; r < s->n; r++, left /= WHERES) {
                where[r] = (uint8_t)(left % WHERES);
                done &= !s->row[r].result || where[r] == TWICE ||
                        where[r] == OUTSIDE;
            }
            if (done)
                found = cost;
            else if (!s->seen[code])
                go_on(s, where, cost);
            s->seen[code] = 1;
        }
    return found;
}

static uint32_t tensor_index(const RandomNet *r, TensorId t) {
    uint32_t k = 0;
    while (!same_tensor(r->pool[k], t))
        k++;
    return k;
}

/* Adds `from`, of which each row needs its own, or `all`. */
static void rows_add(Sweep *s, uint32_t high, uint32_t first, uint32_t from,
                     bool all) {
    for (uint32_t k = 0; k < high; k++)
        s->row[first + k].from |=
            all ? ((1u << high) - 1) << from : 1u << (from + k);
}

static uint32_t tiny_pick(RandomNet *r, uint32_t among) {
    return r->n - 1 - net_draw(r, r->n < among ? r->n : among);
}

/* Convolutions and sums that reach back, of tensors of one or two rows; `high`
 * rows of the search for each of them. */
static void tiny(Case *c, uint64_t seed, uint32_t high, Sweep *s) {
    RandomNet r = {.g = c->g, .diag = c->diag, .seed = seed};
    r.pool[r.n++] = net_input(c->g, 1 + net_draw(&r, 3), high, 2);
    for (; s->n + high <= MOST_ROWS; s->n += high) {
        uint32_t in = tiny_pick(&r, 2), k = 1 + 2 * net_draw(&r, 2);
        const char *name = arena_printf(c->arena, "n%u", r.n);
        TensorId other = r.n > 4 && net_draw(&r, 3)
                             ? net_partner(&r, r.pool[in], true)
                             : NO_TENSOR;
        TensorId made = r.pool[0];
        if (s->n && other.i != NONE)
            made = net_add(c->g, c->diag, name, r.pool[in], other);
        else if (s->n)
            made = net_conv(c->g, c->diag, name, r.pool[in],
                            2 + 2 * net_draw(&r, 2), k, 1, 1, k / 2);
        for (uint32_t i = 0; i < high; i++)
            s->row[s->n + i].bytes = 2 * plan_volume(c->g, made).c;
        if (!s->n)
            continue;
        rows_add(s, high, s->n, in * high, other.i == NONE && k > 1);
        if (other.i != NONE)
            rows_add(s, high, s->n, tensor_index(&r, other) * high, false);
        r.pool[r.n++] = made;
    }
    Uses uses = graph_uses(c->arena, c->g);
    for (uint32_t i = 1; i < r.n; i++)
        if (uses.start[r.pool[i].i] == uses.start[r.pool[i].i + 1]) {
            graph_mark_output(c->g, r.pool[i]);
            for (uint32_t k = 0; k < high; k++)
                s->row[i * high + k].result = true;
        }
}

/* Rows lie each by itself here; where they cannot, see test_paths.c. */
static void none_moves_less(void **state) {
    (void)state;
    uint32_t compared = 0, equal = 0, more = 0;
    for (uint64_t seed = 1; seed <= cases_of(50, 20); seed++)
        for (uint32_t am = 8; am <= 28; am += 4) {
            Case c = case_new(am);
            Sweep s = {.capacity = am, .arena = c.arena};
            tiny(&c, seed, 1 + seed % 2, &s);
            PlanOptions options = {.planner = "auto"};
            Plan plan = {0};
            const Schedule *schedule =
                sched_run(c.arena, c.diag, &c.toy->spec, c.g, "file");
            const Attempt *a = attempt_new(c.arena, schedule, &c.toy->spec,
                                           &options, NULL, NULL);
            BaseTensors leaves;
            bound_make(&a->d, &plan);
            assert_true(base_tensors_make(a->f, &leaves));
            uint64_t once = plan.ddr_bound[PLAN_BOUND_ANY] +
                            (uint64_t)cuts_bound(a->f, &leaves);
            uint32_t least = search(&s);
            assert_true(once <= least);
            compared += least < COSTS;
            equal += once == least;
            more += least < COSTS && once > plan.ddr_bound[PLAN_BOUND_ANY];
            arena_free(c.arena);
        }
    print_message("%u networks, %u bounds are what is least, %u more than "
                  "what is compulsory\n",
                  compared, equal, more);
    assert_true(compared > 50 && more > cases_of(5, 1));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(none_moves_less), cmocka_unit_test(not_all_enters),
        cmocka_unit_test(rolling_holds),   cmocka_unit_test(layers_hold),
        cmocka_unit_test(hardware_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
