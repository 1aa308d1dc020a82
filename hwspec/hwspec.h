/* hwspec.h - the machine as data.
 *
 * Input: YAML (language: docs/hwspec.md, by example targets/template.yaml).
 * Output: HwSpec, const, in the caller's arena; everything in it was checked.
 * Nothing in C knows any machine by name.
 */
#ifndef HWSPEC_HWSPEC_H
#define HWSPEC_HWSPEC_H

#include "base/diag.h"
#include "hwspec/arithmetic.h"
#include "hwspec/layout.h"
#include "hwspec/vocabulary.h"

/* A hwspec with more of them is refused. A pool is a linear active memory, or
 * one buffer of an active memory of fixed buffers. */
enum {
    HW_MAX_MEMORIES = 16,
    HW_MAX_ENGINES = 32,
    HW_MAX_POOLS = 8,
    HW_MAX_DMAS = 8
};

typedef enum HwRole {
    HW_ACTIVE,    /* engines compute in it */
    HW_BACKING,   /* what does not fit goes there */
    HW_INPUT,     /* network inputs, and what the host gives to engines */
    HW_OUTPUT,    /* network outputs, and what engines give to the host */
    HW_WEIGHTS,   /* on chip, beside active memory: weights that were loaded, */
    HW_BIAS,      /* ... biases that were, */
    HW_SUMS,      /* ... sums that become results */
    HW_CONSTANTS, /* of bundles: what layers bring along */
    HW_REGISTERS, /* known to the steps of instructions alone */
    HW_ROLES
} HwRole;
extern const char *const hw_role_name[HW_ROLES + 1]; /* NULL at the end */

typedef struct HwMemory {
    const char *name;
    Loc loc;
    HwRole role;
    uint64_t size;       /* bytes */
    uint32_t unit;       /* bytes that one address step stands for */
    uint64_t base;       /* address, in units, of the memory's first byte */
    uint32_t id;         /* number in the `memory` field of an operand */
    uint32_t align;      /* volumes start at multiples of this many bytes */
    uint32_t buffers;    /* 0: linear; else of hwspec_buffer_bytes each */
    uint32_t partitions; /* for rules on parallel reads; >= 1 */
    uint32_t ports_read, ports_write;
    /* bytes a second, 0: not bounding: of transfers, and of one port where
     * engines compute in the memory */
    double bandwidth;
    double latency;   /* seconds before the first byte of a transfer */
    double row_setup; /* seconds before each row of a transfer */
    uint32_t burst;   /* bytes: a transfer is a number of whole bursts */
    uint32_t channel; /* memory whose wires its transfers use: most often its
                       * own */
    uint64_t cost;    /* of each byte of a bundle's buffer that lies here */
    bool load;        /* constants: a bundle calls for what it needs of them */
    uint64_t piece;   /* ... at most so many bytes at a time; 0: any number */
    const Layout *layout;
} HwMemory;

/* lo..hi, or one of a list. */
typedef struct HwRange {
    bool set;
    uint64_t lo, hi;
    uint32_t n;
    const uint64_t *list; /* n > 0: exactly these */
    Loc loc;
} HwRange;

typedef struct HwCycles HwCycles; /* cycles.h */

/* Each loop axis is unrolled this far in hardware; cycles are products of
 * ceilings. 1 where absent. */
typedef struct HwUnroll {
    uint32_t out_c, in_c, kernel, out_h, out_w;
    uint32_t row_taps; /* input channels, at most, beside which taps of a row
                          take lanes of `in_c`; 0: none */
} HwUnroll;

typedef enum HwDivisor {
    HW_DIVISOR_KERNEL, /* average over the whole kernel area */
    HW_DIVISOR_VALID   /* over the elements inside the volume */
} HwDivisor;

/* Results of a bundle that may lie where operands lie that are done with:
 * DEPTHWISE, POOL, row by row; POINTWISE (1x1), some pixels at a time, which
 * are copied aside; SUM: of a convolution that is only added to something, some
 * channels at a time, which are made aside. */
typedef enum HwOverlap {
    HW_OVERLAP_DEPTHWISE,
    HW_OVERLAP_POOL,
    HW_OVERLAP_POINTWISE,
    HW_OVERLAP_SUM
} HwOverlap;

/* Operands of an operation: the first input, any other, the result. */
typedef enum HwOperand { HW_IN, HW_IN2, HW_OUT, HW_OPERANDS } HwOperand;
extern const char *const hw_operand_name[HW_OPERANDS + 1];
/* Which one operand k of n_in inputs and a result is: 0 .. n_in. */
static inline HwOperand hw_operand(uint32_t k, uint32_t n_in) {
    return k == n_in ? HW_OUT : k ? HW_IN2 : HW_IN;
}

