/* eval_tensor.c - operators on tensors of any rank: matrix products, axes in
 * another order, reductions, weighted gathering, norms.
 *
 * In and out: values in the order of the shape.
 */
#include "graph/eval.h"

#include <math.h>
#include <string.h>

void eval_constant(const Eval *e) {
    const float *value = eval_need_const(e, CONST_VALUE);
    memcpy(e->out, value, shape_count(e->out_shape) * sizeof *e->out);
}

/* Nobody knows what it computes: these values stand for it. */
void eval_call(const Eval *e) {
    eval_constant(e);
}

/* ---- walking a tensor ---- */

/* How many elements of an input one step along each of its axes is. */
static void steps_of(const Shape *shape, size_t step[SHAPE_MAX_RANK]) {
    size_t size = 1;
    for (uint32_t i = shape->rank; i-- > 0;) {
        step[i] = size;
        size *= shape->dim[i];
    }
}

/* A place that goes through `shape` in its order; `at` is the sum of the steps
 * of its indices. */
typedef struct Walk {
    const Shape *shape;
    size_t step[SHAPE_MAX_RANK], at;
    uint32_t index[SHAPE_MAX_RANK];
} Walk;

static void walk_on(Walk *w) {
    for (uint32_t axis = w->shape->rank; axis-- > 0;) {
        w->at += w->step[axis];
        if (++w->index[axis] < w->shape->dim[axis])
            return;
        w->at -= w->step[axis] * w->index[axis];
        w->index[axis] = 0;
    }
}

void eval_transpose(const Eval *e) {
    Walk w = {.shape = e->out_shape};
    size_t step[SHAPE_MAX_RANK];
    steps_of(e->in_shape, step);
    for (uint32_t i = 0; i < e->out_shape->rank; i++)
        w.step[i] = step[e->node->attr.perm.dim[i]];
    for (size_t i = 0, n = shape_count(e->out_shape); i < n; i++, walk_on(&w))
        e->out[i] = e->in[0][w.at];
}

/* ---- matrix products ---- */

/* A walk over the batches of the output, in matrices of an operand. */
static Walk batches(const Shape *batch, const Shape *operand) {
    Walk w = {.shape = batch};
    Shape own = *operand;
    own.rank = batch->rank;
    steps_of(&own, w.step);
    for (uint32_t i = 0; i < batch->rank; i++)
        if (own.dim[i] == 1)
            w.step[i] = 0;
    return w;
}

void eval_matmul(const Eval *e) {
    const Shape *a = e->in_shape, *out = e->out_shape;
    const Shape *b = &graph_tensor(e->g, e->node->in[1])->shape;
    uint32_t last = out->rank - 1;
    size_t m = out->dim[last - 1], n = out->dim[last], k = a->dim[last];
    Shape batch = *out;
    batch.rank -= 2;
    Walk wa = batches(&batch, a), wb = batches(&batch, b);
    float *to = e->out;
    for (uint64_t i = 0, count = shape_count(&batch); i < count; i++) {
        eval_product(m, n, k, (Matrix){e->in[0] + wa.at * m * k, k, false},
                     (Matrix){e->in[1] + wb.at * k * n, n, false}, to, n);
        to += m * n;
        walk_on(&wa);
        walk_on(&wb);
    }
}

/* ---- reductions ---- */

static double reduce_first(ReduceKind kind) {
    switch (kind) {
    case REDUCE_MAX:
        return -INFINITY;
    case REDUCE_MIN:
        return INFINITY;
    case REDUCE_PROD:
        return 1;
    default:
        return 0;
    }
}

/* `most`: the greatest of all, which keeps exponentials from overflowing. */
static double reduce_next(ReduceKind kind, double sum, double x, double most) {
    switch (kind) {
    case REDUCE_MAX:
        return x <= sum || isnan(sum) ? sum : x;
    case REDUCE_MIN:
        return x >= sum || isnan(sum) ? sum : x;
    case REDUCE_PROD:
        return sum * x;
    case REDUCE_L1:
        return sum + fabs(x);
    case REDUCE_L2:
    case REDUCE_SQUARES:
        return sum + x * x;
    case REDUCE_LOG_SUM_EXP:
        return sum + exp(x - most);
    default:
        return sum + x;
    }
}

static double reduce_last(ReduceKind kind, double sum, double n, double most) {
    switch (kind) {
    case REDUCE_MEAN:
        return sum / n;
    case REDUCE_L2:
        return sqrt(sum);
    case REDUCE_LOG_SUM:
        return log(sum);
    case REDUCE_LOG_SUM_EXP:
        return most + log(sum);
    default:
        return sum;
    }
}

