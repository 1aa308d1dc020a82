/* rounding.h - codes that a machine's rule of rounding makes otherwise than the
 * network's own.
 *
 * In: a pipeline whose machine rounds by another rule (machine.rounding) than
 * the runtime that the network comes from. Out: how many codes differ, layer by
 * layer from equal inputs and at the end of the network.
 */
#ifndef DRIVER_ROUNDING_H
#define DRIVER_ROUNDING_H

#include "driver/pipeline.h"

typedef struct RoundedLayer {
    const char *layer;
    uint64_t codes, differ; /* from the inputs that the network's rule gives */
    double most;            /* by how many codes */
} RoundedLayer;

typedef struct Roundings {
    uint32_t n; /* 0: one rule, or no codes */
    const RoundedLayer *layer;
    uint64_t codes, differ; /* of all layers */
    double most;
    uint64_t end_differ; /* of all tensors, each network by itself */
    double end_most;
} Roundings;

/* `values`: of the network's inputs; `reference`: of p->original. Of several
 * images nothing is said. */
Roundings roundings_of(Arena *arena, const Pipeline *p,
                       const float *const *values, Values reference);
void roundings_print(Arena *arena, const Roundings *r);
struct cJSON *roundings_json(const Roundings *r);

/* Whether no tensor has codes. */
bool is_real(const Graph *graph);
/* A network of real numbers on a machine whose elements have one byte: that
 * numbers were compared, and what would compare codes; else nothing. */
void roundings_note(const Pipeline *p, const Options *options);

#endif
