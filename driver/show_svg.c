/* show_svg.c - show -t --svg: what lies where in active memory, step by step.
 *
 * Input: a plan. Output: a picture; a rectangle is a volume: its steps from
 * left to right, its bytes from the bottom up. Active memories stand one above
 * the other. Invariant: the same plan gives the same bytes.
 */
#include "base/file.h"
#include "base/rng.h"
#include "driver/commands.h"

#include <inttypes.h>
#include <string.h>

enum { WIDTH = 960, HEIGHT = 360, LEFT = 84, TOP = 40, GAP = 44, LETTER = 7 };

typedef struct Picture {
    Text text;
    Arena *arena;
    const Plan *plan;
    uint32_t memory;
    double top;     /* pixels */
    uint64_t bytes; /* up to the highest that is used */
} Picture;

static double x_of(const Picture *p, uint32_t step) {
    return LEFT + (double)step * (WIDTH - LEFT - 10) /
                      (double)p->plan->schedule->n_steps;
}

static double y_of(const Picture *p, uint64_t byte) {
    return p->top + HEIGHT * (1 - (double)byte / (double)p->bytes);
}

static const char *escaped(Arena *arena, const char *name) {
    Text text = text_new(arena);
    for (; *name; name++)
        if (strchr("<>&\"'", *name))
            text_addf(&text, "&#%d;", *name);
        else
            text_add_n(&text, name, 1);
    return text_str(&text);
}

static void draw_volume(Picture *p, const Placement *volume) {
    const Graph *graph = p->plan->schedule->graph;
    const char *name = graph_tensor(graph, volume->tensor)->name;
    double x = x_of(p, volume->first),
           y = y_of(p, volume->offset + volume->bytes);
    double w = x_of(p, volume->end) - x;
    double h = y_of(p, volume->offset) - y;
    text_addf(&p->text,
              "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
              "fill=\"hsl(%u,55%%,70%%)\" stroke=\"#444\" "
              "stroke-width=\"0.5\"><title>%s: %s bytes at %s, steps %u to "
              "%u</title></rect>\n",
              x, y, w, h, (unsigned)(rng_seed(name, 7) % 360),
              escaped(p->arena, name), with_commas(p->arena, volume->bytes),
              with_commas(p->arena, volume->offset), volume->first + 1,
              volume->end);
    if (h > 11 && w > (double)strlen(name) * LETTER)
        text_addf(&p->text,
                  "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s"
                  "</text>\n",
                  x + w / 2, y + h / 2 + 4, escaped(p->arena, name));
}

static bool is_here(const Picture *p, const Placement *volume) {
    return volume->memory == p->memory && volume->bytes &&
           volume->first < volume->end;
}

/* A volume inside another (a part of a concat) is drawn on top of it. */
static void draw_memory(Picture *p) {
    const HwMemory *memory = &p->plan->schedule->spec->memory[p->memory];
    text_addf(&p->text,
              "<text x=\"%d\" y=\"%.1f\">%s of %s bytes of %s, over %u "
              "steps</text>\n<rect x=\"%d\" y=\"%.1f\" width=\"%d\" "
              "height=\"%d\" fill=\"#f4f4f4\" stroke=\"#999\"/>\n",
              LEFT, p->top - 8, with_commas(p->arena, p->bytes),
              with_commas(p->arena, memory->size), memory->name,
              p->plan->schedule->n_steps, LEFT, p->top, WIDTH - LEFT - 10,
              HEIGHT);
    for (uint32_t i = 0; i <= 4; i++)
        text_addf(&p->text,
                  "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
                  LEFT - 6, y_of(p, p->bytes / 4 * i) + 4,
                  with_commas(p->arena, p->bytes / 4 * i));
    for (uint32_t i = 0; i < p->plan->n_placements; i++)
        if (is_here(p, &p->plan->placement[i]))
            draw_volume(p, &p->plan->placement[i]);
}

static uint64_t bytes_used(const Picture *p) {
    uint64_t end = 0;
    for (uint32_t i = 0; i < p->plan->n_placements; i++) {
        const Placement *volume = &p->plan->placement[i];
        if (is_here(p, volume) && volume->offset + volume->bytes > end)
            end = volume->offset + volume->bytes;
    }
    return end;
}

const char *plan_svg(Arena *arena, const Plan *plan) {
    Picture p = {.text = text_new(arena), .arena = arena, .plan = plan};
    p.top = TOP;
    for (uint32_t i = 0; i < plan->schedule->spec->n_active; i++) {
        p.memory = i;
        p.bytes = bytes_used(&p);
        if (!p.bytes)
            continue;
        draw_memory(&p);
        p.top += HEIGHT + GAP;
    }
    return arena_printf(
        arena,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.0f\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%%\" "
        "height=\"100%%\" fill=\"#fff\"/>\n%s</svg>\n",
        WIDTH, p.top - GAP + 16, text_str(&p.text));
}

bool show_svg(Arena *arena, Diag *diag, const Plan *plan, const char *path) {
    const char *svg = plan_svg(arena, plan);
    return file_write(arena, diag, path, svg, strlen(svg));
}
