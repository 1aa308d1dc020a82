/* problem_csv.h - placement problems as text: the CSV of MiniMalloc.
 *
 * A heading names the columns, in any order: id, lower, upper, size, and where
 * wanted alignment, hint, gaps, offset. Lives are half-open, [lower, upper); a
 * column `end` instead of `upper` is inclusive. An offset pins its buffer; an
 * empty field means none. Other spellings: buffer, buffer_id; begin, start.
 */
#ifndef ALLOC_PROBLEM_CSV_H
#define ALLOC_PROBLEM_CSV_H

#include "alloc/planner.h"
#include "base/diag.h"

/* A buffer as its line gives it. */
typedef struct CsvBuffer {
    const char *id;
    int64_t lower, upper;                   /* half-open */
    uint64_t size, alignment, hint, offset; /* PLAN_NO_HINT: not given */
    const char *gaps;                       /* as written */
} CsvBuffer;

typedef struct CsvProblem {
    PlanProblem problem; /* one pool without a size; steps are ranks of times */
    const CsvBuffer *buffer;
    bool has_alignment, has_hint, has_gaps;
    bool inclusive; /* it has `end`: so has what is printed */
} CsvProblem;

/* False after errors, which name the line and the column, all of them. */
bool problem_csv_read(Arena *arena, Diag *diag, const char *path,
                      CsvProblem *out);

/* The same columns in the order of the heading above, and `offset`; empty where
 * a buffer has no place. */
const char *problem_csv_print(Arena *arena, const CsvProblem *csv,
                              const PlanResult *result);

#endif
