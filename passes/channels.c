/* channels.c - convolutions of more channels than an engine takes.
 *
 * In: a fused graph. Where no engine runs a convolution, but one would run it
 * over some of the input channels, it becomes a sum,
 *
 *     conv(x) = conv_1(x_1) + conv_2(x_2) + ...
 *
 * and where one would make some of the output channels, a concat of those. The
 * parts x_k are made by themselves: what makes x makes its channels part by
 * part, through layers that compute each channel by itself up to convolutions;
 * all that is no convolution has a part picked out by one of 1 x 1, whose
 * weights are 0 and 1. Sums are of real numbers: quantised layers have their
 * output channels parted only, since partial sums would be rounded.
 *
 * Of a concat a part is some of its members, where these can be told apart: it
 * is then a view of what others read. Readers of longer and longer concats of
 * the same tensors take the same parts, and `canon` makes them one.
 */
#include "graph/op_traits.h"
#include "passes/insert.h"
#include "passes/passes_int.h"

#include <string.h>

enum { MOST_PARTS = 16, MOST_DEPTH = 32 };

typedef enum Manner { BY_PICKING, BY_CONCAT, BY_PRODUCER } Manner;

/* How parts of a tensor are made. */
typedef struct Way {
    Manner manner;
    uint32_t depth; /* layers that are parted above it */
    bool may;       /* an engine picks what no layer makes */
} Way;

typedef struct Parts {
    Graph *g;
    PassContext *context;
    Insertions insertions;
    VEC(Way) way; /* by tensor */
} Parts;

typedef VEC(TensorId) Tensors;

/* Channels [at[k], at[k + 1]) are part k. */
typedef struct Bounds {
    uint32_t n, at[MOST_PARTS + 1];
} Bounds;

static uint32_t channels(const Parts *p, TensorId t) {
    return shape_dim(&graph_tensor(p->g, t)->shape, 1);
}

static bool on_codes(const Parts *p, const Node *node) {
    return graph_tensor(p->g, node->in[0])->quant.type != QUANT_NONE ||
           graph_tensor(p->g, node->out[0])->quant.type != QUANT_NONE;
}

/* ---- constants ---- */

/* Reads what must be read before there are parts: all weights, for parts along
 * axis 1. */
static void settle(Parts *p, NodeId id, uint32_t axis) {
    for (int r = 0; r < CONST_ROLES; r++) {
        ConstId *at = &graph_node(p->g, id)->constant[r];
        if (at->i == NONE || (!axis && const_has_parts(graph_const(p->g, *at))))
            continue;
        Const settled = const_settled(p->g->arena, graph_const(p->g, *at));
        *at = graph_add_const(p->g, settled);
    }
}

/* ---- nodes ---- */

/* A node of no constants, right before node `before`. */
static TensorId add(Parts *p, NodeId before, const Node *like,
                    const char *suffix, uint32_t number, uint32_t n_in,
                    const TensorId *in) {
    Graph *g = p->g;
    const Node from = *like;
    const Quant quant = graph_tensor(g, from.out[0])->quant;
    const char *name =
        arena_printf(g->arena, "%s__%s%u", from.name, suffix, number);
    NodeId id = graph_add(g, from.op, name, from.loc, n_in, in);
    Node *node = graph_node(g, id);
    node->attr = from.attr;
    node->act = from.act;
    node->no_bias = from.no_bias;
    TensorId out = graph_add_output(g, id, name);
    graph_tensor(g, out)->quant = quant;
    insert_before(p->context->scratch, &p->insertions, id, before);
    return out;
}

static void note_way(Parts *p, TensorId t);

static void infer(Parts *p, TensorId out) {
    NodeId id = graph_tensor(p->g, out)->producer;
    if (!graph_infer(p->g, id, p->context->diag))
        bug("pass channels: no shape for %s", graph_node(p->g, id)->name);
    note_way(p, out);
}

/* ---- channels of a result by themselves ---- */

