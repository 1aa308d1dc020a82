/* ops_codes.c - ONNX operators that read codes with their scales beside them:
 * QLinearConv and the like; see onnx.h.
 *
 * Each is an operator of its own between DequantizeLinear and QuantizeLinear,
 * and is built as that. Its row says where in its inputs lie the tensors with
 * their scale and zero, and where those of the result.
 */
#include "frontends/onnx/onnx.h"

#include <string.h>

/* Three inputs each: tensor, scale, zero. */
typedef struct CodesRow {
    const char *type, *inner; /* the operator that it wraps */
    uint32_t n, in[3];        /* how many such inputs; where each begins */
    uint32_t out;             /* scale and zero of the result */
    uint32_t bias;            /* sums of products as they are; 0: none */
} CodesRow;

static const CodesRow rows[] = {
    {"QLinearConv", "Conv", 2, {0, 3}, 6, 8},
    {"QLinearMatMul", "MatMul", 2, {0, 3}, 6, 0},
    {"QGemm", "Gemm", 2, {0, 3}, 7, 6},
    {"QLinearAdd", "Add", 2, {0, 3}, 6, 0},
    {"QLinearMul", "Mul", 2, {0, 3}, 6, 0},
    {"QLinearAveragePool", "AveragePool", 1, {0}, 3, 0},
    {"QLinearGlobalAveragePool", "GlobalAveragePool", 1, {0}, 3, 0},
    {"QLinearSigmoid", "Sigmoid", 1, {0}, 3, 0},
    {"QLinearLeakyRelu", "LeakyRelu", 1, {0}, 3, 0},
    {"QLinearSoftmax", "Softmax", 1, {0}, 3, 0},
    {"QLinearReduceMean", "ReduceMean", 1, {0}, 3, 0},
};

static const CodesRow *row_of(const OnnxNode *n) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].type, n->type))
            return &rows[i];
    return NULL;
}

/* ---- values that the model does not name ---- */

static uint32_t new_value(Onnx *x, const OnnxNode *n, const char *part) {
    OnnxValue value = {.name = arena_printf(x->arena, "%s/%s", n->name, part),
                       .tensor = NO_TENSOR,
                       .plain = NO_TENSOR};
    vec_push(x->arena, &x->value, value);
    return x->value.n - 1;
}

/* Another operator in the place of this one. False after errors. */
static bool build_as(Onnx *x, const OnnxNode *n, const char *type,
                     const ProtoMessage *attributes, uint32_t n_in,
                     const uint32_t *in, uint32_t out) {
    OnnxNode inner = *n;
    uint32_t to[1] = {out};
    inner.message = attributes;
    inner.n_in = n_in;
    inner.in = ARENA_COPY(x->arena, uint32_t, in, n_in ? n_in : 1);
    inner.n_out = 1;
    inner.out = ARENA_COPY(x->arena, uint32_t, to, 1);
    return x->run(x, &inner, type);
}

static uint32_t at(const OnnxNode *n, uint32_t i) {
    return i < n->n_in ? n->in[i] : NONE;
}

/* Where scales of the second input lie: by output channel. */
static int64_t channel_axis(Onnx *x, const OnnxNode *n, uint32_t i) {
    bool matrix =
        !strcmp(n->type, "QLinearMatMul") || !strcmp(n->type, "QGemm");
    if (!i) /* of rows */
        return matrix ? -2 : 1;
    return matrix && !onnx_int(x, n, "transB", 0) ? -1 : 0;
}

/* The numbers of the input that begins at `i`; NONE after errors. */
static uint32_t numbers_of(Onnx *x, const OnnxNode *n, uint32_t i) {
    uint32_t in[] = {at(n, i), at(n, i + 1), at(n, i + 2)};
    uint32_t out = new_value(x, n, "numbers");
    if (in[0] == NONE || in[1] == NONE) {
        onnx_error(x, n, "input %u or its scale is left out", i);
        return NONE;
    }
    return onnx_scaled(x, n, in, channel_axis(x, n, i), out) ? out : NONE;
}

/* Images of channels last, and back. */
static uint32_t turned(Onnx *x, const OnnxNode *n, uint32_t value, bool back) {
    const Shape *in = &x->value.at[value].shape;
    uint32_t perm[SHAPE_MAX_RANK] = {0}, rank = in->rank;
    uint32_t out = new_value(x, n, back ? "last" : "first");
    for (uint32_t i = 1; i < rank; i++)
        perm[i] = back ? i + 1 : i - 1;
    if (rank > 1)
        perm[back ? rank - 1 : 1] = back ? 1 : rank - 1;
    OnnxNode inner = *n;
    uint32_t ends[2] = {value, out};
    inner.in = &ends[0];
    inner.out = &ends[1];
    inner.n_in = inner.n_out = 1;
    TensorId from = onnx_tensor(x, &x->value.at[value]);
    return onnx_set(x, &inner, 0, onnx_transpose(x, n, from, perm), NULL)
               ? out
               : NONE;
}

