/* record_make.c - records of instructions; see record.h.
 *
 * Input: a plan, and the listing that was made of it. Output: operands as
 * placements have them, and what each instruction waits for: by its fields
 * where the machine has such, else by steps, else (queued machines) by the
 * bytes that it shares with those that may still be at work.
 */
#include "codegen/codegen.h"
#include "codegen/record.h"
#include "plan/issue_queue.h"

#include <string.h>

typedef struct Maker {
    Arena *arena;
    const Plan *plan;
    const HwSpec *spec;
    const Graph *graph;
    const Listing *listing;
    const uint32_t *action_of;
    Record *record;
    uint32_t n_units;
    uint32_t last[HW_MAX_UNITS]; /* by unit: its last instruction + 1 */
    uint32_t *before; /* by instruction: the last one of its unit, + 1 */
    uint32_t *queued; /* by instruction: how many went through the queue */
    uint32_t *ended;  /* by instruction and unit, see ended() */
} Maker;

/* ---- operands ---- */

static const char *const role_name[] = {
    [HW_IN] = "in", [HW_IN2] = "in2", [HW_OUT] = "out"};

/* Where an element lies in the memory; of those with copies, the first. */
static uint64_t byte_of(const Layout *layout, const RecordOperand *o,
                        uint32_t c, uint32_t h, uint32_t w) {
    uint32_t row = o->row + h, col = o->col + w;
    if (o->lines.band) {
        col = (uint32_t)lines_pixel(&o->lines, o->pitch, row, col);
        row = 0;
    } else if (o->ring) {
        row %= o->whole.h;
    }
    return o->origin +
           layout_offset(layout, &o->whole, o->channel + c, row, col, 0);
}

/* Bytes from each index to the next; false if they differ. */
static bool find_stride(const uint64_t *at, uint32_t n, uint64_t *stride) {
    if (n > 1)
        *stride = at[1] - at[0];
    for (uint32_t i = 1; i < n; i++)
        if (at[i] < at[0] || at[i] - at[0] != i * *stride)
            return false;
    return true;
}

/* Rings and line buffers are strided where they do not turn. */
static bool turns(const RecordOperand *o) {
    return o->lines.band ||
           (o->ring && o->row % o->whole.h + o->rows > o->whole.h);
}

static void find_strides(const Maker *m, RecordOperand *o) {
    const Layout *layout = m->spec->memory[o->memory].layout;
    o->address = byte_of(layout, o, 0, 0, 0);
    if (o->whole.repl.units || turns(o))
        return;
    Arena *scratch = arena_new("strides");
    LayoutTables t = layout_tables(scratch, layout, &o->whole);
    uint32_t row = o->ring ? o->row % o->whole.h : o->row;
    o->strided =
        find_stride(t.c_at + o->channel, o->channels, &o->stride[LAYOUT_C]) &&
        find_stride(t.h_at + row, o->rows, &o->stride[LAYOUT_H]) &&
        find_stride(t.w_at + o->col, o->cols, &o->stride[LAYOUT_W]);
    arena_free(scratch);
}

/* Rows and columns are the tensor's. */
static RecordOperand operand_of(const Maker *m, HwOperand role, uint32_t index,
                                uint32_t row, uint32_t rows, uint32_t col,
                                uint32_t cols) {
    const Placement *p = &m->plan->placement[index];
    const Tensor *tensor = graph_tensor(m->graph, p->tensor);
    bool turns = p->ring || p->lines.band;
    RecordOperand o = {.role = role_name[role],
                       .tensor = tensor->name,
                       .memory = p->memory,
                       .origin = p->offset,
                       .whole = p->whole,
                       .channel = p->part_c,
                       .channels = p->n_c,
                       .row = turns ? row : row - p->row,
                       .rows = rows,
                       .col = col - (turns ? p->left : p->col),
                       .cols = cols,
                       .ring = p->ring,
                       .lines = p->lines,
                       .quant = tensor->quant};
    o.pitch = p->pitch ? p->pitch : plan_volume(m->graph, p->tensor).w;
    o.whole.repl = hwspec_repl_in(m->spec, p->memory, o.whole.repl);
    find_strides(m, &o);
    return o;
}

