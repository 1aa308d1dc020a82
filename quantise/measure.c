/* measure.c - what quantisation does to each tensor; see flow.h.
 *
 * Three runs of some samples: on real numbers, on codes, and each layer by
 * itself on codes between real numbers, which shows its own part of the error.
 */
#include "quantise/flow.h"

#include "graph/quant.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SAMPLES = 64, EXAMPLES = 8, LEAST_FOR_RANGES = 20 };
static const double most_products = 3e10;
static const double most_clipped = 0.01;

typedef struct Errors {
    QuantiseError all, alone;
} Errors;

typedef struct Measure {
    Flow *f;
    const State *state;
    const Graph *codes, *alone_graph;
    const Runner *real, *code, *alone;
    Some some;
    Errors *error;   /* [sample * tensors + tensor] */
    uint64_t **used; /* by tensor: bits of codes, from the least on */
    pthread_mutex_t lock;
    QuantiseExample *example;
} Measure;

/* Layers with weights as their codes say, all else on real numbers. */
static Graph *alone_graph(Arena *arena, const State *state,
                          const Graph *codes) {
    Graph *g = graph_clone(arena, state->g);
    for (uint32_t i = 0; i < g->node.n; i++) {
        Node *node = &g->node.at[i];
        for (int role = 0; role < CONST_ROLES && state->scheme.weight[i].code;
             role++) {
            ConstId id = codes->node.at[i].constant[role];
            if (id.i != NONE)
                node->constant[role] =
                    graph_add_const(g, *graph_const(codes, id));
        }
    }
    return g;
}

/* ---- one sample ---- */

/* Errors of what node i writes, alone: from real numbers at `at`. */
static void measure_alone(const Measure *m, uint32_t i, uint32_t sample,
                          Arena *scratch, float *const *at, Errors *error) {
    const Graph *g = m->alone_graph;
    const Node *node = &g->node.at[i];
    TensorId id = node->out[0];
    uint64_t n = shape_count(&graph_tensor(g, id)->shape);
    const Quant *q = &graph_tensor(m->codes, id)->quant;
    float **mine = ARENA_COPY(scratch, float *, at, g->tensor.n);
    for (uint32_t o = 0; o < node->n_out; o++)
        mine[node->out[o].i] = NULL;
    runner_node(m->alone, scratch, flow_inputs(m->f, sample), i, mine);
    float *got = mine[id.i];
    for (uint64_t k = 0; k < n; k++)
        got[k] = (float)quant_real(q, quant_code(q, (double)got[k]));
    error_add(&error[id.i].alone, n, at[id.i], got);
}

static void note_codes(Measure *m, uint32_t t, const float *value) {
    const Tensor *tensor = &m->codes->tensor.at[t];
    int32_t least = quant_type[tensor->quant.type].lo;
    for (uint64_t i = 0, n = shape_count(&tensor->shape); i < n; i++) {
        uint32_t bit = (uint32_t)((int32_t)value[i] - least);
        m->used[t][bit / 64] |= UINT64_C(1) << bit % 64;
    }
}

static void keep_example(Measure *m, uint32_t i, uint32_t sample,
                         const float *got) {
    TensorId id = m->codes->output.at[0];
    uint64_t n = shape_count(&graph_tensor(m->codes, id)->shape);
    if (i >= EXAMPLES || n > UINT16_MAX)
        return;
    m->example[i] = (QuantiseExample){
        sample, (uint32_t)n, m->f->real_out[sample * m->codes->output.n],
        ARENA_COPY(m->f->arena, float, got, n)};
}

static void measure_one(void *context, uint32_t i, Arena *scratch) {
    Measure *m = context;
    const Graph *g = m->codes;
    uint32_t sample = m->some.at[i], n = g->tensor.n;
    Errors *error = m->error + (size_t)i * n;
    float **real = ARENA_ARRAY(scratch, float *, n);
    float **code = ARENA_ARRAY(scratch, float *, n);
    runner_eval(m->real, scratch, flow_inputs(m->f, sample), 0, real);
    runner_eval(m->code, scratch, flow_inputs(m->f, sample), 0, code);
    for (uint32_t k = 0; k < g->node.n; k++) {
        const Tensor *t = graph_tensor(g, g->node.at[k].out[0]);
        uint32_t id = g->node.at[k].out[0].i;
        Arena *own = arena_new("a tensor");
        error_add(&error[id].all, shape_count(&t->shape), real[id],
                  run_reals(own, t, code[id]));
        if (t->quant.type != QUANT_NONE)
            measure_alone(m, k, sample, own, real, error);
        arena_free(own);
    }
    pthread_mutex_lock(&m->lock);
    for (uint32_t t = 0; t < n; t++)
        if (g->tensor.at[t].quant.type != QUANT_NONE)
            note_codes(m, t, code[t]);
    uint32_t out = g->output.at[0].i;
    keep_example(m, i, sample,
                 run_reals(scratch, &g->tensor.at[out], code[out]));
    pthread_mutex_unlock(&m->lock);
}

