/* buffers.c - when volumes are alive: touches of units, segments between them,
 * and from these the problem that a planner solves.
 *
 * Input: units, modes of nodes. Output: buffers with lifetimes and bytes by
 * pool, each with its owner, and the live bytes by time.
 * Invariant: the problem is a function of units and modes; nothing of an
 * earlier problem is left in it.
 */
#include "alloc/work.h"
#include "base/arith.h"

#include <stdlib.h>
#include <string.h>

/* ---- touches ---- */

static bool dissolved(const Work *w, TensorId t) {
    return w->role[t.i].origin == FROM_PARTS && w->role[t.i].dissolved;
}

/* Made and read within one group, and there only: it never exists whole. */
static bool inner(const Work *w, NodeId node, TensorId t) {
    const Mode *mode = &w->mode[node.i];
    if (couple_passes(w, t))
        return true;
    if (mode->kind != MODE_GROUP)
        return false;
    const Group *g = &w->group.at[mode->group];
    NodeId maker = graph_tensor(w->g, t)->producer;
    if (g->stays)
        return group_maker(w, g, t) != NONE && !group_keeps(w, g, t);
    return group_maker(w, g, t) != NONE &&
           (maker.i != node.i || !group_stores(w, g, t));
}

/* Whether the node takes operand k by parts, or gives the result so, which is
 * behind the operands. */
static bool streams(const Work *w, NodeId node, uint32_t k) {
    const Mode *mode = &w->mode[node.i];
    const Node *n = graph_node(w->g, node);
    TensorId t = k < n->n_in ? n->in[k] : n->out[0];
    if (mode->kind == MODE_GROUP && w->group.at[mode->group].stays)
        return !group_keeps(w, &w->group.at[mode->group], t);
    return k < n->n_in ? mode_streams(mode, k) : mode->streams_out;
}

bool takes_rows(const Work *w, NodeId node, TensorId in) {
    const Mode *mode = &w->mode[node.i];
    bool stripes = mode->kind == MODE_GROUP && !w->group.at[mode->group].rolls;
    return w->low &&
           (stripes || (mode->kind == MODE_PLANKS && !mode->channels)) &&
           copy_legal(w, in).engine >= 0;
}

/* Behind all parts: the last node of a group writes its last ones then. */
bool result_lands(const Work *w, NodeId node) {
    const Mode *mode = &w->mode[node.i];
    TensorId out = graph_node(w->g, node)->out[0];
    const Role *role = &w->role[out.i];
    uint32_t step = w->schedule->step_of[node.i];
    bool last = mode->kind == MODE_PLANKS && mode->streams_out;
    if (!w->low || !on_engine(w, node) || role->parent.i == NONE)
        return false;
    for (uint32_t i = 0; i < graph_node(w->g, node)->n_in; i++)
        if (w->unit_of[graph_node(w->g, node)->in[i].i] == w->unit_of[out.i])
            return false;
    if (mode->kind == MODE_GROUP) {
        const Group *g = &w->group.at[mode->group];
        last = !g->rolls && step + 1 == g->end;
    }
    return last && !role->outside && !w->role[role->parent.i].dissolved;
}

static void touch_by(Work *w, Touch *touch, NodeId node, HwOperand operand,
                     bool streams, bool by_rows) {
    if (streams) {
        touch->by_rows = by_rows && (touch->by_rows || !touch->stream);
        touch->stream = true;
        return;
    }
    touch->whole = true;
    touch->memories &= reach(w, node, operand);
}

/* What a node of the touch's step, or its partner in a couple, makes of it. */
static void touch_by_node(Work *w, const Unit *u, Touch *touch, NodeId id) {
    uint32_t unit = w->unit_of[u->root.i];
    bool filling = u->concat && touch->step <= u->complete;
    const Node *node = graph_node(w->g, id);
    TensorId out = node->out[0];
    if (is_placed(w, id) && !dissolved(w, out) && !inner(w, id, out) &&
        w->unit_of[out.i] == unit)
        touch->whole = true;
    if (!on_engine(w, id))
        return;
    for (uint32_t k = 0; k < node->n_in; k++) {
        TensorId in = node->in[k];
        bool by_parts = streams(w, id, k);
        bool by_rows = by_parts && takes_rows(w, id, in);
        if (w->unit_of[in.i] == unit && !inner(w, id, in) &&
            !(filling && by_parts && !by_rows))
            touch_by(w, touch, id, hw_operand(k, node->n_in), by_parts,
                     by_rows);
    }
    if (w->unit_of[out.i] != unit || inner(w, id, out))
        return;
    bool lands = result_lands(w, id);
    touch->lands |= lands;
    touch_by(w, touch, id, HW_OUT, !lands && streams(w, id, node->n_in),
             false);
}

