/* best.c - the least peak of any order: a threshold search over sets of done
 * nodes.
 *
 * In: a problem of order, an order to beat. Out: an order of least peak, or at
 * the end of the budget the best found and the largest bound that was refuted.
 * Method (facts/two-level.md 1.3): fix a bound, and search depth first whether
 * everything can run within it, never looking at a set of done nodes twice. In
 * each state the *safe* moves run first, without branching: a ready node, or a
 * node and the safe ones behind it, that stay within the bound and end with no
 * more bytes alive than before. What they add can only fall, and what they free
 * only grow, when other nodes have run before them; so any order from the state
 * stays within the bound when they are moved to its front. When nothing is left
 * to search, the bound becomes the least that any branch was cut for, and only
 * those branches are taken up again: a move that is safe under one bound is so
 * under a larger one.
 * Invariants: every order of a lower peak than `bound` was refuted; `peak` is
 * that of `order`. Where all nodes behind a set come after all nodes of it (an
 * articulation), the set is met once, so networks need not be cut there.
 */
#include "sched/best.h"

#include "base/rng.h"
#include "base/vec.h"

#include <assert.h>
#include <string.h>

enum { DEFAULT_BUDGET = 40000000, MAX_STORED = 256 << 20 };

/* A state from which some branch needs more than the bound. */
typedef struct Cut {
    uint64_t need;
    uint32_t set;
} Cut;

/* A state on the path, its nodes to try next from `next` to `end`. */
typedef struct Frame {
    uint32_t set, trail;
    uint32_t first, next, end; /* in `move` */
    uint64_t cut;              /* the least need of a move beyond the bound */
} Frame;

typedef struct Move {
    uint64_t then;
    uint32_t node;
} Move;

/* How a set was reached: from another one, by these nodes in this order. */
typedef struct Way {
    uint32_t from, first, n;
} Way;

typedef struct Search {
    Arena *arena;
    OrderState s;
    uint64_t bound, limit; /* look for at most `bound`, which is < limit */
    uint64_t looks, budget;
    VEC(uint64_t) sets;    /* `words` each */
    VEC(Way) way;          /* by set */
    VEC(uint32_t) node;    /* of all ways, one behind the other */
    uint32_t *table, mask; /* hash table of 1 + number of a set */
    VEC(Cut) cut;          /* heap, least need first */
    VEC(Frame) frame;
    VEC(Move) move; /* of all frames, one behind the other */
} Search;

/* ---- sets that were met ---- */

static uint64_t hash_set(const uint64_t *set, uint32_t words) {
    uint64_t h = 0;
    for (uint32_t i = 0; i < words; i++)
        h = rng_bits(h ^ set[i], i);
    return h;
}

static uint64_t *set_at(const Search *x, uint32_t i) {
    return x->sets.at + (size_t)i * x->s.words;
}

static void table_grow(Search *x) {
    uint32_t size = x->table ? 2 * (x->mask + 1) : 1024;
    x->table = ARENA_ARRAY(x->arena, uint32_t, size);
    x->mask = size - 1;
    for (uint32_t i = 0; i < x->way.n; i++) {
        uint32_t at = (uint32_t)hash_set(set_at(x, i), x->s.words) & x->mask;
        while (x->table[at])
            at = (at + 1) & x->mask;
        x->table[at] = i + 1;
    }
}

/* Remembers the set of done nodes, reached from the set `from` by what ran
 * since `trail`; false if it was there. */
static bool set_add(Search *x, uint32_t from, uint32_t trail, uint32_t *out) {
    uint32_t words = x->s.words;
    if (!x->table || x->way.n >= x->mask / 2)
        table_grow(x);
    uint32_t at = (uint32_t)hash_set(x->s.done, words) & x->mask;
    for (; x->table[at]; at = (at + 1) & x->mask) {
        *out = x->table[at] - 1;
        if (!memcmp(set_at(x, *out), x->s.done, words * sizeof(uint64_t)))
            return false;
    }
    *out = x->way.n;
    x->table[at] = *out + 1;
    for (uint32_t i = 0; i < words; i++)
        vec_push(x->arena, &x->sets, x->s.done[i]);
    vec_push(x->arena, &x->way, ((Way){from, x->node.n, x->s.n - trail}));
    for (uint32_t i = trail; i < x->s.n; i++)
        vec_push(x->arena, &x->node, x->s.order[i]);
    return true;
}

