/* fractional.c - how much of each volume stays in active memory between its
 * uses.
 *
 * Input: alias classes and modes that fit when whole volumes leave. Output: for
 * each interval between two uses how many channels stay (Use.leaves, keeps),
 * and a placement of all buffers. What stays must neither move nor have holes:
 * it is a prefix of the volume's outermost axis, which is channels in every
 * layout that a part of a volume can be addressed in; all rows of these
 * channels stay, all rows of the others are stored and come back to the same
 * place. Method: the program of spill_lp.c. SpillProgram are rounded to whole
 * channels, less staying; volumes that can only leave whole do so if any of
 * them should. Where fragmentation leaves no place, two ways are gone, and the
 * cheaper taken: the same for a little less memory; or without parts of what is
 * in the way, which then need no place to return to. What leaves whole in the
 * end is tried once more by parts, in many more orders, as there may be a place
 * where fewer others have to return.
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
    Buffers *p;
    SpillProgram x;
    bool priced; /* as in stays_price */
    VEC(Solved) solved;
    bool **cuts;           /* by alias class: cuts_of; NULL: not asked yet */
    const uint64_t *whole; /* whole_live; NULL: not asked yet */
    VEC(Failed) failed;
} Gaps;

/* ---- what can leave ---- */

/* The one tensor of the alias class that is needed behind the step; NO_TENSOR
 * if there are several, or none. */
static TensorId needed_behind(const Facts *f, const AliasClass *alias,
                              uint32_t step) {
    TensorId found = NO_TENSOR;
    for (uint32_t i = 0; i < alias->n_tensors; i++) {
        const Role *role = &f->role[alias->tensor[i].i];
        bool there = role->made != NONE && role->made <= step;
        if (!there || role->last == NONE || role->last <= step)
            continue;
        if (found.i != NONE)
            return NO_TENSOR;
        found = alias->tensor[i];
    }
    return found;
}

/* Members that are written, and not part of one that is. */
static uint32_t written(const Facts *f, const AliasClass *alias, uint32_t step,
                        TensorId *out) {
    uint32_t n = 0;
    for (uint32_t i = 1; i < alias->n_tensors; i++) {
        const Role *role = &f->role[alias->tensor[i].i];
        bool there = role->made != NONE && role->made <= step;
        if (there && f->role[role->parent.i].made > step)
            out[n++] = alias->tensor[i];
    }
    return n;
}

static bool is_filling(const AliasClass *alias, uint32_t use) {
    return alias->concat && alias->use[use].step < alias->complete;
}

uint32_t kept_tensors(const Facts *f, const AliasClass *alias, uint32_t use,
                      TensorId *out) {
    uint32_t step = alias->use[use].step;
    if (is_filling(alias, use))
        return written(f, alias, step, out);
    out[0] = needed_behind(f, alias, step);
    return out[0].i != NONE &&
           plan_volume(f->g, out[0]).c == plan_volume(f->g, alias->root).c;
}

uint32_t kept_of(const Facts *f, const AliasClass *alias, TensorId t,
                 uint32_t keeps) {
    uint32_t c = channel_in_alias(f, alias, t), n = plan_volume(f->g, t).c;
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
static uint32_t filled(const Facts *f, const AliasClass *alias, uint32_t use) {
    TensorId *kept = ARENA_ARRAY(f->arena, TensorId, alias->n_tensors);
    uint32_t n = kept_tensors(f, alias, use, kept), end = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t stop =
            channel_in_alias(f, alias, kept[i]) + plan_volume(f->g, kept[i]).c;
        if (!can_be_cut(f, kept[i]))
            return 0;
        end = stop > end ? stop : end;
    }
    return end;
}

/* Channels on both sides of `c` are moved, and stay, by themselves: those of
 * the tensor in which it lies, too. */
static bool cut_has_addresses(const Facts *f, const AliasClass *alias,
                              uint32_t memory, const Volume *whole,
                              uint32_t c) {
    const HwMemory *m = &f->spec->memory[memory];
    if (!part_has_address(m, whole, c, whole->c - c))
        return false;
    for (uint32_t i = 0; i < alias->n_tensors; i++) {
        uint32_t first = channel_in_alias(f, alias, alias->tensor[i]);
        uint32_t end = first + plan_volume(f->g, alias->tensor[i]).c;
        if (first < c && c < end &&
            (!layout_part_alone(m->layout, whole, first, c - first) ||
             !layout_part_alone(m->layout, whole, c, end - c)))
            return false;
    }
    return true;
}

