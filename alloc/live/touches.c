/* touches.c - when engines need the tensors of a unit, and where values go.
 *
 * Input: units, modes of nodes. Output: the touches of each unit.
 */
#include "alloc/alias/alias.h"
#include "alloc/cascade/cascade.h"
#include "alloc/geometry/onchip_copy.h"
#include "alloc/geometry/tensor_bytes.h"
#include "alloc/live/buffers.h"

#include <stdlib.h>
#include <string.h>

/* ---- touches ---- */

/* Made and read within one group, and there only: it never exists whole. */
static bool inner(const Decisions *d, NodeId node, TensorId t) {
    const Facts *f = d->f;
    const Mode *mode = &d->mode[node.i];
    if (couple_passes(d, t))
        return true;
    if (mode->kind != MODE_GROUP)
        return false;
    const Group *g = &d->group.at[mode->group];
    NodeId maker = graph_tensor(f->g, t)->producer;
    if (g->stays)
        return group_maker(f, g, t) != NONE && !group_keeps(d, g, t);
    return group_maker(f, g, t) != NONE &&
           (maker.i != node.i || !group_stores(f, g, t));
}

/* Whether the node takes operand k by parts, or gives the result so, which is
 * behind the operands. */
static bool streams(const Decisions *d, NodeId node, uint32_t k) {
    const Mode *mode = &d->mode[node.i];
    const Node *n = graph_node(d->f->g, node);
    TensorId t = k < n->n_in ? n->in[k] : n->out[0];
    if (mode->kind == MODE_GROUP && d->group.at[mode->group].stays)
        return !group_keeps(d, &d->group.at[mode->group], t);
    return k < n->n_in ? mode_streams(mode, k) : mode->streams_out;
}

bool takes_rows(const Decisions *d, NodeId node, TensorId in) {
    const Mode *mode = &d->mode[node.i];
    bool stripes = mode->kind == MODE_GROUP && !d->group.at[mode->group].rolls;
    return config_low(d->config) &&
           (stripes || (mode->kind == MODE_PLANKS && !mode->channels)) &&
           copy_legal(d->f, in).engine >= 0;
}

/* Whether a load can bring the member of a concat to its place: it cannot name
 * the volume of which that is a part. */
static bool loads_into_concat(const Decisions *d, TensorId t) {
    const Facts *f = d->f;
    const Unit *unit = &d->unit.at[d->unit_of[t.i]];
    uint32_t c = channel_in_unit(f, unit, t);
    for (uint32_t m = 0; m < f->spec->n_active; m++) {
        Volume whole = volume_in(f, unit->root, m);
        if (!part_told(f, &f->spec->memory[m], &whole, c,
                       plan_volume(f->g, t).c))
            return false;
    }
    return true;
}

/* Behind all parts: the last node of a group writes its last ones then. */
bool result_lands(const Decisions *d, NodeId node) {
    const Facts *f = d->f;
    const Mode *mode = &d->mode[node.i];
    TensorId out = graph_node(f->g, node)->out[0];
    const Role *role = &f->role[out.i];
    uint32_t step = f->schedule->step_of[node.i];
    bool last = mode->kind == MODE_PLANKS && mode->streams_out;
    if (!config_low(d->config) || !on_engine(f, node) || role->parent.i == NONE)
        return false;
    for (uint32_t i = 0; i < graph_node(f->g, node)->n_in; i++)
        if (d->unit_of[graph_node(f->g, node)->in[i].i] == d->unit_of[out.i])
            return false;
    if (mode->kind == MODE_GROUP) {
        const Group *g = &d->group.at[mode->group];
        last = !g->rolls && step + 1 == g->end;
    }
    return last && !role->outside && !d->dissolved[role->parent.i] &&
           loads_into_concat(d, out);
}

static void touch_by(const Facts *f, Touch *touch, NodeId node,
                     HwOperand operand, bool streams, bool by_rows) {
    if (streams) {
        touch->by_rows = by_rows && (touch->by_rows || !touch->stream);
        touch->stream = true;
        return;
    }
    touch->whole = true;
    touch->memories &= reach(f, node, operand);
}

