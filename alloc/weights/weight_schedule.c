/* weight_schedule.c - loads ahead, in the order in which the machine runs them;
 * see weights.h.
 *
 * Input: a plan whose actions run one behind the other, on a machine with a
 * queue. Output: the same layers in the same order; loads of weights are there,
 * and all transfers are where they begin early and nobody waits for nothing.
 * Method: list scheduling by the plan's clock. Layers are issued as soon as
 * what they read is; then comes the next transfer: of those whose bytes are
 * free when the DMA is, the one that is needed first, else the one whose bytes
 * are free first; but one that can wait leaves the DMA to one that cannot, and
 * whose bytes are free before it would be done. Blocks of weights are loaded in
 * the order of their uses.
 * Invariants: actions that conflict keep their order. A block's place is free
 * of all volumes from its load to its use, in the order of layers: so a layer
 * that is next always finds a place.
 */
#include "alloc/weights/weights.h"

#include "base/arith.h"
#include "hwspec/cost.h"

/* How far in front of its place a transfer may run, in actions. */
enum { LOOK = 128 };

typedef struct Item {
    Touched touched;
    QueueReady ready;
    uint32_t waits; /* conflicting actions in front that are not issued */
    uint32_t due;   /* the first action behind that conflicts; NONE */
    uint64_t cycles;
    bool moves, issued;
} Item;

typedef struct SliceUse {
    uint32_t item, slice;
    uint32_t again; /* item of the next use of the slice; NONE */
} SliceUse;

typedef struct Stage {
    Arena *arena;
    Plan now; /* placements, and the blocks so far */
    const Action *source;
    uint32_t n;
    const Sliced *sliced;
    bool evicts;
    uint64_t keeps; /* bytes of slices that stay from image to image, if they
                     * can: the last ones */
    Item *item;
    uint32_t *next_move;     /* by item: the first transfer from it on, or n */
    uint64_t *work;          /* by item: cycles of all layers in front of it */
    uint32_t *start, *after; /* after[start[i]..start[i + 1]): wait for i */
    uint32_t low, front;     /* first item, first layer that is not issued */
    uint32_t *block;         /* by item: 1 + its block */
    VEC(SliceUse) use;
    uint32_t served; /* uses that have their block */
    Holds holds;
    Queue queue;
    VEC(Action) action;
    const StageMost *most;
    Budget *budget;
    uint64_t rest[PLAN_UNITS]; /* by unit: cycles of what is not issued, each
                                * slice loaded once */
    uint64_t moved;            /* bytes, likewise */
    bool *loaded;              /* by slice */
} Stage;

/* ---- what must stay in order ---- */

typedef struct Edge {
    uint32_t from, to;
} Edge;
typedef struct Edges {
    VEC(Edge) at;
} Edges;

static void find_edge(Stage *s, Edges *edges, Edge e) {
    const Touched *from = &s->item[e.from].touched,
                  *to = &s->item[e.to].touched;
    if (!accesses_meet(&from->volumes, &to->volumes))
        return;
    vec_push(s->arena, &edges->at, e);
    s->item[e.to].waits++;
    if (s->item[e.from].due == NONE)
        s->item[e.from].due = e.to;
}

/* Of an action's accesses: most pairs are told apart by it. */
typedef struct Span {
    Reach active, outside;
} Span;

static const Span *find_spans(Stage *s) {
    Span *span = ARENA_ARRAY(s->arena, Span, s->n + 1);
    for (uint32_t i = 0; i < s->n; i++) {
        const Accesses *all = &s->item[i].touched.volumes;
        span[i] = (Span){all->active, all->outside};
    }
    return span;
}

/* Two layers keep their order without that. */
static void find_edges(Stage *s, Edges *edges) {
    const Span *span = find_spans(s);
    for (uint32_t i = 0; i < s->n; i++) {
        bool moves = s->item[i].moves;
        uint32_t k = i > LOOK ? i - LOOK : 0;
        for (k = moves ? k : s->next_move[k]; k < i;
             k = moves ? k + 1 : s->next_move[k + 1])
            if (reaches_meet(span[k].active, span[i].active) ||
                reaches_meet(span[k].outside, span[i].outside))
                find_edge(s, edges, (Edge){k, i});
    }
}

