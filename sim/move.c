/* move.c - loads and stores: rows of a volume, or some columns of them, between
 * two memories.
 *
 * Input: a Work whose side in active memory is a dense volume of what is moved.
 * Output: the cells of the other side, copies included; bytes by memory.
 */
#include "sim/engine.h"

uint32_t unit_that_moves(const Run *run, const Work *w) {
    const HwSpec *spec = run->spec;
    bool stores = w->op == HW_OP_STORE;
    uint32_t outside = hw_is_among(w->op, HW_CONSTANT_LOADS) ? w->from
                       : stores                              ? w->out_at.memory
                                                             : w->in_at.memory;
    int32_t dma = hwspec_dma(spec, w->op, outside);
    if (spec->n_dmas && dma >= 0)
        return insn_unit_of_dma(spec, (uint32_t)dma);
    return stores ? insn_unit_of_stores(spec) : insn_unit_of_loads(spec);
}

bool move_run(Run *run, const Work *w) {
    bool load = w->op == HW_OP_LOAD;
    Box rows = {w->row, w->rows, w->col, w->cols};
    Box all = {0, w->rows, 0, w->cols};
    Box from = load ? rows : all, to = load ? all : rows;
    uint64_t n = box_count(&w->in_at, from);
    uint64_t bytes = n * run->spec->element;
    float *values = NULL;
    if (!operand_ready(run, &w->in_at, from, "source"))
        return false;
    if (place_overlap(run, &w->in_at, &w->out_at))
        fault(run, "destination %s overlaps its source %s",
              place_text(run, &w->out_at), place_text(run, &w->in_at));
    if (!run->options.memory_only)
        values = ARENA_ARRAY(run->work, float, n);
    operand_read(run, &w->in_at, from, "source", values);
    uint32_t writer = memory_writer(run, &w->out_at, w->name, WRITER_ENGINE);
    operand_write(run, &w->out_at, to, writer, values);
    run->read[w->in_at.memory] += bytes;
    run->written[w->out_at.memory] += bytes;
    SimEvent event = {
        .read = load ? bytes : 0, .written = load ? 0 : bytes, .least = bytes};
    event.op = w->op;
    event.in = span_of(run, &w->in_at);
    event.out = span_of(run, &w->out_at);
    event.cycles = cycles_of_move(run, w, rows);
    event.cost[SIM_TRANSFER] = event.cycles;
    event.outside = load ? w->in_at.memory : w->out_at.memory;
    timeline_add(run, unit_that_moves(run, w), &event);
    return true;
}
