/* buffers.c - decisions -> buffers with live ranges.
 *
 * Input: units with their touches, modes of nodes. Output: segments over which
 * a unit stays, buffers with lifetimes and bytes by pool, each with its owner,
 * and the live bytes by time.
 * Invariant: the problem is a function of facts and decisions; nothing of an
 * earlier problem is left in it.
 */
#include "alloc/live/buffers.h"

#include "alloc/alias/alias.h"
#include "alloc/geometry/onchip_copy.h"
#include "alloc/geometry/tensor_bytes.h"

#include <string.h>

/* ---- segments ---- */

/* The next touch that is one; n_touches if there is none. */
static uint32_t touch_next(const Unit *unit, uint32_t i) {
    do
        i++;
    while (i < unit->n_touches && !unit->touch[i].whole &&
           !unit->touch[i].stream);
    return i;
}

/* Whether the plan wants the unit out between touches i and j. */
static bool leaves(const Unit *unit, uint32_t i, uint32_t j) {
    const Touch *next = &unit->touch[j];
    if (!next->by_rows && (!next->whole || next->stream))
        return true;
    for (; i < j; i++)
        if (unit->touch[i].leaves)
            return true;
    return false;
}

static void segments_make(const Decisions *d, Problem *p, uint32_t index) {
    const Unit *unit = &d->unit.at[index];
    p->stays[index].n = 0;
    uint32_t n = unit->n_touches;
    for (uint32_t i = 0, j; i < n; i = j) {
        j = touch_next(unit, i);
        if (!unit->touch[i].whole)
            continue;
        Segment s = {.first = i, .memories = unit->touch[i].memories};
        while (j < n && !leaves(unit, i, j) &&
               (s.memories & unit->touch[j].memories)) {
            s.memories &= unit->touch[j].memories;
            i = j;
            j = touch_next(unit, i);
        }
        s.last = i;
        if (j < n && !leaves(unit, i, j))
            p->split = unit->touch[j].step;
        vec_push(d->f->arena, &p->stays[index], s);
    }
}

/* ---- problem ---- */

/* There are many, and they are made often: each is written where it stays. */
Buf *buffer_new(const Facts *f, Problem *p, const Owner *owner) {
    p->buf.at =
        vec_room(f->arena, p->buf.at, p->buf.n, &p->buf.cap, sizeof *p->buf.at);
    vec_push(f->arena, &p->owner, *owner);
    vec_push(f->arena, &p->tied, p->buf.n);
    Buf *buf = &p->buf.at[p->buf.n++];
    *buf = (Buf){.pin_pool = -1, .hint = PLAN_NO_HINT};
    return buf;
}

uint32_t buffer_add(const Facts *f, Problem *p, uint32_t first, uint32_t end,
                    const uint64_t bytes[PLAN_MAX_POOLS], uint32_t memories,
                    Owner owner) {
    owner.least = least_bytes(f, bytes, memories);
    Buf *buf = buffer_new(f, p, &owner);
    buf->first = first;
    buf->end = end;
    for (uint32_t m = 0; m < f->spec->n_active; m++)
        if (memories >> m & 1)
            buf->bytes[m] = bytes[m];
    return p->buf.n - 1;
}

/* The group with rings that the step is part of, or NULL. All that it touches
 * is alive as long as it runs. */
static const Group *rolling_at(const Decisions *d, uint32_t step) {
    const Mode *mode = &d->mode[d->f->schedule->step[step].slot[0].node.i];
    if (mode->kind != MODE_GROUP || !d->group.at[mode->group].rolls)
        return NULL;
    return &d->group.at[mode->group];
}

static uint32_t time_first(const Decisions *d, uint32_t step) {
    const Group *g = rolling_at(d, step);
    return 2 * (g ? g->first : step);
}

static uint32_t time_end(const Decisions *d, uint32_t step) {
    const Group *g = rolling_at(d, step);
    return 2 * (g ? g->end : step + 1);
}

/* What lands is there when the step has run. */
static uint32_t touch_first(const Decisions *d, const Touch *touch) {
    return touch->lands ? 2 * touch->step + 1 : time_first(d, touch->step);
}

/* What a group copies rows of it needs for all of its stripes. */
static uint32_t touch_end(const Decisions *d, const Touch *touch) {
    const Mode *mode =
        &d->mode[d->f->schedule->step[touch->step].slot[0].node.i];
    if (touch->by_rows && mode->kind == MODE_GROUP)
        return 2 * d->group.at[mode->group].end;
    return time_end(d, touch->step);
}

