/* sample_nodes.h - nodes on codes, for rules that make layers which an engine
 * can run. */
#ifndef PASSES_SAMPLE_NODES_H
#define PASSES_SAMPLE_NODES_H

#include "passes/passes_int.h"

static inline uint32_t extent(const Shape *shape, int axis) {
    return shape->dim[2 + axis];
}
/* The shape with other channels, height and width. */
Shape with_extents(const Shape *shape, uint32_t c, const uint32_t hw[2]);
/* Node i reads and makes volumes of one image, on codes. */
bool is_code_volume(const Match *m, uint32_t i);

/* A convolution that keeps height and width; a pool by its corner. */
Attrs same_conv(uint32_t out_c, uint32_t groups, uint32_t kernel);
Attrs max_pool(uint32_t kernel, uint32_t stride, uint32_t pad_end);

/* Whether an engine runs a convolution with a pool behind it; act NULL: an
 * identity. */
bool runs_conv_pool(const Match *m, const Attrs *conv, const Attrs *pool,
                    const Act *act, const Shape *in, const Shape *out);
bool runs_conv(const Match *m, const Attrs *conv, const Shape *in,
               const Shape *out);

typedef struct Made {
    const char *suffix, *gloss;
    OpKind op;
    Attrs attr;
    const Node *like; /* whose constants and activation it has; or NULL */
    Quant quant;
} Made;
/* A node right before the match's node i, which reads `in`. */
TensorId make_node(Match *m, uint32_t i, TensorId in, const Made *made);
/* The same codes, or those `at` rows and columns further; dense or one filter a
 * channel. */
TensorId make_identity(Match *m, uint32_t i, TensorId in, bool dense,
                       const uint32_t at[2]);
/* With zeros behind; `in` itself where there are none. */
TensorId make_padded(Match *m, uint32_t i, TensorId in,
                     const uint32_t behind[2]);

#endif
