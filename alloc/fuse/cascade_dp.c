/* cascade_dp.c - which steps run depth first, and how high their stripes are.
 *
 * Input: units, and the bytes of active memory that a group may take. Output:
 * groups.
 * Method: dynamic programming over the schedule. It is cut into stretches; each
 * is either kept (all its volumes stay in active memory from their first touch
 * to their last) or a group. What is needed behind a stretch is stored once,
 * what is needed from before it is loaded once, or, by a group, stripe by
 * stripe with its halo. Fewest bytes win, then the least work. The price of
 * kept stretches is an estimate from above: greedy.c finds what stays.
 * Stripes are as high as fits: higher ones move and compute less twice.
 * Where a machine holds few instructions, each counts like some bytes.
 */
#include "alloc/cascade/cascade.h"
#include "alloc/fuse/fuse.h"
#include "alloc/geometry/tensor_bytes.h"
#include "alloc/live/live.h"
#include "alloc/spill/spill.h"

/* Longer groups than this are not looked at. */
enum { LONGEST = 24, GIVE_UP = 3 };

typedef struct Price {
    uint64_t moved, work;
} Price;

/* `weights`: elements that are read, again and again by what runs in parts. */
static Price price_of(const Decisions *d, uint64_t moved, uint64_t weights,
                      uint64_t work) {
    if (weights_count(d))
        return (Price){moved + weights * d->f->spec->element, work};
    return (Price){moved, d->f->spec->tiling.rows.rolls ? weights : work};
}

static bool cheaper(Price a, Price b) {
    return a.moved != b.moved ? a.moved < b.moved : a.work < b.work;
}

static Price sum(Price a, Price b) {
    return (Price){a.moved + b.moved, a.work + b.work};
}

typedef struct Cut {
    Price price; /* of all steps before this one */
    bool reached;
    uint32_t first; /* of the stretch that ends here */
    uint32_t rows;  /* of its stripes; 0: kept */
    uint32_t cols;  /* at a time, with line buffers; 0: whole rows */
    bool shares;    /* group_share */
} Cut;

/* A touch of a unit, and what it means for a kept stretch. */
typedef struct At {
    uint64_t bytes;  /* that the unit takes from the touch before it on */
    uint64_t moved;  /* if it comes or goes whole */
    uint32_t since;  /* behind the step of the touch before; `opens`: its own */
    uint32_t made;   /* the step of the unit's first touch */
    bool opens;      /* is that */
    bool stays;      /* the unit lies in active memory */
    bool loads;      /* unless it is in the stretch already */
    bool adds, ends; /* it is needed behind the step, or no longer */
} At;

typedef struct Search {
    const Facts *f;
    Decisions *d;
    uint64_t budget;
    bool exact;       /* look at all stripes */
    Cut *cut;         /* by step, and behind the last */
    At *at;           /* touches ordered by step */
    uint32_t *at_end; /* by step: behind its touches */
    uint64_t *live;   /* by step: of the stretch that is looked at */
    Price *own;       /* by step: of what it runs */
} Search;

/* ---- kept stretches ---- */

static uint64_t unit_moved(const Facts *f, const Unit *unit) {
    Volume v = plan_volume(f->g, unit->root);
    return (uint64_t)v.c * v.h * v.w * f->spec->element;
}

static At at_of(const Facts *f, const Unit *unit, uint32_t i) {
    const Touch *touch = &unit->touch[i];
    bool outside = f->role[unit->root.i].outside,
         last = i + 1 == unit->n_touches;
    bool comes = from_outside(f, unit->root), made = !unit->dead && !comes;
    return (At){.bytes = least_bytes(f, unit->bytes, touch->memories),
                .moved = unit_moved(f, unit),
                .since = i ? unit->touch[i - 1].step + 1 : touch->step,
                .made = unit->touch[0].step,
                .opens = i == 0,
                .stays = !unit->dead && (touch->whole || touch->stream),
                .loads = i > 0 || comes,
                .adds = made && i == 0 && (outside || !last),
                .ends = made && i > 0 && last && !outside};
}

