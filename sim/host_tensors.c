/* host_tensors.c - layers of the host on tensors of any rank: constants,
 * matrix products, axes in another order, reductions, gathering, norms; see
 * host.h. Everything is one loop over the result, addressed by strides. */
#include "sim/host.h"

#include "routines/routine.h"

#include <math.h>
#include <string.h>

static bool misfit(const HostCall *call) {
    fault(call->run, "its operands and results do not fit together");
    return false;
}

static const Shape *in_shape(const HostCall *call, uint32_t i) {
    return &call->layer->in[i].shape;
}

static const Shape *out_shape(const HostCall *call) {
    return &call->layer->out[0].shape;
}

static bool run_constant(const HostCall *call) {
    uint64_t n = shape_count(out_shape(call));
    const float *value = host_blob(call, "values", n);
    if (!value) {
        fault(call->run, "the image has no values for it");
        return false;
    }
    memcpy(call->out[0], value, n * sizeof *value);
    return true;
}

/* ---- addresses ---- */

/* Element `i` of a tensor of `shape` as an offset by `stride`, one an axis. */
static uint64_t offset_of(const Shape *shape, const uint64_t *stride,
                          uint64_t i) {
    uint64_t offset = 0;
    for (uint32_t axis = shape->rank; axis-- > 0; i /= shape->dim[axis])
        offset += i % shape->dim[axis] * stride[axis];
    return offset;
}

static void dense_strides(const Shape *shape, uint64_t *stride) {
    uint64_t size = 1;
    for (uint32_t axis = shape->rank; axis-- > 0; size *= shape->dim[axis])
        stride[axis] = size;
}

static bool run_transpose(const HostCall *call) {
    const Shape *in = in_shape(call, 0), *out = out_shape(call);
    uint64_t dense[SHAPE_MAX_RANK], stride[SHAPE_MAX_RANK];
    if (in->rank != out->rank || shape_count(in) != shape_count(out))
        return misfit(call);
    dense_strides(in, dense);
    for (uint32_t i = 0; i < out->rank; i++) {
        uint32_t from = host_count(call->layer, "perm", i, UINT32_MAX);
        if (from >= in->rank || in->dim[from] != out->dim[i])
            return misfit(call);
        stride[i] = dense[from];
    }
    for (uint64_t i = 0, n = shape_count(out); i < n; i++)
        call->out[0][i] = call->in[0][offset_of(out, stride, i)];
    return true;
}

/* ---- matrix products ---- */

/* The matrix of an operand that serves matrix `i` of the result. */
static uint64_t matrix_at(const Shape *operand, const Shape *out, uint64_t i) {
    uint64_t at = 0, size = 1;
    for (uint32_t axis = out->rank - 2; axis-- > 0; i /= out->dim[axis]) {
        uint64_t dim = operand->dim[axis];
        at += (dim == 1 ? 0 : i % out->dim[axis]) * size;
        size *= dim;
    }
    return at;
}

static void multiply(const float *a, const float *b, float *out, uint64_t m,
                     uint64_t k, uint64_t n) {
    memset(out, 0, m * n * sizeof *out);
    for (uint64_t row = 0; row < m; row++)
        for (uint64_t i = 0; i < k; i++) {
            float by = a[row * k + i];
            for (uint64_t column = 0; column < n; column++)
                out[row * n + column] += by * b[i * n + column];
        }
}

static bool broadcasts(const Shape *in, const Shape *out) {
    for (uint32_t i = 0; i + 2 < out->rank; i++)
        if (in->dim[i] != out->dim[i] && in->dim[i] != 1)
            return false;
    return true;
}

static bool run_matmul(const HostCall *call) {
    const Shape *a = in_shape(call, 0), *b = in_shape(call, 1);
    const Shape *out = out_shape(call);
    uint32_t rank = out->rank;
    if (rank < 2 || a->rank != rank || b->rank != rank ||
        a->dim[rank - 1] != b->dim[rank - 2] ||
        a->dim[rank - 2] != out->dim[rank - 2] ||
        b->dim[rank - 1] != out->dim[rank - 1] || !broadcasts(a, out) ||
        !broadcasts(b, out))
        return misfit(call);
    uint64_t m = out->dim[rank - 2], n = out->dim[rank - 1];
    uint64_t k = a->dim[rank - 1], count = shape_count(out) / (m * n);
    for (uint64_t i = 0; i < count; i++)
        multiply(call->in[0] + matrix_at(a, out, i) * m * k,
                 call->in[1] + matrix_at(b, out, i) * k * n,
                 call->out[0] + i * m * n, m, k, n);
    return true;
}

