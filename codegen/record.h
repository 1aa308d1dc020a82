/* record.h - what an instruction does in terms that no machine owns: the
 * neutral half of a listing's JSON (docs/listing.md).
 *
 * A record is made from the plan's placements, not from the instruction's
 * fields, so that who reads one need not know the rows of the hwspec.
 */
#ifndef CODEGEN_RECORD_H
#define CODEGEN_RECORD_H

#include "codegen/listing.h"
#include "hwspec/lines.h"

/* Elements of a tensor, and where they lie. Element (c, h, w) of the operand,
 * counted from 0, is channel `channel` + c, row `row` + h, column `col` + w of
 * `whole`; in a ring the row is taken modulo whole.h; in line buffers row and
 * column are first made a pixel of the one row that `whole` has. */
typedef struct RecordOperand {
    const char *role; /* "in", "in2", "out", "sums", "weights", "bias" */
    const char *tensor;
    uint32_t memory;
    uint64_t origin; /* bytes: start of `whole` in the memory */
    Volume whole;
    uint32_t channel, row, col;
    uint32_t channels, rows, cols;
    bool ring;
    LineBuffer lines;
    uint32_t pitch; /* line buffers: columns of the tensor */
    Quant quant;
    uint32_t first_channel; /* weights: of the layer's output channels */
    uint32_t first_input;   /* ... of its input channels, */
    bool some_inputs;       /* ... where it may be some of them, */
    bool some_taps;         /* ... and these taps of their kernel */
    uint32_t first_tap, last_tap;
    uint64_t address; /* bytes: of its first element */
    bool strided; /* element (c, h, w) lies stride[0] * c + stride[1] * h +
                   * stride[2] * w bytes further; 0 along what it has one of */
    uint64_t stride[3];
} RecordOperand;

enum { RECORD_MOST_OPERANDS = 5 };

struct Record {
    HwOp op;
    uint32_t unit; /* of insn.h */
    uint32_t step;
    const char *layer;     /* node; of a move: the tensor */
    const char *constants; /* layer of the image's blobs, or NULL */
    uint32_t n;
    RecordOperand operand[RECORD_MOST_OPERANDS];
    bool tiled; /* its operands pass through tiles in active memory: */
    uint32_t tile_w, tile_h;
    uint32_t tile_c, tile_in_c;          /* 0: tiles have all channels, */
    uint64_t tile_weights[2], tile_sums; /* ... and none of these. Bytes in */
    uint64_t tile_input[2];              /* the first active memory */
    bool adds_up; /* some input channels, or all; sums lie in `out`, or `sums`:
                   */
    bool sums_first, sums_last; /* they begin; the result is made */
    uint32_t n_waits;
    const uint32_t *wait; /* instructions that have ended when it starts */
};

#endif
