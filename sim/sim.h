/* sim.h - runs a listing and judges it.
 *
 * Sees the listing, the hwspec and the image; never a Graph or a Plan. Every
 * memory is cells of one element; a cell knows which instruction wrote it and
 * for which volume. Values are float. The arithmetic here shares no code with
 * the reference evaluation.
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include "codegen/listing.h"

typedef struct Violation {
    uint32_t insn;    /* index in the listing; of a network output that is
                       * not there, the last */
    const char *text; /* what rule, which addresses */
} Violation;

/* What an instruction wrote, in plain c, h, w order. */
typedef struct SimOutput {
    const char *name; /* layer, with #k for a tile; tensor where a layer of
                       * the host makes several */
    uint32_t c, h, w;
    const float *value;
} SimOutput;

typedef void SimObserver(void *context, uint32_t insn, const SimOutput *output);

/* Computes layer `index` of image.host on dense tensors by other means than
 * the simulator's own arithmetic; false: it cannot. */
typedef bool SimHost(void *context, uint32_t index, const float *const *in,
                     float *const *out);

/* Bytes [at, end) of a memory, without a gap, that were read or written; and
 * so many more such ranges, each `step` bytes behind the one before. */
typedef struct SimAccess {
    uint32_t memory;
    bool writes;
    bool by_host; /* by the host, not by an engine or a transfer */
    uint64_t at, end;
    uint64_t more, step;
} SimAccess;

/* What an instruction accessed, in the order in which it was met. `insn` is
 * UINT32_MAX for network inputs that the host puts there and outputs that it
 * takes, and `unit` is then "host"; else the engine, "dma" or "host". [start,
 * end): cycles in which it was at work. */
typedef struct SimAccesses {
    uint32_t insn;
    const char *name, *unit;
    uint64_t start, end;
    uint32_t n;
    const SimAccess *access;
} SimAccesses;
typedef void SimWatcher(void *context, const SimAccesses *accesses);

/* Called before each call but the first, with the values of the network's
 * outputs in the one before; returns those of its inputs, which of states are
 * not looked at. */
typedef const float *const *SimCalls(void *context, uint32_t call,
                                     const float *const *outputs);

typedef struct SimOptions {
    uint64_t seed;         /* for constants and inputs that are missing */
    uint64_t compulsory;   /* bytes that the network makes compulsory, as its
                            * plan knows; 0: what this listing shows */
    bool memory_only;      /* no arithmetic: addresses, tags and cycles */
    bool lax;              /* what is executed alone is judged: tokens that
                            * follow from others may say anything */
    bool time_only;        /* cycles alone, of a listing known to be right */
    bool spans;            /* where time_only: also what lies where; nobody
                            * knows how long, so out_until is the event's end */
    SimObserver *observer; /* or NULL: called after each instruction that
                            * computes, and each host layer's output */
    void *context;
    SimWatcher *watcher; /* or NULL: called once behind each instruction that
                          * accesses memory; not where time_only */
    void *watcher_context;
    SimHost *host; /* or NULL */
    void *host_context;
    uint32_t calls;  /* so many, memories kept between them; 0: one. What is
                      * counted is of the first, violations are of all */
    SimCalls *called;
    void *calls_context;
    uint32_t max_violations; /* kept; all are counted. 0: 20 */
} SimOptions;

typedef struct SimEngineUse {
    const char *name;
    uint64_t cycles, instructions;
} SimEngineUse;

/* Cycles of one instruction by what they are spent on; they overlap. */
typedef enum SimCost {
    SIM_COMPUTE,  /* the engine itself */
    SIM_PORTS,    /* operands through the ports of active memory */
    SIM_WEIGHTS,  /* weights into their cache */
    SIM_TRANSFER, /* to and from other memories */
    SIM_COST_COUNT
} SimCost;
extern const char *const sim_cost_name[SIM_COST_COUNT];

/* Bytes of a memory; at == end: none. */
typedef struct SimSpan {
    uint32_t memory;
    uint64_t at, end;
} SimSpan;

