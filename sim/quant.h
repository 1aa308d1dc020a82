/* quant.h - the arithmetic of quantised layers; docs/quantisation.md.
 *
 * Input and output: codes, in cells and patches as floats, which hold them
 * exactly. Written for itself: graph/quant.h says the same, and verify compares
 * the two.
 */
#ifndef SIM_QUANT_H
#define SIM_QUANT_H

#include "sim/compute.h"

/* Has the layer as many scales as its rule takes? A violation if not. */
bool quant_suits(Run *run, const QuantLayer *q, uint32_t channels);
/* The codes of a layer's weights and bias. False, with a violation, if there
 * are none. */
bool quant_weights(Run *run, const char *layer, const Shape *weights,
                   uint32_t channels, ConvTask *out);

/* The same of what the work makes of the layer's output channels, its weights'
 * codes being those given; *q becomes that of these channels. */
bool quant_staged(Run *run, const Work *work, const float *weights,
                  uint32_t channels, ConvTask *out, const QuantLayer **q);

/* Leaves the scales of channels before `first` out. */
void quant_from_channel(QuantLayer *q, uint32_t first);

/* ---- one element ---- */

/* [x]: times a scale, to the nearest whole number, halves up. */
int64_t quant_scaled(const QuantScale *scale, int64_t x);
/* A code of the first input less its zero. */
int32_t quant_less_zero(const QuantLayer *q, float code);
/* A sum or difference, or a product, by the rule. */
float quant_two(const QuantLayer *q, float a, float b);
/* The mean of n codes whose sum, less their zeros, this is. */
float quant_mean(const QuantLayer *q, int64_t sum, uint64_t n);
/* The code nearest to a real number, and the number that a code is. */
float quant_from_real(const Quant *q, double real);
double quant_to_real(const Quant *q, float code);

/* ---- many ---- */

/* Codes that were moved, as the result has them. */
void quant_move(const QuantLayer *q, float *at, size_t n);
/* What the table says of each code. */
void quant_look_up(const QuantLayer *q, float *at, size_t n);
void quant_conv(Arena *arena, const ConvTask *task, const QuantLayer *q,
                const Patch *in, Patch *out);
/* Whole volumes only. */
void quant_deconv(Arena *arena, const ConvTask *task, const QuantLayer *q,
                  const Patch *in, Patch *out);
void quant_pool(const PoolTask *task, const QuantLayer *q, const Patch *in,
                Patch *out);

#endif