static void add_operand(Record *r, RecordOperand operand) {
    if (r->n < RECORD_MOST_OPERANDS)
        r->operand[r->n++] = operand;
}

static RecordOperand weights_of(const Maker *m, const Action *a) {
    const ConstantBlock *b = &m->plan->block[a->weights - 1];
    Volume whole = {.c = b->n_c, .h = 1, .w = b->taps};
    bool adds = hwspec_adds_up(m->spec, a->legal.op, a->legal.engine);
    uint64_t element = m->spec->memory[m->spec->weights].layout->element;
    return (RecordOperand){
        .role = "weights",
        .tensor = node_constants_layer(graph_node(m->graph, b->node)),
        .memory = m->spec->weights,
        .origin = b->offset,
        .whole = whole,
        .channels = b->n_c,
        .rows = 1,
        .cols = b->taps,
        .first_channel = b->c,
        .first_input = b->in_c,
        .some_inputs = adds,
        .some_taps = adds && m->spec->insns->tells_taps,
        .first_tap = b->kernel.first,
        .last_tap = b->kernel.first + b->kernel.n - 1,
        .address = b->offset,
        .strided = true,
        .stride = {b->taps * element, 0, element}};
}

static RecordOperand bias_of(const Maker *m, const Action *a) {
    const ConstantBlock *b = &m->plan->bias[a->bias - 1];
    uint64_t element = m->spec->memory[m->spec->bias].layout->element;
    bool loads = a->kind == ACTION_BIAS;
    const Placement *out = &m->plan->placement[a->out];
    uint32_t c = loads ? b->c : out->c, n = loads ? b->n_c : out->n_c;
    uint64_t at = b->offset + (c - b->c) * element;
    return (RecordOperand){
        .role = "bias",
        .tensor = node_constants_layer(graph_node(m->graph, b->node)),
        .memory = m->spec->bias,
        .origin = at,
        .whole = {.c = n, .h = 1, .w = 1},
        .channels = n,
        .rows = 1,
        .cols = 1,
        .first_channel = c,
        .address = at,
        .strided = true,
        .stride = {element, 0, 0}};
}

static RecordOperand sums_of(const Maker *m, const Action *a) {
    const SumsPlace *s = &m->plan->sums[a->sums - 1];
    const Placement *out = &m->plan->placement[a->out];
    RecordOperand o = {.role = "sums",
                       .tensor = graph_tensor(m->graph, out->tensor)->name,
                       .memory = m->spec->sums,
                       .origin = s->offset,
                       .whole = s->volume,
                       .channels = s->volume.c,
                       .rows = s->volume.h,
                       .cols = s->volume.w};
    find_strides(m, &o);
    return o;
}

/* A second operand with rows and columns of its own is read whole. */
static RecordOperand input_of(const Maker *m, const Action *a, uint32_t i) {
    const Placement *p = &m->plan->placement[a->in[i]];
    HwOperand role = hw_operand(i, a->n_in);
    bool own = i == 1 && insn_own_plane(a->legal.op);
    return own ? operand_of(m, role, a->in[i], p->row, p->rows, p->col, p->cols)
               : operand_of(m, role, a->in[i], a->in_row, a->in_rows, a->in_col,
                            a->in_cols);
}

static void add_run(const Maker *m, const Action *a, Record *r) {
    for (uint32_t i = 0; i < a->n_in; i++)
        add_operand(r, input_of(m, a, i));
    if (!keeps_for_next(m->plan, a))
        add_operand(
            r, operand_of(m, HW_OUT, a->out, a->row, a->rows, a->col, a->cols));
    if (a->sums)
        add_operand(r, sums_of(m, a));
    if (a->weights)
        add_operand(r, weights_of(m, a));
    if (a->bias)
        add_operand(r, bias_of(m, a));
    Addends x = action_addends(m->plan, a);
    r->adds_up = hwspec_adds_up(m->spec, a->legal.op, a->legal.engine);
    r->sums_first = addends_begin(x);
    r->sums_last = addends_end(x);
    if (a->style < 0)
        return;
    const HwTileStyle *style = &m->spec->tiling.tiles.style[a->style];
    r->tiled = true;
    r->tile_w = a->tile_w;
    r->tile_h = a->tile_h;
    const Nest *nest = &a->nest;
    r->tile_c = nest->c;
    r->tile_in_c = nest->in_c;
    r->tile_sums = nest->sums;
    for (int i = 0; i < 2; i++) {
        r->tile_weights[i] = nest->weights[i];
        r->tile_input[i] = nest->c ? nest->input[i] : style->buffer[i];
    }
}

