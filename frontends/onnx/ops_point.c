/* ops_point.c - ONNX operators that work element by element; see onnx.h.
 *
 * A constant that is one number, or one a channel, becomes a SCALE, which
 * engines run and which folds into convolutions; any other is a tensor.
 */
#include "frontends/onnx/onnx.h"

#include <math.h>
#include <string.h>

static bool act(Onnx *x, OnnxNode *n, Act what) {
    return onnx_set(x, n, 0, onnx_act(x, n, onnx_tensor_in(x, n, 0), what),
                    &onnx_in(x, n, 0)->shape);
}

bool onnx_unary(Onnx *x, OnnxNode *n) {
    return act(x, n, (Act){.kind = (ActKind)n->op->kind});
}

bool onnx_leaky(Onnx *x, OnnxNode *n) {
    return act(x, n, (Act){ACT_LEAKY, onnx_float(x, n, "alpha", 0.01), 0, 0});
}

bool onnx_elu(Onnx *x, OnnxNode *n) {
    return act(x, n,
               (Act){(ActKind)n->op->kind, onnx_float(x, n, "alpha", 1), 0, 0});
}

bool onnx_celu(Onnx *x, OnnxNode *n) {
    double alpha = onnx_float(x, n, "alpha", 1);
    if (alpha == 0)
        return onnx_error(x, n, "alpha is 0");
    return act(x, n, (Act){ACT_CELU, alpha, 0, 0});
}

bool onnx_selu(Onnx *x, OnnxNode *n) {
    return act(x, n,
               (Act){ACT_SELU, onnx_float(x, n, "alpha", 1.6732632423543772), 0,
                     onnx_float(x, n, "gamma", 1.0507009873554805)});
}

bool onnx_shrink(Onnx *x, OnnxNode *n) {
    return act(x, n,
               (Act){ACT_SHRINK, onnx_float(x, n, "lambd", 0.5),
                     onnx_float(x, n, "bias", 0), 0});
}

bool onnx_hard_sigmoid(Onnx *x, OnnxNode *n) {
    return act(x, n,
               (Act){ACT_HARD_SIGMOID, onnx_float(x, n, "alpha", 0.2),
                     onnx_float(x, n, "beta", 0.5), 0});
}

bool onnx_gelu(Onnx *x, OnnxNode *n) {
    bool tanh = !strcmp(onnx_word(x, n, "approximate", "none"), "tanh");
    return act(x, n, (Act){.kind = tanh ? ACT_GELU_TANH : ACT_GELU});
}

/* A bound of Clip: attribute, or constant input; infinite where absent. */
static bool bound(Onnx *x, OnnxNode *n, uint32_t i, const char *name,
                  double *out) {
    *out = onnx_float(x, n, name, *out);
    if (!onnx_in(x, n, i))
        return true;
    const OnnxValue *value = onnx_const_in(x, n, i);
    if (!value)
        return false;
    if (shape_count(&value->shape) != 1)
        return onnx_error(x, n, "its bound must be one number");
    const_read_f64(&value->constant, out);
    return true;
}

bool onnx_clip(Onnx *x, OnnxNode *n) {
    double lo = -3.4028234663852886e38, hi = -lo;
    if (!bound(x, n, 1, "min", &lo) || !bound(x, n, 2, "max", &hi))
        return false;
    bool relu6 = lo == 0 && hi == 6, relu = lo == 0 && hi > 3e38;
    if (lo > hi)
        lo = hi;
    return act(x, n,
               relu6  ? (Act){.kind = ACT_RELU6}
               : relu ? (Act){.kind = ACT_RELU}
                      : (Act){ACT_CLIP, 0, lo, hi});
}

/* ---- copies ---- */

bool onnx_identity(Onnx *x, OnnxNode *n) {
    return onnx_set(x, n, 0, onnx_tensor_in(x, n, 0), &onnx_in(x, n, 0)->shape);
}

static bool drops_nothing(Onnx *x, OnnxNode *n) {
    const OnnxValue *ratio = onnx_in(x, n, 1);
    double value = 0.5;
    if (ratio && ratio->state == ONNX_CONST && shape_count(&ratio->shape) == 1)
        const_read_f64(&ratio->constant, &value);
    return value == 0;
}

