/* run.c - a network on many samples; see run.h. */
#include "quantise/run.h"

#include "graph/quant.h"
#include "quantise/linear.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

typedef struct RunNode {
    bool fast;      /* by linear_sums */
    uint32_t input; /* OP_INPUT: which one */
    Linear linear;
    const double *bias; /* by channel: real, or in units of sums; or NULL */
    QuantLayer layer;   /* of codes */
} RunNode;

struct Runner {
    const Graph *g;
    RunNode *node;
};

/* ---- what is made once ---- */

static const float *read_floats(Arena *arena, const Const *c) {
    float *value = ARENA_ARRAY(arena, float, shape_count(&c->shape));
    const_read(c, value);
    return value;
}

static const double *read_doubles(Arena *arena, const Const *c) {
    double *value = ARENA_ARRAY(arena, double, shape_count(&c->shape));
    const_read_f64(c, value);
    return value;
}

/* How far a code can be from the zero of its tensor. */
static double reach_of(const Quant *q) {
    const QuantTypeInfo *type = &quant_type[q->type];
    return fmax(type->hi - q->zero, q->zero - type->lo);
}

static void make_linear(Arena *arena, const Graph *g, const Node *node,
                        RunNode *run) {
    const Quant *in = &graph_tensor(g, node->in[0])->quant;
    bool codes = in->type != QUANT_NONE;
    Const weight = *graph_const(g, node->constant[CONST_WEIGHT]);
    ConstId bias = node->constant[CONST_BIAS];
    if (codes)
        weight = const_codes(&weight);
    run->linear = linear_of(g, node);
    linear_weigh(&run->linear, read_floats(arena, &weight),
                 codes ? reach_of(in) : 0);
    if (bias.i == NONE)
        return;
    Const b = *graph_const(g, bias);
    if (codes)
        b = const_codes(&b);
    run->bias = read_doubles(arena, &b);
}

static bool is_fast(const Graph *g, const Node *node) {
    if (!linear_is(g, node) ||
        !(quant_clamps(&node->act) || quant_bends(&node->act)))
        return false;
    if (!quant_is_at(g, node))
        return true;
    return quant_rule(g, node) == QUANT_SUMS &&
           quant_type[graph_tensor(g, node->in[0])->quant.type].size == 1;
}

void runner_renew(Runner *runner, Arena *arena, uint32_t i) {
    const Graph *g = runner->g;
    const Node *node = &g->node.at[i];
    RunNode *run = &runner->node[i];
    run->fast = node->op != OP_INPUT && is_fast(g, node);
    if (run->fast)
        make_linear(arena, g, node, run);
    if (run->fast && quant_is_at(g, node))
        run->layer = quant_layer(arena, g, node);
}

Runner *runner_new(Arena *arena, const Graph *g) {
    Runner *runner = ARENA_NEW(arena, Runner);
    uint32_t inputs = 0;
    runner->g = g;
    runner->node = ARENA_ARRAY(arena, RunNode, g->node.n);
    for (uint32_t i = 0; i < g->node.n; i++) {
        if (g->node.at[i].op == OP_INPUT)
            runner->node[i].input = inputs++;
        runner_renew(runner, arena, i);
    }
    return runner;
}

/* ---- one node ---- */

static void finish_reals(const RunNode *run, const Act *act, const double *sum,
                         float *out) {
    size_t pixels = linear_pixels(&run->linear), at = 0;
    bool bends = quant_bends(act), bound = !bends && act->kind != ACT_NONE;
    double lo = act->kind == ACT_CLIP ? act->lo : bound ? 0 : -INFINITY;
    double hi = act->kind == ACT_CLIP    ? act->hi
                : act->kind == ACT_RELU6 ? 6
                                         : INFINITY;
    for (uint32_t n = 0; n < run->linear.images; n++)
        for (uint32_t c = 0; c < run->linear.conv.out_c; c++) {
            double bias = run->bias ? run->bias[c] : 0;
            for (size_t i = 0; i < pixels; i++, at++) {
                double value = sum[at] + bias;
                value = bends && value < 0 ? act->alpha * value : value;
                out[at] = (float)(value < lo ? lo : value > hi ? hi : value);
            }
        }
}

