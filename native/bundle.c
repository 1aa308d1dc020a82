/* bundle.c - a plan as one function; see native.h.
 *
 * Input: a plan whose layers all run on a processor. Output: a call for each of
 * its actions, in its order.
 * Method: each buffer of the plan becomes a room, alive from the first call
 * that uses it to the last; inputs, outputs and what is loaded are rooms or the
 * caller's, as the hwspec says; rooms.c places them all together. Loads and
 * stores become copies, or nothing where the layer can use the original. */
#include "native/bundler.h"

#include "native/codes.h"

#include <string.h>

NativeTarget native_target(const HwSpec *spec) {
    const HwNative *native = &spec->native;
    return (NativeTarget){native->triple ? native->triple : "", native->cpu,
                          native->features, native->lanes};
}

/* ---- where tensors are ---- */

/* Does the operand say where the layout has each element? */
static bool says_layout(const Operand *o, const LayoutTables *t, uint32_t cell,
                        const Volume *whole, uint32_t part_c) {
    uint32_t c, h, w;
    shape_chw(&o->shape, &c, &h, &w);
    for (uint32_t i = 0; i < c; i++)
        if (t->c_at[part_c + i] - t->c_at[part_c] !=
            cell * (i / o->block * o->c_step + i % o->block))
            return false;
    for (uint32_t i = 0; i < h; i++)
        if (t->h_at[i] != cell * i * o->h_step)
            return false;
    for (uint32_t i = 0; i < w; i++)
        if (t->w_at[i] != cell * i * o->w_step)
            return false;
    return part_c + c <= whole->c;
}

/* The placement as an operand; false where the layout is no blocks of
 * channels. The caller's arrays have no gaps between elements. */
bool bundle_operand(Bundler *b, const Placement *p, Operand *out) {
    const HwMemory *memory = &b->spec->memory[p->memory];
    const Layout *layout = memory->layout;
    const Tensor *tensor = graph_tensor(b->g, p->tensor);
    const Volume *whole = &p->whole;
    LayoutTables t = layout_tables(b->arena, layout, whole);
    uint32_t granule = layout_granule(layout), cell = layout->element;
    uint32_t block = granule ? granule : whole->c;
    *out = (Operand){
        .shape = tensor->shape, .block = block, .quant = tensor->quant};
    out->cell = memory->role == HW_ACTIVE ? cell : operand_size(out);
    if (block < whole->c)
        out->c_step = (t.c_at[block] - t.c_at[0]) / cell;
    if (whole->h > 1)
        out->h_step = (t.h_at[1] - t.h_at[0]) / cell;
    if (whole->w > 1)
        out->w_step = (t.w_at[1] - t.w_at[0]) / cell;
    return cell >= operand_size(out) &&
           says_layout(out, &t, cell, whole, p->part_c);
}

static uint32_t input_index(const Bundler *b, TensorId tensor) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->g->node.n; i++) {
        const Node *node = &b->g->node.at[i];
        if (node->op != OP_INPUT)
            continue;
        if (same_tensor(node->out[0], tensor))
            return n;
        n++;
    }
    return NONE;
}

static uint32_t output_index(const Bundler *b, TensorId tensor) {
    for (uint32_t i = 0; i < b->g->output.n; i++)
        if (same_tensor(b->g->output.at[i], tensor))
            return i;
    return NONE;
}

static bool refuse(const Bundler *b, TensorId tensor, const char *why) {
    const Tensor *t = graph_tensor(b->g, tensor);
    diag_error(b->diag, t->loc, "no bundle for %s: %s %s", b->spec->machine,
               t->name, why);
    return false;
}

static OpKind producer_op(const Bundler *b, TensorId tensor) {
    return graph_node(b->g, graph_tensor(b->g, tensor)->producer)->op;
}

/* Values that the network brings along are among the weights. */
static NativePointer constant_pointer(Bundler *b, Site *site, TensorId tensor) {
    const Tensor *t = graph_tensor(b->g, tensor);
    const Node *node = graph_node(b->g, t->producer);
    const Const *value = graph_const(b->g, node->constant[CONST_VALUE]);
    ConstKind kind = CONST_F32;
    if (t->quant.type != QUANT_NONE) {
        value = codes_of_reals(b->arena, &t->quant, value);
        kind = value->kind;
    }
    return b->where == WEIGHTS_LOADED
               ? bundle_load_operand(b, site, value, kind, node->name)
               : maker_constant(b->maker, value, kind);
}

