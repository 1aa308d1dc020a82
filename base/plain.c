/* plain.c - what may be shown of a name; see plain.h. */
#include "base/plain.h"

#include "base/diag.h"
#include "base/guard.h"

#include <string.h>

/* Of a sequence of n bytes, whose first says `bits`; UINT32_MAX: it is none. */
static uint32_t continued(const unsigned char *at, size_t n, uint32_t bits,
                          uint32_t least) {
    for (size_t i = 1; i < n; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return UINT32_MAX;
        bits = bits << 6 | (at[i] & 0x3f);
    }
    bool surrogate = bits >= 0xd800 && bits < 0xe000;
    return bits < least || bits > 0x10ffff || surrogate ? UINT32_MAX : bits;
}

/* The code point at `at` and how many bytes it has; UINT32_MAX: no UTF-8. */
static uint32_t code_at(const char *text, size_t *n) {
    const unsigned char *at = (const unsigned char *)text;
    *n = at[0] < 0x80 ? 1 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
    if (*n == 1)
        return at[0];
    if (at[0] < 0xc2 || at[0] > 0xf4)
        return UINT32_MAX;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    return continued(at, *n, at[0] & (0xffU >> (*n + 1)), least[*n]);
}

static bool steers(uint32_t code) {
    static const uint32_t range[][2] = {{0, 0x1f},
                                        {0x7f, 0x9f},
                                        {0x61c, 0x61c},
                                        {0x200e, 0x200f},
                                        {0x2028, 0x202e},
                                        {0x2066, 0x2069},
                                        {UINT32_MAX, UINT32_MAX}};
    for (size_t i = 0; i < sizeof range / sizeof *range; i++)
        if (code >= range[i][0] && code <= range[i][1])
            return true;
    return false;
}

size_t plain_length(const char *at) {
    size_t n;
    return steers(code_at(at, &n)) ? 0 : n;
}

void text_add_plain(Text *text, const char *string) {
    for (size_t n; *string; string += n ? n : 1)
        if ((n = plain_length(string)) > 0)
            text_add_n(text, string, n);
        else
            text_addf(text, "\\x%02x", (unsigned char)*string);
}

const char *plain_text(Arena *arena, const char *string) {
    Text text = text_new(arena);
    text_add_plain(&text, string);
    return text_str(&text);
}

/* Ends of lines and tabs stand between values. */
static bool json_char(const char *at, size_t *n) {
    *n = (unsigned char)*at < ' ' ? 1 : plain_length(at);
    return *n > 0;
}

const char *plain_json(Arena *arena, const char *json) {
    size_t n;
    const char *at = json;
    while (*at && json_char(at, &n))
        at += n;
    if (!*at)
        return json;
    Text text = text_new(arena);
    text_add_n(&text, json, (size_t)(at - json));
    for (; *at; at += n)
        if (json_char(at, &n)) {
            text_add_n(&text, at, n);
        } else {
            uint32_t code = code_at(at, &n);
            n = code == UINT32_MAX ? 1 : n;
            text_addf(&text, "\\u%04x", code == UINT32_MAX ? 0xfffd : code);
        }
    return text_str(&text);
}

/* ---- as printf ---- */

typedef struct Conversion {
    char spec[32];
    size_t n;
} Conversion;

static void copy_spec(Conversion *c, const char *from, size_t n) {
    if (c->n + n >= sizeof c->spec)
        bug("a conversion of more than %zu characters", sizeof c->spec);
    memcpy(c->spec + c->n, from, n);
    c->spec[c->n += n] = '\0';
}

/* One conversion, from behind its %; behind its last character. */
static const char *convert(Arena *arena, Text *to, const char *at,
                           va_list *args) {
    Conversion c = {.spec = "%", .n = 1};
    for (; *at && strchr("-+ #0123456789.*", *at); at++) {
        char number[16];
        if (*at != '*') {
            copy_spec(&c, at, 1);
            continue;
        }
        snprintf(number, sizeof number, "%d", va_arg(*args, int));
        copy_spec(&c, number, strlen(number));
    }
    size_t longs = strspn(at, "lz");
    copy_spec(&c, at, longs + 1);
    char kind = at[longs];
    if (kind == 's')
        text_addf(to, c.spec, plain_text(arena, va_arg(*args, const char *)));
    else if (strchr("efg", kind))
        text_addf(to, c.spec, va_arg(*args, double));
    else if (!strchr("diuxXc", kind))
        bug("no conversion %s", c.spec);
    else if (longs > 1 || (longs && sizeof(long) == sizeof(long long)))
        text_addf(to, c.spec, va_arg(*args, long long));
    else if (longs)
        text_addf(to, c.spec, va_arg(*args, long));
    else
        text_addf(to, c.spec, va_arg(*args, int));
    return at + longs + 1;
}

static void say_all(FILE *to, const char *format, va_list *args) {
    Arena *arena = arena_new("say");
    Text text = text_new(arena);
    while (*format) {
        size_t n = strcspn(format, "%");
        text_add_n(&text, format, n);
        format += n;
        if (format[0] == '%' && format[1] == '%') {
            text_add(&text, "%");
            format += 2;
        } else if (*format) {
            format = convert(arena, &text, format + 1, args);
        }
    }
    if (to)
        fwrite(text_str(&text), 1, text.len, to);
    arena_free(arena);
}

void say(const char *format, ...) {
    va_list args;
    va_start(args, format);
    say_all(guard_out(), format, &args);
    va_end(args);
}

void say_to(FILE *to, const char *format, ...) {
    va_list args;
    va_start(args, format);
    say_all(to, format, &args);
    va_end(args);
}

void say_lines(FILE *to, const char *text) {
    for (size_t n; to && *text; text += n ? n : 1) {
        n = *text == '\n' || *text == '\t' ? 1 : plain_length(text);
        if (n)
            fwrite(text, 1, n, to);
        else
            fprintf(to, "\\x%02x", (unsigned char)*text);
    }
}
