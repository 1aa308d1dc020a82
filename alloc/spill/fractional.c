/* fractional.c - how much of each volume stays in active memory between its
 * uses.
 *
 * Input: units and modes that fit when whole volumes leave. Output: for each
 * gap between two touches how many channels stay (Touch.leaves, keeps), and a
 * placement of all buffers.
 * What stays must neither move nor have holes: it is a prefix of the volume's
 * outermost axis, which is channels in every layout that a part of a volume can
 * be addressed in; all rows of these channels stay, all rows of the others are
 * stored and come back to the same place.
 * Method: the program of spill_lp.c.
 * Shares are rounded to whole channels, less staying; volumes that can only
 * leave whole do so if any of them should. Where fragmentation leaves no place,
 * two ways are gone, and the cheaper taken: the same for a little less memory;
 * or without parts of what is in the way, which then need no place to return
 * to. What leaves whole in the end is tried once more by parts, in many more
 * orders, as there may be a place where fewer others have to return.
 */
#include "alloc/geometry/onchip_copy.h"
#include "alloc/geometry/tensor_bytes.h"
#include "alloc/live/live.h"
#include "alloc/spill/spill.h"
#include "alloc/spill/spill_lp.h"
#include "pack/flippable.h"

#include "base/arith.h"

#include <string.h>

/* Rounds that give up parts before the target falls, and how often it does. */
enum { MAX_ORDERS = 400, MAX_ROUNDS = 6, MAX_TARGETS = 5 };
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
    Problem *p;
    Shares x;
    bool priced; /* as in stays_price */
    VEC(Solved) solved;
    const uint64_t *whole; /* whole_live; NULL: not asked yet */
    VEC(Failed) failed;
} Gaps;

/* ---- what can leave ---- */

/* The one tensor of the unit that is needed behind the step; NO_TENSOR if there
 * are several, or none. */
static TensorId needed_behind(const Facts *f, const Unit *unit, uint32_t step) {
    TensorId found = NO_TENSOR;
    for (uint32_t i = 0; i < unit->n_tensors; i++) {
        const Role *role = &f->role[unit->tensor[i].i];
        bool there = role->made != NONE && role->made <= step;
        if (!there || role->last == NONE || role->last <= step)
            continue;
        if (found.i != NONE)
            return NO_TENSOR;
        found = unit->tensor[i];
    }
    return found;
}

/* Members that are written, and not part of one that is. */
static uint32_t written(const Facts *f, const Unit *unit, uint32_t step,
                        TensorId *out) {
    uint32_t n = 0;
    for (uint32_t i = 1; i < unit->n_tensors; i++) {
        const Role *role = &f->role[unit->tensor[i].i];
        bool there = role->made != NONE && role->made <= step;
        if (there && f->role[role->parent.i].made > step)
            out[n++] = unit->tensor[i];
    }
    return n;
}

static bool is_filling(const Unit *unit, uint32_t touch) {
    return unit->concat && unit->touch[touch].step < unit->complete;
}

uint32_t kept_tensors(const Facts *f, const Unit *unit, uint32_t touch,
                      TensorId *out) {
    uint32_t step = unit->touch[touch].step;
    if (is_filling(unit, touch))
        return written(f, unit, step, out);
    out[0] = needed_behind(f, unit, step);
    return out[0].i != NONE &&
           plan_volume(f->g, out[0]).c == plan_volume(f->g, unit->root).c;
}

uint32_t kept_of(const Facts *f, const Unit *unit, TensorId t, uint32_t keeps) {
    uint32_t c = channel_in_unit(f, unit, t), n = plan_volume(f->g, t).c;
    return keeps <= c ? 0 : keeps - c < n ? keeps - c : n;
}

/* Made in active memory and not replicated: each of its channels then has an
 * address in both memories, or none has. */
