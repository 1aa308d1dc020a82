/* gaps.c - how much of each volume stays in active memory between its uses.
 *
 * Input: units and modes that fit when whole volumes leave. Output: for each
 * gap between two touches how many channels stay (Touch.leaves, keeps), and a
 * placement of all buffers.
 * What stays must neither move nor have holes: it is a prefix of the volume's
 * outermost axis, which is channels in every layout that a part of a volume can
 * be addressed in; all rows of these channels stay, all rows of the others are
 * stored and come back to the same place.
 * Method: a linear program (facts/two-level.md 2.3). x of a gap is the share
 * that is away, s of a unit the share that is stored once:
 *
 *     minimise   sum moved x + sum moved s
 *     where      sum of bytes x over the gaps at a time >= what is too much
 *                x <= s of its unit, x <= 1
 *
 * Shares are rounded to whole channels, less staying; volumes that can only
 * leave whole do so if any of them should. Where fragmentation leaves no place,
 * the same for a little less memory.
 */
#include "alloc/bodies.h"
#include "alloc/lp.h"
#include "alloc/work.h"

#include <string.h>

/* A program with more numbers than this is not tried. */
enum { MAX_TABLEAU = 2000000, MAX_ORDERS = 12, MAX_TARGETS = 6 };
#define NONE_LEAVES 1e-7

/* Between touch i of a unit and the next one. */
typedef struct Stay {
    uint32_t unit, touch;
    uint32_t first, end; /* times */
    double bytes;        /* of active memory */
    bool parts;          /* a part of it can stay */
    bool forced;         /* it leaves whole */
    double away;         /* x */
} Stay;

typedef struct Gaps {
    Work *w;
    Problem *p;
    VEC(Stay) stay;     /* those of one unit stand together */
    VEC(uint32_t) full; /* times that hold too much, and differ in their gaps */
} Gaps;

/* ---- what can leave ---- */

uint64_t kept_bytes(const Work *w, const Unit *unit, uint32_t channels) {
    Volume whole = volume_in(w, unit->root, 0);
    return channels < whole.c
               ? layout_part_offset(w->spec->memory[0].layout, &whole, channels)
               : layout_bytes(w->spec->memory[0].layout, &whole);
}

TensorId kept_tensor(const Work *w, const Unit *unit, uint32_t touch) {
    TensorId found = NO_TENSOR;
    uint32_t step = unit->touch[touch].step;
    for (uint32_t i = 0; i < unit->n_tensors; i++) {
        const Role *role = &w->role[unit->tensor[i].i];
        bool there = role->made != NONE && role->made <= step;
        if (!there || role->last == NONE || role->last <= step)
            continue;
        if (found.i != NONE)
            return NO_TENSOR;
        found = unit->tensor[i];
    }
    return found;
}

/* Not replicated, all of its unit's volume, and its place outside is its own:
 * each of its channels then has an address in both memories, or none has. */
static bool parts_may_stay(const Work *w, const Unit *unit, uint32_t touch) {
    TensorId t = kept_tensor(w, unit, touch);
    if (t.i == NONE || w->spec->n_active > 1 || w->spec->memory[0].buffers)
        return false;
    uint32_t c = plan_volume(w->g, t).c;
    Repl none = hwspec_repl_none(w->spec, c);
    const Repl *own = &w->role[t.i].repl;
    Origin origin = w->role[t.i].origin;
    return c == plan_volume(w->g, unit->root).c &&
           own->sections == none.sections && own->full == none.full &&
           (origin == FROM_ENGINE || origin == FROM_PARTS);
}

/* The most channels of at most `bytes` that have an address behind them. */
static uint32_t channels_within(const Work *w, const Unit *unit, double bytes) {
    Volume active = volume_in(w, unit->root, 0);
    uint32_t backing = (uint32_t)w->spec->backing;
    Volume outside = volume_in(w, unit->root, backing);
    for (uint32_t c = active.c - 1; c > 0; c--)
        if ((double)kept_bytes(w, unit, c) <= bytes &&
            part_has_address(&w->spec->memory[0], &active, c) &&
            part_has_address(&w->spec->memory[backing], &outside, c))
            return c;
    return 0;
}

/* ---- what it costs ---- */

static double unit_moved(const Work *w, const Unit *unit) {
    Volume v = plan_volume(w->g, unit->root);
    return (double)v.c * v.h * v.w * w->spec->element;
}

