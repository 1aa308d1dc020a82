/* blocks.c - tensors and weights in one active memory.
 *
 * Input: a schedule for a machine with a queue. Output: the plan that meets the
 * objective best, or none.
 * Method: tensors are planned as if active memory were smaller; weights get
 * what that leaves at each time, in blocks of several sizes. Whether weights of
 * a cascade stay while it runs is known when they are placed: so for each size
 * there are plans that hope so, and plans that do not. Of a few sizes of
 * memory, this one and some of the grid below it, each has its own plans, so
 * that a larger memory gets none that is worse.
 */
#include "alloc/search/blocks.h"
#include "alloc/geometry/tensor_bytes.h"
#include "base/arith.h"

#include "base/size_grid.h"
#include "hwspec/cost.h"

#include <math.h>
#include <string.h>

/* How large blocks are, and whether loads ahead take the place of some. */
static const StageWay block_ways[] = {{.share = 4},
                                      {.share = 2},
                                      {.share = 1},
                                      {.share = 8, .evicts = true},
                                      {.share = 2, .evicts = true},
                                      {.share = 16},
                                      {.share = 8},
                                      {.share = 4, .fastest = true}};
/* Transfers of tensors in parts. */
static const StageWay band_ways[] = {{.bands = 4},
                                     {.bands = 4, .stores = STORES_OF_LAYERS},
                                     {.bands = 4, .stores = STORES_OF_TILES}};
/* What tensors get: sizes whose numbers are so much lower than the memory's, a
 * multiple of `GRAIN`, so that memories share them. */
static const uint32_t lower[] = {0, 4, 8, 16, 24, 32, 40, 48, 64};
enum { GRAIN = 4 };
/* What volumes are planned for, beside all runs reading their weights again. */
static const struct {
    bool stay; /* as if weights for which the rest has room stayed */
    Aims aims;
} volume_ways[] = {{false, {.fills = true}},
                   {true, {.hides = true, .fills = true}},
                   {true, {.fills = true}},
                   {.stay = true}};
#define LENGTH(array) ((uint32_t)(sizeof(array) / sizeof *(array)))

/* ---- room for weights ---- */

/* Of a node whose weights are loaded. */
typedef struct Sum {
    uint64_t bytes;
    const char *name;
} Sum;

static void take_least(Sum *most, const Schedule *schedule, const Slot *slot) {
    const Node *node = graph_node(schedule->graph, slot->node);
    if (slot->legal.engine < 0 ||
        !hwspec_stages(schedule->spec, slot->legal.op))
        return;
    uint64_t bytes = block_least(schedule->spec, schedule->graph, slot);
    if (!most->name || bytes > most->bytes)
        *most = (Sum){bytes, node->name};
}

/* The layer whose smallest block takes the most. */
static Sum largest_block(const Schedule *schedule) {
    Sum most = {0};
    for (uint32_t i = 0; i < schedule->n_steps; i++)
        for (uint32_t k = 0; k < schedule->step[i].n; k++)
            take_least(&most, schedule, &schedule->step[i].slot[k]);
    return most;
}

uint64_t blocks_aside(const Schedule *schedule, const char **layer) {
    uint64_t align = schedule->spec->memory[0].align;
    *layer = NULL;
    if (schedule->spec->weights)
        return 0;
    Sum most = largest_block(schedule);
    align = align ? align : 1;
    *layer = most.name;
    return round_up(most.bytes + align, align);
}

/* ---- with weights, in a memory of one size ---- */

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

Staged blocks_plan(Arena *arena, const Schedule *schedule, const Blocks *b,
                   const StageMost *most, Plan *plan) {
    Banded banded = banded_by(b->volumes, b->way);
    banded.plan.schedule = schedule;
    Staged done = stage(arena, &banded, b->way, most, plan);
    if (done != STAGED)
        return done;
    Traffic traffic = plan_traffic(plan);
    plan->ddr_moved = traffic.moved;
    plan->ddr_again = traffic.again;
    return traffic.too_long ? STAGE_STUCK : STAGED;
}

/* Bytes of the first memory that tensors and weights take. */
static uint64_t height_of(const Plan *plan) {
    PlanWeights weights = plan_weights(plan);
    if (plan->schedule->spec->weights)
        return plan->am_height;
    return weights.end > plan->am_height ? weights.end : plan->am_height;
}

