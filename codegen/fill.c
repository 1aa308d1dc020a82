/* fill.c - what an action is, as meanings of instruction fields; see fill.h. */
#include "codegen/fill.h"

#include "codegen/waits.h"

static void set_repl(HwFields *fields, HwOperand operand, Repl repl) {
    set(fields, HW_FIELD_OF(operand, FULL), repl.full);
    set(fields, HW_FIELD_OF(operand, REPL), repl.sections);
    set(fields, HW_FIELD_OF(operand, UNITS), repl.units);
    set(fields, HW_FIELD_OF(operand, WIDTH), repl.width);
}

static void set_part(const HwSpec *spec, HwFields *fields, HwOperand operand,
                     const Placement *placement) {
    Repl repl = hwspec_repl_in(spec, placement->memory, placement->whole.repl);
    set(fields, HW_FIELD_OF(operand, PART), 1);
    set(fields, HW_FIELD_OF(operand, PART_START), placement->part_c);
    set(fields, HW_FIELD_OF(operand, PART_C), placement->whole.c);
    set(fields, HW_FIELD_OF(operand, PART_FULL), repl.full);
    set(fields, HW_FIELD_OF(operand, PART_REPL), repl.sections);
    set(fields, HW_FIELD_OF(operand, PART_UNITS), repl.units);
    set(fields, HW_FIELD_OF(operand, PART_WIDTH), repl.width);
}

static const Placement *placement_of(const Filler *e, uint32_t i) {
    return &e->plan->placement[i];
}

uint64_t operand_offset(const Filler *e, const Placement *p) {
    const Layout *layout = e->spec->memory[p->memory].layout;
    return p->offset + layout_part_offset(layout, &p->whole, p->part_c);
}

static void set_lines(HwFields *fields, HwOperand operand,
                      const LineBuffer *lines) {
    set(fields, HW_FIELD_OF(operand, BAND), lines->band);
    set(fields, HW_FIELD_OF(operand, KEEP), lines->keep);
    set(fields, HW_FIELD_OF(operand, SPAN), lines->span);
    set(fields, HW_FIELD_OF(operand, SHIFT), lines->shift);
}

void set_operand(const Filler *e, HwFields *fields, HwOperand operand,
                 uint32_t index, uint32_t row, uint32_t rows) {
    const Placement *p = placement_of(e, index);
    bool turns = p->ring || p->lines.band;
    set(fields, HW_FIELD_OF(operand, RING), p->ring ? p->whole.h : 0);
    set(fields, HW_FIELD_OF(operand, ROW), turns ? row : 0);
    set(fields, HW_FIELD_OF(operand, COL), 0);
    set_lines(fields, operand, &p->lines);
    Volume volume = plan_volume(e->graph, p->tensor);
    insn_set_operand(e->spec, fields, operand, p->memory, operand_offset(e, p));
    set(fields, HW_FIELD_OF(operand, W), volume.w);
    set(fields, HW_FIELD_OF(operand, PITCH), p->pitch ? p->pitch : volume.w);
    set(fields, HW_FIELD_OF(operand, H), rows);
    set(fields, HW_FIELD_OF(operand, C), p->n_c);
    bool is_part = p->whole.c != p->n_c;
    bool backing = e->spec->memory[p->memory].role != HW_ACTIVE;
    if (backing && p->n_c == volume.c)
        set_repl(fields, operand, e->plan->repl[p->tensor.i]);
    else if (is_part)
        set_repl(fields, operand, hwspec_repl_none(e->spec, p->n_c));
    else
        set_repl(fields, operand, p->whole.repl);
    if (is_part)
        set_part(e->spec, fields, operand, p);
}

/* Of these rows columns [col, col + cols), which are told of a ring or a line
 * buffer: a volume of its own begins with the first. */
static void set_columns(const Filler *e, HwFields *fields, HwOperand operand,
                        uint32_t index, uint32_t col, uint32_t cols) {
    const Placement *p = placement_of(e, index);
    bool turns = p->ring || p->lines.band;
    set(fields, HW_FIELD_OF(operand, COL), turns ? col - p->left : 0);
    if (!turns)
        set(fields, HW_FIELD_OF(operand, PITCH), cols);
    set(fields, HW_FIELD_OF(operand, W), cols);
}

static void set_window(HwFields *f, HwField first, const uint32_t kernel[2],
                       const uint32_t stride[2], uint32_t pad_h,
                       uint32_t pad_w) {
    set(f, first, kernel[1]);
    set(f, first + 1, kernel[0]);
    set(f, first + 2, stride[1]);
    set(f, first + 3, stride[0]);
    set(f, first + 4, pad_w);
    set(f, first + 5, pad_h);
}

