/* work.c - fields of an instruction as work to do; see work.h.
 *
 * Input: one instruction. Output: a Work whose sizes agree with each other.
 * Which fields make up which size is a table; a field that the row lacks takes
 * the value of another one, or is derived. Nothing that comes out of here can
 * make a later step divide by zero, overflow, or run for more than
 * MAX_PRODUCTS.
 */
#include "sim/work.h"
#include "sim/staged.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_FIELD = 1 << 16, MAX_SIZE = 1 << 24 };
/* Ten times the largest layer in use; minutes, not days. */
static const uint64_t MAX_PRODUCTS = UINT64_C(1) << 37;
static const uint64_t MAX_PADDED = SHAPE_MAX_COUNT / 4;

static bool is_move(HwOp op) {
    return op == HW_OP_LOAD || op == HW_OP_STORE;
}

/* ---- numbers ---- */

typedef struct Reader {
    Run *run;
    const HwFields *f;
    bool ok;
} Reader;

/* A field's value in lo..hi; `absent` where the row does not have it. */
static uint32_t number(Reader *r, HwField field, uint32_t absent, uint32_t lo,
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

static bool flag(const HwFields *f, HwField field) {
    return f->set[field] && f->num[field] != 0;
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
            number(r, fields->kernel[axis], absent.kernel, 1, MAX_FIELD);
        w->stride =
            number(r, fields->stride[axis], absent.stride, 1, MAX_FIELD);
        w->pad = number(r, fields->pad[axis], absent.pad, 0, MAX_FIELD);
        w->dilation = 1;
        if (fields->dilation[axis] != HW_F_COUNT)
            w->dilation = number(r, fields->dilation[axis], absent.dilation, 1,
                                 MAX_FIELD);
        absent = *w;
    }
}

static Extent read_extent(Reader *r, HwOperand operand, Extent absent) {
    Extent e;
    e.c = number(r, HW_FIELD_OF(operand, C), absent.c, 1, MAX_SIZE);
    e.w = number(r, HW_FIELD_OF(operand, W), absent.w, 1, MAX_SIZE);
    bool square = r->f->set[HW_FIELD_OF(operand, W)];
    e.h = number(r, HW_FIELD_OF(operand, H), square ? e.w : absent.h, 1,
                 MAX_SIZE);
    return e;
}

/* ---- sizes ---- */

/* Windows that fit into size + 2 pad; at least 1. */
static uint32_t windows(uint32_t size, const Window *w) {
    uint64_t padded = (uint64_t)size + 2 * w->pad;
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
              w[axis].stride, w[axis].pad);
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
    w->pool_global = flag(r->f, HW_F_POOL_GLOBAL);
    w->mid = w->in;
    if (fused) {
        Extent mid = after_window(&w->in, w->conv, w->out.c);
        w->mid.c = number(r, HW_F_MID_C, mid.c, 1, MAX_SIZE);
        w->mid.w = number(r, HW_F_MID_W, mid.w, 1, MAX_SIZE);
        w->mid.h = number(r, HW_F_MID_H, mid.h, 1, MAX_SIZE);
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
    default:
        return expected_out(w);
    }
}

static bool check_sizes(Reader *r, const Work *w) {
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
    w->patch[ROWS] = number(r, HW_F_PATCH_H, w->in.h, 1, MAX_SIZE);
    w->patch[COLS] = number(r, HW_F_PATCH_W, w->in.w, 1, MAX_SIZE);
    w->shift[ROWS] = number(r, HW_F_SHIFT_H, 0, 0, w->in.h - 1);
    w->shift[COLS] = number(r, HW_F_SHIFT_W, 0, 0, w->in.w - 1);
}

