/* fold.c - nodes whose inputs are constants: shape arithmetic and the
 * like, computed at once in double; see onnx.h.
 *
 * Reshaping keeps the recipe of a constant, so weights are not touched. What
 * has no folder here becomes nodes of the graph like any other.
 */
#include "base/half.h"
#include "frontends/onnx/onnx.h"

#include <math.h>
#include <string.h>

bool onnx_fold_not(Onnx *x, OnnxNode *n) {
    (void)x;
    (void)n;
    return false;
}

bool onnx_never(Onnx *x, OnnxNode *n) {
    return onnx_error(x, n, "its inputs must be constants");
}

static bool set(Onnx *x, const OnnxNode *n, OnnxType type, Shape shape,
                const double *value) {
    return onnx_set_numbers(x, n, 0, type, shape, value);
}

/* The same constant in another shape. */
static bool set_shape(Onnx *x, const OnnxNode *n, Shape shape) {
    const OnnxValue *in = onnx_in(x, n, 0);
    return onnx_set_const(x, n, 0, in->type,
                          onnx_const_reshaped(x, &in->constant, &shape));
}

static double *array(Onnx *x, const Shape *shape) {
    return ARENA_ARRAY(x->arena, double, shape_count(shape) + 1);
}

/* ---- sources ---- */

static bool list_constant(Onnx *x, OnnxNode *n, const char *name, OnnxType type,
                          bool scalar) {
    const ProtoMessage *attr = onnx_attr(n, name);
    const char *field = scalar               ? (type == ONNX_FLOAT ? "f" : "i")
                        : type == ONNX_FLOAT ? "floats"
                                             : "ints";
    Shape shape = {scalar ? 0 : 1, {proto_count(attr, field)}};
    double *value = array(x, &shape);
    uint32_t i = 0;
    for (const ProtoField *f = NULL; (f = proto_next(attr, field, f)); i++) {
        int64_t number = 0;
        if (type == ONNX_FLOAT)
            proto_get_f64(x->diag, f, &value[scalar ? 0 : i]);
        else if (proto_get_i64(x->diag, f, &number))
            value[scalar ? 0 : i] = (double)number;
    }
    return set(x, n, type, shape, value);
}

bool onnx_fold_constant(Onnx *x, OnnxNode *n) {
    static const struct {
        const char *name;
        OnnxType type;
        bool scalar;
    } forms[] = {{"value_float", ONNX_FLOAT, true},
                 {"value_floats", ONNX_FLOAT, false},
                 {"value_int", ONNX_INT64, true},
                 {"value_ints", ONNX_INT64, false}};
    const ProtoField *tensor = proto_last(onnx_attr(n, "value"), "t");
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (onnx_attr(n, forms[i].name))
            return list_constant(x, n, forms[i].name, forms[i].type,
                                 forms[i].scalar);
    OnnxTensor read;
    if (!tensor)
        return onnx_error(x, n, "it has no numbers as value");
    if (!onnx_tensor_read(x->arena, x->diag, tensor,
                          file_dir(x->arena, x->path), &read))
        return false;
    return onnx_set_const(x, n, 0, read.type, read.value);
}

/* The shape that input `i` lists. */
static bool shape_in(Onnx *x, OnnxNode *n, uint32_t i, Shape *out) {
    uint32_t count;
    int64_t *dim;
    if (!onnx_list_in(x, n, i, &count, &dim))
        return false;
    *out = (Shape){.rank = count};
    bool good = count <= SHAPE_MAX_RANK;
    for (uint32_t k = 0; good && k < count; k++) {
        good = dim[k] >= 0 && dim[k] <= INT32_MAX;
        out->dim[k] = (uint32_t)dim[k];
    }
    return (good && shape_count(out) < SHAPE_MAX_COUNT) ||
           onnx_error(x, n, "no such shape is possible");
}

