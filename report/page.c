/* page.c - one compiled network on one page; see page.h.
 *
 * Input: a listing and its simulation. Output: HTML. Every number was counted
 * by the simulation; pictures are drawn over the same cycles.
 */
#include "report/page.h"

#include "report/am_map.h"
#include "report/front.h"
#include "report/html.h"
#include "report/moves.h"
#include "report/tables.h"

#include <inttypes.h>
#include <string.h>

enum {
    WIDTH = 1040,
    LEFT = 80,
    RIGHT = 30,
    MAP_HEIGHT = 320,
    LANE = 26,
    CURVE_HEIGHT = 120,
    MANY = 5000, /* events, for a picture of all */
    AXIS = 32,
    LETTER = 7 /* pixels of a letter, about */
};

/* What an instruction is bound by; beside sim_cost_name. */
static const char *const bound_colour[SIM_COST_COUNT] = {"#4e79a7", "#59a14f",
                                                         "#b07aa1", "#f28e2b"};
static const char *const volume_colour[] = {"#a9c4e4", "#bcdcb4", "#f4cf9f",
                                            "#d8bfd6", "#f2b5b0", "#b5dcd8"};
static const char *const read_colour = "#f2b880";
static const char *const written_colour = "#b35900";
enum { N_COLOURS = sizeof volume_colour / sizeof *volume_colour };

typedef struct Frame {
    Text *to;
    const Listing *listing;
    uint64_t cycles; /* over the width */
    double hair;     /* pixels by which a tile must end behind the last one of
                      * its layer that was drawn */
} Frame;

static double across(const Frame *f, uint64_t cycle) {
    return LEFT + (double)cycle / (double)(f->cycles ? f->cycles : 1) *
                      (WIDTH - LEFT - RIGHT);
}

static void time_axis(const Frame *f, int height) {
    uint64_t step = html_step(f->cycles, 10);
    for (uint64_t v = 0; v <= f->cycles; v += step) {
        double x = across(f, v);
        text_addf(f->to,
                  "<path class=\"grid\" d=\"M%.1f 0V%d\"/><text x=\"%.1f\" "
                  "y=\"%d\" text-anchor=\"middle\">",
                  x, height, x, height + 14);
        html_short(f->to, v);
        text_add(f->to, "</text>");
    }
    text_addf(f->to,
              "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">cycles</text>\n",
              WIDTH - RIGHT, height + 28);
}

/* A name where there is room for it. */
static void label(const Frame *f, const char *name, double x, double y,
                  double width) {
    size_t room = width > 2 * LETTER ? (size_t)(width / LETTER) : 0;
    if (room < strlen(name))
        return;
    text_addf(f->to, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">",
              x + width / 2, y);
    html_text(f->to, name);
    text_add(f->to, "</text>");
}

/* ---- active memory ---- */

static void volume_title(const Frame *f, const AmVolume *v) {
    text_add(f->to, "<title>");
    html_text(f->to, event_name(f->listing, v->by));
    text_addf(f->to, "%s\n", v->is_tiles ? ": input tiles" : "");
    html_count(f->to, v->span.end - v->span.at);
    text_addf(f->to, " bytes from 0x%" PRIx64 "; cycles ", v->span.at);
    html_count(f->to, v->from);
    text_add(f->to, " to ");
    html_count(f->to, v->to);
    text_add(f->to, "</title>");
}

static void draw_volume(const Frame *f, const AmVolume *v, uint64_t size,
                        double *drawn) {
    double scale = (double)MAP_HEIGHT / (double)size;
    double x = across(f, v->from), width = across(f, v->to) - x;
    if (x + width < *drawn + f->hair)
        return;
    *drawn = x + width;
    double height = (double)(v->span.end - v->span.at) * scale;
    double y = MAP_HEIGHT - (double)v->span.end * scale;
    text_addf(f->to,
              "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
              "fill=\"%s\" fill-opacity=\".85\" stroke=\"%s\" "
              "stroke-width=\".6\">",
              x, y, width > .8 ? width : .8, height > .8 ? height : .8,
              v->is_tiles               ? "url(#tiles)"
              : v->by->op == HW_OP_LOAD ? "#ffe08a"
                                        : volume_colour[v->layer % N_COLOURS],
              v->by->op == HW_OP_LOAD ? "#b35900" : "#57606a");
    volume_title(f, v);
    text_add(f->to, "</rect>");
    if (height > 12)
        label(f, event_name(f->listing, v->by), x, y + height / 2 + 4, width);
    text_add(f->to, "\n");
}

/* What lies on different sides of one can be read at the same time. */
static void draw_partitions(const Frame *f, const HwMemory *m, uint64_t top) {
    for (uint32_t i = 1; i < m->partitions && !m->buffers; i++) {
        uint64_t at = hwspec_partition_bytes(m) * i;
        if (at < top)
            text_addf(f->to,
                      "<path class=\"axis\" stroke-dasharray=\"4 4\" "
                      "d=\"M%d %.1fH%d\"/>",
                      LEFT, MAP_HEIGHT - (double)at / (double)top * MAP_HEIGHT,
                      WIDTH - RIGHT);
    }
}