/* Fills the touch from the nodes of its step. What streams from a concat that
 * is still being filled is a member that lies outside anyway: that does not
 * touch the unit (unit_of has dissolved the others, see greedy.c). */
static void touch_fill(Work *w, const Unit *u, Touch *touch) {
    const Step *step = &w->schedule->step[touch->step];
    touch->whole = touch->stream = touch->by_rows = touch->lands = false;
    touch->memories = UINT32_MAX;
    for (uint32_t i = 0; i < step->n; i++) {
        NodeId other = couple_partner(w, step->slot[i].node);
        touch_by_node(w, u, touch, step->slot[i].node);
        if (other.i != NONE)
            touch_by_node(w, u, touch, other);
    }
    touch->by_rows &= !touch->whole;
}

static int by_step(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* What a node of a couple touches is there while either runs. */
static uint32_t node_steps(const Work *w, NodeId id, uint32_t *step) {
    NodeId other = couple_partner(w, id);
    step[0] = w->schedule->step_of[id.i];
    if (other.i != NONE)
        step[1] = w->schedule->step_of[other.i];
    return 1 + (other.i != NONE);
}

/* Steps at which engines touch the tensor; returns how many. */
static uint32_t tensor_steps(const Work *w, TensorId t, uint32_t *step) {
    const Role *role = &w->role[t.i];
    uint32_t n = 0;
    if (role->origin == FROM_ENGINE ||
        (role->origin == FROM_PARTS && !role->dissolved))
        n += node_steps(w, graph_tensor(w->g, t)->producer, step);
    for (uint32_t i = w->uses.start[t.i]; i < w->uses.start[t.i + 1]; i++)
        if (on_engine(w, w->uses.node[i]))
            n += node_steps(w, w->uses.node[i], step + n);
    return n;
}

/* Of the concat's tensor, up to its last channel, until it is touched last. */
static void touches_behind(const Work *w, Unit *unit, TensorId t, uint32_t n,
                           const uint32_t *step) {
    uint32_t last = 0;
    uint32_t end = channel_in_unit(w, unit, t) + plan_volume(w->g, t).c;
    for (uint32_t i = 0; i < n; i++)
        last = step[i] > last ? step[i] : last;
    for (uint32_t i = 0; i < unit->n_touches; i++)
        if (unit->touch[i].step < last && unit->touch[i].behind < end)
            unit->touch[i].behind = end;
}

static void unit_touch(Work *w, Unit *unit) {
    uint32_t n = 0, most = 0;
    for (uint32_t i = 0; i < unit->n_tensors; i++) {
        uint32_t t = unit->tensor[i].i;
        most += 2 * (1 + w->uses.start[t + 1] - w->uses.start[t]);
    }
    uint32_t *step = ARENA_ARRAY(w->arena, uint32_t, most);
    for (uint32_t i = 0; i < unit->n_tensors; i++)
        n += tensor_steps(w, unit->tensor[i], step + n);
    qsort(step, n, sizeof *step, by_step);
    unit->touch = ARENA_ARRAY(w->arena, Touch, n);
    unit->segment = ARENA_ARRAY(w->arena, Segment, n);
    for (uint32_t i = 0; i < n; i++)
        if (i == 0 || step[i] != step[i - 1])
            unit->touch[unit->n_touches++].step = step[i];
    for (uint32_t i = 0; i < unit->n_touches; i++)
        touch_fill(w, unit, &unit->touch[i]);
    for (uint32_t i = 0; i < unit->n_tensors && unit->concat; i++)
        touches_behind(w, unit, unit->tensor[i],
                       tensor_steps(w, unit->tensor[i], step), step);
}

void touches_make(Work *w) {
    for (uint32_t u = 0; u < w->unit.n; u++)
        if (!w->unit.at[u].touch)
            unit_touch(w, &w->unit.at[u]);
}

static void unit_refresh(Work *w, TensorId t, uint32_t step) {
    if (w->unit_of[t.i] == NONE)
        return;
    Unit *unit = &w->unit.at[w->unit_of[t.i]];
    for (uint32_t i = 0; i < unit->n_touches; i++)
        if (unit->touch[i].step == step)
            touch_fill(w, unit, &unit->touch[i]);
}

void touch_insert(Work *w, Unit *unit, uint32_t step) {
    uint32_t at = 0, n = unit->n_touches;
    while (at < n && unit->touch[at].step < step)
        at++;
    Touch *touch = ARENA_ARRAY(w->arena, Touch, n + 1);
    memcpy(touch, unit->touch, at * sizeof *touch);
    touch[at].step = step;
    touch[at].behind = at ? touch[at - 1].behind : UINT32_MAX;
    if (at)
        touch[at - 1].behind = at > 1 ? touch[at - 2].behind : UINT32_MAX;
    memcpy(touch + at + 1, unit->touch + at, (n - at) * sizeof *touch);
    unit->touch = touch;
    unit->n_touches = n + 1;
    unit->segment = ARENA_ARRAY(w->arena, Segment, n + 1);
    unit->n_segments = 0;
}

void touches_refill(Work *w, uint32_t step) {
    for (uint32_t u = 0; u < w->unit.n; u++) {
        Unit *unit = &w->unit.at[u];
        for (uint32_t i = 0; i < unit->n_touches; i++)
            if (unit->touch[i].step == step)
                touch_fill(w, unit, &unit->touch[i]);
    }
}

void touches_refresh(Work *w, uint32_t step) {
    const Step *s = &w->schedule->step[step];
    for (uint32_t i = 0; i < s->n; i++) {
        const Node *node = graph_node(w->g, s->slot[i].node);
        for (uint32_t k = 0; k < node->n_in; k++)
            unit_refresh(w, node->in[k], step);
        unit_refresh(w, node->out[0], step);
    }
}

void couple_part(Work *w, NodeId id) {
    NodeId other = couple_partner(w, id);
    if (other.i == NONE)
        return;
    w->mode[id.i] = w->mode[other.i] = (Mode){.style = -1};
    touches_refill(w, w->schedule->step_of[id.i]);
    touches_refill(w, w->schedule->step_of[other.i]);
}

/* ---- where values go ---- */

static const Group *group_of(const Work *w, NodeId node) {
    const Mode *mode = &w->mode[node.i];
    return mode->kind == MODE_GROUP ? &w->group.at[mode->group] : NULL;
}

Dests dests_of(const Work *w, TensorId t, bool streamed) {
    const Role *role = &w->role[t.i];
    bool in_dissolved =
        role->parent.i != NONE && w->role[role->parent.i].dissolved;
    const Group *g = group_of(w, graph_tensor(w->g, t)->producer);
    bool reread = streamed && !g && role->engine_reads;
    Dests d = {.home = g && !g->stays ? group_leaves(w, g, t)
                                      : in_dissolved || reread,
               .output = role->outside};
    if (streamed && !d.output)
        d.home = true;
    return d;
}

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

static void segments_make(Work *w, Unit *unit) {
    unit->n_segments = 0;
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
            w->split = unit->touch[j].step;
        unit->segment[unit->n_segments++] = s;
    }
}

