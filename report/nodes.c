/* nodes.c - events and layers; see nodes.h.
 *
 * Input: a listing and its events. Output: for each event the index of a layer.
 * Invariant: an engine's work goes by the name of its layer, since the tiles of
 * several layers alternate; transfers go by the instruction.
 */
#include "report/nodes.h"

#include "base/vec.h"
#include "report/moves.h"

#include <string.h>

static bool moves(const ListingLayer *layer) {
    return !strcmp(layer->type, "Input") || !strcmp(layer->type, "Output");
}

/* While nodes are added. */
typedef struct Adding {
    Nodes *nodes;
    const ListingLayer **layer;
    Map *map;   /* layers that compute, and what was merged into them */
    Map *moved; /* by type and name: what moves */
    Map *input; /* by name: the first layer that loads it */
} Adding;

/* Parts of a layer, or of what moves, that are apart in the listing are one
 * node. */
static uint32_t add_node(Adding *a, const ListingLayer *l) {
    Nodes *nodes = a->nodes;
    Map *map = moves(l) ? a->moved : a->map;
    const char *name =
        moves(l) ? arena_printf(nodes->arena, "%s\t%s", l->type, l->name)
                 : l->name;
    uint32_t node = map_get(map, name, nodes->n);
    if (node < nodes->n)
        return node;
    a->layer[nodes->n++] = l;
    for (uint32_t k = 0; k < l->n_merged; k++)
        map_put(map, l->merged[k], node);
    map_put(map, name, node);
    return node;
}

static void add_nodes(Nodes *nodes, Map *map) {
    const Image *image = &nodes->listing->image;
    Adding a = {
        nodes,
        ARENA_ARRAY(nodes->arena, const ListingLayer *, image->n_layers + 1),
        map, map_new(nodes->arena), map_new(nodes->arena)};
    nodes->of_layer = ARENA_ARRAY(nodes->arena, uint32_t, image->n_layers + 1);
    nodes->layer = a.layer;
    for (uint32_t i = image->n_layers; i-- > 0;)
        if (!strcmp(image->layer[i].type, "Input"))
            map_put(a.input, image->layer[i].name, i);
    for (uint32_t i = 0; i < image->n_layers; i++) {
        const ListingLayer *l = &image->layer[i];
        for (uint32_t k = 0; k < l->n_bottoms; k++) {
            uint32_t from = map_get(a.input, l->bottom[k], UINT32_MAX);
            if (from != UINT32_MAX &&
                map_get(map, l->bottom[k], UINT32_MAX) == UINT32_MAX)
                add_node(&a, &image->layer[from]);
        }
        nodes->of_layer[i] = add_node(&a, l);
    }
}

static void take_insns(const Nodes *nodes) {
    const Image *image = &nodes->listing->image;
    uint32_t *few = ARENA_ARRAY(nodes->arena, uint32_t, nodes->listing->n + 1);
    for (uint32_t i = 0; i < image->n_layers; i++) {
        const ListingLayer *layer = &image->layer[i];
        for (uint32_t k = 0; k < layer->n_insns; k++) {
            uint32_t at = layer->first_insn + k;
            if (at >= nodes->listing->n ||
                (few[at] && few[at] <= layer->n_insns))
                continue;
            few[at] = layer->n_insns;
            nodes->by_insn[at] = nodes->of_layer[i];
        }
    }
}

/* The layers that events name, in their order. */
static uint32_t name_layers(Arena *arena, const SimResult *sim, Map *map,
                            uint32_t *by_insn, const char *const **out) {
    VEC(const char *) name = {0};
    for (uint32_t i = 0; i < sim->n_events; i++) {
        const char *layer = event_layer(arena, &sim->event[i]);
        uint32_t node = map_get(map, layer, name.n);
        if (node == name.n) {
            map_put(map, layer, node);
            vec_push(arena, &name, layer);
        }
        by_insn[sim->event[i].insn] = node;
    }
    *out = name.at;
    return name.n;
}

Nodes nodes_of(Arena *arena, const Listing *listing, const SimResult *sim) {
    Map *map = map_new(arena);
    Nodes nodes = {.arena = arena,
                   .listing = listing,
                   .by_name = map,
                   .by_insn = ARENA_ARRAY(arena, uint32_t, listing->n + 1)};
    for (uint32_t i = 0; i < listing->n; i++)
        nodes.by_insn[i] = UINT32_MAX;
    add_nodes(&nodes, map);
    take_insns(&nodes);
    if (!nodes.n)
        nodes.n = name_layers(arena, sim, map, nodes.by_insn, &nodes.name);
    return nodes;
}

uint32_t node_of_insn(const Nodes *nodes, uint32_t insn) {
    return insn < nodes->listing->n ? nodes->by_insn[insn] : UINT32_MAX;
}

uint32_t node_of_name(const Nodes *nodes, const char *name) {
    return map_get(nodes->by_name, name, UINT32_MAX);
}

uint32_t node_of_event(const Nodes *nodes, const SimEvent *e) {
    uint32_t node = e->op == HW_OP_LOAD || e->op == HW_OP_STORE
                        ? UINT32_MAX
                        : node_of_name(nodes, event_layer(nodes->arena, e));
    return node != UINT32_MAX ? node : node_of_insn(nodes, e->insn);
}
