/* ops_index.c - ONNX operators that make or compare indices: what is one at an
 * index, where something is not 0, losses by class; see onnx.h. */
#include "frontends/onnx/onnx.h"

#include <string.h>

/* 0, 1, 2... along one axis of a shape that is 1 elsewhere. */
static TensorId range_at(Onnx *x, const OnnxNode *n, uint32_t rank,
                         uint32_t axis, uint32_t count) {
    Shape shape = onnx_rank(&(Shape){0}, rank);
    double *value = ARENA_ARRAY(x->arena, double, count + 1);
    for (uint32_t i = 0; i < count; i++)
        value[i] = i;
    shape.dim[axis] = count;
    return onnx_constant(x, n, onnx_values(shape, value));
}

static TensorId number(Onnx *x, const OnnxNode *n, double value) {
    return onnx_constant(x, n, onnx_fill((Shape){1, {1}}, value));
}

static TensorId negated(Onnx *x, const OnnxNode *n, TensorId in, ActKind act) {
    return onnx_act(x, n, in, (Act){.kind = act});
}

/* ---- one at an index ---- */

bool onnx_one_hot(Onnx *x, OnnxNode *n) {
    uint32_t count, axis;
    int64_t *depth;
    Shape at = onnx_in(x, n, 0)->shape;
    if (!onnx_list_in(x, n, 1, &count, &depth) ||
        !onnx_axis(x, n, onnx_int(x, n, "axis", -1), at.rank + 1, &axis))
        return false;
    if (count != 1 || depth[0] < 1 || depth[0] > 1 << 24 ||
        at.rank == SHAPE_MAX_RANK || shape_count(&onnx_in(x, n, 2)->shape) != 2)
        return onnx_error(x, n, "its depth or its values do not fit");
    Shape wide = {.rank = at.rank + 1};
    for (uint32_t i = 0; i < wide.rank; i++)
        wide.dim[i] = i == axis ? 1 : at.dim[i - (i > axis)];
    TensorId index = onnx_reshape(x, n, onnx_tensor_in(x, n, 0), wide);
    TensorId range = range_at(x, n, wide.rank, axis, (uint32_t)depth[0]);
    TensorId behind =
        onnx_binary(x, n, ELT_ADD, index, number(x, n, (double)depth[0]));
    TensorId hot =
        onnx_binary(x, n, ELT_OR, onnx_binary(x, n, ELT_EQUAL, index, range),
                    onnx_binary(x, n, ELT_EQUAL, behind, range));
    TensorId values = onnx_tensor_in(x, n, 2);
    TensorId off = onnx_slice(x, n, values, 0, 0, 1);
    TensorId on = onnx_slice(x, n, values, 0, 1, 2);
    TensorId out =
        onnx_binary(x, n, ELT_MUL, hot, onnx_binary(x, n, ELT_SUB, on, off));
    onnx_out(x, n, 0)->type = onnx_in(x, n, 2)->type;
    return onnx_set(x, n, 0, onnx_binary(x, n, ELT_ADD, out, off), NULL);
}

/* One where the first of the greatest is. */
bool onnx_hardmax(Onnx *x, OnnxNode *n) {
    Shape in = onnx_in(x, n, 0)->shape, flat = {2, {1, 1}};
    uint32_t axis;
    bool old = x->opset && x->opset < 13;
    if (!onnx_axis(x, n, onnx_int(x, n, "axis", old ? 1 : -1), in.rank, &axis))
        return false;
    for (uint32_t i = 0; i < in.rank; i++)
        flat.dim[i >= axis] *= in.dim[i];
    Shape as = old ? flat : in;
    axis = old ? 1 : axis;
    TensorId from = onnx_reshape(x, n, onnx_tensor_in(x, n, 0), as);
    TensorId best = onnx_reduce(x, n, from, REDUCE_ARGMAX, 1u << axis);
    TensorId out = onnx_binary(x, n, ELT_EQUAL, best,
                               range_at(x, n, as.rank, axis, as.dim[axis]));
    return onnx_set(x, n, 0, onnx_reshape(x, n, out, in), NULL);
}

