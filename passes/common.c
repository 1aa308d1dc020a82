/* common.c - what guards ask and rewrites make; see passes_int.h. */
#include "passes/passes_int.h"

#include <assert.h>

int32_t match_engine(const Match *m, uint32_t i) {
    if (!m->context->spec)
        return -1;
    return legal_engine(m->context->spec, m->g, match_node(m, i));
}

int32_t candidate_engine(const Match *m, const Node *node, const Shape *in,
                         const Shape *out) {
    if (!m->context->spec)
        return -1;
    Candidate candidate = legal_candidate(m->context->spec, m->g, node);
    candidate.in = in;
    candidate.out = out;
    return legal_judge(NULL, &candidate).engine;
}

bool keeps_engine(const Match *m, uint32_t i, const Node *changed,
                  const Shape *in, const Shape *out) {
    return match_engine(m, i) < 0 || candidate_engine(m, changed, in, out) >= 0;
}

ConstId constant_of(Graph *g, Shape shape, double value, uint32_t groups) {
    Const c = {
        .shape = shape, .kind = CONST_SEEDED, .mean = value, .groups = groups};
    return graph_add_const(g, c);
}

Shape shape_of(uint32_t n) {
    return (Shape){1, {n}};
}

double *read_constant(const Match *m, ConstId id, uint32_t n, double absent) {
    double *value = ARENA_ARRAY(m->context->scratch, double, n);
    if (id.i == NONE) {
        for (uint32_t i = 0; i < n; i++)
            value[i] = absent;
        return value;
    }
    assert(shape_count(&graph_const(m->g, id)->shape) == n);
    const_read_f64(graph_const(m->g, id), value);
    return value;
}

ConstId write_constant(Match *m, uint32_t n, const double *value) {
    Const c = {
        .shape = shape_of(n),
        .kind = CONST_F64,
        .data = ARENA_COPY(m->g->arena, double, value, n),
    };
    return graph_add_const(m->g, c);
}

void node_become(Graph *g, Node *node, OpKind op, const Attrs *attr,
                 uint32_t n_in, const TensorId *in) {
    node->op = op;
    node->attr = *attr;
    node->act = (Act){0};
    node->n_in = n_in;
    node->in = ARENA_COPY(g->arena, TensorId, in, n_in);
    for (int r = 0; r < CONST_ROLES; r++)
        node->constant[r] = NO_CONST;
}

void node_become_concat(Graph *g, Node *node, uint32_t n, const TensorId *in) {
    const Attrs channels = {.axis = {.axis = 1}};
    node_become(g, node, OP_CONCAT, &channels, n, in);
}

void node_take_constants(Graph *g, NodeId to, const Node *like, uint32_t first,
                         uint32_t n) {
    for (int r = 0; r < CONST_ROLES; r++) {
        if (like->constant[r].i == NONE)
            continue;
        const Const *whole = graph_const(g, like->constant[r]);
        Const part = const_part(g->arena, whole, 0, first, n);
        graph_node(g, to)->constant[r] = graph_add_const(g, part);
    }
}
