/* linear.c - sums of products by columns of pixels; see linear.h. */
#include "quantise/linear.h"

#include "quantise/kernel.h"

#include <math.h>
#include <string.h>

/* Floats in one block of columns: fits in a near cache. */
enum { BLOCK_FLOATS = 1 << 15 };

bool linear_is(const Graph *g, const Node *node) {
    if (node->constant[CONST_WEIGHT].i == NONE)
        return false;
    return node->op == OP_FC || (node->op == OP_CONV &&
                                 graph_tensor(g, node->in[0])->shape.rank == 4);
}

Linear linear_of(const Graph *g, const Node *node) {
    const Shape *in = &graph_tensor(g, node->in[0])->shape;
    const Shape *out = &graph_tensor(g, node->out[0])->shape;
    Linear l = {.images = in->dim[0], .part = SIZE_MAX};
    if (node->op == OP_FC) {
        l.conv = (ConvAttr){
            node->attr.fc.out, 1, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}};
        l.in_c = (uint32_t)(shape_count(in) / in->dim[0]);
        l.in_h = l.in_w = l.out_h = l.out_w = 1;
    } else {
        l.conv = node->attr.conv;
        l.in_c = in->dim[1];
        l.in_h = in->dim[2], l.in_w = in->dim[3];
        l.out_h = out->dim[2], l.out_w = out->dim[3];
    }
    l.length =
        (size_t)l.in_c / l.conv.groups * l.conv.kernel[0] * l.conv.kernel[1];
    return l;
}

/* Products that a float sums exactly: no partial sum is above 2^24. */
void linear_weigh(Linear *l, const float *weight, double reach) {
    const double exact = 0x1p24;
    float most = 0;
    for (size_t i = 0; i < l->conv.out_c * l->length; i++)
        most = fmaxf(most, fabsf(weight[i]));
    l->weight = weight;
    l->part = l->length;
    if (reach > 0 && most > 0)
        l->part = (size_t)(exact / (reach * (double)most));
    if (!l->part)
        l->part = 1;
}

/* ---- columns ---- */

static uint32_t padded_size(const Linear *l, int axis) {
    const ConvAttr *a = &l->conv;
    uint32_t in = axis ? l->in_w : l->in_h, out = axis ? l->out_w : l->out_h;
    uint32_t reach = (out - 1) * a->stride[axis] +
                     (a->kernel[axis] - 1) * a->dilation[axis] + 1;
    uint32_t size = in + a->pad[axis];
    return size > reach ? size : reach;
}

const float *linear_pad(const Linear *l, Arena *scratch, const float *in,
                        float zero) {
    size_t h = padded_size(l, 0), w = padded_size(l, 1);
    float *out = ARENA_ARRAY(scratch, float, l->in_c *h *w);
    for (size_t c = 0; c < l->in_c; c++)
        for (size_t y = 0; y < l->in_h; y++) {
            float *to = out + (c * h + y + l->conv.pad[0]) * w + l->conv.pad[1];
            for (size_t x = 0; x < l->in_w; x++)
                to[x] = *in++ - zero;
        }
    return out;
}

/* One tap for n pixels from `first` on. */
static void tap_row(const Linear *l, const float *tap, size_t first, size_t n,
                    float *to) {
    size_t width = padded_size(l, 1), stride = l->conv.stride[1];
    size_t y = first / l->out_w, x = first % l->out_w;
    while (n) {
        const float *from = tap + y * l->conv.stride[0] * width + x * stride;
        size_t run = l->out_w - x < n ? l->out_w - x : n;
        if (stride == 1)
            memcpy(to, from, run * sizeof *to);
        else
            for (size_t i = 0; i < run; i++)
                to[i] = from[i * stride];
        to += run;
        n -= run;
        x = 0;
        y++;
    }
}

static size_t wide(size_t n) {
    return (n + KERNEL_WIDTH - 1) / KERNEL_WIDTH * KERNEL_WIDTH;
}

static const float *tap_of(const Linear *l, const float *padded, size_t c,
                           size_t ky, size_t kx) {
    size_t h = padded_size(l, 0), w = padded_size(l, 1);
    return padded + (c * h + ky * l->conv.dilation[0]) * w +
           kx * l->conv.dilation[1];
}

void linear_columns(const Linear *l, const float *padded, uint32_t group,
                    size_t first, size_t n, float *columns) {
    size_t channels = l->in_c / l->conv.groups, row = wide(n);
    for (size_t c = group * channels; c < (group + 1) * channels; c++)
        for (size_t ky = 0; ky < l->conv.kernel[0]; ky++)
            for (size_t kx = 0; kx < l->conv.kernel[1]; kx++) {
                tap_row(l, tap_of(l, padded, c, ky, kx), first, n, columns);
                memset(columns + n, 0, (row - n) * sizeof *columns);
                columns += row;
            }
}

