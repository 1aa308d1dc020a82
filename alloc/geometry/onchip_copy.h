/* onchip_copy.h - rows of a plank as a volume of their own; private. */
#ifndef ALLOC_GEOMETRY_ONCHIP_COPY_H
#define ALLOC_GEOMETRY_ONCHIP_COPY_H

#include "alloc/facts.h"

/* How an engine copies rows of planks of the tensor; engine -1 if none can. */
Legal copy_legal(const Facts *f, TensorId t);
/* Bytes from the start of a plank to its row `row`. */
uint64_t copy_offset(const HwSpec *spec, const Volume *plank, uint32_t row);

#endif
