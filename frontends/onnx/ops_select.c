/* ops_select.c - Where: of two tensors one or the other, element by element.
 *
 * In: a condition and two tensors, of each what is known. Out: sums and
 * products that no infinity disturbs: 0 * inf is no number, and masks of
 * attention are -inf.
 */
#include "frontends/onnx/onnx.h"

#include <math.h>

/* x + this is this, in floats, for any x that networks compute. */
#define FAR 1e30

/* A mask that is known: x * keep + add. */
typedef struct Mask {
    Const keep, add;
    bool keeps; /* the sum alone does it */
} Mask;

/* Of input `known` what takes the other's place. False where it is no constant,
 * or has too many values. */
static bool mask_of(Onnx *x, const OnnxNode *n, uint32_t known, Mask *mask) {
    const OnnxValue *yes = onnx_in(x, n, 0), *other = onnx_in(x, n, known);
    Shape shape;
    if (yes->state != ONNX_CONST || other->state != ONNX_CONST ||
        !onnx_broadcast(&yes->shape, &other->shape, &shape))
        return false;
    const double *c = onnx_numbers(x, yes), *value = onnx_numbers(x, other);
    uint64_t count = shape_count(&shape);
    if (!c || !value || count > 1 << 24)
        return false;
    double *keep = ARENA_ARRAY(x->arena, double, count + 1);
    double *add = ARENA_ARRAY(x->arena, double, count + 1);
    mask->keeps = true;
    for (uint64_t i = 0; i < count; i++) {
        bool first = c[onnx_index_in(&yes->shape, &shape, i)] != 0;
        bool takes = first == (known == 1);
        keep[i] = !takes;
        add[i] = takes ? value[onnx_index_in(&other->shape, &shape, i)] : 0;
        mask->keeps &= !takes || fabs(add[i]) >= FAR;
    }
    mask->keep = onnx_values(shape, keep);
    mask->add = onnx_values(shape, add);
    return true;
}

static TensorId masked(Onnx *x, OnnxNode *n, uint32_t known, const Mask *mask) {
    TensorId out = onnx_tensor_in(x, n, 3 - known);
    if (!mask->keeps)
        out = onnx_binary(x, n, ELT_MUL, out, onnx_constant(x, n, mask->keep));
    return onnx_binary(x, n, ELT_ADD, out, onnx_constant(x, n, mask->add));
}

static bool all_infinite(Onnx *x, const OnnxValue *value, double *sign) {
    const double *v =
        value->state == ONNX_CONST ? onnx_numbers(x, value) : NULL;
    uint64_t count = v ? shape_count(&value->shape) : 0;
    for (uint64_t i = 0; i < count; i++)
        if (!isinf(v[i]) || (v[i] < 0) != (v[0] < 0))
            return false;
    *sign = count && v[0] > 0 ? -1 : 1;
    return count;
}

/* x + log(0) or x + log(1); with infinity above, x - that. */
static TensorId or_infinite(Onnx *x, OnnxNode *n, TensorId keep, TensorId of,
                            double sign) {
    TensorId log = onnx_act(x, n, keep, (Act){.kind = ACT_LOG});
    return onnx_binary(x, n, sign < 0 ? ELT_SUB : ELT_ADD, of, log);
}

/* c * a + (1 - c) * b for a truth value c. */
static TensorId selected(Onnx *x, OnnxNode *n) {
    double sign;
    TensorId yes = onnx_tensor_in(x, n, 0);
    if (all_infinite(x, onnx_in(x, n, 2), &sign))
        return or_infinite(x, n, yes, onnx_tensor_in(x, n, 1), sign);
    TensorId no = onnx_act(x, n, yes, (Act){.kind = ACT_NOT});
    if (all_infinite(x, onnx_in(x, n, 1), &sign))
        return or_infinite(x, n, no, onnx_tensor_in(x, n, 2), sign);
    TensorId a = onnx_binary(x, n, ELT_MUL, yes, onnx_tensor_in(x, n, 1));
    TensorId b = onnx_binary(x, n, ELT_MUL, no, onnx_tensor_in(x, n, 2));
    return onnx_binary(x, n, ELT_ADD, a, b);
}

bool onnx_where(Onnx *x, OnnxNode *n) {
    Mask mask;
    OnnxType type = onnx_in(x, n, 1)->type;
    TensorId out = NO_TENSOR;
    for (uint32_t known = 1; known < 3 && out.i == NONE; known++)
        if (mask_of(x, n, known, &mask))
            out = masked(x, n, known, &mask);
    if (out.i == NONE)
        out = selected(x, n);
    onnx_out(x, n, 0)->type = type;
    return onnx_set(x, n, 0, out, NULL);
}