/* Its own clock is right on most machines; the first plan tells. */
static uint64_t cycles_of(Staging *s, const Plan *plan) {
    enum { LITTLE = 256 }; /* one part in so many */
    const PlanOptions *options = s->options;
    if (!options->cycles || (s->clock_told && !s->clock_errs))
        return plan->cycles;
    uint64_t counted = options->cycles(options->context, plan);
    s->clock_told = true;
    uint64_t apart = counted < plan->cycles ? plan->cycles - counted
                                            : counted - plan->cycles;
    s->clock_errs |= apart > counted / LITTLE;
    return counted;
}

static bool is_better(PlanObjective objective, const BestBlocks *a,
                      const BestBlocks *b) {
    return a->found &&
           (!b->found || plan_cost_less(objective, &a->cost, &b->cost));
}

static PlanCost cost_of(Staging *s, const Plan *plan) {
    Traffic traffic = plan_traffic(plan);
    return (PlanCost){cycles_of(s, plan), traffic.moved + traffic.weights,
                      traffic.instructions, height_of(plan)};
}

static void take(Staging *s, const Blocks *b, const Plan *plan) {
    PlanCost cost = cost_of(s, plan);
    if (cost.cycles == UINT64_MAX)
        return;
    archive_add(&s->archive, &(Candidate){s->number++, cost});
    BestBlocks made = {true, *b, cost, .again = loads_again(plan)};
    made.least = plan->keeps_all && !made.again;
    if (!s->refines)
        vec_push(s->arena, &s->made, made);
    for (uint32_t o = 0; o < PLAN_OBJECTIVES; o++)
        if (is_better((PlanObjective)o, &made, &s->own[o]))
            s->own[o] = made;
}

static bool is_legal(Staging *s, const Plan *plan) {
    return plan_admitted(s->arena, s->options, plan, &s->rejected);
}

/* A little more than that plan takes, one part in so many: what a size has
 * first is hardly ever an eighth worse than its best, and what volumes have
 * first, a 64th. */
enum { NEAR_SIZE = 8, NEAR_VOLUMES = 64 };
static PlanCost near(const BestBlocks *best, uint32_t parts) {
    PlanCost cost = best->cost;
    cost.cycles += cost.cycles / parts;
    cost.bytes += cost.bytes / parts;
    return cost;
}

/* What a plan may cost, to be of use; false: anything. */
static bool most_for(const Staging *s, StageMost *most) {
    bool any = true;
    for (uint32_t o = 0; o < PLAN_OBJECTIVES; o++) {
        any &= s->own[o].found || s->all[o].found;
        most->cost[o] = !s->own[o].found ? near(&s->all[o], NEAR_SIZE)
                        : s->refines     ? s->own[o].cost
                                         : near(&s->own[o], NEAR_VOLUMES);
    }
    return any && !s->clock_errs;
}

static Staged try_way(Staging *s, uint64_t size, Volumes *volumes,
                      StageWay way) {
    if (budget_spent(volumes->budget))
        return STAGE_FULL;
    Arena *arena = arena_new("blocks");
    StageMost most;
    Blocks b = {volumes, way, size};
    Plan plan;
    Staged done = blocks_plan(arena, schedule_within(arena, s->schedule, size),
                              &b, most_for(s, &most) ? &most : NULL, &plan);
    if (done == STAGED && s->judges && !is_legal(s, &plan))
        done = STAGE_STUCK;
    if (done == STAGED)
        take(s, &b, &plan);
    s->fitted |= done == STAGED || (done == STAGE_DEAR && !s->own->found);
    arena_free(arena);
    return done;
}

/* By blocks of one size, or of a smaller one that fits. */
static Staged try_volumes(Staging *s, uint64_t size, Volumes *volumes) {
    Staged done = STAGE_STUCK;
    for (uint32_t i = 0; i < LENGTH(block_ways) && done == STAGE_STUCK; i++)
        done = try_way(s, size, volumes, block_ways[i]);
    return done;
}

Staged blocks_any(const Schedule *schedule, Volumes *volumes, StageWay *way) {
    Staged done = STAGE_STUCK;
    for (uint32_t i = 0; i < LENGTH(block_ways) && done == STAGE_STUCK; i++) {
        Arena *arena = arena_new("blocks");
        Blocks b = {volumes, block_ways[i], schedule->spec->memory[0].size};
        Plan plan;
        *way = block_ways[i];
        done = blocks_plan(arena, schedule, &b, NULL, &plan);
        arena_free(arena);
    }
    return done;
}

static bool several_sources(const HwSpec *spec) {
    uint32_t in = spec->tiling.rows.weights_in;
    return (in & (in - 1)) != 0;
}

static bool same_way(StageWay a, StageWay b) {
    return a.bands == b.bands && a.stores == b.stores && a.share == b.share &&
           a.evicts == b.evicts && a.fastest == b.fastest;
}

