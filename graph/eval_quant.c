/* eval_quant.c - layers on codes, in integers; the rules are graph/quant.h's.
 *
 * In and out: codes as floats, which hold all of 16 bits exactly. Sums are kept
 * in 64 bits, so that they are exact in any order.
 */
#include "graph/eval.h"
#include "graph/quant.h"

/* A layer on codes that is being computed. */
typedef struct Codes {
    const Eval *e;
    QuantLayer layer;
    const float *const *in;
    float *out;
} Codes;

static const Quant *quant_of(const Eval *e, TensorId tensor) {
    return &graph_tensor(e->g, tensor)->quant;
}

/* Input k less its zero. */
static const int32_t *whole(const Codes *c, uint32_t k) {
    const Shape *shape = &graph_tensor(c->e->g, c->e->node->in[k])->shape;
    uint64_t n = shape_count(shape);
    int32_t *out = ARENA_ARRAY(c->e->scratch, int32_t, n);
    for (uint64_t i = 0; i < n; i++)
        out[i] = (int32_t)c->in[k][i] - c->layer.zero_in[k];
    return out;
}

/* Codes of a constant less their zero; NULL if the node has none. */
static const int32_t *whole_const(const Codes *c, ConstRole role) {
    ConstId id = c->e->node->constant[role];
    if (id.i == NONE)
        return NULL;
    Const codes = const_codes(graph_const(c->e->g, id));
    uint64_t n = shape_count(&codes.shape);
    double *value = ARENA_ARRAY(c->e->scratch, double, n);
    int32_t *out = ARENA_ARRAY(c->e->scratch, int32_t, n);
    const_read_f64(&codes, value);
    for (uint64_t i = 0; i < n; i++)
        out[i] = (int32_t)value[i];
    return out;
}

/* ---- sums of products ---- */

/* The sums of one channel of the output, [h, w], before they are scaled. */
typedef struct Plane {
    uint32_t h, w;
    int64_t *sum;
} Plane;

static void scale_plane(const Codes *c, uint32_t channel, const Plane *plane,
                        float *out) {
    const QuantLayer *layer = &c->layer;
    uint32_t k = layer->n > 1 ? channel : 0;
    size_t n = (size_t)plane->h * plane->w;
    for (size_t i = 0; i < n; i++)
        out[i] =
            (float)quant_finish(layer, quant_summed(layer, k, plane->sum[i]));
}

static void fill_plane(const Plane *plane, const int32_t *bias,
                       uint32_t channel) {
    size_t n = (size_t)plane->h * plane->w;
    for (size_t i = 0; i < n; i++)
        plane->sum[i] = bias ? bias[channel] : 0;
}

/* Indices [begin, end) for which begin <= at * stride + shift < size. */
typedef struct Span {
    uint32_t begin, end;
} Span;

static Span span_inside(uint32_t n, uint32_t stride, int64_t shift,
                        uint32_t size) {
    int64_t begin = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
    int64_t end = shift >= size ? 0 : (size - shift + stride - 1) / stride;
    end = end > n ? n : end;
    begin = begin > end ? end : begin;
    return (Span){(uint32_t)begin, (uint32_t)end};
}

/* One tap of a kernel: where it reads, relative to the output's place. */
typedef struct Tap {
    int64_t y, x;
    int32_t weight;
} Tap;

static Tap tap_at(const ConvAttr *a, uint32_t i, const int32_t *kernel) {
    uint32_t y = i / a->kernel[1], x = i % a->kernel[1];
    return (Tap){(int64_t)y * a->dilation[0] - a->pad[0],
                 (int64_t)x * a->dilation[1] - a->pad[1], kernel[i]};
}

/* sum[y, x] += weight * in[y * stride + tap.y, x * stride + tap.x] */
static void gather_tap(const ConvAttr *a, const Tap *tap, const int32_t *in,
                       uint32_t h, uint32_t w, const Plane *to) {
    Span ys = span_inside(to->h, a->stride[0], tap->y, h);
    Span xs = span_inside(to->w, a->stride[1], tap->x, w);
    for (size_t y = ys.begin; y < ys.end; y++) {
        const int32_t *row = in + (y * a->stride[0] + (size_t)tap->y) * w;
        int64_t *sum = to->sum + y * to->w;
        for (size_t x = xs.begin; x < xs.end; x++)
            sum[x] +=
                (int64_t)tap->weight * row[x * a->stride[1] + (size_t)tap->x];
    }
}

/* sum[y * stride + tap.y, x * stride + tap.x] += weight * in[y, x] */
static void scatter_tap(const ConvAttr *a, const Tap *tap, const int32_t *in,
                        uint32_t h, uint32_t w, const Plane *to) {
    Span ys = span_inside(h, a->stride[0], tap->y, to->h);
    Span xs = span_inside(w, a->stride[1], tap->x, to->w);
    for (size_t y = ys.begin; y < ys.end; y++) {
        int64_t *sum = to->sum + (y * a->stride[0] + (size_t)tap->y) * to->w;
        for (size_t x = xs.begin; x < xs.end; x++)
            sum[x * a->stride[1] + (size_t)tap->x] +=
                (int64_t)tap->weight * in[y * w + x];
    }
}

