/* engine.c - a node that an engine runs: convolution, requantisation, pool.
 *
 * Input: meanings of the node, its operands in memory, the engine's
 * `arithmetic`. Output: codes in memory, and where the node says so a second
 * time. Every image reads its whole input before anything of it is written.
 * Sums are of 64 bits; what the type of sums does with them comes last.
 */
#include "sim/program/run.h"

#include "base/arith.h"
#include "base/crc.h"
#include "sim/kernel.h"

#include <string.h>

typedef struct Conv {
    const HwArith *arith;
    uint32_t images;
    uint32_t in_c, in[2], out_c, out[2];
    uint32_t kernel[2], stride[2], dilation[2], before[2], after[2];
    uint32_t full[2];   /* rows, columns at stride 1 */
    uint32_t behind[2]; /* ... at the stride, in front of the pool */
    uint32_t pitch;     /* columns of a padded row */
    bool depthwise;
    PoolKind pool;
    int64_t pad, zero[HW_ZERO_TERMS], zero_in, zero_weights;
    const int64_t *weight;
    RequantStage *stage;
    Cells from, to;
    bool copies;
    Cells copy;
} Conv;

/* ---- what the node says ---- */

static bool extents(ProgramRun *run, Conv *v) {
    enum { MOST = 1 << 14, WINDOW = 64 };
    struct {
        const char *name;
        int64_t least, most;
        uint32_t *out;
    } need[] = {
        {"in.c", 1, MOST, &v->in_c},           {"in.h", 1, MOST, &v->in[0]},
        {"in.w", 1, MOST, &v->in[1]},          {"out.c", 1, MOST, &v->out_c},
        {"out.h", 1, MOST, &v->out[0]},        {"out.w", 1, MOST, &v->out[1]},
        {"kernel.w", 1, WINDOW, &v->kernel[1]}};
    for (size_t i = 0; i < sizeof need / sizeof *need; i++) {
        int64_t value;
        if (!node_num(run, need[i].name, need[i].least, need[i].most, &value))
            return false;
        *need[i].out = (uint32_t)value;
    }
    return true;
}

/* Where a row says no pads they keep the size at stride 1. */
static bool windows(ProgramRun *run, Conv *v) {
    enum { MOST = 255 };
    int64_t kernel, n, d;
    bool ok = node_opt(run, "kernel.h", 1, MOST, v->kernel[1], &kernel);
    v->kernel[0] = (uint32_t)kernel;
    static const char *const side[2][2] = {{"pad.top", "pad.bottom"},
                                           {"pad.left", "pad.right"}};
    static const char *const stride[] = {"stride.h", "stride.w"};
    static const char *const dilation[] = {"dilation.h", "dilation.w"};
    for (int a = 0; ok && a < 2; a++) {
        int64_t s, before, after;
        ok = node_opt(run, stride[a], 1, MOST, 1, &s) &&
             node_opt(run, dilation[a], 1, MOST, 1, &d);
        n = (v->kernel[a] - 1) * d;
        ok = ok && node_opt(run, side[a][0], 0, MOST, n / 2, &before) &&
             node_opt(run, side[a][1], 0, MOST, n - n / 2, &after);
        if (!ok)
            return false;
        v->stride[a] = (uint32_t)s;
        v->dilation[a] = (uint32_t)d;
        v->before[a] = (uint32_t)before;
        v->after[a] = (uint32_t)after;
        int64_t full = v->in[a] + before + after - n;
        if (full < 1)
            return prog_fault(run, "the kernel is larger than the volume");
        v->full[a] = (uint32_t)full;
        v->behind[a] = (v->full[a] - 1) / v->stride[a] + 1;
    }
    v->pitch = v->in[1] + v->before[1] + v->after[1];
    return ok;
}

