/* compute.c - an instruction's arithmetic; see compute.h.
 *
 * Input: a Work and patches of its operands. Output: the patch of its result.
 * What an operation needs of its input, and how it is computed, is one row of a
 * table.
 */
#include "sim/compute.h"
#include "sim/blobs.h"
#include "sim/quant.h"
#include "sim/staged.h"

#include <string.h>

/* ---- constants ---- */

/* Channels of the layer's result, of which the instruction makes some, from
 * w->first on; their number if that is all. */
static uint32_t layer_channels(const Work *w, uint64_t known, uint32_t own) {
    bool some = known > own && known <= UINT32_MAX && w->first <= known - own;
    return some ? (uint32_t)known : own;
}

static uint32_t first_channel(const Work *w, uint32_t all, uint32_t own) {
    return w->stages ? w->first_c : all > own ? w->first : 0;
}

static const float *by_channel(Run *run, const Work *w, const char *role,
                               uint32_t channels, double mean, double spread) {
    const Blob *blob = blob_find(run, w->layer, role);
    uint64_t known = blob ? shape_count(&blob->value.shape) : 0;
    uint32_t all = w->stages ? staged_channels(run, w)
                             : layer_channels(w, known, channels);
    BlobWish wish = {role, {1, {all}}, mean, spread};
    const float *value = blob_values(run, w->layer, &wish);
    return value ? value + first_channel(w, all, channels) : NULL;
}

/* Weights from active memory, and what else belongs to their channels. */
static bool prepare_staged(Run *run, Job *job, uint32_t out_c) {
    const Work *w = job->work;
    uint32_t channels = staged_channels(run, w);
    if (out_c > channels || w->first_c > channels - out_c) {
        fault(run, "makes channels %u to %u; %s has %u", w->first_c,
              w->first_c + out_c - 1, w->layer, channels);
        return false;
    }
    if (!job->quant) {
        job->conv.weight = job->staged;
        if (w->adds_bias)
            job->conv.bias = by_channel(run, w, "bias", out_c, 0, 0.1);
        return true;
    }
    return quant_staged(run, w, job->staged, channels, &job->conv, &job->quant);
}

/* Of the channels that a convolution has weights for those that it makes. */
static void conv_part(ConvTask *conv, uint32_t first, uint64_t weights) {
    if (conv->weight)
        conv->weight += first * weights;
    if (conv->weight_code)
        conv->weight_code += first * weights;
    if (conv->bias_code)
        conv->bias_code += first;
}

static bool prepare_conv(Run *run, Job *job) {
    const Work *w = job->work;
    bool fused = op_is_fused(w->op), deconv = w->op == HW_OP_DECONV;
    uint32_t out_c = fused ? w->mid.c : w->out.c;
    uint32_t groups = work_groups(run, w);
    if (w->in.c % groups || out_c % groups) {
        fault(run, "%u channels to %u do not divide into %u groups", w->in.c,
              out_c, groups);
        return false;
    }
    uint32_t kh = w->conv[ROWS].kernel, kw = w->conv[COLS].kernel;
    const Blob *blob = blob_find(run, w->layer, "weight");
    uint64_t known = blob && !deconv ? shape_dim(&blob->value.shape, 0) : 0;
    uint32_t all = layer_channels(w, known, out_c);
    Shape shape = deconv ? shape_nchw(w->in.c, out_c / groups, kh, kw)
                         : shape_nchw(all, w->in.c / groups, kh, kw);
    uint64_t fan_in = (uint64_t)kh * kw * (w->in.c / groups);
    BlobWish wish = {"weight", shape, 0, blob_spread(fan_in)};
    job->conv = (ConvTask){.window = w->conv, .groups = groups};
    if (w->stages && deconv)
        job->staged = staged_as_stored(run, w, job->staged);
    if (w->stages)
        return prepare_staged(run, job, out_c);
    bool codes =
        job->quant && quant_weights(run, w->layer, &shape, all, &job->conv);
    if (!job->quant)
        job->conv.weight = blob_values(run, w->layer, &wish);
    conv_part(&job->conv, first_channel(w, all, out_c), fan_in);
    if (job->quant)
        return codes;
    if (!job->conv.weight) {
        if (!blob_find(run, w->layer, "weight"))
            fault(run, "it has no weights");
        return false;
    }
    if (w->adds_bias)
        job->conv.bias = by_channel(run, w, "bias", out_c, 0, 0.1);
    return true;
}

