/* ops_quads.c - convolutions of codes of 8 bits on channel blocks; see
 * ops_tile.h.
 *
 * Each step takes four input channels of each pixel, which are 32 bits side by
 * side, and adds their products with the weights of all output channels of a
 * block: one instruction where the machine has dot products of bytes, else
 * products of 16 bits that are added in pairs, which vector units of old have.
 * In the first case codes are counted from 0, in the second as they are. What
 * zero they have is taken off the sum at once: that times the sum of the
 * weights that were used (tap_sum). A depthwise convolution, which has few
 * products, takes it off each code.
 */
#include "native/llvm/codes.h"
#include "native/llvm/ops_tile.h"

#include <string.h>

/* Bytes of a weight: 1, or 2 where codes less their zero have 9 bits. */
static uint32_t weight_size(const Tile *t) {
    const Kernel *k = t->e->k;
    return k->constant[kernel_constant(k, "weight")].kind == CONST_I8 ? 1 : 2;
}

/* Weights n side by side, of 16 bits. */
static Val wide_weights(const Tile *t, Val place, uint32_t n) {
    Code *c = t->e->c;
    uint32_t size = weight_size(t);
    Val weights =
        code_load_type(c, emit_constant(t->e, "weight"),
                       index_mul(c, place, size), int_type(c, 8 * size, n));
    return int_cast(c, weights, 16);
}

/* Does the machine add four products of bytes, for a whole block? */
static bool has_dots(const Tile *t) {
    return t->e->c->dots && (t->block == 8 || t->block == 16) &&
           weight_size(t) == 1;
}

static bool has_sign(const Tile *t) {
    return quant_type[t->e->k->in[0].quant.type].lo < 0;
}

static uint64_t taps_of(const Tile *t) {
    return (uint64_t)t->v.w[ROWS].kernel * t->v.w[COLS].kernel;
}

/* Values of 32 bits, by output channel and, if `taps` > 1, by tap. */
static Val channel_values(const Tile *t, const char *role, uint32_t q,
                          uint64_t taps, Val tap) {
    Code *c = t->e->c;
    Val at = index_mul(c, tile_channel(t, q), taps);
    at = index_step(c, tap, t->block, at);
    return code_load_type(c, emit_constant(t->e, role), index_mul(c, at, 4),
                          int_type(c, 32, t->block));
}

static Val bias_of(const Tile *t, uint32_t q) {
    Code *c = t->e->c;
    if (kernel_constant(t->e->k, "bias") < 0)
        return LLVMConstNull(int_type(c, 32, t->block));
    return channel_values(t, "bias", q, 1, code_index(c, 0));
}

/* ---- zeros ---- */

/* The code of 0 as it is counted here. */
static int32_t zero_of(const Tile *t) {
    int32_t zero = t->e->k->quant->zero_in[0];
    return has_dots(t) && has_sign(t) ? zero - INT8_MIN : zero;
}

/* -zero times the sum of the weights of a tap. */
static Val zero_share(const Tile *t, uint32_t q, Val ky, Val kx) {
    Code *c = t->e->c;
    Val number = index_step(c, ky, t->v.w[COLS].kernel, kx);
    Val sum = channel_values(t, "tap_sum", q, taps_of(t), number);
    return int_mul(c, sum, code_int(sum, -zero_of(t)));
}

/* Of all taps that are inside for the row. */
static Val zero_shares(const Tile *t, uint32_t q, Val first) {
    Code *c = t->e->c;
    Loop rows, columns;
    Val sum = code_variable(c, first);
    Type type = LLVMTypeOf(first);
    Val ky = loop_open(c, &rows, t->ky.from, t->ky.to, 1);
    Val kx = loop_count(c, &columns, t->v.w[COLS].kernel);
    code_set(c, sum,
             int_add(c, code_get(c, type, sum), zero_share(t, q, ky, kx)));
    loop_close(c, &columns);
    loop_close(c, &rows);
    return code_get(c, type, sum);
}

/* As the first of each pair of sums. */
static Val as_sums(const Tile *t, Val x) {
    if (t->width == t->block)
        return x;
    Val lane[64], none = LLVMConstNull(LLVMTypeOf(x));
    for (uint32_t i = 0; i < t->width; i++)
        lane[i] = LLVMConstInt(t->e->c->i32, i % 2 ? t->block : i / 2, false);
    return LLVMBuildShuffleVector(t->e->c->builder, x, none,
                                  LLVMConstVector(lane, t->width), "");
}

static Val quads_first(const Tile *t, uint32_t q) {
    Val bias = bias_of(t, q);
    return as_sums(t, t->inner && zero_of(t) ? zero_shares(t, q, bias) : bias);
}

