/* shape_tensor.c - shape inference of operators on tensors of any rank; see
 * shape.c, whose promises it shares. */
#include "graph/shape.h"

#include <math.h>

/* Indices are kept as float in listings, which is exact up to here. */
enum { GATHER_MOST = 1 << 24 };

static const Shape *input(const Infer *x, uint32_t k) {
    return &graph_tensor(x->g, x->node->in[k])->shape;
}

static const char *text(const Infer *x, const Shape *shape) {
    return shape_text(x->g->arena, shape);
}

bool infer_constant(const Infer *x) {
    *x->out = x->node->attr.reshape;
    if (!x->out->rank || x->out->rank > SHAPE_MAX_RANK || !shape_count(x->out))
        return shape_fail(x, "a constant of %s is empty", text(x, x->out));
    return shape_check_size(x, "constant", x->out);
}

bool infer_call(const Infer *x) {
    *x->out = x->node->attr.call.shape;
    if (!x->node->attr.call.what)
        return shape_fail(x, "it does not say what it calls");
    if (!x->out->rank || x->out->rank > SHAPE_MAX_RANK || !shape_count(x->out))
        return shape_fail(x, "a result of %s is empty", text(x, x->out));
    return shape_check_size(x, "result", x->out);
}

bool infer_matmul(const Infer *x) {
    const Shape *a = &x->in, *b = input(x, 1);
    bool fits = a->rank >= 2 && b->rank == a->rank &&
                a->dim[a->rank - 1] == b->dim[b->rank - 2];
    *x->out = x->in;
    for (uint32_t i = 0; fits && i + 2 < a->rank; i++) {
        fits = a->dim[i] == b->dim[i] || a->dim[i] == 1 || b->dim[i] == 1;
        x->out->dim[i] = a->dim[i] == 1 ? b->dim[i] : a->dim[i];
    }
    if (!fits)
        return shape_fail(x, "cannot multiply %s by %s", text(x, a),
                          text(x, b));
    x->out->dim[b->rank - 1] = b->dim[b->rank - 1];
    return shape_check_size(x, "output", x->out);
}

bool infer_transpose(const Infer *x) {
    const Shape *perm = &x->node->attr.perm;
    uint32_t seen = 0;
    bool good = perm->rank == x->in.rank;
    *x->out = x->in;
    for (uint32_t i = 0; good && i < perm->rank; i++) {
        good = perm->dim[i] < x->in.rank && !(seen >> perm->dim[i] & 1);
        if (!good)
            break;
        seen |= 1u << perm->dim[i];
        x->out->dim[i] = x->in.dim[perm->dim[i]];
    }
    return good || shape_fail(x, "its order of axes does not fit its input %s",
                              text(x, &x->in));
}

bool infer_reduce(const Infer *x) {
    uint32_t axes = x->node->attr.reduce.axes;
    if (x->node->attr.reduce.kind >= REDUCE_COUNT)
        return shape_fail(x, "reduction of kind %d is not known",
                          (int)x->node->attr.reduce.kind);
    if (axes >> x->in.rank)
        return shape_fail(x, "reduces axes outside its input %s",
                          text(x, &x->in));
    *x->out = x->in;
    for (uint32_t i = 0; i < x->in.rank; i++)
        if (axes >> i & 1)
            x->out->dim[i] = 1;
    return true;
}

/* Indices that are known must be inside; a file can bring any. */
static bool indices_inside(const Infer *x, uint32_t size) {
    ConstId id = x->node->constant[CONST_INDEX];
    if (id.i == NONE)
        return true;
    const Const *c = graph_const(x->g, id);
    uint64_t n = shape_count(&c->shape);
    Arena *scratch = arena_new("infer_gather");
    double *index = ARENA_ARRAY(scratch, double, n);
    const_read_f64(c, index);
    bool inside = true;
    for (uint64_t i = 0; i < n; i++)
        inside &=
            index[i] >= 0 && index[i] < size && floor(index[i]) == index[i];
    arena_free(scratch);
    return inside || shape_fail(x, "an index is outside 0..%u", size - 1);
}

bool infer_gather(const Infer *x) {
    uint32_t axis = x->node->attr.gather.axis;
    uint32_t n = x->node->attr.gather.n, taps = x->node->attr.gather.taps;
    if (axis >= x->in.rank)
        return shape_fail(x, "axis %u is outside its input %s", axis,
                          text(x, &x->in));
    if (!n || !taps || (uint64_t)n * taps > GATHER_MOST ||
        x->in.dim[axis] > GATHER_MOST)
        return shape_fail(x, "%u times %u indices are none or too many", n,
                          taps);
    *x->out = x->in;
    x->out->dim[axis] = n;
    return shape_check_size(x, "output", x->out) &&
           indices_inside(x, x->in.dim[axis]);
}

bool infer_norm(const Infer *x) {
    uint32_t axis = x->node->attr.norm.axis, axes = x->node->attr.norm.axes;
    double eps = x->node->attr.norm.eps;
    *x->out = x->in;
    if (axis >= x->in.rank || axes > x->in.rank - axis)
        return shape_fail(x, "axis %u is outside its input %s",
                          axis + (axes ? axes - 1 : 0), text(x, &x->in));
    if (x->node->attr.norm.rms > 1)
        return shape_fail(x, "rms is %u, not 0 or 1", x->node->attr.norm.rms);
    return shape_need_groups(x, axis, x->node->attr.norm.groups) &&
           ((eps >= 0 && eps < 1e30) ||
            shape_fail(x, "epsilon %g is not a number from 0 up", eps));
}

bool infer_routine(const Infer *x) {
    const Node *node = x->node;
    Arena *scratch = arena_new("infer_routine");
    Shape *shape = ARENA_ARRAY(scratch, Shape, node->n_in);
    for (uint32_t i = 0; i < node->n_in; i++)
        shape[i] = graph_tensor(x->g, node->in[i])->shape;
    RoutineCall call = {.arena = scratch,
                        .kind = node->attr.routine.kind,
                        .number = node->attr.routine.number,
                        .n_in = node->n_in,
                        .shape = shape};
    const char *wrong = routine_shape(&call, x->out);
    if (wrong)
        shape_fail(x, "%s", wrong);
    arena_free(scratch);
    return !wrong && shape_check_size(x, "output", x->out);
}