/* An instruction that an engine or the DMA ran. */
typedef struct SimEvent {
    const char *name; /* layer, with #k for a tile */
    HwOp op;
    SimSpan in, in2, out;   /* its operands */
    SimSpan tiles;          /* where input tiles lay in active memory */
    SimSpan sums;           /* ... its sums, in a memory of their own, */
    bool sums_stay;         /* ... for the next instruction: it has no output */
    uint64_t out_until;     /* cycle: end of the last that reads its output */
    uint32_t insn;          /* index in the listing */
    uint32_t use;           /* index in SimResult.engine */
    uint32_t outside;       /* of a transfer: memory */
    uint64_t start, cycles; /* of the machine's clock */
    uint64_t cost[SIM_COST_COUNT];
    uint64_t busy;    /* cycles of the engine, were all transfers done before */
    uint64_t fetched; /* of cost[SIM_WEIGHTS]: tiles over the DMA's wires */
    uint64_t idle;    /* cycles before its start in which no engine works */
    const char *behind;     /* then: what it waits for; a transfer's volume */
    uint64_t read, written; /* bytes from and to all that is not AM */
    uint64_t least;         /* bytes of its operands out there, each once */
    uint64_t weights;       /* bytes into the weight cache */
    uint64_t macs;          /* products that the result takes */
} SimEvent;

/* A layer that the host ran. The machine's clock stands still meanwhile: all
 * of it waits. */
typedef struct SimHostCall {
    uint32_t insn, layer;   /* index in the listing; in image.host */
    uint64_t start, cycles; /* of the machine's clock: when it stops, and for
                             * how long */
} SimHostCall;

typedef struct SimResult {
    uint64_t n_violations;
    uint32_t n_kept;
    const Violation *violation;
    uint32_t n_notes; /* what had to be assumed: "input at 0x0 ..." */
    const char *const *note;
    uint32_t n_outputs; /* network outputs, as in image.output */
    const Region *output;
    const float *const *value;
    uint32_t n_memories;
    const uint64_t *read, *written; /* elements moved by loads and stores,
                                     * tiles and hosts aside, in bytes of
                                     * spec->element, by memory */
    uint64_t backing_read, backing_written; /* bytes: by engines and loads from
                                             * and to all that is not AM */
    uint64_t compulsory;  /* as told; else bytes that host and device read of
                           * each other, each once; without an image, all
                           * outputs */
    uint64_t am_peak;     /* bytes of active memory, up to the last touched,
                           * summed over active memories */
    uint64_t cycles;      /* of the machine's clock, the host's aside */
    uint64_t host_cycles; /* sum over `call` */
    uint32_t n_calls;
    const SimHostCall *call; /* layers of the host, in the listing's order */
    uint64_t busy, transfer; /* sums over all instructions: with everything
                              * overlapped the larger of the two is the time */
    uint64_t interval; /* cycles an image: from image to image where some
                        * engines work ahead, else `cycles`, over all cores */
    uint32_t n_engines;
    const SimEngineUse *engine; /* by spec->engine, then "dma", then "host",
                                 * then all units of `dma` but the first */
    const uint64_t *wires;      /* cycles in which data moves, by memory */
    uint64_t instructions;      /* that an engine or the DMA runs */
    uint64_t weights_read;      /* bytes into the weight cache */
    uint32_t n_events;
    const SimEvent *event; /* in the listing's order */
} SimResult;

/* How images follow each other: "one behind the other". */
const char *sim_images_how(Arena *arena, const HwSpec *spec);
/* Products that engines made, those of results made again included. */
uint64_t sim_products(const SimResult *result);

/* inputs: one array per image.input, or per assumed input; NULL, or fewer of
 * them: seeded.
 * NULL after errors in the listing or image themselves. */
const SimResult *sim_run(Arena *arena, Diag *diag, const Listing *listing,
                         uint32_t n_inputs, const float *const *inputs,
                         const SimOptions *options);

#endif
