/* equalise.c - channels of equal range across layers; see flow.h.
 *
 * Where a layer with weights reads another's result, channel by channel, the
 * first may make a channel s times smaller and the second s times larger: relu
 * and pools let factors pass. A bound at 6 does not; it goes, which changes the
 * network (the samples judge that, too).
 *
 * Nagel, van Baalen, Blankevoort, Welling: "Data-free quantization through
 * weight equalization and bias correction" (2019) for the factors by weights.
 */
#include "quantise/flow.h"

#include <math.h>
#include <string.h>

/* Ways: by weights alone (the paper's), by what samples show in between. */
typedef struct Way {
    const char *name;
    bool weights;
    double share; /* of the unevenness of a volume that is taken away */
    bool drops_bounds;
} Way;
static const Way ways[] = {
    {"by weights", true, 0, false},
    {"by weights, relu6 as relu", true, 0, true},
    {"by volumes, half", false, 0.5, false},
    {"by volumes", false, 1, false},
};
enum { N_WAYS = sizeof ways / sizeof *ways, PASSES = 30 };

/* Weights of a layer that can be scaled. */
typedef struct Layer {
    bool is;
    uint32_t out, in; /* channels of each side */
    size_t inner;     /* weights of one pair of channels */
    bool thin;        /* one input channel an output channel */
    double *weight, *bias;
} Layer;

typedef struct Pair {
    uint32_t first, second; /* nodes */
    uint32_t channels;
    const float *seen; /* largest size of each channel between */
    double *by;        /* factors so far */
} Pair;

typedef struct Equaliser {
    Arena *arena;
    Graph *g;
    const State *from;
    Uses uses;
    Layer *layer; /* by node */
    VEC(Pair) pair;
    bool dropped;
} Equaliser;

static double *read(Arena *arena, const Graph *g, ConstId id) {
    const Const *c = graph_const(g, id);
    double *value = ARENA_ARRAY(arena, double, shape_count(&c->shape));
    const_read_f64(c, value);
    return value;
}

static Layer layer_of(Arena *arena, const Graph *g, const Node *node) {
    Layer l = {0};
    if (!linear_is(g, node))
        return l;
    const Shape *w = &graph_const(g, node->constant[CONST_WEIGHT])->shape;
    uint32_t groups = node->op == OP_FC ? 1 : node->attr.conv.groups;
    l.is = groups == 1 || (w->dim[1] == 1 && groups == w->dim[0]);
    l.thin = groups > 1;
    l.out = w->dim[0];
    l.in = l.thin ? w->dim[0] : w->dim[1];
    l.inner = shape_count(w) / w->dim[0] / w->dim[1];
    l.weight = read(arena, g, node->constant[CONST_WEIGHT]);
    if (node->constant[CONST_BIAS].i != NONE)
        l.bias = read(arena, g, node->constant[CONST_BIAS]);
    return l;
}

/* ---- who follows whom ---- */

static bool lets_pass(const Node *node) {
    switch (node->op) {
    case OP_ACT:
        return node->act.kind == ACT_RELU || node->act.kind == ACT_LEAKY;
    case OP_POOL:
    case OP_UPSAMPLE:
    case OP_IDENTITY:
        return node->act.kind == ACT_NONE || node->act.kind == ACT_RELU;
    case OP_PAD:
        return node->act.kind == ACT_NONE &&
               fpclassify(node->attr.pad.value) == FP_ZERO;
    default:
        return false;
    }
}

static bool act_passes(const Equaliser *e, const Node *node, bool drops) {
    (void)e;
    return node->act.kind == ACT_NONE || node->act.kind == ACT_RELU ||
           node->act.kind == ACT_LEAKY ||
           (drops && node->act.kind == ACT_RELU6);
}

/* The only reader of what a node writes; NONE. */
static uint32_t reader_of(const Equaliser *e, const Node *node) {
    uint32_t t = node->out[0].i;
    if (node->n_out != 1 || graph_is_output(e->g, node->out[0]) ||
        e->uses.start[t + 1] - e->uses.start[t] != 1)
        return NONE;
    return e->uses.node[e->uses.start[t]].i;
}

static void find_pair(Equaliser *e, uint32_t i, const Way *way) {
    const Node *node = &e->g->node.at[i];
    uint32_t next = reader_of(e, node), last = i;
    if (!e->layer[i].is || !act_passes(e, node, way->drops_bounds))
        return;
    while (next != NONE && lets_pass(&e->g->node.at[next])) {
        last = next;
        next = reader_of(e, &e->g->node.at[next]);
    }
    if (next == NONE || !e->layer[next].is ||
        e->layer[next].in != e->layer[i].out)
        return;
    uint32_t n = e->layer[i].out;
    const float *seen = e->from->seen.channel[e->g->node.at[last].out[0].i];
    if (graph_tensor(e->g, e->g->node.at[last].out[0])->shape.dim[1] != n)
        return; /* a plane of one number a weight: channels are no axis */
    vec_push(e->arena, &e->pair,
             ((Pair){i, next, n, seen, ARENA_ARRAY(e->arena, double, n)}));
    for (uint32_t c = 0; c < n; c++)
        e->pair.at[e->pair.n - 1].by[c] = 1;
}

