/* rolling_dp.c - everything stays on chip, though not whole: which steps run
 * depth first with rings (rolling_rows.c), and how many rows they add at a
 * time.
 *
 * Input: units, and the bytes of active memory. Output: groups, modes, a
 * placement of all buffers; nothing is evicted.
 * Method: dynamic programming over the schedule. It is cut into stretches, each
 * one step that runs whole or a group. A stretch takes what is alive across it
 * and the rings of the group, all at the same time; it must fit. Of the ways
 * that fit the one that reads the fewest weights wins: each run of a node reads
 * its weights again. So nodes add as many rows at a time as fit, and what fits
 * whole stays whole.
 * Where transfers are to hide (Config.runs), the least time in which nothing
 * works but them comes before weights: what a stretch loads from outside and
 * stores there hides behind its other runs, so what is loaded is rolled with
 * many layers, in some runs of each.
 */
#include "alloc/cascade/cascade.h"
#include "alloc/fuse/fuse.h"
#include "alloc/geometry/tensor_bytes.h"
#include "alloc/live/live.h"
#include "plan/cost.h"

#include "base/arith.h"

/* Longer groups than this, or twice this, are not looked at. */
/* Longer networks are searched less. */
enum { MANY_STEPS = 200 };
enum { LONGEST = 32 };

typedef struct Price {
    double waits;     /* cycles, only if transfers are to hide */
    uint64_t weights; /* elements that are read */
} Price;

typedef struct Cut {
    bool reached;
    Price price;    /* of all steps before this one */
    uint32_t first; /* of the stretch that ends here */
    uint32_t rows;  /* at a time; 0: whole */
    uint32_t cols;  /* at a time, with line buffers; 0: whole rows */
} Cut;

/* Cycles of a stretch's layers, and of what it moves. */
typedef struct Time {
    double work, moves;
} Time;

/* A unit, from its first step to its last. */
typedef struct Whole {
    uint32_t first, last;
    bool outside;   /* it comes from there */
    uint64_t bytes; /* UINT64_MAX: no memory holds it */
} Whole;

typedef struct Search {
    const Facts *f;
    Decisions *d;
    Cut *cut; /* by step, and behind the last */
    Whole *whole;
    uint32_t n_wholes;
    Rings rings;
    Time time; /* of the stretch that is looked at */
} Search;

/* What each unit takes whole, found once. */
static void wholes_make(Search *s) {
    const Decisions *d = s->d;
    s->whole = ARENA_ARRAY(d->f->arena, Whole, d->unit.n + 1);
    for (uint32_t u = 0; u < d->unit.n; u++) {
        const Unit *unit = &d->unit.at[u];
        if (unit->dead || !unit->n_touches)
            continue;
        s->whole[s->n_wholes++] =
            (Whole){unit->touch[0].step, unit->touch[unit->n_touches - 1].step,
                    from_outside(d->f, unit->root),
                    least_bytes(d->f, unit->bytes, UINT32_MAX)};
    }
}

/* Bytes of the volumes that are there whole during steps [first, end), which
 * run as a group or are one step that runs whole. */
static uint64_t whole_bytes(const Search *s, uint32_t first, uint32_t end,
                            bool group) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < s->n_wholes; i++) {
        const Whole *unit = &s->whole[i];
        bool inner = unit->first >= first && unit->last < end;
        if (unit->last < first || unit->first >= end ||
            (group && (inner || unit->outside)))
            continue;
        if (unit->bytes == UINT64_MAX)
            return UINT64_MAX;
        sum += unit->bytes;
    }
    return sum;
}

static uint64_t step_weights(const Facts *f, uint32_t step) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < f->schedule->step[step].n; i++)
        sum += node_weights(f, f->schedule->step[step].slot[i].node);
    return sum;
}

/* ---- time ---- */

static double node_cycles(const Facts *f, NodeId id) {
    Volume v = plan_volume(f->g, graph_node(f->g, id)->out[0]);
    Placement all = {.n_c = v.c};
    Plan plan = {.schedule = f->schedule, .placement = &all};
    Action whole = {.kind = ACTION_RUN,
                    .node = id,
                    .legal = f->legal[id.i],
                    .rows = v.h,
                    .cols = v.w};
    return on_engine(f, id) ? (double)action_cycles(&plan, &whole) : 0;
}