static bool prepare_pool(Run *run, Job *job) {
    const Work *w = job->work;
    const HwEngine *engine = &run->spec->engine[w->engine];
    job->pool = (PoolTask){.window = w->pool,
                           .average = op_is_average(w->op),
                           .divisor = engine->divisor == HW_DIVISOR_VALID
                                          ? DIVIDE_BY_VALID
                                          : DIVIDE_BY_KERNEL};
    return true;
}

static bool prepare_scale(Run *run, Job *job) {
    const Work *w = job->work;
    job->scale = by_channel(run, w, "scale", w->in.c, 1, 0.25);
    job->bias = by_channel(run, w, "bias", w->in.c, 0, 0.1);
    return true;
}

static bool prepare_gather(Run *run, Job *job) {
    const Work *w = job->work;
    BlobWish wish = {"index", {2, {w->out.c, 1}}, 0, 0};
    const float *index = blob_values(run, w->layer, &wish);
    for (uint32_t c = 0; index && c < w->out.c; c++)
        if (!(index[c] >= 0) || index[c] >= (float)w->in.c) {
            fault(run, "takes channel %g of %u", (double)index[c], w->in.c);
            return false;
        }
    job->index = index;
    return index;
}

static bool prepare_pixels(Run *run, Job *job) {
    const Work *w = job->work;
    uint32_t n = w->out.h * w->out.w;
    BlobWish wish = {"index", {1, {n}}, 0, 0};
    job->index = blob_values(run, w->layer, &wish);
    for (uint32_t i = 0; job->index && i < n; i++)
        if (!(job->index[i] >= 0) ||
            job->index[i] > (float)(w->in.h * w->in.w)) {
            fault(run, "takes pixel %g of %u", (double)job->index[i],
                  w->in.h * w->in.w);
            return false;
        }
    return job->index;
}

/* How they repeat is in the image. */
static bool prepare_offset(Run *run, Job *job) {
    const Work *w = job->work;
    const Blob *blob = blob_find(run, w->layer, "values");
    Shape shape = {3, {1, 1, 1}};
    if (blob && blob->value.shape.rank == 3)
        shape = blob->value.shape;
    const uint32_t size[] = {w->out.c, w->out.h, w->out.w};
    for (uint32_t i = 0; i < 3; i++) {
        job->period[i] = shape.dim[i];
        bool some = i == 1 && w->out_turns; /* rows, which are told */
        if (!shape.dim[i] || (!some && size[i] % shape.dim[i])) {
            fault(run, "constants of %ux%ux%u do not repeat in its %ux%ux%u",
                  shape.dim[0], shape.dim[1], shape.dim[2], size[0], size[1],
                  size[2]);
            return false;
        }
    }
    BlobWish wish = {"values", shape, 0, 1};
    job->offset = blob_values(run, w->layer, &wish);
    return job->offset;
}

static bool prepare_norm(Run *run, Job *job) {
    BlobWish wish = {"eps", {1, {1}}, 1e-5, 0};
    const float *eps = blob_values(run, job->work->layer, &wish);
    job->eps = eps ? *eps : 0;
    return eps && job->eps >= 0;
}

static bool is_sloped(const char *kind) {
    return strcmp(kind, "leaky") == 0 || strcmp(kind, "prelu") == 0;
}

/* Channels of what an activation is applied to. */
static uint32_t middle_channels(const Work *w) {
    return op_is_fused(w->op) ? w->mid.c : w->out.c;
}

/* Which one, as the instruction says; where it says nothing, the image's. */
static const char *act_kind(Run *run, const Work *w, const LayerAct *act) {
    if (!w->says_act)
        return act ? act->kind : "none";
    const char *said = hw_act_text(w->act);
    if (!act || strcmp(act->kind, said) == 0)
        return said;
    if (!w->act_exact && is_sloped(said) && is_sloped(act->kind))
        return act->kind;
    fault(run, "its activation is %s in the image, but the instruction says %s",
          act->kind, said);
    return said;
}

/* Slopes and bounds where there is no image. */
static const LayerAct unknown_act = {.alpha = 0.125, .lo = -1, .hi = 1};

