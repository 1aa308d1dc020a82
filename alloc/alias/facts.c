/* facts.c - what planning starts from.
 *
 * Input: a schedule, a machine, which may differ from the schedule's own by its
 * active memories. Output: what is known of each node and tensor there.
 */
#include "alloc/alias/alias.h"
#include "base/arith.h"

static void legal_read(Facts *f) {
    for (NodeId n = {0}; n.i < f->g->node.n; n.i++)
        f->legal[n.i] = (Legal){.engine = -1, .op = HW_OP_HOST};
    for (uint32_t s = 0; s < f->schedule->n_steps; s++)
        for (uint32_t i = 0; i < f->schedule->step[s].n; i++) {
            const Slot *slot = &f->schedule->step[s].slot[i];
            f->legal[slot->node.i] = slot->legal;
        }
}

const Facts *facts_make(Arena *arena, const Schedule *schedule,
                        const HwSpec *spec, const PlanOptions *options,
                        const Memo *memo) {
    const Graph *g = schedule->graph;
    Facts *f = ARENA_NEW(arena, Facts);
    *f = (Facts){.arena = arena,
                 .schedule = schedule,
                 .spec = spec,
                 .g = g,
                 .options = options,
                 .memo = memo,
                 .uses = graph_uses(arena, g),
                 .legal = ARENA_ARRAY(arena, Legal, g->node.n + 1),
                 .copy = ARENA_ARRAY(arena, Legal, g->tensor.n + 1),
                 .role = ARENA_ARRAY(arena, Role, g->tensor.n + 1)};
    for (uint32_t m = 0; m < spec->n_active; m++) {
        Pool pool = pool_of(&spec->memory[m]);
        f->total += round_up(pool.size, pool.align);
    }
    legal_read(f);
    roles_make(f);
    return f;
}

const Facts *facts_on(const Facts *f, const HwSpec *spec) {
    Facts *other = ARENA_COPY(f->arena, Facts, f, 1);
    other->spec = spec;
    return other;
}
