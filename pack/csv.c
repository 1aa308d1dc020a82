/* csv.c - see csv.h. Ids with spaces cannot be named in relations.
 */
#include "pack/csv_reader.h"

#include "base/file.h"
#include "base/near.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    CsvColumn column;
    bool inclusive; /* a life's last time, not the one after it */
} name[] = {{"id", COL_ID, false},
            {"lower", COL_LOWER, false},
            {"upper", COL_UPPER, false},
            {"size", COL_SIZE, false},
            {"alignment", COL_ALIGNMENT, false},
            {"hint", COL_HINT, false},
            {"gaps", COL_GAPS, false},
            {"offset", COL_OFFSET, false},
            {"relations", COL_RELATIONS, false},
            {"conflicts", COL_CONFLICTS, false},
            {"pool", COL_POOL, false},
            {"buffer", COL_ID, false},
            {"buffer_id", COL_ID, false},
            {"begin", COL_LOWER, false},
            {"start", COL_LOWER, false},
            {"end", COL_UPPER, true}};
enum { N_NAMES = sizeof name / sizeof *name };

static Loc here(const Reader *r, uint32_t col) {
    return (Loc){r->path, r->lines.line, col};
}

/* ---- the heading ---- */

static int32_t find_pool(const Reader *r, const char *text) {
    for (uint32_t p = 0; p < r->n_pools; p++)
        if (!strcmp(r->pool[p].name, text))
            return (int32_t)p;
    return -1;
}

/* -1 if it is unknown. */
static int find_column(Reader *r, const char *text) {
    static const char sizes[] = "size:";
    for (int i = 0; i < N_NAMES; i++)
        if (!strcmp(name[i].name, text)) {
            r->inclusive |= name[i].inclusive;
            return (int)name[i].column;
        }
    int32_t pool = -1;
    if (!strncmp(text, sizes, sizeof sizes - 1))
        pool = find_pool(r, text + sizeof sizes - 1);
    return pool < 0 ? -1 : COL_SIZES + pool;
}

/* A column of somebody else's. */
static void pass_over(Reader *r, const Field *heading) {
    Near near = near_to(heading->text);
    for (int i = 0; i < N_NAMES; i++)
        near_look(&near, name[i].name);
    diag_note(r->diag, here(r, heading->col), "column '%s' is not read%s%s%s",
              heading->text, near.best ? "; did you mean `" : "",
              near.best ? near.best : "", near.best ? "`?" : "");
}

static bool read_heading(Reader *r) {
    bool fine = true;
    for (int c = 0; c < CSV_COLUMNS; c++)
        r->where[c] = -1;
    r->n_headings =
        r->lines.n_fields < MAX_FIELDS ? r->lines.n_fields : MAX_FIELDS;
    for (uint32_t i = 0; i < r->n_headings; i++) {
        int known = find_column(r, r->lines.field[i].text);
        if (known < 0) {
            pass_over(r, &r->lines.field[i]);
            continue;
        }
        if (r->where[known] >= 0) {
            diag_error(r->diag, here(r, r->lines.field[i].col),
                       "a second column '%s'", r->lines.field[i].text);
            fine = false;
            continue;
        }
        r->where[known] = (int32_t)i;
    }
    bool listed = r->where[COL_CONFLICTS] >= 0 && r->where[COL_LOWER] < 0 &&
                  r->where[COL_UPPER] < 0;
    for (int c = COL_ID; c <= COL_SIZE; c++)
        if (r->where[c] < 0 && !(listed && c != COL_ID && c != COL_SIZE)) {
            diag_error(r->diag, here(r, 1), "there is no column '%s'",
                       name[c].name);
            fine = false;
        }
    if (r->lines.n_fields > MAX_FIELDS) {
        diag_error(r->diag, here(r, 1), "more than %d columns", MAX_FIELDS);
        fine = false;
    }
    return fine;
}

/* ---- one buffer ---- */

/* NULL where the column is absent. */
static const Field *field_of(const Reader *r, uint32_t column) {
    return r->where[column] < 0 ? NULL : &r->lines.field[r->where[column]];
}

/* One time, or a vector clock. Moves `*at` behind the number; false after the
 * last. */
static bool read_time(Reader *r, CsvColumn column, const char **at,
                      int64_t *out) {
    const Field *field = field_of(r, column);
    char *end;
    long long value = strtoll(*at, &end, 10);
    bool number = end != *at && (!*end || *end == ' ');
    if (!number || value > INT64_MAX / 2 || value < -(INT64_MAX / 2))
        diag_error(r->diag, here(r, field->col), "%s '%s' is not a time",
                   name[column].name, field->text);
    *out = value + (column == COL_UPPER && r->inclusive);
    *at = number ? end + strspn(end, " ") : "";
    return number && **at;
}

