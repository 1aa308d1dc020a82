/* ops_blocks.c - convolutions on channel blocks: volumes lie as [c / B][h][w]
 * [c % B], weights as kernel_packing says; see program.h.
 *
 * A tile is a run of pixels of a row of the output times one or two blocks of
 * its channels; its sums stay in registers while all taps and input channels
 * go by: each step loads the weights of one input channel, and multiplies them
 * with that channel of each pixel. Rows at the top and bottom have shorter
 * loops over kernel rows; tiles at the left and right, where some taps of some
 * pixels are outside, have code of their own, in which the loop over kernel
 * columns is unrolled and each column has just the pixels that it reaches. The
 * method is that of E. Georganas et al., "Anatomy of high-performance deep
 * learning convolutions on SIMD architectures", SC 2018.
 */
#include "native/llvm/ops_window.h"

enum { MOST_PIXELS = 32, MOST_SUMS = 64 };

/* ---- rows as tiles ---- */

typedef struct Tiled {
    const Emit *e;
    Conv v; /* a 1x1 convolution has all its pixels in one row */
    uint32_t block;
    uint32_t n_q; /* blocks of output channels at once */
    bool depthwise;
    /* now: */
    Val out_block;   /* first block of output channels */
    Val row, column; /* of the tile's first pixel */
    Range ky;        /* kernel rows inside */
    uint32_t n_p;    /* pixels of the tile */
    Val sum[MOST_SUMS];
} Tiled;

static Type vector_type(const Tiled *t) {
    return code_vector(t->e->c, t->block);
}

/* Pixels of a tile: as many as registers hold sums, in even shares. */
static uint32_t tile_pixels(const Tiled *t) {
    const Code *c = t->e->c;
    uint32_t lanes = c->lanes > t->block ? t->block : c->lanes;
    uint32_t each = t->n_q * ((t->block + lanes - 1) / lanes);
    uint32_t spare = c->registers > 4 ? c->registers - 4 : 1;
    uint32_t most = spare / each ? spare / each : 1;
    most = most > MOST_PIXELS ? MOST_PIXELS : most;
    uint32_t tiles = (t->v.out.w + most - 1) / most;
    return (t->v.out.w + tiles - 1) / tiles;
}

/* Of the n pixels from `first` on, those for which kernel column `kx` lies
 * inside: [from, to). */
static void reached(const Tiled *t, uint32_t first, uint32_t n, uint32_t kx,
                    uint32_t *from, uint32_t *to) {
    const Window *w = &t->v.w[COLS];
    *from = *to = 0;
    for (uint32_t p = 0; p < n; p++) {
        int64_t x = (int64_t)(first + p) * w->stride +
                    (int64_t)kx * w->dilation - w->pad;
        if (x < 0 || x >= t->v.in.w)
            continue;
        if (*from == *to)
            *from = p;
        *to = p + 1;
    }
}

static bool all_reached(const Tiled *t, uint32_t first, uint32_t n) {
    for (uint32_t kx = 0; kx < t->v.w[COLS].kernel; kx++) {
        uint32_t from, to;
        reached(t, first, n, kx, &from, &to);
        if (from != 0 || to != n)
            return false;
    }
    return true;
}

/* ---- sums ---- */

static Val *sum_of(Tiled *t, uint32_t q, uint32_t p) {
    return &t->sum[q * t->n_p + p];
}

static Val block_of(const Tiled *t, uint32_t q) {
    return index_add(t->e->c, t->out_block, code_index(t->e->c, q));
}

static Val by_channel(const Tiled *t, Val constant, uint32_t q) {
    Code *c = t->e->c;
    return code_load_vector(c, constant, index_mul(c, block_of(t, q), t->block),
                            t->block);
}

static void open_sums(Tiled *t) {
    Val bias = emit_constant(t->e, "bias");
    for (uint32_t q = 0; q < t->n_q; q++) {
        Val first =
            bias ? by_channel(t, bias, q) : LLVMConstNull(vector_type(t));
        for (uint32_t p = 0; p < t->n_p; p++)
            *sum_of(t, q, p) = code_variable(t->e->c, first);
    }
}

static void close_sums(Tiled *t) {
    Code *c = t->e->c;
    const Operand *out = &t->e->k->out[0];
    Val slope = emit_constant(t->e, "slope");
    for (uint32_t q = 0; q < t->n_q; q++) {
        Val slopes =
            slope && t->e->act.by_channel ? by_channel(t, slope, q) : NULL;
        Val at = index_step(c, block_of(t, q), out->c_step,
                            index_mul(c, t->column, out->w_step));
        at = index_step(c, t->row, out->h_step, at);
        for (uint32_t p = 0; p < t->n_p; p++) {
            Val value = code_get(c, vector_type(t), *sum_of(t, q, p));
            value = epilogue_apply(c, &t->e->act, value, slopes);
            Val to =
                index_add(c, at, code_index(c, (int64_t)(p * out->w_step)));
            code_store(c, t->e->out[0], to, value);
        }
    }
}

