/* reserves.c - volumes and weights in one active memory; see stage.h.
 *
 * Input: a schedule for a machine with a queue. Output: the best of several
 * plans. Method: volumes are planned as if active memory were smaller, by
 * shares that do not depend on its size; weights get what that leaves at each
 * time, in blocks of several sizes. Fewer bytes are worth some time, but not
 * any.
 */
#include "alloc/contest.h"
#include "alloc/stage.h"

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
static const StageWay band_ways[] = {{.bands = 4},
                                     {.bands = 16},
                                     {.bands = 4, .stores = STORES_OF_LAYERS},
                                     {.bands = 16, .stores = STORES_OF_LAYERS},
                                     {.bands = 4, .stores = STORES_OF_TILES},
                                     {.bands = 16, .stores = STORES_OF_TILES}};
static const uint32_t shares[] = {16, 13, 10, 8, 6, 4, 3, 2, 1};
#define LENGTH(array) ((uint32_t)(sizeof(array) / sizeof *(array)))

typedef struct Staging {
    Arena *arena;
    const Schedule *schedule;
    const PlanOptions *options;
    Plan *best;
    double cost;
    StageWay way; /* of the best */
    bool again;   /* the last one loads a block more than once */
    bool any;     /* one that fits is enough */
} Staging;

static double cost_of(const Plan *plan) {
    const HwSpec *spec = plan->schedule->spec;
    double seconds = bytes_seconds(spec, (double)plan->ddr_moved);
    return (double)plan->cycles +
           BYTE_PRICE * (double)hwspec_cycles(spec, seconds);
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

/* False if it does not fit so. */
static bool try_way(Staging *s, const Plan *volumes, StageWay way) {
    Plan *plan = ARENA_COPY(s->arena, Plan, volumes, 1);
    if (!stage(s->arena, plan, way))
        return false;
    plan->ddr_moved = plan_traffic(plan).moved;
    s->again = loads_again(plan);
    double cost = cost_of(plan);
    if (s->best && cost >= s->cost)
        return true;
    s->best = plan;
    s->cost = cost;
    s->way = way;
    return true;
}

/* In the plan's order of layers, with its places of volumes. */
static void try_blocks(Staging *s, const Plan *volumes) {
    const Plan *before = s->best;
    s->again = true;
    for (uint32_t i = 0; i < LENGTH(block_ways); i++)
        if ((!block_ways[i].evicts || s->again) && !(s->any && s->best))
            try_way(s, volumes, block_ways[i]);
    if (s->best == before || s->any)
        return;
    StageWay way = s->way;
    for (uint32_t i = 0; i < LENGTH(band_ways); i++) {
        way.bands = band_ways[i].bands;
        way.stores = band_ways[i].stores;
        try_way(s, volumes, way);
    }
}

/* The same with a first memory of `size` bytes. */
static Schedule *schedule_within(Arena *arena, const Schedule *real,
                                 uint64_t size) {
    HwSpec *spec = ARENA_COPY(arena, HwSpec, real->spec, 1);
    HwMemory *memory =
        ARENA_COPY(arena, HwMemory, spec->memory, spec->n_memories);
    memory[0].size = size;
    spec->memory = memory;
    spec->tiling.weights_move = true;
    Schedule *schedule = ARENA_COPY(arena, Schedule, real, 1);
    schedule->spec = spec;
    return schedule;
}

/* Volumes within `size` bytes; NULL if these do not suffice. */
static Plan *plan_within(const Staging *s, uint64_t size) {
    PlanOptions options = *s->options;
    options.cycles = NULL;
    options.no_remedy = true;
    bool does_not_fit;
    Plan *plan = plan_volumes(s->arena, diag_new(s->arena),
                              schedule_within(s->arena, s->schedule, size),
                              &options, &does_not_fit);
    if (plan)
        plan->schedule = s->schedule;
    return plan;
}

typedef void NodeVisitor(uint64_t *sum, const Schedule *schedule,
                         const Node *node);

/* Calls it for nodes whose weights lie in active memory. */
static uint64_t over_nodes(const Schedule *schedule, NodeVisitor *visit) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < schedule->n_steps; i++)
        for (uint32_t k = 0; k < schedule->step[i].n; k++) {
            const Slot *slot = &schedule->step[i].slot[k];
            if (slot->legal.engine >= 0 &&
                hwspec_stages(schedule->spec, slot->legal.op))
                visit(&sum, schedule, graph_node(schedule->graph, slot->node));
        }
    return sum;
}

