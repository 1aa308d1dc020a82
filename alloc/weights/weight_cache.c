/* weight_cache.c - which block of weights lies where; see weights.h.
 *
 * Input: what volumes hold, and loads of blocks in the order of their first
 * use. Output: a place for each, free from the load on to its use. Method: of
 * the places that volumes and promised blocks leave, the one that is free
 * first, and the shortest of these. A block that is done with stays until its
 * place is wanted; of those that could go, the one that is needed last goes
 * (Belady, 1966).
 */
#include "alloc/weights/weights.h"

#include "base/order.h"

#include <stdlib.h>

void holds_open(Holds *h, Arena *arena, const Plan *plan) {
    *h = (Holds){.arena = arena, .plan = plan};
    h->stays = stays_of(arena, plan);
    for (uint32_t i = 0; i < h->stays.at.n; i++)
        vec_push(arena, &h->order, h->stays.order[i]);
}

/* ---- what volumes hold ---- */

static void add_near(Holds *h, const HeldBytes *stay) {
    in_uses_add(h->arena, &h->near, (InUse){stay->bytes, stay->until});
}

void holds_reach(Holds *h, uint32_t front, uint32_t use) {
    bool passes = front > h->front;
    h->front = front;
    h->use = use;
    if (passes)
        in_uses_drop(&h->near, front);
    for (; h->seen < h->order.n; h->seen++) {
        const HeldBytes *stay = &h->stays.at.at[h->order.at[h->seen]];
        if (stay->since > use)
            break;
        if (stay->until >= front)
            add_near(h, stay);
    }
}

void holds_begin_early(Holds *h, uint32_t load, uint32_t front) {
    uint32_t i = h->stays.of_load[load];
    if (i == NONE || h->stays.at.at[i].since <= front)
        return;
    if (h->stays.at.at[i].since > h->use)
        add_near(h, &h->stays.at.at[i]);
    h->stays.at.at[i].since = front;
    vec_push(h->arena, &h->early, i);
}

bool holds_block(const Holds *h, Reach bytes, uint32_t front) {
    for (uint32_t i = 0; i < h->held.n; i++)
        if (h->held.at[i].until >= front &&
            reaches_meet(h->held.at[i].bytes, bytes))
            return true;
    return false;
}

static bool over_stay(const Holds *h, uint32_t i, Reach bytes, uint32_t front,
                      uint32_t use) {
    const HeldBytes *s = &h->stays.at.at[i];
    return s->since <= use && s->until >= front &&
           reaches_meet(s->bytes, bytes);
}

/* Whether volumes leave the bytes alone from `front` to `use`. */
static bool undisturbed(const Holds *h, Reach bytes, uint32_t front,
                        uint32_t use) {
    for (uint32_t i = h->passed; i < h->order.n; i++) {
        if (over_stay(h, h->order.at[i], bytes, front, use))
            return false;
        if (h->stays.at.at[h->order.at[i]].since > use)
            break;
    }
    for (uint32_t i = 0; i < h->early.n; i++)
        if (over_stay(h, h->early.at[i], bytes, front, use))
            return false;
    return true;
}

void holds_drop(Holds *h, Reach bytes) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < h->held.n; i++)
        if (!reaches_meet(h->held.at[i].bytes, bytes))
            h->held.at[n++] = h->held.at[i];
    h->held.n = n;
}

uint32_t holds_find(Holds *h, uint32_t slice, uint32_t front, uint32_t use,
                    uint32_t again) {
    for (uint32_t i = 0; i < h->held.n; i++) {
        Held *held = &h->held.at[i];
        if (held->slice != slice || !undisturbed(h, held->bytes, front, use))
            continue;
        held->until = use;
        held->again = again;
        return held->block;
    }
    return 0;
}

/* ---- a place ---- */

/* Bytes that are in the way: always; until a cycle; or as long as the block
 * there is not given up, of those that can be so many are in turn before. */
