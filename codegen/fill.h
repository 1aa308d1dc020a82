/* fill.h - meanings of instruction fields (fields.def), from a plan's actions.
 *
 * Which of them are written, under what names and in what order, is the
 * business of the hwspec's rows.
 */
#ifndef CODEGEN_FILL_H
#define CODEGEN_FILL_H

#include "hwspec/insn.h"
#include "plan/plan.h"

typedef struct Filler {
    Arena *arena;
    const Plan *plan;
    const HwSpec *spec;
    const Graph *graph;
} Filler;

static inline void set(HwFields *fields, HwField field, int64_t value) {
    fields->set[field] = true;
    fields->num[field] = value;
}
static inline void set_text(HwFields *fields, HwField field,
                            const char *value) {
    fields->set[field] = true;
    fields->str[field] = value;
}

/* Place, size and replication of an operand of `rows` rows; of one in a ring
 * they begin with row `row` of its tensor. */
void set_operand(const Filler *e, HwFields *fields, HwOperand operand,
                 uint32_t index, uint32_t row, uint32_t rows);
/* Bytes from the start of the memory to the granule of the first channel. */
uint64_t operand_offset(const Filler *e, const Placement *p);
/* All that a run says but its name, its weights and what it waits for. */
void set_run(const Filler *e, HwFields *f, const Action *action);
/* Where the weights of an action lie, and which they are. */
void set_weights(const Filler *e, HwFields *f, const Action *action);
void set_bias(const Filler *e, HwFields *f, const Action *action);
/* What a copy does: it pools single pixels. */
void set_single_pixels(HwFields *f);
/* Of a layer that runs as one: a name that ends as that of a tile does gets the
 * number 0. */
const char *whole_name(const Filler *e, const char *name);

#endif
