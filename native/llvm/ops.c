/* ops.c - what operators share; see ops.h. */
#include "native/llvm/ops.h"

#include <string.h>

static const OpRow *row_named(const OpRow *row, const char *name) {
    while (row->name && strcmp(row->name, name) != 0)
        row++;
    return row->name ? row : NULL;
}

const OpRow *op_of(const Kernel *k) {
    const OpRow *const tables[] = {ops_window, ops_point, ops_move, ops_tensor,
                                   ops_tokens};
    if (k->quant &&
        (k->quant->rule == QUANT_SUMS || k->quant->rule == QUANT_MEANS))
        return row_named(ops_codes, k->kind);
    const OpRow *row = NULL;
    for (size_t t = 0; !row && t < sizeof tables / sizeof *tables; t++)
        row = row_named(tables[t], k->kind);
    return row;
}

/* ---- constants ---- */

Val emit_constant(const Emit *e, const char *role) {
    int32_t at = kernel_constant(e->k, role);
    return at < 0 ? NULL : e->constant[at];
}

bool has_constant(const Kernel *kernel, const char *role, uint64_t n) {
    int32_t at = kernel_constant(kernel, role);
    return at >= 0 && shape_count(&kernel->constant[at].shape) == n;
}

bool fits_constant(const Kernel *kernel, const char *role, uint64_t n) {
    return kernel_constant(kernel, role) < 0 || has_constant(kernel, role, n);
}

/* ---- operands ---- */

Extent operand_extent(const Operand *operand) {
    Extent e;
    shape_chw(&operand->shape, &e.c, &e.h, &e.w);
    return e;
}

Channels operand_channels(const Operand *operand) {
    const Shape *shape = &operand->shape;
    uint64_t images = shape_dim(shape, 0), n = shape_dim(shape, 1);
    if (shape->rank < 2)
        images = n = 1;
    return (Channels){images, n, shape_count(shape) / images / n};
}

bool operand_is_dense(const Operand *operand) {
    Extent e = operand_extent(operand);
    return (operand->w_step == 1 || e.w == 1) &&
           (operand->h_step == e.w || e.h == 1) &&
           ((operand->block == 1 &&
             (operand->c_step == (uint64_t)e.h * e.w || e.c == 1)) ||
            (e.h * e.w == 1 &&
             (operand->c_step == operand->block || e.c <= operand->block)));
}

Val operand_at(Code *c, const Operand *operand, Val channel, Val row,
               Val column) {
    Val at = index_step(c, row, operand->h_step,
                        index_mul(c, column, operand->w_step));
    if (operand->block == 1)
        return index_step(c, channel, operand->c_step, at);
    Val block = index_div(c, channel, operand->block);
    at = index_step(c, block, operand->c_step, at);
    return index_add(c, index_rem(c, channel, operand->block), at);
}

Val operand_linear(Code *c, const Operand *operand, Val i) {
    if (operand_is_dense(operand))
        return i;
    Extent e = operand_extent(operand);
    Val line = index_div(c, i, e.w);
    return operand_at(c, operand, index_div(c, line, e.h),
                      index_rem(c, line, e.h), index_rem(c, i, e.w));
}

void walk_open(Code *c, Walk *walk, const Channels *size) {
    Val image = loop_count(c, &walk->image, size->images);
    walk->channel = loop_count(c, &walk->line, size->n);
    Val line = index_step(c, image, size->n, walk->channel);
    Val at = loop_count(c, &walk->plane, size->plane);
    walk->i = index_step(c, line, size->plane, at);
}

void walk_close(Code *c, Walk *walk) {
    loop_close(c, &walk->plane);
    loop_close(c, &walk->line);
    loop_close(c, &walk->image);
}

void axes_open(Code *c, Axes *axes, const Shape *shape) {
    axes->n = shape->rank;
    for (uint32_t i = 0; i < shape->rank; i++)
        axes->i[i] = loop_count(c, &axes->loop[i], shape->dim[i]);
}

void axes_close(Code *c, Axes *axes) {
    for (uint32_t i = axes->n; i-- > 0;)
        loop_close(c, &axes->loop[i]);
}

Val operand_index(Code *c, const Operand *operand, const Val *i) {
    const Shape *shape = &operand->shape;
    uint32_t outer = shape->rank >= 4   ? shape->rank - 2
                     : shape->rank == 3 ? 2
                                        : shape->rank;
    Val zero = code_index(c, 0), channel = zero;
    for (uint32_t axis = 0; axis < outer; axis++)
        channel = index_step(c, channel, shape->dim[axis], i[axis]);
    return operand_at(c, operand, channel, shape->rank >= 3 ? i[outer] : zero,
                      shape->rank >= 4 ? i[outer + 1] : zero);
}

Along along(const Shape *shape, uint32_t axis) {
    Along a = {1, shape_dim(shape, axis), 1};
    for (uint32_t i = 0; i < shape->rank; i++)
        if (i < axis)
            a.outer *= shape->dim[i];
        else if (i > axis)
            a.inner *= shape->dim[i];
    return a;
}

Val emit_channel(const Emit *e, Val constant, Val channel) {
    if (e->lanes > 1)
        return code_load_vector(e->c, constant, channel, e->lanes);
    return code_load(e->c, constant, channel);
}

Val emit_act(const Emit *e, Val x, Val channel) {
    Val slope = NULL;
    if (e->act.by_channel)
        slope = emit_channel(e, emit_constant(e, "slope"), channel);
    return epilogue_apply(e->c, &e->act, x, slope);
}

/* ---- sums ---- */

Sum sum_open(Code *c) {
    Val zero = code_scalar(c, 0);
    return (Sum){code_variable(c, zero), code_variable(c, zero)};
}

void sum_add(Code *c, const Sum *sum, Val x) {
    Val total = code_get(c, c->f32, sum->total);
    Val next = float_add(c, total, x);
    Val larger = float_less(c, float_abs(c, total), float_abs(c, x));
    Val big = code_select(c, larger, x, total);
    Val small = code_select(c, larger, total, x);
    Val lost = float_add(c, float_sub(c, big, next), small);
    Val before = code_get(c, c->f32, sum->lost);
    code_set(c, sum->lost, float_add(c, before, lost));
    code_set(c, sum->total, next);
}

Val sum_value(Code *c, const Sum *sum) {
    Val total = code_get(c, c->f32, sum->total);
    Val exact = float_add(c, total, code_get(c, c->f32, sum->lost));
    /* what infinities lose is no number */
    Val good = float_equal(c, exact, exact);
    return code_select(c, good, exact, total);
}
