/* listing_parts.h - what listing*.c share. */
#ifndef CODEGEN_LISTING_PARTS_H
#define CODEGEN_LISTING_PARTS_H

#include "base/file.h"
#include "base/json_out.h"
#include "codegen/listing.h"

/* ---- exact values in JSON (listing_number.c) ---- */

/* Numbers that a double cannot hold, and those that are not finite, are
 * strings; all others are printed so that they read back exactly. */
cJSON *number_from_u64(uint64_t value);
cJSON *number_from_double(double value);
/* A list, made for speed: long tables are a large part of a listing's JSON. */
cJSON *numbers_from_doubles(const double *value, uint32_t n);
void put_u64(cJSON *object, const char *key, uint64_t value);
/* NULL is null. */
void put_text(cJSON *object, const char *key, const char *text);
/* False if the item is absent or something else. */
bool number_to_u64(const cJSON *item, uint64_t *out);
bool number_to_u32(const cJSON *item, uint32_t *out);
bool number_to_double(const cJSON *item, double *out);

/* ---- the image (listing_image.c, listing_image_read.c) ---- */

/* By blob, where its data lies in the weights file: one behind the other, in
 * order, but what several share (layers of several images) only once. */
typedef struct BlobPlaces {
    uint64_t *offset;
    bool *again; /* it is there already */
    uint64_t bytes;
} BlobPlaces;
BlobPlaces image_places(Arena *arena, const Image *image);

/* As member "image" of the object that is open. `weights_file`: where data
 * goes. */
void image_write(JsonOut *out, const Image *image, const HwSpec *spec,
                 const char *weights_file);

/* `network`: its name. `root`: the whole JSON, whose `network` holds the rest
 * of image.layer. `n_insns` bounds the instructions that layers can refer to.
 * False after errors. */
bool image_read(Arena *arena, Diag *diag, const HwSpec *spec, const char *file,
                const char *network, const cJSON *json, const cJSON *root,
                uint32_t n_insns, Image *out);

/* The network's name as files have it. */
const char *listing_file_name(Arena *arena, const char *network);

/* ---- records (listing_record.c) ---- */

/* As members of the object that is open: what a reader must know of the
 * machine, and "records". */
void machine_write(JsonOut *out, const HwSpec *spec);
void records_write(JsonOut *out, const Listing *listing);

/* ---- JSON and text (listing_json.c, listing_json_read.c) ---- */

/* listing_json, written as it comes. */
void listing_json_write(Text *text, const Listing *listing,
                        const char *weights_file);

/* The image of a JSON listing that stands beside a text of that network;
 * `*has` tells whether there is one. False after errors. */
bool json_image(Arena *arena, Diag *diag, const HwSpec *spec, const char *file,
                const char *network, Bytes bytes, uint32_t n_insns, Image *out,
                bool *has);

#endif
