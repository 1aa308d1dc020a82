/* sample_nodes.c - nodes on codes that rules of rules_sample.c make, and
 * whether an engine would run them; see sample_nodes.h. */
#include "passes/sample_nodes.h"

Shape with_extents(const Shape *shape, uint32_t c, const uint32_t hw[2]) {
    return shape_nchw(shape->dim[0], c, hw[0], hw[1]);
}

bool is_code_volume(const Match *m, uint32_t i) {
    return match_in(m, i)->shape.rank == 4 &&
           match_out(m, i)->shape.rank == 4 &&
           match_in(m, i)->shape.dim[0] == 1 &&
           match_out(m, i)->quant.type != QUANT_NONE;
}

Attrs same_conv(uint32_t out_c, uint32_t groups, uint32_t kernel) {
    uint32_t pad = (kernel - 1) / 2;
    return (Attrs){.conv = {.out_c = out_c,
                            .groups = groups,
                            .kernel = {kernel, kernel},
                            .stride = {1, 1},
                            .dilation = {1, 1},
                            .pad = {pad, pad},
                            .pad_end = {pad, pad}}};
}

Attrs max_pool(uint32_t kernel, uint32_t stride, uint32_t pad_end) {
    return (Attrs){.pool = {.kind = POOL_MAX,
                            .kernel = {kernel, kernel},
                            .stride = {stride, stride},
                            .pad_end = {pad_end, pad_end}}};
}

/* Weights of codes, whichever: of an identity that is not there yet. */
static ConstId some_codes(const Graph *g) {
    for (uint32_t i = 0; i < g->constant.n; i++)
        if (const_has_codes(&g->constant.at[i], 1) && !g->constant.at[i].mul1)
            return (ConstId){i};
    return NO_CONST;
}

bool runs_conv_pool(const Match *m, const Attrs *conv, const Attrs *pool,
                    const Act *act, const Shape *in, const Shape *out) {
    Node node = *match_node(m, 0);
    node.op = OP_CONV_POOL;
    node.attr.conv = conv->conv;
    node.attr.pool = pool->pool;
    node.act = act ? *act : (Act){0};
    if (!act) {
        node.constant[CONST_WEIGHT] = some_codes(m->g);
        node.constant[CONST_BIAS] = NO_CONST;
    }
    return candidate_engine(m, &node, in, out) >= 0;
}

bool runs_conv(const Match *m, const Attrs *conv, const Shape *in,
               const Shape *out) {
    Node node = *match_node(m, 0);
    node.op = OP_CONV;
    node.attr = *conv;
    node.act = (Act){0};
    return candidate_engine(m, &node, in, out) >= 0;
}

/* ---- nodes ---- */

TensorId make_node(Match *m, uint32_t i, TensorId in, const Made *made) {
    NewNode node = {.op = made->op,
                    .name = arena_printf(m->g->arena, "%s__%s",
                                         match_node(m, i)->name, made->suffix),
                    .n_in = 1,
                    .in = &in,
                    .attr = made->attr,
                    .gloss = made->gloss};
    if (made->like)
        node.act = made->like->act;
    TensorId out = match_add(m, i, &node);
    graph_tensor(m->g, out)->quant = made->quant;
    Node *added = graph_node(m->g, graph_tensor(m->g, out)->producer);
    added->no_bias = !made->like || made->like->no_bias;
    for (int r = 0; made->like && r < CONST_ROLES; r++)
        added->constant[r] = made->like->constant[r];
    return out;
}

static ConstId codes_constant(Match *m, const Const *like, Shape shape,
                              const int8_t *value) {
    Const c = {.shape = shape, .kind = CONST_I8};
    if (like)
        c.mul0 = like->mul0;
    c.data = ARENA_COPY(m->g->arena, int8_t, value, shape_count(&shape));
    return graph_add_const(m->g, c);
}

TensorId make_identity(Match *m, uint32_t i, TensorId in, bool dense,
                       const uint32_t at[2]) {
    uint32_t c = graph_tensor(m->g, in)->shape.dim[1];
    uint32_t kernel = at[0] || at[1] || !dense ? 3 : 1, mid = kernel / 2;
    uint32_t of = dense ? c : 1, taps = kernel * kernel;
    Shape shape = shape_nchw(c, of, kernel, kernel);
    int8_t *value =
        ARENA_ARRAY(m->context->scratch, int8_t, (size_t)c * of * taps);
    for (uint32_t o = 0; o < c; o++)
        value[((size_t)o * of + (dense ? o : 0)) * taps +
              (mid + at[0]) * kernel + mid + at[1]] = 1;
    Made same = {.suffix = "moved",
                 .gloss =
                     "X__moved has the codes of what X reads, or those one "
                     "row or column further",
                 .op = OP_CONV,
                 .attr = same_conv(c, dense ? 1 : c, kernel),
                 .quant = graph_tensor(m->g, in)->quant};
    TensorId out = make_node(m, i, in, &same);
    ConstId weight = codes_constant(m, NULL, shape, value);
    graph_node(m->g, graph_tensor(m->g, out)->producer)
        ->constant[CONST_WEIGHT] = weight;
    return out;
}

TensorId make_padded(Match *m, uint32_t i, TensorId in,
                     const uint32_t behind[2]) {
    Made pad = {.suffix = "padded",
                .gloss = "X__padded is what X reads with zeros behind it",
                .op = OP_PAD,
                .attr = {.pad = {.behind = {behind[0], behind[1]}}},
                .quant = graph_tensor(m->g, in)->quant};
    return behind[0] || behind[1] ? make_node(m, i, in, &pad) : in;
}
