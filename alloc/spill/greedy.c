/* greedy.c - two levels: what is evicted when, which concats are dissolved,
 * which nodes run by tiles.
 *
 * Input: alias classes and the size of active memory. Output: leaves of uses,
 * modes of nodes, and a placement of all buffers that remain. Method: where all
 * nodes fit whole, parts of volumes leave (fractional.c). Else start with
 * everything kept. While some step holds more than there is, something at the
 * fullest step gives way (give_way.c). If that gets stuck, the same with every
 * interval evicted from the start: each step then stands alone, so what fits
 * into a memory fits into a larger one. Invariant: each round evicts,
 * dissolves, tiles or shrinks; none undoes.
 */
#include "alloc/alias/alias.h"
#include "alloc/geometry/tensor_bytes.h"
#include "alloc/live/live.h"
#include "alloc/spill/give_way.h"
#include "alloc/tile/tile.h"
#include "pack/memo.h"

#include "base/order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- one round ---- */

static bool relieve(Decisions *d, const Buffers *p, uint32_t time) {
    return make_room(d, p, time) || run_smaller(d, p, time);
}

/* A volume that no memory can hold: its nodes must run by tiles. */
static bool relieve_oversized(Attempt *a, const Buffers *p, uint32_t buf) {
    const Owner *o = &p->owner.at[buf];
    a->stuck = p->buf.at[buf].first / 2;
    if (o->kind == OWNER_BOUNCE)
        return bounce_shrink(&a->d, o->tensor);
    if (o->kind != OWNER_RESIDENT)
        return false;
    const AliasClass *alias = &a->d.alias.at[o->alias];
    if (alias->concat && dissolve(&a->d, o->alias))
        return true;
    for (uint32_t i = 0; i < alias->n_uses; i++) {
        uint32_t step = alias->use[i].step;
        if (!alias->use[i].whole || 2 * step < p->buf.at[buf].first)
            continue;
        a->stuck = step;
        const Step *s = &a->f->schedule->step[step];
        for (uint32_t k = 0; k < s->n; k++)
            if (on_engine(a->f, s->slot[k].node) &&
                is_operand(&a->d, graph_node(a->f->g, s->slot[k].node),
                           o->alias) &&
                tile_more(&a->d, p, s->slot[k].node))
                return true;
        return false;
    }
    return false;
}

/* A concat whose members are written in memories that no engine shares cannot
 * be filled in one of them. */
static uint32_t torn(const Decisions *d, const Buffers *p) {
    for (uint32_t u = 0; u < d->alias.n; u++) {
        const AliasClass *alias = &d->alias.at[u];
        if (!alias->dead && alias->concat && residencies_of(p, u)->n > 1 &&
            alias->use[residencies_of(p, u)->at[0].last].step < alias->complete)
            return u;
    }
    return NONE;
}

static uint32_t oversized(const Attempt *a, const Buffers *p) {
    for (uint32_t i = 0; i < p->owner.n; i++)
        if (p->owner.at[i].least == UINT64_MAX &&
            !a->given_up[p->buf.at[i].first / 2])
            return i;
    return NONE;
}

/* The fullest time of those that hold too much; NONE if all fit. */
static uint32_t overloaded(const Attempt *a, const Buffers *p) {
    uint32_t worst = NONE;
    for (uint32_t t = 0; t < p->n_times; t++)
        if (p->live[t] > a->f->total && !a->given_up[t / 2] &&
            (worst == NONE || p->live[t] > p->live[worst]))
            worst = t;
    return worst;
}

/* The same to the byte. Where memory ends inside a unit of its alignment, only
 * what lies on top reaches into that, by what it was rounded up. */
static uint32_t crowded(const Attempt *a, const Buffers *p) {
    uint64_t size = p->p.pool[0].size;
    uint32_t worst = NONE;
    if (p->p.n_pools > 1 || a->f->total == size)
        return NONE;
    uint64_t *padding = ARENA_ARRAY(a->f->arena, uint64_t, p->n_times + 1);
    for (uint32_t i = 0; i < p->buf.n; i++) {
        const Buffer *buf = &p->buf.at[i];
        uint64_t pad = p->owner.at[i].least - buf->bytes[0];
        for (uint32_t t = buf->first; t < buf->end; t++)
            padding[t] = pad > padding[t] ? pad : padding[t];
    }
    for (uint32_t t = 0; t < p->n_times; t++)
        if (p->live[t] > size + padding[t] && !a->given_up[t / 2] &&
            (worst == NONE || p->live[t] > p->live[worst]))
            worst = t;
    return worst;
}