static bool pool_kind(ProgramRun *run, Conv *v) {
    static const char *const known[] = {"max", "mean", "sample"};
    enum { MOST = 255 };
    const char *edge = node_word(run, "pool.edge");
    const char *kind = node_word(run, "pool");
    v->pool = (PoolKind){"sample", "inside", {1, 1}, {1, 1}, 0};
    if (!*kind || !strcmp(kind, "none"))
        return true;
    bool is_known = false;
    for (int i = 0; i < 3; i++)
        is_known |= !strcmp(kind, known[i]);
    if (!is_known)
        return prog_fault(run, "nobody knows a pool `%s`", kind);
    int64_t k, s, kh, sh, phase;
    if (!node_num(run, "pool.kernel.w", 1, MOST, &k) ||
        !node_num(run, "pool.stride.w", 1, MOST, &s) ||
        !node_opt(run, "pool.kernel.h", 1, MOST, k, &kh) ||
        !node_opt(run, "pool.stride.h", 1, MOST, s, &sh) ||
        !node_opt(run, "pool.phase", 0, k - 1, 0, &phase))
        return false;
    v->pool = (PoolKind){kind,
                         *edge ? edge : "inside",
                         {(uint32_t)kh, (uint32_t)k},
                         {(uint32_t)sh, (uint32_t)s},
                         (uint32_t)phase};
    return true;
}

static bool shapes(ProgramRun *run, Conv *v) {
    int64_t images, depthwise;
    if (!extents(run, v) || !windows(run, v) || !pool_kind(run, v) ||
        !node_opt(run, "batch", 1, 1 << 16, 1, &images) ||
        !node_opt(run, "depthwise", 0, 1, 0, &depthwise))
        return false;
    v->images = (uint32_t)images;
    v->depthwise = depthwise;
    if (v->depthwise && v->in_c != v->out_c)
        return prog_fault(run, "depthwise, but %u channels become %u", v->in_c,
                          v->out_c);
    for (int a = 0; a < 2; a++) {
        uint32_t extent = pool_extent(&v->pool, a, v->behind[a]);
        if (v->out[a] != extent)
            return prog_fault(run, "out.%c is %u, the result has %u", "hw"[a],
                              v -> out[a], extent);
    }
    return true;
}

/* ---- arithmetic ---- */

static bool constants(ProgramRun *run, Conv *v) {
    const HwArith *a = v->arith;
    int64_t lo = hw_code_least(a->activations);
    int64_t hi = hw_code_most(a->activations);
    uint64_t taps = (uint64_t)v->kernel[0] * v->kernel[1];
    bool ok = node_opt(run, "in.zero", lo, hi, 0, &v->zero_in) &&
              node_opt(run, "weights.zero", hw_code_least(a->weights),
                       hw_code_most(a->weights), 0, &v->zero_weights);
    v->pad = a->pad.given == HW_GIVEN_ZERO ? v->zero_in : a->pad.lo;
    if (ok && a->pad.given == HW_GIVEN_LAYER)
        ok = node_num(run, "in.pad", a->pad.lo, a->pad.hi, &v->pad);
    for (int i = 0;
         ok && a->zero_points == HW_ZERO_EXPANDED && i < HW_ZERO_TERMS; i++) {
        const HwParam *p = &a->zero[i];
        const char *name = arena_printf(run->work, "zero.%s", hw_zero_term[i]);
        v->zero[i] = p->lo;
        if (p->given == HW_GIVEN_LAYER)
            ok = node_num(run, name, p->lo, p->hi, &v->zero[i]);
    }
    taps *= v->depthwise ? v->out_c : (uint64_t)v->out_c * v->in_c;
    v->weight = ok ? node_nums(run, "weights", taps) : NULL;
    for (uint64_t i = 0; v->weight && i < taps; i++)
        if (v->weight[i] < hw_code_least(a->weights) ||
            v->weight[i] > hw_code_most(a->weights))
            return prog_fault(run, "weight %llu is %lld: no code",
                              (unsigned long long)i, (long long)v->weight[i]);
    return v->weight;
}

