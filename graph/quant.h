/* quant.h - the arithmetic on codes: the one place that says how amphora
 * rounds.
 *
 * There are two rules (QuantRound), a property of the tensor that is written.
 * Halves up: a result is rounded once, to the nearest code, halves up, from a
 * product with a factor of 31 bits:
 *
 *     [x] = (x * factor + 2^(shift - 1)) >> shift
 *
 * with x an exact sum and factor / 2^shift the real factor, for instance
 * scale(input) * scale(weights) / scale(output). It is TOSA's apply_scale_32
 * without double rounding, and TensorFlow Lite's TFLITE_SINGLE_ROUNDING.
 * docs/quantisation.md has the rest: what each layer computes, and how this
 * compares with runtimes.
 *
 * Nothing here needs more than integers of 64 bits; code that is generated for
 * a layer computes the same from a QuantLayer. Sums of layers on 8 bits have 32
 * bits, so for them the formula above is all; those on 16 bits have up to 48.
 */
#ifndef GRAPH_QUANT_H
#define GRAPH_QUANT_H

#include "graph/graph.h"

#include <math.h>

/* The nearest factor of 31 bits. 0 below 2^-32, the greatest above 2^30. */
QuantScale quant_scale(double real);

static inline int64_t quant_apply(QuantScale s, int64_t x) {
    if (s.shift <= 32) { /* beyond 32 bits no type has the result */
        x = x < INT32_MIN ? INT32_MIN : x > INT32_MAX ? INT32_MAX : x;
        return (x * s.factor + (INT64_C(1) << (s.shift - 1))) >> s.shift;
    }
    /* The product's lowest 32 bits do not reach the bit that is rounded. */
    int64_t low = ((x & UINT32_MAX) * s.factor) >> 32;
    int64_t high = (x >> 32) * s.factor + low;
    return (high + (INT64_C(1) << (s.shift - 33))) >> (s.shift - 32);
}

/* Nearest whole number, halves away from 0. */
static inline int64_t quant_divide(int64_t x, int64_t n) {
    return (x > 0 ? x + n / 2 : x - n / 2) / n;
}

/* The same where halves go to the even code: floats of 32 bits all through.
 * SUMS and MEANS: float(x) * scale, with all that a mean divides by in the
 * scale. A sum of two, with a = scale[0] / scale[2] and b = scale[1] /
 * scale[2], is ((z - fma(a, z0, b * z1)) + a * c0) + b * c1, of the codes c0
 * and c1 with their zeros z0 and z1, z being the result's. Differences, PRODUCT
 * and MOVES are what real numbers give, step by step: (scale[0] * q0 - scale[1]
 * * q1) / scale[2], (scale[0] * q0) * (scale[1] * q1) / scale[2], and scale[0]
 * * q0 / scale[1]. These are onnxruntime's, on x86.
 *
 * TERMS is the same but for a sum of two: with u the larger of both scales, a
 * = scale[0] / u, b = scale[1] / u, it is [([q0 * a] + [q1 * b]) * u / scale],
 * each in brackets rounded to a whole number. */
/* A float as a whole number, halves to even; far beyond all codes cut. */
int64_t quant_even(float x);

static inline bool quant_sums_terms(const QuantLayer *layer) {
    return layer->round == QUANT_TERMS && layer->rule == QUANT_ADDS &&
           !layer->minus;
}

/* [x] of a sum by scale `k`. */
static inline int64_t quant_summed(const QuantLayer *layer, uint32_t k,
                                   int64_t x) {
    const QuantScale *scale =
        x < 0 && layer->below ? layer->below : layer->scale;
    return quant_by_floats(layer->round)
               ? quant_even((float)x * quant_float(scale[k]))
               : quant_apply(scale[k], x);
}
/* ADDS and PRODUCT: two codes less their zeros; MOVES: one. */
int64_t quant_blend(const QuantLayer *layer, int64_t x, int64_t y);
int64_t quant_moved(const QuantLayer *layer, int64_t x);

/* A layer's result before its zero is added, as a code. */
static inline int32_t quant_finish(const QuantLayer *layer, int64_t x) {
    x += layer->zero_out;
    return x < layer->lo ? layer->lo : x > layer->hi ? layer->hi : (int32_t)x;
}

/* The nearest code to a real number, by its rule of rounding. */
int32_t quant_code(const Quant *q, double real);
static inline double quant_real(const Quant *q, double code) {
    return q->scale * (code - q->zero);
}

/* Does the node read or write codes? */
bool quant_is_at(const Graph *g, const Node *node);
/* Are all tensors of the node quantised alike? */
bool quant_is_one(const Graph *g, const Node *node);
/* The numbers of a node that reads or writes codes. The node need not be in
 * the graph, but its tensors must. */
QuantLayer quant_layer(Arena *arena, const Graph *g, const Node *node);
/* Only its rule. */
QuantRule quant_rule(const Graph *g, const Node *node);
/* Does the activation only cut, or nothing? */
bool quant_clamps(const Act *act);
/* Does the activation scale sums below 0 by a number of their own? */
bool quant_bends(const Act *act);
/* Does its activation cut any code that its result could be? */
bool quant_act_cuts(const Graph *g, const Node *node);
/* Is each element of a GATHER one of its input? */
bool quant_picks(const Graph *g, const Node *node);
/* Does the operator, as it is, hand on values of its input as they are? */
bool quant_moves(const Graph *g, const Node *node);

#endif
