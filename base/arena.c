/* arena.c - arenas as lists of blocks; see arena.h.
 *
 * Each block doubles the one before it up to BLOCK_MAX; a request larger than
 * that gets a block of its own. Under AddressSanitizer the unused part of a
 * block is poisoned, so that overruns are seen although malloc is not involved.
 */
#include "base/arena.h"

#include "base/guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define POISONING 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POISONING 1
#endif
#endif
#ifdef POISONING
#include <sanitizer/asan_interface.h>
enum { RED_ZONE = 8 };
#else
#define ASAN_POISON_MEMORY_REGION(at, size) ((void)(at), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(at, size) ((void)(at), (void)(size))
enum { RED_ZONE = 0 };
#endif

enum { BLOCK_MIN = 1 << 14, BLOCK_MAX = 1 << 22 };

typedef struct Block Block;
struct Block {
    Block *next;
    size_t size, used;
    alignas(64) unsigned char data[];
};

struct Arena {
    GuardLink link; /* first: guards know arenas by it */
    const char *name;
    Block *block; /* the newest, then all others */
    size_t next_size, used;
};

static _Noreturn void out_of_memory(const char *name, size_t size) {
    if (guard_active()) {
        snprintf(guard_reason_text(), sizeof((Guard *)NULL)->said,
                 "out of memory: %zu bytes for %s", size, name);
        guard_leave(GUARD_NO_MEMORY);
    }
#ifdef AMPHORA_EMBEDDED
    (void)name;
    (void)size;
    __builtin_unreachable(); /* all its work is under a guard */
#else
    fprintf(stderr, "amphora: out of memory: %zu bytes for %s\n", size, name);
    exit(1);
#endif
}

static void drop_arena(GuardLink *link) {
    arena_free((Arena *)link);
}

Arena *arena_new(const char *name) {
    Arena *arena = calloc(1, sizeof *arena);
    if (!arena)
        out_of_memory(name, sizeof *arena);
    guard_add(&arena->link, drop_arena);
    arena->name = name;
    arena->next_size = BLOCK_MIN;
    return arena;
}

void arena_keep(Arena *arena) {
    guard_remove(&arena->link);
}

void arena_reset(Arena *arena) {
    for (Block *block = arena->block, *next; block; block = next) {
        next = block->next;
        ASAN_UNPOISON_MEMORY_REGION(block->data, block->size);
        free(block);
    }
    arena->block = NULL;
    arena->next_size = BLOCK_MIN;
    arena->used = 0;
}

void arena_free(Arena *arena) {
    if (!arena)
        return;
    guard_remove(&arena->link);
    arena_reset(arena);
    free(arena);
}

void arena_join(Arena *arena, Arena *from) {
    Block **at = arena->block ? &arena->block->next : &arena->block;
    Block **end = &from->block;
    while (*end)
        end = &(*end)->next;
    *end = *at;
    *at = from->block;
    arena->used += from->used;
    guard_remove(&from->link);
    free(from);
}

size_t arena_used(const Arena *arena) {
    return arena->used;
}

static Block *add_block(Arena *arena, size_t size) {
    size_t bytes = size > arena->next_size ? size : arena->next_size;
    if (bytes > SIZE_MAX - sizeof(Block) - 64)
        out_of_memory(arena->name, size);
    size_t whole = (sizeof(Block) + bytes + 63) / 64 * 64;
    Block *block = aligned_alloc(64, whole);
    if (!block)
        out_of_memory(arena->name, size);
    block->size = bytes;
    block->used = 0;
    block->next = arena->block;
    arena->block = block;
    if (arena->next_size < BLOCK_MAX)
        arena->next_size *= 2;
    ASAN_POISON_MEMORY_REGION(block->data, bytes);
    return block;
}

void *arena_alloc_raw(Arena *arena, size_t size, size_t align) {
    Block *block = arena->block;
    size_t at = block ? (block->used + align - 1) & ~(align - 1) : 0;
    if (size > SIZE_MAX - RED_ZONE)
        out_of_memory(arena->name, size);
    size_t need = size + RED_ZONE;
    if (!block || at > block->size || need > block->size - at) {
        block = add_block(arena, need);
        at = 0;
    }
    void *memory = block->data + at;
    ASAN_UNPOISON_MEMORY_REGION(memory, size);
    block->used = at + need;
    arena->used += size;
    return memory;
}

void *arena_alloc(Arena *arena, size_t size, size_t align) {
    return memset(arena_alloc_raw(arena, size, align), 0, size);
}

static size_t bytes_of(const Arena *arena, size_t count, size_t size) {
    if (size && count > SIZE_MAX / size)
        out_of_memory(arena->name, SIZE_MAX);
    return count * size;
}

void *arena_calloc(Arena *arena, size_t count, size_t size, size_t align) {
    return arena_alloc(arena, bytes_of(arena, count, size), align);
}

void *arena_copy(Arena *arena, const void *from, size_t count, size_t size,
                 size_t align) {
    void *copy = arena_alloc_raw(arena, bytes_of(arena, count, size), align);
    if (count && size)
        memcpy(copy, from, count * size);
    return copy;
}

char *arena_strndup(Arena *arena, const char *text, size_t len) {
    char *copy = arena_alloc(arena, len + 1, 1);
    if (len)
        memcpy(copy, text, len);
    return copy;
}

char *arena_strdup(Arena *arena, const char *text) {
    return arena_strndup(arena, text, strlen(text));
}

char *arena_vprintf(Arena *arena, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, args);
    if (len < 0)
        len = 0;
    char *text = arena_alloc(arena, (size_t)len + 1, 1);
    vsnprintf(text, (size_t)len + 1, format, again);
    va_end(again);
    return text;
}

char *arena_printf(Arena *arena, const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *text = arena_vprintf(arena, format, args);
    va_end(args);
    return text;
}
