/* products.c - what a node takes of an engine and of backing memory: products,
 * weights, and what its memory's buffers are. Closed forms of its shapes. */
#include "geometry/geometry.h"

uint64_t row_elements(const Graph *g, TensorId t) {
    Volume v = plan_volume(g, t);
    return (uint64_t)v.c * v.w;
}

uint64_t row_work(const Graph *g, const Node *node) {
    uint64_t work = row_elements(g, node->out[0]);
    if (node->op == OP_CONV || node->op == OP_CONV_POOL) {
        const ConvAttr *c = &node->attr.conv;
        uint32_t groups = c->groups ? c->groups : 1;
        work *= (uint64_t)c->kernel[0] * c->kernel[1] *
                (plan_volume(g, node->in[0]).c / groups);
    }
    if (node->op == OP_DECONV && deconv_spreads(node))
        work *= plan_volume(g, node->in[0]).c;
    return work;
}

uint32_t kernel_width(const Graph *g, const Node *node) {
    return node->op == OP_FC      ? plan_volume(g, node->in[0]).w
           : node_convolves(node) ? node->attr.conv.kernel[1]
                                  : 1;
}

uint32_t kernel_area(const Graph *g, const Node *node) {
    uint32_t rows = node->op == OP_FC      ? plan_volume(g, node->in[0]).h
                    : node_convolves(node) ? node->attr.conv.kernel[0]
                                           : 1;
    return rows * kernel_width(g, node);
}

uint32_t weight_taps(const Graph *g, const Node *node) {
    Volume in = plan_volume(g, node->in[0]);
    uint32_t groups = node->op == OP_FC ? 1 : node->attr.conv.groups;
    return kernel_area(g, node) * (in.c / (groups ? groups : 1));
}

double bytes_seconds(const HwSpec *spec, double bytes) {
    double speed =
        spec->backing >= 0 ? spec->memory[spec->backing].bandwidth : 0;
    return speed > 0 ? bytes / speed : 0;
}

Pool pool_of(const HwMemory *memory) {
    uint64_t align = memory->align ? memory->align : 1;
    uint64_t buffer = hwspec_buffer_bytes(memory);
    if (!buffer)
        return (Pool){.size = memory->buffers ? 0 : memory->size,
                      .align = align};
    return (Pool){.size = buffer * memory->buffers, .align = buffer};
}