/* What a node of the touch's step, or its partner in a couple, makes of it. */
static void touch_by_node(Decisions *d, const Unit *u, Touch *touch,
                          NodeId id) {
    const Facts *f = d->f;
    uint32_t unit = d->unit_of[u->root.i];
    bool filling = u->concat && touch->step <= u->complete;
    const Node *node = graph_node(f->g, id);
    TensorId out = node->out[0];
    if (is_placed(f, id) && !d->dissolved[out.i] && !inner(d, id, out) &&
        d->unit_of[out.i] == unit)
        touch->whole = true;
    if (!on_engine(f, id))
        return;
    for (uint32_t k = 0; k < node->n_in; k++) {
        TensorId in = node->in[k];
        bool by_parts = streams(d, id, k);
        bool by_rows = by_parts && takes_rows(d, id, in);
        if (d->unit_of[in.i] == unit && !inner(d, id, in) &&
            !(filling && by_parts && !by_rows))
            touch_by(f, touch, id, hw_operand(k, node->n_in), by_parts,
                     by_rows);
    }
    if (d->unit_of[out.i] != unit || inner(d, id, out))
        return;
    bool lands = result_lands(d, id);
    touch->lands |= lands;
    touch_by(f, touch, id, HW_OUT, !lands && streams(d, id, node->n_in), false);
}

/* Fills the touch from the nodes of its step. What streams from a concat that
 * is still being filled is a member that lies outside anyway: that does not
 * touch the unit (unit_of has dissolved the others, see greedy.c). */
static void touch_fill(Decisions *d, const Unit *u, Touch *touch) {
    const Step *step = &d->f->schedule->step[touch->step];
    touch->whole = touch->stream = touch->by_rows = touch->lands = false;
    touch->memories = UINT32_MAX;
    for (uint32_t i = 0; i < step->n; i++) {
        NodeId other = couple_partner(d, step->slot[i].node);
        touch_by_node(d, u, touch, step->slot[i].node);
        if (other.i != NONE)
            touch_by_node(d, u, touch, other);
    }
    touch->by_rows &= !touch->whole;
}