/* Whether channel c of the result is made of channel c of each operand. */
static bool goes_by_channel(const Parts *p, const Node *node) {
    for (uint32_t k = 1; k < node->n_in; k++)
        if (!shape_equal(&graph_tensor(p->g, node->in[0])->shape,
                         &graph_tensor(p->g, node->in[k])->shape))
            return false;
    return op_has(node->op, OP_BY_CHANNEL) || node_is_depthwise(p->g, node);
}

static void cut(Parts *p, TensorId t, const Bounds *bounds, NodeId reader,
                TensorId *part);

static TensorId some_results(Parts *p, NodeId id, const TensorId *in,
                             uint32_t first, uint32_t n) {
    const Node like = *graph_node(p->g, id);
    TensorId out = add(p, id, &like, "from", first, like.n_in, in);
    NodeId made = graph_tensor(p->g, out)->producer;
    if (like.op == OP_CONV) {
        ConvAttr *conv = &graph_node(p->g, made)->attr.conv;
        conv->out_c = n;
        conv->groups = conv->groups > 1 ? n : 1;
    }
    node_take_constants(p->g, made, &like, first, n);
    infer(p, out);
    return out;
}

/* The producer's result as a concat of parts, made from operands or from parts
 * of them. */
static void cut_producer(Parts *p, NodeId id, const Bounds *bounds,
                         TensorId *part) {
    Arena *scratch = p->context->scratch;
    settle(p, id, 0);
    const Node node = *graph_node(p->g, id);
    bool by_channel = goes_by_channel(p, &node);
    TensorId *operand =
        ARENA_ARRAY(scratch, TensorId, (size_t)node.n_in * MOST_PARTS);
    for (uint32_t k = 0; k < node.n_in && by_channel; k++)
        cut(p, node.in[k], bounds, id, operand + k * MOST_PARTS);
    TensorId *in = ARENA_ARRAY(scratch, TensorId, node.n_in);
    for (uint32_t i = 0; i < bounds->n; i++) {
        for (uint32_t k = 0; k < node.n_in; k++)
            in[k] = by_channel ? operand[k * MOST_PARTS + i] : node.in[k];
        part[i] = some_results(p, id, in, bounds->at[i],
                               bounds->at[i + 1] - bounds->at[i]);
    }
    node_become_concat(p->g, graph_node(p->g, id), bounds->n, part);
    note_way(p, node.out[0]);
    graph_gloss(p->g, "X__fromN is X from channel N on");
}

/* ---- of concats, and of all else ---- */

/* The bounds within [first, end), from `first` on. */
static Bounds within(const Bounds *bounds, uint32_t first, uint32_t end) {
    Bounds inner = {.n = 0, .at = {0}};
    for (uint32_t i = 1; i < bounds->n; i++)
        if (bounds->at[i] > first && bounds->at[i] < end)
            inner.at[++inner.n] = bounds->at[i] - first;
    inner.at[++inner.n] = end - first;
    return inner;
}

/* The members of a concat, or what those that are concats have as members. */
static Tensors members(const Parts *p, TensorId concat) {
    Arena *scratch = p->context->scratch;
    Tensors open = {0}, all = {0};
    vec_push(scratch, &open, concat);
    while (open.n) {
        TensorId t = open.at[--open.n];
        const Node *node = graph_node(p->g, graph_tensor(p->g, t)->producer);
        if (p->way.at[t.i].manner != BY_CONCAT)
            vec_push(scratch, &all, t);
        else
            for (uint32_t k = node->n_in; k > 0; k--)
                vec_push(scratch, &open, node->in[k - 1]);
    }
    return all;
}

static TensorId join(Parts *p, NodeId id, uint32_t first,
                     const Tensors *pieces) {
    if (pieces->n == 1)
        return pieces->at[0];
    const Node concat = *graph_node(p->g, id);
    TensorId whole = add(p, id, &concat, "from", first, pieces->n, pieces->at);
    infer(p, whole);
    graph_gloss(p->g, "X__fromN is X from channel N on");
    return whole;
}

