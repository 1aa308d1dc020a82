/* rules_forms.c - layers in the form in which an engine of the machine runs
 * them.
 *
 * - A slice of channels is a gather of channels; one of what another gathers
 *   takes it from where that one does. Factors of a gather (zeros, where
 *   channels are padded) are a scale behind it.
 * - A mean or a maximum over height and width is a global pool.
 * - What is one number by channel is the second operand.
 * - A difference, or a sum with coefficients, is a sum of scaled operands.
 * - A transposed convolution that is cut more on one side has zeros on the
 * other.
 * - Products with keys, softmax and sums of values are attention.
 */
#include "passes/legal_int.h"
#include "passes/passes_int.h"

#include "graph/quant.h"

static bool has_engine(const Match *m, HwOp op) {
    return m->context->spec && hwspec_engine(m->context->spec, op) >= 0;
}

static bool is_volume(const Shape *shape) {
    return shape->rank == 4 && shape->dim[0] == 1;
}

/* ---- gathers of channels ---- */

static bool gathers_channels(const Match *m, const Node *node) {
    return node->op == OP_GATHER && node->attr.gather.axis == 1 &&
           node->act.kind == ACT_NONE && quant_picks(m->g, node);
}

static ConstId table(Match *m, uint32_t n, const double *value) {
    Const c = {.shape = {2, {n, 1}},
               .kind = CONST_F64,
               .data = ARENA_COPY(m->g->arena, double, value, n)};
    return graph_add_const(m->g, c);
}

/* Node `i` becomes the gather of these channels of `from`, or of what that one
 * is itself a gather of. */
static void become_gather(Match *m, uint32_t i, TensorId from, uint32_t n,
                          double *index) {
    const Node *maker = graph_node(m->g, graph_tensor(m->g, from)->producer);
    if (gathers_channels(m, maker)) {
        double *known = read_constant(m, maker->constant[CONST_INDEX],
                                      maker->attr.gather.n, 0);
        for (uint32_t k = 0; k < n; k++)
            index[k] = known[(uint32_t)index[k]];
        from = maker->in[0];
    }
    double *one = ARENA_ARRAY(m->context->scratch, double, n);
    for (uint32_t k = 0; k < n; k++)
        one[k] = 1;
    ConstId indices = table(m, n, index), factors = table(m, n, one);
    Node *node = match_node(m, i);
    node->op = OP_GATHER;
    node->attr = (Attrs){.gather = {.axis = 1, .n = n, .taps = 1}};
    node->in = ARENA_COPY(m->g->arena, TensorId, &from, 1);
    node->constant[CONST_INDEX] = indices;
    node->constant[CONST_VALUE] = factors;
}

static bool is_slice_of_channels(const Match *m) {
    const Node *node = match_node(m, 0);
    return has_engine(m, HW_OP_GATHER) && node->attr.slice.axis == 1 &&
           node->act.kind == ACT_NONE && is_volume(&match_in(m, 0)->shape);
}

static void gather_slice(Match *m) {
    const Node *node = match_node(m, 0);
    uint32_t begin = node->attr.slice.begin;
    uint32_t n = shape_dim(&match_out(m, 0)->shape, 1);
    double *index = ARENA_ARRAY(m->context->scratch, double, n);
    for (uint32_t k = 0; k < n; k++)
        index[k] = begin + k;
    become_gather(m, 0, node->in[0], n, index);
}

/* A gather of volumes with factors. */
static bool gathers_with_factors(const Match *m) {
    const Node *node = match_node(m, 0);
    return has_engine(m, HW_OP_GATHER) && has_engine(m, HW_OP_SCALE) &&
           node->attr.gather.axis == 1 && node->attr.gather.taps == 1 &&
           node->constant[CONST_INDEX].i != NONE &&
           node->constant[CONST_VALUE].i != NONE &&
           is_volume(&match_in(m, 0)->shape) && !quant_picks(m->g, node);
}