bool onnx_dropout(Onnx *x, OnnxNode *n) {
    const OnnxValue *training = onnx_in(x, n, 2);
    double on = 0;
    if (training && !onnx_const_in(x, n, 2))
        return false;
    if (training)
        const_read_f64(&training->constant, &on);
    if (on != 0 && !drops_nothing(x, n))
        return onnx_error(x, n, "it is in training mode");
    if (onnx_wants(n, 1))
        onnx_set_const(x, n, 1, ONNX_BOOL,
                       onnx_fill(onnx_in(x, n, 0)->shape, 1));
    return onnx_identity(x, n);
}

bool onnx_cast(Onnx *x, OnnxNode *n) {
    const OnnxValue *like = onnx_in(x, n, 1);
    int64_t to = like ? (int64_t)like->type : onnx_int(x, n, "to", 0);
    OnnxType from = onnx_in(x, n, 0)->type;
    if (!onnx_is_number(to))
        return onnx_error(x, n, "elements of %s are not supported",
                          onnx_type_name(x->arena, to));
    if (to == (int64_t)from && onnx_in(x, n, 0)->codes)
        return onnx_same_codes(x, n);
    onnx_out(x, n, 0)->type = (OnnxType)to;
    if (to == ONNX_BOOL && from != ONNX_BOOL) {
        TensorId zero =
            onnx_act(x, n, onnx_tensor_in(x, n, 0), (Act){.kind = ACT_NOT});
        return onnx_set(x, n, 0, onnx_act(x, n, zero, (Act){.kind = ACT_NOT}),
                        &onnx_in(x, n, 0)->shape);
    }
    if (onnx_is_whole((OnnxType)to) && !onnx_is_whole(from))
        return act(x, n, (Act){.kind = ACT_TRUNC});
    if (to == ONNX_FLOAT16 && from != ONNX_FLOAT16)
        return act(x, n, (Act){.kind = ACT_TO_F16});
    if (to == ONNX_BFLOAT16 && from != ONNX_BFLOAT16)
        return act(x, n, (Act){.kind = ACT_TO_BF16});
    return onnx_identity(x, n);
}

/* ---- by a constant ---- */

/* Whether the constant, as an operand beside `in`, is one number or one a
 * channel, and the result is of `in`'s shape. */
static bool is_by_channel(const Shape *in, const Shape *constant) {
    Shape both, wide = onnx_rank(constant, in->rank);
    if (in->rank < 2 || constant->rank > in->rank ||
        !onnx_broadcast(in, constant, &both) || !shape_equal(&both, in))
        return false;
    for (uint32_t i = 0; i < wide.rank; i++)
        if (i != 1 && wide.dim[i] != 1)
            return false;
    return true;
}

/* One value a channel, whatever the constant has. */
static double *by_channel(Onnx *x, const Shape *in, const Const *constant) {
    uint32_t n = in->dim[1];
    uint64_t count = shape_count(&constant->shape);
    double *value = ARENA_ARRAY(x->arena, double, n > count ? n : count);
    const_read_f64(constant, value);
    for (uint32_t i = 1; count == 1 && i < n; i++)
        value[i] = value[0];
    return value;
}

/* in op c, or c op in where the constant comes first. */
static bool scale_factors(EltKind kind, bool first, uint32_t n, double *a,
                          double *b) {
    for (uint32_t i = 0; i < n; i++) {
        double c = b[i];
        a[i] = kind == ELT_MUL            ? c
               : kind == ELT_DIV          ? 1 / c
               : kind == ELT_SUB && first ? -1
                                          : 1;
        b[i] = kind == ELT_ADD            ? c
               : kind == ELT_SUB && first ? c
               : kind == ELT_SUB          ? -c
                                          : 0;
        if (!isfinite(a[i]) || !isfinite(b[i]))
            return false;
    }
    return true;
}

/* NO_TENSOR and no error where it is none. */
static TensorId as_scale(Onnx *x, OnnxNode *n, EltKind kind) {
    const OnnxValue *left = onnx_in(x, n, 0), *right = onnx_in(x, n, 1);
    bool first = left->state == ONNX_CONST;
    const OnnxValue *constant = first ? left : right;
    const OnnxValue *in = first ? right : left;
    if (constant->state != ONNX_CONST || in->state != ONNX_TENSOR ||
        (first && kind == ELT_DIV) || kind == ELT_MAX || kind > ELT_DIV ||
        kind == ELT_MIN || !is_by_channel(&in->shape, &constant->shape))
        return NO_TENSOR;
    uint32_t channels = in->shape.dim[1];
    Shape shape = {1, {channels}};
    double *b = by_channel(x, &in->shape, &constant->constant);
    double *a = ARENA_ARRAY(x->arena, double, channels);
    if (!scale_factors(kind, first, channels, a, b))
        return NO_TENSOR;
    Const scale = onnx_values(shape, a), bias = onnx_values(shape, b);
    bool shifts = kind == ELT_ADD || kind == ELT_SUB;
    return onnx_scale(x, n, onnx_tensor_in(x, n, first), &scale,
                      shifts ? &bias : NULL);
}

