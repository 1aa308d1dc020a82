/* hold.c - which block of weights lies where; see stage.h.
 *
 * Input: what volumes hold, and loads of blocks in the order of their first
 * use. Output: a place for each, free from the load on to its use. Method: of
 * the places that volumes and promised blocks leave, the one that is free
 * first; where a block lies that is used again, its load counts as well. A
 * block that is done with stays until its place is wanted; of those that could
 * go, the one that is needed last goes (Belady, 1966).
 */
#include "alloc/stage.h"

#include "hwspec/cost.h"

#include <stdlib.h>
#include <string.h>

static bool meet(Reach a, Reach b) {
    return a.first < b.end && b.first < a.end;
}

void holds_open(Holds *h, Arena *arena, const Plan *plan) {
    *h = (Holds){.arena = arena, .plan = plan};
    h->stays = stays_of(arena, plan);
    const Stay *stay = h->stays.at.at;
    uint32_t n = h->stays.at.n;
    uint32_t *start = ARENA_ARRAY(arena, uint32_t, plan->n_actions + 2);
    uint32_t *order = ARENA_ARRAY(arena, uint32_t, n + 1);
    for (uint32_t i = 0; i < n; i++)
        start[stay[i].since + 1]++;
    for (uint32_t i = 0; i < plan->n_actions; i++)
        start[i + 1] += start[i];
    for (uint32_t i = 0; i < n; i++)
        order[start[stay[i].since]++] = i;
    for (uint32_t i = 0; i < n; i++)
        vec_push(arena, &h->order, order[i]);
}

void holds_begin_early(Holds *h, uint32_t load, uint32_t front) {
    uint32_t i = h->stays.of_load[load];
    if (i == NONE || h->stays.at.at[i].since <= front)
        return;
    h->stays.at.at[i].since = front;
    vec_push(h->arena, &h->early, i);
}

bool holds_block(const Holds *h, Reach bytes, uint32_t front) {
    for (uint32_t i = 0; i < h->held.n; i++)
        if (h->held.at[i].until >= front && meet(h->held.at[i].bytes, bytes))
            return true;
    return false;
}

