/* free_list.c - free gaps for one buffer at a time; see free_list.h. */
#include "pack/free_list.h"

#include "base/guard.h"
#include "base/order.h"
#include "base/vec.h"
#include "pack/interval_tree.h"

#include <stdlib.h>
#include <string.h>

/* Lives stand here, too: a walk reads every entry, and little of most. */
typedef struct Taken {
    uint64_t at, end;     /* bytes */
    uint32_t first, last; /* steps: half-open */
    uint32_t buf;
} Taken;

typedef VEC(Taken) TakenList;

/* Fewer buffers are walked faster than a tree is climbed. */
enum { TREE_FROM = 1024 };

/* Offsets that a bundle cannot have: from `first` to `last`. */
typedef struct Bar {
    int64_t first, last;
} Bar;

struct Placer {
    Arena *arena;
    const PackProblem *problem;
    PackResult *result;
    const Clusters *bundles;         /* NULL: every buffer for itself */
    TakenList taken[PACK_MAX_POOLS]; /* sorted by `at`, then `buf` */
    Occupied *tree[PACK_MAX_POOLS];  /* instead of `taken`; NULL: not yet */
    bool in_trees;
    uint64_t steps; /* of walks in the trees */
    VEC(Gap) gap;   /* of the latest walk */
    VEC(Bar) bar;
};

uint64_t buf_bytes(const PackProblem *problem, uint32_t buf) {
    uint64_t least = 0;
    for (uint32_t p = 0; p < problem->n_pools; p++) {
        uint64_t bytes = problem->buf[buf].bytes[p];
        if (bytes && (!least || bytes < least))
            least = bytes;
    }
    return least;
}

uint64_t place_cost(const PackProblem *problem, uint32_t buf, uint32_t pool) {
    uint64_t bytes = problem->buf[buf].bytes[pool];
    uint64_t cost = problem->pool[pool].cost;
    return cost && bytes > UINT64_MAX / cost ? UINT64_MAX : bytes * cost;
}

/* Pools that allow the buffer, the cheapest first; returns how many. */
static uint32_t pools_by_cost(const PackProblem *problem, uint32_t buf,
                              uint32_t pool[PACK_MAX_POOLS]) {
    uint32_t n = 0;
    for (uint32_t p = 0; p < problem->n_pools; p++) {
        if (!problem->buf[buf].bytes[p])
            continue;
        uint32_t at = n++;
        for (; at && place_cost(problem, buf, p) <
                         place_cost(problem, buf, pool[at - 1]);
             at--)
            pool[at] = pool[at - 1];
        pool[at] = p;
    }
    return n;
}

static bool sorts_before(const Taken *a, const Taken *b) {
    return a->at != b->at ? a->at < b->at : a->buf < b->buf;
}

static void take_bytes(Placer *placer, uint32_t pool, Taken taken) {
    TakenList *list = &placer->taken[pool];
    uint32_t low = 0, high = list->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (sorts_before(&list->at[middle], &taken))
            low = middle + 1;
        else
            high = middle;
    }
    vec_push(placer->arena, list, taken);
    memmove(list->at + low + 1, list->at + low,
            (list->n - 1 - low) * sizeof *list->at);
    list->at[low] = taken;
}

static void take_bundle(Placer *placer, const Cluster *bundle, uint32_t pool,
                        uint64_t offset) {
    const Clusters *bundles = placer->bundles;
    for (uint32_t k = 0; k < bundle->n_members; k++) {
        uint32_t b = bundles->member[bundle->first_member + k];
        placer->result->pool[b] = (int32_t)pool;
        placer->result->offset[b] = offset + (uint64_t)bundles->low[b];
    }
    for (uint32_t k = 0; k < bundle->n_pieces; k++) {
        const Piece *piece = &bundles->piece[bundle->first_piece + k];
        uint64_t at = offset + (uint64_t)piece->low;
        uint64_t bytes = placer->problem->buf[piece->buf].bytes[pool];
        take_bytes(
            placer, pool,
            (Taken){at, at + bytes, piece->first, piece->end, piece->buf});
    }
}

static Occupied *tree_of(Placer *placer, uint32_t pool) {
    if (!placer->tree[pool])
        placer->tree[pool] = occupied_new(placer->arena, placer->problem);
    return placer->tree[pool];
}

