/* frontend.h - files to graphs. One row a format in frontends.c. */
#ifndef FRONTENDS_FRONTEND_H
#define FRONTENDS_FRONTEND_H

#include "base/file.h"
#include "base/npy.h"
#include "base/text.h"
#include "graph/graph.h"

typedef struct ShapeSetting {
    const char *name; /* tensor or input layer; "" for any input */
    Shape shape;
} ShapeSetting;

/* An input that always has these values: a constant of the network. */
typedef struct FixSetting {
    const char *name; /* of the input */
    const char *file; /* .npy or .pb */
} FixSetting;

/* An input that an output was in the call before. */
typedef struct StateSetting {
    const char *in, *out; /* tensors; in "auto", out NULL: all whose names pair
                           * up */
    const char *file;     /* .npy or .pb: its values in the first call; NULL:
                           * zeros */
} StateSetting;

typedef struct ImportOptions {
    const char *weights; /* second file, or NULL */
    const char *phase;   /* Caffe: "TEST" (default, NULL) or "TRAIN" */
    uint32_t batch; /* 0: 1, or what a ShapeSetting says; never the file's */
    uint32_t n_shapes;
    const ShapeSetting *shapes;
    uint32_t n_fixed;
    const FixSetting *fixed; /* ONNX */
    uint32_t n_inputs, n_outputs;
    const char *const *inputs, *const *outputs; /* tensors at which the part
                                                 * to read begins and ends; 0:
                                                 * where the file's do */
    uint32_t n_states;
    const StateSetting *states;
    uint64_t seed; /* for constants that the files do not hold */
} ImportOptions;

typedef struct ImportInfo {
    uint32_t seeded; /* nodes that got seeded constants */
} ImportInfo;

typedef struct Format {
    const char *name;     /* "caffe" */
    const char *suffixes; /* ".prototxt .pbtxt" */
    const char *doc;
    /* true if the first bytes look like this format */
    bool (*looks)(const char *path, Bytes bytes);
    Graph *(*read)(Arena *arena, Diag *diag, const char *path, Bytes bytes,
                   const ImportOptions *options);
} Format;

extern const Format formats[];
extern const uint32_t n_formats;

/* Reads a network: format by content, then by suffix. The graph is sorted,
 * inferred, verified, and has all its constants. NULL after errors. */
Graph *frontend_read(Arena *arena, Diag *diag, const char *path,
                     const ImportOptions *options, ImportInfo *info);

/* Values of a tensor: a .npy file, or ONNX's TensorProto by itself (.pb). */
bool tensor_file_read(Arena *arena, Diag *diag, const char *path, Npy *out);

/* The graph in the JSON of docs/graph-json.md. Values of trained constants are
 * appended to `bytes`, to be written as the file `weights` beside the JSON;
 * `bytes` stays empty where there are none. */
const char *graph_to_json(Arena *arena, const Graph *g, const char *weights,
                          Text *bytes);

/* The graph as an ONNX model that computes on real numbers between
 * QuantizeLinear and DequantizeLinear; runtimes fuse that to the same codes
 * where halves go to even. False, and an error for each layer that has no such
 * form. */
bool graph_to_onnx(Arena *arena, Diag *diag, const Graph *g, Text *out);

/* The graph as a TensorFlow Lite model; all its tensors are int8 or int16.
 * False, and an error for each layer that has no such form. Its volumes have
 * their channels last. */
bool graph_to_tflite(Arena *arena, Diag *diag, const Graph *g, Text *out);

#endif