bool onnx_fold_of_shape(Onnx *x, OnnxNode *n) {
    Shape shape;
    OnnxTensor fill = {.type = ONNX_FLOAT};
    double value = 0;
    const ProtoField *tensor = proto_last(onnx_attr(n, "value"), "t");
    if (!shape_in(x, n, 0, &shape))
        return false;
    if (tensor) {
        if (!onnx_tensor_read(x->arena, x->diag, tensor, NULL, &fill))
            return false;
        if (shape_count(&fill.value.shape) != 1)
            return onnx_error(x, n, "its value must be one number");
        const_read_f64(&fill.value, &value);
    }
    return onnx_set_const(x, n, 0, fill.type, onnx_fill(shape, value));
}

bool onnx_of_shape(Onnx *x, OnnxNode *n) {
    return onnx_never(x, n);
}

bool onnx_fold_shape(Onnx *x, OnnxNode *n) {
    const Shape *in = &onnx_in(x, n, 0)->shape;
    int64_t rank = in->rank;
    if (n->op->kind) {
        double *count = array(x, &(Shape){0});
        *count = (double)shape_count(in);
        return set(x, n, ONNX_INT64, (Shape){0}, count);
    }
    int64_t start = onnx_int(x, n, "start", 0),
            end = onnx_int(x, n, "end", rank);
    start += start < 0 ? rank : 0;
    end += end < 0 ? rank : 0;
    start = start < 0 ? 0 : start > rank ? rank : start;
    end = end < start ? start : end > rank ? rank : end;
    Shape shape = {1, {(uint32_t)(end - start)}};
    double *value = array(x, &shape);
    for (int64_t i = start; i < end; i++)
        value[i - start] = in->dim[i];
    return set(x, n, ONNX_INT64, shape, value);
}

bool onnx_shape_of(Onnx *x, OnnxNode *n) {
    return onnx_never(x, n);
}

bool onnx_fold_range(Onnx *x, OnnxNode *n) {
    double limit[3];
    for (uint32_t i = 0; i < 3; i++) {
        const OnnxValue *in = onnx_in(x, n, i);
        if (shape_count(&in->shape) != 1)
            return onnx_error(x, n, "input %u must be one number", i);
        const_read_f64(&in->constant, &limit[i]);
    }
    double count = ceil((limit[1] - limit[0]) / limit[2]);
    if (!(count >= 0 && count < 1 << 24))
        return onnx_error(x, n, "its range is endless or too large");
    Shape shape = {1, {(uint32_t)count}};
    double *value = array(x, &shape);
    for (uint32_t i = 0; i < shape.dim[0]; i++)
        value[i] = limit[0] + i * limit[2];
    return set(x, n, onnx_in(x, n, 0)->type, shape, value);
}

/* ---- the same elements ---- */

bool onnx_fold_same(Onnx *x, OnnxNode *n) {
    if (n->n_out > 1 && onnx_wants(n, 1)) /* Dropout's mask */
        return false;
    return set_shape(x, n, onnx_in(x, n, 0)->shape);
}

bool onnx_fold_reshape(Onnx *x, OnnxNode *n) {
    uint32_t count;
    int64_t *dims;
    Shape to;
    return onnx_list(x, n, 1, "shape", &count, &dims) &&
           onnx_reshaped(x, n, &onnx_in(x, n, 0)->shape, count, dims, &to) &&
           set_shape(x, n, to);
}

bool onnx_fold_squeeze(Onnx *x, OnnxNode *n) {
    Shape to;
    return onnx_squeezed(x, n, &onnx_in(x, n, 0)->shape, &to) &&
           set_shape(x, n, to);
}

bool onnx_fold_transpose(Onnx *x, OnnxNode *n) {
    const OnnxValue *in = onnx_in(x, n, 0);
    uint32_t perm[SHAPE_MAX_RANK];
    if (!onnx_perm(x, n, in->shape.rank, perm))
        return false;
    return onnx_set_const(x, n, 0, in->type,
                          onnx_permuted(x, &in->constant, perm));
}

static double cast(OnnxType to, double value) {
    return to == ONNX_BOOL       ? value != 0
           : to == ONNX_FLOAT16  ? round_to_half(value)
           : to == ONNX_BFLOAT16 ? round_to_brain(value)
                                 : trunc(value);
}

