/* lines.h - line buffers: where the pixels of a tensor lie that is made band by
 * band, and in each band column by column.
 *
 * A band is `band` rows, which are written side by side; row r of the tensor is
 * row (r + shift) % band of its band. While a band is written, readers may go
 * back to the `keep` rows above it, and, in all of these, to the last `span`
 * columns. Each of the `band` classes of rows has a ring of its own: of a class
 * d bands are kept, so its ring holds d times the tensor's width, and `span`
 * columns. Together a channel takes keep * width + band * span pixels: the
 * lines and the tile of a fused pyramid (Alwani et al., MICRO 2016), without a
 * copy from one to the other. A ring of h whole rows is the case band 1, keep
 * h - 1, span = width.
 */
#ifndef HWSPEC_LINES_H
#define HWSPEC_LINES_H

#include <stdint.h>

typedef struct LineBuffer {
    uint32_t band; /* 0: none */
    uint32_t keep, span, shift;
} LineBuffer;

/* Pixels of one channel, for a tensor of `width` columns. */
uint64_t lines_pixels(const LineBuffer *lines, uint32_t width);
/* Where among them row `row`, column `col` of the tensor lies. */
uint64_t lines_pixel(const LineBuffer *lines, uint32_t width, uint32_t row,
                     uint32_t col);
/* How many columns from there on lie one behind the other. */
uint32_t lines_run(const LineBuffer *lines, uint32_t width, uint32_t row,
                   uint32_t col);

#endif