/* ---- two operands ---- */

/* Operator set 6: the second lies at an axis of the first. */
static TensorId at_axis(Onnx *x, OnnxNode *n, TensorId b) {
    uint32_t axis, rank = onnx_in(x, n, 0)->shape.rank;
    Shape own = onnx_in(x, n, 1)->shape;
    if (!onnx_attr(n, "axis") || own.rank > rank)
        return b;
    if (!onnx_axis(x, n, onnx_int(x, n, "axis", 0), rank, &axis) ||
        axis + own.rank > rank)
        return NO_TENSOR;
    Shape wide = {.rank = rank};
    for (uint32_t i = 0; i < rank; i++)
        wide.dim[i] = i >= axis && i - axis < own.rank ? own.dim[i - axis] : 1;
    return onnx_reshape(x, n, b, wide);
}

static bool is_narrow(OnnxType type) {
    return onnx_is_whole(type) && type != ONNX_INT32 && type != ONNX_INT64 &&
           type != ONNX_UINT32 && type != ONNX_UINT64 && type != ONNX_BOOL;
}

static bool set_binary(Onnx *x, OnnxNode *n, EltKind kind, TensorId out) {
    OnnxType type = onnx_in(x, n, 0)->type;
    Shape shape;
    onnx_broadcast(&onnx_in(x, n, 0)->shape, &onnx_in(x, n, 1)->shape, &shape);
    if (kind == ELT_DIV && onnx_is_whole(type))
        out = onnx_act(x, n, out, (Act){.kind = ACT_TRUNC});
    if (kind >= ELT_EQUAL)
        onnx_out(x, n, 0)->type = ONNX_BOOL;
    return onnx_set(x, n, 0, out, shape.rank ? NULL : &shape);
}

/* Is a constant operand quantised? It is a tensor then, as the other one. */
static bool has_codes(const Onnx *x, const OnnxNode *n) {
    return onnx_in(x, n, 0)->quant.type != QUANT_NONE ||
           onnx_in(x, n, 1)->quant.type != QUANT_NONE;
}

bool onnx_arithmetic(Onnx *x, OnnxNode *n) {
    EltKind kind = (EltKind)n->op->kind;
    if (kind == ELT_MUL && is_narrow(onnx_in(x, n, 0)->type))
        return onnx_error(x, n, "products of %s wrap round",
                          onnx_type_name(x->arena, onnx_in(x, n, 0)->type));
    TensorId out = NO_TENSOR;
    if (!onnx_attr(n, "axis") && !has_codes(x, n))
        out = as_scale(x, n, kind);
    if (out.i == NONE) {
        TensorId a = onnx_tensor_in(x, n, 0), b = onnx_tensor_in(x, n, 1);
        out = onnx_binary(x, n, kind, a, at_axis(x, n, b));
    }
    return set_binary(x, n, kind, out);
}

/* The sign of the divisor, or with `fmod` that of the dividend. */
static EltKind mod_kind(Onnx *x, const OnnxNode *n) {
    return onnx_int(x, n, "fmod", 0) ? ELT_FMOD : ELT_MOD;
}

bool onnx_mod(Onnx *x, OnnxNode *n) {
    TensorId a = onnx_tensor_in(x, n, 0), b = onnx_tensor_in(x, n, 1);
    return onnx_set(x, n, 0, onnx_binary(x, n, mod_kind(x, n), a, b), NULL);
}

bool onnx_fold_mod(Onnx *x, OnnxNode *n) {
    OnnxOp op = *n->op;
    OnnxNode of_kind = *n;
    op.kind = (int)mod_kind(x, n);
    of_kind.op = &op;
    return onnx_fold_binary(x, &of_kind);
}

