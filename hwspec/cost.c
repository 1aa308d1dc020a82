/* cost.c - cycles of engines, weights and transfers; see cost.h.
 *
 * Input: sizes, and constants of the hwspec. Output: cycles of the machine's
 * clock:
 *   the array: products of the ceilings of each loop over its unrolling;
 *   weights: those that there are, however many channels the array takes at
 *     once: lanes that a layer leaves idle fetch none;
 *   transfers: bytes of whole bursts over bandwidth, behind a latency, with a
 *     set-up for each run of bytes that lie together.
 */
#include "hwspec/cost.h"

#include "base/arith.h"
#include "hwspec/cycles.h"

#include <math.h>

static uint64_t ceilings(uint64_t n, uint64_t unroll) {
    uint64_t by = unroll ? unroll : 1;
    return (n + by - 1) / by;
}

uint64_t hwspec_cycles(const HwSpec *spec, double seconds) {
    return (uint64_t)ceil(seconds * spec->clock);
}

uint64_t hwspec_inner_steps(const HwSpec *spec, const HwEngine *engine,
                            const Repl *repl, uint32_t channels,
                            uint64_t taps) {
    if (repl && spec->replication.section && repl->sections)
        return hwspec_weight_rows(*repl, (uint32_t)taps);
    return ceilings(channels, engine->unroll.in_c) *
           ceilings(taps, engine->unroll.kernel);
}

uint64_t hwspec_conv_steps(const HwSpec *spec, const HwEngine *engine,
                           const Repl *repl, uint32_t channels, uint32_t rows,
                           uint32_t columns) {
    if (channels <= engine->unroll.row_taps)
        return ceilings((uint64_t)channels * columns, engine->unroll.in_c) *
               rows;
    return hwspec_inner_steps(spec, engine, repl, channels,
                              (uint64_t)rows * columns);
}

uint64_t hwspec_engine_cycles(const HwSpec *spec, const HwEngine *engine,
                              uint32_t c, uint32_t h, uint32_t w,
                              uint64_t inner) {
    const HwUnroll *u = &engine->unroll;
    double efficiency = engine->efficiency > 0 ? engine->efficiency : 1;
    bool own_clock = engine->clock > 0 && spec->clock > 0;
    double ticks = own_clock ? spec->clock / engine->clock : 1;
    double steps =
        engine->cycles
            ? hwspec_cycles_of(engine->cycles,
                               (const int64_t[]){c, h, w, (int64_t)inner})
            : (double)ceilings(c, u->out_c) * (double)ceilings(h, u->out_h) *
                  (double)ceilings(w, u->out_w) * (double)inner;
    double own = steps / efficiency + engine->setup;
    return (uint64_t)ceil(own * ticks);
}

uint64_t hwspec_attention_cycles(const HwSpec *spec, const HwEngine *engine,
                                 const Attention *a, uint32_t h, uint32_t w) {
    uint32_t scores = a->groups * a->keys, values = a->groups * a->values;
    return hwspec_engine_cycles(
               spec, engine, scores, h, w,
               hwspec_inner_steps(spec, engine, NULL, a->channels, 1)) +
           hwspec_engine_cycles(spec, engine, scores, h, w,
                                hwspec_passes(engine, HW_OP_ATTENTION)) +
           hwspec_engine_cycles(
               spec, engine, values, h, w,
               hwspec_inner_steps(spec, engine, NULL, a->keys, 1));
}

uint64_t hwspec_weight_bytes(const HwSpec *spec, uint32_t channels,
                             uint64_t taps, uint32_t c) {
    return channels * taps * c * spec->element;
}

uint64_t hwspec_weight_cycles(const HwSpec *spec, uint64_t bytes) {
    double bandwidth = spec->weight_cache.bandwidth;
    return bandwidth > 0 ? hwspec_cycles(spec, (double)bytes / bandwidth) : 0;
}

uint64_t hwspec_transfer_cycles(const HwSpec *spec, const HwMemory *memory,
                                uint32_t c, uint32_t rows, uint32_t cols,
                                Contiguous rows_lie) {
    if (memory->role == HW_ACTIVE || rows == 0 || cols == 0)
        return 0;
    Volume v = {c, rows, cols, {0}};
    uint64_t bytes;
    uint64_t run = layout_run_bytes(memory->layout, &v, rows_lie, &bytes);
    uint64_t runs = run ? ceilings(bytes, run) : 1;
    double seconds = memory->latency + (double)runs * memory->row_setup;
    if (memory->bandwidth > 0)
        seconds +=
            (double)(runs * round_up(run, memory->burst)) / memory->bandwidth;
    return hwspec_cycles(spec, seconds);
}

uint64_t hwspec_tile_cycles(const HwSpec *spec, const HwMemory *memory,
                            const Volume *whole, uint32_t c, uint32_t rows,
                            uint32_t cols) {
    Volume v = {c, rows, cols, {0}};
    return hwspec_transfer_cycles(spec, memory, c, rows, cols,
                                  layout_contiguous(memory->layout, whole, &v));
}

uint64_t hwspec_bias_elements(const HwSpec *spec, uint32_t channels) {
    uint64_t one = spec->memory[spec->bias].layout->element;
    return ceil_div(channels * one, spec->element);
}

uint64_t hwspec_staged_cycles(const HwSpec *spec, const HwMemory *from,
                              uint64_t elements) {
    double bytes = (double)round_up(elements * spec->element, from->burst);
    double seconds = from->latency + from->row_setup;
    if (from->bandwidth > 0)
        seconds += bytes / from->bandwidth;
    return hwspec_cycles(spec, seconds);
}

uint64_t hwspec_host_cycles(const HwSpec *spec, uint64_t products,
                            uint64_t bytes) {
    const HwHost *host = &spec->host;
    double work = (double)products / host->macs;
    double moved = (double)bytes / host->bandwidth;
    return hwspec_cycles(spec, host->call + (work > moved ? work : moved));
}
