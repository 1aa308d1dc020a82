/* cmd_pack.c - the allocator alone: a placement problem in, offsets out. */
#include "driver/commands.h"

#include "base/amount.h"
#include "base/file.h"
#include "driver/pack_svg.h"
#include "pack/csv.h"
#include "pack/pack.h"

#include <stdlib.h>
#include <string.h>

typedef struct Row {
    const char *planner;
    PackResult result;
    double ms;
} Row;

/* So many seconds from now on; 0: as many as it takes. */
static PackProblem within(const PackProblem *problem, double seconds) {
    PackProblem timed = *problem;
    timed.deadline = seconds > 0 ? pack_clock() + seconds : 0;
    return timed;
}

/* A capacity makes it a question: does it fit? Without one: how low? */
static Row run_planner(Arena *arena, const PackProblem *problem,
                       const char *name, double seconds) {
    Row row = {.planner = name};
    double start = now_ms();
    PackProblem timed = within(problem, seconds);
    pack_lowest(arena, &timed, name, &row.result);
    row.ms = now_ms() - start;
    return row;
}

static uint64_t height_of(const PackResult *r) {
    uint64_t sum = 0;
    for (uint32_t p = 0; p < PACK_MAX_POOLS; p++)
        sum += r->height[p];
    return sum;
}

static bool is_better(const PackResult *a, const PackResult *b) {
    if ((a->status == PACK_FITS) != (b->status == PACK_FITS))
        return a->status == PACK_FITS;
    if (a->status != PACK_FITS)
        return a->status > b->status; /* a proof is better than nothing */
    if (a->cost != b->cost)
        return a->cost < b->cost;
    if (height_of(a) != height_of(b))
        return height_of(a) < height_of(b);
    return a->hints != b->hints ? a->hints > b->hints : a->proved > b->proved;
}

/* ---- reports ---- */

static uint32_t count_hints(const CsvProblem *csv) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < csv->n_rows; i++)
        n += csv->buffer[i].extra->hint != PACK_NO_HINT;
    return n;
}

/* By PackStatus: the words of the library, too. */
static const char *const outcome_name[] = {"fits", "undecided", "infeasible"};

static bool is_proved(const PackResult *result) {
    return result->proved || result->status == PACK_INFEASIBLE;
}

/* What only some problems have. */
static void add_extras(cJSON *json, const CsvProblem *csv,
                       const PackResult *r) {
    cJSON *pools = NULL;
    if (csv->problem.n_pools > 1)
        pools = cJSON_AddObjectToObject(json, "heights");
    for (uint32_t p = 0; p < csv->problem.n_pools && pools; p++)
        cJSON_AddNumberToObject(pools, csv->pool[p].name, (double)r->height[p]);
    if (pools) {
        cJSON_AddNumberToObject(json, "cost", (double)r->cost);
        cJSON_AddNumberToObject(json, "cost_bound", (double)r->cost_bound);
    }
    if (count_hints(csv))
        cJSON_AddNumberToObject(json, "hints_kept", r->hints);
}

static void add_row(cJSON *json, const CsvProblem *csv, const Row *row) {
    const PackResult *r = &row->result;
    bool fits = r->status == PACK_FITS;
    cJSON_AddStringToObject(json, "planner", row->planner);
    if (fits)
        cJSON_AddNumberToObject(json, "height", (double)height_of(r));
    else
        cJSON_AddNullToObject(json, "height");
    cJSON_AddNumberToObject(json, "bound", (double)r->bound);
    cJSON_AddBoolToObject(json, "proved", is_proved(r));
    cJSON_AddBoolToObject(json, "fits", fits);
    cJSON_AddStringToObject(json, "outcome", outcome_name[r->status]);
    cJSON_AddNumberToObject(json, "ms", row->ms);
    cJSON_AddNumberToObject(json, "nodes", (double)r->nodes);
    if (fits)
        add_extras(json, csv, r);
}

/* What may help where a planner came to no answer. */
static const char *advice(Arena *arena, const Row *row) {
    if (!row->result.nodes)
        return arena_printf(arena,
                            "%s does not search; --planner portfolio does",
                            row->planner);
    return arena_printf(arena,
                        "%s nodes were searched: --seconds N or --budget N "
                        "allows more",
                        with_commas(arena, row->result.nodes));
}

