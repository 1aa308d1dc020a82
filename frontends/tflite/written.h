/* written.h - a TensorFlow Lite model before it is bytes; inside
 * frontends/tflite only.
 */
#ifndef FRONTENDS_TFLITE_WRITTEN_H
#define FRONTENDS_TFLITE_WRITTEN_H

#include "base/vec.h"
#include "frontends/tflite/flatwrite.h"
#include "graph/graph.h"

/* KIND(NAME, number, table of options, version). */
#define TFL_OPS                                                                \
    KIND(ADD, 0, 11, 2)                                                        \
    KIND(AVERAGE_POOL, 1, 5, 2)                                                \
    KIND(CONCAT, 2, 10, 2)                                                     \
    KIND(CONV, 3, 1, 3)                                                        \
    KIND(DEPTHWISE, 4, 2, 3)                                                   \
    KIND(FULLY_CONNECTED, 9, 8, 4)                                             \
    KIND(LOGISTIC, 14, 0, 2)                                                   \
    KIND(MAX_POOL, 17, 5, 2)                                                   \
    KIND(MUL, 18, 21, 2)                                                       \
    KIND(RELU, 19, 0, 2)                                                       \
    KIND(RELU6, 21, 0, 2)                                                      \
    KIND(RESHAPE, 22, 17, 1)                                                   \
    KIND(SOFTMAX, 25, 9, 2)                                                    \
    KIND(TANH, 28, 0, 2)                                                       \
    KIND(PAD, 34, 22, 2)                                                       \
    KIND(TRANSPOSE, 39, 26, 2)                                                 \
    KIND(MEAN, 40, 27, 2)                                                      \
    KIND(SUB, 41, 28, 2)                                                       \
    KIND(PADV2, 60, 44, 2)

typedef enum TflKind {
#define KIND(NAME, number, table, version) TFLK_##NAME,
    TFL_OPS
#undef KIND
        TFLK_COUNT
} TflKind;

typedef struct OutTensor {
    const char *name;
    Shape shape;
    int32_t type, buffer, axis;
    uint32_t n; /* scales */
    const float *scale;
    int64_t zero;
} OutTensor;

typedef struct OutBuffer {
    const void *data;
    size_t len;
} OutBuffer;

enum { MOST_OPTIONS = 8 };
typedef struct OutOp {
    TflKind kind;
    uint32_t n_in;
    int32_t in[3], out;
    const int32_t *many; /* inputs, where there are more than 3 */
    uint32_t n_options;
    FlatField option[MOST_OPTIONS];
} OutOp;

typedef struct Writer {
    Arena *arena;
    Diag *diag;
    const Graph *g;
    VEC(OutTensor) tensor;
    VEC(OutBuffer) buffer;
    VEC(OutOp) op;
    int32_t *index; /* by tensor of the graph; -1: not yet */
    bool ok;
} Writer;

/* The bytes: written.c. */
void tfl_put_model(Writer *w, Text *to);

#endif
