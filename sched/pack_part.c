/* pack_part.c - the least cost of steps within a part of a network: A* (Hart,
 * Nilsson, Raphael 1968) over sets of done nodes.
 *
 * In: a part, costs of nodes, a bound of bytes. Out: steps of several nodes,
 * their cost the least possible, and their peak the least for that cost.
 * A label of a set is (cost so far, peak so far), compared in that order; it
 * never falls along a path, so a set is done with when it first comes up. What
 * is left costs at least the most of: the cost of nodes that can never share a
 * step, and of the longest chain of nodes that wait for each other.
 * Invariants: concats run by themselves as soon as they can.
 */
#include "sched/pack.h"

#include "base/rng.h"
#include "base/vec.h"

#include <string.h>

typedef struct Label {
    uint64_t cost, peak, rest; /* rest: at least so much is to come */
    uint32_t from;             /* label before; ORDER_NONE */
    uint32_t first, n;         /* its nodes in `node` and steps in `size` */
    uint32_t first_step, n_steps;
    bool closed;
} Label;

typedef struct Entry {
    uint64_t total, peak, live;
    uint32_t label;
} Entry;

typedef struct Packer {
    Arena *arena;
    const PackPart *part;
    OrderState s;       /* of the label that is being worked on */
    uint64_t *tail;     /* by number: cost of the longest chain from it on */
    uint32_t *group;    /* by number: engine; HW_MAX_ENGINES: by itself */
    VEC(uint64_t) sets; /* by label: done nodes */
    VEC(Label) label;
    VEC(uint32_t) node;
    VEC(uint32_t) size;
    VEC(Entry) heap;
    uint32_t *table, mask;
    uint64_t moves;
    uint32_t goal; /* nodes that have run at the end */
} Packer;

/* ---- what is left costs at least ---- */

static bool apart(const HwSpec *spec, uint32_t a, uint32_t b) {
    return !(spec->engine[a].beside >> b & 1);
}

/* Cost of nodes by engine, and of those that run by themselves (last). */
static void left_by_engine(const Packer *x, uint64_t sum[HW_MAX_ENGINES + 1],
                           uint64_t *chain) {
    memset(sum, 0, (HW_MAX_ENGINES + 1) * sizeof *sum);
    *chain = 0;
    for (uint32_t i = 0; i < x->part->n; i++) {
        uint32_t v = x->part->node[i];
        if (x->s.done[v / 64] >> v % 64 & 1)
            continue;
        sum[x->group[v]] += x->part->cost[v];
        if (x->tail[v] > *chain)
            *chain = x->tail[v];
    }
}

/* Engines that exclude each other, gathered from each engine on. */
static uint64_t rest_of(const Packer *x) {
    const HwSpec *spec = x->part->model->spec;
    uint64_t sum[HW_MAX_ENGINES + 1], chain, most = 0;
    left_by_engine(x, sum, &chain);
    for (uint32_t e = 0; e < spec->n_engines; e++) {
        uint32_t with = UINT32_C(1) << e;
        uint64_t together = sum[e];
        for (uint32_t f = 0; f < spec->n_engines; f++) {
            bool fits = f != e && sum[f];
            for (uint32_t k = 0; k < spec->n_engines && fits; k++)
                fits = !(with >> k & 1) || apart(spec, f, k);
            if (fits) {
                with |= UINT32_C(1) << f;
                together += sum[f];
            }
        }
        most = together > most ? together : most;
    }
    most += sum[HW_MAX_ENGINES];
    return most > chain ? most : chain;
}

static void find_tails(Packer *x) {
    const OrderProblem *p = x->part->model->p;
    for (uint32_t i = x->part->n; i-- > 0;) {
        uint32_t v = x->part->node[i];
        uint64_t longest = 0;
        for (uint32_t k = p->succ.start[v]; k < p->succ.start[v + 1]; k++)
            if (x->tail[p->succ.item[k]] > longest)
                longest = x->tail[p->succ.item[k]];
        x->tail[v] = longest + x->part->cost[v];
    }
}

/* ---- labels ---- */

static uint64_t hash_set(const uint64_t *set, uint32_t words) {
    uint64_t h = 0;
    for (uint32_t i = 0; i < words; i++)
        h = rng_bits(h ^ set[i], i);
    return h;
}

static uint64_t *set_at(const Packer *x, uint32_t label) {
    return x->sets.at + (size_t)label * x->s.words;
}