static bool fill_param(ProgramRun *run, const Conv *v, const HwStage *s,
                       StageParam param, StageValues *out) {
    const HwParam *p = &s->param[param];
    int64_t *one = ARENA_NEW(run->work, int64_t);
    uint32_t n = p->given == HW_GIVEN_CHANNEL ? v->out_c : s->segments;
    const char *name = s->name ? arena_printf(run->work, "%s.%s", s->name,
                                              stage_param_name[param])
                               : "";
    bool ok = true;
    *one = p->lo;
    *out = (StageValues){1, one};
    switch (p->given) {
    case HW_GIVEN_NOT:
        out->value = NULL;
        break;
    case HW_GIVEN_HERE:
        break;
    case HW_GIVEN_ZERO:
        ok = node_opt(run, "out.zero", INT32_MIN, INT32_MAX, 0, one);
        break;
    case HW_GIVEN_LAYER:
        ok = node_num(run, name, p->lo, p->hi, one);
        break;
    default:
        *out = (StageValues){n, node_nums(run, name, n)};
        ok = out->value;
    }
    for (uint32_t i = 0; ok && p->given >= HW_GIVEN_CHANNEL && i < n; i++)
        if (out->value[i] < p->lo || out->value[i] > p->hi)
            return prog_fault(run, "%s[%u] is %lld: not in %lld..%lld", name, i,
                              (long long)out->value[i], (long long)p->lo,
                              (long long)p->hi);
    return ok;
}

static bool stages(ProgramRun *run, Conv *v) {
    const HwArith *a = v->arith;
    v->stage = ARENA_ARRAY(run->work, RequantStage, a->n_stages);
    for (uint32_t i = 0; i < a->n_stages; i++) {
        const HwStage *s = &a->stage[i];
        RequantStage *to = &v->stage[i];
        to->round = s->round;
        to->bias_at = s->bias_at;
        to->segments = s->segments;
        to->select = s->select;
        for (int p = 0; p < STAGE_PARAM_COUNT; p++)
            if (!fill_param(run, v, s, (StageParam)p, &to->of[p]))
                return false;
    }
    return true;
}

/* ---- places ---- */

/* The memory that the node names, else the first that the operand may lie in.
 */
static bool bank_of(ProgramRun *run, const char *what, HwOperand operand,
                    uint32_t *out) {
    uint32_t may = hwspec_lies(run->spec, HW_OP_CONV, operand);
    int64_t id;
    bool named = prog_get(node_scope(run),
                          arena_printf(run->work, "%s.memory", what), &id);
    for (uint32_t i = 0; i < run->spec->n_memories; i++) {
        const HwMemory *m = &run->spec->memory[i];
        if (named ? m->id != (uint64_t)id : !(may >> i & 1))
            continue;
        *out = i;
        if (may >> i & 1)
            return true;
        return prog_fault(run, "%s is in %s, where it may not lie", what,
                          m->name);
    }
    return prog_fault(run, "%s: no memory has the number %lld", what,
                      (long long)(named ? id : -1));
}

static bool place(ProgramRun *run, const Conv *v, const char *what,
                  HwOperand operand, const Volume *volume, Cells *out) {
    const int64_t most = INT64_C(1) << 40;
    uint32_t bank = 0;
    int64_t addr;
    if (!bank_of(run, what, operand, &bank) ||
        !node_num(run, arena_printf(run->work, "%s.addr", what), 0, most,
                  &addr))
        return false;
    const HwMemory *m = &run->spec->memory[bank];
    if ((uint64_t)addr < m->base)
        return prog_fault(run, "%s.addr is below the memory", what);
    return cells_volume(run, what, bank, ((uint64_t)addr - m->base) * m->unit,
                        v->images, volume, out);
}

