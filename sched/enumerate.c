/* enumerate.c - the seed compiler's search: the network is cut at joins into
 * parts, all orders of each part are scored, the best are stitched together
 * (facts/xdnn.md section 3, "Schedule search").
 *
 * A join is a concat or an element-wise node that every other node comes before
 * or behind. An order is packed greedily into steps of engines that run beside
 * each other; of two orders the better has fewer steps, then the smaller peak,
 * then fewer volumes alive, summed over steps. Bytes are counted as there: a
 * concat's output besides its members. Parts larger than MAX_NODES keep the
 * order of the file; of more than MAX_SCORED orders the first are scored.
 */
#include "sched/orders.h"

#include "sched/parts.h"

#include <string.h>

enum { MAX_NODES = 12, MAX_SCORED = 5999 };

typedef struct Score {
    uint64_t steps, peak, volumes;
} Score;

typedef struct Enumeration {
    Arena *arena;
    const Model *model; /* of engines; its numbers are those of `tensors` */
    OrderState walk;    /* which orders there are */
    OrderState count;   /* the same, by the seed's bytes */
    uint32_t n;         /* nodes of the part */
    uint32_t now[MAX_NODES + 2], best[MAX_NODES + 2];
    Score least;
    uint32_t scored;
} Enumeration;

/* ---- one order ---- */

static bool waits_for(const OrderProblem *p, uint32_t node,
                      const uint32_t *step, uint32_t n) {
    for (uint32_t k = p->pred.start[node]; k < p->pred.start[node + 1]; k++)
        for (uint32_t i = 0; i < n; i++)
            if (p->pred.item[k] == step[i])
                return true;
    return false;
}

/* How many nodes from order[0] on make the next step. */
static uint32_t step_size(const Model *m, const uint32_t *order, uint32_t n) {
    uint32_t size = 1;
    while (m->spec && size < n && can_join(m, order, size, order[size]) &&
           !waits_for(m->p, order[size], order, size))
        size++;
    return size;
}

static uint64_t volumes_alive(const OrderState *s) {
    uint64_t n = 0;
    for (uint32_t b = 0; b < s->p->n_bufs; b++)
        n += s->left[b] && s->left[b] < s->total[b];
    return n;
}

static Score score_of(Enumeration *x) {
    OrderState *s = &x->count;
    uint32_t trail = s->n;
    Score score = {0};
    for (uint32_t i = 0, size; i < x->n; i += size) {
        size = step_size(x->model, x->now + i, x->n - i);
        uint64_t peak = order_run_step(s, size, x->now + i);
        score.steps++;
        score.peak = peak > score.peak ? peak : score.peak;
        score.volumes += volumes_alive(s);
    }
    while (s->n > trail)
        order_undo(s);
    return score;
}

static bool better(const Score *a, const Score *b) {
    if (a->steps != b->steps)
        return a->steps < b->steps;
    return a->peak != b->peak ? a->peak < b->peak : a->volumes < b->volumes;
}

/* ---- all orders ---- */

static void try_orders(Enumeration *x, uint32_t depth) {
    OrderState *s = &x->walk;
    if (depth == x->n) {
        Score score = score_of(x);
        if (!x->scored++ || better(&score, &x->least)) {
            x->least = score;
            memcpy(x->best, x->now, x->n * sizeof *x->now);
        }
        return;
    }
    for (uint32_t v = order_next(s->ready, s->words, 0);
         v != ORDER_NONE && x->scored < MAX_SCORED;
         v = order_next(s->ready, s->words, v + 1)) {
        x->now[depth] = v;
        order_run(s, v);
        try_orders(x, depth + 1);
        order_undo(s);
    }
}

/* Orders of a part: paths through the sets that hold all they wait for. */
static uint64_t count_orders(Arena *arena, const OrderProblem *p, uint32_t n,
                             const uint32_t *node) {
    uint32_t need[MAX_NODES + 2] = {0};
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < i; k++)
            if (waits_for(p, node[i], &node[k], 1))
                need[i] |= UINT32_C(1) << k;
    uint64_t *ways = ARENA_ARRAY(arena, uint64_t, (size_t)1 << n);
    ways[0] = 1;
    for (uint32_t set = 0; set < UINT32_C(1) << n; set++)
        for (uint32_t i = 0; i < n && ways[set]; i++)
            if (!(set >> i & 1) && (set & need[i]) == need[i])
                ways[set | UINT32_C(1) << i] += ways[set];
    return ways[(UINT32_C(1) << n) - 1];
}

static uint64_t times(uint64_t a, uint64_t b) {
    return b && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

/* ---- the parts ---- */

static bool is_join(const void *context, uint32_t node) {
    const Model *m = context;
    OpKind op = graph_node(m->g, m->node[node])->op;
    return op == OP_CONCAT || op == OP_ELTWISE;
}

/* Orders one part, runs it, and adds what is known to the facts. */
static void run_part(Enumeration *x, const uint32_t *node, uint32_t n,
                     uint32_t *order, OrderFacts *facts) {
    bool small = n <= MAX_NODES + 1;
    if (small) {
        /* The join comes last in any order. */
        bool joined = is_join(x->model, node[n - 1]);
        x->n = n;
        x->scored = 0;
        try_orders(x, 0);
        Arena *scratch = arena_new("orders");
        facts->orders = times(facts->orders, count_orders(scratch, x->model->p,
                                                          n - joined, node));
        arena_free(scratch);
    }
    const uint32_t *best = small ? x->best : node;
    for (uint32_t i = 0, size; i < n; i += size) {
        size = step_size(x->model, best + i, n - i);
        uint64_t peak = order_run_step(&x->count, size, best + i);
        facts->seed_peak = peak > facts->seed_peak ? peak : facts->seed_peak;
        facts->seed_steps++;
        order_run_step(&x->walk, size, best + i);
    }
    memcpy(order, best, n * sizeof *order);
    facts->parts++;
}

void enumerate_run(Arena *arena, const OrderTask *task, Ordering *out) {
    const Model *m = task->model;
    Model tensors =
        m->spec ? model_make(arena, MODEL_TENSORS, m->spec, m->g, false) : *m;
    Enumeration x = {.arena = arena,
                     .model = m,
                     .walk = order_state(arena, m->p),
                     .count = order_state(arena, tensors.p)};
    Parts parts = parts_make(arena, m->p, is_join, m);
    uint32_t *order = ARENA_ARRAY(arena, uint32_t, m->p->n_nodes + 1);
    *out = ordering_serial(arena, m->p, order);
    out->facts.orders = 1;
    out->facts.seed_steps = 1; /* what the first part begins with */
    for (uint32_t i = 0; i < parts.n; i++) {
        uint32_t first = parts.start[i], n = parts.start[i + 1] - first;
        if (n)
            run_part(&x, parts.node + first, n, order + first, &out->facts);
    }
}