/* ---- branches that were cut ---- */

static bool cut_before(const Cut *a, const Cut *b) {
    return a->need != b->need ? a->need < b->need : a->set < b->set;
}

static void cut_push(Search *x, uint64_t need, uint32_t set) {
    if (need >= x->limit)
        return;
    vec_push(x->arena, &x->cut, ((Cut){need, set}));
    Cut *heap = x->cut.at;
    for (uint32_t i = x->cut.n - 1; i; i = (i - 1) / 2) {
        if (!cut_before(&heap[i], &heap[(i - 1) / 2]))
            break;
        Cut t = heap[i];
        heap[i] = heap[(i - 1) / 2];
        heap[(i - 1) / 2] = t;
    }
}

static Cut cut_pop(Search *x) {
    Cut *heap = x->cut.at, first = heap[0];
    uint32_t n = --x->cut.n;
    heap[0] = heap[n];
    for (uint32_t i = 0, k; (k = 2 * i + 1) < n; i = k) {
        if (k + 1 < n && cut_before(&heap[k + 1], &heap[k]))
            k++;
        if (!cut_before(&heap[k], &heap[i]))
            break;
        Cut t = heap[i];
        heap[i] = heap[k];
        heap[k] = t;
    }
    return first;
}

/* ---- moves ---- */

static void undo_to(Search *x, uint32_t trail) {
    while (x->s.n > trail)
        order_undo(&x->s);
}

/* Runs ready nodes that stay within the bound and add nothing. */
static void run_safe(Search *x) {
    OrderState *s = &x->s;
    for (uint32_t v = order_next(s->ready, s->words, 0); v != ORDER_NONE;) {
        OrderCost cost = order_cost(s, v);
        bool safe = cost.peak <= x->bound && cost.then <= s->live;
        x->looks++;
        if (safe)
            order_run(s, v);
        v = order_next(s->ready, s->words, safe ? 0 : v + 1);
    }
}

/* Runs the node, and all that is safe behind it. Keeps it so if the whole is
 * safe; else undoes it and gives the bytes alive behind it. */
static bool run_if_safe(Search *x, uint32_t node, uint64_t *then) {
    uint32_t trail = x->s.n;
    uint64_t before = x->s.live;
    order_run(&x->s, node);
    run_safe(x);
    *then = x->s.live;
    if (x->s.live <= before || x->s.n == x->s.p->n_nodes)
        return true;
    undo_to(x, trail);
    return false;
}

static bool move_before(const Move *a, const Move *b) {
    return a->then != b->then ? a->then < b->then : a->node < b->node;
}

static void move_insert(Search *x, uint32_t first, Move move) {
    vec_push(x->arena, &x->move, move);
    uint32_t i = x->move.n - 1;
    for (; i > first && move_before(&move, &x->move.at[i - 1]); i--)
        x->move.at[i] = x->move.at[i - 1];
    x->move.at[i] = move;
}

/* Lists the moves that the state leaves, those that keep least alive first. A
 * safe one among them is run, and the list begun again. */
static void list_moves(Search *x, Frame *f) {
    OrderState *s = &x->s;
    uint32_t v = order_next(s->ready, s->words, 0);
    while (v != ORDER_NONE) {
        uint64_t then, need = order_cost(s, v).peak;
        x->looks++;
        if (need > x->bound) {
            f->cut = need < f->cut ? need : f->cut;
        } else if (run_if_safe(x, v, &then)) {
            x->move.n = f->first;
            f->cut = UINT64_MAX;
            v = order_next(s->ready, s->words, 0);
            continue;
        } else {
            move_insert(x, f->first, (Move){then, v});
        }
        v = order_next(s->ready, s->words, v + 1);
    }
    f->end = x->move.n;
}

