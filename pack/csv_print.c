/* csv_print.c - a placement as the table that it came from; see csv.h. */
#include "pack/csv.h"

#include "base/text.h"

#include <inttypes.h>
#include <string.h>

static void add_number(Text *text, bool wanted, uint64_t value) {
    if (!wanted)
        return;
    text_add(text, ",");
    if (value != PACK_NO_HINT)
        text_addf(text, "%" PRIu64, value);
}

/* In quotes where it could not be read without them. */
static void add_field_text(Text *text, const char *field) {
    size_t len = strlen(field);
    bool plain = !field[strcspn(field, ",\"\r\n")] && *field != ' ' &&
                 (!len || field[len - 1] != ' ');
    if (plain) {
        text_add(text, field);
        return;
    }
    text_add(text, "\"");
    for (const char *at = field; *at; at++)
        text_addf(text, "%s%c", *at == '"' ? "\"" : "", *at);
    text_add(text, "\"");
}

static void print_heading(const CsvProblem *csv, Text *text) {
    text_add(text, "id");
    if (csv->has[COL_LOWER])
        text_addf(text, ",lower,%s", csv->inclusive ? "end" : "upper");
    text_addf(text, ",size%s%s%s", csv->has[COL_ALIGNMENT] ? ",alignment" : "",
              csv->has[COL_HINT] ? ",hint" : "",
              csv->has[COL_GAPS] ? ",gaps" : "");
    for (uint32_t p = 0; p < csv->problem.n_pools; p++)
        if (csv->has[COL_SIZES + p])
            text_addf(text, ",size:%s", csv->pool[p].name);
    text_addf(text, "%s%s%s,offset\n",
              csv->has[COL_RELATIONS] ? ",relations" : "",
              csv->has[COL_CONFLICTS] ? ",conflicts" : "",
              csv->problem.n_pools > 1 ? ",pool" : "");
}

static void add_life(Text *text, const CsvProblem *csv, const CsvBuffer *b) {
    const int64_t one[] = {b->lower, b->upper};
    const int64_t *at = b->extra->clock ? b->extra->clock : one;
    uint32_t n = b->extra->clock ? csv->n_streams : 1;
    for (uint32_t i = 0; i < 2 * n && csv->has[COL_LOWER]; i++)
        text_addf(text, "%c%" PRId64, i % n ? ' ' : ',',
                  at[i] - (i >= n && csv->inclusive));
}

const char *problem_csv_print(Arena *arena, const CsvProblem *csv,
                              const PackResult *result) {
    Text text = text_new(arena);
    print_heading(csv, &text);
    for (uint32_t i = 0; i < csv->n_rows; i++) {
        const CsvBuffer *b = &csv->buffer[i];
        add_field_text(&text, b->id);
        add_life(&text, csv, b);
        text_addf(&text, ",%" PRIu64, b->size);
        add_number(&text, csv->has[COL_ALIGNMENT], b->alignment);
        add_number(&text, csv->has[COL_HINT], b->extra->hint);
        if (csv->has[COL_GAPS])
            text_addf(&text, ",%s", b->extra->gaps);
        for (uint32_t p = 0; p < csv->problem.n_pools; p++)
            add_number(&text, csv->has[COL_SIZES + p], csv_size(b, p));
        if (csv->has[COL_RELATIONS]) {
            text_add(&text, ",");
            add_field_text(&text, b->extra->relations);
        }
        if (csv->has[COL_CONFLICTS]) {
            text_add(&text, ",");
            add_field_text(&text, b->extra->conflicts);
        }
        if (csv->problem.n_pools > 1)
            text_addf(&text, ",%s",
                      result->pool[i] < 0 ? ""
                                          : csv->pool[result->pool[i]].name);
        add_number(&text, true,
                   result->pool[i] < 0 ? PACK_NO_HINT : result->offset[i]);
        text_add(&text, "\n");
    }
    return text_str(&text);
}