static bool can_be_cut(const Facts *f, TensorId t) {
    Repl none = hwspec_repl_none(f->spec, plan_volume(f->g, t).c);
    const Repl *own = &f->role[t.i].repl;
    Origin origin = f->role[t.i].origin;
    return own->sections == none.sections && own->full == none.full &&
           (origin == FROM_ENGINE || origin == FROM_PARTS);
}

/* Channels up to the end of what is there; 0 if no part of it can stay. */
static uint32_t filled(const Facts *f, const Unit *unit, uint32_t touch) {
    TensorId *kept = ARENA_ARRAY(f->arena, TensorId, unit->n_tensors);
    uint32_t n = kept_tensors(f, unit, touch, kept), end = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t stop =
            channel_in_unit(f, unit, kept[i]) + plan_volume(f->g, kept[i]).c;
        if (!can_be_cut(f, kept[i]))
            return 0;
        end = stop > end ? stop : end;
    }
    return end;
}

/* Channels on both sides of `c` are moved, and stay, by themselves: those of
 * the tensor in which it lies, too. */
static bool cut_has_addresses(const Facts *f, const Unit *unit, uint32_t memory,
                              const Volume *whole, uint32_t c) {
    const HwMemory *m = &f->spec->memory[memory];
    if (!part_has_address(m, whole, c, whole->c - c))
        return false;
    for (uint32_t i = 0; i < unit->n_tensors; i++) {
        uint32_t first = channel_in_unit(f, unit, unit->tensor[i]);
        uint32_t end = first + plan_volume(f->g, unit->tensor[i]).c;
        if (first < c && c < end &&
            (!layout_part_alone(m->layout, whole, first, c - first) ||
             !layout_part_alone(m->layout, whole, c, end - c)))
            return false;
    }
    return true;
}

/* What is moved from channel `c` on must start as any volume does. */
static bool cut_is_aligned(const Facts *f, const Unit *unit,
                           const Volume *whole, uint32_t c) {
    const HwMemory *active = &f->spec->memory[0];
    return cut_has_addresses(f, unit, 0, whole, c) &&
           (c == whole->c ||
            layout_part_offset(active->layout, whole, c) % active->align == 0);
}

/* Whether the engine that copies rows of what stays takes so many channels. */
/* The most channels of at most `bytes`, fewer than `end`; more take no less. */
static uint32_t channels_below(const Facts *f, const Unit *unit, uint32_t end,
                               double bytes) {
    uint32_t lo = 0;
    while (lo + 1 < end) {
        uint32_t mid = lo + (end - lo) / 2;
        if ((double)kept_bytes(f, unit, mid) <= bytes)
            lo = mid;
        else
            end = mid;
    }
    return lo;
}

/* Whether the engine that copies rows of what stays takes so many channels. */
static bool copies_take(const Facts *f, const Unit *unit, uint32_t c) {
    bool copied = false;
    for (uint32_t i = 0; i < unit->n_touches; i++)
        copied |= unit->touch[i].by_rows;
    for (uint32_t i = 0; copied && i < unit->n_tensors; i++) {
        uint32_t kept = kept_of(f, unit, unit->tensor[i], c);
        int32_t e = copy_legal(f, unit->tensor[i]).engine;
        const HwRange *limit = e < 0 ? NULL : f->spec->engine[e].limit;
        if (kept && limit &&
            (!hw_range_has(&limit[HW_LIMIT_IN_C], kept) ||
             !hw_range_has(&limit[HW_LIMIT_OUT_C], kept)))
            return false;
    }
    return true;
}

/* The most channels of at most `bytes` that have an address behind them. */
static uint32_t channels_within(const Facts *f, const Unit *unit,
                                double bytes) {
    Volume active = volume_in(f, unit->root, 0);
    uint32_t backing = (uint32_t)f->spec->backing;
    Volume outside = volume_in(f, unit->root, backing);
    uint32_t most = active.c;
    if ((double)kept_bytes(f, unit, most) > bytes)
        most = channels_below(f, unit, most, bytes);
    for (uint32_t c = most; c > 0; c--)
        if (cut_is_aligned(f, unit, &active, c) &&
            cut_has_addresses(f, unit, backing, &outside, c) &&
            copies_take(f, unit, c))
            return c;
    return 0;
}

