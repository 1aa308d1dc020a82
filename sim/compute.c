/* compute.c - an instruction's arithmetic; see compute.h.
 *
 * Input: a Work and patches of its operands. Output: the patch of its result.
 * What an operation needs of its input, and how it is computed, is one row of a
 * table.
 */
#include "sim/compute_constants.h"
#include "sim/quant.h"
#include "sim/staged.h"
#include "sim/sums.h"

#include <string.h>

/* ---- operations ---- */

typedef struct Operands {
    Arena *arena;
    const Patch *in, *in2;
    Patch *out;
} Operands;

static void run_conv(const Job *job, const Operands *o) {
    conv_run(o->arena, &job->conv, o->in, o->out);
    if (!sums_add(job->sums, o->out))
        act_run(&job->act, o->out);
}

static void run_deconv(const Job *job, const Operands *o) {
    deconv_run(&job->conv, o->in, o->out);
    act_run(&job->act, o->out);
}

static void run_pool(const Job *job, const Operands *o) {
    pool_run(&job->pool, o->in, o->out);
    act_run(&job->act, o->out);
}

static void run_conv_pool(const Job *job, const Operands *o) {
    const Work *w = job->work;
    Box box = window_needs(w->pool, o->out->box, w->mid.h, w->mid.w);
    Patch mid = patch_new(o->arena, w->mid, box);
    if (box.rows && box.cols)
        conv_run(o->arena, &job->conv, o->in, &mid);
    act_run(&job->act, &mid);
    pool_run(&job->pool, &mid, o->out);
}

static void run_blend(const Job *job, const Operands *o) {
    HwOp op = job->work->op;
    bool product = op == HW_OP_MUL || op == HW_OP_MUL_CHANNELS;
    Blend blend = product ? BLEND_MUL : op == HW_OP_MAX ? BLEND_MAX : BLEND_ADD;
    blend_run(blend, o->in, o->in2, o->out);
    act_run(&job->act, o->out);
}

static void run_scale(const Job *job, const Operands *o) {
    scale_run(job->scale, job->bias, o->in, o->out);
    act_run(&job->act, o->out);
}

static void run_gather(const Job *job, const Operands *o) {
    size_t plane = patch_plane(o->out);
    for (uint32_t c = 0; c < o->out->full.c; c++)
        memcpy(o->out->at + c * plane,
               o->in->at + (size_t)job->index[c] * plane,
               plane * sizeof(float));
}

static void run_mix(const Job *job, const Operands *o) {
    const Work *w = job->work;
    Mix mix = {.over_pixels = w->op == HW_OP_MATMUL_PIXELS,
               .attends = w->op == HW_OP_ATTENTION,
               .groups = w->groups ? w->groups : 1,
               .patch = {w->patch[ROWS], w->patch[COLS]},
               .shift = {w->shift[ROWS], w->shift[COLS]},
               .in = w->in,
               .in2 = w->in2,
               .out = w->out};
    mix_run(o->arena, &mix, o->in->at, o->in2->at, o->out->at);
}

static void run_offset(const Job *job, const Operands *o) {
    bool times = job->work->op == HW_OP_MUL_CONSTANTS;
    offset_run(&job->work->out, job->work->out_row, job->period, times,
               job->offset, o->in->at, o->out->at);
}

static void run_gather_pixels(const Job *job, const Operands *o) {
    pixels_run(&job->work->in, &job->work->out, job->index, o->in->at,
               o->out->at);
}

static void run_transpose(const Job *job, const Operands *o) {
    transpose_run(&job->work->in, job->work->order, o->in->at, o->out->at);
}

static void run_reshape(const Job *job, const Operands *o) {
    (void)job;
    memcpy(o->out->at, o->in->at, patch_count(o->out) * sizeof(float));
}

static void run_reduce(const Job *job, const Operands *o) {
    size_t plane = patch_plane(o->out);
    for (size_t i = 0; i < plane; i++) {
        double sum = 0, most = (double)o->in->at[i];
        for (uint32_t c = 0; c < o->in->full.c; c++) {
            double x = (double)o->in->at[c * plane + i];
            sum += x;
            most = x > most ? x : most;
        }
        double mean = sum / o->in->full.c;
        HwOp op = job->work->op;
        o->out->at[i] = (float)(op == HW_OP_REDUCE_MAX    ? most
                                : op == HW_OP_REDUCE_MEAN ? mean
                                                          : sum);
    }
}

/* Of each pixel the channels, in groups. */
static Lines by_pixel(const Work *w, const Patch *p) {
    uint32_t groups = w->groups ? w->groups : 1;
    return (Lines){groups, p->full.c / groups, patch_plane(p)};
}