static void try_other(Staging *s, uint64_t size, Volumes *volumes,
                      StageWay way) {
    for (uint32_t i = 0; i < s->tried.n; i++)
        if (s->tried.at[i].volumes == volumes &&
            same_way(s->tried.at[i].way, way))
            return;
    vec_push(s->arena, &s->tried, ((Blocks){volumes, way, size}));
    try_way(s, size, volumes, way);
}

/* In that plan's order of layers, with its places of tensors: other blocks, and
 * transfers in parts with what is then the best by the objective. */
static void try_others(Staging *s, uint64_t size, PlanObjective objective,
                       const BestBlocks *first) {
    Volumes *volumes = first->best.volumes;
    const Blocks *best = &s->own[objective].best;
    for (uint32_t i = 1; i < LENGTH(block_ways); i++)
        if ((!block_ways[i].evicts || first->again) &&
            (!block_ways[i].fastest || several_sources(s->schedule->spec)))
            try_other(s, size, volumes, block_ways[i]);
    StageWay way = best->volumes == volumes ? best->way : first->best.way;
    bool cuts = s->schedule->spec->tiling.rows.rolls; /* as bands_make */
    for (uint32_t i = 0; i < LENGTH(band_ways) && cuts; i++) {
        way.bands = band_ways[i].bands;
        way.stores = band_ways[i].stores;
        try_other(s, size, volumes, way);
    }
}

static bool is_same(const Plan *a, const Plan *b) {
    return a->n_actions == b->n_actions && a->am_height == b->am_height &&
           a->ddr_moved == b->ddr_moved;
}

/* False if they cost too much. */
static bool try_best(Staging *s, uint64_t size, Volumes *best) {
    bool any = false;
    for (Volumes *v = best; v; v = v->next)
        any |= try_volumes(s, size, v) != STAGE_DEAR;
    return any;
}

/* Whether it is enough that there is a plan. */
static bool is_done(const Staging *s) {
    return s->options->first_will_do && s->own->found;
}

/* Tensors within so many bytes, by all ways: only blocks tell which is right.
 * Those that hide transfers move more the less they get: when they cost too
 * much they are not tried within less. The height of the lowest; 0: they do not
 * fit.
 */
static uint64_t try_within(Staging *s, uint64_t size, uint64_t within) {
    Volumes *read = volumes_within(s, within, 0, (Aims){0});
    if (!read->plan)
        return 0;
    try_best(s, size, read);
    uint64_t height = read->plan->am_height;
    if (is_done(s))
        return height;
    bool own = s->schedule->spec->weights;
    if (within == size && !own)
        return height;
    uint64_t aside = own ? size : size - within;
    uint32_t n = read->plan->keeps_all ? 0 : LENGTH(volume_ways);
    for (uint32_t i = 0; i < n; i++) {
        Aims aims = volume_ways[i].aims;
        if ((aims.hides && s->hiding_is_dear) ||
            (aims.fills && !aims.hides && !may_fill(s->schedule->spec)))
            continue;
        Volumes *other =
            volumes_within(s, within, volume_ways[i].stay ? aside : 0, aims);
        if (!other->plan || is_same(read->plan, other->plan))
            continue;
        bool dear = !try_best(s, size, other);
        s->hiding_is_dear |= aims.hides && dear;
        if (is_done(s))
            break;
        if (!aims.hides && other->plan->am_height < height)
            height = other->plan->am_height;
    }
    return height;
}

/* Whether the best by some objective is better than it was. */
static bool gained(const Staging *s, const BestBlocks *last) {
    bool any = false;
    for (uint32_t o = 0; o < PLAN_OBJECTIVES; o++)
        any |= is_better((PlanObjective)o, &s->own[o], &last[o]);
    return any;
}

/* So many bytes are for both, of which each layer's weights have what their
 * smallest blocks take, another part for each layer. */
static void try_beside(Staging *s, uint64_t size, uint64_t within) {
    for (uint32_t n = 1; n <= MOST_BESIDE && s->beside[n]; n++) {
        Volumes *v =
            volumes_within(s, within, 0, (Aims){.blocks = s->beside[n]});
        if (v->plan)
            try_best(s, size, v);
    }
}

/* The next size below that volumes are planned within. */
static uint64_t less(uint64_t size) {
    return grid_size(STAGED_OCTAVE, grid_number(STAGED_OCTAVE, size - 1));
}

/* Tensors leave every layer room for its smallest block; at times those fit
 * that are planned for less, where others do not. */
