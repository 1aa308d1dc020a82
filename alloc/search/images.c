/* images.c - several images one behind the other; see plan.h.
 *
 * Input: the plan of one image. Output: a plan of so many, in which one image's
 * loads come behind the last layers of the image before, and its stores behind
 * the first layers of the next one.
 * Method: the actions are repeated, with tensors, nodes and places outside of
 * each image's own. In active memory all images have the same places, or every
 * other one lies upside down; then what an image begins and ends with gets
 * places that are free for longer (repack_images.c). Layers of the host that an
 * image ends with wait until layers of the next one have hidden what is stored
 * for them. All transfers are put beside layers anew (list_schedule.c,
 * row_slices.c). Of these ways the one in the fewest cycles is taken. Where
 * weights lie in active memory, they are loaded anew, so that what an image
 * leaves of them serves the next one. Invariants: every image moves what one
 * alone moves, or fewer weights.
 */
#include "alloc/alloc.h"
#include "alloc/bound/bound.h"
#include "alloc/overlap/overlap.h"
#include "alloc/search/search.h"
#include "alloc/weights/weights.h"
#include "base/arith.h"
#include "base/size_grid.h"
#include "plan/cost.h"

#include "base/text.h"

typedef struct Images {
    Arena *arena;
    const Plan *as_planned;   /* the plan of one image */
    const Plan *one;          /* the same, or that before its transfers were put
                               * beside layers */
    const Schedule *schedule; /* of all */
    const PlanOptions *options;
    uint32_t n;
    uint64_t height; /* every other one lies upside down in so many bytes of
                      * active memory; 0: none does */
    bool numbers;    /* steps, behind those of the first image */
    uint32_t buffers;
    uint64_t stride[2 * PACK_MAX_POOLS]; /* by memory outside: bytes from image
                                          * to image */
    uint32_t step;                       /* the last, */
    uint32_t step_of_one;                /* and what it was of one image */
    VEC(Action) action;
} Images;

/* ---- places ---- */

static uint32_t buffers_of(const Plan *plan) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n_placements; i++)
        if (plan->placement[i].buffer != NONE && plan->placement[i].buffer >= n)
            n = plan->placement[i].buffer + 1;
    return n;
}

/* False, with an error, where a memory outside does not hold all images. */
static bool find_strides(Images *im, Diag *diag) {
    const HwSpec *spec = im->one->schedule->spec;
    bool fits = true;
    for (uint32_t m = spec->n_active; m < spec->n_memories; m++) {
        const HwMemory *memory = &spec->memory[m];
        uint64_t used = im->one->memory_used[m];
        im->stride[m] = round_up(used, memory->align ? memory->align : 1);
        if (!used || (memory->size >= used &&
                      (memory->size - used) / im->stride[m] >= im->n - 1))
            continue;
        fits = false;
        diag_error(diag, (Loc){0},
                   "does not fit: %u images need %s bytes of %s, which has %s",
                   im->n,
                   with_commas(im->arena, (im->n - 1) * im->stride[m] + used),
                   memory->name, with_commas(im->arena, memory->size));
    }
    return fits;
}

bool images_fit(Arena *arena, const Plan *one, uint32_t images) {
    Images im = {.arena = arena, .one = one, .n = images};
    return images < 2 || find_strides(&im, diag_new(arena));
}

static uint64_t offset_of(const Images *im, const Placement *p,
                          uint32_t image) {
    const HwMemory *m = &im->one->schedule->spec->memory[p->memory];
    uint64_t align = m->align ? m->align : 1;
    if (m->role != HW_ACTIVE)
        return p->offset + image * im->stride[p->memory];
    if (!im->height || image % 2 == 0)
        return p->offset;
    return im->height / align * align - p->offset - round_up(p->bytes, align);
}

static const Placement *placements(const Images *im) {
    const Plan *one = im->one;
    uint32_t n = one->n_placements, tensors = one->schedule->graph->tensor.n;
    Placement *all = ARENA_ARRAY(im->arena, Placement, im->n * n + 1);
    for (uint32_t k = 0; k < im->n; k++)
        for (uint32_t i = 0; i < n; i++) {
            Placement *p = &all[k * n + i];
            *p = one->placement[i];
            p->offset = offset_of(im, p, k);
            p->tensor.i += k * tensors;
            p->first += k * one->schedule->n_steps;
            p->end += k * one->schedule->n_steps;
            if (p->buffer != NONE)
                p->buffer += k * im->buffers;
        }
    return all;
}

