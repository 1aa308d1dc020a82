/* disjunctive_search.c - who lies below whom: a depth-first search with
 * restarts.
 *
 * Input: a pile and a limit. Output: a placement within the limit, a proof that
 * there is none, or neither when the steps are spent.
 * Method: pools first. Then, with all bundles at their least offsets, an edge
 * of which no way holds must be decided: the one with the least room, weighted
 * by the failures it took part in, and of its ways the one with the most room.
 * Each decision is a way or its opposite, so the search is complete; it starts
 * again after a number of failures that follows Luby's sequence, keeping the
 * weights.
 */
#include "pack/exact/disjunctive.h"

#include "base/guard.h"
#include "base/rng.h"

typedef enum ChoiceKind { CHOOSE_POOL, CHOOSE_WAY, CHOOSE_HINT } ChoiceKind;

/* A decision, and with it its opposite. */
typedef struct Choice {
    ChoiceKind kind;
    uint32_t index; /* bundle, edge, wanted */
    int64_t bit;    /* pool or way */
    uint32_t trail; /* before it */
} Choice;

typedef struct Dive {
    Disjunctive *pile;
    VEC(Choice) choice; /* a stack */
    uint64_t seed, drawn;
    uint64_t nodes, fails, most_fails;
    uint64_t end; /* of work */
} Dive;

enum { WORK_PER_STEP = 96, FIRST_FAILS = 60 };

uint64_t pile_steps(const Disjunctive *pile) {
    return pile->work / WORK_PER_STEP;
}

/* ---- choosing ---- */

/* The bundle whose bytes weigh most of those whose pool is open, into its
 * cheapest, lowest filled pool. */
static bool choose_pool(const Disjunctive *pile, Choice *choice) {
    int64_t most = -1;
    for (uint32_t i = 0; i < pile->n; i++) {
        if (pile_pool(pile, i) >= 0)
            continue;
        uint32_t first = 0;
        while (!(pile->pools[i] >> first & 1))
            first++;
        int64_t bytes = pile_bytes(pile, i, first);
        uint64_t cost = UINT64_MAX;
        for (uint32_t p = first; p < pile->problem->n_pools && bytes > most;
             p++)
            if (pile->pools[i] >> p & 1 && pile->problem->pool[p].cost < cost) {
                cost = pile->problem->pool[p].cost;
                *choice = (Choice){CHOOSE_POOL, i, INT64_C(1) << p, 0};
            }
        most = bytes > most ? bytes : most;
    }
    return most >= 0;
}

static double jitter(Dive *d) {
    return 1 + (double)(rng_bits(d->seed, d->drawn++) % 1024) / 4096;
}

/* Of an edge of which no way holds: how urgent it is, and its best way. */
static double urgency(Dive *d, const Edge *e, int64_t ways, int64_t *best) {
    const Disjunctive *pile = d->pile;
    int64_t most = -1, least = INT64_MAX;
    for (int64_t way = WAY_BELOW; way <= WAY_SAME; way *= 2) {
        if (!(ways & way))
            continue;
        int64_t slack = pile_slack(pile, e, way);
        least = slack < least ? slack : least;
        if (slack > most || (way == WAY_SAME && slack >= 0)) {
            most = slack;
            *best = way;
        }
    }
    double weight = pile->weight[e->a] + pile->weight[e->b];
    return weight / ((double)least + 1) / ((double)most + 1) * jitter(d);
}

static bool holds(const Disjunctive *pile, const Edge *e, int64_t ways) {
    for (int64_t way = WAY_BELOW; way <= WAY_SAME; way *= 2)
        if (ways & way && pile_push(pile, e, way) <= 0)
            return true;
    return false;
}

static bool choose_way(Dive *d, Choice *choice) {
    Disjunctive *pile = d->pile;
    double most = -1;
    pile->work += pile->edge.n / 4;
    for (uint32_t i = 0; i < pile->edge.n; i++) {
        const Edge *e = &pile->edge.at[i];
        int64_t in = INT64_C(1) << e->pool, ways = pile->ways[i], best = 0;
        if (pile->pools[e->a] != in || pile->pools[e->b] != in ||
            !(ways & (ways - 1)) || holds(pile, e, ways))
            continue;
        double urgent = urgency(d, e, ways, &best);
        if (urgent > most) {
            most = urgent;
            *choice = (Choice){CHOOSE_WAY, i, best, 0};
        }
    }
    return most >= 0;
}

