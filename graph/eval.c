/* eval.c - what a network computes: the reference for everything else.
 *
 * In: a verified graph with all its constants, values of its inputs. Out: the
 * values of every tensor. One function an operator, in a table; they write the
 * first output, the fused activation follows here. All sums run in a fixed
 * order on one thread, so that one machine gives the same bits every time.
 */
#include "graph/eval.h"
#include "graph/quant.h"

#include "base/rng.h"

#include <assert.h>
#include <cblas.h>
#include <math.h>
#include <string.h>

#define eval_input NULL    /* values that the caller gives */
#define eval_act eval_copy /* which all operators are followed by */
#define eval_reshape eval_copy
#define eval_identity eval_copy

static EvalOp *const eval_op[OP_COUNT] = {
#define OP(NAME, name, min, max, doc) [OP_##NAME] = eval_##name,
#include "graph/ops.def"
#undef OP
};

Split eval_split(const Shape *shape, uint32_t axis) {
    Split split = {1, shape_dim(shape, axis), 1};
    for (uint32_t i = 0; i < shape->rank; i++)
        if (i < axis)
            split.outer *= shape->dim[i];
        else if (i > axis)
            split.inner *= shape->dim[i];
    return split;
}

Split eval_lines(const Shape *shape, uint32_t axis, uint32_t axes,
                 uint32_t groups) {
    Split split = eval_split(shape, axis);
    for (uint32_t i = axis + 1; i < (axes ? axis + axes : shape->rank); i++) {
        split.axis *= shape->dim[i];
        split.inner /= shape->dim[i];
    }
    split.outer *= groups ? groups : 1;
    split.axis /= groups ? groups : 1;
    return split;
}

const float *eval_const(const Eval *e, ConstRole role) {
    ConstId id = e->node->constant[role];
    if (id.i == NONE)
        return NULL;
    const Const *c = graph_const(e->g, id);
    float *value = ARENA_ARRAY(e->scratch, float, shape_count(&c->shape));
    const_read(c, value);
    return value;
}

const float *eval_need_const(const Eval *e, ConstRole role) {
    const float *value = eval_const(e, role);
    if (!value)
        bug("evaluation: layer \"%s\" has no %s", e->node->name,
            const_role_name[role]);
    return value;
}

void eval_real(const Eval *e, EvalOp *op) {
    op(e);
    if (e->node->op != OP_CONV_POOL) /* whose activation is before its pool */
        eval_activate(e, e->out_shape, e->out);
}

static Eval eval_of(Arena *scratch, const Graph *g, const Node *node,
                    const float *const *in, float *out) {
    return (Eval){.scratch = scratch,
                  .g = g,
                  .node = node,
                  .in = in,
                  .in_shape =
                      node->n_in ? &graph_tensor(g, node->in[0])->shape : NULL,
                  .out_shape = &graph_tensor(g, node->out[0])->shape,
                  .out = out};
}

void graph_eval_node(Arena *scratch, const Graph *g, const Node *node,
                     const float *const *in, float *out) {
    Eval e = eval_of(scratch, g, node, in, out);
    if (quant_is_at(g, node))
        eval_quantised(&e, eval_op[node->op]);
    else
        eval_real(&e, eval_op[node->op]);
}

bool graph_eval_numbers(Arena *scratch, const Graph *g, const Node *node,
                        const float *const *in, float *out) {
    Eval e = eval_of(scratch, g, node, in, out);
    bool rounded = graph_tensor(g, node->out[0])->quant.type != QUANT_NONE &&
                   quant_rule(g, node) == QUANT_REALS;
    if (rounded)
        eval_numbers(&e, eval_op[node->op]);
    return rounded;
}

static void eval_node(Arena *scratch, const Graph *g, const Node *node,
                      float **at) {
    const float **in = ARENA_ARRAY(scratch, const float *, node->n_in);
    for (uint32_t k = 0; k < node->n_in; k++)
        in[k] = at[node->in[k].i];
    float *out = at[node->out[0].i];
    graph_eval_node(scratch, g, node, in, out);
    uint64_t n = shape_count(&graph_tensor(g, node->out[0])->shape);
    for (uint32_t o = 1; o < node->n_out; o++)
        memcpy(at[node->out[o].i], out, n * sizeof *out);
}

static void allocate_outputs(Arena *arena, const Graph *g, const Node *node,
                             float **at) {
    for (uint32_t o = 0; o < node->n_out; o++) {
        const Shape *shape = &graph_tensor(g, node->out[o])->shape;
        at[node->out[o].i] = ARENA_ARRAY(arena, float, shape_count(shape));
    }
}

Values graph_eval(Arena *arena, const Graph *g, uint32_t n_inputs,
                  const float *const *inputs) {
    Values values = {ARENA_ARRAY(arena, float *, g->tensor.n)};
    Arena *scratch = arena_new("graph_eval");
    uint32_t next_input = 0;
    openblas_set_num_threads(1);
    for (uint32_t i = 0; i < g->node.n; i++) {
        const Node *node = &g->node.at[i];
        if (node->dead)
            continue;
        allocate_outputs(arena, g, node, values.at);
        if (node->op == OP_INPUT) {
            assert(next_input < n_inputs);
            TensorId out = node->out[0];
            memcpy(values.at[out.i], inputs[next_input++],
                   shape_count(&graph_tensor(g, out)->shape) * sizeof(float));
        } else {
            eval_node(scratch, g, node, values.at);
        }
        arena_reset(scratch);
    }
    assert(next_input == n_inputs);
    (void)n_inputs;
    arena_free(scratch);
    return values;
}

const float *const *graph_seed_inputs(Arena *arena, const Graph *g,
                                      uint64_t seed, uint32_t *n) {
    VEC(const float *) inputs = {0};
    for (uint32_t i = 0; i < g->node.n; i++) {
        const Node *node = &g->node.at[i];
        if (node->op != OP_INPUT || node->dead)
            continue;
        const Tensor *tensor = graph_tensor(g, node->out[0]);
        uint64_t count = shape_count(&tensor->shape);
        uint64_t stream = rng_seed(tensor->name, seed);
        if (node->attr.state) {
            vec_push(arena, &inputs, graph_state_start(arena, g, node));
            continue;
        }
        float *value = ARENA_ARRAY(arena, float, count);
        for (uint64_t k = 0; k < count; k++)
            value[k] = quant_seeded(tensor->quant.type, rng_unit(stream, k));
        vec_push(arena, &inputs, value);
    }
    *n = inputs.n;
    return inputs.at;
}