/* ---- sums ---- */

/* Adds the products of a block of columns to the sums of a group. */
static void add_block(const Linear *l, const float *weight, size_t out_c,
                      const float *columns, size_t n, size_t first,
                      float *product, double *sum) {
    size_t row = wide(n), pixels = linear_pixels(l);
    for (size_t k = 0; k < l->length; k += l->part) {
        size_t part = l->length - k < l->part ? l->length - k : l->part;
        kernel_product(out_c, row, part, weight + k, l->length,
                       columns + k * row, product);
        for (size_t o = 0; o < out_c; o++)
            for (size_t i = 0; i < n; i++)
                sum[o * pixels + first + i] += (double)product[o * row + i];
    }
}

static void group_sums(const Linear *l, Arena *scratch, const float *padded,
                       uint32_t group, double *sum) {
    size_t out_c = l->conv.out_c / l->conv.groups, pixels = linear_pixels(l);
    size_t step = BLOCK_FLOATS / l->length / KERNEL_WIDTH * KERNEL_WIDTH;
    step = step < KERNEL_WIDTH ? KERNEL_WIDTH : step;
    step = step > wide(pixels) ? wide(pixels) : step;
    const float *weight = l->weight + group * out_c * l->length;
    float *columns =
        arena_alloc_raw(scratch, l->length * step * sizeof(float), 64);
    float *product = arena_alloc_raw(scratch, out_c * step * sizeof(float), 64);
    for (size_t first = 0; first < pixels; first += step) {
        size_t n = pixels - first < step ? pixels - first : step;
        linear_columns(l, padded, group, first, n, columns);
        add_block(l, weight, out_c, columns, n, first, product, sum);
    }
}

/* One channel made of one: too thin for a product of matrices. */
static void plane_sums(const Linear *l, Arena *scratch, const float *padded,
                       uint32_t c, double *sum) {
    const ConvAttr *a = &l->conv;
    const float *weight = l->weight + c * l->length;
    size_t width = padded_size(l, 1);
    float *row = arena_alloc_raw(scratch, l->out_w * sizeof *row, 64);
    for (size_t y = 0; y < l->out_h; y++) {
        memset(row, 0, l->out_w * sizeof *row);
        for (size_t ky = 0; ky < a->kernel[0]; ky++)
            for (size_t kx = 0; kx < a->kernel[1]; kx++)
                kernel_add_scaled(l->out_w, weight[ky * a->kernel[1] + kx],
                                  tap_of(l, padded, c, ky, kx) +
                                      y * a->stride[0] * width,
                                  a->stride[1], row);
        for (size_t x = 0; x < l->out_w; x++)
            sum[y * l->out_w + x] = (double)row[x];
    }
}

static void point_sums(const Linear *l, const float *in, double *sum) {
    for (size_t o = 0; o < l->conv.out_c; o++)
        for (size_t k = 0; k < l->length; k += l->part) {
            size_t part = l->length - k < l->part ? l->length - k : l->part;
            sum[o] += (double)kernel_dot_f32(
                part, l->weight + o * l->length + k, in + k);
        }
}

static void image_sums(const Linear *l, Arena *scratch, const float *padded,
                       double *sum) {
    size_t out_c = l->conv.out_c / l->conv.groups, pixels = linear_pixels(l);
    bool thin = out_c == 1 && l->in_c == l->conv.groups && l->part >= l->length;
    bool point = pixels == 1 && l->conv.groups == 1 &&
                 l->length == (size_t)l->in_c * l->in_h * l->in_w &&
                 padded_size(l, 0) == l->conv.kernel[0] &&
                 padded_size(l, 1) == l->conv.kernel[1];
    if (point) {
        point_sums(l, padded, sum);
        return;
    }
    for (uint32_t g = 0; g < l->conv.groups; g++)
        if (thin)
            plane_sums(l, scratch, padded, g, sum + g * pixels);
        else
            group_sums(l, scratch, padded, g, sum + g * out_c * pixels);
}

void linear_sums(const Linear *l, Arena *scratch, const float *in, float zero,
                 double *sum) {
    size_t image = (size_t)l->in_c * l->in_h * l->in_w;
    memset(sum, 0, linear_count(l) * sizeof *sum);
    for (size_t n = 0; n < l->images; n++) {
        const float *padded = linear_pad(l, scratch, in + n * image, zero);
        image_sums(l, scratch, padded,
                   sum + n * l->conv.out_c * linear_pixels(l));
    }
}
