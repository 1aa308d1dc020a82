/* range.c - from a histogram to a scale and a zero; see scheme.h.
 *
 * Methods: facts of Jacob et al., "Quantization and training of neural networks
 * for efficient integer-arithmetic-only inference" (2018) for ranges to codes;
 * Migacz, "8-bit inference with TensorRT" (2017) for the divergence.
 */
#include "quantise/scheme.h"

#include "graph/quant.h"

#include <math.h>

const char *const quantise_method_name[METHOD_COUNT + 1] = {
#define METHOD(NAME, text, doc) text,
    QUANTISE_METHODS
#undef METHOD
        NULL};

/* Scales below: values that small are 0 anywhere. */
static const double least_scale = 0x1p-100;

double range_power(double scale) {
    int exponent;
    double part = frexp(scale, &exponent); /* 0.5 <= part < 1 */
    return ldexp(1, part > 0.5 ? exponent : exponent - 1);
}

static Quant symmetric(Range r, QuantType type, const QuantiseNumbers *n) {
    const QuantTypeInfo *info = &quant_type[type];
    double most = fmax(-r.lo, r.hi);
    Quant q = {type, 0, most / info->hi, n->round};
    if (n->pow2) /* the code below -127 counts */
        q.scale = range_power(fmax(r.hi / (info->hi + 0.5),
                                   info->lo ? r.lo / (info->lo - 0.5) : 0));
    return q;
}

Quant range_quant(Range r, QuantType type, const QuantiseNumbers *numbers) {
    const QuantTypeInfo *info = &quant_type[type];
    Quant q;
    r.lo = fmin(r.lo, 0);
    r.hi = fmax(r.hi, 0);
    if (numbers->symmetric || type == QUANT_I16) {
        q = symmetric(r, type, numbers);
    } else {
        q = (Quant){type, 0, (r.hi - r.lo) / (info->hi - info->lo),
                    numbers->round};
        if (numbers->pow2)
            q.scale = range_power((r.hi - r.lo) / (info->hi - info->lo + 1));
        double zero = q.scale > 0 ? nearbyint(info->lo - r.lo / q.scale) : 0;
        q.zero = (int32_t)fmin(fmax(zero, info->lo), info->hi);
    }
    q.scale = (double)(float)q.scale; /* as files have it */
    if (!(q.scale >= least_scale)) {  /* nothing but zeros was seen */
        q.scale = 1;
        q.zero = q.zero < info->lo ? info->lo : q.zero;
    }
    return q;
}

Range range_of(const Quant *q) {
    const QuantTypeInfo *info = &quant_type[q->type];
    return (Range){quant_real(q, info->lo), quant_real(q, info->hi)};
}

double range_error(const Histogram *h, const Quant *q) {
    double sum = 0;
    for (uint32_t b = 0; b < HISTOGRAM_BINS; b++) {
        if (!h->bin[b])
            continue;
        double value = histogram_value(h, b);
        double error = quant_real(q, quant_code(q, value)) - value;
        sum += (double)h->bin[b] * error * error;
    }
    return h->n ? sum / (double)(h->n + h->zeros) : 0;
}

double range_clipped(const Histogram *h, const Quant *q) {
    Range r = range_of(q);
    uint64_t out = 0;
    double bin = ldexp(1, h->exponent);
    r.lo -= q->scale + bin; /* less is rounding: 1 where codes end at 255/256 */
    r.hi += q->scale + bin;
    for (uint32_t b = 0; b < HISTOGRAM_BINS; b++) {
        double value = histogram_value(h, b);
        out += value < r.lo || value > r.hi ? h->bin[b] : 0;
    }
    uint64_t all = h->n + h->zeros;
    return all ? (double)out / (double)all : 0;
}

/* ---- methods ---- */

/* The range without the outermost values on both sides. */
static Range percentile_range(const Histogram *h, double kept) {
    double cut = (double)(h->n + h->zeros) * (1 - kept / 100) / 2;
    Range r = {h->lo, h->hi};
    double below = 0, above = 0;
    for (uint32_t b = 0; b < HISTOGRAM_BINS; b++) {
        below += (double)h->bin[b];
        if (below > cut) {
            r.lo = fmax(r.lo, histogram_value(h, b) - ldexp(0.5, h->exponent));
            break;
        }
    }
    for (uint32_t b = HISTOGRAM_BINS; b-- > 0;) {
        above += (double)h->bin[b];
        if (above > cut) {
            r.hi = fmin(r.hi, histogram_value(h, b) + ldexp(0.5, h->exponent));
            break;
        }
    }
    return r;
}