/* ---- what it costs ---- */

static double tensor_moved(const Facts *f, TensorId t) {
    Volume v = plan_volume(f->g, t);
    return (double)v.c * v.h * v.w * f->spec->element;
}

static double unit_moved(const Facts *f, const Unit *unit) {
    return tensor_moved(f, unit->root);
}

/* Some node takes it, or gives it, by parts that come from outside. */
static bool passes_in_parts(const Unit *unit) {
    for (uint32_t i = 0; i < unit->n_touches; i++)
        if (unit->touch[i].stream && !unit->touch[i].by_rows)
            return true;
    return false;
}

/* Whether storing costs nothing: it lies outside anyway. */
static bool is_outside(const Decisions *d, const Unit *unit) {
    if (unit->n_tensors > 1)
        return false;
    return from_outside(d->f, unit->root) || d->dissolved[unit->root.i] ||
           passes_in_parts(unit) || dests_of(d, unit->root, false).home;
}

/* Steps up to this one may pass the same rows on. */
static uint32_t passes_until(const Decisions *d, uint32_t step) {
    for (uint32_t g = 0; g < d->group.n; g++)
        if (d->group.at[g].first <= step && step < d->group.at[g].end)
            return d->group.at[g].end;
    return step + 1;
}

/* How often it passes where nothing of it can have stayed. */
static uint32_t passes_of(const Decisions *d, const Unit *unit) {
    bool there = false;
    uint32_t n = 0, until = 0;
    for (uint32_t i = 0; i < unit->n_touches; i++) {
        const Touch *touch = &unit->touch[i];
        there = touch->whole || (there && touch->by_rows);
        if (!touch->stream || there || touch->step < until)
            continue;
        n++;
        until = passes_until(d, touch->step);
    }
    return n;
}

/* Bytes that each pass moves at least. */
static double least_moved(const Facts *f, const Unit *unit) {
    double least = unit_moved(f, unit);
    for (uint32_t i = 1; i < unit->n_tensors; i++) {
        double own = tensor_moved(f, unit->tensor[i]);
        least = own < least ? own : least;
    }
    return least;
}

/* How often all of it comes before its first use, or goes behind it, whatever
 * stays between its uses. */
static uint32_t moves_of(const Decisions *dec, const Unit *unit) {
    if (unit->n_tensors > 1 || !unit->n_touches || !unit->touch[0].whole ||
        unit->touch[0].stream)
        return 0;
    if (from_outside(dec->f, unit->root) || dec->dissolved[unit->root.i])
        return 1;
    Dests d = dests_of(dec, unit->root, false);
    return d.home + d.output;
}

/* Where rows of volumes that stay are read, gaps_cost counts what a group loads
 * once for several of its nodes more than once: then fewer are counted here, as
 * the sum of both ends plans early. */
double streams_cost(const Decisions *d) {
    double sum = 0;
    for (uint32_t u = 0; u < d->unit.n; u++) {
        const Unit *unit = &d->unit.at[u];
        if (unit->dead || unit->concat ||
            (config_low(d->config) && unit->n_tensors > 1))
            continue;
        uint32_t moves = config_low(d->config) ? 0 : moves_of(d, unit);
        sum += (passes_of(d, unit) + moves) * least_moved(d->f, unit);
    }
    return sum;
}

/* Channels that leave over the gap. */
static uint32_t channels_away(const Facts *f, const Unit *unit,
                              uint32_t touch) {
    const Touch *t = &unit->touch[touch];
    if (!t->leaves || !t->keeps)
        return t->leaves ? wanted_behind(f, unit, touch) : 0;
    TensorId *kept = ARENA_ARRAY(f->arena, TensorId, unit->n_tensors);
    uint32_t n = kept_tensors(f, unit, touch, kept), away = 0;
    for (uint32_t i = 0; i < n; i++)
        away +=
            plan_volume(f->g, kept[i]).c - kept_of(f, unit, kept[i], t->keeps);
    return away;
}

