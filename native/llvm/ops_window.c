/* ops_window.c - convolutions, pools and inner products; see ops.h.
 *
 * Convolutions add up rows: for each weight, a row of the input times the
 * weight onto a row of the output, which stays in the first cache, and which
 * LLVM turns into vector code. The border is what the ranges of the innermost
 * loop leave out.
 */
#include "native/llvm/ops_window.h"

#include "native/llvm/codes.h"

#include <math.h>

/* ---- windows ---- */

static void read_window(const Kernel *k, const WindowNames *names,
                        Window out[2]) {
    for (uint32_t axis = 0; axis < 2; axis++) {
        Window *w = &out[axis];
        w->kernel = kernel_count(k, names->kernel, axis, 1);
        w->stride = kernel_count(k, names->stride, axis, 1);
        w->pad = kernel_count(k, names->pad, axis, 0);
        w->pad_end = kernel_count(k, names->pad_end, axis, w->pad);
        w->dilation = kernel_count(k, names->dilation, axis, 1);
        w->kernel += w->kernel == 0;
        w->stride += w->stride == 0;
        w->dilation += w->dilation == 0;
    }
}

static uint32_t axis_of(const Extent *e, int axis) {
    return axis == ROWS ? e->h : e->w;
}

/* Windows along an axis of `in` elements, at least one. */
static uint32_t window_count(const Window *w, uint32_t in) {
    uint64_t reach = (uint64_t)(w->kernel - 1) * w->dilation + 1;
    uint64_t padded = (uint64_t)in + w->pad + w->pad_end;
    return padded < reach ? 1 : (uint32_t)((padded - reach) / w->stride + 1);
}

Range window_range(Code *c, const Window *w, Val tap, uint32_t in,
                   uint32_t out) {
    Val zero = code_index(c, 0);
    Val moved =
        index_sub(c, code_index(c, w->pad), index_mul(c, tap, w->dilation));
    Val from = index_add(c, moved, code_index(c, (int64_t)w->stride - 1));
    Val to = index_add(c, moved, code_index(c, (int64_t)in - 1 + w->stride));
    from = index_div(c, index_max(c, from, zero), w->stride);
    to = index_div(c, index_max(c, to, zero), w->stride);
    return (Range){from, index_min(c, to, code_index(c, out))};
}

Range window_taps(Code *c, const Window *w, Val at, uint32_t in) {
    Val zero = code_index(c, 0), first = index_mul(c, at, w->stride);
    Val before = index_sub(c, code_index(c, w->pad), first);
    Val from = index_add(c, before, code_index(c, (int64_t)w->dilation - 1));
    Val to = index_add(c, before, code_index(c, (int64_t)in - 1 + w->dilation));
    from = index_div(c, index_max(c, from, zero), w->dilation);
    to = index_div(c, index_max(c, to, zero), w->dilation);
    return (Range){from, index_min(c, to, code_index(c, w->kernel))};
}

Val window_place(Code *c, const Window *w, Val at, Val tap) {
    Val before =
        index_sub(c, index_mul(c, tap, w->dilation), code_index(c, w->pad));
    return index_step(c, at, w->stride, before);
}

Source window_source(Code *c, const Window *w, Val at, Val tap, uint32_t in) {
    Val moved = index_sub(c, index_add(c, at, code_index(c, w->pad)),
                          index_mul(c, tap, w->dilation));
    Val from = index_max(c, moved, code_index(c, 0));
    Val place = index_div(c, from, w->stride);
    Val exact = LLVMBuildICmp(c->builder, LLVMIntEQ,
                              index_mul(c, place, w->stride), moved, "");
    Val inside = is_inside(c, place, in);
    return (Source){LLVMBuildAnd(c->builder, exact, inside, ""), place};
}

Val is_inside(Code *c, Val at, uint32_t size) {
    return LLVMBuildICmp(c->builder, LLVMIntULT, at, code_index(c, size), "");
}

/* ---- convolutions ---- */

static const uint64_t most_products = UINT64_C(1) << 40;

