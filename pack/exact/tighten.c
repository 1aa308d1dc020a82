/* tighten.c - a problem with gaps, or with relations that allow overlaps, asked
 * again without these: whatever fits then, fits.
 *
 * Input: a problem of one pool. Output: one without relations, whose buffers
 * are groups of bundles of the first, each a block over all steps at which
 * something in it is alive; its placements are placements of the first.
 *
 * Attempt 0 makes a group of each bundle, without gaps: the problem as if
 * nothing were allowed. Others weld pairs that a relation lets overlap, at the
 * offsets at which they do so most, where everything else in both groups allows
 * it: all pairs, or those of like sizes, or some drawn ones.
 */
#include "pack/exact/exact.h"

#include "base/order.h"
#include "base/rng.h"
#include "pack/cluster.h"
#include "pack/free_list.h"

#include <stdlib.h>

enum { MOST_BUNDLES = 32 };
static const int64_t MOST = INT64_MAX / 8;

typedef struct Groups {
    const Clusters *all;
    uint32_t *of, *next; /* by bundle: its group (a bundle of it); the next in
                          * a ring */
    uint32_t *n;         /* by group: bundles */
    int64_t *at, *grid;  /* by bundle: in its group; see grid_of */
} Groups;

static int64_t round_up(int64_t value, int64_t step) {
    int64_t over = value % step;
    return over > 0 ? value + step - over : value - over;
}

/* What the bundle's offset is to be a multiple of, that all in it has what it
 * asks for; 0: there is no such number. */
static int64_t grid_of(const Clusters *all, uint32_t i) {
    const PackProblem *p = all->problem;
    const Cluster *bundle = &all->bundle[i];
    Pool pool = p->pool[0];
    pool.align = buf_align(&pool, &p->buf[bundle->root]);
    for (uint32_t k = 0; k < bundle->n_members; k++) {
        uint32_t b = all->member[bundle->first_member + k];
        uint64_t own = p->buf[b].align;
        if (b == bundle->root || own < 2)
            continue;
        if (pool.align > (uint64_t)MOST || own > (uint64_t)MOST ||
            (uint64_t)all->low[b] % own)
            return 0;
        pool.align = buf_align(&pool, &p->buf[b]);
    }
    return pool.align > (uint64_t)MOST ? 0 : (int64_t)pool.align;
}

/* Whether all of both groups may be where they come to be when the second is
 * moved up by `by`. */
static bool groups_agree(const Groups *g, uint32_t x, uint32_t y, int64_t by) {
    uint32_t i = x, k = y;
    int64_t lowest = by < 0 ? by : 0;
    bool agree = g->n[x] + g->n[y] <= MOST_BUNDLES;
    do {
        const Cluster *one = &g->all->bundle[i];
        agree &= (g->at[i] - lowest) % g->grid[i] == 0;
        do {
            const Cluster *other = &g->all->bundle[k];
            agree = agree && (one->pin_pool < 0 || other->pin_pool < 0) &&
                    (g->at[k] + by - lowest) % g->grid[k] == 0 &&
                    !bundles_collide(g->all, 0, one, g->at[i], other,
                                     g->at[k] + by);
            k = g->next[k];
        } while (k != y && agree);
        i = g->next[i];
    } while (i != x && agree);
    return agree;
}

static void weld_groups(Groups *g, uint32_t x, uint32_t y, int64_t by) {
    int64_t up = by < 0 ? -by : 0;
    for (uint32_t i = g->next[x];; i = g->next[i]) {
        g->at[i] += up;
        if (i == x)
            break;
    }
    for (uint32_t k = g->next[y];; k = g->next[k]) {
        g->at[k] += by + up;
        g->of[k] = x;
        if (k == y)
            break;
    }
    uint32_t after = g->next[x];
    g->next[x] = g->next[y];
    g->next[y] = after;
    g->n[x] += g->n[y];
}

/* Offsets of the bundles of a and b, their difference, where they overlap
 * most. */
static int64_t closest(const Groups *g, const Relation *r) {
    const Clusters *all = g->all;
    int64_t apart = 0, grid = g->grid[all->of[r->b]];
    if (r->kind == REL_BELOW && r->bytes > 0)
        apart = r->bytes;
    return round_up(all->low[r->a] + apart - all->low[r->b], grid);
}

static bool is_wanted(const Clusters *all, uint32_t index, uint32_t attempt) {
    const Relation *r = &all->problem->relation[index];
    const Buffer *buf = all->problem->buf;
    uint64_t a = buf[r->a].bytes[0], b = buf[r->b].bytes[0];
    uint64_t chance = 2 + attempt % 3; /* of 5 */
    uint32_t x = all->of[r->a], y = all->of[r->b];
    if (r->kind == REL_INSIDE || x == PACK_NO_BUFFER || y == PACK_NO_BUFFER ||
        x == y || !bufs_conflict(&buf[r->a], &buf[r->b]))
        return false;
    if (attempt == 2)
        return a / 2 < b && b / 2 < a;
    uint64_t seed = rng_bits(all->problem->seed, attempt);
    return attempt == 1 || rng_bits(seed, index) % 5 < chance;
}