static int by_step(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* What a node of a couple touches is there while either runs. */
static uint32_t node_steps(const Decisions *d, NodeId id, uint32_t *step) {
    NodeId other = couple_partner(d, id);
    step[0] = d->f->schedule->step_of[id.i];
    if (other.i != NONE)
        step[1] = d->f->schedule->step_of[other.i];
    return 1 + (other.i != NONE);
}

/* Steps at which engines touch the tensor; returns how many. */
static uint32_t tensor_steps(const Decisions *d, TensorId t, uint32_t *step) {
    const Facts *f = d->f;
    const Role *role = &f->role[t.i];
    uint32_t n = 0;
    if (role->origin == FROM_ENGINE ||
        (role->origin == FROM_PARTS && !d->dissolved[t.i]))
        n += node_steps(d, graph_tensor(f->g, t)->producer, step);
    for (uint32_t i = f->uses.start[t.i]; i < f->uses.start[t.i + 1]; i++)
        if (on_engine(f, f->uses.node[i]))
            n += node_steps(d, f->uses.node[i], step + n);
    return n;
}

/* Of the concat's tensor, up to its last channel, until it is touched last. */
static void touches_behind(const Facts *f, Unit *unit, TensorId t, uint32_t n,
                           const uint32_t *step) {
    uint32_t last = 0;
    uint32_t end = channel_in_unit(f, unit, t) + plan_volume(f->g, t).c;
    for (uint32_t i = 0; i < n; i++)
        last = step[i] > last ? step[i] : last;
    for (uint32_t i = 0; i < unit->n_touches; i++)
        if (unit->touch[i].step < last && unit->touch[i].behind < end)
            unit->touch[i].behind = end;
}

static void unit_touch(Decisions *d, Unit *unit) {
    const Facts *f = d->f;
    uint32_t n = 0, most = 0;
    for (uint32_t i = 0; i < unit->n_tensors; i++) {
        uint32_t t = unit->tensor[i].i;
        most += 2 * (1 + f->uses.start[t + 1] - f->uses.start[t]);
    }
    uint32_t *step = ARENA_ARRAY(f->arena, uint32_t, most);
    for (uint32_t i = 0; i < unit->n_tensors; i++)
        n += tensor_steps(d, unit->tensor[i], step + n);
    qsort(step, n, sizeof *step, by_step);
    unit->touch = ARENA_ARRAY(f->arena, Touch, n);
    for (uint32_t i = 0; i < n; i++)
        if (i == 0 || step[i] != step[i - 1])
            unit->touch[unit->n_touches++].step = step[i];
    for (uint32_t i = 0; i < unit->n_touches; i++)
        touch_fill(d, unit, &unit->touch[i]);
    for (uint32_t i = 0; i < unit->n_tensors && unit->concat; i++)
        touches_behind(f, unit, unit->tensor[i],
                       tensor_steps(d, unit->tensor[i], step), step);
}

void touches_make(Decisions *d) {
    for (uint32_t u = 0; u < d->unit.n; u++)
        if (!d->unit.at[u].touch)
            unit_touch(d, &d->unit.at[u]);
}

static void unit_refresh(Decisions *d, TensorId t, uint32_t step) {
    if (d->unit_of[t.i] == NONE)
        return;
    Unit *unit = &d->unit.at[d->unit_of[t.i]];
    for (uint32_t i = 0; i < unit->n_touches; i++)
        if (unit->touch[i].step == step)
            touch_fill(d, unit, &unit->touch[i]);
}

void touch_insert(const Facts *f, Unit *unit, uint32_t step) {
    uint32_t at = 0, n = unit->n_touches;
    while (at < n && unit->touch[at].step < step)
        at++;
    Touch *touch = ARENA_ARRAY(f->arena, Touch, n + 1);
    memcpy(touch, unit->touch, at * sizeof *touch);
    touch[at].step = step;
    touch[at].behind = at ? touch[at - 1].behind : UINT32_MAX;
    if (at)
        touch[at - 1].behind = at > 1 ? touch[at - 2].behind : UINT32_MAX;
    memcpy(touch + at + 1, unit->touch + at, (n - at) * sizeof *touch);
    unit->touch = touch;
    unit->n_touches = n + 1;
}

void touches_refill(Decisions *d, uint32_t step) {
    for (uint32_t u = 0; u < d->unit.n; u++) {
        Unit *unit = &d->unit.at[u];
        for (uint32_t i = 0; i < unit->n_touches; i++)
            if (unit->touch[i].step == step)
                touch_fill(d, unit, &unit->touch[i]);
    }
}

void touches_refresh(Decisions *d, uint32_t step) {
    const Step *s = &d->f->schedule->step[step];
    for (uint32_t i = 0; i < s->n; i++) {
        const Node *node = graph_node(d->f->g, s->slot[i].node);
        for (uint32_t k = 0; k < node->n_in; k++)
            unit_refresh(d, node->in[k], step);
        unit_refresh(d, node->out[0], step);
    }
}

void couple_part(Decisions *d, NodeId id) {
    NodeId other = couple_partner(d, id);
    if (other.i == NONE)
        return;
    d->mode[id.i] = d->mode[other.i] = (Mode){.style = -1};
    touches_refill(d, d->f->schedule->step_of[id.i]);
    touches_refill(d, d->f->schedule->step_of[other.i]);
}

/* ---- where values go ---- */

const Group *group_of(const Decisions *d, NodeId node) {
    const Mode *mode = &d->mode[node.i];
    return mode->kind == MODE_GROUP ? &d->group.at[mode->group] : NULL;
}

Dests dests_of(const Decisions *dec, TensorId t, bool streamed) {
    const Facts *f = dec->f;
    const Role *role = &f->role[t.i];
    bool in_dissolved =
        role->parent.i != NONE && dec->dissolved[role->parent.i];
    const Group *g = group_of(dec, graph_tensor(f->g, t)->producer);
    bool reread = streamed && !g && role->engine_reads;
    Dests d = {.home = g && !g->stays ? group_leaves(f, g, t)
                                      : in_dissolved || reread,
               .output = role->outside};
    if (streamed && !d.output)
        d.home = true;
    return d;
}
