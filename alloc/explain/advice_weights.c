/* advice_weights.c - the least memory that would do for tensors and weights.
 *
 * Input: what was asked of the planner. Output: sizes that were planned for to
 * the end, next to a guess.
 */
#include "alloc/explain/explain.h"
#include "alloc/search/blocks.h"

/* Who is asked for sizes, and how long. */
typedef struct Adviser {
    const Asked *asked;
    Budget plans;
} Adviser;

static bool would_do(void *context, uint64_t size) {
    Adviser *a = context;
    return a->asked->would_do(a->asked, &a->plans, size);
}

SizeAdvice size_staged(const Asked *asked) {
    enum { TRIES = 16 };
    Adviser a = {asked, budget_of(BUDGET_ADVICE, asked->schedule->n_steps)};
    const HwMemory *memory = &asked->schedule->spec->memory[0];
    uint64_t step = size_granule(memory);
    SizeSearch search = {.step = step,
                         .fine = step,
                         .fails = memory->size,
                         .guess = blocks_guess(asked),
                         .does = would_do,
                         .context = &a,
                         .budget = &a.plans,
                         .tries = TRIES};
    return search.guess ? advise_size(&search) : (SizeAdvice){0};
}
