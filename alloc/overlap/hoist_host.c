/* hoist_host.c - layers of the host earlier, so that transfers need not wait.
 *
 * Input: a plan whose actions run one behind the other. Output: the same with
 * some layers of the host further in front.
 * Method: everything waits for a layer of the host, so what is stored for it
 * and what is loaded of its result hide behind other layers only if these lie
 * between the store and the host, or between the host and the load. A layer of
 * the host moves up as far as what it reads and writes allows, but not into
 * the time that its operands' stores need; where there is less time than the
 * stores and the loads need, each gets its share.
 * Invariants: actions that conflict keep their order; nothing else moves.
 */
#include "alloc/overlap/overlap.h"

enum { LOOK = 256 };

typedef struct Hosts {
    Arena *arena;
    const Plan *plan;
    Action *action; /* in their new order */
} Hosts;

static bool in_conflict(const Hosts *h, uint32_t i, uint32_t k) {
    Accesses a = accesses_of(h->arena, h->plan, &h->action[i]);
    Accesses b = accesses_of(h->arena, h->plan, &h->action[k]);
    return accesses_conflict(&a, &b);
}

/* The last action before the layer of the host at `i` that it must stay
 * behind; another layer of the host, at the latest. */
static uint32_t last_before(const Hosts *h, uint32_t i) {
    uint32_t k = i;
    while (k > 0 && i - k < LOOK && h->action[k - 1].kind != ACTION_HOST &&
           !in_conflict(h, i, k - 1))
        k--;
    return k;
}

static bool runs(const Action *a) {
    return a->kind == ACTION_RUN || a->kind == ACTION_COPY;
}

static uint64_t layers_cycles(const Hosts *h, uint32_t i, uint32_t end) {
    uint64_t sum = 0;
    for (; i < end; i++)
        if (runs(&h->action[i]))
            sum += action_cycles(h->plan, &h->action[i]);
    return sum;
}

static bool same_place(const Hosts *h, uint32_t a, uint32_t b) {
    return h->plan->placement[a].buffer == h->plan->placement[b].buffer;
}

/* Cycles of the stores that the layer of the host at `i` waits for. */
static uint64_t stores_cycles(const Hosts *h, uint32_t i) {
    const Action *host = &h->action[i];
    uint64_t sum = 0;
    for (uint32_t k = i; k > 0 && i - k < LOOK; k--) {
        const Action *a = &h->action[k - 1];
        for (uint32_t j = 0; a->kind == ACTION_STORE && j < host->n_in; j++)
            if (same_place(h, a->out, host->in[j]))
                sum += action_cycles(h->plan, a);
    }
    return sum;
}

static uint64_t loads_cycles(const Hosts *h, uint32_t i) {
    uint64_t sum = 0;
    for (uint32_t k = i + 1; k < h->plan->n_actions && k - i < LOOK; k++) {
        const Action *a = &h->action[k];
        if (a->kind == ACTION_LOAD && same_place(h, a->in[0], h->action[i].out))
            sum += action_cycles(h->plan, a);
    }
    return sum;
}

/* Where it is best, of [first, i]. */
static uint32_t place_for(const Hosts *h, uint32_t i, uint32_t first) {
    uint64_t stores = stores_cycles(h, i), loads = loads_cycles(h, i);
    uint64_t time = layers_cycles(h, first, i), wanted = stores;
    if (time < stores + loads)
        wanted = (uint64_t)((double)time * (double)stores /
                            (double)(stores + loads));
    for (uint64_t passed = 0; first < i && passed < wanted; first++)
        if (runs(&h->action[first]))
            passed += action_cycles(h->plan, &h->action[first]);
    return first;
}

static void move_up(Hosts *h, uint32_t i, uint32_t to) {
    Action host = h->action[i];
    for (; i > to; i--)
        h->action[i] = h->action[i - 1];
    h->action[to] = host;
}

/* Layers that run side by side stay so. */
static uint32_t between_steps(const Hosts *h, uint32_t at, uint32_t i) {
    while (at < i && at > 0 && h->action[at].step == h->action[at - 1].step)
        at++;
    return at;
}

bool hoist_hosts(Arena *arena, Plan *plan) {
    Hosts h = {.arena = arena, .plan = plan};
    bool any = false;
    h.action = ARENA_COPY(arena, Action, plan->action, plan->n_actions);
    for (uint32_t i = 0; i < plan->n_actions; i++) {
        if (h.action[i].kind != ACTION_HOST)
            continue;
        uint32_t first = last_before(&h, i);
        uint32_t to = between_steps(&h, place_for(&h, i, first), i);
        move_up(&h, i, to);
        any |= to < i;
    }
    plan->action = h.action;
    return any;
}