/* ---- reductions ---- */

typedef struct Reduction {
    const char *name;
    double first;
    double (*next)(double so_far, double x, double most);
    double (*last)(double so_far, double n, double most);
} Reduction;

static double next_sum(double so_far, double x, double most) {
    (void)most;
    return so_far + x;
}
static double next_max(double so_far, double x, double most) {
    (void)most;
    return x > so_far || isnan(x) ? x : so_far;
}
static double next_min(double so_far, double x, double most) {
    (void)most;
    return x < so_far || isnan(x) ? x : so_far;
}
static double next_product(double so_far, double x, double most) {
    (void)most;
    return so_far * x;
}
static double next_size(double so_far, double x, double most) {
    (void)most;
    return so_far + fabs(x);
}
static double next_square(double so_far, double x, double most) {
    (void)most;
    return so_far + x * x;
}
static double next_power(double so_far, double x, double most) {
    return so_far + exp(x - most);
}
static double last_same(double so_far, double n, double most) {
    (void)n, (void)most;
    return so_far;
}
static double last_mean(double so_far, double n, double most) {
    (void)most;
    return so_far / n;
}
static double last_root(double so_far, double n, double most) {
    (void)n, (void)most;
    return sqrt(so_far);
}
static double last_log(double so_far, double n, double most) {
    (void)n, (void)most;
    return log(so_far);
}
static double last_log_most(double so_far, double n, double most) {
    (void)n;
    return most + log(so_far);
}

static const Reduction reductions[] = {
    {"mean", 0, next_sum, last_mean},
    {"sum", 0, next_sum, last_same},
    {"max", -INFINITY, next_max, last_same},
    {"min", INFINITY, next_min, last_same},
    {"prod", 1, next_product, last_same},
    {"l1", 0, next_size, last_same},
    {"l2", 0, next_square, last_root},
    {"squares", 0, next_square, last_same},
    {"log_sum", 0, next_sum, last_log},
    {"log_sum_exp", 0, next_power, last_log_most},
};

/* The index of the first or last that none beats, as a float. */
static bool reduce_index(const HostLayer *layer, const float *first,
                         const Shape *inner, const uint64_t *stride,
                         double *out) {
    static const struct {
        const char *name;
        float sign;
        bool last;
    } rows[] = {{"argmax", 1, false},
                {"argmax_last", 1, true},
                {"argmin", -1, false},
                {"argmin_last", -1, true}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        if (!host_is(layer, "kind", rows[r].name))
            continue;
        float best = -INFINITY;
        *out = 0;
        for (uint64_t i = 0, n = shape_count(inner); i < n; i++) {
            float x = rows[r].sign * first[offset_of(inner, stride, i)];
            if (x > best || (rows[r].last && x >= best)) {
                best = x;
                *out = (double)i;
            }
        }
        return true;
    }
    return false;
}

static const Reduction *find_reduction(const HostLayer *layer) {
    for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++)
        if (host_is(layer, "kind", reductions[i].name))
            return &reductions[i];
    return NULL;
}

/* `first` is where the elements start; they are at `inner` by `stride`. */
static double reduce_one(const Reduction *how, const float *first,
                         const Shape *inner, const uint64_t *stride) {
    double so_far = how->first, most = -INFINITY;
    uint64_t n = shape_count(inner);
    for (uint64_t i = 0; i < n; i++)
        most = fmax(most, (double)first[offset_of(inner, stride, i)]);
    for (uint64_t i = 0; i < n; i++)
        so_far =
            how->next(so_far, (double)first[offset_of(inner, stride, i)], most);
    return how->last(so_far, (double)n, most);
}

