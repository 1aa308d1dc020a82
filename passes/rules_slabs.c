/* rules_slabs.c - depthwise layers by slabs of channels, where their operand
 * and their result do not fit into active memory together; attention by heads,
 * where keys and values of all heads take most of it.
 *
 * The layer in front makes some channels, the depthwise layer takes them, and
 * so on: only one slab of the larger operand is there at a time. Slabs of the
 * result lie beside each other (a concat that moves nothing).
 */
#include "passes/passes_int.h"

#include "graph/quant.h"

enum { MOST_SLABS = 32 };

static const HwMemory *active(const Match *m) {
    const HwSpec *spec = m->context->spec;
    bool asked = spec && spec->slabs && spec->n_active == 1;
    return asked ? &spec->memory[0] : NULL;
}

static uint64_t bytes_of(const HwMemory *memory, const Shape *shape,
                         uint32_t c) {
    Volume v = {.h = shape->dim[2], .w = shape->dim[3]};
    v.c = c ? c : shape->dim[1];
    return layout_bytes(memory->layout, &v);
}

static bool is_depthwise(const Match *m, uint32_t i) {
    const Shape *in = &match_in(m, i)->shape;
    return in->rank == 4 && in->dim[0] == 1 &&
           node_is_depthwise(m->g, match_node(m, i));
}

/* Slabs are slices of the stored constants. */
static bool has_slices(const Match *m, const Node *node) {
    for (int r = 0; r < CONST_ROLES; r++) {
        ConstId id = node->constant[r];
        if (id.i == NONE)
            continue;
        if ((r != CONST_WEIGHT && r != CONST_BIAS) ||
            !const_has_parts(graph_const(m->g, id)))
            return false;
    }
    return node->constant[CONST_WEIGHT].i != NONE;
}

static bool slices(const Match *m, uint32_t i) {
    return has_slices(m, match_node(m, i));
}

static bool too_large(const Match *m, uint32_t i) {
    const HwMemory *memory = active(m);
    return memory && is_depthwise(m, i) && slices(m, i) &&
           bytes_of(memory, &match_in(m, i)->shape, 0) +
                   bytes_of(memory, &match_out(m, i)->shape, 0) >
               memory->size;
}

/* ---- one layer by slabs ---- */

/* Channels first... of the result of such a node, from `in`, right before node
 * `at` of the match. */
static TensorId add_part(Match *m, Node like, uint32_t at, TensorId in,
                         uint32_t first, uint32_t n) {
    Quant quant = graph_tensor(m->g, like.out[0])->quant;
    ConvAttr conv = like.attr.conv;
    conv.out_c = n;
    conv.groups = conv.groups > 1 ? n : 1;
    NewNode node = {
        .op = OP_CONV,
        .name = arena_printf(m->g->arena, "%s__from%u", like.name, first),
        .n_in = 1,
        .in = &in,
        .attr = {.conv = conv},
        .act = like.act,
        .gloss = "X__fromN is X from channel N on"};
    TensorId out = match_add(m, at, &node);
    graph_tensor(m->g, out)->quant = quant;
    NodeId id = graph_tensor(m->g, out)->producer;
    graph_node(m->g, id)->no_bias = like.no_bias;
    node_take_constants(m->g, id, &like, first, n);
    return out;
}

static TensorId add_slab(Match *m, uint32_t i, uint32_t at, TensorId in,
                         uint32_t first, uint32_t n) {
    return add_part(m, *match_node(m, i), at, in, first, n);
}

/* ---- with the layer in front ---- */

/* Channels of a slab, so that all fits: what node 0 reads, a slab, the whole
 * result. 0: none does. */
static uint32_t slab_channels(const Match *m) {
    const HwMemory *memory = active(m);
    uint32_t c = match_out(m, 1)->shape.dim[1];
    uint32_t step = layout_part_step(memory->layout);
    uint64_t rest = bytes_of(memory, &match_in(m, 0)->shape, 0) +
                    bytes_of(memory, &match_out(m, 1)->shape, 0);
    for (uint32_t n = 2; step && n <= MOST_SLABS; n++) {
        uint32_t each = ((c + n - 1) / n + step - 1) / step * step;
        if (each < c && rest + bytes_of(memory, &match_in(m, 1)->shape, each) <=
                            memory->size)
            return each;
    }
    return 0;
}

static bool slabs_fit(const Match *m) {
    const Node *first = match_node(m, 0);
    return too_large(m, 1) && first->attr.conv.groups == 1 && slices(m, 0) &&
           match_engine(m, 0) >= 0 && match_engine(m, 1) >= 0 &&
           slab_channels(m);
}

static void make_slabs(Match *m) {
    uint32_t each = slab_channels(m), c = match_out(m, 1)->shape.dim[1], n = 0;
    TensorId slab[MOST_SLABS], in = match_node(m, 0)->in[0];
    for (uint32_t first = 0; first < c; first += each) {
        uint32_t some = c - first < each ? c - first : each;
        TensorId part = add_slab(m, 0, 1, in, first, some);
        slab[n++] = add_slab(m, 1, 1, part, first, some);
    }
    node_become_concat(m->g, match_node(m, 1), n, slab);
    match_kill(m, 0);
}

/* ---- behind a concat ---- */

static bool members_fit(const Match *m) {
    const Node *concat = match_node(m, 0);
    return too_large(m, 1) && concat->attr.axis.axis == 1 &&
           concat->act.kind == ACT_NONE && concat->n_in > 1 &&
           concat->n_in <= MOST_SLABS && match_engine(m, 1) >= 0;
}

