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

/* Concats count where they are complete: while they are filled, their members
 * could lie apart. */
static bool waits_at(const Unit *unit, uint32_t step, bool *touched) {
    bool before = false, behind = false;
    *touched = false;
    for (uint32_t i = 0; i < unit->n_touches; i++) {
        *touched |= unit->touch[i].step == step;
        before |= unit->touch[i].step < step;
        behind |= unit->touch[i].step > step;
    }
    return before && behind && (!unit->concat || unit->complete < step);
}

static double barrier_bytes(const Work *w, uint32_t step) {
    Waiting *waiting = ARENA_ARRAY(w->arena, Waiting, w->unit.n + 1);
    double sum = 0;
    uint32_t n = 0;
    for (uint32_t u = 0; u < w->unit.n; u++) {
        const Unit *unit = &w->unit.at[u];
        uint64_t bytes = least_bytes(w, unit->bytes, UINT32_MAX);
        bool touched, waits = waits_at(unit, step, &touched);
        if (unit->dead || bytes == UINT64_MAX || (!touched && !waits))
            continue;
        sum += (double)bytes;
        if (!touched)
            waiting[n++] = (Waiting){(double)bytes,
                                     (double)tensor_moved(w, unit->root) *
                                         (from_outside(w, unit->root) ? 1 : 2)};
    }
    return cheapest(waiting, n, sum - (double)w->total);
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

static double layers_bound(const Work *w) {
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
    for (uint32_t s = 0; s < w->schedule->n_steps; s++) {
        double bytes = is_barrier(w, s) ? barrier_bytes(w, s) : 0;
        most = bytes > most ? bytes : most;
    }
    plan->ddr_compulsory = compulsory(w);
    double layers = layers_bound(w);
    plan->ddr_bound = plan->ddr_compulsory + (uint64_t)most;
    plan->ddr_layers =
        plan->ddr_compulsory + (uint64_t)(layers > most ? layers : most);
}