/* A room, where the plan's buffer has none yet. */
static NativePointer active_pointer(Bundler *b, const Placement *p) {
    Home *home = &b->home[p->buffer];
    if (!home->set) {
        home->set = true;
        const char *name = graph_tensor(b->g, p->tensor)->name;
        uint32_t room =
            rooms_add(b->rooms, HW_KIND_ACTIVATIONS, name, p->bytes, 0);
        home->pointer =
            (NativePointer){.base = NATIVE_ROOM,
                            .index = room,
                            .image = rooms_at(b->rooms, room)->image};
    }
    NativePointer at = home->pointer;
    at.offset += layout_part_offset(b->spec->memory[p->memory].layout,
                                    &p->whole, p->part_c);
    return at;
}

static bool outside_pointer(Bundler *b, const Placement *p,
                            NativePointer *out) {
    bool is_in = b->spec->memory[p->memory].role == HW_INPUT;
    uint32_t index =
        is_in ? input_index(b, p->tensor) : output_index(b, p->tensor);
    if (index == NONE)
        return refuse(b, p->tensor, "is the host's");
    *out = is_in ? b->in[index] : b->out[index];
    return true;
}

bool bundle_pointer(Bundler *b, Site *site, const Placement *p,
                    NativePointer *out) {
    const HwMemory *memory = &b->spec->memory[p->memory];
    if (memory->role == HW_BACKING)
        return refuse(b, p->tensor, "does not fit into the workspace");
    if (memory->role == HW_ACTIVE)
        *out = active_pointer(b, p);
    else if (producer_op(b, p->tensor) == OP_CONSTANT)
        *out = constant_pointer(b, site, p->tensor);
    else if (!outside_pointer(b, p, out))
        return false;
    if (out->base == NATIVE_ROOM)
        rooms_use(b->rooms, out->index, b->at);
    return true;
}

/* ---- calls ---- */

static bool add_placed(Bundler *b, Site *site, uint32_t placement) {
    const Placement *p = &b->plan->placement[placement];
    Operand operand;
    NativePointer pointer;
    uint32_t rows = plan_volume(b->g, p->tensor).h;
    if (p->row != 0 || p->rows != rows || p->ring)
        return refuse(b, p->tensor, "is there in part only");
    if (!bundle_operand(b, p, &operand))
        return refuse(
            b, p->tensor,
            "lies in no blocks of channels, or in too small elements");
    if (!bundle_pointer(b, site, p, &pointer))
        return false;
    vec_push(b->arena, &site->operand, operand);
    vec_push(b->arena, &site->pointer, pointer);
    return true;
}

static bool add_places(Bundler *b, Site *site, const Action *action) {
    for (uint32_t i = 0; i < action->n_in; i++)
        if (!add_placed(b, site, action->in[i]))
            return false;
    return add_placed(b, site, action->out);
}

int32_t bundle_operand_under(const Site *site, uint32_t n_in) {
    const NativePointer *out = &site->pointer.at[n_in];
    for (uint32_t i = 0; i < n_in; i++)
        if (site->pointer.at[i].base == out->base &&
            site->pointer.at[i].index == out->index &&
            site->pointer.at[i].offset == out->offset)
            return (int32_t)i;
    return -1;
}

static void add_call(Bundler *b, const Site *site, const Kernel *kernel) {
    NativeCall call = {.kernel = maker_kernel(b->maker, kernel),
                       .n = site->pointer.n,
                       .n_loads = site->load.n,
                       .pieces = 1,
                       .pointer = site->pointer.at,
                       .load = site->load.at};
    vec_push(b->arena, &b->call, call);
}

const QuantLayer *bundle_move_rule(Arena *arena, const Quant *q) {
    const QuantTypeInfo *type = &quant_type[q->type];
    QuantLayer *layer = ARENA_NEW(arena, QuantLayer);
    *layer = (QuantLayer){.rule = QUANT_MOVES, .lo = type->lo, .hi = type->hi};
    return q->type == QUANT_NONE ? NULL : layer;
}

static bool add_copy(Bundler *b, const Action *action) {
    Site site = {0};
    if (!add_places(b, &site, action))
        return false;
    if (bundle_operand_under(&site, 1) == 0)
        return true; /* it is there already */
    Kernel kernel = {.kind = op_info[OP_IDENTITY].name,
                     .n_in = 1,
                     .n_out = 1,
                     .in = &site.operand.at[0],
                     .out = &site.operand.at[1],
                     .quant =
                         bundle_move_rule(b->arena, &site.operand.at[0].quant),
                     .over = -1};
    add_call(b, &site, &kernel);
    return true;
}