/* Rows that are moved, or copied. */
static void add_move(const Maker *m, const Action *a, Record *r) {
    uint32_t from = a->in[0], cols = a->cols;
    if (a->kind == ACTION_COPY)
        cols = plan_volume(m->graph, m->plan->placement[from].tensor).w;
    add_operand(r, operand_of(m, HW_IN, from, a->row, a->rows, a->col, cols));
    add_operand(r,
                operand_of(m, HW_OUT, a->out, a->row, a->rows, a->col, cols));
}

static void add_whole(const Maker *m, const Action *a, Record *r) {
    for (uint32_t i = 0; i < a->n_in && i + 1 < RECORD_MOST_OPERANDS; i++) {
        const Placement *p = &m->plan->placement[a->in[i]];
        Volume v = plan_volume(m->graph, p->tensor);
        add_operand(
            r, operand_of(m, hw_operand(i, a->n_in), a->in[i], 0, v.h, 0, v.w));
    }
    Volume v = plan_volume(m->graph, m->plan->placement[a->out].tensor);
    add_operand(r, operand_of(m, HW_OUT, a->out, 0, v.h, 0, v.w));
}

static void add_operands(const Maker *m, const Action *a, Record *r) {
    switch (a->kind) {
    case ACTION_LOAD:
    case ACTION_STORE:
    case ACTION_COPY:
        add_move(m, a, r);
        return;
    case ACTION_RUN:
        if (a->legal.op == HW_OP_LAYER)
            add_whole(m, a, r);
        else
            add_run(m, a, r);
        return;
    case ACTION_HOST:
        add_whole(m, a, r);
        return;
    case ACTION_WEIGHTS:
        add_operand(r, weights_of(m, a));
        return;
    case ACTION_BIAS:
        add_operand(r, bias_of(m, a));
        return;
    case ACTION_CONCAT: /* nothing moves */
        return;
    }
}

/* ---- who and when ---- */

static uint32_t record_unit(const Maker *m, const Action *a) {
    bool moves = is_move(a) || loads_constants(a);
    if (moves && m->spec->n_dmas)
        return insn_unit_of_dma(m->spec, unit_of_move(m->plan, a));
    switch (a->kind) {
    case ACTION_STORE:
        return insn_unit_of_stores(m->spec);
    case ACTION_LOAD:
    case ACTION_WEIGHTS:
    case ACTION_BIAS:
        return insn_unit_of_loads(m->spec);
    case ACTION_RUN:
    case ACTION_COPY:
        return (uint32_t)a->legal.engine;
    case ACTION_CONCAT:
    case ACTION_HOST:
        break;
    }
    return insn_unit_of_host(m->spec);
}

static bool apart(uint32_t a, uint32_t n_a, uint32_t b, uint32_t n_b) {
    return a + n_a <= b || b + n_b <= a;
}

static uint32_t count_of(const RecordOperand *o, int dim) {
    return dim == LAYOUT_C ? o->channels : dim == LAYOUT_H ? o->rows : o->cols;
}

/* The bytes among which all of its elements are: [*from, result). */
static uint64_t reach(const Maker *m, const RecordOperand *o, uint64_t *from) {
    const Layout *layout = m->spec->memory[o->memory].layout;
    uint64_t end = o->address + layout->element;
    *from = o->strided ? o->address : o->origin;
    for (int dim = 0; dim < 3; dim++)
        end += o->stride[dim] * (count_of(o, dim) - 1);
    return o->strided ? end : o->origin + layout_bytes(layout, &o->whole);
}

/* One axis of two boxes of bytes, whichever has it. */
typedef struct Axis {
    uint64_t stride;
    uint32_t n_a, n_b;
} Axis;

