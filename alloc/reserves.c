/* reserves.c - volumes and weights in one active memory of one size; see
 * reserves.h.
 *
 * Input: a schedule for a machine with a queue, a size. Output: the best of
 * several plans. Method: volumes are planned as if active memory were smaller;
 * weights get what that leaves at each time, in blocks of several sizes. Fewer
 * bytes are worth some time, but not any.
 */
#include "alloc/reserves.h"

#include "hwspec/cost.h"

#include <math.h>

/* How large blocks are, and whether loads ahead take the place of some. */
static const StageWay block_ways[] = {{.share = 16},
                                      {.share = 8},
                                      {.share = 4},
                                      {.share = 2},
                                      {.share = 1},
                                      {.share = 8, .evicts = true},
                                      {.share = 2, .evicts = true}};
enum {
    FIRST_WAY = 2
}; /* of these: most others are compared just for the best */
static const StageWay band_ways[] = {{.bands = 4},
                                     {.bands = 16},
                                     {.bands = 4, .stores = STORES_OF_LAYERS},
                                     {.bands = 16, .stores = STORES_OF_LAYERS},
                                     {.bands = 4, .stores = STORES_OF_TILES},
                                     {.bands = 16, .stores = STORES_OF_TILES}};
/* What volumes get: sizes whose numbers are so much lower than the memory's, a
 * multiple of `GRAIN`, so that memories share them. */
static const uint32_t lower[] = {0, 4, 8, 16, 24, 32, 40, 48, 64};
enum { GRAIN = 4 };
/* Actions, before weights are loaded, of plans of which others are made: more
 * take too long. */
enum { MOST_VARIED = 4096 };
#define LENGTH(array) ((uint32_t)(sizeof(array) / sizeof *(array)))

/* ---- volumes ---- */

static bool fewer(Traffic a, Traffic b) {
    uint64_t mine = traffic_bytes(a), other = traffic_bytes(b);
    return mine != other ? mine < other : a.work < b.work;
}

/* All of them stay, or ways that move few bytes. */
static void ways_try(Heat *h, uint64_t size) {
    bool layers = h->c->options->layer_by_layer;
    h->most = layers ? HUGE_VAL : 0;
    heat_way(h, (Way){.size = size});
    h->most = HUGE_VAL;
    if (!layers && !(h->entry.n && h->entry.at[0]->plan->keeps_all))
        heat_ways(h, size, true);
}

static Plan *volumes_plan(Staging *s, uint64_t size) {
    Heat h = {.c = &s->contest, .fewest = true};
    Attempt *best = NULL;
    ways_try(&h, size);
    for (uint32_t i = 0; i < h.entry.n; i++) {
        Attempt *a = h.entry.at[i];
        if (!a->traffic.too_long && (!best || fewer(a->traffic, best->traffic)))
            best = a;
    }
    Plan *plan = NULL;
    if (best) {
        Way way = best->way;
        way.within = true;
        way.most = HUGE_VAL;
        plan = way_plan(s->arena, diag_new(s->arena), &s->contest, &way);
    }
    heat_free(&h);
    return plan;
}

Volumes *volumes_within(Staging *s, uint64_t size) {
    for (uint32_t i = 0; i < s->volumes.n; i++)
        if (s->volumes.at[i]->size == size)
            return s->volumes.at[i];
    Volumes *v = ARENA_NEW(s->arena, Volumes);
    v->arena = s->arena;
    v->budget = s->contest.options->budget;
    v->size = size;
    v->plan = volumes_plan(s, size);
    vec_push(s->arena, &s->volumes, v);
    return v;
}

Banded banded_by(Volumes *v, StageWay way) {
    for (uint32_t i = 0; i < v->banded.n; i++)
        if (v->banded.at[i].n == way.bands &&
            v->banded.at[i].stores == way.stores)
            return v->banded.at[i];
    Banded made = bands_make(v->arena, v->plan, way.bands, way.stores);
    made.budget = v->budget;
    budget_take(v->budget, made.plan.n_actions);
    vec_push(v->arena, &v->banded, made);
    return made;
}

