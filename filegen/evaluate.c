/* evaluate.c - the network by the machine's arithmetic; filegen.h.
 *
 * In: the graph, the numbers of its layers, codes of the inputs. Out: codes of
 * every tensor. No address, layout or file is in it: what a file computes is
 * compared with this. Convolutions of engines are exact sums and the stages of
 * the hwspec; the processor's layers are floats of 32 bits in the order of the
 * elements.
 */
#include "filegen/numbers.h"

#include <float.h>
#include <math.h>
#include <string.h>

typedef struct Run {
    Arena *arena, *work;
    const FileGen *file;
    const Graph *g;
    const Node *node;
    const FileLayer *layer;
    uint8_t **code;
    float **real;
} Run;

static const Tensor *in_of(const Run *r, uint32_t k) {
    return graph_tensor(r->g, r->node->in[k]);
}

static const Tensor *out_of(const Run *r) {
    return graph_tensor(r->g, r->node->out[0]);
}

static const uint8_t *codes_in(const Run *r, uint32_t k) {
    return r->code[r->node->in[k].i];
}

static uint8_t code_at(int64_t x) {
    return (uint8_t)(x < 0 ? 0 : x > UINT8_MAX ? UINT8_MAX : x);
}

static uint8_t nearest_code(float x, float codes_a_unit, int32_t zero) {
    float code = roundf(x * codes_a_unit + (float)zero);
    return code >= UINT8_MAX ? UINT8_MAX : code > 0 ? (uint8_t)code : 0;
}

/* ---- convolutions of engines ---- */

typedef struct Plane {
    uint32_t c, h, w;
    const uint8_t *at;
} Plane;

/* Sums of an output channel over the input, with pads that count nothing. */
static void add_channel(const FileConv *v, const Plane *in, uint32_t c,
                        const uint8_t *weight, int64_t *sum) {
    int32_t pad = (int32_t)v->kernel / 2, h = (int32_t)in->h,
            w = (int32_t)in->w;
    const uint8_t *from = in->at + (size_t)c * in->h * in->w;
    for (int32_t i = 0; i < (int32_t)v->kernel; i++)
        for (int32_t k = 0; k < (int32_t)v->kernel; k++) {
            int32_t factor = *weight++ - v->zero_weight;
            for (int32_t y = 0; factor && y < h; y++) {
                int32_t row = y + i - pad;
                if (row < 0 || row >= h)
                    continue;
                int32_t first = k < pad ? pad - k : 0;
                int32_t end = k > pad ? w - (k - pad) : w;
                const uint8_t *x = from + (size_t)row * in->w;
                int64_t *to = sum + (size_t)y * in->w;
                for (int32_t q = first; q < end; q++)
                    to[q] += (int64_t)factor * (x[q + k - pad] - v->zero_in);
            }
        }
}

static void pool_plane(const FileConv *v, const Plane *in, const uint8_t *from,
                       uint8_t *to) {
    uint32_t step = v->pool_stride, size = v->pool_kernel;
    bool samples = !strcmp(v->pool, "sample");
    for (uint32_t y = 0; y < in->h / step; y++)
        for (uint32_t x = 0; x < in->w / step; x++) {
            uint8_t most = from[(size_t)y * step * in->w + x * step];
            for (uint32_t i = 0; !samples && i < size * size; i++) {
                uint32_t row = y * step + i / size, col = x * step + i % size;
                if (row >= in->h || col >= in->w)
                    continue;
                uint8_t code = from[(size_t)row * in->w + col];
                most = code > most ? code : most;
            }
            *to++ = most;
        }
}

/* Operands one behind the other, as they lie beside each other. */
static const uint8_t *operands(const Run *r) {
    uint64_t n = 0;
    if (r->node->n_in == 1)
        return codes_in(r, 0);
    for (uint32_t k = 0; k < r->node->n_in; k++)
        n += shape_count(&in_of(r, k)->shape);
    uint8_t *all = ARENA_ARRAY(r->work, uint8_t, n), *to = all;
    for (uint32_t k = 0; k < r->node->n_in; k++) {
        n = shape_count(&in_of(r, k)->shape);
        memcpy(to, codes_in(r, k), n);
        to += n;
    }
    return all;
}