typedef struct Load {
    uint64_t bytes;
    uint32_t time;
} Load;

static int fullest_first(const void *a, const void *b) {
    const Load *x = a, *y = b;
    return order_by(ORDER_DOWN(x->bytes, y->bytes), ORDER_UP(x->time, y->time));
}

static void times_mark(uint8_t *mark, uint32_t first, uint32_t end) {
    for (uint32_t t = first; t < end; t++)
        mark[t] = 1;
}

/* By time: make_room is of no use where this is 0. */
static uint8_t *room_by_time(const Decisions *d, const Buffers *p) {
    uint8_t *room = ARENA_ARRAY(d->f->arena, uint8_t, p->n_times + 1);
    Away away;
    for (uint32_t u = 0; u < d->alias.n; u++) {
        const AliasClass *alias = &d->alias.at[u];
        const Residencies *stays = residencies_of(p, u);
        for (uint32_t k = 0; k < stays->n && !alias->dead; k++) {
            const Residency *s = &stays->at[k];
            const Use *first = &alias->use[s->first];
            uint32_t end = alias->use[s->last].step;
            for (uint32_t i = s->first; i < s->last; i++)
                if (interval_may_leave(alias, i) &&
                    away_find(d, alias, i, &away))
                    times_mark(room, 2 * alias->use[i].step + 2, away.end);
            end = end < alias->complete ? end : alias->complete;
            if (alias->concat)
                times_mark(room, 2 * first->step, 2 * end + 2);
        }
    }
    return room;
}

/* The planner found no place for the buffer (or proved that none exists, and
 * names none): make room while it lives, at its fullest time first. */
static bool relieve_buffer(Attempt *a, const Buffers *p, uint32_t buf) {
    bool one = buf < p->buf.n;
    uint32_t first = one ? p->buf.at[buf].first : 0;
    uint32_t end = one ? p->buf.at[buf].end : p->n_times;
    const uint8_t *room = room_by_time(&a->d, p);
    Load *load = ARENA_ARRAY(a->f->arena, Load, end - first + 1);
    for (uint32_t t = first; t < end; t++)
        load[t - first] = (Load){p->live[t], t};
    if (end > first) {
        qsort(load, end - first, sizeof *load, fullest_first);
        a->stuck = load[0].time / 2;
    }
    for (uint32_t i = 0; i < end - first; i++)
        if ((room[load[i].time] && make_room(&a->d, p, load[i].time)) ||
            run_smaller(&a->d, p, load[i].time))
            return true;
    return false;
}

/* A plan takes hundreds of packings: a search to the end has a share of the
 * steps that are left, a power of two, so that what was asked before is known
 * again. */
static uint64_t exact_steps(const PlanOptions *options) {
    enum { SHARE = 64, LEAST = 256 };
    uint64_t most = options->budget ? options->budget->left / SHARE : 0;
    uint64_t steps = LEAST;
    while (steps * 2 <= most)
        steps *= 2;
    return options->budget && !strcmp(options->planner, "exact") ? steps : 0;
}

static bool place(Decisions *d, const Buffers *p, PackResult *result,
                  const char **planner) {
    const Facts *f = d->f;
    Times blocked;
    memset(result, 0, sizeof *result);
    packing_count(f);
    for (uint32_t i = 0; i < p->buf.n; i++)
        if (p->tied.at[i] != i) {
            *planner = "gaps";
            result->failed = PACK_NO_BUFFER;
            return place_tied(d, p, result, &blocked);
        }
    PackProblem asked = p->p;
    asked.budget = exact_steps(f->options);
    placed_once(f->memo->memo_table, f->arena, &asked, f->options->planner,
                false, result, planner);
    if (asked.budget)
        budget_take(f->options->budget, result->nodes);
    return result->status == PACK_FITS;
}

