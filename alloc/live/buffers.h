/* buffers.h - what makes the buffers of a problem; private to alloc/live. */
#ifndef ALLOC_LIVE_BUFFERS_H
#define ALLOC_LIVE_BUFFERS_H

#include "alloc/live/live.h"

/* A buffer that holds nothing yet, of no time. */
Buffer *buffer_new(const Facts *f, Buffers *p, const Owner *owner);
/* One that may lie anywhere in `memories`. Returns its number. */
uint32_t buffer_add(const Facts *f, Buffers *p, Times alive,
                    const uint64_t bytes[PACK_MAX_POOLS], uint32_t memories,
                    Owner owner);
/* Those of the node's tiles, and of what is moved behind it. */
void node_bufs(const Decisions *d, Buffers *p, NodeId node);

#endif
