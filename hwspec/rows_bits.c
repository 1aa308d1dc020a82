/* rows_bits.c - where the tokens of a row go in binary words.
 *
 * Input: the `bits` list of a row. Output: HwBits of which none overlap, leave
 * their word, or are too narrow for what the machine lets the token be.
 */
#include "hwspec/rows.h"

#include "base/vec.h"

#include <string.h>

enum { MAX_WORDS = 64 };

typedef struct BitsReader {
    Arena *arena;
    Diag *diag;
    const HwSpec *spec;
    HwRow *row;
    uint32_t word_bits;
    VEC(HwBits) list;
} BitsReader;

static uint64_t mask_of(const HwBits *bits) {
    uint64_t ones =
        bits->width == 64 ? UINT64_MAX : (UINT64_C(1) << bits->width) - 1;
    return ones << bits->at;
}

static uint32_t bit_length(uint64_t value) {
    return value ? 64 - (uint32_t)__builtin_clzll(value) : 1;
}

/* Least and most of what is stored. False where nothing is known. */
static bool stored_range(const HwSpec *spec, const HwRow *row,
                         const HwBits *bits, int64_t *least, int64_t *most) {
    const HwToken *token = &row->form[0].token[bits->token];
    if (!rows_range(spec, row, token, least, most))
        return false;
    int64_t unit = (int64_t)bits->unit;
    return !__builtin_sub_overflow(*least / unit, bits->bias, least) &&
           !__builtin_sub_overflow(*most / unit, bits->bias, most);
}

/* A width that holds least..most; a sign is added where least is negative. */
static uint32_t width_for(int64_t least, int64_t most, bool is_signed) {
    uint32_t high = bit_length(most > 0 ? (uint64_t)most : 0);
    uint32_t low = least < 0 ? bit_length(~(uint64_t)least) : 1;
    return (high > low ? high : low) + (is_signed ? 1 : 0);
}

static bool read_constant_bits(BitsReader *r, const YamlNode *map,
                               const YamlNode *is, HwBits *bits) {
    if (!yaml_u64(r->diag, is, &bits->is))
        return false;
    yaml_str(r->diag, yaml_get(map, "field"), &bits->label);
    if (bits->width < 64 && bits->is >> bits->width) {
        diag_error(r->diag, is->loc, "%llu does not fit into %u bits",
                   (unsigned long long)bits->is, bits->width);
        return false;
    }
    return true;
}

static bool find_token(BitsReader *r, const YamlNode *map, HwBits *bits) {
    const YamlNode *field = yaml_need(r->diag, map, "field");
    const HwForm *form = &r->row->form[0];
    if (!yaml_str(r->diag, field, &bits->name))
        return false;
    bits->label = bits->name;
    int32_t token = insn_token(form, bits->name);
    const char *wrong = token < 0 ? "is no token of this row's text"
                        : form->token[token].is_string ? "is a string"
                        : form->token[token].from == HW_F_MNEMONIC
                            ? "is the mnemonic: give `is`"
                            : NULL;
    for (uint32_t i = 0; i < r->list.n && !wrong; i++)
        if (r->list.at[i].name && r->list.at[i].token == (uint32_t)token)
            wrong = "has bits already";
    if (wrong)
        diag_error(r->diag, field->loc, "`%s` %s", bits->name, wrong);
    bits->token = (uint32_t)token;
    return !wrong;
}

/* A variant of a machine may run less than its rows are for. */
static bool is_written(const HwSpec *spec, const HwRow *row) {
    HwOps written = hw_ops_with(HW_MOVE | HW_NOTE);
    for (uint32_t e = 0; e < spec->n_engines; e++)
        written |= spec->engine[e].ops;
    for (uint32_t s = 0; s < row->n_serves; s++)
        if (written >> row->serve[s].op & 1)
            return true;
    return false;
}

bool rows_bits_hold(const HwSpec *spec, const HwRow *row) {
    for (uint32_t i = 0; i < row->n_bits && is_written(spec, row); i++) {
        const HwBits *bits = &row->bits[i];
        int64_t least, most;
        if (bits->name && !bits->is_auto &&
            stored_range(spec, row, bits, &least, &most) &&
            width_for(least, most, bits->is_signed) > bits->width)
            return false;
    }
    return true;
}

