/* graph.c - building graphs, their uses, and deep copies.
 *
 * In: calls of a front end or a pass. Out: a Graph in which every name is
 * unique; shapes and order are the business of shape.c and sort.c. Names that
 * are taken are found through a map from name to the next suffix to try, so
 * that ten thousand layers called "conv" cost no more than other names.
 */
#include "graph/graph.h"
#include "graph/op_traits.h"

#include <assert.h>
#include <string.h>

const OpInfo op_info[OP_COUNT] = {
#define OP(NAME, name, min, max, doc) {#name, min, max, doc},
#include "graph/ops.def"
#undef OP
};

const char *const act_name[ACT_COUNT + 1] = {
#define ACT(NAME, name) #name,
#include "base/acts.def"
#undef ACT
    NULL,
};

const char *const pool_name[POOL_COUNT + 1] = {"max", "avg", NULL};

const char *const elt_name[ELT_COUNT + 1] = {
#define ELT(NAME, text, value) text,
#include "graph/elts.def"
#undef ELT
    NULL,
};

const char *const reduce_name[REDUCE_COUNT + 1] = {
    "mean",   "sum",         "max",     "min",         "prod",
    "l1",     "l2",          "squares", "log_sum",     "log_sum_exp",
    "argmax", "argmax_last", "argmin",  "argmin_last", NULL,
};

const char *const const_role_name[CONST_ROLES + 1] = {
    "weight", "bias", "scale", "mean", "var", "slope", "values", "index", NULL,
};

Graph *graph_new(Arena *arena, const char *name) {
    Graph *g = ARENA_NEW(arena, Graph);
    g->arena = arena;
    g->name = arena_strdup(arena, name);
    g->node_names = map_new(arena);
    g->tensor_names = map_new(arena);
    return g;
}

/* A copy of `name`, or of name_2, name_3... where that is taken. */
static const char *unique_name(Graph *g, Map *taken, const char *name) {
    uint32_t suffix = map_get(taken, name, 0);
    const char *unique = arena_strdup(g->arena, name);
    if (suffix) {
        do
            unique = arena_printf(g->arena, "%s_%u", name, suffix++);
        while (map_get(taken, unique, 0));
        map_put(taken, name, suffix);
    }
    map_put(taken, unique, 2);
    return unique;
}

static void default_attributes(Node *node) {
    if (node->op == OP_CONV || node->op == OP_DECONV ||
        node->op == OP_CONV_POOL) {
        ConvAttr *conv = &node->attr.conv;
        conv->groups = 1;
        for (int axis = 0; axis < 2; axis++)
            conv->stride[axis] = conv->dilation[axis] = 1;
    }
    if (node->op == OP_POOL || node->op == OP_CONV_POOL)
        for (int axis = 0; axis < 2; axis++)
            node->attr.pool.stride[axis] = 1;
    if (node->op == OP_UPSAMPLE)
        for (int axis = 0; axis < 2; axis++)
            node->attr.up.factor[axis] = 1;
}

NodeId graph_add(Graph *g, OpKind op, const char *name, Loc loc, uint32_t n_in,
                 const TensorId *in) {
    if (!name || !*name)
        name = op_info[op].name;
    Node node = {
        .op = op,
        .name = unique_name(g, g->node_names, name),
        .loc = loc,
        .n_in = n_in,
        .in = ARENA_COPY(g->arena, TensorId, in, n_in),
        .n_merged = 1,
    };
    node.merged = ARENA_COPY(g->arena, const char *, &node.name, 1);
    for (int role = 0; role < CONST_ROLES; role++)
        node.constant[role] = NO_CONST;
    default_attributes(&node);
    vec_push(g->arena, &g->node, node);
    return (NodeId){g->node.n - 1};
}

TensorId graph_add_output(Graph *g, NodeId node, const char *name) {
    Node *producer = graph_node(g, node);
    if (!name || !*name)
        name = producer->name;
    Tensor tensor = {
        .name = unique_name(g, g->tensor_names, name),
        .producer = node,
        .origin = NO_TENSOR,
        .loc = producer->loc,
    };
    vec_push(g->arena, &g->tensor, tensor);
    TensorId id = {g->tensor.n - 1};
    TensorId *out = ARENA_ARRAY(g->arena, TensorId, producer->n_out + 1);
    for (uint32_t i = 0; i < producer->n_out; i++)
        out[i] = producer->out[i];
    out[producer->n_out++] = id;
    producer->out = out;
    return id;
}

