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

static const char *tensor_name(const Judge *j, TensorId t) {
    return graph_tensor(j->g, t)->name;
}

const char *judge_says(Judge *j, const Placement *p, const char *what) {
    const char *memory = j->spec->memory[p->memory].name;
    const char *tensor = tensor_name(j, p->tensor);
    if (!j->action)
        return arena_printf(j->arena, "placement %u: %s %s in %s",
                            (uint32_t)(p - j->plan->placement), tensor, what,
                            memory);
    return arena_printf(j->arena, "action %u (listing step %u): %s %s in %s",
                        (uint32_t)(j->action - j->plan->action),
                        j->action->step, tensor, what, memory);
}

/* ---- reading and writing ---- */

static bool within(const Placement *p, Part part) {
    return part.row >= p->row && part.row + part.rows <= p->row + p->rows &&
           part.col >= p->col && part.col + part.cols <= p->col + p->cols;
}

static Part all_of(const Placement *p) {
    return (Part){p->row, p->rows, p->col, p->cols};
}

/* What the action moves, or computes. */
static Part made_by(const Action *a) {
    return (Part){a->row, a->rows, a->col, a->cols};
}

static const char *check_read(Judge *j, uint32_t placement, Part part) {
    const Placement *p = &j->plan->placement[placement];
    if (!within(p, part))
        return judge_says(j, p, "is read beyond the rows held");
    if (!areas_find(j->areas, p))
        return judge_says(j, p, "is not there (never written, or overwritten)");
    return areas_read(j->areas, p, part) ? NULL
                                         : judge_says(j, p, "is not all there");
}

/* Weights in these bytes of their memory are gone. */
static void drop_blocks(Judge *j, uint64_t first, uint64_t end) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < j->blocks.n; i++) {
        const WeightBlock *b = &j->plan->block[j->blocks.at[i] - 1];
        if (!ranges_overlap(b->offset, b->offset + b->bytes, first, end))
            j->blocks.at[n++] = j->blocks.at[i];
    }
    j->blocks.n = n;
}

/* Sums in these bytes are gone. */
static void drop_sums(Judge *j, uint32_t memory, uint64_t first, uint64_t end) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < j->left.n; i++) {
        const Placement *p = &j->plan->placement[j->left.at[i].by->out];
        uint64_t at, behind;
        areas_bytes(j->areas, p, &at, &behind);
        if (p->memory != memory || !ranges_overlap(at, behind, first, end))
            j->left.at[n++] = j->left.at[i];
    }
    j->left.n = n;
}

static const char *do_write(Judge *j, uint32_t placement, Part part) {
    const Placement *p = &j->plan->placement[placement];
    uint64_t first, end;
    if (!within(p, part))
        return judge_says(j, p, "is written beyond its rows");
    areas_write(j->areas, p, part);
    areas_bytes(j->areas, p, &first, &end);
    drop_sums(j, p->memory, first, end);
    if (p->memory == j->spec->weights)
        drop_blocks(j, first, end);
    return NULL;
}

/* ---- placements by themselves ---- */

static bool in_one_buffer(const HwMemory *m, const Placement *p) {
    uint64_t one = hwspec_buffer_bytes(m);
    return one && p->offset / one == (p->offset + p->bytes - 1) / one;
}

static const char *check_placement(Judge *j, const Placement *p) {
    const HwMemory *m = &j->spec->memory[p->memory];
    Volume v = plan_volume(j->g, p->tensor);
    if (p->bytes != address_bytes(m->layout, &p->whole))
        return judge_says(j, p, "has a wrong size");
    if (m->align && p->offset % m->align)
        return judge_says(j, p, "is not aligned");
    if (p->offset > m->size || p->bytes > m->size - p->offset)
        return judge_says(j, p, "leaves its memory");
    const LineBuffer *l = &p->lines;
    bool fits = p->ring ? p->rows <= p->whole.h : p->rows == p->whole.h;
    bool wide = v.w == p->whole.w || (!p->ring && p->cols == p->whole.w);
    if (l->band) {
        uint32_t left = p->pitch ? p->left : 0;
        uint32_t pitch = p->pitch ? p->pitch : v.w;
        fits = p->rows <= l->keep + l->band && p->cols <= l->span &&
               p->col >= left && p->col + p->cols <= left + pitch;
        wide = p->whole.h == 1 && p->whole.w == lines_pixels(l, pitch);
    }
    if (p->row + p->rows > v.h || p->col + p->cols > v.w || !fits || !wide)
        return judge_says(j, p, "has wrong rows");
    if (p->c + p->n_c > v.c || p->part_c + p->n_c > p->whole.c)
        return judge_says(j, p, "leaves its volume");
    bool concat = p->n_c != p->whole.c || areas_is_concat(j->areas, p->tensor);
    if (m->buffers && !concat && !in_one_buffer(m, p))
        return judge_says(j, p, "crosses a buffer's end");
    return NULL;
}

