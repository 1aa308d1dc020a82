/* traffic.c - bytes that a plan moves over backing, input and output memory,
 * and the products that it computes.
 *
 * Input: a plan. Output: its Traffic, counted by the actions as the simulator
 * counts instructions; elements, without padding of layouts.
 */
#include "alloc/work.h"

#include "hwspec/cost.h"

static uint64_t row_elements(const Graph *g, TensorId t) {
    Volume v = plan_volume(g, t);
    return (uint64_t)v.c * v.w;
}

double bytes_seconds(const HwSpec *spec, double bytes) {
    double speed =
        spec->backing >= 0 ? spec->memory[spec->backing].bandwidth : 0;
    return speed > 0 ? bytes / speed : 0;
}

uint64_t node_work(const Work *w, NodeId id) {
    const Node *node = graph_node(w->g, id);
    return row_work(w->g, node) * plan_volume(w->g, node->out[0]).h;
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

/* Elements that an instruction with tiles of its own reads and writes. */
static uint64_t tiled_elements(const Plan *plan, const Action *a) {
    const Graph *g = plan->schedule->graph;
    const HwTileStyle *style = &plan->schedule->spec->tiling.style[a->style];
    const Node *node = graph_node(g, a->node);
    uint64_t elements = 0;
    for (uint32_t i = 0; i < node->n_in && style->in_backing && !a->nest.c; i++)
        elements += tiles_read(g, node, a->tile_w, a->tile_h) *
                    plan_volume(g, node->in[i]).c;
    if (style->out_backing)
        elements += row_elements(g, node->out[0]) * a->rows;
    return elements;
}

/* What an instruction reads of weights; those that are loaded into active
 * memory count where they are. */
static uint64_t node_reads(const Plan *plan, const Action *a) {
    const HwSpec *spec = plan->schedule->spec;
    const Graph *g = plan->schedule->graph;
    const Node *node = graph_node(g, a->node);
    const ConvAttr *conv = &node->attr.conv;
    Volume in = plan_volume(g, node->in[0]);
    uint32_t out_c = plan->placement[a->out].n_c;
    bool loaded =
        hwspec_stages(spec, a->legal.op) && !spec->tiling.weights_move;
    if (a->legal.engine < 0 || loaded)
        return 0;
    if (node->op == OP_FC)
        return hwspec_weight_bytes(spec, in.c, (uint64_t)in.h * in.w, out_c);
    if (node->op != OP_CONV && node->op != OP_CONV_POOL &&
        node->op != OP_DECONV)
        return 0;
    uint32_t groups = conv->groups ? conv->groups : 1, in_c = in.c / groups;
    if (groups == 1)
        in_c = plan->placement[a->in[0]].n_c;
    uint64_t taps = (uint64_t)conv->kernel[0] * conv->kernel[1];
    return hwspec_weight_bytes(spec, in_c, taps, out_c);
}

/* Each reads the weights. */
static uint64_t hardware_tiles(const Action *a) {
    if (a->style < 0 || !a->tile_w || !a->tile_h)
        return 1;
    uint64_t across = (a->cols + a->tile_w - 1) / a->tile_w;
    return across * ((a->rows + a->tile_h - 1) / a->tile_h);
}

static uint64_t run_weights(const Plan *plan, const Action *a) {
    const HwSpec *spec = plan->schedule->spec;
    uint64_t input, weights;
    const Graph *g = plan->schedule->graph;
    if (!a->nest.c)
        return node_reads(plan, a) * hardware_tiles(a);
    nest_reads(spec, g, a, &input, &weights);
    return weights;
}

/* Of the channels that it makes. */
static uint64_t run_work(const Plan *plan, const Action *a) {
    const Graph *g = plan->schedule->graph;
    const Node *node = graph_node(g, a->node);
    Volume v = plan_volume(g, node->out[0]);
    uint32_t channels = plan->placement[a->out].n_c;
    uint64_t row = row_work(g, node) / v.w * a->cols;
    return channels < v.c ? row / v.c * channels * a->rows : row * a->rows;
}

/* Concats outside are not in listings. */
static bool is_listed(const Plan *plan, const Action *a) {
    const HwSpec *spec = plan->schedule->spec;
    uint32_t memory = plan->placement[a->out].memory;
    return a->kind != ACTION_HOST &&
           (a->kind != ACTION_CONCAT || spec->memory[memory].role == HW_ACTIVE);
}

static uint64_t run_again(const Plan *plan, const Action *a) {
    const Graph *g = plan->schedule->graph;
    Volume v = plan_volume(g, graph_node(g, a->node)->out[0]);
    uint64_t channels = a->weights ? plan->placement[a->out].n_c : v.c;
    return channels * a->cols * a->again * plan->schedule->spec->element;
}

Traffic plan_traffic(const Plan *plan) {
    const Graph *g = plan->schedule->graph;
    uint32_t most = plan->schedule->spec->max_instructions;
    Traffic sum = {0};
    for (uint32_t i = 0; i < plan->n_actions; i++) {
        const Action *a = &plan->action[i];
        uint64_t elements = 0;
        sum.instructions += is_listed(plan, a);
        if (is_move(a))
            elements =
                (uint64_t)plan->placement[a->out].n_c * a->cols * a->rows;
        if (a->kind == ACTION_WEIGHTS)
            elements = (uint64_t)plan->block[a->weights - 1].taps *
                       plan->block[a->weights - 1].n_c;
        if (a->kind == ACTION_RUN && a->style >= 0)
            elements = tiled_elements(plan, a);
        if (a->kind == ACTION_RUN && a->nest.c) {
            uint64_t input, weights;
            nest_reads(plan->schedule->spec, g, a, &input, &weights);
            sum.moved += input;
        }
        if (a->kind == ACTION_COPY)
            sum.work +=
                row_elements(g, plan->placement[a->out].tensor) * a->rows;
        if (a->kind == ACTION_RUN) {
            sum.work += run_work(plan, a);
            sum.again += run_again(plan, a);
            sum.weights += run_weights(plan, a);
        }
        sum.moved += elements * plan->schedule->spec->element;
    }
    sum.too_long = most && sum.instructions > most;
    return sum;
}
