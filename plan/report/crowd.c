/* crowd.c - how full active memory is by step, and would be; see crowd.h. */
#include "plan/report/crowd.h"

#include "base/order.h"

#include <stdlib.h>

uint64_t whole_bytes(const Crowd *y, TensorId t) {
    Volume v = plan_volume(y->g, t);
    v.repl = y->plan->repl[t.i];
    return layout_bytes(y->spec->memory[0].layout, &v);
}

uint32_t fullest(const uint64_t *bytes, uint32_t first, uint32_t end) {
    uint32_t at = first;
    for (uint32_t s = first; s < end; s++)
        if (bytes[s] > bytes[at])
            at = s;
    return at;
}

uint64_t first_channels(const Crowd *y, const Story *s, uint32_t channels) {
    const Placement *p = &y->plan->placement[s->abode.at[0].placement];
    const Layout *layout = y->spec->memory[p->memory].layout;
    return channels && channels < p->n_c
               ? layout_part_offset(layout, &p->whole, p->part_c + channels) -
                     layout_part_offset(layout, &p->whole, p->part_c)
               : 0;
}

uint32_t gaps_of(const Crowd *y, const Story *s, Gap **out) {
    uint32_t n = 0;
    *out = ARENA_ARRAY(y->arena, Gap, s->abode.n);
    for (uint32_t i = 1; i < s->abode.n; i++) {
        const Abode *next = &s->abode.at[i];
        Gap gap = {s->abode.at[i - 1].end, next->first, next->kept,
                   next->kept_last};
        if (s->used != NONE && gap.first <= s->used)
            (*out)[n++] = gap;
    }
    return n;
}

/* The last step in which the tensor, or the concat that it lies in, is read. */
static uint32_t read_last(const Story *story, TensorId t) {
    uint32_t last = 0;
    for (; t.i != NONE; t = story[t.i].inside)
        if (story[t.i].used != NONE && story[t.i].used > last)
            last = story[t.i].used;
    return last;
}

/* Concats begin with the first of their members. */
static uint32_t made_first(const Crowd *y, TensorId t) {
    const Story *s = &y->story[t.i];
    const Node *node = graph_node(y->g, graph_tensor(y->g, t)->producer);
    uint32_t first = s->made == NONE ? s->read : s->made;
    for (uint32_t i = 0; node->op == OP_CONCAT && i < node->n_in; i++) {
        uint32_t made = y->story[node->in[i].i].made;
        first = made < first ? made : first;
    }
    return first;
}

static void find_lives(Crowd *y) {
    y->life = ARENA_ARRAY(y->arena, Steps, y->g->tensor.n + 1);
    for (TensorId t = {0}; t.i < y->g->tensor.n; t.i++) {
        uint32_t first = made_first(y, t), last = read_last(y->story, t);
        if (first != NONE)
            y->life[t.i] = (Steps){first, (last > first ? last : first) + 1};
    }
}

/* Nodes that write over an operand which nobody reads later, where the machine
 * does that: in this step what they make takes no bytes of its own. */
static bool over_operand(const Crowd *y, const Node *node, uint32_t step) {
    bool pointwise =
        node->op == OP_ELTWISE || node->op == OP_SCALE || node->op == OP_ACT;
    bool in_place = false, free = false;
    for (uint32_t e = 0; pointwise && e < y->spec->n_engines; e++)
        in_place |= y->spec->engine[e].in_place;
    for (uint32_t i = 0; in_place && i < node->n_in; i++)
        free |= y->life[node->in[i].i].end <= step + 1;
    return free;
}

/* Concats are their members; what the host makes lies over nothing. */
static void find_whole(Crowd *y) {
    const Schedule *schedule = y->plan->schedule;
    y->whole = ARENA_ARRAY(y->arena, uint64_t, schedule->n_steps + 1);
    for (TensorId t = {0}; t.i < y->g->tensor.n; t.i++) {
        const Node *node = graph_node(y->g, graph_tensor(y->g, t)->producer);
        Steps life = y->life[t.i];
        uint32_t over =
            !y->story[t.i].by_host && over_operand(y, node, life.first);
        if (node->op == OP_CONCAT)
            continue;
        for (uint32_t step = life.first + over; step < life.end; step++)
            y->whole[step] += whole_bytes(y, t);
    }
}

/* Bytes [first, end) that are in use in a step; memories lie behind each other.
 */
typedef struct Bytes {
    uint32_t step;
    uint64_t first, end;
} Bytes;
typedef VEC(Bytes) Used;

static int by_first(const void *a, const void *b) {
    const Bytes *x = a, *y = b;
    return order_by(ORDER_UP(x->step, y->step), ORDER_UP(x->first, y->first));
}

/* `bytes` of its place, from `at` on. */
static void use_add(const Crowd *y, Used *used, uint32_t step,
                    const Placement *p, uint64_t at, uint64_t bytes) {
    enum { MEMORY_BITS = 48 };
    uint64_t first = ((uint64_t)p->memory << MEMORY_BITS) + p->offset + at;
    vec_push(y->arena, used, ((Bytes){step, first, first + bytes}));
}

/* Channels that stay between two times at which all are there. */
static void kept_add(const Crowd *y, Used *used, const Story *s) {
    Gap *gap;
    uint32_t n = gaps_of(y, s, &gap);
    const Placement *p =
        &y->plan->placement[s->abode.n ? s->abode.at[0].placement : 0];
    for (uint32_t i = 0; i < n; i++) {
        if (!gap[i].kept || gap[i].kept == NONE)
            continue;
        uint64_t bytes = first_channels(y, s, gap[i].kept);
        uint64_t at = gap[i].last ? p->bytes - bytes : 0;
        for (uint32_t step = gap[i].first; step < gap[i].end; step++)
            use_add(y, used, step, p, at, bytes);
    }
}

/* Places overlap where a concat is filled in those of others. */
static void find_use(Crowd *y) {
    const PlanStepUse *use;
    Used used = {0};
    uint32_t n = plan_step_use(y->arena, y->plan, &use);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < use[i].n; k++) {
            const Placement *p = &y->plan->placement[use[i].placement[k]];
            use_add(y, &used, use[i].step, p, 0, p->bytes);
        }
    for (TensorId t = {0}; t.i < y->g->tensor.n; t.i++)
        kept_add(y, &used, &y->story[t.i]);
    if (used.n)
        qsort(used.at, used.n, sizeof *used.at, by_first);
    y->live = ARENA_ARRAY(y->arena, uint64_t, n + 1);
    uint64_t end = 0;
    for (uint32_t i = 0; i < used.n; i++) {
        const Bytes *b = &used.at[i];
        end = i && b[-1].step == b->step ? end : 0;
        uint64_t first = b->first > end ? b->first : end;
        y->live[b->step] += b->end > first ? b->end - first : 0;
        end = b->end > end ? b->end : end;
    }
    for (uint32_t m = 0; m < y->spec->n_active; m++)
        y->total += y->spec->memory[m].size;
}

Crowd crowd_of(Arena *arena, const Plan *plan) {
    Crowd y = {.arena = arena,
               .plan = plan,
               .g = plan->schedule->graph,
               .spec = plan->schedule->spec,
               .story = plan_stories(arena, plan)};
    find_use(&y);
    find_lives(&y);
    find_whole(&y);
    return y;
}
