/* lanes.h - machines whose memories belong to lanes (processors), one channel
 * each, and that run a whole layer from registers.
 *
 * A network is a list of layers of the hardware (LaneNet), read from the YAML
 * description that the vendor's tool reads, or made from a Graph. Numbers and
 * formulas of a machine (passes, columns, cycles, registers, what is legal)
 * are expressions under `lanes` of its hwspec; C knows layers only.
 */
#ifndef LANES_LANES_H
#define LANES_LANES_H

#include "base/npy.h"
#include "graph/graph.h"
#include "hwspec/expr/expr.h"
#include "hwspec/hwspec.h"

enum { LANES_MOST = 64, LANE_OPERANDS = 16, LANE_INPUT = -1 };

typedef enum LaneOp {
    LANE_CONV2D,
    LANE_CONV1D,
    LANE_DECONV,
    LANE_LINEAR,
    LANE_PASS,
    LANE_OPS
} LaneOp;
typedef enum LaneElt {
    LANE_ALONE,
    LANE_ADD,
    LANE_SUB,
    LANE_OR,
    LANE_XOR
} LaneElt;
typedef enum LaneAct { LANE_PLAIN, LANE_RELU, LANE_ABS } LaneAct;

/* Index 0: rows, 1: columns. */
typedef struct LaneLayer {
    Loc loc;
    const char *name;
    LaneOp op;
    LaneElt elt;
    LaneAct act;
    uint32_t n_sources; /* operands of the element-wise stage, or concat */
    int32_t source[LANE_OPERANDS]; /* layers before, or LANE_INPUT */
    uint32_t operands;             /* 1 without an element-wise stage */
    uint32_t in_c, in[2];          /* of one operand */
    uint32_t pool[2], pool_stride, mid[2], kernel[2], pad[2], dilation[2];
    uint32_t out_c, out[2], width; /* bytes of a result's channel: 1, 4 */
    uint32_t bits;
    int32_t shift; /* total */
    bool pooled, average, pool_first, flatten, streaming, chw, marked;
    bool widened; /* runs as 3x3 where 1x1 is said */
    bool sized;   /* in_c is that of the volume, not of the weights */
    uint64_t lanes, out_lanes; /* 0: not said */
    uint32_t in_offset, out_offset, gap;
    bool says_in_offset, says_pad, says_kernel, says_sources, says_bits,
        says_shift, says_square;
    int32_t out_shift;  /* as said: total less 8 - bits */
    uint32_t stride[2]; /* as said; 0: not said */
    uint32_t in_passes, out_passes;
    const int8_t *weight, *bias; /* out, in, kh, kw; or NULL */
    uint32_t n_bias;
    /* found by lanes_columns */
    uint32_t column, columns, bias_offset, bias_quadrant;
    uint32_t ring; /* words of a streaming layer's input; 0: it has none */
} LaneLayer;

typedef struct LaneNet {
    const char *arch, *dataset;
    uint32_t in_c, in[2];
    uint32_t n;
    LaneLayer *layer;
} LaneNet;

typedef struct LaneRegister {
    uint32_t number;
    const Expr *value, *when;
} LaneRegister;

/* What must hold of a layer, or of its lanes in each quadrant; `says` is the
 * reason. */
typedef struct LaneRule {
    const Expr *holds;
    const char *says;
    bool by_quadrant;
} LaneRule;

typedef struct LaneMachine {
    Loc loc;
    const char *name;
    uint32_t lanes, bank, bank_bytes, quadrant, columns, column_align, biases,
        layers;
    bool overlap, half_away; /* of average pools */
    ExprNames *names;
    const Expr *passes, *in_count, *out_count, *length, *cycles, *ring,
        *address;
    uint64_t startup;
    uint64_t data_base, weight_base, bias_base, quadrant_step, bank_step,
        lane_step;
    uint32_t n_registers, n_rules;
    LaneRegister *reg;
    LaneRule *rule;
} LaneMachine;

/* Has the machine a section `lanes`? */
static inline bool lanes_has(const HwSpec *spec) {
    return spec->lanes != NULL;
}
const LaneMachine *lanes_machine(Arena *arena, Diag *diag, const HwSpec *spec);

/* ---- descriptions ---- */

/* Reads the description; weights are not there yet. NULL after errors. */
LaneNet *lanes_read(Arena *arena, Diag *diag, const char *path);
/* Weights of its layers: `path` is a JSON with `layers`, each with `weights`
 * and `bias` as {offset, shape} in the .npy beside it, weight_bits and
 * total_shift; in order, layers without weights left out. */
