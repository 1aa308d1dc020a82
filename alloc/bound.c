/* bound.c - how few bytes over DDR any plan in this order must move.
 *
 * Input: units of a network, none evicted. Output: compulsory bytes, and a
 * lower bound.
 * Compulsory: what engines read of inputs and of what the host makes, once, and
 * what they make for the host or the user, once.
 * More is proved at *barriers*: steps that machine and layers do not let run
 * by parts. While such a step runs its volumes are in active memory whole, all
 * steps before it are complete, none behind it has begun. Volumes that were
 * made before and are needed behind it share what is left; the rest of them
 * lies outside and comes back: a load for each byte, and a store unless it came
 * from outside. The cheapest choice, taken in fractions, bounds all others; so
 * does the dearest barrier.
 * Plans that run layer by layer - each complete before the next begins, none
 * twice - have a barrier between any two steps; what leaves there is stored
 * once, and loaded once for each gap between two touches. The program of
 * shares.c bounds these, tiles or not, whatever their buffers take. Plans with
 * groups of layers can move less.
 */
#include "alloc/shares.h"

#include <stdlib.h>

static uint64_t tensor_moved(const Work *w, TensorId t) {
    Volume v = plan_volume(w->g, t);
    return (uint64_t)v.c * v.h * v.w * w->spec->element;
}

static bool from_outside(const Work *w, TensorId t) {
    Origin origin = w->role[t.i].origin;
    return origin == FROM_INPUT || origin == FROM_HOST;
}

static uint64_t compulsory(const Work *w) {
    uint64_t sum = 0;
    for (TensorId t = {0}; t.i < w->g->tensor.n; t.i++) {
        if (from_outside(w, t) && w->role[t.i].engine_reads)
            sum += tensor_moved(w, t);
        if (w->role[t.i].outside)
            sum += tensor_moved(w, t);
    }
    return sum;
}

/* ---- barriers ---- */

static bool runs_by_parts(const Work *w, NodeId id) {
    HwOp op = w->legal[id.i].op;
    if (w->spec->tiling.kind == HW_TILING_SOFTWARE)
        return w->spec->tiling.ops >> op & 1;
    for (uint32_t i = 0; i < w->spec->tiling.n; i++)
        if (w->spec->tiling.kind == HW_TILING_HARDWARE &&
            w->spec->tiling.style[i].ops >> op & 1)
            return true;
    return false;
}

static bool is_barrier(const Work *w, uint32_t step) {
    const Step *s = &w->schedule->step[step];
    for (uint32_t i = 0; i < s->n; i++)
        if (!on_engine(w, s->slot[i].node) || runs_by_parts(w, s->slot[i].node))
            return false;
    return s->n > 0;
}

/* A volume that waits: what it takes, and what it costs to have it outside. */
typedef struct Waiting {
    double bytes, moved;
} Waiting;

static int by_price(const void *a, const void *b) {
    const Waiting *x = a, *y = b;
    double p = x->moved * y->bytes, q = y->moved * x->bytes;
    return (p > q) - (p < q);
}

static double cheapest(Waiting *waiting, uint32_t n, double excess) {
    double moved = 0;
    if (n)
        qsort(waiting, n, sizeof *waiting, by_price);
    for (uint32_t i = 0; i < n && excess > 0; i++) {
        double part = waiting[i].bytes < excess ? waiting[i].bytes : excess;
        moved += waiting[i].moved * part / waiting[i].bytes;
        excess -= part;
    }
    return moved;
}

static uint32_t last_step(const Unit *unit) {
    return unit->touch[unit->n_touches - 1].step;
}

static bool touched_at(const Unit *unit, uint32_t step) {
    uint32_t lo = 0, hi = unit->n_touches;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (unit->touch[mid].step < step)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < unit->n_touches && unit->touch[lo].step == step;
}

/* Units that some step before, or this one, has touched first and this one or
 * a later one last: found by going through the steps. */
typedef struct Alive {
    const Work *w;
    uint32_t *by_first, next; /* units by their first touch */
    uint32_t *unit, n;
    Waiting *waiting; /* room for all of them */
} Alive;

static Alive alive_new(const Work *w) {
    uint32_t n = w->unit.n, steps = w->schedule->n_steps;
    Alive alive = {.w = w,
                   .by_first = ARENA_ARRAY(w->arena, uint32_t, n + 1),
                   .unit = ARENA_ARRAY(w->arena, uint32_t, n + 1),
                   .waiting = ARENA_ARRAY(w->arena, Waiting, n + 1)};
    uint32_t *at = ARENA_ARRAY(w->arena, uint32_t, steps + 1);
    for (uint32_t u = 0; u < n; u++)
        if (w->unit.at[u].n_touches)
            at[w->unit.at[u].touch[0].step + 1]++;
    for (uint32_t s = 0; s < steps; s++)
        at[s + 1] += at[s];
    alive.next = at[steps];
    for (uint32_t u = 0; u < n; u++)
        if (w->unit.at[u].n_touches)
            alive.by_first[at[w->unit.at[u].touch[0].step]++] = u;
    alive.by_first[alive.next] = NONE;
    alive.next = 0;
    return alive;
}