static void touches_by_step(Search *s) {
    Decisions *d = s->d;
    uint32_t n = d->f->schedule->n_steps, total = 0;
    uint32_t *fill = ARENA_ARRAY(d->f->arena, uint32_t, n + 2);
    s->at_end = ARENA_ARRAY(d->f->arena, uint32_t, n + 1);
    for (uint32_t u = 0; u < d->unit.n; u++)
        for (uint32_t i = 0; i < d->unit.at[u].n_touches; i++, total++)
            fill[d->unit.at[u].touch[i].step + 1]++;
    for (uint32_t i = 0; i < n; i++)
        s->at_end[i] = fill[i + 1] += fill[i];
    s->at = ARENA_ARRAY(d->f->arena, At, total + 1);
    for (uint32_t u = 0; u < d->unit.n; u++) {
        const Unit *unit = &d->unit.at[u];
        for (uint32_t i = 0; i < unit->n_touches; i++)
            s->at[fill[unit->touch[i].step]++] = at_of(d->f, unit, i);
    }
}

/* Adds a touch to the stretch that starts at `first`; false if it does not fit
 * then. */
static bool keep_touch(Search *s, uint32_t first, uint32_t step, const At *at,
                       Price *price) {
    bool inside = !at->opens && at->since > first;
    if (!at->stays)
        return true;
    if (at->bytes > s->budget)
        return false;
    if (!inside && at->loads)
        price->moved += at->moved;
    for (uint32_t i = inside ? at->since : step; i <= step; i++) {
        s->live[i] += at->bytes;
        if (s->live[i] > s->budget)
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

/* Whether nothing that is known is as cheap, were this its own price. */
static bool is_cheapest(const Search *s, const Group *g, Price own) {
    const Cut *cut = &s->cut[g->end];
    return !cut->reached ||
           cheaper(sum(s->cut[g->first].price, own), cut->price);
}

static void offer_group(Search *s, const Group *g, Price own) {
    Price price = sum(s->cut[g->first].price, own);
    if (is_cheapest(s, g, own))
        s->cut[g->end] =
            (Cut){price, true, g->first, g->rows, g->cols, g->n_shared > 0};
}

/* Of kept steps. */
static void offer(Search *s, uint32_t first, uint32_t end, Price own) {
    offer_group(s, &(Group){.first = first, .end = end}, own);
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
            if (!keep_touch(s, first, step, &s->at[i], &price))
                return;
            stored_after(first, &s->at[i], &stored);
        }
        price = sum(price, s->own[step]);
        Price all = price;
        all.moved += stored;
        offer(s, first, step + 1, all);
    }
}

/* ---- groups ---- */

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
static uint64_t middle_bytes(const Facts *f, const Group *g) {
    GroupCost cost;
    return group_cost(f, g, STRIPES_MIDDLE, &cost) ? cost.peak : UINT64_MAX;
}

/* The highest stripes of which one in the middle fits; 0 if none do. */
static uint32_t highest(const Search *s, Group g) {
    const Facts *f = s->f;
    NodeId last = group_node(f, &g, g.end - g.first - 1);
    uint32_t h = g.rolls ? group_height(f, &g)
                         : plan_volume(f->g, graph_node(f->g, last)->out[0]).h;
    uint32_t lo = 0, hi = h + 1;
    uint64_t lo_bytes = 0, hi_bytes = UINT64_MAX;
    for (g.rows = 1; lo + 1 < hi;
         g.rows = guess(s->budget, lo, lo_bytes, hi, hi_bytes)) {
        uint64_t bytes = middle_bytes(f, &g);
        if (bytes <= s->budget) {
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
            if (hi_bytes <= s->budget)
                return h;
            hi = h;
        }
    }
    uint32_t n = (h + lo - 1) / lo;
    return (h + n - 1) / n;
}

static bool rings_from(Search *s, uint32_t first, uint32_t end) {
    Group g = {.first = first,
               .end = end,
               .rolls = true,
               .ahead = s->d->config->runs > 0};
    RollCost cost;
    if (roll_fits(s->d, g, s->budget, &cost) &&
        !is_cheapest(s, &g, price_of(s->d, cost.moved, cost.weights, 0)))
        return true;
    g.rows = roll_rows(s->d, g, s->budget, &cost);
    if (!g.rows && hwspec_by_columns(s->f->spec))
        g.rows = g.cols = roll_columns(s->d, g, s->budget, &cost);
    if (g.rows)
        offer_group(s, &g, price_of(s->d, cost.moved, cost.weights, 0));
    return g.rows > 0;
}

static uint64_t stripes_weights(const Facts *f, const Group *g) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < g->end - g->first; i++)
        sum += node_weights(f, group_node(f, g, i));
    return sum * group_stripes(f, g);
}