/* ---- what is no number ---- */

bool onnx_is_nan(Onnx *x, OnnxNode *n) {
    TensorId in = onnx_tensor_in(x, n, 0);
    TensorId same = onnx_binary(x, n, ELT_EQUAL, in, in);
    onnx_out(x, n, 0)->type = ONNX_BOOL;
    return onnx_set(x, n, 0, negated(x, n, same, ACT_NOT), NULL);
}

bool onnx_is_inf(Onnx *x, OnnxNode *n) {
    bool plus = onnx_int(x, n, "detect_positive", 1) != 0;
    bool minus = onnx_int(x, n, "detect_negative", 1) != 0;
    TensorId in = onnx_tensor_in(x, n, 0);
    if (plus && minus)
        in = negated(x, n, in, ACT_ABS);
    else if (minus)
        in = negated(x, n, in, ACT_NEG);
    const double most = 3.4028234663852886e38;
    TensorId out = onnx_binary(x, n, ELT_GREATER, in, number(x, n, most));
    if (!plus && !minus)
        out = onnx_binary(x, n, ELT_MUL, out, number(x, n, 0));
    onnx_out(x, n, 0)->type = ONNX_BOOL;
    return onnx_set(x, n, 0, out, NULL);
}

/* ---- constants ---- */

/* A matrix of the input's shape, whatever its values. */
bool onnx_eye(Onnx *x, OnnxNode *n) {
    const OnnxValue *in = onnx_in(x, n, 0);
    int64_t k = onnx_int(x, n, "k", 0);
    int64_t type = onnx_int(x, n, "dtype", in->type);
    if (in->shape.rank != 2 || shape_count(&in->shape) > 1 << 24)
        return onnx_error(x, n, "it makes no matrix, or one too large");
    if (!onnx_is_number(type))
        return onnx_error(x, n, "elements of %s are not supported",
                          onnx_type_name(x->arena, type));
    uint32_t h = in->shape.dim[0], w = in->shape.dim[1];
    double *value = ARENA_ARRAY(x->arena, double, (uint64_t)h *w + 1);
    for (int64_t i = 0; i < h; i++)
        if (i + k >= 0 && i + k < w)
            value[i * w + i + k] = 1;
    return onnx_set_numbers(x, n, 0, (OnnxType)type, in->shape, value);
}

/* Rows of indices, one an axis. */
bool onnx_fold_non_zero(Onnx *x, OnnxNode *n) {
    const OnnxValue *in = onnx_in(x, n, 0);
    const double *value = onnx_numbers(x, in);
    uint64_t all = shape_count(&in->shape), count = 0, at = 0;
    uint32_t rank = in->shape.rank ? in->shape.rank : 1;
    if (!value)
        return onnx_error(x, n, "its input is too large");
    for (uint64_t i = 0; i < all; i++)
        count += value[i] < 0 || value[i] > 0;
    double *out = ARENA_ARRAY(x->arena, double, rank *count + 1);
    for (uint64_t i = 0; i < all; i++) {
        uint64_t rest = i;
        if (!(value[i] < 0 || value[i] > 0))
            continue;
        for (uint32_t axis = rank; axis-- > 0;) {
            uint32_t size = shape_dim(&in->shape, axis);
            out[axis * count + at] = (double)(rest % size);
            rest /= size;
        }
        at++;
    }
    return onnx_set_numbers(x, n, 0, ONNX_INT64,
                            (Shape){2, {rank, (uint32_t)count}}, out);
}

/* ---- slices that a constant keeps ---- */