static bool over_stay(const Holds *h, uint32_t i, Reach bytes, uint32_t front,
                      uint32_t use) {
    const Stay *s = &h->stays.at.at[i];
    return s->since <= use && s->until >= front && meet(s->bytes, bytes);
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
        if (!meet(h->held.at[i].bytes, bytes))
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

/* Cycles at which bytes are free that somebody is at work on. */
typedef struct AtWork {
    Reach bytes;
    uint64_t end;
} AtWork;

typedef struct Search {
    Arena *arena;
    const Holds *h;
    const Wanted *w;
    uint64_t now, align, size;
    VEC(Reach) taken;
    VEC(AtWork) busy;
    VEC(Held) loose; /* blocks that may go */
    bool any;
    Reach best;
    uint64_t cost;
    uint32_t again; /* first use of what goes */
} Search;

static void take_stay(Search *s, uint32_t i) {
    const Stay *stay = &s->h->stays.at.at[i];
    if (stay->since <= s->w->use && stay->until >= s->w->front)
        vec_push(s->arena, &s->taken, stay->bytes);
}

static void find_taken(Search *s) {
    const Holds *h = s->h;
    for (uint32_t i = h->passed; i < h->order.n; i++) {
        if (h->stays.at.at[h->order.at[i]].since > s->w->use)
            break;
        take_stay(s, h->order.at[i]);
    }
    for (uint32_t i = 0; i < h->early.n; i++)
        take_stay(s, h->early.at[i]);
    for (uint32_t i = 0; i < s->w->n_busy; i++)
        vec_push(s->arena, &s->taken, s->w->busy[i]);
    for (uint32_t i = 0; i < h->held.n; i++) {
        const Held *held = &h->held.at[i];
        bool stays = held->until >= s->w->front ||
                     (held->again != NONE && !s->w->evicts);
        if (stays)
            vec_push(s->arena, &s->taken, held->bytes);
        else
            vec_push(s->arena, &s->loose, *held);
    }
}

static void find_busy(Search *s, const Queue *queue) {
    for (uint32_t i = 0; i < queue->entry.n; i++) {
        const QueueEntry *e = &queue->entry.at[i];
        if (e->end <= s->now)
            continue;
        AtWork work = {e->touched.weights, e->end};
        if (work.bytes.end)
            vec_push(s->arena, &s->busy, work);
        for (uint32_t k = 0; k < e->touched.volumes.n; k++) {
            const Access *a = &e->touched.volumes.at[k];
            work.bytes = (Reach){a->first, a->end};
            if (a->at->memory == 0)
                vec_push(s->arena, &s->busy, work);
        }
    }
}

static void try_at(Search *s, Reach gap, uint64_t at) {
    Reach bytes = {at, at + s->w->slice->bytes};
    if (at % s->align || at < gap.first || bytes.end > gap.end)
        return;
    uint64_t cost = 0;
    uint32_t again = NONE;
    for (uint32_t i = 0; i < s->busy.n; i++) {
        const AtWork *work = &s->busy.at[i];
        if (meet(work->bytes, bytes) && work->end - s->now > cost)
            cost = work->end - s->now;
    }
    for (uint32_t i = 0; i < s->loose.n; i++) {
        const Held *held = &s->loose.at[i];
        if (held->again == NONE || !meet(held->bytes, bytes))
            continue;
        cost += hwspec_staged_cycles(s->h->plan->schedule->spec,
                                     held->bytes.end - held->bytes.first);
        again = held->again < again ? held->again : again;
    }
    if (s->any && (cost > s->cost || (cost == s->cost && again <= s->again)))
        return;
    s->any = true;
    s->best = bytes;
    s->cost = cost;
    s->again = again;
}

static uint64_t up(const Search *s, uint64_t at) {
    return (at + s->align - 1) / s->align * s->align;
}

/* The ends of the gap, and those of blocks in it. */
static void try_gap(Search *s, Reach gap) {
    uint64_t n = s->w->slice->bytes;
    if (gap.first >= gap.end || gap.end - gap.first < n)
        return;
    try_at(s, gap, up(s, gap.first));
    try_at(s, gap, (gap.end - n) / s->align * s->align);
    for (uint32_t i = 0; i < s->loose.n; i++) {
        Reach b = s->loose.at[i].bytes;
        try_at(s, gap, up(s, b.end));
        try_at(s, gap, b.first);
        if (b.first >= n)
            try_at(s, gap, (b.first - n) / s->align * s->align);
    }
    for (uint32_t i = 0; i < s->busy.n; i++)
        try_at(s, gap, up(s, s->busy.at[i].bytes.end));
}

static int by_first(const void *a, const void *b) {
    const Reach *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

bool holds_place(const Holds *h, const Wanted *w, const Queue *queue,
                 uint64_t now, Reach *out) {
    const HwMemory *m = &h->plan->schedule->spec->memory[0];
    Search s = {.arena = arena_new("hold"),
                .h = h,
                .w = w,
                .now = now,
                .align = m->align ? m->align : 1,
                .size = m->size};
    find_taken(&s);
    find_busy(&s, queue);
    vec_push(s.arena, &s.taken, ((Reach){s.size, s.size}));
    qsort(s.taken.at, s.taken.n, sizeof *s.taken.at, by_first);
    uint64_t end = 0;
    for (uint32_t i = 0; i < s.taken.n; i++) {
        Reach r = s.taken.at[i];
        try_gap(&s, (Reach){end, r.first});
        end = r.end > end ? r.end : end;
    }
    *out = s.best;
    arena_free(s.arena);
    return s.any;
}

uint32_t holds_put(Holds *h, const Wanted *w, Reach bytes) {
    holds_drop(h, bytes);
    const Slice *s = w->slice;
    WeightBlock block = {s->node, s->c, s->n_c, s->taps, bytes.first, s->bytes};
    vec_push(h->arena, &h->block, block);
    Held held = {bytes, w->number, h->block.n, w->use, w->again};
    vec_push(h->arena, &h->held, held);
    return h->block.n;
}
