/* ops_window.c - convolutions and pools; see ops.h.
 *
 * Convolutions add up rows: for each weight, a row of the input times the
 * weight onto a row of the output, which stays in the first cache, and which
 * LLVM turns into vector code. The border is what the ranges of the innermost
 * loop leave out.
 */
#include "native/llvm/ops_window.h"

#include "native/llvm/codes.h"

#include <math.h>

static uint32_t axis_of(const Extent *e, int axis) {
    return axis == ROWS ? e->h : e->w;
}

/* Windows along an axis of `in` elements, at least one. */
static uint32_t window_count(const Window *w, uint32_t in) {
    uint64_t reach = (uint64_t)(w->kernel - 1) * w->dilation + 1;
    uint64_t padded = (uint64_t)in + w->pad + w->pad_end;
    return padded < reach ? 1 : (uint32_t)((padded - reach) / w->stride + 1);
}

/* ---- convolutions ---- */

static const uint64_t most_products = UINT64_C(1) << 40;

bool conv_read(const Kernel *k, Conv *v, bool transposed) {
    window_read(k, &window_plain, v->w);
    v->in = operand_extent(&k->in[0]);
    v->out = operand_extent(&k->out[0]);
    v->images = 1;
    if (k->in[0].shape.rank >= 3)
        v->images = k->in[0].shape.dim[0];
    if (shape_dim(&k->out[0].shape, 0) != v->images)
        return false;
    v->in.c /= v->images;
    v->out.c /= v->images;
    v->groups = kernel_count(k, "groups", 0, 1);
    v->groups += v->groups == 0;
    if (v->in.c % v->groups || v->out.c % v->groups)
        return false;
    const Extent *made = transposed ? &v->in : &v->out;
    uint64_t taps = (uint64_t)v->w[ROWS].kernel * v->w[COLS].kernel;
    uint64_t weights = taps * v->in.c * v->out.c / v->groups;
    uint64_t work = (uint64_t)made->h * made->w * v->images;
    return weights < most_products / work &&
           has_constant(k, "weight", weights) &&
           fits_constant(k, "bias", v->out.c) &&
           fits_constant(k, "slope", v->out.c);
}

/* Of a second operand: it lies as the result does, in channel blocks. */
static bool added_fits(const Kernel *k) {
    const Operand *a = &k->in[1], *out = &k->out[0];
    return k->n_in == 2 && kernel_packing(k) != PACKED_NOT && !k->quant &&
           operand_alike(a, out);
}

bool check_conv(const Kernel *k) {
    Conv v;
    return conv_read(k, &v, false) && (k->n_in == 1 || added_fits(k));
}

static bool check_deconv(const Kernel *k) {
    Conv v;
    return conv_read(k, &v, true);
}

void conv_open(const Emit *e, const Conv *v, ConvLoops *l) {
    Code *c = e->c;
    uint32_t members = v->out.c / v->groups;
    Val image = loop_count(c, &l->image, v->images);
    Val group = loop_count(c, &l->group, v->groups);
    Val member = loop_count(c, &l->member, members);
    Val in_group = index_step(c, image, v->groups, group);
    Val out = index_step(c, group, members, member);
    l->at = (Channel){.image = image,
                      .in_first = index_mul(c, in_group, v->in.c / v->groups),
                      .out = out,
                      .out_all = index_step(c, image, v->out.c, out),
                      .group = group,
                      .member = member};
}

void conv_close(const Emit *e, ConvLoops *l) {
    loop_close(e->c, &l->member);
    loop_close(e->c, &l->group);
    loop_close(e->c, &l->image);
}

Val emit_bias(const Emit *e, Val channel) {
    Val bias = emit_constant(e, "bias");
    return bias ? code_load(e->c, bias, channel) : code_scalar(e->c, 0);
}

/* ---- results one by one, of codes as real numbers, too ---- */

/* Of a convolution. A result under several windows of a pool is computed for
 * each: no room is needed in between. */
