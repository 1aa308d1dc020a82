/* advice.h - the least size of a memory that would do; private to alloc. */
#ifndef ALLOC_EXPLAIN_ADVICE_H
#define ALLOC_EXPLAIN_ADVICE_H

#include "base/budget.h"

/* Whether a plan is made, and found to be legal, where the memory has so many
 * bytes. */
typedef bool SizeTry(void *context, uint64_t size);

/* What is asked. Sizes are multiples of `step` bytes; if the least of them does
 * with `fine` bytes less, it is found in multiples of these. */
typedef struct SizeSearch {
    uint64_t step, fine; /* fine divides step */
    uint64_t fails;      /* is known not to do; 0: none is */
    uint64_t guess;      /* may be the least that does: more than `fails` */
    SizeTry *seems;      /* or NULL: a quick answer, right as a rule */
    SizeTry *does;       /* the right one */
    void *context;
    uint32_t guesses;     /* calls of `seems`, at most, */
    uint32_t tries;       /* and of `does`, */
    const Budget *budget; /* which uses this: what ran out tells nothing */
} SizeSearch;

/* Both were tried. */
typedef struct SizeAdvice {
    uint64_t enough;    /* the least known to do; 0: none is */
    uint64_t too_small; /* the largest below it known not to do; 0: none is */
} SizeAdvice;

/* Without another call of `does` where none is left; whether the two are next
 * to each other is for the caller to see. */
SizeAdvice advise_size(const SizeSearch *search);

#endif
