/* compute_constants.c - what an instruction computes with besides its operands;
 * see compute_constants.h.
 *
 * Constants of the layer by role, from the image, else seeded. Of those by
 * channel an instruction that makes some gets its own.
 */
#include "sim/compute_constants.h"

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
        if (w->adds_bias && w->sums_first)
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

bool prepare_conv(Run *run, Job *job) {
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
    job->conv =
        (ConvTask){.window = w->conv, .groups = groups, .sums = job->sums};
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

bool prepare_pool(Run *run, Job *job) {
    const Work *w = job->work;
    const HwEngine *engine = &run->spec->engine[w->engine];
    job->pool = (PoolTask){.window = w->pool,
                           .average = op_is_average(w->op),
                           .divisor = engine->divisor == HW_DIVISOR_VALID
                                          ? DIVIDE_BY_VALID
                                          : DIVIDE_BY_KERNEL};
    return true;
}

bool prepare_scale(Run *run, Job *job) {
    const Work *w = job->work;
    job->scale = by_channel(run, w, "scale", w->in.c, 1, 0.25);
    job->bias = by_channel(run, w, "bias", w->in.c, 0, 0.1);
    return true;
}

bool prepare_gather(Run *run, Job *job) {
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

bool prepare_pixels(Run *run, Job *job) {
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
bool prepare_offset(Run *run, Job *job) {
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

bool prepare_norm(Run *run, Job *job) {
    BlobWish wish = {"eps", {1, {1}}, 1e-5, 0};
    const float *eps = blob_values(run, job->work->layer, &wish);
    job->eps = eps ? *eps : 0;
    return eps && job->eps >= 0;
}

static bool is_sloped(const char *kind) {
    return strcmp(kind, "leaky") == 0 || strcmp(kind, "prelu") == 0;
}

uint32_t middle_channels(const Work *w) {
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

bool prepare_act(Run *run, Job *job) {
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

const QuantLayer *prepare_quant(Run *run, const Work *w) {
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
