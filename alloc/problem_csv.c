/* problem_csv.c - see problem_csv.h. Fields are plain: no quotes, no escapes.
 *
 * Times may be any 63-bit numbers; the planners get their ranks, which keep
 * which lives overlap.
 */
#include "alloc/problem_csv.h"

#include "base/file.h"
#include "base/text.h"
#include "base/vec.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum Column {
    COL_ID,
    COL_LOWER,
    COL_UPPER,
    COL_SIZE,
    COL_ALIGNMENT,
    COL_HINT,
    COL_GAPS,
    COL_OFFSET,
    N_COLUMNS
} Column;

static const struct {
    const char *name;
    Column column;
    bool inclusive; /* a life's last time, not the one after it */
} name[] = {{"id", COL_ID, false},
            {"lower", COL_LOWER, false},
            {"upper", COL_UPPER, false},
            {"size", COL_SIZE, false},
            {"alignment", COL_ALIGNMENT, false},
            {"hint", COL_HINT, false},
            {"gaps", COL_GAPS, false},
            {"offset", COL_OFFSET, false},
            {"buffer", COL_ID, false},
            {"buffer_id", COL_ID, false},
            {"begin", COL_LOWER, false},
            {"start", COL_LOWER, false},
            {"end", COL_UPPER, true}};
enum { N_NAMES = sizeof name / sizeof *name, MAX_FIELDS = 16 };

typedef struct Field {
    const char *text; /* NUL-terminated */
    uint32_t col;
} Field;

typedef struct Reader {
    Arena *arena;
    Diag *diag;
    const char *path, *at, *end;
    uint32_t line;
    uint32_t n_fields;
    Field field[MAX_FIELDS];
    int32_t where[N_COLUMNS]; /* the field of a column; -1: absent */
    bool inclusive;
    uint32_t n_headings;
    VEC(CsvBuffer) buffer;
} Reader;

static Loc here(const Reader *r, uint32_t col) {
    return (Loc){r->path, r->line, col};
}

/* ---- lines and fields ---- */

static void add_field(Reader *r, const char *text, size_t len, uint32_t col) {
    while (len && (text[len - 1] == ' ' || text[len - 1] == '\r'))
        len--;
    while (len && *text == ' ')
        text++, len--, col++;
    if (r->n_fields < MAX_FIELDS)
        r->field[r->n_fields] =
            (Field){arena_strndup(r->arena, text, len), col};
    r->n_fields++;
}

/* False at the end of the file. Blank lines are passed over. */
static bool next_line(Reader *r) {
    while (r->at < r->end) {
        const char *line = r->at;
        const char *stop = memchr(line, '\n', (size_t)(r->end - line));
        stop = stop ? stop : r->end;
        r->at = stop < r->end ? stop + 1 : stop;
        r->line++;
        r->n_fields = 0;
        const char *field = line;
        for (const char *c = line; c <= stop; c++)
            if (c == stop || *c == ',') {
                add_field(r, field, (size_t)(c - field),
                          (uint32_t)(field - line) + 1);
                field = c + 1;
            }
        if (r->n_fields > 1 || *r->field[0].text)
            return true;
    }
    return false;
}

/* ---- the heading ---- */

static int find_name(const char *text) {
    for (int i = 0; i < N_NAMES; i++)
        if (!strcmp(name[i].name, text))
            return i;
    return -1;
}

static bool read_heading(Reader *r) {
    bool fine = true;
    for (int c = 0; c < N_COLUMNS; c++)
        r->where[c] = -1;
    r->n_headings = r->n_fields < MAX_FIELDS ? r->n_fields : MAX_FIELDS;
    for (uint32_t i = 0; i < r->n_headings; i++) {
        int known = find_name(r->field[i].text);
        if (known < 0 || r->where[name[known].column] >= 0) {
            diag_error(r->diag, here(r, r->field[i].col), "%s column '%s'",
                       known < 0 ? "unknown" : "a second", r->field[i].text);
            fine = false;
            continue;
        }
        r->where[name[known].column] = (int32_t)i;
        r->inclusive |= name[known].inclusive;
    }
    for (int c = COL_ID; c <= COL_SIZE; c++)
        if (r->where[c] < 0) {
            diag_error(r->diag, here(r, 1), "there is no column '%s'",
                       name[c].name);
            fine = false;
        }
    return fine;
}

