/* disjunctive.c - edges between bundles, and what follows from decisions about
 * them.
 *
 * Input: bundles, decisions. Output: for each bundle bounds of its offset, for
 * each edge the ways that are left, on a trail that can be undone.
 * Invariant: what is removed is in no placement within the limit.
 */
#include "pack/exact/disjunctive.h"

#include "pack/free_list.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BUNDLES = 3000, MAX_EDGES = 1 << 20 };

/* ---- edges ---- */

static Edge edge_between(const Disjunctive *pile, uint32_t a, uint32_t b,
                         uint32_t pool, bool apart) {
    const Clusters *x = pile->bundles;
    const uint64_t part = pile->problem->pool[pool].partition;
    Clearance c = bundles_clearance(x, a, b, pool);
    if (apart) {
        c.below = (int64_t)pile->problem->buf[a].bytes[pool];
        c.above = (int64_t)pile->problem->buf[b].bytes[pool];
    }
    Edge e = {.a = x->of[a], .b = x->of[b], .pool = pool};
    e.below = x->low[a] + c.below - x->low[b];
    e.above = x->low[b] + c.above - x->low[a];
    e.same = x->low[a] - x->low[b];
    e.ways = WAY_BELOW | WAY_ABOVE | (c.same && !apart ? WAY_SAME : 0);
    if (apart) {
        e.ways = part ? e.ways : 0;
        e.partition =
            !part || part > INT64_MAX / 4 ? INT64_MAX / 4 : (int64_t)part;
        e.low_a = x->low[a];
        e.low_b = x->low[b];
    }
    return e;
}

static bool edges_add(Disjunctive *pile, uint32_t a, uint32_t b) {
    const Clusters *x = pile->bundles;
    bool apart = bundles_apart(x, a, b);
    if (!apart &&
        !bufs_conflict(&pile->problem->buf[a], &pile->problem->buf[b]))
        return true;
    uint32_t pools = x->bundle[x->of[a]].pools & x->bundle[x->of[b]].pools;
    for (uint32_t p = 0; p < pile->problem->n_pools; p++) {
        Clearance c = bundles_clearance(x, a, b, p);
        if (pools >> p & 1 && (apart || !c.free))
            vec_push(pile->arena, &pile->edge,
                     edge_between(pile, a, b, p, apart));
    }
    return pile->edge.n < MAX_EDGES;
}

static bool edges_between(Disjunctive *pile, const Cluster *x,
                          const Cluster *y) {
    const uint32_t *member = pile->bundles->member;
    bool room = true;
    for (uint32_t i = 0; i < x->n_members && room; i++)
        for (uint32_t k = 0; k < y->n_members && room; k++)
            room = edges_add(pile, member[x->first_member + i],
                             member[y->first_member + k]);
    return room;
}

static void list_incident(Disjunctive *pile) {
    pile->start = ARENA_ARRAY(pile->arena, uint32_t, pile->n + 2u);
    pile->incident =
        ARENA_ARRAY(pile->arena, uint32_t, 2 * (size_t)pile->edge.n);
    for (uint32_t e = 0; e < pile->edge.n; e++) {
        pile->start[pile->edge.at[e].a + 2]++;
        pile->start[pile->edge.at[e].b + 2]++;
    }
    for (uint32_t i = 0; i < pile->n; i++)
        pile->start[i + 2] += pile->start[i + 1];
    for (uint32_t e = 0; e < pile->edge.n; e++) {
        pile->incident[pile->start[pile->edge.at[e].a + 1]++] = e;
        pile->incident[pile->start[pile->edge.at[e].b + 1]++] = e;
    }
}

static void list_wanted(Disjunctive *pile) {
    const PackProblem *p = pile->problem;
    pile->wanted = ARENA_ARRAY(pile->arena, Wanted, p->n_bufs);
    for (uint32_t b = 0; b < p->n_bufs; b++) {
        uint64_t hint = p->buf[b].hint;
        if (hint > INT64_MAX / 4 || pile->bundles->of[b] == PACK_NO_BUFFER ||
            (int64_t)hint < pile->bundles->low[b])
            continue;
        pile->wanted[pile->n_wanted++] = (Wanted){
            pile->bundles->of[b], (int64_t)hint - pile->bundles->low[b]};
    }
    pile->given_up = ARENA_ARRAY(pile->arena, int64_t, pile->n_wanted);
}

