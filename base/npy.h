/* npy.h - NumPy's .npy files, little-endian, as floats in C order. */
#ifndef BASE_NPY_H
#define BASE_NPY_H

#include "base/file.h"

enum { NPY_MAX_RANK = 8 };

typedef struct Npy {
    uint32_t rank;
    uint64_t dim[NPY_MAX_RANK];
    float *data; /* in the arena */
    uint64_t count;
    const char *kind; /* of the elements in the file: "|i1"...; NULL: "<f4" */
} Npy;

/* Reads <f4, <f8, |u1, |i1, <i2, <i4, <i8; versions 1 to 3. */
bool npy_read(Arena *arena, Diag *diag, const char *path, Npy *out);
/* The same of a file's bytes; `path` names them in errors. */
bool npy_parse(Arena *arena, Diag *diag, const char *path, Bytes file,
               Npy *out);
/* Are its elements whole numbers? */
bool npy_is_whole(const Npy *npy);
/* Values must be elements of the kind. */
bool npy_write(Arena *arena, Diag *diag, const char *path, const Npy *npy);

#endif
