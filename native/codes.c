/* codes.c - constants of kernels on codes; see codes.h and program.h.
 *
 * Tables keep layers on real numbers free of arithmetic in double, which many
 * small processors do not have: they say which float a code stands for, and at
 * which float the next code begins, exactly as graph/quant.h computes both.
 */
#include "native/codes.h"
#include "native/maker.h"

#include "graph/quant.h"

#include <math.h>
#include <string.h>

void constants_add(Constants *to, const char *role, const Shape *shape,
                   ConstKind kind, const void *at) {
    to->is[to->n] = (KernelConst){role, *shape, kind};
    to->value[to->n++] = (Const){.shape = *shape, .kind = kind, .data = at};
}

/* ---- sums ---- */

static void add_codes(const Graph *g, const Node *node, ConstRole role,
                      ConstKind kind, Constants *to) {
    ConstId id = node->constant[role];
    if (id.i == NONE)
        return;
    const Const *c = graph_const(g, id);
    to->is[to->n] = (KernelConst){const_role_name[role], c->shape, kind};
    to->value[to->n++] = const_codes(c);
}

/* Of all channels: one scale, or one each. */
typedef struct Scales {
    const char *factor, *shift; /* roles */
    const QuantScale *scale;
    uint32_t n, channels;
} Scales;

static const QuantScale *scale_of(const Scales *s, uint32_t channel) {
    return &s->scale[s->n > 1 ? channel : 0];
}

static void add_float_scales(Arena *arena, const Scales *s, Constants *to) {
    Shape shape = {1, {s->channels}};
    float *factor = ARENA_ARRAY(arena, float, s->channels);
    for (uint32_t c = 0; c < s->channels; c++)
        factor[c] = quant_float(*scale_of(s, c));
    constants_add(to, s->factor, &shape, CONST_F32, factor);
}

static void add_whole_scales(Arena *arena, const Scales *s, Constants *to) {
    Shape shape = {1, {s->channels}};
    int32_t *factor = ARENA_ARRAY(arena, int32_t, s->channels);
    int32_t *shift = ARENA_ARRAY(arena, int32_t, s->channels);
    for (uint32_t c = 0; c < s->channels; c++) {
        const QuantScale *scale = scale_of(s, c);
        factor[c] = scale->factor;
        shift[c] = (int32_t)scale->shift;
    }
    constants_add(to, s->factor, &shape, CONST_I32, factor);
    constants_add(to, s->shift, &shape, CONST_I32, shift);
}

static void add_scales(Arena *arena, const QuantLayer *layer, uint32_t channels,
                       Constants *to) {
    const Scales list[] = {
        {"factor", "shift", layer->scale, layer->n, channels},
        {"factor_below", "shift_below", layer->below, layer->n, channels}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        if (!list[i].scale)
            continue;
        if (quant_by_floats(layer->round))
            add_float_scales(arena, &list[i], to);
        else
            add_whole_scales(arena, &list[i], to);
    }
}

/* Of weights [O][I][taps]. */
static void add_tap_sums(Arena *arena, const Const *weight, Constants *to) {
    Const codes = const_codes(weight);
    uint64_t n = shape_count(&codes.shape);
    uint32_t outs = codes.shape.dim[0], ins = shape_dim(&codes.shape, 1);
    uint32_t taps = (uint32_t)(n / outs / ins);
    Shape shape = {2, {outs, taps}};
    Arena *scratch = arena_new("taps");
    double *value = ARENA_ARRAY(scratch, double, n);
    int32_t *sum = ARENA_ARRAY(arena, int32_t, (size_t)outs * taps);
    const_read_f64(&codes, value);
    for (uint64_t i = 0; i < n; i++)
        sum[i / taps / ins * taps + i % taps] += (int32_t)value[i];
    arena_free(scratch);
    constants_add(to, "tap_sum", &shape, CONST_I32, sum);
}

/* Do codes less their zero fit into signed bytes? */
static bool fit_bytes(const Const *weight) {
    if (!const_has_codes(weight, 1))
        return false;
    Arena *scratch = arena_new("weights");
    Const codes = const_codes(weight);
    uint64_t n = shape_count(&codes.shape);
    double *value = ARENA_ARRAY(scratch, double, n);
    const_read_f64(&codes, value);
    bool fit = true;
    for (uint64_t i = 0; i < n; i++)
        fit = fit && value[i] >= INT8_MIN && value[i] <= INT8_MAX;
    arena_free(scratch);
    return fit;
}