static void read_sizes(Reader *r, Work *w) {
    const HwFields *f = r->f;
    w->in = read_extent(r, HW_IN, (Extent){1, 1, 1});
    /* the output's channels, until what they default to is known */
    HwField channels = f->set[HW_F_OUT_C] ? HW_F_OUT_C : HW_F_MID_C;
    w->out.c = number(r, channels, w->in.c, 1, MAX_SIZE);
    w->groups = number(r, HW_F_GROUPS, 0, 0, MAX_SIZE);
    if (w->op == HW_OP_CONV_DEPTHWISE)
        w->groups = w->in.c;
    read_sizes_of_windows(r, w);
    w->factor[COLS] = number(r, HW_F_FACTOR_W, 1, 1, 256);
    w->factor[ROWS] = number(r, HW_F_FACTOR_H, w->factor[COLS], 1, 256);
    read_patches(r, w);
    w->out_turns = number(r, HW_F_OUT_RING, 0, 0, MAX_SIZE) > 0;
    w->out_row = w->out_turns ? number(r, HW_F_OUT_ROW, 0, 0, MAX_SIZE) : 0;
    w->order = number(r, HW_F_ORDER, 12, 0, 210);
    w->out = read_extent(r, HW_OUT, expected_out(w));
    if (w->op == HW_OP_FC) {
        w->conv[ROWS] = (Window){w->in.h, 1, 0, 1};
        w->conv[COLS] = (Window){w->in.w, 1, 0, 1};
    }
}

/* ---- places ---- */

/* As the instruction says. A second input that says nothing is replicated as
 * the first one is. */
static Repl said_repl(Reader *r, HwOperand operand, bool part) {
    const HwField own[] = {HW_F_IN_FULL, HW_F_IN_REPL, HW_F_IN_UNITS,
                           HW_F_IN_WIDTH};
    const HwField parent[] = {HW_F_IN_PART_FULL, HW_F_IN_PART_REPL,
                              HW_F_IN_PART_UNITS, HW_F_IN_PART_WIDTH};
    uint32_t v[4];
    for (int i = 0; i < 4; i++) {
        HwField in = part ? parent[i] : own[i];
        HwField field = (HwField)((int)in + (int)operand);
        bool as_first = operand == HW_IN2 && !r->f->set[field];
        v[i] = number(r, as_first ? in : field, 0, 0, MAX_FIELD);
    }
    return (Repl){v[0], v[1], v[2], v[3]};
}

/* All zero without copies. */
static Repl read_repl(Reader *r, HwOperand operand, bool part) {
    Repl repl = said_repl(r, operand, part);
    bool copied = repl.sections && repl.units && repl.width;
    return copied ? repl : (Repl){0};
}

static bool is_replicated(const HwSpec *spec, uint32_t memory) {
    return spec->replication.memories >> memory & 1;
}

/* Bytes from the start of a part's parent to where its address points. */
static bool step_back(Reader *r, Spot *spot) {
    const HwMemory *m = &r->run->spec->memory[spot->memory];
    uint64_t behind = address_part(m->layout, &spot->whole, spot->part_c);
    if (behind <= spot->offset) {
        spot->offset -= behind;
        return true;
    }
    fault(r->run, "%s at %s, from channel %u of %u on, would start before it",
          spot->what, address_text(r->run, spot->memory, spot->offset),
          spot->part_c, spot->whole.c);
    return false;
}

/* Makes the spot's volume that of the line buffer, if it is one. */
static bool read_lines(Reader *r, HwOperand operand, Spot *spot) {
    LineBuffer *l = &spot->lines;
    l->band = number(r, HW_FIELD_OF(operand, BAND), 0, 0, MAX_FIELD);
    l->keep = number(r, HW_FIELD_OF(operand, KEEP), 0, 0, MAX_FIELD);
    l->span = number(r, HW_FIELD_OF(operand, SPAN), 1, 0, MAX_FIELD);
    l->shift = number(r, HW_FIELD_OF(operand, SHIFT), 0, 0, MAX_FIELD);
    uint64_t pixels = lines_pixels(l, spot->pitch);
    if (!l->band)
        return false;
    if (l->span && pixels <= MAX_SIZE) {
        spot->whole.h = 1;
        spot->whole.w = (uint32_t)pixels;
        return true;
    }
    fault(r->run, "%s lies in a line buffer of impossible size", spot->what);
    r->ok = false;
    return false;
}

/* Pixels of a ring or a line buffer; those that a load or store moves begin
 * with the row and column of the work, in a tensor as wide as its `in`. */
