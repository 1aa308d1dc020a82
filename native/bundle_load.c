/* bundle_load.c - layers whose constants are brought when they are needed.
 *
 * The constants of a layer lie one behind the other among the weights, and in
 * one room of the workspace while it runs. Where they are more than may be
 * loaded at once, the layer runs in pieces, so many channels of its result
 * each; a piece is the same kernel with fewer channels, and brings their
 * constants.
 */
#include "native/bundler.h"

#include <string.h>

NativePointer bundle_room_pointer(uint32_t room, uint64_t offset) {
    return (NativePointer){
        .base = NATIVE_ROOM, .index = room, .offset = offset};
}

static uint32_t load_room(Bundler *b, const char *name, uint64_t bytes) {
    uint32_t room = rooms_add(b->rooms, HW_KIND_SCRATCH, name, 0, bytes);
    rooms_use(b->rooms, room, b->at);
    b->largest = bytes > b->largest ? bytes : b->largest;
    return room;
}

NativePointer bundle_load_operand(Bundler *b, Site *site, const Const *value,
                                  ConstKind kind, const char *name) {
    uint64_t offset = maker_constant(b->maker, value, kind).offset;
    uint64_t bytes = maker_end(b->maker) - offset;
    NativePointer to = bundle_room_pointer(load_room(b, name, bytes), 0);
    NativeLoad load = {.offset = offset, .bytes = bytes, .to = to};
    vec_push(b->arena, &site->load, load);
    return to;
}

/* ---- pieces ---- */

static bool is_one_of(const char *word, const char *const *list) {
    for (; *list; list++)
        if (strcmp(word, *list) == 0)
            return true;
    return false;
}

/* Is each channel of the result made from its own slice of each constant, and
 * from no operand's channel of the same number? */
bool bundle_can_cut(const Kernel *k) {
    static const char *const kinds[] = {"conv", "conv_pool", "fc", NULL};
    const Shape *out = &k->out[0].shape;
    if (!is_one_of(k->kind, kinds) || kernel_count(k, "groups", 0, 1) > 1 ||
        k->n_in != 1 || k->n_out != 1 || k->over >= 0 || out->rank < 2 ||
        out->dim[0] != 1 || (k->quant && !kernel_on_codes(k)))
        return false;
    for (uint32_t i = 0; i < k->n_constants; i++)
        if (shape_dim(&k->constant[i].shape, 0) != out->dim[1])
            return false;
    return true;
}

static uint64_t constant_bytes(const Kernel *k) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < k->n_constants; i++)
        bytes += kernel_packed_count(k, i) * maker_size(k->constant[i].kind);
    return bytes;
}

const Kernel *bundle_cut_kernel(Arena *arena, const Kernel *whole,
                                uint32_t channels) {
    Kernel *k = ARENA_COPY(arena, Kernel, whole, 1);
    Operand *out = ARENA_COPY(arena, Operand, whole->out, 1);
    KernelConst *constant =
        ARENA_COPY(arena, KernelConst, whole->constant, whole->n_constants);
    out->shape.dim[1] = channels;
    for (uint32_t i = 0; i < k->n_constants; i++)
        constant[i].shape.dim[0] = channels;
    k->out = out;
    k->constant = constant;
    return k;
}

/* Channels of a piece: whole blocks of them. */
uint32_t bundle_piece_channels(const Bundler *b, const Kernel *k) {
    uint32_t all = shape_dim(&k->out[0].shape, 1);
    uint64_t bytes = constant_bytes(k);
    if (bytes <= b->piece || !bundle_can_cut(k))
        return all;
    uint32_t unit = kernel_packing(k) == PACKED_NOT ? 1 : k->out[0].block;
    uint64_t fit = b->piece / (bytes / all + 1) / unit * unit;
    fit = fit ? fit : unit;
    const Kernel *piece = bundle_cut_kernel(b->arena, k, (uint32_t)fit);
    return fit < all && !b->backend->refuse(piece) ? (uint32_t)fit : all;
}

/* Bytes from the start of the result to that of its channel c. */
uint64_t bundle_channel_offset(const Operand *out, uint32_t c) {
    return (c / out->block * out->c_step + c % out->block) * out->cell;
}

/* ---- calls ---- */

/* The constants of the pieces, among the weights; pointers are those of the
 * first. Returns where they start. */