static void add_weights(uint64_t *sum, const Schedule *schedule,
                        const Node *node) {
    const Graph *g = schedule->graph;
    *sum += (uint64_t)weight_taps(g, node) * plan_volume(g, node->out[0]).c *
            schedule->spec->element;
}

uint64_t plan_staged_weights(const Schedule *schedule) {
    return over_nodes(schedule, add_weights);
}

static void take_least(uint64_t *most, const Schedule *schedule,
                       const Node *node) {
    uint64_t bytes = block_least(schedule->spec, schedule->graph, node);
    *most = bytes > *most ? bytes : *most;
}

/* Beside so many bytes volumes can be planned by themselves: every layer then
 * has room for its smallest block. */
static uint64_t bytes_aside(const Schedule *schedule) {
    uint64_t align = schedule->spec->memory[0].align;
    align = align ? align : 1;
    return round_up(over_nodes(schedule, take_least) + align, align);
}

void explain_staged(Arena *arena, Diag *diag, const Schedule *schedule,
                    const PlanOptions *options) {
    uint64_t size = schedule->spec->memory[0].size;
    uint64_t aside = bytes_aside(schedule);
    PlanOptions own = *options;
    bool does_not_fit;
    own.cycles = NULL;
    own.aside = aside;
    size = size > aside ? size - aside : 0;
    if (plan_volumes(arena, diag, schedule_within(arena, schedule, size), &own,
                     &does_not_fit))
        diag_error(diag, schedule->spec->loc,
                   "does not fit: volumes leave weights no room");
}

static bool loads_least(const Plan *plan) {
    return plan->keeps_all && !loads_again(plan);
}

static Plan *plan_shares(Arena *arena, const Schedule *schedule,
                         const PlanOptions *options, bool any) {
    Staging s = {
        .arena = arena, .schedule = schedule, .options = options, .any = any};
    enum { IDLE = 2 }; /* shares that brought nothing */
    uint64_t size = schedule->spec->memory[0].size, height = UINT64_MAX;
    uint32_t idle = 0;
    for (uint32_t i = 0; i < LENGTH(shares); i++) {
        uint64_t within = size / 16 * shares[i];
        if (height <= within)
            continue;
        Plan *plan = plan_within(&s, within);
        if (!plan)
            break;
        double before = s.cost;
        height = plan->am_height;
        try_blocks(&s, plan);
        idle = s.best && s.cost == before ? idle + 1 : 0;
        if (s.best && (any || loads_least(s.best) || idle == IDLE))
            break;
    }
    uint64_t aside = bytes_aside(schedule);
    Plan *last = s.best || aside >= size ? NULL : plan_within(&s, size - aside);
    if (last)
        try_blocks(&s, last);
    return s.best;
}

Plan *plan_staged(Arena *arena, const Schedule *schedule,
                  const PlanOptions *options) {
    return plan_shares(arena, schedule, options, false);
}

bool staged_fits(const Schedule *schedule, const PlanOptions *options,
                 uint64_t size) {
    Arena *arena = arena_new("staged");
    Plan *plan = plan_shares(arena, schedule_within(arena, schedule, size),
                             options, true);
    bool fits = plan && !plan_traffic(plan).too_long;
    arena_free(arena);
    return fits;
}