static void take(Placer *placer, uint32_t buf, uint32_t pool, uint64_t offset) {
    const Buffer *b = &placer->problem->buf[buf];
    if (placer->bundles) {
        take_bundle(placer, &placer->bundles->bundle[placer->bundles->of[buf]],
                    pool, offset);
        return;
    }
    placer->result->pool[buf] = (int32_t)pool;
    placer->result->offset[buf] = offset;
    if (b->first >= b->end)
        return; /* never alive, in nobody's way */
    uint64_t end = offset + b->bytes[pool];
    if (placer->in_trees)
        occupied_add(tree_of(placer, pool), b, (Run){offset, end});
    else
        take_bytes(placer, pool, (Taken){offset, end, b->first, b->end, buf});
}

/* Those whose bundles are pinned, in their places. */
static void take_pinned_bundles(Placer *placer) {
    for (uint32_t i = 0; i < placer->bundles->n; i++) {
        const Cluster *bundle = &placer->bundles->bundle[i];
        if (bundle->pin_pool >= 0)
            take_bundle(placer, bundle, (uint32_t)bundle->pin_pool,
                        (uint64_t)bundle->pin);
    }
}

static Placer *new_placer(Arena *arena, const PackProblem *problem,
                          PackResult *result, bool large) {
    Placer *placer = ARENA_NEW(arena, Placer);
    *placer = (Placer){.arena = arena, .problem = problem, .result = result};
    if (!problem_is_plain(problem))
        placer->bundles = bundles_new(arena, problem);
    placer->in_trees = large && !placer->bundles;
    result->status = PACK_FITS;
    for (uint32_t b = 0; b < problem->n_bufs; b++) {
        const Buffer *buf = &problem->buf[b];
        bool somewhere = buf_bytes(problem, b);
        result->pool[b] = somewhere ? -1 : 0;
        result->offset[b] = 0;
        if (somewhere && buf->pin_pool >= 0 && !placer->bundles)
            take(placer, b, (uint32_t)buf->pin_pool, buf->pin_offset);
    }
    if (placer->bundles)
        take_pinned_bundles(placer);
    return placer;
}

Placer *placer_new(Arena *arena, const PackProblem *problem,
                   PackResult *result) {
    return new_placer(arena, problem, result, problem->n_bufs >= TREE_FROM);
}

Placer *placer_new_by_birth(Arena *arena, const PackProblem *problem,
                            PackResult *result) {
    return new_placer(arena, problem, result, false);
}

Placer *placer_like(Arena *arena, const Placer *fresh, PackResult *result) {
    if (fresh->in_trees)
        return new_placer(arena, fresh->problem, result, true);
    Placer *placer = ARENA_COPY(arena, Placer, fresh, 1);
    uint32_t n = fresh->problem->n_bufs;
    placer->arena = arena;
    placer->result = result;
    for (uint32_t p = 0; p < fresh->problem->n_pools; p++) {
        TakenList *list = &placer->taken[p];
        list->cap = list->n;
        list->at = ARENA_COPY(arena, Taken, list->at, list->n);
    }
    result->status = PACK_FITS;
    memcpy(result->pool, fresh->result->pool, n * sizeof *result->pool);
    memcpy(result->offset, fresh->result->offset, n * sizeof *result->offset);
    return placer;
}

/* A walk over the gaps of one pool, from low to high. */
typedef struct Walk {
    const TakenList *list;
    const Buffer *buf;
    uint64_t bytes, align, size;
    uint32_t next;
    uint64_t floor; /* all below is taken, or was offered */
    bool in_tree;   /* then `look` stands for the list */
    Look look;
} Walk;

static void walk_gaps(Placer *placer, uint32_t buf, uint32_t pool, Walk *walk) {
    const PackProblem *problem = placer->problem;
    const Buffer *b = &problem->buf[buf];
    bool alive = b->first < b->end;
    walk->list = &placer->taken[pool];
    walk->buf = b;
    walk->next = alive ? 0 : walk->list->n;
    walk->bytes = b->bytes[pool];
    walk->align = buf_align(&problem->pool[pool], b);
    walk->size = problem->pool[pool].size;
    walk->floor = 0;
    walk->in_tree = placer->in_trees && alive;
    walk->look.steps = 0;
    if (walk->in_tree)
        occupied_look(tree_of(placer, pool), b, walk->bytes, walk->align,
                      walk->size, &walk->look);
}

