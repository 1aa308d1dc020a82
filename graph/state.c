/* state.c - inputs that an output was in the call before.
 *
 * Such a pair is a state: whoever runs the network keeps it from call to call,
 * and the caller neither gives nor takes it. The input's node says which
 * output, and what the state is in the first call.
 */
#include "graph/graph.h"
#include "graph/quant.h"

TensorId graph_state_next(const Graph *g, const Node *input) {
    bool state = input->op == OP_INPUT && input->attr.state;
    return state ? g->output.at[input->attr.state - 1] : NO_TENSOR;
}

NodeId graph_state_of(const Graph *g, TensorId output) {
    for (uint32_t i = 0; i < g->node.n; i++)
        if (!g->node.at[i].dead &&
            same_tensor(graph_state_next(g, &g->node.at[i]), output))
            return (NodeId){i};
    return NO_NODE;
}

uint32_t graph_states(const Graph *g) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->node.n; i++)
        n += !g->node.at[i].dead &&
             graph_state_next(g, &g->node.at[i]).i != NONE;
    return n;
}

const float *graph_state_start(Arena *arena, const Graph *g,
                               const Node *input) {
    const Tensor *t = graph_tensor(g, input->out[0]);
    uint64_t n = shape_count(&t->shape);
    float *value = ARENA_ARRAY(arena, float, n);
    ConstId start = input->constant[CONST_VALUE];
    if (start.i != NONE)
        const_read(graph_const(g, start), value);
    for (uint64_t i = 0; i < n && t->quant.type != QUANT_NONE; i++)
        value[i] = (float)quant_code(&t->quant, (double)value[i]);
    return value;
}