static uint64_t units_in(const HwMemory *memory, uint64_t bytes) {
    return memory->base + bytes / memory->unit;
}

static uint64_t address_in_units(const Filler *e, uint64_t bytes) {
    return units_in(&e->spec->memory[0], bytes);
}

static void set_nest(const Filler *e, HwFields *f, const Nest *nest) {
    set(f, HW_F_TILE_C, nest->c);
    set(f, HW_F_TILE_IN_C, nest->in_c);
    set(f, HW_F_TILE_STAYS, nest->weights_stay);
    set(f, HW_F_TILE_WEIGHTS0, (int64_t)address_in_units(e, nest->weights[0]));
    set(f, HW_F_TILE_WEIGHTS1, (int64_t)address_in_units(e, nest->weights[1]));
    set(f, HW_F_TILE_SUMS, (int64_t)address_in_units(e, nest->sums));
}

static void set_tile(const Filler *e, HwFields *f, const Action *action) {
    if (action->style < 0)
        return;
    const HwTileStyle *style = &e->spec->tiling.tiles.style[action->style];
    set(f, HW_F_TILE_ON, 1);
    set(f, HW_F_TILE_W, action->tile_w);
    set(f, HW_F_TILE_H, action->tile_h);
    const Nest *nest = &action->nest;
    const uint64_t *input = nest->c ? nest->input : style->buffer;
    set(f, HW_F_TILE_BUFFER0, (int64_t)address_in_units(e, input[0]));
    set(f, HW_F_TILE_BUFFER1, (int64_t)address_in_units(e, input[1]));
    if (nest->c)
        set_nest(e, f, nest);
    if (style->has_dest)
        set(f, HW_F_TILE_DEST, (int64_t)address_in_units(e, style->dest));
    else if (style->out_backing)
        set(f, HW_F_TILE_DEST, -1);
    else
        set(f, HW_F_TILE_DEST, f->num[HW_F_OUT_ADDR]);
}

static void set_act(HwFields *f, const Act *act) {
    bool sloped = act->kind == ACT_LEAKY || act->kind == ACT_PRELU;
    set(f, HW_F_ACT, hw_act_number(act_name[act->kind]));
    set(f, HW_F_RELU, act->kind != ACT_NONE);
    set(f, HW_F_PRELU, sloped);
}

/* Weights of a convolution go through a cache of limited rows. */
static void set_weight_mode(const Filler *e, HwFields *f, uint32_t area) {
    const HwWeightCache *cache = &e->spec->weight_cache;
    Repl repl = {(uint32_t)f->num[HW_F_IN_FULL], (uint32_t)f->num[HW_F_IN_REPL],
                 (uint32_t)f->num[HW_F_IN_UNITS],
                 (uint32_t)f->num[HW_F_IN_WIDTH]};
    uint64_t rows = hwspec_weight_rows(repl, area);
    set(f, HW_F_PINGPONG, rows <= cache->pingpong);
    set(f, HW_F_HALFRATE, cache->full_rate && rows > cache->full_rate);
}

static bool works_ahead(const Filler *e, const Action *action) {
    return e->spec->engine[action->legal.engine].ahead;
}

/* A source that is read by tiles from outside is replicated on its way; engines
 * that work ahead have their own ways. */
static void set_source_repl(const Filler *e, HwFields *f, const Action *action,
                            uint32_t channels) {
    if (action->style >= 0 &&
        e->spec->tiling.tiles.style[action->style].in_backing)
        set_repl(f, HW_IN, action->tile_repl);
    else if (works_ahead(e, action))
        set_repl(f, HW_IN, hwspec_repl_none(e->spec, channels));
}

const char *whole_name(const Filler *e, const char *name) {
    bool as_tile = name && name[insn_tile_mark(name)];
    return as_tile ? arena_printf(e->arena, "%s#0", name) : name;
}