static bool fits(const Walk *walk, uint64_t ceiling, Gap *gap) {
    uint64_t over = walk->floor % walk->align;
    uint64_t pad = over ? walk->align - over : 0;
    if (ceiling < walk->floor || ceiling - walk->floor < pad ||
        ceiling - walk->floor - pad < walk->bytes)
        return false;
    *gap = (Gap){walk->floor + pad, ceiling};
    return true;
}

static bool next_in_tree(Walk *walk, Gap *gap) {
    Run free;
    if (!look_next(&walk->look, &free))
        return false;
    *gap = (Gap){free.at, free.end};
    return true;
}

/* The next gap that fits; false at the end of the pool. */
static bool next_gap(Walk *walk, Gap *gap) {
    if (walk->in_tree)
        return next_in_tree(walk, gap);
    while (walk->next < walk->list->n) {
        const Taken *taken = &walk->list->at[walk->next++];
        if (taken->first >= walk->buf->end || walk->buf->first >= taken->last)
            continue;
        bool found = fits(walk, taken->at, gap);
        if (taken->end > walk->floor)
            walk->floor = taken->end;
        if (found)
            return true;
    }
    bool found = walk->next == walk->list->n && fits(walk, walk->size, gap);
    walk->next = walk->list->n + 1; /* the last gap is offered once */
    return found;
}

/* All gaps, from low to high; stops early where a `hint` is free, and then
 * gives that one alone. */
static Gaps list_gaps(Placer *placer, uint32_t buf, uint32_t pool) {
    Walk walk;
    walk_gaps(placer, buf, pool, &walk);
    uint64_t hint = walk.buf->hint;
    bool hinted = hint != PACK_NO_HINT && hint % walk.align == 0;
    bool more = true;
    Gap gap;
    placer->gap.n = 0;
    while (more && next_gap(&walk, &gap)) {
        if (hinted && gap.at <= hint && hint < gap.end &&
            gap.end - hint >= walk.bytes) {
            placer->gap.n = 0;
            gap = (Gap){hint, hint + walk.bytes};
            more = false;
        }
        vec_push(placer->arena, &placer->gap, gap);
    }
    placer->steps += walk.look.steps;
    return (Gaps){buf, placer->gap.n, placer->gap.at, walk.bytes, walk.align};
}

/* ---- bundles ---- */

static void add_bar(Placer *placer, int64_t first, int64_t last) {
    if (first <= last)
        vec_push(placer->arena, &placer->bar, ((Bar){first, last}));
}

/* What the taken bytes bar to the bundle of the piece. */
static void bar_taken(Placer *placer, const Piece *piece, uint32_t pool,
                      const Taken *taken) {
    const Clusters *bundles = placer->bundles;
    int64_t at = (int64_t)taken->at - piece->low;
    Clearance c = {.below =
                       (int64_t)placer->problem->buf[piece->buf].bytes[pool],
                   .above = (int64_t)(taken->end - taken->at)};
    if (bundles->bundle[piece->bundle].linked)
        c = bundles_clearance(bundles, piece->buf, taken->buf, pool);
    if (c.free)
        return;
    int64_t first = at - c.below + 1, last = at + c.above - 1;
    if (c.same && first <= at && at <= last) {
        add_bar(placer, first, at - 1);
        add_bar(placer, at + 1, last);
    } else {
        add_bar(placer, first, last);
    }
}

/* What partners in other partitions bar to the bundle of the buffer. */
static void bar_partitions(Placer *placer, uint32_t buf, uint32_t pool) {
    const Clusters *bundles = placer->bundles;
    const PackProblem *p = placer->problem;
    for (uint32_t i = bundles->link_start[buf];
         i < bundles->link_start[buf + 1]; i++) {
        const Relation *r = &bundles->link[i];
        uint32_t other = r->a == buf ? r->b : r->a;
        if (r->kind != REL_APART || bundles->of[other] == PACK_NO_BUFFER ||
            placer->result->pool[other] != (int32_t)pool)
            continue;
        uint64_t at = placer->result->offset[other];
        Extent held =
            partitions_of(&p->pool[pool], at, p->buf[other].bytes[pool]);
        add_bar(placer,
                held.first - (int64_t)p->buf[buf].bytes[pool] -
                    bundles->low[buf] + 1,
                held.end - bundles->low[buf] - 1);
    }
}

static int by_first(const void *a, const void *b) {
    const Bar *x = a, *y = b;
    return order_by(ORDER_UP(x->first, y->first), ORDER_UP(x->last, y->last));
}

