/* words.c - a listing as words, instruction by instruction; see words.h.
 *
 * What steps know is what the instruction says (its fields by their names), how
 * its operands lie, and the numbers of its layer. Constants are those of
 * layers: they are made where the first instruction of a layer needs them.
 */
#include "codegen/words.h"

#include "wordgen/writer.h"

#include <string.h>

typedef struct Lister {
    Writer w;
    Diag *diag;
    const Plan *plan;
    const Listing *listing;
    const uint32_t *action_of;
    const HwEmit *emit;
    const Stored **stored; /* by node and way: its constants, or NULL */
    uint32_t *first;
    VEC(uint32_t) list;
    bool open;
} Lister;

/* ---- facts ---- */

static void say(Lister *l, const char *name, int64_t value) {
    template_set(&l->w.run, name, value);
}

static void say_fields(Lister *l, const HwInsn *insn) {
    HwFields fields;
    insn_fields(l->w.spec, insn, &fields);
    for (int f = 0; f < HW_F_COUNT; f++)
        if (hw_field_kind((HwField)f) != HW_STR)
            say(l, hw_field_name[f], fields.set[f] ? fields.num[f] : 0);
}

/* Where the operand lies: in which volume, and at which of its channels, rows
 * and columns what the instruction reads or makes begins. */
static void say_place(Lister *l, HwOperand operand, uint32_t placement,
                      uint32_t row, uint32_t col) {
    const Placement *p = &l->plan->placement[placement];
    const HwMemory *memory = &l->w.spec->memory[p->memory];
    const char *name = hw_operand_name[operand];
    bool turns = p->ring && p->whole.w != p->cols;
    bool ring = p->ring && p->whole.h < plan_volume(l->w.g, p->tensor).h;
    const struct {
        const char *what;
        uint64_t value;
    } facts[] = {{"start", memory->base + p->offset / memory->unit},
                 {"whole.c", p->whole.c},
                 {"whole.h", p->whole.h},
                 {"whole.w", p->whole.w},
                 {"first.c", p->c},
                 {"at.c", p->part_c},
                 {"at.row", p->ring ? row % p->whole.h : row - p->row},
                 {"at.col", turns ? col : col - p->col},
                 {"turns", ring}};
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        say(l, arena_printf(l->w.scratch, "%s.%s", name, facts[i].what),
            (int64_t)facts[i].value);
}

static void say_zero(Lister *l, HwOperand operand, TensorId tensor) {
    const Quant *q = &graph_tensor(l->w.g, tensor)->quant;
    say(l, arena_printf(l->w.scratch, "%s.zero", hw_operand_name[operand]),
        q->zero - wordgen_less(l->w.spec, q));
}

/* Of the layer whose result the instruction makes, or some of it. */
static void say_layer(Lister *l, const Action *action) {
    const Node *node = graph_node(l->w.g, action->node);
    Volume made = plan_volume(l->w.g, node->out[0]);
    Volume in = plan_volume(l->w.g, node->in[0]);
    bool conv = node->op == OP_CONV || node->op == OP_DECONV ||
                node->op == OP_CONV_POOL;
    uint32_t groups = conv ? node->attr.conv.groups : 1;
    say(l, "layer", action->node.i);
    say(l, "layer.c", made.c);
    say(l, "group.c", in.c / (groups ? groups : 1));
    say_zero(l, HW_IN, node->in[0]);
    say_zero(l, HW_IN2, node->in[node->n_in > 1 ? 1 : 0]);
    say_zero(l, HW_OUT, node->out[0]);
    writer_numbers(&l->w, node, false);
}

static const Action *action_at(const Lister *l, uint32_t i) {
    return &l->plan->action[l->action_of[i]];
}

static void say_all(Lister *l, uint32_t i) {
    const Action *action = action_at(l, i);
    say_fields(l, &l->listing->insn[i]);
    say(l, "operands", action->n_in);
    if (loads_constants(action))
        return;
    bool run = action->kind == ACTION_RUN;
    uint32_t row = run ? action->in_row : action->row;
    uint32_t col = run ? action->in_col : action->col;
    say_place(l, HW_IN, action->in[0], row, col);
    say_place(l, HW_IN2, action->in[action->n_in > 1 ? 1 : 0], row, col);
    say_place(l, HW_OUT, action->out, action->row, action->col);
    if (action->kind == ACTION_RUN)
        say_layer(l, action);
}

/* ---- constants ---- */

static bool store_constants(Lister *l, uint32_t i, uint32_t way) {
    const Action *action = action_at(l, i);
    const EmitWay *at = &l->emit->way[way];
    if (!at->n_constants)
        return true;
    const Stored **stored = &l->stored[action->node.i * l->emit->n + way];
    if (!*stored) {
        writer_numbers(&l->w, graph_node(l->w.g, action->node), true);
        *stored = writer_constants(&l->w, at);
    }
    if (*stored)
        writer_set_constants(&l->w, at, *stored);
    return *stored != NULL;
}

/* ---- instructions ---- */

static bool fault(Lister *l, uint32_t i) {
    const Action *action = action_at(l, i);
    bool run = action->kind == ACTION_RUN;
    const Node *node = run ? graph_node(l->w.g, action->node) : NULL;
    diag_error(l->diag, node ? node->loc : (Loc){0},
               "instruction %u of the listing (%s%s%s): %s", i + 1,
               l->w.spec->insns->row[l->listing->insn[i].row].mnemonic,
               node ? " " : "", node ? node->name : "", l->w.run.failed);
    diag_note(l->diag, l->w.run.at, "here");
    return false;
}

