/* csv_problem.c - rows of a CSV as a problem: ranks of times, relations,
 * conflicts; see csv_reader.h.
 *
 * Times may be any 63-bit numbers; the planners get their ranks, which keep
 * which lives overlap.
 */
#include "pack/csv_reader.h"

#include "base/order.h"

#include "pack/conflicts.h"

#include <stdlib.h>
#include <string.h>

static const char *const relation_name[N_RELATIONS] = {
    [REL_INSIDE] = "inside", [REL_SHARE] = "share", [REL_SAME] = "same",
    [REL_BELOW] = "below",   [REL_APART] = "apart",
};

/* ---- relations and conflicts ---- */

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

static bool bad_word(const Reader *r, const Word *w, const char *what,
                     const char *why) {
    diag_error(r->diag, (Loc){r->path, w->line, w->col}, "'%s' is not a %s: %s",
               w->text, what, why);
    return false;
}

/* The row of another buffer; NULL, and why. */
static const Name *find_name(const Reader *r, const Name *names, const Word *w,
                             const char *id, const char **why) {
    Name key = {id, 0};
    const Name *found =
        bsearch(&key, names, r->buffer.n, sizeof *names, same_id);
    bool many =
        found &&
        ((found > names && !same_id(&key, found - 1)) ||
         (found + 1 < names + r->buffer.n && !same_id(&key, found + 1)));
    *why = NULL;
    if (many)
        *why = arena_printf(r->arena, "several buffers are called '%s'", id);
    else if (!found)
        *why = arena_printf(r->arena, "there is no buffer '%s'", id);
    else if (found->row == w->row)
        *why = "it names the buffer itself";
    return *why ? NULL : found;
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
    if (!colon || kind == N_RELATIONS)
        return bad_word(r, w, "relation",
                        "inside, share, same, below or apart, then :ID");
    bool takes = kind == REL_INSIDE || kind == REL_BELOW;
    long long bytes = takes && at ? strtoll(at + 1, &end, 10) : 0;
    size_t len = takes && at ? (size_t)(at - colon) - 1 : strlen(colon + 1);
    const char *why, *id = arena_strndup(r->arena, colon + 1, len);
    const Name *found = find_name(r, names, w, id, &why);
    *out =
        (Relation){(RelationKind)kind, w->row, found ? found->row : 0, bytes};
    if (!why && ((end && (*end || end == at + 1)) || bytes > INT64_MAX / 4 ||
                 bytes < (kind == REL_INSIDE ? 0 : -INT64_MAX / 4)))
        why = "what follows @ is not a number of bytes";
    return !why || bad_word(r, w, "relation", why);
}