static void run_engine(const Run *r, uint8_t *out) {
    const FileConv *v = r->layer->conv;
    Plane in = {.at = operands(r)};
    shape_chw(&in_of(r, 0)->shape, &in.c, &in.h, &in.w);
    size_t n = (size_t)in.h * in.w, taps = (size_t)v->kernel * v->kernel;
    size_t made = shape_count(&out_of(r)->shape) / v->out_c;
    int64_t *sum = ARENA_ARRAY(r->work, int64_t, n);
    uint8_t *code = ARENA_ARRAY(r->work, uint8_t, n);
    for (uint32_t o = 0; o < v->out_c; o++) {
        uint32_t each = v->depthwise ? 1 : v->in_c;
        memset(sum, 0, n * sizeof *sum);
        for (uint32_t c = 0; c < each; c++)
            add_channel(v, &in, v->depthwise ? o : c,
                        v->weight + ((size_t)o * each + c) * taps, sum);
        for (size_t i = 0; i < n; i++) {
            int64_t x = 0;
            uint32_t stage;
            requant(v->n_stages, v->stage, o, sum[i], &x, &stage);
            code[i] = code_at(x);
        }
        pool_plane(v, &in, code, out + o * made);
    }
}

/* ---- the processor: elements ---- */

static float unit_of(const Run *r) {
    return 1.0F / r->layer->codes_a_unit[0];
}

static float *reals_in(const Run *r) {
    uint64_t n = shape_count(&in_of(r, 0)->shape);
    float *x = ARENA_ARRAY(r->work, float, n);
    const uint8_t *from = codes_in(r, 0);
    for (uint64_t i = 0; i < n; i++)
        x[i] = (float)(from[i] - r->layer->zero[0]) * unit_of(r);
    return x;
}

static void to_codes(const Run *r, const float *x, uint8_t *out) {
    uint64_t n = shape_count(&out_of(r)->shape);
    for (uint64_t i = 0; i < n; i++)
        out[i] =
            nearest_code(x[i], r->layer->codes_a_unit[1], r->layer->zero[1]);
}

static void look_up(const Run *r, const uint8_t *in, uint8_t *out) {
    uint64_t n = shape_count(&out_of(r)->shape);
    for (uint64_t i = 0; i < n; i++)
        out[i] = r->layer->table[in[i]];
}

static int64_t scaled(const FileScaled *s, int64_t x) {
    int64_t out;
    round_shift(ROUND_HALF_UP, x * s->mul, (uint32_t)s->shift, &out);
    return out;
}

/* The operand's element for element i of the result, whose axes of 1 repeat. */
static uint64_t spread(const Shape *in, const Shape *out, uint64_t i) {
    uint64_t at = 0, step = 1;
    for (uint32_t a = out->rank, b = in->rank; a-- > 0;) {
        uint64_t index = i % out->dim[a];
        i /= out->dim[a];
        if (b == 0)
            continue;
        b--;
        at += (in->dim[b] > 1 ? index : 0) * step;
        step *= in->dim[b];
    }
    return at;
}

static void run_binary(const Run *r, uint8_t *out) {
    const FileScaled *s = r->layer->scaled;
    const char *op = r->layer->operation;
    uint64_t n = shape_count(&out_of(r)->shape);
    for (uint64_t i = 0; i < n; i++) {
        int64_t a =
            codes_in(r, 0)[spread(&in_of(r, 0)->shape, &out_of(r)->shape, i)];
        int64_t b =
            codes_in(r, 1)[spread(&in_of(r, 1)->shape, &out_of(r)->shape, i)];
        a = scaled(&s[0], a + s[0].add);
        b = scaled(&s[1], b + s[1].add);
        int64_t x = !strcmp(op, "add")   ? a + b
                    : !strcmp(op, "sub") ? a - b
                                         : a * b;
        out[i] = code_at(scaled(&s[2], x) + s[2].add);
        if (r->layer->table)
            out[i] = r->layer->table[out[i]];
    }
}