/* ---- taps ---- */

/* Where the tile's first pixel, if it were inside, has this tap. */
static Val tap_place(const Tiled *t, Val in_block, Val ky, Val kx) {
    Code *c = t->e->c;
    const Operand *in = &t->e->k->in[0];
    Val y = window_place(c, &t->v.w[ROWS], t->row, ky);
    Val x = window_place(c, &t->v.w[COLS], t->column, kx);
    Val at = index_step(c, in_block, in->c_step, index_mul(c, y, in->h_step));
    return index_step(c, x, in->w_step, at);
}

static Val pixel_place(const Tiled *t, Val first, uint32_t p) {
    uint64_t step = (uint64_t)p * t->v.w[COLS].stride * t->e->k->in[0].w_step;
    return index_add(t->e->c, first, code_index(t->e->c, (int64_t)step));
}

static void add_to(Tiled *t, uint32_t q, uint32_t p, Val a, Val b) {
    Code *c = t->e->c;
    Val sum = code_get(c, vector_type(t), *sum_of(t, q, p));
    code_set(c, *sum_of(t, q, p), float_fma(c, a, b, sum));
}

/* All input channels of a block, of which there are `n`. */
static void add_channels(Tiled *t, Val in_block, Val n, Val ky, Val kx,
                         uint32_t from, uint32_t to) {
    Code *c = t->e->c;
    uint64_t taps = (uint64_t)t->v.w[ROWS].kernel * t->v.w[COLS].kernel;
    Val tap = index_step(c, ky, t->v.w[COLS].kernel, kx);
    Val row = index_step(c, t->out_block, t->v.in.c * taps,
                         index_mul(c, in_block, t->block * taps));
    row = index_add(c, row, LLVMBuildNSWMul(c->builder, tap, n, ""));
    Val first = tap_place(t, in_block, ky, kx);
    Val weights = emit_constant(t->e, "weight"), weight[2] = {NULL, NULL};
    Loop loop;
    Val i = loop_open(c, &loop, code_index(c, 0), n, 1);
    Val at = index_mul(c, index_add(c, row, i), t->block);
    for (uint32_t q = 0; q < t->n_q; q++) {
        uint64_t step = q * t->v.in.c * taps * t->block;
        Val place = index_add(c, at, code_index(c, (int64_t)step));
        weight[q] = code_load_vector(c, weights, place, t->block);
    }
    Val channel = index_add(c, first, i);
    for (uint32_t p = from; p < to; p++) {
        Val x = code_load(c, t->e->in[0], pixel_place(t, channel, p));
        x = float_splat(c, x, t->block);
        for (uint32_t q = 0; q < t->n_q; q++)
            add_to(t, q, p, x, weight[q]);
    }
    loop_close(c, &loop);
}

/* The one channel that there is of each, for a whole block. */
static void add_own(Tiled *t, Val ky, Val kx, uint32_t from, uint32_t to) {
    Code *c = t->e->c;
    uint64_t taps = (uint64_t)t->v.w[ROWS].kernel * t->v.w[COLS].kernel;
    Val tap = index_step(c, ky, t->v.w[COLS].kernel, kx);
    Val at = index_mul(c, index_step(c, t->out_block, taps, tap), t->block);
    Val weight =
        code_load_vector(c, emit_constant(t->e, "weight"), at, t->block);
    Val first = tap_place(t, t->out_block, ky, kx);
    for (uint32_t p = from; p < to; p++) {
        Val place = pixel_place(t, first, p);
        add_to(t, 0, p, code_load_vector(c, t->e->in[0], place, t->block),
               weight);
    }
}

static void add_tap(Tiled *t, Val in_block, Val n, Val ky, Val kx,
                    uint32_t from, uint32_t to) {
    if (from == to)
        return;
    if (t->depthwise)
        add_own(t, ky, kx, from, to);
    else
        add_channels(t, in_block, n, ky, kx, from, to);
}

/* first: the tile's first pixel, where it matters which. */
static void add_columns(Tiled *t, Val in_block, Val n, Val ky, bool inner,
                        uint32_t first) {
    Code *c = t->e->c;
    uint32_t width = t->v.w[COLS].kernel;
    if (inner) {
        Loop loop;
        Val kx = loop_count(c, &loop, width);
        add_tap(t, in_block, n, ky, kx, 0, t->n_p);
        loop_close(c, &loop);
        return;
    }
    for (uint32_t kx = 0; kx < width; kx++) {
        uint32_t from, to;
        reached(t, first, t->n_p, kx, &from, &to);
        add_tap(t, in_block, n, ky, code_index(c, kx), from, to);
    }
}