/* ---- problem ---- */

/* There are many, and they are made often: each is written where it stays. */
static Buf *buf_new(Work *w, Problem *p, const Owner *owner) {
    p->buf.at =
        vec_room(w->arena, p->buf.at, p->buf.n, &p->buf.cap, sizeof *p->buf.at);
    vec_push(w->arena, &p->owner, *owner);
    vec_push(w->arena, &p->tied, p->buf.n);
    Buf *buf = &p->buf.at[p->buf.n++];
    *buf = (Buf){.pin_pool = -1, .hint = PLAN_NO_HINT};
    return buf;
}

/* A buffer that the planner may put anywhere in `memories`. */
static uint32_t free_buf(Work *w, Problem *p, uint32_t first, uint32_t end,
                         const uint64_t bytes[PLAN_MAX_POOLS],
                         uint32_t memories, Owner owner) {
    owner.least = least_bytes(w, bytes, memories);
    Buf *buf = buf_new(w, p, &owner);
    buf->first = first;
    buf->end = end;
    for (uint32_t m = 0; m < w->spec->n_active; m++)
        if (memories >> m & 1)
            buf->bytes[m] = bytes[m];
    return p->buf.n - 1;
}

/* The group with rings that the step is part of, or NULL. All that it touches
 * is alive as long as it runs. */
static const Group *rolling_at(const Work *w, uint32_t step) {
    const Mode *mode = &w->mode[w->schedule->step[step].slot[0].node.i];
    if (mode->kind != MODE_GROUP || !w->group.at[mode->group].rolls)
        return NULL;
    return &w->group.at[mode->group];
}

static uint32_t time_first(const Work *w, uint32_t step) {
    const Group *g = rolling_at(w, step);
    return 2 * (g ? g->first : step);
}

