/* shapes.c - what operators that only move elements do to shapes: asked
 * by folders and builders alike; see onnx.h. */
#include "frontends/onnx/onnx.h"

#include <string.h>

static uint32_t volume(const Shape *shape) {
    return (uint32_t)shape_count(shape);
}

/* Dimension `i` of Reshape's target; -1 where it is to be found. */
static bool target_dim(Onnx *x, const OnnxNode *n, const Shape *from,
                       uint32_t i, int64_t dim, int64_t *out) {
    bool keeps_zero = onnx_int(x, n, "allowzero", 0) != 0;
    if (dim == 0 && !keeps_zero) {
        if (i >= from->rank)
            return onnx_error(x, n,
                              "dimension %u is to be kept, but there is "
                              "none",
                              i);
        dim = from->dim[i];
    }
    *out = dim;
    return dim >= -1 && dim <= INT32_MAX;
}

bool onnx_reshaped(Onnx *x, const OnnxNode *n, const Shape *from,
                   uint32_t count, const int64_t *dims, Shape *out) {
    uint64_t known = 1;
    uint32_t open = NONE;
    *out = (Shape){.rank = count};
    bool good = count <= SHAPE_MAX_RANK;
    for (uint32_t i = 0; good && i < count; i++) {
        int64_t dim = 0;
        good = target_dim(x, n, from, i, dims[i], &dim) &&
               (dim >= 0 || open == NONE);
        if (!good)
            break;
        if (dim < 0)
            open = i;
        else if (known <= SHAPE_MAX_COUNT)
            known *= (uint64_t)dim;
        out->dim[i] = dim < 0 ? 1 : (uint32_t)dim;
    }
    if (good && open != NONE && known && volume(from) % known == 0)
        out->dim[open] = (uint32_t)(volume(from) / known);
    if (good && shape_count(out) == shape_count(from))
        return true;
    return onnx_error(x, n, "%s cannot be reshaped as it asks",
                      shape_text(x->arena, from));
}

/* ---- ranges of Slice ---- */

static int64_t clamp(int64_t value, int64_t lo, int64_t hi) {
    return value < lo ? lo : value > hi ? hi : value;
}

static OnnxRange range_of(uint32_t axis, int64_t size, int64_t start,
                          int64_t end, int64_t step) {
    start += start < 0 ? size : 0;
    end += end < 0 && end >= -size ? size : 0;
    OnnxRange r = {.axis = axis, .step = step};
    if (step > 0) {
        r.start = clamp(start, 0, size);
        end = clamp(end, 0, size);
        r.count =
            end > r.start ? (uint32_t)((end - r.start - 1) / step + 1) : 0;
    } else {
        r.start = clamp(start, -1, size - 1);
        end = clamp(end, -1, size - 1);
        r.count =
            end < r.start ? (uint32_t)((r.start - end - 1) / -step + 1) : 0;
    }
    return r;
}

bool onnx_ranges(Onnx *x, const OnnxNode *n, const Shape *shape,
                 uint32_t *n_out, OnnxRange *out) {
    uint32_t count, ends, axes, steps;
    int64_t *start, *end, *axis, *step;
    if (!onnx_list(x, n, 1, "starts", &count, &start) ||
        !onnx_list(x, n, 2, "ends", &ends, &end) ||
        !onnx_list(x, n, 3, "axes", &axes, &axis) ||
        !onnx_list_in(x, n, 4, &steps, &step))
        return false;
    uint32_t seen = 0;
    if (ends != count || (axes && axes != count) || (steps && steps != count))
        return onnx_error(x, n, "its lists differ in length");
    for (uint32_t i = 0; i < count; i++) {
        uint32_t to;
        int64_t by = steps ? step[i] : 1;
        if (!onnx_axis(x, n, axes ? axis[i] : i, shape->rank, &to))
            return false;
        if (!by || by < -INT32_MAX || (seen >> to & 1))
            return onnx_error(x, n, "axis %u is sliced twice, or by no step",
                              to);
        seen |= 1u << to;
        out[i] = range_of(to, shape->dim[to], start[i], end[i], by);
    }
    *n_out = count;
    return true;
}

/* ---- axes of one ---- */

static bool squeeze(Onnx *x, const OnnxNode *n, const Shape *from,
                    uint32_t count, const int64_t *axes, Shape *out) {
    uint32_t gone;
    if (!onnx_axes(x, n, count, axes, from->rank, 0, &gone))
        return false;
    *out = (Shape){0};
    for (uint32_t i = 0; i < from->rank; i++) {
        bool goes = count ? gone >> i & 1 : from->dim[i] == 1;
        if (goes && from->dim[i] != 1)
            return onnx_error(x, n, "axis %u of %s is not 1", i,
                              shape_text(x->arena, from));
        if (!goes)
            out->dim[out->rank++] = from->dim[i];
    }
    return true;
}

static bool unsqueeze(Onnx *x, const OnnxNode *n, const Shape *from,
                      uint32_t count, const int64_t *axes, Shape *out) {
    uint32_t added, k = 0;
    if (count + from->rank > SHAPE_MAX_RANK)
        return onnx_error(x, n, "makes more than %d dimensions",
                          SHAPE_MAX_RANK);
    *out = (Shape){.rank = from->rank + count};
    if (!onnx_axes(x, n, count, axes, out->rank, 0, &added))
        return false;
    for (uint32_t i = 0; i < out->rank; i++)
        if (added >> i & 1)
            out->dim[i] = 1;
        else if (k < from->rank)
            out->dim[i] = from->dim[k++];
    return k == from->rank || onnx_error(x, n, "names an axis twice");
}

bool onnx_squeezed(Onnx *x, const OnnxNode *n, const Shape *from, Shape *out) {
    uint32_t count;
    int64_t *axes;
    if (!onnx_list(x, n, 1, "axes", &count, &axes))
        return false;
    return n->op->kind ? unsqueeze(x, n, from, count, axes, out)
                       : squeeze(x, n, from, count, axes, out);
}

/* ---- order ---- */

bool onnx_perm(Onnx *x, const OnnxNode *n, uint32_t rank, uint32_t *perm) {
    int64_t *given;
    uint32_t count = onnx_ints(x, n, "perm", &given);
    if (count && count != rank)
        return onnx_error(x, n, "%u axes of %u in its order", count, rank);
    for (uint32_t i = 0; i < rank; i++)
        if (!onnx_axis(x, n, count ? given[i] : (int64_t)(rank - 1 - i), rank,
                       &perm[i]))
            return false;
    return const_order_valid(rank, perm) ||
           onnx_error(x, n, "its order of axes is none");
}

/* ---- parts ---- */

bool onnx_parts(Onnx *x, const OnnxNode *n, uint32_t size, uint32_t *length) {
    uint32_t count;
    int64_t *part;
    if (!onnx_list(x, n, 1, "split", &count, &part))
        return false;
    uint32_t each = (size + n->n_out - 1) / n->n_out;
    int64_t sum = 0;
    for (uint32_t i = 0; i < n->n_out; i++) {
        int64_t left = size - sum;
        int64_t is = count == n->n_out ? part[i] : left < each ? left : each;
        if (is < 1 || is > left || (count && count != n->n_out))
            return onnx_error(x, n, "%u elements do not split as it asks",
                              size);
        length[i] = (uint32_t)is;
        sum += is;
    }
    return sum == size || onnx_error(x, n, "its parts do not make the whole");
}
