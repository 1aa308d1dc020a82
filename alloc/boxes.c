/* boxes.c - what a memory gets, so that no larger one gets less.
 *
 * Input: what a small memory gets and what a large one gets, who makes plans
 * for a size, a size between the two. Output: what a memory of this size gets.
 * Method: halving. What is planned for the size in the middle has to be no
 * better than what the upper end gets and no worse than the lower one's, in
 * bytes and in cycles; then it is an end itself. Sizes are halved by number, so
 * they do not depend on the memory's own, and the memory gets what the lower
 * end gets at last.
 * Invariant: of two memories the larger one never gets what costs more. Up to
 * the halving that parts them both look at the same ends; the middle of that
 * one is no better than what the larger one gets, and no worse than the other
 * one's.
 */
#include "alloc/boxes.h"

enum { OCTAVE = 16, SHIFT = 4 };

uint64_t box_size(uint32_t number) {
    uint64_t head = OCTAVE + number % OCTAVE;
    return head << (number / OCTAVE) >> SHIFT;
}

uint32_t box_number(uint64_t size) {
    uint32_t bits = 0;
    while (size >> bits > 1)
        bits++;
    uint64_t head = size << SHIFT >> bits;
    return size ? bits * OCTAVE + (uint32_t)(head - OCTAVE) : 0;
}

/* A part in so many of either price is worth a plan. */
static bool differ(const Box *below, const Box *above) {
    enum { PART = 256 };
    const Price *a = &below->price, *b = &above->price;
    return !below->any || a->bytes - b->bytes > a->bytes / PART ||
           a->cycles - b->cycles > a->cycles / PART;
}

Box boxes_halve(BoxPlan *plan, void *context, Box below, Box above,
                uint64_t size) {
    uint32_t low = box_number(below.size), high = box_number(above.size);
    while (low + 1 < high && above.any && differ(&below, &above)) {
        uint32_t mid = low + (high - low) / 2;
        Box box = plan(context, box_size(mid), &below, &above);
        bool upper = box_size(mid) <= size;
        *(upper ? &low : &high) = mid;
        *(upper ? &below : &above) = box;
    }
    return below;
}
