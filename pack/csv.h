/* csv.h - placement problems as text: the CSV of MiniMalloc, and more.
 *
 * A heading names the columns, in any order: id, lower, upper, size, and where
 * wanted
 *     alignment  of the offset
 *     hint       an offset that is preferred
 *     gaps       "3-5 7-9@0:64": in steps [3, 5) its bytes are free for others;
 *                in [7, 9) all but its bytes [0, 64) are
 *     offset     pins its buffer
 * Lives and gaps are half-open; with a column `end` instead of `upper` both are
 * inclusive. Other spellings: buffer, buffer_id; begin, start. Of our own:
 *     relations  "inside:b@64 share:c same:d below:e@16 apart:f": see
 *                pack.h; @ gives the bytes, 0 if absent
 *     conflicts  ids of buffers that conflict with it, whatever their lives
 *     pool       the only pool that it may lie in
 *     size:NAME  its size in that pool; 0: not allowed there
 * lower and upper may be vector clocks, "3 0 7": a number for each stream.
 * An empty field means none.
 */
#ifndef PACK_CSV_H
#define PACK_CSV_H

#include "base/diag.h"
#include "pack/pack.h"

typedef enum CsvColumn {
    COL_ID,
    COL_LOWER,
    COL_UPPER,
    COL_SIZE,
    COL_ALIGNMENT,
    COL_HINT,
    COL_GAPS,
    COL_OFFSET,
    COL_RELATIONS,
    COL_CONFLICTS,
    COL_POOL,
    COL_SIZES, /* of one pool each */
    CSV_COLUMNS = COL_SIZES + PACK_MAX_POOLS
} CsvColumn;

/* Times [lower, upper). */
typedef struct CsvSpan {
    int64_t lower, upper;
} CsvSpan;

/* What few rows have. */
typedef struct CsvExtra {
    uint64_t hint, offset;                    /* PACK_NO_HINT: not given */
    const char *gaps, *relations, *conflicts; /* as written */
    uint32_t n_gaps;
    const CsvSpan *gap;
    const int64_t *clock; /* on several streams: born, then dies; or NULL */
    uint64_t sizes[PACK_MAX_POOLS]; /* 0: not allowed there */
} CsvExtra;

/* A buffer as its line gives it. */
typedef struct CsvBuffer {
    const char *id;
    uint32_t line;
    int32_t pool; /* -1: any */
    int64_t lower, upper;
    uint64_t size, alignment;
    const CsvExtra *extra; /* rows that have none share one */
} CsvBuffer;

typedef struct CsvPool {
    const char *name;
    Pool pool;
} CsvPool;

typedef struct CsvProblem {
    PackProblem problem; /* steps are ranks of times */
    uint32_t n_rows;     /* the first buffers of the problem are those of the
                          * rows; behind them, what is left of some in a gap */
    const CsvBuffer *buffer;
    const CsvPool *pool;
    bool has[CSV_COLUMNS]; /* in the order above */
    uint32_t n_streams;    /* 1, or as many as lower and upper have numbers */
    bool inclusive;        /* it has `end`: so has what is printed */
} CsvProblem;

/* In pools that are given: at least one. False after errors, which name the
 * line and the column, all of them. */
bool problem_csv_read(Arena *arena, Diag *diag, const char *path,
                      const CsvPool *pool, uint32_t n_pools, CsvProblem *out);

/* Of a row in a pool; 0: not allowed there. */
uint64_t csv_size(const CsvBuffer *b, uint32_t pool);

/* The row that a buffer of the problem belongs to. */
uint32_t problem_csv_row(const CsvProblem *csv, uint32_t buf);

/* The same columns in the order of the heading above, and `offset`; empty where
 * a buffer has no place. */
const char *problem_csv_print(Arena *arena, const CsvProblem *csv,
                              const PackResult *result);

#endif
