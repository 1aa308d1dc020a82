/* search.c - the search for the best plan: order of evaluation.
 *
 * Input: a schedule, an objective, an effort. Output: the plans that meet the
 * objective best, with their actions, and an archive of all that were found.
 * Method: first everything stays whole; if nothing then moves twice and little
 * is waited for, that is the answer. Else, for the memory's own size and some
 * below it, all configurations are placed, and bytes counted. Of each size the
 * most promising plans are timed, and the best of these finished. What one size
 * gets does not depend on the others, or, for small networks, on the memory's
 * own: so a larger memory gets no worse than what a smaller one does. Ends
 * when the effort's steps are used up. Invariant: no clock, no threads, no
 * addresses: equal inputs, equal plans.
 */
#include "alloc/search/search.h"
#include "alloc/bound/bound.h"
#include "alloc/cascade/cascade.h"
#include "alloc/fuse/fuse.h"
#include "alloc/overlap/overlap.h"
#include "base/size_grid.h"

#include <math.h>

const Effort efforts[EFFORTS] = {
    {1, 10000, .timed = 6, .least_timed = 1, .finished = 1, .steps = 2000,
     .packing = 1000},
    {4, 150000, .timed = 8, .least_timed = 3, .finished = 3, .steps = 40000,
     .packing = 30000},
    {13, 4000000, .timed = 12, .least_timed = 8, .finished = 2, .steps = 400000,
     .packing = 30000},
    {64, UINT64_MAX, .timed = 32, .least_timed = 32, .finished = 4,
     .steps = 8000000, .packing = 300000},
};

/* ---- one configuration ---- */

static bool is_tried(const Search *s, const Config *config) {
    for (uint32_t i = 0; i < s->tried.n; i++)
        if (config_same(&s->tried.at[i], config))
            return true;
    return false;
}

static Trial *trial_new(Search *s, const Config *config) {
    Arena *arena = arena_new("plan");
    Trial *t = ARENA_NEW(arena, Trial);
    t->arena = arena;
    t->config = *config;
    t->number = s->n_tried++;
    if (s->options->spent)
        s->options->spent->configurations++;
    vec_push(s->arena, &s->tried, *config);
    return t;
}

static bool computes_too_much(const Search *s, const Plan *plan) {
    double factor = s->options->recompute;
    if (factor <= 0)
        return false;
    Products products = plan_products(plan);
    return (double)products.all > factor * (double)products.once;
}

/* Whether the same cascades were chosen before; what they came to. */
static bool is_known(const Search *s, const Trial *t, Outcome *out) {
    for (uint32_t i = 0; i < s->chosen.n && t->chosen; i++)
        if (s->chosen.at[i].print == t->chosen) {
            *out = s->chosen.at[i].outcome;
            return true;
        }
    return false;
}

static bool trial_fits(Search *s, Trial *t, Outcome *out) {
    bool placed = trial_place(t);
    out->fits = placed && trial_act(t, diag_new(t->arena)) &&
                !computes_too_much(s, t->plan);
    out->by_parts = placed && t->plan->by_parts;
    out->too_long = t->a->gave_up || (out->fits && t->traffic.too_long);
    if (s->options->spent)
        s->options->spent->too_long += out->too_long;
    out->fits &= !out->too_long || t->config.long_too;
    if (t->chosen)
        vec_push(s->arena, &s->chosen, ((Chosen){t->chosen, *out}));
    return out->fits;
}

/* Placed, with actions; NULL: it does not fit, or is there already. */
static Trial *trial_make(Search *s, const Config *config, Outcome *out) {
    Trial *t = trial_new(s, config);
    uint64_t steps = s->schedule->n_steps + 1;
    s->steps -= s->steps < steps ? s->steps : steps;
    if (trial_choose(s, t) && !is_known(s, t, out) && trial_fits(s, t, out))
        return t;
    arena_free(t->arena);
    return NULL;
}

