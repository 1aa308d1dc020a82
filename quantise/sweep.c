/* sweep.c - weights up or down by what samples see, and biases; see flow.h.
 *
 * Layer by layer, in order: a layer's inputs are those that the layers before
 * it, already on codes, really give, and what it should give is what the
 * network of real numbers gives. With x the inputs on codes, less their mean,
 * the error of codes v for weights w is a quadratic form,
 *
 *     sum over x of ((v - w) x - d)^2,  d: what the inputs' own error does,
 *
 * which is made small by moving codes of one weight at a time, each to one of
 * the codes beside the weight. That is the objective of Nagel and others, "Up
 * or down? Adaptive rounding for post-training quantization" (2020), by a local
 * search instead of a relaxation: nothing is random. The mean goes into the
 * bias.
 */
#include "quantise/flow.h"

#include "quantise/kernel.h"

#include <math.h>
#include <string.h>

enum {
    MOST_COLUMNS = 4096, /* pixels that a layer is judged by */
    MOST_LENGTH = 2304,  /* products of a sum: the form has its square */
    MOST_PASSES = 12,
    MOST_VALUES = 1 << 26, /* floats of volumes at a time */
};

typedef struct Sweep {
    Flow *f;
    const State *from;
    Scheme scheme; /* what is made */
    Graph *codes;  /* on the codes of the scheme so far */
    Runner *real, *code;
    Some some;
    Arena **owner; /* by tensor: of its values of all samples */
    float ***at;   /* by sample, [0] real, [1] on codes: by tensor */
    bool round, bias;
    uint32_t layers, rounded;
} Sweep;

/* ---- values of all samples, as long as they are read ---- */

static uint32_t *last_readers(Arena *arena, const Graph *g) {
    uint32_t *last = ARENA_ARRAY(arena, uint32_t, g->tensor.n);
    for (uint32_t i = 0; i < g->node.n; i++) {
        const Node *node = &g->node.at[i];
        for (uint32_t k = 0; k < node->n_in; k++)
            last[node->in[k].i] = i;
        for (uint32_t o = 0; o < node->n_out; o++)
            if (last[node->out[o].i] < i)
                last[node->out[o].i] = i;
    }
    for (uint32_t i = 0; i < g->node.n; i++) { /* outputs are one array */
        const Node *node = &g->node.at[i];
        uint32_t *first = &last[node->out[0].i];
        for (uint32_t o = 1; o < node->n_out; o++)
            *first =
                *first > last[node->out[o].i] ? *first : last[node->out[o].i];
    }
    return last;
}

/* The most values of one sample at any time. */
static uint64_t live_values(const Graph *g, const uint32_t *last) {
    uint64_t live = 0, most = 1;
    for (uint32_t i = 0; i < g->node.n; i++) {
        const Node *node = &g->node.at[i];
        live += shape_count(&graph_tensor(g, node->out[0])->shape);
        most = live > most ? live : most;
        for (uint32_t t = 0; t < g->tensor.n; t++)
            if (last[t] == i && g->tensor.at[t].producer.i <= i &&
                same_tensor(graph_node(g, g->tensor.at[t].producer)->out[0],
                            (TensorId){t}))
                live -= shape_count(&g->tensor.at[t].shape);
    }
    return most;
}

static void make_room(Sweep *s, const Node *node) {
    uint32_t t = node->out[0].i;
    uint64_t n = shape_count(&graph_tensor(s->codes, node->out[0])->shape);
    s->owner[t] = arena_new("values of a tensor");
    for (uint32_t i = 0; i < 2 * s->some.n; i++)
        s->at[i][t] = arena_alloc_raw(s->owner[t], n * sizeof(float), 64);
}

static void free_read(Sweep *s, const uint32_t *last, uint32_t i) {
    for (uint32_t t = 0; t < s->codes->tensor.n; t++)
        if (last[t] <= i && s->owner[t]) {
            arena_free(s->owner[t]);
            s->owner[t] = NULL;
        }
}

