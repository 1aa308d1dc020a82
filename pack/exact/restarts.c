/* restarts.c - variants of the niche search side by side, restarted.
 *
 * Input: a search and a capacity. Output: a placement within it, a proof that
 * there is none, or neither within the budget of steps.
 *
 * How long a search takes varies by orders of magnitude with its early choices,
 * on every problem with another variant ahead. So none runs long at first: run
 * r takes variant r mod N, for a number of fails that follows Luby's series
 * (Luby, Sinclair, Zuckerman, "Optimal speedup of Las Vegas algorithms", 1993),
 * with another stream of noise each. What was learned stays: failed states are
 * not entered again and the weights of sections grow, so even a proof loses
 * little by a restart. Sections that no item joins to the rest are searched
 * one after the other.
 */
#include "pack/exact/exact.h"

#include "base/rng.h"

enum { FAILS = 100, LOG_MEMORY = 20 };

static const Variant variant[] = {
    {BY_LIFE, FEWEST_PER_WEIGHT, 0.5, 4}, {BY_SIZE, FEWEST_PER_WEIGHT, 0.5, 30},
    {BY_SIZE, FEWEST_LOWEST, 0.5, 4},     {BY_AREA, FEWEST_PER_WEIGHT, 0.5, 4},
    {BY_LIFE, FEWEST_HEAVIEST, 0.5, 30},  {BY_AREA, FEWEST_LOWEST, 1, 30},
    {BY_SIZE, FEWEST_HEAVIEST, 0.5, 1},   {BY_LIFE, FEWEST_LOWEST, 0.5, 1},
};
enum { N_VARIANTS = sizeof variant / sizeof *variant };

/* 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ..., from i = 1. */
static uint64_t luby(uint64_t i) {
    for (;;) {
        uint64_t power = 1;
        while (2 * power - 1 < i)
            power *= 2;
        if (2 * power - 1 == i)
            return power;
        i -= power - 1;
    }
}

Search *search_new(Arena *arena, Strip *strip, uint64_t seed) {
    Search *search = ARENA_NEW(arena, Search);
    search->sky = skyline_new(arena, strip);
    search->seed = rng_seed("exact", seed);
    uint64_t keys = 1024;
    while (keys < strip->n * 2048u && keys < 1u << LOG_MEMORY)
        keys *= 2;
    search->memory = (Memory){
        arena, ARENA_ARRAY(arena, uint64_t *, keys / MEMORY_PAGE), keys - 1};
    return search;
}

static Verdict search_part(Search *search, uint32_t lo, uint32_t hi) {
    for (uint64_t run = 0; search_steps(search) < search->max_steps; run++) {
        search->variant = variant[run % N_VARIANTS];
        search->fails = 0;
        search->max_fails = luby(run / N_VARIANTS + 1) * FAILS;
        Verdict verdict = niche_search(search, lo, hi);
        if (verdict != GAVE_UP)
            return verdict;
    }
    return GAVE_UP;
}

static Verdict search_parts(Search *search, const Strip *strip) {
    Verdict verdict = FOUND;
    for (uint32_t lo = 0; lo < strip->n_sections && verdict == FOUND;) {
        uint32_t hi = strip_component(strip, lo);
        verdict = search_part(search, lo, hi);
        lo = hi;
    }
    return verdict;
}

/* States that failed are not entered again, so their lesson must be kept. */
static Nogood *lesson_of(Search *search, uint64_t bytes) {
    for (uint32_t i = 0; i < search->lesson.n; i++)
        if (search->lesson.at[i].bytes == bytes)
            return &search->lesson.at[i];
    vec_push(search->sky->arena, &search->lesson,
             ((Nogood){bytes, UINT64_MAX}));
    return &search->lesson.at[search->lesson.n - 1];
}

Verdict search_within(Search *search, Strip *strip, uint64_t bytes,
                      uint64_t steps) {
    Skyline *sky = search->sky;
    Nogood *lesson = lesson_of(search, bytes);
    sky->needed = lesson->needed;
    search->max_steps = search_steps(search) + steps;
    Verdict verdict = NONE;
    if (strip_limit(strip, bytes) && skyline_start(sky))
        verdict = search_parts(search, strip);
    lesson->needed = sky->needed;
    if (sky->needed <= bytes)
        sky->needed = bytes + 1;
    return verdict;
}
