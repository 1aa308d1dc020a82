/* bodies.c - placing bodies of boxes in one linear memory.
 *
 * Input: bodies. Output: an offset for each.
 * Method: as greedy by size (Pisarchyk, Lee 2020), each at the lowest place
 * where none of its boxes meets one of those placed before, or at the highest:
 * what waits with fewer bytes leaves room above itself, which is of use if its
 * neighbours stay away from there. Then other orders.
 */
#include "alloc/bodies.h"

#include "base/rng.h"

#include <stdlib.h>

uint32_t body_add(Bodies *b, uint64_t bytes) {
    Body body = {.first_box = b->box.n, .first = UINT32_MAX, .bytes = bytes};
    vec_push(b->arena, &b->body, body);
    return b->body.n - 1;
}

void body_box(Bodies *b, Box box) {
    Body *body = &b->body.at[b->body.n - 1];
    vec_push(b->arena, &b->box, box);
    body->n_boxes++;
    body->first = box.first < body->first ? box.first : body->first;
    body->end = box.end > body->end ? box.end : body->end;
    body->weight += (box.high - box.low) * (box.end - box.first);
}

static bool share_time(const Box *a, const Box *b) {
    return a->first < b->end && b->first < a->end;
}

static bool bodies_share_time(const Bodies *b, const Body *x, const Body *y) {
    if (x->first >= y->end || y->first >= x->end)
        return false;
    for (uint32_t i = 0; i < x->n_boxes; i++)
        for (uint32_t k = 0; k < y->n_boxes; k++)
            if (share_time(&b->box.at[x->first_box + i],
                           &b->box.at[y->first_box + k]))
                return true;
    return false;
}

/* The least offset from `at` on at which no box of `x` meets one of `y` for
 * what lies there; `at` itself if none does. */
static uint64_t clear_of(const Bodies *b, const Body *x, uint64_t at,
                         const Body *y) {
    for (uint32_t i = 0; i < x->n_boxes; i++)
        for (uint32_t k = 0; k < y->n_boxes; k++) {
            const Box *p = &b->box.at[x->first_box + i];
            const Box *q = &b->box.at[y->first_box + k];
            uint64_t low = y->offset + q->low, high = y->offset + q->high;
            if (share_time(p, q) && at + p->low < high && low < at + p->high)
                at = high - p->low;
        }
    return at;
}

/* The greatest offset up to `at` with the same; UINT64_MAX if there is none. */
static uint64_t clear_below(const Bodies *b, const Body *x, uint64_t at,
                            const Body *y) {
    for (uint32_t i = 0; i < x->n_boxes; i++)
        for (uint32_t k = 0; k < y->n_boxes; k++) {
            const Box *p = &b->box.at[x->first_box + i];
            const Box *q = &b->box.at[y->first_box + k];
            uint64_t low = y->offset + q->low, high = y->offset + q->high;
            if (!share_time(p, q) || at + p->low >= high || low >= at + p->high)
                continue;
            if (low < p->high)
                return UINT64_MAX;
            at = low - p->high;
        }
    return at;
}

/* The highest place within the memory. */
static bool body_hang(Bodies *b, Body *body) {
    if (body->bytes > b->size)
        return false;
    uint64_t at = (b->size - body->bytes) / b->align * b->align, was;
    do {
        was = at;
        for (uint32_t i = 0; i < b->n_near && at != UINT64_MAX; i++)
            at = clear_below(b, body, at, &b->body.at[b->near[i]]);
        if (at == UINT64_MAX)
            return false;
        at = at / b->align * b->align;
    } while (at != was);
    body->offset = at;
    return true;
}

/* The lowest place; boxes only push it up, so it is found in the end. */
static void body_place(Bodies *b, Body *body) {
    uint64_t at = 0, was;
    do {
        was = at;
        for (uint32_t i = 0; i < b->n_near; i++)
            at = clear_of(b, body, at, &b->body.at[b->near[i]]);
        at = (at + b->align - 1) / b->align * b->align;
    } while (at != was);
    body->offset = at;
}

/* Whether the body hangs from the top: in the first orders none, then those
 * whose bytes do not change, then by draw. */
static bool hangs(const Body *body, uint32_t index, uint32_t try) {
    if (try < 4)
        return try >= 2 && body->n_boxes == 1;
    return rng_bits(try + 1000, index) % 2;
}

/* The height, or UINT64_MAX where it exceeds the limit. */
static uint64_t place_order(Bodies *b, const uint32_t *order, uint32_t try,
                            uint64_t limit) {
    uint64_t height = 0;
    for (uint32_t i = 0; i < b->body.n; i++)
        b->body.at[i].placed = b->body.at[i].pinned;
    for (uint32_t i = 0; i < b->body.n; i++) {
        Body *body = &b->body.at[order[i]];
        b->n_near = 0;
        for (uint32_t k = 0; k < b->body.n && !body->placed; k++)
            if (b->body.at[k].placed &&
                bodies_share_time(b, body, &b->body.at[k]))
                b->near[b->n_near++] = k;
        if (!body->placed &&
            !(hangs(body, order[i], try) && body_hang(b, body)))
            body_place(b, body);
        body->placed = true;
        if (body->bytes > limit || body->offset > limit - body->bytes)
            return UINT64_MAX;
        uint64_t end = body->offset + body->bytes;
        height = end > height ? end : height;
    }
    return height;
}

typedef struct Key {
    uint64_t weight;
    uint32_t body;
} Key;

static int heaviest_first(const void *a, const void *b) {
    const Key *x = a, *y = b;
    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    return (x->body > y->body) - (x->body < y->body);
}

/* By bytes, by bytes times life, then drawn: with more regard to bytes, or
 * less. */
static uint64_t key_of(const Body *body, uint32_t index, uint32_t try) {
    uint64_t drawn = rng_bits(try, index) % 64;
    if (try < 4)
        return try % 2 ? body->weight : body->bytes;
    return body->bytes / 64 * (try % 2 ? drawn : 64 + drawn);
}

bool bodies_place(Bodies *b, uint32_t orders, uint64_t *least) {
    uint32_t n = b->body.n;
    Key *key = ARENA_ARRAY(b->arena, Key, n + 1);
    uint32_t *order = ARENA_ARRAY(b->arena, uint32_t, n + 1);
    b->near = ARENA_ARRAY(b->arena, uint32_t, n + 1);
    *least = UINT64_MAX;
    for (uint32_t try = 0; try < orders; try++) {
        for (uint32_t i = 0; i < n; i++)
            key[i] = (Key){key_of(&b->body.at[i], i, try), i};
        if (n)
            qsort(key, n, sizeof *key, heaviest_first);
        for (uint32_t i = 0; i < n; i++)
            order[i] = key[i].body;
        uint64_t limit = try < 2 ? UINT64_MAX - 1 : b->size;
        uint64_t height = place_order(b, order, try, limit);
        *least = height < *least ? height : *least;
        if (height <= b->size)
            return true;
    }
    return false;
}