typedef struct Step {
    Sweep *s;
    const Runner *runner;
    uint32_t node, side;
} Step;

static void run_step(void *context, uint32_t i, Arena *scratch) {
    const Step *step = context;
    Sweep *s = step->s;
    runner_node(step->runner, scratch, flow_inputs(s->f, s->some.at[i]),
                step->node, s->at[2 * i + step->side]);
}

static void run_node(Sweep *s, uint32_t node, uint32_t side) {
    Step step = {s, side ? s->code : s->real, node, side};
    run_all(s->some.n, s->f->options->threads, run_step, &step);
}

/* ---- columns: what sums of a group see ---- */

typedef struct Columns {
    size_t n, judges, length; /* the last `judges` are of held-back samples */
    double *x;                /* [n, length], less the mean */
    double *mean;
    double *d; /* [out_c, n], less its mean */
    double *mean_d;
} Columns;

/* A sample's pixels that are looked at. */
static size_t pixels_of(const Sweep *s, const Linear *l, size_t *step) {
    size_t all = linear_pixels(l), most = MOST_COLUMNS / s->some.n;
    most = most ? most : 1;
    *step = (all + most - 1) / most;
    return (all + *step - 1) / *step;
}

/* Columns of one sample's group, every step-th pixel: to[i * length]. */
static void sample_columns(const Linear *l, Arena *scratch, const float *in,
                           float zero, double scale, uint32_t group,
                           size_t step, size_t n, double *to) {
    const float *padded = linear_pad(l, scratch, in, zero);
    float *column =
        arena_alloc_raw(scratch, l->length * KERNEL_WIDTH * sizeof *column, 64);
    for (size_t i = 0; i < n; i++) {
        linear_columns(l, padded, group, i * step, 1, column);
        for (size_t k = 0; k < l->length; k++)
            to[i * l->length + k] = scale * (double)column[k * KERNEL_WIDTH];
    }
}

typedef struct Gather {
    const Sweep *s;
    const Linear *l;
    const Node *node;
    uint32_t group;
    const double *weight; /* real, of the group: [out_c, length] */
    size_t out_c, each, step, total;
    double *x, *d;
} Gather;

static bool is_judge(const Sweep *s, uint32_t i) {
    return s->some.at[i] % HELD_BACK == HELD_BACK - 1;
}

/* Where columns of sample i of the sweep go: those of judges come last. */
static size_t place_of(const Sweep *s, uint32_t i, size_t each) {
    size_t at = 0;
    bool judge = is_judge(s, i);
    for (uint32_t k = 0; k < s->some.n; k++)
        at += is_judge(s, k) == judge ? k < i : judge;
    return at * each;
}

static void gather_one(void *context, uint32_t i, Arena *scratch) {
    const Gather *g = context;
    const Linear *l = g->l;
    uint32_t t = g->node->in[0].i;
    const Quant *q = &graph_tensor(g->s->codes, g->node->in[0])->quant;
    size_t first = place_of(g->s, i, g->each);
    double *x = g->x + first * l->length;
    double *real =
        arena_alloc_raw(scratch, g->each * l->length * sizeof *real, 64);
    sample_columns(l, scratch, g->s->at[2 * i + 1][t], (float)q->zero, q->scale,
                   g->group, g->step, g->each, x);
    sample_columns(l, scratch, g->s->at[2 * i][t], 0, 1, g->group, g->step,
                   g->each, real);
    for (size_t c = 0; c < g->each * l->length; c++)
        real[c] -= x[c];
    for (size_t o = 0; o < g->out_c; o++)
        for (size_t c = 0; c < g->each; c++)
            g->d[o * g->total + first + c] = kernel_dot_f64(
                l->length, g->weight + o * l->length, real + c * l->length);
}

/* Takes the mean of the first n of `stride` from all. */
static double centre(double *value, size_t n, size_t all, size_t stride) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += value[i * stride];
    double mean = n ? sum / (double)n : 0;
    for (size_t i = 0; i < all; i++)
        value[i * stride] -= mean;
    return mean;
}

