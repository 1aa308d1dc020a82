/* fields.h - an instruction whose tokens are judged, for the files that do it.
 *
 * First each says what fields must be, given the rest of the instruction; then
 * fields.c compares that with its tokens.
 */
#ifndef SIM_FIELDS_H
#define SIM_FIELDS_H

#include "sim/work.h"

/* What a field must be, as far as it follows. */
typedef struct Must {
    enum { MUST_NOTHING, MUST_BE, MUST_BE_UNSET } kind;
    int64_t num;
} Must;

typedef struct Judge {
    Run *run;
    const HwSpec *spec;
    const HwRow *row;
    const HwForm *form;
    const HwFields *f;
    const Work *w;
    Must must[HW_F_COUNT];
} Judge;

static inline void must_be(Judge *j, HwField field, int64_t num) {
    j->must[field] = (Must){MUST_BE, num};
}
static inline void must_be_unset(Judge *j, HwField field) {
    j->must[field] = (Must){MUST_BE_UNSET, 0};
}
/* Does the row have the field? Is it other than 0? */
static inline bool given(const Judge *j, HwField field) {
    return j->f->set[field];
}
static inline bool says(const Judge *j, HwField field) {
    return j->f->set[field] && j->f->num[field] != 0;
}

static inline bool is_move(const Work *w) {
    return w->op == HW_OP_LOAD || w->op == HW_OP_STORE;
}
/* Nothing but names and what the image has. */
static inline bool is_layer(const Work *w) {
    return w->op == HW_OP_HOST || w->op == HW_OP_LAYER;
}
static inline bool is_run(const Work *w) {
    return !is_move(w) && !is_layer(w) && w->op != HW_OP_CONCAT &&
           !hw_is_among(w->op, HW_CONSTANT_LOADS);
}

/* ---- fields_operands.c ---- */

void judge_operands(Judge *j);
/* All ways to tell where an operand lies agree. */
void judge_address(Judge *j, HwOperand operand);
/* Four fields, `first` the one of full sections; false where the row lacks
 * some. */
bool read_copies(const Judge *j, const HwField field[4], Repl *out);
/* All are 0 where a memory stores none and none are made on the fly. */
void judge_copies(Judge *j, const HwField field[4], const char *what,
                  uint32_t channels, bool on_the_fly);

/* ---- fields_tiles.c, fields_notes.c ---- */

void judge_tile(Judge *j);
/* Of a concat. */
void judge_note(Judge *j);

#endif
