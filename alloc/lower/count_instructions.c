/* count_instructions.c - how many instructions a plan has at least, before it
 * is placed.
 *
 * Input: modes of nodes, cascades. Output: whether a plan with these is longer
 * than the machine holds, wherever its buffers lie.
 * Method: its actions are written as if active memory were as large as need
 * be, so that nothing leaves that may stay, and are counted. What leaves takes
 * more, as do the lower row tiles and thinner channel tiles that come next.
 */
#include "alloc/cascade/cascade.h"
#include "alloc/live/live.h"
#include "alloc/lower/lower.h"
#include "alloc/spill/spill.h"
#include "alloc/tile/tile.h"
#include "plan/cost.h"

/* As long as it can be if nothing leaves: most plans are far from any limit,
 * which this tells sooner. */
static uint64_t instructions_most(const Decisions *d) {
    const Facts *f = d->f;
    enum { GROUP = 2 }; /* both places that each result is stored to */
    uint64_t sum = 0;
    for (NodeId id = {0}; id.i < f->g->node.n; id.i++) {
        bool parts = d->mode[id.i].kind == MODE_ROW_TILES ||
                     d->mode[id.i].kind == MODE_CONSUMER;
        uint64_t n = parts ? parts_of_row_tiles(d, id) : 1;
        sum += n * (graph_node(f->g, id)->n_in * 2 + 4);
    }
    for (uint32_t i = 0; i < d->cascade.n; i++) {
        CascadeCost cost;
        const Cascade *g = &d->cascade.at[i];
        if (!g->rolls && cascade_cost(f, g, STRIPES_ALL, &cost))
            sum += GROUP * cost.instructions;
    }
    return sum;
}

/* If nothing leaves; 0: nobody knows. */
static uint32_t instructions_kept(const Attempt *a) {
    Arena *arena = a->f->arena;
    Attempt kept = *a;
    Buffers p = {0};
    Plan plan = {0};
    kept.d = decisions_copy(arena, &a->d);
    spills_none(&kept.d);
    buffers_make(&kept.d, &p);
    PackResult nowhere = {.pool = ARENA_ARRAY(arena, int32_t, p.buf.n + 1),
                          .offset = ARENA_ARRAY(arena, uint64_t, p.buf.n + 1)};
    if (actions_make(&kept, diag_new(arena), &p, &nowhere, &plan))
        return plan_traffic(&plan).instructions;
    return kept.gave_up ? UINT32_MAX : 0;
}

bool too_long_to_place(const Attempt *a) {
    uint32_t most = a->f->spec->max_instructions;
    if (!a->brief || !most || a->f->spec->n_active > 1 ||
        instructions_most(&a->d) <= most ||
        spills_cost(&a->d) + streaming_cost(&a->d) >= a->most)
        return false;
    return instructions_kept(a) > most;
}