static bool engine_overlaps(const Bundler *b, const Action *action) {
    uint32_t allowed = b->spec->engine[action->legal.engine].overlap;
    bool pool = graph_node(b->g, action->node)->op == OP_POOL;
    return allowed >> (pool ? HW_OVERLAP_POOL : HW_OVERLAP_DEPTHWISE) & 1;
}

bool bundle_fills_room(const Placement *p, const NativePointer *pointer) {
    return pointer->base == NATIVE_ROOM && p->n_c == p->whole.c;
}

/* May the result lie over its operand's rows, since that is not needed any
 * more? */
static void let_overlap(Bundler *b, const Action *action, const Site *site,
                        Kernel *kernel) {
    const Placement *in = &b->plan->placement[action->in[0]];
    const Placement *out = &b->plan->placement[action->out];
    const NativePointer *from = &site->pointer.at[0];
    const NativePointer *to = &site->pointer.at[1];
    int64_t ahead;
    if (action->n_in != 1 || !engine_overlaps(b, action) ||
        !bundle_fills_room(in, from) || !bundle_fills_room(out, to) ||
        from->index == to->index || b->home[in->buffer].last != b->at ||
        rooms_at(b->rooms, to->index)->first != b->at ||
        !kernel_ahead(kernel, &ahead))
        return;
    int64_t grows = (int64_t)to->image - (int64_t)from->image;
    grows = grows > 0 ? grows : 0;
    kernel->overlaps = true;
    rooms_overlap(b->rooms, to->index, from->index, grows, ahead - grows);
}

void bundle_add_call(Bundler *b, Site *site, const Kernel *kernel,
                     const Const *value) {
    for (uint32_t i = 0; i < kernel->n_constants; i++) {
        NativePointer pointer = maker_packed(b->maker, kernel, i, &value[i], 0);
        vec_push(b->arena, &site->pointer, pointer);
    }
    add_call(b, site, kernel);
}

static bool add_layer(Bundler *b, const Action *action) {
    const Node *node = graph_node(b->g, action->node);
    Site site = {0};
    if (!add_places(b, &site, action))
        return false;
    uint32_t n_in = action->n_in;
    Kernel *kernel = ARENA_NEW(b->arena, Kernel);
    const Const *value;
    *kernel = native_kernel(b->arena, b->g, action->node, site.operand.at,
                            &site.operand.at[n_in], &value);
    kernel->n_out = 1;
    kernel->over = bundle_operand_under(&site, n_in);
    const char *why = b->backend->refuse(kernel);
    if (why) {
        diag_error(b->diag, node->loc, "no native code for layer %s: %s",
                   node->name, why);
        return false;
    }
    let_overlap(b, action, &site, kernel);
    if (b->where == WEIGHTS_LOADED && kernel->n_constants) {
        bundle_load_layer(b, &site, kernel, value, node->name);
        return true;
    }
    bundle_add_call(b, &site, kernel, value);
    return true;
}

static bool add_tiles_or_layer(Bundler *b, const Action *action) {
    uint32_t taken;
    if (!bundle_tile(b, action, &taken) ||
        (taken == 0 && !bundle_fuse(b, action, &taken)))
        return false;
    if (taken == 0)
        return add_layer(b, action);
    b->at += taken - 1;
    return true;
}

static bool add_action(Bundler *b, const Action *action) {
    const Node *node;
    switch (action->kind) {
    case ACTION_LOAD:
    case ACTION_STORE:
    case ACTION_COPY:
        return add_copy(b, action);
    case ACTION_RUN:
        node = graph_node(b->g, action->node);
        if (action->legal.op == HW_OP_LAYER && action->n_tiles < 2)
            return add_tiles_or_layer(b, action);
        diag_error(b->diag, node->loc,
                   "no bundle for %s: layer %s is an instruction",
                   b->spec->machine, node->name);
        return false;
    case ACTION_CONCAT:
        return true;
    case ACTION_HOST:
        node = graph_node(b->g, action->node);
        if (node->op == OP_CONSTANT)
            return true;
        diag_error(b->diag, node->loc,
                   "no bundle for %s: layer %s is the host's", b->spec->machine,
                   node->name);
        return false;
    }
    return false;
}

