/* alias.c - which tensors share one buffer.
 *
 * Input: a schedule. Output: the role of each tensor, then alias classes:
 * members of a concat lie inside their root parent (offsets of nested parents
 * add); a result in place takes over the buffer of an operand that dies there.
 * Invariant: a tensor belongs to one alias class at most, and to none if no
 * engine writes or reads it.
 */
#include "alloc/alias/alias.h"
#include "alloc/geometry/tensor_bytes.h"

#include "base/arith.h"

static uint32_t made_at(const Facts *f, TensorId t) {
    return f->schedule->step_of[graph_tensor(f->g, t)->producer.i];
}

/* ---- concat by placement ---- */

/* Whether an engine reads it, or a store that is for the host or an output. */
static bool goes_alone(const Facts *f, TensorId t) {
    for (uint32_t i = f->uses.start[t.i]; i < f->uses.start[t.i + 1]; i++)
        if (!is_placed(f, f->uses.node[i]))
            return true;
    return graph_is_output(f->g, t);
}

static bool step_divides(const HwMemory *memory, uint32_t c) {
    uint32_t step = layout_part_step(memory->layout);
    return step ? c % step == 0 : c == 0;
}

/* Whether an address tells the section in which channel c of the whole lies. */
static bool section_has_address(const HwMemory *memory, const Volume *whole,
                                uint32_t c) {
    return layout_part_offset(memory->layout, whole, c) % memory->unit == 0;
}

bool part_has_address(const HwMemory *memory, const Volume *whole, uint32_t c,
                      uint32_t n) {
    return step_divides(memory, c) && section_has_address(memory, whole, c) &&
           layout_part_alone(memory->layout, whole, c, n);
}

bool part_is_volume(const HwMemory *memory, const Volume *whole, uint32_t c,
                    uint32_t n) {
    uint64_t at = layout_part_offset(memory->layout, whole, c);
    return part_has_address(memory, whole, c, n) &&
           (!memory->align || at % memory->align == 0);
}

bool part_told(const Facts *f, const HwMemory *memory, const Volume *whole,
               uint32_t c, uint32_t n) {
    return hwspec_parts_between(f->spec, memory) ||
           part_is_volume(memory, whole, c, n);
}

bool volume_cuts(const Facts *f, TensorId t, uint32_t q) {
    for (uint32_t m = 0; m < f->spec->n_active; m++) {
        const HwMemory *memory = &f->spec->memory[m];
        Volume v = volume_in(f, t, m);
        for (uint32_t c = q; c < v.c; c += q)
            if (!part_told(f, memory, &v, c, smaller32(q, v.c - c)))
                return false;
    }
    return true;
}

static bool parts_addressable(const Facts *f, NodeId concat,
                              const Volume *whole, uint32_t base);

/* A part that is loaded, read or stored by itself needs an address of its own;
 * of others the section needs one. So do the parts of a part. */
static bool part_addressable(const Facts *f, TensorId t, const Volume *whole,
                             uint32_t c) {
    NodeId producer = graph_tensor(f->g, t)->producer;
    bool placed = is_placed(f, producer);
    bool alone = (!placed && !on_engine(f, producer)) || goes_alone(f, t);
    for (uint32_t m = 0; m < f->spec->n_active; m++) {
        const HwMemory *memory = &f->spec->memory[m];
        if (alone ? !part_told(f, memory, whole, c, plan_volume(f->g, t).c)
                  : !section_has_address(memory, whole, c))
            return false;
    }
    return !placed || parts_addressable(f, producer, whole, c);
}

static bool parts_addressable(const Facts *f, NodeId concat,
                              const Volume *whole, uint32_t base) {
    const Node *node = graph_node(f->g, concat);
    for (uint32_t i = 0; i < node->n_in; i++)
        if (!part_addressable(f, node->in[i], whole,
                              base + f->role[node->in[i].i].part_c))
            return false;
    return true;
}

/* Why the concat cannot be made by placing its members; NULL if it can. */
static const char *placing_fails(const Facts *f, const Node *node) {
    uint32_t c = 0;
    Volume whole = plan_volume(f->g, node->out[0]);
    for (uint32_t i = 0; i < node->n_in; i++) {
        TensorId t = node->in[i];
        const char *name = graph_tensor(f->g, t)->name;
        if (f->role[t.i].parent.i != NONE)
            return arena_printf(f->arena, "%s is part of another concat", name);
        for (uint32_t j = 0; j < i; j++)
            if (same_tensor(node->in[j], t))
                return arena_printf(f->arena, "%s is in it twice", name);
        if (!part_addressable(f, t, &whole, c))
            return arena_printf(f->arena,
                                "%s starts at channel %u, which has no "
                                "address of its own",
                                name, c);
        c += plan_volume(f->g, t).c;
    }
    return NULL;
}