static void scale_gathered(Match *m) {
    Node *node = match_node(m, 0);
    uint32_t n = node->attr.gather.n;
    const double *index = read_constant(m, node->constant[CONST_INDEX], n, 0);
    const double *factor = read_constant(m, node->constant[CONST_VALUE], n, 0);
    TensorId from = node->in[0];
    const NewNode gather = {
        .op = OP_GATHER,
        .name = "gathered",
        .n_in = 1,
        .in = &from,
        .attr = {.gather = {.axis = 1, .n = n, .taps = 1}},
        .gloss = "X__gathered are the channels of X before its factors"};
    TensorId in = match_add(m, 0, &gather);
    ConstId indices = table(m, n, index);
    ConstId ones = constant_of(m->g, (Shape){2, {n, 1}}, 1, 0);
    Const scales = {.shape = shape_of(n),
                    .kind = CONST_F64,
                    .data = ARENA_COPY(m->g->arena, double, factor, n)};
    ConstId scale = graph_add_const(m->g, scales);
    Node *made = graph_node(m->g, graph_tensor(m->g, in)->producer);
    made->constant[CONST_INDEX] = indices;
    made->constant[CONST_VALUE] = ones;
    node = match_node(m, 0);
    node->op = OP_SCALE;
    node->attr = (Attrs){0};
    node->no_bias = true;
    node->in = ARENA_COPY(m->g->arena, TensorId, &in, 1);
    for (uint32_t role = 0; role < CONST_ROLES; role++)
        node->constant[role] = NO_CONST;
    node->constant[CONST_SCALE] = scale;
}

/* ---- reductions ---- */

static Node global_pool(const Match *m) {
    Node pool = *match_node(m, 0);
    bool mean = pool.attr.reduce.kind == REDUCE_MEAN;
    pool.op = OP_POOL;
    pool.attr = (Attrs){.pool = {.kind = mean ? POOL_AVG : POOL_MAX,
                                 .global = true,
                                 .kernel = {1, 1},
                                 .stride = {1, 1}}};
    return pool;
}

static bool is_global_pool(const Match *m) {
    const Node *node = match_node(m, 0);
    bool known = node->attr.reduce.kind == REDUCE_MEAN ||
                 node->attr.reduce.kind == REDUCE_MAX;
    if (!known || node->attr.reduce.axes != (1u << 2 | 1u << 3) ||
        node->act.kind != ACT_NONE || !is_volume(&match_in(m, 0)->shape))
        return false;
    Node pool = global_pool(m);
    return candidate_engine(m, &pool, &match_in(m, 0)->shape,
                            &match_out(m, 0)->shape) >= 0;
}

static void pool_globally(Match *m) {
    *match_node(m, 0) = global_pool(m);
}

/* ---- one number by channel ---- */

/* Sums of codes by floats depend on the order. */
static bool is_channels_first(const Match *m) {
    Node node = *match_node(m, 0);
    bool sum = node.attr.elt.kind == ELT_ADD && !quant_is_at(m->g, &node);
    if (node.n_in != 2 || node.attr.elt.coeff ||
        (!sum && node.attr.elt.kind != ELT_MUL))
        return false;
    TensorId in[] = {node.in[1], node.in[0]};
    node.in = in;
    const Shape *full = &graph_tensor(m->g, in[0])->shape;
    return shape_count(full) > shape_count(&match_in(m, 0)->shape) &&
           candidate_engine(m, &node, full, &match_out(m, 0)->shape) >= 0;
}

static void put_channels_second(Match *m) {
    Node *node = match_node(m, 0);
    TensorId first = node->in[0];
    node->in[0] = node->in[1];
    node->in[1] = first;
}

/* ---- sums with coefficients, differences ---- */

static double coefficient(const Node *node, uint32_t k) {
    const EltAttr *elt = &node->attr.elt;
    if (elt->kind == ELT_SUB)
        return k ? -1 : 1;
    return elt->coeff ? elt->coeff[k] : 1;
}

static bool is_scaled(const Node *node, uint32_t k) {
    return coefficient(node, k) < 1 || coefficient(node, k) > 1;
}

