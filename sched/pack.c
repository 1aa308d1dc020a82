/* pack.c - steps of several nodes, by the machine's word on which engines run
 * beside which.
 *
 * In: a model, an order of it. Out: steps in which nothing waits for another
 * node of the same step. Each part between waists is searched by itself (see
 * pack_part.c); where that is too much, nodes that come later in the order are
 * pulled forward into steps, as long as the rest still stays within the bound.
 */
#include "sched/pack.h"

#include "base/vec.h"
#include "sched/parts.h"

#include <string.h>

static bool is_concat(const Model *m, uint32_t v) {
    return graph_node(m->g, m->node[v])->op == OP_CONCAT;
}

bool can_join(const Model *m, const uint32_t *step, uint32_t n, uint32_t node) {
    int32_t engine = m->legal[m->node[node].i].engine;
    bool joins = engine >= 0 && !is_concat(m, node);
    for (uint32_t i = 0; i < n && joins; i++) {
        int32_t other = m->legal[m->node[step[i]].i].engine;
        joins = other >= 0 && !is_concat(m, step[i]) &&
                (m->spec->engine[engine].beside >> other & 1);
    }
    return joins;
}

/* ---- along an order ---- */

/* An order that is being packed: what has run, what is still to come. */
typedef struct Line {
    Arena *arena;
    const Model *m;
    OrderState s;
    uint64_t bound;
    uint32_t look;  /* nodes that may be tried for a step */
    uint32_t n;     /* of `todo` */
    uint32_t *todo; /* in order */
    VEC(uint32_t) start;
    VEC(uint32_t) node;
} Line;

static bool is_ready(const Line *x, uint32_t v) {
    return x->s.ready[v / 64] >> v % 64 & 1;
}

/* Whether the step, and then the rest of the order, stay within the bound. */
static bool goes_well(Line *x, uint32_t n, const uint32_t *step) {
    uint32_t trail = x->s.n;
    bool well = order_run_step(&x->s, n, step) <= x->bound;
    for (uint32_t i = 0; i < x->n && well; i++) {
        uint32_t v = x->todo[i];
        if (!(x->s.done[v / 64] >> v % 64 & 1))
            well = order_run_step(&x->s, 1, &v) <= x->bound;
    }
    while (x->s.n > trail)
        order_undo(&x->s);
    return well;
}

static void put_step(Line *x, uint32_t n, const uint32_t *step) {
    vec_push(x->arena, &x->start, x->node.n);
    for (uint32_t i = 0; i < n; i++)
        vec_push(x->arena, &x->node, step[i]);
    order_run_step(&x->s, n, step);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < x->n; i++)
        if (!(x->s.done[x->todo[i] / 64] >> x->todo[i] % 64 & 1))
            x->todo[kept++] = x->todo[i];
    x->n = kept;
}

static void put_concats(Line *x) {
    uint32_t i = 0;
    while (i < x->n) {
        uint32_t v = x->todo[i++];
        if (!is_concat(x->m, v) || !is_ready(x, v))
            continue;
        put_step(x, 1, &v);
        i = 0;
    }
}

/* The next node of the order, with those behind it that may join. */
static void pack_next(Line *x) {
    uint32_t step[HW_MAX_ENGINES + 1] = {x->todo[0]}, n = 1, looked = 0;
    bool joins = can_join(x->m, NULL, 0, step[0]);
    for (uint32_t i = 1; i < x->n && joins && looked < x->look; i++) {
        uint32_t v = x->todo[i];
        if (!is_ready(x, v) || !can_join(x->m, step, n, v))
            continue;
        looked++;
        step[n] = v;
        if (goes_well(x, n + 1, step))
            n++;
    }
    put_step(x, n, step);
    put_concats(x);
}

static void pack_line(Line *x, uint32_t n, const uint32_t *node) {
    x->todo = ARENA_ARRAY(x->arena, uint32_t, n + 1);
    memcpy(x->todo, node, n * sizeof *node);
    x->n = n;
    put_concats(x);
    while (x->n)
        pack_next(x);
}

static Ordering line_ordering(Line *x, const OrderFacts *facts) {
    uint32_t n = x->start.n;
    vec_push(x->arena, &x->start, x->node.n);
    return (Ordering){n, x->start.at, x->node.at, *facts};
}

enum { LOOK_AHEAD = 4 };

