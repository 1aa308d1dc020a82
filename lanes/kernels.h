/* kernels.h - weights of layers from those of a graph. */
#ifndef LANES_KERNELS_H
#define LANES_KERNELS_H

#include "lanes/lanes.h"

/* Weights of the layer's sizes, in which the node's lie in the middle; those
 * of other groups and of stretched kernels are 0. `a`: the node's attributes,
 * rows and columns as the layer has them. False: they are no codes of 8 bits.
 */
bool kernels_conv(Arena *arena, const Graph *g, const Node *node,
                  const ConvAttr *a, LaneLayer *l);
bool kernels_fc(Arena *arena, const Graph *g, const Node *node, LaneLayer *l);
/* A layer whose biases are all 0 has none. */
void kernels_set_bias(LaneLayer *l, const int8_t *bias, uint32_t n);
/* The nearest biases that the machine has, here and in the graph. */
void kernels_bias(Arena *arena, Graph *g, const Node *node, LaneLayer *l,
                  LaneLowered *out);
/* A convolution of one pixel: the sum of n volumes of c channels side by side,
 * each by a power of two. False: no weights and shift do that. */
bool kernels_sum(Arena *arena, uint32_t c, uint32_t n, const double *factor,
                 LaneLayer *l);
/* A convolution of one pixel that gives its c channels again, and zeros behind
 * them up to `all`. */
void kernels_more(Arena *arena, uint32_t c, uint32_t all, LaneLayer *l);
/* Zeros for the inputs of channels that the layer's input has above c. */
void kernels_deepen(Arena *arena, uint32_t c, uint32_t all, LaneLayer *l);
/* Convolutions of 1x1 that stream, or stand behind such, as 3x3 with padding.
 */
void kernels_stream(Arena *arena, LaneNet *net);

#endif
