/* planner_large.c - online best fit for hundreds of thousands of buffers, in
 * n log n steps and linear memory.
 *
 * The steps are walked forwards and, for another chance, backwards; the lower
 * of both placements is kept. At each step first the dead give back their
 * blocks, which join with free neighbours, then the born, largest first, each
 * take the smallest free block that holds them, the lowest of equals. Free
 * blocks are in a treap (Seidel and Aragon, 1996) by size and address; blocks
 * know their neighbours in address order, as in a heap with boundary tags.
 *
 * Pins, several pools, relations, gaps in lives and alignments of single
 * buffers are left to greedy_by_size.
 */
#include "alloc/place.h"
#include "alloc/planners.h"
#include "base/rng.h"

#include <stdlib.h>

/* 0 stands for "none" wherever a block's number is expected. */
typedef struct Block {
    uint64_t at, size;
    uint32_t below, above; /* neighbours by address */
    uint32_t left, right;  /* in the treap, if free */
    bool free;
} Block;

typedef struct Heap {
    Block *block;
    uint32_t n, root;
    uint32_t spare; /* unused blocks, linked by `left` */
} Heap;

/* ---- the treap of free blocks ---- */

static bool is_less(const Block *a, const Block *b) {
    return a->size != b->size ? a->size < b->size : a->at < b->at;
}

static uint64_t priority(uint32_t block) {
    return rng_bits(0, block);
}

/* Cuts the tree into what is less than `pivot` and the rest. */
static void split(Heap *h, uint32_t tree, const Block *pivot, uint32_t *less,
                  uint32_t *rest) {
    while (tree) {
        Block *b = &h->block[tree];
        if (is_less(b, pivot)) {
            *less = tree;
            less = &b->right;
            tree = b->right;
        } else {
            *rest = tree;
            rest = &b->left;
            tree = b->left;
        }
    }
    *less = *rest = 0;
}

/* All of `a` is less than all of `b`. */
static uint32_t join(Heap *h, uint32_t a, uint32_t b) {
    uint32_t root = 0, *at = &root;
    while (a && b) {
        if (priority(a) > priority(b)) {
            *at = a;
            at = &h->block[a].right;
            a = *at;
        } else {
            *at = b;
            at = &h->block[b].left;
            b = *at;
        }
    }
    *at = a ? a : b;
    return root;
}

static void tree_add(Heap *h, uint32_t block) {
    uint32_t *at = &h->root;
    const Block *b = &h->block[block];
    while (*at && priority(*at) >= priority(block)) {
        Block *here = &h->block[*at];
        at = is_less(here, b) ? &here->right : &here->left;
    }
    uint32_t less, rest;
    split(h, *at, b, &less, &rest);
    h->block[block].left = less;
    h->block[block].right = rest;
    h->block[block].free = true;
    *at = block;
}

static void tree_remove(Heap *h, uint32_t block) {
    uint32_t *at = &h->root;
    Block *b = &h->block[block];
    while (*at != block) {
        Block *here = &h->block[*at];
        at = is_less(here, b) ? &here->right : &here->left;
    }
    *at = join(h, b->left, b->right);
    b->free = false;
}

static uint32_t tree_best(const Heap *h, uint64_t size) {
    uint32_t best = 0;
    for (uint32_t at = h->root; at;) {
        const Block *here = &h->block[at];
        if (here->size >= size)
            best = at;
        at = here->size >= size ? here->left : here->right;
    }
    return best;
}

/* ---- the heap ---- */

static uint32_t new_block(Heap *h, uint64_t at, uint64_t size) {
    uint32_t block = h->spare;
    if (block)
        h->spare = h->block[block].left;
    else
        block = ++h->n;
    h->block[block] = (Block){.at = at, .size = size};
    return block;
}

static Heap heap_new(Arena *arena, uint32_t n_bufs, uint64_t size) {
    Heap h = {.block = ARENA_ARRAY(arena, Block, 2 * (size_t)n_bufs + 4)};
    tree_add(&h, new_block(&h, 0, size));
    return h;
}

/* Takes the low end of the best block; 0 if there is none. */
static uint32_t heap_take(Heap *h, uint64_t size) {
    uint32_t block = tree_best(h, size);
    if (!block)
        return 0;
    tree_remove(h, block);
    Block *b = &h->block[block];
    if (b->size == size)
        return block;
    uint32_t rest = new_block(h, b->at + size, b->size - size);
    h->block[rest].below = block;
    h->block[rest].above = b->above;
    if (b->above)
        h->block[b->above].below = rest;
    b->above = rest;
    b->size = size;
    tree_add(h, rest);
    return block;
}

