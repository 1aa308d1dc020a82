/* ops_shape.c - ONNX operators that move elements; see onnx.h. */
#include "frontends/onnx/onnx.h"

#include <string.h>

static bool set_shape(Onnx *x, OnnxNode *n, Shape shape) {
    TensorId in = onnx_tensor_in(x, n, 0);
    return onnx_set(x, n, 0, onnx_reshape(x, n, in, shape), &shape);
}

bool onnx_to_shape(Onnx *x, OnnxNode *n) {
    uint32_t count;
    int64_t *dims;
    Shape to;
    return onnx_list(x, n, 1, "shape", &count, &dims) &&
           onnx_reshaped(x, n, &onnx_in(x, n, 0)->shape, count, dims, &to) &&
           set_shape(x, n, to);
}

bool onnx_flatten(Onnx *x, OnnxNode *n) {
    const Shape *in = &onnx_in(x, n, 0)->shape;
    int64_t axis = onnx_int(x, n, "axis", 1);
    uint32_t at;
    Shape to = {2, {1, 1}};
    if (axis == (int64_t)in->rank)
        at = in->rank;
    else if (!onnx_axis(x, n, axis, in->rank, &at))
        return false;
    for (uint32_t i = 0; i < in->rank; i++)
        to.dim[i >= at] *= in->dim[i];
    return set_shape(x, n, to);
}

bool onnx_squeeze(Onnx *x, OnnxNode *n) {
    Shape to;
    return onnx_squeezed(x, n, &onnx_in(x, n, 0)->shape, &to) &&
           set_shape(x, n, to);
}

bool onnx_permutation(Onnx *x, OnnxNode *n) {
    uint32_t perm[SHAPE_MAX_RANK], rank = onnx_in(x, n, 0)->shape.rank;
    if (!onnx_perm(x, n, rank, perm))
        return false;
    if (!rank)
        return set_shape(x, n, (Shape){0});
    return onnx_set(x, n, 0,
                    onnx_transpose(x, n, onnx_tensor_in(x, n, 0), perm), NULL);
}

bool onnx_concat(Onnx *x, OnnxNode *n) {
    TensorId *in = ARENA_ARRAY(x->arena, TensorId, n->n_in);
    uint32_t axis, k = 0;
    if (!onnx_axis(x, n, onnx_int(x, n, "axis", 1),
                   onnx_in(x, n, 0)->shape.rank, &axis))
        return false;
    for (uint32_t i = 0; i < n->n_in; i++) {
        OnnxValue *value = onnx_in(x, n, i);
        if (value && shape_count(&value->shape)) /* empty ones add nothing */
            in[k++] = onnx_tensor(x, value);
    }
    NodeId id = onnx_add(x, n, OP_CONCAT, "concat", k, in);
    if (id.i == NONE)
        return false;
    graph_node(x->graph, id)->attr.axis.axis = axis;
    return onnx_set(x, n, 0, onnx_end(x, id), NULL);
}

bool onnx_split(Onnx *x, OnnxNode *n) {
    const Shape *in = &onnx_in(x, n, 0)->shape;
    uint32_t axis, length[4096], at = 0;
    TensorId from = onnx_tensor_in(x, n, 0);
    if (!onnx_axis(x, n, onnx_int(x, n, "axis", 0), in->rank, &axis) ||
        !onnx_parts(x, n, in->dim[axis], length))
        return false;
    for (uint32_t k = 0; k < n->n_out; at += length[k++])
        if (!onnx_set(x, n, k, onnx_slice(x, n, from, axis, at, at + length[k]),
                      NULL))
            return false;
    return true;
}

/* ---- slices and gathering ---- */

static double *indices(Onnx *x, uint32_t n, int64_t start, int64_t step,
                       uint32_t size) {
    double *index = ARENA_ARRAY(x->arena, double, n);
    for (uint32_t i = 0; i < n; i++)
        index[i] = (double)((start + i * step) % size);
    return index;
}

bool onnx_cut(Onnx *x, OnnxNode *n) {
    const Shape *in = &onnx_in(x, n, 0)->shape;
    OnnxRange range[SHAPE_MAX_RANK];
    uint32_t count;
    if (!onnx_ranges(x, n, in, &count, range))
        return false;
    TensorId out = onnx_tensor_in(x, n, 0);
    for (uint32_t i = 0; i < count; i++) {
        const OnnxRange *r = &range[i];
        uint32_t size = in->dim[r->axis];
        if (!r->count)
            return onnx_error(x, n, "its output is empty");
        if (r->step == 1 && r->count < size)
            out = onnx_slice(x, n, out, r->axis, (uint32_t)r->start,
                             (uint32_t)r->start + r->count);
        else if (r->step != 1)
            out = onnx_gather(x, n, out, r->axis, r->count, 1,
                              indices(x, r->count, r->start, r->step, size),
                              NULL);
    }
    return onnx_set(x, n, 0, out, NULL);
}