/* ---- with weights, in a memory of one size ---- */

double staged_cost(const HwSpec *spec, Price p) {
    double seconds = bytes_seconds(spec, (double)p.bytes);
    return (double)p.cycles + BYTE_PRICE * (double)hwspec_cycles(spec, seconds);
}

/* Whether some block is loaded more than once. */
static bool loads_again(const Plan *plan) {
    uint64_t loaded = 0, once = 0;
    for (uint32_t i = 0; i < plan->n_blocks; i++)
        loaded += plan->block[i].bytes;
    for (uint32_t i = 0; i < plan->n_actions; i++) {
        const Action *a = &plan->action[i];
        if (a->kind == ACTION_RUN && a->weights && !a->row && !a->col)
            once += plan->block[a->weights - 1].bytes;
    }
    return loaded > once;
}

Staged offer_stage(Arena *arena, const Schedule *schedule, const StagedOffer *o,
                   const StageMost *most, Plan *plan) {
    Banded banded = banded_by(o->volumes, o->way);
    banded.plan.schedule = schedule;
    Staged done = stage(arena, &banded, o->way, most, plan);
    if (done != STAGED)
        return done;
    Traffic traffic = plan_traffic(plan);
    plan->ddr_moved = traffic.moved;
    plan->ddr_again = traffic.again;
    return traffic.too_long ? STAGE_STUCK : STAGED;
}

static void take(Search *n, const StagedOffer *o, const Plan *plan) {
    Price price = {plan->ddr_moved, plan->cycles};
    double cost = staged_cost(n->schedule->spec, price);
    if ((n->below && !box_within(price, n->below, n->above)) ||
        (n->found && cost >= n->cost))
        return;
    n->found = true;
    n->offer = *o;
    n->price = price;
    n->cost = cost;
    n->actions = plan->n_actions - plan->n_blocks;
    n->again = loads_again(plan);
    n->least = plan->keeps_all && !n->again;
}

static StageMost most_of(const Search *n) {
    const Box *below = n->below && n->below->any ? n->below : NULL;
    const Price any = {UINT64_MAX, UINT64_MAX};
    return (StageMost){n->most, below ? below->price : any,
                       n->found ? n->cost : HUGE_VAL};
}

/* Whether it may be the answer; counts those that must not. */
static bool is_legal(Staging *s, Arena *arena, const Plan *plan) {
    bool wrong = s->judge && s->judge(arena, plan);
    s->rejected += wrong;
    return !wrong;
}

static Staged try_way(Search *n, Volumes *volumes, StageWay way) {
    if (budget_spent(volumes->budget))
        return STAGE_FULL;
    Arena *arena = arena_new("offer");
    StageMost most = most_of(n);
    StagedOffer o = {volumes, way, n->schedule->spec->memory[0].size};
    Plan plan;
    Staged done = offer_stage(arena, n->schedule, &o, &most, &plan);
    if (done == STAGED && !is_legal(n->s, arena, &plan))
        done = STAGE_STUCK;
    if (done == STAGED)
        take(n, &o, &plan);
    arena_free(arena);
    return done;
}

/* By blocks of one size, or of a smaller one that fits; by bands, too, where
 * what less memory gets may be too fast for it. */
static void try_volumes(Search *n, Volumes *volumes) {
    Staged done = STAGE_STUCK;
    StageWay way = {0};
    for (uint32_t i = FIRST_WAY; i < LENGTH(block_ways); i++)
        if (done == STAGE_STUCK) {
            way = block_ways[i];
            done = try_way(n, volumes, way);
        }
    if (done != STAGE_DEAR || !n->below || !n->below->any)
        return;
    way.bands = 4;
    way.stores = STORES_OF_TILES;
    try_way(n, volumes, way);
}

