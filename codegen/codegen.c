/* codegen.c - Plan -> Listing: instruction selection by the hwspec's rows.
 *
 * Input: a Plan that the judge has passed. Output: instructions, each with the
 * action it came from, and the data image (image.c).
 * Every action kind has one function here that fills the *meanings* of an
 * instruction (fields.def); which of them are written, under what names and in
 * what order, is the row's business.
 */
#include "codegen/codegen.h"

#include "codegen/fill.h"
#include "codegen/image.h"
#include "codegen/waits.h"

typedef struct Emitter {
    Filler in; /* the plan, to be told */
    VEC(HwInsn) insn;
    VEC(uint32_t) action_of;
    Waits waits;
} Emitter;

/* A token of two meanings says the one that the operation has. */
static bool says_other(const HwForm *form, const HwFields *fields,
                       HwField field) {
    for (uint32_t i = 0; i < form->n; i++) {
        const HwToken *token = &form->token[i];
        if (token->from == field && token->also != HW_F_CONST &&
            fields->set[token->also])
            return true;
    }
    return false;
}

/* What says "nothing of it" where an operation has no such thing. */
static void set_neutral(const HwForm *form, HwOp op, HwFields *fields) {
    for (uint32_t i = 0; i < form->n; i++) {
        HwField field = form->token[i].from;
        int64_t value;
        if (field < HW_F_COUNT && !fields->set[field] &&
            insn_absent(op, field, &value) == HW_NEUTRAL &&
            !says_other(form, fields, field))
            set(fields, field, value);
    }
}

static HwInsn build_insn(Emitter *e, HwOp op, HwFields *fields,
                         const char *comment) {
    int32_t row = insn_row(e->in.spec, op);
    if (row < 0)
        bug("no instruction for %s", hw_op_name[op]);
    set_neutral(&e->in.spec->insns->row[row].form[0], op, fields);
    fields->has_op = true;
    fields->op = op;
    return insn_build(e->in.arena, e->in.spec, (uint32_t)row, fields, comment);
}

static void push_insn(Emitter *e, HwInsn insn, uint32_t action) {
    vec_push(e->in.arena, &e->insn, insn);
    vec_push(e->in.arena, &e->action_of, action);
}

static void add_insn(Emitter *e, HwOp op, HwFields *fields, const char *comment,
                     uint32_t action) {
    push_insn(e, build_insn(e, op, fields, comment), action);
}

static const char *side(const Emitter *e, uint32_t placement) {
    uint32_t memory = e->in.plan->placement[placement].memory;
    return e->in.spec->memory[memory].role == HW_ACTIVE ? "am" : "ddr";
}

static void emit_weights(Emitter *e, const Action *action, uint32_t index) {
    HwFields f = {0};
    set(&f, HW_F_STEP, action->step);
    set_text(&f, HW_F_NAME,
             whole_name(&e->in, node_constants_layer(
                                    graph_node(e->in.graph, action->node))));
    set_weights(&e->in, &f, action);
    add_insn(e, HW_OP_LOAD_WEIGHTS, &f, "weights", index);
}

static void emit_bias(Emitter *e, const Action *action, uint32_t index) {
    HwFields f = {0};
    set(&f, HW_F_STEP, action->step);
    set_text(&f, HW_F_NAME,
             whole_name(&e->in, node_constants_layer(
                                    graph_node(e->in.graph, action->node))));
    set_bias(&e->in, &f, action);
    add_insn(e, HW_OP_LOAD_BIAS, &f, "bias", index);
}

/* Which tile; or, of a run that makes some channels, the first of these, which
 * tells its weights. */
static const char *run_name(const Emitter *e, const Action *action,
                            const Node *node) {
    const Placement *out = &e->in.plan->placement[action->out];
    bool some =
        !action->weights && out->n_c < plan_volume(e->in.graph, out->tensor).c;
    if (action->n_tiles < 2)
        return whole_name(&e->in, node->name);
    return arena_printf(e->in.arena, "%s#%u", node->name,
                        some ? out->c : action->tile);
}

static void emit_run(Emitter *e, const Action *action, uint32_t index,
                     uint64_t waits) {
    const Node *node = graph_node(e->in.graph, action->node);
    HwFields f = {0};
    set(&f, HW_F_STEP, action->step);
    set_text(&f, HW_F_NAME, run_name(e, action, node));
    set_run(&e->in, &f, action);
    insn_set_waits(e->in.spec, &f, waits);
    const char *comment = arena_printf(
        e->in.arena, "%s_to_%s", side(e, action->in[0]), side(e, action->out));
    add_insn(e, action->legal.op, &f, comment, index);
}