static Val conv_element(const Emit *e, const void *context, Val row,
                        Val column) {
    const ConvPool *both = context;
    const Conv *v = &both->v;
    Code *c = e->c;
    uint32_t fan = v->in.c / v->groups;
    uint64_t width = v->w[COLS].kernel, taps = v->w[ROWS].kernel * width;
    Loop channels, rows, columns;
    Branch inside_rows, inside;
    Val sum = code_variable(c, emit_bias(e, both->at.out));
    Val i = loop_count(c, &channels, fan);
    Val first = index_mul(c, index_step(c, both->at.out, fan, i), taps);
    Val ky = loop_count(c, &rows, v->w[ROWS].kernel);
    Val in_row = window_place(c, &v->w[ROWS], row, ky);
    branch_open(c, &inside_rows, is_inside(c, in_row, v->in.h));
    Val kx = loop_count(c, &columns, width);
    Val in_column = window_place(c, &v->w[COLS], column, kx);
    branch_open(c, &inside, is_inside(c, in_column, v->in.w));
    Val weight = code_load(c, emit_constant(e, "weight"),
                           index_add(c, first, index_step(c, ky, width, kx)));
    Val at = operand_at(c, &e->k->in[0], index_add(c, both->at.in_first, i),
                        in_row, in_column);
    code_set(
        c, sum,
        float_fma(c, weight, emit_get(e, 0, at), code_get(c, c->f32, sum)));
    branch_close(c, &inside);
    loop_close(c, &columns);
    branch_close(c, &inside_rows);
    loop_close(c, &rows);
    loop_close(c, &channels);
    return emit_act(e, code_get(c, c->f32, sum), both->at.out);
}

/* Of a transposed convolution: the input's elements that reach it. */
static Val deconv_element(const Emit *e, const void *context, Val row,
                          Val column) {
    const ConvPool *one = context;
    const Conv *v = &one->v;
    Code *c = e->c;
    uint32_t fan = v->in.c / v->groups, members = v->out.c / v->groups;
    uint64_t width = v->w[COLS].kernel, taps = v->w[ROWS].kernel * width;
    Loop channels, rows, columns;
    Branch in_rows, in_columns;
    Val sum = code_variable(c, emit_bias(e, one->at.out));
    Val i = loop_count(c, &channels, fan);
    Val from = index_step(c, one->at.group, fan, i);
    Val first =
        index_mul(c, index_step(c, from, members, one->at.member), taps);
    Val ky = loop_count(c, &rows, v->w[ROWS].kernel);
    Source y = window_source(c, &v->w[ROWS], row, ky, v->in.h);
    branch_open(c, &in_rows, y.is);
    Val kx = loop_count(c, &columns, width);
    Source x = window_source(c, &v->w[COLS], column, kx, v->in.w);
    branch_open(c, &in_columns, x.is);
    Val weight = code_load(c, emit_constant(e, "weight"),
                           index_add(c, first, index_step(c, ky, width, kx)));
    Val at = operand_at(c, &e->k->in[0], index_add(c, one->at.in_first, i),
                        y.at, x.at);
    code_set(
        c, sum,
        float_fma(c, weight, emit_get(e, 0, at), code_get(c, c->f32, sum)));
    branch_close(c, &in_columns);
    loop_close(c, &columns);
    branch_close(c, &in_rows);
    loop_close(c, &rows);
    loop_close(c, &channels);
    return emit_act(e, code_get(c, c->f32, sum), one->at.out);
}

void emit_results(const Emit *e, ConvPool *both, PoolElement *result) {
    Code *c = e->c;
    Extent out = operand_extent(&e->k->out[0]);
    ConvLoops l;
    Loop rows, columns;
    conv_open(e, &both->v, &l);
    both->at = l.at;
    Val row = loop_count(c, &rows, out.h);
    Val column = loop_count(c, &columns, out.w);
    Val at = operand_at(c, &e->k->out[0], l.at.out_all, row, column);
    emit_set(e, at, result(e, both, row, column));
    loop_close(c, &columns);
    loop_close(c, &rows);
    conv_close(e, &l);
}

