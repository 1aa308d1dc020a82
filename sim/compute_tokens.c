/* compute_tokens.c - products of pixels by windows, constants that repeat,
 * pixels by index, axes in another order; see compute.h.
 *
 * Input and output: values of volumes, channels outermost. Sums are in double.
 */
#include "sim/compute.h"

#include <math.h>
#include <string.h>

/* ---- products ---- */

/* Where pixel `j` of the window lies that pixel (y, x) of the first volume is
 * in, in the second one's plane. */
static size_t other_pixel(const Mix *m, uint32_t y, uint32_t x, uint32_t j) {
    uint32_t at[2] = {y, x}, in[2] = {m->in.h, m->in.w};
    uint32_t in2[2] = {m->in2.h, m->in2.w}, from[2];
    uint32_t across = m->in2.w / (m->in.w / m->patch[1]);
    uint32_t within[2] = {j / across, j % across};
    for (int axis = 0; axis < 2; axis++) {
        uint32_t n = in[axis] / m->patch[axis];
        uint32_t moved = (at[axis] + in[axis] - m->shift[axis]) % in[axis];
        uint32_t first = moved / m->patch[axis] * (in2[axis] / n);
        from[axis] = (first + within[axis] + m->shift[axis]) % in2[axis];
    }
    return (size_t)from[0] * m->in2.w + from[1];
}

/* What pixel (y, x) makes of group g: scores of its keys, and the mean of the
 * values behind these by their exponentials. No other pixel's are held. */
static void attend(const Mix *m, uint32_t g, uint32_t y, uint32_t x,
                   const float *in, const float *in2, double *score,
                   float *out) {
    size_t plane = (size_t)m->in.h * m->in.w, p = (size_t)y * m->in.w + x;
    size_t plane2 = (size_t)m->in2.h * m->in2.w;
    uint32_t terms = m->in.c / m->groups, n = m->out.c / m->groups;
    uint32_t keys = (uint32_t)(plane2 / (m->in.h / m->patch[ROWS]) /
                               (m->in.w / m->patch[COLS]));
    double most = -INFINITY, sum = 0;
    for (uint32_t k = 0; k < keys; k++) {
        size_t at = other_pixel(m, y, x, k);
        score[k] = 0;
        for (uint32_t t = 0; t < terms; t++)
            score[k] += (double)in[((size_t)g * terms + t) * plane + p] *
                        (double)in2[((size_t)g * terms + t) * plane2 + at];
        most = score[k] > most ? score[k] : most;
    }
    for (uint32_t k = 0; k < keys; k++)
        sum += score[k] = exp(score[k] - most);
    for (uint32_t c = 0; c < n; c++) {
        const float *value = in2 + (m->in.c + (size_t)g * n + c) * plane2;
        double made = 0;
        for (uint32_t k = 0; k < keys; k++)
            made += score[k] * (double)value[other_pixel(m, y, x, k)];
        out[((size_t)g * n + c) * plane + p] = (float)(made / sum);
    }
}

static void attend_all(Arena *arena, const Mix *m, const float *in,
                       const float *in2, float *out) {
    double *score = ARENA_ARRAY(arena, double, (size_t)m->in2.h * m->in2.w);
    for (uint32_t g = 0; g < m->groups; g++)
        for (uint32_t y = 0; y < m->in.h; y++)
            for (uint32_t x = 0; x < m->in.w; x++)
                attend(m, g, y, x, in, in2, score, out);
}

void mix_run(Arena *arena, const Mix *m, const float *in, const float *in2,
             float *out) {
    if (m->attends) {
        attend_all(arena, m, in, in2, out);
        return;
    }
    size_t plane = (size_t)m->in.h * m->in.w;
    size_t plane2 = (size_t)m->in2.h * m->in2.w;
    uint32_t n = m->out.c / m->groups, terms = m->in.c / m->groups;
    uint32_t by_c = m->in2.c / m->groups;
    for (uint32_t c = 0; c < m->out.c; c++)
        for (uint32_t y = 0; y < m->in.h; y++)
            for (uint32_t x = 0; x < m->in.w; x++) {
                uint32_t g = c / n, k = c % n;
                size_t p = (size_t)y * m->in.w + x;
                size_t fixed = m->over_pixels ? 0 : other_pixel(m, y, x, k);
                double sum = 0;
                for (uint32_t t = 0; t < terms; t++) {
                    size_t channel = g * by_c + (m->over_pixels ? k : t);
                    size_t pixel =
                        m->over_pixels ? other_pixel(m, y, x, t) : fixed;
                    sum += (double)in[((size_t)g * terms + t) * plane + p] *
                           (double)in2[channel * plane2 + pixel];
                }
                out[c * plane + p] = (float)sum;
            }
}

/* ---- constants, indices, order ---- */

void offset_run(const Extent *size, uint32_t row, const uint32_t period[3],
                bool times, const float *value, const float *in, float *out) {
    for (uint32_t c = 0; c < size->c; c++)
        for (uint32_t y = 0; y < size->h; y++)
            for (uint32_t x = 0; x < size->w; x++) {
                size_t line = (size_t)(c % period[0]) * period[1] +
                              (row + (size_t)y) % period[1];
                float other = value[line * period[2] + x % period[2]];
                float own = *in++;
                *out++ = times ? own * other : own + other;
            }
}

void pixels_run(const Extent *in_size, const Extent *out_size,
                const float *index, const float *in, float *out) {
    size_t plane = (size_t)in_size->h * in_size->w;
    size_t n = (size_t)out_size->h * out_size->w;
    for (uint32_t c = 0; c < in_size->c; c++, in += plane)
        for (size_t i = 0; i < n; i++)
            *out++ = index[i] < (float)plane ? in[(size_t)index[i]] : 0;
}

void transpose_run(const Extent *s, uint32_t order, const float *in,
                   float *out) {
    size_t step[3] = {(size_t)s->h * s->w, s->w, 1};
    uint32_t dim[3] = {s->c, s->h, s->w};
    uint32_t axis[3] = {order / 100, order / 10 % 10, order % 10};
    for (uint32_t i = 0; i < dim[axis[0]]; i++)
        for (uint32_t j = 0; j < dim[axis[1]]; j++)
            for (uint32_t k = 0; k < dim[axis[2]]; k++)
                *out++ = in[i * step[axis[0]] + j * step[axis[1]] +
                            k * step[axis[2]]];
}
