/* cascade_dp.c - which steps run depth first, and how high their stripes are.
 *
 * Input: alias classes, and the bytes of active memory that a cascade may take.
 * Output: cascades. Method: dynamic programming over the schedule. It is cut
 * into stretches; each is either kept (all its volumes stay in active memory
 * from their first touch to their last) or a cascade. What is needed behind a
 * stretch is stored once, what is needed from before it is loaded once, or, by
 * a cascade, stripe by stripe with its halo. Fewest bytes win, then the least
 * work. The price of kept stretches is an estimate from above: greedy.c finds
 * what stays. Stripes are as high as fits: higher ones move and compute less
 * twice. Where a machine holds few instructions, each counts like some bytes.
 */
#include "alloc/cascade/cascade.h"
#include "alloc/fuse/fuse.h"
#include "alloc/fuse/stretches.h"
#include "alloc/geometry/tensor_bytes.h"
#include "alloc/live/live.h"
#include "alloc/spill/spill.h"

/* So many that do not fit, one longer than the other, are the last. */
enum { GIVE_UP = 3 };

/* `weights`: elements that are read, again and again by what runs in parts. */
static Price price_of(const Decisions *d, uint64_t moved, uint64_t weights,
                      uint64_t work) {
    if (weights_count(d))
        return (Price){(double)(moved + weights * d->f->spec->element), work,
                       0};
    return (Price){(double)moved,
                   d->f->spec->tiling.rows.rolls ? weights : work, 0};
}

/* A touch of an alias class, and what it means for a kept stretch. */
typedef struct At {
    uint64_t bytes; /* that the alias class takes from the touch before it on */
    uint64_t moved; /* if it comes or goes whole */
    uint32_t since; /* behind the step of the touch before; `opens`: its own */
    uint32_t made;  /* the step of the alias class's first touch */
    bool opens;     /* is that */
    bool stays;     /* the alias class lies in active memory */
    bool loads;     /* unless it is in the stretch already */
    bool adds, ends; /* it is needed behind the step, or no longer */
} At;

typedef struct Search {
    const Facts *f;
    Decisions *d;
    uint64_t budget;
    uint64_t room;    /* of it, of the cascade that is looked at */
    bool exact;       /* look at all stripes */
    Stretches x;      /* prices: bytes moved, products */
    At *at;           /* uses ordered by step */
    uint32_t *at_end; /* by step: behind its uses */
    uint64_t *live;   /* by step: of the stretch that is looked at */
    Price *own;       /* by step: of what it runs */
} Search;

/* ---- kept stretches ---- */

static At at_of(const Facts *f, const AliasClass *alias, uint32_t i) {
    const Use *use = &alias->use[i];
    bool outside = f->role[alias->root.i].outside,
         last = i + 1 == alias->n_uses;
    bool comes = from_outside(f, alias->root), made = !alias->dead && !comes;
    return (At){.bytes = least_bytes(f, alias->bytes, use->memories),
                .moved = moved_bytes(f, alias->root),
                .since = i ? alias->use[i - 1].step + 1 : use->step,
                .made = alias->use[0].step,
                .opens = i == 0,
                .stays = !alias->dead && (use->whole || use->stream),
                .loads = i > 0 || comes,
                .adds = made && i == 0 && (outside || !last),
                .ends = made && i > 0 && last && !outside};
}

static void uses_by_step(Search *s) {
    Decisions *d = s->d;
    uint32_t n = d->f->schedule->n_steps, total = 0;
    uint32_t *fill = ARENA_ARRAY(d->f->arena, uint32_t, n + 2);
    s->at_end = ARENA_ARRAY(d->f->arena, uint32_t, n + 1);
    for (uint32_t u = 0; u < d->alias.n; u++)
        for (uint32_t i = 0; i < d->alias.at[u].n_uses; i++, total++)
            fill[d->alias.at[u].use[i].step + 1]++;
    for (uint32_t i = 0; i < n; i++)
        s->at_end[i] = fill[i + 1] += fill[i];
    s->at = ARENA_ARRAY(d->f->arena, At, total + 1);
    for (uint32_t u = 0; u < d->alias.n; u++) {
        const AliasClass *alias = &d->alias.at[u];
        for (uint32_t i = 0; i < alias->n_uses; i++)
            s->at[fill[alias->use[i].step]++] = at_of(d->f, alias, i);
    }
}

