/* constants.c - operators of constants, and those whose results are known
 * whatever their inputs are: shapes, numbers in a row.
 *
 * Weights of halves, or sparse, come through such operators; so do shapes that
 * a model computes.
 */
#include "frontends/tflite/tflite.h"

/* Output i as a constant. */
static void be_known(Tfl *t, uint32_t i, Const value) {
    int32_t id = flat_at_i32(&t->flat, t->out, i);
    if (i >= t->out.n || id < 0 || (uint32_t)id >= t->n)
        return;
    t->tensor[id].value = value;
    t->tensor[id].has_value = true;
}

/* ---- any operator ---- */

static bool all_known(Tfl *t) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->in.n; i++) {
        const TflTensor *in = tfl_tensor(t, i);
        if (in && (!tfl_known(in) || in->made.i != NONE))
            return false;
        n += in != NULL;
    }
    return n > 0;
}

static TflTensor *output(Tfl *t, uint32_t i) {
    int32_t id = flat_at_i32(&t->flat, t->out, i);
    return id >= 0 && (uint32_t)id < t->n ? &t->tensor[id] : NULL;
}

bool tfl_fold(Tfl *t, const TflOp *op) {
    enum { DEQUANTIZE = 6, DENSIFY = 124, MOST_OUTPUTS = 64 };
    TensorId made[MOST_OUTPUTS];
    Const value[MOST_OUTPUTS];
    if (!all_known(t) || tfl_is_quantised(t) || t->out.n > MOST_OUTPUTS)
        return false;
    if (op->code == DEQUANTIZE || op->code == DENSIFY) {
        const Const *in = tfl_const(t, 0);
        if (in)
            be_known(t, 0, *in);
        return true;
    }
    Graph *whole = net_aside(&t->net);
    t->aside = true;
    TensorId first = op->build(t, op->kind);
    for (uint32_t i = 0; i < t->out.n; i++) {
        TflTensor *out = output(t, i);
        made[i] = !i ? first : out ? out->made : NO_TENSOR;
        if (out)
            out->made = NO_TENSOR;
    }
    t->aside = false;
    bool folds = net_back(&t->net, whole, t->out.n, made, value);
    for (uint32_t i = 0; folds && i < t->out.n; i++)
        if (made[i].i != NONE)
            be_known(t, i, value[i]);
    return folds || output(t, 0)->has_value;
}

/* ---- shapes and numbers ---- */

static TensorId be_numbers(Tfl *t, Shape shape, const float *value) {
    be_known(t, 0, net_floats(&t->net, shape, value));
    return NO_TENSOR;
}

/* Of the tensor that is built, or a constant's. */
static Shape shape_of(Tfl *t) {
    const TflTensor *tensor = tfl_tensor(t, 0);
    return tensor->made.i != NONE ? net_shape(&t->net, tensor->made)
                                  : tensor->shape;
}

TensorId tfl_shape_of(Tfl *t, int kind) {
    Shape shape = shape_of(t);
    float *dim = ARENA_ARRAY(t->net.arena, float, SHAPE_MAX_RANK);
    (void)kind;
    for (uint32_t i = 0; i < shape.rank; i++)
        dim[i] = (float)shape.dim[i];
    return be_numbers(t, (Shape){1, {shape.rank}}, dim);
}

TensorId tfl_rank_of(Tfl *t, int kind) {
    float *rank = ARENA_ARRAY(t->net.arena, float, 1);
    (void)kind;
    *rank = (float)shape_of(t).rank;
    return be_numbers(t, (Shape){1, {1}}, rank);
}

TensorId tfl_zeros(Tfl *t, int kind) {
    (void)kind;
    be_known(t, 0, (Const){.shape = shape_of(t), .kind = CONST_SEEDED});
    return NO_TENSOR;
}

/* Of all inputs one number. */
static bool number_in(Tfl *t, uint32_t i, double *out) {
    const Const *c = tfl_const(t, i);
    if (!c || shape_count(&c->shape) != 1)
        return c && net_fail(&t->net, "its input %u must be one number", i);
    const_read_f64(c, out);
    return true;
}

TensorId tfl_range(Tfl *t, int kind) {
    double at[3];
    Const value;
    (void)kind;
    for (uint32_t i = 0; i < 3; i++)
        if (!number_in(t, i, &at[i]))
            return NO_TENSOR;
    if (net_range(&t->net, at, 1 << 24, &value))
        be_known(t, 0, value);
    return NO_TENSOR;
}

/* A shape full of one number. */
TensorId tfl_fill(Tfl *t, int kind) {
    Shape to;
    double value;
    (void)kind;
    if (!tfl_shape_in(t, 0, &to))
        return NO_TENSOR;
    if (!tfl_maybe(t, 1))
        return net_broadcast(&t->net, tfl_in(t, 1), to);
    if (number_in(t, 1, &value))
        be_known(t, 0,
                 (Const){.shape = to, .kind = CONST_SEEDED, .mean = value});
    return NO_TENSOR;
}

/* Its input, whose values are sparse in the file. */
TensorId tfl_densify(Tfl *t, int kind) {
    (void)kind;
    tfl_const(t, 0);
    return tfl_in(t, 0);
}
