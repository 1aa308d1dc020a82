/* writer.c - what EMIT and FORGET do, and what steps know of a layer; see
 * writer.h. */
#include "wordgen/writer.h"

#include "graph/quant.h"

#include <string.h>

enum { MOST_STEPS = 1 << 30, MOST_WORDS = 1 << 26 };

/* ---- the act of EMIT and FORGET ---- */

static bool same_meanings(const ProgRow *row, const ProgNode *node,
                          const ProgMeaning *said) {
    (void)row;
    for (uint32_t i = 0; i < node->scope.n_meanings; i++)
        if (node->scope.meaning[i].set != said[i].set ||
            node->scope.meaning[i].num != said[i].num)
            return false;
    return true;
}

/* Does it say what holds already? Else it does from now on. */
static bool holds_already(Writer *w, uint32_t row, int64_t number,
                          const ProgNode *node) {
    for (uint32_t i = 0; i < w->held.n; i++) {
        Held *held = &w->held.at[i];
        if (held->row != row || held->number != number)
            continue;
        if (same_meanings(node->row, node, held->meaning))
            return true;
        held->meaning = node->scope.meaning;
        return false;
    }
    vec_push(w->arena, &w->held, ((Held){row, number, node->scope.meaning}));
    return false;
}

static void forget(Writer *w, uint32_t row) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->held.n; i++)
        if (w->held.at[i].row != row)
            w->held.at[n++] = w->held.at[i];
    w->held.n = n;
}

static bool act(TemplateRun *run, const TplStep *step) {
    Writer *w = run->context;
    int64_t number = 0;
    for (uint32_t i = 0; i < step->n_sets; i++) {
        int64_t value;
        if (!template_eval(run, step->set[i].value, 0, &value) ||
            !template_assign(run, &step->set[i], value))
            return false;
    }
    if (step->kind == TPL_FORGET) {
        forget(w, step->target);
        return true;
    }
    if (step->kind != TPL_EMIT)
        return template_fail(run, step->loc,
                             "only instructions are emitted here");
    if (w->node.n >= MOST_WORDS)
        return template_fail(run, step->loc, "too many instructions");
    const Expr *holds = program_emit_holds(w->spec, step->target);
    ProgNode node = program_emit_node(run, w->arena, step->target);
    node.loc = w->loc;
    if (!template_eval(run, holds, 0, &number))
        return false;
    if (!holds || !holds_already(w, step->target, number, &node))
        vec_push(w->arena, &w->node, node);
    return true;
}

void writer_open(Writer *w, Arena *arena, const HwSpec *spec, const Graph *g) {
    *w = (Writer){
        .arena = arena, .scratch = arena_new("emit"), .spec = spec, .g = g};
    w->run = template_run(arena, spec, MOST_STEPS, act, w);
}

void writer_forget(Writer *w) {
    w->held.n = 0;
}

const char *writer_lacks(Writer *w, const EmitWay *way) {
    for (uint32_t i = 0; i < way->n_requires; i++) {
        int64_t holds;
        if (!template_eval(&w->run, way->require[i], 1, &holds))
            return w->run.failed;
        if (!holds)
            return arena_printf(
                w->arena, "%s: %s does not hold", way->name,
                expr_text(w->arena, w->run.env.names, way->require[i], NULL));
    }
    return NULL;
}

/* ---- numbers ---- */

static int64_t float_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void say(Writer *w, const char *name, int64_t value) {
    template_set(&w->run, name, value);
}

static void say_vector(Writer *w, const char *name, uint32_t n,
                       const int64_t *num) {
    template_set_vector(&w->run, name, n, num);
}

/* Scales as floats, behind them those of sums below 0; what codes the result
 * can be. */