/* Evicts at the fullest time until nothing holds too much, or nothing there can
 * leave. Of the problem only `live` is kept; whether anything left. */
static bool evict_on(Attempt *a, Buffers *p, uint32_t time) {
    bool any = false;
    for (uint32_t alias;
         time != NONE && (alias = evict_at(&a->d, p, time)) != NONE;
         time = overloaded(a, p)) {
        any = true;
        a->stuck = time / 2;
        if (!live_follow(&a->d, p, alias))
            break;
    }
    return any;
}

static uint32_t first_given_up(const Attempt *a) {
    for (uint32_t s = 0; s < a->f->schedule->n_steps; s++)
        if (a->given_up[s])
            return s;
    return NONE;
}

/* One round: true if something changed, or all has its place (*placed). */
static bool improve(Attempt *a, bool *placed) {
    Buffers *p = &a->buffers;
    PackResult *result = &a->result;
    buffers_make(&a->d, p);
    result->pool = NULL;
    uint32_t alias = torn(&a->d, p);
    if (alias != NONE) {
        a->stuck = a->d.alias.at[alias].complete;
        return dissolve(&a->d, alias);
    }
    uint32_t buf = oversized(a, p), time = overloaded(a, p);
    if (buf != NONE)
        return relieve_oversized(a, p, buf);
    time = time == NONE ? crowded(a, p) : time;
    if (time != NONE) {
        a->stuck = time / 2;
        return fill_at(&a->d, p, time) || evict_on(a, p, time) ||
               relieve(&a->d, p, time);
    }
    uint32_t step = first_given_up(a);
    if (step != NONE) {
        a->stuck = step;
        return false;
    }
    a->gave_up = a->too_long(a);
    *placed = a->gave_up || place(&a->d, p, result, &a->planner);
    return *placed || relieve_buffer(a, p, result->failed);
}

static bool solve(Attempt *a) {
    bool placed = false;
    while (!placed) {
        a->hopeless = streaming_cost(&a->d) > a->most;
        if (a->hopeless || budget_spent(a->f->options->budget) ||
            !improve(a, &placed))
            return false;
    }
    return true;
}

/* The same when all stand alone: to explain, goes on behind a step that cannot
 * run, so that all such steps are known. */
static bool solve_each(Attempt *a) {
    PackResult *result = &a->result;
    bool all = true;
    while (!solve(a)) {
        all = false;
        if (!a->explains || result->pool || a->given_up[a->stuck])
            break;
        a->given_up[a->stuck] = 1;
    }
    return all;
}

/* ---- keeping again ---- */

typedef struct Evicted {
    uint32_t alias, use;
    uint64_t bytes;
} Evicted;

static int by_bytes(const void *a, const void *b) {
    const Evicted *x = a, *y = b;
    return order_by3(ORDER_DOWN(x->bytes, y->bytes),
                     ORDER_UP(x->alias, y->alias), ORDER_UP(x->use, y->use));
}

static uint32_t evicted_list(const Decisions *d, Evicted **out) {
    VEC(Evicted) list = {0};
    for (uint32_t u = 0; u < d->alias.n; u++) {
        const AliasClass *alias = &d->alias.at[u];
        for (uint32_t i = 0; i < alias->n_uses && !alias->dead; i++)
            if (alias->use[i].spilled && alias->use[i].whole)
                vec_push(
                    d->f->arena, &list,
                    ((Evicted){u, i,
                               least_bytes(d->f, alias->bytes, UINT32_MAX)}));
    }
    if (list.n)
        qsort(list.at, list.n, sizeof *list.at, by_bytes);
    *out = list.at;
    return list.n;
}

bool place_anew(Attempt *a, uint32_t *tries) {
    Buffers *p = &a->buffers;
    PackResult *result = &a->result;
    PackResult again;
    const char *used;
    buffers_make(&a->d, p);
    if (overloaded(a, p) != NONE || oversized(a, p) != NONE)
        return false;
    ++*tries;
    if (!place(&a->d, p, &again, &used))
        return false;
    *result = again;
    a->planner = used;
    return true;
}

