/* values.h - values of tensors in files of the user: .npy, and ONNX's .pb to
 * read.
 *
 * Values of quantised tensors are codes. A file of whole numbers has codes; one
 * of floats has real numbers, and is quantised when it is read.
 */
#ifndef DRIVER_VALUES_H
#define DRIVER_VALUES_H

#include "graph/graph.h"

/* What the values are of; shape and quant NULL: not known. */
typedef struct Valued {
    const char *what; /* "input": for messages */
    const char *name;
    const Shape *shape;
    const Quant *quant;
} Valued;

Valued values_of(const char *what, const Tensor *tensor);

/* NULL after errors. */
const float *values_read(Arena *arena, Diag *diag, const char *path,
                         const Valued *of);
/* DIR/NAME.npy; '/' in the name becomes '_', one of more than 200 bytes is cut
 * and a checksum put behind it. Of a quantised tensor these are
 * codes, and DIR/NAME.real.npy has the real numbers. */
bool values_write(Arena *arena, Diag *diag, const char *dir, const Valued *of,
                  const float *value);

#endif