static void find_order(Stage *s) {
    Edges edges = {0};
    find_edges(s, &edges);
    s->start = ARENA_ARRAY(s->arena, uint32_t, s->n + 2);
    s->after = ARENA_ARRAY(s->arena, uint32_t, edges.at.n + 1);
    for (uint32_t i = 0; i < edges.at.n; i++)
        s->start[edges.at.at[i].from + 1]++;
    for (uint32_t i = 0; i < s->n; i++)
        s->start[i + 1] += s->start[i];
    uint32_t *fill = ARENA_COPY(s->arena, uint32_t, s->start, s->n + 1);
    for (uint32_t i = 0; i < edges.at.n; i++)
        s->after[fill[edges.at.at[i].from]++] = edges.at.at[i].to;
}

static uint32_t image_of(const Stage *s, uint32_t item) {
    uint32_t images = s->now.images ? s->now.images : 1;
    return s->source[item].node.i / (s->now.schedule->graph->node.n / images);
}

/* By slice. */
static const bool *kept_slices(Stage *s) {
    uint32_t n = s->sliced->n_slices;
    bool *kept = ARENA_ARRAY(s->arena, bool, n + 1);
    uint64_t left = s->keeps;
    for (uint32_t i = n; i-- > 0 && s->sliced->slice[i].bytes <= left;) {
        left -= s->sliced->slice[i].bytes;
        kept[i] = true;
    }
    return kept;
}

static void find_uses(Stage *s) {
    const bool *kept = kept_slices(s);
    uint32_t *next = ARENA_ARRAY(s->arena, uint32_t, s->sliced->n_slices + 1);
    for (uint32_t i = 0; i < s->sliced->n_slices; i++)
        next[i] = NONE;
    for (uint32_t i = 0; i < s->n; i++)
        if (s->sliced->slice_of[i] != NONE)
            vec_push(s->arena, &s->use,
                     ((SliceUse){i, s->sliced->slice_of[i], NONE}));
    for (uint32_t i = s->use.n; i-- > 0;) {
        SliceUse *use = &s->use.at[i];
        uint32_t again = next[use->slice];
        bool goes = again != NONE && !kept[use->slice] &&
                    image_of(s, again) != image_of(s, use->item);
        use->again = goes ? NONE : again;
        next[use->slice] = use->item;
    }
}

/* ---- what it costs at least ---- */

static uint64_t slice_cycles(const Stage *s, const ConstantBlock *slice) {
    const HwSpec *spec = s->now.schedule->spec;
    return hwspec_staged_cycles(spec, &spec->memory[slice->from],
                                (uint64_t)slice->taps * slice->n_c);
}

static uint32_t slice_unit(const Stage *s, const ConstantBlock *slice) {
    const HwSpec *spec = s->now.schedule->spec;
    return HW_MAX_ENGINES +
           (uint32_t)hwspec_dma(spec, HW_OP_LOAD_WEIGHTS, slice->from);
}

static void expect_cost(Stage *s) {
    for (uint32_t i = 0; i < s->n; i++) {
        const Action *a = &s->source[i];
        if (a->kind != ACTION_CONCAT && a->kind != ACTION_HOST)
            s->rest[unit_of(&s->now, a)] += action_cycles(&s->now, a);
    }
    for (uint32_t i = 0; i < s->sliced->n_slices; i++) {
        const ConstantBlock *slice = &s->sliced->slice[i];
        s->rest[slice_unit(s, slice)] += slice_cycles(s, slice);
        s->moved += slice->bytes;
    }
}

static void note_load(Stage *s, uint32_t number) {
    const ConstantBlock *slice = &s->sliced->slice[number];
    if (s->loaded[number])
        s->moved += slice->bytes;
    else
        s->rest[slice_unit(s, slice)] -= slice_cycles(s, slice);
    s->loaded[number] = true;
}

static bool is_dear(const Stage *s) {
    uint64_t cycles = 0;
    for (uint32_t unit = 0; unit < PLAN_UNITS; unit++) {
        uint64_t end = s->queue.done[unit] + s->rest[unit];
        cycles = end > cycles ? end : cycles;
    }
    PlanCost least = {.cycles = cycles, .bytes = s->moved};
    bool dear = s->most != NULL;
    for (uint32_t o = 0; o < PLAN_OBJECTIVES && dear; o++)
        dear = !plan_cost_less((PlanObjective)o, &least, &s->most->cost[o]);
    return dear;
}

/* ---- issuing ---- */

static void emit(Stage *s, Action a, const Touched *touched, QueueReady ready) {
    queue_add(&s->queue, &a, touched, ready);
    a.step = s->action.n + 1;
    vec_push(s->arena, &s->action, a);
}

static void drop_blocks(Stage *s, const Accesses *all) {
    for (uint32_t k = all->n_read; k < all->n; k++)
        if (all->at[k].at->memory == s->now.schedule->spec->weights)
            holds_drop(&s->holds, (Reach){all->at[k].first, all->at[k].end});
}

