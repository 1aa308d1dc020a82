/* weld.c - fewer and larger items: buffers glued together.
 *
 * Input: a strip. Output: another over the same sections, whose items stand
 * for one buffer or more each; a placement of it is one of the buffers.
 *
 * Hard problems tend to come from packings whose rectangles were cut up: lives
 * that succeed each other in one place, volumes that are used side by side.
 * Cuts can be undone. Two items are welded
 *
 *     one upon the other       if they have the same life;
 *     one behind the other     if they have the same size, one is born where
 *                              the other dies, and no third item is of that
 *                              size there.
 *
 *         +---+---+            +-------+            +-------+
 *         | a | b |    then    | a + b |    then    |       |
 *         +---+---+            +-------+            | whole |
 *         |   c   |            |   c   |            |       |
 *         +-------+            +-------+            +-------+
 *
 * A pair may coincide by chance, and then its weld is wrong. So a strip of
 * welded items proves nothing when nothing fits, but what fits in it fits: of
 * the 154 buffers of a well-known problem (MiniMalloc's A) 11 items remain,
 * whose best placement is found at once. Several attempts leave out a share of
 * the pairs each, drawn anew.
 *
 * Pinned items, and those with an alignment of their own, are left alone.
 */
#include "alloc/exact.h"

#include "base/rng.h"

#include <stdlib.h>
#include <string.h>

/* A tree of welds: leaves are the items of the strip, by index. */
typedef struct Part {
    Item item;
    uint32_t whole; /* the part that it was welded into, or NO_PART */
    int64_t shift;  /* its offset in `whole` */
} Part;

#define NO_PART UINT32_MAX

typedef struct Weld {
    Arena *arena;
    VEC(Part) part;
    uint64_t seed;
    uint64_t chance; /* of a pair to be welded, of CERTAIN */
    uint32_t n_alive;
} Weld;

enum { CERTAIN = 256 };

static bool is_alive(const Weld *w, uint32_t part) {
    return w->part.at[part].whole == NO_PART;
}

static bool may_weld(const Weld *w, uint32_t a, uint32_t b) {
    const Item *x = &w->part.at[a].item, *y = &w->part.at[b].item;
    if (x->pin >= 0 || y->pin >= 0 || x->align > 1 || y->align > 1)
        return false;
    uint64_t pair = (uint64_t)a << 32 | b;
    return rng_bits(w->seed, pair) % CERTAIN < w->chance;
}

static void weld(Weld *w, uint32_t a, uint32_t b, Item whole, int64_t shift_b) {
    vec_push(w->arena, &w->part, ((Part){whole, NO_PART, 0}));
    w->part.at[a].whole = w->part.at[b].whole = w->part.n - 1;
    w->part.at[b].shift = shift_b;
    w->n_alive--;
}

/* The true bytes of the upper one count, the lower one's are rounded up. */
static void weld_upon(Weld *w, const Strip *strip, uint32_t a, uint32_t b) {
    Item whole = w->part.at[a].item;
    const Item *upper = &w->part.at[b].item;
    int64_t shift = whole.size;
    whole.bytes = (uint64_t)whole.size * strip->unit + upper->bytes;
    whole.size += upper->size;
    weld(w, a, b, whole, shift);
}

static void weld_behind(Weld *w, uint32_t a, uint32_t b) {
    Item whole = w->part.at[a].item;
    const Item *later = &w->part.at[b].item;
    whole.hi = later->hi;
    if (later->bytes > whole.bytes)
        whole.bytes = later->bytes;
    weld(w, a, b, whole, 0);
}

/* ---- one upon the other ---- */

typedef struct Life {
    uint32_t lo, hi, part;
} Life;

static int by_life(const void *a, const void *b) {
    const Life *x = a, *y = b;
    if (x->lo != y->lo)
        return x->lo < y->lo ? -1 : 1;
    if (x->hi != y->hi)
        return x->hi < y->hi ? -1 : 1;
    return x->part < y->part ? -1 : x->part > y->part;
}

