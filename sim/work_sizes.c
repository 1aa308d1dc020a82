/* work_sizes.c - an instruction's numbers as sizes and windows; see
 * work_sizes.h.
 *
 * Which fields make up which size is a table; a field that the row lacks takes
 * the value of another one, or is derived.
 */
#include "sim/work_sizes.h"

#include <inttypes.h>

/* Ten times the largest layer in use; minutes, not days. */
static const uint64_t MAX_PRODUCTS = UINT64_C(1) << 37;
static const uint64_t MAX_PADDED = SHAPE_MAX_COUNT / 4;

uint32_t read_number(Reader *r, HwField field, uint32_t absent, uint32_t lo,
                     uint32_t hi) {
    if (!r->f->set[field])
        return absent;
    int64_t value = r->f->num[field];
    if (value >= lo && value <= hi)
        return (uint32_t)value;
    fault(r->run, "%s is %" PRId64 ", not in %u..%u", hw_field_name[field],
          value, lo, hi);
    r->ok = false;
    return lo;
}

/* Fields of a window by axis: rows, columns. */
typedef struct WindowFields {
    HwField kernel[2], stride[2], pad[2], dilation[2];
} WindowFields;

static const WindowFields plain_window = {
    {HW_F_KERNEL_H, HW_F_KERNEL_W},
    {HW_F_STRIDE_H, HW_F_STRIDE_W},
    {HW_F_PAD_H, HW_F_PAD_W},
    {HW_F_DILATION_H, HW_F_DILATION_W},
};

static const WindowFields fused_pool_window = {
    {HW_F_POOL_KERNEL_H, HW_F_POOL_KERNEL_W},
    {HW_F_POOL_STRIDE_H, HW_F_POOL_STRIDE_W},
    {HW_F_POOL_PAD_H, HW_F_POOL_PAD_W},
    {HW_F_COUNT, HW_F_COUNT},
};

/* Columns first: rows take their value where the row of the hwspec has one
 * field for both. */
static void read_window(Reader *r, const WindowFields *fields, Window out[2]) {
    Window absent = {1, 1, 0, 1};
    for (int axis = COLS; axis >= ROWS; axis--) {
        Window *w = &out[axis];
        w->kernel =
            read_number(r, fields->kernel[axis], absent.kernel, 1, MAX_FIELD);
        w->stride =
            read_number(r, fields->stride[axis], absent.stride, 1, MAX_FIELD);
        w->pad = read_number(r, fields->pad[axis], (uint32_t)absent.pad, 0,
                             MAX_FIELD);
        w->dilation = 1;
        if (fields->dilation[axis] != HW_F_COUNT)
            w->dilation = read_number(r, fields->dilation[axis],
                                      absent.dilation, 1, MAX_FIELD);
        absent = *w;
    }
}

Extent read_extent(Reader *r, HwOperand operand, Extent absent) {
    Extent e;
    e.c = read_number(r, HW_FIELD_OF(operand, C), absent.c, 1, MAX_SIZE);
    e.w = read_number(r, HW_FIELD_OF(operand, W), absent.w, 1, MAX_SIZE);
    bool square = r->f->set[HW_FIELD_OF(operand, W)];
    e.h = read_number(r, HW_FIELD_OF(operand, H), square ? e.w : absent.h, 1,
                      MAX_SIZE);
    return e;
}

/* Windows that fit into size + 2 pad; at least 1. */
static uint32_t windows(uint32_t size, const Window *w) {
    uint64_t padded = size + 2 * (uint64_t)w->pad;
    if (padded < window_reach(w))
        return 1;
    return (uint32_t)((padded - window_reach(w)) / w->stride + 1);
}

/* The last window must start before the padding behind the input ends. */
static bool sizes_agree(Reader *r, const char *what, const Window w[2],
                        const Extent *in, const Extent *out) {
    for (int axis = 0; axis < 2; axis++) {
        uint32_t from = extent_axis(in, axis), to = extent_axis(out, axis);
        uint64_t last = (uint64_t)(to - 1) * w[axis].stride;
        if (last < (uint64_t)from + 2 * (uint64_t)w[axis].pad)
            continue;
        fault(r->run,
              "%s %s %u does not come from %u by kernel %u, stride %u, "
              "padding %u",
              what, axis == ROWS ? "height" : "width", to, from, w[axis].kernel,
              w[axis].stride, (uint32_t)w[axis].pad);
        return false;
    }
    return true;
}

