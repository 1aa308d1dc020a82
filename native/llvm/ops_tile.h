/* ops_tile.h - convolutions on channel blocks, tile by tile: volumes lie as
 * [c / B][h][w][c % B], weights as kernel_packing says (program.h).
 *
 * A tile is a run of pixels of a row of the output times one or two blocks of
 * its channels; its sums stay in registers while all taps and input channels
 * go by. Rows at the top and bottom have shorter loops over kernel rows; tiles
 * at the left and right, where some taps of some pixels are outside, have code
 * of their own, in which the loop over kernel columns is unrolled and each
 * column has just the pixels that it reaches. The method is that of E.
 * Georganas et al., "Anatomy of high-performance deep learning convolutions on
 * SIMD architectures", SC 2018. What is multiplied with what is a TileKind's
 * part.
 */
#ifndef NATIVE_LLVM_OPS_TILE_H
#define NATIVE_LLVM_OPS_TILE_H

#include "native/llvm/ops_window.h"

enum { MOST_PIXELS = 32, MOST_SUMS = 64 };

typedef struct Tile Tile;

/* A tap of some pixels, for the input channels of a block. */
typedef struct TileTap {
    Val in_block, n; /* n: its channels that there are */
    Val seen;        /* the block, of those that the output's see */
    Val ky, kx;
    uint32_t from, to; /* pixels */
} TileTap;

typedef struct TileKind {
    bool depthwise;
    /* What the sums of block q begin with. */
    Val (*first)(const Tile *t, uint32_t q);
    void (*add)(Tile *t, const TileTap *tap);
    /* A sum of block q as what is stored, `place` elements into the output. */
    void (*store)(const Tile *t, uint32_t q, Val sum, Val place);
} TileKind;

struct Tile {
    const Emit *e;
    const TileKind *kind;
    Conv v; /* a 1x1 convolution has all its pixels in one row */
    uint32_t block;
    Type sums;      /* of a pixel and a block */
    uint32_t width; /* values of such a vector */
    uint32_t n_q;   /* blocks of output channels at once */
    KernelSpan span;
    /* now: */
    Val out_block;   /* first block of output channels */
    Val row, column; /* of the tile's first pixel */
    Range ky;        /* kernel rows inside */
    uint32_t n_p;    /* pixels of the tile */
    bool inner;      /* all taps of its columns are inside */
    Val sum[MOST_SUMS];
};

/* The whole convolution. */
void tile_emit(const Emit *e, const TileKind *kind, const Conv *v, Type sums,
               uint32_t width);

/* ---- for kinds ---- */

/* The first of the output's channels in block q. */
Val tile_channel(const Tile *t, uint32_t q);
/* Where the tile's first pixel, if it were inside, has the tap. */
Val tile_place(const Tile *t, const TileTap *tap);
/* The same of pixel p. */
Val tile_pixel(const Tile *t, Val first, uint32_t p);
Val tile_get(Tile *t, uint32_t q, uint32_t p);
void tile_set(Tile *t, uint32_t q, uint32_t p, Val sum);

#endif
