/* legal_parts.h - a node as the windows that it is made of; private to the
 * legality of nodes. */
#ifndef PASSES_LEGAL_PARTS_H
#define PASSES_LEGAL_PARTS_H

#include "passes/legal_int.h"

/* What a quantity speaks of; a node has the parts that apply to it. */
enum {
    PART_WINDOW = 1u << 0,
    PART_VOLUME = 1u << 1,
    PART_WEIGHT = 1u << 2,
    PART_FACTOR = 1u << 3
};

typedef struct Size {
    uint32_t c, h, w;
} Size;

/* One window operation; a convolution with pooling is two. An inner product
 * has weights as if its kernel were the whole input. */
typedef struct Part {
    uint32_t has;
    const HwSpec *spec;
    Size in, out;
    uint32_t groups;
    uint32_t kernel[2], stride[2], dilation[2], pad[2], pad_end[2], factor[2];
} Part;

/* The node's parts: one, or two; how many. */
uint32_t legal_node_parts(const Candidate *c, Part part[2]);
/* The first limit that the part breaks; HW_LIMIT_COUNT: none. */
uint32_t legal_broken(const Part *part, const HwEngine *engine);
/* NULL if all quantities of the part are within the engine's limits; else why
 * not. */
const char *legal_within(Arena *arena, const Part *part,
                         const HwEngine *engine);

/* NULL if an instruction of the candidate's operation tells its numbers, or
 * lacks tokens only of those that are read from it all the same; else why not.
 */
const char *legal_untold(Arena *arena, const Candidate *c, uint32_t n,
                         const Part *part);

#endif