bool onnx_take(Onnx *x, OnnxNode *n) {
    const Shape *in = &onnx_in(x, n, 0)->shape;
    const OnnxValue *by = onnx_in(x, n, 1);
    uint32_t axis, count;
    int64_t *index;
    if (by->state != ONNX_CONST)
        return onnx_take_by(x, n);
    if (!onnx_list_in(x, n, 1, &count, &index) ||
        !onnx_axis(x, n, onnx_int(x, n, "axis", 0), in->rank, &axis))
        return false;
    Shape shape = {0};
    if (!count || in->rank - 1 + by->shape.rank > SHAPE_MAX_RANK)
        return onnx_error(x, n, "its output is empty or of too many axes");
    for (uint32_t i = 0; i < in->rank; i++) {
        for (uint32_t k = 0; i == axis && k < by->shape.rank; k++)
            shape.dim[shape.rank++] = by->shape.dim[k];
        if (i != axis)
            shape.dim[shape.rank++] = in->dim[i];
    }
    double *at = ARENA_ARRAY(x->arena, double, count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t inside;
        if (!onnx_axis(x, n, index[i], in->dim[axis], &inside))
            return false;
        at[i] = inside;
    }
    TensorId from = onnx_tensor_in(x, n, 0);
    TensorId out =
        count == 1
            ? onnx_slice(x, n, from, axis, (uint32_t)at[0], (uint32_t)at[0] + 1)
            : onnx_gather(x, n, from, axis, count, 1, at, NULL);
    return onnx_set(x, n, 0, onnx_reshape(x, n, out, shape), &shape);
}

/* ---- repetition ---- */

bool onnx_tile(Onnx *x, OnnxNode *n) {
    const Shape *in = &onnx_in(x, n, 0)->shape;
    uint32_t count;
    int64_t *times;
    if (!onnx_list_in(x, n, 1, &count, &times))
        return false;
    if (count != in->rank)
        return onnx_error(x, n, "%u repeats for %u axes", count, in->rank);
    TensorId out = onnx_tensor_in(x, n, 0);
    for (uint32_t i = 0; i < count; i++) {
        if (times[i] < 1 || times[i] > (1 << 24) / in->dim[i])
            return onnx_error(x, n, "%lld repeats are none or too many",
                              (long long)times[i]);
        uint32_t size = in->dim[i] * (uint32_t)times[i];
        if (times[i] > 1)
            out = onnx_gather(x, n, out, i, size, 1,
                              indices(x, size, 0, 1, in->dim[i]), NULL);
    }
    return onnx_set(x, n, 0, out, NULL);
}

bool onnx_expand(Onnx *x, OnnxNode *n) {
    Shape in = onnx_in(x, n, 0)->shape, to = {0}, both;
    uint32_t count;
    int64_t *dim;
    if (!onnx_list_in(x, n, 1, &count, &dim))
        return false;
    bool good = count <= SHAPE_MAX_RANK;
    to.rank = good ? count : 0;
    for (uint32_t i = 0; i < to.rank; i++) {
        good &= dim[i] > 0 && dim[i] <= 1 << 24;
        to.dim[i] = (uint32_t)dim[i];
    }
    if (!good || !onnx_broadcast(&in, &to, &both))
        return onnx_error(x, n, "%s does not expand as it asks",
                          shape_text(x->arena, &in));
    Shape wide = onnx_rank(&in, both.rank);
    TensorId out = onnx_reshape(x, n, onnx_tensor_in(x, n, 0), wide);
    for (uint32_t i = 0; i < both.rank; i++)
        if (wide.dim[i] != both.dim[i])
            out = onnx_gather(x, n, out, i, both.dim[i], 1,
                              indices(x, both.dim[i], 0, 0, 1), NULL);
    return onnx_set(x, n, 0, out, &both);
}

/* ---- blocks ---- */

static bool block_size(Onnx *x, OnnxNode *n, uint32_t *out) {
    int64_t size = onnx_int(x, n, "blocksize", 0);
    *out = (uint32_t)size;
    return (size >= 1 && size <= 1 << 12 &&
            onnx_in(x, n, 0)->shape.rank == 4) ||
           onnx_error(x, n, "block size %lld of %s", (long long)size,
                      shape_text(x->arena, &onnx_in(x, n, 0)->shape));
}

bool onnx_depth_to_space(Onnx *x, OnnxNode *n) {
    static const uint32_t columns[] = {0, 1, 4, 2, 5, 3};
    static const uint32_t depth[] = {0, 3, 4, 1, 5, 2};
    const Shape *in = &onnx_in(x, n, 0)->shape;
    uint32_t b;
    if (!block_size(x, n, &b))
        return false;
    if (in->dim[1] % (b * b))
        return onnx_error(x, n, "%u channels are no blocks of %u x %u",
                          in->dim[1], b, b);
    bool crd = !strcmp(onnx_word(x, n, "mode", "DCR"), "CRD");
    uint32_t c = in->dim[1] / (b * b), h = in->dim[2], w = in->dim[3];
    Shape split = crd ? (Shape){6, {in->dim[0], c, b, b, h, w}}
                      : (Shape){6, {in->dim[0], b, b, c, h, w}};
    TensorId out = onnx_reshape(x, n, onnx_tensor_in(x, n, 0), split);
    out = onnx_transpose(x, n, out, crd ? columns : depth);
    Shape to = shape_nchw(in->dim[0], c, h * b, w * b);
    return onnx_set(x, n, 0, onnx_reshape(x, n, out, to), NULL);
}

bool onnx_space_to_depth(Onnx *x, OnnxNode *n) {
    static const uint32_t perm[] = {0, 3, 5, 1, 2, 4};
    const Shape *in = &onnx_in(x, n, 0)->shape;
    uint32_t b;
    if (!block_size(x, n, &b))
        return false;
    if (in->dim[2] % b || in->dim[3] % b)
        return onnx_error(x, n, "%s is no blocks of %u x %u",
                          shape_text(x->arena, in), b, b);
    uint32_t c = in->dim[1], h = in->dim[2] / b, w = in->dim[3] / b;
    Shape split = {6, {in->dim[0], c, h, b, w, b}};
    TensorId out = onnx_reshape(x, n, onnx_tensor_in(x, n, 0), split);
    out = onnx_transpose(x, n, out, perm);
    return onnx_set(
        x, n, 0,
        onnx_reshape(x, n, out, shape_nchw(in->dim[0], c * b * b, h, w)), NULL);
}