static void list_bars(Placer *placer, const Cluster *bundle, uint32_t pool) {
    const TakenList *list = &placer->taken[pool];
    placer->bar.n = 0;
    for (uint32_t k = 0; k < bundle->n_pieces; k++) {
        const Piece *piece = &placer->bundles->piece[bundle->first_piece + k];
        for (uint32_t i = 0; i < list->n; i++)
            if (piece->first < list->at[i].last &&
                list->at[i].first < piece->end)
                bar_taken(placer, piece, pool, &list->at[i]);
    }
    for (uint32_t k = 0; k < bundle->n_members && bundle->linked; k++)
        bar_partitions(placer,
                       placer->bundles->member[bundle->first_member + k], pool);
    if (placer->bar.n)
        qsort(placer->bar.at, placer->bar.n, sizeof(Bar), by_first);
}

/* What a bundle looks for in a pool. */
typedef struct Wish {
    const Cluster *bundle;
    uint32_t pool;
    int64_t bytes;
} Wish;

/* Offsets from `first` to `last` are free. */
static void offer(Placer *placer, const Wish *wish, int64_t first,
                  int64_t last) {
    if (first > last)
        return;
    int64_t at = bundle_up(placer->bundles, wish->bundle, wish->pool, first);
    if (at < 0 || at > last)
        return;
    last = bundle_down(placer->bundles, wish->bundle, wish->pool, last);
    vec_push(placer->arena, &placer->gap,
             ((Gap){(uint64_t)at, (uint64_t)(last + wish->bytes)}));
}

/* The hint alone, where it is free. */
static void heed_hint(Placer *placer, const Wish *wish) {
    uint64_t hint, bytes = (uint64_t)wish->bytes;
    if (!bundle_hint(placer->bundles, wish->bundle, &hint))
        return;
    for (uint32_t i = 0; i < placer->gap.n; i++) {
        Gap gap = placer->gap.at[i];
        if (gap.at <= hint && hint <= gap.end - bytes &&
            bundle_up(placer->bundles, wish->bundle, wish->pool,
                      (int64_t)hint) == (int64_t)hint) {
            placer->gap.at[0] = (Gap){hint, hint + bytes};
            placer->gap.n = 1;
        }
    }
}

/* Where the bundle can begin at most, were nothing else there. */
static int64_t last_start(const Placer *placer, const Wish *wish) {
    uint64_t size = placer->problem->pool[wish->pool].size;
    return (int64_t)(size < INT64_MAX / 4 ? size : INT64_MAX / 4) - wish->bytes;
}

static Gaps list_bundle_gaps(Placer *placer, uint32_t buf, uint32_t pool) {
    const Cluster *bundle = &placer->bundles->bundle[placer->bundles->of[buf]];
    Wish wish = {bundle, pool, bundle_bytes(placer->bundles, bundle, pool)};
    placer->gap.n = 0;
    if (!(bundle->pools >> pool & 1))
        return (Gaps){.buf = buf};
    int64_t at = 0, last = last_start(placer, &wish);
    list_bars(placer, bundle, pool);
    for (uint32_t i = 0; i < placer->bar.n; i++) {
        Bar bar = placer->bar.at[i];
        offer(placer, &wish, at, bar.first <= last ? bar.first - 1 : last);
        at = bar.last + 1 > at ? bar.last + 1 : at;
    }
    offer(placer, &wish, at, last);
    heed_hint(placer, &wish);
    return (Gaps){buf, placer->gap.n, placer->gap.at, (uint64_t)wish.bytes, 1};
}

/* Whether the bundle is one buffer whose relations bar nothing: what is taken,
 * in its order, then bars offsets that begin ever higher. */
static bool is_simple(const Placer *placer, uint32_t buf) {
    const Cluster *b = &placer->bundles->bundle[placer->bundles->of[buf]];
    uint64_t hint;
    return b->n_members == 1 && !b->linked &&
           !bundle_hint(placer->bundles, b, &hint);
}

static bool lives_with(const Piece *piece, uint32_t n, const Taken *taken) {
    for (uint32_t i = 0; i < n; i++)
        if (piece[i].first < taken->last && taken->first < piece[i].end)
            return true;
    return false;
}

/* The first multiple from `from` on, if it is no higher than `last`. */
static bool starts_at(const Placer *placer, const Wish *wish, int64_t from,
                      int64_t last, uint64_t *at) {
    if (from > last)
        return false;
    int64_t up = bundle_up(placer->bundles, wish->bundle, wish->pool, from);
    *at = (uint64_t)up;
    return up >= 0 && up <= last;
}

