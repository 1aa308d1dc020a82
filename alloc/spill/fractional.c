/* fractional.c - how much of each volume stays in active memory between its
 * uses.
 *
 * Input: alias classes and modes that fit when whole volumes leave. Output: for
 * each interval between two uses how many channels stay (Use.leaves, keeps),
 * and a placement of all buffers. Method: the program of spill_lp.c. Its shares
 * are rounded to whole channels, less staying; volumes that can only leave
 * whole do so if any of them should. Where fragmentation leaves no place, two
 * ways are gone, and the cheaper taken: the same for a little less memory; or
 * without parts of what is in the way, which then need no place to return to.
 * What leaves whole in the end is tried once more by parts, in many more
 * orders, as there may be a place where fewer others have to return.
 */
#include "alloc/geometry/tensor_bytes.h"
#include "alloc/live/live.h"
#include "alloc/spill/parts.h"
#include "alloc/spill/spill_lp.h"

#include "base/arith.h"

/* By touch of each alias class: whether, and what of it, leaves. All of them
 * are a value of their own. */
typedef struct Spill {
    bool spilled, retains_end;
    uint32_t retained;
} Spill;

/* Rounds that give up parts before the target falls, and how often it does. */
enum { MAX_ROUNDS = 6, MAX_TARGETS = 5 };
#define NONE_LEAVES 1e-7

/* What found no place, and what was most in the way. */
typedef struct Failed {
    const Spill *choice;
    Times blocked;
} Failed;

/* What was chosen where any part may stay. */
typedef struct Solved {
    double target;
    bool priced, any;
    const Spill *choice;
} Solved;

typedef struct Gaps {
    const Facts *f;
    Decisions *d;
    Buffers *p;
    SpillProgram x;
    bool priced; /* as in stays_price */
    VEC(Solved) solved;
    bool **cuts;           /* by alias class: cuts_of; NULL: not asked yet */
    const uint64_t *whole; /* whole_live; NULL: not asked yet */
    VEC(Failed) failed;
} Gaps;

/* ---- the intervals ---- */

/* The most channels of at most `bytes` that have an address behind them. */
static uint32_t channels_within(Gaps *x, uint32_t u, double bytes) {
    const AliasClass *alias = &x->d->alias.at[u];
    if (!x->cuts[u])
        x->cuts[u] = cuts_of(x->f, alias);
    uint32_t c = plan_volume(x->f->g, alias->root).c;
    if ((double)kept_bytes(x->f, alias, c) > bytes)
        c = channels_below(x->f, alias, c, bytes);
    while (c > 0 && !x->cuts[u][c])
        c--;
    return c;
}

/* What is stored while members are missing is stored for each interval anew. */
static void stay_price(const Decisions *d, SpillInterval *stay) {
    const AliasClass *alias = &d->alias.at[stay->alias];
    double moved = alias_moved(d->f, alias) * stay->bytes /
                   (double)least_bytes(d->f, alias->bytes, UINT32_MAX);
    Away away;
    away_find(d, alias, stay->use, &away);
    stay->load = moved * (stay->filling ? 2 : loads_of(alias, &away));
    stay->store = stay->filling || is_outside(d, alias) ? 0 : moved;
}

/* `priced`: else all shares cost the same, nothing. */
static void stays_price(Gaps *x, bool priced) {
    x->priced = priced;
    for (uint32_t k = 0; k < x->x.stay.n; k++) {
        SpillInterval *stay = &x->x.stay.at[k];
        stay->load = stay->store = 0;
        if (priced)
            stay_price(x->d, stay);
    }
}

/* What comes from outside by parts must be there in one piece. */
static bool followed_by_parts(uint32_t use, const Away *away) {
    uint32_t next = use + 1 + away->n_by_rows;
    return next < away->next;
}

/* Bytes that it has behind the touch. */
static double bytes_behind(const Facts *f, const AliasClass *alias,
                           uint32_t use) {
    uint64_t all = least_bytes(f, alias->bytes, UINT32_MAX);
    uint32_t c = wanted_behind(f, alias, use);
    return (double)(c < plan_volume(f->g, alias->root).c
                        ? kept_bytes(f, alias, c)
                        : all);
}