static void weld_same_lives(Weld *w, const Strip *strip) {
    Life *life = ARENA_ARRAY(w->arena, Life, w->n_alive);
    uint32_t n = 0;
    for (uint32_t p = 0; p < w->part.n; p++)
        if (is_alive(w, p))
            life[n++] = (Life){w->part.at[p].item.lo, w->part.at[p].item.hi, p};
    qsort(life, n, sizeof *life, by_life);
    for (uint32_t k = 1; k < n; k++) {
        uint32_t a = life[k - 1].part, b = life[k].part;
        bool same =
            life[k - 1].lo == life[k].lo && life[k - 1].hi == life[k].hi;
        if (!same || !may_weld(w, a, b))
            continue;
        weld_upon(w, strip, a, b);
        life[k].part = w->part.n - 1;
    }
}

/* ---- one behind the other ---- */

/* An end of an item's life. */
typedef struct Edge {
    uint32_t section;
    bool birth;
    int64_t size;
    uint32_t part;
} Edge;

static int by_place(const Edge *x, const Edge *y) {
    if (x->section != y->section)
        return x->section < y->section ? -1 : 1;
    return x->size < y->size ? -1 : x->size > y->size;
}

static int by_edge(const void *a, const void *b) {
    const Edge *x = a, *y = b;
    int order = by_place(x, y);
    if (order)
        return order;
    if (x->birth != y->birth)
        return x->birth ? 1 : -1;
    return x->part < y->part ? -1 : x->part > y->part;
}

/* Exactly one death and one birth in the run of alike edges. */
static bool is_pair(const Edge *edge, uint32_t n) {
    return n == 2 && !edge[0].birth && edge[1].birth;
}

static void weld_same_sizes(Weld *w) {
    Edge *edge = ARENA_ARRAY(w->arena, Edge, 2 * (size_t)w->n_alive);
    uint32_t n = 0, alike;
    for (uint32_t p = 0; p < w->part.n; p++) {
        const Item *item = &w->part.at[p].item;
        if (!is_alive(w, p))
            continue;
        edge[n++] = (Edge){item->hi, false, item->size, p};
        edge[n++] = (Edge){item->lo, true, item->size, p};
    }
    qsort(edge, n, sizeof *edge, by_edge);
    for (uint32_t from = 0; from < n; from += alike) {
        for (alike = 1; from + alike < n; alike++)
            if (by_place(&edge[from], &edge[from + alike]))
                break;
        uint32_t a = edge[from].part, b = edge[from + alike - 1].part;
        if (is_pair(&edge[from], alike) && is_alive(w, a) && is_alive(w, b) &&
            may_weld(w, a, b))
            weld_behind(w, a, b);
    }
}

/* ---- all ---- */

static void weld_all(Weld *w, const Strip *strip) {
    for (uint32_t before = 0; before != w->n_alive;) {
        before = w->n_alive;
        weld_same_lives(w, strip);
        weld_same_sizes(w);
    }
}

/* A part's whole comes behind it, so one walk from the back finds all roots. */
static void find_places(Arena *arena, const Weld *w, Welded *out) {
    uint32_t n = w->part.n;
    Item *item = ARENA_ARRAY(arena, Item, w->n_alive);
    out->into = ARENA_ARRAY(arena, uint32_t, n);
    out->shift = ARENA_ARRAY(arena, int64_t, n);
    uint32_t next = w->n_alive;
    for (uint32_t p = n; p-- > 0;) {
        const Part *part = &w->part.at[p];
        if (is_alive(w, p)) {
            item[--next] = part->item;
            out->into[p] = next;
            continue;
        }
        out->into[p] = out->into[part->whole];
        out->shift[p] = out->shift[part->whole] + part->shift;
    }
    out->strip.item = item;
    out->strip.n = w->n_alive;
}

bool weld_strip(Arena *arena, const Strip *strip, uint64_t seed,
                uint32_t attempt, Welded *out) {
    static const uint16_t chance[] = {250, 230, 240, 200};
    Weld w = {.arena = arena,
              .seed = rng_bits(rng_seed("weld", seed), attempt),
              .n_alive = strip->n,
              .chance = attempt
                            ? chance[attempt % (sizeof chance / sizeof *chance)]
                            : CERTAIN};
    for (uint32_t i = 0; i < strip->n; i++)
        vec_push(arena, &w.part, ((Part){strip->item[i], NO_PART, 0}));
    weld_all(&w, strip);
    out->strip = *strip;
    find_places(arena, &w, out);
    /* Where nobody is born and nobody dies any more, sections are one. */
    out->strip.n_sections =
        strip_sections(arena, out->strip.item, out->strip.n);
    strip_index(arena, &out->strip);
    return w.n_alive < strip->n;
}