void graph_rename(Graph *g, TensorId tensor, const char *node,
                  const char *name) {
    Tensor *t = graph_tensor(g, tensor);
    Node *producer = graph_node(g, t->producer);
    if (strcmp(t->name, name) != 0)
        t->name = unique_name(g, g->tensor_names, name);
    if (strcmp(producer->name, node) == 0)
        return;
    producer->name = unique_name(g, g->node_names, node);
    producer->merged[0] = producer->name;
}

ConstId graph_add_const(Graph *g, Const value) {
    vec_push(g->arena, &g->constant, value);
    return (ConstId){g->constant.n - 1};
}

bool graph_is_output(const Graph *g, TensorId tensor) {
    return tensor.i < g->tensor.n && g->tensor.at[tensor.i].is_output;
}

void graph_gloss(Graph *g, const char *sentence) {
    for (uint32_t i = 0; i < g->glossary.n; i++)
        if (!strcmp(g->glossary.at[i], sentence))
            return;
    vec_push(g->arena, &g->glossary, sentence);
}

void graph_mark_output(Graph *g, TensorId tensor) {
    Tensor *t = graph_tensor(g, tensor);
    if (!t->is_output)
        vec_push(g->arena, &g->output, tensor);
    t->is_output = true;
}

void graph_mark_original(Graph *g) {
    for (uint32_t i = 0; i < g->tensor.n; i++)
        g->tensor.at[i].origin = (TensorId){i};
}

bool node_goes_by_pixel(const Node *node) {
    switch (node->op) {
    case OP_SOFTMAX:
        return node->attr.axis.axis == 1;
    case OP_REDUCE:
        return node->attr.reduce.axes == 1u << 1;
    case OP_NORM:
        return node->attr.norm.axis == 1 && node->attr.norm.axes == 1;
    default:
        return op_has(node->op, OP_BY_PIXEL);
    }
}

bool node_convolves(const Node *node) {
    return node->op == OP_CONV || node->op == OP_CONV_POOL ||
           node->op == OP_DECONV;
}

bool node_in_groups(const Node *node) {
    return node_convolves(node) && node->attr.conv.groups > 1;
}

bool node_reads_whole(const Node *node, TensorId tensor) {
    return node->op == OP_MIX && same_tensor(node->in[1], tensor);
}

bool node_mixes_all(const Node *node) {
    const uint32_t *windows = node->attr.mix.windows;
    const uint32_t *shift = node->attr.mix.shift;
    return node->op == OP_MIX && windows[0] == 1 && windows[1] == 1 &&
           !shift[0] && !shift[1];
}

bool node_goes_by_row(const Node *node) {
    const Shape *perm = &node->attr.perm;
    return node_mixes_all(node) ||
           (node->op == OP_TRANSPOSE && perm->rank == 4 && perm->dim[0] == 0 &&
            perm->dim[2] == 2);
}

Uses graph_uses(Arena *arena, const Graph *g) {
    uint32_t n = g->tensor.n;
    Uses uses = {.start = ARENA_ARRAY(arena, uint32_t, (size_t)n + 2)};
    /* start[t + 2] counts, then start[t + 1] is where the next reader of t
     * goes, then it is where t's readers end. */
    uint32_t *next = uses.start + 1, total = 0;
    for (uint32_t i = 0; i < g->node.n; i++)
        for (uint32_t k = 0; !g->node.at[i].dead && k < g->node.at[i].n_in; k++)
            next[g->node.at[i].in[k].i + 1]++;
    for (uint32_t t = 0; t <= n; t++)
        total = next[t] += total;
    uses.node = ARENA_ARRAY(arena, NodeId, total);
    for (uint32_t i = 0; i < g->node.n; i++)
        for (uint32_t k = 0; !g->node.at[i].dead && k < g->node.at[i].n_in; k++)
            uses.node[next[g->node.at[i].in[k].i]++] = (NodeId){i};
    return uses;
}

/* ---- copies ---- */

typedef struct Copier {
    Arena *arena;
    const char *file_from, *file_to; /* the last file name that was copied */
} Copier;

static Loc copy_loc(Copier *copier, Loc loc) {
    if (loc.file && loc.file != copier->file_from) {
        copier->file_from = loc.file;
        copier->file_to = arena_strdup(copier->arena, loc.file);
    }
    if (loc.file)
        loc.file = copier->file_to;
    return loc;
}

static void copy_node(Copier *copier, Node *node) {
    Arena *arena = copier->arena;
    const EltAttr *elt = node->op == OP_ELTWISE ? &node->attr.elt : NULL;
    node->name = arena_strdup(arena, node->name);
    node->loc = copy_loc(copier, node->loc);
    node->in = ARENA_COPY(arena, TensorId, node->in, node->n_in);
    node->out = ARENA_COPY(arena, TensorId, node->out, node->n_out);
    if (elt && elt->coeff)
        node->attr.elt.coeff =
            ARENA_COPY(arena, double, elt->coeff, node->n_in);
    if (node->conv_name)
        node->conv_name = arena_strdup(arena, node->conv_name);
    node->merged =
        ARENA_COPY(arena, const char *, node->merged, node->n_merged);
    for (uint32_t i = 0; i < node->n_merged; i++)
        node->merged[i] = arena_strdup(arena, node->merged[i]);
}