/* ---- convolutions of floats, row by row ---- */

static void fill_row(const Emit *e, uint32_t width, Val channel, Val row,
                     Val value) {
    Code *c = e->c;
    Loop loop;
    Val at = loop_count(c, &loop, width);
    code_store(c, e->out[0], operand_at(c, &e->k->out[0], channel, row, at),
               value);
    loop_close(c, &loop);
}

static void act_row(const Emit *e, uint32_t width, const Channel *at, Val row) {
    Code *c = e->c;
    Loop loop;
    if (!e->act.apply && !e->act.by_channel)
        return;
    Val column = loop_count(c, &loop, width);
    Val place = operand_at(c, &e->k->out[0], at->out_all, row, column);
    Val value = emit_act(e, code_reload(c, e->out[0], place), at->out);
    code_store(c, e->out[0], place, value);
    loop_close(c, &loop);
}

static void add_at(const Emit *e, Val out, Val weight, Val in) {
    Code *c = e->c;
    Val sum = code_reload(c, e->out[0], out);
    sum = float_fma(c, weight, code_load(c, e->in[0], in), sum);
    code_store(c, e->out[0], out, sum);
}

/* weight * row of the input, onto a row of the output. */
static void add_row(const Emit *e, const Conv *v, const Channel *at, Val row,
                    Val channel, Val in_row, Val tap, Val weight) {
    Code *c = e->c;
    Range range = window_range(c, &v->w[COLS], tap, v->in.w, v->out.w);
    Loop loop;
    Val x = loop_open(c, &loop, range.from, range.to, 1);
    Val in_x = window_place(c, &v->w[COLS], x, tap);
    add_at(e, operand_at(c, &e->k->out[0], at->out_all, row, x), weight,
           operand_at(c, &e->k->in[0], channel, in_row, in_x));
    loop_close(c, &loop);
}

/* All that one row of the output gets from one channel of the input. `first`:
 * the weight of the first tap. */
static void add_taps(const Emit *e, const Conv *v, const Channel *at, Val row,
                     Val channel, Val first) {
    Code *c = e->c;
    Loop tap_row, tap_column;
    Branch inside;
    Val ky = loop_count(c, &tap_row, v->w[ROWS].kernel);
    Val in_row = window_place(c, &v->w[ROWS], row, ky);
    branch_open(c, &inside, is_inside(c, in_row, v->in.h));
    Val kx = loop_count(c, &tap_column, v->w[COLS].kernel);
    Val tap = index_step(c, ky, v->w[COLS].kernel, kx);
    Val weight =
        code_load(c, emit_constant(e, "weight"), index_add(c, first, tap));
    add_row(e, v, at, row, channel, in_row, kx, weight);
    loop_close(c, &tap_column);
    branch_close(c, &inside);
    loop_close(c, &tap_row);
}

static void emit_conv(const Emit *e) {
    Code *c = e->c;
    Conv v;
    conv_read(e->k, &v, false);
    if (e->k->quant) {
        emit_results(e, &(ConvPool){.v = v}, conv_element);
        return;
    }
    KernelPacking packing = kernel_packing(e->k);
    if (packing == PACKED_BLOCKS) {
        emit_conv_blocks(e, &v);
        return;
    }
    if (packing == PACKED_DEPTHWISE) {
        emit_depthwise_blocks(e, &v);
        return;
    }
    uint32_t fan = v.in.c / v.groups;
    uint64_t taps = (uint64_t)v.w[ROWS].kernel * v.w[COLS].kernel;
    ConvLoops l;
    Loop rows, channels;
    conv_open(e, &v, &l);
    Val row = loop_count(c, &rows, v.out.h);
    fill_row(e, v.out.w, l.at.out_all, row, emit_bias(e, l.at.out));
    Val i = loop_count(c, &channels, fan);
    Val first = index_mul(c, index_step(c, l.at.out, fan, i), taps);
    add_taps(e, &v, &l.at, row, index_add(c, l.at.in_first, i), first);
    loop_close(c, &channels);
    act_row(e, v.out.w, &l.at, row);
    loop_close(c, &rows);
    conv_close(e, &l);
}

