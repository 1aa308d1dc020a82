/* order.c - see order.h. */
#include "sched/order.h"

#include "base/vec.h"

#include <assert.h>
#include <string.h>

/* ---- making ---- */

typedef struct Pair {
    uint32_t at, item;
} Pair;
typedef VEC(Pair) Pairs;

struct OrderMaker {
    Arena *arena;
    uint32_t n_nodes;
    Pairs wait, touch, over;
    VEC(uint64_t) bytes;
    VEC(uint8_t) from_start;
    VEC(uint8_t) to_end;
    uint64_t *saves;
};

OrderMaker *order_maker(Arena *arena, uint32_t n_nodes) {
    OrderMaker *m = ARENA_NEW(arena, OrderMaker);
    m->arena = arena;
    m->n_nodes = n_nodes;
    m->saves = ARENA_ARRAY(arena, uint64_t, n_nodes + 1);
    return m;
}

void order_wait(OrderMaker *m, uint32_t node, uint32_t pred) {
    assert(node < m->n_nodes && pred < m->n_nodes && node != pred);
    vec_push(m->arena, &m->wait, ((Pair){node, pred}));
}

uint32_t order_buf(OrderMaker *m, uint64_t bytes, bool from_start,
                   bool to_end) {
    vec_push(m->arena, &m->bytes, bytes);
    vec_push(m->arena, &m->from_start, from_start);
    vec_push(m->arena, &m->to_end, to_end);
    return m->bytes.n - 1;
}

void order_touch(OrderMaker *m, uint32_t node, uint32_t buf) {
    assert(node < m->n_nodes && buf < m->bytes.n);
    vec_push(m->arena, &m->touch, ((Pair){node, buf}));
}

void order_over(OrderMaker *m, uint32_t node, uint32_t buf, uint64_t saves) {
    assert(node < m->n_nodes && buf < m->bytes.n);
    vec_push(m->arena, &m->over, ((Pair){node, buf}));
    m->saves[node] = saves;
}

/* Sorted by `at`, in the order of arrival, each item once. */
static OrderLists lists_from(Arena *arena, uint32_t n, const Pairs *pairs) {
    uint32_t *start = ARENA_ARRAY(arena, uint32_t, n + 2);
    uint32_t *item = ARENA_ARRAY(arena, uint32_t, pairs->n + 1);
    for (uint32_t i = 0; i < pairs->n; i++)
        start[pairs->at[i].at + 1]++;
    for (uint32_t i = 0; i < n; i++)
        start[i + 1] += start[i];
    uint32_t *fill = ARENA_COPY(arena, uint32_t, start, n + 1);
    for (uint32_t i = 0; i < pairs->n; i++)
        item[fill[pairs->at[i].at]++] = pairs->at[i].item;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t first = kept;
        for (uint32_t k = start[i]; k < fill[i]; k++) {
            bool again = false;
            for (uint32_t j = first; j < kept; j++)
                again |= item[j] == item[k];
            if (!again)
                item[kept++] = item[k];
        }
        start[i] = first;
    }
    start[n] = kept;
    return (OrderLists){start, item};
}

static OrderLists lists_turned(Arena *arena, uint32_t n, OrderLists lists) {
    Pairs pairs = {0};
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = lists.start[i]; k < lists.start[i + 1]; k++)
            vec_push(arena, &pairs, ((Pair){lists.item[k], i}));
    return lists_from(arena, n, &pairs);
}

const OrderProblem *order_problem(OrderMaker *m) {
    OrderProblem *p = ARENA_NEW(m->arena, OrderProblem);
    p->n_nodes = m->n_nodes;
    p->n_bufs = m->bytes.n;
    p->pred = lists_from(m->arena, p->n_nodes, &m->wait);
    p->succ = lists_turned(m->arena, p->n_nodes, p->pred);
    p->touch = lists_from(m->arena, p->n_nodes, &m->touch);
    p->over = lists_from(m->arena, p->n_nodes, &m->over);
    p->saves = m->saves;
    p->bytes = m->bytes.at;
    p->from_start = m->from_start.at;
    p->to_end = m->to_end.at;
    uint32_t *touches = ARENA_ARRAY(m->arena, uint32_t, p->n_bufs + 1);
    for (uint32_t i = 0; i < p->touch.start[p->n_nodes]; i++)
        touches[p->touch.item[i]]++;
    p->touches = touches;
    return p;
}