/* ---- sizes ---- */

static bool is_spent(const Search *s) {
    return !s->steps || budget_spent(s->options->budget);
}

/* Whether any fits; those that do are in the pool. */
static bool configs_try(Search *s, Configs *list) {
    bool any = false;
    for (uint32_t i = 0; i < list->n; i++) {
        Config config = list->at[i];
        config.roomy = s->roomy;
        Outcome out = {0};
        if (is_tried(s, &config) || (is_spent(s) && i > 1))
            continue;
        Trial *t = trial_make(s, &config, &out);
        any |= t != NULL;
        if (t)
            pool_add(s, t);
        if (any && s->any)
            return true;
        configs_follow(s, &config, out, list);
    }
    return any;
}

/* Steps are known when all is done: here those so far. */
static void tell(const Search *s) {
    const PlanOptions *o = s->options;
    if (!o->watch || !o->spent)
        return;
    o->spent->steps =
        o->spent->budget - (o->budget ? o->budget->left : o->spent->budget);
    if (!o->watch(o->watcher, o->spent, s->n_best ? &s->best[0]->cost : NULL))
        budget_take(o->budget, UINT64_MAX);
}

/* Whether the best so far has transfers behind which nothing is at work, for a
 * good part of its time. */
static bool waits_long(const Search *s) {
    enum { PART = 64 };
    if (s->any || s->volumes || !s->n_best)
        return false;
    const Plan *plan = s->best[0]->plan;
    return plan->serial && plan_waiting(plan) > plan->cycles / PART;
}

bool search_size(Search *s, uint64_t cap, uint64_t others) {
    Configs list = {0};
    configs_list(s, cap, others, &list);
    bool any = configs_try(s, &list);
    if (!any) {
        list = (Configs){0};
        configs_rest(s, cap, others, &list);
        any = configs_try(s, &list);
    }
    pool_time(s);
    if (waits_long(s)) {
        list = (Configs){0};
        configs_hide(s, cap, others, &list);
        if (configs_try(s, &list))
            pool_time(s);
    }
    tell(s);
    return any;
}

bool search_is_small(const Search *s) {
    enum { SMALL = 64 };
    return s->schedule->n_steps <= SMALL;
}

/* Whether rows of a volume, one transfer after the other, may take less time
 * than the volume at once: bursts and rows are counted of each by itself. */
static bool rows_may_pay(const HwSpec *spec) {
    bool any = false;
    for (uint32_t m = spec->n_active; m < spec->n_memories; m++)
        any |= spec->memory[m].burst > 1 || spec->memory[m].row_setup > 0;
    return any && spec->tiling.kind == HW_TILING_SOFTWARE;
}

/* Everything stays, nothing moves but what must, and little is waited for: no
 * other plan is much better. Of a small network less is passed over, and of one
 * of few layers, which takes no time to plan, nothing: tiles may write behind,
 * but for partitions, where operands lie apart. */
static bool is_enough(const Search *s, const Trial *t) {
    enum { PART = 32, FEW = 24 };
    const Plan *plan = t->plan;
    const HwSpec *spec = s->schedule->spec;
    bool small = search_is_small(s);
    uint64_t little = plan->cycles / (small ? 2 * PART : PART);
    uint64_t waiting = s->schedule->n_steps <= FEW ? 0 : little;
    const HwTileTiling *tiles = &spec->tiling.tiles;
    uint64_t moved = t->traffic.moved;
    return plan->keeps_all && !tiles->always && !s->hastens &&
           !(small && tiles->n && !has_partitions(spec)) &&
           moved - s->compulsory <= moved / PART &&
           (plan->serial ? plan_waiting(plan) <= waiting
                         : !(small && rows_may_pay(spec)));
}

