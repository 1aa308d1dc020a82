/* explain_weights.c - one line for each layer whose weights are loaded into
 * active memory: in how many blocks, why so many, and how early they are there;
 * see weights.h.
 *
 * Input: a plan with blocks of weights. Output: text, or sums.
 */
#include "plan/issue_queue.h"
#include "plan/report/explain.h"

#include "base/text.h"

/* What is loaded of a layer's weights. */
typedef struct Loads {
    uint32_t blocks;
    const ConstantBlock *most; /* the largest */
    uint64_t bytes;
    uint64_t early; /* cycles between a load's end and its use: the fewest */
    uint64_t waits; /* cycles in which the engine has nothing else to do */
    uint32_t step;  /* index in schedule->step */
} Loads;

typedef struct Told {
    Arena *arena;
    const Plan *plan;
    Loads *of;        /* by node */
    uint64_t *there;  /* by block: the cycle at which it is loaded; */
    uint64_t *needed; /* at which its first run begins; UINT64_MAX */
} Told;

static const char *num(const Told *t, uint64_t n) {
    return with_commas(t->arena, n);
}

/* ---- when ---- */

static void add_run(Told *t, const Action *a, uint64_t begin, uint64_t free) {
    uint32_t block = a->weights - 1;
    Loads *l = &t->of[a->node.i];
    l->step = a->at;
    if (t->needed[block] != UINT64_MAX)
        return;
    t->needed[block] = begin;
    uint64_t early = begin - t->there[block];
    l->early = early < l->early ? early : l->early;
    if (!early && begin > free)
        l->waits += begin - free;
}

static void find_times(Told *t) {
    Queue q = {.arena = arena_new("explain"), .plan = t->plan};
    for (uint32_t i = 0; i < t->plan->n_actions; i++) {
        const Action *a = &t->plan->action[i];
        bool runs = a->kind == ACTION_RUN;
        uint64_t free = runs ? q.done[a->legal.engine] : 0;
        Touched touched = touched_by(q.arena, t->plan, a);
        queue_add(&q, a, &touched, (QueueReady){0});
        if (a->kind == ACTION_WEIGHTS)
            t->there[a->weights - 1] = q.done[unit_of(t->plan, a)];
        else if (runs && a->weights)
            add_run(t, a, q.done[a->legal.engine] - action_cycles(t->plan, a),
                    free);
    }
    arena_free(q.arena);
}

static void find_blocks(Told *t) {
    for (uint32_t i = 0; i < t->plan->n_blocks; i++) {
        const ConstantBlock *b = &t->plan->block[i];
        Loads *l = &t->of[b->node.i];
        l->early = UINT64_MAX;
        l->blocks++;
        l->bytes += b->bytes;
        if (!l->most || b->bytes > l->most->bytes)
            l->most = b;
        t->needed[i] = UINT64_MAX;
    }
}

/* ---- in words ---- */

/* Of what the largest block is, where not of all. */
static void say_largest(const Told *t, Text *text, const Loads *l) {
    const Graph *g = t->plan->schedule->graph;
    const Node *node = graph_node(g, l->most->node);
    uint32_t area = kernel_area(g, node), inputs = weight_taps(g, node) / area;
    uint32_t some = l->most->taps / l->most->kernel.n;
    text_addf(text, "%u blocks of at most %u channels", l->blocks,
              l->most->n_c);
    if (some < inputs)
        text_addf(text, ", %u of %u input channels", some, inputs);
    if (l->most->kernel.n < area)
        text_addf(text, ", %u of %u taps", l->most->kernel.n, area);
    text_addf(text, ", %s bytes", num(t, l->most->bytes));
}

/* `room`: bytes that volumes leave in the layer's step, or of the memory. */
static void say_blocks(const Told *t, Text *text, const Loads *l,
                       uint64_t bytes, uint64_t room) {
    const HwSpec *spec = t->plan->schedule->spec;
    if (l->blocks == 1) {
        text_add(text, "one block");
        return;
    }
    say_largest(t, text, l);
    if (l->most->bytes < bytes) {
        text_add(text, bytes > room ? ", as "
                                    : ", which are there earlier than all "
                                      "would be, though ");
        if (spec->weights)
            text_addf(text, "%s has ", spec->memory[spec->weights].name);
        else
            text_addf(text, "volumes of step %u leave ", l->step + 1);
        text_addf(text, "%s bytes", num(t, room));
    }
    if (l->bytes > bytes)
        text_addf(text, "; %s bytes loaded: some again", num(t, l->bytes));
}

static void say_when(const Told *t, Text *text, const Loads *l) {
    if (l->waits)
        text_addf(text, "; its engine waits %s cycles for them",
                  num(t, l->waits));
    else if (l->early)
        text_addf(text, "; there %s%s cycles before they are read",
                  l->blocks > 1 ? "at least " : "", num(t, l->early));
    else
        text_add(text, "; there just when they are read");
}

static void say_layer(const Told *t, Text *text, NodeId id,
                      const uint64_t *live) {
    const Graph *g = t->plan->schedule->graph;
    const HwSpec *spec = t->plan->schedule->spec;
    const Node *node = graph_node(g, id);
    const Loads *l = &t->of[id.i];
    uint32_t channels = plan_volume(g, node->out[0]).c;
    uint64_t bytes = (uint64_t)weight_taps(g, node) * channels * spec->element;
    uint64_t size = spec->memory[spec->weights].size;
    uint64_t used = spec->weights ? 0 : live[l->step];
    text_addf(text, "weights of %s (%s bytes, %u channels): ", node->name,
              num(t, bytes), channels);
    say_blocks(t, text, l, bytes, size > used ? size - used : 0);
    say_when(t, text, l);
    text_add(text, "\n");
}

const char *explain_weights(Arena *arena, const Plan *plan,
                            const uint64_t *live) {
    uint32_t n = plan->schedule->graph->node.n;
    Text text = text_new(arena);
    Told t = {.arena = arena,
              .plan = plan,
              .of = ARENA_ARRAY(arena, Loads, n + 1),
              .there = ARENA_ARRAY(arena, uint64_t, plan->n_blocks + 1),
              .needed = ARENA_ARRAY(arena, uint64_t, plan->n_blocks + 1)};
    find_blocks(&t);
    find_times(&t);
    for (NodeId id = {0}; id.i < n; id.i++)
        if (t.of[id.i].blocks)
            say_layer(&t, &text, id, live);
    return text_str(&text);
}

/* ---- sums ---- */

PlanWeights plan_weights(const Plan *plan) {
    Arena *arena = arena_new("weights");
    uint32_t *last = ARENA_ARRAY(arena, uint32_t, plan->n_blocks + 1);
    PlanWeights sum = {.blocks = plan->n_blocks};
    for (uint32_t i = 0; i < plan->n_actions; i++)
        if (plan->action[i].weights)
            last[plan->action[i].weights - 1] = i;
    uint64_t now = 0;
    for (uint32_t i = 0; i < plan->n_actions; i++) {
        const Action *a = &plan->action[i];
        if (!a->weights)
            continue;
        const ConstantBlock *b = &plan->block[a->weights - 1];
        if (a->kind == ACTION_WEIGHTS) {
            now += b->bytes;
            sum.loaded += b->bytes;
            sum.most = now > sum.most ? now : sum.most;
            if (b->offset + b->bytes > sum.end)
                sum.end = b->offset + b->bytes;
        }
        if (last[a->weights - 1] == i)
            now -= b->bytes;
    }
    arena_free(arena);
    return sum;
}