/* Adds a touch to the stretch that starts at `first`; false if it does not fit
 * then. */
static bool keep_use(Search *s, uint32_t first, uint32_t step, const At *at,
                     Price *price) {
    bool inside = !at->opens && at->since > first;
    if (!at->stays)
        return true;
    if (at->bytes > s->budget)
        return false;
    if (!inside && at->loads)
        price->first += (double)at->moved;
    for (uint32_t i = inside ? at->since : step; i <= step; i++) {
        s->live[i] += at->bytes;
        if (s->live[i] > beside_weights(s->d, i, i + 1, s->budget))
            return false;
    }
    return true;
}

/* Adds to what was made since step `first` and is needed behind the touch,
 * takes away what is not any more. */
static void stored_after(uint32_t first, const At *at, uint64_t *stored) {
    if (at->adds)
        *stored += at->moved;
    if (at->ends && at->made >= first)
        *stored -= at->moved;
}

/* Of kept steps. */
static void offer(Search *s, uint32_t first, uint32_t end, Price own) {
    stretch_offer(&s->x, &(Cascade){.first = first, .end = end}, own);
}

static void keep_from(Search *s, uint32_t first) {
    uint32_t n = s->f->schedule->n_steps;
    Price price = {0};
    uint64_t stored = 0;
    for (uint32_t step = first; step < n; step++)
        s->live[step] = 0;
    for (uint32_t step = first; step < n; step++) {
        uint32_t from = step ? s->at_end[step - 1] : 0;
        for (uint32_t i = from; i < s->at_end[step]; i++) {
            if (!keep_use(s, first, step, &s->at[i], &price))
                return;
            stored_after(first, &s->at[i], &stored);
        }
        price = price_sum(price, s->own[step]);
        Price all = price;
        all.first += (double)stored;
        offer(s, first, step + 1, all);
    }
}

/* ---- cascades ---- */

/* Between lo, which takes lo_bytes, and hi, which takes hi_bytes: where a line
 * meets the budget. */
static uint32_t guess(uint64_t budget, uint32_t lo, uint64_t lo_bytes,
                      uint32_t hi, uint64_t hi_bytes) {
    double part =
        hi_bytes == UINT64_MAX || hi_bytes <= lo_bytes
            ? 0.5
            : (double)(budget - lo_bytes) / (double)(hi_bytes - lo_bytes);
    uint32_t at = lo + (uint32_t)(part * (hi - lo));
    return at <= lo ? lo + 1 : at >= hi ? hi - 1 : at;
}

/* For the stripe in the middle; UINT64_MAX if it cannot be computed. */
static uint64_t middle_bytes(const Facts *f, const Cascade *g) {
    CascadeCost cost;
    return cascade_cost(f, g, STRIPES_MIDDLE, &cost) ? cost.peak : UINT64_MAX;
}

/* The highest stripes of which one in the middle fits; 0 if none do. */
static uint32_t highest(const Search *s, Cascade g) {
    const Facts *f = s->f;
    NodeId last = cascade_node(f, &g, g.end - g.first - 1);
    uint32_t h = g.rolls ? cascade_height(f, &g)
                         : plan_volume(f->g, graph_node(f->g, last)->out[0]).h;
    uint32_t lo = 0, hi = h + 1;
    uint64_t lo_bytes = 0, hi_bytes = UINT64_MAX;
    for (g.rows = 1; lo + 1 < hi;
         g.rows = guess(s->room, lo, lo_bytes, hi, hi_bytes)) {
        uint64_t bytes = middle_bytes(f, &g);
        if (bytes <= s->room) {
            lo = g.rows;
            lo_bytes = bytes;
        } else {
            hi = g.rows;
            hi_bytes = bytes;
        }
        if (!lo)
            return 0;
        if (lo == 1 && hi == h + 1) {
            g.rows = h;
            hi_bytes = middle_bytes(f, &g);
            if (hi_bytes <= s->room)
                return h;
            hi = h;
        }
    }
    uint32_t n = (h + lo - 1) / lo;
    return (h + n - 1) / n;
}

