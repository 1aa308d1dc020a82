/* timeline.c - when instructions start and end; see engine.h.
 *
 * Input: instructions in the listing's order, each with its unit and the
 * cycles it takes there. Output: events. Invariants: instructions are issued
 * in order, a unit runs one at a time, and none starts before the units that
 * it waits for are idle. What an idle unit touched cannot conflict any more,
 * whatever the cycles say: conflicts never depend on the cycle model.
 */
#include "sim/engine.h"

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
    for (uint32_t unit = 0; unit < run->spec->n_engines + 2; unit++)
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
    uint32_t dma = run->spec->n_engines;
    uint64_t computed = 0;
    for (uint32_t unit = 0; unit < dma; unit++)
        computed = run->done[unit] > computed ? run->done[unit] : computed;
    if (e->use >= dma || e->start <= computed)
        return;
    e->idle = e->start - computed;
    if (run->last[dma])
        e->behind = event_what(run, run->last[dma] - 1);
}

void timeline_add(Run *run, uint32_t unit, const SimEvent *event) {
    SimEvent e = *event;
    e.name = run->who;
    e.insn = run->insn;
    e.use = unit;
    e.start = run->issued > run->done[unit] ? run->issued : run->done[unit];
    find_idle(run, &e);
    run->issued = e.start;
    run->done[unit] = e.start + e.cycles;
    if (run->done[unit] > run->result->cycles)
        run->result->cycles = run->done[unit];
    run->busy |= UINT64_C(1) << unit;
    run->use[unit].cycles += e.cycles;
    run->use[unit].instructions++;
    run->result->weights_read += e.weights;
    run->result->busy += e.busy;
    run->result->transfer += e.cost[SIM_TRANSFER] + e.fetched;
    vec_push(run->arena, &run->event, e);
    run->last[unit] = run->event.n;
}