static void concat_decide(Facts *f, NodeId id) {
    const Node *node = graph_node(f->g, id);
    const char *why = placing_fails(f, node);
    if (why) {
        f->legal[id.i] = legal_elsewhere(f->spec, node, why);
        return;
    }
    uint32_t c = 0;
    for (uint32_t i = 0; i < node->n_in; i++) {
        Role *role = &f->role[node->in[i].i];
        role->parent = node->out[0];
        role->part_c = c;
        c += plan_volume(f->g, node->in[i]).c;
    }
}

static void concats_decide(Facts *f) {
    for (uint32_t s = 0; s < f->schedule->n_steps; s++)
        for (uint32_t i = 0; i < f->schedule->step[s].n; i++)
            if (is_placed(f, f->schedule->step[s].slot[i].node))
                concat_decide(f, f->schedule->step[s].slot[i].node);
}

/* Members of what is a member itself, too: the outermost first. */
static void members_measure(Facts *f) {
    for (uint32_t s = f->schedule->n_steps; s-- > 0;)
        for (uint32_t i = f->schedule->step[s].n; i-- > 0;) {
            NodeId id = f->schedule->step[s].slot[i].node;
            const Node *node = graph_node(f->g, id);
            uint32_t at = is_placed(f, id) ? f->role[node->out[0].i].root_c : 0;
            for (uint32_t k = 0; k < node->n_in && is_placed(f, id); k++) {
                Role *role = &f->role[node->in[k].i];
                role->root_c = at + role->part_c;
            }
        }
}

/* ---- roles ---- */

static Origin origin_of(const Facts *f, TensorId t) {
    NodeId producer = graph_tensor(f->g, t)->producer;
    if (graph_node(f->g, producer)->op == OP_INPUT)
        return FROM_INPUT;
    if (is_placed(f, producer))
        return FROM_PARTS;
    return on_engine(f, producer) ? FROM_ENGINE : FROM_HOST;
}

/* A state that is to stay, or what it is in the next call. */
static bool is_kept(const Facts *f, TensorId t) {
    NodeId input = graph_tensor(f->g, t)->producer;
    if (!f->options->states)
        return false;
    if (graph_node(f->g, input)->op != OP_INPUT && graph_is_output(f->g, t))
        input = graph_state_of(f->g, t);
    return input.i != NONE && f->options->states[input.i];
}

static void role_fill(Facts *f, TensorId t) {
    Role *role = &f->role[t.i];
    role->origin = origin_of(f, t);
    role->made = role->origin == FROM_INPUT ? NONE : made_at(f, t);
    role->last = NONE;
    for (uint32_t i = f->uses.start[t.i]; i < f->uses.start[t.i + 1]; i++) {
        NodeId reader = f->uses.node[i];
        uint32_t step = f->schedule->step_of[reader.i];
        if (on_engine(f, reader)) {
            role->engine_reads = true;
            if (role->last == NONE || step > role->last)
                role->last = step;
        } else if (!is_placed(f, reader)) {
            role->host_reads = true;
        }
    }
    role->kept = is_kept(f, t);
    role->outside =
        (role->origin == FROM_ENGINE || role->origin == FROM_PARTS) &&
        (role->host_reads || (graph_is_output(f->g, t) && !role->kept));
}

uint64_t state_bytes(const Facts *f, TensorId state) {
    uint64_t bytes[PACK_MAX_POOLS];
    pool_bytes(f, state, plan_volume(f->g, state).h, true, bytes);
    return least_bytes(f, bytes, UINT32_MAX);
}

/* ---- in place ---- */

/* Code of processors for what goes along channels needs its operand to the end.
 */
static bool may_overwrite(const Facts *f, NodeId id) {
    const Node *node = graph_node(f->g, id);
    bool pointwise =
        node->op == OP_ELTWISE || node->op == OP_SCALE || node->op == OP_ACT;
    return pointwise ||
           (node_goes_by_pixel(node) && f->legal[id.i].op != HW_OP_LAYER);
}