typedef struct HwEngine {
    const char *name;
    Loc loc;
    HwOps ops;
    uint32_t acts[HW_OP_COUNT]; /* bit (1 << HwAct) fused behind each op */
    Loc acts_loc;               /* of `activations` */
    HwRange limit[HW_LIMIT_COUNT];
    HwUnroll unroll;
    double clock;                 /* Hz */
    double efficiency;            /* 0..1 */
    const HwCycles *cycles;       /* or NULL: products of ceilings */
    uint32_t passes[HW_OP_COUNT]; /* over its operand; 0: 1 */
    uint32_t setup;        /* cycles before an instruction's first result */
    uint32_t slope_cycles; /* more for each result with an own slope */
    bool in_place;         /* the result may take the place of an operand */
    uint32_t overlap;      /* bit (1 << HwOverlap) */
    bool ahead;            /* works on the next image while others are at this
                            * one; what it reads from other memories passes
                            * through buffers of its own */
    HwDivisor divisor;     /* of average pooling */
    uint32_t part_align;   /* channels: where a part of a volume may start */
    uint32_t lies[HW_OPERANDS]; /* bit (1 << memory): where each may lie */
    /* the same of what it reads besides, and of sums that other instructions go
     * on with, which lie where the result will, or in the memory of that role;
     * 0: not said */
    uint32_t weights, bias, sums;
    uint32_t beside; /* bit (1 << engine): what can run in the same step */
    const HwArith *arithmetic; /* NULL: not said */
    bool has_time;             /* it has prices: hwspec/format/price.c */
    double floor;              /* seconds that anything takes at least */
} HwEngine;

/* Replication: section of N channels; ways to store the last partial one. */
typedef struct HwCopies {
    uint32_t units, width;
} HwCopies;
typedef struct HwReplication {
    uint32_t section;         /* 0: the machine has none */
    uint32_t n_stored, n_fly; /* in active memory; on the way from DDR */
    const HwCopies *stored, *fly;
    uint32_t memories; /* bit (1 << memory): where it is stored */
} HwReplication;

typedef enum HwTilingKind {
    HW_TILING_NONE,
    HW_TILING_SOFTWARE, /* load, tile, store: row planks of full width */
    HW_TILING_HARDWARE  /* one instruction that holds the tile's size */
} HwTilingKind;

/* Bytes, or a share of the first active memory, down to its alignment. */
typedef struct HwPlace {
    uint64_t bytes;
    uint32_t part, whole; /* 0, 0: just bytes */
} HwPlace;

/* One operand style of hardware tiling. Fractions are of the active memory. */
typedef struct HwTileStyle {
    Loc loc;
    bool in_backing, out_backing;
    HwOps ops;
    uint64_t buffer[2]; /* bytes: where the two input tiles start */
    uint64_t buffer_size;
    uint64_t reserved;   /* bytes from 0 that no other volume may touch */
    bool has_dest;       /* tile.dest is `dest`; else the output's address,
                          * or -1 if it goes to a backing memory */
    uint64_t dest;       /* bytes */
    uint32_t multiple_w; /* tile widths are multiples of this */
    uint32_t sums;       /* bytes of a partial sum. Not 0: the tiles are of
                          * channels, too; those of the input, of weights and of
                          * sums lie before `reserved`, where the instruction
                          * says, as bare elements; the rest above is 0 */
    /* as the file has them, for a memory of any size */
    struct {
        HwPlace buffer[2], size;
        HwPlace reserved; /* bytes UINT64_MAX: to the end of the buffers */
    } given;
} HwTileStyle;

/* What a group of layers keeps of tensors that only it needs. */
typedef enum HwRolls {
    HW_ROLLS_NOTHING, /* rows that several layers need are computed again */
    HW_ROLLS_ROWS,    /* rings of rows */
    HW_ROLLS_COLUMNS  /* ... and line buffers, lines.h */
} HwRolls;

/* When loads and stores run. */
typedef enum HwMoves {
    HW_MOVES_ALONE,  /* in steps of their own */
    HW_MOVES_BESIDE, /* in the steps of layers, too */
    HW_MOVES_QUEUED  /* each instruction waits for its engine and its bytes
                      * alone */
} HwMoves;