static Price price_of_group(const Search *s, const Group *g,
                            const GroupCost *cost) {
    const Decisions *d = s->d;
    uint64_t once = 0,
             moved = cost->moved + d->config->lambda_insn * cost->instructions;
    for (uint32_t i = g->first; i < g->end; i++)
        once += s->own[i].work;
    if (d->config->lambda_recompute && cost->work > once)
        moved += (cost->work - once) / d->config->lambda_recompute;
    return price_of(d, moved, stripes_weights(d->f, g), cost->work);
}

static uint32_t rows_that_fit(const Search *s, Group g, GroupCost *cost) {
    StripesLook look = s->exact ? STRIPES_ALL : STRIPES_THREE;
    g.rows = highest(s, g);
    for (uint32_t tries = 0; g.rows && tries < 3; tries++, g.rows--)
        if (group_cost(s->f, &g, look, cost) && cost->peak <= s->budget)
            return g.rows;
    return 0;
}

/* Ways that differ in what they weigh ask for the same groups. */
static const StripesFit *fit_of(const Search *s, const Group *g) {
    StripesFit *fit = stripes_fit(s->f, g, LONGEST);
    uint64_t size = s->f->spec->memory[0].size;
    if (fit->is && fit->budget == s->budget && fit->size == size &&
        fit->exact == s->exact)
        return fit;
    *fit = (StripesFit){
        .budget = s->budget, .size = size, .is = true, .exact = s->exact};
    fit->rows = rows_that_fit(s, *g, &fit->cost);
    return fit;
}

static bool group_try(Search *s, Group g) {
    const StripesFit *fit = fit_of(s, &g);
    g.rows = fit->rows;
    if (g.rows)
        offer_group(s, &g, price_of_group(s, &g, &fit->cost));
    return g.rows > 0;
}

static bool group_from(Search *s, uint32_t first, uint32_t end) {
    Group g = {.first = first, .end = end};
    bool fits = group_try(s, g);
    group_share(s->f, &g);
    return (g.n_shared && group_try(s, g)) || fits;
}

bool group_has_loose_end(const Decisions *d, uint32_t first, uint32_t end) {
    const Facts *f = d->f;
    Group g = {.first = first, .end = end};
    for (uint32_t i = 0; i + 1 < end - first; i++) {
        NodeId id = group_node(f, &g, i);
        TensorId t = graph_node(f->g, id)->out[0];
        if ((!d->config->loose || is_placed(f, id)) &&
            group_last_use(f, &g, t) == first + i)
            return true;
    }
    return false;
}

static void groups_from(Search *s, uint32_t first) {
    bool rings = s->f->spec->tiling.rows.rolls;
    uint32_t n = s->f->schedule->n_steps, failed = 0;
    if (!group_may_begin(s->d, first))
        return;
    for (uint32_t end = first + 1; end <= n && end <= first + LONGEST; end++) {
        if (!group_may_hold(s->d, end - 1))
            return;
        if (!rings && group_has_loose_end(s->d, first, end))
            continue;
        bool fits =
            rings ? rings_from(s, first, end) : group_from(s, first, end);
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
            s->own[i] = sum(s->own[i], own);
        }
}

/* A step that neither way can take is left to greedy.c. */
static void pass(Search *s, uint32_t step) {
    if (!s->cut[step + 1].reached)
        offer(s, step, step + 1, (Price){0, 0});
}

static void cuts_follow(Decisions *d, const Cut *cut) {
    const Facts *f = d->f;
    d->group.n = 0;
    for (uint32_t end = f->schedule->n_steps; end > 0; end = cut[end].first) {
        Group g = {.first = cut[end].first,
                   .end = end,
                   .rows = cut[end].rows,
                   .cols = cut[end].cols,
                   .rolls = f->spec->tiling.rows.rolls,
                   .ahead = f->spec->tiling.rows.rolls && d->config->runs > 0};
        if (cut[end].shares)
            group_share(f, &g);
        if (g.rows)
            vec_push(f->arena, &d->group, g);
    }
}

static bool groups_hold(const Decisions *d, uint64_t budget) {
    GroupCost cost;
    for (uint32_t i = 0; i < d->group.n; i++)
        if (!group_cost(d->f, &d->group.at[i], STRIPES_ALL, &cost) ||
            cost.peak > budget)
            return false;
    return true;
}