static uint64_t pack_pieces(Bundler *b, const Cut *cut,
                            NativePointer *pointer) {
    uint64_t start = maker_end(b->maker);
    for (uint32_t i = 0; i < cut->pieces; i++)
        for (uint32_t n = 0; n < cut->kernel->n_constants; n++) {
            NativePointer packed =
                maker_packed(b->maker, cut->kernel, n, &cut->value[n],
                             cut->first + i * cut->channels);
            if (i == 0)
                pointer[n] = packed;
        }
    return start;
}

/* Their constants come into a room, or stay where they are. */
static uint32_t bring(Bundler *b, const Site *site, const Cut *cut,
                      uint64_t start, NativePointer *constant,
                      NativeCall *call) {
    uint64_t bytes = (maker_end(b->maker) - start) / cut->pieces;
    uint32_t n = cut->kernel->n_constants, room = cut->room;
    if (b->where != WEIGHTS_LOADED || n == 0) {
        for (uint32_t i = 0; i < n; i++)
            constant[i].piece = cut->pieces > 1 ? bytes : 0;
        call->load = site->load.at;
        call->n_loads = site->load.n;
        return NONE;
    }
    if (room == NONE)
        room = load_room(b, cut->name, bytes);
    for (uint32_t i = 0; i < n; i++)
        constant[i] = bundle_room_pointer(room, constant[i].offset - start);
    NativeLoad *load = ARENA_ARRAY(b->arena, NativeLoad, site->load.n + 1);
    for (uint32_t i = 0; i < site->load.n; i++)
        load[i + 1] = site->load.at[i];
    load[0] = (NativeLoad){start, bytes, bytes, bundle_room_pointer(room, 0)};
    call->load = load;
    call->n_loads = site->load.n + 1;
    return room;
}

/* Returns the room of the constants; NONE: they were not loaded. */
uint32_t bundle_add_pieces(Bundler *b, const Site *site, const Cut *cut) {
    const Kernel *k = cut->kernel;
    uint32_t operands = k->n_in + k->n_out, n = operands + k->n_constants;
    NativePointer *pointer = ARENA_ARRAY(b->arena, NativePointer, n);
    memcpy(pointer, site->pointer.at, operands * sizeof *pointer);
    if (!cut->aside) {
        pointer[k->n_in].offset +=
            bundle_channel_offset(&k->out[0], cut->first);
        pointer[k->n_in].piece =
            bundle_channel_offset(&k->out[0], cut->channels);
    }
    uint64_t start = pack_pieces(b, cut, pointer + operands);
    NativeCall call = {.kernel = maker_kernel(b->maker, k),
                       .n = n,
                       .pieces = cut->pieces,
                       .joined = cut->aside,
                       .pointer = pointer};
    uint32_t room = bring(b, site, cut, start, pointer + operands, &call);
    vec_push(b->arena, &b->call, call);
    return room;
}

void bundle_load_all(Bundler *b, const char *name, uint64_t start, uint32_t n,
                     NativePointer *constant) {
    uint64_t bytes = maker_end(b->maker) - start;
    uint32_t room = load_room(b, name, bytes);
    NativeLoad *load = ARENA_NEW(b->arena, NativeLoad);
    *load = (NativeLoad){start, bytes, 0, bundle_room_pointer(room, 0)};
    for (uint32_t i = 0; i < n; i++)
        constant[i] = bundle_room_pointer(room, constant[i].offset - start);
    NativeCall call = {.n_loads = 1, .pieces = 1, .load = load};
    vec_push(b->arena, &b->call, call);
}

void bundle_load_layer(Bundler *b, Site *site, const Kernel *kernel,
                       const Const *value, const char *name) {
    uint32_t all = shape_dim(&kernel->out[0].shape, 1);
    uint32_t channels = bundle_piece_channels(b, kernel);
    Cut cut = {name, kernel, value, 0, all, 1, NONE, false};
    if (channels == all) {
        bundle_add_pieces(b, site, &cut);
        return;
    }
    cut.kernel = bundle_cut_kernel(b->arena, kernel, channels);
    cut.channels = channels;
    cut.pieces = all / channels;
    cut.room = bundle_add_pieces(b, site, &cut);
    uint32_t rest = all % channels;
    if (rest == 0)
        return;
    cut.kernel = bundle_cut_kernel(b->arena, kernel, rest);
    cut.first = all - rest;
    cut.channels = rest;
    cut.pieces = 1;
    bundle_add_pieces(b, site, &cut);
}
