/* blend.c - sums, concats and moves of volumes as layers.
 *
 * Sums on one scale are what a layer does in front; all others, and codes that
 * change their scale or are cut, are convolutions of one pixel by powers of
 * two, over volumes side by side: one rounding, as the sum of a graph has.
 */
#include "lanes/lower.h"

#include "lanes/kernels.h"

#include <math.h>

/* All sources of the members, in order; false: one has more than a front that
 * reads. */
static bool gather(Lower *l, const Node *node, LaneLayer *front) {
    *front = low_fresh(node, 0);
    front->n_sources = 0;
    for (uint32_t k = 0; k < node->n_in; k++) {
        Value *v = &l->value[node->in[k].i];
        if ((pools(&v->front) || v->front.elt != LANE_ALONE) &&
            !low_settle(l, node, node->in[k]))
            return false;
        if (front->n_sources + v->front.n_sources > LANE_OPERANDS)
            return low_refuse(l, node, "more than 16 volumes side by side");
        for (uint32_t s = 0; s < v->front.n_sources; s++)
            front->source[front->n_sources++] = v->front.source[s];
    }
    return true;
}

/* Can so many volumes of c channels be read as one? */
static bool lie_together(const Lower *l, uint32_t c, uint32_t n) {
    uint32_t all = c * n, passes = lanes_passes(l->arena, l->m, all);
    return c % l->m->bank == 0 &&
           (passes == 1 ||
            (passes == n && lanes_needed(l->arena, l->m, all) == c));
}

/* The sum of inputs, each by its factor, as a convolution of one pixel. */
static bool lower_sum(Lower *l, const Node *node, const double *factor,
                      LaneAct act) {
    uint32_t c = l->value[node->in[0].i].c;
    for (uint32_t k = 0; node->n_in > 1 && k < node->n_in; k++)
        if (!low_settle(l, node, node->in[k]))
            return false;
    if (node->n_in > 1 && !lie_together(l, c, node->n_in))
        return low_refuse(
            l, node,
            "sums on several scales, or with ReLU, have channels by "
            "fours, at most 64: give all of them one scale");
    LaneLayer layer = l->value[node->in[0].i].front;
    if (node->n_in > 1 && !gather(l, node, &layer))
        return false;
    layer.act = act;
    if (!kernels_sum(l->arena, c, node->n_in, factor, &layer))
        return low_refuse(l, node,
                          "scales of sums are powers of two, at most 64 apart");
    low_make(l, node, &layer, node->out[0]);
    return true;
}

static bool same_size(const Lower *l, const Node *node) {
    const Value *a = &l->value[node->in[0].i];
    for (uint32_t k = 1; k < node->n_in; k++) {
        const Value *b = &l->value[node->in[k].i];
        if (a->size[0] != b->size[0] || a->size[1] != b->size[1] ||
            (node->op == OP_ELTWISE && a->c != b->c))
            return false;
    }
    return true;
}

bool low_elt(Lower *l, const Node *node) {
    const QuantLayer q = quant_layer(l->arena, l->g, node);
    bool minus = node->attr.elt.kind == ELT_SUB;
    double factor[2] = {1, 1};
    LaneLayer cut = {0};
    bool one = true;
    if (q.rule != QUANT_ADDS || !low_is_plain(quant_of(l, node->out[0])) ||
        !same_size(l, node))
        return low_refuse(l, node,
                          "only sums and differences of two volumes of "
                          "one size, on codes around 0");
    if (!low_cut(l, node, &q, &cut))
        return false;
    for (uint32_t k = 0; k < 2; k++) {
        if (!low_is_plain(quant_of(l, node->in[k])))
            return low_refuse(l, node, "sums are of codes around 0");
        factor[k] =
            quant_of(l, node->in[k])->scale / quant_of(l, node->out[0])->scale;
        one = one && fabs(factor[k] - 1) < 1e-9;
    }
    factor[1] = minus ? -factor[1] : factor[1];
    if (!one || cut.act != LANE_PLAIN || node->in[0].i == node->in[1].i)
        return lower_sum(l, node, factor, cut.act);
    if (!low_settle(l, node, node->in[0]) || !low_settle(l, node, node->in[1]))
        return false;
    LaneLayer front;
    if (!gather(l, node, &front))
        return false;
    front.elt = minus ? LANE_SUB : LANE_ADD;
    front.operands = 2;
    low_set(l, node->out[0], &front);
    return low_share(l, node, node->out[0]);
}

bool low_move(Lower *l, const Node *node, TensorId in, LaneAct act) {
    double factor = quant_of(l, in)->scale / quant_of(l, node->out[0])->scale;
    Value *v = &l->value[in.i];
    LaneLayer layer = v->front;
    if (v->front.elt != LANE_ALONE) {
        if (!low_settle(l, node, in))
            return false;
        layer = v->front;
    }
    layer.act = act;
    if (!kernels_sum(l->arena, v->c, 1, &factor, &layer))
        return low_refuse(l, node, "scales are powers of two");
    low_make(l, node, &layer, node->out[0]);
    return true;
}

bool low_concat(Lower *l, const Node *node) {
    LaneLayer front;
    const Quant *out = quant_of(l, node->out[0]);
    uint32_t last = node->n_in - 1, c = 0, most = 0;
    bool alike = true, fours = true;
    if (node->attr.axis.axis != 1 || !same_size(l, node))
        return low_refuse(l, node, "concats are of channels");
    for (uint32_t k = 0; k < node->n_in; k++) {
        const Value *v = &l->value[node->in[k].i];
        if (!quant_equal(quant_of(l, node->in[k]), out))
            return low_refuse(l, node, "members of a concat have its scale");
        alike = alike && v->c == l->value[node->in[0].i].c;
        fours = fours && (k == last || v->c % l->m->bank == 0);
        c += v->c;
        most = v->c > most ? v->c : most;
    }
    bool one = lanes_passes(l->arena, l->m, c) == 1;
    if (!fours || (!one && !(alike && lie_together(l, most, node->n_in))))
        return low_refuse(
            l, node,
            "members of a concat have channels by fours; above 64 "
            "channels all have the same, as many as members fill "
            "passes");
    if (!gather(l, node, &front))
        return false;
    low_set(l, node->out[0], &front);
    return one || low_share(l, node, node->out[0]);
}

bool low_act(Lower *l, const Node *node) {
    const Quant *in = quant_of(l, node->in[0]);
    const Quant *out = quant_of(l, node->out[0]);
    const Value *v = &l->value[node->in[0].i];
    if (node->act.kind != ACT_RELU || !low_is_plain(in) || !low_is_plain(out))
        return low_refuse(l, node,
                          "the only activation is ReLU, on codes around 0");
    LaneLayer *last = is_one(&v->front) && v->front.source[0] >= 0
                          ? &l->net->layer[v->front.source[0]]
                          : NULL;
    if (!last || last->op == LANE_PASS || last->act != LANE_PLAIN ||
        l->uses[node->in[0].i] > 1 || !quant_equal(in, out))
        return low_move(l, node, node->in[0], LANE_RELU);
    last->act = LANE_RELU;
    low_rename(l, node->in[0], node->out[0]);
    return true;
}
