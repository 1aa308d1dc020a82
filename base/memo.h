/* recall.h - answers to questions that were asked before; private to alloc.
 *
 * A plan is made more than once: to compare it, to finish it, to hide what it
 * moves. Where it asks the same again, the answer is the same. A question is
 * known by its print, 128 bits: that two of 2^24 have the same one has a chance
 * of 2^-81.
 */
#ifndef BASE_MEMO_H
#define BASE_MEMO_H

#include "base/arena.h"

#include <stdbool.h>

typedef struct Print {
    uint64_t a, b;
} Print;

/* The question goes on with this number. */
static inline void print_add(Print *p, uint64_t word) {
    p->a = (p->a ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    p->a ^= p->a >> 32;
    p->b = (p->b + word) * UINT64_C(0xD6E8FEB86659FD93);
    p->b ^= p->b >> 29;
}
void print_add_double(Print *p, double number);
void print_add_text(Print *p, const char *text);

typedef struct MemoTable MemoTable;

MemoTable *memo_table_new(Arena *arena);
/* Where answers live that are of several parts. */
Arena *recall_arena(const MemoTable *r);
/* What was kept for it; NULL: nothing. */
const void *memo_find(const MemoTable *r, Print p);
/* Room for an answer of so many bytes, not zeroed, that is found from now on;
 * NULL if too much is kept already. */
void *memo_insert(MemoTable *r, Print p, size_t bytes);

#endif
