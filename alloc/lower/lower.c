/* lower.c - the ordered actions of a plan, and its placements.
 *
 * Input: alias classes with their residency intervals, modes of nodes, a
 * placement of all buffers. Output: the plan's arrays. Method: walk the steps
 * and keep account of where each tensor's values are: a resident volume that is
 * read and not there is loaded; one that leaves and is needed later is stored,
 * unless it lies outside already. Within a step: loads, runs (or tiles),
 * concats and stores.
 */
#include "alloc/lower/lower.h"
#include "alloc/cascade/cascade.h"
#include "alloc/geometry/tensor_bytes.h"
#include "alloc/live/live.h"
#include "alloc/lower/emit.h"

#include <string.h>

/* ---- concats ---- */

static void bounce(Emit *e, const Bounce *r, uint32_t to) {
    uint32_t from = emit_source(e, r->tensor);
    uint32_t h = plan_volume(e->f->g, r->tensor).h;
    for (uint32_t row = 0; row < h; row += r->rows) {
        uint32_t rows = r->rows < h - row ? r->rows : h - row;
        uint32_t row_tile = emit_row_tile(e, r->buf, r->tensor, row, rows);
        emit_move(e, ACTION_LOAD, from, row_tile, row, rows);
        emit_move(e, ACTION_STORE, row_tile, to, row, rows);
    }
}

/* Bounce buffers of this step: members into the concat's place, or (`outward`)
 * what the outside needs to the output memory. */
static void bounces_now(Emit *e, NodeId id, bool outward) {
    const Node *node = graph_node(e->f->g, id);
    for (uint32_t i = 0; i < e->buffers->bounce.n; i++) {
        const Bounce *r = &e->buffers->bounce.at[i];
        bool is_out = same_tensor(r->tensor, node->out[0]);
        if (r->step == e->step && is_out && outward)
            bounce(e, r, emit_output(e, r->tensor));
        for (uint32_t k = 0; k < node->n_in && !outward; k++)
            if (r->step == e->step && same_tensor(r->tensor, node->in[k]))
                bounce(e, r, emit_home(e, r->tensor));
    }
}

static void concat_add(Emit *e, NodeId id, const uint32_t *in, uint32_t out) {
    Action a =
        emit_new(e, ACTION_CONCAT, graph_node(e->f->g, id)->n_in, in, out);
    a.node = id;
    a.in_rows = a.rows;
    emit_action(e, a);
}

static void concat_dissolved(Emit *e, NodeId id) {
    const Node *node = graph_node(e->f->g, id);
    uint32_t *in = ARENA_ARRAY(e->arena, uint32_t, node->n_in);
    bounces_now(e, id, false);
    for (uint32_t i = 0; i < node->n_in; i++)
        in[i] = emit_home(e, node->in[i]);
    uint32_t out = emit_home(e, node->out[0]);
    concat_add(e, id, in, out);
    e->copy[node->out[0].i] = out;
    bounces_now(e, id, true);
}

static void concat_whole(Emit *e, NodeId id) {
    const Node *node = graph_node(e->f->g, id);
    uint32_t *in = ARENA_ARRAY(e->arena, uint32_t, node->n_in);
    for (uint32_t i = 0; i < node->n_in; i++) {
        emit_load(e, node->in[i]);
        in[i] = e->present[node->in[i].i];
    }
    e->present[node->out[0].i] = emit_resident(e, node->out[0]);
    concat_add(e, id, in, e->present[node->out[0].i]);
}

/* ---- steps ---- */

static void loads(Emit *e, NodeId id) {
    const Node *node = graph_node(e->f->g, id);
    for (uint32_t i = 0; i < node->n_in; i++)
        emit_return(e, node->in[i]);
    if (!result_lands(e->d, id))
        emit_return(e, node->out[0]);
    for (uint32_t i = 0; i < node->n_in && on_engine(e->f, id); i++)
        if (!mode_streams(&e->d->mode[id.i], i) &&
            !pair_passes(e->d, node->in[i]))
            emit_load(e, node->in[i]);
}

/* Those of a fused pair, before either runs. */
static void all_loads(Emit *e, NodeId id) {
    loads(e, id);
    if (e->d->mode[id.i].kind == MODE_PRODUCER)
        loads(e, pair_partner(e->d, id));
}

static void finish(Emit *e, NodeId id) {
    TensorId out = graph_node(e->f->g, id)->out[0];
    if (is_placed(e->f, id) && in_cascade(e->d, id))
        return;
    if (is_placed(e->f, id) && e->d->dissolved[out.i]) {
        concat_dissolved(e, id);
        return;
    }
    if (is_placed(e->f, id))
        concat_whole(e, id);
    else if (!on_engine(e->f, id))
        return;
    if (result_lands(e->d, id))
        emit_land(e, out);
    if (e->d->mode[id.i].streams_out)
        bounces_now(e, id, true);
    else
        emit_store(e, out);
}