/* Two alike can change places: the first lies below. */
static bool are_alike(const Disjunctive *pile, const Cluster *x,
                      const Cluster *y) {
    const Buffer *a = &pile->problem->buf[x->root];
    const Buffer *b = &pile->problem->buf[y->root];
    return x->n_members == 1 && y->n_members == 1 && !x->linked && !y->linked &&
           x->pin_pool < 0 && y->pin_pool < 0 && a->first == b->first &&
           a->end == b->end && a->align == b->align && !a->n_gaps &&
           !b->n_gaps && a->hint == PACK_NO_HINT && b->hint == PACK_NO_HINT &&
           x->pools == y->pools &&
           !memcmp(a->bytes, b->bytes,
                   pile->problem->n_pools * sizeof *a->bytes);
}

static void ways_make(Disjunctive *pile) {
    for (uint32_t e = 0; e < pile->edge.n; e++) {
        Edge *edge = &pile->edge.at[e];
        if (are_alike(pile, &pile->bundles->bundle[edge->a],
                      &pile->bundles->bundle[edge->b]))
            edge->ways = WAY_BELOW;
        pile->ways[e] = edge->ways;
    }
}

static bool costs_nothing(const PackProblem *p) {
    for (uint32_t k = 0; k < p->n_pools; k++)
        if (p->pool[k].cost)
            return false;
    return true;
}

/* Where no member asks for more than its root does. */
static int64_t simple_grid(const Clusters *bundles, const Cluster *bundle,
                           uint32_t pool) {
    const PackProblem *p = bundles->problem;
    uint64_t grid = buf_align(&p->pool[pool], &p->buf[bundle->root]);
    bool simple = grid < INT64_MAX / 4;
    for (uint32_t k = 0; k < bundle->n_members && simple; k++) {
        uint32_t b = bundles->member[bundle->first_member + k];
        simple = b == bundle->root || p->buf[b].align <= 1;
        for (uint32_t i = bundles->link_start[b];
             i < bundles->link_start[b + 1] && simple; i++)
            simple = bundles->link[i].kind != REL_APART;
    }
    return simple ? (int64_t)grid : 0;
}

static void list_bytes(Disjunctive *pile) {
    const PackProblem *p = pile->problem;
    size_t n = (size_t)pile->n * p->n_pools;
    bool costs = !costs_nothing(p);
    pile->bytes = ARENA_ARRAY(pile->arena, int64_t, n);
    pile->grid = ARENA_ARRAY(pile->arena, int64_t, n);
    pile->costs = costs ? ARENA_ARRAY(pile->arena, uint64_t, n) : NULL;
    for (uint32_t i = 0; i < pile->n; i++)
        for (uint32_t k = 0; k < p->n_pools; k++) {
            const Cluster *bundle = &pile->bundles->bundle[i];
            size_t at = (size_t)i * p->n_pools + k;
            pile->bytes[at] = bundle_bytes(pile->bundles, bundle, k);
            pile->grid[at] = simple_grid(pile->bundles, bundle, k);
            if (costs)
                pile->costs[at] = place_cost(p, bundle->root, k);
        }
}

Disjunctive *pile_new(Arena *arena, const Clusters *bundles) {
    if (bundles->n > MAX_BUNDLES)
        return NULL;
    Disjunctive *pile = ARENA_NEW(arena, Disjunctive);
    uint32_t n = bundles->n;
    *pile = (Disjunctive){.arena = arena,
                          .problem = bundles->problem,
                          .bundles = bundles,
                          .n = n,
                          .low = ARENA_ARRAY(arena, int64_t, n),
                          .high = ARENA_ARRAY(arena, int64_t, n),
                          .pools = ARENA_ARRAY(arena, int64_t, n),
                          .queue = ARENA_ARRAY(arena, uint32_t, n),
                          .queued = ARENA_ARRAY(arena, bool, n),
                          .weight = ARENA_ARRAY(arena, double, n)};
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < i; k++)
            if (!edges_between(pile, &bundles->bundle[k], &bundles->bundle[i]))
                return NULL;
    for (uint32_t i = 0; i < n; i++)
        pile->weight[i] = 1;
    pile->ways = ARENA_ARRAY(arena, int64_t, pile->edge.n);
    list_bytes(pile);
    list_incident(pile);
    list_wanted(pile);
    ways_make(pile);
    sections_make(pile);
    return pile;
}

/* ---- what is left ---- */

void pile_set(Disjunctive *pile, int64_t *at, int64_t value) {
    vec_push(pile->arena, &pile->trail, ((DisjunctiveChange){at, *at}));
    *at = value;
}

