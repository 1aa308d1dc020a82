/* given.c - scales that a file gives for layers, as a scheme; see flow.h.
 *
 * A tensor has the scale that its maker says, else its first reader. What only
 * moves codes, a pool and a bound hand their scale on. Tensors of which nothing
 * is said stay real numbers, and so do weights.
 */
#include "quantise/flow.h"

#include <math.h>
#include <string.h>

typedef struct Giver {
    Flow *f;
    const Graph *g;
    Groups *groups;
    Scheme *out;
    double *scale; /* by group; 0: none yet */
    uint32_t clashes, unknown;
    const char *clash, *first; /* names */
} Giver;

static double *scale_at(const Giver *v, TensorId t) {
    return &v->scale[v->groups->of[t.i]];
}

static void say(Giver *v, TensorId t, double scale) {
    const double near = 1e-6;
    double *own = scale_at(v, t);
    if (!(scale > 0))
        return;
    if (!(*own > 0))
        *own = scale;
    else if (fabs(*own - scale) > near * scale && !v->clashes++)
        v->clash = graph_tensor(v->g, t)->name;
}

/* The next node of the layer from `i` on; an activation that became one of its
 * own has its layer's name. */
static uint32_t node_of(const Graph *g, const char *layer, uint32_t i) {
    while (i < g->node.n &&
           (!g->node.at[i].n_in || strcmp(g->node.at[i].name, layer) != 0))
        i++;
    return i;
}

static void say_outputs(Giver *v, const QuantiseGiven *row) {
    uint32_t i = node_of(v->g, row->layer, 0);
    if (i == v->g->node.n && !v->unknown++)
        v->first = row->layer;
    for (; i < v->g->node.n; i = node_of(v->g, row->layer, i + 1)) {
        say(v, v->g->node.at[i].out[0], row->out);
        v->groups->wide[v->groups->of[v->g->node.at[i].out[0].i]] |= row->wide;
    }
}

static void say_inputs(Giver *v, const QuantiseGiven *row) {
    uint32_t i = node_of(v->g, row->layer, 0);
    for (uint32_t k = 0; i < v->g->node.n && k < v->g->node.at[i].n_in; k++)
        say(v, v->g->node.at[i].in[k], row->in);
}

static void hand_on(const Giver *v) {
    for (uint32_t i = 0; i < v->g->node.n; i++) {
        const Node *node = &v->g->node.at[i];
        bool bound =
            node->op == OP_ACT &&
            (node->act.kind == ACT_RELU || node->act.kind == ACT_RELU6 ||
             node->act.kind == ACT_CLIP);
        if (node->n_in == 1 && (node->op == OP_POOL || bound) &&
            !(*scale_at(v, node->out[0]) > 0))
            *scale_at(v, node->out[0]) = *scale_at(v, node->in[0]);
    }
}

/* The factor of the sums is the file's where it is one for these scales. */
static double scale_of(const QuantiseGiven *row, uint32_t c, double in,
                       double out) {
    const double near = 1e-3;
    double by = in * row->weight[c] / out;
    return fabs(row->factor[c] - by) <= near * by ? row->factor[c] * out / in
                                                  : row->weight[c];
}

static bool give_weights(const Giver *v, const QuantiseGiven *row) {
    uint32_t i = node_of(v->g, row->layer, 0);
    if (!row->n || i == v->g->node.n ||
        !groups_sums(v->g, v->groups, &v->g->node.at[i]))
        return true;
    const Node *node = &v->g->node.at[i];
    const Const *c = graph_const(v->g, node->constant[CONST_WEIGHT]);
    uint32_t n = shape_dim(&c->shape, node->op == OP_DECONV);
    if (n != row->n) {
        diag_error(v->f->diag, node->loc,
                   "layer \"%s\": %u scales of weights, it has %u channels",
                   row->layer, row->n, n);
        return false;
    }
    WeightCodes *w = &v->out->weight[i];
    *w = weights_by(v->f->arena, v->g, node, row->bits, row->weight);
    double *scale = ARENA_ARRAY(v->f->arena, double, n);
    for (uint32_t k = 0; k < n; k++)
        scale[k] = scale_of(row, k, *scale_at(v, node->in[0]),
                            *scale_at(v, node->out[0]));
    w->scale = scale;
    return true;
}

static void warn(const Giver *v) {
    if (v->unknown)
        diag_warning(v->f->diag, (Loc){0},
                     "the network has no layer of %u names, first \"%s\"",
                     v->unknown, v->first);
    if (v->clashes)
        diag_warning(v->f->diag, (Loc){0},
                     "layers say different scales of a tensor %u times, first "
                     "of %s: its maker's is taken",
                     v->clashes, v->clash);
}

bool scheme_given(Flow *f, const Graph *g, Groups *groups, Scheme *out) {
    const QuantiseOptions *o = f->options;
    Giver v = {f, g, groups, out, ARENA_ARRAY(f->arena, double, g->tensor.n),
               0, 0, NULL,   NULL};
    *out = (Scheme){g, ARENA_ARRAY(f->arena, Quant, g->tensor.n),
                    ARENA_ARRAY(f->arena, WeightCodes, g->node.n)};
    for (uint32_t i = 0; i < o->n_given; i++)
        say_outputs(&v, &o->given[i]);
    for (uint32_t i = 0; i < o->n_given; i++)
        say_inputs(&v, &o->given[i]);
    hand_on(&v);
    for (uint32_t t = 0; t < g->tensor.n; t++) {
        uint32_t group = groups->of[t];
        groups->real[group] |= !(v.scale[group] > 0);
        if (!groups->real[group])
            out->quant[t] =
                (Quant){groups->wide[group] ? QUANT_I16 : QUANT_I8, 0,
                        v.scale[group], o->numbers.round};
    }
    bool good = true;
    for (uint32_t i = 0; i < o->n_given; i++)
        good = give_weights(&v, &o->given[i]) && good;
    warn(&v);
    return good;
}