static const char *check_placements(Judge *j) {
    const char *wrong = NULL;
    for (uint32_t i = 0; i < j->plan->n_placements && !wrong; i++)
        wrong = check_placement(j, &j->plan->placement[i]);
    return wrong;
}

/* ---- actions ---- */

static HwRole role_of(const Judge *j, uint32_t placement) {
    return j->spec->memory[j->plan->placement[placement].memory].role;
}

static const char *check_move(Judge *j, const Action *a) {
    const Placement *from = &j->plan->placement[a->in[0]];
    HwRole in = role_of(j, a->in[0]), out = role_of(j, a->out);
    bool load = a->kind == ACTION_LOAD;
    bool right =
        load ? (in == HW_BACKING || in == HW_INPUT) && out == HW_ACTIVE
             : in == HW_ACTIVE && (out == HW_BACKING || out == HW_OUTPUT);
    if (!right || a->n_in != 1)
        return judge_says(j, from, "is moved the wrong way");
    const Placement *to = &j->plan->placement[a->out];
    if (!same_tensor(from->tensor, to->tensor) || from->c != to->c ||
        from->n_c != to->n_c)
        return judge_says(j, from, "changes its name on the way");
    const char *wrong = check_read(j, a->in[0], made_by(a));
    return wrong ? wrong : do_write(j, a->out, made_by(a));
}

static bool all_channels(const Judge *j, const Placement *p) {
    return p->n_c == plan_volume(j->g, p->tensor).c;
}

/* An instruction says how high the plank is, not where its rows end: from a
 * later row on it reaches over its end, though nothing is read there. */
static bool reaches_over(Judge *j, const Placement *p, uint32_t row) {
    const HwMemory *m = &j->spec->memory[p->memory];
    uint64_t behind =
        address_cell(m->layout, &p->whole, 0, row - p->row, 0, 0) *
        m->layout->element;
    return p->bytes > m->size - p->offset - behind ||
           (m->align && behind % m->align);
}

static const char *do_copy(Judge *j, const Action *a) {
    const Placement *from = &j->plan->placement[a->in[0]];
    const Placement *to = &j->plan->placement[a->out];
    if (a->n_in != 1 || !same_tensor(from->tensor, to->tensor) ||
        role_of(j, a->in[0]) != HW_ACTIVE || role_of(j, a->out) != HW_ACTIVE ||
        to->row != a->row || to->rows != a->rows)
        return judge_says(j, from, "is copied the wrong way");
    const char *wrong = check_read(j, a->in[0], made_by(a));
    if (!wrong && reaches_over(j, from, a->row))
        wrong = judge_says(j, from, "is copied from a place of no address");
    return wrong ? wrong : do_write(j, a->out, made_by(a));
}

/* Whether each channel is made from the same one of all operands. */
static bool goes_by_channel(const Judge *j, const Node *node) {
    const ConvAttr *conv = &node->attr.conv;
    bool depthwise = node->op == OP_CONV && conv->groups == conv->out_c &&
                     conv->groups == plan_volume(j->g, node->in[0]).c;
    return node->op == OP_POOL || node->op == OP_ELTWISE ||
           node->op == OP_SCALE || node->op == OP_ACT ||
           node->op == OP_UPSAMPLE || depthwise;
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
        return check_read(j, a->in[i], (Part){0, own.h, 0, own.w});
    return check_read(j, a->in[i], spread ? all_of(p) : part);
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
    const HwTileStyle *s = &j->spec->tiling.tiles.style[a->style];
    uint32_t reached = j->spec->engine[a->legal.engine].lies[HW_IN];
    uint32_t memory = 0;
    while (memory + 1 < j->spec->n_active && !(reached >> memory & 1))
        memory++;
    uint64_t range[3][2] = {{0, s->reserved},
                            {s->buffer[0], s->buffer[0] + s->buffer_size},
                            {s->buffer[1], s->buffer[1] + s->buffer_size}};
    const Placement *out = &j->plan->placement[a->out];
    for (uint32_t i = 0; i < 3; i++) {
        if (out->memory == memory &&
            ranges_overlap(range[i][0], range[i][1], out->offset,
                           out->offset + out->bytes))
            return judge_says(j, out, "lies in the tile buffers");
        areas_drop(j->areas, memory, range[i][0], range[i][1]);
    }
    return NULL;
}