static Price price_of_rolling(const void *context, const Cascade *g,
                              const RollCost *cost) {
    const Search *s = context;
    (void)g;
    uint64_t wasted =
        s->x.fills ? (uint64_t)bytes_during(s->f->spec, cost->wasted) : 0;
    Price price =
        price_of(s->d, cost->moved + wasted, roll_weights(s->d, cost), 0);
    price.again = cost->again;
    return price;
}

static uint64_t stripes_weights(const Facts *f, const Cascade *g) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < cascade_length(g); i++)
        sum += node_weights(f, cascade_node(f, g, i));
    return sum * cascade_stripes(f, g);
}

static Price price_of_cascade(const Search *s, const Cascade *g,
                              const CascadeCost *cost) {
    const Decisions *d = s->d;
    uint64_t once = 0,
             moved = cost->moved + d->config->lambda_insn * cost->instructions;
    for (uint32_t i = g->first; i < g->end; i++)
        once += s->own[i].second;
    if (d->config->lambda_recompute && cost->work > once)
        moved += (cost->work - once) / d->config->lambda_recompute;
    Price price = price_of(d, moved, stripes_weights(d->f, g), cost->work);
    if (d->f->options->recompute > 0 && cost->work > once)
        price.again = cost->work - once;
    return price;
}

static uint32_t rows_that_fit(const Search *s, Cascade g, CascadeCost *cost) {
    StripesLook look = s->exact ? STRIPES_ALL : STRIPES_THREE;
    g.rows = highest(s, g);
    for (uint32_t tries = 0; g.rows && tries < 3; tries++, g.rows--)
        if (cascade_cost(s->f, &g, look, cost) && cost->peak <= s->room)
            return g.rows;
    return 0;
}

/* Ways that differ in what they weigh ask for the same cascades. */
static const StripesFit *fit_of(const Search *s, const Cascade *g) {
    StripesFit *fit = stripes_fit(s->f, g, CASCADE_STEPS_LONGER);
    uint64_t size = s->f->spec->memory[0].size;
    if (fit->is && fit->budget == s->room && fit->size == size &&
        fit->exact == s->exact)
        return fit;
    *fit = (StripesFit){
        .budget = s->room, .size = size, .is = true, .exact = s->exact};
    fit->rows = rows_that_fit(s, *g, &fit->cost);
    return fit;
}

static bool cascade_try(Search *s, Cascade g) {
    const StripesFit *fit = fit_of(s, &g);
    g.rows = fit->rows;
    if (g.rows)
        stretch_offer(&s->x, &g, price_of_cascade(s, &g, &fit->cost));
    return g.rows > 0;
}

static bool cascade_from(Search *s, uint32_t first, uint32_t end) {
    Cascade g = {.first = first, .end = end};
    bool fits = cascade_try(s, g);
    cascade_share(s->f, &g);
    return (g.n_shared && cascade_try(s, g)) || fits;
}

bool cascade_has_loose_end(const Decisions *d, uint32_t first, uint32_t end) {
    const Facts *f = d->f;
    Cascade g = {.first = first, .end = end};
    for (uint32_t i = 0; i + 1 < end - first; i++) {
        NodeId id = cascade_node(f, &g, i);
        TensorId t = graph_node(f->g, id)->out[0];
        if ((!d->config->loose || is_placed(f, id)) &&
            cascade_last_use(f, &g, t) == first + i)
            return true;
    }
    return false;
}

