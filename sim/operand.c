/* operand.c - what an instruction reads and writes, counted; see engine.h. */
#include "sim/engine.h"

static uint64_t payload(const Run *run, const Place *place, Box box) {
    return box_count(place, box) * run->spec->element;
}

/* Not in active memory, and no sums that an engine keeps. */
static bool is_outside(const Run *run, const Place *place) {
    HwRole role = run->spec->memory[place->memory].role;
    return role != HW_ACTIVE && role != HW_SUMS;
}

uint64_t operand_outside(const Run *run, const Place *place) {
    return is_outside(run, place) ? payload(run, place, place_box(place)) : 0;
}

bool operand_ready(Run *run, const Place *place, Box box, const char *what) {
    inputs_assume(run, place);
    return memory_holds(run, place, box, what);
}

void operand_read(Run *run, const Place *place, Box box, const char *what,
                  float *out) {
    if (is_outside(run, place))
        run->result->backing_read += payload(run, place, box);
    memory_read(run, place, box, what, out);
}

void operand_write(Run *run, const Place *place, Box box, uint32_t writer,
                   const float *values) {
    if (is_outside(run, place))
        run->result->backing_written += payload(run, place, box);
    memory_write(run, place, box, writer, values);
}

void show_result(Run *run, const char *name, const Extent *size,
                 const float *value) {
    if (!run->options.observer || !value)
        return;
    SimOutput output = {name, size->c, size->h, size->w, value};
    run->options.observer(run->options.context, run->insn, &output);
}

SimSpan span_of(const Run *run, const Place *place) {
    uint32_t element = run->spec->memory[place->memory].layout->element;
    return (SimSpan){place->memory, place->first * element,
                     place->end * element};
}