/* What is moved from channel `c` on must start as any volume does. */
static bool cut_is_aligned(const Facts *f, const AliasClass *alias,
                           const Volume *whole, uint32_t c) {
    const HwMemory *active = &f->spec->memory[0];
    return cut_has_addresses(f, alias, 0, whole, c) &&
           (c == whole->c ||
            layout_part_offset(active->layout, whole, c) % active->align == 0);
}

/* The most channels of at most `bytes`, fewer than `end`; more take no less. */
static uint32_t channels_below(const Facts *f, const AliasClass *alias,
                               uint32_t end, double bytes) {
    uint32_t lo = 0;
    while (lo + 1 < end) {
        uint32_t mid = lo + (end - lo) / 2;
        if ((double)kept_bytes(f, alias, mid) <= bytes)
            lo = mid;
        else
            end = mid;
    }
    return lo;
}

/* Whether the engine that copies rows of what stays takes so many channels. */
static bool copies_take(const Facts *f, const AliasClass *alias, uint32_t c) {
    bool copied = false;
    for (uint32_t i = 0; i < alias->n_uses; i++)
        copied |= alias->use[i].by_rows;
    for (uint32_t i = 0; copied && i < alias->n_tensors; i++) {
        uint32_t kept = kept_of(f, alias, alias->tensor[i], c);
        int32_t e = copy_legal(f, alias->tensor[i]).engine;
        const HwRange *limit = e < 0 ? NULL : f->spec->engine[e].limit;
        if (kept && limit &&
            (!hw_range_has(&limit[HW_LIMIT_IN_C], kept) ||
             !hw_range_has(&limit[HW_LIMIT_OUT_C], kept)))
            return false;
    }
    return true;
}

/* By channels: whether the first so many can stay, and the others leave. */
static bool *cuts_of(const Facts *f, const AliasClass *alias) {
    Volume active = volume_in(f, alias->root, 0);
    uint32_t backing = (uint32_t)f->spec->backing;
    Volume outside = volume_in(f, alias->root, backing);
    bool *cuts = ARENA_ARRAY(f->arena, bool, (size_t)active.c + 1);
    for (uint32_t c = 1; c <= active.c; c++)
        cuts[c] = cut_is_aligned(f, alias, &active, c) &&
                  cut_has_addresses(f, alias, backing, &outside, c) &&
                  copies_take(f, alias, c);
    return cuts;
}

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

/* ---- what it costs ---- */

static double tensor_moved(const Facts *f, TensorId t) {
    Volume v = plan_volume(f->g, t);
    return (double)v.c * v.h * v.w * f->spec->element;
}

static double alias_moved(const Facts *f, const AliasClass *alias) {
    return tensor_moved(f, alias->root);
}

/* Some node takes it, or gives it, by parts that come from outside. */
static bool passes_in_parts(const AliasClass *alias) {
    for (uint32_t i = 0; i < alias->n_uses; i++)
        if (alias->use[i].stream && !alias->use[i].by_rows)
            return true;
    return false;
}

/* Whether storing costs nothing: it lies outside anyway. */
static bool is_outside(const Decisions *d, const AliasClass *alias) {
    if (alias->n_tensors > 1)
        return false;
    return from_outside(d->f, alias->root) || d->dissolved[alias->root.i] ||
           passes_in_parts(alias) || dests_of(d, alias->root, false).home;
}

/* Steps up to this one may pass the same rows on. */
static uint32_t passes_until(const Decisions *d, uint32_t step) {
    for (uint32_t g = 0; g < d->cascade.n; g++)
        if (d->cascade.at[g].first <= step && step < d->cascade.at[g].end)
            return d->cascade.at[g].end;
    return step + 1;
}

/* How often it passes where nothing of it can have stayed. */
static uint32_t passes_of(const Decisions *d, const AliasClass *alias) {
    bool there = false;
    uint32_t n = 0, until = 0;
    for (uint32_t i = 0; i < alias->n_uses; i++) {
        const Use *use = &alias->use[i];
        there = use->whole || (there && use->by_rows);
        if (!use->stream || there || use->step < until)
            continue;
        n++;
        until = passes_until(d, use->step);
    }
    return n;
}

/* Bytes that each pass moves at least. */
static double least_moved(const Facts *f, const AliasClass *alias) {
    double least = alias_moved(f, alias);
    for (uint32_t i = 1; i < alias->n_tensors; i++) {
        double own = tensor_moved(f, alias->tensor[i]);
        least = own < least ? own : least;
    }
    return least;
}