bool search_kept(Search *s, const Config *asked) {
    Outcome out = {0};
    Config kept = *asked;
    kept.roomy = s->roomy;
    Trial *t = trial_make(s, &kept, &out);
    Configs list = {0};
    if (!t || !t->plan->keeps_all) {
        if (t)
            pool_add(s, t);
        configs_follow(s, &kept, out, &list);
        configs_try(s, &list);
        return t && s->any;
    }
    s->pool[s->n_pool++] = t;
    pool_time(s);
    return s->n_best && (s->any || s->volumes || s->options->layer_by_layer ||
                         is_enough(s, s->best[0]));
}

/* Of several memories the others shrink as well. */
static void others_try(Search *s) {
    enum { SIZES = 3 };
    const HwSpec *spec = s->schedule->spec;
    uint64_t first = spec->memory[0].size, most = 0;
    for (uint32_t m = 1; m < spec->n_active; m++)
        most = spec->memory[m].size > most ? spec->memory[m].size : most;
    for (uint32_t i = 0; i < SIZES && first; i++) {
        uint64_t others = most;
        for (uint32_t k = 0; k < SIZES; k++) {
            others =
                k + 1 < SIZES ? grid_size(1, grid_number(1, others - !!k)) : 1;
            search_size(s, first, others ? others : 1);
        }
        first = grid_size(1, grid_number(1, first - 1));
    }
}

static bool has_buffers(const HwSpec *spec) {
    bool any = false;
    for (uint32_t m = 0; m < spec->n_active; m++)
        any |= spec->memory[m].buffers;
    return any;
}

bool search_walks(const Search *s, uint32_t n) {
    const PlanEffort *spent = s->options->spent;
    const Budget *budget = s->options->budget;
    bool few =
        !spent || !budget || spent->budget - budget->left < s->effort->walk;
    return n < s->effort->sizes || few;
}

/* As a command for a memory of this size does, if not `roomy`: so a larger one
 * gets no worse plan. */
static void smaller_size_try(Search *s, uint64_t cap, bool roomy) {
    Config kept = {.cap = cap, .others = UINT64_MAX};
    s->roomy = roomy;
    search_kept(s, &kept);
    search_size(s, cap, UINT64_MAX);
    s->roomy = false;
}

static void smaller_try(Search *s) {
    uint64_t cap = s->schedule->spec->memory[0].size;
    bool small = search_is_small(s);
    for (uint32_t i = 1; search_walks(s, i) && !is_spent(s); i++) {
        cap = grid_below(GRID_OCTAVE, cap);
        if (!cap || cap < s->never)
            return;
        if (small)
            smaller_size_try(s, cap, false);
        if (small ? !has_partitions(s->schedule->spec) : i < s->effort->sizes)
            smaller_size_try(s, cap, true);
    }
}

/* One behind the other, until one fits. */
static void last_try(Search *s) {
    Configs list = {0};
    configs_last(s, &list);
    for (uint32_t i = 0; i < list.n && !s->n_best; i++) {
        Configs one = {0};
        vec_push(s->arena, &one, list.at[i]);
        s->steps += s->schedule->n_steps + 1;
        configs_try(s, &one);
        pool_time(s);
    }
}

/* What fits in less fits here, too, though plans for all of it do not: for
 * these, bytes are counted as if the last volume ended with all its padding. */
static void less_try(Search *s) {
    const HwMemory *memory = &s->schedule->spec->memory[0];
    uint64_t align = memory->align ? memory->align : 1;
    uint64_t cap = memory->size - memory->size % align;
    for (uint32_t i = 0; i < s->effort->sizes && cap && cap >= s->never; i++) {
        if (cap < memory->size && search_size(s, cap, UINT64_MAX))
            return;
        cap = grid_below(GRID_OCTAVE, cap);
    }
}

