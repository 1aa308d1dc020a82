/* biases.c - loads of biases into a memory of their own; see weights.h.
 *
 * Input: a plan whose weights are loaded. Output: the same; in front of each
 * run that begins sums, its layer's biases are in the memory of that role: all
 * of the layer where half of the memory holds them, else those of the run.
 * Blocks follow each other around the memory. One is loaded in front of the
 * weights of the first run that reads it, or as soon as nobody reads what lay
 * there, and behind the block before.
 */
#include "alloc/weights/weights.h"

#include "base/arith.h"
#include "hwspec/cost.h"

typedef struct Lying {
    uint32_t block; /* number + 1 */
    uint32_t used;  /* the last action so far that reads it */
} Lying;

typedef struct Biases {
    Arena *arena;
    const Plan *plan;
    const Graph *g;
    const HwSpec *spec;
    uint32_t *load_of; /* by block of weights: its load */
    uint32_t *reads;   /* by action: number + 1 of a block */
    uint32_t *before;  /* by block: it is loaded in front of this action */
    VEC(ConstantBlock) block;
    VEC(Lying) lying;
    uint64_t next;  /* byte behind the last block */
    uint32_t front; /* the last block is loaded in front of this action */
} Biases;

/* ---- blocks ---- */

static bool reads_bias(const Biases *b, const Action *a) {
    return a->kind == ACTION_RUN && hwspec_loads_bias(b->spec, a->legal.op) &&
           graph_node(b->g, a->node)->constant[CONST_BIAS].i != NONE &&
           addends_begin(action_addends(b->plan, a));
}

static ConstantBlock block_for(const Biases *b, const Action *a) {
    const HwMemory *m = &b->spec->memory[b->spec->bias];
    const Placement *out = &b->plan->placement[a->out];
    uint32_t all = plan_volume(b->g, graph_node(b->g, a->node)->out[0]).c;
    uint64_t skipped = (uint64_t)out->c * m->layout->element;
    bool whole = (uint64_t)all * m->layout->element <= m->size / 2 &&
                 (!m->align || skipped % m->align == 0);
    ConstantBlock block = {.node = a->node,
                           .c = whole ? 0 : out->c,
                           .n_c = whole ? all : out->n_c,
                           .from = b->plan->block[a->weights - 1].from};
    block.bytes = (uint64_t)block.n_c * m->layout->element;
    return block;
}

/* What a run reads of it must have an address. */
static bool holds(const HwMemory *m, const ConstantBlock *block,
                  const Action *a, const Placement *out) {
    uint64_t skipped = (uint64_t)(out->c - block->c) * m->layout->element;
    return block->node.i == a->node.i &&
           (!m->align || skipped % m->align == 0) && block->c <= out->c &&
           out->c + out->n_c <= block->c + block->n_c;
}

/* Number + 1; 0: none is there. */
static uint32_t find(Biases *b, uint32_t i) {
    const HwMemory *m = &b->spec->memory[b->spec->bias];
    const Action *a = &b->plan->action[i];
    for (uint32_t k = 0; k < b->lying.n; k++) {
        Lying *l = &b->lying.at[k];
        if (holds(m, &b->block.at[l->block - 1], a,
                  &b->plan->placement[a->out])) {
            l->used = i;
            return l->block;
        }
    }
    return 0;
}

/* What lay in the block's bytes is gone. The action from which on nobody reads
 * that. */
static uint32_t clear(Biases *b, const ConstantBlock *block) {
    uint32_t n = 0, free = 0;
    for (uint32_t k = 0; k < b->lying.n; k++) {
        Lying l = b->lying.at[k];
        const ConstantBlock *other = &b->block.at[l.block - 1];
        bool apart = other->offset + other->bytes <= block->offset ||
                     block->offset + block->bytes <= other->offset;
        if (apart)
            b->lying.at[n++] = l;
        else if (l.used + 1 > free)
            free = l.used + 1;
    }
    b->lying.n = n;
    return free;
}

static void place(Biases *b, uint32_t i) {
    const HwMemory *m = &b->spec->memory[b->spec->bias];
    const Action *a = &b->plan->action[i];
    ConstantBlock block = block_for(b, a);
    block.offset = round_up(b->next, m->align ? m->align : 1);
    if (block.offset + block.bytes > m->size)
        block.offset = 0;
    b->next = block.offset + block.bytes;
    uint32_t free = clear(b, &block), load = b->load_of[a->weights - 1];
    b->front = larger32(b->front, larger32(free, load));
    b->before[b->block.n] = b->front;
    vec_push(b->arena, &b->block, block);
    Lying l = {b->block.n, i};
    vec_push(b->arena, &b->lying, l);
    b->reads[i] = b->block.n;
}

/* ---- actions ---- */

/* Of each block the first run that reads it, in one walk. */
static Action *loads_of(const Biases *b) {
    Action *load = ARENA_ARRAY(b->arena, Action, b->block.n + 1);
    for (uint32_t i = b->plan->n_actions; i-- > 0;) {
        const Action *run = &b->plan->action[i];
        if (b->reads[i])
            load[b->reads[i] - 1] = (Action){.kind = ACTION_BIAS,
                                             .node = run->node,
                                             .legal = run->legal,
                                             .out = run->out,
                                             .at = run->at,
                                             .style = -1,
                                             .n_tiles = 1,
                                             .bias = b->reads[i]};
    }
    return load;
}

static void write_actions(const Biases *b, Arena *arena, Plan *plan) {
    const Action *load = loads_of(b);
    uint32_t n = plan->n_actions + b->block.n, at = 0;
    Action *action = ARENA_ARRAY(arena, Action, n + 1);
    for (uint32_t i = 0, k = 0; i < plan->n_actions; i++) {
        while (k < b->block.n && b->before[k] == i)
            action[at++] = load[k++];
        action[at] = plan->action[i];
        action[at++].bias = b->reads[i];
    }
    for (uint32_t i = 0; i < n; i++)
        action[i].step = i + 1;
    plan->action = action;
    plan->n_actions = n;
    plan->bias = ARENA_COPY(arena, ConstantBlock, b->block.at, b->block.n);
    plan->n_biases = b->block.n;
}

void biases_add(Arena *arena, Plan *plan) {
    const HwSpec *spec = plan->schedule->spec;
    if (!spec->bias)
        return;
    Biases b = {.arena = arena_new("biases"),
                .plan = plan,
                .g = plan->schedule->graph,
                .spec = spec};
    b.load_of = ARENA_ARRAY(b.arena, uint32_t, plan->n_blocks + 1);
    b.reads = ARENA_ARRAY(b.arena, uint32_t, plan->n_actions + 1);
    b.before = ARENA_ARRAY(b.arena, uint32_t, plan->n_actions + 1);
    for (uint32_t i = 0; i < plan->n_actions; i++) {
        const Action *a = &plan->action[i];
        if (a->kind == ACTION_WEIGHTS)
            b.load_of[a->weights - 1] = i;
        if (reads_bias(&b, a) && !(b.reads[i] = find(&b, i)))
            place(&b, i);
    }
    if (b.block.n)
        write_actions(&b, arena, plan);
    arena_free(b.arena);
    plan->cycles = queue_cycles(plan);
}
