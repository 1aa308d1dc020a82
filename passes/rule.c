/* rule.c - matching chains, firing rules, and the measure; see rule.h.
 *
 * In: a graph in topological order and a set of rules. Out: the same function
 * of the inputs, to which no rule of the set applies; topological, compact.
 *
 * A sweep goes over the nodes in their order and tries the rules, in theirs,
 * on each node as the end of a chain. Counts of readers are kept up to date
 * while rules fire, so one sweep does nearly all the work; sweeps are repeated
 * until one fires nothing. The pattern of rules as rows is LuaJIT's folding
 * engine and Vela's graph rewriting.
 */
#include "passes/rule.h"

#include "graph/quant.h"
#include "passes/insert.h"

#include <assert.h>

struct Rewriter {
    const RuleSet *set;
    VEC(uint32_t) readers; /* by tensor */
    Insertions insertions;
};

/* ---- the measure ---- */

/* Every node weighs 1, and so much more by its operator. */
static const uint16_t op_extra[OP_COUNT] = {
    [OP_CONV] = 1,      [OP_DECONV] = 1,
    [OP_CONV_POOL] = 1, [OP_FC] = 1 + 2 * 225 + 8,
    [OP_IDENTITY] = 1,  [OP_BN] = 2,
    [OP_SCALE] = 1,     [OP_ACT] = 2,
    [OP_PAD] = 1,
};

static uint64_t square(uint64_t v) {
    return v * v;
}

/* A strided convolution may become several nodes, a pool of its result among
 * them. */
static uint64_t strides(const ConvAttr *conv, uint32_t channels) {
    uint32_t most = conv->out_c > channels ? conv->out_c : channels;
    bool strided = conv->stride[0] > 1 || conv->stride[1] > 1;
    return strided ? 16 + square(2048 * (uint64_t)most) : 0;
}

/* One whose taps lie far apart may come to have fewer, or others between. */
static uint64_t dilations(const ConvAttr *conv) {
    uint64_t apart = 0;
    for (uint32_t a = 0; a < 2; a++)
        apart += (uint64_t)(conv->dilation[a] - 1) * (conv->kernel[a] - 1);
    return 2048 * apart;
}

/* Small results weigh more: they may come to be cut from larger ones. */
static uint64_t smallness(const Shape *out) {
    enum { SMALL = 16 };
    uint64_t sum = 0;
    for (uint32_t a = 2; a < 4; a++)
        sum +=
            square(shape_dim(out, a) < SMALL ? SMALL - shape_dim(out, a) : 0);
    return sum;
}

/* One that is cut more on one side may come to be cut alike on both. */
static uint64_t unevenness(const ConvAttr *conv) {
    return conv->pad[0] != conv->pad_end[0] || conv->pad[1] != conv->pad_end[1];
}

static const Node *producer_of(const Graph *g, const Node *node) {
    return graph_node(g, graph_tensor(g, node->in[0])->producer);
}

/* What stands behind paddings may take them in, one after the other. */
static uint64_t padded(const Graph *g, const Node *node) {
    uint64_t n = 0;
    while (node->n_in && (node = producer_of(g, node))->op == OP_PAD)
        n++;
    return n;
}

/* A depthwise layer that does not fit may come to be some that do. */
static uint64_t bulk(const Match *m, const Node *node, uint32_t channels) {
    const HwSpec *spec = m->context->spec;
    bool slabs = spec && spec->slabs && node->attr.conv.groups > 1;
    return slabs ? 1024 * square(channels) : 0;
}

/* A pool of larger windows may be pools of smaller ones; one that stands behind
 * no convolution may get one. */
static uint64_t pooling(const Match *m, const Node *node, uint32_t channels) {
    const PoolAttr *pool = &node->attr.pool;
    NodeId from = graph_tensor(m->g, node->in[0])->producer;
    uint64_t area = pool->global ? 1 : pool->kernel[0] * pool->kernel[1];
    bool alone = graph_node(m->g, from)->op != OP_CONV ||
                 !match_is_private(m, node->in[0]);
    return 1024 * (1 + square(channels)) * area + 512 * alone;
}

/* Leaky and relu6 may be made of several layers, a relu among them. */
static uint64_t volume(const Graph *g, const Node *node) {
    uint64_t count = shape_count(&graph_tensor(g, node->in[0])->shape);
    bool parts = node->act.kind == ACT_LEAKY || node->act.kind == ACT_RELU6;
    return parts ? 2 * count + 16 : count;
}

/* Of two operands the one that is spread over the other. */
static bool puts_small_first(const Graph *g, const Node *node) {
    return node->n_in == 2 &&
           shape_count(&graph_tensor(g, node->in[0])->shape) <
               shape_count(&graph_tensor(g, node->in[1])->shape);
}

/* A difference, or a sum with coefficients, may come to be a sum of scaled
 * operands. */
