/* images.c - what several images one behind the other take; see images.h. */
#include "driver/images.h"

#include "base/text.h"

#include <inttypes.h>

bool image_is_first(const Pipeline *p, const char *layer) {
    return !p->one || map_get(p->one->graph->node_names, layer, 0);
}

/* The image of an instruction that an engine runs; NONE. */
static uint32_t image_of(const Pipeline *p, const SimEvent *e) {
    const Action *a = &p->plan->action[p->action_of[e->insn]];
    return a->kind == ACTION_RUN ? a->node.i / p->one->graph->node.n : NONE;
}

/* Cycle at which the last layer of an engine ends, by image. */
static uint64_t end_of(const Pipeline *p, const SimResult *sim,
                       uint32_t image) {
    uint64_t end = 0;
    for (uint32_t i = 0; i < sim->n_events; i++) {
        const SimEvent *e = &sim->event[i];
        if (image_of(p, e) == image && e->start + e->cycles > end)
            end = e->start + e->cycles;
    }
    return end;
}

ImageTimes image_times(const Pipeline *p, const SimResult *sim) {
    uint32_t n = pipeline_images(p);
    if (n < 2)
        return (ImageTimes){1, sim->cycles, sim->interval};
    uint64_t cores = hwspec_cores(p->spec), all = n * cores;
    uint64_t steady = end_of(p, sim, n - 1) - end_of(p, sim, n - 2);
    return (ImageTimes){n, (sim->cycles + all - 1) / all,
                        (steady + cores - 1) / cores};
}

void print_images(Arena *arena, const Pipeline *p, const SimResult *sim) {
    ImageTimes t = image_times(p, sim);
    if (t.n > 1)
        say("images  %" PRIu32 ", one behind the other%s: %s cycles an image, "
            "%s from the %s to the last\n",
            t.n, hwspec_cores(p->spec) > 1 ? " on each core" : "",
            with_commas(arena, t.mean), with_commas(arena, t.steady),
            t.n > 2 ? "last but one" : "first");
}

void add_images_json(cJSON *json, const Pipeline *p, const SimResult *sim) {
    ImageTimes t = image_times(p, sim);
    if (t.n < 2)
        return;
    cJSON_AddNumberToObject(json, "images", t.n);
    cJSON_ReplaceItemInObject(json, "cycles_an_image",
                              cJSON_CreateNumber((double)t.mean));
    cJSON_AddNumberToObject(json, "steady_cycles", (double)t.steady);
}
