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

static const char *enumerated(Arena *arena, const OrderFacts *f) {
    const char *orders =
        f->orders == UINT64_MAX ? "over 10^19" : with_commas(arena, f->orders);
    return arena_printf(arena,
                        "%s orders of %u part%s; the seed's count: %s in %u "
                        "steps",
                        orders, f->parts, f->parts == 1 ? "" : "s",
                        with_commas(arena, f->seed_peak), f->seed_steps);
}

static const char *proof(Arena *arena, const OrderFacts *f) {
    if (f->parts)
        return enumerated(arena, f);
    if (!f->bound)
        return "";
    double over = 100.0 * (double)(f->peak - f->bound) / (double)f->bound;
    if (!f->proved)
        return arena_printf(arena, "within %.1f %% of the bound", over);
    if (!f->states)
        return "optimal: some layer alone needs as much";
    return arena_printf(arena, "optimal: less is refuted, %s sets of layers",
                        with_commas(arena, f->states));
}

static void print_rows(Arena *arena, const Pipeline *p, const Row *row) {
    const Schedule *first = row[0].schedule;
    say("%s%s%s: %u layers in order\n", first->graph->name,
        p->spec ? " on " : "", p->spec ? p->spec->machine : "", first->n_steps);
    say("%-10s %14s %6s %14s %8s  %s\n", "order", "peak bytes", "steps",
        "least bytes", "ms", "proof");
    for (uint32_t i = 0; i < n_strategies; i++) {
        const OrderFacts *f = &row[i].schedule->facts;
        say("%-10s %14s %6u %14s %8.1f  %s\n", strategies[i].name,
            with_commas(arena, f->peak), row[i].schedule->n_steps,
            f->bound ? with_commas(arena, f->bound) : "-", row[i].ms,
            proof(arena, f));
    }
}

cJSON *order_json(const Schedule *schedule) {
    const OrderFacts *f = &schedule->facts;
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "order", schedule->strategy);
    cJSON_AddNumberToObject(json, "peak_bytes", (double)f->peak);
    cJSON_AddNumberToObject(json, "steps", schedule->n_steps);
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
    return json;
}

static cJSON *row_json(const Row *row) {
    cJSON *json = order_json(row->schedule);
    cJSON_AddNumberToObject(json, "ms", row->ms);
    return json;
}

static void print_rows_json(Arena *arena, const Options *options,
                            const Pipeline *p, const Row *row) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "network", row[0].schedule->graph->name);
    if (p->spec)
        cJSON_AddStringToObject(json, "machine", p->spec->machine);
    cJSON *list = cJSON_AddArrayToObject(json, "orders");
    for (uint32_t i = 0; i < n_strategies; i++)
        cJSON_AddItemToArray(list, row_json(&row[i]));
    print_json(arena, options, json);
}

/* ---- the picture ---- */

enum {
    WIDTH = 960,
    HEIGHT = 360,
    LEFT = 90,
    RIGHT = 20,
    TOP = 50,
    BOTTOM = 50
};

typedef struct Chart {
    Text *text;
    double x_step, y_byte; /* pixels */
} Chart;

static uint64_t highest(const Schedule *s) {
    uint64_t peak = 0;
    for (uint32_t i = 0; i < s->n_steps; i++)
        peak = s->live[i] > peak ? s->live[i] : peak;
    return peak;
}

static double y_of(const Chart *c, uint64_t bytes) {
    return HEIGHT - BOTTOM - (double)bytes * c->y_byte;
}

/* One horizontal stroke a step. */
static void draw_steps(const Chart *c, const Schedule *s, const char *style) {
    text_addf(c->text, "<path %s d=\"M%d %d", style, LEFT, HEIGHT - BOTTOM);
    for (uint32_t i = 0; i < s->n_steps; i++)
        text_addf(c->text, "V%.1fH%.1f", y_of(c, s->live[i]),
                  LEFT + (i + 1) * c->x_step);
    text_addf(c->text, "V%d\"/>\n", HEIGHT - BOTTOM);
}

static void draw_level(Arena *arena, const Chart *c, uint64_t bytes,
                       const char *color, double y_text) {
    double y = y_of(c, bytes);
    text_addf(c->text,
              "<path stroke=\"%s\" stroke-dasharray=\"4 3\" "
              "d=\"M%d %.1fH%d\"/>\n"
              "<text x=\"%d\" y=\"%.1f\" fill=\"%s\" "
              "text-anchor=\"end\">%s</text>\n",
              color, LEFT, y, WIDTH - RIGHT, LEFT - 6, y_text, color,
              with_commas(arena, bytes));
}