static uint32_t time_end(const Work *w, uint32_t step) {
    const Group *g = rolling_at(w, step);
    return 2 * (g ? g->end : step + 1);
}

/* What lands is there when the step has run. */
static uint32_t touch_first(const Work *w, const Touch *touch) {
    return touch->lands ? 2 * touch->step + 1 : time_first(w, touch->step);
}

/* What a group copies rows of it needs for all of its stripes. */
static uint32_t touch_end(const Work *w, const Touch *touch) {
    const Mode *mode = &w->mode[w->schedule->step[touch->step].slot[0].node.i];
    if (touch->by_rows && mode->kind == MODE_GROUP)
        return 2 * w->group.at[mode->group].end;
    return time_end(w, touch->step);
}

bool away_find(const Work *w, const Unit *unit, uint32_t touch, Away *away) {
    uint32_t j = touch + 1;
    *away = (Away){.end = touch_end(w, &unit->touch[touch])};
    for (; j < unit->n_touches && unit->touch[j].by_rows; j++) {
        away->n_by_rows++;
        away->end = touch_end(w, &unit->touch[j]);
    }
    away->next = unit->n_touches;
    if (j < unit->n_touches && unit->touch[j].whole && !unit->touch[j].stream) {
        away->next = j;
        away->end = touch_first(w, &unit->touch[j]);
    }
    return unit->touch[touch].whole &&
           (away->n_by_rows || away->next < unit->n_touches);
}

/* What stays between a segment and the next, or the last rows that are read of
 * it: at the same place as both. */
static void kept_buf(Work *w, Problem *p, uint32_t index, const Segment *s) {
    const Unit *unit = &w->unit.at[index];
    const Touch *last = &unit->touch[s->last];
    Away away;
    if (!last->keeps || !away_find(w, unit, s->last, &away))
        return;
    uint64_t bytes[PLAN_MAX_POOLS] = {kept_bytes(w, unit, last->keeps)};
    uint32_t kept =
        free_buf(w, p, 2 * last->step + 2, away.end, bytes, s->memories,
                 (Owner){.kind = OWNER_KEPT,
                         .unit = index,
                         .node = NO_NODE,
                         .tensor = unit->root,
                         .rows = plan_volume(w->g, unit->root).h});
    p->tied.at[kept] = p->tied.at[s->buf];
    if (away.next == unit->n_touches)
        return;
    for (uint32_t i = s[1].buf; i < p->buf.n && p->tied.at[i] == s[1].buf; i++)
        p->tied.at[i] = p->tied.at[s->buf];
}

/* The next image's may come while anything of this one is at work. */
static bool always_alive(const Work *w, const Unit *unit) {
    bool always = false;
    for (uint32_t i = 0; i < unit->n_tensors; i++)
        always |= made_ahead(w, unit->tensor[i]);
    return always;
}

static Times segment_times(const Work *w, const Problem *p, const Unit *unit,
                           const Segment *s) {
    if (always_alive(w, unit))
        return (Times){0, p->n_times};
    return (Times){touch_first(w, &unit->touch[s->first]),
                   touch_end(w, &unit->touch[s->last])};
}

/* Channels up to the last that is there when the step has run. */
static uint32_t filled_at(const Work *w, const Unit *unit, uint32_t step) {
    uint32_t end = 0;
    if (!unit->as_filled || step >= unit->complete)
        return plan_volume(w->g, unit->root).c;
    for (uint32_t i = 1; i < unit->n_tensors; i++) {
        TensorId t = unit->tensor[i];
        uint32_t made = w->role[t.i].made;
        uint32_t stop = channel_in_unit(w, unit, t) + plan_volume(w->g, t).c;
        if ((made == NONE || made <= step) && stop > end)
            end = stop;
    }
    return end;
}

/* Whether none of its touches lasts into the next one. */
static bool touched_in_turn(const Work *w, const Unit *unit) {
    bool in_turn = unit->concat && !w->spec->tiling.rings;
    for (uint32_t i = 0; i < unit->n_touches && in_turn; i++)
        in_turn = !unit->touch[i].by_rows;
    return in_turn;
}

bool waits_for_part(const Work *w, const Unit *unit, uint32_t time) {
    if (unit->dead || unit->as_needed || !touched_in_turn(w, unit))
        return false;
    for (uint32_t k = 0; k < unit->n_segments; k++)
        for (uint32_t i = unit->segment[k].first; i < unit->segment[k].last;
             i++)
            if (unit->touch[i].step >= unit->complete &&
                touch_end(w, &unit->touch[i]) <= time &&
                time < touch_first(w, &unit->touch[i + 1]))
                return unit->touch[i].behind < plan_volume(w->g, unit->root).c;
    return false;
}

