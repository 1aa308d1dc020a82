/* model.c - volumes that share bytes, who touches them when; see model.h.
 *
 * The rules of who shares a buffer are those of alloc (concat by placement,
 * results in place), seen from the graph alone: an order is not known here, so
 * what depends on it (whether an operand dies) is left to the problem.
 * tests/alloc compares the peaks of both.
 */
#include "sched/model.h"
#include "hwspec/cost.h"

#include "base/arith.h"
#include "base/vec.h"

typedef struct Builder {
    Arena *arena;
    ModelKind kind;
    const HwSpec *spec;
    const Graph *g;
    bool replication;
    Uses uses;
    Legal *legal;     /* by node */
    uint32_t *number; /* by node */
    TensorId *parent; /* by tensor: the concat by placement it is in */
    uint32_t *part_c; /* by tensor: its first channel there */
    uint32_t *buf;    /* by tensor; ORDER_NONE */
    uint64_t *bytes;  /* by tensor, of buf */
    OrderMaker *maker;
} Builder;

static Volume volume_of(const Graph *g, TensorId t) {
    Volume v = {0};
    shape_chw(&graph_tensor(g, t)->shape, &v.c, &v.h, &v.w);
    return v;
}

static bool is_placed(const Builder *b, NodeId n) {
    return b->kind == MODEL_MACHINE && graph_node(b->g, n)->op == OP_CONCAT &&
           b->legal[n.i].op == HW_OP_CONCAT;
}

static bool on_engine(const Builder *b, NodeId n) {
    return b->legal[n.i].engine >= 0 && !is_placed(b, n);
}

static bool made_by_parts(const Builder *b, TensorId t) {
    return is_placed(b, graph_tensor(b->g, t)->producer);
}

static bool in_concat(const Builder *b, TensorId t) {
    return b->parent[t.i].i != NONE || made_by_parts(b, t);
}

/* ---- bytes ---- */

static uint32_t conv_area(const Builder *b, NodeId n) {
    HwOp op = b->legal[n.i].op;
    if (op != HW_OP_CONV && op != HW_OP_CONV_POOL_MAX &&
        op != HW_OP_CONV_POOL_AVG)
        return 0;
    const ConvAttr *conv = &graph_node(b->g, n)->attr.conv;
    return conv->kernel[0] * conv->kernel[1];
}

/* The largest kernel among readers that are all convolutions; 0 where copies
 * do not pay. */
static uint32_t copies_area(const Builder *b, TensorId t) {
    uint32_t area = 0;
    for (uint32_t i = b->uses.start[t.i]; i < b->uses.start[t.i + 1]; i++) {
        NodeId reader = b->uses.node[i];
        if (is_placed(b, reader))
            return 0;
        if (!on_engine(b, reader))
            continue;
        uint32_t one = conv_area(b, reader);
        if (!one)
            return 0;
        area = one > area ? one : area;
    }
    return area > 1 ? area : 0;
}

static Repl repl_of(const Builder *b, TensorId t) {
    uint32_t c = volume_of(b->g, t).c;
    uint32_t area = 0;
    if (b->replication && b->kind == MODEL_MACHINE && !made_by_parts(b, t))
        area = copies_area(b, t);
    return area ? hwspec_repl_rule(b->spec, c, area, false)
                : hwspec_repl_none(b->spec, c);
}

static Volume volume_in(const Builder *b, TensorId t, uint32_t memory) {
    Volume v = volume_of(b->g, t);
    if (b->spec->replication.memories >> memory & 1)
        v.repl = repl_of(b, t);
    return v;
}

/* Larger volumes count as this, so that sums stay exact. */
#define HUGE_BYTES (UINT64_C(1) << 50)

static uint64_t bytes_in(const Builder *b, TensorId t, uint32_t memory) {
    const HwMemory *m = &b->spec->memory[memory];
    Volume v = volume_in(b, t, memory);
    uint64_t bytes = layout_bytes(m->layout, &v);
    if (bytes > HUGE_BYTES)
        return HUGE_BYTES;
    return round_up(bytes, m->buffers ? hwspec_buffer_bytes(m) : m->align);
}

