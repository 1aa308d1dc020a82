/* staged.h - weights as operands in active memory.
 *
 * Input: instructions that load weights of some output channels of a layer, and
 * layers that read them. Output: cells, values, bytes. Invariant: a block is
 * bare elements, one output channel behind the other, whatever the order of the
 * layer's constant; a layer computes with what lies in the cells that it names,
 * and a cell that holds anything else than its weight is a violation.
 */
#ifndef SIM_STAGED_H
#define SIM_STAGED_H

#include "sim/work.h"

/* The block of a layer's output channels [first, first + n), `taps` weights
 * each, from byte `at` of the memory on. False, with a violation, if it does
 * not lie there. */
bool staged_place(Run *run, const char *layer, uint32_t memory, uint64_t at,
                  uint32_t first, uint32_t n, uint32_t taps, Place *out);
/* Runs an instruction that loads a block. */
bool staged_load(Run *run, const Work *work);

/* Output channels that the layer has, of which the work makes some. */
uint32_t staged_channels(Run *run, const Work *work);

/* Reads the weights of a layer: NULL where no arithmetic is done. False, with a
 * violation, if they cannot be there. */
bool staged_read(Run *run, const Work *work, const float **out);

/* Of a transposed convolution, what was read in the order of the image's
 * constants. */
const float *staged_as_stored(Run *run, const Work *work, const float *read);

/* Bytes of all blocks that were loaded, each channel once. */
uint64_t staged_once(const Run *run);

#endif
