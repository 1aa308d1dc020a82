/* order.c - what depends on the order along an axis: the greatest, sums of what
 * lies before, backwards; and determinants. See routine.h. */
#include "routines/kinds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- lines along an axis ---- */

/* The elements along an axis, all others held: outer x size x inner. */
typedef struct Lines {
    uint64_t outer, size, inner;
} Lines;

static Lines lines_of(const RoutineCall *call) {
    const Shape *in = &call->shape[0];
    uint32_t axis = routine_whole(call, "axis", 0);
    return (Lines){routine_product(in, 0, axis), in->dim[axis],
                   routine_product(in, axis + 1, in->rank)};
}

static const char *check_axis(const RoutineCall *call, const char *name) {
    return routine_whole(call, name, 0) < call->shape[0].rank
               ? NULL
               : "works along an axis that its input has not";
}

/* ---- the greatest ---- */

typedef struct Ranked {
    float value;
    uint32_t at;
} Ranked;

/* Greatest first; what is no number stands before all, equals by place. */
static int by_rank(const void *left, const void *right) {
    const Ranked *a = left, *b = right;
    bool none_a = isnan(a->value), none_b = isnan(b->value);
    if (none_a != none_b)
        return none_a ? -1 : 1;
    if (a->value > b->value || a->value < b->value)
        return a->value > b->value ? -1 : 1;
    return a->at < b->at ? -1 : a->at > b->at;
}

const char *top_k_shape(const RoutineCall *call, Shape *out) {
    const char *wrong = check_axis(call, "axis");
    uint32_t axis = routine_whole(call, "axis", 0);
    uint32_t k = routine_whole(call, "k", 0);
    if (wrong)
        return wrong;
    *out = call->shape[0];
    out->dim[axis] = k;
    return k && k <= call->shape[0].dim[axis]
               ? NULL
               : "asks for more elements than there are";
}

void top_k_run(const RoutineCall *call) {
    Lines l = lines_of(call);
    uint32_t k = routine_whole(call, "k", 0);
    bool indices = routine_whole(call, "result", 0) == 1;
    float sign = routine_whole(call, "least", 0) ? -1.0F : 1.0F;
    Ranked *line = ARENA_ARRAY(call->arena, Ranked, l.size);
    for (uint64_t o = 0; o < l.outer; o++)
        for (uint64_t i = 0; i < l.inner; i++) {
            const float *from = call->in[0] + o * l.size * l.inner + i;
            float *to = call->out + o * k * l.inner + i;
            for (uint32_t n = 0; n < l.size; n++)
                line[n] = (Ranked){sign * from[n * l.inner], n};
            qsort(line, l.size, sizeof *line, by_rank);
            for (uint32_t n = 0; n < k; n++)
                to[n * l.inner] =
                    indices ? (float)line[n].at : sign * line[n].value;
        }
}

/* ---- sums ---- */

const char *cumulate_shape(const RoutineCall *call, Shape *out) {
    *out = call->shape[0];
    return check_axis(call, "axis");
}

void cumulate_run(const RoutineCall *call) {
    Lines l = lines_of(call);
    bool exclusive = routine_whole(call, "exclusive", 0) != 0;
    bool reverse = routine_whole(call, "reverse", 0) != 0;
    for (uint64_t o = 0; o < l.outer; o++)
        for (uint64_t i = 0; i < l.inner; i++) {
            double sum = 0;
            for (uint64_t n = 0; n < l.size; n++) {
                uint64_t step = reverse ? l.size - 1 - n : n;
                uint64_t at = (o * l.size + step) * l.inner + i;
                double before = sum;
                sum += (double)call->in[0][at];
                call->out[at] = (float)(exclusive ? before : sum);
            }
        }
}

/* ---- backwards ---- */

const char *reverse_shape(const RoutineCall *call, Shape *out) {
    uint32_t axis = routine_whole(call, "axis", 0);
    uint32_t batch = routine_whole(call, "batch", 0);
    *out = call->shape[0];
    if (check_axis(call, "axis") || check_axis(call, "batch") || axis == batch)
        return "works along axes that its input has not";
    return shape_count(&call->shape[1]) == out->dim[batch]
               ? NULL
               : routine_misfit(call, 0, 1);
}

void reverse_run(const RoutineCall *call) {
    Lines l = lines_of(call);
    const Shape *in = &call->shape[0];
    uint32_t batch = routine_whole(call, "batch", 0);
    uint64_t inside = routine_product(in, batch + 1, in->rank);
    for (uint64_t o = 0; o < l.outer; o++)
        for (uint64_t n = 0; n < l.size; n++)
            for (uint64_t i = 0; i < l.inner; i++) {
                uint64_t at = (o * l.size + n) * l.inner + i;
                float length = call->in[1][at / inside % in->dim[batch]];
                uint64_t from = n;
                if (length >= 1 && length <= (float)l.size &&
                    n < (uint64_t)length)
                    from = (uint64_t)length - 1 - n;
                call->out[at] = call->in[0][(o * l.size + from) * l.inner + i];
            }
}

/* ---- determinants ---- */

const char *determinant_shape(const RoutineCall *call, Shape *out) {
    *out = call->shape[0];
    if (out->rank < 2 || out->dim[out->rank - 1] != out->dim[out->rank - 2])
        return "needs square matrices";
    out->rank -= 2;
    if (!out->rank)
        *out = (Shape){1, {1}};
    return NULL;
}

/* The row with the greatest element in a column, at or below it. */
static uint32_t pivot_of(const double *m, uint32_t n, uint32_t column) {
    uint32_t best = column;
    for (uint32_t i = column + 1; i < n; i++)
        if (fabs(m[i * n + column]) > fabs(m[best * n + column]))
            best = i;
    return best;
}

static double determinant(double *m, uint32_t n) {
    double product = 1;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t pivot = pivot_of(m, n, k);
        product *= m[pivot * n + k] * (pivot == k ? 1 : -1);
        if (!(fabs(m[pivot * n + k]) > 0))
            return 0;
        for (uint32_t j = 0; j < n; j++) {
            double kept = m[k * n + j];
            m[k * n + j] = m[pivot * n + j];
            m[pivot * n + j] = kept;
        }
        for (uint32_t i = k + 1; i < n; i++) {
            double by = m[i * n + k] / m[k * n + k];
            for (uint32_t j = k; j < n; j++)
                m[i * n + j] -= by * m[k * n + j];
        }
    }
    return product;
}

void determinant_run(const RoutineCall *call) {
    const Shape *in = &call->shape[0];
    uint32_t n = in->dim[in->rank - 1];
    uint64_t size = (uint64_t)n * n;
    double *matrix = ARENA_ARRAY(call->arena, double, size);
    for (uint64_t i = 0, count = shape_count(in) / size; i < count; i++) {
        for (uint64_t k = 0; k < size; k++)
            matrix[k] = (double)call->in[0][i * size + k];
        call->out[i] = (float)determinant(matrix, n);
    }
}
