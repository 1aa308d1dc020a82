/* cluster.c - buffers with what lies inside them; see cluster.h.
 *
 * Input: a problem whose relations name buffers of it. Output: bundles in the
 * order of their roots, pieces and members of each side by side.
 */
#include "pack/cluster.h"

#include "base/order.h"

#include "pack/free_list.h"

#include <assert.h>
#include <stdlib.h>

static const int64_t MOST = INT64_MAX / 4;

bool problem_is_plain(const PackProblem *problem) {
    bool plain = !problem->n_relations;
    for (uint32_t b = 0; b < problem->n_bufs && plain; b++)
        plain = !problem->buf[b].n_gaps;
    return plain;
}

/* ---- lives ---- */

bool next_span(const Buffer *buf, uint32_t *next, uint32_t *at, Steps *span) {
    while (*at < buf->end) {
        Steps gap = {buf->end, buf->end};
        if (*next < buf->n_gaps)
            gap = buf->gap[*next];
        uint32_t stop = gap.first < buf->end ? gap.first : buf->end;
        *span = (Steps){*at, stop};
        *at = gap.end > *at ? gap.end : *at;
        ++*next;
        if (span->first < span->end)
            return true;
    }
    return false;
}

bool buf_is_alive(const Buffer *buf) {
    uint32_t next = 0, at = buf->first;
    Steps span;
    return next_span(buf, &next, &at, &span);
}

bool bufs_conflict(const Buffer *a, const Buffer *b) {
    uint32_t first = a->first > b->first ? a->first : b->first;
    uint32_t end = a->end < b->end ? a->end : b->end;
    if (first >= end || (!a->n_gaps && !b->n_gaps))
        return first < end;
    uint32_t i = 0, k = 0, at = a->first, bt = b->first;
    Steps x, y;
    bool more = next_span(a, &i, &at, &x) && next_span(b, &k, &bt, &y);
    while (more) {
        if (x.first < y.end && y.first < x.end)
            return true;
        more = x.end <= y.first ? next_span(a, &i, &at, &x)
                                : next_span(b, &k, &bt, &y);
    }
    return false;
}

/* ---- relations ---- */

static int64_t less_of(int64_t a, int64_t b) {
    return a < b ? a : b;
}

Clearance bufs_clearance(const PackProblem *problem, uint32_t a, uint32_t b,
                         uint32_t pool, const Relation *relation, uint32_t n) {
    Clearance c = {.below = (int64_t)problem->buf[a].bytes[pool],
                   .above = (int64_t)problem->buf[b].bytes[pool]};
    for (uint32_t i = 0; i < n; i++) {
        const Relation *r = &relation[i];
        bool forth = r->a == a && r->b == b, back = r->a == b && r->b == a;
        if (!forth && !back)
            continue;
        c.free |= r->kind == REL_SHARE || r->kind == REL_INSIDE;
        c.same |= r->kind == REL_SAME;
        if (r->kind == REL_BELOW && forth)
            c.below = less_of(c.below, r->bytes);
        if (r->kind == REL_BELOW && back)
            c.above = less_of(c.above, r->bytes);
    }
    c.free |= c.above <= 0 - c.below + 1;
    return c;
}

static uint32_t partner(const Relation *link, uint32_t buf) {
    return link->a == buf ? link->b : link->a;
}

/* The links between the two, side by side. */
static uint32_t find_links(const Clusters *bundles, uint32_t a, uint32_t b,
                           const Relation **first) {
    uint32_t at = bundles->link_start[a], end = bundles->link_start[a + 1];
    while (at < end && partner(&bundles->link[at], a) < b)
        at++;
    *first = &bundles->link[at];
    uint32_t n = 0;
    while (at + n < end && partner(&bundles->link[at + n], a) == b)
        n++;
    return n;
}

Clearance bundles_clearance(const Clusters *bundles, uint32_t a, uint32_t b,
                            uint32_t pool) {
    const Relation *first;
    uint32_t n = find_links(bundles, a, b, &first);
    return bufs_clearance(bundles->problem, a, b, pool, first, n);
}

bool bundles_apart(const Clusters *bundles, uint32_t a, uint32_t b) {
    const Relation *first;
    uint32_t n = find_links(bundles, a, b, &first);
    for (uint32_t i = 0; i < n; i++)
        if (first[i].kind == REL_APART)
            return true;
    return false;
}

