/* aligned.c - how high the open items of one section must reach at least, where
 * alignments forbid that they lie without holes.
 *
 * Input: a state of the skyline, a section. Output: an end that no order of its
 * open items is below.
 *
 * The items of a section lie one upon another in some order. From the bottom
 * up, whatever set of them lies lowest ends least if each of its prefixes does
 * (Held and Karp, 1962). So a walk over orders that leaves no more bytes unused
 * than the capacity has to spare enters a set again only with a lesser end.
 * Where it takes too long, all sets of the FEW items of the largest alignments
 * are looked at: a part of them needs no more room than all. An order that ends
 * within the capacity, found without a search, spares both.
 */
#include "pack/exact/exact.h"

#include "base/rng.h"

enum { MOST = 64, FEW = 10, LOG_CACHE = 12 };
enum { WALK = 60, FIRST_WALK = 20000, LOG_SEEN = 12, WORK_A_REST = 4 };

typedef struct Known {
    uint64_t key;
    int64_t end;
} Known;

/* A set of items that did not go on from this end, nor from higher ones. */
typedef struct Seen {
    uint64_t set, call;
    int64_t end;
} Seen;

struct AlignedCache {
    Known known[1 << LOG_CACHE];
    Seen seen[1 << LOG_SEEN];
    uint64_t call;
};

static int64_t end_of(const Skyline *sky, uint32_t i, int64_t from) {
    const Item *item = &sky->strip->item[i];
    int64_t at = from > sky->low[i] ? from : sky->low[i];
    int64_t over = item->align > 1 ? at % item->align : 0;
    return at + (over ? item->align - over : 0) + item->size;
}

static int64_t align_of(const Skyline *sky, uint32_t i) {
    return sky->strip->item[i].align;
}

/* The open items of the section, largest alignments first; how many there
 * are, at most MOST. */
static uint32_t list_items(const Skyline *sky, uint32_t section,
                           uint32_t *list) {
    const uint32_t *member = skyline_open(sky, section);
    uint32_t n = 0;
    for (uint32_t k = 0; k < sky->n_open[section]; k++) {
        uint32_t to = n < MOST ? n++ : MOST, i = member[k];
        for (; to > 0 && align_of(sky, list[to - 1]) < align_of(sky, i); to--)
            if (to < MOST)
                list[to] = list[to - 1];
        if (to < MOST)
            list[to] = i;
    }
    return n;
}

/* The end of the order of their least offsets. */
static int64_t sorted_end(const Skyline *sky, uint32_t section) {
    const uint32_t *member = skyline_open(sky, section);
    int64_t end = sky->floor[section];
    for (uint32_t k = sky->n_open[section]; k-- > 0;)
        end = end_of(sky, member[k], end);
    return end;
}

/* The end of the order in which each next item is the one that ends soonest
 * for its size. */
static int64_t greedy_end(const Skyline *sky, const uint32_t *list, uint32_t n,
                          int64_t floor) {
    uint64_t left = UINT64_MAX >> (MOST - n);
    int64_t end = floor;
    while (left) {
        uint32_t best = 0;
        int64_t least = INT64_MAX;
        for (uint32_t k = 0; k < n; k++) {
            int64_t waste =
                end_of(sky, list[k], end) - sky->strip->item[list[k]].size;
            if (left >> k & 1 && waste < least) {
                least = waste;
                best = k;
            }
        }
        end = end_of(sky, list[best], end);
        left &= ~(UINT64_C(1) << best);
    }
    return end;
}

/* Of every set. */
static int64_t least_end(const Skyline *sky, const uint32_t *list, uint32_t n,
                         int64_t floor) {
    int64_t end[1 << FEW];
    end[0] = floor;
    for (uint32_t set = 1; set < 1u << n; set++) {
        end[set] = INT64_MAX;
        for (uint32_t k = 0; k < n; k++) {
            if (!(set >> k & 1))
                continue;
            int64_t here = end_of(sky, list[k], end[set & ~(1u << k)]);
            end[set] = here < end[set] ? here : end[set];
        }
    }
    return end[(1u << n) - 1];
}

/* ---- orders that waste little ---- */

typedef struct Walk {
    Skyline *sky;
    const uint32_t *list;
    uint32_t n, n_aligns;
    uint64_t alike[MOST]; /* by item: those before it that are like it */
    int64_t align[MOST];  /* all above 1 */
    uint32_t looks;       /* sets that may still be looked at */
    int64_t needed;       /* the least capacity at which a cut order went on */
} Walk;

static bool was_here(const Walk *w, uint64_t set, int64_t end) {
    AlignedCache *cache = w->sky->aligned;
    Seen *seen = &cache->seen[rng_bits(3, set) >> (64 - LOG_SEEN)];
    bool here = seen->call == cache->call && seen->set == set;
    if (here && seen->end <= end)
        return true;
    *seen = (Seen){set, cache->call, end};
    return false;
}

/* Bytes that the items of one alignment waste at least, with all that are left:
 * between two of them the end of the first is brought up to the alignment by
 * others whose size is no multiple of it, or by waste. Each such other serves
 * one of them, and the last needs none. */
