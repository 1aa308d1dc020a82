/* rewrite.c - what passes do to a graph, and cleaning up behind them.
 *
 * Invariant: tensor and node ids stay valid until graph_compact, which alone
 * renumbers (and graph_sort, of nodes); dead nodes keep their places till then.
 */
#include "graph/graph.h"

static uint32_t index_of_output(const Graph *g, TensorId tensor) {
    uint32_t i = 0;
    while (!same_tensor(g->output.at[i], tensor))
        i++;
    return i;
}

/* Output `gone` is output `same` as well: those behind it move up. */
static void drop_output(Graph *g, uint32_t gone, uint32_t same) {
    for (uint32_t i = 0; i < g->node.n; i++) {
        Node *node = &g->node.at[i];
        if (node->op != OP_INPUT || !node->attr.state)
            continue;
        uint32_t next = node->attr.state - 1;
        next = next == gone ? same : next;
        node->attr.state = 1 + next - (next > gone);
    }
    for (uint32_t i = gone; i + 1 < g->output.n; i++)
        g->output.at[i] = g->output.at[i + 1];
    g->output.n--;
}

/* `to` in place of `from` in the list of outputs; never twice. */
static void replace_output(Graph *g, TensorId from, TensorId to) {
    if (!graph_is_output(g, from))
        return;
    uint32_t at = index_of_output(g, from);
    graph_tensor(g, from)->is_output = false;
    if (graph_is_output(g, to))
        drop_output(g, at, index_of_output(g, to));
    else
        g->output.at[at] = to;
    graph_tensor(g, to)->is_output = true;
}

void graph_replace(Graph *g, TensorId from, TensorId to) {
    for (uint32_t i = 0; i < g->node.n; i++) {
        const Node *node = &g->node.at[i];
        for (uint32_t k = 0; k < node->n_in; k++)
            if (same_tensor(node->in[k], from))
                node->in[k] = to;
    }
    if (!same_tensor(from, to))
        replace_output(g, from, to);
}

void graph_take_over(Graph *g, TensorId to, TensorId from) {
    Tensor *winner = graph_tensor(g, to), *loser = graph_tensor(g, from);
    const char *name = winner->name; /* swapped, so that names stay unique */
    winner->name = loser->name;
    winner->origin = loser->origin;
    loser->name = name;
    loser->origin = NO_TENSOR;
    graph_replace(g, from, to);
}

void graph_merge_names(Graph *g, NodeId into, NodeId from) {
    Node *keeper = graph_node(g, into);
    const Node *giver = graph_node(g, from);
    uint32_t n = keeper->n_merged + giver->n_merged;
    const char **merged = ARENA_ARRAY(g->arena, const char *, n);
    for (uint32_t i = 0; i < n; i++)
        merged[i] = i < keeper->n_merged ? keeper->merged[i]
                                         : giver->merged[i - keeper->n_merged];
    keeper->merged = merged;
    keeper->n_merged = n;
}

/* ---- compacting ---- */

/* New ids by old id; NONE for what goes. */
typedef struct Renumbering {
    uint32_t *node, *tensor, *constant;
} Renumbering;

typedef struct Marker {
    const Graph *g;
    bool *live; /* by node */
    uint32_t *stack, n;
} Marker;

static void mark(Marker *marker, NodeId node) {
    if (marker->live[node.i] || graph_node(marker->g, node)->dead)
        return;
    marker->live[node.i] = true;
    marker->stack[marker->n++] = node.i;
}

/* Nodes on which a network output depends, and network inputs. */
static const bool *find_live(Arena *scratch, const Graph *g) {
    Marker marker = {
        .g = g,
        .live = ARENA_ARRAY(scratch, bool, g->node.n),
        .stack = ARENA_ARRAY(scratch, uint32_t, g->node.n),
    };
    for (uint32_t i = 0; i < g->node.n; i++)
        if (g->node.at[i].op == OP_INPUT)
            mark(&marker, (NodeId){i});
    for (uint32_t i = 0; i < g->output.n; i++)
        mark(&marker, graph_tensor(g, g->output.at[i])->producer);
    while (marker.n) {
        const Node *node = &g->node.at[marker.stack[--marker.n]];
        for (uint32_t k = 0; k < node->n_in; k++)
            mark(&marker, graph_tensor(g, node->in[k])->producer);
    }
    return marker.live;
}

/* Numbers what stays, in its present order; `keep` holds 0 and 1 at first. */
static uint32_t number(uint32_t *keep, uint32_t n) {
    uint32_t next = 0;
    for (uint32_t i = 0; i < n; i++)
        keep[i] = keep[i] ? next++ : NONE;
    return next;
}

static Renumbering plan_numbers(Arena *scratch, const Graph *g,
                                const bool *live) {
    Renumbering to = {
        .node = ARENA_ARRAY(scratch, uint32_t, g->node.n),
        .tensor = ARENA_ARRAY(scratch, uint32_t, g->tensor.n),
        .constant = ARENA_ARRAY(scratch, uint32_t, g->constant.n),
    };
    for (uint32_t i = 0; i < g->node.n; i++) {
        const Node *node = &g->node.at[i];
        to.node[i] = live[i];
        for (uint32_t o = 0; live[i] && o < node->n_out; o++)
            to.tensor[node->out[o].i] = 1;
        for (int role = 0; live[i] && role < CONST_ROLES; role++)
            if (node->constant[role].i != NONE)
                to.constant[node->constant[role].i] = 1;
    }
    return to;
}

static void renumber_node(Node *node, const Renumbering *to) {
    for (uint32_t k = 0; k < node->n_in; k++)
        node->in[k].i = to->tensor[node->in[k].i];
    for (uint32_t k = 0; k < node->n_out; k++)
        node->out[k].i = to->tensor[node->out[k].i];
    for (int role = 0; role < CONST_ROLES; role++)
        if (node->constant[role].i != NONE)
            node->constant[role].i = to->constant[node->constant[role].i];
}

/* Moves what stays to its new place, which is never behind the old one. */
static void move_down(Graph *g, const Renumbering *to) {
    for (uint32_t i = 0; i < g->node.n; i++)
        if (to->node[i] != NONE) {
            renumber_node(&g->node.at[i], to);
            g->node.at[to->node[i]] = g->node.at[i];
        }
    for (uint32_t t = 0; t < g->tensor.n; t++)
        if (to->tensor[t] != NONE) {
            Tensor tensor = g->tensor.at[t];
            tensor.producer.i = to->node[tensor.producer.i];
            g->tensor.at[to->tensor[t]] = tensor;
        }
    for (uint32_t c = 0; c < g->constant.n; c++)
        if (to->constant[c] != NONE)
            g->constant.at[to->constant[c]] = g->constant.at[c];
    for (uint32_t i = 0; i < g->output.n; i++)
        g->output.at[i].i = to->tensor[g->output.at[i].i];
}

void graph_compact(Graph *g) {
    Arena *scratch = arena_new("graph_compact");
    Renumbering to = plan_numbers(scratch, g, find_live(scratch, g));
    uint32_t n_nodes = number(to.node, g->node.n);
    uint32_t n_tensors = number(to.tensor, g->tensor.n);
    uint32_t n_constants = number(to.constant, g->constant.n);
    move_down(g, &to);
    g->node.n = n_nodes;
    g->tensor.n = n_tensors;
    g->constant.n = n_constants;
    arena_free(scratch);
}