void codes_sums(Arena *arena, const Graph *g, const Node *node,
                const QuantLayer *layer, Constants *to) {
    const Const *weight = graph_const(g, node->constant[CONST_WEIGHT]);
    uint32_t channels = shape_dim(&weight->shape, node->op == OP_DECONV);
    add_codes(g, node, CONST_WEIGHT, fit_bytes(weight) ? CONST_I8 : CONST_I16,
              to);
    add_codes(g, node, CONST_BIAS, CONST_I32, to);
    add_scales(arena, layer, channels, to);
    if (node->op == OP_CONV &&
        (node->attr.conv.groups <= 1 || shape_dim(&weight->shape, 1) > 1))
        add_tap_sums(arena, weight, to);
}

void codes_table(const QuantLayer *layer, Constants *to) {
    Shape shape = {1, {QUANT_TABLE_SIZE}};
    constants_add(to, "table", &shape, CONST_I16, layer->table);
}

const Const *codes_of_reals(Arena *arena, const Quant *q, const Const *real) {
    static const ConstKind kind[QUANT_TYPE_COUNT] = {
        [QUANT_I8] = CONST_I8,
        [QUANT_U8] = CONST_U8,
        [QUANT_I16] = CONST_I16,
    };
    uint64_t n = shape_count(&real->shape);
    double *value = ARENA_ARRAY(arena, double, n);
    const_read_f64(real, value);
    for (uint64_t i = 0; i < n; i++)
        value[i] = quant_code(q, (double)(float)value[i]);
    void *codes = ARENA_ARRAY(arena, int16_t, n);
    maker_store(kind[q->type], value, n, codes);
    Const *out = ARENA_NEW(arena, Const);
    *out = (Const){.shape = real->shape, .kind = kind[q->type], .data = codes};
    return out;
}

/* ---- tables ---- */

static void add_reals(Arena *arena, const Quant *q, const char *role,
                      Constants *to) {
    const QuantTypeInfo *type = &quant_type[q->type];
    Shape shape = {1, {(uint32_t)(type->hi - type->lo + 1)}};
    float *real = ARENA_ARRAY(arena, float, shape.dim[0]);
    for (int32_t code = type->lo; code <= type->hi; code++)
        real[code - type->lo] = (float)quant_real(q, code);
    constants_add(to, role, &shape, CONST_F32, real);
}

/* Floats by number: the greater the number, the greater the float. */
static float float_numbered(int32_t number) {
    uint32_t bits = number < 0 ? UINT32_C(0x80000000) | (uint32_t)-number
                               : (uint32_t)number;
    float out;
    memcpy(&out, &bits, sizeof out);
    return out;
}

/* The least float whose code is at least `code`; infinity if there is none. */
static float least_of(const Quant *q, int32_t code) {
    int32_t most = 0x7f800000, low = -most, high = most;
    while (low < high) {
        int32_t middle = low + (int32_t)(((int64_t)high - low) / 2);
        if (quant_code(q, (double)float_numbered(middle)) >= code)
            high = middle;
        else
            low = middle + 1;
    }
    return float_numbered(low);
}

static void add_bounds(Arena *arena, const Quant *q, Constants *to) {
    const QuantTypeInfo *type = &quant_type[q->type];
    Shape shape = {1, {(uint32_t)(type->hi - type->lo + 1)}};
    float *bound = ARENA_ARRAY(arena, float, shape.dim[0]);
    for (int32_t code = type->lo; code <= type->hi; code++)
        bound[code - type->lo] = least_of(q, code);
    constants_add(to, "code", &shape, CONST_F32, bound);
}

void codes_tables(Arena *arena, const Graph *g, const Node *node,
                  Constants *to) {
    static const char *const role[] = {"real0", "real1"};
    const Quant *q;
    for (uint32_t k = 0; k < node->n_in && k < 2; k++) {
        q = &graph_tensor(g, node->in[k])->quant;
        if (quant_type[q->type].size == 1)
            add_reals(arena, q, role[k], to);
    }
    q = &graph_tensor(g, node->out[0])->quant;
    if (quant_type[q->type].size == 1)
        add_bounds(arena, q, to);
}
