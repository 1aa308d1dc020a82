/* coalesce.c - fewer and larger items: buffers glued together.
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
#include "pack/exact/exact.h"

#include "base/order.h"
#include "base/rng.h"

#include <stdlib.h>

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
    MergeOrder order;
} Weld;

enum { CERTAIN = 256 };

static bool is_alive(const Weld *w, uint32_t part) {
    return w->part.at[part].whole == NO_PART;
}

static bool may_weld(const Weld *w, uint32_t a, uint32_t b) {
    const Item *x = &w->part.at[a].item, *y = &w->part.at[b].item;
    if (x->pin >= 0 || y->pin >= 0 || x->align > 1 || y->align > 1 ||
        x->n_gaps || y->n_gaps)
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

/* ---- who lies next to whom ---- */

static int by_key(const void *a, const void *b) {
    const MergeKey *x = a, *y = b;
    return order_by3(ORDER_UP(x->first, y->first),
                     ORDER_UP(x->second, y->second),
                     ORDER_UP(x->part, y->part));
}

/* Returns how many there are of the part. */
typedef uint32_t KeysOf(const Item *item, uint32_t part, MergeKey key[2]);

static uint32_t life_keys(const Item *item, uint32_t part, MergeKey key[2]) {
    key[0] = (MergeKey){(uint64_t)item->lo << 32 | item->hi, 0, part};
    return 1;
}

/* Both ends of its life: by section, size, and whether it is the birth. */
static uint32_t edge_keys(const Item *item, uint32_t part, MergeKey key[2]) {
    uint64_t size = (uint64_t)item->size << 1;
    key[0] = (MergeKey){item->hi, size, part};
    key[1] = (MergeKey){item->lo, size | 1, part};
    return 2;
}

/* Takes in the parts that are new, and leaves out what was welded. */
static void keys_update(const Weld *w, KeysOf *of, MergeKeys *keys) {
    uint32_t n_new = w->part.n - keys->n_parts, n = 0, at = 0, k = 0;
    MergeKey *new = ARENA_ARRAY(w->arena, MergeKey, 2 * (size_t)n_new + 1);
    MergeKey *all =
        ARENA_ARRAY(w->arena, MergeKey, keys->n + 2 * (size_t)n_new + 1);
    for (uint32_t p = keys->n_parts; p < w->part.n; p++)
        if (is_alive(w, p))
            n += of(&w->part.at[p].item, p, &new[n]);
    if (n)
        qsort(new, n, sizeof *new, by_key);
    for (uint32_t i = 0; i < keys->n; i++) {
        if (!is_alive(w, keys->at[i].part))
            continue;
        while (k < n && by_key(&new[k], &keys->at[i]) < 0)
            all[at++] = new[k++];
        all[at++] = keys->at[i];
    }
    while (k < n)
        all[at++] = new[k++];
    *keys = (MergeKeys){all, at, w->part.n};
}

/* ---- one upon the other ---- */

static void weld_same_lives(Weld *w, const Strip *strip) {
    keys_update(w, life_keys, &w->order.life);
    const MergeKey *life = w->order.life.at;
    uint32_t below = 0;
    for (uint32_t k = 0; k < w->order.life.n; k++) {
        uint32_t part = life[k].part;
        bool same = k > 0 && life[k - 1].first == life[k].first;
        if (same && may_weld(w, below, part)) {
            weld_upon(w, strip, below, part);
            part = w->part.n - 1;
        }
        below = part;
    }
}

/* ---- one behind the other ---- */

static bool is_birth(const MergeKey *edge) {
    return edge->second & 1;
}

static bool are_alike(const MergeKey *a, const MergeKey *b) {
    return a->first == b->first && a->second >> 1 == b->second >> 1;
}

/* Exactly one death and one birth in the run of alike edges. */
static bool is_pair(const MergeKey *edge, uint32_t n) {
    return n == 2 && !is_birth(&edge[0]) && is_birth(&edge[1]);
}

static void weld_same_sizes(Weld *w) {
    keys_update(w, edge_keys, &w->order.edge);
    const MergeKey *edge = w->order.edge.at;
    uint32_t n = w->order.edge.n, alike;
    for (uint32_t from = 0; from < n; from += alike) {
        for (alike = 1; from + alike < n; alike++)
            if (!are_alike(&edge[from], &edge[from + alike]))
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
static void find_places(Arena *arena, const Weld *w, Merged *out) {
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

/* Gaps in the numbers of merged sections, without those that became empty. */
static void merge_gaps(Arena *arena, Item *item, const uint32_t *stop) {
    Steps *gap = ARENA_ARRAY(arena, Steps, item->n_gaps);
    uint32_t n = 0;
    for (uint32_t k = 0; k < item->n_gaps; k++) {
        gap[n] =
            (Steps){stop[item->gap[k].first], stop[item->gap[k].end + 1] - 1};
        n += gap[n].first < gap[n].end;
    }
    item->gap = gap;
    item->n_gaps = n;
}

/* Where nobody is born and nobody dies any more, sections are one. */
static uint32_t merge_sections(Arena *arena, Item *item, uint32_t n,
                               uint32_t n_sections) {
    enum { BIRTH = 1, DEATH = 2 };
    uint8_t *ends = ARENA_ARRAY(arena, uint8_t, n_sections + 1);
    uint32_t *stop = ARENA_ARRAY(arena, uint32_t, n_sections + 1);
    uint32_t merged = 0;
    bool died = true;
    for (uint32_t i = 0; i < n; i++) {
        ends[item[i].lo] |= BIRTH;
        ends[item[i].hi] |= DEATH;
        for (uint32_t k = 0; k < item[i].n_gaps; k++) {
            ends[item[i].gap[k].first] |= DEATH;
            ends[item[i].gap[k].end] |= BIRTH;
        }
    }
    for (uint32_t t = 0; t <= n_sections; t++) {
        stop[t] = merged;
        died |= ends[t] & DEATH;
        if (ends[t] & BIRTH) {
            merged += died;
            died = false;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        item[i].lo = stop[item[i].lo + 1] - 1;
        item[i].hi = stop[item[i].hi];
        merge_gaps(arena, &item[i], stop);
    }
    return merged;
}

static Weld weld_new(Arena *arena, const Strip *strip) {
    Weld w = {.arena = arena, .n_alive = strip->n};
    for (uint32_t i = 0; i < strip->n; i++)
        vec_push(arena, &w.part, ((Part){strip->item[i], NO_PART, 0}));
    return w;
}

MergeOrder weld_order(Arena *arena, const Strip *strip) {
    Weld w = weld_new(arena, strip);
    keys_update(&w, life_keys, &w.order.life);
    keys_update(&w, edge_keys, &w.order.edge);
    return w.order;
}

bool weld_strip(Arena *arena, const Strip *strip, const MergeOrder *order,
                uint64_t seed, uint32_t attempt, Merged *out) {
    static const uint16_t chance[] = {250, 230, 240, 200};
    Weld w = weld_new(arena, strip);
    w.seed = rng_bits(rng_seed("weld", seed), attempt);
    w.chance =
        attempt ? chance[attempt % (sizeof chance / sizeof *chance)] : CERTAIN;
    w.order = *order;
    weld_all(&w, strip);
    out->strip = *strip;
    find_places(arena, &w, out);
    out->strip.n_sections =
        merge_sections(arena, out->strip.item, out->strip.n, strip->n_sections);
    strip_index(arena, &out->strip);
    return w.n_alive < strip->n;
}
