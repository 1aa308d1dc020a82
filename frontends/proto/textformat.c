/* textformat.c - protobuf text format to trees; see textformat.h.
 *
 * Recursive descent straight over the bytes, without a token buffer, so a
 * string of any length costs only its own bytes. Fields of open messages wait
 * on one stack; a message that closes takes its own from the top of it. A bad
 * number or string is reported and parsing goes on; the first error of
 * structure ends it, since what follows would be guesswork.
 */
#include "frontends/proto/textformat.h"

#include "base/text.h"
#include "base/vec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ERRORS = 100 };

typedef struct Parser {
    Arena *arena;
    Diag *diag;
    const char *file;
    const char *at, *end, *line_start;
    uint32_t line, depth, fields, errors_before;
    bool stop;
    VEC(ProtoField) open; /* fields of messages that are not closed yet */
    Text scratch;         /* the string that is being read */
} Parser;

static bool is_letter(int c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(int c) {
    return c >= '0' && c <= '9';
}

/* The value of a digit in any base up to 16; 16 for other bytes. */
static unsigned digit_of(int c) {
    if (is_digit(c))
        return (unsigned)(c - '0');
    if (c >= 'a' && c <= 'f')
        return (unsigned)(c - 'a' + 10);
    if (c >= 'A' && c <= 'F')
        return (unsigned)(c - 'A' + 10);
    return 16;
}

static int peek(const Parser *p) {
    return p->at < p->end ? (unsigned char)*p->at : -1;
}

static Loc here(const Parser *p) {
    return (Loc){p->file, p->line, (uint32_t)(p->at - p->line_start) + 1};
}

static void skip_space(Parser *p) {
    for (; p->at < p->end; p->at++) {
        if (*p->at == '#')
            while (p->at < p->end && *p->at != '\n')
                p->at++;
        if (p->at == p->end)
            return;
        if (*p->at == '\n') {
            p->line++;
            p->line_start = p->at + 1;
        } else if (!strchr(" \t\r\f\v", *p->at) || !*p->at) {
            return;
        }
    }
}

/* The next byte as it is named in messages. */
static const char *found(const Parser *p) {
    int c = peek(p);
    if (c < 0)
        return "the end of the file";
    if (c <= ' ' || c > '~')
        return arena_printf(p->arena, "byte 0x%02x", (unsigned)c);
    return arena_printf(p->arena, "'%c'", c);
}

static bool fail(Parser *p, Loc loc, const char *what, const char *where) {
    if (!p->stop)
        diag_error(p->diag, loc, "%s, found %s", what, where);
    p->stop = true;
    return false;
}

/* After an error that parsing survives. */
static void survive(Parser *p) {
    if (diag_errors(p->diag) - p->errors_before >= MAX_ERRORS)
        p->stop = true;
}

static bool accept(Parser *p, char c) {
    if (peek(p) != c)
        return false;
    p->at++;
    skip_space(p);
    return true;
}

/* ---- strings ---- */

static void add_utf8(Text *out, uint32_t c) {
    char bytes[4];
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned first[] = {0, 0x00, 0xc0, 0xe0, 0xf0};
    for (size_t i = n; i-- > 1; c >>= 6)
        bytes[i] = (char)(0x80 | (c & 0x3f));
    bytes[0] = (char)(first[n] | c);
    text_add_n(out, bytes, n);
}

/* Up to `max` digits of `base`; false if there is none. */
static bool read_digits(Parser *p, unsigned base, int max, uint32_t *value) {
    const char *start = p->at;
    *value = 0;
    while (max-- > 0 && peek(p) >= 0 && digit_of(peek(p)) < base)
        *value = *value * base + digit_of(*p->at++);
    return p->at > start;
}

/* Behind \u or \U. A pair of surrogates is one character. */
static bool read_unicode(Parser *p, int digits, uint32_t *c) {
    const char *start = p->at;
    if (!read_digits(p, 16, digits, c) || p->at - start != digits)
        return false;
    if (*c >= 0xd800 && *c < 0xdc00 && p->end - p->at > 2 && p->at[0] == '\\' &&
        p->at[1] == 'u') {
        uint32_t low;
        p->at += 2;
        if (!read_digits(p, 16, 4, &low) || low < 0xdc00 || low > 0xdfff)
            return false;
        *c = 0x10000 + ((*c - 0xd800) << 10) + (low - 0xdc00);
    }
    return *c <= 0x10ffff && (*c < 0xd800 || *c > 0xdfff);
}

/* One escape, `at` behind its backslash. */
static bool read_escape(Parser *p, Text *out) {
    static const char letters[] = "abfnrtv?\\'\"";
    static const char values[] = "\a\b\f\n\r\t\v?\\'\"";
    int c = peek(p);
    uint32_t value = 0;
    const char *letter = c > 0 ? strchr(letters, c) : NULL;
    if (letter) {
        p->at++;
        text_add_n(out, &values[letter - letters], 1);
        return true;
    }
    if (c == 'u' || c == 'U') {
        p->at++;
        if (!read_unicode(p, c == 'u' ? 4 : 8, &value))
            return false;
        add_utf8(out, value);
        return true;
    }
    if (c == 'x' || c == 'X')
        p->at++;
    if (!read_digits(p, c == 'x' || c == 'X' ? 16 : 8,
                     c == 'x' || c == 'X' ? 2 : 3, &value) ||
        value > 0xff)
        return false;
    char byte = (char)value;
    text_add_n(out, &byte, 1);
    return true;
}

/* One quoted piece. */
static bool read_piece(Parser *p, Text *out) {
    Loc opens = here(p);
    char quote = *p->at++;
    while (p->at < p->end && *p->at != quote && *p->at != '\n') {
        const char *run = p->at;
        while (p->at < p->end && *p->at != quote && *p->at != '\n' &&
               *p->at != '\\')
            p->at++;
        text_add_n(out, run, (size_t)(p->at - run));
        if (peek(p) != '\\')
            continue;
        Loc loc = here(p);
        p->at++;
        if (peek(p) >= 0 && peek(p) != '\n' && !read_escape(p, out)) {
            diag_error(p->diag, loc, "unknown escape in a string");
            survive(p);
        }
    }
    if (peek(p) != quote) {
        diag_error(p->diag, opens, "this string is not closed on its line");
        p->stop = true;
        return false;
    }
    p->at++;
    return true;
}

/* Strings that stand side by side are one. */
static bool read_string(Parser *p, ProtoField *field) {
    p->scratch.len = 0;
    field->kind = PROTO_STRING;
    do {
        if (!read_piece(p, &p->scratch))
            return false;
        skip_space(p);
    } while (peek(p) == '"' || peek(p) == '\'');
    field->len = p->scratch.len;
    field->text = arena_strndup(p->arena, text_str(&p->scratch), field->len);
    return true;
}

/* ---- numbers and words ---- */

/* Whole numbers in base 8, 10 or 16 that fit 64 bits. */
static bool read_whole(const char *text, bool negative, ProtoField *field) {
    unsigned base = 10;
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
        base = 16;
    else if (text[0] == '0' && text[1])
        base = 8;
    uint64_t value = 0;
    text += base == 16 ? 2 : 0;
    if (!*text)
        return false;
    for (; *text; text++) {
        unsigned digit = digit_of((unsigned char)*text);
        if (digit >= base || value > (UINT64_MAX - digit) / base)
            return false;
        value = value * base + digit;
    }
    if (negative && value > UINT64_C(1) << 63)
        return false;
    field->whole = true;
    field->integer = (int64_t)(negative ? 0 - value : value);
    field->number = negative ? -(double)value : (double)value;
    return true;
}

/* Fractions, exponents, a trailing f, and decimals beyond 64 bits. */
static bool read_fraction(const char *text, bool negative, ProtoField *field) {
    bool marked = strpbrk(text, ".eEfF") != NULL;
    if (text[0] == '0' && !marked && text[1])
        return false;
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
        return false;
    char *rest;
    double value = strtod(text, &rest);
    if ((*rest == 'f' || *rest == 'F') && rest > text)
        rest++;
    field->number = negative ? -value : value;
    return !*rest && rest > text;
}

static void read_number(Parser *p, bool negative, ProtoField *field) {
    const char *start = p->at;
    bool hex = p->end - p->at > 1 && (p->at[1] == 'x' || p->at[1] == 'X');
    while (p->at < p->end) {
        char c = *p->at;
        bool sign = (c == '-' || c == '+') && p->at > start && !hex &&
                    (p->at[-1] == 'e' || p->at[-1] == 'E');
        if (!is_letter(c) && !is_digit(c) && c != '.' && !sign)
            break;
        p->at++;
    }
    int len = (int)(p->at - start);
    const char *text = arena_printf(p->arena, "-%.*s", len, start);
    field->kind = PROTO_NUMBER;
    field->text = negative ? text : text + 1;
    field->len = strlen(field->text);
    if (read_whole(text + 1, negative, field) ||
        read_fraction(text + 1, negative, field))
        return;
    diag_error(p->diag, field->at, "'%.60s' is not a number", field->text);
    survive(p);
}

static void read_word(Parser *p, ProtoField *field) {
    const char *start = p->at;
    while (is_letter(peek(p)) || is_digit(peek(p)))
        p->at++;
    field->kind = PROTO_WORD;
    field->len = (size_t)(p->at - start);
    field->text = arena_strndup(p->arena, start, field->len);
}

/* A word behind a minus sign: infinity or not-a-number. */
static bool read_minus_word(Parser *p, ProtoField *field) {
    read_word(p, field);
    bool inf = !strcmp(field->text, "inf") || !strcmp(field->text, "infinity");
    if (!inf && strcmp(field->text, "nan"))
        return fail(p, field->at, "expected a number behind '-'",
                    arena_printf(p->arena, "'%.60s'", field->text));
    field->kind = PROTO_NUMBER;
    field->number = inf ? -(double)INFINITY : (double)NAN;
    field->text = arena_printf(p->arena, "-%s", field->text);
    field->len++;
    return true;
}

static bool read_scalar(Parser *p, ProtoField *field) {
    int c = peek(p);
    if (c == '"' || c == '\'')
        return read_string(p, field);
    bool negative = accept(p, '-');
    c = peek(p);
    if (is_digit(c) || (c == '.' && p->end - p->at > 1 && is_digit(p->at[1])))
        read_number(p, negative, field);
    else if (is_letter(c) && negative)
        return read_minus_word(p, field);
    else if (is_letter(c))
        read_word(p, field);
    else
        return fail(
            p, here(p),
            arena_printf(p->arena, "expected a value for '%.60s'", field->name),
            found(p));
    return true;
}

/* ---- structure ---- */

static bool read_fields(Parser *p, char close, Loc opens, ProtoMessage *out);

static bool read_body(Parser *p, ProtoField *field) {
    Loc opens = here(p);
    char close = *p->at == '{' ? '}' : '>';
    if (p->depth >= PROTO_MAX_DEPTH) {
        diag_error(p->diag, opens, "messages are nested more than %d deep",
                   PROTO_MAX_DEPTH);
        p->stop = true;
        return false;
    }
    accept(p, *p->at);
    field->kind = PROTO_MESSAGE;
    field->message = ARENA_NEW(p->arena, ProtoMessage);
    p->depth++;
    bool ok = read_fields(p, close, opens, field->message);
    p->depth--;
    return ok;
}

/* One value, which becomes a field. */
static bool read_value(Parser *p, ProtoField field) {
    field.at = here(p);
    bool ok = peek(p) == '{' || peek(p) == '<' ? read_body(p, &field)
                                               : read_scalar(p, &field);
    if (!ok || p->stop)
        return false;
    skip_space(p);
    if (p->fields++ >= PROTO_MAX_FIELDS) {
        diag_error(p->diag, field.loc, "more than %d fields", PROTO_MAX_FIELDS);
        p->stop = true;
        return false;
    }
    vec_push(p->arena, &p->open, field);
    return true;
}

/* [a, b] behind a name. */
static bool read_list(Parser *p, ProtoField field) {
    accept(p, '[');
    if (accept(p, ']'))
        return true;
    do {
        if (!read_value(p, field))
            return false;
    } while (accept(p, ','));
    if (!accept(p, ']'))
        return fail(p, here(p), "expected ',' or ']' in a list", found(p));
    return true;
}

/* [package.extension] or [domain/package.Type], white space left out. */
static bool read_bracket_name(Parser *p, const char **name) {
    p->scratch.len = 0;
    while (peek(p) != ']') {
        const char *start = p->at;
        while (is_letter(peek(p)) || is_digit(peek(p)) ||
               (peek(p) > 0 && strchr("./-%[", peek(p))))
            p->at++;
        if (p->at == start)
            return fail(p, here(p), "expected a name in brackets", found(p));
        text_add_n(&p->scratch, start, (size_t)(p->at - start));
        skip_space(p);
    }
    p->at++;
    text_add(&p->scratch, "]");
    *name = arena_strdup(p->arena, text_str(&p->scratch));
    return true;
}

static bool read_name(Parser *p, const char **name) {
    if (peek(p) == '[')
        return read_bracket_name(p, name);
    const char *start = p->at;
    if (!is_letter(peek(p)))
        return fail(p, here(p), "expected the name of a field", found(p));
    while (is_letter(peek(p)) || is_digit(peek(p)))
        p->at++;
    *name = arena_strndup(p->arena, start, (size_t)(p->at - start));
    return true;
}

static bool read_field(Parser *p) {
    ProtoField field = {.loc = here(p)};
    if (!read_name(p, &field.name))
        return false;
    skip_space(p);
    bool colon = accept(p, ':');
    int c = peek(p);
    if (!colon && c != '{' && c != '<' && c != '[')
        return fail(p, here(p),
                    arena_printf(p->arena, "expected ':' or '{' behind '%.60s'",
                                 field.name),
                    found(p));
    bool ok = c == '[' ? read_list(p, field) : read_value(p, field);
    if (ok && !accept(p, ','))
        accept(p, ';');
    return ok;
}

/* Fields up to `close` (0: the end of the text), which is consumed. */
static bool read_fields(Parser *p, char close, Loc opens, ProtoMessage *out) {
    uint32_t first = p->open.n;
    while (peek(p) != (close ? close : -1)) {
        if (peek(p) < 0) {
            diag_error(p->diag, opens, "this '%c' is never closed",
                       close == '}' ? '{' : '<');
            p->stop = true;
        }
        if (p->stop || !read_field(p))
            return false;
    }
    accept(p, close);
    out->loc = opens;
    out->n = p->open.n - first;
    if (out->n)
        out->field =
            ARENA_COPY(p->arena, ProtoField, p->open.at + first, out->n);
    p->open.n = first;
    return true;
}

ProtoMessage *textformat_parse(Arena *arena, Diag *diag, const char *file,
                               Bytes bytes) {
    const char *text = bytes.len ? (const char *)bytes.at : "";
    diag_source(diag, file, text, bytes.len);
    Parser p = {.arena = arena, .diag = diag, .file = file, .line = 1};
    p.scratch = text_new(arena);
    p.errors_before = diag_errors(diag);
    if (bytes.len >= INT32_MAX) {
        diag_error(diag, (Loc){file, 0, 0}, "larger than 2 GiB");
        return NULL;
    }
    p.at = p.line_start = text;
    p.end = text + bytes.len;
    if (bytes.len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
        p.at += 3;
    skip_space(&p);
    ProtoMessage *root = ARENA_NEW(arena, ProtoMessage);
    bool ok = read_fields(&p, 0, here(&p), root);
    return ok && diag_errors(diag) == p.errors_before ? root : NULL;
}