/* ---- where everything is ---- */

static uint32_t count_inputs(const Graph *g) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->node.n; i++)
        n += g->node.at[i].op == OP_INPUT;
    return n;
}

/* An input or an output: a room, or the caller's array `*n`. */
static NativePointer end_pointer(Bundler *b, HwKind kind, TensorId tensor,
                                 uint32_t *n) {
    const Tensor *t = graph_tensor(b->g, tensor);
    uint64_t bytes = shape_count(&t->shape) * quant_type[t->quant.type].size;
    NativeBase base = kind == HW_KIND_INPUTS ? NATIVE_IN : NATIVE_OUT;
    if (!b->spec->bundle.lies[kind])
        return (NativePointer){.base = base, .index = (*n)++, .image = bytes};
    uint32_t room = rooms_add(b->rooms, kind, t->name, bytes, 0);
    rooms_use(b->rooms, room, kind == HW_KIND_INPUTS ? 0 : b->plan->n_actions);
    return (NativePointer){.base = NATIVE_ROOM,
                           .index = room,
                           .image = rooms_at(b->rooms, room)->image};
}

static void place_ends(Bundler *b) {
    uint32_t n = 0;
    b->in = ARENA_ARRAY(b->arena, NativePointer, count_inputs(b->g));
    b->out = ARENA_ARRAY(b->arena, NativePointer, b->g->output.n);
    for (uint32_t i = 0; i < b->g->node.n; i++)
        if (b->g->node.at[i].op == OP_INPUT)
            b->in[n++] = end_pointer(b, HW_KIND_INPUTS, b->g->node.at[i].out[0],
                                     &b->n_in);
    for (uint32_t i = 0; i < b->g->output.n; i++)
        b->out[i] =
            end_pointer(b, HW_KIND_OUTPUTS, b->g->output.at[i], &b->n_out);
}

static uint32_t count_buffers(const Plan *plan) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n_placements; i++)
        if (plan->placement[i].buffer >= n)
            n = plan->placement[i].buffer + 1;
    return n;
}

static void home_use(Bundler *b, uint32_t placement, TensorId *holds) {
    const Placement *p = &b->plan->placement[placement];
    Home *home = &b->home[p->buffer];
    if (holds[p->buffer].i == NONE) {
        holds[p->buffer] = p->tensor;
        home->alone = true;
    }
    home->alone &= same_tensor(holds[p->buffer], p->tensor);
    home->last = b->at;
}

static void find_uses(Bundler *b) {
    uint32_t n = count_buffers(b->plan);
    TensorId *holds = ARENA_ARRAY(b->arena, TensorId, n);
    b->home = ARENA_ARRAY(b->arena, Home, n);
    for (uint32_t i = 0; i < n; i++)
        holds[i].i = NONE;
    for (b->at = 0; b->at < b->plan->n_actions; b->at++) {
        const Action *action = &b->plan->action[b->at];
        for (uint32_t i = 0; i < action->n_in; i++)
            home_use(b, action->in[i], holds);
        home_use(b, action->out, holds);
    }
}

/* Does the tensor lie alike in both places? */
static bool lies_alike(Bundler *b, const Placement *p, const Placement *q) {
    Operand a, c;
    return p->rows == q->rows && p->n_c == p->whole.c && q->n_c == q->whole.c &&
           bundle_operand(b, p, &a) && bundle_operand(b, q, &c) &&
           a.block == c.block && a.cell == c.cell && a.c_step == c.c_step &&
           a.h_step == c.h_step && a.w_step == c.w_step;
}

/* A tensor that lies outside as it would inside needs no copy: layers work on
 * the original. */
static void spare_copies(Bundler *b) {
    for (uint32_t i = 0; i < b->plan->n_actions; i++) {
        const Action *action = &b->plan->action[i];
        bool load = action->kind == ACTION_LOAD;
        if (!load && action->kind != ACTION_STORE)
            continue;
        const Placement *in = &b->plan->placement[action->in[0]];
        const Placement *out = &b->plan->placement[action->out];
        const Placement *own = load ? out : in, *end = load ? in : out;
        Home *home = &b->home[own->buffer];
        HwRole role = b->spec->memory[end->memory].role;
        uint32_t index =
            load ? input_index(b, end->tensor) : output_index(b, end->tensor);
        if (home->set || !home->alone || index == NONE ||
            role != (load ? HW_INPUT : HW_OUTPUT) || !lies_alike(b, own, end))
            continue;
        home->set = true;
        home->pointer = load ? b->in[index] : b->out[index];
    }
}

