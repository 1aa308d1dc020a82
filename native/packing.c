/* packing.c - constants of convolutions on channel blocks, in the order in
 * which the code reads them; see program.h. */
#include "native/program.h"

#include <string.h>

static uint32_t channels(const Operand *operand) {
    return shape_dim(&operand->shape, 1);
}

bool operand_in_blocks(const Operand *o) {
    return o->block > 1 && o->block <= 64 && !(o->block & (o->block - 1)) &&
           o->shape.rank == 4 && o->shape.dim[0] == 1 &&
           (o->w_step == o->block || o->shape.dim[3] == 1) &&
           o->cell == operand_size(o);
}

static bool has_bytes(const Kernel *k) {
    int32_t weight = kernel_constant(k, "weight");
    return k->quant->rule == QUANT_SUMS && !kernel_is_wide(k) && weight >= 0 &&
           k->constant[weight].kind == CONST_I8 && k->in[0].block % 4 == 0;
}

KernelPacking kernel_packing(const Kernel *k) {
    if (strcmp(k->kind, "conv") != 0 || !operand_in_blocks(&k->in[0]) ||
        !operand_in_blocks(&k->out[0]) || k->in[0].block != k->out[0].block ||
        (k->quant && !has_bytes(k)))
        return PACKED_NOT;
    uint32_t groups = kernel_count(k, "groups", 0, 1);
    if (groups <= 1)
        return k->quant ? PACKED_QUADS : PACKED_BLOCKS;
    bool depthwise =
        groups == channels(&k->in[0]) && groups == channels(&k->out[0]);
    return depthwise ? PACKED_DEPTHWISE : PACKED_NOT;
}

static uint64_t rounded(const Kernel *k) {
    uint64_t block = k->out[0].block;
    return (channels(&k->out[0]) + block - 1) / block * block;
}

static bool is_weight(const Kernel *k, uint32_t index) {
    return strcmp(k->constant[index].role, "weight") == 0;
}

uint64_t kernel_packed_count(const Kernel *k, uint32_t index) {
    uint64_t n = shape_count(&k->constant[index].shape);
    KernelPacking packing = kernel_packing(k);
    if (packing == PACKED_NOT)
        return n;
    uint64_t each = n / channels(&k->out[0]), in_c = channels(&k->in[0]);
    if (packing == PACKED_QUADS && is_weight(k, index))
        each = each / in_c * ((in_c + 3) / 4 * 4);
    return each * rounded(k);
}

/* Of plain [O][I][taps], channel by channel; input channels in groups. */
static void pack_blocks(const Kernel *k, uint64_t taps, uint64_t group,
                        const double *from, double *to) {
    uint64_t block = k->out[0].block, in_c = channels(&k->in[0]);
    uint64_t out_c = channels(&k->out[0]);
    uint64_t all = (in_c + group - 1) / group * group;
    for (uint64_t o = 0; o < out_c; o++)
        for (uint64_t i = 0; i < in_c; i++) {
            uint64_t first = i / block * block;
            uint64_t n = all - first < block ? all - first : block;
            for (uint64_t t = 0; t < taps; t++) {
                uint64_t row = o / block * all * taps + first * taps + t * n +
                               i % block / group * group;
                to[row * block + o % block * group + i % group] =
                    from[(o * in_c + i) * taps + t];
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
    else if (packing != PACKED_DEPTHWISE && is_weight(k, index))
        pack_blocks(k, each / channels(&k->in[0]),
                    packing == PACKED_QUADS ? 4 : 1, from, to);
    else
        pack_channels(k, each, from, to);
}
