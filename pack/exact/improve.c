/* improve.c - the least cost; of these placements the least height; of
 * these the one that keeps most hints.
 *
 * Input: a placement of a cheap planner, or none. Output: the best found;
 * bounds of cost and height, raised by proofs; they meet where the budget
 * allows. Each of the three is a number between what is proved and what is
 * reached; questions to the search close in on it, in rounds with twice the
 * steps of the one before: first whether the bound itself can be reached, which
 * ends everything, then halfway.
 */
#include "pack/exact/disjunctive.h"
#include "pack/exact/exact.h"
#include "pack/packers.h"

enum { DEFAULT_STEPS = 2000000, FIRST_ROUND = 4000, HALVINGS = 5 };

typedef struct Quest {
    const PackProblem *problem;
    PackResult *result;
    Disjunctive *pile;
    Limit reached; /* by the placement; cost and height UINT64_MAX: none */
    Limit proved;  /* cost, height: no less; hints: no more */
    uint64_t spare;
} Quest;

static void take_placement(Quest *q) {
    PackResult *r = q->result;
    const Clusters *bundles = q->pile->bundles;
    for (uint32_t b = 0; b < q->problem->n_bufs; b++) {
        uint32_t i = bundles->of[b];
        bool placed = i != PACK_NO_BUFFER;
        r->pool[b] = placed ? pile_pool(q->pile, i) : 0;
        r->offset[b] =
            placed ? (uint64_t)(q->pile->low[i] + bundles->low[b]) : 0;
    }
    r->status = PACK_FITS;
    r->failed = PACK_NO_BUFFER;
    pack_measure(q->problem, r);
    q->reached = (Limit){r->cost, pack_height(r), r->hints};
    pack_tell(q->problem, r);
}

static Answer ask(Quest *q, Limit limit, uint64_t steps) {
    uint64_t before = pile_steps(q->pile);
    steps = steps < q->spare ? steps : q->spare;
    Answer answer =
        pile_ask(q->pile, limit, q->problem->seed, steps, &q->result->nodes);
    uint64_t spent = pile_steps(q->pile) - before + 1;
    q->spare -= spent < q->spare ? spent : q->spare;
    if (answer == ANSWER_YES)
        take_placement(q);
    return answer;
}

/* ---- one number ---- */

/* Which number of a limit is closed in on; the others are given. */
typedef struct Aim {
    uint64_t *reached, *proved;
    Limit (*limit)(const Quest *q, uint64_t value);
} Aim;

static Limit cost_limit(const Quest *q, uint64_t value) {
    (void)q;
    return (Limit){value, UINT64_MAX, 0};
}

static Limit height_limit(const Quest *q, uint64_t value) {
    return (Limit){q->reached.cost, value, 0};
}

static bool over(const Quest *q, const Aim *aim) {
    bool any = q->reached.height != UINT64_MAX;
    return *aim->proved >= *aim->reached || !q->spare ||
           pack_late(q->problem) || (any && q->problem->any_fit);
}

static void one_round(Quest *q, const Aim *aim, uint64_t steps) {
    uint64_t low = *aim->proved, at = low;
    for (int k = 0; k <= HALVINGS && !over(q, aim); k++) {
        Answer answer = ask(q, aim->limit(q, at), steps);
        if (answer == ANSWER_NO)
            *aim->proved = at + 1;
        if (answer != ANSWER_YES)
            low = at + 1;
        if (low >= *aim->reached || *aim->reached == UINT64_MAX)
            return;
        at = low + (*aim->reached - low) / 2;
    }
}

static void close_in(Quest *q, const Aim *aim) {
    for (uint64_t steps = FIRST_ROUND; !over(q, aim); steps *= 2)
        one_round(q, aim, steps);
    if (*aim->proved > *aim->reached)
        *aim->proved = *aim->reached;
}

/* ---- the three ---- */

/* Any placement at all: the first of all questions. */
static void find_any(Quest *q) {
    Limit none = {UINT64_MAX, UINT64_MAX, 0};
    if (q->reached.height != UINT64_MAX)
        return;
    if (ask(q, none, q->spare) == ANSWER_NO)
        q->result->status = PACK_INFEASIBLE;
}

static void most_hints(Quest *q) {
    uint64_t steps = q->spare / 4; /* hints are wishes */
    while (q->reached.hints < q->pile->n_wanted && q->spare &&
           !pack_late(q->problem)) {
        Limit limit = q->reached;
        limit.hints++;
        if (ask(q, limit, steps) != ANSWER_YES)
            return;
    }
}

static void search(Quest *q) {
    find_any(q);
    if (q->reached.height == UINT64_MAX)
        return;
    Aim cost = {&q->reached.cost, &q->proved.cost, cost_limit};
    Aim height = {&q->reached.height, &q->proved.height, height_limit};
    close_in(q, &cost);
    close_in(q, &height);
    if (!q->problem->any_fit)
        most_hints(q);
}

static Quest quest_new(Disjunctive *pile, PackResult *result) {
    const PackProblem *problem = pile->problem;
    Quest q = {.problem = problem, .result = result, .pile = pile};
    q.reached = (Limit){UINT64_MAX, UINT64_MAX, 0};
    q.proved = (Limit){result->cost_bound, result->bound, 0};
    q.spare = pack_steps(problem, DEFAULT_STEPS);
    if (result->status == PACK_FITS) {
        pack_measure(problem, result);
        q.reached = (Limit){result->cost, pack_height(result), result->hints};
    }
    return q;
}

void pile_improve(Arena *arena, const PackProblem *problem,
                  PackResult *result) {
    Disjunctive *pile = pile_new(arena, bundles_new(arena, problem));
    if (pile) {
        Quest q = quest_new(pile, result);
        search(&q);
        if (result->status == PACK_FITS) {
            result->cost_bound = q.proved.cost;
            result->bound = q.proved.height;
        }
    }
}

void pile_keep_hints(Arena *arena, const PackProblem *problem,
                     PackResult *result) {
    bool hints = false;
    for (uint32_t b = 0; b < problem->n_bufs; b++)
        hints |= problem->buf[b].hint != PACK_NO_HINT;
    if (!hints || problem->any_fit || result->status != PACK_FITS)
        return;
    Disjunctive *pile = pile_new(arena, bundles_new(arena, problem));
    if (pile) {
        Quest q = quest_new(pile, result);
        most_hints(&q);
    }
}
