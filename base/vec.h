/* vec.h - growing arrays in an arena.
 *
 *     VEC(int) v = {0};
 *     vec_push(arena, &v, 7);
 *     for (uint32_t i = 0; i < v.n; i++) use(v.at[i]);
 *
 * A vector never shrinks its storage; outgrown storage stays in the arena.
 */
#ifndef BASE_VEC_H
#define BASE_VEC_H

#include "base/arena.h"

#define VEC(T)                                                                 \
    struct {                                                                   \
        T *at;                                                                 \
        uint32_t n, cap;                                                       \
    }

#define vec_push(arena, vec, value)                                            \
    do {                                                                       \
        (vec)->at = vec_room((arena), (vec)->at, (vec)->n, &(vec)->cap,        \
                             sizeof *(vec)->at);                               \
        (vec)->at[(vec)->n++] = (value);                                       \
    } while (0)

/* Room for `most` elements in an empty vector. */
#define vec_reserve(arena, vec, most)                                          \
    ((vec)->cap = (most),                                                      \
     (vec)->at =                                                               \
         arena_alloc_raw((arena), sizeof *(vec)->at * (size_t)(most), 16))

/* Storage with room for one more element than `n`; see vec_push. */
void *vec_room(Arena *arena, void *at, uint32_t n, uint32_t *cap, size_t size);

#endif
