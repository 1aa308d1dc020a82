/* ops_move.c - what moves elements: parts, borders, other orders; see ops.h.
 */
#include "native/llvm/codes.h"
#include "native/llvm/ops_window.h"

#include <string.h>

/* ---- parts of an axis ---- */

static bool same_but(const Shape *a, const Shape *b, uint32_t axis) {
    for (uint32_t i = 0; i < a->rank; i++)
        if (i != axis && a->dim[i] != b->dim[i])
            return false;
    return a->rank == b->rank && axis < a->rank;
}

/* The part of the first result's activation: channels are its axis 1. */
static Val channel_of(const Emit *e, const Val *i) {
    return e->k->out[0].shape.rank > 1 ? i[1] : code_index(e->c, 0);
}

static void move_element(const Emit *e, uint32_t in, const Val *from,
                         const Val *to) {
    Code *c = e->c;
    Val x = emit_get(e, in, operand_index(c, &e->k->in[in], from));
    emit_put(e, operand_index(c, &e->k->out[0], to), x, channel_of(e, to));
}

/* Along an axis, element i of one is element i + `shift` of the other. */
static Val shifted(Code *c, const Axes *axes, uint32_t axis, uint64_t shift,
                   Val *out) {
    memcpy(out, axes->i, sizeof axes->i);
    out[axis] = index_add(c, out[axis], code_index(c, (int64_t)shift));
    return out[axis];
}

static bool check_concat(const Kernel *k) {
    uint32_t axis = kernel_count(k, "axis", 0, 1);
    const Shape *out = &k->out[0].shape;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < k->n_in; i++) {
        if (!same_but(&k->in[i].shape, out, axis))
            return false;
        sum += k->in[i].shape.dim[axis];
    }
    return sum == out->dim[axis];
}

static void emit_concat(const Emit *e) {
    uint32_t axis = kernel_count(e->k, "axis", 0, 1);
    uint64_t at = 0;
    for (uint32_t i = 0; i < e->k->n_in; i++) {
        const Shape *in = &e->k->in[i].shape;
        Axes axes;
        Val to[SHAPE_MAX_RANK];
        axes_open(e->c, &axes, in);
        shifted(e->c, &axes, axis, at, to);
        move_element(e, i, axes.i, to);
        axes_close(e->c, &axes);
        at += in->dim[axis];
    }
}

static bool check_slice(const Kernel *k) {
    uint32_t axis = kernel_count(k, "axis", 0, 1);
    const Shape *in = &k->in[0].shape, *out = &k->out[0].shape;
    uint64_t begin = kernel_count(k, "begin", 0, 0);
    return same_but(in, out, axis) && begin + out->dim[axis] <= in->dim[axis];
}

static void emit_slice(const Emit *e) {
    uint32_t axis = kernel_count(e->k, "axis", 0, 1);
    Axes axes;
    Val from[SHAPE_MAX_RANK];
    axes_open(e->c, &axes, &e->k->out[0].shape);
    shifted(e->c, &axes, axis, kernel_count(e->k, "begin", 0, 0), from);
    move_element(e, 0, from, axes.i);
    axes_close(e->c, &axes);
}

/* ---- height and width ---- */

typedef struct Spot {
    Loop loop[3];
    Val c, h, w;
} Spot;

static void spots_open(Code *c, Spot *at, const Extent *size) {
    at->c = loop_count(c, &at->loop[0], size->c);
    at->h = loop_count(c, &at->loop[1], size->h);
    at->w = loop_count(c, &at->loop[2], size->w);
}

static void spots_close(Code *c, Spot *at) {
    for (int i = 3; i-- > 0;)
        loop_close(c, &at->loop[i]);
}

/* x through the activation, to an element of the result. */
static void put(const Emit *e, Val x, Val channel, Val row, Val column) {
    uint64_t n = operand_channels(&e->k->out[0]).n;
    emit_put(e, operand_at(e->c, &e->k->out[0], channel, row, column), x,
             index_rem(e->c, channel, n));
}

static bool check_pad(const Kernel *k) {
    Extent in = operand_extent(&k->in[0]), out = operand_extent(&k->out[0]);
    return in.c == out.c &&
           (uint64_t)in.h + kernel_count(k, "before", ROWS, 0) <= out.h &&
           (uint64_t)in.w + kernel_count(k, "before", COLS, 0) <= out.w;
}

static void emit_pad(const Emit *e) {
    Code *c = e->c;
    Extent in = operand_extent(&e->k->in[0]);
    Extent out = operand_extent(&e->k->out[0]);
    Val top = code_index(c, kernel_count(e->k, "before", ROWS, 0));
    Val left = code_index(c, kernel_count(e->k, "before", COLS, 0));
    Spot at;
    spots_open(c, &at, &out);
    put(e, emit_number(e, kernel_number(e->k, "value", 0, 0)), at.c, at.h,
        at.w);
    spots_close(c, &at);
    spots_open(c, &at, &in);
    Val x = emit_get(e, 0, operand_at(c, &e->k->in[0], at.c, at.h, at.w));
    put(e, x, at.c, index_add(c, at.h, top), index_add(c, at.w, left));
    spots_close(c, &at);
}

static bool check_upsample(const Kernel *k) {
    Extent in = operand_extent(&k->in[0]), out = operand_extent(&k->out[0]);
    return in.c == out.c &&
           (uint64_t)in.h * kernel_count(k, "factor", ROWS, 1) == out.h &&
           (uint64_t)in.w * kernel_count(k, "factor", COLS, 1) == out.w;
}

