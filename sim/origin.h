/* origin.h - which element each cell of active memory holds, where volumes do
 * not tell.
 *
 * A window may be put together from rows that several instructions wrote, each
 * channel at its place, or from copies. Then each cell counts by itself: it
 * holds the element of the writer that made its value, wherever copies have
 * brought it. A reader takes all cells of one writer for elements that are off
 * by one number of channels and one of rows; of copies, one of columns, too.
 */
#ifndef SIM_ORIGIN_H
#define SIM_ORIGIN_H

#include "sim/memory.h"

/* Whether all cells of the box can be what their reader takes them for. */
bool origins_agree(Run *run, const Place *place, Box box);

/* An instruction that copies: what its operand's cells are, before it writes;
 * then its result has the same. */
CellOrigin *origins_read(Run *run, const Place *from);
void origins_write(Run *run, const Place *to, const CellOrigin *origin);

#endif
