/* alias.c - which tensors share one buffer.
 *
 * Input: a schedule. Output: the role of each tensor, then units: members of a
 * concat lie inside their root parent (offsets of nested parents add); a
 * result in place takes over the buffer of an operand that dies there.
 * Invariant: a tensor belongs to one unit at most, and to none if no engine
 * writes or reads it.
 */
#include "alloc/work.h"

#include "base/arith.h"

static uint32_t made_at(const Work *w, TensorId t) {
    return w->schedule->step_of[graph_tensor(w->g, t)->producer.i];
}

/* ---- concat by placement ---- */

static bool engine_reads(const Work *w, TensorId t) {
    for (uint32_t i = w->uses.start[t.i]; i < w->uses.start[t.i + 1]; i++)
        if (on_engine(w, w->uses.node[i]))
            return true;
    return false;
}

static bool step_divides(const HwMemory *memory, uint32_t c) {
    uint32_t step = layout_part_step(memory->layout);
    return step ? c % step == 0 : c == 0;
}

bool part_has_address(const HwMemory *memory, const Volume *whole, uint32_t c,
                      uint32_t n) {
    return step_divides(memory, c) &&
           layout_part_offset(memory->layout, whole, c) % memory->unit == 0 &&
           layout_part_alone(memory->layout, whole, c, n);
}

bool part_is_volume(const HwMemory *memory, const Volume *whole, uint32_t c,
                    uint32_t n) {
    uint64_t at = layout_part_offset(memory->layout, whole, c);
    return part_has_address(memory, whole, c, n) &&
           (!memory->align || at % memory->align == 0);
}

bool volume_cuts(const Work *w, TensorId t, uint32_t q) {
    for (uint32_t m = 0; m < w->spec->n_active; m++) {
        const HwMemory *memory = &w->spec->memory[m];
        Volume v = volume_in(w, t, m);
        for (uint32_t c = q; c < v.c; c += q)
            if (!part_is_volume(memory, &v, c, smaller32(q, v.c - c)))
                return false;
    }
    return true;
}

static bool parts_addressable(const Work *w, NodeId concat, const Volume *whole,
                              uint32_t base);

/* A part that is loaded, or read by itself, needs an address of its own; so do
 * the parts of a part. */
static bool part_addressable(const Work *w, TensorId t, const Volume *whole,
                             uint32_t c) {
    NodeId producer = graph_tensor(w->g, t)->producer;
    bool placed = is_placed(w, producer);
    if ((!placed && !on_engine(w, producer)) || engine_reads(w, t))
        for (uint32_t m = 0; m < w->spec->n_active; m++)
            if (!part_is_volume(&w->spec->memory[m], whole, c,
                                plan_volume(w->g, t).c))
                return false;
    return !placed || parts_addressable(w, producer, whole, c);
}

static bool parts_addressable(const Work *w, NodeId concat, const Volume *whole,
                              uint32_t base) {
    const Node *node = graph_node(w->g, concat);
    for (uint32_t i = 0; i < node->n_in; i++)
        if (!part_addressable(w, node->in[i], whole,
                              base + w->role[node->in[i].i].part_c))
            return false;
    return true;
}

/* Why the concat cannot be made by placing its members; NULL if it can. */
static const char *placing_fails(const Work *w, const Node *node) {
    uint32_t c = 0;
    Volume whole = plan_volume(w->g, node->out[0]);
    for (uint32_t i = 0; i < node->n_in; i++) {
        TensorId t = node->in[i];
        const char *name = graph_tensor(w->g, t)->name;
        if (w->role[t.i].parent.i != NONE)
            return arena_printf(w->arena, "%s is part of another concat", name);
        for (uint32_t j = 0; j < i; j++)
            if (same_tensor(node->in[j], t))
                return arena_printf(w->arena, "%s is in it twice", name);
        if (!part_addressable(w, t, &whole, c))
            return arena_printf(w->arena,
                                "%s starts at channel %u, which has no "
                                "address of its own",
                                name, c);
        c += plan_volume(w->g, t).c;
    }
    return NULL;
}

