/* late.c - which transfers no layer hides, and why.
 *
 * Input: a plan of a machine that overlaps. Output: a line with sums, then one
 * for each of the longest transfers in steps of their own: before which layer,
 * and what they have to wait for.
 */
#include "alloc/overlap.h"
#include "base/text.h"

#include <stdlib.h>

enum { LINES = 8, LOOK = 256 };

typedef struct Late {
    uint32_t action;
    uint64_t cycles;
} Late;

static bool is_move(const Action *a) {
    return a->kind == ACTION_LOAD || a->kind == ACTION_STORE;
}

static int by_cycles(const void *a, const void *b) {
    const Late *x = a, *y = b;
    if (x->cycles != y->cycles)
        return x->cycles > y->cycles ? -1 : 1;
    return x->action < y->action ? -1 : x->action > y->action;
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

/* What the transfer waits for: the last action in front of it with which it
 * cannot change places. */
static void say_reason(Arena *arena, Text *text, const Plan *plan, uint32_t i) {
    Accesses own = accesses_of(arena, plan, &plan->action[i]);
    for (uint32_t k = i; k-- > 0 && k + LOOK > i;) {
        const Action *a = &plan->action[k];
        Accesses other = accesses_of(arena, plan, a);
        if (a->kind != ACTION_CONCAT && accesses_conflict(&own, &other)) {
            text_addf(text, ", behind %s%s", kind_of(a), name_of(plan, a));
            return;
        }
    }
    text_add(text, ", first of all");
}

static void say_late(Arena *arena, Text *text, const Plan *plan,
                     const Late *late) {
    const Action *a = &plan->action[late->action];
    const char *layer = layer_behind(plan, late->action);
    text_addf(text, "  %llu cycles: %s%s", (unsigned long long)late->cycles,
              kind_of(a) + 4, name_of(plan, a));
    if (layer)
        text_addf(text, " before %s", layer);
    say_reason(arena, text, plan, late->action);
    text_add(text, "\n");
}

const char *plan_explain_time(Arena *arena, const Plan *plan) {
    VEC(Late) late = {0};
    uint64_t all = 0, hidden = 0;
    Text text = text_new(arena);
    for (uint32_t i = 0, end; i < plan->n_actions; i = end) {
        bool alone = true;
        for (end = i; end < plan->n_actions &&
                      plan->action[end].step == plan->action[i].step;
             end++)
            alone &= is_move(&plan->action[end]);
        for (uint32_t k = i; k < end; k++) {
            if (!is_move(&plan->action[k]))
                continue;
            uint64_t cycles = action_cycles(plan, &plan->action[k]);
            all += cycles;
            hidden += alone ? 0 : cycles;
            if (alone)
                vec_push(arena, &late, ((Late){k, cycles}));
        }
    }
    if (!plan->cycles || !all)
        return "";
    text_addf(&text,
              "time: %llu cycles; transfers take %llu, of which %llu in steps "
              "of layers\n",
              (unsigned long long)plan->cycles, (unsigned long long)all,
              (unsigned long long)hidden);
    if (late.n)
        qsort(late.at, late.n, sizeof *late.at, by_cycles);
    for (uint32_t i = 0; i < late.n && i < LINES; i++)
        say_late(arena, &text, plan, &late.at[i]);
    if (late.n > LINES)
        text_addf(&text, "  and %u shorter ones\n", late.n - LINES);
    return text_str(&text);
}