static bool second(ProgramRun *run, Conv *v, const Volume *volume) {
    int64_t on, size;
    Operand o;
    if (!prog_get(node_scope(run), "out2.size", &size))
        return true;
    if (!node_opt(run, "out2.on", 0, 1, size > 0, &on))
        return false;
    if (size == 0)
        return true;
    if (!operand_of(run, node_scope(run), "out2", &o))
        return false;
    v->copies = true;
    if (o.size != cells_bytes(run, o.bank, volume) * v->images || o.reals)
        return prog_fault(run, "out2: %llu bytes, the result takes %llu",
                          (unsigned long long)o.size,
                          (unsigned long long)cells_bytes(run, o.bank, volume) *
                              v->images);
    bool ok =
        cells_volume(run, "out2", o.bank, o.start, v->images, volume, &v->copy);
    v->copy.shaped = false; /* what reads it takes bytes */
    return ok;
}

static bool places(ProgramRun *run, Conv *v) {
    Volume in = {v->in_c, v->in[0], v->in[1], {0}};
    Volume out = {v->out_c, v->out[0], v->out[1], {0}};
    if (!place(run, v, "in", HW_IN, &in, &v->from) ||
        !place(run, v, "out", HW_OUT, &out, &v->to) || !second(run, v, &out))
        return false;
    cells_apart(run, &v->from, &v->to);
    return true;
}

/* ---- sums ---- */

/* One channel of the image with its pads, and room behind it for a row that is
 * read beyond the last. */
static uint64_t plane_size(const Conv *v) {
    return (uint64_t)v->pitch * (v->in[0] + v->before[0] + v->after[0] + 1);
}

static int64_t code_of(const HwArith *a, uint8_t byte) {
    return a->activations.is_signed ? (int8_t)byte : byte;
}

static void fill_plane(const Conv *v, const uint8_t *from, int64_t less,
                       int32_t *to) {
    uint64_t n = plane_size(v);
    for (uint64_t i = 0; i < n; i++)
        to[i] = (int32_t)(v->pad - less);
    for (uint32_t y = 0; y < v->in[0]; y++)
        for (uint32_t x = 0; x < v->in[1]; x++)
            to[(uint64_t)(y + v->before[0]) * v->pitch + x + v->before[1]] =
                (int32_t)(code_of(v->arith, *from++) - less);
}

/* Adds what the taps of one plane give, at stride 1 and with the plane's pitch.
 * weight NULL: each is 1. */
static void add_taps(const Conv *v, const int32_t *plane, const int64_t *weight,
                     int64_t less, int32_t *sum) {
    size_t n = (size_t)(v->full[0] - 1) * v->pitch + v->full[1];
    for (uint32_t i = 0; i < v->kernel[0]; i++)
        for (uint32_t k = 0; k < v->kernel[1]; k++) {
            int64_t w = weight ? *weight++ - less : 1;
            kernel_add_codes(sum,
                             plane + (size_t)i * v->dilation[0] * v->pitch +
                                 (size_t)k * v->dilation[1],
                             (int32_t)w, n);
        }
}

/* Planes whose products surely fit into 32 bits when they are added. */
static uint64_t planes_at_once(const Conv *v) {
    uint64_t bits = v->arith->activations.bits + v->arith->weights.bits + 2;
    uint64_t taps = (uint64_t)v->kernel[0] * v->kernel[1];
    return bits < 31 ? (UINT64_C(1) << (31 - bits)) / taps : 0;
}

static void flush(const Conv *v, int32_t *from, int64_t *to) {
    uint64_t n = plane_size(v);
    for (uint64_t i = 0; i < n; i++)
        to[i] += from[i];
    memset(from, 0, n * sizeof *from);
}

typedef struct Sums {
    const Conv *v;
    int32_t *planes; /* of the image, in_c of them */
    int32_t *part;
    int64_t *sum;    /* of an output channel */
    int64_t *inputs; /* the sum of inputs, of the expanded form */
} Sums;

static const int32_t *plane_of(const Sums *s, uint32_t c) {
    return s->planes + c * plane_size(s->v);
}