static void concat_decide(Work *w, NodeId id) {
    const Node *node = graph_node(w->g, id);
    const char *why = placing_fails(w, node);
    if (why) {
        w->legal[id.i] = legal_elsewhere(w->spec, node, why);
        return;
    }
    uint32_t c = 0;
    for (uint32_t i = 0; i < node->n_in; i++) {
        Role *role = &w->role[node->in[i].i];
        role->parent = node->out[0];
        role->part_c = c;
        c += plan_volume(w->g, node->in[i]).c;
    }
}

static void concats_decide(Work *w) {
    for (uint32_t s = 0; s < w->schedule->n_steps; s++)
        for (uint32_t i = 0; i < w->schedule->step[s].n; i++)
            if (is_placed(w, w->schedule->step[s].slot[i].node))
                concat_decide(w, w->schedule->step[s].slot[i].node);
}

/* ---- roles ---- */

static Origin origin_of(const Work *w, TensorId t) {
    NodeId producer = graph_tensor(w->g, t)->producer;
    if (graph_node(w->g, producer)->op == OP_INPUT)
        return FROM_INPUT;
    if (is_placed(w, producer))
        return FROM_PARTS;
    return on_engine(w, producer) ? FROM_ENGINE : FROM_HOST;
}

static void role_fill(Work *w, TensorId t) {
    Role *role = &w->role[t.i];
    bool host_reads = false;
    role->origin = origin_of(w, t);
    role->over = NO_TENSOR;
    role->made = role->origin == FROM_INPUT ? NONE : made_at(w, t);
    role->last = NONE;
    for (uint32_t i = w->uses.start[t.i]; i < w->uses.start[t.i + 1]; i++) {
        NodeId reader = w->uses.node[i];
        uint32_t step = w->schedule->step_of[reader.i];
        if (on_engine(w, reader)) {
            role->engine_reads = true;
            if (role->last == NONE || step > role->last)
                role->last = step;
        } else if (!is_placed(w, reader)) {
            host_reads = true;
        }
    }
    role->outside =
        (role->origin == FROM_ENGINE || role->origin == FROM_PARTS) &&
        (host_reads || graph_is_output(w->g, t));
}

/* ---- in place ---- */

static bool pointwise(OpKind op) {
    return op == OP_ELTWISE || op == OP_SCALE || op == OP_ACT;
}

static bool in_concat(const Work *w, TensorId t) {
    return w->role[t.i].parent.i != NONE || w->role[t.i].origin == FROM_PARTS;
}

/* Reads of `t` at the step by other nodes, or later than it. */
static bool read_besides(const Work *w, TensorId t, NodeId node) {
    uint32_t step = w->schedule->step_of[node.i];
    for (uint32_t i = w->uses.start[t.i]; i < w->uses.start[t.i + 1]; i++) {
        NodeId reader = w->uses.node[i];
        if (reader.i != node.i && on_engine(w, reader) &&
            w->schedule->step_of[reader.i] >= step)
            return true;
    }
    return false;
}

static bool same_repl(const Repl *a, const Repl *b) {
    return a->full == b->full && a->sections == b->sections &&
           a->units == b->units && a->width == b->width;
}

static bool may_take_place(const Work *w, NodeId id, TensorId operand) {
    const Node *node = graph_node(w->g, id);
    TensorId result = node->out[0];
    if (!on_engine(w, id) || !pointwise(node->op) ||
        !w->spec->engine[w->legal[id.i].engine].in_place ||
        in_concat(w, result) || in_concat(w, operand) || made_ahead(w, operand))
        return false;
    Volume a = plan_volume(w->g, result), b = plan_volume(w->g, operand);
    bool reads = false;
    for (uint32_t i = 0; i < node->n_in; i++)
        reads |= same_tensor(node->in[i], operand);
    return reads && a.c == b.c && a.h == b.h && a.w == b.w &&
           (reach_of(w, id, operand) & reach_of(w, id, result));
}

bool takes_in_place(const Work *w, NodeId id, TensorId operand) {
    TensorId result = graph_node(w->g, id)->out[0];
    return may_take_place(w, id, operand) &&
           same_repl(&w->role[result.i].repl, &w->role[operand.i].repl);
}

