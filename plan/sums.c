/* sums.c - what runs keep where sums have a memory of their own; plan.h. */
#include "plan/plan.h"

/* Pixels along an axis, those that no pool reads, too. */
static uint32_t before_pool(const Graph *g, const Node *node, uint32_t axis) {
    const ConvAttr *conv = &node->attr.conv;
    Volume in = plan_volume(g, node->in[0]);
    return conv_out_size(axis ? in.w : in.h, conv->kernel[axis],
                         conv->stride[axis], conv->dilation[axis],
                         conv->pad[axis], conv->pad_end[axis]);
}

Volume action_sums(const Plan *plan, const Action *a, uint32_t channels,
                   uint32_t row, uint32_t rows) {
    const Graph *g = plan->schedule->graph;
    const Node *node = graph_node(g, a->node);
    Volume v = {.c = channels, .h = rows, .w = a->cols};
    if (node->op == OP_CONV_POOL) {
        bool some = rows < plan_volume(g, node->out[0]).h ||
                    a->in_rows < plan_volume(g, node->in[0]).h;
        v.h = some ? axis_before_pool(g, a->node, 0, row, rows)
                   : before_pool(g, node, 0);
        v.w = before_pool(g, node, 1);
    }
    return v;
}

bool keeps_for_next(const Plan *plan, const Action *a) {
    return a->kind == ACTION_RUN &&
           hwspec_keeps_sums(plan->schedule->spec, a->legal.op,
                             a->legal.engine) &&
           !addends_end(action_addends(plan, a));
}