static void read_relations(Reader *r, const Name *names, PackProblem *problem) {
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

/* Lives in which what `conflicts` lists conflicts, and what is alive on several
 * streams at once. */
static void read_conflicts(Reader *r, const Name *names, Buffer *buf) {
    Clocks clocks = {NULL, r->n_streams};
    Pairs pairs = {ARENA_ARRAY(r->arena, Pair, r->conflict.n), 0};
    for (uint32_t i = 0; i < r->conflict.n; i++) {
        const Word *w = &r->conflict.at[i];
        const char *why;
        const Name *found = find_name(r, names, w, w->text, &why);
        if (found)
            pairs.at[pairs.n++] = (Pair){w->row, found->row};
        else
            bad_word(r, w, "conflict", why);
    }
    if (r->n_streams > 1) {
        size_t each = 2 * (size_t)r->n_streams;
        int64_t *clock = ARENA_ARRAY(r->arena, int64_t, r->buffer.n * each);
        for (uint32_t i = 0; i < r->buffer.n; i++)
            if (r->buffer.at[i].extra->clock)
                memcpy(clock + i * each, r->buffer.at[i].extra->clock,
                       each * sizeof *clock);
        clocks.at = clock;
    }
    if (!conflicts_to_lives(r->arena, pairs, clocks.at ? &clocks : NULL, buf,
                            r->buffer.n))
        diag_error(r->diag, (Loc){r->path, 0, 0},
                   "more than %d pairs of buffers conflict", PAIRS_MOST);
}

/* ---- the problem ---- */

static int by_time(const void *a, const void *b) {
    const int64_t *x = a, *y = b;
    return ORDER_UP(*x, *y);
}

static uint32_t rank_of(const int64_t *time, uint32_t n, int64_t value) {
    const int64_t *found = bsearch(&value, time, n, sizeof *time, by_time);
    return (uint32_t)(found - time);
}

typedef struct Times {
    int64_t *at;
    uint32_t n;
} Times;

static Times list_times(const Reader *r, Arena *arena) {
    size_t most = 2 * (size_t)r->buffer.n;
    for (uint32_t i = 0; i < r->buffer.n; i++)
        most += 2 * (size_t)r->buffer.at[i].extra->n_gaps;
    Times t = {ARENA_ARRAY(arena, int64_t, most), 0};
    size_t n = 0;
    for (uint32_t i = 0; i < r->buffer.n; i++) {
        const CsvBuffer *b = &r->buffer.at[i];
        t.at[n++] = b->lower;
        t.at[n++] = b->upper;
        for (uint32_t k = 0; k < b->extra->n_gaps; k++) {
            t.at[n++] = b->extra->gap[k].lower;
            t.at[n++] = b->extra->gap[k].upper;
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
    const CsvExtra *x = b->extra;
    bool pinned = x->offset != PACK_NO_HINT && b->size;
    Steps *gap = x->n_gaps ? ARENA_ARRAY(r->arena, Steps, x->n_gaps) : NULL;
    for (uint32_t k = 0; k < x->n_gaps; k++)
        gap[k] = (Steps){rank_of(t->at, t->n, x->gap[k].lower),
                         rank_of(t->at, t->n, x->gap[k].upper)};
    Buffer buf = {.first = rank_of(t->at, t->n, b->lower),
                  .end = rank_of(t->at, t->n, b->upper),
                  .n_gaps = x->n_gaps,
                  .gap = gap,
                  .align = b->alignment,
                  .hint = x->hint,
                  .pin_pool = pinned ? (b->pool < 0 ? 0 : b->pool) : -1,
                  .pin_offset = pinned ? x->offset : 0};
    for (uint32_t p = 0; p < r->n_pools; p++)
        if (b->pool < 0 || b->pool == (int32_t)p)
            buf.bytes[p] = csv_size(b, p);
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
            buf.bytes[p] = csv_size(row, p) ? (uint64_t)(w->high - w->low) : 0;
    return buf;
}

/* What rows share that have nothing of it. */
static const CsvExtra plain = {.hint = PACK_NO_HINT,
                               .offset = PACK_NO_HINT,
                               .gaps = "",
                               .relations = "",
                               .conflicts = ""};

uint64_t csv_size(const CsvBuffer *b, uint32_t pool) {
    return b->extra == &plain ? b->size : b->extra->sizes[pool];
}

void csv_make_problem(Reader *r, CsvProblem *out) {
    for (uint32_t i = 0; i < r->buffer.n; i++)
        if (!r->buffer.at[i].extra)
            r->buffer.at[i].extra = &plain;
    Arena *scratch = arena_new("times");
    Times times = list_times(r, scratch);
    uint32_t rows = r->buffer.n, n = rows + r->window.n;
    Buffer *buf = ARENA_ARRAY(r->arena, Buffer, n);
    for (uint32_t i = 0; i < rows; i++)
        buf[i] = make_buffer(r, &times, &r->buffer.at[i]);
    for (uint32_t i = 0; i < r->window.n; i++)
        buf[rows + i] = make_window(r, &times, &r->window.at[i]);
    arena_free(scratch);
    *out = (CsvProblem){
        .problem = {.n_pools = r->n_pools, .n_bufs = n, .buf = buf},
        .n_rows = rows,
        .buffer = r->buffer.at,
        .pool = r->pool,
        .n_streams = r->n_streams,
        .inclusive = r->inclusive};
    for (uint32_t p = 0; p < r->n_pools; p++)
        out->problem.pool[p] = r->pool[p].pool;
    for (int c = 0; c < CSV_COLUMNS; c++)
        out->has[c] = r->where[c] >= 0;
    const Name *names = r->relation.n || r->conflict.n ? list_names(r) : NULL;
    read_relations(r, names, &out->problem);
    if (r->conflict.n || r->n_streams > 1)
        read_conflicts(r, names, buf);
}