/* How often what is away comes by, or back. */
static uint32_t loads_of(const Unit *unit, const Away *away) {
    return away->n_by_rows + (away->next < unit->n_touches);
}

double gaps_cost(const Decisions *d) {
    const Facts *f = d->f;
    double sum = 0;
    for (uint32_t u = 0; u < d->unit.n; u++) {
        const Unit *unit = &d->unit.at[u];
        double c = plan_volume(f->g, unit->root).c, most = 0, moved = 0;
        for (uint32_t i = 0; i + 1 < unit->n_touches && !unit->dead; i++) {
            Away away;
            if (!away_find(d, unit, i, &away))
                continue;
            double now = channels_away(f, unit, i);
            moved += now * (is_filling(unit, i) ? 2 : loads_of(unit, &away));
            most = !is_filling(unit, i) && now > most ? now : most;
        }
        sum += unit_moved(f, unit) / c *
               (moved + (is_outside(d, unit) ? 0 : most));
    }
    return sum;
}

/* ---- the gaps ---- */

/* What is stored while members are missing is stored for each gap anew. */
static void stay_price(const Decisions *d, Stay *stay) {
    const Unit *unit = &d->unit.at[stay->unit];
    double moved = unit_moved(d->f, unit) * stay->bytes /
                   (double)least_bytes(d->f, unit->bytes, UINT32_MAX);
    Away away;
    away_find(d, unit, stay->touch, &away);
    stay->load = moved * (stay->filling ? 2 : loads_of(unit, &away));
    stay->store = stay->filling || is_outside(d, unit) ? 0 : moved;
}

/* `priced`: else all shares cost the same, nothing. */
static void stays_price(Gaps *x, bool priced) {
    x->priced = priced;
    for (uint32_t k = 0; k < x->x.stay.n; k++) {
        Stay *stay = &x->x.stay.at[k];
        stay->load = stay->store = 0;
        if (priced)
            stay_price(x->d, stay);
    }
}

/* What comes from outside by parts must be there in one piece. */
static bool followed_by_parts(uint32_t touch, const Away *away) {
    uint32_t next = touch + 1 + away->n_by_rows;
    return next < away->next;
}

/* Bytes that it has behind the touch. */
static double bytes_behind(const Facts *f, const Unit *unit, uint32_t touch) {
    uint64_t all = least_bytes(f, unit->bytes, UINT32_MAX);
    uint32_t c = wanted_behind(f, unit, touch);
    return (double)(c < plan_volume(f->g, unit->root).c ? kept_bytes(f, unit, c)
                                                        : all);
}

static void stay_add(Gaps *x, uint32_t u, uint32_t i) {
    Unit *unit = &x->d->unit.at[u];
    Touch *touch = &unit->touch[i];
    Away away;
    touch->keeps = 0;
    touch->leaves = false;
    bool filling = is_filling(unit, i);
    uint32_t parts = filled(x->f, unit, i);
    if (!away_find(x->d, unit, i, &away) || (filling && !parts))
        return;
    if (followed_by_parts(i, &away))
        parts = 0;
    if (filling && away.n_by_rows)
        return;
    Stay stay = {.unit = u,
                 .touch = i,
                 .first = 2 * touch->step + 2,
                 .end = away.end,
                 .bytes = filling ? (double)kept_bytes(x->f, unit, parts)
                                  : bytes_behind(x->f, unit, i),
                 .parts = parts > 0,
                 .filling = filling};
    vec_push(x->f->arena, &x->x.stay, stay);
}

static void stays_make(Gaps *x) {
    for (uint32_t u = 0; u < x->d->unit.n; u++)
        for (uint32_t i = 0; i + 1 < x->d->unit.at[u].n_touches; i++)
            if (!x->d->unit.at[u].dead)
                stay_add(x, u, i);
    stays_price(x, true);
}

