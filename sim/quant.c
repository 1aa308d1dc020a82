/* quant.c - the arithmetic of quantised layers; see quant.h. */
#include "sim/quant.h"
#include "sim/blobs.h"
#include "sim/sums.h"

#include <math.h>

/* ---- what the image says ---- */

bool quant_suits(Run *run, const QuantLayer *q, uint32_t channels) {
    bool even = quant_by_floats(q->round), good = q->n <= 1;
    if (q->rule == QUANT_TABLE)
        good = q->n == 0;
    else if (q->rule == QUANT_SUMS)
        good = q->n == 1 || q->n == channels;
    else if (q->rule == QUANT_ADDS || (even && q->rule == QUANT_PRODUCT))
        good = q->n == 3;
    else if (q->rule == QUANT_PRODUCT || (even && q->rule == QUANT_MEANS))
        good = q->n == 1;
    else if (even && q->rule == QUANT_MOVES)
        good = q->n == 0 || q->n == 2;
    if (!good)
        fault(run, "the image has %u scales for \"%s\" of %u channels", q->n,
              quant_rule_name[q->rule], channels);
    return good;
}

bool quant_weights(Run *run, const char *layer, const Shape *weights,
                   uint32_t channels, ConvTask *out) {
    uint64_t n = shape_count(weights);
    out->weight_code = blob_codes(run, layer, "weight", n, 2);
    out->bias_code = blob_codes(run, layer, "bias", channels, 4);
    if (!out->weight_code && !blob_find(run, layer, "weight"))
        fault(run, "it has no weights");
    return out->weight_code &&
           (out->bias_code || !blob_find(run, layer, "bias"));
}

void quant_from_channel(QuantLayer *q, uint32_t first) {
    if (q->n <= 1)
        return;
    q->scale += first;
    if (q->below)
        q->below += first;
}

/* What a cell holds; only in a broken listing it is no code. */
static int32_t code_in(float cell) {
    return cell >= INT16_MIN && cell <= UINT16_MAX ? (int32_t)cell : 0;
}

bool quant_staged(Run *run, const Work *w, const float *weights,
                  uint32_t channels, ConvTask *out, const QuantLayer **q) {
    uint64_t n = box_count(&w->weights_at, place_box(&w->weights_at));
    int32_t *code = ARENA_ARRAY(run->work, int32_t, n);
    for (uint64_t i = 0; i < n; i++)
        code[i] = code_in(weights[i]);
    out->weight_code = code;
    out->bias_code = blob_codes(run, w->layer, "bias", channels, 4);
    if (!out->bias_code && blob_find(run, w->layer, "bias"))
        return false;
    if (out->bias_code)
        out->bias_code += w->first_c;
    if (!quant_suits(run, *q, channels))
        return false;
    QuantLayer *own = ARENA_COPY(run->work, QuantLayer, *q, 1);
    quant_from_channel(own, w->first_c);
    own->n = own->n > 1 ? w->out.c : own->n;
    *q = own;
    return true;
}

/* ---- one element ---- */

int32_t quant_less_zero(const QuantLayer *q, float code) {
    return code_in(code) - q->zero_in[0];
}

static int64_t clipped(int64_t x, int64_t most) {
    return x > most ? most : x < -most ? -most : x;
}

/* Division cuts towards 0. */
static int64_t floor_of(int64_t x, int64_t unit) {
    return x / unit - (x % unit < 0);
}

/* The factor in two halves of 16 bits: sums may have 47 bits. Where the shift
 * is so small that the lower half counts, only sums of 32 bits are codes. */
int64_t quant_scaled(const QuantScale *scale, int64_t x) {
    const int64_t half = 1 << 16;
    if (scale->shift <= 17) {
        int64_t unit = INT64_C(1) << scale->shift;
        int64_t product = clipped(x, INT32_MAX) * scale->factor;
        return floor_of(product + unit / 2, unit);
    }
    x = clipped(x, INT64_C(1) << 46);
    int64_t upper =
        x * (scale->factor / half) + floor_of(x * (scale->factor % half), half);
    int64_t unit = INT64_C(1) << (scale->shift - 16);
    return floor_of(upper + unit / 2, unit);
}

/* ---- halves to even ---- */

/* A factor as the float that it is. Products, quotients and sums of two floats
 * that are rounded to double first round to the same float. */
static double factor_of(const QuantScale *scale) {
    return (double)(float)ldexp((double)scale->factor, -(int)scale->shift);
}

