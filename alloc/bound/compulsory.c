/* compulsory.c - what no listing can do without, whatever it computes, in
 * whatever order, however often.
 *
 * Input: a network, and which of its layers engines run. Output: bytes over
 * DDR. Of results, all is needed that the host or the user reads; of what a
 * needed pixel is made from, all pixels of its windows. Of a tensor with
 * several readers, what they need together where that is a box of rows, columns
 * and channels; else the largest such. So pixels that lead to no result count
 * nowhere, as those between strides. What is needed
 * and comes from outside is read once, results are written once. Of weights,
 * those count that the network has: neither the zeros between groups, nor what
 * passes add, as copies for concats; and those that layers share once.
 */
#include "alloc/bound/bound.h"
#include "alloc/geometry/receptive_field.h"
#include "alloc/geometry/tensor_bytes.h"
#include "alloc/tile/tile.h"

#include <string.h>

/* A box of what is needed of a tensor: of its rows, columns and channels these;
 * the product of the three. */
enum { ROWS, COLUMNS, CHANNELS, AXES };
typedef struct Box {
    uint8_t *axis[AXES];
    uint64_t n[AXES]; /* how many of them */
} Box;

/* Of several readers. Boxes that are one box are one; of others, what nobody
 * adds up. */
enum { MOST_BOXES = 8 };
typedef struct Needs {
    uint32_t n;
    Box box[MOST_BOXES];
} Needs;

static uint64_t volume_of(const Box *b) {
    return b->n[ROWS] * b->n[COLUMNS] * b->n[CHANNELS];
}

static uint32_t size_of(const Facts *f, TensorId t, uint32_t axis) {
    Volume v = plan_volume(f->g, t);
    return axis == CHANNELS ? v.c : axis == COLUMNS ? v.w : v.h;
}

static Box box_new(const Facts *f, TensorId t) {
    Box box = {0};
    for (uint32_t axis = 0; axis < AXES; axis++)
        box.axis[axis] =
            ARENA_ARRAY(f->arena, uint8_t, size_of(f, t, axis) + (size_t)1);
    return box;
}

static void mark(Box *box, uint32_t axis, uint32_t at) {
    box->n[axis] += !box->axis[axis][at];
    box->axis[axis][at] = 1;
}

static void mark_all(const Facts *f, TensorId t, uint32_t axis, Box *box) {
    box->n[axis] = size_of(f, t, axis);
    memset(box->axis[axis], 1, box->n[axis]);
}

static Box whole_box(const Facts *f, TensorId t) {
    Box box = box_new(f, t);
    for (uint32_t axis = 0; axis < AXES; axis++)
        mark_all(f, t, axis, &box);
    return box;
}

static bool is_whole(const Facts *f, TensorId t, const Box *box) {
    for (uint32_t axis = 0; axis < AXES; axis++)
        if (box->n[axis] != size_of(f, t, axis))
            return false;
    return true;
}

/* Axes in which they differ; the last of these. */
static uint32_t differ(const Facts *f, TensorId t, const Box *a, const Box *b,
                       uint32_t *last) {
    uint32_t n = 0;
    for (uint32_t axis = 0; axis < AXES; axis++)
        if (memcmp(a->axis[axis], b->axis[axis], size_of(f, t, axis))) {
            *last = axis;
            n++;
        }
    return n;
}

/* The box joins those that differ from it along one axis. */
static void need_more(const Facts *f, TensorId t, Needs *to, Box more) {
    uint32_t axis = 0;
    if (!volume_of(&more))
        return;
    for (uint32_t i = 0; i < to->n; i++) {
        Box old = to->box[i];
        if (differ(f, t, &old, &more, &axis) > 1)
            continue;
        Box both = more;
        both.axis[axis] = ARENA_COPY(f->arena, uint8_t, more.axis[axis],
                                     size_of(f, t, axis) + (size_t)1);
        for (uint32_t k = 0; k < size_of(f, t, axis); k++)
            if (old.axis[axis][k])
                mark(&both, axis, k);
        to->box[i] = to->box[--to->n];
        more = both;
        i = NONE; /* from the first again */
    }
    if (to->n < MOST_BOXES) {
        to->box[to->n++] = more;
        return;
    }
    uint32_t at = 0;
    for (uint32_t i = 1; i < to->n; i++)
        if (volume_of(&to->box[i]) < volume_of(&to->box[at]))
            at = i;
    if (volume_of(&to->box[at]) < volume_of(&more))
        to->box[at] = more;
}

static const Box *largest(const Needs *needs) {
    const Box *best = NULL;
    for (uint32_t i = 0; i < needs->n; i++)
        if (!best || volume_of(&needs->box[i]) > volume_of(best))
            best = &needs->box[i];
    return best;
}