/* ---- operators ---- */

/* Codes of the result, from its numbers. */
static bool give_codes(Onnx *x, OnnxNode *n, uint32_t numbers, uint32_t scale,
                       uint32_t zero, OnnxType like) {
    uint32_t in[] = {numbers, at(n, scale), at(n, zero)};
    if (in[1] == NONE)
        return onnx_error(x, n, "the scale of its result is left out");
    return onnx_rounded(x, n, in, like, n->out[0]);
}

/* int32 in the unit of the products. */
static uint32_t bias_of(Onnx *x, const OnnxNode *n, const CodesRow *row) {
    uint32_t codes = at(n, row->bias), out = new_value(x, n, "bias");
    const OnnxValue *unit = onnx_in(x, n, row->in[0] + 1);
    const OnnxValue *by = onnx_in(x, n, row->in[1] + 1);
    if (unit->state != ONNX_CONST || by->state != ONNX_CONST ||
        x->value.at[codes].state != ONNX_CONST ||
        shape_count(&unit->shape) != 1) {
        onnx_error(x, n, "its bias and scales must be constants");
        return NONE;
    }
    const double *in = onnx_numbers(x, unit), *weight = onnx_numbers(x, by);
    uint32_t count = (uint32_t)shape_count(&by->shape);
    double *scale = ARENA_ARRAY(x->arena, double, count);
    for (uint32_t i = 0; in && weight && i < count; i++)
        scale[i] = in[0] * weight[i];
    const OnnxValue *bias = &x->value.at[codes];
    Const value = bias->constant;
    uint32_t n_bias = (uint32_t)shape_count(&bias->shape);
    if (count != 1 && count != n_bias) {
        onnx_error(x, n, "%u scales for a bias of %u", count, n_bias);
        return NONE;
    }
    double *factor = ARENA_ARRAY(x->arena, double, n_bias);
    for (uint32_t i = 0; i < n_bias; i++)
        factor[i] = scale[count > 1 ? i : 0];
    value.shape = (Shape){1, {n_bias}};
    value.mul0 = factor;
    x->value.at[out].state = ONNX_CONST;
    x->value.at[out].type = ONNX_FLOAT;
    x->value.at[out].shape = value.shape;
    x->value.at[out].constant = value;
    return out;
}

bool onnx_qlinear(Onnx *x, OnnxNode *n) {
    const CodesRow *row = row_of(n);
    uint32_t in[4], n_in = row->n, out = new_value(x, n, "real");
    OnnxType like = onnx_in(x, n, 0)->type;
    bool last = onnx_int(x, n, "channels_last", 0) != 0;
    for (uint32_t k = 0; k < row->n; k++) {
        in[k] = numbers_of(x, n, row->in[k]);
        if (in[k] == NONE)
            return false;
    }
    if (last && (in[0] = turned(x, n, in[0], false)) == NONE)
        return false;
    if (row->bias && at(n, row->bias) != NONE) {
        in[n_in++] = bias_of(x, n, row);
        if (in[n_in - 1] == NONE)
            return false;
    }
    if (!build_as(x, n, row->inner, n->message, n_in, in, out) ||
        (last && (out = turned(x, n, out, true)) == NONE))
        return false;
    if (at(n, row->out) == NONE && !strcmp(n->type, "QGemm"))
        return onnx_set(x, n, 0, onnx_tensor(x, &x->value.at[out]), NULL);
    return give_codes(x, n, out, row->out, row->out + 1, like);
}

/* Scale and zero of the result come first, then each member with its own. */
bool onnx_qlinear_concat(Onnx *x, OnnxNode *n) {
    uint32_t count = (n->n_in - 2) / 3, out = new_value(x, n, "real");
    uint32_t *in = ARENA_ARRAY(x->arena, uint32_t, count);
    if (n->n_in < 5 || (n->n_in - 2) % 3)
        return onnx_error(x, n, "%u inputs are no tensors with scales",
                          n->n_in);
    OnnxType like = onnx_in(x, n, 2) ? onnx_in(x, n, 2)->type : ONNX_UINT8;
    for (uint32_t k = 0; k < count; k++) {
        in[k] = numbers_of(x, n, 2 + 3 * k);
        if (in[k] == NONE)
            return false;
    }
    return build_as(x, n, "Concat", n->message, count, in, out) &&
           give_codes(x, n, out, 0, 1, like);
}

/* condition, X with its own, Y with its own, those of the result. */
bool onnx_qlinear_where(Onnx *x, OnnxNode *n) {
    uint32_t in[] = {n->in[0], numbers_of(x, n, 1), numbers_of(x, n, 4)};
    uint32_t out = new_value(x, n, "real");
    OnnxType like = onnx_in(x, n, 1)->type;
    return in[1] != NONE && in[2] != NONE &&
           build_as(x, n, "Where", n->message, 3, in, out) &&
           give_codes(x, n, out, 7, 8, like);
}

