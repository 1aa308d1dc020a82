/* near.c - edit distance between words; see near.h. */
#include "base/near.h"

#include <string.h>

enum { MAX_COMPARED = 48 };

static uint32_t least_of(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

/* Edits that make one word the other: a letter more, less or changed, or two
 * neighbours in each other's place. A word that begins with the other (`align`,
 * `alignment`) counts as 1. UINT32_MAX where one is too long to bother. */
static uint32_t distance(const char *a, const char *b) {
    size_t n = strlen(a), m = strlen(b), shorter = n < m ? n : m;
    uint32_t row[3][MAX_COMPARED + 1]; /* of this letter and two before */
    if (n > MAX_COMPARED || m > MAX_COMPARED)
        return UINT32_MAX;
    if (shorter >= 3 && !memcmp(a, b, shorter))
        return 1;
    for (uint32_t j = 0; j <= m; j++)
        row[0][j] = j;
    for (uint32_t i = 1; i <= n; i++) {
        uint32_t *here = row[i % 3];
        const uint32_t *up = row[(i + 2) % 3], *up2 = row[(i + 1) % 3];
        here[0] = i;
        for (uint32_t j = 1; j <= m; j++) {
            here[j] = least_of(up[j - 1] + (a[i - 1] != b[j - 1]),
                               least_of(up[j], here[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                here[j] = least_of(here[j], up2[j - 2] + 1);
        }
    }
    return row[n % 3][m];
}

Near near_to(const char *wrong) {
    return (Near){wrong, NULL, (uint32_t)strlen(wrong) / 3 + 1};
}

void near_look(Near *near, const char *word) {
    uint32_t d = distance(word, near->wrong);
    if (d >= near->least)
        return;
    near->least = d;
    near->best = word;
}

const char *near_question(Arena *arena, const Near *near) {
    return near->best ? arena_printf(arena, "did you mean `%s`? ", near->best)
                      : "";
}
