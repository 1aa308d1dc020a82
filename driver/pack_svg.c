/* pack_svg.c - see pack_svg.h.
 *
 * Each buffer is a rectangle, as long as its life and as high as its size, in a
 * hue of its own; names stand where there is room. A line marks the bound, and
 * the staircase behind the rectangles is the live sum: what white lies under it
 * is waste, what lies above it nobody needs.
 *
 * A gap in a life is a dashed outline. What lies inside another is drawn on top
 * of it and inset; bytes that are shared show through. A hint is a mark at the
 * left end of a life, full where it was kept. Pools stand one upon another,
 * partitions are dotted lines.
 */
#include "driver/pack_svg.h"

#include "base/plain.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 1200, HEIGHT = 640, LEFT = 110, TOP = 40, BOTTOM = 50 };

typedef struct Canvas {
    const CsvProblem *csv;
    const PackResult *result;
    Text text;
    int64_t first, last;           /* times */
    double bytes;                  /* at the upper edge */
    uint64_t base[PACK_MAX_POOLS]; /* of each pool: heights below it */
} Canvas;

static double x_of(const Canvas *c, int64_t time) {
    double span = (double)(c->last - c->first);
    return LEFT + WIDTH * (double)(time - c->first) / (span > 0 ? span : 1);
}

static double y_of(const Canvas *c, double bytes) {
    return TOP + HEIGHT * (1 - bytes / (c->bytes > 0 ? c->bytes : 1));
}

static void measure(Canvas *c) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < c->csv->n_rows; i++) {
        const CsvBuffer *b = &c->csv->buffer[i];
        c->first = !i || b->lower < c->first ? b->lower : c->first;
        c->last = !i || b->upper > c->last ? b->upper : c->last;
    }
    for (uint32_t p = 0; p < c->csv->problem.n_pools; p++) {
        c->base[p] = sum;
        sum += c->result->height[p];
    }
    c->bytes = (double)(sum > c->result->bound ? sum : c->result->bound);
}

/* ---- buffers ---- */

/* By row: how many others it lies inside. */
static uint32_t *list_depths(Arena *arena, const CsvProblem *csv) {
    const PackProblem *p = &csv->problem;
    uint32_t *parent = ARENA_ARRAY(arena, uint32_t, p->n_bufs);
    uint32_t *depth = ARENA_ARRAY(arena, uint32_t, p->n_bufs);
    for (uint32_t b = 0; b < p->n_bufs; b++)
        parent[b] = PACK_NO_BUFFER;
    for (uint32_t i = 0; i < p->n_relations; i++)
        if (p->relation[i].kind == REL_INSIDE)
            parent[p->relation[i].a] = p->relation[i].b;
    for (uint32_t b = 0; b < p->n_bufs; b++)
        for (uint32_t at = parent[b]; at != PACK_NO_BUFFER; at = parent[at])
            depth[b]++;
    return depth;
}

