/* groups.c - which tensors are quantised alike, and which not at all; see
 * scheme.h.
 *
 * Codes that only move keep their scale: a pool, a reshape, a concat and its
 * members have one. What ends in a known range, a softmax for instance, has
 * scale and zero from that, as TensorFlow Lite has them.
 */
#include "quantise/scheme.h"

#include "graph/quant.h"

#include <string.h>

static uint32_t root(uint32_t *of, uint32_t t) {
    while (of[t] != t)
        t = of[t] = of[of[t]];
    return t;
}

static void join(uint32_t *of, TensorId a, TensorId b) {
    uint32_t x = root(of, a.i), y = root(of, b.i);
    of[x > y ? x : y] = x < y ? x : y;
}

/* Averages as they are; one over a whole plane has a narrower range. */
static bool averages_alike(const Graph *g, const Node *node) {
    const Shape *out = &graph_tensor(g, node->out[0])->shape;
    return node->op == OP_POOL && node->attr.pool.kind == POOL_AVG &&
           out->rank == 4 && out->dim[2] * out->dim[3] > 1;
}

static void join_node(const Graph *g, const Node *node, uint32_t *of) {
    for (uint32_t o = 1; o < node->n_out; o++)
        join(of, node->out[0], node->out[o]);
    bool moves = node->op != OP_ACT && quant_moves(g, node);
    if (!moves && !averages_alike(g, node))
        return;
    for (uint32_t k = 0; k < node->n_in; k++)
        join(of, node->in[0], node->in[k]);
    if (node->n_in && node->act.kind == ACT_NONE)
        join(of, node->in[0], node->out[0]);
}

QuantiseBits groups_bits(const QuantiseOptions *options, const Node *node) {
    QuantiseBits bits = {NULL, 8, 8};
    for (uint32_t i = 0; i < options->n_bits; i++)
        if (!options->bits[i].layer ||
            !strcmp(options->bits[i].layer, node->name))
            bits = options->bits[i];
    return bits;
}

/* ---- real numbers ---- */

static bool is_index(const Node *node) {
    return node->op == OP_REDUCE && node->attr.reduce.kind >= REDUCE_ARGMAX &&
           node->attr.reduce.kind <= REDUCE_ARGMIN_LAST;
}

/* A tensor between layers on real numbers alone is none of codes. */
static void mark_real(const Graph *g, const QuantiseOptions *options,
                      bool *real) {
    for (uint32_t t = 0; t < g->tensor.n; t++)
        real[t] = true;
    for (uint32_t i = 0; i < g->node.n; i++) {
        const Node *node = &g->node.at[i];
        bool layer_real = groups_bits(options, node).volume == 0;
        if (is_index(node))
            continue;
        for (uint32_t o = 0; !layer_real && o < node->n_out; o++)
            real[node->out[o].i] = false;
        for (uint32_t k = 0; !layer_real && k < node->n_in; k++)
            real[node->in[k].i] = false;
    }
    for (uint32_t i = 0; i < g->node.n; i++)
        for (uint32_t o = 0;
             is_index(&g->node.at[i]) && o < g->node.at[i].n_out; o++)
            real[g->node.at[i].out[o].i] = true;
}

/* ---- known ranges ---- */

static Quant known(const Node *node, const QuantiseOptions *options) {
    const QuantiseNumbers *n = &options->numbers;
    const QuantTypeInfo *type = &quant_type[n->type];
    Quant q = {n->type, type->lo, 0x1p-8, n->round};
    bool unit = node->op == OP_SOFTMAX ||
                (node->op == OP_ACT && node->act.kind == ACT_SIGMOID);
    if (n->symmetric || groups_bits(options, node).volume != 8)
        return (Quant){0};
    if (unit)
        return q;
    if (node->op == OP_ACT && node->act.kind == ACT_TANH)
        return (Quant){n->type, type->lo + 128, 0x1p-7, n->round};
    return (Quant){0};
}

static void fix_known(const Graph *g, const QuantiseOptions *options,
                      Groups *groups) {
    uint32_t *producers = ARENA_ARRAY(g->arena, uint32_t, g->tensor.n);
    for (uint32_t i = 0; i < g->node.n; i++) {
        const Node *node = &g->node.at[i];
        if (node->n_in && quant_moves(g, node) && node->op != OP_ACT)
            continue;
        for (uint32_t o = 0; o < node->n_out; o++)
            producers[groups->of[node->out[o].i]]++;
    }
    for (uint32_t i = 0; i < g->node.n; i++) {
        uint32_t group = groups->of[g->node.at[i].out[0].i];
        if (producers[group] == 1)
            groups->fixed[group] = groups->fixed[group].type
                                       ? groups->fixed[group]
                                       : known(&g->node.at[i], options);
    }
}

Groups groups_of(Arena *arena, const Graph *g, const QuantiseOptions *options) {
    uint32_t n = g->tensor.n;
    Groups groups = {ARENA_ARRAY(arena, uint32_t, n),
                     ARENA_ARRAY(arena, bool, n), ARENA_ARRAY(arena, Quant, n),
                     ARENA_ARRAY(arena, bool, n)};
    bool *real = ARENA_ARRAY(arena, bool, n);
    for (uint32_t t = 0; t < n; t++)
        groups.of[t] = t;
    for (uint32_t i = 0; i < g->node.n; i++)
        join_node(g, &g->node.at[i], groups.of);
    for (uint32_t t = 0; t < n; t++)
        groups.of[t] = root(groups.of, t);
    mark_real(g, options, real);
    for (uint32_t t = 0; t < n; t++)
        groups.real[groups.of[t]] |= real[t];
    for (uint32_t i = 0; i < g->node.n; i++) {
        const Node *node = &g->node.at[i];
        if (groups_bits(options, node).volume == 16)
            groups.wide[groups.of[node->out[0].i]] = true;
    }
    fix_known(g, options, &groups);
    return groups;
}

bool groups_sums(const Graph *g, const Groups *groups, const Node *node) {
    bool layer =
        node->op == OP_CONV || node->op == OP_DECONV || node->op == OP_FC;
    if (!layer || node->constant[CONST_WEIGHT].i == NONE || node->n_out != 1)
        return false;
    if (node->op == OP_DECONV && node->attr.conv.groups > 1)
        return false;
    if (node->act.kind == ACT_PRELU ||
        graph_tensor(g, node->in[0])->shape.rank == 0)
        return false;
    return !groups->real[groups->of[node->in[0].i]] &&
           !groups->real[groups->of[node->out[0].i]];
}