static Extent after_window(const Extent *in, const Window w[2], uint32_t c) {
    return (Extent){c, windows(in->h, &w[ROWS]), windows(in->w, &w[COLS])};
}

static Extent after_deconv(const Extent *in, const Window w[2], uint32_t c) {
    uint64_t size[2];
    for (int axis = 0; axis < 2; axis++) {
        uint64_t whole =
            (uint64_t)(extent_axis(in, axis) - 1) * w[axis].stride +
            window_reach(&w[axis]);
        uint64_t cut = 2 * (uint64_t)w[axis].pad;
        size[axis] = whole > cut ? whole - cut : 1;
        size[axis] = size[axis] < MAX_SIZE ? size[axis] : MAX_SIZE;
    }
    return (Extent){c, (uint32_t)size[ROWS], (uint32_t)size[COLS]};
}

/* "Global" with a kernel of 1 stands for the whole input. */
static void widen_global(Work *w, const Extent *in) {
    Window *p = w->pool;
    bool single = p[ROWS].kernel == 1 && p[COLS].kernel == 1 &&
                  p[ROWS].stride == 1 && p[COLS].stride == 1;
    if (!w->pool_global || !single)
        return;
    p[ROWS] = (Window){in->h, 1, 0, 1};
    p[COLS] = (Window){in->w, 1, 0, 1};
}

static void read_sizes_of_windows(Reader *r, Work *w) {
    bool fused = op_is_fused(w->op);
    if (op_is_conv(w->op) || w->op == HW_OP_DECONV)
        read_window(r, &plain_window, w->conv);
    if (op_has_pool(w->op))
        read_window(r, fused ? &fused_pool_window : &plain_window, w->pool);
    w->pool_global = read_flag(r, HW_F_POOL_GLOBAL);
    w->mid = w->in;
    if (fused) {
        Extent mid = after_window(&w->in, w->conv, w->out.c);
        w->mid.c = read_number(r, HW_F_MID_C, mid.c, 1, MAX_SIZE);
        w->mid.w = read_number(r, HW_F_MID_W, mid.w, 1, MAX_SIZE);
        w->mid.h = read_number(r, HW_F_MID_H, mid.h, 1, MAX_SIZE);
    }
    if (op_has_pool(w->op))
        widen_global(w, &w->mid);
}

/* What an output's size is where the instruction does not say. */
static Extent expected_out(const Work *w) {
    if (op_has_pool(w->op))
        return after_window(&w->mid, w->pool, w->mid.c);
    if (op_is_conv(w->op))
        return after_window(&w->in, w->conv, w->out.c);
    if (w->op == HW_OP_DECONV)
        return after_deconv(&w->in, w->conv, w->out.c);
    if (w->op != HW_OP_UPSAMPLE)
        return w->in;
    return (Extent){w->in.c, w->in.h * w->factor[ROWS],
                    w->in.w * w->factor[COLS]};
}

static bool same_extent(Reader *r, const Extent *out, const Extent *want) {
    if (out->c == want->c && out->h == want->h && out->w == want->w)
        return true;
    fault(r->run, "its output is %ux%ux%u, but must be %ux%ux%u", out->c,
          out->h, out->w, want->c, want->h, want->w);
    return false;
}

static bool check_mix(Reader *r, const Work *w) {
    uint64_t pixels = pixels_mixed(w), groups = w->groups ? w->groups : 1;
    bool sums = w->op == HW_OP_MATMUL_PIXELS;
    bool attends = w->op == HW_OP_ATTENTION;
    Extent want = {sums      ? w->in2.c
                   : attends ? w->in2.c - w->in.c
                             : (uint32_t)(groups * pixels),
                   w->in.h, w->in.w};
    if (!pixels || w->in.c % groups || w->in2.c % groups ||
        (sums      ? w->in.c != groups * pixels
         : attends ? w->in.c >= w->in2.c
                   : w->in.c != w->in2.c)) {
        fault(r->run, "its %ux%ux%u and %ux%ux%u do not fit together", w->in.c,
              w->in.h, w->in.w, w->in2.c, w->in2.h, w->in2.w);
        return false;
    }
    return same_extent(r, &w->out, &want);
}

