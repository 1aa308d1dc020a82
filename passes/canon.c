/* canon.c - the pass `canon`: one form for what files write in several.
 *
 * In: a graph. Out: the same values.
 * - Operands of sums, products and the like stand in the order of the graph.
 * - Sums, reshapes, slices and the like of the same tensors are one.
 * - A concat that something else than a concat reads has as members the longest
 *   runs of its tensors that are such concats themselves, from the first tensor
 *   on. A dense block whose layers each list all features so far is then the
 *   one whose concats hold each other: all lie in one buffer.
 *
 * A concat's *leaves* are its members, or what those are concats of along the
 * same axis. Two with the same leaves are one. Lists of leaves can be longer
 * than the file by a power: what is beyond the budget stays as it is written.
 */
#include "passes/passes_int.h"

#include "graph/quant.h"

#include <stdlib.h>
#include <string.h>

/* Leaves that are listed, and leaves that are compared, at most. */
enum { MOST_LEAVES = 1 << 23, MOST_COMPARED = 1 << 26 };

/* A concat that can be taken apart. */
typedef struct Flat {
    NodeId node;
    uint32_t n;      /* leaves */
    uint32_t before; /* the node before which it is wanted, or itself */
    const TensorId *leaf;
    bool needed;   /* by more than concats along its axis */
    uint32_t next; /* with the same first leaf, that has no more leaves; NONE */
} Flat;

typedef struct Canon {
    Graph *g;
    PassContext *context;
    VEC(Flat) flat;    /* in the order of the graph */
    uint32_t *of;      /* by node: its Flat; NONE */
    uint32_t *first;   /* by tensor: the longest needed one that begins with
                        * it; NONE */
    uint32_t *twin;    /* by tensor: the last layer that reads it first, and may
                        * have twins; NONE */
    uint32_t *older;   /* by node: the one before it; NONE */
    TensorId *instead; /* by tensor: one with the same values; itself */
    uint32_t leaves;   /* that may still be listed, */
    uint32_t compared; /* or compared */
} Canon;

static const Node *flat_node(const Canon *x, uint32_t flat) {
    return graph_node(x->g, x->flat.at[flat].node);
}

/* ---- layers that are one ---- */

/* Two operands whose order changes nothing. */
static bool commutes(const Graph *g, const Node *node) {
    return node->op == OP_ELTWISE && node->n_in == 2 &&
           (node->attr.elt.kind == ELT_ADD || node->attr.elt.kind == ELT_MUL) &&
           !node->attr.elt.coeff && !quant_is_at(g, node) &&
           shape_equal(&graph_tensor(g, node->in[0])->shape,
                       &graph_tensor(g, node->in[1])->shape);
}

static void operands_order(const Graph *g, const Node *node) {
    TensorId *in = node->in;
    if (!commutes(g, node) || in[0].i == in[1].i ||
        graph_tensor(g, in[0])->producer.i < graph_tensor(g, in[1])->producer.i)
        return;
    TensorId first = in[0];
    in[0] = in[1];
    in[1] = first;
}

/* Without constants, and told by its inputs, its attributes and its output. */
static bool may_have_twin(const Node *node) {
    const uint64_t ops = OPS(ELTWISE) | OPS(RESHAPE) | OPS(SLICE) |
                         OPS(TRANSPOSE) | OPS(UPSAMPLE);
    return !node->dead && (ops >> node->op & 1) && node->n_in > 0 &&
           node->n_out == 1 && node->act.kind == ACT_NONE;
}

static bool attributes_equal(const Node *a, const Node *b) {
    switch (a->op) {
    case OP_ELTWISE:
        return a->attr.elt.kind == b->attr.elt.kind && !a->attr.elt.coeff &&
               !b->attr.elt.coeff;
    case OP_SLICE:
        return a->attr.slice.axis == b->attr.slice.axis &&
               a->attr.slice.begin == b->attr.slice.begin;
    case OP_TRANSPOSE:
        return shape_equal(&a->attr.perm, &b->attr.perm);
    default:
        return true; /* the output's shape tells */
    }
}

static bool are_twins(const Graph *g, const Node *a, const Node *b) {
    const Tensor *x = graph_tensor(g, a->out[0]);
    const Tensor *y = graph_tensor(g, b->out[0]);
    return a->op == b->op && a->n_in == b->n_in &&
           !memcmp(a->in, b->in, a->n_in * sizeof *a->in) &&
           attributes_equal(a, b) && shape_equal(&x->shape, &y->shape) &&
           quant_equal(&x->quant, &y->quant);
}

/* Readers of a layer that is there already read that. */
static void twin_find(Canon *x, uint32_t at) {
    const Node *node = &x->g->node.at[at];
    uint32_t first = node->in[0].i, other = x->twin[first];
    while (other != NONE && !are_twins(x->g, node, &x->g->node.at[other]))
        other = x->older[other];
    if (other == NONE) {
        x->older[at] = x->twin[first];
        x->twin[first] = at;
    } else if (!graph_is_output(x->g, node->out[0])) {
        x->instead[node->out[0].i] = x->g->node.at[other].out[0];
        graph_merge_names(x->g, (NodeId){other}, (NodeId){at});
    }
}

