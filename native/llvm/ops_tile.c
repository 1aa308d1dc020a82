/* ops_tile.c - the tiles of a convolution and their borders; see ops_tile.h. */
#include "native/llvm/ops_tile.h"

/* Pixels of a tile: as many as registers hold sums, in even shares. */
static uint32_t tile_pixels(const Tile *t) {
    const Code *c = t->e->c;
    uint32_t lanes = c->lanes > t->block ? t->block : c->lanes;
    uint32_t each = t->n_q * ((t->width + lanes - 1) / lanes);
    uint32_t spare = c->registers > 4 ? c->registers - 4 : 1;
    uint32_t most = spare / each ? spare / each : 1;
    most = most > MOST_PIXELS ? MOST_PIXELS : most;
    uint32_t tiles = (t->v.out.w + most - 1) / most;
    return (t->v.out.w + tiles - 1) / tiles;
}

/* Of the n pixels from `first` on, those for which kernel column `kx` lies
 * inside: [from, to). */
static void reached(const Tile *t, uint32_t first, uint32_t n, uint32_t kx,
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

static bool all_reached(const Tile *t, uint32_t first, uint32_t n) {
    for (uint32_t kx = 0; kx < t->v.w[COLS].kernel; kx++) {
        uint32_t from, to;
        reached(t, first, n, kx, &from, &to);
        if (from != 0 || to != n)
            return false;
    }
    return true;
}

/* ---- for kinds ---- */

static Val block_of(const Tile *t, uint32_t q) {
    return index_add(t->e->c, t->out_block, code_index(t->e->c, q));
}

Val tile_channel(const Tile *t, uint32_t q) {
    return index_mul(t->e->c, block_of(t, q), t->block);
}

Val tile_place(const Tile *t, const TileTap *tap) {
    Code *c = t->e->c;
    const Operand *in = &t->e->k->in[0];
    Val y = window_place(c, &t->v.w[ROWS], t->row, tap->ky);
    Val x = window_place(c, &t->v.w[COLS], t->column, tap->kx);
    Val at =
        index_step(c, tap->in_block, in->c_step, index_mul(c, y, in->h_step));
    return index_step(c, x, in->w_step, at);
}

Val tile_pixel(const Tile *t, Val first, uint32_t p) {
    uint64_t step = (uint64_t)p * t->v.w[COLS].stride * t->e->k->in[0].w_step;
    return index_add(t->e->c, first, code_index(t->e->c, (int64_t)step));
}

Val tile_get(Tile *t, uint32_t q, uint32_t p) {
    return code_get(t->e->c, t->sums, t->sum[q * t->n_p + p]);
}

void tile_set(Tile *t, uint32_t q, uint32_t p, Val sum) {
    code_set(t->e->c, t->sum[q * t->n_p + p], sum);
}

/* ---- a tile ---- */

static void open_sums(Tile *t) {
    for (uint32_t q = 0; q < t->n_q; q++) {
        Val first = t->kind->first(t, q);
        for (uint32_t p = 0; p < t->n_p; p++)
            t->sum[q * t->n_p + p] = code_variable(t->e->c, first);
    }
}

static void close_sums(Tile *t) {
    Code *c = t->e->c;
    const Operand *out = &t->e->k->out[0];
    for (uint32_t q = 0; q < t->n_q; q++) {
        Val at = index_step(c, block_of(t, q), out->c_step,
                            index_mul(c, t->column, out->w_step));
        at = index_step(c, t->row, out->h_step, at);
        for (uint32_t p = 0; p < t->n_p; p++) {
            Val to =
                index_add(c, at, code_index(c, (int64_t)(p * out->w_step)));
            t->kind->store(t, q, tile_get(t, q, p), to);
        }
    }
}

/* first: the tile's first pixel, where it matters which. */
static void add_columns(Tile *t, TileTap *tap, uint32_t first) {
    Code *c = t->e->c;
    uint32_t width = t->v.w[COLS].kernel;
    if (t->inner) {
        Loop loop;
        tap->kx = loop_count(c, &loop, width);
        tap->from = 0;
        tap->to = t->n_p;
        t->kind->add(t, tap);
        loop_close(c, &loop);
        return;
    }
    for (uint32_t kx = 0; kx < width; kx++) {
        reached(t, first, t->n_p, kx, &tap->from, &tap->to);
        tap->kx = code_index(c, kx);
        if (tap->from < tap->to)
            t->kind->add(t, tap);
    }
}

/* Of the input, for the output's. */
static Val first_block(const Tile *t) {
    Code *c = t->e->c;
    if (t->kind->depthwise)
        return t->out_block;
    if (!t->span.every)
        return code_index(c, 0);
    return index_mul(c, index_div(c, t->out_block, t->span.every),
                     t->span.step);
}

static void emit_tile(Tile *t, bool inner, uint32_t first) {
    Code *c = t->e->c;
    uint32_t ins = t->span.channels;
    Loop blocks, rows;
    TileTap tap = {0};
    t->inner = inner;
    open_sums(t);
    tap.seen = loop_count(c, &blocks, (ins + t->block - 1) / t->block);
    tap.in_block = first_block(t);
    tap.in_block = index_add(c, tap.in_block, tap.seen);
    Val before = index_mul(c, tap.in_block, t->block);
    tap.n = index_min(c, code_index(c, t->block),
                      index_sub(c, code_index(c, t->v.in.c), before));
    tap.ky = loop_open(c, &rows, t->ky.from, t->ky.to, 1);
    add_columns(t, &tap, first);
    loop_close(c, &rows);
    loop_close(c, &blocks);
    close_sums(t);
}

/* ---- all tiles ---- */

/* A row: inner tiles that follow each other share their code. */
static void emit_row(Tile *t, uint32_t pixels) {
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

/* Blocks [from, to) of the output's channels, `n_q` at once. */
static void emit_channels(Tile *t, uint32_t from, uint32_t to, uint32_t n_q) {
    Code *c = t->e->c;
    Loop blocks, rows;
    t->n_q = n_q;
    t->out_block =
        loop_open(c, &blocks, code_index(c, from), code_index(c, to), n_q);
    t->row = loop_count(c, &rows, t->v.out.h);
    t->ky = window_taps(c, &t->v.w[ROWS], t->row, t->v.in.h);
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

void tile_emit(const Emit *e, const TileKind *kind, const Conv *v, Type sums,
               uint32_t width) {
    Tile t = {.e = e,
              .kind = kind,
              .v = *v,
              .block = e->k->out[0].block,
              .sums = sums,
              .width = width,
              .span = {1, 1, 1}};
    if (!kind->depthwise)
        t.span = kernel_span(e->k);
    uint32_t n = (v->out.c + t.block - 1) / t.block;
    join_rows(e, &t.v);
    bool alone = kind->depthwise || t.span.every % 2;
    uint32_t pairs = alone ? 0 : n / 2;
    if (pairs)
        emit_channels(&t, 0, 2 * pairs, 2);
    if (2 * pairs < n)
        emit_channels(&t, 2 * pairs, n, 1);
}