/* Kind software: rows of full width are loaded, run, stored. */
typedef struct HwRowTiling {
    HwOps ops; /* that can run so */
    HwRolls rolls;
    HwMoves moves;
    uint32_t queue;       /* queued: so many instructions are at work or wait */
    int32_t weights_from; /* memory from which weights are loaded into active
                           * memory, the first of several; 0: engines have
                           * them */
    uint32_t weights_in;  /* all of them: bit (1 << memory) */
    bool weights_move;    /* each run reads its weights from DDR: of machines as
                           * which plans are made before weights are loaded */
} HwRowTiling;

/* Kind hardware: an instruction holds the tile's size. */
typedef struct HwTileTiling {
    HwOps always; /* that never run whole */
    uint32_t n;
    const HwTileStyle *style;
} HwTileTiling;

/* What the other kind has is zero. */
typedef struct HwTiling {
    HwTilingKind kind;
    bool weights_stay; /* engines hold all weights: reading costs no bytes */
    HwRowTiling rows;
    HwTileTiling tiles;
} HwTiling;

/* Ping-pong and half rate of the weight cache: rows <= limit. 0: no cache. */
typedef struct HwWeightCache {
    uint32_t pingpong, full_rate, half_rate;
    double bandwidth; /* bytes a second into the cache; 0: not bounding */
} HwWeightCache;

/* The machine several times: all but what they share is each one's own. */
typedef struct HwCores {
    uint32_t count; /* 0, 1: one */
    uint32_t share; /* bit (1 << memory); size and bandwidth are one core's part
                     */
} HwCores;

/* A unit that moves data beside engines and others of its kind. */
typedef struct HwDma {
    const char *name;
    Loc loc;
    HwOps ops;         /* of load, store, load_weights */
    uint32_t memories; /* bit (1 << memory): outside active memory */
} HwDma;

/* What machine code is for; NULL: the computer that amphora runs on, without
 * what only some of its kind have. */
typedef struct HwNative {
    const char *triple, *cpu, *features; /* as LLVM names them */
    uint32_t lanes;    /* floats of a vector register; 0: by the others */
    uint64_t weights;  /* bytes that there are for constants; 0: any number */
    bool weights_file; /* a bundle's are beside its object file */
    bool fit_element;  /* element is the most; the network may need less */
} HwNative;

/* What a bundle keeps in memory. */
typedef enum HwKind {
    HW_KIND_INPUTS,
    HW_KIND_OUTPUTS,
    HW_KIND_CONSTANTS,
    HW_KIND_ACTIVATIONS,
    HW_KIND_SCRATCH, /* what one layer needs: constants that were loaded, tiles
                      */
    HW_KINDS
} HwKind;

/* Of bundles: in which active memories each kind of buffer may lie, bit (1 <<
 * memory). 0 of inputs and outputs: they are the caller's; of constants: where
 * `native` or the memory of that role says. */
typedef struct HwBundle {
    uint32_t lies[HW_KINDS];
    const char *planner; /* NULL: "auto" */
} HwBundle;

/* What runs the layers that no engine does. A layer takes the call, and then
 * the longer of its products and its bytes. */
typedef struct HwHost {
    double macs, bandwidth; /* products and bytes a second */
    double call;            /* seconds before and behind a layer */
} HwHost;

typedef struct HwInsnSet HwInsnSet; /* insn.h */
typedef struct HwFormat HwFormat;   /* program.h */

/* The network's: as its file means it. */
typedef enum HwRounding {
    HW_ROUNDING_UP,
    HW_ROUNDING_EVEN,
    HW_ROUNDING_NETWORK,
    HW_ROUNDING_TERMS
} HwRounding;

/* What numbers of a network on codes engines take. */
typedef enum HwNumberType {
    HW_NUMBER_ANY,
    HW_NUMBER_INT8,
    HW_NUMBER_UINT8
} HwNumberType;

typedef struct HwNumbers {
    bool stated; /* else the engines' `arithmetic` says it, or nothing does */
    Loc loc;
    HwNumberType type;   /* of volumes of 8 bits */
    bool pow2;           /* scales are powers of two */
    bool per_tensor;     /* one scale for all weights of a layer */
    bool no_zeros;       /* zero points are 0 */
    HwRange weight_bits; /* unset: any */
    uint32_t bias_bits;  /* of a bias, shifted alike in a layer; 0: any */
    bool means_weigh;    /* means are sums with equal weights */
} HwNumbers;

/* Something that a machine costs, or that running a network on it does: a sum
 * of factors by what there is, or happens. */
typedef struct HwCost {
    const char *name;
    double base;
    const double *memory;   /* of a byte of size, by memory; or NULL */
    const double *lanes;    /* of a product a cycle, by engine; or NULL */
    const double *products; /* of a product, by engine; or NULL */
    double ddr, weights, cycles;
} HwCost;

