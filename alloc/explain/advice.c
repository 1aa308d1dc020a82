/* advice.c - the least size of a memory that would do; see advice.h.
 *
 * Input: who says whether a size does, quickly or rightly. Output: sizes that
 * were tried.
 * Method: quick answers are doubled and halved to two sizes next to each other.
 * Then the larger one is tried, and the smaller; where the quick answers were
 * wrong the search goes on from there with right ones, by steps that double,
 * then by halves. As few sizes are tried as can be, since each is a whole
 * compilation.
 */
#include "alloc/explain/advice.h"

#include <stddef.h>

/* Sizes in steps. */
typedef struct Between {
    const SizeSearch *search;
    uint64_t step;
    uint64_t low, high;      /* does not do, or 0; does, or is to be tried */
    uint32_t guesses, tries; /* left */
    bool lost;               /* the budget ran out: `low` may do */
} Between;

static bool seems(Between *b, uint64_t at) {
    b->guesses--;
    return b->search->seems(b->search->context, at * b->step);
}

static bool does(Between *b, uint64_t at) {
    b->tries--;
    bool yes = b->search->does(b->search->context, at * b->step);
    if (budget_spent(b->search->budget)) {
        b->tries = 0;
        b->lost |= !yes;
    }
    return yes;
}

/* Two sizes, of which the larger one seems to do; false if none is found. */
static bool guess(Between *b) {
    enum { MOST_BITS = 40 };
    while (b->guesses && !seems(b, b->high)) {
        b->low = b->high;
        b->high *= 2;
        if (b->high * b->step >> MOST_BITS)
            return false;
    }
    while (b->guesses && b->low + 1 < b->high) {
        uint64_t mid = b->low + (b->high - b->low) / 2;
        *(seems(b, mid) ? &b->high : &b->low) = mid;
    }
    return true;
}

/* From a size that was to do and does not, upwards. False if none is found. */
static bool climb(Between *b) {
    for (uint64_t by = 1; b->tries; by *= 2) {
        if (does(b, b->high))
            return true;
        b->low = b->high;
        b->high += by;
    }
    return false;
}

/* From `high`, which does, downwards to one that does not; 0 is one, and so is
 * what is known. */
static bool descend(Between *b) {
    uint64_t fails = b->search->fails, known = fails / b->step;
    bool tried = fails % b->step == 0;
    for (uint64_t by = 1; b->tries; by *= 2) {
        bool above = b->high > by && b->high - by > known;
        uint64_t at = above ? b->high - by : known;
        if ((at == known && (tried || !known)) || !does(b, at)) {
            b->low = at;
            return true;
        }
        b->high = at;
        if (at <= known)
            return false;
    }
    return false;
}

static void halve(Between *b) {
    while (b->tries && b->low + 1 < b->high) {
        uint64_t mid = b->low + (b->high - b->low) / 2;
        *(does(b, mid) ? &b->high : &b->low) = mid;
    }
}

/* Between two sizes next to each other. */
static void refine(Between *b) {
    uint64_t parts = b->step / b->search->fine, high = b->high * parts - 1;
    Between fine = *b;
    fine.step = b->search->fine;
    fine.low *= parts;
    fine.high = high;
    if (parts < 2 || b->low + 1 < b->high || !b->tries || !does(&fine, high))
        return; /* `low` was tried before */
    halve(&fine);
    *b = fine; /* lost, too */
}

SizeAdvice advise_size(const SizeSearch *search) {
    uint64_t step = search->step, known = search->fails / step;
    Between b = {.search = search,
                 .step = step,
                 .low = known,
                 .high = search->guess / step + (search->guess % step > 0),
                 .guesses = search->guesses,
                 .tries = search->tries};
    if (b.high <= known)
        b.high = known + 1;
    if (search->seems && !guess(&b))
        return (SizeAdvice){0};
    uint64_t first = b.high;
    if (!climb(&b))
        return (SizeAdvice){0};
    bool ends = b.high > first || descend(&b);
    if (ends) {
        halve(&b);
        refine(&b);
    }
    return (SizeAdvice){b.high * b.step, ends && !b.lost ? b.low * b.step : 0};
}