/* ---- sums as codes ---- */

static void store(const Tile *t, uint32_t q, Val sum, Val place) {
    Code *c = t->e->c;
    if (t->width > t->block)
        sum = int_add(c, int_every(c, sum, 0, 2), int_every(c, sum, 1, 2));
    sum = codes_channel_scaled(t->e, tile_channel(t, q), t->block, sum);
    codes_store(c, &t->e->k->out[0], t->e->out[0], place,
                codes_finish(t->e, sum), t->block);
}

/* ---- products ---- */

/* Four codes of a pixel, for each output channel of the block. */
static Val quad_of(const Tile *t, Val place) {
    Code *c = t->e->c;
    Val four = codes_load(c, &t->e->k->in[0], t->e->in[0], place, 4);
    Val quad = LLVMBuildBitCast(c->builder, four, c->i32, "");
    if (has_dots(t) && has_sign(t))
        quad = LLVMBuildXor(c->builder, quad,
                            code_int(quad, (int32_t)0x80808080), "");
    if (has_dots(t))
        return code_splat(c, quad, t->block);
    Type wide = int_type(c, 16, 4);
    Val codes = has_sign(t) ? LLVMBuildSExt(c->builder, four, wide, "")
                            : LLVMBuildZExt(c->builder, four, wide, "");
    codes = LLVMBuildBitCast(c->builder, codes, int_type(c, 64, 1), "");
    return LLVMBuildBitCast(c->builder, code_splat(c, codes, t->block),
                            int_type(c, 16, 4 * t->block), "");
}

static Val weights_of(const Tile *t, Val place) {
    Code *c = t->e->c;
    return has_dots(t) ? code_load_type(c, emit_constant(t->e, "weight"), place,
                                        int_type(c, 32, t->block))
                       : wide_weights(t, place, 4 * t->block);
}

static Val dot_of_bytes(const Tile *t, Val sum, Val codes, Val weights) {
    const char *name = t->block == 16 ? "llvm.x86.avx512.vpdpbusd.512"
                                      : "llvm.x86.avx512.vpdpbusd.256";
    return code_intrinsic_plain(t->e->c, name, (Val[]){sum, codes, weights}, 3);
}

/* Lanes from `first` on. */
static Val part_of(Code *c, Val vector, uint32_t first, uint32_t n) {
    Val lane[64];
    for (uint32_t i = 0; i < n; i++)
        lane[i] = LLVMConstInt(c->i32, first + i, false);
    return LLVMBuildShuffleVector(c->builder, vector,
                                  LLVMGetUndef(LLVMTypeOf(vector)),
                                  LLVMConstVector(lane, n), "");
}

static Val joined(Code *c, Val low, Val high) {
    Val lane[64];
    uint32_t n = 2 * LLVMGetVectorSize(LLVMTypeOf(low));
    for (uint32_t i = 0; i < n; i++)
        lane[i] = LLVMConstInt(c->i32, i, false);
    return LLVMBuildShuffleVector(c->builder, low, high,
                                  LLVMConstVector(lane, n), "");
}

/* By x86's instruction for so many sums, halved down to that. */
static Val machine_pairs(Code *c, Val codes, Val weights) {
    uint32_t n = LLVMGetVectorSize(LLVMTypeOf(codes)) / 2;
    if (n > c->pairs) {
        Val low = machine_pairs(c, part_of(c, codes, 0, n),
                                part_of(c, weights, 0, n));
        Val high = machine_pairs(c, part_of(c, codes, n, n),
                                 part_of(c, weights, n, n));
        return joined(c, low, high);
    }
    const char *name = n == 16  ? "llvm.x86.avx512.pmaddw.d.512"
                       : n == 8 ? "llvm.x86.avx2.pmadd.wd"
                                : "llvm.x86.sse2.pmadd.wd";
    return code_intrinsic_plain(c, name, (Val[]){codes, weights}, 2);
}

/* Products of 16 bits, added in pairs. */
static Val pairs_of(const Tile *t, Val codes, Val weights) {
    Code *c = t->e->c;
    if (c->pairs >= 4)
        return machine_pairs(c, codes, weights);
    Val product = int_mul(c, int_cast(c, codes, 32), int_cast(c, weights, 32));
    return int_add(c, int_every(c, product, 0, 2), int_every(c, product, 1, 2));
}

static void add_product(Tile *t, uint32_t q, uint32_t p, Val codes,
                        Val weights) {
    Val sum = tile_get(t, q, p);
    tile_set(t, q, p,
             has_dots(t) ? dot_of_bytes(t, sum, codes, weights)
                         : int_add(t->e->c, sum, pairs_of(t, codes, weights)));
}