Extent partitions_of(const Pool *pool, uint64_t at, uint64_t bytes) {
    uint64_t part = pool->partition;
    if (!part || part >= (uint64_t)MOST)
        return (Extent){0, MOST};
    uint64_t first = at - at % part, last = at + bytes - 1;
    return (Extent){(int64_t)first, (int64_t)(last - last % part + part)};
}

/* Whether offsets that differ by at[a] - at[b] will do. */
static bool clearance_kept(const Clearance *c, int64_t difference) {
    return c->free || (c->same && !difference) || difference <= 0 - c->below ||
           difference >= c->above;
}

static bool pieces_collide(const Clusters *bundles, uint32_t pool,
                           const Piece *a, int64_t at_a, const Piece *b,
                           int64_t at_b) {
    if (a->first >= b->end || b->first >= a->end)
        return false;
    Clearance c = bundles_clearance(bundles, a->buf, b->buf, pool);
    return !clearance_kept(&c, at_a + a->low - at_b - b->low);
}

/* The buffer and a member of the bundle share a partition, but must not. */
static bool partitions_meet(const Clusters *bundles, uint32_t pool, uint32_t b,
                            int64_t at, const Cluster *other,
                            int64_t at_other) {
    const PackProblem *p = bundles->problem;
    Extent mine =
        partitions_of(&p->pool[pool], (uint64_t)at, p->buf[b].bytes[pool]);
    for (uint32_t i = bundles->link_start[b]; i < bundles->link_start[b + 1];
         i++) {
        const Relation *r = &bundles->link[i];
        uint32_t o = partner(r, b);
        if (r->kind != REL_APART || bundles->of[o] == PACK_NO_BUFFER ||
            &bundles->bundle[bundles->of[o]] != other)
            continue;
        uint64_t from = (uint64_t)(at_other + bundles->low[o]);
        Extent its = partitions_of(&p->pool[pool], from, p->buf[o].bytes[pool]);
        if (mine.first < its.end && its.first < mine.end)
            return true;
    }
    return false;
}

bool bundles_collide(const Clusters *bundles, uint32_t pool, const Cluster *a,
                     int64_t at_a, const Cluster *b, int64_t at_b) {
    for (uint32_t i = 0; i < a->n_pieces; i++)
        for (uint32_t k = 0; k < b->n_pieces; k++)
            if (pieces_collide(bundles, pool,
                               &bundles->piece[a->first_piece + i], at_a,
                               &bundles->piece[b->first_piece + k], at_b))
                return true;
    for (uint32_t i = 0; i < a->n_members && a->linked; i++) {
        uint32_t m = bundles->member[a->first_member + i];
        if (partitions_meet(bundles, pool, m, at_a + bundles->low[m], b, at_b))
            return true;
    }
    return false;
}

typedef struct Key {
    uint32_t buf, other, index;
} Key;

static int by_buf_and_other(const void *a, const void *b) {
    const Key *x = a, *y = b;
    return order_by3(ORDER_UP(x->buf, y->buf), ORDER_UP(x->other, y->other),
                     ORDER_UP(x->index, y->index));
}

static void list_links(Arena *arena, Clusters *bundles) {
    const PackProblem *p = bundles->problem;
    Key *key = ARENA_ARRAY(arena, Key, 2 * (size_t)p->n_relations);
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_relations; i++) {
        const Relation *r = &p->relation[i];
        if (r->kind == REL_INSIDE || r->a == r->b)
            continue;
        key[n++] = (Key){r->a, r->b, i};
        key[n++] = (Key){r->b, r->a, i};
    }
    if (n)
        qsort(key, n, sizeof *key, by_buf_and_other);
    bundles->link = ARENA_ARRAY(arena, Relation, n);
    bundles->link_start = ARENA_ARRAY(arena, uint32_t, p->n_bufs + 1u);
    for (uint32_t i = 0; i < n; i++) {
        bundles->link[i] = p->relation[key[i].index];
        bundles->link_start[key[i].buf + 1] = i + 1;
    }
    for (uint32_t b = 0; b < p->n_bufs; b++)
        if (bundles->link_start[b + 1] < bundles->link_start[b])
            bundles->link_start[b + 1] = bundles->link_start[b];
}

