/* ways.c - who runs each layer, and in which memories its operands are wanted.
 *
 * An engine runs what the hwspec and its row allow, and sums of volumes that
 * can lie beside each other. A concat of channels is free where all members can
 * lie beside each other and an engine reads it. All else is the processor's.
 */
#include "filegen/lower.h"

#include "graph/quant.h"

#include <string.h>

static Value *value_at(Lower *l, TensorId t) {
    return &l->value.at[l->value_of[t.i]];
}

/* ---- values ---- */

static bool same_codes(const Tensor *a, const Tensor *b) {
    if (a->quant.type == QUANT_NONE || b->quant.type == QUANT_NONE)
        return a->quant.type == b->quant.type;
    bool alike =
        a->quant.scale <= b->quant.scale && a->quant.scale >= b->quant.scale;
    return alike && a->quant.zero + file_code_offset(&a->quant) ==
                        b->quant.zero + file_code_offset(&b->quant);
}

static Value new_value(const Tensor *t) {
    Value v = {.n = 1, .unit = 1, .whole = NONE};
    shape_chw(&t->shape, &v.c, &v.h, &v.w);
    if (t->quant.type == QUANT_NONE)
        v.unit = sizeof(float);
    return v;
}

/* The same bytes: does the node only give them a new name? */
static bool only_renames(const Lower *l, const Node *node) {
    if ((node->op != OP_IDENTITY && node->op != OP_RESHAPE &&
         node->op != OP_ACT) ||
        node->n_out != 1)
        return false;
    const Tensor *in = graph_tensor(l->g, node->in[0]);
    const Tensor *out = graph_tensor(l->g, node->out[0]);
    bool cuts = node->op == OP_ACT &&
                (in->quant.type == QUANT_NONE || quant_act_cuts(l->g, node));
    return !cuts && same_codes(in, out);
}

static bool same_volume(const Value *a, const Value *b) {
    return a->c == b->c && a->h == b->h && a->w == b->w;
}

static void make_values(Lower *l) {
    const Graph *g = l->g;
    l->value_of = ARENA_ARRAY(l->arena, uint32_t, g->tensor.n + 1);
    for (uint32_t i = 0; i < g->tensor.n; i++) {
        Value v = new_value(&g->tensor.at[i]);
        v.spilled = l->spill[i];
        l->value_of[i] = i;
        vec_push(l->arena, &l->value, v);
    }
    for (uint32_t i = 0; i < g->node.n; i++) {
        const Node *node = &g->node.at[i];
        l->beside[i] = NONE;
        if (!only_renames(l, node))
            continue;
        l->layer[i].way = FILE_NOTHING;
        if (same_volume(value_at(l, node->in[0]), value_at(l, node->out[0])))
            l->value_of[node->out[0].i] = l->value_of[node->in[0].i];
    }
}

/* ---- beside each other ---- */

/* A value of all channels, of which the tensors are parts; NONE if one of them
 * cannot be. */
static uint32_t lay_beside(Lower *l, uint32_t n, const TensorId *member,
                           uint32_t whole) {
    const Layout *layout = l->spec->memory[l->active].layout;
    Value v = *value_at(l, member[0]);
    v.c = 0;
    for (uint32_t k = 0; k < n; k++) {
        const Value *part = value_at(l, member[k]);
        if (part->whole != NONE || part->unit != 1 || part->h != v.h ||
            part->w != v.w || l->value_of[member[k].i] == whole)
            return NONE;
        for (uint32_t j = 0; j < k; j++)
            if (l->value_of[member[j].i] == l->value_of[member[k].i])
                return NONE;
        v.c += part->c;
    }
    Volume all = {v.c, v.h, v.w, {0}};
    uint32_t first = 0, step = layout_split(layout, &all, LAYOUT_C);
    for (uint32_t k = 0; k < n; first += value_at(l, member[k++])->c)
        if (first % step ||
            !layout_part_alone(layout, &all, first, value_at(l, member[k])->c))
            return NONE;
    if (whole == NONE) {
        whole = l->value.n;
        Value fresh = {
            .n = 1, .c = v.c, .h = v.h, .w = v.w, .unit = 1, .whole = NONE};
        vec_push(l->arena, &l->value, fresh);
    }
    first = 0;
    for (uint32_t k = 0; k < n; k++) {
        Value *part = value_at(l, member[k]);
        part->whole = whole;
        part->first = first;
        first += part->c;
    }
    return whole;
}