static void copy_const(Arena *arena, Const *c) {
    if (c->mul0)
        c->mul0 = ARENA_COPY(arena, double, c->mul0, shape_dim(&c->shape, 0));
    if (c->mul1)
        c->mul1 = ARENA_COPY(arena, double, c->mul1, shape_dim(&c->shape, 1));
}

Graph *graph_clone(Arena *arena, const Graph *g) {
    Graph *copy = graph_new(arena, g->name);
    Copier copier = {.arena = arena};
    for (uint32_t i = 0; i < g->node.n; i++) {
        Node node = g->node.at[i];
        copy_node(&copier, &node);
        vec_push(arena, &copy->node, node);
        map_put(copy->node_names, node.name, 2);
    }
    for (uint32_t i = 0; i < g->tensor.n; i++) {
        Tensor tensor = g->tensor.at[i];
        tensor.name = arena_strdup(arena, tensor.name);
        tensor.loc = copy_loc(&copier, tensor.loc);
        vec_push(arena, &copy->tensor, tensor);
        map_put(copy->tensor_names, tensor.name, 2);
    }
    for (uint32_t i = 0; i < g->constant.n; i++) {
        Const c = g->constant.at[i];
        copy_const(arena, &c);
        vec_push(arena, &copy->constant, c);
    }
    for (uint32_t i = 0; i < g->output.n; i++)
        vec_push(arena, &copy->output, g->output.at[i]);
    for (uint32_t i = 0; i < g->glossary.n; i++)
        graph_gloss(copy, arena_strdup(arena, g->glossary.at[i]));
    return copy;
}

/* ---- several images ---- */

static const char *name_of_image(Graph *g, Map *taken, const char *name,
                                 uint32_t image) {
    return unique_name(g, taken, arena_printf(g->arena, "%s@%u", name, image));
}

static const char *merged_name(const Graph *g, const Node *node,
                               const Node *copy, uint32_t i, uint32_t image) {
    const char *name = node->merged[i];
    if (!strcmp(name, node->name))
        return copy->name;
    if (node->conv_name && !strcmp(name, node->conv_name))
        return copy->conv_name;
    return arena_printf(g->arena, "%s@%u", name, image);
}

static void repeat_node(Graph *g, const Node *node, uint32_t image,
                        uint32_t n_tensors) {
    Copier copier = {.arena = g->arena};
    Node copy = *node;
    copy_node(&copier, &copy);
    copy.name = name_of_image(g, g->node_names, node->name, image + 1);
    for (uint32_t i = 0; i < copy.n_in; i++)
        copy.in[i].i += image * n_tensors;
    for (uint32_t i = 0; i < copy.n_out; i++)
        copy.out[i].i += image * n_tensors;
    if (copy.conv_name)
        copy.conv_name =
            name_of_image(g, g->node_names, node->conv_name, image + 1);
    for (uint32_t i = 0; i < copy.n_merged; i++)
        copy.merged[i] = merged_name(g, node, &copy, i, image + 1);
    vec_push(g->arena, &g->node, copy);
}

static void repeat_tensor(Graph *g, const Tensor *tensor, uint32_t image,
                          uint32_t n_nodes, uint32_t n_origins) {
    Tensor copy = *tensor;
    copy.name = name_of_image(g, g->tensor_names, tensor->name, image + 1);
    copy.producer.i += image * n_nodes;
    if (copy.origin.i != NONE)
        copy.origin.i += image * n_origins;
    vec_push(g->arena, &g->tensor, copy);
}

Graph *graph_repeat(Arena *arena, const Graph *g, uint32_t images,
                    uint32_t n_origins) {
    Graph *all = graph_clone(arena, g);
    for (uint32_t image = 1; image < images; image++) {
        for (uint32_t i = 0; i < g->node.n; i++)
            repeat_node(all, &g->node.at[i], image, g->tensor.n);
        for (uint32_t i = 0; i < g->tensor.n; i++)
            repeat_tensor(all, &g->tensor.at[i], image, g->node.n, n_origins);
        for (uint32_t i = 0; i < g->output.n; i++)
            vec_push(arena, &all->output,
                     ((TensorId){g->output.at[i].i + image * g->tensor.n}));
    }
    return all;
}
