/* compulsory.c - what no listing can do without, whatever it computes, in
 * whatever order, however often.
 *
 * Input: a network, and which of its layers engines run. Output: bytes over
 * DDR. Of results, all is needed that the host or the user reads; of what a
 * needed pixel is made from, all pixels of its windows. Of a tensor with
 * several readers, what one of them needs: that with the most. So pixels that
 * lead to no result count nowhere, as those between strides. What is needed
 * and comes from outside is read once, results are written once. Of weights,
 * those count that the network has: neither the zeros between groups, nor what
 * passes add, as copies for concats; and those that layers share once.
 */
#include "alloc/bound/bound.h"
#include "alloc/geometry/receptive_field.h"
#include "alloc/geometry/tensor_bytes.h"
#include "alloc/tile/tile.h"

#include <string.h>

/* Pixels along rows and columns that are needed: the product of both. */
typedef struct Needed {
    uint8_t *axis[2];
    uint64_t n[2];    /* how many of them */
    bool some, all_c; /* of some channel, of all of them */
} Needed;

static uint64_t product(const Needed *n) {
    return n->n[0] * n->n[1];
}

static uint32_t size_of(const Facts *f, TensorId t, uint32_t axis) {
    Volume v = plan_volume(f->g, t);
    return axis ? v.w : v.h;
}

static Needed needed_new(const Facts *f, TensorId t) {
    Needed n = {0};
    for (uint32_t axis = 0; axis < 2; axis++)
        n.axis[axis] =
            ARENA_ARRAY(f->arena, uint8_t, size_of(f, t, axis) + (size_t)1);
    return n;
}

static void all_needed(const Facts *f, TensorId t, Needed *need) {
    *need = needed_new(f, t);
    need->some = need->all_c = true;
    for (uint32_t axis = 0; axis < 2; axis++) {
        need->n[axis] = size_of(f, t, axis);
        memset(need->axis[axis], 1, need->n[axis]);
    }
}

static bool is_whole(const Facts *f, TensorId t, const Needed *need) {
    return need->all_c && need->n[0] == size_of(f, t, 0) &&
           need->n[1] == size_of(f, t, 1);
}

/* Of two sets of needs of one tensor the larger. */
static void need_more(Needed *to, const Needed *more) {
    if (!to->some || product(more) > product(to) ||
        (product(more) == product(to) && more->all_c))
        *to = *more;
}

/* What pixels along the axis are made from; those that nobody can tell are
 * none. */
static void read_axis(const Feet *feet, uint32_t size, const Needed *made,
                      uint32_t axis, uint32_t n_made, Needed *read) {
    for (uint32_t at = 0; at < n_made; at++) {
        if (!made->axis[axis][at])
            continue;
        Span s = feet_reads(feet, size, (Span){at, at + 1});
        for (int64_t i = s.at; i < s.end; i++) {
            read->n[axis] += !read->axis[axis][i];
            read->axis[axis][i] = 1;
        }
    }
}

/* Whether all of the operands are needed where all of the result is, though
 * nobody knows the windows. */
static bool reads_all(const Node *node) {
    switch (node->op) {
    case OP_CONV:
    case OP_CONV_POOL:
    case OP_DECONV:
    case OP_FC:
    case OP_MIX:
    case OP_NORM:
    case OP_SOFTMAX:
    case OP_REDUCE:
    case OP_RESHAPE:
    case OP_TRANSPOSE:
        return true;
    default:
        return false;
    }
}

/* Whether any channel of the result takes all of the operand's. */
static bool takes_all_channels(const Node *node) {
    return node->op == OP_FC || is_dense(node);
}

static void operand_needed(const Facts *f, NodeId id, TensorId t,
                           const Needed *made, Needed *need) {
    const Node *node = graph_node(f->g, id);
    Needed read = needed_new(f, t);
    bool known = true;
    for (uint32_t axis = 0; axis < 2; axis++) {
        Feet feet = feet_anywhere(f, id, axis);
        known &= feet_known(&feet, size_of(f, t, axis));
        read_axis(&feet, size_of(f, t, axis), made, axis,
                  size_of(f, node->out[0], axis), &read);
    }
    read.some = product(&read) > 0;
    read.all_c = takes_all_channels(node) || made->all_c;
    if (!known && reads_all(node) && is_whole(f, node->out[0], made))
        all_needed(f, t, &read);
    if (read.some)
        need_more(need, &read);
}

