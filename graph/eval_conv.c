/* eval_conv.c - convolution, its transpose, and inner products.
 *
 * Convolution is a matrix product per group: weights [out_c / groups, K] by
 * columns [K, pixels] with K = in_c / groups * kernel area, each column holding
 * what one output pixel sees (im2col; Chellapilla, Puri, Simard: "High
 * performance convolutional neural networks for document processing", 2006).
 * Columns are made for a block of pixels at a time, so that memory stays
 * bounded. The transposed convolution runs the same steps backwards: columns
 * from a product, then added to the pixels that they came from.
 */
#include "graph/eval.h"

#include <string.h>

/* Floats in one block of columns: fits in an outer cache. */
enum { BLOCK_FLOATS = 1 << 20 };

/* One image and one group. Windows slide over the wide side, which is a
 * convolution's input and a transposed convolution's output; the narrow side
 * has one pixel a window. */
typedef struct Windows {
    const ConvAttr *conv;
    uint32_t c, h, w;       /* wide: channels of the group, size */
    uint32_t rows, columns; /* narrow */
    const float *from;      /* wide, to gather from... */
    float *to;              /* ...or to scatter to */
} Windows;

static size_t column_length(const Windows *win) {
    return (size_t)win->c * win->conv->kernel[0] * win->conv->kernel[1];
}

static size_t pixel_count(const Windows *win) {
    return (size_t)win->rows * win->columns;
}

static size_t min_size(size_t a, size_t b) {
    return a < b ? a : b;
}

static size_t block_pixels(const Windows *win) {
    size_t pixels = BLOCK_FLOATS / column_length(win);
    return pixels ? min_size(pixels, pixel_count(win)) : 1;
}

/* Where a tap of the kernel meets the wide side, for window (y, x). */
static int64_t tap_row(const Windows *win, uint32_t ky, size_t y) {
    const ConvAttr *a = win->conv;
    return (int64_t)(y * a->stride[0] + ky * a->dilation[0]) - a->pad[0];
}

static int64_t tap_column(const Windows *win, uint32_t kx, size_t x) {
    const ConvAttr *a = win->conv;
    return (int64_t)(x * a->stride[1] + kx * a->dilation[1]) - a->pad[1];
}

/* Narrows [*begin, *end) to the windows whose tap kx is inside the image. */
static void inside(const Windows *win, uint32_t kx, size_t *begin,
                   size_t *end) {
    while (*begin < *end && tap_column(win, kx, *begin) < 0)
        (*begin)++;
    while (*begin < *end && tap_column(win, kx, *end - 1) >= win->w)
        (*end)--;
}

/* Moves `n` values between a row of columns and the wide side at `at`. */
typedef void Move(const Windows *win, size_t at, float *column, size_t n);

static void gather(const Windows *win, size_t at, float *column, size_t n) {
    size_t stride = win->conv->stride[1];
    if (stride == 1)
        memcpy(column, win->from + at, n * sizeof *column);
    else
        for (size_t i = 0; i < n; i++)
            column[i] = win->from[at + i * stride];
}

static void scatter(const Windows *win, size_t at, float *column, size_t n) {
    for (size_t i = 0; i < n; i++)
        win->to[at + i * win->conv->stride[1]] += column[i];
}

/* One tap of one channel, which is one row of the columns, for the windows
 * [begin, end). */
static void move_tap(const Windows *win, uint32_t c, uint32_t ky, uint32_t kx,
                     size_t begin, size_t end, float *column, Move *move) {
    for (size_t pixel = begin; pixel < end;) {
        size_t y = pixel / win->columns, x = pixel % win->columns;
        size_t stop = min_size(win->columns, x + (end - pixel));
        size_t first = x, last = stop;
        int64_t row = tap_row(win, ky, y);
        if (row >= 0 && row < win->h) {
            inside(win, kx, &first, &last);
            size_t at = ((size_t)c * win->h + (size_t)row) * win->w;
            if (first < last)
                move(win, at + (size_t)tap_column(win, kx, first),
                     column + (pixel - begin) + (first - x), last - first);
        }
        pixel += stop - x;
    }
}

static void move_columns(const Windows *win, size_t begin, size_t end,
                         float *columns, Move *move) {
    for (uint32_t c = 0; c < win->c; c++)
        for (uint32_t ky = 0; ky < win->conv->kernel[0]; ky++)
            for (uint32_t kx = 0; kx < win->conv->kernel[1]; kx++) {
                move_tap(win, c, ky, kx, begin, end, columns, move);
                columns += end - begin;
            }
}

/* Columns would be the image itself. */
static bool is_pointwise(const ConvAttr *conv) {
    for (int i = 0; i < 2; i++)
        if (conv->kernel[i] != 1 || conv->stride[i] != 1 || conv->pad[i] ||
            conv->pad_end[i])
            return false;
    return true;
}

/* out [out_c, pixels] = weight [out_c, K] * columns [K, pixels]. */
static void conv_group(const Windows *win, const float *weight, uint32_t out_c,
                       float *columns, float *out) {
    size_t pixels = pixel_count(win), length = column_length(win);
    size_t step = block_pixels(win);
    bool pointwise = is_pointwise(win->conv);
    for (size_t begin = 0; begin < pixels; begin += step) {
        size_t n = min_size(step, pixels - begin);
        if (!pointwise) {
            memset(columns, 0, length * n * sizeof *columns);
            move_columns(win, begin, begin + n, columns, gather);
        }
        Matrix right = pointwise ? (Matrix){win->from + begin, pixels, false}
                                 : (Matrix){columns, n, false};
        eval_product(out_c, n, length, (Matrix){weight, length, false}, right,
                     out + begin, pixels);
    }
}

