/* samples_int.h - what the readers of samples share. */
#ifndef FRONTENDS_SAMPLES_SAMPLES_INT_H
#define FRONTENDS_SAMPLES_SAMPLES_INT_H

#include "base/file.h"
#include "base/npy.h"
#include "frontends/samples.h"

/* ---- npz.c ---- */

/* The array of an archive, "name" or "name.npy". */
bool npz_array(Arena *arena, Diag *diag, const char *path, Bytes file,
               const char *name, Npy *out);
/* Names of the arrays, without ".npy"; NULL at the end. NULL after errors. */
const char *const *npz_names(Arena *arena, Diag *diag, const char *path,
                             Bytes file);

/* ---- picture.c ---- */

typedef struct Picture {
    uint32_t width, height;
    const uint8_t *rgb; /* 3 bytes a pixel, row by row */
} Picture;

bool picture_looks(Bytes file);
bool picture_read(Arena *arena, Diag *diag, const char *path, Bytes file,
                  Picture *out);
/* Other sizes, by a filter that is a triangle as wide as an output pixel (or an
 * input pixel, whichever is wider). [height, width, 3]. stretch: to the size;
 * crop: as large as covers it, then its middle; fit: as large as lies in it,
 * black around. */
const float *picture_resize(Arena *arena, const Picture *from, const char *how,
                            uint32_t width, uint32_t height);

#endif
