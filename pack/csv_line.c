/* csv_line.c - see csv_line.h. */
#include "pack/csv_line.h"

#include <string.h>

/* What is there of the line stays where it is. */
static char *copy_text(CsvLines *r, const char *text, size_t len) {
    if (len >= r->cap - r->used) {
        r->cap = 2 * (r->cap + len + 1);
        r->copy = arena_alloc_raw(r->arena, r->cap, 1);
        r->used = 0;
    }
    char *to = r->copy + r->used;
    memcpy(to, text, len);
    to[len] = '\0';
    r->used += len + 1;
    return to;
}

static void add_field(CsvLines *r, const char *text, uint32_t col) {
    if (r->n_fields < MAX_FIELDS)
        r->field[r->n_fields] = (Field){text, col};
    r->n_fields++;
}

static uint32_t col_of(const CsvLines *r) {
    return (uint32_t)(r->at - r->start) + 1;
}

static bool is_at(const CsvLines *r, size_t ahead, char c) {
    return ahead < (size_t)(r->end - r->at) && r->at[ahead] == c;
}

static bool ends_field(const CsvLines *r) {
    return r->at == r->end || *r->at == ',' || *r->at == '\n';
}

/* Up to the next comma or the end of the line, without spaces around. */
static void read_plain(CsvLines *r) {
    const char *text = r->at;
    uint32_t col = col_of(r);
    while (!ends_field(r))
        r->at++;
    size_t len = (size_t)(r->at - text);
    while (len && (text[len - 1] == ' ' || text[len - 1] == '\r'))
        len--;
    add_field(r, copy_text(r, text, len), col);
}

/* Behind a quote, up to the one that is not doubled (RFC 4180); lines may end
 * within. */
static void read_quoted(CsvLines *r) {
    uint32_t line = r->line, col = col_of(r);
    size_t len = 0;
    const char *text = ++r->at;
    while (r->at < r->end && (*r->at != '"' || is_at(r, 1, '"')))
        r->at += 1 + (*r->at == '"');
    char *out = copy_text(r, text, (size_t)(r->at - text));
    for (const char *c = text; c < r->at; c += 1 + (*c == '"'))
        out[len++] = *c;
    out[len] = '\0';
    add_field(r, out, col);
    if (r->at == r->end) {
        diag_error(r->diag, (Loc){r->path, line, col}, "a quote is not closed");
        return;
    }
    for (const char *c = text; c < r->at; c++)
        if (*c == '\n') {
            r->line++;
            r->start = c + 1;
        }
    r->at++;
    while (is_at(r, 0, ' ') || is_at(r, 0, '\r'))
        r->at++;
    if (!ends_field(r))
        diag_error(r->diag, (Loc){r->path, r->line, col_of(r)},
                   "behind a quoted field comes a comma or the end of the "
                   "line");
    while (!ends_field(r))
        r->at++;
}

static void read_line(CsvLines *r) {
    r->line++;
    r->n_fields = 0;
    r->used = 0;
    r->start = r->at;
    for (;;) {
        while (is_at(r, 0, ' '))
            r->at++;
        if (is_at(r, 0, '"'))
            read_quoted(r);
        else
            read_plain(r);
        if (r->at == r->end || *r->at++ == '\n')
            return;
    }
}

bool csv_next_line(CsvLines *r) {
    while (r->at < r->end) {
        read_line(r);
        if (r->n_fields > 1 || *r->field[0].text)
            return true;
    }
    return false;
}
