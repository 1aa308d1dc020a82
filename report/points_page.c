/* points_page.c - the page of a sweep; see points.h.
 *
 * Input: points, sorted by number. Output: HTML with two pictures in SVG, the
 * points as a table, and a script that shows a point's name and its row under
 * the pointer. Without the script the names are still there as titles.
 */
#include "base/file.h"
#include "base/vec.h"
#include "report/chart.h"
#include "report/html.h"
#include "report/points.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_ROWS = 5000 };

static const char *const colour[] = {"#4e79a7", "#f28e2b", "#59a14f",
                                     "#b07aa1", "#e15759", "#76b7b2",
                                     "#9c755f", "#edc948"};
enum { N_COLOURS = sizeof colour / sizeof *colour };

typedef struct Page {
    Arena *arena;
    Text *to;
    uint32_t n;
    const Point *point;
    uint32_t *series; /* by point: number of its network and machine */
    uint32_t n_series;
    bool *front[AXIS_COUNT];
    bool *enough;
    bool by_time;    /* costs are nanoseconds, not cycles */
    bool full_paths; /* stems of networks or machines are not enough */
} Page;

/* ---- series ---- */

static bool same_series(const Point *a, const Point *b) {
    return !strcmp(a->network, b->network) && !strcmp(a->target, b->target);
}

static void find_series(Page *p) {
    p->series = ARENA_ARRAY(p->arena, uint32_t, p->n);
    for (uint32_t i = 0; i < p->n; i++) {
        uint32_t k = i;
        while (k-- > 0 && !same_series(&p->point[i], &p->point[k]))
            ;
        bool known = k != UINT32_MAX;
        p->series[i] = known ? p->series[k] : p->n_series++;
    }
}

/* Two paths that end in the same name can only be told apart whole. */
static bool ambiguous(Page *p, const char *a, const char *b) {
    return strcmp(a, b) != 0 &&
           !strcmp(file_stem(p->arena, a), file_stem(p->arena, b));
}

static void find_names(Page *p) {
    VEC(const Point *) first = {0};
    for (uint32_t i = 0; i < p->n; i++)
        if (p->series[i] == first.n)
            vec_push(p->arena, &first, &p->point[i]);
    for (uint32_t i = 0; i < first.n; i++)
        for (uint32_t k = 0; k < i; k++)
            p->full_paths |=
                ambiguous(p, first.at[i]->network, first.at[k]->network) ||
                ambiguous(p, first.at[i]->target, first.at[k]->target);
}

static const char *shown(const Page *p, const char *path) {
    return p->full_paths ? path : file_stem(p->arena, path);
}

static void legend(Page *p) {
    text_add(p->to, "<p>");
    for (uint32_t s = 0, i = 0; i < p->n && s < p->n_series; i++) {
        if (p->series[i] != s)
            continue;
        text_addf(p->to, "<span class=\"key\" style=\"background:%s\"></span>",
                  colour[s % N_COLOURS]);
        html_text(p->to, shown(p, p->point[i].network));
        text_add(p->to, " on ");
        html_text(p->to, shown(p, p->point[i].target));
        s++;
    }
    text_add(p->to, "; filled: on the front; ringed: from here on more active "
                    "memory stops paying</p>\n");
}

/* ---- one picture ---- */

static const char *const axis_title[AXIS_COUNT] = {
    "active memory in use (bytes)", "moved to and from DDR (bytes)"};

static void dot(Page *p, uint32_t i, PointAxis axis, const Chart *chart) {
    const Point *point = &p->point[i];
    bool front = p->front[axis][i];
    const char *own = colour[p->series[i] % N_COLOURS];
    double cx = chart_x(chart, point_axis(point, axis)),
           cy = chart_y(chart, point_cost(point, p->by_time));
    if (p->enough[i])
        text_addf(p->to,
                  "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"8\" fill=\"none\" "
                  "stroke=\"#b35900\" stroke-width=\"1.5\"/>",
                  cx, cy);
    text_addf(p->to,
              "<circle class=\"p\" data-p=\"%u\" cx=\"%.1f\" cy=\"%.1f\" "
              "r=\"%s\" fill=\"%s\" stroke=\"%s\"><title>",
              point->index, cx, cy, front ? "4.5" : "3", front ? own : "#fff",
              own);
    html_text(p->to, point->name);
    text_add(p->to, "\n");
    html_count(p->to, point->cycles);
    text_addf(p->to, " cycles, %.3f ms, ", point->ms);
    html_count(p->to, point_axis(point, axis));
    text_addf(p->to, " %s</title></circle>\n", point_axis_name[axis]);
}

static const char *cost_name(const Page *p) {
    return p->by_time ? "time of an image (ns)" : "cycles of an image";
}

static void picture(Page *p, PointAxis axis) {
    Chart chart = chart_new(p->to, axis_title[axis], cost_name(p));
    for (uint32_t i = 0; i < p->n; i++)
        if (p->point[i].status == POINT_FITS)
            chart_widen(&chart, point_axis(&p->point[i], axis),
                        point_cost(&p->point[i], p->by_time));
    if (!chart_open(&chart))
        return;
    for (int front = 0; front < 2; front++)
        for (uint32_t i = 0; i < p->n; i++)
            if (p->point[i].status == POINT_FITS && p->front[axis][i] == front)
                dot(p, i, axis, &chart);
    chart_close(&chart);
}