/* A concat by placement is its members; of which channels are needed that are
 * not all, nobody knows. */
static void node_needs(const Facts *f, NodeId id, Needed *need) {
    const Node *node = graph_node(f->g, id);
    const Needed *made = &need[node->out[0].i];
    bool engine = on_engine(f, id), placed = is_placed(f, id);
    if (!made->some || !(engine || (placed && made->all_c)))
        return;
    for (uint32_t k = 0; k < node->n_in; k++)
        if (placed)
            need_more(&need[node->in[k].i], made);
        else
            operand_needed(f, id, node->in[k], made, &need[node->in[k].i]);
}

static Needed *needs_of(const Facts *f) {
    Needed *need = ARENA_ARRAY(f->arena, Needed, f->g->tensor.n + 1);
    for (TensorId t = {0}; t.i < f->g->tensor.n; t.i++)
        if (f->role[t.i].outside || f->role[t.i].kept)
            all_needed(f, t, &need[t.i]);
    for (uint32_t s = f->schedule->n_steps; s-- > 0;)
        for (uint32_t i = f->schedule->step[s].n; i-- > 0;)
            node_needs(f, f->schedule->step[s].slot[i].node, need);
    return need;
}

/* One end of a state need not move: it could stay. */
static bool may_stay(const Facts *f, TensorId t) {
    NodeId producer = graph_tensor(f->g, t)->producer;
    return graph_state_next(f->g, graph_node(f->g, producer)).i != NONE ||
           (graph_is_output(f->g, t) && graph_state_of(f->g, t).i != NONE &&
            !f->role[t.i].host_reads);
}

/* What of it lies in a concat that is outside as well lies there. */
static uint64_t leaving(const Facts *f, TensorId t) {
    Volume v = plan_volume(f->g, t);
    TensorId parent = f->role[t.i].parent;
    if (!f->role[t.i].outside || may_stay(f, t) ||
        (parent.i != NONE && f->role[parent.i].outside))
        return 0;
    return (uint64_t)v.c * v.h * v.w;
}

static uint64_t entering(const Facts *f, TensorId t, const Needed *need) {
    if (!from_outside(f, t) || !f->role[t.i].engine_reads || !need->some ||
        may_stay(f, t))
        return 0;
    return product(need) * (need->all_c ? plan_volume(f->g, t).c : 1);
}

uint64_t maps_compulsory(const Facts *f) {
    const Needed *need = needs_of(f);
    uint64_t elements = 0;
    for (TensorId t = {0}; t.i < f->g->tensor.n; t.i++)
        elements += leaving(f, t) + entering(f, t, &need[t.i]);
    return elements * f->spec->element;
}

/* ---- weights ---- */

/* What is the same number everywhere is none of the network's. */
static uint64_t weights_of_its_own(const Graph *g, const Node *node,
                                   uint8_t *counted) {
    ConstId id = node->constant[CONST_WEIGHT];
    uint64_t all =
        (uint64_t)weight_taps(g, node) * plan_volume(g, node->out[0]).c;
    if (id.i == NONE)
        return node->op == OP_SCALE ? 0 : all;
    const Const *c = graph_const(g, id);
    bool again = counted[id.i];
    counted[id.i] = true;
    if (again || (c->kind == CONST_SEEDED && !(c->spread > 0)))
        return 0;
    return c->groups > 1 ? all / c->groups : all;
}

uint64_t weights_bound(Arena *arena, const Schedule *schedule) {
    const Graph *g = schedule->graph;
    uint8_t *counted = ARENA_ARRAY(arena, uint8_t, g->constant.n + 1);
    uint64_t elements = 0;
    for (uint32_t i = 0; i < schedule->n_steps; i++)
        for (uint32_t k = 0; k < schedule->step[i].n; k++) {
            const Slot *slot = &schedule->step[i].slot[k];
            if (slot->legal.engine >= 0 &&
                hwspec_stages(schedule->spec, slot->legal.op))
                elements +=
                    weights_of_its_own(g, graph_node(g, slot->node), counted);
        }
    return elements * schedule->spec->element;
}
