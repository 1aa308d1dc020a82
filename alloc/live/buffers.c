/* buffers.c - decisions -> buffers with live ranges.
 *
 * Input: alias classes with their uses, modes of nodes. Output: residency
 * intervals over which an alias class stays, buffers with lifetimes and bytes
 * by pool, each with its owner, and the live bytes by time. Invariant: the
 * problem is a function of facts and decisions; nothing of an earlier problem
 * is left in it.
 */
#include "alloc/live/buffers.h"

#include "alloc/alias/alias.h"
#include "alloc/geometry/onchip_copy.h"
#include "alloc/geometry/tensor_bytes.h"

#include <string.h>

/* ---- residency intervals ---- */

/* The next touch that is one; n_uses if there is none. */
static uint32_t use_next(const AliasClass *alias, uint32_t i) {
    do
        i++;
    while (i < alias->n_uses && !alias->use[i].whole && !alias->use[i].stream);
    return i;
}

/* Whether the plan wants the alias class out between uses i and j. */
static bool leaves(const AliasClass *alias, uint32_t i, uint32_t j) {
    const Use *next = &alias->use[j];
    if (!next->by_rows && (!next->whole || next->stream))
        return true;
    for (; i < j; i++)
        if (alias->use[i].spilled)
            return true;
    return false;
}

static void residencies_make(const Decisions *d, Buffers *p, uint32_t index) {
    const AliasClass *alias = &d->alias.at[index];
    p->stays[index].n = 0;
    uint32_t n = alias->n_uses;
    for (uint32_t i = 0, j; i < n; i = j) {
        j = use_next(alias, i);
        if (!alias->use[i].whole)
            continue;
        Residency s = {.first = i, .memories = alias->use[i].memories};
        while (j < n && !leaves(alias, i, j) &&
               (s.memories & alias->use[j].memories)) {
            s.memories &= alias->use[j].memories;
            i = j;
            j = use_next(alias, i);
        }
        s.last = i;
        if (j < n && !leaves(alias, i, j))
            p->split = alias->use[j].step;
        vec_push(d->f->arena, &p->stays[index], s);
    }
}

/* ---- problem ---- */

/* There are many, and they are made often: each is written where it stays. */
Buffer *buffer_new(const Facts *f, Buffers *p, const Owner *owner) {
    p->buf.at =
        vec_room(f->arena, p->buf.at, p->buf.n, &p->buf.cap, sizeof *p->buf.at);
    vec_push(f->arena, &p->owner, *owner);
    vec_push(f->arena, &p->tied, p->buf.n);
    Buffer *buf = &p->buf.at[p->buf.n++];
    *buf = (Buffer){.pin_pool = -1, .hint = PACK_NO_HINT};
    return buf;
}

uint32_t buffer_add(const Facts *f, Buffers *p, Times alive,
                    const uint64_t bytes[PACK_MAX_POOLS], uint32_t memories,
                    Owner owner) {
    owner.least = least_bytes(f, bytes, memories);
    Buffer *buf = buffer_new(f, p, &owner);
    buf->first = alive.first;
    buf->end = alive.end;
    for (uint32_t m = 0; m < f->spec->n_active; m++)
        if (memories >> m & 1)
            buf->bytes[m] = bytes[m];
    return p->buf.n - 1;
}

static const Cascade *cascade_at(const Decisions *d, uint32_t step) {
    return cascade_of(d, d->f->schedule->step[step].slot[0].node);
}

/* The cascade with rings that the step is part of, or NULL. All that it uses
 * is alive as long as it runs. */
static const Cascade *rolling_at(const Decisions *d, uint32_t step) {
    const Cascade *g = cascade_at(d, step);
    return g && g->rolls ? g : NULL;
}

static uint32_t time_first(const Decisions *d, uint32_t step) {
    const Cascade *g = rolling_at(d, step);
    return 2 * (g ? g->first : step);
}

static uint32_t time_end(const Decisions *d, uint32_t step) {
    const Cascade *g = rolling_at(d, step);
    return 2 * (g ? g->end : step + 1);
}

/* What lands is there when the step has run. */
static uint32_t use_first(const Decisions *d, const Use *use) {
    return use->lands ? 2 * use->step + 1 : time_first(d, use->step);
}

/* What a cascade copies rows of it needs for all of its stripes. */
static uint32_t use_end(const Decisions *d, const Use *use) {
    const Cascade *g = cascade_at(d, use->step);
    return use->by_rows && g ? 2 * g->end : time_end(d, use->step);
}