static Columns gather(Sweep *s, Arena *arena, const Linear *l, const Node *node,
                      uint32_t group, const double *weight) {
    Gather g = {s, l, node, group, weight, l->conv.out_c / l->conv.groups,
                0, 0, 0,    NULL,  NULL};
    g.each = pixels_of(s, l, &g.step);
    g.total = g.each * s->some.n;
    g.x = ARENA_ARRAY(arena, double, g.total * l->length);
    g.d = ARENA_ARRAY(arena, double, g.total *g.out_c);
    run_all(s->some.n, s->f->options->threads, gather_one, &g);
    Columns c = {g.total,
                 0,
                 l->length,
                 g.x,
                 ARENA_ARRAY(arena, double, l->length),
                 g.d,
                 ARENA_ARRAY(arena, double, g.out_c)};
    for (uint32_t i = 0; i < s->some.n; i++)
        c.judges += is_judge(s, i) ? g.each : 0;
    size_t n = c.n - c.judges;
    for (size_t k = 0; k < l->length; k++)
        c.mean[k] = centre(c.x + k, n, c.n, l->length);
    for (size_t o = 0; o < g.out_c; o++)
        c.mean_d[o] = centre(c.d + o * c.n, n, c.n, 1);
    return c;
}

/* ---- up or down ---- */

typedef struct Form {
    const Columns *c;
    double *h; /* [length, length]: sums of x x */
} Form;

enum { FORM_ROWS = 16 };

/* Some rows of the upper half: as many as stay near with a column. */
static void form_rows(void *context, uint32_t block, Arena *scratch) {
    const Form *form = context;
    const Columns *c = form->c;
    size_t n = c->length, first = (size_t)block * FORM_ROWS;
    size_t end = first + FORM_ROWS < n ? first + FORM_ROWS : n;
    (void)scratch;
    for (size_t i = 0; i < c->n - c->judges; i++) {
        const double *x = c->x + i * n;
        for (size_t row = first; row < end; row++)
            kernel_add_row(n - first, x[row], x + first,
                           form->h + row * n + first);
    }
}

/* A share of its mean size on the diagonal: what few columns do not tell stays
 * as it is. */
static double *form_of(const Sweep *s, Arena *arena, const Columns *c) {
    Form form = {c, ARENA_ARRAY(arena, double, c->length * c->length)};
    double trace = 0, n = (double)(c->n - c->judges);
    run_all((uint32_t)((c->length + FORM_ROWS - 1) / FORM_ROWS),
            s->f->options->threads, form_rows, &form);
    for (size_t k = 0; k < c->length; k++)
        for (size_t m = 0; m < k; m++)
            form.h[k * c->length + m] = form.h[m * c->length + k];
    for (size_t k = 0; k < c->length; k++)
        trace += form.h[k * c->length + k];
    double ridge = 0.01 + fmin((double)c->length / (n + 1), 10) * 0.05;
    for (size_t k = 0; k < c->length; k++)
        form.h[k * c->length + k] += ridge * trace / (double)c->length;
    return form.h;
}

/* One output channel: codes in place. `w` real weights, `pull` sums of x d. */
static void round_channel(const double *h, size_t n, const double *w,
                          double scale, int32_t most, double *slope,
                          int16_t *code) {
    for (size_t k = 0; k < n; k++) {
        double off = code[k] * scale - w[k];
        if (off > 0 || off < 0)
            kernel_add_row(n, off, h + k * n, slope);
    }
    for (int pass = 0, moved = 1; moved && pass < MOST_PASSES; pass++) {
        moved = 0;
        for (size_t k = 0; k < n; k++) {
            double exact = w[k] / scale;
            double other = code[k] > exact ? floor(exact) : ceil(exact);
            double by = (other - code[k]) * scale;
            if (fabs(other) > most || fabs(other - code[k]) > 1.5 ||
                2 * by * slope[k] + by * by * h[k * n + k] >= 0)
                continue;
            kernel_add_row(n, by, h + k * n, slope);
            code[k] = (int16_t)other;
            moved = 1;
        }
    }
}