/* The first way that takes it; else, with the reason as a fault, NULL. */
static const EmitWay *way_of(Lister *l, HwOp op) {
    const char *why = NULL;
    for (uint32_t k = 0; k < l->emit->n && !l->w.run.failed; k++) {
        const EmitWay *way = &l->emit->way[k];
        const char *lacks = way->runs[op] ? writer_lacks(&l->w, way) : "";
        if (!lacks)
            return way;
        why = *lacks ? lacks : why;
    }
    if (!why)
        why = arena_printf(l->w.arena, "no way for %s", hw_op_name[op]);
    template_fail(&l->w.run, l->w.spec->loc, why);
    return NULL;
}

static bool begin(Lister *l) {
    if (l->open)
        return true;
    l->open = true;
    writer_forget(&l->w);
    say(l, "list", l->list.n);
    vec_push(l->w.arena, &l->list, l->w.node.n);
    return template_call(&l->w.run, l->emit->begin);
}

static bool end(Lister *l) {
    bool was = l->open;
    l->open = false;
    return !was || template_call(&l->w.run, l->emit->end);
}

static bool write(Lister *l, uint32_t i, HwOp op) {
    if (!begin(l))
        return false;
    say_all(l, i);
    const EmitWay *way = way_of(l, op);
    return way && template_call(&l->w.run, way->attempt) &&
           store_constants(l, i, (uint32_t)(way - l->emit->way)) &&
           template_call(&l->w.run, way->steps);
}

static bool write_all(Lister *l) {
    for (uint32_t i = 0; i < l->listing->n; i++) {
        const HwInsn *insn = &l->listing->insn[i];
        HwOp op = insn_op(l->w.spec, insn);
        bool note = l->w.spec->insns->row[insn->row].comment;
        l->first[i] = l->w.node.n;
        if (op == HW_OP_HOST ? !end(l) : !note && !write(l, i, op))
            return fault(l, i);
        arena_reset(l->w.scratch);
    }
    if (l->listing->n && !end(l))
        return fault(l, l->listing->n - 1);
    l->first[l->listing->n] = l->w.node.n;
    vec_push(l->w.arena, &l->list, l->w.node.n);
    return true;
}

/* ---- the image ---- */

static uint64_t aligned(const Lister *l, uint64_t at) {
    uint32_t align = l->w.spec->memory[l->w.spec->backing].align;
    return align ? (at + align - 1) / align * align : at;
}

static void put_address(uint8_t *to, uint64_t at) {
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(at >> 8 * i);
}

static void lay(const Lister *l, ListedWords *out) {
    const HwEmit *emit = l->emit;
    const HwSpec *spec = l->w.spec;
    int64_t *region = ARENA_ARRAY(l->w.arena, int64_t, spec->n_memories + 1);
    uint64_t *begins = ARENA_ARRAY(l->w.arena, uint64_t, emit->n_regions + 1);
    uint64_t at = emit->first;
    for (uint32_t i = 0; i < spec->n_memories; i++)
        region[i] = WORDS_NOWHERE;
    for (uint32_t k = 0; k < emit->n_regions; k++) {
        int32_t memory = emit->region[k].memory;
        begins[k] = at = aligned(l, at);
        if (memory != EMIT_CONSTANTS)
            region[memory] = (int64_t)at;
        at += memory == EMIT_CONSTANTS ? l->w.constant.n
                                       : l->plan->memory_used[memory];
    }
    uint8_t *image = ARENA_ARRAY(l->w.arena, uint8_t, at + 1);
    for (uint32_t k = 0; k < emit->n_regions; k++) {
        put_address(image + 4 * k, begins[k]);
        if (emit->region[k].memory == EMIT_CONSTANTS && l->w.constant.n)
            memcpy(image + begins[k], l->w.constant.at, l->w.constant.n);
    }
    out->image = image;
    out->bytes = at;
    out->region = region;
}

static bool place_tokens(const Lister *l, Program *program) {
    for (uint32_t i = 0; i + 1 < l->list.n; i++) {
        Program part = *program;
        part.node = program->node + l->list.at[i];
        part.n_nodes = l->list.at[i + 1] - l->list.at[i];
        if (!writer_place_tokens(l->w.arena, l->diag, &part))
            return false;
    }
    return true;
}

static const ListedWords *finish(Lister *l) {
    ListedWords *out = ARENA_NEW(l->w.arena, ListedWords);
    Program *program = program_new(l->w.arena, l->w.spec);
    program->n_nodes = l->w.node.n;
    program->node = l->w.node.at;
    if (!place_tokens(l, program))
        return NULL;
    *out = (ListedWords){.program = program,
                         .first = l->first,
                         .n_lists = l->list.n - 1,
                         .list = l->list.at,
                         .constants = l->w.constant.n};
    lay(l, out);
    return out;
}

const ListedWords *codegen_words(Arena *arena, Diag *diag, const Plan *plan,
                                 const Listing *listing,
                                 const uint32_t *action_of) {
    Lister l = {.diag = diag,
                .plan = plan,
                .listing = listing,
                .action_of = action_of,
                .emit = program_emit_listing(listing->spec)};
    if (!l.emit || listing->spec->backing < 0) {
        diag_error(diag, listing->spec->loc,
                   "%s: words need a section `emit` with `of: listing`, and a "
                   "backing memory",
                   listing->spec->machine);
        return NULL;
    }
    writer_open(&l.w, arena, listing->spec, plan->schedule->graph);
    l.stored = ARENA_ARRAY(arena, const Stored *,
                           (uint64_t)l.w.g->node.n *l.emit->n + 1);
    l.first = ARENA_ARRAY(arena, uint32_t, listing->n + 1);
    const ListedWords *out = write_all(&l) ? finish(&l) : NULL;
    arena_free(l.w.scratch);
    return out;
}
