/* cost.c - how long actions take; see cost.h.
 *
 * Input: a plan. Output: cycles of the machine's clock, by hwspec/cost.h, which
 * the simulator counts with, too.
 */
#include "plan/issue_queue.h"

#include "hwspec/cost.h"

static const HwMemory *memory_of(const Plan *plan, uint32_t placement) {
    return &plan->schedule->spec->memory[plan->placement[placement].memory];
}

/* How rows of the transfer lie at one of its ends. */
static Contiguous together_at(const Plan *plan, const Action *a, uint32_t end,
                              const Volume *v) {
    const Placement *p = &plan->placement[end];
    if (p->lines.band ||
        (p->ring && a->row % p->whole.h + a->rows > p->whole.h))
        return ROWS_APART;
    return layout_contiguous(memory_of(plan, end)->layout, &p->whole, v);
}

uint64_t move_cycles(const Plan *plan, const Action *a, uint32_t channels) {
    bool load = a->kind == ACTION_LOAD;
    Volume v = {channels, a->rows, a->cols, {0}};
    Contiguous from = together_at(plan, a, a->in[0], &v);
    Contiguous to = together_at(plan, a, a->out, &v);
    return hwspec_transfer_cycles(
        plan->schedule->spec, memory_of(plan, load ? a->in[0] : a->out),
        channels, a->rows, a->cols, from < to ? from : to);
}

static uint64_t pool_taps(const Graph *g, const Node *node) {
    const PoolAttr *pool = &node->attr.pool;
    Volume in = plan_volume(g, node->in[0]);
    return pool->global ? (uint64_t)in.h * in.w
                        : (uint64_t)pool->kernel[0] * pool->kernel[1];
}

/* Of the taps that it adds up. */
static uint64_t conv_inner(const HwSpec *spec, const HwEngine *engine,
                           const Node *node, uint32_t channels,
                           KernelTaps taps) {
    const ConvAttr *conv = &node->attr.conv;
    uint32_t groups = conv->groups ? conv->groups : 1;
    uint32_t columns = taps.n < conv->kernel[1] ? taps.n : conv->kernel[1];
    return hwspec_conv_steps(spec, engine, NULL, channels / groups,
                             taps.n / columns, columns);
}

static Attention attention_of(const Graph *g, const Node *node) {
    Volume in = plan_volume(g, node->in[0]), by = plan_volume(g, node->in[1]);
    uint32_t groups = node->attr.mix.groups;
    return (Attention){.groups = groups,
                       .channels = in.c / groups,
                       .values = (by.c - in.c) / groups,
                       .keys = by.h / node->attr.mix.windows[0] *
                               (by.w / node->attr.mix.windows[1])};
}

static uint64_t run_cycles(const Plan *plan, const Action *a) {
    const HwSpec *spec = plan->schedule->spec;
    const Graph *g = plan->schedule->graph;
    const HwEngine *engine = &spec->engine[a->legal.engine];
    const Node *node = graph_node(g, a->node);
    Volume in = plan_volume(g, node->in[0]);
    Addends addends = action_addends(plan, a);
    in.c = addends.n;
    uint64_t inner = 1;
    uint32_t rows = a->rows, cols = a->cols;
    if (a->legal.op == HW_OP_ATTENTION) {
        Attention attention = attention_of(g, node);
        return hwspec_attention_cycles(spec, engine, &attention, rows, cols);
    }
    if (node->op == OP_CONV_POOL) {
        rows = axis_before_pool(g, a->node, 0, a->row, rows);
        cols = axis_before_pool(g, a->node, 1, a->col, cols);
    }
    if (node_convolves(node))
        inner = conv_inner(spec, engine, node, in.c, addends.kernel);
    else if (node->op == OP_MIX)
        inner = hwspec_inner_steps(spec, engine, NULL,
                                   in.c / node->attr.mix.groups, 1);
    else if (node->op == OP_POOL)
        inner = hwspec_inner_steps(spec, engine, NULL, 1, pool_taps(g, node));
    else if (node->op == OP_FC)
        inner = hwspec_inner_steps(spec, engine, NULL, in.c, addends.kernel.n);
    return hwspec_engine_cycles(spec, engine, plan->placement[a->out].n_c, rows,
                                cols,
                                inner * hwspec_passes(engine, a->legal.op));
}

