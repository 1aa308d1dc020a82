/* cost.h - cycles of the machine's clock, to first order (facts/two-level.md
 * 4): what the simulator counts with and planning weighs with.
 *
 * All constants come from the hwspec; sizes are plain numbers.
 */
#ifndef HWSPEC_COST_H
#define HWSPEC_COST_H

#include "hwspec/hwspec.h"

/* Seconds as cycles, rounded up. */
uint64_t hwspec_cycles(const HwSpec *spec, double seconds);

/* Steps of the array for one result: over the input channels (of one group)
 * and `taps` of a kernel. repl: how the input lies, if it can be replicated. */
uint64_t hwspec_inner_steps(const HwSpec *spec, const HwEngine *engine,
                            const Repl *repl, uint32_t channels, uint64_t taps);

/* The same of a kernel of rows x columns, where taps of a row may take lanes of
 * channels that are not there (`unroll.row_taps`). */
uint64_t hwspec_conv_steps(const HwSpec *spec, const HwEngine *engine,
                           const Repl *repl, uint32_t channels, uint32_t rows,
                           uint32_t columns);

/* How often an engine goes over an operand of the operation. */
static inline uint32_t hwspec_passes(const HwEngine *engine, HwOp op) {
    return engine->passes[op] ? engine->passes[op] : 1;
}

/* An engine that makes c x h x w results of `inner` steps each. */
uint64_t hwspec_engine_cycles(const HwSpec *spec, const HwEngine *engine,
                              uint32_t c, uint32_t h, uint32_t w,
                              uint64_t inner);

/* Attention of h x w pixels: of `channels` in each group to `keys` pixels,
 * which makes `values`. Scores, their softmax and the sums take turns. */
typedef struct Attention {
    uint32_t groups, channels, values, keys;
} Attention;
uint64_t hwspec_attention_cycles(const HwSpec *spec, const HwEngine *engine,
                                 const Attention *a, uint32_t h, uint32_t w);

/* Weights of `taps` taps over `channels` input channels, of c output channels:
 * what pads the rows of the cache is not fetched. And their way into it. */
uint64_t hwspec_weight_bytes(const HwSpec *spec, uint32_t channels,
                             uint64_t taps, uint32_t c);
uint64_t hwspec_weight_cycles(const HwSpec *spec, uint64_t bytes);

/* c x rows x cols between a memory and the chip, lying together like that at
 * both ends; 0 of active memories. */
uint64_t hwspec_transfer_cycles(const HwSpec *spec, const HwMemory *memory,
                                uint32_t c, uint32_t rows, uint32_t cols,
                                Contiguous rows_lie);

/* The same of c x rows x cols of a volume of `whole` rows and columns that an
 * engine's tile takes. */
uint64_t hwspec_tile_cycles(const HwSpec *spec, const HwMemory *memory,
                            const Volume *whole, uint32_t c, uint32_t rows,
                            uint32_t cols);

/* Cycles that so many weights take from there into active memory. */
uint64_t hwspec_staged_cycles(const HwSpec *spec, const HwMemory *from,
                              uint64_t elements);
/* So many biases, as they lie on chip, in elements of the machine. */
uint64_t hwspec_bias_elements(const HwSpec *spec, uint32_t channels);

/* Cycles that the host takes for a layer of so many products, whose operands,
 * constants and result are so many bytes. */
uint64_t hwspec_host_cycles(const HwSpec *spec, uint64_t products,
                            uint64_t bytes);

#endif