/* ---- rows ---- */

static void fill_bars(const Histogram *h, QuantiseTensor *row) {
    double width = (row->hi - row->lo) / QUANTISE_BARS;
    for (uint32_t b = 0; b < HISTOGRAM_BINS && width > 0; b++) {
        double at = (histogram_value(h, b) - row->lo) / width;
        int bar = (int)fmin(fmax(at, 0), QUANTISE_BARS - 1);
        row->bar[bar] += h->bin[b];
    }
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Largest of a channel's weights over the median of these. */
static double unevenness(Arena *scratch, const WeightCodes *w) {
    if (!w->code || w->along_second || w->channels < 2)
        return 1;
    double *most = ARENA_ARRAY(scratch, double, w->channels);
    for (uint32_t c = 0; c < w->channels; c++)
        for (size_t i = 0; i < w->each; i++)
            most[c] =
                fmax(most[c], abs(w->code[c * w->each + i]) * w->scale[c]);
    qsort(most, w->channels, sizeof *most, by_size);
    double median = most[w->channels / 2];
    return median > 0 ? most[w->channels - 1] / median : 1;
}

static const char *advice_for(const Measure *m, const QuantiseTensor *row) {
    const QuantiseOptions *o = m->f->options;
    double alone = quantise_db(&row->alone), all = quantise_db(&row->all);
    if (!row->values || row->zeros == row->values)
        return "always zero on these samples: are they like the real ones?";
    if (row->clipped > most_clipped)
        return "more than 1 % is cut off: --method minmax, or --bits "
               "LAYER=8/16";
    if (alone >= 20)
        return all < 15 ? "its inputs bring the error: look at layers before"
                        : NULL;
    if (o->numbers.per_tensor && row->weight_uneven > 8)
        return "its channels' weights differ much: --per channel, or --repair "
               "equalise";
    if (row->codes_used < row->codes / 4)
        return "few values decide its range: --method mse or percentile";
    return "--bits LAYER=8/16 gives its result 16 bits";
}

static QuantiseTensor row_of(const Measure *m, Arena *scratch,
                             Histogram *const *h, uint32_t node) {
    const Node *n = &m->codes->node.at[node];
    uint32_t id = n->out[0].i, tensors = m->codes->tensor.n;
    const Tensor *t = &m->codes->tensor.at[id];
    const Histogram *own = h[id];
    Range reach = range_of(&t->quant);
    QuantiseTensor row = {
        .layer = n->name,
        .tensor = t->name,
        .op = op_info[n->op].name,
        .quant = t->quant,
        .weight_bits = m->state->scheme.weight[node].code
                           ? m->state->scheme.weight[node].bits
                           : 0,
        .weight_uneven = unevenness(scratch, &m->state->scheme.weight[node]),
        .lo = fmin((double)own->lo, own->zeros ? 0 : INFINITY),
        .hi = fmax((double)own->hi, own->zeros ? 0 : -INFINITY),
        .reach_lo = reach.lo,
        .reach_hi = reach.hi,
        .clipped = range_clipped(own, &t->quant),
        .codes = (uint32_t)(quant_type[t->quant.type].hi -
                            quant_type[t->quant.type].lo + 1),
        .nans = own->nans,
        .zeros = own->zeros,
        .values = own->n + own->zeros + own->nans};
    for (uint32_t w = 0; w < row.codes / 64; w++)
        for (uint64_t bits = m->used[id][w]; bits; bits &= bits - 1)
            row.codes_used++;
    for (uint32_t i = 0; i < m->some.n; i++) {
        error_join(&row.all, &m->error[(size_t)i * tensors + id].all);
        error_join(&row.alone, &m->error[(size_t)i * tensors + id].alone);
    }
    fill_bars(own, &row);
    row.advice = advice_for(m, &row);
    return row;
}

static void make_rows(const Measure *m, Quantised *out) {
    VEC(QuantiseTensor) row = {0};
    Arena *scratch = arena_new("rows");
    for (uint32_t i = 0; i < m->codes->node.n; i++) {
        const Node *node = &m->codes->node.at[i];
        if (graph_tensor(m->codes, node->out[0])->quant.type != QUANT_NONE)
            vec_push(m->f->arena, &row,
                     row_of(m, scratch, m->state->seen.histogram, i));
    }
    arena_free(scratch);
    out->tensor = row.at;
    out->n_tensors = row.n;
}

/* ---- warnings ---- */

static void warn(const Flow *f, const Quantised *q) {
    uint32_t n = f->samples->n, nans = 0, zeros = 0, clipped = 0;
    const char *nan = NULL, *zero = NULL, *clip = NULL;
    for (uint32_t i = q->n_tensors; i-- > 0;) {
        const QuantiseTensor *t = &q->tensor[i];
        if (t->nans)
            nan = t->tensor, nans++;
        if (t->zeros == t->values && !t->nans)
            zero = t->tensor, zeros++;
        if (t->clipped > most_clipped)
            clip = t->tensor, clipped++;
    }
    if (n < LEAST_FOR_RANGES)
        diag_warning(f->diag, (Loc){0},
                     "%u samples: ranges from fewer than %d are seldom those "
                     "of others",
                     n, LEAST_FOR_RANGES);
    if (nans)
        diag_warning(f->diag, (Loc){0},
                     "%u tensors have values that are no numbers, first %s",
                     nans, nan);
    if (zeros)
        diag_warning(f->diag, (Loc){0},
                     "%u tensors are zero on all samples, first %s", zeros,
                     zero);
    if (clipped)
        diag_warning(f->diag, (Loc){0},
                     "of %u tensors more than 1 %% of the values are cut off, "
                     "first %s",
                     clipped, clip);
}

uint64_t weight_bytes(const Graph *g) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < g->node.n; i++)
        for (int role = 0; role < CONST_ROLES; role++) {
            ConstId id = g->node.at[i].constant[role];
            const Const *c = id.i == NONE ? NULL : graph_const(g, id);
            bool code = c && c->kind >= CONST_I8;
            if (c)
                sum += shape_count(&c->shape) * (!code                  ? 4
                                                 : c->kind == CONST_I32 ? 4
                                                 : c->kind == CONST_I16 ? 2
                                                                        : 1);
        }
    return sum;
}

