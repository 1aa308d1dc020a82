/* cycles.c - time of instructions, to first order; see engine.h.
 *
 * Input: sizes, and constants of the hwspec. Output: cycles of the machine's
 * clock, by what they are spent on (facts/two-level.md 4):
 *   the array: products of the ceilings of each loop over its unrolling, twice
 *     that where weights come at half rate, and more for results with slopes;
 *   ports of active memory: each operand once through a read port, the result
 *     once through a write port, copies and padding included;
 *   weights: into their cache, for each group of output channels once;
 *   transfers: bytes of whole bursts over bandwidth, behind a latency, with a
 *     set-up for each run of bytes that lie together.
 */
#include "sim/engine.h"

#include <math.h>

const char *const sim_cost_name[SIM_COST_COUNT] = {"array", "ports", "weights",
                                                   "transfer"};

static uint64_t ceilings(uint64_t n, uint32_t unroll) {
    uint64_t by = unroll ? unroll : 1;
    return (n + by - 1) / by;
}

static uint64_t machine_cycles(const Run *run, double seconds) {
    return (uint64_t)ceil(seconds * run->spec->clock);
}

/* Steps over the input channels of a group and the taps of a kernel. */
static uint64_t inner_steps(const Run *run, const Work *w, uint64_t taps) {
    const HwUnroll *u = &run->spec->engine[w->engine].unroll;
    bool array = w->has_repl && run->spec->replication.section;
    if (array && w->in_repl.sections)
        return hwspec_weight_rows(w->in_repl, (uint32_t)taps);
    uint32_t groups = w->groups ? w->groups : 1;
    return ceilings(w->in.c / groups, u->in_c) * ceilings(taps, u->kernel);
}

static bool has_weights(const Work *w) {
    return op_is_conv(w->op) || w->op == HW_OP_DECONV;
}

static uint64_t taps_of(const Work *w) {
    const Window *window = has_weights(w) ? w->conv : w->pool;
    if (!has_weights(w) && !op_has_pool(w->op))
        return 1;
    return (uint64_t)window[ROWS].kernel * window[COLS].kernel;
}

static uint64_t in_machine_cycles(const Run *run, const Work *w, double steps) {
    const HwEngine *engine = &run->spec->engine[w->engine];
    double efficiency = engine->efficiency > 0 ? engine->efficiency : 1;
    double clock = engine->clock > 0 ? engine->clock : run->spec->clock;
    double own = steps / efficiency + engine->setup;
    return (uint64_t)ceil(own * run->spec->clock / clock);
}

static uint64_t compute_cycles(const Run *run, const Work *w, Extent made) {
    const HwUnroll *u = &run->spec->engine[w->engine].unroll;
    uint64_t taps = taps_of(w);
    double steps = (double)ceilings(made.c, u->out_c) *
                   (double)ceilings(made.h, u->out_h) *
                   (double)ceilings(made.w, u->out_w);
    uint64_t inner =
        has_weights(w) ? inner_steps(run, w, taps) : ceilings(taps, u->kernel);
    if (w->halfrate)
        inner *= 2;
    if (w->prelu)
        inner += run->spec->engine[w->engine].slope_cycles;
    return in_machine_cycles(run, w, steps * (double)inner);
}

/* Of groups of output channels: one holds in_c x out_c weights a row. */
static uint64_t weight_bytes(const Run *run, const Work *w) {
    const HwUnroll *u = &run->spec->engine[w->engine].unroll;
    if (!has_weights(w))
        return 0;
    return inner_steps(run, w, taps_of(w)) * ceilings(w->out.c, u->out_c) *
           u->out_c * u->in_c * run->spec->element;
}

static uint64_t weight_cycles(const Run *run, uint64_t bytes) {
    double bandwidth = run->spec->weight_cache.bandwidth;
    return bandwidth > 0 ? machine_cycles(run, (double)bytes / bandwidth) : 0;
}

/* The box of an operand in active memory through one port. */
static double port_seconds(const Run *run, const Place *place, Box box) {
    const HwMemory *m = &run->spec->memory[place->memory];
    if (m->role != HW_ACTIVE || m->bandwidth <= 0)
        return 0;
    double cells = 0;
    for (uint32_t c = 0; c < place->c; c++)
        cells += place->copies[c];
    Volume one = {place->c, 1, 1, {0}};
    double padded = (double)layout_bytes(m->layout, &one);
    double bytes = ceil(cells * m->layout->element / m->align) * m->align;
    return (bytes > padded ? bytes : padded) * box.rows * box.cols /
           m->bandwidth;
}

static uint64_t port_cycles(const Run *run, const Work *w, Box in, Box out) {
    double read = port_seconds(run, &w->in_at, in), second = 0;
    double write = port_seconds(run, &w->out_at, out);
    if (w->has_in2)
        second = port_seconds(run, &w->in2_at, in);
    if (w->parallel_read)
        read = read > second ? read : second;
    else
        read += second;
    return machine_cycles(run, read > write ? read : write);
}

static uint64_t products(const Work *w, Extent made) {
    if (!has_weights(w))
        return 0;
    uint32_t groups = w->groups ? w->groups : 1;
    return extent_count(&made) * taps_of(w) * (w->in.c / groups);
}

SimEvent cost_of_box(const Run *run, const Work *w, Box out) {
    Box in = out;
    Extent made = {w->out.c, out.rows, out.cols};
    if (op_is_fused(w->op)) {
        in = window_needs(w->pool, out, w->mid.h, w->mid.w);
        made = (Extent){w->mid.c, in.rows, in.cols};
        in = window_needs(w->conv, in, w->in.h, w->in.w);
    } else if (op_is_conv(w->op)) {
        in = window_needs(w->conv, out, w->in.h, w->in.w);
    } else if (op_has_pool(w->op)) {
        in = window_needs(w->pool, out, w->in.h, w->in.w);
    } else if (w->op == HW_OP_UPSAMPLE || w->op == HW_OP_DECONV) {
        in = place_box(&w->in_at);
    }
    SimEvent e = {0};
    e.macs = products(w, made);
    e.weights = weight_bytes(run, w);
    e.cost[SIM_COMPUTE] = compute_cycles(run, w, made);
    e.cost[SIM_PORTS] = port_cycles(run, w, in, out);
    e.cost[SIM_WEIGHTS] = weight_cycles(run, e.weights);
    return e;
}

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* Weights come in behind the work of others only where the cache holds both.
 */
uint64_t cost_busy(const Work *w, const SimEvent *e) {
    uint64_t work = larger(e->cost[SIM_COMPUTE], e->cost[SIM_PORTS]);
    return w->pingpong ? larger(work, e->cost[SIM_WEIGHTS])
                       : work + e->cost[SIM_WEIGHTS];
}

static uint64_t round_up(uint64_t bytes, uint32_t to) {
    return to > 1 ? (bytes + to - 1) / to * to : bytes;
}

uint64_t cycles_of_transfer(const Run *run, const Place *place, Box box) {
    const HwMemory *m = &run->spec->memory[place->memory];
    if (m->role == HW_ACTIVE || box.rows == 0 || box.cols == 0)
        return 0;
    Volume v = {place->c, box.rows, box.cols, {0}};
    uint64_t bytes = layout_bytes(m->layout, &v);
    uint64_t row = layout_row_bytes(m->layout, &v);
    uint64_t rows = row ? ceilings(bytes, (uint32_t)larger(row, 1)) : 1;
    double seconds = m->latency + (double)rows * m->row_setup;
    if (m->bandwidth > 0)
        seconds += (double)(rows * round_up(row, m->burst)) / m->bandwidth;
    return machine_cycles(run, seconds);
}