static void read_ring(Reader *r, HwOperand operand, const Extent *size,
                      const Work *w, Spot *spot) {
    bool moves = is_move(w->op);
    uint32_t rows = number(r, HW_FIELD_OF(operand, RING), 0, 0, MAX_SIZE);
    spot->pitch = number(r, HW_FIELD_OF(operand, PITCH),
                         moves ? w->in.w : size->w, 1, MAX_SIZE);
    bool lines = read_lines(r, operand, spot);
    if (!rows && !lines)
        return;
    spot->ring = true;
    spot->h = size->h;
    spot->w = size->w;
    spot->row = number(r, HW_FIELD_OF(operand, ROW), w->row, 0, MAX_SIZE);
    spot->col = number(r, HW_FIELD_OF(operand, COL), w->col, 0, MAX_SIZE);
    if (!lines) {
        spot->whole.h = rows;
        spot->whole.w = spot->pitch;
    }
}

/* The operand's volume: itself, or the larger one that it is part of. */
static bool read_spot(Reader *r, const Work *w, HwOperand operand,
                      const char *what, const Extent *size, Spot *out) {
    const HwFields *f = r->f;
    Spot spot = {
        .what = what, .c = size->c, .whole = {size->c, size->h, size->w, {0}}};
    if (!insn_operand(r->run->spec, w->op, f, operand, &spot.memory,
                      &spot.offset)) {
        fault(r->run, "%s lies in no memory", what);
        return false;
    }
    spot.part = flag(f, HW_FIELD_OF(operand, PART));
    read_ring(r, operand, size, w, &spot);
    if (is_replicated(r->run->spec, spot.memory))
        spot.whole.repl = read_repl(r, operand, spot.part);
    if (!spot.part) {
        *out = spot;
        return r->ok;
    }
    spot.part_c = number(r, HW_FIELD_OF(operand, PART_START), 0, 0, MAX_SIZE);
    uint32_t whole = number(r, HW_FIELD_OF(operand, PART_C), 0, 0, MAX_SIZE);
    uint32_t least = spot.part_c + spot.c;
    spot.whole.c = whole ? whole : least; /* older texts do not say */
    if (whole) {
        spot.said = spot.whole;
        spot.said.repl = said_repl(r, operand, true);
    }
    *out = spot;
    bool ok = r->ok && step_back(r, &spot);
    out->offset = spot.offset;
    return ok;
}

/* An engine reaches some memories, and others by tiles. */
static bool reaches(Reader *r, const Work *w, HwOperand operand,
                    const Spot *spot) {
    const HwSpec *spec = r->run->spec;
    if (w->engine < 0)
        return true;
    const HwEngine *engine = &spec->engine[w->engine];
    const HwMemory *m = &spec->memory[spot->memory];
    bool tiled = w->tile.on || m->role == HW_ACTIVE || engine->ahead;
    if (tiled && engine->lies[operand] >> spot->memory & 1)
        return true;
    fault(r->run, "%s at %s: engine %s cannot reach it%s", spot->what,
          address_text(r->run, spot->memory, spot->offset), engine->name,
          tiled ? "" : " but by tiles");
    return false;
}

static bool place_operand(Reader *r, const Work *w, HwOperand operand,
                          const char *what, const Extent *size, Place *out) {
    Spot spot;
    return read_spot(r, w, operand, what, size, &spot) &&
           reaches(r, w, operand, &spot) && place_make(r->run, &spot, out);
}

static bool place_operands(Reader *r, Work *w) {
    w->has_in2 = insn_is_binary(w->op);
    if (!(hw_op_traits[w->op] & HW_MATRIX))
        w->in2 = insn_by_channel(w->op) ? (Extent){w->in.c, 1, 1} : w->in;
    bool ok = place_operand(r, w, HW_IN, "input", &w->in, &w->in_at);
    if (w->has_in2)
        ok &= place_operand(r, w, HW_IN2, "second input", &w->in2, &w->in2_at);
    return place_operand(r, w, HW_OUT, "output", &w->out, &w->out_at) && ok;
}

