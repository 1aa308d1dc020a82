/* cycles.c - time of instructions, to first order; see engine.h.
 *
 * Input: sizes, and constants of the hwspec. Output: cycles of the machine's
 * clock, by what they are spent on:
 *   the array, weights, transfers: as hwspec/cost.h has it; the array takes
 *     twice that where weights come at half rate, and more for results with
 *     slopes;
 *   ports of active memory: each operand once through a read port, the result
 *     once through a write port, copies and padding included.
 */
#include "sim/engine.h"

#include "base/arith.h"
#include "hwspec/cost.h"

#include <math.h>

const char *const sim_cost_name[SIM_COST_COUNT] = {"array", "ports", "weights",
                                                   "transfer"};

static bool has_weights(const Work *w) {
    return op_is_conv(w->op) || w->op == HW_OP_DECONV;
}

static uint64_t taps_of(const Work *w) {
    const Window *window = has_weights(w) ? w->conv : w->pool;
    if (!has_weights(w) && !op_has_pool(w->op))
        return 1;
    return (uint64_t)window[ROWS].kernel * window[COLS].kernel;
}

/* Steps of the engine for one result. */
static uint64_t inner_steps(const Run *run, const Work *w) {
    const HwEngine *engine = &run->spec->engine[w->engine];
    uint32_t groups = w->groups ? w->groups : 1;
    const Repl *repl = w->has_repl ? &w->in_repl : NULL;
    if (hw_op_traits[w->op] & HW_MATRIX)
        return hwspec_inner_steps(run->spec, engine, NULL, w->in.c / groups, 1);
    if (!has_weights(w)) /* channels go side by side */
        return hwspec_inner_steps(run->spec, engine, NULL, 1, taps_of(w));
    return hwspec_conv_steps(run->spec, engine, repl, w->in.c / groups,
                             w->conv[ROWS].kernel, w->conv[COLS].kernel);
}

static Attention attention_of(const Work *w) {
    uint32_t groups = w->groups ? w->groups : 1;
    return (Attention){.groups = groups,
                       .channels = w->in.c / groups,
                       .values = w->out.c / groups,
                       .keys = (uint32_t)pixels_mixed(w)};
}

static uint64_t compute_cycles(const Run *run, const Work *w, Extent made) {
    const HwEngine *engine = &run->spec->engine[w->engine];
    if (w->op == HW_OP_ATTENTION) {
        Attention a = attention_of(w);
        return hwspec_attention_cycles(run->spec, engine, &a, made.h, made.w);
    }
    uint64_t inner = inner_steps(run, w) * hwspec_passes(engine, w->op);
    if (w->halfrate)
        inner *= 2;
    if (w->prelu)
        inner += engine->slope_cycles;
    return hwspec_engine_cycles(run->spec, engine, made.c, made.h, made.w,
                                inner);
}

static uint64_t weight_bytes(const Run *run, const Work *w) {
    uint32_t groups = w->groups ? w->groups : 1;
    if (!has_weights(w) || w->stages)
        return 0;
    return hwspec_weight_bytes(run->spec, w->in.c / groups, taps_of(w),
                               w->out.c);
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
    double padded = (double)address_bytes(m->layout, &one);
    double bytes = ceil(cells * m->layout->element / m->align) * m->align;
    return (bytes > padded ? bytes : padded) * box.rows * box.cols /
           m->bandwidth;
}

static uint64_t port_cycles(const Run *run, const Work *w, Box in, Box out) {
    double read = port_seconds(run, &w->in_at, in), second = 0;
    double write = port_seconds(run, &w->out_at, out);
    bool whole = hw_op_traits[w->op] & (HW_BY_CHANNEL | HW_MATRIX);
    if (w->has_in2)
        second = port_seconds(run, &w->in2_at, whole ? whole_box(&w->in2) : in);
    if (w->parallel_read)
        read = read > second ? read : second;
    else
        read += second;
    return hwspec_cycles(run->spec, read > write ? read : write);
}

static uint64_t products(const Work *w, Extent made) {
    uint32_t groups = w->groups ? w->groups : 1;
    if (w->op == HW_OP_ATTENTION)
        return (uint64_t)made.h * made.w * pixels_mixed(w) * w->in2.c;
    if (hw_op_traits[w->op] & HW_MATRIX)
        return extent_count(&made) * (w->in.c / groups);
    if (!has_weights(w))
        return 0;
    return extent_count(&made) * taps_of(w) * (w->in.c / groups);
}

static bool same_plane(const Work *w) {
    return w->in.h == w->out.h && w->in.w == w->out.w;
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
    } else if (w->op == HW_OP_UPSAMPLE || w->op == HW_OP_DECONV ||
               !same_plane(w)) {
        in = place_box(&w->in_at);
    }
    SimEvent e = {0};
    e.macs = products(w, made);
    e.weights = weight_bytes(run, w);
    e.cost[SIM_COMPUTE] = compute_cycles(run, w, made);
    e.cost[SIM_PORTS] = port_cycles(run, w, in, out);
    e.cost[SIM_WEIGHTS] = hwspec_weight_cycles(run->spec, e.weights);
    return e;
}

/* Weights come in behind the work of others only where the cache holds both.
 */
uint64_t cost_busy(const Work *w, const SimEvent *e) {
    uint64_t work = larger(e->cost[SIM_COMPUTE], e->cost[SIM_PORTS]);
    return w->pingpong ? larger(work, e->cost[SIM_WEIGHTS])
                       : work + e->cost[SIM_WEIGHTS];
}

uint64_t cycles_of_tile(const Run *run, const Place *place, const Extent *whole,
                        uint32_t c, uint32_t rows, uint32_t cols) {
    Volume v = {whole->c, whole->h, whole->w, {0}};
    return hwspec_tile_cycles(run->spec, &run->spec->memory[place->memory], &v,
                              c, rows, cols);
}

/* How rows that move lie at one of the ends. */
static Contiguous together_at(const Run *run, const Place *at,
                              const Volume *v) {
    const Volume *in = &at->inside;
    if (at->turns && (at->turns != in->h || at->row % in->h + v->h > in->h))
        return ROWS_APART;
    return layout_contiguous(run->spec->memory[at->memory].layout, in, v);
}

uint64_t cycles_of_move(const Run *run, const Work *w, Box box) {
    const Place *from = &w->in_at, *to = &w->out_at;
    const Place *outside = w->op == HW_OP_LOAD ? from : to;
    Volume v = {outside->c, box.rows, box.cols, {0}};
    Contiguous a = together_at(run, from, &v), b = together_at(run, to, &v);
    return hwspec_transfer_cycles(run->spec,
                                  &run->spec->memory[outside->memory], v.c, v.h,
                                  v.w, a < b ? a : b);
}
