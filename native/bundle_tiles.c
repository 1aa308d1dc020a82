/* bundle_tiles.c - layers that need no room for a whole operand or result.
 *
 * Pointwise: a convolution by 1x1 takes the place of its operand. Some pixels
 * of it are copied aside, and their results are written where they were. Sum:
 * the result of a convolution that is only added to something is never whole.
 * Some channels of it are made aside and added, then the next ones.
 */
#include "native/bundler.h"

#include "graph/quant.h"

#include <string.h>

static bool is_allowed(const Bundler *b, const Action *action, HwOverlap what) {
    return b->spec->engine[action->legal.engine].overlap >> what & 1;
}

static bool is_wanted(const Bundler *b, uint32_t at) {
    return b->live && b->live[at] > b->tight;
}

static const Placement *placement(const Bundler *b, uint32_t i) {
    return &b->plan->placement[i];
}

/* A kernel of the action on its operands, with what `value` gets for constants.
 * NULL: there is no code for it as one. */
static Kernel *probe(Bundler *b, const Action *action, const Const **value) {
    Operand *operand = ARENA_ARRAY(b->arena, Operand, action->n_in + 1);
    for (uint32_t i = 0; i <= action->n_in; i++) {
        uint32_t at = i < action->n_in ? action->in[i] : action->out;
        if (!bundle_operand(b, placement(b, at), &operand[i]))
            return NULL;
    }
    Kernel *k = ARENA_NEW(b->arena, Kernel);
    *k = native_kernel(b->arena, b->g, action->node, operand,
                       &operand[action->n_in], value);
    k->n_out = 1;
    return b->backend->refuse(k) ? NULL : k;
}

static bool is_active(const Bundler *b, const Placement *p) {
    return b->spec->memory[p->memory].role == HW_ACTIVE;
}

/* A new room for one layer. */
static NativePointer aside(Bundler *b, const char *name, uint64_t bytes) {
    uint32_t room = rooms_add(b->rooms, HW_KIND_SCRATCH, name, bytes, 0);
    rooms_use(b->rooms, room, b->at);
    NativePointer pointer = bundle_room_pointer(room, 0);
    pointer.image = rooms_at(b->rooms, room)->image;
    return pointer;
}

/* ---- pointwise ---- */

enum { PIXELS = 16 };

/* All pixels of a channel block follow each other. */
static bool is_one_row(const Operand *o) {
    const Shape *s = &o->shape;
    return s->rank == 4 && s->dim[0] == 1 && o->w_step == o->block &&
           (s->dim[2] == 1 || o->h_step == s->dim[3] * o->w_step);
}

static bool is_pointwise(const Kernel *k) {
    bool one = strcmp(k->kind, "conv") == 0 && k->n_in == 1 &&
               kernel_count(k, "groups", 0, 1) <= 1 &&
               k->in[0].block == k->out[0].block && is_one_row(&k->in[0]) &&
               is_one_row(&k->out[0]);
    for (uint32_t axis = 0; axis < 2; axis++)
        one &= kernel_count(k, "kernel", axis, 1) == 1 &&
               kernel_count(k, "stride", axis, 1) == 1 &&
               kernel_count(k, "pad", axis, 0) == 0 &&
               k->in[0].shape.dim[2 + axis] == k->out[0].shape.dim[2 + axis];
    return one;
}

static Operand tile_of(const Operand *whole, uint32_t pixels) {
    Operand tile = *whole;
    tile.shape.dim[2] = 1;
    tile.shape.dim[3] = pixels;
    tile.h_step = pixels * tile.w_step;
    return tile;
}

/* Pixels of the operand, one channel block behind the other without gaps. */
static Operand tile_aside(const Operand *whole, uint32_t pixels) {
    Operand tile = tile_of(whole, pixels);
    tile.c_step = tile.h_step;
    return tile;
}

static uint64_t tile_bytes(const Operand *whole, uint32_t pixels) {
    uint64_t c = shape_dim(&whole->shape, 1), block = whole->block;
    return (c + block - 1) / block * block * pixels * whole->cell;
}

