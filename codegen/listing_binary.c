/* listing_binary.c - listings as bytes, and back.
 *
 * All numbers are little-endian:
 *     0  "amphora1"
 *     8  u32 bits of a word, u32 instructions
 *    16  u64 checksum of the rows: bytes are read by the rows that wrote them
 *    24  u32 bytes of all instructions, u32 bytes of all strings
 *    32  instructions: u16 row, u16 form, u32 comment;
 *        its words, if the row has `bits` and the form is the first, each
 *        rounded up to whole bytes; then 64 bits for every token that no word
 *        carries (names and literals of the row aside)
 *        strings, each with a NUL behind it; the first is the network's name
 * Strings and comments are offsets among the strings; UINT32_MAX: no comment.
 * Invariants: decoding gives the same instructions; reading stays inside the
 * data whatever it holds.
 */
#include "codegen/listing.h"

#include "base/map.h"
#include "base/rng.h"
#include "base/text.h"
#include "base/vec.h"

#include <inttypes.h>
#include <string.h>

enum { HEADER = 32, LEAST_RECORD = 8, MAX_WORDS = 64 };
static const char magic[8] = {'a', 'm', 'p', 'h', 'o', 'r', 'a', '1'};

bool listing_is_binary(const uint8_t *data, size_t len) {
    return len >= sizeof magic && !memcmp(data, magic, sizeof magic);
}

static uint64_t rows_checksum(const HwInsnSet *set) {
    uint64_t sum = set->word_bits;
    for (uint32_t i = 0; i < set->n; i++) {
        const HwRow *row = &set->row[i];
        sum = rng_seed(row->mnemonic, sum + row->words);
        for (uint32_t f = 0; f < row->n_forms; f++)
            for (uint32_t t = 0; t < row->form[f].n; t++) {
                const HwToken *token = &row->form[f].token[t];
                sum = rng_seed(token->name ? token->name : "#", sum + f);
            }
        for (uint32_t b = 0; b < row->n_bits; b++) {
            const HwBits *bits = &row->bits[b];
            sum = rng_seed(bits->name ? bits->name : "=",
                           sum + bits->word * 4096 + bits->at * 64 +
                               bits->width + bits->is);
        }
    }
    return sum;
}

static bool by_words(const HwRow *row, uint32_t form) {
    return row->n_bits && form == 0;
}

/* Is the token neither in a word, nor told by the row itself? */
static bool stands_alone(const HwRow *row, uint32_t form, uint32_t token) {
    const HwToken *t = &row->form[form].token[token];
    if (t->from == HW_F_MNEMONIC || !t->name)
        return false;
    for (uint32_t i = 0; i < row->n_bits && by_words(row, form); i++)
        if (row->bits[i].name && row->bits[i].token == token)
            return false;
    return true;
}

/* ---- writing ---- */

typedef struct Writer {
    Arena *arena;
    Diag *diag;
    const HwSpec *spec;
    Text insns, strings;
    Map *offset_of;
    bool ok;
} Writer;

static void add_number(Text *to, uint64_t value, uint32_t bytes) {
    char text[8];
    for (uint32_t i = 0; i < bytes; i++)
        text[i] = (char)(value >> 8 * i & 0xFF);
    text_add_n(to, text, bytes);
}

static uint32_t add_string(Writer *w, const char *text) {
    uint32_t offset = map_get(w->offset_of, text, UINT32_MAX);
    if (offset != UINT32_MAX)
        return offset;
    offset = (uint32_t)w->strings.len;
    map_put(w->offset_of, text, offset);
    text_add_n(&w->strings, text, strlen(text) + 1);
    return offset;
}

static void add_words(Writer *w, const HwRow *row, const HwInsn *insn) {
    uint64_t words[MAX_WORDS];
    w->ok &= insn_encode(w->diag, w->spec, insn, words, insn->loc);
    for (uint32_t i = 0; i < row->words && w->ok; i++)
        add_number(&w->insns, words[i], (w->spec->insns->word_bits + 7) / 8);
}

