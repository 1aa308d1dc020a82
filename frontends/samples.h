/* samples.h - files that hold values of a network's inputs, many at a time.
 *
 * Input: a folder or a file: .npy, .npz, .pb (ONNX's TensorProto), .raw, PNG,
 * JPEG, or folders of them. Output: samples in the order of their names, each
 * with values for all inputs. docs/quantise.md says what is taken for what.
 */
#ifndef FRONTENDS_SAMPLES_H
#define FRONTENDS_SAMPLES_H

#include "base/diag.h"
#include "graph/graph.h"

enum { SAMPLE_CHANNELS = 4 };

typedef struct SampleOptions {
    const char *path;   /* FILE or FOLDER[:ARRAY][@FIRST-LAST] */
    const char *labels; /* the same, or a text of numbers; or NULL */
    /* value = (element - mean) * scale, by channel, or one for all */
    uint32_t n_means, n_scales;
    double mean[SAMPLE_CHANNELS], scale[SAMPLE_CHANNELS];
    const char *layout; /* chw, hwc: of the inputs; NULL: by their shape */
    const char *resize; /* of pictures: stretch, crop, fit; NULL: crop */
    const char *raw;    /* elements of raw files: f32, u8, i8; NULL: by size */
    bool bgr;           /* pictures as blue, green, red */
} SampleOptions;

/* An input of the network. */
typedef struct SampleInput {
    const char *name;
    Shape shape;
} SampleInput;

typedef struct SampleSet {
    uint32_t n, n_inputs;
    const char *const *name;   /* of each: "a.png", "x.npz[3]" */
    const float *const *value; /* sample s, input i: [s * n_inputs + i] */
    const int32_t *label;      /* or NULL */
} SampleSet;

/* "1,2,3" for mean and scale; false if malformed. */
bool samples_factors(const char *text, uint32_t *n,
                     double out[SAMPLE_CHANNELS]);

/* False after errors: no samples, a file of another size, damaged ones. */
bool samples_read(Arena *arena, Diag *diag, const SampleOptions *options,
                  uint32_t n_inputs, const SampleInput *inputs, SampleSet *out);

#endif