/* A load brings into active memory what a store takes out of it. */
static bool moves_across(Reader *r, const Work *w) {
    const HwMemory *m = r->run->spec->memory;
    bool from = m[w->in_at.memory].role == HW_ACTIVE;
    bool to = m[w->out_at.memory].role == HW_ACTIVE;
    if (from == (w->op == HW_OP_STORE) && to == (w->op == HW_OP_LOAD))
        return true;
    fault(r->run, "a %s from %s to %s", hw_op_name[w->op],
          m[w->in_at.memory].name, m[w->out_at.memory].name);
    return false;
}

/* Of a move the side in active memory holds just the rows, or columns of them,
 * densely. */
static bool read_move(Reader *r, Work *w) {
    const HwFields *f = r->f;
    bool by_in = f->set[HW_F_IN_C];
    w->in = read_extent(r, by_in ? HW_IN : HW_OUT, (Extent){1, 1, 1});
    w->row = number(r, HW_F_ROW_FIRST, 0, 0, w->in.h - 1);
    uint32_t last = number(r, HW_F_ROW_LAST, w->in.h - 1, w->row, w->in.h - 1);
    w->rows = last - w->row + 1;
    w->col = number(r, HW_F_COL_FIRST, 0, 0, w->in.w - 1);
    last = number(r, HW_F_COL_LAST, w->in.w - 1, w->col, w->in.w - 1);
    w->cols = last - w->col + 1;
    Extent held = {w->in.c, w->rows, w->cols};
    bool load = w->op == HW_OP_LOAD;
    w->engine = -1;
    return r->ok &&
           place_operand(r, w, HW_IN, "source", load ? &w->in : &held,
                         &w->in_at) &&
           place_operand(r, w, HW_OUT, "destination", load ? &held : &w->in,
                         &w->out_at) &&
           moves_across(r, w);
}

/* ---- weights ---- */

/* Byte of the memory for weights; its size: beyond. */
static uint64_t weights_byte(const Reader *r) {
    const HwMemory *m = &r->run->spec->memory[r->run->spec->weights];
    int64_t at =
        r->f->set[HW_F_WEIGHTS_ADDR] ? r->f->num[HW_F_WEIGHTS_ADDR] : -1;
    if (at < (int64_t)m->base)
        return m->size;
    uint64_t units = (uint64_t)at - m->base;
    return units > m->size / m->unit ? m->size : units * m->unit;
}

static bool read_staged(Reader *r, Work *w) {
    w->stages = hwspec_stages(r->run->spec, w->op);
    if (!w->stages)
        return true;
    uint32_t groups = work_groups(r->run, w);
    uint64_t taps = (uint64_t)w->conv[ROWS].kernel * w->conv[COLS].kernel *
                    (w->in.c / groups);
    w->first_c = number(r, HW_F_WEIGHTS_FIRST, 0, 0, MAX_SIZE);
    if (!taps || taps > MAX_SIZE) {
        fault(r->run, "has no weights, or too many: %" PRIu64 " a channel",
              taps);
        return false;
    }
    return r->ok && staged_place(r->run, w->layer, weights_byte(r), w->first_c,
                                 w->out.c, (uint32_t)taps, &w->weights_at);
}

/* Where the row does not tell it there is one. */
static bool source_of_weights(const Reader *r, uint32_t *out) {
    const HwSpec *spec = r->run->spec;
    int64_t id = r->f->num[HW_F_WEIGHTS_MEMORY];
    *out = (uint32_t)spec->tiling.rows.weights_from;
    if (!r->f->set[HW_F_WEIGHTS_MEMORY])
        return true;
    for (*out = 0; *out < spec->n_memories; ++*out)
        if (spec->memory[*out].id == id &&
            (spec->tiling.rows.weights_in >> *out & 1))
            return true;
    fault(r->run, "loads weights from memory %" PRId64 ", where none lie", id);
    return false;
}