/* `width: auto`, or a number that must do for what is known. */
static bool check_width(BitsReader *r, const YamlNode *width, bool is_auto,
                        HwBits *bits) {
    int64_t least = 0, most = 0;
    bool known = !is_written(r->spec, r->row) ||
                 stored_range(r->spec, r->row, bits, &least, &most);
    bits->is_auto = is_auto;
    if (is_auto && !known) {
        diag_error(r->diag, width->loc,
                   "nothing bounds `%s`: its width must be given", bits->name);
        return false;
    }
    if (known && least < 0 && !bits->is_signed) {
        diag_error(r->diag, bits->loc,
                   "`%s` can be %lld here, and is not `signed`", bits->name,
                   (long long)least);
        return false;
    }
    uint32_t need = known ? width_for(least, most, bits->is_signed) : 0;
    if (is_auto)
        bits->width = need;
    if (need <= bits->width)
        return true;
    diag_error(r->diag, width->loc,
               "`%s` needs %u bits, for %lld to %lld; it has %u", bits->name,
               need, (long long)least, (long long)most, bits->width);
    return false;
}

static bool read_token_bits(BitsReader *r, const YamlNode *map,
                            const YamlNode *width, bool is_auto, HwBits *bits) {
    const YamlNode *unit = yaml_get(map, "unit");
    yaml_u64(r->diag, unit, &bits->unit);
    if (!bits->unit || bits->unit > INT32_MAX) {
        diag_error(r->diag, unit->loc, "the unit is 1 to 2^31-1");
        return false;
    }
    const YamlNode *bias = yaml_get(map, "bias");
    yaml_i64(r->diag, bias, &bits->bias);
    if (bits->bias > INT32_MAX || bits->bias < INT32_MIN) {
        diag_error(r->diag, bias->loc, "the bias is too large");
        return false;
    }
    yaml_bool(r->diag, yaml_get(map, "signed"), &bits->is_signed);
    return find_token(r, map, bits) && check_width(r, width, is_auto, bits);
}

static bool in_word(BitsReader *r, const HwBits *bits) {
    if (bits->word >= MAX_WORDS)
        diag_error(r->diag, bits->loc, "an instruction has at most %d words",
                   MAX_WORDS);
    else if (!bits->width ||
             (uint64_t)bits->at + bits->width > r->word_bits)
        diag_error(r->diag, bits->loc,
                   "bits %u to %u%s%s are outside a word of %u bits", bits->at,
                   bits->at + bits->width - 1, bits->name ? " of " : "",
                   bits->name ? bits->name : "", r->word_bits);
    else
        return true;
    return false;
}

static const HwBits *overlapping(const BitsReader *r, const HwBits *bits) {
    for (uint32_t i = 0; i < r->list.n; i++)
        if (r->list.at[i].word == bits->word &&
            mask_of(&r->list.at[i]) & mask_of(bits))
            return &r->list.at[i];
    return NULL;
}

static void add_bits(BitsReader *r, const HwBits *bits) {
    const HwBits *other = overlapping(r, bits);
    if (other)
        diag_error(r->diag, bits->loc,
                   other->label
                       ? "bits %u to %u of word %u overlap those of `%s`"
                       : "bits %u to %u of word %u overlap those of a constant",
                   bits->at, bits->at + bits->width - 1, bits->word,
                   other->label);
    else
        vec_push(r->arena, &r->list, *bits);
    if (r->row->words <= bits->word)
        r->row->words = bits->word + 1;
}

static void read_item(BitsReader *r, YamlNode *map) {
    HwBits bits = {.unit = 1, .loc = map->loc};
    if (!yaml_is(r->diag, map, YAML_MAP))
        return;
    const YamlNode *width = yaml_need(r->diag, map, "width");
    const YamlNode *is = yaml_get(map, "is");
    bool is_auto = !is && width && width->kind == YAML_SCALAR &&
                   !strcmp(width->text, "auto");
    bool ok = yaml_u32(r->diag, yaml_need(r->diag, map, "word"), &bits.word);
    ok &= yaml_u32(r->diag, yaml_need(r->diag, map, "at"), &bits.at);
    ok &= is_auto || yaml_u32(r->diag, width, &bits.width);
    ok = ok && (is_auto || in_word(r, &bits));
    ok = ok && (is ? read_constant_bits(r, map, is, &bits)
                   : read_token_bits(r, map, width, is_auto, &bits));
    ok = ok && (!is_auto || in_word(r, &bits));
    if (ok)
        add_bits(r, &bits);
    else
        rows_skip(map);
}

void rows_read_bits(Arena *arena, Diag *diag, const HwSpec *spec, HwRow *row,
                    uint32_t word_bits, YamlNode *list) {
    if (!yaml_is(diag, list, YAML_LIST)) {
        if (list)
            rows_skip(list);
        return;
    }
    BitsReader r = {arena, diag, spec, row, word_bits, {0}};
    for (uint32_t i = 0; i < list->n; i++)
        read_item(&r, list->item[i]);
    row->n_bits = r.list.n;
    row->bits = r.list.at;
}
