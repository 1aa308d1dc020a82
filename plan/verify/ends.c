/* ends.c - inputs and states that are there before the first action, outputs
 * and states behind the last one; see judge.h.
 */
#include "plan/verify/judge.h"

/* Where the state begins: outside, or in active memory where it stays. */
static const Placement *state_place(const Judge *j, const Node *input) {
    const Placement *found = NULL;
    for (uint32_t i = 0; i < j->plan->n_placements; i++) {
        const Placement *p = &j->plan->placement[i];
        if (same_tensor(p->tensor, input->out[0]) &&
            (!found || role_of(j, i) != HW_ACTIVE))
            found = p;
    }
    return found;
}

void judge_inputs(Judge *j) {
    for (uint32_t i = 0; i < j->plan->n_placements; i++) {
        const Placement *p = &j->plan->placement[i];
        NodeId producer = graph_tensor(j->g, p->tensor)->producer;
        if (graph_node(j->g, producer)->op == OP_INPUT &&
            role_of(j, i) == HW_INPUT && p->part_c == 0 &&
            !areas_find(j->areas, p))
            judge_write(j, i, all_of(p));
    }
    for (uint32_t i = 0; i < j->g->node.n; i++) {
        const Node *node = &j->g->node.at[i];
        const Placement *p = NULL;
        if (graph_state_next(j->g, node).i != NONE)
            p = state_place(j, node);
        if (p && j->spec->memory[p->memory].role == HW_ACTIVE)
            judge_write(j, (uint32_t)(p - j->plan->placement), all_of(p));
    }
}

static bool lies_outside(Judge *j, TensorId t) {
    for (uint32_t i = 0; i < j->plan->n_placements; i++) {
        const Placement *p = &j->plan->placement[i];
        if (same_tensor(p->tensor, t) && role_of(j, i) != HW_ACTIVE &&
            p->n_c == plan_volume(j->g, t).c &&
            areas_read(j->areas, p, all_of(p)))
            return true;
    }
    return false;
}

/* Whether the state lies in active memory alone, and what it is in the next
 * call there, at the end. */
static bool state_stays(Judge *j, TensorId next) {
    NodeId input = graph_state_of(j->g, next);
    if (input.i == NONE)
        return false;
    const Placement *state = state_place(j, graph_node(j->g, input));
    for (uint32_t i = 0; state && i < j->plan->n_placements; i++) {
        const Placement *p = &j->plan->placement[i];
        if (same_tensor(p->tensor, next) && placement_same(p, state) &&
            areas_read(j->areas, p, all_of(p)))
            return true;
    }
    return false;
}

const char *judge_end(Judge *j) {
    for (uint32_t s = 0; s < j->plan->schedule->n_steps; s++) {
        const Step *step = &j->plan->schedule->step[s];
        for (uint32_t i = 0; i < step->n; i++) {
            const Node *node = graph_node(j->g, step->slot[i].node);
            Volume v = plan_volume(j->g, node->out[0]);
            const Turn *t = &j->turn[step->slot[i].node.i];
            if (t->rows != v.h || (t->right && t->right != v.w))
                return arena_printf(j->arena, "%s is not computed, or twice",
                                    node->name);
        }
    }
    for (uint32_t i = 0; i < j->g->output.n; i++)
        if (!lies_outside(j, j->g->output.at[i]) &&
            !state_stays(j, j->g->output.at[i]))
            return arena_printf(j->arena, "output %s is nowhere outside",
                                graph_tensor(j->g, j->g->output.at[i])->name);
    return NULL;
}
