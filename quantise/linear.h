/* linear.h - sums of products of one layer, for real numbers and for codes.
 *
 * A convolution, or an inner product as one over a single pixel. Numbers of
 * codes are exact: the sum is cut into parts that a float holds.
 */
#ifndef QUANTISE_LINEAR_H
#define QUANTISE_LINEAR_H

#include "graph/graph.h"

typedef struct Linear {
    ConvAttr conv;
    uint32_t in_c, in_h, in_w; /* of one image */
    uint32_t out_h, out_w;
    uint32_t images;
    size_t length;       /* products of one sum */
    size_t part;         /* of them that a float sums exactly */
    const float *weight; /* [out_c, length] */
} Linear;

/* Is the node one, of one group of weights [out_c, in_c / groups, kh, kw] or
 * [out, in]? */
bool linear_is(const Graph *g, const Node *node);
/* Its shape, without weights. */
Linear linear_of(const Graph *g, const Node *node);
/* Sets weights; `reach`: no input is further from 0, 0 for real numbers. */
void linear_weigh(Linear *l, const float *weight, double reach);

static inline size_t linear_pixels(const Linear *l) {
    return (size_t)l->out_h * l->out_w;
}
/* Values of its result: images, channels, pixels. */
static inline size_t linear_count(const Linear *l) {
    return l->images * l->conv.out_c * linear_pixels(l);
}

/* sum [images, out_c, pixels] from an input less `zero`. */
void linear_sums(const Linear *l, Arena *scratch, const float *in, float zero,
                 double *sum);

/* What `n` pixels of image 0 from pixel `first` on see in a group: [length, n
 * rounded up to KERNEL_WIDTH], the rest 0. `padded` is of linear_pad. */
void linear_columns(const Linear *l, const float *padded, uint32_t group,
                    size_t first, size_t n, float *columns);
/* An image of the input less `zero`, with what surrounds it. */
const float *linear_pad(const Linear *l, Arena *scratch, const float *in,
                        float zero);

#endif
