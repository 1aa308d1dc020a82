/* exposed_transfers.c - which transfers no layer hides, and why.
 *
 * Input: a plan of a machine that overlaps. Output: a line with sums, then
 * lines for the longest transfers in steps of their own: what they have to wait
 * for, and which layer runs next. Of a machine with a queue just the sums.
 */
#include "base/order.h"
#include "base/text.h"
#include "plan/access.h"
#include "plan/cost.h"

#include <stdlib.h>
#include <string.h>

enum { LOOK = 256 };

typedef struct Late {
    uint32_t action;
    uint64_t cycles;
} Late;

static int by_cycles(const void *a, const void *b) {
    const Late *x = a, *y = b;
    return order_by(ORDER_DOWN(x->cycles, y->cycles),
                    ORDER_UP(x->action, y->action));
}

static const char *name_of(const Plan *plan, const Action *a) {
    const Graph *g = plan->schedule->graph;
    if (a->node.i != NONE)
        return graph_node(g, a->node)->name;
    return graph_tensor(g, plan->placement[a->out].tensor)->name;
}

/* The next layer; NULL behind the last. */
static const char *layer_behind(const Plan *plan, uint32_t i) {
    for (; i < plan->n_actions; i++)
        if (plan->action[i].kind == ACTION_RUN ||
            plan->action[i].kind == ACTION_HOST)
            return name_of(plan, &plan->action[i]);
    return NULL;
}

static const char *kind_of(const Action *a) {
    return a->kind == ACTION_LOAD    ? "the load of "
           : a->kind == ACTION_STORE ? "the store of "
                                     : "";
}

static const char *num(Arena *arena, uint64_t n) {
    return with_commas(arena, n);
}

/* What the transfer waits for: the last action in front of it with which it
 * cannot change places; NULL: nothing. */
static const Action *waits_for(Arena *arena, const Plan *plan, uint32_t i) {
    Accesses own = accesses_of(arena, plan, &plan->action[i]);
    for (uint32_t k = i; k-- > 0 && k + LOOK > i;) {
        const Action *a = &plan->action[k];
        Accesses other = accesses_of(arena, plan, a);
        if (a->kind != ACTION_CONCAT && accesses_conflict(&own, &other))
            return a;
    }
    return NULL;
}

static const char *late_text(Arena *arena, const Plan *plan, const Late *late) {
    const Action *a = &plan->action[late->action];
    const Action *after = waits_for(arena, plan, late->action);
    const char *layer = layer_behind(plan, late->action);
    Text text = text_new(arena);
    text_addf(&text, "%s cycles: %s%s", num(arena, late->cycles),
              kind_of(a) + 4, name_of(plan, a));
    if (after && layer && after->kind == ACTION_RUN &&
        !strcmp(name_of(plan, after), layer)) {
        text_addf(&text, ", between two parts of %s", layer);
        return text_str(&text);
    }
    if (after)
        text_addf(&text, ", behind %s%s", kind_of(after), name_of(plan, after));
    if (layer)
        text_addf(&text, ", before %s", layer);
    return text_str(&text);
}

/* Transfers of which the same is to be said. */
typedef struct Same {
    const char *text;
    uint32_t n;
} Same;

/* The longest, each text once: how many transfers these are. */
static uint32_t say_late(Arena *arena, Text *text, const Plan *plan,
                         const Late *late, uint32_t n) {
    enum { LINES = 8, MOST = 500 };
    Same same[LINES];
    uint32_t lines = 0, said = 0;
    for (; said < n && said < MOST; said++) {
        const char *own = late_text(arena, plan, &late[said]);
        uint32_t i = 0;
        while (i < lines && strcmp(same[i].text, own) != 0)
            i++;
        if (i == LINES)
            break;
        if (i == lines)
            same[lines++] = (Same){own, 0};
        same[i].n++;
    }
    for (uint32_t i = 0; i < lines; i++)
        if (same[i].n > 1)
            text_addf(text, "  %u times %s\n", same[i].n, same[i].text);
        else
            text_addf(text, "  %s\n", same[i].text);
    return said;
}

typedef struct Sums {
    uint64_t all, hidden; /* cycles of transfers */
    VEC(Late) late;
} Sums;

/* The actions [i, end) of one listing step. */
static void add_step(Arena *arena, Sums *sums, const Plan *plan, uint32_t i,
                     uint32_t end) {
    bool alone = true;
    for (uint32_t k = i; k < end; k++)
        alone &= is_move(&plan->action[k]);
    for (uint32_t k = i; k < end; k++) {
        if (!is_move(&plan->action[k]))
            continue;
        uint64_t cycles = action_cycles(plan, &plan->action[k]);
        sums->all += cycles;
        sums->hidden += alone ? 0 : cycles;
        if (alone)
            vec_push(arena, &sums->late, ((Late){k, cycles}));
    }
}

/* Where a queue decides what runs beside what, steps say nothing of that. */
static const char *queue_time(Arena *arena, const Plan *plan) {
    uint64_t layers = 0, volumes = 0, weights = 0;
    for (uint32_t i = 0; i < plan->n_actions; i++) {
        const Action *a = &plan->action[i];
        uint64_t cycles = action_cycles(plan, a);
        layers += a->kind == ACTION_RUN ? cycles : 0;
        volumes += is_move(a) ? cycles : 0;
        weights += loads_constants(a) ? cycles : 0;
    }
    return arena_printf(arena,
                        "time: %s cycles; layers take %s, and beside them "
                        "transfers of volumes %s, of weights %s\n",
                        num(arena, plan->cycles), num(arena, layers),
                        num(arena, volumes), num(arena, weights));
}

const char *plan_explain_time(Arena *arena, const Plan *plan) {
    if (plan->schedule->spec->tiling.rows.moves == HW_MOVES_QUEUED)
        return queue_time(arena, plan);
    Sums sums = {0};
    Text text = text_new(arena);
    for (uint32_t i = 0, end; i < plan->n_actions; i = end) {
        for (end = i; end < plan->n_actions &&
                      plan->action[end].step == plan->action[i].step;
             end++)
            continue;
        add_step(arena, &sums, plan, i, end);
    }
    if (!plan->cycles || !sums.all)
        return "";
    text_addf(&text,
              "time: %s cycles; transfers take %s, of which %s pass while "
              "layers run\n",
              num(arena, plan->cycles), num(arena, sums.all),
              num(arena, sums.hidden));
    if (sums.late.n)
        qsort(sums.late.at, sums.late.n, sizeof *sums.late.at, by_cycles);
    uint32_t said = say_late(arena, &text, plan, sums.late.at, sums.late.n);
    if (said < sums.late.n)
        text_addf(&text, "  and %u shorter ones\n", sums.late.n - said);
    return text_str(&text);
}