/* The next spot begins, with the first of the channels. */
static void spot_done(Judge *j, const Action *a, Turn *t) {
    Volume v = plan_volume(j->g, graph_node(j->g, a->node)->out[0]);
    t->channels = t->from;
    t->cols += t->last_cols;
    if (t->cols < (t->right ? t->right : v.w))
        return;
    t->cols = t->left;
    t->rows += t->last_rows;
    if (t->rows < v.h || !t->end || t->end == v.c)
        return;
    *t = (Turn){.from = t->end, .channels = t->end};
}

/* Behind some channels of the first spot may come others of it, or the same of
 * the next one: then all of these are made before any others. */
static void turn_to_outer(Judge *j, const Action *a, Turn *t) {
    const Placement *out = &j->plan->placement[a->out];
    bool first = !t->rows && !t->cols && !t->end && t->channels > t->from;
    if (!first || out->c != t->from || (!a->row && !a->col))
        return;
    t->end = t->channels;
    spot_done(j, a, t);
}

/* Behind all rows of a strip comes the next one. */
static void turn_to_strip(Judge *j, const Action *a, Turn *t) {
    Volume v = plan_volume(j->g, graph_node(j->g, a->node)->out[0]);
    if (a->strip_end <= t->right || (t->right && t->rows < v.h))
        return;
    t->left = t->cols = t->right;
    t->right = a->strip_end;
    t->rows = 0;
}

/* Columns that it computes though the strip before has; they come first. */
static uint32_t columns_again(const Action *a) {
    uint32_t n = a->strip_end && a->col < a->fresh ? a->fresh - a->col : 0;
    return n < a->cols ? n : a->cols;
}

/* Rows follow those that are done, columns of rows each other, and channels of
 * both. Of columns that are computed again nothing follows. */
static const char *check_turn(Judge *j, const Action *a) {
    const Placement *out = &j->plan->placement[a->out];
    Turn *t = &j->turn[a->node.i];
    uint32_t again = columns_again(a);
    turn_to_outer(j, a, t);
    turn_to_strip(j, a, t);
    if (again == a->cols && a->strip_end <= t->right)
        return NULL;
    bool turn = t->rows == a->row + a->again && a->again <= a->rows &&
                t->cols == a->col + again && a->fresh == t->left &&
                a->strip_end == t->right;
    if (turn && out->c != t->channels)
        return judge_says(j, out, "has channels out of order, or twice");
    if (!turn)
        return judge_says(j, out, "is computed out of order, or twice");
    t->last_rows = a->rows - a->again;
    t->last_cols = a->cols - again;
    t->channels += out->n_c;
    uint32_t all = plan_volume(j->g, out->tensor).c;
    if (t->channels >= (t->end ? t->end : all))
        spot_done(j, a, t);
    return NULL;
}

/* ---- weights ---- */

static bool holds_weights(const Judge *j, uint32_t number) {
    for (uint32_t i = 0; i < j->blocks.n; i++)
        if (j->blocks.at[i] == number)
            return true;
    return false;
}