static bool read_load_weights(Reader *r, Work *w) {
    uint32_t taps = number(r, HW_F_WEIGHTS_TAPS, 1, 1, MAX_SIZE);
    w->engine = -1;
    w->first_c = number(r, HW_F_WEIGHTS_FIRST, 0, 0, MAX_SIZE);
    uint32_t last =
        number(r, HW_F_WEIGHTS_LAST, w->first_c, w->first_c, MAX_SIZE);
    if (!r->run->spec->tiling.rows.weights_from) {
        fault(r->run, "the machine loads no weights");
        return false;
    }
    if (!source_of_weights(r, &w->from))
        return false;
    return r->ok && staged_place(r->run, w->layer, weights_byte(r), w->first_c,
                                 last - w->first_c + 1, taps, &w->weights_at);
}

/* Of a volume in backing memory a load or a store touches just some rows. */
uint32_t work_operands(const Work *w, Operand out[4]) {
    uint32_t n = 0;
    bool loads = w->op == HW_OP_LOAD, stores = w->op == HW_OP_STORE;
    if (w->op == HW_OP_LOAD_WEIGHTS) {
        out[0] = (Operand){w->weights_at, true};
        return 1;
    }
    out[n++] = (Operand){
        loads ? place_rows(&w->in_at, w->row, w->rows) : w->in_at, false};
    if (w->has_in2)
        out[n++] = (Operand){w->in2_at, false};
    if (w->stages)
        out[n++] = (Operand){w->weights_at, false};
    out[n++] = (Operand){
        stores ? place_rows(&w->out_at, w->row, w->rows) : w->out_at, true};
    return n;
}

/* ---- the rest ---- */

/* Byte of the first active memory; 0 where the row does not say. */
static uint64_t buffer_byte(Reader *r, HwField field) {
    const HwMemory *m = &r->run->spec->memory[0];
    int64_t at = r->f->set[field] ? r->f->num[field] : (int64_t)m->base;
    uint64_t units = (uint64_t)at - m->base;
    if (at >= (int64_t)m->base && units <= m->size / m->unit)
        return units * m->unit;
    fault(r->run, "%s is %" PRId64 ", outside %s", hw_field_name[field], at,
          m->name);
    r->ok = false;
    return 0;
}

/* Tiles of channels are of convolutions without groups, or depthwise: then of
 * as many input channels. */
static void check_nest(Reader *r, const Work *w) {
    bool depthwise = w->op == HW_OP_CONV_DEPTHWISE;
    if (w->op != HW_OP_CONV && !depthwise) {
        fault(r->run, "%s has no tiles of channels", hw_op_name[w->op]);
        r->ok = false;
    } else if (depthwise ? w->out.c != w->in.c || w->tile.in_c != w->tile.c
                         : w->groups > 1) {
        fault(r->run, "%u channels to %u cannot be tiled by %u and %u", w->in.c,
              w->out.c, w->tile.in_c, w->tile.c);
        r->ok = false;
    }
}

static void read_nest(Reader *r, Work *w) {
    w->tile.weights_stay = flag(r->f, HW_F_TILE_STAYS);
    w->tile.weights[0] = buffer_byte(r, HW_F_TILE_WEIGHTS0);
    w->tile.weights[1] = buffer_byte(r, HW_F_TILE_WEIGHTS1);
    w->tile.sums = buffer_byte(r, HW_F_TILE_SUMS);
    check_nest(r, w);
}

static void read_tiling(Reader *r, Work *w) {
    if (!flag(r->f, HW_F_TILE_ON))
        return;
    w->tile.on = true;
    w->tile.w = number(r, HW_F_TILE_W, w->out.w, 1, MAX_SIZE);
    w->tile.h = number(r, HW_F_TILE_H, w->out.h, 1, MAX_SIZE);
    w->tile.buffer[0] = buffer_byte(r, HW_F_TILE_BUFFER0);
    w->tile.buffer[1] = buffer_byte(r, HW_F_TILE_BUFFER1);
    w->tile.c = number(r, HW_F_TILE_C, 0, 0, MAX_SIZE);
    uint32_t least = w->tile.c > 0; /* without tiles of channels: 0, all */
    w->tile.in_c = number(r, HW_F_TILE_IN_C, w->in.c, least, MAX_SIZE);
    if (!w->tile.in_c)
        w->tile.in_c = w->in.c;
    if (w->tile.c)
        read_nest(r, w);
}

