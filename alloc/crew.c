/* crew.c - searches of one problem side by side, by who has found most.
 *
 * Input: a strip and a capacity. Output: offsets within it, a proof that there
 * are none, or neither within the steps.
 *
 * A portfolio (Huberman, Lukose, Hogg, "An economics approach to hard
 * computational problems", 1997): three members, none of which is best
 * everywhere. One searches the strip itself, and only its "no" is a proof. One
 * searches the strip with every pair welded that can be (weld.c). The third
 * welds some of them, drawn anew for each capacity, since any weld may be the
 * wrong one. Who found the most placements so far gets all the steps, others
 * their share, which is never so small that they do not matter.
 */
#include "alloc/exact.h"

#include "base/rng.h"

enum { ITSELF, WELDED, DRAWN, N_MEMBERS, LEAST_SHARE = 8 };

/* A search, and what its items are to those of the crew's strip. */
typedef struct Member {
    Strip *strip;
    Search *search; /* NULL: nothing to weld */
    Welded welded;
} Member;

struct Crew {
    Strip *strip;
    Member itself, welded;
    uint64_t seed;
    uint32_t drawn;
    uint32_t finds[N_MEMBERS];
    CrewCost cost;
};

static void weld_member(Arena *arena, const Crew *crew, uint32_t attempt,
                        Member *member) {
    *member = (Member){.strip = &member->welded.strip};
    if (weld_strip(arena, crew->strip, crew->seed, attempt, &member->welded))
        member->search =
            search_new(arena, member->strip, rng_bits(crew->seed, attempt));
}

Crew *crew_new(Arena *arena, Strip *strip, uint64_t seed) {
    Crew *crew = ARENA_NEW(arena, Crew);
    *crew = (Crew){.strip = strip, .seed = seed};
    crew->itself =
        (Member){.strip = strip, .search = search_new(arena, strip, seed)};
    weld_member(arena, crew, 0, &crew->welded);
    return crew;
}

CrewCost crew_cost(const Crew *crew) {
    return crew->cost;
}

uint64_t crew_needed(const Crew *crew) {
    return crew->itself.search->sky->needed;
}

static uint64_t share_of(const Crew *crew, int who, uint64_t steps) {
    uint32_t most = 0;
    for (int m = 0; m < N_MEMBERS; m++)
        most = crew->finds[m] > most ? crew->finds[m] : most;
    uint64_t share = steps * (1 + crew->finds[who]) / (1 + most);
    return share > steps / LEAST_SHARE ? share : steps / LEAST_SHARE;
}

static Verdict run_member(Crew *crew, int who, Member *member, uint64_t bytes,
                          uint64_t steps, int64_t *low) {
    Search *search = member->search;
    if (!search)
        return GAVE_UP;
    uint64_t nodes = search->nodes, before = search_steps(search);
    Verdict verdict = search_within(search, member->strip, bytes, steps);
    crew->cost.nodes += search->nodes - nodes;
    crew->cost.steps += search_steps(search) - before;
    if (verdict != FOUND)
        return verdict;
    crew->finds[who]++;
    for (uint32_t i = 0; i < crew->strip->n; i++)
        low[i] = who == ITSELF ? search->sky->low[i]
                               : search->sky->low[member->welded.into[i]] +
                                     member->welded.shift[i];
    return FOUND;
}

/* A strip of wrong welds mostly shows it soon: then the next. */
static Verdict run_drawn(Crew *crew, uint64_t bytes, uint64_t steps,
                         int64_t *low) {
    uint64_t end = crew->cost.steps + steps;
    Verdict verdict = NONE;
    while (verdict == NONE && crew->cost.steps < end) {
        Arena *scratch = arena_new("welded");
        Member member;
        weld_member(scratch, crew, ++crew->drawn, &member);
        verdict = run_member(crew, DRAWN, &member, bytes,
                             end - crew->cost.steps, low);
        crew->cost.steps++; /* even a strip without items takes time */
        arena_free(scratch);
    }
    return verdict;
}

Verdict crew_within(Crew *crew, uint64_t bytes, uint64_t steps, int64_t *low) {
    uint64_t share = share_of(crew, WELDED, steps), before = crew->cost.steps;
    uint64_t drawn = share_of(crew, DRAWN, steps);
    Verdict verdict =
        run_member(crew, WELDED, &crew->welded, bytes, share, low);
    uint64_t spent = crew->cost.steps - before;
    if (verdict == NONE && spent < share)
        drawn += share - spent; /* no use to the other */
    if (verdict == FOUND || run_drawn(crew, bytes, drawn, low) == FOUND)
        return FOUND;
    return run_member(crew, ITSELF, &crew->itself, bytes,
                      share_of(crew, ITSELF, steps), low);
}
