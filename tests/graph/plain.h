/* plain.h - operators as plain nested loops over indices, in double: what the
 * reference evaluation is compared with. Written from the definitions in
 * graph.h; shares no code with graph/. */
#ifndef TESTS_GRAPH_PLAIN_H
#define TESTS_GRAPH_PLAIN_H

#include "graph/graph.h"

#include <math.h>

/* A volume of images; out of bounds reads give `outside`. */
typedef struct Vol {
    int n, c, h, w;
    const float *v;
} Vol;

static inline double vol_at(const Vol *x, int n, int c, int y, int z,
                            double outside) {
    if (y < 0 || z < 0 || y >= x->h || z >= x->w)
        return outside;
    return (double)x->v[((n * x->c + c) * x->h + y) * x->w + z];
}

/* One output value of a convolution. */
static inline double plain_conv(const Vol *x, const ConvAttr *a,
                                const float *weight, int n, int o, int y,
                                int z) {
    int cin = x->c / (int)a->groups, cout = (int)(a->out_c / a->groups);
    int kh = (int)a->kernel[0], kw = (int)a->kernel[1], group = o / cout;
    double sum = 0;
    for (int c = 0; c < cin; c++)
        for (int i = 0; i < kh; i++)
            for (int j = 0; j < kw; j++)
                sum += (double)weight[((o * cin + c) * kh + i) * kw + j] *
                       vol_at(x, n, group * cin + c,
                              y * (int)a->stride[0] + i * (int)a->dilation[0] -
                                  (int)a->pad[0],
                              z * (int)a->stride[1] + j * (int)a->dilation[1] -
                                  (int)a->pad[1],
                              0);
    return sum;
}

/* One output value of a transposed convolution: all inputs whose window,
 * placed at input * stride - pad, covers it. */
static inline double plain_deconv(const Vol *x, const ConvAttr *a,
                                  const float *weight, int n, int o, int y,
                                  int z) {
    int cin = x->c / (int)a->groups, cout = (int)(a->out_c / a->groups);
    int kh = (int)a->kernel[0], kw = (int)a->kernel[1], group = o / cout;
    double sum = 0;
    for (int c = group * cin; c < (group + 1) * cin; c++)
        for (int p = 0; p < x->h; p++)
            for (int q = 0; q < x->w; q++)
                for (int i = 0; i < kh; i++)
                    for (int j = 0; j < kw; j++) {
                        int row = p * (int)a->stride[0] +
                                  i * (int)a->dilation[0] - (int)a->pad[0];
                        int col = q * (int)a->stride[1] +
                                  j * (int)a->dilation[1] - (int)a->pad[1];
                        int tap = ((c * cout + o % cout) * kh + i) * kw + j;
                        if (row == y && col == z)
                            sum +=
                                vol_at(x, n, c, p, q, 0) * (double)weight[tap];
                    }
    return sum;
}

/* One output value of a pool: positions of the kernel in the padded input. */
static inline double plain_pool(const Vol *x, const PoolAttr *a, int n, int c,
                                int y, int z) {
    int kh = a->global ? x->h : (int)a->kernel[0];
    int kw = a->global ? x->w : (int)a->kernel[1];
    double most = -INFINITY, sum = 0;
    int real = 0, padded = 0;
    for (int i = 0; i < kh; i++)
        for (int j = 0; j < kw; j++) {
            int row = i, col = j;
            if (!a->global) {
                row += y * (int)a->stride[0] - (int)a->pad[0];
                col += z * (int)a->stride[1] - (int)a->pad[1];
            }
            if (row < x->h + (int)a->pad_end[0] &&
                col < x->w + (int)a->pad_end[1])
                padded++;
            if (row < 0 || col < 0 || row >= x->h || col >= x->w)
                continue;
            real++;
            sum += vol_at(x, n, c, row, col, 0);
            most = fmax(most, vol_at(x, n, c, row, col, 0));
        }
    if (a->kind == POOL_MAX)
        return most;
    return sum / (a->count_pad && !a->global ? padded : real);
}

static inline double plain_lrn(const Vol *x, const LrnAttr *a, int n, int c,
                               int y, int z) {
    int reach = (int)a->size / 2;
    double sum = 0, area = a->size;
    if (a->within_channel) {
        area *= a->size;
        for (int i = -reach; i <= reach; i++)
            for (int j = -reach; j <= reach; j++)
                sum += pow(vol_at(x, n, c, y + i, z + j, 0), 2);
    } else {
        for (int k = c - reach; k <= c + reach; k++)
            if (k >= 0 && k < x->c)
                sum += pow(vol_at(x, n, k, y, z, 0), 2);
    }
    return vol_at(x, n, c, y, z, 0) /
           pow(a->k + a->alpha / area * sum, a->beta);
}

static inline double plain_act(const Act *act, double slope, double x) {
    switch (act->kind) {
    case ACT_RELU:
        return fmax(x, 0);
    case ACT_RELU6:
        return fmin(fmax(x, 0), 6);
    case ACT_LEAKY:
        return x < 0 ? act->alpha * x : x;
    case ACT_PRELU:
        return x < 0 ? slope * x : x;
    case ACT_SIGMOID:
        return 1 / (1 + exp(-x));
    case ACT_TANH:
        return tanh(x);
    case ACT_CLIP:
        return fmin(fmax(x, act->lo), act->hi);
    default:
        return x;
    }
}

#endif
