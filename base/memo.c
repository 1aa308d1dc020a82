/* recall.c - a table of answers by print.
 *
 * Open addressing, at most half full. What it gives depends on what was asked
 * alone; so no plan depends on it, but for the time that it takes.
 */
#include "base/memo.h"

#include <string.h>

/* Bytes of all answers, about. */
enum { MOST_BYTES = 96 << 20, LEAST_SLOTS = 256 };

typedef struct Kept {
    Print print;
    const void *answer; /* NULL: the slot is free */
} Kept;

struct MemoTable {
    Arena *arena;
    size_t n_slots, n, bytes;
    Kept *slot;
};

void print_add_double(Print *p, double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    print_add(p, bits);
}

void print_add_text(Print *p, const char *text) {
    for (; *text; text++)
        print_add(p, (unsigned char)*text);
    print_add(p, 0);
}

MemoTable *memo_table_new(Arena *arena) {
    MemoTable *r = ARENA_NEW(arena, MemoTable);
    r->arena = arena;
    r->n_slots = LEAST_SLOTS;
    r->slot = ARENA_ARRAY(arena, Kept, r->n_slots);
    return r;
}

Arena *recall_arena(const MemoTable *r) {
    return r->arena;
}

/* Its slot, or the free one where it would be. */
static Kept *slot_of(const MemoTable *r, Print p) {
    size_t at = p.a & (r->n_slots - 1);
    while (r->slot[at].answer &&
           (r->slot[at].print.a != p.a || r->slot[at].print.b != p.b))
        at = (at + 1) & (r->n_slots - 1);
    return &r->slot[at];
}

const void *memo_find(const MemoTable *r, Print p) {
    return slot_of(r, p)->answer;
}

static void grow(MemoTable *r) {
    const Kept *old = r->slot;
    size_t n = r->n_slots;
    r->n_slots *= 2;
    r->slot = ARENA_ARRAY(r->arena, Kept, r->n_slots);
    for (size_t i = 0; i < n; i++)
        if (old[i].answer)
            *slot_of(r, old[i].print) = old[i];
}

void *memo_insert(MemoTable *r, Print p, size_t bytes) {
    if (r->bytes + bytes > MOST_BYTES)
        return NULL;
    if (2 * ++r->n > r->n_slots)
        grow(r);
    void *answer = arena_alloc_raw(r->arena, bytes, 16);
    *slot_of(r, p) = (Kept){p, answer};
    r->bytes += bytes;
    return answer;
}