bool away_find(const Decisions *d, const Unit *unit, uint32_t touch,
               Away *away) {
    uint32_t j = touch + 1;
    *away = (Away){.end = touch_end(d, &unit->touch[touch])};
    for (; j < unit->n_touches && unit->touch[j].by_rows; j++) {
        away->n_by_rows++;
        away->end = touch_end(d, &unit->touch[j]);
    }
    away->next = unit->n_touches;
    if (j < unit->n_touches && unit->touch[j].whole && !unit->touch[j].stream) {
        away->next = j;
        away->end = touch_first(d, &unit->touch[j]);
    }
    return unit->touch[touch].whole &&
           (away->n_by_rows || away->next < unit->n_touches);
}

/* What stays between a segment and the next, or the last rows that are read of
 * it: at the same place as both. */
static void kept_buf(const Decisions *d, Problem *p, uint32_t index,
                     const Segment *s) {
    const Facts *f = d->f;
    const Unit *unit = &d->unit.at[index];
    const Touch *last = &unit->touch[s->last];
    Away away;
    if (!last->keeps || !away_find(d, unit, s->last, &away))
        return;
    uint64_t bytes[PLAN_MAX_POOLS] = {kept_bytes(f, unit, last->keeps)};
    uint32_t kept =
        buffer_add(f, p, 2 * last->step + 2, away.end, bytes, s->memories,
                   (Owner){.kind = OWNER_KEPT,
                           .unit = index,
                           .node = NO_NODE,
                           .tensor = unit->root,
                           .rows = plan_volume(f->g, unit->root).h});
    p->tied.at[kept] = p->tied.at[s->buf];
    if (away.next == unit->n_touches)
        return;
    for (uint32_t i = s[1].buf; i < p->buf.n && p->tied.at[i] == s[1].buf; i++)
        p->tied.at[i] = p->tied.at[s->buf];
}

/* The next image's may come while anything of this one is at work. */
static bool always_alive(const Facts *f, const Unit *unit) {
    bool always = false;
    for (uint32_t i = 0; i < unit->n_tensors; i++)
        always |= made_ahead(f, unit->tensor[i]);
    return always;
}

static Times segment_times(const Decisions *d, const Problem *p,
                           const Unit *unit, const Segment *s) {
    if (always_alive(d->f, unit))
        return (Times){0, p->n_times};
    return (Times){touch_first(d, &unit->touch[s->first]),
                   touch_end(d, &unit->touch[s->last])};
}

/* Channels up to the last that is there when the step has run. */
static uint32_t filled_at(const Facts *f, const Unit *unit, uint32_t step) {
    uint32_t end = 0;
    if (!unit->as_filled || step >= unit->complete)
        return plan_volume(f->g, unit->root).c;
    for (uint32_t i = 1; i < unit->n_tensors; i++) {
        TensorId t = unit->tensor[i];
        uint32_t made = f->role[t.i].made;
        uint32_t stop = channel_in_unit(f, unit, t) + plan_volume(f->g, t).c;
        if ((made == NONE || made <= step) && stop > end)
            end = stop;
    }
    return end;
}

/* Whether none of its touches lasts into the next one. */
static bool touched_in_turn(const Facts *f, const Unit *unit) {
    bool in_turn = unit->concat && !f->spec->tiling.rows.rolls;
    for (uint32_t i = 0; i < unit->n_touches && in_turn; i++)
        in_turn = !unit->touch[i].by_rows;
    return in_turn;
}

bool waits_for_part(const Decisions *d, const Problem *p, uint32_t index,
                    uint32_t time) {
    const Unit *unit = &d->unit.at[index];
    const Segments *stays = segments_of(p, index);
    if (unit->dead || unit->as_needed || !touched_in_turn(d->f, unit))
        return false;
    for (uint32_t k = 0; k < stays->n; k++)
        for (uint32_t i = stays->at[k].first; i < stays->at[k].last; i++)
            if (unit->touch[i].step >= unit->complete &&
                touch_end(d, &unit->touch[i]) <= time &&
                time < touch_first(d, &unit->touch[i + 1]))
                return unit->touch[i].behind <
                       plan_volume(d->f->g, unit->root).c;
    return false;
}

/* Of these, up to the last that is touched then, or later. */
static uint32_t wanted_at(const Facts *f, const Unit *unit, uint32_t touch) {
    uint32_t there = filled_at(f, unit, unit->touch[touch].step);
    if (!touch || !unit->as_needed || !touched_in_turn(f, unit))
        return there;
    uint32_t wanted = unit->touch[touch - 1].behind;
    return wanted < there ? wanted : there;
}