static const char *check_weights(Judge *j, const Action *a) {
    const Placement *out = &j->plan->placement[a->out];
    bool needs = hwspec_stages(j->spec, a->legal.op);
    if (!needs && !a->weights)
        return NULL;
    if (!needs || a->weights == 0 || a->weights > j->plan->n_blocks ||
        !holds_weights(j, a->weights))
        return judge_says(j, out, "is computed without its weights");
    const WeightBlock *b = &j->plan->block[a->weights - 1];
    uint32_t images = j->plan->images ? j->plan->images : 1;
    uint32_t nodes = j->plan->schedule->graph->node.n / images;
    Addends x = action_addends(j->plan, a);
    const Node *node = graph_node(j->g, a->node);
    bool right =
        b->node.i % nodes == a->node.i % nodes && b->c == out->c &&
        b->n_c == out->n_c && b->in_c == x.first &&
        (uint64_t)b->taps * x.all == (uint64_t)weight_taps(j->g, node) * x.n;
    if (!right)
        return judge_says(j, out, "is computed with other weights");
    uint64_t first, end;
    areas_bytes(j->areas, out, &first, &end);
    if (out->memory == j->spec->weights &&
        ranges_overlap(b->offset, b->offset + b->bytes, first, end))
        return judge_says(j, out, "is written over its weights");
    return NULL;
}

static const char *do_weights(Judge *j, const Action *a) {
    const Placement *out = &j->plan->placement[a->out];
    const HwMemory *m = &j->spec->memory[j->spec->weights];
    if (a->weights == 0 || a->weights > j->plan->n_blocks)
        return judge_says(j, out, "has no weights to load");
    const WeightBlock *b = &j->plan->block[a->weights - 1];
    if (b->offset > m->size || b->bytes > m->size - b->offset ||
        (m->align && b->offset % m->align) ||
        b->bytes != (uint64_t)b->taps * b->n_c * m->layout->element)
        return judge_says(j, out, "has weights in a wrong place");
    areas_drop(j->areas, j->spec->weights, b->offset, b->offset + b->bytes);
    drop_sums(j, j->spec->weights, b->offset, b->offset + b->bytes);
    drop_blocks(j, b->offset, b->offset + b->bytes);
    vec_push(j->arena, &j->blocks, a->weights);
    return NULL;
}

/* ---- biases ---- */

static bool needs_bias(const Judge *j, const Action *a) {
    return hwspec_loads_bias(j->spec, a->legal.op) &&
           graph_node(j->g, a->node)->constant[CONST_BIAS].i != NONE &&
           addends_begin(action_addends(j->plan, a));
}

static const char *check_bias(Judge *j, const Action *a) {
    const Placement *out = &j->plan->placement[a->out];
    bool there = false;
    for (uint32_t i = 0; i < j->biases.n; i++)
        there |= j->biases.at[i] == a->bias;
    if (!needs_bias(j, a))
        return a->bias ? judge_says(j, out, "has no biases to read") : NULL;
    if (!a->bias || !there)
        return judge_says(j, out, "is computed without its biases");
    const BiasBlock *b = &j->plan->bias[a->bias - 1];
    bool right = b->node.i == a->node.i && b->c <= out->c &&
                 out->c + out->n_c <= b->c + b->n_c;
    return right ? NULL : judge_says(j, out, "is computed with other biases");
}

static const char *do_bias(Judge *j, const Action *a) {
    const HwMemory *m = &j->spec->memory[j->spec->bias];
    const BiasBlock *b = &j->plan->bias[a->bias - 1];
    uint32_t n = 0;
    if (a->bias == 0 || a->bias > j->plan->n_biases || b->offset > m->size ||
        b->bytes > m->size - b->offset || (m->align && b->offset % m->align) ||
        b->bytes != (uint64_t)b->n_c * m->layout->element)
        return judge_says(j, &j->plan->placement[a->out],
                          "has biases in a wrong place");
    for (uint32_t i = 0; i < j->biases.n; i++) {
        const BiasBlock *o = &j->plan->bias[j->biases.at[i] - 1];
        if (!ranges_overlap(o->offset, o->offset + o->bytes, b->offset,
                            b->offset + b->bytes))
            j->biases.at[n++] = j->biases.at[i];
    }
    j->biases.n = n;
    vec_push(j->arena, &j->biases, a->bias);
    return NULL;
}

/* ---- sums ---- */

static bool same_box(const Judge *j, const Action *a, const Action *b) {
    const Placement *p = &j->plan->placement[a->out],
                    *q = &j->plan->placement[b->out];
    return a->node.i == b->node.i && a->row == b->row && a->rows == b->rows &&
           a->col == b->col && a->cols == b->cols && p->memory == q->memory &&
           p->offset == q->offset && volumes_same(&p->whole, &q->whole) &&
           p->part_c == q->part_c && p->c == q->c && p->n_c == q->n_c;
}

