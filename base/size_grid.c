/* size_grid.c - see size_grid.h. */
#include "base/size_grid.h"

uint64_t grid_size(uint32_t octave, uint32_t number) {
    uint64_t head = octave + number % octave;
    return (head << number / octave) / octave;
}

uint32_t grid_number(uint32_t octave, uint64_t size) {
    uint32_t bits = 0;
    while (size >> bits > 1)
        bits++;
    uint64_t head = size * octave >> bits;
    return size ? bits * octave + (uint32_t)(head - octave) : 0;
}

uint64_t grid_below(uint32_t octave, uint64_t size) {
    return size > 1 ? grid_size(octave, grid_number(octave, size - 1)) : 0;
}