/* Best share of one side, the other as it is. */
static double best_share(const Histogram *h, QuantType type,
                         const QuantiseNumbers *numbers, Range full, Range *now,
                         bool high, double least) {
    enum { STEPS = 60 };
    double best = high ? now->hi : now->lo;
    for (int i = 0; i <= STEPS; i++) {
        double share = numbers->pow2 ? exp2(-i / 15.0) : 1 - 0.7 * i / STEPS;
        Range tried = *now;
        if (high)
            tried.hi = full.hi * share;
        else
            tried.lo = full.lo * share;
        Quant q = range_quant(tried, type, numbers);
        double error = range_error(h, &q);
        if (error < least) {
            least = error;
            best = high ? tried.hi : tried.lo;
        }
    }
    if (high)
        now->hi = best;
    else
        now->lo = best;
    return least;
}

static Range mse_range(const Histogram *h, QuantType type,
                       const QuantiseNumbers *numbers) {
    Range full = {fmin((double)h->lo, 0), fmax((double)h->hi, 0)}, now = full;
    Quant q = range_quant(full, type, numbers);
    double least = range_error(h, &q);
    for (int round = 0; round < 2; round++) {
        least = best_share(h, type, numbers, full, &now, true, least);
        if (full.lo < 0)
            least = best_share(h, type, numbers, full, &now, false, least);
    }
    return now;
}

/* Sum of p * log(p / q) for a threshold of `top` bins on the side that goes up,
 * merged into `levels` levels; `size` has the counts by distance from 0. */
static double divergence(const double *size, uint32_t n, uint32_t top,
                         uint32_t levels) {
    const double EMPTY = 1e-4; /* values that a level without any counts as */
    double total = 0, tail = 0, sum = 0, norm = 0;
    for (uint32_t i = 0; i < n; i++) {
        total += size[i];
        tail += i >= top ? size[i] : 0;
    }
    for (uint32_t level = 0; level < levels; level++) {
        uint32_t from = (uint32_t)((uint64_t)level * top / levels);
        uint32_t to = (uint32_t)((uint64_t)(level + 1) * top / levels);
        double mass = 0, filled = 0;
        for (uint32_t i = from; i < to; i++) {
            mass += size[i];
            filled += size[i] + (i == top - 1 ? tail : 0) > 0;
        }
        if (mass <= 0) /* what is cut off has no level: nearly no mass */
            mass = EMPTY * filled;
        for (uint32_t i = from; i < to; i++) {
            double p = size[i] + (i == top - 1 ? tail : 0), q = mass / filled;
            if (p <= 0)
                continue;
            sum += p * log(p / q);
            norm += q;
        }
    }
    /* q's total is the mass inside, p's all of it */
    return norm > 0 ? sum / total + log(norm / total) : INFINITY;
}

static Range kl_range(const Histogram *h, QuantType type) {
    enum { LEVELS = 128 };
    double size[HISTOGRAM_HALF] = {0}, most = fmax(-(double)h->lo, h->hi);
    for (uint32_t i = 0; i < HISTOGRAM_HALF; i++)
        size[i] = (double)(h->bin[HISTOGRAM_HALF + i] +
                           h->bin[HISTOGRAM_HALF - 1 - i]);
    uint32_t levels = h->lo >= 0 && type != QUANT_I16 ? 2 * LEVELS : LEVELS;
    uint32_t end = (uint32_t)ceil(ldexp(most, -h->exponent)), best = end;
    end = end > HISTOGRAM_HALF ? HISTOGRAM_HALF : end;
    double least = INFINITY;
    for (uint32_t top = levels; top <= end; top += 8) {
        double d = divergence(size, HISTOGRAM_HALF, top, levels);
        if (d < least) {
            least = d;
            best = top;
        }
    }
    double reach = fmin(most, ldexp((double)best, h->exponent));
    return (Range){fmax((double)h->lo, -reach), fmin((double)h->hi, reach)};
}

Quant range_choose(const Histogram *h, QuantType type,
                   const QuantiseOptions *options) {
    Range r = {(double)h->lo, (double)h->hi};
    if (type == QUANT_I16 || !h->n) /* bins are coarser than codes */
        return range_quant(r, type, &options->numbers);
    switch (options->method) {
    case METHOD_PERCENTILE:
        r = percentile_range(h, options->percentile);
        break;
    case METHOD_MSE:
        r = mse_range(h, type, &options->numbers);
        break;
    case METHOD_KL: /* few values are no distribution */
        r = h->n < 16 * HISTOGRAM_HALF ? mse_range(h, type, &options->numbers)
                                       : kl_range(h, type);
        break;
    default:
        break;
    }
    return range_quant(r, type, &options->numbers);
}
