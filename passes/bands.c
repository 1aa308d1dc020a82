/* bands.c - layers that are too tall, too wide or too large for their engine
 * run in bands of rows or columns; bands.h.
 *
 * In: a fused graph. Which regions run in bands is a dynamic program over the
 * order of nodes: what the processor moves is to be least, since it cuts bands
 * out of volumes and puts them together again, and each band brings its weights
 * along.
 */
#include "passes/bands.h"

/* ---- which nodes need bands ---- */

static bool joins_pool(const Bands *b, const Node *node, const Uses *uses) {
    TensorId t = node->out[0];
    if (node->op != OP_CONV || node->attr.conv.groups > 1 ||
        node->attr.conv.stride[0] > 1 || b->last[t.i] == NONE ||
        uses->start[t.i + 1] - uses->start[t.i] != 1)
        return false;
    const Node *next = graph_node(b->g, uses->node[uses->start[t.i]]);
    const PoolAttr *pool = &next->attr.pool;
    bool two = true;
    for (int a = 0; a < 2; a++)
        two &= pool->kernel[a] == 2 && pool->stride[a] == 2 && !pool->pad[a];
    return next->op == OP_POOL && pool->kind == POOL_MAX && !pool->global &&
           two;
}

static uint32_t clipped(const HwRange *range, uint32_t extent) {
    return range->set && extent > range->hi ? (uint32_t)range->hi : extent;
}

/* Would the engine take it if it were not so tall or wide, and had no stride?
 */
static bool engine_may(const Bands *b, const Node *node) {
    Node small = *node;
    ConvAttr *conv = &small.attr.conv;
    if (node->op != OP_CONV || !bands_windows(b->g, node, 0))
        return false;
    Shape in = graph_tensor(b->g, node->in[0])->shape;
    in.dim[2] = clipped(&b->engine->limit[HW_LIMIT_IN_H], in.dim[2]);
    in.dim[3] = clipped(&b->engine->limit[HW_LIMIT_IN_W], in.dim[3]);
    Shape out = in;
    out.dim[1] = conv->out_c;
    for (int a = 0; a < 2; a++) {
        conv->stride[a] = 1;
        conv->pad[a] = conv->pad_end[a] = (conv->kernel[a] - 1) / 2;
    }
    Candidate candidate = legal_candidate(b->context->spec, b->g, &small);
    candidate.in = &in;
    candidate.out = &out;
    return legal_judge(NULL, &candidate).engine >= 0;
}

static bool is_hot(const Bands *b, const Node *node, int axis) {
    const HwRange *range =
        &b->engine->limit[axis ? HW_LIMIT_IN_W : HW_LIMIT_IN_H];
    if (!engine_may(b, node))
        return false;
    const Shape *in = &graph_tensor(b->g, node->in[0])->shape;
    bool large = b->context->bands == BANDS_OF_ALL && axis == 0 &&
                 bands_whole(b, node) > b->context->band_bytes;
    return large || (range->set && in->dim[2 + axis] > range->hi);
}

static void find_facts(Bands *b, int axis) {
    Arena *scratch = b->context->scratch;
    Graph *g = b->g;
    Uses uses = graph_uses(scratch, g);
    b->n = g->node.n;
    b->last = ARENA_ARRAY(scratch, uint32_t, g->tensor.n + 1);
    b->pool = ARENA_ARRAY(scratch, uint32_t, g->tensor.n + 1);
    b->hot = ARENA_ARRAY(scratch, bool, b->n + 1);
    b->rows = ARENA_ARRAY(scratch, Rows, g->tensor.n + 1);
    for (uint32_t t = 0; t < g->tensor.n; t++) {
        b->last[t] = g->tensor.at[t].is_output ? NONE : 0;
        b->pool[t] = NONE;
        for (uint32_t i = uses.start[t]; i < uses.start[t + 1]; i++)
            if (b->last[t] != NONE && uses.node[i].i > b->last[t])
                b->last[t] = uses.node[i].i;
    }
    for (uint32_t i = 0; i < b->n; i++) {
        const Node *node = &g->node.at[i];
        if (node->n_out == 1 && joins_pool(b, node, &uses))
            b->pool[node->out[0].i] = uses.node[uses.start[node->out[0].i]].i;
    }
    for (uint32_t i = 0; i < b->n; i++)
        b->hot[i] = is_hot(b, &g->node.at[i], axis);
}

/* ---- regions ---- */

/* Whether each node reads what comes in, or what one before it made; and only
 * the last one's result is used behind it. */
