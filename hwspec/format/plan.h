/* plan.h - a row while it is planned how to read it back, for the files that
 * do it. */
#ifndef HWSPEC_FORMAT_PLAN_H
#define HWSPEC_FORMAT_PLAN_H

#include "hwspec/format/format.h"

typedef VEC(uint32_t) Numbers;

typedef struct Planner {
    Arena *arena;
    Diag *diag;
    const HwFormat *format;
    ExprNames *names;
    ProgRow *row;
    bool *known, *seen;
    uint32_t depth; /* of `each` around */
    Numbers meanings, vectors, labels, gaps;
    VEC(Field *) pending;
    VEC(Late) late;
    VEC(const FormatTable *) tables;
    VEC(const Field *) tells; /* fields that are read or looked up, in order */
} Planner;

static inline const ExprName *planned_name(const Planner *p, uint32_t name) {
    return &p->names->list.at[name];
}

/* What each name of the row can be, by what its fields and rules leave. */
void format_plan_ranges(Planner *p);
/* An error where what is computed of these overflows, or repeats nothing. */
void format_check_ranges(const Planner *p);

#endif
