/* sheet.h - tables of a page, as data: the page's script sorts and searches
 * them, and marks the rows of the layer that is chosen. */
#ifndef REPORT_SHEET_H
#define REPORT_SHEET_H

#include "base/json_out.h"

/* Begins a table in a list of them. A column's name begins with '<' where it
 * holds words, '%' a share of 0..1 or more, '.' a real number, '+' a change;
 * else it holds whole numbers. The first column is the layer's or volume's
 * name. */
void sheet_open(JsonOut *to, const char *title, const char *note,
                const char *const *column);
void sheet_close(JsonOut *to);

/* A row; `node`: index of the layer in the page's graph, UINT32_MAX: none. Its
 * cells follow. */
void sheet_row(JsonOut *to, uint32_t node);
void sheet_row_end(JsonOut *to);
void sheet_word(JsonOut *to, const char *word);
void sheet_count(JsonOut *to, uint64_t value);
/* Empty where it is 0. */
void sheet_some(JsonOut *to, uint64_t value);
void sheet_real(JsonOut *to, double value);
void sheet_empty(JsonOut *to);

#endif
