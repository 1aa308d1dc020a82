/* ops_tensor.c - sums over axes: matrix products, reductions, norms; see
 * ops.h. Sums keep what rounding loses, since the reference adds in double. */
#include "native/llvm/codes.h"
#include "native/llvm/ops_window.h"

#include <math.h>
#include <string.h>

/* ---- matrix products ---- */

static bool check_matmul(const Kernel *k) {
    const Shape *a = &k->in[0].shape, *b = &k->in[1].shape;
    const Shape *out = &k->out[0].shape;
    uint32_t rank = out->rank;
    if (rank < 2 || a->rank != rank || b->rank != rank ||
        a->dim[rank - 1] != b->dim[rank - 2] ||
        a->dim[rank - 2] != out->dim[rank - 2] ||
        b->dim[rank - 1] != out->dim[rank - 1])
        return false;
    for (uint32_t i = 0; i + 2 < rank; i++)
        if ((a->dim[i] != out->dim[i] && a->dim[i] != 1) ||
            (b->dim[i] != out->dim[i] && b->dim[i] != 1))
            return false;
    return !k->quant && !kernel_is(k, "act", "prelu");
}

/* Element (row, column) of the matrix of an operand that serves this one of
 * the result. */
static Val matrix_place(Code *c, const Operand *operand, const Axes *matrix,
                        Val row, Val column) {
    uint32_t rank = operand->shape.rank;
    Val at[SHAPE_MAX_RANK];
    for (uint32_t i = 0; i + 2 < rank; i++)
        at[i] = operand->shape.dim[i] == 1 ? code_index(c, 0) : matrix->i[i];
    at[rank - 2] = row;
    at[rank - 1] = column;
    return operand_index(c, operand, at);
}

static void multiply_row(const Emit *e, const Axes *matrix, Val row) {
    Code *c = e->c;
    const Shape *a = &e->k->in[0].shape, *out = &e->k->out[0].shape;
    uint32_t rank = out->rank;
    Loop fill, terms, columns, act;
    Val zero = code_scalar(c, 0), at = loop_count(c, &fill, out->dim[rank - 1]);
    code_store(c, e->out[0], matrix_place(c, &e->k->out[0], matrix, row, at),
               zero);
    loop_close(c, &fill);
    Val i = loop_count(c, &terms, a->dim[rank - 1]);
    Val by =
        code_load(c, e->in[0], matrix_place(c, &e->k->in[0], matrix, row, i));
    at = loop_count(c, &columns, out->dim[rank - 1]);
    Val to = matrix_place(c, &e->k->out[0], matrix, row, at);
    Val x =
        code_load(c, e->in[1], matrix_place(c, &e->k->in[1], matrix, i, at));
    code_store(c, e->out[0], to,
               float_fma(c, by, x, code_reload(c, e->out[0], to)));
    loop_close(c, &columns);
    loop_close(c, &terms);
    if (!e->act.apply)
        return;
    at = loop_count(c, &act, out->dim[rank - 1]);
    to = matrix_place(c, &e->k->out[0], matrix, row, at);
    x = emit_act(e, code_reload(c, e->out[0], to), code_index(c, 0));
    code_store(c, e->out[0], to, x);
    loop_close(c, &act);
}

static void emit_matmul(const Emit *e) {
    Code *c = e->c;
    Shape outer = e->k->out[0].shape;
    outer.rank -= 2;
    Axes matrix;
    Loop rows;
    axes_open(c, &matrix, &outer);
    multiply_row(e, &matrix, loop_count(c, &rows, outer.dim[outer.rank]));
    loop_close(c, &rows);
    axes_close(c, &matrix);
}

/* ---- reductions ---- */

/* One result: the loops over what goes into it. */
typedef struct Group {
    const Emit *e;
    Shape inner; /* 1 in axes that stay */
    const Axes *out;
    uint64_t n;
} Group;

static Val group_open(const Group *g, Axes *axes) {
    Code *c = g->e->c;
    axes_open(c, axes, &g->inner);
    Val at[SHAPE_MAX_RANK];
    for (uint32_t i = 0; i < axes->n; i++)
        at[i] = g->inner.dim[i] > 1 ? axes->i[i] : g->out->i[i];
    return emit_get(g->e, 0, operand_index(c, &g->e->k->in[0], at));
}