/* ---- what a layer reads ---- */

/* As many along the axis as are made. */
static void mark_made(const Facts *f, TensorId t, uint32_t axis,
                      const Box *made, Box *read) {
    for (uint32_t i = 0; i < size_of(f, t, axis); i++)
        if (made->axis[axis][i])
            mark(read, axis, i);
}

/* What pixels along the axis are made from; those that nobody can tell are
 * none. */
static void read_axis(const Feet *feet, uint32_t size, const Box *made,
                      uint32_t axis, uint32_t n_made, Box *read) {
    for (uint32_t at = 0; at < n_made; at++) {
        if (!made->axis[axis][at])
            continue;
        Span s = feet_reads(feet, size, (Span){at, at + 1});
        for (int64_t i = s.at; i < s.end; i++)
            mark(read, axis, (uint32_t)i);
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

/* Channels that those made are made from. */
static void read_channels(const Facts *f, const Node *node, TensorId t,
                          const Box *made, Box *read) {
    uint32_t in = size_of(f, t, CHANNELS);
    uint32_t out = size_of(f, node->out[0], CHANNELS), groups = in;
    bool windows = node_convolves(node);
    if (windows)
        groups = node->attr.conv.groups;
    else if (node->op == OP_FC || in != out)
        groups = 1;
    bool whole =
        node->op == OP_REDUCE || node->op == OP_SOFTMAX || node->op == OP_NORM;
    if (whole && made->n[CHANNELS] < out)
        return;
    if (groups < 2 || whole || out % groups || in % groups) {
        if (made->n[CHANNELS] &&
            (windows || whole || in == 1 || node->op == OP_FC))
            mark_all(f, t, CHANNELS, read);
        return;
    }
    uint32_t each = out / groups, of = in / groups;
    for (uint32_t k = 0; k < out; k++)
        for (uint32_t i = 0; made->axis[CHANNELS][k] && i < of; i++)
            mark(read, CHANNELS, k / each * of + i);
}

/* Elements [begin, ...) of an axis, or those of a constant's indices whose
 * factor is not 0. */
static void read_picks(const Facts *f, const Node *node, TensorId t,
                       uint32_t axis, const Box *made, Box *read) {
    uint32_t n = size_of(f, node->out[0], axis), size = size_of(f, t, axis);
    uint32_t taps = node->op == OP_SLICE ? 1 : node->attr.gather.taps;
    double *index = NULL, *factor = NULL;
    if (node->op == OP_GATHER) {
        index = ARENA_ARRAY(f->arena, double, (size_t)n *taps);
        factor = ARENA_ARRAY(f->arena, double, (size_t)n *taps);
        const_read_f64(graph_const(f->g, node->constant[CONST_INDEX]), index);
        const_read_f64(graph_const(f->g, node->constant[CONST_VALUE]), factor);
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; made->axis[axis][i] && k < taps; k++) {
            double at = index ? index[(size_t)i * taps + k]
                              : (double)i + node->attr.slice.begin;
            bool counts = !factor || factor[(size_t)i * taps + k] < 0 ||
                          factor[(size_t)i * taps + k] > 0;
            if (counts && at >= 0 && at < size)
                mark(read, axis, (uint32_t)at);
        }
}

/* A slice or a gather along an axis; others are read as they are. */
static Box picked(const Facts *f, const Node *node, TensorId t,
                  const Box *made) {
    static const uint32_t axis_of[] = {AXES, CHANNELS, ROWS, COLUMNS};
    uint32_t along =
        node->op == OP_SLICE ? node->attr.slice.axis : node->attr.gather.axis;
    Box read = box_new(f, t);
    if (along < 1 || along > 3 ||
        (node->op == OP_GATHER && (node->constant[CONST_INDEX].i == NONE ||
                                   node->constant[CONST_VALUE].i == NONE)))
        return read;
    for (uint32_t axis = 0; axis < AXES; axis++)
        if (axis == axis_of[along])
            read_picks(f, node, t, axis, made, &read);
        else
            mark_made(f, t, axis, made, &read);
    return read;
}

/* Pixels by constant indices: a box where they are rows times columns. */
static Box picked_pixels(const Facts *f, const Node *node, TensorId t,
                         const Box *made) {
    uint32_t w = size_of(f, node->out[0], COLUMNS),
             wide = size_of(f, t, COLUMNS);
    uint32_t h = size_of(f, node->out[0], ROWS), n = 0;
    uint64_t size = (uint64_t)wide * size_of(f, t, ROWS);
    uint8_t *is = ARENA_ARRAY(f->arena, uint8_t, size + 1);
    double *index = ARENA_ARRAY(f->arena, double, (size_t)w *h);
    Box read = box_new(f, t);
    if (node->constant[CONST_INDEX].i == NONE)
        return read;
    const_read_f64(graph_const(f->g, node->constant[CONST_INDEX]), index);
    for (uint32_t i = 0; i < w * h; i++) {
        bool counts = made->axis[ROWS][i / w] && made->axis[COLUMNS][i % w] &&
                      index[i] >= 0 && index[i] < (double)size;
        uint64_t at = counts ? (uint64_t)index[i] : 0;
        if (!counts || is[at])
            continue;
        is[at] = 1;
        n++;
        mark(&read, ROWS, (uint32_t)(at / wide));
        mark(&read, COLUMNS, (uint32_t)(at % wide));
    }
    if (read.n[ROWS] * read.n[COLUMNS] != n)
        return box_new(f, t);
    mark_made(f, t, CHANNELS, made, &read);
    return read;
}

/* Attention reads the pixels of its queries that are made, and all keys and
 * values; those of some of the channels nobody tells. */
static Box attended(const Facts *f, const Node *node, TensorId t,
                    const Box *made) {
    Box read = box_new(f, t);
    if (made->n[CHANNELS] < size_of(f, node->out[0], CHANNELS))
        return read;
    if (t.i == node->in[1].i)
        return whole_box(f, t);
    for (uint32_t axis = 0; axis < CHANNELS; axis++)
        if (size_of(f, t, axis) == size_of(f, node->out[0], axis))
            mark_made(f, t, axis, made, &read);
    mark_all(f, t, CHANNELS, &read);
    return read;
}

static Box operand_needed(const Facts *f, NodeId id, TensorId t,
                          const Box *made) {
    const Node *node = graph_node(f->g, id);
    if (node->op == OP_MIX && node->attr.mix.attends && node_mixes_all(node))
        return attended(f, node, t, made);
    if (node->op == OP_SLICE || node->op == OP_GATHER)
        return picked(f, node, t, made);
    if (node->op == OP_PIXELS)
        return picked_pixels(f, node, t, made);
    Box read = box_new(f, t);
    bool known = true;
    for (uint32_t axis = 0; axis < CHANNELS; axis++) {
        Feet feet = feet_anywhere(f, id, axis);
        known &= feet_known(&feet, size_of(f, t, axis));
        read_axis(&feet, size_of(f, t, axis), made, axis,
                  size_of(f, node->out[0], axis), &read);
    }
    if (!known && reads_all(node) && is_whole(f, node->out[0], made))
        return whole_box(f, t);
    read_channels(f, node, t, made, &read);
    return read;
}

/* A concat by placement is its members: each has its own channels of what is
 * needed. */
static Box member_needed(const Facts *f, const Node *node, uint32_t k,
                         const Box *made) {
    TensorId t = node->in[k];
    Box read = box_new(f, t);
    uint32_t first = 0;
    for (uint32_t i = 0; i < k; i++)
        first += size_of(f, node->in[i], CHANNELS);
    for (uint32_t axis = 0; axis < AXES; axis++)
        for (uint32_t i = 0; i < size_of(f, t, axis); i++)
            if (made->axis[axis][i + (axis == CHANNELS ? first : 0)])
                mark(&read, axis, i);
    return read;
}

static void node_needs(const Facts *f, NodeId id, Needs *needs) {
    const Node *node = graph_node(f->g, id);
    const Box *made = largest(&needs[node->out[0].i]);
    bool engine = on_engine(f, id), placed = is_placed(f, id);
    if (!made || !(engine || placed))
        return;
    bool by_channel = node->op == OP_CONCAT && node->attr.axis.axis == 1;
    for (uint32_t k = 0; k < node->n_in; k++)
        if (!placed)
            need_more(f, node->in[k], &needs[node->in[k].i],
                      operand_needed(f, id, node->in[k], made));
        else if (by_channel)
            need_more(f, node->in[k], &needs[node->in[k].i],
                      member_needed(f, node, k, made));
        else if (is_whole(f, node->out[0], made))
            need_more(f, node->in[k], &needs[node->in[k].i],
                      whole_box(f, node->in[k]));
}

static Needs *needs_of(const Facts *f) {
    Needs *need = ARENA_ARRAY(f->arena, Needs, f->g->tensor.n + 1);
    for (TensorId t = {0}; t.i < f->g->tensor.n; t.i++)
        if (f->role[t.i].outside || f->role[t.i].kept)
            need_more(f, t, &need[t.i], whole_box(f, t));
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

static uint64_t entering(const Facts *f, TensorId t, const Needs *need) {
    const Box *box = largest(need);
    if (!from_outside(f, t) || !f->role[t.i].engine_reads || !box ||
        may_stay(f, t))
        return 0;
    return volume_of(box);
}

uint64_t maps_compulsory(const Facts *f) {
    const Needs *need = needs_of(f);
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
