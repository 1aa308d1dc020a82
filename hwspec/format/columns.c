/* columns.c - files of words that are texts: one word a line, a number of 64
 * bits for each part of it, `#` begins a remark.
 *
 * Input: `columns` of a container: d (decimal) or x (16 hexadecimal digits).
 * Such a text stands for its numbers, one behind the other, and is read and
 * written in their place.
 */
#include "hwspec/format/format.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COLUMNS = 8, NUMBER = 8 };

void format_read_columns(ItemReader *r, YamlNode *list) {
    static const char *const kinds[] = {"d", "x", NULL};
    if (!list || !yaml_is(r->diag, list, YAML_LIST))
        return;
    char *column = ARENA_ARRAY(r->arena, char, list->n + 1);
    for (uint32_t i = 0; i < list->n; i++) {
        uint32_t kind = 0;
        yaml_enum(r->diag, list->item[i], kinds, &kind);
        column[i] = kinds[kind][0];
    }
    if (list->n > MAX_COLUMNS)
        diag_error(r->diag, list->loc, "more than %d columns", MAX_COLUMNS);
    r->format->n_columns = list->n;
    r->format->column = column;
}

static void put_number(uint8_t *to, uint64_t value) {
    for (int i = 0; i < NUMBER; i++)
        to[i] = (uint8_t)(value >> 8 * i);
}

static const char *skip_blanks(const char *at, const char *end) {
    while (at < end && *at && strchr(" \t\r", *at))
        at++;
    return at;
}

/* The numbers of a line, which ends at `end`; 0: none are there. */
static int read_line(const HwFormat *format, const char *at, const char *end,
                     uint8_t *to) {
    for (uint32_t i = 0; i < format->n_columns; i++) {
        char number[32];
        at = skip_blanks(at, end);
        size_t n = 0;
        while (at + n < end && n < sizeof number - 1 &&
               !strchr(" \t\r#", at[n]))
            n++;
        if (!n)
            return i ? -1 : at == end || *at == '#' ? 0 : -1;
        memcpy(number, at, n);
        number[n] = 0;
        char *stop;
        errno = 0;
        put_number(to + NUMBER * i,
                   strtoull(number, &stop, format->column[i] == 'd' ? 10 : 16));
        if (*stop || errno || !isxdigit((unsigned char)*number))
            return -1;
        at += n;
    }
    at = skip_blanks(at, end);
    return at == end || *at == '#' ? 1 : -1;
}

bool format_from_columns(Arena *arena, Diag *diag, const HwFormat *format,
                         const char *file, const uint8_t **data, size_t *len) {
    const char *at = (const char *)*data, *end = at + *len;
    size_t lines = 1, n = 0;
    for (const char *c = at; c < end; c++)
        lines += *c == '\n';
    size_t each = (size_t)NUMBER * format->n_columns;
    uint8_t *out = ARENA_ARRAY(arena, uint8_t, lines * each + 1);
    for (uint32_t line = 1; at < end; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        int found = read_line(format, at, stop, out + n);
        if (found < 0) {
            diag_error(diag, (Loc){.file = file, .line = line, .col = 1},
                       "%u numbers of 64 bits are needed", format->n_columns);
            return false;
        }
        n += found ? each : 0;
        at = stop < end ? stop + 1 : end;
    }
    *data = out;
    *len = n;
    return true;
}

void format_to_columns(Arena *arena, const HwFormat *format,
                       const uint8_t **data, size_t *len) {
    Text text = text_new(arena);
    for (size_t at = 0; at + NUMBER <= *len; at += NUMBER) {
        uint32_t i = (uint32_t)(at / NUMBER % format->n_columns);
        uint64_t value = 0;
        for (int k = NUMBER; k-- > 0;)
            value = value << 8 | (*data)[at + (size_t)k];
        const char *gap = i + 1 == format->n_columns ? "\n" : " ";
        if (format->column[i] == 'd')
            text_addf(&text, "%3llu%s", (unsigned long long)value, gap);
        else
            text_addf(&text, "%016llx%s", (unsigned long long)value, gap);
    }
    *data = (const uint8_t *)text_str(&text);
    *len = strlen((const char *)*data);
}
