/* csv_reader.h - a CSV while it is read: rows first, then the problem. */
#ifndef PACK_CSV_READER_H
#define PACK_CSV_READER_H

#include "base/vec.h"
#include "pack/csv.h"
#include "pack/csv_line.h"

/* A relation, or a part of a field, of a row. */
typedef struct Word {
    const char *text;
    uint32_t row, line, col;
} Word;

/* Bytes of a row that it keeps in a gap. */
typedef struct Window {
    uint32_t row;
    CsvSpan gap;
    int64_t low, high;
} Window;

typedef struct Reader {
    Arena *arena;
    Diag *diag;
    const char *path;
    CsvLines lines;
    int32_t where[CSV_COLUMNS]; /* the field of a column; -1: absent */
    bool inclusive;
    uint32_t n_headings;
    uint32_t n_streams; /* 0: no row was read */
    const CsvPool *pool;
    uint32_t n_pools;
    VEC(CsvBuffer) buffer;
    VEC(Word) relation, conflict; /* to be read when all ids are known */
    VEC(Window) window;
} Reader;

/* What the rows ask for; what they name is looked up now, and missed. */
void csv_make_problem(Reader *r, CsvProblem *out);

#endif