void pile_undo(Disjunctive *pile, uint32_t trail) {
    while (pile->trail.n > trail) {
        DisjunctiveChange change = pile->trail.at[--pile->trail.n];
        *change.at = change.was;
    }
    while (pile->n_queue)
        pile->queued[pile->queue[--pile->n_queue]] = false;
    while (pile->n_dirty)
        pile->is_dirty[pile->dirty[--pile->n_dirty]] = false;
    pile->failed = false;
}

int32_t pile_pool(const Disjunctive *pile, uint32_t bundle) {
    int64_t pools = pile->pools[bundle];
    if (!pools || pools & (pools - 1))
        return -1;
    int32_t pool = 0;
    while (!(pools >> pool & 1))
        pool++;
    return pool;
}

static void pile_blame(Disjunctive *pile, uint32_t bundle) {
    pile->failed = true;
    pile->weight[bundle] += 1;
}

static void enqueue(Disjunctive *pile, uint32_t bundle) {
    if (!pile->queued[bundle]) {
        pile->queued[bundle] = true;
        pile->queue[pile->n_queue++] = bundle;
    }
    for (uint32_t i = pile->section_start[bundle];
         i < pile->section_start[bundle + 1]; i++) {
        uint32_t s = pile->in_section[i];
        if (!pile->is_dirty[s]) {
            pile->is_dirty[s] = true;
            pile->dirty[pile->n_dirty++] = s;
        }
    }
}

/* The nearest offset that the bundle can have. */
static int64_t nearest(const Disjunctive *pile, uint32_t i, uint32_t pool,
                       bool up, int64_t at) {
    int64_t grid = pile->grid[(size_t)i * pile->problem->n_pools + pool];
    if (grid) {
        int64_t over = at % grid;
        return at - over + (up && over ? grid : 0);
    }
    const Cluster *bundle = &pile->bundles->bundle[i];
    return up ? bundle_up(pile->bundles, bundle, pool, at)
              : bundle_down(pile->bundles, bundle, pool, at);
}

void pile_raise(Disjunctive *pile, uint32_t bundle, int64_t low) {
    if (low <= pile->low[bundle] || pile->failed)
        return;
    low = nearest(pile, bundle, (uint32_t)pile_pool(pile, bundle), true, low);
    if (low < 0 || low > pile->high[bundle]) {
        pile_blame(pile, bundle);
        return;
    }
    pile_set(pile, &pile->low[bundle], low);
    enqueue(pile, bundle);
}

void pile_lower(Disjunctive *pile, uint32_t bundle, int64_t high) {
    if (high >= pile->high[bundle] || pile->failed)
        return;
    if (high >= 0)
        high = nearest(pile, bundle, (uint32_t)pile_pool(pile, bundle), false,
                       high);
    if (high < pile->low[bundle]) {
        pile_blame(pile, bundle);
        return;
    }
    pile_set(pile, &pile->high[bundle], high);
    enqueue(pile, bundle);
}

/* ---- ways ---- */

static int64_t round_to(int64_t at, int64_t partition, bool up) {
    int64_t over = at % partition;
    return at - over + (up && over ? partition : 0);
}

/* The least offset of the upper bundle, given that of the lower one. */
static int64_t least_upper(const Edge *e, int64_t way, int64_t at) {
    if (way == WAY_SAME)
        return at + e->same;
    bool below = way == WAY_BELOW;
    if (!e->partition)
        return at + (below ? e->below : e->above);
    int64_t from = below ? e->low_a : e->low_b;
    int64_t to = below ? e->low_b : e->low_a;
    int64_t bytes = (below ? e->below : e->above) - from + to;
    return round_to(at + from + bytes, e->partition, true) - to;
}

/* The greatest offset of the lower bundle, given that of the upper one. */
static int64_t most_lower(const Edge *e, int64_t way, int64_t at) {
    if (way == WAY_SAME)
        return at - e->same;
    bool below = way == WAY_BELOW;
    if (!e->partition)
        return at - (below ? e->below : e->above);
    int64_t from = below ? e->low_a : e->low_b;
    int64_t to = below ? e->low_b : e->low_a;
    int64_t bytes = (below ? e->below : e->above) - from + to;
    return round_to(at + to, e->partition, false) - bytes - from;
}

int64_t pile_slack(const Disjunctive *pile, const Edge *e, int64_t way) {
    uint32_t lower = way == WAY_ABOVE ? e->b : e->a;
    uint32_t upper = way == WAY_ABOVE ? e->a : e->b;
    int64_t least = least_upper(e, way, pile->low[lower]);
    int64_t slack = pile->high[upper] - least;
    if (way == WAY_SAME) {
        int64_t back = least_upper(e, way, pile->high[lower]);
        slack =
            slack < back - pile->low[upper] ? slack : back - pile->low[upper];
    }
    return slack;
}

