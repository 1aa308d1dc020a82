/* size_grid.h - sizes of a memory that do not depend on any memory's own: so
 * many for each power of two, which is one as well.
 */
#ifndef BASE_SIZE_GRID_H
#define BASE_SIZE_GRID_H

#include <stdint.h>

/* The size with that number. */
uint64_t grid_size(uint32_t octave, uint32_t number);
/* The highest number of a size within this one; 0: none. */
uint32_t grid_number(uint32_t octave, uint64_t size);
/* The largest size below this one; 0: none. */
uint64_t grid_below(uint32_t octave, uint64_t size);

#endif