/* ---- the whole ---- */

static NativeWeights weights_where(const HwSpec *spec) {
    bool loaded = spec->constants >= 0 && spec->memory[spec->constants].load;
    return loaded                                 ? WEIGHTS_LOADED
           : spec->bundle.lies[HW_KIND_CONSTANTS] ? WEIGHTS_PLACED
           : spec->native.weights_file            ? WEIGHTS_APART
                                                  : WEIGHTS_INSIDE;
}

/* One room that lives throughout holds all constants. */
static uint32_t constants_room(Bundler *b) {
    uint64_t bytes = maker_end(b->maker);
    if (b->where != WEIGHTS_PLACED || bytes == 0)
        return NONE;
    uint32_t room =
        rooms_add(b->rooms, HW_KIND_CONSTANTS, "constants", 0, bytes);
    rooms_use(b->rooms, room, 0);
    rooms_use(b->rooms, room, b->plan->n_actions);
    return room;
}

/* All calls and rooms, with constants loaded `piece` bytes at a time. */
static bool draft(Bundler *b, uint32_t images, uint64_t piece) {
    const char *name = listing_identifier(b->arena, b->g->name);
    NativeTarget target = native_target(b->spec);
    b->maker = maker_new(b->arena, name, &target);
    b->rooms = rooms_new(b->arena, b->spec, images);
    b->piece = piece;
    b->largest = 0;
    b->n_in = b->n_out = b->call.n = 0;
    find_uses(b);
    place_ends(b);
    spare_copies(b);
    for (b->at = 0; b->at < b->plan->n_actions; b->at++)
        if (!add_action(b, &b->plan->action[b->at]))
            return false;
    uint32_t room = constants_room(b);
    bool some = maker_end(b->maker) > 0;
    maker_weights(b->maker, some ? b->where : WEIGHTS_INSIDE, room);
    return true;
}

/* With the largest pieces that fit. False: there are none, or (*wrong) no code
 * can be made. */
static bool place_pieces(Bundler *b, const BundleOptions *options,
                         bool *wrong) {
    const HwMemory *far =
        b->spec->constants >= 0 ? &b->spec->memory[b->spec->constants] : NULL;
    uint64_t piece = far && far->piece ? far->piece : UINT64_MAX;
    for (uint64_t before = UINT64_MAX;;) {
        *wrong = !draft(b, options->images, piece);
        if (*wrong)
            return false;
        if (rooms_place(b->rooms, options->planner))
            return true;
        if (b->largest == before || b->largest < 2)
            return false;
        before = b->largest;
        piece = (piece < before ? piece : before) / 2;
    }
}

static bool tiles_allowed(const HwSpec *spec) {
    uint32_t tiles = 1u << HW_OVERLAP_POINTWISE | 1u << HW_OVERLAP_SUM;
    bool allowed = false;
    for (uint32_t i = 0; i < spec->n_engines; i++)
        allowed |= (spec->engine[i].overlap & tiles) != 0;
    return allowed;
}

static void lives_keep(Bundler *b) {
    b->live = ARENA_ARRAY(b->arena, uint64_t, b->plan->n_actions);
    for (uint32_t i = 0; i < b->plan->n_actions; i++)
        b->live[i] = rooms_live(b->rooms, i);
}

/* By tiles, which cost copies, only where that makes the whole smaller: all
 * that could first, to learn how small; then those at whose calls more is
 * alive. */
static bool place(Bundler *b, const BundleOptions *options, bool *wrong) {
    b->tight = UINT64_MAX;
    bool fits = place_pieces(b, options, wrong);
    if (*wrong || !tiles_allowed(b->spec))
        return fits;
    uint64_t before = fits ? rooms_height(b->rooms) : UINT64_MAX;
    lives_keep(b);
    b->tight = 0;
    bool tiled = place_pieces(b, options, wrong);
    if (!fits && !tiled)
        return false;
    if (!tiled || rooms_height(b->rooms) >= before) {
        b->tight = UINT64_MAX;
        return !*wrong && place_pieces(b, options, wrong);
    }
    uint64_t least = rooms_height(b->rooms);
    b->tight = least;
    if (place_pieces(b, options, wrong) && rooms_height(b->rooms) <= least)
        return true;
    b->tight = 0;
    return !*wrong && place_pieces(b, options, wrong);
}