bool lanes_weights(Arena *arena, Diag *diag, const char *path, LaneNet *net);
/* The elements of a .npy, which are codes of 8 bits; NULL after errors. */
const int8_t *lanes_codes(Arena *arena, Diag *diag, const char *path, Npy *npy);
/* Sizes of all layers from that of the input, maps and passes. */
bool lanes_shapes(Arena *arena, Diag *diag, const LaneMachine *m, LaneNet *net);

/* What became of a graph. */
typedef struct LaneLowered {
    TensorId input, result;
    uint32_t biases, changed; /* those that are no multiple of 128, or too
                               * large: the nearest was taken */
} LaneLowered;
/* A network on codes as layers, with their sizes and places; changes the
 * graph's biases to those of the machine. NULL after errors. */
LaneNet *lanes_lower(Arena *arena, Diag *diag, const LaneMachine *m, Graph *g,
                     LaneLowered *out);

/* ---- resources ---- */

/* First columns of weights and bytes of biases. */
bool lanes_columns(Arena *arena, Diag *diag, const LaneMachine *m,
                   LaneNet *net);
/* Everything that the machine's rules and the memory ask; errors say the layer
 * and the reason. */
bool lanes_check(Arena *arena, Diag *diag, const LaneMachine *m,
                 const LaneNet *net);

/* The value of one of the machine's expressions for a layer. */
int64_t lanes_value(Arena *arena, const LaneMachine *m, const LaneNet *net,
                    uint32_t layer, uint32_t quadrant, uint32_t number,
                    const Expr *e);
int64_t lanes_layer_cycles(Arena *arena, const LaneMachine *m,
                           const LaneNet *net, uint32_t layer);
uint64_t lanes_cycles(Arena *arena, const LaneMachine *m, const LaneNet *net);

typedef struct LaneWord {
    uint32_t layer, quadrant, number, address, value;
} LaneWord;
/* All register writes, in order. */
const LaneWord *lanes_registers(Arena *arena, const LaneMachine *m,
                                const LaneNet *net, uint32_t *n);

/* ---- addresses ---- */

static inline uint32_t lane_count(uint64_t map) {
    return (uint32_t)__builtin_popcountll(map);
}
static inline uint32_t lane_first(uint64_t map) {
    return map ? (uint32_t)__builtin_ctzll(map) : 0;
}
static inline uint32_t lane_last(uint64_t map) {
    return map ? 63 - (uint32_t)__builtin_clzll(map) : 0;
}
/* Where the k-th lane of a map is. */
uint32_t lane_at(uint64_t map, uint32_t k);

/* A byte of the data memories. */
typedef struct LaneCell {
    uint32_t bank, byte;
} LaneCell;
LaneCell lane_in_cell(const LaneMachine *m, const LaneLayer *l,
                      uint32_t operand, uint32_t c, uint32_t pixel);
/* The first of its `width` bytes; byte k lies 4 * (gap + 1) * k further. */
LaneCell lane_out_cell(const LaneMachine *m, const LaneLayer *l, uint32_t c,
                       uint32_t pixel, uint32_t k);

/* ---- running ---- */

typedef struct LaneRun {
    uint32_t n_faults;
    VEC(const char *) fault; /* the first ones */
    const uint32_t *crc;     /* by layer: its result, c, h, w */
    uint32_t *high;          /* by bank: bytes up to the last used */
    const int32_t *out;      /* of the last layer */
    uint32_t n_out;
    const uint8_t *const *memory; /* by bank */
} LaneRun;
/* Runs the network through the data memories: every value is written to its
 * cell and read from there; a cell that holds anything but what the layer must
 * read is a fault. `input`: codes in the order c, h, w. */
LaneRun *lanes_run(Arena *arena, const LaneMachine *m, const LaneNet *net,
                   const int8_t *input);

/* ---- our own placement ---- */

/* Replaces offsets by ours where these are no higher; maps, and so cycles,
 * stay. */
void lanes_place(Arena *arena, const LaneMachine *m, LaneNet *net);
/* Bytes of an instance up to the last that a volume takes. */
uint64_t lanes_height(const LaneMachine *m, const LaneNet *net);

/* ---- files ---- */

/* The description as the vendor's tool reads it. */
const char *lanes_yaml(Arena *arena, const LaneNet *net);
/* C: addresses and values of its registers, weights, biases, the input and the
 * known answer. */
const char *lanes_c(Arena *arena, const LaneMachine *m, const LaneNet *net,
                    const int8_t *input, const LaneRun *run);

#endif