/* ---- what lies inside what ---- */

typedef struct Parent {
    uint32_t buf; /* PLAN_NO_BUF: none */
    int64_t at;
} Parent;

static bool is_part_of(const Clusters *bundles, uint32_t part, uint32_t whole) {
    while (part != PACK_NO_BUFFER && part != whole)
        part = bundles->parent[part];
    return part == whole;
}

/* Pools in which members of the bundle are in each other's way: bits. */
static uint32_t pools_crowded(const Clusters *bundles, const Cluster *bundle) {
    uint32_t pools = 0;
    for (uint32_t i = 0; i < bundle->n_pieces; i++)
        for (uint32_t k = 0; k < i; k++) {
            const Piece *x = &bundles->piece[bundle->first_piece + i];
            const Piece *y = &bundles->piece[bundle->first_piece + k];
            if (is_part_of(bundles, x->buf, y->buf) ||
                is_part_of(bundles, y->buf, x->buf))
                continue;
            for (uint32_t p = 0; p < bundles->problem->n_pools; p++)
                if (pieces_collide(bundles, p, x, 0, y, 0))
                    pools |= 1u << p;
        }
    return pools;
}

static Parent *find_parents(Arena *arena, Clusters *bundles) {
    const PackProblem *p = bundles->problem;
    Parent *parent = ARENA_ARRAY(arena, Parent, p->n_bufs);
    for (uint32_t b = 0; b < p->n_bufs; b++)
        parent[b].buf = PACK_NO_BUFFER;
    for (uint32_t i = 0; i < p->n_relations; i++) {
        const Relation *r = &p->relation[i];
        assert(r->a < p->n_bufs && r->b < p->n_bufs);
        if (r->kind != REL_INSIDE)
            continue;
        bool other = parent[r->a].buf != PACK_NO_BUFFER &&
                     (parent[r->a].buf != r->b || parent[r->a].at != r->bytes);
        if (other || r->a == r->b || r->bytes < 0 || r->bytes > MOST)
            bundles->contradicted = r->a;
        else
            parent[r->a] = (Parent){r->b, r->bytes};
    }
    return parent;
}

/* The root of what `buf` is inside of, and where; buf itself in a circle. */
static uint32_t find_root(Clusters *bundles, const Parent *parent, uint32_t buf,
                          int64_t *low) {
    uint32_t root = buf;
    *low = 0;
    for (uint32_t n = 0; parent[root].buf != PACK_NO_BUFFER; n++) {
        if (n > bundles->problem->n_bufs || *low > MOST) {
            bundles->contradicted = buf;
            return buf;
        }
        *low += parent[root].at;
        root = parent[root].buf;
    }
    return root;
}

/* Pools in which the buffer is allowed and lies within its parent: bits. */
static uint32_t pools_of(const PackProblem *p, uint32_t buf,
                         const Parent *parent) {
    uint32_t pools = 0;
    for (uint32_t k = 0; k < p->n_pools; k++) {
        uint64_t bytes = p->buf[buf].bytes[k], room = (uint64_t)MOST;
        uint64_t at = parent->buf == PACK_NO_BUFFER ? 0 : (uint64_t)parent->at;
        if (parent->buf != PACK_NO_BUFFER)
            room = p->buf[parent->buf].bytes[k];
        if (bytes && bytes <= (uint64_t)MOST && at <= room &&
            bytes <= room - at)
            pools |= 1u << k;
    }
    return pools;
}

static void bundle_pin(Clusters *bundles, Cluster *bundle, uint32_t b) {
    const Buffer *buf = &bundles->problem->buf[b];
    if (buf->pin_pool < 0)
        return;
    int64_t at = buf->pin_offset > (uint64_t)MOST
                     ? -1
                     : (int64_t)buf->pin_offset - bundles->low[b];
    bool pinned = bundle->pin_pool >= 0;
    if (at < 0 ||
        (pinned && (bundle->pin != at || bundle->pin_pool != buf->pin_pool)))
        bundles->contradicted = b;
    bundle->pin_pool = buf->pin_pool;
    bundle->pin = at;
}