/* The zeros of a tap that not all pixels reach. */
static void add_zeros(Tile *t, const TileTap *tap) {
    Code *c = t->e->c;
    Branch once;
    Val none = code_index(c, 0);
    branch_open(c, &once,
                LLVMBuildICmp(c->builder, LLVMIntEQ, tap->seen, none, ""));
    for (uint32_t q = 0; q < t->n_q; q++) {
        Val share = as_sums(t, zero_share(t, q, tap->ky, tap->kx));
        for (uint32_t p = tap->from; p < tap->to; p++)
            tile_set(t, q, p, int_add(c, tile_get(t, q, p), share));
    }
    branch_close(c, &once);
}

/* All input channels of a block, in fours. */
static void add_quads(Tile *t, const TileTap *tap) {
    Code *c = t->e->c;
    uint64_t taps = taps_of(t), all = (t->span.channels + 3) / 4 * 4;
    if (!t->inner && zero_of(t))
        add_zeros(t, tap);
    Val quads = index_div(c, index_add(c, tap->n, code_index(c, 3)), 4);
    Val number = index_step(c, tap->ky, t->v.w[COLS].kernel, tap->kx);
    Val row = index_step(c, t->out_block, all * taps,
                         index_mul(c, tap->seen, t->block * taps));
    Val in_tap = LLVMBuildNSWMul(c->builder, number, quads, "");
    row = index_step(c, in_tap, 4, row);
    Val first = tile_place(t, tap), weight[2] = {NULL, NULL};
    Loop loop;
    Val i = loop_open(c, &loop, code_index(c, 0), quads, 1);
    Val at = index_mul(c, index_step(c, i, 4, row), t->block);
    for (uint32_t q = 0; q < t->n_q; q++) {
        uint64_t step = q * all * taps * t->block;
        weight[q] =
            weights_of(t, index_add(c, at, code_index(c, (int64_t)step)));
    }
    Val channel = index_step(c, i, 4, first);
    for (uint32_t p = tap->from; p < tap->to; p++) {
        Val codes = quad_of(t, tile_pixel(t, channel, p));
        for (uint32_t q = 0; q < t->n_q; q++)
            add_product(t, q, p, codes, weight[q]);
    }
    loop_close(c, &loop);
}

void emit_conv_quads(const Emit *e, const Conv *v) {
    static const TileKind kind = {false, quads_first, add_quads, store};
    uint32_t block = e->k->out[0].block;
    Tile t = {.e = e, .block = block};
    uint32_t width = has_dots(&t) ? block : 2 * block;
    tile_emit(e, &kind, v, int_type(e->c, 32, width), width);
}

/* ---- depthwise ---- */

static Val own_first(const Tile *t, uint32_t q) {
    return bias_of(t, q);
}

/* Codes of a block less their zero, of 16 bits. */
static Val own_codes(const Tile *t, Val place) {
    Code *c = t->e->c;
    Val codes = codes_load(c, &t->e->k->in[0], t->e->in[0], place, t->block);
    Type wide = int_type(c, 16, t->block);
    codes = has_sign(t) ? LLVMBuildSExt(c->builder, codes, wide, "")
                        : LLVMBuildZExt(c->builder, codes, wide, "");
    return int_sub(c, codes, code_int(codes, t->e->k->quant->zero_in[0]));
}

/* A product of 9 and 8 bits fits into 16, one of 9 and 9 does not. */
static void add_own(Tile *t, const TileTap *tap) {
    Code *c = t->e->c;
    Val number = index_step(c, tap->ky, t->v.w[COLS].kernel, tap->kx);
    Val at =
        index_mul(c, index_step(c, t->out_block, taps_of(t), number), t->block);
    uint32_t bits = weight_size(t) == 1 ? 16 : 32;
    Val weight = int_cast(c, wide_weights(t, at, t->block), bits);
    Val first = tile_place(t, tap);
    for (uint32_t p = tap->from; p < tap->to; p++) {
        Val codes = own_codes(t, tile_pixel(t, first, p));
        Val product = int_mul(c, int_cast(c, codes, bits), weight);
        product = int_cast(c, product, 32);
        tile_set(t, 0, p, int_add(c, tile_get(t, 0, p), product));
    }
}

void emit_depthwise_codes(const Emit *e, const Conv *v) {
    static const TileKind kind = {true, own_first, add_own, store};
    uint32_t block = e->k->out[0].block;
    tile_emit(e, &kind, v, int_type(e->c, 32, block), block);
}