static void run_softmax(const Job *job, const Operands *o) {
    Lines lines = by_pixel(job->work, o->out);
    lines_softmax(&lines, o->in->at, o->out->at);
}

static void run_norm(const Job *job, const Operands *o) {
    Lines lines = by_pixel(job->work, o->out);
    if (job->work->op == HW_OP_GROUP_NORM)
        lines = (Lines){lines.outer, lines.n * lines.step, 1};
    lines_norm(&lines, job->work->op == HW_OP_RMSNORM, (double)job->eps,
               o->in->at, o->out->at);
}

static void run_upsample(const Job *job, const Operands *o) {
    const Work *w = job->work;
    upsample_run(w->factor, w->zero_fill, o->in, o->out);
}

/* ---- on codes ---- */

static void run_conv_codes(const Job *job, const Operands *o) {
    quant_conv(o->arena, &job->conv, job->quant, o->in, o->out);
}

static void run_deconv_codes(const Job *job, const Operands *o) {
    quant_deconv(o->arena, &job->conv, job->quant, o->in, o->out);
}

static void run_conv_pool_codes(const Job *job, const Operands *o) {
    const Work *w = job->work;
    Box box = window_needs(w->pool, o->out->box, w->mid.h, w->mid.w);
    Patch mid = patch_new(o->arena, w->mid, box);
    if (box.rows && box.cols)
        quant_conv(o->arena, &job->conv, job->quant, o->in, &mid);
    pool_run(&job->pool, &mid, o->out);
}

static void run_means(const Job *job, const Operands *o) {
    quant_pool(&job->pool, job->quant, o->in, o->out);
}

static void run_two_codes(const Job *job, const Operands *o) {
    size_t n = patch_count(o->out);
    for (size_t i = 0; i < n; i++)
        o->out->at[i] = quant_two(job->quant, o->in->at[i], o->in2->at[i]);
}

static void run_act_codes(const Job *job, const Operands *o) {
    memcpy(o->out->at, o->in->at, patch_count(o->out) * sizeof(float));
    if (job->quant->rule == QUANT_TABLE)
        quant_look_up(job->quant, o->out->at, patch_count(o->out));
    else
        quant_move(job->quant, o->out->at, patch_count(o->out));
}

/* ---- what is needed ---- */

static Box needs_conv(const Work *w, Box out) {
    return window_needs(w->conv, out, w->in.h, w->in.w);
}

static Box needs_pool(const Work *w, Box out) {
    return window_needs(w->pool, out, w->mid.h, w->mid.w);
}

static Box needs_conv_pool(const Work *w, Box out) {
    Box mid = needs_pool(w, out);
    if (mid.rows == 0 || mid.cols == 0)
        return (Box){0};
    return needs_conv(w, mid);
}

static Box needs_same(const Work *w, Box out) {
    (void)w;
    return out;
}

static Box needs_upsample(const Work *w, Box out) {
    if (out.rows == 0 || out.cols == 0)
        return (Box){0};
    uint32_t fh = w->factor[ROWS], fw = w->factor[COLS];
    uint32_t row = out.row / fh, col = out.col / fw;
    return (Box){row, (out.row + out.rows - 1) / fh - row + 1, col,
                 (out.col + out.cols - 1) / fw - col + 1};
}

static Box needs_all(const Work *w, Box out) {
    (void)out;
    return whole_box(&w->in);
}

/* How an operation is computed. On codes by the rules of `rules` alone; without
 * a function of its own as on numbers, moved to the result's grid then. */
typedef struct OpRow {
    Box (*needs)(const Work *w, Box out);
    Prepare *prepare;
    void (*run)(const Job *job, const Operands *operands);
    uint32_t rules; /* bits, by QuantRule */
    void (*run_codes)(const Job *job, const Operands *operands);
} OpRow;

enum {
    SUMS = 1u << QUANT_SUMS,
    MOVES = 1u << QUANT_MOVES,
    MEANS = 1u << QUANT_MEANS,
    ADDS = 1u << QUANT_ADDS,
    PRODUCT = 1u << QUANT_PRODUCT,
    TABLE = 1u << QUANT_TABLE
};

static const OpRow row_conv = {needs_conv, prepare_conv, run_conv, SUMS,
                               run_conv_codes};
static const OpRow row_fc = {needs_all, prepare_conv, run_conv, SUMS,
                             run_conv_codes};
static const OpRow row_deconv = {needs_all, prepare_conv, run_deconv, SUMS,
                                 run_deconv_codes};
static const OpRow row_conv_pool_max = {
    needs_conv_pool, prepare_conv, run_conv_pool, SUMS, run_conv_pool_codes};
static const OpRow row_conv_pool_avg = {needs_conv_pool, prepare_conv,
                                        run_conv_pool, 0, NULL};
