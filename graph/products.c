/* products.c - how many multiply-adds a node takes.
 *
 * In: a node with known shapes. Out: those of its definition, padding included;
 * 0 of operators that are no sums of products, and of nodes without weights.
 */
#include "graph/graph.h"

/* Pixels of a convolution's own result; CONV_POOL pools it afterwards. */
static uint64_t conv_pixels(const Graph *g, const Node *node) {
    const Shape *in = &graph_tensor(g, node->in[0])->shape;
    const ConvAttr *conv = &node->attr.conv;
    uint64_t pixels = shape_dim(in, 0);
    for (uint32_t axis = 0; axis < 2; axis++)
        pixels *= conv_out_size(shape_dim(in, 2 + axis), conv->kernel[axis],
                                conv->stride[axis], conv->dilation[axis],
                                conv->pad[axis], conv->pad_end[axis]);
    return pixels;
}

/* What each weight is multiplied with. */
static uint64_t uses_of_weight(const Graph *g, const Node *node) {
    const Shape *in = &graph_tensor(g, node->in[0])->shape;
    switch (node->op) {
    case OP_CONV:
    case OP_CONV_POOL:
        return conv_pixels(g, node);
    case OP_DECONV:
        return (uint64_t)shape_dim(in, 0) * shape_dim(in, 2) * shape_dim(in, 3);
    case OP_FC:
        return shape_dim(in, 0);
    default:
        return 0;
    }
}

static uint64_t routine_sums(const Graph *g, const Node *node) {
    Shape shape[ROUTINE_INPUTS];
    for (uint32_t i = 0; i < node->n_in; i++)
        shape[i] = graph_tensor(g, node->in[i])->shape;
    Arena *scratch = arena_new("products");
    uint64_t n =
        routine_products(&(RoutineCall){.arena = scratch,
                                        .kind = node->attr.routine.kind,
                                        .number = node->attr.routine.number,
                                        .n_in = node->n_in,
                                        .shape = shape});
    arena_free(scratch);
    return n;
}

uint64_t graph_products(const Graph *g, const Node *node) {
    if (node->op == OP_ROUTINE)
        return routine_sums(g, node);
    if (node->op == OP_MATMUL) {
        const Shape *in = &graph_tensor(g, node->in[0])->shape;
        uint32_t inner = in->rank ? in->dim[in->rank - 1] : 1;
        return shape_count(&graph_tensor(g, node->out[0])->shape) * inner;
    }
    if (node->op == OP_MIX) {
        const Shape *in = &graph_tensor(g, node->in[0])->shape;
        const Shape *by = &graph_tensor(g, node->in[1])->shape;
        const uint32_t *windows = node->attr.mix.windows;
        if (node->attr.mix.attends)
            return (uint64_t)in->dim[2] * in->dim[3] * by->dim[1] *
                   (by->dim[2] / windows[0]) * (by->dim[3] / windows[1]);
        return shape_count(&graph_tensor(g, node->out[0])->shape) *
               (in->dim[1] / node->attr.mix.groups);
    }
    ConstId weight = node->constant[CONST_WEIGHT];
    if (weight.i == NONE)
        return 0;
    return shape_count(&graph_const(g, weight)->shape) *
           uses_of_weight(g, node);
}