/* ---- the table ---- */

static void table_head(Page *p) {
    text_add(p->to, "<div class=\"scroll\"><table><tr><th>point</th>"
                    "<th class=\"l\"></th><th class=\"l\">network</th><th "
                    "class=\"l\">machine</th>");
    for (uint32_t i = 0; p->n && i < p->point[0].n_settings; i++) {
        text_add(p->to, "<th>");
        html_text(p->to, p->point[0].path[i]);
        text_add(p->to, "</th>");
    }
    text_add(p->to, "<th>cycles</th><th>ms</th><th>AM bytes</th><th>of</th>"
                    "<th>DDR bytes</th><th>weight bytes</th>"
                    "<th class=\"l\"></th></tr>\n");
}

static void cell(Page *p, const char *kind, const char *text) {
    text_addf(p->to, "<td%s>", kind);
    html_text(p->to, text);
    text_add(p->to, "</td>");
}

static void count_cell(Page *p, uint64_t value) {
    text_add(p->to, "<td>");
    html_count(p->to, value);
    text_add(p->to, "</td>");
}

static void marks(Page *p, uint32_t i) {
    text_add(p->to, "<td class=\"l mark\">");
    for (int axis = 0; axis < AXIS_COUNT; axis++)
        if (p->front[axis][i])
            text_addf(p->to, "front of %s. ", point_axis_name[axis]);
    text_add(p->to, p->enough[i] ? "Enough AM." : "");
    text_add(p->to, "</td>");
}

/* The point's page; of others the command that makes it, under the pointer. */
static void report_cell(Page *p, const Point *point) {
    text_add(p->to, "<td class=\"l\"");
    if (point->command) {
        text_add(p->to, " title=\"");
        html_text(p->to, point->command);
        text_add(p->to, "\"");
    }
    text_add(p->to, ">");
    if (point->report)
        text_addf(p->to, "<a href=\"%s\">report</a>", point->report);
    else if (point->command)
        text_add(p->to, "command");
    text_add(p->to, "</td>");
}

static void row(Page *p, uint32_t i) {
    const Point *point = &p->point[i];
    bool fits = point->status == POINT_FITS;
    text_addf(p->to, "<tr id=\"p%u\"%s><td>%u</td>", point->index,
              fits ? "" : " class=\"off\"", point->index);
    report_cell(p, point);
    cell(p, " class=\"l\"", shown(p, point->network));
    cell(p, " class=\"l\"", shown(p, point->target));
    for (uint32_t k = 0; k < point->n_settings; k++)
        cell(p, "", point->value[k]);
    if (!fits) {
        text_addf(p->to, "<td colspan=\"7\" class=\"w\">%s: ",
                  point_status_name[point->status]);
        html_text(p->to, point->reason);
        text_add(p->to, "</td></tr>\n");
        return;
    }
    count_cell(p, point->cycles);
    text_addf(p->to, "<td>%.3f</td>", point->ms);
    count_cell(p, point->am_peak);
    count_cell(p, point->am_capacity);
    count_cell(p, point->ddr);
    count_cell(p, point->weights);
    marks(p, i);
    text_add(p->to, "</tr>\n");
}

/* Of very many points the fronts are shown, and what lies before MAX_ROWS. */
static void table(Page *p) {
    uint32_t left_out = 0;
    table_head(p);
    for (uint32_t i = 0; i < p->n; i++)
        if (i < MAX_ROWS || p->front[AXIS_AM][i] || p->front[AXIS_DDR][i])
            row(p, i);
        else
            left_out++;
    text_add(p->to, "</table></div>\n");
    if (left_out)
        text_addf(p->to, "<p>%u more are in points.csv.</p>\n", left_out);
}

static uint32_t count_fits(const Page *p) {
    uint32_t fits = 0;
    for (uint32_t i = 0; i < p->n; i++)
        fits += p->point[i].status == POINT_FITS;
    return fits;
}

const char *points_page(Arena *arena, uint32_t n, const Point *point) {
    Text text = text_new(arena);
    Page p = {.arena = arena, .to = &text, .n = n, .point = point};
    for (PointAxis axis = AXIS_AM; axis < AXIS_COUNT; axis++)
        p.front[axis] = points_front(arena, n, point, axis);
    p.enough = points_enough(arena, n, point);
    p.by_time = points_by_time(n, point);
    find_series(&p);
    find_names(&p);
    html_open(
        &text, "amphora explore",
        arena_printf(arena, "%u points, %u of them fit", n, count_fits(&p)));
    legend(&p);
    text_add(&text, "<div style=\"display:flex;flex-wrap:wrap;gap:1em\">\n");
    picture(&p, AXIS_AM);
    picture(&p, AXIS_DDR);
    text_add(&text, "</div>\n<h2>Points</h2>\n");
    table(&p);
    html_tips(&text);
    html_close(&text);
    return text_str(&text);
}