static bool in_concat(const Facts *f, TensorId t) {
    return f->role[t.i].parent.i != NONE || f->role[t.i].origin == FROM_PARTS;
}

/* Reads of `t` at the step by other nodes, or later than it. */
static bool read_besides(const Facts *f, TensorId t, NodeId node) {
    uint32_t step = f->schedule->step_of[node.i];
    for (uint32_t i = f->uses.start[t.i]; i < f->uses.start[t.i + 1]; i++) {
        NodeId reader = f->uses.node[i];
        if (reader.i != node.i && on_engine(f, reader) &&
            f->schedule->step_of[reader.i] >= step)
            return true;
    }
    return false;
}

static bool same_repl(const Repl *a, const Repl *b) {
    return a->full == b->full && a->sections == b->sections &&
           a->units == b->units && a->width == b->width;
}

static bool may_take_place(const Facts *f, NodeId id, TensorId operand) {
    const Node *node = graph_node(f->g, id);
    TensorId result = node->out[0];
    if (!on_engine(f, id) || !may_overwrite(f, id) ||
        !f->spec->engine[f->legal[id.i].engine].in_place ||
        in_concat(f, result) || in_concat(f, operand) || made_ahead(f, operand))
        return false;
    Volume a = plan_volume(f->g, result), b = plan_volume(f->g, operand);
    bool reads = false;
    for (uint32_t i = 0; i < node->n_in; i++)
        reads |= same_tensor(node->in[i], operand);
    return reads && a.c == b.c && a.h == b.h && a.w == b.w &&
           (reach_of(f, id, operand) & reach_of(f, id, result));
}

bool takes_in_place(const Facts *f, NodeId id, TensorId operand) {
    TensorId result = graph_node(f->g, id)->out[0];
    return may_take_place(f, id, operand) &&
           same_repl(&f->role[result.i].repl, &f->role[operand.i].repl);
}

static uint64_t whole_least(const Facts *f, NodeId id, TensorId t) {
    uint64_t bytes[PACK_MAX_POOLS];
    pool_bytes(f, t, plan_volume(f->g, t).h, true, bytes);
    return least_bytes(f, bytes, reach_of(f, id, t));
}

/* Copies save time; a result that lies beside its operand for their sake alone
 * goes without, where active memory cannot hold both. */
static void copies_give_way(Facts *f, NodeId id) {
    const Node *node = graph_node(f->g, id);
    TensorId result = node->out[0];
    const Repl *chosen = f->options->chosen;
    bool told = chosen && (chosen[result.i].full || chosen[result.i].sections);
    if (told || node->n_in != 1 || !may_take_place(f, id, node->in[0]) ||
        read_besides(f, node->in[0], id))
        return;
    uint64_t both =
        add_capped(whole_least(f, id, node->in[0]), whole_least(f, id, result));
    if (both > active_bytes(f))
        f->role[result.i].repl = f->role[node->in[0].i].repl;
}

/* Of what engines make rather than of what comes from outside, which may pass
 * by channel tiles. */
static void in_place_decide(Decisions *d, NodeId id) {
    const Facts *f = d->f;
    const Node *node = graph_node(f->g, id);
    for (uint32_t i = 0; i < 2 * node->n_in; i++) {
        TensorId t = node->in[i % node->n_in];
        if (from_outside(f, t) == (i >= node->n_in) &&
            takes_in_place(f, id, t) && !read_besides(f, t, id)) {
            d->over[node->out[0].i] = t;
            return;
        }
    }
}

bool place_instead(Decisions *d, NodeId id, TensorId operand) {
    const Facts *f = d->f;
    const Node *node = graph_node(f->g, id);
    for (uint32_t i = 0; i < node->n_in; i++)
        if (!same_tensor(node->in[i], operand) &&
            takes_in_place(f, id, node->in[i]) &&
            !read_besides(f, node->in[i], id)) {
            d->over[node->out[0].i] = node->in[i];
            return true;
        }
    return false;
}

void roles_make(Facts *f) {
    for (TensorId t = {0}; t.i < f->g->tensor.n; t.i++)
        f->role[t.i].parent = NO_TENSOR;
    concats_decide(f);
    members_measure(f);
    for (TensorId t = {0}; t.i < f->g->tensor.n; t.i++)
        role_fill(f, t);
    replication_choose(f);
    for (NodeId n = {0}; n.i < f->g->node.n; n.i++)
        copies_give_way(f, n);
    for (TensorId t = {0}; t.i < f->g->tensor.n; t.i++)
        if (f->role[t.i].kept && f->role[t.i].origin == FROM_INPUT)
            f->kept += state_bytes(f, t);
}