/* ---- the search ---- */

static bool all_done(const Search *x) {
    return x->s.n == x->s.p->n_nodes;
}

static bool spent(const Search *x) {
    return x->looks >= x->budget ||
           x->sets.n + x->node.n / 2 > MAX_STORED / sizeof(uint64_t);
}

/* Puts the state on the path, with all that is safe; not if it was met, except
 * `again`, which is to be searched under a larger bound. The state came from
 * the set `from` by what ran since `trail`. */
static void enter(Search *x, uint32_t from, uint32_t trail, uint32_t again) {
    Frame f = {.trail = trail,
               .first = x->move.n,
               .next = x->move.n,
               .cut = UINT64_MAX};
    run_safe(x);
    bool fresh = set_add(x, from, trail, &f.set) || f.set == again;
    uint32_t closed = x->s.n;
    if (fresh) {
        list_moves(x, &f);
        if (x->s.n > closed)
            fresh = set_add(x, f.set, closed, &f.set);
    }
    if (fresh) {
        vec_push(x->arena, &x->frame, f);
        return;
    }
    x->move.n = f.first;
    undo_to(x, trail);
}

static void leave(Search *x) {
    Frame *f = &x->frame.at[--x->frame.n];
    if (f->cut != UINT64_MAX)
        cut_push(x, f->cut, f->set);
    x->move.n = f->first;
    undo_to(x, f->trail);
}

/* Searches on from the path. True: everything has run. */
static bool explore(Search *x) {
    while (x->frame.n && !all_done(x) && !spent(x)) {
        Frame *f = &x->frame.at[x->frame.n - 1];
        if (f->next == f->end) {
            leave(x);
            continue;
        }
        uint32_t trail = x->s.n, from = f->set;
        order_run(&x->s, x->move.at[f->next++].node);
        enter(x, from, trail, ORDER_NONE);
    }
    return x->frame.n && all_done(x);
}

/* True: an order within the bound. False: none below the limit, or the budget
 * is spent; nothing reaches less than the bound. */
static bool search(Search *x) {
    enter(x, ORDER_NONE, 0, ORDER_NONE);
    while (!explore(x)) {
        if (spent(x))
            return false;
        if (!x->cut.n) {
            x->bound = x->limit;
            return false;
        }
        Cut cut = cut_pop(x);
        x->bound = cut.need;
        order_load(&x->s, set_at(x, cut.set));
        x->looks += x->s.p->n_nodes / 4; /* loading costs about as much */
        enter(x, cut.set, x->s.n, cut.set);
    }
    return true;
}

/* The nodes of the ways that led to the last state of the path. */
static const uint32_t *order_found(const Search *x) {
    uint32_t n = x->s.p->n_nodes;
    uint32_t *order = ARENA_ARRAY(x->arena, uint32_t, n + 1);
    uint32_t set = x->frame.at[x->frame.n - 1].set;
    for (; set != ORDER_NONE; set = x->way.at[set].from) {
        const Way *way = &x->way.at[set];
        n -= way->n;
        memcpy(order + n, x->node.at + way->first, way->n * sizeof *order);
    }
    assert(n == 0);
    return order;
}

Best order_best(Arena *arena, const OrderProblem *p, const uint32_t *known,
                uint64_t budget) {
    uint64_t peak = order_peak(arena, p, known, NULL);
    Best best = {.order = known, .peak = peak, .bound = order_least(p)};
    if (best.bound < peak) {
        Arena *scratch = arena_new("order");
        Search x = {.arena = scratch,
                    .s = order_state(scratch, p),
                    .bound = best.bound,
                    .limit = peak,
                    .budget = budget ? budget : DEFAULT_BUDGET};
        if (search(&x)) {
            best.order =
                ARENA_COPY(arena, uint32_t, order_found(&x), p->n_nodes);
            best.peak = order_peak(arena, p, best.order, NULL);
            assert(best.peak <= x.bound);
        }
        best.bound = x.bound;
        best.states = x.way.n;
        arena_free(scratch);
    }
    best.proved = best.bound >= best.peak;
    return best;
}
