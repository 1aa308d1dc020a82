/* eval_point.c - operators that work value by value or move whole values:
 * normalisation and scaling by channel, element-wise arithmetic,
 * concatenation, slices, softmax.
 *
 * In and out: values in the order of the shape; channels are axis 1.
 */
#include "graph/eval.h"

#include <math.h>
#include <string.h>

/* ---- by channel ---- */

/* out = (in - less) * times + plus, by channel, rounded once. */
static void affine(const Eval *e, const double *less, const double *times,
                   const double *plus) {
    Split s = eval_split(e->in_shape, 1);
    const float *in = e->in[0];
    float *out = e->out;
    for (size_t n = 0; n < s.outer; n++)
        for (size_t c = 0; c < s.axis; c++)
            for (size_t i = 0; i < s.inner; i++)
                *out++ =
                    (float)(((double)*in++ - less[c]) * times[c] + plus[c]);
}

/* A constant by channel as doubles; zeros if the node has none. */
static double *by_channel(const Eval *e, const float *value) {
    uint32_t channels = shape_dim(e->in_shape, 1);
    double *wide = ARENA_ARRAY(e->scratch, double, channels);
    for (uint32_t c = 0; value && c < channels; c++)
        wide[c] = (double)value[c];
    return wide;
}

void eval_bn(const Eval *e) {
    double *times = by_channel(e, eval_need_const(e, CONST_VAR));
    for (uint32_t c = 0; c < shape_dim(e->in_shape, 1); c++)
        times[c] = 1.0 / sqrt(times[c] + e->node->attr.bn.eps);
    affine(e, by_channel(e, eval_need_const(e, CONST_MEAN)), times,
           by_channel(e, NULL));
}

void eval_scale(const Eval *e) {
    affine(e, by_channel(e, NULL),
           by_channel(e, eval_need_const(e, CONST_SCALE)),
           by_channel(e, eval_const(e, CONST_BIAS)));
}

void eval_copy(const Eval *e) {
    memcpy(e->out, e->in[0], shape_count(e->out_shape) * sizeof *e->out);
}

/* ---- several inputs ---- */

/* Steps through an input by output axis; 0 where it is broadcast. */
static void broadcast_steps(const Shape *in, const Shape *out,
                            size_t step[SHAPE_MAX_RANK]) {
    size_t size = 1;
    for (uint32_t i = out->rank; i-- > 0;) {
        step[i] = in->dim[i] == 1 ? 0 : size;
        size *= in->dim[i];
    }
}

const float *eval_broadcast(const Eval *e, uint32_t k) {
    const Shape *in = &graph_tensor(e->g, e->node->in[k])->shape;
    const Shape *out = e->out_shape;
    if (shape_equal(in, out))
        return e->in[k];
    size_t step[SHAPE_MAX_RANK], n = shape_count(out), from = 0;
    uint32_t at[SHAPE_MAX_RANK] = {0};
    broadcast_steps(in, out, step);
    float *spread = ARENA_ARRAY(e->scratch, float, n);
    for (size_t i = 0; i < n; i++) {
        spread[i] = e->in[k][from];
        for (uint32_t axis = out->rank; axis-- > 0;) {
            from += step[axis];
            if (++at[axis] < out->dim[axis])
                break;
            from -= step[axis] * at[axis];
            at[axis] = 0;
        }
    }
    return spread;
}

#define ELT(NAME, text, value)                                                 \
    static float elt_##NAME(float a, float b) {                                \
        return value;                                                          \
    }
#include "graph/elts.def"
#undef ELT

static float (*const elt_value[ELT_COUNT])(float, float) = {
#define ELT(NAME, text, value) elt_##NAME,
#include "graph/elts.def"
#undef ELT
};

void eval_eltwise(const Eval *e) {
    const EltAttr *elt = &e->node->attr.elt;
    float (*combine)(float, float) = elt_value[elt->kind];
    size_t n = shape_count(e->out_shape);
    for (uint32_t k = 0; k < e->node->n_in; k++) {
        const float *in = eval_broadcast(e, k);
        float coeff = elt->coeff ? (float)elt->coeff[k] : 1.0F;
        for (size_t i = 0; i < n; i++) {
            float x = elt->coeff ? coeff * in[i] : in[i];
            e->out[i] = k ? combine(e->out[i], x) : x;
        }
    }
}

void eval_concat(const Eval *e) {
    uint32_t axis = e->node->attr.axis.axis;
    Split out = eval_split(e->out_shape, axis);
    float *to = e->out;
    for (uint32_t k = 0; k < e->node->n_in; k++) {
        const Shape *shape = &graph_tensor(e->g, e->node->in[k])->shape;
        size_t n = shape->dim[axis] * out.inner;
        for (size_t o = 0; o < out.outer; o++)
            memcpy(to + o * out.axis * out.inner, e->in[k] + o * n,
                   n * sizeof *to);
        to += n;
    }
}

void eval_slice(const Eval *e) {
    uint32_t axis = e->node->attr.slice.axis;
    Split in = eval_split(e->in_shape, axis);
    size_t n = eval_split(e->out_shape, axis).axis * in.inner;
    const float *from = e->in[0] + e->node->attr.slice.begin * in.inner;
    for (size_t o = 0; o < in.outer; o++)
        memcpy(e->out + o * n, from + o * in.axis * in.inner,
               n * sizeof *e->out);
}

void eval_softmax_line(const float *in, size_t n, size_t step, float *out) {
    float most = in[0];
    for (size_t i = 1; i < n; i++)
        if (in[i * step] > most)
            most = in[i * step];
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += exp((double)in[i * step] - (double)most);
    for (size_t i = 0; i < n; i++)
        out[i * step] = (float)(exp((double)in[i * step] - (double)most) / sum);
}

void eval_softmax(const Eval *e) {
    Split s = eval_lines(e->in_shape, e->node->attr.axis.axis, 1,
                         e->node->attr.axis.groups);
    for (size_t o = 0; o < s.outer; o++)
        for (size_t i = 0; i < s.inner; i++) {
            size_t at = o * s.axis * s.inner + i;
            eval_softmax_line(e->in[0] + at, s.axis, s.inner, e->out + at);
        }
}
