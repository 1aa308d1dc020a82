/* compute_lines.c - softmax and norms over lines of a volume; see compute.h.
 *
 * Input and output: values, and how they form lines. Sums are in double.
 */
#include "sim/compute.h"

#include <math.h>

typedef struct Line {
    const float *in;
    float *out;
    uint64_t n, step;
} Line;

static void softmax(const Line *l) {
    float most = l->in[0];
    for (uint64_t i = 1; i < l->n; i++)
        most = l->in[i * l->step] > most ? l->in[i * l->step] : most;
    double sum = 0;
    for (uint64_t i = 0; i < l->n; i++)
        sum += exp((double)l->in[i * l->step] - (double)most);
    for (uint64_t i = 0; i < l->n; i++)
        l->out[i * l->step] =
            (float)(exp((double)l->in[i * l->step] - (double)most) / sum);
}

static void norm(const Line *l, bool rms, double eps) {
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < l->n && !rms; i++)
        sum += (double)l->in[i * l->step];
    double mean = sum / (double)l->n;
    for (uint64_t i = 0; i < l->n; i++)
        squares += pow((double)l->in[i * l->step] - mean, 2);
    double deviation = sqrt(squares / (double)l->n + eps);
    for (uint64_t i = 0; i < l->n; i++)
        l->out[i * l->step] =
            (float)(((double)l->in[i * l->step] - mean) / deviation);
}

static Line line_at(const Lines *lines, uint64_t i, const float *in,
                    float *out) {
    uint64_t at = i / lines->step * lines->n * lines->step + i % lines->step;
    return (Line){in + at, out + at, lines->n, lines->step};
}

void lines_softmax(const Lines *lines, const float *in, float *out) {
    for (uint64_t i = 0; i < lines->outer * lines->step; i++) {
        Line line = line_at(lines, i, in, out);
        softmax(&line);
    }
}

void lines_norm(const Lines *lines, bool rms, double eps, const float *in,
                float *out) {
    for (uint64_t i = 0; i < lines->outer * lines->step; i++) {
        Line line = line_at(lines, i, in, out);
        norm(&line, rms, eps);
    }
}