/* ---- the processor: windows ---- */

static float bounded(float x, float least, float most) {
    return fminf(fmaxf(x, least), most);
}

/* Where tap (i, k) of the window of pixel (y, q) lies in a channel; false: in
 * the padding. */
static bool tap_at(const FileReal *v, const uint32_t in[2], uint32_t y,
                   uint32_t q, uint32_t i, uint32_t k, size_t *at) {
    int64_t row =
        (int64_t)y * v->stride[0] + (int64_t)i * v->dilation[0] - v->before[0];
    int64_t col =
        (int64_t)q * v->stride[1] + (int64_t)k * v->dilation[1] - v->before[1];
    *at = (size_t)row * in[1] + (size_t)col;
    return row >= 0 && row < in[0] && col >= 0 && col < in[1];
}

static float product_at(const FileReal *v, const float *x, const uint32_t in[2],
                        uint32_t o, uint32_t y, uint32_t q) {
    uint32_t each = v->in_c / v->groups, of = o / (v->out_c / v->groups) * each;
    const float *w = v->weight + (size_t)o * each * v->kernel[0] * v->kernel[1];
    float sum = v->bias[o];
    for (uint32_t c = 0; c < each; c++)
        for (uint32_t i = 0; i < v->kernel[0]; i++)
            for (uint32_t k = 0; k < v->kernel[1]; k++, w++) {
                size_t at;
                if (!tap_at(v, in, y, q, i, k, &at))
                    continue;
                sum += x[(size_t)(of + c) * in[0] * in[1] + at] * *w;
            }
    return bounded(sum, v->least, v->most);
}

static uint8_t whole_at(const FileReal *v, const uint8_t *x,
                        const uint32_t in[2], uint32_t o, uint32_t y,
                        uint32_t q) {
    uint32_t each = v->in_c / v->groups, of = o / (v->out_c / v->groups) * each;
    const uint8_t *w = v->code + (size_t)o * each * v->kernel[0] * v->kernel[1];
    int64_t sum = v->code_bias[o];
    for (uint32_t c = 0; c < each; c++)
        for (uint32_t i = 0; i < v->kernel[0]; i++)
            for (uint32_t k = 0; k < v->kernel[1]; k++, w++) {
                size_t at;
                if (!tap_at(v, in, y, q, i, k, &at))
                    continue;
                sum += (int64_t)(x[(size_t)(of + c) * in[0] * in[1] + at] +
                                 v->add_in) *
                       (*w + v->add_weight);
            }
    return code_at(scaled(&v->out, sum) + v->out.add);
}

static void run_product(const Run *r, uint8_t *out) {
    const FileReal *v = r->layer->real;
    const float *x = v->code ? NULL : reals_in(r);
    uint32_t c, in[2] = {1, 1}, to[2] = {1, 1};
    if (r->node->op == OP_CONV) {
        shape_chw(&in_of(r, 0)->shape, &c, &in[0], &in[1]);
        shape_chw(&out_of(r)->shape, &c, &to[0], &to[1]);
    }
    float *made = ARENA_ARRAY(r->work, float, shape_count(&out_of(r)->shape));
    float *at = made;
    for (uint32_t o = 0; o < v->out_c; o++)
        for (uint32_t y = 0; y < to[0]; y++)
            for (uint32_t q = 0; q < to[1]; q++)
                if (v->code)
                    *out++ = whole_at(v, codes_in(r, 0), in, o, y, q);
                else
                    *at++ = product_at(v, x, in, o, y, q);
    if (!v->code)
        to_codes(r, made, out);
    else if (r->layer->table)
        look_up(r, r->code[r->node->out[0].i], r->code[r->node->out[0].i]);
}

