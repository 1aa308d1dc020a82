/* sched.c - from a graph to steps, by a strategy from a table; see sched.h.
 *
 * In: a verified graph, whose order is topological. Out: steps in an order in
 * which every tensor is produced before it is read, and what runs each.
 * Invariants: each node but INPUT has exactly one step; the step of a CONCAT
 * comes right behind that of its last member.
 */
#include "sched/sched.h"

#include "base/text.h"
#include "sched/best.h"
#include "sched/orders.h"

#include <string.h>

const char *const side_by_side_name[SIDE_BY_SIDE_COUNT + 1] = {"order", "peak",
                                                         "steps", "time", NULL};

/* ---- the table ---- */

static void run_file(Arena *arena, const OrderTask *task, Ordering *out) {
    const OrderProblem *p = task->model->p;
    *out = ordering_serial(arena, p, order_as_given(arena, p));
}

static void run_depth_first(Arena *arena, const OrderTask *task,
                            Ordering *out) {
    const OrderProblem *p = task->model->p;
    *out = ordering_serial(arena, p, order_depth_first(arena, p));
}

static void run_random(Arena *arena, const OrderTask *task, Ordering *out) {
    const OrderProblem *p = task->model->p;
    *out =
        ordering_serial(arena, p, order_random(arena, p, task->options->seed));
}

/* The best of the quick orders is the one to beat; of equals the file's. */
static void run_best(Arena *arena, const OrderTask *task, Ordering *out) {
    const OrderProblem *p = task->model->p;
    const uint32_t *known[] = {order_as_given(arena, p),
                               order_depth_first(arena, p),
                               order_frugal(arena, p)};
    uint32_t least = 0;
    for (uint32_t i = 1; i < 3; i++)
        if (order_peak(arena, p, known[i], NULL) <
            order_peak(arena, p, known[least], NULL))
            least = i;
    Best best = order_best(arena, p, known[least], task->options->budget);
    *out = ordering_serial(arena, p, best.order);
    out->facts.bound = best.bound;
    out->facts.proved = best.proved;
    out->facts.states = best.states;
}

const Strategy strategies[] = {
    {"file", run_file, "the network's own order"},
    {"best", run_best, "the least peak of all orders, proved by search"},
    {"dfs", run_depth_first, "depth first: after a layer, its readers"},
    {"random", run_random, "drawn from the seed"},
    {"enumerate", enumerate_run,
     "all orders between joins, scored by steps and volumes alive"},
};
const uint32_t n_strategies = sizeof strategies / sizeof *strategies;

static const Strategy *strategy_find(Arena *arena, Diag *diag,
                                     const char *name) {
    for (uint32_t i = 0; i < n_strategies; i++)
        if (!strcmp(strategies[i].name, name))
            return &strategies[i];
    Text known = text_new(arena);
    for (uint32_t i = 0; i < n_strategies; i++)
        text_addf(&known, "%s%s", i ? ", " : "", strategies[i].name);
    diag_error(diag, (Loc){0}, "no schedule strategy \"%s\"; there are: %s",
               name, text_str(&known));
    return NULL;
}

/* ---- steps ---- */

static Step step_make(Arena *arena, const Model *m, const uint32_t *number,
                      uint32_t n, uint64_t *cycles) {
    Slot *slot = ARENA_ARRAY(arena, Slot, n);
    uint64_t longest = 0;
    for (uint32_t i = 0; i < n; i++) {
        NodeId node = m->node[number[i]];
        uint64_t one = model_cycles(m, number[i]);
        slot[i] = (Slot){node, m->legal[node.i]};
        longest = one > longest ? one : longest;
    }
    *cycles += longest;
    return (Step){n, slot};
}

static Schedule *schedule_make(Arena *arena, const Model *m,
                               const char *strategy, const Ordering *o) {
    const Graph *g = m->g;
    Step *step = ARENA_ARRAY(arena, Step, o->n_steps + 1);
    uint32_t *step_of = ARENA_ARRAY(arena, uint32_t, g->node.n + 1);
    uint64_t *live = ARENA_ARRAY(arena, uint64_t, o->n_steps + 1);
    Schedule *s = ARENA_NEW(arena, Schedule);
    *s = (Schedule){m->spec, g,       strategy, o->n_steps,
                    step,    step_of, o->facts, live};
    for (uint32_t i = 0; i < g->node.n; i++)
        step_of[i] = NONE;
    s->facts.peak =
        order_steps_peak(arena, m->p, o->n_steps, o->start, o->node, live);
    s->facts.proved = s->facts.bound && s->facts.bound >= s->facts.peak;
    s->facts.cycles = 0;
    for (uint32_t i = 0; i < o->n_steps; i++) {
        uint32_t first = o->start[i], n = o->start[i + 1] - first;
        step[i] = step_make(arena, m, o->node + first, n, &s->facts.cycles);
        for (uint32_t k = 0; k < n; k++)
            step_of[m->node[o->node[first + k]].i] = i;
    }
    return s;
}

const Schedule *sched_search(Arena *arena, Diag *diag, const HwSpec *spec,
                             const Graph *g, const SchedOptions *options) {
    const Strategy *strategy = strategy_find(arena, diag, options->strategy);
    if (!strategy)
        return NULL;
    Model model = spec && options->ahead
                      ? model_make_ahead(arena, spec, g, options->replication)
                      : model_make(arena, spec ? MODEL_MACHINE : MODEL_PLAIN,
                                   spec, g, options->replication);
    OrderTask task = {&model, options};
    Ordering o;
    strategy->run(arena, &task, &o);
    o.node = order_concats(arena, &model, o.node);
    if (options->aim != SIDE_BY_SIDE_NOT && spec)
        o = strategy->run == run_best ? pack_search(arena, &task, &o)
                                      : pack_along(arena, &model, &o);
    return schedule_make(arena, &model, strategy->name, &o);
}

const Schedule *sched_run(Arena *arena, Diag *diag, const HwSpec *spec,
                          const Graph *g, const char *strategy) {
    SchedOptions options = {.strategy = strategy, .replication = true};
    return sched_search(arena, diag, spec, g, &options);
}

/* ---- several images ---- */

static Step step_of_image(Arena *arena, const Step *one, uint32_t first_node) {
    Slot *slot = ARENA_COPY(arena, Slot, one->slot, one->n);
    for (uint32_t i = 0; i < one->n; i++)
        slot[i].node.i += first_node;
    return (Step){one->n, slot};
}

const Schedule *sched_repeat(Arena *arena, const Schedule *one,
                             const Graph *graph, uint32_t images) {
    uint32_t steps = one->n_steps, nodes = one->graph->node.n;
    Step *step = ARENA_ARRAY(arena, Step, images * steps + 1);
    uint32_t *step_of = ARENA_ARRAY(arena, uint32_t, images * nodes + 1);
    uint64_t *live = ARENA_ARRAY(arena, uint64_t, images * steps + 1);
    Schedule *all = ARENA_COPY(arena, Schedule, one, 1);
    for (uint32_t k = 0; k < images; k++) {
        for (uint32_t s = 0; s < steps; s++) {
            step[k * steps + s] =
                step_of_image(arena, &one->step[s], k * nodes);
            live[k * steps + s] = one->live[s];
        }
        for (uint32_t i = 0; i < nodes; i++)
            step_of[k * nodes + i] =
                one->step_of[i] == NONE ? NONE : k * steps + one->step_of[i];
    }
    all->graph = graph;
    all->n_steps = images * steps;
    all->step = step;
    all->step_of = step_of;
    all->live = live;
    all->facts.cycles *= images;
    return all;
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
