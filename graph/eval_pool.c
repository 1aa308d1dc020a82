/* eval_pool.c - operators that look at neighbourhoods in a plane or across
 * channels: pooling, local response normalisation, upsampling, padding.
 *
 * In and out: values in n, c, h, w order. Sums are kept in double.
 */
#include "graph/eval.h"

#include <math.h>

Window eval_window(const PoolAttr *pool, int axis, uint32_t in, uint32_t out) {
    if (pool->global)
        return (Window){0, in, in};
    int64_t begin = (int64_t)out * pool->stride[axis] - pool->pad[axis];
    int64_t end = begin + pool->kernel[axis];
    int64_t padded_end = (int64_t)in + pool->pad_end[axis];
    int64_t first = begin < 0 ? 0 : begin, last = end > in ? in : end;
    int64_t padded = (end > padded_end ? padded_end : end) - begin;
    Window window = {(uint32_t)first, (uint32_t)last, 0};
    window.count = (uint32_t)(pool->count_pad ? padded : last - first);
    return window;
}

static float largest(const float *plane, uint32_t w, Window y, Window x) {
    float most = plane[(size_t)y.begin * w + x.begin];
    for (size_t i = y.begin; i < y.end; i++)
        for (size_t j = x.begin; j < x.end; j++)
            if (!(plane[i * w + j] <= most) && !isnan(most))
                most = plane[i * w + j];
    return most;
}

static float average(const float *plane, uint32_t w, Window y, Window x) {
    double sum = 0;
    for (size_t i = y.begin; i < y.end; i++)
        for (size_t j = x.begin; j < x.end; j++)
            sum += (double)plane[i * w + j];
    return (float)(sum / ((double)y.count * x.count));
}

void eval_pool_into(const PoolAttr *pool, const Shape *in_shape,
                    const float *in, const Shape *out_shape, float *out) {
    uint32_t h = in_shape->dim[2], w = in_shape->dim[3];
    size_t planes = (size_t)in_shape->dim[0] * in_shape->dim[1];
    for (size_t p = 0; p < planes; p++, in += (size_t)h * w)
        for (uint32_t i = 0; i < out_shape->dim[2]; i++) {
            Window y = eval_window(pool, 0, h, i);
            for (uint32_t j = 0; j < out_shape->dim[3]; j++) {
                Window x = eval_window(pool, 1, w, j);
                *out++ = pool->kind == POOL_MAX ? largest(in, w, y, x)
                                                : average(in, w, y, x);
            }
        }
}

void eval_pool(const Eval *e) {
    eval_pool_into(&e->node->attr.pool, e->in_shape, e->in[0], e->out_shape,
                   e->out);
}

static double squared(float x) {
    return (double)x * (double)x;
}

static float normalised(const LrnAttr *lrn, double n, float x, double sum) {
    return (float)((double)x * pow(lrn->k + lrn->alpha / n * sum, -lrn->beta));
}

/* The window of an even size reaches one channel further behind (ONNX). */
static void lrn_across(const LrnAttr *lrn, const Split *s, const float *in,
                       float *out) {
    size_t before = (lrn->size - 1) / 2, behind = lrn->size / 2;
    for (size_t c = 0; c < s->axis; c++) {
        size_t first = c < before ? 0 : c - before;
        size_t last = c + behind < s->axis ? c + behind : s->axis - 1;
        for (size_t i = 0; i < s->inner; i++) {
            double sum = 0;
            for (size_t k = first; k <= last; k++)
                sum += squared(in[k * s->inner + i]);
            size_t at = c * s->inner + i;
            out[at] = normalised(lrn, lrn->size, in[at], sum);
        }
    }
}

static void lrn_plane(const LrnAttr *lrn, uint32_t h, uint32_t w,
                      const float *in, float *out) {
    const PoolAttr square = {
        .kernel = {lrn->size, lrn->size},
        .stride = {1, 1},
        .pad = {lrn->size / 2, lrn->size / 2},
        .pad_end = {lrn->size / 2, lrn->size / 2},
    };
    double n = (double)lrn->size * lrn->size;
    for (uint32_t i = 0; i < h; i++)
        for (uint32_t j = 0; j < w; j++) {
            Window y = eval_window(&square, 0, h, i);
            Window x = eval_window(&square, 1, w, j);
            double sum = 0;
            for (size_t k = y.begin; k < y.end; k++)
                for (size_t l = x.begin; l < x.end; l++)
                    sum += squared(in[k * w + l]);
            size_t at = (size_t)i * w + j;
            out[at] = normalised(lrn, n, in[at], sum);
        }
}

void eval_lrn(const Eval *e) {
    const LrnAttr *lrn = &e->node->attr.lrn;
    Split s = eval_split(e->in_shape, 1);
    uint32_t h = e->in_shape->dim[2], w = e->in_shape->dim[3];
    const float *in = e->in[0];
    float *out = e->out;
    for (size_t n = 0; n < s.outer; n++) {
        if (!lrn->within_channel)
            lrn_across(lrn, &s, in, out);
        for (size_t c = 0; lrn->within_channel && c < s.axis; c++)
            lrn_plane(lrn, h, w, in + c * s.inner, out + c * s.inner);
        in += s.axis * s.inner;
        out += s.axis * s.inner;
    }
}

void eval_upsample(const Eval *e) {
    const uint32_t *factor = e->node->attr.up.factor;
    uint32_t h = e->in_shape->dim[2], w = e->in_shape->dim[3];
    size_t planes = (size_t)e->in_shape->dim[0] * e->in_shape->dim[1];
    const float *plane = e->in[0];
    float *out = e->out;
    for (size_t p = 0; p < planes; p++, plane += (size_t)h * w)
        for (uint32_t y = 0; y < e->out_shape->dim[2]; y++) {
            const float *row = plane + (size_t)(y / factor[0]) * w;
            for (uint32_t x = 0; x < e->out_shape->dim[3]; x++)
                *out++ = row[x / factor[1]];
        }
}

void eval_pad(const Eval *e) {
    const uint32_t *before = e->node->attr.pad.before;
    uint32_t h = e->in_shape->dim[2], w = e->in_shape->dim[3];
    size_t planes = (size_t)e->in_shape->dim[0] * e->in_shape->dim[1];
    float value = (float)e->node->attr.pad.value;
    const float *plane = e->in[0];
    float *out = e->out;
    /* Rows and columns before the first wrap round to large numbers. */
    for (size_t p = 0; p < planes; p++, plane += (size_t)h * w)
        for (uint32_t y = 0; y < e->out_shape->dim[2]; y++)
            for (uint32_t x = 0; x < e->out_shape->dim[3]; x++) {
                uint32_t i = y - before[0], j = x - before[1];
                *out++ = i < h && j < w ? plane[(size_t)i * w + j] : value;
            }
}
