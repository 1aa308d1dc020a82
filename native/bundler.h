/* bundler.h - what the files of a bundle share while it is made; private. */
#ifndef NATIVE_BUNDLER_H
#define NATIVE_BUNDLER_H

#include "base/vec.h"
#include "native/maker.h"
#include "native/native.h"

/* Where what a buffer of the plan holds lies in the bundle. */
typedef struct Home {
    bool set;
    bool alone;    /* no other tensor shares the buffer */
    uint32_t last; /* action that uses it last */
    NativePointer pointer;
} Home;

typedef struct Bundler {
    Arena *arena;
    Diag *diag;
    const NativeBackend *backend;
    const Plan *plan;
    const Graph *g;
    const HwSpec *spec;
    NativeWeights where;
    uint64_t piece;   /* bytes of constants at a time, at most */
    uint64_t largest; /* of the pieces that there are */
    uint64_t *live;   /* by action: bytes without tiles; NULL: not known yet */
    uint64_t tight;   /* where more are alive, layers run by tiles */
    Maker *maker;
    Rooms *rooms;
    Home *home;              /* by the plan's buffers */
    NativePointer *in, *out; /* by input, output: caller's, or rooms */
    uint32_t n_in, n_out;    /* of the caller's */
    uint32_t at;             /* action */
    VEC(NativeCall) call;
    VEC(NativeCall) start; /* of the function that resets states */
} Bundler;

/* A layer on its operands; constants are yet to come. */
typedef struct Site {
    VEC(Operand) operand;
    VEC(NativePointer) pointer;
    VEC(NativeLoad) load;
} Site;

/* What a layer is cut into: channels of its result. */
typedef struct Cut {
    const char *name;
    const Kernel *kernel; /* of one piece */
    const Const *value;   /* of its constants, whole */
    uint32_t first, channels, pieces;
    uint32_t room; /* for constants that are loaded; NONE: a new one */
    bool aside;    /* each piece is made in the same place, for the next call */
} Cut;

/* bundle_calls.c: how a placement lies; false where code cannot say it. */
bool bundle_operand(Bundler *b, const Placement *p, Operand *out);
/* Where it is, from the call of b->at on. False after an error. */
bool bundle_pointer(Bundler *b, Site *site, const Placement *p,
                    NativePointer *out);
/* Does all of a room belong to the placement? */
bool bundle_fills_room(const Placement *p, const NativePointer *pointer);

/* Which input or output the tensor is; NONE. */
uint32_t bundle_input(const Bundler *b, TensorId tensor);
uint32_t bundle_output(const Bundler *b, TensorId tensor);
/* Adds the calls of the action at b->at, which it moves on where it takes more
 * than one. False after an error. */
bool bundle_add_action(Bundler *b, const Action *action);
/* Adds copies of the outputs that no action makes, behind all actions. */
void bundle_pass_outputs(Bundler *b);
/* What a copy does to codes; NULL: they are floats. */
const QuantLayer *bundle_move_rule(Arena *arena, const Quant *quant);

/* Adds the call of a copy from the site's first operand to its second,
 * unless it is there already. */
void bundle_add_copy(Bundler *b, const Site *site);
/* Where the constant, of real numbers, is as elements of the tensor. */
NativePointer bundle_constant(Bundler *b, Site *site, const Tensor *t,
                              const Const *value);
uint64_t bundle_tensor_bytes(const Tensor *tensor);

/* bundle_states.c: inputs that outputs were in the call before. They have a
 * room that is alive throughout; so have their next values, where those are
 * written before the last of it is read. */
bool bundle_is_state(const Bundler *b, HwKind kind, TensorId tensor);
NativePointer bundle_state_room(Bundler *b, TensorId state);
/* Puts next values into the state's own room where that is safe, else into one
 * of their own. */
void bundle_share_states(Bundler *b);
/* Adds the copies of the others, and the calls of the function that resets. */
void bundle_keep_states(Bundler *b);

/* bundle_tiles.c: adds the action as tiles (with its successor: *taken is the
 * number of actions), if the hwspec allows it, memory is wanted, and nothing
 * speaks against it; *taken is 0 if not. False after an error. */
bool bundle_tile(Bundler *b, const Action *action, uint32_t *taken);

/* The operand of n_in that lies where the result will; -1: none. */
int32_t bundle_operand_under(const Site *site, uint32_t n_in);
/* Adds the constants, of these values, and the call. */
void bundle_add_call(Bundler *b, Site *site, const Kernel *kernel,
                     const Const *value);

/* bundle_fuse.c: the same as bundle_tile, for a layer and the sum behind it. */
bool bundle_fuse(Bundler *b, const Action *action, uint32_t *taken);

/* bundle_load.c: whether the kernel runs in pieces, and one of so many
 * channels.
 */
bool bundle_can_cut(const Kernel *kernel);
const Kernel *bundle_cut_kernel(Arena *arena, const Kernel *whole,
                                uint32_t channels);
/* Bytes from the start of a volume to that of its channel c. */
uint64_t bundle_channel_offset(const Operand *operand, uint32_t c);
/* Channels that a piece has at most where constants are loaded. */
uint32_t bundle_piece_channels(const Bundler *b, const Kernel *kernel);
/* The calls of the cut, on the site's operands. */
uint32_t bundle_add_pieces(Bundler *b, const Site *site, const Cut *cut);
NativePointer bundle_room_pointer(uint32_t room, uint64_t offset);
/* Loads the weights from `start` on, where the n constants are. */
void bundle_load_all(Bundler *b, const char *name, uint64_t start, uint32_t n,
                     NativePointer *constant);
/* Adds the calls of a layer whose constants are loaded. */
void bundle_load_layer(Bundler *b, Site *site, const Kernel *kernel,
                       const Const *value, const char *name);
/* A constant that is an operand. */
NativePointer bundle_load_operand(Bundler *b, Site *site, const Const *value,
                                  ConstKind kind, const char *name);

#endif