/* ---- one buffer ---- */

/* NULL where the column is absent. */
static const Field *field_of(const Reader *r, Column column) {
    return r->where[column] < 0 ? NULL : &r->field[r->where[column]];
}

static void read_time(Reader *r, Column column, int64_t *out) {
    const Field *field = field_of(r, column);
    char *end;
    long long value = strtoll(field->text, &end, 10);
    bool number = end != field->text && !*end;
    if (!number || value > INT64_MAX / 2 || value < -(INT64_MAX / 2))
        diag_error(r->diag, here(r, field->col), "%s '%s' is not a time",
                   name[column].name, field->text);
    *out = value;
}

/* A number of at least `least`; `absent` where the field is empty. */
static uint64_t read_number(Reader *r, Column column, uint64_t least,
                            uint64_t absent) {
    const Field *field = field_of(r, column);
    if (!field || (!*field->text && column > COL_SIZE))
        return absent;
    char *end;
    unsigned long long value = strtoull(field->text, &end, 10);
    bool digit = *field->text >= '0' && *field->text <= '9';
    if (!digit || *end || value < least || value > INT64_MAX)
        diag_error(r->diag, here(r, field->col),
                   "%s '%s' is not a whole number of at least %" PRIu64,
                   name[column].name, field->text, least);
    return value;
}

