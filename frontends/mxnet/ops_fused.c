/* ops_fused.c - MXNet's operators that hold a graph of their own.
 *
 * oneDNN's _sg_ operators are a sum (convolution, inner product) and what
 * follows it: a normalisation, an activation, the addition of another tensor,
 * an activation again. The node has these as "subgraphs"; its variables are the
 * node's inputs, one by one. They are built as layers; on codes, the rounding
 * comes behind the last. Weights are numbers in the file then, and codes by
 * channel once the normalisation is in them.
 */
#include "frontends/mxnet/mxnet.h"

#include <math.h>
#include <string.h>

typedef struct Fused {
    MxNode *node;
    uint32_t n, n_in;
    MxNode *sum, *norm; /* norm: NULL for none */
    uint32_t last;
} Fused;

/* What the graph inside reads is what the node reads. */
static bool give_inputs(Mx *mx, Fused *f) {
    for (uint32_t i = 0; i < f->n; i++) {
        if (!mx_is_variable(&f->node[i]))
            continue;
        if (f->n_in == mx->at->n_in)
            return net_fail(&mx->net, "its graph reads more than its inputs");
        uint32_t k = f->n_in++;
        MxRef ref = mx->at->in[k];
        const MxNode *from = &mx->node[ref.node];
        if (mx_is_variable(from) ? k == 0 : ref.output >= from->n_out)
            mx_in(mx, k);
        f->node[i] = *from;
        f->node[i].n_in = 0;
        if (!mx_is_variable(from) && ref.output < from->n_out) {
            f->node[i].out = &from->out[ref.output];
            f->node[i].n_out = 1;
        }
    }
    return !diag_errors(mx->net.diag);
}

static bool find_parts(Mx *mx, Fused *f) {
    for (uint32_t i = 0; i < f->n; i++) {
        MxNode *node = &f->node[i];
        if (node->out || mx_is_variable(node))
            continue;
        f->last = i;
        if (!strcmp(node->op, "Convolution") ||
            !strcmp(node->op, "FullyConnected"))
            f->sum = node;
        if (!strcmp(node->op, "BatchNorm"))
            f->norm = node;
    }
    return f->sum || net_fail(&mx->net, "its graph has no sum of products");
}

/* ---- weights ---- */

static float *numbers(Mx *mx, const Const *c) {
    uint64_t n = shape_count(&c->shape);
    double *wide = ARENA_ARRAY(mx->net.arena, double, n);
    float *value = ARENA_ARRAY(mx->net.arena, float, n);
    const_read_f64(c, wide);
    for (uint64_t i = 0; i < n; i++)
        value[i] = (float)wide[i];
    return value;
}

/* A parameter of `rows` numbers; NULL: none. */
static const float *row_numbers(Mx *mx, uint32_t k, const char *suffix,
                                uint32_t rows) {
    const Const *c = mx_value(mx, k, suffix);
    if (c && shape_count(&c->shape) != rows) {
        net_fail(&mx->net, "its %s has not %u values", suffix, rows);
        return NULL;
    }
    return c ? numbers(mx, c) : NULL;
}

/* The normalisation's factor and term go into weights and biases. */
static bool fold_norm(Mx *mx, const Fused *f, uint32_t rows, uint32_t row,
                      float *weight, float *bias) {
    mx->at = f->norm;
    double eps = mx_num(mx, "eps", 1e-3);
    bool fixed = mx_bool(mx, "fix_gamma", true);
    const float *gamma = fixed ? NULL : row_numbers(mx, 1, "gamma", rows);
    const float *beta = row_numbers(mx, 2, "beta", rows);
    const float *mean = row_numbers(mx, 3, "moving_mean", rows);
    const float *var = row_numbers(mx, 4, "moving_var", rows);
    mx->at = f->sum;
    if (!(fixed || gamma) || !beta || !mean || !var)
        return false;
    for (uint32_t r = 0; r < rows; r++) {
        double by = (double)(fixed ? 1 : gamma[r]) / sqrt(var[r] + eps);
        float alpha = (float)by;
        for (uint32_t i = 0; i < row; i++)
            weight[(size_t)r * row + i] *= alpha;
        bias[r] = beta[r] + alpha * (bias[r] - mean[r]);
    }
    return true;
}

/* Codes by row, in units of 1 / scale. */
static const Const *code_rows(Mx *mx, const Const *of, uint32_t rows,
                              const float *weight, const float *bias,
                              double unit) {
    uint32_t row = (uint32_t)(shape_count(&of->shape) / rows);
    int8_t *code = ARENA_ARRAY(mx->net.arena, int8_t, (size_t)rows * row);
    double *size = ARENA_ARRAY(mx->net.arena, double, rows);
    for (uint32_t r = 0; r < rows; r++) {
        const float *at = weight + (size_t)r * row;
        float most = 0;
        for (uint32_t i = 0; i < row; i++)
            most = fmaxf(most, fabsf(at[i]));
        float scale = most > 0 ? (float)MX_FUSED_I8 / most : (float)INT32_MAX;
        if (bias && bias[r] != 0) /* half of what 32 bits can count */
            scale = fminf(scale, (float)(0x1p30 * unit / fabs(bias[r])));
        for (uint32_t i = 0; i < row; i++)
            code[(size_t)r * row + i] =
                (int8_t)fminf(fmaxf(rintf(at[i] * scale), INT8_MIN), INT8_MAX);
        size[r] = 1.0 / scale;
    }
    Const *c = ARENA_COPY(mx->net.arena, Const, of, 1);
    *c = (Const){
        .shape = of->shape, .kind = CONST_I8, .data = code, .mul0 = size};
    return c;
}