uint64_t network_cycles(const Facts *f) {
    uint64_t sum = 0;
    for (uint32_t step = 0; step < f->schedule->n_steps; step++) {
        const Step *s = &f->schedule->step[step];
        uint64_t most = 0;
        for (uint32_t i = 0; i < s->n; i++)
            most = larger(most, (uint64_t)node_cycles(f, s->slot[i].node));
        sum += most;
    }
    return sum;
}

static uint64_t elements(const Facts *f, TensorId t) {
    Volume v = plan_volume(f->g, t);
    return (uint64_t)v.c * v.h * v.w;
}

/* Elements that the node loads from outside, which none of the steps from
 * `first` on before its own does, or stores there. */
static uint64_t passing(const Facts *f, uint32_t first, uint32_t step,
                        NodeId id) {
    const Node *node = graph_node(f->g, id);
    Group before = {.first = first, .end = step};
    uint64_t sum = 0;
    for (uint32_t k = 0; k < node->n_in; k++) {
        GroupReaders r = group_readers(f, &before, node->in[k]);
        if (from_outside(f, node->in[k]) && !group_readers_next(&r))
            sum += elements(f, node->in[k]);
    }
    return sum +
           (f->role[node->out[0].i].outside ? elements(f, node->out[0]) : 0);
}

/* Adds a step to the stretch that begins at `first`. */
static void time_add(Search *s, uint32_t first, uint32_t step) {
    const Decisions *d = s->d;
    if (step == first)
        s->time = (Time){0, 0};
    for (uint32_t i = 0; d->config->runs && i < d->f->schedule->step[step].n;
         i++) {
        NodeId id = d->f->schedule->step[step].slot[i].node;
        double bytes =
            (double)passing(d->f, first, step, id) * d->f->spec->element;
        s->time.work += node_cycles(d->f, id);
        s->time.moves += bytes_seconds(d->f->spec, bytes) * d->f->spec->clock;
    }
}

/* Cycles in which transfers of the stretch are at work alone: what is too much
 * for its runs, and what comes before the first or behind the last. */
static double waits(const Search *s, uint32_t runs) {
    const Time *t = &s->time;
    uint32_t most = s->d->config->runs;
    double hidden = t->moves < t->work ? t->moves : t->work;
    runs = runs < 1 ? 1 : runs > most ? most : runs;
    return t->moves - hidden + hidden / runs;
}

static uint32_t runs_of(const Search *s, const Group *g) {
    return g->rows ? group_height(s->f, g) / g->rows : s->d->config->runs;
}

/* ---- stretches ---- */

static bool cheaper(Price a, Price b) {
    return a.waits != b.waits ? a.waits < b.waits : a.weights < b.weights;
}

/* Of all that comes before the group's end, with so many runs of it. */
static Price price_with(const Search *s, const Group *g, uint32_t runs,
                        uint64_t weights) {
    Price price = s->cut[g->first].price;
    price.weights += weights;
    price.waits += s->d->config->runs ? waits(s, runs) : 0;
    return price;
}

static bool is_cheapest(const Search *s, const Group *g, Price price) {
    const Cut *cut = &s->cut[g->end];
    return !cut->reached || cheaper(price, cut->price);
}

static void offer(Search *s, const Group *g, uint64_t weights) {
    Price price = price_with(s, g, runs_of(s, g), weights);
    if (is_cheapest(s, g, price))
        s->cut[g->end] = (Cut){true, price, g->first, g->rows, g->cols};
}

/* Whether it fits, but is no cheaper than what is known. */
static bool is_beaten(const Search *s, const Group *g, uint64_t bytes) {
    RollCost least;
    return roll_fits(s->d, *g, bytes, &least) &&
           !is_cheapest(s, g,
                        price_with(s, g, s->d->config->runs, least.weights));
}

/* False if the rings alone are too large, as those of longer groups then are.
 */
