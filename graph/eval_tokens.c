/* eval_tokens.c - operators on pixels as tokens: matrix products of pixels by
 * windows, constants that repeat, pixels by index.
 *
 * In and out: values of images, in the order of their shapes.
 */
#include "graph/eval.h"

#include <string.h>

/* ---- products ---- */

/* Pixel indices of window `k` in a plane. */
static void window_pixels(const Eval *e, const Shape *shape, uint32_t k,
                          size_t *at) {
    const uint32_t *windows = e->node->attr.mix.windows;
    const uint32_t *shift = e->node->attr.mix.shift;
    uint32_t h = shape->dim[2] / windows[0], w = shape->dim[3] / windows[1];
    uint32_t top = k / windows[1] * h + shift[0];
    uint32_t left = k % windows[1] * w + shift[1];
    for (uint32_t i = 0; i < h; i++)
        for (uint32_t j = 0; j < w; j++)
            *at++ = (size_t)((top + i) % shape->dim[2]) * shape->dim[3] +
                    (left + j) % shape->dim[3];
}

/* Channels [first, first + n) of these pixels, as rows. */
static float *take_pixels(const Eval *e, const float *from, const Shape *shape,
                          uint32_t first, uint32_t n, const size_t *at,
                          size_t pixels) {
    size_t plane = (size_t)shape->dim[2] * shape->dim[3];
    float *rows = ARENA_ARRAY(e->scratch, float, n *pixels);
    for (uint32_t c = 0; c < n; c++)
        for (size_t i = 0; i < pixels; i++)
            rows[c * pixels + i] = from[(first + c) * plane + at[i]];
    return rows;
}

/* Of p pixels x and q others: keys and values of n and made_n channels. What
 * each pixel weighs the values by stays in `scratch`. */
static void attend(const Eval *e, size_t p, size_t q, uint32_t n,
                   uint32_t made_n, const float *x, const float *key,
                   const float *value, float *made) {
    float *weigh = ARENA_ARRAY(e->scratch, float, p *q);
    eval_product(q, p, n, (Matrix){key, q, true}, (Matrix){x, p, false}, weigh,
                 p);
    for (size_t i = 0; i < p; i++)
        eval_softmax_line(weigh + i, q, p, weigh + i);
    eval_product(made_n, p, q, (Matrix){value, q, false},
                 (Matrix){weigh, p, false}, made, p);
}

void eval_mix(const Eval *e) {
    const Shape *a = e->in_shape, *out = e->out_shape;
    const Shape *b = &graph_tensor(e->g, e->node->in[1])->shape;
    uint32_t groups = e->node->attr.mix.groups;
    uint32_t n = e->node->attr.mix.windows[0] * e->node->attr.mix.windows[1];
    size_t plane = (size_t)a->dim[2] * a->dim[3], p = plane / n;
    size_t q = (size_t)b->dim[2] * b->dim[3] / n;
    size_t *own = ARENA_ARRAY(e->scratch, size_t, p);
    size_t *other = ARENA_ARRAY(e->scratch, size_t, q);
    uint32_t in_c = a->dim[1] / groups, out_c = out->dim[1] / groups;
    bool attends = e->node->attr.mix.attends;
    uint32_t by_c = attends ? in_c : b->dim[1] / groups;
    float *made = ARENA_ARRAY(e->scratch, float, out_c *p);
    for (uint32_t k = 0; k < n * groups; k++) {
        uint32_t g = k % groups;
        window_pixels(e, a, k / groups, own);
        window_pixels(e, b, k / groups, other);
        const float *x = take_pixels(e, e->in[0], a, g * in_c, in_c, own, p);
        const float *y = take_pixels(e, e->in[1], b, g * by_c, by_c, other, q);
        Matrix by = {y, q, !e->node->attr.mix.over_pixels};
        if (attends)
            attend(e, p, q, in_c, out_c, x, y,
                   take_pixels(e, e->in[1], b, a->dim[1] + g * out_c, out_c,
                               other, q),
                   made);
        else
            eval_product(out_c, p, in_c, by, (Matrix){x, p, false}, made, p);
        for (uint32_t c = 0; c < out_c; c++)
            for (size_t i = 0; i < p; i++)
                e->out[(g * out_c + c) * plane + own[i]] = made[c * p + i];
    }
}

/* ---- constants, indices ---- */

void eval_offset(const Eval *e) {
    const uint32_t *dim = &e->in_shape->dim[1];
    const uint32_t *period = e->node->attr.offset.period.dim;
    const float *value = eval_need_const(e, CONST_VALUE);
    size_t i = 0;
    for (uint32_t c = 0; c < dim[0]; c++)
        for (uint32_t y = 0; y < dim[1]; y++)
            for (uint32_t x = 0; x < dim[2]; x++, i++) {
                size_t row =
                    (size_t)(c % period[0]) * period[1] + y % period[1];
                float other = value[row * period[2] + x % period[2]];
                e->out[i] = e->node->attr.offset.times ? e->in[0][i] * other
                                                       : e->in[0][i] + other;
            }
}

void eval_pixels(const Eval *e) {
    size_t plane = (size_t)e->in_shape->dim[2] * e->in_shape->dim[3];
    size_t n = (size_t)e->out_shape->dim[2] * e->out_shape->dim[3];
    const float *index = eval_need_const(e, CONST_INDEX);
    for (uint32_t c = 0; c < e->out_shape->dim[1]; c++)
        for (size_t i = 0; i < n; i++) {
            size_t at = (size_t)index[i];
            e->out[c * n + i] = at < plane ? e->in[0][c * plane + at] : 0;
        }
}