typedef struct Conv {
    const ConvAttr *attr;
    uint32_t in_c, h, w; /* of the input */
    const int32_t *in, *weight, *bias;
    bool transposed;
} Conv;

/* Weights are [out, in / groups, taps], or transposed [in, out, taps]. */
static void conv_plane(const Conv *v, uint32_t image, uint32_t channel,
                       const Plane *to) {
    const ConvAttr *a = v->attr;
    uint32_t of_group = v->in_c / a->groups;
    uint32_t first = channel / (a->out_c / a->groups) * of_group;
    uint32_t taps = a->kernel[0] * a->kernel[1];
    fill_plane(to, v->bias, channel);
    for (uint32_t i = 0; i < of_group; i++) {
        size_t kernel = v->transposed ? (size_t)i * a->out_c + channel
                                      : (size_t)channel * of_group + i;
        const int32_t *in =
            v->in + ((size_t)image * v->in_c + first + i) * v->h * v->w;
        for (uint32_t t = 0; t < taps; t++) {
            Tap tap = tap_at(a, t, v->weight + kernel * taps);
            if (!tap.weight)
                continue;
            if (v->transposed)
                scatter_tap(a, &tap, in, v->h, v->w, to);
            else
                gather_tap(a, &tap, in, v->h, v->w, to);
        }
    }
}

/* Into [n, out_c, h, w]. */
static void conv(const Codes *c, const Shape *shape, float *out) {
    const Shape *in = c->e->in_shape;
    Conv v = {.attr = &c->e->node->attr.conv,
              .in_c = in->dim[1],
              .h = in->dim[2],
              .w = in->dim[3],
              .in = whole(c, 0),
              .weight = whole_const(c, CONST_WEIGHT),
              .bias = whole_const(c, CONST_BIAS),
              .transposed = c->e->node->op == OP_DECONV};
    size_t size = (size_t)shape->dim[2] * shape->dim[3];
    Plane plane = {shape->dim[2], shape->dim[3],
                   ARENA_ARRAY(c->e->scratch, int64_t, size)};
    for (uint32_t n = 0; n < shape->dim[0]; n++)
        for (uint32_t o = 0; o < v.attr->out_c; o++, out += size) {
            conv_plane(&v, n, o, &plane);
            scale_plane(c, o, &plane, out);
        }
}

static void conv_pool(const Codes *c) {
    const ConvAttr *a = &c->e->node->attr.conv;
    const Shape *in = c->e->in_shape;
    Shape mid = shape_nchw(in->dim[0], a->out_c, 0, 0);
    for (uint32_t i = 0; i < 2; i++)
        mid.dim[2 + i] =
            conv_out_size(in->dim[2 + i], a->kernel[i], a->stride[i],
                          a->dilation[i], a->pad[i], a->pad_end[i]);
    float *between = ARENA_ARRAY(c->e->scratch, float, shape_count(&mid));
    conv(c, &mid, between);
    eval_pool_into(&c->e->node->attr.pool, &mid, between, c->e->out_shape,
                   c->out);
}

static void fc(const Codes *c) {
    const int32_t *in = whole(c, 0), *bias = whole_const(c, CONST_BIAS);
    const int32_t *weight = whole_const(c, CONST_WEIGHT);
    size_t rows = shape_dim(c->e->in_shape, 0);
    size_t n = shape_count(c->e->in_shape) / rows;
    uint32_t outs = c->e->node->attr.fc.out;
    for (size_t r = 0; r < rows; r++)
        for (uint32_t o = 0; o < outs; o++) {
            int64_t sum = bias ? bias[o] : 0;
            for (size_t i = 0; i < n; i++)
                sum += (int64_t)in[r * n + i] * weight[o * n + i];
            Plane one = {1, 1, &sum};
            scale_plane(c, o, &one, c->out + r * outs + o);
        }
}

static void sums(const Codes *c) {
    if (c->e->node->op == OP_FC)
        fc(c);
    else if (c->e->node->op == OP_CONV_POOL)
        conv_pool(c);
    else
        conv(c, c->e->out_shape, c->out);
}

/* ---- two inputs ---- */

static void blend(const Codes *c) {
    const QuantLayer *layer = &c->layer;
    const float *a = eval_broadcast(c->e, 0), *b = eval_broadcast(c->e, 1);
    for (uint64_t i = 0, n = shape_count(c->e->out_shape); i < n; i++) {
        int64_t x = (int64_t)a[i] - layer->zero_in[0];
        int64_t y = (int64_t)b[i] - layer->zero_in[1];
        c->out[i] = (float)quant_finish(layer, quant_blend(layer, x, y));
    }
}

/* ---- means ---- */

static float mean(const Codes *c, int64_t sum, int64_t n) {
    if (c->layer.n)
        sum = quant_summed(&c->layer, 0, sum);
    if (!quant_by_floats(c->layer.round))
        sum = quant_divide(sum, n);
    return (float)quant_finish(&c->layer, sum);
}