uint32_t wanted_behind(const Facts *f, const Unit *unit, uint32_t touch) {
    uint32_t there = filled_at(f, unit, unit->touch[touch].step);
    if (!unit->as_needed || !touched_in_turn(f, unit))
        return there;
    uint32_t wanted = unit->touch[touch].behind;
    return wanted < there ? wanted : there;
}

bool waits_empty(const Decisions *d, const Problem *p, uint32_t index,
                 uint32_t time) {
    const Unit *unit = &d->unit.at[index];
    const Segments *stays = segments_of(p, index);
    if (unit->dead || !unit->concat || unit->as_filled)
        return false;
    for (uint32_t k = 0; k < stays->n; k++)
        if (2 * unit->touch[stays->at[k].first].step <= time &&
            time <= 2 * unit->touch[stays->at[k].last].step &&
            time < 2 * unit->complete)
            return true;
    return false;
}

/* Bytes of a segment that has so many channels, and what copies of its rows
 * reach over its end. */
static void segment_bytes(const Facts *f, const Unit *unit, const Segment *s,
                          uint32_t channels, uint64_t bytes[PLAN_MAX_POOLS]) {
    Volume whole = volume_in(f, unit->root, 0);
    memcpy(bytes, unit->bytes, sizeof unit->bytes);
    if (channels < whole.c)
        bytes[0] = kept_bytes(f, unit, channels);
    for (uint32_t i = s->first; i < unit->n_touches; i++)
        if (unit->touch[i].by_rows && bytes[0]) {
            bytes[0] += copy_offset(f->spec, &whole, whole.h - 1);
            return;
        }
}

/* Times at which a segment has as many channels. */
typedef struct Stretch {
    uint32_t first, end, channels;
} Stretch;
typedef VEC(Stretch) Stretches;

static void stretch_add(const Facts *f, Stretches *all, Stretch s) {
    Stretch *last = all->n ? &all->at[all->n - 1] : NULL;
    if (s.first >= s.end)
        return;
    if (last && last->channels == s.channels)
        last->end = s.end;
    else
        vec_push(f->arena, all, s);
}

/* While each of its touches runs, and from there to the next one. What returns
 * of a concat for some members alone has the place of all. */
static void segment_stretches(const Decisions *d, const Unit *unit,
                              const Segment *s, Times times, Stretches *all) {
    const Facts *f = d->f;
    uint32_t whole = plan_volume(f->g, unit->root).c, first = times.first;
    bool returns = unit->touch[s->first].step >= unit->complete &&
                   wanted_at(f, unit, s->first) < whole;
    if ((!unit->as_filled && !unit->as_needed) || returns) {
        stretch_add(f, all, (Stretch){first, times.end, whole});
        return;
    }
    for (uint32_t i = s->first; i <= s->last; i++) {
        bool last = i == s->last;
        uint32_t next = last ? times.end : touch_first(d, &unit->touch[i + 1]);
        uint32_t end = last ? next : touch_end(d, &unit->touch[i]);
        end = end < next ? end : next;
        stretch_add(f, all, (Stretch){first, end, wanted_at(f, unit, i)});
        stretch_add(f, all, (Stretch){end, next, wanted_behind(f, unit, i)});
        first = next;
    }
}

/* One buffer, or one for each time that more of a concat is there, or less. */
static void segment_bufs(const Decisions *d, Problem *p, uint32_t index,
                         Segment *s, Times times, Stretches *all) {
    const Facts *f = d->f;
    const Unit *unit = &d->unit.at[index];
    uint64_t bytes[PLAN_MAX_POOLS];
    all->n = 0;
    segment_stretches(d, unit, s, times, all);
    s->buf = p->buf.n;
    for (uint32_t i = 0; i < all->n; i++) {
        const Stretch *own = &all->at[i];
        segment_bytes(f, unit, s, own->channels, bytes);
        uint32_t buf =
            buffer_add(f, p, own->first, own->end, bytes, s->memories,
                       (Owner){.kind = OWNER_SEGMENT,
                               .unit = index,
                               .node = NO_NODE,
                               .tensor = unit->root,
                               .rows = plan_volume(f->g, unit->root).h});
        p->tied.at[buf] = s->buf;
    }
}

