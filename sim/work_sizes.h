/* work_sizes.h - sizes of an instruction, as far as its fields tell them.
 *
 * Input: fields. Output: sizes that agree with each other, windows that slide
 * over them, in a Work; or a violation.
 */
#ifndef SIM_WORK_SIZES_H
#define SIM_WORK_SIZES_H

#include "sim/work.h"

enum { MAX_FIELD = 1 << 16, MAX_SIZE = 1 << 24 };

/* An instruction that is being read; `ok` until the first violation. */
typedef struct Reader {
    Run *run;
    const HwFields *f;
    bool ok;
} Reader;

/* A field's value in lo..hi; `absent` where the row does not have it. */
uint32_t read_number(Reader *r, HwField field, uint32_t absent, uint32_t lo,
                     uint32_t hi);
/* The size of an operand; `absent` where the row does not tell it. */
Extent read_extent(Reader *r, HwOperand operand, Extent absent);
static inline bool read_flag(const Reader *r, HwField field) {
    return r->f->set[field] && r->f->num[field] != 0;
}

/* Sizes, windows, groups and factors of what an engine computes. */
void read_sizes(Reader *r, Work *w);
/* Whether these come from each other, and can be simulated. */
bool check_sizes(Reader *r, const Work *w);

#endif
