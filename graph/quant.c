/* quant.c - which rule a layer on codes follows, and its numbers; quant.h.
 *
 * In: a node some of whose tensors are quantised. Out: its QuantLayer. A rule
 * of integers needs all that it reads and writes to be quantised; what has no
 * such rule is computed on real numbers (QUANT_REALS).
 */
#include "graph/quant.h"
#include "graph/eval.h"
#include "graph/op_traits.h"

#include <math.h>

/* ---- numbers ---- */

QuantScale quant_scale(double real) {
    int exponent;
    double factor = floor(frexp(real, &exponent) * 0x1p31 + 0.5);
    if (factor >= 0x1p31) {
        factor /= 2;
        exponent++;
    }
    if (exponent < -31 || !(real > 0))
        return (QuantScale){0, 1};
    if (exponent > 30)
        return (QuantScale){INT32_MAX, 1};
    return (QuantScale){(int32_t)factor, (uint32_t)(31 - exponent)};
}

int64_t quant_even(float x) {
    const float most = 0x1p40F;
    float cut = x > most ? most : x > -most ? x : -most;
    return (int64_t)rintf(cut);
}

/* A sum is one of codes as they are, and of what their zeros make of it. */
static int64_t sum_even(const QuantLayer *layer, int64_t x, int64_t y) {
    const QuantScale *s = layer->scale;
    const int32_t *zero = layer->zero_in;
    float by_a = quant_float(s[0]) / quant_float(s[2]);
    float by_b = quant_float(s[1]) / quant_float(s[2]);
    float zeros = fmaf(by_a, (float)zero[0], by_b * (float)zero[1]);
    float sum = (float)layer->zero_out - zeros;
    sum += (float)(x + zero[0]) * by_a;
    sum += (float)(y + zero[1]) * by_b;
    return quant_even(sum) - layer->zero_out;
}

/* Both terms in units of the larger scale, of which one has it already. */
static int64_t sum_terms(const QuantLayer *layer, int64_t x, int64_t y) {
    const QuantScale *s = layer->scale;
    x = quant_even((float)x * quant_float(s[0]));
    y = quant_even((float)y * quant_float(s[1]));
    return quant_even((float)(x + y) * quant_float(s[2]));
}

static int64_t blend_even(const QuantLayer *layer, int64_t x, int64_t y) {
    const QuantScale *s = layer->scale;
    if (quant_sums_terms(layer))
        return sum_terms(layer, x, y);
    if (layer->rule == QUANT_ADDS && !layer->minus)
        return sum_even(layer, x, y);
    float a = (float)x * quant_float(s[0]);
    float b = (float)y * quant_float(s[1]);
    float both = layer->rule == QUANT_PRODUCT ? a * b : a - b;
    return quant_even(both / quant_float(s[2]));
}

int64_t quant_blend(const QuantLayer *layer, int64_t x, int64_t y) {
    const QuantScale *s = layer->scale;
    if (quant_by_floats(layer->round))
        return blend_even(layer, x, y);
    if (layer->rule == QUANT_PRODUCT)
        return quant_apply(s[0], x * y);
    x = quant_apply(s[0], x * (INT64_C(1) << layer->left));
    y = quant_apply(s[1], y * (INT64_C(1) << layer->left));
    return quant_apply(s[2], layer->minus ? x - y : x + y);
}

int64_t quant_moved(const QuantLayer *layer, int64_t x) {
    if (!layer->n)
        return x;
    if (!quant_by_floats(layer->round))
        return quant_apply(layer->scale[0], x);
    float real = (float)x * quant_float(layer->scale[0]);
    return quant_even(real / quant_float(layer->scale[1]));
}

int32_t quant_code(const Quant *q, double real) {
    const QuantTypeInfo *type = &quant_type[q->type];
    double code = (quant_by_floats(q->round)
                       ? (double)rintf((float)real / (float)q->scale)
                       : floor(real / q->scale + 0.5)) +
                  q->zero;
    if (isnan(code))
        return q->zero;
    return code < type->lo   ? type->lo
           : code > type->hi ? type->hi
                             : (int32_t)code;
}