static void cut_concat(Parts *p, NodeId id, const Bounds *bounds,
                       TensorId *part) {
    Tensors piece[MOST_PARTS] = {{0}};
    Tensors member = members(p, graph_node(p->g, id)->out[0]);
    for (uint32_t k = 0, first = 0, i = 0; k < member.n; k++) {
        uint32_t end = first + channels(p, member.at[k]);
        Bounds inner = within(bounds, first, end);
        TensorId some[MOST_PARTS];
        cut(p, member.at[k], &inner, id, some);
        for (uint32_t s = 0; s < inner.n; s++) {
            while (bounds->at[i + 1] <= first + inner.at[s])
                i++;
            vec_push(p->context->scratch, &piece[i], some[s]);
        }
        first = end;
    }
    for (uint32_t i = 0; i < bounds->n; i++)
        part[i] = join(p, id, bounds->at[i], &piece[i]);
}

/* Weights of 0 and 1 that pick channels first... of so many. */
static ConstId picks(Parts *p, uint32_t of, uint32_t first, uint32_t n) {
    float *one = ARENA_ARRAY(p->g->arena, float, (size_t)n *of);
    for (uint32_t i = 0; i < n; i++)
        one[(size_t)i * of + first + i] = 1;
    return graph_add_const(
        p->g,
        (Const){.shape = {4, {n, of, 1, 1}}, .kind = CONST_F32, .data = one});
}

static Node picker(const Parts *p, TensorId *t) {
    const Tensor *from = graph_tensor(p->g, *t);
    Node conv = {.op = OP_CONV,
                 .name = from->name,
                 .loc = from->loc,
                 .n_in = 1,
                 .in = t,
                 .n_out = 1,
                 .out = t,
                 .no_bias = true,
                 .attr = {.conv = {.groups = 1,
                                   .kernel = {1, 1},
                                   .stride = {1, 1},
                                   .dilation = {1, 1}}}};
    for (int r = 0; r < CONST_ROLES; r++)
        conv.constant[r] = NO_CONST;
    return conv;
}

static void pick(Parts *p, TensorId t, const Bounds *bounds, NodeId reader,
                 TensorId *part) {
    Node conv = picker(p, &t);
    uint32_t all = channels(p, t);
    for (uint32_t i = 0; i < bounds->n; i++) {
        uint32_t first = bounds->at[i], n = bounds->at[i + 1] - first;
        conv.attr.conv.out_c = n;
        part[i] = add(p, reader, &conv, "from", first, 1, &t);
        graph_node(p->g, graph_tensor(p->g, part[i])->producer)
            ->constant[CONST_WEIGHT] = picks(p, all, first, n);
        infer(p, part[i]);
    }
    graph_gloss(p->g, "X__fromN is X from channel N on");
}

/* Parts of a tensor that `reader` reads. */
static void cut(Parts *p, TensorId t, const Bounds *bounds, NodeId reader,
                TensorId *part) {
    NodeId producer = graph_tensor(p->g, t)->producer;
    if (bounds->n == 1) {
        part[0] = t;
        return;
    }
    switch (p->way.at[t.i].manner) {
    case BY_CONCAT:
        cut_concat(p, producer, bounds, part);
        break;
    case BY_PRODUCER:
        cut_producer(p, producer, bounds, part);
        break;
    case BY_PICKING:
        pick(p, t, bounds, reader, part);
    }
}

/* ---- convolutions that no engine runs ---- */

/* In how many parts an engine would run it, by channels of its input and of
 * its result, which start at multiples of `step`; least instructions. */
typedef struct Split {
    uint32_t in, out, step;
} Split;

/* Channels at whose multiples parts of a concat may start; 1: nowhere. */
static uint32_t aligned_step(const Parts *p, const Shape *shape) {
    enum { MOST = 256 };
    const HwSpec *spec = p->context->spec;
    uint32_t unit = layout_part_step(spec->memory[0].layout);
    for (uint32_t step = unit; step && step <= MOST; step *= 2)
        if (concat_aligned(spec, HW_OP_CONV, shape, step))
            return step;
    return 1;
}

