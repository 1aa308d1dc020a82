/* scheme.h - what is chosen for a network, and the graph on codes that follows.
 */
#ifndef QUANTISE_SCHEME_H
#define QUANTISE_SCHEME_H

#include "quantise/histogram.h"
#include "quantise/linear.h"
#include "quantise/quantise.h"

/* Codes of a layer's weights; real = scale[c] * code. NULL code: the layer's
 * weights stay real numbers. */
typedef struct WeightCodes {
    uint32_t bits;
    uint32_t channels;   /* of the output */
    size_t each;         /* codes a channel */
    size_t inner;        /* of them that lie behind the channel's axis */
    bool along_second;   /* channels are axis 1 (deconvolution) */
    const int16_t *code; /* in the order of the constant */
    const double *scale; /* one a channel, all equal where one is wanted */
    const double *bias;  /* real, by channel; NULL: none */
} WeightCodes;

typedef struct Scheme {
    const Graph *g;      /* of real numbers */
    Quant *quant;        /* by tensor */
    WeightCodes *weight; /* by node */
} Scheme;

/* ---- groups.c ---- */

/* Which tensors have one quantisation. */
typedef struct Groups {
    uint32_t *of; /* by tensor: its group's first tensor */
    bool *real;   /* by group: stays real numbers */
    Quant *fixed; /* by group: given by what makes it; else QUANT_NONE */
    bool *wide;   /* by group: 16 bits */
} Groups;
Groups groups_of(Arena *arena, const Graph *g, const QuantiseOptions *options);
/* What the user asks of a layer. */
QuantiseBits groups_bits(const QuantiseOptions *options, const Node *node);
/* Are the layer's sums to be on codes? */
bool groups_sums(const Graph *g, const Groups *groups, const Node *node);

/* ---- range.c ---- */

typedef struct Range {
    double lo, hi;
} Range;
/* The least power of two that is not below. */
double range_power(double scale);
/* The codes for a range that holds 0 (or is widened to). */
Quant range_quant(Range range, QuantType type, const QuantiseNumbers *numbers);
/* The range that codes of a quantisation reach. */
Range range_of(const Quant *q);
/* By the method, for a tensor of that type. */
Quant range_choose(const Histogram *h, QuantType type,
                   const QuantiseOptions *options);
/* Mean square error of the values, zeros included. */
double range_error(const Histogram *h, const Quant *q);
/* Share of values more than a step outside of what the codes reach. */
double range_clipped(const Histogram *h, const Quant *q);

/* ---- weights.c ---- */

/* Nearest codes; scales have the least square error, but for minmax. */
WeightCodes weights_code(Arena *arena, const Graph *g, const Node *node,
                         uint32_t bits, const QuantiseOptions *options);
/* The same with scales that are known, one a channel. */
WeightCodes weights_by(Arena *arena, const Graph *g, const Node *node,
                       uint32_t bits, const double *scale);
/* The greatest code of so many bits. */
static inline int32_t weights_most(uint32_t bits) {
    return (1 << (bits - 1)) - 1;
}

/* ---- build.c ---- */

/* Codes of a layer's weights and bias as constants of its node in a graph whose
 * tensors are quantised. */
void scheme_weigh(Graph *g, Node *node, const WeightCodes *w,
                  const QuantiseNumbers *numbers);
Graph *scheme_graph(Arena *arena, const Scheme *scheme,
                    const QuantiseNumbers *numbers);

/* ---- prepare.c ---- */

/* A copy in which layers with weights have no activation but a bound, or a
 * leaky ReLU where the machine's have, sums of factors are layers with weights,
 * and all constants are read. */
Graph *prepare_graph(Arena *arena, Diag *diag, const Graph *g,
                     const QuantiseNumbers *numbers);

#endif
