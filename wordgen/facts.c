/* facts.c - what a layer is, by names: docs/hwspec.md, "emit".
 *
 * A name that the hwspec does not have is left out.
 */
#include "wordgen/inside.h"

#include "graph/quant.h"
#include "passes/legal.h"

#include <math.h>
#include <string.h>

static void say(Emitter *e, const char *name, int64_t value) {
    template_set(&e->run, name, value);
}

static void say_of(Emitter *e, const char *what, const char *part,
                   int64_t value) {
    say(e, arena_printf(e->scratch, "%s.%s", what, part), value);
}

static void say_hw(Emitter *e, const char *what, const uint32_t hw[2]) {
    say_of(e, what, "h", hw[0]);
    say_of(e, what, "w", hw[1]);
}

/* ---- volumes ---- */

static void say_volume(Emitter *e, const char *what, TensorId tensor) {
    const Home *home = &e->home[tensor.i];
    uint32_t first;
    const Home *whole = &e->home[wordgen_whole(e, tensor, &first).i];
    say_of(e, what, "c", home->c);
    say_of(e, what, "h", home->h);
    say_of(e, what, "w", home->w);
    say_of(e, what, "part.c", whole->c);
    say_of(e, what, "part.start", first);
    const EmitPlace *place = &e->place[tensor.i];
    Volume volume = {whole->c, whole->h, whole->w, {0}};
    const Layout *layout = e->spec->memory[e->spec->backing].layout;
    say_of(e, what, "addr",
           place->there ? (int64_t)(place->at + layout_offset(layout, &volume,
                                                              first, 0, 0, 0))
                        : 0);
    const Quant *q = &graph_tensor(e->g, tensor)->quant;
    int32_t less = wordgen_less(e->spec, q);
    say_of(e, what, "zero", q->zero - less);
    say_of(e, what, "lo", quant_type[q->type].lo - less);
    say_of(e, what, "hi", quant_type[q->type].hi - less);
}

static void say_volumes(Emitter *e, const Node *node) {
    say_volume(e, "in", node->in[0]);
    say_volume(e, "in2", node->in[node->n_in > 1 ? 1 : 0]);
    say_volume(e, "out", node->out[0]);
    say(e, "operands", node->n_in);
}

/* ---- windows ---- */

static bool has_conv(const Node *node) {
    return node->op == OP_CONV || node->op == OP_CONV_POOL ||
           node->op == OP_DECONV;
}

/* Of an inner product the window is the whole operand. */
static ConvAttr conv_of(const Emitter *e, const Node *node) {
    const Home *in = &e->home[node->in[0].i];
    ConvAttr a = {.out_c = e->home[node->out[0].i].c,
                  .groups = 1,
                  .kernel = {1, 1},
                  .stride = {1, 1},
                  .dilation = {1, 1}};
    if (has_conv(node))
        return node->attr.conv;
    const Shape *shape = &graph_tensor(e->g, node->in[0])->shape;
    if (node->op == OP_FC && shape->rank == 4) {
        a.kernel[0] = in->h;
        a.kernel[1] = in->w;
    }
    return a;
}

static PoolAttr pool_of(const Emitter *e, const Node *node) {
    PoolAttr a = {.kernel = {1, 1}, .stride = {1, 1}};
    if (node->op != OP_POOL && node->op != OP_CONV_POOL)
        return a;
    a = node->attr.pool;
    if (a.global) {
        a.kernel[0] = e->home[node->in[0].i].h;
        a.kernel[1] = e->home[node->in[0].i].w;
    }
    return a;
}

static void say_windows(Emitter *e, const Node *node) {
    ConvAttr conv = conv_of(e, node);
    PoolAttr pool = pool_of(e, node);
    const Home *in = &e->home[node->in[0].i], *out = &e->home[node->out[0].i];
    const uint32_t from[2] = {in->h, in->w};
    uint32_t mid[2] = {out->h, out->w};
    for (uint32_t k = 0; node->op == OP_CONV_POOL && k < 2; k++)
        mid[k] = conv_out_size(from[k], conv.kernel[k], conv.stride[k],
                               conv.dilation[k], conv.pad[k], conv.pad_end[k]);
    if (node->op == OP_POOL)
        memcpy(mid, from, sizeof mid);
    say_hw(e, "mid", mid);
    say(e, "mid.c", node->op == OP_CONV_POOL ? conv.out_c : out->c);
    say_hw(e, "kernel", conv.kernel);
    say_hw(e, "stride", conv.stride);
    say_hw(e, "dilation", conv.dilation);
    say_hw(e, "pad", conv.pad);
    say(e, "pad.bottom", conv.pad_end[0]);
    say(e, "pad.right", conv.pad_end[1]);
    say(e, "groups", conv.groups);
    say(e, "transposed", node->op == OP_DECONV);
    say(e, "group.c", conv.groups ? in->c / conv.groups : in->c);
    say_hw(e, "pool.kernel", pool.kernel);
    say_hw(e, "pool.stride", pool.stride);
    say_hw(e, "pool.pad", pool.pad);
    say(e, "pool.pad.bottom", pool.pad_end[0]);
    say(e, "pool.pad.right", pool.pad_end[1]);
    say(e, "pool.global", pool.global);
    say(e, "pool.on", node->op == OP_POOL || node->op == OP_CONV_POOL);
}

