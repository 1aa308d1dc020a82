/* rooms.h - the buffers of a bundle, of all kinds, as one placement problem.
 *
 * A room is alive over the calls that use it. Pools are the active memories of
 * the hwspec, in its order; which of them a kind of room may lie in, the hwspec
 * says. Sizes are linear in the number of images n: n * image + fixed bytes.
 * Rooms are placed for the most images that there can be; for fewer, what lies
 * above what stays, and all of it moves down.
 */
#ifndef NATIVE_ROOMS_H
#define NATIVE_ROOMS_H

#include "hwspec/hwspec.h"
#include "native/program.h"
#include "pack/pack.h"

typedef struct Room {
    HwKind kind;
    const char *name;
    uint64_t image, fixed; /* bytes, multiples of the pools' alignment */
    uint32_t first, end;   /* calls: half-open */
} Room;

typedef struct Rooms Rooms;

/* The least common multiple of the active memories' alignments; UINT64_MAX if
 * it is beyond reason. */
uint64_t rooms_align(const HwSpec *spec);
Rooms *rooms_new(Arena *arena, const HwSpec *spec, uint32_t images);
/* Sizes are rounded up. It is alive nowhere yet. */
uint32_t rooms_add(Rooms *rooms, HwKind kind, const char *name, uint64_t image,
                   uint64_t fixed);
void rooms_use(Rooms *rooms, uint32_t room, uint32_t call);
/* `result`, made from `operand`, may reach over its start if it starts n *
 * image
 * + fixed bytes before it; nothing comes of that where the operand is needed
 * later. */
void rooms_overlap(Rooms *rooms, uint32_t result, uint32_t operand,
                   int64_t image, int64_t fixed);

/* `result` may start where `operand` does, where that is not needed later; only
 * with one image. */
void rooms_same(Rooms *rooms, uint32_t result, uint32_t operand);

/* Bytes of the rooms that are alive at each call, before any overlap. */
uint64_t rooms_live(const Rooms *rooms, uint32_t call);

/* False: they do not fit. */
bool rooms_place(Rooms *rooms, const char *planner);
/* Bytes of all pools together. */
uint64_t rooms_height(const Rooms *rooms);
/* Says why, at the hwspec's place. */
void rooms_explain(const Rooms *rooms, Diag *diag, const char *network);

uint32_t rooms_images(const Rooms *rooms); /* at most */
uint32_t rooms_count(const Rooms *rooms);
const Room *rooms_at(const Rooms *rooms, uint32_t room);
const char *rooms_planner(const Rooms *rooms); /* who placed them */
const PackResult *rooms_result(const Rooms *rooms);
/* For code, by room. */
const NativeRoom *rooms_native(const Rooms *rooms);
/* Bytes for n images: of a pool; from its start to a room. */
uint64_t rooms_bytes(const Rooms *rooms, uint32_t pool, uint32_t n);
uint64_t rooms_offset(const Rooms *rooms, uint32_t room, uint32_t n);

/* The problem as `amphora pack` reads it. */
const char *rooms_csv(const Rooms *rooms);

#endif