/* ---- factors ---- */

/* Weights by output channel, or by input channel; `step` through them. */
static double most_of(const Layer *l, uint32_t channel, bool by_input) {
    double most = 0;
    bool whole = !by_input || l->thin;
    size_t each = (l->thin ? 1 : l->in) * l->inner;
    if (whole)
        for (size_t i = 0; i < each; i++)
            most = fmax(most, fabs(l->weight[channel * each + i]));
    for (size_t o = 0; !whole && o < l->out; o++)
        for (size_t i = 0; i < l->inner; i++)
            most =
                fmax(most, fabs(l->weight[o * each + channel * l->inner + i]));
    return most;
}

static void multiply(Layer *l, uint32_t channel, bool by_input, double by) {
    bool whole = !by_input || l->thin;
    size_t each = (l->thin ? 1 : l->in) * l->inner;
    if (whole)
        for (size_t i = 0; i < each; i++)
            l->weight[channel * each + i] *= by;
    for (size_t o = 0; !whole && o < l->out; o++)
        for (size_t i = 0; i < l->inner; i++)
            l->weight[o * each + channel * l->inner + i] *= by;
}

/* Beyond, channels that are nearly dead would grow without end. */
static double sane(double by) {
    return isfinite(by) ? fmin(fmax(by, 1e-4), 1e4) : 1;
}

static void scale_channel(Equaliser *e, const Pair *p, uint32_t c, double by) {
    Layer *first = &e->layer[p->first], *second = &e->layer[p->second];
    by = sane(p->by[c] * by) / p->by[c];
    multiply(first, c, false, 1 / by);
    if (first->bias)
        first->bias[c] /= by;
    multiply(second, c, true, by);
    p->by[c] *= by;
}

static void by_weights(Equaliser *e) {
    for (int pass = 0; pass < PASSES; pass++)
        for (uint32_t i = 0; i < e->pair.n; i++) {
            const Pair *p = &e->pair.at[i];
            for (uint32_t c = 0; c < p->channels; c++) {
                double a = most_of(&e->layer[p->first], c, false);
                double b = most_of(&e->layer[p->second], c, true);
                if (a > 0 && b > 0)
                    scale_channel(e, p, c, sqrt(a * b) / b);
            }
        }
}

static void by_volumes(Equaliser *e, double share) {
    for (uint32_t i = 0; i < e->pair.n; i++) {
        const Pair *p = &e->pair.at[i];
        double sum = 0, n = 0;
        for (uint32_t c = 0; c < p->channels; c++)
            if (p->seen[c] > 0) {
                sum += log((double)p->seen[c]);
                n++;
            }
        for (uint32_t c = 0; c < p->channels; c++)
            if (p->seen[c] > 0)
                scale_channel(e, p, c,
                              pow((double)p->seen[c] / exp(sum / n), share));
    }
}

/* ---- the whole ---- */

static ConstId written(Graph *g, ConstId old, const double *value) {
    Const c = {.shape = graph_const(g, old)->shape,
               .kind = CONST_F64,
               .data = ARENA_COPY(g->arena, double, value,
                                  shape_count(&graph_const(g, old)->shape))};
    return graph_add_const(g, c);
}

static void write_layers(Equaliser *e) {
    for (uint32_t i = 0; i < e->g->node.n; i++) {
        const Layer *l = &e->layer[i];
        ConstId *constant = e->g->node.at[i].constant;
        if (!l->is)
            continue;
        constant[CONST_WEIGHT] =
            written(e->g, constant[CONST_WEIGHT], l->weight);
        if (l->bias)
            constant[CONST_BIAS] = written(e->g, constant[CONST_BIAS], l->bias);
    }
}

static void drop_bounds(Equaliser *e) {
    for (uint32_t i = 0; i < e->pair.n; i++) {
        Node *node = &e->g->node.at[e->pair.at[i].first];
        e->dropped |= node->act.kind == ACT_RELU6;
        if (node->act.kind == ACT_RELU6)
            node->act.kind = ACT_RELU;
    }
}

bool equalise(Flow *f, const State *from, uint32_t way, const Graph **out,
              const char **detail) {
    if (way >= N_WAYS)
        return false;
    Equaliser e = {
        .arena = f->arena, .g = graph_clone(f->arena, from->g), .from = from};
    e.uses = graph_uses(f->arena, e.g);
    e.layer = ARENA_ARRAY(f->arena, Layer, e.g->node.n);
    for (uint32_t i = 0; i < e.g->node.n; i++)
        e.layer[i] = layer_of(f->arena, e.g, &e.g->node.at[i]);
    for (uint32_t i = 0; i < e.g->node.n; i++)
        find_pair(&e, i, &ways[way]);
    if (ways[way].drops_bounds)
        drop_bounds(&e);
    if (ways[way].weights)
        by_weights(&e);
    else
        by_volumes(&e, ways[way].share);
    write_layers(&e);
    *out = e.pair.n && (e.dropped || !ways[way].drops_bounds) ? e.g : NULL;
    *detail = arena_printf(f->arena, "%s, %u pairs of layers", ways[way].name,
                           e.pair.n);
    return true;
}
