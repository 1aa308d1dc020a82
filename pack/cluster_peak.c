/* cluster_peak.c - how many bytes a step needs where buffers may share some.
 *
 * Input: bundles. Output: a lower bound on the bytes in use at some step: on
 * the height, if there is one pool, on the sum of heights otherwise.
 * Method: the measure of a union is at least that of any part of it, and at
 * least the sum of the parts less what each two of them can have in common
 * (Bonferroni's inequality). At each step bundles are taken in, largest first;
 * each adds its bytes less what it can share with those taken in before, or is
 * left out where nothing would remain.
 */
#include "pack/cluster.h"

#include "base/order.h"

#include <stdlib.h>
#include <string.h>

typedef struct Need {
    int64_t bytes;
    uint32_t bundle;
} Need;

typedef struct Sum {
    const Clusters *bundles;
    int32_t pool; /* -1: all of them */
    uint32_t step;
    uint32_t *alive; /* pieces, those of a bundle side by side */
    uint32_t n_alive;
    Need *need;
    uint32_t n_need;
    bool *taken; /* by bundle */
} Sum;

/* Bytes that the bundle's pieces cover in the pool: those are sorted by `low`
 * on the way. */
static int64_t covered(const Clusters *bundles, uint32_t *piece, uint32_t n,
                       uint32_t pool) {
    int64_t sum = 0, end = 0;
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t k = i; k && bundles->piece[piece[k]].low <
                                      bundles->piece[piece[k - 1]].low;
             k--) {
            uint32_t swap = piece[k];
            piece[k] = piece[k - 1];
            piece[k - 1] = swap;
        }
    for (uint32_t i = 0; i < n; i++) {
        const Piece *b = &bundles->piece[piece[i]];
        int64_t low = b->low > end ? b->low : end;
        int64_t high =
            b->low + (int64_t)bundles->problem->buf[b->buf].bytes[pool];
        sum += high > low ? high - low : 0;
        end = high > end ? high : end;
    }
    return sum;
}

static void add_need(Sum *s, uint32_t first, uint32_t n) {
    uint32_t index = s->bundles->piece[s->alive[first]].bundle;
    const Cluster *bundle = &s->bundles->bundle[index];
    int64_t least = INT64_MAX;
    if (s->pool >= 0 && bundle->pools != 1u << s->pool)
        return;
    for (uint32_t p = 0; p < s->bundles->problem->n_pools; p++)
        if (bundle->pools >> p & 1) {
            int64_t bytes = covered(s->bundles, s->alive + first, n, p);
            least = bytes < least ? bytes : least;
        }
    s->need[s->n_need++] = (Need){least, index};
}

static int largest_first(const void *a, const void *b) {
    const Need *x = a, *y = b;
    return order_by(ORDER_DOWN(x->bytes, y->bytes),
                    ORDER_UP(x->bundle, y->bundle));
}

