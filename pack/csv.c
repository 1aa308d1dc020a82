/* csv.c - see csv.h. Ids with spaces cannot be named in relations.
 *
 * Times may be any 63-bit numbers; the planners get their ranks, which keep
 * which lives overlap.
 */
#include "pack/csv.h"

#include "base/file.h"
#include "base/near.h"
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
    COL_RELATIONS,
    COL_POOL,
    COL_SIZES, /* of one pool each */
    N_COLUMNS = COL_SIZES + PACK_MAX_POOLS
} Column;

_Static_assert((int)N_COLUMNS == (int)CSV_COLUMNS, "columns of the header");

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
            {"relations", COL_RELATIONS, false},
            {"pool", COL_POOL, false},
            {"buffer", COL_ID, false},
            {"buffer_id", COL_ID, false},
            {"begin", COL_LOWER, false},
            {"start", COL_LOWER, false},
            {"end", COL_UPPER, true}};
enum { N_NAMES = sizeof name / sizeof *name, MAX_FIELDS = 32 };

static const char *const relation_name[N_RELATIONS] = {
    [REL_INSIDE] = "inside", [REL_SHARE] = "share", [REL_SAME] = "same",
    [REL_BELOW] = "below",   [REL_APART] = "apart",
};

typedef struct Field {
    const char *text; /* NUL-terminated */
    uint32_t col;
} Field;

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
    const char *path, *at, *end, *start; /* of the line */
    uint32_t line;
    uint32_t n_fields;
    Field field[MAX_FIELDS];
    int32_t where[N_COLUMNS]; /* the field of a column; -1: absent */
    bool inclusive;
    uint32_t n_headings;
    const CsvPool *pool;
    uint32_t n_pools;
    VEC(CsvBuffer) buffer;
    VEC(Word) relation; /* to be read when all ids are known */
    VEC(Window) window;
} Reader;

static Loc here(const Reader *r, uint32_t col) {
    return (Loc){r->path, r->line, col};
}

/* ---- lines and fields ---- */

static void add_field(Reader *r, const char *text, uint32_t col) {
    if (r->n_fields < MAX_FIELDS)
        r->field[r->n_fields] = (Field){text, col};
    r->n_fields++;
}

static uint32_t col_of(const Reader *r) {
    return (uint32_t)(r->at - r->start) + 1;
}

static bool is_at(const Reader *r, size_t ahead, char c) {
    return ahead < (size_t)(r->end - r->at) && r->at[ahead] == c;
}

static bool ends_field(const Reader *r) {
    return r->at == r->end || *r->at == ',' || *r->at == '\n';
}

/* Up to the next comma or the end of the line, without spaces around. */
static void read_plain(Reader *r) {
    const char *text = r->at;
    uint32_t col = col_of(r);
    while (!ends_field(r))
        r->at++;
    size_t len = (size_t)(r->at - text);
    while (len && (text[len - 1] == ' ' || text[len - 1] == '\r'))
        len--;
    add_field(r, arena_strndup(r->arena, text, len), col);
}

/* Behind a quote, up to the one that is not doubled (RFC 4180); lines may end
 * within. */
static void read_quoted(Reader *r) {
    uint32_t line = r->line, col = col_of(r);
    size_t len = 0;
    const char *text = ++r->at;
    while (r->at < r->end && (*r->at != '"' || is_at(r, 1, '"')))
        r->at += 1 + (*r->at == '"');
    char *out = arena_strndup(r->arena, text, (size_t)(r->at - text));
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
        diag_error(r->diag, here(r, col_of(r)),
                   "behind a quoted field comes a comma or the end of the "
                   "line");
    while (!ends_field(r))
        r->at++;
}

