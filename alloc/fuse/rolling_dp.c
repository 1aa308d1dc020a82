/* rolling_dp.c - everything stays on chip, though not whole: which steps run
 * depth first with rings (rolling_rows.c), and how many rows they add at a
 * time.
 *
 * Input: alias classes, and the bytes of active memory. Output: cascades,
 * modes, a placement of all buffers; nothing is evicted. Method: dynamic
 * programming over the schedule. It is cut into stretches, each one step that
 * runs whole or a cascade. A stretch takes what is alive across it and the
 * rings of the cascade, all at the same time; it must fit. Of the ways that fit
 * the one that reads the fewest weights wins: each run of a node reads its
 * weights again. So nodes add as many rows at a time as fit, and what fits
 * whole stays whole.
 * Where transfers are to hide (Config.runs), the least time in which nothing
 * works but them comes before weights: what a stretch loads from outside and
 * stores there hides behind its other runs, so what is loaded is rolled with
 * many layers, in some runs of each.
 */
#include "alloc/cascade/cascade.h"
#include "alloc/fuse/fuse.h"
#include "alloc/fuse/stretches.h"
#include "alloc/geometry/tensor_bytes.h"
#include "alloc/live/live.h"
#include "plan/cost.h"

#include "base/arith.h"

/* Longer cascades than this, or twice this, are not looked at. */
enum { LONGEST = 32 };
/* Longer networks are searched less. */
enum { MANY_STEPS = 200 };

/* Cycles of a stretch's layers, and of what it moves. */
typedef struct Time {
    double work, moves;
} Time;

/* An alias class, from its first step to its last. */
typedef struct Whole {
    uint32_t first, last;
    bool outside;   /* it comes from there */
    uint64_t bytes; /* UINT64_MAX: no memory holds it */
} Whole;

typedef struct Search {
    const Facts *f;
    Decisions *d;
    Stretches x; /* prices: cycles, only if transfers are to hide, in which
                  * they are at work alone; elements of weights that are read */
    Whole *whole;
    uint32_t n_wholes;
    Time time; /* of the stretch that is looked at */
} Search;

/* What each alias class takes whole, found once. */
static void wholes_make(Search *s) {
    const Decisions *d = s->d;
    s->whole = ARENA_ARRAY(d->f->arena, Whole, d->alias.n + 1);
    for (uint32_t u = 0; u < d->alias.n; u++) {
        const AliasClass *alias = &d->alias.at[u];
        if (alias->dead || !alias->n_uses)
            continue;
        s->whole[s->n_wholes++] =
            (Whole){alias->use[0].step, alias->use[alias->n_uses - 1].step,
                    from_outside(d->f, alias->root),
                    least_bytes(d->f, alias->bytes, UINT32_MAX)};
    }
}

/* Bytes of the volumes that are there whole during steps [first, end), which
 * run as a cascade or are one step that runs whole. */