static void add_insn(Writer *w, const HwInsn *insn) {
    const HwRow *row = &w->spec->insns->row[insn->row];
    const HwForm *form = &row->form[insn->form];
    add_number(&w->insns, insn->row, 2);
    add_number(&w->insns, insn->form, 2);
    add_number(&w->insns,
               insn->comment ? add_string(w, insn->comment) : UINT32_MAX, 4);
    if (by_words(row, insn->form))
        add_words(w, row, insn);
    for (uint32_t i = 0; i < form->n; i++)
        if (stands_alone(row, insn->form, i))
            add_number(&w->insns,
                       form->token[i].is_string
                           ? add_string(w, insn->value[i].str)
                           : (uint64_t)insn->value[i].num,
                       8);
}

bool listing_encode(Arena *arena, Diag *diag, const Listing *listing,
                    const uint8_t **out, size_t *len) {
    const HwInsnSet *set = listing->spec->insns;
    Writer w = {.arena = arena,
                .diag = diag,
                .spec = listing->spec,
                .insns = text_new(arena),
                .strings = text_new(arena),
                .offset_of = map_new(arena),
                .ok = true};
    add_string(&w, listing->network);
    for (uint32_t i = 0; i < listing->n; i++)
        add_insn(&w, &listing->insn[i]);
    if (w.insns.len > INT32_MAX || w.strings.len > INT32_MAX) {
        diag_error(diag, (Loc){0}, "the listing is too large to encode");
        return false;
    }
    Text all = text_new(arena);
    text_add_n(&all, magic, sizeof magic);
    add_number(&all, set->word_bits, 4);
    add_number(&all, listing->n, 4);
    add_number(&all, rows_checksum(set), 8);
    add_number(&all, w.insns.len, 4);
    add_number(&all, w.strings.len, 4);
    text_add_n(&all, w.insns.at, w.insns.len);
    text_add_n(&all, w.strings.at, w.strings.len);
    *out = (const uint8_t *)all.at;
    *len = all.len;
    return w.ok;
}

bool listing_words(Arena *arena, Diag *diag, const Listing *listing,
                   const uint8_t **out, size_t *len, uint32_t *n) {
    const HwInsnSet *set = listing->spec->insns;
    Writer w = {.arena = arena,
                .diag = diag,
                .spec = listing->spec,
                .insns = text_new(arena),
                .ok = true};
    *n = 0;
    for (uint32_t i = 0; i < listing->n; i++) {
        const HwInsn *insn = &listing->insn[i];
        const HwRow *row = &set->row[insn->row];
        if (row->comment)
            continue;
        if (!by_words(row, insn->form)) {
            diag_error(diag, insn->loc, "%s has no `bits` in the hwspec of %s",
                       row->mnemonic, listing->spec->machine);
            return false;
        }
        add_words(&w, row, insn);
        ++*n;
    }
    *out = (const uint8_t *)w.insns.at;
    *len = w.insns.len;
    return w.ok;
}

/* ---- reading ---- */

typedef struct Reader {
    Arena *arena;
    Diag *diag;
    const HwSpec *spec;
    const char *file;
    const uint8_t *data;
    size_t at, end; /* instructions that are left to read */
    const char *strings;
    uint32_t n_strings; /* bytes */
} Reader;

static bool bad(const Reader *r, const char *what) {
    diag_error(r->diag, (Loc){r->file, 0, (uint32_t)r->at}, "%s", what);
    return false;
}

static uint64_t number_at(const uint8_t *data, uint32_t bytes) {
    uint64_t value = 0;
    for (uint32_t i = 0; i < bytes; i++)
        value |= (uint64_t)data[i] << 8 * i;
    return value;
}

static bool take(Reader *r, uint32_t bytes, uint64_t *out) {
    if (r->end - r->at < bytes)
        return bad(r, "the instructions end here, too early");
    *out = number_at(r->data + r->at, bytes);
    r->at += bytes;
    return true;
}

static bool string_at(const Reader *r, uint64_t offset, const char **out) {
    if (offset >= r->n_strings)
        return bad(r, "a string lies outside the table of strings");
    *out = r->strings + offset;
    return true;
}

static bool take_words(Reader *r, uint32_t row, HwInsn *out) {
    uint64_t words[MAX_WORDS];
    const HwInsnSet *set = r->spec->insns;
    size_t start = r->at;
    for (uint32_t i = 0; i < set->row[row].words; i++)
        if (!take(r, (set->word_bits + 7) / 8, &words[i]))
            return false;
    if (!insn_decode(r->arena, r->diag, r->spec, words, set->row[row].words,
                     (Loc){r->file, 0, (uint32_t)start}, out))
        return false;
    return out->row == row ||
           bad(r, "these words are those of another instruction");
}