static void emit_tile(Tiled *t, bool inner, uint32_t first) {
    Code *c = t->e->c;
    uint32_t in_c = t->depthwise ? 1 : t->v.in.c;
    Loop blocks, rows;
    open_sums(t);
    Val in_block = loop_count(c, &blocks, (in_c + t->block - 1) / t->block);
    Val before = index_mul(c, in_block, t->block);
    Val n = index_min(c, code_index(c, t->block),
                      index_sub(c, code_index(c, in_c), before));
    Val ky = loop_open(c, &rows, t->ky.from, t->ky.to, 1);
    add_columns(t, in_block, n, ky, inner, first);
    loop_close(c, &rows);
    loop_close(c, &blocks);
    close_sums(t);
}

/* ---- all tiles ---- */

/* A row: inner tiles that follow each other share their code. */
static void emit_row(Tiled *t, uint32_t pixels) {
    Code *c = t->e->c;
    uint32_t width = t->v.out.w;
    for (uint32_t x = 0; x < width; x += t->n_p) {
        uint32_t end = x, last = width - width % pixels;
        t->n_p = width - x < pixels ? width - x : pixels;
        while (end < last && all_reached(t, end, pixels))
            end += pixels;
        if (end > x + pixels) {
            Loop loop;
            t->column = loop_open(c, &loop, code_index(c, x),
                                  code_index(c, end), pixels);
            emit_tile(t, true, x);
            loop_close(c, &loop);
            x = end - pixels;
            continue;
        }
        t->column = code_index(c, x);
        emit_tile(t, all_reached(t, x, t->n_p), x);
    }
}

/* Kernel rows that lie inside for a row of the output. */
static Range kernel_rows(const Tiled *t) {
    Code *c = t->e->c;
    const Window *w = &t->v.w[ROWS];
    Val zero = code_index(c, 0), top = index_mul(c, t->row, w->stride);
    Val above = index_sub(c, code_index(c, w->pad), top);
    Val from = index_add(c, above, code_index(c, (int64_t)w->dilation - 1));
    from = index_div(c, index_max(c, from, zero), w->dilation);
    Val to = index_add(c, above,
                       code_index(c, (int64_t)t->v.in.h - 1 + w->dilation));
    to = index_div(c, index_max(c, to, zero), w->dilation);
    return (Range){from, index_min(c, to, code_index(c, w->kernel))};
}

/* Blocks [from, to) of the output's channels, `n_q` at once. */
static void emit_channels(Tiled *t, uint32_t from, uint32_t to, uint32_t n_q) {
    Code *c = t->e->c;
    Loop blocks, rows;
    t->n_q = n_q;
    t->out_block =
        loop_open(c, &blocks, code_index(c, from), code_index(c, to), n_q);
    t->row = loop_count(c, &rows, t->v.out.h);
    t->ky = kernel_rows(t);
    emit_row(t, tile_pixels(t));
    loop_close(c, &rows);
    loop_close(c, &blocks);
}

/* Is each pixel made of the one in its place, and do rows follow each other
 * without gaps? Then all are one row. */
static void join_rows(const Emit *e, Conv *v) {
    const Operand *in = &e->k->in[0], *out = &e->k->out[0];
    for (int axis = 0; axis < 2; axis++) {
        const Window *w = &v->w[axis];
        if (w->kernel > 1 || w->stride > 1 || w->pad || w->pad_end)
            return;
    }
    if (in->h_step != in->w_step * v->in.w ||
        out->h_step != out->w_step * v->out.w)
        return;
    v->in.w *= v->in.h;
    v->out.w *= v->out.h;
    v->in.h = v->out.h = 1;
}

void emit_conv_blocks(const Emit *e, const Conv *v) {
    Tiled t = {.e = e, .v = *v, .block = e->k->out[0].block};
    uint32_t n = (v->out.c + t.block - 1) / t.block;
    join_rows(e, &t.v);
    if (n > 1)
        emit_channels(&t, 0, n - n % 2, 2);
    if (n % 2)
        emit_channels(&t, n - 1, n, 1);
}

void emit_depthwise_blocks(const Emit *e, const Conv *v) {
    Tiled t = {.e = e, .v = *v, .block = e->k->out[0].block, .depthwise = true};
    emit_channels(&t, 0, (v->out.c + t.block - 1) / t.block, 1);
}