/* Those that were merged before stay away. */
static void layers_merge(Canon *x) {
    for (uint32_t t = 0; t < x->g->tensor.n; t++)
        x->twin[t] = NONE;
    for (uint32_t i = 0; i < x->g->node.n; i++) {
        const Node *node = &x->g->node.at[i];
        for (uint32_t k = 0; k < node->n_in; k++)
            node->in[k] = x->instead[node->in[k].i];
        operands_order(x->g, node);
        if (may_have_twin(node) &&
            same_tensor(x->instead[node->out[0].i], node->out[0]))
            twin_find(x, i);
    }
}

/* ---- sorting ---- */

/* What nodes and concats are sorted by. */
typedef struct Key {
    uint32_t before, n, own;
} Key;

static int earlier(const void *a, const void *b) {
    const Key *x = a, *y = b;
    if (x->before != y->before)
        return x->before < y->before ? -1 : 1;
    if (x->n != y->n)
        return x->n < y->n ? -1 : 1;
    return (x->own > y->own) - (x->own < y->own);
}

/* ---- leaves ---- */

static bool can_be_apart(const Graph *g, const Node *node) {
    return !node->dead && node->op == OP_CONCAT && node->act.kind == ACT_NONE &&
           quant_is_one(g, node);
}

/* The concat along the axis of `node` that makes its member; NONE. */
static uint32_t member_flat(const Canon *x, const Node *node, uint32_t k) {
    NodeId maker = graph_tensor(x->g, node->in[k])->producer;
    uint32_t flat = x->of[maker.i];
    return flat != NONE &&
                   flat_node(x, flat)->attr.axis.axis == node->attr.axis.axis
               ? flat
               : NONE;
}

static uint64_t count_leaves(const Canon *x, const Node *node) {
    uint64_t n = 0;
    for (uint32_t k = 0; k < node->n_in; k++) {
        uint32_t flat = member_flat(x, node, k);
        n += flat == NONE ? 1 : x->flat.at[flat].n;
    }
    return n;
}

static void flat_add(Canon *x, NodeId id) {
    const Node *node = graph_node(x->g, id);
    uint64_t n = count_leaves(x, node);
    if (n > x->leaves)
        return;
    x->leaves -= (uint32_t)n;
    TensorId *leaf = ARENA_ARRAY(x->context->scratch, TensorId, n + 1);
    Flat own = {.node = id, .before = id.i, .leaf = leaf, .next = NONE};
    for (uint32_t k = 0; k < node->n_in; k++) {
        uint32_t flat = member_flat(x, node, k);
        uint32_t count = flat == NONE ? 1 : x->flat.at[flat].n;
        memcpy(leaf + own.n,
               flat == NONE ? &node->in[k] : x->flat.at[flat].leaf,
               count * sizeof *leaf);
        own.n += count;
    }
    x->of[id.i] = x->flat.n;
    vec_push(x->context->scratch, &x->flat, own);
}

static void find_needed(Canon *x) {
    for (uint32_t i = 0; i < x->g->node.n; i++) {
        const Node *node = &x->g->node.at[i];
        for (uint32_t k = 0; k < node->n_in && !node->dead; k++) {
            NodeId maker = graph_tensor(x->g, node->in[k])->producer;
            if (x->of[maker.i] != NONE &&
                (x->of[i] == NONE || member_flat(x, node, k) == NONE))
                x->flat.at[x->of[maker.i]].needed = true;
        }
    }
    for (uint32_t i = 0; i < x->flat.n; i++)
        x->flat.at[i].needed |= graph_is_output(x->g, flat_node(x, i)->out[0]);
}

/* ---- those that are one ---- */

static bool leaves_equal(Canon *x, const TensorId *a, const Flat *b) {
    x->compared -= b->n < x->compared ? b->n : x->compared;
    return x->compared && !memcmp(a, b->leaf, b->n * sizeof *a);
}

static bool same_axis(const Canon *x, uint32_t a, uint32_t b) {
    return flat_node(x, a)->attr.axis.axis == flat_node(x, b)->attr.axis.axis;
}

static void wanted_before(Canon *x, uint32_t flat, uint32_t node) {
    uint32_t *before = &x->flat.at[flat].before;
    *before = node < *before ? node : *before;
}

/* Readers of `from` read what `to` makes. */
static void flat_merge(Canon *x, uint32_t to, uint32_t from) {
    Flat *gone = &x->flat.at[from];
    x->instead[flat_node(x, from)->out[0].i] = flat_node(x, to)->out[0];
    graph_merge_names(x->g, x->flat.at[to].node, gone->node);
    gone->needed = false;
    wanted_before(x, to, gone->before);
}

/* Into the list of those that begin with its first leaf; it, or the one that
 * has the same leaves, goes. Of two results of the network neither does. */
