/* front.c - the plans that were found; see front.h.
 *
 * Input: costs of plans, none of which another one beats in every measure, and
 * which was chosen. Output: pictures of cycles against memory and against bytes
 * (of bytes against memory where nobody counts cycles), and a table that says
 * what each costs more or less than the chosen one.
 */
#include "report/front.h"

#include "report/chart.h"
#include "report/html.h"

#include <stdlib.h>
#include <string.h>

typedef enum Measure { MEMORY, CYCLES, BYTES, INSTRUCTIONS, MEASURES } Measure;

static const char *const title[MEASURES] = {
    "active memory that the plan takes (bytes)", "cycles of an image",
    "moved to and from outside, weights included (bytes)", "instructions"};

typedef struct Front {
    Arena *arena;
    Text *to;
    uint32_t n;
    const PlanCost *cost, *chosen;
    double clock; /* Hz */
    uint64_t capacity;
} Front;

static uint64_t measure(const PlanCost *cost, Measure m) {
    const uint64_t of[MEASURES] = {cost->memory, cost->cycles, cost->bytes,
                                   cost->instructions};
    return of[m];
}

static bool is_chosen(const Front *f, uint32_t i) {
    return !memcmp(&f->cost[i], f->chosen, sizeof *f->chosen);
}

/* ---- numbers ---- */

/* "+4.2 %" of the chosen plan's; nothing for itself. */
static void change(const Front *f, uint32_t i, Measure m) {
    double of = (double)measure(f->chosen, m);
    double more = of > 0 ? ((double)measure(&f->cost[i], m) / of - 1) * 100 : 0;
    if (!is_chosen(f, i) && of > 0)
        text_addf(f->to, " (%+.1f %%)", more);
}

static void tip_line(const Front *f, uint32_t i, Measure m, const char *unit) {
    text_add(f->to, "\n");
    html_count(f->to, measure(&f->cost[i], m));
    text_addf(f->to, " %s", unit);
    change(f, i, m);
}

static void tip(const Front *f, uint32_t i) {
    text_addf(f->to, "<title>plan %u%s", i + 1,
              is_chosen(f, i) ? ", the chosen one" : "");
    if (f->cost[i].cycles) {
        tip_line(f, i, CYCLES, "cycles");
        text_addf(f->to, ", %.3f ms",
                  (double)f->cost[i].cycles / f->clock * 1e3);
    }
    tip_line(f, i, MEMORY, "bytes of active memory");
    tip_line(f, i, BYTES, "bytes moved");
    tip_line(f, i, INSTRUCTIONS, "instructions");
    text_add(f->to, "</title>");
}

/* ---- pictures ---- */

/* No other has as little of x and less of y, or as little of y and less of x.
 */
static bool is_lowest(const Front *f, uint32_t i, Measure x, Measure y) {
    uint64_t own_x = measure(&f->cost[i], x), own_y = measure(&f->cost[i], y);
    for (uint32_t k = 0; k < f->n; k++) {
        uint64_t at_x = measure(&f->cost[k], x), at_y = measure(&f->cost[k], y);
        if (at_x <= own_x && at_y <= own_y && (at_x < own_x || at_y < own_y))
            return false;
    }
    return true;
}

typedef struct Spot {
    uint64_t x, y;
} Spot;

static int by_x(const void *a, const void *b) {
    const Spot *p = a, *q = b;
    return (p->x > q->x) - (p->x < q->x);
}

/* From one of the lowest to the next, by steps: with so much of x no less of y
 * was found. */
static void stairs(const Front *f, const Chart *chart, Measure x, Measure y) {
    Spot *spot = ARENA_ARRAY(f->arena, Spot, f->n);
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->n; i++)
        if (is_lowest(f, i, x, y))
            spot[n++] =
                (Spot){measure(&f->cost[i], x), measure(&f->cost[i], y)};
    qsort(spot, n, sizeof *spot, by_x);
    text_add(f->to, "<path fill=\"none\" stroke=\"#4e79a7\" "
                    "stroke-opacity=\".5\" d=\"");
    for (uint32_t i = 0; i < n; i++)
        text_addf(f->to, i ? "H%.1fV%.1f" : "M%.1f %.1f",
                  chart_x(chart, spot[i].x), chart_y(chart, spot[i].y));
    text_addf(f->to, "H%.1f\"/>\n", chart_x(chart, chart->x.high));
}

/* On the side where there is room for it. */
static void number(const Front *f, const Chart *chart, uint32_t i, double cx,
                   double cy) {
    bool left = cx - chart->x.at > chart->x.pixels * .8;
    text_addf(f->to,
              "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%u%s</text>\n",
              left ? cx - 10 : cx + 10, cy - 6, left ? "end" : "start", i + 1,
              is_chosen(f, i) ? " chosen" : "");
}