/* Of these, up to the last that is touched then, or later. */
static uint32_t wanted_at(const Work *w, const Unit *unit, uint32_t touch) {
    uint32_t there = filled_at(w, unit, unit->touch[touch].step);
    if (!touch || !unit->as_needed || !touched_in_turn(w, unit))
        return there;
    uint32_t wanted = unit->touch[touch - 1].behind;
    return wanted < there ? wanted : there;
}

uint32_t wanted_behind(const Work *w, const Unit *unit, uint32_t touch) {
    uint32_t there = filled_at(w, unit, unit->touch[touch].step);
    if (!unit->as_needed || !touched_in_turn(w, unit))
        return there;
    uint32_t wanted = unit->touch[touch].behind;
    return wanted < there ? wanted : there;
}

bool waits_empty(const Unit *unit, uint32_t time) {
    if (unit->dead || !unit->concat || unit->as_filled)
        return false;
    for (uint32_t k = 0; k < unit->n_segments; k++)
        if (2 * unit->touch[unit->segment[k].first].step <= time &&
            time <= 2 * unit->touch[unit->segment[k].last].step &&
            time < 2 * unit->complete)
            return true;
    return false;
}

/* Bytes of a segment that has so many channels, and what copies of its rows
 * reach over its end. */
static void segment_bytes(const Work *w, const Unit *unit, const Segment *s,
                          uint32_t channels, uint64_t bytes[PLAN_MAX_POOLS]) {
    Volume whole = volume_in(w, unit->root, 0);
    memcpy(bytes, unit->bytes, sizeof unit->bytes);
    if (channels < whole.c)
        bytes[0] = kept_bytes(w, unit, channels);
    for (uint32_t i = s->first; i < unit->n_touches; i++)
        if (unit->touch[i].by_rows && bytes[0]) {
            bytes[0] += copy_offset(w->spec, &whole, whole.h - 1);
            return;
        }
}

/* Times at which a segment has as many channels. */
typedef struct Stretch {
    uint32_t first, end, channels;
} Stretch;
typedef VEC(Stretch) Stretches;

static void stretch_add(Work *w, Stretches *all, Stretch s) {
    Stretch *last = all->n ? &all->at[all->n - 1] : NULL;
    if (s.first >= s.end)
        return;
    if (last && last->channels == s.channels)
        last->end = s.end;
    else
        vec_push(w->arena, all, s);
}

/* While each of its touches runs, and from there to the next one. What returns
 * of a concat for some members alone has the place of all. */
static void segment_stretches(Work *w, const Unit *unit, const Segment *s,
                              Times times, Stretches *all) {
    uint32_t whole = plan_volume(w->g, unit->root).c, first = times.first;
    bool returns = unit->touch[s->first].step >= unit->complete &&
                   wanted_at(w, unit, s->first) < whole;
    if ((!unit->as_filled && !unit->as_needed) || returns) {
        stretch_add(w, all, (Stretch){first, times.end, whole});
        return;
    }
    for (uint32_t i = s->first; i <= s->last; i++) {
        bool last = i == s->last;
        uint32_t next = last ? times.end : touch_first(w, &unit->touch[i + 1]);
        uint32_t end = last ? next : touch_end(w, &unit->touch[i]);
        end = end < next ? end : next;
        stretch_add(w, all, (Stretch){first, end, wanted_at(w, unit, i)});
        stretch_add(w, all, (Stretch){end, next, wanted_behind(w, unit, i)});
        first = next;
    }
}

/* One buffer, or one for each time that more of a concat is there, or less. */
static void segment_bufs(Work *w, Problem *p, uint32_t index, Segment *s,
                         Times times, Stretches *all) {
    const Unit *unit = &w->unit.at[index];
    uint64_t bytes[PLAN_MAX_POOLS];
    all->n = 0;
    segment_stretches(w, unit, s, times, all);
    s->buf = p->buf.n;
    for (uint32_t i = 0; i < all->n; i++) {
        const Stretch *own = &all->at[i];
        segment_bytes(w, unit, s, own->channels, bytes);
        uint32_t buf =
            free_buf(w, p, own->first, own->end, bytes, s->memories,
                     (Owner){.kind = OWNER_SEGMENT,
                             .unit = index,
                             .node = NO_NODE,
                             .tensor = unit->root,
                             .rows = plan_volume(w->g, unit->root).h});
        p->tied.at[buf] = s->buf;
    }
}