bool away_find(const Decisions *d, const AliasClass *alias, uint32_t use,
               Away *away) {
    uint32_t j = use + 1;
    *away = (Away){.end = use_end(d, &alias->use[use])};
    for (; j < alias->n_uses && alias->use[j].by_rows; j++) {
        away->n_by_rows++;
        away->end = use_end(d, &alias->use[j]);
    }
    away->next = alias->n_uses;
    if (j < alias->n_uses && alias->use[j].whole && !alias->use[j].stream) {
        away->next = j;
        away->end = use_first(d, &alias->use[j]);
    }
    return alias->use[use].whole &&
           (away->n_by_rows || away->next < alias->n_uses);
}

/* What stays between a residency interval and the next, or the last rows that
 * are read of it: at the same place as both. */
static void kept_buf(const Decisions *d, Buffers *p, uint32_t index,
                     const Residency *s) {
    const Facts *f = d->f;
    const AliasClass *alias = &d->alias.at[index];
    const Use *last = &alias->use[s->last];
    Away away;
    if (!last->retained || !away_find(d, alias, s->last, &away))
        return;
    uint64_t bytes[PACK_MAX_POOLS] = {kept_bytes(f, alias, last->retained)};
    uint32_t kept = buffer_add(
        f, p, (Times){2 * last->step + 2, away.end}, bytes, s->memories,
        (Owner){.kind = OWNER_KEPT,
                .alias = index,
                .node = NO_NODE,
                .tensor = alias->root,
                .rows = plan_volume(f->g, alias->root).h});
    p->tied.at[kept] = p->tied.at[s->buf];
    if (away.next == alias->n_uses)
        return;
    for (uint32_t i = s[1].buf; i < p->buf.n && p->tied.at[i] == s[1].buf; i++)
        p->tied.at[i] = p->tied.at[s->buf];
}

/* A state; what the next image's may come to while anything of this one is at
 * work. */
static bool always_alive(const Facts *f, const AliasClass *alias) {
    bool any = false, always = alias->kept;
    for (uint32_t e = 0; e < f->spec->n_engines; e++)
        any |= f->spec->engine[e].ahead;
    for (uint32_t i = 0; i < alias->n_tensors && any; i++)
        always |= made_ahead(f, alias->tensor[i]);
    return always;
}

static Times residency_times(const Decisions *d, const Buffers *p,
                             const AliasClass *alias, const Residency *s) {
    if (always_alive(d->f, alias))
        return (Times){0, p->n_times};
    return (Times){use_first(d, &alias->use[s->first]),
                   use_end(d, &alias->use[s->last])};
}

/* Channels up to the last that is there when the step has run. */
static uint32_t filled_at(const Facts *f, const AliasClass *alias,
                          uint32_t step) {
    uint32_t end = 0;
    if (!alias->as_filled || step >= alias->complete)
        return plan_volume(f->g, alias->root).c;
    for (uint32_t i = 1; i < alias->n_tensors; i++) {
        TensorId t = alias->tensor[i];
        uint32_t made = f->role[t.i].made;
        uint32_t stop = channel_in_alias(f, alias, t) + plan_volume(f->g, t).c;
        if ((made == NONE || made <= step) && stop > end)
            end = stop;
    }
    return end;
}

/* Whether none of its uses lasts into the next one. */
static bool touched_in_turn(const Facts *f, const AliasClass *alias) {
    bool in_turn = alias->concat && !f->spec->tiling.rows.rolls;
    for (uint32_t i = 0; i < alias->n_uses && in_turn; i++)
        in_turn = !alias->use[i].by_rows;
    return in_turn;
}

bool waits_for_part(const Decisions *d, const Buffers *p, uint32_t index,
                    uint32_t time) {
    const AliasClass *alias = &d->alias.at[index];
    const Residencies *stays = residencies_of(p, index);
    if (alias->dead || alias->as_needed || !touched_in_turn(d->f, alias))
        return false;
    for (uint32_t k = 0; k < stays->n; k++)
        for (uint32_t i = stays->at[k].first; i < stays->at[k].last; i++)
            if (alias->use[i].step >= alias->complete &&
                use_end(d, &alias->use[i]) <= time &&
                time < use_first(d, &alias->use[i + 1]))
                return alias->use[i].behind <
                       plan_volume(d->f->g, alias->root).c;
    return false;
}

/* Of these, up to the last that is touched then, or later. */
static uint32_t wanted_at(const Facts *f, const AliasClass *alias,
                          uint32_t use) {
    uint32_t there = filled_at(f, alias, alias->use[use].step);
    if (!use || !alias->as_needed || !touched_in_turn(f, alias))
        return there;
    uint32_t wanted = alias->use[use - 1].behind;
    return wanted < there ? wanted : there;
}

