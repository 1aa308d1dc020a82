/* ranks.c - sets with neighbours; see ranks.h. */
#include "base/ranks.h"

Ranks ranks_new(Arena *arena, uint32_t n) {
    Ranks ranks = {.n_levels = 0};
    /* One number more, so that `n` itself has a word to look from. */
    uint64_t words = n;
    do {
        words = words / 64 + 1;
        ranks.level[ranks.n_levels++] = ARENA_ARRAY(arena, uint64_t, words);
    } while (words > 1);
    return ranks;
}

void ranks_add(Ranks *ranks, uint32_t member) {
    for (uint32_t k = 0; k < ranks->n_levels; k++, member /= 64)
        ranks->level[k][member / 64] |= UINT64_C(1) << member % 64;
}

void ranks_remove(Ranks *ranks, uint32_t member) {
    for (uint32_t k = 0; k < ranks->n_levels; k++, member /= 64) {
        uint64_t *word = &ranks->level[k][member / 64];
        *word &= ~(UINT64_C(1) << member % 64);
        if (*word)
            return;
    }
}

static uint32_t highest_bit(uint64_t word) {
    return 63 - (uint32_t)__builtin_clzll(word);
}

uint32_t ranks_below(const Ranks *ranks, uint32_t limit) {
    for (uint32_t k = 0; k < ranks->n_levels; k++, limit /= 64) {
        uint64_t bits =
            ranks->level[k][limit / 64] & ((UINT64_C(1) << limit % 64) - 1);
        if (!bits)
            continue;
        uint32_t at = limit / 64 * 64 + highest_bit(bits);
        while (k--)
            at = at * 64 + highest_bit(ranks->level[k][at]);
        return at;
    }
    return RANKS_NONE;
}

uint32_t ranks_above(const Ranks *ranks, uint32_t limit) {
    for (uint32_t k = 0; k < ranks->n_levels; k++, limit /= 64) {
        uint64_t bits =
            ranks->level[k][limit / 64] & (UINT64_MAX << limit % 64 << 1);
        if (!bits)
            continue;
        uint32_t at = limit / 64 * 64 + (uint32_t)__builtin_ctzll(bits);
        while (k--)
            at = at * 64 + (uint32_t)__builtin_ctzll(ranks->level[k][at]);
        return at;
    }
    return RANKS_NONE;
}
