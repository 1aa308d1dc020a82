/* rules_fuse.c - activations and poolings go into the instruction before them.
 *
 * What the machine's engines cannot apply stays a layer of its own. A tensor
 * whose values no longer appear in the original graph loses its origin.
 */
#include "passes/passes_int.h"

#include "hwspec/emit.h"

#include "graph/quant.h"

#include <math.h>

#define TAKES_ACT                                                              \
    (OPS(CONV) | OPS(DECONV) | OPS(FC) | OPS(ELTWISE) | OPS(SCALE))

/* ---- activations ---- */

/* Node 0 with the activation of node `from`. */
static bool takes_act(const Match *m, uint32_t from) {
    const Node *giver = match_node(m, from);
    Node changed = *match_node(m, 0);
    if (changed.act.kind != ACT_NONE)
        return false;
    changed.act = giver->act;
    changed.constant[CONST_SLOPE] = giver->constant[CONST_SLOPE];
    return keeps_engine(m, 0, &changed, &match_in(m, 0)->shape,
                        &match_out(m, 0)->shape);
}

static void give_act(Match *m, uint32_t from) {
    const Node *giver = match_node(m, from);
    match_node(m, 0)->act = giver->act;
    match_node(m, 0)->constant[CONST_SLOPE] = giver->constant[CONST_SLOPE];
}

static bool act_fits(const Match *m) {
    return takes_act(m, 1);
}

static void fuse_act(Match *m) {
    give_act(m, 1);
    match_fuse_behind(m, 0);
}

/* The same codes on both sides, so that nothing is rounded between. */
static bool act_cuts_codes(const Match *m) {
    const HwSpec *spec = m->context->spec;
    ActKind kind = match_node(m, 1)->act.kind;
    bool cuts = kind == ACT_RELU || kind == ACT_RELU6 || kind == ACT_CLIP;
    return spec && program_emit(spec) && cuts &&
           quant_equal(&match_out(m, 0)->quant, &match_out(m, 1)->quant) &&
           takes_act(m, 1);
}

/* ---- activations behind a maximum ---- */

static bool never_falls(const Act *act) {
    switch (act->kind) {
    case ACT_RELU:
    case ACT_RELU6:
    case ACT_SIGMOID:
    case ACT_TANH:
    case ACT_CLIP:
        return true;
    case ACT_LEAKY:
        return act->alpha >= 0;
    default:
        return false;
    }
}

static bool act_commutes(const Match *m) {
    return match_node(m, 1)->attr.pool.kind == POOL_MAX &&
           never_falls(&match_node(m, 2)->act) && takes_act(m, 2);
}

static void fuse_act_before_pool(Match *m) {
    give_act(m, 2);
    match_out(m, 0)->origin = NO_TENSOR;
    match_fuse_behind(m, 1);
}

/* ---- activations behind a concat ---- */

/* Whether the layer that makes the member, for the concat alone, can apply the
 * activation of node 1. */
static bool member_takes_act(const Match *m, TensorId member) {
    const Node *giver = match_node(m, 1);
    Node changed = *graph_node(m->g, graph_tensor(m->g, member)->producer);
    if (!(TAKES_ACT >> changed.op & 1) || changed.act.kind != ACT_NONE ||
        !match_is_private(m, member))
        return false;
    const Shape *in = &graph_tensor(m->g, changed.in[0])->shape;
    const Shape *out = &graph_tensor(m->g, member)->shape;
    bool runs = candidate_engine(m, &changed, in, out) >= 0;
    changed.act = giver->act;
    return !runs || candidate_engine(m, &changed, in, out) >= 0;
}

/* Most channels need no layer for it then. */
static bool most_take_act(const Match *m) {
    const Node *concat = match_node(m, 0), *act = match_node(m, 1);
    uint32_t taken = 0;
    if (concat->n_in < 2 || concat->attr.axis.axis != 1 ||
        concat->act.kind != ACT_NONE || act->act.kind == ACT_PRELU)
        return false;
    for (uint32_t k = 0; k < concat->n_in; k++)
        if (member_takes_act(m, concat->in[k]))
            taken += shape_dim(&graph_tensor(m->g, concat->in[k])->shape, 1);
    return 2 * taken > shape_dim(&match_out(m, 0)->shape, 1);
}

static void act_on_members(Match *m) {
    for (uint32_t k = 0; k < match_node(m, 0)->n_in; k++) {
        TensorId member = match_node(m, 0)->in[k];
        NodeId maker = graph_tensor(m->g, member)->producer;
        NewNode act = {.op = OP_ACT,
                       .n_in = 1,
                       .in = &member,
                       .act = match_node(m, 1)->act,
                       .gloss = "X_Y is the activation X of Y alone, which "
                                "stood behind a concat of Y and others"};
        act.name = arena_printf(m->g->arena, "%s_%s", match_node(m, 1)->name,
                                graph_node(m->g, maker)->name);
        TensorId done = match_add(m, 0, &act);
        match_node(m, 0)->in[k] = done;
    }
    match_out(m, 0)->origin = NO_TENSOR;
    match_fuse_behind(m, 0);
}

