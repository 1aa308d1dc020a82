/* show_orders.c - show --orders: one network by every strategy, and a picture
 * of the bytes alive by step. Without a machine every layer counts, with 4
 * bytes an element. */
#include "driver/commands.h"

#include "base/file.h"
#include "base/text.h"

#include <string.h>

typedef struct Row {
    const Schedule *schedule;
    double ms;
} Row;

static bool run_all(Arena *arena, Diag *diag, const Options *options,
                    const Pipeline *p, Row *row) {
    SchedOptions sched;
    if (!pipeline_sched_options(diag, options, &sched))
        return false;
    const Graph *g = p->spec ? p->graph : p->original;
    for (uint32_t i = 0; i < n_strategies; i++) {
        double start = now_ms();
        sched.strategy = strategies[i].name;
        row[i].schedule = sched_search(arena, diag, p->spec, g, &sched);
        row[i].ms = now_ms() - start;
    }
    return true;
}

/* ---- the table ---- */

static const char *proof(Arena *arena, const OrderFacts *f) {
    if (f->parts)
        return arena_printf(arena, "%s orders of %u parts",
                            with_commas(arena, f->orders), f->parts);
    if (!f->bound)
        return "";
    if (!f->proved)
        return arena_printf(arena, "within %.1f %% of the bound, gave up",
                            100.0 * (double)(f->peak - f->bound) /
                                (double)(f->bound ? f->bound : 1));
    if (!f->states)
        return "optimal: one layer alone needs as much";
    return arena_printf(arena, "optimal: less refuted, %s sets of layers",
                        with_commas(arena, f->states));
}

static void print_rows(Arena *arena, const Pipeline *p, const Row *row) {
    const Schedule *first = row[0].schedule;
    printf("%s%s%s: %u layers in order\n", first->graph->name,
           p->spec ? " on " : "", p->spec ? p->spec->machine : "",
           first->n_steps);
    printf("%-10s %14s %6s %14s %8s  %s\n", "order", "peak bytes", "steps",
           "least bytes", "ms", "proof");
    for (uint32_t i = 0; i < n_strategies; i++) {
        const OrderFacts *f = &row[i].schedule->facts;
        printf("%-10s %14s %6u %14s %8.1f  %s\n", strategies[i].name,
               with_commas(arena, f->peak), row[i].schedule->n_steps,
               f->bound ? with_commas(arena, f->bound) : "-", row[i].ms,
               proof(arena, f));
    }
}

static cJSON *row_json(const Row *row) {
    const OrderFacts *f = &row->schedule->facts;
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "order", row->schedule->strategy);
    cJSON_AddNumberToObject(json, "peak_bytes", (double)f->peak);
    cJSON_AddNumberToObject(json, "steps", row->schedule->n_steps);
    cJSON_AddNumberToObject(json, "cycles", (double)f->cycles);
    if (f->bound) {
        cJSON_AddNumberToObject(json, "bound_bytes", (double)f->bound);
        cJSON_AddBoolToObject(json, "proved", f->proved);
        cJSON_AddNumberToObject(json, "states", (double)f->states);
    }
    if (f->least_cost) {
        cJSON_AddNumberToObject(json, "least_cost", (double)f->least_cost);
        cJSON_AddBoolToObject(json, "cost_proved", f->cost_proved);
    }
    if (f->parts) {
        cJSON_AddNumberToObject(json, "parts", f->parts);
        cJSON_AddNumberToObject(json, "orders", (double)f->orders);
        cJSON_AddNumberToObject(json, "seed_peak_bytes", (double)f->seed_peak);
        cJSON_AddNumberToObject(json, "seed_steps", f->seed_steps);
    }
    cJSON_AddNumberToObject(json, "ms", row->ms);
    return json;
}

static void print_rows_json(Arena *arena, const Pipeline *p, const Row *row) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "network", row[0].schedule->graph->name);
    if (p->spec)
        cJSON_AddStringToObject(json, "machine", p->spec->machine);
    cJSON *list = cJSON_AddArrayToObject(json, "orders");
    for (uint32_t i = 0; i < n_strategies; i++)
        cJSON_AddItemToArray(list, row_json(&row[i]));
    print_json(arena, json);
}

ExitCode show_orders(Arena *arena, Diag *diag, const Options *options) {
    Pipeline p;
    ExitCode code = pipeline_run(arena, diag, options, STAGE_PASSES, &p);
    if (code != EXIT_FINE)
        return code;
    Row *row = ARENA_ARRAY(arena, Row, n_strategies);
    if (!run_all(arena, diag, options, &p, row))
        return EXIT_BAD_USAGE;
    if (options->json)
        print_rows_json(arena, &p, row);
    else
        print_rows(arena, &p, row);
    return EXIT_FINE;
}
