/* tensor_bytes.h - what a tensor takes in each memory, and what a node works;
 * private.
 */
#ifndef ALLOC_GEOMETRY_TENSOR_BYTES_H
#define ALLOC_GEOMETRY_TENSOR_BYTES_H

#include "alloc/facts.h"
#include "base/arith.h"

/* The tensor's volume as it lies in a memory. */
Volume volume_in(const Facts *f, TensorId tensor, uint32_t memory);
/* Rows of it. */
Volume row_tile_in(const Facts *f, TensorId tensor, uint32_t rows,
                   uint32_t memory);
/* Bytes for a volume in each pool, rounded up to whole buffers where the
 * memory has such; 0 where it cannot lie. `spans`: may take several. */
void pool_bytes(const Facts *f, TensorId tensor, uint32_t rows, bool spans,
                uint64_t bytes[PACK_MAX_POOLS]);
/* The same of any volume, where buffers of one are not spanned. */
void volume_pool_bytes(const Facts *f, Volume v,
                       uint64_t bytes[PACK_MAX_POOLS]);
/* The least of them that is allowed, aligned; UINT64_MAX if none is. */
uint64_t least_bytes(const Facts *f, const uint64_t bytes[PACK_MAX_POOLS],
                     uint32_t memories);
/* What one operand of a node takes, and where it may lie. */
typedef struct OperandBytes {
    uint64_t bytes[PACK_MAX_POOLS];
    uint32_t memories;
} OperandBytes;
enum { MOST_APART = 8 };
/* The sum of what n operands take at the least; UINT64_MAX if the active
 * memories cannot hold them beside each other, each whole in one of them. */
uint64_t bytes_apart(const Facts *f, const OperandBytes *operand, uint32_t n);
/* Whether they have places so. */
bool lie_apart(const Facts *f, const OperandBytes *operand, uint32_t n);
Pool pool_of(const HwMemory *memory);
uint64_t active_bytes(const Facts *f); /* what whole buffers leave of them */
/* Active memories that the node's engine reaches: bits. */
uint32_t reach(const Facts *f, NodeId node, HwOperand operand);
/* The same of a tensor that the node reads or makes: where all these operands
 * may lie. */
uint32_t reach_of(const Facts *f, NodeId node, TensorId t);
bool on_engine(const Facts *f, NodeId node); /* runs there: no concat */
bool is_placed(const Facts *f, NodeId node); /* a concat by placement */
/* Fills repl of every role. */
void replication_choose(Facts *f);

/* Whether no engine makes it. */
static inline bool from_outside(const Facts *f, TensorId t) {
    Origin origin = f->role[t.i].origin;
    return origin == FROM_INPUT || origin == FROM_HOST;
}

/* What the tensor takes on its way, all of it. */
static inline uint64_t moved_bytes(const Facts *f, TensorId t) {
    Volume v = plan_volume(f->g, t);
    return (uint64_t)v.c * v.h * v.w * f->spec->element;
}

/* Products of the node; of all that engines run. */
uint64_t node_work(const Facts *f, NodeId id);
uint64_t network_work(const Facts *f);
/* Cycles that its engine takes for all of it. */
uint64_t engine_work(const Facts *f, NodeId id);
/* Whether some engine makes several rows at once. */
bool may_fill(const HwSpec *spec);
/* Rows of its result that the engine makes at once, 1 or more; how often it
 * turns to make all by so many rows. */
uint32_t rows_at_once(const Facts *f, NodeId id);
uint64_t row_turns(const Facts *f, NodeId id, uint32_t rows);
/* Cycles in which it makes fewer, if it makes so many rows at a time. */
uint64_t cycles_wasted(const Facts *f, NodeId id, uint32_t rows);
/* Bytes that move over DDR in so many cycles; 0: they take no time. */
double bytes_during(const HwSpec *spec, uint64_t cycles);

#endif
