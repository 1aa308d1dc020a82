/* dataflow.c - who reads whose results, and from which row or column on: what
 * does not change from plan to plan, found once.
 *
 * Input: a schedule. Output: by step, of its first node: the steps that make
 * its operands and read its result, and a table of the first row, or column, of
 * the operands that lies behind each one of the result. Tables are made when
 * they are first asked for; long ones are not, as networks come from anywhere.
 * Invariant: what is found is what graph_uses and axis_needed say.
 */
#include "alloc/cascade/cascade.h"

/* Of makers[] and readers[]: those of all steps, one behind the other. */
typedef struct Fill {
    const Schedule *schedule;
    Uses uses;
    uint32_t *step, n;
} Fill;

static void fill_add(Fill *f, NodeId id) {
    f->step[f->n++] = f->schedule->step_of[id.i];
}

static uint32_t rows_of_turn(const HwSpec *spec, const Slot *slot) {
    int32_t engine = slot->legal.engine;
    uint32_t rows = engine < 0 ? 1 : spec->engine[engine].unroll.out_h;
    return rows ? rows : 1;
}

static void step_fill(Fill *f, FlowStep *s, const Slot *slot) {
    const Graph *g = f->schedule->graph;
    NodeId id = slot->node;
    const Node *node = graph_node(g, id);
    uint32_t result = node->out[0].i;
    *s =
        (FlowStep){.node = id, .maker = f->step + f->n, .n_makers = node->n_in};
    for (uint32_t k = 0; k < node->n_in; k++)
        fill_add(f, graph_tensor(g, node->in[k])->producer);
    s->reader = f->step + f->n;
    for (uint32_t i = f->uses.start[result]; i < f->uses.start[result + 1]; i++)
        fill_add(f, f->uses.node[i]);
    s->n_readers = f->uses.start[result + 1] - f->uses.start[result];
    Volume v = plan_volume(g, node->out[0]);
    for (uint32_t axis = 0; axis < 2; axis++) {
        s->size[axis] = axis ? v.w : v.h;
        s->quantum[axis] = node_quantum(g, id, axis);
    }
    s->turn = s->quantum[0] * rows_of_turn(f->schedule->spec, slot);
}

FlowStep *flow_new(Arena *arena, const Schedule *schedule) {
    const Graph *g = schedule->graph;
    FlowStep *flow = ARENA_ARRAY(arena, FlowStep, schedule->n_steps + 1);
    Fill f = {.schedule = schedule, .uses = graph_uses(arena, g)};
    uint32_t all = f.uses.start[g->tensor.n];
    f.step = ARENA_ARRAY(arena, uint32_t, 2 * (size_t)all + 1);
    for (uint32_t s = 0; s < schedule->n_steps; s++)
        if (schedule->step[s].n)
            step_fill(&f, &flow[s], &schedule->step[s].slot[0]);
    return flow;
}

uint32_t flow_ask(const Facts *f, FlowStep *s, uint32_t axis, uint32_t at) {
    enum { MOST = 1 << 14 };
    uint32_t n = s->size[axis];
    if (n > MOST || at >= n)
        return axis_needed(f->g, s->node, axis, at, 1).in_row;
    uint32_t *first = ARENA_ARRAY(f->memo->arena, uint32_t, n);
    for (uint32_t i = 0; i < n; i++)
        first[i] = axis_needed(f->g, s->node, axis, i, 1).in_row;
    s->first[axis] = first;
    s->n_first[axis] = n;
    return first[at];
}