static void alive_go(Alive *alive, uint32_t step) {
    const Unit *unit = alive->w->unit.at;
    uint32_t left = 0;
    for (uint32_t i = 0; i < alive->n; i++)
        if (last_step(&unit[alive->unit[i]]) >= step)
            alive->unit[left++] = alive->unit[i];
    alive->n = left;
    for (uint32_t u; (u = alive->by_first[alive->next]) != NONE &&
                     unit[u].touch[0].step == step;
         alive->next++)
        alive->unit[alive->n++] = u;
}

/* Concats count where they are complete: while they are filled, their members
 * could lie apart. */
static double barrier_bytes(const Alive *alive, uint32_t step) {
    const Work *w = alive->w;
    double sum = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < alive->n; i++) {
        const Unit *unit = &w->unit.at[alive->unit[i]];
        uint64_t bytes = least_bytes(w, unit->bytes, UINT32_MAX);
        bool touched = touched_at(unit, step);
        bool filling = unit->concat && unit->complete >= step;
        if (unit->dead || bytes == UINT64_MAX || (!touched && filling))
            continue;
        sum += (double)bytes;
        if (!touched)
            alive->waiting[n++] = (Waiting){
                (double)bytes, (double)tensor_moved(w, unit->root) *
                                   (from_outside(w, unit->root) ? 1 : 2)};
    }
    return cheapest(alive->waiting, n, sum - (double)w->total);
}

/* ---- layer by layer ---- */

/* Bytes, without padding, that must be somewhere over the gap. */
static double bytes_waiting(const Work *w, const Unit *unit, uint32_t touch) {
    TensorId *kept = ARENA_ARRAY(w->arena, TensorId, unit->n_tensors);
    uint32_t n = kept_tensors(w, unit, touch, kept);
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += (double)tensor_moved(w, kept[i]);
    return from_outside(w, unit->root) && unit->n_tensors == 1
               ? (double)tensor_moved(w, unit->root)
               : sum;
}

static void waits_add(const Work *w, Shares *x, uint32_t u, uint32_t touch) {
    const Unit *unit = &w->unit.at[u];
    double bytes = bytes_waiting(w, unit, touch);
    bool filling = unit->concat && unit->touch[touch].step < unit->complete;
    Stay stay = {.unit = u,
                 .touch = touch,
                 .first = 2 * unit->touch[touch].step + 1,
                 .end = 2 * unit->touch[touch + 1].step,
                 .bytes = bytes,
                 .load = bytes,
                 .store = filling || from_outside(w, unit->root) ? 0 : bytes};
    if (bytes <= 0)
        return;
    vec_push(w->arena, &x->stay, stay);
    for (uint32_t t = stay.first; t < stay.end; t++)
        x->live[t] += bytes;
}

/* Whether all gaps can be looked at in a fraction of a second: real networks
 * have thousands, chains in place of 100,000 layers have their square. */
static bool is_small(const Work *w) {
    const uint64_t most = UINT64_C(1) << 22;
    uint64_t sum = 0;
    for (uint32_t u = 0; u < w->unit.n && sum <= most; u++)
        sum += (uint64_t)w->unit.at[u].n_touches * w->unit.at[u].n_tensors;
    return sum <= most;
}

static double layers_bound(const Work *w) {
    if (!is_small(w))
        return 0;
    Shares x = {.arena = w->arena,
                .total = (double)w->total,
                .n_times = 2 * w->schedule->n_steps};
    x.live = ARENA_ARRAY(w->arena, double, x.n_times + 1);
    for (uint32_t u = 0; u < w->unit.n; u++)
        for (uint32_t i = 0; i + 1 < w->unit.at[u].n_touches; i++)
            waits_add(w, &x, u, i);
    double moved = 0;
    return shares_solve(&x, x.total, &moved) ? moved : 0;
}

void bound_make(const Work *w, Plan *plan) {
    double most = 0;
    Alive alive = alive_new(w);
    for (uint32_t s = 0; s < w->schedule->n_steps; s++) {
        alive_go(&alive, s);
        double bytes = is_barrier(w, s) ? barrier_bytes(&alive, s) : 0;
        most = bytes > most ? bytes : most;
    }
    plan->ddr_compulsory = compulsory(w);
    double layers = layers_bound(w);
    plan->ddr_bound = plan->ddr_compulsory + (uint64_t)most;
    plan->ddr_layers =
        plan->ddr_compulsory + (uint64_t)(layers > most ? layers : most);
}