/* ---- states ---- */

/* A buffer that is alive before anything ran is one that was touched; one that
 * is alive behind the end waits for a touch that never comes. */
static void state_clear(OrderState *s) {
    const OrderProblem *p = s->p;
    memset(s->done, 0, s->words * sizeof *s->done);
    memset(s->ready, 0, s->words * sizeof *s->ready);
    s->n = 0;
    s->live = 0;
    for (uint32_t b = 0; b < p->n_bufs; b++) {
        s->left[b] = p->touches[b] + p->to_end[b];
        s->total[b] = s->left[b] + p->from_start[b];
        if (p->from_start[b])
            s->live += p->bytes[b];
    }
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        s->waits[i] = p->pred.start[i + 1] - p->pred.start[i];
        if (!s->waits[i])
            s->ready[i / 64] |= UINT64_C(1) << i % 64;
    }
}

OrderState order_state(Arena *arena, const OrderProblem *p) {
    uint32_t words = p->n_nodes / 64 + 1;
    OrderState s = {
        .p = p,
        .words = words,
        .done = ARENA_ARRAY(arena, uint64_t, words),
        .ready = ARENA_ARRAY(arena, uint64_t, words),
        .waits = ARENA_ARRAY(arena, uint32_t, p->n_nodes + 1),
        .left = ARENA_ARRAY(arena, uint32_t, p->n_bufs + 1),
        .total = ARENA_ARRAY(arena, uint32_t, p->n_bufs + 1),
        .order = ARENA_ARRAY(arena, uint32_t, p->n_nodes + 1),
    };
    state_clear(&s);
    return s;
}

/* Bytes that the node is the first to touch. */
static uint64_t born_with(const OrderState *s, uint32_t node) {
    const OrderProblem *p = s->p;
    uint64_t born = 0;
    for (uint32_t k = p->touch.start[node]; k < p->touch.start[node + 1]; k++) {
        uint32_t b = p->touch.item[k];
        if (s->left[b] == s->total[b])
            born += p->bytes[b];
    }
    return born;
}

/* Bytes of its result that lie in the place of an operand. */
static uint64_t saved_with(const OrderState *s, uint32_t node) {
    const OrderProblem *p = s->p;
    for (uint32_t k = p->over.start[node]; k < p->over.start[node + 1]; k++)
        if (s->left[p->over.item[k]] == 1)
            return p->saves[node];
    return 0;
}

OrderCost order_cost(const OrderState *s, uint32_t node) {
    const OrderProblem *p = s->p;
    uint64_t dies = 0, all = s->live + born_with(s, node);
    for (uint32_t k = p->touch.start[node]; k < p->touch.start[node + 1]; k++) {
        uint32_t b = p->touch.item[k];
        if (s->left[b] == 1)
            dies += p->bytes[b];
    }
    return (OrderCost){all - saved_with(s, node), all - dies};
}

static void flip(uint64_t *set, uint32_t node) {
    set[node / 64] ^= UINT64_C(1) << node % 64;
}

void order_run(OrderState *s, uint32_t node) {
    const OrderProblem *p = s->p;
    assert(s->ready[node / 64] >> node % 64 & 1);
    for (uint32_t k = p->touch.start[node]; k < p->touch.start[node + 1]; k++) {
        uint32_t b = p->touch.item[k];
        if (s->left[b] == s->total[b])
            s->live += p->bytes[b];
        if (--s->left[b] == 0)
            s->live -= p->bytes[b];
    }
    for (uint32_t k = p->succ.start[node]; k < p->succ.start[node + 1]; k++)
        if (--s->waits[p->succ.item[k]] == 0)
            flip(s->ready, p->succ.item[k]);
    flip(s->ready, node);
    flip(s->done, node);
    s->order[s->n++] = node;
}

