/* rules_gate.c - a tensor times its own gate is one activation.
 *
 * Exported networks have no SiLU or hard-swish of their own: they multiply a
 * tensor by its sigmoid. Where engines run both layers, and none the whole,
 * they stay two instructions; a processor has a layer less.
 */
#include "passes/passes_int.h"

#include <math.h>

typedef struct Gate {
    ActKind gate, whole;
} Gate;
static const Gate gates[] = {{ACT_SIGMOID, ACT_SILU},
                             {ACT_HARD_SIGMOID, ACT_HARD_SWISH}};

/* Of hard-swish: clip(x / 6 + 1 / 2, 0, 1). */
static bool is_usual(const Act *act) {
    return act->kind != ACT_HARD_SIGMOID ||
           (fabs(act->alpha - 1.0 / 6) < 1e-7 && act->lo == 0.5);
}

/* ACT_NONE where the gate is none. */
static ActKind whole_of(const Act *act) {
    for (size_t i = 0; i < sizeof gates / sizeof *gates; i++)
        if (gates[i].gate == act->kind && is_usual(act))
            return gates[i].whole;
    return ACT_NONE;
}

/* Whether an engine applies it as one. */
static bool is_known(const Match *m, ActKind kind) {
    const HwSpec *spec = m->context->spec;
    uint32_t number = hw_act_number(act_name[kind]);
    bool known = false;
    for (uint32_t e = 0; spec && number && e < spec->n_engines; e++)
        for (uint32_t op = 0; op < HW_OP_COUNT; op++)
            known |= spec->engine[e].acts[op] >> (number - 1) & 1;
    return known;
}

static bool is_gate(const Match *m) {
    const Node *act = match_node(m, 0), *mul = match_node(m, 1);
    if (match_out(m, 0)->quant.type != QUANT_NONE) /* it is rounded between */
        return false;
    if (mul->n_in != 2 || mul->attr.elt.kind != ELT_MUL ||
        mul->act.kind != ACT_NONE || whole_of(&act->act) == ACT_NONE)
        return false;
    return same_tensor(mul->in[0], act->in[0]) &&
           (match_engine(m, 0) < 0 || match_engine(m, 1) < 0 ||
            is_known(m, whole_of(&act->act)) ||
            hwspec_engine(m->context->spec, HW_OP_LAYER) >= 0);
}

static void make_whole(Match *m) {
    Node *mul = match_node(m, 1);
    ActKind kind = whole_of(&match_node(m, 0)->act);
    mul->op = OP_ACT;
    mul->attr = (Attrs){0};
    mul->act = (Act){.kind = kind};
    mul->n_in = 1;
    match_fuse_before(m, 0);
}

static const Rule rules[] = {
    {"gate",
     2,
     {ON_CODES | REQUANTS | OPS(ACT), OPS(ELTWISE) | BY_SECOND},
     is_gate,
     make_whole,
     "x * sigmoid(x) is one activation"},
};

const RuleSet gate_rules = {"gate", sizeof rules / sizeof *rules, rules};