static double to_float(double x) {
    return (double)(float)x;
}

/* Floats from 2^23 on are whole. */
static int64_t nearest_even(double x) {
    if (!(fabs(x) < 0x1p40))
        return x > 0 ? INT64_C(1) << 40 : -(INT64_C(1) << 40);
    double below = floor(x), rest = x - below;
    int64_t whole = (int64_t)below;
    return whole + (rest > 0.5 || (rest >= 0.5 && whole % 2 != 0));
}

/* A sum by a scale. */
static int64_t rescaled(const QuantLayer *q, const QuantScale *scale,
                        int64_t x) {
    if (!quant_by_floats(q->round))
        return quant_scaled(scale, x);
    return nearest_even(to_float(to_float((double)x) * factor_of(scale)));
}

/* The zeros' part first, then code by code; fma rounds once. */
static int64_t added_even(const QuantLayer *q, int64_t x, int64_t y) {
    double a = to_float(factor_of(&q->scale[0]) / factor_of(&q->scale[2]));
    double b = to_float(factor_of(&q->scale[1]) / factor_of(&q->scale[2]));
    float zero_b = (float)to_float(b * q->zero_in[1]);
    double zeros = (double)fmaf((float)a, (float)q->zero_in[0], zero_b);
    double sum = to_float(q->zero_out - zeros);
    sum = to_float(sum + to_float(a * (double)(x + q->zero_in[0])));
    sum = to_float(sum + to_float(b * (double)(y + q->zero_in[1])));
    return nearest_even(sum) - q->zero_out;
}

/* The terms in one unit, their sum in the result's. */
static int64_t added_terms(const QuantLayer *q, int64_t x, int64_t y) {
    int64_t sum = nearest_even(to_float((double)x * factor_of(&q->scale[0]))) +
                  nearest_even(to_float((double)y * factor_of(&q->scale[1])));
    return nearest_even(
        to_float(to_float((double)sum) * factor_of(&q->scale[2])));
}

static int64_t two_even(const QuantLayer *q, int64_t x, int64_t y) {
    if (q->round == QUANT_TERMS && q->rule == QUANT_ADDS && !q->minus)
        return added_terms(q, x, y);
    if (q->rule == QUANT_ADDS && !q->minus)
        return added_even(q, x, y);
    double a = to_float((double)x * factor_of(&q->scale[0]));
    double b = to_float((double)y * factor_of(&q->scale[1]));
    double both = q->rule == QUANT_PRODUCT ? a * b : a - b;
    return nearest_even(to_float(to_float(both) / factor_of(&q->scale[2])));
}

static float as_code(const QuantLayer *q, int64_t value) {
    int64_t code = value + q->zero_out;
    if (code < q->lo)
        code = q->lo;
    return (float)(code < q->hi ? code : q->hi);
}

float quant_two(const QuantLayer *q, float a, float b) {
    int64_t x = quant_less_zero(q, a), y = code_in(b) - q->zero_in[1];
    if (quant_by_floats(q->round))
        return as_code(q, two_even(q, x, y));
    if (q->rule == QUANT_PRODUCT)
        return as_code(q, quant_scaled(&q->scale[0], x * y));
    int64_t unit = INT64_C(1) << q->left;
    x = quant_scaled(&q->scale[0], x * unit);
    y = quant_scaled(&q->scale[1], y * unit);
    return as_code(q, quant_scaled(&q->scale[2], q->minus ? x - y : x + y));
}

float quant_mean(const QuantLayer *q, int64_t sum, uint64_t n) {
    if (q->n)
        sum = rescaled(q, &q->scale[0], sum);
    if (quant_by_floats(q->round)) /* which has divided already */
        return as_code(q, sum);
    uint64_t size = sum < 0 ? (uint64_t)-sum : (uint64_t)sum;
    int64_t mean = (int64_t)((size + n / 2) / n);
    return as_code(q, sum < 0 ? -mean : mean);
}

float quant_from_real(const Quant *q, double real) {
    bool even = quant_by_floats(q->round);
    double steps =
        even ? to_float(to_float(real) / to_float(q->scale)) : real / q->scale;
    double below = floor(steps);
    bool stays = steps - below < 0.5 ||
                 (even && steps - below <= 0.5 && fmod(below, 2) == 0);
    double code = (stays ? below : below + 1) + q->zero;
    const QuantTypeInfo *type = &quant_type[q->type];
    if (code != code)
        return (float)q->zero;
    return (float)fmin(fmax(code, type->lo), type->hi);
}

