/* machine.c - what a machine's numbers may be; see quantise.h.
 *
 * In: a hwspec. Its engines' `arithmetic` says the types of codes, whether
 * scales are powers of two, whether there are zero points, how it rounds, and
 * whether factors are one a channel or one a layer.
 */
#include "quantise/quantise.h"

static bool by_channel(const HwArith *a) {
    for (uint32_t i = 0; i < a->n_stages; i++)
        if (a->stage[i].by_channel)
            return true;
    return false;
}

static bool to_even(const HwArith *a) {
    for (uint32_t i = 0; i < a->n_stages; i++)
        if (a->stage[i].has_round && (a->stage[i].round == ROUND_HALF_EVEN ||
                                      a->stage[i].round == ROUND_FLOAT_EVEN))
            return true;
    return false;
}

static void restrict_to(const HwArith *a, QuantiseNumbers *n) {
    n->type = a->activations.is_signed ? QUANT_I8 : QUANT_U8;
    n->unsigned_weights = !a->weights.is_signed;
    n->pow2 = a->pow2;
    n->symmetric = a->zero_points == HW_ZERO_NONE;
    n->per_tensor = !by_channel(a);
    n->round = to_even(a) ? QUANT_EVEN : QUANT_UP;
}

QuantiseNumbers quantise_machine(const HwSpec *spec) {
    QuantiseNumbers n = {.type = QUANT_I8, .round = QUANT_UP};
    for (uint32_t i = 0; i < spec->n_engines; i++)
        if (spec->engine[i].arithmetic) {
            restrict_to(spec->engine[i].arithmetic, &n);
            break;
        }
    n.wide = spec->element > 1;
    return n;
}
