/* conflicts.c - pairs that conflict -> lives with gaps; see conflicts.h.
 *
 * Method: buffers are taken in one after the other. Each is in cliques with
 * some taken in before it, until all its pairs with these are in one; a clique
 * grows as long as anything taken in before conflicts with all of it, first by
 * what has no clique with the newcomer yet, then by what is largest. Where the
 * graph is that of lives on one line, and the order that of births, the first
 * clique of each newcomer is all that is alive: the lives come out as they
 * were.
 *
 * Two orders are tried: of births, then rows; and by how many neighbours have
 * been taken in (maximum cardinality search, which finds the cliques of chordal
 * graphs whatever the order of rows). The one with fewer gaps is taken.
 */
#include "pack/conflicts.h"

#include "base/order.h"
#include "base/vec.h"

#include <stdlib.h>
#include <string.h>

#define NOBODY UINT32_MAX

/* ---- vector clocks ---- */

static bool is_over(const Clocks *c, uint32_t a, uint32_t b) {
    const int64_t *dies = c->at + (2 * (size_t)a + 1) * c->n_streams;
    const int64_t *born = c->at + 2 * (size_t)b * c->n_streams;
    for (uint32_t s = 0; s < c->n_streams; s++)
        if (dies[s] > born[s])
            return false;
    return true;
}

/* False: they are too many. */
static bool list_pairs(Arena *arena, Pairs listed, const Clocks *clocks,
                       uint32_t n, Pairs *out) {
    VEC(Pair) found = {0};
    for (uint32_t b = 0; b < n && clocks; b++)
        for (uint32_t a = 0; a < b && !is_over(clocks, b, b); a++) {
            if (is_over(clocks, a, b) || is_over(clocks, b, a) ||
                is_over(clocks, a, a))
                continue;
            if (found.n == PAIRS_MOST)
                return false;
            vec_push(arena, &found, ((Pair){a, b}));
        }
    for (size_t i = 0; i < listed.n && clocks; i++)
        vec_push(arena, &found, listed.at[i]);
    *out = clocks ? (Pairs){found.at, found.n} : listed;
    return true;
}

/* ---- the graph ---- */

typedef struct Graph {
    uint32_t n;
    size_t *start;   /* by buffer: of its neighbours; n + 1 */
    uint32_t *other; /* rising */
    const Buffer *buf;
} Graph;

static int rising(const void *a, const void *b) {
    const uint32_t *x = a, *y = b;
    return ORDER_UP(*x, *y);
}

/* Each pair once, whatever the list says. */
static Graph new_graph(Arena *arena, const Pairs *pairs, const Buffer *buf,
                       uint32_t n) {
    Graph g = {.n = n, .buf = buf};
    g.start = ARENA_ARRAY(arena, size_t, (size_t)n + 2);
    g.other = ARENA_ARRAY(arena, uint32_t, 2 * pairs->n);
    for (size_t i = 0; i < pairs->n; i++) {
        g.start[pairs->at[i].a + 2]++;
        g.start[pairs->at[i].b + 2]++;
    }
    for (uint32_t b = 0; b < n; b++)
        g.start[b + 2] += g.start[b + 1];
    for (size_t i = 0; i < pairs->n; i++) {
        g.other[g.start[pairs->at[i].a + 1]++] = pairs->at[i].b;
        g.other[g.start[pairs->at[i].b + 1]++] = pairs->at[i].a;
    }
    size_t to = 0;
    for (uint32_t b = 0; b < n; b++) {
        size_t first = g.start[b], end = g.start[b + 1];
        if (end > first)
            qsort(g.other + first, end - first, sizeof *g.other, rising);
        g.start[b] = to;
        for (size_t k = first; k < end; k++)
            if (k == first || g.other[k] != g.other[k - 1])
                g.other[to++] = g.other[k];
    }
    g.start[n] = to;
    return g;
}

/* ---- the order ---- */

typedef struct Birth {
    double when;
    uint32_t who;
} Birth;

static int by_birth(const void *a, const void *b) {
    const Birth *x = a, *y = b;
    return order_by(ORDER_UP(x->when, y->when), ORDER_UP(x->who, y->who));
}

/* On streams the sum of a clock grows with it. */
static double birth_of(const Graph *g, const Clocks *clocks, uint32_t b) {
    double sum = g->buf[b].first;
    for (uint32_t s = 0; clocks && s < clocks->n_streams; s++)
        sum += (double)clocks->at[2 * (size_t)b * clocks->n_streams + s];
    return sum;
}