static int64_t window_sum(const int32_t *plane, uint32_t w, Window y,
                          Window x) {
    int64_t sum = 0;
    for (size_t i = y.begin; i < y.end; i++)
        for (size_t j = x.begin; j < x.end; j++)
            sum += plane[i * w + j];
    return sum;
}

static void pool_means(const Codes *c) {
    const PoolAttr *pool = &c->e->node->attr.pool;
    const Shape *in = c->e->in_shape, *out = c->e->out_shape;
    const int32_t *plane = whole(c, 0);
    size_t planes = (size_t)in->dim[0] * in->dim[1];
    float *to = c->out;
    for (size_t p = 0; p < planes; p++) {
        for (uint32_t i = 0; i < out->dim[2]; i++)
            for (uint32_t j = 0; j < out->dim[3]; j++) {
                Window y = eval_window(pool, 0, in->dim[2], i);
                Window x = eval_window(pool, 1, in->dim[3], j);
                int64_t n = (int64_t)y.count * x.count;
                *to++ = mean(c, window_sum(plane, in->dim[3], y, x), n);
            }
        plane += (size_t)in->dim[2] * in->dim[3];
    }
}

/* Which element of the output an element of the input goes into. */
static uint64_t reduced_index(const Shape *in, uint32_t axes, uint64_t i) {
    uint64_t index = 0, step = 1;
    for (uint32_t axis = in->rank; axis-- > 0; i /= in->dim[axis])
        if (!(axes >> axis & 1)) {
            index += i % in->dim[axis] * step;
            step *= in->dim[axis];
        }
    return index;
}

static void reduce_means(const Codes *c) {
    const Shape *in = c->e->in_shape;
    uint32_t axes = c->e->node->attr.reduce.axes;
    uint64_t n_in = shape_count(in), n_out = shape_count(c->e->out_shape);
    const int32_t *value = whole(c, 0);
    int64_t *sum = ARENA_ARRAY(c->e->scratch, int64_t, n_out);
    for (uint64_t i = 0; i < n_in; i++)
        sum[reduced_index(in, axes, i)] += value[i];
    for (uint64_t i = 0; i < n_out; i++)
        c->out[i] = mean(c, sum[i], (int64_t)(n_in / n_out));
}

/* ---- codes that move ---- */

static void moves(const Codes *c, EvalOp *op) {
    Eval e = *c->e;
    Node node = *e.node;
    const QuantLayer *layer = &c->layer;
    if (node.op == OP_PAD) /* the code of what surrounds the image */
        node.attr.pad.value =
            quant_code(quant_of(&e, node.in[0]), node.attr.pad.value);
    e.node = &node;
    op(&e);
    for (uint64_t i = 0, n = shape_count(e.out_shape); i < n; i++) {
        int64_t q = (int64_t)c->out[i] - layer->zero_in[0];
        c->out[i] = (float)quant_finish(layer, quant_moved(layer, q));
    }
}

/* ---- real numbers ---- */

static const float *real_input(const Eval *e, uint32_t k) {
    const Tensor *tensor = graph_tensor(e->g, e->node->in[k]);
    uint64_t n = shape_count(&tensor->shape);
    if (tensor->quant.type == QUANT_NONE)
        return e->in[k];
    float *out = ARENA_ARRAY(e->scratch, float, n);
    for (uint64_t i = 0; i < n; i++)
        out[i] = (float)quant_real(&tensor->quant, (double)e->in[k][i]);
    return out;
}

void eval_numbers(const Eval *codes, EvalOp *op) {
    Eval e = *codes;
    const float **in = ARENA_ARRAY(e.scratch, const float *, e.node->n_in);
    for (uint32_t k = 0; k < e.node->n_in; k++)
        in[k] = real_input(codes, k);
    e.in = in;
    eval_real(&e, op);
}

static void reals(const Eval *e, EvalOp *op) {
    eval_numbers(e, op);
    const Quant *q = quant_of(e, e->node->out[0]);
    if (q->type == QUANT_NONE)
        return;
    for (uint64_t i = 0, n = shape_count(e->out_shape); i < n; i++)
        e->out[i] = (float)quant_code(q, (double)e->out[i]);
}

static void by_table(const Codes *c) {
    const QuantLayer *layer = &c->layer;
    for (uint64_t i = 0, n = shape_count(c->e->out_shape); i < n; i++)
        c->out[i] =
            (float)layer->table[(int32_t)c->in[0][i] - layer->zero_in[0]];
}

void eval_quantised(const Eval *e, EvalOp *op) {
    Codes c = {e, quant_layer(e->scratch, e->g, e->node), e->in, e->out};
    switch (c.layer.rule) {
    case QUANT_MOVES:
        moves(&c, op);
        break;
    case QUANT_TABLE:
        by_table(&c);
        break;
    case QUANT_SUMS:
        sums(&c);
        break;
    case QUANT_ADDS:
    case QUANT_PRODUCT:
        blend(&c);
        break;
    case QUANT_MEANS:
        if (e->node->op == OP_POOL)
            pool_means(&c);
        else
            reduce_means(&c);
        break;
    default:
        reals(e, op);
        break;
    }
}