/* The result as it must be, as far as the operand tells. */
static Extent shaped_out(const Work *w) {
    uint32_t from[3] = {w->in.c, w->in.h, w->in.w};
    uint32_t a = w->order / 100, b = w->order / 10 % 10, c = w->order % 10;
    bool told = a + b + c == 3 && a < 3 && b < 3 && c < 3 && a != b && b != c;
    switch (w->op) {
    case HW_OP_GATHER:
        return (Extent){w->out.c, w->in.h, w->in.w};
    case HW_OP_GATHER_PIXELS:
        return (Extent){w->in.c, w->out.h, w->out.w};
    case HW_OP_REDUCE_MEAN:
    case HW_OP_REDUCE_SUM:
    case HW_OP_REDUCE_MAX:
        return (Extent){1, w->in.h, w->in.w};
    case HW_OP_TRANSPOSE:
        return told ? (Extent){from[a], from[b], from[c]} : (Extent){0};
    case HW_OP_RESHAPE:
        return extent_count(&w->out) == extent_count(&w->in) ? w->out : w->in;
    case HW_OP_ACT:
    case HW_OP_ADD:
    case HW_OP_ADD_CHANNELS:
    case HW_OP_ADD_CONSTANTS:
    case HW_OP_GROUP_NORM:
    case HW_OP_LAYERNORM:
    case HW_OP_MAX:
    case HW_OP_MUL:
    case HW_OP_MUL_CHANNELS:
    case HW_OP_MUL_CONSTANTS:
    case HW_OP_RMSNORM:
    case HW_OP_SCALE:
    case HW_OP_SOFTMAX:
        return w->in;
    case HW_OP_CONV:
    case HW_OP_CONV_DEPTHWISE:
    case HW_OP_CONV_GROUPED:
    case HW_OP_CONV_POOL_AVG:
    case HW_OP_CONV_POOL_MAX:
    case HW_OP_DECONV:
    case HW_OP_FC:
    case HW_OP_POOL_AVG:
    case HW_OP_POOL_MAX:
    case HW_OP_UPSAMPLE:
        return expected_out(w);
    case HW_OP_ATTENTION: /* check_mix */
    case HW_OP_MATMUL_CHANNELS:
    case HW_OP_MATMUL_PIXELS:
    case HW_OP_CONCAT: /* no results */
    case HW_OP_HOST:
    case HW_OP_LAYER:
    case HW_OP_LOAD:
    case HW_OP_LOAD_BIAS:
    case HW_OP_LOAD_WEIGHTS:
    case HW_OP_STORE:
    case HW_OP_COUNT:
        break;
    }
    return expected_out(w);
}

static bool sizes_follow(Reader *r, const Work *w) {
    bool fused = op_is_fused(w->op);
    if (op_is_conv(w->op) &&
        !sizes_agree(r, fused ? "convolution's output" : "output", w->conv,
                     &w->in, fused ? &w->mid : &w->out))
        return false;
    if (op_has_pool(w->op) &&
        !sizes_agree(r, "output", w->pool, &w->mid, &w->out))
        return false;
    if (op_has_pool(w->op) && w->out.c != w->mid.c) {
        fault(r->run, "its pool has %u channels in and %u out", w->mid.c,
              w->out.c);
        return false;
    }
    if (op_is_conv(w->op) || op_has_pool(w->op))
        return true;
    if (hw_op_traits[w->op] & HW_MATRIX)
        return check_mix(r, w);
    Extent want = shaped_out(w);
    if (hw_op_traits[w->op] & HW_GROUPED && w->groups && w->in.c % w->groups) {
        fault(r->run, "its %u channels are not %u groups", w->in.c, w->groups);
        return false;
    }
    return same_extent(r, &w->out, &want);
}