static uint64_t whole_least(const Work *w, NodeId id, TensorId t) {
    uint64_t bytes[PLAN_MAX_POOLS];
    pool_bytes(w, t, plan_volume(w->g, t).h, true, bytes);
    return least_bytes(w, bytes, reach_of(w, id, t));
}

/* Copies save time; a result that lies beside its operand for their sake alone
 * goes without, where active memory cannot hold both. */
static void copies_give_way(Work *w, NodeId id) {
    const Node *node = graph_node(w->g, id);
    TensorId result = node->out[0];
    const Repl *chosen = w->options->chosen;
    bool told = chosen && (chosen[result.i].full || chosen[result.i].sections);
    if (told || node->n_in != 1 || !may_take_place(w, id, node->in[0]) ||
        read_besides(w, node->in[0], id))
        return;
    uint64_t both =
        add_capped(whole_least(w, id, node->in[0]), whole_least(w, id, result));
    if (both > active_bytes(w))
        w->role[result.i].repl = w->role[node->in[0].i].repl;
}

/* Of what engines make rather than of what comes from outside, which may pass
 * by slabs. */
static void in_place_decide(Work *w, NodeId id) {
    const Node *node = graph_node(w->g, id);
    for (uint32_t i = 0; i < 2 * node->n_in; i++) {
        TensorId t = node->in[i % node->n_in];
        if (from_outside(w, t) == (i >= node->n_in) &&
            takes_in_place(w, id, t) && !read_besides(w, t, id)) {
            w->role[node->out[0].i].over = t;
            return;
        }
    }
}

bool place_instead(Work *w, NodeId id, TensorId operand) {
    const Node *node = graph_node(w->g, id);
    for (uint32_t i = 0; i < node->n_in; i++)
        if (!same_tensor(node->in[i], operand) &&
            takes_in_place(w, id, node->in[i]) &&
            !read_besides(w, node->in[i], id)) {
            w->role[node->out[0].i].over = node->in[i];
            return true;
        }
    return false;
}

void roles_make(Work *w) {
    for (TensorId t = {0}; t.i < w->g->tensor.n; t.i++)
        w->role[t.i].parent = NO_TENSOR;
    concats_decide(w);
    for (TensorId t = {0}; t.i < w->g->tensor.n; t.i++)
        role_fill(w, t);
    replication_choose(w);
    for (NodeId n = {0}; n.i < w->g->node.n; n.i++)
        copies_give_way(w, n);
    for (NodeId n = {0}; n.i < w->g->node.n; n.i++)
        in_place_decide(w, n);
}

/* ---- units ---- */

/* What encloses the tensor, or what it takes the place of; itself. */
static TensorId outward(const Work *w, TensorId t) {
    const Role *role = &w->role[t.i];
    if (role->parent.i != NONE && !w->role[role->parent.i].dissolved)
        return role->parent;
    return role->over.i != NONE ? role->over : t;
}

/* The last one outward. Chains in place can be long: what is found is kept in
 * root[], by tensor, which starts as NO_TENSOR. */
static TensorId root_of(const Work *w, TensorId t, TensorId *root) {
    TensorId end = t;
    while (root[end.i].i == NONE && !same_tensor(outward(w, end), end))
        end = outward(w, end);
    if (root[end.i].i != NONE)
        end = root[end.i];
    while (root[t.i].i == NONE) {
        root[t.i] = end;
        t = outward(w, t);
    }
    return end;
}

static bool in_active(const Work *w, TensorId t) {
    const Role *role = &w->role[t.i];
    bool whole_parent =
        role->parent.i != NONE && !w->role[role->parent.i].dissolved;
    if (role->origin == FROM_PARTS && role->dissolved)
        return role->engine_reads;
    return role->origin == FROM_ENGINE || role->origin == FROM_PARTS ||
           role->engine_reads || whole_parent;
}