/* By time: bytes, if everything stays. */
static const uint64_t *whole_live(Gaps *x) {
    problem_make(x->d, x->p);
    return ARENA_COPY(x->f->arena, uint64_t, x->p->live, x->p->n_times);
}

/* ---- undoing ---- */

Spill *spills_copy(const Decisions *d) {
    uint32_t n = 0;
    for (uint32_t u = 0; u < d->unit.n; u++)
        n += d->unit.at[u].n_touches;
    Spill *all = ARENA_ARRAY(d->f->arena, Spill, n + 1), *at = all;
    for (uint32_t u = 0; u < d->unit.n; u++)
        for (uint32_t i = 0; i < d->unit.at[u].n_touches; i++)
            *at++ =
                (Spill){d->unit.at[u].touch[i].leaves, d->unit.at[u].keeps_end,
                        d->unit.at[u].touch[i].keeps};
    return all;
}

void spills_take(Decisions *d, const Spill *at) {
    for (uint32_t u = 0; u < d->unit.n; u++)
        for (uint32_t i = 0; i < d->unit.at[u].n_touches; i++, at++) {
            d->unit.at[u].touch[i].leaves = at->leaves;
            d->unit.at[u].touch[i].keeps = at->keeps;
            d->unit.at[u].keeps_end = at->keeps_end;
        }
}

void spills_none(Decisions *d) {
    for (uint32_t u = 0; u < d->unit.n; u++)
        for (uint32_t i = 0; i < d->unit.at[u].n_touches; i++) {
            d->unit.at[u].touch[i].leaves = false;
            d->unit.at[u].touch[i].keeps = 0;
        }
}

/* ---- choosing ---- */

static bool stays_in_part(const Stay *stay) {
    return stay->parts && !stay->uncut;
}

/* What can only leave whole does so; whether there was such. */
static bool force_wholes(Gaps *x) {
    bool any = false;
    for (uint32_t k = 0; k < x->x.stay.n; k++) {
        Stay *stay = &x->x.stay.at[k];
        if (stays_in_part(stay) || stay->forced || stay->away <= NONE_LEAVES)
            continue;
        stay->forced = any = true;
    }
    return any;
}

static void shares_apply(Gaps *x) {
    for (uint32_t k = 0; k < x->x.stay.n; k++) {
        const Stay *stay = &x->x.stay.at[k];
        Unit *unit = &x->d->unit.at[stay->unit];
        Touch *touch = &unit->touch[stay->touch];
        touch->leaves = stay->away > NONE_LEAVES;
        touch->keeps = 0;
        if (touch->leaves && stays_in_part(stay) && stay->first < stay->end)
            touch->keeps = channels_within(
                x->f, unit, (1 - stay->away) * stay->bytes + 0.5);
        if (stay->filling && !touch->keeps)
            touch->leaves = false;
    }
}