static void leave_all(Emit *e, NodeId id) {
    const Node *node = graph_node(e->f->g, id);
    for (uint32_t k = 0; k < node->n_in; k++)
        emit_leave(e, node->in[k]);
    emit_leave(e, node->out[0]);
}

static void step_actions(Emit *e, const Step *step) {
    for (uint32_t i = 0; i < step->n; i++)
        all_loads(e, step->slot[i].node);
    for (uint32_t i = 0; i < step->n; i++)
        emit_run(e, step->slot[i].node);
    for (uint32_t i = 0; i < step->n; i++)
        finish(e, step->slot[i].node);
    for (uint32_t i = 0; i < step->n; i++) {
        NodeId id = step->slot[i].node;
        if (e->d->mode[id.i].kind == MODE_CONSUMER)
            leave_all(e, pair_partner(e->d, id));
        leave_all(e, id);
    }
}

/* ---- the plan ---- */

static uint32_t *nones(Arena *arena, uint32_t n) {
    uint32_t *at = ARENA_ARRAY(arena, uint32_t, n + 1);
    for (uint32_t i = 0; i < n; i++)
        at[i] = NONE;
    return at;
}

static void place_inputs(Emit *e) {
    for (NodeId n = {0}; n.i < e->f->g->node.n; n.i++) {
        const Node *node = graph_node(e->f->g, n);
        if (node->op != OP_INPUT)
            continue;
        TensorId t = node->out[0];
        if (e->f->role[t.i].kept) {
            const Residencies *stays = emit_stays(e, emit_alias(e, t));
            e->present[t.i] = emit_in_residency(e, t, &stays->at[0]);
            continue;
        }
        uint32_t region =
            region_add(&e->regions, t, (uint32_t)e->f->spec->input, false);
        e->copy[t.i] = emit_outside(e, t, region, 0);
    }
}

static void offsets_fill(Emit *e) {
    for (uint32_t i = 0; i < e->placement.n; i++) {
        if (e->region_of.at[i] == NONE)
            continue;
        const Region *r = &e->regions.at.at[e->region_of.at[i]];
        Placement *p = &e->placement.at[i];
        p->offset = r->offset;
        p->first = r->first;
        p->end = r->end;
    }
}

static void plan_fill(const Emit *e, Plan *plan) {
    const Facts *f = e->f;
    plan->schedule = f->schedule;
    plan->n_placements = e->placement.n;
    plan->placement = e->placement.at;
    plan->n_actions = e->action.n;
    plan->action = e->action.at;
    Repl *repl = ARENA_ARRAY(e->arena, Repl, f->g->tensor.n + 1);
    for (uint32_t t = 0; t < f->g->tensor.n; t++)
        repl[t] = f->role[t].repl;
    plan->repl = repl;
    plan->am_height = plan->am_live = 0;
    for (uint32_t m = 0; m < f->spec->n_active; m++) {
        plan->memory_used[m] = e->result->height[m];
        plan->am_height += e->result->height[m];
    }
    for (uint32_t t = 0; t < e->buffers->n_times; t++)
        if (e->buffers->live[t] > plan->am_live)
            plan->am_live = e->buffers->live[t];
    if (plan->am_live > plan->am_height) /* the last one's need not be round */
        plan->am_live = plan->am_height;
}

bool actions_make(Attempt *a, Diag *diag, const Buffers *buffers,
                  const PackResult *result, Plan *plan) {
    Emit e = {.f = a->f,
              .d = &a->d,
              .a = a,
              .arena = a->f->arena,
              .buffers = buffers,
              .result = result,
              .regions = {.arena = a->f->arena, .f = a->f},
              .number = FIRST_STEP};
    e.present = nones(a->f->arena, a->f->g->tensor.n);
    e.stored = ARENA_ARRAY(a->f->arena, uint32_t, a->f->g->tensor.n + 1);
    e.copy = nones(a->f->arena, a->f->g->tensor.n);
    e.output = nones(a->f->arena, a->f->g->tensor.n);
    e.home = nones(a->f->arena, a->f->g->tensor.n);
    place_inputs(&e);
    for (; e.step < a->f->schedule->n_steps && !emit_gives_up(&e) && !e.lost;
         e.step++)
        step_actions(&e, &a->f->schedule->step[e.step]);
    emit_drop_needless(&e);
    memset(plan->memory_used, 0, sizeof plan->memory_used);
    if (emit_gives_up(&e) || e.lost)
        return false;
    emit_spread(&e);
    if (!regions_place(&e.regions, diag, plan->memory_used))
        return false;
    offsets_fill(&e);
    plan_fill(&e, plan);
    return true;
}