static void check_gaps(Reader *r, const Field *field, int64_t lower,
                       int64_t upper) {
    const char *at = field->text;
    while (*at) {
        long long from, to;
        int used = 0;
        if (sscanf(at, "%lld-%lld%n", &from, &to, &used) < 2 || from < lower ||
            to < from || to > upper ||
            !strchr(" @", at[used] ? at[used] : ' ')) {
            diag_error(r->diag,
                       here(r, field->col + (uint32_t)(at - field->text)),
                       "'%s' is not a gap within the life, like 3-5", at);
            return;
        }
        at += used;
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
}

static void read_buffer(Reader *r) {
    if (r->n_fields != r->n_headings) {
        diag_error(r->diag, here(r, 1), "%u fields under %u columns",
                   r->n_fields, r->n_headings);
        return;
    }
    CsvBuffer b = {.id = field_of(r, COL_ID)->text};
    read_time(r, COL_LOWER, &b.lower);
    read_time(r, COL_UPPER, &b.upper);
    b.upper += r->inclusive;
    b.size = read_number(r, COL_SIZE, 0, 0);
    b.alignment = read_number(r, COL_ALIGNMENT, 1, 1);
    b.hint = read_number(r, COL_HINT, 0, PLAN_NO_HINT);
    b.offset = read_number(r, COL_OFFSET, 0, PLAN_NO_HINT);
    if (b.upper < b.lower)
        diag_error(r->diag, here(r, field_of(r, COL_UPPER)->col),
                   "the life of %s ends before it begins", b.id);
    const Field *gaps = field_of(r, COL_GAPS);
    b.gaps = gaps ? gaps->text : "";
    if (gaps)
        check_gaps(r, gaps, b.lower, b.upper);
    vec_push(r->arena, &r->buffer, b);
}

/* ---- the problem ---- */

static int by_time(const void *a, const void *b) {
    const int64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static uint32_t rank_of(const int64_t *time, uint32_t n, int64_t value) {
    const int64_t *found = bsearch(&value, time, n, sizeof *time, by_time);
    return (uint32_t)(found - time);
}

static void make_problem(Arena *arena, Reader *r, CsvProblem *out) {
    uint32_t n = r->buffer.n, n_times = 0;
    int64_t *time = ARENA_ARRAY(arena, int64_t, 2 * (size_t)n);
    Buf *buf = ARENA_ARRAY(arena, Buf, n);
    for (uint32_t i = 0; i < n; i++) {
        time[2 * i] = r->buffer.at[i].lower;
        time[2 * i + 1] = r->buffer.at[i].upper;
    }
    if (n)
        qsort(time, 2 * (size_t)n, sizeof *time, by_time);
    for (uint32_t i = 0; i < 2 * n; i++)
        if (!n_times || time[n_times - 1] != time[i])
            time[n_times++] = time[i];
    for (uint32_t i = 0; i < n; i++) {
        const CsvBuffer *b = &r->buffer.at[i];
        bool pinned = b->offset != PLAN_NO_HINT && b->size;
        buf[i] = (Buf){.first = rank_of(time, n_times, b->lower),
                       .end = rank_of(time, n_times, b->upper),
                       .bytes = {b->size},
                       .align = b->alignment,
                       .hint = b->hint,
                       .pin_pool = pinned ? 0 : -1,
                       .pin_offset = pinned ? b->offset : 0};
    }
    *out = (CsvProblem){.problem = {.n_pools = 1, .n_bufs = n, .buf = buf},
                        .buffer = r->buffer.at,
                        .has_alignment = r->where[COL_ALIGNMENT] >= 0,
                        .has_hint = r->where[COL_HINT] >= 0,
                        .has_gaps = r->where[COL_GAPS] >= 0,
                        .inclusive = r->inclusive};
    out->problem.pool[0] = (Pool){.size = INT64_MAX, .align = 1};
}

bool problem_csv_read(Arena *arena, Diag *diag, const char *path,
                      CsvProblem *out) {
    Bytes bytes;
    Reader r = {.arena = arena, .diag = diag, .path = path};
    if (!file_read(arena, diag, path, &bytes))
        return false;
    r.at = (const char *)bytes.at;
    r.end = r.at + bytes.len;
    diag_source(diag, path, r.at, bytes.len);
    uint32_t before = diag_errors(diag);
    if (!next_line(&r)) {
        diag_error(diag, (Loc){path, 0, 0}, "there is no heading");
        return false;
    }
    if (!read_heading(&r))
        return false;
    while (next_line(&r))
        read_buffer(&r);
    if (diag_errors(diag) > before)
        return false;
    make_problem(arena, &r, out);
    return true;
}

static void add_number(Text *text, bool wanted, uint64_t value) {
    if (!wanted)
        return;
    text_add(text, ",");
    if (value != PLAN_NO_HINT)
        text_addf(text, "%" PRIu64, value);
}

const char *problem_csv_print(Arena *arena, const CsvProblem *csv,
                              const PlanResult *result) {
    Text text = text_new(arena);
    text_addf(&text, "id,lower,%s,size%s%s%s,offset\n",
              csv->inclusive ? "end" : "upper",
              csv->has_alignment ? ",alignment" : "",
              csv->has_hint ? ",hint" : "", csv->has_gaps ? ",gaps" : "");
    for (uint32_t i = 0; i < csv->problem.n_bufs; i++) {
        const CsvBuffer *b = &csv->buffer[i];
        text_addf(&text, "%s,%" PRId64 ",%" PRId64 ",%" PRIu64, b->id, b->lower,
                  b->upper - csv->inclusive, b->size);
        add_number(&text, csv->has_alignment, b->alignment);
        add_number(&text, csv->has_hint, b->hint);
        if (csv->has_gaps)
            text_addf(&text, ",%s", b->gaps);
        add_number(&text, true,
                   result->pool[i] < 0 ? PLAN_NO_HINT : result->offset[i]);
        text_add(&text, "\n");
    }
    return text_str(&text);
}