static uint64_t saturating(uint64_t a, uint64_t b) {
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

uint64_t window_products(const Window w[2], uint32_t channels,
                         const Extent *made) {
    uint64_t taps = (uint64_t)w[ROWS].kernel * w[COLS].kernel;
    return saturating(saturating(extent_count(made), taps), channels);
}

bool window_feasible(const Window w[2], uint32_t channels, const Extent *made) {
    uint64_t padded = channels;
    for (int axis = 0; axis < 2; axis++)
        padded = saturating(padded, (uint64_t)(extent_axis(made, axis) - 1) *
                                            w[axis].stride +
                                        window_reach(&w[axis]));
    return padded <= MAX_PADDED &&
           window_products(w, channels, made) <= MAX_PRODUCTS;
}

static bool feasible(const Work *w) {
    bool depthwise = w->op == HW_OP_CONV_DEPTHWISE;
    const Extent *made = op_is_fused(w->op) ? &w->mid : &w->out;
    if (op_is_conv(w->op) &&
        !window_feasible(w->conv, depthwise ? 1 : w->in.c, made))
        return false;
    if (w->op == HW_OP_DECONV)
        return window_products(w->conv, w->out.c, &w->in) <= MAX_PRODUCTS;
    if (w->op == HW_OP_ATTENTION)
        return saturating(extent_count(&w->in) + extent_count(&w->out),
                          (uint64_t)w->in2.h * w->in2.w) <= MAX_PRODUCTS;
    if (hw_op_traits[w->op] & HW_MATRIX)
        return saturating(extent_count(&w->out), w->in.c) <= MAX_PRODUCTS;
    return !op_has_pool(w->op) ||
           window_products(w->pool, 1, &w->out) <= MAX_PRODUCTS;
}

static bool check_effort(Reader *r, const Work *w) {
    const Extent *size[] = {&w->in, &w->mid, &w->out};
    for (int i = 0; i < 3; i++)
        if (extent_count(size[i]) > SHAPE_MAX_COUNT) {
            fault(r->run, "a volume of %ux%ux%u is too large", size[i]->c,
                  size[i]->h, size[i]->w);
            return false;
        }
    if (feasible(w))
        return true;
    fault(r->run, "its %ux%ux%u to %ux%ux%u is more than can be simulated",
          w->in.c, w->in.h, w->in.w, w->out.c, w->out.h, w->out.w);
    return false;
}

/* Windows of pixels, and the volume that they are of. */
static void read_patches(Reader *r, Work *w) {
    if (!(hw_op_traits[w->op] & HW_MATRIX))
        return;
    w->in2 = read_extent(r, HW_IN2, w->in);
    w->patch[ROWS] = read_number(r, HW_F_PATCH_H, w->in.h, 1, MAX_SIZE);
    w->patch[COLS] = read_number(r, HW_F_PATCH_W, w->in.w, 1, MAX_SIZE);
    w->shift[ROWS] = read_number(r, HW_F_SHIFT_H, 0, 0, w->in.h - 1);
    w->shift[COLS] = read_number(r, HW_F_SHIFT_W, 0, 0, w->in.w - 1);
}

void read_sizes(Reader *r, Work *w) {
    const HwFields *f = r->f;
    w->in = read_extent(r, HW_IN, (Extent){1, 1, 1});
    /* the output's channels, until what they default to is known */
    HwField channels = f->set[HW_F_OUT_C] ? HW_F_OUT_C : HW_F_MID_C;
    w->out.c = read_number(r, channels, w->in.c, 1, MAX_SIZE);
    w->groups = read_number(r, HW_F_GROUPS, 0, 0, MAX_SIZE);
    if (w->op == HW_OP_CONV_DEPTHWISE)
        w->groups = w->in.c;
    read_sizes_of_windows(r, w);
    w->factor[COLS] = read_number(r, HW_F_FACTOR_W, 1, 1, 256);
    w->factor[ROWS] = read_number(r, HW_F_FACTOR_H, w->factor[COLS], 1, 256);
    read_patches(r, w);
    w->out_turns = read_number(r, HW_F_OUT_RING, 0, 0, MAX_SIZE) > 0;
    w->out_row =
        w->out_turns ? read_number(r, HW_F_OUT_ROW, 0, 0, MAX_SIZE) : 0;
    w->order = read_number(r, HW_F_ORDER, 12, 0, 210);
    w->out = read_extent(r, HW_OUT, expected_out(w));
    if (w->op == HW_OP_FC) {
        w->conv[ROWS] = (Window){w->in.h, 1, 0, 1};
        w->conv[COLS] = (Window){w->in.w, 1, 0, 1};
    }
}

bool check_sizes(Reader *r, const Work *w) {
    return check_effort(r, w) && sizes_follow(r, w);
}