static const OpRow row_pool_max = {needs_pool, prepare_pool, run_pool, MOVES,
                                   NULL};
static const OpRow row_pool_avg = {needs_pool, prepare_pool, run_pool, MEANS,
                                   run_means};
static const OpRow row_add = {needs_same, NULL, run_blend, ADDS, run_two_codes};
static const OpRow row_mul = {needs_same, NULL, run_blend, PRODUCT,
                              run_two_codes};
static const OpRow row_max = {needs_same, NULL, run_blend, MOVES, NULL};
static const OpRow row_scale = {needs_same, prepare_scale, run_scale, 0, NULL};
static const OpRow row_act = {needs_same, NULL, run_scale, MOVES | TABLE,
                              run_act_codes};
static const OpRow row_upsample = {needs_upsample, NULL, run_upsample, MOVES,
                                   NULL};
static const OpRow row_gather = {needs_same, prepare_gather, run_gather, MOVES,
                                 NULL};
static const OpRow row_softmax = {needs_same, NULL, run_softmax, 0, NULL};
static const OpRow row_layernorm = {needs_same, prepare_norm, run_norm, 0,
                                    NULL};
static const OpRow row_group_norm = {needs_all, prepare_norm, run_norm, 0,
                                     NULL};
static const OpRow row_mix = {needs_all, NULL, run_mix, 0, NULL};
static const OpRow row_offset = {needs_all, prepare_offset, run_offset, 0,
                                 NULL};
static const OpRow row_gather_pixels = {needs_all, prepare_pixels,
                                        run_gather_pixels, MOVES, NULL};
static const OpRow row_transpose = {needs_all, NULL, run_transpose, MOVES,
                                    NULL};
static const OpRow row_reshape = {needs_all, NULL, run_reshape, MOVES, NULL};
static const OpRow row_reduce = {needs_same, NULL, run_reduce, 0, NULL};
static const OpRow row_nothing = {NULL, NULL, NULL, 0, NULL};

#define row_conv_grouped row_conv
#define row_conv_depthwise row_conv
#define row_add_channels row_add
#define row_mul_channels row_mul
#define row_rmsnorm row_layernorm
#define row_matmul_channels row_mix
#define row_matmul_pixels row_mix
#define row_attention row_mix
#define row_add_constants row_offset
#define row_mul_constants row_offset
#define row_reduce_mean row_reduce
#define row_reduce_sum row_reduce
#define row_reduce_max row_reduce
/* No values: */
#define row_layer row_nothing
#define row_concat row_nothing
#define row_load row_nothing
#define row_store row_nothing
#define row_load_weights row_nothing
#define row_load_bias row_nothing
#define row_host row_nothing

static const OpRow *const op_rows[HW_OP_COUNT] = {
#define HW_OP(NAME, name, traits, doc) [HW_OP_##NAME] = &row_##name,
#include "hwspec/ops.def"
#undef HW_OP
};

bool job_prepare(Run *run, const Work *work, Job *out) {
    const OpRow *row = op_rows[work->op];
    *out = (Job){.work = work};
    if (work->stages && !staged_read(run, work, &out->staged))
        return false;
    if (!sums_open(run, work, &out->sums))
        return false;
    if (run->options.memory_only)
        return true;
    out->quant = prepare_quant(run, work);
    if (out->quant && !(row->rules >> out->quant->rule & 1)) {
        fault(run, "engines do not compute this on codes by \"%s\"",
              quant_rule_name[out->quant->rule]);
        return false;
    }
    if (op_is_fused(work->op))
        prepare_pool(run, out);
    if (row->prepare && !row->prepare(run, out))
        return false;
    return out->quant ? quant_suits(run, out->quant, middle_channels(work))
                      : prepare_act(run, out);
}

Box job_needs(const Job *job, Box out) {
    return op_rows[job->work->op]->needs(job->work, out);
}

/* Numbers by channel as a volume. */
static Patch spread_channels(Arena *arena, const Patch *in2, const Patch *out) {
    Patch spread = patch_new(arena, out->full, out->box);
    size_t plane = patch_plane(out);
    for (size_t i = 0; i < patch_count(out); i++)
        spread.at[i] = in2->at[i / plane];
    return spread;
}

void job_run(Arena *arena, const Job *job, const Patch *in, const Patch *in2,
             Patch *out) {
    Operands operands = {arena, in, in2, out};
    Patch spread;
    if (insn_by_channel(job->work->op)) {
        spread = spread_channels(arena, in2, out);
        operands.in2 = &spread;
    }
    const OpRow *row = op_rows[job->work->op];
    if (job->quant && row->run_codes) {
        row->run_codes(job, &operands);
        return;
    }
    row->run(job, &operands);
    if (job->quant)
        quant_move(job->quant, out->at, patch_count(out));
}