/* Parts of nearly one size; fewer than n where these are too many. */
static Bounds bounds_of(uint32_t c, uint32_t n, uint32_t step) {
    uint32_t each = ((c + n - 1) / n + step - 1) / step * step;
    Bounds bounds = {.n = 0, .at = {0}};
    for (uint32_t first = 0; first < c; first += each)
        bounds.at[++bounds.n] = c - first < each ? c : first + each;
    return bounds;
}

static bool adds(const Parts *p, const Node *node) {
    TensorId both[] = {node->out[0], node->out[0]};
    Node sum = *node;
    sum.op = OP_ELTWISE;
    sum.n_in = 2;
    sum.in = both;
    sum.attr = (Attrs){.elt = {.kind = ELT_ADD}};
    Candidate candidate = legal_candidate(p->context->spec, p->g, &sum);
    return legal_judge(NULL, &candidate).engine >= 0;
}

static bool runs(const Parts *p, const Node *node, uint32_t in_c,
                 uint32_t out_c) {
    Node part = *node;
    Shape in = graph_tensor(p->g, node->in[0])->shape;
    Shape out = graph_tensor(p->g, node->out[0])->shape;
    Candidate candidate = legal_candidate(p->context->spec, p->g, &part);
    if (candidate.op == HW_OP_CONV_DEPTHWISE)
        part.attr.conv.groups = in_c = out_c;
    in.dim[1] = in_c;
    out.dim[1] = part.attr.conv.out_c = out_c;
    candidate.in = &in;
    candidate.out = &out;
    return legal_judge(NULL, &candidate).engine >= 0;
}

static Manner manner(const Parts *p, const Node *node) {
    if (node->n_out > 1)
        return BY_PICKING;
    if (node->op == OP_CONCAT && node->attr.axis.axis == 1 &&
        node->act.kind == ACT_NONE)
        return BY_CONCAT;
    bool dense = node->op == OP_CONV && node->attr.conv.groups == 1;
    return dense || goes_by_channel(p, node) ? BY_PRODUCER : BY_PICKING;
}

/* Through operands, of which it is known. */
static Way find_way(const Parts *p, TensorId t) {
    const Node *node = graph_node(p->g, graph_tensor(p->g, t)->producer);
    Way way = {manner(p, node), 0, true};
    bool through = way.manner == BY_CONCAT || goes_by_channel(p, node);
    for (uint32_t k = 0; k < node->n_in && through; k++) {
        const Way *of = &p->way.at[node->in[k].i];
        way.may &= of->may;
        way.depth = of->depth > way.depth ? of->depth : way.depth;
    }
    way.depth += way.manner == BY_PRODUCER;
    if (way.manner != BY_PICKING && way.depth <= MOST_DEPTH)
        return way;
    Node conv = picker(p, &t);
    return (Way){BY_PICKING, 0,
                 runs(p, &conv, channels(p, t), channels(p, t) / 2)};
}

static void note_way(Parts *p, TensorId t) {
    while (p->way.n < p->g->tensor.n)
        vec_push(p->context->scratch, &p->way, (Way){0});
    if (graph_tensor(p->g, t)->shape.rank == 4)
        p->way.at[t.i] = find_way(p, t);
}

static bool finds_step(const Parts *p, const Node *node, uint32_t step,
                       uint32_t most_in, Split *split) {
    uint32_t in_c = channels(p, node->in[0]), out_c = node->attr.conv.out_c;
    for (uint32_t n = 2; n <= MOST_PARTS; n++)
        for (uint32_t in = 1; in <= n && in <= most_in; in++) {
            Bounds ins = bounds_of(in_c, in, step);
            Bounds outs = bounds_of(out_c, n / in, step);
            if (n % in || ins.n != in || outs.n != n / in ||
                !runs(p, node, ins.at[1], outs.at[1]))
                continue;
            *split = (Split){in, n / in, step};
            return true;
        }
    return false;
}

