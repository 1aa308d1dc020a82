/* cmd_pack.c - the allocator alone: a placement problem in, offsets out. */
#include "driver/commands.h"

#include "alloc/planner.h"
#include "alloc/problem_csv.h"
#include "base/file.h"
#include "driver/pack_svg.h"

#include <string.h>

typedef struct Row {
    const char *planner;
    PlanResult result;
    double ms;
} Row;

/* Some strategies count from the end of memory, which there must be: the first
 * of bound, bound + 1/32, bound + 2/32... within which they find a placement.
 */
static void find_an_end(Arena *arena, const PlanProblem *problem, Row *row) {
    enum { PARTS = 32, MOST = 8 * PARTS };
    PlanProblem ended = *problem;
    uint64_t bound = row->result.bound, before = row->result.height[0];
    const char *used;
    for (uint64_t k = 0; k < MOST; k++) {
        uint64_t size = bound + bound / PARTS * k;
        if (size >= before)
            return;
        ended.pool[0].size = size;
        plan_memory(arena, &ended, row->planner, true, &row->result, &used);
        if (row->result.status == PLAN_FITS)
            return;
    }
}

/* A capacity makes it a question: does it fit? Without one: how low? */
static Row run_planner(Arena *arena, const PlanProblem *problem,
                       const char *name) {
    Row row = {.planner = name};
    const char *used;
    double start = now_ms();
    plan_memory(arena, problem, name, true, &row.result, &used);
    if (row.result.status == PLAN_FITS &&
        row.result.height[0] == problem->pool[0].size)
        find_an_end(arena, problem, &row);
    row.ms = now_ms() - start;
    return row;
}

static bool is_better(const PlanResult *a, const PlanResult *b) {
    if ((a->status == PLAN_FITS) != (b->status == PLAN_FITS))
        return a->status == PLAN_FITS;
    if (a->status != PLAN_FITS)
        return a->status > b->status; /* a proof is better than nothing */
    return a->height[0] < b->height[0] ||
           (a->height[0] == b->height[0] && a->proved > b->proved);
}

/* ---- reports ---- */

static bool is_proved(const PlanResult *result) {
    return result->proved || result->status == PLAN_INFEASIBLE;
}

static void add_row(cJSON *json, const Row *row) {
    const PlanResult *r = &row->result;
    bool fits = r->status == PLAN_FITS;
    cJSON_AddStringToObject(json, "planner", row->planner);
    if (fits)
        cJSON_AddNumberToObject(json, "height", (double)r->height[0]);
    else
        cJSON_AddNullToObject(json, "height");
    cJSON_AddNumberToObject(json, "bound", (double)r->bound);
    cJSON_AddBoolToObject(json, "proved", is_proved(r));
    cJSON_AddBoolToObject(json, "fits", fits);
    cJSON_AddNumberToObject(json, "ms", row->ms);
    cJSON_AddNumberToObject(json, "nodes", (double)r->nodes);
}

static cJSON *conflict_json(const CsvProblem *csv,
                            const PlanConflict *conflict) {
    cJSON *json = cJSON_CreateObject();
    cJSON *ids = cJSON_AddArrayToObject(json, "buffers");
    for (uint32_t i = 0; i < conflict->n; i++)
        cJSON_AddItemToArray(
            ids, cJSON_CreateString(csv->buffer[conflict->buf[i]].id));
    cJSON_AddNumberToObject(json, "bound", (double)conflict->bound);
    cJSON_AddBoolToObject(json, "irreducible", conflict->irreducible);
    return json;
}

static void report_json(Arena *arena, const CsvProblem *csv, const Row *row,
                        uint32_t n, const Row *best,
                        const PlanConflict *conflict) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddNumberToObject(json, "buffers", csv->problem.n_bufs);
    add_row(json, best);
    cJSON *rows = n > 1 ? cJSON_AddArrayToObject(json, "planners") : NULL;
    for (uint32_t i = 0; i < n && rows; i++) {
        cJSON *item = cJSON_CreateObject();
        add_row(item, &row[i]);
        cJSON_AddItemToArray(rows, item);
    }
    if (conflict->infeasible)
        cJSON_AddItemToObject(json, "conflict", conflict_json(csv, conflict));
    print_json(arena, json);
}