static void unit_bufs(const Decisions *d, Problem *p, uint32_t index,
                      Segments *stays, Stretches *room) {
    const Unit *unit = &d->unit.at[index];
    for (uint32_t i = 0; i < stays->n; i++) {
        Segment *s = &stays->at[i];
        Times times = segment_times(d, p, unit, s);
        segment_bufs(d, p, index, s, times, room);
    }
    for (uint32_t i = 0; i < stays->n; i++)
        kept_buf(d, p, index, &stays->at[i]);
}

/* ---- live bytes ---- */

void live_make(Problem *p) {
    memset(p->live, 0, p->n_times * sizeof *p->live);
    for (uint32_t i = 0; i < p->buf.n; i++)
        for (uint32_t t = p->buf.at[i].first; t < p->buf.at[i].end; t++)
            p->live[t] = add_capped(p->live[t], p->owner.at[i].least);
}

/* Adds bytes of the unit's segments, or takes them away; false if no memory
 * holds one of them: no sums then know how much they hold besides. */
static bool unit_live(const Decisions *d, Problem *p, uint32_t index,
                      bool add) {
    const Unit *unit = &d->unit.at[index];
    const Segments *stays = &p->stays[index];
    for (uint32_t i = 0; i < stays->n; i++) {
        const Segment *s = &stays->at[i];
        uint64_t bytes = least_bytes(d->f, unit->bytes, s->memories);
        Times times = segment_times(d, p, unit, s);
        if (bytes == UINT64_MAX)
            return false;
        for (uint32_t t = times.first; t < times.end; t++)
            if (p->live[t] != UINT64_MAX)
                p->live[t] = add ? p->live[t] + bytes : p->live[t] - bytes;
    }
    return true;
}

bool live_follow(const Decisions *d, Problem *p, uint32_t index) {
    bool known = !config_low(d->config) && unit_live(d, p, index, false);
    segments_make(d, p, index);
    return known && unit_live(d, p, index, true);
}

bool live_unit(const Decisions *d, Problem *p, uint32_t index, bool add) {
    Problem own = {.n_times = p->n_times};
    Stretches room = {0};
    segments_make(d, p, index);
    unit_bufs(d, &own, index, &p->stays[index], &room);
    for (uint32_t i = 0; i < own.buf.n; i++) {
        uint64_t bytes = own.owner.at[i].least;
        if (bytes == UINT64_MAX)
            return false;
        for (uint32_t t = own.buf.at[i].first; t < own.buf.at[i].end; t++)
            p->live[t] = add ? p->live[t] + bytes : p->live[t] - bytes;
    }
    return true;
}

/* Empties it; arrays stay as long as they are long enough. */
static void problem_clear(const Decisions *d, Problem *p) {
    const Facts *f = d->f;
    p->buf.n = p->owner.n = p->tied.n = p->relay.n = p->relation.n = 0;
    p->split = NONE;
    p->n_times = 2 * f->schedule->n_steps;
    if (!p->live) {
        p->live = ARENA_ARRAY(f->arena, uint64_t, p->n_times);
        p->first_buf = ARENA_ARRAY(f->arena, uint32_t, f->g->node.n + 1);
        p->twin = ARENA_ARRAY(f->arena, uint32_t, f->g->node.n + 1);
    }
    for (uint32_t i = 0; i < p->n_units; i++)
        p->stays[i].n = 0;
    if (p->n_units >= d->unit.n)
        return;
    Segments *stays = ARENA_ARRAY(f->arena, Segments, 2 * d->unit.n);
    for (uint32_t i = 0; i < p->n_units; i++)
        stays[i] = p->stays[i];
    p->stays = stays;
    p->n_units = 2 * d->unit.n;
}

void problem_make(const Decisions *d, Problem *p) {
    const Facts *f = d->f;
    Stretches room = {0};
    problem_clear(d, p);
    for (uint32_t i = 0; i < d->unit.n; i++) {
        if (d->unit.at[i].dead)
            continue;
        segments_make(d, p, i);
        unit_bufs(d, p, i, &p->stays[i], &room);
    }
    for (uint32_t s = 0; s < f->schedule->n_steps; s++)
        for (uint32_t i = 0; i < f->schedule->step[s].n; i++)
            node_bufs(d, p, f->schedule->step[s].slot[i].node);
    live_make(p);
    p->p = (PlanProblem){.n_pools = f->spec->n_active, .n_bufs = p->buf.n};
    for (uint32_t m = 0; m < f->spec->n_active; m++)
        p->p.pool[m] = pool_of(&f->spec->memory[m]);
    p->p.buf = p->buf.at;
    budget_take(f->options->budget, p->buf.n + 1);
}