static void address_axis(const Frame *f, uint64_t size, int height,
                         uint32_t most) {
    uint64_t step = html_step(size, most);
    for (uint64_t v = 0; v <= size; v += step) {
        double y = height - (double)v / (double)size * height;
        text_addf(f->to,
                  "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text x=\"%d\" "
                  "y=\"%.1f\" text-anchor=\"end\">",
                  LEFT, y, WIDTH - RIGHT, LEFT - 6, y < 8 ? 9 : y + 4);
        html_short(f->to, v);
        text_add(f->to, "</text>");
    }
}

/* The memory's size, or what is used of it where that is little. */
static uint64_t picture_top(const HwMemory *m, uint32_t index, uint32_t n,
                            const AmVolume *volume) {
    uint64_t used = 1;
    for (uint32_t i = 0; i < n; i++)
        if (volume[i].span.memory == index && volume[i].span.end > used)
            used = volume[i].span.end;
    return used < m->size / 10 * 8 ? used + used / 20 : m->size;
}

static void draw_memory(Arena *arena, const Frame *f, const HwMemory *m,
                        uint32_t index, uint32_t n, const AmVolume *volume) {
    double *drawn = ARENA_ARRAY(arena, double, 2 * (size_t)n + 1);
    text_add(f->to, "<h2>Active memory ");
    html_text(f->to, m->name);
    text_add(f->to, ": ");
    html_count(f->to, m->size);
    text_addf(f->to,
              " bytes over time</h2>\n<svg viewBox=\"0 0 %d %d\" width=\"%d\" "
              "role=\"img\" aria-label=\"volumes in %s over time\">\n<defs>"
              "<pattern id=\"tiles\" width=\"6\" height=\"6\" patternUnits="
              "\"userSpaceOnUse\"><rect width=\"6\" height=\"6\" "
              "fill=\"#eaeef2\"/><path d=\"M0 6L6 0\" stroke=\"#8c959f\"/>"
              "</pattern></defs>\n",
              WIDTH, MAP_HEIGHT + AXIS, WIDTH, m->name);
    uint64_t top = picture_top(m, index, n, volume);
    address_axis(f, top, MAP_HEIGHT, 6);
    time_axis(f, MAP_HEIGHT);
    draw_partitions(f, m, top);
    for (uint32_t i = 0; i < n; i++)
        if (volume[i].span.memory == index)
            draw_volume(f, &volume[i], top,
                        &drawn[2 * volume[i].layer + volume[i].is_tiles]);
    text_addf(f->to,
              "<path class=\"axis\" d=\"M%d 0V%dH%d\"/></svg>\n<p>yellow: "
              "loaded; hatched: tiles on their way into an engine; dashed: "
              "partitions, between which two operands are read at once; a "
              "name is under the pointer</p>\n",
              LEFT, MAP_HEIGHT, WIDTH - RIGHT);
}

/* ---- engines ---- */

static void draw_event(const Frame *f, const SimEvent *e, int lane,
                       double *drawn) {
    double x = across(f, e->start), width = across(f, e->start + e->cycles) - x;
    if (x + width < *drawn + f->hair)
        return;
    *drawn = x + width;
    SimCost bound = event_bound(e);
    text_addf(f->to,
              "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" "
              "fill=\"%s\" stroke=\"#fff\" stroke-width=\".4\"><title>",
              x, lane * LANE + 3, width > .5 ? width : .5, LANE - 6,
              bound_colour[bound]);
    html_text(f->to, event_name(f->listing, e));
    text_addf(f->to, " (%s)\n", hw_op_name[e->op]);
    html_count(f->to, e->cycles);
    text_addf(f->to, " cycles, bound by %s</title></rect>\n",
              sim_cost_name[bound]);
}

static void draw_lane(const Frame *f, const SimResult *sim, uint32_t use,
                      int lane) {
    text_addf(f->to, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", LEFT - 8,
              lane * LANE + LANE / 2 + 4);
    html_text(f->to, sim->engine[use].name);
    text_add(f->to, "</text>\n");
    double drawn = 0;
    for (uint32_t i = 0; i < sim->n_events; i++)
        if (sim->event[i].use == use)
            draw_event(f, &sim->event[i], lane, &drawn);
}

/* A mark where the machine's clock stands. */
static void draw_calls(const Frame *f, const SimResult *sim, int lane) {
    for (uint32_t i = 0; i < sim->n_calls; i++) {
        const SimHostCall *c = &sim->call[i];
        text_addf(f->to,
                  "<rect x=\"%.1f\" y=\"%d\" width=\"2\" height=\"%d\" "
                  "fill=\"#c33\"><title>",
                  across(f, c->start) - 1, lane * LANE + 3, LANE - 6);
        html_text(f->to, f->listing->image.host[c->layer].name);
        text_add(f->to, " (host)\n");
        html_count(f->to, c->cycles);
        text_add(f->to, " cycles, for which all wait</title></rect>\n");
    }
}