static void print_row(Arena *arena, const Row *row) {
    const PlanResult *r = &row->result;
    bool fits = r->status == PLAN_FITS;
    double over =
        r->bound ? 100.0 * ((double)r->height[0] / (double)r->bound - 1) : 0;
    const char *word = r->status == PLAN_INFEASIBLE ? "none exists"
                       : !fits                      ? "none found"
                       : r->proved                  ? "the least"
                                   : arena_printf(arena, "+%.2f %%", over);
    printf("%-20s %15s %15s  %-12s %12s  %.1f\n", row->planner,
           fits ? with_commas(arena, r->height[0]) : "-",
           with_commas(arena, r->bound), word, with_commas(arena, r->nodes),
           row->ms);
}

static void report_text(Arena *arena, const Row *row, uint32_t n) {
    printf("%-20s %15s %15s  %-12s %12s  %s\n", "planner", "height", "bound",
           "", "nodes", "ms");
    for (uint32_t i = 0; i < n; i++)
        print_row(arena, &row[i]);
}

static void explain_conflict(Arena *arena, Diag *diag, const char *file,
                             const CsvProblem *csv,
                             const PlanConflict *conflict, uint64_t capacity) {
    diag_error(diag, (Loc){file, 0, 0},
               "no placement within %s bytes exists: these %u buffers need at "
               "least %s%s",
               with_commas(arena, capacity), conflict->n,
               with_commas(arena, conflict->bound),
               conflict->irreducible ? ", and none of them can be left out"
                                     : "");
    for (uint32_t i = 0; i < conflict->n; i++) {
        const CsvBuffer *b = &csv->buffer[conflict->buf[i]];
        diag_note(diag, (Loc){file, 0, 0}, "%s: %s bytes, alive %lld to %lld",
                  b->id, with_commas(arena, b->size), (long long)b->lower,
                  (long long)b->upper);
    }
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

static uint32_t run_rows(Arena *arena, const PlanProblem *problem,
                         const char *name, Row *row) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_planners; i++)
        if (!strcmp(name, "all") || !strcmp(name, planners[i].name))
            row[n++] = run_planner(arena, problem, planners[i].name);
    return n;
}

static bool write_outputs(Arena *arena, Diag *diag, const Options *options,
                          const CsvProblem *csv, const PlanResult *result) {
    bool fine = true;
    if (options->out && result->status == PLAN_FITS) {
        const char *text = problem_csv_print(arena, csv, result);
        fine = file_write(arena, diag, options->out, text, strlen(text));
    }
    if (options->svg && result->status == PLAN_FITS) {
        const char *text = pack_svg(arena, csv, result);
        fine &= file_write(arena, diag, options->svg, text, strlen(text));
    }
    return fine;
}

static void prepare(Diag *diag, const Options *options, CsvProblem *csv) {
    PlanProblem *problem = &csv->problem;
    problem->seed = options->seed;
    problem->budget = options->budget;
    problem->any_fit = options->capacity > 0;
    if (options->capacity)
        problem->pool[0].size = options->capacity;
    bool gaps = false;
    for (uint32_t i = 0; i < problem->n_bufs; i++)
        gaps |= *csv->buffer[i].gaps != '\0';
    if (gaps)
        diag_warning(diag, (Loc){options->file, 0, 0},
                     "buffers keep their bytes through the gaps in their "
                     "lives; so does the bound");
}

ExitCode cmd_pack(Arena *arena, Diag *diag, const Options *options) {
    CsvProblem csv;
    const char *name =
        strcmp(options->planner, "auto") ? options->planner : "portfolio";
    if (!planner_known(diag, name))
        return EXIT_BAD_USAGE;
    if (!problem_csv_read(arena, diag, options->file, &csv))
        return EXIT_BAD_INPUT;
    prepare(diag, options, &csv);
    Row *row = ARENA_ARRAY(arena, Row, n_planners);
    uint32_t n = run_rows(arena, &csv.problem, name, row);
    const Row *best = row;
    for (uint32_t i = 1; i < n; i++)
        if (is_better(&row[i].result, &best->result))
            best = &row[i];
    PlanConflict conflict = {0};
    if (best->result.status == PLAN_INFEASIBLE)
        plan_irreducible(arena, &csv.problem, &conflict);
    if (!write_outputs(arena, diag, options, &csv, &best->result))
        return EXIT_BAD_INPUT;
    if (options->json)
        report_json(arena, &csv, row, n, best, &conflict);
    else
        report_text(arena, row, n);
    if (conflict.infeasible && !options->json)
        explain_conflict(arena, diag, options->file, &csv, &conflict,
                         options->capacity);
    return best->result.status == PLAN_FITS ? EXIT_FINE : EXIT_NO_FIT;
}