/* Those that the run goes on with are there, and are no more. */
static const char *take_sums(Judge *j, const Action *a, Addends x) {
    for (uint32_t i = 0; i < j->left.n; i++)
        if (j->left.at[i].upto == x.first && same_box(j, j->left.at[i].by, a)) {
            j->left.at[i] = j->left.at[--j->left.n];
            return NULL;
        }
    return judge_says(j, &j->plan->placement[a->out],
                      "goes on with sums that are not there");
}

static void leave_sums(Judge *j, const Action *a, Addends x) {
    const Placement *p = &j->plan->placement[a->out];
    uint64_t first, end;
    areas_bytes(j->areas, p, &first, &end);
    areas_drop(j->areas, p->memory, first, end);
    drop_sums(j, p->memory, first, end);
    if (p->memory == j->spec->weights)
        drop_blocks(j, first, end);
    vec_push(j->arena, &j->left, ((Left){a, x.first + x.n}));
}

static const char *do_run(Judge *j, const Action *a) {
    const char *wrong = check_operands(j, a);
    if (!wrong)
        wrong = check_reach(j, a);
    if (!wrong)
        wrong = judge_rows(j, a);
    if (!wrong)
        wrong = check_weights(j, a);
    if (!wrong)
        wrong = check_bias(j, a);
    if (!wrong && a->style >= 0)
        wrong = use_tile_buffers(j, a);
    for (uint32_t i = 0; i < a->n_in && !wrong; i++)
        wrong = check_operand(j, a, i);
    Addends x = action_addends(j->plan, a);
    if (!wrong && !addends_begin(x))
        wrong = take_sums(j, a, x);
    if (!wrong && !addends_end(x)) {
        leave_sums(j, a, x);
        return NULL;
    }
    if (!wrong)
        wrong = check_turn(j, a);
    return wrong ? wrong : do_write(j, a->out, made_by(a));
}

static const char *do_host(Judge *j, const Action *a) {
    const char *wrong = check_operands(j, a);
    for (uint32_t i = 0; i < a->n_in && !wrong; i++) {
        const Placement *p = &j->plan->placement[a->in[i]];
        wrong = role_of(j, a->in[i]) == HW_ACTIVE
                    ? judge_says(j, p, "is read by the host")
                    : check_read(j, a->in[i], all_of(p));
    }
    if (wrong)
        return wrong;
    j->turn[a->node.i].rows += a->rows;
    if (role_of(j, a->out) == HW_ACTIVE)
        return judge_says(j, &j->plan->placement[a->out],
                          "is written by the host");
    return do_write(j, a->out, made_by(a));
}

static const char *do_concat(Judge *j, const Action *a) {
    const char *wrong = check_operands(j, a);
    const Placement *out = &j->plan->placement[a->out];
    if (!wrong)
        wrong = check_read(j, a->out, all_of(out));
    return wrong ? wrong : check_turn(j, a);
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
        return check_move(j, a);
    case ACTION_RUN:
        return do_run(j, a);
    case ACTION_COPY:
        return do_copy(j, a);
    case ACTION_WEIGHTS:
        return do_weights(j, a);
    case ACTION_BIAS:
        return do_bias(j, a);
    case ACTION_CONCAT:
        return do_concat(j, a);
    case ACTION_HOST:
        return do_host(j, a);
    }
    return "an action of unknown kind";
}

static bool lies_outside(Judge *j, TensorId t) {
    for (uint32_t i = 0; i < j->plan->n_placements; i++) {
        const Placement *p = &j->plan->placement[i];
        if (same_tensor(p->tensor, t) && role_of(j, i) != HW_ACTIVE &&
            p->n_c == plan_volume(j->g, t).c &&
            areas_read(j->areas, p, all_of(p)))
            return true;
    }
    return false;
}

/* Where the state begins: outside, or in active memory where it stays. */
static const Placement *state_place(const Judge *j, const Node *input) {
    const Placement *found = NULL;
    for (uint32_t i = 0; i < j->plan->n_placements; i++) {
        const Placement *p = &j->plan->placement[i];
        if (same_tensor(p->tensor, input->out[0]) &&
            (!found || role_of(j, i) != HW_ACTIVE))
            found = p;
    }
    return found;
}