static void issue(Stage *s, uint32_t i) {
    Item *item = &s->item[i];
    Action a = s->source[i];
    Touched touched = item->touched;
    a.weights = s->block[i];
    if (a.weights)
        touched.weights = block_bytes(&s->now.block[a.weights - 1]);
    if (a.kind != ACTION_CONCAT && a.kind != ACTION_HOST)
        s->rest[unit_of(&s->now, &a)] -= action_cycles(&s->now, &a);
    emit(s, a, &touched, item->ready);
    item->issued = true;
    drop_blocks(s, &touched.volumes);
    if (a.kind == ACTION_LOAD)
        holds_begin_early(&s->holds, i, s->front);
    for (uint32_t k = s->start[i]; k < s->start[i + 1]; k++)
        s->item[s->after[k]].waits--;
    while (s->low < s->n && s->item[s->low].issued)
        s->low++;
}

static void pass_front(Stage *s) {
    Holds *h = &s->holds;
    while (s->front < s->n &&
           (s->item[s->front].moves || s->item[s->front].issued))
        s->front++;
    while (h->passed < h->order.n &&
           h->stays.at.at[h->order.at[h->passed]].until < s->front)
        h->passed++;
}

/* Layers whose operands are all issued. */
static void issue_layers(Stage *s) {
    for (pass_front(s); s->front < s->n; pass_front(s)) {
        const Item *item = &s->item[s->front];
        bool lacks =
            s->sliced->slice_of[s->front] != NONE && !s->block[s->front];
        if (item->waits || lacks || s->front > s->low + LOOK)
            return;
        issue(s, s->front);
    }
}

/* ---- transfers ---- */

/* What could be issued next. */
typedef struct Choice {
    bool any, block;
    uint32_t item, due;
    uint64_t ready; /* cycle: its bytes, its unit and its wires are free */
    uint64_t cycles;
    Reach bytes; /* block: its place */
} Choice;

/* The cycle at which layers come to where it is due, if nothing keeps them. */
static uint64_t due_cycle(const Stage *s, const Choice *c) {
    uint64_t now = 0;
    if (c->due == NONE || s->front == s->n)
        return UINT64_MAX;
    for (uint32_t e = 0; e < HW_MAX_ENGINES; e++)
        now = larger(now, s->queue.done[e]);
    return now + (c->due > s->front ? s->work[c->due] - s->work[s->front] : 0);
}

/* Whether `first`, which is ready first, can wait for `then`, and that cannot
 * wait for it. */
static bool gives_way(const Stage *s, const Choice *first, const Choice *then) {
    uint64_t end = first->ready + first->cycles,
             after = then->ready + then->cycles;
    return then->due < first->due && then->ready < end &&
           then->ready - first->ready < end - then->ready &&
           end + then->cycles > due_cycle(s, then) &&
           after + first->cycles <= due_cycle(s, first);
}

static bool goes_first(const Stage *s, const Choice *a, const Choice *b) {
    if (a->ready == b->ready)
        return a->due < b->due;
    return a->ready < b->ready ? !gives_way(s, a, b) : gives_way(s, b, a);
}

static void take_sooner(const Stage *s, Choice *best, Choice other) {
    if (!best->any || goes_first(s, &other, best))
        *best = other;
}

static Reach written_by(const Stage *s, uint32_t i) {
    const Accesses *all = &s->item[i].touched.volumes;
    const Access *to = &all->at[all->n - 1];
    return to->at->memory == s->now.schedule->spec->weights
               ? (Reach){to->first, to->end}
               : (Reach){0, 0};
}

/* What weights need first is loaded first: what comes after them must not take
 * their room. */
static void look_at_moves(Stage *s, uint32_t needed, Choice *best) {
    for (uint32_t i = s->low; i < s->n && i <= s->low + LOOK; i++) {
        Item *item = &s->item[i];
        bool load = s->source[i].kind == ACTION_LOAD;
        if (!item->moves || item->issued || item->waits ||
            (load && i > s->front && item->due > needed) ||
            (load && holds_block(&s->holds, written_by(s, i), s->front)))
            continue;
        uint64_t ready =
            larger(queue_ready(&s->queue, &item->touched, &item->ready),
                   queue_unit_free(&s->queue, &s->source[i]));
        take_sooner(s, best,
                    (Choice){.any = true,
                             .item = i,
                             .due = item->due,
                             .ready = ready,
                             .cycles = item->cycles});
    }
}

