/* issue_queue.c - time on machines with a queue; see weights.h.
 *
 * Input: actions in the listing's order. Output: when each begins: when its
 * engine, or the DMA, has done those before it, when those that it conflicts
 * with are done, and all but the `tiling.queue` in front of it.
 */
#include "plan/issue_queue.h"

#include <string.h>

enum { FORGET = 32 }; /* actions */

/* ---- bytes in use ---- */

void in_uses_add(Arena *arena, InUses *all, InUse one) {
    uint32_t low = 0, high = all->n;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        bool below = all->at[mid].bytes.first < one.bytes.first;
        *(below ? &low : &high) = below ? mid + 1 : mid;
    }
    vec_push(arena, all, one);
    memmove(&all->at[low + 1], &all->at[low],
            (all->n - 1 - low) * sizeof *all->at);
    all->at[low] = one;
}

void in_uses_drop(InUses *all, uint64_t less) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < all->n; i++)
        if (all->at[i].until >= less)
            all->at[n++] = all->at[i];
    all->n = n;
}

/* ---- actions ---- */

Touched touched_by(Arena *arena, const Plan *plan, const Action *a) {
    Touched t = {.loads = a->kind == ACTION_WEIGHTS,
                 .loads_bias = a->kind == ACTION_BIAS};
    if (a->weights)
        t.weights = block_bytes(&plan->block[a->weights - 1]);
    if (a->bias)
        t.bias = block_bytes(&plan->bias[a->bias - 1]);
    if (a->sums) {
        const SumsPlace *s = &plan->sums[a->sums - 1];
        t.sums = (Reach){s->offset, s->offset + s->bytes};
    }
    if (!loads_constants(a))
        t.volumes = accesses_of(arena, plan, a);
    return t;
}

/* Whether the action's volumes touch bytes that another has for weights. */
static bool over_weights(const HwSpec *spec, const Touched *volumes,
                         const Touched *weights) {
    const Accesses *all = &volumes->volumes;
    for (uint32_t i = weights->loads ? 0 : all->n_read; i < all->n; i++) {
        const Access *a = &all->at[i];
        if (a->at->memory == spec->weights &&
            access_in(spec, a, weights->weights))
            return true;
    }
    return false;
}

/* To the byte: the listing's clock knows no other conflicts. */
static bool conflict(const HwSpec *spec, const Touched *a, const Touched *b) {
    return ((a->loads || b->loads) && reaches_meet(a->weights, b->weights)) ||
           ((a->loads_bias || b->loads_bias) &&
            reaches_meet(a->bias, b->bias)) ||
           reaches_meet(a->sums, b->sums) ||
           (b->weights.end && over_weights(spec, a, b)) ||
           (a->weights.end && over_weights(spec, b, a)) ||
           (a->volumes.n && b->volumes.n &&
            !accesses_apart(&a->volumes, &b->volumes) &&
            accesses_touch(spec, &a->volumes, &b->volumes));
}

/* The last ones end last. */
uint64_t queue_ready(const Queue *q, const Touched *t, QueueReady *known) {
    const HwSpec *spec = q->plan->schedule->spec;
    for (uint32_t i = q->entry.n;
         i-- > 0 && q->entry.at[i].number >= known->entries;) {
        const QueueEntry *e = &q->entry.at[i];
        if (e->end > known->cycle && e->end > q->floor &&
            conflict(spec, &e->touched, t))
            known->cycle = e->end;
    }
    known->entries = q->n_entries;
    return known->cycle > q->floor ? known->cycle : q->floor;
}

uint64_t queue_free(const Queue *q, Reach bytes) {
    Touched t = {.weights = bytes, .loads = true};
    return queue_ready(q, &t, &(QueueReady){0});
}

static bool beside(const HwSpec *spec, uint32_t a, uint32_t b) {
    return spec->engine[a].beside >> b & 1 || spec->engine[b].beside >> a & 1;
}

/* Engines that cannot run beside each other take turns. */
static uint64_t unit_free(const Queue *q, uint32_t unit) {
    const HwSpec *spec = q->plan->schedule->spec;
    uint64_t free = q->done[unit];
    for (uint32_t e = 0; unit < HW_MAX_ENGINES && e < spec->n_engines; e++)
        if (!beside(spec, unit, e) && q->done[e] > free)
            free = q->done[e];
    return free;
}

/* The memory outside that it is moved from, or to. */
static uint32_t moves_over(const Plan *plan, const Action *a) {
    if (a->kind == ACTION_BIAS)
        return plan->bias[a->bias - 1].from;
    if (a->kind == ACTION_WEIGHTS)
        return plan->block[a->weights - 1].from;
    return plan->placement[a->kind == ACTION_LOAD ? a->in[0] : a->out].memory;
}