int64_t pile_push(const Disjunctive *pile, const Edge *e, int64_t way) {
    uint32_t lower = way == WAY_ABOVE ? e->b : e->a;
    uint32_t upper = way == WAY_ABOVE ? e->a : e->b;
    int64_t push = least_upper(e, way, pile->low[lower]) - pile->low[upper];
    return way == WAY_SAME && push < 0 ? -push : push;
}

static void force_way(Disjunctive *pile, const Edge *e, int64_t way) {
    uint32_t lower = way == WAY_ABOVE ? e->b : e->a;
    uint32_t upper = way == WAY_ABOVE ? e->a : e->b;
    pile_raise(pile, upper, least_upper(e, way, pile->low[lower]));
    pile_lower(pile, lower, most_lower(e, way, pile->high[upper]));
    if (way != WAY_SAME)
        return;
    pile_raise(pile, lower, most_lower(e, way, pile->low[upper]));
    pile_lower(pile, upper, least_upper(e, way, pile->high[lower]));
}

static void edge_follow(Disjunctive *pile, uint32_t index) {
    const Edge *e = &pile->edge.at[index];
    int64_t in = INT64_C(1) << e->pool, ways = pile->ways[index];
    pile->work++;
    if (pile->pools[e->a] != in || pile->pools[e->b] != in)
        return;
    for (int64_t way = WAY_BELOW; way <= WAY_SAME; way *= 2)
        if (ways & way && pile_slack(pile, e, way) < 0)
            ways &= ~way;
    if (!ways) {
        pile_blame(pile, e->a);
        pile->weight[e->b] += 1;
        return;
    }
    if (ways != pile->ways[index])
        pile_set(pile, &pile->ways[index], ways);
    if (!(ways & (ways - 1)))
        force_way(pile, e, ways);
}

/* ---- decisions ---- */

static int64_t end_of(const Disjunctive *pile, uint32_t pool) {
    uint64_t size = pile->problem->pool[pool].size;
    size = size < pile->limit.height ? size : pile->limit.height;
    return size < INT64_MAX / 4 ? (int64_t)size : INT64_MAX / 4;
}

/* The pool of the bundle is known now. */
static void enter_pool(Disjunctive *pile, uint32_t i) {
    const Cluster *bundle = &pile->bundles->bundle[i];
    uint32_t pool = (uint32_t)pile_pool(pile, i);
    int64_t low = nearest(pile, i, pool, true, 0);
    int64_t high = end_of(pile, pool) - pile_bytes(pile, i, pool);
    if (bundle->pin_pool >= 0)
        low = bundle->pin, high = high < low ? -1 : low;
    else if (high >= 0)
        high = nearest(pile, i, pool, false, high);
    pile_set(pile, &pile->low[i], low);
    pile_set(pile, &pile->high[i], high);
    if (low < 0 || high < low)
        pile_blame(pile, i);
    else
        enqueue(pile, i);
}

void pile_assign(Disjunctive *pile, uint32_t bundle, int64_t pools) {
    if (pile->pools[bundle] == pools)
        return;
    pile_set(pile, &pile->pools[bundle], pools);
    if (!pools)
        pile_blame(pile, bundle);
    else if (pile_pool(pile, bundle) >= 0)
        enter_pool(pile, bundle);
}

void pile_order(Disjunctive *pile, uint32_t edge, int64_t ways) {
    pile_set(pile, &pile->ways[edge], ways);
    edge_follow(pile, edge);
}

void pile_keep_hint(Disjunctive *pile, uint32_t index) {
    const Wanted *w = &pile->wanted[index];
    if (pile_pool(pile, w->bundle) < 0)
        return;
    if (pile->low[w->bundle] > w->at || pile->high[w->bundle] < w->at) {
        pile_blame(pile, w->bundle);
        return;
    }
    pile_raise(pile, w->bundle, w->at);
    pile_lower(pile, w->bundle, w->at);
}

/* ---- what concerns all ---- */

static uint64_t cost_in(const Disjunctive *pile, uint32_t bundle,
                        uint32_t pool) {
    return pile->costs[(size_t)bundle * pile->problem->n_pools + pool];
}

static uint64_t least_cost(const Disjunctive *pile, uint32_t bundle) {
    uint64_t least = UINT64_MAX;
    for (uint32_t p = 0; p < pile->problem->n_pools; p++)
        if (pile->pools[bundle] >> p & 1 && cost_in(pile, bundle, p) < least)
            least = cost_in(pile, bundle, p);
    return least;
}

