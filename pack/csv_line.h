/* csv_line.h - lines of a CSV file as fields. */
#ifndef PACK_CSV_LINE_H
#define PACK_CSV_LINE_H

#include "base/diag.h"

enum { MAX_FIELDS = 32 };

typedef struct Field {
    const char *text; /* NUL-terminated; until the next line is read */
    uint32_t col;
} Field;

typedef struct CsvLines {
    Arena *arena;
    Diag *diag;
    const char *path, *at, *end;
    const char *start; /* of the line */
    uint32_t line;
    uint32_t n_fields; /* that there are; at most MAX_FIELDS are kept */
    Field field[MAX_FIELDS];
    char *copy; /* of the fields' texts */
    size_t used, cap;
} CsvLines;

/* False at the end of the file. Blank lines are passed over. */
bool csv_next_line(CsvLines *lines);

#endif
