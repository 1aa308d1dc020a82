/* onchip_copy.h - rows of a row tile as a volume of their own; private. */
#ifndef ALLOC_GEOMETRY_ONCHIP_COPY_H
#define ALLOC_GEOMETRY_ONCHIP_COPY_H

#include "alloc/facts.h"

/* How an engine copies rows of row tiles of the tensor; engine -1 if none can.
 */
Legal copy_legal(const Facts *f, TensorId t);
/* Bytes from the start of a row tile to its row `row`. */
uint64_t copy_offset(const HwSpec *spec, const Volume *row_tile, uint32_t row);

#endif