/* ---- activations by themselves ---- */

static bool only_scale_has_act(const Match *m) {
    Node scale = *match_node(m, 0);
    scale.op = OP_SCALE;
    return match_engine(m, 0) < 0 &&
           candidate_engine(m, &scale, &match_in(m, 0)->shape,
                            &match_out(m, 0)->shape) >= 0;
}

static void make_scale(Match *m) {
    uint32_t n = shape_dim(&match_in(m, 0)->shape, 1);
    ConstId one = constant_of(m->g, shape_of(n), 1.0, 0);
    ConstId zero = constant_of(m->g, shape_of(n), 0.0, 0);
    Node *node = match_node(m, 0);
    node->op = OP_SCALE;
    node->constant[CONST_SCALE] = one;
    node->constant[CONST_BIAS] = zero;
}

/* ---- activations on codes ---- */

static bool saturates(const Match *m) {
    Node bare = *match_node(m, 0);
    bare.act = (Act){0};
    return match_node(m, 0)->act.kind != ACT_NONE &&
           quant_is_at(m->g, match_node(m, 0)) &&
           !quant_act_cuts(m->g, match_node(m, 0)) && match_engine(m, 0) < 0 &&
           candidate_engine(m, &bare, &match_in(m, 0)->shape,
                            &match_out(m, 0)->shape) >= 0;
}

static void drop_act(Match *m) {
    match_node(m, 0)->act = (Act){0};
}

/* ---- functions of codes behind sums ---- */

/* Real bounds of an activation on codes: of the activation and of the type. */
static bool real_bounds(const Act *act, const Quant *q, double bound[2]) {
    bound[0] = quant_real(q, quant_type[q->type].lo);
    bound[1] = quant_real(q, quant_type[q->type].hi);
    double lo = act->kind == ACT_CLIP ? act->lo : 0;
    double hi = act->kind == ACT_CLIP ? act->hi : 6;
    if (act->kind == ACT_NONE)
        return true;
    bound[0] = fmax(bound[0], lo);
    if (act->kind != ACT_RELU)
        bound[1] = fmin(bound[1], hi);
    return act->kind == ACT_RELU || act->kind == ACT_RELU6 ||
           act->kind == ACT_CLIP;
}

/* Both activations, and the range of the codes between them, as one; false if
 * they are none that engines know. */
static bool joint_act(const Match *m, Act *out) {
    const Node *conv = match_node(m, 0), *then = match_node(m, 1);
    const Quant *between = &match_out(m, 0)->quant;
    double a[2], b[2];
    *out = then->act;
    if (then->act.kind == ACT_LEAKY) { /* of numbers in the codes' range */
        real_bounds(&conv->act, between, a);
        out->lo = a[0];
        out->hi = a[1];
        return conv->act.kind == ACT_NONE;
    }
    if (!real_bounds(&conv->act, between, a) ||
        !real_bounds(&then->act, &match_out(m, 1)->quant, b))
        return false;
    *out =
        (Act){.kind = ACT_CLIP, .lo = fmax(a[0], b[0]), .hi = fmin(a[1], b[1])};
    return out->lo < out->hi;
}

static bool act_on_sums(const Match *m) {
    const HwSpec *spec = m->context->spec;
    Node changed = *match_node(m, 0);
    if (!spec || !spec->act_of_codes ||
        match_out(m, 0)->quant.type == QUANT_NONE ||
        match_out(m, 1)->quant.type == QUANT_NONE ||
        match_node(m, 1)->n_out != 1 || !joint_act(m, &changed.act))
        return false;
    changed.out = match_node(m, 1)->out;
    return candidate_engine(m, &changed, &match_in(m, 0)->shape,
                            &match_out(m, 0)->shape) >= 0;
}

static void put_act_on_sums(Match *m) {
    Act both;
    joint_act(m, &both);
    match_node(m, 0)->act = both;
    match_out(m, 0)->quant = match_out(m, 1)->quant;
    match_fuse_behind(m, 0);
}

