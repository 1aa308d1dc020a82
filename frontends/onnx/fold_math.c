/* fold_math.c - arithmetic on constants; see fold.c. */
#include "frontends/onnx/onnx.h"

#include <math.h>

/* Float arithmetic rounds as the network would. */
static double rounded(OnnxType type, double value) {
    if (type == ONNX_DOUBLE)
        return value;
    return onnx_is_whole(type) ? trunc(value) : (double)(float)value;
}

static bool set(Onnx *x, const OnnxNode *n, OnnxType type, Shape shape,
                const double *value) {
    return onnx_set_numbers(x, n, 0, type, shape, value);
}

static double unary(int kind, double v) {
    switch (kind) {
    case ACT_ABS:
        return fabs(v);
    case ACT_CEIL:
        return ceil(v);
    case ACT_EXP:
        return exp(v);
    case ACT_FLOOR:
        return floor(v);
    case ACT_LOG:
        return log(v);
    case ACT_NEG:
        return -v;
    case ACT_NOT:
        return v == 0;
    case ACT_RECIPROCAL:
        return 1 / v;
    case ACT_ROUND:
        return nearbyint(v);
    case ACT_SIGN:
        return v > 0 ? 1 : v < 0 ? -1 : v;
    default:
        return sqrt(v);
    }
}

bool onnx_fold_unary(Onnx *x, OnnxNode *n) {
    const OnnxValue *in = onnx_in(x, n, 0);
    double *value = onnx_numbers(x, in);
    if (!value)
        return false;
    for (uint64_t i = 0, count = shape_count(&in->shape); i < count; i++)
        value[i] = rounded(in->type, unary(n->op->kind, value[i]));
    return set(x, n, in->type, in->shape, value);
}

/* ---- several operands ---- */

#define ELT(NAME, text, value)                                                 \
    static double elt_##NAME(double a, double b) {                             \
        return value;                                                          \
    }
#include "graph/elts.def"
#undef ELT

static double (*const elt_value[ELT_COUNT])(double, double) = {
#define ELT(NAME, text, value) elt_##NAME,
#include "graph/elts.def"
#undef ELT
};

/* The index in an operand of element `i` of the whole. */
uint64_t onnx_index_in(const Shape *operand, const Shape *whole, uint64_t i) {
    Shape own = onnx_rank(operand, whole->rank);
    uint64_t index = 0, step = 1;
    for (uint32_t axis = whole->rank; axis-- > 0; i /= whole->dim[axis]) {
        if (own.dim[axis] != 1)
            index += i % whole->dim[axis] * step;
        step *= own.dim[axis];
    }
    return index;
}

static bool is_comparison(int kind) {
    return kind >= ELT_EQUAL;
}

/* One more operand onto `value`, which has `shape`. */
static bool fold_in(Onnx *x, OnnxNode *n, uint32_t k, Shape *shape,
                    double **value) {
    const OnnxValue *in = onnx_in(x, n, k);
    const double *other = onnx_numbers(x, in);
    Shape both;
    if (!onnx_broadcast(shape, &in->shape, &both))
        return onnx_error(x, n, "%s and %s do not go together",
                          shape_text(x->arena, shape),
                          shape_text(x->arena, &in->shape));
    uint64_t count = shape_count(&both);
    if (!other || count > 1 << 24)
        return false;
    double *out = ARENA_ARRAY(x->arena, double, count + 1);
    OnnxType type = onnx_in(x, n, 0)->type;
    for (uint64_t i = 0; i < count; i++)
        out[i] = rounded(type, elt_value[n->op->kind](
                                   (*value)[onnx_index_in(shape, &both, i)],
                                   other[onnx_index_in(&in->shape, &both, i)]));
    *shape = both;
    *value = out;
    return true;
}

bool onnx_fold_binary(Onnx *x, OnnxNode *n) {
    const OnnxValue *first = onnx_in(x, n, 0);
    Shape shape = first->shape;
    double *value = onnx_numbers(x, first);
    if (!value || onnx_attr(n, "broadcast"))
        return false;
    for (uint32_t k = 1; k < n->n_in; k++)
        if (!fold_in(x, n, k, &shape, &value))
            return false;
    return set(x, n, is_comparison(n->op->kind) ? ONNX_BOOL : first->type,
               shape, value);
}

bool onnx_fold_where(Onnx *x, OnnxNode *n) {
    const OnnxValue *in[3];
    const double *value[3];
    Shape both, all;
    for (uint32_t i = 0; i < 3; i++) {
        in[i] = onnx_in(x, n, i);
        value[i] = onnx_numbers(x, in[i]);
        if (!value[i])
            return false;
    }
    if (!onnx_broadcast(&in[0]->shape, &in[1]->shape, &both) ||
        !onnx_broadcast(&both, &in[2]->shape, &all))
        return onnx_error(x, n, "its inputs do not go together");
    uint64_t count = shape_count(&all);
    if (count > 1 << 24)
        return false;
    double *out = ARENA_ARRAY(x->arena, double, count + 1);
    for (uint64_t i = 0; i < count; i++) {
        bool yes = value[0][onnx_index_in(&in[0]->shape, &all, i)] != 0;
        uint32_t k = yes ? 1 : 2;
        out[i] = value[k][onnx_index_in(&in[k]->shape, &all, i)];
    }
    return set(x, n, in[1]->type, all, out);
}

/* ---- reductions ---- */

static double reduce(int kind, double so_far, double v) {
    switch (kind) {
    case REDUCE_MAX:
        return v > so_far ? v : so_far;
    case REDUCE_MIN:
        return v < so_far ? v : so_far;
    case REDUCE_PROD:
        return so_far * v;
    default:
        return so_far + v;
    }
}

/* To one number; other reductions are left to the graph. */
bool onnx_fold_reduce(Onnx *x, OnnxNode *n) {
    const OnnxValue *in = onnx_in(x, n, 0);
    uint32_t n_axes, axes, all = (1u << in->shape.rank) - 1;
    int64_t *axis;
    const double *value = onnx_numbers(x, in);
    if (!value || !onnx_list(x, n, 1, "axes", &n_axes, &axis) ||
        !onnx_axes(x, n, n_axes, axis, in->shape.rank, all, &axes))
        return false;
    uint64_t count = shape_count(&in->shape);
    if (axes != all || !count || onnx_int(x, n, "noop_with_empty_axes", 0))
        return false;
    double *out = ARENA_NEW(x->arena, double);
    *out = value[0];
    for (uint64_t i = 1; i < count; i++)
        *out = reduce(n->op->kind, *out, value[i]);
    if (n->op->kind == REDUCE_MEAN)
        *out /= (double)count;
    *out = rounded(in->type, *out);
    Shape shape = {0};
    if (onnx_int(x, n, "keepdims", 1))
        shape = onnx_rank(&shape, in->shape.rank);
    return set(x, n, in->type, shape, out);
}
