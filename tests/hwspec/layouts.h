/* layouts.h - random layouts and volumes for tests. */
#ifndef TESTS_HWSPEC_LAYOUTS_H
#define TESTS_HWSPEC_LAYOUTS_H

#include "base/rng.h"
#include "hwspec/layout.h"

/* A stream of small random numbers. */
typedef struct Dice {
    uint64_t seed, i;
} Dice;

static inline uint32_t roll(Dice *dice, uint32_t n) {
    return (uint32_t)(rng_bits(dice->seed, dice->i++) % n);
}

/* Each dimension whole or in two parts, in any order, with any padding. */
static inline Layout random_layout(Dice *dice) {
    Layout layout = {.element = 1 + roll(dice, 4)};
    for (int dim = LAYOUT_C; dim <= LAYOUT_W; dim++) {
        LayoutAxis axis = {.dim = (LayoutDim)dim, .round = 1 + roll(dice, 4)};
        if (roll(dice, 2))
            axis.split = 2 + roll(dice, 7);
        layout.axis[layout.n++] = axis;
        if (axis.split) {
            axis.inner = true;
            axis.clip = roll(dice, 2);
            layout.axis[layout.n++] = axis;
        }
    }
    for (uint32_t i = layout.n; i-- > 1;) {
        uint32_t j = roll(dice, i + 1);
        LayoutAxis axis = layout.axis[i];
        layout.axis[i] = layout.axis[j];
        layout.axis[j] = axis;
    }
    return layout;
}

/* Two or three random layouts, by channels, rows or columns; the last has no
 * ranges. `at`: room for them. */
static inline Layout random_cases(Dice *dice, LayoutCase at[3]) {
    Layout layout = {.element = 1 + roll(dice, 4), .cases = at};
    layout.n_cases = 2 + roll(dice, 2);
    for (uint32_t i = 0; i < layout.n_cases; i++) {
        at[i] = (LayoutCase){.axes = random_layout(dice)};
        at[i].axes.element = layout.element;
        for (int dim = LAYOUT_C; dim <= LAYOUT_W; dim++)
            at[i].when[dim] = (LayoutRange){1, UINT32_MAX};
        if (i + 1 == layout.n_cases)
            continue;
        LayoutRange *when = &at[i].when[roll(dice, 3)];
        when->lo = 1 + roll(dice, 10);
        when->hi = roll(dice, 2) ? UINT32_MAX : when->lo + roll(dice, 8);
    }
    return layout;
}

static inline uint32_t split_of_c(const Layout *layout) {
    uint32_t split = 0;
    for (uint32_t i = 0; i < layout->n; i++)
        if (layout->axis[i].dim == LAYOUT_C)
            split = layout->axis[i].split;
    return split;
}

/* Nothing, a true quadruple, or one that contradicts the channels. */
static inline Repl random_repl(Dice *dice, const Layout *layout, uint32_t c) {
    uint32_t split = split_of_c(layout);
    if (split < 2 || roll(dice, 2))
        return (Repl){0};
    uint32_t units = 1 + roll(dice, split);
    uint32_t width = split / units;
    uint32_t full = roll(dice, 3) ? c / split : roll(dice, 4);
    uint32_t rest = c > full * split ? c - full * split : 0;
    uint32_t n = roll(dice, 3) ? (rest + width - 1) / width : roll(dice, 4);
    return (Repl){full, n, units, width};
}

static inline Volume random_volume(Dice *dice, const Layout *layout) {
    Volume v = {1 + roll(dice, 20), 1 + roll(dice, 9), 1 + roll(dice, 20), {0}};
    v.repl = random_repl(dice, layout, v.c);
    return v;
}

#endif
