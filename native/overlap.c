/* overlap.c - kernels that consume as they produce; see program.h.
 *
 * Before row r of a block of the result is written, the window above it has
 * left the rows of the operand that end before it, and all blocks below. The
 * result may reach up to the first row that is still needed. */
#include "native/program.h"

#include <string.h>

/* Along the rows. */
typedef struct Slide {
    uint32_t stride, pad;
} Slide;

static bool is_depthwise(const Kernel *k) {
    uint32_t groups = kernel_count(k, "groups", 0, 1);
    return strcmp(k->kind, "conv") == 0 && groups > 1 &&
           groups == shape_dim(&k->in[0].shape, 1) &&
           groups == shape_dim(&k->out[0].shape, 1) &&
           (k->out[0].block == 1 || kernel_packing(k) == PACKED_DEPTHWISE);
}

/* Its loops over the channels of a block are the outer ones. */
static bool is_pool(const Kernel *k) {
    return strcmp(k->kind, "pool") == 0 && k->out[0].block == 1 &&
           shape_dim(&k->in[0].shape, 1) == shape_dim(&k->out[0].shape, 1);
}

/* Blocks behind each other, rows behind each other in them. */
static bool is_ordered(const Operand *o) {
    uint32_t c, h, w;
    shape_chw(&o->shape, &c, &h, &w);
    return o->shape.rank == 4 && o->shape.dim[0] == 1 &&
           (h == 1 || o->h_step >= w * o->w_step) &&
           (c <= o->block || o->c_step >= h * o->h_step);
}

static uint32_t blocks_of(const Operand *o) {
    return (shape_dim(&o->shape, 1) + o->block - 1) / o->block;
}

/* The first element of the operand that row `row` of a block needs, or one
 * behind it. */
static uint64_t needed_from(const Operand *in, const Slide *slide,
                            uint64_t block, uint64_t row) {
    uint64_t at = row * slide->stride, h = in->shape.dim[2];
    uint64_t first = at < slide->pad ? 0 : at - slide->pad;
    return block * in->c_step + (first < h ? first : h) * in->h_step;
}

static uint64_t written_to(const Operand *out, uint64_t block, uint64_t row) {
    return block * out->c_step + row * out->h_step +
           (out->shape.dim[3] - 1) * out->w_step + out->block;
}

bool kernel_ahead(const Kernel *k, int64_t *bytes) {
    const Operand *in = &k->in[0], *out = &k->out[0];
    bool whole = kernel_count(k, "global", 0, 0);
    if (k->n_in != 1 || k->n_out != 1 || in->block != out->block ||
        in->cell != out->cell || !is_ordered(in) || !is_ordered(out) ||
        !(is_depthwise(k) || is_pool(k)))
        return false;
    uint32_t stride = kernel_count(k, "stride", 0, 1);
    Slide slide = {stride ? stride : 1,
                   whole ? 0 : kernel_count(k, "pad", 0, 0)};
    int64_t most = INT64_MIN;
    for (uint64_t b = 0; b < blocks_of(out); b++)
        for (uint64_t r = 0; r < out->shape.dim[2]; r++) {
            int64_t ahead = (int64_t)written_to(out, b, r) -
                            (int64_t)needed_from(in, &slide, b, r);
            most = ahead > most ? ahead : most;
        }
    *bytes = most * (int64_t)out->cell;
    return true;
}