static bool take_tokens(Reader *r, const HwRow *row, HwInsn *insn,
                        HwValue *value) {
    const HwForm *form = &row->form[insn->form];
    for (uint32_t i = 0; i < form->n; i++) {
        uint64_t raw;
        if (!form->token[i].name)
            value[i].num = form->token[i].constant;
        if (!stands_alone(row, insn->form, i))
            continue;
        if (!take(r, 8, &raw))
            return false;
        if (!form->token[i].is_string)
            value[i] = (HwValue){.num = (int64_t)raw};
        else if (!string_at(r, raw, &value[i].str))
            return false;
    }
    return true;
}

static bool take_insn(Reader *r, HwInsn *out) {
    const HwInsnSet *set = r->spec->insns;
    uint64_t row, form, comment;
    Loc loc = {r->file, 0, (uint32_t)r->at};
    if (!take(r, 2, &row) || !take(r, 2, &form) || !take(r, 4, &comment))
        return false;
    if (row >= set->n || form >= set->row[row].n_forms)
        return bad(r, "no such instruction");
    const HwRow *is = &set->row[row];
    HwInsn insn = {.row = (uint16_t)row};
    if (by_words(is, (uint32_t)form) && !take_words(r, (uint32_t)row, &insn))
        return false;
    insn.form = (uint16_t)form;
    insn.loc = loc;
    uint32_t n = is->form[form].n;
    HwValue *value = insn.value ? ARENA_COPY(r->arena, HwValue, insn.value, n)
                                : ARENA_ARRAY(r->arena, HwValue, n);
    insn.value = value;
    *out = insn;
    HwOp op;
    return take_tokens(r, is, out, value) &&
           (comment == UINT32_MAX || string_at(r, comment, &out->comment)) &&
           (insn_find_op(r->spec, out, &op) ||
            bad(r, "the instruction is no operation of its row"));
}

/* Checks the header; then the reader stands before the first instruction. */
static bool open_data(Reader *r, size_t len, uint32_t *n) {
    const HwInsnSet *set = r->spec->insns;
    if (len < HEADER || memcmp(r->data, magic, sizeof magic))
        return bad(r, "not a binary listing: it does not begin with amphora1");
    *n = (uint32_t)number_at(r->data + 12, 4);
    uint64_t insns = number_at(r->data + 24, 4);
    r->n_strings = (uint32_t)number_at(r->data + 28, 4);
    if (number_at(r->data + 8, 4) != set->word_bits ||
        number_at(r->data + 16, 8) != rows_checksum(set)) {
        r->at = 8;
        return bad(r, "written for a machine with other instructions");
    }
    r->at = 12;
    if (insns + r->n_strings != len - HEADER || *n > insns / LEAST_RECORD)
        return bad(r, "the sizes in the header contradict the file's");
    const char *strings = (const char *)r->data + HEADER + insns;
    if (!r->n_strings || strings[r->n_strings - 1])
        return bad(r, "the table of strings does not end in a NUL");
    r->strings = ARENA_COPY(r->arena, char, strings, r->n_strings);
    r->at = HEADER;
    r->end = HEADER + insns;
    return true;
}

const Listing *listing_decode(Arena *arena, Diag *diag, const HwSpec *spec,
                              const char *file, const uint8_t *data,
                              size_t len) {
    Reader r = {arena, diag, spec, file, data, 0, len, NULL, 0};
    uint32_t n;
    if (!open_data(&r, len, &n))
        return NULL;
    HwInsn *insn = ARENA_ARRAY(arena, HwInsn, n);
    for (uint32_t i = 0; i < n; i++)
        if (!take_insn(&r, &insn[i]))
            return NULL;
    if (r.at != r.end) {
        bad(&r, "more bytes than instructions");
        return NULL;
    }
    Listing *listing = ARENA_NEW(arena, Listing);
    *listing =
        (Listing){.spec = spec, .network = r.strings, .n = n, .insn = insn};
    return listing;
}