/* Axes that both share, the longest stride first; 4: they have others. */
static uint32_t common_axes(const RecordOperand *a, const RecordOperand *b,
                            Axis out[3]) {
    uint32_t n = 0;
    for (int dim = 0; dim < 3; dim++) {
        uint64_t s = a->stride[dim], t = b->stride[dim];
        if (s && t && s != t)
            return 4;
        Axis axis = {s ? s : t, count_of(a, dim), count_of(b, dim)};
        if (!axis.stride)
            continue;
        uint32_t at = n++;
        for (; at > 0 && out[at - 1].stride < axis.stride; at--)
            out[at] = out[at - 1];
        out[at] = axis;
    }
    return n;
}

/* Whether two boxes of elements meet; b begins `away` bytes behind a. Inner
 * axes reach no further than a step of the outer one. */
static bool boxes_meet(const Axis *axis, uint32_t n, int64_t away,
                       int64_t element) {
    if (!n)
        return away < element && -away < element;
    int64_t stride = (int64_t)axis->stride, steps = away / stride;
    for (int64_t k = steps - 1; k <= steps + 1; k++)
        if (k < (int64_t)axis->n_a && -k < (int64_t)axis->n_b &&
            boxes_meet(axis + 1, n - 1, away - k * stride, element))
            return true;
    return false;
}

/* Whether both have a byte; where it is not easily told, yes. */
static bool meet(const Maker *m, const RecordOperand *a,
                 const RecordOperand *b) {
    uint64_t from_a, from_b, end_a, end_b;
    end_a = reach(m, a, &from_a);
    end_b = reach(m, b, &from_b);
    if (a->memory != b->memory || end_a <= from_b || end_b <= from_a)
        return false;
    bool same = a->origin == b->origin && volumes_same(&a->whole, &b->whole);
    if (same && apart(a->channel, a->channels, b->channel, b->channels))
        return false;
    Axis axis[3];
    uint32_t n = a->strided && b->strided ? common_axes(a, b, axis) : 4;
    return n > 3 || boxes_meet(axis, n, (int64_t)(b->address - a->address),
                               m->spec->memory[a->memory].layout->element);
}

static bool writes(const Record *r, uint32_t operand) {
    const char *role = r->operand[operand].role;
    return role[0] == 'o' || strcmp(role, "sums") == 0 ||
           hw_is_among(r->op, HW_CONSTANT_LOADS);
}

static bool conflict(const Maker *m, const Record *a, const Record *b) {
    for (uint32_t i = 0; i < a->n; i++)
        for (uint32_t k = 0; k < b->n; k++)
            if ((writes(a, i) || writes(b, k)) &&
                meet(m, &a->operand[i], &b->operand[k]))
                return true;
    return false;
}

static bool beside(const HwSpec *spec, uint32_t a, uint32_t b) {
    if (a == b)
        return false;
    return a >= spec->n_engines || b >= spec->n_engines ||
           spec->engine[a].beside >> b & 1 || spec->engine[b].beside >> a & 1;
}

/* What is known to have ended before instruction i begins: of each unit all
 * instructions before this one. */
static uint32_t *ended(const Maker *m, uint32_t i) {
    return m->ended + (size_t)i * m->n_units;
}

/* The last of those that may still be at work, or UINT32_MAX. */
static uint32_t last_at_work(const Maker *m, const uint32_t *known,
                             const uint32_t *cursor) {
    uint32_t best = 0;
    for (uint32_t u = 0; u < m->n_units; u++)
        if (cursor[u] > known[u] && cursor[u] > best)
            best = cursor[u];
    return best - 1;
}

static void wait_for(const Maker *m, uint32_t k, uint32_t *known) {
    const uint32_t *before = ended(m, k);
    for (uint32_t u = 0; u < m->n_units; u++)
        known[u] = before[u] > known[u] ? before[u] : known[u];
    known[m->record[k].unit] = k + 1;
}

/* Of a queued machine: those that may still be at work, its own engine's last,
 * and what is beyond the queue. */