/* Whether storing costs nothing: it lies outside anyway. */
static bool is_outside(const Work *w, const Unit *unit) {
    const Role *role = &w->role[unit->root.i];
    if (role->origin == FROM_INPUT || role->origin == FROM_HOST)
        return unit->n_tensors == 1;
    return unit->n_tensors == 1 && dests_of(w, unit->root, false).home;
}

double gaps_cost(const Work *w) {
    double sum = 0;
    for (uint32_t u = 0; u < w->unit.n; u++) {
        const Unit *unit = &w->unit.at[u];
        double c = plan_volume(w->g, unit->root).c, stored = 0, loaded = 0;
        for (uint32_t i = 0; i + 1 < unit->n_touches && !unit->dead; i++) {
            const Touch *touch = &unit->touch[i];
            double away = touch->leaves ? (c - touch->keeps) / c : 0;
            stored = away > stored ? away : stored;
            loaded += away;
        }
        sum +=
            unit_moved(w, unit) * (loaded + (is_outside(w, unit) ? 0 : stored));
    }
    return sum;
}

/* ---- the gaps ---- */

static void stay_add(Gaps *x, uint32_t u, uint32_t i) {
    Unit *unit = &x->w->unit.at[u];
    Touch *touch = &unit->touch[i], *next = &unit->touch[i + 1];
    touch->keeps = 0;
    touch->leaves = false;
    if (!touch->whole || !next->whole || next->stream ||
        (unit->concat && touch->step < unit->complete))
        return;
    uint64_t bytes = least_bytes(x->w, unit->bytes, UINT32_MAX);
    vec_push(x->w->arena, &x->stay,
             ((Stay){.unit = u,
                     .touch = i,
                     .first = 2 * touch->step + 2,
                     .end = 2 * next->step,
                     .bytes = (double)bytes,
                     .parts = parts_may_stay(x->w, unit, i)}));
}

static void stays_make(Gaps *x) {
    for (uint32_t u = 0; u < x->w->unit.n; u++)
        for (uint32_t i = 0; i + 1 < x->w->unit.at[u].n_touches; i++)
            if (!x->w->unit.at[u].dead)
                stay_add(x, u, i);
}

static bool covers(const Stay *stay, uint32_t time) {
    return stay->first <= time && time < stay->end;
}

static bool same_gaps(const Gaps *x, uint32_t a, uint32_t b) {
    for (uint32_t k = 0; k < x->stay.n; k++)
        if (covers(&x->stay.at[k], a) != covers(&x->stay.at[k], b))
            return false;
    return true;
}

/* Of neighbours in time with the same gaps, the fullest. */
static void full_make(Gaps *x, double target) {
    x->full.n = 0;
    for (uint32_t t = 0; t < x->p->n_times; t++) {
        if ((double)x->p->live[t] <= target)
            continue;
        uint32_t *last = x->full.n ? &x->full.at[x->full.n - 1] : NULL;
        if (!last || !same_gaps(x, *last, t))
            vec_push(x->w->arena, &x->full, t);
        else if (x->p->live[t] > x->p->live[*last])
            *last = t;
    }
}

/* ---- the program ---- */

/* Which gaps are variables, and which units store more than once. */
typedef struct Columns {
    uint32_t *of;     /* by gap: its column, or NONE */
    uint32_t *stored; /* by gap: the column of its unit's s, or NONE */
    uint32_t n, bounds;
} Columns;

static bool matters(const Gaps *x, const Stay *stay) {
    for (uint32_t i = 0; i < x->full.n; i++)
        if (covers(stay, x->full.at[i]))
            return !stay->forced;
    return false;
}

static Columns columns_make(const Gaps *x, Arena *arena) {
    Columns c = {.of = ARENA_ARRAY(arena, uint32_t, x->stay.n + 1),
                 .stored = ARENA_ARRAY(arena, uint32_t, x->stay.n + 1)};
    for (uint32_t k = 0; k < x->stay.n; k++)
        c.of[k] = matters(x, &x->stay.at[k]) ? c.n++ : NONE;
    for (uint32_t k = 0, end; k < x->stay.n; k = end) {
        const Unit *unit = &x->w->unit.at[x->stay.at[k].unit];
        bool forced = false;
        uint32_t n = 0;
        for (end = k;
             end < x->stay.n && x->stay.at[end].unit == x->stay.at[k].unit;
             end++) {
            forced |= x->stay.at[end].forced;
            n += c.of[end] != NONE;
        }
        bool shared = n > 0 && !forced && !is_outside(x->w, unit);
        for (uint32_t i = k; i < end; i++)
            c.stored[i] = shared && c.of[i] != NONE ? c.n : NONE;
        c.n += shared;
        c.bounds += n * (1 + shared);
    }
    return c;
}