uint64_t action_cycles(const Plan *plan, const Action *a) {
    const HwSpec *spec = plan->schedule->spec;
    const Placement *p = &plan->placement[a->out];
    switch (a->kind) {
    case ACTION_LOAD:
    case ACTION_STORE:
        return move_cycles(plan, a, p->n_c);
    case ACTION_RUN:
        return a->legal.engine < 0 ? 0 : run_cycles(plan, a);
    case ACTION_COPY:
        return hwspec_engine_cycles(spec, &spec->engine[a->legal.engine],
                                    p->n_c, a->rows, p->whole.w, 1);
    case ACTION_WEIGHTS: {
        const ConstantBlock *b = &plan->block[a->weights - 1];
        return hwspec_staged_cycles(spec, &spec->memory[b->from],
                                    (uint64_t)b->taps * b->n_c);
    }
    case ACTION_BIAS: {
        const ConstantBlock *b = &plan->bias[a->bias - 1];
        return hwspec_staged_cycles(spec, &spec->memory[b->from],
                                    hwspec_bias_elements(spec, b->n_c));
    }
    case ACTION_CONCAT:
    case ACTION_HOST:
        break;
    }
    return 0;
}

static bool same_step(const Action *a, const Action *b) {
    return a->step == b->step && b->kind != ACTION_CONCAT &&
           b->kind != ACTION_HOST;
}

/* By its engine; moves are behind all of these. */
static uint32_t step_unit(const Action *a) {
    return is_move(a)             ? HW_MAX_ENGINES
           : a->legal.engine >= 0 ? (uint32_t)a->legal.engine
                                  : 0;
}

uint64_t plan_cycles(const Plan *plan) {
    uint64_t sum = 0;
    if (plan->schedule->spec->tiling.rows.moves == HW_MOVES_QUEUED)
        return queue_cycles(plan);
    for (uint32_t i = 0, end; i < plan->n_actions; i = end) {
        uint64_t unit[HW_MAX_ENGINES + 1] = {0}, most = 0;
        for (end = i;
             end < plan->n_actions &&
             (end == i || same_step(&plan->action[i], &plan->action[end]));
             end++) {
            const Action *a = &plan->action[end];
            uint32_t at = step_unit(a);
            unit[at] += action_cycles(plan, a);
            most = unit[at] > most ? unit[at] : most;
        }
        sum += most;
    }
    return sum;
}

uint64_t plan_waiting(const Plan *plan) {
    uint64_t moves = 0, work = 0;
    for (uint32_t i = 0; i < plan->n_actions; i++) {
        const Action *a = &plan->action[i];
        *(is_move(a) ? &moves : &work) += action_cycles(plan, a);
    }
    uint64_t busy = moves > work ? moves : work;
    return plan->cycles > busy ? plan->cycles - busy : 0;
}

uint64_t plan_busy(const Plan *plan) {
    uint64_t unit[HW_MAX_ENGINES + 1] = {0}, most = 0;
    for (uint32_t i = 0; i < plan->n_actions; i++) {
        const Action *a = &plan->action[i];
        uint32_t at = step_unit(a);
        unit[at] += action_cycles(plan, a);
        most = unit[at] > most ? unit[at] : most;
    }
    return most;
}

const char *const plan_bound_key[PLAN_BOUNDS] = {
#define BOUND(NAME, key, words) key,
    PLAN_BOUND_ROWS(BOUND)
#undef BOUND
};

static bool has_host_layers(const Plan *plan) {
    for (uint32_t i = 0; i < plan->n_actions; i++)
        if (plan->action[i].kind == ACTION_HOST)
            return true;
    return false;
}

const char *plan_bound_words(const Plan *plan, PlanBoundKind kind) {
    static const char *const words[PLAN_BOUNDS] = {
#define BOUND(NAME, key, words) words,
        PLAN_BOUND_ROWS(BOUND)
#undef BOUND
    };
    return kind == PLAN_BOUND_ANY && has_host_layers(plan)
               ? "no listing with these layers on the host moves less"
               : words[kind];
}

uint64_t plan_compulsory(const Plan *plan) {
    return plan->ddr_bound[PLAN_BOUND_ANY];
}

PlanBoundKind plan_bound(const Plan *plan) {
    PlanBoundKind last = plan->ddr_again ? PLAN_BOUND_APART : PLAN_BOUND_ONCE;
    PlanBoundKind best = PLAN_BOUND_ANY;
    for (int i = 0; i <= (int)last; i++)
        if (plan->ddr_bound[i] > plan->ddr_bound[best])
            best = (PlanBoundKind)i;
    return best;
}

void plan_bounds_add(Plan *plan, int64_t bytes) {
    for (uint32_t i = 0; i < PLAN_BOUNDS; i++)
        plan->ddr_bound[i] += (uint64_t)bytes;
}