bool conv_read(const Kernel *k, Conv *v, bool transposed) {
    read_window(k, &window_plain, v->w);
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

static Val bias_of(const Emit *e, Val channel) {
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
    Val sum = code_variable(c, bias_of(e, both->at.out));
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
    Val sum = code_variable(c, bias_of(e, one->at.out));
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
    fill_row(e, v.out.w, l.at.out_all, row, bias_of(e, l.at.out));
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
    fill_row(e, v.out.w, l.at.out_all, row, bias_of(e, l.at.out));
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
    read_window(k, fused ? &window_pool : &window_plain, p->w);
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

Cover window_cover(Code *c, const Window *w, Val at, uint32_t in) {
    Val start =
        index_sub(c, index_mul(c, at, w->stride), code_index(c, w->pad));
    Val end = index_add(c, start, code_index(c, w->kernel));
    Val padded_end = index_min(c, end, code_index(c, (int64_t)in + w->pad_end));
    return (Cover){index_max(c, start, code_index(c, 0)),
                   index_min(c, end, code_index(c, in)),
                   index_sub(c, padded_end, start)};
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

/* ---- inner products ---- */

bool product_read(const Kernel *k, Product *p) {
    const Shape *in = &k->in[0].shape, *out = &k->out[0].shape;
    p->batch = in->rank > 1 && out->rank > 1 ? in->dim[0] : 1;
    p->n = shape_count(in) / p->batch;
    p->m = shape_count(out) / p->batch;
    return p->n * p->batch == shape_count(in) &&
           p->m * p->batch == shape_count(out) &&
           p->n * p->m <= SHAPE_MAX_COUNT &&
           has_constant(k, "weight", p->n * p->m) &&
           fits_constant(k, "bias", p->m) && fits_constant(k, "slope", p->m);
}

bool check_fc(const Kernel *k) {
    Product p;
    return product_read(k, &p);
}

/* Several vectors of sums hide how long a multiplication takes. */
enum { SUMS = 4 };

static Val dot_vectors(Code *c, Val a, Val a_at, Val b, Val b_at, uint64_t n) {
    uint32_t step = c->lanes * SUMS;
    Type type = code_vector(c, c->lanes);
    Val sum[SUMS];
    Loop loop;
    for (int i = 0; i < SUMS; i++)
        sum[i] = code_variable(c, LLVMConstNull(type));
    Val at = loop_open(c, &loop, code_index(c, 0),
                       code_index(c, (int64_t)(n - n % step)), step);
    for (uint32_t i = 0; i < SUMS; i++) {
        Val more = index_add(c, at, code_index(c, i * c->lanes));
        Val x = code_load_vector(c, a, index_add(c, a_at, more), c->lanes);
        Val y = code_load_vector(c, b, index_add(c, b_at, more), c->lanes);
        code_set(c, sum[i], float_fma(c, x, y, code_get(c, type, sum[i])));
    }
    loop_close(c, &loop);
    Val all = code_get(c, type, sum[0]);
    for (int i = 1; i < SUMS; i++)
        all = float_add(c, all, code_get(c, type, sum[i]));
    return float_sum(c, all);
}

/* Inner product of n floats behind a_at and b_at; both dense. */
static Val dot(Code *c, Val a, Val a_at, Val b, Val b_at, uint64_t n) {
    uint64_t whole = n - n % (c->lanes * SUMS);
    Loop loop;
    Val first = whole ? dot_vectors(c, a, a_at, b, b_at, n) : code_scalar(c, 0);
    Val sum = code_variable(c, first);
    Val at = loop_open(c, &loop, code_index(c, (int64_t)whole),
                       code_index(c, (int64_t)n), 1);
    Val x = code_load(c, a, index_add(c, a_at, at));
    Val y = code_load(c, b, index_add(c, b_at, at));
    code_set(c, sum, float_fma(c, x, y, code_get(c, c->f32, sum)));
    loop_close(c, &loop);
    return code_get(c, c->f32, sum);
}

/* The same where the first operand has gaps. */
static Val dot_scattered(const Emit *e, Val in_at, Val weight_at, uint64_t n) {
    Code *c = e->c;
    Loop loop;
    Val sum = code_variable(c, code_scalar(c, 0));
    Val at = loop_count(c, &loop, n);
    Val place = operand_linear(c, &e->k->in[0], index_add(c, in_at, at));
    Val x = emit_get(e, 0, place);
    Val y =
        code_load(c, emit_constant(e, "weight"), index_add(c, weight_at, at));
    code_set(c, sum, float_fma(c, x, y, code_get(c, c->f32, sum)));
    loop_close(c, &loop);
    return code_get(c, c->f32, sum);
}

static void emit_fc(const Emit *e) {
    Code *c = e->c;
    Product p;
    Loop batches, results;
    product_read(e->k, &p);
    Val batch = loop_count(c, &batches, p.batch);
    Val o = loop_count(c, &results, p.m);
    Val in_at = index_mul(c, batch, p.n), weight_at = index_mul(c, o, p.n);
    Val sum = operand_is_dense(&e->k->in[0]) && !e->k->quant
                  ? dot(c, emit_constant(e, "weight"), weight_at, e->in[0],
                        in_at, p.n)
                  : dot_scattered(e, in_at, weight_at, p.n);
    sum = float_add(c, sum, bias_of(e, o));
    Val at = index_step(c, batch, p.m, o);
    emit_put(e, operand_linear(c, &e->k->out[0], at), sum, o);
    loop_close(c, &results);
    loop_close(c, &batches);
}

const OpRow ops_window[] = {
    {"conv", 1, check_conv, emit_conv},
    {"deconv", 1, check_deconv, emit_deconv},
    {"pool", 1, check_pool, emit_pool},
    {"conv_pool", 1, check_conv_pool, emit_conv_pool},
    {"fc", 1, check_fc, emit_fc},
    {NULL, 0, NULL, NULL},
};
