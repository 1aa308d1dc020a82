/* machine.c - what a machine's numbers may be; see quantise.h.
 *
 * In: a hwspec. Its `numbers`, or its engines' `arithmetic`, say the types of
 * codes, whether scales are powers of two, whether there are zero points, and
 * whether factors are one a channel or one a layer; the `arithmetic`, or
 * `machine.rounding`, how it rounds; engines' `activations`, behind which sums
 * there are leaky ReLUs.
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
    n->any_type = false;
    n->unsigned_weights = !a->weights.is_signed;
    n->pow2 = a->pow2;
    n->symmetric = a->zero_points == HW_ZERO_NONE;
    n->per_tensor = !by_channel(a);
    n->round = to_even(a) ? QUANT_EVEN : QUANT_UP;
}

static void restrict_by(const HwNumbers *of, QuantiseNumbers *n) {
    n->type = of->type == HW_NUMBER_UINT8 ? QUANT_U8 : QUANT_I8;
    n->any_type = of->type == HW_NUMBER_ANY;
    n->pow2 = of->pow2;
    n->symmetric = of->no_zeros;
    n->per_tensor = of->per_tensor;
    n->bias_bits = of->bias_bits;
    n->means_weigh = of->means_weigh;
}

static const HwArith *arithmetic_of(const HwSpec *spec) {
    for (uint32_t i = 0; i < spec->n_engines; i++)
        if (spec->engine[i].arithmetic)
            return spec->engine[i].arithmetic;
    return NULL;
}

static uint64_t straight_ops(const HwSpec *spec) {
    uint64_t runs = 0, bends = 0;
    for (uint32_t e = 0; e < spec->n_engines; e++)
        for (int op = 0; op < HW_OP_COUNT; op++) {
            uint64_t bit = spec->engine[e].ops & UINT64_C(1) << op;
            bool leaky = spec->engine[e].acts[op] >> HW_ACT_LEAKY & 1;
            runs |= bit;
            bends |= leaky ? bit : 0;
        }
    return runs & ~bends;
}

const char *quantise_key(const HwSpec *spec) {
    return spec->numbers.stated  ? "numbers"
           : arithmetic_of(spec) ? "arithmetic"
                                 : NULL;
}

QuantiseNumbers quantise_machine(const HwSpec *spec) {
    const bool up = spec->rounding == HW_ROUNDING_UP;
    QuantiseNumbers n = {.type = QUANT_I8,
                         .any_type = true,
                         .wide = spec->element > 1,
                         .straight = straight_ops(spec),
                         .round = up ? QUANT_UP : QUANT_EVEN};
    const HwArith *arithmetic = arithmetic_of(spec);
    if (spec->numbers.stated)
        restrict_by(&spec->numbers, &n);
    else if (arithmetic)
        restrict_to(arithmetic, &n);
    return n;
}