static void read_line(Reader *r) {
    r->line++;
    r->n_fields = 0;
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

/* False at the end of the file. Blank lines are passed over. */
static bool next_line(Reader *r) {
    while (r->at < r->end) {
        read_line(r);
        if (r->n_fields > 1 || *r->field[0].text)
            return true;
    }
    return false;
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
    for (int c = 0; c < N_COLUMNS; c++)
        r->where[c] = -1;
    r->n_headings = r->n_fields < MAX_FIELDS ? r->n_fields : MAX_FIELDS;
    for (uint32_t i = 0; i < r->n_headings; i++) {
        int known = find_column(r, r->field[i].text);
        if (known < 0) {
            pass_over(r, &r->field[i]);
            continue;
        }
        if (r->where[known] >= 0) {
            diag_error(r->diag, here(r, r->field[i].col),
                       "a second column '%s'", r->field[i].text);
            fine = false;
            continue;
        }
        r->where[known] = (int32_t)i;
    }
    for (int c = COL_ID; c <= COL_SIZE; c++)
        if (r->where[c] < 0) {
            diag_error(r->diag, here(r, 1), "there is no column '%s'",
                       name[c].name);
            fine = false;
        }
    if (r->n_fields > MAX_FIELDS) {
        diag_error(r->diag, here(r, 1), "more than %d columns", MAX_FIELDS);
        fine = false;
    }
    return fine;
}

/* ---- one buffer ---- */

/* NULL where the column is absent. */
static const Field *field_of(const Reader *r, uint32_t column) {
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
    *word = (Word){arena_strndup(r->arena, *at, len), r->buffer.n, r->line,
                   field->col + (uint32_t)(*at - field->text)};
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

static void read_gaps(Reader *r, CsvBuffer *b) {
    VEC(CsvSpan) gap = {0};
    const Field *field = field_of(r, COL_GAPS);
    const char *at = field->text;
    int64_t low, high, before = b->lower;
    Word word;
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
    b->gap = gap.at;
    b->n_gaps = gap.n;
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

static void read_sizes(Reader *r, CsvBuffer *b) {
    b->size = read_number(r, COL_SIZE, 0, 0);
    for (uint32_t p = 0; p < r->n_pools; p++)
        b->sizes[p] = read_number(r, COL_SIZES + p, 0, b->size);
}

static const char *text_of(const Reader *r, uint32_t column) {
    const Field *field = field_of(r, column);
    return field ? field->text : "";
}

static void read_buffer(Reader *r) {
    if (r->n_fields != r->n_headings) {
        diag_error(r->diag, here(r, 1), "%u fields under %u columns",
                   r->n_fields, r->n_headings);
        return;
    }
    CsvBuffer b = {.id = field_of(r, COL_ID)->text, .line = r->line};
    read_time(r, COL_LOWER, &b.lower);
    read_time(r, COL_UPPER, &b.upper);
    b.upper += r->inclusive;
    read_sizes(r, &b);
    b.alignment = read_number(r, COL_ALIGNMENT, 1, 1);
    b.hint = read_hint(r);
    b.offset = read_number(r, COL_OFFSET, 0, PACK_NO_HINT);
    read_pool(r, &b);
    if (b.upper < b.lower)
        diag_error(r->diag, here(r, field_of(r, COL_UPPER)->col),
                   "the life of %s ends before it begins", b.id);
    b.text[0] = text_of(r, COL_GAPS);
    b.text[1] = text_of(r, COL_RELATIONS);
    if (*b.text[0])
        read_gaps(r, &b);
    const char *at = b.text[1];
    Word word;
    while (*at && next_word(r, field_of(r, COL_RELATIONS), &at, &word))
        vec_push(r->arena, &r->relation, word);
    vec_push(r->arena, &r->buffer, b);
}

/* ---- relations ---- */

typedef struct Name {
    const char *id;
    uint32_t row;
} Name;

static int by_id(const void *a, const void *b) {
    const Name *x = a, *y = b;
    int order = strcmp(x->id, y->id);
    return order ? order : x->row < y->row ? -1 : x->row > y->row;
}

static int same_id(const void *a, const void *b) {
    return strcmp(((const Name *)a)->id, ((const Name *)b)->id);
}

static Name *list_names(const Reader *r) {
    Name *all = ARENA_ARRAY(r->arena, Name, r->buffer.n);
    for (uint32_t i = 0; i < r->buffer.n; i++)
        all[i] = (Name){r->buffer.at[i].id, i};
    if (r->buffer.n)
        qsort(all, r->buffer.n, sizeof *all, by_id);
    return all;
}

static void bad_relation(const Reader *r, const Word *w, const char *why) {
    diag_error(r->diag, (Loc){r->path, w->line, w->col},
               "'%s' is not a relation: %s", w->text, why);
}

/* KIND:ID or KIND:ID@BYTES. */
static bool read_relation(const Reader *r, const Name *names, const Word *w,
                          Relation *out) {
    const char *colon = strchr(w->text, ':'), *at = strrchr(w->text, '@');
    int kind = 0;
    char *end = NULL;
    while (kind < N_RELATIONS && colon &&
           (strncmp(relation_name[kind], w->text, (size_t)(colon - w->text)) !=
                0 ||
            relation_name[kind][colon - w->text]))
        kind++;
    if (!colon || kind == N_RELATIONS) {
        bad_relation(r, w, "inside, share, same, below or apart, then :ID");
        return false;
    }
    bool takes = kind == REL_INSIDE || kind == REL_BELOW;
    long long bytes = takes && at ? strtoll(at + 1, &end, 10) : 0;
    size_t len = takes && at ? (size_t)(at - colon) - 1 : strlen(colon + 1);
    Name key = {arena_strndup(r->arena, colon + 1, len), 0};
    const Name *found =
        bsearch(&key, names, r->buffer.n, sizeof *names, same_id);
    *out =
        (Relation){(RelationKind)kind, w->row, found ? found->row : 0, bytes};
    const char *why = NULL;
    bool many =
        found &&
        ((found > names && !same_id(&key, found - 1)) ||
         (found + 1 < names + r->buffer.n && !same_id(&key, found + 1)));
    if (many)
        why = arena_printf(r->arena, "several buffers are called '%s'", key.id);
    else if (!found)
        why = arena_printf(r->arena, "there is no buffer '%s'", key.id);
    else if (found->row == w->row)
        why = "it names the buffer itself";
    else if ((end && (*end || end == at + 1)) || bytes > INT64_MAX / 4 ||
             bytes < (kind == REL_INSIDE ? 0 : -INT64_MAX / 4))
        why = "what follows @ is not a number of bytes";
    if (why)
        bad_relation(r, w, why);
    return !why;
}

static void read_relations(Reader *r, PackProblem *problem) {
    const Name *names = r->relation.n ? list_names(r) : NULL;
    Relation *relation =
        ARENA_ARRAY(r->arena, Relation, r->relation.n + (size_t)r->window.n);
    for (uint32_t i = 0; i < r->relation.n; i++)
        if (read_relation(r, names, &r->relation.at[i],
                          &relation[problem->n_relations]))
            problem->n_relations++;
    for (uint32_t i = 0; i < r->window.n; i++)
        relation[problem->n_relations++] =
            (Relation){REL_INSIDE, r->buffer.n + i, r->window.at[i].row,
                       r->window.at[i].low};
    problem->relation = relation;
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

typedef struct Times {
    int64_t *at;
    uint32_t n;
} Times;

static Times list_times(const Reader *r) {
    size_t most = 2 * (size_t)r->buffer.n;
    for (uint32_t i = 0; i < r->buffer.n; i++)
        most += 2 * (size_t)r->buffer.at[i].n_gaps;
    Times t = {ARENA_ARRAY(r->arena, int64_t, most), 0};
    size_t n = 0;
    for (uint32_t i = 0; i < r->buffer.n; i++) {
        const CsvBuffer *b = &r->buffer.at[i];
        t.at[n++] = b->lower;
        t.at[n++] = b->upper;
        for (uint32_t k = 0; k < b->n_gaps; k++) {
            t.at[n++] = b->gap[k].lower;
            t.at[n++] = b->gap[k].upper;
        }
    }
    if (n)
        qsort(t.at, n, sizeof *t.at, by_time);
    for (size_t i = 0; i < n; i++)
        if (!t.n || t.at[t.n - 1] != t.at[i])
            t.at[t.n++] = t.at[i];
    return t;
}

static Buffer make_buffer(const Reader *r, const Times *t, const CsvBuffer *b) {
    bool pinned = b->offset != PACK_NO_HINT && b->size;
    Steps *gap = ARENA_ARRAY(r->arena, Steps, b->n_gaps);
    for (uint32_t k = 0; k < b->n_gaps; k++)
        gap[k] = (Steps){rank_of(t->at, t->n, b->gap[k].lower),
                         rank_of(t->at, t->n, b->gap[k].upper)};
    Buffer buf = {.first = rank_of(t->at, t->n, b->lower),
                  .end = rank_of(t->at, t->n, b->upper),
                  .n_gaps = b->n_gaps,
                  .gap = gap,
                  .align = b->alignment,
                  .hint = b->hint,
                  .pin_pool = pinned ? (b->pool < 0 ? 0 : b->pool) : -1,
                  .pin_offset = pinned ? b->offset : 0};
    for (uint32_t p = 0; p < r->n_pools; p++)
        if (b->pool < 0 || b->pool == (int32_t)p)
            buf.bytes[p] = b->sizes[p];
    return buf;
}

static Buffer make_window(const Reader *r, const Times *t, const Window *w) {
    const CsvBuffer *row = &r->buffer.at[w->row];
    Buffer buf = {.first = rank_of(t->at, t->n, w->gap.lower),
                  .end = rank_of(t->at, t->n, w->gap.upper),
                  .hint = PACK_NO_HINT,
                  .pin_pool = -1};
    for (uint32_t p = 0; p < r->n_pools; p++)
        if (row->pool < 0 || row->pool == (int32_t)p)
            buf.bytes[p] = row->sizes[p] ? (uint64_t)(w->high - w->low) : 0;
    return buf;
}

static void make_problem(Reader *r, CsvProblem *out) {
    Times times = list_times(r);
    uint32_t rows = r->buffer.n, n = rows + r->window.n;
    Buffer *buf = ARENA_ARRAY(r->arena, Buffer, n);
    for (uint32_t i = 0; i < rows; i++)
        buf[i] = make_buffer(r, &times, &r->buffer.at[i]);
    for (uint32_t i = 0; i < r->window.n; i++)
        buf[rows + i] = make_window(r, &times, &r->window.at[i]);
    *out = (CsvProblem){
        .problem = {.n_pools = r->n_pools, .n_bufs = n, .buf = buf},
        .n_rows = rows,
        .buffer = r->buffer.at,
        .pool = r->pool,
        .inclusive = r->inclusive};
    for (uint32_t p = 0; p < r->n_pools; p++)
        out->problem.pool[p] = r->pool[p].pool;
    for (int c = 0; c < N_COLUMNS; c++)
        out->has[c] = r->where[c] >= 0;
    read_relations(r, &out->problem);
}

uint32_t problem_csv_row(const CsvProblem *csv, uint32_t buf) {
    for (uint32_t i = 0; i < csv->problem.n_relations && buf >= csv->n_rows;
         i++)
        if (csv->problem.relation[i].a == buf)
            return csv->problem.relation[i].b;
    return buf;
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
    r.at = (const char *)bytes.at;
    r.end = r.at + bytes.len;
    if (bytes.len >= sizeof mark - 1 && !memcmp(r.at, mark, sizeof mark - 1))
        r.at += sizeof mark - 1;
    diag_source(diag, path, r.at, (size_t)(r.end - r.at));
    uint32_t before = diag_errors(diag);
    if (!next_line(&r)) {
        diag_error(diag, (Loc){path, 0, 0}, "there is no heading");
        return false;
    }
    if (!read_heading(&r))
        return false;
    while (next_line(&r))
        read_buffer(&r);
    make_problem(&r, out);
    return diag_errors(diag) == before;
}

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
    text_addf(text, "id,lower,%s,size%s%s%s", csv->inclusive ? "end" : "upper",
              csv->has[COL_ALIGNMENT] ? ",alignment" : "",
              csv->has[COL_HINT] ? ",hint" : "",
              csv->has[COL_GAPS] ? ",gaps" : "");
    for (uint32_t p = 0; p < csv->problem.n_pools; p++)
        if (csv->has[COL_SIZES + p])
            text_addf(text, ",size:%s", csv->pool[p].name);
    text_addf(text, "%s%s,offset\n",
              csv->has[COL_RELATIONS] ? ",relations" : "",
              csv->problem.n_pools > 1 ? ",pool" : "");
}

const char *problem_csv_print(Arena *arena, const CsvProblem *csv,
                              const PackResult *result) {
    Text text = text_new(arena);
    print_heading(csv, &text);
    for (uint32_t i = 0; i < csv->n_rows; i++) {
        const CsvBuffer *b = &csv->buffer[i];
        add_field_text(&text, b->id);
        text_addf(&text, ",%" PRId64 ",%" PRId64 ",%" PRIu64, b->lower,
                  b->upper - csv->inclusive, b->size);
        add_number(&text, csv->has[COL_ALIGNMENT], b->alignment);
        add_number(&text, csv->has[COL_HINT], b->hint);
        if (csv->has[COL_GAPS])
            text_addf(&text, ",%s", b->text[0]);
        for (uint32_t p = 0; p < csv->problem.n_pools; p++)
            add_number(&text, csv->has[COL_SIZES + p], b->sizes[p]);
        if (csv->has[COL_RELATIONS]) {
            text_add(&text, ",");
            add_field_text(&text, b->text[1]);
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