/* A layer that is to run in place. */
typedef struct Spot {
    const Kernel *kernel;
    NativePointer from, to, tile;
    const NativePointer *constant;
} Spot;

static const Kernel *copy_kernel(Bundler *b, const Operand *in,
                                 const Operand *out) {
    Kernel *k = ARENA_NEW(b->arena, Kernel);
    *k = (Kernel){.kind = op_info[OP_IDENTITY].name,
                  .n_in = 1,
                  .n_out = 1,
                  .in = in,
                  .out = out,
                  .quant = bundle_move_rule(b->arena, &in->quant),
                  .over = -1};
    return k;
}

/* Copies `pixels` pixels aside, and computes them: `pieces` times. */
static void add_tiles(Bundler *b, const Spot *spot, uint64_t first,
                      uint32_t pixels, uint32_t pieces) {
    const Kernel *whole = spot->kernel;
    Operand *o = ARENA_ARRAY(b->arena, Operand, 3);
    o[0] = tile_of(&whole->in[0], pixels);
    o[1] = tile_aside(&whole->in[0], pixels);
    o[2] = tile_of(&whole->out[0], pixels);
    Kernel *conv = ARENA_COPY(b->arena, Kernel, whole, 1);
    conv->in = &o[1];
    conv->out = &o[2];
    uint32_t n = 2 + whole->n_constants;
    NativePointer *move = ARENA_ARRAY(b->arena, NativePointer, 2);
    NativePointer *make = ARENA_ARRAY(b->arena, NativePointer, n);
    move[0] = spot->from;
    move[1] = make[0] = spot->tile;
    make[1] = spot->to;
    move[0].offset += first * o[0].w_step * o[0].cell;
    make[1].offset += first * o[2].w_step * o[2].cell;
    move[0].piece = o[0].h_step * o[0].cell;
    make[1].piece = o[2].h_step * o[2].cell;
    for (uint32_t i = 0; i < whole->n_constants; i++)
        make[2 + i] = spot->constant[i];
    NativeCall call[] = {
        {.kernel = maker_kernel(b->maker, copy_kernel(b, &o[0], &o[1])),
         .n = 2,
         .pieces = pieces,
         .joined = true,
         .pointer = move},
        {.kernel = maker_kernel(b->maker, conv),
         .n = n,
         .pieces = pieces,
         .pointer = make}};
    vec_push(b->arena, &b->call, call[0]);
    vec_push(b->arena, &b->call, call[1]);
}

/* Where the constants are; they are loaded once for all tiles. */
static const NativePointer *constants_of(Bundler *b, const Kernel *k,
                                         const Const *value, const char *name) {
    NativePointer *constant =
        ARENA_ARRAY(b->arena, NativePointer, k->n_constants);
    uint64_t start = maker_end(b->maker);
    for (uint32_t i = 0; i < k->n_constants; i++)
        constant[i] = maker_packed(b->maker, k, i, &value[i], 0);
    if (b->where == WEIGHTS_LOADED && k->n_constants)
        bundle_load_all(b, name, start, k->n_constants, constant);
    return constant;
}

/* Is the operand's place free for the result? */
static bool may_replace(const Bundler *b, const Action *action,
                        const NativePointer *from, const NativePointer *to) {
    const Placement *in = placement(b, action->in[0]);
    const Placement *out = placement(b, action->out);
    return bundle_fills_room(in, from) && bundle_fills_room(out, to) &&
           from->index != to->index && b->home[in->buffer].last == b->at &&
           rooms_at(b->rooms, to->index)->first == b->at;
}

/* Do the tiles want their constants as the whole does? */
static bool packs_alike(const Kernel *k, uint32_t pixels) {
    Operand in = tile_aside(&k->in[0], pixels);
    Operand out = tile_of(&k->out[0], pixels);
    Kernel tile = *k;
    tile.in = &in;
    tile.out = &out;
    return kernel_packing(&tile) == kernel_packing(k);
}

