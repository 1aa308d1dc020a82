/* insn_bits.c - instructions as binary words; see insn.h.
 *
 * Input: an instruction of form 0 of a row with `bits`, or words. Output: the
 * other. Invariant: decoding what was encoded gives the tokens that bits carry.
 */
#include "hwspec/insn.h"

#include <inttypes.h>

static uint64_t ones(uint32_t width) {
    return width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
}

static bool fits(const HwBits *bits, int64_t value) {
    if (!bits->is_signed)
        return value >= 0 && (uint64_t)value <= ones(bits->width);
    int64_t most = (int64_t)(ones(bits->width) >> 1);
    return value >= -most - 1 && value <= most;
}

/* False if the value is no multiple of the unit, or leaves 64 bits. */
static bool to_stored(const HwBits *bits, int64_t value, int64_t *out) {
    int64_t unit = (int64_t)bits->unit;
    return value % unit == 0 &&
           !__builtin_sub_overflow(value / unit, bits->bias, out);
}

bool insn_encode(Diag *diag, const HwSpec *spec, const HwInsn *insn,
                 uint64_t *words, Loc loc) {
    const HwRow *row = &spec->insns->row[insn->row];
    bool ok = !insn->form;
    if (!ok)
        diag_error(diag, loc, "an older form of %s cannot be encoded",
                   row->mnemonic);
    for (uint32_t i = 0; i < row->words; i++)
        words[i] = 0;
    for (uint32_t i = 0; ok && i < row->n_bits; i++) {
        const HwBits *bits = &row->bits[i];
        int64_t stored = (int64_t)bits->is;
        int64_t value = bits->name ? insn->value[bits->token].num : 0;
        if (bits->name &&
            (!to_stored(bits, value, &stored) || !fits(bits, stored))) {
            diag_error(diag, loc,
                       "`%s` of %s is %" PRId64
                       ", which does not fit into %u bits of units of %" PRIu64,
                       bits->name, row->mnemonic, value, bits->width,
                       bits->unit);
            ok = false;
        }
        words[bits->word] |= ((uint64_t)stored & ones(bits->width)) << bits->at;
    }
    return ok;
}

static uint64_t stored_at(const HwBits *bits, const uint64_t *words) {
    return words[bits->word] >> bits->at & ones(bits->width);
}

static bool is_row(const HwRow *row, const uint64_t *words, uint32_t n) {
    if (!row->n_bits || row->words > n)
        return false;
    for (uint32_t i = 0; i < row->n_bits; i++)
        if (!row->bits[i].name &&
            stored_at(&row->bits[i], words) != row->bits[i].is)
            return false;
    return true;
}

static int64_t from_stored(const HwBits *bits, uint64_t raw) {
    if (bits->is_signed && raw >> (bits->width - 1))
        raw |= ~ones(bits->width);
    int64_t value;
    if (__builtin_add_overflow((int64_t)raw, bits->bias, &value) ||
        __builtin_mul_overflow(value, (int64_t)bits->unit, &value))
        return INT64_MAX;
    return value;
}

static HwValue plain_value(const HwToken *token) {
    bool is_constant = token->from == HW_F_CONST;
    if (token->is_string)
        return (HwValue){.str = is_constant ? token->constant_text : ""};
    return (HwValue){.num = is_constant ? token->constant : 0};
}

static void decode_row(Arena *arena, const HwRow *row, const uint64_t *words,
                       HwInsn *out) {
    const HwForm *form = &row->form[0];
    HwValue *value = ARENA_ARRAY(arena, HwValue, form->n);
    for (uint32_t i = 0; i < form->n; i++)
        value[i] = plain_value(&form->token[i]);
    for (uint32_t i = 0; i < row->n_bits; i++)
        if (row->bits[i].name)
            value[row->bits[i].token].num =
                from_stored(&row->bits[i], stored_at(&row->bits[i], words));
    out->value = value;
}

uint32_t insn_decode(Arena *arena, Diag *diag, const HwSpec *spec,
                     const uint64_t *words, uint32_t n, Loc loc, HwInsn *out) {
    for (uint32_t i = 0; i < spec->insns->n; i++) {
        const HwRow *row = &spec->insns->row[i];
        if (!is_row(row, words, n))
            continue;
        *out = (HwInsn){.row = (uint16_t)i, .loc = loc};
        decode_row(arena, row, words, out);
        return row->words;
    }
    diag_error(diag, loc, "no instruction of %s has these %u words",
               spec->machine, n);
    return 0;
}