static bool run_reduce(const HostCall *call) {
    if (call->quant)
        return host_reduce_codes(call);
    const Shape *in = in_shape(call, 0), *out = out_shape(call);
    uint32_t axes = host_count(call->layer, "axes", 0, 0);
    const Reduction *how = find_reduction(call->layer);
    uint64_t stride[SHAPE_MAX_RANK];
    Shape inner = *in;
    if (in->rank != out->rank)
        return misfit(call);
    for (uint32_t i = 0; i < in->rank; i++) {
        bool goes = axes >> i & 1;
        if (out->dim[i] != (goes ? 1 : in->dim[i]))
            return misfit(call);
        inner.dim[i] = goes ? in->dim[i] : 1;
    }
    dense_strides(in, stride);
    for (uint64_t i = 0, n = shape_count(out); i < n; i++) {
        const float *first = call->in[0] + offset_of(out, stride, i);
        double value = 0;
        if (how)
            value = reduce_one(how, first, &inner, stride);
        else if (!reduce_index(call->layer, first, &inner, stride, &value))
            return misfit(call);
        call->out[0][i] = (float)value;
    }
    return true;
}

/* ---- gathering, norms ---- */

static uint64_t product(const Shape *shape, uint32_t from, uint32_t to) {
    uint64_t n = 1;
    for (uint32_t i = from; i < to && i < shape->rank; i++)
        n *= shape->dim[i];
    return n;
}

static bool run_gather(const HostCall *call) {
    const Shape *in = in_shape(call, 0), *out = out_shape(call);
    uint32_t axis = host_count(call->layer, "axis", 0, 0);
    uint64_t taps = host_count(call->layer, "taps", 0, 1);
    uint64_t n = shape_dim(out, axis), size = shape_dim(in, axis);
    const float *index = host_blob(call, "index", n * taps);
    const float *factor = host_blob(call, "values", n * taps);
    if (!index || !factor || in->rank != out->rank ||
        shape_count(in) / size != shape_count(out) / n)
        return misfit(call);
    uint64_t inner = product(in, axis + 1, in->rank);
    for (uint64_t i = 0, count = shape_count(out); i < count; i++) {
        uint64_t outer = i / inner / n, at = i / inner % n;
        float sum = 0; /* codes behind it depend on the order and the width */
        for (uint64_t k = at * taps; k < (at + 1) * taps; k++) {
            if (!(index[k] >= 0) || index[k] >= (float)size)
                return misfit(call);
            uint64_t from = outer * size + (uint64_t)index[k];
            sum += factor[k] * call->in[0][from * inner + i % inner];
        }
        call->out[0][i] = sum;
    }
    return true;
}

static bool run_norm(const HostCall *call) {
    const HostLayer *layer = call->layer;
    uint32_t axis = host_count(layer, "axis", 0, 1);
    uint32_t axes = host_count(layer, "axes", 0, SHAPE_MAX_RANK);
    Lines lines;
    if (!host_lines(call, axis, axes, &lines))
        return misfit(call);
    lines_norm(&lines, host_count(layer, "rms", 0, 0),
               host_number(layer, "eps", 0, 1e-5), call->in[0], call->out[0]);
    return true;
}

/* What only hosts compute has one implementation, in routines/. */
static bool run_routine(const HostCall *call) {
    const HostLayer *layer = call->layer;
    RoutineCall routine = {.arena = call->run->work,
                           .n_in = layer->n_in,
                           .in = call->in,
                           .out = call->out[0]};
    double number[ROUTINE_NUMBERS] = {0};
    const char *wrong =
        routine_read(layer->n_attrs, layer->attr, &routine.kind, number);
    Shape *shape = ARENA_ARRAY(call->run->work, Shape, layer->n_in);
    for (uint32_t i = 0; i < layer->n_in; i++)
        shape[i] = layer->in[i].shape;
    routine.shape = shape;
    routine.number = number;
    if (!wrong)
        wrong = routine_shape(&routine, &routine.out_shape);
    if (wrong || !shape_equal(&routine.out_shape, &layer->out[0].shape))
        return misfit(call);
    routine_run(&routine);
    return true;
}

const HostRow host_tensors[] = {
    {"constant", 0, run_constant, HOST_PLAIN},
    {"call", 0, run_constant, HOST_PLAIN},
    {"matmul", 2, run_matmul, HOST_PLAIN},
    {"transpose", 1, run_transpose, HOST_PLAIN},
    {"reduce", 1, run_reduce, HOST_MEANS},
    {"gather", 1, run_gather, HOST_PLAIN},
    {"norm", 1, run_norm, HOST_PLAIN},
    {"routine", 1, run_routine, HOST_PLAIN},
    {NULL, 0, NULL, HOST_PLAIN},
};
