/* nodes.h - which layer of the network an event belongs to. */
#ifndef REPORT_NODES_H
#define REPORT_NODES_H

#include "base/map.h"
#include "sim/sim.h"

/* The layers of a listing's image; where it has none, those that its events
 * name. */
typedef struct Nodes {
    Arena *arena;
    const Listing *listing;
    const Map *by_name; /* layers, and those that were merged into them */
    uint32_t *by_insn;  /* the layer of fewest instructions; or none */
    uint32_t *of_layer; /* by index in the image */
    uint32_t n;
    const ListingLayer *const *layer; /* the first of its name */
    const char *const *name;          /* without an image; else NULL */
} Nodes;

Nodes nodes_of(Arena *arena, const Listing *listing, const SimResult *sim);
/* UINT32_MAX: none. */
uint32_t node_of_event(const Nodes *nodes, const SimEvent *event);
uint32_t node_of_insn(const Nodes *nodes, uint32_t insn);
uint32_t node_of_name(const Nodes *nodes, const char *name);

#endif