Staged blocks_stage(const Schedule *schedule, Volumes *volumes, StageWay *way) {
    Staged done = STAGE_STUCK;
    for (uint32_t i = FIRST_WAY; i < LENGTH(block_ways) && done == STAGE_STUCK;
         i++) {
        Arena *arena = arena_new("offer");
        StagedOffer o = {volumes, block_ways[i],
                         schedule->spec->memory[0].size};
        Plan plan;
        *way = block_ways[i];
        done = offer_stage(arena, schedule, &o, NULL, &plan);
        arena_free(arena);
    }
    return done;
}

/* In the best plan's order of layers, with its places of volumes. */
static void try_others(Search *n) {
    Volumes *volumes = n->offer.volumes;
    for (uint32_t i = 0; i < LENGTH(block_ways); i++)
        if (i != FIRST_WAY && (!block_ways[i].evicts || n->again))
            try_way(n, volumes, block_ways[i]);
    StageWay way = n->offer.way;
    for (uint32_t i = 0; i < LENGTH(band_ways); i++) {
        way.bands = band_ways[i].bands;
        way.stores = band_ways[i].stores;
        try_way(n, volumes, way);
    }
}

/* Volumes leave every layer room for its smallest block; at times those fit
 * that are planned for less, where others do not. */
static void try_aside(Search *n, uint64_t size) {
    enum { STEPS = 4 };
    uint64_t aside = bytes_aside(n->schedule), rest = size - aside;
    for (uint32_t i = 0; aside < size && i < STEPS && !n->found; i++) {
        Volumes *last = volumes_within(n->s, rest);
        if (last->plan)
            try_volumes(n, last);
        rest = box_size(STAGED_OCTAVE, box_number(STAGED_OCTAVE, rest - 1));
    }
}

static void try_shares(Search *n, uint64_t size) {
    enum { IDLE = 2 }; /* shares that brought nothing */
    uint32_t number = box_number(STAGED_OCTAVE, size), idle = 0;
    uint64_t height = UINT64_MAX;
    for (uint32_t i = 0; i < LENGTH(lower) && number > lower[i]; i++) {
        uint32_t own = number - lower[i];
        uint64_t within =
            box_size(STAGED_OCTAVE, i ? own / GRAIN * GRAIN : own);
        if (height <= within)
            continue;
        Volumes *volumes = volumes_within(n->s, within);
        if (!volumes->plan)
            break;
        double before = n->found ? n->cost : HUGE_VAL;
        height = volumes->plan->am_height;
        try_volumes(n, volumes);
        idle = n->found && n->cost == before ? idle + 1 : 0;
        if (n->found && (n->any || n->least || idle == IDLE))
            break;
    }
}

/* Where all plans so far are better than they may be: by smaller blocks. */
static void try_slower(Search *n, Volumes *volumes) {
    for (uint32_t i = 0; i < LENGTH(block_ways); i++)
        try_way(n, volumes, block_ways[i]);
    if (!n->found)
        try_way(n, volumes, (StageWay){.share = 0});
}

/* What a memory next to this one gets. */
static void try_near(Search *n, const Box *near) {
    if (!near || !near->any)
        return;
    const StagedOffer *o = &n->s->offer.at[near->plan];
    if (o->volumes->plan->am_height <= n->schedule->spec->memory[0].size)
        try_way(n, o->volumes, o->way);
}

void search_run(Search *n) {
    uint64_t size = n->schedule->spec->memory[0].size;
    if (n->first)
        try_volumes(n, n->first->volumes);
    try_shares(n, size);
    try_near(n, n->above);
    try_near(n, n->below);
    if (!n->found)
        try_aside(n, size);
    if (n->found && !n->any && n->actions <= MOST_VARIED)
        try_others(n);
    if (!n->found && n->first)
        try_slower(n, n->first->volumes);
}