static void fill_conv(const Filler *e, HwFields *f, const Action *action,
                      const Node *node) {
    const ConvAttr *conv = &node->attr.conv;
    uint32_t area = conv->kernel[0] * conv->kernel[1];
    set_window(f, HW_F_KERNEL_W, conv->kernel, conv->stride, action->pad_top,
               action->pad_left);
    set(f, HW_F_DILATION_W, conv->dilation[1]);
    set(f, HW_F_DILATION_H, conv->dilation[0]);
    /* One a channel: as many as it makes. */
    bool each = conv->groups > 1 && conv->groups == conv->out_c;
    set(f, HW_F_GROUPS, each ? f->num[HW_F_OUT_C] : conv->groups);
    set(f, HW_F_BIAS, node->constant[CONST_BIAS].i != NONE);
    set_act(f, &node->act);
    set_source_repl(e, f, action, (uint32_t)f->num[HW_F_IN_C]);
    set_weight_mode(e, f, area);
}

/* An instruction that pools all of its input to one pixel says so. `first`,
 * `in_w`: the fields of its window and of its input. */
static void set_global(HwFields *f, HwField first, HwField in_w, HwField in_h) {
    bool whole = f->num[first] == f->num[in_w] &&
                 f->num[first + 1] == f->num[in_h] && !f->num[first + 4] &&
                 !f->num[first + 5];
    set(f, HW_F_POOL_GLOBAL,
        whole && f->num[HW_F_OUT_W] == 1 && f->num[HW_F_OUT_H] == 1);
}

/* A global pool has the size of its input as its kernel. */
static void pool_window(const Node *node, uint32_t in_h, uint32_t in_w,
                        HwFields *f, HwField first, uint32_t pad_h,
                        uint32_t pad_w) {
    const PoolAttr *pool = &node->attr.pool;
    const uint32_t whole[2] = {in_h, in_w}, one[2] = {1, 1};
    bool global = pool->global;
    set_window(f, first, global ? whole : pool->kernel,
               global ? one : pool->stride, global ? 0 : pad_h,
               global ? 0 : pad_w);
}

static void fill_pool(const Filler *e, HwFields *f, const Action *action,
                      const Node *node) {
    Volume in = plan_volume(e->graph, node->in[0]);
    pool_window(node, in.h, in.w, f, HW_F_KERNEL_W, action->pad_top,
                action->pad_left);
    set_global(f, HW_F_KERNEL_W, HW_F_IN_W, HW_F_IN_H);
    set(f, HW_F_PINGPONG, 1);
}

/* Rows of the convolution, of `all`, from which the action's pool makes its. */
static uint32_t rows_between(const Action *action, const PoolAttr *pool,
                             uint32_t all) {
    if (pool->global)
        return all;
    uint32_t stride = pool->stride[0], pad = pool->pad[0];
    uint32_t first = action->row * stride;
    uint32_t end = first + (action->rows - 1) * stride + pool->kernel[0];
    first = first > pad ? first - pad : 0;
    end = end > pad ? end - pad : 0;
    return (end < all ? end : all) - first;
}

static void fill_conv_pool(const Filler *e, HwFields *f, const Action *action,
                           const Node *node) {
    fill_conv(e, f, action, node);
    const ConvAttr *conv = &node->attr.conv;
    Volume in = plan_volume(e->graph, node->in[0]);
    uint32_t mid[2], size[2] = {in.h, in.w};
    for (int axis = 0; axis < 2; axis++)
        mid[axis] = conv_out_size(size[axis], conv->kernel[axis],
                                  conv->stride[axis], conv->dilation[axis],
                                  conv->pad[axis], conv->pad_end[axis]);
    bool some = action->rows < plan_volume(e->graph, node->out[0]).h ||
                action->in_rows < in.h; /* the last ones are not pooled */
    set(f, HW_F_MID_H,
        some ? rows_between(action, &node->attr.pool, mid[0]) : mid[0]);
    set(f, HW_F_MID_W, mid[1]);
    set(f, HW_F_MID_C, f->num[HW_F_OUT_C]); /* some, by slices */
    pool_window(node, mid[0], mid[1], f, HW_F_POOL_KERNEL_W,
                action->pool_pad_top, node->attr.pool.pad[1]);
    set_global(f, HW_F_POOL_KERNEL_W, HW_F_MID_W, HW_F_MID_H);
    set_text(f, HW_F_CONV_NAME, whole_name(e, node->conv_name));
}

static void fill_eltwise(const Filler *e, HwFields *f, const Action *action,
                         const Node *node) {
    set(f, HW_F_ADD, node->attr.elt.kind == ELT_ADD ? 1 : 0);
    set(f, HW_F_SCALE, 0);
    set_act(f, &node->act);
    if (insn_by_channel(action->legal.op)) {
        set_operand(e, f, HW_IN2, action->in[1], 0, 1);
    } else {
        set_operand(e, f, HW_IN2, action->in[1], action->in_row,
                    action->in_rows);
        set_columns(e, f, HW_IN2, action->in[1], action->in_col,
                    action->in_cols);
    }
    set(f, HW_F_PARALLEL_READ, waits_parallel(e->plan, action));
    set(f, HW_F_PINGPONG, 1);
}