/* ---- transposed convolutions: windows over the output ---- */

static void spread_row(const Emit *e, const Conv *v, const Channel *at,
                       Val in_channel, Val in_row, Val first) {
    Code *c = e->c;
    Loop tap_row, tap_column, columns;
    Branch inside;
    Val ky = loop_count(c, &tap_row, v->w[ROWS].kernel);
    Val row = window_place(c, &v->w[ROWS], in_row, ky);
    branch_open(c, &inside, is_inside(c, row, v->out.h));
    Val kx = loop_count(c, &tap_column, v->w[COLS].kernel);
    Val tap = index_step(c, ky, v->w[COLS].kernel, kx);
    Val weight =
        code_load(c, emit_constant(e, "weight"), index_add(c, first, tap));
    Range range = window_range(c, &v->w[COLS], kx, v->out.w, v->in.w);
    Val x = loop_open(c, &columns, range.from, range.to, 1);
    Val out_x = window_place(c, &v->w[COLS], x, kx);
    add_at(e, operand_at(c, &e->k->out[0], at->out_all, row, out_x), weight,
           operand_at(c, &e->k->in[0], in_channel, in_row, x));
    loop_close(c, &columns);
    loop_close(c, &tap_column);
    branch_close(c, &inside);
    loop_close(c, &tap_row);
}

static void emit_deconv(const Emit *e) {
    Code *c = e->c;
    Conv v;
    conv_read(e->k, &v, true);
    if (e->k->quant) {
        emit_results(e, &(ConvPool){.v = v}, deconv_element);
        return;
    }
    uint32_t fan = v.in.c / v.groups, members = v.out.c / v.groups;
    uint64_t taps = (uint64_t)v.w[ROWS].kernel * v.w[COLS].kernel;
    ConvLoops l;
    Loop fill, channels, rows, act;
    conv_open(e, &v, &l);
    Val row = loop_count(c, &fill, v.out.h);
    fill_row(e, v.out.w, l.at.out_all, row, emit_bias(e, l.at.out));
    loop_close(c, &fill);
    Val i = loop_count(c, &channels, fan);
    Val in_channel = index_step(c, l.at.group, fan, i);
    Val first =
        index_mul(c, index_step(c, in_channel, members, l.at.member), taps);
    Val in_row = loop_count(c, &rows, v.in.h);
    spread_row(e, &v, &l.at, index_add(c, l.at.in_first, i), in_row, first);
    loop_close(c, &rows);
    loop_close(c, &channels);
    row = loop_count(c, &act, v.out.h);
    act_row(e, v.out.w, &l.at, row);
    loop_close(c, &act);
    conv_close(e, &l);
}

/* ---- pools ---- */

void pool_read(const Kernel *k, bool fused, const Extent *in, Pool *p) {
    window_read(k, fused ? &window_pool : &window_plain, p->w);
    if (kernel_count(k, fused ? "pool_global" : "global", 0, 0))
        for (int axis = 0; axis < 2; axis++)
            p->w[axis] = (Window){axis_of(in, axis), 1, 1, 0, 0};
    p->average = kernel_is(k, fused ? "pool_kind" : "kind", "avg");
    p->count_pad =
        kernel_count(k, fused ? "pool_count_pad" : "count_pad", 0, 0);
    p->in = *in;
    p->out = operand_extent(&k->out[0]);
}

bool pool_fits(const Pool *p) {
    uint64_t area = (uint64_t)p->w[ROWS].kernel * p->w[COLS].kernel;
    uint64_t work = (uint64_t)p->out.c * p->out.h * p->out.w;
    return p->in.c == p->out.c && area < most_products / work;
}

bool check_pool(const Kernel *k) {
    Pool p;
    Extent in = operand_extent(&k->in[0]);
    pool_read(k, false, &in, &p);
    return pool_fits(&p);
}