static Ordering pack_within(Arena *arena, const Model *m, const uint32_t *order,
                            uint64_t bound, const OrderFacts *facts) {
    Line x = {.arena = arena,
              .m = m,
              .s = order_state(arena, m->p),
              .bound = bound,
              .look = LOOK_AHEAD};
    pack_line(&x, m->p->n_nodes, order);
    return line_ordering(&x, facts);
}

Ordering pack_along(Arena *arena, const Model *m, const Ordering *serial) {
    return pack_within(arena, m, serial->node, UINT64_MAX, &serial->facts);
}

/* ---- by search ---- */

enum { DEFAULT_MOVES = 200000 };

/* The bytes that a step may take: with PEAK those of the best serial order,
 * with TIME what does not spill. */
static uint64_t bound_for(SideBySide aim, uint64_t serial_peak,
                          const HwSpec *spec) {
    if (aim == SIDE_BY_SIDE_STEPS)
        return UINT64_MAX;
    uint64_t active =
        aim == SIDE_BY_SIDE_TIME ? hwspec_active_bytes(spec) : 0;
    return serial_peak > active ? serial_peak : active;
}

static const uint64_t *node_costs(Arena *arena, const Model *m,
                                  SideBySide aim) {
    uint64_t *cost = ARENA_ARRAY(arena, uint64_t, m->p->n_nodes + 1);
    for (uint32_t v = 0; v < m->p->n_nodes; v++)
        cost[v] = aim == SIDE_BY_SIDE_TIME ? model_cycles(m, v) : 1;
    return cost;
}

/* Packs one part; `serial`: its nodes in the order to fall back to. True if
 * nothing is better. */
static bool pack_one(Line *x, const PackPart *part, const uint32_t *serial,
                     uint64_t *least) {
    Packed packed = pack_part(x->arena, part, &x->s);
    *least += packed.least;
    if (!packed.found) {
        pack_line(x, part->n, serial);
        return false;
    }
    x->n = 0;
    for (uint32_t i = 0, at = 0; i < packed.n_steps; at += packed.size[i++])
        put_step(x, packed.size[i], packed.node + at);
    return true;
}

static uint64_t cost_of(const Ordering *o, const uint64_t *cost) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < o->n_steps; i++) {
        uint64_t most = 0;
        for (uint32_t k = o->start[i]; k < o->start[i + 1]; k++)
            most = cost[o->node[k]] > most ? cost[o->node[k]] : most;
        sum += most;
    }
    return sum;
}

static uint64_t peak_of(Arena *arena, const Model *m, const Ordering *o) {
    return order_steps_peak(arena, m->p, o->n_steps, o->start, o->node, NULL);
}

/* What the search could not prove may be beaten along a simple order. */
static void try_simple(Arena *arena, const PackPart *part, Ordering *best) {
    const Model *m = part->model;
    const uint32_t *order[] = {order_as_given(arena, m->p),
                               order_depth_first(arena, m->p)};
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t *node = order_concats(arena, m, order[i]);
        Ordering o = pack_within(arena, m, node, part->bound, &best->facts);
        uint64_t cost = cost_of(&o, part->cost);
        uint64_t least = cost_of(best, part->cost);
        uint64_t peak = peak_of(arena, m, &o);
        if (peak <= part->bound &&
            (cost < least || (cost == least && peak < peak_of(arena, m, best))))
            *best = o;
    }
}

/* Every order runs the parts one behind the other, so the part's nodes stand
 * together in the serial one. */
Ordering pack_search(Arena *arena, const OrderTask *task,
                     const Ordering *serial) {
    const Model *m = task->model;
    SideBySide aim = task->options->aim;
    Parts parts = parts_make(arena, m->p, NULL, NULL);
    PackPart part = {
        .model = m,
        .cost = node_costs(arena, m, aim),
        .bound = bound_for(
            aim, order_peak(arena, m->p, serial->node, NULL), m->spec),
        .budget =
            task->options->budget ? task->options->budget : DEFAULT_MOVES};
    Line x = {.arena = arena,
              .m = m,
              .s = order_state(arena, m->p),
              .bound = part.bound,
              .look = LOOK_AHEAD};
    bool proved = true;
    uint64_t least = 0;
    for (uint32_t i = 0; i < parts.n; i++) {
        part.node = parts.node + parts.start[i];
        part.n = parts.start[i + 1] - parts.start[i];
        proved &= pack_one(&x, &part, serial->node + parts.start[i], &least);
    }
    Ordering out = line_ordering(&x, &serial->facts);
    if (!proved)
        try_simple(arena, &part, &out);
    out.facts.least_cost = least;
    out.facts.cost_proved = cost_of(&out, part.cost) == least;
    return out;
}