static void read_act(Reader *r, Work *w) {
    const HwFields *f = r->f;
    w->act_exact = f->set[HW_F_ACT];
    w->says_act = w->act_exact || f->set[HW_F_RELU] || f->set[HW_F_PRELU];
    w->act = number(r, HW_F_ACT, 0, 0, HW_ACT_COUNT);
    if (!w->act_exact && flag(f, HW_F_PRELU))
        w->act = HW_ACT_PRELU + 1;
    else if (!w->act_exact && flag(f, HW_F_RELU))
        w->act = HW_ACT_RELU + 1;
    w->prelu = w->act == HW_ACT_PRELU + 1 || w->act == HW_ACT_LEAKY + 1;
}

static void read_flags(const HwFields *f, Work *w) {
    w->adds_bias = !f->set[HW_F_BIAS] || f->num[HW_F_BIAS] != 0;
    const char *method = f->set[HW_F_METHOD] ? f->str[HW_F_METHOD] : NULL;
    w->zero_fill = method && strcmp(method, "Zero") == 0;
    w->has_repl = f->set[HW_F_IN_FULL];
    w->pingpong = !f->set[HW_F_PINGPONG] || f->num[HW_F_PINGPONG] != 0;
    w->halfrate = flag(f, HW_F_HALFRATE);
    w->parallel_read = flag(f, HW_F_PARALLEL_READ);
}

/* Older listings say block 0 of the only block there is: what works ahead
 * reads, without tiles, from outside active memory. */
static bool works_ahead(const HwSpec *spec, const HwFields *f, HwOp op) {
    uint32_t memory;
    uint64_t offset;
    return f->set[HW_F_BLOCK] && f->num[HW_F_BLOCK] == 0 &&
           !flag(f, HW_F_TILE_ON) &&
           insn_operand(spec, op, f, HW_IN, &memory, &offset) &&
           spec->memory[memory].role != HW_ACTIVE;
}

static int32_t engine_of(const HwSpec *spec, const HwFields *f, HwOp op) {
    bool ahead = works_ahead(spec, f, op);
    int32_t engine = ahead ? hwspec_engine_ahead(spec, op) : -1;
    return engine >= 0 ? engine : hwspec_engine(spec, op);
}

static bool read_run(Reader *r, Work *w) {
    w->engine = engine_of(r->run->spec, r->f, w->op);
    if (w->engine < 0) {
        fault(r->run, "no engine runs %s", hw_op_name[w->op]);
        return false;
    }
    read_act(r, w);
    read_flags(r->f, w);
    read_sizes(r, w);
    read_tiling(r, w);
    w->in_repl = read_repl(r, HW_IN, false);
    return r->ok && check_effort(r, w) && check_sizes(r, w) &&
           place_operands(r, w) && read_staged(r, w);
}

static bool read_work(Reader *r, Work *w) {
    switch (w->op) {
    case HW_OP_HOST:
    case HW_OP_LAYER:
        return true;
    case HW_OP_CONCAT:
        if (r->f->set[HW_F_OUT_C])
            w->out = read_extent(r, HW_OUT, (Extent){1, 1, 1});
        return r->ok;
    case HW_OP_LOAD_WEIGHTS:
        return read_load_weights(r, w);
    case HW_OP_LOAD:
    case HW_OP_STORE:
        return read_move(r, w);
    default:
        return read_run(r, w);
    }
}

bool work_read(Run *run, const HwInsn *insn, Work *out) {
    HwFields fields;
    insn_fields(run->spec, insn, &fields);
    Reader r = {run, &fields, true};
    *out =
        (Work){.op = insn_op(run->spec, insn),
               .step = fields.set[HW_F_STEP] ? fields.num[HW_F_STEP] : NO_STEP};
    out->has_waits = insn_waits(run->spec, &fields, &out->waits);
    work_names(run, &fields, out);
    run->who = out->name;
    if (!read_work(&r, out))
        return false;
    if (!run->options.time_only && !run->options.lax)
        fields_judge(run, insn, &fields, out);
    return true;
}