Val pool_divisor(Code *c, const Pool *p, const Cover at[2]) {
    Val size[2];
    for (int axis = 0; axis < 2; axis++) {
        Val inside = index_sub(c, at[axis].to, at[axis].from);
        size[axis] = p->count_pad ? at[axis].padded : inside;
        size[axis] = index_max(c, size[axis], code_index(c, 1));
    }
    return LLVMBuildNSWMul(c->builder, size[0], size[1], "");
}

Val pool_value(const Emit *e, const Pool *p, Val row, Val column,
               PoolElement *element, const void *context) {
    Code *c = e->c;
    Cover at[2] = {window_cover(c, &p->w[ROWS], row, p->in.h),
                   window_cover(c, &p->w[COLS], column, p->in.w)};
    Loop rows, columns;
    Val value = code_variable(c, emit_number(e, p->average ? 0 : -INFINITY));
    Val y = loop_open(c, &rows, at[0].from, at[0].to, 1);
    Val x = loop_open(c, &columns, at[1].from, at[1].to, 1);
    Val next = element(e, context, y, x);
    Val so_far = code_get(c, LLVMTypeOf(next), value);
    code_set(c, value,
             p->average ? float_add(c, so_far, next)
                        : emit_max(e, so_far, next));
    loop_close(c, &columns);
    loop_close(c, &rows);
    Val result = code_get(c, LLVMTypeOf(emit_number(e, 0)), value);
    if (!p->average)
        return result;
    Val n = float_of_index(c, pool_divisor(c, p, at));
    return float_div(c, result, code_splat(c, n, e->lanes));
}

static Val element_of_input(const Emit *e, const void *context, Val row,
                            Val column) {
    Val at = operand_at(e->c, &e->k->in[0], *(const Val *)context, row, column);
    return emit_get(e, 0, at);
}

static void emit_pool(const Emit *one) {
    Emit by_block = emit_lanes(one);
    const Emit *e = &by_block;
    Code *c = e->c;
    Pool p;
    Extent in = operand_extent(&e->k->in[0]);
    Loop channels, rows, columns;
    pool_read(e->k, false, &in, &p);
    uint64_t per_image = operand_channels(&e->k->out[0]).n;
    Val channel = loop_lanes(e, &channels, p.out.c);
    Val row = loop_count(c, &rows, p.out.h);
    Val column = loop_count(c, &columns, p.out.w);
    Val value = pool_value(e, &p, row, column, element_of_input, &channel);
    emit_put(e, operand_at(c, &e->k->out[0], channel, row, column), value,
             index_rem(c, channel, per_image));
    loop_close(c, &columns);
    loop_close(c, &rows);
    loop_close(c, &channels);
}

/* ---- convolution and pool in one ---- */

bool conv_pool_read(const Kernel *k, ConvPool *both) {
    if (!conv_read(k, &both->v, false))
        return false;
    Conv *v = &both->v;
    Extent made = {v->out.c, window_count(&v->w[ROWS], v->in.h),
                   window_count(&v->w[COLS], v->in.w)};
    pool_read(k, true, &made, &both->p);
    both->p.out.c = v->out.c;
    return pool_fits(&both->p);
}

bool check_conv_pool(const Kernel *k) {
    ConvPool both;
    return conv_pool_read(k, &both);
}

static Val pooled_element(const Emit *e, const void *context, Val row,
                          Val column) {
    const ConvPool *both = context;
    return pool_value(e, &both->p, row, column, conv_element, both);
}

static void emit_conv_pool(const Emit *e) {
    ConvPool both;
    conv_pool_read(e->k, &both);
    emit_results(e, &both, pooled_element);
}

const OpRow ops_window[] = {
    {"conv", 1, check_conv, emit_conv},
    {"deconv", 1, check_deconv, emit_deconv},
    {"pool", 1, check_pool, emit_pool},
    {"conv_pool", 1, check_conv_pool, emit_conv_pool},
    {"fc", 1, check_fc, emit_fc},
    {NULL, 0, NULL, NULL},
};