/* As list_bundle_gaps, of a simple bundle the lowest offset alone. */
static bool lowest_of_simple(const Placer *placer, uint32_t buf, uint32_t pool,
                             uint64_t *at) {
    const Clusters *bundles = placer->bundles;
    const Cluster *bundle = &bundles->bundle[bundles->of[buf]];
    const Piece *piece = &bundles->piece[bundle->first_piece];
    const TakenList *list = &placer->taken[pool];
    Wish wish = {bundle, pool, bundle_bytes(bundles, bundle, pool)};
    int64_t floor = 0, last = last_start(placer, &wish);
    if (!(bundle->pools >> pool & 1))
        return false;
    for (uint32_t i = 0; i < list->n; i++) {
        const Taken *t = &list->at[i];
        if ((int64_t)t->end <= floor || !lives_with(piece, bundle->n_pieces, t))
            continue;
        int64_t below = (int64_t)t->at - wish.bytes;
        if (starts_at(placer, &wish, floor, below < last ? below : last, at))
            return true;
        floor = (int64_t)t->end;
    }
    return starts_at(placer, &wish, floor, last, at);
}

/* ---- placing ---- */

static void no_place(Placer *placer, uint32_t buf) {
    if (placer->result->status == PACK_FITS)
        placer->result->failed = buf;
    placer->result->status = PACK_FAILS;
}

/* Where one buffer has no place, nobody asks for those of others. */
static bool is_settled(const Placer *placer, uint32_t buf) {
    const PackResult *result = placer->result;
    return result->pool[buf] >= 0 ||
           (result->status == PACK_FAILS && placer->problem->any_fit);
}

void placer_put(Placer *placer, uint32_t buf, ChooseFn *choose,
                const void *context) {
    guard_poll();
    if (is_settled(placer, buf))
        return;
    uint32_t pool[PACK_MAX_POOLS],
        n = pools_by_cost(placer->problem, buf, pool);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t p = pool[i];
        Gaps gaps = placer->bundles ? list_bundle_gaps(placer, buf, p)
                                    : list_gaps(placer, buf, p);
        if (gaps.n) {
            take(placer, buf, p, choose(context, &gaps));
            return;
        }
    }
    no_place(placer, buf);
}

static uint64_t lowest(const void *context, const Gaps *gaps) {
    (void)context;
    return gaps->gap[0].at;
}

static bool lowest_gap(Placer *placer, uint32_t buf, uint32_t pool,
                       uint64_t *at) {
    Walk walk;
    Gap gap;
    walk_gaps(placer, buf, pool, &walk);
    bool found = next_gap(&walk, &gap);
    placer->steps += walk.look.steps;
    *at = found ? gap.at : 0;
    return found;
}

void placer_put_lowest(Placer *placer, uint32_t buf) {
    guard_poll();
    const Buffer *b = &placer->problem->buf[buf];
    if (is_settled(placer, buf))
        return;
    if (b->hint != PACK_NO_HINT ||
        (placer->bundles && !is_simple(placer, buf))) {
        placer_put(placer, buf, lowest, NULL);
        return;
    }
    uint32_t pool[PACK_MAX_POOLS],
        n = pools_by_cost(placer->problem, buf, pool);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t at;
        if (placer->bundles ? lowest_of_simple(placer, buf, pool[i], &at)
                            : lowest_gap(placer, buf, pool[i], &at)) {
            take(placer, buf, pool[i], at);
            return;
        }
    }
    no_place(placer, buf);
}

uint64_t placer_steps(const Placer *placer) {
    return placer->steps;
}

void placer_retire(Placer *placer, uint32_t step) {
    for (uint32_t p = 0; p < placer->problem->n_pools; p++) {
        TakenList *list = &placer->taken[p];
        uint32_t kept = 0;
        for (uint32_t i = 0; i < list->n; i++)
            if (list->at[i].last > step)
                list->at[kept++] = list->at[i];
        list->n = kept;
    }
}

uint64_t placed_height(const PackProblem *problem, const PackResult *r) {
    uint64_t height = 0;
    for (uint32_t b = 0; b < problem->n_bufs; b++) {
        uint64_t end = r->offset[b] + problem->buf[b].bytes[0];
        height = end > height ? end : height;
    }
    return height;
}