/* The first of a chain of results in place. */
static TensorId chain_root(const Decisions *d, TensorId t) {
    while (d->over[t.i].i != NONE)
        t = d->over[t.i];
    return t;
}

/* The last step at which an engine needs a tensor of the chain. */
static uint32_t chain_last(const Decisions *d, TensorId root) {
    const Facts *f = d->f;
    uint32_t last = 0;
    for (TensorId t = {0}; t.i < f->g->tensor.n; t.i++) {
        const Role *role = &f->role[t.i];
        if (chain_root(d, t).i != root.i)
            continue;
        if (role->last != NONE && role->last > last)
            last = role->last;
        if (role->made != NONE && role->made > last)
            last = role->made;
    }
    return last;
}

/* Nothing takes the place of the tensor, which is needed to the end. */
static void stand_apart(Decisions *d, TensorId t) {
    for (TensorId k = {0}; k.i < d->f->g->tensor.n; k.i++)
        if (same_tensor(d->over[k.i], t))
            d->over[k.i] = NO_TENSOR;
}

bool state_follows(Decisions *d, NodeId input) {
    const Facts *f = d->f;
    const Node *node = graph_node(f->g, input);
    TensorId state = node->out[0], next = graph_state_next(f->g, node);
    const Role *role = &f->role[state.i], *to = &f->role[next.i];
    if (!role->engine_reads || role->host_reads || to->host_reads ||
        to->origin != FROM_ENGINE || in_concat(f, state) ||
        in_concat(f, next) || !same_repl(&role->repl, &to->repl))
        return false;
    stand_apart(d, next);
    TensorId root = chain_root(d, next);
    if (same_tensor(root, state))
        return true;
    if (chain_last(d, state) >= f->role[root.i].made)
        root = next; /* not in place of another */
    if (chain_last(d, state) >= f->role[root.i].made || in_concat(f, root))
        return false;
    d->over[root.i] = state;
    return true;
}

void in_place_make(Decisions *d) {
    const Graph *g = d->f->g;
    for (TensorId t = {0}; t.i < g->tensor.n; t.i++)
        d->over[t.i] = NO_TENSOR;
    for (NodeId n = {0}; n.i < g->node.n; n.i++)
        in_place_decide(d, n);
    for (NodeId n = {0}; d->f->options->states && n.i < g->node.n; n.i++)
        if (d->f->options->states[n.i])
            state_follows(d, n);
}

/* ---- alias classes ---- */

/* What encloses the tensor, or what it takes the place of; itself. */
static TensorId outward(const Decisions *d, TensorId t) {
    const Role *role = &d->f->role[t.i];
    if (role->parent.i != NONE && !d->dissolved[role->parent.i])
        return role->parent;
    return d->over[t.i].i != NONE ? d->over[t.i] : t;
}

/* The last one outward. Chains in place can be long: what is found is kept in
 * root[], by tensor, which starts as NO_TENSOR. */
static TensorId root_of(const Decisions *d, TensorId t, TensorId *root) {
    TensorId end = t;
    while (root[end.i].i == NONE && !same_tensor(outward(d, end), end))
        end = outward(d, end);
    if (root[end.i].i != NONE)
        end = root[end.i];
    while (root[t.i].i == NONE) {
        root[t.i] = end;
        t = outward(d, t);
    }
    return end;
}

static bool in_active(const Decisions *d, TensorId t) {
    const Role *role = &d->f->role[t.i];
    bool whole_parent = role->parent.i != NONE && !d->dissolved[role->parent.i];
    if (role->origin == FROM_PARTS && d->dissolved[t.i])
        return role->engine_reads;
    return role->origin == FROM_ENGINE || role->origin == FROM_PARTS ||
           role->engine_reads || whole_parent;
}

/* A new alias class with the root and the `n` tensors of `from` that belong to
 * it. */