static cJSON *conflict_json(const CsvProblem *csv,
                            const PackConflict *conflict) {
    cJSON *json = cJSON_CreateObject();
    cJSON *ids = cJSON_AddArrayToObject(json, "buffers");
    for (uint32_t i = 0; i < conflict->n; i++) {
        uint32_t row = problem_csv_row(csv, conflict->buf[i]);
        cJSON_AddItemToArray(ids, cJSON_CreateString(csv->buffer[row].id));
    }
    cJSON_AddNumberToObject(json, "bound", (double)conflict->bound);
    cJSON_AddBoolToObject(json, "irreducible", conflict->irreducible);
    return json;
}

static void report_json(Arena *arena, const Options *options,
                        const CsvProblem *csv, const Row *row, uint32_t n,
                        const Row *best, const PackConflict *conflict) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddNumberToObject(json, "buffers", csv->n_rows);
    add_row(json, csv, best);
    cJSON *rows = n > 1 ? cJSON_AddArrayToObject(json, "planners") : NULL;
    for (uint32_t i = 0; i < n && rows; i++) {
        cJSON *item = cJSON_CreateObject();
        add_row(item, csv, &row[i]);
        cJSON_AddItemToArray(rows, item);
    }
    if (conflict->infeasible)
        cJSON_AddItemToObject(json, "conflict", conflict_json(csv, conflict));
    if (best->result.status == PACK_FAILS)
        cJSON_AddStringToObject(json, "advice", advice(arena, best));
    print_json(arena, options, json);
}

static void print_row(Arena *arena, const Row *row) {
    const PackResult *r = &row->result;
    bool fits = r->status == PACK_FITS;
    double over =
        r->bound ? 100.0 * ((double)height_of(r) / (double)r->bound - 1) : 0;
    const char *word = !fits       ? outcome_name[r->status]
                       : r->proved ? "the least"
                                   : arena_printf(arena, "+%.2f %%", over);
    say("%-20s %15s %15s  %-12s %12s  %.1f\n", row->planner,
        fits ? with_commas(arena, height_of(r)) : "-",
        with_commas(arena, r->bound), word, with_commas(arena, r->nodes),
        row->ms);
}

/* What only some problems have, of the best. */
static void print_extras(Arena *arena, const CsvProblem *csv,
                         const PackResult *r) {
    uint32_t hints = count_hints(csv);
    for (uint32_t p = 0; p < csv->problem.n_pools && csv->problem.n_pools > 1;
         p++)
        say("pool    %s: %s of %s bytes\n", csv->pool[p].name,
            with_commas(arena, r->height[p]),
            with_commas(arena, csv->problem.pool[p].size));
    if (r->cost)
        say("cost    %s, at least %s\n", with_commas(arena, r->cost),
            with_commas(arena, r->cost_bound));
    if (hints)
        say("hints   %u of %u kept\n", r->hints, hints);
}

static void report_text(Arena *arena, const CsvProblem *csv, const Row *row,
                        uint32_t n, const Row *best) {
    say("%-20s %15s %15s  %-12s %12s  %s\n", "planner", "height", "bound", "",
        "nodes", "ms");
    for (uint32_t i = 0; i < n; i++)
        print_row(arena, &row[i]);
    if (best->result.status == PACK_FITS)
        print_extras(arena, csv, &best->result);
}

/* What else a buffer asks for. */
static const char *demands(Arena *arena, const CsvBuffer *b) {
    const char *all = "";
    if (b->alignment > 1)
        all = arena_printf(arena, ", at a multiple of %s",
                           with_commas(arena, b->alignment));
    if (b->extra->offset != PACK_NO_HINT)
        all = arena_printf(arena, "%s, pinned at %s", all,
                           with_commas(arena, b->extra->offset));
    if (*b->extra->gaps)
        all = arena_printf(arena, "%s, gaps %s", all, b->extra->gaps);
    if (*b->extra->conflicts)
        all = arena_printf(arena, "%s, conflicts %s", all, b->extra->conflicts);
    return *b->extra->relations
               ? arena_printf(arena, "%s, %s", all, b->extra->relations)
               : all;
}

