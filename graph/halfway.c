/* halfway.c - codes halfway between two; see halfway.h.
 *
 * What is taken makes all that reads it stale. It is computed again when it is
 * asked for: in order, so that each layer reads what is right by then.
 * Invariant: what a listing has made is never stale, since what it reads was
 * taken before.
 */
#include "graph/halfway.h"

#include "graph/quant.h"

#include <float.h>
#include <math.h>

/* Roundings of a float, of the greatest number of a tensor, that another order
 * of sums may be off by. */
enum { ROUNDINGS = 64 };

Halfway halfway_start(Arena *arena, const Graph *g) {
    return (Halfway){.g = g, .stale = ARENA_ARRAY(arena, bool, g->tensor.n)};
}

void halfway_next(Halfway *h, Values reference) {
    h->reference = reference;
    h->any = false;
    for (uint32_t i = 0; i < h->g->tensor.n; i++)
        h->stale[i] = false;
}

static const float **inputs_of(Arena *arena, const Halfway *h,
                               const Node *node) {
    const float **in = ARENA_ARRAY(arena, const float *, node->n_in + 1);
    for (uint32_t k = 0; k < node->n_in; k++)
        in[k] = h->reference.at[node->in[k].i];
    return in;
}

static uint64_t count_of(const Halfway *h, TensorId tensor) {
    return shape_count(&graph_tensor(h->g, tensor)->shape);
}

/* ---- what builds on them ---- */

static void set_stale(Halfway *h, const Node *node, bool stale) {
    for (uint32_t o = 0; o < node->n_out; o++)
        h->stale[node->out[o].i] = stale;
    h->any |= stale;
}

static void make_stale(Halfway *h, NodeId taken) {
    for (uint32_t i = taken.i + 1; i < h->g->node.n; i++) {
        const Node *node = &h->g->node.at[i];
        bool reads = false;
        for (uint32_t k = 0; k < node->n_in && !node->dead; k++)
            reads |= h->stale[node->in[k].i] ||
                     graph_tensor(h->g, node->in[k])->producer.i == taken.i;
        if (reads)
            set_stale(h, node, true);
    }
}

static void compute(Halfway *h, const Node *node) {
    Arena *scratch = arena_new("again");
    float *out = h->reference.at[node->out[0].i];
    uint64_t n = count_of(h, node->out[0]);
    graph_eval_node(scratch, h->g, node, inputs_of(scratch, h, node), out);
    for (uint32_t o = 1; o < node->n_out; o++)
        for (uint64_t i = 0; i < n; i++)
            h->reference.at[node->out[o].i][i] = out[i];
    arena_free(scratch);
    set_stale(h, node, false);
}

bool halfway_refresh(Halfway *h, TensorId tensor) {
    if (!h->any || !h->stale[tensor.i])
        return false;
    uint32_t last = graph_tensor(h->g, tensor)->producer.i;
    for (uint32_t i = 0; i <= last; i++)
        if (!h->g->node.at[i].dead && h->stale[h->g->node.at[i].out[0].i])
            compute(h, &h->g->node.at[i]);
    return true;
}

/* ---- codes ---- */

/* Whether the code is one of a number that is as near as floats are. */
static bool is_near(const Quant *q, double number, double most, double code) {
    double off = ROUNDINGS * (double)FLT_EPSILON * most;
    return code >= quant_code(q, number - off) &&
           code <= quant_code(q, number + off);
}

static double greatest(const float *number, uint64_t n) {
    double most = 0;
    for (uint64_t i = 0; i < n; i++)
        if (isfinite(number[i]))
            most = fmax(most, fabs((double)number[i]));
    return most;
}

static bool differs(const Halfway *h, const MadeCodes *made) {
    const float *value = h->reference.at[made->tensor.i];
    bool any = false;
    for (uint64_t i = 0; i < made->n; i++)
        any |= value[made->at[i]] != made->got[i];
    return any;
}

static uint64_t take(Halfway *h, const MadeCodes *made, const float *number) {
    const Quant *q = &graph_tensor(h->g, made->tensor)->quant;
    double most = greatest(number, count_of(h, made->tensor));
    float *value = h->reference.at[made->tensor.i];
    uint64_t taken = 0;
    for (uint64_t i = 0; i < made->n; i++) {
        uint64_t at = made->at[i];
        if (value[at] != made->got[i] &&
            is_near(q, (double)number[at], most, (double)made->got[i])) {
            value[at] = made->got[i];
            taken++;
        }
    }
    return taken;
}

void halfway_take(Halfway *h, const MadeCodes *made) {
    NodeId producer = graph_tensor(h->g, made->tensor)->producer;
    const Node *node = graph_node(h->g, producer);
    if (!differs(h, made))
        return;
    Arena *scratch = arena_new("numbers");
    float *number = ARENA_ARRAY(scratch, float, count_of(h, made->tensor));
    uint64_t taken = 0;
    if (graph_eval_numbers(scratch, h->g, node, inputs_of(scratch, h, node),
                           number))
        taken = take(h, made, number);
    arena_free(scratch);
    h->codes += taken;
    if (taken)
        make_stale(h, producer);
}