static void try_scarce(Staging *s, uint64_t size) {
    enum { STEPS = 4 };
    const char *layer;
    uint64_t aside = blocks_aside(s->schedule, &layer), rest = size - aside;
    for (uint32_t i = 0; aside < size && i < STEPS && !s->own->found; i++) {
        Volumes *last = volumes_within(s, rest, size - rest, (Aims){0});
        if (last->plan)
            try_volumes(s, size, last);
        rest = less(rest);
    }
    rest = size;
    for (uint32_t i = 0; i < STEPS && rest > 1 && !s->own->found; i++) {
        rest = less(rest);
        try_beside(s, size, rest);
    }
}

static void try_shares(Staging *s, uint64_t size) {
    /* Shares that brought nothing better; those whose plans all cost too much
     * tell half as much of what the next one brings. */
    enum { IDLE = 4, WORSE = 2, DEAR = 1 };
    uint32_t number = grid_number(STAGED_OCTAVE, size), idle = 0;
    uint64_t height = UINT64_MAX;
    bool any = false;
    uint32_t n = s->one_size ? 1 : LENGTH(lower);
    for (uint32_t i = 0; i < n && number > lower[i]; i++) {
        uint32_t own = number - lower[i];
        uint64_t within =
            s->one_size
                ? size
                : grid_size(STAGED_OCTAVE, i ? own / GRAIN * GRAIN : own);
        if (height <= within)
            continue;
        BestBlocks last[PLAN_OBJECTIVES];
        if (i == 1)
            try_beside(s, size, size);
        memcpy(last, s->own, sizeof last);
        s->fitted = false;
        height = try_within(s, size, within);
        if (!height)
            break;
        any |= s->fitted;
        idle += s->own->found ? WORSE : DEAR;
        if (gained(s, last) || !any)
            idle = 0;
        if (idle >= IDLE || (s->own->found && (s->own->least || is_done(s))))
            break;
    }
}

/* Whether the best of the size may become the best of all. */
static bool is_near(const Staging *s, PlanObjective objective) {
    PlanCost most = near(&s->all[objective], NEAR_SIZE);
    return !s->all[objective].found ||
           plan_cost_less(objective, &s->own[objective].cost, &most);
}

/* The best blocks of volumes by an objective, none of which were refined yet;
 * NULL: others are worse by more than a little. */
static const BestBlocks *next_near(const Staging *s, PlanObjective objective,
                                   Volumes *const *done, uint32_t n) {
    const BestBlocks *next = NULL;
    PlanCost most = near(&s->own[objective], NEAR_VOLUMES);
    for (uint32_t i = 0; i < s->made.n; i++) {
        const BestBlocks *made = &s->made.at[i];
        bool is_done = !plan_cost_less(objective, &made->cost, &most);
        for (uint32_t k = 0; k < n; k++)
            is_done |= is_same(done[k]->plan, made->best.volumes->plan);
        if (!is_done &&
            (!next || plan_cost_less(objective, &made->cost, &next->cost)))
            next = made;
    }
    return next;
}

/* Other blocks beside the volumes that are best, and those next to them. */
static void refine(Staging *s, uint64_t size, PlanObjective objective) {
    enum { SEVERAL = 4 };
    Volumes *done[SEVERAL];
    for (uint32_t n = 0; n < SEVERAL; n++) {
        const BestBlocks *next = next_near(s, objective, done, n);
        if (!next)
            return;
        done[n] = next->best.volumes;
        BestBlocks first = *next;
        try_others(s, size, objective, &first);
    }
}

static void size_try(Staging *s, uint64_t size) {
    memset(s->own, 0, sizeof s->own);
    s->hiding_is_dear = false;
    s->tried.n = s->made.n = 0;
    s->refines = false;
    try_shares(s, size);
    if (!s->own->found && !s->all->found && !s->one_size)
        try_scarce(s, size);
    if (!s->own->found)
        return;
    s->refines = true;
    for (uint32_t o = 0; o < PLAN_OBJECTIVES && !s->options->first_will_do; o++)
        if (is_near(s, (PlanObjective)o))
            refine(s, size, (PlanObjective)o);
    for (uint32_t o = 0; o < PLAN_OBJECTIVES; o++)
        if (is_better((PlanObjective)o, &s->own[o], &s->all[o]))
            s->all[o] = s->own[o];
}

/* ---- all sizes ---- */

