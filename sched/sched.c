/* sched.c - from a graph to steps, by a strategy from a table; see sched.h.
 *
 * In: a verified graph, whose order is topological. Out: steps in an order in
 * which every tensor is produced before it is read, and what runs each.
 * Invariants: each node but INPUT has exactly one step; the step of a CONCAT
 * comes right behind that of its last member.
 */
#include "sched/sched.h"

#include "base/text.h"

#include <string.h>

/* ---- steps from an order ---- */

static Step one_slot(Arena *arena, const HwSpec *spec, const Graph *g,
                     NodeId node) {
    Slot *slot = ARENA_NEW(arena, Slot);
    *slot = (Slot){node, legal_check(arena, spec, g, node)};
    return (Step){1, slot};
}

/* One step a node, in the order given. */
static const Schedule *serial(Arena *arena, const HwSpec *spec, const Graph *g,
                              const char *strategy, uint32_t n,
                              const NodeId *order) {
    Step *step = ARENA_ARRAY(arena, Step, n);
    uint32_t *step_of = ARENA_ARRAY(arena, uint32_t, g->node.n);
    for (uint32_t i = 0; i < g->node.n; i++)
        step_of[i] = NONE;
    for (uint32_t i = 0; i < n; i++) {
        step[i] = one_slot(arena, spec, g, order[i]);
        step_of[order[i].i] = i;
    }
    Schedule *schedule = ARENA_NEW(arena, Schedule);
    *schedule = (Schedule){spec, g, strategy, n, step, step_of};
    return schedule;
}

/* ---- the file's order ---- */

typedef struct FileOrder {
    const Graph *g;
    Uses uses;
    uint32_t *waits; /* by node: inputs of a CONCAT that have no step yet */
    NodeId *order;
    uint32_t n;
    uint32_t *stack; /* nodes that are done, whose concats are to be told */
} FileOrder;

/* Concats follow their last member at once, and so on outwards. */
static void put_concats(FileOrder *f, uint32_t done) {
    uint32_t depth = 0;
    f->stack[depth++] = done;
    while (depth) {
        const Node *node = &f->g->node.at[f->stack[--depth]];
        for (uint32_t o = 0; o < node->n_out; o++) {
            uint32_t t = node->out[o].i;
            for (uint32_t u = f->uses.start[t]; u < f->uses.start[t + 1]; u++) {
                NodeId reader = f->uses.node[u];
                if (graph_node(f->g, reader)->op != OP_CONCAT ||
                    --f->waits[reader.i])
                    continue;
                f->order[f->n++] = reader;
                f->stack[depth++] = reader.i;
            }
        }
    }
}

static const Schedule *file_order(Arena *arena, const HwSpec *spec,
                                  const Graph *g) {
    FileOrder f = {
        .g = g,
        .uses = graph_uses(arena, g),
        .waits = ARENA_ARRAY(arena, uint32_t, g->node.n),
        .order = ARENA_ARRAY(arena, NodeId, g->node.n),
        .stack = ARENA_ARRAY(arena, uint32_t, g->node.n + 1),
    };
    for (uint32_t i = 0; i < g->node.n; i++)
        f.waits[i] = g->node.at[i].n_in;
    for (uint32_t i = 0; i < g->node.n; i++) {
        if (g->node.at[i].op == OP_CONCAT)
            continue;
        if (g->node.at[i].op != OP_INPUT)
            f.order[f.n++] = (NodeId){i};
        put_concats(&f, i);
    }
    return serial(arena, spec, g, "file", f.n, f.order);
}

/* ---- the table ---- */

const Strategy strategies[] = {
    {"file", file_order, "the network's own order, one layer a step"},
};
const uint32_t n_strategies = sizeof strategies / sizeof *strategies;

const Schedule *sched_run(Arena *arena, Diag *diag, const HwSpec *spec,
                          const Graph *g, const char *strategy) {
    for (uint32_t i = 0; i < n_strategies; i++)
        if (!strcmp(strategies[i].name, strategy))
            return strategies[i].run(arena, spec, g);
    Text known = text_new(arena);
    for (uint32_t i = 0; i < n_strategies; i++)
        text_addf(&known, "%s%s", i ? ", " : "", strategies[i].name);
    diag_error(diag, (Loc){0}, "no schedule strategy \"%s\"; there are: %s",
               strategy, text_str(&known));
    return NULL;
}

/* ---- text ---- */

static void print_slot(Text *text, const Schedule *s, const Slot *slot) {
    const char *runs = "concat";
    if (slot->legal.engine >= 0)
        runs = s->spec->engine[slot->legal.engine].name;
    else if (slot->legal.op == HW_OP_HOST)
        runs = "host";
    text_addf(text, " %s %s", runs, graph_node(s->graph, slot->node)->name);
    if (slot->legal.reason)
        text_addf(text, " (%s)", slot->legal.reason);
}

const char *sched_print(Arena *arena, const Schedule *schedule) {
    Text text = text_new(arena);
    for (uint32_t i = 0; i < schedule->n_steps; i++) {
        text_addf(&text, "%u", i + 1);
        for (uint32_t k = 0; k < schedule->step[i].n; k++) {
            text_add(&text, k ? " |" : "");
            print_slot(&text, schedule, &schedule->step[i].slot[k]);
        }
        text_add(&text, "\n");
    }
    return text_str(&text);
}