/* How many streams: words of the field. */
static uint32_t count_times(const Field *field) {
    uint32_t n = 0;
    for (const char *at = field->text; *at; at += strspn(at, " ")) {
        at += strcspn(at, " ");
        n++;
    }
    return n ? n : 1;
}

static void read_clock(Reader *r, CsvExtra *extra) {
    uint32_t n = r->n_streams;
    int64_t *clock = ARENA_ARRAY(r->arena, int64_t, 2 * (size_t)n);
    const char *at = field_of(r, COL_LOWER)->text;
    for (uint32_t s = 0; s < n && read_time(r, COL_LOWER, &at, &clock[s]);)
        s++;
    at = field_of(r, COL_UPPER)->text;
    for (uint32_t s = n; s < 2 * n && read_time(r, COL_UPPER, &at, &clock[s]);)
        s++;
    for (uint32_t s = 0; s < n; s++)
        if (clock[n + s] < clock[s]) {
            diag_error(r->diag, here(r, field_of(r, COL_UPPER)->col),
                       "the life of %s ends before it begins in stream %u",
                       field_of(r, COL_ID)->text, s);
            return;
        }
    extra->clock = clock;
}

/* Of a row without times: it has no life but what `conflicts` gives it. */
static void read_life(Reader *r, CsvBuffer *b, CsvExtra *extra) {
    const Field *lower = field_of(r, COL_LOWER);
    const Field *upper = field_of(r, COL_UPPER);
    if (!lower || !upper)
        return;
    uint32_t n = count_times(lower);
    r->n_streams = r->n_streams ? r->n_streams : n;
    if (n != r->n_streams || count_times(upper) != n) {
        diag_error(r->diag, here(r, upper->col),
                   "lower and upper of all rows have the same number of "
                   "streams, %u",
                   r->n_streams);
        return;
    }
    if (n > 1) {
        read_clock(r, extra);
        return;
    }
    const char *from = lower->text, *to = upper->text;
    read_time(r, COL_LOWER, &from, &b->lower);
    read_time(r, COL_UPPER, &to, &b->upper);
    if (b->upper < b->lower)
        diag_error(r->diag, here(r, upper->col),
                   "the life of %s ends before it begins",
                   field_of(r, COL_ID)->text);
}

/* A number of at least `least`; `absent` where the field is empty. */
static uint64_t read_number(Reader *r, uint32_t column, uint64_t least,
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
                   column < COL_SIZES ? name[column].name : "size", field->text,
                   least);
    return value;
}

/* -1 is none, too: numbers without an empty value are written so. */
static uint64_t read_hint(Reader *r) {
    const Field *field = field_of(r, COL_HINT);
    return field && !strcmp(field->text, "-1")
               ? PACK_NO_HINT
               : read_number(r, COL_HINT, 0, PACK_NO_HINT);
}

/* The words of a field, between spaces. False after the last. */
static bool next_word(Reader *r, const Field *field, const char **at,
                      Word *word) {
    *at += strspn(*at, " ");
    size_t len = strcspn(*at, " ");
    *word = (Word){arena_strndup(r->arena, *at, len), r->buffer.n,
                   r->lines.line, field->col + (uint32_t)(*at - field->text)};
    *at += len;
    return len > 0;
}

/* 3-5 or 3-5@0:64. */
static bool parse_gap(const char *text, CsvSpan *gap, int64_t *low,
                      int64_t *high) {
    long long from, to, first, last;
    int used = 0, all = 0;
    if (sscanf(text, "%lld-%lld%n@%lld:%lld%n", &from, &to, &used, &first,
               &last, &all) < 2)
        return false;
    *gap = (CsvSpan){from, to};
    *low = *high = 0;
    if (!text[used])
        return true;
    *low = first;
    *high = last;
    return all && !text[all] && first >= 0 && first <= last;
}

static void read_gaps(Reader *r, const CsvBuffer *b, CsvExtra *extra) {
    VEC(CsvSpan) gap = {0};
    const Field *field = field_of(r, COL_GAPS);
    const char *at = field->text;
    int64_t low, high, before = b->lower;
    Word word;
    if (extra->clock) {
        diag_error(r->diag, here(r, field->col),
                   "lives on several streams have no gaps");
        return;
    }
    while (next_word(r, field, &at, &word)) {
        CsvSpan span = {0, 0};
        bool fine = parse_gap(word.text, &span, &low, &high);
        span.upper += r->inclusive;
        if (!fine || span.lower < before || span.upper < span.lower ||
            span.upper > b->upper || (uint64_t)high > b->size) {
            diag_error(r->diag, here(r, word.col),
                       "'%s' is not a gap within the life, behind the one "
                       "before, like 3-5 or 3-5@0:64",
                       word.text);
            return;
        }
        before = span.upper;
        vec_push(r->arena, &gap, span);
        if (low < high)
            vec_push(r->arena, &r->window,
                     ((Window){word.row, span, low, high}));
    }
    extra->gap = gap.at;
    extra->n_gaps = gap.n;
}