static bool tile_pointwise(Bundler *b, const Action *action, uint32_t *taken) {
    const Const *value;
    const Placement *in = placement(b, action->in[0]);
    const Placement *out = placement(b, action->out);
    Site site = {0};
    Spot spot = {0};
    if (rooms_images(b->rooms) > 1 || action->n_in != 1 ||
        !is_allowed(b, action, HW_OVERLAP_POINTWISE) || !is_wanted(b, b->at) ||
        !is_active(b, in) || !is_active(b, out) || b->home[out->buffer].set)
        return true;
    const Kernel *k = spot.kernel = probe(b, action, &value);
    if (!k || !is_pointwise(k) ||
        (b->where == WEIGHTS_LOADED &&
         bundle_piece_channels(b, k) < shape_dim(&k->out[0].shape, 1)))
        return true;
    uint32_t all = k->in[0].shape.dim[2] * k->in[0].shape.dim[3];
    uint32_t rest = all % PIXELS;
    if (all <= PIXELS || !packs_alike(k, PIXELS) ||
        (rest && !packs_alike(k, rest)))
        return true;
    if (!bundle_pointer(b, &site, in, &spot.from) ||
        !bundle_pointer(b, &site, out, &spot.to))
        return false;
    if (!may_replace(b, action, &spot.from, &spot.to))
        return true;
    const char *name = graph_node(b->g, action->node)->name;
    rooms_same(b->rooms, spot.to.index, spot.from.index);
    spot.tile = aside(b, name, tile_bytes(&k->in[0], PIXELS));
    spot.constant = constants_of(b, k, value, name);
    add_tiles(b, &spot, 0, PIXELS, all / PIXELS);
    if (rest)
        add_tiles(b, &spot, all - rest, rest, 1);
    *taken = 1;
    return true;
}

/* ---- sums ---- */

/* A convolution and what adds its result to operand 1 - made. */
typedef struct Sum {
    const Action *conv, *add;
    const Kernel *make, *join;
    const Const *value;
    uint32_t made;
    uint32_t channels; /* at a time */
} Sum;

/* Is the result of the convolution only added to something, in whose place the
 * sum is written? */
static bool is_only_added(const Bundler *b, Sum *s) {
    const Placement *out = placement(b, s->conv->out);
    const Home *home = &b->home[out->buffer];
    if (s->add->kind != ACTION_RUN || s->add->legal.op != HW_OP_LAYER ||
        s->add->n_tiles > 1 || s->add->n_in != 2 || s->conv->n_in != 1 ||
        graph_node(b->g, s->add->node)->op != OP_ELTWISE ||
        !is_active(b, out) || !home->alone || home->set ||
        home->last != b->at + 1)
        return false;
    s->made = placement(b, s->add->in[1])->buffer == out->buffer;
    const Placement *made = placement(b, s->add->in[s->made]);
    const Placement *other = placement(b, s->add->in[1 - s->made]);
    const Placement *sum = placement(b, s->add->out);
    const Placement *from = placement(b, s->conv->in[0]);
    return made->buffer == out->buffer && other->buffer == sum->buffer &&
           other->part_c == sum->part_c && is_active(b, other) &&
           other->buffer != from->buffer && other->buffer != out->buffer;
}

/* As few channels as the code makes at once. */
static uint32_t channels_of(const Bundler *b, const Kernel *k) {
    uint32_t all = shape_dim(&k->out[0].shape, 1), unit = k->out[0].block;
    uint32_t two = kernel_packing(k) == PACKED_NOT ? unit : 2 * unit;
    uint32_t most =
        b->where == WEIGHTS_LOADED ? bundle_piece_channels(b, k) : all;
    return two <= most ? two : unit;
}

static const Kernel *join_kernel(Arena *arena, const Kernel *whole,
                                 uint32_t channels) {
    Kernel *k = ARENA_COPY(arena, Kernel, whole, 1);
    Operand *in = ARENA_COPY(arena, Operand, whole->in, whole->n_in);
    Operand *out = ARENA_COPY(arena, Operand, whole->out, 1);
    for (uint32_t i = 0; i < whole->n_in; i++)
        in[i].shape.dim[1] = channels;
    out->shape.dim[1] = channels;
    k->in = in;
    k->out = out;
    return k;
}

