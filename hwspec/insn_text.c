/* insn_text.c - instructions as lines of text; see insn.h.
 *
 * Input: a line, or an instruction. Output: the other. Invariants: a line is
 * read by the first form, in the order of rows and forms, with its number of
 * tokens and its mnemonic in place; printing it gives the same tokens.
 */
#include "hwspec/insn.h"

#include "base/plain.h"
#include "base/text.h"
#include "base/vec.h"

#include <inttypes.h>
#include <string.h>

/* ---- numbers and names as single words ---- */

static bool digit_of(char c, uint32_t base, uint64_t *out) {
    uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                     : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a') + 10
                     : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A') + 10
                                            : base;
    *out = digit;
    return digit < base;
}

bool insn_number(const char *text, int64_t *out) {
    bool negative = *text == '-';
    const char *at = text + negative;
    bool hex = at[0] == '0' && at[1] == 'x';
    at += hex ? 2 : 0;
    uint64_t value = 0, digit, base = hex ? 16 : 10;
    uint64_t most = (uint64_t)INT64_MAX + negative;
    if (!*at)
        return false;
    for (; *at; at++)
        if (!digit_of(*at, (uint32_t)base, &digit) ||
            value > (most - digit) / base)
            return false;
        else
            value = value * base + digit;
    *out = negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

static bool is_escape(const char *at) {
    uint64_t digit;
    return at[0] == '%' && digit_of(at[1], 16, &digit) &&
           digit_of(at[2], 16, &digit);
}

static void add_name(Text *text, const char *name) {
    if (!*name || !strcmp(name, "%"))
        text_add(text, *name ? "%25" : "%");
    else
        for (const char *at = name; *at; at++) {
            unsigned char c = (unsigned char)*at;
            size_t n = plain_length(at);
            if (!n || c == ' ' || (c == '#' && at == name) || is_escape(at)) {
                text_addf(text, "%%%02x", c);
            } else {
                text_add_n(text, at, n);
                at += n - 1;
            }
        }
}

static const char *name_of(Arena *arena, const char *word) {
    char *name = arena_strdup(arena, strcmp(word, "%") ? word : "");
    char *to = name;
    for (const char *at = name; *at; at++) {
        uint64_t high, low;
        bool escape = is_escape(at) && digit_of(at[1], 16, &high) &&
                      digit_of(at[2], 16, &low) && high * 16 + low;
        *to++ = escape ? (char)(high * 16 + low) : *at;
        at += escape ? 2 : 0;
    }
    *to = '\0';
    return name;
}

/* ---- printing ---- */

/* By hand: listings are mostly numbers, and printf takes most of their time. */
static void add_number(Text *text, const HwToken *token, int64_t value) {
    char digits[24], *at = digits + sizeof digits;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    uint64_t base = token->hex ? 16 : 10;
    do
        *--at = "0123456789abcdef"[rest % base];
    while (rest /= base);
    if (token->hex) {
        *--at = 'x';
        *--at = '0';
    }
    if (value < 0)
        *--at = '-';
    text_add_n(text, at, (size_t)(digits + sizeof digits - at));
}

static void add_value(Text *text, const HwRow *row, const HwToken *token,
                      const HwValue *value) {
    if (token->from == HW_F_MNEMONIC)
        text_add(text, row->mnemonic);
    else if (token->is_string)
        add_name(text, value->str);
    else
        add_number(text, token, value->num);
}

const char *insn_token_text(Arena *arena, const HwRow *row,
                            const HwToken *token, const HwValue *value) {
    Text text = text_new(arena);
    add_value(&text, row, token, value);
    return text_str(&text);
}

static void add_comment(Text *text, const char *comment) {
    text_add(text, " # ");
    for (size_t n; *comment; comment += n ? n : 1)
        if ((n = plain_length(comment)) > 0)
            text_add_n(text, comment, n);
        else
            text_add(text, " ");
}

const char *insn_print(Arena *arena, const HwSpec *spec, const HwInsn *insn) {
    const HwRow *row = &spec->insns->row[insn->row];
    const HwForm *form = &row->form[insn->form];
    Text text = text_new(arena);
    text_add(&text, row->comment ? "# " : "");
    for (uint32_t i = 0; i < form->n; i++) {
        if (i)
            text_add(&text, form->token[i - 1].gap ? "  " : " ");
        add_value(&text, row, &form->token[i], &insn->value[i]);
    }
    if (insn->comment)
        add_comment(&text, insn->comment);
    return text_str(&text);
}

const char *insn_template(Arena *arena, const HwSpec *spec, uint32_t index) {
    const HwRow *row = &spec->insns->row[index];
    const HwForm *form = &row->form[0];
    Text text = text_new(arena);
    text_addf(&text, "# template %s", row->mnemonic);
    for (uint32_t i = 0; i < form->n; i++)
        if (form->token[i].name)
            text_addf(&text, " %s", form->token[i].name);
        else
            text_addf(&text, " %" PRId64, form->token[i].constant);
    return text_str(&text);
}

/* ---- splitting a line ---- */

typedef struct Word {
    const char *text;
    uint32_t at; /* offset in the line */
} Word;

typedef struct Line {
    Arena *arena;
    Diag *diag;
    const HwSpec *spec;
    Loc loc;
    bool is_comment; /* begins with # */
    VEC(Word) word;
    const char *comment;
} Line;

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

/* The text behind a #, up to a NUL, without white space around it; NULL if
 * none. What is not written as it is becomes white space, as which it is
 * printed. */
static const char *comment_at(Arena *arena, const char *line, size_t at,
                              size_t len) {
    char *text = arena_strndup(arena, line + at, len - at);
    for (size_t i = 0, n; text[i]; i += n ? n : 1)
        if (!(n = plain_length(text + i)))
            text[i] = ' ';
    while (*text == ' ')
        text++;
    for (len = strlen(text); len && text[len - 1] == ' '; len--)
        text[len - 1] = '\0';
    return len ? text : NULL;
}

static void split(Line *l, const char *line, size_t len) {
    for (size_t at = 0; at < len;) {
        size_t end = at;
        while (end < len && !is_space(line[end]))
            end++;
        if (end == at) {
            at++;
        } else if (line[at] == '#' && !l->word.n && !l->is_comment) {
            l->is_comment = true;
            at++;
        } else if (line[at] == '#') {
            l->comment = comment_at(l->arena, line, at + 1, len);
            return;
        } else {
            Word word = {arena_strndup(l->arena, line + at, end - at),
                         (uint32_t)at};
            vec_push(l->arena, &l->word, word);
            at = end;
        }
    }
}

static Loc loc_of(const Line *l, uint32_t word) {
    Loc loc = l->loc;
    if (loc.line)
        loc.col = (loc.col ? loc.col : 1) + l->word.at[word].at;
    return loc;
}

/* ---- finding the form ---- */

static bool has_mnemonic(const Line *l, const HwRow *row, const HwForm *form) {
    return form->mnemonic < l->word.n &&
           !strcmp(l->word.at[form->mnemonic].text, row->mnemonic);
}

/* Is what stands before the mnemonic what the form wants there? If not, a line
 * that begins with # is just a comment. */
static bool starts_like(const Line *l, const HwForm *form) {
    int64_t number;
    for (uint32_t i = 0; i < form->mnemonic; i++)
        if (!form->token[i].is_string &&
            !insn_number(l->word.at[i].text, &number))
            return false;
    return true;
}

/* The rows and forms that have this line's mnemonic in place. */
typedef struct Found {
    const HwRow *row;
    uint32_t form;
    bool ok; /* the number of tokens is right, too */
} Found;

static bool look_in(const Line *l, const HwRow *row, Found *found) {
    for (uint32_t i = 0; i < row->n_forms; i++) {
        const HwForm *form = &row->form[i];
        if (!has_mnemonic(l, row, form) ||
            (l->is_comment && !starts_like(l, form)))
            continue;
        *found = (Found){row, i, form->n == l->word.n};
        if (found->ok)
            return true;
    }
    return false;
}

static Found find_form(const Line *l) {
    Found found = {0};
    const HwInsnSet *set = l->spec->insns;
    for (uint32_t i = 0; i < set->n; i++)
        if (set->row[i].comment == l->is_comment &&
            look_in(l, &set->row[i], &found))
            break;
    return found;
}

static void report_count(const Line *l, const HwRow *row) {
    Text counts = text_new(l->arena);
    for (uint32_t i = 0; i < row->n_forms; i++)
        text_addf(&counts, "%s%u",
                  !i                     ? ""
                  : i + 1 < row->n_forms ? ", "
                                         : " or ",
                  row->form[i].n);
    uint32_t last = l->word.n - 1;
    Loc loc = loc_of(l, last);
    diag_error(l->diag, loc, "%s has %s tokens; this line has %u",
               row->mnemonic, text_str(&counts), l->word.n);
}

static void report_unknown(const Line *l) {
    const HwInsnSet *set = l->spec->insns;
    uint32_t at = l->word.n > 1;
    for (uint32_t i = 0; i < set->n; i++)
        if (set->row[i].comment &&
            has_mnemonic(l, &set->row[i], &set->row[i].form[0])) {
            diag_error(l->diag, loc_of(l, 0),
                       "%s is written behind `#`: it moves no data",
                       set->row[i].mnemonic);
            return;
        }
    diag_error(l->diag, loc_of(l, at), "`%s` is no instruction of %s",
               l->word.at[at].text, l->spec->machine);
}

/* ---- reading values ---- */

static bool read_value(const Line *l, uint32_t i, const HwToken *token,
                       HwValue *out) {
    const char *word = l->word.at[i].text;
    if (token->from == HW_F_MNEMONIC)
        return true;
    if (token->is_string) {
        out->str = name_of(l->arena, word);
        return true;
    }
    if (!insn_number(word, &out->num)) {
        diag_error(l->diag, loc_of(l, i),
                   "`%s` is not a number of 64 bits (%s)", word,
                   token->name ? token->name : "a literal");
        return false;
    }
    if (token->name || out->num == token->constant)
        return true;
    diag_error(l->diag, loc_of(l, i), "%" PRId64 " is expected here, not `%s`",
               token->constant, word);
    return false;
}

static bool read_values(const Line *l, const HwForm *form, HwValue *value) {
    bool ok = true;
    for (uint32_t i = 0; i < form->n; i++)
        ok &= read_value(l, i, &form->token[i], &value[i]);
    return ok;
}

static bool check_op(const Line *l, const HwInsn *insn) {
    HwOp op;
    if (insn_find_op(l->spec, insn, &op))
        return true;
    const HwRow *row = &l->spec->insns->row[insn->row];
    const HwForm *form = &row->form[insn->form];
    int32_t at = insn_token(form, row->serve[0].when[0].token);
    Text ops = text_new(l->arena);
    for (uint32_t i = 0; i < row->n_serves; i++)
        text_addf(&ops, "%s%s", i ? ", " : "", hw_op_name[row->serve[i].op]);
    diag_error(l->diag, loc_of(l, at < 0 ? form->mnemonic : (uint32_t)at),
               "these fields make %s none of: %s", row->mnemonic,
               text_str(&ops));
    return false;
}

InsnParse insn_parse(Arena *arena, Diag *diag, const HwSpec *spec,
                     const char *line, size_t len, Loc loc, HwInsn *out) {
    Line l = {.arena = arena, .diag = diag, .spec = spec, .loc = loc};
    split(&l, line, len);
    if (!l.word.n)
        return INSN_NOTHING;
    Found found = find_form(&l);
    if (!found.row && l.is_comment)
        return INSN_NOTHING;
    if (!found.row)
        report_unknown(&l);
    else if (!found.ok)
        report_count(&l, found.row);
    if (!found.ok)
        return INSN_ERROR;
    const HwForm *form = &found.row->form[found.form];
    HwValue *value = ARENA_ARRAY(arena, HwValue, form->n);
    *out = (HwInsn){.row = (uint16_t)(found.row - spec->insns->row),
                    .form = (uint16_t)found.form,
                    .value = value,
                    .comment = l.comment,
                    .loc = loc};
    return read_values(&l, form, value) && check_op(&l, out) ? INSN_OK
                                                             : INSN_ERROR;
}

size_t insn_tile_mark(const char *name) {
    const char *mark = strrchr(name, '#');
    size_t digits = mark ? strspn(mark + 1, "0123456789") : 0;
    return digits && !mark[1 + digits] ? (size_t)(mark - name) : strlen(name);
}
