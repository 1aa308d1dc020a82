/* advice_weights.c - the least memory that would do for tensors and weights.
 *
 * Input: what was asked of the planner. Output: sizes that were planned for to
 * the end, next to a guess.
 */
#include "alloc/bound/bound.h"
#include "alloc/explain/explain.h"
#include "alloc/search/blocks.h"

#include "base/text.h"

#include <string.h>

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

/* Whether their memory is all that wants to be larger: a plan is made. */
static bool weights_would_do(Arena *arena, const Asked *asked, uint64_t bytes) {
    Schedule *schedule = ARENA_COPY(arena, Schedule, asked->schedule, 1);
    HwSpec *spec = ARENA_COPY(arena, HwSpec, schedule->spec, 1);
    HwMemory *memory =
        ARENA_COPY(arena, HwMemory, spec->memory, spec->n_memories);
    Budget plans = budget_of(BUDGET_ADVICE, schedule->n_steps);
    memory[spec->weights].size = bytes;
    spec->memory = memory;
    schedule->spec = spec;
    const Asked larger = {schedule, asked->options, asked->would_do};
    return asked->would_do(&larger, &plans, memory[0].size);
}

/* Names of the memories that weights come from, and how much they hold. */
static uint64_t sources_hold(const HwSpec *spec, Text *names) {
    uint64_t bytes = 0;
    const char *before = "";
    for (uint32_t m = 0; m < spec->n_memories; m++)
        if (spec->tiling.rows.weights_in >> m & 1) {
            text_addf(names, "%s%s", before, spec->memory[m].name);
            before = " and ";
            bytes += spec->memory[m].size;
        }
    return bytes;
}

bool weights_outside_too_large(Arena *arena, Diag *diag,
                               const Schedule *schedule, bool says) {
    Text names = text_new(arena);
    uint64_t bytes = weights_bound(arena, schedule);
    uint64_t have = sources_hold(schedule->spec, &names);
    if (bytes <= have)
        return false;
    if (says)
        diag_error(diag, schedule->spec->loc,
                   "does not fit: weights take %s bytes of %s, which %s %s",
                   with_commas(arena, bytes), text_str(&names),
                   strchr(text_str(&names), ' ') ? "have" : "has",
                   with_commas(arena, have));
    return true;
}

bool weights_too_large(Arena *arena, Diag *diag, const Schedule *schedule,
                       const PlanOptions *options, bool says) {
    const HwSpec *spec = schedule->spec;
    const HwMemory *m = &spec->memory[spec->weights];
    const char *layer;
    uint64_t bytes = blocks_floor(schedule, &layer);
    if (!spec->weights || bytes <= m->size)
        return false;
    if (!says)
        return true;
    diag_error(diag, m->loc,
               "does not fit: the fewest weights of %s that can be loaded "
               "take %s bytes of %s, which has %s",
               layer, with_commas(arena, bytes), m->name,
               with_commas(arena, m->size));
    if (options->no_remedy)
        return true;
    if (weights_would_do(arena, options->asked, bytes))
        note_advice(arena, diag, spec, (uint32_t)(m - spec->memory),
                    (SizeAdvice){.enough = bytes});
    else
        diag_note(diag, (Loc){0},
                  "--set memories.%s.size=%llu alone would not do", m->name,
                  (unsigned long long)bytes_of_cores(
                      spec, (uint32_t)(m - spec->memory), bytes));
    return true;
}