static bool group_try(Search *s, uint32_t first, uint32_t end) {
    uint64_t whole = whole_bytes(s, first, end, true);
    uint64_t total = s->f->total;
    Group g = {.first = first,
               .end = end,
               .rolls = true,
               .stays = true,
               .ahead = s->d->config->runs > 0};
    RollCost cost;
    bool fits = whole <= total;
    if (fits && is_beaten(s, &g, total - whole))
        return true;
    g.rows = roll_rows(s->d, g, fits ? total - whole : 0, &cost);
    if (!g.rows && hwspec_by_columns(s->f->spec))
        g.rows = g.cols =
            roll_columns(s->d, g, fits ? total - whole : 0, &cost);
    if (g.rows && fits)
        offer(s, &g, cost.weights);
    return g.rows || cost.bytes <= total;
}

/* To hide more, unless that is looked at too often. */
static uint32_t longest(const Decisions *d) {
    bool more = d->config->runs && d->f->schedule->n_steps <= MANY_STEPS;
    return more ? 2 * LONGEST : LONGEST;
}

static void stretches_from(Search *s, uint32_t first) {
    uint32_t n = s->f->schedule->n_steps;
    time_add(s, first, first);
    if (whole_bytes(s, first, first + 1, false) <= s->f->total)
        offer(s, &(Group){.first = first, .end = first + 1},
              step_weights(s->f, first));
    if (!group_may_begin(s->d, first))
        return;
    for (uint32_t end = first + 1; end <= n && end <= first + longest(s->d);
         end++) {
        if (end > first + 1)
            time_add(s, first, end - 1);
        if (!group_may_hold(s->d, end - 1) || !group_try(s, first, end))
            return;
    }
}

static void groups_follow(Decisions *d, const Cut *cut) {
    d->group.n = 0;
    for (uint32_t end = d->f->schedule->n_steps; end > 0; end = cut[end].first)
        if (cut[end].rows)
            vec_push(d->f->arena, &d->group,
                     ((Group){.first = cut[end].first,
                              .end = end,
                              .rows = cut[end].rows,
                              .cols = cut[end].cols,
                              .rolls = true,
                              .stays = true,
                              .ahead = d->config->runs > 0}));
}

/* False if there is no way through. */
static bool search(Decisions *d) {
    uint32_t n = d->f->schedule->n_steps;
    Search s = {.f = d->f, .d = d, .cut = ARENA_ARRAY(d->f->arena, Cut, n + 1)};
    wholes_make(&s);
    s.cut[0].reached = true;
    for (uint32_t step = 0; step < n; step++)
        if (s.cut[step].reached)
            stretches_from(&s, step);
    if (s.cut[n].reached)
        groups_follow(d, s.cut);
    return s.cut[n].reached && d->group.n > 0;
}

bool groups_confirmed(const Decisions *d) {
    bool all = true;
    for (uint32_t i = 0; i < d->group.n; i++)
        if (d->group.at[i].rolls)
            all &= roll_confirm(d, &d->group.at[i]);
    return all;
}

/* Each round looks closely at groups that it has not looked at. */
static bool rolling_choose(Decisions *d) {
    do
        if (!search(d))
            return false;
    while (!groups_confirmed(d));
    return true;
}

static void modes_set(Decisions *d) {
    for (uint32_t i = 0; i < d->group.n; i++) {
        const Group *g = &d->group.at[i];
        for (uint32_t k = 0; k < g->end - g->first; k++)
            d->mode[group_node(d->f, g, k).i] = (Mode){.kind = MODE_GROUP,
                                                       .streams_in = true,
                                                       .streams_out = true,
                                                       .style = -1,
                                                       .group = i};
    }
    for (uint32_t i = 0; i < d->group.n; i++)
        for (uint32_t s = d->group.at[i].first; s < d->group.at[i].end; s++)
            touches_refresh(d, s);
}

/* Rows of a result come while those of the operand are still read. */
static void apart(Attempt *a) {
    for (TensorId t = {0}; t.i < a->f->g->tensor.n; t.i++)
        a->d.over[t.i] = NO_TENSOR;
    start_again(a);
}

bool fit_rolling(Attempt *a) {
    if (!a->f->spec->tiling.rows.rolls)
        return false;
    apart(a);
    if (!rolling_choose(&a->d))
        return false;
    modes_set(&a->d);
    return fit_one_level(a);
}