/* ---- actions ---- */

static void add_action(Images *im, uint32_t i, uint32_t image) {
    const Plan *one = im->one;
    Action a = one->action[i];
    uint32_t *in = ARENA_COPY(im->arena, uint32_t, a.in, a.n_in);
    for (uint32_t k = 0; k < a.n_in; k++)
        in[k] += image * one->n_placements;
    a.in = in;
    a.out += image * one->n_placements;
    a.at += image * one->schedule->n_steps;
    if (a.node.i != NONE)
        a.node.i += image * one->schedule->graph->node.n;
    if (a.weights)
        a.weights += image * one->n_blocks;
    if (a.bias)
        a.bias += image * one->n_biases;
    if (im->numbers) {
        im->step += a.step != im->step_of_one;
        im->step_of_one = a.step;
        a.step = im->step;
    }
    vec_push(im->arena, &im->action, a);
}

/* The layers of the host that the image ends with. */
static uint32_t first_of_tail(const Plan *one) {
    uint32_t i = one->n_actions;
    while (i > 0 && one->action[i - 1].kind == ACTION_HOST)
        i--;
    return i;
}

/* Cycles of the stores behind the last layer of an engine. */
static uint64_t stores_before(const Plan *one, uint32_t tail) {
    uint64_t sum = 0;
    for (uint32_t i = tail; i > 0 && one->action[i - 1].kind != ACTION_RUN; i--)
        if (one->action[i - 1].kind == ACTION_STORE)
            sum += action_cycles(one, &one->action[i - 1]);
    return sum;
}

/* Behind as many layers as hide what is stored for the image before, with as
 * much again for its own loads. */
static uint32_t head_end(const Plan *one, uint32_t tail) {
    uint64_t wanted = 2 * stores_before(one, tail), hidden = 0;
    uint32_t i = 0;
    while (i < tail && hidden < wanted) {
        uint32_t step = one->action[i].step;
        for (; i < tail && one->action[i].step == step; i++)
            if (one->action[i].kind == ACTION_RUN)
                hidden += action_cycles(one, &one->action[i]);
    }
    return i;
}

static void add_actions(Images *im, uint32_t from, uint32_t end,
                        uint32_t image) {
    im->step_of_one = NONE; /* loads of inputs may be of step 0 */
    for (uint32_t i = from; i < end; i++)
        add_action(im, i, image);
}

static void actions(Images *im) {
    const Plan *one = im->one;
    uint32_t tail = first_of_tail(one), head = head_end(one, tail);
    bool delays = one->schedule->spec->tiling.rows.moves == HW_MOVES_BESIDE;
    if (!delays)
        head = 0;
    for (uint32_t i = 0; i < tail; i++)
        if (one->action[i].step > im->step)
            im->step = one->action[i].step;
    im->numbers = false;
    add_actions(im, 0, tail, 0);
    im->numbers = true;
    for (uint32_t k = 1; k < im->n; k++) {
        add_actions(im, 0, head, k);
        add_actions(im, tail, one->n_actions, k - 1);
        add_actions(im, head, tail, k);
    }
    add_actions(im, tail, one->n_actions, im->n - 1);
}

/* ---- the plan ---- */

static const Repl *repeat_repl(const Images *im) {
    uint32_t n = im->one->schedule->graph->tensor.n;
    Repl *all = ARENA_ARRAY(im->arena, Repl, im->n * n + 1);
    for (uint32_t i = 0; i < im->n * n; i++)
        all[i] = im->one->repl[i % n];
    return all;
}

/* Each image loads its own. */
static const ConstantBlock *blocks(const Images *im, uint32_t n,
                                   const ConstantBlock *one) {
    uint32_t nodes = im->one->schedule->graph->node.n;
    ConstantBlock *all = ARENA_ARRAY(im->arena, ConstantBlock, im->n * n + 1);
    for (uint32_t i = 0; i < im->n * n; i++) {
        all[i] = one[i % n];
        all[i].node.i += i / n * nodes;
    }
    return all;
}

