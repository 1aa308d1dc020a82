/* rules_fold.c - affine layers fold into each other and into weights, padding
 * into windows.
 *
 * a * x + b by channel. Factors go into the recipe of the weights (mul0 by the
 * first index, mul1 by the second), biases are computed once, all in double:
 * nothing is rounded before a value is read.
 *
 *     W (a x + b) + c = (W a) x + (W b + c)       SCALE before
 *     a (W x + c) + b = (a W) x + (a c + b)       SCALE behind
 */
#include "passes/passes_int.h"

#include <math.h>

#define LINEAR (OPS(CONV) | OPS(DECONV) | OPS(FC))

/* Values of weights that are read to fold a shift; above, it stays a layer. */
enum { READ_MOST = 1 << 24 };

/* a and b of a SCALE, by channel. */
typedef struct Affine {
    uint32_t n;
    double *a, *b;
} Affine;

static uint32_t in_channels(const Match *m, uint32_t i) {
    return shape_dim(&match_in(m, i)->shape, 1);
}

static Affine read_affine(const Match *m, uint32_t i) {
    const Node *node = match_node(m, i);
    uint32_t n = in_channels(m, i);
    return (Affine){n, read_constant(m, node->constant[CONST_SCALE], n, 1.0),
                    read_constant(m, node->constant[CONST_BIAS], n, 0.0)};
}

static void write_affine(Match *m, uint32_t i, const Affine *affine) {
    ConstId a = write_constant(m, affine->n, affine->a);
    ConstId b = write_constant(m, affine->n, affine->b);
    match_node(m, i)->constant[CONST_SCALE] = a;
    match_node(m, i)->constant[CONST_BIAS] = b;
}

static bool has_no_act(const Match *m, uint32_t i) {
    return match_node(m, i)->act.kind == ACT_NONE;
}

static void hand_down_act(Match *m, uint32_t to, uint32_t from) {
    Node *taker = match_node(m, to), *giver = match_node(m, from);
    taker->act = giver->act;
    taker->constant[CONST_SLOPE] = giver->constant[CONST_SLOPE];
}

/* ---- BN is a SCALE ---- */

static bool has_statistics(const Match *m) {
    const ConstId *constant = match_node(m, 0)->constant;
    return constant[CONST_MEAN].i != NONE && constant[CONST_VAR].i != NONE;
}

static void make_scale(Match *m) {
    Node *node = match_node(m, 0);
    uint32_t n = in_channels(m, 0);
    double *mean = read_constant(m, node->constant[CONST_MEAN], n, 0.0);
    double *var = read_constant(m, node->constant[CONST_VAR], n, 1.0);
    Affine affine = {n, var, mean};
    for (uint32_t i = 0; i < n; i++) {
        affine.a[i] = 1.0 / sqrt(var[i] + node->attr.bn.eps);
        affine.b[i] = -mean[i] * affine.a[i];
    }
    node->op = OP_SCALE;
    node->attr = (Attrs){0};
    node->constant[CONST_MEAN] = node->constant[CONST_VAR] = NO_CONST;
    write_affine(m, 0, &affine);
}

/* ---- two SCALEs are one ---- */

static bool first_has_no_act(const Match *m) {
    return has_no_act(m, 0);
}

static void join_scales(Match *m) {
    Affine first = read_affine(m, 0), second = read_affine(m, 1);
    for (uint32_t i = 0; i < first.n; i++) {
        first.a[i] *= second.a[i];
        first.b[i] = first.b[i] * second.a[i] + second.b[i];
    }
    write_affine(m, 0, &first);
    hand_down_act(m, 0, 1);
    match_fuse_behind(m, 0);
}

/* ---- factors into weights ---- */

/* How channels of a node's input or output lie along the axes of its weights.
 * Axis 0 or 1; the channel of index i is i / each % n. */
typedef struct Along {
    bool possible;
    uint32_t axis;
    uint32_t each;
} Along;