static bool prepare_act(Run *run, Job *job) {
    const Work *w = job->work;
    const LayerAct *act = blob_act(run, w->layer);
    const char *kind = act_kind(run, w, act);
    const LayerAct *data = act ? act : &unknown_act;
    if (!act_named(kind, data->alpha, data->lo, data->hi, &job->act)) {
        fault(run, "there is no activation \"%s\"", kind);
        return false;
    }
    bool needs = strcmp(kind, "leaky") == 0 || strcmp(kind, "clip") == 0;
    if (needs && !act && run->listing->has_image)
        fault(run, "the image has no numbers for its %s", kind);
    bool prelu = strcmp(kind, "prelu") == 0;
    if (prelu && run->listing->has_image && !blob_find(run, w->layer, "slope"))
        fault(run, "the image has no slopes for its prelu");
    if (prelu)
        job->act.slope =
            by_channel(run, w, "slope", middle_channels(w), 0.125, 0.0625);
    return true;
}

/* ---- operations ---- */

typedef struct Operands {
    Arena *arena;
    const Patch *in, *in2;
    Patch *out;
} Operands;

static void run_conv(const Job *job, const Operands *o) {
    conv_run(o->arena, &job->conv, o->in, o->out);
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

static void run_pool_codes(const Job *job, const Operands *o) {
    if (job->quant->rule == QUANT_MEANS) {
        quant_pool(&job->pool, job->quant, o->in, o->out);
        return;
    }
    pool_run(&job->pool, o->in, o->out);
    quant_move(job->quant, o->out->at, patch_count(o->out));
}

static void run_blend_codes(const Job *job, const Operands *o) {
    size_t n = patch_count(o->out);
    for (size_t i = 0; i < n && job->quant->rule != QUANT_MOVES; i++)
        o->out->at[i] = quant_two(job->quant, o->in->at[i], o->in2->at[i]);
    if (job->quant->rule != QUANT_MOVES)
        return;
    blend_run(BLEND_MAX, o->in, o->in2, o->out);
    quant_move(job->quant, o->out->at, n);
}

static void run_act_codes(const Job *job, const Operands *o) {
    memcpy(o->out->at, o->in->at, patch_count(o->out) * sizeof(float));
    if (job->quant->rule == QUANT_TABLE)
        quant_look_up(job->quant, o->out->at, patch_count(o->out));
    else
        quant_move(job->quant, o->out->at, patch_count(o->out));
}

static void run_gather_codes(const Job *job, const Operands *o) {
    run_gather(job, o);
    quant_move(job->quant, o->out->at, patch_count(o->out));
}

static void run_gather_pixels_codes(const Job *job, const Operands *o) {
    run_gather_pixels(job, o);
    quant_move(job->quant, o->out->at, patch_count(o->out));
}

static void run_transpose_codes(const Job *job, const Operands *o) {
    run_transpose(job, o);
    quant_move(job->quant, o->out->at, patch_count(o->out));
}

static void run_reshape_codes(const Job *job, const Operands *o) {
    run_reshape(job, o);
    quant_move(job->quant, o->out->at, patch_count(o->out));
}

static void run_upsample_codes(const Job *job, const Operands *o) {
    run_upsample(job, o);
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

typedef struct OpRow {
    Box (*needs)(const Work *w, Box out);
    bool (*prepare)(Run *run, Job *job);
    void (*run)(const Job *job, const Operands *operands);
    void (*run_codes)(const Job *job, const Operands *operands);
} OpRow;

/* How an operation is computed; NO_VALUES: it computes none. */
static const OpRow row_conv = {needs_conv, prepare_conv, run_conv,
                               run_conv_codes};
static const OpRow row_conv_grouped = {needs_conv, prepare_conv, run_conv,
                                       run_conv_codes};
static const OpRow row_conv_depthwise = {needs_conv, prepare_conv, run_conv,
                                         run_conv_codes};
static const OpRow row_fc = {needs_all, prepare_conv, run_conv, run_conv_codes};
static const OpRow row_deconv = {needs_all, prepare_conv, run_deconv,
                                 run_deconv_codes};
static const OpRow row_conv_pool_max = {needs_conv_pool, prepare_conv,
                                        run_conv_pool, run_conv_pool_codes};
static const OpRow row_conv_pool_avg = {needs_conv_pool, prepare_conv,
                                        run_conv_pool, NULL};
static const OpRow row_pool_max = {needs_pool, prepare_pool, run_pool,
                                   run_pool_codes};
static const OpRow row_pool_avg = {needs_pool, prepare_pool, run_pool,
                                   run_pool_codes};
static const OpRow row_add = {needs_same, NULL, run_blend, run_blend_codes};
static const OpRow row_mul = {needs_same, NULL, run_blend, run_blend_codes};
static const OpRow row_add_channels = {needs_same, NULL, run_blend,
                                       run_blend_codes};
static const OpRow row_mul_channels = {needs_same, NULL, run_blend,
                                       run_blend_codes};
static const OpRow row_max = {needs_same, NULL, run_blend, run_blend_codes};
static const OpRow row_scale = {needs_same, prepare_scale, run_scale, NULL};
static const OpRow row_act = {needs_same, NULL, run_scale, run_act_codes};
static const OpRow row_upsample = {needs_upsample, NULL, run_upsample,
                                   run_upsample_codes};
static const OpRow row_gather = {needs_same, prepare_gather, run_gather,
                                 run_gather_codes};
static const OpRow row_softmax = {needs_same, NULL, run_softmax, NULL};
static const OpRow row_layernorm = {needs_same, prepare_norm, run_norm, NULL};
static const OpRow row_rmsnorm = {needs_same, prepare_norm, run_norm, NULL};
static const OpRow row_group_norm = {needs_all, prepare_norm, run_norm, NULL};
static const OpRow row_matmul_channels = {needs_all, NULL, run_mix, NULL};
static const OpRow row_matmul_pixels = {needs_all, NULL, run_mix, NULL};
static const OpRow row_attention = {needs_all, NULL, run_mix, NULL};
static const OpRow row_add_constants = {needs_all, prepare_offset, run_offset,
                                        NULL};
static const OpRow row_mul_constants = {needs_all, prepare_offset, run_offset,
                                        NULL};
static const OpRow row_gather_pixels = {
    needs_all, prepare_pixels, run_gather_pixels, run_gather_pixels_codes};
static const OpRow row_transpose = {needs_all, NULL, run_transpose,
                                    run_transpose_codes};
static const OpRow row_reshape = {needs_all, NULL, run_reshape,
                                  run_reshape_codes};
static const OpRow row_reduce_mean = {needs_same, NULL, run_reduce, NULL};
static const OpRow row_reduce_sum = {needs_same, NULL, run_reduce, NULL};
static const OpRow row_reduce_max = {needs_same, NULL, run_reduce, NULL};
#define NO_VALUES                                                              \
    { 0 }
static const OpRow row_layer = NO_VALUES, row_concat = NO_VALUES,
                   row_load = NO_VALUES, row_store = NO_VALUES,
                   row_load_weights = NO_VALUES, row_host = NO_VALUES;

static const OpRow *const op_rows[HW_OP_COUNT] = {
#define HW_OP(NAME, name, traits, doc) [HW_OP_##NAME] = &row_##name,
#include "hwspec/ops.def"
#undef HW_OP
};

static bool fits_rule(const Work *w, QuantRule rule) {
    switch (w->op) {
    case HW_OP_POOL_AVG:
        return rule == QUANT_MEANS;
    case HW_OP_ADD:
    case HW_OP_ADD_CHANNELS:
        return rule == QUANT_ADDS;
    case HW_OP_MUL:
    case HW_OP_MUL_CHANNELS:
        return rule == QUANT_PRODUCT;
    case HW_OP_ACT:
        return rule == QUANT_MOVES || rule == QUANT_TABLE;
    case HW_OP_POOL_MAX:
    case HW_OP_MAX:
    case HW_OP_UPSAMPLE:
    case HW_OP_GATHER:
    case HW_OP_GATHER_PIXELS:
    case HW_OP_TRANSPOSE:
    case HW_OP_RESHAPE:
        return rule == QUANT_MOVES;
    default:
        return rule == QUANT_SUMS;
    }
}

/* Of scales by channel those that the instruction makes. */
static const QuantLayer *quant_part(Run *run, const Work *w) {
    const QuantLayer *q = blob_quant(run, w->layer);
    uint32_t own = middle_channels(w);
    if (!q || w->stages || q->rule != QUANT_SUMS || q->n == 1 ||
        layer_channels(w, q->n, own) == own)
        return q;
    QuantLayer *part = ARENA_COPY(run->work, QuantLayer, q, 1);
    quant_from_channel(part, w->first);
    part->n = own;
    return part;
}

bool job_prepare(Run *run, const Work *work, Job *out) {
    const OpRow *row = op_rows[work->op];
    *out = (Job){.work = work};
    if (work->stages && !staged_read(run, work, &out->staged))
        return false;
    if (run->options.memory_only)
        return true;
    out->quant = quant_part(run, work);
    if (out->quant && (!row->run_codes || !fits_rule(work, out->quant->rule))) {
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
    if (job->quant)
        row->run_codes(job, &operands);
    else
        row->run(job, &operands);
}
