/* pack_svg.h - a picture of a placement: time to the right, addresses up. */
#ifndef DRIVER_PACK_SVG_H
#define DRIVER_PACK_SVG_H

#include "pack/csv.h"

const char *pack_svg(Arena *arena, const CsvProblem *csv,
                     const PackResult *result);

#endif