/* Whether the state lies in active memory alone, and what it is in the next
 * call there, at the end. */
static bool state_stays(Judge *j, TensorId next) {
    NodeId input = graph_state_of(j->g, next);
    if (input.i == NONE)
        return false;
    const Placement *state = state_place(j, graph_node(j->g, input));
    for (uint32_t i = 0; state && i < j->plan->n_placements; i++) {
        const Placement *p = &j->plan->placement[i];
        if (same_tensor(p->tensor, next) && placement_same(p, state) &&
            areas_read(j->areas, p, all_of(p)))
            return true;
    }
    return false;
}

static const char *check_end(Judge *j) {
    for (uint32_t s = 0; s < j->plan->schedule->n_steps; s++) {
        const Step *step = &j->plan->schedule->step[s];
        for (uint32_t i = 0; i < step->n; i++) {
            const Node *node = graph_node(j->g, step->slot[i].node);
            Volume v = plan_volume(j->g, node->out[0]);
            const Turn *t = &j->turn[step->slot[i].node.i];
            if (t->rows != v.h || (t->right && t->right != v.w))
                return arena_printf(j->arena, "%s is not computed, or twice",
                                    node->name);
        }
    }
    for (uint32_t i = 0; i < j->g->output.n; i++)
        if (!lies_outside(j, j->g->output.at[i]) &&
            !state_stays(j, j->g->output.at[i]))
            return arena_printf(j->arena, "output %s is nowhere outside",
                                tensor_name(j, j->g->output.at[i]));
    return NULL;
}

/* What the host gives and takes lies in one place of each memory. */
static const char *check_host_side(Judge *j) {
    const Placement **at =
        ARENA_ARRAY(j->arena, const Placement *, (j->g->tensor.n + 1) * 2);
    for (uint32_t i = 0; i < j->plan->n_placements; i++) {
        const Placement *p = &j->plan->placement[i];
        HwRole role = role_of(j, i);
        if (role != HW_INPUT && role != HW_OUTPUT)
            continue;
        const Placement **first = &at[p->tensor.i * 2 + (role == HW_OUTPUT)];
        if (*first && ((*first)->offset != p->offset ||
                       !volumes_same(&(*first)->whole, &p->whole)))
            return judge_says(j, p, "lies in two places");
        *first = p;
    }
    return NULL;
}

static void write_inputs(Judge *j) {
    for (uint32_t i = 0; i < j->plan->n_placements; i++) {
        const Placement *p = &j->plan->placement[i];
        NodeId producer = graph_tensor(j->g, p->tensor)->producer;
        if (graph_node(j->g, producer)->op == OP_INPUT &&
            role_of(j, i) == HW_INPUT && p->part_c == 0 &&
            !areas_find(j->areas, p))
            do_write(j, i, all_of(p));
    }
    for (uint32_t i = 0; i < j->g->node.n; i++) {
        const Node *node = &j->g->node.at[i];
        const Placement *p = NULL;
        if (graph_state_next(j->g, node).i != NONE)
            p = state_place(j, node);
        if (p && j->spec->memory[p->memory].role == HW_ACTIVE)
            do_write(j, (uint32_t)(p - j->plan->placement), all_of(p));
    }
}

const char *plan_judge(Arena *arena, const Plan *plan) {
    Judge j = {.arena = arena_new("judge"),
               .plan = plan,
               .g = plan->schedule->graph,
               .spec = plan->schedule->spec};
    j.areas = areas_new(j.arena, j.g, j.spec);
    j.turn = ARENA_ARRAY(j.arena, Turn, j.g->node.n + 1);
    const char *wrong = check_placements(&j);
    if (!wrong)
        wrong = check_host_side(&j);
    if (!wrong)
        write_inputs(&j);
    for (uint32_t i = 0; i < plan->n_actions && !wrong; i++) {
        j.action = &plan->action[i];
        wrong = do_action(&j);
    }
    if (!wrong)
        wrong = check_end(&j);
    if (wrong)
        wrong = arena_strdup(arena, wrong);
    arena_free(j.arena);
    return wrong;
}