/* Shares for `target` bytes, as leaves and keeps. */
static bool shares_find(Gaps *x, double target) {
    for (uint32_t k = 0; k < x->x.stay.n; k++) {
        Stay *stay = &x->x.stay.at[k];
        Touch *touch = &x->d->unit.at[stay->unit].touch[stay->touch];
        stay->forced = touch->leaves = false;
        touch->keeps = 0;
    }
    if (!x->whole)
        x->whole = whole_live(x);
    for (uint32_t t = 0; t < x->p->n_times; t++)
        x->x.live[t] = (double)x->whole[t];
    double moved;
    do
        if (!shares_solve(&x->x, target, &moved))
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

/* ---- placing ---- */

/* By buffer: the next that moves with it; NONE. */
static uint32_t *next_tied(const Facts *f, const Problem *p) {
    uint32_t *next = ARENA_ARRAY(f->arena, uint32_t, p->buf.n + 1);
    uint32_t *last = ARENA_ARRAY(f->arena, uint32_t, p->buf.n + 1);
    for (uint32_t i = 0; i < p->buf.n; i++) {
        uint32_t first = p->tied.at[i];
        next[i] = NONE;
        if (first != i)
            next[last[first]] = i;
        last[first] = i;
    }
    return next;
}

/* Whether so many channels that stay over a gap could as well be the last ones,
 * which take as much. */
static bool channels_turn(const Facts *f, const Unit *unit, uint32_t keeps) {
    const HwMemory *active = &f->spec->memory[0];
    Volume whole = volume_in(f, unit->root, 0);
    uint32_t backing = (uint32_t)f->spec->backing;
    Volume outside = volume_in(f, unit->root, backing);
    if (keeps > whole.c)
        return false;
    uint32_t c = whole.c - keeps;
    return cut_is_aligned(f, unit, &whole, c) &&
           cut_has_addresses(f, unit, backing, &outside, c) &&
           layout_part_offset(active->layout, &whole, c) +
                   kept_bytes(f, unit, keeps) ==
               unit->bytes[0];
}

/* Rows are copied from what stays at the start. */
static bool unit_turns(const Facts *f, const Unit *unit) {
    uint32_t turns = 0; /* channels that do: most gaps keep as many */
    for (uint32_t i = 0; i < unit->n_touches; i++) {
        const Touch *touch = &unit->touch[i];
        bool kept = touch->leaves && touch->keeps;
        if (touch->by_rows || (kept && is_filling(unit, i)))
            return false;
        if (!kept || touch->keeps == turns)
            continue;
        if (!channels_turn(f, unit, touch->keeps))
            return false;
        turns = touch->keeps;
    }
    return true;
}

/* By unit: whether what stays of it turns, as far as buffers ask. */
static const bool *units_turn(const Decisions *d, const Problem *p) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->buf.n; i++)
        if (p->owner.at[i].kind == OWNER_KEPT && p->owner.at[i].unit >= n)
            n = p->owner.at[i].unit + 1;
    bool *turns = ARENA_ARRAY(d->f->arena, bool, n + 1);
    bool *asked = ARENA_ARRAY(d->f->arena, bool, n + 1);
    for (uint32_t i = 0; i < p->buf.n; i++) {
        const Owner *o = &p->owner.at[i];
        if (o->kind != OWNER_KEPT || asked[o->unit])
            continue;
        asked[o->unit] = true;
        turns[o->unit] = unit_turns(d->f, &d->unit.at[o->unit]);
    }
    return turns;
}

static Bodies bodies_of(const Decisions *d, const Problem *p, uint32_t *body) {
    const Facts *f = d->f;
    Pool pool = pool_of(&f->spec->memory[0]);
    Bodies b = {.arena = f->arena,
                .recall = f->once->recall,
                .size = pool.size,
                .align = pool.align};
    const uint32_t *next = next_tied(f, p);
    const bool *turns = units_turn(d, p);
    for (uint32_t i = 0; i < p->buf.n; i++) {
        const Buf *first = &p->buf.at[i];
        if (p->tied.at[i] != i)
            continue;
        body[i] = body_add(&b, first->bytes[0]);
        b.body.at[body[i]].pinned = first->pin_pool >= 0;
        b.body.at[body[i]].offset = first->pin_offset;
        for (uint32_t k = i; k != NONE; k = next[k]) {
            const Buf *buf = &p->buf.at[k];
            body[k] = body[i];
            const Owner *o = &p->owner.at[k];
            body_box(&b, (Box){buf->first, buf->end, 0, buf->bytes[0],
                               o->kind == OWNER_KEPT && turns[o->unit]});
            if (buf->bytes[0] > b.body.at[body[i]].bytes)
                b.body.at[body[i]].bytes = buf->bytes[0];
        }
    }
    return b;
}