/* All edges hold; is some hint needed that is not kept? */
static bool choose_hint(const Disjunctive *pile, Choice *choice) {
    uint32_t kept = 0, open = 0;
    for (uint32_t i = 0; i < pile->n_wanted; i++) {
        const Wanted *w = &pile->wanted[i];
        bool here = pile->low[w->bundle] == w->at;
        kept += here;
        if (!here && !pile->given_up[i] && pile->low[w->bundle] < w->at &&
            w->at <= pile->high[w->bundle] && !open++)
            *choice = (Choice){CHOOSE_HINT, i, 0, 0};
    }
    return kept < pile->limit.hints && open;
}

/* ---- the search ---- */

static void apply(Disjunctive *pile, const Choice *c) {
    if (c->kind == CHOOSE_POOL)
        pile_assign(pile, c->index, c->bit);
    else if (c->kind == CHOOSE_WAY)
        pile_order(pile, c->index, c->bit);
    else
        pile_keep_hint(pile, c->index);
}

static void refuse(Disjunctive *pile, const Choice *c) {
    if (c->kind == CHOOSE_POOL)
        pile_assign(pile, c->index, pile->pools[c->index] & ~c->bit);
    else if (c->kind == CHOOSE_WAY)
        pile_order(pile, c->index, pile->ways[c->index] & ~c->bit);
    else
        pile_set(pile, &pile->given_up[c->index], 1);
}

static bool choose(Dive *d, Choice *choice) {
    return choose_pool(d->pile, choice) || choose_way(d, choice) ||
           choose_hint(d->pile, choice);
}

/* Back to the last decision whose opposite is possible; false if none is. */
static bool retreat(Dive *d) {
    while (d->choice.n) {
        Choice c = d->choice.at[--d->choice.n];
        pile_undo(d->pile, c.trail);
        d->fails++;
        refuse(d->pile, &c);
        if (pile_follow(d->pile))
            return true;
    }
    return false;
}

static bool is_late(const Dive *d) {
    enum { NODES_A_LOOK = 16 };
    return d->nodes % NODES_A_LOOK == 0 && pack_late(d->pile->problem);
}

/* UNKNOWN: too many failures, or no more work. */
static Answer dive(Dive *d) {
    Choice choice;
    while (choose(d, &choice)) {
        if (d->fails >= d->most_fails || d->pile->work >= d->end || is_late(d))
            return ANSWER_UNKNOWN;
        choice.trail = d->pile->trail.n;
        vec_push(d->pile->arena, &d->choice, choice);
        guard_poll();
        d->nodes++;
        apply(d->pile, &choice);
        if (!pile_follow(d->pile) && !retreat(d))
            return ANSWER_NO;
    }
    return ANSWER_YES;
}

/* 1 1 2 1 1 2 4 ... (Luby, Sinclair and Zuckerman, 1993) */
static uint64_t luby(uint64_t i) {
    uint64_t size = 1, power = 1;
    while (size < i + 1) {
        size = 2 * size + 1;
        power *= 2;
    }
    while (size - 1 != i) {
        size /= 2;
        power /= 2;
        i %= size;
    }
    return power;
}

Answer pile_ask(Disjunctive *pile, Limit limit, uint64_t seed, uint64_t steps,
                uint64_t *nodes) {
    Dive d = {.pile = pile, .seed = seed};
    Answer answer = ANSWER_UNKNOWN;
    d.end = steps > UINT64_MAX / WORK_PER_STEP - pile_steps(pile) - 1
                ? UINT64_MAX
                : pile->work + steps * WORK_PER_STEP;
    for (uint64_t i = 0; answer == ANSWER_UNKNOWN && pile->work < d.end; i++) {
        if (i && pack_late(pile->problem))
            break;
        d.most_fails = d.fails + FIRST_FAILS * luby(i);
        d.choice.n = 0;
        answer = pile_start(pile, limit) ? dive(&d) : ANSWER_NO;
        pile->work++;
    }
    *nodes += d.nodes;
    return answer;
}