/* Steps of the input within the part that is reduced, or within the rest. */
static Walk reduce_walk(const Eval *e, Shape *shape, bool reduced) {
    *shape = *e->in_shape;
    Walk w = {.shape = shape};
    steps_of(e->in_shape, w.step);
    for (uint32_t i = 0; i < shape->rank; i++)
        if ((e->node->attr.reduce.axes >> i & 1) != reduced)
            shape->dim[i] = 1;
    return w;
}

/* Where the greatest or smallest is among the elements that a walk meets. */
static double arg_of(ReduceKind kind, const float *from, Walk w, size_t n) {
    bool least = kind == REDUCE_ARGMIN || kind == REDUCE_ARGMIN_LAST;
    bool last = kind == REDUCE_ARGMAX_LAST || kind == REDUCE_ARGMIN_LAST;
    size_t best = 0;
    float value = from[w.at];
    for (size_t k = 0; k < n; k++, walk_on(&w)) {
        float x = from[w.at];
        if ((least ? x < value : x > value) || (last && x == value)) {
            best = k;
            value = x;
        }
    }
    return (double)best;
}

void eval_reduce(const Eval *e) {
    ReduceKind kind = e->node->attr.reduce.kind;
    Shape outer, inner;
    Walk to = reduce_walk(e, &outer, false);
    size_t n = shape_count(e->in_shape) / shape_count(e->out_shape);
    for (size_t i = 0, count = shape_count(&outer); i < count; i++) {
        const float *from = e->in[0] + to.at;
        double most = -INFINITY;
        Walk w = reduce_walk(e, &inner, true);
        if (kind >= REDUCE_ARGMAX) {
            e->out[i] = (float)arg_of(kind, from, w, n);
            walk_on(&to);
            continue;
        }
        for (size_t k = 0; kind == REDUCE_LOG_SUM_EXP && k < n;
             k++, walk_on(&w))
            most = fmax(most, (double)from[w.at]);
        double sum = reduce_first(kind);
        w = reduce_walk(e, &inner, true);
        for (size_t k = 0; k < n; k++, walk_on(&w))
            sum = reduce_next(kind, sum, (double)from[w.at], most);
        e->out[i] = (float)reduce_last(kind, sum, (double)n, most);
        walk_on(&to);
    }
}

/* ---- gathering, norms ---- */

static void add_line(float *out, const float *in, float factor, size_t n) {
    for (size_t i = 0; i < n; i++)
        out[i] += factor * in[i];
}

void eval_gather(const Eval *e) {
    uint32_t n = e->node->attr.gather.n, taps = e->node->attr.gather.taps;
    Split s = eval_split(e->in_shape, e->node->attr.gather.axis);
    const float *index = eval_need_const(e, CONST_INDEX);
    const float *factor = eval_need_const(e, CONST_VALUE);
    float *out = e->out;
    for (size_t o = 0; o < s.outer; o++) {
        const float *from = e->in[0] + o * s.axis * s.inner;
        for (size_t i = 0; i < n; i++, out += s.inner)
            for (size_t k = i * taps; k < (i + 1) * taps; k++) {
                const float *line = from + (size_t)index[k] * s.inner;
                if (taps == 1 && factor[k] == 1.0F)
                    memcpy(out, line, s.inner * sizeof *out);
                else
                    add_line(out, line, factor[k], s.inner);
            }
    }
}

/* Over `n` values that are `step` apart. */
static void norm_line(const Eval *e, const float *in, size_t n, size_t step,
                      float *out) {
    double mean = 0, var = 0;
    for (size_t i = 0; i < n && !e->node->attr.norm.rms; i++)
        mean += (double)in[i * step];
    mean /= (double)n;
    for (size_t i = 0; i < n; i++)
        var += ((double)in[i * step] - mean) * ((double)in[i * step] - mean);
    double by = 1 / sqrt(var / (double)n + e->node->attr.norm.eps);
    for (size_t i = 0; i < n; i++)
        out[i * step] = (float)(((double)in[i * step] - mean) * by);
}

void eval_norm(const Eval *e) {
    Split s = eval_lines(e->in_shape, e->node->attr.norm.axis,
                         e->node->attr.norm.axes, e->node->attr.norm.groups);
    for (size_t o = 0; o < s.outer; o++)
        for (size_t i = 0; i < s.inner; i++) {
            size_t at = o * s.axis * s.inner + i;
            norm_line(e, e->in[0] + at, s.axis, s.inner, e->out + at);
        }
}

void eval_routine(const Eval *e) {
    const Node *node = e->node;
    Shape *shape = ARENA_ARRAY(e->scratch, Shape, node->n_in);
    for (uint32_t i = 0; i < node->n_in; i++)
        shape[i] = graph_tensor(e->g, node->in[i])->shape;
    routine_run(&(RoutineCall){.arena = e->scratch,
                               .kind = node->attr.routine.kind,
                               .number = node->attr.routine.number,
                               .n_in = node->n_in,
                               .shape = shape,
                               .in = e->in,
                               .out_shape = *e->out_shape,
                               .out = e->out});
}