/* Lets the interval leave, or not, in `live`, too; false if that could not
 * follow.
 */
static bool interval_set(Decisions *d, Buffers *p, const Evicted *interval,
                         bool leaves) {
    bool known = live_alias(d, p, interval->alias, false);
    d->alias.at[interval->alias].use[interval->use].spilled = leaves;
    return known && live_alias(d, p, interval->alias, true);
}

/* Later evictions may have made earlier ones needless. */
static void undo_spills(Attempt *a) {
    Buffers *p = &a->buffers;
    enum { MAX_TRIES = 24 };
    Evicted *list;
    uint32_t n = evicted_list(&a->d, &list), tries = 0;
    bool known = true; /* `live` */
    for (uint32_t i = 0; i < n && tries < MAX_TRIES; i++) {
        known = interval_set(&a->d, p, &list[i], false) && known;
        bool fits = !known || overloaded(a, p) == NONE;
        if (fits) {
            fits = place_anew(a, &tries);
            known = true;
        }
        if (!fits)
            known = interval_set(&a->d, p, &list[i], true) && known;
    }
    buffers_make(&a->d, p);
}

/* ---- the two ways ---- */

bool fit_one_level(Attempt *a) {
    Buffers *p = &a->buffers;
    PackResult *result = &a->result;
    buffers_make(&a->d, p);
    uint32_t buf = oversized(a, p), time = overloaded(a, p);
    if (p->split == NONE && buf == NONE && place(&a->d, p, result, &a->planner))
        return true;
    a->stuck = p->split != NONE            ? p->split
               : time != NONE              ? time / 2
               : buf != NONE               ? p->buf.at[buf].first / 2
               : result->failed < p->buf.n ? p->buf.at[result->failed].first / 2
                                           : 0;
    return false;
}

/* What passes by parts is freed, for all modes that are set; false if one
 * cannot be. */
static bool modes_settle(Decisions *d) {
    for (NodeId id = {0}; id.i < d->f->g->node.n; id.i++)
        if (d->mode[id.i].kind == MODE_HARDWARE &&
            !operands_freed(d, id, &d->mode[id.i]))
            return false;
    return true;
}

void start_again(Attempt *a) {
    for (TensorId t = {0}; t.i < a->f->g->tensor.n; t.i++)
        a->d.dissolved[t.i] = false;
    memset(a->d.mode, 0, a->f->g->node.n * sizeof *a->d.mode);
    ahead_choose(&a->d);
    modes_start(&a->d);
    if (a->d.config->styles)
        styles_choose(&a->d);
    a->d.alias.n = 0;
    aliases_make(&a->d);
    a->settled = modes_settle(&a->d);
    uses_make(&a->d);
}

static void everything_leaves(Decisions *d) {
    for (uint32_t u = 0; u < d->alias.n; u++)
        if (!d->alias.at[u].dead && d->alias.at[u].concat)
            dissolve(d, u);
    for (uint32_t u = 0; u < d->alias.n; u++) {
        AliasClass *alias = &d->alias.at[u];
        for (uint32_t i = 0; i + 1 < alias->n_uses; i++)
            alias->use[i].spilled |= interval_may_leave(alias, i);
    }
}

bool fit_around(Attempt *a) {
    double most = a->most - streaming_cost(&a->d);
    a->by_parts = !a->d.config->evict_whole && fit_spills(a, most);
    if (a->by_parts)
        return true;
    if (!solve(a) || a->gave_up)
        return false;
    undo_spills(a);
    double own = spills_cost(&a->d);
    most = a->most - streaming_cost(&a->d);
    a->hopeless = !fit_spills(a, own < most ? own : most) && own >= most;
    return !a->hopeless;
}

bool fit_two_levels(Attempt *attempt) {
    if (attempt->f->spec->backing < 0)
        return false;
    if (fit_around(attempt))
        return true;
    if (attempt->hopeless || attempt->gave_up)
        return false;
    start_again(attempt);
    everything_leaves(&attempt->d);
    if (!solve_each(attempt) || attempt->gave_up)
        return false; /* else most of it left for a few */
    undo_spills(attempt);
    fit_spills(attempt, spills_cost(&attempt->d));
    return true;
}