static void bundle_add(Clusters *bundles, const Parent *parent, uint32_t b) {
    Cluster *bundle = &bundles->bundle[bundles->of[b]];
    bundles->member[bundle->first_member + bundle->n_members++] = b;
    bundle->pools &= pools_of(bundles->problem, b, &parent[b]);
    bundle->linked |= bundles->link_start[b] < bundles->link_start[b + 1];
    if (!bundle->pools)
        bundles->contradicted = b;
    bundle_pin(bundles, bundle, b);
}

/* Room for the members of each bundle, in the order of the roots. */
static void bundles_open(Arena *arena, Clusters *bundles,
                         const uint32_t *root) {
    const PackProblem *p = bundles->problem;
    uint32_t *n = ARENA_ARRAY(arena, uint32_t, p->n_bufs), members = 0;
    for (uint32_t b = 0; b < p->n_bufs; b++)
        n[root[b]] += buf_bytes(p, b) > 0;
    for (uint32_t b = 0; b < p->n_bufs; b++) {
        if (!n[b])
            continue;
        bundles->of[b] = bundles->n;
        bundles->bundle[bundles->n++] = (Cluster){.root = b,
                                                  .first_member = members,
                                                  .pools = UINT32_MAX,
                                                  .pin_pool = -1};
        members += n[b];
    }
    for (uint32_t b = 0; b < p->n_bufs; b++)
        if (buf_bytes(p, b))
            bundles->of[b] = bundles->of[root[b]];
    for (uint32_t b = 0; b < p->n_bufs; b++) /* roots, too */
        if (!buf_bytes(p, b))
            bundles->of[b] = PACK_NO_BUFFER;
}

/* ---- pieces ---- */

static uint32_t count_spans(const PackProblem *p) {
    uint32_t n = 0;
    for (uint32_t b = 0; b < p->n_bufs; b++)
        n += 1 + p->buf[b].n_gaps;
    return n;
}

static void list_pieces(Arena *arena, Clusters *bundles) {
    const PackProblem *p = bundles->problem;
    bundles->piece = ARENA_ARRAY(arena, Piece, count_spans(p));
    for (uint32_t i = 0; i < bundles->n; i++) {
        Cluster *bundle = &bundles->bundle[i];
        bundle->first_piece = bundles->n_pieces;
        for (uint32_t k = 0; k < bundle->n_members; k++) {
            uint32_t b = bundles->member[bundle->first_member + k];
            uint32_t next = 0, at = p->buf[b].first;
            Steps span;
            while (next_span(&p->buf[b], &next, &at, &span))
                bundles->piece[bundles->n_pieces++] =
                    (Piece){b, i, span.first, span.end, bundles->low[b]};
        }
        bundle->n_pieces = bundles->n_pieces - bundle->first_piece;
    }
}

Clusters *bundles_new(Arena *arena, const PackProblem *problem) {
    uint32_t n = problem->n_bufs;
    Clusters *bundles = ARENA_NEW(arena, Clusters);
    *bundles = (Clusters){.problem = problem,
                          .bundle = ARENA_ARRAY(arena, Cluster, n),
                          .member = ARENA_ARRAY(arena, uint32_t, n),
                          .of = ARENA_ARRAY(arena, uint32_t, n),
                          .low = ARENA_ARRAY(arena, int64_t, n),
                          .parent = ARENA_ARRAY(arena, uint32_t, n),
                          .contradicted = PACK_NO_BUFFER};
    list_links(arena, bundles);
    const Parent *parent = find_parents(arena, bundles);
    uint32_t *root = ARENA_ARRAY(arena, uint32_t, n);
    for (uint32_t b = 0; b < n; b++)
        bundles->parent[b] = parent[b].buf;
    for (uint32_t b = 0; b < n; b++)
        root[b] = find_root(bundles, parent, b, &bundles->low[b]);
    bundles_open(arena, bundles, root);
    for (uint32_t b = 0; b < n; b++)
        if (bundles->of[b] != PACK_NO_BUFFER)
            bundle_add(bundles, parent, b);
    list_pieces(arena, bundles);
    for (uint32_t i = 0; i < bundles->n; i++) {
        Cluster *bundle = &bundles->bundle[i];
        if (bundles->contradicted == PACK_NO_BUFFER)
            bundle->pools &= ~pools_crowded(bundles, bundle);
        if (!bundle->pools)
            bundles->contradicted = bundle->root;
    }
    return bundles;
}

/* ---- one bundle ---- */