/* What running a network counts. */
typedef struct HwCounts {
    const uint64_t *products; /* by engine */
    uint64_t ddr, weights, cycles;
} HwCounts;

typedef struct HwSpec {
    const char *machine; /* name */
    const char *doc;
    Loc loc;
    double clock;        /* Hz */
    uint32_t element;    /* bytes of an element in active memory */
    HwRounding rounding; /* of layers on codes */
    uint32_t n_memories;
    const HwMemory *memory; /* active ones first, in order of preference */
    uint32_t n_active;
    HwCores cores;
    /* index into memory[], or -1: `backing` and `constants` may be absent */
    int32_t backing, input, output, constants;
    uint32_t backings; /* all of that role, bit (1 << memory); `backing` is the
                        * first. They are of one layout */
    uint32_t weights;  /* index: where weights lie that `weights_from` loads: a
                        * memory of that role, else the first active one */
    uint32_t bias; /* index: the memory of that role; 0: engines have them */
    uint32_t sums; /* index: the memory of that role; 0: sums lie where results
                    * will, or in engines */
    uint32_t n_engines;
    const HwEngine *engine;
    uint32_t n_arithmetics;
    const HwArith *arithmetic;
    HwNumbers numbers;
    HwReplication replication;
    HwTiling tiling;
    uint32_t n_dmas; /* 0: one that moves everything */
    const HwDma *dma;
    HwWeightCache weight_cache;
    HwNative native;
    HwBundle bundle;
    HwHost host;
    uint32_t n_costs;
    const HwCost *cost;
    uint32_t max_instructions; /* 0: no limit */
    /* rewrites of the graph that this machine asks for */
    bool conv_1x1_stride2;   /* -> max pool 1x1 stride 2, then conv 1x1 */
    bool pool_around_concat; /* pool of a concat -> concat of pools */
    bool expand_groups;      /* grouped convolutions become dense ones */
    bool stride_as_sample;   /* strides -> every place, then a sample */
    bool input_by_phases;    /* ... of inputs: even and odd rows as channels */
    bool fc_as_conv;         /* inner products -> convolutions 1x1 */
    bool pad_to_limits;      /* volumes below in.w, in.h are padded behind */
    bool slabs;              /* depthwise layers that do not fit */
    bool bands;              /* of rows or columns, of layers that do not */
    bool act_of_codes;       /* sums -> codes -> other codes: at once */
    bool pool_behind_conv;   /* max pools get a convolution before them */
    bool input_shares_step;  /* loads of network inputs take no step number */
    uint32_t input_step;     /* ... but this one */
    const HwInsnSet *insns;
    const struct YamlNode *lanes; /* lanes/lanes.h reads it */
    const HwFormat *format;       /* of its files; NULL: listings only */
} HwSpec;

struct YamlNode;

/* An override from the command line: `path=value`. */
typedef struct HwSetting {
    const char *path, *value;
} HwSetting;

/* Reads a shipped target by name, or a file by path (anything that has a '/'
 * or ends in .yaml). All errors are reported; NULL after any. */
const HwSpec *hwspec_load(Arena *arena, Diag *diag, const char *name_or_path,
                          uint32_t n_settings, const HwSetting *settings);
/* The text of the same as a tree, with what it extends and the settings; the
 * rest is not checked. NULL after errors. */
const struct YamlNode *hwspec_tree(Arena *arena, Diag *diag,
                                   const char *name_or_path,
                                   uint32_t n_settings,
                                   const HwSetting *settings);

/* The same from a text. */
const HwSpec *hwspec_read(Arena *arena, Diag *diag, const char *file,
                          const char *text, size_t len, uint32_t n_settings,
                          const HwSetting *settings);

/* Names of the shipped targets, sorted, NULL at the end. */
const char *const *hwspec_targets(Arena *arena);

/* True if v is allowed; an unset range allows everything. */
bool hw_range_has(const HwRange *range, uint64_t v);
/* "1..14" or "1, 2, 4, 8". */
const char *hw_range_text(Arena *arena, const HwRange *range);

/* Bytes of a place in a memory. */
uint64_t hwspec_place(const HwPlace *place, const HwMemory *memory);
/* Bytes of a fixed buffer, a multiple of `align`; 0 in a linear memory. What is
 * left over belongs to none. */
uint64_t hwspec_buffer_bytes(const HwMemory *memory);
/* Bytes of each partition; what is left over belongs to the last one. */
uint64_t hwspec_partition_bytes(const HwMemory *memory);
/* The partition that holds the byte. */
uint32_t hwspec_partition_of(const HwMemory *memory, uint64_t byte);
/* Whether bytes [a, a + n_a) lie in partitions of an active memory in which
 * none of [b, b + n_b) do: both can be read at once. n_a, n_b > 0. */
