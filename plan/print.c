/* print.c - the plan as text, and what lies in active memory at each step. */
#include "base/order.h"
#include "base/text.h"
#include "plan/plan.h"

#include <stdlib.h>

static const char *const kind_name[] = {
    [ACTION_LOAD] = "load",       [ACTION_STORE] = "store",
    [ACTION_RUN] = "run",         [ACTION_COPY] = "copy",
    [ACTION_WEIGHTS] = "weights", [ACTION_BIAS] = "bias",
    [ACTION_CONCAT] = "concat",   [ACTION_HOST] = "host"};

static const char *tensor_name(const Plan *plan, TensorId t) {
    return graph_tensor(plan->schedule->graph, t)->name;
}

static void print_placement(Text *text, const Plan *plan, uint32_t i) {
    const Placement *p = &plan->placement[i];
    const Volume *v = &p->whole;
    text_addf(text, "p%u %s %s rows %u..%u of %ux%ux%u", i,
              tensor_name(plan, p->tensor),
              plan->schedule->spec->memory[p->memory].name, p->row,
              p->row + p->rows - 1, v->c, v->h, v->w);
    if (p->ring)
        text_add(text, " ring");
    if (p->n_c < plan_volume(plan->schedule->graph, p->tensor).c)
        text_addf(text, " channels %u..%u", p->c, p->c + p->n_c - 1);
    if (p->part_c > p->c)
        text_addf(text, " channel %u", p->part_c - p->c);
    if (v->repl.sections)
        text_addf(text, " copies %u/%u/%u/%u", v->repl.full, v->repl.sections,
                  v->repl.units, v->repl.width);
    text_addf(text, " at 0x%llx bytes %llu buffer %u steps %u..%u\n",
              (unsigned long long)p->offset, (unsigned long long)p->bytes,
              p->buffer, p->first, p->end - 1);
}

static void print_rows(Text *text, const Action *a) {
    text_addf(text, " rows %u..%u", a->row, a->row + a->rows - 1);
    if (a->kind != ACTION_RUN)
        return;
    if (a->n_tiles > 1)
        text_addf(text, " tile %u/%u from %u..%u pad %u", a->tile, a->n_tiles,
                  a->in_row, a->in_row + a->in_rows - 1, a->pad_top);
    if (a->style >= 0)
        text_addf(text, " style %d tile %ux%u", a->style, a->tile_w, a->tile_h);
    if (a->nest.c)
        text_addf(text, "x%u of %u, %s", a->nest.c, a->nest.in_c,
                  a->nest.weights_stay ? "weights stay" : "input stays");
}

static void print_block(Text *text, const Plan *plan, const Action *a) {
    const ConstantBlock *b = &plan->block[a->weights - 1];
    const Graph *g = plan->schedule->graph;
    text_addf(text, " weights %u..%u from %u", b->c, b->c + b->n_c - 1,
              b->in_c);
    if (b->kernel.n < kernel_area(g, graph_node(g, b->node)))
        text_addf(text, " taps %u..%u", b->kernel.first,
                  b->kernel.first + b->kernel.n - 1);
    text_addf(text, " at 0x%llx bytes %llu", (unsigned long long)b->offset,
              (unsigned long long)b->bytes);
}

static void print_action(Text *text, const Plan *plan, const Action *a) {
    text_addf(text, "%u %s", a->step, kind_name[a->kind]);
    if (a->node.i != NONE)
        text_addf(text, " %s",
                  graph_node(plan->schedule->graph, a->node)->name);
    else
        text_addf(text, " %s",
                  tensor_name(plan, plan->placement[a->out].tensor));
    for (uint32_t i = 0; i < a->n_in; i++)
        text_addf(text, " p%u", a->in[i]);
    if (!loads_constants(a)) {
        text_addf(text, " -> p%u", a->out);
        print_rows(text, a);
    }
    if (a->weights)
        print_block(text, plan, a);
    if (a->bias)
        text_addf(text, " bias %u..%u at 0x%llx", plan->bias[a->bias - 1].c,
                  plan->bias[a->bias - 1].c + plan->bias[a->bias - 1].n_c - 1,
                  (unsigned long long)plan->bias[a->bias - 1].offset);
    text_add(text, "\n");
}