typedef Val Term(Code *c, Val x);

static Val term_same(Code *c, Val x) {
    (void)c;
    return x;
}

static Val term_square(Code *c, Val x) {
    return float_mul(c, x, x);
}

static Val sum_group(const Group *g, Term *term) {
    Code *c = g->e->c;
    Axes axes;
    Sum sum = sum_open(c);
    Val x = group_open(g, &axes);
    sum_add(c, &sum, term(c, x));
    axes_close(c, &axes);
    return sum_value(c, &sum);
}

static Val fold_group(const Group *g, Binary *fold, double first) {
    Code *c = g->e->c;
    Axes axes;
    Val value = code_variable(c, code_scalar(c, first));
    Val x = group_open(g, &axes);
    code_set(c, value, fold(c, code_get(c, c->f32, value), x));
    axes_close(c, &axes);
    return code_get(c, c->f32, value);
}

static Val reduce_mean(const Group *g) {
    return float_div(g->e->c, sum_group(g, term_same),
                     code_scalar(g->e->c, (double)g->n));
}
static Val reduce_sum(const Group *g) {
    return sum_group(g, term_same);
}
static Val reduce_max(const Group *g) {
    return fold_group(g, float_largest, -INFINITY);
}
static Val reduce_min(const Group *g) {
    return fold_group(g, float_least, INFINITY);
}
static Val reduce_prod(const Group *g) {
    return fold_group(g, float_mul, 1);
}
static Val reduce_l1(const Group *g) {
    return sum_group(g, float_abs);
}
static Val reduce_l2(const Group *g) {
    return float_sqrt(g->e->c, sum_group(g, term_square));
}
static Val reduce_squares(const Group *g) {
    return sum_group(g, term_square);
}
static Val reduce_log_sum(const Group *g) {
    return math_log(g->e->c, sum_group(g, term_same));
}

static Val reduce_log_sum_exp(const Group *g) {
    Code *c = g->e->c;
    Val most = reduce_max(g);
    Axes axes;
    Sum sum = sum_open(c);
    Val x = group_open(g, &axes);
    sum_add(c, &sum, math_exp(c, float_sub(c, x, most)));
    axes_close(c, &axes);
    return float_add(c, most, math_log(c, sum_value(c, &sum)));
}

/* The place of the first, or last, that none beats. */
static Val reduce_place(const Group *g, bool least, bool last) {
    Code *c = g->e->c;
    Axes axes;
    Val best = code_variable(c, code_scalar(c, -INFINITY));
    Val place = code_variable(c, code_index(c, 0));
    Val x = group_open(g, &axes), i = code_index(c, 0);
    for (uint32_t axis = 0; axis < axes.n; axis++)
        i = index_step(c, i, g->inner.dim[axis], axes.i[axis]);
    x = least ? float_neg(c, x) : x;
    Val so_far = code_get(c, c->f32, best);
    Val wins = last ? float_less_equal(c, so_far, x) : float_less(c, so_far, x);
    code_set(c, best, code_select(c, wins, x, so_far));
    code_set(c, place, code_select(c, wins, i, code_get(c, c->index, place)));
    axes_close(c, &axes);
    return float_of_index(c, code_get(c, c->index, place));
}

static Val reduce_argmax(const Group *g) {
    return reduce_place(g, false, false);
}
static Val reduce_argmax_last(const Group *g) {
    return reduce_place(g, false, true);
}
static Val reduce_argmin(const Group *g) {
    return reduce_place(g, true, false);
}
static Val reduce_argmin_last(const Group *g) {
    return reduce_place(g, true, true);
}