static bool is_depthwise_deconv(const Match *m, uint32_t i) {
    const ConvAttr *conv = &match_node(m, i)->attr.conv;
    return conv->groups == in_channels(m, i) && conv->groups == conv->out_c;
}

static Along outputs_along(const Match *m, uint32_t i) {
    const Node *node = match_node(m, i);
    if (node->op != OP_DECONV)
        return (Along){true, 0, 1};
    if (is_depthwise_deconv(m, i)) /* channel c is made of channel c alone */
        return (Along){true, 0, 1};
    return (Along){node->attr.conv.groups == 1, 1, 1};
}

static Along inputs_along(const Match *m, uint32_t i) {
    const Node *node = match_node(m, i);
    const Shape *in = &match_in(m, i)->shape;
    if (node->op == OP_DECONV)
        return (Along){true, 0, 1};
    if (node->op == OP_FC) {
        uint64_t image = shape_count(in) / shape_dim(in, 0);
        return (Along){true, 1, (uint32_t)(image / shape_dim(in, 1))};
    }
    const ConvAttr *conv = &node->attr.conv;
    if (conv->groups > 1 && conv->groups == shape_dim(in, 1))
        return (Along){true, 0, conv->out_c / conv->groups};
    return (Along){conv->groups == 1, 1, 1};
}

static const double *multiply(Match *m, const double *old, uint32_t n,
                              const double *factor, uint32_t each) {
    double *product = ARENA_ARRAY(m->g->arena, double, n);
    for (uint32_t i = 0; i < n; i++)
        product[i] = (old ? old[i] : 1.0) * factor[i / each];
    return product;
}

static void scale_weights(Match *m, uint32_t i, const double *factor,
                          Along along) {
    ConstId *id = &match_node(m, i)->constant[CONST_WEIGHT];
    Const c = *graph_const(m->g, *id);
    uint32_t n = shape_dim(&c.shape, along.axis);
    if (along.axis == 0)
        c.mul0 = multiply(m, c.mul0, n, factor, along.each);
    else
        c.mul1 = multiply(m, c.mul1, n, factor, along.each);
    *id = graph_add_const(m->g, c);
}

static bool has_weights(const Match *m, uint32_t i) {
    return match_node(m, i)->constant[CONST_WEIGHT].i != NONE;
}

/* ---- SCALE behind ---- */

static bool takes_factors(const Match *m) {
    return has_no_act(m, 0) && has_weights(m, 0) &&
           outputs_along(m, 0).possible;
}

static bool folds_behind(const Match *m) {
    Node changed = *match_node(m, 0);
    changed.act = match_node(m, 1)->act;
    changed.constant[CONST_SLOPE] = match_node(m, 1)->constant[CONST_SLOPE];
    return takes_factors(m) &&
           (has_no_act(m, 1) ||
            keeps_engine(m, 0, &changed, &match_in(m, 0)->shape,
                         &match_out(m, 0)->shape));
}

/* Node 0 does what the SCALE `from` does to its channels. */
static void take_factors(Match *m, uint32_t from) {
    Affine affine = read_affine(m, from);
    double *bias =
        read_constant(m, match_node(m, 0)->constant[CONST_BIAS], affine.n, 0.0);
    scale_weights(m, 0, affine.a, outputs_along(m, 0));
    for (uint32_t i = 0; i < affine.n; i++)
        bias[i] = bias[i] * affine.a[i] + affine.b[i];
    ConstId id = write_constant(m, affine.n, bias);
    match_node(m, 0)->constant[CONST_BIAS] = id;
}

static void fold_behind(Match *m) {
    take_factors(m, 1);
    hand_down_act(m, 0, 1);
    match_fuse_behind(m, 0);
}