/* Sum of squares of what codes of channel o leave, of columns from `from` on.
 */
static double left_by(const Columns *c, Arena *scratch, size_t o,
                      const double *w, double scale, const int16_t *code,
                      size_t from) {
    double sum = 0, *error = ARENA_ARRAY(scratch, double, c->length);
    for (size_t k = 0; k < c->length; k++)
        error[k] = code[k] * scale - w[k];
    for (size_t i = from; i < c->n; i++) {
        double off = kernel_dot_f64(c->length, error, c->x + i * c->length) -
                     c->d[o * c->n + i];
        sum += off * off;
    }
    return sum;
}

typedef struct Round {
    const Sweep *s;
    const Columns *c;
    const double *h, *weight; /* of the group */
    const WeightCodes *w;
    size_t first;           /* channel of the group's first */
    int16_t *code;          /* of the group, made */
    double *before, *after; /* left of judges' columns, by channel */
} Round;

static void round_one(void *context, uint32_t o, Arena *scratch) {
    const Round *r = context;
    const Columns *c = r->c;
    size_t n = c->length, train = c->n - c->judges;
    const double *w = r->weight + o * n;
    double scale = r->w->scale[r->first + o];
    const int16_t *old = r->w->code + (r->first + o) * n;
    int16_t *code = r->code + o * n;
    double *slope = ARENA_ARRAY(scratch, double, n);
    memcpy(code, old, n * sizeof *code);
    for (size_t i = 0; i < train; i++)
        kernel_add_row(n, -c->d[o * c->n + i], c->x + i * n, slope);
    round_channel(r->h, n, w, scale, weights_most(r->w->bits), slope, code);
    size_t from = c->judges ? train : 0;
    r->before[o] = left_by(c, scratch, o, w, scale, old, from);
    r->after[o] = left_by(c, scratch, o, w, scale, code, from);
}

/* What the mean of a channel lacks: of the inputs' error and of the weights'.
 */
static double shift_of(const Columns *c, size_t o, const double *w,
                       double scale, const int16_t *code) {
    double shift = c->mean_d[o];
    for (size_t k = 0; k < c->length; k++)
        shift -= (code[k] * scale - w[k]) * c->mean[k];
    return shift;
}

static void sweep_group(Sweep *s, const Linear *l, const Node *node,
                        uint32_t group, const double *weight, WeightCodes *w,
                        double *bias, bool *rounded) {
    Arena *scratch = arena_new("a group");
    size_t out_c = l->conv.out_c / l->conv.groups, first = group * out_c;
    const double *own = weight + first * l->length;
    Columns c = gather(s, scratch, l, node, group, own);
    int16_t *code = (int16_t *)w->code + first * l->length;
    if (s->round && l->length <= MOST_LENGTH && l->length > 0) {
        Round r = {s,
                   &c,
                   form_of(s, scratch, &c),
                   own,
                   w,
                   first,
                   ARENA_ARRAY(scratch, int16_t, out_c * l->length),
                   ARENA_ARRAY(scratch, double, out_c),
                   ARENA_ARRAY(scratch, double, out_c)};
        run_all((uint32_t)out_c, s->f->options->threads, round_one, &r);
        for (size_t o = 0; o < out_c; o++) {
            if (!(r.after[o] < r.before[o]))
                continue;
            memcpy(code + o * l->length, r.code + o * l->length,
                   l->length * sizeof *code);
            *rounded = true;
        }
    }
    for (size_t o = 0; s->bias && o < out_c; o++)
        bias[first + o] += shift_of(&c, o, own + o * l->length,
                                    w->scale[first + o], code + o * l->length);
    arena_free(scratch);
}

