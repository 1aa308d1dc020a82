/* address.h - where the elements of a volume lie, by the definition itself.
 *
 * For those who judge plans and listings. layout.c answers the same questions
 * for those who make them; neither uses the other, so that a mistake in one of
 * them shows.
 *
 * The definition: an element has a digit on each axis of the layout; its digits
 * from the outermost axis in, read as a number of mixed radix, are its cell.
 * The radix of an axis is what comes behind the highest digit that any element
 * of the *enclosing* volume has there, rounded up; of an inner part that is not
 * clipped, or holds copies, the whole section. Of a layout of cases, the axes
 * are those of the first case that the enclosing volume's extents are in.
 */
#ifndef HWSPEC_ADDRESS_H
#define HWSPEC_ADDRESS_H

#include "hwspec/layout.h"

/* Cells of the volume, padding included. UINT64_MAX on overflow. */
uint64_t address_cells(const Layout *layout, const Volume *volume);
/* The same in bytes. */
uint64_t address_bytes(const Layout *layout, const Volume *volume);

/* Cell of an element of the volume, from the volume's start: copy `copy` of
 * channel c. The volume must have no more than 2^64 cells. */
uint64_t address_cell(const Layout *layout, const Volume *volume, uint32_t c,
                      uint32_t h, uint32_t w, uint32_t copy);

/* Bytes from an index of the dimension to the next, or from a section to the
 * next where it is split, whether or not the volume has two of them. */
uint64_t address_step(const Layout *layout, const Volume *volume,
                      LayoutDim dim);

/* Copies of channel c: >= 1. */
uint32_t address_copies(const Layout *layout, const Volume *volume, uint32_t c);

/* The cells of all elements: address_cell(c, h, w, k) = c_at[c] + h_at[h] +
 * w_at[w] + k * copy_step, for k < copies[c]. In cells, not in bytes. */
LayoutTables address_tables(Arena *arena, const Layout *layout,
                            const Volume *volume);

/* Bytes from the start of the whole to the first element whose digit on the
 * outermost axis is that of channel c; 0 where the outermost axis is none of
 * channels. UINT64_MAX on overflow. */
uint64_t address_part(const Layout *layout, const Volume *whole, uint32_t c);

/* Bytes [*first, *end) of all that has such a digit for one of the channels
 * [c, c + n), n > 0; from the last digit on, up to the end of the volume. */
void address_span(const Layout *layout, const Volume *whole, uint32_t c,
                  uint32_t n, uint64_t *first, uint64_t *end);

/* How an instruction takes an operand: a volume from byte `offset` of the
 * placement's on. */
typedef struct AddressView {
    Volume volume;
    uint64_t offset;
    uint32_t c; /* in it: the operand's first channel */
} AddressView;

/* Whether elements [c, c + n) x [row, row + rows) x [col, col + cols) of the
 * whole have the cells that those of the view from (view.c, 0, 0) on have. */
bool address_agrees(const Layout *layout, const Volume *whole,
                    const AddressView *view, const uint32_t first[3],
                    const uint32_t n[3]);

#endif
