/* sheet.c - tables as data; see sheet.h. */
#include "report/sheet.h"

void sheet_open(JsonOut *to, const char *title, const char *note,
                const char *const *column) {
    json_out_object(to, NULL);
    json_out_text(to, "title", title);
    json_out_text(to, "note", note);
    json_out_list(to, "columns");
    for (; *column; column++)
        json_out_text(to, NULL, *column);
    json_out_close(to);
    json_out_list(to, "rows");
}

void sheet_close(JsonOut *to) {
    json_out_close(to);
    json_out_close(to);
}

void sheet_row(JsonOut *to, uint32_t node) {
    json_out_list(to, NULL);
    if (node == UINT32_MAX)
        sheet_empty(to);
    else
        sheet_count(to, node);
}

void sheet_row_end(JsonOut *to) {
    json_out_close(to);
}

void sheet_word(JsonOut *to, const char *word) {
    json_out_text(to, NULL, word ? word : "");
}

void sheet_count(JsonOut *to, uint64_t value) {
    json_out_number(to, NULL, value);
}

void sheet_some(JsonOut *to, uint64_t value) {
    if (value)
        sheet_count(to, value);
    else
        sheet_empty(to);
}

void sheet_real(JsonOut *to, double value) {
    json_out_value(to, NULL, cJSON_CreateNumber(value));
}

void sheet_empty(JsonOut *to) {
    json_out_text(to, NULL, NULL);
}
