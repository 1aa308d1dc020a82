/* waits.c - which engines an instruction must wait for.
 *
 * Input: actions in order, over placements. Output: sets of units.
 * Invariants: two instructions that are at work at the same time run on
 * engines that can run side by side, and neither writes bytes that the other
 * reads or writes. Parts of one volume with different channels are apart,
 * though their bytes interleave.
 */
#include "codegen/waits.h"

static const Placement *operand(const Plan *plan, const Action *a, uint32_t i) {
    return &plan->placement[i < a->n_in ? a->in[i] : a->out];
}

static bool apart_in_volume(const Placement *a, const Placement *b) {
    return a->offset == b->offset && a->whole.c == b->whole.c &&
           a->bytes == b->bytes && a->buffer == b->buffer &&
           (a->part_c + a->n_c <= b->part_c || b->part_c + b->n_c <= a->part_c);
}

static bool overlap(uint64_t a, uint64_t a_bytes, uint64_t b,
                    uint64_t b_bytes) {
    return a < b + b_bytes && b < a + a_bytes;
}

static bool share_bytes(const Placement *a, const Placement *b) {
    return a->memory == b->memory && !apart_in_volume(a, b) &&
           overlap(a->offset, a->bytes, b->offset, b->bytes);
}

/* Tiles pass through active memory on ways of their own. */
static bool is_tiled(const Action *a) {
    return a->style >= 0;
}

static bool conflict(const Plan *plan, const Action *a, const Action *b) {
    if (is_tiled(a) || is_tiled(b))
        return true;
    for (uint32_t i = 0; i <= a->n_in; i++)
        for (uint32_t k = 0; k <= b->n_in; k++) {
            bool writes = i == a->n_in || k == b->n_in;
            if (writes && share_bytes(operand(plan, a, i), operand(plan, b, k)))
                return true;
        }
    return false;
}

static bool side_by_side(const HwSpec *spec, uint32_t a, uint32_t b) {
    bool moves = a >= spec->n_engines || b >= spec->n_engines;
    return moves || spec->engine[a].beside >> b & 1;
}

static uint64_t hazards(const Waits *w, const Action *action, uint32_t unit) {
    const Plan *plan = w->plan;
    uint64_t units = 0;
    for (uint32_t i = 0; i < w->flight.n; i++) {
        const Flight *f = &w->flight.at[i];
        if (!side_by_side(plan->schedule->spec, unit, f->unit) ||
            conflict(plan, action, &plan->action[f->action]))
            units |= UINT64_C(1) << f->unit;
    }
    return units;
}

static void take_off(Waits *w, uint32_t action, uint32_t unit, uint64_t idle) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < w->flight.n; i++) {
        Flight f = w->flight.at[i];
        if (f.unit != unit && !(idle >> f.unit & 1))
            w->flight.at[kept++] = f;
    }
    w->flight.n = kept;
    vec_push(w->arena, &w->flight, ((Flight){action, unit}));
}

uint64_t waits_before(Waits *w, uint32_t i) {
    const Action *action = &w->plan->action[i];
    const HwSpec *spec = w->plan->schedule->spec;
    uint64_t all = insn_units(spec);
    switch (action->kind) {
    case ACTION_CONCAT:
        return all;
    case ACTION_HOST:
        w->flight.n = 0;
        return all;
    case ACTION_STORE:
        take_off(w, i, insn_unit_of_stores(spec), all);
        return all;
    case ACTION_LOAD:
    case ACTION_WEIGHTS:
    case ACTION_BIAS:
        take_off(w, i, insn_unit_of_loads(spec), all);
        return all;
    case ACTION_RUN:
    case ACTION_COPY:
        break;
    }
    uint32_t engine = (uint32_t)action->legal.engine;
    uint64_t units = hazards(w, action, engine) | UINT64_C(1) << engine;
    take_off(w, i, engine, units);
    return units;
}

bool waits_parallel(const Plan *plan, const Action *action) {
    const Placement *a = operand(plan, action, 0);
    const Placement *b = operand(plan, action, 1);
    const HwMemory *m = &plan->schedule->spec->memory[a->memory];
    return a->memory == b->memory && a->bytes && b->bytes &&
           hwspec_in_partitions(m, a->offset, a->bytes, b->offset, b->bytes);
}