static void cascades_from(Search *s, uint32_t first) {
    bool rings = s->f->spec->tiling.rows.rolls;
    uint32_t n = s->f->schedule->n_steps, failed = 0;
    uint32_t longest = config_longest(s->d->config);
    if (!cascade_may_begin(s->d, first))
        return;
    for (uint32_t end = first + 1; end <= n && end <= first + longest; end++) {
        if (!cascade_may_hold(s->d, end - 1))
            return;
        if (!rings && cascade_has_loose_end(s->d, first, end))
            continue;
        RollCost cost;
        s->room = beside_weights(s->d, first, end, s->budget);
        bool fits = rings ? stretch_roll(&s->x, first, end, s->room, &cost)
                          : cascade_from(s, first, end);
        failed = fits ? 0 : failed + 1;
        if (failed == GIVE_UP)
            return;
    }
}

/* ---- the best way through ---- */

static void own_by_step(Search *s) {
    Decisions *d = s->d;
    for (uint32_t i = 0; i < d->f->schedule->n_steps; i++)
        for (uint32_t k = 0; k < d->f->schedule->step[i].n; k++) {
            NodeId id = d->f->schedule->step[i].slot[k].node;
            Price own =
                price_of(d, 0, node_weights(d->f, id), node_work(d->f, id));
            s->own[i] = price_sum(s->own[i], own);
        }
}

/* What a step moves that runs by parts, if rows where windows overlap are left
 * out. */
static double parts_moved(const Search *s, uint32_t step) {
    const Facts *f = s->f;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < f->schedule->step[step].n; i++) {
        const Node *node =
            graph_node(f->g, f->schedule->step[step].slot[i].node);
        for (uint32_t k = 0; k <= node->n_in; k++)
            sum += moved_bytes(f, node_operand(node, k));
    }
    return (double)sum;
}

/* A step that neither way can take is left to greedy.c, which runs it by parts;
 * one that rolls with engines idle, too, where that costs more. */
static void pass(Search *s, uint32_t step) {
    const Cut *cut = &s->x.cut[step + 1];
    bool rolls = cut->n && cut->way[0].g.rows;
    Price price = {.first = parts_moved(s, step)};
    if (!cut->n || (s->x.fills && rolls))
        offer(s, step, step + 1,
              cut->n ? price_sum(price, s->own[step]) : (Price){0});
}

static void stretches_from(void *context, uint32_t step) {
    keep_from(context, step);
    cascades_from(context, step);
    pass(context, step);
}

static bool cascades_hold(const Decisions *d, uint64_t budget) {
    CascadeCost cost;
    for (uint32_t i = 0; i < d->cascade.n; i++)
        if (!cascade_cost(d->f, &d->cascade.at[i], STRIPES_ALL, &cost) ||
            cost.peak > budget)
            return false;
    return true;
}

static void search(Decisions *d, uint64_t budget, bool exact) {
    const Facts *f = d->f;
    uint32_t n = f->schedule->n_steps;
    bool rolls = f->spec->tiling.rows.rolls;
    Search s = {.f = f,
                .d = d,
                .budget = budget,
                .exact = exact,
                .live = ARENA_ARRAY(f->arena, uint64_t, n + 1),
                .own = ARENA_ARRAY(f->arena, Price, n + 1)};
    s.x = (Stretches){.d = d,
                      .context = &s,
                      .from = stretches_from,
                      .price = price_of_rolling,
                      .most_again = most_again(f),
                      .form = {.rolls = rolls,
                               .ahead = rolls && d->config->runs > 0,
                               .late = d->config->aims.hides}};
    uses_by_step(&s);
    own_by_step(&s);
    stretches_cut(&s.x);
}

/* Cascades and their heights for few bytes over DDR, were `budget` bytes of
 * active memory theirs. Returns how many it has put into d->cascade. */
