/* moves.h - what crosses the edge of active memory, by volume, and which
 * layers run together, read off a simulation. */
#ifndef REPORT_MOVES_H
#define REPORT_MOVES_H

#include "sim/sim.h"

/* Of one volume, or of the tiles that one layer fetches and leaves itself. */
typedef struct VolumeMoves {
    const char *name; /* of loads and stores: the listing's; else the layer's */
    bool by_tiles;
    uint32_t loads, stores; /* instructions */
    uint64_t read, written; /* bytes from and to all that is not active */
} VolumeMoves;

/* Its numbers: field, head of the column, key in JSON. */
#define VOLUME_MOVES(X)                                                        \
    X(loads, "loads", "loads")                                                 \
    X(read, "bytes read", "read_bytes")                                        \
    X(stores, "stores", "stores")                                              \
    X(written, "written", "written_bytes")

/* In the order of their first moves; what does not move is left out. */
uint32_t moves_by_volume(Arena *arena, const Listing *listing,
                         const SimResult *sim, const VolumeMoves **out);

/* Layers whose tiles alternate: none is complete before the next begins. */
typedef struct LayersTogether {
    const char *first, *last; /* layers, in the order in which they begin */
    uint32_t layers, tiles;   /* most of one of them */
    uint64_t from, to;        /* cycles */
    uint64_t read, written;   /* bytes, all loads and stores meanwhile */
} LayersTogether;

/* The same of these. */
#define LAYERS_TOGETHER(X)                                                     \
    X(layers, "layers", "layers")                                              \
    X(tiles, "tiles", "tiles")                                                 \
    X(from, "from cycle", "from_cycle")                                        \
    X(to, "to", "to_cycle")                                                    \
    X(read, "bytes read", "read_bytes")                                        \
    X(written, "written", "written_bytes")

uint32_t moves_together(Arena *arena, const Listing *listing,
                        const SimResult *sim, const LayersTogether **out);

/* The simulation with one event a layer and engine, and one a volume that is
 * loaded or stored, where there are too many events for a table. What they
 * take is summed; operands are those of the first. */
const SimResult *rows_of(Arena *arena, const Listing *listing,
                         const SimResult *sim);

/* The layer of an event: its name without the tile's number. */
const char *event_layer(Arena *arena, const SimEvent *event);

#endif