static void costs_follow(Disjunctive *pile) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < pile->n; i++) {
        uint64_t least = least_cost(pile, i);
        sum = sum > UINT64_MAX - least ? UINT64_MAX : sum + least;
    }
    pile->failed |= sum > pile->limit.cost;
    for (uint32_t i = 0; i < pile->n && !pile->failed; i++) {
        uint64_t rest = pile->limit.cost - (sum - least_cost(pile, i));
        int64_t pools = pile->pools[i];
        for (uint32_t p = 0; p < pile->problem->n_pools; p++)
            if (pools >> p & 1 && cost_in(pile, i, p) > rest)
                pools &= ~(INT64_C(1) << p);
        pile_assign(pile, i, pools);
    }
}

/* Heights add up; what others have for sure, a pool cannot have. */
static void heights_follow(Disjunctive *pile) {
    int64_t top[PACK_MAX_POOLS] = {0}, sum = 0;
    int64_t most = INT64_MAX / 4;
    if (pile->limit.height < (uint64_t)most)
        most = (int64_t)pile->limit.height;
    for (uint32_t i = 0; i < pile->n; i++) {
        int32_t p = pile_pool(pile, i);
        if (p < 0)
            continue;
        int64_t end = pile->low[i] + pile_bytes(pile, i, (uint32_t)p);
        top[p] = end > top[p] ? end : top[p];
    }
    for (uint32_t p = 0; p < pile->problem->n_pools; p++)
        sum += top[p];
    pile->failed |= sum > most;
    for (uint32_t i = 0; i < pile->n && !pile->failed; i++) {
        int32_t p = pile_pool(pile, i);
        if (p >= 0)
            pile_lower(pile, i,
                       most - sum + top[p] - pile_bytes(pile, i, (uint32_t)p));
    }
}

static bool hint_lost(const Disjunctive *pile, uint32_t index) {
    const Wanted *w = &pile->wanted[index];
    return pile->given_up[index] ||
           (pile_pool(pile, w->bundle) >= 0 &&
            (pile->low[w->bundle] > w->at || pile->high[w->bundle] < w->at));
}

static void hints_follow(Disjunctive *pile) {
    uint32_t lost = 0;
    for (uint32_t i = 0; i < pile->n_wanted; i++)
        lost += hint_lost(pile, i);
    uint32_t allowed = pile->n_wanted - pile->limit.hints;
    pile->failed |= lost > allowed;
    for (uint32_t i = 0; i < pile->n_wanted && lost == allowed; i++)
        if (!pile->failed && !hint_lost(pile, i))
            pile_keep_hint(pile, i);
}

static void follow_all(Disjunctive *pile) {
    pile->work += pile->n;
    if (pile->costs)
        costs_follow(pile);
    if (pile->problem->n_pools > 1 && !pile->failed)
        heights_follow(pile);
    if (pile->limit.hints && !pile->failed)
        hints_follow(pile);
}

static void bundle_follow(Disjunctive *pile, uint32_t bundle) {
    for (uint32_t i = pile->start[bundle];
         i < pile->start[bundle + 1] && !pile->failed; i++)
        edge_follow(pile, pile->incident[i]);
}

bool pile_follow(Disjunctive *pile) {
    bool again = true;
    while (again && !pile->failed) {
        if (pile->n_queue) {
            uint32_t bundle = pile->queue[--pile->n_queue];
            pile->queued[bundle] = false;
            bundle_follow(pile, bundle);
        } else if (pile->n_dirty) {
            uint32_t section = pile->dirty[--pile->n_dirty];
            pile->is_dirty[section] = false;
            section_follow(pile, section);
        } else {
            follow_all(pile);
            again = pile->n_queue || pile->n_dirty;
        }
    }
    return !pile->failed;
}

bool pile_start(Disjunctive *pile, Limit limit) {
    pile_undo(pile, 0);
    pile->limit = limit;
    if (limit.hints > pile->n_wanted)
        return false;
    for (uint32_t i = 0; i < pile->n && !pile->failed; i++) {
        const Cluster *bundle = &pile->bundles->bundle[i];
        int64_t pools = bundle->pools;
        pools &= (INT64_C(1) << pile->problem->n_pools) - 1;
        if (bundle->pin_pool >= 0)
            pools &= INT64_C(1) << bundle->pin_pool;
        pile->pools[i] = 0;
        pile_assign(pile, i, pools);
    }
    return pile_follow(pile);
}