bool onnx_fold_cast(Onnx *x, OnnxNode *n) {
    const OnnxValue *in = onnx_in(x, n, 0);
    const OnnxValue *like = onnx_in(x, n, 1);
    int64_t type = like ? (int64_t)like->type : onnx_int(x, n, "to", 0);
    if (!onnx_is_number(type))
        return onnx_error(x, n, "no numbers of %s",
                          onnx_type_name(x->arena, type));
    OnnxType to = (OnnxType)type;
    double *value = NULL;
    bool narrows =
        onnx_is_whole(to) || to == ONNX_FLOAT16 || to == ONNX_BFLOAT16;
    if (narrows && to != in->type)
        value = onnx_numbers(x, in);
    if (!value)
        return onnx_set_const(x, n, 0, to, in->constant);
    for (uint64_t i = 0, count = shape_count(&in->shape); i < count; i++)
        value[i] = cast(to, value[i]);
    return set(x, n, to, in->shape, value);
}

/* ---- picking elements ---- */

/* Elements around an axis: outer x size x inner. */
typedef struct Around {
    uint64_t outer, size, inner;
} Around;

static Around around(const Shape *shape, uint32_t axis) {
    Around a = {1, shape->dim[axis], 1};
    for (uint32_t i = 0; i < shape->rank; i++)
        *(i < axis ? &a.outer : &a.inner) *= i == axis ? 1 : shape->dim[i];
    return a;
}

static double *pick(Onnx *x, const double *from, const Around *a,
                    uint64_t count, const int64_t *index) {
    double *out = ARENA_ARRAY(x->arena, double, a->outer *count * a->inner + 1);
    double *to = out;
    for (uint64_t o = 0; o < a->outer; o++)
        for (uint64_t i = 0; i < count; i++, to += a->inner)
            if (a->inner)
                memcpy(to, from + (o * a->size + (uint64_t)index[i]) * a->inner,
                       a->inner * sizeof *to);
    return out;
}

bool onnx_fold_gather(Onnx *x, OnnxNode *n) {
    const OnnxValue *in = onnx_in(x, n, 0), *by = onnx_in(x, n, 1);
    uint32_t axis, count;
    int64_t *index;
    double *value = onnx_numbers(x, in);
    if (!value ||
        !onnx_axis(x, n, onnx_int(x, n, "axis", 0), in->shape.rank, &axis))
        return false;
    if (!onnx_list_in(x, n, 1, &count, &index))
        return false;
    Shape shape = {0};
    if (in->shape.rank - 1 + by->shape.rank > SHAPE_MAX_RANK)
        return onnx_error(x, n, "makes too many dimensions");
    for (uint32_t i = 0; i < in->shape.rank; i++) {
        for (uint32_t k = 0; i == axis && k < by->shape.rank; k++)
            shape.dim[shape.rank++] = by->shape.dim[k];
        if (i != axis)
            shape.dim[shape.rank++] = in->shape.dim[i];
    }
    for (uint32_t i = 0; i < count; i++)
        if (!onnx_axis(x, n, index[i], in->shape.dim[axis], &(uint32_t){0}))
            return false;
        else if (index[i] < 0)
            index[i] += in->shape.dim[axis];
    if (shape_count(&shape) > 1 << 24)
        return onnx_error(x, n, "gathers too much");
    Around a = around(&in->shape, axis);
    return set(x, n, in->type, shape, pick(x, value, &a, count, index));
}

bool onnx_fold_slice(Onnx *x, OnnxNode *n) {
    const OnnxValue *in = onnx_in(x, n, 0);
    Shape shape = in->shape;
    OnnxRange range[SHAPE_MAX_RANK];
    uint32_t n_ranges;
    double *value = onnx_numbers(x, in);
    if (!value || !onnx_ranges(x, n, &shape, &n_ranges, range))
        return false;
    for (uint32_t r = 0; r < n_ranges; r++) {
        int64_t *index = ARENA_ARRAY(x->arena, int64_t, range[r].count);
        for (uint32_t i = 0; i < range[r].count; i++)
            index[i] = range[r].start + i * range[r].step;
        Around a = around(&shape, range[r].axis);
        value = pick(x, value, &a, range[r].count, index);
        shape.dim[range[r].axis] = range[r].count;
    }
    return set(x, n, in->type, shape, value);
}

