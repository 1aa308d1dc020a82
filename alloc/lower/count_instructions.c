/* count_instructions.c - how many instructions a plan has at least, before it
 * is placed.
 *
 * Input: modes of nodes, groups. Output: whether a plan with these is longer
 * than the machine holds, wherever its buffers lie.
 * Method: its actions are written as if active memory were as large as need
 * be, so that nothing leaves that may stay, and are counted. What leaves takes
 * more, as do the lower planks and thinner slabs that come next.
 */
#include "alloc/work.h"

/* As long as it can be if nothing leaves: most plans are far from any limit,
 * which this tells sooner. */
static uint64_t instructions_most(const Work *w) {
    enum { GROUP = 2 }; /* both places that each result is stored to */
    uint64_t sum = 0;
    for (NodeId id = {0}; id.i < w->g->node.n; id.i++) {
        bool parts = w->mode[id.i].kind == MODE_PLANKS ||
                     w->mode[id.i].kind == MODE_TAKES;
        uint64_t n = parts ? parts_of_planks(w, id) : 1;
        sum += n * (graph_node(w->g, id)->n_in * 2 + 4);
    }
    for (uint32_t i = 0; i < w->group.n; i++) {
        GroupCost cost;
        const Group *g = &w->group.at[i];
        if (!g->rolls && group_cost(w, g, STRIPES_ALL, &cost))
            sum += GROUP * cost.instructions;
    }
    return sum;
}

/* If nothing leaves; 0: nobody knows. */
static uint32_t instructions_kept(Work *w) {
    const GapChoice *chosen = gaps_save(w);
    Problem p = {0};
    Plan plan = {0};
    gaps_close(w);
    problem_make(w, &p);
    PlanResult nowhere = {.pool = ARENA_ARRAY(w->arena, int32_t, p.buf.n + 1),
                          .offset =
                              ARENA_ARRAY(w->arena, uint64_t, p.buf.n + 1)};
    bool made = actions_make(w, diag_new(w->arena), &p, &nowhere, &plan);
    uint32_t n = made         ? plan_traffic(&plan).instructions
                 : w->gave_up ? UINT32_MAX
                              : 0;
    gaps_restore(w, chosen);
    return n;
}

bool too_long_to_place(Work *w, Problem *p) {
    uint32_t most = w->spec->max_instructions;
    if (!w->brief || !most || w->spec->n_active > 1 ||
        instructions_most(w) <= most ||
        gaps_cost(w) + streams_cost(w) >= w->most)
        return false;
    bool longer = instructions_kept(w) > most;
    problem_make(w, p);
    return longer;
}