/* Text in a box, escaped. */
static void add_label(Canvas *c, const char *name, double x, double y) {
    const char *id = plain_text(c->text.arena, name);
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

typedef struct Frame {
    double x, y, width, height;
} Frame;

/* Bytes [low, low + size) of the pool in times [from, to). */
static Frame frame_of(const Canvas *c, uint32_t pool, uint64_t low,
                      uint64_t size, int64_t from, int64_t to) {
    double at = (double)(c->base[pool] + low);
    double y = y_of(c, at + (double)size);
    return (Frame){x_of(c, from), y, x_of(c, to) - x_of(c, from),
                   y_of(c, at) - y};
}

static void draw_box(Canvas *c, const Frame *f, uint32_t row, double inset) {
    enum { GOLDEN_ANGLE = 137 }; /* neighbours in the file differ most */
    double x = inset < f->width / 4 ? inset : f->width / 4;
    double y = inset < f->height / 4 ? inset : f->height / 4;
    text_addf(&c->text,
              "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" "
              "fill=\"hsl(%u,55%%,%u%%)\"/>\n",
              f->x + x, f->y + y, f->width - 2 * x, f->height - 2 * y,
              row * GOLDEN_ANGLE % 360, 66 + row % 3 * 6);
}

static void draw_gap(Canvas *c, const Frame *f) {
    if (f->width > 0)
        text_addf(&c->text,
                  "<rect class=\"gap\" x=\"%.2f\" y=\"%.2f\" "
                  "width=\"%.2f\" height=\"%.2f\"/>\n",
                  f->x, f->y, f->width, f->height);
}

static void draw_hint(Canvas *c, uint32_t row, uint32_t pool) {
    const CsvBuffer *b = &c->csv->buffer[row];
    if (b->extra->hint == PACK_NO_HINT)
        return;
    bool kept = b->extra->hint == c->result->offset[row];
    double x = x_of(c, b->lower),
           y = y_of(c, (double)(c->base[pool] + b->extra->hint));
    text_addf(&c->text, "<path class=\"%s\" d=\"M%.2f %.2fl7 -4v8z\"/>\n",
              kept ? "kept" : "lost", x, y);
}

/* Its stretches of life, the gaps between them, its name in the longest. */
static void draw_buffer(Canvas *c, uint32_t row, uint32_t depth) {
    const CsvBuffer *b = &c->csv->buffer[row];
    if (b->lower >= b->upper || c->result->pool[row] < 0)
        return;
    uint32_t pool = (uint32_t)c->result->pool[row];
    uint64_t size = csv_size(b, pool), low = c->result->offset[row];
    int64_t from = b->lower;
    Frame widest = {0};
    for (uint32_t i = 0; i <= b->extra->n_gaps && size; i++) {
        int64_t to = i < b->extra->n_gaps ? b->extra->gap[i].lower : b->upper;
        Frame f = frame_of(c, pool, low, size, from, to);
        if (f.width > 0)
            draw_box(c, &f, row, 3.0 * depth);
        widest = f.width > widest.width ? f : widest;
        if (i == b->extra->n_gaps)
            break;
        from = b->extra->gap[i].upper;
        f = frame_of(c, pool, low, size, to, from);
        draw_gap(c, &f);
    }
    draw_hint(c, row, pool);
    if (widest.height >= 11 && widest.width >= 6.5 * (double)strlen(b->id) + 4)
        add_label(c, b->id, widest.x + widest.width / 2,
                  widest.y + (depth ? widest.height - 6 - 3.0 * depth
                                    : widest.height / 2 + 3.5));
}

/* What is left of buffers in their gaps. */
static void draw_windows(Canvas *c) {
    for (uint32_t i = c->csv->n_rows; i < c->csv->problem.n_bufs; i++) {
        uint32_t row = problem_csv_row(c->csv, i), k = 0;
        const CsvBuffer *b = &c->csv->buffer[row];
        const Buffer *buf = &c->csv->problem.buf[i];
        const Buffer *whole = &c->csv->problem.buf[row];
        while (k < whole->n_gaps && whole->gap[k].first != buf->first)
            k++;
        if (k == whole->n_gaps || c->result->pool[i] < 0)
            continue;
        uint32_t pool = (uint32_t)c->result->pool[i];
        Frame f = frame_of(c, pool, c->result->offset[i], buf->bytes[pool],
                           b->extra->gap[k].lower, b->extra->gap[k].upper);
        draw_box(c, &f, row, 0);
    }
}

/* Those inside others on top of these. */
static void draw_buffers(Arena *arena, Canvas *c) {
    const uint32_t *depth = list_depths(arena, c->csv);
    uint32_t n = c->csv->n_rows, deepest = 0;
    for (uint32_t i = 0; i < n; i++)
        deepest = depth[i] > deepest ? depth[i] : deepest;
    for (uint32_t d = 0; d <= deepest; d++)
        for (uint32_t i = 0; i < n; i++)
            if (depth[i] == d)
                draw_buffer(c, i, d);
    draw_windows(c);
}

/* ---- behind and around them ---- */

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

static uint32_t list_events(const Canvas *c, Event *event) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->csv->n_rows; i++) {
        const CsvBuffer *b = &c->csv->buffer[i];
        int64_t size = (int64_t)b->size;
        event[n++] = (Event){b->lower, size};
        event[n++] = (Event){b->upper, -size};
        for (uint32_t k = 0; k < b->extra->n_gaps; k++) {
            event[n++] = (Event){b->extra->gap[k].lower, -size};
            event[n++] = (Event){b->extra->gap[k].upper, size};
        }
    }
    if (n)
        qsort(event, n, sizeof *event, by_time);
    return n;
}

/* Where nothing is shared, and sizes are the same everywhere. */
static void draw_live_sum(Arena *arena, Canvas *c) {
    size_t most = 2 * (size_t)c->csv->n_rows;
    if (c->csv->problem.n_relations || c->csv->problem.n_pools > 1)
        return;
    for (uint32_t i = 0; i < c->csv->n_rows; i++)
        most += 2 * (size_t)c->csv->buffer[i].extra->n_gaps;
    Event *event = ARENA_ARRAY(arena, Event, most);
    uint32_t n = list_events(c, event);
    double live = 0;
    text_addf(&c->text, "<path class=\"live\" d=\"M%d %.1f", LEFT, y_of(c, 0));
    for (uint32_t i = 0; i < n; i++) {
        text_addf(&c->text, "H%.2f", x_of(c, event[i].time));
        live += (double)event[i].bytes;
        if (i + 1 == n || event[i + 1].time != event[i].time)
            text_addf(&c->text, "V%.2f", y_of(c, live));
    }
    text_add(&c->text, "Z\"/>\n");
}

