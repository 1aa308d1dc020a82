/* quant.c - names and limits of quantisations; see quant.h. */
#include "base/quant.h"

#include <math.h>
#include <string.h>

const QuantTypeInfo quant_type[QUANT_TYPE_COUNT] = {
    [QUANT_NONE] = {"real", 4, 0, 0},
#define TYPE(NAME, text, type, lo, hi)                                         \
    [QUANT_##NAME] = {text, sizeof(type), lo, hi},
    QUANT_TYPES
#undef TYPE
};

const char *const quant_rule_name[QUANT_RULE_COUNT] = {
#define RULE(NAME, text, doc) text,
    QUANT_RULES
#undef RULE
};

const char *const quant_round_name[QUANT_ROUND_COUNT + 1] = {
#define ROUND(NAME, text, doc) text,
    QUANT_ROUNDS
#undef ROUND
};

QuantRound quant_round_named(const char *name) {
    QuantRound round = QUANT_UP;
    while (round < QUANT_ROUND_COUNT && strcmp(quant_round_name[round], name))
        round++;
    return round;
}

QuantType quant_type_named(const char *name) {
    QuantType type = QUANT_NONE + 1;
    while (type < QUANT_TYPE_COUNT && strcmp(quant_type[type].name, name) != 0)
        type++;
    return type;
}

float quant_seeded(QuantType type, double u) {
    double lo = quant_type[type].lo, n = quant_type[type].hi - lo + 1;
    return (float)(type == QUANT_NONE ? u : lo + floor((u + 1) / 2 * n));
}

bool quant_equal(const Quant *a, const Quant *b) {
    return a->type == b->type && a->zero == b->zero && a->scale >= b->scale &&
           a->scale <= b->scale;
}

bool quant_sound(const Quant *q) {
    const QuantTypeInfo *type = &quant_type[q->type];
    if (q->type == QUANT_NONE)
        return q->zero == 0 && q->round == QUANT_UP &&
               !(q->scale < 0 || q->scale > 0);
    return q->round < QUANT_ROUND_COUNT && isfinite(q->scale) && q->scale > 0 &&
           q->zero >= type->lo && q->zero <= type->hi;
}
