/* compute_conv.c - convolution on patches; see compute.h.
 *
 * Input: a patch and weights. Output: the patch behind it. The input is copied
 * once with its padding; with a stride s, columns are dealt into s lanes, so
 * that what neighbouring outputs read of a tap is always contiguous. Then the
 * kernel makes KERNEL_OUT channels of two strips of 8 columns at a time.
 * Invariant: the order of summation depends on the weights' shape alone.
 */
#include "sim/compute.h"
#include "sim/kernel.h"

#include <assert.h>
#include <string.h>

/* Products summed on their own before they join the total: bounds the error
 * of long sums, and the working set. */
enum { RUN_LENGTH = 512 };

/* The padded input of a group of channels. */
typedef struct Padded {
    const float *at;
    size_t plane, row; /* floats from channel to channel, row to row */
    size_t *tap_at;    /* by tap */
    uint32_t taps;
} Padded;

static uint32_t ceil_to(uint32_t n, uint32_t unit) {
    return (n + unit - 1) / unit * unit;
}

static uint32_t reach(const Window *w) {
    return (w->kernel - 1) * w->dilation + 1;
}

static bool is_pointwise(const Window w[2]) {
    for (int axis = 0; axis < 2; axis++)
        if (w[axis].kernel != 1 || w[axis].stride != 1 || w[axis].pad != 0)
            return false;
    return true;
}

static bool same_box(const Box *a, const Box *b) {
    return a->row == b->row && a->rows == b->rows && a->col == b->col &&
           a->cols == b->cols;
}

/* Column x of the padded row goes to lane x % stride. */
static void deal_row(float *to, const Patch *in, const float *from,
                     int64_t first, uint32_t stride, size_t lane) {
    for (uint32_t i = 0; i < in->box.cols; i++) {
        int64_t x = (int64_t)(in->box.col + i) - first;
        if (x < 0)
            continue;
        uint64_t at = (uint64_t)x / stride;
        if (at >= lane)
            break;
        to[(uint64_t)x % stride * lane + at] = from[i];
    }
}

static Padded pad_group(Arena *arena, const Window w[2], const Patch *in,
                        const Box *out, uint32_t channel, uint32_t channels) {
    uint32_t sh = w[ROWS].stride, sw = w[COLS].stride;
    uint32_t rows = (out->rows - 1) * sh + reach(&w[ROWS]);
    size_t lane = ceil_to(out->cols, KERNEL_COLS) + (reach(&w[COLS]) - 1) / sw;
    Padded p = {.row = lane * sw, .plane = lane * sw * rows};
    float *at = ARENA_ARRAY(arena, float, p.plane *channels + KERNEL_COLS);
    int64_t top = (int64_t)out->row * sh - w[ROWS].pad;
    int64_t left = (int64_t)out->col * sw - w[COLS].pad;
    for (uint32_t c = 0; c < channels; c++)
        for (uint32_t h = 0; h < in->box.rows; h++) {
            int64_t y = (int64_t)(in->box.row + h) - top;
            if (y >= 0 && y < rows)
                deal_row(at + c * p.plane + (size_t)y * p.row, in,
                         in->at + (channel + c) * patch_plane(in) +
                             (size_t)h * in->box.cols,
                         left, sw, lane);
        }
    p.at = at;
    return p;
}

static void place_taps(Arena *arena, const Window w[2], Padded *p) {
    p->taps = w[ROWS].kernel * w[COLS].kernel;
    p->tap_at = ARENA_ARRAY(arena, size_t, p->taps);
    uint32_t sw = w[COLS].stride;
    size_t lane = p->row / sw;
    for (uint32_t y = 0, t = 0; y < w[ROWS].kernel; y++)
        for (uint32_t x = 0; x < w[COLS].kernel; x++, t++) {
            uint32_t col = x * w[COLS].dilation;
            p->tap_at[t] = (size_t)y * w[ROWS].dilation * p->row +
                           col % sw * lane + col / sw;
        }
}

/* A 1x1 kernel needs no copy: the patch is one long row. */
static Padded flat_group(const Patch *in, uint32_t channel) {
    size_t plane = patch_plane(in);
    return (Padded){
        .at = in->at + channel * plane, .plane = plane, .row = plane};
}

/* Weights of up to KERNEL_OUT outputs as [channel][tap][output]. */
static void pack_weights(const float *weight, uint32_t outs, uint32_t n,
                         float *packed) {
    memset(packed, 0, (size_t)n * KERNEL_OUT * sizeof *packed);
    for (uint32_t o = 0; o < outs; o++)
        for (uint32_t i = 0; i < n; i++)
            packed[(size_t)i * KERNEL_OUT + o] = weight[(size_t)o * n + i];
}

/* One group's work: rows x cols outputs for each of its channels. */
typedef struct GroupTask {
    Padded in;
    uint32_t channels, row_step; /* input rows from output row to row */
    uint32_t rows, cols;
    const float *packed;
} GroupTask;

typedef float Sums[KERNEL_STRIPS][KERNEL_OUT][KERNEL_COLS];

static void sum_strips(const GroupTask *g, const size_t offset[KERNEL_STRIPS],
                       Sums sum) {
    uint32_t taps = g->in.taps;
    uint32_t chunk = taps < RUN_LENGTH ? RUN_LENGTH / taps : 1;
    for (uint32_t c = 0; c < g->channels; c += chunk) {
        uint32_t n = g->channels - c < chunk ? g->channels - c : chunk;
        const float *from = g->in.at + c * g->in.plane;
        const float *strips[] = {from + offset[0], from + offset[1]};
        kernel_conv(strips, g->in.plane, n, g->in.tap_at, taps,
                    g->packed + (size_t)c * taps * KERNEL_OUT, sum);
    }
}