static void search(Decisions *d, uint64_t budget, bool exact) {
    const Facts *f = d->f;
    uint32_t n = f->schedule->n_steps;
    Search s = {.f = f,
                .d = d,
                .budget = budget,
                .exact = exact,
                .cut = ARENA_ARRAY(f->arena, Cut, n + 1),
                .live = ARENA_ARRAY(f->arena, uint64_t, n + 1),
                .own = ARENA_ARRAY(f->arena, Price, n + 1)};
    touches_by_step(&s);
    own_by_step(&s);
    s.cut[0].reached = true;
    for (uint32_t step = 0; step < n; step++) {
        keep_from(&s, step);
        groups_from(&s, step);
        pass(&s, step);
    }
    cuts_follow(d, s.cut);
}

uint32_t groups_choose(Decisions *d, uint64_t budget) {
    do
        search(d, budget, false);
    while (!groups_confirmed(d));
    if (!d->f->spec->tiling.rows.rolls && !groups_hold(d, budget))
        search(d, budget, true);
    return d->group.n;
}

/* ---- known ones ---- */

typedef struct Known {
    uint64_t total, budget, thrift;
    uint32_t apart, runs, haste;
    bool weights_count, loose;
    uint32_t n;
    const Group *group;
} Known;

struct KnownGroups {
    Arena *arena;
    VEC(Known) at;
};

KnownGroups *known_groups_new(Arena *arena) {
    KnownGroups *known = ARENA_NEW(arena, KnownGroups);
    known->arena = arena;
    return known;
}

static Known known_as(const Decisions *d, uint64_t budget) {
    return (Known){.total = d->f->total,
                   .budget = budget,
                   .thrift = d->config->lambda_insn,
                   .apart = d->config->without,
                   .runs = d->config->runs,
                   .haste = d->config->lambda_recompute,
                   .weights_count = weights_count(d),
                   .loose = d->config->loose};
}

static bool asks_same(const Known *a, const Known *b) {
    return a->total == b->total && a->budget == b->budget &&
           a->thrift == b->thrift && a->apart == b->apart &&
           a->runs == b->runs && a->haste == b->haste &&
           a->weights_count == b->weights_count && a->loose == b->loose;
}

static void take_known(Decisions *d, const Known *k) {
    d->group.n = 0;
    for (uint32_t i = 0; i < k->n; i++) {
        Group g = k->group[i];
        bool shares = g.n_shared > 0;
        g.n_shared = 0;
        if (shares)
            group_share(d->f, &g);
        vec_push(d->f->arena, &d->group, g);
    }
}

uint32_t groups_known(Decisions *d, uint64_t budget) {
    KnownGroups *known = d->f->once->groups;
    Known k = known_as(d, budget);
    for (uint32_t a = 0; a < known->at.n; a++)
        if (asks_same(&known->at.at[a], &k)) {
            take_known(d, &known->at.at[a]);
            return d->group.n;
        }
    k.n = groups_choose(d, budget);
    k.group = ARENA_COPY(known->arena, Group, d->group.at, k.n);
    vec_push(known->arena, &known->at, k);
    return k.n;
}

/* ---- into modes ---- */

static bool group_apply(Decisions *d, uint32_t index) {
    const Facts *f = d->f;
    const Group *g = &d->group.at[index];
    for (uint32_t i = 0; i < g->end - g->first; i++) {
        NodeId id = group_node(f, g, i);
        const Node *node = graph_node(f->g, id);
        d->mode[id.i] = (Mode){.kind = MODE_GROUP,
                               .streams_in = true,
                               .streams_out = true,
                               .style = -1,
                               .group = index};
        for (uint32_t k = 0; k < node->n_in; k++)
            if (group_maker(f, g, node->in[k]) == NONE &&
                !operand_freed(d, id, node->in[k]))
                return false;
        bool leaves = is_placed(f, id) || group_stores(f, g, node->out[0]);
        if (leaves && !operand_freed(d, id, node->out[0]))
            return false;
    }
    return true;
}

/* Nobody runs by slabs with a node of a group. */
static void couples_part(Decisions *d) {
    for (uint32_t i = 0; i < d->group.n; i++) {
        const Group *g = &d->group.at[i];
        for (uint32_t k = 0; k < g->end - g->first; k++)
            couple_part(d, group_node(d->f, g, k));
    }
}

bool groups_apply(Decisions *d) {
    couples_part(d);
    for (uint32_t i = 0; i < d->group.n; i++)
        if (!group_apply(d, i))
            return false;
    for (uint32_t i = 0; i < d->group.n; i++)
        for (uint32_t s = d->group.at[i].first; s < d->group.at[i].end; s++)
            touches_refresh(d, s);
    return true;
}