static void unit_bufs(Work *w, Problem *p, uint32_t index, Stretches *room) {
    Unit *unit = &w->unit.at[index];
    segments_make(w, unit);
    for (uint32_t i = 0; i < unit->n_segments; i++) {
        Segment *s = &unit->segment[i];
        Times times = segment_times(w, p, unit, s);
        segment_bufs(w, p, index, s, times, room);
    }
    for (uint32_t i = 0; i < unit->n_segments; i++)
        kept_buf(w, p, index, &unit->segment[i]);
}

/* ---- planks and stripes ---- */

static void plank_set(Work *w, Problem *p, NodeId id) {
    const Node *node = graph_node(w->g, id);
    const Mode *mode = &w->mode[id.i];
    uint32_t time = 2 * w->schedule->step_of[id.i];
    uint32_t in_rows = plank_in_rows(w, id, mode->rows);
    uint64_t bytes[PLAN_MAX_POOLS];
    for (uint32_t i = 0; i < node->n_in + mode->streams_out; i++) {
        bool is_in = i < node->n_in;
        if (is_in && !mode_streams(mode, i))
            continue;
        Owner owner = {.kind = OWNER_PLANK,
                       .unit = NONE,
                       .node = id,
                       .tensor = is_in ? node->in[i] : node->out[0],
                       .rows = is_in ? in_rows : mode->rows,
                       .channels = mode->channels};
        if (mode->channels)
            slab_bytes(w, owner.tensor, mode->channels, bytes);
        else
            pool_bytes(w, owner.tensor, owner.rows, false, bytes);
        free_buf(w, p, time, time + 1, bytes,
                 reach(w, id, hw_operand(i, node->n_in)), owner);
    }
}

static void plank_bufs(Work *w, Problem *p, NodeId id) {
    Mode *mode = &w->mode[id.i];
    mode->first_buf = p->buf.n;
    plank_set(w, p, id);
    mode->twin = p->buf.n - mode->first_buf;
    if (mode->doubled)
        plank_set(w, p, id);
}

/* The plank of what a stripe holds, from step `first` on. */
static void held_buf(Work *w, Problem *p, NodeId id, TensorId t, uint32_t first,
                     const Stripe *most) {
    const Group *g = group_of(w, id);
    uint64_t bytes[PLAN_MAX_POOLS];
    stripe_bytes(w, t, most, bytes);
    free_buf(w, p, 2 * first, 2 * group_last_use(w, g, t) + 1, bytes,
             group_reach(w, g, t),
             (Owner){.kind = OWNER_PLANK,
                     .unit = NONE,
                     .node = id,
                     .tensor = t,
                     .rows = most->rows});
}

/* One buffer for an operand that the node loads for itself, or copies; in a
 * concat's plank they have their place. */
static void operand_buf(Work *w, Problem *p, NodeId id, uint32_t k,
                        const Stripe *own) {
    TensorId t = graph_node(w->g, id)->in[k];
    bool held = group_holder(w, group_of(w, id), t) != NONE;
    uint32_t step = w->schedule->step_of[id.i];
    uint64_t bytes[PLAN_MAX_POOLS];
    if (is_placed(w, id) || (held && !(own->copies >> k & 1)))
        return;
    pool_bytes(w, t, own->need.in_rows, false, bytes);
    free_buf(w, p, 2 * step, 2 * step + 1, bytes, reach_of(w, id, t),
             (Owner){.kind = OWNER_PLANK,
                     .unit = NONE,
                     .node = id,
                     .tensor = t,
                     .rows = own->need.in_rows});
}

/* First what is loaded for this node and others, then its operands, then its
 * result, if that lies in no other. */
static void stripe_set(Work *w, Problem *p, NodeId id, const Stripe *most) {
    const Node *node = graph_node(w->g, id);
    const Group *g = group_of(w, id);
    uint32_t step = w->schedule->step_of[id.i], at = step - g->first;
    for (uint32_t s = 0; s < g->n_shared; s++)
        if (shared_first(w, g, s) == at)
            held_buf(w, p, id, g->shared[s], step,
                     &most[g->end - g->first + s]);
    for (uint32_t k = 0; k < node->n_in; k++)
        operand_buf(w, p, id, k, &most[at]);
    if (!group_joins(w, g, node->out[0]))
        held_buf(w, p, id, node->out[0], g->first + plank_first(w, g, at),
                 &most[at]);
}

