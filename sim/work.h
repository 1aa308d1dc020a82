/* work.h - what one instruction asks for, by meaning.
 *
 * Input: the values of an instruction's fields. Output: sizes, windows, places
 * and tiles, all checked, with what the text leaves out filled in (a square
 * format has one size for both axes; pools do not name their channels...).
 */
#ifndef SIM_WORK_H
#define SIM_WORK_H

#include "sim/run.h"

enum { ROWS, COLS }; /* index of an axis */

/* One axis of a window that slides over a volume. */
typedef struct Window {
    uint32_t kernel, stride;
    int64_t pad; /* below 0: the first rows or columns that it skips */
    uint32_t dilation;
} Window;

typedef struct Extent {
    uint32_t c, h, w;
} Extent;

static inline uint32_t extent_axis(const Extent *e, int axis) {
    return axis == ROWS ? e->h : e->w;
}
static inline uint64_t extent_count(const Extent *e) {
    return (uint64_t)e->c * e->h * e->w;
}

typedef struct Tiling {
    bool on;
    uint32_t w, h;
    uint64_t buffer[2]; /* bytes in active memory */
    uint32_t c, in_c;   /* channels, of a nest of loops; else 0 */
    bool weights_stay;
    uint64_t weights[2], sums;
    uint32_t memory; /* the active memory */
} Tiling;

typedef struct Work {
    HwOp op;
    int32_t engine;
    int64_t step;
    const char *name;  /* with #k for a tile, or for channels from k on */
    bool is_named;     /* the instruction says so */
    const char *layer; /* of its constants */
    uint32_t first;    /* k, else 0 */
    Window conv[2], pool[2];
    uint32_t groups; /* 0: by the weights */
    uint32_t factor[2];
    uint32_t patch[2], shift[2]; /* of windows of pixels, by axis */
    uint32_t order;              /* of axes, as digits */
    bool zero_fill; /* upsampling: the first of each block, else zeros */
    bool adds_bias;
    bool says_act;  /* the instruction says whether, and which one */
    bool act_exact; /* by its number; by flags, leaky is a prelu */
    uint32_t act;   /* as hw_act_text takes it */
    bool prelu;     /* results may have slopes */
    bool pool_global;
    Extent in, in2, mid, out;
    bool out_turns;   /* the result lies in a ring: */
    uint32_t out_row; /* from this row of the layer's on */
    bool has_in2;
    Place in_at, in2_at, out_at;
    Repl in_repl; /* as the engine reads it */
    bool has_repl;
    bool pingpong, halfrate; /* of weights */
    bool parallel_read;
    bool has_waits;
    uint64_t waits;                /* units; see insn_waits */
    uint32_t row, rows, col, cols; /* LOAD, STORE */
    Tiling tile;
    bool stages;       /* reads its weights from active memory: */
    Place weights_at;  /* these; LOAD_WEIGHTS writes them */
    uint32_t from;     /* ... from that memory */
    uint32_t first_c;  /* of the layer's output channels the first */
    bool partial;      /* it tells of which input channels: from this one on */
    uint32_t first_in; /* ... of its input channels */
    uint32_t area;     /* taps of its kernel, of which `conv` has some: those */
    Taps taps;
    bool sums_first, sums_last; /* sums begin; the result is made of them */
    bool reads_bias;            /* from a memory: */
    Place bias_at;              /* these; LOAD_BIAS writes them */
    bool keeps_sums; /* in a memory of their own, until they are results: */
    Place sums_at;   /* there */
} Work;

/* HW_MATRIX: pixels of the second volume in a window; 0: its windows are
 * others. */
static inline uint64_t pixels_mixed(const Work *w) {
    uint64_t pixels = 1;
    for (int axis = 0; axis < 2; axis++) {
        uint32_t own = extent_axis(&w->in, axis);
        uint32_t other = extent_axis(&w->in2, axis);
        uint32_t windows = own / w->patch[axis];
        bool fits = own % w->patch[axis] == 0 && other % windows == 0 &&
                    (own == other || !w->shift[axis]);
        pixels *= fits ? other / windows : 0;
    }
    return pixels;
}

/* What an instruction touches of memories. */
typedef struct Operand {
    Place place;
    bool writes;
} Operand;
enum { MOST_TOUCHED = 6 };
/* How many. */
uint32_t work_operands(const Work *work, Operand out[MOST_TOUCHED]);

/* ---- layer.c ---- */

bool op_is_conv(HwOp op);  /* with or without a pool; DECONV is not */
bool op_has_pool(HwOp op); /* alone or behind a convolution */
bool op_is_fused(HwOp op); /* convolution and pool in one */
bool op_is_average(HwOp op);

/* Groups of a convolution, by the image where the instruction does not say. */
uint32_t work_groups(Run *run, const Work *work);
/* Sets the names of the instruction and its layer, and its first channel. */
void work_names(Run *run, const HwFields *fields, Work *work);
/* The layer of which the instruction, of this operation, makes some. */
const char *work_layer(Run *run, const HwInsn *insn, HwOp op);

/* Rows or columns under a window, dilation included. */
uint64_t window_reach(const Window *window);
/* Rows and columns of the volume in front of a window that this box of the
 * volume behind it needs; clipped to the volume. */
Box window_needs(const Window window[2], Box box, uint32_t h, uint32_t w);

/* ---- work.c ---- */

/* False, with a violation, if the instruction makes no sense; it is then
 * skipped. HOST and CONCAT only get op, step, name. */
bool work_read(Run *run, const HwInsn *insn, Work *out);

/* fields.c: reports each token that says something else than what follows from
 * the rest of the instruction. */
void fields_judge(Run *run, const HwInsn *insn, const HwFields *fields,
                  const Work *work);

/* Products that making `made` from `channels` channels takes. */
uint64_t window_products(const Window window[2], uint32_t channels,
                         const Extent *made);
/* False where memory or time would run out. */
bool window_feasible(const Window window[2], uint32_t channels,
                     const Extent *made);

#endif