static const char *escaped(Arena *arena, const char *name) {
    Text text = text_new(arena);
    for (name = plain_text(arena, name); *name; name++)
        if (*name == '<' || *name == '&')
            text_add(&text, *name == '<' ? "&lt;" : "&amp;");
        else
            text_add_n(&text, name, 1);
    return text_str(&text);
}

static void draw_legend(Arena *arena, const Chart *c, const Schedule *file,
                        const Schedule *best) {
    text_addf(c->text,
              "<text x=\"%d\" y=\"20\" font-weight=\"bold\">%s: bytes alive "
              "by step</text>\n",
              LEFT, escaped(arena, file->graph->name));
    text_addf(c->text,
              "<text x=\"%d\" y=\"38\" fill=\"#888\">the file's order: %s"
              "</text>\n"
              "<text x=\"%d\" y=\"38\" fill=\"#06c\">the best: %s%s</text>\n",
              LEFT, with_commas(arena, file->facts.peak), LEFT + 260,
              with_commas(arena, best->facts.peak),
              best->facts.proved ? ", proved" : "");
    text_addf(c->text,
              "<text x=\"%d\" y=\"%d\">step 1</text>\n"
              "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%u</text>\n",
              LEFT, HEIGHT - BOTTOM + 18, WIDTH - RIGHT, HEIGHT - BOTTOM + 18,
              file->n_steps);
}

/* The peaks' labels must not lie on each other. */
static void draw_levels(Arena *arena, const Chart *c, const Schedule *file,
                        const Schedule *best) {
    uint64_t high = highest(file), low = highest(best);
    double y = y_of(c, low) + 4;
    draw_level(arena, c, high, "#888", y_of(c, high) + 4);
    if (low == high)
        return;
    if (y < y_of(c, high) + 18)
        y = y_of(c, high) + 18;
    draw_level(arena, c, low, "#06c", y);
}

static const char *svg_of(Arena *arena, const Schedule *file,
                          const Schedule *best) {
    Text text = text_new(arena);
    uint64_t most =
        highest(file) > highest(best) ? highest(file) : highest(best);
    uint32_t steps =
        file->n_steps > best->n_steps ? file->n_steps : best->n_steps;
    Chart c = {&text, (double)(WIDTH - LEFT - RIGHT) / (steps ? steps : 1),
               (double)(HEIGHT - TOP - BOTTOM) / (double)(most ? most : 1)};
    text_addf(&text,
              "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
              "height=\"%d\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
              "font-size=\"12\" fill=\"none\">\n"
              "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
              "<g fill=\"black\" stroke=\"none\">\n",
              WIDTH, HEIGHT, WIDTH, HEIGHT);
    draw_legend(arena, &c, file, best);
    text_add(&text, "</g>\n");
    draw_steps(&c, file, "fill=\"#ddd\" stroke=\"#888\"");
    draw_steps(&c, best, "stroke=\"#06c\" stroke-width=\"1.5\"");
    draw_levels(arena, &c, file, best);
    text_add(&text, "</svg>\n");
    return text_str(&text);
}

static const Schedule *row_named(const Row *row, const char *name) {
    for (uint32_t i = 0; i < n_strategies; i++)
        if (!strcmp(row[i].schedule->strategy, name))
            return row[i].schedule;
    bug("no strategy is called %s", name);
}

static bool write_svg(Arena *arena, Diag *diag, const char *path,
                      const Row *row) {
    const char *svg =
        svg_of(arena, row_named(row, "file"), row_named(row, "best"));
    return file_write(arena, diag, path, svg, strlen(svg));
}

ExitCode show_orders(Arena *arena, Diag *diag, const Options *options,
                     const char *svg) {
    Pipeline p;
    ExitCode code = pipeline_run(arena, diag, options, STAGE_PASSES, &p);
    if (code != EXIT_FINE)
        return code;
    Row *row = ARENA_ARRAY(arena, Row, n_strategies);
    if (!run_all(arena, diag, options, &p, row))
        return EXIT_BAD_USAGE;
    if (svg && !write_svg(arena, diag, svg, row))
        return EXIT_BAD_INPUT;
    if (options->json)
        print_rows_json(arena, options, &p, row);
    else
        print_rows(arena, &p, row);
    return EXIT_FINE;
}