static int64_t waste_of(const Walk *w, uint64_t left, int64_t end,
                        int64_t align) {
    int64_t lack[MOST + 1], waste = 0;
    uint32_t n = 0, served = 1;
    if (end % align)
        lack[n++] = align - end % align;
    for (uint32_t k = 0; k < w->n; k++) {
        const Item *item = &w->sky->strip->item[w->list[k]];
        int64_t over = item->size % align;
        if (!(left >> k & 1) || !over)
            continue;
        if (item->align % align) {
            served++;
            continue;
        }
        uint32_t to = n++;
        for (; to > 0 && lack[to - 1] > align - over; to--)
            lack[to] = lack[to - 1];
        lack[to] = align - over;
    }
    for (uint32_t k = 0; k + served < n; k++)
        waste += lack[k];
    return waste;
}

static int64_t most_waste(const Walk *w, uint64_t left, int64_t end) {
    int64_t most = 0;
    for (uint32_t k = 0; k < w->n_aligns; k++) {
        int64_t waste = waste_of(w, left, end, w->align[k]);
        most = waste > most ? waste : most;
    }
    return most;
}

/* True where the items that are left fit above `end`; else `needed` tells, if
 * there are looks left. `rest`: their sizes, added. */
static bool walk(Walk *w, uint64_t left, int64_t rest, int64_t end) {
    int64_t least = end + rest;
    if (!left)
        return true;
    if (!w->looks)
        return false;
    w->looks--;
    if (least <= w->sky->strip->capacity)
        least += most_waste(w, left, end);
    if (least > w->sky->strip->capacity) {
        w->needed = least < w->needed ? least : w->needed;
        return false;
    }
    if (was_here(w, left, end))
        return false;
    for (uint32_t k = 0; k < w->n; k++) {
        if (!(left >> k & 1) || left & w->alike[k])
            continue;
        int64_t size = w->sky->strip->item[w->list[k]].size;
        if (walk(w, left & ~(UINT64_C(1) << k), rest - size,
                 end_of(w->sky, w->list[k], end)))
            return true;
    }
    return false;
}

static bool are_alike(const Skyline *sky, uint32_t a, uint32_t b) {
    const Item *x = &sky->strip->item[a], *y = &sky->strip->item[b];
    return x->size == y->size && x->align == y->align &&
           sky->low[a] == sky->low[b];
}

static int64_t begin_walk(Walk *w) {
    int64_t rest = 0;
    for (uint32_t k = 0; k < w->n; k++) {
        const Item *item = &w->sky->strip->item[w->list[k]];
        rest += item->size;
        w->alike[k] = 0;
        for (uint32_t j = 0; j < k; j++)
            if (are_alike(w->sky, w->list[j], w->list[k]))
                w->alike[k] |= UINT64_C(1) << j;
        if (item->align > 1 &&
            (!w->n_aligns || w->align[w->n_aligns - 1] != item->align))
            w->align[w->n_aligns++] = item->align;
    }
    w->sky->aligned->call++;
    return rest;
}

/* The floor, where nothing is known. */
static int64_t find_end(Skyline *sky, const uint32_t *list, uint32_t n,
                        int64_t floor) {
    const uint32_t looks = sky->order.n ? WALK : FIRST_WALK;
    sky->work += (uint64_t)n * n * WORK_A_REST;
    if (greedy_end(sky, list, n, floor) <= sky->strip->capacity)
        return floor;
    Walk w = {.sky = sky, .list = list, .n = n, .looks = looks};
    w.needed = INT64_MAX;
    int64_t rest = begin_walk(&w);
    bool fits = walk(&w, UINT64_MAX >> (MOST - n), rest, floor);
    sky->work +=
        (uint64_t)(looks - w.looks) * n * (1 + w.n_aligns) * WORK_A_REST;
    if (fits || w.looks)
        return fits ? floor : w.needed;
    uint32_t few = n < FEW ? n : FEW;
    sky->work += (UINT64_C(1) << few) * few * WORK_A_REST;
    return least_end(sky, list, few, floor);
}

/* ---- what is known ---- */

static uint64_t key_of(const Skyline *sky, const uint32_t *list, uint32_t n,
                       int64_t floor) {
    uint64_t key = rng_bits(1, (uint64_t)floor);
    for (uint32_t k = 0; k < n; k++)
        key += rng_bits(list[k] + UINT64_C(2), (uint64_t)sky->low[list[k]]);
    return key ? key : 1;
}

AlignedCache *aligned_cache(Arena *arena) {
    return ARENA_NEW(arena, AlignedCache);
}

int64_t aligned_end(Skyline *sky, uint32_t section) {
    uint32_t list[MOST + 1];
    int64_t floor = sky->floor[section];
    if (sorted_end(sky, section) <= sky->strip->capacity)
        return floor;
    uint32_t n = list_items(sky, section, list);
    if (!n || align_of(sky, list[0]) <= 1)
        return floor;
    uint64_t key = key_of(sky, list, n, floor);
    Known *known = &sky->aligned->known[key >> (64 - LOG_CACHE)];
    if (known->key != key)
        *known = (Known){key, find_end(sky, list, n, floor)};
    return known->end;
}