bool onnx_pow(Onnx *x, OnnxNode *n) {
    const OnnxValue *by = onnx_in(x, n, 1);
    TensorId in = onnx_tensor_in(x, n, 0);
    double power = 0;
    if (by->state == ONNX_CONST && shape_count(&by->shape) == 1)
        const_read_f64(&by->constant, &power);
    TensorId out = NO_TENSOR;
    if (power == 0.5)
        out = onnx_act(x, n, in, (Act){.kind = ACT_SQRT});
    else if (power == 2 || power == 3)
        out = onnx_binary(x, n, ELT_MUL, in, in);
    else if (power == -1 || power == -0.5)
        out = onnx_act(
            x, n,
            power == -1 ? in : onnx_act(x, n, in, (Act){.kind = ACT_SQRT}),
            (Act){.kind = ACT_RECIPROCAL});
    else
        out = onnx_binary(x, n, ELT_POW, in,
                          at_axis(x, n, onnx_tensor_in(x, n, 1)));
    if (power == 3)
        out = onnx_binary(x, n, ELT_MUL, out, in);
    return onnx_set(x, n, 0, out, NULL);
}

/* A bound that is one number cuts; NO_TENSOR and no error where it is none. */
static TensorId bounded(Onnx *x, OnnxNode *n) {
    for (uint32_t k = 0; k < 2 && n->n_in == 2; k++) {
        const OnnxValue *by = onnx_in(x, n, k), *of = onnx_in(x, n, 1 - k);
        double v;
        if (by->state != ONNX_CONST || of->state == ONNX_CONST ||
            has_codes(x, n) || shape_count(&by->shape) != 1 ||
            by->shape.rank > of->shape.rank)
            continue;
        const_read_f64(&by->constant, &v);
        Act act = {.kind = ACT_CLIP, .lo = -INFINITY, .hi = INFINITY};
        *(n->op->kind == ELT_MAX ? &act.lo : &act.hi) = v;
        return onnx_act(x, n, onnx_tensor_in(x, n, 1 - k), act);
    }
    return NO_TENSOR;
}

bool onnx_many(Onnx *x, OnnxNode *n) {
    bool bounds = n->op->kind == ELT_MAX || n->op->kind == ELT_MIN;
    TensorId out = bounds ? bounded(x, n) : NO_TENSOR;
    if (out.i != NONE)
        return onnx_set(x, n, 0, out, NULL);
    out = onnx_tensor_in(x, n, 0);
    for (uint32_t k = 1; k < n->n_in; k++)
        out = onnx_binary(x, n, (EltKind)n->op->kind, out,
                          onnx_tensor_in(x, n, k));
    return onnx_set(x, n, 0, out, NULL);
}

bool onnx_mean(Onnx *x, OnnxNode *n) {
    TensorId out = onnx_tensor_in(x, n, 0);
    for (uint32_t k = 1; k < n->n_in; k++)
        out = onnx_binary(x, n, ELT_ADD, out, onnx_tensor_in(x, n, k));
    if (out.i == NONE)
        return false;
    Shape one = onnx_rank(&(Shape){0}, onnx_shape(x, out)->rank);
    TensorId count = onnx_constant(x, n, onnx_fill(one, n->n_in));
    return onnx_set(x, n, 0, onnx_binary(x, n, ELT_DIV, out, count), NULL);
}

/* A slope a channel goes into the activation. */
bool onnx_prelu(Onnx *x, OnnxNode *n) {
    const OnnxValue *in = onnx_in(x, n, 0), *slope = onnx_in(x, n, 1);
    TensorId from = onnx_tensor_in(x, n, 0);
    bool old = x->opset && x->opset < 7 && slope->shape.rank == 1 &&
               in->shape.rank > 1;
    Shape at = slope->shape;
    if (old) { /* a list of channels, whatever the rank */
        at = onnx_rank(&(Shape){0}, in->shape.rank);
        at.dim[1] = slope->shape.dim[0];
    }
    if (slope->state == ONNX_CONST && is_by_channel(&in->shape, &at)) {
        NodeId id = onnx_add(x, n, OP_ACT, "prelu", 1, &from);
        double *value = by_channel(x, &in->shape, &slope->constant);
        graph_node(x->graph, id)->act.kind = ACT_PRELU;
        onnx_give(x, id, CONST_SLOPE,
                  onnx_values((Shape){1, {in->shape.dim[1]}}, value));
        return onnx_set(x, n, 0, onnx_end(x, id), NULL);
    }
    TensorId by = onnx_reshape(x, n, onnx_tensor_in(x, n, 1), at);
    return onnx_set(x, n, 0, onnx_binary(x, n, ELT_PRELU, from, by), NULL);
}