static void table_put(Packer *x, uint32_t label) {
    uint32_t at = (uint32_t)hash_set(set_at(x, label), x->s.words) & x->mask;
    while (x->table[at])
        at = (at + 1) & x->mask;
    x->table[at] = label + 1;
}

static void table_grow(Packer *x) {
    uint32_t size = x->table ? 2 * (x->mask + 1) : 256;
    x->table = ARENA_ARRAY(x->arena, uint32_t, size);
    x->mask = size - 1;
    for (uint32_t i = 0; i < x->label.n; i++)
        table_put(x, i);
}

/* The label of the present set; a new one has no cost yet. */
static uint32_t label_of(Packer *x, bool *fresh) {
    uint32_t words = x->s.words;
    if (!x->table || x->label.n >= x->mask / 2)
        table_grow(x);
    uint32_t at = (uint32_t)hash_set(x->s.done, words) & x->mask;
    for (; x->table[at]; at = (at + 1) & x->mask)
        if (!memcmp(set_at(x, x->table[at] - 1), x->s.done,
                    words * sizeof(uint64_t))) {
            *fresh = false;
            return x->table[at] - 1;
        }
    *fresh = true;
    x->table[at] = x->label.n + 1;
    for (uint32_t i = 0; i < words; i++)
        vec_push(x->arena, &x->sets, x->s.done[i]);
    vec_push(x->arena, &x->label, (Label){0});
    return x->label.n - 1;
}

static bool entry_before(const Entry *a, const Entry *b) {
    if (a->total != b->total)
        return a->total < b->total;
    if (a->peak != b->peak)
        return a->peak < b->peak;
    /* Of equals the one that keeps least alive, which is easier to place; then
     * the newest, which is likely to be nearest to the end. */
    return a->live != b->live ? a->live < b->live : a->label > b->label;
}

static void heap_push(Packer *x, Entry entry) {
    vec_push(x->arena, &x->heap, entry);
    Entry *heap = x->heap.at;
    for (uint32_t i = x->heap.n - 1; i; i = (i - 1) / 2) {
        Entry t = heap[i];
        if (!entry_before(&t, &heap[(i - 1) / 2]))
            break;
        heap[i] = heap[(i - 1) / 2];
        heap[(i - 1) / 2] = t;
    }
}

static Entry heap_pop(Packer *x) {
    Entry *heap = x->heap.at, first = heap[0];
    uint32_t n = --x->heap.n;
    heap[0] = heap[n];
    for (uint32_t i = 0, k; (k = 2 * i + 1) < n; i = k) {
        if (k + 1 < n && entry_before(&heap[k + 1], &heap[k]))
            k++;
        if (!entry_before(&heap[k], &heap[i]))
            break;
        Entry t = heap[i];
        heap[i] = heap[k];
        heap[k] = t;
    }
    return first;
}

/* ---- moves ---- */

typedef struct Move {
    uint32_t node[HW_MAX_ENGINES + 1];
    uint32_t n;
    uint64_t cost;
} Move;

static bool is_concat(const Packer *x, uint32_t v) {
    const Model *m = x->part->model;
    return graph_node(m->g, m->node[v])->op == OP_CONCAT;
}

/* Runs a step of the label `next`. */
static void run_step(Packer *x, Label *next, uint32_t n, const uint32_t *node,
                     uint64_t cost) {
    uint64_t peak = order_run_step(&x->s, n, node);
    next->peak = peak > next->peak ? peak : next->peak;
    next->cost += cost;
    for (uint32_t i = 0; i < n; i++)
        vec_push(x->arena, &x->node, node[i]);
    vec_push(x->arena, &x->size, n);
    next->n += n;
    next->n_steps++;
}

/* Concats that are complete now, each a step of its own. */
static void run_concats(Packer *x, Label *next) {
    uint32_t v = order_next(x->s.ready, x->s.words, 0);
    while (v != ORDER_NONE) {
        bool runs = is_concat(x, v);
        if (runs)
            run_step(x, next, 1, &v, x->part->cost[v]);
        v = order_next(x->s.ready, x->s.words, runs ? 0 : v + 1);
    }
}

/* Keeps `next` for the present set if it is better than what is there. */
static void offer(Packer *x, Label next) {
    bool fresh;
    uint32_t i = label_of(x, &fresh);
    Label *old = &x->label.at[i];
    if (!fresh && (old->closed || old->cost < next.cost ||
                   (old->cost == next.cost && old->peak <= next.peak)))
        return;
    next.rest = fresh ? rest_of(x) : old->rest;
    *old = next;
    heap_push(x, (Entry){next.cost + next.rest, next.peak, x->s.live, i});
}