static void emit_upsample(const Emit *e) {
    Code *c = e->c;
    Extent in = operand_extent(&e->k->in[0]);
    uint32_t tall = kernel_count(e->k, "factor", ROWS, 1);
    uint32_t wide = kernel_count(e->k, "factor", COLS, 1);
    Spot at;
    Loop rows, columns;
    spots_open(c, &at, &in);
    Val x = emit_get(e, 0, operand_at(c, &e->k->in[0], at.c, at.h, at.w));
    Val row = index_step(c, at.h, tall, loop_count(c, &rows, tall));
    Val column = index_step(c, at.w, wide, loop_count(c, &columns, wide));
    put(e, x, at.c, row, column);
    loop_close(c, &columns);
    loop_close(c, &rows);
    spots_close(c, &at);
}

/* ---- any order ---- */

static bool check_transpose(const Kernel *k) {
    const Shape *in = &k->in[0].shape, *out = &k->out[0].shape;
    uint32_t seen = 0;
    if (in->rank != out->rank)
        return false;
    for (uint32_t i = 0; i < out->rank; i++) {
        uint32_t from = kernel_count(k, "perm", i, UINT32_MAX);
        if (from >= in->rank || in->dim[from] != out->dim[i])
            return false;
        seen |= 1u << from;
    }
    return seen == (1u << in->rank) - 1;
}

static void emit_transpose(const Emit *e) {
    Axes axes;
    Val from[SHAPE_MAX_RANK];
    axes_open(e->c, &axes, &e->k->out[0].shape);
    for (uint32_t i = 0; i < axes.n; i++)
        from[kernel_count(e->k, "perm", i, 0)] = axes.i[i];
    move_element(e, 0, from, axes.i);
    axes_close(e->c, &axes);
}

/* The indices were checked when the constants were packed. */
static bool check_gather(const Kernel *k) {
    const Shape *in = &k->in[0].shape, *out = &k->out[0].shape;
    uint32_t axis = kernel_count(k, "axis", 0, 0);
    uint64_t n = (uint64_t)shape_dim(out, axis) * kernel_count(k, "taps", 0, 1);
    return same_but(in, out, axis) && n > 0 && has_constant(k, "index", n) &&
           has_constant(k, "values", n);
}

/* Place `index` of the gather's axis, else at these indices. */
static Val gathered(const Emit *e, const Axes *axes, uint32_t axis, Val index) {
    Val from[SHAPE_MAX_RANK];
    memcpy(from, axes->i, sizeof axes->i);
    from[axis] = LLVMBuildFPToSI(e->c->builder, index, e->c->index, "");
    return emit_get(e, 0, operand_index(e->c, &e->k->in[0], from));
}

static Val gather_sum(const Emit *e, const Axes *axes, uint32_t axis,
                      uint32_t taps) {
    Code *c = e->c;
    Loop loop;
    Val sum = code_variable(c, code_scalar(c, 0));
    Val tap = index_step(c, axes->i[axis], taps, loop_count(c, &loop, taps));
    Val index = code_load(c, emit_constant(e, "index"), tap);
    Val x = gathered(e, axes, axis, index);
    Val by = code_load(c, emit_constant(e, "values"), tap);
    /* Rounded twice, as elsewhere: which code it becomes may hang on that. */
    code_set(c, sum,
             float_add(c, code_get(c, c->f32, sum), float_mul(c, by, x)));
    loop_close(c, &loop);
    return code_get(c, c->f32, sum);
}

/* Codes are only picked: then each result is one of them. */
static void emit_gather(const Emit *e) {
    Code *c = e->c;
    uint32_t axis = kernel_count(e->k, "axis", 0, 0);
    uint32_t taps = kernel_count(e->k, "taps", 0, 1);
    Axes axes;
    axes_open(c, &axes, &e->k->out[0].shape);
    Val value;
    if (kernel_on_codes(e->k)) {
        Val tap = index_mul(c, axes.i[axis], taps);
        Val index = code_load(c, emit_constant(e, "index"), tap);
        value = gathered(e, &axes, axis, index);
    } else {
        value = gather_sum(e, &axes, axis, taps);
    }
    emit_put(e, operand_index(c, &e->k->out[0], axes.i), value,
             channel_of(e, axes.i));
    axes_close(c, &axes);
}

static bool check_constant(const Kernel *k) {
    return has_constant(k, "values", shape_count(&k->out[0].shape)) &&
           !kernel_attr(k, "act");
}

static void emit_constant_layer(const Emit *e) {
    Code *c = e->c;
    Loop loop;
    Val i = loop_count(c, &loop, shape_count(&e->k->out[0].shape));
    Val x = code_load(c, emit_constant(e, "values"), i);
    code_store(c, e->out[0], operand_linear(c, &e->k->out[0], i), x);
    loop_close(c, &loop);
}

const OpRow ops_move[] = {
    {"concat", 1, check_concat, emit_concat},
    {"slice", 1, check_slice, emit_slice},
    {"pad", 1, check_pad, emit_pad},
    {"upsample", 1, check_upsample, emit_upsample},
    {"transpose", 1, check_transpose, emit_transpose},
    {"gather", 1, check_gather, emit_gather},
    {"constant", 0, check_constant, emit_constant_layer},
    {NULL, 0, NULL, NULL},
};
