/* host_windows.c - convolutions, pools and inner products of the host; see
 * host.h. The arithmetic is that of the engines' instructions. */
#include "sim/host.h"
#include "sim/kernel.h"
#include "sim/quant.h"

/* Names of the attributes of a window. */
typedef struct WindowNames {
    const char *kernel, *stride, *pad, *pad_end, *dilation;
} WindowNames;

static const WindowNames plain = {"kernel", "stride", "pad", "pad_end",
                                  "dilation"};
/* Pools have no dilation: this name is never found. */
static const WindowNames fused_pool = {"pool_kernel", "pool_stride", "pool_pad",
                                       "pool_pad_end", "pool_dilation"};

static void read_window(const HostLayer *layer, const WindowNames *names,
                        Window out[2]) {
    for (uint32_t axis = 0; axis < 2; axis++) {
        Window *w = &out[axis];
        w->kernel = host_count(layer, names->kernel, axis, 1);
        w->stride = host_count(layer, names->stride, axis, 1);
        w->pad = host_count(layer, names->pad, axis, 0);
        w->dilation = host_count(layer, names->dilation, axis, 1);
        w->kernel += w->kernel == 0;
        w->stride += w->stride == 0;
        w->dilation += w->dilation == 0;
    }
}

static Patch patch_of(const Region *region, const float *value) {
    Extent e = host_extent(region);
    /* the tasks write to outputs only */
    return (Patch){e, whole_box(&e), (float *)(uintptr_t)value};
}

static bool too_large(const HostCall *call) {
    fault(call->run, "its window is more than can be simulated");
    return false;
}

static bool host_weight_codes(const HostCall *call, uint64_t n,
                              uint32_t channels, ConvTask *out) {
    bool sane = n <= UINT32_MAX;
    Shape shape = {1, {sane ? (uint32_t)n : 0}};
    return quant_suits(call->run, call->quant, channels) &&
           quant_weights(call->run, call->layer->name, &shape, channels, out);
}

static bool conv_task(const HostCall *call, const Window w[2], uint32_t in_c,
                      uint32_t out_c, bool deconv, ConvTask *out) {
    uint32_t groups = host_count(call->layer, "groups", 0, 1);
    groups += groups == 0;
    if (in_c % groups || out_c % groups) {
        fault(call->run, "%u channels to %u do not divide into %u groups", in_c,
              out_c, groups);
        return false;
    }
    uint64_t taps = (uint64_t)w[ROWS].kernel * w[COLS].kernel;
    uint64_t n = taps * (deconv ? out_c : in_c) / groups;
    *out = (ConvTask){.window = w, .groups = groups};
    n *= deconv ? in_c : out_c;
    if (call->quant)
        return host_weight_codes(call, n, out_c, out);
    out->weight = host_blob(call, "weight", n);
    out->bias = host_blob(call, "bias", out_c);
    if (!out->weight)
        fault(call->run, "it has no weights");
    return out->weight != NULL;
}

static bool run_conv(const HostCall *call) {
    Window w[2];
    read_window(call->layer, &plain, w);
    Patch in = patch_of(&call->layer->in[0], call->in[0]);
    Patch out = patch_of(&call->layer->out[0], call->out[0]);
    ConvTask task;
    if (!window_feasible(w, in.full.c, &out.full))
        return too_large(call);
    if (!conv_task(call, w, in.full.c, out.full.c, false, &task))
        return false;
    if (call->quant)
        quant_conv(call->run->work, &task, call->quant, &in, &out);
    else
        conv_run(call->run->work, &task, &in, &out);
    return true;
}

static bool run_deconv(const HostCall *call) {
    Window w[2];
    read_window(call->layer, &plain, w);
    Patch in = patch_of(&call->layer->in[0], call->in[0]);
    Patch out = patch_of(&call->layer->out[0], call->out[0]);
    ConvTask task;
    if (!window_feasible(w, out.full.c, &in.full))
        return too_large(call);
    if (!conv_task(call, w, in.full.c, out.full.c, true, &task))
        return false;
    if (call->quant)
        quant_deconv(call->run->work, &task, call->quant, &in, &out);
    else
        deconv_run(&task, &in, &out);
    return true;
}

/* `prefix`: of the attributes' names, which CONV_POOL tells apart. */
static PoolTask pool_task(const HostCall *call, bool fused, const Extent *in,
                          Window w[2]) {
    const HostLayer *layer = call->layer;
    const WindowNames *names = fused ? &fused_pool : &plain;
    read_window(layer, names, w);
    bool all = host_count(layer, fused ? "pool_global" : "global", 0, 0);
    for (int axis = 0; all && axis < 2; axis++)
        w[axis] = (Window){extent_axis(in, axis), 1, 0, 1};
    const char *padded = fused ? "pool_count_pad" : "count_pad";
    PoolTask task = {
        .window = w,
        .average = host_is(layer, fused ? "pool_kind" : "kind", "avg"),
        .divisor = host_count(layer, padded, 0, 0) ? DIVIDE_BY_PADDED
                                                   : DIVIDE_BY_VALID};
    for (uint32_t axis = 0; !all && axis < 2; axis++)
        task.pad_end[axis] = host_count(layer, names->pad_end, axis, 0);
    return task;
}