/* A new unit with the root and the `n` tensors of `from` that belong to it. */
static void unit_add(Work *w, TensorId root, const TensorId *from, uint32_t n) {
    const Role *role = &w->role[root.i];
    Unit unit = {.root = root,
                 .concat = role->origin == FROM_PARTS && !role->dissolved};
    unit.complete = unit.concat ? role->made : 0;
    unit.tensor = ARENA_ARRAY(w->arena, TensorId, n + 1);
    unit.tensor[unit.n_tensors++] = root;
    for (uint32_t i = 0; i < n; i++)
        if (!same_tensor(from[i], root))
            unit.tensor[unit.n_tensors++] = from[i];
    for (uint32_t i = 0; i < unit.n_tensors; i++)
        w->unit_of[unit.tensor[i].i] = w->unit.n;
    pool_bytes(w, root, plan_volume(w->g, root).h, role->origin == FROM_PARTS,
               unit.bytes);
    vec_push(w->arena, &w->unit, unit);
}

/* Tensors ordered so that those of one root stand together, ids ascending. */
static void units_from(Work *w, const TensorId *tensor, uint32_t n) {
    uint32_t *start = ARENA_ARRAY(w->arena, uint32_t, w->g->tensor.n + 2);
    TensorId *sorted = ARENA_ARRAY(w->arena, TensorId, n + 1);
    TensorId *root = ARENA_ARRAY(w->arena, TensorId, w->g->tensor.n + 1);
    for (uint32_t i = 0; i < w->g->tensor.n; i++)
        root[i] = NO_TENSOR;
    for (uint32_t i = 0; i < n; i++)
        if (in_active(w, tensor[i]))
            start[root_of(w, tensor[i], root).i + 1]++;
    for (uint32_t i = 0; i < w->g->tensor.n; i++)
        start[i + 1] += start[i];
    uint32_t *at = ARENA_COPY(w->arena, uint32_t, start, w->g->tensor.n + 1);
    for (uint32_t i = 0; i < n; i++)
        if (in_active(w, tensor[i]))
            sorted[at[root_of(w, tensor[i], root).i]++] = tensor[i];
    for (TensorId t = {0}; t.i < w->g->tensor.n; t.i++)
        if (start[t.i + 1] > start[t.i])
            unit_add(w, t, sorted + start[t.i], start[t.i + 1] - start[t.i]);
}

void units_make(Work *w) {
    TensorId *all = ARENA_ARRAY(w->arena, TensorId, w->g->tensor.n + 1);
    for (TensorId t = {0}; t.i < w->g->tensor.n; t.i++) {
        all[t.i] = t;
        w->unit_of[t.i] = NONE;
    }
    units_from(w, all, w->g->tensor.n);
}

uint32_t channel_in_unit(const Work *w, const Unit *unit, TensorId t) {
    uint32_t c = 0;
    while (unit->concat && !same_tensor(t, unit->root)) {
        c += w->role[t.i].part_c;
        t = w->role[t.i].parent;
    }
    return c;
}

/* ---- dissolving ---- */

TensorId home_of(const Work *w, TensorId tensor, uint32_t *c) {
    *c = 0;
    for (;;) {
        const Role *role = &w->role[tensor.i];
        if (role->parent.i == NONE || !w->role[role->parent.i].dissolved)
            return tensor;
        *c += role->part_c;
        tensor = role->parent;
    }
}

/* Whether the members of `parent` can be stored one by one. */
static bool parts_storable(const Work *w, TensorId parent) {
    const Node *node = graph_node(w->g, graph_tensor(w->g, parent)->producer);
    const HwMemory *backing = &w->spec->memory[w->spec->backing];
    uint32_t base;
    Volume whole = plan_volume(w->g, home_of(w, parent, &base));
    for (uint32_t i = 0; i < node->n_in; i++) {
        uint32_t c = base + w->role[node->in[i].i].part_c;
        if (!part_has_address(backing, &whole, c,
                              plan_volume(w->g, node->in[i]).c))
            return false;
    }
    return true;
}

bool unit_dissolve(Work *w, uint32_t unit) {
    Unit *old = &w->unit.at[unit];
    if (!old->concat || w->spec->backing < 0 || !parts_storable(w, old->root))
        return false;
    old->dead = true;
    w->role[old->root.i].dissolved = true;
    TensorId *tensor = old->tensor;
    uint32_t n = old->n_tensors;
    for (uint32_t i = 0; i < n; i++)
        w->unit_of[tensor[i].i] = NONE;
    units_from(w, tensor, n);
    return true;
}
