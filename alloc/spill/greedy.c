/* greedy.c - two levels: what is evicted when, which concats are dissolved,
 * which nodes run by tiles.
 *
 * Input: units and the size of active memory. Output: leaves of touches, modes
 * of nodes, and a placement of all buffers that remain.
 * Method: where all nodes fit whole, parts of volumes leave (fractional.c).
 * Else start with everything kept. While some step holds more than there is,
 * evict at the fullest step the gap that frees most for what it moves, the
 * furthest next use first (Belady, 1966); when no gap is left there, dissolve a
 * concat, then run the step's node by tiles. If that gets stuck, the same with
 * every gap evicted from the start: each step then stands alone, so what fits
 * into a memory fits into a larger one.
 * Invariant: each round evicts, dissolves, tiles or shrinks; none undoes.
 */
#include "alloc/work.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- gaps ---- */

static bool gap_may_leave(const Unit *unit, uint32_t i) {
    return !unit->touch[i].leaves &&
           (!unit->concat || unit->touch[i].step >= unit->complete);
}

/* Whether a gap of the segment may cover the time: rows that are read can keep
 * one open behind its last touch. */
static bool segment_near(const Work *w, const Unit *unit, const Segment *s,
                         uint32_t time) {
    return 2 * unit->touch[s->first].step + 2 <= time &&
           (w->low || time <= 2 * unit->touch[s->last].step);
}

/* The gap of the unit that covers `time`; NONE if it is not resident then, or
 * touched. */
static uint32_t gap_at(const Work *w, const Unit *unit, uint32_t time) {
    Away away;
    for (uint32_t k = 0; k < unit->n_segments; k++) {
        const Segment *s = &unit->segment[k];
        if (!segment_near(w, unit, s, time))
            continue;
        for (uint32_t i = s->first; i < s->last; i++)
            if (2 * unit->touch[i].step + 2 <= time &&
                away_find(w, unit, i, &away) && time < away.end)
                return gap_may_leave(unit, i) ? i : NONE;
    }
    return NONE;
}

/* Whether the volume is known to lie outside unchanged before touch i ends. */
static bool has_copy(const Work *w, const Unit *unit, uint32_t i) {
    if (unit->n_tensors > 1 && !unit->concat)
        return false;
    if (from_outside(w, unit->root))
        return true;
    for (uint32_t k = 0; k < i; k++)
        if (unit->touch[k].leaves && unit->touch[k].step >= unit->complete)
            return true;
    return false;
}

typedef struct Gap {
    uint32_t unit, touch, next;
    double worth; /* bytes freed for each byte moved */
} Gap;

static Gap gap_make(const Work *w, uint32_t unit, uint32_t i) {
    const Unit *u = &w->unit.at[unit];
    const HwMemory *backing = &w->spec->memory[w->spec->backing];
    Volume v = volume_in(w, u->root, (uint32_t)w->spec->backing);
    double moved = (double)layout_bytes(backing->layout, &v);
    uint64_t freed = least_bytes(w, u->bytes, UINT32_MAX);
    if (!has_copy(w, u, i))
        moved *= 2;
    return (Gap){unit, i, u->touch[i + 1].step, (double)freed / moved};
}

static bool gap_better(const Gap *a, const Gap *b) {
    if (a->worth != b->worth)
        return a->worth > b->worth;
    return a->next != b->next ? a->next > b->next : a->unit < b->unit;
}

/* The unit that leaves; NONE if there is none. */
static uint32_t evict_at(Work *w, uint32_t time) {
    Gap best = {.unit = NONE};
    for (uint32_t u = 0; u < w->unit.n; u++) {
        const Unit *unit = &w->unit.at[u];
        uint32_t i = unit->dead ? NONE : gap_at(w, unit, time);
        if (i == NONE)
            continue;
        Gap gap = gap_make(w, u, i);
        if (best.unit == NONE || gap_better(&gap, &best))
            best = gap;
    }
    if (best.unit != NONE)
        w->unit.at[best.unit].touch[best.touch].leaves = true;
    return best.unit;
}

/* ---- concats ---- */