/* Weights that the file has as codes, those of inner products; ranges are
 * behind the inputs and that of the first. */
static bool scale_codes(Mx *mx, const Fused *f) {
    bool by_channel =
        !strcmp(mx_str(mx, "channel_wise_quantize", "None"), "True");
    if (by_channel || strcmp(f->sum->op, "FullyConnected"))
        return true;
    for (uint32_t k = 1; k < f->sum->n_in; k++)
        if (!mx_scale_param(mx, k, f->n_in + 2 * k))
            return false;
    return true;
}

/* Weights that the file has as numbers. */
static bool code_weights(Mx *mx, Fused *f) {
    mx->at = f->sum;
    bool has = !mx_bool(mx, "no_bias", false);
    const Const *given = mx_value(mx, 1, "weight");
    TensorId in = mx_in(mx, 0);
    if (!given || in.i == NONE || given->kind == CONST_I8 ||
        !shape_dim(&given->shape, 0))
        return !diag_errors(mx->net.diag);
    double unit = graph_tensor(mx->net.g, in)->quant.scale;
    uint32_t rows = given->shape.dim[0];
    uint32_t row = (uint32_t)(shape_count(&given->shape) / rows);
    float *weight = numbers(mx, given);
    float *bias = ARENA_ARRAY(mx->net.arena, float, rows);
    const float *own = has ? row_numbers(mx, 2, "bias", rows) : NULL;
    if (own)
        memcpy(bias, own, rows * sizeof *bias);
    if (f->norm && !fold_norm(mx, f, rows, row, weight, bias))
        return !diag_errors(mx->net.diag);
    has = own || f->norm;
    f->sum->weight =
        code_rows(mx, given, rows, weight, has ? bias : NULL, unit);
    if (has) {
        Const c = {.shape = {1, {rows}}, .kind = CONST_F32, .data = bias};
        f->sum->bias = ARENA_COPY(mx->net.arena, Const, &c, 1);
    }
    return !diag_errors(mx->net.diag);
}

/* ---- layers ---- */

static void build_parts(Mx *mx, const Fused *f) {
    for (uint32_t i = 0; i <= f->last; i++) {
        MxNode *node = &f->node[i];
        if (node->out || mx_is_variable(node))
            continue;
        if (node == f->norm && f->sum->bias) { /* in the weights */
            node->out = f->node[node->in[0].node].out;
            node->n_out = 1;
            continue;
        }
        mx->build(mx, node);
    }
}

/* Does its last operator never write less than 0? */
static bool positive(Mx *mx, const Fused *f) {
    static const char *const types[] = {"relu", "sigmoid", "softrelu"};
    static const char *const never[] = {"clip", "square", "sqrt", "exp", "abs"};
    mx->at = &f->node[f->last];
    for (uint32_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(mx->at->op, "Activation") &&
            !strcmp(mx_str(mx, "act_type", ""), types[i]))
            return true;
    for (uint32_t i = 0; i < sizeof never / sizeof *never; i++)
        if (!strcmp(mx->at->op, never[i]))
            return true;
    return false;
}

TensorId mx_fused(Mx *mx, int kind) {
    Mx outer = *mx;
    Fused f = {0};
    (void)kind;
    bool coded = mx_bool(mx, "quantized", false);
    bool numbers_out =
        strcmp(mx_str(mx, "enabled_float_output", "None"), "None") != 0;
    const cJSON *graph = cJSON_GetArrayItem(
        cJSON_GetObjectItemCaseSensitive(mx->at->json, "subgraphs"), 0);
    if (!graph)
        return net_none(&mx->net, "has no graph inside");
    mx->n = 0;
    bool good = mx_read_nodes(mx, graph);
    f.node = mx->node;
    f.n = mx->n;
    mx->node = outer.node;
    mx->n = outer.n;
    if (!good || !give_inputs(mx, &f) || !find_parts(mx, &f) ||
        (coded && !scale_codes(mx, &f)))
        return NO_TENSOR;
    mx->node = f.node;
    mx->n = f.n;
    if (!coded || code_weights(mx, &f))
        build_parts(mx, &f);
    bool unsigned_codes = positive(mx, &f);
    const MxNode *last = &f.node[f.last];
    TensorId out = last->n_out ? last->out[0] : NO_TENSOR;
    mx->node = outer.node;
    mx->n = outer.n;
    mx->at = outer.at;
    net_at(&mx->net, mx->at->name, mx->at->op, mx->net.loc);
    return coded && !numbers_out ? mx_round(mx, out, unsigned_codes) : out;
}