/* Over channels first..first + n - 1 of the input; weights as they come. */
static void add_planes(Sums *s, uint32_t first, uint32_t n,
                       const int64_t *weight, int64_t less, int64_t *to) {
    const Conv *v = s->v;
    uint64_t most = planes_at_once(v), open = 0;
    uint32_t taps = v->kernel[0] * v->kernel[1];
    memset(to, 0, plane_size(v) * sizeof *to);
    for (uint32_t c = 0; c < n; c++) {
        add_taps(v, plane_of(s, first + c), weight ? weight + c * taps : NULL,
                 less, s->part);
        if (++open < most && c + 1 < n)
            continue;
        flush(v, s->part, to);
        open = 0;
    }
}

static int64_t shifted(int64_t x, int64_t by) {
    int64_t out;
    round_shift(ROUND_FLOOR, x, (uint32_t)by, &out);
    return out;
}

/* What zero points add to all sums of an output channel. */
static int64_t channel_term(const Conv *v, const int64_t *weight, uint64_t n) {
    int64_t sum = 0;
    for (uint64_t i = 0; i < n; i++)
        sum += weight[i];
    return shifted(v->zero[HW_ZERO_W] * sum, v->zero[HW_ZERO_SHIFT_W]) +
           v->zero[HW_ZERO_XW] * (v->depthwise ? 1 : v->in_c);
}

static void sum_channel(Sums *s, uint32_t o) {
    const Conv *v = s->v;
    bool expanded = v->arith->zero_points == HW_ZERO_EXPANDED;
    uint32_t first = v->depthwise ? o : 0, n = v->depthwise ? 1 : v->in_c;
    uint64_t taps = (uint64_t)v->kernel[0] * v->kernel[1] * n;
    const int64_t *weight = v->weight + o * taps;
    add_planes(s, first, n, weight, expanded ? 0 : v->zero_weights, s->sum);
    if (!expanded)
        return;
    if (v->depthwise || o == 0)
        add_planes(s, first, n, NULL, 0, s->inputs);
    int64_t more = channel_term(v, weight, taps);
    for (uint64_t i = 0; i < plane_size(v); i++)
        s->sum[i] += more + shifted(v->zero[HW_ZERO_X] * s->inputs[i],
                                    v->zero[HW_ZERO_SHIFT_X]);
}

/* ---- from sums to codes ---- */

static bool held(const HwArith *a, int64_t *x) {
    int64_t lo = hw_code_least(a->sums), hi = hw_code_most(a->sums);
    if (*x >= lo && *x <= hi)
        return true;
    if (a->overflow == HW_SATURATES)
        *x = *x < lo ? lo : hi;
    else if (a->overflow == HW_WRAPS) /* of less than 64 bits */
        *x = (int64_t)(((uint64_t)*x - (uint64_t)lo) &
                       ((UINT64_C(1) << a->sums.bits) - 1)) +
             lo;
    return a->overflow != HW_OVERFLOW_NEVER;
}

static bool finish(ProgramRun *run, const Conv *v, uint32_t o, int64_t x,
                   int32_t *out) {
    const HwArith *a = v->arith;
    int64_t code = 0;
    uint32_t at;
    if (!held(a, &x))
        return prog_fault(run, "channel %u: the sum %lld has no room", o,
                          (long long)x);
    RequantFault fault = requant(a->n_stages, v->stage, o, x, &code, &at);
    if (fault != REQUANT_FINE)
        return prog_fault(run, "channel %u, stage %u: %s", o, at + 1,
                          fault == REQUANT_NO_SEGMENT
                              ? "the number lies before all segments"
                              : "the number exceeds 64 bits");
    if (code < hw_code_least(a->activations) ||
        code > hw_code_most(a->activations))
        return prog_fault(run, "channel %u: %lld is no code", o,
                          (long long)code);
    *out = (int32_t)code;
    return true;
}