double quant_to_real(const Quant *q, float code) {
    return ((double)code - q->zero) * q->scale;
}

/* Only in a broken listing there is something that is no code. */
void quant_look_up(const QuantLayer *q, float *at, size_t n) {
    for (size_t i = 0; i < n; i++) {
        int32_t place = quant_less_zero(q, at[i]);
        bool inside = place >= 0 && place < QUANT_TABLE_SIZE;
        at[i] = q->table[inside ? place : 0];
    }
}

void quant_move(const QuantLayer *q, float *at, size_t n) {
    for (size_t i = 0; i < n; i++) {
        int64_t x = quant_less_zero(q, at[i]);
        if (q->n == 2)
            x = nearest_even(
                to_float(to_float((double)x * factor_of(&q->scale[0])) /
                         factor_of(&q->scale[1])));
        else if (q->n)
            x = rescaled(q, &q->scale[0], x);
        at[i] = as_code(q, x);
    }
}

/* ---- convolution ---- */

static uint32_t reach(const Window *w) {
    return (w->kernel - 1) * w->dilation + 1;
}

/* What a box of the output sees of a channel, less the zero; around the volume
 * there are zeros. */
typedef struct Field {
    uint32_t rows, cols;
    int64_t top, left; /* its first row and column in the volume */
    int32_t *at;
} Field;

static Field field_of(Arena *arena, const Window w[2], const Box *out) {
    Field f = {.rows = (out->rows - 1) * w[ROWS].stride + reach(&w[ROWS]),
               .cols = (out->cols - 1) * w[COLS].stride + reach(&w[COLS]),
               .top = (int64_t)out->row * w[ROWS].stride - w[ROWS].pad,
               .left = (int64_t)out->col * w[COLS].stride - w[COLS].pad};
    f.at = ARENA_ARRAY(arena, int32_t, (size_t)f.rows * f.cols);
    return f;
}

static int32_t element(const Patch *in, const float *plane, int64_t row,
                       int64_t col, int32_t zero) {
    row -= in->box.row;
    col -= in->box.col;
    if (row < 0 || row >= in->box.rows || col < 0 || col >= in->box.cols)
        return 0;
    return code_in(plane[row * in->box.cols + col]) - zero;
}

static void fill_field(Field *f, const Patch *in, uint32_t channel,
                       int32_t zero) {
    const float *plane = in->at + channel * patch_plane(in);
    int32_t *to = f->at;
    for (uint32_t y = 0; y < f->rows; y++)
        for (uint32_t x = 0; x < f->cols; x++)
            *to++ = element(in, plane, f->top + y, f->left + x, zero);
}

/* Adds a channel's products to the sums of one output channel. */
static void add_products(const Window w[2], const Field *f,
                         const int32_t *weight, const Box *out, int64_t *sum) {
    for (uint32_t y = 0; y < out->rows; y++, sum += out->cols)
        for (uint32_t ky = 0; ky < w[ROWS].kernel; ky++) {
            const int32_t *row = f->at + ((size_t)y * w[ROWS].stride +
                                          (size_t)ky * w[ROWS].dilation) *
                                             f->cols;
            for (uint32_t kx = 0; kx < w[COLS].kernel; kx++) {
                int64_t by = weight[ky * w[COLS].kernel + kx];
                const int32_t *from = row + (size_t)kx * w[COLS].dilation;
                for (size_t x = 0; x < out->cols; x++)
                    sum[x] += by * from[x * w[COLS].stride];
            }
        }
}

static void finish(const QuantLayer *q, uint32_t channel, const int64_t *sum,
                   size_t n, float *out) {
    uint32_t k = q->n > 1 ? channel : 0;
    const QuantScale *below = q->below ? q->below : q->scale;
    for (size_t i = 0; i < n; i++) {
        const QuantScale *scale = sum[i] < 0 ? below : q->scale;
        out[i] = as_code(q, rescaled(q, &scale[k], sum[i]));
    }
}

static void start(const ConvTask *task, uint32_t channels, size_t plane,
                  int64_t *sum) {
    for (uint32_t o = 0; o < channels; o++)
        for (size_t i = 0; i < plane; i++)
            *sum++ = task->bias_code ? task->bias_code[o] : 0;
}