/* Max pooling of single pixels, from the first row to copy on. */
static void emit_copy(Emitter *e, const Action *action, uint32_t index,
                      uint64_t waits) {
    const Placement *in = &e->in.plan->placement[action->in[0]];
    const Layout *layout = e->in.spec->memory[in->memory].layout;
    HwFields f = {0};
    set(&f, HW_F_STEP, action->step);
    set_text(&f, HW_F_NAME,
             arena_printf(e->in.arena, "%s#%u..%u",
                          graph_tensor(e->in.graph, in->tensor)->name,
                          action->row, action->row + action->rows - 1));
    set_operand(&e->in, &f, HW_IN, action->in[0], in->row, in->rows);
    insn_set_operand(
        e->in.spec, &f, HW_IN, in->memory,
        operand_offset(&e->in, in) +
            layout_offset(layout, &in->whole, 0, action->row - in->row, 0, 0));
    set_operand(&e->in, &f, HW_OUT, action->out, action->row, action->rows);
    set_single_pixels(&f);
    set(&f, HW_F_BLOCK, 1);
    insn_set_waits(e->in.spec, &f, waits);
    add_insn(e, action->legal.op, &f, "copy", index);
}

/* Sizes are the whole tensor's; the active side holds just the rows moved. */
static void emit_move(Emitter *e, const Action *action, uint32_t index) {
    const Placement *in = &e->in.plan->placement[action->in[0]];
    Volume whole = plan_volume(e->in.graph, in->tensor);
    HwFields f = {0};
    set(&f, HW_F_STEP, action->step);
    set_text(&f, HW_F_NAME, graph_tensor(e->in.graph, in->tensor)->name);
    set_operand(&e->in, &f, HW_IN, action->in[0], action->row, whole.h);
    set_operand(&e->in, &f, HW_OUT, action->out, action->row, whole.h);
    set(&f, HW_F_BLOCK, 1);
    set(&f, HW_F_ROW_FIRST, action->row);
    set(&f, HW_F_ROW_LAST, (int64_t)action->row + action->rows - 1);
    set(&f, HW_F_COL_FIRST, action->col);
    set(&f, HW_F_COL_LAST, (int64_t)action->col + action->cols - 1);
    bool is_load = action->kind == ACTION_LOAD;
    const Placement *near =
        &e->in.plan->placement[is_load ? action->out : action->in[0]];
    bool turns = near->ring || near->lines.band;
    set(&f, HW_FIELD_OF(is_load ? HW_OUT : HW_IN, COL),
        turns ? (int64_t)action->col - near->left : 0);
    const char *name = graph_tensor(e->in.graph, in->tensor)->name;
    bool leaves = graph_is_output(e->in.graph, in->tensor) && !is_load;
    add_insn(e, is_load ? HW_OP_LOAD : HW_OP_STORE, &f,
             arena_printf(e->in.arena, leaves ? "Output %s" : "%s_blob", name),
             index);
}

/* Whether a concat's note would say where it begins: not inside a section of
 * channels, and, where memories have the same addresses, which one it is. */
static bool noted_there(const Emitter *e, const HwInsn *insn,
                        const Placement *out) {
    HwFields read;
    uint32_t memory, granule;
    uint64_t offset;
    insn_fields(e->in.spec, insn, &read);
    if (!insn_operand(e->in.spec, HW_OP_CONCAT, &read, HW_OUT, &memory,
                      &offset) ||
        memory != out->memory)
        return false;
    granule = layout_granule(e->in.spec->memory[memory].layout);
    return granule ? out->part_c % granule == 0
                   : !out->part_c || e->in.spec->insns->tells_parts;
}