static bool has_terms(const Match *m) {
    Node sum = *match_node(m, 0), scale = {.op = OP_SCALE, .name = "term"};
    bool scaled = false;
    for (uint32_t k = 0; k < sum.n_in; k++)
        scaled |= is_scaled(&sum, k);
    if (sum.n_in != 2 || !scaled ||
        (sum.attr.elt.kind != ELT_ADD && sum.attr.elt.kind != ELT_SUB))
        return false;
    sum.attr.elt = (EltAttr){ELT_ADD, NULL};
    scale.n_in = scale.n_out = 1;
    scale.in = scale.out = sum.in;
    const Shape *in = &match_in(m, 0)->shape;
    return shape_equal(in, &graph_tensor(m->g, sum.in[1])->shape) &&
           candidate_engine(m, &sum, in, &match_out(m, 0)->shape) >= 0 &&
           candidate_engine(m, &scale, in, in) >= 0;
}

static TensorId scaled_term(Match *m, uint32_t k, double by) {
    TensorId in = match_node(m, 0)->in[k];
    const NewNode term = {
        .op = OP_SCALE,
        .name = arena_printf(m->g->arena, "%s__term", match_node(m, 0)->name),
        .n_in = 1,
        .in = &in,
        .gloss = "X__term is an operand of the sum X times its coefficient"};
    uint32_t n = shape_dim(&graph_tensor(m->g, in)->shape, 1);
    TensorId out = match_add(m, 0, &term);
    ConstId scale = constant_of(m->g, shape_of(n), by, 0);
    ConstId bias = constant_of(m->g, shape_of(n), 0, 0);
    Node *node = graph_node(m->g, graph_tensor(m->g, out)->producer);
    node->constant[CONST_SCALE] = scale;
    node->constant[CONST_BIAS] = bias;
    return out;
}

static void scale_terms(Match *m) {
    for (uint32_t k = 0; k < 2; k++) {
        double by = coefficient(match_node(m, 0), k);
        if (!is_scaled(match_node(m, 0), k))
            continue;
        TensorId term = scaled_term(m, k, by);
        match_node(m, 0)->in[k] = term;
    }
    match_node(m, 0)->attr.elt = (EltAttr){ELT_ADD, NULL};
}

/* ---- quotients, the smaller of two ---- */

static TensorId add_act(Match *m, TensorId in, ActKind kind, const char *name,
                        const char *gloss) {
    const NewNode node = {.op = OP_ACT,
                          .name = name,
                          .n_in = 1,
                          .in = &in,
                          .act = {.kind = kind},
                          .gloss = gloss};
    return match_add(m, 0, &node);
}

/* Whether an engine multiplies the operands, in either order. */
static bool multiplies(const Match *m) {
    Node node = *match_node(m, 0);
    TensorId in[] = {node.in[0], node.in[1]}, turned[] = {in[1], in[0]};
    const Shape *out = &match_out(m, 0)->shape;
    node.attr.elt = (EltAttr){ELT_MUL, NULL};
    node.in = in;
    if (candidate_engine(m, &node, &graph_tensor(m->g, in[0])->shape, out) >= 0)
        return true;
    node.in = turned;
    return candidate_engine(m, &node, &graph_tensor(m->g, in[1])->shape, out) >=
           0;
}

static bool divides(const Match *m) {
    Node quotient = *match_node(m, 0), act = {.op = OP_ACT, .name = "inverse"};
    if (quotient.attr.elt.kind != ELT_DIV || quotient.n_in != 2 ||
        quotient.attr.elt.coeff || !multiplies(m))
        return false;
    act.act = (Act){.kind = ACT_RECIPROCAL};
    act.n_in = act.n_out = 1;
    act.in = act.out = &quotient.in[1];
    const Shape *shape = &graph_tensor(m->g, quotient.in[1])->shape;
    return candidate_engine(m, &act, shape, shape) >= 0;
}

static void multiply_by_inverse(Match *m) {
    TensorId inverse =
        add_act(m, match_node(m, 0)->in[1], ACT_RECIPROCAL, "inverse",
                "X__inverse is 1 / the second operand of the quotient X");
    Node *node = match_node(m, 0);
    node->in[1] = inverse;
    node->attr.elt = (EltAttr){ELT_MUL, NULL};
}