/* ---- tensors of a node ---- */

static const Quant *in_quant(const Graph *g, const Node *node, uint32_t k) {
    return &graph_tensor(g, node->in[k])->quant;
}

static const Quant *out_quant(const Graph *g, const Node *node) {
    return &graph_tensor(g, node->out[0])->quant;
}

bool quant_is_at(const Graph *g, const Node *node) {
    for (uint32_t k = 0; k < node->n_in; k++)
        if (in_quant(g, node, k)->type != QUANT_NONE)
            return true;
    return out_quant(g, node)->type != QUANT_NONE;
}

static bool inputs_alike(const Graph *g, const Node *node) {
    for (uint32_t k = 1; k < node->n_in; k++)
        if (!quant_equal(in_quant(g, node, 0), in_quant(g, node, k)))
            return false;
    return true;
}

bool quant_is_one(const Graph *g, const Node *node) {
    return inputs_alike(g, node) &&
           (!node->n_in ||
            quant_equal(in_quant(g, node, 0), out_quant(g, node)));
}

static bool all_codes(const Graph *g, const Node *node) {
    for (uint32_t k = 0; k < node->n_in; k++)
        if (in_quant(g, node, k)->type == QUANT_NONE)
            return false;
    return node->n_in && out_quant(g, node)->type != QUANT_NONE;
}

/* ---- activations ---- */

bool quant_clamps(const Act *act) {
    return act->kind == ACT_NONE || act->kind == ACT_RELU ||
           act->kind == ACT_RELU6 || act->kind == ACT_CLIP;
}

bool quant_bends(const Act *act) {
    return act->kind == ACT_LEAKY && act->alpha >= 0 && isfinite(act->alpha);
}

/* Bounds of an activation as codes. */
static void clamp(const Act *act, const Quant *q, QuantLayer *layer) {
    static const Act relu6 = {.lo = 0, .hi = 6};
    const Act *bounds = act->kind == ACT_RELU6 ? &relu6 : act;
    layer->lo = quant_type[q->type].lo;
    layer->hi = quant_type[q->type].hi;
    if (act->kind == ACT_RELU)
        layer->lo = q->zero;
    if (act->kind == ACT_RELU6 || act->kind == ACT_CLIP) {
        layer->lo = quant_code(q, bounds->lo);
        layer->hi = quant_code(q, bounds->hi);
    }
}

bool quant_act_cuts(const Graph *g, const Node *node) {
    const Quant *q = out_quant(g, node);
    QuantLayer layer = {0};
    if (q->type == QUANT_NONE || !quant_clamps(&node->act))
        return node->act.kind != ACT_NONE;
    clamp(&node->act, q, &layer);
    return layer.lo > quant_type[q->type].lo ||
           layer.hi < quant_type[q->type].hi;
}

/* ---- rules ---- */

bool quant_picks(const Graph *g, const Node *node) {
    ConstId id = node->constant[CONST_VALUE];
    if (node->attr.gather.taps != 1 || id.i == NONE)
        return false;
    Arena *scratch = arena_new("quant");
    const Const *factor = graph_const(g, id);
    uint64_t n = shape_count(&factor->shape);
    double *value = ARENA_ARRAY(scratch, double, n);
    const_read_f64(factor, value);
    bool all = true;
    for (uint64_t i = 0; i < n; i++)
        all = all && value[i] >= 1 && value[i] <= 1;
    arena_free(scratch);
    return all;
}

/* A zero is no code that its input has. */
static bool takes_zeros(const Graph *g, const Node *node) {
    ConstId id = node->constant[CONST_INDEX];
    const Shape *in = &graph_tensor(g, node->in[0])->shape;
    if (id.i == NONE)
        return true;
    const Const *c = graph_const(g, id);
    uint64_t n = shape_count(&c->shape);
    Arena *arena = arena_new("pixels");
    double *index = ARENA_ARRAY(arena, double, n);
    const_read_f64(c, index);
    bool zeros = false;
    for (uint64_t i = 0; i < n; i++)
        zeros |= index[i] >= (double)shape_dim(in, 2) * shape_dim(in, 3);
    arena_free(arena);
    return zeros;
}