static void draw_engines(const Frame *f, const SimResult *sim) {
    int lanes = 0, lane = 0;
    for (uint32_t use = 0; use < sim->n_engines; use++)
        lanes += sim->engine[use].cycles > 0;
    text_addf(f->to,
              "<h2>Engines over time</h2>\n<svg viewBox=\"0 0 %d %d\" "
              "width=\"%d\" role=\"img\" aria-label=\"engines over time\">\n",
              WIDTH, lanes * LANE + AXIS, WIDTH);
    time_axis(f, lanes * LANE);
    for (uint32_t use = 0; use < sim->n_engines; use++)
        if (sim->engine[use].cycles > 0)
            draw_lane(f, sim, use, lane++);
    if (sim->n_calls)
        draw_calls(f, sim, lanes - 1);
    text_add(f->to, "</svg>\n<p>bound by");
    for (int i = 0; i < SIM_COST_COUNT; i++)
        text_addf(f->to,
                  "<span class=\"key\" style=\"background:%s\"></span>%s",
                  bound_colour[i], sim_cost_name[i]);
    text_add(f->to, "</p>\n");
}

/* ---- bytes ---- */

/* What has moved by the start and by the end of each move. */
static void draw_sum(const Frame *f, const SimResult *sim, bool with_written,
                     double scale, const char *colour) {
    uint64_t sum = 0;
    double drawn = LEFT;
    text_addf(f->to, "<path fill=\"%s\" d=\"M%d %d", colour, LEFT,
              CURVE_HEIGHT);
    for (uint32_t i = 0; i < sim->n_events; i++) {
        const SimEvent *e = &sim->event[i];
        uint64_t moved = e->read + (with_written ? e->written : 0);
        double x = across(f, e->start + e->cycles);
        if (moved && x >= drawn + f->hair) {
            text_addf(f->to, "L%.1f %.1fL%.1f %.1f", across(f, e->start),
                      CURVE_HEIGHT - (double)sum * scale, x,
                      CURVE_HEIGHT - (double)(sum + moved) * scale);
            drawn = x;
        }
        sum += moved;
    }
    text_addf(f->to, "L%.1f %.1fH%dV%dZ\"/>\n", drawn,
              CURVE_HEIGHT - (double)sum * scale, WIDTH - RIGHT, CURVE_HEIGHT);
}

static void draw_bytes(const Frame *f, const SimResult *sim) {
    uint64_t all = sim->backing_read + sim->backing_written;
    if (!all)
        return;
    double scale = (double)CURVE_HEIGHT / (double)all;
    text_addf(f->to,
              "<h2>Bytes moved so far</h2>\n<svg viewBox=\"0 0 %d %d\" "
              "width=\"%d\" role=\"img\" aria-label=\"bytes moved over "
              "time\">\n",
              WIDTH, CURVE_HEIGHT + AXIS, WIDTH);
    draw_sum(f, sim, true, scale, written_colour);
    draw_sum(f, sim, false, scale, read_colour);
    address_axis(f, all, CURVE_HEIGHT, 4);
    time_axis(f, CURVE_HEIGHT);
    text_addf(f->to,
              "<path class=\"axis\" stroke-dasharray=\"4 4\" "
              "d=\"M%d %.1fH%d\"/></svg>\n<p>"
              "<span class=\"key\" style=\"background:%s\"></span>read"
              "<span class=\"key\" style=\"background:%s\"></span>written; "
              "dashed: what must cross in any case</p>\n",
              LEFT, CURVE_HEIGHT - (double)sim->compulsory * scale,
              WIDTH - RIGHT, read_colour, written_colour);
}

/* ---- the page ---- */

const char *report_page(Arena *arena, const ReportInput *input) {
    const Listing *listing = input->listing;
    const SimResult *sim = input->sim;
    const HwSpec *spec = listing->spec;
    Text text = text_new(arena);
    Frame f = {&text, listing, sim->cycles, sim->n_events > MANY ? 1 : 0};
    html_open(&text,
              arena_printf(arena, "%s on %s", listing->network, spec->machine),
              spec->doc ? spec->doc : "");
    table_summary(&text, input);
    const AmVolume *volume;
    uint32_t n = am_map(arena, listing, sim, &volume);
    for (uint32_t m = 0; m < spec->n_active; m++)
        draw_memory(arena, &f, &spec->memory[m], m, n, volume);
    draw_engines(&f, sim);
    draw_bytes(&f, sim);
    front_draw(arena, &text, input);
    table_together(arena, &text, input);
    table_moves(arena, &text, input);
    table_what_if(&text, input);
    table_cliffs(arena, &text, input);
    const SimResult *rows = rows_of(arena, listing, sim);
    ReportInput by_rows = *input;
    by_rows.sim = rows;
    table_layers(&text, &by_rows);
    table_memory(arena, &text, &by_rows);
    table_hosts(&text, listing);
    table_volumes(arena, &text, input);
    html_close(&text);
    return text_str(&text);
}
