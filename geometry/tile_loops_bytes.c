/* tile_loops_bytes.c - what tiles of one size take, and what they move.
 *
 * Input: a convolution's loops, sizes of tiles. Output: where the tiles lie,
 * the bytes that come from outside; each is a closed form.
 * Tiles of the input and of weights are doubled where there are several, so
 * that the next comes while one is in use; partial sums stay until all input
 * channels have been added. Between two tiles of rows and columns the halo is
 * read again. Where a kernel steps over pixels, tiles have those alone that it
 * reads.
 */
#include "geometry/tile_loops.h"

#include "base/arith.h"

static uint32_t pieces(uint32_t size, uint32_t tile) {
    return (size + tile - 1) / tile;
}

/* ---- axes ---- */

/* Pixels of the input that windows [at, at + n) read along an axis. */
static uint32_t pixels(const ConvAttr *conv, uint32_t axis, uint32_t size,
                       uint32_t at, uint32_t n) {
    int64_t from = (int64_t)at * conv->stride[axis] - conv->pad[axis];
    int64_t to = from + (int64_t)(n - 1) * conv->stride[axis] +
                 (int64_t)(conv->kernel[axis] - 1) * conv->dilation[axis] + 1;
    from = from < 0 ? 0 : from;
    to = to > size ? size : to;
    return to > from ? (uint32_t)(to - from) : 0;
}

static uint32_t pixels_read(const ConvAttr *conv, uint32_t axis, uint32_t size,
                            uint32_t at, uint32_t n) {
    uint32_t sum = 0;
    if (conv->kernel[axis] >= conv->stride[axis] || conv->dilation[axis] > 1)
        return pixels(conv, axis, size, at, n);
    for (uint32_t i = at; i < at + n; i++)
        sum += pixels(conv, axis, size, i, 1);
    return sum;
}

Cut nest_cut(Arena *arena, const ConvAttr *conv, uint32_t axis, uint32_t in,
             uint32_t out, uint32_t tile) {
    Cut cut = {.tile = tile, .n = pieces(out, tile)};
    CutRun *run = ARENA_ARRAY(arena, CutRun, cut.n);
    for (uint32_t at = 0; at < out; at += tile) {
        uint32_t n = tile < out - at ? tile : out - at;
        uint32_t read = pixels_read(conv, axis, in, at, n);
        CutRun *last = cut.n_runs ? &run[cut.n_runs - 1] : NULL;
        if (last && last->in == read && last->out == n)
            last->n++;
        else
            run[cut.n_runs++] = (CutRun){read, n, 1};
        cut.most = read > cut.most ? read : cut.most;
        cut.sum += read;
    }
    cut.run = run;
    return cut;
}

/* The sizes into which `size` falls in 1, 2, 3... nearly equal pieces, the
 * largest first, then 1 in any case. */
uint32_t nest_sizes(uint32_t size, uint32_t tile[NEST_CUTS]) {
    uint32_t n = 0;
    for (uint32_t t = size; t > 1 && n < NEST_CUTS - 1;
         t = pieces(size, pieces(size, t - 1)))
        tile[n++] = t;
    tile[n++] = 1;
    return n;
}

/* ---- one size ---- */

static uint64_t tiles_across(const Sizes *s) {
    return (uint64_t)s->rows->n * s->cols->n;
}

static uint32_t tiles_in(const Loops *l, const Sizes *s) {
    return l->by_channel ? 1 : pieces(l->in.c, s->in_c);
}

uint64_t nest_tiles(const Loops *l, const Sizes *s) {
    return tiles_across(s) * pieces(l->out.c, s->c) * tiles_in(l, s);
}

/* Gives the next tile its bytes; two of them where there are several. */
static void lay(const Loops *l, uint64_t bytes, bool several, uint64_t *end,
                uint64_t at[2]) {
    bytes = round_up(bytes, l->align);
    at[0] = at[1] = *end;
    *end += bytes;
    if (several && bytes) {
        at[1] = *end;
        *end += bytes;
    }
}

uint64_t nest_sums(const Loops *l, const Sizes *s) {
    return (uint64_t)s->rows->tile * s->cols->tile * s->c * l->style->sums;
}

/* Where the tiles lie; returns the byte behind them. */
uint64_t nest_lay(const Loops *l, const Sizes *s, Nest *nest) {
    uint64_t end = 0, sums[2];
    uint64_t spot = (uint64_t)s->rows->most * s->cols->most;
    uint32_t across = pieces(l->out.c, s->c), inner = tiles_in(l, s);
    bool inputs = tiles_across(s) * inner > 1 || (l->by_channel && across > 1);
    uint64_t in_c = l->by_channel ? 1 : s->in_c;
    lay(l, l->style->in_backing ? spot * s->in_c * l->element : 0, inputs, &end,
        nest->input);
    lay(l, s->c * in_c * l->taps * l->element, across * inner > 1, &end,
        nest->weights);
    lay(l, nest_sums(l, s), false, &end, sums);
    nest->sums = sums[0];
    return end;
}

uint64_t nest_weights(const Loops *l) {
    return l->taps * l->out.c * (l->by_channel ? 1 : l->in.c) * l->element;
}

/* Pixels of all input channels that are read, and times that all weights are.
 */
uint64_t nest_input_reads(const Loops *l, const Sizes *s, bool stay) {
    uint64_t once = s->rows->sum * s->cols->sum * l->in.c;
    bool again = tiles_in(l, s) > 1 || (stay && tiles_across(s) > 1);
    return again && !l->by_channel ? once * pieces(l->out.c, s->c) : once;
}

uint64_t nest_weight_reads(const Loops *l, const Sizes *s, bool stay) {
    bool several = pieces(l->out.c, s->c) > 1 || tiles_in(l, s) > 1;
    bool again = tiles_in(l, s) > 1 || !stay;
    return several && again ? tiles_across(s) : 1;
}

uint64_t nest_moved(const Loops *l, const Sizes *s, bool stay) {
    uint64_t moved = nest_weights(l) * nest_weight_reads(l, s, stay);
    if (l->style->in_backing)
        moved += nest_input_reads(l, s, stay) * l->element;
    return moved;
}
