/* ops_codes.c - MXNet's quantised operators; see ops.c for the rest.
 *
 * In the file codes go with two numbers, the least and the greatest real one
 * that they stand for, as two more outputs; the inputs of an operator are its
 * tensors, then such a pair for each. The larger size of the two is the code
 * 127 of int8, 255 of uint8, and 0 is 0; oneDNN, whose operators are those of
 * ops_fused.c, puts half a code more there. Weights and biases are codes in the
 * .params file, with NAME_min and NAME_max beside them.
 *
 * Each operator is built as that on real numbers which it stands for, and a
 * rounding behind it where its result is codes of 8 bits; sums of 32 bits are
 * the numbers themselves. net_settle_codes puts these together. Ranges that are
 * found at run time are refused: what is quantised without samples.
 */
#include "frontends/mxnet/mxnet.h"

#include <math.h>
#include <string.h>

static MxNode *own(const Mx *mx) {
    return &mx->node[mx->at - mx->node];
}

/* ---- ranges ---- */

static bool late(const Mx *mx, const char *what) {
    return net_fail(&mx->net,
                    "the range of its %s is found at run time: quantise the "
                    "model with samples (calib_mode)",
                    what);
}

/* The pair that begins at input `k`; `n` numbers each. */
static bool range_at(Mx *mx, uint32_t k, uint32_t *n, const double *range[2]) {
    *n = 1;
    for (uint32_t side = 0; side < 2; side++) {
        if (k + side >= mx->at->n_in)
            return net_fail(&mx->net,
                            "has %u inputs; the range at %u is "
                            "missing",
                            mx->at->n_in, k + side + 1);
        const MxNode *from = &mx->node[mx->at->in[k + side].node];
        const Const *value =
            mx_is_variable(from) ? mx_value(mx, k + side, "range") : NULL;
        if (value) {
            *n = (uint32_t)shape_count(&value->shape);
            double *number = ARENA_ARRAY(mx->net.arena, double, *n);
            const_read_f64(value, number);
            range[side] = number;
        } else if (from->ranged) {
            range[side] = &from->range[side];
        } else {
            return late(mx, "input");
        }
    }
    return true;
}

static Quant quant_of(const Mx *mx, const double range[2], QuantType type) {
    static const double top[2][2] = {{INT8_MAX, UINT8_MAX},
                                     {MX_FUSED_I8, MX_FUSED_U8}};
    double most = fmax(fabs(range[0]), fabs(range[1]));
    double scale = most > 0 ? most / top[mx->fused][type == QUANT_U8] : 1;
    return (Quant){type, 0, (double)(float)scale, QUANT_EVEN};
}

/* The result's codes. */
static TensorId coded(Mx *mx, TensorId in, const double range[2],
                      QuantType type) {
    if (in.i == NONE || !(fabs(range[0]) < 0x1p100) ||
        !(fabs(range[1]) < 0x1p100) || !(range[0] <= range[1]))
        return in.i == NONE ? in : net_none(&mx->net, "its range is none");
    if (type == QUANT_U8 && range[0] < 0)
        return net_none(&mx->net, "uint8 has no codes for its range, from %g",
                        range[0]);
    TensorId out = net_identity(&mx->net, in);
    if (out.i == NONE)
        return out;
    graph_tensor(mx->net.g, out)->quant = quant_of(mx, range, type);
    own(mx)->ranged = true;
    own(mx)->range[0] = range[0];
    own(mx)->range[1] = range[1];
    return out;
}

/* min_calib_range, max_calib_range. */
static bool calibrated(const Mx *mx, double range[2]) {
    range[0] = mx_num(mx, "min_calib_range", NAN);
    range[1] = mx_num(mx, "max_calib_range", NAN);
    return !isnan(range[0]) && !isnan(range[1]);
}

static QuantType type_of(Mx *mx, uint32_t k) {
    TensorId in = mx_in(mx, k);
    return in.i == NONE ? QUANT_NONE : graph_tensor(mx->net.g, in)->quant.type;
}

static QuantType wanted_type(const Mx *mx, const double range[2]) {
    const char *word = mx_str(mx, "out_type", "int8");
    bool positive = !strcmp(word, "auto") && range[0] >= 0;
    return positive || !strcmp(word, "uint8") ? QUANT_U8 : QUANT_I8;
}

/* ---- to codes and back ---- */

TensorId mx_quantize(Mx *mx, int with_range) {
    double range[2];
    const double *given[2];
    uint32_t n;
    if (with_range) {
        if (!range_at(mx, 1, &n, given))
            return NO_TENSOR;
        range[0] = *given[0];
        range[1] = *given[1];
    } else if (!calibrated(mx, range)) {
        return late(mx, "result"), NO_TENSOR;
    }
    return coded(mx, mx_in(mx, 0), range, wanted_type(mx, range));
}

/* The same numbers; where they leave the network, a layer. */
TensorId mx_dequantize(Mx *mx, int kind) {
    (void)kind;
    return mx_in(mx, 0);
}