static void alias_add(Decisions *d, TensorId root, const TensorId *from,
                      uint32_t n) {
    const Facts *f = d->f;
    const Role *role = &f->role[root.i];
    AliasClass alias = {.root = root,
                        .concat = role->origin == FROM_PARTS &&
                                  !d->dissolved[root.i]};
    alias.complete = alias.concat ? role->made : 0;
    alias.tensor = ARENA_ARRAY(f->arena, TensorId, n + 1);
    alias.tensor[alias.n_tensors++] = root;
    for (uint32_t i = 0; i < n; i++)
        if (!same_tensor(from[i], root))
            alias.tensor[alias.n_tensors++] = from[i];
    for (uint32_t i = 0; i < alias.n_tensors; i++)
        d->alias_of[alias.tensor[i].i] = d->alias.n;
    for (uint32_t i = 0; i < alias.n_tensors; i++)
        alias.kept |= f->role[alias.tensor[i].i].kept;
    pool_bytes(f, root, plan_volume(f->g, root).h, role->origin == FROM_PARTS,
               alias.bytes);
    vec_push(f->arena, &d->alias, alias);
}

/* Tensors ordered so that those of one root stand together, ids ascending. */
static void aliases_from(Decisions *d, const TensorId *tensor, uint32_t n) {
    const Facts *f = d->f;
    uint32_t *start = ARENA_ARRAY(f->arena, uint32_t, f->g->tensor.n + 2);
    TensorId *sorted = ARENA_ARRAY(f->arena, TensorId, n + 1);
    TensorId *root = ARENA_ARRAY(f->arena, TensorId, f->g->tensor.n + 1);
    for (uint32_t i = 0; i < f->g->tensor.n; i++)
        root[i] = NO_TENSOR;
    for (uint32_t i = 0; i < n; i++)
        if (in_active(d, tensor[i]))
            start[root_of(d, tensor[i], root).i + 1]++;
    for (uint32_t i = 0; i < f->g->tensor.n; i++)
        start[i + 1] += start[i];
    uint32_t *at = ARENA_COPY(f->arena, uint32_t, start, f->g->tensor.n + 1);
    for (uint32_t i = 0; i < n; i++)
        if (in_active(d, tensor[i]))
            sorted[at[root_of(d, tensor[i], root).i]++] = tensor[i];
    for (TensorId t = {0}; t.i < f->g->tensor.n; t.i++)
        if (start[t.i + 1] > start[t.i])
            alias_add(d, t, sorted + start[t.i], start[t.i + 1] - start[t.i]);
}

void aliases_make(Decisions *d) {
    const Facts *f = d->f;
    TensorId *all = ARENA_ARRAY(f->arena, TensorId, f->g->tensor.n + 1);
    for (TensorId t = {0}; t.i < f->g->tensor.n; t.i++) {
        all[t.i] = t;
        d->alias_of[t.i] = NONE;
    }
    aliases_from(d, all, f->g->tensor.n);
}

uint32_t channel_in_alias(const Facts *f, const AliasClass *alias, TensorId t) {
    return alias->concat ? f->role[t.i].root_c - f->role[alias->root.i].root_c
                         : 0;
}

/* ---- dissolving ---- */

TensorId home_of(const Decisions *d, TensorId tensor, uint32_t *c) {
    *c = 0;
    for (;;) {
        const Role *role = &d->f->role[tensor.i];
        if (role->parent.i == NONE || !d->dissolved[role->parent.i])
            return tensor;
        *c += role->part_c;
        tensor = role->parent;
    }
}

/* Whether the members of `parent` can be stored one by one. */
static bool parts_storable(const Decisions *d, TensorId parent) {
    const Facts *f = d->f;
    const Node *node = graph_node(f->g, graph_tensor(f->g, parent)->producer);
    const HwMemory *backing = &f->spec->memory[f->spec->backing];
    uint32_t base;
    Volume whole = plan_volume(f->g, home_of(d, parent, &base));
    for (uint32_t i = 0; i < node->n_in; i++) {
        uint32_t c = base + f->role[node->in[i].i].part_c;
        if (!hwspec_parts_between(f->spec, backing) &&
            !part_has_address(backing, &whole, c,
                              plan_volume(f->g, node->in[i]).c))
            return false;
    }
    return true;
}

bool alias_dissolve(Decisions *d, uint32_t alias) {
    AliasClass *old = &d->alias.at[alias];
    if (!old->concat || d->f->spec->backing < 0 ||
        !parts_storable(d, old->root))
        return false;
    old->dead = true;
    d->dissolved[old->root.i] = true;
    TensorId *tensor = old->tensor;
    uint32_t n = old->n_tensors;
    for (uint32_t i = 0; i < n; i++)
        d->alias_of[tensor[i].i] = NONE;
    aliases_from(d, tensor, n);
    return true;
}