static bool channel(ProgramRun *run, const Conv *v, Sums *s, uint32_t o,
                    int32_t *codes, int32_t *pooled, uint8_t *out) {
    sum_channel(s, o);
    for (uint32_t y = 0; y < v->behind[0]; y++)
        for (uint32_t x = 0; x < v->behind[1]; x++) {
            int64_t sum = s->sum[(uint64_t)y * v->stride[0] * v->pitch +
                                 (uint64_t)x * v->stride[1]];
            if (!finish(run, v, o, sum, &codes[(size_t)y * v->behind[1] + x]))
                return false;
        }
    pool_codes(&v->pool, v->behind[0], v->behind[1], codes, pooled);
    for (uint32_t i = 0; i < v->out[0] * v->out[1]; i++)
        out[i] = (uint8_t)pooled[i];
    return true;
}

static bool image(ProgramRun *run, const Conv *v, const uint8_t *in,
                  uint8_t *out) {
    uint64_t n = plane_size(v), plane = (uint64_t)v->in[0] * v->in[1];
    uint64_t behind = (uint64_t)v->behind[0] * v->behind[1];
    bool expanded = v->arith->zero_points == HW_ZERO_EXPANDED;
    Sums s = {.v = v,
              .planes = ARENA_ARRAY(run->work, int32_t, n * v->in_c),
              .part = ARENA_ARRAY(run->work, int32_t, n),
              .sum = ARENA_ARRAY(run->work, int64_t, n),
              .inputs = ARENA_ARRAY(run->work, int64_t, n)};
    int32_t *codes = ARENA_ARRAY(run->work, int32_t, behind);
    int32_t *pooled = ARENA_ARRAY(run->work, int32_t, behind);
    for (uint32_t c = 0; c < v->in_c; c++)
        fill_plane(v, in + c * plane, expanded ? 0 : v->zero_in,
                   s.planes + c * n);
    for (uint32_t o = 0; o < v->out_c; o++)
        if (!channel(run, v, &s, o, codes, pooled,
                     out + (uint64_t)o * v->out[0] * v->out[1]))
            return false;
    return true;
}

/* ---- the whole ---- */

static bool sizes(ProgramRun *run, const Conv *v) {
    const uint64_t most = UINT64_C(1) << 28, steps = UINT64_C(1) << 36;
    if (v->arith->activations.bits > 8 || !planes_at_once(v))
        return prog_fault(run, "codes of %u and %u bits are not computed here",
                          v->arith->activations.bits, v->arith->weights.bits);
    if (plane_size(v) * v->in_c > most)
        return prog_fault(run, "the volume is too large with its pads");
    uint64_t inner = (v->depthwise ? 1 : v->in_c) * (uint64_t)v->kernel[0] *
                     v->kernel[1] * v->out_c;
    if (inner > steps / plane_size(v))
        return prog_fault(run, "the layer has more than 2^36 products");
    return true;
}

static bool compute(ProgramRun *run, const Conv *v, Made *made) {
    uint64_t in = v->from.n / v->images, out = v->to.n / v->images;
    const uint8_t *from = cells_read(run, &v->from);
    uint8_t *to = ARENA_ARRAY(run->work, uint8_t, v->to.n);
    for (uint32_t i = 0; i < v->images; i++)
        if (!image(run, v, from + i * in, to + i * out))
            return false;
    const char *name =
        arena_printf(run->arena, "node %u (%s)", run->node,
                     prog_row_name(run->program->node[run->node].row));
    cells_write(run, &v->to, name, to);
    if (v->copies)
        cells_write(run, &v->copy, name, to);
    made->crc = crc32_of(to, v->to.n);
    made->text = arena_printf(run->arena, "%ux%ux%ux%u", v->images, v->out_c,
                              v->out[0], v->out[1]);
    return true;
}

bool engine_conv(ProgramRun *run, Made *made) {
    int32_t at = hwspec_engine(run->spec, HW_OP_CONV);
    const HwEngine *engine = at < 0 ? NULL : &run->spec->engine[at];
    Conv v = {.arith = engine ? engine->arithmetic : NULL};
    if (!v.arith)
        return prog_fault(run, "no engine with an `arithmetic` runs conv");
    return shapes(run, &v) && sizes(run, &v) && constants(run, &v) &&
           stages(run, &v) && places(run, &v) && compute(run, &v, made);
}