/* ---- negatives ---- */

static Node negative(const Match *m) {
    Node node = *match_node(m, 0);
    node.op = OP_SCALE;
    node.act = (Act){0};
    node.no_bias = true;
    return node;
}

static bool negates(const Match *m) {
    const Shape *shape = &match_in(m, 0)->shape;
    Node node = negative(m);
    return match_node(m, 0)->act.kind == ACT_NEG && shape->rank == 4 &&
           match_engine(m, 0) < 0 &&
           candidate_engine(m, &node, shape, shape) >= 0;
}

static void scale_by_minus_one(Match *m) {
    uint32_t n = shape_dim(&match_in(m, 0)->shape, 1);
    ConstId scale = constant_of(m->g, shape_of(n), -1, 0);
    *match_node(m, 0) = negative(m);
    match_node(m, 0)->constant[CONST_SCALE] = scale;
}

/* ---- transposed convolutions ---- */

/* Cut as much on both sides, of a kernel with `more` rows and columns of zeros:
 * before the others where `first`, else behind them. */
static Node evenly_cut(const Node *node, uint32_t more[2], bool first[2]) {
    Node even = *node;
    ConvAttr *conv = &even.attr.conv;
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t *const cut[] = {&conv->pad[i], &conv->pad_end[i]};
        first[i] = *cut[0] < *cut[1];
        more[i] = *cut[first[i]] - *cut[!first[i]];
        *cut[!first[i]] += more[i];
        conv->kernel[i] += more[i];
    }
    return even;
}

static bool is_cut_unevenly(const Match *m) {
    const Node *node = match_node(m, 0);
    const ConvAttr *conv = &node->attr.conv;
    uint32_t more[2];
    bool first[2];
    if ((conv->pad[0] == conv->pad_end[0] &&
         conv->pad[1] == conv->pad_end[1]) ||
        conv->dilation[0] != 1 || conv->dilation[1] != 1 ||
        node->constant[CONST_WEIGHT].i == NONE)
        return false;
    Node even = evenly_cut(node, more, first);
    return candidate_engine(m, &even, &match_in(m, 0)->shape,
                            &match_out(m, 0)->shape) >= 0;
}

static void cut_evenly(Match *m) {
    uint32_t more[2];
    bool first[2];
    Node even = evenly_cut(match_node(m, 0), more, first);
    const Const *is = graph_const(m->g, even.constant[CONST_WEIGHT]);
    Shape shape = is->shape;
    uint32_t h = shape.dim[2], w = shape.dim[3];
    size_t n = shape_count(&shape);
    shape.dim[2] += more[0];
    shape.dim[3] += more[1];
    double *old = ARENA_ARRAY(m->context->scratch, double, n);
    double *made = ARENA_ARRAY(m->g->arena, double, shape_count(&shape));
    const_read_f64(is, old);
    for (size_t i = 0; i < n; i++) {
        size_t row = i / w % h + (first[0] ? more[0] : 0);
        size_t column = i % w + (first[1] ? more[1] : 0);
        made[(i / w / h * shape.dim[2] + row) * shape.dim[3] + column] = old[i];
    }
    even.constant[CONST_WEIGHT] = graph_add_const(
        m->g, (Const){.shape = shape, .kind = CONST_F64, .data = made});
    *match_node(m, 0) = even;
}

/* ---- attention ---- */

static bool same_mix(const Node *a, const Node *b) {
    bool same = a->attr.mix.groups == b->attr.mix.groups;
    for (uint32_t i = 0; i < 2; i++)
        same &= a->attr.mix.windows[i] == b->attr.mix.windows[i] &&
                a->attr.mix.shift[i] == b->attr.mix.shift[i];
    return same;
}

/* What nobody else reads can be made where the operand lies. */
static bool is_free_operand(const Match *m, TensorId tensor) {
    const Tensor *t = graph_tensor(m->g, tensor);
    return match_is_private(m, tensor) &&
           graph_node(m->g, t->producer)->op == OP_CONV;
}