uint64_t queue_from_free(const Queue *q, uint32_t memory) {
    const HwSpec *spec = q->plan->schedule->spec;
    int32_t dma = hwspec_dma(spec, HW_OP_LOAD_WEIGHTS, memory);
    uint64_t free = q->done[HW_MAX_ENGINES + dma];
    uint64_t wires = q->wires[spec->memory[memory].channel];
    return wires > free ? wires : free;
}

static uint64_t *wires_of(Queue *q, const Action *a) {
    return &q->wires[q->plan->schedule->spec->memory[moves_over(q->plan, a)]
                         .channel];
}

uint64_t queue_unit_free(const Queue *q, const Action *a) {
    uint64_t free = unit_free(q, unit_of(q->plan, a));
    if (!is_move(a) && !loads_constants(a))
        return free;
    const HwSpec *spec = q->plan->schedule->spec;
    uint64_t wires = q->wires[spec->memory[moves_over(q->plan, a)].channel];
    return wires > free ? wires : free;
}

uint64_t queue_over(const Queue *q) {
    uint64_t end = q->floor;
    for (uint32_t i = 0; i < PLAN_UNITS; i++)
        end = q->done[i] > end ? q->done[i] : end;
    return end;
}

uint32_t unit_of(const Plan *plan, const Action *a) {
    const HwSpec *spec = plan->schedule->spec;
    if (a->kind == ACTION_RUN || a->kind == ACTION_COPY)
        return (uint32_t)a->legal.engine;
    HwOp op = a->kind == ACTION_BIAS      ? HW_OP_LOAD_BIAS
              : a->kind == ACTION_WEIGHTS ? HW_OP_LOAD_WEIGHTS
              : a->kind == ACTION_LOAD    ? HW_OP_LOAD
                                          : HW_OP_STORE;
    int32_t dma = spec->n_dmas ? hwspec_dma(spec, op, moves_over(plan, a)) : 0;
    return HW_MAX_ENGINES + (uint32_t)dma;
}

uint32_t unit_of_move(const Plan *plan, const Action *a) {
    return unit_of(plan, a) - HW_MAX_ENGINES;
}

static void add_entry(Queue *q, const Touched *t, uint64_t end) {
    QueueEntry entry = {*t, end, q->n_entries++};
    vec_push(q->arena, &q->entry, entry);
    if (t->weights.end)
        in_uses_add(q->arena, &q->at_work, (InUse){t->weights, end});
    for (uint32_t i = 0; i < t->volumes.n; i++) {
        const Access *a = &t->volumes.at[i];
        if (a->at->memory == q->plan->schedule->spec->weights)
            in_uses_add(q->arena, &q->at_work,
                        (InUse){{a->first, a->end}, end});
    }
}

static void drop_before(Queue *q, uint64_t cycle) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < q->entry.n; i++)
        if (q->entry.at[i].end > cycle)
            q->entry.at[n++] = q->entry.at[i];
    q->entry.n = n;
    in_uses_drop(&q->at_work, cycle + 1);
}

/* Nothing begins before every unit is free: what ended earlier is forgotten. */
static void forget_done(Queue *q) {
    const HwSpec *spec = q->plan->schedule->spec;
    uint64_t first = q->done[HW_MAX_ENGINES];
    for (uint32_t i = 1; i < spec->n_dmas; i++) {
        uint64_t done = q->done[HW_MAX_ENGINES + i];
        first = done < first ? done : first;
    }
    for (uint32_t e = 0; e < spec->n_engines; e++) {
        uint64_t free = unit_free(q, e);
        first = free < first ? free : first;
    }
    drop_before(q, first > q->floor ? first : q->floor);
}

void queue_add(Queue *q, const Action *a, const Touched *t, QueueReady known) {
    uint32_t most = q->plan->schedule->spec->tiling.rows.queue;
    if (a->kind == ACTION_CONCAT)
        return;
    uint64_t start = queue_ready(q, t, &known);
    if (a->kind == ACTION_HOST) { /* takes no time */
        add_entry(q, t, start);
        return;
    }
    uint32_t unit = unit_of(q->plan, a);
    uint64_t free = queue_unit_free(q, a);
    start = start > free ? start : free;
    q->done[unit] = start + action_cycles(q->plan, a);
    if (unit >= HW_MAX_ENGINES)
        *wires_of(q, a) = q->done[unit];
    add_entry(q, t, q->done[unit]);
    vec_push(q->arena, &q->ended, q->done[unit]);
    if (q->ended.n >= most) {
        uint64_t end = q->ended.at[q->ended.n - most];
        q->floor = end > q->floor ? end : q->floor;
    }
    if (q->ended.n % FORGET == 0)
        forget_done(q);
}

uint64_t queue_cycles(const Plan *plan) {
    Queue q = {.arena = arena_new("queue"), .plan = plan};
    for (uint32_t i = 0; i < plan->n_actions; i++) {
        Touched t = touched_by(q.arena, plan, &plan->action[i]);
        queue_add(&q, &plan->action[i], &t, (QueueReady){0});
    }
    uint64_t cycles = queue_over(&q);
    arena_free(q.arena);
    return cycles;
}
