/* rules_clean.c - layers that compute nothing go.
 *
 * Values keep their names: where such a layer made a network output, the
 * tensor before it takes the output's name and origin. Nor is there need of an
 * activation that another one has computed; where something else reads what it
 * reads, both stay, as one result that waits for two readers takes memory.
 */
#include "passes/passes_int.h"

#include "graph/quant.h"

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

/* ---- reshapes at the ends of the network ---- */

/* Whether the tensor's elements lie in their order, without gaps. */
static bool lies_in_order(const Layout *layout, const Shape *shape) {
    Volume v = {0};
    shape_chw(shape, &v.c, &v.h, &v.w);
    uint32_t size[] = {v.c, v.h, v.w};
    uint64_t bytes = layout_case(layout, &v)->element;
    for (uint32_t dim = 3; dim-- > 0; bytes *= size[dim])
        if (size[dim] > 1 && layout_step(layout, &v, (LayoutDim)dim) != bytes)
            return false;
    return layout_bytes(layout, &v) == bytes;
}

/* Whoever gives or takes the tensor sees the same bytes in either shape. */
static bool bytes_stay(const Match *m, uint32_t i) {
    const HwSpec *spec = m->context->spec;
    const Shape *in = &match_in(m, i)->shape, *out = &match_out(m, i)->shape;
    bool stay = spec && spec->n_memories &&
                match_node(m, i)->act.kind == ACT_NONE &&
                shape_dim(in, 0) == 1 && shape_dim(out, 0) == 1;
    for (uint32_t k = 0; stay && k < spec->n_memories; k++)
        stay = lies_in_order(spec->memory[k].layout, in) &&
               lies_in_order(spec->memory[k].layout, out);
    return stay;
}

static bool is_given_so(const Match *m) {
    return !match_node(m, 0)->attr.state && match_out(m, 1)->shape.rank == 4 &&
           !graph_is_output(m->g, match_node(m, 1)->out[0]) && bytes_stay(m, 1);
}

static bool is_taken_so(const Match *m) {
    TensorId out = match_node(m, 0)->out[0];
    return graph_is_output(m->g, out) && match_readers(m, out) == 0 &&
           graph_state_of(m->g, out).i == NONE && can_go(m) &&
           match_is_private(m, match_node(m, 0)->in[0]) &&
           match_in(m, 0)->shape.rank == 4 && bytes_stay(m, 0);
}

static void give_so(Match *m) {
    match_in(m, 1)->shape = match_out(m, 1)->shape;
    match_bypass(m, 1);
}

/* ---- activations that are one ---- */

static bool same_act(const Node *a, const Node *b) {
    return a->op == OP_ACT && b->op == OP_ACT && !a->dead && !b->dead &&
           a->act.kind == b->act.kind && a->act.alpha == b->act.alpha &&
           a->act.lo == b->act.lo && a->act.hi == b->act.hi &&
           a->act.kind != ACT_PRELU;
}

/* The first of those that compute what the activation does, it among them; how
 * many there are. */
static NodeId first_of_same(const Match *m, uint32_t *n) {
    const Node *act = match_node(m, 0);
    NodeId first = NO_NODE;
    *n = 0;
    for (NodeId id = {0}; id.i < m->g->node.n; id.i++) {
        const Node *other = graph_node(m->g, id);
        if (!same_act(act, other) || other->in[0].i != act->in[0].i ||
            quant_is_at(m->g, other))
            continue;
        first = (*n)++ ? first : id;
    }
    return first;
}

static bool is_known(const Match *m) {
    const Node *act = match_node(m, 0);
    uint32_t readers = match_readers(m, act->in[0]), n;
    return readers > 1 && !graph_is_output(m->g, act->in[0]) &&
           !graph_is_output(m->g, act->out[0]) &&
           first_of_same(m, &n).i != m->node[0].i && n == readers;
}

static void take_known(Match *m) {
    uint32_t n;
    NodeId first = first_of_same(m, &n);
    match_hand_over(m, 0, graph_node(m->g, first)->out[0]);
    graph_merge_names(m->g, first, m->node[0]);
}

/* ---- what changes nothing but where elements are ---- */

/* Of two transpositions, one behind the other. */
static Shape both_orders(const Shape *first, const Shape *second) {
    Shape both = {.rank = first->rank};
    for (uint32_t i = 0; i < both.rank; i++)
        both.dim[i] = first->dim[second->dim[i]];
    return both;
}

static bool is_in_order(const Shape *perm) {
    for (uint32_t i = 0; i < perm->rank; i++)
        if (perm->dim[i] != i)
            return false;
    return true;
}

static bool has_no_act(const Match *m) {
    return match_node(m, 0)->act.kind == ACT_NONE;
}

static void turn_once(Match *m) {
    Node *second = match_node(m, 1);
    second->attr.perm =
        both_orders(&match_node(m, 0)->attr.perm, &second->attr.perm);
    match_fuse_before(m, 0);
}

static bool turns_nothing(const Match *m) {
    return is_in_order(&match_node(m, 0)->attr.perm) && can_go(m);
}

/* An activation between two transpositions that undo each other. */
static bool turns_back(const Match *m) {
    Shape both =
        both_orders(&match_node(m, 0)->attr.perm, &match_node(m, 2)->attr.perm);
    return has_no_act(m) && is_in_order(&both) &&
           match_node(m, 1)->act.kind != ACT_PRELU &&
           match_node(m, 2)->act.kind == ACT_NONE;
}

/* The last node takes over what the one between them does. */
static void act_without(Match *m) {
    Node *act = match_node(m, 1), *last = match_node(m, 2);
    TensorId x = match_node(m, 0)->in[0];
    last->op = OP_ACT;
    last->attr = (Attrs){0};
    last->act = act->act;
    last->in = ARENA_COPY(m->g->arena, TensorId, &x, 1);
    match_kill(m, 1);
    match_kill(m, 0);
}

/* A volume that is a line for a while. */
static bool shapes_back(const Match *m) {
    return has_no_act(m) && match_node(m, 1)->act.kind != ACT_PRELU &&
           match_node(m, 2)->act.kind == ACT_NONE &&
           shape_equal(&match_in(m, 0)->shape, &match_out(m, 2)->shape);
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
    {"input-reshape",
     2,
     {OPS(INPUT), OPS(RESHAPE)},
     is_given_so,
     give_so,
     "an input whose bytes are the same has the shape in which it is read"},
    {"output-reshape",
     1,
     {OPS(RESHAPE)},
     is_taken_so,
     bypass,
     "a result whose bytes are the same has the shape in which it is made"},
    {"transpose-transpose",
     2,
     {OPS(TRANSPOSE), OPS(TRANSPOSE)},
     has_no_act,
     turn_once,
     "axes are put in another order once"},
    {"same-order",
     1,
     {OPS(TRANSPOSE)},
     turns_nothing,
     bypass,
     "the order that they have is none"},
    {"act-between-orders",
     3,
     {OPS(TRANSPOSE), OPS(ACT), OPS(TRANSPOSE)},
     turns_back,
     act_without,
     "an activation sees no axes"},
    {"act-between-shapes",
     3,
     {OPS(RESHAPE), OPS(ACT), OPS(RESHAPE)},
     shapes_back,
     act_without,
     "an activation sees no shape"},
    {"same-act",
     1,
     {OPS(ACT)},
     is_known,
     take_known,
     "where nothing but the same activation reads a tensor, one will do"},
};

const RuleSet clean_rules = {"clean", sizeof rules / sizeof *rules, rules};