/* Aligned, if it can be: a concat of other parts is the host's. */
static bool finds_split(const Parts *p, const Node *node, Split *split) {
    bool cuts = p->way.at[node->in[0].i].may,
         sums = node->attr.conv.groups == 1;
    if (!sums && !cuts)
        return false;
    uint32_t most_in =
        sums && cuts && !on_codes(p, node) && adds(p, node) ? MOST_PARTS : 1;
    const Shape *out = &graph_tensor(p->g, node->out[0])->shape;
    return finds_step(p, node, aligned_step(p, out), most_in, split) ||
           finds_step(p, node, 1, most_in, split);
}

/* ---- where parts of the input begin ---- */

/* How many input channels an engine takes, at least `runs_with`. */
static uint32_t most_inputs(const Parts *p, const Node *node, uint32_t fits,
                            uint32_t step) {
    uint32_t too_many = channels(p, node->in[0]);
    while (too_many > fits + step) {
        uint32_t mid = fits + ((too_many - fits) / 2 + step - 1) / step * step;
        if (mid < too_many && runs(p, node, mid, node->attr.conv.out_c))
            fits = mid;
        else
            too_many = mid < too_many ? mid : mid - step;
    }
    return fits;
}

/* Of the concat that a tensor is, or is made of channel by channel; of no
 * concat it is the one member. */
static Tensors members_below(const Parts *p, TensorId t) {
    const Node *node = graph_node(p->g, graph_tensor(p->g, t)->producer);
    while (p->way.at[t.i].manner == BY_PRODUCER && goes_by_channel(p, node)) {
        t = node->in[0];
        node = graph_node(p->g, graph_tensor(p->g, t)->producer);
    }
    return members(p, t);
}

/* Each part ends where the last member does that it can hold, and begins at a
 * multiple of the step; without such an end, parts of nearly one size. */
static Bounds by_members(const Parts *p, const Node *node, const Split *by) {
    uint32_t c = channels(p, node->in[0]);
    const Bounds even = bounds_of(c, by->in, by->step);
    uint32_t most = most_inputs(p, node, even.at[1], by->step);
    Tensors member = members_below(p, node->in[0]);
    Bounds bounds = {.n = 0, .at = {0}};
    for (uint32_t k = 0, end = 0, first = 0; first < c; bounds.n++) {
        uint32_t left = by->in - bounds.n, rest = c - first, at = 0;
        if (!left || rest > (uint64_t)left * most)
            return even;
        if (left > 1)
            at = first + bounds_of(rest, left, by->step).at[1];
        for (; k < member.n && end + channels(p, member.at[k]) <= first + most;
             k++) {
            end += channels(p, member.at[k]);
            if (end > first && end % by->step == 0 &&
                c - end <= (uint64_t)(left - 1) * most)
                at = end;
        }
        first = bounds.at[bounds.n + 1] = rest <= most ? c : at;
    }
    for (uint32_t i = 0; i < bounds.n; i++)
        if (!runs(p, node, bounds.at[i + 1] - bounds.at[i],
                  node->attr.conv.out_c))
            return even;
    return bounds;
}

/* Input channels first... of the convolution; the first part has its bias. */
static TensorId add_term(Parts *p, NodeId id, TensorId in, uint32_t first,
                         uint32_t n) {
    Node part = *graph_node(p->g, id);
    part.act = (Act){0};
    part.no_bias |= first > 0;
    TensorId out = add(p, id, &part, "over", first, 1, &in);
    NodeId made = graph_tensor(p->g, out)->producer;
    const Const *whole = graph_const(p->g, part.constant[CONST_WEIGHT]);
    Const some = const_part(p->g->arena, whole, 1, first, n);
    ConstId weight = graph_add_const(p->g, some);
    graph_node(p->g, made)->constant[CONST_WEIGHT] = weight;
    if (!first)
        graph_node(p->g, made)->constant[CONST_BIAS] =
            part.constant[CONST_BIAS];
    infer(p, out);
    return out;
}