uint32_t wanted_behind(const Facts *f, const AliasClass *alias, uint32_t use) {
    uint32_t there = filled_at(f, alias, alias->use[use].step);
    if (!alias->as_needed || !touched_in_turn(f, alias))
        return there;
    uint32_t wanted = alias->use[use].behind;
    return wanted < there ? wanted : there;
}

bool waits_empty(const Decisions *d, const Buffers *p, uint32_t index,
                 uint32_t time) {
    const AliasClass *alias = &d->alias.at[index];
    const Residencies *stays = residencies_of(p, index);
    if (alias->dead || !alias->concat || alias->as_filled)
        return false;
    for (uint32_t k = 0; k < stays->n; k++)
        if (2 * alias->use[stays->at[k].first].step <= time &&
            time <= 2 * alias->use[stays->at[k].last].step &&
            time < 2 * alias->complete)
            return true;
    return false;
}

/* Bytes of a residency interval that has so many channels, and what copies of
 * its rows reach over its end. */
static void residency_bytes(const Facts *f, const AliasClass *alias,
                            bool copied, uint32_t channels,
                            uint64_t bytes[PACK_MAX_POOLS]) {
    Volume whole = volume_in(f, alias->root, 0);
    memcpy(bytes, alias->bytes, sizeof alias->bytes);
    if (channels < whole.c)
        bytes[0] = kept_bytes(f, alias, channels);
    if (copied && bytes[0])
        bytes[0] += copy_offset(f->spec, &whole, whole.h - 1);
}

/* Times at which a residency interval has as many channels. */
typedef struct Span {
    uint32_t first, end, channels;
} Span;
typedef VEC(Span) Spans;

static void span_add(const Facts *f, Spans *all, Span s) {
    Span *last = all->n ? &all->at[all->n - 1] : NULL;
    if (s.first >= s.end)
        return;
    if (last && last->channels == s.channels)
        last->end = s.end;
    else
        vec_push(f->arena, all, s);
}

/* While each of its uses runs, and from there to the next one. What returns
 * of a concat for some members alone has the place of all. */
static void residency_spans(const Decisions *d, const AliasClass *alias,
                            const Residency *s, Times times, Spans *all) {
    const Facts *f = d->f;
    uint32_t whole = plan_volume(f->g, alias->root).c, first = times.first;
    bool returns = alias->use[s->first].step >= alias->complete &&
                   wanted_at(f, alias, s->first) < whole;
    if ((!alias->as_filled && !alias->as_needed) || returns) {
        span_add(f, all, (Span){first, times.end, whole});
        return;
    }
    for (uint32_t i = s->first; i <= s->last; i++) {
        bool last = i == s->last;
        uint32_t next = last ? times.end : use_first(d, &alias->use[i + 1]);
        uint32_t end = last ? next : use_end(d, &alias->use[i]);
        end = end < next ? end : next;
        span_add(f, all, (Span){first, end, wanted_at(f, alias, i)});
        span_add(f, all, (Span){end, next, wanted_behind(f, alias, i)});
        first = next;
    }
}

/* Uses up to the last that reads rows of what stays. */
static uint32_t uses_by_rows(const AliasClass *alias) {
    uint32_t n = alias->n_uses;
    while (n > 0 && !alias->use[n - 1].by_rows)
        n--;
    return n;
}

/* `copied`: rows of it are. One buffer, or one for each time that more of a
 * concat is there, or less. */
static void residency_bufs(const Decisions *d, Buffers *p, uint32_t index,
                           Residency *s, bool copied, Spans *all) {
    const Facts *f = d->f;
    const AliasClass *alias = &d->alias.at[index];
    uint64_t bytes[PACK_MAX_POOLS];
    all->n = 0;
    residency_spans(d, alias, s, residency_times(d, p, alias, s), all);
    s->buf = p->buf.n;
    for (uint32_t i = 0; i < all->n; i++) {
        const Span *own = &all->at[i];
        residency_bytes(f, alias, copied, own->channels, bytes);
        uint32_t buf =
            buffer_add(f, p, (Times){own->first, own->end}, bytes, s->memories,
                       (Owner){.kind = OWNER_RESIDENT,
                               .alias = index,
                               .node = NO_NODE,
                               .tensor = alias->root,
                               .rows = plan_volume(f->g, alias->root).h});
        p->tied.at[buf] = s->buf;
    }
}

static void alias_bufs(const Decisions *d, Buffers *p, uint32_t index,
                       Residencies *stays, Spans *room) {
    const AliasClass *alias = &d->alias.at[index];
    uint32_t copied = uses_by_rows(alias);
    for (uint32_t i = 0; i < stays->n; i++) {
        Residency *s = &stays->at[i];
        residency_bufs(d, p, index, s, s->first < copied, room);
    }
    for (uint32_t i = 0; i < stays->n; i++)
        kept_buf(d, p, index, &stays->at[i]);
}