bool quant_moves(const Graph *g, const Node *node) {
    switch (node->op) {
    case OP_POOL:
        return node->attr.pool.kind == POOL_MAX;
    case OP_ELTWISE:
        return (node->attr.elt.kind == ELT_MAX ||
                node->attr.elt.kind == ELT_MIN) &&
               !node->attr.elt.coeff;
    case OP_GATHER:
        return quant_picks(g, node);
    case OP_PIXELS:
        return !takes_zeros(g, node);
    default:
        return op_has(node->op, OP_MOVES) && quant_clamps(&node->act);
    }
}

/* Factors of a constant of codes of up to `size` bytes, by output channel;
 * `axis` is where these lie.
 * False if it has others. */
static bool factors(const Const *c, uint32_t size, uint32_t axis,
                    const double **out) {
    *out = axis ? c->mul1 : c->mul0;
    return const_has_codes(c, size) && !(axis ? c->mul0 : c->mul1);
}

static double factor(const double *list, uint32_t channel) {
    return list ? list[channel] : 1.0;
}

typedef struct Sums {
    uint32_t channels;
    const double *weight, *bias; /* scales by channel, NULL: 1 */
    bool has_bias;
} Sums;

static bool weights_of(const Graph *g, const Node *node, Sums *out) {
    ConstId w = node->constant[CONST_WEIGHT], b = node->constant[CONST_BIAS];
    bool deconv = node->op == OP_DECONV;
    if (w.i == NONE || (deconv && node->attr.conv.groups > 1))
        return false;
    out->channels = shape_dim(&graph_const(g, w)->shape, deconv);
    out->has_bias = b.i != NONE;
    return factors(graph_const(g, w), 2, deconv, &out->weight) &&
           (!out->has_bias || factors(graph_const(g, b), 4, 0, &out->bias));
}

/* Codes of a bias must count in the unit of the products. */
static bool units_agree(const Graph *g, const Node *node, const Sums *sums) {
    double in = in_quant(g, node, 0)->scale;
    for (uint32_t c = 0; sums->has_bias && c < sums->channels; c++) {
        double unit = in * factor(sums->weight, c);
        if (fabs(factor(sums->bias, c) - unit) > 1e-3 * unit)
            return false;
    }
    return true;
}

static bool is_sums(const Graph *g, const Node *node) {
    Sums sums = {0};
    bool pools = node->op == OP_CONV_POOL && node->attr.pool.kind != POOL_MAX;
    return (quant_clamps(&node->act) || quant_bends(&node->act)) && !pools &&
           weights_of(g, node, &sums) && units_agree(g, node, &sums);
}

static QuantRule elt_rule(const Node *node) {
    if (node->n_in != 2 || node->attr.elt.coeff || !quant_clamps(&node->act))
        return QUANT_REALS;
    switch (node->attr.elt.kind) {
    case ELT_ADD:
    case ELT_SUB:
        return QUANT_ADDS;
    case ELT_MUL:
        return QUANT_PRODUCT;
    default:
        return QUANT_REALS;
    }
}

static bool fits_float(double scale) {
    return scale >= 0x1p-31 && scale < 0x1p30;
}

/* Where halves go to even, scales are factors as they are; averages of windows
 * are those of floats. */
static bool even_has(const Graph *g, const Node *node) {
    bool fits = fits_float(out_quant(g, node)->scale);
    for (uint32_t k = 0; k < node->n_in; k++)
        fits = fits && fits_float(in_quant(g, node, k)->scale);
    return fits && (node->op != OP_POOL || node->attr.pool.global ||
                    node->attr.pool.kind == POOL_MAX);
}

/* A function of single codes, few enough for a table. */
static bool has_table(const Graph *g, const Node *node) {
    return node->n_in == 1 && node->n_out == 1 && node->act.kind != ACT_PRELU &&
           quant_type[in_quant(g, node, 0)->type].size == 1;
}