typedef struct Hurdle {
    Reach bytes;
    uint64_t until; /* UINT64_MAX: always */
    uint32_t turn;  /* NONE: no block */
} Hurdle;

typedef struct Loose {
    Reach bytes;
    uint32_t again;
} Loose;

typedef struct Search {
    Arena *arena;
    const Holds *h;
    const Wanted *w;
    uint64_t now, align, size;
    VEC(Hurdle) own;    /* but for what lies near by or is at work */
    VEC(Hurdle) hurdle; /* all, by first byte */
    uint32_t always;    /* 1 + the last of them that is always in the way */
    VEC(Loose) loose;   /* blocks that may go */
    VEC(uint64_t) end;  /* of those at work */
} Search;

static void add(Search *s, Reach bytes, uint64_t until, uint32_t turn) {
    vec_push(s->arena, &s->own, ((Hurdle){bytes, until, turn}));
}

static void add_stay(Search *s, uint32_t i) {
    const HeldBytes *stay = &s->h->stays.at.at[i];
    if (stay->since <= s->w->use && stay->until >= s->w->front)
        add(s, stay->bytes, UINT64_MAX, NONE);
}

static void add_held(Search *s, const Held *held) {
    if (held->until >= s->w->front || !s->w->evicts)
        add(s, held->bytes, UINT64_MAX, NONE);
    else
        vec_push(s->arena, &s->loose, ((Loose){held->bytes, held->again}));
}

static void add_taken(Search *s) {
    const Holds *h = s->h;
    for (uint32_t i = h->seen; i < h->order.n; i++) {
        if (h->stays.at.at[h->order.at[i]].since > s->w->use)
            break;
        add_stay(s, h->order.at[i]);
    }
    for (uint32_t i = 0; i < s->w->n_busy; i++)
        add(s, s->w->busy[i], UINT64_MAX, NONE);
    for (uint32_t i = 0; i < h->held.n; i++) {
        const Held *held = &h->held.at[i];
        if (held->until >= s->w->front || held->again != NONE)
            add_held(s, held);
    }
}

static void add_ends(Search *s, const Queue *queue) {
    for (uint32_t i = 0; i < queue->entry.n; i++)
        if (queue->entry.at[i].end > s->now)
            vec_push(s->arena, &s->end, queue->entry.at[i].end);
}

static int by_again(const void *a, const void *b) {
    const Loose *x = a, *y = b;
    return order_by(ORDER_DOWN(x->again, y->again),
                    ORDER_UP(x->bytes.first, y->bytes.first));
}

static int by_first(const void *a, const void *b) {
    const Hurdle *x = a, *y = b;
    return ORDER_UP(x->bytes.first, y->bytes.first);
}

static int by_cycle(const void *a, const void *b) {
    const uint64_t *x = a, *y = b;
    return ORDER_UP(*x, *y);
}

static void put(Search *s, Hurdle h) {
    Hurdle *last = s->always ? &s->hurdle.at[s->always - 1] : NULL;
    bool always = h.until == UINT64_MAX && h.turn == NONE;
    if (always && last && h.bytes.first <= last->bytes.end) {
        if (h.bytes.end > last->bytes.end)
            last->bytes.end = h.bytes.end;
        return;
    }
    vec_push(s->arena, &s->hurdle, h);
    if (always)
        s->always = s->hurdle.n;
}

/* By first byte, of three lists in that order. The last byte of all ends it. */
static void merge_hurdles(Search *s, const Queue *queue) {
    const Holds *h = s->h;
    uint32_t near = 0, work = 0;
    for (uint32_t own = 0; own < s->own.n;) {
        uint64_t first = s->own.at[own].bytes.first;
        const InUse *stay = near < h->near.n ? &h->near.at[near] : NULL;
        const InUse *busy =
            work < queue->at_work.n ? &queue->at_work.at[work] : NULL;
        if (stay && stay->bytes.first < first &&
            (!busy || stay->bytes.first <= busy->bytes.first)) {
            put(s, (Hurdle){stay->bytes, UINT64_MAX, NONE});
            near++;
        } else if (busy && busy->bytes.first < first) {
            if (busy->until > s->now)
                put(s, (Hurdle){busy->bytes, busy->until, NONE});
            work++;
        } else {
            put(s, s->own.at[own++]);
        }
    }
}