static bool has_terms(const Node *node) {
    return node->attr.elt.kind == ELT_SUB || node->attr.elt.coeff;
}

/* A quotient may be a product with what a layer of its own inverts. */
static uint64_t inverting(const Match *m, const Node *node) {
    if (node->attr.elt.kind != ELT_DIV)
        return 0;
    return 8 + square(shape_count(&graph_tensor(m->g, node->in[1])->shape));
}

/* Squares, so that a whole weighs more than its parts: a pool than pools of
 * some channels each, an activation likewise, a sum of many than sums of fewer.
 * A convolution that
 * hides a pool weighs more than one beside a pool; an activation weighs by its
 * volume, and something where it only cuts codes. */
static uint64_t weight(const Match *m, const Node *node) {
    const Graph *g = m->g;
    if (node->dead)
        return 0;
    uint64_t base = 1 + op_extra[node->op];
    base += quant_is_at(g, node) && node->act.kind != ACT_NONE;
    uint32_t channels =
        node->n_in ? shape_dim(&graph_tensor(g, node->in[0])->shape, 1) : 0;
    switch (node->op) {
    case OP_DECONV:
        return base + unevenness(&node->attr.conv);
    case OP_POOL:
        return base + pooling(m, node, channels) + padded(g, node);
    case OP_CONV:
        return base + (node->attr.conv.groups > 1) + padded(g, node) +
               strides(&node->attr.conv, channels) +
               dilations(&node->attr.conv) + bulk(m, node, channels) +
               smallness(&graph_tensor(g, node->out[0])->shape);
    case OP_ELTWISE:
        return base + 2 * square(node->n_in) + puts_small_first(g, node) +
               16 * has_terms(node) + inverting(m, node);
    case OP_REDUCE:
        return base + 2048 * (1 + square(channels)) + 1024;
    case OP_MIX: /* of several heads may become some of one */
        return base + 4096 * square(node->attr.mix.groups);
    case OP_GATHER: /* one with factors may be one without, and a scale */
        return base + (quant_picks(g, node) ? 0 : 4);
    case OP_SLICE:
        return base + (m->context->spec != NULL);
    case OP_ACT:
        return base + square(volume(g, node));
    default:
        return base;
    }
}

/* ---- counts of readers ---- */

static void count_reads(const Match *m, NodeId id, uint32_t by) {
    const Node *node = graph_node(m->g, id);
    for (uint32_t k = 0; !node->dead && k < node->n_in; k++)
        m->rewriter->readers.at[node->in[k].i] += by;
}

static void count_new_tensors(Match *m) {
    while (m->rewriter->readers.n < m->g->tensor.n)
        vec_push(m->context->scratch, &m->rewriter->readers, 0);
}

static void move_readers(Match *m, TensorId from, TensorId to) {
    uint32_t *readers = m->rewriter->readers.at;
    readers[to.i] += readers[from.i];
    readers[from.i] = 0;
}

uint32_t match_readers(const Match *m, TensorId tensor) {
    return m->rewriter->readers.at[tensor.i];
}

bool match_is_private(const Match *m, TensorId tensor) {
    return match_readers(m, tensor) == 1 && !graph_is_output(m->g, tensor);
}

/* ---- what rewrites call ---- */

Node *match_node(const Match *m, uint32_t i) {
    assert(i < m->n);
    return graph_node(m->g, m->node[i]);
}

Tensor *match_in(const Match *m, uint32_t i) {
    return graph_tensor(m->g, match_node(m, i)->in[0]);
}

Tensor *match_out(const Match *m, uint32_t i) {
    return graph_tensor(m->g, match_node(m, i)->out[0]);
}

void match_kill(Match *m, uint32_t i) {
    match_node(m, i)->dead = true;
}

void match_fuse_behind(Match *m, uint32_t i) {
    TensorId stays = match_node(m, i)->out[0];
    TensorId goes = match_node(m, i + 1)->out[0];
    graph_take_over(m->g, stays, goes);
    move_readers(m, goes, stays);
    graph_merge_names(m->g, m->node[i], m->node[i + 1]);
    match_kill(m, i + 1);
}

void match_fuse_before(Match *m, uint32_t i) {
    match_node(m, i + 1)->in[0] = match_node(m, i)->in[0];
    graph_merge_names(m->g, m->node[i + 1], m->node[i]);
    match_kill(m, i);
}

void match_bypass(Match *m, uint32_t i) {
    TensorId in = match_node(m, i)->in[0];
    for (uint32_t k = 0; k < match_node(m, i)->n_out; k++) {
        TensorId out = match_node(m, i)->out[k];
        if (graph_is_output(m->g, out))
            graph_take_over(m->g, in, out);
        else
            graph_replace(m->g, out, in);
        move_readers(m, out, in);
    }
    NodeId producer = graph_tensor(m->g, in)->producer;
    graph_merge_names(m->g, producer, m->node[i]);
    match_kill(m, i);
}