static void say_rule(Writer *w, const Node *node) {
    QuantLayer q = quant_layer(w->scratch, w->g, node);
    uint32_t all = q.below ? 2 * q.n : q.n;
    int64_t *scale = ARENA_ARRAY(w->arena, int64_t, all + 1);
    bool alike = true;
    for (uint32_t i = 0; i < all; i++) {
        QuantScale s = i < q.n ? q.scale[i] : q.below[i - q.n];
        scale[i] = float_bits(quant_float(s));
        alike = alike && scale[i] == scale[0];
    }
    uint32_t n = q.rule == QUANT_SUMS && alike && q.n ? 1 : all;
    say_vector(w, "scales", n, scale);
    say(w, "scales.n", n);
    for (int i = 0; i < QUANT_RULE_COUNT; i++)
        say(w, arena_printf(w->scratch, "rule.%s", quant_rule_name[i]),
            (int)q.rule == i);
    int32_t less =
        wordgen_less(w->spec, &graph_tensor(w->g, node->out[0])->quant);
    say(w, "code.lo", q.lo - less);
    say(w, "code.hi", q.hi - less);
}

static const int64_t *codes_of(Writer *w, const Node *node, ConstRole role,
                               uint64_t *n) {
    ConstId id = node->constant[role];
    *n = 0;
    if (id.i == NONE)
        return NULL;
    Const codes = const_codes(graph_const(w->g, id));
    *n = shape_count(&codes.shape);
    double *value = ARENA_ARRAY(w->scratch, double, *n + 1);
    int64_t *out = ARENA_ARRAY(w->scratch, int64_t, *n + 1);
    const_read_f64(&codes, value);
    for (uint64_t i = 0; i < *n; i++)
        out[i] = (int64_t)value[i];
    return out;
}

/* Of a transposed convolution they are stored by input channels. */
static const int64_t *by_results(Writer *w, const Node *node, uint64_t n,
                                 const int64_t *num) {
    const ConvAttr *a = &node->attr.conv;
    uint64_t taps = (uint64_t)a->kernel[0] * a->kernel[1];
    uint64_t out_g = a->out_c / a->groups, in_c = n / (out_g * taps);
    uint64_t in_g = in_c / a->groups;
    int64_t *to = ARENA_ARRAY(w->scratch, int64_t, n + 1);
    for (uint64_t i = 0; i < in_c; i++)
        for (uint64_t o = 0; o < out_g; o++) {
            uint64_t row = i / in_g * out_g + o;
            memcpy(to + (row * in_g + i % in_g) * taps,
                   num + (i * out_g + o) * taps, taps * sizeof *to);
        }
    return to;
}

static void say_numbers(Writer *w, const Node *node) {
    uint64_t n;
    const int64_t *num = codes_of(w, node, CONST_WEIGHT, &n);
    if (node->op == OP_DECONV)
        num = by_results(w, node, n, num);
    say_vector(w, "weights", (uint32_t)n, num);
    num = codes_of(w, node, CONST_BIAS, &n);
    say_vector(w, "biases", (uint32_t)n, num);
}

/* The largest of the codes of its bias; how many bits at their end are 0. */
static void say_bias(Writer *w, const Node *node) {
    uint64_t n, most = 0, any = 0;
    int64_t zeros = 0;
    const int64_t *num = codes_of(w, node, CONST_BIAS, &n);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t size = (uint64_t)(num[i] < 0 ? -num[i] : num[i]);
        most = size > most ? size : most;
        any |= size;
    }
    while (any && !(any >> zeros & 1))
        zeros++;
    say(w, "bias", n > 0);
    say(w, "bias.most", (int64_t)most);
    say(w, "bias.zeros", zeros);
}

void writer_numbers(Writer *w, const Node *node, bool numbers) {
    say_rule(w, node);
    say_bias(w, node);
    if (numbers)
        say_numbers(w, node);
}

int32_t wordgen_less(const HwSpec *spec, const Quant *q) {
    bool turns = spec->numbers.stated && spec->numbers.type == HW_NUMBER_INT8 &&
                 q->type == QUANT_U8;
    return turns ? -quant_type[QUANT_I8].lo : 0;
}