static void run_strips(const GroupTask *g, uint32_t outs, const float *bias,
                       float *out) {
    uint32_t per_row = ceil_to(g->cols, KERNEL_COLS) / KERNEL_COLS;
    size_t n = (size_t)per_row * g->rows, plane = (size_t)g->rows * g->cols;
    for (size_t s = 0; s < n; s += KERNEL_STRIPS) {
        size_t offset[KERNEL_STRIPS], to[KERNEL_STRIPS];
        uint32_t width[KERNEL_STRIPS];
        for (size_t k = 0; k < KERNEL_STRIPS; k++) {
            size_t strip = s + k < n ? s + k : s;
            size_t row = strip / per_row;
            uint32_t col = (uint32_t)(strip % per_row) * KERNEL_COLS;
            offset[k] = row * g->row_step * g->in.row + col;
            to[k] = row * g->cols + col;
            width[k] =
                g->cols - col < KERNEL_COLS ? g->cols - col : KERNEL_COLS;
        }
        Sums sum;
        for (int k = 0; k < KERNEL_STRIPS; k++)
            for (uint32_t o = 0; o < KERNEL_OUT; o++)
                for (int x = 0; x < KERNEL_COLS; x++)
                    sum[k][o][x] = bias && o < outs ? bias[o] : 0.0f;
        sum_strips(g, offset, sum);
        for (int k = 0; k < KERNEL_STRIPS; k++)
            for (uint32_t o = 0; o < outs; o++)
                memcpy(out + o * plane + to[k], sum[k][o],
                       width[k] * sizeof *out);
    }
}

static void run_group(Arena *arena, const ConvTask *task, GroupTask *g,
                      uint32_t outs, uint32_t first, float *out) {
    uint32_t n = g->channels * g->in.taps;
    float *packed = ARENA_ARRAY(arena, float, (size_t)n *KERNEL_OUT);
    g->packed = packed;
    size_t plane = (size_t)g->rows * g->cols;
    for (uint32_t o = 0; o < outs; o += KERNEL_OUT) {
        uint32_t count = outs - o < KERNEL_OUT ? outs - o : KERNEL_OUT;
        const float *bias = task->bias ? task->bias + first + o : NULL;
        pack_weights(task->weight + (size_t)(first + o) * n, count, n, packed);
        run_strips(g, count, bias, out + (first + o) * plane);
    }
}

void conv_run(Arena *arena, const ConvTask *task, const Patch *in, Patch *out) {
    const Window *w = task->window;
    bool flat = is_pointwise(w) && same_box(&in->box, &out->box);
    uint32_t channels = in->full.c / task->groups;
    uint32_t outs = out->full.c / task->groups;
    assert(channels && outs);
    for (uint32_t i = 0; i < task->groups; i++) {
        GroupTask g = {.channels = channels,
                       .row_step = w[ROWS].stride,
                       .rows = out->box.rows,
                       .cols = out->box.cols};
        if (flat) {
            g.cols *= g.rows;
            g.rows = 1;
            g.in = flat_group(in, i * channels);
        } else {
            g.in = pad_group(arena, w, in, &out->box, i * channels, channels);
        }
        place_taps(arena, w, &g.in);
        run_group(arena, task, &g, outs, i * outs, out->at);
    }
}

/* ---- transposed ---- */

static void spread_plane(const ConvTask *task, const Patch *in, uint32_t c,
                         const float *weight, float *to, const Extent *size) {
    const Window *w = task->window;
    const float *from = in->at + c * patch_plane(in);
    for (uint32_t y = 0; y < in->full.h; y++)
        for (uint32_t ky = 0; ky < w[ROWS].kernel; ky++) {
            int64_t oy = (int64_t)y * w[ROWS].stride - w[ROWS].pad +
                         (int64_t)ky * w[ROWS].dilation;
            if (oy < 0 || oy >= size->h)
                continue;
            for (uint32_t x = 0; x < in->full.w; x++)
                for (uint32_t kx = 0; kx < w[COLS].kernel; kx++) {
                    int64_t ox = (int64_t)x * w[COLS].stride - w[COLS].pad +
                                 (int64_t)kx * w[COLS].dilation;
                    if (ox >= 0 && ox < size->w)
                        to[(size_t)oy * size->w + (size_t)ox] +=
                            from[(size_t)y * in->full.w + x] *
                            weight[ky * w[COLS].kernel + kx];
                }
        }
}

void deconv_run(const ConvTask *task, const Patch *in, Patch *out) {
    uint32_t channels = in->full.c / task->groups;
    uint32_t outs = out->full.c / task->groups;
    size_t taps = (size_t)task->window[ROWS].kernel * task->window[COLS].kernel;
    size_t plane = patch_plane(out);
    for (uint32_t o = 0; o < out->full.c; o++) {
        float *to = out->at + o * plane;
        for (size_t i = 0; i < plane; i++)
            to[i] = task->bias ? task->bias[o] : 0.0f;
        uint32_t group = o / outs;
        for (uint32_t k = 0; k < channels; k++) {
            uint32_t c = group * channels + k;
            spread_plane(task, in, c,
                         task->weight + ((size_t)c * outs + o % outs) * taps,
                         to, &out->full);
        }
    }
}