static bool look(Search *s) {
    const HwSpec *spec = s->schedule->spec;
    if (spec->n_active == 1 && spec->memory[0].size < s->never)
        return false;
    Config kept = {.cap = spec->memory[0].size, .others = UINT64_MAX};
    if (search_kept(s, &kept)) {
        pool_time(s);
        return true;
    }
    search_size(s, spec->memory[0].size, UINT64_MAX);
    if (s->any && s->n_best)
        return true;
    if (s->n_best && !s->any && !s->volumes && !has_buffers(spec) &&
        !s->options->layer_by_layer) {
        if (spec->n_active > 1)
            others_try(s);
        else
            smaller_try(s);
    }
    if (!s->n_best)
        last_try(s);
    if (!s->n_best && !s->volumes && !has_buffers(spec))
        less_try(s);
    return s->n_best > 0;
}

/* Whether the simulator counts of the best what its own clock does. */
static bool clock_holds(Search *s) {
    Trial *t = s->best[0];
    uint64_t told = t->plan->cycles;
    return t->counted || s->any || s->volumes ||
           (trial_count(s, t) && t->cost.cycles == told);
}

bool search_run(Search *s) {
    if (!look(s))
        return false;
    if (clock_holds(s))
        return true;
    search_again(s); /* all of them are counted now */
    return look(s);
}

/* ---- from outside ---- */

static uint32_t all_kinds(const Facts *f) {
    uint32_t kinds = 0;
    for (NodeId n = {0}; n.i < f->g->node.n; n.i++)
        kinds |= cascade_kind(f, n);
    return kinds;
}

static bool hastens(const Search *s) {
    Arena *arena = arena_new("flies");
    Attempt *a = attempt_new(arena, s->schedule, s->schedule->spec, s->options,
                             s->memo, NULL);
    bool faster = on_the_fly_hastens(&a->d);
    arena_free(arena);
    return faster;
}

Attempt *search_open(Search *s, Arena *arena, const Schedule *schedule,
                     const PlanOptions *options, const Memo *memo,
                     Plan *bound) {
    *s = (Search){.arena = arena, .schedule = schedule, .options = options};
    const PlanShared *shared = options->shared;
    Attempt *first = attempt_new(arena, schedule, schedule->spec, options,
                                 memo || !shared ? memo : shared->memo, NULL);
    s->archive.arena = arena;
    s->effort =
        &efforts[options->effort < EFFORTS ? options->effort : EFFORTS - 1];
    s->steps = s->effort->steps;
    s->memo = first->f->memo;
    s->kinds = all_kinds(first->f);
    s->never = memory_bound(&first->d);
    bound_make(&first->d, bound);
    s->compulsory = bound->ddr_bound[PLAN_BOUND_ANY];
    s->hastens = hastens(s);
    return first;
}

Plan *search_take(Search *s, Arena *into) {
    if (!s->n_best)
        return NULL;
    Trial *t = s->best[0];
    if (!s->volumes && !t->counted)
        trial_count(s, t);
    if (!s->volumes)
        trial_leave(s, t);
    for (uint32_t i = 1; i < s->n_best; i++)
        s->best[i - 1] = s->best[i];
    s->n_best--;
    Plan *plan = s->volumes ? trial_volumes(s, t, into) : t->plan;
    uint64_t cap = t->config.cap;
    bool smaller = cap < s->schedule->spec->memory[0].size;
    plan->am_planned = smaller && !plan->keeps_all ? cap : 0;
    plan->cost = t->cost;
    plan->ddr_moved = t->traffic.moved;
    plan->ddr_again = t->traffic.again;
    if (s->volumes)
        arena_free(t->arena);
    else
        arena_join(into, t->arena);
    return plan;
}

void search_again(Search *s) {
    search_close(s);
    s->n_tried = s->tried.n = s->chosen.n = s->seen.n = s->archive.at.n = 0;
    s->steps = s->effort->steps;
}

void search_close(Search *s) {
    while (s->n_pool)
        arena_free(s->pool[--s->n_pool]->arena);
    while (s->n_best)
        arena_free(s->best[--s->n_best]->arena);
}