static bool closes(const Bands *b, Region *r) {
    r->in = b->g->node.at[r->first].in[0];
    r->out = b->g->node.at[r->last].out[0];
    for (uint32_t j = r->first; j <= r->last; j++) {
        const Node *node = &b->g->node.at[j];
        if (j < r->last && b->last[node->out[0].i] > r->last)
            return false;
        for (uint32_t k = 0; k < node->n_in; k++) {
            NodeId from = graph_tensor(b->g, node->in[k])->producer;
            if (!same_tensor(node->in[k], r->in) &&
                (from.i < r->first || from.i >= j))
                return false;
        }
    }
    return true;
}

static uint64_t elements(const Bands *b, TensorId t) {
    return shape_count(&graph_tensor(b->g, t)->shape);
}

static uint64_t weights_of(const Bands *b, const Region *r) {
    uint64_t sum = 0;
    for (uint32_t j = r->first; j <= r->last; j++) {
        ConstId w = b->g->node.at[j].constant[CONST_WEIGHT];
        sum += w.i == NONE ? 0 : shape_count(&graph_const(b->g, w)->shape);
    }
    return sum;
}

/* Bytes that the processor moves: a band is cut out and loaded, what it makes
 * is stored and put together. */
static bool tries_bands(const Bands *b, Region *r, uint32_t n) {
    uint32_t whole = graph_tensor(b->g, r->out)->shape.dim[2 + r->axis];
    uint32_t in = graph_tensor(b->g, r->in)->shape.dim[2 + r->axis];
    const Rows *out = &b->rows[r->out.i], *from = &b->rows[r->in.i];
    uint32_t unit = r->step * out->under / out->over;
    uint64_t line = elements(b, r->in) / in, read = 0;
    r->each = ((whole + n - 1) / n + unit - 1) / unit * unit;
    r->bands = 0;
    for (uint32_t begin = 0; begin < whole; begin += r->each) {
        uint32_t end = begin + r->each < whole ? begin + r->each : whole;
        if (!bands_rows(b, r, begin, end) ||
            bands_peak(b, r) > b->context->band_bytes)
            return false;
        read += (from->end - from->begin) * line;
        r->bands++;
    }
    r->cost = 2 * (read + elements(b, r->out)) + r->bands * weights_of(b, r);
    return r->bands > 1;
}

static bool has_bands(const Bands *b, Region *r) {
    if (!closes(b, r) || !bands_steps(b, r))
        return false;
    for (uint32_t n = 2; n <= BANDS_MOST; n++)
        if (tries_bands(b, r, n))
            return true;
    return false;
}

/* What the best way up to a node costs, and the region that ends there. */
typedef struct Way {
    uint64_t cost;
    uint32_t first; /* of the region; NONE: the node runs whole */
    Region region;
} Way;

static void find_way(const Bands *b, uint32_t i, int axis, Way *way) {
    enum { BITS = 48 };
    way[i + 1] = (Way){way[i].cost, NONE, {0}};
    way[i + 1].cost += (uint64_t)b->hot[i] << BITS;
    uint32_t most = i + 1 < BANDS_MOST_NODES ? i + 1 : BANDS_MOST_NODES;
    bool hot = false;
    for (uint32_t n = 1; n <= most; n++) {
        Region r = {.first = i + 1 - n, .last = i, .axis = axis};
        hot |= b->hot[r.first];
        if (!bands_windows(b->g, &b->g->node.at[r.first], axis))
            return;
        if (!hot || way[r.first].cost >= way[i + 1].cost || !has_bands(b, &r))
            continue;
        uint64_t cost = way[r.first].cost + r.cost;
        if (cost < way[i + 1].cost)
            way[i + 1] = (Way){cost, r.first, r};
    }
}

static bool band_axis(Graph *g, PassContext *context, int axis) {
    Bands b = {
        .g = g,
        .context = context,
        .memory = &context->spec->memory[0],
        .engine =
            &context->spec->engine[hwspec_engine(context->spec, HW_OP_CONV)]};
    Insertions insertions = {0};
    find_facts(&b, axis);
    Way *way = ARENA_ARRAY(context->scratch, Way, b.n + 1);
    for (uint32_t i = 0; i < b.n; i++)
        find_way(&b, i, axis, way);
    for (uint32_t i = b.n; i > 0;
         i = way[i].first == NONE ? i - 1 : way[i].first)
        if (way[i].first != NONE && bands_steps(&b, &way[i].region))
            bands_build(&b, &insertions, &way[i].region);
    insert_finish(context->scratch, g, &insertions);
    graph_compact(g);
    return insertions.node.n > 0;
}

bool bands_run(Graph *g, PassContext *context) {
    const HwSpec *spec = context->spec;
    if (!spec || !spec->bands || context->bands == BANDS_OF_NONE ||
        spec->n_active != 1 || hwspec_engine(spec, HW_OP_CONV) < 0)
        return true;
    context->banded = band_axis(g, context, 1);
    context->banded |= band_axis(g, context, 0);
    return true;
}