/* Whether values may begin where keys end. */
static bool values_start(const Match *m, const Shape *key) {
    const HwSpec *spec = m->context->spec;
    uint32_t n = key->dim[1];
    return concat_told(spec, HW_OP_CONV, n, n) &&
           concat_aligned(spec, HW_OP_CONV, key, n);
}

static bool is_attention(const Match *m) {
    const Node *scores = match_node(m, 0), *soft = match_node(m, 1);
    const Node *sums = match_node(m, 2);
    const Shape *key = &graph_tensor(m->g, scores->in[1])->shape;
    const Shape *value = &graph_tensor(m->g, sums->in[1])->shape;
    return has_engine(m, HW_OP_ATTENTION) && !scores->attr.mix.over_pixels &&
           !scores->attr.mix.attends && sums->attr.mix.over_pixels &&
           same_mix(scores, sums) && soft->attr.axis.axis == 1 &&
           (soft->attr.axis.groups ? soft->attr.axis.groups : 1) ==
               scores->attr.mix.groups &&
           scores->act.kind == ACT_NONE && soft->act.kind == ACT_NONE &&
           sums->act.kind == ACT_NONE && key->dim[2] == value->dim[2] &&
           key->dim[3] == value->dim[3] &&
           !same_tensor(scores->in[1], sums->in[1]) &&
           is_free_operand(m, scores->in[1]) &&
           is_free_operand(m, sums->in[1]) && values_start(m, key);
}

static void make_attention(Match *m) {
    TensorId both[] = {match_node(m, 0)->in[1], match_node(m, 2)->in[1]};
    TensorId query = match_node(m, 0)->in[0];
    const NewNode node = {
        .op = OP_CONCAT,
        .name = "keys",
        .n_in = 2,
        .in = both,
        .attr = {.axis = {.axis = 1}},
        .gloss = "X__keys is what X attends to: keys, and behind them values"};
    TensorId in[] = {query, match_add(m, 2, &node)};
    Node *attention = match_node(m, 2);
    attention->in = ARENA_COPY(m->g->arena, TensorId, in, 2);
    attention->attr.mix.over_pixels = 0;
    attention->attr.mix.attends = 1;
    match_kill(m, 1);
    match_kill(m, 0);
}

static const Rule rules[] = {
    {"slice-of-channels",
     1,
     {ON_CODES | OPS(SLICE)},
     is_slice_of_channels,
     gather_slice,
     "some channels, where an engine gathers channels"},
    {"gather-with-factors",
     1,
     {OPS(GATHER)},
     gathers_with_factors,
     scale_gathered,
     "channels by index, then factors, of which those of channels that are "
     "padded are 0"},
    {"reduce-plane",
     1,
     {OPS(REDUCE)},
     is_global_pool,
     pool_globally,
     "a mean or a maximum over height and width is a global pool"},
    {"channels-second",
     1,
     {ON_CODES | OPS(ELTWISE)},
     is_channels_first,
     put_channels_second,
     "engines take what is one number by channel as their second operand"},
    {"terms",
     1,
     {OPS(ELTWISE)},
     has_terms,
     scale_terms,
     "engines add without coefficients: operands are scaled before"},
    {"quotient",
     1,
     {OPS(ELTWISE)},
     divides,
     multiply_by_inverse,
     "engines multiply by 1 / x where they know that function"},
    {"negative",
     1,
     {OPS(ACT)},
     negates,
     scale_by_minus_one,
     "-x is x times -1"},
    {"cut-evenly",
     1,
     {OPS(DECONV)},
     is_cut_unevenly,
     cut_evenly,
     "engines cut transposed convolutions alike on both sides; taps of zeros "
     "make up for the rest"},
    {"attention",
     3,
     {OPS(MIX), OPS(SOFTMAX), OPS(MIX)},
     is_attention,
     make_attention,
     "an engine that attends holds the scores of few pixels at a time"},
};

const RuleSet forms_rules = {"forms", sizeof rules / sizeof *rules, rules};