/* The active memory of the set in which the volume takes least. */
static uint32_t cheapest(const Builder *b, TensorId t, uint32_t memories,
                         uint64_t *bytes) {
    uint32_t best = 0;
    *bytes = UINT64_MAX;
    for (uint32_t m = 0; m < b->spec->n_active; m++) {
        uint64_t one = bytes_in(b, t, m);
        if (!(memories >> m & 1) || one >= *bytes)
            continue;
        best = m;
        *bytes = one;
    }
    return best;
}

/* ---- concats by placement ---- */

static bool engine_reads(const Builder *b, TensorId t) {
    for (uint32_t i = b->uses.start[t.i]; i < b->uses.start[t.i + 1]; i++)
        if (on_engine(b, b->uses.node[i]))
            return true;
    return false;
}

/* In a volume of more channels: those of the concats are not known yet. */
static bool lies_alone(const Builder *b, uint32_t c, uint32_t n) {
    Volume more = {.c = UINT32_MAX, .h = 1, .w = 1};
    for (uint32_t m = 0; m < b->spec->n_active; m++)
        if (!hwspec_part_told(b->spec, &b->spec->memory[m], &more, c, n))
            return false;
    return true;
}

static bool parts_addressable(const Builder *b, NodeId concat, uint32_t base);

static bool part_addressable(const Builder *b, TensorId t, uint32_t c) {
    NodeId producer = graph_tensor(b->g, t)->producer;
    bool placed = is_placed(b, producer);
    if (((!placed && !on_engine(b, producer)) || engine_reads(b, t)) &&
        !lies_alone(b, c, shape_dim(&graph_tensor(b->g, t)->shape, 1)))
        return false;
    return !placed || parts_addressable(b, producer, c);
}

static bool parts_addressable(const Builder *b, NodeId concat, uint32_t base) {
    const Node *node = graph_node(b->g, concat);
    for (uint32_t i = 0; i < node->n_in; i++)
        if (!part_addressable(b, node->in[i], base + b->part_c[node->in[i].i]))
            return false;
    return true;
}

static bool can_place(const Builder *b, const Node *node) {
    uint32_t c = 0;
    for (uint32_t i = 0; i < node->n_in; i++) {
        TensorId t = node->in[i];
        if (b->parent[t.i].i != NONE || !part_addressable(b, t, c))
            return false;
        for (uint32_t k = 0; k < i; k++)
            if (same_tensor(node->in[k], t))
                return false;
        c += volume_of(b->g, t).c;
    }
    return true;
}

static void concat_place(Builder *b, NodeId id) {
    const Node *node = graph_node(b->g, id);
    if (!is_placed(b, id))
        return;
    if (!can_place(b, node)) {
        b->legal[id.i] = legal_elsewhere(b->spec, node, NULL);
        return;
    }
    uint32_t c = 0;
    for (uint32_t i = 0; i < node->n_in; i++) {
        b->parent[node->in[i].i] = node->out[0];
        b->part_c[node->in[i].i] = c;
        c += volume_of(b->g, node->in[i]).c;
    }
}

/* ---- who touches a tensor ---- */

typedef VEC(uint32_t) Nodes; /* numbers */

/* A node of the host touches no active memory. */
static bool touches(const Builder *b, NodeId n) {
    return b->number[n.i] != ORDER_NONE &&
           (b->kind != MODEL_MACHINE || on_engine(b, n));
}

/* Where the node's engine lets the tensor lie; 0: it has none. */
static uint32_t reached_by(const Builder *b, NodeId n, TensorId t) {
    const Node *node = graph_node(b->g, n);
    int32_t engine = b->legal[n.i].engine;
    uint32_t memories = engine < 0 ? 0 : UINT32_MAX;
    for (uint32_t k = 0; k <= node->n_in && engine >= 0; k++)
        if (same_tensor(k < node->n_in ? node->in[k] : node->out[0], t))
            memories &= b->spec->engine[engine].lies[hw_operand(k, node->n_in)];
    return memories;
}