/* Bytes that stores still read, or loads have in front of their layers. */
static uint32_t list_busy(const Stage *s, Reach **out) {
    uint32_t n = 0;
    Reach *busy = ARENA_ARRAY(s->arena, Reach, s->front - s->low + 1);
    for (uint32_t i = s->low; i < s->front; i++) {
        const Access *from = s->item[i].touched.volumes.at;
        if (s->item[i].moves && !s->item[i].issued &&
            from->at->memory == s->now.schedule->spec->weights)
            busy[n++] = (Reach){from->first, from->end};
    }
    *out = busy;
    return n;
}

static Wanted wanted_now(const Stage *s, bool evicts) {
    const SliceUse *use = &s->use.at[s->served];
    Wanted w = {.slice = &s->sliced->slice[use->slice],
                .number = use->slice,
                .use = use->item,
                .again = use->again,
                .front = s->front,
                .evicts = evicts};
    Reach *busy;
    w.n_busy = s->low < s->front ? list_busy(s, &busy) : 0;
    w.busy = w.n_busy ? busy : NULL;
    return w;
}

/* A place that is as early, and where it can stay for the next image. */
static void find_better(const Stage *s, const Wanted *w, uint64_t now,
                        Reach *bytes) {
    Wanted longer = *w;
    Reach other;
    longer.use = w->again;
    if (s->keeps && w->again != NONE &&
        holds_place(&s->holds, &longer, &s->queue, now, &other) &&
        queue_free(&s->queue, other) <= queue_free(&s->queue, *bytes))
        *bytes = other;
}

static void look_at_block(Stage *s, bool evicts, Choice *best) {
    Choice c = {.any = true, .block = true};
    if (s->served == s->use.n)
        return;
    Wanted w = wanted_now(s, evicts);
    uint64_t now = queue_from_free(&s->queue, w.slice->from);
    holds_reach(&s->holds, w.front, w.use);
    budget_take(s->budget, 1 + s->holds.held.n + s->holds.near.n);
    if (!holds_place(&s->holds, &w, &s->queue, now, &c.bytes))
        return;
    find_better(s, &w, now, &c.bytes);
    c.due = w.use;
    c.ready = larger(queue_free(&s->queue, c.bytes), now);
    c.cycles = slice_cycles(s, w.slice);
    take_sooner(s, best, c);
}

static void issue_block(Stage *s, Reach bytes) {
    const SliceUse *use = &s->use.at[s->served];
    Wanted w = wanted_now(s, false);
    uint32_t block = holds_put(&s->holds, &w, bytes);
    s->now.block = s->holds.block.at;
    s->now.n_blocks = s->holds.block.n;
    Action a = {.kind = ACTION_WEIGHTS,
                .node = w.slice->node,
                .legal = s->source[use->item].legal,
                .out = s->source[use->item].out,
                .at = s->source[use->item].at,
                .style = -1,
                .n_tiles = 1,
                .weights = block};
    Touched touched = touched_by(s->arena, &s->now, &a);
    note_load(s, use->slice);
    emit(s, a, &touched, (QueueReady){0});
    s->block[use->item] = block;
    s->served++;
}

/* Uses of blocks that are there. */
static void serve(Stage *s) {
    for (; s->served < s->use.n; s->served++) {
        const SliceUse *use = &s->use.at[s->served];
        uint32_t block =
            holds_find(&s->holds, use->slice, s->front, use->item, use->again);
        if (!block)
            return;
        s->block[use->item] = block;
    }
}

/* False if nothing can. */
static bool issue_transfer(Stage *s) {
    Choice best = {0};
    uint32_t needed = s->served < s->use.n ? s->use.at[s->served].item : NONE;
    look_at_moves(s, needed, &best);
    look_at_block(s, s->evicts, &best);
    if (!best.any)
        look_at_block(s, true, &best);
    if (!best.any)
        return false;
    if (best.block)
        issue_block(s, best.bytes);
    else
        issue(s, best.item);
    return true;
}

static void open_items(Stage *s) {
    s->item = ARENA_ARRAY(s->arena, Item, s->n + 1);
    s->block = ARENA_ARRAY(s->arena, uint32_t, s->n + 1);
    s->next_move = ARENA_ARRAY(s->arena, uint32_t, s->n + 1);
    s->work = ARENA_ARRAY(s->arena, uint64_t, s->n + 1);
    for (uint32_t i = 0; i < s->n; i++) {
        bool moves = is_move(&s->source[i]);
        uint64_t cycles = action_cycles(&s->now, &s->source[i]);
        s->item[i] =
            (Item){.touched = touched_by(s->arena, &s->now, &s->source[i]),
                   .due = NONE,
                   .cycles = cycles,
                   .moves = moves};
        s->work[i + 1] = s->work[i] + (moves ? 0 : cycles);
    }
    s->next_move[s->n] = s->n;
    for (uint32_t i = s->n; i-- > 0;)
        s->next_move[i] = s->item[i].moves ? i : s->next_move[i + 1];
}

