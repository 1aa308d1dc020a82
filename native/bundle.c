/* bundle.c - a plan as one function; see native.h.
 *
 * Input: a plan whose layers all run on a processor. Output: a call for each of
 * its actions, in its order.
 * Method: each buffer of the plan becomes a room, alive from the first call
 * that uses it to the last; inputs, outputs and what is loaded are rooms or the
 * caller's, as the hwspec says; rooms.c places them all together. Loads and
 * stores become copies, or nothing where the layer can use the original. */
#include "native/bundler.h"

#include <string.h>

NativeTarget native_target(const HwSpec *spec) {
    const HwNative *native = &spec->native;
    return (NativeTarget){native->triple ? native->triple : "", native->cpu,
                          native->features, native->lanes};
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
    uint64_t bytes = bundle_tensor_bytes(t);
    NativeBase base = kind == HW_KIND_INPUTS ? NATIVE_IN : NATIVE_OUT;
    if (bundle_is_state(b, kind, tensor)) /* outputs: bundle_share_states */
        return kind == HW_KIND_INPUTS ? bundle_state_room(b, tensor)
                                      : (NativePointer){.base = NATIVE_ROOM};
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
            load ? bundle_input(b, end->tensor) : bundle_output(b, end->tensor);
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
    b->n_in = b->n_out = b->call.n = b->start.n = 0;
    find_uses(b);
    place_ends(b);
    bundle_share_states(b);
    spare_copies(b);
    for (b->at = 0; b->at < b->plan->n_actions; b->at++)
        if (!bundle_add_action(b, &b->plan->action[b->at]))
            return false;
    bundle_pass_outputs(b);
    bundle_keep_states(b);
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
static void add_function(Bundler *b, const char *what, uint32_t images,
                         uint32_t n, const NativeCall *call) {
    const char *name = listing_identifier(b->arena, b->g->name);
    NativeFunction run = {.name = arena_printf(b->arena, "%s_%s", name, what),
                          .n_in = b->n_in,
                          .n_out = b->n_out,
                          .n_pools = b->spec->n_active,
                          .n_rooms = rooms_count(b->rooms),
                          .n_calls = n,
                          .images = images,
                          .room = rooms_native(b->rooms),
                          .call = call};
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
    if (options->images > 1 && graph_states(b.g)) {
        diag_error(diag, (Loc){0}, "--most-images: states are kept from call "
                                   "to call, of one image");
        return NULL;
    }
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
    add_function(&b, "run", options->images, b.call.n, b.call.at);
    if (b.start.n)
        add_function(&b, "reset", options->images, b.start.n, b.start.at);
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