static void add_touches(const Builder *b, TensorId t, Nodes *out,
                        uint32_t *memories) {
    for (uint32_t i = b->uses.start[t.i]; i <= b->uses.start[t.i + 1]; i++) {
        bool made = i == b->uses.start[t.i + 1];
        NodeId n = made ? graph_tensor(b->g, t)->producer : b->uses.node[i];
        if (!touches(b, n) && !(made && is_placed(b, n)))
            continue;
        vec_push(b->arena, out, b->number[n.i]);
        uint32_t reached = reached_by(b, n, t);
        if (touches(b, n) && *memories & reached)
            *memories &= reached;
    }
}

static uint32_t active_set(const Builder *b) {
    return b->spec ? (UINT32_C(1) << b->spec->n_active) - 1 : 0;
}

static void buf_for(Builder *b, uint64_t bytes, const Nodes *nodes,
                    TensorId t) {
    bool alone = b->kind != MODEL_MACHINE;
    const Tensor *tensor = graph_tensor(b->g, t);
    bool input = graph_node(b->g, tensor->producer)->op == OP_INPUT;
    b->buf[t.i] = order_buf(b->maker, bytes, alone && input,
                            alone && graph_is_output(b->g, t));
    b->bytes[t.i] = bytes;
    for (uint32_t i = 0; i < nodes->n; i++)
        order_touch(b->maker, nodes->at[i], b->buf[t.i]);
}

static void tensor_buf(Builder *b, TensorId t) {
    Nodes nodes = {0};
    uint32_t memories = active_set(b);
    uint64_t bytes;
    add_touches(b, t, &nodes, &memories);
    if (!nodes.n && b->kind == MODEL_MACHINE)
        return;
    if (b->kind == MODEL_PLAIN)
        bytes = 4 * shape_count(&graph_tensor(b->g, t)->shape);
    else
        cheapest(b, t, memories, &bytes);
    buf_for(b, bytes, &nodes, t);
}

/* ---- buffers of a concat ---- */

typedef struct Part {
    TensorId tensor; /* which no concat makes */
    uint32_t c;      /* first channel in the root */
    Nodes nodes;
} Part;
typedef VEC(Part) Parts;

/* The parts of `t` and theirs, each with the touches of all around it. */
static void list_parts(Builder *b, TensorId t, uint32_t c, const Nodes *around,
                       uint32_t *memories, Parts *out) {
    Part part = {.tensor = t, .c = c};
    for (uint32_t i = 0; i < around->n; i++)
        vec_push(b->arena, &part.nodes, around->at[i]);
    add_touches(b, t, &part.nodes, memories);
    if (!made_by_parts(b, t)) {
        vec_push(b->arena, out, part);
        return;
    }
    const Node *node = graph_node(b->g, graph_tensor(b->g, t)->producer);
    for (uint32_t i = 0; i < node->n_in; i++)
        list_parts(b, node->in[i], c + b->part_c[node->in[i].i], &part.nodes,
                   memories, out);
}

/* One buffer for each run of parts that shares no granule of the layout with
 * the next; memories of fixed buffers hold the whole in one. */
static void concat_bufs(Builder *b, TensorId root) {
    Parts parts = {0};
    uint32_t memories = active_set(b);
    uint64_t all, done = 0;
    list_parts(b, root, 0, &(Nodes){0}, &memories, &parts);
    uint32_t m = cheapest(b, root, memories, &all);
    const HwMemory *memory = &b->spec->memory[m];
    uint32_t granule = memory->buffers ? 0 : layout_granule(memory->layout);
    Volume whole = volume_in(b, root, m);
    Nodes nodes = {0};
    for (uint32_t i = 0; i < parts.n; i++) {
        const Part *part = &parts.at[i];
        for (uint32_t k = 0; k < part->nodes.n; k++)
            vec_push(b->arena, &nodes, part->nodes.at[k]);
        bool last = i + 1 == parts.n;
        if (!last && (!granule || parts.at[i + 1].c % granule))
            continue;
        uint64_t end = last ? all
                            : layout_part_offset(memory->layout, &whole,
                                                 parts.at[i + 1].c);
        buf_for(b, end - done, &nodes, part->tensor);
        nodes.n = 0;
        done = end;
    }
}