/* Of each node the bytes of so many smallest blocks. */
static const uint64_t *blocks_beside(Arena *arena, const Schedule *schedule,
                                     uint32_t n) {
    const HwSpec *spec = schedule->spec;
    uint64_t align = spec->memory[0].align ? spec->memory[0].align : 1;
    uint64_t *bytes = ARENA_ARRAY(arena, uint64_t, schedule->graph->node.n + 1);
    for (uint32_t i = 0; i < schedule->n_steps; i++)
        for (uint32_t k = 0; k < schedule->step[i].n; k++) {
            const Slot *slot = &schedule->step[i].slot[k];
            if (slot->legal.engine >= 0 && hwspec_stages(spec, slot->legal.op))
                bytes[slot->node.i] =
                    n * round_up(block_least(spec, schedule->graph, slot),
                                 align) +
                    align;
        }
    return bytes;
}

void staging_open(Staging *s, Arena *arena, const Schedule *schedule,
                  const PlanOptions *options) {
    PlanOptions *own = ARENA_COPY(arena, PlanOptions, options, 1);
    HwSpec *spec = ARENA_COPY(arena, HwSpec, schedule->spec, 1);
    Schedule *planned = ARENA_COPY(arena, Schedule, schedule, 1);
    own->cycles = NULL;
    own->no_remedy = true;
    own->objective = PLAN_BYTES;
    spec->tiling.rows.weights_move = true;
    planned->spec = spec;
    *s = (Staging){.arena = arena,
                   .schedule = schedule,
                   .options = options,
                   .one_size = schedule->spec->memory[0].buffers};
    s->archive.arena = arena;
    bool shared = !schedule->spec->weights && !s->one_size;
    for (uint32_t n = 1; n <= MOST_BESIDE && shared; n++)
        s->beside[n] = blocks_beside(arena, schedule, n);
    search_open(&s->search, arena, planned, own, NULL, &s->bound);
    s->search.volumes = true;
}

void staging_close(Staging *s) {
    for (uint32_t i = 0; i < s->volumes.n; i++)
        if (s->volumes.at[i]->arena)
            arena_join(s->arena, s->volumes.at[i]->arena);
}

static void sizes_try(Staging *s) {
    uint64_t size = s->schedule->spec->memory[0].size;
    bool small = search_is_small(&s->search);
    for (uint32_t i = 0; search_walks(&s->search, i) && size; i++) {
        size_try(s, size);
        if (s->one_size || (!small && (!s->own->found || s->own->least)) ||
            (s->all->found && s->options->first_will_do))
            return;
        size = grid_below(GRID_OCTAVE, size);
    }
}

/* The plan of the best, which is legal in the real memory. */
static Plan *plan_of(Staging *s) {
    const BestBlocks *all = &s->all[s->options->objective];
    Plan *plan = ARENA_NEW(s->arena, Plan);
    const Schedule *within =
        schedule_within(s->arena, s->schedule, all->best.size);
    if (blocks_plan(s->arena, within, &all->best, NULL, plan) != STAGED)
        return NULL;
    plan->cost = cost_of(s, plan);
    plan->schedule = s->schedule;
    if (s->options->cycles) /* which its own clock may not know */
        plan->cost.cycles = s->options->cycles(s->options->context, plan);
    if (all->best.size < s->schedule->spec->memory[0].size)
        plan->am_planned = all->best.size;
    memcpy(plan->ddr_bound, s->bound.ddr_bound, sizeof plan->ddr_bound);
    plan->n_front = archive_front(s->arena, &s->archive, &plan->front);
    return plan;
}

Plan *staging_find(Staging *s) {
    BestBlocks *all = &s->all[s->options->objective];
    memset(s->all, 0, sizeof s->all);
    sizes_try(s);
    if (!all->found && !s->one_size) {
        Scarce least = scarce_find(s, s->schedule->spec->memory[0].size);
        all->found = least.any;
        all->best = least.blocks;
    }
    Plan *plan = all->found ? plan_of(s) : NULL;
    return plan && is_legal(s, plan) ? plan : NULL;
}

void staging_serve(Staging *s, const PlanOptions *options) {
    PlanOptions *own = ARENA_COPY(s->arena, PlanOptions, s->search.options, 1);
    own->budget = options->budget;
    own->spent = options->spent;
    s->search.options = own;
    s->options = options;
    for (uint32_t i = 0; i < s->volumes.n; i++)
        for (Volumes *v = s->volumes.at[i]; v; v = v->next)
            v->budget = options->budget;
}

Plan *plan_staged(Staging *s, Arena *arena, const Schedule *schedule,
                  const PlanOptions *options, Rejected *rejected) {
    staging_open(s, arena, schedule, options);
    Plan *plan = staging_find(s);
    *rejected = s->rejected;
    if (plan || !s->rejected.n)
        return plan;
    staging_close(s);
    staging_open(s, arena, schedule, options);
    s->judges = true;
    s->rejected = *rejected;
    plan = staging_find(s);
    *rejected = s->rejected;
    return plan;
}