static int64_t least_of(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Most bytes that two buffers, both alive, can have in common. */
static int64_t common(const Clusters *bundles, uint32_t a, uint32_t b) {
    const PackProblem *p = bundles->problem;
    int64_t most = 0;
    for (uint32_t k = 0; k < p->n_pools; k++) {
        int64_t x = (int64_t)p->buf[a].bytes[k];
        int64_t y = (int64_t)p->buf[b].bytes[k];
        if (!x || !y)
            continue;
        Clearance c = bundles_clearance(bundles, a, b, k);
        int64_t both = least_of(x, y), some = 0;
        if (c.free || c.same)
            some = both;
        else if (x - c.below > y - c.above)
            some = least_of(both, x - c.below);
        else
            some = least_of(both, y - c.above);
        most = some > most ? some : most;
    }
    return most;
}

static bool lives_at(const Buffer *buf, uint32_t step) {
    Buffer now = {.first = step, .end = step + 1};
    return bufs_conflict(buf, &now);
}

/* What the bundle's buffers can share with bundles that are taken in. */
static int64_t shared(const Sum *s, const Cluster *bundle) {
    const Clusters *x = s->bundles;
    int64_t sum = 0;
    for (uint32_t k = 0; k < bundle->n_members; k++) {
        uint32_t b = x->member[bundle->first_member + k],
                 before = PACK_NO_BUFFER;
        if (!lives_at(&x->problem->buf[b], s->step))
            continue;
        for (uint32_t i = x->link_start[b]; i < x->link_start[b + 1]; i++) {
            const Relation *r = &x->link[i];
            uint32_t other = r->a == b ? r->b : r->a;
            if (other != before && x->of[other] != PACK_NO_BUFFER &&
                s->taken[x->of[other]] &&
                lives_at(&x->problem->buf[other], s->step))
                sum += common(x, b, other);
            before = other;
        }
    }
    return sum;
}

static uint64_t sum_needs(Sum *s) {
    uint64_t sum = 0;
    if (s->n_need)
        qsort(s->need, s->n_need, sizeof *s->need, largest_first);
    for (uint32_t i = 0; i < s->n_need; i++) {
        const Cluster *bundle = &s->bundles->bundle[s->need[i].bundle];
        int64_t own = s->need[i].bytes;
        own -= bundle->linked ? shared(s, bundle) : 0;
        if (own <= 0)
            continue;
        s->taken[s->need[i].bundle] = true;
        sum =
            sum > UINT64_MAX - (uint64_t)own ? UINT64_MAX : sum + (uint64_t)own;
    }
    for (uint32_t i = 0; i < s->n_need; i++)
        s->taken[s->need[i].bundle] = false;
    return sum;
}

static uint64_t sum_step(Sum *s) {
    uint32_t first = 0;
    s->n_need = 0;
    for (uint32_t i = 1; i <= s->n_alive; i++)
        if (i == s->n_alive || s->bundles->piece[s->alive[i]].bundle !=
                                   s->bundles->piece[s->alive[first]].bundle) {
            add_need(s, first, i - first);
            first = i;
        }
    return sum_needs(s);
}

typedef struct Birth {
    uint32_t step, piece;
} Birth;

static int by_step(const void *a, const void *b) {
    const Birth *x = a, *y = b;
    return order_by(ORDER_UP(x->step, y->step), ORDER_UP(x->piece, y->piece));
}

static void bury(Sum *s) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->n_alive; i++)
        if (s->bundles->piece[s->alive[i]].end > s->step)
            s->alive[kept++] = s->alive[i];
    s->n_alive = kept;
}

/* Beside the others of its bundle. */
static void bear(Sum *s, uint32_t piece) {
    uint32_t low = 0, high = s->n_alive;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (s->bundles->piece[s->alive[middle]].bundle <
            s->bundles->piece[piece].bundle)
            low = middle + 1;
        else
            high = middle;
    }
    memmove(s->alive + low + 1, s->alive + low,
            (s->n_alive++ - low) * sizeof *s->alive);
    s->alive[low] = piece;
}

uint64_t bundles_live_peak(Arena *arena, const Clusters *bundles, int32_t pool,
                           uint32_t *at) {
    uint32_t n = bundles->n_pieces;
    Sum s = {.bundles = bundles, .pool = pool};
    s.alive = ARENA_ARRAY(arena, uint32_t, n);
    s.need = ARENA_ARRAY(arena, Need, bundles->n);
    s.taken = ARENA_ARRAY(arena, bool, bundles->n);
    Birth *birth = ARENA_ARRAY(arena, Birth, n);
    for (uint32_t i = 0; i < n; i++)
        birth[i] = (Birth){bundles->piece[i].first, i};
    if (n)
        qsort(birth, n, sizeof *birth, by_step);
    uint64_t peak = 0;
    for (uint32_t i = 0; i < n;) {
        s.step = birth[i].step;
        bury(&s);
        for (; i < n && birth[i].step == s.step; i++)
            bear(&s, birth[i].piece);
        uint64_t sum = sum_step(&s);
        if (sum > peak && at)
            *at = s.step;
        peak = sum > peak ? sum : peak;
    }
    return peak;
}