/* `block` takes in its neighbour above. */
static void absorb(Heap *h, uint32_t block) {
    uint32_t gone = h->block[block].above;
    h->block[block].size += h->block[gone].size;
    h->block[block].above = h->block[gone].above;
    if (h->block[gone].above)
        h->block[h->block[gone].above].below = block;
    h->block[gone].left = h->spare;
    h->spare = gone;
}

static void heap_give(Heap *h, uint32_t block) {
    uint32_t above = h->block[block].above, below = h->block[block].below;
    if (above && h->block[above].free) {
        tree_remove(h, above);
        absorb(h, block);
    }
    if (below && h->block[below].free) {
        tree_remove(h, below);
        absorb(h, below);
        block = below;
    }
    tree_add(h, block);
}

/* ---- the walk ---- */

typedef struct Event {
    uint32_t step, buf;
    uint64_t size; /* rounded up; 0: it dies */
} Event;

static int by_step(const void *a, const void *b) {
    const Event *x = a, *y = b;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    if (!x->size != !y->size)
        return x->size ? 1 : -1; /* half-open: deaths first */
    if (x->size != y->size)
        return x->size > y->size ? -1 : 1;
    return x->buf < y->buf ? -1 : x->buf > y->buf;
}

/* Backwards, a life [first, end) is [-end, -first). */
static uint32_t list_events(const PlanProblem *problem, bool backwards,
                            Event *event) {
    uint32_t n = 0;
    uint64_t align = problem->pool[0].align;
    for (uint32_t b = 0; b < problem->n_bufs; b++) {
        const Buf *buf = &problem->buf[b];
        uint64_t over = buf->bytes[0] % align;
        uint64_t size = buf->bytes[0] + (over ? align - over : 0);
        uint32_t first = backwards ? ~buf->end : buf->first;
        uint32_t end = backwards ? ~buf->first : buf->end;
        if (!size || first >= end)
            continue;
        event[n++] = (Event){first, b, size};
        event[n++] = (Event){end, b, 0};
    }
    if (n)
        qsort(event, n, sizeof *event, by_step);
    return n;
}

/* True if all found a place. */
static bool walk(Arena *arena, const PlanProblem *problem, bool backwards,
                 PlanResult *result) {
    const Pool *pool = &problem->pool[0];
    Event *event = ARENA_ARRAY(arena, Event, 2 * (size_t)problem->n_bufs);
    uint32_t *block = ARENA_ARRAY(arena, uint32_t, problem->n_bufs);
    uint32_t n = list_events(problem, backwards, event);
    Heap heap =
        heap_new(arena, problem->n_bufs, pool->size - pool->size % pool->align);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t b = event[i].buf;
        if (!event[i].size) {
            heap_give(&heap, block[b]);
            continue;
        }
        block[b] = heap_take(&heap, event[i].size);
        if (!block[b])
            return false;
        result->offset[b] = heap.block[block[b]].at;
    }
    return true;
}

static bool is_plain(const PlanProblem *problem) {
    bool plain = problem->n_pools == 1 && problem_is_plain(problem);
    for (uint32_t b = 0; b < problem->n_bufs && plain; b++) {
        const Buf *buf = &problem->buf[b];
        plain = buf->pin_pool < 0 && buf->align <= 1 &&
                buf->bytes[0] <= INT64_MAX - problem->pool[0].align;
    }
    return plain && problem->pool[0].align <= INT64_MAX;
}

void plan_large(Arena *arena, const PlanProblem *problem, PlanResult *result) {
    if (!is_plain(problem)) {
        plan_greedy_by_size(arena, problem, result);
        return;
    }
    PlanResult other = {.pool = ARENA_ARRAY(arena, int32_t, problem->n_bufs),
                        .offset =
                            ARENA_ARRAY(arena, uint64_t, problem->n_bufs)};
    bool forwards = walk(arena, problem, false, result);
    bool backwards = walk(arena, problem, true, &other);
    result->failed = PLAN_NO_BUF;
    result->status = forwards || backwards ? PLAN_FITS : PLAN_FAILS;
    if (backwards && (!forwards || placed_height(problem, &other) <
                                       placed_height(problem, result)))
        plan_keep(result,
                  &(PlanResult){.status = PLAN_FITS,
                                .pool = other.pool,
                                .offset = other.offset,
                                .bound = result->bound,
                                .failed = PLAN_NO_BUF},
                  problem->n_bufs);
}
