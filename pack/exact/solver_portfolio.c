/* solver_portfolio.c - searches of one problem side by side, by who has found
 * most.
 *
 * Input: a strip and a capacity. Output: offsets within it, a proof that there
 * are none, or neither within the steps.
 *
 * A portfolio (Huberman, Lukose, Hogg, "An economics approach to hard
 * computational problems", 1997) of searches none of which is best everywhere.
 * One searches the strip itself, and only its "no" is a proof. One searches the
 * strip with every pair welded that can be (coalesce.c), and others strips with
 * some of them welded, drawn anew each time, since any weld may be the wrong
 * one. Strip or welds, the side that found more placements so far gets all the
 * steps, the other its share, which is never so small that it does not matter.
 */
#include "pack/exact/exact.h"

#include "base/rng.h"

enum { LEAST_SHARE = 8, ITEMS_A_STEP = 4 };

/* A search, and what its items are to those of the crew's strip. */
typedef struct Member {
    Strip *strip;
    Search *search; /* NULL: nothing to weld */
    Merged welded;
} Member;

struct Portfolio {
    Strip *strip;
    MergeOrder order;
    Member itself, welded;
    uint64_t seed;
    uint32_t finds, weld_finds;
    PortfolioCost cost;
};

static void weld_member(Arena *arena, const Portfolio *crew, uint32_t attempt,
                        Member *member) {
    *member = (Member){.strip = &member->welded.strip};
    if (weld_strip(arena, crew->strip, &crew->order, crew->seed, attempt,
                   &member->welded))
        member->search =
            search_new(arena, member->strip, rng_bits(crew->seed, attempt));
}

Portfolio *crew_new(Arena *arena, Strip *strip, uint64_t seed) {
    Portfolio *crew = ARENA_NEW(arena, Portfolio);
    *crew = (Portfolio){
        .strip = strip, .order = weld_order(arena, strip), .seed = seed};
    crew->itself =
        (Member){.strip = strip, .search = search_new(arena, strip, seed)};
    weld_member(arena, crew, 0, &crew->welded);
    return crew;
}

PortfolioCost crew_cost(const Portfolio *crew) {
    return crew->cost;
}

uint64_t crew_needed(const Portfolio *crew) {
    return crew->itself.search->sky->needed;
}

/* For a side that found so many of so many placements. */
static uint64_t share_of(uint64_t steps, uint32_t finds, uint32_t others) {
    uint32_t most = finds > others ? finds : others;
    uint64_t share = steps * (1 + finds) / (1 + most);
    return share > steps / LEAST_SHARE ? share : steps / LEAST_SHARE;
}

static Verdict run_member(Portfolio *crew, const Member *member, uint64_t bytes,
                          uint64_t steps) {
    Search *search = member->search;
    if (!search)
        return GAVE_UP;
    uint64_t nodes = search->nodes, before = search_steps(search);
    Verdict verdict = search_within(search, member->strip, bytes, steps);
    crew->cost.nodes += search->nodes - nodes;
    crew->cost.steps += search_steps(search) - before;
    return verdict;
}

static Verdict run_itself(Portfolio *crew, uint64_t bytes, uint64_t steps,
                          int64_t *low) {
    Verdict verdict = run_member(crew, &crew->itself, bytes, steps);
    const int64_t *found = crew->itself.search->sky->low;
    for (uint32_t i = 0; i < crew->strip->n && verdict == FOUND; i++)
        low[i] = found[i];
    crew->finds += verdict == FOUND;
    return verdict;
}

static Verdict run_welded(Portfolio *crew, const Member *member, uint64_t bytes,
                          uint64_t steps, int64_t *low) {
    const Merged *welded = &member->welded;
    Verdict verdict = run_member(crew, member, bytes, steps);
    for (uint32_t i = 0; i < crew->strip->n && verdict == FOUND; i++)
        low[i] = member->search->sky->low[welded->into[i]] + welded->shift[i];
    crew->weld_finds += verdict == FOUND;
    return verdict;
}

/* A strip of wrong welds mostly shows it soon: then the next. */
static Verdict run_drawn(Portfolio *crew, uint64_t bytes, uint64_t steps,
                         int64_t *low) {
    uint64_t end = crew->cost.steps + steps;
    Verdict verdict = NONE;
    while (verdict == NONE && crew->cost.steps < end &&
           !strip_late(crew->strip)) {
        Arena *scratch = arena_new("welded");
        Member member;
        weld_member(scratch, crew, ++crew->cost.draws, &member);
        verdict = run_welded(crew, &member, bytes, end - crew->cost.steps, low);
        crew->cost.steps += 1 + crew->strip->n / ITEMS_A_STEP; /* it was made */
        arena_free(scratch);
    }
    return verdict;
}

Verdict crew_within(Portfolio *crew, uint64_t bytes, uint64_t steps,
                    int64_t *low) {
    uint64_t share = share_of(steps, crew->weld_finds, crew->finds);
    uint64_t before = crew->cost.steps;
    Verdict verdict = run_welded(crew, &crew->welded, bytes, share, low);
    uint64_t spent = crew->cost.steps - before, drawn = share;
    if (verdict == NONE && spent < share)
        drawn += share - spent; /* no use to the other */
    if (verdict == FOUND || run_drawn(crew, bytes, drawn, low) == FOUND)
        return FOUND;
    return run_itself(crew, bytes,
                      share_of(steps, crew->finds, crew->weld_finds), low);
}