static void stripe_bufs(Work *w, Problem *p, NodeId id) {
    Mode *mode = &w->mode[id.i];
    const Group *g = group_of(w, id);
    const Stripe *most = group_highest(w, g);
    mode->first_buf = p->buf.n;
    stripe_set(w, p, id, most);
    mode->twin = p->buf.n - mode->first_buf;
    if (mode->doubled)
        stripe_set(w, p, id, most);
}

/* All rings of a group, at its first step. */
static void ring_bufs(Work *w, Problem *p, Group *g) {
    const Rings *rings = group_rings(w, g);
    uint64_t bytes[PLAN_MAX_POOLS];
    g->first_buf = p->buf.n;
    for (uint32_t i = 0; i < rings->at.n; i++) {
        const Ring *ring = &rings->at.at[i];
        if (ring->over != NONE || ring->inside != NONE)
            continue;
        uint32_t maker = ring->maker == NONE ? 0 : ring->maker;
        pool_bytes(w, ring->tensor, ring->rows, false, bytes);
        free_buf(w, p, 2 * g->first, 2 * g->end, bytes,
                 group_reach(w, g, ring->tensor),
                 (Owner){.kind = OWNER_PLANK,
                         .unit = NONE,
                         .node = group_node(w, g, maker),
                         .tensor = ring->tensor,
                         .rows = ring->rows});
    }
}

/* All line buffers of a group, and the room of those that pass. */
static void line_bufs(Work *w, Problem *p, Group *g) {
    const Lines *lines = group_lines(w, g);
    uint64_t bytes[PLAN_MAX_POOLS] = {0};
    g->first_buf = p->buf.n;
    Owner owner = {
        .kind = OWNER_PLANK, .unit = NONE, .node = group_node(w, g, 0)};
    for (uint32_t i = 0; i < lines->at.n; i++) {
        const LineRing *line = &lines->at.at[i];
        Volume v = line_volume(w, line);
        owner.tensor = line->tensor;
        owner.rows = line->buffer.keep + line->buffer.band;
        bytes[0] = layout_bytes(w->spec->memory[0].layout, &v);
        if (!line->passes)
            free_buf(w, p, 2 * g->first, 2 * g->end, bytes, 1, owner);
    }
    bytes[0] = lines->room;
    if (lines->room)
        free_buf(w, p, 2 * g->first, 2 * g->end, bytes, 1, owner);
}

static void group_bufs(Work *w, Problem *p, NodeId id) {
    Group *g = &w->group.at[w->mode[id.i].group];
    if (!g->rolls)
        stripe_bufs(w, p, id);
    else if (w->schedule->step_of[id.i] == g->first)
        (g->cols ? line_bufs : ring_bufs)(w, p, g);
}

static void tile_bufs(Work *w, Problem *p, NodeId id) {
    Range pin[3];
    uint32_t memory, n = mode_pins(w, id, pin, &memory);
    uint32_t time = 2 * w->schedule->step_of[id.i];
    w->mode[id.i].first_buf = p->buf.n;
    for (uint32_t i = 0; i < n; i++) {
        Owner owner = {.kind = OWNER_TILE,
                       .unit = NONE,
                       .node = id,
                       .tensor = graph_node(w->g, id)->in[0],
                       .least = pin[i].end - pin[i].at};
        Buf *buf = buf_new(w, p, &owner);
        buf->first = time;
        buf->end = time + 1;
        buf->pin_pool = (int32_t)memory;
        buf->pin_offset = pin[i].at;
        buf->bytes[memory] = owner.least;
    }
}

/* What passes between two nodes. */
static void couple_buf(Work *w, Problem *p, NodeId id) {
    Mode *mode = &w->mode[id.i];
    TensorId t = graph_node(w->g, id)->out[0];
    uint32_t step = w->schedule->step_of[id.i];
    uint64_t bytes[PLAN_MAX_POOLS];
    slab_bytes(w, t, mode->channels, bytes);
    uint32_t memories =
        reach_of(w, id, t) & reach_of(w, couple_partner(w, id), t);
    mode->first_buf = free_buf(w, p, 2 * step, 2 * step + 3, bytes, memories,
                               (Owner){.kind = OWNER_PLANK,
                                       .unit = NONE,
                                       .node = id,
                                       .tensor = t,
                                       .rows = plan_volume(w->g, t).h,
                                       .channels = mode->channels});
}

/* ---- relays ---- */