bool onnx_compress(Onnx *x, OnnxNode *n) {
    Shape in = onnx_in(x, n, 0)->shape;
    uint32_t axis = 0, count, kept = 0;
    int64_t *keep;
    if (!onnx_list_in(x, n, 1, &count, &keep))
        return false;
    TensorId from = onnx_tensor_in(x, n, 0);
    if (!onnx_attr(n, "axis")) {
        in = (Shape){1, {(uint32_t)shape_count(&in)}};
        from = onnx_reshape(x, n, from, in);
    } else if (!onnx_axis(x, n, onnx_int(x, n, "axis", 0), in.rank, &axis)) {
        return false;
    }
    double *index = ARENA_ARRAY(x->arena, double, count + 1);
    for (uint32_t i = 0; i < count && i < in.dim[axis]; i++)
        if (keep[i])
            index[kept++] = i;
    if (!kept)
        return onnx_error(x, n, "its output is empty");
    return onnx_set(x, n, 0,
                    onnx_gather(x, n, from, axis, kept, 1, index, NULL), NULL);
}

/* ---- losses ---- */

typedef struct Loss {
    TensorId each, weight; /* N x 1 x ...: of each target, and its weight */
    Shape shape;           /* of the targets */
} Loss;

static bool losses(Onnx *x, OnnxNode *n, TensorId log, Loss *out) {
    Shape in = onnx_in(x, n, 0)->shape;
    const OnnxValue *weight = onnx_in(x, n, 2);
    out->shape = onnx_in(x, n, 1)->shape;
    if (in.rank < 2 || out->shape.rank != in.rank - 1)
        return onnx_error(x, n, "its targets do not fit");
    Shape wide = in, channels = onnx_rank(&(Shape){0}, in.rank);
    wide.dim[1] = 1;
    channels.dim[1] = in.dim[1];
    TensorId target = onnx_reshape(x, n, onnx_tensor_in(x, n, 1), wide);
    TensorId hot = onnx_binary(x, n, ELT_EQUAL, target,
                               range_at(x, n, in.rank, 1, in.dim[1]));
    if (onnx_attr(n, "ignore_index")) {
        TensorId left_out = onnx_binary(
            x, n, ELT_EQUAL, target,
            number(x, n, (double)onnx_int(x, n, "ignore_index", 0)));
        hot = onnx_binary(x, n, ELT_MUL, hot, negated(x, n, left_out, ACT_NOT));
    }
    if (weight)
        hot =
            onnx_binary(x, n, ELT_MUL, hot,
                        onnx_reshape(x, n, onnx_tensor_in(x, n, 2), channels));
    TensorId each = onnx_binary(x, n, ELT_MUL, hot, log);
    each = onnx_reduce(x, n, each, REDUCE_SUM, 2);
    out->each = negated(x, n, each, ACT_NEG);
    out->weight = onnx_reduce(x, n, hot, REDUCE_SUM, 2);
    return true;
}

static bool set_loss(Onnx *x, OnnxNode *n, TensorId log) {
    const char *reduction = onnx_word(x, n, "reduction", "mean");
    Loss l;
    if (!losses(x, n, log, &l))
        return false;
    if (!strcmp(reduction, "none"))
        return onnx_set(x, n, 0, onnx_reshape(x, n, l.each, l.shape), &l.shape);
    uint32_t axes = (1u << (l.shape.rank + 1)) - 1;
    TensorId out = onnx_reduce(x, n, l.each, REDUCE_SUM, axes);
    if (!strcmp(reduction, "mean"))
        out = onnx_binary(x, n, ELT_DIV, out,
                          onnx_reduce(x, n, l.weight, REDUCE_SUM, axes));
    return onnx_set(x, n, 0, onnx_reshape(x, n, out, (Shape){1, {1}}),
                    &(Shape){0});
}

bool onnx_nll_loss(Onnx *x, OnnxNode *n) {
    return set_loss(x, n, onnx_tensor_in(x, n, 0));
}

bool onnx_entropy_loss(Onnx *x, OnnxNode *n) {
    TensorId in = onnx_tensor_in(x, n, 0);
    TensorId sum = onnx_reduce(x, n, in, REDUCE_LOG_SUM_EXP, 2);
    TensorId log = onnx_binary(x, n, ELT_SUB, in, sum);
    if (onnx_wants(n, 1))
        onnx_out(x, n, 1)->type = onnx_in(x, n, 0)->type;
    return set_loss(x, n, log) &&
           (!onnx_wants(n, 1) || onnx_set(x, n, 1, log, NULL));
}