/* One step from the label, then what follows of itself. */
static void try_move(Packer *x, uint32_t from, const Move *move) {
    const Label *at = &x->label.at[from];
    Label next = {.cost = at->cost,
                  .peak = at->peak,
                  .from = from,
                  .first = x->node.n,
                  .first_step = x->size.n};
    uint32_t trail = x->s.n;
    x->moves++;
    run_step(x, &next, move->n, move->node, move->cost);
    if (next.peak <= x->part->bound)
        run_concats(x, &next);
    if (next.peak <= x->part->bound)
        offer(x, next);
    while (x->s.n > trail)
        order_undo(&x->s);
}

/* All steps that hold the move's nodes and ready ones from `v` on. A node that
 * is not ready before the step cannot join it, so the state stays as it is. */
static void try_moves(Packer *x, uint32_t from, const Move *move, uint32_t v) {
    for (v = order_next(x->s.ready, x->s.words, v); v != ORDER_NONE;
         v = order_next(x->s.ready, x->s.words, v + 1)) {
        const Model *m = x->part->model;
        if (move->n && !can_join(m, move->node, move->n, v))
            continue;
        uint64_t cost = x->part->cost[v];
        Move more = *move;
        more.node[more.n++] = v;
        more.cost = cost > more.cost ? cost : more.cost;
        try_move(x, from, &more);
        if (can_join(m, NULL, 0, v))
            try_moves(x, from, &more, v + 1);
    }
}

/* ---- the search ---- */

static Packer packer_new(Arena *arena, const PackPart *part,
                         const OrderState *from) {
    const Model *m = part->model;
    Packer x = {.arena = arena,
                .part = part,
                .s = order_state(arena, m->p),
                .tail = ARENA_ARRAY(arena, uint64_t, m->p->n_nodes + 1),
                .group = ARENA_ARRAY(arena, uint32_t, m->p->n_nodes + 1),
                .goal = from->n + part->n};
    for (uint32_t i = 0; i < part->n; i++) {
        uint32_t v = part->node[i];
        int32_t engine = m->legal[m->node[v].i].engine;
        x.group[v] = can_join(m, NULL, 0, v) ? (uint32_t)engine
                                             : (uint32_t)HW_MAX_ENGINES;
    }
    find_tails(&x);
    order_load(&x.s, from->done);
    return x;
}

/* The steps on the way to a label. */
static void steps_to(const Packer *x, uint32_t label, Arena *arena,
                     Packed *out) {
    uint32_t n = x->part->n, steps = 0;
    out->node = ARENA_ARRAY(arena, uint32_t, n + 1);
    for (uint32_t i = label; i != ORDER_NONE; i = x->label.at[i].from)
        steps += x->label.at[i].n_steps;
    out->n_steps = steps;
    out->size = ARENA_ARRAY(arena, uint32_t, steps + 1);
    for (uint32_t i = label; i != ORDER_NONE; i = x->label.at[i].from) {
        const Label *at = &x->label.at[i];
        n -= at->n;
        steps -= at->n_steps;
        for (uint32_t k = 0; k < at->n; k++)
            out->node[n + k] = x->node.at[at->first + k];
        for (uint32_t k = 0; k < at->n_steps; k++)
            out->size[steps + k] = x->size.at[at->first_step + k];
    }
}

static void begin(Packer *x) {
    Label first = {.from = ORDER_NONE};
    run_concats(x, &first); /* of network inputs alone */
    offer(x, first);
}

static uint32_t explore(Packer *x, uint64_t *least) {
    const Move none = {.n = 0};
    while (x->heap.n && x->moves < x->part->budget) {
        Entry entry = heap_pop(x);
        Label *at = &x->label.at[entry.label];
        if (at->closed)
            continue;
        at->closed = true;
        *least = entry.total;
        order_load(&x->s, set_at(x, entry.label));
        if (x->s.n == x->goal)
            return entry.label;
        try_moves(x, entry.label, &none, 0);
    }
    return ORDER_NONE;
}

Packed pack_part(Arena *arena, const PackPart *part, const OrderState *from) {
    Arena *scratch = arena_new("pack");
    Packer x = packer_new(scratch, part, from);
    Packed out = {0};
    begin(&x);
    uint32_t last = explore(&x, &out.least);
    out.found = last != ORDER_NONE;
    if (out.found)
        steps_to(&x, last, arena, &out);
    arena_free(scratch);
    return out;
}
