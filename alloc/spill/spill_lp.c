/* spill_lp.c - which shares of volumes leave over which intervals: the program.
 *
 * Input: intervals, what each frees and costs, live bytes by time. Output: the
 * share of each interval that is away, for the fewest bytes moved. Method: a
 * linear program (facts/two-level.md 2.3). x of an interval is the share that
 * is away, s of an alias class the share that is stored once:
 *
 *     minimise   sum load x + sum store s
 *     where      sum of bytes x over the intervals at a time >= what is too
 * much x <= s of its alias class, x <= 1
 */
#include "alloc/spill/spill_lp.h"

#include "base/simplex.h"

/* A program with more numbers than this is not tried. */
enum { MAX_TABLEAU = 2000000 };

/* Which intervals are open at a time, as far as two times are compared. */
typedef struct Open {
    uint32_t opened; /* the last that was opened, when */
    uint32_t closes; /* the next that is closed, when */
} Open;

static Open *open_by_time(const SpillProgram *x, Arena *arena) {
    Open *open = ARENA_ARRAY(arena, Open, x->n_times + 1);
    for (uint32_t t = 0; t < x->n_times; t++)
        open[t].closes = UINT32_MAX;
    for (uint32_t k = 0; k < x->stay.n; k++) {
        const SpillInterval *stay = &x->stay.at[k];
        for (uint32_t t = stay->first; t < stay->end && t < x->n_times; t++) {
            if (stay->first > open[t].opened)
                open[t].opened = stay->first;
            if (stay->end < open[t].closes)
                open[t].closes = stay->end;
        }
    }
    return open;
}

/* Of neighbours in time with the same intervals, the fullest. */
static void full_make(SpillProgram *x, Arena *arena, double target) {
    const Open *open = open_by_time(x, arena);
    x->full.n = 0;
    for (uint32_t t = 0; t < x->n_times; t++) {
        if (x->live[t] <= target)
            continue;
        uint32_t *last = x->full.n ? &x->full.at[x->full.n - 1] : NULL;
        if (!last || open[t].opened > *last || open[*last].closes <= t)
            vec_push(x->arena, &x->full, t);
        else if (x->live[t] > x->live[*last])
            *last = t;
    }
}