static bool resident_at(const Unit *unit, uint32_t time) {
    for (uint32_t k = 0; k < unit->n_segments; k++)
        if (2 * unit->touch[unit->segment[k].first].step <= time &&
            time < 2 * unit->touch[unit->segment[k].last].step + 2)
            return true;
    return false;
}

/* Its members become units of their own, with their touches. */
static bool dissolve(Work *w, uint32_t unit) {
    if (!unit_dissolve(w, unit))
        return false;
    touches_make(w);
    return true;
}

/* The largest concat that is being filled at the time. */
static bool dissolve_at(Work *w, uint32_t time) {
    uint32_t best = NONE;
    for (uint32_t u = 0; u < w->unit.n; u++) {
        const Unit *unit = &w->unit.at[u];
        if (unit->dead || !unit->concat || time > 2 * unit->complete + 1 ||
            !resident_at(unit, time))
            continue;
        if (best == NONE ||
            least_bytes(w, unit->bytes, UINT32_MAX) >
                least_bytes(w, w->unit.at[best].bytes, UINT32_MAX))
            best = u;
    }
    return best != NONE && dissolve(w, best);
}

bool operand_freed(Work *w, NodeId node, TensorId t) {
    uint32_t step = w->schedule->step_of[node.i];
    bool is_out = graph_tensor(w->g, t)->producer.i == node.i;
    if (is_out ? result_lands(w, node) : takes_rows(w, node, t))
        return true;
    while (w->unit_of[t.i] != NONE) {
        const Unit *unit = &w->unit.at[w->unit_of[t.i]];
        if (!unit->concat || step > unit->complete || from_outside(w, t))
            return true;
        if (!dissolve(w, w->unit_of[t.i]))
            return false;
    }
    return true;
}

/* ---- tiles ---- */

static bool is_operand(const Work *w, const Node *node, uint32_t unit) {
    for (uint32_t i = 0; i < node->n_in; i++)
        if (w->unit_of[node->in[i].i] == unit)
            return true;
    return w->unit_of[node->out[0].i] == unit;
}

/* Bytes at the node's step that are not the node's. */
static uint64_t bytes_of_others(const Work *w, const Problem *p, NodeId id) {
    const Node *node = graph_node(w->g, id);
    uint32_t time = 2 * w->schedule->step_of[id.i];
    uint64_t sum = 0;
    for (uint32_t i = 0; i < p->buf.n; i++) {
        const Owner *o = &p->owner.at[i];
        if (p->buf.at[i].first > time || p->buf.at[i].end <= time ||
            o->node.i == id.i || o->least == UINT64_MAX)
            continue;
        if (o->kind != OWNER_SEGMENT || !is_operand(w, node, o->unit))
            sum += o->least;
    }
    return sum;
}

/* Bytes of operands that stay whole in the node's mode. */
static uint64_t bytes_whole(const Work *w, NodeId id) {
    const Node *node = graph_node(w->g, id);
    const Mode *mode = &w->mode[id.i];
    uint64_t sum = 0;
    for (uint32_t i = 0; i <= node->n_in; i++) {
        bool is_in = i < node->n_in;
        TensorId t = is_in ? node->in[i] : node->out[0];
        if (is_in ? mode->streams_in : mode->streams_out)
            continue;
        uint64_t least = least_bytes(w, w->unit.at[w->unit_of[t.i]].bytes,
                                     reach_of(w, id, t));
        if (least == UINT64_MAX)
            return UINT64_MAX;
        sum += least;
    }
    return sum;
}

/* Those that pass in tiles. */
static bool operands_freed(Work *w, NodeId id, const Mode *mode) {
    const Node *node = graph_node(w->g, id);
    if (mode->streams_out && !operand_freed(w, id, node->out[0]))
        return false;
    for (uint32_t i = 0; i < node->n_in; i++)
        if (mode_streams(mode, i) && !operand_freed(w, id, node->in[i]))
            return false;
    return true;
}

static bool mode_holds(Work *w, NodeId id, uint64_t free) {
    if (w->mode[id.i].kind == MODE_HARDWARE) {
        uint64_t whole = bytes_whole(w, id);
        if (whole > free || mode_pinned(w, id) > free - whole)
            return false;
    }
    return operands_freed(w, id, &w->mode[id.i]);
}

