/* lines.c - where the pixels of a line buffer lie; see lines.h.
 *
 * Input: a line buffer that lines_pixels finds sane. Output: indices of pixels.
 * The classes' rings follow each other; that of class i keeps
 * (keep + i) / band bands, which sums up to `keep` rows (Hermite's identity).
 */
#include "hwspec/lines.h"

uint64_t lines_pixels(const LineBuffer *lines, uint32_t width) {
    return (uint64_t)lines->keep * width + (uint64_t)lines->band * lines->span;
}

/* The ring of a row, and the first pixel of the row among all that the ring
 * ever holds. */
typedef struct Turn {
    uint64_t start, length, first;
} Turn;

static Turn turn_of(const LineBuffer *lines, uint32_t width, uint32_t row) {
    uint64_t at = (uint64_t)row + lines->shift;
    uint32_t class = (uint32_t)(at % lines->band);
    uint64_t start = 0, bands = 0;
    for (uint32_t i = 0; i <= class; i++) {
        start += i ? bands * width + lines->span : 0;
        bands = ((uint64_t)lines->keep + i) / lines->band;
    }
    return (Turn){start, bands * width + lines->span, at / lines->band * width};
}

uint64_t lines_pixel(const LineBuffer *lines, uint32_t width, uint32_t row,
                     uint32_t col) {
    Turn turn = turn_of(lines, width, row);
    return turn.start + (turn.first + col) % turn.length;
}

uint32_t lines_run(const LineBuffer *lines, uint32_t width, uint32_t row,
                   uint32_t col) {
    Turn turn = turn_of(lines, width, row);
    uint64_t left = turn.length - (turn.first + col) % turn.length;
    return left < width - col ? (uint32_t)left : width - col;
}