static Groups groups_new(Arena *arena, const Clusters *all, uint32_t attempt) {
    Groups g = {all,
                ARENA_ARRAY(arena, uint32_t, all->n),
                ARENA_ARRAY(arena, uint32_t, all->n),
                ARENA_ARRAY(arena, uint32_t, all->n),
                ARENA_ARRAY(arena, int64_t, all->n),
                ARENA_ARRAY(arena, int64_t, all->n)};
    for (uint32_t i = 0; i < all->n; i++) {
        g.of[i] = g.next[i] = i;
        g.n[i] = 1;
        g.grid[i] = grid_of(all, i);
    }
    for (uint32_t k = 0; k < all->problem->n_relations && attempt; k++) {
        if (!is_wanted(all, k, attempt))
            continue;
        const Relation *r = &all->problem->relation[k];
        uint32_t a = all->of[r->a], b = all->of[r->b];
        int64_t by = g.at[a] + closest(&g, r) - g.at[b];
        if (g.of[a] != g.of[b] && groups_agree(&g, g.of[a], g.of[b], by))
            weld_groups(&g, g.of[a], g.of[b], by);
    }
    return g;
}

/* ---- a group as a buffer ---- */

static int by_first(const void *a, const void *b) {
    const Steps *x = a, *y = b;
    return order_by(ORDER_UP(x->first, y->first), ORDER_UP(x->end, y->end));
}

/* From its first step to its last; the gaps between, if they count. */
static void find_life(Arena *arena, const Groups *g, uint32_t group, bool gaps,
                      Buffer *whole) {
    uint32_t n = 0, at = 0;
    for (uint32_t i = group, k = 0; k < g->n[group]; k++, i = g->next[i])
        n += g->all->bundle[i].n_pieces;
    Steps *span = ARENA_ARRAY(arena, Steps, n), *gap = span;
    for (uint32_t i = group, k = 0; k < g->n[group]; k++, i = g->next[i])
        for (uint32_t j = 0; j < g->all->bundle[i].n_pieces; j++) {
            const Piece *piece =
                &g->all->piece[g->all->bundle[i].first_piece + j];
            span[at++] = (Steps){piece->first, piece->end};
        }
    *whole = (Buffer){.pin_pool = -1, .hint = PACK_NO_HINT, .gap = gap};
    if (!n)
        return;
    qsort(span, n, sizeof *span, by_first);
    whole->first = span[0].first;
    whole->end = span[0].end;
    for (uint32_t k = 1; k < n; k++) { /* a gap is written where a span was */
        Steps next = span[k];
        if (next.first > whole->end && gaps)
            gap[whole->n_gaps++] = (Steps){whole->end, next.first};
        whole->end = next.end > whole->end ? next.end : whole->end;
    }
}

/* False where what it asks for cannot be said of one buffer. */
static bool take_demands(const Groups *g, uint32_t group, Buffer *whole) {
    int64_t top = 0;
    Pool pool = {.align = 1};
    for (uint32_t i = group, k = 0; k < g->n[group]; k++, i = g->next[i]) {
        const Cluster *bundle = &g->all->bundle[i];
        int64_t grid = g->grid[i];
        int64_t end = g->at[i] + bundle_bytes(g->all, bundle, 0);
        top = end > top ? end : top;
        if (!grid || g->at[i] % grid || pool.align > (uint64_t)MOST)
            return false;
        pool.align = buf_align(&pool, &(Buffer){.align = (uint64_t)grid});
        if (bundle->pin_pool < 0)
            continue;
        if (bundle->pin < g->at[i])
            return false;
        whole->pin_pool = 0;
        whole->pin_offset = (uint64_t)(bundle->pin - g->at[i]);
    }
    whole->bytes[0] = (uint64_t)top;
    whole->align = pool.align;
    return pool.align <= (uint64_t)MOST &&
           (whole->pin_pool < 0 || whole->pin_offset % whole->align == 0);
}

bool tight_new(Arena *arena, const PackProblem *problem, uint32_t attempt,
               Tight *tight) {
    const Clusters *all = bundles_new(arena, problem);
    if (problem->n_pools != 1 || all->contradicted != PACK_NO_BUFFER)
        return false;
    for (uint32_t i = 0; i < problem->n_relations; i++)
        if (problem->relation[i].kind == REL_APART)
            return false;
    for (uint32_t i = 0; i < all->n; i++)
        if (!grid_of(all, i))
            return false;
    Groups g = groups_new(arena, all, attempt);
    Buffer *buf = ARENA_ARRAY(arena, Buffer, all->n);
    *tight = (Tight){.problem = *problem, .bundles = all, .shift = g.at};
    tight->into = ARENA_ARRAY(arena, uint32_t, all->n);
    uint32_t n = 0;
    for (uint32_t i = 0; i < all->n; i++) {
        if (g.of[i] != i)
            continue;
        find_life(arena, &g, i, attempt > 0, &buf[n]);
        if (!take_demands(&g, i, &buf[n]))
            return false;
        for (uint32_t k = 0, m = i; k < g.n[i]; k++, m = g.next[m])
            tight->into[m] = n;
        n++;
    }
    tight->problem.n_bufs = n;
    tight->problem.buf = buf;
    tight->problem.n_relations = 0;
    tight->problem.relation = NULL;
    return true;
}

void tight_result(Arena *arena, const Tight *tight, const PackResult *from,
                  PackResult *result) {
    const Clusters *all = tight->bundles;
    uint32_t n = all->problem->n_bufs;
    *result = *from;
    result->pool = ARENA_ARRAY(arena, int32_t, n);
    result->offset = ARENA_ARRAY(arena, uint64_t, n);
    for (uint32_t b = 0; b < n; b++) {
        uint32_t i = all->of[b];
        if (i != PACK_NO_BUFFER)
            result->offset[b] = from->offset[tight->into[i]] +
                                (uint64_t)(tight->shift[i] + all->low[b]);
    }
}