static uint32_t *order_births(Arena *arena, const Graph *g,
                              const Clocks *clocks) {
    Birth *birth = ARENA_ARRAY(arena, Birth, g->n);
    uint32_t *order = ARENA_ARRAY(arena, uint32_t, g->n);
    for (uint32_t b = 0; b < g->n; b++)
        birth[b] = (Birth){birth_of(g, clocks, b), b};
    if (g->n)
        qsort(birth, g->n, sizeof *birth, by_birth);
    for (uint32_t i = 0; i < g->n; i++)
        order[i] = birth[i].who;
    return order;
}

/* Buffers in lists by how many of their neighbours were taken. */
typedef struct Lists {
    uint32_t *head, *next, *before, *count;
} Lists;

static void enlist(Lists *l, uint32_t b) {
    uint32_t *head = &l->head[l->count[b]];
    l->next[b] = *head;
    l->before[b] = NOBODY;
    if (*head != NOBODY)
        l->before[*head] = b;
    *head = b;
}

static void delist(Lists *l, uint32_t b) {
    if (l->next[b] != NOBODY)
        l->before[l->next[b]] = l->before[b];
    if (l->before[b] != NOBODY)
        l->next[l->before[b]] = l->next[b];
    else
        l->head[l->count[b]] = l->next[b];
}

static uint32_t *order_cardinality(Arena *arena, const Graph *g) {
    Lists l = {ARENA_ARRAY(arena, uint32_t, g->n + 1u),
               ARENA_ARRAY(arena, uint32_t, g->n),
               ARENA_ARRAY(arena, uint32_t, g->n),
               ARENA_ARRAY(arena, uint32_t, g->n)};
    uint32_t *order = ARENA_ARRAY(arena, uint32_t, g->n);
    bool *taken = ARENA_ARRAY(arena, bool, g->n);
    memset(l.head, 0xff, (g->n + 1u) * sizeof *l.head);
    for (uint32_t b = g->n; b-- > 0;)
        enlist(&l, b);
    for (uint32_t i = 0, most = 0; i < g->n; i++, most++) {
        while (l.head[most] == NOBODY)
            most--;
        uint32_t b = order[i] = l.head[most];
        delist(&l, b);
        taken[b] = true;
        for (size_t k = g->start[b]; k < g->start[b + 1]; k++) {
            uint32_t other = g->other[k];
            if (taken[other])
                continue;
            delist(&l, other);
            l.count[other]++;
            enlist(&l, other);
        }
    }
    return order;
}

/* ---- cliques ---- */

typedef struct Span {
    uint32_t first, end; /* cliques */
    uint32_t before;     /* of the buffer; NOBODY */
} Span;

typedef struct Cover {
    Arena *arena;
    const Graph *graph;
    uint32_t n_cliques;
    VEC(Span) span;
    uint32_t *last;  /* by buffer: its newest span; NOBODY */
    uint32_t *place; /* by buffer: in the order */
    uint32_t *met;   /* by buffer: 1 + the newest that it has a clique with */
    uint32_t *able, *clique;
    uint32_t n_able, n_clique;
} Cover;

/* Is all of `able` in the newest clique? Then it is one. */
static bool is_clique(const Cover *c) {
    for (uint32_t i = 0; i < c->n_able; i++) {
        uint32_t last = c->last[c->able[i]];
        if (last == NOBODY || c->span.at[last].end != c->n_cliques)
            return false;
    }
    return true;
}

/* What of `able` conflicts with `b`, too. */
static void keep_neighbours(Cover *c, uint32_t b) {
    const Graph *g = c->graph;
    size_t k = g->start[b], end = g->start[b + 1];
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c->n_able; i++) {
        while (k < end && g->other[k] < c->able[i])
            k++;
        if (k < end && g->other[k] == c->able[i])
            c->able[kept++] = c->able[i];
    }
    c->n_able = kept;
}

static bool is_larger(const Graph *g, uint32_t a, uint32_t b) {
    uint64_t x = g->buf[a].bytes[0], y = g->buf[b].bytes[0];
    return x != y ? x > y : a < b;
}

/* NOBODY, if `able` is empty. */
static uint32_t choose(const Cover *c, uint32_t newcomer) {
    uint32_t best = NOBODY;
    bool best_met = true;
    for (uint32_t i = 0; i < c->n_able; i++) {
        bool met = c->met[c->able[i]] == newcomer + 1;
        if (best == NOBODY || met < best_met ||
            (met == best_met && is_larger(c->graph, c->able[i], best))) {
            best = c->able[i];
            best_met = met;
        }
    }
    return best;
}

static void add_clique(Cover *c) {
    for (uint32_t i = 0; i < c->n_clique; i++) {
        uint32_t b = c->clique[i], last = c->last[b];
        if (last != NOBODY && c->span.at[last].end == c->n_cliques) {
            c->span.at[last].end++;
            continue;
        }
        c->last[b] = c->span.n;
        vec_push(c->arena, &c->span,
                 ((Span){c->n_cliques, c->n_cliques + 1, last}));
    }
    c->n_cliques++;
}

