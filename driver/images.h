/* images.h - what several images one behind the other take (--images). */
#ifndef DRIVER_IMAGES_H
#define DRIVER_IMAGES_H

#include "base/json.h"
#include "driver/pipeline.h"
#include "sim/sim.h"

typedef struct ImageTimes {
    uint32_t n;      /* on each core */
    uint64_t mean;   /* cycles of all, by image of all cores, rounded up */
    uint64_t steady; /* from the end of one image's last layer to that of the
                      * next one's: of the last two, and of all cores */
} ImageTimes;
ImageTimes image_times(const Pipeline *p, const SimResult *sim);

/* Whether the layer is one of the first image. */
bool image_is_first(const Pipeline *p, const char *layer);

/* Nothing for one image. */
void print_images(Arena *arena, const Pipeline *p, const SimResult *sim);
void add_images_json(cJSON *json, const Pipeline *p, const SimResult *sim);

#endif
