/* bundle_states.c - inputs that outputs were in the call before; see bundler.h.
 *
 * Input: the plan's actions, rooms for states. Output: which next values are
 * made in the room of the state itself; copies of the others behind all
 * actions; the calls that set states to what they start with. Method: the next
 * value may lie where the state does if the state is read for the last time
 * before the first of it is written, or if the plan has them in one buffer, a
 * chain of results in place, of which the next value is the last.
 */
#include "native/bundler.h"

/* The input's node of a state that is one end of it; NO_NODE. */
static NodeId state_at(const Bundler *b, HwKind kind, TensorId tensor) {
    NodeId producer = graph_tensor(b->g, tensor)->producer;
    if (kind == HW_KIND_OUTPUTS)
        return graph_state_of(b->g, tensor);
    bool is = graph_state_next(b->g, graph_node(b->g, producer)).i != NONE;
    return is ? producer : NO_NODE;
}

bool bundle_is_state(const Bundler *b, HwKind kind, TensorId tensor) {
    return state_at(b, kind, tensor).i != NONE;
}

static NativePointer new_room(Bundler *b, TensorId tensor) {
    const Tensor *t = graph_tensor(b->g, tensor);
    uint32_t room = rooms_add(b->rooms, HW_KIND_ACTIVATIONS, t->name,
                              bundle_tensor_bytes(t), 0);
    rooms_use(b->rooms, room, b->plan->n_actions);
    return (NativePointer){.base = NATIVE_ROOM,
                           .index = room,
                           .image = rooms_at(b->rooms, room)->image};
}

NativePointer bundle_state_room(Bundler *b, TensorId state) {
    NativePointer room = new_room(b, state);
    rooms_use(b->rooms, room.index, 0);
    return room;
}

/* ---- one room for both ---- */

static const Placement *placement(const Bundler *b, uint32_t index) {
    return &b->plan->placement[index];
}

static bool is_active(const Bundler *b, const Placement *p) {
    return b->spec->memory[p->memory].role == HW_ACTIVE;
}

/* Whether it is the tensor's place outside, or a buffer that may become it, as
 * nothing else lies there. */
static bool is_its(const Bundler *b, const Placement *p, TensorId tensor) {
    return same_tensor(p->tensor, tensor) &&
           (!is_active(b, p) || b->home[p->buffer].alone);
}

/* Whether the state is read for the last time before the first of what comes
 * next is written, and not in one call with it, which may be of two actions. */
static bool takes_turns(const Bundler *b, TensorId state, TensorId next) {
    uint32_t read_end = 0, first = UINT32_MAX;
    for (uint32_t i = 0; i < b->plan->n_actions; i++) {
        const Action *a = &b->plan->action[i];
        for (uint32_t k = 0; k < a->n_in; k++)
            if (is_its(b, placement(b, a->in[k]), state))
                read_end = i + 1;
        if (is_its(b, placement(b, a->out), state))
            read_end = i + 1;
        if (first == UINT32_MAX && is_its(b, placement(b, a->out), next))
            first = i;
    }
    return read_end < first;
}

/* A buffer of active memory that both have had. */
typedef struct Chain {
    uint32_t buffer;           /* NONE: there is none */
    const Placement *in, *out; /* of the state; what was written last */
} Chain;

static Chain chain_of(const Bundler *b, TensorId state, TensorId next) {
    Chain chain = {.buffer = NONE};
    for (uint32_t i = 0; i < b->plan->n_placements; i++)
        for (uint32_t k = 0; k < b->plan->n_placements; k++)
            if (same_tensor(placement(b, i)->tensor, state) &&
                same_tensor(placement(b, k)->tensor, next) &&
                placement(b, i)->buffer == placement(b, k)->buffer &&
                is_active(b, placement(b, i)))
                chain.buffer = placement(b, i)->buffer;
    for (uint32_t i = 0; i < b->plan->n_actions; i++)
        if (placement(b, b->plan->action[i].out)->buffer == chain.buffer)
            chain.out = placement(b, b->plan->action[i].out);
    return chain;
}

/* Whether the state comes to the buffer once, from its place, before anything
 * else is written there, and is read from its place no more. */
