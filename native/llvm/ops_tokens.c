/* ops_tokens.c - products of the pixels of two volumes, constants that repeat,
 * pixels by index; see ops.h. */
#include "native/llvm/ops.h"

/* ---- products of pixels ---- */

typedef struct Mix {
    bool over_pixels;
    uint32_t groups, patch[2], patch2[2], shift[2];
    Extent in, in2, out;
} Mix;

static bool mix_of(const Kernel *k, Mix *m) {
    *m = (Mix){.over_pixels = kernel_count(k, "over_pixels", 0, 0),
               .groups = kernel_count(k, "groups", 0, 0),
               .in = operand_extent(&k->in[0]),
               .in2 = operand_extent(&k->in[1]),
               .out = operand_extent(&k->out[0])};
    const uint32_t own[] = {m->in.h, m->in.w}, other[] = {m->in2.h, m->in2.w};
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t n = kernel_count(k, "windows", i, 0);
        m->shift[i] = kernel_count(k, "shift", i, 0);
        if (!n || own[i] % n || other[i] % n || m->shift[i] >= own[i] ||
            (m->shift[i] && own[i] != other[i]))
            return false;
        m->patch[i] = own[i] / n;
        m->patch2[i] = other[i] / n;
    }
    return m->groups && !(m->in.c % m->groups) && !(m->in2.c % m->groups) &&
           m->in.h == m->out.h && m->in.w == m->out.w;
}

static bool check_mix(const Kernel *k) {
    Mix m;
    const Shape *a = &k->in[0].shape, *b = &k->in[1].shape;
    if (k->quant || kernel_attr(k, "act") || shape_dim(a, 0) != 1 ||
        shape_dim(b, 0) != 1 || shape_dim(&k->out[0].shape, 0) != 1 ||
        kernel_count(k, "attends", 0, 0) || !mix_of(k, &m))
        return false;
    uint32_t pixels = m.groups * m.patch2[0] * m.patch2[1];
    return m.over_pixels ? m.in.c == pixels && m.out.c == m.in2.c
                         : m.in.c == m.in2.c && m.out.c == pixels;
}

/* Along one axis: pixel `i` of the window in which `own` lies. */
static Val beside(Code *c, const Mix *m, uint32_t axis, Val own, Val i) {
    uint32_t size = axis ? m->in.w : m->in.h,
             size2 = axis ? m->in2.w : m->in2.h;
    if (m->patch[axis] == size && !m->shift[axis])
        return i;
    Val behind = index_add(c, own, code_index(c, size - m->shift[axis]));
    Val window = index_div(c, index_rem(c, behind, size), m->patch[axis]);
    Val at = index_step(c, window, m->patch2[axis], i);
    at = index_add(c, at, code_index(c, m->shift[axis]));
    return index_rem(c, at, size2);
}

/* A term of all pixels of a channel. */
static void add_term(const Emit *e, const Mix *m, Val channel, Val from, Val by,
                     Val i) {
    Code *c = e->c;
    Loop rows, columns;
    Val row = loop_count(c, &rows, m->in.h);
    Val y = beside(c, m, 0, row, index_div(c, i, m->patch2[1]));
    Val column = loop_count(c, &columns, m->in.w);
    Val x = beside(c, m, 1, column, index_rem(c, i, m->patch2[1]));
    Val to = operand_at(c, &e->k->out[0], channel, row, column);
    Val a =
        code_load(c, e->in[0], operand_at(c, &e->k->in[0], from, row, column));
    Val b = code_load(c, e->in[1], operand_at(c, &e->k->in[1], by, y, x));
    code_store(c, e->out[0], to,
               float_fma(c, a, b, code_reload(c, e->out[0], to)));
    loop_close(c, &columns);
    loop_close(c, &rows);
}

static void clear_channel(const Emit *e, const Mix *m, Val channel) {
    Code *c = e->c;
    Loop rows, columns;
    Val row = loop_count(c, &rows, m->out.h);
    Val column = loop_count(c, &columns, m->out.w);
    code_store(c, e->out[0], operand_at(c, &e->k->out[0], channel, row, column),
               code_scalar(c, 0));
    loop_close(c, &columns);
    loop_close(c, &rows);
}

