/* cycles.c - time of instructions, to first order; see engine.h.
 *
 * Input: sizes, and the unrolling of the engine. Output: cycles of the
 * machine's clock: of an engine the product of the ceilings of each loop over
 * its unrolling (facts/two-level.md 4), of a transfer bytes over bandwidth
 * behind a latency. Instructions run one after another, those of one step side
 * by side.
 */
#include "sim/engine.h"

#include <math.h>

static double ceilings(uint64_t n, uint32_t unroll) {
    uint64_t by = unroll ? unroll : 1;
    return (double)((n + by - 1) / by);
}

/* Steps over the input channels of a group and the taps of a kernel. */
static double inner_steps(const Run *run, const Work *w, const HwUnroll *u,
                          uint64_t taps) {
    const Repl *r = &w->in_repl;
    bool array = w->has_repl && run->spec->replication.section;
    if (array && r->sections)
        return (double)hwspec_weight_rows(*r, (uint32_t)taps);
    uint32_t groups = w->groups ? w->groups : 1;
    return ceilings(w->in.c / groups, u->in_c) * ceilings(taps, u->kernel);
}

static uint64_t in_machine_cycles(const Run *run, const HwEngine *engine,
                                  double steps) {
    double efficiency = engine->efficiency > 0 ? engine->efficiency : 1;
    double clock = engine->clock > 0 ? engine->clock : run->spec->clock;
    double own = steps / efficiency + engine->setup;
    return (uint64_t)ceil(own * run->spec->clock / clock);
}

static uint64_t compute_cycles(const Run *run, const Work *w) {
    const HwEngine *engine = &run->spec->engine[w->engine];
    const HwUnroll *u = &engine->unroll;
    bool conv = op_is_conv(w->op) || w->op == HW_OP_DECONV;
    const Extent *made = op_is_fused(w->op) ? &w->mid : &w->out;
    const Window *window = conv ? w->conv : w->pool;
    double steps = ceilings(made->c, u->out_c) * ceilings(made->h, u->out_h) *
                   ceilings(made->w, u->out_w);
    uint64_t taps = 1;
    if (conv || op_has_pool(w->op))
        taps = (uint64_t)window[ROWS].kernel * window[COLS].kernel;
    steps *= conv ? inner_steps(run, w, u, taps) : ceilings(taps, u->kernel);
    return in_machine_cycles(run, engine, steps);
}

uint64_t cycles_of_bytes(const Run *run, uint32_t memory, uint64_t bytes) {
    const HwMemory *m = &run->spec->memory[memory];
    double seconds = m->latency;
    if (m->bandwidth > 0)
        seconds += (double)bytes / m->bandwidth;
    return (uint64_t)ceil(seconds * run->spec->clock);
}

/* Tiles come and go while others are computed: the slower of both counts. */
uint64_t cycles_of_work(const Run *run, const Work *w, uint64_t read,
                        uint64_t written) {
    uint64_t compute = compute_cycles(run, w), moved = 0;
    if (read)
        moved += cycles_of_bytes(run, w->in_at.memory, read);
    if (written)
        moved += cycles_of_bytes(run, w->out_at.memory, written);
    return compute > moved ? compute : moved;
}

void cycles_add(Run *run, uint32_t use, uint64_t cycles) {
    run->use[use].cycles += cycles;
    run->use[use].instructions++;
    if (cycles > run->step_cycles)
        run->step_cycles = cycles;
}

void cycles_end_step(Run *run) {
    run->result->cycles += run->step_cycles;
    run->step_cycles = 0;
}