void order_undo(OrderState *s) {
    const OrderProblem *p = s->p;
    uint32_t node = s->order[--s->n];
    for (uint32_t k = p->touch.start[node]; k < p->touch.start[node + 1]; k++) {
        uint32_t b = p->touch.item[k];
        if (s->left[b]++ == 0)
            s->live += p->bytes[b];
        if (s->left[b] == s->total[b])
            s->live -= p->bytes[b];
    }
    for (uint32_t k = p->succ.start[node]; k < p->succ.start[node + 1]; k++)
        if (s->waits[p->succ.item[k]]++ == 0)
            flip(s->ready, p->succ.item[k]);
    flip(s->ready, node);
    flip(s->done, node);
}

uint32_t order_next(const uint64_t *set, uint32_t words, uint32_t from) {
    uint32_t w = from / 64;
    if (w >= words)
        return ORDER_NONE;
    uint64_t bits = set[w] & (UINT64_MAX << from % 64);
    while (!bits) {
        if (++w == words)
            return ORDER_NONE;
        bits = set[w];
    }
    return w * 64 + (uint32_t)__builtin_ctzll(bits);
}

void order_load(OrderState *s, const uint64_t *done) {
    const OrderProblem *p = s->p;
    state_clear(s);
    for (uint32_t v = order_next(done, s->words, 0); v != ORDER_NONE;
         v = order_next(done, s->words, v + 1)) {
        for (uint32_t k = p->touch.start[v]; k < p->touch.start[v + 1]; k++) {
            uint32_t b = p->touch.item[k];
            if (s->left[b] == s->total[b])
                s->live += p->bytes[b];
            if (--s->left[b] == 0)
                s->live -= p->bytes[b];
        }
        for (uint32_t k = p->succ.start[v]; k < p->succ.start[v + 1]; k++)
            if (--s->waits[p->succ.item[k]] == 0)
                flip(s->ready, p->succ.item[k]);
        s->order[s->n++] = v;
    }
    for (uint32_t w = 0; w < s->words; w++) {
        s->ready[w] &= ~done[w];
        s->done[w] = done[w];
    }
}

/* ---- whole orders ---- */

/* A node that touches all it ever will, and takes an operand's place. */
static uint64_t least_of(const OrderProblem *p, uint32_t node) {
    uint64_t need = 0;
    for (uint32_t k = p->touch.start[node]; k < p->touch.start[node + 1]; k++)
        need += p->bytes[p->touch.item[k]];
    if (p->over.start[node + 1] > p->over.start[node])
        need -= p->saves[node];
    return need;
}

uint64_t order_least(const OrderProblem *p) {
    uint64_t least = 0;
    for (uint32_t v = 0; v < p->n_nodes; v++) {
        uint64_t need = least_of(p, v);
        if (need > least)
            least = need;
    }
    return least;
}

uint64_t order_run_step(OrderState *s, uint32_t n, const uint32_t *node) {
    uint64_t peak = s->live;
    for (uint32_t i = 0; i < n; i++)
        peak -= saved_with(s, node[i]);
    for (uint32_t i = 0; i < n; i++) {
        peak += born_with(s, node[i]);
        order_run(s, node[i]);
    }
    return peak;
}

uint64_t order_steps_peak(Arena *arena, const OrderProblem *p, uint32_t n_steps,
                          const uint32_t *start, const uint32_t *order,
                          uint64_t *live) {
    OrderState s = order_state(arena, p);
    uint64_t peak = s.live;
    for (uint32_t i = 0; i < n_steps; i++) {
        for (uint32_t k = start[i]; k < start[i + 1]; k++)
            if (!(s.ready[order[k] / 64] >> order[k] % 64 & 1))
                return UINT64_MAX;
        uint64_t now =
            order_run_step(&s, start[i + 1] - start[i], order + start[i]);
        if (live)
            live[i] = now;
        if (now > peak)
            peak = now;
    }
    return peak;
}

uint64_t order_peak(Arena *arena, const OrderProblem *p, const uint32_t *order,
                    uint64_t *live) {
    uint32_t *start = ARENA_ARRAY(arena, uint32_t, p->n_nodes + 1);
    for (uint32_t i = 0; i <= p->n_nodes; i++)
        start[i] = i;
    return order_steps_peak(arena, p, p->n_nodes, start, order, live);
}
