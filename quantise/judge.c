/* judge.c - outputs of a graph on codes against those on real numbers; see
 * flow.h. */
#include "quantise/flow.h"

#include <math.h>
#include <string.h>

double quantise_db(const QuantiseError *e) {
    enum { NO_NOISE = 200 };
    if (!(e->noise > 0))
        return NO_NOISE;
    return e->signal > 0 ? fmin(10 * log10(e->signal / e->noise), NO_NOISE)
                         : -NO_NOISE;
}

void error_add(QuantiseError *e, uint64_t n, const float *real,
               const float *got) {
    for (uint64_t i = 0; i < n; i++) {
        double a = (double)real[i], b = (double)got[i];
        if (!isfinite(a) || !isfinite(b))
            continue;
        e->signal += a * a;
        e->other += b * b;
        e->product += a * b;
        e->noise += (a - b) * (a - b);
    }
}

void error_join(QuantiseError *e, const QuantiseError *other) {
    e->signal += other->signal;
    e->other += other->other;
    e->product += other->product;
    e->noise += other->noise;
}

double quantise_cosine(const QuantiseError *e) {
    double size = sqrt(e->signal) * sqrt(e->other);
    return size > 0 ? e->product / size : 1;
}

/* ---- what choices are judged by ---- */

static const Node *softmax_of(const Graph *g, uint32_t o) {
    const Tensor *t = graph_tensor(g, g->output.at[o]);
    const Node *node = graph_node(g, t->producer);
    while (node->op == OP_RESHAPE || node->op == OP_IDENTITY)
        node = graph_node(g, graph_tensor(g, node->in[0])->producer);
    return node->op == OP_SOFTMAX ? node : NULL;
}

TensorId judged_tensor(const Graph *g, uint32_t o) {
    const Node *softmax = softmax_of(g, o);
    return softmax ? softmax->in[0] : g->output.at[o];
}

float *judged_values(Arena *arena, const Graph *g, uint32_t o,
                     const float *real) {
    const Node *softmax = softmax_of(g, o);
    const Shape *shape = &graph_tensor(g, judged_tensor(g, o))->shape;
    uint64_t n = shape_count(shape);
    float *out = ARENA_COPY(arena, float, real, n);
    if (!softmax)
        return out;
    uint32_t axis = softmax->attr.axis.axis;
    size_t inner = 1, size = shape_dim(shape, axis);
    for (uint32_t i = axis + 1; i < shape->rank; i++)
        inner *= shape->dim[i];
    for (uint64_t at = 0; at < n; at++) {
        if (at / inner % size)
            continue;
        double sum = 0;
        for (size_t i = 0; i < size; i++)
            sum += (double)out[at + i * inner];
        for (size_t i = 0; i < size; i++)
            out[at + i * inner] -= (float)(sum / (double)size);
    }
    return out;
}

void judged_add(const Flow *f, Arena *scratch, const Graph *codes,
                uint32_t sample, float *const *at, QuantiseError *e) {
    uint32_t n = codes->output.n;
    for (uint32_t o = 0; o < n; o++) {
        const Tensor *t = graph_tensor(codes, judged_tensor(codes, o));
        const float *real =
            run_reals(scratch, t, at[judged_tensor(codes, o).i]);
        error_add(e, shape_count(&t->shape), f->real_judged[sample * n + o],
                  judged_values(scratch, codes, o, real));
    }
}

/* ---- outputs ---- */

static uint64_t top_of(const float *value, uint64_t n) {
    uint64_t top = 0;
    for (uint64_t i = 1; i < n; i++)
        top = value[i] > value[top] ? i : top;
    return top;
}

/* What one sample gives. */
typedef struct Verdict {
    QuantiseError error, judged;
    uint64_t top_real, top_codes;
} Verdict;

typedef struct Judge {
    const Flow *f;
    const Graph *g;
    const Runner *runner;
    Some some;
    Verdict *verdict;
} Judge;