/* ---- numbers ---- */

static int64_t float_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void say_vector(Emitter *e, const char *name, uint32_t n,
                       const int64_t *num) {
    template_set_vector(&e->run, name, n, num);
}

/* Scales as floats, behind them those of sums below 0; what codes the result
 * can be. */
static void say_rule(Emitter *e, const Node *node) {
    QuantLayer q = quant_layer(e->scratch, e->g, node);
    uint32_t all = q.below ? 2 * q.n : q.n;
    int64_t *scale = ARENA_ARRAY(e->arena, int64_t, all + 1);
    bool alike = true;
    for (uint32_t i = 0; i < all; i++) {
        QuantScale s = i < q.n ? q.scale[i] : q.below[i - q.n];
        scale[i] = float_bits(quant_float(s));
        alike = alike && scale[i] == scale[0];
    }
    uint32_t n = q.rule == QUANT_SUMS && alike && q.n ? 1 : all;
    say_vector(e, "scales", n, scale);
    say(e, "scales.n", n);
    for (int i = 0; i < QUANT_RULE_COUNT; i++)
        say_of(e, "rule", quant_rule_name[i], (int)q.rule == i);
    int32_t less =
        wordgen_less(e->spec, &graph_tensor(e->g, node->out[0])->quant);
    say(e, "code.lo", q.lo - less);
    say(e, "code.hi", q.hi - less);
}

static const int64_t *codes_of(Emitter *e, const Node *node, ConstRole role,
                               uint64_t *n) {
    ConstId id = node->constant[role];
    *n = 0;
    if (id.i == NONE)
        return NULL;
    Const codes = const_codes(graph_const(e->g, id));
    *n = shape_count(&codes.shape);
    double *value = ARENA_ARRAY(e->scratch, double, *n + 1);
    int64_t *out = ARENA_ARRAY(e->scratch, int64_t, *n + 1);
    const_read_f64(&codes, value);
    for (uint64_t i = 0; i < *n; i++)
        out[i] = (int64_t)value[i];
    return out;
}

/* Of a transposed convolution they are stored by input channels. */
static const int64_t *by_results(Emitter *e, const Node *node, uint64_t n,
                                 const int64_t *num) {
    const ConvAttr *a = &node->attr.conv;
    uint64_t taps = (uint64_t)a->kernel[0] * a->kernel[1];
    uint64_t out_g = a->out_c / a->groups, in_c = n / (out_g * taps);
    uint64_t in_g = in_c / a->groups;
    int64_t *to = ARENA_ARRAY(e->scratch, int64_t, n + 1);
    for (uint64_t i = 0; i < in_c; i++)
        for (uint64_t o = 0; o < out_g; o++) {
            uint64_t row = i / in_g * out_g + o;
            memcpy(to + (row * in_g + i % in_g) * taps,
                   num + (i * out_g + o) * taps, taps * sizeof *to);
        }
    return to;
}

static void say_numbers(Emitter *e, const Node *node) {
    uint64_t n;
    const int64_t *num = codes_of(e, node, CONST_WEIGHT, &n);
    if (node->op == OP_DECONV)
        num = by_results(e, node, n, num);
    say_vector(e, "weights", (uint32_t)n, num);
    num = codes_of(e, node, CONST_BIAS, &n);
    say_vector(e, "biases", (uint32_t)n, num);
}

/* The largest of the codes of its bias. */
static void say_bias(Emitter *e, const Node *node) {
    uint64_t n, most = 0;
    const int64_t *num = codes_of(e, node, CONST_BIAS, &n);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t size = (uint64_t)(num[i] < 0 ? -num[i] : num[i]);
        most = size > most ? size : most;
    }
    say(e, "bias", n > 0);
    say(e, "bias.most", (int64_t)most);
}

void wordgen_facts(Emitter *e, NodeId id, bool numbers) {
    const Node *node = graph_node(e->g, id);
    say_volumes(e, node);
    say_windows(e, node);
    say_rule(e, node);
    say_bias(e, node);
    if (numbers)
        say_numbers(e, node);
}