void quant_conv(Arena *arena, const ConvTask *task, const QuantLayer *q,
                const Patch *in, Patch *out) {
    const Window *w = task->window;
    uint32_t ins = in->full.c / task->groups, outs = out->full.c / task->groups;
    size_t taps = (size_t)w[ROWS].kernel * w[COLS].kernel;
    size_t plane = patch_plane(out);
    PartSums *kept = task->sums;
    int64_t *sum =
        kept ? kept->code : ARENA_ARRAY(arena, int64_t, patch_count(out));
    Field field = field_of(arena, w, &out->box);
    if (!kept || kept->begins)
        start(task, out->full.c, plane, sum);
    for (uint32_t c = 0; c < in->full.c; c++) {
        fill_field(&field, in, c, q->zero_in[0]);
        uint32_t first = c / ins * outs;
        for (uint32_t o = first; o < first + outs; o++)
            add_products(w, &field,
                         task->weight_code + ((size_t)o * ins + c % ins) * taps,
                         &out->box, sum + o * plane);
    }
    for (uint32_t o = 0; o < out->full.c && !(kept && kept->stays); o++)
        finish(q, o, sum + o * plane, plane, out->at + o * plane);
}

/* ---- transposed ---- */

/* The sum behind one element of the output: all inputs that reach it. */
static int64_t reached_by(const ConvTask *task, const Patch *in,
                          const float *plane, int32_t zero, uint32_t row,
                          uint32_t col, const int32_t *weight) {
    const Window *wy = &task->window[ROWS], *wx = &task->window[COLS];
    int64_t sum = 0;
    for (uint32_t ky = 0; ky < wy->kernel; ky++) {
        int64_t y = (int64_t)row + wy->pad - (int64_t)ky * wy->dilation;
        if (y < 0 || y % wy->stride)
            continue;
        for (uint32_t kx = 0; kx < wx->kernel; kx++) {
            int64_t x = (int64_t)col + wx->pad - (int64_t)kx * wx->dilation;
            if (x >= 0 && x % wx->stride == 0)
                sum += (int64_t)weight[ky * wx->kernel + kx] *
                       element(in, plane, y / wy->stride, x / wx->stride, zero);
        }
    }
    return sum;
}

void quant_deconv(Arena *arena, const ConvTask *task, const QuantLayer *q,
                  const Patch *in, Patch *out) {
    const Window *w = task->window;
    uint32_t ins = in->full.c / task->groups, outs = out->full.c / task->groups;
    size_t taps = (size_t)w[ROWS].kernel * w[COLS].kernel;
    size_t plane = patch_plane(out);
    int64_t *sum = ARENA_ARRAY(arena, int64_t, patch_count(out));
    start(task, out->full.c, plane, sum);
    for (uint32_t o = 0; o < out->full.c; o++) {
        int64_t *to = sum + o * plane;
        for (uint32_t k = 0; k < ins; k++) {
            uint32_t c = o / outs * ins + k;
            const float *from = in->at + c * patch_plane(in);
            const int32_t *weight =
                task->weight_code + ((size_t)c * outs + o % outs) * taps;
            for (size_t i = 0; i < plane; i++)
                to[i] += reached_by(task, in, from, q->zero_in[0],
                                    (uint32_t)(i / out->full.w),
                                    (uint32_t)(i % out->full.w), weight);
        }
        finish(q, o, to, plane, out->at + o * plane);
    }
}

/* ---- average pools ---- */

static int64_t sum_of(const Patch *in, const float *plane, const PoolSpan *y,
                      const PoolSpan *x, int32_t zero) {
    int64_t sum = 0;
    for (uint32_t h = y->from; h < y->to; h++)
        for (uint32_t w = x->from; w < x->to; w++)
            sum += element(in, plane, h, w, zero);
    return sum;
}

void quant_pool(const PoolTask *task, const QuantLayer *q, const Patch *in,
                Patch *out) {
    const Box *box = &out->box;
    float *to = out->at;
    for (uint32_t c = 0; c < out->full.c; c++) {
        const float *plane = in->at + c * patch_plane(in);
        for (uint32_t h = 0; h < box->rows; h++)
            for (uint32_t w = 0; w < box->cols; w++) {
                PoolSpan y = pool_span(task, ROWS, box->row + h, in->full.h);
                PoolSpan x = pool_span(task, COLS, box->col + w, in->full.w);
                *to++ = quant_mean(q, sum_of(in, plane, &y, &x, q->zero_in[0]),
                                   pool_divisor(task, &y, &x));
            }
    }
}