/* The node's next way to run that is possible. */
static bool tile_more(Work *w, const Problem *p, NodeId id) {
    Mode old = w->mode[id.i];
    if (old.kind == MODE_GROUP)
        return false;
    if (couple_partner(w, id).i != NONE) {
        couple_part(w, id);
        return true;
    }
    uint64_t others = bytes_of_others(w, p, id);
    uint64_t free = others < w->total ? w->total - others : 0;
    if (w->low && free > w->total / w->low)
        free = w->total / w->low;
    while (mode_next(w, id, free)) {
        if (mode_holds(w, id, free)) {
            touches_refresh(w, w->schedule->step_of[id.i]);
            return true;
        }
        if (w->mode[id.i].kind == MODE_PLANKS)
            break;
    }
    w->mode[id.i] = old;
    return false;
}

static bool tile_at(Work *w, const Problem *p, uint32_t step) {
    const Step *s = &w->schedule->step[step];
    for (uint32_t i = 0; i < s->n; i++)
        if (on_engine(w, s->slot[i].node) && tile_more(w, p, s->slot[i].node))
            return true;
    return false;
}

static bool relay_shrink(Work *w, TensorId t) {
    uint32_t *rows = &w->relay_rows[t.i];
    if (*rows <= 1)
        return false;
    *rows = (*rows + 1) / 2;
    return true;
}

static bool relays_shrink_at(Work *w, uint32_t step) {
    bool any = false;
    for (uint32_t i = 0; i < w->relay.n; i++)
        if (w->relay.at[i].step == step)
            any |= relay_shrink(w, w->relay.at[i].tensor);
    return any;
}

/* ---- one round ---- */

/* A concat need not have what is not written yet. */
static bool fill_at(Work *w, uint32_t time) {
    for (uint32_t u = 0; u < w->unit.n && w->low; u++)
        if (waits_empty(&w->unit.at[u], time)) {
            w->unit.at[u].as_filled = true;
            return true;
        }
    return false;
}

/* What waits takes less. */
static bool make_room(Work *w, uint32_t time) {
    return fill_at(w, time) || evict_at(w, time) != NONE ||
           dissolve_at(w, time);
}

/* What runs takes less. */
static bool run_smaller(Work *w, const Problem *p, uint32_t time) {
    return (time % 2 && relays_shrink_at(w, time / 2)) ||
           tile_at(w, p, time / 2);
}

static bool relieve(Work *w, const Problem *p, uint32_t time) {
    return make_room(w, time) || run_smaller(w, p, time);
}

/* A volume that no memory can hold: its nodes must run by tiles. */
static bool relieve_oversized(Work *w, const Problem *p, uint32_t buf) {
    const Owner *o = &p->owner.at[buf];
    w->stuck = p->buf.at[buf].first / 2;
    if (o->kind == OWNER_RELAY)
        return relay_shrink(w, o->tensor);
    if (o->kind != OWNER_SEGMENT)
        return false;
    const Unit *unit = &w->unit.at[o->unit];
    if (unit->concat && dissolve(w, o->unit))
        return true;
    for (uint32_t i = 0; i < unit->n_touches; i++) {
        uint32_t step = unit->touch[i].step;
        if (!unit->touch[i].whole || 2 * step < p->buf.at[buf].first)
            continue;
        w->stuck = step;
        const Step *s = &w->schedule->step[step];
        for (uint32_t k = 0; k < s->n; k++)
            if (on_engine(w, s->slot[k].node) &&
                is_operand(w, graph_node(w->g, s->slot[k].node), o->unit) &&
                tile_more(w, p, s->slot[k].node))
                return true;
        return false;
    }
    return false;
}

/* A concat whose members are written in memories that no engine shares cannot
 * be filled in one of them. */
static uint32_t torn(const Work *w) {
    for (uint32_t u = 0; u < w->unit.n; u++) {
        const Unit *unit = &w->unit.at[u];
        if (!unit->dead && unit->concat && unit->n_segments > 1 &&
            unit->touch[unit->segment[0].last].step < unit->complete)
            return u;
    }
    return NONE;
}

