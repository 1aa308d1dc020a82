/* staged.c - volumes and weights in one active memory, whatever its size; see
 * weights.h.
 *
 * Input: a schedule for a machine with a queue. Output: a plan, or none.
 * Method: halving between sizes that do not depend on the memory's own
 * (boxes.h), from one that holds all volumes and all weights down to the least
 * in which a plan of moderate length fits; below that, of finer sizes, down to
 * the least in which any fits (scarce.c). That one alone has nothing below it:
 * so its plan may be slower than need be, where what lies above is slow. If it
 * is better all the same, nothing gets it, and a little more is the least.
 */
#include "alloc/weights/reserves.h"

#include <inttypes.h>

#include "hwspec/cost.h"

#include <assert.h>

/* Actions of a plan that others are compared with: more take too long. */
enum { MOST_ACTIONS = 4096 };
/* Networks of which everything takes so little start from the least memory of
 * all. */
enum { LITTLE = 512 << 10 };
/* One in so many bytes, or cycles, is worth a plan. */
enum { PART = 256 };
/* Sizes next to the least, for each power of two. */
enum { FINE_OCTAVE = 16 * STAGED_OCTAVE };

/* Of all nodes whose weights lie in active memory. */
typedef struct Sum {
    uint64_t bytes;
    const char *name; /* of the node that takes the most */
} Sum;
typedef void NodeVisitor(Sum *sum, const Schedule *schedule, const Node *node);

static Sum over_nodes(const Schedule *schedule, NodeVisitor *visit) {
    Sum sum = {0};
    for (uint32_t i = 0; i < schedule->n_steps; i++)
        for (uint32_t k = 0; k < schedule->step[i].n; k++) {
            const Slot *slot = &schedule->step[i].slot[k];
            if (slot->legal.engine >= 0 &&
                hwspec_stages(schedule->spec, slot->legal.op))
                visit(&sum, schedule, graph_node(schedule->graph, slot->node));
        }
    return sum;
}

static void take_least(Sum *most, const Schedule *schedule, const Node *node) {
    uint64_t bytes = block_least(schedule->spec, schedule->graph, node);
    if (!most->name || bytes > most->bytes)
        *most = (Sum){bytes, node->name};
}

uint64_t bytes_aside(const Schedule *schedule) {
    uint64_t align = schedule->spec->memory[0].align;
    align = align ? align : 1;
    return round_up(over_nodes(schedule, take_least).bytes + align, align);
}

void explain_staged(Arena *arena, Diag *diag, const Schedule *schedule,
                    const PlanOptions *options) {
    uint64_t size = schedule->spec->memory[0].size;
    uint64_t aside = bytes_aside(schedule);
    PlanOptions own = *options;
    bool does_not_fit;
    own.cycles = NULL;
    own.aside = aside;
    own.aside_for = over_nodes(schedule, take_least).name;
    size = size > aside ? size - aside : 0;
    if (!plan_volumes(arena, diag, schedule_within(arena, schedule, size), &own,
                      &does_not_fit))
        return;
    diag_error(diag, schedule->spec->loc,
               "does not fit: volumes leave weights no room");
    uint64_t least = options->no_remedy ? 0 : staged_least(schedule, options);
    if (least)
        diag_note(diag, (Loc){0}, "--set memories.%s.size=%" PRIu64 " would do",
                  schedule->spec->memory[0].name, least);
}

/* ---- what a memory gets ---- */

static Search search_within(Staging *s, uint64_t size) {
    return (Search){.s = s,
                    .schedule = schedule_within(s->arena, s->schedule, size)};
}

static Box box_of(Staging *s, const Search *n, uint64_t size) {
    if (!n->found)
        return (Box){.size = size};
    vec_push(s->arena, &s->offer, n->offer);
    return (Box){true, size, n->price, s->offer.n - 1};
}

static Box best_of(Search n, const Box *below, const Box *above) {
    n.below = below;
    n.above = above;
    search_run(&n);
    return n.found ? box_of(n.s, &n, n.schedule->spec->memory[0].size) : *below;
}

static Box best_within(void *staging, uint64_t size, const Box *below,
                       const Box *above) {
    Search n = search_within(staging, size);
    n.most = MOST_ACTIONS;
    return best_of(n, below, above);
}

/* However long its plans are. */
static Box best_long(void *staging, uint64_t size, const Box *below,
                     const Box *above) {
    return best_of(search_within(staging, size), below, above);
}

/* The next larger one of so many for each power of two. */
static uint64_t size_above(uint32_t octave, uint64_t size) {
    return box_size(octave, box_number(octave, size) + 1);
}

/* A numbered size with room for all weights beside all volumes; 0: none. */
static uint64_t size_of_all(Staging *s) {
    enum { MOST_BITS = 44 };
    const Plan *all = volumes_within(s, (uint64_t)1 << MOST_BITS)->plan;
    uint64_t gaps =
        (uint64_t)s->schedule->n_steps * s->schedule->spec->memory[0].align;
    uint64_t weights = plan_staged_weights(s->schedule) + gaps;
    return all ? size_above(STAGED_OCTAVE, all->am_height + weights) : 0;
}

static bool fits_any(Staging *s, uint64_t size, uint32_t most) {
    Search n = search_within(s, size);
    n.any = true;
    n.most = most;
    search_run(&n);
    return n.found;
}

