/* blobs.h - constants of layers by name and role.
 *
 * Input: the image, or where it has none (or there is none) a seed. Output:
 * values in the order of the shape. Invariants: what is seeded depends on seed,
 * layer, role and shape only.
 */
#ifndef SIM_BLOBS_H
#define SIM_BLOBS_H

#include "sim/run.h"

/* How seeded values are spread: mean + spread * [-1, 1). */
typedef struct BlobWish {
    const char *role;
    Shape shape;
    double mean, spread;
} BlobWish;

/* The values of a layer's constant, shaped as wished. Without an image they are
 * seeded; with one that lacks it: NULL, no violation. A constant of another
 * size is a violation, and NULL. Valid until another layer is asked for. */
const float *blob_values(Run *run, const char *layer, const BlobWish *wish);

/* The same of a quantised layer: codes of at most `size` bytes less their zero,
 * valid until the instruction ends. */
const int32_t *blob_codes(Run *run, const char *layer, const char *role,
                          uint64_t n, uint32_t size);

/* How the layer computes codes; NULL: its cells are real numbers. */
const QuantLayer *blob_quant(const Run *run, const char *layer);

/* The image's constant, or NULL. */
const Blob *blob_find(const Run *run, const char *layer, const char *role);

/* What the image says of a layer's activation, or NULL. */
const LayerAct *blob_act(const Run *run, const char *layer);

/* Spread of weights that keeps the variance of `fan_in` summed products. */
double blob_spread(uint64_t fan_in);

#endif
