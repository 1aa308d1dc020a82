/* layout.h - how a volume of C x H x W elements lies in a memory.
 *
 * A layout is a list of axes from the outside in. An axis is a dimension (c, h
 * or w) or part of one split by N: `c/96` (which section) and `c%96` (where in
 * it). The extent of an axis may be rounded up; an inner part may be clipped to
 * the dimension first (so that narrow volumes take less). An address is thus
 * fc(c) + fh(h) + fw(w): separable.
 *
 * A layout may be one of several lists, its cases, chosen by the extents of the
 * volume: the first case whose ranges hold. All functions take such a layout,
 * too.
 *
 * Replication: of C channels the first `full` * N fill sections of N; the
 * rest is stored `width` channels a section, each section holding `units`
 * copies side by side. full = sections = units = width = 0: not replicated.
 *
 * Units: bytes unless said otherwise. Source: facts/xdnn.md 2.3 and 2.4.
 */
#ifndef HWSPEC_LAYOUT_H
#define HWSPEC_LAYOUT_H

#include "base/diag.h"

enum { LAYOUT_MAX_AXES = 8 };

typedef enum LayoutDim { LAYOUT_C, LAYOUT_H, LAYOUT_W } LayoutDim;

typedef struct LayoutAxis {
    LayoutDim dim;
    uint32_t split; /* 0: the whole dimension */
    bool inner;     /* the part within a section: dim % split */
    bool clip;      /* inner: extent is min(split, dimension) */
    uint32_t round; /* extent is rounded up to a multiple; >= 1 */
} LayoutAxis;

typedef struct LayoutCase LayoutCase;

typedef struct Layout {
    const char *name;
    Loc loc;
    uint32_t n;                       /* 0 where there are cases */
    LayoutAxis axis[LAYOUT_MAX_AXES]; /* [0] is the outermost */
    uint32_t element;                 /* bytes of an element */
    uint32_t n_cases;
    const LayoutCase *cases; /* one of them holds for every volume */
} Layout;

/* lo..hi, both of them in it. */
typedef struct LayoutRange {
    uint32_t lo, hi;
} LayoutRange;

struct LayoutCase {
    LayoutRange when[3]; /* extents, by LayoutDim */
    Layout axes;
};

typedef struct Repl {
    uint32_t full, sections, units, width;
} Repl;

typedef struct Volume {
    uint32_t c, h, w;
    Repl repl;
} Volume;

/* Whether both have the same elements and copies. */
bool volumes_same(const Volume *a, const Volume *b);

/* The case that holds for the volume; the layout itself if it has no cases. */
const Layout *layout_case(const Layout *layout, const Volume *volume);

/* The N of d/N in the case that holds, 1 where the dimension is whole. */
uint32_t layout_split(const Layout *layout, const Volume *volume,
                      LayoutDim dim);
/* Bytes from an index to the next of the dimension, or of its sections where it
 * is split (d/N), whether or not the volume has two of them. */
uint64_t layout_step(const Layout *layout, const Volume *volume, LayoutDim dim);

/* Bytes that the volume takes, padding included. UINT64_MAX on overflow. */
uint64_t layout_bytes(const Layout *layout, const Volume *volume);

/* Byte offset of element (c, h, w), copy `copy`, from the volume's start. */
uint64_t layout_offset(const Layout *layout, const Volume *volume, uint32_t c,
                       uint32_t h, uint32_t w, uint32_t copy);

/* Copies of channel c in the volume: >= 1. */
uint32_t layout_copies(const Layout *layout, const Volume *volume, uint32_t c);

/* The separable form: offset(c, h, w, 0) = c_at[c] + h_at[h] + w_at[w]; copy k
 * of channel c lies k * copy_step bytes further, for k < copies[c]. */
typedef struct LayoutTables {
    uint64_t *c_at, *h_at, *w_at;
    uint32_t *copies;
    uint64_t copy_step;
} LayoutTables;
LayoutTables layout_tables(Arena *arena, const Layout *layout,
                           const Volume *volume);

/* An axis of a volume, measured: index i of the dimension is digit i / divide,
 * modulo `modulo` where that is not 0, and a step of the digit is `stride`
 * bytes. Channels with copies are placed first, as Repl says. */
typedef struct LayoutDigit {
    LayoutDim dim;
    uint32_t divide, modulo;
    uint64_t stride;
} LayoutDigit;
/* From the outside in; how many of them. */
uint32_t layout_digits(const Layout *layout, const Volume *volume,
                       LayoutDigit out[LAYOUT_MAX_AXES]);

/* Channels in one step of the outermost channel axis: a part of a volume that
 * starts at a multiple of this starts at an address of its own. 1 for a layout
 * with whole channels outermost; 0 if no channel axis is outermost (parts of
 * the channels can then not be addressed as volumes). Of cases, the least
 * number that is right for all; that of a volume is that of its layout_case. */
uint32_t layout_granule(const Layout *layout);

/* Channels at whose multiples a part of a volume ends before the next begins,
 * padding included: granules, as many as are padded to; 0 as above. */
uint32_t layout_part_step(const Layout *layout);

/* Bytes from the start of `whole` to the granule that holds channel c. */
uint64_t layout_part_offset(const Layout *layout, const Volume *whole,
                            uint32_t c);

/* Whether channels [c, c + n) of the whole lie, from layout_part_offset on, as
 * a volume of n channels without copies does: an instruction that does not name
 * the whole takes them for one. Strides must be the same in both: a clipped
 * axis is no longer than its volume has channels. */
bool layout_part_alone(const Layout *layout, const Volume *whole, uint32_t c,
                       uint32_t n);

/* What lies one behind the other of a box of rows in a volume: the bytes of a
 * row, rows of what holds them all (a channel, a section), or the whole box. */
typedef enum Contiguous { ROWS_APART, ROWS_TOGETHER, ALL_TOGETHER } Contiguous;
/* Of a box of `moved` in `whole`; rows of it, all columns or some. */
Contiguous layout_contiguous(const Layout *layout, const Volume *whole,
                             const Volume *moved);

/* The bytes of a volume that lie one behind the other where its rows lie like
 * that. ROWS_APART: of one channel, the bytes that one row takes if rows of one
 * channel lie together, else the bytes of a row over all channels of a granule.
 * *all: bytes of the volume. */
uint64_t layout_run_bytes(const Layout *layout, const Volume *volume,
                          Contiguous rows_lie, uint64_t *all);

#endif
