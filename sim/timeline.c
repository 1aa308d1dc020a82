/* timeline.c - when instructions start and end; see engine.h.
 *
 * Input: instructions in the listing's order, each with its unit and the
 * cycles it takes there. Output: events. Invariants: instructions are issued
 * in order, a unit runs one at a time, and none starts before the units that
 * it waits for are idle. What an idle unit touched cannot conflict any more,
 * whatever the cycles say: conflicts never depend on the cycle model.
 */
#include "sim/engine.h"

#include "base/arith.h"

static void forget(Run *run, uint64_t units) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < run->touched.n; i++)
        if (!(units >> run->touched.at[i].unit & 1))
            run->touched.at[kept++] = run->touched.at[i];
    run->touched.n = kept;
    if (kept)
        return;
    run->touched.at = NULL;
    run->touched.cap = 0;
    arena_reset(run->group);
}

void timeline_wait(Run *run, uint64_t units) {
    for (uint32_t unit = 0; unit < HW_MAX_UNITS; unit++)
        if ((units >> unit & 1) && run->done[unit] > run->issued)
            run->issued = run->done[unit];
    run->busy &= ~units;
    forget(run, units);
}

/* A transfer by the comment that the listing has on it. */
static const char *event_what(const Run *run, uint32_t event) {
    const SimEvent *e = &run->event.at[event];
    const char *comment = run->listing->insn[e->insn].comment;
    return comment ? comment : e->name;
}

/* How long all engines have been idle when an engine starts, and why: the
 * transfer that ended last. */
static void find_idle(const Run *run, SimEvent *e) {
    uint32_t engines = run->spec->n_engines;
    uint64_t computed = 0;
    for (uint32_t unit = 0; unit < engines; unit++)
        computed = larger(computed, run->done[unit]);
    if (e->use >= engines || e->start <= computed)
        return;
    e->idle = e->start - computed;
    if (run->last_move)
        e->behind = event_what(run, run->last_move - 1);
}

/* Index in run->use: loads and stores are the DMA's; of several units that move
 * data the first has its place. */
static uint32_t use_of(const Run *run, uint32_t unit) {
    uint32_t stores = insn_unit_of_stores(run->spec);
    if (unit == insn_unit_of_dma(run->spec, 0))
        return run->spec->n_engines;
    return unit - (unit >= stores) - (unit > insn_unit_of_dma(run->spec, 0));
}

static bool is_dma(const Run *run, uint32_t unit) {
    return unit >= run->spec->n_engines && unit != insn_unit_of_host(run->spec);
}

/* When the unit can begin: transfers take the wires of a memory in turn, and,
 * where one unit moves all, the unit. */
static uint64_t free_at(const Run *run, uint32_t unit, const SimEvent *e) {
    uint32_t loads = insn_unit_of_loads(run->spec);
    uint32_t stores = insn_unit_of_stores(run->spec);
    if (!is_dma(run, unit))
        return run->done[unit];
    if (unit > stores)
        return larger(run->done[unit],
                      run->free[run->spec->memory[e->outside].channel]);
    return larger(run->done[loads], run->done[stores]);
}

static void take_wires(Run *run, const SimEvent *e) {
    uint32_t channel = run->spec->memory[e->outside].channel;
    run->free[channel] = larger(run->free[channel], e->start + e->cycles);
    run->wires[e->outside] += e->cycles;
}

void timeline_add(Run *run, uint32_t unit, const SimEvent *event) {
    SimEvent e = *event;
    e.name = run->who;
    e.insn = run->insn;
    e.use = use_of(run, unit);
    e.start = larger(run->issued, free_at(run, unit, &e));
    find_idle(run, &e);
    run->issued = e.start;
    run->done[unit] = e.start + e.cycles;
    if (run->done[unit] > run->result->cycles)
        run->result->cycles = run->done[unit];
    run->busy |= UINT64_C(1) << unit;
    run->use[e.use].cycles += e.cycles;
    run->use[e.use].instructions++;
    run->result->weights_read += e.weights;
    run->result->busy += e.busy;
    run->result->transfer += e.cost[SIM_TRANSFER] + e.fetched;
    vec_push(run->arena, &run->event, e);
    if (is_dma(run, unit)) {
        run->last_move = run->event.n;
        take_wires(run, &e);
    }
}