static void stay_add(Gaps *x, uint32_t u, uint32_t i) {
    AliasClass *alias = &x->d->alias.at[u];
    Use *use = &alias->use[i];
    Away away;
    use->retained = 0;
    use->spilled = false;
    if (alias->kept)
        return;
    bool filling = is_filling(alias, i);
    uint32_t parts = channels_filled(x->f, alias, i);
    if (!away_find(x->d, alias, i, &away) || (filling && !parts))
        return;
    if (followed_by_parts(i, &away))
        parts = 0;
    if (filling && away.n_by_rows)
        return;
    SpillInterval stay = {.alias = u,
                          .use = i,
                          .first = 2 * use->step + 2,
                          .end = away.end,
                          .bytes = filling
                                       ? (double)kept_bytes(x->f, alias, parts)
                                       : bytes_behind(x->f, alias, i),
                          .parts = parts > 0,
                          .filling = filling};
    vec_push(x->f->arena, &x->x.stay, stay);
}

static void stays_make(Gaps *x) {
    for (uint32_t u = 0; u < x->d->alias.n; u++)
        for (uint32_t i = 0; i + 1 < x->d->alias.at[u].n_uses; i++)
            if (!x->d->alias.at[u].dead)
                stay_add(x, u, i);
    stays_price(x, true);
}

/* By time: bytes, if everything stays. */
static const uint64_t *whole_live(Gaps *x) {
    buffers_make(x->d, x->p);
    return ARENA_COPY(x->f->arena, uint64_t, x->p->live, x->p->n_times);
}

/* ---- undoing ---- */

static Spill *spills_copy(const Decisions *d) {
    uint32_t n = 0;
    for (uint32_t u = 0; u < d->alias.n; u++)
        n += d->alias.at[u].n_uses;
    Spill *all = ARENA_ARRAY(d->f->arena, Spill, n + 1), *at = all;
    for (uint32_t u = 0; u < d->alias.n; u++)
        for (uint32_t i = 0; i < d->alias.at[u].n_uses; i++)
            *at++ = (Spill){d->alias.at[u].use[i].spilled,
                            d->alias.at[u].retains_end,
                            d->alias.at[u].use[i].retained};
    return all;
}

static void spills_take(Decisions *d, const Spill *at) {
    for (uint32_t u = 0; u < d->alias.n; u++)
        for (uint32_t i = 0; i < d->alias.at[u].n_uses; i++, at++) {
            d->alias.at[u].use[i].spilled = at->spilled;
            d->alias.at[u].use[i].retained = at->retained;
            d->alias.at[u].retains_end = at->retains_end;
        }
}

void spills_none(Decisions *d) {
    for (uint32_t u = 0; u < d->alias.n; u++)
        for (uint32_t i = 0; i < d->alias.at[u].n_uses; i++) {
            d->alias.at[u].use[i].spilled = false;
            d->alias.at[u].use[i].retained = 0;
        }
}

/* ---- choosing ---- */

static bool stays_in_part(const SpillInterval *stay) {
    return stay->parts && !stay->uncut;
}

/* What can only leave whole does so; whether there was such. */
static bool force_wholes(Gaps *x) {
    bool any = false;
    for (uint32_t k = 0; k < x->x.stay.n; k++) {
        SpillInterval *stay = &x->x.stay.at[k];
        if (stays_in_part(stay) || stay->forced || stay->away <= NONE_LEAVES)
            continue;
        stay->forced = any = true;
    }
    return any;
}

static void shares_apply(Gaps *x) {
    for (uint32_t k = 0; k < x->x.stay.n; k++) {
        const SpillInterval *stay = &x->x.stay.at[k];
        AliasClass *alias = &x->d->alias.at[stay->alias];
        Use *use = &alias->use[stay->use];
        use->spilled = stay->away > NONE_LEAVES;
        use->retained = 0;
        if (use->spilled && stays_in_part(stay) && stay->first < stay->end)
            use->retained = channels_within(
                x, stay->alias, (1 - stay->away) * stay->bytes + 0.5);
        if (stay->filling && !use->retained)
            use->spilled = false;
    }
}

/* SpillProgram for `target` bytes, as leaves and keeps. */
static bool shares_find(Gaps *x, double target) {
    for (uint32_t k = 0; k < x->x.stay.n; k++) {
        SpillInterval *stay = &x->x.stay.at[k];
        Use *use = &x->d->alias.at[stay->alias].use[stay->use];
        stay->forced = use->spilled = false;
        use->retained = 0;
    }
    if (!x->whole)
        x->whole = whole_live(x);
    for (uint32_t t = 0; t < x->p->n_times; t++)
        x->x.live[t] = (double)x->whole[t];
    double moved;
    do
        if (!spill_lp_solve(&x->x, target, &moved))
            return false;
    while (force_wholes(x));
    shares_apply(x);
    return true;
}

