/* compute_simple.c - pooling, sums, scales, upsampling on patches;
 * see compute.h. */
#include "sim/compute.h"
#include "sim/kernel.h"

#include <math.h>
#include <string.h>

Patch patch_new(Arena *arena, Extent full, Box box) {
    size_t n = (size_t)full.c * box.rows * box.cols;
    return (Patch){full, box, ARENA_ARRAY(arena, float, n + KERNEL_COLS)};
}

Box whole_box(const Extent *extent) {
    return (Box){0, extent->h, 0, extent->w};
}

/* ---- pooling ---- */

PoolSpan pool_span(const PoolTask *task, int axis, uint32_t at, uint32_t size) {
    const Window *w = &task->window[axis];
    int64_t from = (int64_t)at * w->stride - w->pad;
    int64_t to = from + w->kernel;
    int64_t limit = (int64_t)size + task->pad_end[axis];
    int64_t padded = (to < limit ? to : limit) - from;
    from = from < 0 ? 0 : from;
    to = to > size ? size : to;
    if (from >= to)
        from = to = 0;
    return (PoolSpan){(uint32_t)from, (uint32_t)to,
                      padded > 0 ? (uint32_t)padded : 0};
}

uint64_t pool_divisor(const PoolTask *task, const PoolSpan *y,
                      const PoolSpan *x) {
    const Window *w = task->window;
    uint64_t n = 0;
    switch (task->divisor) {
    case DIVIDE_BY_KERNEL:
        n = (uint64_t)w[ROWS].kernel * w[COLS].kernel;
        break;
    case DIVIDE_BY_PADDED:
        n = (uint64_t)y->padded * x->padded;
        break;
    case DIVIDE_BY_VALID:
        n = (uint64_t)(y->to - y->from) * (x->to - x->from);
        break;
    }
    return n ? n : 1;
}

static float pool_one(const PoolTask *task, const Patch *in, const float *from,
                      const PoolSpan *y, const PoolSpan *x) {
    bool average = task->average;
    bool empty = y->from == y->to || x->from == x->to;
    float value = average || empty ? 0.0f : -INFINITY;
    for (uint32_t h = y->from; h < y->to; h++) {
        const float *row =
            from + (size_t)(h - in->box.row) * in->box.cols - in->box.col;
        for (uint32_t w = x->from; w < x->to; w++)
            if (average)
                value += row[w];
            else if (row[w] > value || isnan(row[w]))
                value = row[w];
    }
    return average ? value / (float)pool_divisor(task, y, x) : value;
}

void pool_run(const PoolTask *task, const Patch *in, Patch *out) {
    const Box *box = &out->box;
    float *to = out->at;
    for (uint32_t c = 0; c < out->full.c; c++)
        for (uint32_t h = 0; h < box->rows; h++) {
            PoolSpan y = pool_span(task, ROWS, box->row + h, in->full.h);
            for (uint32_t w = 0; w < box->cols; w++) {
                PoolSpan x = pool_span(task, COLS, box->col + w, in->full.w);
                *to++ =
                    pool_one(task, in, in->at + c * patch_plane(in), &y, &x);
            }
        }
}

/* ---- the rest ---- */

void blend_run(Blend blend, const Patch *a, const Patch *b, Patch *out) {
    size_t n = out->full.c * patch_plane(out);
    for (size_t i = 0; i < n; i++) {
        float x = a->at[i], y = b->at[i];
        out->at[i] = blend == BLEND_ADD   ? x + y
                     : blend == BLEND_MUL ? x * y
                     : x > y || isnan(x)  ? x
                                          : y;
    }
}

void scale_run(const float *scale, const float *bias, const Patch *in,
               Patch *out) {
    size_t plane = patch_plane(out);
    for (uint32_t c = 0; c < out->full.c; c++) {
        float a = scale ? scale[c] : 1.0f, b = bias ? bias[c] : 0.0f;
        for (size_t i = c * plane; i < (c + 1) * plane; i++)
            out->at[i] = a * in->at[i] + b;
    }
}

void upsample_run(const uint32_t factor[2], bool zero_fill, const Patch *in,
                  Patch *out) {
    uint32_t fh = factor[ROWS], fw = factor[COLS];
    const Box *box = &out->box;
    float *to = out->at;
    for (uint32_t c = 0; c < out->full.c; c++)
        for (uint32_t h = box->row; h < box->row + box->rows; h++) {
            const float *row = in->at + c * patch_plane(in) +
                               (size_t)(h / fh - in->box.row) * in->box.cols;
            for (uint32_t w = box->col; w < box->col + box->cols; w++) {
                bool kept = !zero_fill || (h % fh == 0 && w % fw == 0);
                *to++ = kept ? row[w / fw - in->box.col] : 0.0f;
            }
        }
}