static void by_members(Match *m) {
    const Node concat = *match_node(m, 0);
    TensorId slab[MOST_SLABS];
    uint32_t first = 0;
    for (uint32_t k = 0; k < concat.n_in; k++) {
        uint32_t some = graph_tensor(m->g, concat.in[k])->shape.dim[1];
        slab[k] = add_slab(m, 1, 1, concat.in[k], first, some);
        first += some;
    }
    node_become_concat(m->g, match_node(m, 1), concat.n_in, slab);
    match_kill(m, 0);
}

/* ---- attention ---- */

static const Node *maker_of(const Match *m, TensorId tensor) {
    return graph_node(m->g, graph_tensor(m->g, tensor)->producer);
}

/* What nobody else reads, and what parts can be made of. */
static bool is_made_alone(const Match *m, TensorId tensor, uint32_t parts) {
    const Node *maker = maker_of(m, tensor);
    return match_is_private(m, tensor) && maker->op == OP_CONV &&
           maker->attr.conv.groups == 1 && maker->act.kind != ACT_PRELU &&
           maker->attr.conv.out_c % parts == 0 && has_slices(m, maker);
}

/* Bytes that one row of queries takes with all that it attends to. */
static uint64_t least_attention(const Match *m, const HwMemory *memory,
                                uint32_t heads) {
    const Node *node = match_node(m, 0);
    const Shape *keys = &graph_tensor(m->g, node->in[1])->shape;
    Shape query = match_in(m, 0)->shape, out = match_out(m, 0)->shape;
    query.dim[2] = out.dim[2] = 1;
    return bytes_of(memory, keys, keys->dim[1] / heads) +
           bytes_of(memory, &query, query.dim[1] / heads) +
           bytes_of(memory, &out, out.dim[1] / heads);
}

/* Whether keys and values take more than half of active memory: what else is
 * alive there would leave it for them. */
static bool attends_too_much(const Match *m) {
    const Node *node = match_node(m, 0);
    const HwSpec *spec = m->context->spec;
    uint32_t heads = node->attr.mix.groups;
    if (!spec || spec->n_active != 1 || !node->attr.mix.attends || heads < 2 ||
        heads > MOST_SLABS || !node_mixes_all(node) ||
        match_engine(m, 0) < 0)
        return false;
    const HwMemory *memory = &spec->memory[0];
    const Node *both = maker_of(m, node->in[1]);
    return 2 * least_attention(m, memory, 1) > memory->size &&
           least_attention(m, memory, heads) <= memory->size &&
           both->op == OP_CONCAT && both->n_in == 2 &&
           both->attr.axis.axis == 1 && match_is_private(m, node->in[1]) &&
           is_made_alone(m, node->in[0], heads) &&
           is_made_alone(m, both->in[0], heads) &&
           is_made_alone(m, both->in[1], heads);
}

static TensorId head_of(Match *m, const Node *maker, uint32_t head,
                        uint32_t heads) {
    uint32_t n = maker->attr.conv.out_c / heads;
    return add_part(m, *maker, 0, maker->in[0], head * n, n);
}

static TensorId attend(Match *m, TensorId query, TensorId keys,
                       TensorId values, uint32_t head) {
    TensorId both[] = {keys, values};
    const char *name = match_node(m, 0)->name;
    const NewNode join = {
        .op = OP_CONCAT,
        .name = arena_printf(m->g->arena, "%s__keys%u", name, head),
        .n_in = 2,
        .in = both,
        .attr = {.axis = {.axis = 1}},
        .gloss = "X__keysN is what head N of X attends to"};
    TensorId in[] = {query, match_add(m, 0, &join)};
    NewNode node = {.op = OP_MIX,
                    .name =
                        arena_printf(m->g->arena, "%s__head%u", name, head),
                    .n_in = 2,
                    .in = in,
                    .attr = match_node(m, 0)->attr,
                    .gloss = "X__headN is head N of X by itself"};
    node.attr.mix.groups = 1;
    return match_add(m, 0, &node);
}

static void by_heads(Match *m) {
    const Node whole = *match_node(m, 0);
    const Node queries = *maker_of(m, whole.in[0]);
    const Node both = *maker_of(m, whole.in[1]);
    const Node keys = *maker_of(m, both.in[0]);
    const Node values = *maker_of(m, both.in[1]);
    uint32_t heads = whole.attr.mix.groups;
    TensorId head[MOST_SLABS];
    for (uint32_t i = 0; i < heads; i++) {
        TensorId k = head_of(m, &keys, i, heads);
        TensorId v = head_of(m, &values, i, heads);
        head[i] = attend(m, head_of(m, &queries, i, heads), k, v, i);
    }
    node_become_concat(m->g, match_node(m, 0), heads, head);
}

static const Rule rows[] = {
    {"heads",
     1,
     {OPS(MIX)},
     attends_too_much,
     by_heads,
     "attention whose keys and values leave no room goes head by head"},
    {"slabs",
     2,
     {ON_CODES | OPS(CONV), OPS(CONV)},
     slabs_fit,
     make_slabs,
     "a depthwise layer whose operand and result do not fit together takes "
     "some channels at a time, as the layer before makes them"},
    {"slabs-of-concat",
     2,
     {ON_CODES | OPS(CONCAT), OPS(CONV)},
     members_fit,
     by_members,
     "a depthwise layer takes the members of a concat one by one"},
};
const RuleSet slabs_rules = {"slabs", sizeof rows / sizeof *rows, rows};