static bool run_pool(const HostCall *call) {
    Window w[2];
    Patch in = patch_of(&call->layer->in[0], call->in[0]);
    Patch out = patch_of(&call->layer->out[0], call->out[0]);
    PoolTask task = pool_task(call, false, &in.full, w);
    if (in.full.c != out.full.c || !window_feasible(w, 1, &out.full))
        return too_large(call);
    if (call->quant && call->quant->rule == QUANT_MEANS)
        quant_pool(&task, call->quant, &in, &out);
    else
        pool_run(&task, &in, &out);
    return true;
}

/* Windows of the convolution between input and pool, padding behind included.
 */
static uint32_t conv_size(const HostLayer *layer, const Window *w, uint32_t in,
                          uint32_t axis) {
    uint64_t reach = (uint64_t)(w->kernel - 1) * w->dilation + 1;
    uint64_t padded = in + (uint64_t)w->pad +
                      host_count(layer, "pad_end", axis, (uint32_t)w->pad);
    return padded < reach ? 1 : (uint32_t)((padded - reach) / w->stride + 1);
}

static bool run_conv_pool(const HostCall *call) {
    const HostLayer *layer = call->layer;
    Window w[2], p[2];
    read_window(layer, &plain, w);
    Patch in = patch_of(&layer->in[0], call->in[0]);
    Patch out = patch_of(&layer->out[0], call->out[0]);
    Extent size = {out.full.c, conv_size(layer, &w[ROWS], in.full.h, ROWS),
                   conv_size(layer, &w[COLS], in.full.w, COLS)};
    PoolTask pool = pool_task(call, true, &size, p);
    ConvTask task;
    if (!window_feasible(w, in.full.c, &size) ||
        !window_feasible(p, 1, &out.full))
        return too_large(call);
    if (!conv_task(call, w, in.full.c, size.c, false, &task))
        return false;
    Patch mid = patch_new(call->run->work, size, whole_box(&size));
    Channels channels = {1, size.c, (uint64_t)size.h * size.w};
    if (call->quant)
        quant_conv(call->run->work, &task, call->quant, &in, &mid);
    else
        conv_run(call->run->work, &task, &in, &mid);
    if (!call->quant && !host_act(call, &channels, mid.at))
        return false;
    pool_run(&pool, &mid, &out);
    return true;
}

/* A convolution whose kernel is as wide as its input. */
static bool fc_codes(const HostCall *call, uint64_t batch, uint64_t n,
                     uint64_t m) {
    const Window window[2] = {{1, 1, 0, 1}, {(uint32_t)n, 1, 0, 1}};
    Extent from = {1, 1, (uint32_t)n}, to = {(uint32_t)m, 1, 1};
    ConvTask task;
    if (!conv_task(call, window, 1, (uint32_t)m, false, &task))
        return false;
    for (uint64_t b = 0; b < batch; b++) {
        Patch in = {from, whole_box(&from),
                    (float *)(uintptr_t)(call->in[0] + b * n)};
        Patch out = {to, whole_box(&to), call->out[0] + b * m};
        quant_conv(call->run->work, &task, call->quant, &in, &out);
    }
    return true;
}

/* Over all axes but the first. */
static bool run_fc(const HostCall *call) {
    const Shape *in = &call->layer->in[0].shape;
    const Shape *out = &call->layer->out[0].shape;
    uint64_t batch = in->rank > 1 && out->rank > 1 ? in->dim[0] : 1;
    uint64_t n = shape_count(in) / batch, m = shape_count(out) / batch;
    if (n * batch != shape_count(in) || m * batch != shape_count(out) ||
        n * m > SHAPE_MAX_COUNT)
        return too_large(call);
    if (call->quant)
        return fc_codes(call, batch, n, m);
    const float *weight = host_blob(call, "weight", n * m);
    const float *bias = host_blob(call, "bias", m);
    if (!weight) {
        fault(call->run, "it has no weights");
        return false;
    }
    for (uint64_t b = 0; b < batch; b++)
        for (uint64_t o = 0; o < m; o++)
            call->out[0][b * m + o] =
                kernel_dot(weight + o * n, call->in[0] + b * n, n) +
                (bias ? bias[o] : 0.0f);
    return true;
}

const HostRow host_windows[] = {
    {"conv", 1, run_conv, HOST_BY_IMAGE | HOST_SUMS},
    {"deconv", 1, run_deconv, HOST_BY_IMAGE | HOST_SUMS},
    {"pool", 1, run_pool, HOST_BY_IMAGE | HOST_MEANS},
    {"conv_pool", 1, run_conv_pool, HOST_BY_IMAGE | HOST_ACTS | HOST_SUMS},
    {"fc", 1, run_fc, HOST_SUMS},
    {NULL, 0, NULL, HOST_PLAIN},
};