void measure(Flow *f, const State *state, Quantised *out) {
    Arena *scratch = arena_new("measure");
    const Graph *g = out->graph;
    Measure m = {.f = f, .state = state, .codes = g};
    double most = most_products / (3 * (double)flow_products(g));
    uint32_t *all = ARENA_ARRAY(scratch, uint32_t, f->samples->n);
    for (uint32_t s = 0; s < f->samples->n; s++)
        all[s] = s;
    m.some = some_of(scratch, (Some){f->samples->n, all},
                     (uint32_t)fmax(1, fmin(most, MOST_SAMPLES)));
    m.alone_graph = alone_graph(scratch, state, g);
    m.real = runner_new(scratch, state->g);
    m.code = runner_new(scratch, g);
    m.alone = runner_new(scratch, m.alone_graph);
    m.error = ARENA_ARRAY(scratch, Errors, (size_t)m.some.n * g->tensor.n);
    m.used = ARENA_ARRAY(scratch, uint64_t *, g->tensor.n);
    m.example = ARENA_ARRAY(f->arena, QuantiseExample, EXAMPLES);
    for (uint32_t t = 0; t < g->tensor.n; t++)
        m.used[t] =
            ARENA_ARRAY(scratch, uint64_t,
                        g->tensor.at[t].quant.type == QUANT_I16 ? 1 << 10 : 4);
    pthread_mutex_init(&m.lock, NULL);
    run_all(m.some.n, f->options->threads, measure_one, &m);
    pthread_mutex_destroy(&m.lock);
    make_rows(&m, out);
    out->measured = m.some.n;
    out->example = m.example;
    while (out->n_examples < EXAMPLES && m.example[out->n_examples].n)
        out->n_examples++;
    warn(f, out);
    arena_free(scratch);
}