static void grow_clique(Cover *c, uint32_t newcomer) {
    const Graph *g = c->graph;
    c->n_able = c->n_clique = 0;
    c->clique[c->n_clique++] = newcomer;
    for (size_t k = g->start[newcomer]; k < g->start[newcomer + 1]; k++)
        if (c->place[g->other[k]] < c->place[newcomer])
            c->able[c->n_able++] = g->other[k];
    if (is_clique(c)) {
        for (uint32_t i = 0; i < c->n_able; i++)
            c->met[c->clique[c->n_clique++] = c->able[i]] = newcomer + 1;
        c->n_able = 0;
    }
    for (uint32_t b; (b = choose(c, newcomer)) != NOBODY;) {
        c->clique[c->n_clique++] = b;
        c->met[b] = newcomer + 1;
        keep_neighbours(c, b);
    }
    add_clique(c);
}

static bool has_unmet(const Cover *c, uint32_t newcomer) {
    const Graph *g = c->graph;
    for (size_t k = g->start[newcomer]; k < g->start[newcomer + 1]; k++)
        if (c->place[g->other[k]] < c->place[newcomer] &&
            c->met[g->other[k]] != newcomer + 1)
            return true;
    return false;
}

static Cover cover(Arena *arena, const Graph *g, const uint32_t *order) {
    Cover c = {.arena = arena, .graph = g};
    c.last = ARENA_ARRAY(arena, uint32_t, g->n);
    c.place = ARENA_ARRAY(arena, uint32_t, g->n);
    c.met = ARENA_ARRAY(arena, uint32_t, g->n);
    c.able = ARENA_ARRAY(arena, uint32_t, g->n);
    c.clique = ARENA_ARRAY(arena, uint32_t, g->n);
    memset(c.last, 0xff, g->n * sizeof *c.last);
    for (uint32_t i = 0; i < g->n; i++)
        c.place[order[i]] = i;
    for (uint32_t i = 0; i < g->n; i++)
        while (has_unmet(&c, order[i]))
            grow_clique(&c, order[i]);
    return c;
}

/* ---- lives ---- */

/* The cliques from step `start` on, after the life that it has. */
static void extend_life(Arena *arena, Buffer *buf, const Cover *c,
                        uint32_t last, uint32_t start) {
    uint32_t n = 0;
    for (uint32_t i = last; i != NOBODY; i = c->span.at[i].before)
        n++;
    if (!n)
        return;
    bool alive = buf->first < buf->end;
    Steps *gap = ARENA_ARRAY(arena, Steps, buf->n_gaps + (size_t)n);
    if (buf->n_gaps)
        memcpy(gap, buf->gap, buf->n_gaps * sizeof *gap);
    uint32_t n_gaps = alive ? buf->n_gaps : 0, at = n_gaps + n - !alive;
    uint32_t end = start + c->span.at[last].end, total = at;
    for (uint32_t i = last; i != NOBODY; i = c->span.at[i].before) {
        uint32_t first = start + c->span.at[i].first;
        uint32_t before = c->span.at[i].before;
        if (before != NOBODY)
            gap[--at] = (Steps){start + c->span.at[before].end, first};
        else if (alive)
            gap[--at] = (Steps){buf->end, first};
        else
            buf->first = first;
    }
    /* a life that ends where the first span begins goes on */
    if (alive && gap[at].first == gap[at].end) {
        memmove(gap + at, gap + at + 1, (total - at - 1) * sizeof *gap);
        total--;
    }
    buf->gap = gap;
    buf->n_gaps = total;
    buf->end = end;
}

static bool extend_lives(Arena *arena, const Cover *c, Buffer *buf,
                         uint32_t n) {
    uint32_t start = 0;
    for (uint32_t b = 0; b < n; b++)
        start = buf[b].end > start ? buf[b].end : start;
    if ((uint64_t)start + c->n_cliques >= UINT32_MAX)
        return false;
    for (uint32_t b = 0; b < n; b++)
        extend_life(arena, &buf[b], c, c->last[b], start);
    return true;
}

bool conflicts_to_lives(Arena *arena, Pairs listed, const Clocks *clocks,
                        Buffer *buf, uint32_t n) {
    Arena *scratch = arena_new("conflicts");
    Pairs pairs;
    bool fine = list_pairs(scratch, listed, clocks, n, &pairs);
    if (fine && pairs.n) {
        Graph g = new_graph(scratch, &pairs, buf, n);
        Cover best = cover(scratch, &g, order_births(scratch, &g, clocks));
        Cover other = cover(scratch, &g, order_cardinality(scratch, &g));
        fine = extend_lives(arena, other.span.n < best.span.n ? &other : &best,
                            buf, n);
    }
    arena_free(scratch);
    return fine;
}