/* ---- in place ---- */

static bool pointwise(const Builder *b, const Node *node) {
    if (b->kind == MODEL_PLAIN)
        return node->op == OP_ELTWISE || node->op == OP_ACT ||
               node->op == OP_IDENTITY || node->op == OP_RESHAPE;
    return node->op == OP_ELTWISE || node->op == OP_SCALE || node->op == OP_ACT;
}

static bool same_volume(const Builder *b, TensorId x, TensorId y) {
    Volume v = volume_of(b->g, x), w = volume_of(b->g, y);
    if (b->kind == MODEL_PLAIN)
        return b->bytes[x.i] == b->bytes[y.i];
    if (v.c != w.c || v.h != w.h || v.w != w.w)
        return false;
    Repl r = repl_of(b, x), q = repl_of(b, y);
    return r.full == q.full && r.sections == q.sections && r.units == q.units &&
           r.width == q.width;
}

static void in_place(Builder *b, NodeId id) {
    const Node *node = graph_node(b->g, id);
    if (!pointwise(b, node) || in_concat(b, node->out[0]) ||
        b->buf[node->out[0].i] == ORDER_NONE)
        return;
    if (b->kind != MODEL_PLAIN &&
        (!on_engine(b, id) || !b->spec->engine[b->legal[id.i].engine].in_place))
        return;
    for (uint32_t i = 0; i < node->n_in; i++) {
        if (!same_volume(b, node->out[0], node->in[i]) ||
            in_concat(b, node->in[i]))
            continue;
        order_over(b->maker, b->number[id.i], b->buf[node->in[i].i],
                   b->bytes[node->out[0].i]);
        if (b->kind == MODEL_PLAIN)
            return;
    }
}

/* ---- the whole ---- */

static Builder builder_new(Arena *arena, ModelKind kind, const HwSpec *spec,
                           const Graph *g, bool replication) {
    Builder b = {.arena = arena,
                 .kind = kind,
                 .spec = spec,
                 .g = g,
                 .replication = replication,
                 .uses = graph_uses(arena, g),
                 .legal = spec ? legal_check_all(arena, spec, g)
                               : ARENA_ARRAY(arena, Legal, g->node.n + 1),
                 .number = ARENA_ARRAY(arena, uint32_t, g->node.n + 1),
                 .parent = ARENA_ARRAY(arena, TensorId, g->tensor.n + 1),
                 .part_c = ARENA_ARRAY(arena, uint32_t, g->tensor.n + 1),
                 .buf = ARENA_ARRAY(arena, uint32_t, g->tensor.n + 1),
                 .bytes = ARENA_ARRAY(arena, uint64_t, g->tensor.n + 1)};
    for (uint32_t n = 0; !spec && n < g->node.n; n++)
        b.legal[n] = (Legal){-1, HW_OP_HOST, NULL};
    for (uint32_t t = 0; t < g->tensor.n; t++) {
        b.parent[t] = NO_TENSOR;
        b.buf[t] = ORDER_NONE;
    }
    return b;
}

/* Nodes of the problem, in the graph's order, and what each waits for. */
static const NodeId *number_nodes(Builder *b) {
    const Graph *g = b->g;
    NodeId *node = ARENA_ARRAY(b->arena, NodeId, g->node.n + 1);
    uint32_t n = 0;
    for (NodeId id = {0}; id.i < g->node.n; id.i++) {
        bool input = graph_node(g, id)->op == OP_INPUT;
        b->number[id.i] = input ? ORDER_NONE : n;
        if (!input)
            node[n++] = id;
    }
    b->maker = order_maker(b->arena, n);
    for (uint32_t i = 0; i < n; i++) {
        const Node *at = graph_node(g, node[i]);
        for (uint32_t k = 0; k < at->n_in; k++) {
            uint32_t from = b->number[graph_tensor(g, at->in[k])->producer.i];
            if (from != ORDER_NONE)
                order_wait(b->maker, i, from);
        }
    }
    return node;
}

