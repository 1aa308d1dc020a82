/* pack_svg.c - see pack_svg.h.
 *
 * Each buffer is a rectangle, as long as its life and as high as its size, in a
 * hue of its own; names stand where there is room. A line marks the bound, and
 * the staircase behind the rectangles is the live sum: what white lies under it
 * is waste, what lies above it nobody needs.
 */
#include "driver/pack_svg.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 1200, HEIGHT = 640, LEFT = 110, TOP = 40, BOTTOM = 50 };

typedef struct Canvas {
    const CsvProblem *csv;
    const PlanResult *result;
    Text text;
    int64_t first, last; /* times */
    double bytes;        /* at the upper edge */
} Canvas;

static double x_of(const Canvas *c, int64_t time) {
    double span = (double)(c->last - c->first);
    return LEFT + WIDTH * (double)(time - c->first) / (span > 0 ? span : 1);
}

static double y_of(const Canvas *c, double bytes) {
    return TOP + HEIGHT * (1 - bytes / (c->bytes > 0 ? c->bytes : 1));
}

static void measure(Canvas *c) {
    for (uint32_t i = 0; i < c->csv->problem.n_bufs; i++) {
        const CsvBuffer *b = &c->csv->buffer[i];
        c->first = !i || b->lower < c->first ? b->lower : c->first;
        c->last = !i || b->upper > c->last ? b->upper : c->last;
    }
    c->bytes = (double)c->result->height[0];
    if (c->bytes < (double)c->result->bound)
        c->bytes = (double)c->result->bound;
}

/* Text in a box, escaped. */
static void add_label(Canvas *c, const char *id, double x, double y) {
    text_addf(&c->text, "<text x=\"%.1f\" y=\"%.1f\" class=\"id\">", x, y);
    for (; *id; id++) {
        const char *as = *id == '<'   ? "&lt;"
                         : *id == '>' ? "&gt;"
                         : *id == '&' ? "&amp;"
                                      : NULL;
        if (as)
            text_add(&c->text, as);
        else
            text_add_n(&c->text, id, 1);
    }
    text_add(&c->text, "</text>\n");
}

static void draw_buffer(Canvas *c, uint32_t i) {
    enum { GOLDEN_ANGLE = 137 }; /* neighbours in the file differ most */
    const CsvBuffer *b = &c->csv->buffer[i];
    if (b->lower >= b->upper || !b->size || c->result->pool[i] < 0)
        return;
    double low = (double)c->result->offset[i];
    double x = x_of(c, b->lower), width = x_of(c, b->upper) - x;
    double y = y_of(c, low + (double)b->size), height = y_of(c, low) - y;
    text_addf(&c->text,
              "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" "
              "fill=\"hsl(%u,55%%,%u%%)\"/>\n",
              x, y, width, height, i * GOLDEN_ANGLE % 360, 66 + i % 3 * 6);
    if (height >= 11 && width >= 6.5 * (double)strlen(b->id) + 4)
        add_label(c, b->id, x + width / 2, y + height / 2 + 3.5);
}

/* A life's beginning or end. */
typedef struct Event {
    int64_t time;
    int64_t bytes;
} Event;

static int by_time(const void *a, const void *b) {
    const Event *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

static void draw_live_sum(Arena *arena, Canvas *c) {
    uint32_t n = c->csv->problem.n_bufs;
    Event *event = ARENA_ARRAY(arena, Event, 2 * (size_t)n);
    for (uint32_t i = 0; i < n; i++) {
        const CsvBuffer *b = &c->csv->buffer[i];
        event[2 * i] = (Event){b->lower, (int64_t)b->size};
        event[2 * i + 1] = (Event){b->upper, -(int64_t)b->size};
    }
    if (n)
        qsort(event, 2 * (size_t)n, sizeof *event, by_time);
    double live = 0;
    text_addf(&c->text, "<path class=\"live\" d=\"M%d %.1f", LEFT, y_of(c, 0));
    for (uint32_t i = 0; i < 2 * n; i++) {
        text_addf(&c->text, "H%.2f", x_of(c, event[i].time));
        live += (double)event[i].bytes;
        if (i + 1 == 2 * n || event[i + 1].time != event[i].time)
            text_addf(&c->text, "V%.2f", y_of(c, live));
    }
    text_add(&c->text, "Z\"/>\n");
}

static void draw_axes(Canvas *c) {
    enum { TICKS = 8 };
    for (int i = 0; i <= TICKS; i++) {
        double bytes = c->bytes * i / TICKS, y = y_of(c, bytes);
        double time =
            (double)c->first + (double)(c->last - c->first) * i / TICKS;
        double x = LEFT + (double)WIDTH * i / TICKS;
        text_addf(&c->text,
                  "<path class=\"grid\" d=\"M%d %.1fH%d\"/>\n"
                  "<text x=\"%d\" y=\"%.1f\" class=\"left\">%.0f</text>\n"
                  "<text x=\"%.1f\" y=\"%d\" class=\"below\">%.0f</text>\n",
                  LEFT, y, LEFT + WIDTH, LEFT - 8, y + 4, bytes, x,
                  TOP + HEIGHT + 18, time);
    }
    text_addf(&c->text, "<text x=\"%d\" y=\"%d\" class=\"below\">time</text>\n",
              LEFT + WIDTH / 2, TOP + HEIGHT + 38);
}

static void draw_bound(Canvas *c) {
    double y = y_of(c, (double)c->result->bound);
    text_addf(&c->text, "<path class=\"bound\" d=\"M%d %.1fH%d\"/>\n", LEFT, y,
              LEFT + WIDTH);
}

static void draw_head(Canvas *c) {
    static const char style[] =
        "text{font:12px sans-serif;fill:#222}.id{font-size:9px;text-anchor:"
        "middle}.left{text-anchor:end}.below{text-anchor:middle}"
        "rect{stroke:#333;stroke-width:.4}.grid{stroke:#ddd}"
        ".live{fill:#f1f1f1;stroke:#999;stroke-width:.6}"
        ".bound{stroke:#c00;stroke-dasharray:6 4}";
    text_addf(&c->text,
              "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d "
              "%d\">\n<style>%s</style>\n<rect width=\"100%%\" "
              "height=\"100%%\" fill=\"#fff\" stroke=\"none\"/>\n",
              LEFT + WIDTH + 45, TOP + HEIGHT + BOTTOM, style);
    text_addf(&c->text,
              "<text x=\"%d\" y=\"24\">%u buffers, height %" PRIu64
              " bytes, bound %" PRIu64 " (red)%s</text>\n",
              LEFT, c->csv->problem.n_bufs, c->result->height[0],
              c->result->bound, c->result->proved ? ": the least" : "");
}

const char *pack_svg(Arena *arena, const CsvProblem *csv,
                     const PlanResult *result) {
    Canvas c = {.csv = csv, .result = result, .text = text_new(arena)};
    measure(&c);
    draw_head(&c);
    draw_axes(&c);
    draw_live_sum(arena, &c);
    for (uint32_t i = 0; i < csv->problem.n_bufs; i++)
        draw_buffer(&c, i);
    draw_bound(&c);
    text_add(&c.text, "</svg>\n");
    return text_str(&c.text);
}