static uint32_t cascades_choose(Decisions *d, uint64_t budget) {
    do
        search(d, budget, false);
    while (!cascades_confirmed(d));
    if (!d->f->spec->tiling.rows.rolls && !cascades_hold(d, budget))
        search(d, budget, true);
    return d->cascade.n;
}

/* ---- known ones ---- */

typedef struct Known {
    uint64_t total, budget;
    Config config;
    uint32_t n;
    const Cascade *cascade;
} Known;

struct KnownCascades {
    Arena *arena;
    VEC(Known) at;
};

KnownCascades *known_cascades_new(Arena *arena) {
    KnownCascades *known = ARENA_NEW(arena, KnownCascades);
    known->arena = arena;
    return known;
}

static bool asks_same(const Known *a, const Known *b) {
    return a->total == b->total && a->budget == b->budget &&
           config_same_cascades(&a->config, &b->config);
}

static void take_known(Decisions *d, const Known *k) {
    d->cascade.n = 0;
    for (uint32_t i = 0; i < k->n; i++) {
        Cascade g = k->cascade[i];
        bool shares = g.n_shared > 0;
        g.n_shared = 0;
        if (shares)
            cascade_share(d->f, &g);
        vec_push(d->f->arena, &d->cascade, g);
    }
}

uint32_t cascades_known(Decisions *d, uint64_t budget) {
    KnownCascades *known = d->f->memo->cascades;
    Known k = {.total = d->f->total, .budget = budget, .config = *d->config};
    for (uint32_t a = 0; a < known->at.n; a++)
        if (asks_same(&known->at.at[a], &k)) {
            take_known(d, &known->at.at[a]);
            return d->cascade.n;
        }
    k.n = cascades_choose(d, budget);
    k.cascade = ARENA_COPY(known->arena, Cascade, d->cascade.at, k.n);
    vec_push(known->arena, &known->at, k);
    return k.n;
}

/* ---- into modes ---- */

void cascade_modes(Decisions *d, uint32_t index) {
    const Cascade *g = &d->cascade.at[index];
    for (uint32_t i = 0; i < cascade_length(g); i++)
        d->mode[cascade_node(d->f, g, i).i] = (Mode){.kind = MODE_CASCADE,
                                                     .streams_in = true,
                                                     .streams_out = true,
                                                     .style = -1,
                                                     .cascade = index};
}

void cascades_refresh(Decisions *d) {
    for (uint32_t i = 0; i < d->cascade.n; i++)
        for (uint32_t s = d->cascade.at[i].first; s < d->cascade.at[i].end; s++)
            uses_refresh(d, s);
}

static bool cascade_apply(Decisions *d, uint32_t index) {
    const Facts *f = d->f;
    const Cascade *g = &d->cascade.at[index];
    cascade_modes(d, index);
    for (uint32_t i = 0; i < cascade_length(g); i++) {
        NodeId id = cascade_node(f, g, i);
        const Node *node = graph_node(f->g, id);
        for (uint32_t k = 0; k < node->n_in; k++)
            if (cascade_maker(f, g, node->in[k]) == NONE &&
                !operand_freed(d, id, node->in[k]))
                return false;
        bool leaves = is_placed(f, id) || cascade_stores(f, g, node->out[0]);
        if (leaves && !operand_freed(d, id, node->out[0]))
            return false;
    }
    return true;
}

/* Nobody runs by channel tiles with a node of a cascade. */
static void pairs_part(Decisions *d) {
    for (uint32_t i = 0; i < d->cascade.n; i++) {
        const Cascade *g = &d->cascade.at[i];
        for (uint32_t k = 0; k < cascade_length(g); k++)
            pair_part(d, cascade_node(d->f, g, k));
    }
}

bool cascades_apply(Decisions *d) {
    bool applied = true;
    pairs_part(d);
    for (uint32_t i = 0; applied && i < d->cascade.n; i++)
        applied = cascade_apply(d, i);
    uses_make(d);
    if (applied)
        cascades_refresh(d);
    return applied;
}
