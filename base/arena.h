/* arena.h - memory by lifetime.
 *
 * An arena owns everything allocated from it and gives it back at once.
 * Arenas are the only callers of malloc and free in the tree (libraries that
 * allocate for themselves aside). Memory comes zeroed, but where it says raw.
 *
 * When the machine has no memory left the program ends with exit code 1 and one
 * line on stderr, or what a guard (guard.h) watches over is given up: no caller
 * checks for NULL. A reader of untrusted input must
 * therefore bound what it asks for by the size of its input *before* it asks.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Arena Arena;

/* A new, empty arena. `name` (a literal) is used in the out-of-memory line. */
Arena *arena_new(const char *name);

/* Gives back the arena and all that was allocated from it. NULL is allowed. */
void arena_free(Arena *arena);

/* What `from` owns is `arena`'s from now on; `from` itself is gone. */
void arena_join(Arena *arena, Arena *from);

/* It outlives the guard under which it was made (guard.h). */
void arena_keep(Arena *arena);

/* Gives back all that was allocated; the arena itself stays usable. */
void arena_reset(Arena *arena);

/* Bytes handed out since the arena was made or reset. */
size_t arena_used(const Arena *arena);

/* `size` zeroed bytes at a multiple of `align` (a power of two <= 64). */
void *arena_alloc(Arena *arena, size_t size, size_t align);

/* The same, not zeroed: what it holds is not known. */
void *arena_alloc_raw(Arena *arena, size_t size, size_t align);

/* `count` zeroed elements; ends the program when count * size overflows. */
void *arena_calloc(Arena *arena, size_t count, size_t size, size_t align);

/* A copy of `count` elements of `size` bytes. */
void *arena_copy(Arena *arena, const void *from, size_t count, size_t size,
                 size_t align);

/* A NUL-terminated copy of `len` bytes. */
char *arena_strndup(Arena *arena, const char *text, size_t len);
char *arena_strdup(Arena *arena, const char *text);

/* printf into the arena. */
char *arena_printf(Arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
char *arena_vprintf(Arena *arena, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

#define ARENA_NEW(arena, T) ((T *)arena_alloc((arena), sizeof(T), alignof(T)))
#define ARENA_ARRAY(arena, T, n)                                               \
    ((T *)arena_calloc((arena), (n), sizeof(T), alignof(T)))
#define ARENA_COPY(arena, T, from, n)                                          \
    ((T *)arena_copy((arena), (from), (n), sizeof(T), alignof(T)))

#ifdef __cplusplus
}
#endif

#endif