static uint64_t whole_bytes(const Search *s, uint32_t first, uint32_t end,
                            bool cascade) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < s->n_wholes; i++) {
        const Whole *alias = &s->whole[i];
        bool inner = alias->first >= first && alias->last < end;
        if (alias->last < first || alias->first >= end ||
            (cascade && (inner || alias->outside)))
            continue;
        if (alias->bytes == UINT64_MAX)
            return UINT64_MAX;
        sum += alias->bytes;
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

static uint64_t elements(const Facts *f, TensorId t) {
    Volume v = plan_volume(f->g, t);
    return (uint64_t)v.c * v.h * v.w;
}

/* Elements that the node loads from outside, which none of the steps from
 * `first` on before its own does, or stores there. */
static uint64_t passing(const Facts *f, uint32_t first, uint32_t step,
                        NodeId id) {
    const Node *node = graph_node(f->g, id);
    Cascade before = {.first = first, .end = step};
    uint64_t sum = 0;
    for (uint32_t k = 0; k < node->n_in; k++) {
        CascadeReaders r = cascade_readers(f, &before, node->in[k]);
        if (from_outside(f, node->in[k]) && !cascade_readers_next(&r))
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
        s->time.work += (double)engine_work(d->f, id);
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

static uint32_t runs_of(const Search *s, const Cascade *g) {
    return g->rows ? cascade_height(s->f, g) / g->rows : s->d->config->runs;
}

/* ---- stretches ---- */

static Price price_with(const Search *s, const Cascade *g, uint64_t weights) {
    double alone = s->d->config->runs ? waits(s, runs_of(s, g)) : 0;
    return (Price){alone, weights, 0};
}

static Price price_of(const void *context, const Cascade *g,
                      const RollCost *cost) {
    const Search *s = context;
    const HwSpec *spec = s->f->spec;
    uint64_t wasted =
        s->x.fills ? (uint64_t)bytes_during(spec, cost->wasted) / spec->element
                   : 0;
    Price price = price_with(s, g, roll_weights(s->d, cost) + wasted);
    price.again = cost->again;
    return price;
}

/* False if the rings alone are too large, as those of longer cascades then are.
 */
static bool cascade_try(Search *s, uint32_t first, uint32_t end) {
    uint64_t whole = whole_bytes(s, first, end, true);
    uint64_t total = beside_weights(s->d, first, end, s->f->total);
    RollCost cost;
    if (whole <= total)
        return stretch_roll(&s->x, first, end, total - whole, &cost) ||
               cost.bytes <= total;
    Cascade g = s->x.form;
    g.first = first;
    g.end = end;
    return stretch_rows(s->d, &g, 0, &cost) || cost.bytes <= total;
}

/* To hide more, unless that is looked at too often. */
static uint32_t longest(const Decisions *d) {
    bool more = d->config->runs && d->f->schedule->n_steps <= MANY_STEPS;
    return more ? 2 * LONGEST : LONGEST;
}

/* Whether its layers run whole: sums of one may have no room so. */
static bool runs_whole(const Decisions *d, uint32_t step) {
    const Step *s = &d->f->schedule->step[step];
    for (uint32_t k = 0; k < s->n; k++)
        if (on_engine(d->f, s->slot[k].node) &&
            d->mode[s->slot[k].node.i].kind == MODE_ROW_TILES)
            return false;
    return true;
}

/* Whole. */
static void offer_step(Search *s, uint32_t step) {
    Cascade g = {.first = step, .end = step + 1};
    stretch_offer(&s->x, &g, price_with(s, &g, step_weights(s->f, step)));
}

static void stretches_from(void *context, uint32_t first) {
    Search *s = context;
    uint32_t n = s->f->schedule->n_steps;
    time_add(s, first, first);
    if (runs_whole(s->d, first) &&
        whole_bytes(s, first, first + 1, false) <=
            beside_weights(s->d, first, first + 1, s->f->total))
        offer_step(s, first);
    if (!cascade_may_begin(s->d, first))
        return;
    for (uint32_t end = first + 1; end <= n && end <= first + longest(s->d);
         end++) {
        if (end > first + 1)
            time_add(s, first, end - 1);
        if (!cascade_may_hold(s->d, end - 1) || !cascade_try(s, first, end))
            return;
    }
}

/* False if there is no way through. */
static bool search(Decisions *d) {
    Search s = {.f = d->f, .d = d};
    s.x = (Stretches){.d = d,
                      .context = &s,
                      .from = stretches_from,
                      .price = price_of,
                      .most_again = most_again(d->f),
                      .form = {.rolls = true,
                               .stays = true,
                               .ahead = d->config->runs > 0,
                               .late = d->config->aims.hides}};
    wholes_make(&s);
    return stretches_cut(&s.x) && d->cascade.n > 0;
}

bool cascades_confirmed(const Decisions *d) {
    bool all = true;
    for (uint32_t i = 0; i < d->cascade.n; i++)
        if (d->cascade.at[i].rolls)
            all &= roll_confirm(d, &d->cascade.at[i]);
    return all;
}

/* Each round looks closely at cascades that it has not looked at. */
static bool rolling_choose(Decisions *d) {
    do
        if (!search(d))
            return false;
    while (!cascades_confirmed(d));
    return true;
}

/* Rows of a result come while those of the operand are still read. */
static void apart(Attempt *a) {
    for (TensorId t = {0}; t.i < a->f->g->tensor.n; t.i++)
        a->d.over[t.i] = NO_TENSOR;
    start_again(a);
}

bool fit_rolling(Attempt *a) {
    if (!a->f->spec->tiling.rows.rolls || a->f->kept)
        return false;
    apart(a);
    if (!rolling_choose(&a->d))
        return false;
    for (uint32_t i = 0; i < a->d.cascade.n; i++)
        cascade_modes(&a->d, i);
    cascades_refresh(&a->d);
    return fit_one_level(a);
}