static void finish_codes(const RunNode *run, const double *sum, float *out) {
    size_t pixels = linear_pixels(&run->linear), at = 0;
    const QuantLayer *layer = &run->layer;
    for (uint32_t n = 0; n < run->linear.images; n++)
        for (uint32_t c = 0; c < run->linear.conv.out_c; c++) {
            uint32_t k = layer->n > 1 ? c : 0;
            int64_t bias = run->bias ? (int64_t)run->bias[c] : 0;
            for (size_t i = 0; i < pixels; i++, at++)
                out[at] = (float)quant_finish(
                    layer, quant_summed(layer, k, (int64_t)sum[at] + bias));
        }
}

static void run_linear(const Runner *runner, const Node *node,
                       const RunNode *run, const float *in, float *out) {
    Arena *scratch = arena_new("sums");
    double *sum =
        arena_alloc_raw(scratch, linear_count(&run->linear) * sizeof *sum, 64);
    const Quant *q = &graph_tensor(runner->g, node->in[0])->quant;
    linear_sums(&run->linear, scratch, in, (float)q->zero, sum);
    if (q->type != QUANT_NONE)
        finish_codes(run, sum, out);
    else
        finish_reals(run, &node->act, sum, out);
    arena_free(scratch);
}

static void run_input(const Tensor *tensor, const float *in, float *out) {
    for (uint64_t i = 0, n = shape_count(&tensor->shape); i < n; i++)
        out[i] = tensor->quant.type == QUANT_NONE
                     ? in[i]
                     : (float)quant_code(&tensor->quant, (double)in[i]);
}

static void run_other(const Runner *runner, const Node *node, float **at) {
    Arena *scratch = arena_new("a node");
    const float **in = ARENA_ARRAY(scratch, const float *, node->n_in);
    for (uint32_t k = 0; k < node->n_in; k++)
        in[k] = at[node->in[k].i];
    graph_eval_node(scratch, runner->g, node, in, at[node->out[0].i]);
    arena_free(scratch);
}

void runner_node(const Runner *runner, Arena *arena, const float *const *inputs,
                 uint32_t i, float **at) {
    const Node *node = &runner->g->node.at[i];
    const RunNode *run = &runner->node[i];
    const Tensor *tensor = graph_tensor(runner->g, node->out[0]);
    float *out = at[node->out[0].i];
    if (!out)
        out = arena_alloc_raw(arena, shape_count(&tensor->shape) * sizeof *out,
                              64);
    for (uint32_t o = 0; o < node->n_out; o++)
        at[node->out[o].i] = out;
    if (node->op == OP_INPUT)
        run_input(tensor, inputs[run->input], out);
    else if (run->fast)
        run_linear(runner, node, run, at[node->in[0].i], out);
    else
        run_other(runner, node, at);
}

void runner_eval(const Runner *runner, Arena *arena, const float *const *inputs,
                 uint32_t first, float **at) {
    for (uint32_t i = first; i < runner->g->node.n; i++)
        if (!runner->g->node.at[i].dead)
            runner_node(runner, arena, inputs, i, at);
}

const float *run_reals(Arena *arena, const Tensor *tensor, const float *value) {
    uint64_t n = shape_count(&tensor->shape);
    if (tensor->quant.type == QUANT_NONE)
        return value;
    float *out = arena_alloc_raw(arena, n * sizeof *out, 64);
    for (uint64_t i = 0; i < n; i++)
        out[i] = (float)quant_real(&tensor->quant, (double)value[i]);
    return out;
}

/* ---- threads ---- */

typedef struct Shift {
    uint32_t n;
    atomic_uint next;
    RunWork *work;
    void *context;
} Shift;

static void *work_on(void *context) {
    Shift *shift = context;
    Arena *scratch = arena_new("a sample");
    for (uint32_t i; (i = atomic_fetch_add(&shift->next, 1)) < shift->n;) {
        shift->work(shift->context, i, scratch);
        arena_reset(scratch);
    }
    arena_free(scratch);
    return NULL;
}

enum { MOST_THREADS = 64 };

void run_all(uint32_t n, uint32_t threads, RunWork *work, void *context) {
    Shift shift = {.n = n, .work = work, .context = context};
    pthread_t thread[MOST_THREADS];
    uint32_t started = 0;
    atomic_init(&shift.next, 0);
    while (started + 1 < threads && started + 1 < n && started < MOST_THREADS &&
           !pthread_create(&thread[started], NULL, work_on, &shift))
        started++;
    work_on(&shift);
    while (started)
        pthread_join(thread[--started], NULL);
}