static bool any_uncut(const Gaps *x) {
    for (uint32_t k = 0; k < x->x.stay.n; k++)
        if (x->x.stay.at[k].uncut)
            return true;
    return false;
}

/* The same, once for each target that is asked for twice. */
static bool shares_choose(Gaps *x, double target) {
    if (any_uncut(x))
        return shares_find(x, target);
    for (uint32_t i = 0; i < x->solved.n; i++) {
        const Solved *s = &x->solved.at[i];
        if (s->priced != x->priced || s->target < target || s->target > target)
            continue;
        spills_take(x->d, s->choice);
        return s->any;
    }
    Solved own = {target, x->priced, shares_find(x, target), NULL};
    own.choice = spills_copy(x->d);
    vec_push(x->f->arena, &x->solved, own);
    return own.any;
}

/* What keeps a part must come back to where it was, and so needs its whole
 * place at both ends of the interval. Of those that do around the body that
 * found no place, the one that keeps least is to leave whole, or not at all;
 * false if there is none. */
static bool part_give_up(Gaps *x, Times blocked) {
    SpillInterval *least = NULL;
    uint64_t kept = UINT64_MAX;
    for (uint32_t k = 0; k < x->x.stay.n; k++) {
        SpillInterval *stay = &x->x.stay.at[k];
        const AliasClass *alias = &x->d->alias.at[stay->alias];
        const Use *use = &alias->use[stay->use];
        if (!use->spilled || !use->retained || stay->filling ||
            stay->first > blocked.end || blocked.first > stay->end)
            continue;
        uint64_t bytes = kept_bytes(x->f, alias, use->retained);
        if (bytes < kept) {
            kept = bytes;
            least = stay;
        }
    }
    if (least)
        least->uncut = true;
    return least != NULL;
}

static bool spills_equal(const Decisions *d, const Spill *at) {
    for (uint32_t u = 0; u < d->alias.n; u++)
        for (uint32_t i = 0; i < d->alias.at[u].n_uses; i++, at++)
            if (at->spilled != d->alias.at[u].use[i].spilled ||
                at->retained != d->alias.at[u].use[i].retained)
                return false;
    return true;
}

/* ---- the search ---- */

/* The cheapest choice so far that has a placement. */
typedef struct Found {
    bool any;
    double cost;
    const Spill *choice;
    PackResult result;
} Found;

typedef enum Tried { PLACED, NO_PLACE, NO_USE } Tried;

/* False if there is no place for what is chosen. */
static bool choice_place(Gaps *x, PackResult *result, Times *blocked) {
    for (uint32_t i = 0; i < x->failed.n; i++)
        if (spills_equal(x->d, x->failed.at[i].choice)) {
            *blocked = x->failed.at[i].blocked;
            return false;
        }
    buffers_make(x->d, x->p);
    if (place_tied(x->d, x->p, result, blocked))
        return true;
    Failed failed = {spills_copy(x->d), *blocked};
    vec_push(x->f->arena, &x->failed, failed);
    return false;
}

/* NO_USE: less is not to be had for `target` bytes. */
static Tried target_try(Gaps *x, double target, Found *best, Times *blocked) {
    PackResult result;
    if (!shares_choose(x, target) || spills_cost(x->d) >= best->cost)
        return NO_USE;
    if (!choice_place(x, &result, blocked))
        return NO_PLACE;
    *best = (Found){true, spills_cost(x->d), spills_copy(x->d), result};
    return PLACED;
}

/* Where the cheapest shares find no place, any others may. */
static Tried prices_try(Gaps *x, double target, Found *best, Times *blocked) {
    Tried tried = target_try(x, target, best, blocked);
    if (tried != NO_PLACE)
        return tried;
    Times other;
    stays_price(x, false);
    if (target_try(x, target, best, &other) == PLACED)
        tried = PLACED;
    stays_price(x, true);
    return tried;
}

/* Gives up one part after the other before it tries less. */
static Tried rounds_try(Gaps *x, double target, bool by_parts, Found *best) {
    Times blocked;
    Tried tried = prices_try(x, target, best, &blocked);
    for (uint32_t i = 1; i < MAX_ROUNDS && by_parts && tried == NO_PLACE; i++) {
        if (!part_give_up(x, blocked))
            return tried;
        tried = prices_try(x, target, best, &blocked);
    }
    return tried;
}