static uint32_t waits_in_queue(const Maker *m, uint32_t i, uint32_t *out) {
    const Record *r = &m->record[i];
    uint32_t n = 0, queue = m->spec->tiling.rows.queue;
    uint32_t *known = ended(m, i), cursor[HW_MAX_UNITS];
    memcpy(cursor, m->last, sizeof cursor);
    for (;;) {
        uint32_t k = last_at_work(m, known, cursor);
        uint32_t ahead = k == UINT32_MAX ? 0 : m->queued[i] - m->queued[k];
        if (k == UINT32_MAX || ahead > queue)
            return n;
        const Record *other = &m->record[k];
        cursor[other->unit] = m->before[k];
        if (ahead == queue || !beside(m->spec, r->unit, other->unit) ||
            conflict(m, r, other)) {
            wait_for(m, k, known);
            out[n++] = k;
        }
    }
}

static uint32_t waits_for_units(const Maker *m, uint32_t i, uint32_t *out) {
    const Record *r = &m->record[i];
    const HwInsn *insn = &m->listing->insn[i];
    HwFields fields;
    uint64_t units, own = UINT64_C(1) << r->unit;
    uint32_t n = 0, host = insn_unit_of_host(m->spec);
    insn_fields(m->spec, insn, &fields);
    bool begins = i == 0 || m->record[i - 1].step != r->step;
    if (r->unit == host || !insn_waits(m->spec, &fields, &units))
        units = r->unit == host || begins ? UINT64_MAX : 0;
    units |= own | UINT64_C(1) << host;
    for (uint32_t u = 0; u <= host; u++)
        if ((units >> u & 1) && m->last[u])
            out[n++] = m->last[u] - 1;
    return n;
}

static void add_waits(Maker *m, uint32_t i) {
    Record *r = &m->record[i];
    bool queued = m->spec->tiling.rows.moves == HW_MOVES_QUEUED;
    bool host = r->unit == insn_unit_of_host(m->spec);
    m->queued[i + 1] = m->queued[i] + (r->op != HW_OP_CONCAT && !host);
    if (r->op == HW_OP_CONCAT)
        return;
    uint32_t *wait = ARENA_ARRAY(m->arena, uint32_t, m->n_units);
    r->n_waits =
        queued ? waits_in_queue(m, i, wait) : waits_for_units(m, i, wait);
    r->wait = wait;
    m->before[i] = m->last[r->unit];
    m->last[r->unit] = i + 1;
}

static void make(Maker *m, uint32_t i) {
    const Action *a = &m->plan->action[m->action_of[i]];
    Record *r = &m->record[i];
    bool moves = is_move(a) || a->kind == ACTION_COPY;
    const Node *node = moves ? NULL : graph_node(m->graph, a->node);
    *r = (Record){.op = insn_op(m->spec, &m->listing->insn[i]),
                  .unit = record_unit(m, a),
                  .step = a->step};
    r->layer =
        node
            ? node->name
            : graph_tensor(m->graph, m->plan->placement[a->in[0]].tensor)->name;
    if (node && a->kind != ACTION_CONCAT)
        r->constants = a->kind == ACTION_HOST || a->legal.op == HW_OP_LAYER
                           ? node->name
                           : node_constants_layer(node);
    add_operands(m, a, r);
    add_waits(m, i);
}

const Record *records_make(Arena *arena, const Plan *plan,
                           const Listing *listing, const uint32_t *action_of) {
    Maker m = {.arena = arena,
               .plan = plan,
               .spec = listing->spec,
               .graph = plan->schedule->graph,
               .listing = listing,
               .action_of = action_of,
               .record = ARENA_ARRAY(arena, Record, listing->n + 1),
               .n_units =
                   insn_unit_of_dma(listing->spec, listing->spec->n_dmas)};
    Arena *scratch = arena_new("records");
    m.before = ARENA_ARRAY(scratch, uint32_t, listing->n + 1);
    m.queued = ARENA_ARRAY(scratch, uint32_t, listing->n + 1);
    m.ended =
        ARENA_ARRAY(scratch, uint32_t, ((size_t)listing->n + 1) * m.n_units);
    for (uint32_t i = 0; i < listing->n; i++)
        make(&m, i);
    arena_free(scratch);
    return m.record;
}