static TensorId add_sum(Parts *p, NodeId id, const TensorId *pair,
                        uint32_t end) {
    Node sum = *graph_node(p->g, id);
    sum.op = OP_ELTWISE;
    sum.act = (Act){0};
    sum.attr = (Attrs){.elt = {.kind = ELT_ADD}};
    TensorId out = add(p, id, &sum, "upto", end, 2, pair);
    infer(p, out);
    return out;
}

/* The node becomes the sum of its parts over input channels. */
static void sum_up(Parts *p, NodeId id, const Split *by) {
    TensorId whole = graph_node(p->g, id)->in[0], in[MOST_PARTS], pair[2];
    Bounds bounds = by_members(p, graph_node(p->g, id), by);
    cut(p, whole, &bounds, id, in);
    settle(p, id, 1);
    for (uint32_t i = 0; i < bounds.n; i++) {
        const uint32_t *at = &bounds.at[i];
        pair[i ? 1 : 0] = add_term(p, id, in[i], at[0], at[1] - at[0]);
        if (i && i + 1 < bounds.n)
            pair[0] = add_sum(p, id, pair, at[1]);
    }
    const Attrs add_up = {.elt = {.kind = ELT_ADD}};
    Node *node = graph_node(p->g, id);
    const Act act = node->act;
    const ConstId slope = node->constant[CONST_SLOPE];
    node_become(p->g, node, OP_ELTWISE, &add_up, 2, pair);
    node->act = act;
    node->constant[CONST_SLOPE] = slope;
    graph_gloss(p->g, "X__overN is what input channels from N on give X; "
                      "X__uptoN the sum of those below N");
}

static void cut_results(Parts *p, NodeId id, const Split *by) {
    uint32_t c = graph_node(p->g, id)->attr.conv.out_c;
    Bounds bounds = bounds_of(c, by->out, by->step);
    TensorId part[MOST_PARTS];
    cut_producer(p, id, &bounds, part);
}

/* Codes stay codes where they lie. */
static bool has_parts(const Parts *p, const Node *node) {
    for (int r = 0; on_codes(p, node) && r < CONST_ROLES; r++)
        if (node->constant[r].i != NONE &&
            !const_has_parts(graph_const(p->g, node->constant[r])))
            return false;
    return true;
}

static bool is_candidate(const Parts *p, const Node *node) {
    return node->op == OP_CONV && node->constant[CONST_WEIGHT].i != NONE &&
           (node->attr.conv.groups == 1 || node_is_depthwise(p->g, node)) &&
           graph_tensor(p->g, node->in[0])->shape.rank == 4 &&
           has_parts(p, node);
}

static void split(Parts *p, NodeId id) {
    const Node *node = graph_node(p->g, id);
    Split by;
    if (!is_candidate(p, node) ||
        legal_engine(p->context->spec, p->g, node) >= 0 ||
        !finds_split(p, node, &by))
        return;
    if (by.out > 1)
        cut_results(p, id, &by);
    else
        sum_up(p, id, &by);
}

bool channels_run(Graph *g, PassContext *context) {
    Parts p = {.g = g, .context = context};
    if (!context->spec || !context->spec->n_active ||
        hwspec_engine(context->spec, HW_OP_CONV) < 0)
        return true;
    /* Also what it adds. */
    for (uint32_t i = 0; i < g->node.n; i++) {
        split(&p, (NodeId){i});
        for (uint32_t k = 0; k < g->node.at[i].n_out; k++)
            note_way(&p, g->node.at[i].out[k]);
    }
    if (!p.insertions.node.n)
        return true;
    insert_finish(context->scratch, g, &p.insertions);
    graph_compact(g);
    return canon_run(g, context);
}
