/* terms.c - what errors of values go with; see terms.h.
 *
 * Method: the sum of absolute terms is what the node itself computes with
 * absolute constants and without its activation, where each element of an
 * operand is the operand's scale.
 */
#include "driver/terms.h"

#include "graph/op_traits.h"
#include "graph/quant.h"

#include <math.h>
#include <string.h>

/* Of the largest sum of terms, at least, is a scale: with the usual tolerance
 * of 1e-4 a rounding of each term (6e-8) agrees. */
static const double least_of_terms = 1e-3;

static bool hands_on(const Node *node) {
    return node->op == OP_POOL ? node->attr.pool.kind == POOL_MAX
                               : op_has(node->op, OP_MOVES);
}

/* What is no sum rounds as its largest operand does. */
static bool add_terms(Arena *arena, Node *node) {
    switch (node->op) {
    case OP_CONV:
    case OP_DECONV:
    case OP_CONV_POOL:
    case OP_FC:
    case OP_BN:
    case OP_SCALE:
    case OP_POOL:
    case OP_MATMUL:
    case OP_GATHER:
        return true;
    case OP_MIX:
        return !node->attr.mix.attends;
    case OP_ELTWISE: {
        EltAttr *elt = &node->attr.elt;
        bool sum = elt->kind == ELT_ADD || elt->kind == ELT_SUB;
        double *coeff = ARENA_ARRAY(arena, double, node->n_in);
        for (uint32_t k = 0; k < node->n_in; k++)
            coeff[k] = elt->coeff ? fabs(elt->coeff[k]) : 1;
        *elt = (EltAttr){sum ? ELT_ADD : ELT_MAX, sum ? coeff : NULL};
        return true;
    }
    case OP_REDUCE: {
        ReduceKind *kind = &node->attr.reduce.kind;
        if (*kind != REDUCE_SUM && *kind != REDUCE_MEAN)
            *kind = REDUCE_MAX;
        return true;
    }
    default:
        return false;
    }
}

/* The node's constants in `g`, as absolute values. A mean is taken away. */
static void take_absolute(Arena *arena, Graph *g, Node *node) {
    uint32_t n = g->constant.n;
    Const *all = ARENA_ARRAY(arena, Const, n + CONST_ROLES);
    memcpy(all, g->constant.at, n * sizeof *all);
    for (int r = 0; r < CONST_ROLES; r++) {
        if (node->constant[r].i == NONE || r == CONST_INDEX || r == CONST_VAR)
            continue;
        const Const *from = graph_const(g, node->constant[r]);
        uint64_t size = shape_count(&from->shape);
        float *value = ARENA_ARRAY(arena, float, size);
        const_read(from, value);
        for (uint64_t i = 0; i < size; i++)
            value[i] = r == CONST_MEAN ? -fabsf(value[i]) : fabsf(value[i]);
        all[n] =
            (Const){.shape = from->shape, .kind = CONST_F32, .data = value};
        node->constant[r] = (ConstId){n++};
    }
    g->constant.at = all;
    g->constant.n = n;
}

static double largest(const float *value, uint64_t n) {
    double most = 0;
    for (uint64_t i = 0; i < n; i++)
        if (isfinite(value[i]))
            most = fmax(most, fabs((double)value[i]));
    return most;
}

static uint64_t size_of(const Graph *g, TensorId tensor) {
    return shape_count(&graph_tensor(g, tensor)->shape);
}

/* The largest over the result; 0: it is no sum, or one of codes. */
static double sum_of_terms(Arena *arena, const Graph *g, Node node,
                           const double *scale) {
    Graph own = *g;
    node.act = (Act){0};
    if (quant_is_at(g, &node) || !add_terms(arena, &node))
        return 0;
    take_absolute(arena, &own, &node);
    const float **in = ARENA_ARRAY(arena, const float *, node.n_in);
    for (uint32_t k = 0; k < node.n_in; k++) {
        uint64_t n = size_of(g, node.in[k]);
        float *each = ARENA_ARRAY(arena, float, n);
        for (uint64_t i = 0; i < n; i++)
            each[i] = (float)scale[node.in[k].i];
        in[k] = each;
    }
    uint64_t n = size_of(g, node.out[0]);
    float *out = ARENA_ARRAY(arena, float, n);
    graph_eval_node(arena, &own, &node, in, out);
    return largest(out, n);
}

static double scale_of(Arena *arena, const Graph *g, const Node *node,
                       const float *value, const double *scale) {
    double most = largest(value, size_of(g, node->out[0]));
    for (uint32_t k = 0; hands_on(node) && k < node->n_in; k++)
        most = fmax(most, scale[node->in[k].i]);
    return fmax(most, least_of_terms * sum_of_terms(arena, g, *node, scale));
}

void scales_of(const Graph *g, Values value, double *scale) {
    Arena *arena = arena_new("terms");
    for (uint32_t i = 0; i < g->node.n; i++) {
        const Node *node = &g->node.at[i];
        const float *made = node->dead ? NULL : value.at[node->out[0].i];
        double own = made ? scale_of(arena, g, node, made, scale) : 0;
        for (uint32_t o = 0; o < node->n_out; o++)
            scale[node->out[o].i] = own;
        arena_reset(arena);
    }
    arena_free(arena);
}