/* Where the buffer lies in its body's place. */
static uint64_t offset_in(const Body *body, const Problem *p, uint32_t buf) {
    return body->turned && p->owner.at[buf].kind == OWNER_KEPT
               ? body->bytes - p->buf.at[buf].bytes[0]
               : 0;
}

/* Which end of each volume stays. */
static void ends_take(Decisions *d, const Bodies *b, const Problem *p,
                      const uint32_t *body) {
    for (uint32_t i = 0; i < p->buf.n; i++)
        if (p->owner.at[i].kind == OWNER_KEPT)
            d->unit.at[p->owner.at[i].unit].keeps_end =
                b->body.at[body[i]].turned;
}

/* At most so many orders are tried. */
static bool place_in_orders(Decisions *d, const Problem *p, uint32_t orders,
                            PlanResult *result, Times *blocked) {
    const Facts *f = d->f;
    uint32_t n = p->buf.n;
    uint32_t *body = ARENA_ARRAY(f->arena, uint32_t, n + 1);
    Bodies b = bodies_of(d, p, body);
    if (!bodies_place(&b, orders)) {
        const Body *failed = &b.body.at[b.failed];
        *blocked = (Times){failed->first, failed->end};
        return false;
    }
    *result = (PlanResult){.status = PLAN_FITS,
                           .pool = ARENA_ARRAY(f->arena, int32_t, n + 1),
                           .offset = ARENA_ARRAY(f->arena, uint64_t, n + 1),
                           .failed = PLAN_NO_BUF};
    for (uint32_t i = 0; i < n; i++) {
        const Body *own = &b.body.at[body[i]];
        result->offset[i] = own->offset + offset_in(own, p, i);
        uint64_t end = result->offset[i] + p->buf.at[i].bytes[0];
        result->height[0] = end > result->height[0] ? end : result->height[0];
    }
    ends_take(d, &b, p, body);
    result->bound = plan_live_peak(f->arena, &p->p, NULL);
    result->proved = result->bound == result->height[0];
    return !plan_check(f->arena, &p->p, result);
}

bool place_tied(Decisions *d, const Problem *p, PlanResult *result,
                Times *blocked) {
    return place_in_orders(d, p, MAX_ORDERS, result, blocked);
}

/* What keeps a part must come back to where it was, and so needs its whole
 * place at both ends of the gap. Of those that do around the body that found no
 * place, the one that keeps least is to leave whole, or not at all; false if
 * there is none. */