static void flat_link(Canon *x, uint32_t at) {
    Flat *own = &x->flat.at[at];
    uint32_t *link = &x->first[own->leaf[0].i];
    for (; *link != NONE && x->flat.at[*link].n >= own->n;
         link = &x->flat.at[*link].next) {
        uint32_t other = *link;
        if (x->flat.at[other].n > own->n || !same_axis(x, at, other) ||
            !leaves_equal(x, own->leaf, &x->flat.at[other]))
            continue;
        if (!graph_is_output(x->g, flat_node(x, at)->out[0])) {
            flat_merge(x, other, at);
            return;
        }
        if (graph_is_output(x->g, flat_node(x, other)->out[0]))
            continue;
        flat_merge(x, at, other);
        own->next = x->flat.at[other].next;
        *link = at;
        return;
    }
    own->next = *link;
    *link = at;
}

/* ---- members ---- */

/* The longest other one whose leaves are those of `own` from `begin` on. */
static uint32_t longest_run(Canon *x, uint32_t own, uint32_t begin) {
    const Flat *whole = &x->flat.at[own];
    uint32_t i = x->first[whole->leaf[begin].i];
    for (; i != NONE; i = x->flat.at[i].next) {
        const Flat *run = &x->flat.at[i];
        if (run->n < whole->n && run->n <= whole->n - begin &&
            same_axis(x, i, own) && leaves_equal(x, whole->leaf + begin, run))
            return i;
    }
    return NONE;
}

static void flat_nest(Canon *x, uint32_t at) {
    const Flat *own = &x->flat.at[at];
    Node *node = graph_node(x->g, own->node);
    TensorId *in = ARENA_ARRAY(x->context->scratch, TensorId, own->n);
    uint32_t n = 0;
    for (uint32_t i = 0; i < own->n;) {
        uint32_t run = longest_run(x, at, i);
        if (run != NONE)
            wanted_before(x, run, own->before);
        in[n++] = run == NONE ? own->leaf[i] : flat_node(x, run)->out[0];
        i += run == NONE ? 1 : x->flat.at[run].n;
    }
    bool same = n == node->n_in && !memcmp(in, node->in, n * sizeof *in);
    if (same)
        return;
    if (x->context->log)
        fprintf(x->context->log, "canon: %s\n", node->name);
    node->in = ARENA_COPY(x->g->arena, TensorId, in, n);
    node->n_in = n;
}

/* Those with more leaves first, so that it is known where they are wanted. */
static void flats_nest(Canon *x) {
    Key *key = ARENA_ARRAY(x->context->scratch, Key, x->flat.n);
    for (uint32_t i = 0; i < x->flat.n; i++)
        key[i] = (Key){UINT32_MAX - x->flat.at[i].n, 0, i};
    qsort(key, x->flat.n, sizeof *key, earlier);
    for (uint32_t i = 0; i < x->flat.n; i++)
        if (x->flat.at[key[i].own].needed)
            flat_nest(x, key[i].own);
}

/* ---- order ---- */

/* Those that are members of one that stands before them go there. */
static void nodes_order(Canon *x) {
    uint32_t n = x->g->node.n;
    Key *key = ARENA_ARRAY(x->context->scratch, Key, n);
    uint32_t *order = ARENA_ARRAY(x->context->scratch, uint32_t, n);
    for (uint32_t i = 0; i < n; i++)
        key[i] = (Key){i, 0, i};
    for (uint32_t i = 0; i < x->flat.n; i++) {
        const Flat *own = &x->flat.at[i];
        key[own->node.i] = (Key){own->before, own->n, own->node.i};
    }
    qsort(key, n, sizeof *key, earlier);
    for (uint32_t i = 0; i < n; i++)
        order[i] = key[i].own;
    graph_reorder(x->context->scratch, x->g, order);
}

static void concats_merge(Canon *x) {
    for (NodeId id = {0}; id.i < x->g->node.n; id.i++)
        if (can_be_apart(x->g, graph_node(x->g, id)))
            flat_add(x, id);
    if (!x->flat.n)
        return;
    find_needed(x);
    for (uint32_t i = 0; i < x->flat.n; i++)
        if (x->flat.at[i].needed)
            flat_link(x, i);
    flats_nest(x);
    layers_merge(x);
    nodes_order(x);
}

bool canon_run(Graph *g, PassContext *context) {
    Arena *scratch = context->scratch;
    Canon x = {.g = g,
               .context = context,
               .of = ARENA_ARRAY(scratch, uint32_t, g->node.n),
               .older = ARENA_ARRAY(scratch, uint32_t, g->node.n),
               .first = ARENA_ARRAY(scratch, uint32_t, g->tensor.n),
               .twin = ARENA_ARRAY(scratch, uint32_t, g->tensor.n),
               .instead = ARENA_ARRAY(scratch, TensorId, g->tensor.n),
               .leaves = MOST_LEAVES,
               .compared = MOST_COMPARED};
    for (TensorId t = {0}; t.i < g->tensor.n; t.i++) {
        x.first[t.i] = NONE;
        x.instead[t.i] = t;
    }
    for (uint32_t i = 0; i < g->node.n; i++)
        x.of[i] = NONE;
    layers_merge(&x);
    concats_merge(&x);
    graph_compact(g);
    return true;
}