/* The least numbered size in which a plan of moderate length fits. */
static uint64_t numbered_least(Staging *s, const Box *top) {
    uint32_t low = box_number(STAGED_OCTAVE, s->contest.never),
             high = box_number(STAGED_OCTAVE, top->size);
    while (low + 1 < high) {
        uint32_t mid = low + (high - low) / 2;
        *(fits_any(s, box_size(STAGED_OCTAVE, mid), MOST_ACTIONS) ? &high
                                                                  : &low) = mid;
    }
    return box_size(STAGED_OCTAVE, high);
}

/* At the least size of all; plans that are better than what more memory gets
 * are for want of others alone. */
static Box best_scarce(Staging *s, const Scarce *least, const Box *above) {
    Search n = search_within(s, least->size);
    n.first = &least->offer;
    return best_of(n, &(Box){0}, above);
}

/* The least memory that gets anything, no better than what `above` gets: if
 * what fits in the least of all is better, a little more has to do. */
static Box least_below(Staging *s, uint64_t numbered, const Box *above) {
    const Box none = {0};
    Scarce scarce = scarce_find(s, numbered);
    Box least = scarce.any ? best_scarce(s, &scarce, above) : none;
    uint64_t coarse = size_above(STAGED_OCTAVE, scarce.size);
    for (uint64_t at = scarce.size; !least.any;) {
        at = size_above(at < coarse ? FINE_OCTAVE : STAGED_OCTAVE, at);
        if (at >= above->size)
            return *above;
        least = best_long(s, at, &none, above);
    }
    return least;
}

/* The least memories of all, below `above`. */
static Box choose_below(Staging *s, uint64_t numbered, const Box *above,
                        uint64_t size) {
    Box least = least_below(s, numbered, above);
    if (least.size > size)
        return (Box){0};
    uint64_t next_size = size_above(STAGED_OCTAVE, least.size);
    Box next = next_size < above->size ? best_long(s, next_size, &least, above)
                                       : *above;
    bool fine = size < next.size;
    Halving h = {best_long, s, fine ? FINE_OCTAVE : STAGED_OCTAVE, PART};
    return fine ? boxes_halve(&h, least, next, size)
                : boxes_halve(&h, next, *above, size);
}

/* What memories get that hold everything; none: nothing fits in any. */
static Box top_of(Staging *s) {
    uint64_t all = size_of_all(s);
    const Box none = {0};
    return all ? best_within(s, all, &none, &none) : none;
}

/* The end below which memories are the least; `numbered`: as above. */
static Box end_above_least(Staging *s, uint64_t numbered, const Box *top) {
    const Box none = {0};
    Box low = top->size > LITTLE ? best_within(s, numbered, &none, top) : none;
    return low.any ? low : *top;
}

static Box choose(Staging *s, uint64_t size) {
    Box top = top_of(s);
    if (!top.any || size >= top.size)
        return top;
    uint64_t numbered = numbered_least(s, &top);
    Box low = end_above_least(s, numbered, &top);
    if (low.size <= size)
        return boxes_halve(&(Halving){best_within, s, STAGED_OCTAVE, PART}, low,
                           top, size);
    return choose_below(s, numbered, &low, size);
}

static Staging staging_open(Arena *arena, const Schedule *schedule,
                            const PlanOptions *options) {
    PlanOptions *own = ARENA_COPY(arena, PlanOptions, options, 1);
    HwSpec *spec =
        ARENA_COPY(arena, HwSpec, hwspec_planned(arena, schedule->spec), 1);
    Schedule *planned = ARENA_COPY(arena, Schedule, schedule, 1);
    own->cycles = NULL;
    own->no_remedy = true;
    spec->tiling.weights_move = true;
    planned->spec = spec;
    Staging s = {.arena = arena, .schedule = schedule};
    s.contest = (Contest){.arena = arena, .schedule = planned, .options = own};
    contest_open(&s.contest, &s.bound);
    s.contest.known = known_groups_new(arena);
    return s;
}

static Plan *plan_of(const Staging *s, const Box *box) {
    const StagedOffer *o = &s->offer.at[box->plan];
    Plan *plan = ARENA_NEW(s->arena, Plan);
    Staged done =
        offer_stage(s->arena, schedule_within(s->arena, s->schedule, o->size),
                    o, NULL, plan);
    assert(done == STAGED);
    plan->schedule = s->schedule;
    plan->ddr_compulsory = s->bound.ddr_compulsory;
    plan->ddr_bound = s->bound.ddr_bound;
    plan->ddr_once = s->bound.ddr_once;
    plan->ddr_layers = s->bound.ddr_layers;
    return done == STAGED ? plan : NULL;
}

Plan *plan_staged(Arena *arena, const Schedule *schedule,
                  const PlanOptions *options) {
    Staging s = staging_open(arena, schedule, options);
    Box box = choose(&s, schedule->spec->memory[0].size);
    return box.any ? plan_of(&s, &box) : NULL;
}

uint64_t staged_least(const Schedule *schedule, const PlanOptions *options) {
    Arena *arena = arena_new("staged");
    Staging s = staging_open(arena, schedule, options);
    Box top = top_of(&s);
    uint64_t least = 0;
    if (top.any) {
        uint64_t numbered = numbered_least(&s, &top);
        Box end = end_above_least(&s, numbered, &top);
        least = least_below(&s, numbered, &end).size;
    }
    arena_free(arena);
    return least;
}
