/* near.h - the word that was meant: of those that there are, the one that looks
 * most like a wrong one. */
#ifndef BASE_NEAR_H
#define BASE_NEAR_H

#include "base/arena.h"

typedef struct Near {
    const char *wrong, *best; /* NULL: none looks like it */
    uint32_t least;           /* edits from one to the other, and one more */
} Near;

/* Up to a third of the word may be wrong. */
Near near_to(const char *wrong);
/* Of equals the first that was looked at stays. */
void near_look(Near *near, const char *word);
/* "did you mean `WORD`? ", or nothing. */
const char *near_question(Arena *arena, const Near *near);

#endif
