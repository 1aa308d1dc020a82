/* read_numbers.c - `numbers`: what numbers of a network on codes engines take.
 *
 * Input: words, one a property; what is absent is free. Output: HwNumbers.
 * Invariant: one place says it, this or the `arithmetic` of engines. */
#include "hwspec/read.h"

/* False with an error; else whether it is the second word. */
static bool read_second(Reader *r, YamlNode *node, const char *const *names,
                        bool *out) {
    uint32_t k;
    if (!yaml_enum(r->diag, node, names, &k))
        return false;
    *out = k == 1;
    return true;
}

static bool read_scales(Reader *r, YamlNode *node, void *out) {
    static const char *const names[] = {"any", "pow2", NULL};
    return read_second(r, node, names, out);
}

static bool read_weights_per(Reader *r, YamlNode *node, void *out) {
    static const char *const names[] = {"channel", "tensor", NULL};
    return read_second(r, node, names, out);
}

static bool read_zero_points(Reader *r, YamlNode *node, void *out) {
    static const char *const names[] = {"any", "none", NULL};
    return read_second(r, node, names, out);
}

static bool read_means(Reader *r, YamlNode *node, void *out) {
    static const char *const names[] = {"any", "weights", NULL};
    return read_second(r, node, names, out);
}

static bool read_bias_bits(Reader *r, YamlNode *node, void *out) {
    uint32_t bits = 0;
    if (!read_u32(r, node, &bits))
        return false;
    if (bits < 2 || bits > 32) {
        diag_error(r->diag, node->loc, "a bias has 2 to 32 bits");
        return false;
    }
    *(uint32_t *)out = bits < 32 ? bits : 0;
    return true;
}

static bool read_type(Reader *r, YamlNode *node, void *out) {
    static const char *const names[] = {"any", "int8", "uint8", NULL};
    uint32_t k;
    if (!yaml_enum(r->diag, node, names, &k))
        return false;
    *(HwNumberType *)out = (HwNumberType)k;
    return true;
}

static const Key numbers_keys[] = {
    KEY("type", read_type, HwNumbers, type,
        "of volumes of 8 bits: int8, uint8, or, else, any of both"),
    KEY("scales", read_scales, HwNumbers, pow2,
        "any, or pow2: powers of two; else any"),
    KEY("zero_points", read_zero_points, HwNumbers, no_zeros,
        "any, or none: real 0 is code 0, of uint8 the least; else any"),
    KEY("weights_per", read_weights_per, HwNumbers, per_tensor,
        "channel: weights of each output channel may have a scale of their "
        "own; tensor: a layer has one; else channel"),
    KEY("weight_bits", read_range, HwNumbers, weight_bits,
        "of a code of weights; else any"),
    KEY("bias_bits", read_bias_bits, HwNumbers, bias_bits,
        "2..32: biases are numbers of so many bits, all of a layer shifted "
        "alike; else 32"),
    KEY("means", read_means, HwNumbers, means_weigh,
        "any, or weights: a mean over windows is a sum with equal weights; "
        "else any"),
};
const Section read_numbers_section = SECTION("numbers", numbers_keys);

bool read_numbers(Reader *r, YamlNode *node, void *out) {
    HwNumbers *numbers = out;
    numbers->stated = true;
    numbers->loc = node->loc;
    bool ok = read_keys(r, node, &read_numbers_section, numbers);
    for (uint32_t i = 0; i < r->spec->n_engines; i++)
        if (r->spec->engine[i].arithmetic) {
            diag_error(r->diag, node->loc,
                       "engine %s has an `arithmetic`, which says this",
                       r->spec->engine[i].name);
            return false;
        }
    return ok;
}