/* Of a maximum, factors that keep the order. */
static bool folds_behind_max(const Match *m) {
    if (match_node(m, 1)->attr.pool.kind != POOL_MAX || !has_no_act(m, 2) ||
        !takes_factors(m))
        return false;
    Affine affine = read_affine(m, 2);
    for (uint32_t i = 0; i < affine.n; i++)
        if (!(affine.a[i] >= 0))
            return false;
    return true;
}

static void fold_behind_max(Match *m) {
    take_factors(m, 2);
    match_out(m, 0)->origin = NO_TENSOR;
    match_fuse_behind(m, 1);
}

/* ---- SCALE before ---- */

static bool shifts(const Affine *affine) {
    for (uint32_t i = 0; i < affine->n; i++)
        if (affine->b[i] != 0.0)
            return true;
    return false;
}

static bool pads(const ConvAttr *conv) {
    return conv->pad[0] || conv->pad[1] || conv->pad_end[0] || conv->pad_end[1];
}

/* A padding zero is not shifted, and the border of a transposed convolution
 * sums fewer products: there only a pure factor folds. */
static bool folds_before(const Match *m) {
    const Node *node = match_node(m, 1);
    if (!has_no_act(m, 0) || !has_weights(m, 1) || !inputs_along(m, 1).possible)
        return false;
    Affine affine = read_affine(m, 0);
    if (!shifts(&affine))
        return true;
    const Const *weight = graph_const(m->g, node->constant[CONST_WEIGHT]);
    return node->op != OP_DECONV &&
           (node->op == OP_FC || !pads(&node->attr.conv)) &&
           shape_count(&weight->shape) <= READ_MOST;
}

/* Adds sum(W * b) to the bias of each output. Weights: [out, in, rest]. */
static void add_shifts(const Match *m, const Affine *affine, double *bias,
                       uint32_t n_out) {
    const Node *node = match_node(m, 1);
    const Const *c = graph_const(m->g, node->constant[CONST_WEIGHT]);
    uint64_t count = shape_count(&c->shape);
    uint32_t in = shape_dim(&c->shape, 1);
    uint64_t rest = count / n_out / in;
    double *weight = ARENA_ARRAY(m->context->scratch, double, count);
    const_read_f64(c, weight);
    Along along = inputs_along(m, 1);
    for (uint32_t o = 0; o < n_out; o++)
        for (uint32_t i = 0; i < in; i++) {
            uint32_t index = along.axis ? i : o;
            double shift = affine->b[index / along.each];
            for (uint64_t k = 0; k < rest; k++)
                bias[o] += *weight++ * shift;
        }
}

static void fold_before(Match *m) {
    Affine affine = read_affine(m, 0);
    if (shifts(&affine)) {
        uint32_t n = shape_dim(&match_out(m, 1)->shape, 1);
        double *bias =
            read_constant(m, match_node(m, 1)->constant[CONST_BIAS], n, 0.0);
        add_shifts(m, &affine, bias, n);
        ConstId id = write_constant(m, n, bias);
        match_node(m, 1)->constant[CONST_BIAS] = id;
    }
    scale_weights(m, 1, affine.a, inputs_along(m, 1));
    match_fuse_before(m, 0);
}

/* ---- padding into windows ---- */

enum { PAD_MOST = 1 << 15 }; /* far below what shape inference accepts */

static bool widen(const Node *pad, uint32_t *before, uint32_t *behind) {
    bool small = true;
    for (int axis = 0; axis < 2; axis++) {
        before[axis] += pad->attr.pad.before[axis];
        behind[axis] += pad->attr.pad.behind[axis];
        small &= before[axis] <= PAD_MOST && behind[axis] <= PAD_MOST;
    }
    return small;
}

static bool padded_conv(const Node *pad, Node *changed) {
    ConvAttr *conv = &changed->attr.conv;
    return pad->attr.pad.value == 0.0 && widen(pad, conv->pad, conv->pad_end);
}

/* Of whole windows an average counts all zeros, whoever padded; a window that
 * hangs over (ceil) would count otherwise. */