static Model model_build(Builder b) {
    Arena *arena = b.arena;
    const Graph *g = b.g;
    Legal *legal = ARENA_COPY(arena, Legal, b.legal, g->node.n + 1);
    const NodeId *node = number_nodes(&b);
    for (NodeId n = {0}; n.i < g->node.n; n.i++)
        concat_place(&b, n);
    for (TensorId t = {0}; t.i < g->tensor.n; t.i++) {
        if (b.parent[t.i].i != NONE)
            continue;
        if (made_by_parts(&b, t))
            concat_bufs(&b, t);
        else
            tensor_buf(&b, t);
    }
    for (NodeId n = {0}; n.i < g->node.n; n.i++)
        in_place(&b, n);
    return (Model){b.kind, b.spec,   g,    order_problem(b.maker),
                   node,   b.number, legal};
}

Model model_make(Arena *arena, ModelKind kind, const HwSpec *spec,
                 const Graph *g, bool replication) {
    return model_build(builder_new(arena, kind, spec, g, replication));
}

Model model_make_ahead(Arena *arena, const HwSpec *spec, const Graph *g,
                       bool replication) {
    Builder b = builder_new(arena, MODEL_MACHINE, spec, g, replication);
    for (NodeId n = {0}; n.i < g->node.n; n.i++) {
        Legal legal = legal_check_ahead(spec, g, &b.uses, n);
        if (legal.engine >= 0)
            b.legal[n.i] = legal;
    }
    return model_build(b);
}

/* ---- time ---- */

static double ceilings(uint64_t n, uint32_t unroll) {
    uint64_t by = unroll ? unroll : 1;
    return (double)((n + by - 1) / by);
}

/* What the engine's loops run over: of a convolution with a pool behind it, the
 * convolution's. */
static double steps_of(const HwUnroll *u, const Node *node, Volume in,
                       Volume out) {
    bool conv = node_convolves(node);
    const ConvAttr *c = &node->attr.conv;
    const PoolAttr *p = &node->attr.pool;
    uint64_t taps = 1;
    if (node->op == OP_CONV_POOL) {
        out.h = conv_out_size(in.h, c->kernel[0], c->stride[0], c->dilation[0],
                              c->pad[0], c->pad_end[0]);
        out.w = conv_out_size(in.w, c->kernel[1], c->stride[1], c->dilation[1],
                              c->pad[1], c->pad_end[1]);
    }
    if (conv)
        taps = (uint64_t)c->kernel[0] * c->kernel[1];
    else if (node->op == OP_POOL)
        taps = p->global ? (uint64_t)in.h * in.w
                         : (uint64_t)p->kernel[0] * p->kernel[1];
    double in_c = conv ? ceilings(in.c / c->groups, u->in_c) : 1;
    if (node->op == OP_MIX)
        in_c = ceilings(in.c / node->attr.mix.groups, u->in_c);
    if (conv && in.c / c->groups <= u->row_taps) {
        in_c = ceilings((uint64_t)in.c / c->groups * c->kernel[1], u->in_c);
        taps = c->kernel[0];
    }
    return ceilings(out.c, u->out_c) * ceilings(out.h, u->out_h) *
           ceilings(out.w, u->out_w) * in_c * ceilings(taps, u->kernel);
}

uint64_t model_cycles(const Model *m, uint32_t number) {
    NodeId id = m->node[number];
    const Node *node = graph_node(m->g, id);
    int32_t engine = m->legal[id.i].engine;
    if (engine < 0 || node->op == OP_CONCAT)
        return 0;
    const HwEngine *e = &m->spec->engine[engine];
    double steps = steps_of(&e->unroll, node, volume_of(m->g, node->in[0]),
                            volume_of(m->g, node->out[0]));
    steps *= hwspec_passes(e, m->legal[id.i].op);
    double efficiency = e->efficiency > 0 ? e->efficiency : 1;
    double clock = e->clock > 0 ? e->clock : m->spec->clock;
    double faster = clock > 0 ? m->spec->clock / clock : 1;
    return (uint64_t)((steps / efficiency + e->setup) * faster);
}
