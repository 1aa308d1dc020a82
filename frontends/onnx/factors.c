/* factors.c - constants of codes with scales, in another order or shape; see
 * onnx.h.
 *
 * A Const has factors by its first and by its second axis. They stay with the
 * codes where an axis stays one of these two; else the values are numbers.
 */
#include "frontends/onnx/onnx.h"

static bool alike(const double *list, uint32_t n) {
    for (uint32_t i = 1; list && i < n; i++)
        if (list[i] < list[0] || list[i] > list[0])
            return false;
    return list != NULL;
}

Const onnx_weight(Onnx *x, const Const *value, uint32_t axis) {
    Const out = *value;
    const double **to = axis ? &out.mul1 : &out.mul0;
    const double **from = axis ? &out.mul0 : &out.mul1;
    if (*to || !alike(*from, shape_dim(&out.shape, !axis)))
        return out;
    uint32_t n = shape_dim(&out.shape, axis);
    double *by = ARENA_ARRAY(x->arena, double, n);
    for (uint32_t i = 0; i < n; i++)
        by[i] = (*from)[0];
    *to = by;
    *from = NULL;
    return out;
}

static Const as_numbers(Onnx *x, const Const *value) {
    double *number =
        ARENA_ARRAY(x->arena, double, shape_count(&value->shape) + 1);
    const_read_f64(value, number);
    return (Const){.shape = value->shape, .kind = CONST_F64, .data = number};
}

Const onnx_permuted(Onnx *x, const Const *value, const uint32_t *perm) {
    if (!value->mul0 && !value->mul1)
        return const_permuted(value, perm);
    bool swaps = value->shape.rank > 1 && perm[0] == 1 && perm[1] == 0;
    bool stays = perm[0] == 0 && (perm[1] == 1 || !value->mul1);
    if ((!swaps && !stays) || value->groups > 1) {
        Const numbers = as_numbers(x, value);
        return const_permuted(&numbers, perm);
    }
    Const codes = const_codes(value), out = const_permuted(&codes, perm);
    out.mul0 = swaps ? value->mul1 : value->mul0;
    out.mul1 = swaps ? value->mul0 : value->mul1;
    return out;
}

Const onnx_const_reshaped(Onnx *x, const Const *value, const Shape *shape) {
    bool first = shape_dim(&value->shape, 0) == shape_dim(shape, 0);
    bool second = shape_dim(&value->shape, 1) == shape_dim(shape, 1);
    bool stays =
        (!value->mul0 && !value->mul1) || (first && (second || !value->mul1));
    if (stays)
        return const_reshaped(x->arena, value, shape);
    uint32_t axis = value->mul1 != NULL;
    const double *by = axis ? value->mul1 : value->mul0;
    bool one = !(value->mul0 && value->mul1) &&
               alike(by, shape_dim(&value->shape, axis));
    Const codes = one ? const_codes(value) : as_numbers(x, value);
    Const out = const_reshaped(x->arena, &codes, shape);
    if (!one)
        return out;
    double *factor = ARENA_ARRAY(x->arena, double, shape_dim(shape, 0));
    for (uint32_t i = 0; i < shape_dim(shape, 0); i++)
        factor[i] = by[0];
    out.mul0 = factor;
    return out;
}