/* ", alive 3 to 9", on each stream. */
static const char *life_of(Arena *arena, const CsvProblem *csv,
                           const CsvBuffer *b) {
    const char *all = "";
    const int64_t *clock = b->extra->clock;
    for (uint32_t s = 0; clock && s < csv->n_streams; s++)
        all = arena_printf(arena, "%s%s %lld to %lld", all,
                           s ? " |" : ", alive", (long long)clock[s],
                           (long long)clock[csv->n_streams + s]);
    if (!clock && csv->has[COL_LOWER])
        all = arena_printf(arena, ", alive %lld to %lld", (long long)b->lower,
                           (long long)b->upper);
    return all;
}

static void explain_conflict(Arena *arena, Diag *diag, const char *file,
                             const CsvProblem *csv,
                             const PackConflict *conflict) {
    uint64_t room = 0;
    for (uint32_t p = 0; p < csv->problem.n_pools; p++)
        room += csv->problem.pool[p].size;
    const char *who = "one buffer", *what = " cannot be placed";
    if (conflict->n > 1)
        who = arena_printf(arena, "these %u buffers", conflict->n);
    if (conflict->bound > room)
        what = arena_printf(arena, " need%s at least %s",
                            conflict->n > 1 ? "" : "s",
                            with_commas(arena, conflict->bound));
    if (!conflict->infeasible) {
        diag_error(diag, (Loc){file, 0, 0},
                   "no placement within %s bytes exists: proved, but not of "
                   "fewer buffers in this budget",
                   with_commas(arena, room));
        return;
    }
    diag_error(diag, (Loc){file, 0, 0},
               "no placement within %s bytes exists: %s%s%s",
               with_commas(arena, room), who, what,
               conflict->irreducible && conflict->n > 1
                   ? ", and none of them can be left out"
                   : "");
    for (uint32_t i = 0; i < conflict->n; i++) {
        uint32_t row = problem_csv_row(csv, conflict->buf[i]);
        const CsvBuffer *b = &csv->buffer[row];
        diag_note(diag, (Loc){file, 0, 0}, "%s: %s bytes%s%s", b->id,
                  with_commas(arena, b->size), life_of(arena, csv, b),
                  demands(arena, b));
    }
}

static void explain_undecided(Arena *arena, Diag *diag, const char *file,
                              const Row *row) {
    diag_error(diag, (Loc){file, 0, 0},
               "undecided: no placement was found, and none was ruled out; "
               "none is below %s bytes",
               with_commas(arena, row->result.bound));
    diag_note(diag, (Loc){file, 0, 0}, "%s", advice(arena, row));
}

/* ---- the command ---- */

static bool planner_known(Diag *diag, const char *name) {
    if (!strcmp(name, "all") || planner_find(name))
        return true;
    diag_error(diag, (Loc){0}, "no planner is called '%s'", name);
    diag_note(diag, (Loc){0}, "all: every one of these");
    for (uint32_t i = 0; i < n_planners; i++)
        diag_note(diag, (Loc){0}, "%s: %s", planners[i].name, planners[i].doc);
    return false;
}

static uint32_t run_rows(Arena *arena, const PackProblem *problem,
                         const char *name, double seconds, Row *row) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_planners; i++)
        if (!strcmp(name, "all") || !strcmp(name, planners[i].name))
            row[n++] = run_planner(arena, problem, planners[i].name, seconds);
    return n;
}

static bool write_outputs(Arena *arena, Diag *diag, const Options *options,
                          const CsvProblem *csv, const PackResult *result) {
    const PackArgs *own = options->own;
    bool fine = true;
    if (options->out && result->status == PACK_FITS) {
        const char *text = problem_csv_print(arena, csv, result);
        fine = file_write(arena, diag, options->out, text, strlen(text));
    }
    if (own->svg && result->status == PACK_FITS) {
        const char *text = pack_svg(arena, csv, result);
        fine &= file_write(arena, diag, own->svg, text, strlen(text));
    }
    return fine;
}

/* 4096:align=64:partition=1024:cost=3 */
static bool parse_pool(Arena *arena, const char *text, Pool *pool) {
    static const char *const key[] = {"align", "partition", "cost"};
    uint64_t *const value[] = {&pool->align, &pool->partition, &pool->cost};
    size_t len = strcspn(text, ":");
    *pool = (Pool){.align = 1};
    bool fine = bytes_parse(arena_strndup(arena, text, len), &pool->size) &&
                pool->size <= INT64_MAX;
    for (const char *at = text + len; fine && *at; at += len) {
        len = strcspn(++at, ":");
        const char *part = arena_strndup(arena, at, len);
        size_t name = strcspn(part, "="), k = 0;
        while (k < 3 && (strlen(key[k]) != name || strncmp(part, key[k], name)))
            k++;
        fine = k < 3 && part[name] && bytes_parse(part + name + 1, value[k]);
    }
    return fine && pool->align && pool->align <= INT64_MAX;
}