static void fill_scale(const Filler *e, HwFields *f, const Action *action,
                       const Node *node) {
    (void)e;
    (void)action;
    set(f, HW_F_ADD, -1);
    set(f, HW_F_SCALE, 1);
    set(f, HW_F_BIAS, 1);
    set_act(f, &node->act);
    set(f, HW_F_PINGPONG, 1);
}

static void fill_act(const Filler *e, HwFields *f, const Action *action,
                     const Node *node) {
    (void)e;
    (void)action;
    set_act(f, &node->act);
    set(f, HW_F_PINGPONG, 1);
}

static void fill_upsample(const Filler *e, HwFields *f, const Action *action,
                          const Node *node) {
    (void)e;
    (void)action;
    set(f, HW_F_FACTOR_H, node->attr.up.factor[0]);
    set(f, HW_F_FACTOR_W, node->attr.up.factor[1]);
    set_text(f, HW_F_METHOD, "NearestNeighbor");
    set(f, HW_F_PINGPONG, 1);
}

/* Which channels is in the image. */
static void fill_gather(const Filler *e, HwFields *f, const Action *action,
                        const Node *node) {
    (void)e;
    (void)action;
    (void)node;
    set(f, HW_F_PINGPONG, 1);
}

/* What they take is in the image, or is said by the sizes. */
#define fill_offset fill_gather
#define fill_pixels fill_gather
#define fill_reduce fill_gather
#define fill_reshape fill_gather

static void fill_transpose(const Filler *e, HwFields *f, const Action *action,
                           const Node *node) {
    const Shape *perm = &node->attr.perm;
    int64_t order = 0;
    (void)e;
    (void)action;
    for (uint32_t i = 1; i < 4; i++)
        order = order * 10 + (i < perm->rank ? perm->dim[i] - 1 : i - 1);
    set(f, HW_F_ORDER, order);
    set(f, HW_F_PINGPONG, 1);
}

static void fill_mix(const Filler *e, HwFields *f, const Action *action,
                     const Node *node) {
    Volume in = plan_volume(e->graph, node->in[0]);
    Volume by = plan_volume(e->graph, node->in[1]);
    const Placement *second = placement_of(e, action->in[1]);
    set(f, HW_F_GROUPS, node->attr.mix.groups);
    set(f, HW_F_PATCH_H, action->in_rows / node->attr.mix.windows[0]);
    set(f, HW_F_PATCH_W, in.w / node->attr.mix.windows[1]);
    set(f, HW_F_SHIFT_H, node->attr.mix.shift[0]);
    set(f, HW_F_SHIFT_W, node->attr.mix.shift[1]);
    set(f, HW_F_ADD, 0);
    set(f, HW_F_SCALE, 0);
    set_operand(e, f, HW_IN2, action->in[1], 0, by.h);
    if (second->ring && second->whole.h != by.h)
        bug("a ring has more rows than the volume that it is to be");
    set(f, HW_FIELD_OF(HW_IN2, RING), 0);
    set(f, HW_F_PARALLEL_READ, waits_parallel(e->plan, action));
    set(f, HW_F_PINGPONG, 1);
}

static void fill_softmax(const Filler *e, HwFields *f, const Action *action,
                         const Node *node) {
    uint32_t groups = node->attr.axis.groups;
    (void)e;
    (void)action;
    set(f, HW_F_GROUPS, groups ? groups : 1);
    set(f, HW_F_PINGPONG, 1);
}

/* Where each channel is normalised by itself, as many groups as channels. */
static void fill_norm(const Filler *e, HwFields *f, const Action *action,
                      const Node *node) {
    uint32_t groups = node->attr.norm.groups;
    (void)action;
    if (node->attr.norm.axis == 2)
        groups = plan_volume(e->graph, node->in[0]).c;
    set(f, HW_F_GROUPS, groups ? groups : 1);
    set(f, HW_F_PINGPONG, 1);
}

/* An inner product is a convolution whose kernel is the whole input. */
static void fill_fc(const Filler *e, HwFields *f, const Action *action,
                    const Node *node) {
    Volume in = plan_volume(e->graph, node->in[0]);
    const uint32_t kernel[2] = {in.h, in.w}, one[2] = {1, 1};
    set_window(f, HW_F_KERNEL_W, kernel, one, 0, 0);
    set(f, HW_F_BIAS, node->constant[CONST_BIAS].i != NONE);
    set_act(f, &node->act);
    set_source_repl(e, f, action, in.c);
    set_weight_mode(e, f, in.h * in.w);
}