static bool part_give_up(Gaps *x, Times blocked) {
    Stay *least = NULL;
    uint64_t kept = UINT64_MAX;
    for (uint32_t k = 0; k < x->x.stay.n; k++) {
        Stay *stay = &x->x.stay.at[k];
        const Unit *unit = &x->d->unit.at[stay->unit];
        const Touch *touch = &unit->touch[stay->touch];
        if (!touch->leaves || !touch->keeps || stay->filling ||
            stay->first > blocked.end || blocked.first > stay->end)
            continue;
        uint64_t bytes = kept_bytes(x->f, unit, touch->keeps);
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
    for (uint32_t u = 0; u < d->unit.n; u++)
        for (uint32_t i = 0; i < d->unit.at[u].n_touches; i++, at++)
            if (at->leaves != d->unit.at[u].touch[i].leaves ||
                at->keeps != d->unit.at[u].touch[i].keeps)
                return false;
    return true;
}

/* ---- the search ---- */

/* The cheapest choice so far that has a placement. */
typedef struct Found {
    bool any;
    double cost;
    const Spill *choice;
    PlanResult result;
} Found;

typedef enum Tried { PLACED, NO_PLACE, NO_USE } Tried;

/* False if there is no place for what is chosen. */
static bool choice_place(Gaps *x, PlanResult *result, Times *blocked) {
    for (uint32_t i = 0; i < x->failed.n; i++)
        if (spills_equal(x->d, x->failed.at[i].choice)) {
            *blocked = x->failed.at[i].blocked;
            return false;
        }
    problem_make(x->d, x->p);
    if (place_tied(x->d, x->p, result, blocked))
        return true;
    Failed failed = {spills_copy(x->d), *blocked};
    vec_push(x->f->arena, &x->failed, failed);
    return false;
}

/* NO_USE: less is not to be had for `target` bytes. */
static Tried target_try(Gaps *x, double target, Found *best, Times *blocked) {
    PlanResult result;
    if (!shares_choose(x, target) || gaps_cost(x->d) >= best->cost)
        return NO_USE;
    if (!choice_place(x, &result, blocked))
        return NO_PLACE;
    *best = (Found){true, gaps_cost(x->d), spills_copy(x->d), result};
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

/* Bytes that are free in all of the gap, beside what stays. */
static double free_over(const Gaps *x, const Stay *stay) {
    uint64_t most = 0;
    for (uint32_t t = stay->first; t < stay->end; t++)
        most = larger(most, x->p->live[t]);
    return most < x->f->total ? (double)(x->f->total - most) : 0;
}

/* Keeps as much of it as there is room for, if that is worth it. */
static void keep_part(Gaps *x, const Stay *stay, Found *best) {
    enum { ORDERS = 4000, PART = 8 };
    Unit *unit = &x->d->unit.at[stay->unit];
    PlanResult result;
    Times blocked;
    unit->touch[stay->touch].keeps =
        channels_within(x->f, unit, free_over(x, stay));
    double cost = gaps_cost(x->d);
    if (cost > best->cost - best->cost / PART)
        return;
    problem_make(x->d, x->p);
    if (place_in_orders(x->d, x->p, ORDERS, &result, &blocked))
        *best = (Found){true, cost, spills_copy(x->d), result};
}

/* What leaves whole because something found no place may stay in part. */
static void keep_parts(Gaps *x, Found *best) {
    enum { MOST = 4 };
    uint32_t tried = 0;
    for (uint32_t k = 0; k < x->x.stay.n && best->any && tried < MOST; k++) {
        const Stay *stay = &x->x.stay.at[k];
        spills_take(x->d, best->choice);
        const Touch *touch = &x->d->unit.at[stay->unit].touch[stay->touch];
        if (!touch->leaves || touch->keeps || !stay->parts || stay->filling ||
            stay->first >= stay->end)
            continue;
        tried++;
        problem_make(x->d, x->p);
        keep_part(x, stay, best);
    }
}

void units_fill(Decisions *d, Problem *p) {
    for (uint32_t u = 0; u < d->unit.n; u++) {
        Unit *unit = &d->unit.at[u];
        for (uint32_t t = 0; t < 2 * unit->complete && unit->concat; t++)
            unit->as_filled |=
                p->live[t] > d->f->total && waits_empty(d, p, u, t);
    }
    problem_make(d, p);
}

/* The same of what is not needed any more. */
static void units_drain(Decisions *d, Problem *p) {
    for (uint32_t u = 0; u < d->unit.n; u++) {
        Unit *unit = &d->unit.at[u];
        for (uint32_t t = 2 * unit->complete; t < p->n_times && unit->concat;
             t++)
            unit->as_needed |=
                p->live[t] > d->f->total && waits_for_part(d, p, u, t);
    }
    problem_make(d, p);
}

bool fit_gaps(Attempt *a, double most) {
    Problem *p = &a->problem;
    Decisions *d = &a->d;
    const Facts *f = d->f;
    if (f->spec->n_active > 1 || f->spec->memory[0].buffers ||
        f->spec->backing < 0)
        return false;
    problem_make(d, p);
    Decisions before = decisions_copy(f->arena, d);
    units_fill(d, p);
    units_drain(d, p);
    Gaps x = {.f = f,
              .d = d,
              .p = p,
              .x = {.arena = f->arena,
                    .recall = f->once->recall,
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
    problem_make(d, p);
    if (!best.any)
        return false;
    a->result = best.result;
    a->planner = "gaps";
    return true;
}