#define ROW(name)                                                              \
    { #name, reduce_##name }
static const struct ReduceRow {
    const char *name;
    Val (*run)(const Group *g);
} reduce_rows[] = {
    ROW(mean),    ROW(sum),         ROW(max),         ROW(min),
    ROW(prod),    ROW(l1),          ROW(l2),          ROW(squares),
    ROW(log_sum), ROW(argmax),      ROW(argmax_last), ROW(log_sum_exp),
    ROW(argmin),  ROW(argmin_last),
};
#undef ROW

static const struct ReduceRow *find_reduction(const Kernel *k) {
    for (size_t i = 0; i < sizeof reduce_rows / sizeof *reduce_rows; i++)
        if (kernel_is(k, "kind", reduce_rows[i].name))
            return &reduce_rows[i];
    return NULL;
}

static bool check_reduce(const Kernel *k) {
    const Shape *in = &k->in[0].shape, *out = &k->out[0].shape;
    uint32_t axes = kernel_count(k, "axes", 0, 0);
    if (in->rank != out->rank || !find_reduction(k))
        return false;
    for (uint32_t i = 0; i < in->rank; i++)
        if (out->dim[i] != (axes >> i & 1 ? 1 : in->dim[i]))
            return false;
    return true;
}

static void emit_reduce(const Emit *e) {
    Code *c = e->c;
    uint32_t bits = kernel_count(e->k, "axes", 0, 0);
    Axes axes;
    axes_open(c, &axes, &e->k->out[0].shape);
    Group g = {.e = e, .inner = e->k->in[0].shape, .out = &axes};
    for (uint32_t i = 0; i < g.inner.rank; i++)
        if (!(bits >> i & 1))
            g.inner.dim[i] = 1;
    g.n = shape_count(&g.inner);
    Val value = find_reduction(e->k)->run(&g);
    emit_put(e, operand_index(c, &e->k->out[0], axes.i), value,
             axes.n > 1 ? axes.i[1] : code_index(c, 0));
    axes_close(c, &axes);
}

/* ---- lines: softmax, norms ---- */

/* Elements `first` + i * `step` of the tensors, i < n. */
typedef struct Line {
    const Emit *e;
    Val first;
    uint64_t n, step;
} Line;

static Val line_in(const Line *l, Val i) {
    Code *c = l->e->c;
    Val at = index_step(c, i, l->step, l->first);
    return emit_get(l->e, 0, operand_linear(c, &l->e->k->in[0], at));
}

static Val line_out_at(const Line *l, Val i) {
    Code *c = l->e->c;
    Val at = index_step(c, i, l->step, l->first);
    return operand_linear(c, &l->e->k->out[0], at);
}

/* Of the results, the channel of the constants. */
static Val line_channel(const Line *l, Val i) {
    Code *c = l->e->c;
    Channels size = operand_channels(&l->e->k->out[0]);
    Val at = index_step(c, i, l->step, l->first);
    return index_rem(c, index_div(c, at, size.plane), size.n);
}

static void line_put(const Line *l, Val i, Val x) {
    bool acts = l->e->act.apply || l->e->act.by_channel;
    Val channel = acts ? line_channel(l, i) : code_index(l->e->c, 0);
    emit_put(l->e, line_out_at(l, i), x, channel);
}

/* Lines along some axes, the first of which is in groups. */
static Along lines_of(const Kernel *k, uint32_t axes) {
    const Shape *in = &k->in[0].shape;
    uint32_t axis = kernel_count(k, "axis", 0, 1);
    uint32_t groups = kernel_count(k, "groups", 0, 1);
    Along a = along(in, axis);
    for (uint32_t i = axis + 1; i - axis < axes && i < in->rank; i++) {
        a.n *= in->dim[i];
        a.inner /= in->dim[i];
    }
    a.outer *= groups;
    a.n /= groups;
    return a;
}

static bool check_lines(const Kernel *k) {
    const Shape *in = &k->in[0].shape;
    uint32_t axis = kernel_count(k, "axis", 0, 1);
    uint32_t groups = kernel_count(k, "groups", 0, 1);
    return shape_count(in) == shape_count(&k->out[0].shape) &&
           axis < in->rank && groups && in->dim[axis] % groups == 0;
}

static Val line_max(const Line *l) {
    Code *c = l->e->c;
    Loop loop;
    Val most = code_variable(c, code_scalar(c, -INFINITY));
    Val i = loop_count(c, &loop, l->n);
    code_set(c, most, float_max(c, code_get(c, c->f32, most), line_in(l, i)));
    loop_close(c, &loop);
    return code_get(c, c->f32, most);
}

static void softmax_line(const Line *l) {
    Code *c = l->e->c;
    Loop sums, parts;
    Val most = line_max(l);
    Sum sum = sum_open(c);
    Val i = loop_count(c, &sums, l->n);
    sum_add(c, &sum, math_exp(c, float_sub(c, line_in(l, i), most)));
    loop_close(c, &sums);
    Val all = sum_value(c, &sum);
    i = loop_count(c, &parts, l->n);
    Val power = math_exp(c, float_sub(c, line_in(l, i), most));
    line_put(l, i, float_div(c, power, all));
    loop_close(c, &parts);
}

static void emit_softmax(const Emit *e) {
    Code *c = e->c;
    Along a = lines_of(e->k, 1);
    Loop outer, inner;
    Val o = loop_count(c, &outer, a.outer);
    Val i = loop_count(c, &inner, a.inner);
    Line line = {e, index_step(c, o, a.n * a.inner, i), a.n, a.inner};
    softmax_line(&line);
    loop_close(c, &inner);
    loop_close(c, &outer);
}

/* Mean, what its rounding lost, and the deviation. */
static void norm_line(const Line *l, double eps) {
    Code *c = l->e->c;
    Val n = code_scalar(c, (double)l->n), mean = code_scalar(c, 0);
    Loop means, squares, values;
    bool rms = kernel_count(l->e->k, "rms", 0, 0);
    Sum sum = sum_open(c);
    if (!rms) {
        sum_add(c, &sum, line_in(l, loop_count(c, &means, l->n)));
        loop_close(c, &means);
        mean = float_div(c, sum_value(c, &sum), n);
    }
    Sum rest = sum_open(c), square = sum_open(c);
    Val x = line_in(l, loop_count(c, &squares, l->n));
    x = float_sub(c, x, mean);
    if (!rms)
        sum_add(c, &rest, x);
    sum_add(c, &square, float_mul(c, x, x));
    loop_close(c, &squares);
    Val lost = float_div(c, sum_value(c, &rest), n);
    Val variance = float_div(c, sum_value(c, &square), n);
    variance = float_sub(c, variance, float_mul(c, lost, lost));
    Val deviation = float_sqrt(c, float_add(c, variance, code_scalar(c, eps)));
    Val i = loop_count(c, &values, l->n);
    x = float_sub(c, float_sub(c, line_in(l, i), mean), lost);
    line_put(l, i, float_div(c, x, deviation));
    loop_close(c, &values);
}

static void emit_norm(const Emit *e) {
    Code *c = e->c;
    Along a = lines_of(e->k, kernel_count(e->k, "axes", 0, SHAPE_MAX_RANK));
    Loop outer, inner;
    Val o = loop_count(c, &outer, a.outer);
    Val i = loop_count(c, &inner, a.inner);
    Line line = {e, index_step(c, o, a.n * a.inner, i), a.n, a.inner};
    norm_line(&line, kernel_number(e->k, "eps", 0, 1e-5));
    loop_close(c, &inner);
    loop_close(c, &outer);
}

/* ---- local response normalisation ---- */

typedef struct Lrn {
    uint32_t images, size;
    Extent in; /* of an image */
    bool within;
    double alpha, beta, k;
} Lrn;

static Lrn lrn_read(const Kernel *k) {
    Lrn l = {.in = operand_extent(&k->in[0]),
             .size = kernel_count(k, "size", 0, 5),
             .within = kernel_count(k, "within_channel", 0, 0) != 0,
             .alpha = kernel_number(k, "alpha", 0, 1),
             .beta = kernel_number(k, "beta", 0, 0.75),
             .k = kernel_number(k, "k", 0, 1)};
    l.images = k->in[0].shape.rank == 4 ? k->in[0].shape.dim[0] : 1;
    l.in.c /= l.images;
    double n = l.within ? (double)l.size * l.size : l.size;
    l.alpha /= n > 0 ? n : 1;
    return l;
}

static bool check_lrn(const Kernel *k) {
    return !k->quant && shape_equal(&k->in[0].shape, &k->out[0].shape) &&
           kernel_count(k, "size", 0, 5) <= 1 << 10 && !kernel_attr(k, "act");
}

/* x / (k + alpha * sum)^beta */
static Val lrn_value(Code *c, const Lrn *l, Val x, Val sum) {
    Val under =
        float_fma(c, code_scalar(c, l->alpha), sum, code_scalar(c, l->k));
    if (l->beta == 0.75) {
        Val root = float_sqrt(c, under);
        under = float_mul(c, root, float_sqrt(c, root));
    } else if (l->beta == 0.5) {
        under = float_sqrt(c, under);
    } else if (l->beta != 1) {
        under = math_pow(c, under, code_scalar(c, l->beta));
    }
    return float_div(c, x, under);
}

/* [at - size / 2, at + size / 2], inside 0..n */
static Range around(Code *c, Val at, uint32_t size, uint32_t n) {
    Val half = code_index(c, size / 2), one = code_index(c, 1);
    Val to = index_add(c, index_add(c, at, half), one);
    return (Range){index_max(c, index_sub(c, at, half), code_index(c, 0)),
                   index_min(c, to, code_index(c, n))};
}

static Val input_at(const Emit *e, Val channel, Val row, Val column) {
    return emit_get(e, 0, operand_at(e->c, &e->k->in[0], channel, row, column));
}

/* Over a square of its own channel. */
static void lrn_within(const Emit *e, const Lrn *l) {
    Code *c = e->c;
    Loop loop[5];
    Val channel = loop_count(c, &loop[0], (uint64_t)l->images * l->in.c);
    Val row = loop_count(c, &loop[1], l->in.h);
    Val column = loop_count(c, &loop[2], l->in.w);
    Sum sum = sum_open(c);
    Range y = around(c, row, l->size, l->in.h);
    Range x = around(c, column, l->size, l->in.w);
    Val near_row = loop_open(c, &loop[3], y.from, y.to, 1);
    Val near = loop_open(c, &loop[4], x.from, x.to, 1);
    sum_add(c, &sum, term_square(c, input_at(e, channel, near_row, near)));
    loop_close(c, &loop[4]);
    loop_close(c, &loop[3]);
    Val value =
        lrn_value(c, l, input_at(e, channel, row, column), sum_value(c, &sum));
    code_store(c, e->out[0], operand_at(c, &e->k->out[0], channel, row, column),
               value);
    loop_close(c, &loop[2]);
    loop_close(c, &loop[1]);
    loop_close(c, &loop[0]);
}

/* A row over the channels around it; sums wait in the result, so that the
 * innermost loops run along rows. */
static void lrn_row(const Emit *e, const Lrn *l, Val first, Val member,
                    Val row) {
    Code *c = e->c;
    Loop clear, channels, add, divide;
    const Operand *out = &e->k->out[0];
    Val channel = index_add(c, first, member);
    Val i = loop_count(c, &clear, l->in.w);
    code_store(c, e->out[0], operand_at(c, out, channel, row, i),
               code_scalar(c, 0));
    loop_close(c, &clear);
    Range near = around(c, member, l->size, l->in.c);
    Val other = loop_open(c, &channels, near.from, near.to, 1);
    i = loop_count(c, &add, l->in.w);
    Val x = input_at(e, index_add(c, first, other), row, i);
    Val at = operand_at(c, out, channel, row, i);
    code_store(c, e->out[0], at,
               float_fma(c, x, x, code_reload(c, e->out[0], at)));
    loop_close(c, &add);
    loop_close(c, &channels);
    i = loop_count(c, &divide, l->in.w);
    at = operand_at(c, out, channel, row, i);
    code_store(c, e->out[0], at,
               lrn_value(c, l, input_at(e, channel, row, i),
                         code_reload(c, e->out[0], at)));
    loop_close(c, &divide);
}

static void emit_lrn(const Emit *e) {
    Code *c = e->c;
    Lrn l = lrn_read(e->k);
    Loop images, channels, rows;
    if (l.within) {
        lrn_within(e, &l);
        return;
    }
    Val image = loop_count(c, &images, l.images);
    Val member = loop_count(c, &channels, l.in.c);
    Val row = loop_count(c, &rows, l.in.h);
    lrn_row(e, &l, index_mul(c, image, l.in.c), member, row);
    loop_close(c, &rows);
    loop_close(c, &channels);
    loop_close(c, &images);
}

const OpRow ops_tensor[] = {
    {"matmul", 2, check_matmul, emit_matmul},
    {"reduce", 1, check_reduce, emit_reduce},
    {"softmax", 1, check_lines, emit_softmax},
    {"norm", 1, check_lines, emit_norm},
    {"lrn", 1, check_lrn, emit_lrn},
    {NULL, 0, NULL, NULL},
};
