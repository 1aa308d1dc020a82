/* npy.h - NumPy's .npy files of little-endian float32, C order. */
#ifndef BASE_NPY_H
#define BASE_NPY_H

#include "base/file.h"

enum { NPY_MAX_RANK = 8 };

typedef struct Npy {
    uint32_t rank;
    uint64_t dim[NPY_MAX_RANK];
    float *data; /* in the arena */
    uint64_t count;
} Npy;

/* Reads <f4, <f8, |u1, |i1, <i4, <i8 (converted to float); versions 1 to 3. */
bool npy_read(Arena *arena, Diag *diag, const char *path, Npy *out);
bool npy_write(Arena *arena, Diag *diag, const char *path, const Npy *npy);

#endif