int64_t bundle_bytes(const Clusters *bundles, const Cluster *bundle,
                     uint32_t pool) {
    return (int64_t)bundles->problem->buf[bundle->root].bytes[pool];
}

/* At least `at`, and such that at + low is a multiple; -1 if too large. */
static int64_t multiple_up(int64_t at, int64_t low, uint64_t align) {
    uint64_t over = ((uint64_t)at + (uint64_t)low) % align;
    uint64_t pad = over ? align - over : 0;
    return pad > (uint64_t)MOST ? -1 : at + (int64_t)pad;
}

static int64_t multiple_down(int64_t at, int64_t low, uint64_t align) {
    uint64_t over = ((uint64_t)at + (uint64_t)low) % align;
    return over > (uint64_t)at ? -1 : at - (int64_t)over;
}

/* Two members in different partitions, the first below the second: some
 * boundary is not below the end of one and not above the start of the other. */
typedef struct Boundary {
    int64_t from, to; /* in the bundle */
    uint64_t partition;
} Boundary;

static int64_t boundary_up(const Boundary *b, int64_t at) {
    int64_t boundary = multiple_up(at + b->from, 0, b->partition);
    if (boundary < 0 || b->from > b->to)
        return -1;
    return boundary - b->to > at ? boundary - b->to : at;
}

static int64_t boundary_down(const Boundary *b, int64_t at) {
    int64_t boundary = multiple_down(at + b->to, 0, b->partition);
    if (boundary < b->from || b->from > b->to)
        return -1;
    return boundary - b->from < at ? boundary - b->from : at;
}

/* Moves `at` for what one member asks, its alignment and its partners within
 * the bundle. */
static int64_t member_move(const Clusters *bundles, uint32_t b, uint32_t pool,
                           bool up, int64_t at) {
    const PackProblem *p = bundles->problem;
    uint64_t align = p->buf[b].align > 1 ? p->buf[b].align : 1;
    int64_t low = bundles->low[b];
    if (bundles->parent[b] == PACK_NO_BUFFER)
        align = buf_align(&p->pool[pool], &p->buf[b]);
    at = up ? multiple_up(at, low, align) : multiple_down(at, low, align);
    for (uint32_t i = bundles->link_start[b];
         i < bundles->link_start[b + 1] && at >= 0; i++) {
        const Relation *r = &bundles->link[i];
        uint32_t other = partner(r, b);
        if (r->kind != REL_APART || bundles->of[other] != bundles->of[b] ||
            low > bundles->low[other])
            continue;
        uint64_t part = p->pool[pool].partition;
        Boundary between = {low + (int64_t)p->buf[b].bytes[pool],
                            bundles->low[other], part};
        if (!part)
            return -1;
        at = up ? boundary_up(&between, at) : boundary_down(&between, at);
    }
    return at;
}

/* Until no member moves it; each time it has gone no further than it must. */
static int64_t bundle_move(const Clusters *bundles, const Cluster *bundle,
                           uint32_t pool, bool up, int64_t at) {
    enum { TURNS = 10000 };
    for (uint32_t turn = 0; turn < TURNS && at >= 0 && at <= MOST; turn++) {
        int64_t was = at;
        for (uint32_t k = 0; k < bundle->n_members && at >= 0; k++)
            at = member_move(bundles, bundles->member[bundle->first_member + k],
                             pool, up, at);
        if (at == was)
            return at;
    }
    return -1;
}

int64_t bundle_up(const Clusters *bundles, const Cluster *bundle, uint32_t pool,
                  int64_t at) {
    return bundle_move(bundles, bundle, pool, true, at);
}

int64_t bundle_down(const Clusters *bundles, const Cluster *bundle,
                    uint32_t pool, int64_t at) {
    return bundle_move(bundles, bundle, pool, false, at);
}

bool bundle_hint(const Clusters *bundles, const Cluster *bundle, uint64_t *at) {
    for (uint32_t k = 0; k < bundle->n_members; k++) {
        uint32_t b = bundles->member[bundle->first_member + k];
        uint64_t hint = bundles->problem->buf[b].hint;
        uint64_t low = (uint64_t)bundles->low[b];
        if (hint != PACK_NO_HINT && hint >= low) {
            *at = hint - low;
            return true;
        }
    }
    return false;
}