static void emit_concat(Emitter *e, const Action *action, uint32_t index) {
    if (insn_row(e->in.spec, HW_OP_CONCAT) < 0)
        return;
    const Placement *out = &e->in.plan->placement[action->out];
    if (e->in.spec->memory[out->memory].role != HW_ACTIVE)
        return;
    const Layout *layout = e->in.spec->memory[out->memory].layout;
    Volume own = plan_volume(e->in.graph, out->tensor);
    own.h = action->rows;
    own.repl = out->whole.repl;
    uint64_t bytes = layout_bytes(layout, &own);
    HwFields end = {0}, f = {0};
    insn_set_operand(e->in.spec, &end, HW_OUT, out->memory,
                     operand_offset(&e->in, out) + bytes);
    set(&f, HW_F_STEP, action->step);
    set_text(&f, HW_F_NAME, graph_node(e->in.graph, action->node)->name);
    set_operand(&e->in, &f, HW_OUT, action->out, action->row, own.h);
    set(&f, HW_F_BYTES, (int64_t)bytes);
    set(&f, HW_F_END, end.num[HW_F_OUT_ADDR]);
    set(&f, HW_F_END_BUFFER, end.num[HW_F_OUT_BUFFER]);
    set(&f, HW_F_END_OFFSET, end.num[HW_F_OUT_OFFSET]);
    HwInsn note = build_insn(e, HW_OP_CONCAT, &f, NULL);
    if (noted_there(e, &note, out))
        push_insn(e, note, index);
}

/* A layer of the host, or of a processor: what it does is in the image. */
static void emit_layer(Emitter *e, const Action *action, uint32_t index) {
    const Node *node = graph_node(e->in.graph, action->node);
    HwFields f = {0};
    set(&f, HW_F_STEP, action->step);
    set_text(&f, HW_F_NAME, node->name);
    set_text(&f, HW_F_HOST_KIND, op_info[node->op].name);
    add_insn(e, action->legal.op, &f, action->legal.reason, index);
}

static void emit(Emitter *e, uint32_t index, uint64_t waits) {
    const Action *action = &e->in.plan->action[index];
    switch (action->kind) {
    case ACTION_LOAD:
    case ACTION_STORE:
        emit_move(e, action, index);
        break;
    case ACTION_RUN:
        if (action->legal.op == HW_OP_LAYER)
            emit_layer(e, action, index);
        else
            emit_run(e, action, index, waits);
        break;
    case ACTION_COPY:
        emit_copy(e, action, index, waits);
        break;
    case ACTION_WEIGHTS:
        emit_weights(e, action, index);
        break;
    case ACTION_BIAS:
        emit_bias(e, action, index);
        break;
    case ACTION_CONCAT:
        emit_concat(e, action, index);
        break;
    case ACTION_HOST:
        emit_layer(e, action, index);
        break;
    }
}

/* Where nothing is at work that began before the instruction. */
static bool may_cut(const Emitter *e, uint32_t i) {
    const Action *action = e->in.plan->action;
    return action[e->action_of.at[i]].step !=
           action[e->action_of.at[i - 1]].step;
}

/* Parts that the machine holds, as long as they can be; what is not issued
 * takes no room in them. False if there are no such. */
static bool cut_to_fit(const Emitter *e, Listing *listing) {
    uint32_t limit = e->in.spec->max_instructions, held = 0, last = 0;
    VEC(uint32_t) part = {0};
    vec_push(e->in.arena, &part, 0);
    for (uint32_t i = 0, since = 0; limit && i < e->insn.n; i++) {
        bool issued = insn_is_issued(e->in.spec, &e->insn.at[i]);
        if (i && may_cut(e, i)) {
            last = i;
            since = 0;
        }
        held += issued;
        since += issued;
        if (held > limit && last == part.at[part.n - 1])
            return false;
        if (held > limit) {
            vec_push(e->in.arena, &part, last);
            held = since;
        }
    }
    listing->n_parts = part.n;
    listing->part = part.at;
    return true;
}

const Listing *codegen_run(Arena *arena, Diag *diag, const Plan *plan,
                           const uint32_t **action_of) {
    const HwSpec *spec = plan->schedule->spec;
    const Graph *graph = plan->schedule->graph;
    Emitter e = {.in = {arena, plan, spec, graph},
                 .waits = {.arena = arena, .plan = plan}};
    for (uint32_t i = 0; i < plan->n_actions; i++)
        emit(&e, i, waits_before(&e.waits, i));
    Listing *listing = ARENA_NEW(arena, Listing);
    if (!cut_to_fit(&e, listing)) {
        diag_error(diag, spec->loc,
                   "a step of the listing has more instructions than the %u "
                   "that %s holds",
                   spec->max_instructions, spec->machine);
        return NULL;
    }
    listing->spec = spec;
    listing->network = graph->name;
    listing->n = e.insn.n;
    listing->insn = e.insn.at;
    listing->image = image_make(arena, plan, e.action_of.at, e.insn.n);
    listing->has_image = true;
    if (action_of)
        *action_of = e.action_of.at;
    return listing;
}