static void judge_one(void *context, uint32_t i, Arena *scratch) {
    Judge *j = context;
    Verdict *v = &j->verdict[i];
    float **at = ARENA_ARRAY(scratch, float *, j->g->tensor.n);
    uint32_t sample = j->some.at[i];
    runner_eval(j->runner, scratch, flow_inputs(j->f, sample), 0, at);
    if (j->f->real_judged)
        judged_add(j->f, scratch, j->g, sample, at, &v->judged);
    for (uint32_t o = 0; o < j->g->output.n; o++) {
        const Tensor *tensor = graph_tensor(j->g, j->g->output.at[o]);
        uint64_t n = shape_count(&tensor->shape);
        const float *real = j->f->real_out[sample * j->g->output.n + o];
        const float *got = run_reals(scratch, tensor, at[j->g->output.at[o].i]);
        error_add(&v->error, n, real, got);
        if (o)
            continue;
        v->top_real = top_of(real, n);
        v->top_codes = top_of(got, n);
    }
}

QuantiseJudgement flow_judge(const Flow *f, const Graph *codes, Some some,
                             QuantiseError *judged) {
    Arena *scratch = arena_new("judge");
    Judge j = {f, codes, runner_new(scratch, codes), some,
               ARENA_ARRAY(scratch, Verdict, some.n)};
    run_all(some.n, f->options->threads, judge_one, &j);
    QuantiseJudgement out = {.samples = some.n};
    for (uint32_t i = 0; i < some.n; i++) {
        const Verdict *v = &j.verdict[i];
        error_join(&out.error, &v->error);
        if (judged)
            error_join(judged, &v->judged);
        out.same_top += v->top_real == v->top_codes;
        if (!f->samples->label)
            continue;
        uint64_t label = (uint64_t)f->samples->label[some.at[i]];
        out.labels++;
        out.right_real += v->top_real == label;
        out.right_codes += v->top_codes == label;
    }
    arena_free(scratch);
    return out;
}

/* ---- by itself ---- */

typedef struct RealRun {
    Flow *f;
    const Graph *g;
    const Runner *runner;
    Arena **kept; /* by sample */
} RealRun;

static void run_real(void *context, uint32_t sample, Arena *scratch) {
    RealRun *r = context;
    float **at = ARENA_ARRAY(scratch, float *, r->g->tensor.n);
    runner_eval(r->runner, scratch, flow_inputs(r->f, sample), 0, at);
    for (uint32_t o = 0; o < r->g->output.n; o++) {
        TensorId id = r->g->output.at[o];
        r->f->real_out[sample * r->g->output.n + o] =
            ARENA_COPY(r->kept[sample], float, at[id.i],
                       shape_count(&graph_tensor(r->g, id)->shape));
    }
}

QuantiseSamples quantise_held_back(Arena *arena,
                                   const QuantiseSamples *samples) {
    Some some = some_samples(arena, samples, true);
    uint32_t each = samples->n_inputs;
    const float **value =
        ARENA_ARRAY(arena, const float *, (size_t)some.n *each);
    int32_t *label = ARENA_ARRAY(arena, int32_t, some.n);
    for (uint32_t i = 0; i < some.n; i++) {
        for (uint32_t k = 0; k < each; k++)
            value[(size_t)i * each + k] =
                samples->value[(size_t)some.at[i] * each + k];
        label[i] = samples->label ? samples->label[some.at[i]] : 0;
    }
    return (QuantiseSamples){some.n, each, value,
                             samples->label ? label : NULL};
}

QuantiseJudgement quantise_judge(const Graph *real, const Graph *codes,
                                 const QuantiseSamples *samples,
                                 uint32_t threads) {
    Arena *arena = arena_new("judge");
    QuantiseOptions options = {.threads = threads};
    Flow f = {.arena = arena, .samples = samples, .options = &options};
    f.real_out =
        ARENA_ARRAY(arena, const float *, (size_t)samples->n * real->output.n);
    RealRun r = {&f, real, runner_new(arena, real),
                 ARENA_ARRAY(arena, Arena *, samples->n)};
    for (uint32_t s = 0; s < samples->n; s++)
        r.kept[s] = arena_new("outputs");
    run_all(samples->n, threads, run_real, &r);
    uint32_t *all = ARENA_ARRAY(arena, uint32_t, samples->n);
    for (uint32_t s = 0; s < samples->n; s++)
        all[s] = s;
    QuantiseJudgement out =
        flow_judge(&f, codes, (Some){samples->n, all}, NULL);
    for (uint32_t s = 0; s < samples->n; s++)
        arena_free(r.kept[s]);
    arena_free(arena);
    return out;
}