static void dot(const Front *f, const Chart *chart, uint32_t i, Measure x,
                Measure y) {
    double cx = chart_x(chart, measure(&f->cost[i], x));
    double cy = chart_y(chart, measure(&f->cost[i], y));
    bool lowest = is_lowest(f, i, x, y);
    if (is_chosen(f, i))
        text_addf(f->to,
                  "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"8\" fill=\"none\" "
                  "stroke=\"#b35900\" stroke-width=\"2\"/>",
                  cx, cy);
    text_addf(f->to,
              "<circle class=\"p\" data-p=\"%u\" cx=\"%.1f\" cy=\"%.1f\" "
              "r=\"%s\" fill=\"%s\" stroke=\"#4e79a7\">",
              i + 1, cx, cy, lowest ? "4.5" : "3", lowest ? "#4e79a7" : "#fff");
    tip(f, i);
    text_add(f->to, "</circle>\n");
    if (lowest || is_chosen(f, i))
        number(f, chart, i, cx, cy);
}

static void picture(const Front *f, Measure x, Measure y) {
    Chart chart = chart_new(f->to, title[x], title[y]);
    for (uint32_t i = 0; i < f->n; i++)
        chart_widen(&chart, measure(&f->cost[i], x), measure(&f->cost[i], y));
    chart_open(&chart);
    if (x == MEMORY)
        chart_mark(&chart, f->capacity, "all of it");
    stairs(f, &chart, x, y);
    for (uint32_t i = 0; i < f->n; i++)
        dot(f, &chart, i, x, y);
    chart_close(&chart);
}

/* ---- the table ---- */

/* By which objectives it is the least of all. */
static void least_by(const Front *f, uint32_t i) {
    const char *between = "";
    for (uint32_t o = 0; o < PLAN_OBJECTIVES; o++) {
        bool least = true;
        for (uint32_t k = 0; k < f->n; k++)
            least &=
                !plan_cost_less((PlanObjective)o, &f->cost[k], &f->cost[i]);
        if (least)
            text_addf(f->to, "%s%s", between, plan_objective_name[o]);
        between = least ? ", " : between;
    }
}

static void cell(const Front *f, uint32_t i, Measure m) {
    text_add(f->to, "<td>");
    html_count(f->to, measure(&f->cost[i], m));
    change(f, i, m);
    text_add(f->to, "</td>");
}

static void row(const Front *f, uint32_t i) {
    text_addf(f->to, "<tr id=\"p%u\"><td>%u</td>", i + 1, i + 1);
    for (int m = 0; m < MEASURES; m++)
        cell(f, i, (Measure)m);
    text_addf(f->to, "<td>%.3f</td><td class=\"l\">",
              (double)f->cost[i].cycles / f->clock * 1e3);
    least_by(f, i);
    text_addf(f->to, "</td><td class=\"l mark\">%s</td></tr>\n",
              is_chosen(f, i) ? "chosen" : "");
}

static void table(const Front *f) {
    text_add(f->to, "<div class=\"scroll\"><table><tr><th>plan</th>"
                    "<th>active memory</th><th>cycles</th><th>bytes moved</th>"
                    "<th>instructions</th><th>ms</th><th class=\"l\">least by "
                    "--objective</th><th class=\"l\"></th></tr>\n");
    for (uint32_t i = 0; i < f->n; i++)
        row(f, i);
    text_add(f->to, "</table></div>\n");
}

void front_draw(Arena *arena, Text *to, const ReportInput *input) {
    const HwSpec *spec = input->listing->spec;
    Front f = {arena,       to, input->n_front, input->front, input->chosen,
               spec->clock, 0};
    if (f.n < 2 || !f.chosen)
        return;
    bool timed = f.chosen->cycles > 0;
    for (uint32_t m = 0; m < spec->n_active; m++)
        f.capacity += spec->memory[m].size;
    text_addf(to,
              "<h2>Plans found: %u that none beats</h2>\n"
              "<div style=\"display:flex;flex-wrap:wrap;gap:1em\">\n",
              f.n);
    picture(&f, MEMORY, timed ? CYCLES : BYTES);
    if (timed)
        picture(&f, BYTES, CYCLES);
    text_add(to,
             "</div>\n<p>filled: none has less of both; hollow: beaten here, "
             "but not in the other measures; ringed: chosen. In brackets: more "
             "or less than the chosen one. A memory as large as a plan takes "
             "holds it; --objective chooses between those of one size, "
             "--effort finds more.</p>\n");
    table(&f);
    html_tips(to);
}