static bool loads_once(const Bundler *b, TensorId state, Chain *chain) {
    bool written = false, loaded = false;
    for (uint32_t i = 0; i < b->plan->n_actions; i++) {
        const Action *a = &b->plan->action[i];
        for (uint32_t k = 0; k < a->n_in; k++) {
            const Placement *p = placement(b, a->in[k]);
            if (!same_tensor(p->tensor, state) || is_active(b, p))
                continue;
            if (written || loaded || a->kind != ACTION_LOAD ||
                placement(b, a->out)->buffer != chain->buffer)
                return false;
            loaded = true;
            chain->in = placement(b, a->out);
        }
        written |= a->kind != ACTION_LOAD &&
                   placement(b, a->out)->buffer == chain->buffer;
    }
    return loaded;
}

/* Of a tensor in active memory, whether it lies as the caller would have it. */
static bool lies_dense(Bundler *b, const Placement *p) {
    Operand lies;
    const Tensor *t = graph_tensor(b->g, p->tensor);
    Operand dense = operand_dense(&t->shape, &t->quant);
    return p->n_c == p->whole.c && bundle_operand(b, p, &lies) &&
           operand_alike(&lies, &dense);
}

/* Whether the buffer can be the state's own room. */
static bool is_chain(Bundler *b, TensorId state, TensorId next, Chain *chain) {
    return chain->buffer != NONE && same_tensor(chain->out->tensor, next) &&
           loads_once(b, state, chain) && lies_dense(b, chain->in) &&
           lies_dense(b, chain->out);
}

static void share(Bundler *b, TensorId state, TensorId next) {
    NativePointer room = b->in[bundle_input(b, state)];
    NativePointer *to = &b->out[bundle_output(b, next)];
    Chain chain = chain_of(b, state, next);
    if (is_chain(b, state, next, &chain)) {
        b->home[chain.buffer].set = true;
        b->home[chain.buffer].pointer = room;
        *to = room;
    } else {
        *to = takes_turns(b, state, next) ? room : new_room(b, next);
    }
}

void bundle_share_states(Bundler *b) {
    for (uint32_t i = 0; i < b->g->node.n; i++) {
        const Node *node = &b->g->node.at[i];
        TensorId next = graph_state_next(b->g, node);
        if (next.i != NONE)
            share(b, node->out[0], next);
    }
}

/* ---- between calls ---- */

static void copy(Bundler *b, Site *site, const Operand *from, NativePointer at,
                 const Tensor *t, NativePointer to) {
    vec_push(b->arena, &site->operand, *from);
    vec_push(b->arena, &site->operand, operand_dense(&t->shape, &t->quant));
    vec_push(b->arena, &site->pointer, at);
    vec_push(b->arena, &site->pointer, to);
    bundle_add_copy(b, site);
}

/* The value at the start: of all elements, or of one for all of them. */
static void start(Bundler *b, const Node *node, NativePointer room) {
    const Tensor *t = graph_tensor(b->g, node->out[0]);
    Operand from = operand_dense(&t->shape, &t->quant);
    ConstId given = node->constant[CONST_VALUE];
    Const *value = ARENA_NEW(b->arena, Const);
    Site site = {0};
    *value = (Const){.shape = {1, {1}}, .kind = CONST_SEEDED}; /* a zero */
    if (given.i != NONE)
        *value = *graph_const(b->g, given);
    else
        from.c_step = from.h_step = from.w_step = 0;
    copy(b, &site, &from, bundle_constant(b, &site, t, value), t, room);
}

void bundle_keep_states(Bundler *b) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->g->node.n; i++) {
        const Node *node = &b->g->node.at[i];
        TensorId next = graph_state_next(b->g, node);
        if (next.i == NONE)
            continue;
        const Tensor *t = graph_tensor(b->g, next);
        Operand from = operand_dense(&t->shape, &t->quant);
        Site site = {0};
        copy(b, &site, &from, b->out[bundle_output(b, next)], t,
             b->in[bundle_input(b, node->out[0])]);
    }
    n = b->call.n;
    for (uint32_t i = 0; i < b->g->node.n; i++) {
        const Node *node = &b->g->node.at[i];
        if (graph_state_next(b->g, node).i != NONE)
            start(b, node, b->in[bundle_input(b, node->out[0])]);
    }
    for (uint32_t i = n; i < b->call.n; i++)
        vec_push(b->arena, &b->start, b->call.at[i]);
    b->call.n = n;
}