bool hwspec_in_partitions(const HwMemory *memory, uint64_t a, uint64_t n_a,
                          uint64_t b, uint64_t n_b);
/* Puts the style's buffers, and what it reserves, where they are in it. */
void hwspec_place_style(HwTileStyle *style, const HwMemory *memory);

/* The engine that runs `op`: the first in the file that lists it and does not
 * work ahead; -1: none. */
int32_t hwspec_engine(const HwSpec *spec, HwOp op);
/* The first that does; -1: none. */
int32_t hwspec_engine_ahead(const HwSpec *spec, HwOp op);

/* Active memories in which an engine that runs `op` lets the operand lie, bit
 * (1 << memory); all, of what no engine runs. */
uint32_t hwspec_lies(const HwSpec *spec, HwOp op, HwOperand operand);

/* The unit that moves what lies there, or goes there: an index in spec->dma;
 * 0 where there are none, -1 where none of them does. */
int32_t hwspec_dma(const HwSpec *spec, HwOp op, uint32_t memory);

/* Whether groups may roll by columns. */
static inline bool hwspec_by_columns(const HwSpec *spec) {
    return spec->tiling.rows.rolls == HW_ROLLS_COLUMNS;
}
/* Whether the weights of such layers are loaded to where engines read them. */
bool hwspec_stages(const HwSpec *spec, HwOp op);
/* Whether an instruction of the engine may add up some of the input channels,
 * and leave the sums for the next one. */
bool hwspec_adds_up(const HwSpec *spec, HwOp op, int32_t engine);
/* Whether its sums lie in the memory of that role until they are results. */
bool hwspec_keeps_sums(const HwSpec *spec, HwOp op, int32_t engine);
/* Bytes that may lie together: those of a buffer, or all. */
uint64_t hwspec_room(const HwMemory *memory);
/* Bytes of that memory that the sums of one instruction have. */
uint64_t hwspec_sums_room(const HwSpec *spec);
/* Whether it reads biases that were loaded. */
bool hwspec_loads_bias(const HwSpec *spec, HwOp op);

/* Whether an instruction can have channels [c, c + n) of the whole for an
 * operand there: they lie as a volume of their own does, or the machine's
 * instructions name the whole. */
bool hwspec_part_told(const HwSpec *spec, const HwMemory *memory,
                      const Volume *whole, uint32_t c, uint32_t n);
/* Whether parts of volumes lie between each other there, and are told. */
bool hwspec_parts_between(const HwSpec *spec, const HwMemory *memory);

/* Bytes of all active memories together. */
uint64_t hwspec_active_bytes(const HwSpec *spec);

/* Volume without copies: sections rounded up where the layout of `memory` has
 * replication, all zero elsewhere. */
Repl hwspec_repl_none(const HwSpec *spec, uint32_t channels);
/* As the memory stores it: all zero where it holds no copies. */
Repl hwspec_repl_in(const HwSpec *spec, uint32_t memory, Repl repl);
/* Whether the machine can store C channels so, or (on_the_fly) read them so on
 * the way from DDR. Without replicated sections the copies may be named. */
bool hwspec_repl_allowed(const HwSpec *spec, uint32_t channels, Repl repl,
                         bool on_the_fly);
/* The rule of facts/xdnn.md 2.4 for a volume read by a kernel of `area` taps:
 * the quadruple of least cycles full*area + ceil(sections*area/units), from
 * the stored ways, or (on_the_fly) those on the way from DDR. Ties: fewer
 * sections, then fewer copies. */
Repl hwspec_repl_rule(const HwSpec *spec, uint32_t channels, uint32_t area,
                      bool on_the_fly);
/* Rows of the weight cache: full*area + ceil(sections*area/units). */
uint64_t hwspec_weight_rows(Repl repl, uint32_t area);

/* How many cores there are: parts of shared memories make a whole again. */
static inline uint32_t hwspec_cores(const HwSpec *spec) {
    return spec->cores.count ? spec->cores.count : 1;
}

/* Products that an engine can make in a cycle of its own. */
double hwspec_lanes(const HwEngine *engine);
/* `counts` NULL: of the machine alone. */
double hwspec_cost(const HwSpec *spec, const HwCost *cost,
                   const HwCounts *counts);
/* Does it depend on what is run? */
bool hwspec_cost_of_runs(const HwCost *cost);

#endif