static void relay_add(Work *w, Problem *p, uint32_t step, TensorId t) {
    Relay relay = {.step = step, .tensor = t, .rows = w->relay_rows[t.i]};
    uint64_t bytes[PLAN_MAX_POOLS];
    pool_bytes(w, t, relay.rows, false, bytes);
    relay.buf = free_buf(w, p, 2 * step + 1, 2 * step + 2, bytes, UINT32_MAX,
                         (Owner){.kind = OWNER_RELAY,
                                 .unit = NONE,
                                 .node = NO_NODE,
                                 .tensor = t,
                                 .rows = relay.rows});
    vec_push(w->arena, &w->relay, relay);
}

/* Members of a dissolved concat that no engine writes must be brought to the
 * parent's place; the parent itself to the output. */
static void concat_relays(Work *w, Problem *p, NodeId id) {
    const Node *node = graph_node(w->g, id);
    uint32_t step = w->schedule->step_of[id.i];
    for (uint32_t i = 0; i < node->n_in; i++) {
        if (from_outside(w, node->in[i]))
            relay_add(w, p, step, node->in[i]);
    }
    if (w->role[node->out[0].i].outside)
        relay_add(w, p, step, node->out[0]);
}

static void node_bufs(Work *w, Problem *p, NodeId id) {
    TensorId out = graph_node(w->g, id)->out[0];
    uint32_t step = w->schedule->step_of[id.i];
    bool grouped = in_group(w, id);
    if (is_placed(w, id) && dissolved(w, out) && !grouped)
        concat_relays(w, p, id);
    if (w->mode[id.i].kind == MODE_PLANKS)
        plank_bufs(w, p, id);
    if (w->mode[id.i].kind == MODE_GIVES)
        couple_buf(w, p, id);
    if (grouped)
        group_bufs(w, p, id);
    if (w->mode[id.i].kind != MODE_HARDWARE)
        return;
    tile_bufs(w, p, id);
    Dests d = dests_of(w, out, true);
    if (w->mode[id.i].streams_out && d.home && d.output)
        relay_add(w, p, step, out);
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
static bool unit_live(const Work *w, Problem *p, const Unit *unit, bool add) {
    for (uint32_t i = 0; i < unit->n_segments; i++) {
        const Segment *s = &unit->segment[i];
        uint64_t bytes = least_bytes(w, unit->bytes, s->memories);
        Times times = segment_times(w, p, unit, s);
        if (bytes == UINT64_MAX)
            return false;
        for (uint32_t t = times.first; t < times.end; t++)
            if (p->live[t] != UINT64_MAX)
                p->live[t] = add ? p->live[t] + bytes : p->live[t] - bytes;
    }
    return true;
}

bool live_follow(Work *w, Problem *p, uint32_t index) {
    Unit *unit = &w->unit.at[index];
    bool known = !w->low && unit_live(w, p, unit, false);
    segments_make(w, unit);
    return known && unit_live(w, p, unit, true);
}

bool live_unit(Work *w, Problem *p, uint32_t index, bool add) {
    Problem own = {.n_times = p->n_times};
    Stretches room = {0};
    unit_bufs(w, &own, index, &room);
    for (uint32_t i = 0; i < own.buf.n; i++) {
        uint64_t bytes = own.owner.at[i].least;
        if (bytes == UINT64_MAX)
            return false;
        for (uint32_t t = own.buf.at[i].first; t < own.buf.at[i].end; t++)
            p->live[t] = add ? p->live[t] + bytes : p->live[t] - bytes;
    }
    return true;
}

void problem_make(Work *w, Problem *p) {
    p->buf.n = p->owner.n = p->tied.n = w->relay.n = 0;
    p->relation.n = 0;
    w->split = NONE;
    p->n_times = 2 * w->schedule->n_steps;
    if (!p->live)
        p->live = ARENA_ARRAY(w->arena, uint64_t, p->n_times);
    Stretches room = {0};
    for (uint32_t i = 0; i < w->unit.n; i++)
        if (!w->unit.at[i].dead)
            unit_bufs(w, p, i, &room);
    for (uint32_t s = 0; s < w->schedule->n_steps; s++)
        for (uint32_t i = 0; i < w->schedule->step[s].n; i++)
            node_bufs(w, p, w->schedule->step[s].slot[i].node);
    live_make(p);
    p->p = (PlanProblem){.n_pools = w->spec->n_active, .n_bufs = p->buf.n};
    for (uint32_t m = 0; m < w->spec->n_active; m++)
        p->p.pool[m] = pool_of(&w->spec->memory[m]);
    p->p.buf = p->buf.at;
    budget_take(w->options->budget, p->buf.n + 1);
}