QuantRule quant_rule(const Graph *g, const Node *node) {
    if (!all_codes(g, node) ||
        (quant_by_floats(out_quant(g, node)->round) && !even_has(g, node)))
        return QUANT_REALS;
    if (quant_moves(g, node))
        return inputs_alike(g, node) ? QUANT_MOVES : QUANT_REALS;
    switch (node->op) {
    case OP_CONV:
    case OP_DECONV:
    case OP_FC:
    case OP_CONV_POOL:
        return is_sums(g, node) ? QUANT_SUMS : QUANT_REALS;
    case OP_ACT:
        return has_table(g, node) ? QUANT_TABLE : QUANT_REALS;
    case OP_ELTWISE:
        return elt_rule(node);
    case OP_POOL:
        return quant_clamps(&node->act) ? QUANT_MEANS : QUANT_REALS;
    case OP_REDUCE:
        return node->attr.reduce.kind == REDUCE_MEAN ? QUANT_MEANS
                                                     : QUANT_REALS;
    default:
        return QUANT_REALS;
    }
}

/* ---- numbers of a rule ---- */

static QuantScale *scales(Arena *arena, QuantLayer *layer, uint32_t n) {
    QuantScale *scale = ARENA_ARRAY(arena, QuantScale, n);
    layer->n = n;
    layer->scale = scale;
    return scale;
}

/* The nearest float. */
static QuantScale float_scale(double real) {
    return quant_scale((double)(float)real);
}

/* The scales of inputs and result. */
static void own_scales(Arena *arena, const Graph *g, const Node *node,
                       uint32_t inputs, QuantLayer *layer) {
    QuantScale *to = scales(arena, layer, inputs + 1);
    for (uint32_t k = 0; k < inputs; k++)
        to[k] = float_scale(in_quant(g, node, k)->scale);
    to[inputs] = float_scale(out_quant(g, node)->scale);
}

/* As floats are multiplied and divided. */
static float float_factor(double unit, double weight, double out) {
    float products = (float)unit * (float)weight;
    return products / (float)out;
}

/* Of each channel, times `slope`. */
static const QuantScale *sums_scaled(Arena *arena, const Graph *g,
                                     const Node *node, const QuantLayer *layer,
                                     const double *weight, double slope) {
    QuantScale *to = ARENA_ARRAY(arena, QuantScale, layer->n);
    double unit = in_quant(g, node, 0)->scale, out = out_quant(g, node)->scale;
    for (uint32_t c = 0; c < layer->n; c++) {
        double by = factor(weight, c);
        float even = float_factor(unit, by, out) * (float)slope;
        to[c] = quant_scale(quant_by_floats(layer->round)
                                ? (double)even
                                : unit * by / out * slope);
    }
    return to;
}

static void sums_scales(Arena *arena, const Graph *g, const Node *node,
                        QuantLayer *layer) {
    Sums sums = {0};
    weights_of(g, node, &sums);
    layer->n = sums.weight ? sums.channels : 1;
    layer->scale = sums_scaled(arena, g, node, layer, sums.weight, 1);
    if (quant_bends(&node->act))
        layer->below =
            sums_scaled(arena, g, node, layer, sums.weight, node->act.alpha);
}

/* Of a sum of terms: to the larger scale, and from it to the result's. */
static void terms_scales(Arena *arena, const Graph *g, const Node *node,
                         QuantLayer *layer) {
    float a = (float)in_quant(g, node, 0)->scale;
    float b = (float)in_quant(g, node, 1)->scale;
    float unit = a > b ? a : b;
    QuantScale *to = scales(arena, layer, 3);
    to[0] = quant_scale((double)(a / unit));
    to[1] = quant_scale((double)(b / unit));
    to[2] = quant_scale((double)(unit / (float)out_quant(g, node)->scale));
}