/* What is needed last goes first. */
static void order_hurdles(Search *s, const Queue *queue) {
    if (s->loose.n)
        qsort(s->loose.at, s->loose.n, sizeof *s->loose.at, by_again);
    for (uint32_t i = 0; i < s->loose.n; i++)
        add(s, s->loose.at[i].bytes, 0, i);
    add(s, (Reach){s->size, s->size}, UINT64_MAX, NONE);
    qsort(s->own.at, s->own.n, sizeof *s->own.at, by_first);
    merge_hurdles(s, queue);
    if (s->end.n)
        qsort(s->end.at, s->end.n, sizeof *s->end.at, by_cycle);
}

/* The shortest range that will do, free from the cycle on if so many blocks go.
 */
static bool find_range(const Search *s, uint64_t cycle, uint32_t gone,
                       Reach *out) {
    uint64_t free = 0, n = s->w->slice->bytes, least = UINT64_MAX;
    for (uint32_t i = 0; i < s->hurdle.n; i++) {
        const Hurdle *h = &s->hurdle.at[i];
        if (h->turn == NONE ? h->until <= cycle : h->turn < gone)
            continue;
        uint64_t at = (free + s->align - 1) / s->align * s->align;
        if (h->bytes.first >= at && h->bytes.first - at >= n &&
            h->bytes.first - at < least) {
            least = h->bytes.first - at;
            *out = (Reach){at, at + n};
        }
        free = h->bytes.end > free ? h->bytes.end : free;
    }
    return least < UINT64_MAX;
}

/* The range that is free first. */
static bool find_first(const Search *s, uint32_t gone, Reach *out) {
    uint32_t none = 0, some = s->end.n;
    if (find_range(s, s->now, gone, out))
        return true;
    if (!some || !find_range(s, s->end.at[some - 1], gone, out))
        return false;
    while (none + 1 < some) {
        uint32_t mid = none + (some - none) / 2;
        bool found = find_range(s, s->end.at[mid - 1], gone, out);
        *(found ? &some : &none) = mid;
    }
    return find_range(s, s->end.at[some - 1], gone, out);
}

bool holds_place(const Holds *h, const Wanted *w, const Queue *queue,
                 uint64_t now, Reach *out) {
    const HwSpec *spec = h->plan->schedule->spec;
    const HwMemory *m = &spec->memory[spec->weights];
    Search s = {.arena = arena_new("hold"),
                .h = h,
                .w = w,
                .now = now,
                .align = m->align ? m->align : 1,
                .size = m->size};
    add_taken(&s);
    add_ends(&s, queue);
    order_hurdles(&s, queue);
    bool found = find_first(&s, 0, out);
    for (uint32_t gone = 1; gone <= s.loose.n && !found; gone++)
        found = find_first(&s, gone, out);
    arena_free(s.arena);
    return found;
}

/* Blocks that nobody needs any more. */
static void forget(Holds *h, uint32_t front) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < h->held.n; i++)
        if (h->held.at[i].until >= front || h->held.at[i].again != NONE)
            h->held.at[n++] = h->held.at[i];
    h->held.n = n;
}

uint32_t holds_put(Holds *h, const Wanted *w, Reach bytes) {
    holds_drop(h, bytes);
    forget(h, w->front);
    ConstantBlock block = *w->slice;
    block.offset = bytes.first;
    vec_push(h->arena, &h->block, block);
    Held held = {bytes, w->number, h->block.n, w->use, w->again};
    vec_push(h->arena, &h->held, held);
    return h->block.n;
}
