/* run.h - the state of one simulation, shared by the files of this room.
 *
 * Input: nothing. Output: types and the functions of faults.c. Invariants: a
 * Run lives for one sim_run; `hold` as long as that, `work` for one
 * instruction, `arena` is the caller's and gets only what the result shows.
 */
#ifndef SIM_RUN_H
#define SIM_RUN_H

#include "base/map.h"
#include "base/vec.h"
#include "sim/memory.h"
#include "sim/sim.h"

/* Things that go wrong at most once an instruction, however many cells or
 * tiles show it. */
typedef enum FaultOnce {
    ONCE_UNWRITTEN = 1,
    ONCE_FOREIGN = 2,
    ONCE_TILE = 4,
    ONCE_CONFLICT = 8
} FaultOnce;

/* The constants of layers that were asked for last. */
typedef struct BlobCache {
    Arena *arena;
    const char *layer;             /* the last one */
    uint64_t n_kept;               /* values */
    VEC(struct BlobValues *) held; /* blobs.c */
} BlobCache;

/* Tables of volumes that were asked for last: tables.c. */
typedef struct KnownTables KnownTables;
typedef struct TableCache {
    Arena *arena;
    KnownTables *slot;
    uint64_t n; /* entries of all tables in `arena` */
} TableCache;

/* The step of an instruction that does not say; it runs by itself. */
enum { NO_STEP = -1 };

/* What an instruction that may still be at work touches. */
typedef struct Use {
    const char *name;
    bool writes;
    uint32_t unit; /* of insn.h */
    uint32_t insn; /* order.c */
    Place place;
} Use;

typedef struct Run {
    Arena *arena, *hold, *work, *group; /* group: for one step */
    const Listing *listing;
    const HwSpec *spec;
    SimOptions options;
    uint32_t n_inputs;
    const float *const *inputs;

    Cells *cells; /* by memory */
    VEC(Writer) writer;
    BlobCache blobs;
    TableCache tables;

    uint32_t insn;      /* index of the instruction at work */
    const char *who;    /* its layer */
    uint32_t once;      /* FaultOnce bits that were reported for it */
    bool on_host;       /* the host reads, not an engine */
    bool has_read;      /* an instruction before this one has read something */
    bool reads;         /* this one has */
    uint32_t n_assumed; /* network inputs that nobody announced */

    int64_t step;               /* of the instruction before this one */
    int64_t highest;            /* step so far; 0: none */
    const ListingLayer **item;  /* order.c: by instruction; or NULL */
    Arena *peers;               /* for one step: */
    VEC(Use) peer;              /* touched in it, */
    int64_t peer_step;          /* this one */
    uint64_t am_least, am_most; /* bytes of the first active memory that the
                                 * listing is for, as far as known; 0: not */
    uint32_t rows_made;         /* by the last engine */
    enum { PUT_UNKNOWN, PUT_LATER, PUT_DONE } placeholders;
    uint64_t busy;   /* units that may still be at work: bit (1 << unit) */
    uint64_t issued; /* cycle: nothing later in the listing starts before */
    uint64_t done[HW_MAX_UNITS]; /* by unit: cycle when its work ends */
    uint32_t last_move;          /* the last event of the DMA + 1 */
    uint64_t *free, *wires;      /* by memory: cycle when its wires are free;
                                  * cycles in which they were not */
    VEC(Use) touched;            /* by busy units */
    VEC(SimEvent) event;
    uint64_t floor;      /* queue.c: cycle before which nothing begins */
    VEC(uint64_t) ended; /* ... by instruction */
    VEC(struct AtWork) at_work;
    uint32_t most_at_work; /* before those that are done are forgotten */

    BlobCache staged_blobs; /* staged.c */
    VEC(struct StagedLayer *) staged;
    Map *staged_at; /* by channels and layer: its index; NULL: none yet */
    Map *deconvs;   /* layers that deconvolutions make; likewise */
    Map *products;  /* inner products: pixels of their operand; likewise */
    uint64_t staged_once;        /* elements */
    VEC(struct PartSums *) sums; /* sums.c */

    Arena *watched; /* access.c: for one instruction; NULL: nobody asks */
    VEC(SimAccess) accessed;

    uint64_t n_violations;
    VEC(Violation) violation;
    VEC(const char *) note;
    SimResult *result;
    uint64_t *read, *written; /* bytes by memory */
    SimEngineUse *use;        /* engines, "dma", "host" */
    VEC(SimHostCall) call;
} Run;

/* Records a broken rule of the instruction at work. */
void fault(Run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* True the first time for this instruction. */
bool fault_once(Run *run, FaultOnce kind);
/* Records what had to be assumed. */
void note(Run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* "0x70000 in am": a byte of a memory as listings write it. */
const char *address_text(Run *run, uint32_t memory, uint64_t byte);

#endif
