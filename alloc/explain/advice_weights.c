/* advice_weights.c - the least memory that would do for tensors and weights.
 *
 * Input: what was asked of the planner. Output: sizes that were planned for to
 * the end, next to a guess.
 */
#include "alloc/explain/explain.h"
#include "alloc/search/blocks.h"

#include "base/text.h"

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

bool weights_too_large(Arena *arena, Diag *diag, const Schedule *schedule,
                       bool says) {
    const HwSpec *spec = schedule->spec;
    const HwMemory *m = &spec->memory[spec->weights];
    const char *layer;
    uint64_t bytes = blocks_floor(schedule, &layer);
    if (!spec->weights || bytes <= m->size)
        return false;
    if (says) {
        diag_error(diag, m->loc,
                   "does not fit: the fewest weights of %s that can be loaded "
                   "take %s bytes of %s, which has %s",
                   layer, with_commas(arena, bytes), m->name,
                   with_commas(arena, m->size));
        note_advice(arena, diag, m->name, (SizeAdvice){.enough = bytes});
    }
    return true;
}