bool onnx_fold_split(Onnx *x, OnnxNode *n) {
    const OnnxValue *in = onnx_in(x, n, 0);
    uint32_t axis, length[4096];
    double *value = onnx_numbers(x, in);
    if (!value ||
        !onnx_axis(x, n, onnx_int(x, n, "axis", 0), in->shape.rank, &axis) ||
        !onnx_parts(x, n, in->shape.dim[axis], length))
        return false;
    int64_t at = 0;
    for (uint32_t k = 0; k < n->n_out; k++) {
        int64_t *index = ARENA_ARRAY(x->arena, int64_t, length[k]);
        for (uint32_t i = 0; i < length[k]; i++)
            index[i] = at++;
        Around a = around(&in->shape, axis);
        Shape shape = in->shape;
        shape.dim[axis] = length[k];
        const double *part = pick(x, value, &a, length[k], index);
        onnx_set_numbers(x, n, k, in->type, shape, part);
    }
    return true;
}

/* Where the slice that a row of `k` indices names begins; UINT64_MAX: outside.
 */
static uint64_t scatter_place(const Shape *shape, const double *index,
                              uint32_t k) {
    uint64_t place = 0;
    for (uint32_t i = 0; i < shape->rank; i++) {
        double size = shape->dim[i], at = i < k ? index[i] : 0;
        at += at < 0 ? size : 0;
        if (!(at >= 0 && at < size))
            return UINT64_MAX;
        place = place * shape->dim[i] + (uint64_t)at;
    }
    return place;
}

bool onnx_fold_scatter(Onnx *x, OnnxNode *n) {
    const OnnxValue *in = onnx_in(x, n, 0), *by = onnx_in(x, n, 1);
    const OnnxValue *with = onnx_in(x, n, 2);
    double *value = onnx_numbers(x, in);
    const double *index = onnx_numbers(x, by), *update = onnx_numbers(x, with);
    uint32_t rank = by->shape.rank, k = rank ? by->shape.dim[rank - 1] : 0;
    if (!value || !index || !update)
        return false;
    if (strcmp(onnx_word(x, n, "reduction", "none"), "none") != 0)
        return false;
    if (!k || k > in->shape.rank)
        return onnx_error(x, n, "its indices do not fit");
    uint64_t rows = shape_count(&by->shape) / k, each = 1;
    for (uint32_t i = k; i < in->shape.rank; i++)
        each *= in->shape.dim[i];
    if (shape_count(&with->shape) != rows * each)
        return onnx_error(x, n, "updates of %s do not fit",
                          shape_text(x->arena, &with->shape));
    for (uint64_t row = 0; row < rows; row++) {
        uint64_t at = scatter_place(&in->shape, index + row * k, k);
        if (at == UINT64_MAX)
            return onnx_error(x, n, "an index is outside its input");
        memcpy(value + at, update + row * each, each * sizeof *value);
    }
    return set(x, n, in->type, in->shape, value);
}

bool onnx_fold_expand(Onnx *x, OnnxNode *n) {
    const OnnxValue *in = onnx_in(x, n, 0);
    Shape to, both;
    if (!shape_in(x, n, 1, &to))
        return false;
    if (!onnx_broadcast(&in->shape, &to, &both))
        return onnx_error(x, n, "%s does not expand as it asks",
                          shape_text(x->arena, &in->shape));
    double *value = onnx_numbers(x, in);
    if (!value || shape_count(&both) > 1 << 24)
        return false;
    Shape wide = onnx_rank(&in->shape, both.rank);
    for (uint32_t i = 0; i < both.rank; i++) {
        if (wide.dim[i] == both.dim[i])
            continue;
        Around a = around(&wide, i);
        int64_t *same = ARENA_ARRAY(x->arena, int64_t, both.dim[i] + 1);
        value = pick(x, value, &a, both.dim[i], same);
        wide.dim[i] = both.dim[i];
    }
    return set(x, n, in->type, both, value);
}