/* ---- live bytes ---- */

void live_make(Buffers *p) {
    memset(p->live, 0, p->n_times * sizeof *p->live);
    for (uint32_t i = 0; i < p->buf.n; i++)
        for (uint32_t t = p->buf.at[i].first; t < p->buf.at[i].end; t++)
            p->live[t] = add_capped(p->live[t], p->owner.at[i].least);
}

/* Adds bytes of the alias class's residency intervals, or takes them away;
 * false if no memory holds one of them: no sums then know how much they hold
 * besides. */
static bool alias_live(const Decisions *d, Buffers *p, uint32_t index,
                       bool add) {
    const AliasClass *alias = &d->alias.at[index];
    const Residencies *stays = &p->stays[index];
    for (uint32_t i = 0; i < stays->n; i++) {
        const Residency *s = &stays->at[i];
        uint64_t bytes = least_bytes(d->f, alias->bytes, s->memories);
        Times times = residency_times(d, p, alias, s);
        if (bytes == UINT64_MAX)
            return false;
        for (uint32_t t = times.first; t < times.end; t++)
            if (p->live[t] != UINT64_MAX)
                p->live[t] = add ? p->live[t] + bytes : p->live[t] - bytes;
    }
    return true;
}

bool live_follow(const Decisions *d, Buffers *p, uint32_t index) {
    bool known = !config_low(d->config) && alias_live(d, p, index, false);
    residencies_make(d, p, index);
    return known && alias_live(d, p, index, true);
}

bool live_alias(const Decisions *d, Buffers *p, uint32_t index, bool add) {
    if (!p->one)
        p->one = ARENA_NEW(d->f->arena, Buffers);
    Buffers *own = p->one;
    Spans room = {0};
    own->n_times = p->n_times;
    own->buf.n = own->owner.n = own->tied.n = 0;
    residencies_make(d, p, index);
    alias_bufs(d, own, index, &p->stays[index], &room);
    for (uint32_t i = 0; i < own->buf.n; i++) {
        uint64_t bytes = own->owner.at[i].least;
        if (bytes == UINT64_MAX)
            return false;
        for (uint32_t t = own->buf.at[i].first; t < own->buf.at[i].end; t++)
            p->live[t] = add ? p->live[t] + bytes : p->live[t] - bytes;
    }
    return true;
}

/* Empties it; arrays stay as long as they are long enough. */
static void buffers_clear(const Decisions *d, Buffers *p) {
    const Facts *f = d->f;
    p->buf.n = p->owner.n = p->tied.n = p->bounce.n = p->relation.n = 0;
    p->split = NONE;
    p->n_times = 2 * f->schedule->n_steps;
    if (!p->live) {
        p->live = ARENA_ARRAY(f->arena, uint64_t, p->n_times);
        p->first_buf = ARENA_ARRAY(f->arena, uint32_t, f->g->node.n + 1);
        p->second_set = ARENA_ARRAY(f->arena, uint32_t, f->g->node.n + 1);
    }
    for (uint32_t i = 0; i < p->n_aliases; i++)
        p->stays[i].n = 0;
    if (p->n_aliases >= d->alias.n)
        return;
    Residencies *stays = ARENA_ARRAY(f->arena, Residencies, 2 * d->alias.n);
    for (uint32_t i = 0; i < p->n_aliases; i++)
        stays[i] = p->stays[i];
    p->stays = stays;
    p->n_aliases = 2 * d->alias.n;
}

void buffers_make(const Decisions *d, Buffers *p) {
    const Facts *f = d->f;
    Spans room = {0};
    buffers_clear(d, p);
    for (uint32_t i = 0; i < d->alias.n; i++) {
        if (d->alias.at[i].dead)
            continue;
        residencies_make(d, p, i);
        alias_bufs(d, p, i, &p->stays[i], &room);
    }
    for (uint32_t s = 0; s < f->schedule->n_steps; s++)
        for (uint32_t i = 0; i < f->schedule->step[s].n; i++)
            node_bufs(d, p, f->schedule->step[s].slot[i].node);
    live_make(p);
    p->p = (PackProblem){.n_pools = f->spec->n_active, .n_bufs = p->buf.n};
    for (uint32_t m = 0; m < f->spec->n_active; m++)
        p->p.pool[m] = pool_of(&f->spec->memory[m]);
    p->p.buf = p->buf.at;
    budget_take(f->options->budget, p->buf.n + 1);
}