/* How often all of it comes before its first use, or goes behind it, whatever
 * stays between its uses. */
static uint32_t moves_of(const Decisions *dec, const AliasClass *alias) {
    if (alias->n_tensors > 1 || !alias->n_uses || !alias->use[0].whole ||
        alias->use[0].stream)
        return 0;
    if (from_outside(dec->f, alias->root) || dec->dissolved[alias->root.i])
        return 1;
    Dests d = dests_of(dec, alias->root, false);
    return d.home + d.output;
}

/* Where rows of volumes that stay are read, spills_cost counts what a cascade
 * loads once for several of its nodes more than once: then fewer are counted
 * here, as the sum of both ends plans early. */
double streaming_cost(const Decisions *d) {
    double sum = 0;
    for (uint32_t u = 0; u < d->alias.n; u++) {
        const AliasClass *alias = &d->alias.at[u];
        if (alias->dead || alias->concat ||
            (config_low(d->config) && alias->n_tensors > 1))
            continue;
        uint32_t moves = config_low(d->config) ? 0 : moves_of(d, alias);
        sum += (passes_of(d, alias) + moves) * least_moved(d->f, alias);
    }
    return sum;
}

/* Channels that leave over the interval. */
static uint32_t channels_away(const Facts *f, const AliasClass *alias,
                              uint32_t use) {
    const Use *t = &alias->use[use];
    if (!t->spilled || !t->retained)
        return t->spilled ? wanted_behind(f, alias, use) : 0;
    TensorId *kept = ARENA_ARRAY(f->arena, TensorId, alias->n_tensors);
    uint32_t n = kept_tensors(f, alias, use, kept), away = 0;
    for (uint32_t i = 0; i < n; i++)
        away += plan_volume(f->g, kept[i]).c -
                kept_of(f, alias, kept[i], t->retained);
    return away;
}

/* How often what is away comes by, or back. */
static uint32_t loads_of(const AliasClass *alias, const Away *away) {
    return away->n_by_rows + (away->next < alias->n_uses);
}

double spills_cost(const Decisions *d) {
    const Facts *f = d->f;
    double sum = 0;
    for (uint32_t u = 0; u < d->alias.n; u++) {
        const AliasClass *alias = &d->alias.at[u];
        double c = plan_volume(f->g, alias->root).c, most = 0, moved = 0;
        for (uint32_t i = 0; i + 1 < alias->n_uses && !alias->dead; i++) {
            Away away;
            if (!away_find(d, alias, i, &away))
                continue;
            double now = channels_away(f, alias, i);
            moved += now * (is_filling(alias, i) ? 2 : loads_of(alias, &away));
            most = !is_filling(alias, i) && now > most ? now : most;
        }
        sum += alias_moved(f, alias) / c *
               (moved + (is_outside(d, alias) ? 0 : most));
    }
    return sum;
}

/* ---- the intervals ---- */

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
    uint32_t parts = filled(x->f, alias, i);
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

