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
    return node->act.kind == ACT_NONE &&
           (visible == 0 ||
            (visible == 1 && !in_visible && producer->op != OP_INPUT));
}

static bool same_shape(const Match *m) {
    return can_go(m) &&
           shape_equal(&match_in(m, 0)->shape, &match_out(m, 0)->shape);
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

static const Rule rules[] = {
    {"identity",
     1,
     {ON_CODES | OPS(IDENTITY)},
     can_go,
     bypass,
     "dropout, split and copies hand on their input"},
    {"same-shape",
     1,
     {ON_CODES | OPS(RESHAPE) | OPS(SLICE) | OPS(UPSAMPLE) | OPS(PAD)},
     same_shape,
     bypass,
     "a reshape, slice, upsampling or padding that changes no shape is none"},
    {"concat-of-one",
     1,
     {ON_CODES | OPS(CONCAT)},
     has_one_member,
     bypass,
     "one member is the whole"},
    {"reshape-reshape",
     2,
     {ON_CODES | OPS(RESHAPE), OPS(RESHAPE)},
     NULL,
     drop_first,
     "elements keep their order, so only the last shape matters"},
    {"reshape-fc",
     2,
     {ON_CODES | OPS(RESHAPE), OPS(FC)},
     keeps_images_apart,
     drop_first,
     "an inner product flattens by itself"},
};

const RuleSet clean_rules = {"clean", sizeof rules / sizeof *rules, rules};
