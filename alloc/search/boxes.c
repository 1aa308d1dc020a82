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
#include "alloc/search/boxes.h"

uint64_t box_size(uint32_t octave, uint32_t number) {
    uint64_t head = octave + number % octave;
    return (head << number / octave) / octave;
}

uint32_t box_number(uint32_t octave, uint64_t size) {
    uint32_t bits = 0;
    while (size >> bits > 1)
        bits++;
    uint64_t head = size * octave >> bits;
    return size ? bits * octave + (uint32_t)(head - octave) : 0;
}

static bool differ(const Halving *h, const Box *below, const Box *above) {
    const Price *a = &below->price, *b = &above->price;
    return !below->any || a->bytes - b->bytes > a->bytes / h->part ||
           a->cycles - b->cycles > a->cycles / h->part;
}

void boxes_narrow(const Halving *h, Box *below, Box *above, uint64_t size) {
    uint32_t low = box_number(h->octave, below->size);
    uint32_t high = box_number(h->octave, above->size - 1) + 1;
    while (low + 1 < high && above->any && differ(h, below, above)) {
        uint32_t mid = low + (high - low) / 2;
        uint64_t planned = box_size(h->octave, mid);
        Box box = h->plan(h->context, planned, below, above);
        bool upper = planned <= size;
        *(upper ? &low : &high) = mid;
        *(upper ? below : above) = box;
    }
}

Box boxes_halve(const Halving *h, Box below, Box above, uint64_t size) {
    boxes_narrow(h, &below, &above, size);
    return below;
}