static void sweep_layer(Sweep *s, uint32_t i) {
    Arena *arena = s->f->arena;
    const Node *node = &s->from->g->node.at[i];
    WeightCodes *w = &s->scheme.weight[i];
    Linear l = linear_of(s->from->g, node);
    double *weight = ARENA_ARRAY(arena, double, w->channels * w->each);
    double *bias = ARENA_ARRAY(arena, double, w->channels);
    bool rounded = false;
    const_read_f64(graph_const(s->from->g, node->constant[CONST_WEIGHT]),
                   weight);
    w->code = ARENA_COPY(arena, int16_t, w->code, w->channels * w->each);
    if (node->constant[CONST_BIAS].i != NONE)
        const_read_f64(graph_const(s->from->g, node->constant[CONST_BIAS]),
                       bias);
    for (uint32_t g = 0; g < l.conv.groups; g++)
        sweep_group(s, &l, node, g, weight, w, bias, &rounded);
    if (s->bias)
        w->bias = bias;
    s->layers++;
    s->rounded += rounded;
    scheme_weigh(s->codes, &s->codes->node.at[i], w, &s->f->options->numbers);
    runner_renew(s->code, arena, i);
}

/* Layers whose images are one, which is all but those of tokens. */
static bool can_sweep(const Sweep *s, uint32_t i) {
    const Node *node = &s->from->g->node.at[i];
    const WeightCodes *w = &s->scheme.weight[i];
    return w->code && !w->along_second && linear_is(s->from->g, node) &&
           graph_tensor(s->from->g, node->in[0])->shape.dim[0] == 1;
}

static Some sweep_samples(Flow *f, const Graph *g, const uint32_t *last) {
    uint32_t *all = ARENA_ARRAY(f->arena, uint32_t, f->samples->n);
    for (uint32_t s = 0; s < f->samples->n; s++)
        all[s] = s;
    uint64_t most = MOST_VALUES / (2 * live_values(g, last));
    uint32_t n = f->samples->n, odd = 1;
    if (n > most && most > 0) { /* an odd step meets those held back, too */
        odd = (uint32_t)((n + most - 1) / most) | 1;
        n = 0;
        for (uint32_t s = 0; s < f->samples->n; s += odd)
            all[n++] = s;
    }
    return (Some){n, all};
}

Scheme sweep(Flow *f, const State *from, bool round, bool bias,
             const char **detail) {
    Arena *scratch = arena_new("sweep");
    const Graph *g = from->g;
    uint32_t *last = last_readers(scratch, g);
    Sweep s = {.f = f,
               .from = from,
               .scheme = from->scheme,
               .codes =
                   scheme_graph(f->arena, &from->scheme, &f->options->numbers),
               .real = runner_new(scratch, g),
               .some = sweep_samples(f, g, last),
               .owner = ARENA_ARRAY(scratch, Arena *, g->tensor.n),
               .round = round,
               .bias = bias};
    s.code = runner_new(scratch, s.codes);
    s.scheme.weight =
        ARENA_COPY(f->arena, WeightCodes, from->scheme.weight, g->node.n);
    s.at = ARENA_ARRAY(scratch, float **, 2 * s.some.n);
    for (uint32_t i = 0; i < 2 * s.some.n; i++)
        s.at[i] = ARENA_ARRAY(scratch, float *, g->tensor.n);
    for (uint32_t i = 0; i < g->node.n; i++) {
        flow_progress(f, round ? "weights up or down" : "biases", i + 1,
                      g->node.n);
        make_room(&s, &g->node.at[i]);
        run_node(&s, i, 0);
        if (can_sweep(&s, i))
            sweep_layer(&s, i);
        run_node(&s, i, 1);
        free_read(&s, last, i);
    }
    free_read(&s, last, UINT32_MAX);
    *detail =
        round ? arena_printf(f->arena, "%u of %u layers", s.rounded, s.layers)
              : arena_printf(f->arena, "%u layers", s.layers);
    arena_free(scratch);
    return s.scheme;
}