const char *plan_print(Arena *arena, const Plan *plan) {
    Text text = text_new(arena);
    text_addf(&text, "plan %s levels %d planner %s height %llu bound %llu\n",
              plan->schedule->graph->name, plan->two_levels ? 2 : 1,
              plan->planner, (unsigned long long)plan->am_height,
              (unsigned long long)plan->am_bound);
    for (uint32_t i = 0; i < plan->n_placements; i++)
        print_placement(&text, plan, i);
    for (uint32_t i = 0; i < plan->n_actions; i++)
        print_action(&text, plan, &plan->action[i]);
    return text_str(&text);
}

/* ---- use by step ---- */

typedef struct Alive {
    const Plan *plan;
    uint32_t index;
} Alive;

/* Of placements that share a buffer, the one of most channels and rows comes
 * first. */
static int by_buffer(const void *a, const void *b) {
    const Alive *x = a, *y = b;
    const Placement *p = &x->plan->placement[x->index];
    const Placement *q = &y->plan->placement[y->index];
    uint32_t pc = plan_volume(x->plan->schedule->graph, p->tensor).c;
    uint32_t qc = plan_volume(y->plan->schedule->graph, q->tensor).c;
    return order_by(ORDER_UP(p->buffer, q->buffer),
                    order_by3(ORDER_DOWN(pc, qc), ORDER_DOWN(p->rows, q->rows),
                              ORDER_UP(x->index, y->index)));
}

static int by_size(const void *a, const void *b) {
    const Alive *x = a, *y = b;
    uint64_t p = x->plan->placement[x->index].bytes;
    uint64_t q = y->plan->placement[y->index].bytes;
    return order_by(ORDER_DOWN(p, q), ORDER_UP(x->index, y->index));
}

/* One placement for each buffer of active memory, largest first. */
static Alive *buffers_of(Arena *arena, const Plan *plan, uint32_t *n) {
    Alive *all = ARENA_ARRAY(arena, Alive, plan->n_placements + 1);
    uint32_t count = 0;
    *n = 0;
    for (uint32_t i = 0; i < plan->n_placements; i++)
        if (plan->placement[i].memory < plan->schedule->spec->n_active)
            all[count++] = (Alive){plan, i};
    if (!count)
        return all;
    qsort(all, count, sizeof *all, by_buffer);
    for (uint32_t i = 0; i < count; i++)
        if (i == 0 || plan->placement[all[i].index].buffer !=
                          plan->placement[all[*n - 1].index].buffer)
            all[(*n)++] = all[i];
    qsort(all, *n, sizeof *all, by_size);
    return all;
}

uint32_t plan_step_use(Arena *arena, const Plan *plan,
                       const PlanStepUse **out) {
    uint32_t n, steps = plan->schedule->n_steps;
    Alive *buffer = buffers_of(arena, plan, &n);
    PlanStepUse *use = ARENA_ARRAY(arena, PlanStepUse, steps + 1);
    uint32_t *start = ARENA_ARRAY(arena, uint32_t, steps + 1);
    for (uint32_t i = 0; i < n; i++) {
        const Placement *p = &plan->placement[buffer[i].index];
        for (uint32_t s = p->first; s < p->end; s++)
            start[s]++;
    }
    for (uint32_t s = 0; s < steps; s++) {
        use[s].step = s;
        use[s].placement = ARENA_ARRAY(arena, uint32_t, start[s] + 1);
    }
    for (uint32_t i = 0; i < n; i++) {
        const Placement *p = &plan->placement[buffer[i].index];
        for (uint32_t s = p->first; s < p->end; s++) {
            ((uint32_t *)use[s].placement)[use[s].n++] = buffer[i].index;
            use[s].bytes += p->bytes;
        }
    }
    *out = use;
    return steps;
}