static void bounds_fill(const Gaps *x, const Columns *c, Lp *lp, uint32_t row) {
    for (uint32_t k = 0; k < x->stay.n; k++) {
        uint32_t col = c->of[k], stored = c->stored[k];
        if (col == NONE)
            continue;
        double moved = unit_moved(x->w, &x->w->unit.at[x->stay.at[k].unit]) /
                       (double)x->w->total;
        lp->cost[col] = moved;
        lp->at[(size_t)row * c->n + col] = -1;
        lp->need[row++] = -1;
        if (stored == NONE)
            continue;
        lp->cost[stored] = moved;
        lp->at[(size_t)row * c->n + stored] = 1;
        lp->at[(size_t)row++ * c->n + col] = -1;
    }
}

static Lp *program_make(const Gaps *x, const Columns *c, Arena *arena,
                        double target) {
    Lp *lp = lp_new(arena, x->full.n + c->bounds, c->n);
    double total = (double)x->w->total;
    for (uint32_t i = 0; i < x->full.n; i++) {
        double need = (double)x->p->live[x->full.at[i]] - target;
        for (uint32_t k = 0; k < x->stay.n; k++) {
            const Stay *stay = &x->stay.at[k];
            if (!covers(stay, x->full.at[i]))
                continue;
            if (stay->forced)
                need -= stay->bytes;
            else
                lp->at[(size_t)i * c->n + c->of[k]] = stay->bytes / total;
        }
        lp->need[i] = need / total;
    }
    bounds_fill(x, c, lp, x->full.n);
    return lp;
}

/* Solves for the gaps that are not forced; false if there is no solution. */
static bool shares_solve(Gaps *x, double target) {
    Arena *arena = arena_new("shares");
    Columns c = columns_make(x, arena);
    uint64_t rows = (uint64_t)x->full.n + c.bounds;
    bool solved = false;
    if (rows * c.n <= MAX_TABLEAU) {
        double value, *away = ARENA_ARRAY(arena, double, c.n + 1);
        const Lp *lp = program_make(x, &c, arena, target);
        solved = lp_cover(arena, lp, away, &value) == LP_OPTIMAL;
        for (uint32_t k = 0; k < x->stay.n; k++)
            x->stay.at[k].away = x->stay.at[k].forced ? 1
                                 : c.of[k] != NONE    ? away[c.of[k]]
                                                      : 0;
    }
    arena_free(arena);
    return solved;
}

/* What can only leave whole does so; whether there was such. */
static bool force_wholes(Gaps *x) {
    bool any = false;
    for (uint32_t k = 0; k < x->stay.n; k++) {
        Stay *stay = &x->stay.at[k];
        if (stay->parts || stay->forced || stay->away <= NONE_LEAVES)
            continue;
        stay->forced = any = true;
    }
    return any;
}

static void shares_apply(Gaps *x) {
    for (uint32_t k = 0; k < x->stay.n; k++) {
        const Stay *stay = &x->stay.at[k];
        Unit *unit = &x->w->unit.at[stay->unit];
        Touch *touch = &unit->touch[stay->touch];
        touch->leaves = stay->away > NONE_LEAVES;
        touch->keeps = 0;
        if (touch->leaves && stay->parts && stay->first < stay->end)
            touch->keeps = channels_within(
                x->w, unit, (1 - stay->away) * stay->bytes + 0.5);
    }
}

/* Shares for `target` bytes, as leaves and keeps. */
static bool shares_choose(Gaps *x, double target) {
    for (uint32_t k = 0; k < x->stay.n; k++) {
        Stay *stay = &x->stay.at[k];
        Touch *touch = &x->w->unit.at[stay->unit].touch[stay->touch];
        stay->forced = touch->leaves = false;
        touch->keeps = 0;
    }
    problem_make(x->w, x->p);
    full_make(x, target);
    do
        if (!shares_solve(x, target))
            return false;
    while (force_wholes(x));
    shares_apply(x);
    return true;
}