static bool sum_read(Bundler *b, Sum *s) {
    const Const *none;
    Kernel *make = probe(b, s->conv, &s->value);
    Kernel *join = probe(b, s->add, &none);
    if (!make || !join || !bundle_can_cut(make) || join->n_constants)
        return false;
    join->over = (int32_t)(1 - s->made);
    s->make = make;
    s->join = join;
    s->channels = channels_of(b, make);
    const Operand *o = &make->out[0];
    bool alike = shape_equal(&join->in[0].shape, &join->in[1].shape) &&
                 shape_equal(&join->in[0].shape, &o->shape) &&
                 shape_equal(&join->out[0].shape, &o->shape);
    return alike && s->channels < shape_dim(&o->shape, 1) &&
           s->channels % o->block == 0 &&
           !b->backend->refuse(
               bundle_cut_kernel(b->arena, make, s->channels)) &&
           !b->backend->refuse(join_kernel(b->arena, join, s->channels));
}

/* Channels of the cut are made, then added: `pointer` are the operands of the
 * addition, then its result. */
static void add_sum(Bundler *b, const Sum *s, const Site *site, Cut *cut,
                    const NativePointer pointer[3]) {
    const Kernel *join = join_kernel(b->arena, s->join, cut->channels);
    NativePointer *at = ARENA_COPY(b->arena, NativePointer, pointer, 3);
    for (uint32_t i = 0; i < 3; i++) {
        const Operand *o = i < 2 ? &join->in[i] : &join->out[0];
        if (i == s->made)
            continue;
        at[i].offset += bundle_channel_offset(o, cut->first);
        at[i].piece = bundle_channel_offset(o, cut->channels);
    }
    cut->kernel = bundle_cut_kernel(b->arena, s->make, cut->channels);
    uint32_t room = bundle_add_pieces(b, site, cut);
    cut->room = room;
    NativeCall call = {.kernel = maker_kernel(b->maker, join),
                       .n = 3,
                       .pieces = cut->pieces,
                       .pointer = at};
    vec_push(b->arena, &b->call, call);
}

static bool sum_pointers(Bundler *b, const Sum *s, Site *site,
                         NativePointer pointer[3]) {
    NativePointer from;
    uint32_t other = 1 - s->made;
    if (!bundle_pointer(b, site, placement(b, s->conv->in[0]), &from) ||
        !bundle_pointer(b, site, placement(b, s->add->in[other]),
                        &pointer[other]) ||
        !bundle_pointer(b, site, placement(b, s->add->out), &pointer[2]))
        return false;
    const char *name = graph_node(b->g, s->conv->node)->name;
    pointer[s->made] =
        aside(b, name, bundle_channel_offset(&s->make->out[0], s->channels));
    vec_push(b->arena, &site->pointer, from);
    vec_push(b->arena, &site->pointer, pointer[s->made]);
    return true;
}

static bool tile_sum(Bundler *b, const Action *action, uint32_t *taken) {
    Sum s = {.conv = action, .add = action + 1};
    if (b->at + 1 == b->plan->n_actions ||
        !is_allowed(b, action, HW_OVERLAP_SUM) ||
        !(is_wanted(b, b->at) || is_wanted(b, b->at + 1)) ||
        !is_only_added(b, &s) || !sum_read(b, &s))
        return true;
    Site site = {0};
    NativePointer pointer[3];
    if (!sum_pointers(b, &s, &site, pointer))
        return false;
    uint32_t all = shape_dim(&s.make->out[0].shape, 1);
    uint32_t rest = all % s.channels;
    Cut cut = {.name = graph_node(b->g, action->node)->name,
               .value = s.value,
               .channels = s.channels,
               .pieces = all / s.channels,
               .room = NONE,
               .aside = true};
    add_sum(b, &s, &site, &cut, pointer);
    if (rest) {
        cut.first = all - rest;
        cut.channels = rest;
        cut.pieces = 1;
        add_sum(b, &s, &site, &cut, pointer);
    }
    *taken = 2;
    return true;
}

bool bundle_tile(Bundler *b, const Action *action, uint32_t *taken) {
    *taken = 0;
    return tile_sum(b, action, taken) &&
           (*taken || tile_pointwise(b, action, taken));
}