static void emit_mix(const Emit *e) {
    Code *c = e->c;
    Mix m;
    Loop groups, channels, terms;
    if (!mix_of(e->k, &m))
        return;
    uint32_t n = m.out.c / m.groups, sums = m.in.c / m.groups;
    Val group = loop_count(c, &groups, m.groups);
    Val k = loop_count(c, &channels, n);
    Val channel = index_step(c, group, n, k);
    clear_channel(e, &m, channel);
    Val t = loop_count(c, &terms, sums);
    Val by = index_step(c, group, m.in2.c / m.groups, m.over_pixels ? k : t);
    add_term(e, &m, channel, index_step(c, group, sums, t), by,
             m.over_pixels ? t : k);
    loop_close(c, &terms);
    loop_close(c, &channels);
    loop_close(c, &groups);
}

/* ---- constants that repeat ---- */

static bool check_offset(const Kernel *k) {
    Extent size = operand_extent(&k->out[0]);
    const uint32_t whole[] = {size.c, size.h, size.w};
    uint64_t n = 1;
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t period = kernel_count(k, "period", i, 0);
        if (!period || whole[i] % period)
            return false;
        n *= period;
    }
    return !k->quant && !kernel_attr(k, "act") &&
           has_constant(k, "values", n) &&
           shape_equal(&k->in[0].shape, &k->out[0].shape) &&
           shape_dim(&k->out[0].shape, 0) == 1;
}

static void emit_offset(const Emit *e) {
    Code *c = e->c;
    const Operand *out = &e->k->out[0];
    Extent size = operand_extent(out);
    uint32_t period[3];
    Loop loop[3];
    for (uint32_t i = 0; i < 3; i++)
        period[i] = kernel_count(e->k, "period", i, 1);
    Val channel = loop_count(c, &loop[0], size.c);
    Val row = loop_count(c, &loop[1], size.h);
    Val column = loop_count(c, &loop[2], size.w);
    Val line = index_step(c, index_rem(c, channel, period[0]), period[1],
                          index_rem(c, row, period[1]));
    Val at = index_step(c, line, period[2], index_rem(c, column, period[2]));
    Val by = code_load(c, emit_constant(e, "values"), at);
    Val x = code_load(c, e->in[0],
                      operand_at(c, &e->k->in[0], channel, row, column));
    code_store(c, e->out[0], operand_at(c, out, channel, row, column),
               kernel_count(e->k, "times", 0, 0) ? float_mul(c, x, by)
                                                 : float_add(c, x, by));
    for (uint32_t i = 3; i-- > 0;)
        loop_close(c, &loop[i]);
}

/* ---- pixels by index ---- */

static bool check_pixels(const Kernel *k) {
    Extent in = operand_extent(&k->in[0]), out = operand_extent(&k->out[0]);
    return !k->quant && !kernel_attr(k, "act") && in.c == out.c &&
           shape_dim(&k->in[0].shape, 0) == 1 &&
           shape_dim(&k->out[0].shape, 0) == 1 &&
           has_constant(k, "index", (uint64_t)out.h * out.w);
}

/* An index that is no pixel's is a 0. */
static void emit_pixels(const Emit *e) {
    Code *c = e->c;
    const Operand *in = &e->k->in[0], *out = &e->k->out[0];
    Extent from = operand_extent(in), size = operand_extent(out);
    Loop loop[3];
    Val channel = loop_count(c, &loop[0], size.c);
    Val row = loop_count(c, &loop[1], size.h);
    Val column = loop_count(c, &loop[2], size.w);
    Val index = code_load(c, emit_constant(e, "index"),
                          index_step(c, row, size.w, column));
    Val zero = code_scalar(c, 0);
    double pixels = (double)from.h * from.w;
    Val inside = float_less(c, index, code_scalar(c, pixels));
    Val known = float_max(c, code_select(c, inside, index, zero), zero);
    Val at = LLVMBuildFPToSI(c->builder, known, c->index, "");
    Val x = code_load(c, e->in[0],
                      operand_at(c, in, channel, index_div(c, at, from.w),
                                 index_rem(c, at, from.w)));
    code_store(c, e->out[0], operand_at(c, out, channel, row, column),
               code_select(c, inside, x, zero));
    for (uint32_t i = 3; i-- > 0;)
        loop_close(c, &loop[i]);
}

const OpRow ops_tokens[] = {
    {"mix", 2, check_mix, emit_mix},
    {"offset", 1, check_offset, emit_offset},
    {"pixels", 1, check_pixels, emit_pixels},
    {NULL, 0, NULL, NULL},
};
