/* traffic.c - bytes that a plan moves over backing, input and output memory,
 * and the products that it computes.
 *
 * Input: a plan. Output: its Traffic, counted by the actions as the simulator
 * counts instructions; elements, without padding of layouts.
 */
#include "plan/cost.h"

#include "hwspec/cost.h"

/* Elements that an instruction with tiles of its own reads and writes. */
static uint64_t tiled_elements(const Plan *plan, const Action *a) {
    const Graph *g = plan->schedule->graph;
    const HwTileStyle *style =
        &plan->schedule->spec->tiling.tiles.style[a->style];
    const Node *node = graph_node(g, a->node);
    uint64_t elements = 0;
    for (uint32_t i = 0; i < node->n_in && style->in_backing && !a->nest.c; i++)
        elements += tiles_read(g, node, a->tile_w, a->tile_h) *
                    plan_volume(g, node->in[i]).c;
    if (style->out_backing)
        elements += row_elements(g, node->out[0]) * a->rows;
    return elements;
}

/* Elements that an engine ahead of the others reads where they lie. */
static uint64_t ahead_elements(const Plan *plan, const Action *a) {
    const Graph *g = plan->schedule->graph;
    const HwSpec *spec = plan->schedule->spec;
    uint64_t elements = 0;
    if (a->legal.engine < 0 || !spec->engine[a->legal.engine].ahead)
        return 0;
    for (uint32_t i = 0; i < a->n_in; i++)
        elements +=
            row_elements(g, plan->placement[a->in[i]].tensor) * a->in_rows;
    return elements;
}

/* What an instruction reads of weights; those that are loaded into active
 * memory count where they are, once they have a place there. */
static uint64_t node_reads(const Plan *plan, const Action *a) {
    const HwSpec *spec = plan->schedule->spec;
    const Graph *g = plan->schedule->graph;
    const Node *node = graph_node(g, a->node);
    const ConvAttr *conv = &node->attr.conv;
    Volume in = plan_volume(g, node->in[0]);
    uint32_t out_c = plan->placement[a->out].n_c;
    bool loaded =
        hwspec_stages(spec, a->legal.op) && !spec->tiling.rows.weights_move;
    if (a->legal.engine < 0 || loaded || spec->tiling.weights_stay)
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

NestCost action_nest_reads(const Plan *plan, const Action *a) {
    const Graph *g = plan->schedule->graph;
    return nest_reads(plan->schedule->spec, g, graph_node(g, a->node),
                      &a->legal, a->style, a->tile_h, a->tile_w, &a->nest);
}

uint64_t action_weights(const Plan *plan, const Action *a) {
    return a->nest.c ? action_nest_reads(plan, a).weights
                     : node_reads(plan, a) * hardware_tiles(a);
}

/* Of the channels that it makes. */
static uint64_t run_work(const Plan *plan, const Action *a) {
    const Graph *g = plan->schedule->graph;
    const Node *node = graph_node(g, a->node);
    Volume v = plan_volume(g, node->out[0]);
    uint32_t channels = plan->placement[a->out].n_c;
    Addends x = action_addends(plan, a);
    uint64_t row = addends_share(x, row_work(g, node) / v.w * a->cols);
    return channels < v.c ? row / v.c * channels * a->rows : row * a->rows;
}

/* See insn_is_issued. */
static bool is_issued(const Action *a) {
    return a->kind != ACTION_HOST && a->kind != ACTION_CONCAT;
}

/* Rows, and columns of the rest, that were there. */
static uint64_t run_again(const Plan *plan, const Action *a) {
    const Graph *g = plan->schedule->graph;
    Volume v = plan_volume(g, graph_node(g, a->node)->out[0]);
    if (!addends_end(action_addends(plan, a)))
        return 0;
    uint64_t channels = a->weights ? plan->placement[a->out].n_c : v.c;
    uint64_t cols = a->col < a->fresh ? a->fresh - a->col : 0;
    cols = cols < a->cols ? cols : a->cols;
    uint64_t pixels =
        (uint64_t)a->cols * a->again + cols * (a->rows - a->again);
    return channels * pixels * plan->schedule->spec->element;
}

Traffic plan_traffic(const Plan *plan) {
    const Graph *g = plan->schedule->graph;
    uint32_t most = plan->schedule->spec->max_instructions;
    Traffic sum = {0};
    for (uint32_t i = 0; i < plan->n_actions; i++) {
        const Action *a = &plan->action[i];
        uint64_t elements = 0;
        sum.instructions += is_issued(a);
        if (is_move(a))
            elements =
                (uint64_t)plan->placement[a->out].n_c * a->cols * a->rows;
        if (a->kind == ACTION_WEIGHTS)
            elements = (uint64_t)plan->block[a->weights - 1].taps *
                       plan->block[a->weights - 1].n_c;
        if (a->kind == ACTION_BIAS)
            elements = hwspec_bias_elements(plan->schedule->spec,
                                            plan->bias[a->bias - 1].n_c);
        if (a->kind == ACTION_RUN && a->style >= 0)
            elements = tiled_elements(plan, a);
        else if (a->kind == ACTION_RUN)
            elements = ahead_elements(plan, a);
        if (a->kind == ACTION_RUN && a->nest.c)
            sum.moved += action_nest_reads(plan, a).input;
        if (a->kind == ACTION_COPY)
            sum.work +=
                row_elements(g, plan->placement[a->out].tensor) * a->rows;
        if (a->kind == ACTION_RUN) {
            sum.work += run_work(plan, a);
            sum.again += run_again(plan, a);
            sum.weights += action_weights(plan, a);
        }
        sum.moved += elements * plan->schedule->spec->element;
    }
    sum.too_long = most && sum.instructions > most;
    return sum;
}

static uint64_t share(uint64_t products, uint64_t part, uint64_t whole) {
    return products / whole * part + products % whole * part / whole;
}

/* Of the channels, rows and columns that it makes, and of the input channels
 * that it adds up. */
static uint64_t run_products(const Plan *plan, const Action *a) {
    const Graph *g = plan->schedule->graph;
    const Node *node = graph_node(g, a->node);
    Volume v = plan_volume(g, node->out[0]);
    uint64_t all = (uint64_t)v.c * v.h * v.w;
    uint64_t made = (uint64_t)plan->placement[a->out].n_c * a->rows * a->cols;
    return addends_share(action_addends(plan, a),
                         share(graph_products(g, node), made, all));
}

Products plan_products(const Plan *plan) {
    const Graph *g = plan->schedule->graph;
    Products sum = {0};
    for (uint32_t i = 0; i < plan->n_actions; i++) {
        const Action *a = &plan->action[i];
        if (a->kind != ACTION_RUN)
            continue;
        sum.all += run_products(plan, a);
        if (!a->tile)
            sum.once += graph_products(g, graph_node(g, a->node));
    }
    return sum;
}

static uint64_t step_weights(const Schedule *schedule, const Step *step) {
    const Graph *g = schedule->graph;
    uint64_t sum = 0;
    for (uint32_t k = 0; k < step->n; k++) {
        const Slot *slot = &step->slot[k];
        const Node *node = graph_node(g, slot->node);
        if (slot->legal.engine >= 0 &&
            hwspec_stages(schedule->spec, slot->legal.op))
            sum += (uint64_t)weight_taps(g, node) *
                   plan_volume(g, node->out[0]).c * schedule->spec->element;
    }
    return sum;
}

uint64_t plan_staged_weights(const Schedule *schedule) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < schedule->n_steps; i++)
        sum += step_weights(schedule, &schedule->step[i]);
    return sum;
}
