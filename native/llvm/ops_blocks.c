/* ops_blocks.c - convolutions of floats on channel blocks; see ops_tile.h.
 *
 * Each step loads the weights of one input channel for all output channels of
 * a block, and multiplies them with that channel of each pixel.
 */
#include "native/llvm/ops_tile.h"

static Val by_channel(const Tile *t, Val constant, uint32_t q) {
    return code_load_vector(t->e->c, constant, tile_channel(t, q), t->block);
}

static Val bias_first(const Tile *t, uint32_t q) {
    Val bias = emit_constant(t->e, "bias");
    return bias ? by_channel(t, bias, q) : LLVMConstNull(t->sums);
}

static void store(const Tile *t, uint32_t q, Val sum, Val place) {
    if (t->e->k->n_in > 1)
        sum =
            float_add(t->e->c, sum,
                      code_load_vector(t->e->c, t->e->in[1], place, t->block));
    Val slope = emit_constant(t->e, "slope");
    Val slopes = slope && t->e->act.by_channel ? by_channel(t, slope, q) : NULL;
    code_store(t->e->c, t->e->out[0], place,
               epilogue_apply(t->e->c, &t->e->act, sum, slopes));
}

static void add_to(Tile *t, uint32_t q, uint32_t p, Val a, Val b) {
    tile_set(t, q, p, float_fma(t->e->c, a, b, tile_get(t, q, p)));
}

/* All input channels of a block. */
static void add_channels(Tile *t, const TileTap *tap) {
    Code *c = t->e->c;
    uint64_t taps = (uint64_t)t->v.w[ROWS].kernel * t->v.w[COLS].kernel;
    Val number = index_step(c, tap->ky, t->v.w[COLS].kernel, tap->kx);
    uint64_t each = t->span.channels * taps;
    Val row = index_step(c, t->out_block, each,
                         index_mul(c, tap->seen, t->block * taps));
    row = index_add(c, row, LLVMBuildNSWMul(c->builder, number, tap->n, ""));
    Val first = tile_place(t, tap);
    Val weights = emit_constant(t->e, "weight"), weight[2] = {NULL, NULL};
    Loop loop;
    Val i = loop_open(c, &loop, code_index(c, 0), tap->n, 1);
    Val at = index_mul(c, index_add(c, row, i), t->block);
    for (uint32_t q = 0; q < t->n_q; q++) {
        uint64_t step = q * each * t->block;
        Val place = index_add(c, at, code_index(c, (int64_t)step));
        weight[q] = code_load_vector(c, weights, place, t->block);
    }
    Val channel = index_add(c, first, i);
    for (uint32_t p = tap->from; p < tap->to; p++) {
        Val x = code_load(c, t->e->in[0], tile_pixel(t, channel, p));
        x = code_splat(c, x, t->block);
        for (uint32_t q = 0; q < t->n_q; q++)
            add_to(t, q, p, x, weight[q]);
    }
    loop_close(c, &loop);
}

/* The one channel that there is of each, for a whole block. */
static void add_own(Tile *t, const TileTap *tap) {
    Code *c = t->e->c;
    uint64_t taps = (uint64_t)t->v.w[ROWS].kernel * t->v.w[COLS].kernel;
    Val number = index_step(c, tap->ky, t->v.w[COLS].kernel, tap->kx);
    Val at = index_mul(c, index_step(c, t->out_block, taps, number), t->block);
    Val weight =
        code_load_vector(c, emit_constant(t->e, "weight"), at, t->block);
    Val first = tile_place(t, tap);
    for (uint32_t p = tap->from; p < tap->to; p++) {
        Val place = tile_pixel(t, first, p);
        add_to(t, 0, p, code_load_vector(c, t->e->in[0], place, t->block),
               weight);
    }
}

void emit_conv_blocks(const Emit *e, const Conv *v) {
    static const TileKind kind = {false, bias_first, add_channels, store};
    uint32_t block = e->k->out[0].block;
    tile_emit(e, &kind, v, code_vector(e->c, block), block);
}

void emit_depthwise_blocks(const Emit *e, const Conv *v) {
    static const TileKind kind = {true, bias_first, add_own, store};
    uint32_t block = e->k->out[0].block;
    tile_emit(e, &kind, v, code_vector(e->c, block), block);
}