Spill *spills_copy(const Decisions *d) {
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

void spills_take(Decisions *d, const Spill *at) {
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

/* ---- placing ---- */

/* By buffer: the next that moves with it; NONE. */
static uint32_t *next_tied(const Facts *f, const Buffers *p) {
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

/* Whether so many channels that stay over an interval could as well be the last
 * ones, which take as much. */
static bool channels_turn(const Facts *f, const AliasClass *alias,
                          uint32_t keeps) {
    const HwMemory *active = &f->spec->memory[0];
    Volume whole = volume_in(f, alias->root, 0);
    uint32_t backing = (uint32_t)f->spec->backing;
    Volume outside = volume_in(f, alias->root, backing);
    if (keeps > whole.c)
        return false;
    uint32_t c = whole.c - keeps;
    return cut_is_aligned(f, alias, &whole, c) &&
           cut_has_addresses(f, alias, backing, &outside, c) &&
           layout_part_offset(active->layout, &whole, c) +
                   kept_bytes(f, alias, keeps) ==
               alias->bytes[0];
}

/* Rows are copied from what stays at the start. */
static bool alias_turns(const Facts *f, const AliasClass *alias) {
    uint32_t turns = 0; /* channels that do: most intervals retain as many */
    for (uint32_t i = 0; i < alias->n_uses; i++) {
        const Use *use = &alias->use[i];
        bool kept = use->spilled && use->retained;
        if (use->by_rows || (kept && is_filling(alias, i)))
            return false;
        if (!kept || use->retained == turns)
            continue;
        if (!channels_turn(f, alias, use->retained))
            return false;
        turns = use->retained;
    }
    return true;
}

/* By alias class: whether what stays of it turns, as far as buffers ask. */
static const bool *aliases_turn(const Decisions *d, const Buffers *p) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->buf.n; i++)
        if (p->owner.at[i].kind == OWNER_KEPT && p->owner.at[i].alias >= n)
            n = p->owner.at[i].alias + 1;
    bool *turns = ARENA_ARRAY(d->f->arena, bool, n + 1);
    bool *asked = ARENA_ARRAY(d->f->arena, bool, n + 1);
    for (uint32_t i = 0; i < p->buf.n; i++) {
        const Owner *o = &p->owner.at[i];
        if (o->kind != OWNER_KEPT || asked[o->alias])
            continue;
        asked[o->alias] = true;
        turns[o->alias] = alias_turns(d->f, &d->alias.at[o->alias]);
    }
    return turns;
}

static RigidGroups bodies_of(const Decisions *d, const Buffers *p,
                             uint32_t *body) {
    const Facts *f = d->f;
    Pool pool = pool_of(&f->spec->memory[0]);
    RigidGroups b = {.arena = f->arena,
                     .memo_table = f->memo->memo_table,
                     .size = pool.size,
                     .align = pool.align};
    const uint32_t *next = next_tied(f, p);
    const bool *turns = aliases_turn(d, p);
    for (uint32_t i = 0; i < p->buf.n; i++) {
        const Buffer *first = &p->buf.at[i];
        if (p->tied.at[i] != i)
            continue;
        body[i] = body_add(&b, first->bytes[0]);
        b.body.at[body[i]].pinned = first->pin_pool >= 0;
        b.body.at[body[i]].offset = first->pin_offset;
        for (uint32_t k = i; k != NONE; k = next[k]) {
            const Buffer *buf = &p->buf.at[k];
            body[k] = body[i];
            const Owner *o = &p->owner.at[k];
            body_box(&b, (Box){buf->first, buf->end, 0, buf->bytes[0],
                               o->kind == OWNER_KEPT && turns[o->alias]});
            if (buf->bytes[0] > b.body.at[body[i]].bytes)
                b.body.at[body[i]].bytes = buf->bytes[0];
        }
    }
    return b;
}

/* Where the buffer lies in its body's place. */
static uint64_t offset_in(const RigidGroup *body, const Buffers *p,
                          uint32_t buf) {
    return body->turned && p->owner.at[buf].kind == OWNER_KEPT
               ? body->bytes - p->buf.at[buf].bytes[0]
               : 0;
}

/* Which end of each volume stays. */
static void ends_take(Decisions *d, const RigidGroups *b, const Buffers *p,
                      const uint32_t *body) {
    for (uint32_t i = 0; i < p->buf.n; i++)
        if (p->owner.at[i].kind == OWNER_KEPT)
            d->alias.at[p->owner.at[i].alias].retains_end =
                b->body.at[body[i]].turned;
}

/* At most so many orders are tried. */
static bool place_in_orders(Decisions *d, const Buffers *p, uint32_t orders,
                            PackResult *result, Times *blocked) {
    const Facts *f = d->f;
    uint32_t n = p->buf.n;
    uint32_t *body = ARENA_ARRAY(f->arena, uint32_t, n + 1);
    RigidGroups b = bodies_of(d, p, body);
    if (!bodies_place(&b, orders)) {
        const RigidGroup *failed = &b.body.at[b.failed];
        *blocked = (Times){failed->first, failed->end};
        return false;
    }
    *result = (PackResult){.status = PACK_FITS,
                           .pool = ARENA_ARRAY(f->arena, int32_t, n + 1),
                           .offset = ARENA_ARRAY(f->arena, uint64_t, n + 1),
                           .failed = PACK_NO_BUFFER};
    for (uint32_t i = 0; i < n; i++) {
        const RigidGroup *own = &b.body.at[body[i]];
        result->offset[i] = own->offset + offset_in(own, p, i);
        uint64_t end = result->offset[i] + p->buf.at[i].bytes[0];
        result->height[0] = end > result->height[0] ? end : result->height[0];
    }
    ends_take(d, &b, p, body);
    result->bound = pack_live_peak(f->arena, &p->p, NULL);
    result->proved = result->bound == result->height[0];
    return !pack_verify(f->arena, &p->p, result);
}

bool place_tied(Decisions *d, const Buffers *p, PackResult *result,
                Times *blocked) {
    return place_in_orders(d, p, MAX_ORDERS, result, blocked);
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