static bool engine_makes(const Lower *l, TensorId t) {
    return l->layer[graph_tensor(l->g, t)->producer.i].way == FILE_ENGINE;
}

/* One node of an engine instead of three moves by the processor. */
static void try_sum(Lower *l, LayerMaker *m, NodeId id) {
    const Node *node = graph_node(l->g, id);
    FileLayer *layer = &l->layer[id.i];
    if (l->apart[id.i] || node->op != OP_ELTWISE || node->n_in != 2 ||
        (!engine_makes(l, node->in[0]) && !engine_makes(l, node->in[1])))
        return;
    layer->conv = layer_sum(m, id);
    if (!layer->conv)
        return;
    l->beside[id.i] = lay_beside(l, 2, node->in, NONE);
    if (l->beside[id.i] == NONE)
        return;
    layer->channels = engine_channels(l, id, &layer->why);
    if (layer->channels) {
        layer->way = FILE_ENGINE;
        return;
    }
    for (int k = 0; k < 2; k++)
        value_at(l, node->in[k])->whole = NONE;
    l->beside[id.i] = NONE;
}

static bool engine_reads(const Lower *l, const Uses *uses, TensorId t) {
    for (uint32_t i = uses->start[t.i]; i < uses->start[t.i + 1]; i++)
        if (l->layer[uses->node[i].i].way == FILE_ENGINE)
            return true;
    return false;
}

static void try_concat(Lower *l, const Uses *uses, NodeId id) {
    const Node *node = graph_node(l->g, id);
    if (l->apart[id.i] || node->op != OP_CONCAT || node->attr.axis.axis != 1 ||
        node->act.kind != ACT_NONE || !engine_reads(l, uses, node->out[0]))
        return;
    const Tensor *out = graph_tensor(l->g, node->out[0]);
    for (uint32_t k = 0; k < node->n_in; k++)
        if (!same_codes(out, graph_tensor(l->g, node->in[k])))
            return;
    l->beside[id.i] =
        lay_beside(l, node->n_in, node->in, l->value_of[node->out[0].i]);
    if (l->beside[id.i] != NONE)
        l->layer[id.i].way = FILE_BESIDE;
}

/* ---- ways ---- */

static void first_ways(Lower *l, LayerMaker *m) {
    for (uint32_t i = 0; i < l->g->node.n; i++) {
        const Node *node = &l->g->node.at[i];
        FileLayer *layer = &l->layer[i];
        if (node->op == OP_INPUT || only_renames(l, node))
            continue;
        layer->way = FILE_HOST;
        layer->conv = layer_conv(m, (NodeId){i});
        layer->why = m->why;
        if (layer->conv)
            layer->channels = engine_channels(l, (NodeId){i}, &layer->why);
        if (layer->channels)
            layer->way = FILE_ENGINE;
    }
}

static void want(Lower *l, const Node *node, bool main) {
    for (uint32_t k = 0; k < node->n_in; k++) {
        Value *v = value_at(l, node->in[k]);
        v->wants_main |= main || v->spilled;
        v->wants_active |= !main;
    }
}

/* Last to first, since what is only moved on is wanted where it goes. */
static void wants(Lower *l) {
    const Graph *g = l->g;
    for (uint32_t i = 0; i < g->output.n; i++)
        value_at(l, g->output.at[i])->wants_main = true;
    for (uint32_t i = g->node.n; i-- > 0;) {
        const Node *node = &g->node.at[i];
        if (node->op == OP_INPUT)
            continue;
        const Value *out = value_at(l, node->out[0]);
        bool renamed =
            l->layer[i].way == FILE_NOTHING && value_at(l, node->in[0]) == out;
        if (renamed)
            continue;
        if (l->layer[i].way == FILE_BESIDE) {
            want(l, node, false);
            if (out->wants_main)
                want(l, node, true);
        } else {
            want(l, node, l->layer[i].way != FILE_ENGINE);
        }
    }
}

bool lower_ways(Lower *l) {
    LayerMaker maker = {.arena = l->arena, .spec = l->spec, .g = l->g};
    Uses uses = graph_uses(l->arena, l->g);
    make_values(l);
    first_ways(l, &maker);
    for (uint32_t i = 0; i < l->g->node.n; i++)
        if (l->layer[i].way == FILE_HOST)
            try_sum(l, &maker, (NodeId){i});
    for (uint32_t i = 0; i < l->g->node.n; i++)
        if (l->layer[i].way == FILE_HOST)
            try_concat(l, &uses, (NodeId){i});
    wants(l);
    return !l->failed;
}
