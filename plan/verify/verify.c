/* verify.c - the judge of whole plans, by replay.
 *
 * Input: a plan. Output: NULL, or a sentence on the first thing that is wrong.
 * Method: an action reads rows that must be there, then writes; what it writes
 * over is lost (memory_state.c). So a value that was overwritten while it was
 * still needed is missing when it is read. Shares no code with the rest of
 * alloc but plan_volume.
 */
#include "plan/verify/judge.h"
#include "plan/verify/operands.h"

#include "graph/op_traits.h"

const char *judge_says(Judge *j, const Placement *p, const char *what) {
    const char *memory = j->spec->memory[p->memory].name;
    const char *tensor = graph_tensor(j->g, p->tensor)->name;
    if (!j->action)
        return arena_printf(j->arena, "placement %u: %s %s in %s",
                            (uint32_t)(p - j->plan->placement), tensor, what,
                            memory);
    return arena_printf(j->arena, "action %u (listing step %u): %s %s in %s",
                        (uint32_t)(j->action - j->plan->action),
                        j->action->step, tensor, what, memory);
}

/* ---- actions ---- */

static bool all_channels(const Judge *j, const Placement *p) {
    return p->n_c == plan_volume(j->g, p->tensor).c;
}

/* Whether each channel is made from the same one of all operands. */
static bool goes_by_channel(const Judge *j, const Node *node) {
    const ConvAttr *conv = &node->attr.conv;
    bool depthwise = node->op == OP_CONV && conv->groups == conv->out_c &&
                     conv->groups == plan_volume(j->g, node->in[0]).c;
    return op_has(node->op, OP_BY_CHANNEL) || depthwise;
}

/* The operands' tensors, in the node's order. Some channels are made from the
 * same ones, or by a convolution from all. */
static const char *check_operands(Judge *j, const Action *a) {
    const Node *node = graph_node(j->g, a->node);
    const Placement *out = &j->plan->placement[a->out];
    bool all = all_channels(j, out);
    bool each = goes_by_channel(j, node);
    bool may = each || a->weights ||
               (node->op == OP_CONV && node->attr.conv.groups < 2);
    bool right = a->n_in == node->n_in &&
                 same_tensor(out->tensor, node->out[0]) &&
                 (all || (may && a->kind == ACTION_RUN));
    bool adds = a->kind == ACTION_RUN &&
                hwspec_adds_up(j->spec, a->legal.op, a->legal.engine);
    for (uint32_t i = 0; i < a->n_in && right; i++) {
        const Placement *in = &j->plan->placement[a->in[i]];
        right = same_tensor(in->tensor, node->in[i]) &&
                (adds           ? in->n_c > 0
                 : all || !each ? all_channels(j, in)
                                : in->c == out->c && in->n_c == out->n_c);
    }
    return right ? NULL : judge_says(j, out, "is computed from other tensors");
}

/* One that is spread over the result, or is of another kind, is read as it is.
 */
static const char *check_operand(Judge *j, const Action *a, uint32_t i) {
    const Placement *p = &j->plan->placement[a->in[i]];
    Volume own = plan_volume(j->g, p->tensor);
    Volume first = plan_volume(j->g, graph_node(j->g, a->node)->in[0]);
    bool spread = (own.h != first.h || own.w != first.w) &&
                  (a->legal.op == HW_OP_LAYER || insn_own_plane(a->legal.op));
    Part part = {a->in_row, a->in_rows, a->in_col, a->in_cols};
    if (i == 1 && hw_op_traits[a->legal.op] & HW_MATRIX)
        return judge_read(j, a->in[i], (Part){0, own.h, 0, own.w});
    return judge_read(j, a->in[i], spread ? all_of(p) : part);
}

/* Operands in memories that the engine, or the style of tiling, reaches. */
static const char *check_reach(Judge *j, const Action *a) {
    const HwEngine *engine = &j->spec->engine[a->legal.engine];
    if (!(engine->ops >> a->legal.op & 1))
        return judge_says(j, &j->plan->placement[a->out],
                          "is made by an engine that cannot");
    const uint32_t *lies = engine->lies;
    for (uint32_t i = 0; i <= a->n_in; i++) {
        bool is_in = i < a->n_in;
        uint32_t reached = lies[hw_operand(i, a->n_in)];
        const Placement *p = &j->plan->placement[is_in ? a->in[i] : a->out];
        bool outside = false;
        if (a->style >= 0) {
            const HwTileStyle *s = &j->spec->tiling.tiles.style[a->style];
            outside = is_in ? s->in_backing : s->out_backing;
        } else if (is_in) {
            outside = engine->ahead;
        }
        if (outside != (j->spec->memory[p->memory].role != HW_ACTIVE))
            return judge_says(j, p, "is an operand on the wrong side");
        if (!outside && reached && !(reached >> p->memory & 1))
            return judge_says(j, p, "is out of the engine's reach");
    }
    return NULL;
}