static void draw_line(Canvas *c, const char *class, uint64_t at) {
    text_addf(&c->text, "<path class=\"%s\" d=\"M%d %.1fH%d\"/>\n", class, LEFT,
              y_of(c, (double)at), LEFT + WIDTH);
}

/* Where pools and their partitions begin. */
static void draw_pools(Canvas *c) {
    enum { MOST = 256 };
    const PackProblem *p = &c->csv->problem;
    for (uint32_t k = 0; k < p->n_pools; k++) {
        uint64_t part = p->pool[k].partition, height = c->result->height[k];
        for (uint64_t at = part, n = 0; part && at < height && n < MOST;
             at += part, n++)
            draw_line(c, "part", c->base[k] + at);
        if (p->n_pools == 1 || !height)
            continue;
        draw_line(c, "pool", c->base[k]);
        text_addf(&c->text, "<text x=\"%d\" y=\"%.1f\">%s</text>\n",
                  LEFT + WIDTH + 4,
                  y_of(c, (double)c->base[k] + (double)height / 2),
                  c->csv->pool[k].name);
    }
}

/* Between two ticks of an axis: a whole number, else labels would lie. */
static uint64_t tick_of(double span) {
    enum { TICKS = 8 };
    return span > TICKS ? (uint64_t)(span / TICKS) : 1;
}

static void draw_axes(Canvas *c) {
    double span = (double)(c->last - c->first);
    uint64_t step = tick_of(c->bytes), bytes = 0;
    for (; (double)bytes <= c->bytes; bytes += step) {
        double y = y_of(c, (double)bytes);
        text_addf(&c->text,
                  "<path class=\"grid\" d=\"M%d %.1fH%d\"/>\n"
                  "<text x=\"%d\" y=\"%.1f\" class=\"left\">%" PRIu64
                  "</text>\n",
                  LEFT, y, LEFT + WIDTH, LEFT - 8, y + 4, bytes);
    }
    step = tick_of(span);
    for (uint64_t passed = 0; (double)passed <= span; passed += step) {
        int64_t time = c->first + (int64_t)passed;
        text_addf(&c->text,
                  "<text x=\"%.1f\" y=\"%d\" class=\"below\">%" PRId64
                  "</text>\n",
                  x_of(c, time), TOP + HEIGHT + 18, time);
    }
    text_addf(&c->text, "<text x=\"%d\" y=\"%d\" class=\"below\">time</text>\n",
              LEFT + WIDTH / 2, TOP + HEIGHT + 38);
}

static void draw_head(Canvas *c) {
    static const char style[] =
        "text{font:12px sans-serif;fill:#222}.id{font-size:9px;text-anchor:"
        "middle}.left{text-anchor:end}.below{text-anchor:middle}"
        "rect{stroke:#333;stroke-width:.4;fill-opacity:.8}"
        ".grid{stroke:#ddd}.gap{fill:none;stroke:#777;stroke-dasharray:3 3}"
        ".part{stroke:#06c;stroke-dasharray:1 4}.pool{stroke:#000}"
        ".kept{fill:#083}.lost{fill:none;stroke:#c60}"
        ".live{fill:#f1f1f1;stroke:#999;stroke-width:.6}"
        ".bound{stroke:#c00;stroke-dasharray:6 4}";
    text_addf(&c->text,
              "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d "
              "%d\">\n<style>%s</style>\n<rect width=\"100%%\" "
              "height=\"100%%\" fill=\"#fff\" stroke=\"none\"/>\n",
              LEFT + WIDTH + 70, TOP + HEIGHT + BOTTOM, style);
    uint32_t last = c->csv->problem.n_pools ? c->csv->problem.n_pools - 1 : 0;
    text_addf(&c->text,
              "<text x=\"%d\" y=\"24\">%u buffers, height %" PRIu64
              " bytes, bound %" PRIu64 " (red)%s</text>\n",
              LEFT, c->csv->n_rows, c->base[last] + c->result->height[last],
              c->result->bound, c->result->proved ? ": the least" : "");
}

const char *pack_svg(Arena *arena, const CsvProblem *csv,
                     const PackResult *result) {
    Canvas c = {.csv = csv, .result = result, .text = text_new(arena)};
    measure(&c);
    draw_head(&c);
    draw_axes(&c);
    draw_live_sum(arena, &c);
    draw_buffers(arena, &c);
    draw_pools(&c);
    draw_line(&c, "bound", result->bound);
    text_add(&c.text, "</svg>\n");
    return text_str(&c.text);
}