/* ---- placing ---- */

static Bodies bodies_of(const Work *w, const Problem *p, uint32_t *body) {
    Pool pool = pool_of(&w->spec->memory[0]);
    Bodies b = {.arena = w->arena, .size = pool.size, .align = pool.align};
    for (uint32_t i = 0; i < p->buf.n; i++) {
        const Buf *first = &p->buf.at[i];
        if (p->tied.at[i] != i)
            continue;
        body[i] = body_add(&b, first->bytes[0]);
        b.body.at[body[i]].pinned = first->pin_pool >= 0;
        b.body.at[body[i]].offset = first->pin_offset;
        for (uint32_t k = i; k < p->buf.n; k++)
            if (p->tied.at[k] == i) {
                const Buf *buf = &p->buf.at[k];
                body[k] = body[i];
                body_box(&b, (Box){buf->first, buf->end, 0, buf->bytes[0]});
            }
    }
    return b;
}

static bool place_tied(const Work *w, const Problem *p, PlanResult *result,
                       uint64_t *least) {
    uint32_t n = p->buf.n;
    uint32_t *body = ARENA_ARRAY(w->arena, uint32_t, n + 1);
    Bodies b = bodies_of(w, p, body);
    if (!bodies_place(&b, MAX_ORDERS, least))
        return false;
    *result = (PlanResult){.status = PLAN_FITS,
                           .pool = ARENA_ARRAY(w->arena, int32_t, n + 1),
                           .offset = ARENA_ARRAY(w->arena, uint64_t, n + 1),
                           .failed = PLAN_NO_BUF};
    for (uint32_t i = 0; i < n; i++) {
        result->offset[i] = b.body.at[body[i]].offset;
        uint64_t end = result->offset[i] + p->buf.at[i].bytes[0];
        result->height[0] = end > result->height[0] ? end : result->height[0];
    }
    result->bound = plan_live_peak(w->arena, &p->p, NULL);
    result->proved = result->bound == result->height[0];
    return !plan_check(w->arena, &p->p, result);
}

/* The most bytes for which a placement is found. */
static bool fit_targets(Gaps *x, PlanResult *result) {
    double size = (double)x->w->total, target = size;
    for (uint32_t try = 0; try < MAX_TARGETS; try++) {
        uint64_t least;
        if (!shares_choose(x, target))
            return false;
        problem_make(x->w, x->p);
        if (place_tied(x->w, x->p, result, &least))
            return true;
        double over = (double)least - size;
        target -= over > size / 64 ? over / 2 : size / 128;
    }
    return false;
}

/* ---- undoing ---- */

typedef struct Choice {
    bool leaves;
    uint32_t keeps;
} Choice;

static Choice *choices_save(const Work *w) {
    uint32_t n = 0;
    for (uint32_t u = 0; u < w->unit.n; u++)
        n += w->unit.at[u].n_touches;
    Choice *all = ARENA_ARRAY(w->arena, Choice, n + 1), *at = all;
    for (uint32_t u = 0; u < w->unit.n; u++)
        for (uint32_t i = 0; i < w->unit.at[u].n_touches; i++)
            *at++ = (Choice){w->unit.at[u].touch[i].leaves,
                             w->unit.at[u].touch[i].keeps};
    return all;
}

static void choices_restore(Work *w, const Choice *at) {
    for (uint32_t u = 0; u < w->unit.n; u++)
        for (uint32_t i = 0; i < w->unit.at[u].n_touches; i++, at++) {
            w->unit.at[u].touch[i].leaves = at->leaves;
            w->unit.at[u].touch[i].keeps = at->keeps;
        }
}

bool fit_gaps(Work *w, Problem *p, PlanResult *result, const char **planner) {
    if (w->spec->n_active > 1 || w->spec->memory[0].buffers ||
        w->spec->backing < 0)
        return false;
    Gaps x = {.w = w, .p = p};
    double before = gaps_cost(w);
    const Choice *saved = choices_save(w);
    PlanResult found;
    stays_make(&x);
    if (fit_targets(&x, &found) && gaps_cost(w) < before) {
        *result = found;
        *planner = "gaps";
        return true;
    }
    choices_restore(w, saved);
    problem_make(w, p);
    return false;
}