static uint32_t oversized(const Work *w, const Problem *p) {
    for (uint32_t i = 0; i < p->owner.n; i++)
        if (p->owner.at[i].least == UINT64_MAX &&
            !w->given_up[p->buf.at[i].first / 2])
            return i;
    return NONE;
}

/* The fullest time of those that hold too much; NONE if all fit. */
static uint32_t overloaded(const Work *w, const Problem *p) {
    uint32_t worst = NONE;
    for (uint32_t t = 0; t < p->n_times; t++)
        if (p->live[t] > w->total && !w->given_up[t / 2] &&
            (worst == NONE || p->live[t] > p->live[worst]))
            worst = t;
    return worst;
}

/* The same to the byte. Where memory ends inside a unit of its alignment, only
 * what lies on top reaches into that, by what it was rounded up. */
static uint32_t crowded(const Work *w, const Problem *p) {
    uint64_t size = p->p.pool[0].size;
    uint32_t worst = NONE;
    if (p->p.n_pools > 1 || w->total == size)
        return NONE;
    uint64_t *padding = ARENA_ARRAY(w->arena, uint64_t, p->n_times + 1);
    for (uint32_t i = 0; i < p->buf.n; i++) {
        const Buf *buf = &p->buf.at[i];
        uint64_t pad = p->owner.at[i].least - buf->bytes[0];
        for (uint32_t t = buf->first; t < buf->end; t++)
            padding[t] = pad > padding[t] ? pad : padding[t];
    }
    for (uint32_t t = 0; t < p->n_times; t++)
        if (p->live[t] > size + padding[t] && !w->given_up[t / 2] &&
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
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x->time < y->time ? -1 : 1;
}

static void times_mark(uint8_t *mark, uint32_t first, uint32_t end) {
    for (uint32_t t = first; t < end; t++)
        mark[t] = 1;
}

/* By time: make_room is of no use where this is 0. */
static uint8_t *room_by_time(const Work *w, const Problem *p) {
    uint8_t *room = ARENA_ARRAY(w->arena, uint8_t, p->n_times + 1);
    Away away;
    for (uint32_t u = 0; u < w->unit.n; u++) {
        const Unit *unit = &w->unit.at[u];
        for (uint32_t k = 0; k < unit->n_segments && !unit->dead; k++) {
            const Segment *s = &unit->segment[k];
            const Touch *first = &unit->touch[s->first];
            uint32_t end = unit->touch[s->last].step;
            for (uint32_t i = s->first; i < s->last; i++)
                if (gap_may_leave(unit, i) && away_find(w, unit, i, &away))
                    times_mark(room, 2 * unit->touch[i].step + 2, away.end);
            end = end < unit->complete ? end : unit->complete;
            if (unit->concat)
                times_mark(room, 2 * first->step, 2 * end + 2);
        }
    }
    return room;
}

/* The planner found no place for the buffer (or proved that none exists, and
 * names none): make room while it lives, at its fullest time first. */
static bool relieve_buffer(Work *w, const Problem *p, uint32_t buf) {
    bool one = buf < p->buf.n;
    uint32_t first = one ? p->buf.at[buf].first : 0;
    uint32_t end = one ? p->buf.at[buf].end : p->n_times;
    const uint8_t *room = room_by_time(w, p);
    Load *load = ARENA_ARRAY(w->arena, Load, end - first + 1);
    for (uint32_t t = first; t < end; t++)
        load[t - first] = (Load){p->live[t], t};
    if (end > first) {
        qsort(load, end - first, sizeof *load, fullest_first);
        w->stuck = load[0].time / 2;
    }
    for (uint32_t i = 0; i < end - first; i++)
        if ((room[load[i].time] && make_room(w, load[i].time)) ||
            run_smaller(w, p, load[i].time))
            return true;
    return false;
}

static bool place(Work *w, const Problem *p, PlanResult *result,
                  const char **planner) {
    Times blocked;
    memset(result, 0, sizeof *result);
    for (uint32_t i = 0; i < p->buf.n; i++)
        if (p->tied.at[i] != i) {
            *planner = "gaps";
            result->failed = PLAN_NO_BUF;
            return place_tied(w, p, result, &blocked);
        }
    placed_once(w->once->recall, w->arena, &p->p, w->options->planner, false,
                result, planner);
    return result->status == PLAN_FITS;
}

/* Evicts at the fullest time until nothing holds too much, or nothing there can
 * leave. Of the problem only `live` is kept; whether anything left. */
static bool evict_on(Work *w, Problem *p, uint32_t time) {
    bool any = false;
    for (uint32_t unit; time != NONE && (unit = evict_at(w, time)) != NONE;
         time = overloaded(w, p)) {
        any = true;
        w->stuck = time / 2;
        if (!live_follow(w, p, unit))
            break;
    }
    return any;
}

static uint32_t first_given_up(const Work *w) {
    for (uint32_t s = 0; s < w->schedule->n_steps; s++)
        if (w->given_up[s])
            return s;
    return NONE;
}

/* One round: true if something changed, or all has its place (*placed). */
static bool improve(Work *w, Problem *p, PlanResult *result,
                    const char **planner, bool *placed) {
    problem_make(w, p);
    result->pool = NULL;
    uint32_t unit = torn(w);
    if (unit != NONE) {
        w->stuck = w->unit.at[unit].complete;
        return dissolve(w, unit);
    }
    uint32_t buf = oversized(w, p), time = overloaded(w, p);
    if (buf != NONE)
        return relieve_oversized(w, p, buf);
    time = time == NONE ? crowded(w, p) : time;
    if (time != NONE) {
        w->stuck = time / 2;
        return fill_at(w, time) || evict_on(w, p, time) || relieve(w, p, time);
    }
    uint32_t step = first_given_up(w);
    if (step != NONE) {
        w->stuck = step;
        return false;
    }
    w->gave_up = w->too_long(w, p);
    *placed = w->gave_up || place(w, p, result, planner);
    return *placed || relieve_buffer(w, p, result->failed);
}

static bool solve(Work *w, Problem *p, PlanResult *result,
                  const char **planner) {
    bool placed = false;
    while (!placed) {
        w->hopeless = streams_cost(w) > w->most;
        if (w->hopeless || budget_spent(w->options->budget) ||
            !improve(w, p, result, planner, &placed))
            return false;
    }
    return true;
}

/* The same when all stand alone: to explain, goes on behind a step that cannot
 * run, so that all such steps are known. */
static bool solve_each(Work *w, Problem *p, PlanResult *result,
                       const char **planner) {
    bool all = true;
    while (!solve(w, p, result, planner)) {
        all = false;
        if (!w->explains || result->pool || w->given_up[w->stuck])
            break;
        w->given_up[w->stuck] = 1;
    }
    return all;
}

/* ---- keeping again ---- */

typedef struct Evicted {
    uint32_t unit, touch;
    uint64_t bytes;
} Evicted;

static int by_bytes(const void *a, const void *b) {
    const Evicted *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    if (x->unit != y->unit)
        return x->unit < y->unit ? -1 : 1;
    return (x->touch > y->touch) - (x->touch < y->touch);
}

static uint32_t evicted_list(const Work *w, Evicted **out) {
    VEC(Evicted) list = {0};
    for (uint32_t u = 0; u < w->unit.n; u++) {
        const Unit *unit = &w->unit.at[u];
        for (uint32_t i = 0; i < unit->n_touches && !unit->dead; i++)
            if (unit->touch[i].leaves && unit->touch[i].whole)
                vec_push(
                    w->arena, &list,
                    ((Evicted){u, i, least_bytes(w, unit->bytes, UINT32_MAX)}));
    }
    if (list.n)
        qsort(list.at, list.n, sizeof *list.at, by_bytes);
    *out = list.at;
    return list.n;
}

bool place_again(Work *w, Problem *p, PlanResult *result, const char **planner,
                 uint32_t *tries) {
    PlanResult again;
    const char *used;
    problem_make(w, p);
    if (overloaded(w, p) != NONE || oversized(w, p) != NONE)
        return false;
    ++*tries;
    if (!place(w, p, &again, &used))
        return false;
    *result = again;
    *planner = used;
    return true;
}

/* Lets the gap leave, or not, in `live`, too; false if that could not follow.
 */
static bool gap_set(Work *w, Problem *p, const Evicted *gap, bool leaves) {
    bool known = live_unit(w, p, gap->unit, false);
    w->unit.at[gap->unit].touch[gap->touch].leaves = leaves;
    return known && live_unit(w, p, gap->unit, true);
}

/* Later evictions may have made earlier ones needless. */
static void keep_again(Work *w, Problem *p, PlanResult *result,
                       const char **planner) {
    enum { MAX_TRIES = 24 };
    Evicted *list;
    uint32_t n = evicted_list(w, &list), tries = 0;
    bool known = true; /* `live` */
    for (uint32_t i = 0; i < n && tries < MAX_TRIES; i++) {
        known = gap_set(w, p, &list[i], false) && known;
        bool fits = !known || overloaded(w, p) == NONE;
        if (fits) {
            fits = place_again(w, p, result, planner, &tries);
            known = true;
        }
        if (!fits)
            known = gap_set(w, p, &list[i], true) && known;
    }
    problem_make(w, p);
}

/* ---- the two ways ---- */

bool fit_one_level(Work *w, Problem *p, PlanResult *result,
                   const char **planner) {
    problem_make(w, p);
    uint32_t buf = oversized(w, p), time = overloaded(w, p);
    if (w->split == NONE && buf == NONE && place(w, p, result, planner))
        return true;
    w->stuck = w->split != NONE            ? w->split
               : time != NONE              ? time / 2
               : buf != NONE               ? p->buf.at[buf].first / 2
               : result->failed < p->buf.n ? p->buf.at[result->failed].first / 2
                                           : 0;
    return false;
}

bool modes_settle(Work *w) {
    for (NodeId id = {0}; id.i < w->g->node.n; id.i++)
        if (w->mode[id.i].kind == MODE_HARDWARE &&
            !operands_freed(w, id, &w->mode[id.i]))
            return false;
    return true;
}

void start_again(Work *w) {
    for (TensorId t = {0}; t.i < w->g->tensor.n; t.i++)
        w->role[t.i].dissolved = false;
    memset(w->mode, 0, w->g->node.n * sizeof *w->mode);
    ahead_choose(w);
    modes_start(w);
    w->unit.n = 0;
    units_make(w);
    touches_make(w);
    w->settled = modes_settle(w);
}

static void everything_leaves(Work *w) {
    for (uint32_t u = 0; u < w->unit.n; u++)
        if (!w->unit.at[u].dead && w->unit.at[u].concat)
            dissolve(w, u);
    for (uint32_t u = 0; u < w->unit.n; u++) {
        Unit *unit = &w->unit.at[u];
        for (uint32_t i = 0; i + 1 < unit->n_touches; i++)
            unit->touch[i].leaves |= gap_may_leave(unit, i);
    }
}

bool fit_around(Work *w, Problem *p, PlanResult *result, const char **planner) {
    double most = w->most - streams_cost(w);
    w->by_parts = !w->wholes_first && fit_gaps(w, most, p, result, planner);
    if (w->by_parts)
        return true;
    if (!solve(w, p, result, planner) || w->gave_up)
        return false;
    keep_again(w, p, result, planner);
    double own = gaps_cost(w);
    most = w->most - streams_cost(w);
    w->hopeless = !fit_gaps(w, own < most ? own : most, p, result, planner) &&
                  own >= most;
    return !w->hopeless;
}

bool fit_two_levels(Work *w, Problem *p, PlanResult *result,
                    const char **planner) {
    if (w->spec->backing < 0)
        return false;
    if (fit_around(w, p, result, planner))
        return true;
    if (w->hopeless || w->gave_up)
        return false;
    start_again(w);
    everything_leaves(w);
    if (!solve_each(w, p, result, planner) || w->gave_up)
        return false; /* else most of it left for a few */
    keep_again(w, p, result, planner);
    fit_gaps(w, gaps_cost(w), p, result, planner);
    return true;
}