bool onnx_nhwc_pool(Onnx *x, OnnxNode *n) {
    uint32_t in = turned(x, n, n->in[0], false), out = new_value(x, n, "pool");
    if (in == NONE || !build_as(x, n, "MaxPool", n->message, 1, &in, out) ||
        (out = turned(x, n, out, true)) == NONE)
        return false;
    return onnx_set(x, n, 0, onnx_tensor(x, &x->value.at[out]), NULL);
}

/* ---- sums of whole numbers ---- */

/* An input less its zero; its scale is 1. */
static uint32_t less(Onnx *x, const OnnxNode *n, uint32_t i, uint32_t zero) {
    uint32_t in[] = {at(n, i), at(n, zero)};
    uint32_t out = new_value(x, n, "less");
    if (in[1] == NONE)
        return in[0];
    const OnnxValue *z = &x->value.at[in[1]];
    bool list = shape_count(&z->shape) > 1;
    if (list && z->state == ONNX_CONST && z->shape.rank == 1 && i == 1) {
        /* one an output channel: the first axis of a convolution's weights, the
         * last of a matrix */
        Shape wide = onnx_rank(&(Shape){0}, x->value.at[in[0]].shape.rank);
        bool conv = !strcmp(n->type, "ConvInteger");
        if (wide.rank)
            wide.dim[conv ? 0 : wide.rank - 1] = z->shape.dim[0];
        uint32_t view = new_value(x, n, "zeros");
        x->value.at[view].state = ONNX_CONST;
        x->value.at[view].type = ONNX_FLOAT;
        x->value.at[view].shape = wide;
        x->value.at[view].constant =
            onnx_const_reshaped(x, &x->value.at[in[1]].constant, &wide);
        in[1] = view;
    }
    return build_as(x, n, "Sub", NULL, 2, in, out) ? out : NONE;
}

bool onnx_integer(Onnx *x, OnnxNode *n) {
    const char *inner = strcmp(n->type, "ConvInteger") ? "MatMul" : "Conv";
    uint32_t in[] = {less(x, n, 0, 2), less(x, n, 1, 3)};
    if (in[0] == NONE || in[1] == NONE)
        return false;
    onnx_out(x, n, 0)->type = ONNX_INT32;
    return build_as(x, n, inner, n->message, 2, in, n->out[0]);
}

/* ---- scales that are found at run time ---- */

bool onnx_dynamic_quantize(Onnx *x, OnnxNode *n) {
    TensorId in = onnx_tensor_in(x, n, 0);
    if (in.i == NONE)
        return false;
    const double levels = 255, tiny = 0x1p-126;
    uint32_t axes = (1U << onnx_shape(x, in)->rank) - 1;
    Const zero = onnx_fill((Shape){1, {1}}, 0);
    Const top = onnx_fill((Shape){1, {1}}, levels);
    Const least = onnx_fill((Shape){1, {1}}, tiny);
    Shape one = {1, {1}};
    TensorId nought = onnx_constant(x, n, zero);
    TensorId high = onnx_reduce(x, n, in, REDUCE_MAX, axes);
    TensorId low = onnx_reduce(x, n, in, REDUCE_MIN, axes);
    high = onnx_binary(x, n, ELT_MAX, onnx_reshape(x, n, high, one), nought);
    low = onnx_binary(x, n, ELT_MIN, onnx_reshape(x, n, low, one), nought);
    TensorId scale = onnx_binary(x, n, ELT_SUB, high, low);
    scale = onnx_binary(x, n, ELT_DIV, scale, onnx_constant(x, n, top));
    scale = onnx_binary(x, n, ELT_MAX, scale, onnx_constant(x, n, least));
    Act range = {ACT_CLIP, 0, 0, levels};
    TensorId shift = onnx_binary(x, n, ELT_DIV, low, scale);
    shift = onnx_act(x, n, shift, (Act){.kind = ACT_NEG});
    shift =
        onnx_act(x, n, onnx_act(x, n, shift, range), (Act){.kind = ACT_ROUND});
    TensorId codes = onnx_binary(x, n, ELT_DIV, in, scale);
    codes = onnx_act(x, n, codes, (Act){.kind = ACT_ROUND});
    codes = onnx_act(x, n, onnx_binary(x, n, ELT_ADD, codes, shift), range);
    if (!onnx_set(x, n, 0, codes, &onnx_in(x, n, 0)->shape))
        return false;
    onnx_out(x, n, 0)->type = ONNX_UINT8;
    if (onnx_wants(n, 1))
        onnx_set(x, n, 1, scale, &(Shape){0});
    if (onnx_wants(n, 2)) {
        onnx_set(x, n, 2, shift, &(Shape){0});
        onnx_out(x, n, 2)->type = ONNX_UINT8;
    }
    return true;
}