static bool constants_fit(const Bundler *b) {
    const HwSpec *spec = b->spec;
    uint64_t bytes = maker_end(b->maker), room = spec->native.weights;
    if (spec->constants >= 0)
        room = spec->memory[spec->constants].size;
    if (!room || bytes <= room)
        return true;
    diag_error(b->diag, spec->loc,
               "does not fit: the constants take %llu bytes, %s has %llu",
               (unsigned long long)bytes, spec->machine,
               (unsigned long long)room);
    return false;
}

/* Pools that are more than the workspace are all the active memories. */
static void add_function(Bundler *b, uint32_t images) {
    const char *name = listing_identifier(b->arena, b->g->name);
    NativeFunction run = {.name = arena_printf(b->arena, "%s_run", name),
                          .n_in = b->n_in,
                          .n_out = b->n_out,
                          .n_pools = b->spec->n_active,
                          .n_rooms = rooms_count(b->rooms),
                          .n_calls = b->call.n,
                          .images = images,
                          .room = rooms_native(b->rooms),
                          .call = b->call.at};
    maker_function(b->maker, &run);
}

static const HwSpec *spec_with(Arena *arena, const HwSpec *spec,
                               const BundleOptions *options) {
    HwSpec *own = ARENA_COPY(arena, HwSpec, spec, 1);
    uint32_t all = (UINT32_C(1) << spec->n_active) - 1;
    HwKind ends[] = {HW_KIND_INPUTS, HW_KIND_OUTPUTS};
    for (int i = 0; i < 2 && options->io; i++) {
        bool shared = strcmp(options->io, "shared") == 0;
        uint32_t lies = own->bundle.lies[ends[i]];
        own->bundle.lies[ends[i]] = !shared ? 0 : lies ? lies : all;
    }
    return own;
}

const HwSpec *native_roomy(Arena *arena, const HwSpec *spec) {
    HwSpec *own = ARENA_COPY(arena, HwSpec, spec, 1);
    HwMemory *memory =
        ARENA_COPY(arena, HwMemory, spec->memory, spec->n_memories);
    if (!memory[0].buffers)
        memory[0].size = UINT64_C(1) << 47;
    own->memory = memory;
    return own;
}

/* Sizes are multiples of all pools' alignments. */
static bool alignments_meet(Diag *diag, const HwSpec *spec) {
    enum { MOST = 1 << 20 };
    uint64_t align = rooms_align(spec);
    if (align > MOST)
        diag_error(diag, spec->loc,
                   "no bundle for %s: its active memories have alignments "
                   "whose common multiple is above %d bytes",
                   spec->machine, MOST);
    return align <= MOST;
}

static bool planner_known(Diag *diag, const HwSpec *spec, const char *name) {
    bool known = strcmp(name, "auto") == 0 || planner_find(name);
    if (!known)
        diag_error(diag, spec->loc, "no planner is called '%s'", name);
    return known;
}

const NativeBundle *native_bundle(Arena *arena, Diag *diag,
                                  const NativeBackend *backend,
                                  const Plan *plan, const HwSpec *spec,
                                  const BundleOptions *options,
                                  bool *does_not_fit) {
    BundleOptions how = *options;
    if (!how.planner)
        how.planner = spec->bundle.planner ? spec->bundle.planner : "auto";
    Bundler b = {.arena = arena,
                 .diag = diag,
                 .backend = backend,
                 .plan = plan,
                 .g = plan->schedule->graph,
                 .spec = spec_with(arena, spec, options),
                 .where = weights_where(spec)};
    bool wrong;
    if (!alignments_meet(diag, spec) || !planner_known(diag, spec, how.planner))
        return NULL;
    bool fits = place(&b, &how, &wrong);
    if (wrong)
        return NULL;
    if (!fits)
        rooms_explain(b.rooms, diag, b.g->name);
    *does_not_fit = !fits || !constants_fit(&b);
    if (*does_not_fit)
        return NULL;
    add_function(&b, options->images);
    NativeBundle *bundle = ARENA_NEW(arena, NativeBundle);
    *bundle = (NativeBundle){.program = maker_program(b.maker),
                             .plan = plan,
                             .spec = b.spec,
                             .rooms = b.rooms,
                             .images = options->images,
                             .in = b.in,
                             .out = b.out};
    return bundle;
}