bool onnx_fold_concat(Onnx *x, OnnxNode *n) {
    const OnnxValue *first = onnx_in(x, n, 0);
    Shape shape = first->shape;
    uint32_t axis;
    if (!onnx_axis(x, n, onnx_int(x, n, "axis", 1), shape.rank, &axis))
        return false;
    shape.dim[axis] = 0;
    for (uint32_t k = 0; k < n->n_in; k++) {
        Shape in = onnx_in(x, n, k)->shape;
        if (in.rank != shape.rank)
            return onnx_error(x, n, "its inputs have different ranks");
        shape.dim[axis] += in.dim[axis];
        in.dim[axis] = shape.dim[axis];
        if (!shape_equal(&in, &shape))
            return onnx_error(x, n, "its inputs have different shapes");
    }
    if (shape_count(&shape) > 1 << 24)
        return false;
    double *value = array(x, &shape);
    Around whole = around(&shape, axis);
    uint64_t at = 0;
    for (uint32_t k = 0; k < n->n_in; k++) {
        const double *from = onnx_numbers(x, onnx_in(x, n, k));
        Around a = around(&onnx_in(x, n, k)->shape, axis);
        uint64_t run = a.size * a.inner;
        for (uint64_t o = 0; from && run && o < a.outer; o++)
            memcpy(value + (o * whole.size + at) * whole.inner, from + o * run,
                   run * sizeof *from);
        at += a.size;
    }
    return set(x, n, first->type, shape, value);
}

/* ---- triangles ---- */

/* Whether Trilu keeps the element at this row and column. */
static bool triangle_keeps(bool upper, int64_t k, uint64_t row,
                           uint64_t column) {
    int64_t beyond = (int64_t)column - (int64_t)row;
    return upper ? beyond >= k : beyond <= k;
}

static bool triangle(Onnx *x, OnnxNode *n, bool *upper, int64_t *k) {
    uint32_t count;
    int64_t *list;
    *upper = onnx_int(x, n, "upper", 1) != 0;
    *k = 0;
    if (onnx_in(x, n, 0)->shape.rank < 2)
        return onnx_error(x, n, "its input is no matrix");
    if (!onnx_list_in(x, n, 1, &count, &list))
        return false;
    *k = count ? list[0] : 0;
    return true;
}

bool onnx_fold_trilu(Onnx *x, OnnxNode *n) {
    const OnnxValue *in = onnx_in(x, n, 0);
    bool upper;
    int64_t k;
    double *value = onnx_numbers(x, in);
    if (!value || !triangle(x, n, &upper, &k))
        return false;
    uint32_t rank = in->shape.rank;
    uint64_t h = in->shape.dim[rank - 2], w = in->shape.dim[rank - 1];
    for (uint64_t i = 0, count = shape_count(&in->shape); i < count; i++)
        if (!triangle_keeps(upper, k, i / w % h, i % w))
            value[i] = 0;
    return set(x, n, in->type, in->shape, value);
}

/* Times a triangle of ones. */
bool onnx_trilu(Onnx *x, OnnxNode *n) {
    const OnnxValue *in = onnx_in(x, n, 0);
    bool upper;
    int64_t k;
    if (!triangle(x, n, &upper, &k))
        return false;
    uint32_t rank = in->shape.rank;
    Shape plane = {2, {in->shape.dim[rank - 2], in->shape.dim[rank - 1]}};
    if (shape_count(&plane) > 1 << 24)
        return onnx_error(x, n, "its triangle is too large");
    double *one = array(x, &plane);
    for (uint32_t i = 0; i < shape_count(&plane); i++)
        one[i] = triangle_keeps(upper, k, i / plane.dim[1], i % plane.dim[1]);
    TensorId mask = onnx_constant(x, n, onnx_values(plane, one));
    TensorId from = onnx_tensor_in(x, n, 0);
    return onnx_set(x, n, 0, onnx_binary(x, n, ELT_MUL, from, mask), NULL);
}
