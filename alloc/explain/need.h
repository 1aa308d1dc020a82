/* need.h - bytes that steps need where nothing fits.
 *
 * Input: an attempt as it got stuck. Output: numbers; nothing is said here.
 */
#ifndef ALLOC_EXPLAIN_NEED_H
#define ALLOC_EXPLAIN_NEED_H

#include "alloc/explain/explain.h"

/* Bytes of rows of the tensor, or of rows of some channels, where these take
 * the fewest. */
uint64_t least_layout(const Facts *f, TensorId t, uint32_t channels,
                      uint32_t rows);
/* The step's node where it has one on an engine; else NO_NODE. */
NodeId step_only(const Facts *f, uint32_t step);

/* How a step takes the fewest bytes: as it was tried last, whole or by rows,
 * or otherwise, if it cannot run so. */
typedef enum Manner {
    AS_TRIED,
    IN_PLACE,
    BY_CHANNEL_TILES,
    BY_BOXES,
    BY_LINES
} Manner;
typedef struct Need {
    uint64_t bytes;
    Manner manner;
} Need;
Need need_at(const Attempt *a, uint32_t time);
/* Of the buffers alive then, as they were tried. */
uint64_t sum_at(const Attempt *a, uint32_t time);
/* Whether the machine's tiles are what the step that is stuck lacks room for.
 */
bool stuck_in_tiles(const Attempt *a, LeastTile *least);
/* The time of the step that needs most, among those that cannot run; among
 * all, if it is not known which these are. */
uint32_t worst_time(const Attempt *a);

/* A buffer that is alive. */
typedef struct Line {
    uint32_t buf;
    uint64_t bytes;
} Line;
/* Those at the time, largest first; how many. */
uint32_t alive_at(const Attempt *a, uint32_t time, Line **out);

#endif
