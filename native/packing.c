/* packing.c - constants of convolutions on channel blocks, in the order in
 * which the code reads them; see program.h. */
#include "native/program.h"

#include <string.h>

static uint32_t channels(const Operand *operand) {
    return shape_dim(&operand->shape, 1);
}

/* Elements lie side by side, be it each code in the room of a float. */
static bool has_cells(const Operand *o) {
    return o->cell == operand_size(o) ||
           (o->quant.type != QUANT_NONE && (o->cell == 2 || o->cell == 4));
}

bool operand_in_blocks(const Operand *o) {
    return o->block > 1 && o->block <= 64 && !(o->block & (o->block - 1)) &&
           o->shape.rank == 4 && o->shape.dim[0] == 1 &&
           (o->w_step == o->block || o->shape.dim[3] == 1) && has_cells(o);
}

/* Codes of 8 bits; weights may be of 9, less their zero. */
static bool has_bytes(const Kernel *k) {
    return k->quant->rule == QUANT_SUMS && !kernel_is_wide(k) &&
           kernel_constant(k, "weight") >= 0 && k->in[0].block % 4 == 0;
}

KernelSpan kernel_span(const Kernel *k) {
    uint32_t block = k->out[0].block, groups = kernel_count(k, "groups", 0, 1);
    uint32_t in_c = channels(&k->in[0]), out_c = channels(&k->out[0]);
    if (groups <= 1)
        return (KernelSpan){in_c, 0, 0};
    uint32_t ins = in_c / groups, outs = out_c / groups;
    if (in_c % groups || out_c % groups)
        return (KernelSpan){0, 0, 0};
    if (ins % block == 0 && outs % block == 0)
        return (KernelSpan){ins, outs / block, ins / block};
    if (ins == outs && block % ins == 0)
        return (KernelSpan){block, 1, 1};
    return (KernelSpan){0, 0, 0};
}

/* Does it take a block at once, each result made of its own channel? */
static bool goes_by_channel(const Kernel *k) {
    static const char *const kind[] = {"act", "scale", "bn", "eltwise", "pool"};
    for (size_t i = 0; i < sizeof kind / sizeof *kind; i++)
        if (strcmp(k->kind, kind[i]) == 0)
            return true;
    return false;
}

/* Is there one of each constant a channel? */
static bool has_channels(const Kernel *k) {
    uint32_t n = channels(&k->out[0]);
    bool all = k->n_constants && !k->quant && channels(&k->in[0]) == n;
    for (uint32_t i = 0; i < k->n_constants; i++)
        all = all && shape_count(&k->constant[i].shape) == n;
    return all;
}

KernelPacking kernel_packing(const Kernel *k) {
    bool own = goes_by_channel(k);
    if ((!own && strcmp(k->kind, "conv") != 0) ||
        !operand_in_blocks(&k->in[0]) || !operand_in_blocks(&k->out[0]) ||
        k->in[0].block != k->out[0].block)
        return PACKED_NOT;
    if (own)
        return has_channels(k) ? PACKED_CHANNELS : PACKED_NOT;
    if (k->quant && !has_bytes(k))
        return PACKED_NOT;
    uint32_t groups = kernel_count(k, "groups", 0, 1);
    if (groups > 1 && groups == channels(&k->in[0]) &&
        groups == channels(&k->out[0]))
        return PACKED_DEPTHWISE;
    if (kernel_span(k).channels == 0)
        return PACKED_NOT;
    return k->quant ? PACKED_QUADS : PACKED_BLOCKS;
}

static uint64_t rounded(const Kernel *k) {
    uint64_t block = k->out[0].block;
    return (channels(&k->out[0]) + block - 1) / block * block;
}

static bool is_weight(const Kernel *k, uint32_t index) {
    return strcmp(k->constant[index].role, "weight") == 0;
}