/* The first of the full times that is not before `time`. */
static uint32_t full_from(const SpillProgram *x, uint32_t time) {
    uint32_t lo = 0, hi = x->full.n;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (x->full.at[mid] < time)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* ---- the program ---- */

/* Which intervals are variables, and which alias classes store more than once.
 */
typedef struct Columns {
    uint32_t *of; /* by interval: its column, or NONE */
    uint32_t
        *stored; /* by interval: the column of its alias class's s, or NONE */
    uint32_t n, bounds;
} Columns;

static bool matters(const SpillProgram *x, const SpillInterval *stay) {
    uint32_t i = full_from(x, stay->first);
    return !stay->forced && i < x->full.n && x->full.at[i] < stay->end;
}

/* Whether what it stores need not be stored again for the alias class's others.
 */
static bool shares_store(const SpillProgram *x, const Columns *c,
                         uint32_t interval) {
    return c->of[interval] != NONE && x->stay.at[interval].store > 0;
}

/* Intervals [first, end) are those of one alias class. */
static void alias_columns(const SpillProgram *x, Columns *c, uint32_t first,
                          uint32_t end) {
    bool forced = false; /* then all of it is stored anyway */
    uint32_t n = 0;
    for (uint32_t i = first; i < end; i++) {
        forced |= x->stay.at[i].forced;
        c->bounds += c->of[i] != NONE;
        n += shares_store(x, c, i);
    }
    bool shared = n > 0 && !forced;
    for (uint32_t i = first; i < end; i++)
        c->stored[i] = shared && shares_store(x, c, i) ? c->n : NONE;
    c->n += shared;
    c->bounds += n * shared;
}

static Columns columns_make(const SpillProgram *x, Arena *arena) {
    Columns c = {.of = ARENA_ARRAY(arena, uint32_t, x->stay.n + 1),
                 .stored = ARENA_ARRAY(arena, uint32_t, x->stay.n + 1)};
    for (uint32_t k = 0; k < x->stay.n; k++)
        c.of[k] = matters(x, &x->stay.at[k]) ? c.n++ : NONE;
    for (uint32_t k = 0, end; k < x->stay.n; k = end) {
        end = k + 1;
        while (end < x->stay.n && x->stay.at[end].alias == x->stay.at[k].alias)
            end++;
        alias_columns(x, &c, k, end);
    }
    return c;
}

static void bounds_fill(const SpillProgram *x, const Columns *c, Lp *lp,
                        uint32_t row) {
    for (uint32_t k = 0; k < x->stay.n; k++) {
        uint32_t col = c->of[k], stored = c->stored[k];
        if (col == NONE)
            continue;
        const SpillInterval *stay = &x->stay.at[k];
        lp->cost[col] = stay->load / x->total;
        lp_set(lp, row, col, -1);
        lp->need[row++] = -1;
        if (stored == NONE)
            continue;
        lp->cost[stored] = stay->store / x->total;
        lp_set(lp, row, stored, 1);
        lp_set(lp, row++, col, -1);
    }
}

static void interval_fill(const SpillProgram *x, const Columns *c, Lp *lp,
                          uint32_t interval) {
    const SpillInterval *stay = &x->stay.at[interval];
    uint32_t end = full_from(x, stay->end);
    for (uint32_t i = full_from(x, stay->first); i < end; i++)
        if (stay->forced)
            lp->need[i] -= stay->bytes;
        else
            lp_set(lp, i, c->of[interval], stay->bytes / x->total);
}

static Lp *program_make(const SpillProgram *x, const Columns *c, Arena *arena,
                        double target) {
    Lp *lp = lp_new(arena, x->full.n + c->bounds, c->n);
    for (uint32_t i = 0; i < x->full.n; i++)
        lp->need[i] = x->live[x->full.at[i]] - target;
    for (uint32_t k = 0; k < x->stay.n; k++)
        interval_fill(x, c, lp, k);
    for (uint32_t i = 0; i < x->full.n; i++)
        lp->need[i] /= x->total;
    bounds_fill(x, c, lp, x->full.n);
    return lp;
}

/* What is asked. */
static Print shares_print(const SpillProgram *x, double target) {
    Print p = {x->stay.n, x->n_times};
    print_add_double(&p, target);
    print_add_double(&p, x->total);
    for (uint32_t t = 0; t < x->n_times; t++)
        print_add_double(&p, x->live[t]);
    for (uint32_t k = 0; k < x->stay.n; k++) {
        const SpillInterval *stay = &x->stay.at[k];
        print_add(&p, (uint64_t)stay->alias << 1 | stay->forced);
        print_add(&p, (uint64_t)stay->first << 32 | stay->end);
        print_add_double(&p, stay->bytes);
        print_add_double(&p, stay->load);
        print_add_double(&p, stay->store);
    }
    return p;
}

/* By interval: its share; behind all of them what they move, or less than 0
 * where nothing was found. */
static bool shares_recall(SpillProgram *x, Print print, double *moved) {
    const double *away = memo_find(x->memo_table, print);
    if (!away)
        return false;
    for (uint32_t k = 0; k < x->stay.n; k++)
        x->stay.at[k].away = away[k];
    *moved = away[x->stay.n];
    return true;
}

static void shares_keep(SpillProgram *x, Print print, double moved) {
    double *away =
        memo_insert(x->memo_table, print, (x->stay.n + 1) * sizeof *away);
    for (uint32_t k = 0; k < x->stay.n && away; k++)
        away[k] = x->stay.at[k].away;
    if (away)
        away[x->stay.n] = moved;
}

static bool program_solve(SpillProgram *x, double target, double *moved) {
    Arena *arena = arena_new("shares");
    full_make(x, arena, target);
    Columns c = columns_make(x, arena);
    uint64_t rows = (uint64_t)x->full.n + c.bounds;
    bool solved = false;
    if (rows * c.n <= MAX_TABLEAU) {
        double *away = ARENA_ARRAY(arena, double, c.n + 1);
        const Lp *lp = program_make(x, &c, arena, target);
        solved = lp_cover(x->arena, &x->room, lp, away, moved) == LP_OPTIMAL;
        *moved *= x->total;
        for (uint32_t k = 0; k < x->stay.n; k++)
            x->stay.at[k].away = x->stay.at[k].forced ? 1
                                 : c.of[k] != NONE    ? away[c.of[k]]
                                                      : 0;
    }
    arena_free(arena);
    return solved;
}

bool spill_lp_solve(SpillProgram *x, double target, double *moved) {
    if (!x->memo_table)
        return program_solve(x, target, moved);
    Print print = shares_print(x, target);
    if (shares_recall(x, print, moved))
        return *moved >= 0;
    bool solved = program_solve(x, target, moved);
    shares_keep(x, print, solved ? *moved : -1);
    return solved;
}

/* Every second of the full times is no longer asked for: not the fullest. */
static void full_halve(SpillProgram *x) {
    uint32_t most = 0;
    for (uint32_t i = 1; i < x->full.n; i++)
        if (x->live[x->full.at[i]] > x->live[x->full.at[most]])
            most = i;
    for (uint32_t i = 0; i < x->full.n; i++)
        if (i % 2 != most % 2)
            x->live[x->full.at[i]] = 0;
}

double spill_lp_bound(SpillProgram *x) {
    double moved = 0;
    while (!spill_lp_solve(x, x->total, &moved)) {
        if (x->full.n < 2)
            return 0;
        full_halve(x);
    }
    return moved;
}
