/* lower.h - the inside of filegen_run: nodes of a file as they come to be.
 *
 * A tensor's codes may be in active memory (engines), in the backing memory
 * (the processor), or in both. Addresses are of memories without end here;
 * program_place gives the true ones.
 */
#ifndef FILEGEN_LOWER_H
#define FILEGEN_LOWER_H

#include "base/vec.h"
#include "filegen/numbers.h"

/* A number or a vector of a node. */
typedef struct Said {
    const char *name;
    int64_t num;
    uint32_t n; /* of a vector */
    const int64_t *nums;
    const uint8_t *bytes;
} Said;

typedef struct Draft {
    const ProgRow *row;
    FilePiece piece;
    Loc loc;
    VEC(Said) said;
} Draft;

typedef struct Home {
    bool there, constant; /* in the memory of constants */
    uint64_t start;       /* bytes */
} Home;

/* Of a tensor, or of volumes that lie beside each other. */
typedef struct Value {
    uint32_t n, c, h, w; /* as engines see it */
    uint32_t unit;       /* bytes of an element: 1: codes, 4: reals */
    bool wants_main, wants_active;
    bool spilled; /* is in active memory only while somebody reads it */
    Home main, active;
    uint32_t whole, first; /* it is channels first... of this value; or NONE */
    uint32_t born, dies;   /* in active memory: nodes of the file */
} Value;

/* An operand of a node: bytes of a memory. */
typedef struct Range {
    uint32_t memory;
    uint64_t start, size;
    bool reals;
} Range;

typedef struct Lower {
    Arena *arena;
    Diag *diag;
    const HwSpec *spec;
    const Graph *g;
    uint32_t active, main, constants; /* memories */
    VEC(Draft) draft;
    VEC(uint8_t) constant;
    uint64_t next[HW_MAX_MEMORIES];
    VEC(Value) value;   /* of tensors first */
    uint32_t *value_of; /* by tensor */
    uint32_t *beside;   /* by node: the value that holds its operands; NONE */
    FileLayer *layer;   /* by node */
    const bool *spill;  /* by tensor */
    const bool
        *apart; /* by node: its operands must not lie beside each other */
    bool failed;
} Lower;

/* ---- ways.c: who runs what, and where volumes are wanted ---- */
bool lower_ways(Lower *l);

/* ---- nodes.c: building nodes ---- */

/* A node for the operation; false, with an error at the layer, if the machine's
 * files have none. */
bool draft_node(Lower *l, const Node *node, const char *op, FilePiece piece);
void draft_num(Lower *l, const char *name, int64_t num);
void draft_word(Lower *l, const char *name, const char *word);
void draft_real(Lower *l, const char *name, float real);
void draft_nums(Lower *l, const char *name, uint32_t n, const int64_t *num);
void draft_bytes(Lower *l, const char *name, uint32_t n, const uint8_t *byte);
void draft_reals(Lower *l, const char *name, uint32_t n, const float *real);
void draft_range(Lower *l, const char *name, Range range);
void draft_dims(Lower *l, const char *name, const uint32_t dims[4]);

uint64_t value_count(const Value *v);
/* Room in a memory. */
Range room_for(Lower *l, uint32_t memory, uint64_t bytes, bool reals);
/* The value in the backing memory; makes room for it. */
Range value_main(Lower *l, uint32_t value);
/* Where a value that is made now is to lie in active memory, in bytes. */
uint64_t value_make(Lower *l, uint32_t value);
/* Where it lies for an engine that reads it now: loads it if it must. */
uint64_t value_read(Lower *l, const Node *node, uint32_t value);
uint64_t value_bytes(const Lower *l, const Value *v);
Range constant_range(Lower *l, const uint8_t *byte, uint32_t n);

/* The drafts as a program; `whole`: with the file's own inputs and outputs. */
Program *lower_program(Lower *l, bool whole);

/* ---- engine.c, host.c: layers ---- */
/* Output channels of a node: as many as the row can say; 0, with the reason, if
 * it cannot say it at all. */
uint32_t engine_channels(Lower *l, NodeId node, const char **why);
void lower_engine(Lower *l, NodeId node);
void lower_host(Lower *l, NodeId node);

/* The shape with 1s in front, of at most 4 axes. */
bool dims_of_tensor(const Tensor *t, uint32_t dims[4]);

#endif