static void read_pool(Reader *r, CsvBuffer *b) {
    const Field *field = field_of(r, COL_POOL);
    b->pool = field && *field->text ? find_pool(r, field->text) : -1;
    if (!field || !*field->text || b->pool >= 0)
        return;
    diag_error(r->diag, here(r, field->col), "there is no pool '%s'",
               field->text);
    for (uint32_t p = 0; p < r->n_pools; p++)
        diag_note(r->diag, here(r, field->col), "%s is one", r->pool[p].name);
}

static void read_sizes(Reader *r, CsvBuffer *b, CsvExtra *extra) {
    b->size = read_number(r, COL_SIZE, 0, 0);
    for (uint32_t p = 0; p < r->n_pools; p++)
        extra->sizes[p] = read_number(r, COL_SIZES + p, 0, b->size);
}

/* The words are to be read later. */
static const char *keep_words(Reader *r, uint32_t column, bool relations) {
    const Field *field = field_of(r, column);
    if (!field || !*field->text)
        return "";
    const char *at = field->text;
    Word word;
    while (next_word(r, field, &at, &word)) {
        if (relations)
            vec_push(r->arena, &r->relation, word);
        else
            vec_push(r->arena, &r->conflict, word);
    }
    return arena_strdup(r->arena, field->text);
}

static bool is_plain(const Reader *r, const CsvBuffer *b, const CsvExtra *x) {
    bool one_size = true;
    for (uint32_t p = 0; p < r->n_pools; p++)
        one_size &= x->sizes[p] == b->size;
    return one_size && x->hint == PACK_NO_HINT && x->offset == PACK_NO_HINT &&
           !*x->gaps && !*x->relations && !*x->conflicts && !x->clock;
}

static void read_buffer(Reader *r) {
    if (r->lines.n_fields != r->n_headings) {
        diag_error(r->diag, here(r, 1), "%u fields under %u columns",
                   r->lines.n_fields, r->n_headings);
        return;
    }
    CsvBuffer b = {.line = r->lines.line};
    CsvExtra extra = {.gaps = ""};
    read_life(r, &b, &extra);
    read_sizes(r, &b, &extra);
    b.alignment = read_number(r, COL_ALIGNMENT, 1, 1);
    extra.hint = read_hint(r);
    extra.offset = read_number(r, COL_OFFSET, 0, PACK_NO_HINT);
    read_pool(r, &b);
    const Field *gaps = field_of(r, COL_GAPS);
    if (gaps && *gaps->text) {
        extra.gaps = arena_strdup(r->arena, gaps->text);
        read_gaps(r, &b, &extra);
    }
    extra.relations = keep_words(r, COL_RELATIONS, true);
    extra.conflicts = keep_words(r, COL_CONFLICTS, false);
    b.id = arena_strdup(r->arena, field_of(r, COL_ID)->text);
    if (!is_plain(r, &b, &extra))
        b.extra = ARENA_COPY(r->arena, CsvExtra, &extra, 1);
    vec_push(r->arena, &r->buffer, b);
}

uint32_t problem_csv_row(const CsvProblem *csv, uint32_t buf) {
    for (uint32_t i = 0; i < csv->problem.n_relations && buf >= csv->n_rows;
         i++)
        if (csv->problem.relation[i].a == buf)
            return csv->problem.relation[i].b;
    return buf;
}

static uint32_t count_lines(const char *at, const char *end) {
    uint32_t n = 1;
    for (; at < end && (at = memchr(at, '\n', (size_t)(end - at))); at++)
        n++;
    return n;
}

bool problem_csv_read(Arena *arena, Diag *diag, const char *path,
                      const CsvPool *pool, uint32_t n_pools, CsvProblem *out) {
    static const char mark[] = "\xef\xbb\xbf"; /* of UTF-8; spreadsheets */
    Bytes bytes;
    Reader r = {.arena = arena, .diag = diag, .path = path};
    if (!file_read(arena, diag, path, &bytes))
        return false;
    r.pool = pool;
    r.n_pools = n_pools;
    const char *at = (const char *)bytes.at, *end = at + bytes.len;
    if (bytes.len >= sizeof mark - 1 && !memcmp(at, mark, sizeof mark - 1))
        at += sizeof mark - 1;
    r.lines = (CsvLines){
        .arena = arena, .diag = diag, .path = path, .at = at, .end = end};
    diag_source(diag, path, at, (size_t)(end - at));
    uint32_t before = diag_errors(diag);
    if (!csv_next_line(&r.lines)) {
        diag_error(diag, (Loc){path, 0, 0}, "there is no heading");
        return false;
    }
    if (!read_heading(&r))
        return false;
    vec_reserve(arena, &r.buffer, count_lines(r.lines.at, end));
    while (csv_next_line(&r.lines))
        read_buffer(&r);
    csv_make_problem(&r, out);
    return diag_errors(diag) == before;
}