/* One row of one output channel from one tap of one input channel. */
static void conv_row(const Windows *win, int64_t row, uint32_t kx, float weight,
                     float *out) {
    size_t first = 0, last = win->columns, stride = win->conv->stride[1];
    inside(win, kx, &first, &last);
    if (first >= last)
        return;
    const float *from =
        win->from + (size_t)row * win->w + (size_t)tap_column(win, kx, first);
    if (stride == 1)
        for (size_t i = 0; i < last - first; i++)
            out[first + i] += weight * from[i];
    else
        for (size_t i = 0; i < last - first; i++)
            out[first + i] += weight * from[i * stride];
}

/* One input and one output channel: too thin for a matrix product. */
static void conv_plane(const Windows *win, const float *weight, float *out) {
    for (size_t y = 0; y < win->rows; y++)
        for (uint32_t ky = 0; ky < win->conv->kernel[0]; ky++) {
            int64_t row = tap_row(win, ky, y);
            if (row < 0 || row >= win->h)
                continue;
            for (uint32_t kx = 0; kx < win->conv->kernel[1]; kx++)
                conv_row(win, row, kx, weight[ky * win->conv->kernel[1] + kx],
                         out + y * win->columns);
        }
}

static void add_bias(const Eval *e, const Shape *shape, float *out) {
    const float *bias = eval_const(e, CONST_BIAS);
    if (!bias)
        return;
    Split split = eval_split(shape, 1);
    for (size_t n = 0; n < split.outer; n++)
        for (size_t c = 0; c < split.axis; c++)
            for (size_t i = 0; i < split.inner; i++)
                *out++ += bias[c];
}

static void conv_into(const Eval *e, const Shape *shape, float *out) {
    const ConvAttr *conv = &e->node->attr.conv;
    const Shape *in = e->in_shape;
    uint32_t in_c = in->dim[1] / conv->groups;
    uint32_t out_c = conv->out_c / conv->groups;
    Windows win = {conv,          in_c,          in->dim[2], in->dim[3],
                   shape->dim[2], shape->dim[3], e->in[0],   NULL};
    size_t length = column_length(&win), pixels = pixel_count(&win);
    const float *weight = eval_need_const(e, CONST_WEIGHT);
    float *columns = ARENA_ARRAY(e->scratch, float, length *block_pixels(&win));
    float *to = out;
    for (uint32_t n = 0; n < in->dim[0]; n++)
        for (uint32_t g = 0; g < conv->groups; g++) {
            const float *group = weight + g * out_c * length;
            if (in_c == 1 && out_c == 1)
                conv_plane(&win, group, to);
            else
                conv_group(&win, group, out_c, columns, to);
            win.from += (size_t)in_c * win.h * win.w;
            to += out_c * pixels;
        }
    add_bias(e, shape, out);
}

void eval_conv(const Eval *e) {
    conv_into(e, e->out_shape, e->out);
}

void eval_conv_pool(const Eval *e) {
    const ConvAttr *a = &e->node->attr.conv;
    Shape conv = shape_nchw(e->in_shape->dim[0], a->out_c, 0, 0);
    for (int i = 0; i < 2; i++)
        conv.dim[2 + i] =
            conv_out_size(e->in_shape->dim[2 + i], a->kernel[i], a->stride[i],
                          a->dilation[i], a->pad[i], a->pad_end[i]);
    float *between = ARENA_ARRAY(e->scratch, float, shape_count(&conv));
    conv_into(e, &conv, between);
    eval_activate(e, &conv, between);
    eval_pool_into(&e->node->attr.pool, &conv, between, e->out_shape, e->out);
}

/* columns [K, pixels] = weight [in_c, K] transposed * in [in_c, pixels]. */
static void deconv_group(const Windows *win, const float *weight, uint32_t in_c,
                         float *columns, const float *in) {
    size_t pixels = pixel_count(win), length = column_length(win);
    size_t step = block_pixels(win);
    for (size_t begin = 0; begin < pixels; begin += step) {
        size_t n = min_size(step, pixels - begin);
        eval_product(length, n, in_c, (Matrix){weight, length, true},
                     (Matrix){in + begin, pixels, false}, columns, n);
        move_columns(win, begin, begin + n, columns, scatter);
    }
}

void eval_deconv(const Eval *e) {
    const ConvAttr *conv = &e->node->attr.conv;
    const Shape *in = e->in_shape, *out = e->out_shape;
    uint32_t in_c = in->dim[1] / conv->groups;
    uint32_t out_c = conv->out_c / conv->groups;
    Windows win = {conv,       out_c,      out->dim[2], out->dim[3],
                   in->dim[2], in->dim[3], NULL,        e->out};
    size_t length = column_length(&win), pixels = pixel_count(&win);
    const float *weight = eval_need_const(e, CONST_WEIGHT), *from = e->in[0];
    float *columns = ARENA_ARRAY(e->scratch, float, length *block_pixels(&win));
    for (uint32_t n = 0; n < in->dim[0]; n++)
        for (uint32_t g = 0; g < conv->groups; g++) {
            deconv_group(&win, weight + g * in_c * length, in_c, columns, from);
            from += in_c * pixels;
            win.to += (size_t)out_c * win.h * win.w;
        }
    add_bias(e, out, e->out);
}

void eval_fc(const Eval *e) {
    size_t images = e->in_shape->dim[0], out = e->node->attr.fc.out;
    size_t in = shape_count(e->in_shape) / images;
    const float *weight = eval_need_const(e, CONST_WEIGHT);
    eval_product(images, out, in, (Matrix){e->in[0], in, false},
                 (Matrix){weight, in, true}, e->out, out);
    add_bias(e, e->out_shape, e->out);
}