static void memory_fill(const Images *im, Plan *plan) {
    const HwSpec *spec = im->one->schedule->spec;
    for (uint32_t m = spec->n_active; m < spec->n_memories; m++)
        if (plan->memory_used[m])
            plan->memory_used[m] += (im->n - 1) * im->stride[m];
    plan->am_height = 0;
    for (uint32_t m = 0; m < spec->n_active; m++) {
        for (uint32_t i = 0; i < plan->n_placements; i++) {
            const Placement *p = &plan->placement[i];
            if (p->memory == m && p->offset + p->bytes > plan->memory_used[m])
                plan->memory_used[m] = p->offset + p->bytes;
        }
        plan->am_height += plan->memory_used[m];
    }
}

static Plan *repeat(Images *im) {
    Plan *plan = ARENA_COPY(im->arena, Plan, im->one, 1);
    im->action.n = 0;
    im->step = 0;
    actions(im);
    plan->schedule = im->schedule;
    plan->n_placements *= im->n;
    plan->placement = placements(im);
    plan->n_actions = im->action.n;
    plan->action = ARENA_COPY(im->arena, Action, im->action.at, im->action.n);
    plan->block = blocks(im, plan->n_blocks, plan->block);
    plan->n_blocks *= im->n;
    plan->bias = blocks(im, plan->n_biases, plan->bias);
    plan->n_biases *= im->n;
    plan->repl = repeat_repl(im);
    plan->ddr_moved *= im->n;
    for (uint32_t i = 0; i < PLAN_BOUNDS; i++)
        plan->ddr_bound[i] *= im->n;
    plan->ddr_again *= im->n;
    plan->images = im->n;
    return plan;
}

/* One memory, without tiles of the machine's own, which have their places. */
static bool may_turn(const Plan *one) {
    const HwSpec *spec = one->schedule->spec;
    for (uint32_t i = 0; i < one->n_actions; i++)
        if (one->action[i].kind == ACTION_RUN && one->action[i].style >= 0)
            return false;
    return spec->tiling.rows.moves == HW_MOVES_BESIDE && spec->n_active == 1 &&
           !spec->memory[0].buffers;
}

typedef struct Way {
    uint64_t height; /* as in Images */
    bool serial, settles;
} Way;

/* As for `options->objective`, of all images. */
static void count_cost(const Images *im, Plan *plan) {
    const PlanOptions *options = im->options;
    Traffic traffic = plan_traffic(plan);
    plan->ddr_moved = traffic.moved;
    plan->cost = (PlanCost){.cycles = plan->cycles,
                            .bytes = traffic_bytes(traffic),
                            .instructions = traffic.instructions,
                            .memory = plan->am_height};
    if (options->cycles)
        plan->cost.cycles = options->cycles(options->context, plan);
}

static Plan *finish(Images *im, Way way) {
    Plan base = *im->as_planned;
    im->height = way.height;
    im->one = &base;
    if (way.serial) {
        base.n_actions = base.serial->n_actions;
        base.action = base.serial->action;
        base.n_placements = base.serial->n_placements;
        base.placement = base.serial->placement;
    }
    im->buffers = buffers_of(&base);
    Plan *plan = repeat(im);
    if (way.settles)
        repack_images(im->arena, plan, im->n);
    memory_fill(im, plan);
    const HwTiling *tiling = &im->one->schedule->spec->tiling;
    if (tiling->rows.moves == HW_MOVES_BESIDE)
        overlap_images(im->arena, plan);
    if (way.serial)
        slices(im->arena, plan);
    if (tiling->rows.moves == HW_MOVES_BESIDE ||
        tiling->rows.moves == HW_MOVES_QUEUED)
        plan->cycles = plan_cycles(plan);
    count_cost(im, plan);
    return plan;
}

/* Volumes of which not all is there share bytes with others in ways that
 * move_all and offset_of know nothing of: hence the judge. */
static Plan *better(Images *im, Plan *best, uint64_t height) {
    Plan *plan = finish(im, (Way){height, true, true});
    bool fewer = plan->cost.cycles < best->cost.cycles;
    return fewer && !plan_judge(im->arena, plan) ? plan : best;
}

/* Of all ways the one that takes the fewest cycles. Every other image lies
 * upside down also in what smaller memories have, until images lie apart: so a
 * larger one gets no worse plan. */
static Plan *best_of(Images *im, Plan *best) {
    const HwMemory *m = &im->schedule->spec->memory[0];
    uint64_t own = round_up(im->as_planned->am_height, m->align ? m->align : 1);
    if (!im->as_planned->serial)
        return best;
    best = better(im, best, 0);
    best = better(im, best, own);
    best = better(im, best, m->size);
    uint64_t height = grid_below(GRID_OCTAVE, m->size);
    for (; height > own; height = grid_below(GRID_OCTAVE, height))
        if (height < 2 * own)
            best = better(im, best, height);
    return best;
}