void match_hand_over(Match *m, uint32_t i, TensorId tensor) {
    TensorId out = match_node(m, i)->out[0];
    graph_replace(m->g, out, tensor);
    move_readers(m, out, tensor);
    match_kill(m, i);
}

TensorId match_add(Match *m, uint32_t i, const NewNode *node) {
    Graph *g = m->g;
    NodeId id = graph_add(g, node->op, node->name, match_node(m, i)->loc,
                          node->n_in, node->in);
    graph_node(g, id)->attr = node->attr;
    graph_node(g, id)->act = node->act;
    graph_gloss(g, node->gloss);
    TensorId out = graph_add_output(g, id, node->name);
    graph_tensor(g, out)->quant = graph_tensor(g, node->in[0])->quant;
    if (!graph_infer(g, id, m->context->diag))
        bug("pass %s: no shape for %s", m->rewriter->set->pass, node->name);
    insert_before(m->context->scratch, &m->rewriter->insertions, id,
                  m->node[i]);
    count_new_tensors(m);
    return out;
}

/* ---- matching and firing ---- */

static bool is_in(const Node *node, uint64_t ops) {
    return !node->dead && (ops >> node->op & 1);
}

static bool match_chain(Match *m, const Rule *rule, NodeId last) {
    m->n = rule->n;
    m->node[rule->n - 1] = last;
    if (!is_in(graph_node(m->g, last), rule->chain[rule->n - 1]))
        return false;
    for (uint32_t i = rule->n - 1; i-- > 0;) {
        uint32_t via = rule->chain[i + 1] & BY_SECOND ? 1u : 0u;
        if (via >= match_node(m, i + 1)->n_in)
            return false;
        TensorId between = match_node(m, i + 1)->in[via];
        m->node[i] = graph_tensor(m->g, between)->producer;
        if (!is_in(match_node(m, i), rule->chain[i]) ||
            !match_is_private(m, between))
            return false;
    }
    return true;
}

static uint64_t weigh(const Match *m, uint32_t first_new) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < m->n; i++)
        sum += weight(m, match_node(m, i));
    for (uint32_t i = first_new; i < m->g->node.n; i++)
        sum += weight(m, &m->g->node.at[i]);
    return sum;
}

static void log_firing(const Match *m, const Rule *rule) {
    if (!m->context->log)
        return;
    fprintf(m->context->log, "%s:", rule->name);
    for (uint32_t i = 0; i < m->n; i++)
        fprintf(m->context->log, " %s", match_node(m, i)->name);
    fputc('\n', m->context->log);
}

static void fire(Match *m, const Rule *rule) {
    uint32_t first_new = m->g->node.n;
    uint64_t before = weigh(m, first_new);
    log_firing(m, rule);
    for (uint32_t i = 0; i < m->n; i++)
        count_reads(m, m->node[i], UINT32_MAX); /* minus one */
    rule->rewrite(m);
    for (uint32_t i = 0; i < m->n; i++)
        count_reads(m, m->node[i], 1);
    for (uint32_t i = first_new; i < m->g->node.n; i++)
        count_reads(m, (NodeId){i}, 1);
    if (weigh(m, first_new) >= before)
        bug("rule %s did not make the graph smaller", rule->name);
}

static bool suits_codes(const Match *m, const Rule *rule) {
    const uint64_t sums = OPS(CONV) | OPS(DECONV) | OPS(FC) | OPS(ELTWISE);
    for (uint32_t i = 0; i < m->n; i++) {
        const Node *node = match_node(m, i);
        if (!quant_is_at(m->g, node))
            continue;
        if (!(rule->chain[0] & ON_CODES) ||
            (!is_in(node, sums) && !(rule->chain[i] & REQUANTS) &&
             !quant_is_one(m->g, node)))
            return false;
    }
    return true;
}

static bool try_rules(Match *m, NodeId last) {
    const RuleSet *set = m->rewriter->set;
    for (uint32_t r = 0; r < set->n; r++) {
        const Rule *rule = &set->rule[r];
        if (!match_chain(m, rule, last) || !suits_codes(m, rule) ||
            (rule->guard && !rule->guard(m)))
            continue;
        fire(m, rule);
        return true;
    }
    return false;
}

static bool sweep(Match *m) {
    bool fired = false;
    for (uint32_t i = 0; i < m->g->node.n; i++)
        while (try_rules(m, (NodeId){i}))
            fired = true;
    return fired;
}

bool rules_apply(Graph *g, PassContext *context, const RuleSet *set) {
    Rewriter rewriter = {.set = set};
    Match m = {.g = g, .context = context, .rewriter = &rewriter};
    count_new_tensors(&m);
    for (uint32_t i = 0; i < g->node.n; i++)
        count_reads(&m, (NodeId){i}, 1);
    while (sweep(&m))
        continue;
    insert_finish(context->scratch, g, &rewriter.insertions);
    graph_compact(g);
    return true;
}