/* As --pool says; without it one, as large as --capacity says. NULL after
 * errors. */
static const CsvPool *make_pools(Arena *arena, Diag *diag, const PackArgs *own,
                                 uint32_t *n) {
    CsvPool *pool = ARENA_ARRAY(arena, CsvPool, own->pools.n + 1u);
    /* without an end: as far as offsets of bundles reach (pack/free_list.c) */
    uint64_t size = own->capacity ? own->capacity : INT64_MAX / 4;
    pool[0] = (CsvPool){"memory", {.size = size, .align = 1}};
    *n = own->pools.n ? own->pools.n : 1;
    bool fine = own->pools.n <= PACK_MAX_POOLS;
    if (!fine)
        diag_error(diag, (Loc){0}, "more than %d pools", PACK_MAX_POOLS);
    if (own->pools.n && own->capacity)
        diag_error(diag, (Loc){0}, "--capacity and --pool exclude each other");
    fine &= !own->pools.n || !own->capacity;
    for (uint32_t p = 0; p < own->pools.n && fine; p++) {
        pool[p].name = own->pools.at[p].path;
        fine = parse_pool(arena, own->pools.at[p].value, &pool[p].pool);
        if (!fine)
            diag_error(diag, (Loc){0},
                       "--pool takes NAME=BYTES[:align=N][:partition=N]"
                       "[:cost=N], not %s=%s",
                       pool[p].name, own->pools.at[p].value);
    }
    return fine ? pool : NULL;
}

/* Within a capacity whatever fits is good enough, but for what it costs. */
static void prepare(const Options *options, CsvProblem *csv) {
    const PackArgs *own = options->own;
    csv->problem.seed = options->seed;
    csv->problem.budget = options->budget;
    csv->problem.any_fit = own->capacity > 0;
}

ExitCode cmd_pack(Arena *arena, Diag *diag, const Options *options) {
    const PackArgs *own = options->own;
    CsvProblem csv;
    const char *name =
        strcmp(options->planner, "auto") ? options->planner : "portfolio";
    if (!planner_known(diag, name))
        return EXIT_BAD_USAGE;
    uint32_t n_pools;
    const CsvPool *pool = make_pools(arena, diag, own, &n_pools);
    if (!pool)
        return EXIT_BAD_USAGE;
    if (!problem_csv_read(arena, diag, options->file, pool, n_pools, &csv))
        return EXIT_BAD_INPUT;
    if (own->svg && (csv.has[COL_CONFLICTS] || csv.n_streams > 1)) {
        diag_error(diag, (Loc){options->file, 0, 0},
                   "--svg draws lives on one line of time: no conflicts, one "
                   "stream");
        return EXIT_BAD_USAGE;
    }
    prepare(options, &csv);
    Row *row = ARENA_ARRAY(arena, Row, n_planners);
    uint32_t n = run_rows(arena, &csv.problem, name, own->seconds, row);
    const Row *best = row;
    for (uint32_t i = 1; i < n; i++)
        if (is_better(&row[i].result, &best->result))
            best = &row[i];
    PackConflict conflict = {0};
    if (best->result.status == PACK_INFEASIBLE) {
        PackProblem timed = within(&csv.problem, own->seconds);
        pack_irreducible(arena, &timed, &conflict);
    }
    if (!write_outputs(arena, diag, options, &csv, &best->result))
        return EXIT_BAD_INPUT;
    if (options->json)
        report_json(arena, options, &csv, row, n, best, &conflict);
    else
        report_text(arena, &csv, row, n, best);
    if (best->result.status == PACK_INFEASIBLE && !options->json)
        explain_conflict(arena, diag, options->file, &csv, &conflict);
    if (best->result.status == PACK_FAILS && !options->json)
        explain_undecided(arena, diag, options->file, best);
    return best->result.status == PACK_FITS ? EXIT_FINE : EXIT_NO_FIT;
}