static bool padded_pool(const Node *pad, Node *changed) {
    PoolAttr *pool = &changed->attr.pool;
    bool own =
        pool->pad[0] || pool->pad[1] || pool->pad_end[0] || pool->pad_end[1];
    if (pool->kind != POOL_AVG || pool->global || pool->ceil ||
        (own && !pool->count_pad) || pad->attr.pad.value != 0.0)
        return false;
    pool->count_pad = true;
    bool fits = widen(pad, pool->pad, pool->pad_end);
    for (int axis = 0; axis < 2; axis++)
        fits &= pool->pad[axis] < pool->kernel[axis] &&
                pool->pad_end[axis] < pool->kernel[axis];
    return fits;
}

/* The last node of the match as it is with the padding in its windows. */
static bool padded(const Match *m, const Node *pad, Node *changed) {
    *changed = *match_node(m, m->n - 1);
    return changed->op == OP_CONV ? padded_conv(pad, changed)
                                  : padded_pool(pad, changed);
}

static bool takes(const Match *m, const Node *pad) {
    Node changed;
    return padded(m, pad, &changed) &&
           keeps_engine(m, m->n - 1, &changed,
                        &graph_tensor(m->g, pad->in[0])->shape,
                        &match_out(m, m->n - 1)->shape);
}

static bool takes_padding(const Match *m) {
    return takes(m, match_node(m, 0));
}

static void take_padding(Match *m) {
    Node changed;
    if (!padded(m, match_node(m, 0), &changed))
        bug("padding was to be taken");
    match_node(m, 1)->attr = changed.attr;
    match_fuse_before(m, 0);
}

static const Node *padding_of(const Match *m) {
    return graph_node(m->g, match_in(m, 0)->producer);
}

/* Others read it, too, and may do the same. */
static bool takes_shared_padding(const Match *m) {
    const Node *pad = padding_of(m);
    return pad->op == OP_PAD && pad->act.kind == ACT_NONE &&
           !match_is_private(m, match_node(m, 0)->in[0]) && takes(m, pad);
}

static void take_shared_padding(Match *m) {
    Node changed;
    const Node *pad = padding_of(m);
    if (!padded(m, pad, &changed))
        bug("padding was to be taken");
    changed.in = ARENA_COPY(m->g->arena, TensorId, pad->in, 1);
    *match_node(m, 0) = changed;
}

static const Rule rules[] = {
    {"bn-is-scale",
     1,
     {OPS(BN)},
     has_statistics,
     make_scale,
     "with its statistics known, a normalisation is a * x + b"},
    {"scale-scale",
     2,
     {OPS(SCALE), OPS(SCALE)},
     first_has_no_act,
     join_scales,
     "two affine layers are one"},
    {"scale-behind",
     2,
     {LINEAR, OPS(SCALE)},
     folds_behind,
     fold_behind,
     "a factor by output channel goes into the weights, a shift into the bias"},
    {"scale-behind-max",
     3,
     {LINEAR, OPS(POOL), OPS(SCALE)},
     folds_behind_max,
     fold_behind_max,
     "a maximum commutes with factors from 0 up and with shifts"},
    {"scale-before",
     2,
     {OPS(SCALE), LINEAR},
     folds_before,
     fold_before,
     "a factor by input channel goes into the weights; a shift into the bias "
     "where no padding is left unshifted"},
    {"pad",
     2,
     {ON_CODES | OPS(PAD), OPS(CONV) | OPS(POOL)},
     takes_padding,
     take_padding,
     "convolutions pad with zeros, and so do averages that count padding; a "
     "maximum does not"},
    {"pad-shared",
     1,
     {OPS(CONV) | OPS(POOL)},
     takes_shared_padding,
     take_shared_padding,
     "the same where others read what is padded"},
};

const RuleSet fold_rules = {"fold", sizeof rules / sizeof *rules, rules};