typedef void Fill(const Filler *e, HwFields *f, const Action *action,
                  const Node *node);

/* Operators that no instruction computes have none; a transposed convolution
 * has the fields of one. */
#define fill_input NULL
#define fill_deconv fill_conv
#define fill_bn NULL
#define fill_concat NULL
#define fill_slice NULL
#define fill_lrn NULL
#define fill_pad NULL
#define fill_constant NULL
#define fill_call NULL
#define fill_matmul NULL
#define fill_routine NULL
#define fill_identity NULL

static Fill *const fill[OP_COUNT] = {
#define OP(NAME, name, min, max, doc) [OP_##NAME] = fill_##name,
#include "graph/ops.def"
#undef OP
};

void set_bias(const Filler *e, HwFields *f, const Action *action) {
    const ConstantBlock *b = &e->plan->bias[action->bias - 1];
    const HwMemory *memory = &e->spec->memory[e->spec->bias];
    uint32_t c =
        action->kind == ACTION_BIAS ? b->c : e->plan->placement[action->out].c;
    uint64_t skipped = (uint64_t)(c - b->c) * memory->layout->element;
    set(f, HW_F_BIAS_ADDR, (int64_t)units_in(memory, b->offset + skipped));
    if (action->kind != ACTION_BIAS)
        return;
    set(f, HW_F_WEIGHTS_FIRST, b->c);
    set(f, HW_F_WEIGHTS_LAST, (int64_t)b->c + b->n_c - 1);
    set(f, HW_F_WEIGHTS_MEMORY, e->spec->memory[b->from].id);
}

void set_weights(const Filler *e, HwFields *f, const Action *action) {
    const ConstantBlock *b = &e->plan->block[action->weights - 1];
    const HwMemory *memory = &e->spec->memory[e->spec->weights];
    set(f, HW_F_WEIGHTS_ADDR, (int64_t)units_in(memory, b->offset));
    set(f, HW_F_WEIGHTS_FIRST, b->c);
    set(f, HW_F_WEIGHTS_LAST, (int64_t)b->c + b->n_c - 1);
    set(f, HW_F_WEIGHTS_TAPS, b->taps);
    set(f, HW_F_WEIGHTS_IN, b->in_c);
    set(f, HW_F_WEIGHTS_TAP_FIRST, b->kernel.first);
    set(f, HW_F_WEIGHTS_TAP_LAST, (int64_t)b->kernel.first + b->kernel.n - 1);
    set(f, HW_F_WEIGHTS_MEMORY, e->spec->memory[b->from].id);
}

void set_single_pixels(HwFields *f) {
    static const uint32_t one[2] = {1, 1};
    set_window(f, HW_F_KERNEL_W, one, one, 0, 0);
    set_global(f, HW_F_KERNEL_W, HW_F_IN_W, HW_F_IN_H);
    set(f, HW_F_PINGPONG, 1);
}

void set_run(const Filler *e, HwFields *f, const Action *action) {
    const Node *node = graph_node(e->graph, action->node);
    if (!fill[node->op])
        bug("no engine instruction for %s", op_info[node->op].name);
    set_operand(e, f, HW_IN, action->in[0], action->in_row, action->in_rows);
    set_operand(e, f, HW_OUT, action->out, action->row, action->rows);
    set_columns(e, f, HW_IN, action->in[0], action->in_col, action->in_cols);
    set_columns(e, f, HW_OUT, action->out, action->col, action->cols);
    fill[node->op](e, f, action, node);
    set(f, HW_F_BLOCK, !works_ahead(e, action));
    set_tile(e, f, action);
    if (action->weights)
        set_weights(e, f, action);
    if (action->bias)
        set_bias(e, f, action);
    if (hwspec_adds_up(e->spec, action->legal.op, action->legal.engine)) {
        Addends x = action_addends(e->plan, action);
        set(f, HW_F_SUMS_FIRST, addends_begin(x));
        set(f, HW_F_SUMS_LAST, addends_end(x));
    }
    if (action->sums)
        set(f, HW_F_SUMS_ADDR,
            (int64_t)units_in(&e->spec->memory[e->spec->sums],
                              e->plan->sums[action->sums - 1].offset));
}
