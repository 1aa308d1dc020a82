/* compute.h - the arithmetic of layers on dense patches of volumes.
 *
 * Input and output: patches, in c, h, w order. A patch knows which rows and
 * columns of its volume it holds, so that a tile and a whole volume go through
 * the same code and give the same bits. Shares no code with graph/.
 */
#ifndef SIM_COMPUTE_H
#define SIM_COMPUTE_H

#include "sim/work.h"

typedef struct Patch {
    Extent full; /* of the volume */
    Box box;     /* what is held of it */
    float *at;   /* full.c x box.rows x box.cols, and room for one strip more */
} Patch;

Patch patch_new(Arena *arena, Extent full, Box box);
Box whole_box(const Extent *extent);
static inline size_t patch_plane(const Patch *p) {
    return (size_t)p->box.rows * p->box.cols;
}
static inline size_t patch_count(const Patch *p) {
    return p->full.c * patch_plane(p);
}

/* PartSums of the input channels so far; in c, h, w order. */
typedef struct PartSums PartSums;

/* bias may be NULL. */
typedef struct ConvTask {
    const Window *window; /* [2] */
    uint32_t groups;
    const float *weight; /* [out_c, in_c / groups, kh, kw] */
    const float *bias;
    const int32_t *weight_code, *bias_code; /* of a quantised layer, instead */
    PartSums *sums;                         /* NULL: all channels at once */
} ConvTask;
void conv_run(Arena *arena, const ConvTask *task, const Patch *in, Patch *out);
/* weight: [in_c, out_c / groups, kh, kw]; whole volumes only. */
void deconv_run(const ConvTask *task, const Patch *in, Patch *out);

/* What an average divides by. */
typedef enum PoolDivisor {
    DIVIDE_BY_KERNEL,
    DIVIDE_BY_PADDED, /* the kernel clipped to the padded input */
    DIVIDE_BY_VALID   /* clipped to the input */
} PoolDivisor;
typedef struct PoolTask {
    const Window *window; /* [2] */
    bool average;
    PoolDivisor divisor;
    uint32_t pad_end[2]; /* for DIVIDE_BY_PADDED */
} PoolTask;
/* Of the window at `at` the part inside 0..size, and how far it would reach
 * with the padding behind. */
typedef struct PoolSpan {
    uint32_t from, to, padded;
} PoolSpan;
PoolSpan pool_span(const PoolTask *task, int axis, uint32_t at, uint32_t size);
/* At least 1. */
uint64_t pool_divisor(const PoolTask *task, const PoolSpan *y,
                      const PoolSpan *x);
void pool_run(const PoolTask *task, const Patch *in, Patch *out);

typedef enum ActStyle {
    ACT_STYLE_NONE,
    ACT_STYLE_CLIP,  /* to lo..hi: relu, relu6, clip */
    ACT_STYLE_SLOPE, /* below zero times alpha, or slope by channel */
    ACT_STYLE_FUNCTION
} ActStyle;
typedef struct ActTask {
    ActStyle style;
    float alpha, lo, hi;
    double (*function)(const struct ActTask *task, double x);
    const float *slope; /* by channel, or NULL: alpha */
} ActTask;
/* By name, as LayerAct and the host's attributes have it; false if unknown. A
 * "prelu" gets its slope from the caller. */
bool act_named(const char *kind, double alpha, double lo, double hi,
               ActTask *out);
void act_run(const ActTask *task, Patch *patch);

typedef enum Blend { BLEND_ADD, BLEND_MUL, BLEND_MAX } Blend;
/* out = a op b, element by element. */
void blend_run(Blend blend, const Patch *a, const Patch *b, Patch *out);
/* out = scale * in + bias by channel; NULL: 1 and 0. */
void scale_run(const float *scale, const float *bias, const Patch *in,
               Patch *out);
/* A volume, or a tensor, as lines: element k of line i of part o stands at
 * (o * n + k) * step + i. */
typedef struct Lines {
    uint64_t outer, n, step;
} Lines;
void lines_softmax(const Lines *lines, const float *in, float *out);
/* rms: no mean is taken away. */
void lines_norm(const Lines *lines, bool rms, double eps, const float *in,
                float *out);

/* ---- compute_tokens.c: pixels as tokens ---- */

/* Windows of pixels of two volumes: x and what it is multiplied with. */
typedef struct Mix {
    bool over_pixels, attends;
    uint32_t groups, patch[2], shift[2];
    Extent in, in2, out;
} Mix;
void mix_run(Arena *arena, const Mix *mix, const float *in, const float *in2,
             float *out);
/* period: of the values, along channels, rows, columns; of these the volume
 * begins with `row`. */
void offset_run(const Extent *size, uint32_t row, const uint32_t period[3],
                bool times, const float *value, const float *in, float *out);
void pixels_run(const Extent *in_size, const Extent *out_size,
                const float *index, const float *in, float *out);
/* order: as digits, the axis of the source behind each of the result. */
void transpose_run(const Extent *in_size, uint32_t order, const float *in,
                   float *out);

/* zero_fill: the first element of each block is the input's, the rest 0. */
void upsample_run(const uint32_t factor[2], bool zero_fill, const Patch *in,
                  Patch *out);

/* ---- an instruction's arithmetic: compute.c ---- */

typedef struct Job {
    const Work *work;
    const QuantLayer *quant; /* NULL: cells are real numbers */
    const float *staged;     /* its weights in active memory */
    PartSums *sums;          /* with which it goes on, or which it leaves */
    ConvTask conv;
    PoolTask pool;
    ActTask act;
    const float *scale, *bias;
    const float *index; /* of channels, or pixels */
    const float *offset;
    uint32_t period[3];
    float eps;
} Job;

/* Gets the constants. False, with a violation, if they do not fit. */
bool job_prepare(Run *run, const Work *work, Job *out);
/* Rows and columns of the input that a box of the output needs. */
Box job_needs(const Job *job, Box out);
/* in2: NULL where there is none. out: made by patch_new, all zero. */
void job_run(Arena *arena, const Job *job, const Patch *in, const Patch *in2,
             Patch *out);

#endif