/* The most bytes for which a placement is found. */
static void targets_try(Gaps *x, bool by_parts, Found *best) {
    double size = (double)x->f->total, step = size / 24, target = size;
    Tried tried = NO_PLACE;
    for (uint32_t i = 0; i < MAX_TARGETS && tried == NO_PLACE; i++) {
        target = size - i * step;
        tried = rounds_try(x, target, by_parts, best);
    }
    if (tried == PLACED && target < size)
        rounds_try(x, target + step / 2, by_parts, best);
    for (uint32_t k = 0; k < x->x.stay.n; k++)
        x->x.stay.at[k].uncut = false;
}

/* ---- what was given up ---- */

/* Bytes that are free in all of the interval, beside what stays. */
static double free_over(const Gaps *x, const SpillInterval *stay) {
    uint64_t most = 0;
    for (uint32_t t = stay->first; t < stay->end; t++)
        most = larger(most, x->p->live[t]);
    return most < x->f->total ? (double)(x->f->total - most) : 0;
}

/* Keeps as much of it as there is room for, if that is worth it. */
static void keep_part(Gaps *x, const SpillInterval *stay, Found *best) {
    enum { ORDERS = 4000, PART = 8 };
    AliasClass *alias = &x->d->alias.at[stay->alias];
    PackResult result;
    Times blocked;
    alias->use[stay->use].retained =
        channels_within(x, stay->alias, free_over(x, stay));
    double cost = spills_cost(x->d);
    if (cost > best->cost - best->cost / PART)
        return;
    buffers_make(x->d, x->p);
    if (place_in_orders(x->d, x->p, ORDERS, &result, &blocked))
        *best = (Found){true, cost, spills_copy(x->d), result};
}

/* What leaves whole because something found no place may stay in part. */
static void keep_parts(Gaps *x, Found *best) {
    enum { MOST = 4 };
    uint32_t tried = 0;
    for (uint32_t k = 0; k < x->x.stay.n && best->any && tried < MOST; k++) {
        const SpillInterval *stay = &x->x.stay.at[k];
        spills_take(x->d, best->choice);
        const Use *use = &x->d->alias.at[stay->alias].use[stay->use];
        if (!use->spilled || use->retained || !stay->parts || stay->filling ||
            stay->first >= stay->end)
            continue;
        tried++;
        buffers_make(x->d, x->p);
        keep_part(x, stay, best);
    }
}

void aliases_fill(Decisions *d, Buffers *p) {
    for (uint32_t u = 0; u < d->alias.n; u++) {
        AliasClass *alias = &d->alias.at[u];
        for (uint32_t t = 0; t < 2 * alias->complete && alias->concat; t++)
            alias->as_filled |=
                p->live[t] > d->f->total && waits_empty(d, p, u, t);
    }
    buffers_make(d, p);
}

/* The same of what is not needed any more. */
static void aliases_drain(Decisions *d, Buffers *p) {
    for (uint32_t u = 0; u < d->alias.n; u++) {
        AliasClass *alias = &d->alias.at[u];
        for (uint32_t t = 2 * alias->complete; t < p->n_times && alias->concat;
             t++)
            alias->as_needed |=
                p->live[t] > d->f->total && waits_for_part(d, p, u, t);
    }
    buffers_make(d, p);
}

bool fit_spills(Attempt *a, double most) {
    Buffers *p = &a->buffers;
    Decisions *d = &a->d;
    const Facts *f = d->f;
    if (f->spec->n_active > 1 || f->spec->memory[0].buffers ||
        f->spec->backing < 0)
        return false;
    buffers_make(d, p);
    Decisions before = decisions_copy(f->arena, d);
    aliases_fill(d, p);
    aliases_drain(d, p);
    Gaps x = {.f = f,
              .d = d,
              .p = p,
              .cuts = ARENA_ARRAY(f->arena, bool *, d->alias.n + 1),
              .x = {.arena = f->arena,
                    .memo_table = f->memo->memo_table,
                    .total = (double)f->total,
                    .n_times = p->n_times,
                    .live = ARENA_ARRAY(f->arena, double, p->n_times + 1)}};
    Found best = {.cost = most};
    stays_make(&x);
    targets_try(&x, false, &best);
    targets_try(&x, true, &best);
    keep_parts(&x, &best);
    if (best.any)
        spills_take(d, best.choice);
    else
        *d = before;
    buffers_make(d, p);
    if (!best.any)
        return false;
    a->result = best.result;
    a->planner = "gaps";
    return true;
}