static const Rule fuse[] = {
    {"act-saturates",
     1,
     {ON_CODES | TAKES_ACT | OPS(POOL)},
     saturates,
     drop_act,
     "codes end where the activation would cut, and the engine has none"},
    {"act",
     2,
     {TAKES_ACT, OPS(ACT)},
     act_fits,
     fuse_act,
     "an engine applies it on the way out"},
    {"act-cuts-codes",
     2,
     {ON_CODES | TAKES_ACT, OPS(ACT)},
     act_cuts_codes,
     fuse_act,
     "words of the layer cut its codes"},
    {"act-of-codes",
     2,
     {ON_CODES | OPS(CONV), OPS(ACT) | OPS(IDENTITY) | REQUANTS},
     act_on_sums,
     put_act_on_sums,
     "an engine's table makes other codes of the sum itself; between, it would "
     "be rounded twice"},
    {"act-before-max",
     3,
     {TAKES_ACT, OPS(POOL), OPS(ACT)},
     act_commutes,
     fuse_act_before_pool,
     "a maximum commutes with what never falls, and the layer before the pool "
     "can apply it"},
    {"act-before-concat",
     2,
     {OPS(CONCAT), OPS(ACT)},
     most_take_act,
     act_on_members,
     "layers before the concat can apply it; behind it, it would take a volume "
     "of its own"},
    {"act-is-scale",
     1,
     {OPS(ACT)},
     only_scale_has_act,
     make_scale,
     "1 * x + 0 and the activation, where an engine scales but has no lone "
     "activation"},
};
const RuleSet fuse_rules = {"fuse", sizeof fuse / sizeof *fuse, fuse};

/* ---- convolution and pool in one instruction ---- */

static Node conv_pool(const Node *conv, const Node *pool) {
    Node node = *pool;
    node.op = OP_CONV_POOL;
    node.attr.conv = conv->attr.conv;
    node.attr.pool = pool->attr.pool;
    node.act = conv->act;
    node.conv_name = conv->name;
    node.no_bias = conv->no_bias;
    for (int role = 0; role < CONST_ROLES; role++)
        node.constant[role] = conv->constant[role];
    node.in = conv->in;
    return node;
}

static bool pipelines(const Match *m) {
    Node node = conv_pool(match_node(m, 0), match_node(m, 1));
    return candidate_engine(m, &node, &match_in(m, 0)->shape,
                            &match_out(m, 1)->shape) >= 0;
}

static void make_conv_pool(Match *m) {
    Node *pool = match_node(m, 1);
    *pool = conv_pool(match_node(m, 0), pool);
    match_fuse_before(m, 0);
}

static const Rule pipeline[] = {
    {"conv-pool",
     2,
     {ON_CODES | OPS(CONV), OPS(POOL)},
     pipelines,
     make_conv_pool,
     "rows of the convolution go to the pool without a stay in memory"},
};
const RuleSet pipeline_rules = {"pipeline", sizeof pipeline / sizeof *pipeline,
                                pipeline};

/* ---- pools around a concat ---- */

static bool member_pipelines(const Match *m, TensorId member) {
    const Node *conv = graph_node(m->g, graph_tensor(m->g, member)->producer);
    if (conv->op != OP_CONV || !match_is_private(m, member))
        return false;
    Node node = conv_pool(conv, match_node(m, 1));
    Shape out = match_out(m, 1)->shape;
    out.dim[1] = conv->attr.conv.out_c;
    return candidate_engine(m, &node, &graph_tensor(m->g, conv->in[0])->shape,
                            &out) >= 0;
}

static bool members_pipeline(const Match *m) {
    const Node *concat = match_node(m, 0);
    if (!m->context->spec || !m->context->spec->pool_around_concat ||
        concat->n_in < 2 || concat->attr.axis.axis != 1 ||
        concat->act.kind != ACT_NONE)
        return false;
    for (uint32_t k = 0; k < concat->n_in; k++)
        if (!member_pipelines(m, concat->in[k]))
            return false;
    return true;
}

static void pool_members(Match *m) {
    for (uint32_t k = 0; k < match_node(m, 0)->n_in; k++) {
        TensorId member = match_node(m, 0)->in[k];
        NodeId conv = graph_tensor(m->g, member)->producer;
        const char *name =
            arena_printf(m->g->arena, "%s_%s", graph_node(m->g, conv)->name,
                         match_node(m, 1)->name);
        NewNode pool = {.op = OP_POOL,
                        .name = name,
                        .n_in = 1,
                        .in = &member,
                        .attr = match_node(m, 1)->attr,
                        .gloss = "X_P is X behind the pool P, which stood "
                                 "behind a concat of X and others"};
        TensorId pooled = match_add(m, 0, &pool);
        match_node(m, 0)->in[k] = pooled;
    }
    match_out(m, 0)->shape = match_out(m, 1)->shape;
    match_fuse_behind(m, 0);
}

static const Rule around[] = {
    {"pool-around-concat",
     2,
     {ON_CODES | OPS(CONCAT), OPS(POOL)},
     members_pipeline,
     pool_members,
     "a pool works channel by channel; before the concat each convolution can "
     "pipeline into its own"},
};
const RuleSet around_rules = {"around", sizeof around / sizeof *around, around};