/* The machine uses the tile buffers while the instruction runs. */
static const char *use_tile_buffers(Judge *j, const Action *a) {
    if (a->style < 0)
        return NULL;
    const HwTileStyle *s = &j->spec->tiling.tiles.style[a->style];
    uint32_t reached = j->spec->engine[a->legal.engine].lies[HW_IN];
    uint32_t memory = 0;
    while (memory + 1 < j->spec->n_active && !(reached >> memory & 1))
        memory++;
    const Range range[3] = {{0, s->reserved},
                            {s->buffer[0], s->buffer[0] + s->buffer_size},
                            {s->buffer[1], s->buffer[1] + s->buffer_size}};
    const Placement *out = &j->plan->placement[a->out];
    for (uint32_t i = 0; i < 3; i++) {
        if (out->memory == memory &&
            ranges_meet(range[i],
                        (Range){out->offset, out->offset + out->bytes}))
            return judge_says(j, out, "lies in the tile buffers");
        areas_drop(j->areas, memory, range[i]);
    }
    return NULL;
}

/* ---- runs ---- */

static const char *do_run(Judge *j, const Action *a) {
    static Check *const before[] = {check_operands, check_reach,
                                    judge_rows,     judge_weights,
                                    judge_bias,     use_tile_buffers};
    const char *wrong = NULL;
    for (uint32_t i = 0; i < sizeof before / sizeof *before && !wrong; i++)
        wrong = before[i](j, a);
    for (uint32_t i = 0; i < a->n_in && !wrong; i++)
        wrong = check_operand(j, a, i);
    bool stays = false;
    if (!wrong)
        wrong = judge_sums(j, a, &stays);
    if (wrong || stays)
        return wrong;
    wrong = judge_turn(j, a);
    return wrong ? wrong : judge_write(j, a->out, made_by(a));
}

static const char *do_host(Judge *j, const Action *a) {
    const char *wrong = check_operands(j, a);
    for (uint32_t i = 0; i < a->n_in && !wrong; i++) {
        const Placement *p = &j->plan->placement[a->in[i]];
        wrong = role_of(j, a->in[i]) == HW_ACTIVE
                    ? judge_says(j, p, "is read by the host")
                    : judge_read(j, a->in[i], all_of(p));
    }
    if (wrong)
        return wrong;
    j->turn[a->node.i].rows += a->rows;
    if (role_of(j, a->out) == HW_ACTIVE)
        return judge_says(j, &j->plan->placement[a->out],
                          "is written by the host");
    return judge_write(j, a->out, made_by(a));
}

static const char *do_concat(Judge *j, const Action *a) {
    const char *wrong = check_operands(j, a);
    const Placement *out = &j->plan->placement[a->out];
    if (!wrong)
        wrong = judge_read(j, a->out, all_of(out));
    return wrong ? wrong : judge_turn(j, a);
}

/* ---- the whole ---- */

static const char *check_views(Judge *j, const Action *a) {
    for (uint32_t i = 0; i <= a->n_in; i++)
        if (!view_agrees(j->plan, a, i))
            return judge_says(
                j, &j->plan->placement[i < a->n_in ? a->in[i] : a->out],
                "lies elsewhere than the instruction would say");
    return NULL;
}

/* Steps follow each other; loads of inputs may have a number of their own. */
static const char *check_order(Judge *j, const Action *a) {
    bool own = a->kind == ACTION_LOAD && j->spec->input_shares_step;
    if (own || a->kind == ACTION_HOST || a->kind == ACTION_CONCAT)
        return NULL;
    if (a->step < j->step)
        return judge_says(j, &j->plan->placement[a->out],
                          "is of a step that is over");
    j->step = a->step;
    return NULL;
}

static const char *do_action(Judge *j) {
    const Action *a = j->action;
    const char *wrong = judge_step(j, a, j->plan->action + j->plan->n_actions);
    if (!wrong)
        wrong = check_order(j, a);
    if (!wrong)
        wrong = check_views(j, a);
    if (!wrong && on_engine(a))
        wrong = judge_in_place(j, a);
    if (wrong)
        return wrong;
    switch (a->kind) {
    case ACTION_LOAD:
    case ACTION_STORE:
        return judge_move(j, a);
    case ACTION_RUN:
        return do_run(j, a);
    case ACTION_COPY:
        return judge_copy(j, a);
    case ACTION_WEIGHTS:
        return judge_loads_weights(j, a);
    case ACTION_BIAS:
        return judge_loads_bias(j, a);
    case ACTION_CONCAT:
        return do_concat(j, a);
    case ACTION_HOST:
        return do_host(j, a);
    }
    return "an action of unknown kind";
}

const char *plan_judge(Arena *arena, const Plan *plan) {
    Judge j = {.arena = arena_new("judge"),
               .plan = plan,
               .g = plan->schedule->graph,
               .spec = plan->schedule->spec};
    j.areas = areas_new(j.arena, j.g, j.spec);
    j.turn = ARENA_ARRAY(j.arena, Turn, j.g->node.n + 1);
    const char *wrong = judge_placements(&j);
    if (!wrong)
        wrong = judge_host_side(&j);
    if (!wrong)
        judge_inputs(&j);
    for (uint32_t i = 0; i < plan->n_actions && !wrong; i++) {
        j.action = &plan->action[i];
        wrong = do_action(&j);
    }
    if (!wrong)
        wrong = judge_end(&j);
    if (wrong)
        wrong = arena_strdup(arena, wrong);
    arena_free(j.arena);
    return wrong;
}