/* ---- weights that lie in active memory ---- */

/* All images as they were before weights were loaded, with one slice for those
 * of all images that are the same. */
static const Plan *bare_images(Images *im) {
    const Plan *one = im->as_planned->sliced;
    im->one = one;
    im->buffers = buffers_of(one);
    Plan *bare = repeat(im);
    Action *action =
        ARENA_COPY(im->arena, Action, bare->action, bare->n_actions);
    for (uint32_t i = 0; i < bare->n_actions; i++)
        if (action[i].weights)
            action[i].weights = (action[i].weights - 1) % one->n_blocks + 1;
    bare->action = action;
    bare->block = one->block;
    bare->n_blocks = one->n_blocks;
    im->one = im->as_planned;
    return bare;
}

/* The same with loads, of which the next image needs fewer; NULL if it does not
 * fit. */
static Plan *keeping(const Images *im, const Plan *plan, const Plan *bare,
                     bool evicts, uint64_t keeps) {
    Plan made, *out = ARENA_COPY(im->arena, Plan, plan, 1);
    if (stage_again(im->arena, bare, evicts, keeps, &made) != STAGED)
        return NULL;
    out->n_placements = made.n_placements;
    out->placement = made.placement;
    out->n_actions = made.n_actions;
    out->action = made.action;
    out->n_blocks = made.n_blocks;
    out->block = made.block;
    out->n_biases = made.n_biases;
    out->bias = made.bias;
    out->cycles = made.cycles;
    memory_fill(im, out);
    count_cost(im, out);
    uint64_t most = im->schedule->spec->max_instructions;
    bool too_long = most && out->cost.instructions > most;
    return too_long || plan_judge(im->arena, out) ? NULL : out;
}

static bool moves_less(const Plan *a, const Plan *b) {
    return a->ddr_moved != b->ddr_moved ? a->ddr_moved < b->ddr_moved
                                        : a->cost.cycles < b->cost.cycles;
}

/* Of plans in which an image leaves weights that the next one reads, all that
 * find room or the last ones of its layers, what moves the fewest bytes, if it
 * is no slower than this one. */
static Plan *share_blocks(Images *im, Plan *plan) {
    enum { PARTS = 8 };
    const Plan *bare = bare_images(im);
    uint64_t size = im->schedule->spec->memory[0].size;
    Plan *best = plan;
    for (uint32_t part = PARTS; part > 0 && bare->n_blocks; part--) {
        bool all = part == PARTS;
        Plan *other = keeping(im, plan, bare, !all,
                              all ? UINT64_MAX : size / PARTS * part);
        if (other && other->cost.cycles <= plan->cost.cycles &&
            moves_less(other, best))
            best = other;
    }
    return best;
}

/* What each image reads again one reading does for. */
static void read_once(const Images *im, Plan *plan) {
    uint64_t again =
        (im->n - 1) * weights_bound(im->arena, im->as_planned->schedule);
    plan_bounds_add(plan, -(int64_t)again);
}

const Plan *plan_images(Arena *arena, Diag *diag, const Plan *one,
                        const Schedule *schedule, const PlanOptions *options,
                        bool *does_not_fit) {
    uint32_t images = options->images;
    HwSpec *spec = ARENA_COPY(arena, HwSpec, one->schedule->spec, 1);
    Schedule *all = ARENA_COPY(arena, Schedule, schedule, 1);
    spec->max_instructions = schedule->spec->max_instructions;
    all->spec = spec;
    Images im = {.arena = arena,
                 .as_planned = one,
                 .one = one,
                 .schedule = all,
                 .options = options,
                 .n = images};
    *does_not_fit = !find_strides(&im, diag);
    if (*does_not_fit)
        return NULL;
    Plan *plan = finish(&im, (Way){0});
    const char *wrong = plan_judge(arena, plan);
    if (wrong)
        bug("%u images of %s: %s", images, schedule->graph->name, wrong);
    if (spec->tiling.rows.moves == HW_MOVES_QUEUED) {
        plan = share_blocks(&im, plan);
        read_once(&im, plan);
    }
    return may_turn(one) ? best_of(&im, plan) : plan;
}
