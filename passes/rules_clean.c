/* rules_clean.c - layers that compute nothing go.
 *
 * Values keep their names: where such a layer made a network output, the
 * tensor before it takes the output's name and origin.
 */
#include "passes/passes_int.h"

/* ---- one node that is its own input ---- */

/* Outputs of the node that the outside sees. */
static uint32_t visible_outputs(const Match *m) {
    const Node *node = match_node(m, 0);
    uint32_t n = 0;
    for (uint32_t k = 0; k < node->n_out; k++)
        n += graph_is_output(m->g, node->out[k]);
    return n;
}

/* Two network outputs cannot become one, nor an input an output. */
static bool can_go(const Match *m) {
    uint32_t visible = visible_outputs(m);
    const Node *node = match_node(m, 0);
    const Node *producer = graph_node(m->g, match_in(m, 0)->producer);
    bool in_visible = graph_is_output(m->g, node->in[0]);
    bool plain = node->op == OP_ACT || node->act.kind == ACT_NONE;
    return plain && (visible == 0 ||
                     (visible == 1 && !in_visible && producer->op != OP_INPUT));
}

static bool same_shape(const Match *m) {
    return can_go(m) &&
           shape_equal(&match_in(m, 0)->shape, &match_out(m, 0)->shape);
}

static bool is_no_act(const Match *m) {
    return match_node(m, 0)->act.kind == ACT_NONE && can_go(m);
}

static bool has_one_member(const Match *m) {
    return match_node(m, 0)->n_in == 1 && can_go(m);
}

static void bypass(Match *m) {
    match_bypass(m, 0);
}

/* ---- reshapes before what does not see shapes ---- */

static bool keeps_images_apart(const Match *m) {
    return shape_dim(&match_in(m, 0)->shape, 0) ==
           shape_dim(&match_out(m, 0)->shape, 0);
}

static void drop_first(Match *m) {
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

static bool padded_conv(const Match *m, Node *changed) {
    *changed = *match_node(m, 1);
    ConvAttr *conv = &changed->attr.conv;
    return match_node(m, 0)->attr.pad.value == 0.0 &&
           widen(match_node(m, 0), conv->pad, conv->pad_end);
}

/* Of whole windows an average counts all zeros, whoever padded; a window that
 * hangs over (ceil) would count otherwise. */
static bool padded_pool(const Match *m, Node *changed) {
    *changed = *match_node(m, 1);
    PoolAttr *pool = &changed->attr.pool;
    bool own =
        pool->pad[0] || pool->pad[1] || pool->pad_end[0] || pool->pad_end[1];
    if (pool->kind != POOL_AVG || pool->global || pool->ceil ||
        (own && !pool->count_pad) || match_node(m, 0)->attr.pad.value != 0.0)
        return false;
    pool->count_pad = true;
    bool fits = widen(match_node(m, 0), pool->pad, pool->pad_end);
    for (int axis = 0; axis < 2; axis++)
        fits &= pool->pad[axis] < pool->kernel[axis] &&
                pool->pad_end[axis] < pool->kernel[axis];
    return fits;
}

static bool padded(const Match *m, Node *changed) {
    return match_node(m, 1)->op == OP_CONV ? padded_conv(m, changed)
                                           : padded_pool(m, changed);
}

static bool takes_padding(const Match *m) {
    Node changed;
    return padded(m, &changed) &&
           keeps_engine(m, 1, &changed, &match_in(m, 0)->shape,
                        &match_out(m, 1)->shape);
}

static void take_padding(Match *m) {
    Node changed;
    if (!padded(m, &changed))
        bug("padding was to be taken");
    match_node(m, 1)->attr = changed.attr;
    match_fuse_before(m, 0);
}

static const Rule rules[] = {
    {"identity",
     1,
     {OPS(IDENTITY)},
     can_go,
     bypass,
     "dropout, split and copies hand on their input"},
    {"no-activation",
     1,
     {OPS(ACT)},
     is_no_act,
     bypass,
     "the activation `none` hands on its input"},
    {"same-shape",
     1,
     {OPS(RESHAPE) | OPS(SLICE) | OPS(UPSAMPLE) | OPS(PAD)},
     same_shape,
     bypass,
     "a reshape, slice, upsampling or padding that changes no shape is none"},
    {"concat-of-one",
     1,
     {OPS(CONCAT)},
     has_one_member,
     bypass,
     "one member is the whole"},
    {"reshape-reshape",
     2,
     {OPS(RESHAPE), OPS(RESHAPE)},
     NULL,
     drop_first,
     "elements keep their order, so only the last shape matters"},
    {"reshape-fc",
     2,
     {OPS(RESHAPE), OPS(FC)},
     keeps_images_apart,
     drop_first,
     "an inner product flattens by itself"},
    {"pad",
     2,
     {OPS(PAD), OPS(CONV) | OPS(POOL)},
     takes_padding,
     take_padding,
     "convolutions pad with zeros, and so do averages that count padding; a "
     "maximum does not"},
};

const RuleSet clean_rules = {"clean", sizeof rules / sizeof *rules, rules};
