/* image.h - the data image of a listing: constants, regions, host layers. */
#ifndef CODEGEN_IMAGE_H
#define CODEGEN_IMAGE_H

#include "plan/plan.h"
#include "codegen/listing.h"

/* action_of[i]: the plan's action behind instruction i of n. */
Image image_make(Arena *arena, const Plan *plan, const uint32_t *action_of,
                 uint32_t n);

#endif