/* ---- operators ---- */

bool mx_scale_param(Mx *mx, uint32_t k, uint32_t range_k) {
    const double *range[2];
    uint32_t n;
    const MxNode *node = &mx->node[mx->at->in[k].node];
    uint32_t i = map_get(mx->param_names, node->name, NONE);
    if (i == NONE || !mx_is_variable(node))
        return true; /* seeded ones, or an error where it is read */
    Const *c = &mx->param.at[i];
    if (c->kind != CONST_I8)
        return net_fail(&mx->net, "\"%s\" must be codes of int8", node->name);
    if (!range_at(mx, range_k, &n, range))
        return false;
    uint32_t rows = c->shape.dim[0];
    double *scale = ARENA_ARRAY(mx->net.arena, double, rows);
    if (n != 1 && n != rows)
        return net_fail(&mx->net, "%u ranges for the %u channels of \"%s\"", n,
                        rows, node->name);
    for (uint32_t r = 0; r < rows; r++) {
        const double pair[2] = {range[0][n > 1 ? r : 0],
                                range[1][n > 1 ? r : 0]};
        scale[r] = quant_of(mx, pair, QUANT_I8).scale;
    }
    c->mul0 = scale;
    return true;
}

/* What the operator is on real numbers, of its first `n` inputs. */
static TensorId real(Mx *mx, const char *type, uint32_t n) {
    const MxNode *outer = mx->at;
    MxNode inner = *outer;
    inner.op = type;
    inner.n_in = n < outer->n_in ? n : outer->n_in;
    mx->build(mx, &inner);
    mx->at = outer;
    net_at(&mx->net, outer->name, outer->op, mx->net.loc);
    return inner.n_out ? inner.out[0] : NO_TENSOR;
}

/* Sums of 32 bits: the numbers, which a requantize behind rounds. */
TensorId mx_quantized_sums(Mx *mx, int op) {
    bool bias = !mx_bool(mx, "no_bias", false);
    uint32_t n = bias ? 3 : 2;
    for (uint32_t k = 1; k < n; k++)
        if (k >= mx->at->n_in || !mx_scale_param(mx, k, n + 2 * k))
            return NO_TENSOR;
    return real(mx, op == OP_FC ? "FullyConnected" : "Convolution", n);
}

/* To the calibrated range; a sum or a product without stays as it is. */
TensorId mx_requantize(Mx *mx, int kind) {
    double range[2];
    (void)kind;
    if (!calibrated(mx, range))
        return late(mx, "result"), NO_TENSOR;
    return coded(mx, mx_in(mx, 0), range, wanted_type(mx, range));
}

TensorId mx_round(Mx *mx, TensorId in, bool positive) {
    double range[2];
    if (!calibrated(mx, range))
        return in;
    if (positive)
        range[0] = fmax(range[0], 0);
    return coded(mx, in, range, positive ? QUANT_U8 : QUANT_I8);
}

TensorId mx_quantized_two(Mx *mx, int kind) {
    double range[2];
    QuantType a = type_of(mx, 0), b = type_of(mx, 1);
    TensorId out =
        real(mx, kind == ELT_MUL ? "elemwise_mul" : "elemwise_add", 2);
    return calibrated(mx, range)
               ? coded(mx, out, range, a == b && a != QUANT_NONE ? a : QUANT_I8)
               : out;
}

TensorId mx_quantized_norm(Mx *mx, int kind) {
    double range[2];
    (void)kind;
    if (!calibrated(mx, range))
        return late(mx, "result"), NO_TENSOR;
    return coded(mx, real(mx, "BatchNorm", 5), range, QUANT_I8);
}

/* Operators that keep the range of what they read. */
static const char *const kept[] = {"Pooling", "Activation", "Flatten",
                                   "Reshape", "transpose"};

TensorId mx_quantized_kept(Mx *mx, int which) {
    const double *range[2];
    uint32_t n;
    QuantType type = type_of(mx, 0);
    if (type == QUANT_NONE || !range_at(mx, 1, &n, range))
        return type ? NO_TENSOR : net_none(&mx->net, "reads no codes");
    const double both[2] = {*range[0], *range[1]};
    return coded(mx, real(mx, kept[which], 1), both, type);
}

/* The widest of their ranges. */
TensorId mx_quantized_concat(Mx *mx, int kind) {
    uint32_t count = mx->at->n_in / 3, n;
    const double *range[2];
    double all[2] = {INFINITY, -INFINITY};
    QuantType type = QUANT_U8;
    (void)kind;
    for (uint32_t k = 0; k < count; k++) {
        if (!range_at(mx, count + 2 * k, &n, range))
            return NO_TENSOR;
        all[0] = fmin(all[0], *range[0]);
        all[1] = fmax(all[1], *range[1]);
        type = type_of(mx, k) == QUANT_U8 ? type : QUANT_I8;
    }
    return coded(mx, real(mx, "Concat", count), all, type);
}