/* Both terms are brought to twice the larger scale, with `left` more bits. */
static void adds_scales(Arena *arena, const Graph *g, const Node *node,
                        QuantLayer *layer) {
    layer->minus = node->attr.elt.kind == ELT_SUB;
    if (layer->round == QUANT_TERMS && !layer->minus) {
        terms_scales(arena, g, node, layer);
        return;
    }
    if (quant_by_floats(layer->round)) {
        own_scales(arena, g, node, 2, layer);
        return;
    }
    double a = in_quant(g, node, 0)->scale, b = in_quant(g, node, 1)->scale;
    double unit = 2 * fmax(a, b);
    bool wide = in_quant(g, node, 0)->type == QUANT_I16 ||
                in_quant(g, node, 1)->type == QUANT_I16;
    QuantScale *to = scales(arena, layer, 3);
    layer->left = wide ? 15 : 20;
    to[0] = quant_scale(a / unit);
    to[1] = quant_scale(b / unit);
    to[2] = quant_scale(
        unit / ((double)(1u << layer->left) * out_quant(g, node)->scale));
}

static void product_scale(Arena *arena, const Graph *g, const Node *node,
                          QuantLayer *layer) {
    if (quant_by_floats(layer->round))
        own_scales(arena, g, node, 2, layer);
    else
        *scales(arena, layer, 1) = quant_scale(in_quant(g, node, 0)->scale *
                                               in_quant(g, node, 1)->scale /
                                               out_quant(g, node)->scale);
}

/* The divisor is part of the factor: windows are all of one size. */
static void even_mean(Arena *arena, const Graph *g, const Node *node,
                      QuantLayer *layer) {
    double n = (double)shape_count(&graph_tensor(g, node->in[0])->shape) /
               (double)shape_count(&graph_tensor(g, node->out[0])->shape);
    float divisor = (float)out_quant(g, node)->scale * (float)n;
    float by = (float)in_quant(g, node, 0)->scale / divisor;
    *scales(arena, layer, 1) = quant_scale((double)by);
}

/* Pools average codes as they are, as TensorFlow Lite's do. */
static void rescale(Arena *arena, const Graph *g, const Node *node,
                    QuantLayer *layer) {
    bool alike = quant_is_one(g, node);
    if (quant_by_floats(layer->round)) {
        if (layer->rule == QUANT_MEANS)
            even_mean(arena, g, node, layer);
        else if (!alike)
            own_scales(arena, g, node, 1, layer);
        return;
    }
    if (!alike)
        *scales(arena, layer, 1) = quant_scale(in_quant(g, node, 0)->scale /
                                               out_quant(g, node)->scale);
    bool pads = node->op == OP_POOL && node->attr.pool.count_pad;
    if (alike && !pads && node->op != OP_REDUCE)
        layer->zero_in[0] = layer->zero_in[1] = layer->zero_out = 0;
}

static void table_codes(Arena *arena, const Graph *g, const Node *node,
                        QuantLayer *layer) {
    const Quant *in = in_quant(g, node, 0), *out = out_quant(g, node);
    int16_t *table = ARENA_ARRAY(arena, int16_t, QUANT_TABLE_SIZE);
    layer->zero_in[0] = quant_type[in->type].lo;
    layer->zero_out = 0;
    layer->table = table;
    for (int32_t i = 0; i < QUANT_TABLE_SIZE; i++) {
        float real = (float)quant_real(in, layer->zero_in[0] + i);
        double value = (double)eval_act(&node->act, real);
        table[i] = (int16_t)quant_code(out, value);
    }
}

QuantLayer quant_layer(Arena *arena, const Graph *g, const Node *node) {
    QuantLayer layer = {.rule = quant_rule(g, node)};
    if (layer.rule == QUANT_REALS)
        return layer;
    layer.round = out_quant(g, node)->round;
    for (uint32_t k = 0; k < node->n_in && k < 2; k++)
        layer.zero_in[k] = in_quant(g, node, k)->zero;
    layer.zero_out = out_quant(g, node)->zero;
    clamp(&node->act, out_quant(g, node), &layer);
    switch (layer.rule) {
    case QUANT_SUMS:
        sums_scales(arena, g, node, &layer);
        break;
    case QUANT_ADDS:
        adds_scales(arena, g, node, &layer);
        break;
    case QUANT_PRODUCT:
        product_scale(arena, g, node, &layer);
        break;
    case QUANT_TABLE:
        table_codes(arena, g, node, &layer);
        break;
    default:
        rescale(arena, g, node, &layer);
        break;
    }
    return layer;
}