static float pool_at(const PoolAttr *pool, const float *x, const uint32_t in[2],
                     uint32_t y, uint32_t q) {
    bool mean = pool->kind == POOL_AVG;
    float value = mean ? 0 : -FLT_MAX;
    uint32_t taps = 0, size[2];
    for (int a = 0; a < 2; a++)
        size[a] = pool->global ? in[a] : pool->kernel[a];
    for (uint32_t i = 0; i < size[0] * size[1]; i++) {
        uint32_t index[] = {y, q}, tap[] = {i / size[1], i % size[1]};
        int64_t at[2];
        for (int a = 0; a < 2; a++)
            at[a] = pool->global ? tap[a]
                                 : (int64_t)index[a] * pool->stride[a] +
                                       tap[a] - pool->pad[a];
        if (at[0] < 0 || at[0] >= in[0] || at[1] < 0 || at[1] >= in[1])
            continue;
        float v = x[(size_t)at[0] * in[1] + (size_t)at[1]];
        value = mean ? value + v : fmaxf(value, v);
        taps++;
    }
    return mean ? value / (float)taps : value;
}

static void run_pool(const Run *r, uint8_t *out) {
    const float *x = reals_in(r);
    uint32_t c, in[2], to[2];
    shape_chw(&out_of(r)->shape, &c, &to[0], &to[1]);
    shape_chw(&in_of(r, 0)->shape, &c, &in[0], &in[1]);
    float *made = ARENA_ARRAY(r->work, float, shape_count(&out_of(r)->shape));
    float *at = made;
    for (uint32_t o = 0; o < c; o++)
        for (uint32_t y = 0; y < to[0]; y++)
            for (uint32_t q = 0; q < to[1]; q++)
                *at++ = pool_at(&r->node->attr.pool,
                                x + (size_t)o * in[0] * in[1], in, y, q);
    to_codes(r, made, out);
}

static void run_reduce(const Run *r, uint8_t *out) {
    const Shape *from = &in_of(r, 0)->shape;
    Shape kept = *from;
    for (uint32_t a = 0; a < kept.rank; a++)
        if (r->node->attr.reduce.axes >> a & 1)
            kept.dim[a] = 1;
    uint64_t n = shape_count(from), m = shape_count(&out_of(r)->shape);
    const float *x = reals_in(r);
    float *sum = ARENA_ARRAY(r->work, float, m);
    for (uint64_t i = 0; i < n; i++)
        sum[spread(&kept, from, i)] += x[i];
    for (uint64_t i = 0; i < m; i++)
        sum[i] *= (float)m / (float)n;
    to_codes(r, sum, out);
}

static void run_softmax(const Run *r, uint8_t *out) {
    const Shape *shape = &in_of(r, 0)->shape;
    uint32_t n = shape->dim[r->node->attr.axis.axis];
    uint64_t rows = shape_count(shape) / n;
    float *x = reals_in(r);
    for (uint64_t y = 0; y < rows; y++) {
        float *row = x + y * n, most = row[0], sum = 0;
        for (uint32_t i = 0; i < n; i++)
            most = fmaxf(most, row[i]);
        for (uint32_t i = 0; i < n; i++) {
            row[i] = expf((row[i] - most) * 1.0F);
            sum += row[i];
        }
        for (uint32_t i = 0; i < n; i++)
            row[i] /= sum;
    }
    to_codes(r, x, out);
}

/* ---- moves: by the reference, which only moves what it is given ---- */

/* The node alone in a graph of reals: codes are numbers like any. */
static void run_move(const Run *r, uint8_t *out) {
    Graph *g = graph_new(r->work, "move");
    const Node *node = r->node;
    TensorId *in = ARENA_ARRAY(r->work, TensorId, node->n_in);
    const float **value = ARENA_ARRAY(r->work, const float *, node->n_in);
    for (uint32_t k = 0; k < node->n_in; k++) {
        NodeId id = graph_add(g, OP_INPUT, "in", (Loc){0}, 0, NULL);
        uint64_t n = shape_count(&in_of(r, k)->shape);
        float *x = ARENA_ARRAY(r->work, float, n);
        in[k] = graph_add_output(g, id, "in");
        graph_tensor(g, in[k])->shape = in_of(r, k)->shape;
        for (uint64_t i = 0; i < n; i++)
            x[i] = codes_in(r, k)[i];
        value[k] = x;
    }
    NodeId id = graph_add(g, node->op, "move", (Loc){0}, node->n_in, in);
    graph_node(g, id)->attr = node->attr;
    if (node->op == OP_PAD)
        graph_node(g, id)->attr.pad.value = file_pad_code(r->g, node);
    TensorId to = graph_add_output(g, id, "move");
    graph_tensor(g, to)->shape = out_of(r)->shape;
    graph_mark_output(g, to);
    Values values = graph_eval(r->work, g, node->n_in, value);
    uint64_t n = shape_count(&out_of(r)->shape);
    for (uint64_t i = 0; i < n; i++)
        out[i] = (uint8_t)values.at[to.i][i];
}