/* Of the weights of an output channel. */
static uint64_t taps_of(const Kernel *k, uint32_t index) {
    const Shape *shape = &k->constant[index].shape;
    return shape_count(shape) / shape->dim[0] / shape_dim(shape, 1);
}

static uint64_t whole(uint64_t n, uint64_t group) {
    return (n + group - 1) / group * group;
}

/* Do weights go from blocks to blocks? */
static bool weighs_blocks(KernelPacking packing) {
    return packing == PACKED_BLOCKS || packing == PACKED_QUADS;
}

uint64_t kernel_packed_count(const Kernel *k, uint32_t index) {
    uint64_t n = shape_count(&k->constant[index].shape);
    KernelPacking packing = kernel_packing(k);
    if (packing == PACKED_NOT)
        return n;
    uint64_t each = n / channels(&k->out[0]);
    if (weighs_blocks(packing) && is_weight(k, index))
        each = whole(kernel_span(k).channels, packing == PACKED_QUADS ? 4 : 1) *
               taps_of(k, index);
    return each * rounded(k);
}

/* Weights of one output channel: where they lie. */
typedef struct Row {
    uint64_t block; /* of output channels */
    uint64_t ins;   /* channels that a block sees, and this one does: */
    uint64_t own;
    uint64_t taps, group;
} Row;

/* The row of B values, or of B groups of them, of input channel i of those that
 * the block sees. */
static uint64_t row_at(const Row *r, uint64_t width, uint64_t i, uint64_t tap) {
    uint64_t first = i / width * width;
    uint64_t n = r->own - first < width ? r->own - first : width;
    return r->block * r->ins * r->taps + first * r->taps + tap * n +
           i % width / r->group * r->group;
}

/* Of plain [O][I][taps], channel by channel; input channels in groups of
 * `group`. */
static void pack_blocks(const Kernel *k, uint32_t index, uint64_t group,
                        const double *from, double *to) {
    const Shape *shape = &k->constant[index].shape;
    KernelSpan span = kernel_span(k);
    uint64_t block = k->out[0].block, in_c = channels(&k->in[0]);
    uint64_t ins = shape_dim(shape, 1), taps = taps_of(k, index);
    /* within a block, groups of fewer channels see those in their places */
    bool diagonal = span.every && ins < block;
    for (uint64_t o = 0; o < shape->dim[0]; o++) {
        Row r = {o / block, whole(span.channels, group), 0, taps, group};
        uint64_t left = in_c - (diagonal ? r.block * block : 0);
        r.own = whole(left < span.channels ? left : span.channels, group);
        for (uint64_t i = 0; i < ins; i++)
            for (uint64_t t = 0; t < taps; t++) {
                uint64_t seen = i + (diagonal ? o % block / ins * ins : 0);
                uint64_t row = row_at(&r, block, seen, t);
                to[row * block + o % block * group + seen % group] = *from++;
            }
    }
}

/* Of plain [C][taps]; taps is 1 for what there is once a channel. */
static void pack_channels(const Kernel *k, uint64_t taps, const double *from,
                          double *to) {
    uint64_t block = k->out[0].block, n = channels(&k->out[0]);
    for (uint64_t c = 0; c < n; c++)
        for (uint64_t t = 0; t < taps; t++)
            to[(c / block * taps + t) * block + c % block] = from[c * taps + t];
}

void kernel_pack(const Kernel *k, uint32_t index, const double *from,
                 double *to) {
    uint64_t n = shape_count(&k->constant[index].shape);
    uint64_t each = n / channels(&k->out[0]);
    KernelPacking packing = kernel_packing(k);
    memset(to, 0, kernel_packed_count(k, index) * sizeof *to);
    if (packing == PACKED_NOT)
        memcpy(to, from, n * sizeof *to);
    else if (weighs_blocks(packing) && is_weight(k, index))
        pack_blocks(k, index, packing == PACKED_QUADS ? 4 : 1, from, to);
    else
        pack_channels(k, each, from, to);
}
