/* boxes.h - a plan for each size of a memory, so that a larger one never costs
 * more; private to alloc.
 */
#ifndef ALLOC_SEARCH_BOXES_H
#define ALLOC_SEARCH_BOXES_H

#include <stdbool.h>
#include <stdint.h>

/* What a plan costs. */
typedef struct Price {
    uint64_t bytes, cycles;
} Price;
static inline bool price_no_more(Price a, Price b) {
    return a.bytes <= b.bytes && a.cycles <= b.cycles;
}

/* What a memory of `size` bytes gets: one of somebody's plans, which may be for
 * a smaller one. */
typedef struct Box {
    bool any; /* else there is none, and it costs more than all others */
    uint64_t size;
    Price price;
    uint32_t plan;
} Box;
static inline bool box_within(Price p, const Box *below, const Box *above) {
    return (!above->any || price_no_more(above->price, p)) &&
           (!below->any || price_no_more(p, below->price));
}

/* Finds the best plan for `size` that is within the two; else `below`. */
typedef Box BoxPlan(void *context, uint64_t size, const Box *below,
                    const Box *above);

/* Sizes are numbered, `octave` for each power of two, which is one as well. */
uint64_t box_size(uint32_t octave, uint32_t number);
/* The highest number of a size within this one; 0: none. */
uint32_t box_number(uint32_t octave, uint64_t size);

typedef struct Halving {
    BoxPlan *plan;
    void *context;
    uint32_t octave; /* of the sizes that are planned */
    uint32_t part;   /* one in so many of either price is worth a plan */
} Halving;

/* The last two between which a memory of `size` bytes lies, that of `below` at
 * least and less than that of `above` bytes. */
void boxes_narrow(const Halving *h, Box *below, Box *above, uint64_t size);
/* What it gets: the lower one. */
Box boxes_halve(const Halving *h, Box below, Box above, uint64_t size);

#endif
