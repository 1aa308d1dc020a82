/* ops_einsum.c - ONNX's Einsum of one operand or two; see onnx.h.
 *
 * Labels are of four sorts: in both operands and the result (batch), in both
 * only (summed), in one operand and the result, in one operand only. The last
 * are summed first; the rest is a matrix product [batch, left, summed] by
 * [batch, summed, right], its axes put in order. Labels that an operand has
 * twice, and "...", are refused.
 */
#include "frontends/onnx/onnx.h"

#include <string.h>

enum { LABELS = 52 };
/* The axes of an operand or of the result, by label. */
typedef struct Term {
    uint32_t n, label[SHAPE_MAX_RANK];
    uint64_t set; /* of labels */
} Term;

typedef struct Einsum {
    Onnx *x;
    OnnxNode *n;
    uint32_t size[LABELS];
    Term in[2], out;
    TensorId tensor[2];
} Einsum;

static bool add_label(Term *term, uint32_t label) {
    if (term->n == SHAPE_MAX_RANK || term->set >> label & 1)
        return false;
    term->label[term->n++] = label;
    term->set |= UINT64_C(1) << label;
    return true;
}

/* Up to `,`, `-` or the end; what follows, NULL if it is no term. */
static const char *read_term(const char *at, Term *term) {
    *term = (Term){0};
    for (; *at && *at != ',' && *at != '-'; at++) {
        bool small = *at >= 'a' && *at <= 'z', large = *at >= 'A' && *at <= 'Z';
        if (*at == ' ')
            continue;
        if ((!small && !large) ||
            !add_label(term, (uint32_t)(small ? *at - 'a' + 26 : *at - 'A')))
            return NULL;
    }
    return at;
}

/* Without `->`: the labels that are in one operand, in alphabetical order. */
static bool usual_output(Einsum *e) {
    e->out = (Term){0};
    for (uint32_t label = 0; label < LABELS; label++)
        if (((e->in[0].set ^ e->in[1].set) >> label & 1) &&
            !add_label(&e->out, label))
            return false;
    return true;
}

static bool read_equation(Einsum *e) {
    const char *text = onnx_word(e->x, e->n, "equation", "");
    const char *at = read_term(text, &e->in[0]);
    if (at && e->n->n_in == 2)
        at = *at == ',' ? read_term(at + 1, &e->in[1]) : NULL;
    bool good = at && !*at && usual_output(e);
    if (at && !strncmp(at, "->", 2)) {
        at = read_term(at + 2, &e->out);
        good = at && !*at;
    }
    uint64_t known = e->in[0].set | e->in[1].set;
    return (good && !(e->out.set & ~known)) ||
           onnx_error(e->x, e->n, "equation \"%.60s\" is not supported", text);
}

/* Sizes of labels; operands as tensors. */
static bool read_operands(Einsum *e) {
    for (uint32_t i = 0; i < e->n->n_in; i++) {
        const Shape *shape = &onnx_in(e->x, e->n, i)->shape;
        const Term *term = &e->in[i];
        bool fits = shape->rank == term->n;
        for (uint32_t k = 0; fits && k < term->n; k++) {
            uint32_t *size = &e->size[term->label[k]];
            fits = !*size || *size == shape->dim[k];
            *size = shape->dim[k];
        }
        if (!fits)
            return onnx_error(e->x, e->n,
                              "input %u of shape %s is not what its equation "
                              "says",
                              i, shape_text(e->x->arena, shape));
        e->tensor[i] = onnx_tensor_in(e->x, e->n, i);
    }
    return true;
}

/* Sums the labels that only operand `i` has, and takes their axes away. */
static void sum_own(Einsum *e, uint32_t i) {
    Term kept = {0};
    Shape shape = {0};
    uint32_t axes = 0;
    uint64_t wanted = e->out.set | e->in[!i].set;
    for (uint32_t k = 0; k < e->in[i].n; k++) {
        uint32_t label = e->in[i].label[k];
        if (wanted >> label & 1) {
            add_label(&kept, label);
            shape.dim[shape.rank++] = e->size[label];
        } else {
            axes |= 1u << k;
        }
    }
    if (!axes)
        return;
    TensorId sum = onnx_reduce(e->x, e->n, e->tensor[i], REDUCE_SUM, axes);
    e->tensor[i] = onnx_reshape(e->x, e->n, sum, shape);
    e->in[i] = kept;
}

/* `in`, whose axes are those of `from`, with those of `to`. */
static TensorId in_order(Einsum *e, TensorId in, const Term *from,
                         const Term *to) {
    uint32_t perm[SHAPE_MAX_RANK] = {0};
    for (uint32_t i = 0; i < to->n; i++)
        for (uint32_t k = 0; k < from->n; k++)
            if (from->label[k] == to->label[i])
                perm[i] = k;
    return to->n > 1 ? onnx_transpose(e->x, e->n, in, perm) : in;
}

/* Adds the labels of `from` that are in `set`; the product of their sizes. */
static uint32_t take(const Einsum *e, const Term *from, uint64_t set,
                     Term *to) {
    uint64_t size = 1;
    for (uint32_t k = 0; k < from->n; k++)
        if (set >> from->label[k] & 1 && add_label(to, from->label[k]))
            size *= e->size[from->label[k]];
    return (uint32_t)size;
}

/* Both have no labels but those that go into the product. */
static TensorId multiply(Einsum *e, Term *made) {
    const Term *a = &e->in[0], *b = &e->in[1];
    uint64_t both = a->set & b->set, batch = both & e->out.set;
    uint64_t summed = both & ~e->out.set;
    Term left = {0}, right = {0};
    Shape sa = {.rank = 3}, sb = {.rank = 3};
    sa.dim[0] = sb.dim[0] = take(e, a, batch, &left);
    take(e, a, batch, &right);
    sa.dim[1] = take(e, a, a->set & ~both, &left);
    sa.dim[2] = sb.dim[1] = take(e, a, summed, &left);
    take(e, a, summed, &right);
    sb.dim[2] = take(e, b, b->set & ~both, &right);
    TensorId in[2] = {in_order(e, e->tensor[0], a, &left),
                      in_order(e, e->tensor[1], b, &right)};
    in[0] = onnx_reshape(e->x, e->n, in[0], sa);
    in[1] = onnx_reshape(e->x, e->n, in[1], sb);
    *made = (Term){0};
    take(e, a, batch, made);
    take(e, a, a->set & ~both, made);
    take(e, b, b->set & ~both, made);
    Shape whole = {.rank = made->n};
    for (uint32_t i = 0; i < made->n; i++)
        whole.dim[i] = e->size[made->label[i]];
    NodeId id = onnx_add(e->x, e->n, OP_MATMUL, "matmul", 2, in);
    return onnx_reshape(e->x, e->n, onnx_end(e->x, id), whole);
}

bool onnx_einsum(Onnx *x, OnnxNode *n) {
    Einsum e = {.x = x, .n = n};
    if (!read_equation(&e) || !read_operands(&e))
        return false;
    Shape shape = {.rank = e.out.n};
    for (uint32_t i = 0; i < e.out.n; i++)
        shape.dim[i] = e.size[e.out.label[i]];
    for (uint32_t i = 0; i < n->n_in; i++)
        sum_own(&e, i);
    Term made = e.in[0];
    TensorId out = n->n_in == 2 ? multiply(&e, &made) : e.tensor[0];
    out = in_order(&e, out, &made, &e.out);
    return onnx_set(x, n, 0, onnx_reshape(x, n, out, shape), &shape);
}
