/* numbers.h - how the machine computes a layer: its numbers, found from the
 * network's scales. The file says them, and filegen_evaluate computes by them.
 *
 * Codes have no sign here: those of int8 are their values + 128.
 */
#ifndef FILEGEN_NUMBERS_H
#define FILEGEN_NUMBERS_H

#include "base/requant.h"
#include "filegen/filegen.h"

/* Who runs a layer. */
typedef enum FileWay {
    FILE_NOTHING, /* an input, a constant; or the same bytes under a new name */
    FILE_ENGINE,  /* one node of an engine, or several by output channels */
    FILE_BESIDE,  /* operands lie beside each other: nothing runs */
    FILE_HOST     /* nodes of the processor */
} FileWay;

/* A convolution as an engine runs it, with what comes behind. */
typedef struct FileConv {
    uint32_t in_c, out_c, kernel;
    bool depthwise;
    int32_t zero_in, zero_weight;
    const uint8_t *weight; /* out_c, in_c (depthwise: 1), rows, columns */
    const char *pool;      /* "none", "max", "sample" */
    const char *pool_edge; /* "inside", "ignore" */
    uint32_t pool_kernel, pool_stride;
    uint32_t n_stages;
    RequantStage *stage; /* values by output channel where they differ */
} FileConv;

/* x + add, times mul, / 2^shift, halves up. */
typedef struct FileScaled {
    int32_t add, mul, shift;
} FileScaled;

/* A convolution or product by the processor, in units of the result's code. */
typedef struct FileReal {
    uint32_t out_c, in_c, groups, kernel[2], stride[2], dilation[2];
    int32_t before[2], after[2];
    const float *weight, *bias;
    float least, most;
    /* instead, where one factor serves all channels: codes, and what is added
     * to the operand's, to these, and to the result's behind its factor */
    const uint8_t *code;
    const int64_t *code_bias;
    int32_t add_in, add_weight;
    FileScaled out;
} FileReal;

struct FileLayer {
    FileWay way;
    const FileConv *conv;  /* FILE_ENGINE */
    uint32_t channels;     /* of the result, that a node makes */
    const char *why;       /* FILE_HOST: why no engine */
    const uint8_t *table;  /* 256 codes: a function of each element, alone or
                            * behind the rest */
    FileScaled scaled[3];  /* of two operands and the result */
    const uint8_t *value;  /* of a CONSTANT */
    const char *operation; /* of two operands: "add" */
    const FileReal *real;
    float codes_a_unit[2]; /* around layers on reals: of operand and result */
    int32_t zero[2];
};

/* From `from` on (in codes of the result, before it is rounded) the result is
 * `code` + slope * (x - from). The first piece has no `from`. */
typedef struct CurvePiece {
    double from, slope;
    int32_t code;
} CurvePiece;
enum { CURVE_PIECES = 4 };
typedef struct Curve {
    uint32_t n;
    CurvePiece piece[CURVE_PIECES];
} Curve;

/* Between codes lo and hi, with a slope below `zero`: 1 where there is none. */
Curve curve_of(int32_t lo, int32_t hi, int32_t zero, double slope);

/* Values of all stages of an arithmetic, so that a sum x of channel c becomes
 * the curve at factor[c] * x + offset[c]. NULL if they cannot say it; `*why`.
 */
RequantStage *numbers_stages(Arena *arena, const HwArith *arith,
                             uint32_t channels, const double *factor,
                             const double *offset, const Curve *curve,
                             const char **why);

/* What is added to the values of a type to make its codes here. */
static inline int32_t file_code_offset(const Quant *q) {
    return q->type == QUANT_I8 ? -quant_type[QUANT_I8].lo : 0;
}

/* Whether it has codes as files hold them; real numbers are the other kind of
 * element. */
static inline bool file_bytes(const Tensor *t) {
    return t->quant.type == QUANT_I8 || t->quant.type == QUANT_U8;
}

/* ---- of a layer: layers.c ---- */

typedef struct LayerMaker {
    Arena *arena;
    const HwSpec *spec;
    const Graph *g;
    const char *why; /* why not, of the last that failed */
} LayerMaker;

/* The node as an engine runs it; NULL, with `why`, if none does. */
const FileConv *layer_conv(LayerMaker *m, NodeId node);
/* A sum of two volumes that lie beside each other, as a convolution of both. */
const FileConv *layer_sum(LayerMaker *m, NodeId node);
/* A convolution or product on reals. */
const FileReal *layer_real(LayerMaker *m, NodeId node);
/* 256 codes of an activation, or of a change of the quantisation, from operand
 * k to the result. */
const uint8_t *layer_table(LayerMaker *m, NodeId node, uint32_t k);
/* Sum, difference or product of codes. False, with `why`. */
bool layer_binary(LayerMaker *m, NodeId node, FileLayer *out);
/* The code of the value that a PAD fills with. */
int32_t file_pad_code(const Graph *g, const Node *node);
/* What a CONSTANT has, as a file has it: codes, or floats; NULL, with `why`. */
const uint8_t *layer_constant(LayerMaker *m, NodeId node, uint32_t *bytes);
/* Codes that the result can be. */
void layer_bounds(const LayerMaker *m, NodeId node, int32_t *lo, int32_t *hi);

#endif