/* ---- layers ---- */

static void run_function(const Run *r) {
    uint64_t n = shape_count(&out_of(r)->shape);
    uint32_t to = r->node->out[0].i;
    if (r->layer->table) {
        look_up(r, codes_in(r, 0), r->code[to]);
    } else if (in_of(r, 0)->quant.type == QUANT_NONE) {
        for (uint64_t i = 0; i < n; i++)
            r->code[to][i] =
                nearest_code(r->real[r->node->in[0].i][i],
                             r->layer->codes_a_unit[1], r->layer->zero[1]);
    } else {
        r->real[to] = ARENA_ARRAY(r->arena, float, n);
        const float *x = reals_in(r);
        memcpy(r->real[to], x, n * sizeof *x);
    }
}

static void run_host(const Run *r) {
    uint8_t *out = r->code[r->node->out[0].i];
    switch (r->node->op) {
    case OP_CONV:
    case OP_FC:
        run_product(r, out);
        break;
    case OP_POOL:
        run_pool(r, out);
        break;
    case OP_CONSTANT:
        memcpy(out, r->layer->value, shape_count(&out_of(r)->shape));
        break;
    case OP_REDUCE:
        run_reduce(r, out);
        break;
    case OP_SOFTMAX:
        run_softmax(r, out);
        break;
    case OP_ELTWISE:
        run_binary(r, out);
        break;
    case OP_ACT:
    case OP_IDENTITY:
    case OP_RESHAPE:
        run_function(r);
        break;
    default:
        run_move(r, out);
    }
}

static void run_node(Run *r) {
    uint32_t to = r->node->out[0].i;
    uint64_t n = shape_count(&out_of(r)->shape);
    if (r->layer->way == FILE_NOTHING) {
        r->code[to] = r->code[r->node->in[0].i];
        r->real[to] = r->real[r->node->in[0].i];
        return;
    }
    r->code[to] = ARENA_ARRAY(r->arena, uint8_t, n);
    if (r->layer->way == FILE_ENGINE)
        run_engine(r, r->code[to]);
    else
        run_host(r);
}

FileValues filegen_evaluate(Arena *arena, const FileGen *file,
                            uint32_t n_inputs, const uint8_t *const *input) {
    const Graph *g = file->graph;
    Run r = {.arena = arena,
             .work = arena_new("layer"),
             .file = file,
             .g = g,
             .code = ARENA_ARRAY(arena, uint8_t *, g->tensor.n + 1),
             .real = ARENA_ARRAY(arena, float *, g->tensor.n + 1)};
    uint32_t k = 0;
    for (uint32_t i = 0; i < g->node.n; i++) {
        r.node = &g->node.at[i];
        r.layer = &file->layer[i];
        arena_reset(r.work);
        if (r.node->op != OP_INPUT) {
            run_node(&r);
            continue;
        }
        uint64_t n = shape_count(&out_of(&r)->shape);
        if (k >= n_inputs)
            continue;
        if (out_of(&r)->quant.type == QUANT_NONE) {
            r.real[r.node->out[0].i] = ARENA_ARRAY(arena, float, n);
            memcpy(r.real[r.node->out[0].i], input[k++], n * sizeof(float));
        } else {
            r.code[r.node->out[0].i] =
                ARENA_COPY(arena, uint8_t, input[k++], n);
        }
    }
    arena_free(r.work);
    return (FileValues){(const uint8_t *const *)r.code,
                        (const float *const *)r.real};
}