/* ---- all of it ---- */

static Staged run(Stage *s) {
    for (;;) {
        serve(s);
        issue_layers(s);
        if (s->low == s->n)
            return STAGED;
        if (is_dear(s) || (s->most && budget_spent(s->budget)))
            return STAGE_DEAR;
        if (!issue_transfer(s))
            return STAGE_STUCK;
    }
}

static void open_stage(Stage *s) {
    s->queue = (Queue){.arena = s->arena, .plan = &s->now};
    open_items(s);
    find_order(s);
    find_uses(s);
    vec_reserve(s->arena, &s->action, s->n + s->use.n + 1);
    holds_open(&s->holds, s->arena, &s->now);
}

/* Actions in the order that they had, each with its slice in place of a block,
 * so that more of them can be staged in the same way. */
static const Plan *as_sliced(const Stage *s, Arena *arena) {
    Plan *plan = ARENA_COPY(arena, Plan, &s->now, 1);
    Action *action = ARENA_COPY(arena, Action, s->source, s->n);
    for (uint32_t i = 0; i < s->n; i++)
        action[i].weights =
            s->sliced->slice_of[i] == NONE ? 0 : s->sliced->slice_of[i] + 1;
    plan->n_actions = s->n;
    plan->action = action;
    plan->n_blocks = s->sliced->n_slices;
    plan->block =
        ARENA_COPY(arena, ConstantBlock, s->sliced->slice, s->sliced->n_slices);
    return plan;
}

/* Whether all sums have places, too. */
static bool close_stage(const Stage *s, Arena *arena, Plan *out) {
    *out = s->now;
    out->sliced = as_sliced(s, arena);
    out->n_actions = s->action.n;
    out->action = ARENA_COPY(arena, Action, s->action.at, s->action.n);
    out->n_blocks = s->holds.block.n;
    out->block =
        ARENA_COPY(arena, ConstantBlock, s->holds.block.at, out->n_blocks);
    out->cycles = queue_over(&s->queue);
    if (!sums_give(arena, out))
        return false;
    biases_add(arena, out);
    if (out->n_sums)
        out->cycles = queue_cycles(out);
    return true;
}

/* Its slices and the actions that read them are known. */
static Staged stage_sliced(Stage *s, Arena *arena, Plan *out) {
    enum { STEPS = 15 }; /* for each action, beside that of its slice */
    s->source = s->now.action;
    s->n = s->now.n_actions;
    budget_take(s->budget, STEPS * (uint64_t)s->n);
    s->loaded = ARENA_ARRAY(s->arena, bool, s->sliced->n_slices + 1);
    expect_cost(s);
    if (is_dear(s))
        return STAGE_DEAR;
    open_stage(s);
    Staged done = run(s);
    if (done == STAGED && !close_stage(s, arena, out))
        return STAGE_FULL;
    return done;
}

Staged stage(Arena *arena, const Banded *banded, StageWay way,
             const StageMost *most, Plan *out) {
    Arena *scratch = arena_new("stage");
    Sliced sliced;
    Stage s = {.arena = scratch,
               .now = banded->plan,
               .sliced = &sliced,
               .evicts = way.evicts,
               .most = most,
               .budget = banded->budget,
               .moved = banded->moved};
    Staged done = STAGE_FULL;
    bool sliced_all = blocks_make(arena, &s.now, banded->room, way, &sliced);
    budget_take(s.budget, s.now.n_actions);
    if (sliced_all)
        done = stage_sliced(&s, arena, out);
    arena_free(scratch);
    return done;
}

Staged stage_again(Arena *arena, const Plan *plan, bool evicts, uint64_t keeps,
                   Plan *out) {
    Arena *scratch = arena_new("stage");
    uint32_t *slice_of = ARENA_ARRAY(scratch, uint32_t, plan->n_actions + 1);
    for (uint32_t i = 0; i < plan->n_actions; i++)
        slice_of[i] = plan->action[i].weights - 1;
    Sliced sliced = {plan->n_blocks, plan->block, slice_of};
    Stage s = {.arena = scratch,
               .now = *plan,
               .sliced = &sliced,
               .evicts = evicts,
               .keeps = keeps};
    Staged done = stage_sliced(&s, arena, out);
    arena_free(scratch);
    return done;
}
